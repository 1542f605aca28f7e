#!/usr/bin/env python3
"""Transposes that remain in the optimized graphs of the model set: no more than counted here.

ONNX is NCHW, kernels are NHWC; a model is turned once, at its border. What the table counts beyond
that are the moves of heads in attention, and layouts that meet: a rise says that a pass does less.

    test_transposes.py INFERD SHARED
"""
import pathlib
import re
import subprocess
import sys

# name: transposes, of models/onnx and golden/exported
COUNTS = {
    "dtln_1.onnx": 0, "dtln_2.onnx": 0, "esrgan_slim_x2.onnx": 2, "hf_bert_ts": 8,
    "hf_clip_text_dynamo": 8, "hf_clip_text_ts": 8, "hf_convnextv2_dynamo": 2,
    "hf_convnextv2_ts": 2, "hf_gpt2_dynamo": 8, "hf_mobilenet_v2_dynamo": 2,
    "hf_mobilenet_v2_ts": 2, "hf_mobilevit_dynamo": 42, "hf_mobilevit_ts": 42, "hf_vit_dynamo": 13,
    "hf_vit_qop_u8": 11, "hf_vit_ts": 11, "hf_whisper_encoder_dynamo": 13,
    "hf_whisper_encoder_ts": 13, "hf_yolos_dynamo": 13, "hf_yolos_ts": 11,
    "mobilenet_v2_quant.onnx": 1, "own_audio_dynamo": 4, "own_audio_ts": 4, "own_loop_if_ts": 0,
    "own_lstm_gru_dynamo": 4, "own_lstm_gru_ts": 0, "own_pick_dynamo": 1, "own_pick_ts": 1,
    "own_stream_cell_dynamo": 2, "own_stream_cell_ts": 2, "own_super_dynamo": 5, "own_super_ts": 5,
    "own_text_dynamo": 10, "own_text_ts": 16, "own_unet_dynamo": 3, "own_unet_ts": 7,
    "own_video_dynamo": 6, "own_video_ts": 6, "ppocr_v2_cls.onnx": 1, "ppocr_v4_det.onnx": 1,
    "silero_vad.onnx": 0, "timm_byobnet_dynamo": 1, "timm_byobnet_ts": 1,
    "timm_convnext2_dynamo": 1, "timm_convnext2_ts": 1, "timm_convnext_dynamo": 1,
    "timm_convnext_ts": 1, "timm_efficientnet_dynamic": 1, "timm_efficientnet_dynamo": 1,
    "timm_efficientnet_gn_dynamo": 26, "timm_efficientnet_gn_ts": 26, "timm_efficientnet_qdq_s8": 1,
    "timm_efficientnet_qop_u8": 1, "timm_efficientnet_ts": 1, "timm_resnet_dynamic": 1,
    "timm_resnet_dynamo": 1, "timm_resnet_qdq_s8": 1, "timm_resnet_qop_u8": 1, "timm_resnet_ts": 1,
    "timm_vit3_dynamo": 32, "timm_vit3_ts": 32, "timm_vit_dynamo": 21, "timm_vit_ts": 21,
    "tv_mnasnet0_5_dynamo": 2, "tv_mnasnet0_5_ts": 2, "tv_mobilenet_v3_small_dynamic": 1,
    "tv_mobilenet_v3_small_dynamo": 1, "tv_mobilenet_v3_small_qdq_s8": 1,
    "tv_mobilenet_v3_small_ts": 1, "tv_squeezenet1_1_dynamo": 1, "tv_squeezenet1_1_ts": 1,
    "ultraface_rfb_320.onnx": 1, "yolox_nano.onnx": 5,
}


def find(shared):
    models = {path.name: path for path in (shared / "models/onnx").glob("*.onnx")}
    models.update({path.parent.name: path for path in
                   (shared / "golden/exported").glob("*/model.onnx")})
    return models


def count(inferd, path):
    done = subprocess.run([inferd, "inspect", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr.strip()
    return len(re.findall(r"^node \d+ transpose\(", done.stdout, re.MULTILINE))


def main():
    inferd, shared = sys.argv[1], pathlib.Path(sys.argv[2])
    models = find(shared)
    if not models:
        print(f"{shared} is not here: nothing to count")
        return 77
    wrong = [f"{name}: not in the table" for name in sorted(models.keys() - COUNTS.keys())]
    wrong += [f"{name}: not in {shared}" for name in sorted(COUNTS.keys() - models.keys())]
    for name in sorted(COUNTS.keys() & models.keys()):
        got = count(inferd, models[name])
        if not isinstance(got, int) or got > COUNTS[name]:
            wrong.append(f"{name}: {got} transposes, expected {COUNTS[name]}")
        elif got < COUNTS[name]:
            print(f"{name}: {got} transposes, expected {COUNTS[name]}: lower the count")
    print("\n".join(wrong) if wrong else f"{len(models)} models: {sum(COUNTS.values())} transposes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

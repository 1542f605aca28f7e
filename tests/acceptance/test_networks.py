"""Networks as PyTorch's and TensorFlow's exporters write them (../shared/golden/exported and
converted), over HTTP to both backends, with the answers of PyTorch, ONNX Runtime or LiteRT."""

import json
import unittest

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype

import support

# What does not run yet, and what the index says about it.
LATER = {
    "exported/hf_bert_ts": "GatherElements",
    "exported/own_audio_dynamo": "dimension 2 is unknown",
    "exported/own_audio_ts": "dimension 2 is unknown",
    "exported/own_loop_if_ts": "Loop (1, first node 1), If (1, first node 6)",
    "exported/own_lstm_gru_ts": "dimension 1 is unknown",
    "exported/own_pick_dynamo": "Einsum",
    "exported/own_pick_ts": "Einsum",
    "exported/own_super_dynamo": "dimension 2 is unknown",
    "exported/own_super_ts": "dimension 2 is unknown",
    "exported/own_text_dynamo": "dimension 1 is unknown",
    "exported/own_unet_dynamo": "dimension 2 is unknown",
    "exported/own_unet_ts": "dimension 2 is unknown",
    "converted/bilstm_dyn": "WHILE",
    "converted/cond_f32": "IF",
    "converted/convlstm_f32": "WHILE",
    "converted/dynamic_hw_f32": "does not fit input",
    "converted/gru_dyn": "WHILE",
    "converted/ints_f32": "BITWISE_XOR",
    "converted/lstm_f32": "WHILE",
    "converted/lstm_last_dyn": "WHILE",
    "converted/mha_int8": "RSQRT",
    "converted/nms_f32": "NON_MAX_SUPPRESSION_V5",
    "converted/rnn_dyn": "WHILE",
    "converted/rnn_f32": "WHILE",
    "converted/unique_f32": "UNIQUE",
    "converted/where_idx_f32": "WHERE",
    "converted/whileloop_f32": "WHILE",
}
# Outputs whose answer is not one: LiteRT 2.3's reference kernel reads the bytes of s16 sums as u8.
NO_ANSWER = {("converted/means_q_16x8", "PartitionedCall:2")}
FAST_STEPS = 2  # of quantized outputs on CpuAcc: the folder's README


def networks(kind):
    root = support.shared(f"golden/{kind}")
    for case in sorted(root.glob("*/case.json")):
        yield f"{kind}/{case.parent.name}", json.loads(case.read_text())


def sets(name, case):
    for number in range(case["sets"]):
        folder = support.shared(f"golden/{name}/set{number}")
        yield (
            folder.name,
            [np.load(folder / f"in{i}.npy") for i in range(len(case["inputs"]))],
            [np.load(folder / f"out{i}.npy") for i in range(len(case["outputs"]))],
        )


def takes_batches(name, case):
    """Do the sets differ in dimension 0?"""
    first, *others = [[array.shape[:1] for array in arrays] for _, arrays, _ in sets(name, case)]
    return any(sizes != first for sizes in others)


class Networks:
    kind = ""
    files = {"exported": "model.onnx", "converted": "model.tflite"}

    @classmethod
    def prepare(cls, folder):
        for name, case in networks(cls.kind):
            config = (
                "max_batch_size: 8\n" if name not in LATER and takes_batches(name, case) else None
            )
            support.add_model(
                folder,
                case["name"],
                support.shared(f"golden/{name}/{cls.files[cls.kind]}"),
                config=config,
            )

    def refusal(self, name):
        index = json.loads(self.server.ask("POST", "/v2/repository/index").data)
        return next(row.get("reason", "") for row in index if row["name"] == name)

    def judge(self, got, want, case, where):
        self.assertEqual(got.size, want.size, where)
        got = got.reshape(want.shape)
        if want.dtype.kind == "f":
            largest = float(np.abs(want).max(initial=0))
            scale = max(float(np.ptp(want)) if want.size else 0, largest) or 1
            worst = float(np.abs(got.astype(np.float64) - want).max(initial=0))
            self.assertLessEqual(worst / scale, case["tolerance"], where)
        else:
            steps = np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0)
            self.assertLessEqual(steps, self.steps if want.dtype.itemsize < 4 else 0, where)

    def test_answers_are_those_of_the_framework(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        ran = 0
        for name, case in networks(self.kind):
            with self.subTest(name):
                if name in LATER:
                    self.assertIn(LATER[name], self.refusal(case["name"]))
                    continue
                for number, inputs, outputs in sets(name, case):
                    tensors = []
                    for text, array in zip(case["inputs"], inputs):
                        tensors.append(
                            triton.InferInput(
                                text, list(array.shape), np_to_triton_dtype(array.dtype)
                            )
                        )
                        tensors[-1].set_data_from_numpy(array)
                    result = client.infer(case["name"], tensors)
                    for text, want in zip(case["outputs"], outputs):
                        if (name, text) in NO_ANSWER:
                            continue
                        self.judge(result.as_numpy(text), want, case, f"{name} {number} {text}")
                ran += 1
        print(f"{ran} networks")
        self.assertGreater(ran, 0)


class ExportedOnCpuRef(Networks, support.ServerCase):
    kind, steps = "exported", 0
    options = ("--backend", "CpuRef")


class ExportedOnCpuAcc(Networks, support.ServerCase):
    kind, steps = "exported", 0


class ConvertedOnCpuRef(Networks, support.ServerCase):
    kind, steps = "converted", 0
    options = ("--backend", "CpuRef")


class ConvertedOnCpuAcc(Networks, support.ServerCase):
    kind, steps = "converted", FAST_STEPS


if __name__ == "__main__":
    unittest.main()

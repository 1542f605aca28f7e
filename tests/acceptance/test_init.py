"""inferd init: from a model file to a repository that answers pictures."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import onnx
from onnx import helper

import support

PICTURE = "images/cat_720p.jpg"
SOUND = "audio/speech.wav"


def init(*arguments):
    return subprocess.run([support.SERVER, "init", *map(str, arguments)], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def keeper(path, pairs, x="x", y="y"):
    """A model of x and y, and of pairs of an input and an output: (name, name, shape)."""
    def port(name, shape):
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)

    nodes = [helper.make_node("Neg", [x], [y])]
    nodes += [helper.make_node("Abs", [a], [b]) for a, b, _ in pairs]
    graph = helper.make_graph(nodes, "g", [port(x, [1, 4]), *(port(a, s) for a, _, s in pairs)],
                              [port(y, [1, 4]), *(port(b, s) for _, b, s in pairs)])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]),
              path)


def proposed(text):
    """The lines that a config proposes for a state, without their marks of comments."""
    block = text.partition("clients do not see these tensors:\n")[2].partition("\n\n")[0]
    return "".join(line.removeprefix("# ") + "\n" for line in block.splitlines())


class Init(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "models"

    def make(self, model, *options):
        done = init(*options, self.folder, support.shared("models/" + model))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stdout
        return (self.folder / pathlib.Path(model).stem / "config.pbtxt").read_text()

    def test_the_configs_work(self):
        """Names of files, metadata and what is usual: each says enough for an answer."""
        self.assertIn('\nparameters { key: "preset" value { string_value: "yolox" } }\n',
                      self.make("onnx/yolox_nano.onnx"))
        self.assertIn("# The file itself says",
                      self.make("tflite/coco_ssd_mobilenet_v1_1.0_quant.tflite"))
        self.assertIn('"mediapipe_pose"', self.make("tflite/pose_landmark_lite.tflite"))
        self.assertIn("# Nothing says how pictures become its input. The preset",
                      self.make("onnx/mobilenet_v2_quant.onnx"))
        text = self.make("tflite/dtln_1.tflite")
        self.assertIn("# Nothing says how pictures or sounds become its input, or", text)
        self.assertNotIn("What a request may say", text)
        server = support.Server(str(self.folder))
        self.addCleanup(server.stop)
        body = support.shared(PICTURE).read_bytes()
        answers = {}
        for model in ("yolox_nano", "coco_ssd_mobilenet_v1_1.0_quant", "pose_landmark_lite",
                      "mobilenet_v2_quant"):
            response = server.ask("POST", f"/v2/models/{model}/infer", body)
            self.assertEqual(response.status, 200, response.data[:300])
            answers[model] = json.loads(response.data)
        for model in ("yolox_nano", "coco_ssd_mobilenet_v1_1.0_quant"):
            self.assertEqual(answers[model]["objects"][0]["label"], "cat", answers[model])
        self.assertEqual(len(answers["mobilenet_v2_quant"]["classes"]), 5)
        self.assertIn("objects", answers["pose_landmark_lite"])
        response = server.ask("POST", "/v2/models/dtln_1/infer", body)
        self.assertEqual(response.status, 400)
        self.assertIn("does not take one picture", json.loads(response.data)["error"])

    def test_networks_without_a_name_are_known_by_their_form(self):
        """Channels first: PyTorch's. A map of the picture: segmentation. Else no guess."""
        self.assertIn('\nparameters { key: "preset" value { string_value: "imagenet_torch" } }\n',
                      self.make("tflite/mobilenet_v2_int8_nchw_input.tflite"))
        text = self.make("tflite/selfie_segmentation.tflite")
        for key, value in (("preset", "deeplab"), ("image_mean", "0"), ("image_std", "255"),
                           ("labels", "background, person")):
            self.assertIn(f'\nparameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n',
                          text)
        unnamed = self.folder.parent / "net.tflite"
        for name, preset in (("selfie_segmentation", '\nparameters { key: "preset" value { '
                              'string_value: "deeplab" } }\n'),
                             ("face_detection_short_range", "# Nothing says how pictures or")):
            shutil.copy(support.shared(f"models/tflite/{name}.tflite"), unnamed)
            shutil.rmtree(self.folder / "net", ignore_errors=True)
            done = init(self.folder, unnamed)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(preset, (self.folder / "net/config.pbtxt").read_text())
        shutil.rmtree(self.folder / "net")
        server = support.Server(str(self.folder))
        self.addCleanup(server.stop)
        response = server.ask("POST", "/v2/models/selfie_segmentation/infer",
                              support.shared("images/grace_hopper.bmp").read_bytes())
        areas = {row["label"]: row["area"] for row in json.loads(response.data)["segments"]}
        self.assertGreater(areas["person"], 0.4)
        self.assertLess(areas["person"], 0.8)
        response = server.ask("POST", "/v2/models/mobilenet_v2_int8_nchw_input/infer?top_k=1000",
                              support.shared(PICTURE).read_bytes())
        scores = [row["score"] for row in json.loads(response.data)["classes"]]
        self.assertAlmostEqual(sum(scores), 1, delta=0.02)

    def test_a_preset_can_be_given(self):
        text = self.make("onnx/mobilenet_v2_quant.onnx", "--preset", "imagenet")
        self.assertIn('\nparameters { key: "preset" value { string_value: "imagenet" } }\n', text)
        self.assertIn('# parameters { key: "image_mean" value { string_value: "127.5" } }', text)

    def test_what_it_says_fits_the_model(self):
        def line(key, value):
            return f'\n# parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'

        ssd = self.make("tflite/coco_ssd_mobilenet_v1_1.0_quant.tflite")
        self.assertIn("curl --data-binary @PICTURE http://", self.said)
        for key, value in (("threshold", "0.5"), ("iou", "0.5"), ("top_k", "100")):
            self.assertIn(line(key, value), ssd)
        classes = self.make("tflite/mobilenet_v2_1.0_224_quant.tflite")
        self.assertIn(line("threshold", "0") + line("top_k", "5")[1:], classes)
        self.assertNotIn('"iou"', classes)
        segments = self.make("tflite/deeplabv3_257_float.tflite")
        self.assertIn(line("mask", "png"), segments)
        self.assertNotIn('"top_k"', segments)
        self.make("tflite/dtln_1.tflite")
        self.assertIn("\ncurl http://127.0.0.1:8000/v2/models/dtln_1\n", self.said)

    def test_a_model_of_sounds_answers_sounds(self):
        text = self.make("tflite/yamnet.tflite")
        self.assertIn("/v2/models/yamnet/infer", self.said)
        self.assertIn("curl --data-binary @SOUND.wav", self.said)
        self.assertIn('\nparameters { key: "preset" value { string_value: "yamnet" } }\n', text)
        self.assertIn("# How sounds become its input", text)
        self.assertIn('# parameters { key: "audio_rate" value { string_value: "16000" } }', text)
        self.assertNotIn("picture that you know", text)
        server = support.Server(str(self.folder))
        self.addCleanup(server.stop)
        response = server.ask("POST", "/v2/models/yamnet/infer",
                              support.shared(SOUND).read_bytes())
        self.assertEqual(response.status, 200, response.data[:300])
        self.assertEqual(len(json.loads(response.data)["windows"][0]["classes"]), 5)

    def test_states_are_proposed(self):
        """By names or by shapes; what is proposed is a config that the server takes."""
        configs = {name: self.make(f"onnx/{name}.onnx") for name in ("silero_vad", "dtln_1")}
        self.assertIn("# By their names these look like a state", configs["silero_vad"])
        self.assertIn("# By their shapes these look like a state", configs["dtln_1"])
        for name, text in configs.items():
            self.assertNotIn("\nsequence_batching", text)
            (self.folder / name / "config.pbtxt").write_text(text + proposed(text))
        server = support.Server(str(self.folder))
        self.addCleanup(server.stop)
        for name, inputs, outputs in (("silero_vad", ["input", "sr"], ["output"]),
                                      ("dtln_1", ["input_2"], ["activation_2"])):
            seen = json.loads(server.ask("GET", f"/v2/models/{name}").data)
            self.assertEqual([t["name"] for t in seen["inputs"]], inputs)
            self.assertEqual([t["name"] for t in seen["outputs"]], outputs)

    def test_names_of_states_pair(self):
        row, grows = [1, 4], [1, 2, "past", 4]
        known = [("state", "stateN"), ("h", "hn"), ("c0", "cn"), ("z_0", "z_n"),
                 ("hidden", "new_hidden"), ("past_x", "present_x"), ("conv_in", "conv_out"),
                 ("input_states_1", "output_states_1"), ("input_states_2", "output_states_2"),
                 ("r1i", "r1o"), ("prevMemory", "nextMemory")]
        unknown = [("INPUT0", "OUTPUT0"), ("a_in", "b_out"), ("m", "mx"), ("GRUState", "LSTMState")]
        path = self.folder.parent / "keeper.onnx"
        keeper(path, [(a, b, row) for a, b in known + unknown]
               + [("past_key", "present_key", grows), ("u", "un", ["n", 4])])
        self.assertEqual(init(self.folder, path).returncode, 0)
        text = (self.folder / "keeper/config.pbtxt").read_text()
        lines = proposed(text).splitlines()
        self.assertEqual(lines[0],
                         'input [ { name: "u" data_type: TYPE_FP32 dims: [ 1, 4 ] } ]')
        self.assertEqual((lines[1], lines[-1]), ("sequence_batching {", "}"))
        self.assertEqual(sorted(lines[2:-1]), sorted(
            f'  state [ {{ input_name: "{a}" output_name: "{b}" }} ]'
            for a, b in [*known, ("u", "un")]))

    def test_what_is_no_state_is_not_proposed(self):
        """Not what grows, has another use or two meanings by its shape, nor all that there is."""
        path = self.folder.parent / "none.onnx"
        for names, *pairs in ((("x", "y"), ("past_key", "present_key", [1, 2, "past", 4])),
                              (("x", "y"), ("mask", "areas", [1, 4])),
                              (("x", "y"), ("mask", "areas", [1, 5]), ("edges", "lines", [1, 5])),
                              (("x", "y"), ("lengths", "counts", [5])),
                              (("x_in", "x_out"), ("mask", "areas", [1, 4])),
                              (("a_in", "b_out"), ("b_in", "a_out", [1, 4]))):
            keeper(path, pairs, *names)
            self.assertEqual(init(self.folder, path).returncode, 0)
            self.assertNotIn("sequence_batching", (self.folder / "none/config.pbtxt").read_text())
            shutil.rmtree(self.folder / "none")

    def test_what_is_wrong_is_said_and_nothing_is_written(self):
        model = support.shared("models/onnx/mobilenet_v2_quant.onnx")
        damaged = self.folder.parent / "damaged.onnx"
        damaged.touch()
        cut = self.folder.parent / "cut.onnx"
        cut.write_bytes(model.read_bytes()[:-1])
        for arguments, status, text in (
                ((), 2, "usage: inferd init"), ((self.folder,), 2, "usage: inferd init"),
                ((self.folder, model, "third"), 2, "usage: inferd init"),
                (("--preset=yolo", self.folder, model), 1, 'there is no "yolo"'),
                (("--preset=yolox", self.folder, model), 1, "inferd init: "),
                ((self.folder, support.shared(PICTURE)), 1, "neither a folder nor"),
                ((self.folder, "/nowhere/net.onnx"), 1, "/nowhere/net.onnx"),
                ((self.folder, damaged), 1, f"{damaged}: the file is empty"),
                ((self.folder, cut), 1, f"{cut}: model: a protobuf field is cut off")):
            with self.subTest(arguments):
                done = init(*arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(text, done.stderr)
                self.assertFalse(self.folder.exists())
        self.make("onnx/mobilenet_v2_quant.onnx")
        again = init(self.folder, model)
        self.assertEqual(again.returncode, 1)
        self.assertIn('mobilenet_v2_quant": it exists; a newer version', again.stderr)


if __name__ == "__main__":
    unittest.main()

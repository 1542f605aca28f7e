"""inferd init: from a model file to a repository that answers pictures."""
import json
import pathlib
import subprocess
import tempfile
import unittest

import support

PICTURE = "images/cat_720p.jpg"


def init(*arguments):
    return subprocess.run([support.SERVER, "init", *map(str, arguments)], timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Init(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "models"

    def make(self, model, *options):
        done = init(*options, self.folder, support.shared("models/" + model))
        self.assertEqual(done.returncode, 0, done.stderr)
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
        self.assertIn("# Nothing says how pictures become its input, or",
                      self.make("tflite/dtln_1.tflite"))
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

    def test_a_preset_can_be_given(self):
        text = self.make("onnx/mobilenet_v2_quant.onnx", "--preset", "imagenet")
        self.assertIn('\nparameters { key: "preset" value { string_value: "imagenet" } }\n', text)
        self.assertIn('# parameters { key: "image_mean" value { string_value: "127.5" } }', text)

    def test_what_is_wrong_is_said_and_nothing_is_written(self):
        model = support.shared("models/onnx/mobilenet_v2_quant.onnx")
        for arguments, status, text in (
                ((), 2, "usage: inferd init"), ((self.folder,), 2, "usage: inferd init"),
                ((self.folder, model, "third"), 2, "usage: inferd init"),
                (("--preset=yolo", self.folder, model), 1, 'there is no "yolo"'),
                (("--preset=yolox", self.folder, model), 1, "inferd init: "),
                ((self.folder, support.shared(PICTURE)), 1, "neither a folder nor"),
                ((self.folder, "/nowhere/net.onnx"), 1, "/nowhere/net.onnx")):
            with self.subTest(arguments):
                done = init(*arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertIn(text, done.stderr)
                self.assertFalse(self.folder.exists())
        self.make("onnx/mobilenet_v2_quant.onnx")
        again = init(self.folder, model)
        self.assertEqual(again.returncode, 1)
        self.assertIn("File exists", again.stderr)


if __name__ == "__main__":
    unittest.main()

"""docs/first-model.md, docs/recipes.md and docs/tuning.md: every block of code runs, in order, and
prints what the block of text behind it says: each line of that is part of the output, in order."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import support

DOCS = support.SOURCE / "docs"
BUILD = support.SERVER.parent.parent
# names in the documents, and the files that they stand for
FILES = {
    "mobilenet.tflite": "models/tflite/mobilenet_v2_1.0_224_quant.tflite",
    "mobilenet_onnx.onnx": "models/onnx/mobilenet_v2_quant.onnx",
    "ssd.tflite": "models/tflite/coco_ssd_mobilenet_v1_1.0_quant.tflite",
    "yolox_nano.onnx": "models/onnx/yolox_nano.onnx",
    "face_detection_short_range.tflite": "models/tflite/face_detection_short_range.tflite",
    "ultraface.onnx": "models/onnx/ultraface_rfb_320.onnx",
    "pose_landmark.tflite": "models/tflite/pose_landmark_lite.tflite",
    "deeplab.tflite": "models/tflite/deeplabv3_257_float.tflite",
    "yamnet.tflite": "models/tflite/yamnet.tflite",
    "dtln.tflite": "models/tflite/dtln_1.tflite",
    "dtln_onnx.onnx": "models/onnx/dtln_1.onnx",
    "cat.jpg": "images/cat_720p.jpg",
    "person.bmp": "images/grace_hopper.bmp",
    "speech.wav": "audio/speech.wav",
}


def network(nodes, inputs, outputs, constants):
    """An ONNX file; inputs and outputs are (name, type, shape)."""
    def described(values):
        return [helper.make_tensor_value_info(*value) for value in values]
    graph = helper.make_graph(nodes, "g", described(inputs), described(outputs), [
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)],
                             ir_version=8).SerializeToString()


def movenet():
    """MoveNet's input and output, with the same points for every picture."""
    points = np.random.default_rng(1).uniform(0.1, 0.9, (1, 1, 17, 3)).astype(np.float32)
    return network(
        [helper.make_node("Cast", ["input"], ["pixels"], to=TensorProto.FLOAT),
         helper.make_node("ReduceMax", ["pixels"], ["most"]),
         helper.make_node("Mul", ["most", "none"], ["nothing"]),
         helper.make_node("Add", ["points", "nothing"], ["output_0"])],
        [("input", TensorProto.INT32, [1, 192, 192, 3])],
        [("output_0", TensorProto.FLOAT, [1, 1, 17, 3])],
        {"none": np.float32(0), "points": points})


def segments():
    """The class of a pixel is its brightest colour."""
    weights = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)
    return network([helper.make_node("Conv", ["input", "weights"], ["classes"])],
                   [("input", TensorProto.FLOAT, [1, 3, 64, 64])],
                   [("classes", TensorProto.FLOAT, [1, 3, 64, 64])], {"weights": weights})


def sounds():
    """The score of class 0 is how quiet a sound is, that of class 1 how loud."""
    return network(
        [helper.make_node("Abs", ["waveform"], ["amplitude"]),
         helper.make_node("ReduceMean", ["amplitude"], ["loud"], keepdims=1),
         helper.make_node("Sub", ["one", "loud"], ["quiet"]),
         helper.make_node("Concat", ["quiet", "loud"], ["scores"], axis=0)],
        [("waveform", TensorProto.FLOAT, [15600])], [("scores", TensorProto.FLOAT, [2])],
        {"one": np.ones(1, np.float32)})


STAND_INS = {"movenet.onnx": movenet, "segments.onnx": segments, "sounds.onnx": sounds}
# how a block is run: the name of its file, and the command
LANGUAGES = {
    "sh": ("block.sh", "bash -euo pipefail block.sh"),
    "python": ("block.py", f"{shlex.quote(sys.executable)} block.py"),
    "js": ("block.mjs", "node block.mjs"),
    "c": ("block.c", "cc -o block block.c -linferd-client && ./block"),
    "go": ("block.go", "GO111MODULE=off go run block.go"),
}
TOOLS = {"js": "node", "go": "go", "c": "cc"}


def blocks(name):
    """(language, code, the lines of the text behind it) of each fenced block."""
    found = re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", (DOCS / name).read_text())
    for i, (language, code) in enumerate(found):
        if language != "text":
            is_told = i + 1 < len(found) and found[i + 1][0] == "text"
            yield language, code, found[i + 1][1].splitlines() if is_told else []


class Documents(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.server = None
        for name, path in FILES.items():
            (self.folder / name).symlink_to(support.shared(path).resolve())
        for name, make in STAND_INS.items():
            (self.folder / name).write_bytes(make())
        client = support.SOURCE / "clients/c"
        self.environment = os.environ | {
            "PATH": f"{support.SERVER.resolve().parent}:{os.environ['PATH']}",
            "CPATH": str(client), "LIBRARY_PATH": str(BUILD.resolve() / "clients"),
            "LD_LIBRARY_PATH": str(BUILD.resolve() / "clients"),
            "GOCACHE": str(self.folder / "go"), "HOME": str(self.folder)}

    def serve(self, code):
        words = shlex.split(code)
        self.assertEqual(["inferd", "serve"], words[:2])
        self.server = support.Server(self.folder / words[2], *words[3:])
        self.addCleanup(self.server.stop)

    def run_block(self, language, code):
        if language == "c" and os.environ.get("IFD_SANITIZE"):
            return None  # a sanitized library needs its runtime in every program
        if language in TOOLS and not shutil.which(TOOLS[language]):
            support.skip(f"there is no {TOOLS[language]}")
        file, command = LANGUAGES[language]
        if self.server:
            code = re.sub("(?m)^inferctl (?!.*http://)", "inferctl --url http://127.0.0.1:8000 ",
                          code).replace("127.0.0.1:8000", self.server.address)
        (self.folder / file).write_text(code)
        done = subprocess.run(command, shell=True, cwd=self.folder, env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, f"{code}\n{done.stdout}{done.stderr}")
        return done.stdout

    def follow(self, name):
        count = 0
        for language, code, lines in blocks(name):
            count += 1
            if language == "sh" and code.startswith("inferd serve"):
                self.serve(code)
                continue
            output = rest = self.run_block(language, code)
            for line in lines if output is not None else ():
                before, found, rest = rest.partition(line)
                self.assertTrue(found, f"{name}: {code}\nlacks {line!r}:\n{output}")
        self.assertGreater(count, 3)

    def test_first_model(self):
        self.follow("first-model.md")

    def test_tuning(self):
        self.follow("tuning.md")

    def test_recipes(self):
        self.follow("recipes.md")


if __name__ == "__main__":
    unittest.main()

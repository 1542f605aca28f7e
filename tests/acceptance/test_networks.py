"""Networks as PyTorch's and TensorFlow's exporters write them (../shared/golden/exported and
converted), over HTTP to both backends, with the answers of PyTorch, ONNX Runtime or LiteRT."""

import json
import pathlib
import unittest

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import support

# What does not run yet, and what the index says about it.
LATER = {
    "converted/nms_f32": "NON_MAX_SUPPRESSION_V5",
    "converted/unique_f32": "UNIQUE",
    "converted/where_idx_f32": "WHERE",
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


class Networks:
    kind = ""
    files = {"exported": "model.onnx", "converted": "model.tflite"}

    @classmethod
    def prepare(cls, folder):
        for name, case in networks(cls.kind):
            support.add_model(
                folder, case["name"], support.shared(f"golden/{name}/{cls.files[cls.kind]}")
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


class OpenDimensions(support.ServerCase):
    """What the file leaves open, a request or a config decides."""

    options = ("--shape-memory", "4194304")
    model = "golden/exported/own_unet_ts/model.onnx"

    @classmethod
    def prepare(cls, folder):
        model = support.shared(cls.model)
        support.add_model(folder, "open", model)
        support.add_model(
            folder,
            "bound",
            model,
            config='max_batch_size: 2 input { name: "in0" data_type: TYPE_FP32 dims: [3, 32, 32] }',
        )

    def infer(self, model, *shape):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        tensor = triton.InferInput("in0", list(shape), "FP32")
        tensor.set_data_from_numpy(np.zeros(shape, np.float32))
        return client.infer(model, [tensor])

    def shapes(self, model):
        metadata = json.loads(self.server.ask("GET", f"/v2/models/{model}").data)
        return [tensor["shape"] for tensor in metadata["inputs"] + metadata["outputs"]]

    def test_metadata_shows_what_a_request_decides(self):
        self.assertEqual(self.shapes("open")[0], [-1, 3, -1, -1])
        self.assertEqual(self.shapes("open")[1], [-1, -1, -1])
        self.assertEqual(self.shapes("bound")[0], [-1, 3, 32, 32])
        self.assertEqual(self.shapes("bound")[1], [-1, 32, 32])

    def test_a_config_binds_sizes(self):
        self.assertEqual(self.infer("bound", 2, 3, 32, 32).as_numpy("22").shape, (2, 32, 32))
        with self.assertRaisesRegex(InferenceServerException, "unexpected shape"):
            self.infer("bound", 1, 3, 40, 40)

    def test_shapes_that_do_not_fit_are_refused_and_the_next_request_is_served(self):
        for shape, words in (
            ((1, 3, 9, 9), "cannot take these shapes"),
            ((1, 3, 0, 8), "1 or more for -1"),
            ((1, 3, 1024, 1024), "shapes of this size: .* limit of 4194304"),
        ):
            with self.assertRaisesRegex(InferenceServerException, words):
                self.infer("open", *shape)
        self.assertEqual(self.infer("open", 1, 3, 16, 24).as_numpy("22").shape, (1, 16, 24))


class Loops(support.ServerCase):
    """A client decides how often a loop turns: while (n < 3) { n += 1; x += x; }"""

    @classmethod
    def prepare(cls, folder):
        corpus = pathlib.Path(__file__).resolve().parents[1] / "fuzz/corpus/tflite"
        support.add_model(folder, "loop", corpus / "good_while_asked.tflite")

    def infer(self, n, **options):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        tensors = []
        for name, array in (("x", np.float32([[1, -1]])), ("n", np.int32([[n]]))):
            tensors.append(
                triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            )
            tensors[-1].set_data_from_numpy(array)
        return client.infer("loop", tensors, **options).as_numpy("y").tolist()

    def test_a_loop_turns_as_often_as_the_request_says(self):
        for n, factor in ((3, 1), (2, 2), (-4, 128)):
            self.assertEqual(self.infer(n), [[factor, -factor]])

    def test_a_loop_that_takes_too_long_is_ended(self):
        with self.assertRaisesRegex(InferenceServerException, "when its time is over"):
            self.infer(-(2**31), timeout=100_000)
        self.assertEqual(self.infer(2), [[2, -2]])


if __name__ == "__main__":
    unittest.main()

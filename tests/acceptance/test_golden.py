"""The cases of ../shared/golden once more, as binary HTTP requests to CpuRef."""

import json
import re
import unittest

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype

import pipelines
import support

# State from step to step is that of a sequence: what the config says beside sequence_batching.
STREAMS = {
    "tflite/dtln_noise_suppression_int8.tflite": "",
    "tflite/dtln_1.tflite": 'state { input_name: "input_3" output_name: "Identity_1" }',
    "onnx/dtln_2.onnx": 'state { input_name: "input_5" output_name: "tf_op_layer_stack_5" }',
    "onnx/silero_vad.onnx": 'state { input_name: "state" output_name: "stateN" }',
}
SILERO = 'input [ { name: "state" data_type: TYPE_FP32 dims: [ 2, 1, 128 ] } ]\n'


def model_name(path):
    """Both formats have files of one name."""
    return path.replace("/", "_").rsplit(".", 1)[0]


def cases():
    return json.loads(support.shared("golden/cases.json").read_text())


def is_stateful(case):
    """The file itself keeps the state: answers of its steps are those of one sequence."""
    return STREAMS.get(case["model"]) == ""


class Golden(support.ServerCase):
    options = ("--backend", "CpuRef")

    @staticmethod
    def chosen():
        return cases()

    @classmethod
    def prepare(cls, folder):
        # Batches of several are asked for of every model, so each says that it takes them.
        batched = {c["model"] for c in cls.chosen() if c["case"].startswith("batch")}
        for model in sorted({c["model"] for c in cls.chosen()}):
            config = "max_batch_size: 8\n" if model in batched else None
            support.add_model(
                folder, model_name(model), support.shared("models/" + model), config=config
            )

    def compare(self, got, want, tolerance, where):
        self.assertEqual(got.shape, want.shape, where)
        self.assertEqual(got.dtype, want.dtype, where)
        if tolerance["kind"] == "lsb":
            steps = np.abs(got.astype(np.int64) - want.astype(np.int64)).max()
            self.assertLessEqual(steps, tolerance["reference"], where)
        else:
            spread = float(want.max() - want.min()) or 1.0
            worst = float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max())
            self.assertLessEqual(worst / spread, tolerance["reference"], where)

    def compare_detections(self, got, want, tolerance, where):
        """Boxes, classes, scores and count; the order among equal scores is free, so rows are
        sorted."""

        def rows(outputs):
            boxes, classes, scores, count = outputs
            n = int(count.reshape(-1)[0])
            table = np.column_stack([scores[0, :n], classes[0, :n], boxes[0, :n]])
            return table[np.lexsort(np.round(table.T[::-1], 3))]

        ours, theirs = rows(got), rows(want)
        self.assertEqual(ours.shape, theirs.shape, where)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance["max_abs"], err_msg=where)

    def compare_objects(self, got, want, width, height):
        """The same objects: dynamic-range weights give no two engines the same numbers."""
        ours, theirs = (pipelines.yolox_objects(rows, width, height) for rows in (got, want))
        (boxes, _, classes, kept), (wanted_boxes, _, wanted_classes, wanted) = ours, theirs
        self.assertEqual(list(classes[kept]), list(wanted_classes[wanted]))
        self.assertGreater(len(wanted), 0)
        for i, j in zip(kept, wanted):
            self.assertGreater(pipelines.overlap(boxes[i], wanted_boxes[[j]])[0], 0.8)

    def test_cases(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        print(f"{len(self.chosen())} cases")
        self.assertGreater(len(self.chosen()), 0)
        for case in self.chosen():
            if is_stateful(case):
                continue
            folder = support.shared("golden/" + case["path"])
            # a case of steps has the state among its inputs
            steps = sorted(folder.glob("step*")) or [folder]
            for step in steps:
                with self.subTest(step.relative_to(folder.parent.parent)):
                    self.check(client, case, step)

    def check(self, client, case, folder, hidden=(), **sequence):
        tensors = []
        for i, name in enumerate(case["inputs"]):
            if name in hidden:
                continue
            array = np.load(folder / f"in{i}.npy")
            tensor = triton.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype))
            tensor.set_data_from_numpy(array)
            tensors.append(tensor)
        result = client.infer(model_name(case["model"]), tensors, **sequence)
        got = [result.as_numpy(name) for name in case["outputs"]]
        want = [np.load(folder / f"out{i}.npy") for i in range(len(got))]
        self.assertEqual([a is None for a in got], [name in hidden for name in case["outputs"]])
        if case["tolerance"]["kind"] == "detections":
            self.compare_detections(got, want, case["tolerance"], folder)
            return
        if case["tolerance"]["kind"] == "task":
            height, width = np.load(folder / "in0.npy").shape[2:]
            self.compare_objects(got[0][0], want[0][0], width, height)
            return
        for i, name in enumerate(case["outputs"]):
            if name in hidden:
                continue
            self.compare(got[i], want[i], case["tolerance"], f"{folder} {name}")


class Tasks(Golden):
    """Fast kernels, too, find the objects of cases that have no number to compare."""

    options = ("--backend", "CpuAcc,CpuRef")

    @staticmethod
    def chosen():
        return [c for c in cases() if c["tolerance"]["kind"] == "task"]


class Streams(Golden):
    """The steps of a stream are requests of one sequence, which keeps the state."""

    @classmethod
    def prepare(cls, folder):
        for model, states in STREAMS.items():
            config = "sequence_batching { %s }\n" % states
            config += SILERO if "silero" in model else ""
            support.add_model(
                folder, model_name(model), support.shared("models/" + model), config=config
            )

    def test_cases(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        streams = [c for c in cases() if c["model"] in STREAMS]
        self.assertEqual(len(streams), len(STREAMS))
        for case in streams:
            hidden = re.findall('_name: "(.*?)"', STREAMS[case["model"]])
            steps = sorted(support.shared("golden/" + case["path"]).glob("step*"))
            for i, step in enumerate(steps):
                with self.subTest(f"{case['path']} {step.name}"):
                    self.check(client, case, step, hidden, sequence_id=9, sequence_start=i == 0,
                               sequence_end=i + 1 == len(steps))


if __name__ == "__main__":
    unittest.main()

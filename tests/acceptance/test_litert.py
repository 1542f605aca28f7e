"""Operators of TFLite and state, over HTTP to both backends, with the answers of LiteRT."""

import json
import pathlib
import zlib

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import np_to_triton_dtype

import support
from litert_models import MODELS, STATES, LiteRT, two_signatures

STEPS = 3


class Models:
    off = 0  # steps that 8-bit answers may be off

    @classmethod
    def prepare(cls, folder):
        cls.content, cls.ports = {}, {}
        for name, make in MODELS.items():
            made = make()
            cls.content[name], cls.ports[name] = made.bytes(), made.inputs()
            file = pathlib.Path(folder) / f"{name}.tflite"
            file.write_bytes(cls.content[name])
            support.add_model(folder, name, file, config="sequence_batching { }"
                              if name in STATES else None)
            file.unlink()

    def inputs(self, name, rng):
        arrays = []
        for shape, dtype, limits in self.ports[name]:
            if np.dtype(dtype).kind == "f":
                arrays.append(rng.uniform(-1, 1, shape).astype(dtype))
            else:
                low, high = limits or (-100, 100)
                arrays.append(rng.integers(low, high, shape).astype(dtype))
        return arrays

    def ask(self, client, name, arrays, **options):
        tensors = []
        for i, array in enumerate(arrays):
            tensors.append(
                triton.InferInput(f"in{i}", list(array.shape), np_to_triton_dtype(array.dtype))
            )
            tensors[-1].set_data_from_numpy(array)
        return client.infer(name, tensors, **options)

    def judge(self, got, want, where):
        self.assertEqual(got.shape, want.shape, where)
        if want.dtype.kind == "f":
            scale = float(np.abs(want).max(initial=0)) or 1
            np.testing.assert_allclose(got, want, rtol=0, atol=2e-5 * scale, err_msg=where)
        else:
            worst = np.abs(got.astype(np.int64) - want.astype(np.int64)).max(initial=0)
            self.assertLessEqual(worst, self.off if want.dtype.itemsize == 1 else 0, where)

    def compare(self, client, name):
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        runtime = LiteRT(self.content[name])
        for step in range(STEPS):
            arrays = self.inputs(name, rng)
            options = {"sequence_id": 5, "sequence_start": step == 0,
                       "sequence_end": step == STEPS - 1} if name in STATES else {}
            answer = self.ask(client, name, arrays, **options)
            if name not in STATES:
                runtime.made.reset_all_variables()
            for i, want in enumerate(runtime.step(arrays)):
                self.judge(answer.as_numpy(f"out{i}"), want, f"{name}, step {step}, output {i}")

    def test_answers_are_those_of_litert(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        for name in MODELS:
            with self.subTest(name):
                self.compare(client, name)


class Signatures(support.ServerCase):
    options = ("--strict-readiness=false",)
    config = 'parameters { key: "signature" value { string_value: "%s" } }'

    @classmethod
    def prepare(cls, folder):
        file = pathlib.Path(folder) / "model.tflite"
        file.write_bytes(two_signatures().bytes())
        for name in "sum", "product", "quotient":
            support.add_model(folder, name, file, config=cls.config % name)
        support.add_model(folder, "first", file)
        file.unlink()

    def test_a_config_chooses_the_signature(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        x = np.float32([[1, 3, 5]])
        for name, want in ("sum", x + 2), ("product", x * 2), ("first", x + 2):
            tensor = triton.InferInput("in0", [1, 3], "FP32")
            tensor.set_data_from_numpy(x)
            answer = client.infer(name, [tensor]).as_numpy("out0")
            np.testing.assert_array_equal(answer, want, name)
        index = json.loads(self.server.ask("POST", "/v2/repository/index").data)
        reason = next(row["reason"] for row in index if row["name"] == "quotient")
        self.assertIn('no signature "quotient"; it has "sum", "product"', reason)


class OnCpuRef(Models, support.ServerCase):
    options = ("--backend", "CpuRef")


class OnCpuAcc(Models, support.ServerCase):
    off = 1

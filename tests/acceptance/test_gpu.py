"""Models on GpuAcc: a device that fails in every way (tests/support/fake_opencl.h), and reloads
under load on an OpenCL device that there is."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np

import support

FAKE = os.environ["FAKE_OPENCL"]                # the library's folder
RELOADS = int(os.environ.get("IFD_RELOADS", "10"))
WIDTH = 128
RNG = np.random.default_rng(5)


def weights(rows, columns):
    return (RNG.uniform(-1, 1, (rows, columns)) / np.sqrt(rows)).astype(np.float32)


FIRST, SECOND, TABLE = weights(WIDTH, WIDTH), weights(WIDTH, WIDTH), weights(WIDTH, WIDTH)


def field(number, value):
    """A field of a protobuf message: a number, text, bytes, or the bytes of a message."""
    def varint(n):
        head = bytes([n & 127 | (128 if n > 127 else 0)])
        return head + varint(n >> 7) if n > 127 else head

    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def node(op, inputs, output, **attributes):
    """A NodeProto; attributes are integers."""
    return b"".join([*(field(1, name) for name in inputs), field(2, output), field(4, op),
                     *(field(5, field(1, key) + field(3, value) + field(20, 2))
                       for key, value in attributes.items())])


def write_onnx(path, nodes, constants):
    """A model from x to y, both f32 of four rows. Constants are matrices of f32."""
    shape = b"".join(field(1, field(1, size)) for size in (4, WIDTH))
    port = field(2, field(1, field(1, 1) + field(2, shape)))
    graph = b"".join([
        *(field(1, one) for one in nodes),
        *(field(5, b"".join([*(field(1, size) for size in a.shape), field(2, 1), field(8, name),
                             field(9, a.tobytes())])) for name, a in constants.items()),
        field(11, field(1, "x") + port), field(12, field(1, "y") + port)])
    path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))


def write_dense(path):
    """Two layers: GpuAcc takes all of it."""
    write_onnx(path, [node("MatMul", ["x", "a"], "h"),
                      node("Relu", ["h"], "r"),
                      node("MatMul", ["r", "b"], "y")], {"a": FIRST, "b": SECOND})


def dense(x):
    return np.maximum(x @ FIRST, 0) @ SECOND


def write_split(path):
    """Rows chosen by what was computed lie between the layers: GpuAcc has no kernel for them."""
    write_onnx(path, [node("MatMul", ["x", "a"], "h"),
                      node("ArgMax", ["h"], "i", axis=1, keepdims=0),
                      node("Gather", ["t", "i"], "rows", axis=0),
                      node("Add", ["h", "rows"], "s"),
                      node("MatMul", ["s", "b"], "y")],
               {"a": FIRST, "b": SECOND, "t": TABLE})


def split(x):
    h = x @ FIRST
    return (h + TABLE[h.argmax(1)]) @ SECOND


def add(repository, name, write, backends):
    folder = pathlib.Path(repository) / name / "1"
    folder.mkdir(parents=True)
    write(folder / "model.onnx")
    (folder.parent / "config.pbtxt").write_text(
        f'parameters {{ key: "backends" value {{ string_value: "{backends}" }} }}')


def infer(server, name, x):
    """The answer's y, or the status."""
    body = {"inputs": [{"name": "x", "shape": list(x.shape), "datatype": "FP32",
                        "data": x.ravel().tolist()}]}
    answer = server.ask("POST", f"/v2/models/{name}/infer", json.dumps(body))
    if answer.status != 200:
        return f"{answer.status} {answer.data.decode()}"
    return np.array(json.loads(answer.data)["outputs"][0]["data"], np.float32).reshape(x.shape)


def metric(server, name):
    text = server.ask("GET", "/metrics", address=server.metrics_address).data.decode()
    return float(re.search(rf"^{name} (\S+)$", text, re.M)[1])


class Faults(unittest.TestCase):
    """A model on the GPU before the CPU, and one on the CPU alone. Kernels of the fake device do
    nothing: its answers are zeros."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.rule = self.folder / "rule"
        self.rule.write_text("")
        self.repository = self.folder / "models"
        add(self.repository, "gpu", write_dense, "GpuAcc,CpuAcc,CpuRef")
        add(self.repository, "cpu", write_dense, "CpuAcc,CpuRef")
        self.x = RNG.uniform(-1, 1, (4, WIDTH)).astype(np.float32)

    def serve(self, *options):
        server = support.Server(self.repository, "--admin-on-http", *options, prefix=(
            "env", f"LD_LIBRARY_PATH={FAKE}", f"IFD_FAKE_OPENCL={self.rule}"))
        self.addCleanup(server.stop)
        return server

    def set_rule(self, rule):
        new = self.folder / "new"
        new.write_text(rule)
        new.rename(self.rule)

    def assert_computes(self, server, name, on_device=False):
        y = infer(server, name, self.x)
        self.assertNotIsInstance(y, str, y)
        want = np.zeros_like(y) if on_device else dense(self.x)
        np.testing.assert_allclose(y, want, atol=1e-4)

    def works_again(self, server):
        """Asks until the device is tried again; every answer is right or the device's."""
        for _ in range(support.ANSWER_SECONDS * 20):
            y = infer(server, "gpu", self.x)
            self.assertNotIsInstance(y, str, y)
            self.assertTrue(not y.any() or np.allclose(y, dense(self.x), atol=1e-4))
            if metric(server, "inferd_backends_degraded") == 0:
                return
            time.sleep(0.05)
        self.fail("the device was not tried again")

    def test_whatever_fails_answers_go_on_and_the_device_comes_back(self):
        server = self.serve("--backend-option", "GpuAcc:timeout-ms=200")
        self.assert_computes(server, "gpu", on_device=True)
        for lost, (rule, reason) in enumerate((
                ("clEnqueueNDRangeKernel 1 -5 0", "error -5 (CL_OUT_OF_RESOURCES)"),
                ("clEnqueueWriteBuffer 1 -2 0", "a write: error -2 (CL_DEVICE_NOT_AVAILABLE)"),
                ("clEnqueueReadBuffer 1 -4 0", "a read: error -4"),
                ("kernel 1 -5 0", "a run: error -5"),
                ("any 1 -36 0", "error -36 (CL_INVALID_COMMAND_QUEUE)"),
                ("hang", "the device has not finished within 200 ms")), 1):
            with self.subTest(rule=rule):
                self.set_rule(rule)
                self.assert_computes(server, "gpu")
                self.assert_computes(server, "cpu")
                self.assertEqual(metric(server, "inferd_backends_degraded"), 1)
                self.assertGreaterEqual(metric(server, "inferd_backend_failures_total"), lost)
                server.wait_for_log("device lost backend=GpuAcc", lost)
                self.assertIn(reason, server.log_text().replace('\\"', '"'))
                self.assertEqual(server.ask("GET", "/v2/health/ready").status, 503)
                missing, = json.loads(server.ask("GET", "/v2").data)["missing_backends"]
                self.assertEqual(missing["name"], "GpuAcc")
                self.assertIn(reason, missing["reason"])
                self.set_rule("")
                self.works_again(server)
                server.wait_for_log("device works again backend=GpuAcc", lost)
                self.assert_computes(server, "gpu", on_device=True)
                self.assertEqual(server.ask("GET", "/v2/health/ready").status, 200)

    def test_readiness_may_overlook_a_lost_device(self):
        server = self.serve("--strict-readiness=false")
        self.set_rule("clFlush 1 -5 0")
        self.assert_computes(server, "gpu")
        self.assertEqual(metric(server, "inferd_backends_degraded"), 1)
        self.assertEqual(server.ask("GET", "/v2/health/ready").status, 200)

    def test_a_kernel_that_does_not_build_is_computed_by_the_next_backend(self):
        self.set_rule("clBuildProgram 1 -11 0")
        server = self.serve("--model-control-mode", "explicit", "--load-model", "*")
        self.assert_computes(server, "gpu")
        self.assertIn("backend leaves operators to the next model=gpu", server.log_text())
        for part in ("does not build on Fake GPU: error -11 (CL_BUILD_PROGRAM_FAILURE)",
                     "error: said by the fake compiler"):
            self.assertIn(part, server.log_text())
        self.assert_computes(server, "cpu")
        add(self.repository, "alone", write_dense, "GpuAcc")
        refused = server.ask("POST", "/v2/repository/models/alone/load")
        self.assertEqual(refused.status, 400)
        self.assertIn("does not build on Fake GPU", refused.data.decode())
        self.assertEqual(metric(server, "inferd_backends_degraded"), 0)

    def test_inspect_says_what_does_not_build(self):
        self.set_rule("clBuildProgram 1 -11 0")
        seen = subprocess.run([support.SERVER, "inspect", "--backend", "GpuAcc,CpuRef",
                               self.repository / "gpu/1/model.onnx"],
                              env=os.environ | {"LD_LIBRARY_PATH": FAKE,
                                                "IFD_FAKE_OPENCL": str(self.rule)},
                              capture_output=True, text=True, check=True).stdout
        self.assertRegex(seen, 'left to the next backend: .*"r": kernel file .* does not build')
        self.assertNotIn(" on GpuAcc: ", seen)

    def test_a_device_without_memory_fails_the_load_and_nothing_else(self):
        self.set_rule("clCreateBuffer 1 -4 0")
        server = self.serve()
        self.assertIn("CL_MEM_OBJECT_ALLOCATION_FAILURE", server.log_text())
        self.assert_computes(server, "cpu")

    def test_a_driver_is_opened_when_a_model_names_it(self):
        (self.repository / "gpu").rename(self.folder / "gpu")

        def maps():
            return pathlib.Path(f"/proc/{server.process.pid}/maps").read_text()

        server = self.serve("--model-control-mode", "explicit", "--load-model", "*")
        self.assertIn("plugin loaded name=GpuAcc", server.log_text())
        server.ask("GET", "/v2")
        server.ask("GET", "/metrics", address=server.metrics_address)
        self.assert_computes(server, "cpu")
        self.assertNotIn("libOpenCL", maps())
        self.assertNotIn("missing_backends", server.ask("GET", "/v2").data.decode())
        (self.folder / "gpu").rename(self.repository / "gpu")
        self.assertEqual(server.ask("POST", "/v2/repository/models/gpu/load").status, 200)
        server.wait_for_log("device opened backend=GpuAcc")
        self.assertIn("libOpenCL", maps())
        self.assert_computes(server, "gpu", on_device=True)

    def test_a_device_that_is_absent_has_its_reason(self):
        self.set_rule("clGetPlatformIDs 1 -1001 0")
        server = self.serve()
        server.wait_for_log("backend not available name=GpuAcc")
        self.assertIn("no platform is installed", server.log_text())
        self.assert_computes(server, "gpu")     # by the next backends
        missing, = json.loads(server.ask("GET", "/v2").data)["missing_backends"]
        self.assertIn("no platform is installed", missing["reason"])
        self.assertEqual(server.ask("GET", "/v2/health/ready").status, 200)


    def test_models_may_have_devices_of_their_own(self):
        for name in ("a", "b"):
            add(self.repository, name, write_dense, f"GpuAcc@{name},CpuAcc")
        options = ("--backend-option", "GpuAcc@a:device=gpu", "--backend-option",
                   "GpuAcc@b:device=cpu")
        server = self.serve(*options)
        for name in ("a", "b", "gpu"):
            self.assert_computes(server, name, on_device=True)
        seen = subprocess.run([support.SERVER, "inspect", *options, "--backend", "GpuAcc@b,CpuRef",
                               self.repository / "b/1/model.onnx"],
                              env=os.environ | {"LD_LIBRARY_PATH": FAKE}, capture_output=True,
                              text=True, check=True).stdout
        self.assertIn("backend: GpuAcc@a available", seen)
        self.assertIn(" on GpuAcc@b: ", seen)


class Reloads(unittest.TestCase):
    """Models on the CPU, on the OpenCL device (with mapped memory and command buffers if it has
    them, and without), on both."""

    MODELS = {"cpu": (write_dense, dense, "CpuAcc,CpuRef"),
              "gpu": (write_dense, dense, "GpuAcc,CpuRef"),
              "copied": (write_dense, dense, "GpuAcc@copy,CpuRef"),
              "split": (write_split, split, "GpuAcc,CpuAcc")}

    @unittest.skipIf("IFD_SANITIZE" in os.environ, "drivers are not clean under sanitizers")
    def test_reloads_under_load_fail_nothing_and_grow_nothing(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, (write, _, backends) in self.MODELS.items():
            add(folder.name, name, write, backends)
        seen = subprocess.run([support.SERVER, "inspect", "--backend", "GpuAcc,CpuAcc",
                               pathlib.Path(folder.name) / "split/1/model.onnx"],
                              capture_output=True, text=True, check=True).stdout
        if "backend: GpuAcc available" not in seen:
            support.skip(re.search("backend: GpuAcc .*", seen)[0])
        self.assertIn(" on GpuAcc: ", seen)
        self.assertIn(" on CpuAcc: ", seen)
        self.assertNotIn(" on CpuRef: ", seen)
        server = support.Server(folder.name, "--admin-on-http", "--model-control-mode", "explicit",
                                "--load-model", "*", "--strict-readiness=false",
                                "--backend-option", "GpuAcc@copy:transfer=copy",
                                "--backend-option", "GpuAcc:record=always")
        self.addCleanup(server.stop)
        counts, wrong, ends = dict.fromkeys(self.MODELS, 0), [], threading.Event()

        def ask(name, seed):
            rng = np.random.default_rng(seed)
            while not ends.is_set() or counts[name] < 5:
                x = rng.uniform(-1, 1, (4, WIDTH)).astype(np.float32)
                y = infer(server, name, x)
                counts[name] += 1
                if isinstance(y, str) or not np.allclose(y, self.MODELS[name][1](x), atol=1e-3):
                    wrong.append((name, y))

        askers = [threading.Thread(target=ask, args=(name, i)) for i, name in
                  enumerate(self.MODELS)]
        for asker in askers:
            asker.start()
        held = []
        try:
            for turn in range(RELOADS):
                for name in self.MODELS:
                    status = server.ask("POST", f"/v2/repository/models/{name}/load").status
                    self.assertEqual(status, 200, f"reload {turn} of {name}")
                held.append((metric(server, "process_resident_memory_bytes"),
                             metric(server, "process_open_fds")))
        finally:
            ends.set()
            for asker in askers:
                asker.join()
        print(f"{RELOADS} reloads of each, answers {counts}, memory and files "
              f"{held[RELOADS // 2]} then {held[-1]}")
        self.assertEqual(wrong, [])
        self.assertEqual(metric(server, "inferd_backend_failures_total"), 0)
        # The second half of the reloads takes no more than its noise: far less than a model each.
        self.assertLess(held[-1][0] - held[RELOADS // 2][0], 16 << 20)
        self.assertLessEqual(held[-1][1], held[RELOADS // 2][1] + 8)


if __name__ == "__main__":
    unittest.main()

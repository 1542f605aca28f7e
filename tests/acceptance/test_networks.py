"""Networks as PyTorch's and TensorFlow's exporters write them (../shared/golden/exported and
converted), over HTTP to both backends, with the answers of PyTorch, ONNX Runtime or LiteRT."""

import base64
import json
import pathlib
import tempfile
import time
import unittest

import numpy as np
import onnx
import onnxruntime
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

import support

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
            ((1, 3, 0, 8), "cannot take these shapes"),
            ((1, 3, 1024, 1024), "shapes of this size: .* limit of 4194304"),
        ):
            with self.assertRaisesRegex(InferenceServerException, words):
                self.infer("open", *shape)
        self.assertEqual(self.infer("open", 1, 3, 16, 24).as_numpy("22").shape, (1, 16, 24))


class SizesThatOnlyRequestsKnow(support.ServerCase):
    """y: x as [2,3,5], whose elements fit none of the sizes that are tried."""

    @classmethod
    def prepare(cls, folder):
        corpus = support.SOURCE / "tests/fuzz/corpus/onnx"
        support.add_model(folder, "sized", corpus / "open_sized.onnx")

    def test_a_request_that_fits_is_answered_and_another_is_told_why_not(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        metadata = client.get_model_metadata("sized")
        self.assertEqual(metadata["inputs"][0]["shape"], [-1, -1])
        self.assertEqual(metadata["outputs"][0]["shape"], [2, 3, -1])
        for rows, columns in ((5, 6), (7, 6), (2, 15), (0, 6), (5, 6)):
            x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
            tensor = triton.InferInput("x", x.shape, "FP32")
            tensor.set_data_from_numpy(x)
            if x.size == 30:
                y = client.infer("sized", [tensor]).as_numpy("y")
                np.testing.assert_array_equal(y, x.reshape(2, 3, 5))
            else:
                with self.assertRaisesRegex(InferenceServerException, r"Reshape \(node 0.*fit"):
                    client.infer("sized", [tensor])


class InputsThatRequestsMayLeaveOut(support.ServerCase):
    """y = x + w, where the file has a value for w, as ONNX Runtime takes it."""

    @staticmethod
    def model(ir_version):
        ports = [onnx.helper.make_tensor_value_info(n, 1, ["n", 4]) for n in "xy"]
        weight = onnx.helper.make_tensor_value_info("w", 1, ["k", 4])
        value = onnx.numpy_helper.from_array(np.arange(4, dtype=np.float32)[None], "w")
        node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
        graph = onnx.helper.make_graph([node], "g", [ports[0], weight], ports[1:], [value])
        return onnx.helper.make_model(graph, ir_version=ir_version, opset_imports=[
            onnx.helper.make_opsetid("", 8)]).SerializeToString()

    @classmethod
    def prepare(cls, folder):
        optional = ('input { name: "w" data_type: TYPE_FP32 dims: [ -1, 4 ] optional: true } '
                    'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] }')
        for name, ir_version, config in (("open", 8, optional), ("closed", 8, ""), ("old", 3, "")):
            version = pathlib.Path(folder) / name / "1"
            version.mkdir(parents=True)
            (version / "model.onnx").write_bytes(cls.model(ir_version))
            (version.parent / "config.pbtxt").write_text(config)

    def infer(self, model, **inputs):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        tensors = []
        for name, array in inputs.items():
            tensors.append(triton.InferInput(name, array.shape, "FP32"))
            tensors[-1].set_data_from_numpy(array)
        return client.infer(model, tensors).as_numpy("y")

    def inputs(self, model):
        metadata = json.loads(self.server.ask("GET", f"/v2/models/{model}").data)
        return sorted(tensor["name"] for tensor in metadata["inputs"])

    def test_the_value_of_the_file_holds_where_none_is_given(self):
        runtime = onnxruntime.InferenceSession(self.model(8))
        x, w = np.ones((3, 4), np.float32), np.full((1, 4), 7, np.float32)
        for given in ({"x": x}, {"x": x, "w": w}, {"x": x, "w": np.repeat(w, 3, 0)}, {"x": x}):
            want, = runtime.run(None, given)
            np.testing.assert_array_equal(self.infer("open", **given), want)
        with self.assertRaisesRegex(InferenceServerException, "missing required input.*'x'"):
            self.infer("open", w=w)

    def test_it_is_a_constant_unless_the_config_lists_it(self):
        x, w = np.ones((3, 4), np.float32), np.full((1, 4), 7, np.float32)
        self.assertEqual(self.inputs("open"), ["w", "x"])
        for model in ("closed", "old"):
            self.assertEqual(self.inputs(model), ["x"])
            np.testing.assert_array_equal(self.infer(model, x=x), x + np.arange(4))
            with self.assertRaisesRegex(InferenceServerException, "'w'"):
                self.infer(model, x=x, w=w)


class SizesThatDataDecides(support.ServerCase):
    """y: twice the elements of x above t; r: these elements as a row."""

    @classmethod
    def prepare(cls, folder):
        model = support.SOURCE / "tests/fuzz/corpus/onnx/found.onnx"
        support.add_model(folder, "found", model)

    def infer(self, x, threshold):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        inputs = [triton.InferInput("x", list(x.shape), "FP32"),
                  triton.InferInput("t", [], "FP32")]
        inputs[0].set_data_from_numpy(x)
        inputs[1].set_data_from_numpy(np.array(threshold, np.float32))
        answer = client.infer("found", inputs)
        return answer.as_numpy("y"), answer.as_numpy("r")

    def test_answers_have_the_sizes_of_their_data(self):
        random = np.random.default_rng(5)
        for rows in (3, 1, 7, 3, 0):
            x = random.normal(0, 1, (rows, 4)).astype(np.float32)
            for threshold in (0, 0.5, -9, 9):
                y, r = self.infer(x, threshold)
                above = x[x > np.float32(threshold)]
                np.testing.assert_array_equal(y, 2 * above)
                np.testing.assert_array_equal(r, above[None])

    def test_metadata_leaves_them_open(self):
        metadata = json.loads(self.server.ask("GET", "/v2/models/found").data)
        self.assertEqual([tensor["shape"] for tensor in metadata["outputs"]], [[-1], [1, -1]])


class ConstantsBeside(support.ServerCase):
    """Constants in files beside the model's, as PyTorch's exporter writes them: y = x + w."""

    options = ("--model-control-mode", "explicit", "--load-model", "*", "--admin-on-http")

    @staticmethod
    def model(location):
        weight = onnx.TensorProto(name="w", dims=[40], data_type=onnx.TensorProto.FLOAT,
                                  data_location=onnx.TensorProto.EXTERNAL)
        for key, value in (("location", location), ("offset", "8"), ("length", "160")):
            weight.external_data.add(key=key, value=value)
        ports = [onnx.helper.make_tensor_value_info(n, 1, ["n", 40]) for n in "xy"]
        graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "w"], ["y"])], "g",
                                       ports[:1], ports[1:], [weight])
        return onnx.helper.make_model(graph, ir_version=8, opset_imports=[
            onnx.helper.make_opsetid("", 17)]).SerializeToString()

    @staticmethod
    def content(first):
        return np.arange(first - 2, first + 40, dtype=np.float32).tobytes()

    @classmethod
    def add(cls, folder, name, location, content):
        version = folder / name / "1"
        version.mkdir(parents=True)
        (version / "model.onnx").write_bytes(cls.model(location))
        if content:
            (version / location).parent.mkdir(exist_ok=True)
            (version / location).write_bytes(content)

    @classmethod
    def prepare(cls, folder):
        folder = cls.folder = pathlib.Path(folder)
        cls.add(folder, "beside", "model.onnx.data", cls.content(5))
        cls.add(folder, "below", "weights/w.bin", cls.content(7))
        cls.add(folder, "deeper", "w", None)  # the model's file lies in a folder of the version's
        (folder / "deeper/1/net").mkdir()
        (folder / "deeper/1/model.onnx").rename(folder / "deeper/1/net/model.onnx")
        (folder / "deeper/1/net/w").write_bytes(cls.content(6))
        (folder / "deeper/config.pbtxt").write_text('default_model_filename: "net/model.onnx"')
        cls.add(folder, "absent", "model.onnx.data", None)
        cls.add(folder, "short", "model.onnx.data", cls.content(5)[:-4])
        (folder / "secret").write_bytes(cls.content(5))
        for name, location in (("outside", "../../secret"), ("absolute", str(folder / "secret"))):
            cls.add(folder, name, location, None)
        cls.add(folder, "link", "model.onnx.data", None)
        (folder / "link/1/model.onnx.data").symlink_to("/etc/passwd")

    def expect_first(self, name, first, server=None):
        x = np.ones((2, 40), np.float32)
        client = triton.InferenceServerClient(
            (server or self.server).address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        tensor = triton.InferInput("x", [2, 40], "FP32")
        tensor.set_data_from_numpy(x)
        y = client.infer(name, [tensor]).as_numpy("y")
        np.testing.assert_array_equal(y, x + np.arange(first, first + 40, dtype=np.float32))

    def load(self, name, parameters=None):
        body = json.dumps({"parameters": parameters} if parameters else {})
        return self.server.ask("POST", f"/v2/repository/models/{name}/load", body)

    def test_they_are_read(self):
        self.expect_first("beside", 5)
        self.expect_first("below", 7)
        self.expect_first("deeper", 6)

    def test_a_change_of_them_is_a_change_of_the_model(self):
        self.add(self.folder, "changing", "w", self.content(1))
        self.assertEqual(self.load("changing").status, 200)
        self.expect_first("changing", 1)
        (self.folder / "changing/1/w").write_bytes(self.content(3))
        self.assertEqual(self.load("changing").status, 200)
        self.expect_first("changing", 3)

    def test_a_request_may_bring_them(self):
        files = {"1/model.onnx": self.model("w"), "1/w": self.content(9)}
        answer = self.load("brought", {
            "config": "{}",
            **{f"file:{k}": base64.b64encode(v).decode() for k, v in files.items()}})
        self.assertEqual(answer.status, 200, answer.data)
        self.expect_first("brought", 9)

    def test_a_model_file_is_served_with_them_and_harms_no_other(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "whole.onnx").write_bytes(self.model("w"))
        (folder / "w").write_bytes(self.content(6))
        (folder / "lonely.onnx").write_bytes(self.model("absent"))
        (folder / "cut.onnx").write_bytes(self.model("w")[:-3])
        server = support.Server(folder / "whole.onnx", folder / "lonely.onnx", folder / "cut.onnx")
        self.addCleanup(server.stop)
        self.expect_first("whole", 6, server)
        reasons = {row["name"]: row.get("reason", "") for row in json.loads(
            server.ask("POST", "/v2/repository/index").data)}
        self.assertEqual("", reasons["whole"])
        self.assertIn("absent", reasons["lonely"])
        self.assertIn("protobuf field is cut off", reasons["cut"])
        server.wait_for_log('lonely.onnx reason="constants lie in')

    def test_what_is_not_there_or_not_inside_is_refused(self):
        for name, words in (
            ("absent", "model.onnx.data"),
            ("short", "160 bytes from 8 on for a constant"),
            ("outside", "not a path inside the model's folder"),
            ("absolute", "not a path inside the model's folder"),
            ("link", "leads out of the repository"),
        ):
            answer = self.load(name)
            self.assertEqual(answer.status, 400, name)
            self.assertIn(words, json.loads(answer.data)["error"])


class Sequences(support.ServerCase):
    """State that a config names belongs to the sequence of a request."""

    network = "golden/exported/own_stream_cell_ts"
    # of in1 and in2
    config = """
        sequence_batching {
          max_sequence_idle_microseconds: IDLE
          oldest { max_candidate_sequences: 2 }
          state [ { input_name: "in1" output_name: "75" data_type: TYPE_FP32 dims: [1, 1, 8] },
                  { input_name: "in2" output_name: "76" } ]
        }
    """

    @classmethod
    def prepare(cls, folder):
        model = support.shared(f"{cls.network}/model.onnx")
        support.add_model(folder, "plain", model)
        for name, idle_us in ("stream", 600_000_000), ("short", 100_000):
            support.add_model(folder, name, model, config=cls.config.replace("IDLE", str(idle_us)))

    def setUp(self):
        self.client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(self.client.close)
        self.x = [
            np.load(support.shared(f"{self.network}/set{k}/in0.npy")) for k in range(2)
        ]
        state = [np.load(support.shared(f"{self.network}/set0/in{i}.npy")) for i in (1, 2)]
        self.zeros = [np.zeros_like(array) for array in state]

    def infer(self, model, arrays, **options):
        tensors = []
        for i, array in enumerate(arrays):
            tensors.append(triton.InferInput(f"in{i}", list(array.shape), "FP32"))
            tensors[-1].set_data_from_numpy(array)
        return self.client.infer(model, tensors, **options)

    def expected(self, xs):
        """The answers of the same network, with the states carried by hand."""
        state, answers = self.zeros, []
        for x in xs:
            result = self.infer("plain", [x, *state])
            state = [result.as_numpy("75"), result.as_numpy("76")]
            answers.append(result.as_numpy("84"))
        return answers

    def step(self, x, id, model="stream", **options):
        result = self.infer(model, [x], sequence_id=id, **options)
        self.assertIsNone(result.as_numpy("75"))
        return result.as_numpy("84")

    def refused(self, words, x, id, **options):
        with self.assertRaisesRegex(InferenceServerException, words):
            self.step(x, id, **options)

    def test_requests_of_a_sequence_share_their_state_and_no_other(self):
        a, b = self.x
        want = self.expected([a, b, b])
        other = self.expected([b, b])
        self.assertFalse(np.array_equal(want[1], want[2]))
        got = [self.step(a, 7, sequence_start=True)]
        mixed = [self.step(b, "tram 9", sequence_start=True)]
        got.append(self.step(b, 7))
        mixed.append(self.step(b, "tram 9", sequence_end=True))
        got.append(self.step(b, 7, sequence_end=True))
        for answer, right in zip(got + mixed, want + other):
            np.testing.assert_array_equal(answer, right)
        self.refused("must specify the START flag", a, 7)
        again = self.step(a, 7, sequence_start=True, sequence_end=True)
        np.testing.assert_array_equal(again, want[0])

    def test_what_is_not_allowed_is_refused_and_the_server_goes_on(self):
        x = self.x[0]
        self.refused("correlation ID", x, 0)
        self.refused("at most 127", x, "x" * 200, sequence_start=True)
        self.refused("must specify the START flag", x, 1)
        self.step(x, 1, sequence_start=True)
        self.step(x, 2, sequence_start=True)
        self.refused("2 sequences of model 'stream' are open", x, 3, sequence_start=True)
        self.step(x, 1, sequence_end=True)
        self.step(x, 3, sequence_start=True, sequence_end=True)
        self.step(x, 2, sequence_end=True)

    def test_a_sequence_that_nobody_uses_is_forgotten(self):
        x = self.x[0]
        for id in range(3):
            self.step(x, id + 1, "short", sequence_start=True)
            time.sleep(0.2)
        self.refused("must specify the START flag", x, 1, model="short")

    def test_states_are_hidden(self):
        metadata = json.loads(self.server.ask("GET", "/v2/models/stream").data)
        self.assertEqual([row["name"] for row in metadata["inputs"]], ["in0"])
        self.assertEqual([row["name"] for row in metadata["outputs"]], ["84"])
        config = json.loads(self.server.ask("GET", "/v2/models/stream/config").data)
        states = config["sequence_batching"]["state"]
        self.assertEqual([row["input_name"] for row in states], ["in1", "in2"])
        with self.assertRaisesRegex(InferenceServerException, "in1"):
            self.infer("stream", [self.x[0], *self.zeros], sequence_id=5, sequence_start=True)


class TransposedBatch(support.ServerCase):
    """Samples of a network with transposed convolutions run as one batch."""

    @classmethod
    def prepare(cls, folder):
        model = support.shared("golden/converted/tconv_f32/model.tflite")
        support.add_model(folder, "transposed", model, config="max_batch_size: 4")

    def infer(self, client, x):
        tensor = triton.InferInput(self.input, list(x.shape), "FP32")
        tensor.set_data_from_numpy(x)
        return client.infer("transposed", [tensor]).as_numpy(self.output)

    def test_a_batch_equals_its_samples_and_is_one_run(self):
        client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS
        )
        self.addCleanup(client.close)
        metadata = client.get_model_metadata("transposed")
        self.input, self.output = (metadata[k][0]["name"] for k in ("inputs", "outputs"))
        shape = metadata["inputs"][0]["shape"]
        self.assertEqual(shape[0], -1)
        x = np.random.default_rng(3).uniform(0, 1, [3, *shape[1:]]).astype(np.float32)
        together = self.infer(client, x)
        stats = client.get_inference_statistics("transposed")["model_stats"][0]
        self.assertEqual((stats["inference_count"], stats["execution_count"]), (3, 1))
        for i in range(3):
            alone = self.infer(client, x[i : i + 1])
            self.assertGreater(np.ptp(alone), 0.1)
            np.testing.assert_allclose(together[i : i + 1], alone, atol=1e-5)


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

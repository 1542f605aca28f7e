"""Sizes that a request decides, on networks of others, with the answers of LiteRT and ONNX Runtime
at the same sizes."""

import pathlib
import unittest

import numpy as np
import onnx
import onnxruntime
import tritonclient.http as triton
from PIL import Image, ImageDraw
from tritonclient.utils import InferenceServerException

import support
from litert_models import LiteRT
from test_metrics import scrape

HIFIGAN = "models/tflite/hifigan_float16.tflite"
TEXT = "models/onnx/ppocr_v4_det.onnx"
DIRECTION = "models/onnx/ppocr_v2_cls.onnx"
DETECTOR = "models/onnx/yolox_nano.onnx"
WAYS = ["batch_above", "batch_least", "batch_part", "batch_turned", "batch_fifth", "batch_rows",
        "batch_always", "open_above"]
OF_RANGE = 1e-4
SHAPE_MEMORY = 256 << 20


def written(width, height):
    """A picture with a line of text, as the detector of text takes it."""
    picture = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(picture).text((12, height // 2 - 16), "inferd 0123456789", "black",
                                 font_size=28)
    x = (np.asarray(picture, np.float32) / 255 - 0.5) / 0.25
    return np.ascontiguousarray(x.transpose(2, 0, 1)[None])


class Shapes(support.ServerCase):
    options = (f"--shape-memory={SHAPE_MEMORY}", "--default-timeout-ms=0")

    @classmethod
    def prepare(cls, folder):
        support.add_model(folder, "voice", support.shared(HIFIGAN))
        support.add_model(folder, "text", support.shared(TEXT),
                          config="instance_group { count: 1 }")
        support.add_model(
            folder, "direction", support.shared(DIRECTION),
            config="max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 500000 "
            'preferred_batch_size: 4 } input { name: "x" data_type: TYPE_FP32 dims: [3, 48, 192] }')
        together = "max_batch_size: 8 dynamic_batching { max_queue_delay_microseconds: 10000000 " \
            "preferred_batch_size: 4 } instance_group { count: 1 }"
        support.add_model(folder, "voices", support.shared(HIFIGAN), config=together)
        support.add_model(folder, "texts", support.shared(TEXT), config=together)
        for way in WAYS:
            support.add_model(
                folder, way, support.SOURCE / f"tests/fuzz/corpus/onnx/{way}.onnx",
                config="max_batch_size: 128 dynamic_batching { "
                "max_queue_delay_microseconds: 2000 preferred_batch_size: 6 }")
        # the file says 416 x 416; its layers take any multiple of 32
        support.add_model(folder, "detector", support.shared(DETECTOR), config='input { '
                          'name: "images" data_type: TYPE_FP32 dims: [1, 3, -1, -1] }')

    def setUp(self):
        self.client = triton.InferenceServerClient(
            self.server.address, network_timeout=support.ANSWER_SECONDS, concurrency=8
        )
        self.addCleanup(self.client.close)
        self.random = np.random.default_rng(19)

    def tensor(self, name, array):
        tensor = triton.InferInput(name, array.shape, "FP32")
        tensor.set_data_from_numpy(array)
        return tensor

    def infer(self, model, name, array):
        result = self.client.infer(model, [self.tensor(name, array)])
        return result.as_numpy(result.get_response()["outputs"][0]["name"])

    def expect_close(self, got, want, where):
        self.assertEqual(got.shape, want.shape, where)
        off = float(np.abs(got - want).max() / np.ptp(want))
        self.assertLessEqual(off, OF_RANGE, where)

    def test_a_vocoder_speaks_sentences_of_any_length(self):
        runtime = LiteRT(support.shared(HIFIGAN).read_bytes())
        port = runtime.made.get_input_details()[0]["index"]
        for frames in (40, 200, 41):
            mel = self.random.normal(-4, 2, (1, 80, frames)).astype(np.float32)
            runtime.made.resize_tensor_input(port, mel.shape)
            runtime.made.allocate_tensors()
            self.expect_close(self.infer("voice", "input", mel), runtime.step([mel])[0], frames)

    def test_text_is_found_in_pictures_of_any_width(self):
        runtime = onnxruntime.InferenceSession(support.shared(TEXT))
        for width in (160, 480, 96, 160):
            x = written(width, 64)
            want, = runtime.run(None, {"x": x})
            self.assertGreater(np.ptp(want), 0.5, "no text is found")
            self.expect_close(self.infer("text", "x", x), want, width)

    def test_a_detector_takes_two_sizes(self):
        model = onnx.load(support.shared(DETECTOR))
        for port in [*model.graph.input, *model.graph.output]:
            port.type.tensor_type.ClearField("shape")
        runtime = onnxruntime.InferenceSession(model.SerializeToString())
        for side in (416, 224):
            x = self.random.uniform(0, 255, (1, 3, side, side)).astype(np.float32)
            got = self.infer("detector", "images", x)
            self.assertEqual(got.shape[1], sum((side // s) ** 2 for s in (8, 16, 32)))
            self.expect_close(got, runtime.run(None, {"images": x})[0], x.shape)

    def test_a_threshold_of_samples_is_that_of_each_request(self):
        """Also of requests that come at once and would be one batch."""
        for way in WAYS:
            model = support.SOURCE / f"tests/fuzz/corpus/onnx/{way}.onnx"
            runtime = onnxruntime.InferenceSession(model)
            alone = [self.random.normal(0, 1, (n, 2)).astype(np.float32)
                     for n in [*range(1, 65), 100, 128]]
            for x in alone:
                want, = runtime.run(None, {"x": x})
                np.testing.assert_array_equal(self.infer(way, "x", x), want, f"{way} {len(x)}")
            together = alone[:6] * 4
            requests = [self.client.async_infer(way, [self.tensor("x", x)]) for x in together]
            for x, request in zip(together, requests):
                want, = runtime.run(None, {"x": x})
                np.testing.assert_array_equal(request.get_result().as_numpy("y"), want, way)

    def test_requests_of_a_symbolic_batch_run_together(self):
        runtime = onnxruntime.InferenceSession(support.shared(DIRECTION))
        x = self.random.normal(0, 1, (4, 3, 48, 192)).astype(np.float32)
        want = runtime.run(None, {"x": x})[0]
        requests = [self.client.async_infer("direction", [self.tensor("x", x[i:i + 1])])
                    for i in range(4)]
        got = [r.get_result().as_numpy("softmax_0.tmp_0") for r in requests]
        self.expect_close(np.concatenate(got), want, "four of one")
        self.expect_close(self.infer("direction", "x", x), want, "one of four")
        stats = self.client.get_inference_statistics("direction")["model_stats"][0]
        self.assertIn(4, [row["batch_size"] for row in stats["batch_stats"]])
        self.assertLess(stats["execution_count"], stats["inference_count"])
        with self.assertRaisesRegex(InferenceServerException, "batch.size"):
            self.infer("direction", "x", np.repeat(x, 3, 0))

    def together(self, model, name, requests):
        """Answers of requests that arrive at once; expects runs of four."""
        port = self.client.get_model_metadata(model)["outputs"][0]["name"]
        sent = [self.client.async_infer(model, [self.tensor(name, x)]) for x in requests]
        answers = [s.get_result().as_numpy(port) for s in sent]
        stats = self.client.get_inference_statistics(model)["model_stats"][0]
        self.assertEqual([(row["batch_size"], row["compute_infer"]["count"])
                          for row in stats["batch_stats"]], [(4, len(requests) // 4)])
        return answers

    def test_pictures_of_equal_sizes_run_together(self):
        runtime = onnxruntime.InferenceSession(support.shared(TEXT))
        pictures = [written(width, 64) for width in (96, 160) * 4]
        for x, got in zip(pictures, self.together("texts", "x", pictures)):
            self.expect_close(got, runtime.run(None, {"x": x})[0], x.shape)
        several = np.concatenate(pictures[::2] + pictures[::2])
        self.expect_close(self.infer("texts", "x", several),
                          runtime.run(None, {"x": several})[0], "one of eight")

    def test_sentences_of_equal_lengths_run_together(self):
        runtime = LiteRT(support.shared(HIFIGAN).read_bytes())
        port = runtime.made.get_input_details()[0]["index"]
        sentences = [self.random.normal(-4, 2, (1, 80, frames)).astype(np.float32)
                     for frames in (40, 60) * 4]
        for mel, got in zip(sentences, self.together("voices", "input", sentences)):
            runtime.made.resize_tensor_input(port, mel.shape)
            runtime.made.allocate_tensors()
            self.expect_close(got, runtime.step([mel])[0], mel.shape)

    def test_plans_of_many_shapes_are_bounded(self):
        def held():
            return sum(v for k, v in scrape(self.server)[0].items()
                       if k.startswith("inferd_memory_held_bytes"))

        self.infer("text", "x", np.zeros((1, 3, 32, 32), np.float32))
        before = held()
        for width in range(64, 64 + 30 * 32, 32):
            self.infer("text", "x", np.zeros((1, 3, 64, width), np.float32))
        self.assertLessEqual(held() - before, SHAPE_MEMORY)
        with self.assertRaisesRegex(InferenceServerException, f"limit of {SHAPE_MEMORY}"):
            self.infer("text", "x", np.zeros((1, 3, 2048, 2048), np.float32))
        self.assertEqual(self.infer("text", "x", np.zeros((1, 3, 64, 96), np.float32)).shape,
                         (1, 1, 64, 96))


class Reshape(support.ServerCase):
    """Clients see other shapes than the file has, as in Triton's example densenet_onnx."""

    PICTURES = """
        platform: "onnxruntime_onnx"
        max_batch_size: 0
        input { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 8, 6 ]
                reshape { shape: [ 1, 3, 8, 6 ] } }
        output { name: "y" data_type: TYPE_FP32 dims: [ 3 ] reshape { shape: [ 1, 3, 1, 1 ] } }
        model_warmup { name: "w" batch_size: 1 inputs { key: "x" value {
            data_type: TYPE_FP32 dims: [ 3, 8, 6 ] random_data: true } } }"""
    NUMBERS = """
        max_batch_size: 4
        input { name: "x" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } }
        output { name: "y" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } }
        dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: 4 }"""
    OPEN = """
        input { name: "x" data_type: TYPE_FP32 dims: [ -1, 2, -1 ]
                reshape { shape: [ 1, -1, 1, -1, 2 ] } }"""

    @classmethod
    def prepare(cls, folder):
        for name, op, shape, config in (
                ("pictures", "GlobalAveragePool", [1, 3, 8, 6], cls.PICTURES),
                ("numbers", "Neg", ["n"], cls.NUMBERS),
                ("open", "Neg", [1, "a", 1, "b", 2], cls.OPEN)):
            x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s)
                    for n, s in (("x", shape), ("y", None)))
            graph = onnx.helper.make_graph([onnx.helper.make_node(op, ["x"], ["y"])], "g", [x], [y])
            model = onnx.helper.make_model(graph, ir_version=8, opset_imports=[
                onnx.helper.make_opsetid("", 17)])
            path = pathlib.Path(folder) / name / "1" / "model.onnx"
            path.parent.mkdir(parents=True)
            onnx.save(model, str(path))
            (path.parent.parent / "config.pbtxt").write_text(config)

    def setUp(self):
        self.client = triton.InferenceServerClient(self.server.address, concurrency=4)
        self.addCleanup(self.client.close)

    def tensor(self, x):
        tensor = triton.InferInput("x", x.shape, "FP32")
        tensor.set_data_from_numpy(x)
        return tensor

    def infer(self, model, x):
        return self.client.infer(model, [self.tensor(x)]).as_numpy("y")

    def test_a_picture_without_its_batch_gives_a_row(self):
        x = np.random.default_rng(1).random((3, 8, 6), np.float32)
        y = self.infer("pictures", x)
        self.assertEqual(y.shape, (3,))
        np.testing.assert_allclose(y, x.mean((1, 2)), rtol=1e-5)
        metadata = self.client.get_model_metadata("pictures")
        self.assertEqual(metadata["inputs"][0]["shape"], [3, 8, 6])
        self.assertEqual(metadata["outputs"][0]["shape"], [3])
        config = self.client.get_model_config("pictures")
        self.assertEqual(config["input"][0]["reshape"], {"shape": [1, 3, 8, 6]})
        with self.assertRaisesRegex(InferenceServerException, r"Expected \[3,8,6\]"):
            self.infer("pictures", x[None])

    def test_single_numbers_are_batched(self):
        x = np.arange(4, dtype=np.float32)
        requests = [self.client.async_infer("numbers", [self.tensor(x[i:i + 1, None])])
                    for i in range(4)]
        for i, request in enumerate(requests):
            np.testing.assert_array_equal(request.get_result().as_numpy("y"), [[-x[i]]])
        np.testing.assert_array_equal(self.infer("numbers", x[:3, None]), -x[:3, None])

    def test_open_dimensions_keep_their_order(self):
        for a, b in ((3, 5), (5, 3), (1, 1)):
            x = np.random.default_rng(a).random((a, 2, b), np.float32)
            np.testing.assert_array_equal(self.infer("open", x), -x.reshape(1, a, 1, b, 2))


class Lists(support.ServerCase):
    """An output that is a sequence of tensors is an output for each: NAME.0, NAME.1 …"""

    @classmethod
    def prepare(cls, folder):
        float_, info = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
        list_ = onnx.helper.make_tensor_sequence_value_info
        for name, x, y, attrs in (
                ("rows", info("x", float_, [3, "n"]), list_("y", float_, None), {"keepdims": 0}),
                ("columns", info("x", float_, [3, "n"]), list_("y", float_, None), {"axis": 1}),
                ("taken", list_("x", float_, ["n"]), info("y", float_, ["n"]), {})):
            nodes = ([onnx.helper.make_node("ConcatFromSequence", ["x"], ["y"], axis=0)]
                     if name == "taken" else
                     [onnx.helper.make_node("Neg", ["x"], ["z"]),
                      onnx.helper.make_node("SplitToSequence", ["z"], ["y"], **attrs)])
            model = onnx.helper.make_model(
                onnx.helper.make_graph(nodes, "g", [x], [y]), ir_version=8,
                opset_imports=[onnx.helper.make_opsetid("", 17)])
            path = pathlib.Path(folder) / name / "1" / "model.onnx"
            path.parent.mkdir(parents=True)
            onnx.save(model, str(path))

    def setUp(self):
        self.client = triton.InferenceServerClient(self.server.address)
        self.addCleanup(self.client.close)

    def infer(self, model, x):
        tensor = triton.InferInput("x", x.shape, "FP32")
        tensor.set_data_from_numpy(x)
        return self.client.infer(model, [tensor])

    def test_each_element_is_an_output(self):
        outputs = self.client.get_model_metadata("rows")["outputs"]
        self.assertEqual([o["name"] for o in outputs], ["y.0", "y.1", "y.2"])
        for n in (2, 5):
            x = np.arange(3 * n, dtype=np.float32).reshape(3, n)
            result = self.infer("rows", x)
            for k in range(3):
                np.testing.assert_array_equal(result.as_numpy(f"y.{k}"), -x[k])

    def test_a_size_of_another_count_is_refused(self):
        count = len(self.client.get_model_metadata("columns")["outputs"])
        x = np.ones((3, count), np.float32)
        result = self.infer("columns", x)
        np.testing.assert_array_equal(result.as_numpy(f"y.{count - 1}"), -x[:, -1:])
        with self.assertRaisesRegex(InferenceServerException,
                                    f"{count + 2} outputs, {count} were promised"):
            self.infer("columns", np.ones((3, count + 2), np.float32))
        self.assertEqual(self.infer("columns", x).as_numpy("y.0").shape, (3, 1))

    def test_an_input_that_is_a_sequence_is_refused(self):
        with self.assertRaisesRegex(InferenceServerException, '"x" is a sequence'):
            self.infer("taken", np.ones(3, np.float32))


class UnknownRank(support.ServerCase):
    """The file does not say how many dimensions an input has: its config does, or a layer."""

    @classmethod
    def prepare(cls, folder):
        node, random = onnx.helper.make_node, np.random.default_rng(4)
        cls.content = {}
        product = [node("MatMul", ["x", "w"], ["y"])], (6, 5)
        for name, (nodes, weights), config in (
                ("batched", product, 'max_batch_size: 8 input { name: "x" data_type: TYPE_FP32 '
                 'dims: [2, 6] }'),
                ("whole", product, 'input { name: "x" data_type: TYPE_FP32 dims: [-1, -1, 1, 6] }'),
                ("unsaid", product, None),
                ("layer", ([node("Relu", ["x"], ["z"]), node("Conv", ["z", "w"], ["y"],
                                                             kernel_shape=[2, 3])], (4, 3, 2, 3)),
                 None),
                ("gemm", ([node("Gemm", ["x", "w"], ["y"], transB=1)], (7, 5)), None)):
            x, y = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None)
                    for n in "xy")
            weights = onnx.numpy_helper.from_array(random.normal(0, 1, weights).astype(np.float32),
                                                   "w")
            model = onnx.helper.make_model(
                onnx.helper.make_graph(nodes, "g", [x], [y], [weights]), ir_version=8,
                opset_imports=[onnx.helper.make_opsetid("", 17)])
            cls.content[name] = model.SerializeToString()
            file = pathlib.Path(folder) / "model.onnx"
            file.write_bytes(cls.content[name])
            support.add_model(folder, name, file, config=config)
            file.unlink()

    def setUp(self):
        self.client = triton.InferenceServerClient(self.server.address)
        self.addCleanup(self.client.close)

    def test_each_is_served(self):
        for name, declared, shapes in (
                ("batched", [-1, 2, 6], [(1, 2, 6), (5, 2, 6)]),
                ("whole", [-1, -1, 1, 6], [(2, 3, 1, 6), (1, 4, 1, 6)]),
                ("layer", [-1, 3, -1, -1], [(1, 3, 5, 4), (2, 3, 9, 7)]),
                ("gemm", [-1, 5], [(1, 5), (4, 5)])):
            self.assertEqual(self.client.get_model_metadata(name)["inputs"][0]["shape"], declared)
            for shape in shapes:
                x = np.random.default_rng(5).normal(0, 1, shape).astype(np.float32)
                tensor = triton.InferInput("x", x.shape, "FP32")
                tensor.set_data_from_numpy(x)
                got = self.client.infer(name, [tensor]).as_numpy("y")
                want, = onnxruntime.InferenceSession(self.content[name]).run(None, {"x": x})
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=name)

    def test_where_nobody_says_it_the_reason_names_the_remedy(self):
        with self.assertRaisesRegex(InferenceServerException,
                                    '"x" is of unknown rank: the dims of a config say it'):
            self.client.get_model_metadata("unsaid")


class LargeFile(support.ServerCase):
    """Each plan packs the weights once more: what the shapes of requests may take grows with the
    file."""

    LAYERS, CHANNELS = 8, 512

    @classmethod
    def prepare(cls, folder):
        random = np.random.default_rng(2)
        shape = [cls.CHANNELS, cls.CHANNELS, 3, 3]
        nodes, weights = [], []
        for i in range(cls.LAYERS):
            values = random.normal(0, 1 / 48, shape).astype(np.float32)
            weights.append(onnx.numpy_helper.from_array(values, f"w{i}"))
            nodes.append(onnx.helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"x{i + 1}"],
                                               pads=[1, 1, 1, 1]))
        ports = [onnx.helper.make_tensor_value_info(f"x{i}", onnx.TensorProto.FLOAT,
                                                    [1, cls.CHANNELS, "h", "w"])
                 for i in (0, cls.LAYERS)]
        graph = onnx.helper.make_graph(nodes, "deep", ports[:1], ports[1:], weights)
        cls.content = onnx.helper.make_model(graph, ir_version=8, opset_imports=[
            onnx.helper.make_opsetid("", 17)]).SerializeToString()
        file = pathlib.Path(folder) / "deep.onnx"
        file.write_bytes(cls.content)
        support.add_model(folder, "deep", file)
        file.unlink()

    def test_its_plans_have_room(self):
        client = triton.InferenceServerClient(self.server.address,
                                              network_timeout=support.ANSWER_SECONDS)
        self.addCleanup(client.close)
        x = np.random.default_rng(3).normal(0, 1, (1, self.CHANNELS, 24, 24)).astype(np.float32)
        tensor = triton.InferInput("x0", x.shape, "FP32")
        tensor.set_data_from_numpy(x)
        got = client.infer("deep", [tensor]).as_numpy(f"x{self.LAYERS}")
        want, = onnxruntime.InferenceSession(self.content).run(None, {"x0": x})
        self.assertLessEqual(float(np.abs(got - want).max() / np.ptp(want)), OF_RANGE)


if __name__ == "__main__":
    unittest.main()

"""tritonclient[http] of PyPI against inferd, on the models of tests/data/repository."""
import asyncio
import unittest

import numpy as np
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from tritonclient.utils import InferenceServerException

import support

ROW = np.arange(16, dtype=np.int32).reshape(1, 16)
ONES = np.ones((1, 16), np.int32)


def inputs(a=ROW, b=ONES, binary=(True, True)):
    tensors = [triton.InferInput("INPUT0", list(a.shape), "INT32"),
               triton.InferInput("INPUT1", list(b.shape), "INT32")]
    for tensor, array, is_binary in zip(tensors, (a, b), binary, strict=True):
        tensor.set_data_from_numpy(array, binary_data=is_binary)
    return tensors


class TritonClient(support.ServerCase):
    # the repository holds a model that cannot load, on purpose
    options = ("--strict-readiness=false",)
    repository = support.REPOSITORY

    def setUp(self):
        self.client = triton.InferenceServerClient(self.server.address, concurrency=8)
        self.addCleanup(self.client.close)

    def check(self, result, a=ROW, b=ONES):
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), a + b)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), a - b)

    def refused(self, call, *arguments, text, **keywords):
        with self.assertRaises(InferenceServerException) as caught:
            call(*arguments, **keywords)
        self.assertIn(text, caught.exception.message())
        self.assertTrue(self.client.is_server_live())

    # ---- health and descriptions

    def test_server_is_live_and_ready(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready(query_params={"test_1": 1, "test_2": 2}))

    def test_model_readiness_depends_on_name_and_version(self):
        self.assertTrue(self.client.is_model_ready("simple"))
        self.assertTrue(self.client.is_model_ready("simple", "1"))
        self.assertFalse(self.client.is_model_ready("simple", "2"))
        self.assertFalse(self.client.is_model_ready("nope"))
        self.assertFalse(self.client.is_model_ready("broken"))

    def test_server_metadata_names_the_extensions(self):
        metadata = self.client.get_server_metadata()
        self.assertIsInstance(metadata["name"], str)
        self.assertIsInstance(metadata["version"], str)
        self.assertLessEqual({"classification", "model_configuration", "binary_tensor_data"},
                             set(metadata["extensions"]))

    def test_model_metadata_has_the_batch_dimension(self):
        metadata = self.client.get_model_metadata("simple")
        self.assertEqual(metadata["name"], "simple")
        self.assertEqual(metadata["versions"], ["1", "3"])
        self.assertEqual(metadata["inputs"], [
            {"name": "INPUT0", "datatype": "INT32", "shape": [-1, 16]},
            {"name": "INPUT1", "datatype": "INT32", "shape": [-1, 16]}])

    def test_model_config_has_what_clients_read(self):
        config = self.client.get_model_config("simple")
        self.assertEqual(config["max_batch_size"], 8)
        self.assertEqual([i["dims"] for i in config["input"]], [[16], [16]])
        self.assertEqual(config["input"][0]["format"], "FORMAT_NONE")
        self.assertEqual(config["output"][0]["data_type"], "TYPE_INT32")

    def test_repository_index_lists_every_model_and_why_one_failed(self):
        index = self.client.get_model_repository_index()
        ready = {(m["name"], m["version"]) for m in index if m.get("state") == "READY"}
        self.assertEqual(ready,
                         {("simple", "1"), ("simple", "3"), ("classify", "1"), ("identity", "1"),
                                 ("strings", "1"), ("slow", "1")})
        broken, = (m for m in index if m["name"] == "broken")
        self.assertTrue(broken.get("reason"))

    def test_unknown_model_is_named(self):
        self.refused(self.client.get_model_metadata, "nope", text="nope")
        self.refused(self.client.get_model_config, "nope", text="nope")
        with self.assertRaises(InferenceServerException) as caught:
            self.client.infer("nope", inputs())
        self.assertTrue(caught.exception.message().startswith("Request for unknown model"))

    # ---- inference

    def test_inputs_and_outputs_as_json_or_binary(self):
        for binary_in in ((True, True), (False, False), (True, False)):
            for binary_out in ((True, True), (False, False), (False, True)):
                outputs = [triton.InferRequestedOutput(name, binary_data=is_binary)
                           for name,
                           is_binary in zip(("OUTPUT0", "OUTPUT1"), binary_out, strict=True)]
                with self.subTest(binary_in=binary_in, binary_out=binary_out):
                    self.check(self.client.infer("simple", inputs(binary=binary_in),
                                                 outputs=outputs))

    def test_all_outputs_come_without_asking(self):
        self.check(self.client.infer("simple", inputs()))

    def test_only_the_asked_output_comes(self):
        result = self.client.infer("simple", inputs(),
                                   outputs=[triton.InferRequestedOutput("OUTPUT1")])
        self.assertIsNone(result.as_numpy("OUTPUT0"))
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), ROW - ONES)

    def test_id_version_and_query_parameters(self):
        result = self.client.infer("simple", inputs(), request_id="r-7", model_version="1",
                                   query_params={"test_1": 1}, headers={"x-test": "1"})
        self.check(result)
        self.assertEqual(result.get_response()["id"], "r-7")
        self.assertEqual(result.get_response()["model_version"], "1")

    def test_latest_version_serves_by_default(self):
        self.assertEqual(self.client.infer("simple", inputs()).get_response()["model_version"], "3")

    def test_batches_up_to_the_maximum(self):
        rng = np.random.default_rng(3)
        for batch in (1, 2, 5, 8, 3):
            a, b = rng.integers(-1000, 1000, (2, batch, 16), dtype=np.int32)
            self.check(self.client.infer("simple", inputs(a, b)), a, b)
        nine = np.ones((9, 16), np.int32)
        self.refused(self.client.infer, "simple", inputs(nine, nine), text="8")

    def test_both_compressions_both_ways(self):
        for request in (None, "gzip", "deflate"):
            for response in (None, "gzip", "deflate"):
                for binary in (True, False):
                    with self.subTest(request=request, response=response, binary=binary):
                        outputs = [triton.InferRequestedOutput(n, binary_data=binary)
                                   for n in ("OUTPUT0", "OUTPUT1")]
                        self.check(self.client.infer(
                            "simple", inputs(binary=(binary, binary)), outputs=outputs,
                            request_compression_algorithm=request,
                                                     response_compression_algorithm=response))

    def test_many_asynchronous_requests_at_once(self):
        arrays = [np.full((1, 16), n, np.int32) for n in range(64)]
        pending = [self.client.async_infer("simple", inputs(a, ONES)) for a in arrays]
        for a, request in zip(arrays, pending, strict=True):
            self.check(request.get_result(), a, ONES)

    def test_asyncio_client(self):
        async def ask():
            async with triton_aio.InferenceServerClient(self.server.address) as client:
                self.assertTrue(await client.is_server_ready())
                self.assertEqual((await client.get_model_metadata("simple"))["name"], "simple")
                return await asyncio.gather(*(client.infer("simple", inputs(ROW * n, ONES))
                                              for n in range(16)))

        for n, result in enumerate(asyncio.run(ask())):
            self.check(result, ROW * n, ONES)

    def test_floats_keep_every_bit_through_json_and_binary(self):
        values = np.array([1.5, -2.25, 3e38, 0.1, 1e-45, -0.0, 16777217.0], np.float32)
        for binary_in in (True, False):
            for binary_out in (True, False):
                tensor = triton.InferInput("INPUT0", [7], "FP32")
                tensor.set_data_from_numpy(values, binary_data=binary_in)
                output = triton.InferRequestedOutput("OUTPUT0", binary_data=binary_out)
                got = self.client.infer("identity", [tensor], outputs=[output]).as_numpy("OUTPUT0")
                self.assertEqual(got.tobytes(), values.tobytes())

    def test_classification_gives_value_index_and_label(self):
        values = np.array([[.1, .9, 0, 0, 0, 0, .5, 0, 0, 0]] * 2, np.float32)
        for binary in (True, False):
            tensor = triton.InferInput("DATA", [2, 10], "FP32")
            tensor.set_data_from_numpy(values)
            output = triton.InferRequestedOutput("PROB", binary_data=binary, class_count=3)
            got = self.client.infer("classify", [tensor], outputs=[output]).as_numpy("PROB")
            self.assertEqual(got.shape, (2, 3))
            for row in got:
                rows = [(v.decode() if isinstance(v, bytes) else v).split(":") for v in row]
                self.assertEqual([r[1:] for r in rows], [["1", "one"], ["6", "six"], ["0", "zero"]])
                self.assertEqual([float(r[0]) for r in rows], [.9, .5, .1])

    def test_strings_go_through_json_and_binary(self):
        values = np.array(["ab", "", "gr\u00fc\u00df"], np.object_)
        for binary_in in (True, False):
            for binary_out in (True, False):
                tensor = triton.InferInput("IN", [3], "BYTES")
                tensor.set_data_from_numpy(values, binary_data=binary_in)
                output = triton.InferRequestedOutput("OUT", binary_data=binary_out)
                got = self.client.infer("strings", [tensor], outputs=[output]).as_numpy("OUT")
                self.assertEqual([v.decode() if isinstance(v, bytes) else v for v in got],
                                 list(values))

    def test_statistics_count_every_inference(self):
        def count():
            stats, = self.client.get_inference_statistics("simple", "1")["model_stats"]
            return stats["inference_count"], stats["inference_stats"]["success"]["count"]

        inferences, requests = count()
        self.client.infer("simple", inputs(np.ones((5, 16), np.int32), np.ones((5, 16), np.int32)),
                          model_version="1")
        self.assertEqual(count(), (inferences + 5, requests + 1))

    # ---- refusals

    def test_wrong_shapes_and_names_are_refused_with_reasons(self):
        wide = np.ones((1, 17), np.int32)
        self.refused(self.client.infer, "simple", inputs(wide, wide), text="17")
        self.refused(self.client.infer, "simple", inputs()[:1], text="INPUT1")
        self.refused(self.client.infer, "simple", inputs(), model_version="9", text="9")
        self.refused(self.client.infer, "simple", inputs(),
                     outputs=[triton.InferRequestedOutput("NOPE")], text="NOPE")

    def test_shared_memory_is_refused_and_the_server_lives_on(self):
        self.refused(self.client.register_system_shared_memory, "region", "/nowhere", 64, text="")
        tensors = inputs()
        tensors[0].set_shared_memory("region", 64)
        self.refused(self.client.infer, "simple", tensors, text="shared")
        output = triton.InferRequestedOutput("OUTPUT0")
        output.set_shared_memory("region", 64)
        self.refused(self.client.infer, "simple", inputs(), outputs=[output], text="shared")
        self.check(self.client.infer("simple", inputs()))


if __name__ == "__main__":
    unittest.main()

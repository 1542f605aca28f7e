"""Triton's own example models. Their configs are read; a model without a backend here is refused,
which names it. With a backend of ours the same configs are served."""
import json
import pathlib
import re
import shutil
import tempfile
import unittest

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import support

# What a refusal must name; the models of SERVED have to be served.
SERVED = {"simple", "simple_int8", "simple_sequence", "simple_dyna_sequence", "simple_string"}
REFUSED = {
    "simple_identity": "python",
}


class Examples(unittest.TestCase):
    def serve(self, repository, *options):
        server = support.Server(repository, "--strict-readiness=false", *options)
        self.addCleanup(server.stop)
        client = triton.InferenceServerClient(server.address)
        self.addCleanup(client.close)
        return server, client

    def test_every_model_is_served_or_refused_by_name(self):
        server, _ = self.serve(support.shared("models/triton_examples"))
        rows = {r["name"]: r for r in json.loads(server.ask("POST", "/v2/repository/index").data)}
        self.assertEqual(set(rows), SERVED | set(REFUSED))
        for name, row in rows.items():
            with self.subTest(name):
                self.assertEqual(row["state"], "READY" if name in SERVED else "UNAVAILABLE")
                self.assertIn(REFUSED.get(name, ""), row.get("reason", ""))
        self.assertEqual(server.ask("GET", "/v2/health/live").status, 200)

    def test_configs_serve_with_a_backend_that_is_here(self):
        examples = support.shared("models/triton_examples")
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        for name, backend in (("simple", "tflite"), ("simple_identity", "identity")):
            (folder / name / "1").mkdir(parents=True)
            config = (examples / name / "config.pbtxt").read_text()
            config, count = re.subn(r'^(platform|backend): ".*"$', f'backend: "{backend}"', config,
                                    flags=re.M)
            self.assertEqual(count, 1)
            (folder / name / "config.pbtxt").write_text(config)
        shutil.copyfile(support.REPOSITORY / "simple/1/model.tflite",
                        folder / "simple/1/model.tflite")
        _, client = self.serve(folder)
        self.assertEqual(client.get_model_config("simple")["max_batch_size"], 8)
        tensors = [triton.InferInput(n, [2, 16], "INT32") for n in ("INPUT0", "INPUT1")]
        tensors[0].set_data_from_numpy(np.arange(32, dtype=np.int32).reshape(2, 16))
        tensors[1].set_data_from_numpy(np.full((2, 16), 3, np.int32))
        result = client.infer("simple", tensors)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), np.arange(32).reshape(2, 16) + 3)
        np.testing.assert_array_equal(result.as_numpy("OUTPUT1"), np.arange(32).reshape(2, 16) - 3)
        text = triton.InferInput("INPUT0", [1, 2], "BYTES")
        text.set_data_from_numpy(np.array([[b"one", b"\xff\x00two"]], dtype=np.object_))
        answer = client.infer("simple_identity", [text]).as_numpy("OUTPUT0")
        self.assertEqual(answer.tolist(), [[b"one", b"\xff\x00two"]])

    def test_texts_are_added_as_in_the_client_s_example(self):
        _, client = self.serve(support.shared("models/triton_examples"))
        numbers = np.arange(16).reshape(1, 16)
        for binary in (True, False):
            tensors = [triton.InferInput(n, [1, 16], "BYTES") for n in ("INPUT0", "INPUT1")]
            for tensor, values in zip(tensors, (numbers, np.full((1, 16), 1))):
                texts = np.array([str(x).encode() for x in values.flat], np.object_)
                tensor.set_data_from_numpy(texts.reshape(1, 16), binary_data=binary)
            wanted = [triton.InferRequestedOutput(f"OUTPUT{i}", binary_data=binary) for i in (0, 1)]
            answer = client.infer("simple_string", tensors, outputs=wanted)
            for i, values in enumerate((numbers + 1, numbers - 1)):
                got = [int(text) for text in answer.as_numpy(f"OUTPUT{i}").flat]
                self.assertEqual(got, values.ravel().tolist())
        tensors[0].set_data_from_numpy(np.full((1, 16), b"one", np.object_))
        with self.assertRaises(InferenceServerException) as caught:
            client.infer("simple_string", tensors)
        self.assertIn("one", str(caught.exception))

    def send(self, client, model, id, value, **flags):
        tensor = triton.InferInput("INPUT", [1, 1], "INT32")
        tensor.set_data_from_numpy(np.full((1, 1), value, np.int32))
        wanted = [triton.InferRequestedOutput("OUTPUT")]
        answer = client.infer(model, [tensor], outputs=wanted, sequence_id=id, **flags)
        return int(answer.as_numpy("OUTPUT")[0][0])

    def test_two_sequences_run_beside_each_other_as_in_the_client_s_example(self):
        """The start adds 1; in the other model the end adds the sequence's id."""
        _, client = self.serve(support.shared("models/triton_examples"))
        values = [0, 11, 7, 5, 3, 2, 0, 1]
        for model, added in (("simple_sequence", 0), ("simple_dyna_sequence", 1)):
            got = {1000: [], 1001: []}
            for i, value in enumerate(values):
                for id, sign in ((1000, 1), (1001, -1)):
                    got[id].append(self.send(client, model, id, sign * value,
                                             sequence_start=i == 0,
                                             sequence_end=i == len(values) - 1))
            for id, sign in ((1000, 1), (1001, -1)):
                want = [sign * v for v in values]
                want[0] += 1
                want[-1] += added * id
                self.assertEqual(got[id], want, model)
        with self.assertRaisesRegex(InferenceServerException, 'id "tram" is no UINT64'):
            self.send(client, "simple_dyna_sequence", "tram", 1, sequence_start=True)
        config = client.get_model_config("simple_dyna_sequence")["sequence_batching"]
        controls = {c["name"]: c["control"][0] for c in config["control_input"]}
        self.assertEqual(controls["END"]["int32_false_true"], [0, 1])
        self.assertEqual(controls["CORRID"]["data_type"], "TYPE_UINT64")
        metadata = client.get_model_metadata("simple_sequence")
        self.assertEqual([row["name"] for row in metadata["inputs"]], ["INPUT"])


if __name__ == "__main__":
    unittest.main()

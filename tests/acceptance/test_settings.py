"""Settings whose effect only the whole program shows: each test fails if its setting is ignored."""
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import unittest

import support

DIGITS = support.SOURCE / "models/digits/1/model.tflite"


class Settings(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.repository = self.folder / "models"
        support.add_model(self.repository, "digits", DIGITS)

    def serve(self, *options):
        server = support.Server(self.repository, *options)
        self.addCleanup(server.stop)
        return server

    def index(self, server):
        return {row["name"]: row for row in json.loads(server.ask("POST",
                                                                  "/v2/repository/index").data)}

    def test_exit_on_error(self):
        (self.repository / "broken/1").mkdir(parents=True)
        (self.repository / "broken/1/model.tflite").write_bytes(b"this is no model")
        self.assertEqual(self.index(self.serve())["digits"]["state"], "READY")
        ended = subprocess.run([support.SERVER, "serve", self.repository, "--http-port=0",
                                "--metrics-port=0",
                                "--exit-on-error"], capture_output=True, text=True,
                               timeout=support.START_SECONDS,
                               check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r'inferd: model "broken" version 1 is not ready: ')

    def test_a_model_file_that_does_not_load_ends_the_start(self):
        file = self.repository / "broken.tflite"
        file.write_bytes(b"this is no model")
        ended = subprocess.run([support.SERVER, "serve", file, "--http-port=0",
                                "--metrics-port=0"], capture_output=True, text=True,
                               timeout=support.START_SECONDS, check=False)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, r'inferd: model "broken" version 1 is not ready: ')
        both = support.Server(file, DIGITS)  # another one runs
        self.addCleanup(both.stop)
        self.assertEqual({"broken": "UNAVAILABLE", DIGITS.stem: "READY"},
                         {n: row["state"] for n, row in self.index(both).items()})

    def test_max_model_bytes(self):
        size = DIGITS.stat().st_size
        self.assertEqual(self.index(self.serve(f"--max-model-bytes={size}"))["digits"]["state"],
                         "READY")
        row = self.index(self.serve(f"--max-model-bytes={size - 1}"))["digits"]
        self.assertEqual(row["state"], "UNAVAILABLE")
        self.assertIn(str(size - 1), row["reason"])

    def test_cache_size_mb(self):
        model = support.shared("models/tflite/mobilenet_v1_0.25_224_float.tflite")
        support.add_model(self.repository, "large", model)
        kept = {}
        for megabytes in (1, 100):
            cache = self.folder / f"cache{megabytes}"
            self.serve(f"--cache-dir={cache}", f"--cache-size-mb={megabytes}")
            kept[megabytes] = sum(file.stat().st_size for file in cache.iterdir())
        self.assertLessEqual(kept[1], 1 << 20)
        self.assertGreater(kept[100], 1 << 20)      # the weights of the larger model, packed

    def test_address_that_is_none_is_refused_with_what_is_wanted(self):
        ended = subprocess.run([support.SERVER, "serve", self.repository, "--http-port=0",
                                "--http-address=[::1]"], capture_output=True, text=True,
                               timeout=support.START_SECONDS, check=False)
        self.assertEqual(ended.returncode, 2)
        self.assertIn('cannot listen on address "[::1]"', ended.stderr)
        self.assertIn("wanted is one as 127.0.0.1 or ::1", ended.stderr)

    def test_metrics_address(self):
        server = self.serve("--metrics-address=127.0.0.2")
        host, port = server.metrics_address.split(":")
        self.assertEqual(host, "127.0.0.2")
        self.assertEqual(server.ask("GET", "/metrics", address=server.metrics_address).status, 200)
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)))
        self.assertTrue(server.address.startswith("127.0.0.1:"))

    def test_image_threads(self):
        for count in (1, 5):
            server = self.serve(f"--image-threads={count}")
            names = [(task / "comm").read_text().strip()
                     for task in pathlib.Path(f"/proc/{server.process.pid}/task").iterdir()]
            self.assertEqual(names.count("image"), count)

    def test_access_log_format(self):
        path = self.folder / "access.log"
        for form in ("text", "json"):
            path.unlink(missing_ok=True)
            server = self.serve(f"--access-log={path}", f"--access-log-format={form}")
            server.ask("GET", "/v2/models/digits")
            self.assertEqual(server.stop(), 0)
            line = path.read_text().splitlines()[0]
            if form == "json":
                self.assertEqual(json.loads(line)["path"], "/v2/models/digits")
            else:
                self.assertIn(' path="/v2/models/digits" status=200 ', line)

    def test_log_format(self):
        text = self.serve().log_text()
        self.assertRegex(text, r"Z info model loaded ")
        lines = self.serve("--log-format=json").log_text().splitlines()
        events = [json.loads(line)["event"] for line in lines if line.startswith("{")]
        self.assertIn("model loaded", events)


if __name__ == "__main__":
    unittest.main()

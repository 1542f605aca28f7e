"""SIGTERM and SIGINT to the real program while it runs an inference: what was accepted is
answered, then the program ends."""
import json
import pathlib
import shutil
import signal
import socket
import tempfile
import time
import unittest

import support

DELAY_MS = 1500
QUESTION = json.dumps({"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1], "data": [7]}]})
CONFIG = f"""backend: "identity" input {{ name: "IN" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_FP32 dims: 1 }}
parameters {{ key: "execute_delay_ms" value {{ string_value: "{DELAY_MS}" }} }}
"""


class Signals(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "slow").mkdir()
        (self.folder / "slow/config.pbtxt").write_text(CONFIG)

    def serve(self, *options):
        # what waits outlasts the run before it
        server = support.Server(self.folder, "--default-timeout-ms=0", *options)
        self.addCleanup(server.stop)
        return server

    def metric(self, server, series):
        page = server.ask("GET", "/metrics", address=server.metrics_address).data.decode()
        return next(int(line.split()[-1]) for line in page.splitlines() if line.startswith(series))

    def begin(self, server):
        """One inference that runs, one that waits for it; returns what waits for their answers."""
        answers = [server.ask_aside("POST", "/v2/models/slow/infer", QUESTION) for _ in range(2)]
        for _ in range(support.ANSWER_SECONDS * 100):
            if (self.metric(server, "inferd_requests_inflight{") == 2
                    and self.metric(server, "inferd_queue_requests{") == 1):
                return answers
            time.sleep(0.01)
        raise AssertionError("no inference runs beside one that waits")

    def check(self, number):
        server = self.serve()
        answers = self.begin(server)
        server.process.send_signal(number)
        for answer in answers:
            self.assertEqual(answer().status, 200)
            self.assertEqual(json.loads(answer().data)["outputs"][0]["data"], [7])
        self.assertEqual(server.process.wait(support.ANSWER_SECONDS), 0)
        with self.assertRaises(ConnectionRefusedError):
            host, port = server.address.split(":")
            socket.create_connection((host, int(port)))

    def test_sigterm_lets_accepted_requests_finish(self):
        self.check(signal.SIGTERM)

    def test_sigint_lets_accepted_requests_finish(self):
        self.check(signal.SIGINT)

    def test_second_signal_changes_nothing(self):
        server = self.serve()
        answers = self.begin(server)
        server.process.send_signal(signal.SIGINT)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual([answer().status for answer in answers], [200, 200])
        self.assertEqual(server.process.wait(support.ANSWER_SECONDS), 0)

    def test_what_waits_is_refused_when_the_exit_timeout_is_over(self):
        server = self.serve("--exit-timeout-secs=0")
        answers = self.begin(server)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(sorted(answer().status for answer in answers), [200, 503])
        self.assertEqual(server.process.wait(support.ANSWER_SECONDS), 0)


if __name__ == "__main__":
    unittest.main()

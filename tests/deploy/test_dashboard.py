"""deploy/grafana: a Prometheus scrapes a server under load, and every expression of the dashboard
has values there."""
import http.client
import json
import math
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))
import support  # noqa: E402

DASHBOARD = support.SOURCE / "deploy/grafana/inferd.json"
PICTURE = support.SOURCE / "models/digits/examples/three.png"
SKIPPED = 77
CONFIG = """
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: inferd
    static_configs: [{targets: ["%s"]}]
"""


def expressions():
    """Each expression of a panel, by the panel's title."""
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def filled_in(expression):
    for name, value in (("$__rate_interval", "10s"), ("$instance", ".*"), ("$model", ".*")):
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


class Dashboard(unittest.TestCase):

    def setUp(self):
        if not shutil.which("prometheus"):
            support.skip("there is no prometheus (Debian's package prometheus)")
        self.server = support.Server(support.SOURCE / "models")
        self.addCleanup(self.server.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        config = pathlib.Path(folder.name, "prometheus.yml")
        config.write_text(CONFIG % self.server.metrics_address)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder.name}/data",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=error"],
            stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        self.is_over = False
        load = threading.Thread(target=self.ask_without_end)
        load.start()
        self.addCleanup(load.join)
        self.addCleanup(setattr, self, "is_over", True)

    def ask_without_end(self):
        picture = PICTURE.read_bytes()
        while not self.is_over:
            self.server.ask("POST", "/v2/models/digits/infer", picture,
                            {"Content-Type": "image/png"})

    def query(self, expression):
        """The values; None while Prometheus does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode(
                {"query": expression}))
            answer = connection.getresponse()
            body = json.loads(answer.read())
        except ConnectionError:
            return None
        finally:
            connection.close()
        if answer.status == 503:  # it starts
            return None
        self.assertEqual("success", body["status"], (expression, body))
        return [float(row["value"][1]) for row in body["data"]["result"]]

    def test_every_expression_has_values(self):
        found = 0
        for title, expression in expressions():
            for _ in range(support.ANSWER_SECONDS * 5):
                values = self.query(filled_in(expression))
                if values and all(math.isfinite(value) for value in values):
                    break
                time.sleep(0.2)
            else:
                self.fail(f"{title} is empty: {expression}: {values}")
            found += 1
        self.assertGreater(found, 20)
        self.assertEqual([], self.query('inferd_no_such_series'))


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)

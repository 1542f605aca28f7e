"""deploy/grafana: a Prometheus scrapes a server under load, and every expression of the dashboard
has values there; dashboard.html draws all panels of them in a headless Chromium, each with a line.
INFERD_SCREENSHOTS names a folder for a picture of that."""
import http.client
import json
import math
import os
import pathlib
import re
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
import browser  # noqa: E402
import support  # noqa: E402

DASHBOARD = support.SOURCE / "deploy/grafana/inferd.json"
PICTURE = support.SOURCE / "models/digits/examples/three.png"
PAGE = pathlib.Path(__file__).resolve().with_name("dashboard.html")
SECONDS = 20  # of the drawn time
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


def variables():
    """The metric and the label that each variable's choices come from."""
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            query = variable["query"]["query"]
            yield re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", query).groups()


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
        picture, count = PICTURE.read_bytes(), 0
        while not self.is_over:
            count += 1
            self.server.ask("POST", "/v2/models/digits/infer", picture if count % 5 else b"{",
                            {"Content-Type": "image/png" if count % 5 else "application/json"})
            time.sleep(0.005)

    def ask_prometheus(self, path, **parameters):
        """The result; None while Prometheus does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
            answer = connection.getresponse()
            text = answer.read()
        except ConnectionError:
            return None
        finally:
            connection.close()
        if answer.status == 503:  # it starts, and says so in plain text
            return None
        body = json.loads(text)
        self.assertEqual("success", body["status"], (parameters, body))
        return body["data"]["result"]

    def query(self, expression):
        rows = self.ask_prometheus("query", query=expression)
        return rows and [float(row["value"][1]) for row in rows]

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
        for metric, label in variables():
            self.assertTrue(self.query(f'count by ({label}) ({metric}{{{label}!=""}})'), metric)
        self.draw_all()

    def draw_all(self):
        time.sleep(SECONDS)
        dashboard = json.loads(DASHBOARD.read_text())
        end = time.time()
        answers = {panel["id"]: [
            self.ask_prometheus("query_range", query=filled_in(target["expr"]),
                                start=end - SECONDS, end=end, step=1)
            for target in panel["targets"]] for panel in dashboard["panels"]}
        page = browser.Browser(1600, 1200)
        self.addCleanup(page.close)
        page.open(PAGE.as_uri())
        page.run(f"draw({json.dumps(dashboard)}, {json.dumps(answers)}, {end - SECONDS}, {end})")
        for panel in dashboard["panels"]:
            kind = {"timeseries": "polyline", "stat": ".value"}[panel["type"]]
            drawn = page.run(f"[...document.querySelectorAll('#p{panel['id']} {kind}')].filter("
                             "(e) => (e.getAttribute('points') ?? e.textContent).includes(' '))"
                             ".length")
            self.assertGreaterEqual(drawn, len(panel["targets"]), panel["title"])
        if os.environ.get("INFERD_SCREENSHOTS"):
            page.screenshot(pathlib.Path(os.environ["INFERD_SCREENSHOTS"], "dashboard.png"))
        self.assertEqual([], page.complaints())


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)

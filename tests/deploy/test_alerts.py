"""deploy/prometheus: promtool raises each alert by what it is for, and every series that the rules
name is on the page of a server."""
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "acceptance"))
import support  # noqa: E402

RULES = support.SOURCE / "deploy/prometheus/inferd.rules.yml"
SKIPPED = 77


class Alerts(unittest.TestCase):

    def test_each_alert_is_raised_by_what_it_is_for(self):
        if not shutil.which("promtool"):
            support.skip("there is no promtool (Debian's package prometheus)")
        done = subprocess.run(["promtool", "test", "rules", HERE / "alerts_test.yml"],
                              capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        tested = re.findall(r"alertname: (\w+)\n", (HERE / "alerts_test.yml").read_text())
        self.assertEqual(set(re.findall(r"alert: (\w+)", RULES.read_text())), set(tested))

    def test_every_series_of_the_rules_exists(self):
        server = support.Server(support.SOURCE / "models")
        try:
            page = server.ask("GET", "/metrics", address=server.metrics_address).data.decode()
        finally:
            server.stop()
        rules = RULES.read_text()
        names = set(re.findall(r"\b(?:inferd|process)_\w+", rules)) - {"inferd_stage_seconds"}
        self.assertGreater(len(names), 8)
        for name in names:
            self.assertRegex(page, rf"(?m)^{name}(_bucket)?[ {{]")
        for label in re.findall(r'[{,](\w+="[^"]+")', rules):
            if not label.startswith("job="):
                self.assertIn(label, page)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)

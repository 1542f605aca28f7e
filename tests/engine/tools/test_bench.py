"""Output of `inferd bench`: valid JSON for any file name, figures that agree with each other."""
import json
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "fuzz"))
from make_tflite import Model  # noqa: E402

TOOL, MODEL = sys.argv[1], pathlib.Path(sys.argv[2])


def bench(model, *options):
    return subprocess.run([TOOL, "bench", model, "--iterations", "7", "--warmup", "1", *options],
                          check=True, capture_output=True, text=True).stdout


class Bench(unittest.TestCase):
    def test_json_survives_any_file_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'a "quoted\\name".tflite'
            shutil.copy(MODEL, path)
            self.assertEqual(json.loads(bench(path, "--json"))["model"], str(path))

    def test_json_says_what_ran(self):
        result = json.loads(bench(MODEL, "--json", "--threads", "2", "--batch", "3", "--exact",
                                  "--cpu", "none"))
        want = {"threads": 2, "batch": 3, "exact": True, "cpu": "none", "precision": "f32",
                "cache": ""}
        self.assertEqual({key: result[key] for key in want}, want)
        self.assertEqual(len(result["times_ms"]), 7)
        self.assertGreaterEqual(result["first_ms"], result["init_ms"])
        self.assertLessEqual(result["min_ms"], result["median_ms"])
        self.assertLessEqual(result["median_ms"], result["p90_ms"])
        self.assertLessEqual(result["p90_ms"], result["p99_ms"])

    def test_layers_count_the_products_of_all_samples(self):
        one, four = (json.loads(bench(MODEL, "--json", "--layers", "--batch", batch))["layers"]
                     for batch in "14")
        self.assertGreater(sum(layer["macs"] for layer in one), 0)
        self.assertEqual([4 * layer["macs"] for layer in one], [layer["macs"] for layer in four])
        for layer in one + four:
            self.assertNotEqual(layer["output"], "")
            if layer["us"] > 0:
                macs = sum(other["macs"] for other in (one if layer in one else four)
                           if other["timed_with"] == layer["step"])
                self.assertAlmostEqual(layer["gmacs"], macs / layer["us"] / 1e3,
                                       delta=0.01 + layer["gmacs"] / 100)

    def test_text_has_a_line_for_every_step(self):
        steps = json.loads(bench(MODEL, "--json", "--layers"))["layers"]
        text = bench(MODEL, "--layers")
        rows = re.findall(r"(?m)^ +(\d+) +(?:[\d.]+ +[\d.]+%|within step \d+) ", text)
        self.assertEqual([str(i) for i in range(len(steps))], rows, text)
        for line in text.splitlines():
            self.assertLessEqual(len(line), 100)
        self.assertAlmostEqual(100, sum(step["percent"] for step in steps), delta=1)

    def test_a_terminal_sees_how_far_it_is(self):
        terminal, other = pty.openpty()
        with subprocess.Popen([TOOL, "bench", MODEL, "--iterations", "1000000"], stderr=other,
                              stdout=subprocess.DEVNULL) as process:
            os.close(other)
            said = b""
            while b" of 1000000 " not in said:
                said += os.read(terminal, 1000)
            process.terminate()
        os.close(terminal)
        self.assertRegex(said, rb"^\rrun \d+ of 1000000 \x1b\[K")

    def test_slowest_steps_come_first(self):
        layers = json.loads(bench(MODEL, "--json", "--layers", "--sort"))["layers"]
        times = [layer["us"] for layer in layers]
        self.assertEqual(sorted(times, reverse=True), times)
        self.assertEqual(list(range(len(layers))), sorted(layer["step"] for layer in layers))

    def test_long_names_lose_their_middle(self):
        m = Model()
        x = m.input("x", [1, 4])
        y = m.tensor("an output with a näme that is long at its end", [1, 4])
        m.op("RELU", [x], [y])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "named.tflite"
            path.write_bytes(m.output(y).bytes())
            self.assertRegex(bench(path, "--layers"), r"(?m) an outp…its end$")


unittest.main(argv=sys.argv[:1])

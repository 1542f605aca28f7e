"""Output of `inferd bench`: valid JSON for any file name, figures that agree with each other."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

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
                self.assertAlmostEqual(layer["gmacs"], layer["macs"] / layer["us"] / 1e3,
                                       delta=0.01 + layer["gmacs"] / 100)

    def test_text_has_a_line_for_every_step(self):
        steps = json.loads(bench(MODEL, "--json", "--layers"))["layers"]
        lines = bench(MODEL, "--layers").splitlines()
        self.assertEqual(len([line for line in lines if line.endswith('"')]), len(steps))


unittest.main(argv=sys.argv[:1])

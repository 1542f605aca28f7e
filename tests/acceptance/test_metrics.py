"""/metrics and statistics: by Prometheus's checker, and by a client that measures with them."""
import re
import shutil
import subprocess
import unittest

import numpy as np
import tritonclient.http as triton

import support


def scrape(server):
    """Values by series, labels as they stand in the text."""
    response = server.ask("GET", "/metrics", address=server.metrics_address)
    text = response.data.decode()
    return {name: float(value) for name, value in re.findall(r"^([^#].*) (\S+)$", text, re.M)}, text


def checked(text):
    """What promtool says of a page: exit status (0: nothing, 3: style only), and its words."""
    if not shutil.which("promtool"):
        support.skip("there is no promtool (Debian's package prometheus)")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def infer(client, rows, **keywords):
    tensors = [triton.InferInput(name, [rows, 16], "INT32") for name in ("INPUT0", "INPUT1")]
    for tensor in tensors:
        tensor.set_data_from_numpy(np.ones((rows, 16), np.int32))
    return client.infer("simple", tensors, model_version="1", **keywords)


class Metrics(support.ServerCase):
    options = ("--strict-readiness=false",)
    repository = support.REPOSITORY

    def setUp(self):
        self.client = triton.InferenceServerClient(self.server.address)
        self.addCleanup(self.client.close)

    def test_promtool_objects_to_nothing_but_the_names_that_are_tritons(self):
        infer(self.client, 1)
        status, words = checked(scrape(self.server)[1])
        self.assertIn(status, (0, 3))                       # 1: not the format at all
        self.assertEqual([line for line in words if not line.startswith("nv_")], [])

    def test_statistics_and_metrics_agree(self):
        """What perf_analyzer reads, before and after a known number of requests."""
        def read():
            stats, = self.client.get_inference_statistics("simple", "1")["model_stats"]
            self.assertEqual((stats["name"], stats["version"]), ("simple", "1"))
            for stage in ("success", "fail", "queue", "compute_input", "compute_infer",
                          "compute_output",
                          "cache_hit", "cache_miss"):
                self.assertEqual({type(stats["inference_stats"][stage][key])
                                  for key in ("count", "ns")}, {int})
            return stats

        before, (page, _) = read(), scrape(self.server)
        for rows in (1, 2, 5):
            infer(self.client, rows)
        after, (later, _) = read(), scrape(self.server)

        def grown(name, more=""):
            series = f'{name}{{model="simple",version="1"{more}}}'
            return later[series] - page[series]

        self.assertEqual(after["inference_count"] - before["inference_count"], 8)
        self.assertEqual(after["execution_count"] - before["execution_count"], 3)
        for stage in ("success", "queue", "compute_infer", "compute_output"):
            self.assertEqual(after["inference_stats"][stage]["count"] - before["inference_stats"][
                stage]["count"], 3)
        self.assertLess(before["last_inference"], after["last_inference"] + 1)
        sizes = {batch["batch_size"]: batch["compute_infer"]["count"]
                 for batch in after["batch_stats"]}
        self.assertLessEqual({1, 2, 5}, set(sizes))
        for name, amount in (("nv_inference_request_success", 3), ("nv_inference_count", 8),
                             ("nv_inference_exec_count", 3), ("inferd_inferences_total", 8),
                             ("inferd_executions_total", 3),
                             ("inferd_execution_batch_size_sum", 8)):
            self.assertEqual(grown(name), amount, name)
        self.assertEqual(grown("inferd_requests_total", ',outcome="ok"'), 3)
        nanoseconds = after["inference_stats"]["compute_infer"]["ns"]
        series = 'nv_inference_compute_infer_duration_us{model="simple",version="1"}'
        self.assertEqual(later[series], nanoseconds // 1000)

    def test_models_that_loaded_have_memory_and_those_that_did_not_have_a_reason(self):
        page, _ = scrape(self.server)
        size = (support.REPOSITORY / "simple/1/model.tflite").stat().st_size
        self.assertEqual(page['inferd_model_memory_bytes{model="simple",version="1",kind="file"}'],
                         size)
        self.assertGreater(
            page['inferd_model_memory_bytes{model="simple",version="1",kind="arena"}'], 0)
        failed = sum(value for name, value in page.items()
                     if re.match(r'inferd_model_loads_total\{result="(?!ok")', name))
        self.assertEqual(failed, 1)                         # "broken"


class BatchSizes(support.ServerCase):
    @classmethod
    def prepare(cls, folder):
        """simple as it is, but for larger batches."""
        support.add_model(folder, "simple", support.REPOSITORY / "simple/1/model.tflite",
                          config="max_batch_size: 64")

    def test_statistics_tell_all_sizes_in_order(self):
        with triton.InferenceServerClient(self.server.address) as client:
            for rows in (*range(40, 0, -1), 64, 3):
                infer(client, rows)
            stats, = client.get_inference_statistics("simple")["model_stats"]
        counts = [(batch["batch_size"],
                   batch["compute_infer"]["count"]) for batch in stats["batch_stats"]]
        self.assertEqual(counts, [(size, 1 + (size == 3)) for size in (*range(1, 41), 64)])
        self.assertEqual(stats["execution_count"], 42)


class WithoutTritonsNames(support.ServerCase):
    options = ("--strict-readiness=false", "--metrics-triton-names=false")
    repository = support.REPOSITORY

    def test_promtool_objects_to_nothing(self):
        page, text = scrape(self.server)
        self.assertEqual([name for name in page if name.startswith("nv_")], [])
        self.assertEqual(checked(text), (0, []))


if __name__ == "__main__":
    unittest.main()

"""Loading and unloading while the server runs: tritonclient, inferctl, and a server that is
killed in between."""
import base64
import json
import os
import pathlib
import random
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import support

INFERCTL = os.environ.get("INFERCTL", support.SOURCE / "build/bin/inferctl")
SIMPLE = support.REPOSITORY / "simple"
MODEL = (SIMPLE / "1/model.tflite").read_bytes()
# The same model with its two outputs renamed: OUTPUT0 is the difference.
SWAPPED = MODEL.replace(b"OUTPUT0", b"OUTPUTx").replace(b"OUTPUT1", b"OUTPUT0")
SWAPPED = SWAPPED.replace(b"OUTPUTx", b"OUTPUT1")


def infer(client, a=7, b=3):
    """OUTPUT0's first element."""
    tensors = [triton.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
    for tensor, value in zip(tensors, (a, b), strict=True):
        tensor.set_data_from_numpy(np.full((1, 16), value, np.int32))
    return int(client.infer("simple", tensors).as_numpy("OUTPUT0")[0][0])


class ModelControl(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.repository = self.folder / "models"
        shutil.copytree(support.REPOSITORY, self.repository)
        self.socket = self.folder / "admin"

    def serve(self, *options, prefix=()):
        server = support.Server(self.repository, "--strict-readiness=false", *options,
                                prefix=prefix)
        self.addCleanup(server.stop)
        client = triton.InferenceServerClient(server.address)
        self.addCleanup(client.close)
        return server, client

    def refused(self, call, *arguments, text, **keywords):
        with self.assertRaises(InferenceServerException) as caught:
            call(*arguments, **keywords)
        self.assertIn(text, caught.exception.message())

    def test_tritonclient_loads_and_unloads(self):
        _, client = self.serve("--model-control-mode=explicit", "--admin-on-http")
        self.assertFalse(client.is_model_ready("simple"))
        client.load_model("simple")
        self.assertTrue(client.is_model_ready("simple", "3"))
        self.assertEqual(infer(client), 10)
        rows = [r for r in client.get_model_repository_index() if r["name"] == "simple"]
        self.assertEqual([(r["version"], r["state"]) for r in rows],
                         [("1", "READY"), ("3", "READY")])
        client.unload_model("simple")
        self.assertFalse(client.is_model_ready("simple"))
        client.unload_model("simple", unload_dependents=True)
        self.refused(client.load_model, "wrong_model_name",
                     text="failed to load 'wrong_model_name', ")
        self.refused(client.unload_model, "wrong_model_name", text="wrong_model_name")

    def test_config_override_counts_until_the_next_load_without_it(self):
        _, client = self.serve("--model-control-mode=explicit", "--load-model=simple",
                               "--admin-on-http")
        # a number as a string, as protobuf's JSON has it
        client.load_model("simple", config='{"max_batch_size":"4"}')
        self.assertEqual(client.get_model_config("simple")["max_batch_size"], 4)
        self.assertEqual(infer(client), 10)
        self.refused(client.load_model, "simple", config='{"max_batch_size"',
                     text="failed to load 'simple', config:1")
        self.refused(client.load_model, "simple", config='{"backend": "python"}', text="python")
        self.assertEqual(client.get_model_config("simple")["max_batch_size"], 4)
        client.load_model("simple")
        self.assertEqual(client.get_model_config("simple")["max_batch_size"], 8)

    def test_precision_is_asked_for_per_model_and_said_where_it_cannot_be(self):
        server, client = self.serve("--model-control-mode=explicit", "--admin-on-http")
        client.load_model("simple",
                          config='{"parameters": {"precision": {"string_value": "bf16"}}}')
        self.assertEqual(infer(client), 10)
        self.assertEqual(
            client.get_model_config("simple")["parameters"]["precision"]["string_value"], "bf16")
        self.assertIn('asked=bf16 given=f32 reason="no gemm of f32 is faster with it"',
                      server.log_text())
        self.refused(client.load_model, "simple",
                     config='{"parameters": {"precision": {"string_value": "half"}}}',
                     text='parameter "precision": got "half", expected f32, bf16 or fp16')
        with self.assertRaisesRegex(RuntimeError,
                                    "--exact and --precision fp16 exclude each other"):
            self.serve("--exact", "--precision=fp16")

    def test_file_override_replaces_the_whole_folder(self):
        _, client = self.serve("--model-control-mode=explicit", "--load-model=simple",
                               "--admin-on-http")
        config = (SIMPLE / "config.pbtxt").read_text()
        override = {"config": json.dumps({"max_batch_size": 8}),
                    "files": {"file:7/model.tflite": SWAPPED}}
        client.load_model("simple", **override)
        self.assertEqual(client.get_model_metadata("simple")["versions"], ["7"])
        self.assertEqual(infer(client), 4)
        self.refused(client.load_model, "simple", files={"file:1/model.tflite": MODEL},
                     text="config")
        self.refused(client.load_model, "simple", config="{}", files={"file:../../x": MODEL},
                     text="../../x")
        self.refused(client.load_model, "simple", config="{}",
                     files={"file:1/model.tflite": MODEL[:300]},
                     text="failed to load 'simple', ")
        self.assertEqual(infer(client), 4)                                  # what served still does
        client.load_model("simple")
        self.assertEqual(client.get_model_metadata("simple")["versions"], ["1", "3"])
        self.assertEqual((SIMPLE / "config.pbtxt").read_text(), config)
        self.assertFalse((self.folder / "x").exists())

    def test_files_must_be_base64(self):
        server, _ = self.serve("--model-control-mode=explicit", "--admin-on-http")
        body = {"parameters": {"config": "{}",
                               "file:1/model.tflite": "?" + base64.b64encode(MODEL).decode()}}
        answer = server.ask("POST", "/v2/repository/models/simple/load", json.dumps(body))
        self.assertEqual(answer.status, 400)
        self.assertIn("base64", json.loads(answer.data)["error"])

    def test_control_needs_the_admin_socket_or_leave(self):
        server, client = self.serve("--model-control-mode=explicit", "--load-model=simple",
                                    f"--admin-socket={self.socket}")
        self.refused(client.unload_model, "simple", text="--admin-on-http")
        self.assertEqual(stat.S_IMODE(self.socket.stat().st_mode), 0o600)
        ctl = lambda *a: subprocess.run([INFERCTL, "--admin-socket", self.socket, *a],
                                        capture_output=True, text=True)
        self.assertEqual(ctl("unload", "simple").returncode, 0)
        self.assertFalse(client.is_model_ready("simple"))
        self.assertEqual(ctl("load", "simple").stdout,
                         "loaded simple version 1\nloaded simple version 3\n")
        self.assertTrue(client.is_model_ready("simple"))
        config = self.folder / "config.json"
        config.write_text('{"max_batch_size": 2}')
        self.assertEqual(ctl("load", "simple", "--config", config).returncode, 0)
        self.assertEqual(client.get_model_config("simple")["max_batch_size"], 2)
        index = ctl("index").stdout
        self.assertIn("simple\t3\tREADY", index)
        self.assertTrue(index.startswith("MODEL\tVERSION\tSTATE\tPENDING\tREASON"), index)
        refusal = ctl("load", "broken")
        self.assertEqual(refusal.returncode, 1)
        self.assertIn("failed to load 'broken', config.pbtxt:2", refusal.stderr)
        server.stop()
        self.assertFalse(self.socket.exists())

    def test_control_is_refused_in_other_modes(self):
        for mode in ("none", "poll"):
            with self.subTest(mode):
                server, client = self.serve(f"--model-control-mode={mode}", "--admin-on-http")
                text = ("explicit model load / unload is not allowed: the server runs with "
                        f"--model-control-mode={mode}")
                self.refused(client.load_model, "simple", text=text)
                self.refused(client.unload_model, "simple", text=text)
                for verb in ("load", "unload"):
                    answer = server.ask("POST", f"/v2/repository/models/simple/{verb}")
                    # asking again does not help
                    self.assertEqual(answer.status, 400)
                    self.assertNotIn("Retry-After", answer.headers)

    def test_bench_counts_what_the_server_counts(self):
        server, client = self.serve("--model-control-mode=none")

        def bench(*options):
            done = subprocess.run([INFERCTL, "bench", f"http://{server.address}", "simple",
                                   "--report-json", "--seconds", "1", *options],
                                  capture_output=True, text=True)
            self.assertEqual(0, done.returncode, done.stderr)
            report = json.loads(done.stdout)
            ms = report["latency_ms"]
            self.assertLessEqual(0, ms["p50"])
            for lower, upper in (("p50", "p90"), ("p90", "p95"), ("p95", "p99"),
                                 ("p99", "p99.9"), ("p99.9", "max"), ("mean", "max")):
                self.assertLessEqual(ms[lower], ms[upper])
            self.assertEqual(0, report["failed"])
            return report

        closed = bench("--clients", "3")
        counted = client.get_inference_statistics("simple", "3")["model_stats"][0]
        self.assertGreater(closed["requests"], 0)
        # the warm-up, and the first request
        self.assertGreater(counted["inference_count"], closed["requests"])
        self.assertAlmostEqual(closed["requests"], closed["requests_per_s"], places=3)
        opened = bench("--clients", "2", "--rate", "40")
        self.assertEqual(("open", 40), (opened["loop"], opened["requests"]))

    def test_change_is_noticed_without_a_poll(self):
        shutil.move(self.repository / "simple", self.folder / "simple")
        server, client = self.serve("--model-control-mode=poll", "--repository-poll-secs=86400",
                                    "--repository-settle-ms=300", "--repository-dwell-secs=86400")

        def row():
            rows = [r for r in client.get_model_repository_index() if r["name"] == "simple"]
            return rows[-1] if rows else {}

        def wait_for(is_so):
            while not is_so(row()):
                time.sleep(0.02)

        # a start watches the folders by its first scan
        server.wait_for_log("ready at")
        while 'inferd_repository_polls_total{result="ok"} 0\n' in server.ask(
                "GET", "/metrics", address=server.metrics_address).data.decode():
            time.sleep(0.02)
        partly = self.folder / "simple/3/x.part"
        partly.touch()
        shutil.copytree(self.folder / "simple", self.repository / "simple")
        wait_for(lambda r: 'waits while "simple/3/x.part" is there' in r.get("pending", ""))
        answer = server.ask("POST", "/v2/models/simple/infer", "{}")
        self.assertEqual(404, answer.status)
        self.assertIn(b"no available versions: waits while", answer.data)
        (self.repository / "simple/3/x.part").unlink()
        wait_for(lambda r: r.get("state") == "READY")
        self.assertEqual(infer(client), 10)
        labels = self.repository / "simple/config.pbtxt"
        labels.write_text(labels.read_text() + "\n")
        wait_for(lambda r: "was reloaded just now" in r.get("pending", ""))
        for name in ("net.tflite", "other.onnx"):
            (self.repository / name).touch()
            server.wait_for_log(f"file={name} put_it_into={name.split('.')[0]}/1/model.")
        self.assertEqual(1, server.log_text().count("file=net.tflite"))

    def test_links_are_followed_inside_the_repository_only(self):
        data = self.repository / ".data"
        data.mkdir()
        shutil.move(self.repository / "simple", data / "simple")
        (self.repository / "simple").symlink_to(".data/simple")             # as Kubernetes does
        (self.repository / "outside").symlink_to(SIMPLE)
        (self.repository / "itself").symlink_to("itself")
        _, client = self.serve("--model-control-mode=none")
        self.assertEqual(infer(client), 10)
        reasons = {row["name"]: row.get("reason") for row in client.get_model_repository_index()}
        self.assertIn("leads out of the repository", reasons["outside"])
        self.assertIn("leads through too many links", reasons["itself"])

    def test_repository_that_cannot_be_listed_is_said_once(self):
        server, client = self.serve("--model-control-mode=poll", "--repository-poll-secs=1",
                                    "--repository-settle-ms=100")

        def polls_that_failed():
            page = server.ask("GET", "/metrics", address=server.metrics_address).data.decode()
            return int(re.search(r'inferd_repository_polls_total\{result="not found"\} (\d+)',
                                 page)[1])

        for round_ in (1, 2):
            self.repository.rename(self.folder / "away")
            while polls_that_failed() < 3 * round_:
                time.sleep(0.1)
            self.assertEqual(infer(client), 10)
            (self.folder / "away").rename(self.repository)
            server.wait_for_log("repository scan works again", round_)
            self.assertEqual(server.log_text().count("repository scan failed"), round_)

    def test_without_memfds_models_lie_in_private_memory(self):
        options = ("--model-control-mode=explicit", "--load-model=simple", "--admin-on-http")
        refused = ('warn model file is not sealed model=simple version=3 '
                   'reason="Function not implemented"')
        for prefix, in_memfd in ((), True), (support.tracer("memfd_create:error=ENOSYS"), False):
            server, client = self.serve(*options, prefix=prefix)
            self.assertEqual("/memfd:simple" in pathlib.Path(
                f"/proc/{server.process.pid}/maps").read_text(), in_memfd)
            self.assertEqual(infer(client), 10)
            (self.repository / "simple/3/model.tflite").write_bytes(SWAPPED)
            client.load_model("simple")
            self.assertEqual(infer(client), 4)
            # once for each load
            self.assertEqual(server.log_text().count(refused), 0 if in_memfd else 2)
            (self.repository / "simple/3/model.tflite").write_bytes(MODEL)
            server.stop()

    def test_content_that_ends_the_process_three_times_is_left_out(self):
        models, state = self.folder / "fatal", self.folder / "state"
        (models / "fatal").mkdir(parents=True)
        (models / "fatal/config.pbtxt").write_text(support.SLOW.format(delay_ms=3600000, count=1))
        options = ("--state-dir", state, "--warm-up-timeout-ms=0", "--strict-readiness=false",
                   "--exit-timeout-secs=0")

        def deaths():
            return [path.read_text() for path in state.glob("load-*")]

        def end_in_load(number, before):
            process = subprocess.Popen([support.SERVER, "serve", models, "--http-port=0",
                                        "--metrics-port=0", *options],
                                       stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.kill)
            while deaths() != [before]:
                time.sleep(0.01)
            process.send_signal(number)
            process.wait()

        # a load that SIGTERM ended does not count
        end_in_load(signal.SIGTERM, "1")
        self.assertEqual(deaths(), [])
        for before in "123":
            end_in_load(signal.SIGKILL, before)
        shutil.copytree(SIMPLE, models / "simple")
        server = support.Server(models, "--model-control-mode=explicit", "--load-model=*",
                                "--admin-on-http", *options)
        self.addCleanup(server.stop)
        rows = {row["name"]: row for row in json.loads(server.ask("POST",
                                                                  "/v2/repository/index").data)}
        self.assertEqual(rows["simple"]["state"], "READY")
        self.assertRegex(rows["fatal"]["reason"],
                         "^3 loads of this content ended the process; it is tried again when "
                         '"load-[0-9a-f]{16}" is removed from --state-dir$')
        answer = server.ask_aside("POST", "/v2/repository/models/fatal/load")   # asked for: tried
        while deaths() != ["4"]:
            time.sleep(0.01)
        (models / "fatal/config.pbtxt").write_text(support.SLOW.format(delay_ms=0, count=1))
        server.process.terminate()
        self.assertIsInstance(answer(), ConnectionError)
        self.assertEqual(server.process.wait(), 0)
        self.assertEqual(deaths(), ["3"])
        server = support.Server(models, *options)
        self.addCleanup(server.stop)
        self.assertEqual(server.ask("GET", "/v2/models/fatal/ready").status, 200)   # other content
        self.assertEqual(deaths(), ["3"])

    def test_killed_server_converges_after_restart(self):
        """A server is killed while its model changes: the next one serves either content whole,
        and then the last."""
        options = ("--model-control-mode=poll", "--repository-poll-secs=1",
                   "--repository-settle-ms=50",
                   "--repository-dwell-secs=0")
        chance = random.Random(1)
        target = self.repository / "simple/3/model.tflite"
        before = sorted(p.name for p in self.folder.rglob("*"))
        for turn in range(6):
            server, client = self.serve(*options)
            content, answer = ((SWAPPED, 4), (MODEL, 10))[turn % 2]
            with open(target, "r+b") as file:                               # in place, in pieces
                file.truncate(0)
                for at in range(0, len(content), 128):
                    file.write(content[at:at + 128])
                    file.flush()
                    time.sleep(0.02)
                    self.assertIn(infer(client), (4, 10))
            time.sleep(chance.uniform(0, 1.5))
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            _, client = self.serve(*options)
            self.assertEqual(infer(client), answer)
        self.assertEqual(sorted(p.name for p in self.folder.rglob("*")), before)    # no litter


if __name__ == "__main__":
    unittest.main()

"""The server as a service manager runs it: NOTIFY_SOCKET, WATCHDOG_USEC, JOURNAL_STREAM,
signals, a file of settings."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from unittest import mock

import support

class Service(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(str(self.folder / "notify"))
        self.manager.settimeout(support.ANSWER_SECONDS)

    def serve(self, *options, **environment):
        with mock.patch.dict(os.environ, environment):
            server = support.Server(support.REPOSITORY, "--strict-readiness=false", *options)
        self.addCleanup(server.stop)
        return server

    def test_service_manager_is_told_and_pinged(self):
        server = self.serve(NOTIFY_SOCKET=str(self.folder / "notify"), WATCHDOG_USEC="200000")
        self.assertIn("STATUS=5 of 6 models ready", support.heard(self.manager, "READY=1\n"))
        for _ in range(3):
            support.heard(self.manager, "WATCHDOG=1")
        server.process.send_signal(signal.SIGHUP)
        support.heard(self.manager, "RELOADING=1\n")
        support.heard(self.manager, "READY=1\n")
        server.process.send_signal(signal.SIGTERM)
        support.heard(self.manager, "STOPPING=1\n")
        self.assertEqual(server.process.wait(), 0)

    def test_abstract_socket_is_told(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abstract:
            name = f"inferd-test-{os.getpid()}"
            abstract.bind("\0" + name)
            abstract.settimeout(support.ANSWER_SECONDS)
            self.serve(NOTIFY_SOCKET="@" + name)
            self.assertTrue(any(abstract.recv(4096).startswith(b"READY=1") for _ in range(20)))

    def test_pings_meant_for_another_process_are_not_sent(self):
        server = self.serve(NOTIFY_SOCKET=str(self.folder / "notify"), WATCHDOG_USEC="100000",
                            WATCHDOG_PID="1")
        support.heard(self.manager, "READY=1\n")
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(), 0)
        self.manager.settimeout(0)
        rest = []
        try:
            while True:
                rest.append(self.manager.recv(4096).decode())
        except BlockingIOError:
            pass
        self.assertNotIn("WATCHDOG=1", rest)

    def test_closed_standard_input_and_error_are_no_sockets(self):
        # Were they taken by sockets, the log would go to a client, and the end of the loop, which
        # spares them, would fail.
        prefix = ("sh", "-c", 'exec "$0" "$@" <&- 2>&-')
        server = support.Server(support.REPOSITORY, "--strict-readiness=false", "--log-verbose=1",
                                prefix=prefix)
        self.addCleanup(server.stop)
        for fd in (0, 2):
            self.assertEqual(os.readlink(f"/proc/{server.process.pid}/fd/{fd}"), "/dev/null")
        self.assertEqual(json.loads(server.ask("GET", "/v2/health/live").data), {"live": True})
        self.assertEqual(server.stop(), 0)

    def test_command_whose_output_is_lost_fails(self):
        if not os.access("/dev/full", os.W_OK):
            support.skip("there is no /dev/full")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([support.SERVER, "--version"], stdout=full,
                                  stderr=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (1, b"inferd: standard output cannot be written\n"))

    def test_wrong_usage_is_status_two_and_says_what_is_wrong(self):
        model = str(support.SOURCE / "models/digits/1/model.tflite")
        every = [
            ("", "no MODEL given; see inferd {} --help"),
            ("MODEL more", 'unexpected argument "more"'),
            ("MODEL --nope", "no option --nope"),
            ("MODEL -x", "no option -x"),
            ("MODEL --backend", "--backend: no value, expected LIST"),
            ("MODEL --threads 0", '--threads: got "0", expected a number from 1 to 256'),
            ("MODEL --exact=1", "--exact takes no value"),
            ("MODEL --exact --fast", "--exact and --fast exclude each other"),
            ("MODEL --exact --precision bf16", "--exact and --precision bf16 exclude each other"),
            ("MODEL --precision f8", '--precision: got "f8", expected f32, bf16 or fp16'),
            ("MODEL --cpu abacus", '--cpu: unknown feature "abacus"'),
            ("MODEL --backend CpuAcc,Abacus", 'unknown backend "Abacus"'),
            ("MODEL --backend " + "CpuRef," * 17, "list of backends: more than 16 names"),
        ]
        rows = [(f"{command} {words}", want.format(command.split()[0]))
                for command in ("run", "inspect", "bench", "compare --with CpuRef") for words,
                want in every
                if words or command != "compare --with CpuRef"]
        rows += [
            ("", "usage: inferd COMMAND"),
            ("dance", 'unknown command "dance"'),
            ("inspect MODEL --format x", '--format: got "x", expected text, json or dot'),
            ("inspect MODEL --passes --format json",
             "--passes and --format json exclude each other"),
            ("compare MODEL",
             "got neither, expected either --with LIST or --golden FILE per output"),
            ("compare MODEL --with CpuRef --golden out.npy", "got both, expected either"),
            ("compare MODEL --with Abacus", 'unknown backend "Abacus"'),
            ("serve", "no model repository given"),
            ("serve --nope", 'unknown option "--nope"'),
            ("serve -x", 'unknown option "-x"'),
            ("serve EMPTY --http-port=x", '--http-port: "x" is not a number'),
            ("serve EMPTY --exact --fast", "--exact and --fast exclude each other"),
            ("serve EMPTY --exact --precision=bf16",
             "--exact and --precision bf16 exclude each other"),
            ("serve EMPTY --backend=Abacus",
             '--backend: unknown backend "Abacus"; there are CpuAcc, CpuRef'),
            ("serve EMPTY --load-model=x", "--load-model needs --model-control-mode=explicit"),
            ("serve EMPTY --http-address=0.0.0.0 --admin-on-http",
             "--admin-on-http on address 0.0.0.0 would let everyone"),
        ]
        with tempfile.TemporaryDirectory() as empty:
            for words, want in rows:
                arguments = words.replace("MODEL", model).replace(
                    "EMPTY", f"{empty} --http-port=0 --metrics-port=0")
                done = subprocess.run([support.SERVER, *arguments.split()], capture_output=True,
                                      text=True, check=False)
                with self.subTest(words):
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    self.assertIn(want, done.stderr)

    def test_failure_of_good_usage_is_status_one(self):
        for words in (("inspect", "/nonexistent.tflite"),
                      ("serve", "/nonexistent", "--http-port=0")):
            done = subprocess.run([support.SERVER, *words], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn(words[1], done.stderr)

    def test_log_is_json_when_asked(self):
        server = self.serve("--log-format=json")
        lines = [json.loads(line) for line in server.log_text().splitlines()
                 if line.startswith("{")]
        loaded = [line for line in lines if line["event"] == "model loaded"]
        self.assertIn(("simple", 3, "info"),
                      [(e["model"], e["version"], e["level"]) for e in loaded])

    def test_hostile_names_stay_one_value_in_every_sink(self):
        name = 'x\nerror forged model=a "\\\x1b[2J\u009b'
        (self.folder / "models" / name / "1").mkdir(parents=True)
        for kind in ("text", "json"):
            server = support.Server(self.folder / "models", "--strict-readiness=false",
                                    f"--log-format={kind}")
            self.addCleanup(server.stop)
            index = json.loads(server.ask("POST", "/v2/repository/index", b"{}").data)
            self.assertEqual([row["name"] for row in index], [name])
            server.ask("GET", "/metrics", address=server.metrics_address)
            log = server.log_text()
            self.assertNotRegex(log, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            lines = [line for line in log.splitlines() if "load failed" in line]
            self.assertEqual(len(lines), 1, log)
            if kind == "json":
                self.assertEqual(json.loads(lines[0])["model"], name)
            else:
                self.assertIn(r' model="x\u000aerror forged model=a \"\\\u001b[2J\u009b" version=',
                              lines[0])
        for command in ("serve", "inspect"):
            done = subprocess.run([support.SERVER, command, self.folder / (name + ".tflite")],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 1)
            self.assertNotRegex(done.stderr, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertIn(r'x\u000aerror forged', done.stderr)

    def test_journal_gets_priorities(self):
        # support.Server gives the program a file as standard error: name it as systemd names the
        # journal's socket.
        real, info = tempfile.TemporaryFile, {}

        def remember():
            file = real()
            status = os.fstat(file.fileno())
            info["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino}"
            os.environ.update(info)
            return file

        with mock.patch.dict(os.environ), mock.patch("tempfile.TemporaryFile", remember):
            server = self.serve()
        self.assertIn("\n<6>model loaded model=simple version=3 ", server.log_text())
        self.assertRegex(server.log_text(), "<3>model load failed model=broken ")

    def test_settings_come_from_a_file_and_hangup_reads_it_again(self):
        settings = self.folder / "inferd.conf"
        settings.write_text("# test\nlog-verbose = 0\nid = from-a-file\n")
        server = self.serve("--config", settings, NOTIFY_SOCKET=str(self.folder / "notify"))
        support.heard(self.manager, "READY=1\n")
        self.assertEqual(json.loads(server.ask("GET", "/v2").data)["name"], "from-a-file")
        self.assertNotIn("request answered", server.log_text())
        settings.write_text("log-verbose = 1\nid = another\n")
        server.process.send_signal(signal.SIGHUP)
        support.heard(self.manager, "READY=1\n")
        # needs a restart, and says so
        self.assertEqual(json.loads(server.ask("GET", "/v2").data)["name"], "from-a-file")
        self.assertIn("setting needs a restart setting=id", server.log_text())
        server.wait_for_log("request answered")
        settings.write_text("log-verbose = loud\n")
        server.process.send_signal(signal.SIGHUP)
        support.heard(self.manager, "READY=1\n")
        self.assertIn("settings reload failed reason=", server.log_text())
        self.assertEqual(server.ask("GET", "/v2/health/live").status, 200)

    def test_settings_that_cannot_be_are_named(self):
        file = self.folder / "file"
        file.write_text("")
        for options, said in (
                (("--backend=none",), '--backend: unknown backend "none"; there are .*CpuRef'),
                ((f"--http-socket={file}",),
                 "cannot listen on .*file: it exists and is not a socket"),
                ((f"--config={self.folder}/none",), '--config: cannot read ".*none": No such file'),
                (("--request-memory=1000",),
                 "--request-memory: 1000 bytes, at least 1048576 are needed"),
                (("--exact", "--fast"), "--exact and --fast exclude each other"),
                (("--load-model=simple",), "--load-model needs --model-control-mode=explicit")):
            with self.subTest(options=options), self.assertRaisesRegex(RuntimeError, said):
                self.serve(*options)
        self.assertTrue(file.exists())

    def test_socket_of_another_server_stays(self):
        path = self.folder / "admin"
        first = self.serve(f"--admin-socket={path}")
        with self.assertRaisesRegex(
                RuntimeError,
                "cannot listen on .*admin: already in use, perhaps by another server"):
            self.serve(f"--admin-socket={path}")
        path.rename(self.folder / "away")                               # and that of a successor
        second = self.serve(f"--admin-socket={path}")
        first.stop()
        self.assertTrue(path.is_socket())
        second.stop()
        self.assertFalse(path.exists())

    def test_too_few_descriptors_are_told(self):
        server = support.Server(support.REPOSITORY, "--http-max-connections=1000",
                                prefix=("prlimit", "--nofile=500:500"))
        self.addCleanup(server.stop)
        self.assertIn("file descriptors limit connections descriptors=500 connections=1000",
                      server.log_text())
        self.assertNotIn("fewer file descriptors",
                         self.serve("--http-max-connections=100").log_text())

    def stop_while_loading(self, *options, **slow):
        """A server that is told to stop in the middle of a load that somebody asked for: it, and
        what he was answered."""
        repository = self.folder / "models"
        (repository / "slow").mkdir(parents=True)
        (repository / "slow/config.pbtxt").write_text(support.SLOW.format(**slow))
        server = support.Server(repository, "--model-control-mode=explicit", "--admin-on-http",
                                "--warm-up-timeout-ms=0", "--access-log",
                                self.folder / "access.log",
                                "--admin-socket", self.folder / "admin", *options)
        self.addCleanup(server.stop)
        answer = server.ask_aside("POST", "/v2/repository/models/slow/load")
        while b'model="slow"' not in server.ask("GET", "/metrics",
                                                address=server.metrics_address).data:
            # its counters come right before its first run
            time.sleep(0.01)
        server.ask("GET", "/v2")
        server.process.send_signal(signal.SIGTERM)
        answered = answer()
        self.assertEqual(server.process.wait(), 0)
        self.assertFalse((self.folder / "admin").exists())
        return server, answered

    def test_load_ends_at_its_next_step_when_the_server_stops(self):
        server, answer = self.stop_while_loading(delay_ms=10, count=100000)
        self.assertEqual((answer.status, json.loads(answer.data)["error"]),
                         (503, "failed to load 'slow', model_warmup \"slow\": "
                               "the server is stopping"))
        self.assertIn("model load cancelled model=slow version=1", server.log_text())
        self.assertNotIn("what cannot be interrupted", server.log_text())
        self.assertIn("/v2/repository/models/slow/load", (self.folder / "access.log").read_text())

    def test_run_that_does_not_end_is_left_when_the_server_stops(self):
        server, answer = self.stop_while_loading("--exit-timeout-secs=0", delay_ms=3600000, count=1)
        self.assertIsInstance(answer, ConnectionError)
        self.assertIn("unfinished work is left behind requests=1 is_loading=1", server.log_text())
        self.assertIn("path=\"/v2\"", (self.folder / "access.log").read_text())


if __name__ == "__main__":
    unittest.main()

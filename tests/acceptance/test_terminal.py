"""On a terminal: what takes over two seconds says so while it lasts, and a pipe hears nothing of
it; tables are aligned. tests/engine/tools/test_progress.c has the tools' lines while they load."""
import os
import pathlib
import pty
import shutil
import subprocess
import tempfile
import unittest

import support

INFERCTL = os.environ["INFERCTL"]
DIGITS = support.SOURCE / "models/digits/1/model.tflite"


class Terminal:
    """A program whose standard error is a terminal, and its output, too, if that is shown."""

    def __init__(self, *command, shows_output=False):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([*map(str, command)], stdin=subprocess.DEVNULL, text=True,
                                        stdout=slave if shows_output else subprocess.PIPE,
                                        stderr=slave)
        os.close(slave)
        self.seen = ""

    def read(self):
        """False at the end."""
        try:
            more = os.read(self.master, 4096)
        except OSError:  # nobody has the terminal open any more
            more = b""
        self.seen += more.decode()
        return bool(more)

    def wait_for(self, text):
        while text not in self.seen:
            if not self.read():
                raise AssertionError(f"lacks {text!r}: {self.seen!r}")

    def end(self):
        """What it says on standard output."""
        while self.read():
            pass
        output = self.process.communicate()[0]
        os.close(self.master)
        return output

    def kill(self):
        self.process.kill()
        self.end()


class Progress(unittest.TestCase):

    def setUp(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.repository = pathlib.Path(folder)
        support.add_model(self.repository, "digits", DIGITS)

    def serve(self, *options):
        server = support.Server(self.repository, *options)
        self.addCleanup(server.stop)
        return f"http://{server.address}"

    def test_load_waits_and_says_so(self):
        (self.repository / "slow/1").mkdir(parents=True)
        (self.repository / "slow/config.pbtxt").write_text(
            support.SLOW.format(delay_ms=1500, count=3))
        url = self.serve("--model-control-mode=explicit", "--admin-on-http")
        load = Terminal(INFERCTL, "--url", url, "load", "slow")
        load.wait_for("load slow: waiting for 2 s")
        self.assertIn("slow", load.end())
        self.assertEqual(0, load.process.returncode)
        self.assertTrue(load.seen.endswith("\r\x1b[K"), load.seen)  # nothing is left of it
        silent = subprocess.run([INFERCTL, "--url", url, "load", "slow"], capture_output=True,
                                check=True)
        self.assertEqual(b"", silent.stderr)

    def test_bench_of_a_server_counts_its_seconds(self):
        url = self.serve()
        bench = Terminal(INFERCTL, "bench", url, "digits", "--seconds", "3")
        bench.wait_for("warm-up 1 of 4 s")
        bench.wait_for("measuring 3 of 4 s")
        self.assertIn("p99", bench.end())

    def test_tables_are_aligned(self):
        support.add_model(self.repository, "a_longer_name", DIGITS)
        (self.repository / "broken/1").mkdir(parents=True)
        (self.repository / "broken/1/model.onnx").write_bytes(b"\xff")
        url = self.serve()
        for command, column, values in (("index", "STATE", ["READY", "UNAVAILABLE", "READY"]),
                                        ("stats", "RUNS", ["0", "0"])):
            with self.subTest(command):
                plain = subprocess.run([INFERCTL, "--url", url, command], capture_output=True,
                                       check=True, text=True).stdout
                terminal = Terminal(INFERCTL, "--url", url, command, shows_output=True)
                terminal.end()
                seen = terminal.seen.replace("\r\x1b[K", "")
                header, *rows = seen.splitlines()
                at = header.index(column)
                self.assertEqual(values, [row[at:].split()[0] for row in rows])
                self.assertEqual({"  "}, {row[at - 2:at] for row in rows})
                self.assertEqual([line.split() for line in plain.splitlines()],
                                 [line.split() for line in seen.splitlines()])
                self.assertIn("\t" + column, plain)

    def test_tools_count_their_runs(self):
        for tool in (("bench", DIGITS, "--iterations", "1000000"),
                     ("compare", DIGITS, "--with", "CpuRef", "--runs", "1000000")):
            with self.subTest(tool[0]):
                run = Terminal(support.SERVER, *tool)
                self.addCleanup(run.kill)
                run.wait_for(f" of {tool[-1]} ")


if __name__ == "__main__":
    unittest.main()

"""Shared by the acceptance tests: a running server, plain HTTP, and files made by others."""
import http.client
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SERVER = pathlib.Path(os.environ.get("INFERD", SOURCE / "build/bin/inferd"))
SHARED = pathlib.Path(os.environ.get("IFD_SHARED", SOURCE / "../shared"))
REPOSITORY = SOURCE / "tests/data/repository"

START_SECONDS = 600         # a sanitizer build loads slowly; nothing below measures time
ANSWER_SECONDS = 300

# Loads of this model run count samples that take delay_ms each.
SLOW = """backend: "identity" input {{ name: "IN" data_type: TYPE_FP32 dims: 1 }}
output {{ name: "OUT" data_type: TYPE_FP32 dims: 1 }}
parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay_ms}" }} }}
model_warmup {{ name: "slow" count: {count} inputs {{
    key: "IN" value {{ data_type: TYPE_FP32 dims: 1 zero_data: true }} }} }}
"""


def skip(reason):
    """Skips the test because something is absent; fails it if INFERD_TEST_NO_SKIPS is set, as
    tests/run.sh does."""
    if os.environ.get("INFERD_TEST_NO_SKIPS"):
        raise AssertionError(f"may not be skipped (INFERD_TEST_NO_SKIPS): {reason}")
    raise unittest.SkipTest(reason)


def shared(relative):
    """A file or folder below the shared folder; skips the test if it is absent."""
    path = SHARED / relative
    if not path.exists():
        skip(f"{path} is not here")
    return path


def tracer(*rules):
    """The prefix of a command line that lets strace inject these faults into its system calls;
    skips the test without strace."""
    command = ["strace", "-D", "-f", "-qq", "-o", "/dev/null"]
    for rule in rules:
        command += ["-e", f"inject={rule}"]
    if not shutil.which("strace"):
        skip("there is no strace (Debian's package strace)")
    if subprocess.run([*command, "true"], check=False).returncode:
        raise unittest.SkipTest("this system lets strace trace nothing")
    return command


def heard(manager, start):
    """The next message on a service manager's socket that begins so."""
    while True:
        message = manager.recv(4096).decode()
        if message.startswith(start):
            return message


def add_model(repository, name, model, labels=None, config=None):
    """Puts a model file into a repository folder, with a config and its labels if given."""
    folder = pathlib.Path(repository) / name
    (folder / "1").mkdir(parents=True)
    shutil.copyfile(model, folder / "1" / f"model{pathlib.Path(model).suffix}")
    if labels:
        shutil.copyfile(labels, folder / "labels.txt")
    if config:
        (folder / "config.pbtxt").write_text(config)


class Server:
    """inferd serve REPOSITORY on a port that the kernel chooses. When the constructor returns,
    every model that can be loaded is.

    prefix: in front of the command line, for tools that run the server."""

    def __init__(self, repository, *options, prefix=()):
        self.log = tempfile.TemporaryFile()
        command = [*prefix, SERVER, "serve", repository, "--http-port", "0", "--metrics-port", "0",
                   *options]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT)
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self):
        for _ in range(START_SECONDS * 20):
            if self.process.poll() is not None:
                raise RuntimeError(
                    f"the server ended with status {self.process.returncode}:\n{self.log_text()}")
            ready = re.search(r"ready at http://(127\.0\.0\.1:\d+)", self.log_text())
            if ready:
                self.address = ready[1]
                self.metrics_address = re.search(r"metrics at http://([^/]*)/metrics",
                                                 self.log_text())[1]
                return
            time.sleep(0.05)
        raise RuntimeError(f"the server is not ready:\n{self.log_text()}")

    def log_text(self):
        # pread: the server shares the open file and its position
        return os.pread(self.log.fileno(), 1 << 20, 0).decode(errors="replace")

    def wait_for_log(self, text, count=1):
        """Waits until the log has a text this often; an answer may come before its line."""
        for _ in range(ANSWER_SECONDS * 20):
            if self.log_text().count(text) >= count:
                return
            time.sleep(0.05)
        raise AssertionError(f"not {count} times in the log: {text}\n{self.log_text()}")

    def ask(self, method, path, body=None, headers=None, address=None):
        connection = http.client.HTTPConnection(address or self.address, timeout=ANSWER_SECONDS)
        try:
            connection.request(method, path, body or None, headers or {})
            response = connection.getresponse()
            response.data = response.read()
            return response
        finally:
            connection.close()

    def ask_aside(self, *arguments):
        """Asks in another thread; returns a function that waits for the answer or the
        ConnectionError."""
        answers = []

        def ask():
            try:
                answers.append(self.ask(*arguments))
            except ConnectionError as error:
                answers.append(error)

        def answer():
            thread.join()
            return answers[0]

        thread = threading.Thread(target=ask)
        thread.start()
        return answer

    def stop(self):
        """Ends the server as an operator would and returns its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        return self.process.returncode


class ServerCase(unittest.TestCase):
    """A test class with one server; prepare() fills the repository, options are the command
    line's."""

    options = ()
    repository = None       # a folder to serve; None: prepare() fills an empty one

    @classmethod
    def prepare(cls, folder):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        folder = cls.repository
        if folder is None:
            folder = tempfile.mkdtemp()
            cls.addClassCleanup(shutil.rmtree, folder)
            cls.prepare(folder)
        cls.server = Server(folder, *cls.options)
        cls.addClassCleanup(cls._end)

    @classmethod
    def _end(cls):
        status = cls.server.stop()
        if status != 0:
            raise AssertionError(f"the server ended with status {status}")

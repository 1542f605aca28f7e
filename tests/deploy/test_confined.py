"""The server under its unit's system call filters, and with the view of the machine that the unit
leaves it: it starts, loads, answers, reloads, obeys the admin socket, is pinged and drains.
confined.py ends it at the first call that is not allowed."""
import hashlib
import http.client
import json
import math
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "acceptance"))
import support  # noqa: E402

UNIT = support.SOURCE / "deploy/systemd/inferd.service"
CONFINED = (sys.executable, HERE / "confined.py")
SKIPPED = 77

# What ProtectSystem=strict, ProtectControlGroups=yes, ProtectKernelTunables=yes,
# ProtectProc=invisible, ProcSubset=pid and PrivateDevices=yes leave: a system that cannot be
# written, processes' own folders in /proc, and the devices of everybody.
VIEW = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh",
        "-ec","""
    mkdir "$0/dev"
    for device in null zero full random urandom tty; do
        touch "$0/dev/$device"
        mount --bind "/dev/$device" "$0/dev/$device"
    done
    ln -s /proc/self/fd "$0/dev/fd"
    mount --bind "$0" "$0"
    mount --rbind "$0/dev" /dev
    mount -t proc -o subset=pid,hidepid=invisible proc /proc
    for folder in / /sys /sys/fs/cgroup; do
        mount -o remount,bind,ro "$folder" ||
            mount --bind "$folder" "$folder" && mount -o remount,bind,ro "$folder"
    done
    test ! -e /proc/meminfo
    test ! -e /dev/ptmx
    ! touch /usr/writable 2>/dev/null
    exec "$@"
""")


def tensors(value):
    return {"inputs": [{"name": name, "datatype": "INT32", "shape": [1, 16], "data": [value] * 16}
                       for name in ("INPUT0", "INPUT1")]}


def binary_request(value):
    """Headers and body of the same, with both tensors as bytes."""
    inputs = [{
        "name": name, "datatype": "INT32", "shape": [1, 16], "parameters": {"binary_data_size": 64}
    } for name in ("INPUT0", "INPUT1")]
    head = json.dumps(
        {"inputs": inputs, "outputs": [{"name": "OUTPUT0",
                                        "parameters": {"binary_data": True}}]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    return headers, head + struct.pack("<32i", *[value] * 32)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=support.ANSWER_SECONDS)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Confined(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.models = self.folder / "models"
        self.models.mkdir()
        shutil.copytree(support.REPOSITORY / "simple", self.models / "simple")
        shutil.copytree(support.SOURCE / "models/digits", self.models / "digits")
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(str(self.folder / "notify"))
        self.manager.settimeout(support.ANSWER_SECONDS)
        self.config = self.folder / "inferd.conf"
        self.config.write_text(
            f"admin-socket = {self.folder}/admin\naccess-log = {self.folder}/access.log\n"
            f"cache-dir = {self.folder}/cache\nmodel-control-mode = explicit\nload-model = *\n")
        probe = subprocess.run([*CONFINED, UNIT, "true"],
                               capture_output=True,
                               text=True,
                               check=False)
        if probe.returncode == SKIPPED:
            support.skip(probe.stderr.strip())
        self.assertEqual(probe.returncode, 0, probe.stderr)

    def serve(self, prefix):
        environment = {"NOTIFY_SOCKET": str(self.folder / "notify"), "WATCHDOG_USEC": "200000"}
        with unittest.mock.patch.dict(os.environ, environment):
            server = support.Server(self.models, "--config", self.config, prefix=prefix)
        self.addCleanup(server.stop)
        return server

    def admin(self, path):
        connection = UnixConnection(self.folder / "admin")
        connection.request("POST", path, b"")
        response = connection.getresponse()
        response.data = response.read()
        connection.close()
        self.assertEqual(response.status, 200, response.data)
        return json.loads(response.data or "null")

    def infer(self, server, value):
        answer = server.ask("POST", "/v2/models/simple/infer", json.dumps(tensors(value)))
        self.assertEqual(answer.status, 200, answer.data)
        self.assertEqual(json.loads(answer.data)["outputs"][0]["data"], [2 * value] * 16)
        headers, body = binary_request(value)
        answer = server.ask("POST", "/v2/models/simple/infer", body, headers)
        self.assertEqual(answer.status, 200, answer.data)
        self.assertTrue(answer.data.endswith(struct.pack("<16i", *[2 * value] * 16)))

    def live(self, server, pid):
        """Everything that a server does in its life; pid is its process."""
        support.heard(self.manager, "READY=1\n")
        support.heard(self.manager, "WATCHDOG=1")
        self.infer(server, 21)
        tensor = json.loads(server.ask("GET", "/v2/models/digits").data)["inputs"][0]
        shape = [max(dim, 1) for dim in tensor["shape"]]
        digits = json.dumps({
            "inputs": [{
                "name": tensor["name"], "datatype": tensor["datatype"], "shape": shape,
                "data": [0] * math.prod(shape)
            }]
        })
        self.assertEqual(server.ask("POST", "/v2/models/digits/infer", digits).status, 200)
        self.assertIn(b"process_resident_memory_bytes",
                      server.ask("GET", "/metrics", address=server.metrics_address).data)

        self.admin("/v2/repository/models/simple/unload")
        self.assertNotEqual(server.ask("GET", "/v2/models/simple/ready").status, 200)
        self.admin("/v2/repository/models/simple/load")
        self.assertIn({"name": "simple", "version": "3", "state": "READY"},
                      self.admin("/v2/repository/index"))
        self.infer(server, 5)

        (self.folder / "access.log").rename(self.folder / "access.log.1")
        os.kill(pid, signal.SIGHUP)
        support.heard(self.manager, "RELOADING=1\n")
        support.heard(self.manager, "READY=1\n")
        self.infer(server, -3)
        self.assertTrue((self.folder / "access.log").exists())

        os.kill(pid, signal.SIGTERM)
        support.heard(self.manager, "STOPPING=1\n")
        self.assertEqual(server.process.wait(support.ANSWER_SECONDS), 0, server.log_text())
        self.assertIn("stopp", server.log_text())
        self.assertNotIn("model file is not sealed", server.log_text())

    def test_no_call_of_the_server_is_one_that_the_unit_forbids(self):
        server = self.serve((*CONFINED, UNIT))
        self.live(server, server.process.pid)

    def test_tokens_are_read_as_systemd_hands_them_on(self):
        """LoadCredential=: a folder and a file that only the service may read, and not write."""
        credentials = self.folder / "credentials"
        credentials.mkdir()
        self.addCleanup(credentials.chmod, 0o700)
        token = "a" * 64
        digest = hashlib.sha256(token.encode()).hexdigest()
        (credentials / "tokens").write_text(f"camera data sha256:{digest}\n")
        (credentials / "tokens").chmod(0o400)
        credentials.chmod(0o500)
        with self.config.open("a") as config:
            config.write(f"token-file = {credentials}/tokens\n")
        with unittest.mock.patch.dict(os.environ, {"CREDENTIALS_DIRECTORY": str(credentials)}):
            server = self.serve((*CONFINED, UNIT))
        support.heard(self.manager, "READY=1\n")
        for _ in range(2):      # a reload reads the same file once more
            self.assertEqual(server.ask("GET", "/v2").status, 401)
            self.assertEqual(
                server.ask("GET", "/v2", headers={"Authorization": f"Bearer {token}"}).status, 200)
            os.kill(server.process.pid, signal.SIGHUP)
            support.heard(self.manager, "RELOADING=1\n")
            support.heard(self.manager, "READY=1\n")
        self.assertEqual(server.stop(), 0)

    def test_what_the_unit_hides_is_not_needed(self):
        probe = subprocess.run([*VIEW, tempfile.mkdtemp(dir=self.folder), "true"],
                               capture_output=True,
                               text=True,
                               check=False)
        if probe.returncode != 0:
            self.skipTest(f"this system does not let mounts be made: {probe.stderr.strip()}")
        server = self.serve((*VIEW, self.folder, *CONFINED, UNIT))
        children = pathlib.Path(
            f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text().split()
        self.assertEqual(len(children), 1)
        self.assertIn("budget_bytes=", server.log_text())
        self.live(server, int(children[0]))

    def test_calls_that_the_unit_forbids_would_end_the_server(self):
        for taken, line in (("@network-io", "SystemCallFilter=~@network-io"),
                            ("openat2", "SystemCallFilter=~openat2"),
                            ("families", "RestrictAddressFamilies=AF_UNIX")):
            with self.subTest(taken=taken):
                unit = self.folder / "unit"
                unit.write_text(UNIT.read_text() + f"\n{line}\n")
                with self.assertRaisesRegex(RuntimeError, f"status -{signal.SIGSYS.value}"):
                    self.serve((*CONFINED, unit))


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(0 if result.testsRun > len(result.skipped) else SKIPPED)

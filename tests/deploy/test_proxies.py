"""deploy/proxy: HAProxy, nginx and Caddy run with the example files in front of three servers.
Under load one server is reloaded, one is killed and comes back, one is stopped by SIGTERM: no
request fails. Behind Caddy, which cannot send a body again, clients ask again after 502.

Only addresses and names of files are changed in the examples. tests/run.sh unpacks the proxies."""
import contextlib
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "acceptance"))
import support  # noqa: E402

PROXIES = support.SOURCE / "deploy/proxy"
ROOT = support.SOURCE / "build/proxies"  # where tests/run.sh unpacks Debian's packages
PICTURE = support.SOURCE / "models/digits/examples/three.png"
CLIENTS = 6
SKIPPED = 77


def program(name):
    """The path of a proxy: Debian's package, installed or unpacked."""
    for path in (ROOT / "usr/sbin" / name, ROOT / "usr/bin" / name):
        if path.exists():
            return path
    found = shutil.which(name)
    if not found:
        support.skip(f"there is no {name} (Debian's package {name})")
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Load:
    """Clients that ask over TLS without a pause, each on its connection, and count the answers.
    tries: how often each asks while the answer is 502."""

    def __init__(self, port, authority, tries):
        self.tries = tries
        self.port, self.failed, self.count, self.is_over = port, [], 0, False
        self.tls = ssl.create_default_context(cafile=authority)
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]
        for thread in self.threads:
            thread.start()

    def connect(self):
        return http.client.HTTPSConnection("localhost", self.port, context=self.tls,
                                           timeout=support.ANSWER_SECONDS)

    def _ask(self):
        connection, picture = self.connect(), PICTURE.read_bytes()
        while not self.is_over:
            for _ in range(self.tries):
                try:
                    connection.request("POST", "/v2/models/digits/infer", picture,
                                       {"Content-Type": "image/png"})
                    answer = connection.getresponse()
                    text, status = answer.read(), answer.status
                except (OSError, http.client.HTTPException) as error:
                    text, status = repr(error), 0
                    connection.close()
                    connection = self.connect()
                if status != 502:
                    break
                time.sleep(0.1)
            with self.lock:
                self.count += 1
                if status != 200 or b'"three"' not in text:
                    self.failed.append((status, text))
        connection.close()

    def more(self, count):
        """Waits for this many further answers."""
        wanted = self.count + count
        while self.count < wanted:
            time.sleep(0.01)

    def stop(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


class Proxy(unittest.TestCase):
    tries = 1  # of a client

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.certificate = self.folder / "inferd.crt"
        self.key = self.folder / "inferd.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout",
                        self.key, "-out", self.certificate], check=True, capture_output=True)
        shutil.copytree(support.SOURCE / "models/digits", self.folder / "models/digits")

    def serve(self, port=0):
        server = support.Server(self.folder / "models", "--admin-on-http", "--model-control-mode",
                                "explicit", "--load-model", "digits", "--http-port", str(port))
        self.stack.callback(self.end, server)
        return server

    @staticmethod
    def end(server):
        if not server.log.closed:
            server.stop()

    def example(self, name, changes):
        """The example with these pieces replaced; each is there."""
        text = (PROXIES / name).read_text()
        for old, new in changes.items():
            self.assertIn(old, text)
            text = text.replace(old, str(new))
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, port, *command):
        """Starts the proxy and waits until it listens."""
        log = self.stack.enter_context(open(self.folder / "proxy.log", "w+b"))
        environment = dict(os.environ, HOME=str(self.folder))
        libraries = ROOT / "usr/lib" / f"{os.uname().machine}-linux-gnu"
        if libraries.exists():
            environment["LD_LIBRARY_PATH"] = str(libraries)
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, env=environment)
        self.stack.callback(process.wait)
        self.stack.callback(process.terminate)
        while True:
            self.assertIsNone(process.poll(), (self.folder / "proxy.log").read_text())
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                return
            time.sleep(0.05)

    def answered(self, server):
        page = server.ask("GET", "/metrics", address=server.metrics_address).data.decode()
        return int(re.search(r'inferd_requests_total{model="digits".*"ok"} (\d+)', page)[1])

    def takes_part(self, load, server):
        """Waits until the server gets requests."""
        before = self.answered(server)
        while self.answered(server) < before + 20:
            load.more(20)

    def reload(self, server):
        labels = self.folder / "models/digits/labels.txt"
        labels.write_text(labels.read_text() + "\n")
        answer = server.ask("POST", "/v2/repository/models/digits/load")
        self.assertEqual(200, answer.status, answer.data)
        server.process.send_signal(signal.SIGHUP)

    def run_under_load(self, start):
        """start(port, servers) starts the proxy in front of three servers."""
        servers = [self.serve() for _ in range(3)]
        port = free_port()
        start(port, [server.address for server in servers])
        load = Load(port, self.certificate, self.tries)
        self.stack.callback(load.stop)
        for server in servers:
            self.takes_part(load, server)

        self.reload(servers[0])
        load.more(100)
        killed = servers[1]
        killed.process.kill()
        killed.process.wait()
        load.more(300)
        again = self.serve(killed.address.split(":")[1])
        self.takes_part(load, again)
        self.assertEqual(0, servers[2].stop())
        load.more(300)
        for server in (servers[0], again):
            self.takes_part(load, server)

        denied = load.connect()
        denied.request("POST", "/v2/repository/models/digits/unload")
        self.assertEqual(403, denied.getresponse().status)
        denied.close()
        load.stop()
        log = (self.folder / "proxy.log").read_text()[-2000:]
        self.assertEqual([], load.failed[:9], log)

    def pem(self):
        path = self.folder / "inferd.pem"
        path.write_text(self.certificate.read_text() + self.key.read_text())
        return path

    @staticmethod
    def addresses(servers):
        return {f"192.0.2.{i + 1}:8000": address for i, address in enumerate(servers)}


class HAProxy(Proxy):

    def test_no_request_fails(self):
        haproxy = program("haproxy")

        def start(port, servers):
            path = self.example("haproxy.cfg", self.addresses(servers) | {
                ":8443": f"127.0.0.1:{port}", "/etc/haproxy/inferd.pem": self.pem()})
            self.start(port, haproxy, "-db", "-f", path)
        self.run_under_load(start)


class Nginx(Proxy):

    def test_no_request_fails(self):
        nginx = program("nginx")

        def start(port, servers):
            path = self.example("nginx.conf", self.addresses(servers) | {
                "listen 8443": f"listen 127.0.0.1:{port}",
                "/run/nginx.pid": self.folder / "nginx.pid",
                "/etc/nginx/inferd.crt": self.certificate, "/etc/nginx/inferd.key": self.key})
            # where Debian's program keeps bodies of requests, and that it stays in the foreground
            kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            path.write_text(path.read_text().replace("http {", "http {\n" + "".join(
                f"    {kind}_temp_path {self.folder}/{kind};\n" for kind in kinds)))
            self.start(port, nginx, "-c", path, "-g", "daemon off;", "-e", "stderr")
        self.run_under_load(start)


class Caddy(Proxy):
    tries = 50

    def test_no_request_fails(self):
        caddy = program("caddy")

        def start(port, servers):
            path = self.example("Caddyfile", self.addresses(servers) | {
                "https://inference.example:8443": f"https://localhost:{port}",
                "/etc/caddy/inferd.crt": self.certificate, "/etc/caddy/inferd.key": self.key})
            self.start(port, caddy, "run", "--config", path, "--adapter", "caddyfile")
        self.run_under_load(start)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"skipped: {test}: {reason}")
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)

"""Who may ask: tokens made as docs/operate.md says, given to tritonclient, inferctl and curl,
and changed with SIGHUP."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import numpy as np
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import support

INFERCTL = os.environ.get("INFERCTL", support.SOURCE / "build/bin/inferctl")


def readme_commands(word):
    """The indented block of docs/operate.md that has this word, as a shell script."""
    blocks = re.findall(r"(?:^    .*\n)+", (support.SOURCE / "docs/operate.md").read_text(), re.M)
    block, = (b for b in blocks if word in b)
    return re.sub(r"^    ", "", block, flags=re.M)


class Tokens(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.tokens = self.folder / "tokens"

    def make_token(self, name, rest):
        """Runs the manual's commands for another name and other classes; the token."""
        script = readme_commands("/dev/urandom").replace("camera1 data ",
                                                         f"{name} {rest.split(' models=')[0]} ")
        script = script.replace("camera1", name)
        if " models=" in rest:
            script = script.replace("cut -d' ' -f1)",
                                    f"cut -d' ' -f1) models={rest.split(' models=')[1]}")
        subprocess.run(["sh", "-euc", script], cwd=self.folder, check=True)
        return (self.folder / f"{name}.token").read_text().strip()

    def serve(self, *options):
        server = support.Server(support.REPOSITORY, "--strict-readiness=false",
                                f"--token-file={self.tokens}", *options)
        self.addCleanup(server.stop)
        client = triton.InferenceServerClient(server.address)
        self.addCleanup(client.close)
        return server, client

    def refused(self, status, call, *arguments, **keywords):
        with self.assertRaises(InferenceServerException) as caught:
            call(*arguments, **keywords)
        self.assertEqual(caught.exception.status(), status)

    def infer(self, client, token):
        tensors = [triton.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
        for tensor, value in zip(tensors, (7, 3), strict=True):
            tensor.set_data_from_numpy(np.full((1, 16), value, np.int32))
        result = client.infer("simple", tensors, headers={"Authorization": "Bearer " + token})
        return int(result.as_numpy("OUTPUT0")[0][0])

    def test_tritonclient_with_headers(self):
        data, observe, other = (self.make_token(*row) for row in (
            ("camera1", "data"), ("board", "observe"), ("other", "data models=nothing,sim")))
        server, client = self.serve()
        # probes have no token
        self.assertTrue(client.is_server_live() and client.is_server_ready())
        self.assertEqual(self.infer(client, data), 10)
        self.refused("401", self.infer, client, "0" * 64)
        self.refused("401", client.get_server_metadata)
        self.refused("403", self.infer, client, observe)
        self.refused("403", self.infer, client, other)
        headers = {"Authorization": "Bearer " + data}
        self.assertEqual(client.get_model_metadata("simple", headers=headers)["name"], "simple")
        self.assertTrue(client.is_model_ready("simple", headers=headers))
        self.refused("403", client.get_inference_statistics, headers=headers)
        headers = {"Authorization": "Bearer " + observe}
        self.assertTrue(client.get_inference_statistics("simple", headers=headers)["model_stats"])
        self.assertEqual(server.ask("GET", "/metrics", address=server.metrics_address).status, 401)
        page = server.ask("GET", "/metrics", headers=headers, address=server.metrics_address)
        self.assertIn(b'inferd_http_requests_denied_total{reason="model"} 1\n', page.data)
        for token in (data, observe, other):
            self.assertNotIn(token, server.log_text())

    def test_control_over_http_needs_an_admin(self):
        data, admin = self.make_token("camera1", "data"), self.make_token("operator",
                                                                          "admin,observe")
        _, client = self.serve("--model-control-mode=explicit", "--admin-on-http")
        self.refused("401", client.load_model, "simple")
        self.refused("403", client.load_model, "simple",
                     headers={"Authorization": "Bearer " + data})
        client.load_model("simple", headers={"Authorization": "Bearer " + admin})
        self.assertEqual(self.infer(client, data), 10)

    def test_inferctl_and_curl(self):
        self.make_token("camera1", "data")
        server, _ = self.serve()
        ctl = [INFERCTL, "--url", f"http://{server.address}", "metadata", "simple"]
        refusal = subprocess.run(ctl, capture_output=True, text=True)
        self.assertEqual((refusal.returncode, refusal.stderr),
                         (1, "inferctl: this server requires a token: "
                             "Authorization: Bearer TOKEN\n"))
        answer = subprocess.run([*ctl, "--token-file", self.folder / "camera1.token"],
                                capture_output=True, text=True)
        self.assertEqual(answer.returncode, 0)
        self.assertIn('"name": "simple"', answer.stdout)
        if not shutil.which("curl"):
            support.skip("there is no curl (Debian's package curl)")
        script = readme_commands("curl -K -").replace("127.0.0.1:8000", server.address)
        answer = subprocess.run(["sh", "-euc", script], cwd=self.folder, capture_output=True,
                                text=True)
        self.assertIn('"name":"inferd"', answer.stdout)

    def test_tokens_rotate_with_sighup(self):
        old = self.make_token("camera1", "data")
        server, client = self.serve()
        self.assertEqual(self.infer(client, old), 10)
        lines = self.tokens.read_text()
        new = self.make_token("camera2", "data")
        added = self.tokens.read_text()
        for text, count in ((added, 2), (added.removeprefix(lines), 1)):
            fresh = self.folder / "tokens.new"
            fresh.write_text(text)
            fresh.chmod(0o600)
            fresh.rename(self.tokens)
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_log(f"tokens={count}")
            self.assertEqual(self.infer(client, new), 10)
        self.refused("401", self.infer, client, old)

    def test_file_for_everybody_is_no_start(self):
        self.make_token("camera1", "data")
        self.tokens.chmod(0o644)
        with self.assertRaisesRegex(RuntimeError,
                                    r'--token-file ".*/tokens": its mode is 0644, which lets '
                                    r'others read or write it; expected 0600'):
            self.serve()
        with self.assertRaisesRegex(RuntimeError,
                                    "--admin-on-http on address 0.0.0.0 would let everyone there"):
            support.Server(support.REPOSITORY, "--admin-on-http", "--http-address=0.0.0.0")


if __name__ == "__main__":
    unittest.main()

"""A headless Chromium, driven over its DevTools protocol through a pipe: JSON ended by zero bytes
on descriptors 3 and 4."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

import support

PROGRAM = "chromium-headless-shell"
SECONDS = 120   # a machine under load; nothing here measures time


class Browser:
    """One page. Close it."""

    def __init__(self, width=1280, height=900):
        program = shutil.which(PROGRAM)
        if not program:
            support.skip(f"there is no {PROGRAM} (Debian's package of this name)")
        self.folder = tempfile.mkdtemp()
        theirs_in, self.to = os.pipe()
        self.source, theirs_out = os.pipe()
        command = [program, "--headless", "--no-sandbox", "--disable-gpu",
                   "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
                   "--remote-debugging-pipe", f"--user-data-dir={self.folder}"]
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(["bash", "-c", script, "browser", *command],
                                        pass_fds=(theirs_in, theirs_out),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.rest, self.events, self.calls, self.session = b"", [], 0, None
        target = self.call("Target.createTarget", url="about:blank", width=width, height=height)
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(domain + ".enable")

    def close(self):
        os.close(self.to)     # it ends by itself then
        os.close(self.source)
        try:
            self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _message(self):
        while b"\0" not in self.rest:
            if not select.select([self.source], [], [], SECONDS)[0]:
                raise AssertionError("the browser does not answer")
            more = os.read(self.source, 1 << 20)
            if not more:
                raise AssertionError("the browser ended")
            self.rest += more
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def call(self, method, **params):
        """The result of a call; events that come before it are kept."""
        self.calls += 1
        message = {"id": self.calls, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") != self.calls:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise AssertionError(f"{method}: {answer['error']}")
            return answer["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def run(self, script):
        """The value of an expression of JavaScript, a promise's when it is there."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, script):
        """Until an expression is true."""
        for _ in range(SECONDS * 10):
            if self.run(f"Boolean({script})"):
                return
            time.sleep(0.1)
        raise AssertionError(f"not true after {SECONDS} s: {script}\n" +
                             str(self.run("document.body.innerText.slice(0, 4000)")))

    def choose_file(self, selector, path):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(pathlib.Path(path).resolve())])

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """light or dark"""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        """Of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        pathlib.Path(path).write_bytes(base64.b64decode(answer["data"]))

    def complaints(self):
        """What the page logged, threw or was refused by its policy."""
        return [str(event["params"]) for event in self.events if event["method"] in
                ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")]

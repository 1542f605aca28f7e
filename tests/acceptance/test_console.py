"""The page /console in a headless Chromium, as a person uses it. INFERD_SCREENSHOTS names a folder
for pictures of it."""
import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest

import browser
import support

MARKUP = "<script>document.title=1</script><img src=x onerror=document.title=1>"
VWW = """output [ { name: "Identity_int8" data_type: TYPE_INT8 dims: [ 1, 2 ]
                     label_filename: "labels.txt" } ]"""
ROWS = "[...document.querySelectorAll('#models tbody tr')]"


def row(model):
    return f"{ROWS}.find((row) => row.querySelector('button').textContent === {json.dumps(model)})"


def state(model):
    return f"{row(model)}.children[2].textContent"


def press(model, label):
    return (f"[...{row(model)}.querySelectorAll('button')]"
            f".find((button) => button.textContent === {json.dumps(label)}).click()")


def text(name):
    return f"document.getElementById({json.dumps(name)}).textContent"


def picture(page, name):
    folder = os.environ.get("INFERD_SCREENSHOTS")
    if folder:
        page.screenshot(pathlib.Path(folder) / (name + ".png"))


class Console(support.ServerCase):
    options = ("--model-control-mode=explicit", "--load-model=*", "--admin-on-http",
               "--strict-readiness=false", "--backend=CpuAcc,CpuRef")

    @classmethod
    def prepare(cls, folder):
        folder = pathlib.Path(folder)
        support.add_model(folder, "ssd", support.shared(
            "models/tflite/coco_ssd_mobilenet_v1_1.0_quant.tflite"))
        support.add_model(folder, "vww", support.shared("models/tflite/vww_96_int8.tflite"),
                          config=VWW)
        support.add_model(folder, "deeplab", support.shared(
            "models/tflite/deeplabv3_257_float.tflite"))
        (folder / "vww/labels.txt").write_text(f"{MARKUP}empty\n{MARKUP}person\n")
        shutil.copytree(support.REPOSITORY / "simple", folder / "simple")
        for name, config in (("reason", f'backend: "{MARKUP}"'),
                             ("odd<b>name", "")):
            (folder / name).mkdir()
            (folder / name / "config.pbtxt").write_text(config)

    def setUp(self):
        self.page = browser.Browser()
        self.addCleanup(self.page.close)

    def open(self, server=None):
        self.page.open(f"http://{(server or self.server).address}/console")

    def open_models(self):
        self.open()
        self.page.wait(f"{ROWS}.length === 7")

    def choose(self, model):
        self.page.run(press(model, model))
        self.page.wait(text("ports") + " !== ''")

    def assert_quiet(self):
        """The page threw nothing, logged nothing and stayed within its policy."""
        self.assertEqual(self.page.complaints(), [])

    def test_policy_allows_the_script_and_the_style_of_the_page_alone(self):
        answer = self.server.ask("GET", "/console")
        page = answer.data.decode("ascii")
        policy = answer.getheader("Content-Security-Policy")
        directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        for tag, directive in (("script", "script-src"), ("style", "style-src")):
            content, = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.S)
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            self.assertEqual(directives[directive], f"'sha256-{digest}'")
        for directive in ("default-src", "frame-ancestors", "base-uri", "form-action"):
            self.assertEqual(directives[directive], "'none'")
        self.assertEqual(directives["connect-src"], "'self'")
        self.assertEqual(answer.getheader("X-Content-Type-Options"), "nosniff")
        self.assertEqual(answer.getheader("Referrer-Policy"), "no-referrer")
        self.assertEqual(set(re.findall(r"\w+://[\w.]+", page)), {"http://www.w3.org"})
        self.assertEqual(re.findall(r"\s(?:on\w+|style|src|href)=|innerHTML|outerHTML|\beval\b|"
                                    r"insertAdjacent|document\.write|Storage|cookie", page), [])
        self.assertEqual(self.server.ask("HEAD", "/console").status, 200)

    def test_models_are_shown_and_text_stays_text(self):
        self.open_models()
        self.assertEqual(self.page.run(state("ssd")), "READY")
        self.assertEqual(self.page.run(state("reason")), "UNAVAILABLE")
        self.assertIn(MARKUP, self.page.run(f"{row('reason')}.children[3].textContent"))
        self.assertEqual(self.page.run(state("odd<b>name")), "UNAVAILABLE")
        self.page.run(press("reason", "Load"))
        self.page.wait(text("control") + ".includes('<script>')")
        self.choose("vww")
        self.page.choose_file("#picture", support.shared("images/cats_and_dogs.jpg"))
        self.page.run("document.querySelector('#try button').click()")
        self.page.wait("document.getElementById('drawn').naturalWidth > 0")
        self.assertIn(MARKUP + "person", self.page.run(text("found")))
        self.assertEqual(self.page.run("document.title"), "inferd console")
        self.assertEqual(self.page.run("document.scripts.length"), 1)
        self.assertEqual(self.page.run("document.images.length"), 1)
        refused = [c for c in self.page.complaints() if "status of 400" not in c]  # the failed load
        self.assertEqual(refused, [])

    def test_policy_stops_what_gets_in(self):
        """The second line of defence works: markup that a mistake would let in does not run."""
        self.open_models()
        with self.assertRaisesRegex(AssertionError, "TrustedHTML"):
            self.page.run(f"document.body.innerHTML = {json.dumps(MARKUP)}")
        self.page.run("{ const style = document.createElement('style');"
                      "style.textContent = 'body { color: red }'; document.head.append(style); }")
        self.assertNotEqual(self.page.run("getComputedStyle(document.body).color"),
                            "rgb(255, 0, 0)")
        with self.assertRaisesRegex(AssertionError, "Failed to fetch"):
            self.page.run("fetch('http://127.0.0.2:1/')")
        self.assertTrue(any("connect-src" in text for text in self.page.complaints()))

    def test_picture_shows_what_the_server_finds(self):
        self.open_models()
        self.choose("ssd")
        path = support.shared("images/cats_and_dogs.jpg")
        answer = self.server.ask("POST", "/v2/models/ssd/infer?threshold=0.6", path.read_bytes(),
                                 {"Content-Type": "image/jpeg"})
        wanted = json.loads(answer.data)
        self.page.run("document.getElementById('threshold').value = '0.6'")
        self.page.choose_file("#picture", path)
        self.page.run("document.querySelector('#try button').click()")
        self.page.wait("document.getElementById('drawn').naturalWidth > 0")
        found = self.page.run("[...document.querySelectorAll('#found tbody tr')].map((row) => "
                              "[...row.cells].map((cell) => cell.textContent))")
        self.assertEqual(found, [[each["label"], f"{each['score']:.3f}",
                                  ", ".join(str(int(v + 0.5)) for v in each["box"])]
                                 for each in wanted["objects"]])
        self.assertGreater(len(found), 0)
        self.assertEqual(self.page.run("document.getElementById('drawn').naturalWidth"),
                         wanted["image"]["width"])
        self.assert_quiet()

    def test_picture_shows_the_share_of_each_segment(self):
        self.open_models()
        self.choose("deeplab")
        path = support.shared("images/cats_and_dogs.jpg")
        wanted = json.loads(self.server.ask("POST", "/v2/models/deeplab/infer", path.read_bytes(),
                                            {"Content-Type": "image/jpeg"}).data)["segments"]
        self.page.choose_file("#picture", path)
        self.page.run("document.querySelector('#try button').click()")
        self.page.wait("document.querySelector('#found tbody')")
        self.assertEqual(self.page.run("[...document.querySelectorAll('#found tbody tr')].map("
                                       "(row) => [...row.cells].map((cell) => cell.textContent))"),
                         [[each["label"], f"{each['area']:.4f}"] for each in wanted])
        self.assertGreater(len(wanted), 1)

    def test_hidden_page_asks_nothing(self):
        self.page.call("Page.addScriptToEvaluateOnNewDocument", source="""
            setInterval = (what) => { tick = what; };
            hide = (value) => Object.defineProperty(document, "hidden",
                                                    {value, configurable: true});
            asked = 0; ask_server = fetch;
            fetch = (...what) => { asked++; return ask_server(...what); };""")
        self.open_models()
        self.page.wait(text("ready") + " !== 'asking the server'")
        for event in ("tick()", "document.dispatchEvent(new Event('visibilitychange'))"):
            for hidden, asked in (("true", 0), ("false", 1)):
                self.assertEqual(self.page.run(f"asked = 0; hide({hidden}); {event}; asked"), asked)

    def test_steps_and_graph_have_the_colours_of_their_backends(self):
        self.open_models()
        self.choose("ssd")
        self.page.run("document.querySelector('#measure button').click()")
        self.page.wait("document.querySelector('#graph svg')")
        plan = json.loads(self.server.ask("POST", "/v2/models/ssd/profile").data)["plan"]
        cells = ("[...document.querySelectorAll('#steps tbody tr')].map((row) => "
                 "[...row.cells].map((cell) => cell.textContent))")
        steps = self.page.run(cells)
        self.assertEqual([[s[0], s[4], s[5], s[6], s[7]] for s in steps],
                         [[str(i), s["backend"], s["name"], s["kernel"], s["output"]]
                          for i, s in enumerate(plan["steps"])])
        self.assertEqual({s["backend"] for s in plan["steps"]}, {"CpuAcc", "CpuRef"})
        self.assertEqual(self.page.run("document.querySelectorAll('#graph g').length"),
                         len(plan["graph"]["nodes"]))
        color = ("[...document.querySelectorAll('#graph g')].find((g) => g.textContent.includes("
                 "{!r})).querySelector('.node').getAttribute('stroke')")
        first, last = (self.page.run(color.format(op)) for op in ("conv2d", "detection"))
        self.assertNotEqual(first, last)
        self.page.run("document.getElementById('sorted').click()")
        times = [float(step[1]) for step in self.page.run(cells) if step[2]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assert_quiet()

    def test_models_are_unloaded_and_loaded(self):
        self.open_models()
        self.page.run(press("vww", "Unload"))
        self.page.wait(state("vww") + " === 'UNAVAILABLE'")
        self.page.wait(text("control") + " === 'vww is unloaded'")
        self.page.wait(f"!{row('vww')}.querySelectorAll('button')[1].disabled")
        self.page.run(press("vww", "Load"))
        self.page.wait(state("vww") + " === 'READY'")
        self.assertEqual(self.server.ask("GET", "/v2/models/vww/ready").status, 200)
        self.assert_quiet()

    def test_page_fits_its_window_in_light_and_dark(self):
        self.open_models()
        self.choose("ssd")
        self.page.choose_file("#picture", support.shared("images/cats_and_dogs.jpg"))
        self.page.run("document.querySelector('#try button').click()")
        self.page.wait("document.getElementById('drawn').naturalWidth > 0")
        self.page.run("document.querySelector('#measure button').click()")
        self.page.wait("document.querySelector('#graph svg')")
        papers = set()
        for width in (1280, 400):
            for scheme in ("light", "dark"):
                self.page.size(width, 900)
                self.page.prefer(scheme)
                self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
                papers.add(self.page.run("getComputedStyle(document.body).backgroundColor"))
                picture(self.page, f"console-{width}-{scheme}")
        self.assertEqual(len(papers), 2)
        self.assertEqual(self.page.run("[...document.querySelectorAll('input,select')].filter((i) "
                                       "=> !i.labels.length && !i.ariaLabel).length"), 0)


class Closed(unittest.TestCase):
    def serve(self, *options):
        server = support.Server(support.REPOSITORY, "--strict-readiness=false", *options)
        self.addCleanup(server.stop)
        return server

    def open(self, server):
        page = browser.Browser()
        self.addCleanup(page.close)
        page.open(f"http://{server.address}/console")
        return page

    def test_nothing_can_be_changed_where_the_admin_plane_is_closed(self):
        for options in ((), ("--model-control-mode=explicit", "--load-model=simple")):
            page = self.open(self.serve(*options))
            page.wait(f"{ROWS}.some((row) => row.textContent.includes('READY'))")
            self.assertEqual(page.run("document.querySelectorAll('#models tbody button:not(.link)')"
                                      ".length"), 0)
            self.assertTrue(page.run("document.getElementById('load').hidden"))

    def test_page_asks_for_the_token(self):
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        token = "0123456789abcdef" * 4
        tokens = folder / "tokens"
        tokens.write_text(
            f"me data,observe sha256:{hashlib.sha256(token.encode()).hexdigest()}\n")
        tokens.chmod(0o600)
        page = self.open(self.serve(f"--token-file={tokens}"))
        page.wait("!document.getElementById('login').hidden")
        self.assertEqual(page.run(f"{ROWS}.length"), 0)
        enter = ("document.getElementById('token').value = {!r};"
                 "document.querySelector('#login button').click()")
        page.run(enter.format("wrong"))
        page.wait("!document.getElementById('problem').hidden")
        picture(page, "console-token")
        page.run(enter.format(token))
        page.wait(f"{ROWS}.some((row) => row.textContent.includes('READY'))")
        self.assertTrue(page.run("document.getElementById('login').hidden"))
        self.assertEqual(page.run("document.getElementById('token').value"), "")
        self.assertEqual(page.run("localStorage.length + sessionStorage.length + "
                                  "document.cookie.length"), 0)

    def test_page_can_be_left_out(self):
        answer = self.serve("--console=false").ask("GET", "/console")
        self.assertEqual(answer.status, 404)
        self.assertIn(b"--console=false", answer.data)


if __name__ == "__main__":
    unittest.main()

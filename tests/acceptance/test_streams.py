"""Streams of frames and recorders: inferd-camera, requests of one source, and forms as Frigate and
others send them."""
import io
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from deepstack import core as deepstack
from PIL import Image

import support

CAMERA = support.SERVER.with_name("inferd-camera")
COLUMNS = ("sent", "answered", "skipped", "refused", "failed", "lost")


def camera(*arguments):
    return subprocess.run([CAMERA, *map(str, arguments)], capture_output=True, text=True,
                          timeout=support.ANSWER_SECONDS, check=False)


def rows(text):
    """The counts of each row by name."""
    return {found[1]: dict(zip(COLUMNS, map(int, found[2].split())))
            for found in re.finditer(r"^(\S+) +((?:\d+ +){6})[\d.]+ +[\d.]+ +[\d.]+$", text, re.M)}


def form(fields, picture):
    """multipart/form-data as python-requests writes it, which Frigate uses."""
    boundary = "3f1b8a0c9de14c5d8a7b6c5d4e3f2a1b"
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
             .encode() for name, value in fields.items()]
    parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="image"; '
                 'filename="image"\r\n\r\n'.encode() + picture + b"\r\n")
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def parts(boundary, *fields, end="--\r\n"):
    """A form of fields: the lines of each header, then its content."""
    body = b""
    for *header, content in fields:
        head = "".join(line + "\r\n" for line in header)
        body += f"--{boundary}\r\n{head}\r\n".encode() + content + b"\r\n"
    return body + f"--{boundary}{end}".encode()


def requests_of_others(picture):
    """Headers and body, as the libraries of other recorders and their helpers write a picture and
    a least confidence of 0.5: (who, headers, body)."""
    guid = "6cb9a5e2-7f0e-4b4e-9b8e-0a51b6c0f7d4"
    yield (".NET: Agent DVR and CodeProject.AI's own clients",
           {"Content-Type": f'multipart/form-data; boundary="{guid}"'},
           parts(guid,
                 ("Content-Disposition: form-data; name=image; filename=image.jpg; "
                  "filename*=utf-8''image.jpg", picture),
                 ("Content-Type: text/plain; charset=utf-8",
                  "Content-Disposition: form-data; name=min_confidence", b"0.5")))
    dashes = "----WebKitFormBoundaryYt7Bf1hQ0q9vJmPz"
    yield ("a browser: CodeProject.AI's page",
           {"Content-Type": f"multipart/form-data; boundary={dashes}", "Accept": "*/*",
            "Origin": "http://camera.local"},
           parts(dashes,
                 ('Content-Disposition: form-data; name="image"; filename="front door (1).jpg"',
                  "Content-Type: image/jpeg", picture),
                 ('Content-Disposition: form-data; name="min_confidence"', b"0.5")))
    digits = "--------------------------271828182845904523536028"
    yield ("node's form-data: triggers, Node-RED",
           {"Content-Type": f"multipart/form-data; boundary={digits}",
            "Accept": "application/json"},
           parts(digits,
                 ('Content-Disposition: form-data; name="min_confidence"', b"0.5"),
                 ('Content-Disposition: form-data; name="image"; filename="Einfahrt ä.jpg"',
                  "Content-Type: image/jpeg", picture)))
    yield ("curl: scripts", {"Content-Type": f"multipart/form-data; boundary={digits}",
                             "User-Agent": "curl/7.88.1", "Accept": "*/*"},
           parts(digits,
                 ('Content-Disposition: form-data; name="image"; filename="a.jpg"',
                  "Content-Type: image/jpeg", picture),
                 ('Content-Disposition: form-data; name="min_confidence"', b"0.5"),
                 ('Content-Disposition: form-data; name="typedet"', b"ONNX")))
    yield ("no name of a file, and no last line break: Go, microcontrollers",
           {"content-type": "multipart/form-data;boundary=x"},
           parts("x", ('content-disposition: form-data; name="min_confidence"', b"0.5"),
                 ('content-disposition: form-data; name="image"',
                  "content-type: application/octet-stream", picture), end="--"))


class Cameras(support.ServerCase):
    repository = support.SOURCE / "models"

    def url(self):
        return f"http://{self.server.address}"

    def pictures(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        for picture in (support.SOURCE / "models/digits/examples").glob("*.png"):
            shutil.copy(picture, folder)
        return folder

    def frames(self, result):
        page = self.server.ask("GET", "/metrics", address=self.server.metrics_address)
        series = rf'inferd_frames_total\{{model="digits",version="1",result="{result}"\}} (\d+)'
        return int(re.search(series, page.data.decode())[1])

    def test_the_camera_and_the_server_count_the_same(self):
        before = {name: self.frames(name) for name in ("answered", "skipped", "stale")}
        ended = camera("--url", self.url(), "--cameras", 3, "--rate", 40, "--seconds", 1, "--each",
                       "--prefix", "gate ", "digits", self.pictures())
        self.assertEqual(ended.returncode, 0, ended.stderr)
        counts = rows(ended.stdout.replace("gate ", "gate"))
        self.assertEqual(sorted(counts), ["all", "gate0", "gate1", "gate2"])
        total = counts["all"]
        for column in COLUMNS:
            self.assertEqual(total[column],
                             sum(counts[f"gate{i}"][column] for i in range(3)), column)
        self.assertGreater(total["answered"], 0)
        self.assertEqual(total["failed"], 0)
        self.assertEqual(total["sent"], total["answered"] + total["skipped"] + total["refused"])
        self.assertEqual(total["answered"], self.frames("answered") - before["answered"])
        self.assertEqual(total["skipped"], self.frames("skipped") - before["skipped"])
        self.assertEqual(total["refused"], self.frames("stale") - before["stale"])

    def test_what_cannot_be_sent_is_told(self):
        folder = self.pictures()
        for arguments, status, text in (
                (("nobody", folder), 3, "camera0: Request for unknown model: 'nobody'"),
                (("digits", folder + "/nothing"), 2, "nothing: No such file"),
                (("digits", "/dev/null"), 2, "/dev/null: is no camera (V4L2)"),
                (("--rate", "0", "digits", folder), 2, '--rate: "0" is not a number from 0.01'),
                (("--cameras", "1.5", "digits", folder), 2, '"1.5" is not a whole number'),
                (("--size", "640", "digits", folder), 2, '--size: "640" is not as 1280x720'),
                (("--token-file", folder + "/no", "digits", folder), 2, "No such file"),
                (("digits",), 2, "usage: inferd-camera")):
            with self.subTest(arguments=arguments):
                ended = camera("--url", self.url(), "--seconds", "0.3", *arguments)
                self.assertEqual(ended.returncode, status, ended.stderr)
                self.assertIn(text, ended.stderr)
        self.assertIn("camera \\- sends", camera("--man").stdout)

    def test_every_frame_of_a_source_is_answered(self):
        picture = next((support.SOURCE / "models/digits/examples").glob("*.png")).read_bytes()
        answers = [self.server.ask_aside("POST", "/v2/models/digits/infer?source=door", picture,
                                         {"Content-Type": "image/png"}) for _ in range(16)]
        statuses = [answer().status for answer in answers]
        self.assertLessEqual(set(statuses), {200, 409})
        self.assertIn(200, statuses)


class Recorders(support.ServerCase):
    @classmethod
    def prepare(cls, folder):
        support.add_model(
            folder, "ssd", support.shared("models/tflite/coco_ssd_mobilenet_v1_1.0_quant.tflite"),
            config='parameters { key: "preset" value { string_value: "ssd" } } '
                   'parameters { key: "labels" value { string_value: "coco" } }')
        support.add_model(
            folder, "faces", support.shared("models/tflite/ultraface_rfb_320.tflite"),
            config='parameters { key: "preset" value { string_value: "ultraface" } }')

    def post(self, path, body, headers):
        answer = self.server.ask("POST", path, body, headers)
        return answer.status, json.loads(answer.data)

    def check(self, path, model, fields, picture, threshold):
        """The same objects as the server's own answer has, in the recorders' form."""
        status, got = self.post(path, *form(fields, picture))
        self.assertEqual(status, 200, got)
        _, own = self.post(f"/v2/models/{model}/infer?threshold={threshold}", picture, {})
        self.assertTrue(own["objects"])
        self.assertIs(got["success"], True)
        self.assertEqual(got["count"], len(own["objects"]))
        self.assertEqual(len(got["predictions"]), len(own["objects"]))
        for prediction, wanted in zip(got["predictions"], own["objects"]):
            self.assertEqual(prediction["confidence"], wanted["score"])
            for name, value in zip(("x_min", "y_min", "x_max", "y_max"), wanted["box"]):
                self.assertIsInstance(prediction[name], int)
                self.assertLessEqual(abs(prediction[name] - value), 0.56) # both are rounded
        confidences = [prediction["confidence"] for prediction in got["predictions"]]
        self.assertEqual(confidences, sorted(confidences, reverse=True)) # Frigate stops at 0.4
        self.assertIsInstance(got["duration"], int)
        return got["predictions"]

    def test_frigate(self):
        """It sends a JPEG of the model's size, an empty key, and no least confidence."""
        photo = Image.open(support.shared("images/cat_720p.jpg")).convert("RGB")
        for size in ((1280, 720), (320, 320)):
            buffer = io.BytesIO()
            photo.resize(size).save(buffer, "JPEG")
            predictions = self.check("/v1/vision/detection", "ssd", {"api_key": ""},
                                     buffer.getvalue(), 0.4)
            self.assertEqual(predictions[0]["label"], "cat")

    def test_home_assistant(self):
        """Its DeepStack sensor, by python-requests: an empty key, models by name, status 200."""
        picture = support.shared("images/cat_720p.jpg").read_bytes()
        for path in ("/v1/vision/detection", "/v1/vision/custom/ssd"):
            seen = self.check(path, "ssd", {"api_key": ""}, picture, 0.4)
            self.assertEqual({"confidence", "label", "x_min", "y_min", "x_max", "y_max"},
                             set(seen[0]))

    def test_home_assistants_client(self):
        """deepstack-python, which its integrations ask with."""
        place = (*self.server.address.split(":"), "", 30, 0.4)
        picture = support.shared("images/cat_720p.jpg").read_bytes()
        for client in (deepstack.DeepstackObject(*place),
                       deepstack.DeepstackObject(*place, "ssd")):
            found = client.detect(picture)
            self.assertEqual(found, self.check("/v1/vision/custom/ssd", "ssd", {}, picture, 0.4))
            self.assertEqual(deepstack.get_objects_summary(found), {"cat": 1})
        faces = deepstack.DeepstackFace(*place[:4])
        buffer = io.BytesIO()
        Image.open(support.shared("images/grace_hopper.bmp")).save(buffer, "JPEG")
        self.assertEqual(faces.detect(buffer.getvalue()),
                         self.check("/v1/vision/face", "faces", {}, buffer.getvalue(), 0.4))
        with self.assertRaisesRegex(deepstack.DeepstackException, "404"):
            deepstack.DeepstackObject(*place, "nobody").detect(picture)

    def test_the_forms_of_other_libraries(self):
        picture = support.shared("images/cats_and_dogs.jpg").read_bytes()
        want = self.check("/v1/vision/custom/ssd", "ssd", {"min_confidence": "0.5"}, picture, 0.5)
        for who, headers, body in requests_of_others(picture):
            for path in ("/v1/vision/detection", "/v1/vision/custom/ssd"):
                with self.subTest(who, path=path):
                    status, got = self.post(path, body, headers)
                    self.assertEqual(status, 200, got)
                    self.assertEqual(got["predictions"], want)

    def test_blue_iris_lists_models_first(self):
        """By POST without a body."""
        answer = self.server.ask("POST", "/v1/vision/custom/list", b"")
        self.assertEqual(answer.status, 200)
        self.assertEqual(json.loads(answer.data)["models"], ["faces", "ssd"])

    def test_models_by_name_and_least_confidence(self):
        picture = support.shared("images/cats_and_dogs.jpg").read_bytes()
        few = self.check("/v1/vision/custom/ssd", "ssd", {"min_confidence": "0.6"}, picture, 0.6)
        many = self.check("/v1/vision/custom/ssd", "ssd", {"min_confidence": "0.3"}, picture, 0.3)
        self.assertLess(len(few), len(many))
        self.assertLessEqual({prediction["label"] for prediction in few}, {"cat", "dog"})

    def test_faces(self):
        buffer = io.BytesIO()
        Image.open(support.shared("images/grace_hopper.bmp")).save(buffer, "JPEG")
        face, *_ = self.check("/v1/vision/face", "faces", {"min_confidence": 0.7},
                              buffer.getvalue(), 0.7)
        self.assertNotIn("label", face)

    def test_the_list(self):
        answer = self.server.ask("GET", "/v1/vision/custom/list")
        self.assertEqual(json.loads(answer.data), {"success": True, "models": ["faces", "ssd"]})

    def test_errors(self):
        for path, body, status, text in (
                ("/v1/vision/custom/nobody", form({}, b"x"), 404, "unknown model: 'nobody'"),
                ("/v1/vision/detection", form({}, b"GIF89a"), 400, "picture"),
                ("/v1/vision/detection", form({"min_confidence": "2"}, b"x"), 400,
                 'min_confidence: "2" is not a number between 0 and 1'),
                ("/v1/vision/detection", (b"", {}), 400, "a file called image")):
            with self.subTest(path=path, text=text):
                got, answer = self.post(path, *body)
                self.assertEqual(got, status, answer)
                self.assertIs(answer["success"], False)
                self.assertIn(text, answer["error"])


if __name__ == "__main__":
    unittest.main()

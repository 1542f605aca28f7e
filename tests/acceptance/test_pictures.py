"""Pictures in, labels out: digits and photos with known answers, as whole bodies and as
image_client.py sends them."""
import io
import json
import unittest

import numpy as np
import tritonclient.http as triton
from PIL import Image
from tritonclient.utils import triton_to_np_dtype

import support

KNOWN = {"cat.bmp": "Egyptian cat", "cat_720p.jpg": "Egyptian cat", "parrot.jpg": "macaw",
         "grace_hopper.bmp": "military uniform"}

# What Triton's example repository would say about this model.
MOBILENET ="""
max_batch_size: 4
input [ { name: "input" data_type: TYPE_UINT8 format: FORMAT_NHWC dims: [ 224, 224, 3 ] } ]
output [ { name: "MobilenetV2/Predictions/Softmax" data_type: TYPE_UINT8 dims: [ 1001 ]
           label_filename: "labels.txt" } ]
"""


def best_label(answer):
    """The label of the best class in an answer to a picture."""
    return answer["classes"][0]["label"].split(",")[0]


def encoded(path):
    """A picture file's bytes and content type; what is neither JPEG nor PNG becomes PNG."""
    if path.suffix == ".jpg":
        return path.read_bytes(), "image/jpeg"
    if path.suffix == ".png":
        return path.read_bytes(), "image/png"
    buffer = io.BytesIO()
    Image.open(path).convert("RGB").save(buffer, "PNG")
    return buffer.getvalue(), "image/png"


class Digits(support.ServerCase):
    repository = support.SOURCE / "models"

    def test_examples_are_named(self):
        examples = sorted((self.repository / "digits/examples").glob("*.png"))
        self.assertGreaterEqual(len(examples), 2)
        for path in examples:
            response = self.server.ask("POST", "/v2/models/digits/infer", path.read_bytes(),
                                       {"Content-Type": "image/png"})
            self.assertEqual(response.status, 200, response.data[:500])
            self.assertEqual(best_label(json.loads(response.data)), path.stem)

    def test_other_sizes_and_jpeg_are_named_too(self):
        picture = Image.open(self.repository / "digits/examples/three.png").convert("RGB")
        for width, height in ((32, 32), (20, 24), (700, 500)):
            for kind, content_type in (("PNG", "image/png"), ("JPEG", "image/jpeg")):
                buffer = io.BytesIO()
                picture.resize((width, height), Image.BILINEAR).save(buffer, kind)
                response = self.server.ask("POST", "/v2/models/digits/infer", buffer.getvalue(),
                                           {"Content-Type": content_type})
                self.assertEqual(best_label(json.loads(response.data)), "three",
                                 (width, height, kind))

    def test_what_is_no_picture_is_refused(self):
        jpeg = io.BytesIO()
        Image.new("RGB", (64, 64), "white").save(jpeg, "JPEG")
        png = io.BytesIO()
        Image.new("RGB", (64, 64), "white").save(png, "PNG")
        for name, body in (("nothing", b""), ("text", b"no picture"),
                           ("cut PNG", png.getvalue()[:40]),
                           ("cut JPEG", jpeg.getvalue()[:100]),
                           ("a header alone", b"\x89PNG\r\n\x1a\n")):
            for content_type in ("image/png", "image/jpeg"):
                with self.subTest(name, content_type=content_type):
                    response = self.server.ask("POST", "/v2/models/digits/infer", body,
                                               {"Content-Type": content_type})
                    self.assertEqual(response.status, 400)
                    self.assertTrue(json.loads(response.data)["error"])
        self.assertEqual(self.server.ask("GET", "/v2/health/live").status, 200)

    def test_header_of_a_huge_picture_is_refused(self):
        huge = io.BytesIO()
        Image.new("RGB", (8, 8)).save(huge, "JPEG")
        body = bytearray(huge.getvalue())
        at = body.index(b"\xff\xc0")
        body[at + 5:at + 9] = (30000).to_bytes(2, "big") * 2
        response = self.server.ask("POST", "/v2/models/digits/infer", bytes(body),
                                   {"Content-Type": "image/jpeg"})
        self.assertIn(response.status, (400, 413))
        self.assertTrue(json.loads(response.data)["error"])


class Memory(support.ServerCase):
    repository = support.SOURCE / "models"
    options = ("--request-memory=8388608",)

    def test_coefficients_of_progressive_pictures_are_counted(self):
        """A file of 30 KB, whose decoder needs 12 MB for all coefficients at once."""
        for is_progressive, status in ((True, 503), (False, 200)):
            picture = io.BytesIO()
            Image.new("RGB", (2048, 2048), "white").save(picture, "JPEG",
                                                         progressive=is_progressive)
            response = self.server.ask("POST", "/v2/models/digits/infer", picture.getvalue(),
                                       {"Content-Type": "image/jpeg"})
            self.assertEqual(response.status, status, response.data[:500])
            if is_progressive:
                self.assertEqual(json.loads(response.data)["error"],
                                 "no memory to decode a JPEG picture of 2048×2048")
        page = self.server.ask("GET", "/metrics", address=self.server.metrics_address).data
        self.assertIn(b'\ninferd_limit_hits_total{limit="request-memory"} 1\n', page)

    def test_memory_of_webp_is_counted(self):
        """A file of some hundred bytes, which libwebp unpacks in memory of its own."""
        for side, status in ((2000, 503), (500, 200)):
            picture = io.BytesIO()
            Image.new("RGB", (side, side), "white").save(picture, "WEBP", lossless=True)
            self.assertLess(len(picture.getvalue()), 1000)
            response = self.server.ask("POST", "/v2/models/digits/infer", picture.getvalue())
            self.assertEqual(response.status, status, response.data[:500])
            if status == 503:
                self.assertIn("no memory", json.loads(response.data)["error"])
        self.assertEqual(self.server.ask("GET", "/v2/health/live").status, 200)


class MobileNet(support.ServerCase):
    @classmethod
    def prepare(cls, folder):
        support.add_model(folder, "mobilenet",
                          support.shared("models/tflite/mobilenet_v2_1.0_224_quant.tflite"),
                          labels=support.shared("labels/imagenet_labels.txt"), config=MOBILENET)

    def test_photos_as_whole_bodies(self):
        for name, label in KNOWN.items():
            with self.subTest(name):
                body, content_type = encoded(support.shared("images/" + name))
                response = self.server.ask("POST", "/v2/models/mobilenet/infer", body,
                                           {"Content-Type": content_type})
                self.assertEqual(response.status, 200, response.data[:500])
                self.assertEqual(best_label(json.loads(response.data)), label)

    def test_photos_as_image_client_sends_them(self):
        """Triton's image_client.py: reads metadata and config, scales the picture itself, asks
        for classes."""
        client = triton.InferenceServerClient(self.server.address)
        self.addCleanup(client.close)
        metadata, config = client.get_model_metadata("mobilenet"), client.get_model_config(
            "mobilenet")
        self.assertEqual(len(metadata["inputs"]), 1)
        self.assertEqual(len(config["input"]), 1)
        self.assertEqual(config["input"][0]["format"], "FORMAT_NHWC")
        self.assertGreater(config["max_batch_size"], 0)
        described, output = metadata["inputs"][0], metadata["outputs"][0]
        self.assertEqual(len(described["shape"]), 4)
        height, width, _ = described["shape"][1:]
        pictures = [Image.open(support.shared("images/" + n)).convert("RGB").resize((width, height),
                                                                                    Image.BILINEAR)
                    for n in KNOWN]
        batch = np.stack([np.asarray(p)
                          for p in pictures]).astype(triton_to_np_dtype(described["datatype"]))
        tensor = triton.InferInput(described["name"], list(batch.shape), described["datatype"])
        tensor.set_data_from_numpy(batch)
        asked = triton.InferRequestedOutput(output["name"], class_count=3)
        result = client.infer("mobilenet", [tensor], outputs=[asked]).as_numpy(output["name"])
        self.assertEqual(result.shape, (len(KNOWN), 3))
        for row, label in zip(result, KNOWN.values(), strict=True):
            score, _, name = row[0].decode().split(":")
            self.assertGreater(float(score), 0)
            self.assertEqual(name.split(",")[0], label)


if __name__ == "__main__":
    unittest.main()

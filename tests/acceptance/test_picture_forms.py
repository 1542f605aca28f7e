"""The ways in which a picture can be sent, and what becomes of its pixels. Models of the backend
identity answer the tensor that a picture became; Pillow and NumPy make the same from the picture
by themselves."""
import base64
import io
import json
import pathlib
import subprocess
import unittest

import numpy as np
from PIL import Image, ImageOps

import support

WIDTH, HEIGHT = 64, 48
BYTES = """
backend: "identity"
max_batch_size: 4
input [ { name: "x" data_type: TYPE_UINT8 dims: [ 48, 64, 3 ] } ]
output [ { name: "y" data_type: TYPE_UINT8 dims: [ 48, 64, 3 ] } ]
"""
# Planes of blue, green, red, with values of PyTorch's networks but in another order.
PLANES = """
backend: "identity"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3, 64, 64 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3, 64, 64 ] } ]
parameters { key: "preset" value { string_value: "imagenet_torch" } }
parameters { key: "image_color" value { string_value: "BGR" } }
parameters { key: "image_fill" value { string_value: "1, 2, 3" } }
parameters { key: "image_resize" value { string_value: "letterbox" } }
"""
MEAN = np.array([123.675, 116.28, 103.53]).reshape(3, 1, 1)
STD = np.array([58.395, 57.12, 57.375]).reshape(3, 1, 1)


def small(picture, size=(WIDTH, HEIGHT)):
    return np.asarray(picture.convert("RGB").resize(size, Image.BILINEAR), np.float64)


def saved(picture, kind, **options):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def nv12(picture):
    """BT.601 with 16 … 235, two by two pixels share their colour."""
    r, g, b = np.moveaxis(np.asarray(picture, np.float64), 2, 0)
    y = 16 + (65.481 * r + 128.553 * g + 24.966 * b) / 255
    u = 128 + (-37.797 * r - 74.203 * g + 112 * b) / 255
    v = 128 + (112 * r - 93.786 * g - 18.214 * b) / 255
    height, width = y.shape
    shared = np.stack([u, v], 2).reshape(height // 2, 2, width // 2, 2, 2).mean((1, 3))
    return (np.rint(y).astype(np.uint8).tobytes() + np.rint(shared).astype(np.uint8).tobytes())


class Forms(support.ServerCase):
    @classmethod
    def prepare(cls, folder):
        for name, config in (("bytes", BYTES), ("planes", PLANES)):
            model = pathlib.Path(folder) / name
            (model / "1").mkdir(parents=True)
            (model / "config.pbtxt").write_text(config)

    def setUp(self):
        self.photo = Image.open(support.shared("images/cat_720p.jpg")).convert("RGB")
        self.wanted = small(self.photo)

    def infer(self, body, content_type=None, query="", model="bytes"):
        headers = {"Content-Type": content_type} if content_type else {}
        response = self.server.ask("POST", f"/v2/models/{model}/infer{query}", body, headers)
        self.assertEqual(response.status, 200, response.data[:300])
        output, = json.loads(response.data)["outputs"]
        return np.array(output["data"]).reshape(output["shape"])

    def check(self, got, wanted, most=1):
        got = got.reshape(wanted.shape)
        self.assertLessEqual(np.abs(got - wanted).max(), most)

    def check_near(self, got, wanted, mean):
        self.assertLessEqual(np.abs(got.reshape(wanted.shape) - wanted).mean(), mean)

    def test_lossless_pictures_are_exact_in_every_orientation(self):
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x112] = orientation
            for kind, options in (("PNG", {"compress_level": 1}),
                                  ("WEBP", {"lossless": True, "quality": 0, "method": 0})):
                with self.subTest(kind, orientation=orientation):
                    stored = self.photo.resize((160, 90))
                    body = saved(stored, kind, exif=exif, **options)
                    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(body)))
                    self.check(self.infer(body), small(upright))

    def test_a_jpeg_is_the_same_picture_in_every_orientation(self):
        """It is reduced while it is decoded, so its pixels are other means of the same ones."""
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x112] = orientation
            with self.subTest(orientation=orientation):
                body = saved(self.photo, "JPEG", quality=95, exif=exif)
                upright = ImageOps.exif_transpose(Image.open(io.BytesIO(body)))
                self.check_near(self.infer(body), small(upright), mean=1.5)

    def test_frames_are_the_picture_too(self):
        rgb = np.asarray(self.photo)
        frames = {"RGB": rgb.tobytes(), "BGR": rgb[:, :, ::-1].tobytes()}
        for name, body in frames.items():
            kind = f"video/x-raw; format={name}; width=1280; height=720"
            self.check(self.infer(body, kind), self.wanted)
        kind = "video/x-raw; format=NV12; width=1280; height=720"
        self.check_near(self.infer(nv12(self.photo), kind), self.wanted, mean=1)
        grey = self.photo.convert("L")
        padded = np.pad(np.asarray(grey), ((0, 0), (0, 20)))
        kind = "video/x-raw; format=GRAY8; width=1280; height=720; stride=1300"
        self.check(self.infer(padded.tobytes(), kind), small(grey))

    def test_every_form_of_a_request_means_the_same(self):
        body = saved(self.photo.resize((160, 90)), "PNG")
        wanted = self.infer(body, "image/png")
        text = json.dumps({"image": base64.b64encode(body).decode()})
        tensor = json.dumps({"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1],
                                         "data": [base64.b64encode(body).decode()]}]})
        for form, kind in ((body, None), (body, "application/x-www-form-urlencoded"),
                           (body, "application/octet-stream"), (text.encode(), "application/json"),
                           (tensor.encode(), None)):
            self.check(self.infer(form, kind), wanted, most=0)
        url = f"http://{self.server.address}/v2/models/bytes/infer"
        for arguments in (["-F", "file=@-;filename=cat.png"], ["--data-binary", "@-"]):
            done = subprocess.run(["curl", "-s", *arguments, url], input=body, timeout=30,
                                  stdout=subprocess.PIPE, check=True)
            output, = json.loads(done.stdout)["outputs"]
            self.check(np.array(output["data"]), wanted.ravel(), most=0)

    def test_regions_of_a_picture_are_a_batch(self):
        body = saved(self.photo, "PNG", compress_level=1)
        got = self.infer(body, query="?region=100,50,640,480&region=1279,719,1,1")
        self.assertEqual(got.shape, (2, HEIGHT, WIDTH, 3))
        self.check(got[0], small(self.photo.crop((100, 50, 740, 530))))
        self.check(got[1], small(self.photo.crop((1279, 719, 1280, 720))))
        jpeg = saved(self.photo, "JPEG", quality=95)
        got = self.infer(jpeg, query="?region=100,50,640,480")
        self.check_near(got, small(self.photo.crop((100, 50, 740, 530))), mean=1.5)

    def test_a_request_may_resize_otherwise(self):
        body = saved(self.photo, "PNG", compress_level=1)
        self.check(self.infer(body, query="?resize=crop"),
                   small(self.photo.crop((160, 0, 1120, 720))))
        got = self.infer(body, query="?resize=letterbox").reshape(HEIGHT, WIDTH, 3)
        self.check(got[6:42], small(self.photo, (WIDTH, 36)))
        self.assertEqual(got[:6].max(), 0)
        self.assertEqual(got[42:].max(), 0)

    def test_planes_of_floats_in_another_order(self):
        body = saved(self.photo, "PNG", compress_level=1)
        wanted = np.empty((3, 64, 64))
        for channel in range(3):
            wanted[channel] = channel + 1
        wanted[:, 14:50] = np.moveaxis(small(self.photo, (64, 36))[:, :, ::-1], 2, 0)
        got = self.infer(body, query="?outputs=tensors", model="planes")
        self.check(got, (wanted - MEAN) / STD, most=0.02)


class Regions(support.ServerCase):
    """A file with batches of one, without a config."""

    @classmethod
    def prepare(cls, folder):
        support.add_model(folder, "ssd",
                          support.shared("models/tflite/coco_ssd_mobilenet_v1_1.0_quant.tflite"))

    def ask(self, query):
        body = support.shared("images/cat_720p.jpg").read_bytes()
        response = self.server.ask("POST", "/v2/models/ssd/infer" + query, body)
        return response.status, json.loads(response.data)

    def test_regions_run_one_after_the_other(self):
        whole, part = "region=0,0,1280,720", "region=300,0,800,720"
        status, answer = self.ask(f"?{whole}&{part}")
        self.assertEqual(status, 200, answer)
        self.assertEqual([r["region"] for r in answer["regions"]],
                         [[0, 0, 1280, 720], [300, 0, 800, 720]])
        for region, query in zip(answer["regions"], (whole, part), strict=True):
            alone = self.ask("?" + query)[1]["objects"]
            self.assertEqual(region["objects"], alone)
            self.assertEqual(alone[0]["label"], "cat")
            left, top, right, bottom = alone[0]["box"]
            self.assertTrue(80 < left < 350 and 50 < top < 150, alone[0])
            self.assertTrue(880 < right < 980 and 650 < bottom <= 720, alone[0])

    def test_there_are_not_too_many(self):
        status, answer = self.ask("?" + "&".join(["region=0,0,9,9"] * 65))
        self.assertEqual(status, 400)
        self.assertIn("takes 64 pictures, got 65", answer["error"])


if __name__ == "__main__":
    unittest.main()

"""Pictures in, objects out: the server against reference pipelines of LiteRT and NumPy, on photos
with known answers."""
import base64
import io
import json
import unittest
import wave

import numpy as np
from PIL import Image

import pipelines
import support

MODELS = {
    "ssd": ("coco_ssd_mobilenet_v1_1.0_quant", None), "face": ("face_detection_short_range",
                                                               "mediapipe_face"),
    "pose": ("pose_landmark_lite", "mediapipe_pose"), "hand": ("hand_landmark_lite",
                                                               "mediapipe_hand"),
    "ultraface": ("ultraface_rfb_320", "ultraface"), "yolox": ("yolox_nano_float16", "yolox"),
    "deeplab": ("deeplabv3_257_float", None), "mobilenet": ("mobilenet_v2_1.0_224_quant", None),
}
LABELS = {"mobilenet": 'output [ { name: "MobilenetV2/Predictions/Softmax" '
                       'data_type: TYPE_UINT8 dims: [ 1, 1001 ] label_filename: "labels.txt" } ]'}


def model_file(name):
    return support.shared(f"models/tflite/{MODELS[name][0]}.tflite")


def picture(name):
    return support.shared("images/" + name)


class Objects(support.ServerCase):
    @classmethod
    def prepare(cls, folder):
        for name, (_, preset) in MODELS.items():
            config = LABELS.get(name, "")
            if preset:
                config = f'parameters {{ key: "preset" value {{ string_value: "{preset}" }} }}'
            labels = support.shared("labels/imagenet_labels.txt") if name in LABELS else None
            support.add_model(folder, name, model_file(name), labels=labels, config=config)
        support.add_model(folder, "ultraface_onnx",
                          support.shared("models/onnx/ultraface_rfb_320.onnx"),
                          config='parameters { key: "preset" value { string_value: "ultraface" } }')

    def see(self, model, name, query="", accept="*/*"):
        response = self.server.ask("POST", f"/v2/models/{model}/infer?{query}",
                                   picture(name).read_bytes(),
                                   {"Content-Type": "image/jpeg", "Accept": accept})
        self.assertEqual(response.status, 200, response.data[:500])
        if accept != "*/*":
            return Image.open(io.BytesIO(response.data))
        answer = json.loads(response.data)
        size = Image.open(picture(name)).size
        self.assertEqual((answer["image"]["width"], answer["image"]["height"]), size)
        return answer

    def assert_box(self, got, want):
        """Each side is within 3 % of the box's size."""
        size = max(want[2] - want[0], want[3] - want[1])
        self.assertLess(np.abs(np.array(got) - want).max(), 0.03 * size, (got, want))

    def assert_points(self, got, want):
        apart = np.linalg.norm(np.array(got)[:, :2] - want, axis=1)
        self.assertLess(apart.max(), 2, apart)

    def assert_objects(self, got, want, score=0.05):
        """The same classes, scores and boxes; pairs of almost equal scores may change places."""
        self.assertEqual(len(got), len(want), (got, want))
        left = list(got)
        for index, wanted_score, box in want:
            best = min(left, key=lambda o: np.abs(np.array(o["box"]) - box).max())
            left.remove(best)
            self.assertEqual(best["index"], index)
            self.assertAlmostEqual(best["score"], wanted_score, delta=score)
            self.assert_box(best["box"], box)

    def test_classifications(self):
        network = pipelines.Network(model_file("mobilenet"))
        for name, label in {"cat.bmp": "Egyptian cat", "parrot.jpg": "macaw",
                            "sunflower.bmp": "daisy", "cat_720p.jpg": "Egyptian cat"}.items():
            with self.subTest(name):
                got = self.see("mobilenet", name)["classes"]
                best, scores = pipelines.classes(network, picture(name), 5)
                self.assertEqual(len(got), 5)
                self.assertEqual(got[0]["label"].split(",")[0], label)
                self.assertEqual(got[0]["index"], best[0])
                self.assertAlmostEqual(got[0]["score"], scores[0], delta=0.05)

    def test_ssd(self):
        """With a threshold between the scores of two objects."""
        network = pipelines.Network(model_file("ssd"))
        want = pipelines.ssd(network, picture("cats_and_dogs.jpg"), 0.52)
        got = self.see("ssd", "cats_and_dogs.jpg", "threshold=0.52")["objects"]
        self.assert_objects(got, want)
        self.assertEqual(got[0]["label"], "cat")

    def test_yolox(self):
        want = pipelines.yolox(pipelines.Network(model_file("yolox")),
                               picture("cats_and_dogs.jpg"))
        got = self.see("yolox", "cats_and_dogs.jpg")["objects"]
        self.assert_objects(got, want)
        self.assertEqual([o["label"] for o in got if o["score"] > 0.6], ["cat"] * 3)

    def test_faces(self):
        (score, box, points), = pipelines.face(pipelines.Network(model_file("face")),
                                               picture("grace_hopper.bmp"))
        answer = self.see("face", "grace_hopper.bmp")
        got, = answer["objects"]
        self.assertEqual(got["label"], "face")
        self.assertAlmostEqual(got["score"], score, delta=0.02)
        self.assert_box(got["box"], box)
        self.assert_points(got["keypoints"], points)
        self.assertEqual(answer["keypoint_names"][2], "nose_tip")

    def test_ultraface_in_both_formats(self):
        (score, box), = pipelines.ultraface(pipelines.Network(model_file("ultraface")),
                                            picture("grace_hopper.bmp"))
        for model in ("ultraface", "ultraface_onnx"):
            with self.subTest(model):
                got, = self.see(model, "grace_hopper.bmp")["objects"]
                self.assertEqual(got["label"], "face")
                self.assertAlmostEqual(got["score"], score, delta=0.02)
                self.assert_box(got["box"], box)

    def test_poses_and_hands(self):
        network = pipelines.Network(model_file("pose"))
        score, points, visible = pipelines.pose(network, picture("grace_hopper.bmp"))
        got, = self.see("pose", "grace_hopper.bmp")["objects"]
        self.assertAlmostEqual(got["score"], score, delta=0.02)
        seen = visible > 0.8 # the network guesses where the others are, each time elsewhere
        self.assertGreater(seen.sum(), 12)
        self.assert_points(np.array(got["keypoints"])[seen], points[seen])
        self.assertLess(np.abs(np.array(got["keypoints"])[:, 2] - visible)[seen].max(), 0.05)
        # There is no hand: the network says so, and where its points are all the same.
        network = pipelines.Network(model_file("hand"))
        score, points = pipelines.hand(network, picture("grace_hopper.bmp"))
        self.assertLess(score, 0.5)
        self.assertEqual(self.see("hand", "grace_hopper.bmp")["objects"], [])
        got, = self.see("hand", "grace_hopper.bmp", "threshold=0")["objects"]
        self.assertAlmostEqual(got["score"], score, delta=0.02)
        self.assert_points(got["keypoints"], points)

    def test_segments(self):
        want = pipelines.deeplab(pipelines.Network(model_file("deeplab")), picture("bird.bmp"))
        answer = self.see("deeplab", "bird.bmp", "mask=png")
        got = np.asarray(Image.open(io.BytesIO(base64.b64decode(answer["mask"]))))
        self.assertEqual(got.shape, want.shape)
        self.assertLess((got != want).mean(), 0.005)
        self.assertEqual([s["label"] for s in answer["segments"]], ["background", "bird"])
        for segment in answer["segments"]:
            self.assertAlmostEqual(segment["area"], (got == segment["index"]).mean(), delta=1e-4)
        bird, = self.see("deeplab", "bird.bmp", "mask=rle&classes=bird")["segments"]
        counts = bird["mask"]["counts"]
        inside = np.repeat(np.arange(len(counts)) % 2, counts)
        height, width = bird["mask"]["size"]
        np.testing.assert_array_equal(inside.reshape(width, height).T == 1, got == 3)

    def ask(self, model, body, content_type="image/png", query=""):
        response = self.server.ask("POST", f"/v2/models/{model}/infer?{query}", body,
                                   {"Content-Type": content_type})
        self.assertEqual(response.status, 200, response.data[:500])
        return json.loads(response.data)

    def test_a_face_is_the_same_however_it_is_sent(self):
        """In each orientation, as a frame, in other sizes and as a region of a larger picture."""
        original, want = Image.open(picture("grace_hopper.bmp")).convert("RGB"), None

        def assert_same(answer, scale=1.0, offset=(0, 0)):
            got, = answer["objects"]
            self.assert_box(got["box"], np.array(want["box"]) * scale + np.tile(offset, 2))
            apart = np.array(got["keypoints"])[:, :2] - (
                np.array(want["keypoints"])[:, :2] * scale + offset)
            self.assertLess(np.linalg.norm(apart, axis=1).max(), 2 * max(scale, 1))

        stored = (None, None, Image.FLIP_LEFT_RIGHT, Image.ROTATE_180, Image.FLIP_TOP_BOTTOM,
                  Image.TRANSPOSE, Image.ROTATE_90, Image.TRANSVERSE, Image.ROTATE_270)
        for orientation in range(1, 9):
            with self.subTest(orientation=orientation):
                turned = original
                if stored[orientation] is not None:
                    turned = original.transpose(stored[orientation])
                exif, buffer = Image.Exif(), io.BytesIO()
                exif[0x112] = orientation
                turned.save(buffer, "JPEG", quality=98, subsampling=0, exif=exif)
                answer = self.ask("face", buffer.getvalue(), "image/jpeg")
                self.assertEqual(answer["image"], {"width": 512, "height": 600})
                if orientation == 1: # a JPEG is made smaller in another way than a BMP
                    want, = answer["objects"]
                assert_same(answer)
        want, = self.see("face", "grace_hopper.bmp")["objects"]
        luma, blue, red = original.convert("YCbCr").split()
        half = original.width // 2, original.height // 2
        chroma = np.stack([np.asarray(c.resize(half, Image.BOX), float) for c in (blue, red)], -1)
        frame = [np.asarray(luma, float) * 219 / 255 + 16, (chroma - 128) * 224 / 255 + 128]
        nv12 = b"".join(p.round().astype(np.uint8).tobytes() for p in frame)
        assert_same(self.ask("face", nv12, "video/x-raw; format=NV12; width=512; height=600"))
        for scale in (0.5, 1.75):
            buffer = io.BytesIO()
            original.resize((int(512 * scale), int(600 * scale)), Image.BICUBIC).save(buffer, "PNG")
            assert_same(self.ask("face", buffer.getvalue()), scale)
        larger, buffer = Image.new("RGB", (900, 800), "gray"), io.BytesIO()
        larger.paste(original, (301, 77))
        larger.save(buffer, "PNG")
        assert_same(self.ask("face", buffer.getvalue(), query="region=301,77,512,600"), 1,
                    (301, 77))

    def test_drawings_change_the_picture_where_objects_are(self):
        original = np.asarray(Image.open(picture("grace_hopper.bmp")).convert("RGB"), int)
        drawn = self.see("face", "grace_hopper.bmp", accept="image/png")
        self.assertEqual(drawn.format, "PNG")
        changed = (np.asarray(drawn.convert("RGB"), int) != original).any(axis=-1)
        box = self.see("face", "grace_hopper.bmp")["objects"][0]["box"]
        x0, y0, x1, y1 = (int(v) for v in box)
        self.assertTrue(changed[(y0 + y1) // 2, x0] and changed[y0, (x0 + x1) // 2])
        changed[max(y0 - 40, 0):y1 + 1, x0:x1 + 1] = False
        self.assertFalse(changed.any())
        self.assertEqual(self.see("deeplab", "bird.bmp", accept="image/jpeg").format, "JPEG")


def wav(samples, rate):
    """A WAV file of 16 bits; samples: [frames, channels] of -1 … 1."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32767).round().astype("<i2").tobytes())
    return buffer.getvalue()


class Sounds(support.ServerCase):
    @classmethod
    def prepare(cls, folder):
        support.add_model(folder, "yamnet", support.shared("models/tflite/yamnet.tflite"),
                          config='parameters { key: "preset" value { string_value: "yamnet" } }')

    def hear(self, body, content_type="audio/wav", query=""):
        response = self.server.ask("POST", f"/v2/models/yamnet/infer?{query}", body,
                                   {"Content-Type": content_type})
        return response.status, json.loads(response.data)

    def test_every_window_has_the_classes_of_litert(self):
        path = support.shared("audio/speech.wav")
        want = pipelines.sound_windows(support.shared("models/tflite/yamnet.tflite"), path, 7800)
        for content_type in ("audio/wav", "application/octet-stream"):
            status, answer = self.hear(path.read_bytes(), content_type)
            self.assertEqual(status, 200, answer)
            self.assertEqual(len(answer["windows"]), len(want))
            for i, (window, scores) in enumerate(zip(answer["windows"], want)):
                self.assertAlmostEqual(window["from"], i * 0.4875, places=3)
                self.assertAlmostEqual(window["to"], i * 0.4875 + 0.975, places=3)
                self.assertEqual(len(window["classes"]), 5)
                self.assertEqual(window["classes"][0]["index"], scores.argmax())
                self.assertEqual(window["classes"][0]["label"], "Speech")
                self.assertAlmostEqual(window["classes"][0]["score"], scores.max(), delta=0.05)

    def test_rates_and_channels_change_nothing(self):
        samples = pipelines.sound_samples(support.shared("audio/speech.wav"))
        times = np.arange(int(len(samples) * 44.1 / 16)) / 44100
        other = np.interp(times, np.arange(len(samples)) / 16000, samples)
        status, answer = self.hear(wav(np.stack((other * 0.5, other * 1.5), 1) * 0.6, 44100))
        self.assertEqual(status, 200, answer)
        self.assertEqual([w["classes"][0]["label"] for w in answer["windows"]],
                         ["Speech"] * len(answer["windows"]))
        raw = (samples * 32767).astype("<i2").tobytes()
        status, answer = self.hear(raw, "audio/x-raw; format=S16LE; rate=16000; channels=1",
                                   "top_k=1&timing=1")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["windows"][1]["classes"][0]["label"], "Speech")
        self.assertEqual(len(answer["windows"][1]["classes"]), 1)
        self.assertIn("compute", answer["time_ms"])

    def test_a_form_may_bring_a_sound(self):
        body = support.shared("audio/speech.wav").read_bytes()
        form = (b'--x\r\nContent-Disposition: form-data; name="top_k"\r\n\r\n2\r\n'
                b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n'
                b'Content-Type: audio/x-wav\r\n\r\n' + body + b'\r\n--x--\r\n')
        status, answer = self.hear(form, "multipart/form-data; boundary=x")
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["windows"], self.hear(body, "audio/wav", "top_k=2")[1]["windows"])
        status, answer = self.hear(b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n'
                                   b'b\r\n--x--\r\n', "multipart/form-data; boundary=x")
        self.assertEqual(status, 400)
        self.assertIn("none is the sound", answer["error"])

    def test_what_is_no_sound_is_refused(self):
        short = wav(np.zeros((100, 1)), 16000)
        self.assertEqual(len(self.hear(short)[1]["windows"]), 1)
        for name, body, content_type, status in (
                ("nothing", b"", "audio/wav", 400), ("text", b"no sound at all", "audio/wav", 400),
                ("cut", short[:30], "audio/wav", 400),
                ("no rate", short, "audio/x-raw; format=S16LE", 400),
                ("too long", wav(np.zeros((16000 * 60 * 10, 1)), 16000), "audio/wav", 413)):
            with self.subTest(name):
                got, answer = self.hear(body, content_type)
                self.assertEqual(got, status, answer)
                self.assertTrue(answer["error"])
        self.assertEqual(self.server.ask("GET", "/v2/health/live").status, 200)


if __name__ == "__main__":
    unittest.main()

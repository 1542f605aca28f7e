"""Points, texts, masks and classes: the decoders of the server on generated networks, against NumPy
(decoders.py). Detectors: test_decoders.py, which makes the networks."""
import base64
import io
import string
import unittest

import numpy as np
from PIL import Image

import decoders
import pipelines
from test_decoders import PICTURES, Network, NetworkCase, picture_of


class Points(Network):
    """96×64 pixels, as every network."""

    fill, mean, std = 0, 127.5, 127.5
    parameters = {"image_mean": "127.5", "image_std": "127.5", "image_resize": "letterbox"}


class MoveNet(Points):
    preset = "movenet"
    parameters = {}
    mean, std = 0, 1

    def outputs(self, rng):
        return [rng.uniform((0, 0, 0.4), (1, 1, 1), (1, 17, 3))]

    def decode(self, values):
        return decoders.movenet(values, self.width, self.height)


class Pose(Points):
    preset = "mediapipe_pose"
    parameters = {}
    mean, std = 0, 255

    def outputs(self, rng):
        points = rng.uniform((-9, -9, 0, -4, -4), (105, 73, 1, 4, 4), (39, 5))
        return [points.ravel(), rng.uniform(0.6, 1, 1)]

    def decode(self, numbers, presence):
        return decoders.mediapipe_pose(numbers, presence)


class Heatmap(Points):
    """Channels first, as the picture has them."""

    parameters = Points.parameters | {"decoder": "heatmap"}

    def outputs(self, rng):
        return [rng.uniform(0, 1, (14, 16, 24))]

    def decode(self, heat):
        return decoders.heatmap(heat, self.width, self.height)


class PoseNet(Points):
    parameters = Points.parameters | {
        "decoder": "heatmap", "activation": "sigmoid", "output_layout": "hwc", "keypoints": "17",
        "keypoint_names": "body_points"}

    def outputs(self, rng):
        return [rng.normal(0, 2, (9, 13, 17)), rng.uniform(-20, 20, (9, 13, 34))]

    def decode(self, heat, offsets):
        return decoders.posenet(heat, offsets, self.width, self.height)


POINTS = {"movenet": MoveNet(), "pose": Pose(), "heatmap": Heatmap(), "posenet": PoseNet()}


class Reader(Points):
    """PaddleOCR: the blank is first, a space comes last."""

    preset = "ctc"
    parameters = {"labels": ",".join(string.ascii_lowercase)}
    red = 2
    letters, blank = "_" + string.ascii_lowercase + " ", 0

    def outputs(self, rng):
        best = np.repeat(rng.integers(0, len(self.letters), 20), 2)
        rows = rng.uniform(0, 0.3, (40, len(self.letters)))
        rows[np.arange(40), best] = rng.uniform(0.5, 1, 40)
        return [rows]

    def decode(self, rows):
        return decoders.ctc(rows, self.letters, self.blank)


class BlankLast(Reader):
    """Keras: the blank is the last class; logits."""

    parameters = Reader.parameters | {"blank": "26", "activation": "softmax"}
    letters, blank = string.ascii_lowercase + "_", 26

    def outputs(self, rng):
        return [8 * super().outputs(rng)[0]]

    def decode(self, rows):
        return decoders.ctc(decoders.softmax(rows), self.letters, self.blank)


TEXTS = {"reader": Reader(), "blank_last": BlankLast()}


class Segments(Points):
    parameters = Points.parameters | {"decoder": "argmax", "image_resize": "stretch"}
    classes = 6

    def outputs(self, rng):
        return [rng.normal(0, 1, (self.classes, 16, 24))]

    def decode(self, scores):
        return scores.argmax(axis=0)


class SegmentsLast(Segments):
    parameters = Segments.parameters | {"output_layout": "hwc"}

    def outputs(self, rng):
        return [rng.normal(0, 1, (16, 24, self.classes))]

    def decode(self, scores):
        return scores.argmax(axis=-1)


class Silhouette(Segments):
    """One score a cell: a class where it reaches the threshold."""

    parameters = Segments.parameters | {"activation": "sigmoid", "labels": "ground, figure"}
    classes = 1

    def decode(self, scores):
        return (scores[0] >= 0).astype(int)


SEGMENTS = {"segments": Segments(), "last": SegmentsLast(), "silhouette": Silhouette()}


class Classes(Points):
    parameters = Points.parameters | {"task": "classification"}

    def outputs(self, rng):
        return [rng.uniform(0, 1, 30)]

    def decode(self, scores):
        return scores


class Logits(Classes):
    parameters = Classes.parameters | {"activation": "softmax"}

    def outputs(self, rng):
        return [rng.normal(0, 3, 30)]

    def decode(self, logits):
        return decoders.softmax(logits)


class Multilabel(Logits):
    parameters = Classes.parameters | {"activation": "sigmoid"}

    def decode(self, logits):
        return pipelines.sigmoid(logits)


CLASSES = {"classes": Classes(), "logits": Logits(), "multilabel": Multilabel()}
NETWORKS = POINTS | TEXTS | SEGMENTS | CLASSES
SIZES = {"red": (300, 140), "black": (95, 131)}


def values_of(name):
    rng = np.random.default_rng(1000 + sorted(NETWORKS).index(name))
    return {colour: [np.asarray(v, np.float32) for v in NETWORKS[name].outputs(rng)]
            for colour in PICTURES}


def each(networks):
    """Each network with each picture, and what it means."""
    for name, network in networks.items():
        for colour, values in values_of(name).items():
            picture = picture_of(colour, *SIZES[colour])
            yield name, colour, picture, network.decode(*(v.astype(float) for v in values))


class Marks(NetworkCase):
    networks, values_of = NETWORKS, staticmethod(values_of)

    def test_points(self):
        for name, colour, picture, (points, score) in each(POINTS):
            with self.subTest(name, colour=colour):
                view = pipelines.Letterboxed(io.BytesIO(picture), 96, 64, 0)
                want = np.hstack((view.points(points[:, :2]), points[:, 2:]))
                found, = self.see(name, picture)["objects"]
                self.assertAlmostEqual(found["score"], score, delta=1e-4)
                np.testing.assert_allclose(found["keypoints"], want, rtol=0, atol=0.051)
                stricter = self.see(name, picture, f"threshold={score + 0.001}")
                self.assertEqual(stricter["objects"], [])

    def test_texts(self):
        for name, colour, picture, (text, score) in each(TEXTS):
            with self.subTest(name, colour=colour):
                found, = self.see(name, picture)["text"]
                self.assertEqual(found["text"], text)
                self.assertGreater(len(text), 5)
                self.assertAlmostEqual(found["score"], score, delta=1e-4)
                stricter = self.see(name, picture, f"threshold={score + 0.001}")
                self.assertEqual(stricter["text"], [])

    def test_segments(self):
        for name, colour, picture, cells in each(SEGMENTS):
            with self.subTest(name, colour=colour):
                width, height = Image.open(io.BytesIO(picture)).size
                rows = ((np.arange(height) + 0.5) * cells.shape[0] / height).astype(int)
                columns = ((np.arange(width) + 0.5) * cells.shape[1] / width).astype(int)
                want = cells[rows[:, None], columns]
                answer = self.see(name, picture, "mask=png")
                mask = np.asarray(Image.open(io.BytesIO(base64.b64decode(answer["mask"]))))
                np.testing.assert_array_equal(mask, want)
                areas = {row["index"]: row["area"] for row in answer["segments"]}
                self.assertEqual(sorted(areas), sorted(set(cells.ravel().tolist())))
                for index, area in areas.items():
                    self.assertAlmostEqual(area, (want == index).mean(), delta=1e-4)
                for row in self.see(name, picture, "mask=rle")["segments"]:
                    runs = row["mask"]["counts"]    # down the columns, of others first
                    flat = np.repeat(np.arange(len(runs)) % 2, runs)
                    self.assertEqual(row["mask"]["size"], [height, width])
                    np.testing.assert_array_equal(flat.reshape(width, height).T,
                                                  want == row["index"])

    def test_classes(self):
        for name, colour, picture, scores in each(CLASSES):
            with self.subTest(name, colour=colour):
                best = np.argsort(-scores)
                found = self.see(name, picture, "top_k=30")["classes"]
                self.assertEqual([row["index"] for row in found], best.tolist())
                for row in found:
                    self.assertAlmostEqual(row["score"], scores[row["index"]], delta=1e-4)
                some = self.see(name, picture, f"classes={best[3]},{best[1]}")["classes"]
                self.assertEqual([row["index"] for row in some], [best[1], best[3]])


if __name__ == "__main__":
    unittest.main()

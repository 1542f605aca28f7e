"""Decoders of detectors on generated networks: ONNX files of two sets of constants, between which
the pixel in the picture's middle chooses, against the decoders of decoders.py."""

import io
import json
import tempfile
import unittest

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

import decoders
import pipelines
import support

COCO = 80
LEVELS = [
    (32, [(60, 45), (40, 70), (90, 80)]),
    (16, [(20, 30), (34, 25), (30, 60)]),
    (8, [(10, 13), (16, 30), (33, 23)]),
]


def chosen(rng, shape, share):
    """A few places, in the first four columns: objects of the same class overlap."""
    return (rng.random(shape) < share) & (np.arange(shape[1]) < 4)


def logits(rng, shape, share=0.15):
    """Numbers of which a few are high."""
    return np.where(chosen(rng, shape, share), 2, -6) + rng.normal(0, 1, shape)


def logit_rows(rng, cells, classes=COCO):
    """Rows whose numbers all are logits: few have objects."""
    rows = np.hstack((rng.normal(0, 0.6, (cells, 4)), logits(rng, (cells, 1), 0.4)))
    return np.hstack((rows, logits(rng, (cells, classes), 0.2)))


def chances(rng, shape, share=0.15):
    """Scores from 0 to 1 of which a few are high."""
    return np.where(chosen(rng, shape, share), rng.uniform(0.2, 1, shape), 0.1)


def placed(rng, cells, width, height):
    """Centres and sizes in pixels; some boxes leave the picture."""
    return np.hstack(
        (rng.uniform(0, (width, height), (cells, 2)), rng.uniform(8, width / 2, (cells, 2)))
    )


def as_maps(rows, width, height, levels):
    """One map for each level with its channels first: anchors, then numbers."""
    maps, first = [], 0
    for stride, pairs in levels:
        h, w = -(-height // stride), -(-width // stride)
        level = rows[first : first + h * w * len(pairs)]
        maps.append(level.reshape(h, w, -1).transpose(2, 0, 1))
        first += len(level)
    return maps


def text_of(levels):
    return "; ".join(f"{s}: " + ", ".join(f"{w}x{h}" for w, h in p) for s, p in levels)


def count_cells(width, height, strides):
    return sum(-(-width // s) * -(-height // s) for s in strides)


class Network:
    """A generated network: outputs by name for each of two pictures, what its config says, and
    its reference decoder."""

    suppresses, iou = True, 0.5
    resize = "letterbox"
    fill, mean, std, red = 114, 0, 255, 0  # red: the channel in which red pixels are
    preset = None
    parameters = {}
    width, height = 96, 64

    def outputs(self, rng):
        raise NotImplementedError

    def decode(self, *outputs):
        raise NotImplementedError


class YoloV3(Network):
    """Maps for each level."""

    preset = "yolo_v3"
    parameters = {"anchors": text_of(LEVELS)}
    fill = 128

    def outputs(self, rng):
        rows = logit_rows(rng, 3 * count_cells(self.width, self.height, (32, 16, 8)))
        return as_maps(rows, self.width, self.height, LEVELS)

    def decode(self, *maps):
        rows = decoders.rows_of_maps(maps, 3, chw=True)
        return decoders.yolo_v3(rows, self.width, self.height, LEVELS)


class YoloV5(YoloV3):
    """The last layer as it is: [cells, numbers]."""

    preset = "yolo_v5"
    parameters = {"anchors": text_of(LEVELS), "grid_coding": "v5"}
    fill = 114

    def outputs(self, rng):
        return [logit_rows(rng, 3 * count_cells(self.width, self.height, (32, 16, 8)))]

    def decode(self, rows):
        return decoders.yolo_v5(rows, self.width, self.height, LEVELS)


class YoloDecoded(Network):
    """v5, v6, v7 as they are exported."""

    preset = "yolo_v5"

    def outputs(self, rng):
        scores = chances(rng, (150, COCO))
        return [np.hstack((placed(rng, 150, 96, 64), chances(rng, (150, 1), 0.6), scores))]

    def decode(self, rows):
        return decoders.yolo_decoded(rows)


class YoloV8(Network):
    preset = "yolo_v8"

    def outputs(self, rng):
        cells = count_cells(self.width, self.height, (8, 16, 32))
        return [np.hstack((placed(rng, cells, 96, 64), chances(rng, (cells, COCO)))).T]

    def decode(self, numbers):
        return decoders.yolo_v8(numbers)


class YoloV8Pose(Network):
    preset = "yolo_v8"
    parameters = {"keypoints": "17", "labels": "person", "keypoint_names": "body_points"}

    def outputs(self, rng):
        cells = count_cells(self.width, self.height, (8, 16, 32))
        points = rng.uniform((0, 0, 0), (96, 64, 1), (cells, 17, 3)).reshape(cells, 51)
        return [np.hstack((placed(rng, cells, 96, 64), chances(rng, (cells, 1), 0.4), points)).T]

    def decode(self, numbers):
        return decoders.yolo_v8(numbers, keypoints=17)


class YoloX(Network):
    preset = "yolox"
    std, red = 1, 2

    def outputs(self, rng):
        cells = count_cells(self.width, self.height, (8, 16, 32))
        boxes = np.hstack((rng.uniform(0, 1, (cells, 2)), rng.normal(0.7, 0.6, (cells, 2))))
        return [np.hstack((boxes, chances(rng, (cells, 1), 0.6), chances(rng, (cells, COCO))))]

    def decode(self, rows):
        return decoders.yolo_x(rows, self.width, self.height)


class NanoDet(Network):
    """Plus: distances to 7 cells from a cell's corner. The input is no multiple of 64."""

    preset = "nanodet"
    resize, fill, mean, std, red = "stretch", None, 123.675, 58.395, 2
    strides, offset = (8, 16, 32, 64), 0

    def outputs(self, rng):
        cells = count_cells(self.width, self.height, self.strides)
        distances = rng.normal(0, 2, (cells, 4 * 8))
        return [np.hstack((chances(rng, (cells, COCO)), distances))]

    def decode(self, rows):
        return decoders.nanodet(
            rows, self.width, self.height, self.strides, largest=7, offset=self.offset
        )


class NanoDetOld(NanoDet):
    """Before Plus: three levels, distances from a cell's middle."""

    parameters = {"strides": "8, 16, 32", "cell_offset": "0.5"}
    strides, offset = (8, 16, 32), 0.5


class CenterNet(Network):
    parameters = {
        "decoder": "centernet",
        "image_mean": "127.5",
        "image_std": "127.5",
        "image_resize": "letterbox",
        "image_fill": "0",
    }
    fill, mean, std = 0, 127.5, 127.5
    suppresses, iou = False, 1

    def outputs(self, rng):
        scores = rng.uniform(0, 1, (5, 16, 24)) ** 4
        return [scores, rng.uniform(1, 8, (2, 16, 24)), rng.uniform(0, 1, (2, 16, 24))]

    def decode(self, scores, sizes, offsets):
        return decoders.centernet(scores, sizes, offsets, self.width, self.height)


class Ssd(Network):
    """Raw outputs of TensorFlow's SSD; six columns and four rows of two anchors, then one cell of
    one."""

    resize, fill, mean, std = "stretch", None, 127.5, 127.5
    parameters = {
        "activation": "sigmoid",
        "decoder": "ssd_anchors",
        "anchors": "6x4: 24x16, 16x40; 1x1: 90x60",
        "box_scale": "10, 10, 5, 5",
        "background": "0",
        "image_mean": "127.5",
        "image_std": "127.5",
    }

    def outputs(self, rng):
        return [rng.normal(0, 2, (49, 4)), logits(rng, (49, 4))]

    def decode(self, boxes, scores):
        y, x = (v.ravel() + 0.5 for v in np.mgrid[:4, :6])
        anchors = np.repeat(np.stack((x * 16, y * 16, x * 0, x * 0), 1), 2, axis=0)
        anchors[::2, 2:], anchors[1::2, 2:] = (24, 16), (16, 40)
        anchors = np.vstack((anchors, (48, 32, 90, 60)))
        return decoders.ssd_raw(boxes, scores, anchors, self.parameters["activation"])


class SsdSoftmax(Ssd):
    parameters = Ssd.parameters | {"activation": "softmax"}


class BlazeFace(Network):
    preset = "mediapipe_face"
    fill, mean, std, iou = 0, 127.5, 127.5, 0.3
    width, height = 128, 128

    def outputs(self, rng):
        boxes = np.hstack((rng.normal(0, 5, (896, 2)), rng.uniform(8, 60, (896, 2))))
        return [np.hstack((boxes, rng.normal(0, 20, (896, 12)))), logits(rng, (896, 1), 0.05)]

    def decode(self, numbers, scores):
        return decoders.blaze_face(numbers, scores, self.width, self.height)


class UltraFace(Network):
    preset = "ultraface"
    resize, fill, mean, std, iou = "stretch", None, 127, 128, 0.3

    def outputs(self, rng):
        face = chances(rng, (200, 1), 0.3)
        first, size = rng.uniform(-0.1, 0.8, (200, 2)), rng.uniform(0.1, 0.4, (200, 2))
        return [np.hstack((1 - face, face)), np.hstack((first, first + size))]

    def decode(self, scores, boxes):
        return decoders.ultraface(boxes, scores, self.width, self.height)


NETWORKS = {
    "yolo_v3": YoloV3(),
    "yolo_v5": YoloV5(),
    "yolo_decoded": YoloDecoded(),
    "yolo_v8": YoloV8(),
    "yolo_v8_pose": YoloV8Pose(),
    "yolox": YoloX(),
    "nanodet": NanoDet(),
    "nanodet_old": NanoDetOld(),
    "centernet": CenterNet(),
    "ssd_sigmoid": Ssd(),
    "ssd_softmax": SsdSoftmax(),
    "blaze_face": BlazeFace(),
    "ultraface": UltraFace(),
}
PICTURES = {"red": (255, 0, 0), "black": (0, 0, 0)}


def values_of(name):
    """The network's outputs for each picture."""
    rng = np.random.default_rng(sorted(NETWORKS).index(name))
    return {
        colour: [np.asarray(v, np.float32) for v in NETWORKS[name].outputs(rng)]
        for colour in PICTURES
    }


def make_network(name, network, values):
    """An ONNX file."""
    middle = [0, network.red, network.height // 2, network.width // 2]
    constants = {
        "from": np.array(middle),
        "to": np.array(middle) + 1,
        "grey": np.float32((127.5 - network.mean) / network.std),
        "one": np.array([1]),
    }
    nodes = [
        helper.make_node("Slice", ["picture", "from", "to"], ["pixel"]),
        helper.make_node("Reshape", ["pixel", "one"], ["number"]),
        helper.make_node("Greater", ["number", "grey"], ["is_red"]),
    ]
    outputs = []
    for i, (red, black) in enumerate(zip(values["red"], values["black"])):
        constants[f"red{i}"], constants[f"black{i}"] = red[None], black[None]
        nodes.append(helper.make_node("Where", ["is_red", f"red{i}", f"black{i}"], [f"out{i}"]))
        outputs.append(
            helper.make_tensor_value_info(f"out{i}", TensorProto.FLOAT, (1, *red.shape))
        )
    form = [1, 3, network.height, network.width]
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("picture", TensorProto.FLOAT, form)],
        outputs,
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def config_of(network):
    parameters = {"preset": network.preset} if network.preset else {}
    parameters |= network.parameters
    return "".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in parameters.items()
    )


def picture_of(colour, width, height):
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), PICTURES[colour]).save(buffer, "PNG")
    return buffer.getvalue()


def objects_of(network, outputs, picture, threshold=0.5, iou=None, top_k=100, classes=None):
    """What the server has to answer: (index, score, box, points), best first."""
    boxes, scores, indexes, points = network.decode(*(v.astype(float) for v in outputs))
    if network.resize == "letterbox":
        view = pipelines.Letterboxed(
            io.BytesIO(picture), network.width, network.height, network.fill
        )
    else:
        view = pipelines.Stretched(io.BytesIO(picture), network.width, network.height)
    wanted = np.ones(len(scores), bool) if classes is None else np.isin(indexes, classes)
    rows = np.flatnonzero(wanted)
    kept = pipelines.suppress(
        boxes[rows], scores[rows], indexes[rows], threshold, network.iou if iou is None else iou
    )
    found = []
    for row in rows[kept[:top_k]]:
        box, = view.boxes(boxes[row])
        if (box[2:] > box[:2]).all():  # something of it lies in the picture
            seen = None
            if points is not None:
                seen = np.hstack((view.points(points[row, :, :2]), points[row, :, 2:]))
            found.append((indexes[row], scores[row], box, seen))
    return found


class NetworkCase(support.ServerCase):
    """A server of generated networks; values_of tells what each one answers."""

    networks, values_of = {}, None

    @classmethod
    def prepare(cls, folder):
        for name, network in cls.networks.items():
            with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
                file.write(make_network(name, network, cls.values_of(name)))
                file.flush()
                support.add_model(folder, name, file.name, config=config_of(network))

    def see(self, name, picture, query=""):
        response = self.server.ask(
            "POST", f"/v2/models/{name}/infer?{query}", picture, {"Content-Type": "image/png"}
        )
        self.assertEqual(response.status, 200, response.data[:500])
        return json.loads(response.data)


class Decoders(NetworkCase):
    networks, values_of = NETWORKS, staticmethod(values_of)

    def assert_objects(self, got, want):
        """All of them in their order, to the last digit of the answer."""
        self.assertEqual([o["index"] for o in got], [index for index, *_ in want])
        for found, (_, score, box, points) in zip(got, want):
            self.assertAlmostEqual(found["score"], score, delta=1e-4)
            np.testing.assert_allclose(found["box"], box, rtol=0, atol=0.051)
            self.assertEqual("keypoints" in found, points is not None)
            if points is not None:
                np.testing.assert_allclose(found["keypoints"], points, rtol=0, atol=0.051)

    def test_objects_are_those_of_the_reference(self):
        for name, network in NETWORKS.items():
            values = values_of(name)
            for colour, (width, height) in (("red", (300, 140)), ("black", (96, 128))):
                with self.subTest(name, colour=colour):
                    picture = picture_of(colour, width, height)
                    want = objects_of(network, values[colour], picture)
                    self.assertGreater(len(want), 4)
                    self.assert_objects(self.see(name, picture)["objects"], want)

    def test_a_request_may_ask_for_others(self):
        for name, network in NETWORKS.items():
            picture, outputs = picture_of("red", 320, 256), values_of(name)["red"]
            everything = objects_of(network, outputs, picture, threshold=0.2)
            two = sorted({int(index) for index, *_ in everything})[:2]
            for query, options in {
                "threshold=0.6": {"threshold": 0.6},
                "iou=0.1": {"iou": 0.1},
                "iou=0.9": {"iou": 0.9},
                "top_k=3": {"top_k": 3},
                f"classes={two[0]},{two[-1]}&threshold=0.2": {"classes": two, "threshold": 0.2},
            }.items():
                with self.subTest(name, query=query):
                    if not network.suppresses:
                        options["iou"] = 1
                    want = objects_of(network, outputs, picture, **options)
                    self.assertTrue(want)
                    self.assert_objects(self.see(name, picture, query)["objects"], want)


if __name__ == "__main__":    unittest.main()

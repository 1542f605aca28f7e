"""Reference pipelines: from a picture to objects with LiteRT, Pillow and NumPy alone. Written
independently of the server; boxes and points are in pixels of the picture."""
import wave

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image


class Network:
    """A TFLite file that LiteRT runs on one picture."""

    def __init__(self, path):
        self.interpreter = Interpreter(str(path), num_threads=1)
        self.interpreter.allocate_tensors()
        self.input, = self.interpreter.get_input_details()
        shape = list(self.input["shape"])
        self.is_nchw = shape[1] == 3
        self.height, self.width = shape[2:] if self.is_nchw else shape[1:3]

    def run(self, pixels):
        """pixels: [height, width, 3]; the outputs without their first dimension, real numbers."""
        values = pixels.transpose(2, 0, 1) if self.is_nchw else pixels
        self.interpreter.set_tensor(self.input["index"], values[None].astype(self.input["dtype"]))
        self.interpreter.invoke()
        outputs = []
        for detail in self.interpreter.get_output_details():
            values = self.interpreter.get_tensor(detail["index"]).astype(np.float64)
            scale, zero_point = detail["quantization"]
            outputs.append((values[0] if values.ndim > 1 else values, scale, zero_point))
        return [scale * (v - zero) if scale else v for v, scale, zero in outputs]


class Stretched:
    """A picture that fills the input; from the input's pixels back to the picture's."""

    def __init__(self, path, width, height):
        picture = Image.open(path).convert("RGB")
        self.size = picture.size
        self.pixels = np.asarray(picture.resize((width, height), Image.BILINEAR), np.float64)
        self.scale = np.array(self.size) / (width, height)
        self.offset = np.zeros(2)

    def points(self, points):
        return np.asarray(points) * self.scale + self.offset

    def boxes(self, corners):
        corners = self.points(np.asarray(corners).reshape(-1, 2)).reshape(-1, 4)
        return np.clip(corners, 0, np.tile(self.size, 2))


class Letterboxed(Stretched):
    """The whole picture in the middle of the input, with bars."""

    def __init__(self, path, width, height, fill):
        picture = Image.open(path).convert("RGB")
        self.size = picture.size
        ratio = min(width / picture.width, height / picture.height)
        inner = round(picture.width * ratio), round(picture.height * ratio)
        canvas = Image.new("RGB", (width, height), (fill,) * 3)
        corner = (width - inner[0]) // 2, (height - inner[1]) // 2
        canvas.paste(picture.resize(inner, Image.BILINEAR), corner)
        self.pixels = np.asarray(canvas, np.float64)
        self.scale = np.array(self.size) / inner
        self.offset = -np.array(corner) * self.scale


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def overlap(box, boxes):
    corner = np.maximum(box[:2], boxes[:, :2])
    sides = np.clip(np.minimum(box[2:], boxes[:, 2:]) - corner, 0, None)
    common = sides.prod(axis=1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return common / (areas + (box[2:] - box[:2]).prod() - common)


def suppress(boxes, scores, classes, threshold, iou):
    """Rows that stay, best first."""
    left = [i for i in np.argsort(-scores, kind="stable") if scores[i] >= threshold]
    kept = []
    while left:
        best, left = left[0], np.array(left[1:], int)
        kept.append(best)
        same = (classes[left] == classes[best]) & (overlap(boxes[best], boxes[left]) > iou)
        left = list(left[~same])
    return kept


def classes(network, path, top):
    """Classes and scores, best first, of a network that takes a stretched picture as it is."""
    scores = network.run(Stretched(path, network.width, network.height).pixels)[0]
    best = np.argsort(-scores, kind="stable")[:top]
    return best, scores[best]


def ssd(network, path, threshold):
    """(class, score, box) of SSD's post-processing operator: y, x from 0 to 1."""
    picture = Stretched(path, network.width, network.height)
    boxes, indexes, scores, count = network.run(picture.pixels)
    boxes = boxes[:, [1, 0, 3, 2]] * np.tile((network.width, network.height), 2)
    boxes = picture.boxes(boxes)
    return [(int(indexes[i]), scores[i], boxes[i]) for i in range(int(count.ravel()[0]))
            if scores[i] >= threshold]


def face(network, path):
    """(score, box, points) of MediaPipe's short-range face detector."""
    picture = Letterboxed(path, network.width, network.height, 0)
    raw, logits = network.run((picture.pixels - 127.5) / 127.5)
    cells = []
    for side, count in ((16, 2), (8, 6)):
        y, x = np.mgrid[:side, :side]
        centre = (np.stack((x, y), -1).reshape(-1, 2) + 0.5) / side * network.width
        cells.append(np.repeat(centre, count, axis=0))
    cells = np.concatenate(cells)
    centre, size = raw[:, :2] + cells, raw[:, 2:4]
    boxes = np.concatenate((centre - size / 2, centre + size / 2), axis=1)
    scores = sigmoid(logits.ravel())
    points = raw[:, 4:].reshape(-1, 6, 2) + cells[:, None]
    kept = suppress(boxes, scores, np.zeros(len(scores)), 0.5, 0.3)
    return [(scores[i], picture.boxes(boxes[i])[0], picture.points(points[i])) for i in kept]


def pose(network, path):
    """Score, points and their visibility of MediaPipe's pose landmarks."""
    picture = Letterboxed(path, network.width, network.height, 0)
    outputs = network.run(picture.pixels / 255)
    points = next(o for o in outputs if o.size == 195).reshape(39, 5)[:33]
    score = next(o for o in outputs if o.size == 1).item()
    return score, picture.points(points[:, :2]), sigmoid(points[:, 3])


def hand(network, path):
    """Score and points of MediaPipe's hand landmarks."""
    picture = Letterboxed(path, network.width, network.height, 0)
    outputs = network.run(picture.pixels / 255)
    points = next(o for o in outputs if o.size == 63).reshape(21, 3)
    score = next(o for o in outputs if o.size == 1).item()
    return score, picture.points(points[:, :2])


def ultraface(network, path):
    """(score, box) of Ultra-Light-Fast-Generic-Face-Detector at 320×240, whose boxes are relative
    to priors."""
    picture = Stretched(path, network.width, network.height)
    raw, scores = sorted(network.run((picture.pixels - 127) / 128), key=lambda o: -o.shape[-1])
    priors = []
    for (columns, rows), sides in (((40, 30), (10, 16, 24)), ((20, 15), (32, 48)),
                                   ((10, 8), (64, 96)), ((5, 4), (128, 192, 256))):
        for y in range(rows):
            for x in range(columns):
                priors += [((x + 0.5) / columns, (y + 0.5) / rows, side / 320, side / 240)
                           for side in sides]
    priors = np.clip(priors, 0, 1)
    centre = raw[:, :2] * 0.1 * priors[:, 2:] + priors[:, :2]
    size = np.exp(raw[:, 2:] * 0.2) * priors[:, 2:]
    boxes = np.concatenate((centre - size / 2, centre + size / 2), axis=1)
    boxes *= np.tile((network.width, network.height), 2)
    kept = suppress(boxes, scores[:, 1], np.zeros(len(boxes)), 0.5, 0.3)
    return [(scores[i, 1], picture.boxes(boxes[i])[0]) for i in kept]


def yolox_objects(rows, width, height):
    """Boxes in pixels of the input, scores and classes of YOLOX's rows, and which of them are
    objects: offsets in cells, logarithms of sizes in cells."""
    cells, strides = [], []
    for stride in (8, 16, 32):
        y, x = np.mgrid[:height // stride, :width // stride]
        cells.append(np.stack((x, y), -1).reshape(-1, 2))
        strides.append(np.full(len(cells[-1]), stride))
    stride = np.concatenate(strides)[:, None]
    centre, size = (rows[:, :2] + np.concatenate(cells)) * stride, np.exp(rows[:, 2:4]) * stride
    boxes = np.concatenate((centre - size / 2, centre + size / 2), axis=1)
    scores = rows[:, 4] * rows[:, 5:].max(axis=1)
    best = rows[:, 5:].argmax(axis=1)
    return boxes, scores, best, suppress(boxes, scores, best, 0.5, 0.5)


def yolox(network, path):
    """(class, score, box) of YOLOX."""
    picture = Letterboxed(path, network.width, network.height, 114)
    rows, = network.run(picture.pixels[:, :, ::-1])
    boxes, scores, best, kept = yolox_objects(rows, network.width, network.height)
    return [(int(best[i]), scores[i], picture.boxes(boxes[i])[0]) for i in kept]


def deeplab(network, path):
    """The class of each pixel of the picture."""
    picture = Stretched(path, network.width, network.height)
    scores, = network.run((picture.pixels - 127.5) / 127.5)
    width, height = picture.size
    rows = ((np.arange(height) + 0.5) * scores.shape[0] / height).astype(int)
    columns = ((np.arange(width) + 0.5) * scores.shape[1] / width).astype(int)
    return scores.argmax(axis=-1)[rows][:, columns]


def sound_samples(path):
    """Samples of a WAV file of one channel and 16 bits."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768


def sound_windows(model, path, hop):
    """Scores for each window of a sound; silence fills the last one."""
    interpreter = Interpreter(str(model), num_threads=1)
    interpreter.allocate_tensors()
    source, = interpreter.get_input_details()
    size, = source["shape"]
    samples, scores = sound_samples(path), []
    for first in range(0, max(len(samples) - size, 0) + hop, hop):
        window = samples[first:first + size]
        interpreter.set_tensor(source["index"],
                               np.pad(window, (0, size - len(window))).astype(np.float32))
        interpreter.invoke()
        scores.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])
        if first + size >= len(samples):
            break
    return scores

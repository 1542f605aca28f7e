"""Reference decoders: from a network's outputs to what they mean, in NumPy and double precision, as
the networks' authors define them. Written independently of the server.

Each takes the outputs without their first dimension and, where it needs them, the input's width and
height. Those of detectors return boxes (two corners in pixels of the input), scores, classes, and
points [N, K, 3] or None; those of points return [K, 3] and the subject's score."""

import numpy as np

from pipelines import sigmoid


def cells_of(width, height, strides, anchors=1):
    """Column, row and stride of every anchor, level by level, row by row."""
    parts = []
    for stride in strides:
        y, x = np.mgrid[: -(-height // stride), : -(-width // stride)]
        level = np.stack((x, y, np.full_like(x, stride)), -1).reshape(-1, 3)
        parts.append(np.repeat(level, anchors, axis=0))
    cells = np.concatenate(parts).astype(float)
    return cells[:, :2], cells[:, 2:]


def corners(centre, size):
    return np.concatenate((centre - size / 2, centre + size / 2), axis=1)


def best(scores):
    return scores.max(axis=1), scores.argmax(axis=1)


def rows_of_maps(maps, anchors, chw):
    """Rows of numbers from one map for each level: [anchors × numbers, h, w] or [h, w, …]."""
    rows = []
    for values in maps:
        hwc = np.moveaxis(values, 0, -1) if chw else values
        rows.append(hwc.reshape(-1, hwc.shape[-1] // anchors))
    return np.concatenate(rows)


def tile_anchors(width, height, levels):
    """Width and height of the anchor of each row; levels: (stride, [(w, h), …])."""
    sizes = []
    for stride, pairs in levels:
        cells = -(-height // stride) * -(-width // stride)
        sizes.append(np.tile(np.array(pairs, float), (cells, 1)))
    return np.concatenate(sizes)


def yolo_v3(rows, width, height, levels):
    cells, stride = cells_of(width, height, [s for s, _ in levels], len(levels[0][1]))
    centre = (sigmoid(rows[:, :2]) + cells) * stride
    size = np.exp(rows[:, 2:4]) * tile_anchors(width, height, levels)
    scores, classes = best(sigmoid(rows[:, 4:5]) * sigmoid(rows[:, 5:]))
    return corners(centre, size), scores, classes, None


def yolo_v5(rows, width, height, levels):
    """The last layer of v5 and v7 before it is decoded."""
    cells, stride = cells_of(width, height, [s for s, _ in levels], len(levels[0][1]))
    values = sigmoid(rows)
    centre = (values[:, :2] * 2 - 0.5 + cells) * stride
    size = (values[:, 2:4] * 2) ** 2 * tile_anchors(width, height, levels)
    scores, classes = best(values[:, 4:5] * values[:, 5:])
    return corners(centre, size), scores, classes, None


def yolo_decoded(rows):
    """v5 to v7 as they are exported: centre, size, objectness, scores."""
    scores, classes = best(rows[:, 4:5] * rows[:, 5:])
    return corners(rows[:, :2], rows[:, 2:4]), scores, classes, None


def yolo_x(rows, width, height):
    cells, stride = cells_of(width, height, (8, 16, 32))
    scores, classes = best(rows[:, 4:5] * rows[:, 5:])
    centre = (rows[:, :2] + cells) * stride
    return corners(centre, np.exp(rows[:, 2:4]) * stride), scores, classes, None


def yolo_v8(numbers, keypoints=0):
    """[numbers, cells]: centre, size, scores without objectness, then x, y, score of points."""
    rows = numbers.T
    scores, classes = best(rows[:, 4 : len(numbers) - 3 * keypoints])
    points = rows[:, -3 * keypoints :].reshape(-1, keypoints, 3) if keypoints else None
    return corners(rows[:, :2], rows[:, 2:4]), scores, classes, points


def nanodet(rows, width, height, strides, largest, offset):
    cells, stride = cells_of(width, height, strides)
    count = rows.shape[1] - 4 * (largest + 1)
    logits = rows[:, count:].reshape(-1, 4, largest + 1)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    sides = weights @ np.arange(largest + 1.0) * stride
    centre = (cells + offset) * stride
    scores, classes = best(rows[:, :count])
    boxes = np.concatenate((centre - sides[:, :2], centre + sides[:, 2:]), axis=1)
    return boxes, scores, classes, None


def centernet(scores, sizes, offsets, width, height):
    """Maps with channels first. Every peak of 3×3 cells is an object; none suppresses others."""
    channels, rows, columns = scores.shape
    padded = np.pad(scores, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    classes, y, x = np.nonzero(scores == windows.max(axis=(-1, -2)))
    step = np.array((width / columns, height / rows))
    centre = (np.stack((x, y), 1) + offsets[:, y, x].T) * step
    return corners(centre, sizes[:, y, x].T * step), scores[classes, y, x], classes, None


def ssd_raw(boxes, logits, anchors, activation):
    """Box coder of TensorFlow's detectors: y, x, h, w, divided by 10, 10, 5, 5; class 0 is the
    background. anchors: x, y, w, h in pixels."""
    y, x, h, w = (boxes / (10, 10, 5, 5)).T[:, :, None]
    centre = np.hstack((x, y)) * anchors[:, 2:] + anchors[:, :2]
    size = np.exp(np.hstack((w, h))) * anchors[:, 2:]
    if activation == "softmax":
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores = powers / powers.sum(axis=1, keepdims=True)
    else:
        scores = sigmoid(logits)
    return corners(centre, size), *best(scores[:, 1:]), None


def blaze_face(numbers, logits, width, height):
    """Short-range: two anchors for each cell of 8 pixels, six of 16; six points."""
    centre = []
    for stride, count in ((8, 2), (16, 6)):
        cells, _ = cells_of(width, height, (stride,), count)
        centre.append((cells + 0.5) * stride)
    centre = np.concatenate(centre)
    scores = sigmoid(logits[:, 0])
    points = numbers[:, 4:].reshape(-1, 6, 2) + centre[:, None]
    points = np.concatenate((points, np.tile(scores[:, None, None], (1, 6, 1))), axis=-1)
    boxes = corners(numbers[:, :2] + centre, numbers[:, 2:4])
    return boxes, scores, np.zeros(len(scores), int), points


def ultraface(boxes, scores, width, height):
    """Two corners from 0 to 1; the second score is the face's."""
    return boxes * (width, height, width, height), *best(scores[:, 1:]), None


def movenet(values, width, height):
    """[1, points, (y, x, score)], from 0 to 1."""
    y, x, score = values[0].T
    return np.stack((x * width, y * height, score), 1), score.mean()


def mediapipe_pose(numbers, presence):
    """x, y, z in pixels, visibility and presence as logits; six points behind the body's 33 are
    for the tracker."""
    rows = numbers.reshape(-1, 5)[:33]
    return np.hstack((rows[:, :2], sigmoid(rows[:, 3:4]))), presence[0]


def peaks(heat):
    """Row, column and value of the highest cell of each channel [h, w, points]."""
    flat = heat.reshape(-1, heat.shape[-1])
    rows, columns = np.divmod(flat.argmax(axis=0), heat.shape[1])
    return rows, columns, flat.max(axis=0)


def heatmap(heat, width, height):
    """Channels first: the middle of the highest cell."""
    rows, columns, score = peaks(np.moveaxis(heat, 0, -1))
    x, y = (columns + 0.5) * width / heat.shape[2], (rows + 0.5) * height / heat.shape[1]
    return np.stack((x, y, score), 1), score.mean()


def posenet(heat, offsets, width, height):
    """Channels last, heat as logits, offsets y then x. Cells are corners of a grid."""
    rows, columns, logit = peaks(heat)
    count, at = heat.shape[-1], np.arange(heat.shape[-1])
    y = rows * (height - 1) / (heat.shape[0] - 1) + offsets[rows, columns, at]
    x = columns * (width - 1) / (heat.shape[1] - 1) + offsets[rows, columns, count + at]
    return np.stack((x, y, sigmoid(logit)), 1), sigmoid(logit).mean()


def ctc(steps, letters, blank):
    """The best path: repetitions are one letter, the blank parts them. letters: of all classes."""
    best_class, score = steps.argmax(axis=1), steps.max(axis=1)
    before = np.concatenate(([blank], best_class[:-1]))
    is_letter = (best_class != blank) & (best_class != before)
    return "".join(letters[i] for i in best_class[is_letter]), score[is_letter].mean()


def softmax(logits):
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)

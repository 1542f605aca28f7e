"""Writes the golden files beside this folder of operators that only ONNX has.

    python tests/ops/gen/make_onnx_ops.py [operator …]
"""

import sys

import numpy as np

import ort
from litert import Tensor, run, schema
from make_ops import B, File, O

NUMPY = {"f32": np.float32, "s32": np.int32, "s64": np.int64, "u8": np.uint8, "s8": np.int8}
MODES = ["none", "add", "mul", "min", "max"]


def numbers(rng, dtype, shape):
    if dtype == "f32":
        return rng.uniform(-4, 4, shape).astype(np.float32)
    low = 0 if dtype == "u8" else -90
    return rng.integers(low, 100, shape).astype(NUMPY[dtype])


def scatter_rows():
    file = File("scatter_rows")
    file.source = ort.SOURCE + " ScatterND"
    for dtype in ("f32", "s32", "s64", "u8"):
        for mode, name in enumerate(MODES if dtype != "u8" else MODES[:1]):
            for shape, rows in (((6, 3), [4, -1, 0]), ((5,), [1, 1, 3, 1]), ((3, 2, 4), [2])):
                data = numbers(file.rng, dtype, shape)
                rows = np.array(rows, np.int64)
                updates = numbers(file.rng, dtype, (len(rows),) + shape[1:])
                if mode == 0 and len(set(rows)) < len(rows):
                    updates[:] = updates[:1]  # which of several rows stays is not defined
                y, = ort.run("ScatterND", [data, rows[:, None], updates], 1, reduction=name)
                index = "s64" if len(shape) != 2 else "s32"
                file.add(f"{dtype} {name} {len(shape)} dimensions",
                         [Tensor(dtype, data=data), Tensor(index, data=rows),
                          Tensor(dtype, data=updates)],
                         [Tensor(dtype, data=y)], {"mode": mode})
    file.write()


def bitwise(name):
    file = File("bitwise_" + name.lower())
    file.source = ort.SOURCE + " Bitwise" + name
    for dtype in ("u8", "s8", "s32", "s64"):
        for shapes in (((3, 4), (3, 4)), ((2, 1, 3), (4, 1)), ((), (5,))):
            a, b = [numbers(file.rng, dtype, s) for s in shapes]
            y, = ort.run("Bitwise" + name, [np.asarray(a, NUMPY[dtype]), b], 1)
            file.add(f"{dtype} {list(shapes[0])} {list(shapes[1])}",
                     [Tensor(dtype, shapes[0], a), Tensor(dtype, data=b)],
                     [Tensor(dtype, data=y)])
    file.write()


def bitwise_and():
    bitwise("And")


def bitwise_or():
    bitwise("Or")


def bitwise_xor():
    bitwise("Xor")


def right_shift():
    """Of LiteRT, which has signed types; of ONNX Runtime the unsigned ones."""
    file = File("right_shift")
    for dtype in ("s8", "s16", "s32"):
        a = Tensor(dtype, [4, 5], file.rng.integers(-128, 128, (4, 5)))
        b = Tensor(dtype, [5], [0, 1, 3, 40, -2])
        y = Tensor(dtype)
        run(B.RIGHT_SHIFT, O.RightShiftOptions, schema.RightShiftOptionsT(), [a, b], [y])
        file.add(dtype, [a, b], [y])
    file.source += ", " + ort.SOURCE + " BitShift"
    for dtype, numpy in (("u8", np.uint8), ("u32", np.uint32)):
        a = file.rng.integers(0, 200, (3, 4)).astype(numpy)
        b = np.array([0, 1, 3, 7], numpy)
        y, = ort.run("BitShift", [a, b], 1, direction="RIGHT")
        file.add(dtype, [Tensor(dtype, data=a), Tensor(dtype, data=b)], [Tensor(dtype, data=y)])
    file.write()


def filled(y, axis, room):
    """A result in a tensor with room for more along an axis: dense at the front, the rest 0."""
    shape = list(y.shape)
    shape[axis] = room
    flat = np.zeros(int(np.prod(shape)), y.dtype)
    flat[:y.size] = y.reshape(-1)
    return flat.reshape(shape)


def size(count):
    return Tensor("s64", data=np.array([count], np.int64))


def non_zero():
    file = File("non_zero")
    file.source = ort.SOURCE + " NonZero"
    for dtype, numpy in (("f32", np.float32), ("s32", np.int32), ("s64", np.int64),
                         ("u8", np.uint8), ("bool", np.bool_)):
        for shape in ((5,), (3, 4), (2, 3, 2), (2, 2, 2, 2), ()):
            for share in (0, 0.5, 1):
                x = np.array((file.rng.uniform(0, 1, shape) < share) * 3, numpy)
                if dtype == "f32" and x.size:
                    x.reshape(-1)[0] = -0.0
                y, = ort.run("NonZero", [x], 1)
                rows = filled(y, 1, x.size)
                name = f"{dtype} {list(shape)} {share}"
                file.add(name, [Tensor(dtype, shape, x)], [Tensor("s64", data=rows),
                                                           size(y.shape[1])])
                rows = filled(np.ascontiguousarray(y.T), 0, x.size)
                file.add(name + " by element", [Tensor(dtype, shape, x)],
                         [Tensor("s64", data=rows), size(y.shape[1])], {"by_element": True})
    file.write()


def unique():
    file = File("unique")
    file.source = ort.SOURCE + " Unique"
    for dtype, numpy in (("f32", np.float32), ("s64", np.int64), ("s8", np.int8)):
        for shape, axis in (((7,), None), ((3, 4), None), ((1,), None), ((5,), 0), ((6, 2), 0),
                            ((2, 6), 1), ((2, 5, 2), -2), ((40,), None)):
            for is_sorted in (1, 0):
                x = file.rng.integers(-2, 2, shape).astype(numpy)
                attrs = {"sorted": is_sorted, **({} if axis is None else {"axis": axis})}
                y, first, inverse, counts = ort.run("Unique", [x], 4, **attrs)
                room, along = (x.size, 0) if axis is None else (shape[axis], axis)
                file.add(f"{dtype} {list(shape)} axis {axis} sorted {is_sorted}",
                         [Tensor(dtype, shape, x)],
                         [Tensor(dtype, data=filled(y, along, room)),
                          Tensor("s64", data=filled(first, 0, room)),
                          Tensor("s64", data=inverse), Tensor("s64", data=filled(counts, 0, room)),
                          size(len(first))],
                         {"is_sorted": bool(is_sorted), "has_axis": axis is not None,
                          "axis": axis or 0})
    file.write()


def non_max_suppression():
    file = File("non_max_suppression")
    file.source = ort.SOURCE + " NonMaxSuppression"
    for batches, classes, count in ((1, 1, 6), (2, 3, 20), (1, 2, 70), (1, 1, 1)):
        for centered in (0, 1):
            for most, iou, score in ((3, 0.5, None), (1000, 0.3, 0.4), (1000, 0.0, 2.0),
                                     (5, 1.0, 0.1)):
                corner = file.rng.uniform(0, 8, (batches, count, 2))
                extent = file.rng.uniform(0, 4, (batches, count, 2))
                extent[:, ::5] *= -1 if not centered else 1
                boxes = np.concatenate([corner, extent if centered else corner + extent],
                                       2).astype(np.float32)
                scores = file.rng.integers(0, 12, (batches, classes, count)) / 12
                scores = scores.astype(np.float32)
                given = [np.array([most], np.int64), np.array([iou], np.float32)]
                if score is not None:
                    given.append(np.array([score], np.float32))
                y, = ort.run("NonMaxSuppression", [boxes, scores] + given, 1,
                             center_point_box=centered)
                room = batches * classes * min(most, count)
                file.add(f"{batches} {classes} {count} most {most} iou {iou} score {score} "
                         f"centered {centered}",
                         [Tensor("f32", data=boxes), Tensor("f32", data=scores)],
                         [Tensor("s64", data=filled(y, 0, room)), size(len(y))],
                         {"max_boxes": most, "iou_threshold": iou,
                          "score_threshold": score or 0.0, "has_score": score is not None,
                          "is_centered": bool(centered)})
    file.write()


SAMPLED = {"relative": 2e-5, "absolute": 2e-5}


def grid_sample():
    file = File("grid_sample")
    file.source = ort.SOURCE + " GridSample"
    for mode, name in enumerate(("linear", "nearest", "cubic")):
        for padding, outside in enumerate(("zeros", "border", "reflection")):
            for align in (0, 1):
                for shape, places in (((1, 4, 5, 1), (3, 4)), ((2, 3, 3, 2), (4, 2)),
                                      ((1, 1, 6, 3), (2, 5))):
                    x = numbers(file.rng, "f32", shape)
                    grid = file.rng.uniform(-1.6, 1.6, (shape[0],) + places + (2,))
                    grid = grid.astype(np.float32)
                    y, = ort.run("GridSample", [x.transpose(0, 3, 1, 2), grid], 1, opset=20,
                                 mode=name, padding_mode=outside, align_corners=align)
                    file.add(f"{name} {outside} align {align} {list(shape)}",
                             [Tensor("f32", data=x), Tensor("f32", data=grid)],
                             [Tensor("f32", data=y.transpose(0, 2, 3, 1))],
                             {"mode": mode, "padding": padding, "align_corners": bool(align)},
                             SAMPLED)
    file.write()


def roi_align():
    file = File("roi_align")
    file.source = ort.SOURCE + " RoiAlign"
    for mode in ("avg", "max"):
        for half in (0, 1):
            for sampling in (0, 1, 2):
                for shape, size_out in (((1, 8, 9, 1), (2, 3)), ((2, 5, 6, 3), (3, 2))):
                    x = numbers(file.rng, "f32", shape)
                    low = file.rng.uniform(-1, 8, (5, 2))
                    regions = np.concatenate([low, low + file.rng.uniform(0, 9, (5, 2))],
                                             1).astype(np.float32)
                    images = file.rng.integers(0, shape[0], 5)
                    y, = ort.run("RoiAlign", [x.transpose(0, 3, 1, 2), regions, images], 1,
                                 mode=mode, output_height=size_out[0], output_width=size_out[1],
                                 sampling_ratio=sampling, spatial_scale=0.7,
                                 coordinate_transformation_mode=("output_half_pixel",
                                                                 "half_pixel")[half])
                    file.add(f"{mode} half pixel {half} sampling {sampling} {list(shape)}",
                             [Tensor("f32", data=x), Tensor("f32", data=regions),
                              Tensor("s64", data=images)],
                             [Tensor("f32", data=y.transpose(0, 2, 3, 1))],
                             {"height": size_out[0], "width": size_out[1], "sampling": sampling,
                              "spatial_scale": 0.7, "is_max": mode == "max",
                              "half_pixel": bool(half)}, SAMPLED)
    file.source += ", MaxRoiPool"
    for shape, size_out in (((1, 8, 9, 1), (2, 3)), ((2, 5, 6, 3), (3, 2)), ((2, 3, 4, 2), (7, 7))):
        x = numbers(file.rng, "f32", shape)
        low = file.rng.uniform(-4, 12, (9, 2))
        regions = np.concatenate([low, low + file.rng.uniform(-3, 12, (9, 2))],
                                 1).astype(np.float32)
        images = file.rng.integers(0, shape[0], 9)
        y, = ort.run("MaxRoiPool", [x.transpose(0, 3, 1, 2),
                                    np.concatenate([images[:, None], regions],
                                                   1).astype(np.float32)], 1,
                     pooled_shape=size_out, spatial_scale=0.7)
        file.add(f"whole pixels {list(shape)}",
                 [Tensor("f32", data=x), Tensor("f32", data=regions),
                  Tensor("s64", data=images)],
                 [Tensor("f32", data=y.transpose(0, 2, 3, 1))],
                 {"height": size_out[0], "width": size_out[1], "sampling": 0,
                  "spatial_scale": 0.7, "is_whole": True})
    file.write()


def det():
    file = File("det")
    file.source = ort.SOURCE + " Det"
    for shape in ((1, 1), (2, 2), (5, 5), (3, 4, 4), (2, 2, 3, 3)):
        x = numbers(file.rng, "f32", shape)
        y, = ort.run("Det", [x], 1)
        file.add(f"{list(shape)}", [Tensor("f32", data=x)],
                 [Tensor("f32", list(np.shape(y)), y)], tolerance=SAMPLED)
    x = np.array([[0, 2, 1], [0, 0, 3], [4, 1, 1]], np.float32)
    file.add("pivots", [Tensor("f32", data=x)],
             [Tensor("f32", [], np.asarray(ort.run("Det", [x], 1)[0]))], tolerance=SAMPLED)
    file.write()


def inverse():
    file = File("inverse")
    file.source = ort.SOURCE + " Inverse"
    for shape in ((1, 1), (2, 2), (5, 5), (3, 4, 4), (2, 2, 3, 3)):
        x = numbers(file.rng, "f32", shape) + 3 * np.eye(shape[-1], dtype=np.float32)
        y, = ort.run("Inverse", [x], 1, domain="com.microsoft")
        file.add(f"{list(shape)}", [Tensor("f32", data=x)], [Tensor("f32", data=y)],
                 tolerance=SAMPLED)
    x = np.array([[0, 2, 1], [0, 0, 3], [4, 1, 1]], np.float32)
    y, = ort.run("Inverse", [x], 1, domain="com.microsoft")
    file.add("pivots", [Tensor("f32", data=x)], [Tensor("f32", data=y)], tolerance=SAMPLED)
    file.write()


ALL = {f.__name__: f for f in (scatter_rows, bitwise_and, bitwise_or, bitwise_xor, right_shift,
                                  non_zero, unique, non_max_suppression, grid_sample, roi_align,
                                  det, inverse)}

if __name__ == "__main__":
    for op in sys.argv[1:] or ALL:
        ALL[op]()

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


ALL = {f.__name__: f for f in (scatter_rows, bitwise_and, bitwise_or, bitwise_xor,
                                  right_shift)}

if __name__ == "__main__":
    for op in sys.argv[1:] or ALL:
        ALL[op]()

"""Writes the golden files beside this folder of operators that only ONNX has.

    python tests/ops/gen/make_onnx_ops.py [operator …]
"""

import sys

import numpy as np

import ort
from litert import Tensor
from make_ops import File

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


ALL = {f.__name__: f for f in (scatter_rows,)}

if __name__ == "__main__":
    for op in sys.argv[1:] or ALL:
        ALL[op]()

"""Writes erf.json beside this folder, from the C library's double precision.

python tests/ops/gen/make_erf.py
"""

import math

import numpy as np

from litert import Tensor
from make_ops import F32_TOLERANCE, File


def main():
    file = File("erf")
    file.source = "erf of the C library in double precision, by CPython's math.erf"
    x = np.concatenate([file.rng.uniform(-4, 4, 36), [0, -0.0, 12, -12]]).astype(np.float32)
    y = np.array([math.erf(float(v)) for v in x])
    file.add("f32", [Tensor("f32", data=x)], [Tensor("f32", data=y)], None, F32_TOLERANCE)
    file.write()


if __name__ == "__main__":
    main()

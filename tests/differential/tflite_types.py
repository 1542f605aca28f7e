"""Random cases, as in tflite_cases.py, of types that few models have, and of STABLEHLO_CASE."""
import numpy as np

from litert import Tensor
from tflite_cases import CASES, B, Case, pair_of_shapes, pick, shape_of, tensor

HALVES = ("ADD", "COS", "EQUAL", "FLOOR", "GELU", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL",
          "LOGISTIC", "MAXIMUM", "MINIMUM", "MUL", "NEG", "NOT_EQUAL", "ROUND", "SIN", "SOFTMAX",
          "TANH")


def of_halves(make):
    """A case of f32 in f16. Numbers repeat, so that some are equal and some lie half way."""
    def make_halves(rng):
        case = make(rng)
        while case.inputs[0].dtype != "f32":
            case = make(rng)
        for t in case.inputs + case.outputs:
            if t.dtype == "f32":
                t.dtype, t.np = "f16", np.float16
                t.data = None if t.data is None else (np.round(t.data * 64) / 64).astype(t.np)
        return case

    return make_halves


def product_of_u32(rng):
    """Beyond 32 bits the high ones are gone."""
    a, b = pair_of_shapes(rng)
    data = [rng.integers(0, 2**32 if rng.integers(2) else 2**15, shape) for shape in (a, b)]
    return Case("MUL", [Tensor("u32", data=x) for x in data], [Tensor("u32")], ("MulOptions",))


def gather_by_s16(rng):
    case = CASES["GATHER"](rng)
    case.inputs[1] = Tensor("s16", data=case.inputs[1].data)
    return case


def hlo_case(rng):
    """Branches of two operands; numbers that are none choose the last."""
    bodies = tuple(int(b) for b in rng.permutation(
        [B.STABLEHLO_ADD, B.STABLEHLO_MULTIPLY, B.STABLEHLO_MAXIMUM, B.STABLEHLO_MINIMUM])
        [: int(rng.integers(1, 5))])
    shape, dtype = shape_of(rng), pick(rng, "f32", "s32", "s64")
    which = Tensor("s32", [], data=rng.integers(-1, len(bodies) + 1))
    return Case("STABLEHLO_CASE", [which, tensor(rng, shape, dtype), tensor(rng, shape, dtype)],
                [Tensor(dtype, shape)],
                ("StablehloCaseOptions",
                 ("branchSubgraphIndices", list(range(1, len(bodies) + 1)))), body=bodies)


TYPES = {**{f"{op} OF HALVES": of_halves(CASES[op]) for op in HALVES},
         "MUL OF U32": product_of_u32, "GATHER BY S16": gather_by_s16, "STABLEHLO_CASE": hlo_case}

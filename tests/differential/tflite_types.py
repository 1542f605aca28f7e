"""Random cases, as in tflite_cases.py, of types that few models have, and of STABLEHLO_CASE."""
import numpy as np

from litert import DTYPES, Tensor
from tflite_cases import CASES, RANGE, A, B, Case, pair_of_shapes, pick, shape_of, tensor

HALVES = ("ADD", "COS", "EQUAL", "FLOOR", "GELU", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL",
          "LOGISTIC", "MAXIMUM", "MINIMUM", "MUL", "NEG", "NOT_EQUAL", "ROUND", "SIN", "SOFTMAX",
          "TANH")
WHOLE = ("ABS", "ADD", "EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "MUL", "NEG")


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
    return Case("MUL", [Tensor("u32", data=x) for x in data], [Tensor("u32")],
                ("MulOptions", ("fusedActivationFunction", bound(rng))))


def bound(rng):
    return pick(rng, A.NONE, A.RELU, A.RELU6, A.RELU_N1_TO_1)


def plain_s16(op):
    """Whole numbers, without a scale, whose results lose the bits that they have too many."""
    def make(rng):
        shapes = pair_of_shapes(rng)[: 1 if op in ("ABS", "NEG") else 2]
        high = pick(rng, 4, 2**15)
        inputs = [Tensor("s16", data=rng.integers(-high, high, shape)) for shape in shapes]
        name = {"ADD": "AddOptions", "MUL": "MulOptions"}.get(op)
        options = (name, ("fusedActivationFunction", bound(rng))) if name else None
        flags = op not in ("ADD", "MUL", "ABS", "NEG")
        return Case(op, inputs, [Tensor("bool" if flags else "s16")], options)

    return make


def complex_tensor(rng, shape):
    return Tensor("c64", data=rng.uniform(-2, 2, shape) + 1j * rng.uniform(-2, 2, shape))


def product_of_complex(rng):
    return Case("MUL", [complex_tensor(rng, shape) for shape in pair_of_shapes(rng)],
                [Tensor("c64")], ("MulOptions",))


def cast_to_complex(rng):
    shape, dtype = shape_of(rng), pick(rng, *DTYPES)
    low = -5 if dtype[0] in "fs" else 0
    x = Tensor(dtype, data=rng.integers(low, 2 if dtype == "bool" else 6, shape))
    return Case("CAST", [complex_tensor(rng, shape) if dtype == "c64" else x],
                [Tensor("c64", shape)], ("CastOptions",))


def gather_by_s16(rng):
    case = CASES["GATHER"](rng)
    case.inputs[1] = Tensor("s16", data=case.inputs[1].data)
    return case


def rows_by_index(rng):
    """Of a table of bytes with a scale, or one for each row."""
    shape = shape_of(rng, int(rng.integers(2, 4)), 12)
    scale = rng.uniform(0.01, 3, 1 if rng.integers(2) else shape[0])
    table = Tensor("s8", data=rng.integers(-128, 128, shape), scale=scale,
                   zero_point=[0] * len(scale), constant=True)
    at = Tensor("s32", data=rng.integers(0, shape[0], int(rng.integers(1, 9))))
    return Case("EMBEDDING_LOOKUP", [at, table], [Tensor("f32", [at.shape[0], *shape[1:]])])


def channels(rng, dtype):
    """Scales and zero points along an axis."""
    shape = shape_of(rng)
    axis = int(rng.integers(len(shape)))
    low, high = RANGE[dtype]
    t = Tensor(dtype, shape, rng.integers(low, high + 1, shape),
               rng.uniform(0.01, 0.2, shape[axis]), rng.integers(low, high + 1, shape[axis]))
    t.axis = axis
    return t


def quantize_channels(rng):
    y = channels(rng, pick(rng, "u8", "s8", "s16"))
    x = Tensor("f32", y.shape, rng.uniform(-30, 30, y.shape))
    y.data = None
    return Case("QUANTIZE", [x], [y])


def dequantize_channels(rng):
    x = channels(rng, pick(rng, "u8", "s8"))
    return Case("DEQUANTIZE", [x], [Tensor("f32", x.shape)])


def plain_neg(rng):
    """Stored numbers, whose scales say nothing; the result has their type."""
    dtype, shape = pick(rng, "s8", "s16"), shape_of(rng)
    low, high = RANGE[dtype]
    x = Tensor(dtype, shape, rng.integers(low, high + 1, shape), pick(rng, None, 0.5))
    return Case("NEG", [x], [Tensor(pick(rng, dtype, "f32"), shape, None, pick(rng, None, 0.25))])


def shifted_s16(rng):
    """Weights of 16 bits around a zero point."""
    rows, inside, out = (int(rng.integers(1, n)) for n in (4, 40, 9))
    x = Tensor("s16", [rows, inside], rng.integers(-4000, 4000, (rows, inside)), 0.001)
    w = Tensor("s16", [out, inside], rng.integers(-4000, 4000, (out, inside)), 0.001,
               int(rng.integers(-4000, 4000)), True)
    bias = Tensor("s32", [out], rng.integers(-10**6, 10**6, out), 1e-6, 0, True)
    return Case("FULLY_CONNECTED", [x, w, pick(rng, None, bias)],
                [Tensor("s16", [rows, out], None, 0.002)], ("FullyConnectedOptions",))


def scatter_of_any(rng):
    dtype = pick(rng, "f16", "f64", "bool", "s8", "u8", "s16", "u16", "u32")
    case = CASES["STABLEHLO_SCATTER"](rng)
    high = {"bool": 2, "u8": 256, "s8": 128}.get(dtype, 2**15)
    for t in (case.inputs[0], case.inputs[2], *case.outputs):
        data = rng.integers(0, high, t.shape) if t.data is not None else None
        if data is not None and dtype[0] == "f":
            data = rng.uniform(-8, 8, t.shape)
        t.__init__(dtype, t.shape, data)
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
         **{f"{op} OF PLAIN S16": plain_s16(op) for op in WHOLE},
         "EMBEDDING_LOOKUP": rows_by_index, "MUL OF COMPLEX": product_of_complex,
         "CAST TO COMPLEX": cast_to_complex,
         "QUANTIZE PER CHANNEL": quantize_channels, "DEQUANTIZE PER CHANNEL": dequantize_channels,
         "NEG OF STORED": plain_neg, "FULLY_CONNECTED SHIFTED": shifted_s16,
         "STABLEHLO_SCATTER OF ANY": scatter_of_any,
         "MUL OF U32": product_of_u32, "GATHER BY S16": gather_by_s16, "STABLEHLO_CASE": hlo_case}

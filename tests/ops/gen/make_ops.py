"""Writes the golden files beside this folder: element-wise operators, types, data movement.

    python tests/ops/gen/make_ops.py [operator …]

Deterministic: the same LiteRT gives the same files.
"""

import json
import os
import sys

import numpy as np

from litert import SOURCE, Tensor, run, schema

HERE = os.path.dirname(os.path.abspath(__file__))
B = schema.BuiltinOperator
O = schema.BuiltinOptions
F32_TOLERANCE = {"relative": 2e-6, "absolute": 1e-7}
RANGE = {"u8": (0, 255), "s8": (-128, 127), "s16": (-32768, 32767), "s32": (-(2**31), 2**31 - 1)}


# ---- files ----


def number(x):
    if isinstance(x, str):
        return x
    if isinstance(x, np.float64):
        return float(x)
    if isinstance(x, (np.floating, float)):
        x = float(x)
        if np.isnan(x):
            return "nan"
        if np.isinf(x):
            return "inf" if x > 0 else "-inf"
        short = float("%.9g" % x)
        is_whole = short == int(short) and abs(short) < 1e15
        return int(short) if is_whole and not (short == 0 and np.signbit(x)) else short
    return int(x)


def tensor_json(t):
    if t is None:
        return None
    parts = {"f16": np.uint16, "c64": np.float32}
    data = np.ascontiguousarray(t.data)
    data = data.view(parts[t.dtype]) if t.dtype in parts else data
    out = {"dtype": t.dtype, "shape": [int(d) for d in t.shape]}
    if t.scale is not None:
        out["scale"] = t.scale
        out["zero_point"] = t.zero_point
        if len(t.scale) > 1:
            out["axis"] = t.axis
    if t.constant:
        out["constant"] = True
    out["data"] = [number(x) for x in data.reshape(-1)]
    return out


class File:
    def __init__(self, op):
        self.op = op
        self.source = SOURCE
        self.cases = []
        self.rng = np.random.default_rng(sum(op.encode()) * 7919)

    def add(self, name, inputs, outputs, attrs=None, tolerance=None):
        case = {"name": name}
        if attrs:
            case["attrs"] = attrs
        if tolerance:
            case.update(tolerance)
        case["inputs"] = [tensor_json(t) for t in inputs]
        case["outputs"] = [tensor_json(t) for t in outputs]
        self.cases.append(case)

    def write(self):
        path = os.path.join(HERE, "..", self.op + ".json")
        with open(path, "w") as f:
            f.write('{"op": "%s", "source": "%s", "cases": [\n' % (self.op, self.source))
            f.write(",\n".join(json.dumps(c, separators=(",", ":")) for c in self.cases))
            f.write("\n]}\n")
        print("%s: %d cases, %d bytes" % (self.op, len(self.cases), os.path.getsize(path)))


def every(dtype, rng, count=700):
    """Every value of an 8-bit type; ends, middle and random ones of s16."""
    low, high = RANGE[dtype]
    if dtype != "s16":
        return np.arange(low, high + 1)
    edge = np.array([low, low + 1, -1, 0, 1, high - 1, high])
    near = rng.integers(-600, 600, count // 3)
    return np.concatenate([edge, near, rng.integers(low, high + 1, count - len(near) - 7)])


def scale(rng, low=-8, high=0):
    return float(np.float32(2 ** rng.uniform(low, high)))


def zero(rng, dtype):
    return 0 if dtype == "s16" else int(rng.integers(RANGE[dtype][0], RANGE[dtype][1] + 1))


# ---- unary ----

UNARY = {
    # op: (builtin, quantized types, values for f32)
    "abs": (B.ABS, ["s8", "s16"], None),
    "neg": (B.NEG, ["s8", "s16"], None),
    "exp": (B.EXP, ["s8", "s16"], None),
    "log": (B.LOG, ["s8", "s16"], "positive"),
    "sqrt": (B.SQRT, ["s8", "s16"], "positive"),
    "rsqrt": (B.RSQRT, ["s8", "s16"], "positive"),
    "relu": (B.RELU, ["u8", "s8", "s16"], None),
    "relu6": (B.RELU6, ["u8", "s8", "s16"], None),
    "relu_n1_to_1": (B.RELU_N1_TO_1, ["u8", "s8"], None),
    "clamp": (B.RELU_0_TO_1, [], None),
    "leaky_relu": (B.LEAKY_RELU, ["u8", "s8", "s16"], None),
    "hard_swish": (B.HARD_SWISH, ["u8", "s8"], None),
    "logistic": (B.LOGISTIC, ["u8", "s8", "s16"], None),
    "tanh": (B.TANH, ["u8", "s8", "s16"], None),
}
FIXED_OUTPUT = {
    "logistic": {"u8": (1 / 256, 0), "s8": (1 / 256, -128), "s16": (1 / 32768, 0)},
    "tanh": {"u8": (1 / 128, 128), "s8": (1 / 128, 0), "s16": (1 / 32768, 0)},
}


def unary_options(op, rng):
    if op == "clamp":
        return 0, None, {"min": 0.0, "max": 1.0}
    if op != "leaky_relu":
        return 0, None, None
    options = schema.LeakyReluOptionsT()
    options.alpha = float(np.float32(rng.choice([0.01, 0.1, 0.3, 1.7])))
    return O.LeakyReluOptions, options, {"alpha": float("%.9g" % options.alpha)}


def unary_f32(file, op, builtin, kind):
    rng = file.rng
    x = rng.uniform(0.001, 50, 40) if kind else np.concatenate([rng.uniform(-12, 12, 34),
                                                                [0, -3, 3, -6, 6, 1]])
    kind_of, options, attrs = unary_options(op, rng)
    a, y = Tensor("f32", [5, len(x) // 5], x), Tensor("f32", [5, len(x) // 5])
    run(builtin, kind_of, options, [a], [y])
    exact = op in ("abs", "neg", "sqrt", "relu", "relu6", "relu_n1_to_1", "clamp", "leaky_relu")
    file.add("f32", [a], [y], attrs, None if exact else F32_TOLERANCE)


def unary_quant(file, op, builtin, dtype, pot=None):
    rng = file.rng
    si, zi = (2.0**pot if pot else scale(rng)), zero(rng, dtype)
    if dtype == "s16":
        si = 2.0**pot if pot else scale(rng, -14, -10 if op == "exp" else -8)
    so, zo = FIXED_OUTPUT.get(op, {}).get(dtype, (si * float(np.float32(2 ** rng.uniform(-2, 2))),
                                                  zero(rng, dtype)))
    if op in ("exp", "log"):
        so = scale(rng, -6, 1)
    if op in ("sqrt", "rsqrt"):  # of no negative number
        zi, so = 0 if dtype == "s16" else RANGE[dtype][0], scale(rng, -6, 1)
    data = every(dtype, rng)
    if op in ("sqrt", "rsqrt") and dtype == "s16":
        data = np.abs(data.clip(-32767))
    a = Tensor(dtype, data=data, scale=si, zero_point=zi)
    y = Tensor(dtype, shape=a.shape, scale=so, zero_point=zo)
    kind_of, options, attrs = unary_options(op, rng)
    version = 2 if dtype == "s16" and op in ("exp", "log", "rsqrt") or op == "sqrt" else 1
    run(builtin, kind_of, options, [a], [y], version)
    file.add("%s scale %.4g" % (dtype, si), [a], [y], attrs)


def make_unary(op):
    builtin, types, kind = UNARY[op]
    file = File(op)
    unary_f32(file, op, builtin, kind)
    for dtype in types:
        for _ in range(4):
            unary_quant(file, op, builtin, dtype)
    if op in ("logistic", "tanh"):
        for pot in (-12, -11, -10, -13):
            unary_quant(file, op, builtin, "s16", pot)
    # so small that LiteRT's multiplier is 0
    for si in (0, 1e-40, 1e-20) if op in ("logistic", "tanh") else ():
        a = Tensor("s16", data=[-32768, -32767, -2, -1, 0, 1, 2, 32767], scale=si)
        y = Tensor("s16", shape=[8], scale=1 / 32768)
        run(builtin, 0, None, [a], [y])
        file.add("s16 scale %g" % si, [a], [y])
    for power in (30, 32, 40, 70) if op == "rsqrt" else ():  # of the factor, whose shift wraps
        a = Tensor("s8", data=np.arange(41) - 5, scale=1.0, zero_point=-5)
        y = Tensor("s8", shape=[41], scale=0.7 * 2.0**-power, zero_point=-3)
        run(builtin, 0, None, [a], [y])
        file.add("scales 2^%d apart" % power, [a], [y])
    if op == "rsqrt":  # numbers below the zero point, which are refused, exist but are not here
        a = Tensor("s8", data=np.arange(-5, 128), scale=0.3, zero_point=-5)
        y = Tensor("s8", shape=a.shape, scale=0.01, zero_point=-100)
        run(builtin, 0, None, [a], [y])
        file.add("s8 with zero point -5", [a], [y])
    if op in ("abs", "neg"):
        x = file.rng.integers(-(2**31), 2**31, 20)
        for dtype in ["s32"] if op == "abs" else ["s32", "s64"]:
            a, y = Tensor(dtype, data=x * (2**20 if dtype == "s64" else 1)), Tensor(dtype,
                                                                                    shape=[20])
            run(builtin, 0, None, [a], [y])
            file.add(dtype, [a], [y])
    file.write()


# ---- binary ----

BINARY = {
    "add": (B.ADD, O.AddOptions, schema.AddOptionsT, ["u8", "s8", "s16"]),
    "sub": (B.SUB, O.SubOptions, schema.SubOptionsT, ["u8", "s8", "s16"]),
    "mul": (B.MUL, O.MulOptions, schema.MulOptionsT, ["u8", "s8", "s16"]),
    "div": (B.DIV, O.DivOptions, schema.DivOptionsT, ["u8", "s8", "s16"]),
    "floor_mod": (B.FLOOR_MOD, O.FloorModOptions, schema.FloorModOptionsT, ["s8", "s16"]),
    "minimum": (B.MINIMUM, O.MaximumMinimumOptions, schema.MaximumMinimumOptionsT,
                ["u8", "s8", "s16"]),
    "maximum": (B.MAXIMUM, O.MaximumMinimumOptions, schema.MaximumMinimumOptionsT,
                ["u8", "s8", "s16"]),
    "squared_difference": (B.SQUARED_DIFFERENCE, O.SquaredDifferenceOptions,
                           schema.SquaredDifferenceOptionsT, ["s8"]),
}
ACTIVATION = {
    0: schema.ActivationFunctionType.NONE,
    1: schema.ActivationFunctionType.RELU,
    2: schema.ActivationFunctionType.RELU_N1_TO_1,
    3: schema.ActivationFunctionType.RELU6,
}
SHAPES = [([2, 3, 4], [2, 3, 4]), ([2, 1, 4], [3, 1]), ([1], [2, 3, 4]), ([2, 3, 4], [])]


def random_data(rng, dtype, shape):
    if dtype == "f32":
        return rng.uniform(-9, 9, shape)
    low, high = RANGE.get(dtype, (-1000, 1000))
    return rng.integers(low, high + 1, shape)


# Of both inputs and the output: 0, as converters have it of zeros, and denormal ones. ADD takes no
# output of a much smaller scale, and sums take no input of scale 0.
ODD_SCALES = {
    "add": [(1e-40, 0.5, 0.5), (1e-45, 1e-39, 1e-42), (1e-40, 1e-40, 1e-40), (1e-40, 2e-40, 0.5)],
    "mul": [(0.5, 0, 0.5), (0, 0, 0.5), (0.5, 0.5, 0), (0, 0.5, 0), (0.5, 1e-45, 1e-45),
            (1e-40, 0.5, 3e-41), (1e-30, 1e-20, 0.5), (0.5, 0.5, 1e-40)],
}
ODD_SCALES["sub"] = ODD_SCALES["add"] + [(0.5, 0.25, 0)]


def binary_case(file, op, dtype, shapes, activation=0, pot=None, factor=None, odd=None, name=""):
    builtin, kind, make, _ = BINARY[op]
    rng = file.rng
    quant = dtype in ("u8", "s8", "s16") and op != "floor_mod"
    scales, zeros = [None] * 3, [0] * 3
    if odd:
        scales, zeros = odd, [zero(rng, dtype) for _ in range(3)]
    elif quant:
        scales = list(pot) if pot else [scale(rng, -7, -1) for _ in range(3)]
        zeros = [zero(rng, dtype) for _ in range(3)]
        if op in ("mul", "squared_difference"):
            scales[2] = scales[0] * scales[1] * (2**14 if dtype == "s16"
                                                 else 2**6) * float(rng.uniform(0.5, 2))
        elif op == "div":
            scales[2] = scales[0] / scales[1] / float(rng.uniform(2, 60))
        elif dtype != "s16" or not pot:
            scales[2] = max(scales[:2]) * float(rng.uniform(0.3, 3))
        if op in ("minimum", "maximum"):
            scales, zeros = [scales[0]] * 3, [zeros[0]] * 3
        if factor:
            scales[2] = scales[0] * scales[1] / factor
    data = [random_data(rng, dtype, s) for s in shapes]
    if op == "div" and quant:  # LiteRT shifts smaller quotients by more than 31 bits
        data[0] = np.where(np.abs(data[0] - zeros[0]) < 16, (data[0] + 32) % 256, data[0])
        data[1] = np.where(data[1] == zeros[1], (data[1] + 1) % 256, data[1])
    elif op in ("div", "floor_mod") and dtype != "f32":
        signs = np.where(rng.integers(0, 2, shapes[1]) > 0, 1, -1)
        data[1] = np.where(data[1] % 7 == 0, 7, data[1] % 7) * signs
    a, b = [Tensor(dtype, s, d, sc, z) for s, d, sc, z in zip(shapes, data, scales, zeros)]
    y = Tensor(dtype, scale=scales[2], zero_point=zeros[2])
    options, attrs = make(), {}
    if hasattr(options, "fusedActivationFunction"):
        options.fusedActivationFunction = ACTIVATION[activation]
        attrs = {"activation": activation} if activation else {}
    if hasattr(options, "potScaleInt16"):
        options.potScaleInt16 = pot is not None
        if pot:
            attrs["pot_scale_int16"] = True
    run(builtin, kind, options, [a, b], [y], 2 if quant else 1)
    tolerance = F32_TOLERANCE if op == "floor_mod" and dtype == "f32" else None
    file.add("%s %s %s%s" % (dtype, shapes[0], shapes[1], name), [a, b], [y], attrs, tolerance)


def make_binary(op):
    file = File(op)
    types = BINARY[op][3]
    for shapes in SHAPES:
        binary_case(file, op, "f32", shapes)
    for dtype in ["s32"] + ([] if op in ("div", "squared_difference") else ["s64"]):
        binary_case(file, op, dtype, SHAPES[0])
        binary_case(file, op, dtype, SHAPES[1])
    has_activation = hasattr(BINARY[op][2](), "fusedActivationFunction")
    for activation in (1, 2, 3) if has_activation else ():
        binary_case(file, op, "f32", SHAPES[0], activation, name=" activation %d" % activation)
    for dtype in types:
        for shapes in SHAPES:
            binary_case(file, op, dtype, shapes)
        for _ in range(6):
            binary_case(file, op, dtype, ([60], [60]))
        for activation in (1, 2, 3) if has_activation else ():
            binary_case(file, op, dtype, ([40], [40]), activation,
                        name=" activation %d" % activation)
    if op == "mul":
        for dtype in ("u8", "s8"):
            # from 2^16 on what the factor is multiplied with wraps
            for exponent in (13, 15, 16, 18, 24):
                binary_case(file, op, dtype, ([60], [60]), factor=2.0**exponent,
                            name=" factor 2^%d" % exponent)
    if op in ("add", "sub"):
        for pot in ((2**-9, 2**-10, 2**-9), (2**-11, 2**-9, 2**-9), (2**-9, 2**-9, 2**-9)):
            binary_case(file, op, "s16", ([60], [60]), pot=pot, name=" powers of two")
        binary_case(file, op, "s16", ([60], [60]), 1, pot=(2**-12, 2**-12, 2**-12),
                    name=" powers of two, relu")
    for odd in ODD_SCALES.get(op, ()):
        for dtype in types:
            binary_case(file, op, dtype, ([12], [12]), odd=odd, name=" scales %g %g %g" % odd)
    file.write()


# ---- types ----


def make_quantize():
    file = File("quantize")
    rng = file.rng
    for dtype in ("u8", "s8", "s16"):
        for _ in range(3):
            so, zo = scale(rng), zero(rng, dtype)
            steps = rng.integers(*RANGE[dtype], 60)
            x = np.concatenate([(steps - zo) * so, (steps[:30] - zo + 0.5) * so,
                                [1e4, -1e4, 0, -0.0]])
            a, y = Tensor("f32", data=x), Tensor(dtype, shape=[len(x)], scale=so, zero_point=zo)
            run(B.QUANTIZE, 0, None, [a], [y])
            file.add("f32 to %s" % dtype, [a], [y])
    pairs = [(x, y) for x in ("u8", "s8") for y in ("u8", "s8")]
    for x, y in pairs + [("s16", "s16"), ("s8", "s16"), ("s16", "s8"), ("s16", "s32"),
                         ("s32", "s16"), ("s32", "s8")]:
        for k in range(2):
            si, so = scale(rng, -8, -2), scale(rng, -8, -2)
            zi, zo = [0 if t == "s32" else zero(rng, t) for t in (x, y)]
            if k == 1 and {x, y} == {"u8", "s8"}:  # a pure change of sign
                so, zi = si, 128 if x == "u8" else 0
                zo = 128 if y == "u8" else 0
            values = rng.integers(-40000, 40000, 100) if x == "s32" else every(x, rng, 150)
            a = Tensor(x, data=values, scale=si, zero_point=zi)
            b = Tensor(y, shape=a.shape, scale=so, zero_point=zo)
            try:
                run(B.QUANTIZE, 0, None, [a], [b])
            except Exception as e:
                why = str(e).strip().splitlines()[-1][-90:]
                print("  LiteRT refuses quantize %s to %s: %s" % (x, y, why))
                break
            file.add("%s to %s" % (x, y), [a], [b])
    for power in (20, 29, 30, 31, 33, 40, 60, 100):  # of the factor, whose shift wraps
        si = float(np.float32(0.7 * 2.0**(power - 50)))
        a = Tensor("s8", data=every("s8", rng, 150), scale=si, zero_point=3)
        b = Tensor("s8", shape=a.shape, scale=2.0**-50, zero_point=-5)
        run(B.QUANTIZE, 0, None, [a], [b])
        file.add("scales 2^%d apart" % power, [a], [b])
    # What 32 bits do not hold is INT_MIN, as x86's cvttss2si has it, and NaN is one of these; the
    # zero point is added modulo 2^32. LiteRT built for Arm saturates.
    ends = [np.nan, -np.nan, np.inf, -np.inf, 1e30, -1e30, np.finfo(np.float32).max,
            np.finfo(np.float32).tiny, 1e-45, -1e-45, -0.0, 0]
    steps = np.concatenate([np.arange(-4, 4) + 0.5, np.array([0.5, -0.5]) * (1 - 2.0**-24),
                            [2**30, 2**31 - 128, 2**31, -(2**31), -(2**31) - 256]])
    for dtype, zo in (("u8", 12), ("u8", 127), ("s8", 5), ("s8", -5), ("s16", 0)):
        for so in (1.0, 0.5, 2.0**-30):
            x = np.concatenate([ends, steps * so])
            a, y = Tensor("f32", data=x), Tensor(dtype, shape=[len(x)], scale=so, zero_point=zo)
            run(B.QUANTIZE, 0, None, [a], [y])
            file.add("f32 to %s, ends, by %g" % (dtype, so), [a], [y])
    for si, so in ((0, 0.5), (0.5, 0), (0, 0), (1e-40, 0.5), (0.5, 1e-40), (1e-40, 3e-41)):
        for x, y in (("s8", "s8"), ("s16", "s16"), ("s8", "s16")):
            a = Tensor(x, data=every(x, rng, 30)[:30], scale=si, zero_point=zero(rng, x))
            b = Tensor(y, shape=[30], scale=so, zero_point=zero(rng, y))
            run(B.QUANTIZE, 0, None, [a], [b])
            file.add("%s to %s, scales %g %g" % (x, y, si, so), [a], [b])
    for so in (0, 1e-45, 1e-40):
        for dtype in ("u8", "s8", "s16"):
            x = [0, 1, -1, 1e-40, -1e-40, 3e-44, np.inf, -np.inf, 1e38, -0.0, 5e-39]
            a, y = Tensor("f32", data=x), Tensor(dtype, shape=[11], scale=so, zero_point=0)
            run(B.QUANTIZE, 0, None, [a], [y])
            file.add("f32 to %s, scale %g" % (dtype, so), [a], [y])
    for dtype in ("u8", "s8", "s16"):
        for axis in range(3):
            y, _ = per_channel(rng, dtype, axis)
            a = Tensor("f32", y.shape, rng.uniform(-40, 40, 24))
            run(B.QUANTIZE, 0, None, [a], [y], 2)
            file.add("f32 to %s, per channel of axis %d" % (dtype, axis), [a], [y])
    file.write()


def per_channel(rng, dtype, axis):
    """An output with scales along an axis, and an input like it."""
    shape = [2, 3, 4]
    count = shape[axis]
    scales = rng.uniform(0.05, 0.3, count)
    zeros = [zero(rng, dtype) for _ in range(count)]
    y = Tensor(dtype, shape, None, scales, zeros)
    x = Tensor(dtype, shape, rng.integers(*RANGE[dtype], 24), scales, zeros)
    x.axis = y.axis = axis
    return y, x


def make_dequantize():
    file = File("dequantize")
    rng = file.rng
    for dtype in ("u8", "s8", "s16"):
        a = Tensor(dtype, data=every(dtype, rng, 150), scale=scale(rng),
                   zero_point=zero(rng, dtype))
        y = Tensor("f32", shape=a.shape)
        run(B.DEQUANTIZE, 0, None, [a], [y])
        file.add(dtype, [a], [y])
    bits = np.concatenate([np.arange(0, 65536, 211),
                           [0, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x8000, 0x8001, 0xFC00]])
    a = Tensor("f16", data=bits.astype(np.uint16).view(np.float16))
    a.data = np.where(np.isnan(a.data), np.float16(1), a.data)
    y = Tensor("f32", shape=a.shape)
    run(B.DEQUANTIZE, 0, None, [a], [y])
    file.add("f16", [a], [y])
    a = Tensor("s8", [2, 3, 2], rng.integers(-128, 128, 12), [0.5, 0.25, 0.3], [0, 0, 0])
    a.axis = 1
    y = Tensor("f32", shape=[2, 3, 2])
    run(B.DEQUANTIZE, 0, None, [a], [y], 5)
    file.add("s8 per channel", [a], [y])
    for dtype in ("u8", "s8"):
        for axis in range(3):
            _, a = per_channel(rng, dtype, axis)
            y = Tensor("f32", shape=a.shape)
            run(B.DEQUANTIZE, 0, None, [a], [y], 5)
            file.add("%s per channel of axis %d" % (dtype, axis), [a], [y])
    file.write()


def make_cast():
    file = File("cast")
    rng = file.rng
    types = ["f32", "s8", "u8", "s16", "s32", "s64", "bool", "f64", "u32", "u16"]
    for x in types:
        for y in types:
            low = 0 if {x, y} & {"u8", "u16", "u32"} else -100
            values = rng.uniform(low, 100, 20) if x in ("f32", "f64") else rng.integers(low, 100,
                                                                                        20)
            a, b = Tensor(x, data=values), Tensor(y, shape=[20])
            try:
                run(B.CAST, 0, None, [a], [b])
            except Exception:
                print("  LiteRT refuses cast %s to %s" % (x, y))
                continue
            file.add("%s to %s" % (x, y), [a], [b])
    a, b = Tensor("s64", data=[2**40 + 3, -(2**33) - 7, 5]), Tensor("s32", shape=[3])
    run(B.CAST, 0, None, [a], [b])
    file.add("s64 to s32 keeps the low bits", [a], [b])
    a, b = Tensor("s64", data=[2**60 + 2**36 + 1, -(2**62) + 1, 2**24 + 1]), Tensor("f32",
                                                                                    shape=[3])
    run(B.CAST, 0, None, [a], [b])
    file.add("s64 to f32 rounds once", [a], [b])
    x = np.concatenate([rng.uniform(-70000, 70000, 30), rng.uniform(-1e-4, 1e-4, 30),
                        [65519, 65520, 1e-8, 2049, 2051]])
    for name, x, y in (("f32", x, "f16"), ("f16", rng.uniform(-9, 9, 20), "f32")):
        a, b = Tensor(name, data=x), Tensor(y, shape=[len(x)])
        try:
            run(B.CAST, 0, None, [a], [b], 7)
        except Exception:
            print("  LiteRT refuses cast %s to %s" % (name, y))
            continue
        file.add("%s to %s" % (name, y), [a], [b])
    file.write()


# ---- movement ----


def movable(rng, dtype, shape):
    kw = {"scale": 0.5, "zero_point": 3 if dtype != "s16" else 0} if dtype in ("u8", "s8",
                                                                               "s16") else {}
    return Tensor(dtype, shape, random_data(rng, dtype, shape), **kw), kw


def ints(values, dtype="s32"):
    return Tensor(dtype, data=np.array(values, dtype=np.int64), constant=True)


def move(file, name, builtin, kind, options, a, params, kw, attrs, extra=None, version=1,
         dtype=None):
    """a and the constant params go into LiteRT; a, extra and attributes into the file."""
    y = Tensor(dtype or a.dtype, **kw)
    run(builtin, kind, options, [a] + params, [y], version)
    file.add(name, [a] + (extra or []), [y], attrs)


def make_reshape():
    file = File("reshape")
    for dtype in ("f32", "u8", "s64", "bool"):
        a, kw = movable(file.rng, dtype, [2, 3, 4])
        for target in ([6, 4], [-1], [1, 24, 1], [4, -1, 2]):
            o = schema.ReshapeOptionsT()
            o.newShape = target
            move(file, "%s %s" % (dtype, target), B.RESHAPE, O.ReshapeOptions, o, a, [ints(target)],
                 kw, {"shape": target})
    a, kw = movable(file.rng, "f32", [2, 3, 4])
    move(file, "shape by input", B.RESHAPE, 0, None, a, [ints([3, -1])], kw, {}, [ints([3, -1])])
    file.write()


def make_transpose():
    file = File("transpose")
    for dtype, shape, perm in (
        ("f32", [2, 3, 4], [2, 0, 1]), ("f32", [2, 3, 4, 2], [0, 3, 1, 2]), ("s8", [3, 5], [1, 0]),
        ("s16", [2, 3, 2, 2], [3, 2, 1, 0]), ("s64", [2, 3, 1], [1, 2, 0]),
        ("f32", [1, 2, 3, 2, 2], [4, 0, 3, 1, 2]),
        ("u8", [2, 3, 4, 2], [0, 2, 3, 1]),
    ):
        a, kw = movable(file.rng, dtype, shape)
        move(file, "%s %s" % (dtype, perm), B.TRANSPOSE, O.TransposeOptions,
             schema.TransposeOptionsT(), a, [ints(perm)], kw, {"perm": perm})
    file.write()


def make_pad():
    file = File("pad")
    for dtype, shape, pads in (
        ("f32", [2, 3], [[1, 0], [2, 1]]), ("f32", [1, 2, 3, 2], [[0, 0], [1, 1], [0, 2], [0, 0]]),
        ("u8", [1, 2, 3, 1], [[0, 0], [1, 1], [1, 0], [0, 0]]), ("s8", [2, 2], [[0, 1], [1, 0]]),
        ("s16", [2, 2], [[0, 1], [1, 0]]), ("s32", [3], [[2, 1]]), ("s64", [3], [[0, 2]]),
        ("f32", [2, 2], [[0, 0], [0, 0]]),
    ):
        a, kw = movable(file.rng, dtype, shape)
        before, after = [list(x) for x in zip(*pads)]
        attrs = {"before": before, "after": after}
        move(file, "%s %s" % (dtype, pads), B.PAD, O.PadOptions, schema.PadOptionsT(), a,
             [ints(pads)], kw, attrs)
        if dtype == "f32":
            move(file, "%s amounts by input" % dtype, B.PAD, O.PadOptions, schema.PadOptionsT(), a,
                 [ints(pads)], kw, {}, [ints(pads)])
        if dtype not in ("s16", "s64"):
            value = Tensor(dtype, data=[7], constant=True, **kw)
            move(file, "%s value 7" % dtype, B.PADV2, O.PadV2Options, schema.PadV2OptionsT(), a,
                 [ints(pads), value], kw,
                 dict(attrs, has_value=True, value=7.0))
    file.write()


def make_tile():
    file = File("tile")
    for dtype, shape, repeats in (("f32", [2, 3], [2, 1]), ("s32", [2, 1, 2], [1, 3, 2]),
                                  ("u8", [3], [2]), ("f32", [2, 2], [1, 0]),
                                  ("s8", [2, 3, 2], [2, 2, 1]), ("f32", [2, 2, 3], [3, 1, 2]),
                                  ("f32", [1, 2, 3, 2], [2, 1, 3, 1])):
        a, kw = movable(file.rng, dtype, shape)
        move(file, "%s %s" % (dtype, repeats), B.TILE, O.TileOptions, schema.TileOptionsT(), a,
             [ints(repeats)], kw, {"repeats": repeats})
    a, kw = movable(file.rng, "f32", [2, 2])
    move(file, "repeats by input", B.TILE, O.TileOptions, schema.TileOptionsT(), a, [ints([2, 2])],
         kw, {}, [ints([2, 2])])
    file.write()


def make_slice():
    file = File("slice")
    for dtype, shape, begin, size in (
        ("f32", [3, 4], [1, 1], [2, 2]), ("s8", [2, 3, 4], [0, 1, 2], [-1, 1, 2]),
        ("s64", [5], [2], [-1]),
        ("f32", [2, 3, 2, 3], [1, 0, 1, 1], [1, 3, -1, 2]), ("u8", [4, 2], [4, 0], [0, 2]),
    ):
        a, kw = movable(file.rng, dtype, shape)
        p = [ints(begin), ints(size)]
        move(file, "%s %s %s" % (dtype, begin, size), B.SLICE, O.SliceOptions,
             schema.SliceOptionsT(), a, p, kw, {"begin": begin, "size": size})
        move(file, "%s %s %s by input" % (dtype, begin, size), B.SLICE, O.SliceOptions,
             schema.SliceOptionsT(), a, p, kw, {}, p)
    file.write()


def make_strided_slice():
    file = File("strided_slice")
    masks = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    fields = ("beginMask", "endMask", "ellipsisMask", "newAxisMask", "shrinkAxisMask")
    rng = file.rng
    cases = [
        ("f32", [4, 5], [1, 0], [3, 5], [1, 2], {}),
        ("f32", [4, 5], [-1, 4], [-5, 0], [-1, -2], {}),
        ("f32", [4, 5], [2, 1], [0, 4], [1, 1], {"end_mask": 1}),
        ("f32", [4, 5], [2, 3], [4, 0], [1, -1], {"begin_mask": 1, "end_mask": 2}),
        ("s32", [6], [2], [3], [1], {"shrink_axis_mask": 1}),
        ("s32", [6], [-1], [0], [1], {"shrink_axis_mask": 1}),
        ("f32", [2, 3, 4], [1], [2], [1], {"shrink_axis_mask": 1}),
        ("f32", [2, 3, 4], [0, 1], [0, 3], [1, 1], {"ellipsis_mask": 1}),
        ("s8", [2, 3], [0, 0, 1], [0, 2, 3], [1, 1, 1], {"new_axis_mask": 1}),
        ("s16", [3, 4], [0, -9], [9, 9], [1, 3], {}),
        ("f32", [2, 3, 4], [0, 0, 1], [0, 0, 3], [1, 1, 1],
         {"ellipsis_mask": 2, "shrink_axis_mask": 1}), ("s64", [3, 4], [3, 0], [3, 4], [1, 1], {}),
        ("u8", [1, 4, 4, 3], [0, 0, 0, 0], [0, 4, 4, 3], [1, 2, 2, 1],
         {"begin_mask": 9, "end_mask": 9}),
    ]
    for _ in range(25):
        rank = int(rng.integers(1, 5))
        n = int(rng.integers(1, rank + 1))
        shape = [int(x) for x in rng.integers(1, 6, rank)]
        strides = [int(x) for x in rng.choice([-3, -2, -1, 1, 1, 2, 3], n)]
        begin = [int(x) for x in rng.integers(-7, 7, n)]
        end = [int(x) for x in rng.integers(-7, 7, n)]
        cases.append(("s32", shape, begin, end, strides,
                      {"begin_mask": int(rng.integers(0, 2**n)),
                       "end_mask": int(rng.integers(0, 2**n))}))
    for k, (dtype, shape, begin, end, strides, mask) in enumerate(cases):
        a, kw = movable(rng, dtype, shape)
        o = schema.StridedSliceOptionsT()
        for m, f in zip(masks, fields):
            setattr(o, f, mask.get(m, 0))
        p = [ints(begin), ints(end), ints(strides)]
        attrs = dict(mask, begin=begin, end=end, strides=strides)
        by_input = k % 5 == 4
        try:
            move(file, "%s %s:%s:%s %s" % (dtype, begin, end, strides, mask or ""), B.STRIDED_SLICE,
                 O.StridedSliceOptions, o, a, p, kw,
                 mask if by_input else attrs, p if by_input else None, 4)
        except Exception as e:
            print("  LiteRT refuses", begin, end, strides, mask,
                  str(e).strip().splitlines()[-1][-90:])
    file.write()


def join(file, name, builtin, kind, options, tensors, kw, attrs):
    y = Tensor(tensors[0].dtype, **kw)
    run(builtin, kind, options, tensors, [y], 1)
    file.add(name, tensors, [y], attrs)


def make_concat():
    file = File("concat")
    for dtype, shapes, axis in (
        ("f32", [[2, 3], [1, 3], [3, 3]], 0), ("f32", [[2, 3, 1], [2, 3, 2]], -1),
        ("s8", [[1, 2, 2], [1, 3, 2]], 1),
        ("s32", [[2], [3]], 0), ("s64", [[1, 2], [1, 1]], 1), ("s16", [[2, 2], [2, 2]], 1),
        ("u8", [[2, 2], [2, 3]], 1),
    ):
        pairs = [movable(file.rng, dtype, s) for s in shapes]
        o = schema.ConcatenationOptionsT()
        o.axis = axis
        join(file, "%s axis %d" % (dtype, axis), B.CONCATENATION, O.ConcatenationOptions, o,
             [t for t, _ in pairs], pairs[0][1], {"axis": axis})
    for _ in range(5):
        rng = file.rng
        tensors = [Tensor("u8", [2, 64], rng.integers(0, 256, 128), scale(rng), zero(rng, "u8"))
                   for _ in range(3)]
        o = schema.ConcatenationOptionsT()
        o.axis = 1
        kw = {"scale": scale(rng, -6, 0), "zero_point": zero(rng, "u8")}
        join(file, "u8 with different scales", B.CONCATENATION, O.ConcatenationOptions, o, tensors,
             kw, {"axis": 1})
    file.write()


def make_pack():
    file = File("pack")
    for dtype, shape, count, axis in (("f32", [2, 3], 3, 0), ("s32", [], 2, 0),
                                      ("s8", [2, 2], 2, -1), ("f32", [3], 1, 1), ("s64", [2], 2,
                                                                                  1)):
        pairs = [movable(file.rng, dtype, shape) for _ in range(count)]
        o = schema.PackOptionsT()
        o.axis, o.valuesCount = axis, count
        join(file, "%s axis %d" % (dtype, axis), B.PACK, O.PackOptions, o, [t for t, _ in pairs],
             pairs[0][1], {"axis": axis})
    file.write()


def make_split():
    file = File("split")
    for dtype, shape, axis, count in (("f32", [2, 6], 1, 3), ("s8", [4, 2, 1], 0, 2),
                                      ("f32", [2, 4], -1, 4), ("s32", [6], 0, 1)):
        a, kw = movable(file.rng, dtype, shape)
        outs = [Tensor(dtype, **kw) for _ in range(count)]
        o = schema.SplitOptionsT()
        o.numSplits = count
        run(B.SPLIT, O.SplitOptions, o, [ints(axis), a], outs)
        file.add("%s axis %d into %d" % (dtype, axis, count), [a], outs, {"axis": axis})
    for dtype, shape, axis, sizes in (("f32", [2, 6], 1, [1, 3, 2]), ("f32", [5, 2], 0, [2, -1]),
                                      ("s16", [1, 5], -1, [4, 1])):
        a, kw = movable(file.rng, dtype, shape)
        outs = [Tensor(dtype, **kw) for _ in sizes]
        o = schema.SplitVOptionsT()
        o.numSplits = len(sizes)
        run(B.SPLIT_V, O.SplitVOptions, o, [a, ints(sizes), ints(axis)], outs)
        file.add("%s sizes %s" % (dtype, sizes), [a], outs, {"axis": axis, "sizes": sizes})
    file.write()


def make_unpack():
    file = File("unpack")
    for dtype, shape, axis in (("f32", [2, 3], 0), ("s32", [2, 3, 2], 1), ("u8", [2, 2], -1),
                               ("f32", [3], 0)):
        a, kw = movable(file.rng, dtype, shape)
        count = shape[axis]
        outs = [Tensor(dtype, **kw) for _ in range(count)]
        o = schema.UnpackOptionsT()
        o.axis, o.num = axis, count
        run(B.UNPACK, O.UnpackOptions, o, [a], outs)
        file.add("%s axis %d" % (dtype, axis), [a], outs, {"axis": axis})
    file.write()


def make_gather():
    file = File("gather")
    for dtype, shape, indices, axis, batch in (
        ("f32", [4, 3], [2, 0, 3], 0, 0), ("s32", [2, 4], [[1, 3], [0, 0]], 1, 0),
        ("s8", [2, 3, 4], [1], -1, 0),
        ("f32", [5, 2], 3, 0, 0), ("f32", [2, 3, 2], [[2, 0], [1, 1]], 1, 1),
        ("u8", [2, 2, 3], [[[0], [2]], [[1], [1]]], 2, 2),
        ("s64", [4], [3, 3], 0, 0),
    ):
        a, kw = movable(file.rng, dtype, shape)
        for kind in ("s32", "s64"):
            i = Tensor(kind, data=np.array(indices))
            y = Tensor(dtype, **kw)
            o = schema.GatherOptionsT()
            o.axis, o.batchDims = axis, batch
            run(B.GATHER, O.GatherOptions, o, [a, i], [y], 5)
            file.add("%s axis %d batch %d %s" % (dtype, axis, batch, kind), [a, i], [y],
                     {"axis": axis, "batch_dims": batch})
    file.write()


def make_shape():
    file = File("shape")
    for dtype, shape in (("s32", [2, 3, 4]), ("s64", [5])):
        a, _ = movable(file.rng, "f32", shape)
        o = schema.ShapeOptionsT()
        o.outType = schema.TensorType.INT32 if dtype == "s32" else schema.TensorType.INT64
        move(file, "%s %s" % (dtype, shape), B.SHAPE, O.ShapeOptions, o, a, [], {}, {}, dtype=dtype)
    file.write()


def make_space(op, builtin, cases):
    file = File(op)
    for dtype, shape, block, pads in cases:
        a, kw = movable(file.rng, dtype, shape)
        before, after = [list(x) for x in zip(*pads)]
        p = [ints(block), ints(pads)]
        attrs = {"block": block, "before": before, "after": after}
        move(file, "%s %s %s" % (dtype, block, pads), builtin, 0, None, a, p, kw, attrs)
        move(file, "%s %s %s by input" % (dtype, block, pads), builtin, 0, None, a, p, kw, {}, p)
    file.write()


def make_space_to_batch():
    make_space("space_to_batch", B.SPACE_TO_BATCH_ND, (
        ("f32", [1, 4, 4, 2], [2, 2], [[0, 0], [0, 0]]),
        ("f32", [2, 3, 5, 1], [2, 3], [[1, 0], [0, 1]]),
        ("s8", [1, 3, 4, 1], [2, 2], [[0, 1], [2, 2]]),
        ("u8", [1, 2, 2, 1], [1, 2], [[1, 0], [0, 0]]),
        ("f32", [1, 5, 3], [3], [[0, 1]]),
    ))


def make_batch_to_space():
    make_space("batch_to_space", B.BATCH_TO_SPACE_ND, (
        ("f32", [4, 2, 2, 2], [2, 2], [[0, 0], [0, 0]]),
        ("f32", [12, 2, 2, 1], [2, 3], [[1, 0], [0, 1]]),
        ("s8", [4, 2, 3, 1], [2, 2], [[0, 1], [2, 2]]), ("f32", [3, 2, 3], [3], [[0, 1]]),
    ))


def main():
    makers = {op: (lambda op=op: make_unary(op)) for op in UNARY}
    makers.update({op: (lambda op=op: make_binary(op)) for op in BINARY})
    for name, value in globals().items():
        if name.startswith("make_") and name not in ("make_unary", "make_binary", "make_space"):
            makers[name[5:]] = value
    for op in sys.argv[1:] or makers:
        makers[op]()


if __name__ == "__main__":
    main()

"""Adds cases to golden files beside this folder whose scales are 0, denormal or enormous, as LiteRT
answers them: its reference kernels, or its others where those abort. What other scripts wrote there
stays; run it after them.

    python tests/ops/gen/make_scales.py
"""

import itertools
import json
import pathlib

import numpy as np

import make_lstm
from litert import RESOLVERS, SOURCE, Tensor, build, options, run, schema
from make_ops import B, O, tensor_json
from ai_edge_litert.interpreter import Interpreter

FOLDER = pathlib.Path(__file__).resolve().parents[1]
MARK = ", odd scales"
SCALES = (0, 2.0**-149, 1e-40, 0.5, 1e30, 3e38)
LOWEST = {"u8": 0, "s8": -128, "s16": 0}
RANGE = {"u8": (0, 255), "s8": (-128, 127), "s16": (-32768, 32767)}
BYTES, SIGNED, ALL = ("u8", "s8"), ("s8", "s16"), ("u8", "s8", "s16")
VALID = 1


def zero(dtype, z):
    return 0 if dtype == "s16" else z + (128 if dtype == "u8" else 0)


class Cases:
    def __init__(self, op, seed):
        self.op, self.rng, self.made = op, np.random.default_rng(seed), []

    def numbers(self, dtype, *shape):
        low, high = RANGE[dtype]
        x = self.rng.integers(low, high + 1, shape)
        x.reshape(-1)[:3] = (low, high, 0)
        return x

    def tensor(self, dtype, shape, scale, z=3, **kind):
        return Tensor(dtype, None, self.numbers(dtype, *shape), scale, zero(dtype, z), **kind)

    def show(self, scales, inputs, outputs, attrs=None, reference=True):
        kernels = "BUILTIN_REF" if reference else "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
        name = " ".join([next(t.dtype for t in inputs if t.scale)] + ["%g" % s for s in scales])
        case = {"name": name, "source": SOURCE.replace("BUILTIN_REF", kernels) + MARK}
        if attrs:
            case["attrs"] = attrs
        case["inputs"] = [tensor_json(t) for t in inputs]
        case["outputs"] = [tensor_json(t) for t in outputs]
        self.made.append(case)

    def ask(self, scales, builtin, kind, made, inputs, outputs, attrs=None, version=1,
            reference=True, hidden=()):
        run(builtin, kind, made, inputs + list(hidden), outputs, version, reference=reference)
        self.show(scales, inputs, outputs, attrs, reference)

    def write(self):
        path = FOLDER / f"{self.op}.json"
        head, *lines, end = path.read_text().splitlines()
        lines = [line.rstrip(",") for line in lines if MARK not in line]
        lines += [json.dumps(c, separators=(",", ":")) for c in self.made]
        path.write_text("\n".join([head, ",\n".join(lines), end, ""]))
        print(path.name, len(self.made), "of", len(lines))


def pairs(rng, count):
    """Scales of an input and an output."""
    every = [p for p in itertools.product(SCALES, repeat=2) if p != (0.5, 0.5)]
    return [every[i] for i in sorted(rng.choice(len(every), count, replace=False))]


def unary(cases, builtin, types, version, kind=0, made=None, attrs=None, positive=False,
          reference=True):
    for dtype in types:
        for x, y in pairs(cases.rng, 8):
            if builtin == B.HARD_SWISH and not x < 60 * y < 1e9:  # others are refused, or not one
                continue                                          # answer (engine/README.md)
            a = cases.tensor(dtype, [40], x)
            if positive:
                a.zero_point = [LOWEST[dtype]]
                a.data = np.abs(a.data.astype(np.int32) // 2).astype(a.np) if dtype == "s16" \
                    else a.data
            b = Tensor(dtype, [40], None, y, zero(dtype, -9))
            cases.ask((x, y), builtin, kind, made, [a], [b], attrs, version, reference)


def reduction(cases, builtin, types):
    axes = Tensor("s32", data=np.array([1]), constant=True)
    for dtype in types:
        for x, y in pairs(cases.rng, 8):
            a, b = cases.tensor(dtype, [2, 5, 4], x), Tensor(dtype, [2, 4], None, y, zero(dtype, 5))
            cases.ask((x, y), builtin, O.ReducerOptions, schema.ReducerOptionsT(), [a], [b],
                      {"axes": [1]}, 2, hidden=[axes])


def stored(cases, builtin, kind, made, shapes, attrs, version, inputs=1, hidden=(), sign=None):
    """Operators that take stored numbers as they are."""
    for dtype in ALL if sign is None else sign:
        for x, y in pairs(cases.rng, 3):
            given = [cases.tensor(dtype, shapes[0], (x, y)[i]) for i in range(inputs)]
            b = Tensor(dtype, shapes[1], None, y, zero(dtype, 5))
            if builtin == B.SELECT_V2:
                which = Tensor("bool", None, np.arange(8) % 3 > 0)
                cases.ask((x, y), builtin, kind, made, [which] + given, [b], attrs, version)
            elif builtin == B.TOPK_V2:
                at = Tensor("s32", shapes[1], None)
                cases.ask((x, y), builtin, kind, made, given, [b, at], attrs, version,
                          hidden=hidden)
            else:
                cases.ask((x, y), builtin, kind, made, given, [b], attrs, version, hidden=hidden)


def pool(cases, builtin):
    made = options(schema.Pool2DOptionsT, strideW=1, strideH=1, filterWidth=2, filterHeight=2,
                   padding=1)
    attrs = {"padding": VALID, "filter_h": 2, "filter_w": 2}
    stored(cases, builtin, O.Pool2DOptions, made, ([1, 3, 4, 2], [1, 2, 3, 2]), attrs, 2)


def resize(cases, builtin, kind, made):
    size = Tensor("s32", data=np.array([4, 3]), constant=True)
    attrs = {"height": 4, "width": 3, "align_corners": False, "half_pixel_centers": False}
    stored(cases, builtin, kind, made, ([1, 2, 2, 2], [1, 4, 3, 2]), attrs, 4, hidden=[size])


def softmax(cases):
    made = options(schema.SoftmaxOptionsT, beta=1.0)
    for dtype in BYTES:
        for x in (0, 2.0**-149, 1e-30, 1.4e-8):
            for shape in ([2, 7], [1, 300], [1, 512]):
                a = cases.tensor(dtype, shape, x)
                b = Tensor(dtype, shape, None, 1 / 256, LOWEST[dtype])
                cases.ask((x,), B.SOFTMAX, O.SoftmaxOptions, made, [a], [b], {"beta": 1.0}, 2,
                          reference=False)
    for y in (0, 1e-40, 1e30):  # which only u8 may have
        a, b = cases.tensor("u8", [3, 7], 0.1), Tensor("u8", [3, 7], None, y, 0)
        cases.ask((0.1, y), B.SOFTMAX, O.SoftmaxOptions, made, [a], [b], {"beta": 1.0}, 2)


def log_softmax(cases):
    for dtype, z in (("u8", 255), ("s8", 127)):
        for x in (0, 2.0**-149, 1e-30):
            a, b = cases.tensor(dtype, [3, 7], x), Tensor(dtype, [3, 7], None, 1 / 16, z)
            cases.ask((x,), B.LOG_SOFTMAX, O.LogSoftmaxOptions, schema.LogSoftmaxOptionsT(), [a],
                      [b], None, 2, reference=False)


def sigmoid(cases, builtin):
    for x in (1.5, 3e4, 2e5, 1e30):
        a = cases.tensor("s16", [40], x)
        b = Tensor("s16", [40], None, 2.0**-15, 0)
        cases.ask((x,), builtin, 0, None, [a], [b], None, 3)


def powers(cases, builtin, kind, cls):
    """Sums by shifts alone: shifts of 16 and more."""
    for a, b, y in ((-1, -149, -1), (-149, -126, -126), (-1, -126, -1), (100, 127, 127),
                    (-1, 127, 127), (-134, -1, -1), (-140, -1, -1)):
        x = [Tensor("s16", None, cases.numbers("s16", 64), 2.0**p) for p in (a, b)]
        z = Tensor("s16", [64], None, 2.0**y)
        cases.ask((2.0**a, 2.0**b, 2.0**y), builtin, kind, options(cls, potScaleInt16=True), x, [z],
                  {"pot_scale_int16": True}, 2)


def comparison(cases, builtin):
    """Of scales above 1, where LiteRT compares signs."""
    for dtype in ALL:
        for a, b in ((1.5, 1.5), (1.5, 0.5), (2, 4), (255, 255), (0.25, 1e30)):
            x = [cases.tensor(dtype, [27], s) for s in (a, b)]
            x[1].data[::3] = x[0].data[::3]
            cases.ask((a, b), builtin, 0, None, x, [Tensor("bool", [27])], None, 2)


def far_difference(cases):
    """By a factor above 1, where LiteRT leaves signs."""
    for dtype, factors in (("u8", (1.5, 3, 12)), ("s8", (1.5, 3, 12)), ("s16", (1.5, 3))):
        for factor in factors:
            x = [cases.tensor(dtype, [27], s) for s in (0.3, 0.11)]
            y = 2 * 0.3 / (2.0**(15 if dtype == "s16" else 20) * factor)
            z = Tensor(dtype, [27], None, y, zero(dtype, 5))
            cases.ask((0.3, 0.11, y), B.SUB, O.SubOptions,
                      options(schema.SubOptionsT, potScaleInt16=False), x, [z],
                      {"pot_scale_int16": False}, 2)


def sub(cases):
    powers(cases, B.SUB, O.SubOptions, schema.SubOptionsT)
    far_difference(cases)


def embedding_lookup(cases):
    for dtype in ALL:
        for s in (0, 1e-40, 0.5, 3e38):
            at = Tensor("s32", data=[2, 0, 3, 3])
            table = cases.tensor(dtype, [4, 5], s, constant=True)
            rows = Tensor(dtype, [4, 5], None, s, table.zero_point[0])
            run(B.EMBEDDING_LOOKUP, 0, None, [at, table], [rows])
            shown(cases, (dtype, s), [at, table], [rows])


def inside_lstm(cases):
    """Scales of intermediate tensors and of normalizations."""
    for what, more, s in itertools.chain(
            itertools.product(("sums",), ({"norm": True},), (0, 1e-40, 1e-31, 1e31)),
            itertools.product(("norm",), ({"norm": True},), (20, 1e5, 1e6, 3e38)),
            itertools.product(("hidden",), ({"projection": 3}, {"peephole": True}),
                              (0, 1e-40, 1e-31, 3e38))):
        (made, inputs, outputs, between), operands, attrs = make_lstm.parts(
            cases.rng, 2, 3, 4, 6, **more)
        tensors = {"sums": between[1:2], "norm": inputs[20:24], "hidden": between[-1:]}[what]
        for t in tensors:
            t.scale = [float(np.float32(s))]
        if what == "sums":
            attrs["forget_scale"] = between[1].scale[0]
        elif what == "hidden":
            sign = -1 if "projection" in more else 1
            attrs |= {"hidden_scale": between[-1].scale[0],
                      "hidden_zero": sign * between[-1].zero_point[0]}
        run(B.UNIDIRECTIONAL_SEQUENCE_LSTM, O.UnidirectionalSequenceLSTMOptions, made, inputs,
            outputs, version=3, intermediates=between)
        shown(cases, (what, s), operands, outputs, attrs)


def lstm(cases):
    for what, more in itertools.product(
            ("x", "weights", "recurrent", "y"), ({}, {"projection": 3}, {"norm": True})):
        for s in (0, 1e-40, 1e30):
            (made, inputs, outputs, between), operands, attrs = make_lstm.parts(
                cases.rng, 2, 3, 4, 6, **more)
            tensors = {"x": [inputs[0]], "weights": [inputs[2]], "recurrent": [inputs[7]],
                       "y": [outputs[0], inputs[18]] + ([] if "projection" in more
                                                        else between[-1:])}[what]
            for t in tensors:
                t.scale = [float(np.float32(s))]
            run(B.UNIDIRECTIONAL_SEQUENCE_LSTM, O.UnidirectionalSequenceLSTMOptions, made, inputs,
                outputs, version=3, intermediates=between)
            shown(cases, (what, s), operands, outputs, attrs)
    inside_lstm(cases)


def shown(cases, scales, inputs, outputs, attrs=None):
    case = {"name": "%s %g" % scales, "source": SOURCE + MARK}
    if attrs:
        case["attrs"] = attrs
    case["inputs"] = [tensor_json(t) for t in inputs]
    case["outputs"] = [tensor_json(t) for t in outputs]
    cases.made.append(case)


def svdf(cases):
    made = options(schema.SVDFOptionsT, rank=2,
                   fusedActivationFunction=schema.ActivationFunctionType.RELU)
    for what, s in itertools.product(("x", "feature", "time", "state", "y"), (0, 1e-40, 1e30)):
        scale = {"x": 0.02, "feature": 0.005, "time": 5e-5, "state": 1e-3, "y": 0.02, what: s}
        rng = cases.rng
        feature = Tensor("s8", None, rng.integers(-127, 128, [8, 6]), scale["feature"], 0, True)
        time = Tensor("s16", None, rng.integers(-32767, 32768, [8, 5]), scale["time"], 0, True)
        state = Tensor("s16", [1, 40], None, scale["state"], 0, variable=True)
        x = cases.tensor("s8", [1, 6], scale["x"])
        y = Tensor("s8", [1, 4], None, scale["y"], -7)
        content = build(B.SVDF, O.SVDFOptions, made, [x, feature, time, None, state], [y], 3)
        it = Interpreter(model_content=content, experimental_op_resolver_type=RESOLVERS[True],
                         num_threads=1)
        it.allocate_tensors()
        before = np.array(it.get_tensor(3))
        it.set_tensor(it.get_input_details()[0]["index"], x.data)
        it.invoke()
        y.data = it.get_tensor(it.get_output_details()[0]["index"])
        states = [Tensor("s16", None, n, scale["state"]) for n in (before, it.get_tensor(3))]
        shown(cases, (what, s), [x, feature, time, None, states[0]], [y, states[1]],
                   {"rank": 2})


def basic_lstm(cases):
    made = options(schema.LSTMOptionsT, kernelType=schema.LSTMKernelType.BASIC,
                   fusedActivationFunction=schema.ActivationFunctionType.TANH)
    around = {"scale": 1 / 128, "zero_point": 128}
    for what, s in itertools.product(("weights", "bias"), (0, 1e-40, 1e9, 1e30, 3e38)):
        rng = cases.rng
        x = [Tensor("u8", None, rng.integers(0, 256, [2, n]), **around) for n in (5, 3)]
        x += [Tensor("u8", None, rng.integers(0, 256, [12, 8]), s if what == "weights" else 0.01,
                     120, True),
              Tensor("s32", None, rng.integers(-20000, 20001, 12), s if what == "bias" else 1e-4, 0,
                     True),
              Tensor("s16", None, rng.integers(-32768, 32768, [2, 3]), 2.0**-11)]
        y = [Tensor("u8", [2, 3], None, **around), Tensor("s16", [2, 3], None, 2.0**-11),
             Tensor("u8", [2, 8], None, **around), Tensor("s16", [2, 12], None, 2.0**-12)]
        run(B.LSTM, O.LSTMOptions, made, x, y, 2)
        shown(cases, (what, s), x, y)


TOPK = Tensor("s32", data=np.int32(3), constant=True)
TABLE = {
    "sqrt": lambda c: unary(c, B.SQRT, SIGNED, 2, positive=True),
    "rsqrt": lambda c: unary(c, B.RSQRT, SIGNED, 2, positive=True),
    "log": lambda c: unary(c, B.LOG, SIGNED, 2),
    "exp": lambda c: unary(c, B.EXP, SIGNED, 2),
    "elu": lambda c: unary(c, B.ELU, ("s8",), 1, reference=False),
    "neg": lambda c: unary(c, B.NEG, SIGNED, 1),
    "gelu": lambda c: unary(c, B.GELU, ALL, 2, O.GeluOptions, schema.GeluOptionsT(),
                            {"approximate": False}),
    "relu_n1_to_1": lambda c: unary(c, B.RELU_N1_TO_1, BYTES, 1),
    "hard_swish": lambda c: unary(c, B.HARD_SWISH, BYTES, 1, O.HardSwishOptions,
                                  schema.HardSwishOptionsT()),
    "reduce_sum": lambda c: reduction(c, B.SUM, ("u8",)),
    "reduce_prod": lambda c: reduction(c, B.REDUCE_PROD, SIGNED),
    "softmax": softmax,
    "log_softmax": log_softmax,
    "logistic": lambda c: sigmoid(c, B.LOGISTIC),
    "tanh": lambda c: sigmoid(c, B.TANH),
    "average_pool2d": lambda c: pool(c, B.AVERAGE_POOL_2D),
    "max_pool2d": lambda c: pool(c, B.MAX_POOL_2D),
    "resize_bilinear": lambda c: resize(c, B.RESIZE_BILINEAR, O.ResizeBilinearOptions,
                                        schema.ResizeBilinearOptionsT()),
    "resize_nearest": lambda c: resize(c, B.RESIZE_NEAREST_NEIGHBOR,
                                       O.ResizeNearestNeighborOptions,
                                       schema.ResizeNearestNeighborOptionsT()),
    "concat": lambda c: stored(c, B.CONCATENATION, O.ConcatenationOptions,
                               schema.ConcatenationOptionsT(), ([2, 3], [4, 3]), {"axis": 0}, 2,
                               inputs=2, sign=("u8", "s16")),
    "select": lambda c: stored(c, B.SELECT_V2, O.SelectV2Options, schema.SelectV2OptionsT(),
                               ([8], [8]), None, 1, inputs=2),
    "maximum": lambda c: stored(c, B.MAXIMUM, O.MaximumMinimumOptions,
                                schema.MaximumMinimumOptionsT(), ([8], [8]), None, 2, inputs=2),
    "minimum": lambda c: stored(c, B.MINIMUM, O.MaximumMinimumOptions,
                                schema.MaximumMinimumOptionsT(), ([8], [8]), None, 2, inputs=2),
    "top_k": lambda c: stored(c, B.TOPK_V2, O.TopKV2Options, schema.TopKV2OptionsT(),
                              ([2, 8], [2, 3]), {"k": 3}, 2, hidden=[TOPK]),
    "add": lambda c: powers(c, B.ADD, O.AddOptions, schema.AddOptionsT),
    "sub": sub,
    "lstm": lstm,
    "svdf": svdf,
    "basic_lstm": basic_lstm,
    "clamp": lambda c: unary(c, B.RELU_0_TO_1, BYTES, 1, attrs={"min": 0.0, "max": 1.0}),
    "embedding_lookup": embedding_lookup,
    "equal": lambda c: comparison(c, B.EQUAL),
    "not_equal": lambda c: comparison(c, B.NOT_EQUAL),
    "less": lambda c: comparison(c, B.LESS),
    "less_equal": lambda c: comparison(c, B.LESS_EQUAL),
    "greater": lambda c: comparison(c, B.GREATER),
    "greater_equal": lambda c: comparison(c, B.GREATER_EQUAL),
}

if __name__ == "__main__":
    for seed, (op, make) in enumerate(TABLE.items()):
        made = Cases(op, seed)
        make(made)
        made.write()

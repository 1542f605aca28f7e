"""Adds ONNX Runtime's cases to golden files beside this folder whose other cases are LiteRT's:
layers, sums, products and quantization of 8 bits, layers of f32 data with 8-bit weights
(rounds_even), extremes of infinities. What other scripts wrote there stays; run it after them.

    python tests/ops/gen/make_beside.py
"""

import json
import pathlib

import numpy as np

import ort
from litert import Tensor
from make_ops import tensor_json

FOLDER = pathlib.Path(__file__).resolve().parents[1]
MARK = '"source":"ONNX Runtime'
NUMPY = {"u8": np.uint8, "s8": np.int8}
VALID, EXPLICIT = 1, 2


def numbers(rng, dtype, shape):
    low = 0 if dtype == "u8" else -128
    return rng.integers(low, low + 256, shape).astype(NUMPY[dtype])


def quant(rng, dtype, scale=None):
    """Scale and zero point, the latter near the middle of the type."""
    scale = 10 ** rng.uniform(-2.5, -1) if scale is None else scale
    return np.float32(scale), NUMPY[dtype]((128 if dtype == "u8" else 0) + rng.integers(-40, 40))


def tensor(dtype, data, scale, zero, constant=False, axis=0):
    t = Tensor(dtype, data=data, scale=scale, zero_point=zero, constant=constant)
    t.axis = axis
    return t


def case(file, name, inputs, output, attrs, rounds_even=True):
    attrs = {**attrs, "rounds_even": True} if rounds_even else attrs
    file.append({"name": name, "source": f"{ort.SOURCE} {name.split()[0]}",
                 "attrs": attrs,
                 "inputs": [tensor_json(t) for t in inputs],
                 "outputs": [tensor_json(output)]})


def weights(rng, dtype, shape, channels, per_channel):
    count = channels if per_channel else 1
    scales = (10 ** rng.uniform(-2.5, -1.5, count)).astype(np.float32)
    zeros = np.zeros(count, NUMPY[dtype])
    if not per_channel:
        zeros[0] = quant(rng, dtype)[1]
    return numbers(rng, dtype, shape), scales, zeros


LAYERS = [("u8", "u8", False), ("u8", "s8", True), ("u8", "s8", False), ("s8", "s8", True),
          ("s8", "s8", False)]


def spread(x, w, depth):
    """A scale that fills most of the output's range."""
    return float(x) * float(np.mean(w)) * np.sqrt(depth) * 60


FLOAT_LAYERS = [("u8", False), ("s8", False), ("s8", True)]


def of_floats(op, x, w, sw, zw, bias, **attributes):
    """The sums of a layer's data, quantized at run time, in floats. Zero points of channels are 0.
    """
    q, sx, zx = ort.run("DynamicQuantizeLinear", [x], 3)
    y, = ort.run(op, [q, w, zx, zw[0]], 1, **attributes)
    channels = [-1] + [1] * (w.ndim - 2) if op == "ConvInteger" else [-1]
    return y.astype(np.float32) * (sx * sw).reshape(channels) + bias.reshape(channels)


def convolutions(rng, is_depthwise):
    file = []
    windows = [  # input, filter [oc, ic / groups, kh, kw], groups, strides, pads
        ([1, 3, 5, 6], [4, 3, 3, 3], 1, [1, 1], [1, 1, 1, 1]),
        ([2, 4, 7, 6], [21, 4, 1, 1], 1, [1, 1], [0, 0, 0, 0]),
        ([1, 20, 6, 5], [7, 20, 3, 2], 1, [2, 1], [0, 1, 0, 0]),
    ]
    if is_depthwise:
        windows = [([1, 20, 7, 6], [20, 1, 3, 3], 20, [1, 1], [1, 1, 1, 1]),
                   ([2, 3, 9, 8], [3, 1, 5, 3], 3, [2, 2], [0, 0, 0, 0])]
    for dtype, kind, per_channel in LAYERS:
        for shape, filter_shape, groups, strides, pads in windows:
            x, (sx, zx) = numbers(rng, dtype, shape), quant(rng, dtype)
            w, sw, zw = weights(rng, kind, filter_shape, filter_shape[0], per_channel)
            sy, zy = quant(rng, dtype, spread(sx, sw, np.prod(filter_shape[1:])))
            b = rng.integers(-3000, 3000, filter_shape[0]).astype(np.int32)
            scales = [sw, zw] if per_channel else [sw[0], zw[0]]
            y, = ort.run("QLinearConv", [x, sx, zx, w, *scales, sy, zy, b], 1, group=groups,
                         strides=strides, pads=pads, kernel_shape=filter_shape[2:])
            turned = w.transpose((1, 2, 3, 0) if is_depthwise else (0, 2, 3, 1))
            attrs = {"padding": EXPLICIT, "stride_h": strides[0], "stride_w": strides[1],
                     "pad_top": pads[0], "pad_left": pads[1], "pad_bottom": pads[2],
                     "pad_right": pads[3]}
            case(file, f"QLinearConv {dtype} {kind} {shape}",
                 [tensor(dtype, x.transpose(0, 2, 3, 1), sx, zx),
                  tensor(kind, turned, sw, zw, True, 3 if is_depthwise else 0),
                  Tensor("s32", data=b, scale=sx * sw, zero_point=[0] * len(sw), constant=True)],
                 tensor(dtype, y.transpose(0, 2, 3, 1), sy, zy), attrs)
    halves(rng, is_depthwise, file)
    for kind, per_channel in FLOAT_LAYERS:
        for shape, filter_shape, groups, strides, pads in windows:
            x = rng.normal(rng.uniform(-1, 1), 1, shape).astype(np.float32)
            w, sw, zw = weights(rng, kind, filter_shape, filter_shape[0], per_channel)
            b = rng.normal(0, 1, filter_shape[0]).astype(np.float32)
            y = of_floats("ConvInteger", x, w, sw, zw, b, group=groups, strides=strides,
                          pads=pads, kernel_shape=filter_shape[2:])
            turned = w.transpose((1, 2, 3, 0) if is_depthwise else (0, 2, 3, 1))
            attrs = {"padding": EXPLICIT, "stride_h": strides[0], "stride_w": strides[1],
                     "pad_top": pads[0], "pad_left": pads[1], "pad_bottom": pads[2],
                     "pad_right": pads[3]}
            case(file, f"ConvInteger f32 {kind} {shape}",
                 [Tensor("f32", data=x.transpose(0, 2, 3, 1)),
                  tensor(kind, turned, sw, zw, True, 3 if is_depthwise else 0),
                  Tensor("f32", data=b, constant=True)],
                 Tensor("f32", data=y.transpose(0, 2, 3, 1)), attrs)
    return file


def halves(rng, is_depthwise, file):
    """Sums that end in a half; the results of the first channels are those of the bias alone."""
    x, zx, one = numbers(rng, "u8", [1, 8, 4, 5]), np.uint8(117), np.float32(0.5)
    w = rng.integers(-3, 4, [8, 1, 1, 1] if is_depthwise else [8, 8, 1, 1]).astype(np.int8)
    w[:6] = 0
    b = np.array([1, -1, 3, -3, 5, 7, 9, -11], np.int32)
    zw, zy = np.zeros(8, np.int8), np.uint8(120)
    y, = ort.run("QLinearConv", [x, one, zx, w, np.full(8, one), zw, one, zy, b], 1,
                 group=8 if is_depthwise else 1, kernel_shape=[1, 1])
    turned = w.transpose((1, 2, 3, 0) if is_depthwise else (0, 2, 3, 1))
    case(file, "QLinearConv u8 s8 halves",
         [tensor("u8", x.transpose(0, 2, 3, 1), one, zx),
          tensor("s8", turned, np.full(8, one), zw, True, 3 if is_depthwise else 0),
          Tensor("s32", data=b, scale=np.full(8, one * one), zero_point=[0] * 8, constant=True)],
         tensor("u8", y.transpose(0, 2, 3, 1), one, zy),
         {"padding": EXPLICIT, "stride_h": 1, "stride_w": 1, "pad_top": 0, "pad_left": 0,
          "pad_bottom": 0, "pad_right": 0})


def conv2d(rng):
    return convolutions(rng, False)


def depthwise_conv2d(rng):
    return convolutions(rng, True)


def fully_connected(rng):
    file = []
    for dtype, kind, per_channel in LAYERS:
        for rows, depth, units in ((1, 20, 5), (7, 33, 18)):
            x, (sx, zx) = numbers(rng, dtype, [rows, depth]), quant(rng, dtype)
            w, sw, zw = weights(rng, kind, [units, depth], units, per_channel)
            sy, zy = quant(rng, dtype, spread(sx, sw, depth))
            b = rng.integers(-3000, 3000, units).astype(np.int32)
            scales = [sw, zw] if per_channel else [sw[0], zw[0]]
            y, = ort.run("QGemm", [x, sx, zx, w, *scales, b, sy, zy], 1, domain="com.microsoft",
                         transB=1)
            case(file, f"QGemm {dtype} {kind} {[rows, depth]}",
                 [tensor(dtype, x, sx, zx), tensor(kind, w, sw, zw, True),
                  Tensor("s32", data=b, scale=sx * sw, zero_point=[0] * len(sw), constant=True)],
                 tensor(dtype, y, sy, zy), {"keep_dims": True})
    for kind, per_channel in FLOAT_LAYERS:
        for shape, units in (([1, 20], 5), ([3, 7, 33], 18), ([2, 4], 3)):
            x = rng.normal(rng.uniform(-1, 1), 1, shape).astype(np.float32)
            x = x * 0 if shape == [2, 4] else x
            w, sw, zw = weights(rng, kind, [units, shape[-1]], units, per_channel)
            b = rng.normal(0, 1, units).astype(np.float32)
            y = of_floats("MatMulInteger", x, w.T, sw, zw, b)
            case(file, f"MatMulInteger f32 {kind} {shape}",
                 [Tensor("f32", data=x), tensor(kind, w, sw, zw, True),
                  Tensor("f32", data=b, constant=True)],
                 Tensor("f32", data=y), {"keep_dims": True})
    return file


def quantize(rng):
    file = []
    for dtype in ("u8", "s8"):
        for sy in (0.5, 10 ** rng.uniform(-2.5, -1)):
            sy, zy = quant(rng, dtype, sy)
            halves = rng.integers(-300, 300, 60) * (sy / 2)
            x = np.concatenate([halves, [1e9, -1e9, 0, -0.0]]).astype(np.float32)
            y, = ort.run("QuantizeLinear", [x, sy, zy], 1)
            case(file, f"QuantizeLinear {dtype} by {sy}", [Tensor("f32", data=x)],
                 tensor(dtype, y, sy, zy), {})
    # Not NaN, of which ONNX says nothing: ONNX Runtime makes the lowest number of it on x86, here
    # it is the zero point.
    for dtype, zy in (("u8", 12), ("s8", -5)):
        for sy in (1.0, 2.0**-30):
            x = np.concatenate([[np.inf, -np.inf, 1e30, -1e30, -0.0, 1e-45],
                                np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2**31, -(2**31)]) * sy])
            x = x.astype(np.float32)
            sy, zy = np.float32(sy), NUMPY[dtype](zy)
            y, = ort.run("QuantizeLinear", [x, sy, zy], 1)
            case(file, "QuantizeLinear %s, ends, by %g" % (dtype, sy), [Tensor("f32", data=x)],
                 tensor(dtype, y, sy, zy), {})
    return file


def binary(rng, op):
    file = []
    for dtype in ("u8", "s8"):
        for shapes in (([2, 3, 40], [2, 3, 40]), ([2, 1, 20], [3, 1]), ([70], [])):
            for ties in (False, True):
                a, b = [numbers(rng, dtype, s) for s in shapes]
                (sa, za), (sb, zb) = quant(rng, dtype), quant(rng, dtype)
                sb = sa if ties else sb
                if op == "Add":
                    sy = sa * 2 if ties else (sa + sb) * rng.uniform(0.4, 1.2)
                else:
                    sy = sa * sb * (64 if ties else rng.uniform(40, 120))
                sy, zy = quant(rng, dtype, sy)
                y, = ort.run("QLinear" + op, [a, sa, za, b, sb, zb, sy, zy], 1,
                             domain="com.microsoft")
                case(file, f"QLinear{op} {dtype} {shapes[0]} {shapes[1]}",
                     [tensor(dtype, a, sa, za), tensor(dtype, b, sb, zb)],
                     tensor(dtype, y, sy, zy), {})
    return file


def extreme(op):
    file = []
    x = np.array([[-np.inf, -np.inf, np.inf], [-np.inf, 1, np.inf]], np.float32)
    for axis in (0, 1):
        y, = ort.run(op, [x, np.array([axis])], 1, keepdims=0)
        case(file, f"{op} of infinities, axis {axis}", [Tensor("f32", data=x)],
             Tensor("f32", data=y), {"axes": [axis], "keep_dims": False}, False)
    return file


def reduce_max(rng):
    return extreme("ReduceMax")


def reduce_min(rng):
    return extreme("ReduceMin")


def add(rng):
    return binary(rng, "Add")


def mul(rng):
    return binary(rng, "Mul")


for number, make in enumerate((conv2d, depthwise_conv2d, fully_connected, add, mul,
                               quantize, reduce_max, reduce_min)):
    path = FOLDER / f"{make.__name__}.json"
    head, *lines, end = path.read_text().splitlines()
    lines = [line.rstrip(",") for line in lines if MARK not in line]
    lines += [json.dumps(c, separators=(",", ":")) for c in make(np.random.default_rng(number))]
    path.write_text("\n".join([head, ",\n".join(lines), end, ""]))
    print(path.name, len(lines))

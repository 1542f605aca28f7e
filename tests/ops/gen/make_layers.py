"""Writes the golden files of convolutions, fully connected layers, pools, softmax, reductions,
resizing, spectra and detections.

    python tests/ops/gen/make_layers.py [function …]

Every case is a model of one operator with random numbers, run by LiteRT's reference kernels.
Deterministic: the same LiteRT gives the same files.
"""

import sys

import flatbuffers.flexbuffers as flexbuffers
import numpy as np

import litert
from litert import Tensor, schema
from make_ops import File

ACTIVATIONS = {"none": 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3}
SAME, VALID = 0, 1
RANGE = {"u8": (0, 255), "s8": (-128, 127), "s16": (-32768, 32767), "s32": (-1000, 1000),
         "s64": (-1000, 1000)}
Op, Options = schema.BuiltinOperator, schema.BuiltinOptions


def numbers(rng, dtype, shape):
    if dtype == "f32":
        # short in text, exact in binary
        return rng.integers(-4000, 4000, size=shape) / np.float32(1024)
    low, high = RANGE[dtype]
    return rng.integers(low, high + 1, size=shape)


def tensor(rng, dtype, shape, quant=None, constant=False, data=None):
    scale, zero_point = quant if quant else (None, 0)
    data = numbers(rng, dtype, shape) if data is None else data
    return Tensor(dtype, list(shape), data, scale, zero_point, constant)


def output(dtype, quant=None):
    scale, zero_point = quant if quant else (None, 0)
    return Tensor(dtype, None, None, scale, zero_point)


def activation_quant(rng, dtype, scale=None):
    if dtype in ("f32", "s32", "s64"):
        return None
    scale = float(np.float32(10 ** rng.uniform(-2.5, -1))) if scale is None else scale
    return scale, 0 if dtype == "s16" else int(rng.integers(*RANGE[dtype]))


def filter_quant(rng, dtype, channels, per_channel):
    """Scales and zero points of a filter for activations of dtype."""
    if dtype == "f32":
        return None
    count = channels if per_channel else 1
    scales = [float(np.float32(10 ** rng.uniform(-2.5, -1.5))) for _ in range(count)]
    zero = int(rng.integers(0, 256)) if dtype == "u8" else 0
    return scales, [zero] * count


# typical sum of the products of two random numbers, over the output's range
SPREAD = {"u8": 50, "s8": 50, "s16": 60}


def layer(rng, dtype, input_shape, filter_shape, axis, bias=None, per_channel=False, depth=1):
    """Input, filter, bias and output of a layer whose results use much of the output's range."""
    x = tensor(rng, dtype, input_shape, activation_quant(rng, dtype))
    channels = filter_shape[axis]
    quant = filter_quant(rng, dtype, channels, per_channel)
    w = tensor(rng, "s8" if dtype == "s16" else dtype, filter_shape, quant, constant=True)
    w.axis = axis
    if dtype == "f32":
        return x, w, tensor(rng, "f32", [channels], constant=True) if bias else None, output("f32")
    real = x.scale[0] * float(np.mean(quant[0])) * np.sqrt(depth) * SPREAD[dtype]
    b = None
    if bias:
        scales = [float(np.float32(x.scale[0] * s)) for s in quant[0]]
        data = rng.integers(-3000, 3000, size=channels)
        b = tensor(rng, bias, [channels], (scales, [0] * len(scales)), True, data)
    return x, w, b, output(dtype, activation_quant(rng, dtype, float(np.float32(real))))


def dynamic_layer(rng, input_shape, filter_shape, axis, per_channel):
    """Input, filter, bias and output of a layer of floats with an s8 filter."""
    channels = filter_shape[axis]
    x = tensor(rng, "f32", input_shape)
    # -128 is no weight: TFLite's format says so, and LiteRT's kernels for such layers count on it
    data = np.maximum(numbers(rng, "s8", filter_shape), -127)
    w = tensor(rng, "s8", filter_shape, filter_quant(rng, "s8", channels, per_channel), True, data)
    w.axis = axis
    return x, w, tensor(rng, "f32", [channels], constant=True), output("f32")


def without_weights(rng, x, w, b, out):
    """Every other channel becomes like a converted channel of zeros: tiny scale, bias of 2^30."""
    channels = b.data.size
    for c in range(0, channels, 2):
        w.data[(slice(None),) * w.axis + (c,)] = 0
        w.scale[c] = float(np.float32(out.scale[0] / x.scale[0] * 2.0 ** rng.uniform(-31, -24)))
        b.scale[c] = float(np.float32(x.scale[0] * w.scale[c]))
        b.data[c] = (-1) ** (c // 2) * 2**30
    return x, w, b, out


def bias_type(b):
    is_s32 = b is not None and b.dtype == "s32"
    return schema.TensorType.INT32 if is_s32 else schema.TensorType.INT64


CONTRACTIONS = [
    # dtype, bias, per channel
    ("f32", "f32", False),
    ("f32", None, False),
    ("u8", "s32", False),
    ("s8", "s32", False),
    ("s8", "s32", True),
    ("s16", "s64", True),
    ("s16", "s32", True),
]


def conv2d(rng, cases):
    windows = [
        # input, filter, padding, strides, dilations, activation
        ([1, 5, 6, 3], [4, 3, 3, 3], SAME, (1, 1), (1, 1), "none"),
        ([2, 7, 6, 4], [5, 3, 2, 4], VALID, (2, 1), (1, 1), "relu"),
        ([1, 9, 8, 2], [3, 3, 3, 2], SAME, (2, 3), (1, 1), "relu6"),
        ([1, 9, 9, 2], [2, 3, 3, 2], SAME, (1, 1), (2, 3), "relu_n1_to_1"),
        ([2, 3, 3, 6], [6, 2, 2, 2], SAME, (1, 1), (1, 1), "none"),  # three groups
        ([1, 4, 4, 9], [7, 1, 1, 9], VALID, (1, 1), (1, 1), "relu"),
    ]
    for i, (dtype, bias, per_channel) in enumerate(CONTRACTIONS):
        for k, (shape, weights, padding, stride, dilation, activation) in enumerate(windows):
            if bias is None:
                continue  # LiteRT's converter always writes one
            if (i + k) % 2 and dtype == "s16":
                continue
            x, w, b, out = layer(rng, dtype, shape, weights, 0, bias, per_channel,
                                 int(np.prod(weights[1:])))
            o = schema.Conv2DOptionsT()
            o.padding, o.strideH, o.strideW = padding, stride[0], stride[1]
            o.dilationHFactor, o.dilationWFactor = dilation
            o.fusedActivationFunction = ACTIVATIONS[activation]
            o.quantizedBiasType = bias_type(b)
            litert.run(Op.CONV_2D, Options.Conv2DOptions, o, [x, w, b], [out], 5)
            cases.add("conv2d", window_attrs(o, dilation), [x, w, b], [out])
    for k, (shape, weights, padding, stride, dilation, activation) in enumerate(windows):
        x, w, b, out = dynamic_layer(rng, shape, weights, 0,
                                     per_channel=k % 2 == 1 or weights[3] != shape[3])
        o = schema.Conv2DOptionsT()
        o.padding, o.strideH, o.strideW = padding, stride[0], stride[1]
        o.dilationHFactor, o.dilationWFactor = dilation
        o.fusedActivationFunction = ACTIVATIONS[activation]
        litert.run(Op.CONV_2D, Options.Conv2DOptions, o, [x, w, b], [out], 5)
        cases.add("conv2d", window_attrs(o, dilation), [x, w, b], [out])
    # wide and narrow layers, which backends may run by other algorithms; coarse numbers, to keep
    # the file small
    special = [
        ([1, 11, 14, 32], [33, 3, 3, 32], SAME, 1, "relu"),
        ([1, 9, 11, 35], [32, 3, 3, 35], VALID, 1, "none"),
        ([2, 5, 32, 3], [1, 3, 3, 3], SAME, 1, "none"),
        ([1, 6, 12, 3], [6, 3, 3, 3], SAME, 2, "relu6"),
        ([2, 3, 8, 5], [8, 1, 1, 5], VALID, 1, "relu"),
    ]
    for shape, weights, padding, stride, activation in special:
        x = tensor(rng, "f32", shape, data=rng.integers(-16, 16, size=shape) / np.float32(4))
        w = tensor(rng, "f32", weights, None, True,
                   rng.integers(-16, 16, size=weights) / np.float32(8))
        b, out = tensor(rng, "f32", [weights[0]], constant=True), output("f32")
        o = schema.Conv2DOptionsT()
        o.padding, o.strideH, o.strideW = padding, stride, stride
        o.dilationHFactor, o.dilationWFactor = 1, 1
        o.fusedActivationFunction = ACTIVATIONS[activation]
        litert.run(Op.CONV_2D, Options.Conv2DOptions, o, [x, w, b], [out], 5)
        cases.add("conv2d", window_attrs(o, (1, 1)), [x, w, b], [out])
    for shape, weights in (([1, 4, 5, 20], [14, 1, 1, 20]), ([1, 5, 6, 3], [10, 3, 3, 3])):
        x, w, b, out = without_weights(rng, *layer(rng, "s8", shape, weights, 0, "s32", True,
                                                   int(np.prod(weights[1:]))))
        o = schema.Conv2DOptionsT()
        o.padding, o.strideH, o.strideW = SAME, 1, 1
        o.dilationHFactor, o.dilationWFactor = 1, 1
        o.fusedActivationFunction = ACTIVATIONS["none"]
        o.quantizedBiasType = bias_type(b)
        litert.run(Op.CONV_2D, Options.Conv2DOptions, o, [x, w, b], [out], 5)
        cases.add("conv2d", window_attrs(o, (1, 1)), [x, w, b], [out])
    # images of different ranges, which a backend may multiply in one go
    x, w, b, out = dynamic_layer(rng, [3, 4, 5, 9], [7, 1, 1, 9], 0, per_channel=True)
    x.data[1] *= np.float32(1 / 16)
    o = schema.Conv2DOptionsT()
    o.padding, o.strideH, o.strideW = VALID, 1, 1
    o.dilationHFactor, o.dilationWFactor = 1, 1
    o.fusedActivationFunction = ACTIVATIONS["none"]
    litert.run(Op.CONV_2D, Options.Conv2DOptions, o, [x, w, b], [out], 5)
    cases.add("conv2d", window_attrs(o, (1, 1)), [x, w, b], [out])
    for dtype in ("u8", "s8", "s16"):  # shifts that wrap
        for power in (28, 31, 33, 60):
            x = Tensor(dtype, [1, 1, 41, 1], np.arange(41), 0.7 * 2.0**(power - 20),
                       0 if dtype == "s16" else 20)
            w = Tensor("u8" if dtype == "u8" else "s8", [1, 1, 1, 1], [1], 1.0, 0, True)
            b = Tensor("s32", [1], [0], x.scale, 0, True)
            out = Tensor(dtype, scale=2.0**-20, zero_point=x.zero_point)
            o.quantizedBiasType = bias_type(b)
            litert.run(Op.CONV_2D, Options.Conv2DOptions, o, [x, w, b], [out], 5)
            cases.add("conv2d", window_attrs(o, (1, 1)), [x, w, b], [out])


def window_attrs(o, dilation=None):
    attrs = {"padding": o.padding, "stride_h": o.strideH, "stride_w": o.strideW}
    if dilation:
        attrs.update(dilation_h=dilation[0], dilation_w=dilation[1])
    attrs["activation"] = o.fusedActivationFunction
    return attrs


def depthwise_conv2d(rng, cases):
    windows = [
        ([1, 5, 6, 3], [1, 3, 3, 3], SAME, (1, 1), (1, 1), "none"),
        ([2, 7, 6, 2], [1, 3, 2, 6], VALID, (2, 1), (1, 1), "relu"),
        ([1, 9, 8, 4], [1, 3, 3, 4], SAME, (2, 2), (1, 1), "relu6"),
        ([1, 9, 9, 2], [1, 3, 3, 2], SAME, (1, 1), (2, 3), "relu_n1_to_1"),
    ]
    for dtype, bias, per_channel in CONTRACTIONS:
        if bias is None or (dtype, bias) == ("s16", "s32"):
            continue
        for shape, weights, padding, stride, dilation, activation in windows:
            x, w, b, out = layer(rng, dtype, shape, weights, 3, bias, per_channel,
                                 int(np.prod(weights[1:3])))
            o = schema.DepthwiseConv2DOptionsT()
            o.padding, o.strideH, o.strideW = padding, stride[0], stride[1]
            o.dilationHFactor, o.dilationWFactor = dilation
            o.depthMultiplier = weights[3] // shape[3]
            o.fusedActivationFunction = ACTIVATIONS[activation]
            litert.run(Op.DEPTHWISE_CONV_2D, Options.DepthwiseConv2DOptions, o, [x, w, b], [out], 6)
            cases.add("depthwise_conv2d", window_attrs(o, dilation), [x, w, b], [out])
    for shape, weights, padding, stride, dilation, activation in windows:
        x, w, b, out = dynamic_layer(rng, shape, weights, 3, per_channel=True)
        o = schema.DepthwiseConv2DOptionsT()
        o.padding, o.strideH, o.strideW = padding, stride[0], stride[1]
        o.dilationHFactor, o.dilationWFactor = dilation
        o.depthMultiplier = weights[3] // shape[3]
        o.fusedActivationFunction = ACTIVATIONS[activation]
        litert.run(Op.DEPTHWISE_CONV_2D, Options.DepthwiseConv2DOptions, o, [x, w, b], [out], 6)
        cases.add("depthwise_conv2d", window_attrs(o, dilation), [x, w, b], [out])
    x, w, b, out = without_weights(rng, *layer(rng, "s8", [1, 5, 6, 12], [1, 3, 3, 12], 3, "s32",
                                               True, 9))
    o = schema.DepthwiseConv2DOptionsT()
    o.padding, o.strideH, o.strideW = SAME, 1, 1
    o.dilationHFactor, o.dilationWFactor = 1, 1
    o.depthMultiplier = 1
    o.fusedActivationFunction = ACTIVATIONS["none"]
    litert.run(Op.DEPTHWISE_CONV_2D, Options.DepthwiseConv2DOptions, o, [x, w, b], [out], 6)
    cases.add("depthwise_conv2d", window_attrs(o, (1, 1)), [x, w, b], [out])


def transpose_conv2d(rng, cases):
    windows = [
        # input, filter, padding, strides, output height and width
        ([1, 3, 4, 3], [2, 3, 3, 3], SAME, (2, 2), (6, 8)),
        ([2, 3, 3, 2], [4, 2, 3, 2], VALID, (1, 2), (4, 7)),
        ([1, 2, 5, 4], [3, 1, 4, 4], SAME, (1, 2), (2, 9)),
    ]
    for dtype, bias, per_channel in CONTRACTIONS:
        for shape, weights, padding, stride, size in windows:
            x, w, b, out = layer(rng, dtype, shape, weights, 0, bias, per_channel,
                                 int(np.prod(weights[1:])))
            dims = tensor(rng, "s32", [4], None, True, [shape[0], size[0], size[1], weights[0]])
            o = schema.TransposeConvOptionsT()
            o.padding, o.strideH, o.strideW = padding, stride[0], stride[1]
            o.fusedActivationFunction = ACTIVATIONS["relu" if stride[0] == 1 else "none"]
            o.quantizedBiasType = bias_type(b)
            inputs = [dims, w, x] + ([b] if b is not None else [])
            litert.run(Op.TRANSPOSE_CONV, Options.TransposeConvOptions, o, inputs, [out], 4)
            cases.add("transpose_conv2d", window_attrs(o), inputs, [out])
    # LiteRT adds scaled products, CpuRef scales their sum
    for k, (shape, weights, padding, stride, size) in enumerate(windows):
        x, w, b, out = dynamic_layer(rng, shape, weights, 0, per_channel=k > 0)
        dims = tensor(rng, "s32", [4], None, True, [shape[0], size[0], size[1], weights[0]])
        o = schema.TransposeConvOptionsT()
        o.padding, o.strideH, o.strideW = padding, stride[0], stride[1]
        o.fusedActivationFunction = ACTIVATIONS["relu" if stride[0] == 1 else "none"]
        inputs = [dims, w, x, b]
        litert.run(Op.TRANSPOSE_CONV, Options.TransposeConvOptions, o, inputs, [out], 4)
        cases.add("transpose_conv2d", window_attrs(o), inputs, [out], absolute=1e-5)
    o.padding, o.strideH, o.strideW = VALID, 1, 1
    o.fusedActivationFunction = ACTIVATIONS["none"]
    for dtype in ("u8", "s8"):  # shifts that wrap
        for power in (28, 31, 33, 60):
            x = Tensor(dtype, [1, 1, 41, 1], np.arange(41), 0.7 * 2.0**(power - 20), 20)
            w = Tensor(dtype, [1, 1, 1, 1], [1], 1.0, 0, True)
            out = Tensor(dtype, scale=2.0**-20, zero_point=20)
            dims = Tensor("s32", data=[1, 1, 41, 1], constant=True)
            litert.run(Op.TRANSPOSE_CONV, Options.TransposeConvOptions, o, [dims, w, x], [out], 2)
            cases.add("transpose_conv2d", window_attrs(o), [dims, w, x], [out])


def fully_connected(rng, cases):
    shapes = [([1, 20], 5, False, "none"), ([3, 7], 6, False, "relu"),
              ([2, 3, 9], 4, True, "relu6"),
              ([2, 3, 8], 3, False, "relu_n1_to_1")]
    for dtype, bias, per_channel in CONTRACTIONS + [("s8", None, False)]:
        for shape, units, keep_dims, activation in shapes:
            depth = shape[-1]
            x, w, b, out = layer(rng, dtype, shape, [units, depth], 0, bias, per_channel, depth)
            if dtype == "s8" and not per_channel:
                w.zero_point = [int(rng.integers(-9, 9))]
            o = schema.FullyConnectedOptionsT()
            o.fusedActivationFunction, o.keepNumDims = ACTIVATIONS[activation], keep_dims
            o.quantizedBiasType = bias_type(b)
            litert.run(Op.FULLY_CONNECTED, Options.FullyConnectedOptions, o, [x, w, b], [out], 9)
            cases.add("fully_connected", {"activation": ACTIVATIONS[activation],
                                          "keep_dims": keep_dims}, [x, w, b],
                      [out])
    for k, (shape, units, keep_dims, activation) in enumerate(shapes * 2):
        x, w, b, out = dynamic_layer(rng, shape, [units, shape[-1]], 0, per_channel=k >= 4)
        o = schema.FullyConnectedOptionsT()
        o.fusedActivationFunction, o.keepNumDims = ACTIVATIONS[activation], keep_dims
        o.asymmetricQuantizeInputs = k % 4 >= 2
        litert.run(Op.FULLY_CONNECTED, Options.FullyConnectedOptions, o, [x, w, b], [out], 9)
        cases.add("fully_connected", {"activation": ACTIVATIONS[activation],
                                      "keep_dims": keep_dims,
                                      "asymmetric_inputs": o.asymmetricQuantizeInputs},
                  [x, w, b], [out])
    overflowing(cases)
    wide(rng, cases)
    odd_scales(rng, cases)


def wide(rng, cases):
    """Weights of 16 bits: a product of two computed values, as converters write it. Sums have 64
    bits, also with a bias of 32."""
    for bias in (None, "s32"):
        for per_channel in (False, True):
            x = Tensor("s16", data=rng.integers(-32768, 32768, (3, 64)), scale=0.001, zero_point=0)
            scale = np.float32(10 ** rng.uniform(-4, -2, 5 if per_channel else 1))
            w = Tensor("s16", data=rng.integers(-32768, 32768, (5, 64)), scale=scale,
                       zero_point=[0] * len(scale), constant=True)
            b = bias and Tensor("s32", data=rng.integers(-2**31, 2**31, 5), scale=scale * 0.001,
                                zero_point=[0] * len(scale), constant=True)
            out = Tensor("s16", scale=0.2, zero_point=0)
            litert.run(Op.FULLY_CONNECTED, Options.FullyConnectedOptions,
                       schema.FullyConnectedOptionsT(), [x, w, b], [out], 4)
            cases.add("fully_connected", {"activation": 0, "keep_dims": False}, [x, w, b], [out])


def odd_scales(rng, cases):
    """Scales of input, weights and output that are 0 or denormal: TensorFlow's converter gives the
    first state of an unrolled LSTM scale 0, and what is made of it the smallest that it knows."""
    for scales in ((0, 0.01, 3.6e-43), (0, 0.01, 0.5), (0, 0, 0.5), (0.5, 0.01, 0),
                   (0.5, 0.01, 3.6e-43), (1e-40, 0.01, 1e-42), (1e-40, 1e-40, 1e-40)):
        for dtype, weights in (("u8", "u8"), ("s8", "s8"), ("s16", "s8")):
            x = tensor(rng, dtype, [2, 6], (scales[0], 0 if dtype == "s16" else 3))
            w = tensor(rng, weights, [3, 6], (scales[1], 130 if dtype == "u8" else 0), True)
            out = output(dtype, (scales[2], 0 if dtype == "s16" else 5))
            litert.run(Op.FULLY_CONNECTED, Options.FullyConnectedOptions,
                       schema.FullyConnectedOptionsT(), [x, w, None], [out], 9)
            cases.add("fully_connected", {"activation": 0, "keep_dims": False}, [x, w, None],
                      [out])


def overflowing(cases):
    """Results that 32 bits do not hold become the lowest number, to which the zero point is added:
    below it they wrap around."""
    for dtype, zero, depth, powers in (("s8", -5, 1, (24, 28, 30, 33, 100)),
                                       ("s8", 5, 1, (24, 28, 30, 33, 100)),
                                       ("u8", 100, 1, (24, 28, 30, 33, 100)),
                                       ("s16", 0, 64, (5,))):
        for power in powers:
            numbers = np.arange(-8, 9) * (4000 if dtype == "s16" else 1) + zero
            x = Tensor(dtype, [17, depth], np.repeat(numbers, depth), 0.7 * 2.0**(power - 20), zero)
            w = Tensor("u8" if dtype == "u8" else "s8", [1, depth],
                       [127 if dtype == "s16" else 1] * depth, 1.0, 0, True)
            out = Tensor(dtype, scale=2.0**-20, zero_point=zero)
            litert.run(Op.FULLY_CONNECTED, Options.FullyConnectedOptions,
                       schema.FullyConnectedOptionsT(), [x, w, None], [out], 9)
            cases.add("fully_connected", {"activation": 0, "keep_dims": False}, [x, w, None],
                      [out])


def pools(rng, cases):
    windows = [
        ([1, 5, 6, 3], (2, 2), SAME, (2, 2), "none"),
        ([2, 7, 6, 2], (3, 2), VALID, (2, 1), "relu"),
        ([1, 4, 4, 5], (4, 4), VALID, (1, 1), "none"),
        ([1, 6, 5, 2], (3, 5), SAME, (1, 1), "relu6"),
    ]
    for name, code in (("average_pool2d", Op.AVERAGE_POOL_2D), ("max_pool2d", Op.MAX_POOL_2D)):
        for dtype in ("f32", "u8", "s8", "s16"):
            for shape, size, padding, stride, activation in windows:
                quant = activation_quant(rng, dtype)
                x, out = tensor(rng, dtype, shape, quant), output(dtype, quant)
                o = schema.Pool2DOptionsT()
                o.padding, o.strideH, o.strideW = padding, stride[0], stride[1]
                o.filterHeight, o.filterWidth = size
                o.fusedActivationFunction = ACTIVATIONS[activation]
                litert.run(code, Options.Pool2DOptions, o, [x], [out], 3)
                attrs = window_attrs(o)
                attrs.update(filter_h=size[0], filter_w=size[1])
                cases.add(name, attrs, [x], [out])


def softmax(rng, cases):
    outputs = {"f32": None, "u8": (1 / 256, 0), "s8": (1 / 256, -128), "s16": (1 / 32768, 0)}
    for dtype, out_quant in outputs.items():
        for shape, beta, scale in (([1, 10], 1.0, 0.1), ([2, 3, 5], 0.5, 0.02),
                                   ([4, 33], 2.0, 0.003), ([7], 1.0, 0.7)):
            quant = None if dtype == "f32" else (scale / (100 if dtype == "s16" else 1),
                                                 0 if dtype == "s16" else 3)
            x, out = tensor(rng, dtype, shape, quant), output(dtype, out_quant)
            o = schema.SoftmaxOptionsT()
            o.beta = beta
            litert.run(Op.SOFTMAX, Options.SoftmaxOptions, o, [x], [out], 3)
            # exp in single precision is not the same in every C library
            cases.add("softmax", {"beta": beta}, [x], [out], 1e-6 if dtype == "f32" else 0)
    for scale in (100, 3e5, 1e7, 7.25e33):  # a mask's: the product wraps around
        x, out = tensor(rng, "s16", [5, 6], (scale, 0)), output("s16", outputs["s16"])
        x.data[0] = [0, 0, 1, 2, 3, 0]
        litert.run(Op.SOFTMAX, Options.SoftmaxOptions, o, [x], [out], 3)
        cases.add("softmax", {"beta": o.beta}, [x], [out])


def reductions(rng, cases):
    plans = [([2, 4, 5, 3], [1, 2], True), ([2, 4, 5, 3], [-1], False), ([6], [0], False),
             ([3, 2, 4], [0, 2], True),
             ([2, 3, 2, 2, 3], [0, 1, 2, 3, 4], False)]
    codes = {"reduce_mean": Op.MEAN, "reduce_sum": Op.SUM, "reduce_max": Op.REDUCE_MAX}
    for name, code in codes.items():
        for dtype in ("f32", "u8", "s8", "s16", "s32", "s64"):
            if name == "reduce_sum" and dtype in ("s8", "s16"):
                continue  # LiteRT's reference kernel reads them as u8: see sums_s8, sums_s16
            for shape, axes, keep_dims in plans:
                quant = activation_quant(rng, dtype)
                out_quant = quant if name == "reduce_max" else activation_quant(rng, dtype)
                x, out = tensor(rng, dtype, shape, quant), output(dtype, out_quant)
                a = tensor(rng, "s32", [len(axes)], None, True, axes)
                litert.run(code, Options.ReducerOptions, reducer_options(keep_dims), [x, a], [out],
                           2)
                cases.add(name, {"axes": axes, "keep_dims": keep_dims}, [x], [out])
    sums_s8(rng, cases, plans)
    sums_s16(rng, cases, plans)
    extreme_scales(rng, cases)


def reducer_options(keep_dims):
    o = schema.ReducerOptionsT()
    o.keepDims = keep_dims
    return o


def sums_s8(rng, cases, plans):
    """From LiteRT's reference kernel for u8: numbers and zero points are 128 higher there."""
    for shape, axes, keep_dims in plans:
        scale, out_scale = [float(np.float32(x)) for x in (0.05, rng.uniform(0.02, 0.6))]
        zero, out_zero = (int(z) for z in rng.integers(-128, 128, 2))
        x = tensor(rng, "s8", shape, (scale, zero))
        high = tensor(rng, "u8", shape, (scale, zero + 128), data=x.data.astype(np.int32) + 128)
        high_out = output("u8", (out_scale, out_zero + 128))
        a = tensor(rng, "s32", [len(axes)], None, True, axes)
        litert.run(Op.SUM, Options.ReducerOptions, reducer_options(keep_dims), [high, a],
                   [high_out], 2)
        out = Tensor("s8", high_out.shape, high_out.data.astype(np.int32) - 128, out_scale,
                     out_zero)
        cases.add("reduce_sum", {"axes": axes, "keep_dims": keep_dims}, [x], [out])


def sums_s16(rng, cases, plans):
    """From LiteRT's default kernel: it scales in f32 (at most one step apart), never saturates."""
    for shape, axes, keep_dims in plans:
        x, out = tensor(rng, "s16", shape, (0.01, 0)), output("s16", (0.09, 0))
        a = tensor(rng, "s32", [len(axes)], None, True, axes)
        litert.run(Op.SUM, Options.ReducerOptions, reducer_options(keep_dims), [x, a], [out], 2,
                   reference=False)
        want = x.data.astype(np.float64).sum(tuple(axes),
                                             keepdims=keep_dims) * (np.float32(0.01)
                                                                    / np.float32(0.09))
        assert np.abs(want).max() < 32767 and np.abs(want - out.data).max() < 1
        cases.add("reduce_sum", {"axes": axes, "keep_dims": keep_dims}, [x], [out], 1)


def extreme_scales(rng, cases):
    """Left shifts wrap around beyond 32 bits, right shifts leave only the sign."""
    axes = [1, 2]
    for name, code, dtype in (("reduce_sum", Op.SUM, "u8"), ("reduce_mean", Op.MEAN, "u8"),
                              ("reduce_mean", Op.MEAN, "s8"), ("reduce_mean", Op.MEAN, "s16")):
        for ratio in (2.0**-31, 2.0**-20, 2.0**15, 2.0**20, 2.0**29):
            zero = 0 if dtype == "s16" else int(rng.integers(*RANGE[dtype]))
            x = tensor(rng, dtype, [1, 4, 5, 3], (0.01, zero))
            out = output(dtype, (float(np.float32(0.011 / ratio)), zero))
            a = tensor(rng, "s32", [len(axes)], None, True, axes)
            litert.run(code, Options.ReducerOptions, reducer_options(False), [x, a], [out], 2)
            cases.add(name, {"axes": axes, "keep_dims": False}, [x], [out])


def resizes(rng, cases):
    bilinear = ("resize_bilinear", Op.RESIZE_BILINEAR, Options.ResizeBilinearOptions,
                schema.ResizeBilinearOptionsT)
    nearest = ("resize_nearest", Op.RESIZE_NEAREST_NEIGHBOR, Options.ResizeNearestNeighborOptions,
               schema.ResizeNearestNeighborOptionsT)
    small = [([2, 4, 3, 2], *plan) for plan in (((7, 5), 0, 0), ((2, 9), 1, 0), ((6, 3), 0, 1),
                                                ((1, 1), 1, 0))]
    # one direction grows and the other shrinks, or by other factors; more channels than one
    # register holds
    uneven = [([1, 9, 2, 1], (4, 11), 0, 1), ([1, 3, 4, 17], (7, 2), 0, 1),
              ([1, 2, 7, 3], (5, 7), 1, 0),
              ([1, 3, 3, 5], (9, 3), 0, 0), ([1, 3, 3, 5], (3, 9), 0, 1)]
    rows = [(*op, dtype, plans) for plans in (small, uneven) for op in (bilinear, nearest)
            for dtype in ("f32", "u8", "s8", "s16")]
    rows.append((*nearest, "s32", small))
    for name, code, kind, make, dtype, plans in rows:
        for shape, size, align, centers in plans:
            quant = activation_quant(rng, dtype) if dtype != "s32" else None
            x, out = tensor(rng, dtype, shape, quant), output(dtype, quant)
            o = make()
            o.alignCorners, o.halfPixelCenters = bool(align), bool(centers)
            s = tensor(rng, "s32", [2], None, True, list(size))
            litert.run(code, kind, o, [x, s], [out], 4)
            cases.add(name, {"height": size[0], "width": size[1], "align_corners": bool(align),
                             "half_pixel_centers": bool(centers)}, [x], [out])


def spectra(rng, cases):
    for shape, fft in (([1, 8], (1, 8)), ([4, 16], (4, 16)), ([2, 3, 10], (4, 8)),
                       ([3, 5], (8, 16))):
        x, out = tensor(rng, "f32", shape), output("c64")
        o = schema.Rfft2dOptionsT()
        s = tensor(rng, "s32", [2], None, True, list(fft))
        litert.run(Op.RFFT2D, Options.Rfft2dOptions, o, [x, s], [out])
        check = np.fft.rfft2(x.data.astype(np.float64), fft)
        assert np.abs(check - out.data).max() < 1e-5 * np.abs(check).max()
        cases.add("rfft2d", {"fft_h": fft[0], "fft_w": fft[1]}, [x], [out], 1e-6)
    for shape in ([6], [2, 3, 4]):
        x = Tensor("c64", shape, numbers(rng, "f32", shape) + 1j * numbers(rng, "f32", shape))
        out = output("f32")
        litert.run(Op.COMPLEX_ABS, Options.NONE, None, [x], [out])
        cases.add("complex_abs", {}, [x], [out], 1e-6)


def detections(rng, cases):
    for dtype in ("f32", "u8"):
        for regular, per_box, background, threshold in ((False, 1, 1, 0.0), (True, 1, 1, 0.3),
                                                        (False, 2, 0, 0.2),
                                                        (True, 1, 0, 0.0)):
            count, classes = 12, 4
            attrs = {"max_detections": 5, "max_classes_per_detection": per_box,
                     "detections_per_class": 3,
                     "num_classes": classes, "use_regular_nms": regular,
                     "nms_score_threshold": threshold,
                     "nms_iou_threshold": 0.4, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0,
                     "w_scale": 5.0}
            # all scores differ, so that nothing hangs on the order of equals
            scores = rng.permutation(count * (classes + background)).reshape(1, count, -1)
            anchors = rng.integers(10, 90, size=(count, 4))
            boxes = rng.integers(0, 200, size=(1, count, 4))
            if dtype == "f32":
                x = [Tensor("f32", [1, count, 4], (boxes - 100) / 16),
                     Tensor("f32", None, scores / 64),
                     Tensor("f32", None, anchors / 128)]
            else:
                x = [Tensor("u8", None, boxes, 0.0625, 100), Tensor("u8", None, scores, 0.015, 0),
                     Tensor("u8", None, anchors, 0.0078125, 0, True)]
            outs = [output("f32") for _ in range(4)]
            litert.run(Op.CUSTOM, 0, bytes(flexbuffers.Dumps(attrs)), x, outs, 1,
                       "TFLite_Detection_PostProcess")
            if not regular or per_box > 1:
                clear_unused(outs, per_box)
            cases.add("detection_postprocess", attrs, x, outs, 1e-6)


def clear_unused(outs, per_box):
    """Fast suppression leaves slots behind the last detection as they were; ours are zero."""
    used = int(outs[3].data[0]) * per_box
    for o in outs[:3]:
        o.data[0, used:] = 0


class Cases:
    """Golden files by operator."""

    def __init__(self):
        self.files = {}

    def add(self, op, attrs, inputs, outputs, absolute=0):
        file = self.files.setdefault(op, File(op))
        x = next(t for t in inputs if not (t.dtype == "s32" and t.constant and t.scale is None))
        name = "%d %s %s" % (len(file.cases), x.dtype, x.shape)
        file.add(name, inputs, outputs, attrs, {"absolute": absolute} if absolute else None)

    def write(self):
        for file in self.files.values():
            file.write()


GENERATORS = (conv2d, depthwise_conv2d, transpose_conv2d, fully_connected, pools, softmax,
              reductions, resizes, spectra,
              detections)


def main():
    for number, generate in enumerate(GENERATORS):
        if not sys.argv[1:] or generate.__name__ in sys.argv[1:]:
            cases = Cases()
            generate(np.random.default_rng(number), cases)
            cases.write()


if __name__ == "__main__":
    main()

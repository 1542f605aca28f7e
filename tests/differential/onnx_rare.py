"""Random cases, as in onnx_cases.py, of operators that few networks have: attention and rotation of
ai.onnx, signals, regions, losses."""
import numpy as np
import onnx
from onnx import helper

from onnx_cases import (Case, F, INTEGERS, NUMBERS, alpha, array, axis_of, binary, i64, indices,
                        pick, shape_of, unary, window)

ANY = [np.float32, np.int32, np.int64, np.uint8, np.int8, np.bool_]
REALS = [np.float32, np.float64, np.float16]


def whole(rng, low, high):
    return int(rng.integers(low, high + 1))


def maybe(rng, x):
    return x if rng.integers(2) else None


# ---- elements ----


def is_inf(rng):
    x = array(rng, shape_of(rng), pick(rng, np.float32, np.float64))
    x[rng.random(x.shape) < 0.3] = np.inf
    x[rng.random(x.shape) < 0.3] = -np.inf
    x[rng.random(x.shape) < 0.1] = np.nan
    return Case("IsInf", [x], {"detect_negative": whole(rng, 0, 1),
                               "detect_positive": whole(rng, 0, 1)}, opset=pick(rng, 10, 20))


def cast_like(rng):
    types = [np.float32, np.int32, np.int64, np.uint8, np.int8, np.bool_, np.float16]
    x = array(rng, shape_of(rng), pick(rng, *types))
    like = array(rng, (1,), pick(rng, *types))
    if like.dtype.kind == "u" and x.dtype.kind != "b":
        x = np.abs(x)
    return Case("CastLike", [x, like], constants=pick(rng, set(), {1}))


def bit_cast(rng):
    """Floats of 64 and 16 bits are computed as f32: their bits are gone."""
    kinds = pick(rng, (np.uint8, np.int8), (np.int16, np.uint16),
                 (np.float32, np.int32, np.uint32), (np.int64, np.uint64))
    to = np.dtype(pick(rng, *kinds))
    return Case("BitCast", [array(rng, shape_of(rng), pick(rng, *kinds))],
                {"to": helper.np_dtype_to_tensor_dtype(to)}, opset=26, peer="onnx",
                is_fixed=True)


def cum_prod(rng):
    shape = shape_of(rng)
    kind = pick(rng, np.float32, np.int32, np.int64)  # the evaluator divides: no 0
    x = array(rng, shape, kind, 0.7, 1.4)
    x[x == 0] = 1
    return Case("CumProd", [x,
                            np.array(axis_of(rng, len(shape)), np.int64)],
                {"exclusive": whole(rng, 0, 1), "reverse": whole(rng, 0, 1)}, {1}, opset=26,
                peer="onnx")


# ---- made from sizes ----


def cosine_window(op):
    def make(rng):
        kinds = [onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.DOUBLE]
        return Case(op, [np.array(whole(rng, 3, 40), np.int64)],
                    {"periodic": whole(rng, 0, 1),
                     "output_datatype": pick(rng, kinds[0], kinds[0], *kinds)}, {0})

    return make


def constant_of_shape(rng):
    dtype = pick(rng, *ANY)
    value = onnx.numpy_helper.from_array(array(rng, (1,), dtype))
    attrs = {"value": value} if rng.integers(4) else {}
    return Case("ConstantOfShape", [np.array(shape_of(rng, whole(rng, 0, 4)), np.int64)], attrs,
                {0})


def eye_like(rng):
    dtype = pick(rng, np.float32, np.int32, np.int64, np.bool_)
    attrs = {"k": whole(rng, -3, 3)}
    if rng.integers(2) or dtype == np.bool_:
        attrs["dtype"] = pick(rng, onnx.TensorProto.FLOAT, onnx.TensorProto.INT32,
                              onnx.TensorProto.INT64)
    return Case("EyeLike", [array(rng, shape_of(rng, 2), dtype)], attrs)


def range_(rng):
    dtype = pick(rng, *NUMBERS)
    step = pick(rng, 1, 2, 3, -1, -2, 0.5 if dtype == np.float32 else 4)
    start = whole(rng, -10, 10)
    limit = start + step * whole(rng, 0, 30) + (step / 3 if dtype == np.float32 else 0)
    return Case("Range", [np.array(v, dtype) for v in (start, limit, step)], {}, {0, 1, 2})


def mel_weights(rng):
    values = [np.array(v, np.int64) for v in (whole(rng, 2, 20), 2 * whole(rng, 8, 64), 8000)]
    return Case("MelWeightMatrix",
                values + [np.array(rng.uniform(0, 100), F), np.array(rng.uniform(2000, 4000), F)],
                {}, set(range(5)))


def constant(rng):
    attr = pick(rng, "value", "value_float", "value_floats", "value_int", "value_ints")
    number = {"value": lambda: onnx.numpy_helper.from_array(
        array(rng, shape_of(rng), pick(rng, *ANY))),
        "value_float": lambda: float(rng.uniform(-2, 2)),
        "value_floats": lambda: [float(v) for v in rng.uniform(-2, 2, 4)],
        "value_int": lambda: whole(rng, -9, 9),
        "value_ints": lambda: [whole(rng, -9, 9) for _ in range(3)]}[attr]()
    nodes = [helper.make_node("Constant", [], ["c"], **{attr: number}),
             helper.make_node("Shape", ["in0"], ["s"]),
             helper.make_node("Identity", ["c"], ["out0"]),
             helper.make_node("Identity", ["s"], ["out1"])]
    return Case("Constant", [array(rng, (2,))], outputs=2, nodes=nodes)


# ---- places ----


def compress(rng):
    shape = shape_of(rng)
    axis = axis_of(rng, len(shape)) if rng.integers(2) else None
    size = int(np.prod(shape)) if axis is None else shape[axis]
    keep = rng.integers(0, 2, whole(rng, 1, size)).astype(np.bool_)
    keep[0] = True
    return Case("Compress", [array(rng, shape, pick(rng, *ANY)), keep],
                {} if axis is None else {"axis": axis}, pick(rng, set(), {1}))


def non_zero(rng):
    dtype = pick(rng, np.float32, np.int32, np.int64, np.bool_, np.uint8)
    x = array(rng, shape_of(rng), dtype)
    x[rng.random(x.shape) < 0.5] = 0
    return Case("NonZero", [x])


def center_crop_pad(rng):
    shape = shape_of(rng)
    axes = [int(a) for a in rng.permutation(len(shape))[:whole(rng, 1, len(shape))]]
    attrs = {"axes": axes} if rng.integers(2) else {}
    count = len(axes) if attrs else len(shape)
    return Case("CenterCropPad", [array(rng, shape, pick(rng, np.float32, np.int32)),
                                  i64(*rng.integers(1, 9, count))], attrs, {1}, opset=18)


def scatter(rng):
    shape = shape_of(rng)
    axis = axis_of(rng, len(shape))
    part = list(whole(rng, 1, d) for d in shape)
    at = np.moveaxis(np.zeros(part, np.int64), axis, -1).copy()
    for place in np.ndindex(at.shape[:-1]):
        at[place] = rng.permutation(shape[axis])[:part[axis]]
    return Case("Scatter", [array(rng, shape), np.moveaxis(at, -1, axis).copy(),
                            array(rng, tuple(part))], {"axis": axis}, opset=10)


def tensor_scatter(rng):
    batch, heads, size, width = shape_of(rng, 4, 5)
    axis = pick(rng, -2, 1, 2)
    shape = (batch, heads, size + 2, width)
    mode = pick(rng, "linear", "circular")
    update = list(shape)
    update[axis] = whole(rng, 1, shape[axis])
    most = shape[axis] - update[axis] if mode == "linear" else shape[axis] - 1
    at = maybe(rng, rng.integers(0, most + 1, batch).astype(np.int64))
    return Case("TensorScatter", [array(rng, shape), array(rng, tuple(update)), at],
                {"axis": axis, "mode": mode}, opset=24)


def max_unpool(rng):
    """Indices as MaxPool gives them."""
    dims = pick(rng, 1, 2, 2)
    kernel = [whole(rng, 1, 3) for _ in range(dims)]
    size = [k * whole(rng, 1, 4) for k in kernel]
    lead = shape_of(rng, 2, 3)
    shape = lead + tuple(s // k for s, k in zip(size, kernel))
    full = lead + tuple(size)
    at = np.zeros(shape, np.int64)
    for place in np.ndindex(shape):
        spot = place[:2] + tuple(p * k + whole(rng, 0, k - 1)
                                 for p, k in zip(place[2:], kernel))
        at[place] = np.ravel_multi_index(spot, full)
    return Case("MaxUnpool", [array(rng, shape), at],
                {"kernel_shape": kernel, "strides": kernel})


# ---- regions ----


def boxes(rng, count, height, width):
    low = rng.uniform(0, 0.6, (count, 2)) * (width, height)
    return np.concatenate([low, low + rng.uniform(0.5, 4, (count, 2))], 1).astype(F)


def roi_align(rng):
    n, c, h, w = shape_of(rng, 4, 8)
    h, w, count = h + 3, w + 3, whole(rng, 1, 4)
    attrs = {"mode": pick(rng, "avg", "max"), "output_height": whole(rng, 1, 4),
             "output_width": whole(rng, 1, 4), "sampling_ratio": whole(rng, 0, 3),
             "spatial_scale": pick(rng, 1.0, 0.5)}
    opset = pick(rng, 10, 16)
    if opset == 16:
        attrs["coordinate_transformation_mode"] = pick(rng, "half_pixel", "output_half_pixel")
    return Case("RoiAlign", [array(rng, (n, c, h, w)), boxes(rng, count, h, w),
                             rng.integers(0, n, count).astype(np.int64)], attrs, opset=opset)


def max_roi_pool(rng):
    n, c, h, w = shape_of(rng, 4, 8)
    h, w, count = h + 3, w + 3, whole(rng, 1, 4)
    rois = np.concatenate([rng.integers(0, n, (count, 1)), np.round(boxes(rng, count, h, w))], 1)
    return Case("MaxRoiPool", [array(rng, (n, c, h, w)), rois.astype(F)],
                {"pooled_shape": [whole(rng, 1, 4), whole(rng, 1, 4)],
                 "spatial_scale": pick(rng, 1.0, 0.5)})


def deform_conv(rng):
    attrs, kernel, space = window(rng, 2)
    attrs.pop("auto_pad", None)
    attrs.setdefault("strides", [1, 1])
    attrs.setdefault("pads", [0, 0, 0, 0])
    dilations = attrs.setdefault("dilations", [1, 1])
    groups, offset_groups = whole(rng, 1, 2), whole(rng, 1, 2)
    attrs.update(group=groups, offset_group=offset_groups)
    ins, outs = groups * offset_groups * whole(rng, 1, 2), groups * whole(rng, 1, 3)
    pads = attrs["pads"]
    out = tuple((s + pads[i] + pads[2 + i] - (kernel[i] - 1) * dilations[i] - 1)
                // attrs["strides"][i] + 1 for i, s in enumerate(space))
    n, taps = whole(rng, 1, 2), kernel[0] * kernel[1]
    inputs = [array(rng, (n, ins) + space), array(rng, (outs, ins // groups, *kernel), F, -1, 1),
              array(rng, (n, offset_groups * taps * 2) + out, F, -1.5, 1.5),
              maybe(rng, array(rng, (outs,))),
              maybe(rng, array(rng, (n, offset_groups * taps) + out, F, 0, 1))]
    return Case("DeformConv", inputs, attrs, {1, 3}, opset=19)


def upsample(rng):
    shape = shape_of(rng, 4)
    scales = np.array([1, 1, pick(rng, 1, 1.5, 2, 3), pick(rng, 1, 1.4, 2, 2.5)], F)
    for d in (2, 3):  # ONNX Runtime copies what keeps its size, whatever the scale
        if int(F(shape[d]) * scales[d]) == shape[d]:
            scales[d] = 1
    mode = pick(rng, "nearest", "linear")
    if rng.integers(3) == 0:
        return Case("Upsample", [array(rng, shape)],
                    {"mode": mode, "scales": [float(v) for v in scales]}, opset=7)
    return Case("Upsample", [array(rng, shape), scales], {"mode": mode}, {1}, opset=9)


# ---- signals ----


def dft(rng):
    shape = list(shape_of(rng, whole(rng, 2, 3), 9)) + [whole(rng, 1, 2)]
    axis = whole(rng, 1, len(shape) - 2)
    inverse, sided = whole(rng, 0, 1), whole(rng, 0, 1)
    if sided:
        inverse, shape[-1] = 0, 1
    attrs = {"inverse": inverse, "onesided": sided}
    length = maybe(rng, np.array(whole(rng, 1, shape[axis] + 3), np.int64))
    if rng.integers(2):
        return Case("DFT", [array(rng, shape), length], {**attrs, "axis": axis}, {1}, opset=17)
    return Case("DFT", [array(rng, shape), length, np.array(axis, np.int64)], attrs, {1, 2},
                opset=20)


def stft(rng):
    frame = whole(rng, 2, 16)
    signal = array(rng, (whole(rng, 1, 2), frame + whole(rng, 0, 40), 1))
    if rng.integers(2):
        inputs = [signal, np.array(whole(rng, 1, 8), np.int64), array(rng, (frame,), F, 0, 1)]
    else:
        inputs = [signal, np.array(whole(rng, 1, 8), np.int64), None, np.array(frame, np.int64)]
    return Case("STFT", inputs, {"onesided": whole(rng, 0, 1)}, {1, 2, 3})


# ---- norms, losses, attention ----


def mean_variance(rng):
    shape = tuple(d + 1 for d in shape_of(rng, 4))  # the deviation of one number is noise
    axes = sorted(int(a) for a in rng.permutation(4)[:whole(rng, 1, 4)])
    return Case("MeanVarianceNormalization", [array(rng, shape)],
                {"axes": axes} if rng.integers(2) else {})


def rms_norm(rng):
    shape = shape_of(rng, whole(rng, 1, 4), 8)
    axis = axis_of(rng, len(shape))
    return Case("RMSNormalization", [array(rng, shape), array(rng, shape[axis:])],
                {"axis": axis, "epsilon": 1e-3}, pick(rng, set(), {1}), opset=23)


def loss(op):
    def make(rng):
        classes = whole(rng, 2, 6)
        rest = shape_of(rng, whole(rng, 0, 2), 4)
        n = whole(rng, 1, 4)
        labels = rng.integers(0, classes, (n, *rest)).astype(pick(rng, np.int32, np.int64))
        attrs = {"reduction": pick(rng, "none", "mean", "sum")}
        if rng.integers(2):
            attrs["ignore_index"] = whole(rng, 0, classes - 1)
            labels.flat[0] = (attrs["ignore_index"] + 1) % classes
        inputs = [array(rng, (n, classes, *rest)), labels,
                  maybe(rng, array(rng, (classes,), F, 0.1, 1))]
        outputs = 2 if op == "SoftmaxCrossEntropyLoss" and rng.integers(2) else 1
        return Case(op, inputs, attrs, outputs=outputs, opset=13)

    return make


def attention(rng):
    batch, heads, share = whole(rng, 1, 2), whole(rng, 1, 3), whole(rng, 1, 2)
    queries, keys, past = whole(rng, 1, 5), whole(rng, 1, 6), whole(rng, 0, 4)
    width, value_width = 2 * whole(rng, 1, 3), whole(rng, 1, 5)
    attrs = {"is_causal": whole(rng, 0, 1), "softcap": pick(rng, 0.0, 0.0, 2.0)}
    if attrs["is_causal"] and past:
        keys = queries  # else ONNX Runtime lets a query see more than the definition does
    if rng.integers(2):
        attrs["scale"] = float(rng.uniform(0.2, 1))

    def packed(count, steps, size):
        x = array(rng, (batch, count, steps, size))
        return x.transpose(0, 2, 1, 3).reshape(batch, steps, -1).copy() if is_flat else x

    is_flat = bool(rng.integers(2))
    if is_flat:
        attrs.update(q_num_heads=heads * share, kv_num_heads=heads)
    inputs = [packed(heads * share, queries, width), packed(heads, keys, width),
              packed(heads, keys, value_width)]
    total = keys + past
    kind = pick(rng, "none", "float", "bool")
    shape = pick(rng, (queries, total), (1, 1, queries, total),
                 (batch, heads * share, queries, total))
    if kind == "float":
        inputs.append(array(rng, shape))
    elif kind == "bool":
        mask = array(rng, shape, np.bool_)
        mask[..., 0] = True  # the peers differ where a row has nothing
        inputs.append(mask)
    else:
        inputs.append(None)
    outputs = 1
    if past:
        inputs += [array(rng, (batch, heads, past, width)),
                   array(rng, (batch, heads, past, value_width))]
        outputs = 3
    return Case("Attention", inputs, attrs, outputs=outputs, opset=pick(rng, 23, 24))


def rotary(rng):
    batch, heads, steps, half = whole(rng, 1, 2), whole(rng, 1, 3), whole(rng, 1, 5), \
        whole(rng, 1, 4)
    width = 2 * half
    turned = 2 * whole(rng, 1, half) if rng.integers(2) else 0
    attrs = {"interleaved": whole(rng, 0, 1), "rotary_embedding_dim": turned}
    x = array(rng, (batch, heads, steps, width))
    if rng.integers(2) or turned:
        attrs["num_heads"] = heads
    if rng.integers(2) and "num_heads" in attrs:
        x = x.transpose(0, 2, 1, 3).reshape(batch, steps, -1).copy()
    cut = (turned or width) // 2
    if rng.integers(2):
        longest = steps + 3
        inputs = [x, array(rng, (longest, cut)), array(rng, (longest, cut)),
                  rng.integers(0, longest, (batch, steps)).astype(np.int64)]
    else:
        inputs = [x, array(rng, (batch, steps, cut)), array(rng, (batch, steps, cut))]
    return Case("RotaryEmbedding", inputs, attrs, opset=23)


def linear_attention(rng):
    batch, heads, share, steps = whole(rng, 1, 2), whole(rng, 1, 2), whole(rng, 1, 2), \
        whole(rng, 1, 5)
    dk, dv = whole(rng, 1, 4), whole(rng, 1, 4)
    rule = pick(rng, "linear", "gated", "delta", "gated_delta")
    inputs = [array(rng, (batch, steps, heads * share * dk), F, -1, 1),
              array(rng, (batch, steps, heads * dk), F, -1, 1),
              array(rng, (batch, steps, heads * dv), F, -1, 1),
              maybe(rng, array(rng, (batch, heads, dk, dv), F, -1, 1)),
              array(rng, (batch, steps, heads * dk), F, -1, 0) if "gated" in rule else None,
              array(rng, (batch, steps, heads), F, 0, 1) if "delta" in rule else None]
    return Case("LinearAttention", inputs,
                {"q_num_heads": heads * share, "kv_num_heads": heads, "update_rule": rule},
                outputs=2, opset=27, peer="onnx")


def causal_conv(rng):
    batch, c, steps, taps = whole(rng, 1, 2), whole(rng, 1, 5), whole(rng, 1, 7), whole(rng, 2, 4)
    inputs = [array(rng, (batch, c, steps)), array(rng, (c, 1, taps)),
              maybe(rng, array(rng, (c,))), maybe(rng, array(rng, (batch, c, taps - 1)))]
    return Case("CausalConvWithState", inputs, {"activation": pick(rng, "none", "silu", "swish")},
                {1, 2}, 2, opset=27, peer="onnx")


def swiglu(rng):
    shape = shape_of(rng)
    return Case("SwiGLU", [array(rng, shape), array(rng, shape)],
                {"alpha": float(rng.uniform(0.5, 2))}, opset=28, peer="onnx")


def tf_idf(rng):
    pool = [int(v) for v in rng.permutation(8)[:4]]
    pairs = rng.permutation([a * 8 + b for a in range(8) for b in range(8)])[:3]
    pool += [int(v) for p in pairs for v in (p // 8, p % 8)]
    most = whole(rng, 1, 2)
    attrs = {"mode": pick(rng, "TF", "IDF", "TFIDF"), "min_gram_length": whole(rng, 1, most),
             "max_gram_length": most, "max_skip_count": whole(rng, 0, 3), "ngram_counts": [0, 4],
             "ngram_indexes": [int(v) for v in rng.permutation(7)], "pool_int64s": pool}
    if rng.integers(2):
        attrs["weights"] = [float(v) for v in rng.uniform(0.5, 2, 7)]
    shape = pick(rng, (whole(rng, 1, 20),), (whole(rng, 1, 3), whole(rng, 1, 20)))
    return Case("TfIdfVectorizer",
                [rng.integers(0, 8, shape).astype(pick(rng, np.int32, np.int64))], attrs)


# ---- others ----


def det(rng):
    n = whole(rng, 1, 5)
    return Case("Det", [array(rng, shape_of(rng, whole(rng, 0, 2), 4) + (n, n))])


def dropout(rng):
    return Case("Dropout", [array(rng, shape_of(rng)), maybe(rng, np.array(0.5, F)),
                            maybe(rng, np.array(False))], {}, {1, 2}, pick(rng, 1, 2), opset=13)


RARE = {
    "BitwiseNot": unary("BitwiseNot", types=INTEGERS, opset=18), "IsInf": is_inf,
    "CastLike": cast_like, "BitCast": bit_cast, "CumProd": cum_prod,
    "Shrink": unary("Shrink", lambd=alpha(0.1, 1), bias=alpha(-0.5, 0.5)),
    "Swish": unary("Swish", opset=24, alpha=alpha(0.5, 2)), "SwiGLU": swiglu,
    "BlackmanWindow": cosine_window("BlackmanWindow"),
    "HammingWindow": cosine_window("HammingWindow"), "HannWindow": cosine_window("HannWindow"),
    "Constant": constant, "ConstantOfShape": constant_of_shape, "EyeLike": eye_like,
    "Range": range_, "MelWeightMatrix": mel_weights,
    "Compress": compress, "NonZero": non_zero,
    "CenterCropPad": center_crop_pad, "Scatter": scatter, "TensorScatter": tensor_scatter,
    "MaxUnpool": max_unpool, "RoiAlign": roi_align, "MaxRoiPool": max_roi_pool,
    "DeformConv": deform_conv, "Upsample": upsample,
    "DFT": dft, "STFT": stft, "MeanVarianceNormalization": mean_variance,
    "RMSNormalization": rms_norm, "NegativeLogLikelihoodLoss": loss("NegativeLogLikelihoodLoss"),
    "SoftmaxCrossEntropyLoss": loss("SoftmaxCrossEntropyLoss"), "Attention": attention,
    "RotaryEmbedding": rotary, "LinearAttention": linear_attention,
    "CausalConvWithState": causal_conv, "TfIdfVectorizer": tf_idf,
    "Det": det, "Dropout": dropout,
    "GlobalLpPool": lambda rng: Case("GlobalLpPool", [array(rng, shape_of(rng, 4))],
                                     {"p": whole(rng, 1, 3)}),
}

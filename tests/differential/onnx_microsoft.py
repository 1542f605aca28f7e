"""Random cases, as in onnx_cases.py, of the operators of com.microsoft that exporters and ONNX
Runtime's own optimizer and quantizer write."""
import numpy as np

from onnx_cases import (Case, F, alpha, array, axis_of, broadcast_pair, channels, pick,
                        qlinear_conv, random_bytes, scale_zero, shape_of, window, with_holes)
from onnx_rare import maybe, whole


def ms(op, inputs, attrs=None, constants=frozenset(), outputs=1, steps=0):
    return Case(op, inputs, attrs or {}, set(constants), outputs, steps=steps,
                domain="com.microsoft")


def bytes_of(rng):
    return pick(rng, np.uint8, np.int8)


def quantized(rng, shape, dtype):
    """Stored numbers, their scale and zero point."""
    return [random_bytes(rng, shape, dtype), *scale_zero(rng, dtype)]


# ---- activations and norms ----


def gelu(op, bias):
    def make(rng):
        shape = shape_of(rng)
        inputs = [array(rng, shape)]
        if bias == "always" or (bias == "maybe" and rng.integers(2)):
            inputs.append(array(rng, shape[-1:]))
        attrs = {"alpha": float(rng.uniform(0.5, 2))} if op == "QuickGelu" else {}
        return ms(op, inputs, attrs, pick(rng, set(), {1}))

    return make


def skip_norm(op):
    def make(rng):
        shape = shape_of(rng, 3, 8)
        c = shape[-1:]
        skip = pick(rng, shape, (1,) + shape[1:], shape[1:])
        inputs = [array(rng, shape), array(rng, skip), array(rng, c)]
        if op == "SkipLayerNormalization":
            inputs.append(maybe(rng, array(rng, c)))
        inputs.append(maybe(rng, array(rng, c)))
        return ms(op, inputs, {"epsilon": 1e-3}, {2, 3, 4})

    return make


def embed_norm(rng):
    batch, steps, width, words = whole(rng, 1, 3), whole(rng, 1, 6), whole(rng, 2, 9), 10
    kinds = bool(rng.integers(2))

    def ids(most):
        return rng.integers(0, most, (batch, steps)).astype(np.int32)

    inputs = [ids(words), ids(2) if kinds else None, array(rng, (words, width)),
              array(rng, (steps + 3, width)), array(rng, (2, width)) if kinds else None,
              array(rng, (width,)), array(rng, (width,))]
    if rng.integers(2):
        lengths = rng.integers(1, steps + 1, batch)
        inputs.append((np.arange(steps) < lengths[:, None]).astype(np.int32))
    return ms("EmbedLayerNormalization", inputs, {"epsilon": 1e-3}, {2, 3, 4, 5, 6}, 2)


def q_embed_norm(rng):
    batch, steps, width, words = whole(rng, 1, 3), whole(rng, 1, 6), whole(rng, 2, 9), 10
    dtype, kinds = bytes_of(rng), bool(rng.integers(2))
    shapes = [(words, width), (steps + 3, width), (2, width), (width,), (width,)]
    tables = [random_bytes(rng, shape, dtype) for shape in shapes]
    scales = [np.array(rng.uniform(0.005, 0.02), F) for _ in shapes]
    zeros = [scale_zero(rng, dtype)[1] for _ in shapes]
    lengths = rng.integers(1, steps + 1, batch)
    mask = maybe(rng, (np.arange(steps) < lengths[:, None]).astype(np.int32))
    inputs = [rng.integers(0, words, (batch, steps)).astype(np.int32),
              rng.integers(0, 2, (batch, steps)).astype(np.int32) if kinds else None, *tables,
              mask, *scales, *zeros]
    if not kinds:
        inputs[4] = inputs[10] = inputs[15] = None
    return ms("QEmbedLayerNormalization", inputs, {"epsilon": 1e-3},
              set(range(2, 18)) - {7}, 2)


# ---- products ----


def fused_matmul(op):
    def make(rng):
        m, k, n = shape_of(rng, 3, 9)
        lead = shape_of(rng, whole(rng, 0, 2), 3)
        ta, tb = whole(rng, 0, 1), whole(rng, 0, 1)
        x = lead + ((k, m) if ta else (m, k))
        y = pick(rng, (), lead) + ((n, k) if tb else (k, n))
        return ms(op, [array(rng, x), array(rng, y)],
                  {"transA": ta, "transB": tb, "alpha": float(rng.uniform(0.3, 2))},
                  pick(rng, set(), {1}))

    return make


def batch_turned(rng):
    m, k, n, lead = (whole(rng, 1, 6) for _ in range(4))
    ta, tb, wa, wb = (whole(rng, 0, 1) for _ in range(4))

    def shape(rows, columns, is_turned, is_behind):
        last = (columns, rows) if is_turned else (rows, columns)
        return (last[0], lead, last[1]) if is_behind else (lead, *last)

    return ms("FusedMatMul", [array(rng, shape(m, k, ta, wa)), array(rng, shape(k, n, tb, wb))],
              {"transA": ta, "transB": tb, "transBatchA": wa, "transBatchB": wb})


def activation(rng, is_gemm=False):
    name = pick(rng, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid",
                *(["Elu", "Softplus", "Softsign", "ThresholdedRelu"] if is_gemm else ["Clip"]))
    numbers = {"LeakyRelu": [0.1], "HardSigmoid": [0.3, 0.4], "Clip": [-1.0, 2.0], "Elu": [0.6],
               "ThresholdedRelu": [0.2]}.get(name, [])
    if is_gemm:
        names = ("activation_alpha", "activation_beta")
        return {"activation": name, **dict(zip(names, numbers))}
    return {"activation": name, **({"activation_params": numbers} if numbers else {})}


def fused_gemm(rng):
    m, k, n = shape_of(rng, 3, 9)
    ta, tb = whole(rng, 0, 1), whole(rng, 0, 1)
    inputs = [array(rng, (k, m) if ta else (m, k)), array(rng, (n, k) if tb else (k, n)),
              maybe(rng, array(rng, pick(rng, (n,), (1, n), (m, n))))]
    return ms("FusedGemm", inputs, {"transA": ta, "transB": tb, "alpha": 0.7, "beta": 1.3,
                                    **activation(rng, True)}, {1, 2})


def fused_conv(rng):
    attrs, kernel, space = window(rng, 2)
    group = pick(rng, 1, 1, 2, 3)
    per_in, per_out = channels(rng), channels(rng)
    attrs.update(group=group, **activation(rng))
    x = array(rng, (whole(rng, 1, 2), group * per_in) + space)
    inputs = [x, array(rng, (group * per_out, per_in, *kernel), F, -1, 1),
              maybe(rng, array(rng, (group * per_out,)))]
    return ms("FusedConv", inputs, attrs, {1, 2})


def unpacked(x, bits):
    """Numbers of a few bits, the lowest of a byte first; floats are what they are."""
    if x.dtype == np.uint8:
        parts = [x >> shift & (2 ** bits - 1) for shift in range(0, 8, bits)]
        x = np.stack(parts, -1).reshape(*x.shape[:-1], -1)
    return x.astype(np.float64)


def rounding_of(x, weights, scales, zeros, bits):
    """By how much results may be off if x is rounded to 127 steps up to the largest number of each
    block."""
    n, blocks, _ = weights.shape
    numbers = unpacked(weights, bits)
    zero = unpacked(zeros, bits)[:, :blocks, None] if zeros is not None else 2.0 ** (bits - 1)
    size = np.abs((numbers - zero) * scales[..., None]).sum(-1)
    rows = x.reshape(-1, x.shape[-1])
    padded = np.pad(rows, ((0, 0), (0, blocks * numbers.shape[2] - rows.shape[1])))
    largest = np.abs(padded.reshape(len(rows), blocks, -1)).max(-1)
    return float((largest / 254 @ size.T).max())


def rounded_blocks(rng):
    """Activations may be rounded to 8 bits; ONNX Runtime does so, inferd does not."""
    case = matmul_blocks(rng)
    x, weights, scales, *more = case.inputs
    case.attrs["accuracy_level"] = 4
    case.off = rounding_of(x, weights, scales, more[0] if more else None, case.attrs["bits"])
    return case


def matmul_blocks(rng):
    bits, block = pick(rng, 2, 4, 4, 8), pick(rng, 16, 32)
    m, k, n = whole(rng, 1, 5), whole(rng, 1, 80), whole(rng, 1, 20)
    blocks = -(-k // block)
    inputs = [array(rng, pick(rng, (m, k), (2, m, k))),
              random_bytes(rng, (n, blocks, block * bits // 8), np.uint8),
              array(rng, (n, blocks), F, 0.01, 0.1)]
    if rng.integers(2):
        real = rng.uniform(0, 2 ** bits, (n, blocks)).astype(F)
        stored = random_bytes(rng, (n, -(-blocks * bits // 8)), np.uint8)
        inputs.append(stored if bits == 8 or rng.integers(2) else real)
    elif rng.integers(2):
        inputs += [None, None, array(rng, (n,))]
    return ms("MatMulNBits", inputs, {"K": k, "N": n, "bits": bits, "block_size": block},
              {1, 2, 3, 5})


def matmul_bnb4(rng):
    m, k, n, block = whole(rng, 1, 5), 2 * whole(rng, 1, 40), whole(rng, 1, 20), 16
    return ms("MatMulBnb4", [array(rng, (m, k)), random_bytes(rng, (n * k // 2,), np.uint8),
                             array(rng, (-(-n * k // block),), F, 0.1, 2)],
              {"K": k, "N": n, "block_size": block, "quant_type": whole(rng, 0, 1)}, {1, 2})


def gather_blocks(rng):
    bits, block = pick(rng, 4, 8), 16
    rows, blocks = whole(rng, 2, 9), whole(rng, 1, 3)
    inputs = [random_bytes(rng, (rows, blocks * block * bits // 8), np.uint8),
              rng.integers(0, rows, shape_of(rng, whole(rng, 1, 2))).astype(np.int64),
              array(rng, (rows, blocks), F, 0.01, 0.1),
              maybe(rng, random_bytes(rng, (rows, -(-blocks * bits // 8)), np.uint8))]
    return ms("GatherBlockQuantized", inputs, {"bits": bits, "block_size": block,
                                               "quantize_axis": 1, "gather_axis": 0}, {0, 2, 3})


# ---- products of stored numbers ----


def q_gemm(rng):
    m, k, n = shape_of(rng, 3, 12)
    dtype, wtype = pick(rng, (np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    ta, tb = whole(rng, 0, 1), whole(rng, 0, 1)
    weights = quantized(rng, (n, k) if tb else (k, n), wtype)
    if rng.integers(2):
        weights[1:] = [array(rng, (n,), F, 0.01, 0.1), np.zeros(n, wtype)]
    inputs = quantized(rng, (k, m) if ta else (m, k), dtype) + weights + [
        maybe(rng, rng.integers(-500, 500, pick(rng, (n,), (1, n))).astype(np.int32))]
    if rng.integers(3):
        scale, zero = scale_zero(rng, dtype)
        inputs += [np.array(scale * 8, F), zero]
    return ms("QGemm", inputs, {"transA": ta, "transB": tb, "alpha": 1.0}, set(range(1, 9)),
              steps=1)


def dynamic_matmul(rng):
    m, k, n = shape_of(rng, 3, 12)
    dtype = bytes_of(rng)
    per_column = bool(rng.integers(2))
    shape = (n,) if per_column else ()
    inputs = [array(rng, pick(rng, (m, k), (2, m, k))), random_bytes(rng, (k, n), dtype),
              array(rng, shape, F, 0.01, 0.1), maybe(rng, random_bytes(rng, shape, dtype) // 4),
              maybe(rng, array(rng, (n,)))]
    return ms("DynamicQuantizeMatMul", inputs, {}, {1, 2, 3, 4})


def matmul_to_float(rng):
    m, k, n = shape_of(rng, 3, 12)
    dtype, wtype = pick(rng, (np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
    shape = pick(rng, (n,), ())
    inputs = [random_bytes(rng, (m, k), dtype), random_bytes(rng, (k, n), wtype),
              np.array(rng.uniform(0.01, 0.1), F), array(rng, shape, F, 0.01, 0.1),
              maybe(rng, scale_zero(rng, dtype)[1]), maybe(rng, random_bytes(rng, shape, wtype)),
              maybe(rng, array(rng, (n,)))]
    return ms("MatMulIntegerToFloat", inputs, {}, {1, 3, 5, 6})


def channels_last_conv(rng):
    """As ONNX Runtime's optimizer writes QLinearConv between quantized layers."""
    case = qlinear_conv(rng)
    if rng.integers(2):
        case.inputs[0] = np.moveaxis(case.inputs[0], 1, -1).copy()
        case.attrs["channels_last"] = 1
    case.domain = "com.microsoft"
    return case


def dynamic_lstm(rng):
    steps, batch, size, hidden = (whole(rng, 1, 5) for _ in range(4))
    direction = pick(rng, "forward", "reverse", "bidirectional")
    ways, dtype = 2 if direction == "bidirectional" else 1, bytes_of(rng)
    zero = np.zeros(ways, dtype) + (0 if dtype == np.int8 else 128)
    inputs = [array(rng, (steps, batch, size), F, -1, 1),
              random_bytes(rng, (ways, size, 4 * hidden), dtype),
              random_bytes(rng, (ways, hidden, 4 * hidden), dtype),
              maybe(rng, array(rng, (ways, 8 * hidden), F, -1, 1)), None,
              maybe(rng, array(rng, (ways, batch, hidden), F, -1, 1)),
              maybe(rng, array(rng, (ways, batch, hidden), F, -1, 1)), None,
              array(rng, (ways,), F, 0.003, 0.01), zero.astype(dtype),
              array(rng, (ways,), F, 0.003, 0.01), zero.astype(dtype)]
    return ms("DynamicQuantizeLSTM", inputs, {"hidden_size": hidden, "direction": direction},
              {1, 2, 3, 8, 9, 10, 11}, 3)


# ---- stored numbers, element by element and pooled ----


def q_binary(op):
    def make(rng):
        dtype = bytes_of(rng)
        a, b = broadcast_pair(rng)
        return ms(op, quantized(rng, a, dtype) + quantized(rng, b, dtype)
                  + list(scale_zero(rng, dtype)), {},
                  {1, 2, 4, 5, 6, 7} | pick(rng, set(), {3}), steps=1)

    return make


def q_unary(op, **attrs):
    def make(rng):
        dtype = bytes_of(rng)
        values = {k: v(rng) for k, v in attrs.items()}
        return ms(op, quantized(rng, shape_of(rng), dtype) + list(scale_zero(rng, dtype)),
                  values, {1, 2, 3, 4}, steps=1)

    return make


def q_softmax(rng):
    dtype, shape = bytes_of(rng), shape_of(rng)
    zero = np.array(0 if dtype == np.uint8 else -128, dtype)
    scale = pick(rng, 1 / 256, 1 / 255, rng.uniform(0.002, 0.02))
    return ms("QLinearSoftmax", quantized(rng, shape, dtype) + [np.array(scale, F), zero],
              {"axis": axis_of(rng, len(shape)), "opset": pick(rng, 11, 13)}, {1, 2, 3, 4},
              steps=1)


def q_concat(rng):
    dtype, shape = bytes_of(rng), list(shape_of(rng))
    axis = axis_of(rng, len(shape))
    inputs = list(scale_zero(rng, dtype))
    for _ in range(whole(rng, 1, 4)):
        shape[axis] = whole(rng, 1, 5)
        inputs += quantized(rng, tuple(shape), dtype)
    fixed = {i for i in range(len(inputs)) if i < 2 or i % 3 != 2}
    return ms("QLinearConcat", inputs, {"axis": axis}, fixed, steps=1)


def q_where(rng):
    dtype = bytes_of(rng)
    a, b = broadcast_pair(rng)
    condition = array(rng, np.broadcast_shapes(a, b), np.bool_)
    return ms("QLinearWhere", [condition] + quantized(rng, a, dtype) + quantized(rng, b, dtype)
              + list(scale_zero(rng, dtype)), {}, {2, 3, 5, 6, 7, 8}, steps=1)


def last(x, is_last):
    return np.moveaxis(x, 1, -1).copy() if is_last else x


def q_average(rng):
    """A mean half way between two steps may be rounded to either."""
    attrs, _, space = window(rng, pick(rng, 1, 2, 3))
    attrs.pop("dilations", None)
    is_last, dtype = whole(rng, 0, 1), bytes_of(rng)
    attrs.update(channels_last=is_last, count_include_pad=whole(rng, 0, 1))
    x = quantized(rng, shape_of(rng, 2, 5) + space, dtype)
    x[0] = last(x[0], is_last)
    return ms("QLinearAveragePool", x + list(scale_zero(rng, dtype)), attrs, {1, 2, 3, 4},
              steps=1)


def q_global_average(rng):
    is_last, dtype = whole(rng, 0, 1), bytes_of(rng)
    x = quantized(rng, shape_of(rng, 4), dtype)
    return ms("QLinearGlobalAveragePool", x + list(scale_zero(rng, dtype)),
              {"channels_last": is_last}, {1, 2, 3, 4}, steps=1)


def nhwc_max_pool(rng):
    attrs, _, space = window(rng, 2)
    x = random_bytes(rng, shape_of(rng, 2, 5) + space, bytes_of(rng))
    return ms("NhwcMaxPool", [last(x, True)], attrs)


def bare(op):
    """QuantizeLinear and DequantizeLinear, which know 16 bits, too."""
    def make(rng):
        dtype = pick(rng, np.uint8, np.int8, np.uint16, np.int16)
        shape = shape_of(rng)
        scale, zero = scale_zero(rng, dtype)
        x = random_bytes(rng, shape, dtype) if op == "DequantizeLinear" else \
            with_holes(rng, array(rng, shape, F, -8, 8))
        return ms(op, [x, scale, zero], {}, {1, 2}, steps=1)

    return make


# ---- attention ----


def attention(rng):
    batch, steps, heads, width = whole(rng, 1, 2), whole(rng, 1, 6), whole(rng, 1, 3), \
        whole(rng, 1, 4)
    inner, size = heads * width, whole(rng, 1, 8)
    attrs = {"num_heads": heads, "unidirectional": whole(rng, 0, 1)}
    mask = pick(rng, None, rng.integers(1, steps + 1, batch).astype(np.int32),
                (np.arange(steps) < rng.integers(1, steps + 1, (batch, 1))).astype(np.int32))
    if mask is not None:
        attrs["unidirectional"] = 0
    return ms("Attention", [array(rng, (batch, steps, size), F, -1, 1),
                            array(rng, (size, 3 * inner), F, -1, 1), array(rng, (3 * inner,)),
                            mask], attrs, {1, 2})


def q_attention(rng):
    case = attention(rng)
    x, weights, bias, mask = case.inputs
    dtype, wtype = np.uint8, bytes_of(rng)
    inputs = [random_bytes(rng, x.shape, dtype), random_bytes(rng, weights.shape, wtype), bias,
              np.array(0.01, F), np.array(0.01, F), mask, scale_zero(rng, dtype)[1],
              scale_zero(rng, wtype)[1]]
    return ms("QAttention", inputs, case.attrs, {1, 2, 3, 4, 6, 7})


def multi_head(rng):
    batch, heads, width, value_width = whole(rng, 1, 2), whole(rng, 1, 3), whole(rng, 1, 4), \
        whole(rng, 1, 4)
    queries, keys, past = whole(rng, 1, 5), whole(rng, 1, 5), 0
    attrs = {"num_heads": heads, "unidirectional": 0}
    if rng.integers(2):
        attrs["scale"] = float(rng.uniform(0.2, 1))
    inputs = [array(rng, (batch, queries, heads * width)),
              array(rng, (batch, keys, heads * width)),
              array(rng, (batch, keys, heads * value_width)),
              maybe(rng, array(rng, (heads * (2 * width + value_width),)))]
    outputs = 1
    past = whole(rng, 0, 3) if value_width == width else 0
    lengths = rng.integers(1, keys + 1, (batch, 1))
    inputs.append((np.arange(keys) < lengths).astype(np.int32)
                  if not past and rng.integers(2) else None)
    inputs.append(maybe(rng, array(rng, (pick(rng, 1, batch), pick(rng, 1, heads), queries,
                                         keys + past))))
    if past:
        inputs += [array(rng, (batch, heads, past, width)),
                   array(rng, (batch, heads, past, value_width))]
        outputs = 3
    return ms("MultiHeadAttention", inputs, attrs, {3}, outputs)


def group_query(rng):
    batch, heads, share, half = whole(rng, 1, 2), whole(rng, 1, 2), whole(rng, 1, 2), 8
    width, past = 2 * half, whole(rng, 0, 4)
    steps = 1 if past else whole(rng, 1, 5)
    total = past + steps
    attrs = {"num_heads": heads * share, "kv_num_heads": heads}
    if rng.integers(2):
        attrs.update(do_rotary=1, rotary_interleaved=whole(rng, 0, 1))
    if rng.integers(3) == 0:
        attrs["local_window_size"] = whole(rng, 1, 3)
    elif rng.integers(3) == 0:
        attrs["causal"] = 0
    rotary = [array(rng, (total + 2, half)), array(rng, (total + 2, half))] \
        if "do_rotary" in attrs else []
    inputs = [array(rng, (batch, steps, heads * share * width)),
              array(rng, (batch, steps, heads * width)), array(rng, (batch, steps, heads * width)),
              array(rng, (batch, heads, past, width)), array(rng, (batch, heads, past, width)),
              np.full(batch, total - 1, np.int32), np.array(total, np.int32), *rotary]
    return ms("GroupQueryAttention", inputs, attrs, {5, 6, 7, 8}, 3)


def rotary(rng):
    batch, heads, steps, width = whole(rng, 1, 2), whole(rng, 1, 3), whole(rng, 1, 5), \
        2 * whole(rng, 1, 4)
    longest = steps + 3
    is_flat = bool(rng.integers(2))
    x = array(rng, (batch, steps, heads * width) if is_flat else (batch, heads, steps, width))
    at = pick(rng, np.array([whole(rng, 0, 3)], np.int64),
              rng.integers(0, longest, (batch, steps)).astype(np.int64))
    return ms("RotaryEmbedding", [x, at, array(rng, (longest, width // 2)),
                                  array(rng, (longest, width // 2))],
              {"interleaved": whole(rng, 0, 1), **pick(rng, {}, {"scale": 2.0}),
               **pick(rng, {}, {"is_packed_batching": 1})}, pick(rng, set(), {2, 3}))


# ---- others ----


def cdist(rng):
    width = whole(rng, 1, 9)
    return ms("CDist", [array(rng, (whole(rng, 1, 9), width)),
                        array(rng, (whole(rng, 1, 9), width))],
              {"metric": pick(rng, "euclidean", "sqeuclidean")})


def expand_dims(rng):
    shape = shape_of(rng, whole(rng, 1, 4))
    return ms("ExpandDims", [array(rng, shape),
                             np.array(whole(rng, -len(shape) - 1, len(shape)), np.int32)], {}, {1})


def trilu(rng):
    return ms("Trilu", [array(rng, shape_of(rng, whole(rng, 2, 4))),
                        maybe(rng, np.array(whole(rng, -3, 3), np.int64))],
              {"upper": whole(rng, 0, 1)}, {1})


MICROSOFT = {
    "Gelu of com.microsoft": gelu("Gelu", "never"), "BiasGelu": gelu("BiasGelu", "always"),
    "FastGelu": gelu("FastGelu", "maybe"), "QuickGelu": gelu("QuickGelu", "never"),
    "SkipLayerNormalization": skip_norm("SkipLayerNormalization"),
    "SkipSimplifiedLayerNormalization": skip_norm("SkipSimplifiedLayerNormalization"),
    "EmbedLayerNormalization": embed_norm, "QEmbedLayerNormalization": q_embed_norm,
    "FusedMatMul": fused_matmul("FusedMatMul"),
    "TransposeMatMul": fused_matmul("TransposeMatMul"), "FusedMatMul of turned batches":
    batch_turned, "FusedGemm": fused_gemm, "FusedConv": fused_conv, "MatMulNBits": matmul_blocks,
    "MatMulNBits of rounded activations": rounded_blocks,
    "MatMulBnb4": matmul_bnb4, "GatherBlockQuantized": gather_blocks, "QGemm": q_gemm,
    "DynamicQuantizeMatMul": dynamic_matmul, "MatMulIntegerToFloat": matmul_to_float,
    "QLinearConv of com.microsoft": channels_last_conv, "DynamicQuantizeLSTM": dynamic_lstm,
    "QLinearAdd": q_binary("QLinearAdd"), "QLinearMul": q_binary("QLinearMul"),
    "QLinearLeakyRelu": q_unary("QLinearLeakyRelu", alpha=alpha(0.01, 0.5)),
    "QLinearSigmoid": q_unary("QLinearSigmoid"), "QLinearSoftmax": q_softmax,
    "QLinearConcat": q_concat, "QLinearWhere": q_where,
    "QLinearAveragePool": q_average, "QLinearGlobalAveragePool": q_global_average,
    "NhwcMaxPool": nhwc_max_pool, "QuantizeLinear of com.microsoft": bare("QuantizeLinear"),
    "DequantizeLinear of com.microsoft": bare("DequantizeLinear"),
    "Attention of com.microsoft": attention, "QAttention": q_attention,
    "MultiHeadAttention": multi_head, "GroupQueryAttention": group_query,
    "RotaryEmbedding of com.microsoft": rotary, "CDist": cdist, "ExpandDims": expand_dims,
    "Trilu of com.microsoft": trilu,
}

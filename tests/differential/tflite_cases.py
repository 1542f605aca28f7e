"""Random models of one TFLite operator each: random attributes, shapes and types. A generator takes
a numpy Generator and returns a Case; CASES lists them by name."""
import dataclasses

import numpy as np

import make_lstm
from litert import Tensor, schema

B = schema.BuiltinOperator
O = schema.BuiltinOptions
A = schema.ActivationFunctionType
RANGE = {"u8": (0, 255), "s8": (-128, 127), "s16": (-32768, 32767), "s32": (-500, 500),
         "s64": (-500, 500)}
QUANTIZED = ("u8", "s8", "s16")


@dataclasses.dataclass
class Case:
    op: str  # name of the builtin operator
    inputs: list
    outputs: list
    options: tuple = ()  # type's name, members
    intermediates: tuple = ()
    degenerate: bool = False
    body: int | tuple | None = None  # operator of a second subgraph, 0: one without; of several
    reference: bool = True  # else beside LiteRT's other kernels: its reference is wrong


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def shape_of(rng, rank=None, most=6):
    """Small dimensions, and sometimes one that fills vectors."""
    rank = int(rng.integers(1, 5)) if rank is None else rank
    shape = [int(d) for d in rng.integers(1, most + 1, rank)]
    if rank > 0 and most >= 6 and rng.integers(6) == 0:
        shape[int(rng.integers(rank))] = int(rng.integers(7, 75))
    return shape


def channels(rng):
    return int(rng.integers(1, 6)) if rng.integers(4) else int(rng.integers(6, 50))


def scale(rng, low=-7, high=-2):
    return float(np.float32(2.0 ** rng.uniform(low, high)))


def zero(rng, dtype):
    low, high = RANGE[dtype]
    return 0 if dtype in ("s16", "s32") else int(rng.integers(low // 2, high // 2 + 1))


def tensor(rng, shape, dtype="f32", low=-3.0, high=3.0, quant=None, **more):
    """quant: (scale, zero point) that it shares with another."""
    if dtype == "f32":
        return Tensor("f32", data=rng.uniform(low, high, shape), **more)
    if dtype == "bool":
        return Tensor("bool", data=rng.integers(0, 2, shape), **more)
    least, most = RANGE[dtype]
    data = rng.integers(least, most + 1, shape)
    if dtype not in QUANTIZED:
        return Tensor(dtype, data=data, **more)
    s, z = quant if quant else (scale(rng), zero(rng, dtype))
    return Tensor(dtype, data=data, scale=s, zero_point=z, **more)


def output(rng, dtype, quant=None):
    if dtype not in QUANTIZED:
        return Tensor(dtype)
    s, z = quant if quant else (scale(rng, -6, 0), zero(rng, dtype))
    return Tensor(dtype, scale=s, zero_point=z)


def quant_of(t):
    return None if t.scale is None else (t.scale[0], t.zero_point[0])


def ints(*values, dtype="s32"):
    return Tensor(dtype, data=np.array(values), constant=True)


def some_axes(rng, rank):
    axes = rng.permutation(rank)[: int(rng.integers(1, rank + 1))]
    return [int(a) - (rank if rng.integers(2) else 0) for a in axes]


# ---- element by element ----


def unary(op, types=("f32",), low=-3.0, high=3.0, same=False, fixed=None, options=()):
    """same: the output has the input's quantization; fixed: dtype → the output's."""

    def make(rng):
        dtype = pick(rng, *types)
        x = tensor(rng, shape_of(rng), dtype, low, high)
        quant = quant_of(x) if same else fixed.get(dtype) if fixed else None
        if dtype == "s16" and fixed:
            x.scale = [1.0 / 4096]
        values = tuple((k, v(rng) if callable(v) else v) for k, v in options[1:])
        return Case(op, [x], [output(rng, dtype, quant)], (options[0], *values) if options else ())

    return make


def root(op):
    """Of nothing below 0."""
    def make(rng):
        case = unary(op, ("f32", "s8", "s16"), low=0.1, high=5)(rng)
        x = case.inputs[0]
        if x.scale:
            x.data = np.maximum(x.data, x.np(x.zero_point[0]))
        return case

    return make


def pair_of_shapes(rng):
    full = shape_of(rng)
    if rng.integers(2):
        return full, list(full)
    cut = int(rng.integers(0, len(full)))
    return full, [1 if rng.integers(3) == 0 else d for d in full][cut:]


def binary(op, options, types, has_activation=True, positive=False):
    def make(rng):
        dtype = pick(rng, *types)
        a, b = pair_of_shapes(rng)
        x, y = tensor(rng, a, dtype), tensor(rng, b, dtype)
        if positive:
            y.data = np.abs(y.data) + y.np(1)
            y.data[y.data < 1] = 3
        if rng.integers(3) == 0:
            y.constant = True
        if rng.integers(2):
            x, y = y, x
            if positive:
                x, y = y, x
        values = (options,)
        if has_activation and dtype not in ("s32", "s64"):
            values += (("fusedActivationFunction", pick(rng, A.NONE, A.NONE, A.RELU, A.RELU6)),)
        if dtype == "s16" and op in ("ADD", "SUB"):
            values += (("potScaleInt16", False),)
        return Case(op, [x, y], [output(rng, dtype)], values)

    return make


def divide(rng):
    """LiteRT refuses to divide by 0."""
    make = binary("DIV", "DivOptions", ("f32", "u8", "s8", "s16", "s32"), positive=True)
    case = make(rng)
    x, y = case.inputs
    if x.dtype in QUANTIZED:
        y.data = np.where(y.data == y.zero_point[0], y.data + y.np(1), y.data)
        factor = 2.0 ** rng.uniform(-3, 12)
        case.outputs[0].scale = [float(np.float32(x.scale[0] / y.scale[0] / factor))]
    return case


def extreme(op):
    def make(rng):
        dtype = pick(rng, "f32", "u8", "s8", "s32", "s64")
        a, b = pair_of_shapes(rng)
        x = tensor(rng, a, dtype)
        y = tensor(rng, b, dtype, quant=quant_of(x))
        return Case(op, [x, y], [output(rng, dtype, quant_of(x))], ("MaximumMinimumOptions",))

    return make


def compare(op):
    def make(rng):
        dtype = pick(rng, "f32", "s32", "s64", "u8", "s8", "s16")
        a, b = pair_of_shapes(rng)
        x = tensor(rng, a, dtype)
        return Case(op, [x, tensor(rng, b, dtype, quant=quant_of(x))], [Tensor("bool")])

    return make


def prelu(rng):
    dtype = pick(rng, "f32", "u8", "s8", "s16")
    shape = shape_of(rng, 4)
    alpha = tensor(rng, [1, 1, shape[3]], "s8" if dtype == "s16" else dtype, constant=True)
    return Case("PRELU", [tensor(rng, shape, dtype), alpha], [output(rng, dtype)])


def select(rng):
    shape = shape_of(rng) + [2]  # the peer makes a scalar of one element
    dtype = pick(rng, "f32", "s32", "s8", "u8")
    x = tensor(rng, shape, dtype)
    return Case("SELECT_V2", [tensor(rng, shape, "bool"), x,
                              tensor(rng, shape, dtype, quant=quant_of(x))],
                [output(rng, dtype, quant_of(x))])


def quantize(rng):
    source = pick(rng, "f32", "u8", "s8", "s16")
    target = pick(rng, "u8", "s8", "s16") if source == "f32" else pick(rng, "u8", "s8")
    if source == "s16":
        target = "s8"
    return Case("QUANTIZE", [tensor(rng, shape_of(rng), source)], [output(rng, target)])


def dequantize(rng):
    return Case("DEQUANTIZE", [tensor(rng, shape_of(rng), pick(rng, *QUANTIZED))],
                [Tensor("f32")])


# ---- reductions ----


def reduce(op, types):
    def make(rng):
        dtype = pick(rng, *types)
        shape = shape_of(rng)
        x = tensor(rng, shape, dtype)
        same = op in ("REDUCE_MAX", "REDUCE_MIN")
        return Case(op, [x, ints(*some_axes(rng, len(shape)))],
                    [output(rng, dtype, quant_of(x) if same else None)],
                    ("ReducerOptions", ("keepDims", bool(rng.integers(2)))))

    return make


def sum_of_bytes(rng):
    """LiteRT's reference reads bytes of s8 and s16 as u8."""
    return dataclasses.replace(reduce("SUM", ("s8", "s16"))(rng), reference=False)


def product(rng):
    """Of quantized numbers that are small, so that not all products saturate."""
    case = reduce("REDUCE_PROD", ("f32", "s8", "s16", "s32", "s64", "bool"))(rng)
    x = case.inputs[0]
    if x.scale:
        x.scale = [float(np.float32(rng.uniform(0.9, 1.1) / pick(rng, 2, 10, 100)))]
        case.outputs[0].scale = [float(np.float32(2.0 ** rng.uniform(-8, 3)))]
    return case


def power(rng):
    """Exponents of s32 that 32 bits hold, and larger ones."""
    case = binary("POW", "PowOptions", ("f32", "s32"), False)(rng)
    if case.inputs[0].dtype == "s32":
        base, exponent = case.inputs
        base.data = base.data // pick(rng, 1, 50, 250)
        exponent.data = np.abs(exponent.data) // pick(rng, 1, 25, 100)
    return case


def arg(op):
    def make(rng):
        shape = shape_of(rng)
        out = pick(rng, "s32", "s64")
        kind = schema.TensorType.INT32 if out == "s32" else schema.TensorType.INT64
        return Case(op, [tensor(rng, shape, pick(rng, "f32", "u8", "s8", "s32")),
                         ints(int(rng.integers(-len(shape), len(shape))))], [Tensor(out)],
                    ("ArgMaxOptions" if op == "ARG_MAX" else "ArgMinOptions",
                     ("outputType", kind)))

    return make


def softmax(rng):
    dtype = pick(rng, "f32", "u8", "s8", "s16")
    x = tensor(rng, shape_of(rng), dtype, -8, 8)
    quant = {"u8": (1 / 256, 0), "s8": (1 / 256, -128), "s16": (1 / 32768, 0)}.get(dtype)
    return Case("SOFTMAX", [x], [output(rng, dtype, quant)],
                ("SoftmaxOptions", ("beta", pick(rng, 1.0, 1.0, 0.5))))


def log_softmax(rng):
    dtype = pick(rng, "f32", "s8", "u8")
    quant = {"u8": (16 / 256, 255), "s8": (16 / 256, 127)}.get(dtype)
    return Case("LOG_SOFTMAX", [tensor(rng, shape_of(rng), dtype)], [output(rng, dtype, quant)],
                ("LogSoftmaxOptions",))


def top_k(rng):
    shape = shape_of(rng)
    x = tensor(rng, shape, pick(rng, "f32", "u8", "s8", "s32"))
    return Case("TOPK_V2", [x, ints(int(rng.integers(1, shape[-1] + 1)))],
                [output(rng, x.dtype, quant_of(x)), Tensor("s32")], ("TopKV2Options",))


def cumsum(rng):
    shape = shape_of(rng)
    dtype = pick(rng, "f32", "s32", "s64")
    return Case("CUMSUM", [tensor(rng, shape, dtype),
                           ints(int(rng.integers(-len(shape), len(shape))))], [Tensor(dtype)],
                ("CumsumOptions", ("exclusive", bool(rng.integers(2))),
                 ("reverse", bool(rng.integers(2)))))


def l2_norm(rng):
    dtype = pick(rng, "f32", "u8", "s8")
    quant = {"u8": (1 / 128, 128), "s8": (1 / 128, 0)}.get(dtype)
    return Case("L2_NORMALIZATION", [tensor(rng, shape_of(rng, 4), dtype)],
                [output(rng, dtype, quant)], ("L2NormOptions",))


# ---- moves ----

MOVED = ("f32", "u8", "s8", "s16", "s32", "s64", "bool")


def move(rng, shape, types=MOVED):
    x = tensor(rng, shape, pick(rng, *types))
    return x, output(rng, x.dtype, quant_of(x))


def concatenation(rng):
    shape = shape_of(rng)
    axis = int(rng.integers(-len(shape), len(shape)))
    dtype = pick(rng, "f32", "u8", "s8", "s32")
    out = output(rng, dtype)
    inputs = []
    for _ in range(int(rng.integers(1, 5))):
        shape[axis] = int(rng.integers(1, 20))
        quant = None if dtype == "u8" else quant_of(out)
        inputs.append(tensor(rng, list(shape), dtype, quant=quant))
    return Case("CONCATENATION", inputs, [out], ("ConcatenationOptions", ("axis", axis)))


def split(rng):
    shape = shape_of(rng)
    axis = int(rng.integers(-len(shape), len(shape)))
    count = int(rng.integers(1, 5))
    shape[axis] = count * int(rng.integers(1, 4))
    x, out = move(rng, shape, ("f32", "u8", "s8", "s16", "s32"))
    return Case("SPLIT", [ints(axis), x],
                [output(rng, x.dtype, quant_of(x)) for _ in range(count)],
                ("SplitOptions", ("numSplits", count)))


def pad(op):
    def make(rng):
        shape = shape_of(rng)
        x, out = move(rng, shape, ("f32", "u8", "s8", "s32") + (
            ("s16", "s64", "bool") if op == "PADV2" else ()))
        if op == "MIRROR_PAD":
            mode = int(rng.integers(2))
            pads = [[int(rng.integers(0, d + mode)) for _ in range(2)] for d in shape]
            return Case(op, [x, Tensor("s32", data=pads, constant=True)], [out],
                        ("MirrorPadOptions", ("mode", mode)))
        pads = Tensor("s32", data=rng.integers(0, 4, (len(shape), 2)), constant=True)
        if op == "PAD":
            return Case(op, [x, pads], [out], ("PadOptions",))
        value = tensor(rng, [1], x.dtype, quant=quant_of(x), constant=bool(rng.integers(3)))
        return Case(op, [x, pads, value], [out], ("PadV2Options",))

    return make


def reshape(rng):
    shape = shape_of(rng)
    x, out = move(rng, shape)
    target = [int(d) for d in rng.permutation(shape)]
    if rng.integers(2):
        target[int(rng.integers(len(target)))] = -1
    return Case("RESHAPE", [x, ints(*target)], [out], ("ReshapeOptions", ("newShape", target)))


def transpose(rng):
    shape = shape_of(rng, int(rng.integers(1, 6)))
    x, out = move(rng, shape)
    return Case("TRANSPOSE", [x, ints(*rng.permutation(len(shape)))], [out], ("TransposeOptions",))


def slice_(rng):
    shape = shape_of(rng)
    begin = [int(rng.integers(0, d)) for d in shape]
    size = [int(rng.integers(1, d - b + 1)) if rng.integers(4) else -1
            for d, b in zip(shape, begin)]
    x, out = move(rng, shape)
    return Case("SLICE", [x, ints(*begin), ints(*size)], [out], ("SliceOptions",))


def strided_slice(rng):
    shape = shape_of(rng, most=9)
    begin, end, strides = [], [], []
    for size in shape:
        low, high = sorted(int(v) for v in rng.integers(0, size + 1, 2))
        if low == high:
            low, high = 0, size
        step = int(rng.integers(1, 4))
        if rng.integers(4) == 0:
            low, high, step = high - 1, low - 1 if low > 0 else -size - 1, -step
        begin.append(low), end.append(high), strides.append(step)
    x, out = move(rng, shape, ("f32", "u8", "s8", "s32"))
    masks = [int(rng.integers(0, 1 << len(shape))) if rng.integers(3) == 0 else 0
             for _ in range(2)]
    shrink = 1 << int(rng.integers(len(shape))) if rng.integers(5) == 0 else 0
    for i in range(len(shape)):
        if shrink >> i & 1:
            strides[i], masks[0] = 1, masks[0] & ~(1 << i)
            begin[i], end[i] = int(rng.integers(shape[i])), 0
            end[i] = begin[i] + 1
    return Case("STRIDED_SLICE", [x, ints(*begin), ints(*end), ints(*strides)], [out],
                ("StridedSliceOptions", ("beginMask", masks[0]), ("endMask", masks[1]),
                 ("shrinkAxisMask", shrink)))


def gather(rng):
    shape = shape_of(rng)
    axis = int(rng.integers(-len(shape), len(shape)))
    at = rng.integers(0, shape[axis], shape_of(rng, int(rng.integers(0, 3))))
    x, out = move(rng, shape, ("f32", "u8", "s8", "s32", "s64"))
    return Case("GATHER", [x, Tensor(pick(rng, "s32", "s64"), data=at)], [out],
                ("GatherOptions", ("axis", axis)))


def gather_nd(rng):
    shape = shape_of(rng)
    last = int(rng.integers(1, len(shape) + 1))
    lead = shape_of(rng, int(rng.integers(1, 3)))
    at = np.stack([rng.integers(0, shape[i], lead) for i in range(last)], -1)
    x, out = move(rng, shape, ("f32", "u8", "s8", "s32"))
    return Case("GATHER_ND", [x, Tensor("s32", data=at)], [out], ("GatherNdOptions",))


def pack(rng):
    shape = shape_of(rng, int(rng.integers(1, 4)))
    count = int(rng.integers(1, 5))
    x, out = move(rng, shape, ("f32", "u8", "s8", "s32"))
    more = [tensor(rng, shape, x.dtype, quant=quant_of(x)) for _ in range(count - 1)]
    return Case("PACK", [x, *more], [out],
                ("PackOptions", ("axis", int(rng.integers(-len(shape) - 1, len(shape) + 1))),
                 ("valuesCount", count)))


def unpack(rng):
    shape = shape_of(rng, int(rng.integers(2, 5)))
    axis = int(rng.integers(-len(shape), len(shape)))
    x, out = move(rng, shape, ("f32", "u8", "s8", "s32"))
    return Case("UNPACK", [x], [output(rng, x.dtype, quant_of(x)) for _ in range(shape[axis])],
                ("UnpackOptions", ("axis", axis), ("num", shape[axis])))


def tile(rng):
    shape = shape_of(rng)
    x, out = move(rng, shape, ("f32", "u8", "s8", "s32"))
    return Case("TILE", [x, ints(*rng.integers(1, 4, len(shape)))], [out], ("TileOptions",))


def depth_space(op):
    def make(rng):
        block = int(rng.integers(2, 4))
        n, h, w, c = shape_of(rng, 4, 4)
        shape = [n, h, w, c * block * block]
        if op == "SPACE_TO_DEPTH":
            shape = [n, h * block, w * block, c]
        x, out = move(rng, shape, ("f32", "u8", "s8", "s32"))
        kind = "DepthToSpaceOptions" if op == "DEPTH_TO_SPACE" else "SpaceToDepthOptions"
        return Case(op, [x], [out], (kind, ("blockSize", block)))

    return make


def batch_space(op):
    def make(rng):
        n, h, w, c = shape_of(rng, 4, 5)
        block = [int(b) for b in rng.integers(1, 4, 2)]
        sides = rng.integers(0, 2, (2, 2))
        if op == "SPACE_TO_BATCH_ND":
            h, w = (d * b + b - int(s.sum()) % b for d, b, s in zip((h, w), block, sides))
            shape = [n, h, w, c]
        else:
            shape = [n * block[0] * block[1], h + 2, w + 2, c]
        x, out = move(rng, shape, ("f32", "u8", "s8"))
        kind = "SpaceToBatchNDOptions" if op == "SPACE_TO_BATCH_ND" else "BatchToSpaceNDOptions"
        return Case(op, [x, ints(*block), Tensor("s32", data=sides, constant=True)], [out],
                    (kind,))

    return make


def reverse(rng):
    shape = shape_of(rng)
    x, out = move(rng, shape, ("f32", "u8", "s32", "s64"))
    return Case("REVERSE_V2", [x, ints(int(rng.integers(len(shape))))], [out],
                ("ReverseV2Options",))


def broadcast_to(rng):
    full, part = pair_of_shapes(rng)
    x, out = move(rng, part, ("f32", "u8", "s8", "s32", "s64"))
    return Case("BROADCAST_TO", [x, ints(*full)], [out], ("BroadcastToOptions",))


def one_hot(rng):
    depth = int(rng.integers(1, 7))
    dtype = pick(rng, "f32", "s32", "s64")
    at = Tensor(pick(rng, "s32", "s64"),
                data=rng.integers(-1, depth + 1, shape_of(rng, int(rng.integers(1, 4)))))
    return Case("ONE_HOT", [at, ints(depth), Tensor(dtype, data=np.array(3)),
                            Tensor(dtype, data=np.array(-1))], [Tensor(dtype)],
                ("OneHotOptions", ("axis", int(rng.integers(-1, len(at.shape) + 1)))))


def resize(op):
    def make(rng):
        n, h, w, c = shape_of(rng, 4)
        x, out = move(rng, [n, h, w, c], ("f32", "u8", "s8") if op == "RESIZE_BILINEAR" else
                      ("f32", "u8", "s8", "s16", "s32", "bool"))
        align = bool(rng.integers(2))
        half = bool(rng.integers(2)) and not align
        kind = "ResizeBilinearOptions" if op == "RESIZE_BILINEAR" else (
            "ResizeNearestNeighborOptions")
        return Case(op, [x, ints(*(int(v) for v in rng.integers(1, 15, 2)))], [out],
                    (kind, ("alignCorners", align), ("halfPixelCenters", half)))

    return make


# ---- layers ----


def filters(rng, shape, dtype, axis, count):
    """Weights and the scale of each channel of axis."""
    if dtype == "f32":
        return tensor(rng, shape, "f32", -1, 1, constant=True), None
    if dtype == "u8":
        w = tensor(rng, shape, "u8", constant=True)
        return w, [w.scale[0]] * count
    scales = [scale(rng) for _ in range(count)]
    if rng.integers(3) == 0:
        scales = [scales[0]]
    w = Tensor("s8", data=rng.integers(-127, 128, shape), scale=scales,
               zero_point=[0] * len(scales), constant=True)
    w.axis = axis
    return w, scales * count if len(scales) == 1 else scales


def bias_of(rng, x, scales, count):
    if x.dtype == "f32":
        return tensor(rng, [count], "f32", constant=True)
    one = len(set(scales)) == 1
    used = [x.scale[0] * s for s in (scales[:1] if one else scales)]
    b = Tensor("s64" if x.dtype == "s16" else "s32", data=rng.integers(-2000, 2000, count),
               scale=used, zero_point=[0] * len(used), constant=True)
    b.axis = 0
    return b


def layer_type(rng):
    dtype = pick(rng, "f32", "f32", "u8", "s8", "s8", "s16")
    return dtype, "s8" if dtype == "s16" else dtype


def wide(rng, dtype, terms):
    """An output that holds the sums of so many products."""
    if dtype == "f32":
        return Tensor("f32")
    s = float(np.float32(2.0 ** rng.uniform(-4, 1) * np.sqrt(terms)))
    return Tensor(dtype, scale=s, zero_point=zero(rng, dtype))


def window_members(rng):
    how = (("padding", int(rng.integers(2))), ("strideH", int(rng.integers(1, 4))),
           ("strideW", int(rng.integers(1, 4))))
    return how + (("fusedActivationFunction", pick(rng, A.NONE, A.NONE, A.RELU, A.RELU6,
                                                   A.RELU_N1_TO_1)),)


def dilated(rng, members):
    if rng.integers(4):
        return members
    plain = tuple((k, 1 if k.startswith("stride") else v) for k, v in members)
    return plain + (("dilationHFactor", int(rng.integers(1, 4))),
                    ("dilationWFactor", int(rng.integers(1, 4))))


def conv(rng):
    dtype, wtype = layer_type(rng)
    kh, kw = (int(k) for k in rng.integers(1, 5, 2))
    inside, out = channels(rng), channels(rng)
    x = tensor(rng, [int(rng.integers(1, 3)), kh + int(rng.integers(0, 9)) + 6,
                     kw + int(rng.integers(0, 9)) + 6, inside], dtype)
    w, scales = filters(rng, [out, kh, kw, inside], wtype, 0, out)
    inputs = [x, w] + ([bias_of(rng, x, scales, out)] if rng.integers(4) or dtype != "f32" else [])
    return Case("CONV_2D", inputs, [wide(rng, dtype, kh * kw * inside)],
                ("Conv2DOptions", *dilated(rng, window_members(rng))))


def depthwise(rng):
    dtype, wtype = layer_type(rng)
    kh, kw = (int(k) for k in rng.integers(1, 6, 2))
    inside, times = channels(rng), pick(rng, 1, 1, 1, 2, 4)
    x = tensor(rng, [int(rng.integers(1, 3)), kh + int(rng.integers(0, 9)) + 8,
                     kw + int(rng.integers(0, 9)) + 8, inside], dtype)
    w, scales = filters(rng, [1, kh, kw, inside * times], wtype, 3, inside * times)
    return Case("DEPTHWISE_CONV_2D", [x, w, bias_of(rng, x, scales, inside * times)],
                [wide(rng, dtype, kh * kw)],
                ("DepthwiseConv2DOptions", ("depthMultiplier", times),
                 *dilated(rng, window_members(rng))))


def transpose_conv(rng):
    dtype, wtype = layer_type(rng)
    kh, kw = (int(k) for k in rng.integers(1, 5, 2))
    n, h, width, inside = shape_of(rng, 4, 5)
    out = channels(rng)
    padding, sh, sw = int(rng.integers(2)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    x = tensor(rng, [n, h, width, inside], dtype)
    w, scales = filters(rng, [out, kh, kw, inside], wtype, 0, out)
    high, broad = (h * sh, width * sw) if padding == 0 else (
        (h - 1) * sh + kh, (width - 1) * sw + kw)
    inputs = [ints(n, high, broad, out), w, x]
    if rng.integers(2):
        inputs.append(bias_of(rng, x, scales, out))
    return Case("TRANSPOSE_CONV", inputs, [wide(rng, dtype, kh * kw * inside)],
                ("TransposeConvOptions", ("padding", padding), ("strideH", sh), ("strideW", sw)))


def fully_connected(rng):
    dtype, wtype = layer_type(rng)
    lead = shape_of(rng, int(rng.integers(1, 3)))
    inside, out = channels(rng), channels(rng)
    x = tensor(rng, lead + [inside], dtype)
    w, scales = filters(rng, [out, inside], wtype, 0, out)
    if w.scale and len(w.scale) > 1 and dtype == "s16":
        w.scale, w.zero_point, scales = w.scale[:1], [0], [w.scale[0]] * out
    inputs = [x, w] + ([bias_of(rng, x, scales, out)] if rng.integers(3) else [])
    return Case("FULLY_CONNECTED", inputs, [wide(rng, dtype, inside)],
                ("FullyConnectedOptions", ("keepNumDims", bool(rng.integers(2))),
                 ("fusedActivationFunction", pick(rng, A.NONE, A.RELU, A.RELU6))))


def pool(op):
    def make(rng):
        dtype = pick(rng, "f32", "u8", "s8", "s16")
        kh, kw = (int(k) for k in rng.integers(1, 6, 2))
        x = tensor(rng, [int(rng.integers(1, 3)), kh + int(rng.integers(0, 8)),
                         kw + int(rng.integers(0, 8)), channels(rng)], dtype)
        return Case(op, [x], [output(rng, dtype, quant_of(x))],
                    ("Pool2DOptions", ("filterHeight", kh), ("filterWidth", kw),
                     *window_members(rng)))

    return make


def batch_matmul(rng):
    dtype = pick(rng, "f32", "f32", "s8", "s16")
    m, k, n = shape_of(rng, 3, 9)
    lead = shape_of(rng, int(rng.integers(0, 3)), 3)
    ta, tb = bool(rng.integers(2)), bool(rng.integers(2))
    x = tensor(rng, lead + ([k, m] if ta else [m, k]), dtype)
    y = tensor(rng, lead + ([n, k] if tb else [k, n]), dtype)
    return Case("BATCH_MATMUL", [x, y], [wide(rng, dtype, k)],
                ("BatchMatMulOptions", ("adjX", ta), ("adjY", tb)))


LOGISTIC = {"u8": (1 / 256, 0), "s8": (1 / 256, -128), "s16": (1 / 32768, 0)}
TANH = {"u8": (1 / 128, 128), "s8": (1 / 128, 0), "s16": (1 / 32768, 0)}
BYTES = ("f32", "u8", "s8")


def sequence_lstm(rng, steps=None):
    """8-bit. LiteRT takes the width of the state for the number of cells that peepholes see: a
    wider one leads it beyond their weights, another one to cells of other samples of a batch."""
    n, some, width, cells = shape_of(rng, 4, 9)
    more = {k: bool(rng.integers(2)) for k in
            ("time_major", "coupled", "peephole", "norm", "proj_bias")}
    most = cells if more["peephole"] else 9
    more |= {"cell_clip": pick(rng, 0.0, 0.0, 1.5), "exponent": pick(rng, -11, -12, -10),
             "projection": pick(rng, None, int(rng.integers(1, most + 1))),
             "proj_clip": pick(rng, 0.0, 0.0, 0.2)}
    if more["peephole"] and more["projection"]:
        n = 1
    (options, inputs, outputs, inside), _, _ = make_lstm.parts(rng, n, steps or some, width, cells,
                                                             **more)
    return Case("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, outputs,
                ("UnidirectionalSequenceLSTMOptions", *vars(options).items()), inside)


def lstm(rng):
    """One step."""
    case = sequence_lstm(rng, 1)
    for t in (case.inputs[0], case.outputs[0]):
        n = t.shape[0] * t.shape[1]
        t.shape = [n, t.shape[2]]
        t.data = t.data if t.data is None else t.data.reshape(t.shape)
    members = dict(case.options[1:])
    return dataclasses.replace(case, op="LSTM", options=("LSTMOptions", *(
        (k, members[k]) for k in ("fusedActivationFunction", "cellClip", "projClip"))))


# ---- the data decides shapes ----


def where(rng):
    dtype = pick(rng, "bool", "f32", "s32", "s8", "u8")
    x = tensor(rng, shape_of(rng), dtype)
    x.data = np.where(rng.integers(0, 2, x.data.shape) > 0, x.data, x.np(0))
    x.scale = x.zero_point = None
    return Case("WHERE", [x], [Tensor("s64")])


def unique(rng):
    dtype = pick(rng, "f32", "s32", "s64", "s8")
    x = tensor(rng, [int(rng.integers(1, 40))], dtype)
    x.data = x.data[rng.integers(0, len(x.data), len(x.data))]
    wide = bool(rng.integers(2))
    kind = schema.TensorType.INT64 if wide else schema.TensorType.INT32
    return Case("UNIQUE", [x], [output(rng, dtype, quant_of(x)), Tensor("s64" if wide else "s32")],
                ("UniqueOptions", ("idxOutType", kind)))


def range_(rng):
    dtype = pick(rng, "f32", "s32")
    limits = [rng.integers(-9, 9), rng.integers(9, 30), rng.integers(1, 5)]
    if rng.integers(2):
        limits = [-v for v in limits]
    return Case("RANGE", [Tensor(dtype, data=np.array(v)) for v in limits], [Tensor(dtype)],
                ("RangeOptions",))


def fill(rng):
    dtype = pick(rng, "f32", "s32", "s64", "s8")
    x = tensor(rng, [], dtype)
    return Case("FILL", [ints(*shape_of(rng)), x], [output(rng, dtype, quant_of(x))],
                ("FillOptions",))


def decided(make):
    """A case whose constant integers are inputs."""

    def make_decided(rng):
        case = make(rng)
        for t in case.inputs:
            t.constant = t.constant and t.dtype != "s32"
        return case

    return make_decided


# ---- StableHLO's windows ----


def windows(rng, inside):
    """Operand's shape, sizes of windows, dimensions that windows lack, those that indices place,
    the shape of the batch, and the places of window dimensions in the result."""
    shape = shape_of(rng, int(rng.integers(1, 5)))
    size = [int(rng.integers(1, d + 1)) if rng.integers(2) else d for d in shape]
    lacks = [d for d in range(len(shape)) if rng.integers(3) == 0]
    for d in lacks:
        size[d] = 1
    placed = [int(d) for d in rng.permutation(len(shape))[: int(rng.integers(1, len(shape) + 1))]]
    batch = shape_of(rng, int(rng.integers(0, 3)), 4)
    kept = len(shape) - len(lacks)
    rank = len(batch) + kept
    at = sorted(int(d) for d in rng.permutation(rank)[:kept])
    if not inside:
        at = list(range(len(batch), rank))
    axis = int(rng.integers(len(batch) + 1))
    highest = [shape[d] - (0 if inside else size[d] - 1) + 1 for d in placed]
    indices = np.stack([rng.integers(0 if not inside else -1, h, batch) for h in highest], axis)
    return shape, size, lacks, placed, batch, at, axis, indices


def hlo_gather(rng):
    shape, size, lacks, placed, _, at, axis, indices = windows(rng, True)
    x = tensor(rng, shape, pick(rng, "f32", "s32", "s64"))
    members = (("offsetDims", at), ("collapsedSliceDims", lacks), ("startIndexMap", placed),
               ("indexVectorDim", axis), ("sliceSizes", size))
    out = Tensor(x.dtype, [1] * (indices.ndim - 1 + len(at)))
    return Case("STABLEHLO_GATHER", [x, Tensor(pick(rng, "s32", "s64"), data=indices)], [out],
                ("StablehloGatherOptions", *members))


def hlo_scatter(rng):
    """Windows at the end of the updates, indices up to one place too far."""
    shape, size, lacks, placed, batch, at, axis, indices = windows(rng, False)
    dtype = pick(rng, "f32", "s32", "s64")
    body = pick(rng, 0, B.STABLEHLO_ADD, B.STABLEHLO_MULTIPLY, B.STABLEHLO_MAXIMUM,
                B.STABLEHLO_MINIMUM)
    updates = batch + [s for d, s in enumerate(size) if d not in lacks]
    members = (("updateWindowDims", at), ("insertedWindowDims", lacks),
               ("scatterDimsToOperandDims", placed), ("indexVectorDim", axis),
               ("updateComputationSubgraphIndex", 1))
    return Case("STABLEHLO_SCATTER",
                [tensor(rng, shape, dtype), Tensor(pick(rng, "s32", "s64"), data=indices),
                 tensor(rng, updates, dtype)], [Tensor(dtype, shape)],
                ("StablehloScatterOptions", *members), body=body)


CASES = {
    "STABLEHLO_GATHER": hlo_gather, "STABLEHLO_SCATTER": hlo_scatter,
    "ABS": unary("ABS", ("f32", "s8", "s16"), options=("AbsOptions",)),
    "NEG": unary("NEG", ("f32", "s8", "s16"), options=("NegOptions",)),
    "EXP": unary("EXP", ("f32", "s8", "s16"), options=("ExpOptions",)),
    "LOG": unary("LOG", ("f32", "s8", "s16"), low=0.01, high=5),
    "SQRT": root("SQRT"),
    "RSQRT": root("RSQRT"),
    "SIN": unary("SIN"), "COS": unary("COS", options=("CosOptions",)),
    "FLOOR": unary("FLOOR"), "CEIL": unary("CEIL"), "ROUND": unary("ROUND"),
    "SQUARE": unary("SQUARE", options=("SquareOptions",)),
    "ELU": unary("ELU", ("f32", "s8")),
    "GELU": unary("GELU", ("f32", "u8", "s8", "s16"), options=("GeluOptions", (
        "approximate", lambda rng: bool(rng.integers(2))))),
    "RELU": unary("RELU", ("f32", "u8", "s8", "s16")),
    "RELU6": unary("RELU6", ("f32", "u8", "s8", "s16")),
    "RELU_N1_TO_1": unary("RELU_N1_TO_1", BYTES),
    "LEAKY_RELU": unary("LEAKY_RELU", ("f32", "u8", "s8", "s16"), options=("LeakyReluOptions", (
        "alpha", lambda rng: float(rng.uniform(0.01, 0.9))))),
    "HARD_SWISH": unary("HARD_SWISH", BYTES, options=("HardSwishOptions",)),
    "LOGISTIC": unary("LOGISTIC", ("f32", "u8", "s8", "s16"), fixed=LOGISTIC),
    "TANH": unary("TANH", ("f32", "u8", "s8", "s16"), fixed=TANH),
    "LOGICAL_NOT": unary("LOGICAL_NOT", ("bool",), options=("LogicalNotOptions",)),
    "PRELU": prelu, "SELECT_V2": select, "QUANTIZE": quantize, "DEQUANTIZE": dequantize,
    "ADD": binary("ADD", "AddOptions", ("f32", "u8", "s8", "s16", "s32", "s64")),
    "SUB": binary("SUB", "SubOptions", ("f32", "u8", "s8", "s16", "s32")),
    "MUL": binary("MUL", "MulOptions", ("f32", "u8", "s8", "s16", "s32")),
    "DIV": divide,
    "FLOOR_DIV": binary("FLOOR_DIV", "FloorDivOptions", ("f32", "s8", "s16", "s32"), False, True),
    "FLOOR_MOD": binary("FLOOR_MOD", "FloorModOptions", ("f32", "s8", "s16", "s32"), False, True),
    "SQUARED_DIFFERENCE": binary("SQUARED_DIFFERENCE", "SquaredDifferenceOptions",
                                 ("f32", "s32", "s8"), False),
    "MAXIMUM": extreme("MAXIMUM"), "MINIMUM": extreme("MINIMUM"),
    **{op: compare(op) for op in
       ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")},
    "MEAN": reduce("MEAN", ("f32", "u8", "s8", "s16")),
    "SUM": reduce("SUM", ("f32", "u8", "s32", "s64", "bool")),
    "SUM OF BYTES": sum_of_bytes,
    "REDUCE_MAX": reduce("REDUCE_MAX", ("f32", "u8", "s8", "s16", "s32", "s64", "bool")),
    "REDUCE_MIN": reduce("REDUCE_MIN", ("f32", "u8", "s8", "s16", "s32", "s64", "bool")),
    "REDUCE_PROD": product, "POW": power,
    "REDUCE_ANY": reduce("REDUCE_ANY", ("bool",)), "REDUCE_ALL": reduce("REDUCE_ALL", ("bool",)),
    "ARG_MAX": arg("ARG_MAX"), "ARG_MIN": arg("ARG_MIN"), "SOFTMAX": softmax,
    "LOG_SOFTMAX": log_softmax, "TOPK_V2": top_k, "CUMSUM": cumsum, "L2_NORMALIZATION": l2_norm,
    "CONCATENATION": concatenation, "SPLIT": split, "PAD": pad("PAD"), "PADV2": pad("PADV2"),
    "MIRROR_PAD": pad("MIRROR_PAD"), "RESHAPE": reshape, "TRANSPOSE": transpose,
    "SLICE": slice_, "STRIDED_SLICE": strided_slice, "GATHER": gather, "GATHER_ND": gather_nd,
    "PACK": pack, "UNPACK": unpack, "TILE": tile,
    "DEPTH_TO_SPACE": depth_space("DEPTH_TO_SPACE"),
    "SPACE_TO_DEPTH": depth_space("SPACE_TO_DEPTH"),
    "SPACE_TO_BATCH_ND": batch_space("SPACE_TO_BATCH_ND"),
    "BATCH_TO_SPACE_ND": batch_space("BATCH_TO_SPACE_ND"), "REVERSE_V2": reverse,
    "BROADCAST_TO": broadcast_to, "ONE_HOT": one_hot,
    "RESIZE_BILINEAR": resize("RESIZE_BILINEAR"),
    "RESIZE_NEAREST_NEIGHBOR": resize("RESIZE_NEAREST_NEIGHBOR"),
    "CONV_2D": conv, "DEPTHWISE_CONV_2D": depthwise, "TRANSPOSE_CONV": transpose_conv,
    "FULLY_CONNECTED": fully_connected, "AVERAGE_POOL_2D": pool("AVERAGE_POOL_2D"),
    "MAX_POOL_2D": pool("MAX_POOL_2D"), "BATCH_MATMUL": batch_matmul,
    "LSTM": lstm, "UNIDIRECTIONAL_SEQUENCE_LSTM": sequence_lstm,
    "WHERE": where, "UNIQUE": unique, "RANGE": range_, "FILL": fill,
}
CASES |= {
    f"{op} BY DATA": decided(CASES[op]) for op in
    ("RESHAPE", "SLICE", "STRIDED_SLICE", "TILE", "PAD", "PADV2", "BROADCAST_TO", "ONE_HOT",
     "TOPK_V2", "SUM", "ARG_MAX", "TRANSPOSE", "FILL", "SPLIT", "MIRROR_PAD", "REVERSE_V2",
     "RESIZE_BILINEAR", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "MEAN", "CUMSUM")
}


# ---- scales that no training gives ----


def ends(rng, dtype):
    low, high = RANGE[dtype]
    return 0 if dtype in ("s16", "s32", "s64") else pick(rng, low, high, 0, zero(rng, dtype))


def degenerate(make):
    """A case whose scales are 10^-30 to 10^30 and whose zero points are at the ends. Equal
    quantizations stay equal; the scale of a bias is that of its products."""

    def make_degenerate(rng):
        case = dataclasses.replace(make(rng), degenerate=True)
        middle, width = pick(rng, (0, 30), (-20, 4), (0, 12), (20, 4), (0, 4))
        renamed = {}

        def rename(t, bias):
            if t is None or t.scale is None or bias:
                return
            key = (tuple(t.scale), tuple(t.zero_point))
            if key not in renamed:
                factor = 10.0 ** rng.uniform(middle - width, middle + width)
                renamed[key] = ([float(np.float32(s * factor)) for s in t.scale],
                                [ends(rng, t.dtype) for _ in t.scale] if len(t.scale) == 1 and
                                not (t.dtype == "s8" and t.constant) else t.zero_point)
            t.scale, t.zero_point = renamed[key]

        layer = case.op in BIASED
        for i, t in enumerate(case.inputs):
            rename(t, layer and i == len(case.inputs) - 1 and t.dtype in ("s32", "s64"))
        for t in case.outputs:
            rename(t, False)
        b = case.inputs[-1]
        if layer and b.scale is not None and b.dtype in ("s32", "s64"):
            x, w = (case.inputs[2], case.inputs[1]) if case.op == "TRANSPOSE_CONV" else (
                case.inputs[:2])
            with np.errstate(over="ignore"):
                b.scale = [float(np.float32(x.scale[0]) * np.float32(s)) for s in w.scale]
            b.zero_point = [0] * len(b.scale)
        return case

    return make_degenerate


def hard_swish(rng):
    """From an input scale of 5e7 on LiteRT shifts by 32 bits and more, and its vectors give
    something else than what is left beside them."""
    case = degenerate(of_quantized(CASES["HARD_SWISH"]))(rng)
    x = case.inputs[0]
    x.scale = [min(x.scale[0], 4e7)]
    return case


def sub(rng):
    """A factor of 1 or more shifts by a negative number in LiteRT: results depend on where an
    element lies."""
    case = degenerate(of_quantized(CASES["SUB"]))(rng)
    most = max(t.scale[0] for t in case.inputs)
    case.outputs[0].scale = [max(case.outputs[0].scale[0], most / 2 ** 13)]
    return case


def small_scales(op):
    """Below 1, for the same reason."""
    def make(rng):
        case = degenerate(of_quantized(CASES[op]))(rng)
        for t in case.inputs:
            t.scale = [min(t.scale[0], 0.9)]
        return case

    return make


def pool_of_bytes(op):
    """Where 32 bits do not hold 6, LiteRT clamps to what its stack held before."""
    def make(rng):
        case = degenerate(of_quantized(CASES[op]))(rng)
        for t in case.inputs + case.outputs:
            t.scale = [max(t.scale[0], 1e-8)]
        return case

    return make


BIASED = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED")


def of_quantized(make):
    def make_quantized(rng):
        for _ in range(50):
            case = make(rng)
            if any(t is not None and t.scale is not None for t in case.inputs + case.outputs):
                return case
        raise ValueError("no quantized case")

    return make_quantized


DEGENERATE = ("ABS", "EXP", "RSQRT", "ELU", "GELU", "RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU",
              "TANH", "PRELU", "QUANTIZE", "DEQUANTIZE", "ADD", "MUL",
              "DIV", "SQUARED_DIFFERENCE", "MAXIMUM", "MEAN",
              "REDUCE_MAX", "CONCATENATION",
              "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED",
              "BATCH_MATMUL", "PACK", "RESIZE_BILINEAR")
CASES |= {f"{op} DEGENERATE": degenerate(of_quantized(CASES[op])) for op in DEGENERATE}
CASES |= {f"{op} DEGENERATE": small_scales(op) for op in ("EQUAL", "LESS")}
CASES |= {"HARD_SWISH DEGENERATE": hard_swish, "SUB DEGENERATE": sub,
          "AVERAGE_POOL_2D DEGENERATE": pool_of_bytes("AVERAGE_POOL_2D"),
          "MAX_POOL_2D DEGENERATE": pool_of_bytes("MAX_POOL_2D")}

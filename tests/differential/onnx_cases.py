"""Random models of one ONNX operator each: random attributes, shapes and types from the operator's
definition. A generator takes a numpy Generator and returns a Case; CASES lists them by name."""
import dataclasses

import ml_dtypes
import numpy as np

F = np.float32
FLOATS = [np.float32]
INTEGERS = [np.int32, np.int64]
NUMBERS = FLOATS + INTEGERS


@dataclasses.dataclass
class Case:
    op: str
    inputs: list  # arrays; None: left out
    attrs: dict = dataclasses.field(default_factory=dict)
    constants: set = dataclasses.field(default_factory=set)  # inputs that are initializers
    outputs: int = 1
    opset: int = 17
    steps: int = 0  # by which integers may differ
    domain: str = ""
    peer: str = ""  # "onnx": the definition's own evaluator answers what ONNX Runtime refuses
    is_fixed: bool = False  # no other opset, no other types
    off: float = 0  # by which floats may differ, because the peer rounds what it multiplies
    nodes: list = None  # the graph from in0 … to out0 …, if it is more than one node


def pick(rng, *choices):
    return choices[int(rng.integers(len(choices)))]


def shape_of(rng, rank=None, most=6):
    """Small dimensions, and sometimes one that fills vectors."""
    rank = int(rng.integers(1, 5)) if rank is None else rank
    shape = [int(d) for d in rng.integers(1, most + 1, rank)]
    if rank > 0 and most >= 6 and rng.integers(6) == 0:
        shape[int(rng.integers(rank))] = int(rng.integers(7, 75))
    return tuple(shape)


def array(rng, shape, dtype=F, low=-3.0, high=3.0):
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if np.issubdtype(dtype, np.integer):
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -20), min(info.max, 20) + 1, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)


def axis_of(rng, rank):
    return int(rng.integers(-rank, rank))


def some_axes(rng, rank):
    count = int(rng.integers(1, rank + 1))
    axes = rng.permutation(rank)[:count]
    return [int(a) - (rank if rng.integers(2) else 0) for a in axes]


def i64(*values):
    return np.array(values, dtype=np.int64)


# ---- element by element ----


def unary(op, low=-3.0, high=3.0, opset=17, types=(np.float32,), **attrs):
    def make(rng):
        values = {k: v(rng) if callable(v) else v for k, v in attrs.items()}
        dtype = pick(rng, *types)
        return Case(op, [array(rng, shape_of(rng), dtype, low, high)], values, opset=opset)

    return make


def alpha(low, high):
    return lambda rng: float(rng.uniform(low, high))


def broadcast_pair(rng):
    full = shape_of(rng)
    cut = int(rng.integers(0, len(full) + 1))
    other = tuple(1 if rng.integers(3) == 0 else d for d in full)[cut:]
    mine = tuple(1 if rng.integers(4) == 0 and (i >= cut) else d for i, d in enumerate(full))
    return (mine, other) if rng.integers(2) else (other, mine)


def binary(op, types=NUMBERS, opset=17, positive=False, is_const=True, **attrs):
    def make(rng):
        a, b = broadcast_pair(rng)
        dtype = pick(rng, *types)
        x, y = array(rng, a, dtype), array(rng, b, dtype)
        if positive:
            x = np.asarray(np.abs(x) + dtype(1))
            y = np.asarray(np.abs(y) + dtype(1))
        constants = {1} if is_const and rng.integers(3) == 0 else set()
        values = {k: v(rng) if callable(v) else v for k, v in attrs.items()}
        return Case(op, [x, y], values, constants, opset=opset)

    return make


def several(op):
    def make(rng):
        full = shape_of(rng)
        count = int(rng.integers(1, 5))
        inputs = [array(rng, tuple(1 if rng.integers(4) == 0 else d for d in full))
                  for _ in range(count)]
        return Case(op, inputs)

    return make


def mod(rng):
    a, b = broadcast_pair(rng)
    dtype = pick(rng, np.float32, np.int32, np.int64)
    y = array(rng, b, dtype)
    y[np.abs(y) < 1] = 3
    fmod = 1 if dtype == np.float32 else int(rng.integers(2))
    return Case("Mod", [array(rng, a, dtype), y], {"fmod": fmod})


def power(rng):
    a, b = broadcast_pair(rng)
    low = pick(rng, 0.1, 1.0)  # whole bases from 1 on: no type holds 0 to a negative power
    return Case("Pow", [array(rng, a, F, low, 4), array(rng, b, F, -2, 2)], is_fixed=low < 1)


def divide(rng):
    case = binary("Div")(rng)
    case.inputs[1][np.abs(case.inputs[1]) < 1] = 2
    return case


def prelu(rng):
    shape = shape_of(rng)
    slope = tuple(1 if rng.integers(2) else d for d in shape)[int(rng.integers(len(shape))):]
    return Case("PRelu", [array(rng, shape), array(rng, slope)], constants={1})


def where(rng):
    a, b = broadcast_pair(rng)
    dtype = pick(rng, *NUMBERS)
    full = np.broadcast_shapes(a, b)
    return Case("Where", [array(rng, full, np.bool_), array(rng, a, dtype), array(rng, b, dtype)])


def clip(rng):
    dtype = pick(rng, *NUMBERS)
    low = np.array(-1, dtype) if rng.integers(2) else None
    high = np.array(2, dtype) if rng.integers(2) else None
    return Case("Clip", [array(rng, shape_of(rng), dtype), low, high], constants={1, 2})


def cast(rng):
    import onnx

    types = [np.float32, np.int32, np.int64, np.uint8, np.int8, np.bool_, np.int16, np.float16,
             np.float64]
    source, target = pick(rng, *types), pick(rng, *types)
    x = array(rng, shape_of(rng), source)
    if np.dtype(target).kind == "u":
        x = np.abs(x) if np.dtype(source).kind != "b" else x
    return Case("Cast", [x], {"to": int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(target)))})


# ---- reductions ----


def reduce(op, positive=False):
    """ReduceLogSumExp of floats: of whole numbers ONNX Runtime cuts each exponential to a whole
    number before it sums, the definition only the result."""
    is_fixed = op == "ReduceLogSumExp"

    def make(rng):
        shape = shape_of(rng)
        x = array(rng, shape, F, 0.2 if positive else -2, 2)
        attrs = {"keepdims": int(rng.integers(2))}
        if rng.integers(2):
            inputs = [x]
            if rng.integers(4):
                inputs.append(i64(*some_axes(rng, len(shape))))
            else:
                attrs["noop_with_empty_axes"] = int(rng.integers(2))
            return Case(op, inputs, attrs, {1}, opset=18, is_fixed=is_fixed)
        if rng.integers(4) and op != "ReduceSum":
            attrs["axes"] = some_axes(rng, len(shape))
        return Case(op, [x], attrs, opset=13, is_fixed=is_fixed)

    return make


def arg(op):
    def make(rng):
        shape = shape_of(rng)
        x = np.round(array(rng, shape)) if rng.integers(2) else array(rng, shape)
        return Case(op, [x.astype(F)], {"axis": axis_of(rng, len(shape)),
                                        "keepdims": int(rng.integers(2)),
                                        "select_last_index": int(rng.integers(2))})

    return make


def softmax(op):
    def make(rng):
        shape = shape_of(rng)
        return Case(op, [array(rng, shape, F, -6, 6)], {"axis": axis_of(rng, len(shape))},
                    opset=pick(rng, 11, 13, 17))

    return make


def cumsum(rng):
    shape = shape_of(rng)
    return Case("CumSum", [array(rng, shape, pick(rng, *NUMBERS)),
                           np.array(axis_of(rng, len(shape)), pick(rng, np.int32, np.int64))],
                {"exclusive": int(rng.integers(2)), "reverse": int(rng.integers(2))}, {1})


def top_k(rng):
    shape = shape_of(rng)
    axis = axis_of(rng, len(shape))
    k = int(rng.integers(1, shape[axis] + 1))
    return Case("TopK", [array(rng, shape, pick(rng, *NUMBERS)), i64(k)],
                {"axis": axis, "largest": int(rng.integers(2)), "sorted": 1}, {1}, 2)


def with_ties(rng, shape, dtype=F):
    """Most values are equal to others."""
    return array(rng, shape, np.int64, 0, 1).astype(dtype) % dtype(int(rng.integers(1, 5)))


def top_k_of_ties(rng):
    case = top_k(rng)
    case.inputs[0] = with_ties(rng, case.inputs[0].shape, case.inputs[0].dtype.type)
    return case


def unique(rng):
    shape = shape_of(rng)
    attrs = {"sorted": int(rng.integers(2))}
    if rng.integers(2):
        attrs["axis"] = axis_of(rng, len(shape))
    return Case("Unique", [with_ties(rng, shape, pick(rng, *NUMBERS))], attrs, outputs=4)


def suppression(rng):
    """Corners in whole numbers and few scores: many boxes and scores are equal."""
    batches, classes, boxes = (int(rng.integers(1, n)) for n in (3, 4, 40))
    corners = rng.integers(0, 8, (batches, boxes, 4)).astype(F)
    scores = with_ties(rng, (batches, classes, boxes)) / F(4)
    inputs = [corners, scores, i64(int(rng.integers(0, 9)))]
    inputs.append(np.array([pick(rng, 0, 0.3, 0.5, 1)], F) if rng.integers(4) else None)
    inputs.append(np.array([pick(rng, -1, 0, 0.25, 0.5)], F) if rng.integers(4) else None)
    return Case("NonMaxSuppression", inputs, {"center_point_box": int(rng.integers(2))}, {2, 3, 4})


# ---- moves ----


def concat(rng):
    shape = list(shape_of(rng))
    axis = axis_of(rng, len(shape))
    dtype = pick(rng, np.float32, np.int64, np.uint8)
    inputs = []
    for _ in range(int(rng.integers(1, 5))):
        shape[axis] = int(rng.integers(1, 6))
        inputs.append(array(rng, tuple(shape), dtype))
    return Case("Concat", inputs, {"axis": axis}, {0} if rng.integers(4) == 0 and len(inputs) > 1
                else set())


def split(rng):
    shape = list(shape_of(rng))
    axis = axis_of(rng, len(shape))
    parts = [int(p) for p in rng.integers(1, 4, int(rng.integers(1, 4)))]
    if rng.integers(2):
        shape[axis] = sum(parts)
        return Case("Split", [array(rng, tuple(shape)), i64(*parts)], {"axis": axis}, {1},
                    len(parts))
    shape[axis] = parts[0] * len(parts)
    return Case("Split", [array(rng, tuple(shape))], {"axis": axis, "num_outputs": len(parts)},
                outputs=len(parts), opset=18)


def slice_(rng):
    shape = shape_of(rng, most=9)
    axes = some_axes(rng, len(shape))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = shape[axis]
        step = int(rng.integers(1, 4)) * (-1 if rng.integers(3) == 0 else 1)
        low, high = sorted(int(v) for v in rng.integers(0, size + 1, 2))
        if low == high:
            low, high = 0, size
        start, end = (low, high) if step > 0 else (high - 1, low - 1 if low > 0 else -size - 1)
        if rng.integers(3) == 0 and start > 0:
            start -= size
        if rng.integers(4) == 0 and step > 0 and end == size:
            end = 2**31 - 1
        starts.append(start), ends.append(end), steps.append(step)
    inputs = [array(rng, shape), i64(*starts), i64(*ends), i64(*axes), i64(*steps)]
    return Case("Slice", inputs, constants={1, 2, 3, 4})


def transpose(rng):
    shape = shape_of(rng, int(rng.integers(1, 7)), 5)
    attrs = {"perm": [int(p) for p in rng.permutation(len(shape))]} if rng.integers(5) else {}
    return Case("Transpose", [array(rng, shape, pick(rng, np.float32, np.uint8, np.int64))], attrs)


def reshape(rng):
    shape = list(shape_of(rng))
    target = [int(d) for d in rng.permutation(shape)]
    if rng.integers(2):
        target[int(rng.integers(len(target)))] = -1
    if rng.integers(3) == 0:
        target = [1] + target
    return Case("Reshape", [array(rng, tuple(shape)), i64(*target)], constants={1})


def flatten(rng):
    shape = shape_of(rng)
    return Case("Flatten", [array(rng, shape)], {"axis": int(rng.integers(-len(shape),
                                                                         len(shape) + 1))})


def squeeze(rng):
    shape = list(shape_of(rng, 4))
    axes = some_axes(rng, 4)
    for axis in axes:
        shape[axis] = 1
    return Case("Squeeze", [array(rng, tuple(shape)), i64(*axes)], constants={1})


def unsqueeze(rng):
    shape = shape_of(rng, int(rng.integers(1, 4)))
    count = int(rng.integers(1, 3))
    axes = [int(a) for a in rng.permutation(len(shape) + count)[:count]]
    return Case("Unsqueeze", [array(rng, shape), i64(*axes)], constants={1})


def expand(rng):
    a, b = broadcast_pair(rng)
    return Case("Expand", [array(rng, a, pick(rng, *NUMBERS)), i64(*b)], constants={1})


def tile(rng):
    shape = shape_of(rng)
    return Case("Tile", [array(rng, shape), i64(*rng.integers(1, 4, len(shape)))], constants={1})


def pad(rng):
    shape = tuple(d + 1 for d in shape_of(rng))
    mode = pick(rng, "constant", "constant", "reflect", "edge", "wrap")
    least = -1 if mode == "constant" and min(shape) > 3 else 0
    most = 3 if mode in ("constant", "edge") else 2
    pads = []
    for _ in range(2):
        pads += [int(min(rng.integers(least, most), d - 1)) for d in shape]
    inputs = [array(rng, shape), i64(*pads)]
    if mode == "constant" and rng.integers(2):
        inputs.append(np.array(1.5, F))
    return Case("Pad", inputs, {"mode": mode}, {1, 2}, opset=19 if mode == "wrap" else 13)


def indices(rng, shape, size, dtype=np.int64):
    return rng.integers(-size, size, shape).astype(dtype)


def gather(rng):
    shape = shape_of(rng)
    axis = axis_of(rng, len(shape))
    at = indices(rng, shape_of(rng, int(rng.integers(0, 3))), shape[axis],
                 pick(rng, np.int32, np.int64))
    return Case("Gather", [array(rng, shape, pick(rng, np.float32, np.int64)), at],
                {"axis": axis}, {1} if rng.integers(2) else set())


def gather_elements(rng):
    shape = shape_of(rng)
    axis = axis_of(rng, len(shape))
    part = tuple(int(rng.integers(1, d + 1)) for d in shape)
    return Case("GatherElements", [array(rng, shape), indices(rng, part, shape[axis])],
                {"axis": axis})


def gather_nd(rng):
    shape = shape_of(rng, int(rng.integers(1, 5)))
    last = int(rng.integers(1, len(shape) + 1))
    lead = shape_of(rng, int(rng.integers(1, 3)))
    at = np.stack([indices(rng, lead, shape[i]) for i in range(last)], -1)
    return Case("GatherND", [array(rng, shape), at])


def scatter_elements(rng):
    shape = shape_of(rng)
    axis = axis_of(rng, len(shape))
    part = list(int(rng.integers(1, d + 1)) for d in shape)
    reduction = pick(rng, "none", "add", "mul", "max", "min")
    at = np.zeros(part, np.int64)
    for place in np.ndindex(*part[:axis % len(shape)], *part[axis % len(shape) + 1:]):
        cut = list(place)
        cut.insert(axis % len(shape), slice(None))
        at[tuple(cut)] = rng.permutation(shape[axis])[: part[axis]]
    return Case("ScatterElements", [array(rng, shape), at, array(rng, tuple(part))],
                {"axis": axis, "reduction": reduction}, opset=18)


def scatter_nd(rng):
    shape = shape_of(rng, int(rng.integers(1, 4)))
    last = int(rng.integers(1, len(shape) + 1))
    places = list(np.ndindex(*shape[:last]))
    count = int(rng.integers(1, len(places) + 1))
    at = np.array([places[i] for i in rng.permutation(len(places))[:count]], np.int64)
    at = at.reshape(count, last)
    reduction = pick(rng, "none", "add", "mul", "max", "min")
    return Case("ScatterND", [array(rng, shape), at, array(rng, (count,) + shape[last:])],
                {"reduction": reduction}, opset=18)


def one_hot(rng):
    shape = shape_of(rng, int(rng.integers(1, 4)))
    depth = int(rng.integers(1, 7))
    at = rng.integers(-depth - 1, depth + 1, shape).astype(np.int64)
    return Case("OneHot", [at, np.array(depth, np.int64), np.array([-1.5, 2.5], F)],
                {"axis": int(rng.integers(-len(shape) - 1, len(shape) + 1))}, {1, 2})


def depth_space(op):
    def make(rng):
        block = int(rng.integers(2, 4))
        n, c, h, w = shape_of(rng, 4, 3)
        if op == "DepthToSpace":
            return Case(op, [array(rng, (n, c * block * block, h, w))],
                        {"blocksize": block, "mode": pick(rng, "DCR", "CRD")})
        return Case(op, [array(rng, (n, c, h * block, w * block))], {"blocksize": block})

    return make


def trilu(rng):
    shape = shape_of(rng, int(rng.integers(2, 5)))
    inputs = [array(rng, shape)]
    if rng.integers(2):
        inputs.append(np.array(int(rng.integers(-3, 4)), np.int64))
    return Case("Trilu", inputs, {"upper": int(rng.integers(2))}, {1})


def reverse_sequence(rng):
    shape = shape_of(rng, int(rng.integers(2, 5)))
    batch = int(rng.integers(2))
    lengths = rng.integers(1, shape[1 - batch] + 1, shape[batch]).astype(np.int64)
    return Case("ReverseSequence", [array(rng, shape), lengths],
                {"batch_axis": batch, "time_axis": 1 - batch})


# ---- windows ----


def channels(rng):
    return int(rng.integers(1, 6)) if rng.integers(4) else int(rng.integers(6, 50))


def window(rng, dims, kernel_most=3, size_most=9):
    kernel = [int(k) for k in rng.integers(1, kernel_most + 1, dims)]
    attrs = {"kernel_shape": kernel}
    if rng.integers(2):
        attrs["strides"] = [int(s) for s in rng.integers(1, 4, dims)]
    dilations = [1] * dims
    if rng.integers(3) == 0:
        dilations = [int(d) for d in rng.integers(1, 3, dims)]
        attrs["dilations"] = dilations
    how = int(rng.integers(4))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    if how == 0:
        attrs["pads"] = [int(rng.integers(0, k)) for k in kernel + kernel]
    elif how == 1 and "dilations" not in attrs:
        attrs["auto_pad"] = pick(rng, "SAME_UPPER", "SAME_LOWER", "VALID")
        if attrs["auto_pad"] != "VALID":  # the peer pads wrongly where a stride exceeds its window
            attrs["strides"] = [min(s, k) for s, k in zip(attrs.get("strides", kernel), kernel)]
    space = tuple(int(rng.integers(e, size_most + e)) for e in extent)
    return attrs, kernel, space


def conv(rng):
    dims = pick(rng, 1, 2, 2, 2, 3)
    attrs, kernel, space = window(rng, dims)
    group = pick(rng, 1, 1, 2, 3, 4)
    per_in, per_out = channels(rng), channels(rng)
    if rng.integers(4) == 0:
        per_in = 1
    attrs["group"] = group
    x = array(rng, (int(rng.integers(1, 3)), group * per_in) + space)
    inputs = [x, array(rng, (group * per_out, per_in, *kernel), F, -1, 1)]
    if rng.integers(2):
        inputs.append(array(rng, (group * per_out,)))
    return Case("Conv", inputs, attrs, {1, 2})


def conv_transpose(rng):
    dims = pick(rng, 1, 2, 2)
    kernel = [int(k) for k in rng.integers(1, 4, dims)]
    strides = [int(s) for s in rng.integers(1, 4, dims)]
    group = pick(rng, 1, 1, 2)
    attrs = {"kernel_shape": kernel, "strides": strides, "group": group}
    if rng.integers(2):
        attrs["pads"] = [int(rng.integers(0, (k + 1) // 2)) for k in kernel + kernel]
    if rng.integers(3) == 0:
        attrs["output_padding"] = [int(rng.integers(0, s)) for s in strides]
    if rng.integers(4) == 0:
        attrs["dilations"] = [int(d) for d in rng.integers(1, 3, dims)]
    per_in, per_out = channels(rng), channels(rng)
    x = array(rng, (int(rng.integers(1, 3)), group * per_in) + shape_of(rng, dims))
    inputs = [x, array(rng, (group * per_in, per_out, *kernel), F, -1, 1)]
    if rng.integers(2):
        inputs.append(array(rng, (group * per_out,)))
    return Case("ConvTranspose", inputs, attrs, {1, 2})


def pool(op):
    def make(rng):
        attrs, _, space = window(rng, pick(rng, 1, 2, 2, 3))
        if rng.integers(3) == 0 and "auto_pad" not in attrs:
            attrs["ceil_mode"] = 1
        if op == "AveragePool":
            attrs["count_include_pad"] = int(rng.integers(2))
        if op == "LpPool":
            attrs["p"] = int(rng.integers(1, 4))
        x = array(rng, shape_of(rng, 2, 4) + space)
        return Case(op, [x], attrs, opset=19 if op == "AveragePool" else 18)

    return make


def global_pool(op):
    def make(rng):
        return Case(op, [array(rng, shape_of(rng, int(rng.integers(3, 6))))])

    return make


def lrn(rng):
    """ONNX Runtime takes odd sizes only."""
    return Case("LRN", [array(rng, shape_of(rng, 4, 7))],
                {"size": pick(rng, 1, 3, 5), "alpha": 0.01, "beta": 0.6, "bias": 1.5})


# ---- products ----


def matmul(rng):
    m, k, n = shape_of(rng, 3, 9)
    a, b = broadcast_pair(rng)
    x, y = a[:2] + (m, k), b[:2] + (k, n)
    try:
        np.broadcast_shapes(x[:-2], y[:-2])
    except ValueError:
        y = (k, n)
    if rng.integers(6) == 0:
        x, y = (k,), (k, n)
    elif rng.integers(6) == 0:
        x, y = (m, k), (k,)
    constants = {1} if rng.integers(2) else set()
    return Case("MatMul", [array(rng, x), array(rng, y)], constants=constants)


def gemm(rng):
    m, k, n = shape_of(rng, 3, 9)
    ta, tb = int(rng.integers(2)), int(rng.integers(2))
    inputs = [array(rng, (k, m) if ta else (m, k)), array(rng, (n, k) if tb else (k, n))]
    if rng.integers(3):
        inputs.append(array(rng, pick(rng, (n,), (1, n), (m, 1), (m, n), (1,), ())))
    return Case("Gemm", inputs, {"transA": ta, "transB": tb, "alpha": float(rng.uniform(0.5, 2)),
                                 "beta": float(rng.uniform(0.5, 2))},
                {1, 2} if rng.integers(2) else set())


def einsum(rng):
    sizes = {c: int(rng.integers(1, 6)) for c in "abijkl"}
    equation = pick(rng, "ij,jk->ik", "bij,bjk->bik", "abij,abkj->abik", "ij->ji", "bij->bi",
                    "ij,ij->", "i,j->ij", "bij,jk->bik", "abij,abjk->aibk", "bijk,bljk->bil",
                    "ij,kj->ki", "ijk->")
    inputs = [array(rng, tuple(sizes[c] for c in term))
              for term in equation.split("->")[0].split(",")]
    return Case("Einsum", inputs, {"equation": equation})


# ---- norms ----


def batch_norm(rng):
    shape = shape_of(rng, int(rng.integers(2, 5)))
    c = (shape[1],)
    inputs = [array(rng, shape), array(rng, c), array(rng, c), array(rng, c),
              array(rng, c, F, 0.1, 2)]
    return Case("BatchNormalization", inputs, {"epsilon": 1e-3}, {1, 2, 3, 4})


def instance_norm(rng):
    shape = shape_of(rng, int(rng.integers(3, 5)), 7)
    c = (shape[1],)
    return Case("InstanceNormalization", [array(rng, shape), array(rng, c), array(rng, c)],
                {"epsilon": 1e-2}, {1, 2})


def layer_norm(rng):
    shape = shape_of(rng, int(rng.integers(2, 5)), 8)
    axis = axis_of(rng, len(shape))
    inputs = [array(rng, shape), array(rng, shape[axis:])]
    if rng.integers(2):
        inputs.append(array(rng, shape[axis:]))
    return Case("LayerNormalization", inputs, {"axis": axis, "epsilon": 1e-2}, {1, 2})


def group_norm(rng):
    groups, per = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    shape = (int(rng.integers(1, 3)), groups * per) + shape_of(rng, 2)
    c = (groups * per,)
    return Case("GroupNormalization", [array(rng, shape), array(rng, c), array(rng, c)],
                {"num_groups": groups, "epsilon": 1e-2}, {1, 2}, opset=21)


def lp_norm(rng):
    shape = shape_of(rng)
    return Case("LpNormalization", [array(rng, shape)],
                {"axis": axis_of(rng, len(shape)), "p": int(rng.integers(1, 3))})


# ---- pictures ----


def resize(rng):
    n, c, h, w = shape_of(rng, 4, 8)
    h, w = h + 1, w + 1
    mode = pick(rng, "nearest", "linear", "cubic")
    attrs = {"mode": mode, "coordinate_transformation_mode": pick(
        rng, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")}
    if mode == "nearest":
        attrs["nearest_mode"] = pick(rng, "round_prefer_floor", "round_prefer_ceil", "floor",
                                     "ceil")
    if mode == "cubic":
        attrs["cubic_coeff_a"] = pick(rng, -0.75, -0.5)
        attrs["exclude_outside"] = int(rng.integers(2))
    x = array(rng, (n, c, h, w))
    is_fixed = mode != "nearest"  # whole numbers are cut off: a sum of 1 may be 0.99999994
    if rng.integers(2):
        sizes = i64(n, c, int(rng.integers(1, 15)), int(rng.integers(1, 15)))
        return Case("Resize", [x, None, None, sizes], attrs, {3}, opset=13, is_fixed=is_fixed)
    scales = np.array([1, 1, pick(rng, 0.5, 1.5, 2, 3), pick(rng, 0.6, 1, 2, 2.5)], F)
    return Case("Resize", [x, None, scales], attrs, {2}, opset=13, is_fixed=is_fixed)


def grid_sample(rng):
    n, c, h, w = shape_of(rng, 4, 6)
    grid = array(rng, (n, *shape_of(rng, 2), 2), F, -1.3, 1.3)
    return Case("GridSample", [array(rng, (n, c, h, w)), grid],
                {"mode": pick(rng, "linear", "nearest", "cubic"),
                 "padding_mode": pick(rng, "zeros", "border", "reflection"),
                 "align_corners": int(rng.integers(2))}, opset=20)


def affine_grid(rng):
    size = [int(d) for d in rng.integers(2, 6, int(rng.integers(4, 6)))]
    dims = len(size) - 2
    return Case("AffineGrid", [array(rng, (size[0], dims, dims + 1)), np.array(size, np.int64)],
                {"align_corners": int(rng.integers(2))}, opset=20)


def col2im(rng):
    """Of pictures: ONNX Runtime's sums of 1 and 3 dimensions are not those of the definition."""
    dims = 2
    block, stride, dilation = (rng.integers(1, 4, dims) for _ in range(3))
    pads = rng.integers(0, 3, 2 * dims)
    reach = dilation * (block - 1) + 1
    picture = np.maximum(reach - pads[:dims] - pads[dims:], 1) + rng.integers(0, 5, dims)
    count = (picture + pads[:dims] + pads[dims:] - reach) // stride + 1
    x = array(rng, (int(rng.integers(1, 3)), int(rng.integers(1, 4) * block.prod()),
                    int(count.prod())))
    return Case("Col2Im", [x, picture.astype(np.int64), block.astype(np.int64)],
                {"strides": stride.tolist(), "dilations": dilation.tolist(),
                 "pads": pads.tolist()}, {1, 2}, opset=18)


# ---- quantized ----


def blocks(op):
    """A block of elements along an axis has one scale and zero point; the last may be shorter."""
    def make(rng):
        dtype = pick(rng, np.uint8, np.int8)
        shape = [int(d) for d in rng.integers(2, 9, int(rng.integers(2, 4)))]
        axis, size = int(rng.integers(len(shape))), int(rng.integers(2, 5))
        of_blocks = list(shape)
        of_blocks[axis] = -(-shape[axis] // size)
        x = array(rng, shape, F, -8, 8) if op == "QuantizeLinear" else \
            random_bytes(rng, shape, dtype)
        zero = random_bytes(rng, of_blocks, dtype) // 2
        return Case(op, [x, array(rng, of_blocks, F, 0.01, 0.1), zero],
                    {"axis": axis, "block_size": size}, pick(rng, {1, 2}, set()), opset=21,
                    **({"steps": 1} if op == "QuantizeLinear" else {}))
    return make


def nibbles(rng):
    dtype = pick(rng, ml_dtypes.int4, ml_dtypes.uint4)
    least = -8 if dtype == ml_dtypes.int4 else 0
    shape = [int(d) for d in rng.integers(1, 9, 2)]
    axis, size = int(rng.integers(2)), 16
    of_blocks = list(shape)
    of_blocks[axis] = 1

    def numbers(shape):
        return rng.integers(least, least + 16, shape).astype(dtype)
    return Case("DequantizeLinear",
                [numbers(shape), array(rng, of_blocks, F, 0.01, 0.1), numbers(of_blocks)],
                {"axis": axis, "block_size": size}, {0, 1, 2}, opset=21)


def scale_zero(rng, dtype):
    info = np.iinfo(dtype)
    return (np.array(rng.uniform(0.01, 0.1), F),
            np.array(int(rng.integers(info.min // 2, info.max // 2)), dtype))


def with_holes(rng, x):
    """Some are not a number, or infinite."""
    for hole in (np.nan, np.inf, -np.inf):
        x = np.where(rng.random(x.shape) < pick(rng, 0, 0.1), F(hole), x)
    return x


def quantize(rng):
    dtype = pick(rng, np.uint8, np.int8)
    shape = shape_of(rng)
    if rng.integers(2):
        scale, zero = scale_zero(rng, dtype)
        return Case("QuantizeLinear", [with_holes(rng, array(rng, shape, F, -8, 8)), scale, zero],
                    {}, {1, 2}, steps=1)
    axis = axis_of(rng, len(shape))
    pairs = [scale_zero(rng, dtype) for _ in range(shape[axis])]
    return Case("QuantizeLinear",
                [array(rng, shape, F, -8, 8), np.array([p[0] for p in pairs], F),
                 np.array([p[1] for p in pairs], dtype)], {"axis": axis}, {1, 2}, steps=1)


def random_bytes(rng, shape, dtype):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def dequantize(rng):
    dtype = pick(rng, np.uint8, np.int8, np.int32)
    shape = shape_of(rng)
    x = array(rng, shape, dtype)
    if dtype == np.int32:
        return Case("DequantizeLinear", [x, np.array(0.25, F)], {}, {1})
    scale, zero = scale_zero(rng, dtype)
    return Case("DequantizeLinear", [x, scale, zero], {}, {1, 2})


def qlinear_conv(rng):
    attrs, kernel, space = window(rng, 2)
    group = pick(rng, 1, 1, 2, 4)
    per_in, per_out = channels(rng), channels(rng)
    attrs["group"] = group
    dtype = pick(rng, np.uint8, np.int8)
    wtype = np.int8 if dtype == np.int8 else pick(rng, np.uint8, np.int8)
    out = group * per_out
    xs, xz = scale_zero(rng, dtype)
    ys, yz = scale_zero(rng, dtype)
    if wtype == np.int8:
        ws, wz = rng.uniform(0.01, 0.05, out).astype(F), np.zeros(out, np.int8)
    else:
        ws, wz = scale_zero(rng, wtype)
    inputs = [random_bytes(rng, (1, group * per_in) + space, dtype), xs, xz,
              random_bytes(rng, (out, per_in, *kernel), wtype), ws, wz,
              np.array(ys * 8, F), yz]
    if rng.integers(2):
        inputs.append(rng.integers(-500, 500, out).astype(np.int32))
    return Case("QLinearConv", inputs, attrs, set(range(1, 9)), steps=1)


def qlinear_matmul(rng):
    m, k, n = shape_of(rng, 3, 12)
    dtype = pick(rng, np.uint8, np.int8)
    xs, xz = scale_zero(rng, dtype)
    ws, wz = scale_zero(rng, dtype)
    ys, yz = scale_zero(rng, dtype)
    lead = shape_of(rng, int(rng.integers(0, 2)))
    return Case("QLinearMatMul",
                [random_bytes(rng, lead + (m, k), dtype), xs, xz,
                 random_bytes(rng, (k, n), dtype), ws, wz, np.array(ys * 8, F), yz], {},
                set(range(1, 8)), steps=1)


def integer_product(op):
    def make(rng):
        dtype = pick(rng, np.uint8, np.int8)
        if op == "ConvInteger":
            attrs, kernel, space = window(rng, 2)
            c, out = int(rng.integers(1, 5)), int(rng.integers(1, 5))
            inputs = [random_bytes(rng, (1, c) + space, np.uint8),
                      random_bytes(rng, (out, c, *kernel), np.uint8)]
            dtype = np.uint8
        else:
            attrs = {}
            m, k, n = shape_of(rng, 3, 9)
            inputs = [random_bytes(rng, (m, k), dtype), random_bytes(rng, (k, n), dtype)]
        if rng.integers(2):
            inputs += [scale_zero(rng, dtype)[1], scale_zero(rng, dtype)[1]]
        return Case(op, inputs, attrs, {1, 2, 3})

    return make


def dynamic_quantize(rng):
    return Case("DynamicQuantizeLinear", [array(rng, shape_of(rng))], outputs=3, steps=1)


# ---- recurrent ----

# alpha and beta of each
ACTIVATIONS = {"Affine": (0.7, 0.1), "Elu": (0.6,), "HardSigmoid": (0.3, 0.4), "LeakyRelu": (0.2,),
               "Relu": (), "ScaledTanh": (1.2, 0.8), "Sigmoid": (), "Softplus": (), "Softsign": (),
               "Tanh": (), "ThresholdedRelu": (0.2,)}


def functions(rng, op, ways):
    """Of a layer: each takes its numbers from what those before it leave of the lists."""
    names = [pick(rng, *ACTIVATIONS) for _ in range(ways * {"LSTM": 3, "GRU": 2, "RNN": 1}[op])]
    attrs = {"activations": names}
    for i, key in enumerate(("activation_alpha", "activation_beta")):
        numbers = [float(F(x * rng.uniform(0.8, 1.2))) for n in names
                   for x in ACTIVATIONS[n][i:i + 1]]
        if numbers:
            attrs[key] = numbers
    return attrs


def recurrent(op, gates):
    def make(rng):
        steps, batch, size, hidden = (int(v) for v in rng.integers(1, 6, 4))
        direction = pick(rng, "forward", "reverse", "bidirectional")
        ways = 2 if direction == "bidirectional" else 1
        attrs = {"hidden_size": hidden, "direction": direction}
        if op == "GRU":
            attrs["linear_before_reset"] = int(rng.integers(2))
        if rng.integers(4) == 0:
            attrs["clip"] = 0.7
        if rng.integers(2):
            attrs.update(functions(rng, op, ways))
        inputs = [array(rng, (steps, batch, size), F, -1, 1),
                  array(rng, (ways, gates * hidden, size), F, -1, 1),
                  array(rng, (ways, gates * hidden, hidden), F, -1, 1),
                  array(rng, (ways, 2 * gates * hidden), F, -1, 1) if rng.integers(2) else None,
                  rng.integers(1, steps + 1, batch).astype(np.int32) if rng.integers(3) == 0
                  else None,
                  array(rng, (ways, batch, hidden), F, -1, 1) if rng.integers(2) else None]
        if op == "LSTM":
            inputs.append(array(rng, (ways, batch, hidden), F, -1, 1) if rng.integers(2)
                          else None)
            inputs.append(array(rng, (ways, 3 * hidden), F, -1, 1) if rng.integers(3) == 0
                          else None)
        return Case(op, inputs, attrs, {1, 2, 3, 7}, 3 if op == "LSTM" else 2)

    return make


MODES = ["BRANCH_" + mode for mode in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")]


def trees(rng):
    """Trees of random shape, whose limits the numbers meet; conditions of one kind or of all."""
    columns, results = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    modes = MODES if rng.integers(2) else [pick(rng, *MODES)]
    nodes = {n: [] for n in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                             "falsenodeids", "missing_value_tracks_true")}
    leaves = {n: [] for n in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(int(rng.integers(1, 12))):
        size, is_open, rows = 1, [0], {}
        for _ in range(int(rng.integers(0, 12))):
            at = is_open.pop(int(rng.integers(len(is_open))))
            rows[at] = (int(rng.integers(columns)), float(rng.integers(-4, 5) / 2),
                        pick(rng, *modes), size, size + 1, int(rng.integers(2)))
            is_open += [size, size + 1]
            size += 2
        for at in range(size):
            row = (tree, at, *rows.get(at, (0, 0.0, "LEAF", 0, 0, 0)))
            for values, number in zip(nodes.values(), row):
                values.append(number)
        for at in is_open:
            for result in range(results):
                weight = float(F(rng.uniform(-1, 1)))
                for values, number in zip(leaves.values(), (tree, at, result, weight)):
                    values.append(number)
    x = (rng.integers(-5, 6, (int(rng.integers(1, 20)), columns)) / 2).astype(F)
    if rng.integers(2):
        x[rng.random(x.shape) < 0.2] = np.nan
    attrs = {**{"nodes_" + n: v for n, v in nodes.items()},
             **{"target_" + n: v for n, v in leaves.items()}, "n_targets": results,
             "aggregate_function": pick(rng, "SUM", "AVERAGE", "MIN", "MAX")}
    return Case("TreeEnsembleRegressor", [x], attrs, domain="ai.onnx.ml")


CASES = {
    **{op: unary(op) for op in (
        "Abs Neg Exp Sin Cos Tan Atan Sinh Cosh Asinh Sigmoid Tanh Relu Softplus Softsign Ceil "
        "Floor Round Erf Sign HardSwish Identity IsNaN Selu Mish").split()},
    "Mish": unary("Mish", opset=18),
    "Log": unary("Log", 0.01, 5),
    "Sqrt": unary("Sqrt", 0, 5),
    "Reciprocal": unary("Reciprocal", 0.1, 5),
    "Asin": unary("Asin", -1, 1),
    "Acos": unary("Acos", -1, 1),
    "Atanh": unary("Atanh", -0.9, 0.9),
    "Acosh": unary("Acosh", 1, 5),
    "AbsInteger": unary("Abs", types=INTEGERS),
    "NegInteger": unary("Neg", types=INTEGERS),
    "Not": unary("Not", types=(np.bool_,)),
    "Elu": unary("Elu", alpha=alpha(0.1, 2)),
    "LeakyRelu": unary("LeakyRelu", alpha=alpha(0.01, 0.5)),
    "ThresholdedRelu": unary("ThresholdedRelu", alpha=alpha(0.1, 2)),
    "HardSigmoid": unary("HardSigmoid", alpha=alpha(0.1, 0.3), beta=alpha(0.3, 0.6)),
    "Celu": unary("Celu", alpha=alpha(0.5, 2)),
    "Gelu": unary("Gelu", opset=20, approximate=lambda rng: pick(rng, "none", "tanh")),
    "Shape": unary("Shape"),
    "Size": unary("Size"),
    "Add": binary("Add"), "Sub": binary("Sub"), "Mul": binary("Mul"), "Div": divide,
    "Pow": power, "Mod": mod, "PRelu": prelu, "Where": where, "Clip": clip, "Cast": cast,
    "Min": several("Min"), "Max": several("Max"), "Sum": several("Sum"), "Mean": several("Mean"),
    "Equal": binary("Equal", [np.int32, np.int64, np.bool_]),
    "Greater": binary("Greater"), "Less": binary("Less"),
    "GreaterOrEqual": binary("GreaterOrEqual"), "LessOrEqual": binary("LessOrEqual"),
    "And": binary("And", [np.bool_]), "Or": binary("Or", [np.bool_]),
    "Xor": binary("Xor", [np.bool_]),
    "BitwiseAnd": binary("BitwiseAnd", INTEGERS, 18),
    "BitwiseOr": binary("BitwiseOr", INTEGERS, 18),
    "BitwiseXor": binary("BitwiseXor", INTEGERS, 18),
    "BitShift": binary("BitShift", [np.uint8, np.uint32], positive=True,
                       direction=lambda rng: pick(rng, "LEFT", "RIGHT")),
    **{op: reduce(op) for op in
       "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare "
       "ReduceLogSumExp".split()},
    "ReduceLogSum": reduce("ReduceLogSum", True),
    "ArgMax": arg("ArgMax"), "ArgMin": arg("ArgMin"),
    "Softmax": softmax("Softmax"), "LogSoftmax": softmax("LogSoftmax"),
    "Hardmax": softmax("Hardmax"), "CumSum": cumsum, "TopK": top_k,
    "TopK of ties": top_k_of_ties, "Unique": unique, "NonMaxSuppression": suppression,
    "Concat": concat, "Split": split, "Slice": slice_, "Transpose": transpose,
    "Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Expand": expand, "Tile": tile, "Pad": pad, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd,
    "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "OneHot": one_hot,
    "DepthToSpace": depth_space("DepthToSpace"), "SpaceToDepth": depth_space("SpaceToDepth"),
    "Trilu": trilu, "ReverseSequence": reverse_sequence,
    "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": pool("MaxPool"),
    "AveragePool": pool("AveragePool"), "LpPool": pool("LpPool"),
    "GlobalAveragePool": global_pool("GlobalAveragePool"),
    "GlobalMaxPool": global_pool("GlobalMaxPool"), "LRN": lrn,
    "MatMul": matmul, "Gemm": gemm, "Einsum": einsum,
    "BatchNormalization": batch_norm, "InstanceNormalization": instance_norm,
    "LayerNormalization": layer_norm, "GroupNormalization": group_norm,
    "LpNormalization": lp_norm, "Resize": resize, "GridSample": grid_sample,
    "AffineGrid": affine_grid, "Col2Im": col2im,
    "QuantizeLinear of blocks": blocks("QuantizeLinear"),
    "DequantizeLinear of blocks": blocks("DequantizeLinear"),
    "DequantizeLinear of 4 bits": nibbles,
    "QuantizeLinear": quantize, "DequantizeLinear": dequantize, "QLinearConv": qlinear_conv,
    "QLinearMatMul": qlinear_matmul, "ConvInteger": integer_product("ConvInteger"),
    "MatMulInteger": integer_product("MatMulInteger"),
    "DynamicQuantizeLinear": dynamic_quantize,
    "TreeEnsembleRegressor": trees,
    "LSTM": recurrent("LSTM", 4), "GRU": recurrent("GRU", 3), "RNN": recurrent("RNN", 1),
}

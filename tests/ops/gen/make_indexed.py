"""Writes the golden files beside this folder: comparisons, logic, order, indices, matrices, norms.

    python tests/ops/gen/make_indexed.py [operator …]

Deterministic: the same LiteRT gives the same files.
"""

import sys

import numpy as np

from litert import Tensor, run, schema
from make_ops import B, F32_TOLERANCE, O, RANGE, SHAPES, File
from make_ops import every, ints, movable, random_data, scale, zero

MOVED = ("f32", "s8", "u8", "s32", "s64")


def single(
    file,
    name,
    builtin,
    kind,
    options,
    inputs,
    output,
    attrs=None,
    shown=None,
    version=1,
    tolerance=None,
):
    """inputs go into LiteRT, shown (or all of them) into the file. Operators without a reference
    kernel run on LiteRT's default ones. A case that LiteRT refuses is printed, not written."""
    outputs = output if isinstance(output, list) else [output]
    try:
        run(builtin, kind, options, inputs, outputs, version)
    except Exception:
        try:
            run(builtin, kind, options, inputs, outputs, version, reference=False)
            file.source = "LiteRT 2.3.0 without delegates"
        except Exception as e:
            print(
                "  LiteRT refuses %s %s: %s"
                % (file.op, name, str(e).strip().splitlines()[-1][-90:])
            )
            return
    file.add(name, inputs if shown is None else shown, outputs, attrs, tolerance)


# ---- unary ----

UNARY = {
    "floor": B.FLOOR,
    "ceil": B.CEIL,
    "round": B.ROUND,
    "sin": B.SIN,
    "cos": B.COS,
    "square": B.SQUARE,
    "sign": B.SIGN,
    "elu": B.ELU,
}


def make_unary(op):
    file = File(op)
    rng = file.rng
    x = np.concatenate(
        [rng.uniform(-9, 9, 28), [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e6, -1e6, 3, -3]]
    )
    loose = op in ("sin", "cos", "elu")
    x = np.clip(x, -50, 50) if loose else x
    single(
        file,
        "f32",
        UNARY[op],
        0,
        None,
        [Tensor("f32", [5, 8], x)],
        Tensor("f32", [5, 8]),
        tolerance=F32_TOLERANCE if loose else None,
    )
    if op == "sign":
        x = rng.integers(-3, 4, 20)
        single(file, "s32", B.SIGN, 0, None, [Tensor("s32", data=x)], Tensor("s32", [20]))
    if op == "elu":
        through_floats(file, B.ELU, 0, None, ("s8",), {})
    file.write()


def through_floats(file, builtin, kind, options, types, attrs):
    rng = file.rng
    for dtype in types:
        for _ in range(4):
            low = -14 if dtype == "s16" else -6
            si, so = scale(rng, low, low + 3), scale(rng, low, low + 3)
            a = Tensor(dtype, data=every(dtype, rng), scale=si, zero_point=zero(rng, dtype))
            y = Tensor(dtype, a.shape, scale=so, zero_point=zero(rng, dtype))
            single(file, "%s scale %.4g" % (dtype, si), builtin, kind, options, [a], y, attrs)


def make_gelu():
    file = File("gelu")
    for approximate in (False, True):
        options = schema.GeluOptionsT()
        options.approximate = approximate
        attrs = {"approximate": approximate}
        x = np.concatenate([file.rng.uniform(-6, 6, 37), [0, -9, 9]])
        single(
            file,
            "f32 %s" % attrs,
            B.GELU,
            O.GeluOptions,
            options,
            [Tensor("f32", data=x)],
            Tensor("f32", [40]),
            attrs,
            tolerance={"relative": 2e-6, "absolute": 1e-6},
        )
        through_floats(file, B.GELU, O.GeluOptions, options, ("s8", "u8", "s16"), attrs)
    file.write()


def make_logical_not():
    file = File("logical_not")
    x = file.rng.integers(0, 2, 12)
    single(
        file, "bool", B.LOGICAL_NOT, 0, None, [Tensor("bool", [3, 4], x)], Tensor("bool", [3, 4])
    )
    file.write()


# ---- binary ----

COMPARE = {
    "equal": B.EQUAL,
    "not_equal": B.NOT_EQUAL,
    "less": B.LESS,
    "less_equal": B.LESS_EQUAL,
    "greater": B.GREATER,
    "greater_equal": B.GREATER_EQUAL,
}


def make_compare(op):
    file = File(op)
    rng = file.rng
    for shapes in SHAPES:
        for dtype in ("f32", "s32", "s64") + (("bool",) if op in ("equal", "not_equal") else ()):
            high = 2 if dtype == "bool" else 5
            a, b = [Tensor(dtype, s, rng.integers(0, high, s)) for s in shapes]
            single(
                file,
                "%s %s %s" % (dtype, *shapes),
                COMPARE[op],
                0,
                None,
                [a, b],
                Tensor("bool"),
                version=2,
            )
    a, b = Tensor("f32", data=[np.nan, 1, np.nan, np.inf]), Tensor(
        "f32", data=[np.nan, np.nan, 1, np.inf]
    )
    single(file, "f32 not ordered", COMPARE[op], 0, None, [a, b], Tensor("bool"))
    for dtype in ("u8", "s8", "s16"):
        for shapes in (([60], [60]), ([2, 1, 4], [3, 1])):
            for same in (True, False):
                s, z = [scale(rng, -6, -1) for _ in range(2)], [zero(rng, dtype) for _ in range(2)]
                if same:
                    s, z = [s[0]] * 2, [z[0]] * 2
                data = (
                    [rng.integers(0, 20, n) + (RANGE[dtype][0] + 100) for n in shapes]
                    if same
                    else [random_data(rng, dtype, n) for n in shapes]
                )
                a, b = [Tensor(dtype, n, d, sc, zp) for n, d, sc, zp in zip(shapes, data, s, z)]
                single(
                    file,
                    "%s %s %s" % (dtype, shapes, "same" if same else "scales"),
                    COMPARE[op],
                    0,
                    None,
                    [a, b],
                    Tensor("bool"),
                    version=2,
                )
    file.write()


def make_logic(op):
    file = File(op)
    for shapes in SHAPES:
        a, b = [Tensor("bool", s, file.rng.integers(0, 2, s)) for s in shapes]
        single(
            file,
            "%s %s" % tuple(shapes),
            B.LOGICAL_AND if op == "logical_and" else B.LOGICAL_OR,
            0,
            None,
            [a, b],
            Tensor("bool"),
        )
    file.write()


def make_floor_div():
    file = File("floor_div")
    rng = file.rng
    for shapes in SHAPES:
        for dtype in ("f32", "s32", "s8", "s16"):
            b = rng.uniform(0.5, 5, shapes[1]) if dtype == "f32" else rng.integers(1, 7, shapes[1])
            b = b * np.where(rng.integers(0, 2, shapes[1]) > 0, 1, -1)
            a = Tensor(dtype, shapes[0], random_data(rng, dtype, shapes[0]))
            single(
                file,
                "%s %s %s" % (dtype, *shapes),
                B.FLOOR_DIV,
                0,
                None,
                [a, Tensor(dtype, shapes[1], b)],
                Tensor(dtype),
            )
    file.write()


def make_pow():
    file = File("pow")
    rng = file.rng
    for shapes in SHAPES:
        a = Tensor("f32", shapes[0], rng.uniform(0.1, 4, shapes[0]))
        b = Tensor("f32", shapes[1], rng.uniform(-3, 3, shapes[1]))
        single(
            file,
            "f32 %s %s" % tuple(shapes),
            B.POW,
            0,
            None,
            [a, b],
            Tensor("f32"),
            tolerance=F32_TOLERANCE,
        )
        a = Tensor("s32", shapes[0], rng.integers(-9, 9, shapes[0]))
        b = Tensor("s32", shapes[1], rng.integers(0, 6, shapes[1]))
        single(file, "s32 %s %s" % tuple(shapes), B.POW, 0, None, [a, b], Tensor("s32"))
    a = Tensor("s32", data=np.array([2, -3, 10, 46341, -2, 0, 1]))
    for exponent in (2, 10, 31, 32, 501):  # that 32 bits do not hold
        alike = Tensor("s32", data=np.full(7, exponent))
        single(file, "s32 power %d" % exponent, B.POW, 0, None, [a, alike], Tensor("s32"))
        one = Tensor("s32", data=np.array(exponent))
        single(file, "s32 all to the power %d" % exponent, B.POW, 0, None, [a, one], Tensor("s32"))
    file.write()


def make_atan2():
    file = File("atan2")
    a, b = [Tensor("f32", [20], file.rng.uniform(-4, 4, 20)) for _ in range(2)]
    single(file, "f32", B.ATAN2, 0, None, [a, b], Tensor("f32"), tolerance=F32_TOLERANCE)
    file.write()


def make_prelu():
    file = File("prelu")
    rng = file.rng
    for shapes in (([1, 3, 4, 2], [1, 1, 2]), ([2, 3], [2, 3]), ([2, 3, 4], [1])):
        a = Tensor("f32", shapes[0], rng.uniform(-4, 4, shapes[0]))
        b = Tensor("f32", shapes[1], rng.uniform(-1, 1, shapes[1]))
        single(file, "f32 %s %s" % tuple(shapes), B.PRELU, 0, None, [a, b], Tensor("f32"))
        for dtype in ("u8", "s8"):
            for _ in range(2):
                a, b = [
                    Tensor(
                        dtype, s, random_data(rng, dtype, s), scale(rng, -7, -3), zero(rng, dtype)
                    )
                    for s in shapes
                ]
                y = Tensor(dtype, scale=scale(rng, -6, -2), zero_point=zero(rng, dtype))
                single(file, "%s %s %s" % (dtype, *shapes), B.PRELU, 0, None, [a, b], y)
    for shapes in (([1, 3, 4, 2], [1, 1, 2]), ([2, 3], [2, 3])):
        a = Tensor("s16", shapes[0], random_data(rng, "s16", shapes[0]), scale(rng, -12, -10))
        b = Tensor("s8", shapes[1], random_data(rng, "s8", shapes[1]), scale(rng, -7, -5))
        y = Tensor("s16", scale=scale(rng, -12, -10))
        single(file, "s16 %s %s" % tuple(shapes), B.PRELU, 0, None, [a, b], y)
    file.write()


def make_bitcast():
    file = File("bitcast")
    for from_type, shape, to_type in (
        ("f32", [2, 3], "s32"),
        ("s32", [2, 3], "u8"),
        ("s32", [2, 3], "s16"),
        ("u8", [5, 4], "s32"),
        ("s16", [3, 2], "f32"),
        ("s8", [6], "u8"),
    ):
        low, high = (-9, 9) if from_type == "f32" else RANGE.get(from_type, (-(2**31), 2**31 - 1))
        x = (file.rng.uniform(low, high, shape) if from_type == "f32"
             else file.rng.integers(low, high, shape))
        if to_type == "f32":  # halves of numbers, not of what is none
            x = file.rng.uniform(-9, 9, shape[:-1]).astype(np.float32).view(np.int16)
        single(file, "%s %s to %s" % (from_type, shape, to_type), B.BITCAST, O.BitcastOptions,
               schema.BitcastOptionsT(), [Tensor(from_type, shape, x)], Tensor(to_type))
    file.write()


# ---- order ----


def make_arg(op):
    file = File(op)
    builtin, kind, make = {
        "arg_max": (B.ARG_MAX, O.ArgMaxOptions, schema.ArgMaxOptionsT),
        "arg_min": (B.ARG_MIN, O.ArgMinOptions, schema.ArgMinOptionsT),
    }[op]
    for dtype in ("f32", "u8", "s8", "s32"):
        for shape, axis in (([2, 3, 4], 0), ([2, 3, 4], 1), ([2, 3, 4], -1), ([9], 0)):
            for index in ("s32", "s64"):
                a, _ = movable(file.rng, dtype, shape)
                a.data = file.rng.integers(0, 6, shape).astype(a.np)
                options = make()
                types = {"s32": schema.TensorType.INT32, "s64": schema.TensorType.INT64}
                options.outputType = types[index]
                single(
                    file,
                    "%s %s axis %d %s" % (dtype, shape, axis, index),
                    builtin,
                    kind,
                    options,
                    [a, ints(axis)],
                    Tensor(index),
                    {"axis": axis},
                    [a],
                    2,
                )
    file.write()


def make_soft_suppress():
    """NON_MAX_SUPPRESSION_V4 and V5. No two scores are equal: LiteRT's order of those is its
    heap's."""
    file = File("soft_suppress")
    rng = file.rng
    for count, most, iou, score, sigma in (
        (6, 3, 0.5, 0.0, None), (20, 30, 0.3, 0.4, None), (20, 20, 0.0, 0.1, None),
        (9, 4, 1.0, 0.2, None), (1, 1, 0.5, 2.0, None), (12, 0, 0.5, 0.0, None),
        (6, 6, 0.5, 0.0, 0.0), (20, 30, 0.6, 0.1, 0.5), (30, 8, 1.0, 0.0, 0.2),
        (30, 30, 0.9, 0.3, 2.0)):
        corner = rng.uniform(0, 8, (count, 2))
        extent = rng.uniform(0.5, 5, (count, 2))
        extent[::4] *= -1
        boxes = Tensor("f32", data=np.concatenate([corner, corner + extent], 1))
        scores = Tensor("f32", data=rng.permutation(np.arange(1, count + 1)) / count)
        numbers = [Tensor("s32", [], most, constant=True)]
        numbers += [Tensor("f32", [], x, constant=True) for x in (iou, score)]
        outputs = [Tensor("s32"), Tensor("s32")]
        builtin = B.NON_MAX_SUPPRESSION_V4
        if sigma is not None:
            numbers.append(Tensor("f32", [], sigma, constant=True))
            outputs.insert(1, Tensor("f32"))
            builtin = B.NON_MAX_SUPPRESSION_V5
        run(builtin, 0, None, [boxes, scores] + numbers, outputs)
        file.add("%d most %d iou %g score %g sigma %s" % (count, most, iou, score, sigma),
                 [boxes, scores] + numbers, outputs, tolerance=F32_TOLERANCE)
    file.write()


def make_top_k():
    file = File("top_k")
    for dtype in ("f32", "u8", "s8", "s32", "s64"):
        for shape, k in (([2, 9], 3), ([7], 7), ([2, 2, 5], 1)):
            a, kw = movable(file.rng, dtype, shape)
            a.data = file.rng.integers(0, 6, shape).astype(a.np)
            y = [Tensor(dtype, **kw), Tensor("s32")]
            single(
                file,
                "%s %s k %d" % (dtype, shape, k),
                B.TOPK_V2,
                O.TopKV2Options,
                schema.TopKV2OptionsT(),
                [a, ints(k)],
                y,
                {"k": k},
                [a],
            )
    a, _ = movable(file.rng, "f32", [3, 6])
    single(file, "k by input", B.TOPK_V2, 0, None, [a, ints(2)], [Tensor("f32"), Tensor("s32")])
    file.write()


def make_cumsum():
    file = File("cumsum")
    for dtype in ("f32", "s32", "s64"):
        for shape, axis in (([2, 3, 4], 1), ([2, 3, 4], -1), ([5], 0)):
            for exclusive in (False, True):
                for backwards in (False, True):
                    a, _ = movable(file.rng, dtype, shape)
                    options = schema.CumsumOptionsT()
                    options.exclusive, options.reverse = exclusive, backwards
                    attrs = {"axis": axis, "exclusive": exclusive, "reverse": backwards}
                    single(
                        file,
                        "%s %s" % (dtype, attrs),
                        B.CUMSUM,
                        O.CumsumOptions,
                        options,
                        [a, ints(axis)],
                        Tensor(dtype),
                        attrs,
                        [a],
                    )
    file.write()


def make_reduce(op):
    file = File(op)
    builtin = {
        "reduce_min": B.REDUCE_MIN,
        "reduce_prod": B.REDUCE_PROD,
        "reduce_any": B.REDUCE_ANY,
        "reduce_all": B.REDUCE_ALL,
    }[op]
    types = ("f32", "s32", "s64") + (("u8", "s8", "s16") if op == "reduce_min" else ())
    types = ("bool",) if op in ("reduce_any", "reduce_all") else types
    for dtype in types:
        for shape, axes, keep in (
            ([2, 3, 4], [1], False),
            ([2, 3, 4], [0, 2], True),
            ([2, 3, 4], [-1], True),
            ([6], [0], False),
        ):
            a, kw = movable(file.rng, dtype, shape)
            if dtype == "bool":
                a.data = file.rng.integers(0, 4, shape) > (2 if op == "reduce_any" else 0)
            elif op == "reduce_prod":
                a.data = file.rng.integers(-4, 5, shape).astype(a.np)
            options = schema.ReducerOptionsT()
            options.keepDims = keep
            single(
                file,
                "%s %s %s" % (dtype, axes, keep),
                builtin,
                O.ReducerOptions,
                options,
                [a, ints(axes)],
                Tensor(dtype, **kw),
                {"axes": axes, "keep_dims": keep},
                [a],
                1 if types == ("bool",) else 2,
            )
    for dtype in ("s8", "s16") if op == "reduce_prod" else ():
        for axes, zero_points in (([1], (3, -5)), ([0, 2], (0, 0)), ([0, 1, 2], (-2, 7))):
            before, behind = zero_points if dtype == "s8" else (0, 0)
            a = Tensor(dtype, [2, 3, 4], file.rng.integers(-99, 99, [2, 3, 4]), 0.021, before)
            y = Tensor(dtype, scale=0.05, zero_point=behind)
            options = schema.ReducerOptionsT()
            single(file, "%s %s" % (dtype, axes), builtin, O.ReducerOptions, options,
                   [a, ints(axes)], y, {"axes": axes}, [a], 2)
    file.write()


# ---- indices ----


def make_gather_nd():
    file = File("gather_nd")
    for dtype in MOVED:
        for shape, indices in (
            ([3, 4], [[2, 1], [0, 3]]),
            ([3, 4], [[2], [0], [2]]),
            ([2, 3, 2], [[[1, 2], [0, 0]]]),
        ):
            a, kw = movable(file.rng, dtype, shape)
            for kind in ("s32", "s64"):
                single(
                    file,
                    "%s %s %s" % (dtype, shape, kind),
                    B.GATHER_ND,
                    0,
                    None,
                    [a, Tensor(kind, data=indices)],
                    Tensor(dtype, **kw),
                )
    file.write()


def make_scatter_nd():
    file = File("scatter_nd")
    for dtype in ("f32", "s8", "u8", "s32", "s64"):
        for shape, indices in (
            ([5], [[1], [3], [1]]),
            ([3, 4], [[2, 1], [0, 3]]),
            ([4, 2], [[3], [0]]),
        ):
            depth = len(indices[0])
            updates = len(indices) if depth == len(shape) else [len(indices)] + shape[depth:]
            u = Tensor(dtype, data=file.rng.integers(0, 50, updates))
            i = Tensor("s32", data=indices)
            single(
                file,
                "%s %s" % (dtype, shape),
                B.SCATTER_ND,
                0,
                None,
                [i, u, ints(shape)],
                Tensor(dtype),
                {"shape": shape},
                [i, u],
            )
            single(
                file,
                "%s %s shape by input" % (dtype, shape),
                B.SCATTER_ND,
                0,
                None,
                [i, u, ints(shape)],
                Tensor(dtype),
            )
    file.write()


def make_one_hot():
    file = File("one_hot")
    for kind in ("s32", "s64"):
        for dtype in ("f32", "s32", "s64", "bool", "s8"):
            for shape, axis in (([4], -1), ([2, 3], 0), ([2, 3], 1)):
                i = Tensor(kind, data=file.rng.integers(-1, 6, shape))
                on, off = Tensor(dtype, data=1), Tensor(dtype, data=0 if dtype == "bool" else 3)
                options = schema.OneHotOptionsT()
                options.axis = axis
                single(
                    file,
                    "%s %s axis %d" % (kind, dtype, axis),
                    B.ONE_HOT,
                    O.OneHotOptions,
                    options,
                    [i, ints(5), on, off],
                    Tensor(dtype),
                    {"axis": axis, "depth": 5},
                    [i, on, off],
                )
    file.write()


def make_embedding_lookup():
    file = File("embedding_lookup")
    i = Tensor("s32", data=[2, 0, 3, 3])
    single(
        file,
        "f32",
        B.EMBEDDING_LOOKUP,
        0,
        None,
        [i, Tensor("f32", data=file.rng.uniform(-2, 2, [4, 3]))],
        Tensor("f32"),
    )
    table = Tensor("s8", [4, 5], file.rng.integers(-127, 128, [4, 5]), 0.03, 0, constant=True)
    single(
        file,
        "s8 to f32",
        B.EMBEDDING_LOOKUP,
        0,
        None,
        [i, table],
        Tensor("f32", [4, 5]),
        tolerance=F32_TOLERANCE,
        version=2,
    )
    rows = Tensor("s8", [4, 5], file.rng.integers(-127, 128, [4, 5]), [0.03, 0.5, 0.002, 1.7],
                  [0] * 4, constant=True)
    single(file, "s8 to f32, a scale for each row", B.EMBEDDING_LOOKUP, 0, None, [i, rows],
           Tensor("f32", [4, 5]), tolerance=F32_TOLERANCE, version=4)
    file.write()


def make_segment_sum():
    file = File("segment_sum")
    for dtype in ("f32", "s32"):
        for shape, ids in (([5, 2], [0, 0, 1, 2, 2]), ([3], [0, 1, 1])):
            a, _ = movable(file.rng, dtype, shape)
            single(
                file, "%s %s" % (dtype, ids), B.SEGMENT_SUM, 0, None, [a, ints(ids)], Tensor(dtype)
            )
    file.write()


def make_select():
    file = File("select")
    rng = file.rng
    for dtype in MOVED + ("bool",):
        for shapes in (
            ([2, 3], [2, 3], [2, 3]),
            ([2, 1], [1, 3], [2, 3]),
            ([], [4], [4]),
            ([3], [2, 3], [1]),
        ):
            c = Tensor("bool", shapes[0], rng.integers(0, 2, shapes[0]))
            a, kw = movable(rng, dtype, shapes[1])
            b, _ = movable(rng, dtype, shapes[2])
            single(
                file,
                "%s %s" % (dtype, shapes),
                B.SELECT_V2,
                0,
                None,
                [c, a, b],
                Tensor(dtype, **kw),
            )
        c = Tensor("bool", [3], [1, 0, 1])
        a, kw = movable(rng, dtype, [3, 2])
        b, _ = movable(rng, dtype, [3, 2])
        single(
            file,
            "%s by row" % dtype,
            B.SELECT,
            0,
            None,
            [c, a, b],
            Tensor(dtype, **kw),
            {"leading": True},
        )
    file.write()


# ---- movement ----


def make_reverse():
    file = File("reverse")
    for dtype in MOVED:
        for shape, axes in (([2, 3, 4], [1]), ([2, 3, 4], [2]), ([5], [0]), ([2, 3, 4], [1, 2])):
            a, kw = movable(file.rng, dtype, shape)
            single(
                file,
                "%s %s" % (dtype, axes),
                B.REVERSE_V2,
                0,
                None,
                [a, ints(axes)],
                Tensor(dtype, **kw),
                {"axes": axes},
                [a],
                3,
            )
    file.write()


def make_reverse_sequence():
    file = File("reverse_sequence")
    for dtype in ("f32", "u8", "s32", "s64"):
        for shape, seq, batch, lengths in (([3, 4, 2], 1, 0, [4, 1, 2]), ([4, 3], 0, 1, [2, 3, 0])):
            a, kw = movable(file.rng, dtype, shape)
            options = schema.ReverseSequenceOptionsT()
            options.seqDim, options.batchDim = seq, batch
            for kind in ("s32", "s64"):
                single(
                    file,
                    "%s %d %d %s" % (dtype, seq, batch, kind),
                    B.REVERSE_SEQUENCE,
                    O.ReverseSequenceOptions,
                    options,
                    [a, Tensor(kind, data=lengths)],
                    Tensor(dtype, **kw),
                    {"seq_dim": seq, "batch_dim": batch},
                )
    file.write()


def make_space_depth(op):
    file = File(op)
    to_depth = op == "space_to_depth"
    for dtype in MOVED:
        for shape, block in (([2, 4, 6, 3], 2), ([1, 3, 3, 1], 3)):
            if not to_depth:
                shape = [shape[0], shape[1] // block, shape[2] // block, shape[3] * block * block]
            a, kw = movable(file.rng, dtype, shape)
            options = schema.SpaceToDepthOptionsT() if to_depth else schema.DepthToSpaceOptionsT()
            options.blockSize = block
            single(
                file,
                "%s %s %d" % (dtype, shape, block),
                B.SPACE_TO_DEPTH if to_depth else B.DEPTH_TO_SPACE,
                O.SpaceToDepthOptions if to_depth else O.DepthToSpaceOptions,
                options,
                [a],
                Tensor(dtype, **kw),
                {"block": block},
            )
    file.write()


def make_mirror_pad():
    file = File("mirror_pad")
    for dtype in MOVED:
        for symmetric in (False, True):
            for shape, pads in (
                ([3, 4], [[1, 2], [3, 0]]),
                ([1, 3, 3, 2], [[0, 0], [1, 2], [2, 1], [0, 0]]),
            ):
                a, kw = movable(file.rng, dtype, shape)
                options = schema.MirrorPadOptionsT()
                options.mode = int(symmetric)
                before, after = [list(x) for x in zip(*pads)]
                single(
                    file,
                    "%s %s symmetric %d" % (dtype, pads, symmetric),
                    B.MIRROR_PAD,
                    O.MirrorPadOptions,
                    options,
                    [a, ints(pads)],
                    Tensor(dtype, **kw),
                    {"before": before, "after": after, "symmetric": symmetric},
                    [a],
                )
    file.write()


def make_broadcast_to():
    file = File("broadcast_to")
    shapes = [([3, 1], [2, 3, 4]), ([1], [3]), ([], [2, 2])]
    blocks = [([2, 1, 3], [2, 4, 3]), ([3, 1, 1, 2], [2, 3, 1, 5, 2]), ([2, 1, 3, 1], [2, 2, 3, 2]),
              ([2, 1, 1], [2, 3, 2]), ([2, 3], [2, 3]), ([2, 1], [2, 0])]
    for dtype, cases in [(t, shapes) for t in MOVED] + [("f32", blocks), ("u8", blocks)]:
        for shape, target in cases:
            a, kw = movable(file.rng, dtype, shape)
            for by_input in (False, True):
                single(
                    file,
                    "%s %s %s%s" % (dtype, shape, target, " by input" * by_input),
                    B.BROADCAST_TO,
                    0,
                    None,
                    [a, ints(target)],
                    Tensor(dtype, **kw),
                    {} if by_input else {"shape": target},
                    None if by_input else [a],
                    2,
                )
    file.write()


def make_range():
    file = File("range")
    for dtype, cases in (
        ("f32", ((0, 2, 0.25), (3, -1, -0.7), (1, 1, 1))),
        ("s32", ((0, 10, 3), (5, -4, -2))),
        ("s64", ((2, 9, 1),)),
    ):
        for case in cases:
            p = [Tensor(dtype, data=x, constant=True) for x in case]
            single(file, "%s %s" % (dtype, list(case)), B.RANGE, 0, None, p, Tensor(dtype))
    file.write()


def make_rank():
    file = File("rank")
    for shape in ([2, 3, 4], [5], []):
        a, _ = movable(file.rng, "f32", shape)
        single(file, "%s" % shape, B.RANK, 0, None, [a], Tensor("s32"))
    file.write()


def make_zeros_like():
    file = File("zeros_like")
    for dtype in ("f32", "s32", "s64"):
        a, _ = movable(file.rng, dtype, [2, 3])
        single(file, dtype, B.ZEROS_LIKE, 0, None, [a], Tensor(dtype))
    file.write()


def make_dynamic_update_slice():
    file = File("dynamic_update_slice")
    for dtype in MOVED:
        for shape, part, start in (
            ([4, 5], [2, 2], [1, 2]),
            ([4, 5], [2, 2], [3, 9]),
            ([2, 3, 4], [1, 3, 2], [-1, 0, 1]),
        ):
            a, kw = movable(file.rng, dtype, shape)
            b, _ = movable(file.rng, dtype, part)
            single(
                file,
                "%s %s" % (dtype, start),
                B.DYNAMIC_UPDATE_SLICE,
                0,
                None,
                [a, b, Tensor("s32", data=start)],
                Tensor(dtype, **kw),
            )
    file.write()


def make_matrix_diag():
    file = File("matrix_diag")
    for dtype in MOVED:
        for shape in ([3], [2, 3]):
            a, kw = movable(file.rng, dtype, shape)
            single(file, "%s %s" % (dtype, shape), B.MATRIX_DIAG, 0, None, [a], Tensor(dtype, **kw))
    file.write()


def make_matrix_set_diag():
    file = File("matrix_set_diag")
    for dtype in MOVED:
        for shape, diagonal in (([3, 3], [3]), ([2, 2, 4], [2, 2]), ([4, 2], [2])):
            a, kw = movable(file.rng, dtype, shape)
            b, _ = movable(file.rng, dtype, diagonal)
            single(
                file,
                "%s %s" % (dtype, shape),
                B.MATRIX_SET_DIAG,
                0,
                None,
                [a, b],
                Tensor(dtype, **kw),
            )
    file.write()


# ---- sums of products, norms ----


def make_batch_matmul():
    file = File("batch_matmul")
    rng = file.rng
    for shapes in (([2, 3, 4], [2, 4, 5]), ([3, 4], [4, 2]), ([2, 1, 3, 4], [3, 4, 2])):
        for x, y in ((False, False), (True, False), (False, True)):
            a, b = [list(s) for s in shapes]
            a[-2:] = a[-2:][::-1] if x else a[-2:]
            b[-2:] = b[-2:][::-1] if y else b[-2:]
            options = schema.BatchMatMulOptionsT()
            options.adjX, options.adjY = x, y
            attrs = {"adj_x": x, "adj_y": y}
            name = "%s %s %s" % (a, b, attrs)
            operands = [Tensor("f32", s, rng.uniform(-2, 2, s)) for s in (a, b)]
            single(
                file,
                "f32 " + name,
                B.BATCH_MATMUL,
                O.BatchMatMulOptions,
                options,
                operands,
                Tensor("f32"),
                attrs,
                tolerance={"relative": 2e-6, "absolute": 2e-6},
            )
            for dtype in ("s8", "s16"):
                s = [scale(rng, -8, -4) for _ in range(2)]
                operands = [
                    Tensor(dtype, n, random_data(rng, dtype, n), sc, zero(rng, dtype))
                    for n, sc in zip((a, b), s)
                ]
                out = Tensor(
                    dtype,
                    scale=s[0] * s[1] * (2**14 if dtype == "s16" else 2**7),
                    zero_point=zero(rng, dtype),
                )
                single(
                    file,
                    dtype + " " + name,
                    B.BATCH_MATMUL,
                    O.BatchMatMulOptions,
                    options,
                    operands,
                    out,
                    attrs,
                    version=3,
                )
    file.write()


def make_conv3d():
    file = File("conv3d")
    rng = file.rng
    for shape, kernel, stride, dilation, padding, activation in (
        ([1, 3, 4, 5, 2], [2, 2, 3, 2, 3], (1, 1, 1), (1, 1, 1), 0, 0),
        ([2, 5, 5, 4, 1], [3, 2, 2, 1, 2], (2, 1, 2), (1, 1, 1), 1, 1),
        ([1, 6, 5, 5, 2], [2, 2, 2, 2, 2], (1, 1, 1), (2, 1, 2), 0, 0),
    ):
        options = schema.Conv3DOptionsT()
        options.strideD, options.strideH, options.strideW = stride
        options.dilationDFactor, options.dilationHFactor, options.dilationWFactor = dilation
        options.padding, options.fusedActivationFunction = padding, activation
        a, w = [Tensor("f32", s, rng.uniform(-1, 1, s)) for s in (shape, kernel)]
        bias = Tensor("f32", data=rng.uniform(-1, 1, kernel[-1]))
        attrs = {
            "padding": padding,
            "stride_d": stride[0],
            "stride_h": stride[1],
            "stride_w": stride[2],
            "dilation_d": dilation[0],
            "dilation_h": dilation[1],
            "dilation_w": dilation[2],
            "activation": activation,
        }
        single(
            file,
            "f32 %s %s" % (shape, kernel),
            B.CONV_3D,
            O.Conv3DOptions,
            options,
            [a, w, bias],
            Tensor("f32"),
            attrs,
            tolerance={"relative": 2e-6, "absolute": 2e-6},
        )
    file.write()


def make_l2_normalization():
    file = File("l2_normalization")
    rng = file.rng
    a = Tensor("f32", [3, 5], np.concatenate([rng.uniform(-3, 3, 10), np.zeros(5)]))
    single(
        file,
        "f32",
        B.L2_NORMALIZATION,
        O.L2NormOptions,
        schema.L2NormOptionsT(),
        [a],
        Tensor("f32"),
        tolerance=F32_TOLERANCE,
    )
    for dtype in ("u8", "s8"):
        for depth, spread in ((4, 255), (60, 255), (7, 3), (900, 255)):
            zp = zero(rng, dtype)
            low = max(RANGE[dtype][0], zp - spread)
            high = min(RANGE[dtype][1], zp + spread)
            a = Tensor(dtype, [3, depth], rng.integers(low, high + 1, 3 * depth), scale(rng), zp)
            a.data[2] = zp
            y = Tensor(dtype, scale=1 / 128, zero_point=128 if dtype == "u8" else 0)
            single(
                file,
                "%s depth %d" % (dtype, depth),
                B.L2_NORMALIZATION,
                O.L2NormOptions,
                schema.L2NormOptionsT(),
                [a],
                y,
                version=2,
            )
    file.write()


def make_local_response_normalization():
    file = File("local_response_normalization")
    for radius, bias, alpha, beta in ((2, 1.0, 0.5, 0.75), (20, 2.0, 0.1, 0.5), (0, 1.0, 1.0, 1.0)):
        options = schema.LocalResponseNormalizationOptionsT()
        options.radius, options.bias, options.alpha, options.beta = radius, bias, alpha, beta
        a = Tensor("f32", [1, 2, 2, 9], file.rng.uniform(-2, 2, 36))
        attrs = {
            "radius": radius,
            "bias": bias,
            "alpha": float("%.9g" % np.float32(alpha)),
            "beta": beta,
        }
        single(
            file,
            "radius %d" % radius,
            B.LOCAL_RESPONSE_NORMALIZATION,
            O.LocalResponseNormalizationOptions,
            options,
            [a],
            Tensor("f32"),
            attrs,
            tolerance=F32_TOLERANCE,
        )
    file.write()


def make_log_softmax():
    file = File("log_softmax")
    for shape in ([3, 7], [2, 2, 4]):
        a = Tensor("f32", shape, file.rng.uniform(-9, 9, shape))
        single(
            file,
            "f32 %s" % shape,
            B.LOG_SOFTMAX,
            0,
            None,
            [a],
            Tensor("f32"),
            tolerance={"relative": 2e-6, "absolute": 2e-6},
        )
    # one rounding here, several there: a step off at most
    for dtype, zero_point in (("u8", 255), ("s8", 127)):
        low, high = RANGE[dtype]
        a = Tensor(dtype, [6, 9], file.rng.integers(low, high + 1, [6, 9]), 0.07, 3)
        single(file, "%s [6, 9]" % dtype, B.LOG_SOFTMAX, 0, None, [a],
               Tensor(dtype, scale=16 / 256, zero_point=zero_point), tolerance={"absolute": 1})
    file.write()


def main():
    families = {
        make_unary: UNARY,
        make_compare: COMPARE,
        make_logic: ("logical_and", "logical_or"),
        make_arg: ("arg_max", "arg_min"),
        make_reduce: ("reduce_min", "reduce_prod", "reduce_any", "reduce_all"),
        make_space_depth: ("space_to_depth", "depth_to_space"),
    }
    makers = {
        op: (lambda make=make, op=op: make(op)) for make, ops in families.items() for op in ops
    }
    for name, value in globals().items():
        if name.startswith("make_") and value not in families:
            makers[name[5:]] = value
    for op in sys.argv[1:] or makers:
        makers[op]()


if __name__ == "__main__":
    main()

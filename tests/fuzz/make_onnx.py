"""Writes the corpus of fuzz_onnx: small models, a family of operators each.

python tests/fuzz/make_onnx.py        needs onnx and numpy from PyPI
"""

import pathlib

import ml_dtypes
import numpy as np
from onnx import AttributeProto, TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent / "corpus/onnx"
F, U8, I64 = TensorProto.FLOAT, TensorProto.UINT8, TensorProto.INT64
RNG = np.random.default_rng(3)


def weights(*shape):
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def result(output):
    """A name, or name, type and shape."""
    return helper.make_tensor_value_info(*((output, F, None) if len(output) == 1 else output))


def write(name, nodes, inputs, outputs, constants=(), opset=17, domains=()):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs],
        [result(n) for n in outputs],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants],
    )
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    sets += [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    (FOLDER / f"{name}.onnx").write_bytes(model.SerializeToString())


def ints(*values):
    return np.array(values, np.int64)


def node(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), **attributes)


def graph(nodes, inputs, outputs):
    def ports(names):
        return [helper.make_tensor_value_info(n, t, s) for n, t, s in names]

    return helper.make_graph(nodes, "g", ports(inputs), ports(outputs))


def far_resizes():
    """Crops that end nowhere, and sizes beyond what numbers hold."""
    picture = [("x", F, [1, 1, 4, 4])]
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    for mode in ("nearest", "linear"):
        for name, first in (("nowhere", np.nan), ("far", 3e38)):
            region = np.array([0, 0, first, 0, 1, 1, -first, 1], np.float32)
            constants = [("r", region), ("s", ints(1, 1, 3, 3))]
            write(f"resize_{name}_{mode}", [node("Resize", ["x", "r", "", "s"], mode=mode, **crop)],
                  picture, ["y"], constants)
    write("resize_beyond",
          [node("Resize", ["x", "", "", "s"], keep_aspect_ratio_policy="not_smaller")], picture,
          ["y"], [("s", ints(1 << 62, 1, 2, 3))], 18)


def graphs():
    """Nodes that have graphs: decided by the file, and by the data."""
    two = [1, 2]
    branches = {
        "then_branch": graph([node("Add", "xv", "r")], [], [("r", F, two)]),
        "else_branch": graph([node("Neg", "v", "r")], [], [("r", F, two)]),
    }
    body = graph(
        [
            node("Mul", "as", "o"),
            node("Add", "ov", "u"),
            node("If", "c", "q", **branches),
            node("Identity", "c", "d"),
        ],
        [("i", I64, []), ("c", TensorProto.BOOL, []), ("a", F, two)],
        [("d", TensorProto.BOOL, []), ("u", F, two), ("q", F, two)],
    )
    constants = [("s", np.float32(0.5)), ("t", np.array(True)), ("n", np.array(3, np.int64))]
    values = [("x", F, two), ("v", F, two)]
    write("loop_known", [node("Loop", "ntx", "yz", body=body)], values, ["y", "z"], constants)
    body = graph(
        body.node[:2] + body.node[3:],
        [("i", I64, []), ("c", TensorProto.BOOL, []), ("a", F, two)],
        [("d", TensorProto.BOOL, []), ("u", F, two)],
    )
    write(
        "loop_asked",
        [node("Loop", ["m", "t", "x"], "y", body=body)],
        [*values, ("m", I64, [1, 1])],
        ["y"],
        constants,
    )
    write(
        "if_asked",
        [
            node("ReduceSum", "x", "k", keepdims=0),
            node("Less", "ks", "c"),
            node("If", "c", "y", **branches),
        ],
        values,
        ["y"],
        constants,
    )
    body = graph([node("Add", "ab", "o"), node("Mul", "ov", "p")],
                 [("a", F, [2]), ("b", F, [2])], [("o", F, [2]), ("p", F, two)])
    write("scan", [node("Scan", "kw", "yz", body=body, num_scan_inputs=1)],
          [("v", F, two), ("k", F, [2])], ["y", "z"], [("w", weights(4, 2))])


def found():
    """Sizes of results that the data decides."""
    write(
        "found",
        [
            node("Greater", "xt", "m"),
            node("NonZero", "m", "z"),
            node("Transpose", "z", "c"),
            node("GatherND", "xc", "v"),
            node("Add", "vv"),
            node("Shape", "v", "k"),
            node("ConstantOfShape", "k", "e"),
            node("Add", "ev", "s"),
            node("Reshape", "sn", "r"),
        ],
        [("x", F, ["n", 4]), ("t", F, [])],
        [("y", F, ["k"]), ("r", F, [1, "k"])],
        [("n", ints(1, -1))],
    )
    late = []
    for i in range(12):  # each plan is large, and has a small result that the last one reads
        late += [node("Expand", ["t" if i == 0 else f"s{i}", "g"], [f"e{i}"]),
                 node("CumSum", [f"e{i}", "o"], [f"u{i}"]),
                 node("ReduceMin", [f"u{i}"], [f"r{i}"], keepdims=0),
                 node("Greater", ["x", f"r{i}"], [f"m{i}"]), node("NonZero", [f"m{i}"], [f"z{i}"]),
                 node("Cast", [f"z{i}"], [f"f{i}"], to=F),
                 node("ReduceMax", [f"f{i}"], [f"s{i + 1}"], keepdims=0)]
    write("late", late + [node("Concat", [f"f{i}" for i in range(12)], axis=1)],
          [("x", F, [8]), ("t", F, [])], [("y", F, [1, "k"])],
          [("g", ints(500000)), ("o", np.int64(0))])
    write(
        "sizes",
        [
            node("Expand", "xs", "e"),
            node("Slice", ["e", "b", "k"], "c"),
            node("Reshape", "cd"),
        ],
        [("x", F, [1, 3]), ("s", I64, [2]), ("b", I64, [2]), ("k", I64, [2]), ("d", I64, [1])],
        [("y", F, ["k"])],
    )
    write(
        "computed_slice",
        [node("Add", "bo", "s"), node("Add", "sk", "e"), node("Slice", "xse")],
        [("x", F, [6]), ("b", I64, [1]), ("k", I64, [1])],
        [("y", F, ["k"])],
        [("o", ints(1))],
    )
    write(
        "unique",
        [
            node("Unique", "x", ["u", "i", "v", "c"]),
            node("Cast", "c", "d", to=F),
            node("Mul", "ud"),
        ],
        [("x", F, [6])],
        [("y", F, ["k"]), ("v", I64, [6])],
    )
    write(
        "boxes",
        [
            node("NonMaxSuppression", "bsmo", "n"),
            node("Slice", ["n", "a", "z", "w"], "i"),
            node("Squeeze", "iw", "j"),
            node("Squeeze", "bq", "f"),
            node("Gather", "fj"),
        ],
        [("b", F, [1, 5, 4]), ("s", F, [1, 2, 5])],
        [("y", F, ["k", 4])],
        [
            ("m", ints(3)),
            ("o", np.array([0.5], np.float32)),
            ("a", ints(2)),
            ("z", ints(3)),
            ("w", ints(1)),
            ("q", ints(0)),
        ],
    )
    body = graph(
        [
            node("Concat", ["a", "v"], "w", axis=0),
            node("Identity", "w", "q"),
            node("ReduceSum", "wz", "p", keepdims=0),
            node("Less", "pl", "d"),
        ],
        [("i", I64, []), ("c", TensorProto.BOOL, []), ("a", F, ["k"])],
        [("d", TensorProto.BOOL, []), ("w", F, ["k"])],
    )
    write(
        "loop_grows",
        [node("Loop", ["", "t", "v"], "y", body=body)],
        [("v", F, [2]), ("l", F, [])],
        [("y", F, ["k"])],
        [("t", np.array(True)), ("z", ints(0))],
    )
    # appends 1, 2, 3 … to a sequence, up to the limit
    body = graph(
        [node("Add", "ao", "u"), node("SequenceInsert", "su", "t"), node("Less", "ul", "d")],
        [("i", I64, []), ("c", TensorProto.BOOL, []), ("a", F, [1])],
        [("d", TensorProto.BOOL, []), ("u", F, [1])],
    )
    body.input.append(helper.make_tensor_sequence_value_info("s", F, None))
    body.output.append(helper.make_tensor_sequence_value_info("t", F, None))
    write(
        "loop_appends",
        [
            node("SequenceConstruct", "z", "e"),
            node("Loop", ["", "", "z", "e"], ["n", "q"], body=body),
            node("ConcatFromSequence", "q", axis=0),
        ],
        [("l", F, [1])],
        [("y", F, ["k"])],
        [("z", np.zeros(1, np.float32)), ("o", np.ones(1, np.float32))],
    )
    body = graph(
        [
            node("Mul", "at", "u"),
            node("NonZero", "u", "n"),
            node("Shape", "n", "r"),
            node("Identity", "c", "d"),
        ],
        [("i", I64, []), ("c", TensorProto.BOOL, []), ("a", F, [3])],
        [("d", TensorProto.BOOL, []), ("u", F, [3]), ("n", I64, [1, "k"]), ("r", I64, [2])],
    )
    write(
        "loop_no_turns",
        [
            node("Loop", ["l", "", "x"], "ypq", body=body),
            node("Loop", ["z", "", "x"], "fgh", body=body),
        ],
        [("l", I64, []), ("x", F, [3])],
        [
            ("y", F, [3]),
            ("p", I64, ["s", 1, "k"]),
            ("q", I64, ["s", 2]),
            ("f", F, [3]),
            ("g", I64, [0, 1, "k"]),
            ("h", I64, [0, 2]),
        ],
        [("t", np.float32([1, 0, 2])), ("z", np.array(0))],
    )
    text = TensorProto.STRING
    body = graph(
        [
            node("Cast", "i", "n", to=text),
            node("StringConcat", "na", "b"),
            node("Identity", "b", "r"),
            node("Identity", "c", "d"),
        ],
        [("i", I64, []), ("c", TensorProto.BOOL, []), ("a", text, [1])],
        [("d", TensorProto.BOOL, []), ("b", text, [1]), ("r", text, [1])],
    )
    write(
        "loop_texts",
        [node("Loop", ["l", "", "t"], "yr", body=body)],
        [("l", I64, []), ("t", text, [1])],
        [("y", text, [1]), ("r", text, ["k", 1])],
        opset=20,
    )


def batches():
    """The number of samples alone is open. What it decides: factors, branches, windows."""
    number = node("Shape", "x", "s", end=1)
    pairs = [("x", F, ["n", 2])]
    write("batch_factor", [number, node("Cast", "s", "f", to=F), node("Mul", "xf")], pairs, ["y"])
    for name, second in (("batch_branch", 2), ("open_branch", "w")):
        branches = {
            "then_branch": graph([node("Neg", "p", "r")], [], [("r", F, ["n", second])]),
            "else_branch": graph([node("Neg", "q", "r")], [], [("r", F, ["n", second])]),
        }
        write(
            name,
            [
                number,
                node("Greater", "so", "g"),
                node("Squeeze", "g", "c"),
                node("Abs", "x", "p"),
                node("Mul", "xx", "q"),
                node("If", "c", "y", **branches),
            ],
            [("x", F, ["n", second])],
            ["y"],
            [("o", ints(1))],
        )
    write("batch_rows", [node("Slice", "xbea")], pairs, ["y"],
          [("b", ints(0)), ("e", ints(2)), ("a", ints(0))])
    write("batch_columns", [number, node("Slice", "xbsa")], [("x", F, ["n", 6])], ["y"],
          [("b", ints(0)), ("a", ints(1))])
    rows, one, zero = [("x", F, ["n", 3])], ("o", np.int64(1)), ("z", np.int64(0))
    cubes = [("x", F, ["n", 3, 3, 3])]
    write("batch_axis", [number, node("ReduceSum", "xs", keepdims=0)], cubes, ["y"])
    count = [number, node("Squeeze", "s", "q")]
    write("batch_axes", [*count, node("Add", "qo", "e"), node("Range", "oeo", "r"),
                         node("ReduceSum", "xr")], cubes, ["y"], [one])
    write("batch_scale", [*count, node("Cast", "q", "f", to=F), node("QuantizeLinear", "xfz", "h"),
                          node("DequantizeLinear", "hfz")], pairs, ["y"], [("z", np.uint8(0))])
    write("batch_row", [*count, node("Range", "zqo", "r"), node("Cast", "r", "f", to=F),
                        node("Add", "xf")], rows, ["y"], [zero, one])
    write("batch_weights", [number, node("Slice", "wbsa", "v"), node("MatMul", "xv")], rows, ["y"],
          [("w", np.ones((3, 6), np.float32)), ("b", ints(0)), ("a", ints(1))])


def thresholds():
    """What changes with the fifth sample, in ways that 1, 2 and 3 do not show. y = 2x or -3x."""
    B = TensorProto.BOOL
    number = [node("Shape", "x", "s", end=1), node("Squeeze", "s", "n")]
    choose = [node("Where", "ctf", "w"), node("Mul", "xw")]
    numbers = [("k", np.int64(4)), ("t", np.float32(2)), ("f", np.float32(-3)),
               ("z", np.int64(0)), ("o", np.int64(1)), ("v", np.array(True))]
    count = numpy_helper.from_array(ints(1))
    turn = graph([node("Identity", "c", "d"), node("Add", "ao", "b")],
                 [("i", I64, []), ("c", B, []), ("a", I64, [])], [("d", B, []), ("b", I64, [])])
    for width, kind in ((2, "batch"), ("w", "open")):
        write(f"{kind}_above", [*number, node("Greater", "nk", "c"), *choose],
              [("x", F, ["n", width])], ["y"], numbers)
    ways = {
        "fifth": [node("Sub", "nk", "d"), node("Equal", "do", "c")],
        "least": [node("Min", "nk", "m"), node("Less", "mn", "c")],
        "part": [node("Div", "nq", "m"), node("Greater", "mz", "c")],
        "listed": [node("Gather", "ln", "m"), node("Greater", "mz", "c")],
        "turned": [node("Loop", "nvz", "m", body=turn), node("Greater", "mk", "c")],
        "filled": [node("ConstantOfShape", "s", "p", value=count),
                   node("ReduceSum", "p", "m", keepdims=0), node("Greater", "mk", "c")],
        "diagonal": [node("Concat", "xxx", "p", axis=1), node("EyeLike", "p", "e", dtype=F),
                     node("ReduceSum", "e", "m", keepdims=0), node("Greater", "mg", "c")],
        "windowed": [node("Slice", "xjh", "p"), node("Shape", "p", "u", end=1),
                     node("Less", "us", "e"), node("Squeeze", "e", "c")],
        "always": [node("Mul", "nk", "d"), node("Greater", "dz", "c")],
    }
    numbers += [("q", np.int64(5)), ("g", np.float32(4)), ("j", ints(0)), ("h", ints(4)),
                ("l", np.repeat(ints(0, 1), (5, 4092)))]
    for name, nodes in ways.items():
        used = {i for n in nodes for i in n.input} | {"t", "f", "o"}
        write(f"batch_{name}", [*number, *nodes, *choose], [("x", F, ["n", 2])], ["y"],
              [c for c in numbers if c[0] in used])


def texts():
    """Texts that are made in the turns of a loop, whose parts data decides, and in branches."""
    S, B = TensorProto.STRING, TensorProto.BOOL
    body = graph(
        [
            node("StringSplit", "p", ["t", "n"]),
            node("Shape", "t", "r"),
            node("StringConcat", "bq", "u"),
            node("StringConcat", "dp", "v"),
            node("Identity", "c", "e"),
        ],
        [("i", I64, []), ("c", B, []), ("p", S, [1]), ("q", S, [1])],
        [("e", B, []), ("u", S, [1]), ("v", S, [1]), ("r", I64, [2])],
    )
    write(
        "text_turns",
        [node("Loop", ["m", "", "x", "y"], "uvr", body=body)],
        [("m", I64, []), ("x", S, [1]), ("y", S, [1])],
        [("u", S, [1]), ("v", S, [1]), ("r", I64, ["k", 2])],
        [("b", np.array(["b "], object)), ("d", np.array(["d"], object))],
        opset=20,
    )
    branches = {
        "then_branch": graph([node("StringConcat", "xd", "r")], [], [("r", S, [1])]),
        "else_branch": graph([node("StringConcat", "dx", "r")], [], [("r", S, [1])]),
    }
    write(
        "text_branches",
        [node("If", "c", **branches)],
        [("c", B, []), ("x", S, [1])],
        [("y", S, [1])],
        [("d", np.array(["d"], object))],
        opset=20,
    )


def upsample_by_nothing():
    up = node("Upsample", "x", mode="nearest")
    up.attribute.append(helper.make_attribute("scales", [], attr_type=AttributeProto.FLOATS))
    write("upsample_by_nothing", [up], [("x", F, [1, 1, 2, 2])], [("y", F, None)], opset=7)


def sequences():
    body = graph([node("Mul", "ab", "m")], [("a", F, [2]), ("b", F, [2])], [("m", F, [2])])
    write(
        "sequences",
        [
            node("SplitToSequence", "x", "s", axis=0, keepdims=0),
            node("SequenceAt", "sp", "e"),
            node("SequenceMap", "se", "t", body=body),
            node("SequenceInsert", "teo", "i"),
            node("SequenceErase", "i", "r"),
            node("Optional", "r", "q"),
            node("OptionalHasElement", "q", "h"),
            node("OptionalGetElement", "q", "g"),
            node("ConcatFromSequence", "g", "c", axis=0, new_axis=1),
            node("SequenceLength", "g", "l"),
            node("Cast", "l", "f", to=F),
            node("Where", "hcf"),
        ],
        [("x", F, [3, 2]), ("p", I64, [])],
        [("y", F, ["k", 2])],
        [("o", np.int64(1))],
    )
    body = graph([node("Neg", "a", "b"), node("SequenceConstruct", "ab", "m")], [("a", F, [2])],
                 [("m", F, None)])
    write("scan_of_sequences", [node("Scan", "x", body=body, num_scan_inputs=1)],
          [("x", F, [3, 2])], [("y", F, None)])


def attention():
    angles = np.linspace(0, 1, 6, dtype=np.float32).reshape(1, 3, 2)
    write(
        "attend",
        [
            node("RotaryEmbedding", "qcs", "r", num_heads=4, interleaved=1),
            node("Attention", "rkvmpw", ["a", "n", "o", "x"], q_num_heads=4, kv_num_heads=2,
                 is_causal=1, softcap=3.0, qk_matmul_output_mode=3),
            node("CenterCropPad", "az", axes=[1, 2]),
        ],
        [("q", F, [1, 3, 16]), ("k", F, [1, 3, 8]), ("v", F, [1, 3, 8]), ("m", F, [3, 4])]
        + [(n, F, [1, 2, 2, 4]) for n in "pw"] + [("z", I64, [2])],
        [("y", F, [1, "k", "l"]), ("n", F, [1, 2, 5, 4]), ("x", F, [1, 4, 3, 5])],
        [("c", np.cos(angles)), ("s", np.sin(angles))],
        opset=23,
    )


def sampled():
    write(
        "sampled",
        [
            node("GridSample", "xg", "s", mode="bicubic", padding_mode="reflection"),
            node("RoiAlign", "srb", "a", output_height=2, output_width=2, mode="max"),
            node("Det", "a", "d"),
            node("Add", "dd"),
        ],
        [("x", F, [1, 2, 4, 5]), ("g", F, [1, 3, 3, 2]), ("r", F, [2, 4])],
        ["y"],
        [("b", ints(0, 0))],
    )
    write(
        "grams",
        [
            node(
                "TfIdfVectorizer",
                "x",
                mode="TFIDF",
                min_gram_length=1,
                max_gram_length=2,
                max_skip_count=1,
                ngram_counts=[0, 2],
                ngram_indexes=[0, 1, 3],
                pool_int64s=[2, 5, 5, 2],
                weights=[0.5, 2.0, 3.0],
            )
        ],
        [("x", I64, [2, 6])],
        ["y"],
    )
    training = "ai.onnx.preview.training"
    write(
        "trained",
        [
            helper.make_node("Adam", list("rtxgvh"), ["y", "w", "i"], domain=training),
            helper.make_node("Momentum", list("rtygv"), ["z", "u"], domain=training, alpha=0.5,
                             beta=0.9, mode="nesterov", norm_coefficient=0.01),
            helper.make_node("Adagrad", list("rtzgh"), ["o", "p"], domain=training),
        ],
        [("r", F, []), ("t", I64, [])] + [(n, F, [3]) for n in "xgvh"],
        ["o", "p", "u"],
        domains=[training],
    )


def of_language_models():
    """Operators of com.microsoft that newer language models have."""
    own = {"domain": "com.microsoft"}
    S = TensorProto.INT32
    x = ("x", F, ["n", 4])

    def made(op, inputs, outputs=("y",), **attributes):
        return helper.make_node(op, list(inputs), list(outputs), **attributes, **own)

    expert = [("v", weights(3, 8, 4)), ("b", weights(3, 8)), ("u", weights(3, 4, 4))]
    gate = {"activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 7.0}
    write("moe", [node("MatMul", "xr", "s"), made("MoE", "xsvbu", k=2, **gate)], [x], ["y"],
          [("r", weights(4, 3)), *expert])
    write("moe_few", [made("MoE", "xsvbu", **gate)], [("x", F, [1, 4]), ("s", F, [1, 3])], ["y"],
          expert)
    write("moe_whole", [made("MoE", "xsvbu")], [("x", F, [1, 4]), ("s", I64, [1, 3])], ["y"],
          expert)
    packed = [("v", np.arange(48, dtype=np.uint8).reshape(3, 8, 2)), ("k", weights(3, 8)),
              ("u", np.arange(48, dtype=np.uint8).reshape(3, 4, 4)), ("l", weights(3, 4)),
              ("z", np.arange(12, dtype=np.uint8).reshape(3, 4))]
    few = ["x", "s", "v", "k", "", "u", "l"] + [""] * 4
    write("qmoe", [made("QMoE", [*few, "z", "", "", "g"], activation_type="silu", k=1)],
          [("x", F, [2, 4]), ("s", F, [2, 3]), ("g", F, [2, 3])], ["y"], packed)
    write("qmoe_blocks", [made("QMoE", few, block_size=4, k=2, quant_type="int")],
          [("x", F, [1, 2, 4]), ("s", F, [2, 3])], ["y"],
          [packed[0], packed[2], ("k", weights(3, 8, 1)), ("l", weights(3, 4, 2))])
    write("group_router", [made("MoEGroupRouter", "xb", "yst", n_group=2, topk_group=1, top_k=2)],
          [x], ["y", "s", "t"], [("b", weights(4))])
    write("gates", [
        made("ScaledSiLU", "x", "a", alpha=2.0), made("GatedAdd", "xag", "b"),
        made("GatedRMSNorm", "bhx", "c"), made("LinearAttentionGate", "cghx", "yz"),
    ], [x], ["y", "z"], [("g", weights(4)), ("h", weights(4))])
    write("engram_gate", [made("EngramGate", "kqvghw", "yz")],
          [("k", F, [1, 2, 2, 4]), ("q", F, [1, 2, 2, 4]), ("v", F, [1, 2, 4])], ["y", "z"],
          [(n, weights(2, 4)) for n in "ghw"])
    write("streams", [
        made("BranchwiseRMSNorm", "xg", "a", num_branches=2),
        made("HyperConnectionPreMix", "af", "b", num_branches=2, reduction_scale=0.5),
        made("HyperConnectionPostMix", "abfm", num_branches=2),
    ], [("x", F, [1, 3, 8])], ["y"],
        [("g", weights(8)), ("f", weights(1, 3, 2)), ("m", weights(1, 3, 2, 2))])
    write("ngrams", [made("NGramRepeatBlock", "is", ngram_size=2)],
          [("i", I64, ["n", 4]), ("s", F, ["n", 3])], ["y"])
    ten = [("c", weights(6, 2)), ("s", weights(6, 2))]
    write("rotary_mixed", [made("MRotaryEmbedding", "xpcs", mrope_section=[1, 1, 0])],
          [("x", F, [1, 2, 8]), ("p", I64, [3, 1, 2])], ["y"], ten)
    write("group_query", [
        made("GroupQueryAttention", ["x", "", "", "k", "v", "l", "t", "c", "s"], "yab",
             num_heads=2, kv_num_heads=1, do_rotary=1, local_window_size=2, smooth_softmax=1),
    ], [("x", F, [2, 1, 16]), ("k", F, [2, 1, 3, 4]), ("v", F, [2, 1, 3, 4]), ("l", S, [2])],
        ["y", "a", "b"], [("t", np.array(4, np.int32)), *ten])
    write("group_query_all", [
        made("GroupQueryAttention", ["q", "k", "v", "", "", "l", "t"], num_heads=2,
             kv_num_heads=2, causal=0, softcap=3.0),
    ], [("q", F, [1, 3, 8]), ("k", F, [1, 3, 8]), ("v", F, [1, 3, 8]), ("l", S, [1])], ["y"],
        [("t", np.array(3, np.int32))])
    write("transposed_with_pads", [made("ConvTransposeWithDynamicPads", "xwpb", strides=[2, 1])],
          [("x", F, [1, 2, 3, 3])], ["y"],
          [("w", weights(2, 1, 2, 2)), ("p", ints(1, 0, 0, 1)), ("b", weights(1))])
    write("delta", [
        made("GatedDeltaNet", ["q", "k", "v", "", "d", "r", "s", "l", "b"], "yt",
             gate_activation="softplus", beta_activation="sigmoid", qk_l2_norm=1),
    ], [("q", F, [1, 2, 1, 2]), ("k", F, [1, 2, 1, 2]), ("v", F, [1, 2, 2, 3]),
        ("s", F, [1, 2, 3, 2])], ["y", "t"],
        [("d", weights(1, 2, 2)), ("r", weights(1, 2, 2)), ("l", weights(2)), ("b", weights(2))])
    write("delta_packed", [
        made("GatedDeltaNet", ["q", "k", "v", "", "d", "", "s", "l", "b"], "yt",
             update_rule="gated", gate_activation="kda"),
    ], [("q", F, [2, 1, 2]), ("k", F, [2, 1, 2]), ("v", F, [2, 1, 3]), ("s", F, [1, 1, 3, 2])],
        ["y", "t"],
        [("d", weights(2, 1, 2)), ("l", weights(1)), ("b", weights(1, 2))])


def of_unknown_rank():
    """Inputs of which the file says no more than the type."""
    for name, nodes, constants in (
        ("conv", [node("Relu", "x", "r"), node("Conv", "rw", kernel_shape=[2, 2])],
         [("w", weights(1, 2, 2, 2))]),
        ("gemm", [node("Identity", "x", "r"), node("Gemm", "rw", transB=1)],
         [("w", weights(3, 4))]),
        ("perm", [node("Transpose", "x", perm=[1, 0, 2])], []),
        ("empty", [node("Conv", "xw", kernel_shape=[1, 1])], [("w", weights(1, 0, 1, 1))]),
    ):
        write(f"rank_{name}", nodes, [("x", F, None)], ["y"], constants)


def nowhere():
    """Half a spectrum back to numbers along a dimension that is not there."""
    write("dft_nowhere", [node("DFT", "x", axis=9, inverse=1, onesided=1)], [("x", F, [2, 3, 2])],
          ["y"])


def shared_trees():
    """Nodes that share a child, leaves that vote twice, results that no leaf names."""
    learned = {"domain": "ai.onnx.ml"}
    tree = {
        "nodes_treeids": [0] * 4, "nodes_nodeids": [0, 1, 2, 3], "nodes_featureids": [1, 0, 0, 0],
        "nodes_values": [0.5, 0.25, 0.0, 0.0],
        "nodes_modes": ["BRANCH_EQ", "BRANCH_EQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [2, 2, 0, 0], "nodes_falsenodeids": [1, 3, 0, 0],
    }
    write("trees_shared", [
        node("TreeEnsembleRegressor", "x", target_treeids=[0, 0, 0], target_nodeids=[2, 2, 3],
             target_ids=[0, 0, 1], target_weights=[1.0, 2.0, -1.0], n_targets=3,
             base_values=[0.5, 0.5, 0.5], **tree, **learned),
    ], [("x", F, ["n", 2])], ["y"], domains=["ai.onnx.ml"])
    write("trees_of_one_class", [
        node("TreeEnsembleClassifier", "x", "yz", class_treeids=[0, 0], class_nodeids=[2, 3],
             class_ids=[0, 0], class_weights=[0.75, 0.25], classlabels_int64s=[4, 5],
             base_values=[0.5], **tree, **learned),
    ], [("x", F, ["n", 2])], [("y", I64, ["n"]), "z"], domains=["ai.onnx.ml"])


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    picture = [("x", F, ["n", 2, 6, 6])]
    write(
        "conv",
        [
            node("Conv", "xwb", "a", pads=[1, 1, 1, 1]),
            node("Relu", "a", "c"),
            node("MaxPool", "c", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        ],
        picture,
        ["y"],
        [("w", weights(3, 2, 3, 3)), ("b", weights(3))],
    )
    write(
        "depthwise",
        [node("Conv", "xw", group=2, strides=[2, 1], auto_pad="SAME_LOWER")],
        picture,
        ["y"],
        [("w", weights(4, 1, 3, 2))],
    )
    write(
        "conv1d",
        [node("Conv", "xw", dilations=[2])],
        [("x", F, [1, 2, 9])],
        ["y"],
        [("w", weights(3, 2, 3))],
    )
    write(
        "conv3d",
        [node("Conv", "xw", "a"), node("MaxPool", "a", kernel_shape=[2, 2, 2])],
        [("x", F, [1, 1, 4, 4, 4])],
        ["y"],
        [("w", weights(2, 1, 2, 2, 2))],
    )
    write(
        "transposed",
        [node("ConvTranspose", "xw", strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1])],
        picture,
        ["y"],
        [("w", weights(2, 3, 3, 3))],
    )
    write(
        "gemm",
        [node("Gemm", "xwb", alpha=0.5, transB=1)],
        [("x", F, [2, 4])],
        ["y"],
        [("w", weights(3, 4)), ("b", weights(3))],
    )
    write(
        "matmul",
        [node("MatMul", "xz", "a"), node("Softmax", "a", axis=1)],
        [("x", F, [2, 3, 4]), ("z", F, [4, 5])],
        ["y"],
    )
    write(
        "shapes",
        [
            node("Shape", "x", "s"),
            node("Gather", "si", "d", axis=0),
            node("Concat", "dm", "t", axis=0),
            node("Reshape", "xt"),
        ],
        [("x", F, [2, 3, 4])],
        ["y"],
        [("i", ints(1)), ("m", ints(-1))],
    )
    write(
        "slices",
        [
            node("Slice", ["x", "s", "e", "a", "k"], "c"),
            node("Split", "c", ["p", "q"], axis=1),
            node("Pad", ["q", "z"], "r", mode="reflect"),
            node("Concat", "rr", axis=1),
        ],
        [("x", F, [2, 6, 5])],
        ["y"],
        [
            ("s", ints(-1)),
            ("e", ints(-9)),
            ("a", ints(2)),
            ("k", ints(-2)),
            ("z", ints(0, 0, 1, 0, 0, 1)),
        ],
    )
    write(
        "resize",
        [
            node(
                "Resize",
                ["x", "", "s"],
                mode="linear",
                coordinate_transformation_mode="align_corners",
            )
        ],
        picture,
        ["y"],
        [("s", np.array([1, 1, 1.5, 2], np.float32))],
    )
    write(
        "norms",
        [
            node("LayerNormalization", "xsb", "a"),
            node("InstanceNormalization", "agg", "c"),
            node("ReduceL2", "c", axes=[1]),
        ],
        [("x", F, [2, 3, 4])],
        ["y"],
        [("s", weights(4)), ("b", weights(4)), ("g", weights(3))],
    )
    write(
        "batch_norm",
        [node("BatchNormalization", ["x", "s", "s", "s", "v"], "a"), node("HardSigmoid", "a")],
        picture,
        ["y"],
        [("s", weights(2)), ("v", np.abs(weights(2)))],
    )
    write(
        "top_k",
        [
            node("TopK", "xk", ["v", "i"], largest=0),
            node("Cast", "i", "f", to=F),
            node("Mul", "vf"),
        ],
        [("x", F, [2, 7])],
        ["y"],
        [("k", ints(3))],
    )
    write(
        "choices",
        [
            node("Greater", "xz", "m"),
            node("Where", "mxz", "a"),
            node("Trilu", "a", "c"),
            node("ArgMax", "c", "d", axis=1),
            node("Cast", "d", to=F),
        ],
        [("x", F, [3, 4]), ("z", F, [4])],
        ["y"],
    )
    write(
        "lstm",
        [node("LSTM", "xwrb", ["y", "h", "c"], hidden_size=3, direction="bidirectional")],
        [("x", F, [3, 1, 2])],
        ["y", "h", "c"],
        [("w", weights(2, 12, 2)), ("r", weights(2, 12, 3)), ("b", weights(2, 24))],
    )
    write(
        "gru",
        [node("GRU", "xwr", hidden_size=3, linear_before_reset=1)],
        [("x", F, [2, 1, 2])],
        ["y"],
        [("w", weights(1, 9, 2)), ("r", weights(1, 9, 3))],
    )
    scale, zero = np.float32(0.05), np.uint8(120)
    write(
        "qdq",
        [
            node("QuantizeLinear", "xsz", "q"),
            node("DequantizeLinear", "qsz", "d"),
            node("DequantizeLinear", "wtu", "v", axis=0),
            node("Conv", "dv"),
        ],
        picture,
        ["y"],
        [
            ("s", scale),
            ("z", zero),
            ("w", np.arange(24, dtype=np.int8).reshape(3, 2, 2, 2)),
            ("t", np.abs(weights(3))),
            ("u", np.zeros(3, np.int8)),
        ],
    )
    write(
        "qlinear",
        [
            node("QLinearConv", ["x", "s", "z", "w", "s", "z", "s", "z", "b"], "q"),
            helper.make_node(
                "QLinearAdd",
                ["q", "s", "z", "q", "s", "z", "s", "z"],
                ["y"],
                domain="com.microsoft",
            ),
        ],
        [("x", U8, [1, 2, 4, 4])],
        ["y"],
        [
            ("s", scale),
            ("z", zero),
            ("w", np.arange(16, dtype=np.uint8).reshape(2, 2, 2, 2)),
            ("b", np.array([3, -4], np.int32)),
        ],
    )
    write(
        "dynamic_quantize",
        [
            node("DynamicQuantizeLinear", "x", ["q", "s", "z"]),
            node("MatMulInteger", "qwz", "a"),
            node("Cast", "a", "f", to=F),
            node("Mul", "fs"),
        ],
        [("x", F, [2, 3])],
        ["y"],
        [("w", np.arange(12, dtype=np.uint8).reshape(3, 4))],
    )
    write(
        "expanded",
        [
            node("ConstantOfShape", "s", "o"),
            node("Expand", "ot", "e"),
            node("Tile", "er", "u"),
            node("Range", "abd", "g"),
            node("Add", "ug", "h"),
            node("Add", "hx"),
        ],
        [("x", F, [1])],
        ["y"],
        [
            ("s", ints(1, 3)),
            ("t", ints(2, 3)),
            ("r", ints(1, 2)),
            ("a", np.float32(0)),
            ("b", np.float32(6)),
            ("d", np.float32(1)),
        ],
    )
    write(
        "open_width",
        [node("Add", "xx"), node("ReduceSum", "xa", "z", keepdims=0)],
        [("x", F, ["n", "w", 2])],
        ["y", "z"],
        [("a", ints(1))],
    )
    counted = [node("Shape", "x", "s", end=1), node("Cast", "s", "f", to=F), node("Mul", "xf")]
    write("open_counted", counted, [("x", F, ["n", "w"])], ["y"])
    counted = counted[:2] + [node("Squeeze", "f", "q"), node("Pow", "xq")]
    write("open_powers", counted, [("x", F, ["n", "w"])], ["y"])
    # from 100 columns on with the number of samples: min(n, max(1, w - 99))
    write("open_counted_wide", [
        node("Shape", "x", "n", end=1), node("Shape", "x", "w", start=1), node("Sub", "wa", "d"),
        node("Max", "do", "m"), node("Min", "nm", "k"), node("Cast", "k", "f", to=F),
        node("Mul", "xf"),
    ], [("x", F, ["n", "w"])], ["y"], [("a", ints(99)), ("o", ints(1))])
    write(
        "open_time",
        [node("RNN", "xwr", hidden_size=1)],
        [("x", F, ["t", 1, 1])],
        ["y"],
        [("w", np.ones((1, 1, 1), np.float32)), ("r", np.ones((1, 1, 1), np.float32))],
    )
    write(
        "open_shared",
        [node("Gather", "hi", "s", axis=1), node("Mul", "xs")],
        [("x", F, ["n", 2]), ("h", F, [2, "n", 2])],
        ["y"],
        [("i", ints(0))],
    )
    write(
        "open_apart",
        [node("Add", "xk"), node("Neg", "k", "z")],
        [("x", F, ["n", 2]), ("k", F, ["m", 2])],
        [("y", F, None), ("z", F, ["m", 2])],
    )
    write("open_squeezed", [node("Squeeze", "x")], [("x", F, ["n", 1])], [("y", F, ["n"])])
    write(
        "open_sized",
        [node("Reshape", "xs")],
        [("x", F, ["n", "w"])],
        [("y", F, [2, 3, "w"])],
        [("s", ints(2, 3, 5))],
    )
    write(
        "open_faulty",
        [node("Neg", "x"), node("Reshape", "as", "z")],
        [("x", F, ["n", "w"])],
        [("y", F, ["n", "w"]), ("z", F, [5])],
        [("a", np.ones((2, 3), np.float32)), ("s", ints(5))],
    )
    write(
        "open_third",
        [node("MatMul", "ax")],
        [("x", F, ["n", 2])],
        [("y", F, [1, 2])],
        [("a", np.ones((1, 3), np.float32))],
    )
    graphs()
    far_resizes()
    found()
    batches()
    thresholds()
    sequences()
    upsample_by_nothing()
    texts()
    attention()
    sampled()
    write(
        "transposed_huge",
        [node("ConvTranspose", "xw", group=2, strides=[1 << 30, 1 << 30])],
        [("x", F, [1, 2, 3, 3])],
        ["y"],
        [("w", weights(2, 1, 2, 2))],
    )
    write("depth_huge", [node("SpaceToDepth", "x", blocksize=(1 << 31) - 1, mode="CRD")],
          [("x", F, [1, 4, 4, 4])], ["y"])
    write("qdq_layer", [
        node("QuantizeLinear", "xsz", "q"), node("DequantizeLinear", "qsz", "d"),
        node("DequantizeLinear", "wtu", "v", axis=0), node("DequantizeLinear", "bk", "c", axis=0),
        node("Conv", "dvc", "e"), node("Relu", "e", "r"), node("QuantizeLinear", "rsz", "p"),
        node("DequantizeLinear", "psz", "m"), node("Add", "mm", "n"),
        node("QuantizeLinear", "nsz", "o"), node("DequantizeLinear", "osz"),
    ], picture, ["y"], [
        ("s", scale), ("z", zero), ("w", np.arange(24, dtype=np.int8).reshape(3, 2, 2, 2)),
        ("t", np.full(3, scale)), ("u", np.zeros(3, np.int8)),
        ("b", np.array([3, -4, 5], np.int32)), ("k", np.full(3, scale * scale)),
    ])
    own = {"domain": "com.microsoft"}
    write("attention", [helper.make_node("Attention", list("xwbm"), ["y"], num_heads=2,
                                         unidirectional=1, **own)],
          [("x", F, [1, 3, 4])], ["y"],
          [("w", weights(4, 12)), ("b", weights(12)), ("m", np.array([2], np.int32))])
    write("blocks", [
        helper.make_node("MatMulNBits", list("xwsz"), ["a"], N=4, K=16, bits=4, block_size=16,
                         **own),
        helper.make_node("SkipLayerNormalization", list("aagg"), ["y"], **own),
    ], [("x", F, [1, 2, 16])], ["y"], [
        ("w", np.arange(32, dtype=np.uint8).reshape(4, 1, 8)), ("s", weights(4, 1)),
        ("z", np.arange(4, dtype=np.uint8).reshape(4, 1)), ("g", weights(4)),
    ])
    write("converted", [
        helper.make_node("CropAndResize", list("xris"), ["c"], extrapolation_value=1.0, **own),
        helper.make_node("Inverse", "c", "v", **own),
        helper.make_node("UnfoldTensor", "v", "y", dim=2, size=2, **own),
        node("Crop", "x", "z", border=[1, 0, 0, 1]),
        helper.make_node("MurmurHash3", "i", "h", seed=3, **own),
    ], [("x", F, [1, 2, 3, 4]), ("r", F, [2, 4]), ("i", TensorProto.INT32, [2])],
        ["y", "z", ("h", TensorProto.UINT32, [2])], [("s", np.array([2, 2], np.int32))])
    write("crop_far", [node("Crop", "x", border=[5, 0, 0, -2**63])], picture, ["y"])
    write("narrow_input", [node("Cast", "w", "f", to=F), node("Add", "fx")],
          [("x", F, [9000]), ("w", TensorProto.FLOAT8E4M3FN, [9000])], ["y"],
          [("w", (np.arange(9000) % 120).astype(np.uint8).view(ml_dtypes.float8_e4m3fn))], 21)
    write("unsaid", [
        node("NonZero", "x", "f"), node("Transpose", "f", "t"), node("GatherND", "xt", "v"),
        node("Neg", "v"), node("Reshape", "xs", "z"),
    ], [("x", F, ["n", 4]), ("s", I64, ["k"])], ["y", "z"])
    learned = {"domain": "ai.onnx.ml"}
    write("trees", [
        node("Scaler", "x", "s", offset=[0.5, 0.5], scale=[2.0, 1.0], **learned),
        node("TreeEnsembleRegressor", "s", nodes_treeids=[0, 0, 0], nodes_nodeids=[0, 1, 2],
             nodes_featureids=[1, 0, 0], nodes_values=[0.5, 0.0, 0.0],
             nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"], nodes_truenodeids=[1, 0, 0],
             nodes_falsenodeids=[2, 0, 0], target_treeids=[0, 0], target_nodeids=[1, 2],
             target_ids=[0, 0], target_weights=[1.0, -1.0], n_targets=1, **learned),
    ], [("x", F, [1, 2])], ["y"], domains=["ai.onnx.ml"])
    tensor = helper.make_tensor("w", TensorProto.FLOAT16, [2], [1.5, -2])
    graph = helper.make_graph(
        [node("Add", "xw")],
        "g",
        [helper.make_tensor_value_info("x", F, [2])],
        [helper.make_tensor_value_info("y", F, None)],
        [tensor],
    )
    typed = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=3)
    (FOLDER / "typed_fields.onnx").write_bytes(typed.SerializeToString())
    of_language_models()
    of_unknown_rank()
    nowhere()
    shared_trees()


if __name__ == "__main__":
    main()

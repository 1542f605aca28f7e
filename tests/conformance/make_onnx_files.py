"""Writes the models of tests/conformance/onnx: operators of other domains and quantized ones, with
inputs and the answers of ONNX Runtime, both as constants that no node reads; and casts to and from
numbers of 8 bits and less.

    python tests/conformance/make_onnx_files.py [name …]     needs onnx and onnxruntime from PyPI
"""

import pathlib
import sys

import ml_dtypes
import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent / "onnx"
F = np.float32
U8, S8, S32, S64 = np.uint8, np.int8, np.int32, np.int64
MS = "com.microsoft"
ML = "ai.onnx.ml"
RNG = np.random.default_rng(11)


def real(*shape, scale=1.0):
    return (RNG.integers(-256, 257, shape) / 128 * scale).astype(F)


def stored(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def node(op, inputs, outputs=("y",), domain="", **attributes):
    return helper.make_node(op, list(inputs), list(outputs), domain=domain, **attributes)


def constant(x, name):
    """Texts are arrays of objects."""
    x = np.asarray(x)
    if x.dtype == object:
        return helper.make_tensor(name, TensorProto.STRING, x.shape, [t.encode() for t in x.flat])
    return numpy_helper.from_array(x, name)


def write(name, nodes, given, constants=(), outputs=("y",), opset=17, labels=None,
          functions=(), like=None, by_definition=False):
    """given and constants: pairs of name and array. labels: of a ZipMap behind the last output,
    whose answers are the numbers of its maps. like: nodes that ONNX Runtime runs in place of those
    that it has no kernel for. by_definition: the evaluator of ONNX's definition answers."""
    if sys.argv[1:] and name not in sys.argv[1:]:
        return
    constants = [constant(a, n) for n, a in constants]
    ports = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for n, a in given]
    ml = [n.op_type for n in nodes if n.domain == ML]
    other = (ML, 5 if "TreeEnsemble" in ml else 3) if ml else (MS, 1)
    sets = [helper.make_opsetid("", opset), helper.make_opsetid(*other),
            *{f.domain: helper.make_opsetid(f.domain, 1) for f in functions}.values()]

    def model(outs, extra, nodes=nodes):
        graph = helper.make_graph(nodes, "g", ports, outs, constants + extra)
        made = helper.make_model(graph, opset_imports=sets, ir_version=8,
                                 functions=list(functions))
        made.producer_name = (f"answers: the evaluator of onnx {onnx.__version__}" if by_definition
                              else f"answers: ONNX Runtime {onnxruntime.__version__}")
        return made.SerializeToString()

    unknown = [helper.make_empty_tensor_value_info(o) for o in outputs]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    text = model(unknown, [], like or nodes)
    session = onnx.reference.ReferenceEvaluator(onnx.load_from_string(text)) if by_definition else \
        onnxruntime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    answers = session.run(list(outputs), dict(given))
    known = [helper.make_tensor_value_info(o, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
             for o, a in zip(outputs, answers)]
    if labels:
        maps = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(
            TensorProto.FLOAT, None))
        known[-1] = helper.make_value_info("maps", helper.make_sequence_type_proto(maps))
        nodes = [*nodes, node("ZipMap", [outputs[-1]], ["maps"], ML, classlabels_int64s=labels)]
        outputs = (*outputs[:-1], "maps")
    extra = [constant(a, "given:" + n) for n, a in given]
    extra += [constant(outside(np.asarray(a)), "wanted:" + n) for n, a in zip(outputs, answers)]
    (FOLDER / f"{name}.onnx").write_bytes(model(known, extra, nodes))
    print(name)


def layers():
    x, w, b = real(1, 3, 7, 6), real(4, 3, 3, 3), real(4)
    fused = [("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [0.3]),
             ("Clip", [-1.0, 2.0]), ("HardSigmoid", [0.3, 0.4])]
    for name, params in fused:
        attributes = {"activation_params": params} if params else {}
        write("fused_conv_" + name.lower(),
              [node("FusedConv", "xwb", domain=MS, activation=name, pads=[1, 1, 1, 1],
                    **attributes)], [("x", x)], [("w", w), ("b", b)])
    write("fused_conv_sum", [node("FusedConv", "xwbz", domain=MS, activation="Relu")],
          [("x", x), ("z", real(1, 4, 5, 4))], [("w", w), ("b", b)])
    write("fused_gemm", [node("FusedGemm", "xwb", domain=MS, activation="LeakyRelu",
                              activation_alpha=0.2, transB=1, alpha=0.5)],
          [("x", real(3, 5))], [("w", real(4, 5)), ("b", b)])
    write("fused_matmul", [node("FusedMatMul", "xw", domain=MS, transA=1, transB=1, alpha=0.25)],
          [("x", real(2, 5, 3)), ("w", real(2, 4, 5))])
    for a, b in ((0, 0), (0, 1), (1, 1)):
        write(f"fused_matmul_batch_{a}{b}",
              [node("FusedMatMul", "xw", domain=MS, transBatchA=1, transBatchB=1, transA=a,
                    transB=b)],
              [("x", real(*((5, 2, 3, 4), (4, 2, 3, 5))[a])),
               ("w", real(*((4, 2, 3, 6), (6, 2, 3, 4))[b]))])
    write("bias_gelu", [node("BiasGelu", "xb", domain=MS)], [("x", real(3, 4, scale=3))],
          [("b", b)])
    write("fast_gelu", [node("FastGelu", "xb", domain=MS)], [("x", real(3, 4, scale=3))],
          [("b", b)])
    write("quick_gelu", [node("QuickGelu", "x", domain=MS, alpha=1.5)],
          [("x", real(3, 4, scale=3))])


def normalizations():
    x, s, g, b, c = real(2, 5, 8), real(2, 5, 8), real(8), real(8), real(8)
    constants = [("g", g), ("b", b), ("c", c)]
    outputs = ["y", "", "", "sum"]
    write("skip_layer_norm", [node("SkipLayerNormalization", "xsgbc", outputs, MS, epsilon=1e-5)],
          [("x", x), ("s", s)], constants, ["y", "sum"])
    write("skip_rms_norm", [node("SkipSimplifiedLayerNormalization", "xsgc", outputs, MS,
                                 epsilon=1e-5)], [("x", x), ("s", s)], constants[::2],
          ["y", "sum"])
    ids, kinds = RNG.integers(0, 9, (2, 5)).astype(S32), RNG.integers(0, 2, (2, 5)).astype(S32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], S32)
    tables = [("w", real(9, 8)), ("p", real(6, 8)), ("t", real(2, 8)), *constants[:2]]
    write("embed_layer_norm",
          [node("EmbedLayerNormalization", ["i", "k", "w", "p", "t", "g", "b", "m"],
                ["y", "count", "sum"], MS, epsilon=1e-5)],
          [("i", ids), ("k", kinds), ("m", mask)], tables, ["y", "count", "sum"])
    write("embed_layer_norm_positions",
          [node("EmbedLayerNormalization", ["i", "", "w", "p", "", "g", "b", "", "q"],
                ["y", "count"], MS, epsilon=1e-5)],
          [("i", ids), ("q", RNG.integers(0, 6, (2, 5)).astype(S32))],
          [tables[0], tables[1], *constants[:2]], ["y"])


def attention():
    x, w, b = real(2, 5, 8), real(8, 24, scale=0.4), real(24)
    constants = [("w", w), ("b", b)]
    write("attention", [node("Attention", "xwb", domain=MS, num_heads=2)], [("x", x)], constants)
    write("attention_causal", [node("Attention", "xwb", domain=MS, num_heads=4, unidirectional=1,
                                    scale=0.7)], [("x", x)], constants)
    lengths = ("m", np.array([3, 5], S32))
    write("attention_lengths", [node("Attention", "xwbm", domain=MS, num_heads=2)],
          [("x", x), lengths], constants)
    mask = ("m", np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], S32))
    write("attention_mask", [node("Attention", "xwbm", domain=MS, num_heads=2)],
          [("x", x), mask], constants)
    write("attention_past",
          [node("Attention", ["x", "w", "b", "", "p"], ["y", "now"], MS, num_heads=2,
                unidirectional=1)],
          [("x", x), ("p", real(2, 2, 2, 3, 4))], constants, ["y", "now"])
    write("attention_sizes",
          [node("Attention", "xwb", domain=MS, num_heads=2, qkv_hidden_sizes=[8, 8, 4])],
          [("x", x)], [("w", real(8, 20)), ("b", real(20))])
    q, k, v = real(2, 3, 8), real(2, 5, 8), real(2, 5, 8)
    given = [("q", q), ("k", k), ("v", v)]
    write("multi_head", [node("MultiHeadAttention", "qkvb", domain=MS, num_heads=2)], given,
          [("b", b)])
    write("multi_head_mask",
          [node("MultiHeadAttention", ["q", "k", "v", "", "m", "a"], domain=MS, num_heads=4,
                scale=0.3)], [*given, mask, ("a", real(2, 4, 3, 5))])
    heads = [("k", real(2, 2, 5, 4)), ("v", real(2, 2, 5, 4))]
    write("multi_head_cross", [node("MultiHeadAttention", "qkv", domain=MS, num_heads=2)],
          [("q", q), *heads])


def blocks():
    for name, bits, n, k, size, has_zeros in (("matmul_4_bits", 4, 6, 48, 16, True),
                                              ("matmul_4_bits_middle", 4, 5, 40, 32, False),
                                              ("matmul_8_bits", 8, 4, 32, 16, True)):
        count = -(-k // size)
        constants = [("w", stored(U8, n, count, size * bits // 8)), ("s", real(n, count) + F(3))]
        inputs = ["x", "w", "s"]
        if has_zeros:
            constants.append(("z", stored(U8, n, -(-count * bits // 8))))
            inputs.append("z")
        write(name, [node("MatMulNBits", inputs, domain=MS, N=n, K=k, bits=bits, block_size=size)],
              [("x", real(2, 3, k))], constants)


def integers():
    w, zero = stored(S8, 6, 4), np.int8(3)
    sums = [("w", w), ("t", (np.abs(real(4)) + F(0.1)) * F(0.01)), ("b", real(4))]
    write("matmul_integer_to_float",
          [node("MatMulIntegerToFloat", "xwstzub", domain=MS)],
          [("x", stored(U8, 3, 6))],
          [("s", F(0.02)), ("z", U8(117)), ("u", np.zeros(4, S8)), *sums])
    write("dynamic_quantize_matmul", [node("DynamicQuantizeMatMul", "xwtub", domain=MS)],
          [("x", real(3, 6))], [("w", w), ("t", F(0.01)), ("u", zero), sums[2]])
    write("nhwc_max_pool", [node("NhwcMaxPool", "x", domain=MS, kernel_shape=[3, 2],
                                 strides=[2, 1], pads=[1, 0, 1, 1])],
          [("x", stored(S8, 2, 7, 6, 5))])


def quantized(dtype, weights, per_channel):
    """A network of quantized operators: QLinear… and, the same with floats between, QDQ."""
    info = np.iinfo(dtype)
    middle = 128 if dtype is U8 else 0
    scales = (RNG.uniform(0.005, 0.02, 6) if per_channel else RNG.uniform(0.005, 0.02, 1))
    zeros = np.zeros(6, weights) if per_channel else np.array([3], weights)
    s = {"x": (0.02, middle + 5), "a": (0.1, middle - 7), "c": (0.2, middle), "d": (0.3, info.min),
         "e": (0.002, middle + 9)}
    constants = [(n + "s", F(v[0])) for n, v in s.items()]
    constants += [(n + "z", dtype(v[1])) for n, v in s.items()]
    constants += [
        ("w", stored(weights, 6, 3, 3, 3)), ("ws", scales.astype(F)), ("wz", zeros),
        ("g", stored(weights, 6, 1, 3, 3)), ("gs", scales.astype(F)), ("gz", zeros),
        ("f", stored(weights, 6 * 5 * 4, 6)), ("fs", scales.astype(F)), ("fz", zeros),
    ]
    if not per_channel:
        constants = [(n, a[0] if n in ("ws", "wz", "gs", "gz", "fs", "fz") else a)
                     for n, a in constants]
    wide = (F(s["x"][0]) * scales.astype(F)).astype(F)
    narrow = (F(s["a"][0]) * scales.astype(F)).astype(F)
    constants += [("b", stored(S32, 6) // 2**20), ("bs", wide), ("h", stored(S32, 6) // 2**22),
                  ("hs", narrow)]
    return constants


def tri(name):
    return [name, name + "s", name + "z"]


def qlinear():
    for dtype, weights, per_channel in ((U8, U8, False), (U8, S8, True), (S8, S8, True)):
        constants = quantized(dtype, weights, per_channel)
        name = f"{np.dtype(dtype)}_{np.dtype(weights)}{'_channels' if per_channel else ''}"
        shape = ("k", np.array([1, -1], S64))
        write("qlinear_" + name, [
            node("QLinearConv", [*tri("x"), *tri("w"), "as", "az", "b"], "a", pads=[1, 1, 1, 1]),
            node("QLinearConv", [*tri("a"), *tri("g"), "cs", "cz", "h"], "c", pads=[1, 1, 1, 1],
                 group=6),
            node("QLinearAdd", [*tri("a"), *tri("c"), "ds", "dz"], "d", MS),
            node("QLinearMul", [*tri("d"), *tri("c"), "es", "ez"], "e", MS),
            node("Reshape", "ek", "r"),
            node("QLinearMatMul", ["r", "es", "ez", *tri("f"), "as", "az"], "y"),
        ], [("x", stored(dtype, 1, 3, 5, 4))],
              [c for c in constants if c[0] not in ("bs", "hs")] + [shape], ["d", "e", "y"])

        def real_of(name, axis=None, source=None):
            attributes = {} if axis is None or not per_channel else {"axis": axis}
            return node("DequantizeLinear", [source or name, name + "s", name + "z"],
                        [name + "_real"], **attributes)

        def stored_of(name, source):
            return node("QuantizeLinear", [source, name + "s", name + "z"], [name])

        def bias_of(name):
            attributes = {"axis": 0} if per_channel else {}
            return node("DequantizeLinear", [name, name + "s"], [name + "_real"], **attributes)

        write("qdq_" + name, [
            real_of("x"), real_of("w", 0), bias_of("b"),
            node("Conv", ["x_real", "w_real", "b_real"], ["a0"], pads=[1, 1, 1, 1]),
            node("Relu", ["a0"], ["a1"]), stored_of("a", "a1"), real_of("a"),
            real_of("g", 0), bias_of("h"),
            node("Conv", ["a_real", "g_real", "h_real"], ["c0"], pads=[1, 1, 1, 1], group=6),
            stored_of("c", "c0"), real_of("c"),
            node("Add", ["a_real", "c_real"], ["d0"]), stored_of("d", "d0"), real_of("d"),
            node("Mul", ["d_real", "c_real"], ["e0"]), stored_of("e", "e0"), real_of("e"),
            node("Reshape", ["e_real", "k"], ["r"]),
            node("QuantizeLinear", ["r", "es", "ez"], ["t"]),
            node("DequantizeLinear", ["t", "es", "ez"], ["t_real"]), real_of("f", 1),
            node("MatMul", ["t_real", "f_real"], ["y0"]),
            node("QuantizeLinear", ["y0", "as", "az"], ["y"]),
        ], [("x", stored(dtype, 1, 3, 5, 4))], constants + [shape], ["d", "e", "y"])


def trees(count, columns, results, low):
    """Attributes of trees of random shape, whose leaves have a weight for each result."""
    nodes = {n: [] for n in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                             "falsenodeids")}
    votes = {n: [] for n in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count):
        size = int(RNG.integers(1, 8)) * 2 + 1
        rows = [[tree, i, 0, 0.0, "LEAF", 0, 0] for i in range(size)]
        open_leaves, made = [0], 1
        while made < size:
            at = open_leaves.pop(int(RNG.integers(len(open_leaves))))
            rows[at][2:] = [int(RNG.integers(columns)), float(F(RNG.uniform(-1, 1))), "BRANCH_LEQ",
                            made, made + 1]
            open_leaves += [made, made + 1]
            made += 2
        for row in rows:
            for values, number in zip(nodes.values(), row):
                values.append(number)
        for at in open_leaves:
            for result in range(results):
                for name, number in zip(votes, (tree, at, result, float(F(RNG.uniform(low, 1))))):
                    votes[name].append(number)
    return {"nodes_" + n: v for n, v in nodes.items()}, votes


def ml():
    x = ("x", real(5, 4))
    y = {"domain": ML}
    write("scaler", [node("Scaler", "x", offset=[1.0, 0.5, 0.0, -2.0],
                          scale=[2.0, 1.0, 0.5, -1.0], **y)], [x])
    for norm in ("MAX", "L1", "L2"):
        write("normalizer_" + norm.lower(), [node("Normalizer", "x", norm=norm, **y)], [x])
    write("binarizer", [node("Binarizer", "x", threshold=0.25, **y)], [x])
    gaps = x[1].copy()
    gaps[1, 2] = gaps[3, 0] = np.nan
    write("imputer", [node("Imputer", "x", imputed_value_floats=[1.0, 2.0, 3.0, 4.0],
                           replaced_value_float=float("nan"), **y)], [("x", gaps)])
    write("array_feature_extractor", [node("ArrayFeatureExtractor", "xi", **y)], [x],
          [("i", np.array([[2, 0]], S64))])
    write("label_encoder", [node("LabelEncoder", "x", keys_int64s=[1, 5, 7], default_int64=-3,
                                 values_int64s=[10, 50, 70], **y)],
          [("x", np.array([5, 1, 2, 7], S64))])
    write("label_encoder_reals", [node("LabelEncoder", "x", keys_int64s=[1, 5], default_float=0.5,
                                       values_floats=[1.5, -2.0], **y)],
          [("x", np.array([[5, 1], [3, 1]], S64))])
    weights = [float(w) for w in real(12)]
    write("linear_regressor", [node("LinearRegressor", "x", coefficients=weights[:8], targets=2,
                                    intercepts=[0.5, -1.0], **y)], [x])
    classes = {"outputs": ["label", "y"]}
    for transform in ("NONE", "SOFTMAX", "LOGISTIC"):
        write("linear_classifier_" + transform.lower(),
              [node("LinearClassifier", "x", ["label", "y"], coefficients=weights,
                    intercepts=[0.1, 0.2, -0.3], classlabels_ints=[3, 1, 7], multi_class=0,
                    post_transform=transform, **y)], [x], **classes,
              labels=[3, 1, 7] if transform == "SOFTMAX" else None)
    for aggregate in ("SUM", "AVERAGE"):
        nodes, votes = trees(6, 4, 2, -1)
        targets = {"target_" + n: v for n, v in votes.items()}
        write("tree_regressor_" + aggregate.lower(),
              [node("TreeEnsembleRegressor", "x", n_targets=2, aggregate_function=aggregate,
                    base_values=[0.5, -0.25], **nodes, **targets, **y)], [x])
    for name, results, low, transform, named in (
            ("three", 3, 0, "SOFTMAX", 0), ("share", 1, 0, "NONE", 0),
            ("margin", 1, -1, "LOGISTIC", 0), ("second_share", 1, 0, "NONE", 1),
            ("second_margin", 1, -1, "LOGISTIC", 1)):
        nodes, votes = trees(5, 4, results, low)
        votes["ids"] = [i + named for i in votes["ids"]]
        if "share" in name:
            votes["weights"] = [w / 5 for w in votes["weights"]]
        named = {"class_" + n: v for n, v in votes.items()}
        write("tree_classifier_" + name,
              [node("TreeEnsembleClassifier", "x", ["label", "y"], post_transform=transform,
                    classlabels_int64s=[4, 9, 2][:max(results, 2)], **nodes, **named, **y)],
              [x], **classes)


def texts(*rows):
    return np.array(rows, object)


def machines():
    """Support vectors, with the numbers that a fit would have found."""
    x, y = ("x", real(7, 4)), {"domain": ML}
    vectors, classes = [2, 3, 2], 3
    support, weights = real(7, 4).ravel().tolist(), real(14).tolist()
    rho, slope = [0.25, -0.5, 0.125], [-1.5, -0.75, -2.0]
    for kernel, params in (("LINEAR", []), ("POLY", [0.5, 1.0, 3.0]), ("RBF", [0.25, 0.0, 0.0]),
                           ("SIGMOID", [0.25, 0.5, 0.0])):
        shared = {"kernel_type": kernel, "kernel_params": params or [0.0, 0.0, 0.0],
                  "support_vectors": support, **y}
        write("svm_votes_" + kernel.lower(),
              [node("SVMClassifier", "x", ["label", "y"], coefficients=weights, rho=rho,
                    vectors_per_class=vectors, classlabels_ints=[5, 3, 9], **shared)], [x],
              outputs=["label", "y"])
        write("svm_regressor_" + kernel.lower(),
              [node("SVMRegressor", "x", n_supports=7, coefficients=weights[:7], rho=rho[:1],
                    **shared)], [x])
    rbf = {"kernel_type": "RBF", "kernel_params": [0.25, 0.0, 0.0], **y}
    for name, labels, sizes in (("three", ["cat", "dog", "emu"], vectors),
                                ("two", ["n", "y"], [3, 4])):
        pairs = len(labels) * (len(labels) - 1) // 2
        probable = {"prob_a": slope[:pairs], "prob_b": [0.5, 0.25, -0.25][:pairs]}
        for kind, extra in (("plain", {}), ("probable", probable)):
            write(f"svm_{name}_{kind}",
                  [node("SVMClassifier", "x", ["label", "y"], support_vectors=support,
                        coefficients=weights[:7 * (len(labels) - 1)], rho=rho[:pairs],
                        vectors_per_class=sizes, classlabels_strings=labels, **extra, **rbf)],
                  [x], outputs=["label", "y"])
    for labels in ([4, 7], [4, 7, 1]):
        write(f"svm_linear_{len(labels)}",
              [node("SVMClassifier", "x", ["label", "y"], coefficients=weights[:4 * len(labels)],
                    rho=[-0.25], classlabels_ints=labels, kernel_type="LINEAR",
                    kernel_params=[0.0, 0.0, 0.0],
                    post_transform="SOFTMAX" if classes == len(labels) else "NONE", **y)], [x],
              outputs=["label", "y"])
    write("svm_one_class", [node("SVMRegressor", "x", n_supports=7, coefficients=weights[:7],
                                 rho=[-0.5], one_class=1, support_vectors=support, **rbf)], [x])


def labels_and_categories():
    y = {"domain": ML}
    words = ("x", texts(["red", "blue"], ["", "green"], ["grün", "red"]))
    numbers = ("x", np.array([[3, 1], [2, 5]], S64))
    keys = {"keys_strings": ["red", "green", "grün"]}
    write("constant_texts", [node("Constant", [], ["t"], value_strings=["a", "", "\u00fc"]),
                             node("Constant", [], ["s"], value_string="b"),
                             node("StringConcat", "ts"), node("Gather", "yi", ["z"])],
          [("i", np.array([2, 0], S64))], (), ("y", "z"), opset=20)
    write("label_text_to_int", [node("LabelEncoder", "x", values_int64s=[7, 8, 9],
                                     default_int64=-3, **keys, **y)], [words])
    write("label_text_to_real", [node("LabelEncoder", "x", values_floats=[0.5, 1.5, -2.0],
                                      default_float=9.0, **keys, **y)], [words])
    write("label_text_to_text", [node("LabelEncoder", "x", values_strings=["a", "b", ""],
                                      default_string="none", **keys, **y)], [words])
    write("label_int_to_text", [node("LabelEncoder", "x", keys_int64s=[1, 2, 3],
                                     values_strings=["one", "two", "three"], **y)], [numbers])
    for name, x in (("texts", words), ("ints", numbers)):
        write("category_mapper_" + name,
              [node("CategoryMapper", "x", cats_int64s=[1, 2, 3], default_int64=-7,
                    cats_strings=["red", "blue", "green"], **y)], [x])
    write("one_hot_texts", [node("OneHotEncoder", "x", cats_strings=["blue", "red"], **y)],
          [words])
    write("one_hot_ints", [node("OneHotEncoder", "x", cats_int64s=[5, 1, 4], **y)], [numbers])
    write("text_moves", [node("Concat", "xc", ["a"], axis=0), node("Gather", "ai", ["b"], axis=1),
                         node("Equal", "bd", ["e"]), node("Where", "ebd", ["w"])],
          [words, ("i", np.array([1, 0, 1], S64)), ("d", texts(["red", "", "green"]))],
          [("c", texts(["x", "a longer text than others"]))], ["b", "e", "w"], opset=19)
    weights = [float(w) for w in real(12)]
    write("linear_classifier_texts",
          [node("LinearClassifier", "x", ["label", "y"], coefficients=weights,
                intercepts=[0.1, 0.2, -0.3], classlabels_strings=["a", "bc", ""], multi_class=0,
                post_transform="SOFTMAX_ZERO", **y)], [("x", real(5, 4))],
          outputs=["label", "y"])
    write("feature_vectorizer", [node("FeatureVectorizer", "ab", inputdimensions=[2, 1], **y)],
          [("a", real(3, 2)), ("b", real(3, 1))])
    gaps = np.array([[1, -1, 3], [-1, 5, -1]], S64)
    write("imputer_ints", [node("Imputer", "x", imputed_value_int64s=[7, 8, 9],
                                replaced_value_int64=-1, **y)], [("x", gaps)])


def more_trees():
    """Conditions of all kinds, gaps, texts as labels, and the newer form."""
    y, x = {"domain": ML}, real(9, 4)
    x[2, 1] = x[5] = np.nan
    x = np.where(RNG.integers(0, 3, x.shape) == 0, np.round(x), x).astype(F)
    for name, modes in (("lt", ["BRANCH_LT"]), ("gt", ["BRANCH_GT"]), ("gte", ["BRANCH_GTE"]),
                        ("eq", ["BRANCH_EQ"]), ("neq", ["BRANCH_NEQ"]),
                        ("mixed", ["BRANCH_LT", "BRANCH_GTE", "BRANCH_EQ"])):
        nodes, votes = trees(7, 4, 2, -1)
        branch = [m != "LEAF" for m in nodes["nodes_modes"]]
        nodes["nodes_values"] = [float(round(v)) if "EQ" in modes[-1] else v
                                 for v in nodes["nodes_values"]]
        nodes["nodes_modes"] = [modes[i % len(modes)] if b else "LEAF"
                                for i, b in enumerate(branch)]
        nodes["nodes_missing_value_tracks_true"] = [int(b and i % 3 == 0)
                                                    for i, b in enumerate(branch)]
        targets = {"target_" + n: v for n, v in votes.items()}
        write("tree_regressor_" + name,
              [node("TreeEnsembleRegressor", "x", n_targets=2, **nodes, **targets, **y)],
              [("x", x)])
    for aggregate in ("MIN", "MAX"):
        nodes, votes = trees(5, 4, 1, -1)
        targets = {"target_" + n: v for n, v in votes.items()}
        write("tree_regressor_" + aggregate.lower(),
              [node("TreeEnsembleRegressor", "x", n_targets=1, aggregate_function=aggregate,
                    **nodes, **targets, **y)], [("x", real(9, 4))])
    nodes, votes = trees(5, 4, 3, 0)
    named = {"class_" + n: v for n, v in votes.items()}
    write("tree_classifier_texts",
          [node("TreeEnsembleClassifier", "x", ["label", "y"], post_transform="SOFTMAX",
                classlabels_strings=["a", "bc", "def"], **nodes, **named, **y)],
          [("x", real(9, 4))], outputs=["label", "y"])
    members = np.array([1, 2.5, np.nan, -1, np.nan], F)
    splits, modes = np.array([0.5, 0, -0.25, 0], F), np.array([0, 6, 5, 6], U8)
    weights = real(6)
    for name, function in (("average", 0), ("sum", 1), ("min", 2), ("max", 3)):
        write("tree_ensemble_" + name,
              [node("TreeEnsemble", "x", aggregate_function=function, n_targets=2,
                    tree_roots=[0, 3], nodes_featureids=[0, 1, 2, 3],
                    nodes_modes=constant(modes, "m"),
                    nodes_splits=constant(splits, "s"), membership_values=constant(members, "v"),
                    nodes_truenodeids=[1, 0, 2, 4], nodes_trueleafs=[0, 1, 1, 1],
                    nodes_falsenodeids=[2, 1, 3, 5], nodes_falseleafs=[0, 1, 1, 1],
                    leaf_targetids=[0, 1, 1, 0, 0, 1], leaf_weights=constant(weights, "w"), **y)],
              [("x", np.array([[0, 1, 0, -1], [0.5, 2.5, 1, 3], [1, 1, -0.25, -1], [9] * 4], F))])


def caches():
    """Attention of grouped heads with caches, rotary places, windows; packed queries."""
    angles = np.outer(np.arange(16), [1, 0.6, 0.4, 0.2, 0.1, 0.05, 0.02, 0.01]).astype(F)
    tables = [("c", np.cos(angles)), ("s", np.sin(angles))]
    names = ["q", "k", "v", "pk", "pv", "len", "total", "c", "s"]

    def group(name, n, t, past, total, lengths, packed=False, given=(), **attributes):
        heads, kv = 4, 2
        attributes = {"num_heads": heads, "kv_num_heads": kv, "do_rotary": 1, **attributes}
        wide = [("q", real(n, t, (heads + 2 * kv) * 16))] if packed else [
            ("q", real(n, t, heads * 16)), ("k", real(n, t, kv * 16)), ("v", real(n, t, kv * 16))]
        used = ["q", "", "", *names[3:]] if packed else list(names)
        used += [g[0] if g else "" for g in given]
        used = used if past else [*used[:3], "", "", *used[5:]]
        write("group_query_" + name,
              [node("GroupQueryAttention", used, ["y", "nk", "nv"], MS, **attributes)],
              [*wide, *([("pk", real(n, kv, past, 16)), ("pv", real(n, kv, past, 16))]
                        if past else []),
               ("len", np.array(lengths, S32)), *[g for g in given if g]],
              [("total", S32(total)), *tables],  # what is behind the keys is never read
              ["y", "nk", "nv"] if len(set(lengths)) == 1 else ["y"])

    group("first", 2, 5, 0, 5, [4, 4])
    group("next", 1, 1, 6, 7, [6])
    group("several", 1, 3, 4, 7, [6])
    group("packed", 1, 1, 6, 7, [6], packed=True, rotary_interleaved=1)
    group("window", 1, 1, 9, 10, [9], local_window_size=4, softcap=2.0)
    group("plain", 2, 4, 0, 4, [3, 3], do_rotary=0, scale=0.3, local_window_size=2)
    group("uneven", 2, 1, 8, 8, [7, 4])
    bias = ("bias", real(1, 4, 1, 7))
    group("bias", 1, 1, 6, 7, [6], given=[None, bias])
    group("smooth", 1, 1, 6, 7, [6], smooth_softmax=1)
    x, bias = real(2, 5, 2, 3, 4), real(24)
    apart = [node("Gather", ["x", f"i{i}"], [f"x{i}"], axis=3) for i in range(3)]
    apart += [node("Reshape", [f"x{i}", "flat"], [f"f{i}"]) for i in range(3)]
    places = [*((f"i{i}", S64(i)) for i in range(3)), ("flat", np.array([0, 0, -1], S64))]
    write("multi_head_packed", [node("MultiHeadAttention", ["x", "", "", "b"], domain=MS,
                                     num_heads=2)], [("x", x)], [("b", bias), *places],
          like=[*apart, node("MultiHeadAttention", ["f0", "f1", "f2", "b"], domain=MS,
                             num_heads=2)])
    write("multi_head_packed_kv", [node("MultiHeadAttention", "qx", domain=MS, num_heads=2)],
          [("q", real(2, 3, 8)), ("x", x[:, :, :, :2])], places,
          like=[*apart[:2], *apart[3:5], node("MultiHeadAttention", ["q", "f0", "f1"], domain=MS,
                                              num_heads=2)])
    write("multi_head_causal", [node("MultiHeadAttention", "xkv", domain=MS, num_heads=2,
                                     unidirectional=1)],
          [("x", real(2, 5, 8)), ("k", real(2, 5, 8)), ("v", real(2, 5, 8))])


def few_bits():
    for kind in (0, 1):
        weights = stored(U8, 24 * 32 // 2)
        write(f"matmul_bnb4_{kind}",
              [node("MatMulBnb4", "xws", domain=MS, K=32, N=24, block_size=16, quant_type=kind)],
              [("x", real(3, 32))], [("w", weights), ("s", np.abs(real(48)) + F(0.1))])
    i = ("i", np.array([[0, 5, 2], [7, 7, 1]], S64))
    for name, bits, zeros in (("4", 4, True), ("4_middle", 4, False), ("8", 8, True)):
        packed = 8 // bits
        constants = [("d", stored(U8, 8, 48 // packed)), ("s", np.abs(real(8, 3)) + F(0.1)),
                     ("z", stored(U8, 8, -(-3 // packed)))][:3 if zeros else 2]
        write("gather_blocks_" + name,
              [node("GatherBlockQuantized", ["d", "i", "s", "z"][:4 if zeros else 3], domain=MS,
                    bits=bits, block_size=16, gather_axis=0, quantize_axis=1)], [i], constants)
    quantized = [("r", F(0.02)), ("z", U8(120)), ("t", F(0.013)), ("k", U8(100))]
    for keeps in (0, 1):
        write(f"q_mean_{keeps}", [node("QLinearReduceMean", "xrztk", domain=MS, axes=[2, 3],
                                       keepdims=keeps)],
              [("x", stored(U8, 2, 3, 4, 5))], quantized,
              like=[node("DequantizeLinear", "xrz", ["f"]),
                    node("ReduceMean", "f", ["m"], axes=[2, 3], keepdims=keeps),
                    node("QuantizeLinear", "mtk")])


def volumes():
    grid = ("g", (RNG.integers(-44, 45, (2, 2, 3, 4, 3)) / 32).astype(F))
    for padding in ("zeros", "border", "reflection"):
        for mode, corners in (("linear", 0), ("linear", 1), ("nearest", 0)):
            write(f"volume_{padding}_{mode}_{corners}",
                  [node("GridSample", "xg", mode=mode, padding_mode=padding,
                        align_corners=corners)], [("x", real(2, 3, 4, 5, 6)), grid], opset=20)


def others():
    """Of com.microsoft what converters and optimizers write now and then."""
    x = real(3, 5)
    for metric in ("euclidean", "sqeuclidean"):
        write("cdist_" + metric, [node("CDist", "xy", ["z"], MS, metric=metric)],
              [("x", real(4, 3)), ("y", real(5, 3))], outputs=["z"])
    write("expand_dims", [node("ExpandDims", "xa", domain=MS)], [("x", x)], [("a", S32(-1))])
    write("pad_ms", [node("Pad", "xpv", domain=MS, mode="constant")], [("x", x)],
          [("p", np.array([1, 0, 0, 2], S64)), ("v", F(0.5))])
    write("gather_nd_ms", [node("GatherND", "xi", domain=MS)], [("x", x)],
          [("i", np.array([[0, 1], [2, 4]], S64))])


def contributed():
    """Other operators of com.microsoft: what ONNX Runtime's quantizer and its optimizers write."""
    x = real(2, 3, 8)
    codes = [("x", x), ("s", np.array([0.02, 0.03, 0.05], F))]
    zeros = [("z", np.array([3, -200, 1000], np.int16))]
    write("quantize_16_bits",
          [node("QuantizeLinear", "xsz", "q", MS, axis=1),
           node("DequantizeLinear", "qsz", "y", MS, axis=1)], codes[:1], [*codes[1:], *zeros],
          ["q", "y"])
    c, a, b = RNG.integers(0, 2, (3, 4)) > 0, stored(U8, 3, 4), stored(U8, 1, 4)
    scales = [(n, F(v)) for n, v in (("r", 0.02), ("t", 0.03), ("u", 0.04))]
    zero = [(n, U8(v)) for n, v in (("k", 120), ("l", 130), ("m", 110))]
    write("q_where", [node("QLinearWhere", "carkbtlum", domain=MS)],
          [("c", c), ("a", a), ("b", b)], scales + zero)
    write("trilu", [node("Trilu", "xk", domain=MS, upper=0)], [("x", real(2, 4, 5))],
          [("k", S64(-1))])
    grid = (RNG.integers(-40, 41, (1, 3, 4, 2)) / 32).astype(F)
    write("grid_sample_ms", [node("GridSample", "xg", domain=MS, mode="bilinear",
                                  padding_mode="border", align_corners=1)],
          [("x", real(1, 2, 5, 4)), ("g", grid)])
    angles = np.outer(np.arange(9), [1, 0.4, 0.1, 0.02]).astype(F)
    tables = [("c", np.cos(angles)), ("s", np.sin(angles))]
    for name, given, places, attributes in (
            ("rotary_ms", real(2, 3, 16), np.array([[0, 3, 1], [5, 8, 2]], S64), {}),
            ("rotary_ms_offset", real(2, 3, 16), np.array([4], S64), {"interleaved": 1}),
            ("rotary_ms_heads", real(2, 2, 3, 8), np.array([1], S64), {}),
            ("rotary_ms_part", real(2, 3, 24), np.array([2], S64),
             {"num_heads": 2, "rotary_embedding_dim": 8})):
        write(name, [node("RotaryEmbedding", "xpcs", domain=MS, **attributes)],
              [("x", given), ("p", places)], tables)
    for name, count in (("dynamic_lstm", 1), ("dynamic_lstm_columns", 2)):
        w, r = stored(S8, count, 5, 16), stored(S8, count, 4, 16)
        size = (count,) if count == 1 else (count, 16)
        constants = [("w", w), ("r", r), ("b", real(count, 32)),
                     ("s", F(0.01) + real(*size, scale=1e-3)), ("z", np.zeros(size, S8)),
                     ("t", F(0.02) + real(*size, scale=1e-3)), ("k", np.zeros(size, S8))]
        inputs = ["x", "w", "r", "b", "", "", "", "", "s", "z", "t", "k"]
        write(name, [node("DynamicQuantizeLSTM", inputs, ["y", "h", "c"], MS, hidden_size=4,
                          direction="bidirectional" if count == 2 else "forward")],
              [("x", real(6, 1, 5))], constants, ["y", "h", "c"])  # of several, threads decide
    stored_x, weights = stored(U8, 2, 5, 8), stored(S8, 8, 24)
    constants = [("w", weights), ("b", real(24)), ("s", F(0.02)), ("t", F(0.01)), ("k", U8(121)),
                 ("z", S8(0))]
    mask = ("m", np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], S32))
    write("q_attention", [node("QAttention", "xwbstmkz", domain=MS, num_heads=2)],
          [("x", stored_x), mask], constants)


def refers(made, attribute, to, kind):
    """A node of a function whose attribute is one of the function's caller."""
    made.attribute.add(name=attribute, ref_attr_name=to, type=kind)
    return made


def functions():
    """Operators that the model defines itself: attributes of the caller, left out or not, an input
    that is left out, a function in a function, one in a branch."""
    real_kind, int_kind = onnx.AttributeProto.FLOAT, onnx.AttributeProto.INT
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    leaky = helper.make_function(
        "own", "Leaky", ["x"], ["y"],
        [refers(node("LeakyRelu", "x"), "alpha", "slope", real_kind)], sets, ["slope"])
    bounded = helper.make_function(
        "own", "Bounded", ["x", "low", "high"], ["y", "least"],
        [node("Clip", ["x", "low", "high"], ["c"]),
         refers(node("Leaky", "c", "y", domain="own"), "slope", "steepness", real_kind),
         refers(node("ReduceMin", "y", ["least"]), "keepdims", "keeps", int_kind)],
        sets, ["keeps"], [helper.make_attribute("steepness", 0.5)])
    branch = [helper.make_graph([node("Leaky", "a", ["r"], "own", slope=s)], "branch", [],
                                [helper.make_empty_tensor_value_info("r")]) for s in (0.1, 0.9)]
    nodes = [node("Bounded", ["x", "low", "high"], ["a", "least"], "own", keeps=1),
             node("Bounded", ["x", "", "high"], ["b", "unused"], "own", keeps=0, steepness=2.0),
             node("If", "p", ["c"], then_branch=branch[0], else_branch=branch[1]),
             node("Sum", ["b", "c", "least"], ["y"])]
    write("functions", nodes, [("x", real(3, 4)), ("p", np.array(True))],
          [("low", F(-1)), ("high", F(1))], functions=[bounded, leaky])


def outside(x):
    """Numbers of 8 bits and less as they come in and go out."""
    if x.dtype.type.__module__ != "ml_dtypes":
        return x
    return x.view(U8) if "float" in x.dtype.name else x.astype(S8 if x.dtype.name[0] == "i" else U8)


def narrow():
    """Casts to and from these, beside ml_dtypes: all numbers that there are, and numbers on,
    between and beyond those."""
    for name in ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1",
                 "INT4", "UINT4", "INT2", "UINT2"):
        if sys.argv[1:] and "narrow_" + name.lower() not in sys.argv[1:]:
            continue
        kind = TensorProto.DataType.Value(name)
        dtype = helper.tensor_dtype_to_np_dtype(kind)
        is_real = name.startswith("FLOAT")
        codes = np.arange(256 if "8" in name else 16, dtype=U8).view(dtype) if is_real else \
            np.arange(ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max + 1).astype(dtype)
        c = codes[np.isfinite(codes.astype(F))]
        steps = np.sort(np.unique(c.astype(F)))
        x = np.concatenate([steps, (steps[1:] + steps[:-1]) / 2, steps * F(1.03), real(40, scale=4),
                            [-0.0, 1e-30, 1e30, -1e30, np.inf, -np.inf, np.nan]]).astype(F)
        x = x if is_real else np.arange(-20, 20.5, 0.5, dtype=F)
        most = steps[-1]
        saturated = np.where(np.isnan(x), x, np.clip(x, -most, most)) if is_real else x
        ports = [("x", x, TensorProto.FLOAT), ("c", c, kind), ("y", x.astype(dtype), kind),
                 ("z", c.astype(F), TensorProto.FLOAT), ("s", saturated.astype(dtype), kind)]
        infos = [helper.make_tensor_value_info(n, k, a.shape) for n, a, k in ports]
        kept = [numpy_helper.from_array(outside(a), ("given:" if n in "xc" else "wanted:") + n)
                for n, a, _ in ports]
        loose = {"saturate": 0} if is_real and "8" in name else {}
        nodes = [node("Cast", "x", "y", to=kind, **loose), node("Cast", "c", "z", to=1),
                 node("Cast", "x", "s", to=kind)]
        graph = helper.make_graph(nodes, "g", infos[:2], infos[2:], kept)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
        made.producer_name = f"answers: ml_dtypes {ml_dtypes.__version__}"
        (FOLDER / f"narrow_{name.lower()}.onnx").write_bytes(made.SerializeToString())
        print("narrow_" + name.lower())


def dynamic_layers():
    """As ONNX Runtime's quantize_dynamic writes them: data is quantized at run time, and the sums
    of whole numbers are multiplied by both scales. Two layers share one quantization."""
    def layer(op, x, name, **attributes):
        return [node(op, [x + "q", name, x + "z", name + "z"], [name + "i"], **attributes),
                node("Cast", [name + "i"], [name + "f"], to=1),
                node("Mul", [x + "s", name + "s"], [name + "p"]),
                node("Mul", [name + "f", name + "p"], [name + "m"]),
                node("Add", [name + "m", name + "b"], [name + "y"])]

    def quantize(x):
        return node("DynamicQuantizeLinear", [x], [x + "q", x + "s", x + "z"])

    def weights(name, data, scale, bias):
        z = np.array(100, U8) if data.dtype == U8 else np.array(0, S8)
        return [(name, data), (name + "s", scale), (name + "z", z), (name + "b", bias)]

    write("dynamic_convolutions",
          [quantize("x"), *layer("ConvInteger", "x", "a", pads=[1, 1, 1, 1]),
           *layer("ConvInteger", "x", "d", group=4, strides=[2, 1]),
           *layer("ConvInteger", "x", "g", group=2), node("Relu", ["ay"], ["r"]),
           quantize("r"), *layer("ConvInteger", "r", "c")],
          [("x", real(2, 4, 7, 6) + F(0.3))],
          [*weights("a", stored(U8, 6, 4, 3, 3), F(0.01), real(6, 1, 1)),
           *weights("d", stored(S8, 4, 1, 3, 3), F(0.02), real(4, 1, 1)),
           *weights("g", stored(U8, 4, 2, 1, 1), F(0.02), real(4, 1, 1)),
           *weights("c", stored(U8, 5, 6, 1, 1), F(0.015), real(5, 1, 1))],
          ("ay", "dy", "gy", "cy"))
    write("dynamic_products",
          [quantize("x"), *layer("MatMulInteger", "x", "a"), *layer("MatMulInteger", "x", "c"),
           *layer("MatMulInteger", "x", "e")],
          [("x", real(2, 3, 12) - F(0.4))],
          [*weights("a", stored(S8, 12, 6), (np.abs(real(6)) + F(0.1)) * F(0.01), real(6)),
           *weights("c", stored(U8, 12, 5), F(0.01), real(5)),
           *weights("e", stored(U8, 2, 12, 4), F(0.01), real(4))],
          ("ay", "cy", "ey"))


def main():
    FOLDER.mkdir(exist_ok=True)
    for make in (layers, normalizations, attention, blocks, integers, qlinear, ml, narrow,
                 functions, contributed, machines, labels_and_categories, more_trees, caches,
                 few_bits, others, volumes, turns, regions, dynamic_layers, newest,
                 optimized, position_biases, channels_last,
                 many_classes, recurrent, converted, former, expanded, softmax_steps,
                 listed, fewer_bits, odd_trees, joined, holes):
        make()


def regions():
    """Pools of regions: the first column is the number of the image."""
    boxes = np.concatenate([RNG.integers(0, 2, (6, 1)), RNG.integers(0, 7, (6, 4))], 1).astype(F)
    write("max_roi_pool", [node("MaxRoiPool", "xb", pooled_shape=[3, 2], spatial_scale=0.5)],
          [("x", real(2, 3, 8, 10)), ("b", boxes)], opset=16)


def newest():
    """What ONNX Runtime does not know, or not in these types."""
    def define(name, op, given, constants=(), outputs=("y",), opset=28, **attributes):
        inputs = [n for n, _ in [*given, *constants]]
        write(name, [node(op, inputs, outputs, **attributes)], given, constants, outputs, opset,
              by_definition=True)

    large = RNG.integers(0, 2**53, (3, 9)).astype(np.uint64) << np.uint64(11)  # whole as doubles
    for name, largest in (("top_k_u64", 1), ("bottom_k_u64", 0)):
        define(name, "TopK", [("x", large)], [("k", S64([4]))], ("y", "i"), 24, largest=largest)
    for dtype in (U8, S8, np.uint32, S64):
        x = stored(dtype, 4, 12)
        bits = x.itemsize * 8
        counts = [0, 1, bits - 1, bits, bits + 3, 3, *([-1, -bits] if x.dtype.kind == "i" else [])]
        for direction in ("RIGHT", "LEFT"):
            define(f"shift_{direction.lower()}_{x.dtype.name}", "BitShift",
                   [("x", x), ("n", np.resize(np.array(counts, dtype), x.shape))],
                   direction=direction)
    define("space_to_depth_columns", "SpaceToDepth", [("x", real(2, 3, 4, 6))], blocksize=2,
           mode="CRD")
    lines = real(3, 4)
    lines[1] = 0
    for p in (1, 2):
        write(f"norm_of_zeros_{p}", [node("LpNormalization", "x", p=p)], [("x", lines)])
    for op in ("ReduceMax", "ReduceMin"):
        name = op[-3:].lower() + "_of_"
        x, axis = [("x", real(2, 3, 4) > 1)], ("a", S64([1]))
        define(name + "flags", op, x, [axis], opset=20)
        write(name + "no_flags", [node("Slice", "xooa", "n"), node(op, "na")], x,
              [axis, ("o", S64([1]))], opset=20, by_definition=True)
    sizes = np.concatenate([2.0 ** np.arange(-9, 9), real(30, scale=8), [0, 1e30, np.inf, np.nan,
                                                                         3 * 2.0**126]]).astype(F)
    for rounding in ("up", "down", "nearest"):
        write("powers_of_two_" + rounding,
              [node("Cast", "x", to=TensorProto.FLOAT8E8M0, round_mode=rounding)], [("x", sizes)],
              opset=25, by_definition=True)
    region = np.array([0.1, -0.3, 0.9, 1.2], F)
    for mode in ("nearest", "linear"):
        write(f"resize_regions_{mode}",
              [node("Resize", ["x", "r", "", "s"], axes=[3, 2], mode=mode, extrapolation_value=-1.0,
                    coordinate_transformation_mode="tf_crop_and_resize")],
              [("x", real(2, 3, 6, 7))], [("r", region), ("s", S64([5, 4]))], opset=19)


def gelu(x, y):
    return node("Gelu", [x], [y], MS)


def optimized():
    """What optimizers write for other processors. like: the same in operators that run here."""
    x, skip = real(2, 5, 4, 12), real(2, 12)
    norm = [("g", real(12)), ("b", real(12))]
    shapes = [("gn", S64([12, 1, 1])), ("xs", S64([2, 12, 5, 4])), ("gs", S64([2, 4, -1])),
              ("one", np.ones(4, F)), ("none", np.zeros(4, F)), ("row", S64([2, 1, 1, 12])),
              ("k", real(12))]

    def apart(given, is_last, silu):
        nodes = [node("Transpose" if is_last else "Identity", [given], ["f"],
                      **({"perm": [0, 3, 1, 2]} if is_last else {})),
                 node("Reshape", ["f", "gs"], ["r"]),
                 node("InstanceNormalization", ["r", "one", "none"], ["i"], epsilon=1e-3),
                 node("Reshape", ["i", "xs"], ["n"]), node("Reshape", ["g", "gn"], ["gc"]),
                 node("Reshape", ["b", "gn"], ["bc"]), node("Mul", ["n", "gc"], ["m"]),
                 node("Add", ["m", "bc"], ["a"])]
        nodes += [node("Sigmoid", "a", "s"), node("Mul", "as", "w")] if silu else \
            [node("Identity", "a", "w")]
        return [*nodes, node("Transpose", "w", perm=[0, 2, 3, 1]) if is_last else
                node("Identity", "w")]

    for name, is_last, silu in (("", 1, 0), ("_silu", 1, 1), ("_channels_first", 0, 1)):
        given = x if is_last else x.transpose(0, 3, 1, 2).copy()
        write("group_norm" + name,
              [node("GroupNorm", "xgb", domain=MS, groups=4, activation=silu, epsilon=1e-3,
                    channels_last=is_last)],
              [("x", given)], norm + shapes, like=apart("x", is_last, silu))
    for name, other in (("", real(2, 5, 4, 12)), ("_of_channels", skip)):
        write("skip_group_norm" + name,
              [node("SkipGroupNorm", "xgbtk", "yz", MS, groups=4, activation=1, epsilon=1e-3)],
              [("x", x), ("t", other)], norm + shapes, "yz",
              like=[node("Reshape", ["t", "row"], ["t2"]) if other.ndim == 2 else
                    node("Identity", "t", ["t2"]), node("Add", ["x", "t2"], ["x2"]),
                    node("Add", ["x2", "k"], "z"), *apart("z", 1, 1)])
    write("bias_add", [node("BiasAdd", "xbs", domain=MS)],
          [("x", real(2, 5, 8)), ("s", real(2, 5, 8))], [("b", real(8))],
          like=[node("Add", "xb", "t"), node("Add", "ts")])
    write("bias_split_gelu", [node("BiasSplitGelu", "xb", domain=MS)], [("x", real(2, 5, 8))],
          [("b", real(8)), ("h", S64([4, 4]))],
          like=[node("Add", "xb", "t"), node("Split", "th", "uv", axis=-1), gelu("v", "w"),
                node("Mul", "uw")])
    write("gemm_fast_gelu", [node("GemmFastGelu", "xwb", domain=MS)], [("x", real(2, 3, 5))],
          [("w", real(5, 4)), ("b", real(4))],
          like=[node("MatMul", "xw", "m"), node("FastGelu", "mb", domain=MS)])
    for axis, bias in ((3, (2, 1, 1, 5)), (2, (4, 5))):
        write(f"bias_softmax_{axis}",
              [node("BiasSoftmax", "xb", domain=MS, axis=axis, is_inner_broadcast=axis // 3)],
              [("x", real(2, 3, 4, 5)), ("b", real(*bias))], [("f", S64([2, 3, -1])),
                                                              ("s", S64([2, 3, 4, 5]))],
              like=[node("Add", "xb", "a"), node("Softmax", "a", axis=-1)] if axis == 3 else
              [node("Add", "xb", "a"), node("Reshape", "af", "r"),
               node("Softmax", "r", "q", axis=-1), node("Reshape", "qs")])
    weights = real(6, 3, 3, 2)
    write("nhwc_conv", [node("NhwcConv", "xwb", domain=MS, pads=[1, 0, 1, 2], strides=[2, 1],
                             group=2, kernel_shape=[3, 3])],
          [("x", real(1, 7, 6, 4))], [("w", weights), ("b", real(6))],
          like=[node("Transpose", "x", "t", perm=[0, 3, 1, 2]),
                node("Transpose", "w", "v", perm=[0, 3, 1, 2]),
                node("Conv", "tvb", "c", pads=[1, 0, 1, 2], strides=[2, 1], group=2),
                node("Transpose", "c", perm=[0, 2, 3, 1])])
    gate_constants = [("b", real(12)), ("w", real(4, 8)), ("c", real(8)), ("e", real(1, 3, 1, 1)),
                      ("qs", S64([2, 5, 3, 4])), ("hs", S64([2, 3, 5, 2, 4])), ("l", S64([-1])),
                      ("o", F(1)), ("t", F(2)), ("p", S64([1, 1]))]
    write("gated_position_bias",
          [node("GatedRelativePositionBias", "xbrwce", domain=MS, num_heads=3)],
          [("x", real(2, 5, 12)), ("r", real(1, 3, 5, 5))], gate_constants,
          like=[node("Add", "xb", "a"), node("Reshape", ["a", "qs"], ["h"]),
                node("Transpose", "h", "q", perm=[0, 2, 1, 3]), node("MatMul", "qw", "m"),
                node("Add", "mc", "n"), node("Reshape", ["n", "hs"], ["f"]),
                node("ReduceSum", "fl", "s", keepdims=0), node("Sigmoid", "s", "g"),
                node("Split", "gp", "uv", axis=-1), node("Mul", "ve", ["ve"]),
                node("Sub", ["ve", "o"], ["w1"]), node("Mul", ["u", "w1"], ["uw"]),
                node("Add", ["uw", "t"], ["gate"]), node("Mul", ["gate", "r"])])


def many_classes():
    """One support vector for each of more classes than one digit counts."""
    count, pairs = 50, 50 * 49 // 2
    centers = real(count, 3, scale=2)
    beats = np.arange(count - 1)[:, None] >= np.arange(count)
    write("svm_many_classes",
          [node("SVMClassifier", "x", ["label", "y"], ML, classlabels_ints=list(range(count)),
                coefficients=(np.abs(real(count - 1, count)) * np.where(beats, 1, -1)).ravel(),
                kernel_params=[0.2, 0, 3], kernel_type="RBF", prob_a=-1 - np.abs(real(pairs)),
                prob_b=real(pairs, scale=0.1), rho=real(pairs, scale=0.1),
                support_vectors=centers.ravel(), vectors_per_class=[1] * count)],
          [("x", centers[:6] + real(6, 3, scale=0.2))], outputs=["label", "y"])


def position_biases():
    """T5's buckets of distances, as its paper describes them."""
    for both, queries, keys in ((1, 9, 40), (0, 40, 9)):
        distance = np.arange(keys) - np.arange(queries)[:, None]
        count = 16 // (1 + both)
        far = np.abs(distance) if both else np.maximum(-distance, 0)
        exact = count // 2
        with np.errstate(divide="ignore"):
            steps = np.log(far / exact) / np.log(20 / exact) * (count - exact)
        bucket = np.where(far < exact, far, exact + np.minimum(steps, count - exact - 1))
        bucket = bucket.astype(S64) + np.where(distance > 0, count, 0) * both
        write(f"position_bias_{both}",
              [node("RelativePositionBias", "tqk", "p", MS, max_distance=20, is_bidirectional=both),
               node("Add", "xp")], [("x", real(1, 3, queries, keys))],
              [("t", real(16, 3)), ("q", S64([queries])), ("k", S64([keys])), ("i", bucket),
               ("z0", S64([0]))],
              like=[node("Gather", "ti", "g"), node("Transpose", "g", "r", perm=[2, 0, 1]),
                    node("Unsqueeze", ["r", "z0"], ["p"]), node("Add", "xp")])


def graph(nodes, inputs, outputs):
    """inputs, outputs: pairs of name and type; those of these names are scalars."""
    flat = ("it", "go", "d", "jt", "jo", "f")
    infos = [[helper.make_tensor_value_info(n, t, [] if n in flat else None) for n, t in ports]
             for ports in (inputs, outputs)]
    return helper.make_graph(nodes, "body", *infos)


def turns():
    """Loops whose end and shapes data decides."""
    f32, s64, flag = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    x, limit = abs(real(6, 3)) + F(0.25), np.array(16, F)
    constants = [("one", S64([1])), ("zero", S64([0])), ("yes", np.array(True)),
                 ("half", np.array(0.5, F)), ("start", np.zeros(1, S64)), ("last", S64([6])),
                 ("acc", np.zeros(3, F)), ("many", np.array(1024, S64))]
    heads = [("it", s64), ("go", flag)]

    # Row n of x by a slice whose bounds count, until the sum of what was seen is large.
    row = [node("Add", ["n", "one"], ["next"]), node("Min", ["next", "last"], ["end"]),
           node("Slice", ["x", "n", "end", "zero"], ["rows"]),
           node("Squeeze", ["rows", "zero"], ["r"]), node("Add", "ar", "s"),
           node("ReduceSum", "s", "t", keepdims=0), node("Less", ["t", "most"], "d")]
    body = graph([*row, node("Mul", ["r", "half"], "h")], [*heads, ("n", s64), ("a", f32)],
                 [("d", flag), ("next", s64), ("s", f32), ("h", f32)])
    loop = node("Loop", ["many", "yes", "start", "acc"], ["n_", "y", "list"], body=body)
    given = [("x", x), ("most", limit)]
    write("turns_slice", [loop], given, constants, ["y", "list", "n_"])
    write("turns_once", [loop], [("x", x), ("most", np.array(0, F))], constants, ["y", "list"])
    asked = [node("Less", ["half", "most"], ["first"]),
             node("Loop", ["many", "first", "start", "acc"], ["n_", "y", "list"], body=body)]
    write("turns_none", asked, [("x", x), ("most", np.array(0, F))], constants, ["y", "list"])
    write("turns_first_asked", asked, given, constants, ["y", "list"])

    # In a branch, between nodes that the loop, the branch and the rest of the model need.
    branch = graph([node("Mul", ["x", "half"], "u"),
                    node("Loop", ["many", "yes", "start", "acc"], ["n_", "z", "list"],
                         body=graph([*row, node("ReduceMax", "u", "k", keepdims=0),
                                     node("Mul", "rk", "h")],
                                    [*heads, ("n", s64), ("a", f32)],
                                    [("d", flag), ("next", s64), ("s", f32), ("h", f32)])),
                    node("ReduceSum", ["list", "zero"], ["p"], keepdims=0),
                    node("ReduceMax", "u", "v", keepdims=0), node("Add", "pz", "w"),
                    node("Add", "wv", "q")], [], [("q", f32)])
    other = graph([node("ReduceMin", "x", "q", axes=[0], keepdims=0)], [], [("q", f32)])
    choose = [node("ReduceSum", "x", "e", keepdims=0), node("Greater", ["e", "half"], "c"),
              node("If", "c", "o", then_branch=branch, else_branch=other),
              node("Add", "oe", "y")]
    write("turns_in_branch", choose, given, constants)

    # A value that grows, and a loop in the loop whose lists begin anew.
    inner = graph([node("Mul", ["b", "half"], "g"), node("ReduceSum", "g", "m", keepdims=0),
                   node("Greater", ["m", "half"], "f")],
                  [("jt", s64), ("jo", flag), ("b", f32)], [("f", flag), ("g", f32), ("m", f32)])
    body = graph([*row, node("Unsqueeze", ["r", "zero"], "u"), node("Concat", "wu", "v", axis=0),
                  node("Loop", ["many", "yes", "s"], ["z", "l"], body=inner),
                  node("ReduceSum", "l", "p", keepdims=0)],
                 [*heads, ("n", s64), ("a", f32), ("w", f32)],
                 [("d", flag), ("next", s64), ("s", f32), ("v", f32), ("z", f32), ("p", f32)])
    write("turns_in_turns",
          [node("Slice", ["x", "zero", "one", "zero"], "w"),
           node("Loop", ["many", "yes", "start", "acc", "w"], ["n_", "y", "k", "i", "j"],
                body=body)], given, constants, ["y", "k", "i", "j"])

    # What a turn finds decides a shape of the same turn.
    body = graph([*row, node("Greater", ["r", "half"], "f"), node("NonZero", "f", "i"),
                  node("Shape", "i", "k"), node("Gather", ["k", "one"], "l"),
                  node("Expand", ["half", "l"], "m"), node("ReduceSum", "m", "p", keepdims=0),
                  node("Add", "qp", "u")],
                 [*heads, ("n", s64), ("a", f32), ("q", f32)],
                 [("d", flag), ("next", s64), ("s", f32), ("u", f32)])
    write("turns_found",
          [node("Loop", ["many", "yes", "start", "acc", "half"], ["n_", "y", "z"], body=body)],
          given, constants, ["y", "z"])


def channels_last():
    """Convolutions of sequences and volumes in the layout that ONNX Runtime's optimizer chooses."""
    for rank in (3, 5):
        space = (7, 6, 5)[:rank - 2]
        constants = [("w", stored(S8, 4, 3, *[3] * (rank - 2))), ("xs", np.array(0.02, F)),
                     ("xz", np.array(120, U8)), ("ws", real(4) / 999 + F(0.02)),
                     ("wz", np.zeros(4, S8)), ("ys", np.array(1.5, F)), ("yz", np.array(7, U8))]
        write(f"qlinear_conv_channels_last_{rank}",
              [node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], domain=MS,
                    channels_last=1, pads=[1] * (2 * rank - 4))],
              [("x", stored(U8, 2, *space, 3))], constants)


def recurrent():
    """Layers whose functions have numbers of their own, by lists or as their operators have them.
    """
    def layer(name, op, gates, ways, outputs, **attributes):
        constants = [("w", real(ways, gates * 4, 3, scale=0.5)),
                     ("r", real(ways, gates * 4, 4, scale=0.5)), ("b", real(ways, 2 * gates * 4))]
        write(name, [node(op, "xwrb", outputs, hidden_size=4, **attributes)],
              [("x", real(5, 2, 3))], constants, outputs)

    layer("lstm_activations", "LSTM", 4, 2, ["y", "h", "c"], direction="bidirectional", clip=1.5,
          activations=["HardSigmoid", "Softsign", "ScaledTanh", "Sigmoid", "Affine", "Elu"],
          activation_alpha=[0.3, 0.9, 0.75, 0.5], activation_beta=[0.4, 0.8, 0.125])
    layer("gru_activations", "GRU", 3, 1, ["y", "h"], direction="reverse", linear_before_reset=1,
          activations=["HardSigmoid", "LeakyRelu"])
    layer("rnn_activations", "RNN", 1, 2, ["y", "h"], direction="bidirectional",
          activations=["Softplus", "ThresholdedRelu"], activation_alpha=[0.25])


def converted():
    """What converters write of com.microsoft where ai.onnx has nothing."""
    boxes = np.array([[0, 0, 1, 1], [0.25, 0.5, 0.75, 1.5], [0.9, 0.1, 0.1, 0.6]], F)
    for mode in ("bilinear", "nearest"):
        write("crop_and_resize_" + mode,
              [node("CropAndResize", "xbis", domain=MS, mode=mode, extrapolation_value=-1.5)],
              [("x", real(2, 3, 7, 9)), ("b", boxes), ("i", np.array([0, 1, 1], S32))],
              [("s", np.array([4, 3], S32))])
    write("crop_and_resize_middle", [node("CropAndResize", "xbis", domain=MS)],
          [("x", real(2, 3, 7, 9)), ("b", boxes), ("i", np.array([0, 1, 1], S32))],
          [("s", np.array([1, 1], S32))])
    write("inverse", [node("Inverse", "x", domain=MS)],
          [("x", real(2, 4, 4) + 4 * np.eye(4, dtype=F))])
    write("matmul_16", [node("MatMulInteger16", "xw", domain=MS)],
          [("x", stored(np.int16, 3, 5))], [("w", stored(np.int16, 5, 4))])
    texts = np.array([["", "a", "Grüße"], ["feature=7", "yes", "x" * 40]], object)
    write("murmur_hash_texts", [node("MurmurHash3", "x", domain=MS, positive=0, seed=3)],
          [("x", texts)])
    write("murmur_hash_numbers", [node("MurmurHash3", "x", domain=MS)], [("x", stored(S32, 2, 5))])
    write("unfold_tensor", [node("UnfoldTensor", "x", domain=MS, dim=1, size=3, step=2)],
          [("x", real(2, 8, 3))])
    write("unique_ms", [node("Unique", "x", ["y", "i", "c"], MS)],
          [("x", np.array([2, 1, 1, 3, 4, 3, 2, 2], F))], outputs=["y", "i", "c"])


def former():
    """What ai.onnx had on trial before opset 7."""
    x = real(2, 3, 6, 7)
    for op, attributes in (("Affine", {"alpha": 0.5, "beta": -2.0}), ("Scale", {"scale": 1.5}),
                           ("ScaledTanh", {"alpha": 1.5, "beta": 0.75}),
                           ("ParametricSoftplus", {"alpha": 0.5, "beta": 2.0}),
                           ("ImageScaler", {"scale": 0.25, "bias": [0.5, 1.0, -3.0]}),
                           ("Crop", {"border": [1, 2, 0, 1]})):
        write("former_" + op.lower(), [node(op, "x", **attributes)], [("x", x)], opset=9)
    write("former_crop_size", [node("Crop", "x", border=[1, 2, 0, 1], scale=[2, 5])], [("x", x)],
          opset=9)
    write("former_dynamicslice", [node("DynamicSlice", "xsea")], [("x", x)],
          [("s", S64([1, 0])), ("e", S64([5, 2])), ("a", S64([3, 1]))], opset=9)


def expanded():
    """x[rows] = y, as exporters write it: one index for each row, expanded; and indices that are
    expanded, but name no whole rows."""
    y = real(3, 2, 2)
    for name, indices, target, axis in (
            ("rows", [[[3]], [[-5]], [[1]]], (3, 2, 2), 0),
            ("part", [[[3]], [[-5]], [[1]]], (3, 2, 1), 0),
            ("columns", [[[1], [-2]]], (1, 2, 2), 1),
            ("mixed", [[[3], [0]], [[-5], [2]], [[1], [1]]], (3, 2, 2), 0)):
        for reduction in ("none", "add"):
            write(f"scatter_expanded_{name}_{reduction}",
                  [node("Expand", "is", "e"),
                   node("ScatterElements", "xey", "z", axis=axis, reduction=reduction)],
                  [("x", real(5, 2, 2)), ("i", S64(indices)),
                   ("y", y[tuple(slice(n) for n in target)])],
                  [("s", S64(target))], outputs=["z"], opset=18)


def softmax_steps():
    """Scales whose inverse is no whole number: ONNX Runtime cuts it off."""
    for name, dtype, scale in (("255", U8, 1 / 255), ("signed", S8, 0.0045)):
        constants = [("xs", F(0.05)), ("xz", np.array(3, dtype)), ("ys", F(scale)),
                     ("yz", np.array(np.iinfo(dtype).min, dtype))]
        write("qlinear_softmax_" + name,
              [node("QLinearSoftmax", ["x", "xs", "xz", "ys", "yz"], ["q"], MS, axis=-1, opset=13),
               node("DequantizeLinear", ["q", "ys", "yz"])],
              [("x", stored(dtype, 6, 7))], constants, outputs=("q", "y"))


def listed():
    """A large value of 8-bit floats that the file lists among its inputs, too, and flags of which
    one is 7."""
    if sys.argv[1:] and "listed" not in sys.argv[1:]:
        return
    w = (np.arange(9000) % 120).astype(U8).view(ml_dtypes.float8_e4m3fn)
    x, flags = real(8), np.array([0, 7, 1, 128, 0, 0, 255, 1], U8)
    y = x + np.where(flags != 0, w[:8].astype(F), F(-1))
    constants = [numpy_helper.from_array(w, "w"),
                 TensorProto(name="k", data_type=TensorProto.BOOL, dims=[8],
                             raw_data=flags.tobytes()),
                 *(constant(a, n) for n, a in (("b", S64([0])), ("e", S64([8])), ("m", F(-1)),
                                               ("given:x", x), ("wanted:y", y),
                                               ("wanted:c", (flags != 0).astype(F))))]
    nodes = [node("Cast", "w", "f", to=1), node("Slice", "fbe", "s"), node("Where", "ksm", "t"),
             node("Add", "xt"), node("Cast", "k", "c", to=1)]
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8]),
             helper.make_tensor_value_info("w", TensorProto.FLOAT8E4M3FN, [9000])]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [8]) for n in "yc"]
    made = helper.make_model(helper.make_graph(nodes, "g", ports, results, constants),
                             opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    made.producer_name = f"answers: ml_dtypes {ml_dtypes.__version__}"
    (FOLDER / "listed.onnx").write_bytes(made.SerializeToString())
    print("listed")


def fewer_bits():
    """Blocks of 2 bits, and zero points that are no whole numbers."""
    x, s = real(2, 3, 40), np.abs(real(5, 3)) + F(0.1)
    for name, bits, zeros in (("2", 2, []), ("2_zeros", 2, [("z", stored(U8, 5, 1))]),
                              ("2_real", 2, [("z", np.abs(real(5, 3)))]),
                              ("4_real", 4, [("z", np.abs(real(5, 3, scale=5)))])):
        write("matmul_bits_" + name,
              [node("MatMulNBits", ["x", "w", "s", *(n for n, _ in zeros)], domain=MS, K=40, N=5,
                    bits=bits, block_size=16)],
              [("x", x)], [("w", stored(U8, 5, 3, 2 * bits)), ("s", s), *zeros])


def odd_trees():
    """As exporters write them: a category of a set has a node each, which lead to one leaf or one
    node; a leaf has its weight several times; leaves name one of two results; two classes have
    votes each."""
    y = {"domain": ML}
    modes = ["BRANCH_EQ"] * 3 + ["BRANCH_LEQ", "BRANCH_GT"] + ["LEAF"] * 3
    rows = [(3, 1.0, 3, 1), (3, 4.0, 3, 2), (3, 7.0, 3, 4), (0, 0.25, 5, 6), (1, -0.5, 5, 7)]
    rows += [(0, 0.0, 0, 0)] * 3
    shared = {"nodes_treeids": [0] * 8, "nodes_nodeids": list(range(8)), "nodes_modes": modes,
              "nodes_featureids": [r[0] for r in rows], "nodes_values": [r[1] for r in rows],
              "nodes_truenodeids": [r[2] for r in rows], "nodes_falsenodeids": [r[3] for r in rows]}
    x = ("x", np.array([[a, b, 0, c] for a in (0, 1) for b in (-1, 1) for c in (1, 4, 7, 9)], F))
    leaves = {"treeids": [0] * 3, "nodeids": [5, 6, 7], "ids": [0] * 3,
              "weights": [1.5, -2.5, 3.25]}
    write("tree_regressor_shared",
          [node("TreeEnsembleRegressor", "x", n_targets=1, **shared,
                **{"target_" + n: v for n, v in leaves.items()}, **y)], [x])
    for name, targets, more in (("repeated", 1, {}), ("repeated_two", 2, {}),
                                ("least_repeated", 2, {"aggregate_function": "MIN"}),
                                ("most_repeated", 2, {"aggregate_function": "MAX"})):
        last = targets - 1
        votes = {"treeids": [0] * 8, "nodeids": [6, 5, 5, 6, 6, 5, 7, 7],
                 "ids": [0, 0, 0, last, 0, last, 0, last],
                 "weights": [2.0, 1.0, 0.5, -3.0, 4.0, 8.0, 0.75, 0.25]}
        write("tree_regressor_" + name,
              [node("TreeEnsembleRegressor", "x", n_targets=targets, **shared, **more,
                    **{"target_" + n: v for n, v in votes.items()}, **y)], [x])
    write("tree_regressor_unnamed",
          [node("TreeEnsembleRegressor", "x", n_targets=2, base_values=[0.5, 0.25], **shared,
                **{"target_" + n: v for n, v in leaves.items()}, **y)], [x])
    for name, weights in (("margins", [-0.75, -0.25, -0.5, 0.25, 0.5, 0.125]),
                          ("shares", [0.75, 0.25] * 3)):
        votes = {"treeids": [0] * 6, "nodeids": [5, 5, 6, 6, 7, 7], "ids": [0, 1] * 3,
                 "weights": weights}
        write("tree_classifier_both_" + name,
              [node("TreeEnsembleClassifier", "x", ["label", "y"], classlabels_strings=["n", "y"],
                    post_transform="SOFTMAX", **shared,
                    **{"class_" + n: v for n, v in votes.items()}, **y)], [x],
              outputs=["label", "y"])


def joined():
    """A flattened picture, changed, becomes a part of a longer row."""
    x, z = ("x", real(3, 1, 6, 5)), ("z", real(3, 4))
    places = [("w", real(2, 1, 3, 3)), ("shape", np.array([3, 24], S64))]
    write("conv_flat_relu_concat",
          [node("Conv", "xw", "c"), node("Transpose", "c", "t", perm=[0, 2, 3, 1]),
           node("Reshape", ["t", "shape"], "f"), node("Relu", "f", "r"),
           node("Concat", "zr", axis=1)], [x, z], places)


def holes():
    """Masks of minus infinity, as ONNX Runtime's quantizer writes them: the scale is infinite."""
    x = ("x", np.array([[-np.inf, 0, 3], [np.nan, np.inf, -2]], F))
    for name, dtype in (("signed", S8), ("unsigned", U8)):
        for kind, scale in (("", F(np.inf)), ("_rows", np.array([np.inf, 0.5], F))):
            zero = np.full(scale.shape, 3, dtype)
            write(f"quantize_holes_{name}{kind}",
                  [node("QuantizeLinear", "xsz", "q", **({"axis": 0} if kind else {})),
                   node("Identity", "q")], [x], [("s", scale), ("z", zero)])


if __name__ == "__main__":
    main()

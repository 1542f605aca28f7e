#!/usr/bin/env python3
"""Writes bomb_* into the corpora: small files that ask for much time, memory or stack. All are
refused; slow_* are loaded, since what they compute is left to their runs:
tests/engine/model/test_bombs.c.

python tests/fuzz/make_bombs.py       needs onnx and numpy from PyPI, and flatc
"""
import make_onnx
import make_tflite
import numpy as np
from make_onnx import F, I64, graph, ints, node
from make_tflite import Model, f32, s32
from onnx import TensorProto

BOOL = TensorProto.BOOL
BILLION = 1000000000


def varint(value):
    data = b""
    while value > 0x7f:
        data += bytes([value & 0x7f | 0x80])
        value >>= 7
    return data + bytes([value])


def field(number, data):
    """Of a protobuf message: bytes, or a number."""
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def onnx_model(graph_bytes, opsets=1):
    return field(1, 8) + field(7, graph_bytes) + field(8, field(2, 17)) * opsets


# ---- ONNX: the messages ----


def nested(depth):
    """If in If in If …"""
    inner = b""
    for _ in range(depth):
        inner = field(1, field(2, b"y") + field(4, b"If") + field(5, field(1, b"g") +
                                                                   field(6, inner)))
    return onnx_model(inner)


def functions(count, calls):
    """Each calls the next one many times, the last one an operator; one alone calls itself."""

    def call(f, a, y):
        is_operator = f == count > 1
        op, domain = (b"Relu", b"") if is_operator else (b"F%d" % min(f, count - 1), b"d")
        return field(1, a) + field(2, y) + field(4, op) + field(7, domain)

    model = field(1, 8) + field(8, field(2, 17)) + field(8, field(1, b"d") + field(2, 1))
    for f in range(count):
        names = [b"a"] + [b"v%d" % i for i in range(1, calls)] + [b"b"]
        nodes = [field(7, call(f + 1, a, y)) for a, y in zip(names, names[1:])]
        model += field(25, field(1, b"F%d" % f) + field(4, b"a") + field(5, b"b") +
                       b"".join(nodes) + field(9, field(2, 17)) +
                       field(9, field(1, b"d") + field(2, 1)) + field(10, b"d"))
    x = field(1, b"x") + field(2, field(1, field(1, 1) + field(2, field(1, field(1, 1)))))
    return model + field(7, field(1, call(0, b"x", b"y")) + field(11, x) +
                         field(12, field(1, b"y")))


MESSAGES = {
    "nested": lambda: nested(400),
    "many_initializers": lambda: onnx_model(field(5, b"") * 4000),
    "many_nodes": lambda: onnx_model(field(1, b"") * 4000),
    "many_inputs": lambda: onnx_model(field(11, b"") * 4000),
    "many_operands": lambda: onnx_model(field(1, field(1, b"") * 4000 + field(4, b"Sum"))),
    "many_attributes": lambda: onnx_model(field(1, field(5, b"") * 4000 + field(4, b"Relu"))),
    "many_tensors": lambda: onnx_model(field(1, field(5, field(5, b"") * 4000))),
    "many_graphs": lambda: onnx_model(field(1, field(5, field(6, b"") * 4000))),
    "many_texts": lambda: onnx_model(field(1, field(5, field(9, b"") * 4000))),
    "many_dims": lambda: onnx_model(field(5, field(1, 1) * 4000 + field(2, 1))),
    "many_opsets": lambda: onnx_model(b"", 2000),
    "many_functions": lambda: onnx_model(b"") + field(25, b"") * 5000,
    "functions": lambda: functions(7, 20),
    "function_itself": lambda: functions(1, 50),
    "elements": lambda: onnx_model(
        field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu")) +
        field(5, field(1, BILLION) + field(2, 1) + field(8, b"x") + field(9, b"1234")) +
        field(12, field(1, b"y"))),
}

# ---- ONNX: the graph ----


def onnx(name, nodes, constants=(), inputs=(("x", F, [1]),), outputs=("y",), **more):
    make_onnx.write(f"bomb_{name}", nodes, list(inputs), list(outputs), constants, **more)


def onnx_graphs():
    n = ("n", ints(BILLION))
    zero = ("z", np.float32(0))
    onnx("constant_of_shape", [node("ConstantOfShape", "n")], [n])
    onnx("expand", [node("Expand", "xn")], [n])
    onnx("tile", [node("Tile", "xn")], [n])
    onnx("range", [node("Range", "amb")], [("a", np.int64(0)), ("m", np.int64(BILLION)),
                                           ("b", np.int64(1))])
    onnx("pad", [node("Pad", "xn")], [("n", ints(0, BILLION))])
    onnx("one_hot", [node("OneHot", "idv")], [("i", ints(0)), ("d", np.int64(BILLION)),
                                              ("v", np.array([0, 1], np.float32))])
    onnx("resize", [node("Resize", ["x", "", "s"])], [("s", np.float32([1, 1, 3e4, 3e4]))],
         [("x", F, [1, 1, 1, 1])])
    onnx("eye", [node("EyeLike", "c")], [], [("c", F, [40000, 40000])])
    onnx("einsum", [node("Einsum", "xx", equation="a,b->ab")], [], [("x", F, [40000])])
    doubled = [node("Concat", ["x" * (i + 1)] * 2, ["x" * (i + 2)], axis=0) for i in range(60)]
    doubled.append(node("Identity", ["x" * 61]))
    onnx("doubled", doubled)
    onnx("doubled_constant", doubled, [("x", ints(1))], [("v", F, [1])])
    # all of it could be computed while the file is read
    make_onnx.write("slow_folded", [node("ConstantOfShape", "n", "a")] +
         [node("Exp", ["a" * (i + 1)], ["a" * (i + 2)]) for i in range(100)] +
         [node("Add", ["x", "a" * 101])], [("x", F, [1])], ["y"], [("n", ints(14000000))])
    # each of the results has 1024 elements that follow the number of samples
    make_onnx.write("slow_compared", [node("Shape", "x", "s", end=1)] +
                    [node("Less", "ks", [f"{i:x}"]) for i in range(4500)] + [node("Relu", "x")],
                    [("x", F, ["n", 2])], ["y"], [("k", np.zeros(1024, np.int64))])
    make_onnx.write("slow_products", [node("ConstantOfShape", "n", "a")] +
                    [node("MatMul", ["a" * (i + 1)] * 2, ["a" * (i + 2)]) for i in range(20)] +
                    [node("Add", ["x", "a" * 21])], [("x", F, [1])], ["y"],
                    [("n", ints(1500, 1500))])
    onnx("steps", [node("LSTM", "xwr", ["y"], hidden_size=1)],
         [("w", np.zeros((1, 4, 1), np.float32)), ("r", np.zeros((1, 4, 1), np.float32))],
         [("x", F, [1000000, 1, 1])])
    onnx("pieces", [node("SplitToSequence", "x", "s", keepdims=0), node("SequenceAt", "sz")],
         [("z", np.int64(0))], [("x", F, [10000000])])
    heads = 2**30
    onnx("heads", [node("GroupQueryAttention", ["x", "x", "x", "", "", "s", "t"],
                        domain="com.microsoft", num_heads=heads, kv_num_heads=heads)],
         [("s", np.int32([0])), ("t", np.int32(1))], [("x", F, [1, 1, 16])])
    onnx("deform", [node("DeformConv", "xwo", kernel_shape=[1, 1], pads=[8000] * 4)],
         [("w", np.ones((64, 1, 1, 1), np.float32))],
         [("x", F, [1, 1, 1, 1]), ("o", F, [1, 2, 16001, 16001])])
    branches = np.arange(1000)
    onnx("trees", [node("TreeEnsembleRegressor", "x", domain="ai.onnx.ml",
                        nodes_treeids=[0] * 1000, nodes_nodeids=branches.tolist(),
                        nodes_featureids=[0] * 1000, nodes_modes=["BRANCH_LEQ"] * 1000,
                        nodes_values=[0.0] * 1000,
                        nodes_truenodeids=((branches + 1) % 1000).tolist(),
                        nodes_falsenodeids=((branches + 500) % 1000).tolist(), n_targets=1,
                        target_treeids=[0], target_nodeids=[0], target_ids=[0],
                        target_weights=[1.0])], [], [("x", F, [1, 1])], domains=["ai.onnx.ml"])
    # each list is the one before, twice
    lists = [node("SequenceConstruct", "xx", ["l"])]
    for i in range(40):
        last = "l" * (i + 1)
        lists += [node("ConcatFromSequence", [last], [f"c{i}"], axis=0),
                  node("SequenceInsert", [last, f"c{i}"], [last + "l"])]
    onnx("lists", lists + [node("ConcatFromSequence", ["l" * 41], axis=0)])
    loops(zero)
    deep()
    unsaid()


def unsaid():
    """Only a run finds how many dimensions the result has, and it takes long."""
    products = [node("ConstantOfShape", "s", "a"), node("Add", "xa", "b"),
                *[node("MatMul", ["b" * (i + 1)] * 2, ["b" * (i + 2)]) for i in range(10)]]
    last = "b" * 11
    found = [node("NonZero", "v", "f"), node("Transpose", "f", "t"), node("GatherND", "vt", "u")]
    large = [("s", ints(1024, 1024)), ("o", np.float32(1))]
    first = [*products, node("Neg", [last], ["v"]), *found, node("Neg", "u")]
    onnx("unsaid_first", first, large)
    onnx("unsaid_next", [node("Add", "xo", "v"), *found, products[0], node("Add", "ua", "b"),
                         *products[2:], node("Neg", [last])], large)
    # a sum that stays below the limit, since it stops growing
    body = graph([node("Add", "ap", "r"), node("ReduceMax", "r", "m", keepdims=0),
                  node("Less", "mq", "d")],
                 [("i", I64, []), ("c", BOOL, []), ("a", F, ["n"])],
                 [("d", BOOL, []), ("r", F, ["n"])])
    onnx("unsaid_loop", [node("Loop", ["", "k", "x"], "v", body=body), *found, node("Neg", "u")],
         [("k", np.array(True)), ("p", np.float32([1])), ("q", np.float32(3e38))],
         [("x", F, ["n"])])


def deep():
    """Many nodes in front of one that fits no size that is tried."""
    nodes = [node("Neg", [f"a{i}" if i else "x"], [f"a{i + 1}"]) for i in range(3000)]
    nodes.append(node("Reshape", ["a3000", "s"]))
    for name, dims in (("bomb_deep", [1, 32]), ("deep_open", ["n", "w"])):
        make_onnx.write(name, nodes, [("x", F, dims)], [("y", F, [2, 3, None])],
                        [("s", ints(2, 3, 5))])


def loops(zero):
    """Loops of 2^63 - 1 turns whose condition stays true: without an operator, with one, with a
    list of results, in each other."""
    endless = [("n", np.int64(2**63 - 1)), ("t", np.array(True)), zero]
    ports = [("i", I64, []), ("c", BOOL, []), ("a", F, [])]

    def body(nodes, outputs):
        return graph(nodes, ports, outputs)

    passes = body([], [("c", BOOL, []), ("a", F, [])])
    onnx("loop_empty", [node("Loop", "ntz", body=passes)], endless)
    listed = body([], [("c", BOOL, []), ("a", F, []), ("a", F, [])])
    onnx("loop_listed", [node("Loop", "ntz", "wy", body=listed)], endless)
    adds = body([node("Add", "ax", "b")], [("c", BOOL, []), ("b", F, [1])])
    onnx("loop_adds", [node("Loop", "ntx", body=adds)], endless)
    grows = body([node("Concat", "aa", "b", axis=0)], [("c", BOOL, []), ("b", F, [None])])
    onnx("loop_grows", [node("Loop", "ntx", body=grows)], endless)
    inner = passes
    for _ in range(6):
        inner = body([node("Loop", "nta", "b", body=inner)], [("c", BOOL, []), ("b", F, [])])
    onnx("loop_nested", [node("Loop", "ntz", body=inner)], endless)
    # a condition that the data decides, between two loops
    turns = body([node("Loop", "nta", "b", body=adds)], [("c", BOOL, []), ("b", F, [1])])
    choice = {"then_branch": graph([node("Loop", "ntx", "r", body=turns)], [], [("r", F, [1])]),
              "else_branch": graph([node("Neg", "x", "r")], [], [("r", F, [1])])}
    outer = body([node("If", "q", "b", **choice)], [("c", BOOL, []), ("b", F, [1])])
    onnx("loop_if_loop", [node("Loop", "ntx", body=outer)], endless,
         [("x", F, [1]), ("q", BOOL, [])])
    # many names from outside: each is brought in once
    many = [f"v{i}" for i in range(800)]
    sums = [node("Add", [a, b], [f"s{i}"]) for i, (a, b) in enumerate(zip(many, many[1:]))]
    inside = {"then_branch": graph(sums + [node("Neg", ["s0"], "r")], [], [("r", F, [1])]),
              "else_branch": graph([node("Neg", "x", "r")], [], [("r", F, [1])])}
    make_onnx.write("slow_captures", [node("Neg", "x", [v]) for v in many] +
                    [node("If", "q", **inside)], [("x", F, [1]), ("q", BOOL, [])], ["y"])
    step = graph([], [("e", F, [])], [("e", F, [])])
    for _ in range(3):
        step = graph([node("Scan", "v", "w", body=step, num_scan_inputs=1),
                      node("Identity", "e", "f")], [("e", F, [])], [("f", F, [])])
    scan = [node("Scan", "v", body=step, num_scan_inputs=1)]
    onnx("scan", scan, [], [("v", F, [16000])])
    onnx("scan_open", scan, [], [("v", F, [16000]), ("x", F, ["n", "w"])])  # in any size


# ---- TFLite ----


class Inner(Model):
    """A further subgraph of a model."""

    def __init__(self, model):
        self.value = model.value
        self.graph = {"tensors": [], "inputs": [], "outputs": [], "operators": []}
        self.value["subgraphs"].append(self.graph)


def flag(model, name, **more):
    return model.tensor(name, [1], "BOOL", **more)


def while_endless(operators):
    """The condition is what the caller hands over: true."""
    m = Model()
    x = m.input("x", [1])
    c = flag(m, "c", data=b"\1")
    outputs = [flag(m, "d"), m.tensor("y", [1])]
    m.op("WHILE", [c, x], outputs, "While", {"cond_subgraph": 1, "body_subgraph": 2})
    condition = Inner(m)
    condition.graph["inputs"] = [flag(condition, "c"), condition.tensor("x", [1])]
    condition.output(0)
    body = Inner(m)
    body.graph["inputs"] = [flag(body, "c"), body.tensor("x", [1])]
    last = 1
    for i in range(operators):
        body.op("NEG", [last], [body.tensor(f"n{i}", [1])])
        last = len(body.graph["tensors"]) - 1
    body.output(0, last)
    return m.output(outputs[1])


def calls(depth, width):
    """Each subgraph calls the next one many times; the last one is empty."""
    m = Model()
    x = m.input("x", [1])
    graphs = [m] + [Inner(m) for _ in range(depth)]
    for index, g in enumerate(graphs):
        if index > 0:
            x = g.tensor("x", [1])
            g.graph["inputs"] = [x]
        last = x
        for i in range(width if index < depth else 0):
            y = g.tensor(f"y{i}", [1])
            g.op("CALL", [last], [y], "Call", {"subgraph": index + 1})
            last = y
        g.output(last)
    return m


def calls_itself(builtin, options_type, options):
    m = Model()
    x = m.input("x", [1])
    y = m.tensor("y", [1])
    c = [m.input("c", [1], "BOOL")] if builtin == "IF" else []
    m.op(builtin, c + [x], [y], options_type, options)
    inner = Inner(m)
    a = inner.tensor("a", [1])
    inner.graph["inputs"] = [a]
    d = [flag(inner, "d", data=b"\1")] if builtin == "IF" else []
    last = a
    for i in range(16):
        b = inner.tensor(f"b{i}", [1])
        inner.op(builtin, d + [last], [b], options_type, options)
        last = b
    inner.output(last)
    return m.output(y)


def ifs_asked(depth):
    """Which branch is taken is never known, and both hold the next one."""
    m = Model()
    graphs = [m] + [Inner(m) for _ in range(depth)]
    for index, g in enumerate(graphs):
        ports = [flag(g, "c"), g.tensor("x", [1])]
        g.graph["inputs"] = ports
        last = ports[1]
        for i in range(8 if index < depth else 0):
            y = g.tensor(f"y{i}", [1])
            g.op("IF", [ports[0], ports[0], last], [y], "If",
                 {"then_subgraph": index + 1, "else_subgraph": index + 1})
            last = y
        g.output(last)
    return m


def sized(builtin, operands, options_type=None, version=1, out_type="FLOAT32", shape=(BILLION,)):
    m = Model()
    x = m.input("x", [1])
    inputs = [x if o == "x" else m.tensor(f"i{k}", *o) for k, o in enumerate(operands)]
    y = m.tensor("y", list(shape), out_type)
    m.op(builtin, inputs, [y], options_type, {} if options_type else None, version)
    return m.output(y)


def one(*values, type="INT32"):
    return ([len(values)], type, s32(*values))


def folded(elements, operators):
    m = Model()
    x = m.input("x", [1])
    last = m.tensor("filled", [elements])
    m.op("FILL", [m.tensor("n", [1], "INT32", s32(elements)), m.tensor("v", [], data=f32(1))],
         [last])
    for i in range(operators):
        y = m.tensor(f"e{i}", [elements])
        m.op("EXP", [last], [y])
        last = y
    y = m.tensor("y", [elements])
    m.op("ADD", [x, last], [y], "Add")
    return m.output(y)


def doubled():
    m = Model()
    last = m.input("x", [1])
    for i in range(60):
        y = m.tensor(f"y{i}", [1])
        m.op("CONCATENATION", [last, last], [y], "Concatenation", {"axis": 0})
        last = y
    return m.output(last)


def tables(count):
    """Each has another number, and is filled."""
    m = Model()
    x = m.input("x", [1], "INT64")
    for i in range(count):
        h = m.tensor(f"h{i}", [1], "RESOURCE")
        m.op("HASHTABLE", [], [h], "Hashtable", {"table_id": i})
        n = m.tensor(f"n{i}", [1], "INT64")
        m.op("HASHTABLE_SIZE", [h], [n])
    y = m.tensor("y", [1], "INT64")
    m.op("ADD", [x, n], [y], "Add")
    return m.output(y)


def steps():
    m = make_tflite.GOOD["sequence_lstm"]()
    m.graph["tensors"][m.graph["inputs"][0]]["shape"][0] = 1000000
    return m


def elements():
    m = Model()
    x = m.input("x", [1])
    y = m.tensor("y", [BILLION])
    m.op("ADD", [x, m.tensor("c", [BILLION], data=f32(1))], [y], "Add")
    return m.output(y)


TFLITE = {
    "while_empty": lambda: while_endless(0),
    "while_negates": lambda: while_endless(1),
    "calls": lambda: calls(7, 100),
    "call_itself": lambda: calls_itself("CALL", "Call", {"subgraph": 1}),
    "if_itself": lambda: calls_itself("IF", "If", {"then_subgraph": 1, "else_subgraph": 1}),
    "ifs_asked": lambda: ifs_asked(7),
    "elements": elements,
    "fill": lambda: sized("FILL", [one(BILLION), ([], "FLOAT32", f32(1))]),
    "range": lambda: sized("RANGE", [([], "INT32", s32(0)), ([], "INT32", s32(BILLION)),
                                     ([], "INT32", s32(1))], out_type="INT32"),
    "tile": lambda: sized("TILE", ["x", one(BILLION)]),
    "broadcast": lambda: sized("BROADCAST_TO", ["x", one(BILLION)], version=2),
    "pad": lambda: sized("PAD", ["x", ([1, 2], "INT32", s32(0, BILLION - 1))]),
    "dilate": lambda: sized("DILATE", [([2], "FLOAT32", f32(1, 2)), one(BILLION - 1),
                                       ([], "FLOAT32", f32(0))]),
    "tables": lambda: tables(257),
    "doubled": doubled,
}


def main():
    for name, make in MESSAGES.items():
        (make_onnx.FOLDER / f"bomb_{name}.onnx").write_bytes(make())
    onnx_graphs()
    folder = make_tflite.HERE / "corpus/tflite"
    for name, make in TFLITE.items():
        (folder / f"bomb_{name}.tflite").write_bytes(make().bytes())
    (folder / "slow_folded.tflite").write_bytes(folded(14000000, 100).bytes())


if __name__ == "__main__":
    main()

"""Random cases, as in onnx_cases.py, of operators that take lists or graphs: each with the nodes
that make a list and take one of its elements."""
import numpy as np
from onnx import helper

from onnx_cases import Case, array, axis_of, i64, pick, shape_of
from onnx_rare import whole


# ---- lists ----


def lists(op):
    def make(rng):
        kind = pick(rng, np.float32, np.int64)
        shape = shape_of(rng, None, 4)
        x, y, z = (array(rng, shape, kind) for _ in range(3))
        nodes = [helper.make_node("SequenceConstruct", ["in0", "in1", "in2"], ["list"])]
        inputs, outputs, last = [x, y, z, np.array(whole(rng, -3, 2), np.int64)], 1, "list"
        attrs = {}
        if op == "SequenceErase":
            nodes.append(helper.make_node(op, ["list", "in3"] if rng.integers(2) else ["list"],
                                          ["less"]))
            last = "less"
        elif op == "SequenceInsert":
            nodes.append(helper.make_node(op, ["list", "in0", "in3"] if rng.integers(2)
                                          else ["list", "in0"], ["more"]))
            last = "more"
        elif op == "SequenceEmpty":
            attrs["dtype"] = int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
            nodes += [helper.make_node(op, [], ["none"], **attrs),
                      helper.make_node("SequenceInsert", ["none", "in1"], ["one"]),
                      helper.make_node("SequenceInsert", ["one", "in2"], ["two"])]
            last = "two"
        if op == "SequenceAt":
            nodes.append(helper.make_node(op, ["list", "in3"], ["out0"]))
        elif op == "SequenceLength":
            nodes.append(helper.make_node(op, ["list"], ["out0"]))
        else:
            stacked = whole(rng, 0, 1)
            nodes.append(helper.make_node(
                "ConcatFromSequence", [last], ["out0"], new_axis=stacked,
                axis=whole(rng, 0, len(shape) - 1 + stacked)))
        return Case(op, inputs, outputs=outputs, constants={3}, nodes=nodes)

    return make


def split_to_sequence(rng):
    shape = list(shape_of(rng))
    axis = axis_of(rng, len(shape))
    attrs = {"axis": axis}
    how = whole(rng, 0, 2)
    inputs = [None, np.array(0, np.int64)]
    names = ["in0", "in2"]
    if how == 0:
        parts = [whole(rng, 1, 3) for _ in range(whole(rng, 1, 3))]
        shape[axis] = sum(parts)
        size = i64(*parts)
    elif how == 1:
        size = np.array(whole(rng, 1, shape[axis]), np.int64)
    else:
        size, names = np.array(1, np.int64), ["in0"]
        attrs["keepdims"] = whole(rng, 0, 1)
    count = {0: lambda: len(size), 1: lambda: -(-shape[axis] // int(size)),
             2: lambda: shape[axis]}[how]()
    inputs = [array(rng, tuple(shape)), np.array(whole(rng, -count, count - 1), np.int64), size]
    nodes = [helper.make_node("SplitToSequence", names, ["list"], **attrs),
             helper.make_node("SequenceAt", ["list", "in1"], ["out0"]),
             helper.make_node("SequenceLength", ["list"], ["out1"])]
    return Case("SplitToSequence", inputs, outputs=2, constants={1, 2}, nodes=nodes)


def sequence_map(rng):
    shape = shape_of(rng, None, 4)
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Neg", ["c"], ["d"])],
        "body", [helper.make_tensor_value_info("a", 1, None),
                 helper.make_tensor_value_info("b", 1, None)],
        [helper.make_tensor_value_info("d", 1, None)])
    nodes = [helper.make_node("SequenceConstruct", ["in0", "in1"], ["list"]),
             helper.make_node("SequenceMap", ["list", "in2"], ["mapped"], body=body),
             helper.make_node("ConcatFromSequence", ["mapped"], ["out0"], axis=0)]
    return Case("SequenceMap", [array(rng, shape) for _ in range(3)], nodes=nodes)


def optional(rng):
    nodes = [helper.make_node("Optional", ["in0"], ["o"]),
             helper.make_node("OptionalHasElement", ["o"], ["out0"]),
             helper.make_node("OptionalGetElement", ["o"], ["got"]),
             helper.make_node("Neg", ["got"], ["out1"])]
    return Case("Optional", [array(rng, shape_of(rng))], outputs=2, nodes=nodes,
                opset=pick(rng, 15, 18))


# ---- control flow ----


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def if_(rng):
    shape = shape_of(rng)
    ops = ["Neg", "Abs", "Exp", "Relu", "Sigmoid"]

    def branch(name):
        return helper.make_graph(
            [helper.make_node(pick(rng, *ops), ["in1"], [name + "_a"]),
             helper.make_node("Mul", [name + "_a", "in2"], [name])], name, [],
            [info(name, 1, shape)])

    nodes = [helper.make_node("If", ["in0"], ["out0"], then_branch=branch("yes"),
                              else_branch=branch("no"))]
    return Case("If", [array(rng, (), np.bool_) if rng.integers(2) else array(rng, (1,), np.bool_),
                       array(rng, shape), array(rng, shape)], nodes=nodes,
                constants=pick(rng, set(), {0}), opset=pick(rng, 11, 13, 16))


def loop(rng):
    shape = shape_of(rng, None, 4)
    ends = bool(rng.integers(2))
    body = [helper.make_node("Add", ["v", "in2"], ["w"]),
            helper.make_node(pick(rng, "Tanh", "Neg", "Abs"), ["w"], ["each"]),
            helper.make_node("Less", ["i", "in3"], ["on"]) if ends
            else helper.make_node("Identity", ["c"], ["on"])]
    graph = helper.make_graph(
        body, "body", [info("i", 7, ()), info("c", 9, ()), info("v", 1, shape)],
        [info("on", 9, ()), info("w", 1, shape), info("each", 1, shape)])
    nodes = [helper.make_node("Loop", ["in0", "", "in1"], ["out0", "out1"], body=graph)]
    return Case("Loop", [np.array(whole(rng, 1, 6), np.int64), array(rng, shape),
                         array(rng, shape), np.array(whole(rng, 0, 4), np.int64)],
                outputs=2, constants=pick(rng, {0, 3}, {0}, set()), nodes=nodes,
                opset=pick(rng, 11, 13, 16))


def scan(rng):
    steps, size = whole(rng, 1, 6), whole(rng, 1, 5)
    body = helper.make_graph(
        [helper.make_node("Mul", ["s", "x"], ["m"]), helper.make_node("Tanh", ["m"], ["t"]),
         helper.make_node("Add", ["t", "x"], ["next"]),
         helper.make_node("Neg", ["next"], ["each"])], "body",
        [info("s", 1, (size,)), info("x", 1, (size,))],
        [info("next", 1, (size,)), info("each", 1, (size,))])
    axis = whole(rng, 0, 1)
    nodes = [helper.make_node(
        "Scan", ["in0", "in1"], ["out0", "out1"], body=body, num_scan_inputs=1,
        scan_input_axes=[axis], scan_input_directions=[whole(rng, 0, 1)],
        scan_output_axes=[whole(rng, 0, 1)], scan_output_directions=[whole(rng, 0, 1)])]
    shape = (size, steps) if axis else (steps, size)
    return Case("Scan", [array(rng, (size,)), array(rng, shape)], outputs=2, nodes=nodes,
                opset=pick(rng, 11, 16))


GRAPHS = {
    **{op: lists(op) for op in ("SequenceConstruct SequenceAt SequenceErase SequenceInsert "
                                "SequenceLength SequenceEmpty").split()},
    "SplitToSequence": split_to_sequence, "SequenceMap": sequence_map, "Optional": optional,
    "If": if_, "Loop": loop, "Scan": scan,
}

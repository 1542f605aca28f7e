#!/usr/bin/env python3
"""Random models of one ONNX operator each, beside ONNX Runtime.

usage: onnx_ops.py INFERD [--count N] [--seed N] [--op NAME …] [--backends LIST …] [--keep FOLDER]

Each model runs under ONNX Runtime and under `inferd run` on each list of backends. What differs is
written to FOLDER (build/differential) with its inputs and what ONNX Runtime answered, and named
with the seed that makes it again. What ONNX Runtime refuses of another opset or type is drawn as
the row has it; what it refuses then, too, is passed over. Exit status: 0
nothing differs and nothing is refused, 1 something is."""
import sys

import numpy as np
import onnx
import onnx.reference
import onnxruntime

import beside
from onnx_cases import CASES
from onnx_converted import CONVERTED
from onnx_graphs import GRAPHS
from onnx_language import LANGUAGE
from onnx_microsoft import MICROSOFT
from onnx_rare import RARE
from onnx_vary import vary


LATER = {}


def varied(make_case):
    """The case in another opset or type, and as it is, for a peer that lacks the other."""
    def make_both(rng):
        case = make_case(rng)
        return [vary(case, rng), case]

    return make_both


ROWS = {name: varied(make_case)
        for name, make_case in {**CASES, **RARE, **GRAPHS, **MICROSOFT,
                                     **CONVERTED, **LANGUAGE}.items()}


def model_of(case):
    names = [f"in{i}" if x is not None else "" for i, x in enumerate(case.inputs)]
    outputs = [f"out{i}" for i in range(case.outputs)]
    while names and not names[-1]:
        names.pop()
    nodes = case.nodes or [onnx.helper.make_node(case.op, names, outputs, domain=case.domain,
                                                 **case.attrs)]
    given, initializers = [], []
    for i, x in enumerate(case.inputs):
        if x is None:
            continue
        if i in case.constants:
            initializers.append(onnx.numpy_helper.from_array(np.asarray(x), f"in{i}"))
        else:
            kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
            given.append(onnx.helper.make_tensor_value_info(f"in{i}", kind, x.shape))
    graph = onnx.helper.make_graph(nodes, "one", given,
                                   [onnx.ValueInfoProto(name=n) for n in outputs], initializers)
    model = onnx.helper.make_model(graph, opset_imports=[
        onnx.helper.make_opsetid("", case.opset), onnx.helper.make_opsetid("com.microsoft", 1),
        onnx.helper.make_opsetid("ai.onnx.ml", 3)])
    model.ir_version = 10
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    if all(o.HasField("type") for o in inferred.graph.output):
        return inferred.SerializeToString()
    return model.SerializeToString()


def truth(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def evaluated(model, feeds):
    return onnx.reference.ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds)


def typed(text, outputs):
    """With the types of outputs that inference does not find: a file must say them."""
    model = onnx.load_from_string(text)
    for info, y in zip(model.graph.output, outputs):
        if not info.type.tensor_type.HasField("shape"):
            kind = onnx.helper.np_dtype_to_tensor_dtype(np.asarray(y).dtype)
            info.CopyFrom(onnx.helper.make_tensor_value_info(info.name, kind, [None] * np.ndim(y)))
    return model.SerializeToString()


def made(case, answer):
    inputs = {f"in{i}": x for i, x in enumerate(case.inputs)
              if x is not None and i not in case.constants}
    model = model_of(case)
    kinds = " ".join("-" if x is None else str(x.dtype) for x in case.inputs)
    outputs = answer(model, inputs)
    text = f"{case.op} opset {case.opset} {case.attrs} of {kinds}"
    steps = {"CpuRef": case.steps, "CpuAcc,CpuRef": case.steps}
    return beside.Beside(typed(model, outputs), inputs, outputs, text, steps, case.off)


def make(cases):
    try:
        return made(cases[0], truth)
    except Exception:
        if cases[1].peer != "onnx":
            return made(cases[1], truth)
    return made(cases[1], evaluated)


if __name__ == "__main__":
    sys.exit(beside.main(__doc__, make, ROWS, ".onnx", LATER))

#!/usr/bin/env python3
"""Random models of one ONNX operator each, beside ONNX Runtime.

usage: onnx_ops.py INFERD [--count N] [--seed N] [--op NAME …] [--backends LIST …] [--keep FOLDER]

Each model runs under ONNX Runtime and under `inferd run` on each list of backends. What differs is
written to FOLDER (build/differential) with its inputs and what ONNX Runtime answered, and named
with the seed that makes it again. What ONNX Runtime itself refuses is passed over. Exit status: 0
nothing differs and nothing is refused, 1 something is."""
import sys

import numpy as np
import onnx
import onnxruntime

import beside
from onnx_cases import CASES


LATER = {}


def model_of(case):
    names = [f"in{i}" if x is not None else "" for i, x in enumerate(case.inputs)]
    outputs = [f"out{i}" for i in range(case.outputs)]
    while names and not names[-1]:
        names.pop()
    node = onnx.helper.make_node(case.op, names, outputs, domain=case.domain, **case.attrs)
    given, initializers = [], []
    for i, x in enumerate(case.inputs):
        if x is None:
            continue
        if i in case.constants:
            initializers.append(onnx.numpy_helper.from_array(np.asarray(x), f"in{i}"))
        else:
            kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
            given.append(onnx.helper.make_tensor_value_info(f"in{i}", kind, x.shape))
    graph = onnx.helper.make_graph([node], "one", given,
                                   [onnx.ValueInfoProto(name=n) for n in outputs], initializers)
    sets = [onnx.helper.make_opsetid("", case.opset), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(graph, opset_imports=sets)
    model.ir_version = 8
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


def make(case):
    inputs = {f"in{i}": x for i, x in enumerate(case.inputs)
              if x is not None and i not in case.constants}
    model = model_of(case)
    text = f"{case.op} opset {case.opset} {case.attrs}"
    steps = {"CpuRef": case.steps, "CpuAcc,CpuRef": case.steps}
    return beside.Beside(model, inputs, truth(model, inputs), text, steps)


if __name__ == "__main__":
    sys.exit(beside.main(__doc__, make, CASES, ".onnx", LATER))

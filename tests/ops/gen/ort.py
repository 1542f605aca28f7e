"""One-node ONNX models, and what ONNX Runtime makes of them.

Needs onnx, onnxruntime and numpy. Only the generators beside this file use it.
"""

import onnxruntime
from onnx import helper, numpy_helper

SOURCE = f"ONNX Runtime {onnxruntime.__version__}"


def run(op, arrays, outputs, opset=18, domain="", **attributes):
    """Arrays in, arrays out; the inputs are constants of the model."""
    names = [f"i{k}" for k in range(len(arrays))]
    node = helper.make_node(op, names, [f"o{k}" for k in range(outputs)], domain=domain,
                            **attributes)
    constants = [numpy_helper.from_array(a, n) for a, n in zip(arrays, names)]
    graph = helper.make_graph([node], "g", [],
                              [helper.make_empty_tensor_value_info(o) for o in node.output],
                              constants)
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1),
            helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, {})

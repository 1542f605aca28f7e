"""Writes the models of tests/data/repository: tiny TFLite files that stand in for those a real
Triton answered with.

    python make_repository.py       needs ai-edge-litert and flatbuffers, in the versions of
                                    ../../models/gen/requirements.txt

simple    OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1, INT32 [1,16], versions 1 and 3
classify  PROB = DATA * 1, FP32 [1,10], ten labels zero .. nine
identity  OUTPUT0 = INPUT0 * 1, FP32 [-1]
"""
import pathlib

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

ROOT = pathlib.Path(__file__).resolve().parent / "repository"
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def tensor(name, dtype, shape, buffer=0, signature=None):
    t = schema.TensorT()
    t.name, t.type, t.shape, t.buffer, t.shapeSignature = name, dtype, shape, buffer, signature
    return t


def operator(code, kind, options, inputs, outputs):
    o = schema.OperatorT()
    o.opcodeIndex, o.inputs, o.outputs = code, inputs, outputs
    o.builtinOptionsType, o.builtinOptions = kind, options
    return o


def model(description, codes, tensors, operators, inputs, outputs, constants=()):
    m, graph = schema.ModelT(), schema.SubGraphT()
    graph.name, graph.tensors, graph.operators = "main", tensors, operators
    graph.inputs, graph.outputs = inputs, outputs
    m.version, m.description, m.subgraphs = 3, description, [graph]
    m.operatorCodes = []
    for code in codes:
        c = schema.OperatorCodeT()
        c.builtinCode = c.deprecatedBuiltinCode = code
        c.version = 1
        m.operatorCodes.append(c)
    # buffer 0 is the empty one, by convention
    m.buffers = [schema.BufferT()]
    for constant in constants:
        b = schema.BufferT()
        b.data = np.frombuffer(constant.tobytes(), np.uint8)
        m.buffers.append(b)
    builder = flatbuffers.Builder(1024)
    builder.Finish(m.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def add_sub():
    i32, shape = schema.TensorType.INT32, [1, 16]
    names = ["INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1"]
    return model(
        "sum and difference", [schema.BuiltinOperator.ADD, schema.BuiltinOperator.SUB],
        [tensor(n, i32, shape) for n in names],
        [operator(0, schema.BuiltinOptions.AddOptions, schema.AddOptionsT(), [0, 1], [2]),
         operator(1, schema.BuiltinOptions.SubOptions, schema.SubOptionsT(), [0, 1], [3])],
        [0, 1], [2, 3])


def times_one(input_name, output_name, shape, signature=None):
    f32 = schema.TensorType.FLOAT32
    return model(
        "identity", [schema.BuiltinOperator.MUL],
        [tensor(input_name, f32, shape, signature=signature), tensor("one", f32, [1], buffer=1),
         tensor(output_name, f32, shape, signature=signature)],
        [operator(0, schema.BuiltinOptions.MulOptions, schema.MulOptionsT(), [0, 1], [2])],
        [0], [2], [np.ones(1, np.float32)])


def write(path, data):
    path = ROOT / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(path.relative_to(ROOT), len(data))


def main():
    for version in (1, 3):
        write(f"simple/{version}/model.tflite", add_sub())
    write("classify/1/model.tflite", times_one("DATA", "PROB", [1, 10]))
    write("classify/labels.txt", "".join(d + "\n" for d in DIGITS).encode())
    write("identity/1/model.tflite", times_one("INPUT0", "OUTPUT0", [1], signature=[-1]))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the small TFLite models in corpus/tflite: seeds of the fuzzer, and cases of the parser's
tests.

good_*: one for every operator that the parser knows, and for every part of the format that it
reads. bad_*: one for every rule that the FlatBuffers verifier cannot know, each broken in one
place. Needs flatc; the schema is the parser's.

usage: make_tflite.py [FOLDER]
"""
import copy
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SCHEMAS = HERE.parent.parent / "engine" / "parse" / "tflite"


def flatc(schema, value):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "x.json"
        source.write_text(json.dumps(value))
        subprocess.run(["flatc", "-b", "-o", folder, SCHEMAS / schema, source], check=True)
        built = [p for p in pathlib.Path(folder).iterdir() if p.suffix != ".json"]
        return built[0].read_bytes()


def f32(*values):
    return struct.pack(f"<{len(values)}f", *values)


def s32(*values):
    return struct.pack(f"<{len(values)}i", *values)


def quant(scale=0.5, zero_point=3):
    return {"scale": [scale], "zero_point": [zero_point]}


def per_channel(count, dimension):
    return {"scale": [0.01 * (i + 1) for i in range(count)], "zero_point": [0] * count,
            "quantized_dimension": dimension}


class Model:
    """A model with one subgraph, built up tensor by tensor."""

    def __init__(self):
        self.value = {"version": 3, "operator_codes": [], "buffers": [{}],
                      "subgraphs": [{"tensors": [], "inputs": [], "outputs": [], "operators": []}]}
        self.graph = self.value["subgraphs"][0]

    def tensor(self, name, shape, type="FLOAT32", data=None, quantization=None, **more):
        tensor = {"name": name, "shape": list(shape), "type": type, "buffer": 0, **more}
        if data is not None:
            tensor["buffer"] = len(self.value["buffers"])
            self.value["buffers"].append({"data": list(data)})
        if quantization:
            tensor["quantization"] = quantization
        self.graph["tensors"].append(tensor)
        return len(self.graph["tensors"]) - 1

    def input(self, *args, **more):
        index = self.tensor(*args, **more)
        self.graph["inputs"].append(index)
        return index

    def op(self,
           builtin,
           inputs,
           outputs,
           options_type=None,
           options=None,
           version=1,
           custom=None,
           custom_options=None):
        code = {"builtin_code": builtin, "version": version}
        if builtin not in ("PLACEHOLDER_FOR_GREATER_OP_CODES",):
            code["deprecated_builtin_code"] = 0
        if custom:
            code["custom_code"] = custom
        self.value["operator_codes"].append(code)
        operator = {
            "opcode_index": len(self.value["operator_codes"]) - 1, "inputs": inputs,
            "outputs": outputs
        }
        if options_type:
            operator["options_type"] = options_type
            operator["options"] = copy.deepcopy(options or {})
        if custom_options is not None:
            operator["custom_options"] = list(custom_options)
        self.graph["operators"].append(operator)
        return operator

    def output(self, *indexes):
        self.graph["outputs"] += indexes
        return self

    def bytes(self):
        return flatc("schema.fbs", self.value)


# ---- good ----

GOOD = {}


def good(function):
    GOOD[function.__name__] = function
    return function


def unary(builtin,
          type="FLOAT32",
          shape=(1, 4, 4, 2),
          out_type=None,
          quantization=None,
          options=(None, None)):
    m = Model()
    x = m.input("x", shape, type, quantization=quantization)
    y = m.tensor("y", shape, out_type or type, quantization=quantization)
    m.op(builtin, [x], [y], *options)
    return m.output(y)


def binary(builtin, options_type=None, options=None, type="FLOAT32", quantization=None):
    m = Model()
    a = m.input("a", [1, 4, 4, 2], type, quantization=quantization)
    b = m.input("b", [1, 1, 4, 1], type, quantization=quantization)
    y = m.tensor("y", [1, 4, 4, 2], type, quantization=quantization)
    m.op(builtin, [a, b], [y], options_type, options)
    return m.output(y)


def with_ints(builtin,
              *lists,
              shape=(1, 4, 4, 2),
              options=(None, None),
              out=(),
              data_at=0,
              version=1):
    """One data input and constant s32 vectors."""
    m = Model()
    x = m.input("x", shape)
    inputs = [
        m.tensor(f"ints{i}", [len(v)] if isinstance(v, (list, tuple)) else [], "INT32",
                 s32(*v) if isinstance(v, (list, tuple)) else s32(v)) for i, v in enumerate(lists)
    ]
    inputs.insert(data_at, x)
    y = m.tensor("y", out)
    m.op(builtin, inputs, [y], *options, version=version)
    return m.output(y)


CONV = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "activation": "RELU6"}


@good
def conv_u8():
    m = Model()
    x = m.input("x", [1, 5, 5, 3], "UINT8", quantization=quant(0.02, 128))
    w = m.tensor("w", [4, 3, 3, 3], "UINT8", bytes(range(108)), quant(0.01, 100))
    b = m.tensor("b", [4], "INT32", s32(1, -2, 3, -4), quant(0.0002, 0))
    y = m.tensor("y", [1, 3, 3, 4], "UINT8", quantization=quant(0.05, 10))
    m.op("CONV_2D", [x, w, b], [y], "Conv2D", CONV)
    return m.output(y)


@good
def state_of_scale_0():
    m = Model()
    x = m.input("x", [2, 3], "INT16", quantization=quant(1 / 32768, 0))
    zeros = m.tensor("zeros", [2, 3], "INT16", quantization=quant(0.0, 0))
    zero = m.tensor("zero", [], "INT16", bytes(2), quant(0.0, 0))
    w = m.tensor("w", [4, 3], "INT8", bytes(range(12)), quant(0.01, 0))
    sums = m.tensor("sums", [2, 4], "INT16", quantization=quant(3.6e-43, 0))
    y = m.tensor("y", [2, 3], "INT16", quantization=quant(2.4e-5, 0))
    m.op("FILL", [m.tensor("dims", [2], "INT32", s32(2, 3)), zero], [zeros], version=4)
    m.op("FULLY_CONNECTED", [zeros, w], [sums], "FullyConnected", {}, version=4)
    m.op("MUL", [x, zeros], [y], "Mul", {}, version=4)
    m.output(sums)
    return m.output(y)


@good
def conv_s8_per_channel():
    m = Model()
    x = m.input("x", [1, 5, 5, 3], "INT8", quantization=quant(0.02, -1))
    w = m.tensor("w", [4, 3, 3, 3], "INT8", bytes(range(108)), per_channel(4, 0))
    b = m.tensor("b", [4], "INT32", s32(1, -2, 3, -4), {"scale": [0.0002, 0.0004, 0.0006, 0.0008],
                                                        "zero_point": [0] * 4})
    y = m.tensor("y", [1, 3, 3, 4], "INT8", quantization=quant(0.05, 10))
    m.op("CONV_2D", [x, w, b], [y], "Conv2D", CONV, version=3)
    return m.output(y)


@good
def conv_f16_weights():
    m = Model()
    x = m.input("x", [1, 4, 4, 1])
    h = m.tensor("w16", [2, 2, 2, 1], "FLOAT16", struct.pack("<8e", *[0.5 * i for i in range(8)]))
    w = m.tensor("w", [2, 2, 2, 1])
    y = m.tensor("y", [1, 3, 3, 2])
    m.op("DEQUANTIZE", [h], [w], version=2)
    m.op("CONV_2D", [x, w, -1], [y], "Conv2D", {"padding": "VALID", "stride_w": 1, "stride_h": 1})
    return m.output(y)


@good
def depthwise_conv():
    m = Model()
    x = m.input("x", [1, 5, 5, 2])
    w = m.tensor("w", [1, 3, 3, 4], data=f32(*range(36)))
    b = m.tensor("b", [4], data=f32(1, 2, 3, 4))
    y = m.tensor("y", [1, 3, 3, 4])
    m.op(
        "DEPTHWISE_CONV_2D", [x, w, b], [y], "DepthwiseConv2D", {
            "padding": "SAME", "stride_w": 2, "stride_h": 2, "depth_multiplier": 2, "dilation_w": 1,
            "dilation_h": 1
        })
    return m.output(y)


@good
def transpose_conv():
    m = Model()
    x = m.input("x", [1, 2, 2, 3])
    shape = m.tensor("shape", [4], "INT32", s32(1, 4, 4, 2))
    w = m.tensor("w", [2, 2, 2, 3], data=f32(*range(24)))
    y = m.tensor("y", [1, 4, 4, 2])
    m.op("TRANSPOSE_CONV", [shape, w, x], [y], "TransposeConv",
         {"padding": "SAME", "stride_w": 2, "stride_h": 2})
    return m.output(y)


@good
def fully_connected_reshape_softmax():
    m = Model()
    x = m.input("x", [1, 6], "INT8", quantization=quant(0.1, 0), shape_signature=[-1, 6])
    w = m.tensor("w", [4, 6], "INT8", bytes(range(24)), quant(0.02, 0))
    b = m.tensor("b", [4], "INT32", s32(5, 6, 7, 8), quant(0.002, 0))
    y = m.tensor("y", [1, 4], "INT8", quantization=quant(0.5, 1))
    shape = m.tensor("shape", [2], "INT32", s32(-1, 4))
    r = m.tensor("r", [1, 4], "INT8", quantization=quant(0.5, 1))
    s = m.tensor("s", [1, 4], "INT8", quantization=quant(1 / 256, -128))
    m.op("FULLY_CONNECTED", [x, w, b], [y], "FullyConnected", {"activation": "RELU"}, version=4)
    m.op("RESHAPE", [y, shape], [r], "Reshape", {"new_shape": [-1, 4]})
    m.op("SOFTMAX", [r], [s], "Softmax", {"beta": 1.0}, version=2)
    m.output(s)
    m.value["signature_defs"] = [{
        "inputs": [{"name": "in", "tensor_index": x}], "signature_key": "serve",
        "outputs": [{"name": "out", "tensor_index": s}], "subgraph_index": 0
    }]
    return m


@good
def signature_of_open_sizes():
    """y = a - b. The signature calls a b, and b what no tensor is called."""
    m = Model()
    a, b = (m.input(n, [1, 2], shape_signature=[-1, -1]) for n in "ab")
    y = m.tensor("y", [1, 2], shape_signature=[-1, -1])
    m.op("SUB", [a, b], [y], "Sub", {})
    m.value["signature_defs"] = [{
        "inputs": [{"name": "b", "tensor_index": a}, {"name": "other", "tensor_index": b}],
        "outputs": [{"name": "out", "tensor_index": y}], "signature_key": "serve",
        "subgraph_index": 0
    }]
    return m.output(y)


POOL = {"padding": "VALID", "stride_w": 2, "stride_h": 2, "filter_w": 2, "filter_h": 2}


@good
def average_pool():
    m = unary("AVERAGE_POOL_2D", options=("Pool2D", POOL))
    m.graph["tensors"][1]["shape"] = [1, 2, 2, 2]
    return m


@good
def max_pool():
    m = unary("MAX_POOL_2D", options=("Pool2D", POOL))
    m.graph["tensors"][1]["shape"] = [1, 2, 2, 2]
    return m


@good
def shape_chain():
    """A reshape whose target is computed from a shape: SHAPE, STRIDED_SLICE, PACK."""
    m = Model()
    x = m.input("x", [1, 4, 4, 2])
    shape = m.tensor("shape", [4], "INT32")
    begin = m.tensor("begin", [1], "INT32", s32(0))
    end = m.tensor("end", [1], "INT32", s32(1))
    one = m.tensor("one", [1], "INT32", s32(1))
    batch = m.tensor("batch", [], "INT32")
    rest = m.tensor("rest", [], "INT32", s32(-1))
    target = m.tensor("target", [2], "INT32")
    y = m.tensor("y", [1, 1], shape_signature=[-1, -1])
    m.op("SHAPE", [x], [shape])
    m.op("STRIDED_SLICE", [shape, begin, end, one], [batch], "StridedSlice",
         {"shrink_axis_mask": 1})
    m.op("PACK", [batch, rest], [target], "Pack", {"values_count": 2})
    m.op("RESHAPE", [x, target], [y])
    return m.output(y)


@good
def concatenation():
    m = Model()
    a = m.input("a", [1, 2, 3])
    b = m.input("b", [1, 4, 3])
    c = m.tensor("c", [1, 1, 3], data=f32(1, 2, 3))
    y = m.tensor("y", [1, 7, 3])
    m.op("CONCATENATION", [a, b, c], [y], "Concatenation", {"axis": 1})
    return m.output(y)


@good
def split():
    m = Model()
    axis = m.tensor("axis", [], "INT32", s32(1))
    x = m.input("x", [1, 6])
    y = [m.tensor(f"y{i}", [1, 2]) for i in range(3)]
    m.op("SPLIT", [axis, x], y, "Split", {"num_splits": 3})
    return m.output(*y)


@good
def split_v():
    m = Model()
    x = m.input("x", [1, 6])
    sizes = m.tensor("sizes", [2], "INT32", s32(2, -1))
    axis = m.tensor("axis", [], "INT32", s32(-1))
    y = [m.tensor(f"y{i}", [1, 2 + 2 * i]) for i in range(2)]
    m.op("SPLIT_V", [x, sizes, axis], y, "SplitV", {"num_splits": 2})
    return m.output(*y)


@good
def pack_unpack():
    m = Model()
    a = m.input("a", [3, 2])
    b = m.input("b", [3, 2])
    p = m.tensor("p", [3, 2, 2])
    y = [m.tensor(f"y{i}", [2, 2]) for i in range(3)]
    m.op("PACK", [a, b], [p], "Pack", {"values_count": 2, "axis": 1})
    m.op("UNPACK", [p], y, "Unpack", {"num": 3, "axis": 0})
    return m.output(*y)


@good
def gather():
    m = Model()
    x = m.input("x", [1, 5, 2])
    i = m.tensor("i", [3], "INT32", s32(4, 0, 4))
    y = m.tensor("y", [1, 3, 2])
    m.op("GATHER", [x, i], [y], "Gather", {"axis": 1})
    return m.output(y)


@good
def gather_by_s16():
    m = Model()
    x, i = m.input("x", [1, 5, 2]), m.input("i", [3], "INT16")
    y = m.tensor("y", [1, 3, 2])
    m.op("GATHER", [x, i], [y], "Gather", {"axis": 1})
    return m.output(y)


@good
def pad_v2():
    m = Model()
    x = m.input("x", [1, 2, 2, 1], "INT8", quantization=quant())
    paddings = m.tensor("paddings", [4, 2], "INT32", s32(0, 0, 1, 1, 2, 0, 0, 0))
    value = m.tensor("value", [], "INT8", b"\x07", quant())
    y = m.tensor("y", [1, 4, 4, 1], "INT8", quantization=quant())
    m.op("PADV2", [x, paddings, value], [y], version=2)
    return m.output(y)


@good
def quantize_round_trip():
    m = Model()
    x = m.input("x", [1, 4])
    q = m.tensor("q", [1, 4], "UINT8", quantization=quant(0.1, 128))
    y = m.tensor("y", [1, 4])
    m.op("QUANTIZE", [x], [q])
    m.op("DEQUANTIZE", [q], [y], version=2)
    return m.output(y)


@good
def rfft():
    m = Model()
    x = m.input("x", [1, 1, 8])
    size = m.tensor("size", [2], "INT32", s32(1, 8))
    c = m.tensor("c", [1, 1, 5], "COMPLEX64")
    y = m.tensor("y", [1, 1, 5])
    m.op("RFFT2D", [x, size], [c])
    m.op("COMPLEX_ABS", [c], [y])
    return m.output(y)


def flexbuffer(**values):
    """A FlexBuffer map of 32-bit numbers, as flatbuffers writes it."""
    keys = sorted(values)
    data = bytearray()
    at = {}
    for key in keys:
        at[key] = len(data)
        data += key.encode() + b"\0"
    while len(data) % 4:
        data += b"\0"
    data += struct.pack("<I", len(keys))
    key_vector = len(data)
    for key in keys:
        data += struct.pack("<I", len(data) - at[key])
    data += struct.pack("<I", len(data) - key_vector) + struct.pack("<II", 4, len(keys))
    start = len(data)
    types = bytearray()
    for key in keys:
        value = values[key]
        if isinstance(value, bool):
            data += struct.pack("<I", value)
            types.append(26 << 2 | 2)
        elif isinstance(value, int):
            data += struct.pack("<i", value)
            types.append(1 << 2 | 2)
        else:
            data += struct.pack("<f", value)
            types.append(3 << 2 | 2)
    data += types
    data += struct.pack("<B", len(data) - start) + bytes([9 << 2 | 2, 1])
    return bytes(data)


DETECTION = dict(max_detections=3,
                 max_classes_per_detection=1,
                 num_classes=2,
                 nms_score_threshold=0.1,
                 nms_iou_threshold=0.5,
                 y_scale=10.0,
                 x_scale=10.0,
                 h_scale=5.0,
                 w_scale=5.0,
                 use_regular_nms=False)


@good
def detection(options=None):
    m = Model()
    boxes = m.input("boxes", [1, 4, 4])
    scores = m.input("scores", [1, 4, 3])
    anchors = m.tensor("anchors", [4, 4], data=f32(*[0.5, 0.5, 1.0, 1.0] * 4))
    y = [m.tensor(name, []) for name in ("boxes_out", "classes", "scores_out", "count")]
    m.op("CUSTOM", [boxes, scores, anchors], y, custom="TFLite_Detection_PostProcess",
         custom_options=flexbuffer(**DETECTION) if options is None else options)
    return m.output(*y)


@good
def empty_tensor():
    m = Model()
    x = m.input("x", [0])
    c = m.input("c", [1])
    y = m.tensor("y", [0])
    m.op("ADD", [x, c], [y], "Add")
    return m.output(y)


@good
def scalar_by_empty_shape():
    m = Model()
    x = m.input("x", [1], "INT32")
    shape = m.tensor("shape", [0], "INT32")
    y = m.tensor("y", [], "INT32")
    m.op("RESHAPE", [x, shape], [y])
    return m.output(y)


@good
def nameless():
    m = binary("ADD", "Add")
    for tensor in m.graph["tensors"]:
        del tensor["name"]
    return m


@good
def output_listed_twice():
    m = binary("ADD", "Add")
    m.graph["outputs"] *= 2
    return m


@good
def several_subgraphs():
    m = unary("RELU")
    m.value["subgraphs"].append(copy.deepcopy(m.graph))
    return m


@good
def found():
    """As corpus/onnx/found.onnx: y is twice the elements above a threshold, r these as a row."""
    m = Model()
    x = m.input("x", [1, 4], shape_signature=[-1, 4])
    t = m.input("t", [])
    above = m.tensor("above", [1, 4], "BOOL", shape_signature=[-1, 4])
    at = m.tensor("at", [1, 2], "INT64", shape_signature=[-1, 2])
    e = m.tensor("e", [1], shape_signature=[-1])
    y = m.tensor("y", [1], shape_signature=[-1])
    r = m.tensor("r", [1, 1], shape_signature=[1, -1])
    m.op("GREATER", [x, t], [above])
    m.op("WHERE", [above], [at])
    m.op("GATHER_ND", [x, at], [e])
    m.op("ADD", [e, e], [y], "Add", {})
    m.op("RESHAPE", [e, m.tensor("row", [2], "INT32", s32(1, -1))], [r])
    return m.output(y, r)


@good
def unique():
    m = Model()
    x = m.input("x", [6], "INT32")
    y, at = m.tensor("y", [6], "INT32", shape_signature=[-1]), m.tensor("at", [6], "INT64")
    m.op("UNIQUE", [x], [y, at])
    return m.output(y, at)


@good
def range_by_data():
    """y = 0 … the sum of a and b."""
    m = Model()
    a, b = m.input("a", [], "INT32"), m.input("b", [], "INT32")
    limit, y = m.tensor("limit", [], "INT32"), m.tensor("y", [1], "INT32", shape_signature=[-1])
    m.op("ADD", [a, b], [limit], "Add", {})
    m.op("RANGE", [m.tensor("first", [], "INT32", s32(0)), limit,
                   m.tensor("step", [], "INT32", s32(1))], [y])
    return m.output(y)


@good
def dense_by_data():
    """An operator that becomes several of ours asks for its shape."""
    m = Model()
    dim = m.input("dim", [1], "INT32")
    at = m.tensor("at", [2], "INT32", s32(0, 2))
    y = m.tensor("y", [1], shape_signature=[-1])
    m.op("SPARSE_TO_DENSE", [at, dim, m.tensor("v", [2], data=f32(5, 7)),
                             m.tensor("otherwise", [], data=f32(-1))], [y])
    return m.output(y)


class Subgraph(Model):
    """A further subgraph of a model."""

    def __init__(self, model):
        self.value = model.value
        self.graph = {"tensors": [], "inputs": [], "outputs": [], "operators": []}
        self.value["subgraphs"].append(self.graph)

    @classmethod
    def of(cls, model, index):
        """One that is there, to be changed."""
        self = cls.__new__(cls)
        self.value, self.graph = model.value, model.value["subgraphs"][index]
        return self


@good
def while_counted():
    """while (i < 3) { i += 1; x += x; }"""
    m = Model()
    x = m.input("x", [1, 2])
    i = m.tensor("i", [], "INT32", s32(0))
    n, y = m.tensor("n", [], "INT32"), m.tensor("y", [1, 2])
    m.op("WHILE", [i, x], [n, y], "While", {"cond_subgraph": 1, "body_subgraph": 2})
    m.output(y)
    for is_body in (False, True):
        g = Subgraph(m)
        i, x = g.input("i", [], "INT32"), g.input("x", [1, 2])
        if is_body:
            n, y = g.tensor("n", [], "INT32"), g.tensor("y", [1, 2])
            g.op("ADD", [i, g.tensor("one", [], "INT32", s32(1))], [n], "Add", {})
            g.op("ADD", [x, x], [y], "Add", {})
            g.output(n, y)
        else:
            c = g.tensor("c", [], "BOOL")
            g.op("LESS", [i, g.tensor("three", [], "INT32", s32(3))], [c])
            g.output(c)
    return m


def branches(condition):
    """if (condition) y = -x; else y = |x|;"""
    m = Model()
    x = m.input("x", [1, 2])
    c = m.input("c", [], "BOOL") if condition is None else m.tensor("c", [], "BOOL", condition)
    y = m.tensor("y", [1, 2])
    m.op("IF", [c, x], [y], "If", {"then_subgraph": 1, "else_subgraph": 2})
    m.output(y)
    for builtin in ("NEG", "ABS"):
        g = Subgraph(m)
        x, y = g.input("x", [1, 2]), g.tensor("y", [1, 2])
        g.op(builtin, [x], [y])
        g.output(y)
    return m


@good
def if_known():
    return branches(b"\1")


@good
def while_asked():
    """The number of turns is an input."""
    m = while_counted()
    n = m.input("n", [1, 1], "INT32")
    m.graph["operators"][0]["inputs"] = [n, 0]
    for graph in m.value["subgraphs"]:
        for tensor in graph["tensors"]:
            if tensor["type"] == "INT32" and tensor["buffer"] == 0:
                tensor["shape"] = [1, 1]
    m.value["subgraphs"][1]["tensors"][3]["shape"] = [1, 1]
    return m


@good
def variable_in_a_loop():
    m = while_asked()
    g = Subgraph.of(m, 2)
    v = handle(g)
    g.op("ASSIGN_VARIABLE", [v, 0], [])
    g.graph["operators"] = g.graph["operators"][-2:] + g.graph["operators"][:-2]
    return m


@good
def if_asked():
    return branches(None)


@good
def found_in_branch():
    """if (c) y = the elements of x that are not 0; else y = |x| as a row."""
    m = branches(None)
    m.graph["tensors"][2] |= {"shape": [1], "shape_signature": [-1]}
    for g, builtin in ((Subgraph.of(m, 1), "WHERE"), (Subgraph.of(m, 2), "RESHAPE")):
        g.graph["tensors"][1] |= {"shape": [1], "shape_signature": [-1]}
        if builtin == "WHERE":
            g.graph["operators"].clear()
            at = g.tensor("at", [1, 2], "INT64", shape_signature=[-1, 2])
            g.op("WHERE", [0], [at])
            g.op("GATHER_ND", [0, at], [1])
        else:
            a = g.tensor("a", [1, 2])
            g.graph["operators"][0]["outputs"] = [a]
            g.op("RESHAPE", [a, g.tensor("row", [1], "INT32", s32(-1))], [1])
    return m


@good
def call():
    m = branches(b"\0")
    m.graph["operators"][0] = m.op("CALL", [0], [2], "Call", {"subgraph": 1})
    m.graph["operators"].pop()
    return m


def handle(m):
    v = m.tensor("handle", [], "RESOURCE")
    m.op("VAR_HANDLE", [], [v], "VarHandle", {"container": "", "shared_name": "v"})
    return v


@good
def variable():
    """y = v = v + x; v is 1, 2 at first."""
    m = Model()
    x, old, y = m.input("x", [1, 2]), m.tensor("old", [1, 2]), m.tensor("y", [1, 2])
    m.op("CALL_ONCE", [], [], "CallOnce", {"init_subgraph": 1})
    v = handle(m)
    m.op("READ_VARIABLE", [v], [old])
    m.op("ADD", [old, x], [y], "Add", {})
    m.op("ASSIGN_VARIABLE", [v, y], [])
    m.output(y)
    g = Subgraph(m)
    g.op("ASSIGN_VARIABLE", [handle(g), g.tensor("begin", [1, 2], data=f32(1, 2))], [])
    return m


@good
def size_of_data_beside_variables():
    m = variable()
    at = m.tensor("at", [1, 2], "INT64", shape_signature=[-1, 2])
    m.op("WHERE", [m.graph["outputs"][0]], [at])
    m.graph["outputs"] = [m.graph["operators"][-1]["outputs"][0]]
    return m


@good
def composite():
    m = branches(b"\0")
    m.graph["operators"][0] = m.op("STABLEHLO_COMPOSITE", [0], [2])
    m.graph["operators"].pop()
    m.graph["operators"][0]["more_options_type"] = "StablehloComposite"
    m.graph["operators"][0]["more_options"] = {"name": "ours", "decomposition_subgraph": 1}
    return m


def s64(*values):
    return struct.pack(f"<{len(values)}q", *values)


def more_options(m, name, **fields):
    m.graph["operators"][-1] |= {"more_options_type": name, "more_options": fields}
    return m


def texts(*values):
    """Their count, where each begins, where the last ends, the texts."""
    places = [4 * (len(values) + 2)]
    for value in values:
        places.append(places[-1] + len(value))
    return struct.pack(f"<{len(values) + 2}i", len(values), *places) + b"".join(values)


@good
def hashtable():
    """y = 7 for "b", 5 for "a", else -1; n = 2."""
    m = Model()
    x = m.input("x", [3], "STRING")
    y, n = m.tensor("y", [3], "INT64"), m.tensor("n", [1], "INT64")
    m.op("CALL_ONCE", [], [], "CallOnce", {"init_subgraph": 1})
    g = Subgraph(m)
    handles = []
    for graph in (m, g):
        handles.append(graph.tensor("handle", [], "RESOURCE"))
        graph.op("HASHTABLE", [], [handles[-1]], "Hashtable", {"table_id": 3})
    g.op("HASHTABLE_IMPORT", [handles[1], g.tensor("keys", [2], "STRING", texts(b"a", b"b")),
                              g.tensor("values", [2], "INT64", s64(5, 7))], [])
    m.op("HASHTABLE_FIND", [handles[0], x, m.tensor("others", [], "INT64", s64(-1))], [y])
    m.op("HASHTABLE_SIZE", [handles[0]], [n])
    return m.output(y, n)


@good
def hashtables_behind_a_cut():
    """y = 70 for each place 1 where x is not 0, 50 for place 0. A handle stands before CALL_ONCE,
    which makes the tables in another order."""
    m = Model()
    x, h = m.input("x", [2], shape_signature=[-1]), m.tensor("handle", [], "RESOURCE")
    m.op("HASHTABLE", [], [h], "Hashtable", {"table_id": 9})
    m.op("CALL_ONCE", [], [], "CallOnce", {"init_subgraph": 1})
    at = m.tensor("at", [1, 1], "INT64", shape_signature=[-1, 1])
    y = m.tensor("y", [1, 1], "INT64", shape_signature=[-1, 1])
    m.op("WHERE", [x], [at])
    m.op("HASHTABLE_FIND", [h, at, m.tensor("others", [], "INT64", s64(-1))], [y])
    g = Subgraph(m)
    for table, values in ((3, s64(5, 7)), (9, s64(50, 70))):
        h = g.tensor("handle", [], "RESOURCE")
        g.op("HASHTABLE", [], [h], "Hashtable", {"table_id": table})
        g.op("HASHTABLE_IMPORT", [h, g.tensor("keys", [2], "INT64", s64(0, 1)),
                                  g.tensor("values", [2], "INT64", values)], [])
    return m.output(y)


@good
def hashtables_of_a_call_behind_a_cut():
    """The same, where CALL_ONCE stands in a subgraph."""
    m = hashtables_behind_a_cut()
    g = Subgraph(m)
    g.graph["operators"].append(m.graph["operators"][1])
    m.graph["operators"][1] = m.op("CALL", [], [], "Call", {"subgraph": 2})
    m.graph["operators"].pop()
    return m


@good
def found_once_behind_a_cut():
    """y = the places of x that are not 0, and 2 more: what CALL_ONCE finds in a list of its own,
    with an operator that asks as the first of the model does."""
    m = Model()
    x, old = m.input("x", [2], shape_signature=[-1]), m.tensor("old", [1, 1], "INT64")
    at = m.tensor("at", [1, 1], "INT64", shape_signature=[-1, 1])
    y = m.tensor("y", [1, 1], "INT64", shape_signature=[-1, 1])
    m.op("WHERE", [x], [at])
    m.op("CALL_ONCE", [], [], "CallOnce", {"init_subgraph": 1})
    m.op("READ_VARIABLE", [handle(m)], [old])
    m.op("ADD", [at, old], [y], "Add", {})
    g = Subgraph(m)
    at = g.tensor("at", [1, 1], "INT64")
    g.op("WHERE", [g.tensor("list", [3], data=f32(0, 0, 4))], [at])
    g.op("ASSIGN_VARIABLE", [handle(g), at], [])
    return m.output(y)


@good
def hashtable_in_branch():
    """y = 5 if c, else 7. Each branch fills the table."""
    m = branches(None)
    h, n = m.tensor("handle", [], "RESOURCE"), m.tensor("n", [1], "INT64")
    for index, value in ((1, s64(5)), (2, s64(7))):
        g = Subgraph.of(m, index)
        inner = g.tensor("handle", [], "RESOURCE")
        g.op("HASHTABLE", [], [inner], "Hashtable", {"table_id": 3})
        g.op("HASHTABLE_IMPORT", [inner, g.tensor("key", [1], "INT64", s64(1)),
                                  g.tensor("value", [1], "INT64", value)], [])
    m.op("HASHTABLE", [], [h], "Hashtable", {"table_id": 3})
    m.op("HASHTABLE_FIND", [h, m.tensor("one", [1], "INT64", s64(1)),
                            m.tensor("others", [], "INT64", s64(-1))], [n])
    return m.output(n)


@good
def found_in_loop():
    """while (a) { x = the elements of x that are not 0; a, b = b, false; } Each turn asks how many
    elements are not 0, and for b as a dimension."""
    m = Model()
    a, b = m.input("a", [], "BOOL"), m.input("b", [], "BOOL")
    x = m.input("x", [3], shape_signature=[-1])
    results = [m.tensor("p", [], "BOOL"), m.tensor("q", [], "BOOL"),
               m.tensor("y", [3], shape_signature=[-1])]
    m.op("WHILE", [a, b, x], results, "While", {"cond_subgraph": 1, "body_subgraph": 2})
    m.output(results[2])
    for is_body in (False, True):
        g = Subgraph(m)
        a, b, x = g.input("a", [], "BOOL"), g.input("b", [], "BOOL"), g.input("x", [3])
        if not is_body:
            g.output(a)
            continue
        number, dim = g.tensor("number", [], "INT32"), g.tensor("dim", [1], "INT32")
        at, y = g.tensor("at", [1, 1], "INT64", shape_signature=[-1, 1]), g.tensor("y", [3])
        g.op("CAST", [b], [number])
        g.op("RESHAPE", [number, g.tensor("row", [1], "INT32", s32(1))], [dim])
        g.op("FILL", [dim, g.tensor("one", [], data=f32(1))], [g.tensor("ones", [1])])
        g.op("WHERE", [x], [at])
        g.op("GATHER_ND", [x, at], [y])
        g.output(b, g.tensor("no", [], "BOOL", b"\0"), y)
    return m


@good
def text_called_twice():
    """Its text is most of the file."""
    m = Model()
    x = m.input("x", [2], "STRING")
    g = Subgraph(m)
    a, b = g.input("a", [2], "STRING"), g.tensor("b", [2], "BOOL")
    g.op("EQUAL", [a, g.tensor("text", [1], "STRING", texts(b"abc" * 2000))], [b])
    g.output(b)
    for name in "yz":
        y = m.tensor(name, [2], "BOOL")
        m.op("CALL", [x], [y], "Call", {"subgraph": 1})
        m.output(y)
    return m


@good
def hlo_pad():
    m = Model()
    x, y = m.input("x", [2, 3]), m.tensor("y", [4, 4])
    m.op("STABLEHLO_PAD", [x, m.tensor("v", [], data=f32(7))], [y])
    m.output(y)
    return more_options(m, "StablehloPad", low=[1, -1], high=[0, 0], between=[1, 1])


@good
def hlo_clamp():
    m = Model()
    x, y = m.input("x", [2, 3]), m.tensor("y", [2, 3])
    low, high = m.tensor("low", [], data=f32(-1)), m.tensor("high", [2, 3], data=f32(*range(6)))
    m.op("STABLEHLO_CLAMP", [low, x, high], [y])
    m.output(y)
    return m


@good
def hlo_gather():
    m = Model()
    x, y = m.input("x", [3, 4]), m.tensor("y", [2, 2])
    at = m.tensor("at", [2, 1], "INT32", s32(2, 0))
    m.op("STABLEHLO_GATHER", [x, at], [y])
    m.output(y)
    return more_options(m, "StablehloGather", offset_dims=[1], collapsed_slice_dims=[0],
                        start_index_map=[0], index_vector_dim=1, slice_sizes=[1, 2])


@good
def hlo_scatter():
    m = Model()
    x, news, y = m.input("x", [3, 4]), m.input("news", [2, 2]), m.tensor("y", [3, 4])
    at = m.tensor("at", [2, 1], "INT32", s32(2, 0))
    m.op("STABLEHLO_SCATTER", [x, at, news], [y])
    m.output(y)
    g = Subgraph(m)
    a, b, c = g.input("a", []), g.input("b", []), g.tensor("c", [])
    g.op("STABLEHLO_ADD", [a, b], [c])
    g.output(c)
    return more_options(m, "StablehloScatter", update_window_dims=[1], inserted_window_dims=[0],
                        scatter_dims=[0], index_vector_dim=1, body_subgraph=1)


@good
def hlo_case():
    m = Model()
    at, x, y = m.input("at", [1], "INT32"), m.input("x", [2]), m.tensor("y", [2])
    m.op("STABLEHLO_CASE", [at, x], [y])
    m.output(y)
    for operator in ("ABS", "NEG"):
        g = Subgraph(m)
        a, b = g.input("a", [2]), g.tensor("b", [2])
        g.op(operator, [a], [b])
        g.output(b)
    return more_options(m, "StablehloCase", branch_subgraphs=[1, 2])


@good
def hlo_reduce_window():
    m = Model()
    x, y = m.input("x", [3, 4]), m.tensor("y", [3, 3])
    m.op("STABLEHLO_REDUCE_WINDOW", [x, m.tensor("v", [], data=f32(0))], [y])
    m.output(y)
    g = Subgraph(m)
    a, b, c = g.input("a", []), g.input("b", []), g.tensor("c", [])
    g.op("STABLEHLO_ADD", [a, b], [c])
    g.output(c)
    return more_options(m, "StablehloReduceWindow", window=[2, 2], strides=[1, 1],
                        base_dilations=[1, 1], window_dilations=[1, 1], padding=[1, 0, 0, 0],
                        body_subgraph=1)


@good
def reduce_window():
    m = Model()
    x, y = m.input("x", [3, 4]), m.tensor("y", [2, 2])
    lists = [m.tensor(name, [2], "INT64", s64(*values)) for name, values in
             (("window", (2, 2)), ("strides", (1, 2)), ("dilations", (1, 1)))]
    m.op("REDUCE_WINDOW", [x, m.tensor("v", [], data=f32(0)), *lists], [y])
    m.output(y)
    return more_options(m, "ReduceWindow", function=4)


@good
def dilate():
    m = Model()
    x, y = m.input("x", [2, 3]), m.tensor("y", [3, 3])
    m.op("DILATE", [x, m.tensor("d", [2], "INT32", s32(2, 1)), m.tensor("v", [], data=f32(7))],
         [y])
    return m.output(y)


def matrix(m, name, rows, columns):
    return m.tensor(name, [rows, columns], data=f32(*[0.1 * i for i in range(rows * columns)]))


def cell(m, prefix, inputs, units):
    """Weights, recurrent weights, bias and state of an RNN."""
    return [matrix(m, prefix + "w", units, inputs), matrix(m, prefix + "r", units, units),
            m.tensor(prefix + "b", [units], data=f32(*[0.5] * units)),
            m.tensor(prefix + "h", [1, units], is_variable=True)]


@good
def rnn():
    m = Model()
    x, y = m.input("x", [1, 3]), m.tensor("y", [1, 2])
    m.op("RNN", [x, *cell(m, "", 3, 2)], [y], "Rnn", {"activation": "RELU"})
    return m.output(y)


@good
def sequence_rnn():
    m = Model()
    x, y = m.input("x", [1, 2, 3]), m.tensor("y", [1, 2, 2])
    m.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, *cell(m, "", 3, 2)], [y], "SequenceRnn",
         {"activation": "TANH"})
    return m.output(y)


@good
def bidirectional_rnn():
    m = Model()
    x, y = m.input("x", [1, 2, 3]), m.tensor("y", [1, 2, 4])
    m.op("BIDIRECTIONAL_SEQUENCE_RNN",
         [x, *cell(m, "f", 3, 2), *cell(m, "b", 3, 2), -1, -1, -1], [y],
         "BidirectionalSequenceRnn", {"activation": "TANH", "merge_outputs": True})
    return m.output(y)


def lstm_layer(m, prefix, inputs, cells):
    """Weights, peepholes, biases, no projection; states."""
    layer = [matrix(m, f"{prefix}w{g}", cells, inputs) for g in range(4)]
    layer += [matrix(m, f"{prefix}r{g}", cells, cells) for g in range(4)] + [-1] * 3
    layer += [m.tensor(f"{prefix}b{g}", [cells], data=f32(*[0.1] * cells)) for g in range(4)]
    return layer + [-1, -1], [m.tensor(f"{prefix}s{i}", [1, cells], is_variable=True)
                              for i in range(2)]


@good
def lstm():
    m = Model()
    x, y = m.input("x", [1, 3]), m.tensor("y", [1, 2])
    layer, states = lstm_layer(m, "", 3, 2)
    m.op("LSTM", [x, *layer, *states], [y], "Lstm", {"activation": "TANH", "cell_clip": 1.5})
    return m.output(y)


@good
def sequence_lstm():
    m = Model()
    x, y = m.input("x", [1, 2, 3]), m.tensor("y", [1, 2, 2])
    layer, states = lstm_layer(m, "", 3, 2)
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *layer, *states, *[-1] * 4], [y],
         "UnidirectionalSequenceLstm", {"activation": "TANH"})
    return m.output(y)


@good
def integer_lstm():
    """Without an input gate; three cells make a state of two numbers."""
    m = Model()

    def s8(name, *shape, **more):
        count = 1
        for size in shape:
            count *= size
        data = None if more else bytes(i % 7 for i in range(count))
        return m.tensor(name, shape, "INT8", data, quant(2**-7, 0), **more)

    x = m.input("x", [1, 2, 4], "INT8", quantization=quant(2**-7, 0))
    y, h = s8("y", 1, 2, 2, shape_signature=[1, 2, 2]), s8("h", 1, 2, is_variable=True)
    cell = m.tensor("c", [1, 3], "INT16", None, quant(2**-11, 0), is_variable=True)
    weights = [s8(f"w{g}", 3, 4) for g in range(1, 4)]
    recurrent = [s8(f"r{g}", 3, 2) for g in range(1, 4)]
    bias = [m.tensor(f"b{g}", [3], "INT32", s32(1, 2, 3), quant(2**-14, 0)) for g in range(1, 4)]
    m.op("UNIDIRECTIONAL_SEQUENCE_LSTM",
         [x, -1, *weights, -1, *recurrent, *[-1] * 3, -1, *bias, s8("p", 2, 3), -1, h, cell,
          *[-1] * 4], [y], "UnidirectionalSequenceLstm", {"activation": "TANH"})
    m.graph["operators"][-1]["intermediates"] = [
        m.tensor(f"i{i}", [0], "INT8", None, quant(2**-7, 0)) for i in range(5)]
    return m.output(y)


@good
def bidirectional_lstm():
    m = Model()
    x, y, z = m.input("x", [1, 2, 3]), m.tensor("y", [1, 2, 2]), m.tensor("z", [1, 2, 2])
    front, front_states = lstm_layer(m, "f", 3, 2)
    back, back_states = lstm_layer(m, "b", 3, 2)
    m.op("BIDIRECTIONAL_SEQUENCE_LSTM",
         [x, *front, *back, *front_states, *back_states, *[-1] * 9], [y, z],
         "BidirectionalSequenceLstm", {"activation": "TANH", "time_major": False})
    return m.output(y, z)


@good
def svdf():
    m = Model()
    x, y = m.input("x", [1, 3]), m.tensor("y", [1, 2])
    m.op("SVDF", [x, matrix(m, "w", 4, 3), matrix(m, "t", 4, 5), -1,
                  m.tensor("s", [1, 20], is_variable=True)], [y], "Svdf",
         {"rank": 2, "activation": "RELU"})
    return m.output(y)


def densify(shape, data, *dimensions, **more):
    m = Model()
    x, w, y = m.input("x", shape), m.tensor("w", shape, data=data), m.tensor("y", shape)
    d = m.tensor("d", shape)
    m.graph["tensors"][w]["sparsity"] = {"dimensions": dimensions, **more}
    m.op("DENSIFY", [w], [d])
    m.op("ADD", [x, d], [y], "Add", {})
    return m.output(y)


def indexes(kind, *values):
    return {"values": list(values)}, kind


def compressed(segments, indices):
    return {"format": "SPARSE_CSR", "segments_type": segments[1], "segments": segments[0],
            "indices_type": indices[1], "indices": indices[0]}


@good
def sparse_rows():
    rows = compressed(indexes("Uint8Vector", 0, 1, 1, 3), indexes("Uint16Vector", 3, 0, 2))
    return densify([3, 4], f32(1, 2, 3), {"dense_size": 3}, rows, traversal_order=[0, 1])


@good
def sparse_blocks():
    rows = compressed(indexes("Int32Vector", 0, 1, 2), indexes("Uint8Vector", 1, 0))
    return densify([2, 4], f32(1, 2, 3, 4), {"dense_size": 2}, rows, {"dense_size": 2},
                   traversal_order=[0, 1, 2], block_map=[1])


@good
def fully_connected_int4():
    m = Model()
    x, y = m.input("x", [1, 3]), m.tensor("y", [1, 3])
    w = m.tensor("w", [3, 3], "INT4", bytes((0x71, 0x9F, 0x23, 0xE1, 0x08)), quant(0.1, 0))
    m.op("FULLY_CONNECTED", [x, w, -1], [y], "FullyConnected", {}, version=9)
    return m.output(y)


@good
def blocks_of_rows():
    m = Model()
    x, y = m.input("x", [2], "INT32"), m.tensor("y", [2, 4])
    scales = m.tensor("scales", [3, 2], "FLOAT16", bytes((0, 0x3C, 0, 0x38) * 3))
    blocks = {"details_type": "BlockwiseQuantization",
              "details": {"scales": scales, "block_size": 2}}
    w = m.tensor("w", [3, 4], "INT2", bytes((0x71, 0x9F, 0x23)), blocks)
    m.op("EMBEDDING_LOOKUP", [x, w], [y], version=4)
    return m.output(y)


@good
def fake_quant():
    return unary("FAKE_QUANT", options=("FakeQuant", {"min": -1.0, "max": 2.0, "num_bits": 8}))


@good
def bucketize():
    return unary("BUCKETIZE", out_type="INT32", options=("Bucketize", {"boundaries": [-1.0, 0.5]}))


@good
def embedding_lookup_sparse():
    m = Model()
    ids, y = m.input("ids", [2], "INT32"), m.tensor("y", [2, 3])
    at = m.tensor("at", [2, 2], "INT32", s32(0, 0, 1, 1))
    shape = m.tensor("shape", [2], "INT32", s32(2, 2))
    shares = m.tensor("shares", [2], data=f32(1, 2))
    m.op("EMBEDDING_LOOKUP_SPARSE", [ids, at, shape, shares, matrix(m, "table", 1, 3)], [y],
         "EmbeddingLookupSparse", {"combiner": "MEAN"})
    return m.output(y)


@good
def output_is_input():
    m = unary("RELU")
    return m.output(0)


@good
def shared_buffer():
    """Two tensors with one buffer."""
    m = Model()
    a = m.tensor("a", [2, 2], data=f32(1, 2, 3, 4))
    b = m.tensor("b", [4])
    m.graph["tensors"][b]["buffer"] = 1
    x = m.input("x", [4])
    y = m.tensor("y", [4])
    z = m.tensor("z", [2, 4])
    m.op("MUL", [x, b], [y], "Mul")
    m.op("RESHAPE", [a], [z], "Reshape", {"new_shape": [1, 4]})
    return m.output(y, z)


for name, builtin in {
        "relu": "RELU", "relu6": "RELU6", "relu_n1_to_1": "RELU_N1_TO_1",
        "relu_0_to_1": "RELU_0_TO_1", "tanh": "TANH", "logistic": "LOGISTIC", "exp": "EXP",
        "log": "LOG", "sqrt": "SQRT", "rsqrt": "RSQRT", "neg": "NEG", "abs": "ABS",
        "hard_swish": "HARD_SWISH"
}.items():
    GOOD[name] = lambda builtin=builtin: unary(builtin)
GOOD["leaky_relu"] = lambda: unary("LEAKY_RELU", options=("LeakyRelu", {"alpha": 0.2}))
GOOD["cast"] = lambda: unary("CAST", out_type="INT32")
for name, (builtin, options) in {
        "add": ("ADD", "Add"), "sub": ("SUB", "Sub"), "mul": ("MUL", "Mul"), "div": ("DIV", "Div"),
        "maximum": ("MAXIMUM", None), "minimum": ("MINIMUM", None),
        "squared_difference": ("SQUARED_DIFFERENCE", None)
}.items():
    GOOD[name] = lambda builtin=builtin, options=options: binary(builtin, options)
GOOD["add_f16"] = lambda: binary("ADD", "Add", {"activation": "RELU"}, "FLOAT16")
GOOD["mul_u32"] = lambda: binary("MUL", "Mul", {}, "UINT32")
GOOD["add_s16"] = lambda: binary("ADD", "Add", {"pot_scale_int16": False}, "INT16", quant(0.5, 0))
GOOD["mean"] = lambda: with_ints(
    "MEAN", [1, 2], options=("Reducer", {"keep_dims": True}), out=[1, 1, 1, 2])
GOOD["sum"] = lambda: with_ints("SUM", [-1], options=("Reducer", {}), out=[1, 4, 4])
GOOD["mean_of_scalar"] = lambda: with_ints("MEAN", [-2], options=("Reducer", {}), shape=[], out=[])

GOOD["reduce_max"] = lambda: with_ints("REDUCE_MAX", [0, 1], options=("Reducer", {}), out=[4, 2])
GOOD["transpose"] = lambda: with_ints("TRANSPOSE", [0, 3, 1, 2], out=[1, 2, 4, 4])
GOOD["pad"] = lambda: with_ints("PAD", [0, 0, 1, 1, 2, 2, 0, 0], out=[1, 6, 8, 2])
GOOD["slice"] = lambda: with_ints("SLICE", [0, 1, 0, 0], [-1, 2, 3, 2], out=[1, 2, 3, 2])
GOOD["strided_slice"] = lambda: with_ints("STRIDED_SLICE", [0, 3, 0, 0], [1, 0, 4, 2],
                                          [1, -1, 2, 1],
                                          options=("StridedSlice", {"end_mask": 2}),
                                          out=[1, 4, 2, 2])
GOOD["squeeze"] = lambda: unary(
    "SQUEEZE", shape=(1, 4, 1, 2), options=("Squeeze", {"squeeze_dims": [0, -2]}))
GOOD["expand_dims"] = lambda: with_ints("EXPAND_DIMS", -1, out=[1, 4, 4, 2, 1])
GOOD["space_to_batch"] = lambda: with_ints("SPACE_TO_BATCH_ND", [2, 2], [0, 0, 0, 0],
                                           out=[4, 2, 2, 2])
GOOD["batch_to_space"] = lambda: with_ints(
    "BATCH_TO_SPACE_ND", [2, 2], [0, 0, 1, 0], shape=(4, 2, 2, 2), out=[1, 4, 3, 2])
GOOD["resize_bilinear"] = lambda: with_ints("RESIZE_BILINEAR", [8, 7],
                                            out=[1, 8, 7, 2],
                                            version=3,
                                            options=("ResizeBilinear", {"half_pixel_centers": True})
                                            )
GOOD["resize_nearest"] = lambda: with_ints("RESIZE_NEAREST_NEIGHBOR", [2, 9], out=[1, 2, 9, 2],
                                           options=("ResizeNearest", {"align_corners": True}))


def metadata(**more):
    value = {"name": "small", "description": "a model with everything",
             "subgraph_metadata": [{
                 "input_tensor_metadata": [{
                     "name": "image", "description": "a picture",
                     "process_units": [{"options_type": "Normalization",
                                        "options": {"mean": [127.5], "std": [128.0]}}]}],
                 "output_tensor_metadata": [{
                     "name": "class", "description": "what it shows",
                     "associated_files": [
                         {"name": "labels_de.txt", "type": "TENSOR_AXIS_LABELS", "locale": "de"},
                         {"name": "labels.txt", "type": "TENSOR_AXIS_LABELS"}]}]}]}
    value["subgraph_metadata"][0].update(more)
    return value


def with_metadata(value=None,
                  labels="cat\ndog\r\nbird\nfish",
                  compression=zipfile.ZIP_DEFLATED,
                  raw=None,
                  base=None):
    m = base or GOOD["fully_connected_reshape_softmax"]()
    m.value["description"] = "fallback"
    m.value["metadata"] = [{"name": "min_runtime_version", "buffer": 0},
                           {"name": "TFLITE_METADATA", "buffer": len(m.value["buffers"])}]
    m.value["buffers"].append(
        {"data": list(flatc("metadata.fbs", value or metadata()) if raw is None else raw)})
    data = m.bytes()
    if labels is None:
        return data
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", compression) as z:
        for name, text in (("labels_de.txt", "Katze\nHund\n"), ("labels.txt", labels)):
            z.writestr(zipfile.ZipInfo(name), text, compression)
    return data + archive.getvalue()


def constant_input():
    m = GOOD["concatenation"]()
    m.graph["inputs"].insert(0, 2)
    value = metadata(input_tensor_metadata=[{"description": f"about {name}"} for name in "cab"])
    return with_metadata(value, labels=None, base=m)


RAW = {
    "good_constant_input": constant_input,
    "good_metadata_deflated": with_metadata,
    "good_metadata_stored": lambda: with_metadata(compression=zipfile.ZIP_STORED),
    "good_metadata_without_archive": lambda: with_metadata(labels=None),
}


def large_buffer():
    """Content behind the FlatBuffer, as files above 2 GiB have it."""
    m = GOOD["conv_u8"]()
    buffer = m.value["buffers"][1]
    content = bytes(buffer.pop("data"))
    buffer.update(offset=2, size=len(content))
    size = len(m.bytes())
    buffer["offset"] = (size + 15) // 16 * 16
    return m.bytes().ljust(buffer["offset"], b"\0") + content


RAW["good_buffer_behind_the_flatbuffer"] = large_buffer

# ---- bad: name → (good model to start from, change) ----

BAD = {}


def bad(base):
    def register(function):
        BAD[function.__name__] = (base, function)
        return function
    return register


def tensors(m):
    return m.graph["tensors"]


def options(m, index=0):
    return m.graph["operators"][index]["options"]


@bad("add")
def format_version(m):
    m.value["version"] = 4


@bad("add")
def no_subgraph(m):
    m.value["subgraphs"] = []


@bad("add")
def no_outputs(m):
    m.graph["outputs"] = []


@bad("add")
def opcode_index(m):
    m.graph["operators"][0]["opcode_index"] = 7


@bad("add")
def opcode_unknown(m):
    m.value["operator_codes"][0]["builtin_code"] = "SKIP_GRAM"


@bad("add")
def opcode_random(m):
    m.value["operator_codes"][0]["builtin_code"] = "RANDOM_UNIFORM"


@bad("add")
def opcode_hash(m):
    m.value["operator_codes"][0]["builtin_code"] = "LSH_PROJECTION"


@bad("call")
def call_itself(m):
    options(m)["subgraph"] = 0


@bad("call")
def call_index(m):
    options(m)["subgraph"] = 9


@bad("call")
def call_operands(m):
    m.graph["operators"][0]["inputs"] = [0, 0]


@bad("while_counted")
def while_condition(m):
    m.value["subgraphs"][1]["outputs"][0] = 0


@bad("if_known")
def if_condition(m):
    m.graph["operators"][0]["inputs"] = []


@bad("if_known")
def subgraph_output(m):
    m.value["subgraphs"][1]["outputs"][0] = 7


@bad("add")
def opcode_version_new(m):
    m.value["operator_codes"][0]["version"] = 99


@bad("add")
def opcode_version_negative(m):
    m.value["operator_codes"][0]["version"] = -1


@bad("detection")
def custom_unknown(m):
    m.value["operator_codes"][0]["custom_code"] = "Sinh"


@bad("detection")
def custom_options(m):
    m.graph["operators"][0]["custom_options"] = list(flexbuffer(**DETECTION))[:-1]


@bad("detection")
def custom_options_missing_key(m):
    m.graph["operators"][0]["custom_options"] = list(flexbuffer(max_detections=3))


@bad("add")
def options_of_another_operator(m):
    m.graph["operators"][0]["options_type"] = "Reshape"


@bad("add")
def input_index(m):
    m.graph["operators"][0]["inputs"] = [0, 99]


@bad("add")
def input_index_negative(m):
    m.graph["operators"][0]["inputs"] = [0, -2]


@bad("add")
def input_absent(m):
    m.graph["operators"][0]["inputs"] = [0, -1]


@bad("add")
def input_count(m):
    m.graph["operators"][0]["inputs"] = [0, 1, 1]


@bad("add")
def output_index(m):
    m.graph["operators"][0]["outputs"] = [-1]


@bad("add")
def output_count(m):
    m.graph["operators"][0]["outputs"] = []
    m.graph["outputs"] = [0]


@bad("add")
def output_is_the_input(m):
    m.graph["operators"][0]["outputs"] = [0]


@bad("concatenation")
def output_is_a_constant(m):
    m.graph["operators"][0]["outputs"] = [2]


@bad("add")
def intermediate_index(m):
    m.graph["operators"][0]["intermediates"] = [0, 99]


@bad("pack_unpack")
def two_producers(m):
    m.graph["operators"][1]["outputs"] = [2, 4, 5]


@bad("add")
def cycle(m):
    m.graph["operators"][0]["inputs"] = [0, 2]


@bad("quantize_round_trip")
def order(m):
    m.graph["operators"].reverse()


@bad("add")
def graph_input_index(m):
    m.graph["inputs"] = [0, 99]


@bad("add")
def graph_input_twice(m):
    m.graph["inputs"] = [0, 1, 0]


@bad("add")
def graph_output_index(m):
    m.graph["outputs"] = [99]


@bad("add")
def graph_output_made_by_nothing(m):
    m.graph["tensors"].append({"name": "z", "shape": [3]})
    m.graph["outputs"] = [3]


@bad("add")
def two_inputs_of_one_name(m):
    tensors(m)[1]["name"] = "a"


@bad("add")
def name_of_two_lines(m):
    tensors(m)[2]["name"] = "y\nerror: forged"


@bad("detection")
def custom_name_of_two_lines(m):
    m.value["operator_codes"][0]["custom_code"] = "op\n"


@bad("add")
def buffer_index(m):
    tensors(m)[0]["buffer"] = 12


@bad("conv_u8")
def buffer_too_short(m):
    m.value["buffers"][1]["data"].pop()


@bad("conv_u8")
def buffer_offset(m):
    m.value["buffers"][1] = {"offset": 1 << 40, "size": 108}


@bad("conv_u8")
def buffer_size(m):
    m.value["buffers"][1] = {"offset": 64, "size": (1 << 64) - 32}


@bad("conv_u8")
def buffer_in_two_places(m):
    m.value["buffers"][1].update(offset=64, size=108)


@bad("add")
def dimension_negative(m):
    tensors(m)[0]["shape"] = [1, -4, 4, 2]


@bad("add")
def signature_rank(m):
    tensors(m)[0]["shape_signature"] = [-1, 4]


@bad("concatenation")
def shape_overflow(m):
    tensors(m)[2]["shape"] = [2147483647, 2147483647, 2147483647, 3]


@bad("add")
def input_too_large(m):
    tensors(m)[0]["shape"] = [65536, 65536]


@bad("add")
def input_empty_and_too_large(m):
    tensors(m)[0]["shape"] = [65536, 0, 65536]


@bad("add")
def rank(m):
    tensors(m)[0]["shape"] = [1] * 9


@bad("add")
def type_unknown(m):
    tensors(m)[0]["type"] = "RESOURCE"


@bad("add")
def type_string(m):
    tensors(m)[0]["type"] = "STRING"


@bad("concatenation")
def type_string_of_a_constant(m):
    tensors(m)[2]["type"] = "STRING"


@bad("hashtable")
def hashtable_of_no_handle(m):
    m.graph["operators"][2]["inputs"][0] = m.tensor("other", [], "INT32", s32(0))


@bad("hashtable")
def hashtable_keys(m):
    """Two keys, three values."""
    g = Subgraph.of(m, 1)
    values = g.graph["operators"][1]["inputs"][2]
    g.graph["tensors"][values]["shape"] = [3]
    m.value["buffers"][g.graph["tensors"][values]["buffer"]]["data"] = list(s64(5, 7, 9))


@bad("hashtables_behind_a_cut")
def cut_behind_tables_of_a_call(m):
    """What a subgraph fills is not filled again behind the cut, but for that of CALL_ONCE."""
    m.graph["operators"][1] = m.op("CALL", [], [], "Call", {"subgraph": 1})
    m.graph["operators"].pop()


@bad("hashtable")
def text_outside(m):
    g = Subgraph.of(m, 1)
    keys = g.graph["tensors"][g.graph["operators"][1]["inputs"][1]]
    m.value["buffers"][keys["buffer"]]["data"][12] = 99


@bad("variable")
def variable_never_assigned(m):
    m.graph["operators"].pop(0)


@bad("variable")
def variable_of_no_handle(m):
    m.graph["operators"][2]["inputs"] = [0]


@bad("concatenation")
def sparse(m):
    tensors(m)[2]["sparsity"] = {}


def sparsity(m):
    return next(t["sparsity"] for t in tensors(m) if "sparsity" in t)


@bad("sparse_rows")
def sparse_index(m):
    sparsity(m)["dimensions"][1]["indices"]["values"][0] = 4


@bad("sparse_rows")
def sparse_segments(m):
    sparsity(m)["dimensions"][1]["segments"]["values"] = [0, 2]


@bad("sparse_rows")
def sparse_content(m):
    sparsity(m)["dimensions"][1]["segments"]["values"] = [0, 1, 1, 2]


@bad("sparse_blocks")
def sparse_block(m):
    sparsity(m)["dimensions"][2]["dense_size"] = 3


@bad("conv_u8")
def scale_negative(m):
    tensors(m)[1]["quantization"]["scale"] = [-0.1]


@bad("conv_u8")
def scale_infinite(m):
    tensors(m)[0]["quantization"]["scale"] = [1e39]


@bad("conv_s8_per_channel")
def scale_count(m):
    tensors(m)[1]["quantization"]["scale"].pop()
    tensors(m)[1]["quantization"]["zero_point"].pop()


@bad("conv_s8_per_channel")
def scale_axis(m):
    tensors(m)[1]["quantization"]["quantized_dimension"] = 4


@bad("conv_s8_per_channel")
def zero_point_count(m):
    tensors(m)[1]["quantization"]["zero_point"].pop()


@bad("conv_u8")
def zero_point_range(m):
    tensors(m)[0]["quantization"]["zero_point"] = [256]


@bad("conv_u8")
def custom_quantization(m):
    tensors(m)[0]["quantization"].update(details_type="CustomQuantization", details={})


def blocks_of(m):
    return tensors(m)[3]["quantization"]["details"]


@bad("blocks_of_rows")
def blocks_of_nothing(m):
    blocks_of(m)["block_size"] = 0


@bad("blocks_of_rows")
def blocks_too_wide(m):
    blocks_of(m)["block_size"] = 3


@bad("blocks_of_rows")
def blocks_without_scales(m):
    blocks_of(m)["scales"] = 9


@bad("blocks_of_rows")
def blocks_of_few_scales(m):
    blocks_of(m)["block_size"] = 1


@bad("blocks_of_rows")
def blocks_of_unsigned(m):
    tensors(m)[3].update(type="UINT4", shape=[3, 2])


@bad("blocks_of_rows")
def blocks_of_an_input(m):
    tensors(m)[3]["buffer"] = 0


@bad("conv_u8")
def stride_zero(m):
    options(m)["stride_w"] = 0


@bad("conv_u8")
def dilation_negative(m):
    options(m)["dilation_h"] = -1


@bad("conv_u8")
def filter_depth(m):
    tensors(m)[1]["shape"] = [6, 3, 3, 2]


@bad("conv_u8")
def activation(m):
    options(m)["activation"] = 77


@bad("conv_u8")
def padding(m):
    options(m)["padding"] = 2


@bad("max_pool")
def filter_zero(m):
    options(m)["filter_h"] = 0


@bad("concatenation")
def axis(m):
    options(m)["axis"] = 3


@bad("split")
def split_count(m):
    options(m)["num_splits"] = 2


@bad("pack_unpack")
def pack_count(m):
    options(m)["values_count"] = 3


@bad("transpose")
def perm_duplicate(m):
    m.value["buffers"][1]["data"] = list(s32(0, 1, 1, 2))


@bad("pad")
def pad_negative(m):
    m.value["buffers"][1]["data"] = list(s32(0, 0, -1, 1, 2, 2, 0, 0))


@bad("space_to_batch")
def block_zero(m):
    m.value["buffers"][1]["data"] = list(s32(0, 2))


@bad("strided_slice")
def step_zero(m):
    m.value["buffers"][3]["data"] = list(s32(1, 0, 1, 1))


@bad("slice")
def slice_outside(m):
    m.value["buffers"][2]["data"] = list(s32(1, 9, 1, 1))


@bad("fully_connected_reshape_softmax")
def reshape_elements(m):
    m.value["buffers"][3]["data"] = list(s32(3, 3))


@bad("fully_connected_reshape_softmax")
def signature_tensor(m):
    m.value["signature_defs"][0]["inputs"][0]["tensor_index"] = 99


@bad("fully_connected_reshape_softmax")
def signature_subgraph(m):
    m.value["signature_defs"][0]["subgraph_index"] = 1


@bad("integer_lstm")
def lstm_bias_of_no_gate(m):
    m.graph["operators"][0]["inputs"][12] = m.tensor("b0", [1], "INT32", s32(1), quant(2**-14, 0))


@bad("integer_lstm")
def lstm_bias_of_no_projection(m):
    operands = m.graph["operators"][0]["inputs"]
    operands[16], operands[17] = -1, m.tensor("q", [1], "INT32", s32(1), quant(2**-14, 0))
    for t in tensors(m):
        if t["name"][0] == "r":
            t["shape"] = [3, 3]
            m.value["buffers"][t["buffer"]]["data"] += [0] * 3
        elif t["name"] in "yh":
            t["shape"][-1] = 3
            t.pop("shape_signature", None)


@bad("hlo_pad")
def hlo_pad_to_nothing(m):
    m.graph["operators"][0]["more_options"]["low"] = [-9, 0]


@bad("hlo_pad")
def hlo_pad_of_too_much(m):
    m.graph["operators"][0]["more_options"]["low"] = [2**63 - 1, 0]


@bad("hlo_clamp")
def hlo_clamp_by_a_row(m):
    m.graph["tensors"][3]["shape"] = [6]


@bad("hlo_gather")
def hlo_gather_of_too_much(m):
    m.graph["operators"][0]["more_options"]["slice_sizes"] = [1, 2**62]


@bad("hlo_gather")
def hlo_gather_of_many_rows(m):
    m.graph["tensors"][0]["shape"] = [2**25, 4]
    o = m.graph["operators"][0]["more_options"]
    o["slice_sizes"], o["offset_dims"], o["collapsed_slice_dims"] = [2**25, 4], [1, 2], []


@bad("hlo_gather")
def hlo_gather_of_a_dimension_twice(m):
    m.graph["operators"][0]["more_options"]["offset_dims"] = [1, 1]


@bad("hlo_gather")
def hlo_gather_indices(m):
    m.graph["operators"][0]["more_options"]["index_vector_dim"] = 2**33


@bad("hlo_scatter")
def hlo_scatter_dimension(m):
    m.graph["operators"][0]["more_options"]["scatter_dims"] = [2]


@bad("hlo_scatter")
def hlo_scatter_order(m):
    m.graph["operators"][0]["more_options"].update(update_window_dims=[1, 0],
                                                   inserted_window_dims=[])


@bad("hlo_scatter")
def hlo_scatter_body(m):
    m.graph["operators"][0]["more_options"]["body_subgraph"] = 7


@bad("hlo_case")
def hlo_case_of_nothing(m):
    m.graph["operators"][0]["more_options"]["branch_subgraphs"] = []


@bad("hlo_reduce_window")
def hlo_reduce_window_body(m):
    m.graph["operators"][0]["more_options"]["body_subgraph"] = 4


@bad("reduce_window")
def reduce_window_outside(m):
    m.value["buffers"][1]["data"] = list(s64(9, 2))


@bad("resize_bilinear")
def resize_to_nothing(m):
    m.value["buffers"][1]["data"] = list(s32(0, 7))


@bad("add")
def metadata_buffer(m):
    m.value["metadata"] = [{"name": "TFLITE_METADATA", "buffer": 42}]


@bad("concatenation")
def bool_is_not_0_or_1(m):
    for tensor in tensors(m):
        tensor["type"] = "BOOL"
    m.value["buffers"][1]["data"] = [0, 1, 2]


def buffers_overlap(count=24, size=512):
    """Many tensors whose buffers are one range behind the FlatBuffer."""
    m = Model()
    x = m.input("x", [1, size], "UINT8")
    y = m.tensor("y", [count + 1, size], "UINT8")
    parts = [m.tensor("c", [1, size], "UINT8", b"") for _ in range(count)]
    m.op("CONCATENATION", [x, *parts], [y], "Concatenation", {"axis": 0})
    m.output(y)
    end = 16
    for _ in range(2):  # where the FlatBuffer ends is known once it is written
        m.value["buffers"][1:] = [{"offset": end, "size": size}] * count
        end = len(m.bytes())
    return m.bytes() + bytes(size)


class Writer:
    """A FlatBuffer written front to back, by hand: for what flatc never writes."""

    def __init__(self):
        self.data = bytearray()

    def table(self, **fields):
        """Fields by id: bytes, or None for an offset to be linked. Returns where the fields are, by
        id."""
        ids = {int(key[1:]): value for key, value in fields.items()}
        offsets, at = {}, 4
        for key, value in ids.items():
            offsets[key] = at
            at += 4
        vtable = struct.pack("<HH", 4 + 2 * (max(ids) + 1), at)
        vtable += b"".join(struct.pack("<H", offsets.get(i, 0)) for i in range(max(ids) + 1))
        self.data += b"\0" * (-(len(self.data) + len(vtable)) % 4) + vtable
        start = len(self.data)
        self.data += struct.pack("<i", len(vtable)) + b"".join(
            (v or b"").ljust(4, b"\0") for v in ids.values())
        return {key: start + offset for key, offset in offsets.items()} | {"start": start}

    def vector(self, count, content=None, pad=0):
        self.data += b"\0" * (-(len(self.data) + pad) % 4)
        start = len(self.data)
        self.data += struct.pack("<I",
                                 count) + (content if content is not None else b"\0" * 4 * count)
        return start

    def link(self, slot, target):
        self.data[slot:slot + 4] = struct.pack("<I", target - slot)


def one_tensor_listed_often(times=300, channels=100):
    """300 tensors that are one table, with 100 scales and zero points: a small file that asks for
    much memory."""
    w = Writer()
    w.data += b"\0\0\0\0TFL3"
    model = w.table(f0=struct.pack("<I", 3), f2=None)
    w.link(0, model["start"])
    subgraphs = w.vector(1)
    w.link(model[2], subgraphs)
    graph = w.table(f0=None)
    w.link(subgraphs + 4, graph["start"])
    tensors = w.vector(times)
    w.link(graph[0], tensors)
    tensor = w.table(f0=None, f4=None)
    for i in range(times):
        w.link(tensors + 4 + 4 * i, tensor["start"])
    w.link(tensor[0], w.vector(1, s32(channels)))
    quantization = w.table(f2=None, f3=None)
    w.link(tensor[4], quantization["start"])
    w.link(quantization[2], w.vector(channels, f32(*[1.0] * channels)))
    w.link(quantization[3], w.vector(channels, b"\0" * 8 * channels))
    return bytes(w.data) + b"\0" * 8


def name_that_is_not_utf8():
    m = GOOD["add"]()
    m.graph["tensors"][0]["name"] = "not utf8"
    return m.bytes().replace(b"not utf8", b"not \xff\xfe\xfd8")


def damaged_archive():
    data = bytearray(with_metadata(compression=zipfile.ZIP_STORED))
    at = data.index(b"cat\ndog")
    data[at] ^= 1
    return bytes(data)


RAW.update({
    "bad_metadata_damaged": lambda: with_metadata(raw=b"\x18\0\0\0M001" + b"\xff" * 24),
    "bad_metadata_normalization": lambda: with_metadata(
        metadata(input_tensor_metadata=[{
            "process_units": [{
                "options_type": "Normalization", "options": {"mean": [1.0], "std": [0.0]}
            }]
        }])),
    "bad_buffers_overlap": buffers_overlap,
    "bad_one_tensor_listed_often": one_tensor_listed_often,
    "bad_name_not_utf8": name_that_is_not_utf8,
    "bad_archive_checksum": damaged_archive,
    "bad_archive_labels_are_not_text": lambda: with_metadata(labels=b"\xff\xfe\x00"),
})


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus" / "tflite"
    folder.mkdir(parents=True, exist_ok=True)
    for name, build in GOOD.items():
        (folder / f"good_{name}.tflite").write_bytes(build().bytes())
    for name, (base, change) in BAD.items():
        m = GOOD[base]()
        change(m)
        (folder / f"bad_{name}.tflite").write_bytes(m.bytes())
    for name, build in RAW.items():
        (folder / f"{name}.tflite").write_bytes(build())


if __name__ == "__main__":
    main()

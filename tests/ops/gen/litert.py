"""One-operator TFLite models, and what LiteRT's reference kernels make of them.

Needs ai-edge-litert 2.3.0, flatbuffers and numpy. The generators beside this file use it, and
tests/acceptance/litert_models.py.
"""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

SOURCE = "LiteRT 2.3.0 BUILTIN_REF"
RESOLVERS = {True: OpResolverType.BUILTIN_REF,
             False: OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}

DTYPES = {
    "f32": (schema.TensorType.FLOAT32, np.float32),
    "f16": (schema.TensorType.FLOAT16, np.float16),
    "s8": (schema.TensorType.INT8, np.int8),
    "u8": (schema.TensorType.UINT8, np.uint8),
    "s16": (schema.TensorType.INT16, np.int16),
    "u16": (schema.TensorType.UINT16, np.uint16),
    "s32": (schema.TensorType.INT32, np.int32),
    "u32": (schema.TensorType.UINT32, np.uint32),
    "s64": (schema.TensorType.INT64, np.int64),
    "bool": (schema.TensorType.BOOL, np.bool_),
    "f64": (schema.TensorType.FLOAT64, np.float64),
    "c64": (schema.TensorType.COMPLEX64, np.complex64),
}


LATER = 1000  # options_type of BuiltinOptions2 begin here


class Tensor:
    """A tensor of a case: data None for an output; constant puts the data into the model."""

    def __init__(self, dtype, shape=None, data=None, scale=None, zero_point=0, constant=False,
                 variable=False):
        self.dtype = dtype
        self.np = DTYPES[dtype][1]
        self.data = None if data is None else np.asarray(data).astype(self.np)
        if self.data is not None and shape is not None:
            self.data = self.data.reshape(shape)
        self.shape = list(self.data.shape) if self.data is not None else list(shape or [])
        self.scale = None if scale is None else [float(np.float32(s)) for s in np.atleast_1d(scale)]
        self.zero_point = [int(z) for z in np.atleast_1d(zero_point)]
        self.axis = 0
        self.constant = constant
        self.variable = variable  # a state, which LiteRT keeps itself

    def to_flatbuffer(self, name, buffer):
        t = schema.TensorT()
        t.name = name
        t.type = DTYPES[self.dtype][0]
        t.shape = self.shape
        t.buffer = buffer
        t.isVariable = self.variable
        if self.scale is not None:
            q = schema.QuantizationParametersT()
            q.scale = self.scale
            q.zeroPoint = self.zero_point
            q.quantizedDimension = self.axis
            t.quantization = q
        return t


def options(cls, **fields):
    """An options table of the schema, with some fields set."""
    made = cls()
    for name, value in fields.items():
        assert hasattr(made, name), name
        setattr(made, name, value)
    return made


def add_body(model, dtype, builtin, shape=()):
    graph = schema.SubGraphT()
    graph.tensors = [Tensor(dtype, shape).to_flatbuffer(name, 0) for name in "xyz"]
    graph.inputs, graph.outputs, graph.operators = [0, 1], [2 if builtin else 1], []
    if builtin:
        op = schema.OperatorT()
        op.opcodeIndex = len(model.operatorCodes)
        op.inputs, op.outputs = [0, 1], [2]
        graph.operators = [op]
        code = schema.OperatorCodeT()
        code.builtinCode, code.deprecatedBuiltinCode, code.version = builtin, min(builtin, 127), 1
        model.operatorCodes.append(code)
    model.subgraphs.append(graph)


def build(builtin, options_type, options, inputs, outputs, version=1, custom=None,
          intermediates=(), body=None):
    """The bytes of a model with one operator. inputs may hold None (absent). custom: name of a
    custom operator; its options are bytes. options_type 1000 and more: 1000 less, of the later
    options. body: operator of a second subgraph, of two scalars like input 0; 0: none. A tuple:
    operators of a subgraph each, of tensors like input 1."""
    model = schema.ModelT()
    model.version = 3
    model.buffers = [schema.BufferT()]
    graph = schema.SubGraphT()
    graph.tensors, graph.inputs, graph.outputs = [], [], []
    op = schema.OperatorT()
    op.inputs, op.outputs = [], []
    for i, t in enumerate(inputs):
        if t is None:
            op.inputs.append(-1)
            continue
        buffer = 0
        if t.constant:
            b = schema.BufferT()
            b.data = np.frombuffer(np.ascontiguousarray(t.data).tobytes(), dtype=np.uint8)
            model.buffers.append(b)
            buffer = len(model.buffers) - 1
        index = len(graph.tensors)
        graph.tensors.append(t.to_flatbuffer("in%d" % i, buffer))
        op.inputs.append(index)
        if not t.constant and not t.variable:
            graph.inputs.append(index)
    for i, t in enumerate(outputs):
        index = len(graph.tensors)
        graph.tensors.append(t.to_flatbuffer("out%d" % i, 0))
        op.outputs.append(index)
        graph.outputs.append(index)
    for i, t in enumerate(intermediates):
        graph.tensors.append(t.to_flatbuffer("between%d" % i, 0))
    if intermediates:
        op.intermediates = list(range(len(graph.tensors) - len(intermediates),
                                      len(graph.tensors)))
    if custom is not None:
        op.customOptions = np.frombuffer(options, dtype=np.uint8)
    elif options is not None and options_type >= LATER:
        op.builtinOptions2Type, op.builtinOptions2 = options_type - LATER, options
    elif options is not None:
        op.builtinOptionsType = options_type
        op.builtinOptions = options
    graph.operators = [op]
    model.subgraphs = [graph]
    code = schema.OperatorCodeT()
    code.builtinCode = builtin
    code.deprecatedBuiltinCode = min(builtin, 127)
    code.version = version
    code.customCode = custom
    model.operatorCodes = [code]
    if isinstance(body, tuple):
        for each in body:
            add_body(model, inputs[1].dtype, each, inputs[1].shape)
    elif body is not None:
        add_body(model, inputs[0].dtype, body)
    b = flatbuffers.Builder(1024)
    b.Finish(model.Pack(b), file_identifier=b"TFL3")
    return bytes(b.Output())


def run(builtin, options_type, options, inputs, outputs, version=1, custom=None, reference=True,
        intermediates=(), body=None):
    """Runs the model; fills outputs[i].data and .shape. Raises if LiteRT refuses it."""
    content = build(builtin, options_type, options, inputs, outputs, version, custom,
                    intermediates, body)
    interpreter = Interpreter(
        model_content=content,
        experimental_op_resolver_type=RESOLVERS[reference],
        num_threads=1,
    )
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    given = [t for t in inputs if t is not None and not t.constant and not t.variable]
    for d, t in zip(details, given):
        interpreter.set_tensor(d["index"], t.data)
    interpreter.invoke()
    for d, t in zip(interpreter.get_output_details(), outputs):
        t.data = interpreter.get_tensor(d["index"])
        t.shape = list(t.data.shape)
    return outputs

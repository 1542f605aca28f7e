"""Small TFLite models, each of one kind of operator, made with LiteRT's schema; and LiteRT, which
says what they answer. Numbers are random, but the same in every run."""

import pathlib
import sys

import flatbuffers
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from flatbuffers import flexbuffers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "ops/gen"))
from litert import Tensor, options, schema  # noqa: E402

B, O, Act = schema.BuiltinOperator, schema.BuiltinOptions, schema.ActivationFunctionType
rng = np.random.default_rng(19)


def real(*shape, low=-1.0, high=1.0, **kind):
    return Tensor("f32", shape, rng.uniform(low, high, shape), **kind)


def constant(*shape, low=-1.0, high=1.0):
    return real(*shape, low=low, high=high, constant=True)


def ints(values, dtype="s32", **kind):
    return Tensor(dtype, data=np.array(values), constant=True, **kind)


def weights(*shape, per_row=False):
    """8-bit weights of a layer whose other numbers are floats."""
    return Tensor("s8", shape, rng.integers(-127, 128, shape), scale=0.01, constant=True)


def state(*shape, dtype="f32", **kind):
    return Tensor(dtype, list(shape), variable=True, **kind)


class Graph:
    """A subgraph: tensors are listed when an operator first names them."""

    def __init__(self, model):
        self.model, self.index = model, {}
        self.graph = schema.SubGraphT()
        self.graph.tensors, self.graph.operators = [], []
        self.graph.inputs, self.graph.outputs = [], []
        model.model.subgraphs.append(self.graph)

    def tensor(self, t):
        if t is None:
            return -1
        if id(t) not in self.index:
            buffer = self.model.buffer(t) if t.constant else 0
            # Python reuses ids of objects that are gone
            self.index[id(t)] = (len(self.graph.tensors), t)
            made = t.to_flatbuffer(getattr(t, "name", None) or "t%d" % len(self.index), buffer)
            made.type = getattr(t, "type", made.type)
            made.sparsity = getattr(t, "sparsity", None)
            self.graph.tensors.append(made)
        return self.index[id(t)][0]

    def op(self, builtin, inputs, outputs, kind=0, made=None, version=1, custom=None, more=None):
        op = schema.OperatorT()
        op.inputs = [self.tensor(t) for t in inputs]
        op.outputs = [self.tensor(t) for t in outputs]
        op.opcodeIndex = self.model.opcode(builtin, version, custom)
        if custom is not None:
            op.customOptions = np.frombuffer(made, dtype=np.uint8)
        elif more is not None:
            op.builtinOptions2Type, op.builtinOptions2 = more
        elif made is not None:
            op.builtinOptionsType, op.builtinOptions = kind, made
        self.graph.operators.append(op)

    def ports(self, inputs, outputs):
        for i, t in enumerate(inputs):
            t.name = "in%d" % i
        for i, t in enumerate(outputs):
            t.name = "out%d" % i
        self.inputs = inputs
        self.graph.inputs = [self.tensor(t) for t in inputs]
        self.graph.outputs = [self.tensor(t) for t in outputs]


class Model:
    def __init__(self):
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers, self.model.operatorCodes = [schema.BufferT()], []
        self.model.subgraphs = []
        self.first = self.graph()

    def graph(self):
        return Graph(self)

    def buffer(self, t):
        buffer = schema.BufferT()
        content = getattr(t, "content", None)
        content = np.ascontiguousarray(t.data).tobytes() if content is None else content
        buffer.data = np.frombuffer(content, dtype=np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def opcode(self, builtin, version, custom):
        code = schema.OperatorCodeT()
        code.builtinCode, code.deprecatedBuiltinCode = builtin, min(builtin, 127)
        code.version, code.customCode = version, custom
        self.model.operatorCodes.append(code)
        return len(self.model.operatorCodes) - 1

    def bytes(self):
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    def inputs(self):
        return [(t.shape, t.np, getattr(t, "range", None)) for t in self.first.inputs]


def one(builtin, inputs, outputs, kind=0, made=None, version=1, custom=None):
    """A model of one operator."""
    model = Model()
    given = [t for t in inputs if t is not None and not t.constant and not t.variable]
    model.first.ports(given, outputs)
    model.first.op(builtin, inputs, outputs, kind, made, version, custom)
    return model


class LiteRT:
    """An interpreter, which keeps state from step to step."""

    def __init__(self, content, is_delegated=False):
        if is_delegated:
            self.made = self.make(content, OpResolverType.AUTO)
            return
        try:
            self.made = self.make(content, OpResolverType.BUILTIN_REF)
        except (RuntimeError, ValueError):  # operators without a reference kernel
            self.made = self.make(content, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)

    @staticmethod
    def make(content, kind):
        return LiteRT.make_of(model_content=content, experimental_op_resolver_type=kind)

    @staticmethod
    def make_of(**source):
        made = Interpreter(num_threads=1, **source)
        made.allocate_tensors()
        return made

    def step(self, arrays):
        for detail, array in zip(self.made.get_input_details(), arrays):
            self.made.set_tensor(detail["index"], array)
        self.made.invoke()
        return [
            np.array(self.made.get_tensor(d["index"])) for d in self.made.get_output_details()
        ]


MODELS = {}
STATES = set()  # names of models with state


def model(function):
    MODELS[function.__name__] = function
    return function


def stateful(function):
    STATES.add(function.__name__)
    return model(function)


DELEGATED = set()  # names of models that only XNNPACK computes as they mean it


def delegated(function):
    DELEGATED.add(function.__name__)
    return model(function)


# ---- operators of MediaPipe and TensorFlow Addons, which LiteRT does not have ----


def pool_options(padding, stride, window):
    """Of width first, as its struct has them; then no activation."""
    return np.int32([padding, stride[1], stride[0], window[1], window[0], 0, 0, 0, 0, 0]).tobytes()


def pool_with_places(shape, out, padding, stride, window):
    return one(B.CUSTOM, [real(*shape)], [Tensor("f32", out), Tensor("f32", out)],
               made=pool_options(padding, stride, window), custom="MaxPoolingWithArgmax2D")


def unpool(shape, window):
    out = [shape[0], shape[1] * window[0], shape[2] * window[1], shape[3]]
    return one(B.CUSTOM, [real(*shape), real(*shape)], [Tensor("f32", out)],
               made=pool_options(1, window, window), custom="MaxUnpooling2D")


def transform(shape, out, version):
    return one(B.CUSTOM, [real(*shape), real(1, 4, 4)], [Tensor("f32", out)], made=b"\0" * 4,
               version=version, custom="TransformTensorBilinear")


def resampler(shape, places):
    return one(B.CUSTOM, [real(*shape), real(*places)],
               [Tensor("f32", [*places[:-1], shape[3]])], made=b"", custom="Resampler")


def landmarks_matrix(count, options):
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, number in options.items():
            builder.Key(key)
            if key == "subset_idxs":
                builder.TypedVectorFromElements(number)
            elif isinstance(number, float):
                builder.Float(number, 4)
            else:
                builder.Int(number)
    return one(B.CUSTOM, [real(1, count, 3)], [Tensor("f32", [1, 4, 4])],
               made=bytes(builder.Finish()), version=2, custom="Landmarks2TransformMatrix")


def transform_landmarks(count, size):
    return one(B.CUSTOM, [real(1, count, size), real(1, 4, 4)], [Tensor("f32", [1, count, size])],
               made=b"", version=2, custom="TransformLandmarks")


def add_signature(m, key, graph, index):
    signature = schema.SignatureDefT()
    signature.signatureKey, signature.subgraphIndex = key, index
    maps = []
    for name, tensors in (("x", graph.graph.inputs), ("y", graph.graph.outputs)):
        ports = schema.TensorMapT()
        ports.name, ports.tensorIndex = name, tensors[0]
        maps.append([ports])
    signature.inputs, signature.outputs = maps
    m.model.signatureDefs = (m.model.signatureDefs or []) + [signature]


def two_signatures():
    """"sum" is x + 2, "product" is 2 x."""
    m = Model()
    graphs = [m.first, m.graph()]
    for i, (graph, builtin) in enumerate(zip(graphs, (B.ADD, B.MUL))):
        x, y = real(1, 3), Tensor("f32", [1, 3])
        graph.ports([x], [y])
        kind = (O.AddOptions, schema.AddOptionsT()) if i == 0 else (O.MulOptions,
                                                                    schema.MulOptionsT())
        graph.op(builtin, [x, Tensor("f32", data=[2.0], constant=True)], [y], *kind)
        add_signature(m, ("sum", "product")[i], graph, i)
    return m


def write_far(path, at):
    """A layer whose weights lie at that place of a file that has holes in between."""
    m = Model()
    x, y, w = real(1, 4), Tensor("f32", [1, 3]), constant(3, 4)
    m.first.ports([x], [y])
    m.first.op(B.FULLY_CONNECTED, [x, w, None], [y], O.FullyConnectedOptions,
               schema.FullyConnectedOptionsT())
    buffer = m.model.buffers[-1]
    buffer.data, buffer.offset, buffer.size = None, at, w.data.nbytes
    with open(path, "wb") as file:
        file.write(m.bytes())
        file.seek(at)
        file.write(w.data.tobytes())


# ---- variables ----


def variable(graph, name):
    handle = Tensor("s32", [])
    handle.type = schema.TensorType.RESOURCE
    made = options(schema.VarHandleOptionsT, container="", sharedName=name)
    graph.op(B.VAR_HANDLE, [], [handle], O.VarHandleOptions, made)
    return handle


def beginning(model, values):
    """Gives a function that adds to a graph: variables begin with these values, which a subgraph
    assigns once."""
    graph = model.graph()
    for name, value in values.items():
        graph.op(B.ASSIGN_VARIABLE, [variable(graph, name), value], [])
    made = options(schema.CallOnceOptionsT, initSubgraphIndex=len(model.model.subgraphs) - 1)
    return lambda g: g.op(B.CALL_ONCE, [], [], O.CallOnceOptions, made)


def begin(model, values):
    beginning(model, values)(model.first)


@stateful
def variable_sum():
    """y = v = v + x, beside a variable that nothing writes."""
    m = Model()
    x, y, scaled = real(1, 3), Tensor("f32", [1, 3]), Tensor("f32", [1, 3])
    m.first.ports([x], [y, scaled])
    begin(m, {"sum": constant(1, 3), "factor": constant(1, 3)})
    old, factor = Tensor("f32", [1, 3]), Tensor("f32", [1, 3])
    handle = variable(m.first, "sum")
    m.first.op(B.READ_VARIABLE, [handle], [old])
    m.first.op(B.READ_VARIABLE, [variable(m.first, "factor")], [factor])
    m.first.op(B.ADD, [old, x], [y], O.AddOptions, schema.AddOptionsT())
    m.first.op(B.MUL, [y, factor], [scaled], O.MulOptions, schema.MulOptionsT())
    m.first.op(B.ASSIGN_VARIABLE, [handle, y], [])
    return m


@stateful
def variable_window():
    """The last four of all numbers, as a streaming model keeps them."""
    m = Model()
    x, y = real(1, 2, 3), Tensor("f32", [1, 4, 3])
    m.first.ports([x], [y])
    begin(m, {"window": constant(1, 4, 3)})
    handle = variable(m.first, "window")
    old, rest = Tensor("f32", [1, 4, 3]), Tensor("f32", [1, 2, 3])
    m.first.op(B.READ_VARIABLE, [handle], [old])
    m.first.op(B.SLICE, [old, ints([0, 2, 0]), ints([1, 2, 3])], [rest], O.SliceOptions,
               schema.SliceOptionsT())
    m.first.op(B.CONCATENATION, [rest, x], [y], O.ConcatenationOptions,
               options(schema.ConcatenationOptionsT, axis=1))
    m.first.op(B.ASSIGN_VARIABLE, [handle, y], [])
    return m


# ---- tables ----


def texts(*values, shape=None, constant=True):
    """A list of texts as a buffer holds it."""
    t = Tensor("s32", shape or [len(values)], constant=constant)
    places = [4 * (len(values) + 2)]
    for value in values:
        places.append(places[-1] + len(value))
    t.type = schema.TensorType.STRING
    t.content = np.int32([len(values), *places]).tobytes() + b"".join(values)
    return t


def table_handle(graph, keys, values):
    handle = Tensor("s32", [])
    handle.type = schema.TensorType.RESOURCE
    kinds = [getattr(t, "type", schema.TensorType.INT64) for t in (keys, values)]
    made = options(schema.HashtableOptionsT, tableId=7, keyDtype=kinds[0], valueDtype=kinds[1])
    graph.op(B.HASHTABLE, [], [handle], O.HashtableOptions, made)
    keep.append(handle)
    return handle


def table(keys, values, x, y, otherwise):
    """y: what a table has for x; its size."""
    m = Model()
    size = Tensor("s64", [1])
    m.first.ports([x], [y, size])
    graph = m.graph()
    m.first.op(B.CALL_ONCE, [], [], O.CallOnceOptions,
               options(schema.CallOnceOptionsT, initSubgraphIndex=1))
    graph.op(B.HASHTABLE_IMPORT, [table_handle(graph, keys, values), keys, values], [])
    handle = table_handle(m.first, keys, values)
    m.first.op(B.HASHTABLE_FIND, [handle, x, otherwise], [y])
    m.first.op(B.HASHTABLE_SIZE, [handle], [size])
    return m


def table_of_texts():
    x = texts(shape=[2, 3], constant=False)
    y = Tensor("s64", [2, 3])
    return table(texts(b"cat", b"a longer name", b""), ints([5, -6, 7], "s64"), x, y,
                 ints(-1, "s64"))


def table_to_texts():
    """Of what is not 0 among the input: the table is known behind the cut, too."""
    x, at, found = Tensor("s64", [6]), Tensor("s64"), Tensor("s64")
    y = texts(shape=[0], constant=False)
    m = table(ints([3, 900000000000, -4], "s64"), texts(b"three", b"many", b"less"), found, y,
              texts(b"?", shape=[]))
    graph = m.first.graph
    m.first.op(B.WHERE, [x], [at], O.WhereOptions, schema.WhereOptionsT())
    m.first.op(B.GATHER_ND, [x, at], [found], O.GatherNdOptions, schema.GatherNdOptionsT())
    graph.operators = graph.operators[:1] + graph.operators[-2:] + graph.operators[1:-2]
    graph.inputs, m.first.inputs = [m.first.tensor(x)], [x]
    graph.tensors[graph.inputs[0]].name = "in0"
    graph.tensors[m.first.tensor(found)].name = "found"
    return m


def repeated_texts():
    """Texts that are only moved: repeated, picked, one that fills a tensor."""
    m = Model()
    x = texts(shape=[2, 3], constant=False)
    tiled, picked, filled = (texts(shape=s, constant=False) for s in ([2, 6], [2], [3, 1]))
    word = texts(b"a word")
    word.shape = []
    m.first.ports([x], [tiled, picked, filled])
    m.first.op(B.TILE, [x, ints([1, 2])], [tiled], O.TileOptions, schema.TileOptionsT())
    m.first.op(B.GATHER_ND, [x, ints([[0, 1], [1, 2]])], [picked], O.GatherNdOptions,
               schema.GatherNdOptionsT())
    m.first.op(B.FILL, [ints([3, 1]), word], [filled], O.FillOptions, schema.FillOptionsT(), 3)
    return m


# ---- recurrent layers ----


def gates(make, *shape, coupled=False):
    return [None if coupled and g == 0 else make(*shape) for g in range(4)]


def lstm_inputs(x, n, cells, out, make=constant, coupled=False, holes=False, projection=False,
                norm=False):
    """The 24 inputs of the layer's operator; x is the sequence."""
    return [
        x, *gates(make, cells, n, coupled=coupled), *gates(make, cells, out, coupled=coupled),
        *([None if coupled else constant(cells), constant(cells), constant(cells)] if holes
          else [None] * 3),
        *gates(constant, cells, coupled=coupled),
        make(out, cells) if projection else None, constant(out) if projection else None,
        state(x.shape[0] if len(x.shape) == 2 else x.shape[1 if x.time_major else 0], out),
        state(x.shape[0] if len(x.shape) == 2 else x.shape[1 if x.time_major else 0], cells),
        *(gates(constant, cells, coupled=coupled) if norm else [None] * 4),
    ]


def sequence(*shape, time_major=False):
    x = real(*shape)
    x.time_major = time_major
    return x


def sequence_lstm(time_major=False, cell_clip=0.0, proj_clip=0.0, asymmetric=False, **kind):
    n, cells = 5, 4
    out = 3 if kind.get("projection") else cells
    x = sequence(*((6, 2, n) if time_major else (2, 6, n)), time_major=time_major)
    if kind.pop("single", False):
        x = sequence(1, 3, n)
    y = Tensor("f32", x.shape[:2] + [out])
    made = options(schema.UnidirectionalSequenceLSTMOptionsT, fusedActivationFunction=Act.TANH,
                   cellClip=cell_clip, projClip=proj_clip, timeMajor=time_major,
                   asymmetricQuantizeInputs=asymmetric)
    return one(B.UNIDIRECTIONAL_SEQUENCE_LSTM, lstm_inputs(x, n, cells, out, **kind), [y],
               O.UnidirectionalSequenceLSTMOptions, made, 1 if kind.get("make") is None else 3)


@model
def lstm_two_samples():
    return sequence_lstm()


@stateful
def lstm_plain():
    return sequence_lstm(single=True)


@stateful
def lstm_coupled_clipped():
    return sequence_lstm(single=True, coupled=True, cell_clip=0.3)


@stateful
def lstm_holes():
    return sequence_lstm(single=True, holes=True)


@stateful
def lstm_projection():
    return sequence_lstm(single=True, holes=True, projection=True, proj_clip=0.2)


@stateful
def lstm_norm():
    return sequence_lstm(single=True, holes=True, projection=True, norm=True)


@stateful
def lstm_hybrid():
    return sequence_lstm(single=True, make=weights)


@stateful
def lstm_hybrid_asymmetric():
    return sequence_lstm(single=True, make=weights, asymmetric=True)


@model
def lstm_time_major():
    return sequence_lstm(time_major=True)


@stateful
def lstm_full_kernel():
    x, y = sequence(1, 5), Tensor("f32", [1, 3])
    made = options(schema.LSTMOptionsT, fusedActivationFunction=Act.TANH, cellClip=0.5)
    return one(B.LSTM, lstm_inputs(x, 5, 4, 3, holes=True, projection=True), [y], O.LSTMOptions,
               made)


def basic_kernel(before):
    """The basic kernel; before(shape) makes what a step begins with."""
    n, cells = 5, 4
    made = options(schema.LSTMOptionsT, fusedActivationFunction=Act.TANH,
                   kernelType=schema.LSTMKernelType.BASIC)
    inputs = [real(2, n), before(2, cells), constant(4 * cells, n + cells), constant(4 * cells),
              before(2, cells)]
    outputs = [Tensor("f32", s) for s in ([2, cells], [2, cells], [2, n + cells], [2, 4 * cells])]
    return one(B.LSTM, inputs, outputs, O.LSTMOptions, made, 2)


@model
def lstm_basic_kernel():
    return basic_kernel(real)


@stateful
def lstm_basic_kernel_state():
    return basic_kernel(state)


def basic_kernel_of_bytes(**kind):
    n, cells = 5, 4
    made = options(schema.LSTMOptionsT, fusedActivationFunction=Act.TANH,
                   kernelType=schema.LSTMKernelType.BASIC)
    around = {"scale": 1 / 128, "zero_point": 128}
    cell = {"scale": 2.0**-11}
    inputs = [Tensor("u8", [2, n], **around), Tensor("u8", [2, cells], **around, **kind),
              Tensor("u8", [4 * cells, n + cells], rng.integers(0, 256, [4 * cells, n + cells]),
                     scale=0.01, zero_point=120, constant=True),
              Tensor("s32", [4 * cells], rng.integers(-20000, 20000, 4 * cells),
                     scale=0.01 / 128, constant=True),
              Tensor("s16", [2, cells], **cell, **kind)]
    outputs = [Tensor("u8", [2, cells], **around), Tensor("s16", [2, cells], **cell),
               Tensor("u8", [2, n + cells], **around),
               Tensor("s16", [2, 4 * cells], scale=2.0**-12)]
    return one(B.LSTM, inputs, outputs, O.LSTMOptions, made, 2)


@model
def lstm_basic_kernel_uint8():
    return basic_kernel_of_bytes()


@stateful
def lstm_basic_kernel_uint8_state():
    return basic_kernel_of_bytes(variable=True)


def both_lstm(merge, second=False, linked=False):
    n, cells, steps = 5, 4, 3
    x = sequence(1, steps, n)
    layers, states = [], []
    for _ in range(2):
        layer = lstm_inputs(x, n, cells, cells, holes=True)
        layers += layer[1:18]
        states += layer[18:20]
    other = sequence(1, steps, n) if second or linked else None
    more = [t for _ in range(2) for t in gates(constant, cells, n)] if second else [None] * 8
    made = options(schema.BidirectionalSequenceLSTMOptionsT, fusedActivationFunction=Act.TANH,
                   mergeOutputs=merge, timeMajor=False)
    shapes = [[1, steps, 2 * cells]] if merge else [[1, steps, cells]] * 2
    return one(B.BIDIRECTIONAL_SEQUENCE_LSTM, [x, *layers, *states, other, *more],
               [Tensor("f32", s) for s in shapes], O.BidirectionalSequenceLSTMOptions, made)


@stateful
def bilstm():
    return both_lstm(False)


@stateful
def bilstm_merged():
    return both_lstm(True)


@stateful
def bilstm_second_input():
    return both_lstm(False, second=True)


def rnn_layer(n, units, batch, make=constant):
    return [make(units, n), make(units, units), constant(units), state(batch, units)]


@stateful
def rnn():
    made = options(schema.RNNOptionsT, fusedActivationFunction=Act.RELU)
    return one(B.RNN, [real(1, 5), *rnn_layer(5, 4, 1)], [Tensor("f32", [1, 4])], O.RNNOptions,
               made)


@stateful
def rnn_hybrid():
    made = options(schema.RNNOptionsT, fusedActivationFunction=Act.TANH,
                   asymmetricQuantizeInputs=True)
    return one(B.RNN, [real(1, 5), *rnn_layer(5, 4, 1, weights)], [Tensor("f32", [1, 4])],
               O.RNNOptions, made, 3)


@stateful
def sequence_rnn():
    made = options(schema.SequenceRNNOptionsT, fusedActivationFunction=Act.TANH, timeMajor=False)
    return one(B.UNIDIRECTIONAL_SEQUENCE_RNN, [real(1, 3, 5), *rnn_layer(5, 4, 1)],
               [Tensor("f32", [1, 3, 4])], O.SequenceRNNOptions, made)


@model
def sequence_rnn_time_major():
    made = options(schema.SequenceRNNOptionsT, fusedActivationFunction=Act.RELU, timeMajor=True)
    return one(B.UNIDIRECTIONAL_SEQUENCE_RNN, [real(3, 2, 5), *rnn_layer(5, 4, 2)],
               [Tensor("f32", [3, 2, 4])], O.SequenceRNNOptions, made)


@stateful
def birnn():
    made = options(schema.BidirectionalSequenceRNNOptionsT, fusedActivationFunction=Act.TANH,
                   timeMajor=False, mergeOutputs=True)
    inputs = [real(1, 3, 5), *rnn_layer(5, 4, 1), *rnn_layer(5, 4, 1), None, None, None]
    return one(B.BIDIRECTIONAL_SEQUENCE_RNN, inputs, [Tensor("f32", [1, 3, 8])],
               O.BidirectionalSequenceRNNOptions, made)


def svdf_model(make, memory=5, **kind):
    filters, rank, n = 8, 2, 6
    made = options(schema.SVDFOptionsT, rank=rank, fusedActivationFunction=Act.RELU, **kind)
    inputs = [real(1, n), make(filters, n), make(filters, memory), constant(filters // rank),
              state(1, filters * memory)]
    return one(B.SVDF, inputs, [Tensor("f32", [1, filters // rank])], O.SVDFOptions, made,
               1 if make is constant else 3)


@stateful
def svdf():
    return svdf_model(constant)


@stateful
def svdf_short_memory():
    return svdf_model(constant, memory=1)


@stateful
def svdf_hybrid():
    return svdf_model(weights, asymmetricQuantizeInputs=True)


@stateful
def svdf_int8():
    filters, memory, rank, n = 8, 5, 2, 6
    x = Tensor("s8", [1, n], scale=0.01, zero_point=3)
    feature = Tensor("s8", [filters, n], rng.integers(-127, 128, [filters, n]), scale=0.012,
                     constant=True)
    time = Tensor("s16", [filters, memory], rng.integers(-9999, 10000, [filters, memory]),
                  scale=0.0001, constant=True)
    bias = Tensor("s32", [filters // rank], rng.integers(-30000, 30000, filters // rank),
                  scale=1e-8, constant=True)
    made = options(schema.SVDFOptionsT, rank=rank, fusedActivationFunction=Act.RELU)
    return one(B.SVDF, [x, feature, time, bias, state(1, filters * memory, dtype="s16",
                                                      scale=0.0002)],
               [Tensor("s8", [1, filters // rank], scale=0.03, zero_point=-128)], O.SVDFOptions,
               made, 3)


@stateful
def lstm_int8():
    n, cells = 5, 4
    def w(*shape):
        return Tensor("s8", shape, rng.integers(-127, 128, shape), scale=0.012, constant=True)
    x = Tensor("s8", [1, 3, n], scale=0.01, zero_point=3)
    bias = [Tensor("s32", [cells], rng.integers(-3000, 3000, cells), scale=0.00012, constant=True)
            for _ in range(4)]
    h = state(1, cells, dtype="s8", scale=0.008, zero_point=-5)
    c = state(1, cells, dtype="s16", scale=2.0**-11)
    inputs = [x, *gates(w, cells, n), *gates(w, cells, cells), None, None, None, *bias, None, None,
              h, c, None, None, None, None]
    made = options(schema.UnidirectionalSequenceLSTMOptionsT, fusedActivationFunction=Act.TANH,
                   cellClip=10.0)
    m = one(B.UNIDIRECTIONAL_SEQUENCE_LSTM, inputs,
            [Tensor("s8", [1, 3, cells], scale=0.008, zero_point=-5)],
            O.UnidirectionalSequenceLSTMOptions, made)
    return intermediates(m)


def intermediates(m):
    """Five tensors that the integer kernel wants, though it does not use them here."""
    for i in range(5):
        t = Tensor("s16" if i < 4 else "s8", [], scale=2.0**-12 if i < 4 else 0.008,
                   zero_point=0 if i < 4 else -5)
        t.name = "between%d" % i
        m.first.tensor(t)
        keep.append(t)
    count = len(m.first.graph.tensors)
    m.first.graph.operators[-1].intermediates = list(range(count - 5, count))
    return m


keep = []


# ---- sparse and small numbers ----


def dimension(dense=None, segments=None, indices=None, width=1):
    d = schema.DimensionMetadataT()
    if dense is not None:
        d.format, d.denseSize = schema.DimensionType.DENSE, dense
        return d
    vectors = {1: (schema.SparseIndexVector.Uint8Vector, schema.Uint8VectorT),
               2: (schema.SparseIndexVector.Uint16Vector, schema.Uint16VectorT),
               4: (schema.SparseIndexVector.Int32Vector, schema.Int32VectorT)}
    kind, cls = vectors[width]
    d.format = schema.DimensionType.SPARSE_CSR
    d.arraySegmentsType = d.arrayIndicesType = kind
    d.arraySegments, d.arrayIndices = cls(), cls()
    d.arraySegments.values, d.arrayIndices.values = segments, indices
    return d


def sparse(dense, width=1, block=None):
    """dense [rows, columns] with rows dense and columns sparse; block: columns of a block."""
    t = Tensor("f32", data=dense, constant=True)
    rows, columns = dense.shape
    blocks = dense.reshape(rows, columns // (block or 1), block or 1)
    segments, indices, content = [0], [], []
    for row in blocks:
        for i, part in enumerate(row):
            if part.any():
                indices.append(i)
                content += list(part)
        segments.append(len(indices))
    s = schema.SparsityParametersT()
    s.traversalOrder = [0, 1] + ([2] if block else [])
    s.blockMap = [1] if block else []
    s.dimMetadata = [dimension(dense=rows),
                     dimension(segments=segments, indices=indices, width=width)]
    s.dimMetadata += [dimension(dense=block)] if block else []
    t.sparsity, t.content = s, np.float32(content).tobytes()
    return t


def densify(t):
    m = Model()
    x, w, y = real(2, t.shape[1]), Tensor("f32", t.shape), Tensor("f32", [2, t.shape[0]])
    m.first.ports([x], [y])
    m.first.op(B.DENSIFY, [t], [w], O.DensifyOptions, schema.DensifyOptionsT())
    m.first.op(B.FULLY_CONNECTED, [x, w, None], [y], O.FullyConnectedOptions,
               schema.FullyConnectedOptionsT())
    return m


def holes(*shape, share=0.5):
    return np.float32(rng.uniform(-1, 1, shape) * (rng.uniform(0, 1, shape) < share))


@model
def densify_rows():
    return densify(sparse(holes(6, 8)))


@model
def densify_wide_indices():
    return densify(sparse(holes(6, 8), width=2))


@model
def densify_blocks():
    dense = holes(6, 8).reshape(6, 2, 4) * np.float32([[[1], [0]]] * 3 + [[[0], [1]]] * 3)
    return densify(sparse(dense.reshape(6, 8), width=4, block=4))


@model
def sparse_weights():
    dense = holes(6, 8).reshape(6, 2, 4) * np.float32([[[1], [0]]] * 3 + [[[0], [1]]] * 3)
    return one(B.FULLY_CONNECTED, [real(2, 8), sparse(dense.reshape(6, 8), block=4), None],
               [Tensor("f32", [2, 6])], O.FullyConnectedOptions, schema.FullyConnectedOptionsT(), 8)


def narrow(bits, *shape, scale=None, kind=None, zero_point=0):
    """Constants of 2 or 4 bits, the first of a byte lowest."""
    low, kinds = -(1 << bits - 1), {2: schema.TensorType.INT2, 4: schema.TensorType.INT4}
    numbers = rng.integers(low, -low, shape) + (0 if kind is None else -low)
    t = Tensor("s8", shape, numbers, scale=scale, constant=True,
               zero_point=[zero_point] * len(scale or []))
    flat = np.append(t.data.ravel(), [0] * (-t.data.size % (8 // bits))).astype(np.uint8)
    parts = [(flat[i :: 8 // bits] & (1 << bits) - 1) << bits * i for i in range(8 // bits)]
    t.type, t.content = kind or kinds[bits], np.bitwise_or.reduce(parts).tobytes()
    return t


def int4(*shape, scale):
    return narrow(4, *shape, scale=scale)


@model
def int4_hybrid():
    return one(B.FULLY_CONNECTED, [real(2, 9), int4(5, 9, scale=[0.1]), constant(5)],
               [Tensor("f32", [2, 5])], O.FullyConnectedOptions,
               options(schema.FullyConnectedOptionsT, asymmetricQuantizeInputs=True), 9)


@model
def int4_quantized():
    x = Tensor("s8", [1, 6, 6, 3], scale=0.02, zero_point=4)
    w = int4(4, 3, 3, 3, scale=[0.1, 0.2, 0.05, 0.3])
    bias = Tensor("s32", [4], rng.integers(-900, 900, 4), constant=True,
                  scale=[0.002, 0.004, 0.001, 0.006], zero_point=[0] * 4)
    made = options(schema.Conv2DOptionsT, strideW=1, strideH=1, padding=schema.Padding.SAME)
    return one(B.CONV_2D, [x, w, bias], [Tensor("s8", [1, 6, 6, 4], scale=0.1, zero_point=-7)],
               O.Conv2DOptions, made, 7)


@model
def int2_hybrid():
    return one(B.FULLY_CONNECTED, [real(2, 9), narrow(2, 5, 9, scale=[0.1, 0.2, 0.3, 0.4, 0.5]),
                                   constant(5)], [Tensor("f32", [2, 5])],
               O.FullyConnectedOptions, schema.FullyConnectedOptionsT(), 9)


@model
def scales_far_apart():
    """Functions from one type and scale to others of 0, 2^-149, 1e-40, 1e30."""
    m, gelu, reducer = Model(), schema.GeluOptionsT(), schema.ReducerOptionsT()
    x = Tensor("s8", [2, 12], scale=1e30, zero_point=-128)
    small = Tensor("s8", [2, 12], scale=2**-149, zero_point=-128)
    functions = [(B.SQRT, 0, None, 2), (B.RSQRT, 0, None, 2), (B.LOG, 0, None, 2),
                 (B.NEG, 0, None, 1), (B.GELU, O.GeluOptions, gelu, 2),
                 (B.RELU_N1_TO_1, 0, None, 1), (B.EXP, 0, None, 2)]
    pairs = [(x, 1e-40), (x, 1e30), (small, 0.0), (small, 0.5)]
    ops = [(f, [a], Tensor("s8", [2, 12], scale=y, zero_point=-5))
           for f in functions for a, y in pairs]
    for builtin in B.MEAN, B.REDUCE_PROD:
        ops.append(((builtin, O.ReducerOptions, reducer, 2), [x, ints([1])],
                    Tensor("s8", [2], scale=1e-40, zero_point=7)))
    m.first.ports([x, small], [y for _, _, y in ops])
    for (builtin, kind, made, version), inputs, y in ops:
        m.first.op(builtin, inputs, [y], kind, made, version)
    return m


@model
def products_of_floats_and_bytes():
    """f32 by s8 matrices: of one batch, of several, turned; zero points do not count."""
    m, cases = Model(), []
    for x, w, zero, made in (([2, 8], [8, 3], 5, {}), ([3, 2, 8], [8, 3], 0, {}),
                             ([3, 2, 8], [3, 8, 3], 0, {"asymmetricQuantizeInputs": True}),
                             ([1, 2, 8], [3, 3, 8], -4, {"adjY": True}),
                             ([8, 2], [8, 3], 0, {"adjX": True}),
                             ([2, 1, 4, 8], [3, 8, 5], 0, {})):
        rows, columns = x[-1 if "adjX" in made else -2], w[-2 if "adjY" in made else -1]
        y = Tensor("f32", [*np.broadcast_shapes(x[:-2], w[:-2]), rows, columns])
        table = Tensor("s8", w, rng.integers(-127, 128, w), 0.01, zero, constant=True)
        cases.append(([real(*x), table], y, options(schema.BatchMatMulOptionsT, **made)))
    m.first.ports([inputs[0] for inputs, _, _ in cases], [y for _, y, _ in cases])
    for inputs, y, made in cases:
        m.first.op(B.BATCH_MATMUL, inputs, [y], O.BatchMatMulOptions, made, 4)
    return m


@model
def filters_with_zero_points():
    """Where LiteRT does not ask for them."""
    m, cases = Model(), []
    window = dict(strideW=1, strideH=1)
    for dtype in ("s8", "s16", "f32"):
        scale = None if dtype == "f32" else 0.5
        for many in (False, True):
            scales, zeros = ([0.01, 0.02, 0.005], [3, -1, 5]) if many else (0.01, -5)
            x, y = Tensor(dtype, [1, 3, 3, 3], scale=0.02 if scale else None), None
            if dtype == "f32":
                x = real(1, 3, 3, 3)
            numbers = rng.integers(-127, 128, [3, 2, 2, 3])
            wide = Tensor("s8", [3, 2, 2, 3], numbers, scales, zeros, constant=True)
            thin = Tensor("s8", [1, 2, 2, 3], numbers[:1], scales, zeros, constant=True)
            thin.axis = 3
            layers = [(B.TRANSPOSE_CONV, [ints([1, 3, 3, 3]), wide, x], O.TransposeConvOptions,
                       options(schema.TransposeConvOptionsT, **window), 3)]
            if dtype == "f32":
                layers = [(B.CONV_2D, [x, wide, constant(3)], O.Conv2DOptions,
                           options(schema.Conv2DOptionsT, **window), 5)]
            if dtype != "f32" or many:
                bias = [constant(3)] if dtype == "f32" else []
                layers.append((B.DEPTHWISE_CONV_2D, [x, thin, *bias], O.DepthwiseConv2DOptions,
                               options(schema.DepthwiseConv2DOptionsT, depthMultiplier=1,
                                       **window), 6))
            cases += [(x, layer, Tensor(dtype, [1, 3, 3, 3], scale=scale)) for layer in layers]
    inputs = []
    for x, _, _ in cases:
        if not any(x is known for known in inputs):
            inputs.append(x)
    m.first.ports(inputs, [y for _, _, y in cases])
    for _, (builtin, given, kind, made, version), y in cases:
        m.first.op(builtin, given, [y], kind, made, version)
    return m


@model
def state_of_scale_0():
    """The first step of an unrolled LSTM of 16 bits, as TensorFlow's converter writes it."""
    m = Model()
    x = Tensor("s16", [2, 6], scale=2**-15)
    x.range = (-32768, 32768)
    zeros, none = [Tensor("s16", [2, 6], scale=0.0) for _ in range(2)]
    sums = Tensor("s16", [2, 24], scale=3.6e-43)
    y, product = Tensor("s16", [2, 24], scale=2**-11), Tensor("s16", [2, 6], scale=2.4e-5)
    gate, both = Tensor("s16", [2, 24], scale=2**-15), Tensor("s16", [2, 24], scale=2**-10)
    m.first.ports([x], [sums, product, both, gate])
    m.first.op(B.FILL, [ints([2, 6]), Tensor("s16", data=np.int16(0), scale=0.0, constant=True)],
               [zeros], O.FillOptions, schema.FillOptionsT(), 4)
    m.first.op(B.RESHAPE, [zeros, ints([2, 6])], [none], O.ReshapeOptions, schema.ReshapeOptionsT())
    for source, to in (none, sums), (x, y):
        m.first.op(B.FULLY_CONNECTED, [source, weights(24, 6), None], [to],
                   O.FullyConnectedOptions, schema.FullyConnectedOptionsT(), 4)
    m.first.op(B.ADD, [sums, y], [both], O.AddOptions,
               options(schema.AddOptionsT, potScaleInt16=False), 3)
    m.first.op(B.LOGISTIC, [both], [gate], version=3)
    m.first.op(B.MUL, [x, zeros], [product], O.MulOptions, schema.MulOptionsT(), 4)
    return m


@model
def int2_quantized():
    x = Tensor("s8", [2, 11], scale=0.02, zero_point=4)
    return one(B.FULLY_CONNECTED, [x, narrow(2, 5, 11, scale=[0.1]), None],
               [Tensor("s8", [2, 5], scale=0.03, zero_point=-7)], O.FullyConnectedOptions,
               schema.FullyConnectedOptionsT(), 9)


@model
def uint4_to_floats():
    t = narrow(4, 3, 5, scale=[0.5], kind=schema.TensorType.UINT4, zero_point=8)
    m, x, y, z = Model(), real(3, 5), Tensor("f32", [3, 5]), Tensor("f32", [3, 5])
    m.first.ports([x], [z])
    m.first.op(B.DEQUANTIZE, [t], [y], O.DequantizeOptions, schema.DequantizeOptionsT(), 6)
    m.first.op(B.MUL, [x, y], [z], O.MulOptions, schema.MulOptionsT())
    return m


def add_blocks(m, t, scales, size):
    """Blocks of that many numbers of t have a scale each."""
    made = schema.BlockwiseQuantizationT()
    made.scales, made.zeroPoints, made.blockSize = m.first.tensor(scales), -1, size
    quantization = schema.QuantizationParametersT()
    quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
    quantization.details = made
    m.first.graph.tensors[m.first.tensor(t)].quantization = quantization


def scales_of(*shape):
    """Powers of two: LiteRT's two kinds of kernels round others to bf16, or not."""
    return Tensor("f16", shape, 2.0 ** rng.integers(-4, 2, shape), constant=True)


@delegated
def blocks_of_weights():
    """Inputs are whole steps of the whole range, so that it is exact how LiteRT quantizes them."""
    m, x, y = Model(), real(3, 62), Tensor("f32", [3, 8])
    w, ends = narrow(4, 8, 64), Tensor("f32", data=[[-128.0, 127.0]] * 3, constant=True)
    steps, whole, wide = Tensor("f32", x.shape), Tensor("f32", x.shape), Tensor("f32", [3, 64])
    m.first.ports([x], [y])
    m.first.op(B.MUL, [x, Tensor("f32", data=[128.0], constant=True)], [steps], O.MulOptions,
               schema.MulOptionsT())
    m.first.op(B.FLOOR, [steps], [whole])
    m.first.op(B.CONCATENATION, [whole, ends], [wide], O.ConcatenationOptions,
               options(schema.ConcatenationOptionsT, axis=1))
    m.first.op(B.FULLY_CONNECTED, [wide, w, constant(8)], [y], O.FullyConnectedOptions,
               options(schema.FullyConnectedOptionsT, fusedActivationFunction=Act.RELU))
    add_blocks(m, w, scales_of(8, 2), 32)
    return m


def rows_by_index(t):
    x = Tensor("s32", [4])
    x.range = (0, 6)
    return one(B.EMBEDDING_LOOKUP, [x, t], [Tensor("f32", [4, *t.shape[1:]])], version=4)


@model
def blocks_of_rows():
    """Tensors that share a buffer, with blocks of their own."""
    m, x, ys = Model(), Tensor("s32", [4]), [Tensor("f32", [4, 40]) for _ in range(3)]
    x.range = (0, 6)
    m.first.ports([x], ys)
    first = narrow(4, 6, 40)
    tables = [first, Tensor("s8", [6, 40], constant=True), narrow(2, 6, 40)]
    tables[1].type = first.type
    for t, y, size in zip(tables, ys, (10, 20, 8)):
        m.first.op(B.EMBEDDING_LOOKUP, [x, t], [y], version=4)
        add_blocks(m, t, scales_of(6, 40 // size), size)
    made = m.first.graph.tensors
    made[m.first.tensor(tables[1])].buffer = made[m.first.tensor(first)].buffer
    return m


@model
def rows_of_4_bits():
    return rows_by_index(narrow(4, 6, 10, scale=[0.5, 0.1, 0.2, 3.0, 0.7, 0.3]))


# ---- sums, segments, lookups ----


@model
def add_n():
    return one(B.ADD_N, [real(2, 3) for _ in range(3)], [Tensor("f32", [2, 3])], O.AddNOptions,
               schema.AddNOptionsT())


@model
def l2_pool():
    made = options(schema.Pool2DOptionsT, strideW=2, strideH=1, filterWidth=2, filterHeight=3,
                   padding=schema.Padding.SAME)
    return one(B.L2_POOL_2D, [real(1, 5, 6, 3)], [Tensor("f32", [1, 5, 3, 3])], O.Pool2DOptions,
               made)


@model
def fake_quant():
    made = options(schema.FakeQuantOptionsT, min=-0.7, max=0.9, numBits=6)
    return one(B.FAKE_QUANT, [real(40, low=-1.5, high=1.5)], [Tensor("f32", [40])],
               O.FakeQuantOptions, made)


@model
def bucketize():
    made = options(schema.BucketizeOptionsT, boundaries=[-0.5, 0.0, 0.25, 0.8])
    return one(B.BUCKETIZE, [real(3, 7)], [Tensor("s32", [3, 7])], O.BucketizeOptions, made)


@model
def sparse_to_dense():
    return one(B.SPARSE_TO_DENSE, [ints([[0, 1], [2, 3], [1, 0]]), ints([3, 4]), real(3),
                                   constant()],
               [Tensor("f32", [3, 4])], O.SparseToDenseOptions, schema.SparseToDenseOptionsT())


def segments(builtin, kind, made, dtype="f32"):
    x = real(5, 2) if dtype == "f32" else Tensor(dtype, [5, 2])
    return one(builtin, [x, ints([2, 0, -1, 2, 0]), ints(4)], [Tensor(dtype, [4, 2])], kind, made)


@model
def unsorted_segment_sum():
    return segments(B.UNSORTED_SEGMENT_SUM, O.UnsortedSegmentSumOptions,
                    schema.UnsortedSegmentSumOptionsT())


@model
def unsorted_segment_prod():
    return segments(B.UNSORTED_SEGMENT_PROD, O.UnsortedSegmentProdOptions,
                    schema.UnsortedSegmentProdOptionsT())


@model
def unsorted_segment_max():
    return segments(B.UNSORTED_SEGMENT_MAX, O.UnsortedSegmentMaxOptions,
                    schema.UnsortedSegmentMaxOptionsT(), "s32")


@model
def unsorted_segment_min():
    return segments(B.UNSORTED_SEGMENT_MIN, O.UnsortedSegmentMinOptions,
                    schema.UnsortedSegmentMinOptionsT())


@model
def hashtable_lookup():
    x = Tensor("s32", [4])
    x.range = (0, 9)
    return one(B.HASHTABLE_LOOKUP, [x, ints([1, 3, 4, 8]), constant(4, 3)],
               [Tensor("f32", [4, 3]), Tensor("u8", [4])])


def embedding(combiner):
    ids = Tensor("s32", [4])
    ids.range = (0, 6)
    made = options(schema.EmbeddingLookupSparseOptionsT, combiner=combiner)
    return one(B.EMBEDDING_LOOKUP_SPARSE,
               [ids, ints([[0, 0], [0, 1], [2, 0], [2, 1]]), ints([3, 2]),
                constant(4, low=0.2, high=1), constant(6, 3)],
               [Tensor("f32", [3, 3])], O.EmbeddingLookupSparseOptions, made)


@model
def embedding_sparse_sum():
    return embedding(schema.CombinerType.SUM)


@model
def embedding_sparse_mean():
    return embedding(schema.CombinerType.MEAN)


@model
def embedding_sparse_sqrtn():
    return embedding(schema.CombinerType.SQRTN)


@model
def complex_parts():
    """A spectrum's real and imaginary parts; a cast takes the former."""
    m = Model()
    x, spectrum = real(2, 1, 8), Tensor("c64", [2, 1, 5])
    parts = [Tensor("f32", [2, 1, 5]) for _ in range(3)]
    m.first.ports([x], parts)
    m.first.op(B.RFFT2D, [x, ints([1, 8])], [spectrum], O.Rfft2dOptions, schema.Rfft2dOptionsT())
    m.first.op(B.REAL, [spectrum], [parts[0]])
    m.first.op(B.IMAG, [spectrum], [parts[1]])
    m.first.op(B.CAST, [spectrum], [parts[2]])
    return m


@model
def broadcast_args():
    """The shape of a result, by which one operand is broadcast."""
    m = Model()
    x, y, shape = real(3, 1), Tensor("f32", [2, 3, 4]), Tensor("s32", [3])
    m.first.ports([x], [y])
    m.first.op(B.BROADCAST_ARGS, [ints([3, 1]), ints([2, 1, 4])], [shape])
    m.first.op(B.BROADCAST_TO, [x, shape], [y], 0, None, 2)
    return m


def conv3d_transpose(padding, out, bias=True):
    made = options(schema.Conv3DOptionsT, padding=padding, strideD=2, strideH=2, strideW=1,
                   dilationDFactor=1, dilationHFactor=1, dilationWFactor=1)
    shape = [1, *out, 3]
    return one(B.CONV_3D_TRANSPOSE,
               [ints(shape), constant(2, 3, 3, 3, 2), real(1, 2, 3, 4, 2),
                constant(3) if bias else None],
               [Tensor("f32", shape)], O.Conv3DOptions, made)


@model
def conv3d_transpose_same():
    return conv3d_transpose(schema.Padding.SAME, [4, 6, 4])


@model
def conv3d_transpose_valid():
    return conv3d_transpose(schema.Padding.VALID, [4, 7, 6])


@model
def composite():
    """STABLEHLO_COMPOSITE runs the subgraph that it names."""
    m = Model()
    x, y = real(2, 3), Tensor("f32", [2, 3])
    m.first.ports([x], [y])
    inner = m.graph()
    a, b = Tensor("f32", [2, 3]), Tensor("f32", [2, 3])
    keep.extend((a, b))
    inner.ports([a], [b])
    inner.op(B.ADD, [a, constant(2, 3)], [b], O.AddOptions, schema.AddOptionsT())
    made = options(schema.StableHLOCompositeOptionsT, name="ours", decompositionSubgraphIndex=1,
                   compositeAttributes=[], version=1)
    m.first.op(B.STABLEHLO_COMPOSITE, [x], [y],
               more=(schema.BuiltinOptions2.StableHLOCompositeOptions, made))
    return m


# ---- subgraphs in which data decides shapes ----


class Flow(Model):
    """A model whose subgraphs are made by functions of their input tensors."""

    def body(self, inputs, outputs, fill):
        graph = self.graph()
        graph.ports(inputs, outputs)
        fill(graph)
        keep.extend((*inputs, *outputs))
        return len(self.model.subgraphs) - 1

    def branch(self, condition, inputs, outputs, bodies):
        made = options(schema.IfOptionsT, thenSubgraphIndex=bodies[0], elseSubgraphIndex=bodies[1])
        self.first.op(B.IF, [condition, *inputs], outputs, O.IfOptions, made)

    def loop(self, inputs, outputs, condition, body):
        made = options(schema.WhileOptionsT, condSubgraphIndex=condition, bodySubgraphIndex=body)
        self.first.op(B.WHILE, inputs, outputs, O.WhileOptions, made)


def positive(graph, x, y, shape):
    """y: the elements of x above 0."""
    mask, at = Tensor("bool", shape), Tensor("s64")
    keep.extend((mask, at))
    graph.op(B.GREATER, [x, real_zero()], [mask], O.GreaterOptions, schema.GreaterOptionsT())
    graph.op(B.WHERE, [mask], [at], O.WhereOptions, schema.WhereOptionsT())
    graph.op(B.GATHER_ND, [x, at], [y], O.GatherNdOptions, schema.GatherNdOptionsT())


def real_zero():
    zero = Tensor("f32", data=0.0, constant=True)
    keep.append(zero)
    return zero


def condition_of(m, x, shape):
    """Is the sum of x above 0?"""
    total, condition = Tensor("f32", []), Tensor("bool", [])
    keep.extend((total, condition))
    m.first.op(B.SUM, [x, ints(list(range(len(shape))))], [total], O.ReducerOptions,
               schema.ReducerOptionsT())
    m.first.op(B.GREATER, [total, real_zero()], [condition], O.GreaterOptions,
               schema.GreaterOptionsT())
    return condition


@model
def branch_finds():
    """One branch gives the elements above 0, the other all; then both are doubled."""
    m, shape = Flow(), [4, 3]
    x, found, y = real(*shape), Tensor("f32"), Tensor("f32")
    m.first.ports([x], [y])
    a, b, c, d = (Tensor("f32", s) for s in (shape, [], shape, []))
    finds = m.body([a], [b], lambda g: positive(g, a, b, shape))
    all_of = m.body([c], [d], lambda g: g.op(B.RESHAPE, [c, ints([-1])], [d], O.ReshapeOptions,
                                             options(schema.ReshapeOptionsT, newShape=[-1])))
    m.branch(condition_of(m, x, shape), [x], [found], (finds, all_of))
    m.first.op(B.ADD, [found, found], [y], O.AddOptions, schema.AddOptionsT())
    return m


@model
def loop_grows():
    """Three turns, each of which appends the elements above a number that falls."""
    return growing_loop(lambda m, i: i)


@model
def loop_grows_by_data():
    """As many turns as the data says."""
    def start(m, i):
        wide, turns = Tensor("s32", [1]), Tensor("s32", [])
        keep.extend((wide, turns))
        m.first.op(B.SUM, [m.first.inputs[1], ints([0])], [turns], O.ReducerOptions,
                   schema.ReducerOptionsT())
        return turns
    return growing_loop(start, by_data=True)


def growing_loop(start, by_data=False):
    m, n = Flow(), 6
    x, y = real(n), Tensor("f32")
    asked = Tensor("s32", [2])
    asked.range = (0, 2)
    count, values, last = Tensor("s32", []), Tensor("f32"), Tensor("f32", [n])
    m.first.ports([x, asked] if by_data else [x], [y])
    begin = start(m, ints(0))
    i0, v0, x0 = Tensor("s32", []), Tensor("f32", [0]), Tensor("f32", [n])
    c0 = Tensor("bool", [])
    condition = m.body([i0, v0, x0], [c0],
                       lambda g: g.op(B.LESS, [i0, ints(3)], [c0], O.LessOptions,
                                      schema.LessOptionsT()))
    i1, v1, x1 = Tensor("s32", []), Tensor("f32"), Tensor("f32", [n])
    i2, v2, x2 = Tensor("s32", []), Tensor("f32"), Tensor("f32", [n])
    more = Tensor("f32")

    def turn(g):
        g.op(B.ADD, [i1, ints(1)], [i2], O.AddOptions, schema.AddOptionsT())
        g.op(B.ADD, [x1, Tensor("f32", data=0.3, constant=True)], [x2], O.AddOptions,
             schema.AddOptionsT())
        keep.append(more)
        positive(g, x2, more, [n])
        g.op(B.CONCATENATION, [v1, more], [v2], O.ConcatenationOptions,
             options(schema.ConcatenationOptionsT, axis=0))

    body = m.body([i1, v1, x1], [i2, v2, x2], turn)
    nothing = Tensor("f32", [0], np.zeros(0), constant=True)
    m.loop([begin, nothing, x], [count, values, last], condition, body)
    m.first.op(B.ADD, [values, real_one()], [y], O.AddOptions, schema.AddOptionsT())
    keep.extend((count, values, last, nothing))
    return m


def real_one():
    one_ = Tensor("f32", data=1.0, constant=True)
    keep.append(one_)
    return one_


@model
def call_finds_twice():
    """Different elements of those above 0: two questions in a subgraph that is called."""
    m, n = Flow(), 12
    x, y, at = Tensor("s32", [n]), Tensor("s32"), Tensor("s32")
    x.range = (-4, 5)
    m.first.ports([x], [y, at])
    a, mask, where = Tensor("s32", [n]), Tensor("bool", [n]), Tensor("s64")
    found, b, c = Tensor("s32"), Tensor("s32"), Tensor("s32")
    keep.extend((mask, where, found))

    def fill(g):
        g.op(B.GREATER, [a, ints(0)], [mask], O.GreaterOptions, schema.GreaterOptionsT())
        g.op(B.WHERE, [mask], [where], O.WhereOptions, schema.WhereOptionsT())
        g.op(B.GATHER_ND, [a, where], [found], O.GatherNdOptions, schema.GatherNdOptionsT())
        g.op(B.UNIQUE, [found], [b, c], O.UniqueOptions,
             options(schema.UniqueOptionsT, idxOutType=schema.TensorType.INT32))

    inner = m.body([a], [b, c], fill)
    made = options(schema.StableHLOCompositeOptionsT, name="found", version=1,
                   decompositionSubgraphIndex=inner, compositeAttributes=[])
    m.first.op(B.STABLEHLO_COMPOSITE, [x], [y, at],
               more=(schema.BuiltinOptions2.StableHLOCompositeOptions, made))
    return m


# ---- StableHLO's operators ----


def more(name, **fields):
    cls = getattr(schema, name + "T")
    return getattr(schema.BuiltinOptions2, name), options(cls, **fields)


def hlo(builtin, inputs, outputs, made=None):
    m = Model()
    m.first.ports([t for t in inputs if not t.constant], outputs)
    m.first.op(builtin, inputs, outputs, more=made)
    return m


def hlo_pairs(builtin, x, y, z):
    return hlo(builtin, [x, y], [z])


@model
def hlo_add():
    return hlo_pairs(B.STABLEHLO_ADD, real(2, 3), real(2, 3), Tensor("f32", [2, 3]))


@model
def hlo_multiply():
    return hlo_pairs(B.STABLEHLO_MULTIPLY, real(2, 3), real(2, 3), Tensor("f32", [2, 3]))


@model
def hlo_maximum():
    return hlo_pairs(B.STABLEHLO_MAXIMUM, Tensor("s32", [2, 3]), Tensor("s32", [2, 3]),
                     Tensor("s32", [2, 3]))


@model
def hlo_minimum():
    return hlo_pairs(B.STABLEHLO_MINIMUM, real(7), real(7), Tensor("f32", [7]))


@model
def hlo_and():
    return hlo_pairs(B.STABLEHLO_AND, Tensor("s32", [6]), Tensor("s32", [6]), Tensor("s32", [6]))


@model
def hlo_shift_left():
    x, n = Tensor("s32", [6]), Tensor("s32", [6])
    n.range = (0, 9)
    return hlo_pairs(B.STABLEHLO_SHIFT_LEFT, x, n, Tensor("s32", [6]))


def hlo_pad(low, high, between, out):
    made = more("StablehloPadOptions", edgePaddingLow=low, edgePaddingHigh=high,
                interiorPadding=between)
    return hlo(B.STABLEHLO_PAD, [real(3, 4), Tensor("f32", data=0.5, constant=True)],
               [Tensor("f32", out)], made)


@model
def hlo_pad_around():
    return hlo_pad([1, 0], [2, 3], [0, 0], [6, 7])


@model
def hlo_pad_between():
    return hlo_pad([0, 1], [1, 0], [1, 2], [6, 11])


@model
def hlo_pad_cuts():
    return hlo_pad([-1, 2], [1, -1], [0, 1], [3, 8])


@model
def pad_with_a_number_of_64_bits():
    m = Model()
    x, y = Tensor("s64", [3, 4]), Tensor("s64", [6, 5])
    m.first.ports([x], [y])
    m.first.op(B.PADV2, [x, ints([[1, 2], [0, 1]]), Tensor("s64", data=-(2 ** 40), constant=True)],
               [y])
    return m


@model
def pad_with_a_number_of_the_run():
    m = Model()
    x, value, y = real(2, 3), real(1), Tensor("f32", [2, 6])
    m.first.ports([x, value], [y])
    m.first.op(B.PADV2, [x, ints([[0, 0], [1, 2]]), value], [y])
    return m


@model
def dilate():
    return hlo(B.DILATE, [real(3, 4, 2), ints([2, 1, 3]),
                          Tensor("f32", data=-1.0, constant=True)], [Tensor("f32", [5, 4, 4])])


def reduce_window(function, dtype, init, size, stride, dilation, out):
    x = Tensor(dtype, [5, 6])
    if dtype == "bool":
        x.range = (0, 2)
    made = more("ReduceWindowOptions", reduceFunction=function)
    return hlo(B.REDUCE_WINDOW, [x, Tensor(dtype, data=init, constant=True), ints(size, "s64"),
                                 ints(stride, "s64"), ints(dilation, "s64")],
               [Tensor(dtype, out)], made)


@model
def reduce_window_sum():
    return reduce_window(schema.ReduceWindowFunction.ADD, "f32", 0.25, [2, 3], [1, 2], [1, 1],
                         [4, 2])


@model
def reduce_window_max():
    return reduce_window(schema.ReduceWindowFunction.MAXIMUM, "f32", 0.1, [2, 2], [2, 1], [3, 2],
                         [1, 4])


@model
def reduce_window_any():
    return reduce_window(schema.ReduceWindowFunction.ANY, "bool", False, [3, 1], [1, 1], [1, 1],
                         [3, 6])


@model
def reduce_window_product():
    return reduce_window(schema.ReduceWindowFunction.MUL, "s32", 1, [1, 3], [1, 1], [1, 1], [5, 4])


def hlo_windows(builtin, name, inputs, out, body=None, **members):
    m = Flow()
    m.first.ports([t for t in inputs if not t.constant], [out])
    if body is not None:
        a, b, c = (Tensor(out.dtype, []) for _ in range(3))
        members["updateComputationSubgraphIndex"] = m.body(
            [a, b], [c], lambda g: g.op(body, [a, b], [c]))
    m.first.op(builtin, inputs, [out], more=more(name, **members))
    return m


@model
def hlo_gather():
    return hlo_windows(B.STABLEHLO_GATHER, "StablehloGatherOptions",
                       [real(3, 4, 5), ints([[2, 3], [0, 1], [9, -4]])], Tensor("f32", [2, 3, 5]),
                       offsetDims=[0, 2], collapsedSliceDims=[0], startIndexMap=[0, 1],
                       indexVectorDim=1, sliceSizes=[1, 2, 5])


@model
def hlo_scatter():
    return hlo_windows(B.STABLEHLO_SCATTER, "StablehloScatterOptions",
                       [real(3, 4), ints([[2], [0], [2], [3]]), real(4, 3)], Tensor("f32", [3, 4]),
                       B.STABLEHLO_ADD, updateWindowDims=[1], insertedWindowDims=[0],
                       scatterDimsToOperandDims=[0], indexVectorDim=1)


@model
def hlo_scatter_halves():
    """Sums of halves are rounded one by one."""
    return hlo_windows(B.STABLEHLO_SCATTER, "StablehloScatterOptions",
                       [Tensor("f16", [3, 4]), ints([[2], [0], [2], [2]]),
                        Tensor("f16", [4, 4])], Tensor("f16", [3, 4]),
                       B.STABLEHLO_ADD, updateWindowDims=[1], insertedWindowDims=[0],
                       scatterDimsToOperandDims=[0], indexVectorDim=1)


@model
def hlo_case():
    m = Flow()
    at, x, y = Tensor("s32", [1]), real(2, 3), Tensor("f32", [2, 3])
    at.range = (-1, 4)
    m.first.ports([at, x], [y])
    bodies = []
    for op in (B.ABS, B.NEG, B.FLOOR):
        a, b = Tensor("f32", [2, 3]), Tensor("f32", [2, 3])
        bodies.append(m.body([a], [b], lambda g: g.op(op, [a], [b])))
    m.first.op(B.STABLEHLO_CASE, [at, x], [y],
               more=more("StablehloCaseOptions", branchSubgraphIndices=bodies))
    return m


@model
def hlo_reduce_window():
    m = Flow()
    x, y = real(5, 6), Tensor("f32", [6, 5])
    m.first.ports([x], [y])
    a, b, c = (Tensor("f32", []) for _ in range(3))
    body = m.body([a, b], [c], lambda g: g.op(B.STABLEHLO_ADD, [a, b], [c]))
    made = more("StablehloReduceWindowOptions", windowDimensions=[2, 3], windowStrides=[1, 2],
                baseDilations=[1, 2], windowDilations=[1, 1], padding=[1, 1, 0, 0],
                bodySubgraphIndex=body)
    m.first.op(B.STABLEHLO_REDUCE_WINDOW, [x, Tensor("f32", data=0.0, constant=True)], [y],
               more=made)
    return m

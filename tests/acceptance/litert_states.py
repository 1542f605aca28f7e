"""Models with variables in which data decides sizes: each becomes several graphs, which hand the
variables on. They are listed in MODELS and STATES of litert_models.py."""

from litert_models import (B, Flow, Model, O, Tensor, begin, beginning, condition_of,
                           constant, ints, keep, options, positive, real, schema, state,
                           stateful, variable)


def read(graph, name, shape):
    value = Tensor("f32", shape)
    graph.op(B.READ_VARIABLE, [variable(graph, name)], [value])
    return value


def assign(graph, name, value):
    graph.op(B.ASSIGN_VARIABLE, [variable(graph, name), value], [])


def add(graph, x, y, shape):
    total = Tensor("f32", shape)
    graph.op(B.ADD, [x, y], [total], O.AddOptions, schema.AddOptionsT())
    return total


def total_of(graph, x):
    """A sum of a list of any length."""
    total = Tensor("f32", [1])
    graph.op(B.SUM, [x, ints([0])], [total], O.ReducerOptions,
             options(schema.ReducerOptionsT, keepDims=True))
    return total


def found(graph, x, shape):
    y = Tensor("f32")
    positive(graph, x, y, shape)
    return y


@stateful
def state_in_front_of_a_cut():
    """v += x; the elements of v above 0."""
    m = Model()
    x, y = real(6), Tensor("f32")
    m.first.ports([x], [y])
    begin(m, {"v": constant(6)})
    v = add(m.first, read(m.first, "v", [6]), x, [6])
    assign(m.first, "v", v)
    positive(m.first, v, y, [6])
    return m


@stateful
def state_behind_a_cut():
    """v += the sum of the elements above 0, where no graph in front of the cut reads v."""
    m = Model()
    x, y = real(6), Tensor("f32", [1])
    m.first.ports([x], [y])
    begin(m, {"v": constant(1), "unread": constant(2)})
    total = total_of(m.first, found(m.first, x, [6]))
    m.first.op(B.ADD, [read(m.first, "v", [1]), total], [y], O.AddOptions, schema.AddOptionsT())
    assign(m.first, "v", y)
    return m


@stateful
def states_around_two_cuts():
    """One is written in front of a cut and read behind two, one read first and written last, one
    only read."""
    m = Model()
    x, y, z = real(6), Tensor("f32"), Tensor("f32", [1])
    m.first.ports([x], [y, z])
    begin(m, {"early": constant(6), "late": constant(1), "factor": constant(6)})
    late = read(m.first, "late", [1])
    early = add(m.first, read(m.first, "early", [6]), x, [6])
    assign(m.first, "early", early)
    first = total_of(m.first, found(m.first, early, [6]))
    again = add(m.first, read(m.first, "early", [6]), read(m.first, "factor", [6]), [6])
    positive(m.first, again, y, [6])
    m.first.op(B.ADD, [late, add(m.first, first, total_of(m.first, y), [1])], [z], O.AddOptions,
               schema.AddOptionsT())
    assign(m.first, "late", z)
    assign(m.first, "early", again)
    return m


@stateful
def layers_around_a_cut():
    """Variable tensors of recurrent layers on both sides of a cut."""
    m = Model()
    x, y = real(2, 3), Tensor("f32", [2, 4])
    m.first.ports([x], [y])
    made = lambda: options(schema.RNNOptionsT, fusedActivationFunction=0)  # noqa: E731
    first, wide, out = Tensor("f32", [2, 4]), Tensor("f32", [2, 4]), Tensor("f32", [2, 4])
    m.first.op(B.RNN, [x, constant(4, 3), constant(4, 4), constant(4), state(2, 4)], [first],
               O.RNNOptions, made())
    total = total_of(m.first, found(m.first, first, [2, 4]))
    m.first.op(B.ADD, [first, total], [wide], O.AddOptions, schema.AddOptionsT())
    m.first.op(B.RNN, [wide, constant(4, 4), constant(4, 4), constant(4), state(2, 4)], [out],
               O.RNNOptions, made())
    m.first.op(B.ADD, [out, first], [y], O.AddOptions, schema.AddOptionsT())
    return m


@stateful
def state_in_a_branch():
    """v += x if the sum of x is above 0, else v stays."""
    m, shape = Flow(), [5]
    x, y = real(5), Tensor("f32", [5])
    m.first.ports([x], [y])
    begin(m, {"v": constant(5)})
    a, b, c, d = (Tensor("f32", shape) for _ in range(4))

    def adds(g):
        g.op(B.ADD, [a, read(g, "v", shape)], [b], O.AddOptions, schema.AddOptionsT())
        assign(g, "v", b)

    def keeps(g):
        g.op(B.MUL, [c, read(g, "v", shape)], [d], O.MulOptions, schema.MulOptionsT())

    bodies = m.body([a], [b], adds), m.body([c], [d], keeps)
    m.branch(condition_of(m, x, shape), [x], [y], bodies)
    return m


@stateful
def state_begins_behind_a_cut():
    """v += the sum of the elements above 0; nothing names v before that is known."""
    m = Model()
    x, y = real(6), Tensor("f32", [1])
    m.first.ports([x], [y])
    begins = beginning(m, {"v": constant(1), "unread": constant(2)})
    total = total_of(m.first, found(m.first, x, [6]))
    begins(m.first)
    m.first.op(B.ADD, [read(m.first, "v", [1]), total], [y], O.AddOptions, schema.AddOptionsT())
    assign(m.first, "v", y)
    return m


@stateful
def state_begins_in_a_branch():
    """v += x if the sum of x is above 0, where v begins, else 2 x."""
    m, shape = Flow(), [5]
    x, y = real(5), Tensor("f32", [5])
    m.first.ports([x], [y])
    begins = beginning(m, {"v": constant(5)})
    a, b, c, d = (Tensor("f32", shape) for _ in range(4))

    def adds(g):
        begins(g)
        g.op(B.ADD, [a, read(g, "v", shape)], [b], O.AddOptions, schema.AddOptionsT())
        assign(g, "v", b)

    bodies = m.body([a], [b], adds), m.body([c], [d], lambda g: g.op(
        B.ADD, [c, c], [d], O.AddOptions, schema.AddOptionsT()))
    m.branch(condition_of(m, x, shape), [x], [y], bodies)
    return m


@stateful
def state_in_a_subgraph():
    return changed_in_a_subgraph(False)


@stateful
def state_begins_in_a_subgraph():
    return changed_in_a_subgraph(True)


def changed_in_a_subgraph(begins_there):
    """Written in front of the cut and behind it, in one subgraph: v += x, v += its positives."""
    m = Flow()
    x, y = real(4), Tensor("f32", [4])
    m.first.ports([x], [y])
    begins = beginning(m, {"v": constant(4)})
    if not begins_there:
        begins(m.first)
    a, b = Tensor("f32", [4]), Tensor("f32", [4])

    def fill(g):
        if begins_there:
            begins(g)
        assign(g, "v", add(g, a, read(g, "v", [4]), [4]))
        total = total_of(g, found(g, read(g, "v", [4]), [4]))
        g.op(B.ADD, [read(g, "v", [4]), total], [b], O.AddOptions, schema.AddOptionsT())
        assign(g, "v", b)

    made = options(schema.StableHLOCompositeOptionsT, name="v", version=1,
                   decompositionSubgraphIndex=m.body([a], [b], fill), compositeAttributes=[])
    m.first.op(B.STABLEHLO_COMPOSITE, [x], [y],
               more=(schema.BuiltinOptions2.StableHLOCompositeOptions, made))
    return m


@stateful
def state_in_a_loop():
    """As many turns as the data says, each of which doubles v and adds x."""
    m = Flow()
    x, turns, y, n = real(3), Tensor("s32", [2]), Tensor("f32", [3]), Tensor("s32", [])
    turns.range = (0, 3)
    m.first.ports([x, turns], [y])
    begin(m, {"v": constant(3)})
    left, last, x_out = Tensor("s32", []), Tensor("s32", []), Tensor("f32", [3])
    m.first.op(B.SUM, [turns, ints([0])], [left], O.ReducerOptions, schema.ReducerOptionsT())
    i0, x0, more = Tensor("s32", []), Tensor("f32", [3]), Tensor("bool", [])
    condition = m.body([i0, x0], [more], lambda g: g.op(
        B.GREATER, [i0, ints(0)], [more], O.GreaterOptions, schema.GreaterOptionsT()))
    i1, x1, i2 = Tensor("s32", []), Tensor("f32", [3]), Tensor("s32", [])

    def turn(g):
        v = read(g, "v", [3])
        twice = add(g, v, v, [3])
        assign(g, "v", add(g, twice, x1, [3]))
        g.op(B.SUB, [i1, ints(1)], [i2], O.SubOptions, schema.SubOptionsT())

    body = m.body([i1, x1], [i2, x1], turn)
    m.loop([left, x], [last, x_out], condition, body)
    m.first.op(B.ADD, [read(m.first, "v", [3]), x_out], [y], O.AddOptions, schema.AddOptionsT())
    keep.extend((n, last))
    return m


@stateful
def state_beside_nested_loops():
    """v += x, and loops that the data decides, which do not touch v: x doubles in each inner turn,
    of which the outer turn i has i."""
    m = Flow()
    x, turns, y = real(3), Tensor("s32", [2]), Tensor("f32", [3])
    turns.range = (0, 3)
    m.first.ports([x, turns], [y])
    begin(m, {"v": constant(3)})
    left, last, many = Tensor("s32", []), Tensor("s32", []), Tensor("f32", [3])
    m.first.op(B.SUM, [turns, ints([0])], [left], O.ReducerOptions, schema.ReducerOptionsT())
    v = add(m.first, read(m.first, "v", [3]), x, [3])

    def more(n):
        flag = Tensor("bool", [])
        return m.body([n, Tensor("f32", [3])], [flag], lambda g: g.op(
            B.GREATER, [n, ints(0)], [flag], O.GreaterOptions, schema.GreaterOptionsT()))

    def less(g, n, out):
        g.op(B.SUB, [n, ints(1)], [out], O.SubOptions, schema.SubOptionsT())

    k, k_out, a, a_out = (Tensor(*kind) for kind in (("s32", []), ("s32", []), ("f32", [3]),
                                                     ("f32", [3])))

    def inner_turn(g):
        less(g, k, k_out)
        g.op(B.ADD, [a, a], [a_out], O.AddOptions, schema.AddOptionsT())

    inner = more(Tensor("s32", [])), m.body([k, a], [k_out, a_out], inner_turn)
    i, i_out, b, b_out, none = (Tensor(*kind) for kind in (("s32", []), ("s32", []), ("f32", [3]),
                                                           ("f32", [3]), ("s32", [])))

    def outer_turn(g):
        less(g, i, i_out)
        g.op(B.WHILE, [i, b], [none, b_out], O.WhileOptions,
             options(schema.WhileOptionsT, condSubgraphIndex=inner[0], bodySubgraphIndex=inner[1]))

    m.loop([left, x], [last, many], more(Tensor("s32", [])), m.body([i, b], [i_out, b_out],
                                                                    outer_turn))
    assign(m.first, "v", v)
    m.first.op(B.ADD, [v, many], [y], O.AddOptions, schema.AddOptionsT())
    keep.extend((last, none))
    return m

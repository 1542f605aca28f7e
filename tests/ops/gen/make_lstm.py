"""Writes lstm.json beside this folder: 8-bit LSTM layers of LiteRT's reference kernels.

    python tests/ops/gen/make_lstm.py
"""

import numpy as np

from litert import Tensor, run, schema
from make_ops import B, File, O

GATES = ("input", "forget", "cell", "output")


def options_of(time_major, cell_clip, proj_clip):
    options = schema.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    options.cellClip = cell_clip
    options.projClip = proj_clip
    options.timeMajor = time_major
    return options


def uniform(rng, low, high):
    return float(np.float32(rng.uniform(low, high)))


def parts(rng, batch, steps, width, cells, time_major=False, coupled=False, cell_clip=0.0,
          exponent=-11, peephole=False, norm=False, projection=None, proj_bias=True,
          proj_clip=0.0):
    """Arguments of litert.run after the operator, inputs of our operator, its attributes.
    projection: width of the state."""
    shape = [steps, batch, width] if time_major else [batch, steps, width]
    state_width = projection or cells

    def numbers(*size):
        return rng.integers(-127, 128, size)

    def wide(scale):
        return Tensor("s16", None, rng.integers(-32767, 32768, cells), scale, 0, True)

    sx, zx = uniform(rng, 0.004, 0.05), int(rng.integers(-128, 128))
    sy, zy = uniform(rng, 0.004, 0.008), int(rng.integers(-20, 20))
    sh, zh = (uniform(rng, 0.004, 0.008), int(rng.integers(-20, 20))) if projection else (sy, zy)
    x = Tensor("s8", shape, rng.integers(-128, 128, shape), sx, zx)
    weights, recurrent, bias, norms, sums = [], [], [], [], []
    for gate in GATES:
        absent = coupled and gate == "input"
        sw, sr = [uniform(rng, 0.002, 0.02) for _ in range(2)]
        sn = uniform(rng, 2e-5, 5e-5) if norm else None
        sb = sn / 1024 if norm else sw * sx
        weights.append(None if absent else Tensor("s8", None, numbers(cells, width), sw, 0, True))
        recurrent.append(None if absent else Tensor("s8", None, numbers(cells, state_width), sr, 0,
                                                    True))
        most = 2**24 if norm else 3000
        bias.append(None if absent else Tensor("s32", None, rng.integers(-most, most, cells), sb,
                                               0, True))
        norms.append(wide(sn) if norm and not absent else None)
        sums.append(uniform(rng, 1e-4, 1e-3) if norm else None)
    holes = [None] * 3
    if peephole:
        holes = [None if coupled and i == 0 else wide(uniform(rng, 1e-5, 4e-5)) for i in range(3)]
    project = [None, None]
    if projection:
        sp = uniform(rng, 0.002, 0.02)
        project[0] = Tensor("s8", None, numbers(projection, cells), sp, 0, True)
        if proj_bias:
            project[1] = Tensor("s32", None, rng.integers(-3000, 3000, projection), sp * sh, 0,
                                True)
    state = Tensor("s8", [batch, state_width], None, sy, zy, variable=True)
    cell = Tensor("s16", [batch, cells], None, 2.0**exponent, 0, variable=True)
    inputs = [x, *weights, *recurrent, *holes, *bias, *project, state, cell, *norms]
    between = [Tensor("s16", [0], None, s) for s in sums] + [Tensor("s8", [0], None, sh, zh)]
    y = Tensor("s8", shape[:2] + [state_width], None, sy, zy)
    attrs = {"time_major": time_major, "cell_clip": cell_clip, "cell_exponent": exponent}
    if norm:
        attrs |= {f"{gate}_scale": s for gate, s in zip(GATES, sums)}
    if projection:  # LiteRT stores the cells' results around the opposite of their zero point
        attrs |= {"hidden_scale": sh, "hidden_zero": -zh, "proj_clip": proj_clip}
    operands = [x, *weights, *recurrent, *bias]
    if peephole or norm or projection:
        operands += [None, None, *holes, *norms, *project]
    return (options_of(time_major, cell_clip, proj_clip), inputs, [y], between), operands, attrs


def layer(file, name, *sizes, **more):
    (options, inputs, outputs, between), operands, attrs = parts(file.rng, *sizes, **more)
    run(B.UNIDIRECTIONAL_SEQUENCE_LSTM, O.UnidirectionalSequenceLSTMOptions, options, inputs,
        outputs, version=3, intermediates=between)
    file.add(name, operands, outputs, attrs)


def main():
    file = File("lstm")
    layer(file, "one step", 1, 1, 5, 4)
    layer(file, "sequence", 2, 9, 3, 6)
    layer(file, "time first", 3, 5, 4, 2, time_major=True)
    layer(file, "coupled", 2, 7, 6, 5, coupled=True)
    layer(file, "clipped", 1, 12, 4, 5, cell_clip=1.5)
    layer(file, "wide cell", 2, 20, 3, 3, exponent=-10)
    layer(file, "fine cell", 1, 8, 8, 8, exponent=-12, cell_clip=10.0)
    layer(file, "peephole", 2, 9, 4, 6, peephole=True)
    layer(file, "coupled peephole", 2, 6, 4, 3, coupled=True, peephole=True)
    layer(file, "normalized", 2, 9, 5, 7, norm=True)
    layer(file, "projection", 2, 9, 4, 6, projection=3)
    layer(file, "clipped projection", 3, 5, 4, 5, projection=8, proj_bias=False, proj_clip=0.2,
          time_major=True)
    layer(file, "all", 1, 9, 5, 8, peephole=True, norm=True, projection=4, cell_clip=5.0)
    layer(file, "all coupled", 1, 12, 5, 8, coupled=True, peephole=True, norm=True, projection=7)
    file.write()


if __name__ == "__main__":
    main()

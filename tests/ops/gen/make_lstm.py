"""Writes lstm.json beside this folder: 8-bit LSTM layers of LiteRT's reference kernels.

    python tests/ops/gen/make_lstm.py
"""

import numpy as np

from litert import Tensor, run, schema
from make_ops import B, File, O

GATES = ("input", "forget", "cell", "output")


def options_of(time_major, cell_clip):
    options = schema.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    options.cellClip = cell_clip
    options.projClip = 0.0
    options.timeMajor = time_major
    return options


def layer(file, name, batch, steps, width, cells, time_major=False, coupled=False, cell_clip=0.0,
          exponent=-11):
    rng = file.rng
    shape = [steps, batch, width] if time_major else [batch, steps, width]

    def numbers(*size):
        return rng.integers(-127, 128, size)

    sx, zx = float(np.float32(rng.uniform(0.004, 0.05))), int(rng.integers(-128, 128))
    sy, zy = float(np.float32(rng.uniform(0.004, 0.008))), int(rng.integers(-20, 20))
    x = Tensor("s8", shape, rng.integers(-128, 128, shape), sx, zx)
    weights, recurrent, bias = [], [], []
    for gate in GATES:
        absent = coupled and gate == "input"
        sw, sr = [float(np.float32(rng.uniform(0.002, 0.02))) for _ in range(2)]
        weights.append(None if absent else Tensor("s8", None, numbers(cells, width), sw, 0, True))
        recurrent.append(None if absent else Tensor("s8", None, numbers(cells, cells), sr, 0, True))
        bias.append(None if absent else Tensor("s32", None, rng.integers(-3000, 3000, cells),
                                               sw * sx, 0, True))
    state = Tensor("s8", [batch, cells], None, sy, zy, variable=True)
    cell = Tensor("s16", [batch, cells], None, 2.0**exponent, 0, variable=True)
    inputs = [x, *weights, *recurrent, None, None, None, *bias, None, None, state, cell,
              None, None, None, None]
    between = [Tensor("s16", [0]) for _ in range(4)] + [Tensor("s8", [0], None, sy, zy)]
    y = Tensor("s8", shape[:2] + [cells], None, sy, zy)
    run(B.UNIDIRECTIONAL_SEQUENCE_LSTM, O.UnidirectionalSequenceLSTMOptions,
        options_of(time_major, cell_clip), inputs, [y], version=3, intermediates=between)
    attrs = {"time_major": time_major, "cell_clip": cell_clip, "cell_exponent": exponent}
    file.add(name, [x, *weights, *recurrent, *bias], [y], attrs)


def main():
    file = File("lstm")
    layer(file, "one step", 1, 1, 5, 4)
    layer(file, "sequence", 2, 9, 3, 6)
    layer(file, "time first", 3, 5, 4, 2, time_major=True)
    layer(file, "coupled", 2, 7, 6, 5, coupled=True)
    layer(file, "clipped", 1, 12, 4, 5, cell_clip=1.5)
    layer(file, "wide cell", 2, 20, 3, 3, exponent=-10)
    layer(file, "fine cell", 1, 8, 8, 8, exponent=-12, cell_clip=10.0)
    file.write()


if __name__ == "__main__":
    main()

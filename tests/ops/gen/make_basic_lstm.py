"""Writes basic_lstm.json beside this folder: steps of LSTM layers by LiteRT's basic kernel, each
beginning with any state.

    python tests/ops/gen/make_basic_lstm.py
"""

import numpy as np

from litert import Tensor, run, schema
from make_ops import B, File, O


def layer(file, name, batch, width, cells, scale=0.01, zero=120, range_of_bias=20000):
    rng = file.rng
    options = schema.LSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    options.kernelType = schema.LSTMKernelType.BASIC

    def bytes_of(*shape):
        return rng.integers(0, 256, shape)

    around = {"scale": 1 / 128, "zero_point": 128}
    rows, columns = 4 * cells, width + cells
    inputs = [Tensor("u8", None, bytes_of(batch, width), **around),
              Tensor("u8", None, bytes_of(batch, cells), **around),
              Tensor("u8", None, bytes_of(rows, columns), scale, zero, True),
              Tensor("s32", None, rng.integers(-range_of_bias, range_of_bias + 1, rows),
                     scale / 128, 0, True),
              Tensor("s16", None, rng.integers(-32768, 32768, [batch, cells]), 2.0**-11)]
    outputs = [Tensor("u8", [batch, cells], None, **around),
               Tensor("s16", [batch, cells], None, 2.0**-11),
               Tensor("u8", [batch, columns], None, **around),
               Tensor("s16", [batch, rows], None, 2.0**-12)]
    run(B.LSTM, O.LSTMOptions, options, inputs, outputs, 2)
    file.add(name, inputs, outputs)


def main():
    file = File("basic_lstm")
    layer(file, "2 samples", 2, 5, 4)
    layer(file, "many cells", 3, 3, 17, 0.004, 131)
    layer(file, "sums that saturate", 1, 9, 6, 0.3, 0)
    layer(file, "small sums", 1, 4, 8, 0.0003, 255, 900)
    layer(file, "a scale above 1", 2, 3, 3, 2.5, 100, 2)
    layer(file, "one cell, no features beside it", 1, 1, 1)
    file.write()


if __name__ == "__main__":
    main()

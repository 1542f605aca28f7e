"""Writes svdf.json beside this folder: 8-bit SVDF layers of LiteRT's reference kernels, three steps
of each; the state is what LiteRT's variable holds between them.

    python tests/ops/gen/make_svdf.py
"""

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from litert import RESOLVERS, Tensor, build, schema
from make_ops import B, File, O

STATE = 4  # input and tensor of the model


def layer(file, batch, width, units, rank, memory, has_bias):
    rng, filters = file.rng, units * rank
    options = schema.SVDFOptionsT()
    options.rank = rank
    options.fusedActivationFunction = schema.ActivationFunctionType.RELU
    sx, sf, st, ss, sy = [float(np.float32(rng.uniform(low, 4 * low)))
                          for low in (0.01, 0.003, 0.00003, 0.0005, 0.01)]
    feature = Tensor("s8", None, rng.integers(-127, 128, [filters, width]), sf, 0, True)
    time = Tensor("s16", None, rng.integers(-32767, 32768, [filters, memory]), st, 0, True)
    bias = Tensor("s32", None, rng.integers(-3e6, 3e6, units), ss * st, 0, True)
    state = Tensor("s16", [batch, filters * memory], None, ss, 0, variable=True)
    zero = int(rng.integers(-128, 0))
    x = Tensor("s8", [batch, width], np.zeros([batch, width]), sx, int(rng.integers(-20, 20)))
    y = Tensor("s8", [batch, units], None, sy, zero)
    content = build(B.SVDF, O.SVDFOptions, options,
                    [x, feature, time, bias if has_bias else None, state], [y], 3)
    made = Interpreter(model_content=content, experimental_op_resolver_type=RESOLVERS[True],
                       num_threads=1)
    made.allocate_tensors()
    at = STATE if has_bias else STATE - 1
    for step in range(3):
        before = np.array(made.get_tensor(at))
        x.data = rng.integers(-128, 128, [batch, width]).astype(np.int8)
        made.set_tensor(made.get_input_details()[0]["index"], x.data)
        made.invoke()
        y.data = made.get_tensor(made.get_output_details()[0]["index"])
        shown = [Tensor("s16", None, before, ss),
                 Tensor("s16", None, made.get_tensor(at), ss)]
        file.add("%d by %d of %d, step %d" % (units, rank, memory, step),
                 [x, feature, time, bias if has_bias else None, shown[0]], [y, shown[1]],
                 {"rank": rank})


def main():
    file = File("svdf")
    layer(file, 1, 6, 4, 2, 5, True)
    layer(file, 2, 3, 5, 1, 1, False)
    layer(file, 1, 9, 2, 3, 8, True)
    file.write()


if __name__ == "__main__":
    main()

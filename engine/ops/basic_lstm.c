/* basic_lstm: one step of an LSTM layer in 8-bit numbers around 128, with a cell of 16 bits, as
 * LiteRT's basic kernel computes it. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/tensor/fixed16.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_basic_lstm;

/* Inputs: x [n,i], state [n,c], weights [4c,i+c], bias [4c], cell [n,c]. Outputs: state and cell
 * behind x, what the kernel computes with: x beside the state [n,i+c], sums of the gates [n,4c]. */
enum { X, STATE, WEIGHTS, BIAS, CELL, INPUTS };
enum { NEW_STATE, NEW_CELL, BOTH, SUMS, OUTPUTS };

/* The order of the gates in rows of the weights. */
enum { INPUT_GATE, CELL_GATE, FORGET_GATE, OUTPUT_GATE, GATES };

#define CELL_SCALE 0x1p-11f /* 4 integer digits; sums have 3 */
#define CELL_BITS  4
#define SUM_BITS   3
#define MIDDLE     128

/* ---- shape rule ---- */

static enum ifd_code check_operand(const struct ifd_infer *in, uint32_t i, enum ifd_dtype dtype,
                                   const struct ifd_shape *shape, struct ifd_err *err)
{
    const struct ifd_desc *desc = in->input[i].desc;
    if (desc->dtype != dtype || !ifd_shape_equal(&desc->shape, shape)) {
        return ifd_fail(err, IFD_INVALID, "basic_lstm: input %u is %s %s, expected %s %s", i,
                        ifd_dtype_name(desc->dtype), ifd_shape_text(&desc->shape).s,
                        ifd_dtype_name(dtype), ifd_shape_text(shape).s);
    }
    return ifd_infer_any_scale(in->def, "an input", desc, err);
}

static enum ifd_code check_cell(const struct ifd_desc *desc, struct ifd_err *err)
{
    if (desc->quant.count != 1 || desc->quant.scale[0] != CELL_SCALE) {
        return ifd_fail(err, IFD_UNSUPPORTED, "basic_lstm: a cell of scale %g, expected %g",
                        desc->quant.count == 1 ? (double)desc->quant.scale[0] : 0.0,
                        (double)CELL_SCALE);
    }
    return IFD_OK;
}

static enum ifd_code check_inputs(const struct ifd_infer *in, struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(in->def, in, err);
    for (uint32_t i = X; code == IFD_OK && i <= WEIGHTS; i++) {
        code = ifd_infer_rank(in->def, in, i, 2, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const int64_t batch = in->input[X].desc->shape.dim[0], input = in->input[X].desc->shape.dim[1];
    const int64_t cells = in->input[STATE].desc->shape.dim[1];
    int64_t rows = 0, columns = 0;
    if (!ifd_dim_mul(GATES, cells, &rows) || !ifd_dim_add(input, cells, &columns)) {
        return ifd_fail(err, IFD_TOO_LARGE, "basic_lstm: %lld cells", (long long)cells);
    }
    const struct ifd_shape shape[INPUTS] = {[X] = {.rank = 2, .dim = {batch, input}},
                                            [STATE] = {.rank = 2, .dim = {batch, cells}},
                                            [WEIGHTS] = {.rank = 2, .dim = {rows, columns}},
                                            [BIAS] = {.rank = 1, .dim = {rows}},
                                            [CELL] = {.rank = 2, .dim = {batch, cells}}};
    static const enum ifd_dtype dtype[INPUTS] = {IFD_U8, IFD_U8, IFD_U8, IFD_S32, IFD_S16};
    for (uint32_t i = 0; code == IFD_OK && i < INPUTS; i++) {
        code = check_operand(in, i, dtype[i], &shape[i], err);
    }
    return code == IFD_OK ? check_cell(in->input[CELL].desc, err) : code;
}

static enum ifd_code basic_lstm_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    static const enum ifd_dtype dtype[OUTPUTS] = {IFD_U8, IFD_S16, IFD_U8, IFD_S16};
    enum ifd_code code = check_inputs(in, err);
    for (uint32_t i = 0; code == IFD_OK && i < OUTPUTS; i++) {
        code = ifd_infer_output_dtype(in->def, output, i, dtype[i], err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < OUTPUTS; i++) {
        code = ifd_infer_any_scale(in->def, "an output", &output[i], err);
    }
    if (code == IFD_OK) {
        code = check_cell(&output[NEW_CELL], err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *weights = &in->input[WEIGHTS].desc->shape;
    const struct ifd_shape *cells = &in->input[CELL].desc->shape;
    const struct ifd_shape shape[OUTPUTS] = {
        *cells,
        *cells,
        {.rank = 2, .dim = {cells->dim[0], weights->dim[1]}},
        {.rank = 2, .dim = {cells->dim[0], weights->dim[0]}},
    };
    for (uint32_t i = 0; code == IFD_OK && i < OUTPUTS; i++) {
        code = ifd_infer_output(in->def, output, i, &shape[i], err);
    }
    return code;
}

/* ---- reference ---- */

/* A sum in the scale of sums. LiteRT's matrix product rounds twice, halves upwards; nothing is left
 * of what its SIMD instructions shift by 32 and more. */
static int16_t scaled(uint32_t sum, struct ifd_multiplier factor)
{
    const uint32_t wide = factor.shift > 31 ? 0 : factor.shift > 0 ? sum << factor.shift : sum;
    const int64_t high = ifd_fixed_mul_high((int32_t)wide, factor.fraction);
    const int down = factor.shift < 0 ? -factor.shift : 0;
    return (int16_t)ifd_ref_clamp(down > 0 ? (high + (INT64_C(1) << (down - 1))) >> down : high,
                                  INT16_MIN, INT16_MAX);
}

/* x beside the state, and by the weights of all gates. Sums wrap around. */
static void multiply(const struct ifd_ref_call *call, int64_t n)
{
    const int64_t input = call->in[X]->shape.dim[1], cells = call->in[STATE]->shape.dim[1];
    const int64_t columns = input + cells;
    const int32_t zero = ifd_ref_zero_point(call->in[WEIGHTS]);
    const struct ifd_multiplier factor =
        ifd_multiplier((double)(0x1p12f * ifd_ref_scale(call->in[BIAS]))); /* a float, as there */
    const uint8_t *weights = call->input[WEIGHTS];
    const int32_t *bias = call->input[BIAS];
    uint8_t *both = (uint8_t *)call->output[BOTH] + n * columns;
    int16_t *sums = (int16_t *)call->output[SUMS] + n * GATES * cells;
    if (input > 0) {
        memcpy(both, (const uint8_t *)call->input[X] + n * input, (size_t)input);
    }
    if (cells > 0) {
        memcpy(both + input, (const uint8_t *)call->input[STATE] + n * cells, (size_t)cells);
    }
    for (int64_t row = 0; row < GATES * cells; row++) {
        uint32_t sum = (uint32_t)bias[row];
        for (int64_t k = 0; k < columns; k++) {
            sum += (uint32_t)((both[k] - MIDDLE) * (weights[row * columns + k] - zero));
        }
        sums[row] = scaled(sum, factor);
    }
}

static void update(const struct ifd_ref_call *call, int64_t n)
{
    const int64_t cells = call->in[STATE]->shape.dim[1];
    const int16_t *sums = (const int16_t *)call->output[SUMS] + n * GATES * cells;
    const int16_t *before = (const int16_t *)call->input[CELL] + n * cells;
    int16_t *cell = (int16_t *)call->output[NEW_CELL] + n * cells;
    uint8_t *state = (uint8_t *)call->output[NEW_STATE] + n * cells;
    for (int64_t i = 0; i < cells; i++) {
        const int32_t in = ifd_fixed16_logistic(sums[INPUT_GATE * cells + i], SUM_BITS);
        const int32_t candidate = ifd_fixed16_tanh(sums[CELL_GATE * cells + i], SUM_BITS);
        const int32_t forget = ifd_fixed16_logistic(sums[FORGET_GATE * cells + i], SUM_BITS);
        const int32_t open = ifd_fixed16_logistic(sums[OUTPUT_GATE * cells + i], SUM_BITS);
        const int32_t added = ifd_fixed16_down(ifd_fixed16_mul(in, candidate), CELL_BITS);
        cell[i] = (int16_t)ifd_fixed16_saturate(added + ifd_fixed16_mul(forget, before[i]));
        const int32_t as_sum = ifd_fixed16_up(cell[i], CELL_BITS - SUM_BITS);
        const int32_t y = ifd_fixed16_mul(open, ifd_fixed16_tanh((int16_t)as_sum, SUM_BITS));
        state[i] = (uint8_t)(MIDDLE + ifd_ref_clamp(ifd_fixed16_down(y, 8), INT8_MIN, INT8_MAX));
    }
}

static enum ifd_code basic_lstm_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    for (int64_t n = 0; n < call->in[X]->shape.dim[0]; n++) {
        multiply(call, n);
        update(call, n);
    }
    return IFD_OK;
}

const struct ifd_op_def ifd_op_basic_lstm = {
    .name = "basic_lstm",
    .min_inputs = INPUTS,
    .max_inputs = INPUTS,
    .outputs = OUTPUTS,
    .dtypes = IFD_BIT(IFD_U8),
    .infer = basic_lstm_infer,
    .ref = basic_lstm_ref,
    .multiplies = true,
};

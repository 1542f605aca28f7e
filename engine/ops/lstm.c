/* lstm: a layer of long short-term memory over a sequence, in 8-bit numbers with a 16-bit cell, as
 * LiteRT's integer kernel computes it. Its shape rule is in lstm_rule.c. */
#include "engine/ops/lstm_rule.h"
#include "engine/ops/ref_util.h"
#include "engine/tensor/fixed16.h"
#include "engine/tensor/lstm8.h"

#include <float.h>
#include <math.h>
#include <string.h>

extern const struct ifd_op_def ifd_op_lstm;

#define ROOT_ONE (INT64_C(1) << 10) /* a deviation before it is normalized */

static bool has(const struct ifd_ref_call *call, uint32_t i)
{
    return i < call->input_count && call->in[i];
}

/* weights[row, :] · (x - zero) + bias, wrapping */
static int32_t dot(const int8_t *weights, const int8_t *x, int64_t depth, int32_t zero,
                   int32_t bias)
{
    uint32_t sum = (uint32_t)bias;
    for (int64_t k = 0; k < depth; k++) {
        sum += (uint32_t)(weights[k] * (x[k] - zero));
    }
    return (int32_t)sum;
}

/* gate[n, c] += scaled sum of weights[c, :] (x[n, :] - zero) */
struct product {
    const int8_t *weights, *x;
    const int32_t *bias;   /* NULL: none */
    int64_t depth, stride; /* of x from one sample to the next */
    int32_t zero;
    struct ifd_multiplier factor;
};

static void add_product(const struct product *p, const struct ifd_lstm_sizes *s, int16_t *gate)
{
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t c = 0; c < s->cells; c++) {
            const int32_t sum = dot(p->weights + c * p->depth, p->x + n * p->stride, p->depth,
                                    p->zero, p->bias ? p->bias[c] : 0);
            int16_t *y = &gate[n * s->cells + c];
            *y = ifd_lstm8_add(*y, sum, p->factor.fraction, p->factor.shift);
        }
    }
}

static struct ifd_multiplier factor_of(const struct ifd_ref_call *call, uint32_t gate,
                                       const struct ifd_desc *weights, const struct ifd_desc *x)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    return ifd_multiplier(
        ifd_lstm8_factor(ifd_ref_scale(weights), ifd_ref_scale(x), attrs->gate_scale[gate]));
}

/* What the gate sees of the cells. LiteRT takes the width of the state for the number of cells: if
 * it is less, only so many are seen. (Of a batch it sees those of the first samples; here samples
 * are alike.) */
static void add_cells(const struct ifd_ref_call *call, const struct ifd_lstm_sizes *s,
                      uint32_t gate, const int16_t *cell, int16_t *ret)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    const int16_t *weights = call->input[IFD_LSTM_PEEPHOLE(gate)];
    const double scale =
        ldexp((double)ifd_ref_scale(call->in[IFD_LSTM_PEEPHOLE(gate)]), attrs->cell_exponent);
    const struct ifd_multiplier factor =
        ifd_multiplier((double)(float)(scale / (double)attrs->gate_scale[gate]));
    const int64_t seen = s->width < s->cells ? s->width : s->cells;
    for (int64_t i = 0; i < s->batch * s->cells; i++) {
        if (i % s->cells < seen) {
            const int32_t product = weights[i % s->cells] * cell[i];
            ret[i] = ifd_lstm8_add(ret[i], product, factor.fraction, factor.shift);
        }
    }
}

/* (x - mean) / deviation * weights + bias of a sample, in 2^-12. LiteRT scales the variance by
 * 2^20 / count, rounded down. */
static void normalize(const struct ifd_ref_call *call, int64_t count, uint32_t gate, int16_t *x)
{
    const float scale = ifd_ref_scale(call->in[IFD_LSTM_NORM(gate)]);
    const int16_t *weights = call->input[IFD_LSTM_NORM(gate)];
    const int32_t *bias = call->input[IFD_LSTM_BIAS(gate)];
    struct ifd_multiplier factor = ifd_multiplier((double)scale);
    factor.shift += 12;
    int64_t sum = 0, squares = 0;
    for (int64_t c = 0; c < count; c++) {
        sum += x[c];
        squares += x[c] * x[c];
    }
    const int64_t mean = sum * ROOT_ONE / count;
    const int64_t variance =
        (squares * (ROOT_ONE * ROOT_ONE / count) - mean * mean) / (ROOT_ONE * ROOT_ONE);
    const int32_t least = ifd_fixed_from_float(10000 * scale);
    const struct ifd_multiplier root = ifd_ref_inverse_root(variance >= 1 ? (int32_t)variance
                                                            : least > 1   ? least
                                                                          : 1);
    for (int64_t c = 0; c < count; c++) {
        const int32_t deviation = (int32_t)(ROOT_ONE * x[c] - mean);
        const int64_t real = (int64_t)ifd_requantize_double(deviation, root) * weights[c] + bias[c];
        const int64_t half = real > 0 ? ROOT_ONE / 2 : -ROOT_ONE / 2;
        x[c] =
            ifd_lstm8_saturate(ifd_requantize_double((int32_t)((real + half) / ROOT_ONE), factor));
    }
}

/* One gate of one step: x and state lie in the input and in the output before it. */
static void compute_gate(const struct ifd_ref_call *call, const struct ifd_lstm_sizes *s,
                         uint32_t gate, const int8_t *x, int64_t x_stride, const int8_t *state,
                         int64_t state_stride, const int16_t *cell, int16_t *ret)
{
    const size_t count = (size_t)(s->batch * s->cells);
    const bool is_normalized = has(call, IFD_LSTM_NORM(gate));
    struct product p = {.weights = call->input[IFD_LSTM_WEIGHTS(gate)],
                        .x = x,
                        .bias = is_normalized ? NULL : call->input[IFD_LSTM_BIAS(gate)],
                        .depth = s->input,
                        .stride = x_stride,
                        .zero = ifd_ref_zero_point(call->in[0]),
                        .factor =
                            factor_of(call, gate, call->in[IFD_LSTM_WEIGHTS(gate)], call->in[0])};
    memset(ret, 0, count * sizeof(*ret));
    add_product(&p, s, ret);
    if (state) { /* else it is all zero points */
        p.weights = call->input[IFD_LSTM_RECURRENT(gate)];
        p.x = state;
        p.bias = NULL;
        p.depth = s->width;
        p.stride = state_stride;
        p.zero = ifd_ref_zero_point(call->out[0]);
        p.factor = factor_of(call, gate, call->in[IFD_LSTM_RECURRENT(gate)], call->out[0]);
        add_product(&p, s, ret);
    }
    if (gate != IFD_LSTM_CELL_GATE && has(call, IFD_LSTM_PEEPHOLE(gate))) {
        add_cells(call, s, gate, cell, ret);
    }
    for (int64_t n = 0; is_normalized && n < s->batch; n++) {
        normalize(call, s->cells, gate, ret + n * s->cells);
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = gate == IFD_LSTM_CELL_GATE ? ifd_fixed16_tanh(ret[i], 3)
                                            : ifd_fixed16_logistic(ret[i], 3);
    }
}

static void update_cells(const struct ifd_ref_call *call, size_t count, const int16_t *gate,
                         int16_t *cell)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    const bool is_coupled = !has(call, IFD_LSTM_WEIGHTS(IFD_LSTM_INPUT_GATE));
    const int16_t clip = ifd_lstm8_clip(attrs->cell_clip, attrs->cell_exponent);
    for (size_t i = 0; i < count; i++) {
        const int16_t forget = gate[IFD_LSTM_FORGET_GATE * count + i];
        const int16_t in =
            is_coupled ? (int16_t)(INT16_MAX - forget) : gate[IFD_LSTM_INPUT_GATE * count + i];
        cell[i] = ifd_lstm8_cell(cell[i], forget, in, gate[IFD_LSTM_CELL_GATE * count + i],
                                 attrs->cell_exponent, attrs->cell_clip > 0, clip);
    }
}

/* Quantization of the cells' results; without a projection mostly that of the output. */
static float hidden_scale(const struct ifd_ref_call *call)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    return attrs->hidden_scale >= 0 ? attrs->hidden_scale : ifd_ref_scale(call->out[0]);
}

static int32_t hidden_zero(const struct ifd_ref_call *call)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    return attrs->hidden_scale >= 0 ? attrs->hidden_zero : ifd_ref_zero_point(call->out[0]);
}

/* The cells' results of a step. */
static void store_hidden(const struct ifd_ref_call *call, const struct ifd_lstm_sizes *s,
                         const int16_t *open, const int16_t *cell, int64_t stride, int8_t *y)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    const struct ifd_multiplier factor =
        ifd_multiplier(ifd_lstm8_hidden_factor(hidden_scale(call)));
    const int32_t zero = hidden_zero(call);
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t c = 0; c < s->cells; c++) {
            const int64_t i = n * s->cells + c;
            y[n * stride + c] =
                ifd_lstm8_hidden(open[i], ifd_fixed16_tanh(cell[i], 15 + attrs->cell_exponent),
                                 factor.fraction, factor.shift, zero);
        }
    }
}

/* The state that becomes of the cells' results. LiteRT clips stored numbers around 0. */
static void project(const struct ifd_ref_call *call, const struct ifd_lstm_sizes *s,
                    const int8_t *hidden, int64_t stride, int8_t *y)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    const float scale = ifd_ref_scale(call->out[0]);
    const float steps = attrs->proj_clip / scale;
    const int32_t clip = steps >= 1 ? (int32_t)(steps < INT8_MAX ? steps : INT8_MAX) : -INT8_MIN;
    const struct ifd_multiplier factor = ifd_multiplier(
        (double)(ifd_ref_scale(call->in[IFD_LSTM_PROJECTION]) * hidden_scale(call) / scale));
    const int32_t *bias =
        has(call, IFD_LSTM_PROJECTION_BIAS) ? call->input[IFD_LSTM_PROJECTION_BIAS] : NULL;
    const int8_t *weights = call->input[IFD_LSTM_PROJECTION];
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t i = 0; i < s->width; i++) {
            const int32_t sum = dot(weights + i * s->cells, hidden + n * s->cells, s->cells,
                                    hidden_zero(call), bias ? bias[i] : 0);
            const int64_t state =
                (int64_t)ifd_requantize_double(sum, factor) + ifd_ref_zero_point(call->out[0]);
            y[n * stride + i] =
                (int8_t)ifd_ref_clamp(ifd_ref_clamp(state, INT8_MIN, INT8_MAX), -clip, clip);
        }
    }
}

/* State and cell behind the last step. */
static void keep_states(const struct ifd_ref_call *call, const struct ifd_lstm_sizes *s,
                        const int8_t *state, int64_t stride, const int16_t *cell)
{
    for (int64_t n = 0; n < s->batch && call->output_count == 3; n++) {
        int8_t *kept = (int8_t *)call->output[1] + n * s->width;
        if (state) {
            memcpy(kept, state + n * stride, (size_t)s->width);
        } else { /* no step */
            memset(kept, ifd_ref_zero_point(call->out[1]), (size_t)s->width);
        }
        memcpy((int16_t *)call->output[2] + n * s->cells, cell + n * s->cells,
               (size_t)s->cells * sizeof(*cell));
    }
}

static enum ifd_code lstm_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_lstm_attrs *attrs = call->attrs;
    const struct ifd_lstm_sizes s = ifd_lstm_sizes_of(
        attrs, &call->in[0]->shape, &call->in[IFD_LSTM_RECURRENT(IFD_LSTM_OUTPUT_GATE)]->shape);
    const size_t count = (size_t)(s.batch * s.cells);
    int16_t *gate = call->scratch;
    int16_t *cell = gate + IFD_LSTM_GATES * count;
    int8_t *hidden = (int8_t *)(cell + count);
    const int64_t x_step = attrs->time_major ? s.batch * s.input : s.input;
    const int64_t y_step = attrs->time_major ? s.batch * s.width : s.width;
    const int64_t x_stride = attrs->time_major ? s.input : s.steps * s.input;
    const int64_t y_stride = attrs->time_major ? s.width : s.steps * s.width;
    const bool has_state = has(call, IFD_LSTM_CELL), projects = has(call, IFD_LSTM_PROJECTION);
    if (count == 0) {
        return IFD_OK;
    }
    if (has_state) {
        memcpy(cell, call->input[IFD_LSTM_CELL], count * sizeof(*cell));
    } else {
        memset(cell, 0, count * sizeof(*cell));
    }
    const int8_t *state = has_state ? call->input[IFD_LSTM_STATE] : NULL;
    int64_t state_stride = s.width;
    for (int64_t t = 0; t < s.steps; t++) {
        const int8_t *x = (const int8_t *)call->input[0] + t * x_step;
        int8_t *y = (int8_t *)call->output[0] + t * y_step;
        for (uint32_t g = 0; g < IFD_LSTM_OUTPUT_GATE; g++) {
            if (has(call, IFD_LSTM_WEIGHTS(g))) {
                compute_gate(call, &s, g, x, x_stride, state, state_stride, cell, gate + g * count);
            }
        }
        update_cells(call, count, gate, cell);
        int16_t *open = gate + IFD_LSTM_OUTPUT_GATE * count;
        compute_gate(call, &s, IFD_LSTM_OUTPUT_GATE, x, x_stride, state, state_stride, cell, open);
        store_hidden(call, &s, open, cell, projects ? s.cells : y_stride, projects ? hidden : y);
        if (projects) {
            project(call, &s, hidden, y_stride, y);
        }
        state = y;
        state_stride = y_stride;
    }
    keep_states(call, &s, state, state_stride, cell);
    return IFD_OK;
}

static const struct ifd_attr_def lstm_attrs[] = {
    {"time_major", IFD_ATTR_BOOL, offsetof(struct ifd_lstm_attrs, time_major), 0, 0, 1},
    {"cell_clip", IFD_ATTR_F32, offsetof(struct ifd_lstm_attrs, cell_clip), 0, 0, 3e38},
    {"cell_exponent", IFD_ATTR_INT, offsetof(struct ifd_lstm_attrs, cell_exponent), -11, -15, -9},
    {"input_scale", IFD_ATTR_F32, offsetof(struct ifd_lstm_attrs, gate_scale[0]), 0x1p-12, 0,
     (double)FLT_MAX},
    {"forget_scale", IFD_ATTR_F32, offsetof(struct ifd_lstm_attrs, gate_scale[1]), 0x1p-12, 0,
     (double)FLT_MAX},
    {"cell_scale", IFD_ATTR_F32, offsetof(struct ifd_lstm_attrs, gate_scale[2]), 0x1p-12, 0,
     (double)FLT_MAX},
    {"output_scale", IFD_ATTR_F32, offsetof(struct ifd_lstm_attrs, gate_scale[3]), 0x1p-12, 0,
     (double)FLT_MAX},
    {"hidden_scale", IFD_ATTR_F32, offsetof(struct ifd_lstm_attrs, hidden_scale), -1, -1,
     (double)FLT_MAX},
    {"hidden_zero", IFD_ATTR_INT, offsetof(struct ifd_lstm_attrs, hidden_zero), 0, -128, 128},
    {"proj_clip", IFD_ATTR_F32, offsetof(struct ifd_lstm_attrs, proj_clip), 0, 0, 3e38},
};

const struct ifd_op_def ifd_op_lstm = {
    .name = "lstm",
    .min_inputs = 1,
    .max_inputs = IFD_LSTM_INPUTS,
    .outputs = IFD_OP_VARIADIC,
    .attrs = lstm_attrs,
    .attr_count = sizeof(lstm_attrs) / sizeof(lstm_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_lstm_attrs),
    .dtypes = IFD_BIT(IFD_S8),
    .batch = IFD_BATCH_SEQUENCE,
    .infer = ifd_lstm_infer,
    .scratch = ifd_lstm_scratch,
    .ref = lstm_ref,
    .multiplies = true,
};

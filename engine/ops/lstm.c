/* lstm: a layer of long short-term memory over a sequence, in 8-bit numbers with a 16-bit cell, as
 * LiteRT's integer kernel computes it. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/tensor/fixed16.h"

#include <math.h>
#include <string.h>

extern const struct ifd_op_def ifd_op_lstm;

/* Inputs: the sequence; for each gate the weights of the input, of the state, and the bias; state
 * and cell before the first step, 0 if they are absent. The input gate may be absent: it is
 * 1 - forget gate then. Outputs: the sequence, and if there are three, state and cell. */
enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, GATES };
#define WEIGHTS(gate)   (1u + (gate))
#define RECURRENT(gate) (5u + (gate))
#define BIAS(gate)      (9u + (gate))
#define STATE           13u
#define CELL            14u
#define INPUTS          15
#define GATE_SCALE      0x1p-12

struct sizes {
    int64_t batch, steps, input, cells;
};

static struct sizes sizes_of(const struct ifd_lstm_attrs *attrs, const struct ifd_shape *x,
                             const struct ifd_shape *recurrent)
{
    const uint32_t time = attrs->time_major ? 0 : 1;
    return (struct sizes){x->dim[1 - time], x->dim[time], x->dim[2], recurrent->dim[0]};
}

/* ---- shape rule ---- */

static enum ifd_code check_matrix(const struct ifd_infer *in, uint32_t i, int64_t rows,
                                  int64_t columns, struct ifd_err *err)
{
    const struct ifd_desc *desc = ifd_infer_input(in, i);
    if (!desc || desc->dtype != IFD_S8 || desc->shape.rank != 2 || desc->shape.dim[0] != rows ||
        desc->shape.dim[1] != columns) {
        return ifd_fail(err, IFD_INVALID, "lstm: input %u is %s %s, expected s8 [%lld,%lld]", i,
                        desc ? ifd_dtype_name(desc->dtype) : "absent",
                        desc ? ifd_shape_text(&desc->shape).s : "", (long long)rows,
                        (long long)columns);
    }
    return ifd_infer_per_tensor(in->def, "weights", desc, err);
}

static enum ifd_code check_gate(const struct ifd_infer *in, uint32_t gate, const struct sizes *s,
                                struct ifd_err *err)
{
    const struct ifd_desc *bias = ifd_infer_input(in, BIAS(gate));
    enum ifd_code code = check_matrix(in, WEIGHTS(gate), s->cells, s->input, err);
    if (code == IFD_OK) {
        code = check_matrix(in, RECURRENT(gate), s->cells, s->cells, err);
    }
    if (code == IFD_OK && (!bias || bias->dtype != IFD_S32 || bias->shape.rank != 1 ||
                           bias->shape.dim[0] != s->cells)) {
        code = ifd_fail(err, IFD_INVALID, "lstm: input %u is no s32 [%lld]", BIAS(gate),
                        (long long)s->cells);
    }
    return code;
}

/* Both or none, [batch, cells]; the state is quantized as the output is. */
static enum ifd_code check_states(const struct ifd_infer *in, const struct ifd_desc *output,
                                  const struct ifd_shape *shape, struct ifd_err *err)
{
    const struct ifd_desc *state = ifd_infer_input(in, STATE), *cell = ifd_infer_input(in, CELL);
    if (!state && !cell) {
        return IFD_OK;
    }
    if (!state || !cell || state->dtype != IFD_S8 || cell->dtype != IFD_S16 ||
        !ifd_shape_equal(&state->shape, shape) || !ifd_shape_equal(&cell->shape, shape) ||
        !ifd_quant_equal(state, &output[0])) {
        return ifd_fail(err, IFD_INVALID, "lstm: no state s8 %s like the output and cell s16",
                        ifd_shape_text(shape).s);
    }
    return IFD_OK;
}

static enum ifd_code infer_states(const struct ifd_infer *in, struct ifd_desc *output,
                                  const struct ifd_shape *shape, struct ifd_err *err)
{
    static const enum ifd_dtype dtypes[] = {[1] = IFD_S8, [2] = IFD_S16};
    enum ifd_code code = IFD_OK;
    if (in->output_count != 1 && in->output_count != 3) {
        return ifd_fail(err, IFD_INVALID, "lstm: %u outputs, expected 1 or 3", in->output_count);
    }
    for (uint32_t i = 1; code == IFD_OK && i < in->output_count; i++) {
        code = ifd_infer_output_dtype(in->def, output, i, dtypes[i], err);
        if (code == IFD_OK) {
            code = ifd_infer_output(in->def, output, i, shape, err);
        }
    }
    if (code == IFD_OK && in->output_count == 3 && !ifd_quant_equal(&output[1], &output[0])) {
        code = ifd_fail(err, IFD_INVALID, "lstm: output 1 is not quantized as output 0");
    }
    return code;
}

static bool has_input_gate(const struct ifd_infer *in)
{
    return ifd_infer_input(in, WEIGHTS(INPUT_GATE)) != NULL;
}

static enum ifd_code lstm_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    const struct ifd_desc *recurrent = ifd_infer_input(in, RECURRENT(OUTPUT_GATE));
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 0, 3, err);
    }
    if (code == IFD_OK && (!recurrent || recurrent->shape.rank != 2)) {
        code = ifd_fail(err, IFD_INVALID, "lstm: input %u is no matrix", RECURRENT(OUTPUT_GATE));
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_S8, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_per_tensor(def, "input 0", in->input[0].desc, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_per_tensor(def, "output 0", &output[0], err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *x = &in->input[0].desc->shape;
    const struct sizes s = sizes_of(in->attrs, x, &recurrent->shape);
    for (uint32_t gate = has_input_gate(in) ? INPUT_GATE : FORGET_GATE;
         code == IFD_OK && gate < GATES; gate++) {
        code = check_gate(in, gate, &s, err);
    }
    const struct ifd_shape shape = {.rank = 3, .dim = {x->dim[0], x->dim[1], s.cells}};
    const struct ifd_shape state = {.rank = 2, .dim = {s.batch, s.cells}};
    if (code == IFD_OK) {
        code = check_states(in, output, &state, err);
    }
    if (code == IFD_OK) {
        code = infer_states(in, output, &state, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

/* Cell and gates in 16 bits. */
static enum ifd_code lstm_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                  size_t *ret_bytes, struct ifd_err *err)
{
    const struct ifd_shape *shape = &output[0].shape;
    const int64_t batch = shape->dim[0] > shape->dim[1] ? shape->dim[0] : shape->dim[1];
    (void)in;
    if (!ifd_size_mul((size_t)batch * (GATES + 1) * sizeof(int16_t), (size_t)shape->dim[2],
                      ret_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "lstm: %lld cells", (long long)shape->dim[2]);
    }
    return IFD_OK;
}

/* ---- reference ---- */

static int16_t saturate(int64_t x)
{
    return (int16_t)(x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x);
}

/* gate[n, c] += scaled sum of weights[c, :] (x[n, :] - zero) */
struct product {
    const int8_t *weights, *x;
    const int32_t *bias;   /* NULL: none */
    int64_t depth, stride; /* of x from one sample to the next */
    int32_t zero;
    struct ifd_multiplier factor;
};

static void add_product(const struct product *p, const struct sizes *s, int16_t *gate)
{
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t c = 0; c < s->cells; c++) {
            int32_t sum = p->bias ? p->bias[c] : 0;
            for (int64_t k = 0; k < p->depth; k++) {
                sum += p->weights[c * p->depth + k] * (p->x[n * p->stride + k] - p->zero);
            }
            int16_t *y = &gate[n * s->cells + c];
            *y = saturate((int64_t)*y + ifd_requantize_double(sum, p->factor));
        }
    }
}

static struct ifd_multiplier factor_of(const struct ifd_desc *weights, const struct ifd_desc *x)
{
    const float scale = ifd_ref_scale(weights) * ifd_ref_scale(x);
    return ifd_multiplier((double)(scale / (float)GATE_SCALE));
}

/* One gate of one step: x and state lie in the input and in the output before it. */
static void compute_gate(const struct ifd_ref_call *call, const struct sizes *s, uint32_t gate,
                         const int8_t *x, int64_t x_stride, const int8_t *state,
                         int64_t state_stride, int16_t *ret)
{
    const size_t count = (size_t)(s->batch * s->cells);
    struct product p = {.weights = call->input[WEIGHTS(gate)],
                        .x = x,
                        .bias = call->input[BIAS(gate)],
                        .depth = s->input,
                        .stride = x_stride,
                        .zero = ifd_ref_zero_point(call->in[0]),
                        .factor = factor_of(call->in[WEIGHTS(gate)], call->in[0])};
    memset(ret, 0, count * sizeof(*ret));
    add_product(&p, s, ret);
    if (state) { /* else it is all zero points */
        p.weights = call->input[RECURRENT(gate)];
        p.x = state;
        p.bias = NULL;
        p.depth = s->cells;
        p.stride = state_stride;
        p.zero = ifd_ref_zero_point(call->out[0]);
        p.factor = factor_of(call->in[RECURRENT(gate)], call->out[0]);
        add_product(&p, s, ret);
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = gate == CELL_GATE ? ifd_fixed16_tanh(ret[i], 3) : ifd_fixed16_logistic(ret[i], 3);
    }
}

static int16_t product_of(int16_t a, int16_t b, int shift)
{
    return (int16_t)ifd_fixed_shift_right((int32_t)a * b, shift);
}

static void update_cells(const struct ifd_ref_call *call, size_t count, const int16_t *gate,
                         int16_t *cell)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    const bool is_coupled = !call->in[WEIGHTS(INPUT_GATE)];
    const double steps = ldexp((double)attrs->cell_clip, -attrs->cell_exponent);
    const int16_t clip = attrs->cell_clip > 0 && steps < INT16_MAX ? (int16_t)steps : INT16_MAX;
    for (size_t i = 0; i < count; i++) {
        const int16_t forget = gate[FORGET_GATE * count + i];
        const int16_t in =
            is_coupled ? (int16_t)(INT16_MAX - forget) : gate[INPUT_GATE * count + i];
        const int16_t kept = product_of(forget, cell[i], 15);
        const int16_t added =
            product_of(in, gate[CELL_GATE * count + i], 30 + attrs->cell_exponent);
        const int16_t sum = saturate((int64_t)kept + added);
        cell[i] = attrs->cell_clip > 0 && sum > clip    ? clip
                  : attrs->cell_clip > 0 && sum < -clip ? (int16_t)-clip
                                                        : sum;
    }
}

static void store_state(const struct ifd_ref_call *call, const struct sizes *s, const int16_t *open,
                        const int16_t *cell, int64_t stride, int8_t *y)
{
    const struct ifd_lstm_attrs *attrs = call->attrs;
    const struct ifd_multiplier factor =
        ifd_multiplier(0x1p-15 / (double)ifd_ref_scale(call->out[0]) * 0x1p-15);
    const int32_t zero = ifd_ref_zero_point(call->out[0]);
    for (int64_t n = 0; n < s->batch; n++) {
        for (int64_t c = 0; c < s->cells; c++) {
            const int64_t i = n * s->cells + c;
            const int32_t product =
                (int32_t)open[i] * ifd_fixed16_tanh(cell[i], 15 + attrs->cell_exponent);
            y[n * stride + c] = (int8_t)ifd_ref_clamp(
                (int64_t)ifd_requantize_double(product, factor) + zero, INT8_MIN, INT8_MAX);
        }
    }
}

/* State and cell behind the last step. */
static void keep_states(const struct ifd_ref_call *call, const struct sizes *s, const int8_t *state,
                        int64_t stride, const int16_t *cell)
{
    for (int64_t n = 0; n < s->batch && call->output_count == 3; n++) {
        int8_t *kept = (int8_t *)call->output[1] + n * s->cells;
        if (state) {
            memcpy(kept, state + n * stride, (size_t)s->cells);
        } else { /* no step */
            memset(kept, ifd_ref_zero_point(call->out[1]), (size_t)s->cells);
        }
        memcpy((int16_t *)call->output[2] + n * s->cells, cell + n * s->cells,
               (size_t)s->cells * sizeof(*cell));
    }
}

static enum ifd_code lstm_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_lstm_attrs *attrs = call->attrs;
    const struct sizes s =
        sizes_of(attrs, &call->in[0]->shape, &call->in[RECURRENT(OUTPUT_GATE)]->shape);
    const size_t count = (size_t)(s.batch * s.cells);
    int16_t *gate = call->scratch;
    int16_t *cell = gate + GATES * count;
    const int64_t x_step = attrs->time_major ? s.batch * s.input : s.input;
    const int64_t y_step = attrs->time_major ? s.batch * s.cells : s.cells;
    const int64_t x_stride = attrs->time_major ? s.input : s.steps * s.input;
    const int64_t y_stride = attrs->time_major ? s.cells : s.steps * s.cells;
    const bool has_state = call->input_count > CELL && call->in[CELL];
    if (count == 0) {
        return IFD_OK;
    }
    if (has_state) {
        memcpy(cell, call->input[CELL], count * sizeof(*cell));
    } else {
        memset(cell, 0, count * sizeof(*cell));
    }
    const int8_t *state = has_state ? call->input[STATE] : NULL;
    int64_t state_stride = s.cells;
    for (int64_t t = 0; t < s.steps; t++) {
        const int8_t *x = (const int8_t *)call->input[0] + t * x_step;
        int8_t *y = (int8_t *)call->output[0] + t * y_step;
        for (uint32_t g = 0; g < GATES; g++) {
            if (call->in[WEIGHTS(g)]) {
                compute_gate(call, &s, g, x, x_stride, state, state_stride, gate + g * count);
            }
        }
        update_cells(call, count, gate, cell);
        store_state(call, &s, gate + OUTPUT_GATE * count, cell, y_stride, y);
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
};

const struct ifd_op_def ifd_op_lstm = {
    .name = "lstm",
    .min_inputs = 1,
    .max_inputs = INPUTS,
    .outputs = IFD_OP_VARIADIC,
    .attrs = lstm_attrs,
    .attr_count = sizeof(lstm_attrs) / sizeof(lstm_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_lstm_attrs),
    .dtypes = IFD_BIT(IFD_S8),
    .infer = lstm_infer,
    .scratch = lstm_scratch,
    .ref = lstm_ref,
};

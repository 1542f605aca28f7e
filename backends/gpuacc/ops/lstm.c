/* lstm: a whole sequence in one call; basic_lstm: a step. What engine/ops computes from scales when
 * it runs is a table of numbers here, the activations are tables of all their results. */
#include "backends/gpuacc/constants.h"
#include "backends/gpuacc/lower.h"
#include "backends/gpuacc/ops/rows.h"
#include "engine/tensor/fixed.h"
#include "engine/tensor/fixed16.h"
#include "inferd/op_attrs.h"

#include <math.h>
#include <string.h>

static bool has(const struct ifd_node_view *node, uint32_t input)
{
    return input < node->input_count && node->input[input].desc;
}

static bool lstm_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (i != IFD_LSTM_STATE && i != IFD_LSTM_CELL && has(node, i) &&
            !node->input[i].data.data) {
            ifd_fail(reason, IFD_UNSUPPORTED, "input %u, weights, is computed or empty", i);
            return false;
        }
    }
    return true;
}

/* ---- constants ---- */

struct matrix {
    size_t rows, columns;
};

/* Neighbouring work items, which compute neighbouring rows, read neighbouring bytes. */
static void pack_matrix(const void *params, const void *source, void *packed)
{
    const struct matrix *m = params;
    for (size_t r = 0; r < m->rows; r++) {
        for (size_t c = 0; c < m->columns; c++) {
            ((char *)packed)[c * m->rows + r] = ((const char *)source)[r * m->columns + c];
        }
    }
}

static void pack_zeros(const void *params, const void *source, void *packed)
{
    (void)source;
    memset(packed, 0, *(const size_t *)params);
}

/* source: the integer digits of the numbers. */
static void pack_tanh(const void *params, const void *source, void *packed)
{
    (void)params;
    for (int x = INT16_MIN; x <= INT16_MAX; x++) {
        ((int16_t *)packed)[x - INT16_MIN] = ifd_fixed16_tanh((int16_t)x, *(const int *)source);
    }
}

static void pack_logistic(const void *params, const void *source, void *packed)
{
    (void)params;
    for (int x = INT16_MIN; x <= INT16_MAX; x++) {
        ((int16_t *)packed)[x - INT16_MIN] = ifd_fixed16_logistic((int16_t)x, *(const int *)source);
    }
}

#define TABLE_BYTES (((size_t)UINT16_MAX + 1) * sizeof(int16_t))
#define GATE_DIGITS 3

static void add_table(struct ifd_gpu_call *call, ifd_gpu_pack_fn pack, int32_t digits)
{
    static const int all[] = {0, 1, 2, 3, 4, 5, 6}; /* equal tables of layers are shared */
    ifd_gpu_constant(call, pack, NULL, &all[digits], TABLE_BYTES);
}

/* What a call is described with. */
struct plan {
    struct ifd_gpu_lowering *lowering;
    const struct ifd_partition_node *node;
    size_t batch, steps, input, cells, width;
};

/* The matrix of an input; where it is absent any other, which is not read. */
static enum ifd_code add_matrix(const struct plan *plan, uint32_t input, struct ifd_gpu_call *call,
                                struct ifd_err *err)
{
    const struct ifd_node_view *node = &plan->node->view;
    const uint32_t from = has(node, input) ? input : IFD_LSTM_RECURRENT(IFD_LSTM_OUTPUT_GATE);
    const int64_t *dim = node->input[from].desc->shape.dim;
    struct matrix *matrix = ifd_low_params(&plan->lowering->base, 1, sizeof(*matrix));
    if (!matrix) {
        return ifd_arena_fail(plan->lowering->base.arena, sizeof(*matrix), err);
    }
    *matrix = (struct matrix){(size_t)dim[0], (size_t)dim[1]};
    ifd_gpu_constant(call, pack_matrix, matrix, node->input[from].data.data,
                     matrix->rows * matrix->columns);
    ifd_gpu_in_rows(call, matrix->columns);
    return IFD_OK;
}

/* The numbers of an input as they are; zeros where it is absent. */
static enum ifd_code add_vector(const struct plan *plan, uint32_t input, size_t bytes,
                                struct ifd_gpu_call *call, struct ifd_err *err)
{
    const struct ifd_node_view *node = &plan->node->view;
    const bool exists = has(node, input);
    size_t *size = ifd_low_params(&plan->lowering->base, 1, sizeof(*size));
    if (!size) {
        return ifd_arena_fail(plan->lowering->base.arena, sizeof(*size), err);
    }
    *size = bytes;
    ifd_gpu_constant(call, exists ? ifd_gpu_pack_copy : pack_zeros, size,
                     exists ? node->input[input].data.data : NULL, bytes);
    return IFD_OK;
}

/* ---- numbers ---- */

/* As kernels/lstm.cl reads them. */
struct factor {
    int32_t fraction, shift;
};
struct numbers {
    struct factor x[IFD_LSTM_GATES], state[IFD_LSTM_GATES], cell[IFD_LSTM_GATES],
        norm[IFD_LSTM_GATES];
    int32_t norm_least[IFD_LSTM_GATES];
    struct factor hidden, projection;
};

static struct factor factor_of(double real)
{
    struct factor factor = {0, 0};
    int shift = 0;
    if (real >= 0 && isfinite(real)) {
        ifd_fixed_from_any(real, &factor.fraction, &shift);
        factor.shift = shift;
    }
    return factor;
}

static float scale_of(const struct ifd_node_view *node, uint32_t input)
{
    return node->input[input].desc->quant.scale[0];
}

/* Factors are computed in the reference's precisions. */
static void fill_gate(const struct ifd_node_view *node, uint32_t gate, struct numbers *ret)
{
    const struct ifd_lstm_attrs *attrs = node->attrs;
    const float own = attrs->gate_scale[gate];
    ret->x[gate] =
        factor_of((double)(scale_of(node, IFD_LSTM_WEIGHTS(gate)) * scale_of(node, 0) / own));
    ret->state[gate] = factor_of(
        (double)(scale_of(node, IFD_LSTM_RECURRENT(gate)) * node->output[0].quant.scale[0] / own));
    if (gate != IFD_LSTM_CELL_GATE && has(node, IFD_LSTM_PEEPHOLE(gate))) {
        const double scale =
            ldexp((double)scale_of(node, IFD_LSTM_PEEPHOLE(gate)), attrs->cell_exponent);
        ret->cell[gate] = factor_of((double)(float)(scale / (double)own));
    }
    if (has(node, IFD_LSTM_NORM(gate))) {
        const float scale = scale_of(node, IFD_LSTM_NORM(gate)), least = 10000 * scale;
        ret->norm[gate] = factor_of((double)scale);
        ret->norm[gate].shift += 12;
        ret->norm_least[gate] =
            least < 1 ? 1 : (int32_t)least; /* ifd_low_has_odd_scale bounds it */
    }
}

static void pack_numbers(const void *params, const void *source, void *packed)
{
    (void)source;
    memcpy(packed, params, sizeof(struct numbers));
}

static float hidden_scale(const struct ifd_node_view *node)
{
    const struct ifd_lstm_attrs *attrs = node->attrs;
    return attrs->hidden_scale >= 0 ? attrs->hidden_scale : node->output[0].quant.scale[0];
}

static enum ifd_code add_numbers(const struct plan *plan, struct ifd_gpu_call *call,
                                 struct ifd_err *err)
{
    const struct ifd_node_view *node = &plan->node->view;
    struct numbers *numbers = ifd_low_params(&plan->lowering->base, 1, sizeof(*numbers));
    if (!numbers) {
        return ifd_arena_fail(plan->lowering->base.arena, sizeof(*numbers), err);
    }
    for (uint32_t gate = 0; gate < IFD_LSTM_GATES; gate++) {
        if (has(node, IFD_LSTM_WEIGHTS(gate))) {
            fill_gate(node, gate, numbers);
        }
    }
    numbers->hidden = factor_of(0x1p-15 / (double)hidden_scale(node) * 0x1p-15);
    if (has(node, IFD_LSTM_PROJECTION)) {
        numbers->projection =
            factor_of((double)(scale_of(node, IFD_LSTM_PROJECTION) * hidden_scale(node) /
                               node->output[0].quant.scale[0]));
    }
    ifd_gpu_constant(call, pack_numbers, numbers, NULL, sizeof(*numbers));
    return IFD_OK;
}

/* ---- the call ---- */

static void define(const struct plan *plan, size_t items, struct ifd_gpu_call *call)
{
    const struct ifd_node_view *node = &plan->node->view;
    unsigned peepholes = 0, norms = 0;
    for (uint32_t gate = 0; gate < IFD_LSTM_GATES; gate++) {
        peepholes |=
            gate != IFD_LSTM_CELL_GATE && has(node, IFD_LSTM_PEEPHOLE(gate)) ? 1u << gate : 0;
        norms |= has(node, IFD_LSTM_NORM(gate)) ? 1u << gate : 0;
    }
    ifd_gpu_define(call, "#define ITEMS %zu\n#define PEEPHOLES %u\n#define NORMS %u\n%s%s%s%s",
                   items, peepholes, norms,
                   has(node, IFD_LSTM_WEIGHTS(IFD_LSTM_INPUT_GATE)) ? "" : "#define COUPLED\n",
                   has(node, IFD_LSTM_CELL) ? "#define HAS_STATE\n" : "",
                   node->output_count == 3 ? "#define KEEPS_STATE\n" : "",
                   has(node, IFD_LSTM_PROJECTION) ? "#define PROJECTS\n" : "");
}

static enum ifd_code add_constants(const struct plan *plan, struct ifd_gpu_call *call,
                                   struct ifd_err *err)
{
    static const uint32_t peepholes[] = {IFD_LSTM_INPUT_GATE, IFD_LSTM_FORGET_GATE,
                                         IFD_LSTM_OUTPUT_GATE};
    const struct ifd_lstm_attrs *attrs = plan->node->view.attrs;
    const size_t shorts = plan->cells * sizeof(int16_t);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = IFD_LSTM_WEIGHTS(0); code == IFD_OK && i < IFD_LSTM_BIAS(0); i++) {
        code = add_matrix(plan, i, call, err);
    }
    for (uint32_t i = IFD_LSTM_BIAS(0); code == IFD_OK && i < IFD_LSTM_STATE; i++) {
        code = add_vector(plan, i, plan->cells * sizeof(int32_t), call, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < 3; i++) {
        code = add_vector(plan, IFD_LSTM_PEEPHOLE(peepholes[i]), shorts, call, err);
    }
    for (uint32_t gate = 0; code == IFD_OK && gate < IFD_LSTM_GATES; gate++) {
        code = add_vector(plan, IFD_LSTM_NORM(gate), shorts, call, err);
    }
    if (code == IFD_OK) {
        code = add_matrix(plan, IFD_LSTM_PROJECTION, call, err);
    }
    if (code == IFD_OK) {
        code = add_vector(plan, IFD_LSTM_PROJECTION_BIAS, plan->width * sizeof(int32_t), call, err);
    }
    if (code == IFD_OK) {
        code = add_numbers(plan, call, err);
    }
    add_table(call, pack_logistic, GATE_DIGITS);
    add_table(call, pack_tanh, GATE_DIGITS);
    add_table(call, pack_tanh, 15 + attrs->cell_exponent);
    return code;
}

/* Results; those that are absent are any other value, which is not written. */
static enum ifd_code add_results(const struct plan *plan, struct ifd_gpu_call *call,
                                 struct ifd_err *err)
{
    struct ifd_lowering *base = &plan->lowering->base;
    const uint32_t *output = plan->node->output_value;
    const size_t cells = plan->batch * plan->cells;
    const bool keeps_state = plan->node->view.output_count == 3;
    uint32_t work = 0, hidden = 0;
    enum ifd_code code =
        ifd_low_add_value(base, cells * (IFD_LSTM_GATES + 1) * sizeof(int16_t), &work, err);
    if (code == IFD_OK) {
        code = ifd_low_add_value(base, cells, &hidden, err);
    }
    if (code == IFD_OK) {
        ifd_gpu_out_elements(call, work, sizeof(int16_t));
        ifd_gpu_out_elements(call, hidden, 1);
        ifd_gpu_out(call, output[0]);
        ifd_gpu_out_elements(call, keeps_state ? output[1] : hidden, 1);
        ifd_gpu_out_elements(call, keeps_state ? output[2] : work, sizeof(int16_t));
    }
    return code;
}

static void add_numbers_of_call(const struct plan *plan, struct ifd_gpu_call *call)
{
    const struct ifd_node_view *node = &plan->node->view;
    const struct ifd_lstm_attrs *attrs = node->attrs;
    const struct ifd_quant *out = &node->output[0].quant;
    const size_t steps = plan->steps, batch = plan->batch;
    const double cell_clip = ldexp((double)attrs->cell_clip, -attrs->cell_exponent);
    const float projection_clip = attrs->proj_clip / out->scale[0];
    const size_t sizes[] = {steps,
                            plan->input,
                            plan->cells,
                            plan->width,
                            attrs->time_major ? batch * plan->input : plan->input,
                            attrs->time_major ? plan->input : steps * plan->input,
                            attrs->time_major ? batch * plan->width : plan->width,
                            attrs->time_major ? plan->width : steps * plan->width};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ifd_gpu_int(call, (int64_t)sizes[i]);
    }
    ifd_gpu_int(call, node->input[0].desc->quant.zero_point[0]);
    ifd_gpu_int(call, out->zero_point[0]);
    ifd_gpu_int(call, attrs->hidden_scale >= 0 ? attrs->hidden_zero : out->zero_point[0]);
    ifd_gpu_int(call, 30 + attrs->cell_exponent);
    /* clips around 0; none: beyond the type's numbers */
    ifd_gpu_int(call, attrs->cell_clip > 0
                          ? (int64_t)(cell_clip < INT16_MAX ? (int16_t)cell_clip : INT16_MAX)
                          : INT16_MAX + 1);
    ifd_gpu_int(call, projection_clip >= 1
                          ? (int64_t)(projection_clip < INT8_MAX ? projection_clip : INT8_MAX)
                          : INT8_MAX + 1);
}

static enum ifd_code lstm_lower(struct ifd_gpu_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_lstm_attrs *attrs = node->view.attrs;
    const int64_t *x = node->view.input[0].desc->shape.dim;
    const int64_t *recurrent =
        node->view.input[IFD_LSTM_RECURRENT(IFD_LSTM_OUTPUT_GATE)].desc->shape.dim;
    const struct plan plan = {.lowering = lowering,
                              .node = node,
                              .batch = (size_t)x[attrs->time_major ? 1 : 0],
                              .steps = (size_t)x[attrs->time_major ? 0 : 1],
                              .input = (size_t)x[2],
                              .cells = (size_t)recurrent[0],
                              .width = (size_t)recurrent[1]};
    const bool has_state = has(&node->view, IFD_LSTM_CELL);
    const size_t items = ifd_gpu_group_items(lowering->device, plan.cells);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_lstm);
    define(&plan, items, &call);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_in_elements(&call, node->input_value[has_state ? IFD_LSTM_STATE : 0], 1);
    ifd_gpu_in_elements(&call, node->input_value[has_state ? IFD_LSTM_CELL : 0], sizeof(int16_t));
    enum ifd_code code = add_constants(&plan, &call, err);
    if (code == IFD_OK) {
        code = add_results(&plan, &call, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    add_numbers_of_call(&plan, &call);
    ifd_gpu_items(&call, plan.batch * items, 1, 1);
    ifd_gpu_group(&call, items, 1, 1);
    const uint64_t macs = (uint64_t)plan.batch * plan.steps * plan.cells *
                          (IFD_LSTM_GATES * (plan.input + plan.width) +
                           (has(&node->view, IFD_LSTM_PROJECTION) ? plan.width : 0));
    return ifd_gpu_add_step(lowering, &call, "lstm", macs, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_lstm = {lstm_takes, lstm_lower};

/* ---- the basic kernel ---- */

enum { X, STATE, WEIGHTS, BIAS, CELL }; /* inputs of basic_lstm */

static bool basic_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (!node->input[WEIGHTS].data.data || !node->input[BIAS].data.data) {
        ifd_fail(reason, IFD_UNSUPPORTED, "weights or a bias that are computed");
        return false;
    }
    return true;
}

static enum ifd_code add_basic_constants(const struct plan *plan, struct ifd_gpu_call *call,
                                         struct ifd_err *err)
{
    const struct ifd_operand *weights = &plan->node->view.input[WEIGHTS];
    struct matrix *matrix = ifd_low_params(&plan->lowering->base, 1, sizeof(*matrix));
    if (!matrix) {
        return ifd_arena_fail(plan->lowering->base.arena, sizeof(*matrix), err);
    }
    *matrix =
        (struct matrix){(size_t)weights->desc->shape.dim[0], (size_t)weights->desc->shape.dim[1]};
    ifd_gpu_constant(call, pack_matrix, matrix, weights->data.data, matrix->rows * matrix->columns);
    ifd_gpu_in_rows(call, matrix->columns);
    const enum ifd_code code =
        add_vector(plan, BIAS, plan->node->view.input[BIAS].data.size, call, err);
    add_table(call, pack_logistic, GATE_DIGITS);
    add_table(call, pack_tanh, GATE_DIGITS);
    return code;
}

static enum ifd_code basic_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_operand *in = node->view.input;
    const struct plan plan = {.lowering = lowering,
                              .node = node,
                              .batch = (size_t)in[X].desc->shape.dim[0],
                              .input = (size_t)in[X].desc->shape.dim[1],
                              .cells = (size_t)in[STATE].desc->shape.dim[1]};
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_basic_lstm);
    int32_t fraction = 0;
    int shift = 0;
    ifd_fixed_from_any(0x1p12 * (double)in[BIAS].desc->quant.scale[0], &fraction, &shift);
    ifd_gpu_in(&call, node->input_value[X]);
    ifd_gpu_in(&call, node->input_value[STATE]);
    ifd_gpu_in(&call, node->input_value[CELL]);
    const enum ifd_code code = add_basic_constants(&plan, &call, err);
    if (code != IFD_OK) {
        return code;
    }
    for (uint32_t i = 0; i < node->view.output_count; i++) {
        ifd_gpu_out(&call, node->output_value[i]);
    }
    ifd_gpu_int(&call, (int64_t)plan.batch);
    ifd_gpu_int(&call, (int64_t)plan.input);
    ifd_gpu_int(&call, (int64_t)plan.cells);
    ifd_gpu_int(&call, in[WEIGHTS].desc->quant.zero_point[0]);
    ifd_gpu_int(&call, fraction);
    ifd_gpu_int(&call, shift);
    ifd_gpu_items(&call, plan.cells, plan.batch, 1);
    return ifd_gpu_add_step(
        lowering, &call, "basic_lstm",
        (uint64_t)plan.batch * plan.cells * IFD_LSTM_GATES * (plan.input + plan.cells), err);
}

const struct ifd_gpu_driver ifd_gpu_driver_basic_lstm = {basic_takes, basic_lower};

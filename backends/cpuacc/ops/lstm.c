/* lstm of 8 bits, bit for bit as the reference kernel: one product of matrices for the inputs of
 * all steps, one a step for the state. Layers with peepholes, normalization or a projection are
 * left to others. */
#include "backends/cpuacc/ops/sums.h"

#include "engine/tensor/lstm8.h"
#include "inferd/op_attrs.h"

#include <float.h>
#include <string.h>

#define REST IFD_LSTM_PEEPHOLE(0u) /* inputs from here on are the reference's */

/* Gates in the order of their functions: the logistic ones, the last of which may be absent, then
 * the cell's, which is the last in any case. */
enum { FORGET, OUT, IN, GATES = 4 };
static const uint32_t node_gate[] = {[FORGET] = IFD_LSTM_FORGET_GATE,
                                     [OUT] = IFD_LSTM_OUTPUT_GATE,
                                     [IN] = IFD_LSTM_INPUT_GATE,
                                     IFD_LSTM_CELL_GATE};

struct scaling {
    int32_t multiplier;
    int shift;
};

struct lstm_params {
    size_t batch, steps, input, cells;
    size_t x_step, x_sample, y_step, y_sample; /* from one to the next, in rows */
    uint32_t gates;                            /* 3 or 4 */
    int exponent;                              /* of the cells */
    bool is_clipped;
    int16_t clip;
    int32_t hidden_zero; /* stored */
    struct scaling x[GATES], state[GATES], hidden;
    struct ifd_acc_sums x_sums, state_sums;
};

/* ---- running ---- */

/* Work memory: sums of all inputs, of one step's state; of one sample the gates and tanh of the
 * cells; all cells. */
struct work {
    int32_t *x, *state;
    int16_t *gate, *shown, *cell;
};

/* Takes count items of bytes each behind *at, aligned. *at becomes SIZE_MAX where it overflows. */
static void *take(uint8_t *memory, size_t *at, size_t count, size_t bytes)
{
    void *taken = memory ? memory + *at : NULL;
    size_t size = 0;
    if (!ifd_size_mul(count, bytes, &size) || !ifd_size_align(size, IFD_TENSOR_ALIGN, &size) ||
        !ifd_size_add(*at, size, at)) {
        *at = SIZE_MAX;
    }
    return taken;
}

/* Returns how many bytes that are, SIZE_MAX for too many. memory NULL: there is none yet. */
static size_t lay_out(const struct lstm_params *p, uint8_t *memory, struct work *ret)
{
    const size_t results = p->batch * p->steps * p->cells; /* fits: a tensor has so many */
    size_t at = 0;
    ret->x = take(memory, &at, results, p->gates * sizeof(int32_t));
    ret->state = take(memory, &at, p->batch * p->cells, p->gates * sizeof(int32_t));
    ret->gate = take(memory, &at, p->cells, p->gates * sizeof(int16_t));
    ret->shown = take(memory, &at, p->cells, sizeof(int16_t));
    ret->cell = take(memory, &at, p->batch * p->cells, sizeof(int16_t));
    return at;
}

static void add_sums(const struct lstm_params *p, const struct scaling *scaling,
                     const int32_t *sums, int16_t *gate)
{
    for (uint32_t g = 0; g < p->gates; g++) {
        const struct scaling s = scaling[g];
        for (size_t c = 0; c < p->cells; c++, sums++, gate++) {
            *gate = ifd_lstm8_add(*gate, *sums, s.multiplier, s.shift);
        }
    }
}

/* One step of one sample. state: sums, NULL where it is all zeros. */
static void run_sample(const struct ifd_acc_step *step, const struct work *work, const int32_t *x,
                       const int32_t *state, int16_t *cell, ifd_q8 *y)
{
    const struct lstm_params *p = step->params;
    const struct ifd_kern_quant *quant = &step->kernels->quant;
    const size_t cells = p->cells, logistic = (p->gates - 1) * cells;
    memset(work->gate, 0, p->gates * cells * sizeof(*work->gate));
    add_sums(p, p->x, x, work->gate);
    if (state) {
        add_sums(p, p->state, state, work->gate);
    }
    const int16_t *forget = work->gate + FORGET * cells, *out = work->gate + OUT * cells;
    const int16_t *in = p->gates == GATES ? work->gate + IN * cells : NULL;
    int16_t *update = work->gate + logistic;
    quant->function_16(logistic, work->gate, 3, 0, work->gate);
    quant->function_16(cells, update, 3, 1, update);
    for (size_t c = 0; c < cells; c++) {
        const int16_t opened = in ? in[c] : (int16_t)(INT16_MAX - forget[c]);
        cell[c] = ifd_lstm8_cell(cell[c], forget[c], opened, update[c], p->exponent, p->is_clipped,
                                 p->clip);
    }
    quant->function_16(cells, cell, 15 + p->exponent, 1, work->shown);
    for (size_t c = 0; c < cells; c++) {
        const int8_t hidden = ifd_lstm8_hidden(out[c], work->shown[c], p->hidden.multiplier,
                                               p->hidden.shift, p->hidden_zero);
        y[c] = (ifd_q8)((uint8_t)hidden ^ IFD_Q8_FLIP_S8);
    }
}

static void keep_states(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                        const ifd_q8 *state, size_t stride, const int16_t *cell)
{
    const struct lstm_params *p = step->params;
    ifd_q8 *kept = ifd_acc_more_out(step, frame, 0);
    int16_t *kept_cell = ifd_acc_more_out(step, frame, 1);
    for (size_t n = 0; kept && n < p->batch; n++) {
        memcpy(kept + n * p->cells, state + n * stride, p->cells);
        memcpy(kept_cell + n * p->cells, cell + n * p->cells, p->cells * sizeof(*cell));
    }
}

static void run_lstm(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct lstm_params *p = step->params;
    const size_t row = p->gates * p->cells;
    const ifd_q8 *state = ifd_acc_in(step, frame, 1);
    const int16_t *before = ifd_acc_in(step, frame, 2);
    ifd_q8 *out = ifd_acc_out(step, frame);
    size_t stride = p->cells;
    struct work work;
    (void)lay_out(p, ifd_acc_work(step, frame), &work);
    memset(work.cell, 0, p->batch * p->cells * sizeof(*work.cell));
    if (before) {
        memcpy(work.cell, before, p->batch * p->cells * sizeof(*work.cell));
    }
    ifd_acc_sums_run(&p->x_sums, step, frame, ifd_acc_in(step, frame, 0), p->batch * p->steps,
                     p->input, work.x);
    for (size_t t = 0; t < p->steps; t++) {
        ifd_q8 *y = out + t * p->y_step * p->cells;
        if (state) {
            ifd_acc_sums_run(&p->state_sums, step, frame, state, p->batch, stride, work.state);
        }
        for (size_t n = 0; n < p->batch; n++) {
            run_sample(step, &work, work.x + (t * p->x_step + n * p->x_sample) * row,
                       state ? work.state + n * row : NULL, work.cell + n * p->cells,
                       y + n * p->y_sample * p->cells);
        }
        state = y;
        stride = p->y_sample * p->cells;
    }
    keep_states(step, frame, state, stride, work.cell);
}

/* ---- compiling ---- */

static bool has(const struct ifd_node_view *node, uint32_t i)
{
    return i < node->input_count && node->input[i].desc;
}

static const void *data_of(const struct ifd_node_view *node, uint32_t i)
{
    return node->input[i].data.data;
}

static float scale_of(const struct ifd_desc *desc)
{
    return desc->quant.scale[0];
}

static struct scaling scaling_of(double factor)
{
    struct scaling s = {0};
    if (factor >= 0 && factor <= DBL_MAX) {
        ifd_fixed_from_any(factor, &s.multiplier, &s.shift);
    }
    return s;
}

static void init_gate(const struct ifd_node_view *node, uint32_t g, struct lstm_params *p)
{
    const struct ifd_lstm_attrs *attrs = node->attrs;
    const uint32_t from = node_gate[p->gates == GATES || g < IN ? g : IN + 1];
    const float scale = attrs->gate_scale[from];
    p->x_sums.weights[g] = data_of(node, IFD_LSTM_WEIGHTS(from));
    p->x_sums.bias[g] = data_of(node, IFD_LSTM_BIAS(from));
    p->state_sums.weights[g] = data_of(node, IFD_LSTM_RECURRENT(from));
    p->x[g] = scaling_of(ifd_lstm8_factor(scale_of(node->input[IFD_LSTM_WEIGHTS(from)].desc),
                                          scale_of(node->input[0].desc), scale));
    p->state[g] = scaling_of(ifd_lstm8_factor(scale_of(node->input[IFD_LSTM_RECURRENT(from)].desc),
                                              scale_of(&node->output[0]), scale));
}

static void init(const struct ifd_node_view *node, struct lstm_params *p)
{
    const struct ifd_lstm_attrs *attrs = node->attrs;
    const struct ifd_desc *x = node->input[0].desc, *out = &node->output[0];
    const uint32_t time = attrs->time_major ? 0 : 1;
    *p = (struct lstm_params){
        .batch = (size_t)x->shape.dim[1 - time],
        .steps = (size_t)x->shape.dim[time],
        .input = (size_t)x->shape.dim[2],
        .cells = (size_t)out->shape.dim[2],
        .gates = has(node, IFD_LSTM_WEIGHTS(0)) ? GATES : GATES - 1,
        .exponent = attrs->cell_exponent,
        .is_clipped = attrs->cell_clip > 0,
        .clip = ifd_lstm8_clip(attrs->cell_clip, attrs->cell_exponent),
        .hidden_zero = attrs->hidden_scale >= 0 ? attrs->hidden_zero : out->quant.zero_point[0],
        .hidden = scaling_of(ifd_lstm8_hidden_factor(attrs->hidden_scale >= 0 ? attrs->hidden_scale
                                                                              : scale_of(out)))};
    p->x_step = p->y_step = attrs->time_major ? p->batch : 1;
    p->x_sample = p->y_sample = attrs->time_major ? 1 : p->steps;
    p->x_sums = (struct ifd_acc_sums){
        .rows = p->cells, .k = p->input, .parts = p->gates, .zero = ifd_acc_zero(x)};
    p->state_sums = (struct ifd_acc_sums){
        .rows = p->cells, .k = p->cells, .parts = p->gates, .zero = ifd_acc_zero(out)};
    for (uint32_t g = 0; g < p->gates; g++) {
        init_gate(node, g, p);
    }
}

static bool lstm_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    bool takes = true;
    for (uint32_t i = 1; i < node->input_count; i++) {
        const bool is_state = i == IFD_LSTM_STATE || i == IFD_LSTM_CELL;
        takes = takes && (!has(node, i) || (i < REST && (is_state || data_of(node, i))));
    }
    if (!takes) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "weights that are not constant, peepholes, normalization or a projection");
        return false;
    }
    struct lstm_params p;
    init(node, &p);
    if (p.batch * p.steps * p.input * p.cells == 0 || !ifd_acc_sums_fit(&p.x_sums) ||
        !ifd_acc_sums_fit(&p.state_sums)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "sums of products may exceed 29 bits");
        return false;
    }
    return true;
}

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    const struct lstm_params *p = params;
    ifd_acc_sums_pack(&p->x_sums, context, workspace, packed);
    ifd_acc_sums_pack(&p->state_sums, context, workspace, packed);
}

static enum ifd_code lstm_lower(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_node_view *view = &node->view;
    const uint32_t operands[] = {
        node->input_value[0],
        has(view, IFD_LSTM_STATE) ? node->input_value[IFD_LSTM_STATE] : IFD_NO_VALUE,
        has(view, IFD_LSTM_CELL) ? node->input_value[IFD_LSTM_CELL] : IFD_NO_VALUE};
    struct lstm_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code =
        ifd_acc_add_step(lowering, run_lstm, p, operands, 3, node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    init(view, p);
    for (uint32_t i = 1; i < view->output_count; i++) {
        ifd_acc_add_output(lowering, i - 1, node->output_value[i]);
    }
    const struct ifd_kernels *kernels = lowering->kernels;
    const size_t x = ifd_acc_sums_workspace(&p->x_sums);
    const size_t state = ifd_acc_sums_workspace(&p->state_sums);
    p->state_sums.packed = ifd_acc_sums_bytes(&p->x_sums, kernels);
    ifd_acc_name_step(lowering, "gemm_q8",
                      (uint64_t)p->batch * p->steps * p->gates * p->cells * (p->input + p->cells),
                      "lstm");
    struct work unused;
    code = ifd_acc_add_work_of_one(lowering, lay_out(p, NULL, &unused), err);
    if (code == IFD_OK) {
        code = ifd_acc_add_pack(lowering, p->x_sums.weights[0],
                                p->state_sums.packed + ifd_acc_sums_bytes(&p->state_sums, kernels),
                                x > state ? x : state, pack, p, err);
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_lstm = {.takes = lstm_takes, .lower = lstm_lower};

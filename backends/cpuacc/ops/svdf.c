/* svdf of 8 bits, bit for bit as the reference kernel: the features are one product of matrices. */
#include "backends/cpuacc/ops/sums.h"

#include "engine/tensor/fixed.h"
#include "inferd/op_attrs.h"

#include <float.h>
#include <string.h>

enum { X, FEATURE, TIME, BIAS, STATE };

struct svdf_params {
    size_t batch, input, filters, memory, units;
    int32_t feature_multiplier, multiplier, zero; /* zero: native */
    int feature_shift, shift;
    const int16_t *time;
    const int32_t *bias;
    struct ifd_acc_sums sums;
};

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Features of a sample become the latest of each filter. */
static void remember(const struct svdf_params *p, const int32_t *sum, const int16_t *before,
                     int16_t *state)
{
    for (size_t f = 0; f < p->filters; f++, before += p->memory, state += p->memory) {
        memmove(state, before + 1, (p->memory - 1) * sizeof(*state));
        state[p->memory - 1] =
            (int16_t)clamp(ifd_fixed_scale_double(sum[f], p->feature_multiplier, p->feature_shift),
                           INT16_MIN, INT16_MAX);
    }
}

/* Sums wrap around. */
static void look_back(const struct svdf_params *p, const int16_t *state, ifd_q8 *y)
{
    const size_t each = p->filters / p->units * p->memory;
    const int16_t *weights = p->time;
    for (size_t u = 0; u < p->units; u++, weights += each, state += each) {
        uint32_t sum = p->bias ? (uint32_t)p->bias[u] : 0;
        for (size_t i = 0; i < each; i++) {
            sum += (uint32_t)(weights[i] * state[i]);
        }
        y[u] = (ifd_q8)clamp(
            (int64_t)ifd_fixed_scale_double((int32_t)sum, p->multiplier, p->shift) + p->zero,
            IFD_Q8_MIN, IFD_Q8_MAX);
    }
}

static void run_svdf(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct svdf_params *p = step->params;
    const int16_t *before = ifd_acc_in(step, frame, 1);
    int16_t *state = ifd_acc_more_out(step, frame, 0);
    ifd_q8 *y = ifd_acc_out(step, frame);
    int32_t *sums = ifd_acc_work(step, frame);
    const size_t each = p->filters * p->memory;
    ifd_acc_sums_run(&p->sums, step, frame, ifd_acc_in(step, frame, 0), p->batch, p->input, sums);
    for (size_t n = 0; n < p->batch; n++) {
        remember(p, sums + n * p->filters, before + n * each, state + n * each);
        look_back(p, state + n * each, y + n * p->units);
    }
}

static float scale_of(const struct ifd_desc *desc)
{
    return desc->quant.scale[0];
}

static void set_factor(float a, float b, float to, int32_t *ret_multiplier, int *ret_shift)
{
    const float scale = a * b;
    const double factor = (double)(scale / to);
    if (factor >= 0 && factor <= DBL_MAX) {
        ifd_fixed_from_any(factor, ret_multiplier, ret_shift);
    }
}

static void init(const struct ifd_node_view *node, struct svdf_params *p)
{
    const struct ifd_svdf_attrs *attrs = node->attrs;
    const struct ifd_desc *x = node->input[X].desc, *time = node->input[TIME].desc;
    const struct ifd_desc *state = node->input[STATE].desc;
    *p = (struct svdf_params){.batch = (size_t)x->shape.dim[0],
                              .input = (size_t)x->shape.dim[1],
                              .filters = (size_t)time->shape.dim[0],
                              .memory = (size_t)time->shape.dim[1],
                              .units = (size_t)(time->shape.dim[0] / attrs->rank),
                              .zero = ifd_acc_zero(&node->output[0]),
                              .time = (const void *)node->input[TIME].data.data,
                              .bias = (const void *)node->input[BIAS].data.data};
    set_factor(scale_of(x), scale_of(node->input[FEATURE].desc), scale_of(state),
               &p->feature_multiplier, &p->feature_shift);
    set_factor(scale_of(state), scale_of(time), scale_of(&node->output[0]), &p->multiplier,
               &p->shift);
    p->sums = (struct ifd_acc_sums){.rows = p->filters,
                                    .k = p->input,
                                    .parts = 1,
                                    .weights = {(const void *)node->input[FEATURE].data.data},
                                    .zero = ifd_acc_zero(x)};
}

static bool svdf_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    bool takes = node->input[FEATURE].data.data && node->input[TIME].data.data &&
                 (!node->input[BIAS].desc || node->input[BIAS].data.data);
    if (takes) {
        struct svdf_params p;
        init(node, &p);
        takes = p.batch * p.input * p.filters > 0 && ifd_acc_sums_fit(&p.sums);
    }
    if (!takes) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "weights that are not constant, or sums of products that may exceed 29 bits");
    }
    return takes;
}

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    ifd_acc_sums_pack(&((const struct svdf_params *)params)->sums, context, workspace, packed);
}

static enum ifd_code svdf_lower(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const uint32_t operands[] = {node->input_value[X], node->input_value[STATE]};
    struct svdf_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code =
        ifd_acc_add_step(lowering, run_svdf, p, operands, 2, node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    init(&node->view, p);
    ifd_acc_add_output(lowering, 0, node->output_value[1]);
    ifd_acc_name_step(lowering, "gemm_q8", (uint64_t)p->batch * p->filters * p->input, "svdf");
    code = ifd_acc_add_work_of_one(lowering, p->batch * p->filters * sizeof(int32_t), err);
    if (code == IFD_OK) {
        code = ifd_acc_add_pack(lowering, p->sums.weights[0],
                                ifd_acc_sums_bytes(&p->sums, lowering->kernels),
                                ifd_acc_sums_workspace(&p->sums), pack, p, err);
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_svdf = {.takes = svdf_takes, .lower = svdf_lower};

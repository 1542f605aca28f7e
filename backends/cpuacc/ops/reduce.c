/* softmax along the last dimension; reduce_mean and reduce_sum over neighbouring dimensions. */
#include "backends/cpuacc/ops/normalize.h"
#include "backends/cpuacc/ops/reduce.h"

#include "engine/tensor/fixed.h"
#include "engine/tensor/softmax8.h"

#include <math.h>
#include <string.h>

/* ---- softmax ---- */

struct softmax_params {
    size_t rows, n;
    float beta;
    struct ifd_softmax8 table; /* 8 bits */
};

static void run_softmax_f32(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct softmax_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->rows, 1);
    const float *in = ifd_acc_in(step, frame, 0);
    float *out = ifd_acc_out(step, frame);
    if (range.begin < range.end) {
        step->kernels->reduce.softmax_f32(range.end - range.begin, p->n, in + range.begin * p->n,
                                          p->n, p->beta, out + range.begin * p->n, p->n);
    }
}

/* Results depend only on the distance to the row's maximum: long rows use a table of them. */
static void softmax_row(const struct ifd_acc_step *step, const struct softmax_params *p,
                        const ifd_q8 *in, ifd_q8 *out)
{
    int max = in[0];
    for (size_t i = 1; i < p->n; i++) {
        max = max < in[i] ? in[i] : max;
    }
    int64_t sum = 0;
    for (size_t i = 0; i < p->n; i++) {
        sum += p->table.rounded[max - in[i]];
    }
    const struct ifd_softmax8_row row = ifd_softmax8_divide(sum);
    const int32_t *exponential = p->table.exponential;
    if (p->n < 256) {
        for (size_t i = 0; i < p->n; i++) {
            out[i] = (ifd_q8)(ifd_softmax8_steps(&row, exponential[max - in[i]]) + IFD_Q8_MIN);
        }
        return;
    }
    uint8_t result[256] = {0};
    for (int distance = 0; max - distance >= IFD_Q8_MIN; distance++) {
        const int32_t steps = ifd_softmax8_steps(&row, exponential[distance]);
        result[(uint8_t)(max - distance)] = (uint8_t)(steps + IFD_Q8_MIN);
    }
    step->kernels->quant.lut_8(p->n, (const uint8_t *)in, result, (uint8_t *)out);
}

static void run_softmax_q8(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct softmax_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->rows, 1);
    const ifd_q8 *in = ifd_acc_in(step, frame, 0);
    ifd_q8 *out = ifd_acc_out(step, frame);
    for (size_t r = range.begin; r < range.end; r++) {
        softmax_row(step, p, in + r * p->n, out + r * p->n);
    }
}

static bool softmax_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_desc *in = node->input[0].desc;
    const bool fits =
        (in->dtype == IFD_F32 || ifd_acc_is_q8(in->dtype)) && in->shape.dim[in->shape.rank - 1] > 0;
    if (!fits) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(in->dtype));
    }
    return fits;
}

static enum ifd_code softmax_lower(struct ifd_acc_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_softmax_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc;
    const bool is_q8 = ifd_acc_is_q8(in->dtype);
    const uint32_t out = node->output_value[0];
    struct softmax_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    (void)ifd_low_in_place(&lowering->base, node->input_value[0], out);
    const enum ifd_code code = ifd_acc_add_step(lowering, is_q8 ? run_softmax_q8 : run_softmax_f32,
                                                p, node->input_value, 1, out, &step, err);
    if (code != IFD_OK) {
        return code;
    }
    const size_t count = lowering->base.value[out].bytes / ifd_dtype_bytes(in->dtype);
    p->n = (size_t)in->shape.dim[in->shape.rank - 1];
    p->rows = count / p->n;
    p->beta = attrs->beta;
    if (is_q8) {
        ifd_softmax8_init(&p->table, (double)attrs->beta * (double)in->quant.scale[0]);
    }
    step->max_threads = (uint32_t)(count / 1024) + 1;
    ifd_acc_name_step(lowering, is_q8 ? "" : "softmax_f32", 0, "softmax");
    return IFD_OK;
}

const struct ifd_acc_driver ifd_acc_softmax = {.takes = softmax_takes, .lower = softmax_lower};

/* ---- reduce_mean, reduce_sum: outer × reduced × inner ---- */

struct reduce_params {
    size_t outer, reduced, inner;
    size_t parts;                           /* f32: of the reduced rows, summed by themselves */
    float factor;                           /* f32 */
    int32_t zero_sum, out_zero, multiplier; /* q8: fixed point of scale and count, rounded twice */
    int shift;
    float out_scale; /* of a mean between dequantize and quantize; factor is that of its sums */
    struct ifd_q8_beyond beyond; /* for it */
    bool rounds_even;
};

bool ifd_acc_split_reduced(const struct ifd_node_view *node, struct ifd_acc_split *ret)
{
    const struct ifd_reduce_attrs *attrs = node->attrs;
    const struct ifd_shape *shape = &node->input[0].desc->shape;
    bool is_reduced[IFD_MAX_RANK] = {false};
    for (uint32_t i = 0; shape->rank > 0 && i < attrs->axes.count; i++) {
        const int64_t axis = attrs->axes.value[i];
        is_reduced[axis < 0 ? axis + (int64_t)shape->rank : axis] = true;
    }
    *ret = (struct ifd_acc_split){.outer = 1, .reduced = 1, .inner = 1};
    enum { OUTER, REDUCED, INNER } part = OUTER;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const size_t dim = (size_t)shape->dim[d];
        if (dim == 1) {
            continue;
        }
        if (is_reduced[d] && part == INNER) {
            return false;
        }
        part = is_reduced[d] ? REDUCED : part == OUTER ? OUTER : INNER;
        *(part == OUTER ? &ret->outer : part == REDUCED ? &ret->reduced : &ret->inner) *= dim;
    }
    return ret->outer * ret->reduced * ret->inner > 0;
}

#define REDUCED_MAX 8000000 /* sums of 8 bits stay below 2^31 */

static uint32_t threads_of(const struct reduce_params *p)
{
    return (uint32_t)(p->outer * p->reduced * p->inner / IFD_ACC_REDUCE_VALUES) + 1;
}

static bool split_shape(const struct ifd_node_view *node, struct reduce_params *ret)
{
    struct ifd_acc_split split;
    const bool is_split = ifd_acc_split_reduced(node, &split);
    *ret = (struct reduce_params){
        .outer = split.outer, .reduced = split.reduced, .inner = split.inner};
    return is_split;
}

/* Columns that a thread sums at least. */
#define COLUMNS_UNIT 16

static void run_columns_f32(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct reduce_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->inner, COLUMNS_UNIT);
    const float *in = ifd_acc_in(step, frame, 0);
    float *out = ifd_acc_out(step, frame);
    if (range.begin < range.end) {
        step->kernels->reduce.column_sum_f32(p->reduced, range.end - range.begin, in + range.begin,
                                             p->inner, p->factor, out + range.begin);
    }
}

/* Sums of parts of the rows, one after the other. */
static void run_parts_f32(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct reduce_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->parts, 1);
    const float *in = ifd_acc_in(step, frame, 0);
    float *out = ifd_acc_out(step, frame);
    for (size_t part = range.begin; part < range.end; part++) {
        const size_t begin = p->reduced * part / p->parts, end = p->reduced * (part + 1) / p->parts;
        step->kernels->reduce.column_sum_f32(end - begin, p->inner, in + begin * p->inner, p->inner,
                                             1.0f, out + part * p->inner);
    }
}

static void run_reduce_f32(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct reduce_params *p = step->params;
    const struct ifd_kern_reduce *reduce = &step->kernels->reduce;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->outer, 1);
    const float *in = ifd_acc_in(step, frame, 0);
    float *out = ifd_acc_out(step, frame);
    for (size_t o = range.begin; o < range.end; o++) {
        if (p->inner == 1) {
            out[o] = reduce->sum_f32(p->reduced, in + o * p->reduced) * p->factor;
        } else {
            reduce->column_sum_f32(p->reduced, p->inner, in + o * p->reduced * p->inner, p->inner,
                                   p->factor, out + o * p->inner);
        }
    }
}

static void run_reduce_q8(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct reduce_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->outer, 1);
    const ifd_q8 *in = ifd_acc_in(step, frame, 0);
    ifd_q8 *out = ifd_acc_out(step, frame);
    int32_t *sum = ifd_acc_work(step, frame);
    for (size_t o = range.begin; o < range.end; o++) {
        step->kernels->reduce.column_sum_q8(p->reduced, p->inner, in + o * p->reduced * p->inner,
                                            p->inner, sum);
        for (size_t c = 0; c < p->inner; c++) {
            const int32_t value = ifd_fixed_add(
                ifd_fixed_scale_double(sum[c] - p->zero_sum, p->multiplier, p->shift), p->out_zero);
            out[o * p->inner + c] = (ifd_q8)(value < IFD_Q8_MIN   ? IFD_Q8_MIN
                                             : value > IFD_Q8_MAX ? IFD_Q8_MAX
                                                                  : value);
        }
    }
}

/* As in LiteRT's reference kernel, the division by the count goes into the multiplier, as far as 31
 * bits of it stay. */
static void init_mean_q8(const struct ifd_node_view *node, struct reduce_params *p)
{
    const struct ifd_desc *in = node->input[0].desc, *out = &node->output[0];
    ifd_fixed_from_any((double)in->quant.scale[0] / (double)out->quant.scale[0], &p->multiplier,
                       &p->shift);
    if (node->op == IFD_OP_REDUCE_MEAN) {
        int bits = 0; /* of the count, rounded down */
        while (bits < 32 && p->reduced >> (bits + 1) != 0) {
            bits++;
        }
        bits = bits < 31 + p->shift ? bits : 31 + p->shift;
        p->multiplier = (int32_t)(((int64_t)p->multiplier << bits) / (int64_t)p->reduced);
        p->shift -= bits;
    }
    p->zero_sum = ifd_acc_zero(in) * (int32_t)p->reduced;
    p->out_zero = ifd_acc_zero(out);
}

/* Sums of stored numbers are exact; the rest is as between dequantize and quantize. */
static void run_stored_mean(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct reduce_params *p = step->params;
    const struct ifd_kern_quant *quant = &step->kernels->quant;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->outer, 1);
    const ifd_q8 *in = ifd_acc_in(step, frame, 0);
    ifd_q8 *out = ifd_acc_out(step, frame);
    int32_t *sum = ifd_acc_work(step, frame);
    float *mean = (float *)(void *)(sum + p->inner);
    for (size_t o = range.begin; o < range.end; o++) {
        step->kernels->reduce.column_sum_q8(p->reduced, p->inner, in + o * p->reduced * p->inner,
                                            p->inner, sum);
        for (size_t c = 0; c < p->inner; c++) {
            mean[c] = (float)(sum[c] - p->zero_sum) * p->factor;
        }
        (p->rounds_even ? quant->quantize_even : quant->quantize)(
            p->inner, mean, p->out_scale, p->out_zero, p->beyond, out + o * p->inner);
    }
}

static bool reduce_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    struct reduce_params split;
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if ((dtype != IFD_F32 && !ifd_acc_is_q8(dtype)) || node->output[0].dtype != dtype ||
        !split_shape(node, &split) || split.reduced > REDUCED_MAX) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or axes that are not adjacent",
                 ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

enum ifd_code ifd_acc_lower_stored_mean(struct ifd_acc_lowering *lowering,
                                        const struct ifd_partition_node *dequantize, bool *ret_done,
                                        struct ifd_err *err)
{
    uint32_t index[2] = {0};
    const struct ifd_partition_node *mean =
        ifd_low_sole_reader(&lowering->base, dequantize->output_value[0], &index[0]);
    const struct ifd_partition_node *quantize =
        mean && mean->view.op == IFD_OP_REDUCE_MEAN
            ? ifd_low_sole_reader(&lowering->base, mean->output_value[0], &index[1])
            : NULL;
    struct reduce_params split;
    *ret_done = quantize && quantize->view.op == IFD_OP_QUANTIZE &&
                ifd_acc_is_q8(quantize->view.output[0].dtype) &&
                quantize->view.output[0].quant.count == 1 && split_shape(&mean->view, &split) &&
                split.reduced <= REDUCED_MAX;
    if (!*ret_done) {
        return IFD_OK;
    }
    const struct ifd_desc *in = dequantize->view.input[0].desc, *out = &quantize->view.output[0];
    struct reduce_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    ifd_low_fuse_node(&lowering->base, index[0]);
    ifd_low_fuse_node(&lowering->base, index[1]);
    enum ifd_code code = ifd_acc_add_step(lowering, run_stored_mean, p, dequantize->input_value, 1,
                                          quantize->output_value[0], &step, err);
    if (code == IFD_OK) {
        *p = split;
        p->factor = in->quant.scale[0] / (float)p->reduced;
        p->zero_sum = ifd_acc_zero(in) * (int32_t)p->reduced;
        p->out_scale = out->quant.scale[0];
        p->out_zero = ifd_acc_zero(out);
        p->beyond = ifd_acc_beyond(out);
        p->rounds_even = ((const struct ifd_quantize_attrs *)quantize->view.attrs)->rounds_even;
        step->max_threads = threads_of(p);
        ifd_acc_name_step(lowering, "column_sum_q8", 0, "%s", ifd_op_def(mean->view.op)->name);
        code = ifd_acc_add_work(lowering, p->inner * (sizeof(int32_t) + sizeof(float)), err);
    }
    return code;
}

/* Rows of an image per thread from which threads share it by lines; smaller images are shared by
 * channels, as in depthwise convolutions. */
#define PART_ROWS_MIN 32

/* Sums of one image by several threads, in two steps: each thread adds up the rows that it made,
 * which are in its cache and would move to another and back otherwise; then one adds up these sums.
 * in becomes the value of the partial sums. */
static enum ifd_code add_parts(struct ifd_acc_lowering *lowering, struct reduce_params *p,
                               const char *name, uint32_t *in, struct ifd_err *err)
{
    struct reduce_params *parts = ifd_low_params(&lowering->base, 1, sizeof(*parts));
    if (!parts) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    *parts = *p;
    parts->parts = lowering->base.view->max_threads;
    p->reduced = parts->parts;
    uint32_t sums = 0;
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code =
        ifd_low_add_value(&lowering->base, p->reduced * p->inner * sizeof(float), &sums, err);
    if (code == IFD_OK) {
        code = ifd_acc_add_step(lowering, run_parts_f32, parts, in, 1, sums, &step, err);
    }
    if (code == IFD_OK) {
        step->max_threads = (uint32_t)parts->parts;
        step->chunks = 1;
        ifd_acc_name_step(lowering, "column_sum_f32", 0, "%s parts", name);
        *in = sums;
    }
    return code;
}

static ifd_acc_step_fn choose_run(const struct reduce_params *p, bool is_q8)
{
    return is_q8 ? run_reduce_q8 : p->outer == 1 && p->inner > 1 ? run_columns_f32 : run_reduce_f32;
}

static enum ifd_code reduce_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const bool is_q8 = ifd_acc_is_q8(node->view.output[0].dtype);
    struct reduce_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const char *name = ifd_op_def(node->view.op)->name;
    const uint32_t threads = lowering->base.view->max_threads;
    uint32_t in = node->input_value[0];
    enum ifd_code code = IFD_OK;
    if (!p) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    if (!split_shape(&node->view, p)) {
        return ifd_fail(err, IFD_INTERNAL, "axes are not adjacent");
    }
    bool is_done = false;
    code = ifd_acc_normalize(lowering, node, &is_done, err);
    if (code != IFD_OK || is_done) {
        return code;
    }
    p->factor = node->view.op == IFD_OP_REDUCE_MEAN ? 1.0f / (float)p->reduced : 1.0f;
    const ifd_acc_step_fn run = choose_run(p, is_q8);
    const size_t values = p->outer * p->reduced * p->inner;
    if (run == run_columns_f32 && threads > 1 && p->reduced > PART_ROWS_MIN * (size_t)threads &&
        values >= 2 * IFD_ACC_REDUCE_VALUES) {
        code = add_parts(lowering, p, name, &in, err);
    }
    if (code == IFD_OK) {
        code = ifd_acc_add_step(lowering, run, p, &in, 1, node->output_value[0], &step, err);
    }
    if (code == IFD_OK && is_q8) {
        init_mean_q8(&node->view, p);
        code = ifd_acc_add_work(lowering, p->inner * sizeof(int32_t), err);
    }
    if (code == IFD_OK) {
        step->max_threads = threads_of(p);
        ifd_acc_name_step(lowering, is_q8 ? "column_sum_q8" : "column_sum_f32", 0, "%s", name);
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_reduce = {.takes = reduce_takes, .lower = reduce_lower};

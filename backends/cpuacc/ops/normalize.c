/* Normalized rows as one step: (x - mean) / sqrt(variance + epsilon), or x / sqrt(mean of squares +
 * epsilon), with a factor and a summand for each element of a row. The same numbers as step by
 * step. */
#include "backends/cpuacc/ops/normalize.h"

#include "backends/cpuacc/narrow.h"
#include "inferd/op_attrs.h"

#include <string.h>

struct normalize_params {
    size_t rows, n;
    int form; /* of enum ifd_normalize */
    float epsilon;
    bool narrow_in, narrow_out; /* floats of 16 bits (narrow.h) */
};

/* ---- finding it ---- */

struct pattern {
    uint32_t index[9]; /* nodes behind the first one */
    uint32_t count;
    uint32_t x, scale, shift, out; /* values */
    int form;                      /* of enum ifd_normalize */
    float epsilon;
};

static const struct ifd_partition_node *node_at(const struct ifd_acc_lowering *lowering, uint32_t n)
{
    return &lowering->base.view->node[n];
}

static bool is_f32(const struct ifd_partition_node *node)
{
    bool is = node->view.output[0].dtype == IFD_F32;
    for (uint32_t i = 0; i < node->view.input_count; i++) {
        is = is && node->view.input[i].desc && node->view.input[i].desc->dtype == IFD_F32;
    }
    return is;
}

static bool is_binary(const struct ifd_partition_node *node, enum ifd_op op)
{
    const struct ifd_binary_attrs *attrs = node->view.attrs;
    return node->view.op == op && attrs->activation == IFD_ACT_NONE && is_f32(node);
}

/* The mean of each row, which stays a dimension of 1. */
static bool is_mean(const struct ifd_partition_node *node)
{
    const struct ifd_reduce_attrs *attrs = node->view.attrs;
    if (node->view.op != IFD_OP_REDUCE_MEAN || !is_f32(node)) {
        return false;
    }
    const struct ifd_shape *shape = &node->view.input[0].desc->shape;
    const int64_t last = (int64_t)shape->rank - 1;
    return last >= 0 && attrs->keep_dims && attrs->axes.count == 1 && shape->dim[last] > 1 &&
           (attrs->axes.value[0] == last || attrs->axes.value[0] == -1);
}

/* Goes on to the only reader of a value. */
static const struct ifd_partition_node *follow(const struct ifd_acc_lowering *lowering,
                                               struct pattern *p, uint32_t value)
{
    const struct ifd_partition_node *node =
        ifd_low_sole_reader(&lowering->base, value, &p->index[p->count]);
    p->count += node != NULL;
    return node;
}

/* The operand that is not value. */
static uint32_t other_of(const struct ifd_partition_node *node, uint32_t value)
{
    return node->input_value[0] == value ? 1 : 0;
}

/* A constant number, or a constant row. */
static bool is_constant(const struct ifd_operand *operand, size_t n)
{
    const struct ifd_shape *shape = &operand->desc->shape;
    return operand->data.data && operand->data.size == n * sizeof(float) &&
           (n == 1 || shape->dim[shape->rank - 1] == (int64_t)n);
}

/* mean + epsilon, and one over its root, or the root alone; returns the value. */
static uint32_t take_root(const struct ifd_acc_lowering *lowering, struct pattern *p,
                          const struct ifd_partition_node *square, bool *ret_is_inverse)
{
    const struct ifd_partition_node *mean = follow(lowering, p, square->output_value[0]);
    if (!mean || !is_mean(mean)) {
        return IFD_NO_VALUE;
    }
    const struct ifd_partition_node *sum = follow(lowering, p, mean->output_value[0]);
    if (!sum || !is_binary(sum, IFD_OP_ADD)) {
        return IFD_NO_VALUE;
    }
    const struct ifd_operand *epsilon = &sum->view.input[other_of(sum, mean->output_value[0])];
    if (!is_constant(epsilon, 1)) {
        return IFD_NO_VALUE;
    }
    memcpy(&p->epsilon, epsilon->data.data, sizeof(p->epsilon));
    const struct ifd_partition_node *root = follow(lowering, p, sum->output_value[0]);
    if (!root || (root->view.op != IFD_OP_RSQRT && root->view.op != IFD_OP_SQRT) || !is_f32(root)) {
        return IFD_NO_VALUE;
    }
    *ret_is_inverse = root->view.op == IFD_OP_RSQRT;
    return root->output_value[0];
}

/* A product with, or a sum with, a constant row that follows is taken along. */
static bool take_row(const struct ifd_acc_lowering *lowering, struct pattern *p, enum ifd_op op,
                     size_t n, uint32_t *ret_row)
{
    const uint32_t before = p->count;
    const struct ifd_partition_node *node = follow(lowering, p, p->out);
    const uint32_t i = node ? other_of(node, p->out) : 0;
    if (!node || !is_binary(node, op) || !is_constant(&node->view.input[i], n)) {
        p->count = before;
        return false;
    }
    *ret_row = node->input_value[i];
    p->out = node->output_value[0];
    return true;
}

/* centred by the root, then the rows. */
static bool take_rest(const struct ifd_acc_lowering *lowering, struct pattern *p, uint32_t centred,
                      uint32_t root, bool is_inverse, size_t n)
{
    const struct ifd_partition_node *node = follow(lowering, p, root);
    const bool fits =
        node && is_binary(node, is_inverse ? IFD_OP_MUL : IFD_OP_DIV) &&
        (node->input_value[0] == centred || (is_inverse && node->input_value[1] == centred));
    if (!fits) {
        return false;
    }
    p->out = node->output_value[0];
    p->form |= is_inverse ? 0 : IFD_NORMALIZE_DIVIDES;
    (void)take_row(lowering, p, IFD_OP_MUL, n, &p->scale);
    (void)take_row(lowering, p, IFD_OP_ADD, n, &p->shift);
    return true;
}

/* Is the node a square of value, the only other reader of which is the last of the pattern? */
static bool is_square(const struct ifd_partition_node *node, uint32_t value)
{
    return (node->view.op == IFD_OP_SQUARE && is_f32(node) && node->input_value[0] == value) ||
           (is_binary(node, IFD_OP_MUL) && node->input_value[0] == value &&
            node->input_value[1] == value);
}

/* A difference of x and mean. */
static bool is_difference(const struct ifd_partition_node *node, enum ifd_op op, uint32_t x,
                          uint32_t mean)
{
    return is_binary(node, op) && node->input_value[0] == x && node->input_value[1] == mean;
}

/* What reads the mean: the centred row, which is squared and read once more. */
static const struct ifd_partition_node *find_square_of_difference(
    const struct ifd_acc_lowering *lowering, struct pattern *p, uint32_t mean,
    uint32_t *ret_centred)
{
    const struct ifd_partition_node *sub = follow(lowering, p, mean);
    if (!sub || !is_difference(sub, IFD_OP_SUB, p->x, mean)) {
        return NULL;
    }
    const struct ifd_low_value *value = &lowering->base.value[sub->output_value[0]];
    const struct ifd_partition_node *square = node_at(lowering, value->first_reader);
    const uint32_t readers = square->view.op == IFD_OP_SQUARE ? 2 : 3; /* x * x reads twice */
    p->index[p->count++] = value->first_reader;
    *ret_centred = sub->output_value[0];
    return value->view->role == IFD_VALUE_INTERNAL && value->consumers == readers &&
                   is_square(square, *ret_centred)
               ? square
               : NULL;
}

/* Or the centred row and the square of the same difference. */
static const struct ifd_partition_node *find_squared_difference(
    const struct ifd_acc_lowering *lowering, struct pattern *p, uint32_t mean,
    uint32_t *ret_centred)
{
    const struct ifd_low_value *value = &lowering->base.value[mean];
    const struct ifd_partition_node *a = node_at(lowering, value->first_reader);
    const struct ifd_partition_node *b = node_at(lowering, value->reader);
    const struct ifd_partition_node *sub = a->view.op == IFD_OP_SUB ? a : b;
    const struct ifd_partition_node *square = sub == a ? b : a;
    *ret_centred = sub->output_value[0];
    p->index[p->count++] = value->first_reader;
    p->index[p->count++] = value->reader;
    return value->view->role == IFD_VALUE_INTERNAL && is_difference(sub, IFD_OP_SUB, p->x, mean) &&
                   is_difference(square, IFD_OP_SQUARED_DIFFERENCE, p->x, mean) &&
                   lowering->base.value[*ret_centred].consumers == 1 &&
                   lowering->base.value[*ret_centred].view->role == IFD_VALUE_INTERNAL
               ? square
               : NULL;
}

/* From the mean on. */
static bool find_layer(const struct ifd_acc_lowering *lowering,
                       const struct ifd_partition_node *node, struct pattern *p)
{
    const struct ifd_shape *shape = &node->view.input[0].desc->shape;
    const uint32_t mean = node->output_value[0];
    uint32_t centred = 0;
    bool is_inverse = false;
    p->x = node->input_value[0];
    const struct ifd_partition_node *square =
        lowering->base.value[mean].consumers == 2
            ? find_squared_difference(lowering, p, mean, &centred)
            : find_square_of_difference(lowering, p, mean, &centred);
    const uint32_t root = square ? take_root(lowering, p, square, &is_inverse) : IFD_NO_VALUE;
    return root != IFD_NO_VALUE &&
           take_rest(lowering, p, centred, root, is_inverse, (size_t)shape->dim[shape->rank - 1]);
}

/* From the square on. */
static bool find_squares(const struct ifd_acc_lowering *lowering,
                         const struct ifd_partition_node *square, struct pattern *p)
{
    p->x = square->input_value[0];
    p->form = IFD_NORMALIZE_SQUARES;
    if (!is_square(square, p->x)) {
        return false;
    }
    const struct ifd_shape *shape = &square->view.output[0].shape;
    bool is_inverse = false;
    const uint32_t root = take_root(lowering, p, square, &is_inverse);
    return root != IFD_NO_VALUE && shape->rank > 0 &&
           take_rest(lowering, p, p->x, root, is_inverse, (size_t)shape->dim[shape->rank - 1]);
}

/* ---- running ---- */

static void normalize_rows(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                           size_t rows, const float *in, float *out)
{
    const struct normalize_params *p = step->params;
    step->kernels->reduce.normalize_f32(
        &(const struct ifd_normalize_args){.rows = rows,
                                           .n = p->n,
                                           .in = in,
                                           .out = out,
                                           .form = p->form,
                                           .epsilon = p->epsilon,
                                           .scale = ifd_acc_in(step, frame, 1),
                                           .shift = ifd_acc_in(step, frame, 2)});
}

static void run_normalize(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct normalize_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->rows, 1);
    const float *in = ifd_acc_in(step, frame, 0);
    float *out = ifd_acc_out(step, frame);
    normalize_rows(step, frame, range.end - range.begin, in + range.begin * p->n,
                   out + range.begin * p->n);
}

/* The same where the rows or the results are narrow: one row at a time is in work memory. */
static void run_normalize_narrow(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct normalize_params *p = step->params;
    const struct ifd_kern_gemm_f32 *kernels = &step->kernels->gemm_bf16;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->rows, 1);
    const uint16_t *in = ifd_acc_in(step, frame, 0);
    uint16_t *out = ifd_acc_out(step, frame);
    float *wide = ifd_acc_work(step, frame);
    for (size_t r = range.begin; r < range.end; r++) {
        const size_t at = r * p->n;
        if (p->narrow_in) {
            kernels->widen(p->n, in + at, wide);
        }
        normalize_rows(step, frame, 1, p->narrow_in ? wide : (const float *)(const void *)in + at,
                       p->narrow_out ? wide : (float *)(void *)out + at);
        if (p->narrow_out) {
            kernels->narrow(p->n, wide, out + at);
        }
    }
}

/* ---- compiling ---- */

enum ifd_code ifd_acc_normalize(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, bool *ret_done,
                                struct ifd_err *err)
{
    struct pattern found = {.scale = IFD_NO_VALUE, .shift = IFD_NO_VALUE};
    *ret_done = (is_mean(node) ? find_layer(lowering, node, &found)
                               : find_squares(lowering, node, &found)) &&
                lowering->base.value[found.x].pitch == 0;
    if (!*ret_done) {
        return IFD_OK;
    }
    const struct ifd_shape *shape = &node->view.input[0].desc->shape;
    struct normalize_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const uint32_t operands[] = {found.x, found.scale, found.shift};
    const bool narrow_in = ifd_acc_is_narrow(lowering, found.x);
    const bool narrow_out = ifd_acc_is_narrow(lowering, found.out);
    const bool is_narrow = narrow_in || narrow_out;
    const enum ifd_code code =
        ifd_acc_add_step(lowering, is_narrow ? run_normalize_narrow : run_normalize, p, operands, 3,
                         found.out, &step, err);
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct normalize_params){.rows = 1,
                                   .n = (size_t)shape->dim[shape->rank - 1],
                                   .form = found.form,
                                   .epsilon = found.epsilon,
                                   .narrow_in = narrow_in,
                                   .narrow_out = narrow_out};
    for (uint32_t d = 0; d + 1 < shape->rank; d++) {
        p->rows *= (size_t)shape->dim[d];
    }
    for (uint32_t i = 0; i < found.count; i++) {
        ifd_low_fuse_node(&lowering->base, found.index[i]);
    }
    step->max_threads = (uint32_t)(p->rows * p->n / 4096) + 1;
    ifd_acc_name_step(lowering, "normalize_f32", 0, "%s",
                      found.form & IFD_NORMALIZE_SQUARES ? "rms_norm" : "layer_norm");
    return is_narrow ? ifd_acc_add_work(lowering, p->n * sizeof(float), err) : IFD_OK;
}

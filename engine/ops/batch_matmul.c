/* batch_matmul: products of matrices, whose leading dimensions broadcast. Quantized sums are
 * rounded twice; those of s16 are 64 bits wide and rounded once. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_batch_matmul;

/* In float, as LiteRT has the product of the scales. */
static double factor_of(const struct ifd_desc *a, const struct ifd_desc *b,
                        const struct ifd_desc *y)
{
    return (double)(ifd_ref_scale(a) * ifd_ref_scale(b)) / (double)ifd_ref_scale(y);
}

static enum ifd_code check_quantized(const struct ifd_infer *in, const struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_batch_matmul;
    const struct ifd_desc *a = in->input[0].desc;
    const struct ifd_desc *b = in->input[1].desc;
    enum ifd_code code = ifd_infer_any_scale(def, "input 0", a, err);
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "input 1", b, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "output 0", &output[0], err);
    }
    return code;
}

/* Rows and columns of the last two dimensions, as an operand is read. */
struct matrix {
    int64_t rows, columns, row_stride, column_stride;
};

static struct matrix matrix_of(const struct ifd_shape *shape, bool adjoint)
{
    const int64_t height = shape->dim[shape->rank - 2];
    const int64_t width = shape->dim[shape->rank - 1];
    return adjoint ? (struct matrix){width, height, 1, width}
                   : (struct matrix){height, width, width, 1};
}

static struct ifd_shape leading(const struct ifd_shape *shape)
{
    struct ifd_shape batch = *shape;
    batch.rank -= 2;
    return batch;
}

static enum ifd_code batch_matmul_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                        struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_batch_matmul;
    const struct ifd_batch_matmul_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_BIT(in->input[0].desc->dtype), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code == IFD_OK && ifd_dtype_is_quantized(in->input[0].desc->dtype)) {
        code = check_quantized(in, output, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *a = &in->input[0].desc->shape;
    const struct ifd_shape *b = &in->input[1].desc->shape;
    struct ifd_shape shape;
    bool fits = a->rank >= 2 && b->rank >= 2;
    if (fits) {
        const struct matrix left = matrix_of(a, attrs->adj_x);
        const struct matrix right = matrix_of(b, attrs->adj_y);
        const struct ifd_shape batch_a = leading(a);
        const struct ifd_shape batch_b = leading(b);
        fits = left.columns == right.rows && ifd_shape_broadcast(&batch_a, &batch_b, &shape);
        if (fits) {
            shape.dim[shape.rank++] = left.rows;
            shape.dim[shape.rank++] = right.columns;
        }
    }
    if (!fits) {
        return ifd_fail(err, IFD_INVALID, "batch_matmul: matrices %s%s and %s%s do not multiply",
                        ifd_shape_text(a).s, attrs->adj_x ? " (transposed)" : "",
                        ifd_shape_text(b).s, attrs->adj_y ? " (transposed)" : "");
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* Element of the output: the sum over depth, from a at element i and b at element k on. */
struct dot {
    const struct ifd_ref_call *call;
    int64_t depth, step_a, step_b;
    int32_t zero_a, zero_b, zero_y, min, max;
    struct ifd_multiplier factor;
};

static void store_dot_f32(const struct dot *dot, int64_t i, int64_t k, size_t to)
{
    const float *a = dot->call->input[0];
    const float *b = dot->call->input[1];
    float sum = 0;
    for (int64_t d = 0; d < dot->depth; d++) {
        sum += a[i + d * dot->step_a] * b[k + d * dot->step_b];
    }
    ((float *)dot->call->output[0])[to] = sum;
}

static void store_dot_int(const struct dot *dot, int64_t i, int64_t k, size_t to)
{
    const enum ifd_dtype dtype = dot->call->in[0]->dtype;
    int64_t sum = 0;
    for (int64_t d = 0; d < dot->depth; d++) {
        const int32_t a =
            ifd_ref_load(dtype, dot->call->input[0], (size_t)(i + d * dot->step_a)) - dot->zero_a;
        const int32_t b =
            ifd_ref_load(dtype, dot->call->input[1], (size_t)(k + d * dot->step_b)) - dot->zero_b;
        sum = (int64_t)((uint64_t)sum + (uint64_t)((int64_t)a * b));
    }
    if (dtype == IFD_S32) {
        ifd_ref_store(dtype, dot->call->output[0], to, (int32_t)(uint32_t)(uint64_t)sum);
        return;
    }
    const int64_t y = dtype == IFD_S16
                          ? ifd_fixed_scale_wide(sum, dot->factor.fraction, dot->factor.shift)
                          : ifd_requantize_double((int32_t)(uint32_t)(uint64_t)sum, dot->factor);
    ifd_ref_store(dtype, dot->call->output[0], to,
                  ifd_ref_clamp(y + dot->zero_y, dot->min, dot->max));
}

static struct dot dot_of(const struct ifd_ref_call *call, const struct matrix *left,
                         const struct matrix *right)
{
    struct dot dot = {.call = call,
                      .depth = left->columns,
                      .step_a = left->column_stride,
                      .step_b = right->row_stride};
    if (ifd_dtype_is_quantized(call->in[0]->dtype)) {
        dot.zero_a = ifd_ref_zero_point(call->in[0]);
        dot.zero_b = ifd_ref_zero_point(call->in[1]);
        dot.zero_y = ifd_ref_zero_point(call->out[0]);
        dot.factor = ifd_multiplier(factor_of(call->in[0], call->in[1], call->out[0]));
        ifd_dtype_range(call->out[0]->dtype, &dot.min, &dot.max);
    }
    return dot;
}

static enum ifd_code batch_matmul_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_batch_matmul_attrs *attrs = call->attrs;
    const struct matrix left = matrix_of(&call->in[0]->shape, attrs->adj_x);
    const struct matrix right = matrix_of(&call->in[1]->shape, attrs->adj_y);
    const struct dot dot = dot_of(call, &left, &right);
    if (ifd_ref_elements(call->out[0]) == 0) {
        return IFD_OK;
    }
    const struct ifd_shape batch = leading(&call->out[0]->shape);
    const struct ifd_shape batch_a = leading(&call->in[0]->shape);
    const struct ifd_shape batch_b = leading(&call->in[1]->shape);
    size_t done = 0;
    struct ifd_walk walk;
    ifd_walk_init(&walk, &batch);
    ifd_walk_broadcast(&walk, 0, &batch_a);
    ifd_walk_broadcast(&walk, 1, &batch_b);
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        const int64_t a = walk.offset[0] * left.rows * left.columns;
        const int64_t b = walk.offset[1] * right.rows * right.columns;
        for (int64_t r = 0; r < left.rows; r++) {
            for (int64_t c = 0; c < right.columns; c++) {
                const int64_t i = a + r * left.row_stride;
                const int64_t k = b + c * right.column_stride;
                if (call->in[0]->dtype == IFD_F32) {
                    store_dot_f32(&dot, i, k, done++);
                } else {
                    store_dot_int(&dot, i, k, done++);
                }
            }
        }
    }
    return IFD_OK;
}

static double batch_matmul_terms(const void *attrs, const struct ifd_shape *input)
{
    const struct ifd_batch_matmul_attrs *a = attrs;
    return (double)input->dim[input->rank - (a->adj_x ? 2 : 1)];
}

static const struct ifd_attr_def batch_matmul_attrs[] = {
    {"adj_x", IFD_ATTR_BOOL, offsetof(struct ifd_batch_matmul_attrs, adj_x), 0, 0, 1},
    {"adj_y", IFD_ATTR_BOOL, offsetof(struct ifd_batch_matmul_attrs, adj_y), 0, 0, 1},
};

const struct ifd_op_def ifd_op_batch_matmul = {
    .name = "batch_matmul",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = batch_matmul_attrs,
    .attr_count = sizeof(batch_matmul_attrs) / sizeof(batch_matmul_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_batch_matmul_attrs),
    .dtypes = IFD_BIT(IFD_F32) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16) | IFD_BIT(IFD_S32),
    .infer = batch_matmul_infer,
    .ref = batch_matmul_ref,
    .multiplies = true,
    .terms = batch_matmul_terms,
};

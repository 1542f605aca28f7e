/* softmax(scale * a b + mask) v: two products and what lies between them as one step, which keeps a
 * few rows of the matrix between in the cache. The same numbers as step by step. */
#include "backends/cpuacc/ops/attention.h"

#include "backends/cpuacc/narrow.h"
#include "inferd/op_attrs.h"

#include <math.h>
#include <string.h>

/* Bytes of rows of the matrix between: a part of the first-level cache. */
#define ROWS_BYTES ((size_t)24 * 1024)

struct attention_params {
    struct ifd_acc_matrices product; /* of a and b */
    size_t v_n;                      /* columns of v */
    const size_t *v, *mask;          /* per batch: first element */
    size_t mask_row;                 /* elements from row to row: 0 where one row counts for all */
    bool has_scale;
    float scale, beta;
    size_t rows; /* of a call */
};

/* ---- finding it ---- */

/* The nodes behind the first product. */
struct pattern {
    const struct ifd_partition_node *scale, *mask, *softmax, *product;
    uint32_t index[4];
    uint32_t count;
    uint32_t mask_value;
    float factor;
};

static const struct ifd_partition_node *next_node(const struct ifd_acc_lowering *lowering,
                                                  const struct ifd_partition_node *node,
                                                  uint32_t *ret_index)
{
    return ifd_low_sole_reader(&lowering->base, node->output_value[0], ret_index);
}

static bool is_plain(const struct ifd_partition_node *node, enum ifd_op op)
{
    const struct ifd_binary_attrs *attrs = node->view.attrs;
    return node->view.op == op && attrs->activation == IFD_ACT_NONE;
}

/* A product with one number that is constant. */
static bool take_scale(const struct ifd_partition_node *node, uint32_t value, float *ret)
{
    if (!is_plain(node, IFD_OP_MUL)) {
        return false;
    }
    const struct ifd_operand *other = &node->view.input[node->input_value[0] == value ? 1 : 0];
    if (!other->data.data || other->data.size != sizeof(*ret)) {
        return false;
    }
    memcpy(ret, other->data.data, sizeof(*ret));
    return true;
}

/* A sum with what has whole rows of floats, one for each of the matrix or one for all. */
static bool take_mask(const struct ifd_acc_lowering *lowering,
                      const struct ifd_partition_node *node, uint32_t value,
                      const struct ifd_shape *matrix, uint32_t *ret)
{
    if (!is_plain(node, IFD_OP_ADD) || node->input_value[0] == node->input_value[1]) {
        return false;
    }
    const uint32_t i = node->input_value[0] == value ? 1 : 0;
    const struct ifd_shape *other = &node->view.input[i].desc->shape;
    const uint32_t rank = matrix->rank;
    *ret = node->input_value[i];
    return ifd_shape_equal(&node->view.output[0].shape, matrix) && other->rank >= 2 &&
           other->rank <= rank && other->dim[other->rank - 1] == matrix->dim[rank - 1] &&
           (other->dim[other->rank - 2] == 1 ||
            other->dim[other->rank - 2] == matrix->dim[rank - 2]) &&
           ifd_low_is_ready(&lowering->base, *ret) && !ifd_acc_is_narrow(lowering, *ret);
}

/* The second product, whose first operand is the softmax and whose matrices are as many. */
static bool is_product(const struct ifd_acc_lowering *lowering,
                       const struct ifd_partition_node *node, uint32_t value,
                       const struct ifd_shape *matrix)
{
    if (node->view.op != IFD_OP_BATCH_MATMUL || node->input_value[0] != value ||
        node->input_value[1] == value) {
        return false;
    }
    const struct ifd_batch_matmul_attrs *attrs = node->view.attrs;
    const struct ifd_shape *out = &node->view.output[0].shape;
    return !attrs->adj_x && !attrs->adj_y && out->rank == matrix->rank &&
           memcmp(out->dim, matrix->dim, (out->rank - 1) * sizeof(out->dim[0])) == 0 &&
           ifd_low_is_ready(&lowering->base, node->input_value[1]);
}

static bool find(const struct ifd_acc_lowering *lowering, const struct ifd_partition_node *first,
                 struct pattern *p)
{
    const struct ifd_shape *matrix = &first->view.output[0].shape;
    uint32_t value = first->output_value[0];
    *p = (struct pattern){.mask_value = IFD_NO_VALUE, .factor = 1};
    const struct ifd_partition_node *node = next_node(lowering, first, &p->index[0]);
    if (node && take_scale(node, value, &p->factor)) {
        p->scale = node;
        value = node->output_value[0];
        node = next_node(lowering, node, &p->index[++p->count]);
    }
    if (node && take_mask(lowering, node, value, matrix, &p->mask_value)) {
        p->mask = node;
        value = node->output_value[0];
        node = next_node(lowering, node, &p->index[++p->count]);
    }
    if (!node || node->view.op != IFD_OP_SOFTMAX) {
        return false;
    }
    p->softmax = node;
    value = node->output_value[0];
    p->product = next_node(lowering, node, &p->index[++p->count]);
    p->count++;
    return p->product && is_product(lowering, p->product, value, matrix);
}

/* ---- running ---- */

/* Rows first … first + count - 1 of a matrix. */
static void run_rows(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                     size_t batch, size_t first, size_t count)
{
    const struct attention_params *p = step->params;
    const struct ifd_acc_matrices *m = &p->product;
    const struct ifd_kernels *kernels = step->kernels;
    const float *a = ifd_acc_in(step, frame, 0), *b = ifd_acc_in(step, frame, 1);
    const float *v = ifd_acc_in(step, frame, 2), *mask = ifd_acc_in(step, frame, 3);
    float *rows = ifd_acc_work(step, frame);
    float *out = ifd_acc_out(step, frame);
    ifd_acc_multiply(step, m, a + m->a[batch] + first * m->a_row, b + m->b[batch], count, rows);
    if (p->has_scale) {
        kernels->eltwise.unary[IFD_UNARY_AFFINE](count * m->n, rows, rows, p->scale, 0);
    }
    if (mask) {
        kernels->eltwise.binary[IFD_BINARY_ADD](
            &(const struct ifd_binary_args){.rows = count,
                                            .n = m->n,
                                            .a = rows,
                                            .b = mask + p->mask[batch] + first * p->mask_row,
                                            .out = rows,
                                            .a_row = m->n,
                                            .b_row = p->mask_row,
                                            .out_row = m->n,
                                            .a_step = 1,
                                            .b_step = 1,
                                            .min = -INFINITY,
                                            .max = INFINITY});
    }
    kernels->reduce.softmax_f32(count, m->n, rows, m->n, p->beta, rows, m->n);
    const struct ifd_acc_matrices second = {.n = p->v_n, .k = m->n, .a_row = m->n, .a_step = 1};
    ifd_acc_multiply(step, &second, rows, v + p->v[batch], count,
                     out + (batch * m->rows + first) * p->v_n);
}

static void run_attention(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct attention_params *p = step->params;
    const size_t calls = (p->product.rows + p->rows - 1) / p->rows;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->product.batches * calls, 1);
    for (size_t i = range.begin; i < range.end; i++) {
        const size_t first = i % calls * p->rows, left = p->product.rows - first;
        run_rows(step, frame, i / calls, first, left < p->rows ? left : p->rows);
    }
}

/* ---- compiling ---- */

static enum ifd_code add_step(struct ifd_acc_lowering *lowering, struct attention_params *p,
                              const uint32_t operands[IFD_ACC_STEP_INPUTS], uint32_t out,
                              struct ifd_err *err)
{
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, run_attention, p, operands,
                                                IFD_ACC_STEP_INPUTS, out, &step, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_acc_matrices *m = &p->product;
    const uint64_t rows = (uint64_t)m->batches * m->rows;
    step->rate = 30.0f;
    step->max_threads = (uint32_t)(m->batches * ((m->rows + p->rows - 1) / p->rows));
    ifd_acc_name_step(lowering, "matmul_f32", rows * m->n * (m->k + p->v_n), "attention");
    return ifd_acc_add_work(lowering, p->rows * m->n * sizeof(float) + IFD_TENSOR_PAD, err);
}

enum ifd_code ifd_acc_attention(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node,
                                const struct ifd_acc_matrices *product, bool *ret_done,
                                struct ifd_err *err)
{
    struct pattern found;
    *ret_done = find(lowering, node, &found);
    if (!*ret_done) {
        return IFD_OK;
    }
    const struct ifd_shape *matrix = &node->view.output[0].shape;
    const struct ifd_shape *v = &found.product->view.input[1].desc->shape;
    const struct ifd_softmax_attrs *softmax = found.softmax->view.attrs;
    struct attention_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    size_t *first = ifd_low_params(&lowering->base, 2 * product->batches, sizeof(*first));
    if (!p || !first) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu matrices", product->batches);
    }
    const size_t fitting = ROWS_BYTES / (product->n * sizeof(float)) / 8 * 8;
    *p = (struct attention_params){.product = *product,
                                   .v_n = (size_t)v->dim[v->rank - 1],
                                   .v = first,
                                   .mask = first + product->batches,
                                   .has_scale = found.scale != NULL,
                                   .scale = found.factor,
                                   .beta = softmax->beta,
                                   .rows = fitting > 8 ? fitting : 8};
    ifd_acc_find_matrices(matrix, v, product->batches, first);
    if (found.mask) {
        const struct ifd_shape *mask = &lowering->base.value[found.mask_value].view->desc.shape;
        ifd_acc_find_matrices(matrix, mask, product->batches, first + product->batches);
        p->mask_row = mask->dim[mask->rank - 2] > 1 ? product->n : 0;
    }
    for (uint32_t i = 0; i < found.count; i++) {
        ifd_low_fuse_node(&lowering->base, found.index[i]);
    }
    const uint32_t operands[IFD_ACC_STEP_INPUTS] = {node->input_value[0], node->input_value[1],
                                                    found.product->input_value[1],
                                                    found.mask_value};
    return add_step(lowering, p, operands, found.product->output_value[0], err);
}

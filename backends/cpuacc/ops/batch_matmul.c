/* batch_matmul of f32: products of two tensors, neither of which is packed. */
#include "backends/cpuacc/ops/attention.h"

#include "inferd/op_attrs.h"

static bool batch_matmul_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_batch_matmul_attrs *attrs = node->attrs;
    if (node->input[0].desc->dtype != IFD_F32 || attrs->adj_y ||
        ifd_low_desc_bytes(node->input[0].desc) == 0 ||
        ifd_low_desc_bytes(node->input[1].desc) == 0) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "type %s, nothing to multiply, or a second operand that is transposed",
                 ifd_dtype_name(node->input[0].desc->dtype));
        return false;
    }
    return true;
}

void ifd_acc_multiply(const struct ifd_acc_step *step, const struct ifd_acc_matrices *matrices,
                      const float *a, const float *b, size_t count, float *out)
{
    step->kernels->eltwise.matmul(&(const struct ifd_matmul_args){.m = count,
                                                                  .n = matrices->n,
                                                                  .k = matrices->k,
                                                                  .a = a,
                                                                  .b = b,
                                                                  .out = out,
                                                                  .a_row = matrices->a_row,
                                                                  .a_step = matrices->a_step,
                                                                  .b_row = matrices->n});
}

static void run_batch_matmul(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct ifd_acc_matrices *p = step->params;
    const float *a = ifd_acc_in(step, frame, 0), *b = ifd_acc_in(step, frame, 1);
    float *out = ifd_acc_out(step, frame);
    const struct ifd_acc_range range = ifd_acc_share(frame, p->batches * p->rows, 4);
    for (size_t at = range.begin; at < range.end;) {
        const size_t batch = at / p->rows, row = at % p->rows;
        const size_t left = p->rows - row, count = range.end - at < left ? range.end - at : left;
        ifd_acc_multiply(step, p, a + p->a[batch] + row * p->a_row, b + p->b[batch], count,
                         out + at * p->n);
        at += count;
    }
}

void ifd_acc_find_matrices(const struct ifd_shape *out, const struct ifd_shape *operand,
                           size_t batches, size_t *ret)
{
    const uint32_t shift = out->rank - operand->rank;
    for (size_t i = 0; i < batches; i++) {
        size_t rest = i, at = 0;
        size_t stride = (size_t)(operand->dim[operand->rank - 1] * operand->dim[operand->rank - 2]);
        for (uint32_t d = out->rank - 2; d-- > 0;) {
            const size_t index = rest % (size_t)out->dim[d];
            rest /= (size_t)out->dim[d];
            if (d >= shift) {
                at += operand->dim[d - shift] > 1 ? index * stride : 0;
                stride *= (size_t)operand->dim[d - shift];
            }
        }
        ret[i] = at;
    }
}

static enum ifd_code batch_matmul_lower(struct ifd_acc_lowering *lowering,
                                        const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_batch_matmul_attrs *attrs = node->view.attrs;
    const struct ifd_shape *x = &node->view.input[0].desc->shape;
    const struct ifd_shape *y = &node->view.input[1].desc->shape;
    const struct ifd_shape *out = &node->view.output[0].shape;
    size_t batches = 1;
    for (uint32_t d = 0; d + 2 < out->rank; d++) {
        batches *= (size_t)out->dim[d];
    }
    struct ifd_acc_matrices *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    size_t *first = ifd_low_params(&lowering->base, 2 * batches, sizeof(*first));
    struct ifd_acc_draft *step = NULL;
    if (!p || !first) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu matrices", batches);
    }
    ifd_acc_find_matrices(out, x, batches, first);
    ifd_acc_find_matrices(out, y, batches, first + batches);
    *p = (struct ifd_acc_matrices){.rows = (size_t)out->dim[out->rank - 2],
                                   .n = (size_t)out->dim[out->rank - 1],
                                   .k = (size_t)y->dim[y->rank - 2],
                                   .batches = batches,
                                   .a_row = attrs->adj_x ? 1 : (size_t)x->dim[x->rank - 1],
                                   .a_step = attrs->adj_x ? (size_t)x->dim[x->rank - 1] : 1,
                                   .a = first,
                                   .b = first + batches};
    bool is_attention = false;
    enum ifd_code code = ifd_acc_attention(lowering, node, p, &is_attention, err);
    if (code == IFD_OK && !is_attention) {
        code = ifd_acc_add_step(lowering, run_batch_matmul, p, node->input_value, 2,
                                node->output_value[0], &step, err);
    }
    if (code != IFD_OK || is_attention) {
        return code;
    }
    const uint64_t macs = (uint64_t)batches * p->rows * p->n * p->k;
    step->rate = 30.0f;
    step->max_threads = (uint32_t)(batches * p->rows / 4) + 1;
    ifd_acc_name_step(lowering, "matmul_f32", macs, "batch_matmul");
    return IFD_OK;
}

const struct ifd_acc_driver ifd_acc_batch_matmul = {.takes = batch_matmul_takes,
                                                    .lower = batch_matmul_lower};

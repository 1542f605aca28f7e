/* gather with constant indices. */
#include "backends/cpuacc/driver.h"

#include "inferd/op_attrs.h"

#include <string.h>

struct gather_params {
    size_t outer, choices, picks, bytes; /* of one choice */
    size_t batches;
    const uint32_t *pick; /* batches × picks */
};

static size_t product(const struct ifd_shape *shape, uint32_t begin, uint32_t end)
{
    size_t count = 1;
    for (uint32_t d = begin; d < end; d++) {
        count *= (size_t)shape->dim[d];
    }
    return count;
}

static uint32_t gather_axis(const struct ifd_node_view *node)
{
    const struct ifd_gather_attrs *attrs = node->attrs;
    const int32_t rank = (int32_t)node->input[0].desc->shape.rank;
    return (uint32_t)(attrs->axis < 0 ? attrs->axis + rank : attrs->axis);
}

static int64_t index_at(const struct ifd_operand *indices, size_t i)
{
    int32_t small = 0;
    int64_t large = 0;
    if (indices->desc->dtype == IFD_S32) {
        memcpy(&small, indices->data.data + i * sizeof(small), sizeof(small));
        return small;
    }
    memcpy(&large, indices->data.data + i * sizeof(large), sizeof(large));
    return large;
}

/* Computed indices may be out of range; the reference kernel reports that (reference.c). */
static bool gather_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_operand *indices = &node->input[1];
    const int64_t choices = node->input[0].desc->shape.dim[gather_axis(node)];
    bool fits = indices->data.data != NULL;
    const size_t count = product(&indices->desc->shape, 0, indices->desc->shape.rank);
    for (size_t i = 0; fits && i < count; i++) {
        const int64_t index = index_at(indices, i);
        fits = index >= -choices && index < choices && choices <= UINT32_MAX;
    }
    if (!fits) {
        ifd_fail(reason, IFD_UNSUPPORTED, "indices are not constant, or out of range");
    }
    return fits;
}

static void run_gather(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct gather_params *p = step->params;
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    const struct ifd_acc_range range = ifd_acc_share(frame, p->batches * p->outer * p->picks, 16);
    for (size_t i = range.begin; i < range.end; i++) {
        const size_t block = i / p->picks, batch = block / p->outer;
        const size_t pick = p->pick[batch * p->picks + i % p->picks];
        memcpy(out + i * p->bytes, in + (block * p->choices + pick) * p->bytes, p->bytes);
    }
}

static enum ifd_code gather_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_gather_attrs *attrs = node->view.attrs;
    const struct ifd_operand *indices = &node->view.input[1];
    const struct ifd_desc *in = node->view.input[0].desc;
    const uint32_t axis = gather_axis(&node->view), batch_dims = (uint32_t)attrs->batch_dims;
    const size_t count = product(&indices->desc->shape, 0, indices->desc->shape.rank);
    struct gather_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    uint32_t *pick = ifd_low_params(&lowering->base, count, sizeof(*pick));
    struct ifd_acc_draft *step = NULL;
    if (!pick) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu indices", count);
    }
    const enum ifd_code code = ifd_acc_add_step(lowering, run_gather, p, node->input_value, 1,
                                                node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct gather_params){
        .batches = product(&in->shape, 0, batch_dims),
        .outer = product(&in->shape, batch_dims, axis),
        .choices = (size_t)in->shape.dim[axis],
        .picks = product(&indices->desc->shape, batch_dims, indices->desc->shape.rank),
        .bytes = product(&in->shape, axis + 1, in->shape.rank) * ifd_dtype_bytes(in->dtype),
        .pick = pick,
    };
    for (size_t i = 0; i < count; i++) {
        const int64_t index = index_at(indices, i);
        pick[i] = (uint32_t)(index < 0 ? index + (int64_t)p->choices : index);
    }
    step->max_threads = (uint32_t)(ifd_low_desc_bytes(&node->view.output[0]) / 8192) + 1;
    ifd_acc_name_step(lowering, "copy", 0, "gather");
    return IFD_OK;
}

const struct ifd_acc_driver ifd_acc_gather = {.takes = gather_takes, .lower = gather_lower};

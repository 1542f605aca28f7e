/* Operators about places in a tensor: arg_max, arg_min, gather with constant indices. */
#include "backends/gpuacc/lower.h"
#include "inferd/op_attrs.h"

#include <string.h>

static size_t product(const struct ifd_shape *shape, uint32_t begin, uint32_t end)
{
    size_t count = 1;
    for (uint32_t d = begin; d < end; d++) {
        count *= (size_t)shape->dim[d];
    }
    return count;
}

static uint32_t axis_of(int32_t axis, const struct ifd_shape *shape)
{
    return (uint32_t)(axis < 0 ? axis + (int32_t)shape->rank : axis);
}

/* ---- arg_max, arg_min ---- */

static bool arg_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype in = node->input[0].desc->dtype, out = node->output[0].dtype;
    if (!ifd_gpu_number_type(in) || (out != IFD_S32 && out != IFD_S64)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "types %s to %s", ifd_dtype_name(in),
                 ifd_dtype_name(out));
        return false;
    }
    return true;
}

static enum ifd_code arg_lower(struct ifd_gpu_lowering *lowering,
                               const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_arg_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const uint32_t axis = axis_of(attrs->axis, &in->shape);
    const size_t results = ifd_gpu_elements(&out->shape);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_arg);
    ifd_gpu_define(&call, "#define IN %s\n#define OUT %s\n#define BETTER(a, b) ((a) %s (b))\n",
                   ifd_gpu_number_type(in->dtype), ifd_gpu_number_type(out->dtype),
                   node->view.op == IFD_OP_ARG_MAX ? ">" : "<");
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)results);
    ifd_gpu_int(&call, in->shape.dim[axis]);
    ifd_gpu_int(&call, (int64_t)product(&in->shape, axis + 1, in->shape.rank));
    ifd_gpu_items(&call, results, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_arg = {arg_takes, arg_lower};

/* ---- gather ---- */

static int64_t index_at(enum ifd_dtype dtype, const uint8_t *data, size_t i)
{
    int32_t small = 0;
    int64_t large = 0;
    if (dtype == IFD_S32) {
        memcpy(&small, data + i * sizeof(small), sizeof(small));
        return small;
    }
    memcpy(&large, data + i * sizeof(large), sizeof(large));
    return large;
}

/* A kernel cannot report an index that is out of range. */
static bool gather_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_gather_attrs *attrs = node->attrs;
    const struct ifd_desc *data = node->input[0].desc;
    const struct ifd_operand *indices = &node->input[1];
    const int64_t choices = data->shape.dim[axis_of(attrs->axis, &data->shape)];
    const size_t count = ifd_gpu_elements(&indices->desc->shape);
    bool fits = indices->data.data != NULL && data->dtype != IFD_STR && choices <= INT32_MAX &&
                ifd_gpu_element_type(ifd_dtype_bytes(data->dtype));
    for (size_t i = 0; fits && i < count; i++) {
        const int64_t index = index_at(indices->desc->dtype, indices->data.data, i);
        fits = index >= -choices && index < choices;
    }
    if (!fits) {
        ifd_fail(reason, IFD_UNSUPPORTED, "indices are not constant, or out of range");
    }
    return fits;
}

struct picks {
    enum ifd_dtype dtype;
    size_t count;
    int64_t choices;
};

static void pack_picks(const void *params, const void *source, void *packed)
{
    const struct picks *picks = params;
    int32_t *to = packed;
    for (size_t i = 0; i < picks->count; i++) {
        const int64_t index = index_at(picks->dtype, source, i);
        to[i] = (int32_t)(index < 0 ? index + picks->choices : index);
    }
}

static enum ifd_code gather_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_gather_attrs *attrs = node->view.attrs;
    const struct ifd_desc *data = node->view.input[0].desc;
    const struct ifd_operand *indices = &node->view.input[1];
    const struct ifd_shape *chosen = &indices->desc->shape;
    const uint32_t axis = axis_of(attrs->axis, &data->shape);
    const uint32_t batch_dims = (uint32_t)attrs->batch_dims;
    const size_t count = ifd_gpu_elements(&node->view.output[0].shape);
    struct picks *picks = ifd_low_params(&lowering->base, 1, sizeof(*picks));
    if (!picks) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*picks), err);
    }
    *picks = (struct picks){indices->desc->dtype, ifd_gpu_elements(chosen), data->shape.dim[axis]};
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_gather);
    ifd_gpu_define(&call, "#define ELEMENT %s\n",
                   ifd_gpu_element_type(ifd_dtype_bytes(data->dtype)));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_constant(&call, pack_picks, picks, indices->data.data, picks->count * sizeof(int32_t));
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_int(&call, (int64_t)product(&data->shape, batch_dims, axis));
    ifd_gpu_int(&call, data->shape.dim[axis]);
    ifd_gpu_int(&call, (int64_t)product(chosen, batch_dims, chosen->rank));
    ifd_gpu_int(&call, (int64_t)product(&data->shape, axis + 1, data->shape.rank));
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "gather", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_gather = {gather_takes, gather_lower};

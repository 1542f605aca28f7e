/* l2_normalization and local_response_normalization of f32, cumsum, top_k. */
#include "backends/gpuacc/ops/rows.h"
#include "inferd/op_attrs.h"

/* ---- norms along the last dimension ---- */

static size_t last_dim(const struct ifd_shape *shape)
{
    return (size_t)shape->dim[shape->rank - 1];
}

static enum ifd_code l2_lower(struct ifd_gpu_lowering *lowering,
                              const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_shape *shape = &node->view.output[0].shape;
    const size_t row = last_dim(shape), rows = ifd_gpu_elements(shape) / row;
    const size_t items = ifd_gpu_group_items(lowering->device, row);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_l2_norm);
    ifd_gpu_define(&call, "#define ITEMS %zu\n", items);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)row);
    ifd_gpu_items(&call, rows * items, 1, 1);
    ifd_gpu_group(&call, items, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "l2_normalization", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_l2_normalization = {ifd_gpu_is_f32, l2_lower};

static enum ifd_code local_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_local_response_attrs *attrs = node->view.attrs;
    const struct ifd_shape *shape = &node->view.output[0].shape;
    const size_t count = ifd_gpu_elements(shape);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_local_response);
    ifd_gpu_define(&call, "#define ITEMS 1\n");
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_int(&call, (int64_t)last_dim(shape));
    ifd_gpu_int(&call, attrs->radius);
    ifd_gpu_float(&call, attrs->bias);
    ifd_gpu_float(&call, attrs->alpha);
    ifd_gpu_float(&call, attrs->beta);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "local_response_normalization", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_local_response = {ifd_gpu_is_f32, local_lower};

/* ---- cumsum ---- */

static bool cumsum_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    (void)reason;
    return ifd_gpu_number_type(node->input[0].desc->dtype) != NULL;
}

static enum ifd_code cumsum_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_cumsum_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc;
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)in->shape.rank : attrs->axis);
    const size_t row = (size_t)in->shape.dim[axis], rows = ifd_gpu_elements(&in->shape) / row;
    int64_t inner = 1;
    for (uint32_t d = axis + 1; d < in->shape.rank; d++) {
        inner *= in->shape.dim[d];
    }
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_cumsum);
    ifd_gpu_define(&call, "#define T %s\n", /* signed sums may not wrap around */
                   in->dtype == IFD_F32   ? "float"
                   : in->dtype == IFD_S32 ? "uint"
                                          : "ulong");
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    const int64_t numbers[] = {(int64_t)rows, (int64_t)row, inner, attrs->exclusive,
                               attrs->reverse};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(&call, numbers[i]);
    }
    ifd_gpu_items(&call, rows, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "cumsum", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_cumsum = {cumsum_takes, cumsum_lower};

/* ---- top_k ---- */

static bool top_k_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if (!ifd_gpu_number_type(dtype)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

static enum ifd_code top_k_lower(struct ifd_gpu_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *in = node->view.input[0].desc;
    const size_t row = last_dim(&in->shape), rows = ifd_gpu_elements(&in->shape) / row;
    const size_t items = ifd_gpu_group_items(lowering->device, row);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_top_k);
    ifd_gpu_define(&call, "#define ITEMS %zu\n#define T %s\n#define INDEX %s\n", items,
                   ifd_gpu_number_type(in->dtype), ifd_gpu_number_type(node->view.output[1].dtype));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_out(&call, node->output_value[1]);
    ifd_gpu_int(&call, (int64_t)row);
    ifd_gpu_int(&call, (int64_t)last_dim(&node->view.output[0].shape));
    ifd_gpu_items(&call, rows * items, 1, 1);
    ifd_gpu_group(&call, items, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "top_k", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_top_k = {top_k_takes, top_k_lower};

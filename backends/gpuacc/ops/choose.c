/* select, one_hot: elements that conditions or indices choose. */
#include "backends/gpuacc/lower.h"
#include "inferd/op_attrs.h"

static bool has_elements(const struct ifd_desc *desc, struct ifd_err *reason)
{
    if (desc->dtype == IFD_STR || !ifd_gpu_element_type(ifd_dtype_bytes(desc->dtype))) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(desc->dtype));
        return false;
    }
    return true;
}

/* ---- select ---- */

static bool select_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return has_elements(&node->output[0], reason);
}

/* Elements from one to the next along dimension d of the result; 0 where the operand repeats. more:
 * dimensions of the result before those of the operand. */
static int64_t step_along(const struct ifd_shape *operand, uint32_t more, uint32_t d)
{
    int64_t step = 1;
    if (d < more || d - more >= operand->rank || operand->dim[d - more] == 1) {
        return 0;
    }
    for (uint32_t k = d - more + 1; k < operand->rank; k++) {
        step *= operand->dim[k];
    }
    return step;
}

static enum ifd_code select_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_select_attrs *attrs = node->view.attrs;
    const struct ifd_shape *out = &node->view.output[0].shape;
    const size_t count = ifd_gpu_elements(out);
    const uint32_t rank = node->view.input[1].desc->shape.rank;
    const bool leads = attrs->leading && node->view.input[0].desc->shape.rank == 1 && rank > 1;
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_choose);
    ifd_gpu_define(&call, "#define ELEMENT %s\n#define RANK %u\n",
                   ifd_gpu_element_type(ifd_dtype_bytes(node->view.output[0].dtype)), out->rank);
    for (uint32_t i = 0; i < 3; i++) {
        ifd_gpu_in(&call, node->input_value[i]);
    }
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    for (uint32_t i = 0; i < IFD_MAX_RANK; i++) {
        const bool exists = i < out->rank;
        const uint32_t d = exists ? out->rank - 1 - i : 0;
        ifd_gpu_int(&call, exists ? out->dim[d] : 1);
        for (uint32_t k = 0; k < 3; k++) {
            const struct ifd_shape *operand = &node->view.input[k].desc->shape;
            const uint32_t more = out->rank - (k == 0 && leads ? rank : operand->rank);
            ifd_gpu_int(&call, exists ? step_along(operand, more, d) : 0);
        }
    }
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "select", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_select = {select_takes, select_lower};

/* ---- one_hot ---- */

static bool one_hot_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return has_elements(&node->output[0], reason);
}

static enum ifd_code one_hot_lower(struct ifd_gpu_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_one_hot_attrs *attrs = node->view.attrs;
    const struct ifd_desc *out = &node->view.output[0];
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)out->shape.rank : attrs->axis);
    const size_t count = ifd_gpu_elements(&out->shape);
    int64_t inner = 1;
    for (uint32_t d = axis + 1; d < out->shape.rank; d++) {
        inner *= out->shape.dim[d];
    }
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_one_hot);
    ifd_gpu_define(&call, "#define INDEX %s\n#define ELEMENT %s\n",
                   ifd_gpu_number_type(node->view.input[0].desc->dtype),
                   ifd_gpu_element_type(ifd_dtype_bytes(out->dtype)));
    for (uint32_t i = 0; i < 3; i++) {
        ifd_gpu_in(&call, node->input_value[i]);
    }
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_int(&call, attrs->depth);
    ifd_gpu_int(&call, inner);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "one_hot", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_one_hot = {one_hot_takes, one_hot_lower};

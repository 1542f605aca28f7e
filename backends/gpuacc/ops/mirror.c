/* mirror_pad. */
#include "backends/gpuacc/lower.h"
#include "inferd/op_attrs.h"

static bool mirror_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if (dtype == IFD_STR || !ifd_gpu_element_type(ifd_dtype_bytes(dtype))) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

static enum ifd_code mirror_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_mirror_pad_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const size_t count = ifd_gpu_elements(&out->shape);
    int64_t stride = 1;
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_mirror);
    ifd_gpu_define(&call, "#define ELEMENT %s\n#define RANK %u\n",
                   ifd_gpu_element_type(ifd_dtype_bytes(in->dtype)), in->shape.rank);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_int(&call, attrs->symmetric);
    for (uint32_t i = 0; i < IFD_MAX_RANK; i++) {
        const bool exists = i < in->shape.rank;
        const uint32_t d = exists ? in->shape.rank - 1 - i : 0;
        ifd_gpu_int(&call, exists ? out->shape.dim[d] : 1);
        ifd_gpu_int(&call, exists ? in->shape.dim[d] : 1);
        ifd_gpu_int(&call, exists ? attrs->before.value[d] : 0);
        ifd_gpu_int(&call, exists ? stride : 0);
        stride *= exists ? in->shape.dim[d] : 1;
    }
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "mirror_pad", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_mirror_pad = {mirror_takes, mirror_lower};

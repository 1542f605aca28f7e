/* Operators between types: quantize, dequantize, and those that are tables only. */
#include "backends/gpuacc/ops/layer.h"
#include "backends/gpuacc/ops/table.h"

static bool table_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (!ifd_gpu_table_takes(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s to %s, or scales per channel",
                 ifd_dtype_name(node->input[0].desc->dtype), ifd_dtype_name(node->output[0].dtype));
        return false;
    }
    return true;
}

const struct ifd_gpu_driver ifd_gpu_driver_table = {table_takes, ifd_gpu_table_lower};

/* ---- quantize ---- */

static bool is_from_f32(const struct ifd_node_view *node)
{
    const struct ifd_desc *out = &node->output[0];
    return node->input[0].desc->dtype == IFD_F32 && out->quant.count == 1 &&
           (ifd_gpu_is_q8(out->dtype) || out->dtype == IFD_S16);
}

static bool quantize_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return is_from_f32(node) || table_takes(node, reason);
}

static enum ifd_code quantize_lower(struct ifd_gpu_lowering *lowering,
                                    const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_quantize_attrs *attrs = node->view.attrs;
    const struct ifd_desc *out = &node->view.output[0];
    const size_t count = ifd_gpu_elements(&out->shape);
    if (!is_from_f32(&node->view)) {
        return ifd_gpu_table_lower(lowering, node, err);
    }
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_quantize);
    int32_t lowest = 0, highest = 0;
    ifd_gpu_stored_range(out->dtype, &lowest, &highest);
    ifd_gpu_define(&call, "#define Q %s\n#define LOWEST %d\n#define HIGHEST %d\n%s",
                   ifd_gpu_number_type(out->dtype), lowest, highest,
                   attrs->rounds_even ? "#define EVEN\n" : "");
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_float(&call, out->quant.scale[0]);
    ifd_gpu_int(&call, out->quant.zero_point[0]);
    ifd_gpu_items(&call, (count + 3) / 4, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "quantize", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_quantize = {quantize_takes, quantize_lower};

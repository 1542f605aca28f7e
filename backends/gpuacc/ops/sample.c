/* grid_sample of f32. */
#include "backends/gpuacc/lower.h"
#include "inferd/op_attrs.h"

static bool sample_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if (dtype != IFD_F32) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

static enum ifd_code sample_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    static const int taps[] = {
        [IFD_SAMPLE_LINEAR] = 2, [IFD_SAMPLE_NEAREST] = 1, [IFD_SAMPLE_CUBIC] = 4};
    static const int padding[] = {
        [IFD_SAMPLE_ZEROS] = 0, [IFD_SAMPLE_BORDER] = 1, [IFD_SAMPLE_REFLECTION] = 2};
    const struct ifd_grid_sample_attrs *attrs = node->view.attrs;
    const int64_t *in = node->view.input[0].desc->shape.dim, *out = node->view.output[0].shape.dim;
    const int64_t places = out[1] * out[2];
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_grid_sample);
    ifd_gpu_define(&call, "#define TAPS %d\n#define PADDING %d\n#define CORNERS %d\n",
                   taps[attrs->mode], padding[attrs->padding], attrs->align_corners);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_in(&call, node->input_value[1]);
    ifd_gpu_out(&call, node->output_value[0]);
    const int64_t numbers[] = {out[0] * places, places, in[1], in[2], in[3]};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(&call, numbers[i]);
    }
    ifd_gpu_items(&call, (size_t)(in[3] + 3) / 4, (size_t)(out[0] * places), 1);
    return ifd_gpu_add_step(lowering, &call, "grid_sample", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_grid_sample = {sample_takes, sample_lower};

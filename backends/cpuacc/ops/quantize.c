/* quantize and dequantize: between f32 and 8 bits; quantize of 8 bits is a table. */
#include "backends/cpuacc/ops/tail.h"

struct quant_params {
    size_t count;
    float scale;
    int32_t zero;
    float beyond; /* in steps */
};

static void quantize(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame,
                     void (*kernel)(size_t, const float *, float, int32_t, float, ifd_q8 *))
{
    const struct quant_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->count, 64);
    const float *in = ifd_acc_in(step, frame, 0);
    ifd_q8 *out = ifd_acc_out(step, frame);
    kernel(range.end - range.begin, in + range.begin, p->scale, p->zero, p->beyond,
           out + range.begin);
}

static void run_quantize(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    quantize(step, frame, step->kernels->quant.quantize);
}

static void run_quantize_even(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    quantize(step, frame, step->kernels->quant.quantize_even);
}

static void run_dequantize(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct quant_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->count, 64);
    const ifd_q8 *in = ifd_acc_in(step, frame, 0);
    float *out = ifd_acc_out(step, frame);
    step->kernels->quant.dequantize(range.end - range.begin, in + range.begin, p->scale, p->zero,
                                    out + range.begin);
}

static bool quantize_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype in = node->input[0].desc->dtype, out = node->output[0].dtype;
    const bool fits =
        (ifd_acc_is_q8(in) && ifd_acc_is_q8(out)) || (in == IFD_F32 && ifd_acc_is_q8(out));
    if (!fits || node->output[0].quant.count != 1) {
        ifd_fail(reason, IFD_UNSUPPORTED, "types %s to %s", ifd_dtype_name(in),
                 ifd_dtype_name(out));
        return false;
    }
    return true;
}

static bool dequantize_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_desc *in = node->input[0].desc;
    if (!ifd_acc_is_q8(in->dtype) || node->output[0].dtype != IFD_F32 || in->quant.count != 1) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(in->dtype));
        return false;
    }
    return true;
}

static enum ifd_code add_quant(struct ifd_acc_lowering *lowering,
                               const struct ifd_partition_node *node, ifd_acc_step_fn run,
                               const struct ifd_desc *quantized, const char *kernel,
                               struct ifd_err *err)
{
    struct quant_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code =
        ifd_acc_add_step(lowering, run, p, node->input_value, 1, node->output_value[0], &step, err);
    if (code == IFD_OK) {
        const size_t bytes = lowering->base.value[node->output_value[0]].bytes;
        p->count = bytes / ifd_dtype_bytes(node->view.output[0].dtype);
        p->scale = quantized->quant.scale[0];
        p->zero = ifd_acc_zero(quantized);
        p->beyond = quantized->quant.zero_point[0] < 0 ? 1e6f : -1e6f; /* the lowest number wraps */
        step->max_threads = (uint32_t)(p->count / 4096) + 1;
        ifd_acc_name_step(lowering, kernel, 0, "%s", ifd_op_def(node->view.op)->name);
    }
    return code;
}

static enum ifd_code quantize_lower(struct ifd_acc_lowering *lowering,
                                    const struct ifd_partition_node *node, struct ifd_err *err)
{
    if (node->view.input[0].desc->dtype != IFD_F32) {
        return ifd_acc_lower_unary(lowering, node, err);
    }
    const struct ifd_quantize_attrs *attrs = node->view.attrs;
    return add_quant(lowering, node, attrs->rounds_even ? run_quantize_even : run_quantize,
                     &node->view.output[0], "quantize", err);
}

static enum ifd_code dequantize_lower(struct ifd_acc_lowering *lowering,
                                      const struct ifd_partition_node *node, struct ifd_err *err)
{
    return add_quant(lowering, node, run_dequantize, node->view.input[0].desc, "dequantize", err);
}

const struct ifd_acc_driver ifd_acc_quantize = {.takes = quantize_takes, .lower = quantize_lower};
const struct ifd_acc_driver ifd_acc_dequantize = {.takes = dequantize_takes,
                                                  .lower = dequantize_lower};

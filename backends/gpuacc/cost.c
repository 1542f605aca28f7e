/* A launch, plus the longer of arithmetic and memory traffic, at rates that kernels reach rather
 * than those that vendors print. */
#include "backends/gpuacc/cost.h"

#include "backends/gpuacc/lower.h"
#include "inferd/op_attrs.h"

/* Multiply-accumulates per ns: lanes of a compute unit that are kept busy, times its clock. */
static double mac_rate(const struct ifd_gpu_info *info)
{
    return (info->is_gpu ? 24.0 : 2.0) * info->compute_units * info->clock_mhz / 1000.0;
}

/* Bytes per ns. */
static double byte_rate(const struct ifd_gpu_info *info)
{
    return info->shares_memory ? 8.0 : 200.0;
}

static double bytes_of(const struct ifd_desc *desc)
{
    return (double)ifd_gpu_elements(&desc->shape) * (double)ifd_dtype_bytes(desc->dtype);
}

#define LSTM_WEIGHTS   4 /* of the output gate: the input's, the state's */
#define LSTM_RECURRENT 8

/* A group computes a sample of an LSTM layer, step by step; the other units wait. */
static double waiting_units(const struct ifd_gpu_info *info, const struct ifd_node_view *node)
{
    const struct ifd_lstm_attrs *attrs = node->attrs;
    if (node->op != IFD_OP_LSTM) {
        return 1;
    }
    const double samples = (double)node->output[0].shape.dim[attrs->time_major ? 1 : 0];
    return samples < info->compute_units ? info->compute_units / samples : 1;
}

/* Multiply-accumulates per element of the output. */
static double depth_of(const struct ifd_node_view *node)
{
    const struct ifd_shape *weights =
        node->input_count > 1 && node->input[1].desc ? &node->input[1].desc->shape : NULL;
    switch ((unsigned)node->op) {
    case IFD_OP_CONV2D:
    case IFD_OP_FULLY_CONNECTED:
    case IFD_OP_TRANSPOSE_CONV2D:
        return (double)ifd_gpu_elements(weights) / (double)weights->dim[0];
    case IFD_OP_DEPTHWISE_CONV2D:
        return (double)(weights->dim[1] * weights->dim[2]);
    case IFD_OP_LSTM: /* of the output gate, which is always there, as of the other three */
        return 4.0 * (double)(node->input[LSTM_WEIGHTS].desc->shape.dim[1] +
                              node->input[LSTM_RECURRENT].desc->shape.dim[1]);
    default:
        return 1;
    }
}

uint32_t ifd_gpu_cost(const struct ifd_device *device, const struct ifd_node_view *node)
{
    double bytes = 0, macs = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        bytes += node->input[i].desc ? bytes_of(node->input[i].desc) : 0;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        bytes += bytes_of(&node->output[i]);
        macs += (double)ifd_gpu_elements(&node->output[i].shape) * depth_of(node);
    }
    const double arithmetic = macs / mac_rate(&device->info) * waiting_units(&device->info, node);
    const double traffic = bytes / byte_rate(&device->info);
    const double ns = IFD_GPU_LAUNCH_NS + (arithmetic > traffic ? arithmetic : traffic);
    return ns < (double)UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

uint64_t ifd_gpu_transfer_ns(struct ifd_device *device, size_t bytes)
{
    return device->info.shares_memory ? 5000 + bytes / 8 : 15000 + bytes / 16;
}

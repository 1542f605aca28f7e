/* Counts from shapes; doubles, because a hostile shape overflows nothing. */
#include "backends/lowering/work.h"

static double elements(const struct ifd_desc *desc)
{
    double count = 1;
    for (uint32_t i = 0; i < desc->shape.rank; i++) {
        count *= (double)desc->shape.dim[i];
    }
    return count;
}

static double bytes(const struct ifd_desc *desc)
{
    return elements(desc) * (double)ifd_dtype_bytes(desc->dtype);
}

/* Each output element is a sum over the weights of its channel. */
static double macs_of_weights(const struct ifd_op_weights *weights,
                              const struct ifd_node_view *node)
{
    const struct ifd_desc *w =
        weights->input < node->input_count ? node->input[weights->input].desc : NULL;
    if (!w || w->shape.rank == 0) {
        return 0;
    }
    const double channels = (double)w->shape.dim[weights->axis == 0 ? 0 : w->shape.rank - 1];
    return channels > 0 ? elements(&node->output[0]) * elements(w) / channels : 0;
}

/* [m,k] × [k,n]: as m·k elements come in for m·n that go out. */
static double macs_of_matrices(const struct ifd_node_view *node)
{
    const struct ifd_shape *out = &node->output[0].shape;
    return out->rank > 0 ? elements(node->input[0].desc) * (double)out->dim[out->rank - 1] : 0;
}

struct ifd_low_work ifd_low_work_of(const struct ifd_op_def *def, const struct ifd_node_view *node)
{
    struct ifd_low_work work = {0};
    for (uint32_t i = 0; i < node->input_count; i++) {
        work.bytes += node->input[i].desc ? bytes(node->input[i].desc) : 0;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        work.bytes += bytes(&node->output[i]);
    }
    if (def->weights) {
        work.macs = macs_of_weights(def->weights, node);
    } else if (node->op == IFD_OP_BATCH_MATMUL) {
        work.macs = macs_of_matrices(node);
    }
    return work;
}

uint32_t ifd_low_time_ns(struct ifd_low_work work, struct ifd_low_rate rate)
{
    const double ns =
        rate.ns_per_node + work.macs / rate.macs_per_ns + work.bytes / rate.bytes_per_ns;
    return ns < 1 ? 1 : ns < (double)UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

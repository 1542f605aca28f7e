/* Whether 8-bit results are those of the reference kernels without being asked for: where that is
 * predicted to cost less than 3 %, because sums are long for what the CPU multiplies per result. */
#include "backends/cpuacc/rounding.h"

#include "backends/cpuacc/native.h"

/* Exact results may cost this share of a model's time. */
#define COST_MAX 0.03

/* Measured on a kind of CPU: multiply-accumulates per ns, and the additional ns of each exact
 * result. */
struct rates {
    uint32_t flags;
    double product, depthwise;
    double output, sum, scaled; /* of products; of sums and products of two tensors */
};

static const struct rates *find_rates(uint32_t flags)
{
    static const struct rates rates[] = {
        {IFD_CPU_AMX_INT8, 750, 60, 0.062, 0.057, 0.3},
        {IFD_CPU_AVX512_VNNI, 280, 60, 0.062, 0.057, 0.3},
        {IFD_CPU_AVX2, 63, 14, 0.1, 0.55, 0.6},
    };
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        if (flags & rates[i].flags) {
            return &rates[i];
        }
    }
    return NULL; /* nothing was measured */
}

/* A fully connected result is rounded with a real number. */
#define REAL_NS 2.0

static double elements(const struct ifd_desc *desc)
{
    double count = 1;
    for (uint32_t d = 0; d < desc->shape.rank; d++) {
        count *= (double)desc->shape.dim[d];
    }
    return count;
}

/* Adds a node's time, and the additional time of exact results. */
static void add_node(const struct ifd_node_view *node, const struct rates *rates, double *time_ns,
                     double *more_ns)
{
    const double outputs = elements(&node->output[0]);
    const struct ifd_desc *weights = node->input_count > 1 ? node->input[1].desc : NULL;
    switch (node->op) {
    case IFD_OP_CONV2D:
    case IFD_OP_FULLY_CONNECTED:
        *time_ns += outputs * elements(weights) / (double)weights->shape.dim[0] / rates->product;
        *more_ns += outputs * (node->op == IFD_OP_CONV2D ? rates->output : REAL_NS);
        break;
    case IFD_OP_DEPTHWISE_CONV2D:
        *time_ns +=
            outputs * (double)(weights->shape.dim[1] * weights->shape.dim[2]) / rates->depthwise;
        *more_ns += outputs * rates->output;
        break;
    case IFD_OP_TRANSPOSE_CONV2D:
        *time_ns += elements(node->input[2].desc) * elements(weights) /
                    (double)weights->shape.dim[3] / rates->product;
        *more_ns += outputs * rates->output;
        break;
    case IFD_OP_ADD:
    case IFD_OP_SUB:
        *more_ns += outputs * rates->sum;
        break;
    case IFD_OP_MUL:
        *more_ns += outputs * rates->scaled;
        break;
    default:
        break;
    }
}

bool ifd_acc_rounds_exactly(const struct ifd_partition_view *view, const struct ifd_host *host)
{
    const struct rates *rates = find_rates(host->cpu.flags);
    double time_ns = 0, more_ns = 0;
    if (view->exact || host->fast || !rates) {
        return view->exact;
    }
    for (uint32_t n = 0; n < view->node_count; n++) {
        const struct ifd_node_view *node = &view->node[n].view;
        if (ifd_acc_is_q8(node->output[0].dtype)) {
            add_node(node, rates, &time_ns, &more_ns);
        }
    }
    return more_ns < COST_MAX * time_ns;
}

/** How long a node takes, roughly: what ifd_backend.cost() says. The planner compares it with the
 *  copies that a device causes, so the order of magnitude is enough. */
#ifndef INFERD_BACKENDS_LOWERING_WORK_H
#define INFERD_BACKENDS_LOWERING_WORK_H

#include "inferd/backend.h"

/** Multiply-accumulates (0 if the operator has no weights and multiplies no matrices), and bytes of
 *  all operands and results. */
struct ifd_low_work {
    double macs, bytes;
};

/** def: of the node's operator. */
struct ifd_low_work ifd_low_work_of(const struct ifd_op_def *def, const struct ifd_node_view *node);

/** Of a backend, for nodes of some size. */
struct ifd_low_rate {
    double ns_per_node, macs_per_ns, bytes_per_ns;
};

/** At least 1. */
uint32_t ifd_low_time_ns(struct ifd_low_work work, struct ifd_low_rate rate);

#endif

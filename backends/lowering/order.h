/** The order in which nodes become steps. */
#ifndef INFERD_BACKENDS_LOWERING_ORDER_H
#define INFERD_BACKENDS_LOWERING_ORDER_H

#include "backends/lowering/values.h"

/** The nodes of lowering->view in the order in which to lower them, in the arena; NULL without
 *  memory. Before any node is lowered. */
const uint32_t *ifd_low_order_nodes(struct ifd_lowering *lowering);

#endif

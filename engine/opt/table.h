/** Nodes that compute a number of 8 bits from one number of 8 bits, as a list of 256 results. */
#ifndef INFERD_ENGINE_OPT_TABLE_H
#define INFERD_ENGINE_OPT_TABLE_H

#include "engine/opt/pass_impl.h"

/** Longer chains are left as they are. */
#define IFD_TABLE_NODES 32

/** Nodes in the order in which they run. All but source are constants of one number or made by a
 *  node of the chain; each computes element by element. */
struct ifd_table_chain {
    uint32_t source; /* the value of 8 bits that they begin with */
    struct ifd_node node[IFD_TABLE_NODES];
    uint32_t count;
};

/** Is this a value of 8 bits with one scale at most? */
bool ifd_table_is_stored(const struct ifd_desc *desc);

/** Makes *node, which has one output, a table of what the chain computes. result: the description
 *  of the chain's last output, whose shape does not matter. *ret_done is false, and nothing is
 *  changed, if a kernel refuses numbers. scratch takes a few kilobytes for each node of the chain.
 *  Errors: NOMEM, TOO_LARGE (arena cap). */
IFD_NODISCARD enum ifd_code ifd_table_replace(struct ifd_graph *graph,
                                              const struct ifd_table_chain *chain,
                                              struct ifd_node *node, struct ifd_arena *scratch,
                                              bool *ret_done, struct ifd_err *err);

#endif

/** Latencies in fixed memory: how many fell into which of 7,424 ranges, each less than 1 % wide.
 *  Thread: one at a time. */
#ifndef INFERD_CLIENTS_C_SPREAD_H
#define INFERD_CLIENTS_C_SPREAD_H

#include <stdint.h>

enum {
    IFD_SPREAD_STEP_BITS = 7, /* ranges of a power of two: 128 */
    IFD_SPREAD_RANGES = (64 - IFD_SPREAD_STEP_BITS + 1) << IFD_SPREAD_STEP_BITS
};

struct ifd_spread {
    uint64_t count, sum_ns, max_ns;
    uint64_t in_range[IFD_SPREAD_RANGES];
};

void ifd_spread_add(struct ifd_spread *spread, uint64_t ns);
/** Adds all of other. */
void ifd_spread_merge(struct ifd_spread *spread, const struct ifd_spread *other);
/** The least bound that this share (0 … 1) of the values does not exceed, at most 1 % above the
 *  exact one; 0 without values. */
uint64_t ifd_spread_at(const struct ifd_spread *spread, double share);

#endif

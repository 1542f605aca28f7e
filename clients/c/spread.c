/* Ranges as floating-point numbers have them: 2^7 equal steps for each power of two. */
#include "spread.h"

static unsigned range_of(uint64_t ns)
{
    unsigned power = 0;
    while (ns >> power >= (uint64_t)2 << IFD_SPREAD_STEP_BITS) {
        power++;
    }
    return (power << IFD_SPREAD_STEP_BITS) + (unsigned)(ns >> power);
}

/* The largest value of a range. */
static uint64_t end_of(unsigned range)
{
    const unsigned steps = 1U << IFD_SPREAD_STEP_BITS;
    if (range < 2 * steps) {
        return range;
    }
    const unsigned power = range / steps - 1;
    return ((uint64_t)(range - power * steps + 1) << power) - 1;
}

void ifd_spread_add(struct ifd_spread *spread, uint64_t ns)
{
    spread->count++;
    spread->sum_ns += ns;
    spread->max_ns = ns > spread->max_ns ? ns : spread->max_ns;
    spread->in_range[range_of(ns)]++;
}

void ifd_spread_merge(struct ifd_spread *spread, const struct ifd_spread *other)
{
    spread->count += other->count;
    spread->sum_ns += other->sum_ns;
    spread->max_ns = other->max_ns > spread->max_ns ? other->max_ns : spread->max_ns;
    for (unsigned i = 0; i < IFD_SPREAD_RANGES; i++) {
        spread->in_range[i] += other->in_range[i];
    }
}

uint64_t ifd_spread_at(const struct ifd_spread *spread, double share)
{
    const double wanted = share * (double)spread->count;
    uint64_t seen = 0;
    for (unsigned i = 0; i < IFD_SPREAD_RANGES; i++) {
        seen += spread->in_range[i];
        if (seen > 0 && (double)seen >= wanted) {
            return end_of(i) < spread->max_ns ? end_of(i) : spread->max_ns;
        }
    }
    return spread->max_ns;
}

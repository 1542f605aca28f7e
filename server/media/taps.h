/** Inside server/media: which source pixels count how much for a target pixel, along one axis.
 *  Thread: one at a time. */
#ifndef INFERD_SERVER_MEDIA_TAPS_H
#define INFERD_SERVER_MEDIA_TAPS_H

#include "inferd/alloc.h"
#include "inferd/status.h"

/** A target pixel: count source pixels from first on, with these weights, whose sum is 1. */
struct ifd_tap {
    uint32_t first, count;
    /* Along columns: one for each pixel, and the same in units of 1 / 65536. Along rows: one for
     * each channel of each pixel, then zeros to a multiple of eight; octets counts eights. */
    const float *weight;
    const uint16_t *fixed;
    uint32_t octets;
};

struct ifd_taps {
    struct ifd_tap *tap; /* by target pixel */
    uint32_t count;
    void *memory;
    size_t memory_bytes;
};

/** Source pixels [low, high) hold the part from begin to begin + length, which becomes count target
 *  pixels. channels of a pixel along a row; 0 along a column. Release with ifd_taps_free. Errors:
 *  NOMEM. */
IFD_NODISCARD enum ifd_code ifd_taps_make(double begin, double length, uint32_t low, uint32_t high,
                                          uint32_t count, uint32_t channels,
                                          const struct ifd_alloc *alloc, struct ifd_taps *ret,
                                          struct ifd_err *err);
void ifd_taps_free(struct ifd_taps *taps, const struct ifd_alloc *alloc);

#endif

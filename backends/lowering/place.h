/** Where a tensor lies at run time. Each run resolves places against its binding, so one partition
 *  serves any number of instances at once. */
#ifndef INFERD_BACKENDS_LOWERING_PLACE_H
#define INFERD_BACKENDS_LOWERING_PLACE_H

#include "inferd/backend.h"

enum ifd_low_where {
    IFD_LOW_ABSENT,
    IFD_LOW_CONSTANT, /* data: the model's memory, or a copy of the backend's */
    IFD_LOW_INPUT,    /* binding->input[slot] + offset */
    IFD_LOW_OUTPUT,   /* binding->output[slot] + offset */
    IFD_LOW_SCRATCH   /* scratch + offset */
};

struct ifd_low_place {
    enum ifd_low_where where;
    uint32_t slot;
    size_t offset;
    const void *data;
};

/** The tensor's first byte in a run; NULL for none. scratch: of the run. Outputs and scratch may be
 *  written. */
static inline const void *ifd_low_resolve(const struct ifd_low_place *place,
                                          const struct ifd_binding *binding, uint8_t *scratch)
{
    switch (place->where) {
    case IFD_LOW_CONSTANT:
        return place->data;
    case IFD_LOW_INPUT:
        return (const uint8_t *)binding->input[place->slot] + place->offset;
    case IFD_LOW_OUTPUT:
        return (const uint8_t *)binding->output[place->slot] + place->offset;
    case IFD_LOW_SCRATCH:
        return scratch + place->offset;
    case IFD_LOW_ABSENT:
        break;
    }
    return NULL;
}

#endif

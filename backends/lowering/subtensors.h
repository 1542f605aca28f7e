/** Values that live inside of others, where an operator would only move them there. */
#ifndef INFERD_BACKENDS_LOWERING_SUBTENSORS_H
#define INFERD_BACKENDS_LOWERING_SUBTENSORS_H

#include "backends/lowering/moves.h"

/** What the backend accepts of the view's nodes. */
struct ifd_low_accepts {
    const void *context;
    /** Are its elements moved as ifd_low_move() says? */
    bool (*moves)(const void *context, uint32_t node);
    /** Can it read the rows of an input where they lie further apart than they are long? */
    bool (*reads_apart)(const void *context, uint32_t node, uint32_t input);
};

/** Lets values live inside of others where an operator only moves elements between them. Before any
 *  node is lowered. */
void ifd_low_join_subtensors(struct ifd_lowering *lowering, const struct ifd_low_accepts *accepts);

/** Lets value live inside of the concatenation along the last dimension that alone reads it, if
 *  possible: the rows of *stride elements that a step writes are then a greater *stride apart,
 *  which is unchanged otherwise. Before the step that makes the value is added. */
bool ifd_low_take_slice(struct ifd_lowering *lowering, uint32_t value,
                        const struct ifd_low_accepts *accepts, size_t *stride);

#endif

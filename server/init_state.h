/** The part of a new config that proposes what the server could keep within a sequence. Thread:
 *  any. */
#ifndef INFERD_SERVER_INIT_STATE_H
#define INFERD_SERVER_INIT_STATE_H

#include "engine/base/buf.h"
#include "server/model/desc.h"

/** Adds an empty line and, if the model seems to have a state, a `sequence_batching` whose lines
 *  are comments: whether it is one, only its user knows. */
void ifd_init_add_states(struct ifd_buf *out, const struct ifd_model_desc *desc);

#endif

/** State that requests of a sequence leave to each other (sequence_batching in a config).
 *
 *  A client names its sequence, starts and ends it. State belongs to a version of a model and goes
 *  with it. A sequence that no request used for max_sequence_idle_microseconds is forgotten.
 *  Thread: loop. */
#ifndef INFERD_SERVER_SERVE_SEQUENCES_H
#define INFERD_SERVER_SERVE_SEQUENCES_H

#include "api/core/service.h"

struct ifd_sequences;
struct ifd_sequence;

/** desc outlives it. alloc: for states. *ret is NULL if the model has no sequences. Errors: NOMEM,
 *  TOO_LARGE. */
IFD_NODISCARD enum ifd_code ifd_sequences_create(const struct ifd_model_desc *desc,
                                                 const struct ifd_alloc *alloc,
                                                 struct ifd_sequences **ret, struct ifd_err *err);
/** No request of a sequence runs. NULL is fine. */
void ifd_sequences_destroy(struct ifd_sequences *sequences);

/** A request of a sequence will run: gives it the inputs that are states. ret_wanted: its wanted
 *  outputs and those that are states, in its arena. Until ifd_sequence_settle no other request of
 *  the sequence can begin.
 *  Errors: INVALID (no id, no start, a batch), BUSY (too many sequences, or its last request still
 *  runs), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_sequences_begin(struct ifd_sequences *sequences,
                                                struct ifd_infer_request *request, uint64_t now_ns,
                                                struct ifd_sequence **ret, const bool **ret_wanted,
                                                struct ifd_err *err);
/** It ran, and its outputs become the state; or it did not, and the state stays. A state that
 *  became another size ends the sequence. */
void ifd_sequence_settle(struct ifd_sequences *sequences, struct ifd_sequence *sequence,
                         const struct ifd_infer_request *request, bool has_run, uint64_t now_ns);

#endif

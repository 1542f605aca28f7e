/** Completes a config from its model file and refuses contradictions. Thread: any. */
#ifndef INFERD_SERVER_REPO_COMPLETE_H
#define INFERD_SERVER_REPO_COMPLETE_H

#include "inferd/engine.h"
#include "server/repo/manifest.h"

/** Afterwards manifest has every input and output of the model, in the model's order, with type and
 *  shape.
 *
 *  max_batch_size 0 (or no config): shapes are those of the file. max_batch_size ≥ 1: shapes are
 *  those of one sample, and all inputs and outputs must have a batch dimension. A config may fix a
 *  dimension that the file leaves open, not the reverse. Errors: INVALID with the name and both
 *  sides; NOMEM. */
IFD_NODISCARD enum ifd_code ifd_manifest_complete(struct ifd_model_desc *manifest,
                                                  const struct ifd_model_info *info,
                                                  struct ifd_arena *arena, struct ifd_err *err);

/** The same for backend "identity", without a file: the config must have everything, and output i
 *  must have type and shape of input i. */
IFD_NODISCARD enum ifd_code ifd_manifest_complete_identity(struct ifd_model_desc *manifest,
                                                           struct ifd_err *err);

#endif

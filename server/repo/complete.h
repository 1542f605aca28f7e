/** A config and the model it is for: fills in what the config leaves out, refuses what contradicts
 *  the file. Thread: any. */
#ifndef INFERD_SERVER_REPO_COMPLETE_H
#define INFERD_SERVER_REPO_COMPLETE_H

#include "inferd/engine.h"
#include "server/repo/manifest.h"

/** Afterwards manifest lists every input and output of the model, in the model's order, with type
 *  and dims.
 *
 *  max_batch_size 0 (or no config): dims are the file's, whole. max_batch_size ≥ 1: dims are those
 *  of one sample, which needs a model whose inputs and outputs all have a batch dimension. A config
 *  may fix a dimension that the file leaves open, not the other way round. Errors: INVALID with the
 *  name, what the config says and what the file says; NOMEM. */
IFD_NODISCARD enum ifd_code ifd_manifest_complete(struct ifd_model_desc *manifest,
                                                  const struct ifd_model_info *info,
                                                  struct ifd_arena *arena, struct ifd_err *err);

/** The same for backend "identity": there is no file, so the config must say everything, and output
 *  i must be like input i. */
IFD_NODISCARD enum ifd_code ifd_manifest_complete_identity(struct ifd_model_desc *manifest,
                                                           struct ifd_err *err);

#endif

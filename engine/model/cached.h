/** A model's packed weights in the engine's cache. Thread: one at a time, while the model is
 *  built. */
#ifndef INFERD_ENGINE_MODEL_CACHED_H
#define INFERD_ENGINE_MODEL_CACHED_H

#include "engine/model/model.h"

/** Looks for packed weights of an earlier start. Defects are a note (info.cache), never an
 *  error. */
void ifd_model_find_cached(struct ifd_model *model, const struct ifd_model_options *options);
/** Shows them to the backends of a plan. */
void ifd_model_offer_cached(const struct ifd_model *model, const struct ifd_plan *plan);
/** Sets info.is_from_cache and info.cache; writes what was packed now. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_model_settle_cached(struct ifd_model *model, struct ifd_err *err);

#endif

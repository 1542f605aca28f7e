/** The description of a model (struct ifd_model_info). Thread: one at a time, while the model is
 *  built. */
#ifndef INFERD_ENGINE_MODEL_PORTS_H
#define INFERD_ENGINE_MODEL_PORTS_H

#include "engine/model/model.h"

/** Describes the optimized graph: ports, batch, bytes of constants. Errors: TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_model_describe(struct ifd_model *model,
                                               const struct ifd_parsed *parsed,
                                               struct ifd_err *err);
/** Adds what plan[0] knows: memory, steps, precision, rounding. */
void ifd_model_describe_plan(struct ifd_model *model);

#endif

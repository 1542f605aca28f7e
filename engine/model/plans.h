/** The plans of a model, one for each batch size. */
#ifndef INFERD_ENGINE_MODEL_PLANS_H
#define INFERD_ENGINE_MODEL_PLANS_H

#include "engine/model/model.h"

/** Makes plan[index] for a batch size; 0: that of the file. Errors: those of planning and of
 *  backends. */
IFD_NODISCARD enum ifd_code ifd_model_add_plan(struct ifd_model *model, uint32_t index,
                                               int64_t batch, struct ifd_err *err);
/** Makes the plans up to max_batch that are not there yet; ret_count: plans that an instance can
 *  use. Where a backend cannot make one any more, the smaller ones remain. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_model_complete_plans(struct ifd_model *model, uint32_t max_batch,
                                                     uint32_t *ret_count, struct ifd_err *err);
/** The batch of plan[0]; 0: that of the graph. */
int64_t ifd_model_plan_batch(const struct ifd_model *model);
/** The plan of the spare instances, made at the first call; shares nothing with the others. Errors:
 *  those of planning. Thread: any. */
IFD_NODISCARD enum ifd_code ifd_model_spare_plan(struct ifd_model *model,
                                                 const struct ifd_executable **ret,
                                                 struct ifd_err *err);
void ifd_model_destroy_plans(struct ifd_model *model);

#endif

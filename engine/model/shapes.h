/** The plans of an instance whose model has open dimensions: a variant of the model for each set of
 *  input shapes, made when a run first brings them, the least recently used released first. Thread:
 *  that of the instance. */
#ifndef INFERD_ENGINE_MODEL_SHAPES_H
#define INFERD_ENGINE_MODEL_SHAPES_H

#include "engine/model/model.h"

/** Most variants of an instance; before it come the bytes that they may take. */
#define IFD_SHAPES_MAX 1024

/** Sets instance->shapes. The instance is that of the model's own plan, which serves the example
 *  shapes. max_batch: of requests that share a run. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_shapes_create(struct ifd_model *model,
                                              struct ifd_instance *instance, uint32_t max_batch,
                                              struct ifd_err *err);
void ifd_shapes_destroy(struct ifd_shapes *shapes); /* NULL is fine */

#endif

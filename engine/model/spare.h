/** The spare instance of an instance that uses devices: the same model at batch 1, without backends
 *  that have memory of their own. Made when a device is lost, and kept. Thread: that of the
 *  instance. */
#ifndef INFERD_ENGINE_MODEL_SPARE_H
#define INFERD_ENGINE_MODEL_SPARE_H

#include "engine/model/model.h"

/** Promises a spare instance. Its memory is in no budget. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_spare_create(struct ifd_model *model,
                                             const struct ifd_instance_options *options,
                                             struct ifd_spare **ret, struct ifd_err *err);
void ifd_spare_destroy(struct ifd_spare *spare); /* NULL is fine */

#endif

/** Inputs that a request leaves out, and that the model's file has a value for. Thread: any. */
#ifndef INFERD_SERVER_SERVE_ABSENT_H
#define INFERD_SERVER_SERVE_ABSENT_H

#include "engine/base/arena.h"
#include "inferd/engine.h"

/** input, or a copy of it in arena with the file's values for those that are absent. NULL: no
 *  memory. */
const struct ifd_tensor *ifd_fill_absent(const struct ifd_model_info *info,
                                         const struct ifd_tensor *input, struct ifd_arena *arena);

#endif

/** What operators along a dimension share. */
#ifndef INFERD_BACKENDS_GPUACC_OPS_ROWS_H
#define INFERD_BACKENDS_GPUACC_OPS_ROWS_H

#include "backends/gpuacc/lower.h"

/** Work items of a group: a power of two, not more than the device allows or than there is to
 *  share. */
size_t ifd_gpu_group_items(const struct ifd_device *device, size_t count);

/** Is input 0 f32? If not, says so. */
bool ifd_gpu_is_f32(const struct ifd_node_view *node, struct ifd_err *reason);

#endif

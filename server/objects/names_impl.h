/** Lists of names that presets use: classes, keypoints, skeletons. Thread: any. */
#ifndef INFERD_SERVER_OBJECTS_NAMES_IMPL_H
#define INFERD_SERVER_OBJECTS_NAMES_IMPL_H

#include "server/model/objects.h"

/** Names of classes or keypoints; false if no list is called so. */
bool ifd_names_builtin(struct ifd_str name, const char *const **ret, uint32_t *ret_count);
/** Skeleton called name; false if there is none. */
bool ifd_bones_builtin(struct ifd_str name, const struct ifd_bone **ret, uint32_t *ret_count);

#endif

/** Names that are safe on the wire, on disk, in logs and in metrics. Thread: any. */
#ifndef INFERD_ENGINE_BASE_NAME_H
#define INFERD_ENGINE_BASE_NAME_H

#include "inferd/types.h"

#define IFD_NAME_BYTES_MAX 128

/** 1 … IFD_NAME_BYTES_MAX letters, digits or . _ - +, no dot in front. */
bool ifd_name_is_valid(struct ifd_str name);

#endif

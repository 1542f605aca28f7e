/** What a model may be called, on the wire and on disk. Thread: any. */
#ifndef INFERD_ENGINE_BASE_NAME_H
#define INFERD_ENGINE_BASE_NAME_H

#include "inferd/types.h"

#define IFD_NAME_BYTES_MAX 128

/** 1 … IFD_NAME_BYTES_MAX letters, digits or . _ - +, no dot in front. */
bool ifd_name_is_valid(struct ifd_str name);

#endif

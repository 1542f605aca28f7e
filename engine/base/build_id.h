/** The GNU build id: a hash of the program's content, written by the linker. It tells builds
 *  apart. */
#ifndef INFERD_ENGINE_BASE_BUILD_ID_H
#define INFERD_ENGINE_BASE_BUILD_ID_H

#include <stddef.h>
#include <stdint.h>

#define IFD_BUILD_ID_BYTES 20

/** The first bytes of the id of the program or library that holds this function; the rest is
 *  zeroed. Returns the number of bytes written, 0 if there is no id. Thread: any. */
size_t ifd_build_id(uint8_t ret_id[IFD_BUILD_ID_BYTES]);

#endif

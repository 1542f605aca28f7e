/** A folder of packed weights, and who may have written its files: this user and root, where nobody
 *  else can write. Links are not followed. Thread: any. */
#ifndef INFERD_ENGINE_CACHE_FOLDER_H
#define INFERD_ENGINE_CACHE_FOLDER_H

#include <sys/stat.h>

#include "engine/base/mac.h"
#include "inferd/status.h"

/** Opens a folder; creates it (0700) if its parent exists. Errors: UNAVAILABLE with the reason. */
IFD_NODISCARD enum ifd_code ifd_cache_folder_open(const char *path, int *ret_folder,
                                                  struct ifd_err *err);

/** Opens a regular file of it for reading. is_secret: others must not be able to read it. Errors:
 *  NOT_FOUND; UNAVAILABLE with the reason. */
IFD_NODISCARD enum ifd_code ifd_cache_folder_file(int folder, const char *name, bool is_secret,
                                                  int *ret_fd, struct stat *ret_info,
                                                  struct ifd_err *err);

/** The folder's secret key; created if it is absent or truncated. Errors: UNAVAILABLE with the
 *  reason; CORRUPT: truncated, and the folder cannot be written. */
IFD_NODISCARD enum ifd_code ifd_cache_folder_key(int folder, uint8_t ret_key[IFD_MAC_KEY_BYTES],
                                                 struct ifd_err *err);

#endif

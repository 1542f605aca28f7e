/** Room in a folder of packed weights: how much its files take, and which go when there is too
 *  little.
 *
 *  A name has 16 hexadecimal digits, with ".new" behind them while the file is written. The least
 *  recently used file goes first, by its time of modification, which each use sets: most systems do
 *  not keep the time of access. A process that uses a file holds a lock on it (flock). Files in use
 *  stay, since removing them would free nothing, and so do files that are being written. Thread:
 *  any. */
#ifndef INFERD_ENGINE_CACHE_ROOM_H
#define INFERD_ENGINE_CACHE_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "inferd/status.h"

/** Marks an open file as in use until it is closed, and as used now. */
void ifd_cache_use(int file);

/** Has a file that is being written not changed for so long that its writer must be dead? */
bool ifd_cache_is_stale(const struct stat *info);

/** Removes files until all together have at most limit_bytes. name: NULL, or a file that "name.new"
 *  will replace; it does not count. Errors: TOO_LARGE if too many files are in use or cannot be
 *  removed; UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_cache_make_room(int folder, uint64_t limit_bytes, const char *name,
                                                struct ifd_err *err);

#endif

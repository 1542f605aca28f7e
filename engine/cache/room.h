/** Room in a folder of packed weights: what its files take, and which of them go when there is too little.
 *
 *  Files are told apart by their names: 16 hexadecimal digits, with ".new" behind them while they are written. Those that
 *  have not been used for longest go first (by the time of their latest change, which a user sets anew: the time of access
 *  is not kept on most systems). Who uses a file holds a lock on it (flock), in this process or another: it stays, since
 *  removing it would free nothing. What is being written stays, too. Thread: any. */
#ifndef INFERD_ENGINE_CACHE_ROOM_H
#define INFERD_ENGINE_CACHE_ROOM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "inferd/status.h"

/** Marks an open file as used, until it is closed, and the moment. */
void ifd_cache_use(int file);

/** Has a file that is being written not grown for so long that its writer must be dead? */
bool ifd_cache_is_stale(const struct stat *info);

/** Removes files until all together have limit_bytes at most. name: a file that "name.new" will replace, which does not
 *  count; or NULL. Errors: TOO_LARGE if too many of them are in use or cannot be removed; UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_cache_make_room(int folder, uint64_t limit_bytes, const char *name,
                                                struct ifd_err *err);

#endif

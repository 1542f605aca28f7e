/** Opens files beneath a folder, for paths that somebody else chose.
 *
 *  openat2(RESOLVE_BENEATH): a symbolic link may point anywhere inside the folder; one that is
 *  absolute, leads out or to itself is refused, and so is "..". Kernels without openat2 (before
 *  Linux 5.6) follow no link at all. Thread: any. */
#ifndef INFERD_ENGINE_BASE_BENEATH_H
#define INFERD_ENGINE_BASE_BENEATH_H

#include "inferd/types.h"

/** True if path stays below a folder: relative, no empty part, no "." or "..". */
bool ifd_path_is_inside(struct ifd_str path);
/** A descriptor, closed on exec, or -1 with errno. flags: of open(2). path "." is the folder. */
int ifd_open_beneath(int folder, const char *path, int flags);
/** Is this errno one of a link that leads out, or of too many? */
bool ifd_is_bad_link(int error);

#endif

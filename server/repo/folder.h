/** The only place that turns names in a repository into files.
 *
 *  Everything is opened beneath a repository's root (engine/base/beneath.h). A symbolic link may
 *  point anywhere inside the same repository, as Kubernetes' "..data" does; devices and FIFOs are
 *  refused. Thread: any. */
#ifndef INFERD_SERVER_REPO_FOLDER_H
#define INFERD_SERVER_REPO_FOLDER_H

#include <sys/stat.h>

#include "engine/base/arena.h"
#include "engine/base/beneath.h"

/** Most entries of a folder. */
#define IFD_FOLDER_NAMES_MAX 4096

struct ifd_folder_names {
    const char **name;
    uint32_t count;
};

/** Opens a repository's folder. Errors: NOT_FOUND, IO. */
IFD_NODISCARD enum ifd_code ifd_folder_open(const char *path, int *ret_root, struct ifd_err *err);
void ifd_folder_close(int root);
/** True if both paths lead to the same folder. */
bool ifd_folder_is_same(const char *path, const char *other);

/** Copies a regular file into memory; later changes of the file have no effect. Release with
 *  ifd_release_tensor. Errors: NOT_FOUND, IO (also: it shrank meanwhile, it leads out of the
 *  repository), TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_folder_read(int root, const char *path, size_t limit_bytes,
                                            const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                                            struct ifd_err *err);

/** Opens a regular file for reading; close(2) it. Errors: NOT_FOUND, IO, INVALID (it leads out of
 *  the repository). */
IFD_NODISCARD enum ifd_code ifd_folder_open_file(int root, const char *path, int *ret_fd,
                                                 struct ifd_err *err);

/** Lists the names in a folder, sorted, without those that begin with '.'. Errors: NOT_FOUND, IO,
 *  TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_folder_list(int root, const char *path, struct ifd_arena *arena,
                                            struct ifd_folder_names *ret, struct ifd_err *err);

/** stat that follows links. False with errno. */
bool ifd_folder_stat(int root, const char *path, struct stat *ret);
/** Reason for an errno of openat2 that is about links ("leads out of the repository"); NULL:
 *  another errno. */
const char *ifd_folder_bad_link(int error);
bool ifd_folder_is_folder(int root, const char *path);

/** "dir/name" in the arena; NULL without memory. */
const char *ifd_folder_join(struct ifd_arena *arena, const char *dir, const char *name);

#endif

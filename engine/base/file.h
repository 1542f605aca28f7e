/** Whole files, size-capped. Thread: any. */
#ifndef INFERD_ENGINE_BASE_FILE_H
#define INFERD_ENGINE_BASE_FILE_H

#include "inferd/alloc.h"
#include "inferd/status.h"

/** Reads a regular file into memory that is aligned to IFD_TENSOR_ALIGN and padded (so that a model's constants can be
 *  used in place, and so that a file that is cut while we run cannot hurt). Give back with ifd_release_tensor(alloc,
 *  (void *)ret->data, ret->size). Errors: NOT_FOUND, IO, TOO_LARGE (names the limit), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_file_read(const char *path, size_t limit_bytes,
                                          const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                                          struct ifd_err *err);
/** The same from an open descriptor; name is for messages. The descriptor stays open. */
IFD_NODISCARD enum ifd_code ifd_file_read_fd(int fd, const char *name, size_t limit_bytes,
                                             const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                                             struct ifd_err *err);

/** A file that is read in place. */
struct ifd_file {
    struct ifd_bytes content; /* aligned and padded as that of ifd_file_read */
    const struct ifd_alloc *alloc;
    size_t mapped_bytes; /* 0: content is a copy */
};

/** Maps a regular file if nobody but this user and root may write it, reads it otherwise: a file that changes after it was
 *  checked is an attack. For commands that end soon: who truncates the mapped file kills them with SIGBUS. Errors as
 *  ifd_file_read. */
IFD_NODISCARD enum ifd_code ifd_file_open(const char *path, size_t limit_bytes,
                                          const struct ifd_alloc *alloc, struct ifd_file *ret,
                                          struct ifd_err *err);
/** Nothing happens to a zeroed one. */
void ifd_file_close(struct ifd_file *file);

/** Writes all of content where the descriptor is; false, with errno, if it cannot. */
bool ifd_file_write_fd(int fd, struct ifd_bytes content);

/** Writes a file whole, through a temporary name in the same folder and rename(). Errors: IO, TOO_LARGE (name). */
IFD_NODISCARD enum ifd_code ifd_file_write(const char *path, struct ifd_bytes content,
                                           struct ifd_err *err);

#endif

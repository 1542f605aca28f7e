/** Whole files, size-capped. Thread: any. */
#ifndef INFERD_ENGINE_BASE_FILE_H
#define INFERD_ENGINE_BASE_FILE_H

#include "inferd/alloc.h"
#include "inferd/status.h"

/** Reads a regular file into memory that is aligned to IFD_TENSOR_ALIGN and padded: its content
 *  can be used in place, and truncating the file later does no harm. Release with
 *  ifd_release_tensor(alloc, (void *)ret->data, ret->size). Errors: NOT_FOUND, IO, TOO_LARGE
 *  (names the limit), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_file_read(const char *path, size_t limit_bytes,
                                          const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                                          struct ifd_err *err);
/** The same from an open descriptor, which stays open; name is for messages. */
IFD_NODISCARD enum ifd_code ifd_file_read_fd(int fd, const char *name, size_t limit_bytes,
                                             const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                                             struct ifd_err *err);

/** A file, mapped or copied. */
struct ifd_file {
    struct ifd_bytes content; /* aligned and padded as by ifd_file_read */
    const struct ifd_alloc *alloc;
    size_t mapped_bytes; /* 0: content is a copy */
};

/** Maps a regular file if only this user and root may write it, else reads it: others could
 *  change it after it was checked. For short commands only: truncating a mapped file kills the
 *  process with SIGBUS. Errors as ifd_file_read. */
IFD_NODISCARD enum ifd_code ifd_file_open(const char *path, size_t limit_bytes,
                                          const struct ifd_alloc *alloc, struct ifd_file *ret,
                                          struct ifd_err *err);
/** The same from an open descriptor, which stays open; name is for messages. */
IFD_NODISCARD enum ifd_code ifd_file_open_fd(int fd, const char *name, size_t limit_bytes,
                                             const struct ifd_alloc *alloc, struct ifd_file *ret,
                                             struct ifd_err *err);
/** A zeroed file is fine. */
void ifd_file_close(struct ifd_file *file);

/** Writes all of content at the descriptor's position; false on failure, with errno set. */
bool ifd_file_write_fd(int fd, struct ifd_bytes content);

/** Writes a file atomically: to a temporary name in the same folder, then rename(). Errors: IO,
 *  TOO_LARGE (path). */
IFD_NODISCARD enum ifd_code ifd_file_write(const char *path, struct ifd_bytes content,
                                           struct ifd_err *err);

#endif

/** Label files: one label a line, line i names class i. Thread: any. */
#ifndef INFERD_SERVER_REPO_LABELS_H
#define INFERD_SERVER_REPO_LABELS_H

#include "server/repo/source.h"

#define IFD_LABELS_BYTES_MAX ((size_t)16 << 20)
#define IFD_LABELS_MAX       1000000

/** Ignores blank lines at the end and "\r" before a line's end. Errors: NOT_FOUND, IO, TOO_LARGE,
 *  NOMEM. */
IFD_NODISCARD enum ifd_code ifd_labels_read(const struct ifd_source *source, const char *path,
                                            struct ifd_arena *arena, const char *const **ret_label,
                                            uint32_t *ret_count, struct ifd_err *err);

#endif

/** Files inside a model: a ZIP archive appended to the FlatBuffer. Reads one small file by name.
 *  Thread: any. */
#ifndef INFERD_ENGINE_PARSE_TFLITE_ARCHIVE_H
#define INFERD_ENGINE_PARSE_TFLITE_ARCHIVE_H

#include "engine/base/arena.h"

/** Content of the member called name, {NULL, 0} if there is no archive or no such member.
 *
 *  file:        the whole model; the archive's end must be the file's.
 *  limit_bytes: limit of the content's size.
 *  Memory:      the content is in arena, followed by a NUL that its size excludes; scratch is
 *  freed.
 *  Errors:      CORRUPT (offsets outside, damaged data, wrong checksum), UNSUPPORTED (neither
 *  stored nor deflated, encrypted), TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_archive_read(struct ifd_bytes file, const char *name,
                                             size_t limit_bytes, struct ifd_arena *arena,
                                             struct ifd_bytes *ret, struct ifd_err *err);

#endif

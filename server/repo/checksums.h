/** A version's SHA256SUMS: a version is considered only if the files of its folder match.
 *
 *  Lines are those of sha256sum, for every file below the folder, with optional comments for sizes.
 *  A line about SHA256SUMS itself is ignored.
 *
 *      # size 4821 model.tflite
 *      9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  model.tflite
 *
 *  Thread: any but the loop. */
#ifndef INFERD_SERVER_REPO_CHECKSUMS_H
#define INFERD_SERVER_REPO_CHECKSUMS_H

#include "server/hash/sha256.h"
#include "server/repo/folder.h"

#define IFD_CHECKSUMS_NAME      "SHA256SUMS"
#define IFD_CHECKSUMS_BYTES_MAX ((size_t)1 << 20)

struct ifd_checksum {
    const char *path; /* below the folder */
    uint8_t sha256[IFD_SHA256_BYTES];
    bool has_sum, has_size;
    uint64_t size_bytes;
    uint32_t line;
};

struct ifd_checksums {
    const char *dir;           /* below the repository's root; NULL: the folder has no SHA256SUMS */
    struct ifd_checksum *file; /* sorted by path; in the arena */
    uint32_t count;
};

/** Parses the file of dir. Errors, with the line: CORRUPT (malformed line, a path that leads out, a
 *  file listed twice or without a sum), TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_checksums_parse(struct ifd_str text, const char *dir,
                                                struct ifd_arena *arena, struct ifd_checksums *ret,
                                                struct ifd_err *err);

/** Reads DIR/SHA256SUMS and checks that exactly the listed files exist, with their sizes. Hidden
 *  and temporary names, and those that begin with SHA256SUMS, need not be listed. A missing
 *  SHA256SUMS is no error. Reads no other file. Errors: those of parse and of reading; CORRUPT for
 *  a mismatch. */
IFD_NODISCARD enum ifd_code ifd_checksums_open(int root, const char *dir, struct ifd_arena *arena,
                                               struct ifd_checksums *ret, struct ifd_err *err);

/** Compares the files with their sums. bytes is the content of path (NULL: of no file); the others
 *  are read here. Errors: CORRUPT with the file, its sum and the expected one; those of reading. */
IFD_NODISCARD enum ifd_code ifd_checksums_match(const struct ifd_checksums *sums, int root,
                                                const char *path, struct ifd_bytes bytes,
                                                struct ifd_err *err);

#endif

/** A model file read and parsed with default limits, for tests. Thread: one at a time per
 *  object. */
#ifndef INFERD_TESTS_SUPPORT_PARSE_FILE_H
#define INFERD_TESTS_SUPPORT_PARSE_FILE_H

#include "engine/parse/parse.h"

/** What the engine's defaults are (inferd/engine.h). */
extern const struct ifd_limits parse_limits;
extern const struct ifd_parse_options parse_options;

struct parse_file {
    struct ifd_bytes file; /* owned */
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_parsed parsed;
    struct ifd_err err;
    enum ifd_code code;
};

/** Reads path (the test ends if that fails) and parses it into f. Give back with parse_file_close,
 *  whatever code is. */
void parse_file_open(struct parse_file *f, const char *path);
void parse_file_close(struct parse_file *f);

/** Parses a copy of bytes in a block of just that size, so that AddressSanitizer sees every byte
 *  read too far; NULL err is fine. Expects that what is accepted verifies. */
enum ifd_code parse_bytes(struct ifd_bytes bytes, struct ifd_err *err);

/** Calls fn with the path and name of every file in a folder whose name begins with prefix, in no
 *  order. Expects at least one. */
void parse_each_file(const char *folder, const char *prefix,
                     void (*fn)(const char *path, const char *name));

#endif

/** Reads text protobuf and JSON, the notations of model configs, into a tree with line numbers.
 *
 *  One reader takes both: names may be quoted, the whole may be in braces, commas are optional.
 *  Depth, fields and bytes are bounded; everything lies in the caller's arena. Thread: any. */
#ifndef INFERD_SERVER_REPO_TEXT_H
#define INFERD_SERVER_REPO_TEXT_H

#include "engine/base/arena.h"

#define IFD_TEXT_BYTES_MAX  ((size_t)1 << 20)
#define IFD_TEXT_FIELDS_MAX 20000
#define IFD_TEXT_DEPTH_MAX  32

enum ifd_text_kind {
    IFD_TEXT_WORD,   /* 16, TYPE_FP32, true, -1 */
    IFD_TEXT_STRING, /* "quoted", escapes resolved, neighbours joined: UTF-8 */
    IFD_TEXT_MESSAGE
};

/** A list gives one field per element, all with the list's name: a repeated field. */
struct ifd_text_field {
    const char *name;
    uint32_t line;
    enum ifd_text_kind kind;
    const char *text;                   /* word or string, ended by NUL; "" for a message */
    const struct ifd_text_field *child; /* of a message: its first field */
    struct ifd_text_field *next;
};

/** name: of the file, for messages ("config.pbtxt:3: …"). ret_first is NULL for an empty text.
 *  Errors: CORRUPT (with the line), TOO_LARGE (names the limit), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_text_parse(struct ifd_str text, const char *name,
                                           struct ifd_arena *arena,
                                           const struct ifd_text_field **ret_first,
                                           struct ifd_err *err);

#endif

/** A bounded pull reader of JSON: no tree, no recursion, no copy except of strings with escapes.
 *
 *  The caller walks: open a container, ask for the next member or item, read or skip its value. The
 *  first error ends the walk: err gets it with the byte's position, and every later call returns
 *  false. Besides RFC 8259 the reader takes NaN, Infinity, -Infinity, Inf and -Inf, as Triton's
 *  clients send them. Text must be UTF-8; a byte order mark in front is skipped.
 *
 *      struct ifd_str key;
 *      for (ifd_json_open(&in, '{'); ifd_json_member(&in, &key);) { … ifd_json_skip(&in); }
 *      if (in.failed) …
 *
 *  Thread: one at a time per object. */
#ifndef INFERD_API_JSON_JSON_READ_H
#define INFERD_API_JSON_JSON_READ_H

#include "api/json/number.h"
#include "engine/base/arena.h"
#include "inferd/status.h"

/** Maximum nesting of containers, as Triton's. */
#define IFD_JSON_DEPTH_MAX 100

enum ifd_json_kind {
    IFD_JSON_NONE, /* no value starts here */
    IFD_JSON_OBJECT,
    IFD_JSON_ARRAY,
    IFD_JSON_TEXT,
    IFD_JSON_NUMBER, /* NaN and infinities included */
    IFD_JSON_TRUE,
    IFD_JSON_FALSE,
    IFD_JSON_NULL
};

struct ifd_json_in {
    const char *begin, *at, *end;
    struct ifd_arena *arena; /* for strings with escapes */
    struct ifd_err *err;     /* may be NULL */
    enum ifd_code code;      /* of the first error */
    bool failed;
    uint32_t depth;
    bool has_item[IFD_JSON_DEPTH_MAX + 1]; /* by depth: a comma must come first */
};

/** text must outlive the strings that are read from it. */
void ifd_json_in_init(struct ifd_json_in *in, struct ifd_str text, struct ifd_arena *arena,
                      struct ifd_err *err);

/** Kind of the next value; skips blanks. */
enum ifd_json_kind ifd_json_peek(struct ifd_json_in *in);

/** Enters an object ('{') or an array ('['). */
bool ifd_json_open(struct ifd_json_in *in, char bracket);
/** Reads the next member's key; its value comes next. False at the end of the object, which is
 *  left. */
bool ifd_json_member(struct ifd_json_in *in, struct ifd_str *ret_key);
/** The same, but skips members that are null: clients write null for what they leave out. */
bool ifd_json_given(struct ifd_json_in *in, struct ifd_str *ret_key);
/** Notes in *has that a member came. Fails if it came before. */
bool ifd_json_once(struct ifd_json_in *in, bool *has, const char *name);
/** Continues at at, in front of an item of the innermost of depth containers. The caller has read
 *  what lies between: only whole items and brackets of arrays. */
void ifd_json_resume(struct ifd_json_in *in, const char *at, uint32_t depth);
/** Whether another item comes; false at the end of the array, which is left. */
bool ifd_json_item(struct ifd_json_in *in);

/** A string, unescaped: a view of the input or a copy in the arena. */
bool ifd_json_text(struct ifd_json_in *in, struct ifd_str *ret);
bool ifd_json_bool(struct ifd_json_in *in, bool *ret);
/** A number in JSON's grammar; refuses NaN and infinities. */
bool ifd_json_number(struct ifd_json_in *in, struct ifd_number *ret);
/** An integer from 0 to 2^64-1. */
bool ifd_json_u64(struct ifd_json_in *in, uint64_t *ret);
/** NaN or an infinity; false without an error if neither comes next. */
bool ifd_json_special(struct ifd_json_in *in, double *ret);
/** Skips a value of any kind and checks its syntax. */
bool ifd_json_skip(struct ifd_json_in *in);
/** Fails unless only blanks follow. */
bool ifd_json_finish(struct ifd_json_in *in);

/** Bytes of a request's text that a message quotes, for "%.*s". The cut may split a character: the
 *  writer of JSON replaces invalid UTF-8. */
static inline int ifd_json_shown(struct ifd_str text)
{
    return text.size > 64 ? 64 : (int)text.size;
}

/** Records an error and adds ", at byte N". Returns false. */
bool ifd_json_fail(struct ifd_json_in *in, enum ifd_code code, const char *format, ...)
    IFD_PRINTF(3, 4);

#endif

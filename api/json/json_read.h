/** A bounded pull reader of JSON: no tree, no recursion, no copy except of strings with escapes.
 *
 *  The caller walks: open a container, ask for the next member or item, read or skip its value. The first fault ends the
 *  walk: it is kept in err with the byte's position, and every later call answers false. Besides RFC 8259 the numbers NaN,
 *  Infinity, -Infinity, Inf, -Inf are taken, as Triton's clients send them. Text must be UTF-8; a byte order mark in front,
 *  which some editors and shells write, is passed over.
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

/** Containers inside one another at most (what Triton allows). */
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
    enum ifd_code code;      /* of the first fault */
    bool failed;
    uint32_t depth;
    bool has_item[IFD_JSON_DEPTH_MAX + 1]; /* by depth: a comma must come first */
};

/** text stays as long as what is read from it. */
void ifd_json_in_init(struct ifd_json_in *in, struct ifd_str text, struct ifd_arena *arena,
                      struct ifd_err *err);

/** What comes next; blanks are skipped. */
enum ifd_json_kind ifd_json_peek(struct ifd_json_in *in);

/** Enters an object ('{') or an array ('['). */
bool ifd_json_open(struct ifd_json_in *in, char bracket);
/** The next member's key, its value comes next; false at the end of the object, which is left. */
bool ifd_json_member(struct ifd_json_in *in, struct ifd_str *ret_key);
/** The same, but passes over members that are null, as clients write those that they leave out. */
bool ifd_json_given(struct ifd_json_in *in, struct ifd_str *ret_key);
/** A member that may come once has come: false, with a fault, if *has says that it did before. */
bool ifd_json_once(struct ifd_json_in *in, bool *has, const char *name);
/** Goes on at at, in front of an item of the innermost of depth containers: who read there himself knows that only whole items
 *  of arrays and arrays lie in between. */
void ifd_json_resume(struct ifd_json_in *in, const char *at, uint32_t depth);
/** Whether an item comes next; false at the end of the array, which is left. */
bool ifd_json_item(struct ifd_json_in *in);

/** A string, unescaped: a view of the input or a copy in the arena. */
bool ifd_json_text(struct ifd_json_in *in, struct ifd_str *ret);
bool ifd_json_bool(struct ifd_json_in *in, bool *ret);
/** A number of JSON's grammar; NaN and infinities are refused. */
bool ifd_json_number(struct ifd_json_in *in, struct ifd_number *ret);
/** An integer from 0 to 2^64-1. */
bool ifd_json_u64(struct ifd_json_in *in, uint64_t *ret);
/** NaN or an infinity; false without a fault if none comes next. */
bool ifd_json_special(struct ifd_json_in *in, double *ret);
/** Passes over a value of any kind, checking its syntax. */
bool ifd_json_skip(struct ifd_json_in *in);
/** Nothing but blanks may follow. */
bool ifd_json_finish(struct ifd_json_in *in);

/** How much of a text from the request a message quotes, for "%.*s". It may cut a character: the writer of JSON replaces
 *  what is no UTF-8. */
static inline int ifd_json_shown(struct ifd_str text)
{
    return text.size > 64 ? 64 : (int)text.size;
}

/** Records a fault at the reader's place: ", at byte N" is added. Always false. */
bool ifd_json_fail(struct ifd_json_in *in, enum ifd_code code, const char *format, ...)
    IFD_PRINTF(3, 4);

#endif

/** Writes JSON into chunks of an arena, which are sent without another copy.
 *
 *  The writer puts the commas. Without memory it fails and every later call does nothing, so a
 *  caller checks once at the end. Thread: one at a time per object. */
#ifndef INFERD_API_JSON_JSON_WRITE_H
#define INFERD_API_JSON_JSON_WRITE_H

#include "engine/base/arena.h"
#include "inferd/status.h"

/** Chunks double in size: this many hold more than any answer. */
#define IFD_JSON_CHUNKS_MAX 24

struct ifd_json_out {
    struct ifd_arena *arena;
    struct ifd_bytes chunk[IFD_JSON_CHUNKS_MAX]; /* the size of the last one is set by finish */
    uint32_t chunk_count;
    char *first, *at, *end; /* of the last chunk */
    size_t before_bytes;    /* in the chunks before it */
    size_t expected_bytes;
    uint32_t depth;
    uint64_t has_item; /* bit by depth: the next item needs a comma */
    bool failed;
};

void ifd_json_out_init(struct ifd_json_out *out, struct ifd_arena *arena);
/** Call before the first write: the text will hardly exceed bytes, so the first chunk has this
 *  size. */
void ifd_json_out_expect(struct ifd_json_out *out, size_t bytes);

void ifd_json_begin(struct ifd_json_out *out, char bracket);
void ifd_json_end(struct ifd_json_out *out, char bracket);
void ifd_json_key(struct ifd_json_out *out, const char *key);

/** Invalid UTF-8 in text becomes U+FFFD. */
void ifd_json_put_str(struct ifd_json_out *out, struct ifd_str text);
void ifd_json_put_text(struct ifd_json_out *out, const char *text);
void ifd_json_put_s64(struct ifd_json_out *out, int64_t value);
void ifd_json_put_u64(struct ifd_json_out *out, uint64_t value);
/** Rounded to so many digits behind the point; at least one is written. */
void ifd_json_put_rounded(struct ifd_json_out *out, double value, int digits);
void ifd_json_put_bool(struct ifd_json_out *out, bool value);

/** key and value in one. */
void ifd_json_member_text(struct ifd_json_out *out, const char *key, const char *text);
void ifd_json_member_s64(struct ifd_json_out *out, const char *key, int64_t value);
void ifd_json_member_u64(struct ifd_json_out *out, const char *key, uint64_t value);
void ifd_json_member_bool(struct ifd_json_out *out, const char *key, bool value);

/** For long arrays of scalars: at least size writable bytes, NULL if the writer failed. The caller
 *  writes items with commas between them and calls ifd_json_wrote with their size. */
char *ifd_json_room(struct ifd_json_out *out, size_t size) IFD_NODISCARD;
void ifd_json_wrote(struct ifd_json_out *out, size_t size);
/** Writes text unchanged, without a comma in front. */
void ifd_json_raw(struct ifd_json_out *out, const char *text, size_t size);

size_t ifd_json_out_size(const struct ifd_json_out *out);
/** Ends the last chunk: what was written is chunk[0 … chunk_count). False if the writer failed. */
bool ifd_json_out_finish(struct ifd_json_out *out) IFD_NODISCARD;

#endif

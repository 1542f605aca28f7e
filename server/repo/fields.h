/** Reads parsed text (text.h) into structs by tables: a row has the name of a field, its reader and
 *  its member. Thread: any. */
#ifndef INFERD_SERVER_REPO_FIELDS_H
#define INFERD_SERVER_REPO_FIELDS_H

#include "server/repo/manifest.h"
#include "server/repo/text.h"

/** Context of all readers. */
struct ifd_fields {
    const char *file; /* for messages */
    struct ifd_arena *arena;
    const struct ifd_manifest_warnings *warnings; /* may be NULL */
    struct ifd_err *err;
};

/** Reads field f into at, which is the member that the row names. */
typedef enum ifd_code (*ifd_field_fn)(struct ifd_fields *c, const struct ifd_text_field *f,
                                      void *at);

struct ifd_field_row {
    const char *name;
    ifd_field_fn read; /* NULL: known, but has no effect here: a warning */
    /* of the member; IFD_FIELD_EACH: of none, the field may repeat, read gets the struct */
    size_t offset;
};
#define IFD_FIELD_EACH SIZE_MAX

/** Reads f and its successors into the struct base. Names of rows are in snake_case; a field may
 *  spell them in camelCase. A field without a row is a warning; a null field is absent, as in JSON.
 *  Errors: those of the readers; INVALID if a field that is not repeated appears twice. */
IFD_NODISCARD enum ifd_code ifd_field_rows(struct ifd_fields *c, const struct ifd_text_field *f,
                                           const struct ifd_field_row *row, size_t rows,
                                           void *base);
/** The same for the fields of f, which must be a message (else INVALID). */
IFD_NODISCARD enum ifd_code ifd_field_message(struct ifd_fields *c, const struct ifd_text_field *f,
                                              const struct ifd_field_row *row, size_t rows,
                                              void *base);
#define IFD_READ_MESSAGE(c, f, rows, base)                                                         \
    ifd_field_message(c, f, rows, sizeof(rows) / sizeof((rows)[0]), base)

/** Readers of plain values; at is a const char *, bool, int64_t, uint64_t, uint32_t, int32_t. The
 *  last two take what int32_t holds and is not below 0. Errors: INVALID. */
enum ifd_code ifd_field_text(struct ifd_fields *c, const struct ifd_text_field *f, void *at);
enum ifd_code ifd_field_bool(struct ifd_fields *c, const struct ifd_text_field *f, void *at);
enum ifd_code ifd_field_s64(struct ifd_fields *c, const struct ifd_text_field *f, void *at);
enum ifd_code ifd_field_u64(struct ifd_fields *c, const struct ifd_text_field *f, void *at);
enum ifd_code ifd_field_u32(struct ifd_fields *c, const struct ifd_text_field *f, void *at);
enum ifd_code ifd_field_s32(struct ifd_fields *c, const struct ifd_text_field *f, void *at);
/** Reader of unsupported fields that cannot be ignored: UNSUPPORTED. */
enum ifd_code ifd_field_refuse(struct ifd_fields *c, const struct ifd_text_field *f, void *at);
/** The same of those that are harmless while they are false. */
enum ifd_code ifd_field_refuse_true(struct ifd_fields *c, const struct ifd_text_field *f, void *at);

/** Returns INVALID with file, line, field, value and what was wanted. */
enum ifd_code ifd_field_fail(struct ifd_fields *c, const struct ifd_text_field *f,
                             const char *wanted);

/** Warns with file, line, field and the reason. */
void ifd_field_warn(struct ifd_fields *c, const struct ifd_text_field *f, const char *what);

/** Makes room for one more element of size bytes in an array of the arena; *count grows by one. The
 *  array doubles at powers of two. NULL without memory. */
void *ifd_field_append(struct ifd_fields *c, const void *array, uint32_t *count, size_t size);

typedef enum ifd_code (*ifd_field_entry_fn)(struct ifd_fields *c, void *at, const char *key,
                                            const struct ifd_text_field *value);
/** A map: entries { key: "k" value: … } of protocol buffers, or JSON's { "k": … }. */
IFD_NODISCARD enum ifd_code ifd_field_entries(struct ifd_fields *c, const struct ifd_text_field *f,
                                              void *at, ifd_field_entry_fn add);

#endif

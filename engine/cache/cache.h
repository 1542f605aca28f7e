/** A folder of packed weights: what backends made of a model's constants, so that the next start need not make it again.
 *
 *  A file holds the packed constants of one model (by content), prepared in one way, on one kind of CPU; it is mapped
 *  read-only, so that processes share it. It is used only if this user wrote it (owner, permissions), this build of the
 *  program wrote it, it is whole, and its check sum under the folder's secret key is right. Anything else is a reason not
 *  to use it, never an error of the model. Files are written under another name and renamed, never changed: what is mapped
 *  stays as it is. The folder may be emptied at any time.
 *
 *  All files together never have more than a limit: room.h.
 *
 *  The folder must not be writable by others; it is made (0700) if its parent exists. Thread: any. */
#ifndef INFERD_ENGINE_CACHE_CACHE_H
#define INFERD_ENGINE_CACHE_CACHE_H

#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_cache;

/** limit_bytes: of all files; older ones go if there are more already. Errors: UNAVAILABLE with the reason (permissions, no
 *  key can be read or made, no build id); NOMEM. */
IFD_NODISCARD enum ifd_code ifd_cache_open(const char *folder, uint64_t limit_bytes,
                                           const struct ifd_alloc *alloc,
                                           struct ifd_cache **ret_cache, struct ifd_err *err);
void ifd_cache_close(struct ifd_cache *cache); /* NULL is fine; entries must be finished */

/** The file of a model: setup is everything beside its content that packed weights depend on. */
uint64_t ifd_cache_name(const struct ifd_cache *cache, struct ifd_bytes model,
                        struct ifd_bytes setup);

/** A mapped file. Its parts are aligned to IFD_TENSOR_ALIGN and padded. */
struct ifd_cache_entry {
    const uint8_t *map;
    int file; /* open: what is in use stays */
    size_t size;
    size_t part_count;
};

/** Errors: NOT_FOUND; CORRUPT, UNAVAILABLE with the reason. */
IFD_NODISCARD enum ifd_code ifd_cache_find(const struct ifd_cache *cache, uint64_t name,
                                           struct ifd_cache_entry *ret_entry, struct ifd_err *err);
struct ifd_bytes ifd_cache_part(const struct ifd_cache_entry *entry, size_t index);
void ifd_cache_entry_finish(struct ifd_cache_entry *entry); /* a zeroed one is fine */

/** Replaces the file; makes room for it before. Errors: IO, UNAVAILABLE (another process writes it), TOO_LARGE (it alone is
 *  larger than all may be, or too much is in use), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_cache_write(const struct ifd_cache *cache, uint64_t name,
                                            const struct ifd_bytes *part, size_t part_count,
                                            struct ifd_err *err);

#endif

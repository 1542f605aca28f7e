/** A folder of packed weights: what backends made of a model's constants, for the next start.
 *
 *  A file holds the packed constants of one model (by content), for one set of options and one kind
 *  of CPU. It is mapped read-only, so processes share it. It is used only if this user wrote it
 *  (owner, permissions), this build of the program wrote it, it is complete, and its checksum under
 *  the folder's secret key is right; else it is replaced, and the model loads without it. Files are
 *  written under another name and renamed, never changed, so what is mapped stays as it is. The
 *  folder may be emptied at any time. All files together stay within a limit (room.h).
 *
 *  The folder must not be writable by others; it is created (0700) if its parent exists. Thread:
 *  any. */
#ifndef INFERD_ENGINE_CACHE_CACHE_H
#define INFERD_ENGINE_CACHE_CACHE_H

#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_cache;

/** limit_bytes: of all files together; the least recently used go if they exceed it.
 *  Errors: UNAVAILABLE (permissions, key cannot be read or created, no build id); NOMEM. */
IFD_NODISCARD enum ifd_code ifd_cache_open(const char *folder, uint64_t limit_bytes,
                                           const struct ifd_alloc *alloc,
                                           struct ifd_cache **ret_cache, struct ifd_err *err);
void ifd_cache_close(struct ifd_cache *cache); /* NULL is fine; entries must be finished */

/** Name of the file of a model. part: what packed weights depend on, the model's content among
 *  it. */
uint64_t ifd_cache_name(const struct ifd_cache *cache, const struct ifd_bytes *part, size_t count);

/** A mapped file. Its parts are aligned to IFD_TENSOR_ALIGN and padded. */
struct ifd_cache_entry {
    const uint8_t *map;
    int file; /* stays open with a lock: a file in use is not removed */
    size_t size;
    size_t part_count;
};

/** Errors: NOT_FOUND; CORRUPT and UNAVAILABLE with the reason. */
IFD_NODISCARD enum ifd_code ifd_cache_find(const struct ifd_cache *cache, uint64_t name,
                                           struct ifd_cache_entry *ret_entry, struct ifd_err *err);
struct ifd_bytes ifd_cache_part(const struct ifd_cache_entry *entry, size_t index);
void ifd_cache_entry_finish(struct ifd_cache_entry *entry); /* a zeroed one is fine */

/** Replaces the file; makes room for it before. Errors: IO; UNAVAILABLE (another process is writing
 *  it); TOO_LARGE (over the limit alone, or with the files in use); NOMEM. */
IFD_NODISCARD enum ifd_code ifd_cache_write(const struct ifd_cache *cache, uint64_t name,
                                            const struct ifd_bytes *part, size_t part_count,
                                            struct ifd_err *err);

#endif

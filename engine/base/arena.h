/** Bump arena: many small objects, one lifetime, freed together.
 *
 *  Grows by blocks from the allocator it was given, up to a cap. Under AddressSanitizer every
 *  item is its own allocation, so that an overrun of one item is found. Memory is zeroed.
 *  Thread: one at a time per object. */
#ifndef INFERD_ENGINE_BASE_ARENA_H
#define INFERD_ENGINE_BASE_ARENA_H

#include "inferd/alloc.h"
#include "inferd/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ifd_arena_block;

struct ifd_arena {
    const struct ifd_alloc *alloc;
    struct ifd_arena_block *blocks; /* newest first */
    size_t used_bytes, cap_bytes;
};

/** cap_bytes: limit of all items together; 0 = no cap. */
void ifd_arena_init(struct ifd_arena *arena, const struct ifd_alloc *alloc, size_t cap_bytes);
/** Frees everything. A zeroed arena is fine. */
void ifd_arena_finish(struct ifd_arena *arena);
/** Frees all items but keeps the newest block for reuse (request arenas). */
void ifd_arena_reset(struct ifd_arena *arena);

/** size zeroed bytes for any C object, or NULL (out of memory or over the cap). size 0 gives a
 *  unique pointer. */
void *ifd_arena_take(struct ifd_arena *arena, size_t size) IFD_NODISCARD;
/** count × size, checked. */
void *ifd_arena_take_array(struct ifd_arena *arena, size_t count, size_t size) IFD_NODISCARD;
/** Aligned to IFD_TENSOR_ALIGN and followed by IFD_TENSOR_PAD readable bytes. */
void *ifd_arena_take_tensor(struct ifd_arena *arena, size_t size) IFD_NODISCARD;
/** The same, not zeroed: for large items that are written whole. */
void *ifd_arena_take_room(struct ifd_arena *arena, size_t size) IFD_NODISCARD;
/** Copy of text, ended by NUL; NULL as above. */
char *ifd_arena_text(struct ifd_arena *arena, const char *text, size_t size) IFD_NODISCARD;
/** Is data in memory of the arena? *ret_readable: so many bytes follow it. */
bool ifd_arena_holds(const struct ifd_arena *arena, const void *data, size_t *ret_readable);
/** Bytes that the arena has from its allocator. */
size_t ifd_arena_held_bytes(const struct ifd_arena *arena);
/** Reports that one of the above returned NULL for size bytes: NOMEM, or TOO_LARGE with the cap. */
enum ifd_code ifd_arena_fail(const struct ifd_arena *arena, size_t size, struct ifd_err *err);

#ifdef __cplusplus
}
#endif
#endif

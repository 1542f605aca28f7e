/** Memory: every create() takes an allocator, and the object keeps it.
 *
 *  inferd allocates through it alone: a test can make the k-th allocation fail, a server can
 *  limit a model's memory, and a test can prove that running allocates nothing. Thread: an
 *  allocator must work from any thread unless its documentation says otherwise. */
#ifndef INFERD_ALLOC_H
#define INFERD_ALLOC_H

#include "inferd/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** acquire: size > 0 bytes, not initialised, aligned to align (a power of two, ≥ sizeof(void
 *  *)); NULL if out of memory. release: ptr from acquire with the same size, never NULL. */
struct ifd_alloc {
    void *context;
    void *(*acquire)(void *context, size_t size, size_t align);
    void (*release)(void *context, void *ptr, size_t size);
};

/** The process's heap. Static, stateless. */
const struct ifd_alloc *ifd_alloc_system(void);

/** size bytes aligned for any C object, or NULL. size 0 gives NULL. */
void *ifd_acquire(const struct ifd_alloc *alloc, size_t size) IFD_NODISCARD;

/** The same, zeroed. count × size is checked for overflow: NULL then. */
void *ifd_acquire_zeroed(const struct ifd_alloc *alloc, size_t count, size_t size) IFD_NODISCARD;

/** size bytes aligned to IFD_TENSOR_ALIGN and followed by IFD_TENSOR_PAD zeroed readable bytes,
 *  or NULL. Release with ifd_release_tensor and the same size. size 0 gives the padding alone. */
void *ifd_acquire_tensor(const struct ifd_alloc *alloc, size_t size) IFD_NODISCARD;

/** ptr may be NULL. size: as acquired. */
void ifd_release(const struct ifd_alloc *alloc, void *ptr, size_t size);
void ifd_release_tensor(const struct ifd_alloc *alloc, void *ptr, size_t size);

/** Makes the pages of acquired memory resident in one call: cheaper than one fault per page when
 *  all of it will be used. Content stays. */
void ifd_populate_pages(void *ptr, size_t size);

/** Gives the pages that lie wholly inside acquired memory back to the system and returns their
 *  bytes. The memory stays acquired; the pages' content is undefined. Of a shared writable
 *  mapping, the file's pages are freed, too. */
size_t ifd_discard_pages(void *ptr, size_t size);

/** Checked arithmetic on sizes: false and nothing written if the result does not fit. */
bool ifd_size_mul(size_t a, size_t b, size_t *ret) IFD_NODISCARD;
bool ifd_size_add(size_t a, size_t b, size_t *ret) IFD_NODISCARD;

/** Rounds up to a multiple of align (a power of two); false if the result does not fit. */
bool ifd_size_align(size_t a, size_t align, size_t *ret) IFD_NODISCARD;

#ifdef __cplusplus
}
#endif
#endif

/** A memory manager for libjpeg that allocates from an ifd_alloc. The library's manager calls
 *  malloc, where no limit counts the coefficients of a progressive picture: 400 MB for 2^26
 *  pixels. */
#ifndef INFERD_SERVER_MEDIA_JPEG_MEMORY_H
#define INFERD_SERVER_MEDIA_JPEG_MEMORY_H

#include <stdio.h>

#include <jpeglib.h>

#include "inferd/alloc.h"

struct ifd_jpeg_block;

struct ifd_jpeg_memory {
    struct jpeg_memory_mgr manager; /* first: the library knows this member only */
    struct jpeg_memory_mgr *replaced;
    const struct ifd_alloc *alloc;
    struct ifd_jpeg_block *pool[JPOOL_NUMPOOLS];
};

/** Replaces the manager of jpeg, which was just created. Out of memory is reported as
 *  JERR_OUT_OF_MEMORY. */
void ifd_jpeg_memory_begin(struct ifd_jpeg_memory *memory, j_common_ptr jpeg,
                           const struct ifd_alloc *alloc);
/** Releases everything and restores the library's manager, so that jpeg can be destroyed. Does
 *  nothing if memory is zeroed and was never begun. */
void ifd_jpeg_memory_end(struct ifd_jpeg_memory *memory, j_common_ptr jpeg);

#endif

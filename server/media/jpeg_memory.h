/** A memory manager for libjpeg that takes everything from an ifd_alloc: its own one takes the coefficients of a progressive
 *  picture, 400 MB for the largest that is allowed, where no limit counts them. */
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

/** Replaces the manager of jpeg, which was just created. The library reports missing memory as JERR_OUT_OF_MEMORY. */
void ifd_jpeg_memory_begin(struct ifd_jpeg_memory *memory, struct jpeg_decompress_struct *jpeg,
                           const struct ifd_alloc *alloc);
/** Releases everything and puts the library's own manager back, so that jpeg can be destroyed. Does nothing without a begin;
 *  memory was zeroed then. */
void ifd_jpeg_memory_end(struct ifd_jpeg_memory *memory, struct jpeg_decompress_struct *jpeg);

#endif

/** Pictures out: JPEG and PNG. The encoded picture lies in the arena; the libraries' memory comes
 *  from alloc and is released. Errors: NOMEM, TOO_LARGE (more pixels along a side than the format
 *  has). Thread: any. */
#ifndef INFERD_SERVER_MEDIA_ENCODE_H
#define INFERD_SERVER_MEDIA_ENCODE_H

#include "engine/base/arena.h"
#include "server/media/image.h"

IFD_NODISCARD enum ifd_code ifd_jpeg_encode(const struct ifd_pixels *pixels,
                                            const struct ifd_alloc *alloc, struct ifd_arena *arena,
                                            struct ifd_bytes *ret, struct ifd_err *err);
IFD_NODISCARD enum ifd_code ifd_png_encode(const struct ifd_pixels *pixels,
                                           const struct ifd_alloc *alloc, struct ifd_arena *arena,
                                           struct ifd_bytes *ret, struct ifd_err *err);

struct ifd_palette {
    uint8_t color[256][3];
};

/** A palette picture; index: one byte for each pixel, in rows. */
IFD_NODISCARD enum ifd_code ifd_png_encode_indexes(const uint8_t *index, uint32_t width,
                                                   uint32_t height,
                                                   const struct ifd_palette *palette,
                                                   const struct ifd_alloc *alloc,
                                                   struct ifd_arena *arena, struct ifd_bytes *ret,
                                                   struct ifd_err *err);

#endif

/** Pictures into tensors: decode (JPEG by libjpeg-turbo, PNG by libspng, uncompressed BMP), resize,
 *  normalise, store.
 *
 *  - The content decides the format, never a name.
 *  - Resizing stretches to the target (no cropping, no letterbox), bilinear with half-pixel
 *    centres: the source coordinate of target pixel x is (x + 0.5) * source / target - 0.5, clamped
 *    to the picture. A JPEG much larger than the target is scaled by n/8 while it is decoded, but
 *    stays at least as large as the target: that is fast and averages pixels.
 *  - Transparency is dropped, 16-bit PNG is reduced to 8 bits, grey becomes three equal channels
 *    and colour becomes grey (0.299 R + 0.587 G + 0.114 B) as the target requires. CMYK is refused.
 *    The orientation tag of cameras is ignored.
 *
 *  Limits are checked on the header, before memory is taken. All memory comes from alloc, that of
 *  the libraries too. Thread: any. */
#ifndef INFERD_SERVER_MEDIA_IMAGE_H
#define INFERD_SERVER_MEDIA_IMAGE_H

#include "inferd/alloc.h"
#include "inferd/status.h"
#include "server/model/picture.h"

/** Decoded pixels, rows from the top, channels interleaved. */
struct ifd_pixels {
    uint8_t *data;
    uint32_t width, height, channels;       /* 1 or 3 */
    uint32_t picture_width, picture_height; /* of the picture, which may be larger */
};

/** What a picture is wanted as: see struct ifd_image_rule in api/core/service.h. */
struct ifd_image_target {
    uint32_t height, width, channels;
    bool channels_first;
    float mean[4], std[4]; /* std is not 0 */
    float scale;           /* of quantized types; 0: store the normalised value, rounded */
    int32_t zero_point;
};

struct ifd_image_limits {
    uint64_t max_pixels; /* width × height of the header */
    /* Asked between rows; true: decoding ends with CANCELLED. May be NULL. */
    bool (*is_over)(void *arg);
    void *arg;
};

/** Decodes picture for target: pixels are at least as large as the target if the picture is.
 *  Release with ifd_pixels_free. Errors: INVALID (another format), CORRUPT, UNSUPPORTED (CMYK),
 *  TOO_LARGE (with the numbers), NOMEM, CANCELLED. */
IFD_NODISCARD enum ifd_code ifd_image_decode(struct ifd_bytes picture,
                                             const struct ifd_image_target *target,
                                             const struct ifd_image_limits *limits,
                                             const struct ifd_alloc *alloc, struct ifd_pixels *ret,
                                             struct ifd_err *err);
void ifd_pixels_free(struct ifd_pixels *pixels, const struct ifd_alloc *alloc);

/** Resizes and normalises pixels into tensor (F32, U8 or S8), whose bytes must be exactly the
 *  target's. Errors: UNSUPPORTED (type), INVALID (size), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_image_fill(const struct ifd_pixels *pixels,
                                           const struct ifd_image_target *target,
                                           enum ifd_dtype dtype, void *data, size_t bytes,
                                           const struct ifd_alloc *alloc, struct ifd_err *err);

/** ifd_image_decode, then ifd_image_fill. ret_view: where the tensor's pixels come from. */
IFD_NODISCARD enum ifd_code ifd_image_to_tensor(
    const struct ifd_picture_source *source, const struct ifd_image_target *target,
    const struct ifd_image_limits *limits, struct ifd_tensor *tensor, const struct ifd_alloc *alloc,
    struct ifd_picture_view *ret_view, struct ifd_err *err);

#endif

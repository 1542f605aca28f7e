/** Pictures into tensors: decode (JPEG by libjpeg-turbo, PNG by libspng, WebP by libwebp,
 *  uncompressed BMP, frames without a header), turn upright, resize, normalise, store.
 *
 *  - The content decides the format, never a name; a frame's is said by the request.
 *  - The orientation that a camera wrote into the picture (EXIF in JPEG, PNG and WebP) is applied
 *    first: width, height and regions mean the picture as a person sees it.
 *  - Resizing is bilinear with half-pixel centres: the source coordinate of target pixel x is
 *    (x + 0.5) * source / target - 0.5. Where the target is smaller, the triangle of weights is as
 *    wide as the reduction, so that every source pixel counts (as Pillow's BILINEAR). Pixels
 *    outside of the shown part count nothing. A JPEG much larger than the target is scaled by 1/2,
 *    1/4 or 1/8 while it is decoded, but stays at least as large as the target: that is fast.
 *  - Transparency is dropped, 16-bit PNG is reduced to 8 bits, grey becomes three equal channels
 *    and colour becomes grey (0.299 R + 0.587 G + 0.114 B) as the target requires. CMYK is refused.
 *    YUV of frames is BT.601 with 16 … 235, as cameras send it.
 *
 *  Limits are checked on the header, before memory is taken. All memory comes from alloc, that of
 *  the libraries too. Thread: any. */
#ifndef INFERD_SERVER_MEDIA_IMAGE_H
#define INFERD_SERVER_MEDIA_IMAGE_H

#include "inferd/alloc.h"
#include "inferd/status.h"
#include "server/model/picture.h"

/** Red, green, blue; rows from the top. */
struct ifd_pixels {
    uint8_t *data;
    uint32_t width, height;
};

/** What a picture is wanted as: see struct ifd_image_rule in server/model/desc.h. */
struct ifd_image_target {
    uint32_t height, width, channels; /* 1 or 3 */
    bool channels_first;
    bool is_bgr; /* blue first */
    enum ifd_image_resize resize;
    bool has_region; /* that counts if the source names none */
    struct ifd_picture_region region;
    float fill[4];         /* of the bars of a letterbox, 0 … 255, as channels of the input */
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

/** Decodes the whole picture in its own size, upright. Release with ifd_pixels_free.
 *  Errors: INVALID (another format), CORRUPT, UNSUPPORTED (CMYK), TOO_LARGE (with the numbers),
 *  NOMEM, CANCELLED. */
IFD_NODISCARD enum ifd_code ifd_image_decode(const struct ifd_picture_source *source,
                                             const struct ifd_image_limits *limits,
                                             const struct ifd_alloc *alloc, struct ifd_pixels *ret,
                                             struct ifd_err *err);
void ifd_pixels_free(struct ifd_pixels *pixels, const struct ifd_alloc *alloc);

/** Decodes regions of one picture (sources with the same bytes), once for all of them, into
 *  their samples (F32, U8, S8 or S32), whose bytes must be exactly the target's, and fills their
 *  views. Of a JPEG of one scan only what is shown is decoded: what is broken elsewhere goes
 *  unnoticed. Errors: as above; UNSUPPORTED (type), INVALID (size, region). */
IFD_NODISCARD enum ifd_code ifd_image_to_tensors(struct ifd_picture *picture, size_t count,
                                                 const struct ifd_image_target *target,
                                                 const struct ifd_image_limits *limits,
                                                 const struct ifd_alloc *alloc,
                                                 struct ifd_err *err);
/** The same for a whole picture or one region of it. ret_view: where the tensor's pixels come
 *  from. */
IFD_NODISCARD enum ifd_code ifd_image_to_tensor(
    const struct ifd_picture_source *source, const struct ifd_image_target *target,
    const struct ifd_image_limits *limits, struct ifd_tensor *tensor, const struct ifd_alloc *alloc,
    struct ifd_picture_view *ret_view, struct ifd_err *err);

#endif

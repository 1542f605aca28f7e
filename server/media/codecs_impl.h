/** Inside server/media: the decoders behind image.c, turning, resizing.
 *
 *  A decoder reads the header, calls ifd_codec_begin, then fills ret, mostly with memory of
 *  ifd_decoded_take: stored rows, not turned yet. */
#ifndef INFERD_SERVER_MEDIA_CODECS_IMPL_H
#define INFERD_SERVER_MEDIA_CODECS_IMPL_H

#include "server/media/geometry.h"
#include "server/media/image.h"

/** What the channels of a decoded picture mean. */
enum ifd_decoded_kind {
    IFD_DECODED_GREY, /* one plane of one channel */
    IFD_DECODED_RGB,  /* one plane: red, green, blue and perhaps a fourth without meaning */
    IFD_DECODED_BGR,
    IFD_DECODED_YUV /* planes of Y and UV, or Y, U and V; 16 … 235 and 16 … 240 */
};

/** Interleaved channels, rows from the top. Its point x is x * scale_x - left for the point x of
 *  the whole picture. */
struct ifd_plane {
    const uint8_t *data;
    size_t stride; /* bytes from row to row */
    uint32_t width, height;
    uint32_t channels; /* bytes from pixel to pixel */
    uint32_t used;     /* of them, those that count */
    double scale_x, scale_y, left, top;
};

#define IFD_PLANES_MAX 3

struct ifd_decoded {
    enum ifd_decoded_kind kind;
    struct ifd_plane plane[IFD_PLANES_MAX];
    uint32_t plane_count;
    uint8_t *memory; /* of the first plane; NULL where planes lie in the request */
    size_t memory_bytes;
};

struct ifd_codec_request {
    const struct ifd_picture *picture; /* regions of one picture */
    size_t count;
    const struct ifd_image_target *target; /* NULL: the whole picture in its own size */
    const struct ifd_image_limits *limits;
    const struct ifd_alloc *alloc;
    struct ifd_err *err;

    /* Results. */
    struct ifd_decoded *ret;
    uint32_t width, height; /* upright */
    uint32_t stored_width, stored_height;
    unsigned orientation;            /* 1 … 8, of EXIF */
    struct ifd_picture_region shown; /* what is shown of all regions lies in it; upright */
    double least_scale;              /* at which no region is smaller than its target */
};

IFD_NODISCARD enum ifd_code ifd_jpeg_decode(struct ifd_codec_request *request);
IFD_NODISCARD enum ifd_code ifd_png_decode(struct ifd_codec_request *request);
IFD_NODISCARD enum ifd_code ifd_bmp_decode(struct ifd_codec_request *request);
IFD_NODISCARD enum ifd_code ifd_webp_decode(struct ifd_codec_request *request);
/** A frame of the format that source names; its planes stay where they are. */
IFD_NODISCARD enum ifd_code ifd_frame_decode(struct ifd_codec_request *request);
/** Chooses one of the above, and turns what it decoded upright. */
IFD_NODISCARD enum ifd_code ifd_codec_decode(struct ifd_codec_request *request);

/** The stored picture is width × height pixels and has to be turned. Checks the limit and the
 *  regions. Errors: CORRUPT (empty), TOO_LARGE, INVALID (region). */
IFD_NODISCARD enum ifd_code ifd_codec_begin(struct ifd_codec_request *request, uint32_t width,
                                            uint32_t height, unsigned orientation);
/** Where picture i goes, once the size is known. Errors: INVALID (region). */
IFD_NODISCARD enum ifd_code ifd_codec_plan(const struct ifd_codec_request *request, size_t i,
                                           struct ifd_geometry *ret);
/** Makes ret one plane of width × height with memory: grey (1 channel) or RGB (4). Errors:
 *  NOMEM. */
IFD_NODISCARD enum ifd_code ifd_decoded_take(const struct ifd_codec_request *request,
                                             uint32_t width, uint32_t height, uint32_t channels);
void ifd_decoded_free(struct ifd_decoded *decoded, const struct ifd_alloc *alloc);
/** To be called between rows. Errors: CANCELLED (limits->is_over). */
IFD_NODISCARD enum ifd_code ifd_codec_check_wanted(const struct ifd_codec_request *request);

/** Orientations from 5 on exchange width and height. */
static inline bool ifd_orientation_is_across(unsigned orientation)
{
    return orientation >= 5;
}
/** What is shown, in pixels as they are stored, before they are turned. (orient.c) */
struct ifd_picture_region ifd_codec_stored_part(const struct ifd_codec_request *request);
/** Turns ret, which is one plane, upright. Errors: NOMEM. (orient.c) */
IFD_NODISCARD enum ifd_code ifd_decoded_turn(const struct ifd_codec_request *request);

/** Resizes and normalises the shown part into tensor, and fills the bars. Errors: NOMEM.
 *  (fill.c) */
IFD_NODISCARD enum ifd_code ifd_decoded_fill(const struct ifd_decoded *decoded,
                                             const struct ifd_geometry *geometry,
                                             const struct ifd_image_target *target,
                                             const struct ifd_tensor *tensor,
                                             const struct ifd_alloc *alloc, struct ifd_err *err);

#endif

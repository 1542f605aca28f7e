/** The decoders behind image.c. Each checks the limits on the header, then fills ret with memory
 *  from alloc. */
#ifndef INFERD_SERVER_MEDIA_CODECS_IMPL_H
#define INFERD_SERVER_MEDIA_CODECS_IMPL_H

#include "server/media/image.h"

struct ifd_codec_request {
    struct ifd_bytes picture;
    const struct ifd_image_target *target;
    const struct ifd_image_limits *limits;
    const struct ifd_alloc *alloc;
    struct ifd_pixels *ret;
    struct ifd_err *err;
};

IFD_NODISCARD enum ifd_code ifd_jpeg_decode(const struct ifd_codec_request *request);
IFD_NODISCARD enum ifd_code ifd_png_decode(const struct ifd_codec_request *request);
IFD_NODISCARD enum ifd_code ifd_bmp_decode(const struct ifd_codec_request *request);

/** Checks width × height and takes the memory. Errors: CORRUPT (empty), TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_pixels_take(const struct ifd_codec_request *request, uint32_t width,
                                            uint32_t height, uint32_t channels);
/** Only checks. */
IFD_NODISCARD enum ifd_code ifd_pixels_check(const struct ifd_codec_request *request,
                                             uint32_t width, uint32_t height);
/** To be called between rows. Errors: CANCELLED (limits->is_over). */
IFD_NODISCARD enum ifd_code ifd_codec_check_wanted(const struct ifd_codec_request *request);

#endif

/* PNG by libspng. */
#include "server/media/codecs_impl.h"

#include <spng.h>

#define CHUNK_BYTES_MAX       ((size_t)4 << 20)
#define CHUNK_CACHE_BYTES_MAX ((size_t)16 << 20)

static enum ifd_code fail(const struct ifd_codec_request *request, int failed)
{
    return ifd_fail(request->err, failed == SPNG_EMEM ? IFD_NOMEM : IFD_CORRUPT,
                    "not a sound PNG picture: %s", spng_strerror(failed));
}

static enum ifd_code decode(const struct ifd_codec_request *request, spng_ctx *png)
{
    struct spng_ihdr head = {0};
    size_t bytes = 0;
    int failed = spng_set_png_buffer(png, request->picture.data, request->picture.size);
    if (!failed) {
        failed = spng_get_ihdr(png, &head);
    }
    if (failed) {
        return fail(request, failed);
    }
    enum ifd_code code = ifd_pixels_take(request, head.width, head.height, 3);
    if (code) {
        return code;
    }
    failed = spng_decoded_image_size(png, SPNG_FMT_RGB8, &bytes);
    if (!failed && bytes != (size_t)head.width * head.height * 3) {
        return ifd_fail(request->err, IFD_INTERNAL, "PNG decoder wants %zu bytes", bytes);
    }
    if (!failed) {
        failed = spng_decode_image(png, request->ret->data, bytes, SPNG_FMT_RGB8, 0);
    }
    return failed ? fail(request, failed) : IFD_OK;
}

enum ifd_code ifd_png_decode(const struct ifd_codec_request *request)
{
    spng_ctx *png = spng_ctx_new(0);
    if (!png) {
        return ifd_fail(request->err, IFD_NOMEM, "no memory for the PNG decoder");
    }
    (void)spng_set_chunk_limits(png, CHUNK_BYTES_MAX, CHUNK_CACHE_BYTES_MAX);
    (void)spng_set_crc_action(png, SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
    enum ifd_code code = decode(request, png);
    spng_ctx_free(png);
    if (code) {
        ifd_pixels_free(request->ret, request->alloc);
    }
    return code;
}

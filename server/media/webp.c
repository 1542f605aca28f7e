/* WebP by libwebp. The library calls malloc; what it can take is acquired beside it, so that limits
 * of memory count it, and is not touched. */
#include <string.h>

#include <webp/decode.h>

#include "server/media/codecs_impl.h"
#include "server/media/exif.h"

#define RIFF_BYTES  12
#define CHUNK_BYTES 8

static uint32_t u32_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* EXIF is a chunk behind the pixels: four letters, its size, the data, and a byte that makes the
 * size even. */
static unsigned orientation_of(struct ifd_bytes picture)
{
    size_t at = RIFF_BYTES;
    while (at + CHUNK_BYTES <= picture.size) {
        const uint8_t *chunk = picture.data + at;
        const size_t left = picture.size - at - CHUNK_BYTES;
        const uint32_t size = u32_at(chunk + 4);
        if (size > left) {
            return 1;
        }
        if (memcmp(chunk, "EXIF", 4) == 0) {
            struct ifd_bytes exif = {chunk + CHUNK_BYTES, size};
            if (size > 6 && memcmp(exif.data, "Exif\0\0", 6) == 0) { /* some write it as in JPEG */
                exif = (struct ifd_bytes){exif.data + 6, size - 6};
            }
            return ifd_exif_orientation(exif);
        }
        at += CHUNK_BYTES + size + size % 2;
    }
    return 1;
}

/* Bytes that the library takes at most: a lossless picture is decoded whole, in words, with tables
 * of codes beside it; rows of a lossy one take less. */
static bool library_bytes(uint32_t width, uint32_t height, size_t *ret)
{
    return ifd_size_mul(width, height, ret) && ifd_size_mul(*ret, 4, ret) &&
           ifd_size_add(*ret, (size_t)1 << 20, ret);
}

static enum ifd_code fail(const struct ifd_codec_request *request, VP8StatusCode status)
{
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return ifd_fail(request->err, IFD_NOMEM, "no memory to decode a WebP picture of %u×%u",
                        request->stored_width, request->stored_height);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return ifd_fail(request->err, IFD_UNSUPPORTED, "WebP picture uses an unknown feature");
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return ifd_fail(request->err, IFD_CORRUPT, "WebP picture ends too early");
    default:
        return ifd_fail(request->err, IFD_CORRUPT, "WebP picture is corrupt");
    }
}

/* In pieces, so that it can be stopped between them. */
static enum ifd_code decode_pieces(const struct ifd_codec_request *request, WebPIDecoder *decoder)
{
    const struct ifd_bytes picture = request->picture->source.bytes;
    const size_t step = 64 << 10;
    VP8StatusCode status = VP8_STATUS_SUSPENDED;
    for (size_t at = step; status == VP8_STATUS_SUSPENDED; at += step) {
        enum ifd_code code = ifd_codec_check_wanted(request);
        if (code) {
            return code;
        }
        const bool is_last = at >= picture.size;
        status = WebPIUpdate(decoder, picture.data, is_last ? picture.size : at);
        if (is_last && status == VP8_STATUS_SUSPENDED) {
            status = VP8_STATUS_NOT_ENOUGH_DATA;
        }
    }
    return status == VP8_STATUS_OK ? IFD_OK : fail(request, status);
}

static enum ifd_code decode(struct ifd_codec_request *request)
{
    const struct ifd_plane *plane = &request->ret->plane[0];
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) {
        return ifd_fail(request->err, IFD_INTERNAL, "libwebp has another version than its header");
    }
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = request->ret->memory;
    config.output.u.RGBA.stride = (int)plane->stride;
    config.output.u.RGBA.size = request->ret->memory_bytes;
    WebPIDecoder *decoder = WebPIDecode(NULL, 0, &config);
    if (!decoder) {
        return fail(request, VP8_STATUS_OUT_OF_MEMORY);
    }
    enum ifd_code code = decode_pieces(request, decoder);
    WebPIDelete(decoder);
    return code;
}

enum ifd_code ifd_webp_decode(struct ifd_codec_request *request)
{
    const struct ifd_bytes picture = request->picture->source.bytes;
    WebPBitstreamFeatures features;
    size_t held_bytes = 0;
    const VP8StatusCode status = WebPGetFeatures(picture.data, picture.size, &features);
    if (status != VP8_STATUS_OK) {
        return fail(request, status);
    }
    if (features.has_animation) {
        return ifd_fail(request->err, IFD_UNSUPPORTED,
                        "WebP picture is an animation, one picture can be read");
    }
    const uint32_t width = (uint32_t)features.width, height = (uint32_t)features.height;
    enum ifd_code code = ifd_codec_begin(request, width, height, orientation_of(picture));
    if (code) {
        return code;
    }
    void *held =
        library_bytes(width, height, &held_bytes) ? ifd_acquire(request->alloc, held_bytes) : NULL;
    if (!held) {
        return fail(request, VP8_STATUS_OUT_OF_MEMORY);
    }
    code = ifd_decoded_take(request, width, height, 4);
    if (!code) {
        code = decode(request);
    }
    ifd_release(request->alloc, held, held_bytes);
    if (code) {
        ifd_decoded_free(request->ret, request->alloc);
    }
    return code;
}

/* Uncompressed BMP of 24 or 32 bits. */
#include "server/media/codecs_impl.h"

#define HEAD_BYTES 54

static uint32_t u16_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static uint32_t u32_at(const uint8_t *at)
{
    return u16_at(at) | u16_at(at + 2) << 16;
}

static enum ifd_code copy_rows(const struct ifd_codec_request *request, const uint8_t *first,
                               size_t row_bytes, uint32_t pixel_bytes, bool is_top_down)
{
    const struct ifd_plane *p = &request->ret->plane[0];
    enum ifd_code code = IFD_OK;
    for (uint32_t y = 0; y < p->height && !code; y++) {
        const uint8_t *from = first + (is_top_down ? y : p->height - 1 - y) * row_bytes;
        uint8_t *to = request->ret->memory + (size_t)y * p->width * 4;
        for (uint32_t x = 0; x < p->width; x++, from += pixel_bytes, to += 4) {
            to[0] = from[2];
            to[1] = from[1];
            to[2] = from[0];
            to[3] = 255;
        }
        code = ifd_codec_check_wanted(request);
    }
    return code;
}

enum ifd_code ifd_bmp_decode(struct ifd_codec_request *request)
{
    const uint8_t *data = request->picture->source.bytes.data;
    size_t size = request->picture->source.bytes.size;
    if (size < HEAD_BYTES) {
        return ifd_fail(request->err, IFD_CORRUPT, "BMP picture ends in its header");
    }
    uint32_t offset = u32_at(data + 10), width = u32_at(data + 18), bits = u16_at(data + 28);
    uint32_t compression = u32_at(data + 30), signed_height = u32_at(data + 22);
    bool is_top_down = signed_height > INT32_MAX;
    uint32_t height = is_top_down ? 0u - signed_height : signed_height;
    if ((bits != 24 && bits != 32) || (compression != 0 && !(bits == 32 && compression == 3))) {
        return ifd_fail(
            request->err, IFD_UNSUPPORTED,
            "BMP picture has %u bits per pixel and compression %u; only uncompressed 24 "
            "and 32 bits can be read",
            bits, compression);
    }
    enum ifd_code code = ifd_codec_begin(request, width, height, 1);
    if (code) {
        return code;
    }
    uint32_t pixel_bytes = bits / 8;
    size_t row_bytes = 0, all_bytes = 0;
    if (!ifd_size_mul(width, pixel_bytes, &row_bytes) ||
        !ifd_size_align(row_bytes, 4, &row_bytes) || !ifd_size_mul(row_bytes, height, &all_bytes) ||
        offset > size || all_bytes > size - offset) {
        return ifd_fail(request->err, IFD_CORRUPT, "BMP picture of %u×%u ends too early", width,
                        height);
    }
    code = ifd_decoded_take(request, width, height, 4);
    if (!code) {
        code = copy_rows(request, data + offset, row_bytes, pixel_bytes, is_top_down);
    }
    if (code) {
        ifd_decoded_free(request->ret, request->alloc);
    }
    return code;
}

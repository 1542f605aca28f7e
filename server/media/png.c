/* PNG by libspng. */
#include "server/media/codecs_impl.h"

#include "server/media/exif.h"
#include "server/media/png_memory.h"

#define CHUNK_BYTES_MAX       ((size_t)4 << 20)
#define CHUNK_CACHE_BYTES_MAX ((size_t)16 << 20)

static enum ifd_code fail(const struct ifd_codec_request *request, const struct spng_ihdr *head,
                          int failed)
{
    if (failed == SPNG_EMEM || ifd_png_memory_was_short()) {
        return ifd_fail(request->err, IFD_NOMEM, "no memory to decode a PNG picture of %u×%u",
                        head->width, head->height);
    }
    return ifd_fail(request->err, IFD_CORRUPT, "PNG picture is corrupt: %s", spng_strerror(failed));
}

/* An interlaced picture has seven passes; a row may come in several of them. */
static enum ifd_code decode_rows(const struct ifd_codec_request *request,
                                 const struct spng_ihdr *head, spng_ctx *png)
{
    const size_t row_bytes = (size_t)head->width * 4;
    enum ifd_code code = IFD_OK;
    int failed = 0;
    while (!failed && !code) {
        struct spng_row_info row = {0};
        code = ifd_codec_check_wanted(request);
        failed = spng_get_row_info(png, &row);
        if (!code && !failed) {
            failed =
                spng_decode_row(png, request->ret->memory + row.row_num * row_bytes, row_bytes);
        }
    }
    return code || failed == SPNG_EOI ? code : fail(request, head, failed);
}

/* Reads all chunks in front of the pixels. What is wrong with them is found later. */
static unsigned orientation_of(spng_ctx *png)
{
    struct spng_exif exif = {0};
    if (spng_get_exif(png, &exif) != 0) {
        return 1;
    }
    return ifd_exif_orientation((struct ifd_bytes){(const uint8_t *)exif.data, exif.length});
}

static enum ifd_code decode(struct ifd_codec_request *request, spng_ctx *png)
{
    struct spng_ihdr head = {0};
    size_t bytes = 0;
    int failed = spng_set_png_buffer(png, request->picture->source.bytes.data,
                                     request->picture->source.bytes.size);
    if (!failed) {
        failed = spng_get_ihdr(png, &head);
    }
    if (failed) {
        return fail(request, &head, failed);
    }
    enum ifd_code code = ifd_codec_begin(request, head.width, head.height, orientation_of(png));
    if (!code) {
        code = ifd_decoded_take(request, head.width, head.height, 4);
    }
    if (code) {
        return code;
    }
    failed = spng_decoded_image_size(png, SPNG_FMT_RGBA8, &bytes);
    if (!failed && bytes != (size_t)head.width * head.height * 4) {
        return ifd_fail(request->err, IFD_INTERNAL, "PNG decoder wants %zu bytes", bytes);
    }
    if (!failed) {
        failed = spng_decode_image(png, NULL, 0, SPNG_FMT_RGBA8, SPNG_DECODE_PROGRESSIVE);
    }
    return failed ? fail(request, &head, failed) : decode_rows(request, &head, png);
}

enum ifd_code ifd_png_decode(struct ifd_codec_request *request)
{
    spng_ctx *png = ifd_png_open(request->alloc, 0);
    if (!png) {
        return ifd_fail(request->err, IFD_NOMEM, "no memory for the PNG decoder");
    }
    (void)spng_set_chunk_limits(png, CHUNK_BYTES_MAX, CHUNK_CACHE_BYTES_MAX);
    (void)spng_set_crc_action(png, SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
    enum ifd_code code = decode(request, png);
    spng_ctx_free(png);
    if (code) {
        ifd_decoded_free(request->ret, request->alloc);
    }
    return code;
}

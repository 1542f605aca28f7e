/* PNG by libspng, written. */
#include <string.h>

#include "server/media/encode.h"
#include "server/media/png_memory.h"

/* zlib's 1 takes a third of the time of its 6 and makes masks and drawings some 20 % larger. */
#define COMPRESSION 1

static enum ifd_code fail(const struct spng_ihdr *head, int failed, struct ifd_err *err)
{
    if (failed == SPNG_EMEM || ifd_png_memory_was_short()) {
        return ifd_fail(err, IFD_NOMEM, "no memory to encode a PNG picture of %u×%u", head->width,
                        head->height);
    }
    return ifd_fail(err, IFD_TOO_LARGE, "PNG picture of %u×%u: %s", head->width, head->height,
                    spng_strerror(failed));
}

/* Copies the encoded picture into the arena. */
static enum ifd_code take_buffer(spng_ctx *png, const struct spng_ihdr *head,
                                 struct ifd_arena *arena, struct ifd_bytes *ret,
                                 struct ifd_err *err)
{
    size_t size = 0;
    int failed = 0;
    void *buffer = spng_get_png_buffer(png, &size, &failed);
    if (!buffer) {
        return fail(head, failed, err);
    }
    uint8_t *copy = ifd_arena_take_room(arena, size);
    if (copy) {
        memcpy(copy, buffer, size);
        *ret = (struct ifd_bytes){.data = copy, .size = size};
    }
    ifd_png_give(buffer);
    return copy ? IFD_OK : ifd_arena_fail(arena, size, err);
}

/* palette NULL: pixels are red, green, blue. */
static enum ifd_code encode(const uint8_t *data, size_t bytes, struct spng_ihdr *head,
                            struct spng_plte *palette, const struct ifd_alloc *alloc,
                            struct ifd_arena *arena, struct ifd_bytes *ret, struct ifd_err *err)
{
    spng_ctx *png = ifd_png_open(alloc, SPNG_CTX_ENCODER);
    if (!png) {
        return fail(head, SPNG_EMEM, err);
    }
    int failed = spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    failed = failed ? failed : spng_set_option(png, SPNG_IMG_COMPRESSION_LEVEL, COMPRESSION);
    failed = failed ? failed : spng_set_ihdr(png, head);
    failed = failed || !palette ? failed : spng_set_plte(png, palette);
    failed =
        failed ? failed : spng_encode_image(png, data, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    enum ifd_code code = failed ? fail(head, failed, err) : take_buffer(png, head, arena, ret, err);
    spng_ctx_free(png);
    return code;
}

enum ifd_code ifd_png_encode(const struct ifd_pixels *pixels, const struct ifd_alloc *alloc,
                             struct ifd_arena *arena, struct ifd_bytes *ret, struct ifd_err *err)
{
    struct spng_ihdr head = {.width = pixels->width,
                             .height = pixels->height,
                             .bit_depth = 8,
                             .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    return encode(pixels->data, (size_t)pixels->width * pixels->height * 3, &head, NULL, alloc,
                  arena, ret, err);
}

enum ifd_code ifd_png_encode_indexes(const uint8_t *index, uint32_t width, uint32_t height,
                                     const struct ifd_palette *palette,
                                     const struct ifd_alloc *alloc, struct ifd_arena *arena,
                                     struct ifd_bytes *ret, struct ifd_err *err)
{
    struct spng_ihdr head = {
        .width = width, .height = height, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_INDEXED};
    struct spng_plte colors = {.n_entries = 256};
    for (size_t i = 0; i < 256; i++) {
        colors.entries[i] = (struct spng_plte_entry){.red = palette->color[i][0],
                                                     .green = palette->color[i][1],
                                                     .blue = palette->color[i][2]};
    }
    return encode(index, (size_t)width * height, &head, &colors, alloc, arena, ret, err);
}

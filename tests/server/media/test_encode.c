/* Pictures that are written can be read again. */
#include <stdlib.h>
#include <string.h>

#include "server/media/encode.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#define WIDTH  37
#define HEIGHT 21

static uint8_t rgb[WIDTH * HEIGHT * 3];
static const struct ifd_pixels pixels = {.data = rgb, .width = WIDTH, .height = HEIGHT};
static const struct ifd_image_limits limits = {.max_pixels = 1 << 20};

static void fill_pixels(void)
{
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        rgb[3 * i] = (uint8_t)(i % WIDTH * 6);
        rgb[3 * i + 1] = (uint8_t)(i / WIDTH * 12);
        rgb[3 * i + 2] = 90;
    }
}

static struct ifd_pixels read_back(struct ifd_bytes picture)
{
    struct ifd_pixels read = {0};
    struct ifd_err err = {0};
    const struct ifd_picture_source source = {.bytes = picture};
    REQUIRE_OK(ifd_image_decode(&source, &limits, ifd_alloc_system(), &read, &err), &err);
    REQUIRE(read.width == WIDTH && read.height == HEIGHT);
    return read;
}

static void png_keeps_every_pixel(void)
{
    struct ifd_arena arena;
    struct ifd_bytes picture = {0};
    struct ifd_err err = {0};
    fill_pixels();
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    REQUIRE_OK(ifd_png_encode(&pixels, ifd_alloc_system(), &arena, &picture, &err), &err);
    struct ifd_pixels read = read_back(picture);
    EXPECT_BYTES(read.data, rgb, sizeof(rgb));
    ifd_pixels_free(&read, ifd_alloc_system());
    ifd_arena_finish(&arena);
}

static void indexes_have_the_colors_of_the_palette(void)
{
    static uint8_t index[WIDTH * HEIGHT];
    struct ifd_palette palette;
    struct ifd_arena arena;
    struct ifd_bytes picture = {0};
    struct ifd_err err = {0};
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        index[i] = (uint8_t)i;
    }
    for (int i = 0; i < 256; i++) {
        palette.color[i][0] = (uint8_t)i;
        palette.color[i][1] = (uint8_t)(255 - i);
        palette.color[i][2] = 7;
    }
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    REQUIRE_OK(ifd_png_encode_indexes(index, WIDTH, HEIGHT, &palette, ifd_alloc_system(), &arena,
                                      &picture, &err),
               &err);
    struct ifd_pixels read = read_back(picture);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        EXPECT_BYTES(read.data + 3 * i, palette.color[i & 255], 3);
    }
    ifd_pixels_free(&read, ifd_alloc_system());
    ifd_arena_finish(&arena);
}

static void jpeg_looks_like_the_pixels(void)
{
    struct ifd_arena arena;
    struct ifd_bytes picture = {0};
    struct ifd_err err = {0};
    fill_pixels();
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    REQUIRE_OK(ifd_jpeg_encode(&pixels, ifd_alloc_system(), &arena, &picture, &err), &err);
    struct ifd_pixels read = read_back(picture);
    for (size_t i = 0; i < sizeof(rgb); i++) {
        EXPECT(abs(read.data[i] - rgb[i]) < 16);
    }
    ifd_pixels_free(&read, ifd_alloc_system());
    ifd_arena_finish(&arena);
}

/* Beyond the first piece of memory: 64 KiB. */
static void a_large_jpeg_is_whole(void)
{
    static uint8_t noise[512 * 512 * 3];
    uint32_t state = 1;
    for (size_t i = 0; i < sizeof(noise); i++) {
        state = state * 1664525 + 1013904223;
        noise[i] = (uint8_t)(state >> 24);
    }
    struct ifd_arena arena;
    struct ifd_bytes picture = {0};
    struct ifd_pixels read = {0};
    struct ifd_err err = {0};
    const struct ifd_pixels large = {.data = noise, .width = 512, .height = 512};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    REQUIRE_OK(ifd_jpeg_encode(&large, ifd_alloc_system(), &arena, &picture, &err), &err);
    EXPECT(picture.size > 128 << 10);
    const struct ifd_picture_source source = {.bytes = picture};
    REQUIRE_OK(ifd_image_decode(&source, &limits, ifd_alloc_system(), &read, &err), &err);
    EXPECT_INT(read.width, 512);
    ifd_pixels_free(&read, ifd_alloc_system());
    ifd_arena_finish(&arena);
}

static void missing_memory_is_an_error(void)
{
    fill_pixels();
    for (int is_png = 0; is_png < 2; is_png++) {
        struct fail_alloc failing;
        long k = 0;
        do {
            struct ifd_arena arena;
            struct ifd_bytes picture = {0};
            struct ifd_err err = {0};
            fail_alloc_init(&failing, ++k);
            ifd_arena_init(&arena, &failing.alloc, 0);
            enum ifd_code code =
                is_png ? ifd_png_encode(&pixels, &failing.alloc, &arena, &picture, &err)
                       : ifd_jpeg_encode(&pixels, &failing.alloc, &arena, &picture, &err);
            EXPECT_CODE(code, failing.failed ? IFD_NOMEM : IFD_OK, &err);
            ifd_arena_finish(&arena);
            fail_alloc_finish(&failing);
        } while (failing.failed);
        EXPECT(k > 3);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(png_keeps_every_pixel),      T(indexes_have_the_colors_of_the_palette),
        T(jpeg_looks_like_the_pixels), T(a_large_jpeg_is_whole),
        T(missing_memory_is_an_error),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

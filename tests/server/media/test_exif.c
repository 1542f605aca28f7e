#include "server/media/exif.h"

#include <stdlib.h>
#include <string.h>

#include <spng.h>

#include "server/media/image.h"
#include "tests/support/test.h"

/* Written by hand after the format's description: header, one entry, its value in the first two of
 * four bytes. */
static const uint8_t little[] = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3,
                                 0,   1,   0,  0, 0, 6, 0, 0, 0, 0, 0,    0, 0};
static const uint8_t big[] = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0,
                              3,   0,   0, 0,  1, 0, 8, 0, 0, 0, 0, 0,    0};

static unsigned read_exif(const uint8_t *data, size_t size)
{
    return ifd_exif_orientation((struct ifd_bytes){data, size});
}

static void both_orders_of_bytes_are_read(void)
{
    EXPECT_INT(read_exif(little, sizeof(little)), 6);
    EXPECT_INT(read_exif(big, sizeof(big)), 8);
}

static void what_is_broken_is_upright(void)
{
    uint8_t broken[sizeof(little)];
    for (size_t size = 0; size < 20; size++) {
        EXPECT_INT(read_exif(little, size), 1);
    }
    memcpy(broken, little, sizeof(little));
    broken[18] = 9; /* no orientation */
    EXPECT_INT(read_exif(broken, sizeof(broken)), 1);
    memcpy(broken, little, sizeof(little));
    broken[12] = 4; /* another type */
    EXPECT_INT(read_exif(broken, sizeof(broken)), 1);
    memcpy(broken, little, sizeof(little));
    memset(broken + 4, 0xff, 4); /* the directory lies beyond the end */
    EXPECT_INT(read_exif(broken, sizeof(broken)), 1);
    memcpy(broken, little, sizeof(little));
    memset(broken + 8, 0xff, 4); /* entries beyond the end, of other tags */
    EXPECT_INT(read_exif(broken, sizeof(broken)), 1);
}

/* A PNG of 3 × 2 pixels, 1 2 3 in the first row, 4 5 6 in the second. */
static struct ifd_bytes make_png(uint8_t orientation)
{
    static const uint8_t pixel[] = {1, 2, 3, 4, 5, 6};
    struct spng_ihdr head = {
        .width = 3, .height = 2, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_GRAYSCALE};
    uint8_t exif_bytes[sizeof(little)];
    struct spng_exif exif = {.length = sizeof(exif_bytes), .data = (char *)exif_bytes};
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    int failed = 0;
    size_t size = 0;
    memcpy(exif_bytes, little, sizeof(little));
    exif_bytes[18] = orientation;
    spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(png, &head);
    REQUIRE(spng_set_exif(png, &exif) == 0);
    REQUIRE(spng_encode_image(png, pixel, 6, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE) == 0);
    uint8_t *data = spng_get_png_buffer(png, &size, &failed);
    REQUIRE(failed == 0);
    spng_ctx_free(png);
    return (struct ifd_bytes){data, size};
}

/* The standard: orientation 6 says that the first stored row is the right side and the first column
 * the top of what a person sees; and so on. */
static void pictures_are_turned_as_the_standard_says(void)
{
    static const char *const want[] = {"123456", "321654", "654321", "456123",
                                       "142536", "415263", "635241", "362514"};
    static const struct ifd_image_limits limits = {.max_pixels = 6};
    for (unsigned o = 1; o <= 8; o++) {
        const struct ifd_bytes png = make_png((uint8_t)o);
        const struct ifd_picture_source source = {.bytes = png};
        struct ifd_pixels pixels;
        struct ifd_err err = {0};
        char got[7] = {0};
        REQUIRE_OK(ifd_image_decode(&source, &limits, ifd_alloc_system(), &pixels, &err), &err);
        EXPECT_INT(pixels.width, o < 5 ? 3 : 2);
        EXPECT_INT(pixels.height, o < 5 ? 2 : 3);
        for (int i = 0; i < 6; i++) {
            got[i] = (char)('0' + pixels.data[3 * i]);
        }
        EXPECT_TEXT(got, want[o - 1]);
        ifd_pixels_free(&pixels, ifd_alloc_system());
        free((void *)(uintptr_t)png.data);
    }
}

/* Of the turned picture: 2 wide, 3 high, the lower right pixel is the stored third. */
static void regions_mean_the_turned_picture(void)
{
    static const struct ifd_image_limits limits = {.max_pixels = 6};
    const struct ifd_image_target target = {
        .height = 1, .width = 1, .channels = 1, .std = {1, 1, 1, 1}};
    const struct ifd_bytes png = make_png(6);
    const struct ifd_picture_source source = {
        .bytes = png, .has_region = true, .region = {.x = 1, .y = 2, .width = 1, .height = 1}};
    uint8_t got = 0;
    struct ifd_tensor tensor = {.dtype = IFD_U8, .data = &got, .bytes = 1};
    struct ifd_picture_view view;
    struct ifd_err err = {0};
    REQUIRE_OK(
        ifd_image_to_tensor(&source, &target, &limits, &tensor, ifd_alloc_system(), &view, &err),
        &err);
    EXPECT_INT(got, 3);
    EXPECT_INT(view.width, 2);
    EXPECT_INT(view.height, 3);
    free((void *)(uintptr_t)png.data);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(both_orders_of_bytes_are_read),
        T(what_is_broken_is_upright),
        T(pictures_are_turned_as_the_standard_says),
        T(regions_mean_the_turned_picture),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Parts of a JPEG that are decoded alone are as if the whole picture had been decoded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "server/media/codecs_impl.h"
#include "tests/support/test.h"

#define WIDTH  211 /* no whole blocks */
#define HEIGHT 173
#define SIDE   24

static const struct ifd_image_limits limits = {.max_pixels = 1 << 20};

/* The same numbers in both kinds; one of several scans is always decoded as a whole. sampling: of
 * light, in each direction. */
static struct ifd_bytes make_jpeg(unsigned orientation, int sampling, bool is_progressive)
{
    static uint8_t pixel[HEIGHT][WIDTH][3];
    /* "Exif", two zeros, then TIFF's header with one entry: the orientation */
    uint8_t exif[] = {'E', 'x',  'i', 'f', 0,
                      0,   'I',  'I', 42,  0,
                      8,   0,    0,   0,   1,
                      0,   0x12, 1,   3,   0,
                      1,   0,    0,   0,   (uint8_t)orientation,
                      0,   0,    0,   0,   0,
                      0,   0};
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    for (size_t i = 0; i < sizeof(pixel); i++) {
        ((uint8_t *)pixel)[i] = (uint8_t)(i * i / 7 + i % 13 * 11);
    }
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &data, &size);
    jpeg.image_width = WIDTH;
    jpeg.image_height = HEIGHT;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = sampling;
    if (is_progressive) {
        jpeg_simple_progression(&jpeg);
    }
    jpeg_start_compress(&jpeg, TRUE);
    jpeg_write_marker(&jpeg, JPEG_APP0 + 1, exif, sizeof(exif));
    while (jpeg.next_scanline < HEIGHT) {
        JSAMPROW row = pixel[jpeg.next_scanline][0];
        (void)jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return (struct ifd_bytes){.data = data, .size = size};
}

static void take(struct ifd_bytes jpeg, const struct ifd_picture_region *region,
                 const struct ifd_image_target *target, float *ret)
{
    const struct ifd_picture_source source = {.bytes = jpeg, .has_region = true, .region = *region};
    struct ifd_tensor tensor = {.dtype = IFD_F32,
                                .data = ret,
                                .bytes = (size_t)target->height * target->width * target->channels *
                                         sizeof(float)};
    struct ifd_picture_view view;
    struct ifd_err err = {0};
    REQUIRE_OK(
        ifd_image_to_tensor(&source, target, &limits, &tensor, ifd_alloc_system(), &view, &err),
        &err);
}

static void expect_same(unsigned orientation, int sampling, uint32_t channels)
{
    static const struct ifd_picture_region regions[] = {
        {0, 0, 60, 40},   {16, 16, 48, 48},  {17, 31, 50, 61}, {100, 90, 73, 83},
        {100, 100, 5, 7}, {0, 0, 173, 173},  {1, 1, 1, 1},     {40, 0, 96, 173},
        {172, 172, 1, 1}, {63, 65, 110, 30}, {171, 0, 2, 173}};
    const struct ifd_bytes plain = make_jpeg(orientation, sampling, false),
                           whole = make_jpeg(orientation, sampling, true);
    for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++) {
        for (uint32_t side = 3; side <= SIDE; side += 7) { /* other scales */
            const struct ifd_image_target target = {
                .height = side, .width = side, .channels = channels, .std = {1, 1, 1, 1}};
            float got[SIDE * SIDE * 3], want[SIDE * SIDE * 3];
            take(plain, &regions[i], &target, got);
            take(whole, &regions[i], &target, want);
            EXPECT_BYTES(got, want, sizeof(float) * side * side * channels);
        }
    }
    free((void *)(uintptr_t)plain.data);
    free((void *)(uintptr_t)whole.data);
}

static void a_part_is_the_same_in_every_orientation(void)
{
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        for (int sampling = 1; sampling <= 2; sampling++) {
            expect_same(orientation, sampling, 3);
        }
        expect_same(orientation, 2, 1);
    }
}

static bool count_rows(void *arg)
{
    ++*(int *)arg;
    return false;
}

/* All need the same scale.. */
static void expect_shared(unsigned orientation)
{
    static const struct ifd_picture_region regions[] = {
        {20, 100, 47, 47}, {40, 90, 45, 47}, {20, 100, 47, 47}, {124, 95, 47, 46}};
    enum { COUNT = sizeof(regions) / sizeof(regions[0]) };
    const struct ifd_image_target target = {
        .height = SIDE, .width = SIDE, .channels = 3, .std = {1, 1, 1, 1}};
    const struct ifd_bytes jpeg = make_jpeg(orientation, 2, false);
    static float got[COUNT][SIDE * SIDE * 3], want[SIDE * SIDE * 3];
    struct ifd_picture picture[COUNT];
    int rows = 0;
    const struct ifd_image_limits counting = {
        .max_pixels = limits.max_pixels, .is_over = count_rows, .arg = &rows};
    struct ifd_err err = {0};
    for (int i = 0; i < COUNT; i++) {
        picture[i] = (struct ifd_picture){
            .source = {.bytes = jpeg, .has_region = true, .region = regions[i]},
            .sample = {.dtype = IFD_F32, .data = got[i], .bytes = sizeof(got[i])}};
    }
    REQUIRE_OK(ifd_image_to_tensors(picture, COUNT, &target, &counting, ifd_alloc_system(), &err),
               &err);
    EXPECT(rows < 200); /* four regions one by one: more than 220 */
    for (int i = 0; i < COUNT; i++) {
        take(jpeg, &regions[i], &target, want);
        EXPECT_BYTES(got[i], want, sizeof(want));
        EXPECT_INT(picture[i].view.region.x, regions[i].x);
        EXPECT_INT(picture[i].view.width, orientation < 5 ? WIDTH : HEIGHT);
    }
    picture[COUNT - 1].source.region.width = WIDTH;
    EXPECT_CODE(ifd_image_to_tensors(picture, COUNT, &target, &limits, ifd_alloc_system(), &err),
                IFD_INVALID, &err);
    EXPECT_HAS(err.text, "region 124,95,211,46 is empty or leaves the picture");
    free((void *)(uintptr_t)jpeg.data);
}

static void regions_share_one_decoding(void)
{
    for (unsigned orientation = 1; orientation <= 8; orientation++) {
        expect_shared(orientation);
    }
}

static void only_the_part_is_decoded(void)
{
    const struct ifd_bytes jpeg = make_jpeg(1, 2, false);
    const struct ifd_picture picture[] = {
        {.source = {.bytes = jpeg, .has_region = true, .region = {100, 90, 20, 30}}},
        {.source = {.bytes = jpeg, .has_region = true, .region = {120, 95, 15, 45}}}};
    const struct ifd_image_target target = {
        .height = 64, .width = 64, .channels = 3, .std = {1, 1, 1, 1}};
    struct ifd_decoded decoded;
    struct ifd_err err = {0};
    struct ifd_codec_request request = {.picture = picture,
                                        .count = 1,
                                        .target = &target,
                                        .limits = &limits,
                                        .alloc = ifd_alloc_system(),
                                        .ret = &decoded,
                                        .err = &err};
    REQUIRE_OK(ifd_codec_decode(&request), &err);
    EXPECT_INT(decoded.plane[0].height, 30 + 2 * 2); /* and two rows beside it */
    EXPECT_CLOSE(decoded.plane[0].top, 88, 0);
    EXPECT_CLOSE(decoded.plane[0].left, 96, 0); /* a block of 16 */
    EXPECT_INT(decoded.plane[0].width, 122 - 96);
    ifd_decoded_free(&decoded, ifd_alloc_system());
    request.count = 2;
    REQUIRE_OK(ifd_codec_decode(&request), &err);
    EXPECT_INT(decoded.plane[0].height, 50 + 2 * 2); /* 90 … 140 */
    EXPECT_INT(decoded.plane[0].width, 137 - 96);
    ifd_decoded_free(&decoded, ifd_alloc_system());
    free((void *)(uintptr_t)jpeg.data);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_part_is_the_same_in_every_orientation),
        T(only_the_part_is_decoded),
        T(regions_share_one_decoding),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

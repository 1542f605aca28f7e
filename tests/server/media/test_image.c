#include "server/media/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jpeglib.h>
#include <spng.h>
#include <webp/encode.h>

#include "engine/base/quota.h"
#include "server/media/codecs_impl.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

static const struct ifd_image_limits limits = {.max_pixels = 1 << 20};

static struct ifd_image_target target_of(uint32_t height, uint32_t width, uint32_t channels)
{
    return (struct ifd_image_target){
        .height = height, .width = width, .channels = channels, .std = {1, 1, 1, 1}};
}

/* ---- pictures, made by the libraries, never by the code under test ---- */

/* text: of a compressed comment, or NULL. */
static struct ifd_bytes make_png_as(const void *pixel, struct spng_ihdr head, char *text)
{
    size_t channels = head.color_type == SPNG_COLOR_TYPE_GRAYSCALE   ? 1
                      : head.color_type == SPNG_COLOR_TYPE_TRUECOLOR ? 3
                                                                     : 4;
    spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
    int failed = 0;
    size_t size = 0;
    struct spng_text comment = {
        .keyword = "Comment", .type = SPNG_ZTXT, .length = text ? strlen(text) : 0, .text = text};
    spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_ihdr(png, &head);
    REQUIRE(!text || spng_set_text(png, &comment, 1) == 0);
    failed = spng_encode_image(png, pixel,
                               (size_t)head.width * head.height * channels * (head.bit_depth / 8),
                               SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    REQUIRE(failed == 0);
    uint8_t *data = spng_get_png_buffer(png, &size, &failed);
    spng_ctx_free(png);
    return (struct ifd_bytes){.data = data, .size = size};
}

static struct ifd_bytes make_png(const uint8_t *pixel, uint32_t width, uint32_t height,
                                 enum spng_color_type type)
{
    const struct spng_ihdr head = {
        .width = width, .height = height, .bit_depth = 8, .color_type = (uint8_t)type};
    return make_png_as(pixel, head, NULL);
}

static struct ifd_bytes make_jpeg(const uint8_t *pixel, uint32_t width, uint32_t height,
                                  bool is_progressive)
{
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long size = 0;
    jpeg.err = jpeg_std_error(&errors);
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, &data, &size);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.input_components = 3;
    jpeg.in_color_space = JCS_RGB;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, 100, TRUE);
    if (is_progressive) {
        jpeg_simple_progression(&jpeg);
    }
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(pixel + (size_t)jpeg.next_scanline * width * 3);
        (void)jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return (struct ifd_bytes){.data = data, .size = size};
}

static struct ifd_bytes make_webp(const uint8_t *pixel, int width, int height)
{
    uint8_t *data = NULL;
    const size_t size = WebPEncodeLosslessRGB(pixel, width, height, 3 * width, &data);
    REQUIRE(size > 0);
    return (struct ifd_bytes){.data = data, .size = size}; /* WebPFree is free */
}

static void free_bytes(struct ifd_bytes bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

static enum ifd_code to_f32(struct ifd_bytes picture, const struct ifd_image_target *target,
                            float *data, struct ifd_err *err)
{
    size_t bytes = (size_t)target->height * target->width * target->channels * sizeof(float);
    const struct ifd_picture_source source = {.bytes = picture};
    struct ifd_tensor tensor = {.dtype = IFD_F32, .data = data, .bytes = bytes};
    struct ifd_picture_view view;
    return ifd_image_to_tensor(&source, target, &limits, &tensor, ifd_alloc_system(), &view, err);
}

static void expect_refused(struct ifd_bytes picture, enum ifd_code want, const char *part)
{
    float got[3];
    struct ifd_err err = {0};
    struct ifd_image_target target = target_of(1, 1, 3);
    EXPECT_CODE(to_f32(picture, &target, got, &err), want, &err);
    EXPECT_HAS(err.text, part);
}

/* ---- decoding ---- */

static void png_of_the_same_size_is_returned_exactly(void)
{
    static const uint8_t pixel[] = {0, 1, 2, 255, 254, 253, 7, 8, 9, 100, 101, 102};
    struct ifd_err err = {0};
    float got[12];
    struct ifd_image_target target = target_of(2, 2, 3);
    struct ifd_bytes png = make_png(pixel, 2, 2, SPNG_COLOR_TYPE_TRUECOLOR);
    REQUIRE_OK(to_f32(png, &target, got, &err), &err);
    for (int i = 0; i < 12; i++) {
        EXPECT_CLOSE(got[i], pixel[i], 0);
    }
    free_bytes(png);
}

static void grey_and_alpha_become_three_channels(void)
{
    static const uint8_t grey[] = {10, 200}, rgba[] = {1, 2, 3, 0, 4, 5, 6, 255};
    struct ifd_err err = {0};
    float got[6];
    struct ifd_image_target target = target_of(1, 2, 3);
    struct ifd_bytes png = make_png(grey, 2, 1, SPNG_COLOR_TYPE_GRAYSCALE);
    REQUIRE_OK(to_f32(png, &target, got, &err), &err);
    EXPECT_CLOSE(got[2], 10, 0);
    EXPECT_CLOSE(got[3], 200, 0);
    free_bytes(png);
    png = make_png(rgba, 2, 1, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA);
    REQUIRE_OK(to_f32(png, &target, got, &err), &err);
    EXPECT_CLOSE(got[0], 1, 0);
    EXPECT_CLOSE(got[5], 6, 0);
    free_bytes(png);
}

static void colour_becomes_grey_by_its_weights(void)
{
    static const uint8_t pixel[] = {100, 50, 200};
    struct ifd_err err = {0};
    float got = 0;
    struct ifd_image_target target = target_of(1, 1, 1);
    struct ifd_bytes png = make_png(pixel, 1, 1, SPNG_COLOR_TYPE_TRUECOLOR);
    REQUIRE_OK(to_f32(png, &target, &got, &err), &err);
    EXPECT_CLOSE(got, 0.299 * 100 + 0.587 * 50 + 0.114 * 200, 0.001);
    free_bytes(png);
}

static void jpeg_is_close_to_what_was_written(void)
{
    static uint8_t pixel[16 * 16 * 3];
    struct ifd_err err = {0};
    float got[16 * 16 * 3];
    struct ifd_image_target target = target_of(16, 16, 3);
    for (int i = 0; i < 16 * 16; i++) {
        pixel[3 * i] = (uint8_t)(8 * (i % 16));
        pixel[3 * i + 1] = (uint8_t)(8 * (i / 16));
        pixel[3 * i + 2] = 90;
    }
    for (int progressive = 0; progressive < 2; progressive++) {
        struct ifd_bytes jpeg = make_jpeg(pixel, 16, 16, progressive == 1);
        REQUIRE_OK(to_f32(jpeg, &target, got, &err), &err);
        for (int i = 0; i < 16 * 16; i++) {
            EXPECT_CLOSE(got[3 * i], pixel[3 * i], 12);
        }
        free_bytes(jpeg);
    }
}

/* What the decoder makes for a target; to be released with ifd_decoded_free. */
static enum ifd_code decode_for(const struct ifd_picture_source *source,
                                const struct ifd_image_target *target,
                                const struct ifd_image_limits *within,
                                const struct ifd_alloc *alloc, struct ifd_decoded *ret,
                                struct ifd_err *err)
{
    const struct ifd_picture picture = {.source = *source};
    struct ifd_codec_request request = {.picture = &picture,
                                        .count = 1,
                                        .target = target,
                                        .limits = within,
                                        .alloc = alloc,
                                        .ret = ret,
                                        .err = err};
    return ifd_codec_decode(&request);
}

static void expect_reduced(struct ifd_bytes jpeg, const struct ifd_image_target *target,
                           uint32_t width, uint32_t height)
{
    const struct ifd_picture_source source = {.bytes = jpeg};
    struct ifd_err err = {0};
    struct ifd_decoded decoded;
    REQUIRE_OK(decode_for(&source, target, &limits, ifd_alloc_system(), &decoded, &err), &err);
    EXPECT_INT(decoded.plane[0].width, width);
    EXPECT_INT(decoded.plane[0].height, height);
    EXPECT_INT(decoded.plane[0].data[0], 77);
    ifd_decoded_free(&decoded, ifd_alloc_system());
}

static void large_jpeg_is_reduced_while_decoding_but_not_below_the_target(void)
{
    static uint8_t pixel[256 * 128 * 3];
    struct ifd_image_target target = target_of(30, 30, 3);
    memset(pixel, 77, sizeof(pixel));
    struct ifd_bytes jpeg = make_jpeg(pixel, 256, 128, false);
    expect_reduced(jpeg, &target, 64, 32); /* 2/8; 1/8 would be 16 < 30 rows */
    target.resize = IFD_RESIZE_LETTERBOX;  /* 30 × 15 is shown */
    expect_reduced(jpeg, &target, 32, 16);
    target = target_of(40, 80, 3);
    expect_reduced(jpeg, &target, 128, 64); /* 3/8 would do, but takes longer */
    free_bytes(jpeg);
}

/* Adam7 has seven passes, whose rows are not adjacent. */
static void interlaced_png_is_returned_exactly(void)
{
    enum { WIDTH = 19, HEIGHT = 13 };
    static uint8_t pixel[WIDTH * HEIGHT * 3];
    static float got[WIDTH * HEIGHT * 3];
    struct ifd_err err = {0};
    struct ifd_image_target target = target_of(HEIGHT, WIDTH, 3);
    for (size_t i = 0; i < sizeof(pixel); i++) {
        pixel[i] = (uint8_t)(i * 7 + i / 57);
    }
    struct ifd_bytes png = make_png_as(pixel,
                                       (struct spng_ihdr){.width = WIDTH,
                                                          .height = HEIGHT,
                                                          .bit_depth = 8,
                                                          .color_type = SPNG_COLOR_TYPE_TRUECOLOR,
                                                          .interlace_method = 1},
                                       NULL);
    REQUIRE_OK(to_f32(png, &target, got, &err), &err);
    for (size_t i = 0; i < sizeof(pixel); i++) {
        EXPECT_CLOSE(got[i], pixel[i], 0);
    }
    free_bytes(png);
}

static void webp_is_returned_exactly_if_it_is_lossless(void)
{
    enum { WIDTH = 19, HEIGHT = 13 };
    static uint8_t pixel[WIDTH * HEIGHT * 3];
    static float got[WIDTH * HEIGHT * 3];
    struct ifd_err err = {0};
    struct ifd_image_target target = target_of(HEIGHT, WIDTH, 3);
    for (size_t i = 0; i < sizeof(pixel); i++) {
        pixel[i] = (uint8_t)(i * 7 + i / 57);
    }
    struct ifd_bytes webp = make_webp(pixel, WIDTH, HEIGHT);
    REQUIRE_OK(to_f32(webp, &target, got, &err), &err);
    for (size_t i = 0; i < sizeof(pixel); i++) {
        EXPECT_CLOSE(got[i], pixel[i], 0);
    }
    free_bytes(webp);
}

/* The format has an extended header before the pixels, and EXIF behind them. */
static void webp_is_turned_upright(void)
{
    static const uint8_t pixel[] = {10, 10, 10, 90, 90, 90};
    static const uint8_t exif[] = {'E', 'X', 'I', 'F', 26, 0, 0,    0, 'I', 'I', 42, 0,
                                   8,   0,   0,   0,   1,  0, 0x12, 1, 3,   0,   1,  0,
                                   0,   0,   3,   0,   0,  0, 0,    0, 0,   0};
    static const uint8_t extended[] = {'V', 'P', '8', 'X', 10, 0, 0, 0, 8,
                                       0,   0,   0,   1,   0,  0, 0, 0, 0};
    struct ifd_bytes plain = make_webp(pixel, 2, 1);
    uint8_t webp[400];
    struct ifd_err err = {0};
    float got[2];
    const struct ifd_image_target target = target_of(1, 2, 1);
    const size_t size = plain.size + sizeof(extended) + sizeof(exif);
    REQUIRE(size <= sizeof(webp));
    memcpy(webp, plain.data, 12);
    memcpy(webp + 12, extended, sizeof(extended));
    memcpy(webp + 12 + sizeof(extended), plain.data + 12, plain.size - 12);
    memcpy(webp + sizeof(extended) + plain.size, exif, sizeof(exif));
    for (int i = 0; i < 4; i++) {
        webp[4 + i] = (uint8_t)((size - 8) >> (8 * i));
    }
    REQUIRE_OK(to_f32((struct ifd_bytes){webp, size}, &target, got, &err), &err);
    EXPECT_CLOSE(got[0], 90, 1e-3); /* orientation 3: upside down */
    EXPECT_CLOSE(got[1], 10, 1e-3);
    free_bytes(plain);
}

/* Two columns, three rows: reds 1 … 6, greens 11 … 16, blues 21 … 26 from the top left. The rows
 * are written by hand after the format's description: blue, green, red; padded to whole words; the
 * lowest row first unless the height is negative. */
static void expect_bmp(const uint8_t *rows, size_t rows_bytes, uint8_t bits, bool is_top_down)
{
    uint8_t bmp[54 + 24] = {'B', 'M'};
    struct ifd_err err = {0};
    float got[18];
    struct ifd_image_target target = target_of(3, 2, 3);
    const int32_t height = is_top_down ? -3 : 3;
    bmp[10] = 54; /* where rows begin */
    bmp[14] = 40; /* bytes of this header */
    bmp[18] = 2;
    for (int i = 0; i < 4; i++) {
        bmp[22 + i] = (uint8_t)((uint32_t)height >> (8 * i));
    }
    bmp[26] = 1;
    bmp[28] = bits;
    memcpy(bmp + 54, rows, rows_bytes);
    REQUIRE_OK(to_f32((struct ifd_bytes){bmp, 54 + rows_bytes}, &target, got, &err), &err);
    for (int i = 0; i < 6; i++) {
        EXPECT_CLOSE(got[3 * i], 1 + i, 0);
        EXPECT_CLOSE(got[3 * i + 1], 11 + i, 0);
        EXPECT_CLOSE(got[3 * i + 2], 21 + i, 0);
    }
    expect_refused((struct ifd_bytes){bmp, 53 + rows_bytes}, IFD_CORRUPT, "2×3 ends too early");
}

static void bmp_rows_come_from_below_or_from_above_and_blue_is_first(void)
{
    static const uint8_t up24[] = {25, 15, 5, 26, 16, 6,  0, 0,  23, 13, 3, 24,
                                   14, 4,  0, 0,  21, 11, 1, 22, 12, 2,  0, 0};
    static const uint8_t down24[] = {21, 11, 1, 22, 12, 2,  0, 0,  23, 13, 3, 24,
                                     14, 4,  0, 0,  25, 15, 5, 26, 16, 6,  0, 0};
    static const uint8_t up32[] = {25, 15, 5, 99, 26, 16, 6, 99, 23, 13, 3, 99,
                                   24, 14, 4, 99, 21, 11, 1, 99, 22, 12, 2, 99};
    static const uint8_t down32[] = {21, 11, 1, 99, 22, 12, 2, 99, 23, 13, 3, 99,
                                     24, 14, 4, 99, 25, 15, 5, 99, 26, 16, 6, 99};
    expect_bmp(up24, sizeof(up24), 24, false);
    expect_bmp(down24, sizeof(down24), 24, true);
    expect_bmp(up32, sizeof(up32), 32, false);
    expect_bmp(down32, sizeof(down32), 32, true);
}

/* ---- the way back ---- */

static void points_of_the_input_lead_back_to_the_picture(void)
{
    static uint8_t pixel[256 * 128 * 3];
    float got[32 * 16 * 3];
    struct ifd_err err = {0};
    struct ifd_image_target target = target_of(16, 32, 3);
    struct ifd_bytes jpeg = make_jpeg(pixel, 256, 128, false); /* reduced while it is decoded */
    const struct ifd_picture_source source = {.bytes = jpeg};
    struct ifd_tensor tensor = {.dtype = IFD_F32, .data = got, .bytes = sizeof(got)};
    struct ifd_picture_view view;
    double x = 0, y = 0;
    REQUIRE_OK(
        ifd_image_to_tensor(&source, &target, &limits, &tensor, ifd_alloc_system(), &view, &err),
        &err);
    EXPECT_INT(view.width, 256);
    EXPECT_INT(view.height, 128);
    EXPECT_INT(view.region.width, 256);
    ifd_picture_view_to_picture(&view, 32, 4, &x, &y);
    EXPECT_CLOSE(x, 256, 0);
    EXPECT_CLOSE(y, 32, 0);
    free_bytes(jpeg);
}

/* ---- refusals ---- */

/* Only headers; nothing may be allocated for the size that they claim. */
static void giant_headers_are_refused_before_memory_is_taken(void)
{
    static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xc0, 0,    17, 8, 0x75, 0x30, 0x75, 0x30, 3,
                                   1,    0x11, 0,    2,    0x11, 0,  3, 0x11, 0,    0xff, 0xda, 0,
                                   12,   3,    1,    0,    2,    0,  3, 0,    0,    63,   0};
    expect_refused((struct ifd_bytes){jpeg, sizeof(jpeg)}, IFD_TOO_LARGE, "30000×30000");
    uint8_t png[] = {0x89, 'P',  'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0, 0,
                     13,   'I',  'H', 'D', 'R',  0,    0,    0x75, 0x30, 0, 0,
                     0x75, 0x30, 8,   2,   0,    0,    0,    0,    0,    0, 0};
    uint32_t crc = 0xffffffffu;
    for (size_t i = 12; i < 29; i++) {
        crc ^= png[i];
        for (int b = 0; b < 8; b++) {
            crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
        }
    }
    crc = ~crc;
    for (int i = 0; i < 4; i++) {
        png[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
    }
    expect_refused((struct ifd_bytes){png, sizeof(png)}, IFD_TOO_LARGE, "30000×30000");
    uint8_t bmp[54] = {'B', 'M'};
    bmp[18] = bmp[22] = 0x30;
    bmp[19] = bmp[23] = 0x75;
    bmp[28] = 24;
    expect_refused((struct ifd_bytes){bmp, sizeof(bmp)}, IFD_TOO_LARGE, "30000×30000");
}

static void truncated_pictures_are_refused(void)
{
    static uint8_t pixel[64 * 64 * 3];
    for (size_t i = 0; i < sizeof(pixel); i++) {
        pixel[i] = (uint8_t)(i * 37);
    }
    struct ifd_bytes jpeg = make_jpeg(pixel, 64, 64, false);
    struct ifd_bytes png = make_png(pixel, 64, 64, SPNG_COLOR_TYPE_TRUECOLOR);
    expect_refused((struct ifd_bytes){jpeg.data, jpeg.size / 2}, IFD_CORRUPT, "JPEG");
    expect_refused((struct ifd_bytes){jpeg.data, 20}, IFD_CORRUPT, "JPEG");
    expect_refused((struct ifd_bytes){png.data, png.size / 2}, IFD_CORRUPT, "PNG");
    struct ifd_bytes webp = make_webp(pixel, 64, 64);
    expect_refused((struct ifd_bytes){webp.data, webp.size / 2}, IFD_CORRUPT, "WebP");
    expect_refused((struct ifd_bytes){webp.data, 14}, IFD_CORRUPT, "WebP");
    free_bytes(webp);
    free_bytes(jpeg);
    free_bytes(png);
}

static void other_content_is_refused(void)
{
    expect_refused((struct ifd_bytes){(const uint8_t *)"GIF89a", 6}, IFD_INVALID, "neither");
    expect_refused((struct ifd_bytes){NULL, 0}, IFD_INVALID, "0 bytes");
}

static void wrong_tensor_sizes_and_types_are_refused(void)
{
    static const uint8_t pixel[12] = {0};
    struct ifd_bytes png = make_png(pixel, 2, 2, SPNG_COLOR_TYPE_TRUECOLOR);
    const struct ifd_picture_source source = {.bytes = png};
    const struct ifd_image_target target = target_of(2, 2, 3);
    struct ifd_tensor tensor = {.dtype = IFD_U8, .data = (void *)(uintptr_t)pixel, .bytes = 11};
    struct ifd_picture_view view;
    EXPECT_INT(
        ifd_image_to_tensor(&source, &target, &limits, &tensor, ifd_alloc_system(), &view, NULL),
        IFD_INVALID);
    tensor.dtype = IFD_S64;
    tensor.bytes = 96;
    EXPECT_INT(
        ifd_image_to_tensor(&source, &target, &limits, &tensor, ifd_alloc_system(), &view, NULL),
        IFD_UNSUPPORTED);
    free_bytes(png);
}

static void missing_memory_leaks_nothing(void)
{
    static uint8_t pixel[8 * 8 * 3];
    static char text[] = "a comment";
    float got[12];
    struct ifd_image_target target = target_of(2, 2, 3);
    const struct spng_ihdr commented = {
        .width = 8, .height = 8, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    struct ifd_bytes picture[] = {make_jpeg(pixel, 8, 8, false), make_jpeg(pixel, 8, 8, true),
                                  make_png(pixel, 8, 8, SPNG_COLOR_TYPE_TRUECOLOR),
                                  make_png_as(pixel, commented, text), make_webp(pixel, 8, 8)};
    for (size_t p = 0; p < sizeof(picture) / sizeof(picture[0]); p++) {
        bool was_failed = true;
        for (long k = 1; was_failed; k++) {
            struct fail_alloc fail;
            fail_alloc_init(&fail, k);
            const struct ifd_picture_source source = {.bytes = picture[p]};
            struct ifd_tensor tensor = {.dtype = IFD_F32, .data = got, .bytes = sizeof(got)};
            struct ifd_picture_view view;
            enum ifd_code code =
                ifd_image_to_tensor(&source, &target, &limits, &tensor, &fail.alloc, &view, NULL);
            was_failed = fail.failed;
            EXPECT_INT(code, was_failed ? IFD_NOMEM : IFD_OK);
            fail_alloc_finish(&fail);
        }
        free_bytes(picture[p]);
    }
}

/* ---- memory of the libraries ---- */

/* Decodes with an allocator that lends at most limit_bytes. */
static enum ifd_code decode_within(struct ifd_bytes picture, size_t limit_bytes,
                                   struct ifd_err *err)
{
    struct ifd_quota quota;
    struct ifd_decoded decoded;
    const struct ifd_picture_source source = {.bytes = picture};
    const struct ifd_image_target target = target_of(8, 8, 3);
    ifd_quota_init(&quota, ifd_alloc_system(), limit_bytes, limit_bytes);
    enum ifd_code code = decode_for(&source, &target, &limits, &quota.alloc, &decoded, err);
    ifd_decoded_free(&decoded, &quota.alloc);
    EXPECT_INT(quota.used_bytes, 0);
    return code;
}

/* The pixels of 1024×1024, scaled by an eighth, take 48 KiB. The coefficients of the whole picture
 * take 3 MiB: two bytes per sample, and the two colour components have a quarter of the samples. */
static void coefficients_of_a_progressive_jpeg_are_counted(void)
{
    const size_t pixel_bytes = (size_t)1024 * 1024 * 3;
    uint8_t *pixel = calloc(1, pixel_bytes);
    REQUIRE(pixel);
    struct ifd_err err = {0};
    struct ifd_bytes plain = make_jpeg(pixel, 1024, 1024, false),
                     progressive = make_jpeg(pixel, 1024, 1024, true);
    free(pixel);
    const size_t coefficient_bytes = (size_t)1024 * 1024 * 3;
    EXPECT_CODE(decode_within(plain, coefficient_bytes, &err), IFD_OK, &err);
    EXPECT_CODE(decode_within(progressive, coefficient_bytes, &err), IFD_NOMEM, &err);
    EXPECT_HAS(err.text, "no memory to decode a JPEG picture of 1024×1024");
    EXPECT_CODE(decode_within(progressive, coefficient_bytes + (1 << 18), &err), IFD_OK, &err);
    free_bytes(plain);
    free_bytes(progressive);
}

/* A row of four 16-bit samples per pixel takes 800 KB, the decoded pixels take 300 KB. */
static void rows_of_a_wide_png_are_counted(void)
{
    const struct spng_ihdr head = {.width = 100000,
                                   .height = 1,
                                   .bit_depth = 16,
                                   .color_type = SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
    const size_t row_bytes = 800000, pixel_bytes = 300000;
    uint8_t *pixel = calloc(1, row_bytes);
    REQUIRE(pixel);
    struct ifd_err err = {0};
    struct ifd_bytes png = make_png_as(pixel, head, NULL);
    free(pixel);
    EXPECT_CODE(decode_within(png, row_bytes + pixel_bytes, &err), IFD_NOMEM, &err);
    EXPECT_HAS(err.text, "no memory to decode a PNG picture of 100000×1");
    EXPECT_CODE(decode_within(png, 3 * row_bytes + pixel_bytes, &err), IFD_OK, &err);
    free_bytes(png);
}

static void comments_of_a_png_are_counted(void)
{
    static const uint8_t pixel[3];
    const size_t text_bytes = (size_t)2 << 20;
    const struct spng_ihdr head = {
        .width = 1, .height = 1, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    char *text = calloc(1, text_bytes + 1);
    REQUIRE(text);
    memset(text, 'a', text_bytes);
    struct ifd_err err = {0};
    struct ifd_bytes png = make_png_as(pixel, head, text);
    free(text);
    EXPECT(png.size < text_bytes / 100);
    EXPECT_CODE(decode_within(png, text_bytes / 2, &err), IFD_NOMEM, &err);
    EXPECT_CODE(decode_within(png, 4 * text_bytes, &err), IFD_OK, &err);
    free_bytes(png);
}

/* A few bytes that become 4 MB in the library, which asks no allocator of ours. */
static void memory_of_a_webp_is_counted(void)
{
    enum { SIDE = 1000 };
    static uint8_t black[SIDE * SIDE * 3];
    struct ifd_err err = {0};
    struct ifd_bytes webp = make_webp(black, SIDE, SIDE);
    EXPECT(webp.size < 1000);
    EXPECT_CODE(decode_within(webp, (size_t)6 * SIDE * SIDE, &err), IFD_NOMEM, &err);
    EXPECT_CODE(decode_within(webp, (size_t)10 * SIDE * SIDE, &err), IFD_OK, &err);
    free_bytes(webp);
}

/* ---- guard pages: SIMD code of the libraries reads and writes whole vectors ---- */

/* Every block ends where an unreadable page begins, as far as its alignment permits. */
static void *acquire_guarded(void *context, size_t size, size_t align)
{
    (void)context;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + align - 1) & ~(align - 1);
    const size_t bytes = (whole + page - 1) / page * page;
    uint8_t *at =
        mmap(NULL, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED && mprotect(at + bytes, page, PROT_NONE) == 0);
    return at + bytes - whole;
}

static void release_guarded(void *context, void *ptr, size_t size)
{
    (void)context;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)ptr & ~(page - 1);
    const uintptr_t end = ((uintptr_t)ptr + size + page - 1) / page * page;
    (void)munmap((void *)begin, end - begin + page);
}

static void libraries_stay_within_their_memory(void)
{
    static const struct ifd_alloc guarded = {.acquire = acquire_guarded,
                                             .release = release_guarded};
    static uint8_t pixel[70 * 40 * 3];
    for (size_t i = 0; i < sizeof(pixel); i++) {
        pixel[i] = (uint8_t)(i * 31 + i / 70);
    }
    for (uint32_t width = 1; width <= 70; width++) {
        const uint32_t height = 1 + width % 40;
        const struct ifd_image_target targets[] = {target_of(height, width, 3), target_of(3, 5, 1)};
        const struct spng_ihdr interlaced = {.width = width,
                                             .height = height,
                                             .bit_depth = 8,
                                             .color_type = SPNG_COLOR_TYPE_TRUECOLOR,
                                             .interlace_method = 1};
        struct ifd_bytes picture[] = {make_jpeg(pixel, width, height, false),
                                      make_jpeg(pixel, width, height, true),
                                      make_png_as(pixel, interlaced, NULL)};
        for (size_t i = 0; i < 6; i++) {
            const struct ifd_picture_source source = {.bytes = picture[i / 2]};
            struct ifd_decoded decoded;
            struct ifd_err err = {0};
            EXPECT_CODE(decode_for(&source, &targets[i % 2], &limits, &guarded, &decoded, &err),
                        IFD_OK, &err);
            ifd_decoded_free(&decoded, &guarded);
        }
        for (size_t i = 0; i < 3; i++) {
            free_bytes(picture[i]);
        }
    }
}

/* ---- pictures that are not wanted any more ---- */

struct patience {
    int rows;
};

static bool is_over(void *arg)
{
    return ((struct patience *)arg)->rows-- == 0;
}

static void decoding_ends_between_rows_when_it_is_over(void)
{
    static uint8_t pixel[64 * 64 * 3];
    static uint8_t bmp[54 + 64 * 64 * 3] = {'B', 'M', [10] = 54, [18] = 64, [22] = 64, [28] = 24};
    const struct ifd_image_target target = target_of(64, 64, 3);
    struct ifd_bytes picture[] = {make_jpeg(pixel, 64, 64, false),
                                  make_jpeg(pixel, 64, 64, true),
                                  make_png(pixel, 64, 64, SPNG_COLOR_TYPE_TRUECOLOR),
                                  {.data = bmp, .size = sizeof(bmp)}};
    for (int p = 0; p < 4; p++) {
        for (int rows = 0; rows < 4; rows++) {
            struct fail_alloc memory;
            struct ifd_err err = {0};
            const struct ifd_picture_source source = {.bytes = picture[p]};
            struct ifd_decoded decoded;
            struct patience patience = {.rows = rows};
            const struct ifd_image_limits impatient = {
                .max_pixels = 64 * 64, .is_over = is_over, .arg = &patience};
            fail_alloc_init(&memory, 0);
            EXPECT_CODE(decode_for(&source, &target, &impatient, &memory.alloc, &decoded, &err),
                        IFD_CANCELLED, &err);
            EXPECT_INT(patience.rows, -1); /* not asked again */
            EXPECT(!decoded.memory);
            fail_alloc_finish(&memory);
        }
    }
    for (int p = 0; p < 3; p++) {
        free_bytes(picture[p]);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(png_of_the_same_size_is_returned_exactly),
        T(grey_and_alpha_become_three_channels),
        T(colour_becomes_grey_by_its_weights),
        T(jpeg_is_close_to_what_was_written),
        T(large_jpeg_is_reduced_while_decoding_but_not_below_the_target),
        T(interlaced_png_is_returned_exactly),
        T(webp_is_returned_exactly_if_it_is_lossless),
        T(webp_is_turned_upright),
        T(memory_of_a_webp_is_counted),
        T(bmp_rows_come_from_below_or_from_above_and_blue_is_first),
        T(points_of_the_input_lead_back_to_the_picture),
        T(giant_headers_are_refused_before_memory_is_taken),
        T(truncated_pictures_are_refused),
        T(other_content_is_refused),
        T(wrong_tensor_sizes_and_types_are_refused),
        T(missing_memory_leaks_nothing),
        T(coefficients_of_a_progressive_jpeg_are_counted),
        T(rows_of_a_wide_png_are_counted),
        T(comments_of_a_png_are_counted),
        T(libraries_stay_within_their_memory),
        T(decoding_ends_between_rows_when_it_is_over),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

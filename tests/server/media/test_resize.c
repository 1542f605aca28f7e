/* From pixels to tensors: geometry, weights, colours, storing. Pixels come as frames without a
 * header, so nothing decodes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/media/geometry.h"
#include "server/media/image.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

static const struct ifd_image_limits limits = {.max_pixels = 1 << 20};

static struct ifd_image_target target_of(uint32_t height, uint32_t width, uint32_t channels)
{
    return (struct ifd_image_target){
        .height = height, .width = width, .channels = channels, .std = {1, 1, 1, 1}};
}

static struct ifd_picture_source frame_of(enum ifd_frame_format format, uint32_t width,
                                          uint32_t height, const uint8_t *data, size_t bytes)
{
    return (struct ifd_picture_source){
        .bytes = {data, bytes}, .format = format, .width = width, .height = height};
}

static enum ifd_code take(const struct ifd_picture_source *source,
                          const struct ifd_image_target *target, enum ifd_dtype dtype, void *data,
                          struct ifd_err *err)
{
    struct ifd_picture_view view;
    struct ifd_tensor tensor = {.dtype = dtype, .data = data};
    tensor.bytes = (size_t)target->height * target->width * target->channels;
    tensor.bytes *= ifd_dtype_bytes(dtype);
    return ifd_image_to_tensor(source, target, &limits, &tensor, ifd_alloc_system(), &view, err);
}

static void must_take(const struct ifd_picture_source *source,
                      const struct ifd_image_target *target, enum ifd_dtype dtype, void *data)
{
    struct ifd_err err = {0};
    REQUIRE_OK(take(source, target, dtype, data, &err), &err);
}

/* ---- weights ---- */

static void resizing_follows_half_pixel_centres(void)
{
    static const uint8_t row[] = {0, 100, 200, 40};
    static const float want[] = {0, 25, 75, 125, 175, 160, 80, 40}; /* at -.25 .25 .75 1.25 … */
    for (int is_column = 0; is_column < 2; is_column++) {
        const struct ifd_picture_source source =
            frame_of(IFD_FRAME_GRAY8, is_column ? 1 : 4, is_column ? 4 : 1, row, 4);
        const struct ifd_image_target target = target_of(is_column ? 8 : 1, is_column ? 1 : 8, 1);
        float got[8];
        must_take(&source, &target, IFD_F32, got);
        for (int i = 0; i < 8; i++) {
            EXPECT_CLOSE(got[i], want[i], 1e-4);
        }
    }
}

/* Weights at 4 to 2: 3/4, 3/4, 1/4 of the next pixels, divided by their sum. */
static void every_pixel_counts_when_a_picture_gets_smaller(void)
{
    static const uint8_t row[] = {0, 100, 200, 40};
    const struct ifd_picture_source source = frame_of(IFD_FRAME_GRAY8, 4, 1, row, 4);
    const struct ifd_image_target target = target_of(1, 2, 1);
    float got[2];
    must_take(&source, &target, IFD_F32, got);
    EXPECT_CLOSE(got[0], (0 * 3 + 100 * 3 + 200 * 1) / 7.0, 1e-4);
    EXPECT_CLOSE(got[1], (100 * 1 + 200 * 3 + 40 * 3) / 7.0, 1e-4);
}

struct golden {
    uint32_t width, height;
    float value[7 * 25];
};

/* Of floats to float precision, of bytes to one step. */
static void weights_are_those_of_pillow(void)
{
#define X(width, height, ...) {width, height, {__VA_ARGS__}},
    static const struct golden golden[] = {
#include "tests/server/media/resize_golden.inc"
    };
#undef X
    uint8_t pixel[9 * 13];
    for (unsigned y = 0; y < 9; y++) {
        for (unsigned x = 0; x < 13; x++) {
            pixel[y * 13 + x] = (uint8_t)(x * 37 + y * 101 + x * y * 7);
        }
    }
    const struct ifd_picture_source source = frame_of(IFD_FRAME_GRAY8, 13, 9, pixel, sizeof(pixel));
    for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++) {
        const struct golden *g = &golden[i];
        const struct ifd_image_target target = target_of(g->height, g->width, 1);
        float got[200];
        uint8_t bytes[200];
        must_take(&source, &target, IFD_F32, got);
        must_take(&source, &target, IFD_U8, bytes);
        for (size_t k = 0; k < (size_t)g->width * g->height; k++) {
            EXPECT_CLOSE(got[k], g->value[k], 2e-3);
            EXPECT_CLOSE(bytes[k], g->value[k], 0.6);
        }
    }
}

/* A float has a resolution of 1/64 at row 200,000: positions need more. */
static void position_in_a_tall_picture_is_exact(void)
{
    enum { ROWS = 200000, WANTED = 999 };
    static uint8_t column[ROWS];
    static float got[WANTED];
    const struct ifd_picture_source source = frame_of(IFD_FRAME_GRAY8, 1, ROWS, column, ROWS);
    const struct ifd_image_target target = target_of(WANTED, 1, 1);
    for (uint64_t i = 0; i < ROWS; i++) {
        column[i] = (uint8_t)(i * i / 7 % 251);
    }
    must_take(&source, &target, IFD_F32, got);
    for (int i = 0; i < WANTED; i++) {
        const double ratio = (double)ROWS / WANTED, centre = (i + 0.5) * ratio;
        double sum = 0, weights = 0;
        for (int k = (int)fmax(centre - ratio - 1, 0); k < fmin(centre + ratio + 1, ROWS); k++) {
            const double weight = fmax(1 - fabs(k + 0.5 - centre) / ratio, 0);
            sum += weight * column[k];
            weights += weight;
        }
        EXPECT_CLOSE(got[i], sum / weights, 2e-3);
    }
}

/* Sums of bytes are exact in their last step, whatever the reduction. */
static void a_white_picture_stays_white(void)
{
    enum { SIDE = 601 };
    static uint8_t white[SIDE * SIDE];
    memset(white, 255, sizeof(white));
    const struct ifd_picture_source source =
        frame_of(IFD_FRAME_GRAY8, SIDE, SIDE, white, sizeof(white));
    for (uint32_t side = 1; side < 100; side += 7) {
        const struct ifd_image_target target = target_of(side, side, 1);
        static uint8_t got[100 * 100];
        must_take(&source, &target, IFD_U8, got);
        EXPECT_BYTES(got, white, (size_t)side * side);
    }
}

/* ---- storing ---- */

static void normalised_values_are_stored_in_the_inputs_type(void)
{
    static const uint8_t pixel[] = {0, 128, 255};
    const struct ifd_picture_source source = frame_of(IFD_FRAME_RGB, 1, 1, pixel, 3);
    struct ifd_image_target target = target_of(1, 1, 3);
    float real[3];
    int8_t stored[3];
    for (int c = 0; c < 3; c++) {
        target.mean[c] = 127.5f;
        target.std[c] = 127.5f;
    }
    must_take(&source, &target, IFD_F32, real);
    EXPECT_CLOSE(real[0], -1, 1e-6);
    EXPECT_CLOSE(real[2], 1, 1e-6);
    target.scale = 1.0f / 128;
    target.zero_point = -1;
    must_take(&source, &target, IFD_S8, stored);
    EXPECT_INT(stored[0], -128); /* -128 - 1 is below the type */
    EXPECT_INT(stored[1], 0);    /* 0.0039 * 128 rounds to 1, minus 1 */
    EXPECT_INT(stored[2], 127);
}

static void layout_and_order_of_channels_are_the_targets(void)
{
    static const uint8_t pixel[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t planes[] = {1, 4, 2, 5, 3, 6}, blue_first[] = {3, 2, 1, 6, 5, 4};
    const struct ifd_picture_source rgb = frame_of(IFD_FRAME_RGB, 2, 1, pixel, 6);
    const struct ifd_picture_source bgr = frame_of(IFD_FRAME_BGR, 2, 1, pixel, 6);
    struct ifd_image_target target = target_of(1, 2, 3);
    uint8_t got[6];
    must_take(&bgr, &target, IFD_U8, got);
    EXPECT_BYTES(got, blue_first, 6);
    target.is_bgr = true;
    must_take(&rgb, &target, IFD_U8, got);
    EXPECT_BYTES(got, blue_first, 6);
    target.is_bgr = false;
    target.channels_first = true;
    must_take(&rgb, &target, IFD_U8, got);
    EXPECT_BYTES(got, planes, 6);
}

/* ---- geometry ---- */

static void a_letterbox_shows_all_between_bars(void)
{
    static const uint8_t pixel[] = {10, 20, 30, 40, 50, 60, 70, 80};
    static const uint8_t want[] = {7, 7, 7, 7, 10, 20, 30, 40, 50, 60, 70, 80, 7, 7, 7, 7};
    const struct ifd_picture_source source = frame_of(IFD_FRAME_GRAY8, 4, 2, pixel, 8);
    struct ifd_image_target target = target_of(4, 4, 1);
    uint8_t got[16];
    target.resize = IFD_RESIZE_LETTERBOX;
    target.fill[0] = 7;
    must_take(&source, &target, IFD_U8, got);
    EXPECT_BYTES(got, want, 16);
}

static void bars_are_normalised_and_have_a_value_for_each_channel(void)
{
    static const uint8_t pixel[] = {10, 20, 30, 40, 50, 60};
    const struct ifd_picture_source source = frame_of(IFD_FRAME_RGB, 1, 2, pixel, 6);
    struct ifd_image_target target = target_of(2, 2, 3);
    float got[12];
    target.resize = IFD_RESIZE_LETTERBOX;
    target.channels_first = true;
    for (int c = 0; c < 3; c++) {
        target.fill[c] = (float)c;
        target.mean[c] = 1;
        target.std[c] = 2;
    }
    must_take(&source, &target, IFD_F32, got);
    /* The picture is the left column; (2 - 1) / 2 lies beside it: half a pixel has no bar. */
    static const float want[] = {4.5f,  -.5f, 19.5f, -.5f, 9.5f,  0,
                                 24.5f, 0,    14.5f, .5f,  29.5f, .5f};
    for (int i = 0; i < 12; i++) {
        EXPECT_CLOSE(got[i], want[i], 1e-6);
    }
}

static void a_crop_shows_the_middle(void)
{
    static const uint8_t pixel[] = {10, 20, 30, 40, 50, 60, 70, 80};
    static const uint8_t want[] = {20, 30, 60, 70};
    const struct ifd_picture_source source = frame_of(IFD_FRAME_GRAY8, 4, 2, pixel, 8);
    struct ifd_image_target target = target_of(2, 2, 1);
    uint8_t got[4];
    target.resize = IFD_RESIZE_CROP;
    must_take(&source, &target, IFD_U8, got);
    EXPECT_BYTES(got, want, 4);
}

static void a_request_may_resize_otherwise_and_name_a_region(void)
{
    static const uint8_t pixel[] = {10, 20, 30, 40, 50, 60, 70, 80};
    struct ifd_picture_source source = frame_of(IFD_FRAME_GRAY8, 4, 2, pixel, 8);
    struct ifd_image_target target = target_of(2, 2, 1);
    struct ifd_err err = {0};
    uint8_t got[4];
    target.resize = IFD_RESIZE_STRETCH;
    source.has_resize = true;
    source.resize = IFD_RESIZE_CROP;
    must_take(&source, &target, IFD_U8, got);
    EXPECT_BYTES(got, ((const uint8_t[]){20, 30, 60, 70}), 4);
    source.has_region = true;
    source.region = (struct ifd_picture_region){.x = 2, .y = 0, .width = 2, .height = 2};
    must_take(&source, &target, IFD_U8, got);
    EXPECT_BYTES(got, ((const uint8_t[]){30, 40, 70, 80}), 4);
    source.region.width = 3;
    EXPECT_CODE(take(&source, &target, IFD_U8, got, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "region 2,0,3,2 is empty or leaves the picture of 4×2");
    source.region = (struct ifd_picture_region){.width = UINT32_MAX, .height = 1, .x = 1};
    EXPECT_CODE(take(&source, &target, IFD_U8, got, &err), IFD_INVALID, &err);
    source.region = (struct ifd_picture_region){.width = 0, .height = 1};
    EXPECT_CODE(take(&source, &target, IFD_U8, got, &err), IFD_INVALID, &err);
}

/* 1280 × 720 in 300 × 300: 300 × 169 with 65 rows above; a pixel is 1280 / 300 wide. */
static void points_of_the_input_lead_back_through_a_letterbox(void)
{
    struct ifd_geometry geometry;
    double x = 0, y = 0;
    REQUIRE_OK(ifd_geometry_plan(NULL, IFD_RESIZE_LETTERBOX, 1280, 720, 300, 300, &geometry, NULL),
               NULL);
    EXPECT_INT(geometry.to.width, 300);
    EXPECT_INT(geometry.to.height, 169);
    EXPECT_INT(geometry.to.y, 65);
    struct ifd_picture_view view = ifd_geometry_view(&geometry);
    ifd_picture_view_to_picture(&view, 300, 65, &x, &y);
    EXPECT_CLOSE(x, 1280, 1e-9);
    EXPECT_CLOSE(y, 0, 1e-9);
    ifd_picture_view_to_picture(&view, 0, 65 + 169, &x, &y);
    EXPECT_CLOSE(x, 0, 1e-9);
    EXPECT_CLOSE(y, 720, 1e-9);
}

static void points_of_the_input_lead_back_through_a_crop_of_a_region(void)
{
    const struct ifd_picture_region region = {.x = 100, .y = 50, .width = 400, .height = 200};
    struct ifd_geometry geometry;
    double x = 0, y = 0;
    REQUIRE_OK(ifd_geometry_plan(&region, IFD_RESIZE_CROP, 1280, 720, 100, 100, &geometry, NULL),
               NULL);
    struct ifd_picture_view view = ifd_geometry_view(&geometry); /* shows 200,50,200,200 */
    EXPECT_INT(view.width, 1280);
    EXPECT_INT(view.region.x, 100);
    EXPECT_INT(view.region.width, 400);
    ifd_picture_view_to_picture(&view, 0, 100, &x, &y);
    EXPECT_CLOSE(x, 200, 1e-9);
    EXPECT_CLOSE(y, 250, 1e-9);
}

/* ---- frames ---- */

/* Two by two pixels, all of them red: 81, 90, 240 in BT.601. */
static void expect_red(enum ifd_frame_format format, uint32_t stride, const uint8_t *data,
                       size_t bytes)
{
    struct ifd_picture_source source = frame_of(format, 2, 2, data, bytes);
    const struct ifd_image_target colour = target_of(2, 2, 3), grey = target_of(1, 1, 1);
    float got[12], light = 0;
    source.stride = stride;
    must_take(&source, &colour, IFD_F32, got);
    for (int i = 0; i < 4; i++) {
        EXPECT_CLOSE(got[3 * i], 255, 1);
        EXPECT_CLOSE(got[3 * i + 1], 0, 1);
        EXPECT_CLOSE(got[3 * i + 2], 0, 1);
    }
    must_take(&source, &grey, IFD_F32, &light);
    EXPECT_CLOSE(light, 0.299 * 255, 1);
}

static void yuv_becomes_rgb(void)
{
    static const uint8_t nv12[] = {81, 81, 81, 81, 90, 240};
    static const uint8_t nv12_padded[] = {81, 81, 0, 0, 81, 81, 0, 0, 90, 240, 0, 0};
    static const uint8_t i420[] = {81, 81, 81, 81, 90, 240};
    static const uint8_t i420_padded[] = {81, 81, 0, 0, 81, 81, 0, 0, 90, 0, 240, 0};
    static const uint8_t yuyv[] = {81, 90, 81, 240, 81, 90, 81, 240};
    expect_red(IFD_FRAME_NV12, 0, nv12, sizeof(nv12));
    expect_red(IFD_FRAME_NV12, 4, nv12_padded, sizeof(nv12_padded));
    expect_red(IFD_FRAME_I420, 0, i420, sizeof(i420));
    expect_red(IFD_FRAME_I420, 4, i420_padded, sizeof(i420_padded));
    expect_red(IFD_FRAME_YUYV, 0, yuyv, sizeof(yuyv));
}

/* The colour of a pair of pixels belongs to both, and nothing is read behind the last. */
static void frames_of_odd_sizes_are_read(void)
{
    static const uint8_t white_black[] = {235, 235, 16,  16, /* a row of 3 and a byte of padding */
                                          128, 128, 128, 128};
    const struct ifd_picture_source nv12 = frame_of(IFD_FRAME_NV12, 3, 1, white_black, 8);
    const struct ifd_image_target target = target_of(1, 3, 3);
    static const uint8_t want[] = {255, 255, 255, 255, 255, 255, 0, 0, 0};
    uint8_t got[9];
    must_take(&nv12, &target, IFD_U8, got);
    EXPECT_BYTES(got, want, 9);
}

static void frames_that_do_not_fit_are_refused(void)
{
    static const uint8_t data[64] = {0};
    const struct ifd_image_target target = target_of(1, 1, 3);
    struct ifd_err err = {0};
    uint8_t got[3];
    struct ifd_picture_source source = frame_of(IFD_FRAME_NV12, 4, 4, data, 23);
    EXPECT_CODE(take(&source, &target, IFD_U8, got, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "4×4 NV12 with a stride of 4 takes 24 bytes, got 23");
    source = frame_of(IFD_FRAME_RGB, 4, 4, data, 48);
    source.stride = 11;
    EXPECT_CODE(take(&source, &target, IFD_U8, got, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "a row of 4 pixels RGB takes 12 bytes, the stride is 11");
    source = frame_of(IFD_FRAME_GRAY8, 0, 4, data, 0);
    EXPECT_CODE(take(&source, &target, IFD_U8, got, &err), IFD_CORRUPT, &err);
    source = frame_of(IFD_FRAME_GRAY8, 1 << 20, 2, data, 64);
    EXPECT_CODE(take(&source, &target, IFD_U8, got, &err), IFD_TOO_LARGE, &err);
    source = frame_of(IFD_FRAME_YUYV, 1, UINT16_MAX, data, 64);
    source.stride = UINT32_MAX;
    EXPECT_CODE(take(&source, &target, IFD_U8, got, &err), IFD_INVALID, &err);
}

/* ---- whole pictures ---- */

static void a_picture_can_be_had_in_its_own_size(void)
{
    static const uint8_t pixel[] = {1, 2, 3, 4, 5, 6};
    struct ifd_picture_source source = frame_of(IFD_FRAME_BGR, 2, 1, pixel, 6);
    struct ifd_pixels pixels;
    struct ifd_err err = {0};
    source.has_region = true; /* is not asked for */
    REQUIRE_OK(ifd_image_decode(&source, &limits, ifd_alloc_system(), &pixels, &err), &err);
    EXPECT_INT(pixels.width, 2);
    EXPECT_INT(pixels.height, 1);
    EXPECT_BYTES(pixels.data, ((const uint8_t[]){3, 2, 1, 6, 5, 4}), 6);
    ifd_pixels_free(&pixels, ifd_alloc_system());
}

static void missing_memory_leaks_nothing(void)
{
    static const uint8_t nv12[24] = {0};
    const struct ifd_picture_source source = frame_of(IFD_FRAME_NV12, 4, 4, nv12, 24);
    bool was_failed = true;
    for (long k = 1; was_failed; k++) {
        struct fail_alloc fail;
        struct ifd_pixels pixels;
        fail_alloc_init(&fail, k);
        enum ifd_code code = ifd_image_decode(&source, &limits, &fail.alloc, &pixels, NULL);
        was_failed = fail.failed;
        EXPECT_INT(code, was_failed ? IFD_NOMEM : IFD_OK);
        ifd_pixels_free(&pixels, &fail.alloc);
        fail_alloc_finish(&fail);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(resizing_follows_half_pixel_centres),
        T(every_pixel_counts_when_a_picture_gets_smaller),
        T(weights_are_those_of_pillow),
        T(position_in_a_tall_picture_is_exact),
        T(a_white_picture_stays_white),
        T(normalised_values_are_stored_in_the_inputs_type),
        T(layout_and_order_of_channels_are_the_targets),
        T(a_letterbox_shows_all_between_bars),
        T(bars_are_normalised_and_have_a_value_for_each_channel),
        T(a_crop_shows_the_middle),
        T(a_request_may_resize_otherwise_and_name_a_region),
        T(points_of_the_input_lead_back_through_a_letterbox),
        T(points_of_the_input_lead_back_through_a_crop_of_a_region),
        T(yuv_becomes_rgb),
        T(frames_of_odd_sizes_are_read),
        T(frames_that_do_not_fit_are_refused),
        T(a_picture_can_be_had_in_its_own_size),
        T(missing_memory_leaks_nothing),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

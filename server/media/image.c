/* Chooses the decoder, resizes and normalises. */
#include "server/media/image.h"

#include <math.h>
#include <string.h>

#include "server/media/codecs_impl.h"

enum ifd_code ifd_pixels_check(const struct ifd_codec_request *request, uint32_t width,
                               uint32_t height)
{
    if (width == 0 || height == 0) {
        return ifd_fail(request->err, IFD_CORRUPT, "picture of %u×%u pixels", width, height);
    }
    if ((uint64_t)width * height > request->limits->max_pixels) {
        return ifd_fail(request->err, IFD_TOO_LARGE,
                        "picture of %u×%u pixels exceeds the maximum of %llu", width, height,
                        (unsigned long long)request->limits->max_pixels);
    }
    return IFD_OK;
}

enum ifd_code ifd_codec_check_wanted(const struct ifd_codec_request *request)
{
    const struct ifd_image_limits *limits = request->limits;
    if (limits->is_over && limits->is_over(limits->arg)) {
        return ifd_fail(request->err, IFD_CANCELLED, "decoding was stopped");
    }
    return IFD_OK;
}

enum ifd_code ifd_pixels_take(const struct ifd_codec_request *request, uint32_t width,
                              uint32_t height, uint32_t channels)
{
    size_t bytes = 0;
    enum ifd_code code = ifd_pixels_check(request, width, height);
    if (code) {
        return code;
    }
    if (!ifd_size_mul((size_t)width, height, &bytes) || !ifd_size_mul(bytes, channels, &bytes)) {
        return ifd_fail(request->err, IFD_TOO_LARGE, "picture of %u×%u pixels", width, height);
    }
    uint8_t *data = ifd_acquire(request->alloc, bytes);
    if (!data) {
        return ifd_fail(request->err, IFD_NOMEM, "no memory for a picture of %u×%u pixels", width,
                        height);
    }
    *request->ret = (struct ifd_pixels){.data = data,
                                        .width = width,
                                        .height = height,
                                        .channels = channels,
                                        .picture_width = width,
                                        .picture_height = height};
    return IFD_OK;
}

void ifd_pixels_free(struct ifd_pixels *pixels, const struct ifd_alloc *alloc)
{
    ifd_release(alloc, pixels->data, (size_t)pixels->width * pixels->height * pixels->channels);
    *pixels = (struct ifd_pixels){0};
}

static bool begins(struct ifd_bytes picture, const char *magic, size_t size)
{
    return picture.size >= size && memcmp(picture.data, magic, size) == 0;
}

enum ifd_code ifd_image_decode(struct ifd_bytes picture, const struct ifd_image_target *target,
                               const struct ifd_image_limits *limits, const struct ifd_alloc *alloc,
                               struct ifd_pixels *ret, struct ifd_err *err)
{
    const struct ifd_codec_request request = {.picture = picture,
                                              .target = target,
                                              .limits = limits,
                                              .alloc = alloc,
                                              .ret = ret,
                                              .err = err};
    *ret = (struct ifd_pixels){0};
    if (begins(picture, "\xff\xd8\xff", 3)) {
        return ifd_jpeg_decode(&request);
    }
    if (begins(picture, "\x89PNG\r\n\x1a\n", 8)) {
        return ifd_png_decode(&request);
    }
    if (begins(picture, "BM", 2)) {
        return ifd_bmp_decode(&request);
    }
    return ifd_fail(err, IFD_INVALID, "picture of %zu bytes is neither JPEG nor PNG nor BMP",
                    picture.size);
}

/* ---- resizing ---- */

/* A target position lies between source positions a and b; part is the weight of b. */
struct tap {
    uint32_t a, b;
    float part;
};

static void make_taps(struct tap *tap, uint32_t count, uint32_t source)
{
    const int64_t unit = 2 * (int64_t)count;
    for (uint32_t i = 0; i < count; i++) {
        int64_t at = (2 * (int64_t)i + 1) * source - count; /* in units of 1 / (2 count) pixel */
        at = at < 0 ? 0 : at;
        const uint32_t a = (uint32_t)(at / unit); /* below source */
        tap[i] = (struct tap){
            .a = a, .b = a + 1 < source ? a + 1 : a, .part = (float)(at % unit) / (float)unit};
    }
}

static float mix(float a, float b, float part)
{
    return a + (b - a) * part;
}

/* One target pixel in the target's channels, each 0 … 255. */
static void sample(const struct ifd_pixels *p, const struct tap *x, const struct tap *y,
                   uint32_t channels, float *ret)
{
    const uint8_t *top = p->data + (size_t)y->a * p->width * p->channels;
    const uint8_t *bottom = p->data + (size_t)y->b * p->width * p->channels;
    float value[3];
    for (uint32_t c = 0; c < p->channels; c++) {
        size_t left = (size_t)x->a * p->channels + c, right = (size_t)x->b * p->channels + c;
        value[c] = mix(mix((float)top[left], (float)top[right], x->part),
                       mix((float)bottom[left], (float)bottom[right], x->part), y->part);
    }
    if (p->channels == channels) {
        memcpy(ret, value, channels * sizeof(float));
    } else if (channels == 1) {
        ret[0] = 0.299f * value[0] + 0.587f * value[1] + 0.114f * value[2];
    } else {
        ret[0] = ret[1] = ret[2] = value[0];
    }
}

/* ---- storing ---- */

static void store(const struct ifd_image_target *t, enum ifd_dtype dtype, void *data, size_t at,
                  float real)
{
    if (dtype == IFD_F32) {
        ((float *)data)[at] = real;
        return;
    }
    float stored = nearbyintf(t->scale != 0 ? real / t->scale : real) + (float)t->zero_point;
    if (dtype == IFD_U8) {
        ((uint8_t *)data)[at] = (uint8_t)(stored < 0 ? 0 : stored > 255 ? 255 : stored);
    } else {
        ((int8_t *)data)[at] = (int8_t)(stored < -128 ? -128 : stored > 127 ? 127 : stored);
    }
}

static void fill(const struct ifd_pixels *p, const struct ifd_image_target *t, enum ifd_dtype dtype,
                 void *data, const struct tap *tap_x, const struct tap *tap_y)
{
    size_t plane = (size_t)t->height * t->width;
    for (uint32_t y = 0; y < t->height; y++) {
        for (uint32_t x = 0; x < t->width; x++) {
            float value[4];
            size_t pixel = (size_t)y * t->width + x;
            sample(p, &tap_x[x], &tap_y[y], t->channels, value);
            for (uint32_t c = 0; c < t->channels; c++) {
                size_t at = t->channels_first ? c * plane + pixel : pixel * t->channels + c;
                store(t, dtype, data, at, (value[c] - t->mean[c]) / t->std[c]);
            }
        }
    }
}

static enum ifd_code check_target(const struct ifd_image_target *t, enum ifd_dtype dtype,
                                  size_t bytes, struct ifd_err *err)
{
    size_t want = ifd_dtype_bytes(dtype);
    if (dtype != IFD_F32 && dtype != IFD_U8 && dtype != IFD_S8) {
        return ifd_fail(err, IFD_UNSUPPORTED, "a picture cannot become a tensor of %s",
                        ifd_dtype_wire_name(dtype));
    }
    if ((t->channels != 1 && t->channels != 3) || t->height == 0 || t->width == 0 ||
        !ifd_size_mul(want, t->channels, &want) || !ifd_size_mul(want, t->height, &want) ||
        !ifd_size_mul(want, t->width, &want) || want != bytes) {
        return ifd_fail(err, IFD_INVALID, "a picture of %u×%u×%u %s does not fill %zu bytes",
                        t->height, t->width, t->channels, ifd_dtype_wire_name(dtype), bytes);
    }
    return IFD_OK;
}

enum ifd_code ifd_image_fill(const struct ifd_pixels *pixels, const struct ifd_image_target *target,
                             enum ifd_dtype dtype, void *data, size_t bytes,
                             const struct ifd_alloc *alloc, struct ifd_err *err)
{
    enum ifd_code code = check_target(target, dtype, bytes, err);
    if (code) {
        return code;
    }
    size_t taps = (size_t)target->width + target->height;
    struct tap *tap = ifd_acquire_zeroed(alloc, taps, sizeof(*tap));
    if (!tap) {
        return ifd_fail(err, IFD_NOMEM, "no memory to resize a picture");
    }
    make_taps(tap, target->width, pixels->width);
    make_taps(tap + target->width, target->height, pixels->height);
    fill(pixels, target, dtype, data, tap, tap + target->width);
    ifd_release(alloc, tap, taps * sizeof(*tap));
    return IFD_OK;
}

static struct ifd_picture_view view_of(const struct ifd_pixels *pixels,
                                       const struct ifd_image_target *target)
{
    struct ifd_picture_view view = {.width = pixels->picture_width,
                                    .height = pixels->picture_height};
    view.region.width = view.width;
    view.region.height = view.height;
    view.scale_x = (double)view.width / target->width;
    view.scale_y = (double)view.height / target->height;
    return view;
}

enum ifd_code ifd_image_to_tensor(const struct ifd_picture_source *source,
                                  const struct ifd_image_target *target,
                                  const struct ifd_image_limits *limits, struct ifd_tensor *tensor,
                                  const struct ifd_alloc *alloc, struct ifd_picture_view *ret_view,
                                  struct ifd_err *err)
{
    struct ifd_pixels pixels = {0};
    enum ifd_code code = check_target(target, tensor->dtype, tensor->bytes, err);
    if (!code) {
        code = ifd_image_decode(source->bytes, target, limits, alloc, &pixels, err);
    }
    if (!code) {
        code =
            ifd_image_fill(&pixels, target, tensor->dtype, tensor->data, tensor->bytes, alloc, err);
    }
    if (!code) {
        *ret_view = view_of(&pixels, target);
    }
    ifd_pixels_free(&pixels, alloc);
    return code;
}

/* Chooses the decoder and leads a picture from its bytes to a tensor. */
#include "server/media/image.h"

#include <math.h>

#include "server/media/codecs_impl.h"

/* ---- for the decoders ---- */

enum ifd_code ifd_codec_plan(const struct ifd_codec_request *request, size_t i,
                             struct ifd_geometry *ret)
{
    const struct ifd_picture_source *source = &request->picture[i].source;
    const struct ifd_image_target *target = request->target;
    if (!target) {
        return ifd_geometry_plan(NULL, IFD_RESIZE_STRETCH, request->width, request->height,
                                 request->width, request->height, ret, request->err);
    }
    const struct ifd_picture_region *region = source->has_region   ? &source->region
                                              : target->has_region ? &target->region
                                                                   : NULL;
    return ifd_geometry_plan(region, source->has_resize ? source->resize : target->resize,
                             request->width, request->height, target->width, target->height, ret,
                             request->err);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static struct ifd_picture_region both(const struct ifd_picture_region *a,
                                      const struct ifd_picture_region *b)
{
    const uint32_t x = least(a->x, b->x), y = least(a->y, b->y);
    return (struct ifd_picture_region){.x = x,
                                       .y = y,
                                       .width = most(a->x + a->width, b->x + b->width) - x,
                                       .height = most(a->y + a->height, b->y + b->height) - y};
}

static enum ifd_code plan_all(struct ifd_codec_request *request)
{
    enum ifd_code code = IFD_OK;
    request->least_scale = 0;
    for (size_t i = 0; i < request->count && !code; i++) {
        struct ifd_geometry g;
        code = ifd_codec_plan(request, i, &g);
        if (!code) {
            request->shown = i == 0 ? g.from : both(&request->shown, &g.from);
            request->least_scale =
                fmax(request->least_scale,
                     fmax((double)g.to.width / g.from.width, (double)g.to.height / g.from.height));
        }
    }
    return code;
}

enum ifd_code ifd_codec_begin(struct ifd_codec_request *request, uint32_t width, uint32_t height,
                              unsigned orientation)
{
    const bool is_across = ifd_orientation_is_across(orientation);
    if (width == 0 || height == 0) {
        return ifd_fail(request->err, IFD_CORRUPT, "picture of %u×%u pixels", width, height);
    }
    if ((uint64_t)width * height > request->limits->max_pixels) {
        return ifd_fail(request->err, IFD_TOO_LARGE,
                        "picture of %u×%u pixels exceeds the maximum of %llu", width, height,
                        (unsigned long long)request->limits->max_pixels);
    }
    request->stored_width = width;
    request->stored_height = height;
    request->width = is_across ? height : width;
    request->height = is_across ? width : height;
    request->orientation = orientation;
    return plan_all(request);
}

enum ifd_code ifd_codec_check_wanted(const struct ifd_codec_request *request)
{
    const struct ifd_image_limits *limits = request->limits;
    if (limits->is_over && limits->is_over(limits->arg)) {
        return ifd_fail(request->err, IFD_CANCELLED, "decoding was stopped");
    }
    return IFD_OK;
}

enum ifd_code ifd_decoded_take(const struct ifd_codec_request *request, uint32_t width,
                               uint32_t height, uint32_t channels)
{
    struct ifd_decoded decoded = {.kind = channels == 1 ? IFD_DECODED_GREY : IFD_DECODED_RGB,
                                  .plane_count = 1};
    if (ifd_size_mul(width, height, &decoded.memory_bytes) &&
        ifd_size_mul(decoded.memory_bytes, channels, &decoded.memory_bytes)) {
        decoded.memory = ifd_acquire(request->alloc, decoded.memory_bytes);
    }
    if (!decoded.memory) {
        return ifd_fail(request->err, IFD_NOMEM, "no memory for a picture of %u×%u pixels", width,
                        height);
    }
    decoded.plane[0] = (struct ifd_plane){.data = decoded.memory,
                                          .stride = (size_t)width * channels,
                                          .width = width,
                                          .height = height,
                                          .channels = channels,
                                          .used = channels,
                                          .scale_x = 1,
                                          .scale_y = 1};
    *request->ret = decoded;
    return IFD_OK;
}

void ifd_decoded_free(struct ifd_decoded *decoded, const struct ifd_alloc *alloc)
{
    ifd_release(alloc, decoded->memory, decoded->memory_bytes);
    *decoded = (struct ifd_decoded){0};
}

/* ---- a picture ---- */

enum ifd_code ifd_codec_decode(struct ifd_codec_request *request)
{
    static enum ifd_code (*const decoders[IFD_PICTURE_KINDS])(struct ifd_codec_request *) = {
        [IFD_PICTURE_JPEG] = ifd_jpeg_decode,
        [IFD_PICTURE_PNG] = ifd_png_decode,
        [IFD_PICTURE_BMP] = ifd_bmp_decode,
        [IFD_PICTURE_WEBP] = ifd_webp_decode};
    const struct ifd_picture_source *source = &request->picture->source;
    *request->ret = (struct ifd_decoded){0};
    if (source->format != IFD_FRAME_NONE) {
        return ifd_frame_decode(request);
    }
    const enum ifd_picture_kind kind = ifd_picture_kind(source->bytes);
    if (kind == IFD_PICTURE_UNKNOWN) {
        return ifd_fail(request->err, IFD_INVALID,
                        "picture of %zu bytes is neither JPEG nor PNG nor BMP nor WebP",
                        source->bytes.size);
    }
    enum ifd_code code = decoders[kind](request);
    return code ? code : ifd_decoded_turn(request);
}

static enum ifd_code check_target(const struct ifd_image_target *t, const struct ifd_tensor *tensor,
                                  struct ifd_err *err)
{
    const enum ifd_dtype dtype = tensor->dtype;
    size_t want = ifd_dtype_bytes(dtype);
    if (dtype != IFD_F32 && dtype != IFD_U8 && dtype != IFD_S8 && dtype != IFD_S32) {
        return ifd_fail(err, IFD_UNSUPPORTED, "a picture cannot become a tensor of %s",
                        ifd_dtype_wire_name(dtype));
    }
    if ((t->channels != 1 && t->channels != 3) || t->height == 0 || t->width == 0 ||
        !ifd_size_mul(want, t->channels, &want) || !ifd_size_mul(want, t->height, &want) ||
        !ifd_size_mul(want, t->width, &want) || want != tensor->bytes) {
        return ifd_fail(err, IFD_INVALID, "a picture of %u×%u×%u %s does not fill %zu bytes",
                        t->height, t->width, t->channels, ifd_dtype_wire_name(dtype),
                        tensor->bytes);
    }
    return IFD_OK;
}

static enum ifd_code take_region(const struct ifd_codec_request *request, size_t i,
                                 struct ifd_picture *ret)
{
    struct ifd_geometry geometry;
    enum ifd_code code = ifd_codec_plan(request, i, &geometry);
    code = code ? code
                : ifd_decoded_fill(request->ret, &geometry, request->target, &ret->sample,
                                   request->alloc, request->err);
    if (!code) {
        ret->view = ifd_geometry_view(&geometry);
    }
    return code;
}

enum ifd_code ifd_image_to_tensors(struct ifd_picture *picture, size_t count,
                                   const struct ifd_image_target *target,
                                   const struct ifd_image_limits *limits,
                                   const struct ifd_alloc *alloc, struct ifd_err *err)
{
    struct ifd_decoded decoded = {0};
    struct ifd_codec_request request = {.picture = picture,
                                        .count = count,
                                        .target = target,
                                        .limits = limits,
                                        .alloc = alloc,
                                        .err = err,
                                        .ret = &decoded};
    enum ifd_code code = IFD_OK;
    for (size_t i = 0; i < count && !code; i++) {
        code = check_target(target, &picture[i].sample, err);
    }
    code = code ? code : ifd_codec_decode(&request);
    for (size_t i = 0; i < count && !code; i++) {
        code = i > 0 ? ifd_codec_check_wanted(&request) : IFD_OK;
        code = code ? code : take_region(&request, i, &picture[i]);
    }
    ifd_decoded_free(&decoded, alloc);
    return code;
}

enum ifd_code ifd_image_to_tensor(const struct ifd_picture_source *source,
                                  const struct ifd_image_target *target,
                                  const struct ifd_image_limits *limits, struct ifd_tensor *tensor,
                                  const struct ifd_alloc *alloc, struct ifd_picture_view *ret_view,
                                  struct ifd_err *err)
{
    struct ifd_picture picture = {.source = *source, .sample = *tensor};
    enum ifd_code code = ifd_image_to_tensors(&picture, 1, target, limits, alloc, err);
    *ret_view = picture.view;
    return code;
}

/* ---- a picture in its own size ---- */

static enum ifd_code to_pixels(const struct ifd_codec_request *request, struct ifd_pixels *ret)
{
    const uint32_t width = request->width, height = request->height;
    const struct ifd_image_target target = {
        .height = height, .width = width, .channels = 3, .std = {1, 1, 1, 1}};
    struct ifd_geometry geometry;
    struct ifd_tensor tensor = {.dtype = IFD_U8};
    if (ifd_size_mul(width, height, &tensor.bytes) &&
        ifd_size_mul(tensor.bytes, 3, &tensor.bytes)) {
        tensor.data = ifd_acquire(request->alloc, tensor.bytes);
    }
    if (!tensor.data) {
        return ifd_fail(request->err, IFD_NOMEM, "no memory for a picture of %u×%u pixels", width,
                        height);
    }
    *ret = (struct ifd_pixels){.data = tensor.data, .width = width, .height = height};
    enum ifd_code code = ifd_codec_plan(request, 0, &geometry);
    code = code ? code
                : ifd_decoded_fill(request->ret, &geometry, &target, &tensor, request->alloc,
                                   request->err);
    if (code) {
        ifd_pixels_free(ret, request->alloc);
    }
    return code;
}

enum ifd_code ifd_image_decode(const struct ifd_picture_source *source,
                               const struct ifd_image_limits *limits, const struct ifd_alloc *alloc,
                               struct ifd_pixels *ret, struct ifd_err *err)
{
    struct ifd_decoded decoded = {0};
    const struct ifd_picture picture = {.source = *source};
    struct ifd_codec_request request = {.picture = &picture,
                                        .count = 1,
                                        .limits = limits,
                                        .alloc = alloc,
                                        .err = err,
                                        .ret = &decoded};
    *ret = (struct ifd_pixels){0};
    enum ifd_code code = ifd_codec_decode(&request);
    if (!code) {
        code = to_pixels(&request, ret);
    }
    ifd_decoded_free(&decoded, alloc);
    return code;
}

void ifd_pixels_free(struct ifd_pixels *pixels, const struct ifd_alloc *alloc)
{
    ifd_release(alloc, pixels->data, (size_t)pixels->width * pixels->height * 3);
    *pixels = (struct ifd_pixels){0};
}

/* Frames without a header: planes of YUV, or packed pixels. */
#include "server/media/codecs_impl.h"

/* How bytes of a format lie. Rows of a plane that is reduced belong to two rows of the picture. */
struct plane_form {
    uint32_t channels;         /* bytes from pixel to pixel */
    uint32_t used;             /* of them, those that count */
    uint32_t first;            /* the first byte that counts */
    bool is_half_x, is_half_y; /* one pixel for two of the picture */
    bool is_in_first;          /* shares the rows of the first plane */
};

struct frame_form {
    const char *name;
    enum ifd_decoded_kind kind;
    uint32_t plane_count;
    struct plane_form plane[IFD_PLANES_MAX];
};

static const struct frame_form forms[IFD_FRAME_COUNT] = {
    [IFD_FRAME_NV12] = {"NV12",
                        IFD_DECODED_YUV,
                        2,
                        {{.channels = 1, .used = 1},
                         {.channels = 2, .used = 2, .is_half_x = true, .is_half_y = true}}},
    [IFD_FRAME_I420] = {"I420",
                        IFD_DECODED_YUV,
                        3,
                        {{.channels = 1, .used = 1},
                         {.channels = 1, .used = 1, .is_half_x = true, .is_half_y = true},
                         {.channels = 1, .used = 1, .is_half_x = true, .is_half_y = true}}},
    [IFD_FRAME_YUYV] =
        {"YUYV",
         IFD_DECODED_YUV,
         3,
         {{.channels = 2, .used = 1},
          {.channels = 4, .used = 1, .first = 1, .is_half_x = true, .is_in_first = true},
          {.channels = 4, .used = 1, .first = 3, .is_half_x = true, .is_in_first = true}}},
    [IFD_FRAME_RGB] = {"RGB", IFD_DECODED_RGB, 1, {{.channels = 3, .used = 3}}},
    [IFD_FRAME_BGR] = {"BGR", IFD_DECODED_BGR, 1, {{.channels = 3, .used = 3}}},
    [IFD_FRAME_GRAY8] = {"GRAY8", IFD_DECODED_GREY, 1, {{.channels = 1, .used = 1}}},
};

/* Bytes of a row of the first plane without padding; a pair of pixels shares its colour. */
static uint64_t row_bytes(const struct frame_form *form, uint32_t width)
{
    const bool has_pairs = form->plane_count > 1;
    return (uint64_t)(has_pairs ? width + width % 2 : width) * form->plane[0].channels;
}

/* Lays plane i at offset; returns where it ends. */
static uint64_t lay_plane(const struct ifd_picture_source *source, const struct plane_form *form,
                          uint64_t stride, uint64_t offset, struct ifd_plane *ret)
{
    const uint32_t width = source->width, height = source->height;
    *ret = (struct ifd_plane){.width = form->is_half_x ? width / 2 + width % 2 : width,
                              .height = form->is_half_y ? height / 2 + height % 2 : height,
                              .channels = form->channels,
                              .used = form->used,
                              .scale_x = form->is_half_x ? 0.5 : 1,
                              .scale_y = form->is_half_y ? 0.5 : 1};
    const bool is_narrow = form->is_half_x && form->channels == 1;
    ret->stride = (size_t)(is_narrow ? (stride + 1) / 2 : stride);
    const uint64_t begin = form->is_in_first ? form->first : offset;
    ret->data = source->bytes.data + (begin < source->bytes.size ? begin : 0);
    return form->is_in_first ? offset : offset + (uint64_t)ret->stride * ret->height;
}

enum ifd_code ifd_frame_decode(struct ifd_codec_request *request)
{
    const struct ifd_picture_source *source = &request->picture->source;
    const struct frame_form *form = &forms[source->format];
    struct ifd_decoded decoded = {.kind = form->kind, .plane_count = form->plane_count};
    const uint64_t least = row_bytes(form, source->width);
    const uint64_t stride = source->stride > 0 ? source->stride : least;
    uint64_t bytes = 0;
    enum ifd_code code = ifd_codec_begin(request, source->width, source->height, 1);
    if (!code && stride < least) {
        code = ifd_fail(request->err, IFD_INVALID,
                        "a row of %u pixels %s takes %llu bytes, the stride is %llu", source->width,
                        form->name, (unsigned long long)least, (unsigned long long)stride);
    }
    if (code) {
        return code;
    }
    for (uint32_t i = 0; i < form->plane_count; i++) {
        bytes = lay_plane(source, &form->plane[i], stride, bytes, &decoded.plane[i]);
    }
    if (bytes != source->bytes.size) {
        return ifd_fail(request->err, IFD_INVALID,
                        "a frame of %u×%u %s with a stride of %llu takes %llu bytes, got %zu",
                        source->width, source->height, form->name, (unsigned long long)stride,
                        (unsigned long long)bytes, source->bytes.size);
    }
    *request->ret = decoded;
    return IFD_OK;
}

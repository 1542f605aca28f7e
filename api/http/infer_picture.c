/* Pictures over HTTP: as the whole body, in a form, or as base64 in JSON. */
#include "api/http/infer.h"

#include <string.h>

#include "api/http/media_type.h"
#include "api/http/multipart.h"
#include "api/http/vision.h"
#include "api/json/base64.h"
#include "engine/base/str.h"

/* ---- the kinds of body ---- */

static const char form_type[] = "multipart/form-data", frame_type[] = "video/x-raw";

bool ifd_infer_is_picture(const struct ifd_http_infer *infer)
{
    const struct ifd_http_call *call = infer->http;
    const struct ifd_str type = infer->content_type;
    /* Before the body is decompressed, only the Content-Type tells. */
    const struct ifd_bytes body =
        call->body.data ? call->body
                        : (struct ifd_bytes){call->exchange->body, call->exchange->body_size};
    return (type.size >= 6 && ifd_str_equal_nocase((struct ifd_str){type.data, 6}, "image/")) ||
           ifd_media_type_is(type, form_type) || ifd_media_type_is(type, frame_type) ||
           (!call->json_length.data && ifd_picture_kind(body) != IFD_PICTURE_UNKNOWN);
}

static bool read_size(struct ifd_str type, const char *name, bool is_required, uint32_t *ret)
{
    const struct ifd_str text = ifd_media_type_parameter(type, name);
    uint64_t number = 0;
    if (!text.data) {
        return !is_required;
    }
    if (!ifd_str_u64(text, &number) || number == 0 || number > UINT32_MAX) {
        return false;
    }
    *ret = (uint32_t)number;
    return true;
}

/* Fills what the type says of a frame without a header, if it is one. */
static enum ifd_code read_frame(struct ifd_str type, struct ifd_picture_source *ret,
                                struct ifd_err *err)
{
    if (!ifd_media_type_is(type, frame_type)) {
        return IFD_OK;
    }
    if (!ifd_frame_format_read(ifd_media_type_parameter(type, "format"), &ret->format)) {
        return ifd_fail(err, IFD_INVALID,
                        "Content-Type video/x-raw: format is none of NV12, I420, YUYV, RGB, BGR, "
                        "GRAY8: %.*s",
                        type.size < 100 ? (int)type.size : 100, type.data);
    }
    if (!read_size(type, "width", true, &ret->width) ||
        !read_size(type, "height", true, &ret->height) ||
        !read_size(type, "stride", false, &ret->stride)) {
        return ifd_fail(err, IFD_INVALID,
                        "Content-Type video/x-raw: width and height must be there, they and stride "
                        "are numbers above 0: %.*s",
                        type.size < 100 ? (int)type.size : 100, type.data);
    }
    return IFD_OK;
}

static struct ifd_str text_of(struct ifd_bytes bytes)
{
    return (struct ifd_str){(const char *)bytes.data, bytes.size};
}

/* Some recorders give the picture no name of a file. */
enum ifd_code ifd_infer_read_form(struct ifd_http_infer *infer, struct ifd_part *ret,
                                  struct ifd_err *err)
{
    struct ifd_multipart form;
    struct ifd_part part;
    bool is_there = true, has_file = false;
    enum ifd_code code = ifd_multipart_begin(infer->content_type, infer->http->body, &form, err);
    while (!code && is_there) {
        code = ifd_multipart_next(&form, &part, &is_there, err);
        if (code || !is_there) {
            continue;
        }
        const bool is_file =
            part.is_file || (ifd_infer_is_vision(infer) && ifd_str_equal(part.name, "image"));
        if (!is_file) {
            const struct ifd_query_parameter field = {.name = part.name,
                                                      .value = text_of(part.content)};
            code = ifd_infer_add_field(infer, &field, err);
        } else if (!has_file) {
            has_file = true;
            *ret = part;
        }
    }
    return code || has_file ? code
                            : ifd_fail(err, IFD_INVALID,
                                       "multipart form: no part has a file name, none is the %s",
                                       ifd_infer_is_sound(infer) ? "sound" : "picture");
}

static enum ifd_code read_picture_form(struct ifd_http_infer *infer, struct ifd_picture_source *ret,
                                       struct ifd_err *err)
{
    struct ifd_part file;
    const enum ifd_code code = ifd_infer_read_form(infer, &file, err);
    if (code != IFD_OK) {
        return code;
    }
    ret->bytes = file.content;
    return read_frame(file.type, ret, err);
}

/* ---- pictures for an input ---- */

/* One picture for each region, or else each source. */
static enum ifd_code add_sources(struct ifd_http_infer *infer, int index,
                                 const struct ifd_picture_source *source, size_t count,
                                 struct ifd_err *err)
{
    struct ifd_arena *arena = infer->core.call->arena;
    enum ifd_code code = ifd_infer_read_geometry(infer, err);
    const size_t regions = infer->region_count, all = regions > 0 ? regions : count;
    if (code != IFD_OK) {
        return code;
    }
    if (regions > 0 && count > 1) {
        return ifd_fail(err, IFD_INVALID,
                        "regions of one picture can be asked for, got %zu pictures", count);
    }
    struct ifd_picture_source *list = ifd_arena_take_array(arena, all, sizeof(*list));
    if (!list) {
        return ifd_arena_fail(arena, all * sizeof(*list), err);
    }
    for (size_t i = 0; i < all; i++) {
        list[i] = source[regions > 0 ? 0 : i];
        list[i].has_resize = infer->has_resize;
        list[i].resize = infer->resize;
        list[i].has_region = regions > 0;
        list[i].region = regions > 0 ? infer->region[i] : list[i].region;
    }
    return ifd_infer_add_pictures(&infer->core, index, list, all, err);
}

static enum ifd_code take_picture(struct ifd_http_infer *infer,
                                  const struct ifd_picture_source *source, struct ifd_err *err)
{
    const int index = ifd_infer_picture_input(&infer->core);
    if (index < 0) {
        return ifd_fail(err, IFD_INVALID,
                        "model '%s' does not take one picture: send tensors, or say in its config "
                        "how a picture becomes its input (parameters preset, or image_mean and "
                        "image_std)",
                        infer->core.desc->name);
    }
    enum ifd_code code = add_sources(infer, index, source, 1, err);
    if (code != IFD_OK) {
        return code;
    }
    infer->core.has_input[index] = true;
    code = ifd_infer_check_inputs(&infer->core, err);
    return code == IFD_OK ? ifd_infer_read_objects(infer, true, err) : code;
}

enum ifd_code ifd_infer_parse_picture(struct ifd_http_infer *infer, struct ifd_err *err)
{
    struct ifd_picture_source source = {.bytes = infer->http->body};
    enum ifd_code code = ifd_media_type_is(infer->content_type, form_type)
                             ? read_picture_form(infer, &source, err)
                             : read_frame(infer->content_type, &source, err);
    return code == IFD_OK ? take_picture(infer, &source, err) : code;
}

/* ---- base64 ---- */

/* what and its number name the text in messages. */
static enum ifd_code decode_base64(struct ifd_http_infer *infer, struct ifd_str text,
                                   const char *what, size_t number, struct ifd_bytes *ret,
                                   struct ifd_err *err)
{
    struct ifd_arena *arena = infer->core.call->arena;
    const size_t bytes = IFD_BASE64_BYTES(text.size);
    size_t size = 0;
    uint8_t *data = ifd_arena_take(arena, bytes);
    if (!data) {
        return ifd_arena_fail(arena, bytes, err);
    }
    if (!ifd_base64_decode(text, data, &size)) {
        return ifd_fail(err, IFD_INVALID, "input '%s': element %zu is not base64", what, number);
    }
    *ret = (struct ifd_bytes){.data = data, .size = size};
    return IFD_OK;
}

/* What comes behind "data:image/jpeg;base64,", as browsers write it; else the whole text. */
static struct ifd_str behind_data_url(struct ifd_str text)
{
    static const char sign[] = ";base64,";
    struct ifd_str rest = text;
    const struct ifd_str head = ifd_str_part(&rest, ',');
    const size_t size = sizeof(sign) - 2; /* without the comma */
    const bool is_url = rest.data && ifd_str_starts(head, "data:") && head.size >= size &&
                        memcmp(head.data + head.size - size, sign, size) == 0;
    return is_url ? rest : text;
}

enum ifd_code ifd_infer_parse_base64_picture(struct ifd_http_infer *infer, struct ifd_str text,
                                             struct ifd_err *err)
{
    struct ifd_picture_source source = {.has_region = false};
    enum ifd_code code =
        decode_base64(infer, behind_data_url(text), "image", 0, &source.bytes, err);
    return code == IFD_OK ? take_picture(infer, &source, err) : code;
}

enum ifd_code ifd_infer_add_text_pictures(struct ifd_http_infer *infer, int index,
                                          const struct ifd_str *text, size_t count,
                                          struct ifd_err *err)
{
    struct ifd_arena *arena = infer->core.call->arena;
    struct ifd_picture_source *source = ifd_arena_take_array(arena, count, sizeof(*source));
    if (!source) {
        return ifd_arena_fail(arena, count * sizeof(*source), err);
    }
    for (size_t i = 0; i < count; i++) {
        source[i].bytes =
            (struct ifd_bytes){.data = (const uint8_t *)text[i].data, .size = text[i].size};
    }
    return add_sources(infer, index, source, count, err);
}

enum ifd_code ifd_infer_add_base64_pictures(struct ifd_http_infer *infer, int index,
                                            const struct ifd_str *text, size_t count,
                                            struct ifd_err *err)
{
    struct ifd_arena *arena = infer->core.call->arena;
    struct ifd_str *image = ifd_arena_take_array(arena, count, sizeof(*image));
    if (!image) {
        return ifd_arena_fail(arena, count * sizeof(*image), err);
    }
    for (size_t i = 0; i < count; i++) {
        struct ifd_bytes bytes;
        enum ifd_code code =
            decode_base64(infer, text[i], infer->core.desc->input[index].name, i, &bytes, err);
        if (code != IFD_OK) {
            return code;
        }
        image[i] = text_of(bytes);
    }
    return ifd_infer_add_text_pictures(infer, index, image, count, err);
}

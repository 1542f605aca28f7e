/* Pictures over HTTP: as the whole body, or as base64 in JSON strings. */
#include "api/http/infer.h"

#include "api/json/base64.h"
#include "engine/base/str.h"

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
    return ifd_infer_add_pictures(&infer->core, index, source, count, err);
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
        size_t bytes = IFD_BASE64_BYTES(text[i].size), size = 0;
        uint8_t *data = ifd_arena_take(arena, bytes);
        if (!data) {
            return ifd_arena_fail(arena, bytes, err);
        }
        if (!ifd_base64_decode(text[i], data, &size)) {
            return ifd_fail(err, IFD_INVALID, "input '%s': element %zu is not base64",
                            infer->core.desc->input[index].name, i);
        }
        image[i] = (struct ifd_str){.data = (const char *)data, .size = size};
    }
    return ifd_infer_add_text_pictures(infer, index, image, count, err);
}

bool ifd_infer_is_picture(const struct ifd_http_infer *infer)
{
    const struct ifd_str type = infer->content_type;
    return type.size >= 6 && ifd_str_equal_nocase((struct ifd_str){type.data, 6}, "image/");
}

enum ifd_code ifd_infer_parse_picture(struct ifd_http_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->core.desc;
    const struct ifd_picture_source source = {.bytes = infer->http->body};
    const int index = ifd_infer_picture_input(&infer->core);
    if (index < 0) {
        return ifd_fail(err, IFD_INVALID,
                        "model '%s' does not take one picture: send tensors, or describe in its "
                        "config how a picture becomes its input",
                        desc->name);
    }
    enum ifd_code code = ifd_infer_add_pictures(&infer->core, index, &source, 1, err);
    if (code != IFD_OK) {
        return code;
    }
    infer->core.has_input[index] = true;
    code = ifd_infer_check_inputs(&infer->core, err);
    return code == IFD_OK ? ifd_infer_read_objects(infer, err) : code;
}

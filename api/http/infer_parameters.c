/* Parameters of a request: in the query, or as fields of a form, where the query wins. */
#include "api/http/infer.h"

#include "api/http/query.h"
#include "engine/base/str.h"
#include "server/model/parameters.h"

enum ifd_code ifd_infer_each_parameter(struct ifd_http_infer *infer, ifd_parameter_fn read,
                                       struct ifd_err *err)
{
    struct ifd_str rest = infer->http->exchange->query;
    struct ifd_query_parameter parameter;
    bool is_there = true;
    for (size_t i = 0; i < infer->field_count; i++) {
        enum ifd_code code = read(infer, &infer->field[i], err);
        if (code != IFD_OK) {
            return code;
        }
    }
    while (is_there) {
        enum ifd_code code =
            ifd_query_next(&rest, infer->core.call->arena, &parameter, &is_there, err);
        if (code == IFD_OK && is_there) {
            code = read(infer, &parameter, err);
        }
        if (code != IFD_OK) {
            return code;
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_fail_parameter(const struct ifd_query_parameter *parameter,
                                       const char *wanted, struct ifd_err *err)
{
    const struct ifd_str value = parameter->value;
    return ifd_fail(err, IFD_INVALID, "%.*s: \"%.*s\" is not %s", (int)parameter->name.size,
                    parameter->name.data, value.size < 40 ? (int)value.size : 40, value.data,
                    wanted);
}

static enum ifd_code add_region(struct ifd_http_infer *infer,
                                const struct ifd_query_parameter *parameter, struct ifd_err *err)
{
    struct ifd_arena *arena = infer->core.call->arena;
    struct ifd_picture_region *grown =
        ifd_arena_take_array(arena, infer->region_count + 1, sizeof(*grown));
    if (!grown) {
        return ifd_arena_fail(arena, sizeof(*grown), err);
    }
    if (infer->region_count > 0) {
        memcpy(grown, infer->region, infer->region_count * sizeof(*grown));
    }
    if (!ifd_picture_region_read(parameter->value, &grown[infer->region_count])) {
        return ifd_infer_fail_parameter(parameter, "x,y,width,height in pixels", err);
    }
    infer->region = grown;
    infer->region_count++;
    return IFD_OK;
}

static enum ifd_code read_parameter(struct ifd_http_infer *infer,
                                    const struct ifd_query_parameter *parameter,
                                    struct ifd_err *err)
{
    if (ifd_str_equal(parameter->name, "region")) {
        return add_region(infer, parameter, err);
    }
    if (ifd_str_equal(parameter->name, "resize")) {
        infer->has_resize = true;
        return ifd_image_resize_read(parameter->value, &infer->resize)
                   ? IFD_OK
                   : ifd_infer_fail_parameter(parameter, "stretch, letterbox or crop", err);
    }
    return IFD_OK; /* others read theirs */
}

enum ifd_code ifd_infer_read_geometry(struct ifd_http_infer *infer, struct ifd_err *err)
{
    return ifd_infer_each_parameter(infer, read_parameter, err);
}

static enum ifd_code read_source(struct ifd_http_infer *infer,
                                 const struct ifd_query_parameter *parameter, struct ifd_err *err)
{
    (void)err;
    if (ifd_str_equal(parameter->name, "source")) {
        infer->core.request.source = parameter->value;
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_read_source(struct ifd_http_infer *infer, struct ifd_err *err)
{
    struct ifd_str *source = &infer->core.request.source;
    const char *usual = ifd_desc_parameter(infer->core.desc, "source");
    const enum ifd_code code = ifd_infer_each_parameter(infer, read_source, err);
    if (source->size == 0 && usual) {
        *source = ifd_str(usual);
    }
    if (code != IFD_OK || source->size == 0) {
        return code;
    }
    if (source->size > IFD_SOURCE_BYTES_MAX) {
        return ifd_fail(err, IFD_INVALID, "source: a name of %zu bytes, at most %d", source->size,
                        IFD_SOURCE_BYTES_MAX);
    }
    char *name = ifd_arena_text(infer->core.call->arena, source->data, source->size);
    if (!name) {
        return ifd_arena_fail(infer->core.call->arena, source->size, err);
    }
    infer->http->exchange->source = name;
    return IFD_OK;
}

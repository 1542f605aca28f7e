/* Parameters of a request: in the query, or as fields of a form or of JSON; the query wins. */
#include "api/http/infer.h"

#include <ctype.h>
#include <string.h>

#include "api/http/query.h"
#include "engine/base/str.h"
#include "server/model/parameters.h"

static const char *const picture_parameters[] = {
    "classes", "iou", "mask", "outputs", "region", "resize", "threshold", "timing", "top_k"};
/* Each is looked at several times; regions are among them. */
#define FIELDS_MAX         4096
#define PICTURE_PARAMETERS (sizeof(picture_parameters) / sizeof(picture_parameters[0]))

static bool is_picture_parameter(struct ifd_str name)
{
    bool is_one = false;
    for (size_t i = 0; i < PICTURE_PARAMETERS && !is_one; i++) {
        is_one = ifd_str_equal(name, picture_parameters[i]);
    }
    return is_one;
}

/* Makes room in an array for an element behind count others of this size. The room doubles where
 * count is a power of two, else there is some left. */
static enum ifd_code make_room(struct ifd_arena *arena, void *array, size_t count, size_t size,
                               void **ret, struct ifd_err *err)
{
    *ret = array;
    if ((count & (count - 1)) != 0) {
        return IFD_OK;
    }
    const size_t room = count > 0 ? 2 * count : 1;
    *ret = ifd_arena_take_array(arena, room, size);
    if (!*ret) {
        return ifd_arena_fail(arena, room * size, err);
    }
    if (count > 0) {
        memcpy(*ret, array, count * size);
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_add_field(struct ifd_http_infer *infer,
                                  const struct ifd_query_parameter *field, struct ifd_err *err)
{
    void *room = NULL;
    if (infer->field_count == FIELDS_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE, "more than %d parameters", FIELDS_MAX);
    }
    const enum ifd_code code = make_room(infer->core.call->arena, infer->field, infer->field_count,
                                         sizeof(*field), &room, err);
    if (code == IFD_OK) {
        infer->field = room;
        infer->field[infer->field_count++] = *field;
    }
    return code;
}

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
    struct ifd_picture_region region;
    void *room = NULL;
    if (!ifd_picture_region_read(parameter->value, &region)) {
        return ifd_infer_fail_parameter(parameter, "x,y,width,height in pixels", err);
    }
    const enum ifd_code code = make_room(infer->core.call->arena, infer->region,
                                         infer->region_count, sizeof(region), &room, err);
    if (code == IFD_OK) {
        infer->region = room;
        infer->region[infer->region_count++] = region;
    }
    return code;
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
    infer->region_count = 0; /* of another input */
    return ifd_infer_each_parameter(infer, read_parameter, err);
}

/* Begins as ours and differs by one character in four, or is almost all of ours. The first letter
 * is seldom mistyped, and tells task, size and reason from mask, resize and region. */
static bool is_nearly(struct ifd_str name, const char *known)
{
    if (name.size < 3 || name.size > 2 * strlen(known) ||
        tolower((unsigned char)name.data[0]) != known[0]) {
        return false;
    }
    const unsigned distance = ifd_str_distance(name, known); /* 0: a part of it, else one more */
    return distance == 0 ? name.size + 2 >= strlen(known) : distance - 1 <= strlen(known) / 4;
}

/* Clients add parameters of their own to any URL, so that only what looks like one of ours is
 * taken for a mistake. */
static enum ifd_code check_name(struct ifd_http_infer *infer,
                                const struct ifd_query_parameter *parameter, struct ifd_err *err)
{
    (void)infer;
    const struct ifd_str name = parameter->name;
    for (size_t i = 0; i < PICTURE_PARAMETERS && !is_picture_parameter(name); i++) {
        if (is_nearly(name, picture_parameters[i])) {
            return ifd_fail(err, IFD_INVALID,
                            "there is no parameter \"%.*s\"; the nearest name is \"%s\"",
                            (int)name.size, name.data, picture_parameters[i]);
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_check_names(struct ifd_http_infer *infer, struct ifd_err *err)
{
    return ifd_infer_each_parameter(infer, check_name, err);
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

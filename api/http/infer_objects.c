/* What a client wants to know about objects; the answer as a picture. */
#include "api/http/infer.h"

#include "api/http/query.h"
#include "api/http/vision.h"
#include "engine/base/str.h"

/* ---- the request ---- */

/* What a model means is known before its options are. */
static enum ifd_code read_kind(struct ifd_http_infer *infer,
                               const struct ifd_query_parameter *parameter, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->core.desc;
    const bool wants_objects = ifd_str_equal(parameter->value, "objects");
    if (!wants_objects && !ifd_str_equal(parameter->value, "tensors")) {
        return ifd_infer_fail_parameter(parameter, "objects or tensors", err);
    }
    if (wants_objects && !desc->meaning) {
        return ifd_fail(err, IFD_INVALID,
                        "model '%s': nobody says what its outputs mean; parameters preset, or task "
                        "and decoder, in its config do",
                        desc->name);
    }
    infer->answers_objects = wants_objects;
    return IFD_OK;
}

/* Parameters that are not about objects belong to others. */
static enum ifd_code read_parameter(struct ifd_http_infer *infer,
                                    const struct ifd_query_parameter *parameter,
                                    struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    if (ifd_str_equal(parameter->name, "outputs")) {
        return read_kind(infer, parameter, err);
    }
    if (ifd_str_equal(parameter->name, "timing")) {
        infer->answers_times =
            ifd_str_equal(parameter->value, "1") || ifd_str_equal(parameter->value, "true");
        return infer->answers_times || ifd_str_equal(parameter->value, "0") ||
                       ifd_str_equal(parameter->value, "false")
                   ? IFD_OK
                   : ifd_infer_fail_parameter(parameter, "0 or 1", err);
    }
    if (!core->desc->meaning) {
        return IFD_OK;
    }
    const enum ifd_code code =
        ifd_call_ops(core->call)
            ->object_option(ifd_call_service(core->call), core->desc, parameter->name,
                            parameter->value, core->call->arena, &infer->options, err);
    return code == IFD_NOT_FOUND ? IFD_OK : code;
}

/* Those of the dialect, and options of objects. */
static enum ifd_code read_vision_parameter(struct ifd_http_infer *infer,
                                           const struct ifd_query_parameter *parameter,
                                           struct ifd_err *err)
{
    struct ifd_query_parameter option = *parameter;
    if (ifd_str_equal(option.name, "outputs") || ifd_str_equal(option.name, "mask") ||
        option.value.size == 0) {
        return IFD_OK;
    }
    if (!ifd_str_equal(option.name, "min_confidence")) {
        return read_parameter(infer, parameter, err);
    }
    option.name = ifd_str("threshold");
    const enum ifd_code code = read_parameter(infer, &option, err);
    return code == IFD_OK ? code
                          : ifd_infer_fail_parameter(parameter, "a number between 0 and 1", err);
}

static enum ifd_code read_vision(struct ifd_http_infer *infer, struct ifd_err *err)
{
    const enum ifd_code code = ifd_vision_check(infer, err);
    if (code != IFD_OK) {
        return code;
    }
    infer->answers_objects = true;
    infer->options = infer->core.desc->meaning->options;
    infer->options.threshold = IFD_VISION_CONFIDENCE;
    infer->options.mask = IFD_MASK_NONE;
    return ifd_infer_each_parameter(infer, read_vision_parameter, err);
}

/* The first media type that is known decides. */
static enum ifd_drawing read_accept(struct ifd_str accept)
{
    while (accept.data) {
        struct ifd_str range = ifd_str_part(&accept, ',');
        const struct ifd_str type = ifd_str_trim(ifd_str_part(&range, ';'));
        if (ifd_str_equal_nocase(type, "image/jpeg") || ifd_str_equal_nocase(type, "image/*")) {
            return IFD_DRAWING_JPEG;
        }
        if (ifd_str_equal_nocase(type, "image/png")) {
            return IFD_DRAWING_PNG;
        }
        if (ifd_str_equal_nocase(type, "application/json") || ifd_str_equal(type, "*/*")) {
            return IFD_DRAWING_NONE;
        }
    }
    return IFD_DRAWING_NONE;
}

enum ifd_code ifd_infer_read_objects(struct ifd_http_infer *infer, bool by_default,
                                     struct ifd_err *err)
{
    const struct ifd_meaning *meaning = infer->core.desc->meaning;
    if (ifd_infer_is_vision(infer)) {
        return read_vision(infer, err);
    }
    infer->answers_objects = meaning && (meaning->usual_answer == IFD_ANSWER_OPEN
                                             ? by_default
                                             : meaning->usual_answer == IFD_ANSWER_OBJECTS);
    infer->options = meaning ? meaning->options : (struct ifd_object_options){0};
    enum ifd_code code = by_default ? ifd_infer_check_names(infer, err) : IFD_OK;
    if (code == IFD_OK) {
        code = ifd_infer_each_parameter(infer, read_parameter, err);
    }
    if (infer->answers_objects) {
        infer->drawing =
            read_accept(infer->http->exchange->header(infer->http->exchange, "Accept"));
    }
    if (infer->drawing != IFD_DRAWING_NONE && infer->options.mask == IFD_MASK_NONE) {
        infer->options.mask = IFD_MASK_PNG; /* to be drawn */
    }
    return code;
}

/* ---- the answer ---- */

enum ifd_code ifd_infer_find_objects(struct ifd_http_infer *infer, struct ifd_objects **ret,
                                     struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    const size_t count = core->picture_count;
    struct ifd_objects *found = ifd_arena_take_array(core->call->arena, count, sizeof(*found));
    if (!found) {
        return ifd_arena_fail(core->call->arena, count * sizeof(*found), err);
    }
    for (size_t i = 0; i < count; i++) {
        const enum ifd_code code =
            ifd_call_ops(core->call)
                ->find_objects(ifd_call_service(core->call), core->desc, &core->request, i, count,
                               &core->picture[i].view, &infer->options, &found[i], err);
        if (code != IFD_OK) {
            return code;
        }
    }
    *ret = found;
    return IFD_OK;
}

enum ifd_code ifd_infer_draw_objects(struct ifd_http_infer *infer, struct ifd_err *err)
{
    struct ifd_infer *core = &infer->core;
    struct ifd_http_response *response = &infer->http->exchange->response;
    struct ifd_objects *found = NULL;
    struct ifd_bytes picture = {0};
    enum ifd_code code = ifd_infer_find_objects(infer, &found, err);
    if (code == IFD_OK) {
        code = ifd_call_ops(core->call)
                   ->draw_objects(ifd_call_service(core->call), core->desc, &core->request,
                                  &core->picture[0].source, found, core->picture_count,
                                  infer->drawing, &picture, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    ifd_http_response_begin(response, 200);
    ifd_answer_header(response, "Content-Type",
                      infer->drawing == IFD_DRAWING_PNG ? "image/png" : "image/jpeg");
    response->piece[response->piece_count++] =
        (struct ifd_http_piece){.data = picture.data, .size = picture.size};
    return IFD_OK;
}

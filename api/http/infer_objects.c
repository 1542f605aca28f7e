/* Answers with what the outputs mean: classes, objects, segments, text. */
#include "api/http/infer.h"

#include <stdio.h>

#include "api/http/query.h"
#include "engine/base/str.h"

#define SCORE_DIGITS 4
#define PIXEL_DIGITS 1

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
        infer->answers_times = ifd_str_equal(parameter->value, "1");
        return infer->answers_times || ifd_str_equal(parameter->value, "0")
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

enum ifd_code ifd_infer_read_objects(struct ifd_http_infer *infer, bool by_default,
                                     struct ifd_err *err)
{
    const struct ifd_meaning *meaning = infer->core.desc->meaning;
    infer->answers_objects = meaning && by_default;
    infer->options = meaning ? meaning->options : (struct ifd_object_options){0};
    return ifd_infer_each_parameter(infer, read_parameter, err);
}

/* ---- the answer ---- */

static void member_rounded(struct ifd_json_out *out, const char *key, double value, int digits)
{
    ifd_json_key(out, key);
    ifd_json_put_rounded(out, value, digits);
}

/* A class without a label is called by its index. */
static void write_class(struct ifd_json_out *out, const struct ifd_meaning *meaning, uint32_t index)
{
    char number[16];
    (void)snprintf(number, sizeof(number), "%u", index);
    ifd_json_member_text(out, "label",
                         index < meaning->label_count ? meaning->label[index] : number);
    ifd_json_member_u64(out, "index", index);
}

static void write_keypoints(struct ifd_json_out *out, const struct ifd_object *object)
{
    ifd_json_key(out, "keypoints");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < object->keypoint_count; i++) {
        const struct ifd_keypoint *point = &object->keypoint[i];
        ifd_json_begin(out, '[');
        ifd_json_put_rounded(out, (double)point->x, PIXEL_DIGITS);
        ifd_json_put_rounded(out, (double)point->y, PIXEL_DIGITS);
        ifd_json_put_rounded(out, (double)point->score, SCORE_DIGITS);
        ifd_json_end(out, ']');
    }
    ifd_json_end(out, ']');
}

/* Objects, or classes of the whole picture. */
static void write_list(struct ifd_json_out *out, const char *key, const struct ifd_meaning *meaning,
                       const struct ifd_objects *found)
{
    ifd_json_key(out, key);
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < found->object_count; i++) {
        const struct ifd_object *object = &found->object[i];
        ifd_json_begin(out, '{');
        write_class(out, meaning, object->index);
        member_rounded(out, "score", (double)object->score, SCORE_DIGITS);
        if (object->has_box) {
            ifd_json_key(out, "box");
            ifd_json_begin(out, '[');
            for (int side = 0; side < 4; side++) {
                ifd_json_put_rounded(out, (double)object->box[side], PIXEL_DIGITS);
            }
            ifd_json_end(out, ']');
        }
        if (object->keypoint_count > 0) {
            write_keypoints(out, object);
        }
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static void write_segments(struct ifd_json_out *out, const struct ifd_meaning *meaning,
                           const struct ifd_objects *found)
{
    ifd_json_key(out, "segments");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < found->segment_count; i++) {
        ifd_json_begin(out, '{');
        write_class(out, meaning, found->segment[i].index);
        member_rounded(out, "area", (double)found->segment[i].area, SCORE_DIGITS);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static void write_text(struct ifd_json_out *out, const struct ifd_objects *found)
{
    ifd_json_key(out, "text");
    ifd_json_begin(out, '[');
    ifd_json_begin(out, '{');
    ifd_json_key(out, "text");
    ifd_json_put_str(out, found->text);
    member_rounded(out, "score", (double)found->text_score, SCORE_DIGITS);
    ifd_json_end(out, '}');
    ifd_json_end(out, ']');
}

static void write_found(struct ifd_json_out *out, const struct ifd_meaning *meaning,
                        const struct ifd_objects *found)
{
    switch (meaning->task) {
    case IFD_TASK_CLASSIFICATION:
    case IFD_TASK_AUDIO_CLASSIFICATION:
        write_list(out, "classes", meaning, found);
        return;
    case IFD_TASK_SEGMENTATION:
        write_segments(out, meaning, found);
        return;
    case IFD_TASK_TEXT:
        write_text(out, found);
        return;
    case IFD_TASK_DETECTION:
    case IFD_TASK_KEYPOINTS:
    case IFD_TASK_COUNT:
        write_list(out, "objects", meaning, found);
        return;
    }
}

static void write_region(struct ifd_json_out *out, const struct ifd_picture_region *region)
{
    ifd_json_key(out, "region");
    ifd_json_begin(out, '[');
    ifd_json_put_u64(out, region->x);
    ifd_json_put_u64(out, region->y);
    ifd_json_put_u64(out, region->width);
    ifd_json_put_u64(out, region->height);
    ifd_json_end(out, ']');
}

static enum ifd_code write_pictures(struct ifd_http_infer *infer, struct ifd_json_out *out,
                                    struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    const size_t count = core->picture_count;
    if (count > 1) {
        ifd_json_key(out, "regions");
        ifd_json_begin(out, '[');
    }
    for (size_t i = 0; i < count; i++) {
        const struct ifd_picture_view *view = &core->picture[i].view;
        struct ifd_objects found;
        const enum ifd_code code =
            ifd_call_ops(core->call)
                ->find_objects(ifd_call_service(core->call), core->desc, &core->request, i, count,
                               view, &infer->options, &found, err);
        if (code != IFD_OK) {
            return code;
        }
        if (count > 1) {
            ifd_json_begin(out, '{');
            write_region(out, &view->region);
        }
        write_found(out, core->desc->meaning, &found);
        if (count > 1) {
            ifd_json_end(out, '}');
        }
    }
    if (count > 1) {
        ifd_json_end(out, ']');
    }
    return IFD_OK;
}

static void write_keypoint_names(struct ifd_json_out *out, const struct ifd_meaning *meaning)
{
    ifd_json_key(out, "keypoint_names");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < meaning->keypoint_name_count; i++) {
        ifd_json_put_text(out, meaning->keypoint_name[i]);
    }
    ifd_json_end(out, ']');
}

static void write_times(const struct ifd_http_infer *infer, struct ifd_json_out *out)
{
    const struct ifd_request_end *end = &infer->core.call->end;
    const uint64_t run_ns = infer->core.request.started_ns; /* 0: it was not queued */
    const uint64_t started_ns = run_ns > end->decoded_ns ? run_ns : end->decoded_ns;
    ifd_json_key(out, "time_ms");
    ifd_json_begin(out, '{');
    member_rounded(out, "decode", (double)(end->decoded_ns - end->handled_ns) / 1e6, 3);
    member_rounded(out, "queue", (double)(started_ns - end->decoded_ns) / 1e6, 3);
    member_rounded(out, "compute", (double)(end->done_ns - started_ns) / 1e6, 3);
    ifd_json_end(out, '}');
}

enum ifd_code ifd_infer_write_objects(struct ifd_http_infer *infer, struct ifd_json_out *out,
                                      struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    const struct ifd_picture_view *view = &core->picture[0].view;
    ifd_json_begin(out, '{');
    ifd_json_member_text(out, "model_name", core->desc->name);
    ifd_json_member_text(out, "model_version", core->desc->version_text);
    ifd_json_key(out, "image");
    ifd_json_begin(out, '{');
    ifd_json_member_u64(out, "width", view->width);
    ifd_json_member_u64(out, "height", view->height);
    ifd_json_end(out, '}');
    const enum ifd_code code = write_pictures(infer, out, err);
    if (code != IFD_OK) {
        return code;
    }
    if (core->desc->meaning->keypoint_name_count > 0) {
        write_keypoint_names(out, core->desc->meaning);
    }
    if (infer->answers_times) {
        write_times(infer, out);
    }
    ifd_json_end(out, '}');
    return IFD_OK;
}

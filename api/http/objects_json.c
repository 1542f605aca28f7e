/* JSON of what the outputs mean: classes, objects, segments, text. */
#include <stdio.h>

#include "api/http/infer.h"
#include "api/json/base64.h"

#define SCORE_DIGITS 4
#define PIXEL_DIGITS 1

static void member_rounded(struct ifd_json_out *out, const char *key, double value, int digits)
{
    ifd_json_key(out, key);
    ifd_json_put_rounded(out, value, digits);
}

void ifd_infer_write_label(struct ifd_json_out *out, const struct ifd_meaning *meaning,
                           uint32_t index)
{
    char number[16];
    (void)snprintf(number, sizeof(number), "%u", index);
    ifd_json_member_text(out, "label",
                         index < meaning->label_count ? meaning->label[index] : number);
}

static void write_class(struct ifd_json_out *out, const struct ifd_meaning *meaning, uint32_t index)
{
    ifd_infer_write_label(out, meaning, index);
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

void ifd_infer_write_classes(const struct ifd_http_infer *infer, struct ifd_json_out *out,
                             const struct ifd_objects *found)
{
    write_list(out, "classes", infer->core.desc->meaning, found);
}

/* COCO's uncompressed run lengths: columns from the left, pixels that are not of the class first.
 * */
static void write_runs(struct ifd_json_out *out, const struct ifd_objects *found, uint8_t index)
{
    const size_t width = found->mask_width, height = found->mask_height;
    bool is_inside = false;
    uint64_t run = 0;
    ifd_json_key(out, "mask");
    ifd_json_begin(out, '{');
    ifd_json_key(out, "size");
    ifd_json_begin(out, '[');
    ifd_json_put_u64(out, height);
    ifd_json_put_u64(out, width);
    ifd_json_end(out, ']');
    ifd_json_key(out, "counts");
    ifd_json_begin(out, '[');
    for (size_t i = 0; i < width * height; i++) {
        const size_t at = i % height * width + i / height;
        if ((found->mask[at] == index) != is_inside) {
            ifd_json_put_u64(out, run);
            run = 0;
            is_inside = !is_inside;
        }
        run++;
    }
    ifd_json_put_u64(out, run);
    ifd_json_end(out, ']');
    ifd_json_end(out, '}');
}

static enum ifd_code write_mask(struct ifd_http_infer *infer, struct ifd_json_out *out,
                                const struct ifd_objects *found, struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    struct ifd_bytes png = {0};
    const enum ifd_code code =
        ifd_call_ops(core->call)
            ->encode_mask(ifd_call_service(core->call), &core->request, found, &png, err);
    if (code != IFD_OK) {
        return code;
    }
    char *text = ifd_arena_take_room(core->call->arena, IFD_BASE64_TEXT_BYTES(png.size));
    if (!text) {
        return ifd_arena_fail(core->call->arena, IFD_BASE64_TEXT_BYTES(png.size), err);
    }
    ifd_base64_encode(png, text);
    ifd_json_key(out, "mask");
    ifd_json_put_str(out, (struct ifd_str){.data = text, .size = IFD_BASE64_TEXT_BYTES(png.size)});
    return IFD_OK;
}

static void write_segments(struct ifd_json_out *out, const struct ifd_meaning *meaning,
                           const struct ifd_objects *found, enum ifd_mask_form mask)
{
    ifd_json_key(out, "segments");
    ifd_json_begin(out, '[');
    for (uint32_t i = 0; i < found->segment_count; i++) {
        ifd_json_begin(out, '{');
        write_class(out, meaning, found->segment[i].index);
        member_rounded(out, "area", (double)found->segment[i].area, SCORE_DIGITS);
        if (mask == IFD_MASK_RLE) {
            write_runs(out, found, (uint8_t)found->segment[i].index);
        }
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static void write_text(struct ifd_json_out *out, const struct ifd_objects *found)
{
    ifd_json_key(out, "text");
    ifd_json_begin(out, '[');
    if (found->text.size > 0) {
        ifd_json_begin(out, '{');
        ifd_json_key(out, "text");
        ifd_json_put_str(out, found->text);
        member_rounded(out, "score", (double)found->text_score, SCORE_DIGITS);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
}

static enum ifd_code write_found(struct ifd_http_infer *infer, struct ifd_json_out *out,
                                 const struct ifd_objects *found, struct ifd_err *err)
{
    const struct ifd_meaning *meaning = infer->core.desc->meaning;
    switch (meaning->task) {
    case IFD_TASK_CLASSIFICATION:
    case IFD_TASK_AUDIO_CLASSIFICATION:
        write_list(out, "classes", meaning, found);
        break;
    case IFD_TASK_SEGMENTATION:
        write_segments(out, meaning, found, infer->options.mask);
        break;
    case IFD_TASK_TEXT:
        write_text(out, found);
        break;
    case IFD_TASK_DETECTION:
    case IFD_TASK_KEYPOINTS:
    case IFD_TASK_COUNT:
        write_list(out, "objects", meaning, found);
        break;
    }
    return found->mask && infer->options.mask == IFD_MASK_PNG ? write_mask(infer, out, found, err)
                                                              : IFD_OK;
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
    struct ifd_objects *found = NULL;
    enum ifd_code code = ifd_infer_find_objects(infer, &found, err);
    if (code != IFD_OK || count == 1) {
        return code != IFD_OK ? code : write_found(infer, out, found, err);
    }
    ifd_json_key(out, "regions");
    ifd_json_begin(out, '[');
    for (size_t i = 0; i < count && code == IFD_OK; i++) {
        ifd_json_begin(out, '{');
        write_region(out, &core->picture[i].view.region);
        code = write_found(infer, out, &found[i], err);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
    return code;
}

static void write_size(struct ifd_json_out *out, const struct ifd_picture_view *view)
{
    ifd_json_key(out, "image");
    ifd_json_begin(out, '{');
    ifd_json_member_u64(out, "width", view->width);
    ifd_json_member_u64(out, "height", view->height);
    ifd_json_end(out, '}');
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
    const uint64_t decode_ns = end->decoded_ns - end->handled_ns - end->waited_ns;
    const uint64_t queue_ns = end->waited_ns + started_ns - end->decoded_ns;
    ifd_json_key(out, "time_ms");
    ifd_json_begin(out, '{');
    member_rounded(out, "decode", (double)decode_ns / 1e6, 3);
    member_rounded(out, "queue", (double)queue_ns / 1e6, 3);
    member_rounded(out, "compute", (double)(end->done_ns - started_ns) / 1e6, 3);
    ifd_json_end(out, '}');
}

enum ifd_code ifd_infer_write_objects(struct ifd_http_infer *infer, struct ifd_json_out *out,
                                      struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    ifd_json_begin(out, '{');
    ifd_json_member_text(out, "model_name", core->desc->name);
    ifd_json_member_text(out, "model_version", core->desc->version_text);
    if (!infer->windows) {
        write_size(out, &core->picture[0].view);
    }
    const enum ifd_code code =
        infer->windows ? ifd_infer_write_windows(infer, out, err) : write_pictures(infer, out, err);
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

/* JSON of what was found in one picture or window: classes, objects, segments, text. */
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

enum ifd_code ifd_infer_write_found(struct ifd_http_infer *infer, struct ifd_json_out *out,
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

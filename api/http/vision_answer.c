/* The answers of /v1/vision. */
#include "api/http/vision.h"

#include "engine/base/clock.h"

#define CONFIDENCE_DIGITS 4

static void member_pixel(struct ifd_json_out *out, const char *key, float value)
{
    ifd_json_member_u64(out, key, value > 0 ? (uint64_t)(value + 0.5F) : 0);
}

/* Classes of a whole picture get its frame. */
static void write_prediction(const struct ifd_http_infer *infer, struct ifd_json_out *out,
                             const struct ifd_object *object, const struct ifd_picture_view *view)
{
    const float whole[4] = {0, 0, (float)view->width, (float)view->height};
    const float *box = object->has_box ? object->box : whole;
    ifd_json_begin(out, '{');
    ifd_json_key(out, "confidence");
    ifd_json_put_rounded(out, (double)object->score, CONFIDENCE_DIGITS);
    if (infer->http->route->kind != IFD_ROUTE_FACE) {
        ifd_infer_write_label(out, infer->core.desc->meaning, object->index);
    }
    member_pixel(out, "x_min", box[0]);
    member_pixel(out, "y_min", box[1]);
    member_pixel(out, "x_max", box[2]);
    member_pixel(out, "y_max", box[3]);
    ifd_json_end(out, '}');
}

static uint64_t ms_between(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? (to_ns - from_ns + 500000) / 1000000 : 0;
}

/* duration is DeepStack's, the others are CodeProject.AI's. */
static void write_times(const struct ifd_http_infer *infer, struct ifd_json_out *out)
{
    const struct ifd_request_end *end = &infer->core.call->end;
    const uint64_t run_ns = infer->core.request.started_ns; /* 0: it was not queued */
    const uint64_t all_ms = ms_between(end->handled_ns, ifd_monotonic_ns());
    ifd_json_member_u64(out, "duration", all_ms);
    ifd_json_member_u64(out, "inferenceMs",
                        ms_between(run_ns > 0 ? run_ns : end->decoded_ns, end->done_ns));
    ifd_json_member_u64(out, "processMs", all_ms);
}

enum ifd_code ifd_vision_write(struct ifd_http_infer *infer, struct ifd_json_out *out,
                               struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    struct ifd_objects *found = NULL;
    uint64_t count = 0;
    const enum ifd_code code = ifd_infer_find_objects(infer, &found, err);
    if (code != IFD_OK) {
        return code;
    }
    ifd_json_begin(out, '{');
    ifd_json_member_bool(out, "success", true);
    ifd_json_key(out, "predictions");
    ifd_json_begin(out, '[');
    for (size_t i = 0; i < core->picture_count; i++) { /* the regions of one picture */
        for (uint32_t k = 0; k < found[i].object_count; k++) {
            write_prediction(infer, out, &found[i].object[k], &core->picture[i].view);
        }
        count += found[i].object_count;
    }
    ifd_json_end(out, ']');
    ifd_json_member_u64(out, "count", count);
    write_times(infer, out);
    ifd_json_member_text(out, "moduleId", core->desc->name);
    ifd_json_member_u64(out, "code", 200);
    ifd_json_end(out, '}');
    return IFD_OK;
}

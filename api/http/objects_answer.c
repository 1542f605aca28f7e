/* The answer of a request for what the outputs mean: its pictures or windows, and times. */
#include "api/http/infer.h"

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
        return code != IFD_OK ? code : ifd_infer_write_found(infer, out, found, err);
    }
    ifd_json_key(out, "regions");
    ifd_json_begin(out, '[');
    for (size_t i = 0; i < count && code == IFD_OK; i++) {
        ifd_json_begin(out, '{');
        write_region(out, &core->picture[i].view.region);
        code = ifd_infer_write_found(infer, out, &found[i], err);
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

static void member_ms(struct ifd_json_out *out, const char *key, uint64_t ns)
{
    ifd_json_key(out, key);
    ifd_json_put_rounded(out, (double)ns / 1e6, 3);
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
    member_ms(out, "decode", decode_ns);
    member_ms(out, "queue", queue_ns);
    member_ms(out, "compute", end->done_ns - started_ns);
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

/* Sounds over HTTP: WAV, or samples without a header, as the whole body. Each window of the sound
 * is a run of its own. */
#include <string.h>

#include "api/http/infer.h"
#include "api/http/media_type.h"
#include "api/http/multipart.h"
#include "api/http/vision.h"
#include "engine/base/str.h"

/* Bounds how long one request keeps the model: at half a second a window, eight minutes. */
#define WINDOWS_MAX 1000

/* The windows of a request's sound. */
struct ifd_windows {
    const float *sample;
    size_t sample_count;
    const struct ifd_sound_rule *rule;
    float *input; /* the memory of the input's tensor: one window */
    struct ifd_objects *found;
    size_t count, at; /* at: the window that runs */
    uint64_t started_ns;
};

static const char raw_type[] = "audio/x-raw", form_type[] = "multipart/form-data";

static bool takes_sounds(const struct ifd_model_desc *desc)
{
    return desc->input_count == 1 && desc->input[0].sound.has_sound;
}

bool ifd_infer_is_sound(const struct ifd_http_infer *infer)
{
    const struct ifd_http_call *call = infer->http;
    const struct ifd_str type = infer->content_type;
    const struct ifd_bytes body =
        call->body.data ? call->body
                        : (struct ifd_bytes){call->exchange->body, call->exchange->body_size};
    return (type.size >= 6 && ifd_str_equal_nocase((struct ifd_str){type.data, 6}, "audio/")) ||
           (ifd_media_type_is(type, form_type) && !ifd_infer_is_vision(infer) &&
            takes_sounds(infer->core.desc)) ||
           (!call->json_length.data && body.size >= 12 && memcmp(body.data, "RIFF", 4) == 0 &&
            memcmp(body.data + 8, "WAVE", 4) == 0);
}

/* ---- the request ---- */

static bool read_count(struct ifd_str type, const char *name, uint32_t *ret)
{
    uint64_t number = 0;
    const bool is_number =
        ifd_str_u64(ifd_media_type_parameter(type, name), &number) && number <= UINT32_MAX;
    *ret = (uint32_t)number;
    return is_number;
}

static enum ifd_code read_source(struct ifd_http_infer *infer, struct ifd_sound_source *ret,
                                 struct ifd_err *err)
{
#define X(id, name, bytes) [IFD_SOUND_##id] = name,
    static const char *const names[IFD_SOUND_COUNT] = {IFD_SOUND_FORMATS(X)};
#undef X
    struct ifd_part file = {.type = infer->content_type, .content = infer->http->body};
    if (ifd_media_type_is(file.type, form_type)) {
        const enum ifd_code code = ifd_infer_read_form(infer, &file, err);
        if (code != IFD_OK) {
            return code;
        }
    }
    const struct ifd_str type = file.type;
    *ret = (struct ifd_sound_source){.bytes = file.content};
    if (!ifd_media_type_is(type, raw_type)) {
        return IFD_OK;
    }
    const struct ifd_str format = ifd_media_type_parameter(type, "format");
    for (int i = IFD_SOUND_WAV + 1; i < IFD_SOUND_COUNT; i++) {
        ret->format =
            ifd_str_equal_nocase(format, names[i]) ? (enum ifd_sound_format)i : ret->format;
    }
    if (ret->format == IFD_SOUND_WAV || !read_count(type, "rate", &ret->rate) ||
        !read_count(type, "channels", &ret->channels)) {
        return ifd_fail(err, IFD_INVALID,
                        "Content-Type audio/x-raw needs format (U8, S16LE, S24LE, S32LE, F32LE, "
                        "F64LE), rate and channels: %.*s",
                        type.size < 100 ? (int)type.size : 100, type.data);
    }
    return IFD_OK;
}

/* Copies the present window into the input; behind the sound there is silence. */
static void fill_window(struct ifd_windows *windows)
{
    const size_t first = windows->at * windows->rule->hop, size = windows->rule->window;
    const size_t left = first < windows->sample_count ? windows->sample_count - first : 0;
    const size_t count = left < size ? left : size;
    memcpy(windows->input, windows->sample + first, count * sizeof(float));
    memset(windows->input + count, 0, (size - count) * sizeof(float));
}

/* The input's tensor for one window. */
static enum ifd_code take_input(struct ifd_http_infer *infer, struct ifd_windows *windows,
                                struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->core.desc;
    struct ifd_tensor *tensor = &infer->core.request.input[0];
    const size_t bytes = windows->rule->window * sizeof(float);
    windows->input = ifd_arena_take_tensor(infer->core.call->arena, bytes);
    windows->found =
        ifd_arena_take_array(infer->core.call->arena, windows->count, sizeof(*windows->found));
    if (!windows->input || !windows->found) {
        return ifd_arena_fail(infer->core.call->arena, bytes, err);
    }
    *tensor = (struct ifd_tensor){.dtype = IFD_F32,
                                  .shape = desc->input[0].shape,
                                  .data = windows->input,
                                  .bytes = bytes,
                                  .capacity = bytes + IFD_TENSOR_PAD};
    struct ifd_shape *shape = &tensor->shape;
    if (desc->max_batch_size > 0) {
        *shape = (struct ifd_shape){.rank = 1, .dim = {1}};
        for (uint32_t i = 0; i < desc->input[0].shape.rank; i++) {
            shape->dim[shape->rank++] = desc->input[0].shape.dim[i];
        }
    } else if (shape->dim[0] == IFD_DIM_ANY) {
        shape->dim[0] = 1;
    }
    infer->core.has_input[0] = true;
    fill_window(windows);
    return IFD_OK;
}

static enum ifd_code read_windows(struct ifd_http_infer *infer, struct ifd_windows *windows,
                                  struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    struct ifd_sound_source source;
    float *sample = NULL;
    const size_t size = windows->rule->window, hop = windows->rule->hop;
    enum ifd_code code = read_source(infer, &source, err);
    if (code == IFD_OK) {
        source.most = size + (size_t)(WINDOWS_MAX - 1) * hop;
        code = ifd_call_ops(core->call)
                   ->read_sound(ifd_call_service(core->call), &source, &core->desc->input[0],
                                core->call->arena, &sample, &windows->sample_count, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const size_t behind = windows->sample_count > size ? windows->sample_count - size : 0;
    windows->sample = sample;
    windows->count = 1 + (behind + hop - 1) / hop;
    return IFD_OK;
}

enum ifd_code ifd_infer_parse_sound(struct ifd_http_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->core.desc;
    if (!takes_sounds(desc)) {
        return ifd_fail(err, IFD_INVALID,
                        "model '%s' takes no sound: send tensors, or say in its config what it is "
                        "(parameters preset, or task and audio_rate)",
                        desc->name);
    }
    struct ifd_windows *windows = ifd_arena_take(infer->core.call->arena, sizeof(*windows));
    if (!windows) {
        return ifd_arena_fail(infer->core.call->arena, sizeof(*windows), err);
    }
    windows->rule = &desc->input[0].sound;
    enum ifd_code code = read_windows(infer, windows, err);
    if (code == IFD_OK) {
        code = take_input(infer, windows, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_check_inputs(&infer->core, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_read_objects(infer, true, err);
    }
    if (code == IFD_OK && !infer->answers_objects && windows->count > 1) {
        code = ifd_fail(err, IFD_INVALID, "the tensors of %zu windows: send one of %u samples",
                        windows->count, windows->rule->window);
    }
    infer->drawing = IFD_DRAWING_NONE;
    infer->windows = windows;
    infer->core.runs_left = windows->count - 1;
    return code;
}

/* ---- the runs ---- */

static enum ifd_code keep_found(struct ifd_http_infer *infer, struct ifd_err *err)
{
    const struct ifd_infer *core = &infer->core;
    struct ifd_windows *windows = infer->windows;
    return ifd_call_ops(core->call)
        ->find_objects(ifd_call_service(core->call), core->desc, &core->request, 0, 1, NULL,
                       &infer->options, &windows->found[windows->at], err);
}

enum ifd_code ifd_infer_next_window(struct ifd_http_infer *infer, struct ifd_err *err)
{
    struct ifd_windows *windows = infer->windows;
    const enum ifd_code code = keep_found(infer, err);
    if (windows->at == 0) {
        windows->started_ns = infer->core.request.started_ns;
    }
    windows->at++;
    fill_window(windows);
    return code;
}

enum ifd_code ifd_infer_write_windows(struct ifd_http_infer *infer, struct ifd_json_out *out,
                                      struct ifd_err *err)
{
    const struct ifd_windows *windows = infer->windows;
    const enum ifd_code code = keep_found(infer, err);
    const double rate = windows->rule->rate;
    if (code != IFD_OK) {
        return code;
    }
    if (windows->count > 1) {
        infer->core.request.started_ns = windows->started_ns;
    }
    ifd_json_key(out, "windows");
    ifd_json_begin(out, '[');
    for (size_t i = 0; i < windows->count; i++) {
        const size_t first = i * windows->rule->hop, last = first + windows->rule->window;
        ifd_json_begin(out, '{');
        ifd_json_key(out, "from");
        ifd_json_put_rounded(out, (double)first / rate, 4);
        ifd_json_key(out, "to");
        ifd_json_put_rounded(out, (double)last / rate, 4);
        ifd_infer_write_classes(infer, out, &windows->found[i]);
        ifd_json_end(out, '}');
    }
    ifd_json_end(out, ']');
    return IFD_OK;
}

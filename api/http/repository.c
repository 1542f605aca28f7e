/* The repository: its index, load and unload. */
#include "api/http/handlers.h"

#include "api/json/base64.h"
#include "api/json/json_read.h"
#include "engine/base/str.h"

#include <stdio.h>

/* Maximum files in a load request. */
#define LOAD_FILES_MAX 64

/* ---- index ---- */

/* IFD_MODEL_UNKNOWN has no name: the index leaves it out. */
static const char *state_name(enum ifd_model_state state)
{
    static const char *const names[] = {
#define X(id, label, text) text,
        IFD_MODEL_STATES(X)
#undef X
    };
    return names[state];
}

static void put_row(void *arg, const struct ifd_index_row *row)
{
    struct ifd_json_out *out = arg;
    char number[24];
    ifd_json_begin(out, '{');
    ifd_json_member_text(out, "name", row->name);
    if (row->version > 0) {
        (void)snprintf(number, sizeof(number), "%lld", (long long)row->version);
        ifd_json_member_text(out, "version", number);
    }
    if (row->state != IFD_MODEL_UNKNOWN) {
        ifd_json_member_text(out, "state", state_name(row->state));
    }
    if (row->reason && row->reason[0]) {
        ifd_json_member_text(out, "reason", row->reason);
    }
    if (row->attempts > 0) { /* not in Triton; strings, as its "version" */
        (void)snprintf(number, sizeof(number), "%u", row->attempts);
        ifd_json_member_text(out, "attempts", number);
        (void)snprintf(number, sizeof(number), "%llu", (unsigned long long)row->retry_secs);
        ifd_json_member_text(out, "next_retry",
                             row->retry_secs == IFD_RETRY_NEVER ? "never" : number);
    }
    if (row->pending) { /* not in Triton */
        ifd_json_member_text(out, "pending", row->pending);
    }
    ifd_json_end(out, '}');
}

/* Reads {"ready": true}. */
static bool read_index_request(struct ifd_json_in *in, bool *ret_only_ready)
{
    struct ifd_str key;
    bool has_ready = false;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        if (ifd_str_equal(key, "ready")) {
            ifd_json_once(in, &has_ready, "ready");
            ifd_json_bool(in, ret_only_ready);
        } else {
            ifd_json_skip(in);
        }
    }
    return ifd_json_finish(in);
}

struct index_request {
    struct ifd_http_call *call;
    bool only_ready;
};

static void answer_index(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    const struct index_request *request = arg;
    struct ifd_http_call *call = request->call;
    struct ifd_json_out out;
    call->core.is_waiting = false;
    if (code) {
        ifd_http_fail(call, code, err);
        return;
    }
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '[');
    ifd_http_ops(call)->index(ifd_http_service(call), request->only_ready, put_row, &out);
    ifd_json_end(&out, ']');
    ifd_http_json(call, 200, &out);
}

void ifd_handle_repository_index(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    struct ifd_json_in in;
    struct index_request *request = ifd_arena_take(call->exchange->arena, sizeof(*request));
    if (!request) {
        ifd_http_fail(call, IFD_NOMEM, NULL);
        return;
    }
    *request = (struct index_request){.call = call};
    ifd_json_in_init(&in, ifd_http_body_text(call), call->exchange->arena, &err);
    if (call->body.size > 0 && !read_index_request(&in, &request->only_ready)) {
        ifd_http_fail(call, in.code, &err);
    } else if (ifd_http_ops(call)->refresh) {
        call->core.is_waiting = true;
        ifd_http_ops(call)->refresh(ifd_http_service(call), answer_index, request);
    } else {
        answer_index(request, IFD_OK, NULL);
    }
}

/* ---- load and unload ---- */

static void on_control(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct ifd_http_call *call = arg;
    call->core.is_waiting = false;
    if (code == IFD_OK) {
        ifd_http_empty(call);
    } else {
        ifd_http_fail(call, code, err);
    }
}

static void refuse(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    (void)ifd_fail(&err, IFD_INVALID,
                   "explicit model load / unload is not allowed: the server runs with "
                   "--model-control-mode=%s, it takes --model-control-mode=explicit",
                   ifd_http_ops(call)->info(ifd_http_service(call))->control_mode);
    ifd_http_fail(call, IFD_INVALID, &err);
}

/* Reads {"parameters": {…}}; skips other members. */
static bool read_parameters(struct ifd_json_in *in, bool (*read)(struct ifd_json_in *, void *),
                            void *arg)
{
    struct ifd_str key;
    bool has_parameters = false;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        if (ifd_str_equal(key, "parameters")) {
            ifd_json_once(in, &has_parameters, "parameters");
            read(in, arg);
        } else {
            ifd_json_skip(in);
        }
    }
    return !in->failed;
}

struct load {
    struct ifd_load_request request;
    struct ifd_load_file file[LOAD_FILES_MAX];
};

static bool read_file(struct ifd_json_in *in, struct ifd_str key, struct load *load)
{
    struct ifd_str text;
    if (load->request.file_count == LOAD_FILES_MAX) {
        return ifd_json_fail(in, IFD_INVALID, "more than %d files", LOAD_FILES_MAX);
    }
    if (!ifd_json_text(in, &text)) {
        return false;
    }
    size_t bytes = IFD_BASE64_BYTES(text.size), size = 0;
    uint8_t *content = ifd_arena_take_tensor(in->arena, bytes);
    if (!content) {
        in->failed = true;
        in->code = ifd_arena_fail(in->arena, bytes, in->err);
        return false;
    }
    if (!ifd_base64_decode(text, content, &size)) {
        return ifd_json_fail(in, IFD_INVALID, "parameter '%.*s' is not base64", ifd_json_shown(key),
                             key.data);
    }
    load->file[load->request.file_count++] =
        (struct ifd_load_file){.path = {.data = key.data + 5, .size = key.size - 5},
                               .content = {.data = content, .size = size}};
    return true;
}

static bool read_load_parameters(struct ifd_json_in *in, void *arg)
{
    struct load *load = arg;
    struct ifd_str key;
    bool has_config = false;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        if (ifd_str_equal(key, "config")) {
            ifd_json_once(in, &has_config, "config");
            ifd_json_text(in, &load->request.config);
        } else if (ifd_str_starts(key, "file:") && key.size > 5) {
            read_file(in, key, load);
        } else {
            ifd_json_fail(in, IFD_INVALID, "unknown load parameter '%.*s'", ifd_json_shown(key),
                          key.data);
        }
    }
    return !in->failed;
}

static bool read_load_request(struct ifd_json_in *in, struct load *load)
{
    if (!read_parameters(in, read_load_parameters, load)) {
        return false;
    }
    if (load->request.file_count > 0 && !load->request.config.data) {
        return ifd_json_fail(in, IFD_INVALID, "files are given without parameter 'config'");
    }
    return ifd_json_finish(in);
}

void ifd_handle_repository_load(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    struct ifd_json_in in;
    struct ifd_arena *arena = call->exchange->arena;
    struct load *load = ifd_arena_take(arena, sizeof(*load));
    if (!ifd_http_ops(call)->load) {
        refuse(call);
        return;
    }
    if (!load) {
        ifd_http_fail(call, IFD_NOMEM, NULL);
        return;
    }
    load->request.model = call->core.model;
    load->request.file = load->file;
    ifd_json_in_init(&in, ifd_http_body_text(call), arena, &err);
    if (call->body.size > 0 && !read_load_request(&in, load)) {
        ifd_http_fail(call, in.code, &err);
        return;
    }
    call->core.is_waiting = true;
    ifd_http_ops(call)->load(ifd_http_service(call), &load->request, on_control, call);
}

static bool read_unload_parameters(struct ifd_json_in *in, void *arg)
{
    bool *dependents = arg;
    struct ifd_str key;
    bool has_dependents = false;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        if (ifd_str_equal(key, "unload_dependents")) {
            ifd_json_once(in, &has_dependents, "unload_dependents");
            ifd_json_bool(in, dependents);
        } else {
            ifd_json_fail(in, IFD_INVALID, "unknown unload parameter '%.*s'", ifd_json_shown(key),
                          key.data);
        }
    }
    return !in->failed;
}

void ifd_handle_repository_unload(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    struct ifd_json_in in;
    bool dependents = false;
    if (!ifd_http_ops(call)->unload) {
        refuse(call);
        return;
    }
    ifd_json_in_init(&in, ifd_http_body_text(call), call->exchange->arena, &err);
    if (call->body.size > 0 &&
        !(read_parameters(&in, read_unload_parameters, &dependents) && ifd_json_finish(&in))) {
        ifd_http_fail(call, in.code, &err);
        return;
    }
    call->core.is_waiting = true;
    ifd_http_ops(call)->unload(ifd_http_service(call), call->core.model, dependents, on_control,
                               call);
}

/* Clients cannot choose the repository, as in Triton. */
void ifd_handle_repository_named(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    (void)ifd_fail(&err, IFD_UNSUPPORTED,
                   "'repository_name' specification is not supported: use "
                   "/v2/repository/models/{model}/load or …/unload");
    ifd_http_fail(call, IFD_UNSUPPORTED, &err);
}

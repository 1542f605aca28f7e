/* GET and POST /v2/logging and …/trace/setting. There is no tracing. */
#include "api/http/handlers.h"
#include "api/json/json_read.h"
#include "engine/base/str.h"

/* ---- logging ---- */

static const char *const formats[] = {"default", "ISO8601"};

static void answer_log(struct ifd_http_call *call)
{
    struct ifd_log_settings log = {0};
    struct ifd_json_out out;
    ifd_http_ops(call)->log_settings(ifd_http_service(call), &log);
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_text(&out, "log_file", "");
    ifd_json_member_bool(&out, "log_info", log.info);
    ifd_json_member_bool(&out, "log_warning", log.warning);
    ifd_json_member_bool(&out, "log_error", log.error);
    ifd_json_member_u64(&out, "log_verbose_level", log.verbose_level);
    ifd_json_member_text(&out, "log_format", formats[log.is_iso8601]);
    ifd_json_end(&out, '}');
    ifd_http_json(call, 200, &out);
}

static void read_format(struct ifd_json_in *in, struct ifd_log_settings *log)
{
    struct ifd_str text;
    if (!ifd_json_text(in, &text)) {
        return;
    }
    log->is_iso8601 = ifd_str_equal(text, formats[1]);
    if (!log->is_iso8601 && !ifd_str_equal(text, formats[0])) {
        ifd_json_fail(in, IFD_INVALID, "log_format '%.*s' is neither 'default' nor 'ISO8601'",
                      ifd_json_shown(text), text.data);
    }
}

static void read_verbose_level(struct ifd_json_in *in, struct ifd_log_settings *log)
{
    uint64_t level = 0;
    if (ifd_json_u64(in, &level)) {
        log->verbose_level = level < UINT32_MAX ? (uint32_t)level : UINT32_MAX;
    }
}

static bool read_log(struct ifd_json_in *in, struct ifd_log_settings *log)
{
    struct ifd_str key;
    bool has_info = false, has_warning = false, has_error = false, has_level = false,
         has_format = false;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        if (ifd_str_equal(key, "log_info")) {
            ifd_json_once(in, &has_info, "log_info");
            ifd_json_bool(in, &log->info);
        } else if (ifd_str_equal(key, "log_warning")) {
            ifd_json_once(in, &has_warning, "log_warning");
            ifd_json_bool(in, &log->warning);
        } else if (ifd_str_equal(key, "log_error")) {
            ifd_json_once(in, &has_error, "log_error");
            ifd_json_bool(in, &log->error);
        } else if (ifd_str_equal(key, "log_verbose_level")) {
            ifd_json_once(in, &has_level, "log_verbose_level");
            read_verbose_level(in, log);
        } else if (ifd_str_equal(key, "log_format")) {
            ifd_json_once(in, &has_format, "log_format");
            read_format(in, log);
        } else if (ifd_str_equal(key, "log_file")) {
            ifd_json_fail(in, IFD_INVALID, "log_file cannot be changed: the log is standard error");
        } else {
            ifd_json_fail(in, IFD_INVALID, "unknown log setting '%.*s'", ifd_json_shown(key),
                          key.data);
        }
    }
    return ifd_json_finish(in);
}

void ifd_handle_log(struct ifd_http_call *call)
{
    answer_log(call);
}

void ifd_handle_set_log(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    struct ifd_json_in in;
    struct ifd_log_settings log = {0};
    ifd_http_ops(call)->log_settings(ifd_http_service(call), &log);
    ifd_json_in_init(&in, ifd_http_body_text(call), call->exchange->arena, &err);
    if (call->body.size > 0 && !read_log(&in, &log)) {
        ifd_http_fail(call, in.code, &err);
        return;
    }
    ifd_http_ops(call)->set_log(ifd_http_service(call), &log);
    answer_log(call);
}

/* ---- tracing: not supported ---- */

static bool model_is_known(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    if (!call->core.model.data) {
        return true;
    }
    enum ifd_code code = ifd_call_acquire(&call->core, &err);
    if (code) {
        ifd_http_fail(call, code, &err);
        return false;
    }
    return true;
}

static void answer_trace(struct ifd_http_call *call)
{
    struct ifd_json_out out;
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_key(&out, "trace_level");
    ifd_json_begin(&out, '[');
    ifd_json_put_text(&out, "OFF");
    ifd_json_end(&out, ']');
    ifd_json_member_text(&out, "trace_rate", "1000");
    ifd_json_member_text(&out, "trace_count", "-1");
    ifd_json_member_text(&out, "log_frequency", "0");
    ifd_json_member_text(&out, "trace_file", "");
    ifd_json_member_text(&out, "trace_mode", "triton");
    ifd_json_end(&out, '}');
    ifd_http_json(call, 200, &out);
}

/* Only ["OFF"] is accepted. */
static void read_trace_level(struct ifd_json_in *in)
{
    for (ifd_json_open(in, '['); ifd_json_item(in);) {
        struct ifd_str level;
        if (ifd_json_text(in, &level) && !ifd_str_equal(level, "OFF")) {
            ifd_json_fail(in, IFD_UNSUPPORTED, "trace_level '%.*s': this server does not trace",
                          ifd_json_shown(level), level.data);
        }
    }
}

static bool read_trace(struct ifd_json_in *in)
{
    static const char *const others[] = {"trace_rate", "trace_count", "log_frequency", "trace_file",
                                         "trace_mode"};
    struct ifd_str key;
    if (!ifd_json_open(in, '{')) {
        return false;
    }
    while (ifd_json_given(in, &key)) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            is_known = is_known || ifd_str_equal(key, others[i]);
        }
        if (ifd_str_equal(key, "trace_level")) {
            read_trace_level(in);
        } else if (is_known) {
            ifd_json_fail(in, IFD_UNSUPPORTED, "%.*s: this server does not trace",
                          ifd_json_shown(key), key.data);
        } else {
            ifd_json_fail(in, IFD_INVALID, "unknown trace setting '%.*s'", ifd_json_shown(key),
                          key.data);
        }
    }
    return ifd_json_finish(in);
}

void ifd_handle_trace(struct ifd_http_call *call)
{
    if (model_is_known(call)) {
        answer_trace(call);
    }
}

void ifd_handle_set_trace(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    struct ifd_json_in in;
    if (!model_is_known(call)) {
        return;
    }
    ifd_json_in_init(&in, ifd_http_body_text(call), call->exchange->arena, &err);
    if (call->body.size > 0 && !read_trace(&in)) {
        ifd_http_fail(call, in.code, &err);
        return;
    }
    answer_trace(call);
}

/* GET /v2. */
#include "api/http/handlers.h"

/* The list of backends that are missing begins with the first one. */
struct missing {
    struct ifd_json_out *out;
    bool has_begun;
};

static void add_missing(void *arg, const char *name, const char *reason)
{
    struct missing *missing = arg;
    if (!missing->has_begun) {
        ifd_json_key(missing->out, "missing_backends");
        ifd_json_begin(missing->out, '[');
        missing->has_begun = true;
    }
    ifd_json_begin(missing->out, '{');
    ifd_json_member_text(missing->out, "name", name);
    ifd_json_member_text(missing->out, "reason", reason);
    ifd_json_end(missing->out, '}');
}

/* Not in Triton's answer: nothing is written while every backend is there. */
static void put_missing(struct ifd_http_call *call, struct ifd_json_out *out)
{
    struct missing missing = {.out = out};
    if (ifd_http_ops(call)->missing_backends) {
        ifd_http_ops(call)->missing_backends(ifd_http_service(call), add_missing, &missing);
    }
    if (missing.has_begun) {
        ifd_json_end(out, ']');
    }
}

/* Not in Triton's answer: whether this connection can load and unload models, given a token for it.
 * Nothing is written where it cannot. */
static void put_control(const struct ifd_http_call *call, struct ifd_json_out *out)
{
    if (call->may_control && ifd_http_ops(call)->load) {
        ifd_json_member_bool(out, "may_load", true);
    }
}

void ifd_handle_server_metadata(struct ifd_http_call *call)
{
    const struct ifd_server_info *info = ifd_http_ops(call)->info(ifd_http_service(call));
    struct ifd_json_out out;
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_text(&out, "name", info->name);
    ifd_json_member_text(&out, "version", info->version);
    ifd_json_key(&out, "extensions");
    ifd_json_begin(&out, '[');
    for (uint32_t i = 0; i < info->extension_count; i++) {
        ifd_json_put_text(&out, info->extensions[i]);
    }
    ifd_json_end(&out, ']');
    put_missing(call, &out);
    put_control(call, &out);
    ifd_json_end(&out, '}');
    ifd_http_json(call, 200, &out);
}

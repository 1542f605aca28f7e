/* GET /v2/health/live and /v2/health/ready. */
#include "api/http/guard.h"
#include "api/http/handlers.h"

void ifd_handle_live(struct ifd_http_call *call)
{
    struct ifd_json_out out;
    bool is_live = ifd_http_ops(call)->is_live(ifd_http_service(call));
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_bool(&out, "live", is_live);
    ifd_json_end(&out, '}');
    ifd_http_json(call, is_live ? 200 : 503, &out);
}

/* Every client may ask whether the server is ready. The reason names models: with tokens only
 * clients that may list models get it. */
static bool may_know(const struct ifd_http_call *call)
{
    return ifd_guard_trusts(call->guard, call->exchange, IFD_ACCESS_OBSERVE);
}

void ifd_handle_ready(struct ifd_http_call *call)
{
    struct ifd_err why = {0};
    struct ifd_json_out out;
    bool is_live = ifd_http_ops(call)->is_live(ifd_http_service(call));
    bool is_ready = ifd_http_ops(call)->is_ready(ifd_http_service(call), &why) == IFD_OK;
    ifd_json_out_init(&out, call->exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_member_bool(&out, "live", is_live);
    ifd_json_member_bool(&out, "ready", is_ready);
    if (!is_ready) {
        ifd_json_member_text(&out, "error", may_know(call) ? why.text : "Server not ready");
    }
    ifd_json_end(&out, '}');
    ifd_http_json(call, is_ready ? 200 : 503, &out);
}

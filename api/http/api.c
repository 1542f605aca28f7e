/* The life of an exchange: open, handle, abandon, close. */
#include "api/http/api.h"

#include "api/http/call.h"
#include "api/http/encoding.h"
#include "api/http/guard.h"
#include "api/http/handlers.h"
#include "api/http/vision.h"
#include "engine/base/clock.h"
#include "engine/base/str.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_MAX_INPUT_BYTES ((size_t)64 << 20)

struct ifd_api {
    struct ifd_calls calls;
    struct ifd_api_options options;
};

enum ifd_code ifd_api_create(const struct ifd_api_options *options, struct ifd_api **ret_api,
                             struct ifd_err *err)
{
    struct ifd_api *api = ifd_acquire_zeroed(options->alloc, 1, sizeof(*api));
    if (!api) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the API");
    }
    api->options = *options;
    if (api->options.max_input_bytes == 0) {
        api->options.max_input_bytes = DEFAULT_MAX_INPUT_BYTES;
    }
    api->calls = (struct ifd_calls){.ops = options->ops, .service = options->service};
    *ret_api = api;
    return IFD_OK;
}

void ifd_api_destroy(struct ifd_api *api)
{
    if (api) {
        ifd_release(api->options.alloc, api, sizeof(*api));
    }
}

void ifd_api_change_max_input(struct ifd_api *api, size_t bytes)
{
    api->options.max_input_bytes = bytes;
}

void ifd_api_error(struct ifd_http_exchange *exchange, int status, const char *text)
{
    ifd_answer_error(exchange, status, ifd_str(text));
    if (status == 503) {
        ifd_answer_header(&exchange->response, "Retry-After", "1");
    }
}

uint32_t ifd_api_cors_headers(const struct ifd_api *api, const struct ifd_http_exchange *exchange,
                              struct ifd_http_header *ret_header)
{
    return ifd_cors_headers(&api->options.cors, exchange, ret_header);
}

static void answer_wrong_method(struct ifd_http_exchange *exchange, uint32_t allowed)
{
    static const char *const lists[] = {"GET, HEAD", "POST", "GET, HEAD, POST"};
    bool has_get = (allowed & IFD_BIT(IFD_HTTP_GET)) != 0;
    bool has_post = (allowed & IFD_BIT(IFD_HTTP_POST)) != 0;
    ifd_answer_error(exchange, 405, ifd_str("Method Not Allowed"));
    ifd_answer_header(&exchange->response, "Allow", lists[has_get && has_post ? 2 : has_post]);
}

/* Denies by default: only clients with a token learn that a path is no route. False: the answer is
 * made. */
static bool check_access(const struct ifd_http_call *call, struct ifd_str authorization,
                         bool admin_on_http)
{
    struct ifd_http_exchange *exchange = call->exchange;
    const struct ifd_route *route = call->route;
    const enum ifd_access_class access = route ? route->access : IFD_ACCESS_KNOWN;
    if (!ifd_guard_admits(call->guard, exchange, authorization, access, call->core.model)) {
        return false;
    }
    if (access == IFD_ACCESS_ADMIN && !exchange->is_local_admin && !admin_on_http) {
        ifd_answer_error(exchange, 403,
                         ifd_str("control of this server is closed here: use the admin socket, or "
                                 "start the server with --admin-on-http"));
        return false;
    }
    return true;
}

/* Checks everything else that needs only the headers. code: result of finding the route; allowed:
 * methods of its path. False: the answer is made. */
static bool check_head(struct ifd_http_call *call, enum ifd_code code, uint32_t allowed,
                       struct ifd_err *err)
{
    struct ifd_http_exchange *exchange = call->exchange;
    if (code == IFD_NOT_FOUND && allowed) {
        answer_wrong_method(exchange, allowed);
        return false;
    }
    const struct ifd_str coding = call->coding;
    if (code == IFD_OK && !ifd_coding_is_known(coding)) {
        char text[128];
        snprintf(text, sizeof(text),
                 "Unsupported compression type: Content-Encoding may be identity, gzip or deflate, "
                 "not '%.*s'",
                 coding.size > 20 ? 20 : (int)coding.size, coding.data);
        ifd_answer_error(exchange, 415, ifd_str(text));
        ifd_answer_header(&exchange->response, "Accept-Encoding", "gzip, deflate");
        return false;
    }
    if (code == IFD_OK && ifd_route_infers(call->route)) {
        code = ifd_call_begin_inference(&call->core, err);
    }
    if (code != IFD_OK) {
        ifd_answer_fail(exchange, code, err);
    }
    return code == IFD_OK;
}

/* Whether an error is answered without reading the body: it is large, or the client asks first. */
static bool is_costly_body(const struct ifd_http_exchange *exchange)
{
    uint64_t size = 0;
    struct ifd_str length = exchange->header(exchange, "Content-Length");
    if (exchange->header(exchange, "Expect").data) {
        return true;
    }
    if (!length.data) {
        return exchange->header(exchange, "Transfer-Encoding").data != NULL;
    }
    return !ifd_str_u64(length, &size) || size > IFD_BODY_SMALL_BYTES;
}

static bool has_body(const struct ifd_http_exchange *exchange)
{
    struct ifd_str length = exchange->header(exchange, "Content-Length");
    return (length.data && !ifd_str_equal(length, "0")) ||
           exchange->header(exchange, "Transfer-Encoding").data;
}

/* Offset of the first binary tensor of a request, 0 if unknown. */
static size_t tensor_offset(const struct ifd_http_call *call, size_t cap_bytes)
{
    uint64_t offset = 0;
    bool is_known = call->json_length.data && ifd_str_u64(call->json_length, &offset) &&
                    offset <= cap_bytes && !ifd_coding_is_compressed(call->coding);
    return is_known ? (size_t)offset : 0;
}

/* Whether the token is in a form, where recorders send it. */
static bool brings_key(const struct ifd_api *api, const struct ifd_http_call *call)
{
    const struct ifd_http_exchange *exchange = call->exchange;
    return api->options.has_vision_key && call->guard && !exchange->is_local_admin &&
           ifd_route_infers(call->route) && ifd_route_is_vision(call->route) &&
           !exchange->header(exchange, "Authorization").data;
}

/* The body is there: checks its key, and then what waited for that. False: the answer is made. */
static bool check_key(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    struct ifd_str authorization = {0};
    enum ifd_code code = ifd_http_read_body(call, &err);
    if (code == IFD_OK) {
        code = ifd_vision_key(call, &authorization, &err);
    }
    if (code != IFD_OK) {
        ifd_answer_fail(call->exchange, code, &err);
        return false;
    }
    return check_access(call, authorization, false) && check_head(call, IFD_OK, 0, &err);
}

void ifd_api_open(struct ifd_api *api, struct ifd_http_exchange *exchange,
                  struct ifd_http_body_plan *ret_plan)
{
    *ret_plan = (struct ifd_http_body_plan){.cap_bytes = IFD_BODY_SMALL_BYTES};
    ifd_http_response_begin(&exchange->response, 0);
    exchange->api = NULL;
    if (ifd_cors_answer(&api->options.cors, exchange)) {
        exchange->response.close_connection = has_body(exchange);
        ret_plan->answered = true;
        return;
    }
    struct ifd_http_call *call = ifd_arena_take(exchange->arena, sizeof(*call));
    if (!call) {
        ifd_answer_fail(exchange, IFD_NOMEM, NULL);
        exchange->response.close_connection = has_body(exchange);
        ret_plan->answered = true;
        return;
    }
    exchange->api = call;
    call->exchange = exchange;
    call->guard = api->options.guard;
    call->max_input_bytes = api->options.max_input_bytes;
    call->has_console = api->options.has_console;
    call->may_control = api->options.admin_on_http || exchange->is_local_admin;
    call->vision_detection = api->options.vision_detection;
    call->vision_face = api->options.vision_face;
    call->core.all = &api->calls;
    call->core.arena = exchange->arena;
    call->core.received_ns = exchange->received_ns;
    call->coding = exchange->header(exchange, "Content-Encoding");
    call->json_length = exchange->header(exchange, "Inference-Header-Content-Length");
    struct ifd_route_match match;
    struct ifd_err err = {0};
    enum ifd_code code = ifd_route_find(ifd_routes, ifd_route_count, exchange->method,
                                        exchange->path, exchange->arena, &match, &err);
    call->route = match.route;
    call->core.model = match.model;
    call->core.version = match.version;
    if (code == IFD_OK && ifd_route_infers(call->route) && ifd_route_is_vision(call->route)) {
        code = ifd_vision_choose(call, &err);
    }
    call->awaits_key = code == IFD_OK && brings_key(api, call);
    const struct ifd_str authorization = exchange->header(exchange, "Authorization");
    if (!call->awaits_key && !check_access(call, authorization, api->options.admin_on_http)) {
        exchange->response.close_connection = is_costly_body(exchange);
        ret_plan->answered = true;
        return;
    }
    if (!call->awaits_key && !check_head(call, code, match.allowed, &err)) {
        bool is_costly = is_costly_body(exchange);
        call->is_refused = true;
        exchange->response.close_connection = is_costly;
        ret_plan->answered = is_costly || !has_body(exchange);
        return;
    }
    ret_plan->cap_bytes = ifd_http_body_cap(call);
    ret_plan->align_at = tensor_offset(call, ret_plan->cap_bytes);
}

void ifd_api_coming(struct ifd_api *api, struct ifd_http_exchange *exchange)
{
    const struct ifd_http_call *call = exchange->api;
    (void)api;
    if (call) {
        ifd_call_coming(&call->core);
    }
}

void ifd_api_handle(struct ifd_api *api, struct ifd_http_exchange *exchange)
{
    struct ifd_http_call *call = exchange->api;
    struct ifd_err err = {0};
    (void)api;
    call->core.end.handled_ns = ifd_monotonic_ns();
    if (call->is_refused || (call->awaits_key && !check_key(call))) {
        exchange->respond(exchange);
        return;
    }
    /* an inference reads its body itself, maybe beside the loop */
    enum ifd_code code = ifd_route_infers(call->route) ? IFD_OK : ifd_http_read_body(call, &err);
    if (code != IFD_OK) {
        ifd_http_fail(call, code, &err);
        return;
    }
    call->route->handler(call);
}

bool ifd_api_abandon(struct ifd_api *api, struct ifd_http_exchange *exchange)
{
    (void)api;
    struct ifd_http_call *call = exchange->api;
    if (!call) {
        return true;
    }
    call->core.is_abandoned = true;
    return call->infer ? ifd_infer_abandon(&call->infer->core) : !call->core.is_waiting;
}

void ifd_api_close(struct ifd_api *api, struct ifd_http_exchange *exchange)
{
    struct ifd_http_call *call = exchange->api;
    (void)api;
    if (!call) {
        return;
    }
    if (call->infer) {
        ifd_infer_close(&call->infer->core);
    }
    call->core.end.outcome = exchange->outcome;
    call->core.end.received_ns = exchange->received_ns;
    call->core.end.ended_ns = exchange->ended_ns;
    ifd_call_close(&call->core);
    exchange->api = NULL;
}

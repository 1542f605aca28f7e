/* The life of an exchange: open, handle, abandon, close. */
#include "api/http/api_impl.h"

#include "api/http/encoding.h"
#include "api/core/errors.h"
#include "engine/base/clock.h"
#include "engine/base/str.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_MAX_INPUT_BYTES ((size_t)64 << 20)

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

static size_t body_cap(const struct ifd_api *api, enum ifd_route_body body)
{
    switch (body) {
    case IFD_BODY_NONE:
    case IFD_BODY_SMALL:
        return IFD_BODY_SMALL_BYTES; /* clients may send a small body where none is wanted */
    case IFD_BODY_INPUT:
        break;
    }
    return api->options.max_input_bytes;
}

static void answer_wrong_method(struct ifd_http_exchange *exchange, uint32_t allowed)
{
    static const char *const lists[] = {"GET, HEAD", "POST", "GET, HEAD, POST"};
    bool has_get = (allowed & IFD_BIT(IFD_HTTP_GET)) != 0;
    bool has_post = (allowed & IFD_BIT(IFD_HTTP_POST)) != 0;
    ifd_answer_error(exchange, 405, ifd_str("Method Not Allowed"));
    ifd_answer_header(&exchange->response, "Allow", lists[has_get && has_post ? 2 : has_post]);
}

static void begin_inference(struct ifd_call *call)
{
    call->is_inference = true;
    call->api->inferences++;
    if (ifd_call_ops(call)->begun) {
        ifd_call_ops(call)->begun(ifd_call_service(call), call->ref);
    }
}

static void end_inference(struct ifd_call *call)
{
    const struct ifd_http_exchange *exchange = call->exchange;
    call->api->inferences--;
    if (ifd_call_ops(call)->ended) {
        call->end.outcome = exchange->outcome;
        call->end.received_ns = exchange->received_ns;
        call->end.ended_ns = exchange->ended_ns;
        ifd_call_ops(call)->ended(ifd_call_service(call), call->ref, &call->end);
    }
}

/* Default deny: what is no route is for those with a token, and told to nobody else. Not OK: the answer is made. */
static bool check_access(const struct ifd_call *call)
{
    struct ifd_http_exchange *exchange = call->exchange;
    const struct ifd_api_options *options = &call->api->options;
    const struct ifd_route *route = call->match.route;
    const enum ifd_access_class access = route ? route->access : IFD_ACCESS_KNOWN;
    if (!ifd_guard_admits(options->guard, exchange, access, call->match.model)) {
        return false;
    }
    if (access == IFD_ACCESS_ADMIN && !exchange->is_local_admin && !options->admin_on_http) {
        ifd_answer_error(exchange, 403,
                         ifd_str("control of this server is closed here: use the admin socket, or "
                                 "start the server with --admin-on-http"));
        return false;
    }
    return true;
}

/* Everything else that the headers alone decide. code: of finding the route. Not OK: the answer is made. */
static bool check_head(struct ifd_call *call, enum ifd_code code, struct ifd_err *err)
{
    struct ifd_http_exchange *exchange = call->exchange;
    if (code == IFD_NOT_FOUND && call->match.allowed) {
        answer_wrong_method(exchange, call->match.allowed);
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
    if (code == IFD_OK && call->match.route->handler == ifd_handle_infer) {
        code = ifd_call_acquire(call, &call->ref, err);
        if (code == IFD_OK) {
            begin_inference(call);
        }
    }
    if (code != IFD_OK) {
        ifd_answer_fail(exchange, code, err);
    }
    return code == IFD_OK;
}

/* Whether the body is not worth reading before an error is answered: it is large, or the client asks first. */
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

/* Where the first binary tensor of a request begins, 0 if that is unknown. */
static size_t tensor_offset(const struct ifd_call *call, size_t cap_bytes)
{
    uint64_t offset = 0;
    bool is_known = call->json_length.data && ifd_str_u64(call->json_length, &offset) &&
                    offset <= cap_bytes && !ifd_coding_is_compressed(call->coding);
    return is_known ? (size_t)offset : 0;
}

void ifd_api_open(struct ifd_api *api, struct ifd_http_exchange *exchange,
                  struct ifd_http_body_plan *ret_plan)
{
    *ret_plan = (struct ifd_http_body_plan){.cap_bytes = IFD_BODY_SMALL_BYTES};
    ifd_http_response_begin(&exchange->response, 0);
    exchange->api = NULL;
    struct ifd_call *call = ifd_arena_take(exchange->arena, sizeof(*call));
    if (!call) {
        ifd_answer_fail(exchange, IFD_NOMEM, NULL);
        exchange->response.close_connection = has_body(exchange);
        ret_plan->answered = true;
        return;
    }
    exchange->api = call;
    call->api = api;
    call->exchange = exchange;
    call->coding = exchange->header(exchange, "Content-Encoding");
    call->json_length = exchange->header(exchange, "Inference-Header-Content-Length");
    struct ifd_err err = {0};
    enum ifd_code code =
        ifd_route_find(exchange->method, exchange->path, exchange->arena, &call->match, &err);
    if (!check_access(call)) {
        exchange->response.close_connection = is_costly_body(exchange);
        ret_plan->answered = true;
        return;
    }
    if (!check_head(call, code, &err)) {
        bool is_costly = is_costly_body(exchange);
        call->is_refused = true;
        exchange->response.close_connection = is_costly;
        ret_plan->answered = is_costly || !has_body(exchange);
        return;
    }
    ret_plan->cap_bytes = body_cap(api, call->match.route->body);
    ret_plan->align_at = tensor_offset(call, ret_plan->cap_bytes);
}

void ifd_api_coming(struct ifd_api *api, struct ifd_http_exchange *exchange)
{
    const struct ifd_call *call = exchange->api;
    (void)api;
    if (call && call->ref && ifd_call_ops(call)->coming) {
        ifd_call_ops(call)->coming(ifd_call_service(call), call->ref);
    }
}

enum ifd_code ifd_call_read_body(struct ifd_call *call, struct ifd_err *err)
{
    struct ifd_http_exchange *exchange = call->exchange;
    struct ifd_bytes raw = {.data = exchange->body, .size = exchange->body_size};
    return ifd_decompress(call->coding, raw, body_cap(call->api, call->match.route->body),
                          call->json_length, exchange->arena, &call->body, err);
}

void ifd_api_handle(struct ifd_api *api, struct ifd_http_exchange *exchange)
{
    struct ifd_call *call = exchange->api;
    struct ifd_err err = {0};
    (void)api;
    call->end.handled_ns = ifd_monotonic_ns();
    if (call->is_refused) {
        exchange->respond(exchange);
        return;
    }
    enum ifd_code code =
        call->match.route->handler == ifd_handle_infer ? IFD_OK : ifd_call_read_body(call, &err);
    if (code != IFD_OK) {
        ifd_call_fail(call, code, &err);
        return;
    }
    call->match.route->handler(call);
}

bool ifd_api_abandon(struct ifd_api *api, struct ifd_http_exchange *exchange)
{
    (void)api;
    struct ifd_call *call = exchange->api;
    if (!call) {
        return true;
    }
    call->is_abandoned = true;
    if (call->infer) {
        return ifd_infer_abandon(call);
    }
    return !call->is_waiting;
}

void ifd_api_close(struct ifd_api *api, struct ifd_http_exchange *exchange)
{
    struct ifd_call *call = exchange->api;
    if (!call) {
        return;
    }
    if (call->infer) {
        ifd_infer_close(call);
    }
    if (call->is_inference) {
        end_inference(call);
    }
    if (call->ref) {
        api->options.ops->release(api->options.service, call->ref);
    }
    exchange->api = NULL;
}

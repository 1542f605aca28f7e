/* Answers: errors, JSON, empty ones. */
#include "api/http/api_impl.h"
#include "api/core/errors.h"
#include "engine/base/str.h"

static const char out_of_memory[] = "{\"error\":\"out of memory\"}";

static void start(struct ifd_http_response *response, int status)
{
    const bool close_connection = response->close_connection;
    ifd_http_response_begin(response, status);
    response->close_connection = close_connection;
}

void ifd_answer_header(struct ifd_http_response *response, const char *name, const char *value)
{
    if (response->header_count < IFD_HTTP_HEADERS_MAX) {
        response->header[response->header_count++] =
            (struct ifd_http_header){.name = name, .value = value};
    }
}

void ifd_answer_error(struct ifd_http_exchange *exchange, int status, struct ifd_str text)
{
    struct ifd_http_response *response = &exchange->response;
    struct ifd_json_out out;
    start(response, status);
    ifd_answer_header(response, "Content-Type", "application/json");
    ifd_json_out_init(&out, exchange->arena);
    ifd_json_begin(&out, '{');
    ifd_json_key(&out, "error");
    ifd_json_put_str(&out, text);
    ifd_json_end(&out, '}');
    if (!ifd_json_out_finish(&out, response)) {
        response->piece[0] =
            (struct ifd_http_piece){.data = out_of_memory, .size = sizeof(out_of_memory) - 1};
        response->piece_count = 1;
    }
}

void ifd_answer_fail(struct ifd_http_exchange *exchange, enum ifd_code code,
                     const struct ifd_err *err)
{
    const char *text = err && err->text[0] ? err->text : ifd_code_name(code);
    ifd_answer_error(exchange, ifd_http_status(code), ifd_str(text));
    exchange->response.code = code;
    if (ifd_http_may_retry(code)) {
        ifd_answer_header(&exchange->response, "Retry-After", "1");
    }
}

static void respond(struct ifd_call *call)
{
    call->is_waiting = false;
    call->exchange->respond(call->exchange);
}

void ifd_call_fail(struct ifd_call *call, enum ifd_code code, const struct ifd_err *err)
{
    ifd_answer_fail(call->exchange, code, err);
    respond(call);
}

void ifd_call_json(struct ifd_call *call, int status, struct ifd_json_out *out)
{
    struct ifd_http_response *response = &call->exchange->response;
    start(response, status);
    ifd_answer_header(response, "Content-Type", "application/json");
    if (!ifd_json_out_finish(out, response)) {
        ifd_answer_fail(call->exchange, IFD_NOMEM, NULL);
    }
    respond(call);
}

void ifd_call_empty(struct ifd_call *call)
{
    start(&call->exchange->response, 200);
    ifd_answer_header(&call->exchange->response, "Content-Type", "application/json");
    respond(call);
}

enum ifd_code ifd_call_acquire(const struct ifd_call *call, struct ifd_model_ref **ret_ref,
                               struct ifd_err *err)
{
    return ifd_call_ops(call)->acquire(ifd_call_service(call), call->match.model,
                                       call->match.version, ret_ref, err);
}

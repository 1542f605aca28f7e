/* A call's body, and the answers that are sent at once. */
#include "api/http/call.h"

#include "api/http/encoding.h"

size_t ifd_http_body_cap(const struct ifd_http_call *call)
{
    switch (call->route->body) {
    case IFD_BODY_NONE:
    case IFD_BODY_SMALL:
        return IFD_BODY_SMALL_BYTES; /* clients may send a small body where none is wanted */
    case IFD_BODY_INPUT:
        break;
    }
    return call->max_input_bytes;
}

enum ifd_code ifd_http_read_body(struct ifd_http_call *call, struct ifd_err *err)
{
    struct ifd_http_exchange *exchange = call->exchange;
    struct ifd_bytes raw = {.data = exchange->body, .size = exchange->body_size};
    return ifd_decompress(call->coding, raw, ifd_http_body_cap(call), call->json_length,
                          exchange->arena, &call->body, err);
}

void ifd_http_respond(struct ifd_http_call *call)
{
    call->core.is_waiting = false;
    call->exchange->respond(call->exchange);
}

void ifd_http_fail(struct ifd_http_call *call, enum ifd_code code, const struct ifd_err *err)
{
    ifd_answer_fail(call->exchange, code, err);
    ifd_http_respond(call);
}

void ifd_http_json(struct ifd_http_call *call, int status, struct ifd_json_out *out)
{
    struct ifd_http_response *response = &call->exchange->response;
    ifd_answer_begin(response, status);
    ifd_answer_header(response, "Content-Type", "application/json");
    if (!ifd_answer_add(response, out)) {
        ifd_answer_fail(call->exchange, IFD_NOMEM, NULL);
    }
    ifd_http_respond(call);
}

void ifd_http_empty(struct ifd_http_call *call)
{
    ifd_answer_begin(&call->exchange->response, 200);
    ifd_answer_header(&call->exchange->response, "Content-Type", "application/json");
    ifd_http_respond(call);
}

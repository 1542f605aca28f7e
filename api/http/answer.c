/* Answers: errors, JSON, empty ones. */
#include "api/http/answer.h"

#include "api/core/errors.h"
#include "api/http/status.h"
#include "engine/base/str.h"

static const char out_of_memory[] = "{\"error\":\"out of memory\"}";

void ifd_answer_begin(struct ifd_http_response *response, int status)
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

bool ifd_answer_add(struct ifd_http_response *response, struct ifd_json_out *out)
{
    if (!ifd_json_out_finish(out) ||
        out->chunk_count > IFD_HTTP_PIECES_MAX - response->piece_count) {
        return false;
    }
    for (uint32_t i = 0; i < out->chunk_count; i++) {
        response->piece[response->piece_count++] =
            (struct ifd_http_piece){.data = out->chunk[i].data, .size = out->chunk[i].size};
    }
    return true;
}

/* Recorders look for it first. */
static bool tells_success(const struct ifd_http_exchange *exchange)
{
    return ifd_str_starts(exchange->path, "/v1/vision/");
}

void ifd_answer_error(struct ifd_http_exchange *exchange, int status, struct ifd_str text)
{
    struct ifd_http_response *response = &exchange->response;
    struct ifd_json_out out;
    ifd_answer_begin(response, status);
    ifd_answer_header(response, "Content-Type", "application/json");
    ifd_json_out_init(&out, exchange->arena);
    ifd_json_begin(&out, '{');
    if (tells_success(exchange)) {
        ifd_json_member_bool(&out, "success", false);
    }
    ifd_json_key(&out, "error");
    ifd_json_put_str(&out, text);
    ifd_json_end(&out, '}');
    if (!ifd_answer_add(response, &out)) {
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
    if (ifd_code_may_retry(code)) {
        ifd_answer_header(&exchange->response, "Retry-After", "1");
    }
}

/* Compares origins, answers preflights. */
#include "api/http/cors.h"

#include <string.h>

#include "api/http/answer.h"
#include "engine/base/str.h"

/* Seconds for which a browser need not ask again: what Chromium keeps at most. */
#define MAX_AGE "7200"

bool ifd_cors_is_origin(const char *text)
{
    if (strcmp(text, "*") == 0) {
        return true;
    }
    const char *host = strstr(text, "://");
    return host && host > text && host[3] != '\0' && !strpbrk(host + 3, "/?#@* \t") &&
           strcspn(text, "/?#@* \t") == (size_t)(host - text) + 1;
}

/* What the page is told that it is; NULL: no page that may ask. */
static const char *find(const struct ifd_cors *cors, const struct ifd_http_exchange *exchange)
{
    const struct ifd_str origin =
        cors->count > 0 ? exchange->header(exchange, "Origin") : (struct ifd_str){0};
    for (uint32_t i = 0; i < cors->count && origin.data; i++) {
        if (strcmp(cors->origin[i], "*") == 0 || ifd_str_equal(origin, cors->origin[i])) {
            return cors->origin[i];
        }
    }
    return NULL;
}

uint32_t ifd_cors_headers(const struct ifd_cors *cors, const struct ifd_http_exchange *exchange,
                          struct ifd_http_header *ret_header)
{
    const char *origin = find(cors, exchange);
    uint32_t count = 0;
    if (cors->count > 0 && !(origin && strcmp(origin, "*") == 0)) {
        /* a cache must not give one page's answer to another */
        ret_header[count++] = (struct ifd_http_header){"Vary", "Origin"};
    }
    if (origin) {
        ret_header[count++] = (struct ifd_http_header){"Access-Control-Allow-Origin", origin};
        ret_header[count++] = (struct ifd_http_header){
            "Access-Control-Expose-Headers",
            "Inference-Header-Content-Length, Retry-After, WWW-Authenticate, Allow"};
    }
    return count;
}

bool ifd_cors_answer(const struct ifd_cors *cors, struct ifd_http_exchange *exchange)
{
    struct ifd_http_response *response = &exchange->response;
    if (exchange->method != IFD_HTTP_OPTIONS || !find(cors, exchange) ||
        !exchange->header(exchange, "Access-Control-Request-Method").data) {
        return false;
    }
    ifd_answer_begin(response, 204);
    ifd_answer_header(response, "Access-Control-Allow-Methods", "GET, HEAD, POST");
    ifd_answer_header(response, "Access-Control-Allow-Headers",
                      "Authorization, Content-Type, Content-Encoding, "
                      "Inference-Header-Content-Length");
    ifd_answer_header(response, "Access-Control-Max-Age", MAX_AGE);
    if (exchange->header(exchange, "Access-Control-Request-Private-Network").data) {
        ifd_answer_header(response, "Access-Control-Allow-Private-Network", "true");
    }
    return true;
}

/** Fills answers: headers, errors, JSON. Sends nothing. Thread: any. */
#ifndef INFERD_API_HTTP_ANSWER_H
#define INFERD_API_HTTP_ANSWER_H

#include "api/http/http.h"
#include "api/json/json_write.h"

/** name and value: static or in the arena. More than IFD_HTTP_HEADERS_MAX are dropped (a
 *  programming error). */
void ifd_answer_header(struct ifd_http_response *response, const char *name, const char *value);
/** Empties the answer, but keeps close_connection. */
void ifd_answer_begin(struct ifd_http_response *response, int status);
/** Adds the written JSON to the body. False if the writer failed or the answer has no room for the
 *  pieces. */
bool ifd_answer_add(struct ifd_http_response *response, struct ifd_json_out *out) IFD_NODISCARD;

void ifd_answer_error(struct ifd_http_exchange *exchange, int status, struct ifd_str text);
/** Status and body of a code, Retry-After where it helps. */
void ifd_answer_fail(struct ifd_http_exchange *exchange, enum ifd_code code,
                     const struct ifd_err *err);

#endif

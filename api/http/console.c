/* GET /console: one page that shows the server and asks it as any client does. It holds no data, so
 * it needs no token. GET / leads to it. */
#include "api/http/console.h"

#include "api/http/handlers.h"

/* Answers 404 where there is no console. */
static bool has_console(struct ifd_http_call *call)
{
    struct ifd_err err = {0};
    if (!call->has_console) {
        (void)ifd_fail(&err, IFD_NOT_FOUND, "this server runs with --console=false");
        ifd_http_fail(call, IFD_NOT_FOUND, &err);
    }
    return call->has_console;
}

void ifd_handle_root(struct ifd_http_call *call)
{
    if (has_console(call)) {
        ifd_http_response_begin(&call->exchange->response, 302);
        ifd_answer_header(&call->exchange->response, "Location", "/console");
        ifd_http_respond(call);
    }
}

void ifd_handle_console(struct ifd_http_call *call)
{
    struct ifd_http_response *response = &call->exchange->response;
    if (!has_console(call)) {
        return;
    }
    ifd_http_response_begin(response, 200);
    ifd_answer_header(response, "Content-Type", "text/html; charset=utf-8");
    ifd_answer_header(response, "Content-Security-Policy", ifd_console_policy);
    ifd_answer_header(response, "X-Content-Type-Options", "nosniff");
    ifd_answer_header(response, "X-Frame-Options", "DENY");
    ifd_answer_header(response, "Referrer-Policy", "no-referrer");
    ifd_answer_header(response, "Cross-Origin-Resource-Policy", "same-origin");
    ifd_answer_header(response, "Cache-Control", "no-cache");
    response->piece[response->piece_count++] =
        (struct ifd_http_piece){.data = ifd_console_page.data, .size = ifd_console_page.size};
    ifd_http_respond(call);
}

/** A tiny HTTP server for tests of clients: it gives the answers that it was told, in order, and
 *  keeps the requests.
 *
 *  Loopback only, a port of the kernel's choice, one connection at a time, kept alive. When the
 *  answers are used up it closes the connection. */
#ifndef INFERD_TESTS_CLIENTS_FAKE_HTTP_H
#define INFERD_TESTS_CLIENTS_FAKE_HTTP_H

#include <stddef.h>

struct fake_http;

/** A request that arrived. Pointers are valid until fake_http_stop. */
struct fake_request {
    const char *head; /**< request line and headers, terminated */
    const char *body; /**< body_bytes, terminated */
    size_t body_bytes;
};

struct fake_http *fake_http_start(void);
/** The same on a UNIX socket at path, which must not exist yet; the URL is "unix:" and the path. */
struct fake_http *fake_http_start_unix(const char *path);
/** Call after the client has closed its connection. */
void fake_http_stop(struct fake_http *server);

/** "http://127.0.0.1:PORT" or "unix:PATH" */
const char *fake_http_url(const struct fake_http *server);

/** Adds an answer; headers is "" or lines that each end in "\r\n". Content-Length is added. */
void fake_http_answer(struct fake_http *server, int status, const char *headers, const void *body,
                      size_t body_bytes);
void fake_http_answer_text(struct fake_http *server, int status, const char *body);

/** The request that got the index-th answer; ends the test if there was none. */
struct fake_request fake_http_request(struct fake_http *server, size_t index);
size_t fake_http_connection_count(struct fake_http *server);

#endif

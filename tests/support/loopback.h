/** Drives ifd_api_* as a transport would, without sockets.
 *
 *      loopback_init(&loop, ifd_alloc_system());
 *      loopback_ask(&loop, "POST", "/v2/models/simple/infer", headers, body, size, &answer);
 *      … answer.status, answer.body …
 *      loopback_release(&answer);
 *      loopback_finish(&loop);
 *
 *  Headers are {"Name", "value", …, NULL}; NULL for none. A body lies in its own allocation of
 *  exactly its size and the pad, aligned as the API asked, so that a sanitizer sees every overrun.
 *  Thread: one at a time. */
#ifndef INFERD_TESTS_SUPPORT_LOOPBACK_H
#define INFERD_TESTS_SUPPORT_LOOPBACK_H

#include "api/http/api.h"
#include "engine/base/buf.h"
#include "tests/support/fake_service.h"

struct loopback {
    const struct ifd_alloc *alloc; /* of requests, outputs and the API */
    struct ifd_service fake;
    struct ifd_api *api;
    bool is_local_admin;
};

struct loopback_answer {
    int status;
    bool is_early;          /* before the body was read */
    bool close_connection;  /* the API does not want the connection again */
    struct ifd_buf headers; /* "name: value\n" lines, ended by NUL */
    struct ifd_buf body;    /* ended by a NUL that size does not count */
};

/** An exchange that a test leads step by step. */
struct loopback_exchange {
    struct loopback *loop;
    struct ifd_http_exchange http;
    struct ifd_arena arena;
    const char *const *headers;
    uint8_t *memory;
    size_t memory_bytes;
    bool is_early, is_answered, is_handled;
};

/** admin_on_http, max_input_bytes 1 MiB. Requires success. */
void loopback_init(struct loopback *loop, const struct ifd_alloc *alloc);
/** The same with everything to choose; false if there is no memory. */
bool loopback_init_with(struct loopback *loop, const struct ifd_alloc *alloc,
                        const struct ifd_service_ops *ops, size_t max_input_bytes,
                        bool admin_on_http);
void loopback_finish(struct loopback *loop);

/** One whole exchange; path may have a query. */
void loopback_ask(struct loopback *loop, const char *method, const char *path,
                  const char *const *headers, const void *body, size_t size,
                  struct loopback_answer *answer);
/** Without headers; post: body is text. */
void loopback_get(struct loopback *loop, const char *path, struct loopback_answer *answer);
void loopback_post(struct loopback *loop, const char *path, const char *body,
                   struct loopback_answer *answer);
void loopback_release(struct loopback_answer *answer);
/** The body as text. */
const char *loopback_text(const struct loopback_answer *answer);
/** Value of an answer's header, NULL if it has none. Static buffer. */
const char *loopback_header(const struct loopback_answer *answer, const char *name);

/** Opens and handles; the service's jobs wait. */
void loopback_begin(struct loopback *loop, const char *method, const char *path,
                    const char *const *headers, const void *body, size_t size,
                    struct loopback_exchange *exchange);
/** Closes; answer may be NULL. */
void loopback_end(struct loopback_exchange *exchange, struct loopback_answer *answer);

#endif

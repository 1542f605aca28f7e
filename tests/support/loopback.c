/* A transport in memory. */
#include "tests/support/loopback.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define ANSWER_CAP_BYTES ((size_t)256 << 20)

bool loopback_init_with(struct loopback *loop, const struct ifd_alloc *alloc,
                        const struct ifd_service_ops *ops, size_t max_input_bytes,
                        bool admin_on_http)
{
    struct ifd_err err = {0};
    *loop = (struct loopback){.alloc = alloc};
    fake_service_init(&loop->fake, alloc);
    const struct ifd_api_options options = {.alloc = alloc,
                                            .ops = ops,
                                            .service = &loop->fake,
                                            .max_input_bytes = max_input_bytes,
                                            .has_console = true,
                                            .admin_on_http = admin_on_http};
    return ifd_api_create(&options, &loop->api, &err) == IFD_OK;
}

void loopback_init(struct loopback *loop, const struct ifd_alloc *alloc)
{
    REQUIRE(loopback_init_with(loop, alloc, fake_service_ops(), (size_t)1 << 20, true));
}

void loopback_finish(struct loopback *loop)
{
    fake_service_finish(&loop->fake);
    ifd_api_destroy(loop->api);
}

static struct ifd_str find_header(const struct ifd_http_exchange *http, const char *name)
{
    const struct loopback_exchange *exchange = http->transport;
    for (const char *const *at = exchange->headers; at && at[0]; at += 2) {
        if (ifd_str_equal_nocase(ifd_str(at[0]), name)) {
            return ifd_str(at[1]);
        }
    }
    return (struct ifd_str){0};
}

static void respond(struct ifd_http_exchange *http)
{
    struct loopback_exchange *exchange = http->transport;
    EXPECT(!exchange->is_answered);
    exchange->is_answered = true;
}

static enum ifd_http_method method_of(const char *name)
{
    return strcmp(name, "GET") == 0       ? IFD_HTTP_GET
           : strcmp(name, "HEAD") == 0    ? IFD_HTTP_HEAD
           : strcmp(name, "POST") == 0    ? IFD_HTTP_POST
           : strcmp(name, "OPTIONS") == 0 ? IFD_HTTP_OPTIONS
                                          : IFD_HTTP_OTHER;
}

/* The body where the API wants it. False without memory. */
static bool receive(struct loopback_exchange *exchange, const void *body, size_t size,
                    size_t align_at)
{
    size_t lead = (IFD_TENSOR_ALIGN - align_at % IFD_TENSOR_ALIGN) % IFD_TENSOR_ALIGN;
    exchange->memory_bytes = lead + size;
    exchange->memory = ifd_acquire_tensor(exchange->loop->alloc, exchange->memory_bytes);
    if (!exchange->memory) {
        return false;
    }
    if (size > 0) {
        memcpy(exchange->memory + lead, body, size);
    }
    exchange->http.body = exchange->memory + lead;
    exchange->http.body_size = size;
    exchange->loop->fake.body = exchange->http.body;
    exchange->loop->fake.body_size = size;
    return true;
}

void loopback_begin(struct loopback *loop, const char *method, const char *path,
                    const char *const *headers, const void *body, size_t size,
                    struct loopback_exchange *exchange)
{
    struct ifd_http_body_plan plan = {0};
    struct ifd_str rest = ifd_str(path);
    struct ifd_str route = ifd_str_part(&rest, '?');
    *exchange = (struct loopback_exchange){.loop = loop, .headers = headers};
    ifd_arena_init(&exchange->arena, loop->alloc, 0);
    exchange->http = (struct ifd_http_exchange){.method = method_of(method),
                                                .path = route,
                                                .query = rest,
                                                .arena = &exchange->arena,
                                                .header = find_header,
                                                .respond = respond,
                                                .is_local_admin = loop->is_local_admin,
                                                .received_ns = 1,
                                                .transport = exchange};
    ifd_api_open(loop->api, &exchange->http, &plan);
    if (plan.answered) {
        exchange->is_early = exchange->is_answered = true;
    } else if (size > plan.cap_bytes) {
        ifd_api_error(&exchange->http, 413, "body too large");
        exchange->is_answered = true;
    } else if (!receive(exchange, body, size, plan.align_at)) {
        ifd_api_error(&exchange->http, 503, "no memory for the body");
        exchange->is_answered = true;
    } else {
        exchange->is_handled = true;
        ifd_api_handle(loop->api, &exchange->http);
    }
}

static void keep_answer(const struct loopback_exchange *exchange, struct loopback_answer *answer)
{
    const struct ifd_http_response *response = &exchange->http.response;
    *answer = (struct loopback_answer){.status = response->status,
                                       .is_early = exchange->is_early,
                                       .close_connection = response->close_connection};
    ifd_buf_init(&answer->headers, ifd_alloc_system(), ANSWER_CAP_BYTES);
    ifd_buf_init(&answer->body, ifd_alloc_system(), ANSWER_CAP_BYTES);
    for (uint32_t i = 0; i < response->header_count; i++) {
        ifd_buf_addf(&answer->headers, "%s: %s\n", response->header[i].name,
                     response->header[i].value);
    }
    ifd_buf_add(&answer->headers, "", 1);
    for (uint32_t i = 0; i < response->piece_count; i++) {
        if (response->piece[i].size > 0) {
            ifd_buf_add(&answer->body, response->piece[i].data, response->piece[i].size);
        }
    }
    ifd_buf_add(&answer->body, "", 1);
    answer->body.size--;
    REQUIRE_OK(ifd_buf_check(&answer->body, NULL), NULL);
}

void loopback_end(struct loopback_exchange *exchange, struct loopback_answer *answer)
{
    struct loopback *loop = exchange->loop;
    if (answer) {
        EXPECT(exchange->is_answered);
        keep_answer(exchange, answer);
    }
    ifd_api_close(loop->api, &exchange->http);
    loop->fake.body = NULL;
    if (exchange->memory) {
        ifd_release_tensor(loop->alloc, exchange->memory, exchange->memory_bytes);
    }
    ifd_arena_finish(&exchange->arena);
}

void loopback_ask(struct loopback *loop, const char *method, const char *path,
                  const char *const *headers, const void *body, size_t size,
                  struct loopback_answer *answer)
{
    struct loopback_exchange exchange;
    loopback_begin(loop, method, path, headers, body, size, &exchange);
    fake_service_run(&loop->fake);
    loopback_end(&exchange, answer);
}

void loopback_get(struct loopback *loop, const char *path, struct loopback_answer *answer)
{
    loopback_ask(loop, "GET", path, NULL, "", 0, answer);
}

void loopback_post(struct loopback *loop, const char *path, const char *body,
                   struct loopback_answer *answer)
{
    loopback_ask(loop, "POST", path, NULL, body, strlen(body), answer);
}

const char *loopback_text(const struct loopback_answer *answer)
{
    return (const char *)answer->body.data;
}

void loopback_release(struct loopback_answer *answer)
{
    ifd_buf_finish(&answer->headers);
    ifd_buf_finish(&answer->body);
}

const char *loopback_header(const struct loopback_answer *answer, const char *name)
{
    static char value[256];
    struct ifd_str rest = ifd_str((const char *)answer->headers.data);
    while (rest.data) {
        struct ifd_str line = ifd_str_part(&rest, '\n');
        struct ifd_str key = ifd_str_part(&line, ':');
        if (ifd_str_equal_nocase(key, name)) {
            line = ifd_str_trim(line);
            (void)snprintf(value, sizeof(value), "%.*s", (int)line.size, line.data);
            return value;
        }
    }
    return NULL;
}

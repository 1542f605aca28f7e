/* Requests in steady state allocate nothing: the memory of one serves the next. Counts allocations
 * of this program through its allocator, from the socket to the answer, and those of libraries,
 * above all libmicrohttpd. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define CLIENTS 4
#define WARM_UP 50
#define STEADY  200

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ARENAS 0
#elif defined(__has_feature)
#define HAS_ARENAS !__has_feature(address_sanitizer)
#else
#define HAS_ARENAS 1
#endif

/* Calls of malloc except by the test itself. Sanitizers replace malloc. */
static atomic_long system_requests;
static _Thread_local bool is_test;

#if defined(__GLIBC__) && !defined(IFD_SANITIZED)
#define EXPORTED __attribute__((visibility("default"))) /* or libraries would not call these */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *ptr, size_t size);

EXPORTED void *malloc(size_t size)
{
    system_requests += !is_test;
    return __libc_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
    system_requests += !is_test;
    return __libc_calloc(count, size);
}

EXPORTED void *realloc(void *ptr, size_t size)
{
    system_requests += !is_test;
    return __libc_realloc(ptr, size);
}
#endif

/* A binary tensor of count floats for "echo". */
static size_t binary_request(char *text, size_t size, size_t count)
{
    char json[256];
    (void)snprintf(json, sizeof(json),
                   "{\"inputs\":[{\"name\":\"IN\",\"shape\":[%zu],\"datatype\":\"FP32\","
                   "\"parameters\":{\"binary_data_size\":%zu}}],"
                   "\"parameters\":{\"binary_data_output\":true}}",
                   count, count * 4);
    int head = snprintf(text, size,
                        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n"
                        "Inference-Header-Content-Length: %zu\r\n\r\n%s",
                        strlen(json) + count * 4, strlen(json), json);
    memset(text + head, 0, count * 4);
    return (size_t)head + count * 4;
}

/* All clients send, then all read: several requests are open at a time. */
static void exchange(const int *client, const void *request, size_t size)
{
    for (int i = 0; i < CLIENTS; i++) {
        client_send(client[i], request, size);
    }
    for (int i = 0; i < CLIENTS; i++) {
        EXPECT_INT(client_read(client[i]).status, 200);
    }
}

/* The same request with a token, which a server without tokens ignores. */
static const char *with_token(const char *text)
{
    static char longer[2048];
    const char *rest = strstr(text, "Host: a\r\n");
    REQUIRE(rest != NULL);
    (void)snprintf(longer, sizeof(longer), "%.*sAuthorization: Bearer data-token\r\n%s",
                   (int)(rest - text), text, rest);
    return longer;
}

/* Opens as many requests at once as the steady phase can: first in the model's queue, then while
 * being received. */
static void open_all(const struct live *live, const int *client, const void *request, size_t size)
{
    const char *slow = with_token(client_infer_text("slow", 1));
    exchange(client, slow, strlen(slow));
    for (int i = 0; i < CLIENTS; i++) {
        client_send(client[i], request, size - 1);
    }
    /* a server that answers this has begun to read those */
    EXPECT_INT(client_get(live, "/v2/health/live").status, 200);
    for (int i = 0; i < CLIENTS; i++) {
        client_send(client[i], (const char *)request + size - 1, 1);
    }
    for (int i = 0; i < CLIENTS; i++) {
        EXPECT_INT(client_read(client[i]).status, 200);
    }
}

static void expect_no_allocation(const char *const *options, const void *request, size_t size)
{
    struct live live;
    struct fail_alloc fail;
    int client[CLIENTS];
    if (!HAS_ARENAS) {
        test_does_not_apply("with this sanitizer every item of an arena is an allocation");
    }
    fail_alloc_init(&fail, 0);
    live_start_in(&live, options, &fail.alloc);
    for (int i = 0; i < CLIENTS; i++) {
        client[i] = client_connect(&live);
        REQUIRE(client[i] >= 0);
    }
    open_all(&live, client, request, size);
    for (int i = 0; i < WARM_UP; i++) {
        exchange(client, request, size);
    }
    long before = fail.requests, system_before = system_requests;
    for (int i = 0; i < STEADY; i++) {
        exchange(client, request, size);
    }
    EXPECT_INT(fail.requests - before, 0);
    EXPECT_INT(system_requests - system_before, 0);
    for (int i = 0; i < CLIENTS; i++) {
        (void)close(client[i]);
    }
    live_stop(&live);
    fail_alloc_finish(&fail);
}

static const char *const by_workers[] = {"--inline-identity=false", NULL};

static void json_requests_allocate_nothing(void)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "%s", client_infer_text("echo", 3));
    expect_no_allocation(NULL, text, strlen(text));
}

static void json_requests_through_workers_allocate_nothing(void)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), "%s", client_infer_text("echo", 3));
    expect_no_allocation(by_workers, text, strlen(text));
}

static void requests_with_tokens_allocate_nothing(void)
{
    char text[2048], option[200];
    folder_begin();
    folder_put("tokens", "camera data sha256:"
                         "17413446c86d23ac699051a000aefb38232952d793ddb1f6256e451e4215a3e6"
                         " models=x,*\n");
    REQUIRE(chmod(folder_at("tokens"), 0600) == 0);
    (void)snprintf(option, sizeof(option), "--token-file=%s", folder_at("tokens"));
    (void)snprintf(text, sizeof(text), "%s", with_token(client_infer_text("echo", 3)));
    expect_no_allocation((const char *const[]){option, NULL}, text, strlen(text));
    EXPECT(unlink(folder_at("tokens")) == 0);
    folder_end();
}

static void binary_requests_allocate_nothing(void)
{
    static char text[4096];
    expect_no_allocation(NULL, text, binary_request(text, sizeof(text), 16));
}

static void binary_pictures_allocate_nothing(void)
{
    static char text[160 * 1024];
    expect_no_allocation(by_workers, text, binary_request(text, sizeof(text), 37632));
}

int main(int argc, char **argv)
{
    is_test = true;
    static const struct test_case cases[] = {
        T(json_requests_allocate_nothing),        T(json_requests_through_workers_allocate_nothing),
        T(requests_with_tokens_allocate_nothing), T(binary_requests_allocate_nothing),
        T(binary_pictures_allocate_nothing),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

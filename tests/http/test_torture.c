/* A running server whose allocations fail, each alone and then with all that follow it: whatever a
 * request meets, it has a refusal with words or at worst a closed connection, and the next request
 * is answered as ever. Loading: test_reload.c. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/builtin.h"
#include "tests/http/live.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#define ROUNDS_MAX 5000
#define VALUES     (32 * 32 * 3) /* of one sample of the digits model */
#define BATCH      8
#define EXPLICIT   "--model-control-mode=explicit", "--load-model=digits", "--admin-on-http"

/* of "data-token" */
#define TOKEN_LINE                                                                                 \
    "camera data sha256:17413446c86d23ac699051a000aefb38232952d793ddb1f6256e451e4215a3e6\n"

struct world {
    struct live live;
    struct fail_alloc fail;
    char repository[200];
};

struct request {
    char text[60000];
    size_t size;
};

static void begin(struct world *world)
{
    (void)snprintf(world->repository, sizeof(world->repository), "--model-repository=%s",
                   test_source("models"));
    const char *const options[] = {world->repository, EXPLICIT, NULL};
    fail_alloc_init(&world->fail, 0);
    live_start_in(&world->live, options, &world->fail.alloc);
}

static void end(struct world *world)
{
    fail_alloc_arm(&world->fail, 0, false);
    live_stop(&world->live);
    fail_alloc_finish(&world->fail);
}

static void write_request(struct request *request, const char *path, const char *type,
                          const void *body, size_t size)
{
    const int head = snprintf(request->text, sizeof(request->text),
                              "POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\n"
                              "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                              path, type, size);
    REQUIRE(head > 0 && (size_t)head + size <= sizeof(request->text));
    memcpy(request->text + head, body, size);
    request->size = (size_t)head + size;
}

static struct answer ask(const struct world *world, const struct request *request)
{
    const int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    client_send(fd, request->text, request->size);
    const struct answer answer = client_read(fd);
    (void)close(fd);
    return answer;
}

static void expect_good(const struct world *world, const struct request *request, const char *text)
{
    const struct answer answer = ask(world, request);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(answer.body, text);
}

/* The k-th allocation fails, k = 1, 2, … to the first round in which none did. text: what a good
 * answer has. Returns how many answers were refusals. */
static uint32_t torture(struct world *world, const struct request *request, const char *text)
{
    uint32_t refused = 0;
    for (int goes_on = 0; goes_on <= 1; goes_on++) {
        long k = 1;
        for (; k < ROUNDS_MAX; k++) {
            fail_alloc_arm(&world->fail, k, goes_on != 0);
            const struct answer answer = ask(world, request);
            const bool failed = atomic_load(&world->fail.failed);
            fail_alloc_arm(&world->fail, 0, false);
            if (answer.status == 200) {
                EXPECT_HAS(answer.body, text);
            } else if (answer.status != 0) { /* 0: no memory even for the connection */
                EXPECT(answer.status >= 400);
                EXPECT_HAS(answer.body, "\"error\":\"");
                refused++;
            }
            expect_good(world, request, text);
            if (!failed) {
                EXPECT_INT(answer.status, 200);
                break;
            }
        }
        EXPECT(k < ROUNDS_MAX);
    }
    return refused;
}

static void picture_survives_every_failed_allocation(void)
{
    static struct world world;
    static struct request request;
    static uint8_t picture[16384];
    FILE *in = fopen(test_source("models/digits/examples/three.png"), "rb");
    REQUIRE(in != NULL);
    const size_t size = fread(picture, 1, sizeof(picture), in);
    (void)fclose(in);
    REQUIRE(size > 0 && size < sizeof(picture));
    write_request(&request, "/v2/models/digits/infer", "image/png", picture, size);
    begin(&world);
    EXPECT(torture(&world, &request, ":3") > 0);
    end(&world);
}

static void tensors_survive_every_failed_allocation(void)
{
    static struct world world;
    static struct request request;
    static char body[200 + 2 * VALUES * BATCH];
    int size = snprintf(body, sizeof(body),
                        "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"UINT8\",\"shape\":"
                        "[8,32,32,3],\"data\":[0");
    for (int i = 1; i < VALUES * BATCH; i++) {
        size += snprintf(body + size, 3, ",0");
    }
    size += snprintf(body + size, 5, "]}]}");
    write_request(&request, "/v2/models/digits/infer", "application/json", body, (size_t)size);
    begin(&world);
    (void)torture(&world, &request, "\"probability\""); /* warm, it needs no new memory */
    end(&world);
}

static void start_reports_every_failed_allocation(void)
{
    const char *repository = test_source("tests/data/repository");
    char tokens[160];
    folder_begin();
    folder_put("tokens", TOKEN_LINE);
    REQUIRE(chmod(folder_at("tokens"), 0600) == 0);
    (void)snprintf(tokens, sizeof(tokens), "--token-file=%s", folder_at("tokens"));
    char *argv[] = {(char *)(uintptr_t)repository, (char *)(uintptr_t) "--http-port=0",
                    (char *)(uintptr_t) "--metrics-port=0",
                    (char *)(uintptr_t) "--model-control-mode=explicit", tokens};
    for (int goes_on = 0; goes_on <= 1; goes_on++) {
        struct fail_alloc fail;
        uint32_t refused = 0;
        long k = 1;
        for (; k < ROUNDS_MAX; k++) {
            struct ifd_config config = {0};
            struct ifd_log log = {0};
            struct ifd_server *server = NULL;
            struct ifd_err err = {0};
            REQUIRE_OK(ifd_config_parse(5, argv, &config, &err), &err);
            struct ifd_server_options options = {.alloc = &fail.alloc,
                                                 .config = &config,
                                                 .argc = 5,
                                                 .argv = argv,
                                                 .log = &log,
                                                 .program_version = "0"};
            options.backends = ifd_backends_builtin(&options.backend_count);
            fail_alloc_init(&fail, k);
            atomic_store(&fail.goes_on, goes_on != 0);
            const enum ifd_code code = ifd_server_create(&options, &server, &err);
            const bool failed = atomic_load(&fail.failed);
            ifd_server_destroy(server);
            fail_alloc_finish(&fail);
            if (!failed) {
                EXPECT_CODE(code, IFD_OK, &err);
                break;
            }
            /* OK: it failed a thread that looks at the repository already */
            EXPECT(code == IFD_OK || code == IFD_NOMEM);
            refused += code == IFD_NOMEM;
        }
        EXPECT(refused > 10 && k < ROUNDS_MAX);
    }
    EXPECT(unlink(folder_at("tokens")) == 0);
    folder_end();
}

static atomic_long rereads; /* that are over, whatever came of them */

static void count_rereads(void *context, enum ifd_log_level level, const char *sentence,
                          const char *fields)
{
    (void)context;
    (void)level;
    (void)fields;
    atomic_fetch_add(&rereads, strncmp(sentence, "settings ", 9) == 0);
}

/* Tokens that could not be read anew are those from before, and nobody without one is let in
 * meanwhile. */
static void tokens_survive_every_failed_allocation(void)
{
    struct fail_alloc fail;
    struct live live;
    char option[160];
    long k = 1;
    folder_begin();
    folder_put("tokens", TOKEN_LINE);
    REQUIRE(chmod(folder_at("tokens"), 0600) == 0);
    (void)snprintf(option, sizeof(option), "--token-file=%s", folder_at("tokens"));
    fail_alloc_init(&fail, 0);
    live_start_as(&live, (const char *const[]){option, NULL},
                  &(struct live_options){.alloc = &fail.alloc, .log = count_rereads});
    for (; k < ROUNDS_MAX; k++) {
        fail_alloc_arm(&fail, k, false);
        ifd_server_reread(live.server);
        while (atomic_load(&rereads) < k) {
            (void)usleep(100);
        }
        const int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        client_send_text(fd, "GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        const int refused = client_read(fd).status;
        EXPECT(refused == 401 || refused == 503 || refused == 0);
        (void)close(fd);
        const int again = client_connect(&live);
        REQUIRE(again >= 0);
        client_send_text(again, "GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                                "Authorization: Bearer data-token\r\n\r\n");
        const int status = client_read(again).status;
        const bool failed = atomic_load(&fail.failed);
        EXPECT(status == 200 || status == 503 || status == 0);
        EXPECT(failed || (status == 200 && refused == 401));
        (void)close(again);
        if (!failed) {
            break;
        }
    }
    EXPECT(k > 3 && k < ROUNDS_MAX);
    fail_alloc_arm(&fail, 0, false);
    live_stop(&live);
    fail_alloc_finish(&fail);
    EXPECT(unlink(folder_at("tokens")) == 0);
    folder_end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(picture_survives_every_failed_allocation),
        T(tensors_survive_every_failed_allocation),
        T(start_reports_every_failed_allocation),
        T(tokens_survive_every_failed_allocation),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

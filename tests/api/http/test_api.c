/* The life of an exchange, health and server metadata, access, statuses that any route may have. */
#include "tests/support/loopback.h"
#include "tests/support/test.h"

#include "api/core/errors.h"
#include "api/http/status.h"

#include <string.h>

static struct loopback loop;
static struct loopback_answer answer;

static void begin(void)
{
    loopback_init(&loop, ifd_alloc_system());
}

static void end(void)
{
    loopback_release(&answer);
    loopback_finish(&loop);
}

static void health_says_what_it_means(void)
{
    begin();
    loopback_get(&loop, "/v2/health/live", &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(loopback_text(&answer), "{\"live\":true}");
    loopback_release(&answer);
    loopback_get(&loop, "/v2/health/ready?from=probe", &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(loopback_text(&answer), "{\"live\":true,\"ready\":true}");
    loopback_release(&answer);
    loop.fake.is_not_ready = true;
    loopback_get(&loop, "/v2/health/ready", &answer);
    EXPECT_INT(answer.status, 503);
    EXPECT_TEXT(loopback_text(&answer),
                "{\"live\":true,\"ready\":false,\"error\":\"Server exiting\"}");
    end();
}

static void server_metadata_is_the_services(void)
{
    begin();
    loopback_get(&loop, "/v2", &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(loopback_text(&answer),
                "{\"name\":\"fake\",\"version\":\"1.2.3\",\"extensions\":[\"classification\","
                "\"binary_tensor_data\"],\"may_load\":true}");
    EXPECT_TEXT(loopback_header(&answer, "Content-Type"), "application/json");
    end();
}

static void head_is_answered_like_get(void)
{
    begin();
    loopback_ask(&loop, "HEAD", "/v2/models/simple", NULL, "", 0, &answer);
    EXPECT_INT(answer.status, 200);
    EXPECT(answer.body.size > 100); /* the transport does not send it */
    end();
}

static void wrong_methods_are_refused_with_allow(void)
{
    begin();
    loopback_get(&loop, "/v2/models/simple/infer", &answer);
    EXPECT_INT(answer.status, 405);
    EXPECT_TEXT(loopback_header(&answer, "Allow"), "POST");
    EXPECT_TEXT(loopback_text(&answer), "{\"error\":\"Method Not Allowed\"}");
    loopback_release(&answer);
    loopback_ask(&loop, "DELETE", "/v2/health/live", NULL, "", 0, &answer);
    EXPECT_INT(answer.status, 405);
    EXPECT_TEXT(loopback_header(&answer, "Allow"), "GET, HEAD");
    end();
}

static void a_refusal_waits_for_a_small_body_and_not_for_a_large_one(void)
{
    static const char *const small[] = {"Content-Length", "2", NULL};
    static const char *const large[] = {"Content-Length", "2000000000", NULL};
    static const char *const asking[] = {"Content-Length", "2", "Expect", "100-continue", NULL};
    static const char *const chunked[] = {"Transfer-Encoding", "chunked", NULL};
    static const struct {
        const char *const *headers;
        bool is_early;
    } cases[] = {{small, false}, {large, true}, {asking, true}, {chunked, true}};
    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        loopback_ask(&loop, "POST", "/v2/models/nope/infer", cases[i].headers, "{}", 2, &answer);
        EXPECT_INT(answer.status, 404);
        EXPECT_INT(answer.is_early, cases[i].is_early);
        EXPECT_INT(answer.close_connection, cases[i].is_early);
        EXPECT_HAS(loopback_text(&answer), "Request for unknown model: 'nope' is not found");
        loopback_release(&answer);
    }
    loopback_get(&loop, "/v2/nothing", &answer);
    EXPECT(answer.is_early && !answer.close_connection);
    end();
}

static void bodies_are_capped_by_route(void)
{
    static char body[(1 << 20) + 1];
    memset(body, ' ', sizeof(body));
    begin();
    loopback_ask(&loop, "POST", "/v2/repository/index", NULL, body, 65537, &answer);
    EXPECT_INT(answer.status, 413);
    EXPECT_HAS(loopback_text(&answer), "{\"error\":");
    loopback_release(&answer);
    loopback_ask(&loop, "POST", "/v2/models/simple/infer", NULL, body, sizeof(body), &answer);
    EXPECT_INT(answer.status, 413);
    loopback_release(&answer);
    loopback_ask(&loop, "POST", "/v2/models/simple/infer", NULL, body, sizeof(body) - 1, &answer);
    EXPECT_INT(answer.status, 400);
    end();
}

static void unknown_codings_are_refused_with_what_is_known(void)
{
    static const char *const headers[] = {"content-encoding", "br", NULL};
    begin();
    loopback_ask(&loop, "POST", "/v2/models/simple/infer", headers, "x", 1, &answer);
    EXPECT_INT(answer.status, 415);
    EXPECT_TEXT(loopback_header(&answer, "Accept-Encoding"), "gzip, deflate");
    end();
}

static void control_is_closed_on_http_unless_opened(void)
{
    static const char *const paths[] = {"/v2/repository/models/classify/load",
                                        "/v2/repository/models/classify/unload", "/v2/logging",
                                        "/v2/trace/setting"};
    REQUIRE(loopback_init_with(&loop, ifd_alloc_system(), fake_service_ops(), 1 << 20, false));
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        loop.is_local_admin = false;
        loopback_post(&loop, paths[i], "", &answer);
        EXPECT_INT(answer.status, 403);
        EXPECT_HAS(loopback_text(&answer), "--admin-on-http");
        loopback_release(&answer);
        loop.is_local_admin = true;
        loopback_post(&loop, paths[i], "", &answer);
        EXPECT_INT(answer.status, 200);
        loopback_release(&answer);
    }
    loop.is_local_admin = false;
    loopback_post(&loop, "/v2/repository/index", "", &answer);
    EXPECT_INT(answer.status, 200);
    end();
}

static void every_code_has_a_status_of_an_error(void)
{
    EXPECT_INT(ifd_http_status(IFD_OK), 200);
    for (int code = IFD_OK + 1; code < IFD_CODE_COUNT; code++) {
        int status = ifd_http_status((enum ifd_code)code);
        EXPECT(status >= 400 && status < 600);
        EXPECT(!ifd_code_may_retry((enum ifd_code)code) || status == 503);
    }
    EXPECT_INT(ifd_http_status((enum ifd_code)99), 500);
}

static void transports_have_the_same_error_body(void)
{
    struct ifd_http_exchange http = {0};
    struct ifd_arena arena;
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    http.arena = &arena;
    ifd_api_error(&http, 408, "the request took too long");
    EXPECT_INT(http.response.status, 408);
    EXPECT_INT(http.response.piece_count, 1);
    EXPECT_BYTES(http.response.piece[0].data, "{\"error\":\"the request took too long\"}", 37);
    arena.cap_bytes = 1;
    ifd_api_error(&http, 503, "x");
    EXPECT_INT(http.response.status, 503);
    EXPECT_BYTES(http.response.piece[0].data, "{\"error\":\"out of memory\"}", 25);
    ifd_arena_finish(&arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(health_says_what_it_means),
        T(server_metadata_is_the_services),
        T(head_is_answered_like_get),
        T(wrong_methods_are_refused_with_allow),
        T(a_refusal_waits_for_a_small_body_and_not_for_a_large_one),
        T(bodies_are_capped_by_route),
        T(unknown_codings_are_refused_with_what_is_known),
        T(control_is_closed_on_http_unless_opened),
        T(every_code_has_a_status_of_an_error),
        T(transports_have_the_same_error_body),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Which origins there are, and what browsers are told before a request of a page. */
#include "api/http/cors.h"

#include <string.h>

#include "tests/support/loopback.h"
#include "tests/support/test.h"

static struct loopback loop;
static struct loopback_answer answer;

static const char *const origins[] = {"https://cameras.example:8443", "http://localhost"};

static void begin_with(const char *const *origin, uint32_t count)
{
    struct ifd_err err = {0};
    loopback_init(&loop, ifd_alloc_system());
    ifd_api_destroy(loop.api);
    const struct ifd_api_options options = {.alloc = loop.alloc,
                                            .ops = fake_service_ops(),
                                            .service = &loop.fake,
                                            .cors = {.origin = origin, .count = count}};
    REQUIRE_OK(ifd_api_create(&options, &loop.api, &err), &err);
}

static void end(void)
{
    loopback_release(&answer);
    loopback_finish(&loop);
}

static void ask(const char *method, const char *const *headers)
{
    loopback_release(&answer);
    loopback_ask(&loop, method, "/v2/models/identity/infer", headers, "", 0, &answer);
}

static void origins_are_written_as_browsers_write_them(void)
{
    static const char *const right[] = {"*", "https://a", "http://[::1]:80", "app://x.y"};
    static const char *const wrong[] = {"",          "https://",   "a.example", "https://a/",
                                        "https://*", "://a",       "null",      "https://a b",
                                        "a/b://c",   "https://a?b"};
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
        EXPECT(ifd_cors_is_origin(right[i]));
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        EXPECT(!ifd_cors_is_origin(wrong[i]));
    }
}

static void preflights_of_allowed_pages_are_answered(void)
{
    static const char *const headers[] = {"Origin",
                                          "http://localhost",
                                          "Access-Control-Request-Method",
                                          "POST",
                                          "Access-Control-Request-Headers",
                                          "authorization",
                                          NULL};
    static const char *const local[] = {
        "Origin", "https://cameras.example:8443",           "Access-Control-Request-Method",
        "GET",    "Access-Control-Request-Private-Network", "true",
        NULL};
    begin_with(origins, 2);
    ask("OPTIONS", headers);
    EXPECT_INT(answer.status, 204);
    EXPECT_INT(answer.body.size, 0);
    EXPECT_TEXT(loopback_header(&answer, "Access-Control-Allow-Methods"), "GET, HEAD, POST");
    EXPECT_HAS(loopback_header(&answer, "Access-Control-Allow-Headers"), "Authorization");
    EXPECT_TEXT(loopback_header(&answer, "Access-Control-Max-Age"), "7200");
    EXPECT(loopback_header(&answer, "Access-Control-Allow-Private-Network") == NULL);
    ask("OPTIONS", local);
    EXPECT_INT(answer.status, 204);
    EXPECT_TEXT(loopback_header(&answer, "Access-Control-Allow-Private-Network"), "true");
    end();
}

static void other_requests_are_not_taken_for_preflights(void)
{
    static const char *const stranger[] = {"Origin", "https://evil.example",
                                           "Access-Control-Request-Method", "POST", NULL};
    static const char *const port[] = {"Origin", "http://localhost:81",
                                       "Access-Control-Request-Method", "POST", NULL};
    static const char *const no_method[] = {"Origin", "http://localhost", NULL};
    static const char *const no_origin[] = {"Access-Control-Request-Method", "POST", NULL};
    static const char *const *const others[] = {stranger, port, no_method, no_origin};
    begin_with(origins, 2);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        ask("OPTIONS", others[i]);
        EXPECT_INT(answer.status, 405);
    }
    end();
    begin_with(NULL, 0); /* the default */
    ask("OPTIONS", (const char *const[]){"Origin", "http://localhost",
                                         "Access-Control-Request-Method", "POST", NULL});
    EXPECT_INT(answer.status, 405);
    end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(origins_are_written_as_browsers_write_them),
        T(preflights_of_allowed_pages_are_answered),
        T(other_requests_are_not_taken_for_preflights),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

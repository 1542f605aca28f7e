/* Pages of other origins: the headers that browsers look for, on every kind of answer. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

#define PAGE "https://cameras.example:8443"

static char text[4096]; /* of the last answer: head and body */

/* One exchange, read to its end. first: the request line and more headers. */
static const char *ask(const struct live *live, const char *first, const char *origin)
{
    char request[1000];
    size_t size = 0;
    ssize_t got = 1;
    const int fd = client_connect(live);
    REQUIRE(fd >= 0);
    (void)snprintf(request, sizeof(request), "%s\r\nHost: a\r\n%s%s%sConnection: close\r\n\r\n",
                   first, origin ? "Origin: " : "", origin ? origin : "", origin ? "\r\n" : "");
    client_send_text(fd, request);
    while (got > 0 && size < sizeof(text) - 1) {
        got = recv(fd, text + size, sizeof(text) - 1 - size, 0);
        size += got > 0 ? (size_t)got : 0;
    }
    text[size] = '\0';
    (void)close(fd);
    return text;
}

static void expect_allowed(const char *got, int status, const char *origin)
{
    char wanted[100];
    (void)snprintf(wanted, sizeof(wanted), "HTTP/1.1 %d ", status);
    EXPECT(strncmp(got, wanted, strlen(wanted)) == 0);
    (void)snprintf(wanted, sizeof(wanted), "\r\nAccess-Control-Allow-Origin: %s\r\n", origin);
    EXPECT_HAS(got, wanted);
    EXPECT_HAS(got, "\r\nAccess-Control-Expose-Headers: Inference-Header-Content-Length, ");
    EXPECT((strstr(got, "\r\nVary: Origin\r\n") != NULL) == (strcmp(origin, "*") != 0));
}

static void allowed_pages_may_read_answers_and_errors(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--cors-origin=http://other.example," PAGE, NULL});
    expect_allowed(ask(&live, "GET /v2 HTTP/1.1", PAGE), 200, PAGE);
    expect_allowed(ask(&live, "GET /v2/nothing HTTP/1.1", PAGE), 404, PAGE);
    expect_allowed(ask(&live, "POST /v2/models/echo/infer HTTP/1.1\r\nContent-Length: 0", PAGE),
                   400, PAGE);
    expect_allowed(ask(&live, "GET /v2 HTTP/1.1\r\nExpect: much", PAGE), 417, PAGE);
    expect_allowed(ask(&live, "OPTIONS /v2 HTTP/1.1\r\nAccess-Control-Request-Method: GET", PAGE),
                   204, PAGE);
    EXPECT_HAS(text, "\r\nAccess-Control-Allow-Methods: GET, HEAD, POST\r\n");
    live_stop(&live);
}

static void other_pages_are_told_nothing(void)
{
    static const char *const pages[] = {"https://evil.example", "https://cameras.example", "null",
                                        PAGE ".evil.example", NULL};
    struct live live;
    live_start(&live, (const char *const[]){"--cors-origin=" PAGE, NULL});
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        EXPECT_HAS(ask(&live, "GET /v2 HTTP/1.1", pages[i]), "HTTP/1.1 200 ");
        EXPECT(!strstr(text, "Access-Control"));
        EXPECT_HAS(text, "\r\nVary: Origin\r\n"); /* a cache may hold it */
    }
    live_stop(&live);
}

static void every_page_may_ask_if_the_setting_says_so(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--cors-origin=*", NULL});
    expect_allowed(ask(&live, "GET /v2 HTTP/1.1", "https://a.example"), 200, "*");
    EXPECT(!strstr(ask(&live, "GET /v2 HTTP/1.1", NULL), "Access-Control"));
    live_stop(&live);
    live_start(&live, NULL);
    ask(&live, "GET /v2 HTTP/1.1", "https://a.example");
    EXPECT(!strstr(text, "Access-Control") && !strstr(text, "Vary"));
    live_stop(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(allowed_pages_may_read_answers_and_errors),
        T(other_pages_are_told_nothing),
        T(every_page_may_ask_if_the_setting_says_so),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Raw bytes to the server. Each row is sent unchanged on its own connection, followed at once by
 * LAST, which asks to close the connection. The result is every status that the server sent before
 * it closed, in order: a payload that is read as two requests shows two, and a connection that
 * stays open shows one more. The rows come from RFC 9112, from known disagreements of servers and
 * proxies, and from requests that libmicrohttpd 0.9.75 accepts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

/* Longer than any answer takes; reaching it is a failure, not a result. */
#define GIVE_UP_SECS 10

#define LIVE        "GET /v2/health/live HTTP/1.1\r\n"
#define HOST        "Host: a\r\n"
#define INFER       "POST /v2/models/echo/infer HTTP/1.1\r\n"
#define TENSOR      "\"name\":\"IN\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[7]"
#define JSON        "{\"inputs\":[{" TENSOR "}]}"
#define LENGTH      "Content-Length: 67\r\n" /* of JSON */
#define CHUNK       "43\r\n" JSON "\r\n0\r\n\r\n"
#define NEXT        LIVE HOST "\r\n" /* the smuggled request */
#define LAST        LIVE HOST "Connection: close\r\n\r\n"
#define TE          "Transfer-Encoding: chunked\r\n"
#define EIGHT(text) text text text text text text text text

_Static_assert(sizeof(JSON) - 1 == 67, "LENGTH and CHUNK say how long JSON is");

struct payload {
    const char *what, *bytes;
    size_t size;
    const char *statuses; /* in order, each after a blank; "": closed without an answer */
    bool is_cut;          /* ends the stream where LAST would be */
};

#define P(what, bytes, statuses)                                                                   \
    {                                                                                              \
        what, bytes, sizeof(bytes) - 1, statuses, false                                            \
    }
#define CUT(what, bytes)                                                                           \
    {                                                                                              \
        what, bytes, sizeof(bytes) - 1, "", true                                                   \
    }

static const struct payload good[] = {
    P("plain GET", LIVE HOST "\r\n", " 200 200"),
    P("plain POST", INFER HOST LENGTH "\r\n" JSON, " 200 200"),
    P("chunked POST", INFER HOST TE "\r\n" CHUNK, " 200"),
    P("chunk size with leading zeros", INFER HOST TE "\r\n00043\r\n" JSON "\r\n000\r\n\r\n",
      " 200"),
    P("chunk extension", INFER HOST TE "\r\n43;a=b\r\n" JSON "\r\n0\r\n\r\n", " 200"),
    P("trailer field", INFER HOST TE "\r\n43\r\n" JSON "\r\n0\r\nX: y\r\n\r\n", " 200"),
    P("chunked in capitals", INFER HOST "Transfer-Encoding: CHUNKED\r\n\r\n" CHUNK, " 200"),
    P("blanks around a value", LIVE "Host: \t a \t \r\n\r\n", " 200 200"),
    P("no blank before a value", LIVE "Host:a\r\n\r\n", " 200 200"),
    P("Host with a port", LIVE "Host: [::1]:8000\r\n\r\n", " 200 200"),
    P("empty Host", LIVE "Host:\r\n\r\n", " 200 200"),
    P("empty value", LIVE HOST "X:\r\nY: \r\n\r\n", " 200 200"),
    P("bytes above 127 in a value", LIVE HOST "X: \xc3\xa4\r\n\r\n", " 200 200"),
    P("empty lines before the request", "\r\n\r\n" LIVE HOST "\r\n", " 200 200"),
    P("HTTP/1.0 without Host", "GET /v2/health/live HTTP/1.0\r\n\r\n", " 200"),
    P("absolute form", "GET http://a/v2/health/live HTTP/1.1\r\n" HOST "\r\n", " 200 200"),
    P("absolute form in capitals", "GET HTTP://a:80/v2/health/live HTTP/1.1\r\n" HOST "\r\n",
      " 200 200"),
    P("query", "GET /v2/health/live?a=b&c=%00 HTTP/1.1\r\n" HOST "\r\n", " 200 200"),
    P("query of 512 parts",
      "GET /v2/health/live?" EIGHT(EIGHT(EIGHT("a=&"))) " HTTP/1.1\r\n" HOST "\r\n", " 200 200"),
    P("percent-encoded letter", "GET /v2/health/liv%65 HTTP/1.1\r\n" HOST "\r\n", " 200 200"),
    P("Authorization that nobody asked for", LIVE HOST "Authorization: Bearer a\r\n\r\n",
      " 200 200"),
    P("cookies", LIVE HOST "Cookie: a=b; c=d\r\nX: y\r\n\r\n", " 200 200"),
    P("two in a pipeline", LIVE HOST "\r\n" NEXT, " 200 200 200"),
    P("pipeline behind a body", INFER HOST LENGTH "\r\n" JSON NEXT, " 200 200 200"),
    P("pipeline behind close", LIVE HOST "Connection: close\r\n\r\n" NEXT, " 200"),
    P("pipeline behind chunks is not read", INFER HOST TE "\r\n" CHUNK NEXT, " 200"),
    P("body of a GET is no request", LIVE HOST LENGTH "\r\n" JSON NEXT, " 200 200 200"),
};

static const struct payload bad_lengths[] = {
    P("two equal lengths", INFER HOST LENGTH LENGTH "\r\n" JSON NEXT, " 400"),
    P("two lengths", INFER HOST "Content-Length: 2\r\n" LENGTH "\r\n" JSON NEXT, " 400"),
    P("list of lengths", INFER HOST "Content-Length: 67, 67\r\n\r\n" JSON NEXT, " 400"),
    P("length with a sign", INFER HOST "Content-Length: +67\r\n\r\n" JSON NEXT, " 400"),
    P("negative length", INFER HOST "Content-Length: -1\r\n\r\n" JSON NEXT, " 400"),
    P("hexadecimal length", INFER HOST "Content-Length: 0x43\r\n\r\n" JSON NEXT, " 400"),
    P("length with a letter", INFER HOST "Content-Length: 66a\r\n\r\n" JSON NEXT, " 400"),
    P("length in two words", INFER HOST "Content-Length: 6 6\r\n\r\n" JSON NEXT, " 400"),
    P("length with a blank behind it", INFER HOST "Content-Length: 67 \r\n\r\n" JSON NEXT, " 400"),
    P("length with a tab and a bare LF", INFER HOST "Content-Length: 67\t\n\r\n" JSON NEXT, " 400"),
    P("empty length", INFER HOST "Content-Length: \r\n\r\n" JSON NEXT, " 400"),
    P("length of 2^64", INFER HOST "Content-Length: 18446744073709551616\r\n\r\n" JSON, " 413"),
    P("length of 2^63", INFER HOST "Content-Length: 9223372036854775808\r\n\r\n" JSON, " 413"),
    P("length and chunks", INFER HOST LENGTH TE "\r\n" CHUNK NEXT, " 400"),
    P("chunks and length", INFER HOST TE LENGTH "\r\n" CHUNK NEXT, " 400"),
    P("length 0 and chunks", INFER HOST "Content-Length: 0\r\n" TE "\r\n" CHUNK NEXT, " 400"),
    P("chunks in HTTP/1.0", "POST /v2/models/echo/infer HTTP/1.0\r\n" HOST TE "\r\n" CHUNK NEXT,
      " 400"),
    P("chunked twice", INFER HOST TE TE "\r\n" CHUNK NEXT, " 400"),
    P("gzip, chunked", INFER HOST "Transfer-Encoding: gzip, chunked\r\n\r\n" CHUNK NEXT, " 501"),
    P("xchunked", INFER HOST "Transfer-Encoding: xchunked\r\n\r\n" CHUNK NEXT, " 501"),
    P("quoted chunked", INFER HOST "Transfer-Encoding: \"chunked\"\r\n\r\n" CHUNK NEXT, " 501"),
    P("identity", INFER HOST "Transfer-Encoding: identity\r\n" LENGTH "\r\n" JSON NEXT, " 400"),
    P("empty encoding", INFER HOST "Transfer-Encoding:\r\n\r\n" CHUNK NEXT, " 501"),
    P("chunked behind a vertical tab", INFER HOST "Transfer-Encoding: \vchunked\r\n\r\n" CHUNK NEXT,
      " 400"),
    P("blank before the colon", INFER HOST "Transfer-Encoding : chunked\r\n" LENGTH "\r\n" CHUNK,
      " 400"),
    P("chunk size with 0x", INFER HOST TE "\r\n0x42\r\n" JSON "\r\n0\r\n\r\n" NEXT, " 400"),
    P("negative chunk size", INFER HOST TE "\r\n-2\r\n" JSON "\r\n0\r\n\r\n" NEXT, " 400"),
    P("empty chunk size", INFER HOST TE "\r\n\r\n" JSON "\r\n0\r\n\r\n" NEXT, " 400"),
    P("chunk size of 2^64", INFER HOST TE "\r\n10000000000000000\r\n" JSON "\r\n0\r\n\r\n", " 413"),
    P("chunk size of 2^63 - 1", INFER HOST TE "\r\n7fffffffffffffff\r\n" JSON "\r\n0\r\n\r\n",
      " 408"),
    P("chunk size of 20 digits", INFER HOST TE "\r\n00000000000000000043\r\n" JSON "\r\n0\r\n\r\n",
      " 200"),
    P("chunk size of letters", INFER HOST TE "\r\nxyz\r\n" JSON "\r\n0\r\n\r\n" NEXT, " 400"),
    P("chunk size with a blank", INFER HOST TE "\r\n 43\r\n" JSON "\r\n0\r\n\r\n" NEXT, " 400"),
    P("chunk size with a blank behind it", INFER HOST TE "\r\n43 \r\n" JSON "\r\n0\r\n\r\n" NEXT,
      " 400"),
    P("second chunk size of letters", INFER HOST TE "\r\n1\r\n{\r\nz\r\n\r\n" NEXT, " 400"),
    P("trailer without a colon", INFER HOST TE "\r\n43\r\n" JSON "\r\n0\r\nX\r\n\r\n" NEXT, " 400"),
    P("chunk longer than its size", INFER HOST TE "\r\n40\r\n" JSON "\r\n0\r\n\r\n" NEXT, " 400"),
    P("bare LF between chunks hides nothing", INFER HOST TE "\r\n43\n" JSON "\n0\n\n" NEXT, " 200"),
    P("chunk extension with CR hides nothing",
      INFER HOST TE "\r\n43;\r\r\n" JSON "\r\n0\r\n\r\n" NEXT, " 200"),
};

static const struct payload bad_fields[] = {
    P("no Host", LIVE "\r\n" NEXT, " 400"),
    P("two Hosts", LIVE HOST "Host: b\r\n\r\n" NEXT, " 400"),
    P("two equal Hosts", LIVE HOST HOST "\r\n" NEXT, " 400"),
    P("two Authorizations",
      LIVE HOST "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n" NEXT, " 400"),
    P("two equal Authorizations in other letters",
      LIVE HOST "Authorization: Bearer a\r\nAUTHORIZATION: Bearer a\r\n\r\n" NEXT, " 400"),
    P("Authorization that continues", LIVE HOST "Authorization: Bearer\r\n a\r\n\r\n" NEXT, " 400"),
    P("Authorization with a control character", LIVE HOST "Authorization: Bearer a\vb\r\n\r\n" NEXT,
      " 400"),
    P("Host with a blank", LIVE "Host: a b\r\n\r\n" NEXT, " 400"),
    P("Host with a path", LIVE "Host: a/b\r\n\r\n" NEXT, " 400"),
    P("Host with a user", LIVE "Host: a@b\r\n\r\n" NEXT, " 400"),
    P("Host with a byte above 127", LIVE "Host: \xc3\xa4\r\n\r\n" NEXT, " 400"),
    P("name with a blank", LIVE HOST "X Y: z\r\n\r\n" NEXT, " 400"),
    P("name with a tab", LIVE HOST "X\t: z\r\n\r\n" NEXT, " 400"),
    P("no name", LIVE HOST ": z\r\n\r\n" NEXT, " 400"),
    P("no colon", LIVE HOST "X\r\n\r\n" NEXT, " 400"),
    P("name with a byte above 127", LIVE HOST "X\xc3\xa4: z\r\n\r\n" NEXT, " 400"),
    P("name with brackets", LIVE HOST "X(y): z\r\n\r\n" NEXT, " 400"),
    P("first line continues", LIVE " Host: a\r\n\r\n" NEXT, " 400"),
    P("obs-fold", LIVE HOST "X: y\r\n z\r\nZ: 1\r\n\r\n" NEXT, " 400"),
    P("obs-fold with a tab", LIVE HOST "X: y\r\n\tz\r\nZ: 1\r\n\r\n" NEXT, " 400"),
    P("obs-fold at the end", LIVE HOST "X: y\r\n z\r\n\r\n" NEXT, " 400"),
    P("obs-fold of nothing", LIVE HOST "X: y\r\n \r\n\r\n" NEXT, " 400"),
    P("obs-fold of a length", INFER HOST "Content-Length: 6\r\n 6\r\n\r\n" JSON NEXT, " 400"),
    P("NUL in a value", LIVE HOST "X: a\0b\r\nY: z\r\n\r\n" NEXT, " 400"),
    P("NUL in the last value", LIVE HOST "X: a\0b\r\n\r\n" NEXT, " 400"),
    P("NUL ends the last value", LIVE HOST "X: a\0\r\n\r\n" NEXT, " 400"),
    P("NUL in a name", LIVE HOST "X\0Y: a\r\n\r\n" NEXT, " 400"),
    P("NUL hides a length", INFER HOST "X: a\0\r\nContent-Length: 67\r\n\r\n" JSON NEXT, " 400"),
    P("line that starts with NUL", INFER HOST "\0X: y\r\n" LENGTH "\r\n" JSON NEXT, " 400"),
    P("line of one NUL", INFER HOST "\0\r\n" LENGTH "\r\n" JSON NEXT, " 400"),
    P("CR in a value", LIVE HOST "X: a\rb\r\n\r\n" NEXT, " 400"),
    P("CR hides a field", LIVE HOST "X: a\rHost: b\r\n\r\n" NEXT, " 400"),
    P("CR CR LF", LIVE HOST "X: a\r\r\n\r\n" NEXT, " 400"),
    P("escape in a value", LIVE HOST "X: a\x1b[0m\r\n\r\n" NEXT, " 400"),
    P("DEL in a value", LIVE HOST "X: a\x7f\r\n\r\n" NEXT, " 400"),
    P("bare LF behind the request line", "GET /v2/health/live HTTP/1.1\n" HOST "\r\n" NEXT, " 400"),
    P("bare LF behind a field", LIVE "Host: a\n\r\n" NEXT, " 400"),
    P("bare LF between fields", LIVE HOST "X: y\nZ: 1\r\n\r\n" NEXT, " 400"),
    P("bare LF as the empty line", LIVE HOST "\n" NEXT, " 400"),
    P("bare LF and a colon as the empty line", LIVE "Host: a\n:x\n" NEXT, " 400"),
    P("colon as the empty line", LIVE HOST ":\r\n" NEXT, " 400"),
    P("bare LF everywhere", "GET /v2/health/live HTTP/1.1\nHost: a\n\n" NEXT, " 400"),
    P("two Content-Types",
      INFER HOST "Content-Type: a/b\r\nContent-Type: a/c\r\n" LENGTH "\r\n" JSON, " 400"),
    P("two Content-Encodings",
      INFER HOST "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n" LENGTH "\r\n" JSON,
      " 400"),
    P("unknown expectation", INFER HOST "Expect: wonder\r\n" LENGTH "\r\n" JSON NEXT, " 417"),
};

static const struct payload bad_request_lines[] = {
    CUT("nothing", ""),
    CUT("half a request line", "GET /v2/hea"),
    CUT("half a header", LIVE "Host: a\r\nX: y"),
    CUT("half a body", INFER HOST LENGTH "\r\n{\"in"),
    P("one word", "GET\r\n\r\n" NEXT, ""),
    P("no version", "GET /v2/health/live\r\n\r\n" NEXT, " 400"),
    P("HTTP/0.9", "GET /v2/health/live HTTP/0.9\r\n" HOST "\r\n" NEXT, " 505"),
    P("HTTP/1.2", "GET /v2/health/live HTTP/1.2\r\n" HOST "\r\n" NEXT, " 505"),
    P("HTTP/2.0", "GET /v2/health/live HTTP/2.0\r\n" HOST "\r\n" NEXT, " 505"),
    P("HTTP/11.1", "GET /v2/health/live HTTP/11.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("http/1.1", "GET /v2/health/live http/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("HTTX/1.1", "GET /v2/health/live HTTX/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", " 505"),
    P("blank behind the version", "GET /v2/health/live HTTP/1.1 \r\n" HOST "\r\n" NEXT, " 400"),
    P("two blanks", "GET  /v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("two blanks before the version", "GET /v2/health/live  HTTP/1.1\r\n" HOST "\r\n" NEXT,
      " 400"),
    P("tabs for blanks", "GET\t/v2/health/live\tHTTP/1.1\r\n" HOST "\r\n" NEXT, ""),
    P("blank in front", " GET /v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, ""),
    P("blank in the target", "GET /v2/health/live x HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("blank in the query", "GET /v2/health/live?x y HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("NUL in the target", "GET /v2/health/live\0x HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("CR in the target", "GET /v2/health/live\rx HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("byte above 127 in the target", "GET /v2/\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("fragment", "GET /v2/health/live#x HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("no slash", "GET v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("authority form", "CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("asterisk form", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("other scheme", "GET ftp://a/v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("no authority", "GET http:///v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("method with brackets", "G(T /v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
    P("method with NUL", "G\0T /v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400"),
};

/* A refusal by the route leaves the connection usable for the next request. */
static const struct payload bad_paths[] = {
    P("unknown method", "BREW /v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 405 200 200"),
    P("method in small letters", "get /v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT,
      " 405 200 200"),
    P("encoded slash in a name", "GET /v2/models/a%2Fready HTTP/1.1\r\n" HOST "\r\n" NEXT,
      " 400 200 200"),
    P("encoded NUL", "GET /v2/models/echo%00 HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400 200 200"),
    P("half an escape", "GET /v2/models/echo%2 HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400 200 200"),
    P("escape of no digits", "GET /v2/models/%zz HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400 200 200"),
    P("dots", "GET /v2/models/../health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 404 200 200"),
    P("encoded dots", "GET /v2/models/%2e%2e HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400 200 200"),
    P("escape of an escape", "GET /v2/models/%252e HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400 200 200"),
    P("overlong UTF-8", "GET /v2/models/%c0%ae HTTP/1.1\r\n" HOST "\r\n" NEXT, " 400 200 200"),
    P("two slashes", "GET //v2/health/live HTTP/1.1\r\n" HOST "\r\n" NEXT, " 404 200 200"),
};

/* Statuses until the end of the stream, also those behind an answer that closes the connection. */
static void read_statuses(int fd, char *ret, size_t size)
{
    size_t used = 0;
    const struct timeval limit = {.tv_sec = GIVE_UP_SECS};
    REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    ret[0] = '\0';
    while (used + 5 < size) {
        struct answer answer = client_read(fd);
        if (answer.status == 0) {
            return;
        }
        if (answer.status >= 400) {
            EXPECT_HAS(answer.head, "\r\nContent-Type: application/json\r\n");
            EXPECT(strncmp(answer.body, "{\"error\":\"", 10) == 0);
        }
        used += (size_t)snprintf(ret + used, size - used, " %d", answer.status);
    }
    while (!client_is_closed(fd)) {
    }
}

/* split: bytes that are sent first, usually read alone; 0: all at once */
static void expect_payload(const struct live *live, const struct payload *p, size_t split)
{
    char text[2048];
    char statuses[64], got[200], want[200];
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    REQUIRE(p->size + sizeof(LAST) < sizeof(text));
    memcpy(text, p->bytes, p->size);
    memcpy(text + p->size, LAST, sizeof(LAST) - 1);
    const size_t size = p->size + (p->is_cut ? 0 : sizeof(LAST) - 1);
    if (split > 0 && split < size) {
        client_send(fd, text, split);
        (void)usleep(1000);
    } else {
        split = 0;
    }
    client_send(fd, text + split, size - split);
    if (p->is_cut) {
        (void)shutdown(fd, SHUT_WR);
    }
    read_statuses(fd, statuses, sizeof(statuses));
    (void)snprintf(got, sizeof(got), "%s:%s", p->what, statuses);
    (void)snprintf(want, sizeof(want), "%s:%s", p->what, p->statuses);
    EXPECT_TEXT(got, want);
    (void)close(fd);
}

static void expect_table(const struct payload *table, size_t count)
{
    /* in the request line; usually in the header; in the body */
    static const size_t splits[] = {0, 5, 60, 140};
    struct live live;
    live_start(&live, (const char *const[]){"--http-idle-timeout-secs=2",
                                            "--http-receive-timeout-secs=1", NULL});
    for (size_t k = 0; k < sizeof(splits) / sizeof(splits[0]); k++) {
        for (size_t i = 0; i < count; i++) {
            expect_payload(&live, &table[i], splits[k]);
        }
    }
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    live_stop(&live);
}

#define TABLE(name) expect_table(name, sizeof(name) / sizeof((name)[0]))

static void good_payloads_are_answered(void)
{
    TABLE(good);
}

static void bodies_that_can_be_read_two_ways_are_refused(void)
{
    TABLE(bad_lengths);
}

static void fields_that_can_be_read_two_ways_are_refused(void)
{
    TABLE(bad_fields);
}

static void malformed_request_lines_are_refused(void)
{
    TABLE(bad_request_lines);
}

static void odd_paths_name_nothing(void)
{
    TABLE(bad_paths);
}

/* Requests that the library refuses by itself, without naming the connection. */
static void only_the_client_at_fault_is_told(void)
{
    static const struct payload bad[] = {
        P("chunk", "nonsense\r\n", " 400"),
        P("chunk size", "10000000000000000\r\n", " 413"),
        P("end of a chunk", "1\r\nab\r\n", " 400"),
    };
    struct live live;
    char statuses[64];
    live_start(&live, NULL);
    int idle = client_connect(&live), busy = client_connect(&live);
    REQUIRE(idle >= 0 && busy >= 0);
    client_send_text(idle, NEXT);
    EXPECT_INT(client_read(idle).status, 200);
    client_send_text(busy, LIVE "Ho");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char interim[64] = {0};
        int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        client_send_text(fd, INFER HOST TE "Expect: 100-continue\r\n\r\n");
        REQUIRE(recv(fd, interim, 25, MSG_WAITALL) == 25);
        client_send(fd, bad[i].bytes, bad[i].size);
        read_statuses(fd, statuses, sizeof(statuses));
        EXPECT_TEXT(statuses, bad[i].statuses);
        (void)close(fd);
    }
    client_send_text(busy, "st: a\r\n\r\n");
    EXPECT_INT(client_read(busy).status, 200);
    /* no connection is within a request: the request line comes in one piece */
    client_send_text(busy, "GET /v2 HTTX/1.1\r\n\r\n");
    read_statuses(busy, statuses, sizeof(statuses));
    EXPECT_TEXT(statuses, " 400");
    client_send_text(idle, NEXT);
    EXPECT_INT(client_read(idle).status, 200);
    (void)close(busy);
    (void)close(idle);
    live_stop(&live);
}

/* Sent before the others and answered by us, whichever other request is malformed at that
 * moment. */
struct fault {
    const char *begin, *end;
    int status;
};

static void begin_faults(const struct live *live, const struct fault *fault, size_t count, int *fd)
{
    for (size_t i = 0; i < count; i++) {
        char interim[64] = {0};
        fd[i] = client_connect(live);
        REQUIRE(fd[i] >= 0);
        client_send_text(fd[i], fault[i].begin);
        if (strstr(fault[i].begin, "Expect")) {
            REQUIRE(recv(fd[i], interim, 25, MSG_WAITALL) == 25);
        }
    }
}

static void expect_refusals(const struct fault *fault, size_t count, const int *fd)
{
    for (size_t i = 0; i < count; i++) {
        const struct answer answer = client_read(fd[i]);
        EXPECT_INT(answer.status, fault[i].status);
        EXPECT_HAS(answer.head, "\r\nContent-Type: application/json\r\n");
        EXPECT_HAS(answer.body, "{\"error\":\"");
        EXPECT(client_is_closed(fd[i]));
        (void)close(fd[i]);
    }
}

static void all_that_are_malformed_at_once_are_told(void)
{
#define CHUNKS INFER HOST TE "Expect: 100-continue\r\n\r\n"
    static const struct fault faults[] = {
        {"GET /v2 HT", "TX/1.1\r\n\r\n", 400},
        {CHUNKS, "nonsense\r\n", 400},
        {CHUNKS, "10000000000000000\r\n", 413},
        {"", "GET /v2 HTTX/1.1\r\n\r\n", 400},
        {CHUNKS "1\r\n", "ab\r\n", 400},
        {INFER HOST, "Content-Length: x\r\n\r\n", 400},
        {INFER, "Content-Length: 99999999999999999999\r\n" HOST "\r\n", 413},
        {"", "GET /v2 HTTP/7.1\r\n\r\n", 505},
    };
    enum { KINDS = sizeof(faults) / sizeof(faults[0]), TIMES = 12 };
    struct live live;
    int fd[TIMES][KINDS];
    live_start(&live, NULL);
    int idle = client_connect(&live), busy = client_connect(&live), chunks = client_connect(&live);
    REQUIRE(idle >= 0 && busy >= 0 && chunks >= 0);
    client_send_text(idle, NEXT);
    EXPECT_INT(client_read(idle).status, 200);
    client_send_text(busy, LIVE "Ho");
    client_send_text(chunks, INFER HOST TE "\r\n43\r\n{\"inp");
    for (size_t i = 0; i < TIMES; i++) {
        begin_faults(&live, faults, KINDS, fd[i]);
    }
    for (size_t i = 0; i < TIMES; i++) {
        for (size_t k = 0; k < KINDS; k++) {
            client_send_text(fd[i][k], faults[k].end);
        }
    }
    for (size_t i = 0; i < TIMES; i++) {
        expect_refusals(faults, KINDS, fd[i]);
    }
    client_send_text(busy, "st: a\r\n\r\n");
    EXPECT_INT(client_read(busy).status, 200);
    client_send_text(chunks, strchr(CHUNK, ':') - 4);
    EXPECT_INT(client_read(chunks).status, 200);
    client_send_text(idle, NEXT);
    EXPECT_INT(client_read(idle).status, 200);
    (void)close(busy);
    (void)close(chunks);
    (void)close(idle);
    live_stop(&live);
}

/* The library's buffer grows meanwhile; its content must still be found contiguous. */
static void large_header_in_pieces_is_answered(void)
{
    struct live live;
    char field[520];
    live_start(&live, NULL);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, LIVE HOST);
    (void)snprintf(field, sizeof(field), "X: %0500d\r\n", 1);
    for (int i = 0; i < 15; i++) {
        client_send(fd, field, 100);
        (void)usleep(200);
        client_send_text(fd, field + 100);
    }
    client_send_text(fd, "\r\n");
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    live_stop(&live);
}

static void giant_header_is_refused(void)
{
    static char text[1 << 17];
    struct live live;
    live_start(&live, NULL);
    for (int is_path = 0; is_path < 2; is_path++) {
        int used = snprintf(text, sizeof(text), is_path ? "GET /" : LIVE HOST "X: ");
        memset(text + used, 'x', sizeof(text) - (size_t)used);
        int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        /* just more than the connection's memory, so that all of it is read before the end */
        client_send(fd, text, 65536);
        struct answer answer = client_read(fd);
        EXPECT_INT(answer.status, is_path ? 414 : 431);
        EXPECT_HAS(answer.head, "\r\nContent-Type: application/json\r\n");
        EXPECT_HAS(answer.body, "{\"error\":\"");
        (void)close(fd);
    }
    live_stop(&live);
}

/* Endless lines fill the library's buffer: others are served meanwhile. */
static void endless_chunk_lines_hold_up_nobody(void)
{
    static const char *const begins[] = {"1;", "1\r\nx\r\n0\r\na: "};
    static char filler[100000];
    const struct timeval give_up = {.tv_sec = GIVE_UP_SECS};
    struct live live;
    live_start(&live, NULL);
    memset(filler, 'a', sizeof(filler));
    for (size_t i = 0; i < 2; i++) {
        int fd = client_connect(&live), other = -1;
        REQUIRE(fd >= 0);
        client_send_text(fd, INFER HOST TE "\r\n");
        client_send_text(fd, begins[i]);
        (void)send(fd, filler, sizeof(filler), MSG_NOSIGNAL);
        (void)usleep(100000);
        other = client_connect(&live);
        REQUIRE(other >= 0);
        (void)setsockopt(other, SOL_SOCKET, SO_RCVTIMEO, &give_up, sizeof(give_up));
        client_send_text(other, LIVE HOST "\r\n");
        EXPECT_INT(client_read(other).status, 200);
        (void)close(other);
        (void)close(fd);
    }
    live_stop(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(good_payloads_are_answered),
        T(bodies_that_can_be_read_two_ways_are_refused),
        T(fields_that_can_be_read_two_ways_are_refused),
        T(malformed_request_lines_are_refused),
        T(odd_paths_name_nothing),
        T(only_the_client_at_fault_is_told),
        T(all_that_are_malformed_at_once_are_told),
        T(large_header_in_pieces_is_answered),
        T(giant_header_is_refused),
        T(endless_chunk_lines_hold_up_nobody),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

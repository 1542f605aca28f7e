/* HTTP as bytes on a socket: the answer to each request, and the connection after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

/* Sends text on a new connection and expects one answer of this status. */
static void expect_status(const struct live *live, const char *text, int status)
{
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    client_send_text(fd, text);
    struct answer answer = client_read(fd);
    EXPECT_INT(answer.status, status);
    if (status >= 400 && status != answer.status) {
        (void)fprintf(stderr, "request was: %s\n", text);
    }
    (void)close(fd);
}

/* A server, and a connection to it. */
static int begin(struct live *live)
{
    live_start(live, NULL);
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    return fd;
}

static void end(struct live *live, int fd)
{
    (void)close(fd);
    live_stop(live);
}

static void one_connection_carries_many_requests(void)
{
    struct live live;
    int fd = begin(&live);
    for (int i = 0; i < 50; i++) {
        char want[32];
        client_send_text(fd, client_infer_text("echo", i));
        struct answer answer = client_read(fd);
        (void)snprintf(want, sizeof(want), "\"data\":[%d.0]", i);
        EXPECT_INT(answer.status, 200);
        EXPECT_HAS(answer.body, want);
    }
    end(&live, fd);
}

static void pipelined_requests_are_answered_in_order(void)
{
    struct live live;
    int fd = begin(&live);
    for (int i = 0; i < 20; i++) {
        client_send_text(fd, client_infer_text("echo", i));
    }
    for (int i = 0; i < 20; i++) {
        char want[32];
        struct answer answer = client_read(fd);
        (void)snprintf(want, sizeof(want), "\"data\":[%d.0]", i);
        EXPECT_INT(answer.status, 200);
        EXPECT_HAS(answer.body, want);
    }
    end(&live, fd);
}

static void chunked_bodies_are_read(void)
{
    struct live live;
    int fd = begin(&live);
    const char *body = strstr(client_infer_text("echo", 5), "{\"inputs\"");
    client_send_text(fd, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                         "Transfer-Encoding: chunked\r\n\r\n");
    for (const char *at = body; *at != '\0'; at++) {
        char chunk[16];
        (void)snprintf(chunk, sizeof(chunk), "1\r\n%c\r\n", *at);
        client_send_text(fd, chunk);
    }
    client_send_text(fd, "0\r\n\r\n");
    struct answer answer = client_read(fd);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(answer.body, "[5.0]");
    end(&live, fd);
}

static void binary_tensors_return_bit_for_bit(void)
{
    static float sent[40000];
    struct live live;
    char head[400], json[200];
    for (size_t i = 0; i < 40000; i++) {
        sent[i] = (float)i * 0.37f;
    }
    int fd = begin(&live);
    (void)snprintf(json, sizeof(json),
                   "{\"inputs\":[{\"name\":\"IN\",\"shape\":[40000],\"datatype\":\"FP32\","
                   "\"parameters\":{\"binary_data_size\":160000}}],"
                   "\"parameters\":{\"binary_data_output\":true}}");
    (void)snprintf(head, sizeof(head),
                   "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                   "Inference-Header-Content-Length: %zu\r\nContent-Length: %zu\r\n\r\n%s",
                   strlen(json), strlen(json) + sizeof(sent), json);
    client_send_text(fd, head);
    client_send(fd, sent, sizeof(sent));
    struct answer answer = client_read(fd);
    REQUIRE(answer.status == 200);
    EXPECT_HAS(answer.head, "application/octet-stream");
    const char *length = strcasestr(answer.head, "inference-header-content-length:");
    REQUIRE(length != NULL);
    size_t json_size = strtoul(length + 32, NULL, 10);
    REQUIRE(json_size < answer.body_size);
    EXPECT_BYTES(answer.body + json_size, sent, answer.body_size - json_size);
    end(&live, fd);
}

static void queries_are_ignored_and_unknown_paths_refused(void)
{
    struct live live;
    live_start(&live, NULL);
    EXPECT_INT(client_get(&live, "/v2/health/live?x=1&y=%00").status, 200);
    EXPECT_INT(client_get(&live, "/v2/nothing").status, 404);
    EXPECT_INT(client_get(&live, "/v2/models/none").status, 404);
    struct answer answer = client_get(&live, "/v2/models/echo/infer");
    EXPECT_INT(answer.status, 405);
    EXPECT_HAS(answer.head, "Allow: POST");
    live_stop(&live);
}

static void head_has_the_length_but_no_body(void)
{
    struct live live;
    int fd = begin(&live);
    client_send_text(fd, "HEAD /v2/health/live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    char text[2048];
    ssize_t used = 0, got = 0;
    while ((got = recv(fd, text + used, sizeof(text) - 1 - (size_t)used, 0)) > 0) {
        used += got;
    }
    text[used] = '\0';
    EXPECT_HAS(text, "200 OK");
    EXPECT_HAS(text, "Content-Length: 13");
    EXPECT(strstr(text, "live") == NULL);
    end(&live, fd);
}

static void refused_request_with_a_small_body_keeps_the_connection(void)
{
    struct live live;
    int fd = begin(&live);
    client_send_text(fd, client_infer_text("none", 1));
    EXPECT_INT(client_read(fd).status, 404);
    client_send_text(fd, client_infer_text("echo", 2));
    EXPECT_INT(client_read(fd).status, 200);
    end(&live, fd);
}

#define REQUEST "POST /v2/models/echo/infer HTTP/1.1\r\n"

static void ambiguous_requests_are_refused(void)
{
    static const struct {
        const char *text;
        int status;
    } table[] = {
        {REQUEST "Host: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400},
        {REQUEST "Host: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
        {REQUEST "Host: a\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400},
        {REQUEST "Host: a\r\nHost: b\r\nContent-Length: 2\r\n\r\n{}", 400},
        {REQUEST "Content-Length: 2\r\n\r\n{}", 400},
        {REQUEST "Host: a\r\nContent-Length: +2\r\n\r\n{}", 400},
        {REQUEST "Host: a\r\nContent-Length : 2\r\n\r\n{}", 400},
        {REQUEST "Host: a\r\nX: a\rb\r\nContent-Length: 2\r\n\r\n{}", 400},
        {REQUEST "Host: a\r\nExpect: wonder\r\nContent-Length: 2\r\n\r\n{}", 417},
    };
    struct live live;
    live_start(&live, NULL);
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        expect_status(&live, table[i].text, table[i].status);
    }
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    live_stop(&live);
}

static void expected_continue_is_answered_before_the_body(void)
{
    struct live live;
    char text[400];
    int fd = begin(&live);
    const char *body = strstr(client_infer_text("echo", 5), "{\"inputs\"");
    (void)snprintf(text, sizeof(text),
                   REQUEST "Host: a\r\nExpect: 100-continue\r\nContent-Length: %zu\r\n\r\n",
                   strlen(body));
    client_send_text(fd, text);
    char interim[64] = {0};
    EXPECT(recv(fd, interim, 25, MSG_WAITALL) == 25);
    EXPECT_TEXT(interim, "HTTP/1.1 100 Continue\r\n\r\n");
    client_send_text(fd, body);
    EXPECT_INT(client_read(fd).status, 200);
    end(&live, fd);
}

static void unix_socket_serves_too_and_is_removed(void)
{
    struct live live;
    char option[100], path[64];
    (void)snprintf(path, sizeof(path), "/tmp/ifd_test_%d.sock", (int)getpid());
    (void)snprintf(option, sizeof(option), "--http-socket=%s", path);
    live_start(&live, (const char *const[]){option, NULL});
    EXPECT(access(path, F_OK) == 0);
    live_stop(&live);
    EXPECT(access(path, F_OK) != 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(one_connection_carries_many_requests),
        T(pipelined_requests_are_answered_in_order),
        T(chunked_bodies_are_read),
        T(binary_tensors_return_bit_for_bit),
        T(queries_are_ignored_and_unknown_paths_refused),
        T(head_has_the_length_but_no_body),
        T(refused_request_with_a_small_body_keeps_the_connection),
        T(ambiguous_requests_are_refused),
        T(expected_continue_is_answered_before_the_body),
        T(unix_socket_serves_too_and_is_removed),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

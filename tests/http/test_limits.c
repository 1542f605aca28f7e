/* What is bounded: bodies, queues, time, connections; and clients that go away. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

static void announced_giant_body_is_refused_without_being_read(void)
{
    struct live live;
    live_start(&live, NULL);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                         "Content-Length: 2147483648\r\n\r\n");
    struct answer answer = client_read(fd);
    EXPECT_INT(answer.status, 413);
    EXPECT_HAS(answer.body, "error");
    EXPECT(client_is_closed(fd));
    (void)close(fd);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    live_stop(&live);
}

static void unannounced_large_body_is_refused(void)
{
    struct live live;
    char chunk[1100];
    live_start(&live, (const char *const[]){"--http-max-input-size=4096", NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                         "Transfer-Encoding: chunked\r\n\r\n");
    int used = snprintf(chunk, sizeof(chunk), "400\r\n%01024d\r\n", 0);
    for (int i = 0; i < 8; i++) {
        client_send(fd, chunk, (size_t)used);
    }
    client_send_text(fd, "0\r\n\r\n");
    EXPECT_INT(client_read(fd).status, 413);
    (void)close(fd);
    live_stop(&live);
}

static void many_header_fields_are_refused(void)
{
    struct live live;
    live_start(&live, NULL);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 70; i++) {
        client_send_text(fd, "X: y\r\n");
    }
    client_send_text(fd, "\r\n");
    EXPECT_INT(client_read(fd).status, 431);
    (void)close(fd);
    live_stop(&live);
}

/* One runs, one waits, the third finds the queue full. */
static void full_queue_answers_503_with_retry_after(void)
{
    struct live live;
    int fd[3], status[3];
    struct answer last = {0};
    live_start(&live, NULL);
    int full = 0, served = 0;
    for (int i = 0; i < 3; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
    }
    for (int i = 0; i < 3; i++) {
        client_send_text(fd[i], client_infer_text("narrow", i));
        if (i == 0) {
            /* until the first is with the worker, it is in the queue itself */
            EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
            (void)usleep(200000);
        }
    }
    for (int i = 0; i < 3; i++) {
        struct answer answer = client_read(fd[i]);
        status[i] = answer.status;
        full += status[i] == 503;
        served += status[i] == 200;
        last = status[i] == 503 ? answer : last;
        (void)close(fd[i]);
    }
    EXPECT_INT(full, 1);
    EXPECT_INT(served, 2);
    EXPECT_HAS(last.head, "Retry-After:");
    EXPECT_HAS(last.body, "queue is full");
    live_stop(&live);
}

static void request_that_waits_too_long_expires(void)
{
    struct live live;
    live_start(&live, NULL);
    int first = client_connect(&live), second = client_connect(&live);
    REQUIRE(first >= 0 && second >= 0);
    client_send_text(first, client_infer_text("hasty", 1));
    (void)usleep(100000);
    client_send_text(second, client_infer_text("hasty", 2));
    struct answer answer = client_read(second);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "timeout");
    EXPECT_INT(client_read(first).status, 200);
    (void)close(first);
    (void)close(second);
    live_stop(&live);
}

static void client_that_leaves_while_waiting_frees_its_place(void)
{
    struct live live;
    live_start(&live, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++) {
            int fd = client_connect(&live);
            REQUIRE(fd >= 0);
            client_send_text(fd, client_infer_text("slow", i));
            (void)close(fd);
        }
    }
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text("slow", 9));
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    struct answer stats = client_get(&live, "/v2/models/slow/stats");
    EXPECT(strstr(stats.body, "\"inference_count\":9,") == NULL); /* not all of them were run */
    live_stop(&live);
}

static void client_that_leaves_mid_body_harms_nobody(void)
{
    struct live live;
    live_start(&live, NULL);
    for (int i = 0; i < 20; i++) {
        int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        client_send_text(fd, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                             "Content-Length: 1000000\r\n\r\n{\"inputs\":[");
        if (i % 2 == 0) {
            const struct linger reset = {.l_onoff = 1};
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        }
        (void)close(fd);
    }
    EXPECT_INT(client_get(&live, "/v2/models/echo/ready").status, 200);
    live_stop(&live);
}

static void request_that_never_ends_is_cut_off(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--http-receive-timeout-secs=1",
                                            "--http-header-timeout-secs=1", NULL});
    int body = client_connect(&live), head = client_connect(&live);
    REQUIRE(body >= 0 && head >= 0);
    client_send_text(body, "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                           "Content-Length: 1000000\r\n\r\n{\"inputs\":[");
    client_send_text(head, "GET /v2/health/live HTTP/1.1\r\nHost: a\r\nX: ");
    /* a byte now and then must not keep it alive */
    for (int i = 0; i < 30; i++) {
        (void)usleep(100000);
        (void)send(body, " ", 1, MSG_NOSIGNAL);
        (void)send(head, "x", 1, MSG_NOSIGNAL);
    }
    EXPECT_INT(client_read(body).status, 408);
    EXPECT_INT(client_read(head).status, 408);
    EXPECT(client_is_closed(body));
    EXPECT(client_is_closed(head));
    (void)close(body);
    (void)close(head);
    live_stop(&live);
}

static void a_thousand_idle_connections_leave_room(void)
{
    struct live live;
    static int fd[1000];
    int open = 0;
    live_start(&live, NULL);
    while (open < 1000) {
        fd[open] = client_connect(&live);
        if (fd[open] < 0) {
            break;
        }
        open++;
    }
    EXPECT_INT(open, 1000);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    for (int i = 0; i < open; i++) {
        (void)close(fd[i]);
    }
    live_stop(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(announced_giant_body_is_refused_without_being_read),
        T(unannounced_large_body_is_refused),
        T(many_header_fields_are_refused),
        T(full_queue_answers_503_with_retry_after),
        T(request_that_waits_too_long_expires),
        T(client_that_leaves_while_waiting_frees_its_place),
        T(client_that_leaves_mid_body_harms_nobody),
        T(request_that_never_ends_is_cut_off),
        T(a_thousand_idle_connections_leave_room),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

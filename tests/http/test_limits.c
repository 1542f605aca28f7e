/* Limits of bodies, queues, time and connections; and clients that leave. */
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

/* Of two requests for a model that does one at a time, the one that waits gets a timeout. */
static void one_of_two_expires(const struct live *live, const char *model, useconds_t between_us)
{
    int first = client_connect(live), second = client_connect(live);
    REQUIRE(first >= 0 && second >= 0);
    client_send_text(first, client_infer_text(model, 1));
    (void)usleep(between_us);
    client_send_text(second, client_infer_text(model, 2));
    const struct answer answers[] = {client_read(first), client_read(second)};
    const int late = answers[1].status == 503; /* usually the first runs and the second waits */
    EXPECT_INT(answers[late].status, 503);
    EXPECT_HAS(answers[late].body, "timeout");
    EXPECT_INT(answers[1 - late].status, 200);
    (void)close(first);
    (void)close(second);
}

static void request_that_waits_too_long_expires(void)
{
    struct live live;
    live_start(&live, NULL);
    one_of_two_expires(&live, "hasty", 100000);
    live_stop(&live);
}

/* Reading 60,000 numbers takes longer than a microsecond, so there is no time left to wait. */
static void request_whose_body_took_its_time_to_read_is_not_run(void)
{
    enum { COUNT = 60000 };
    static char body[2 * COUNT + 200];
    struct live live;
    char head[200];
    int size =
        snprintf(body, sizeof(body),
                 "{\"parameters\":{\"timeout\":1},\"inputs\":[{\"name\":\"IN\",\"shape\":[%d],"
                 "\"datatype\":\"FP32\",\"data\":[0",
                 COUNT);
    for (int i = 1; i < COUNT; i++) {
        size += snprintf(body + size, 3, ",0");
    }
    size += snprintf(body + size, 5, "]}]}");
    (void)snprintf(head, sizeof(head),
                   "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
                   size);
    live_start(&live, NULL);
    const int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, head);
    client_send(fd, body, (size_t)size);
    const struct answer answer = client_read(fd);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "Request timeout expired");
    EXPECT_INT(live_metric(&live, "\ninferd_limit_hits_total{limit=\"default-timeout-ms\"} "), 1);
    EXPECT_INT(live_metric(&live, "\ninferd_executions_total{model=\"echo\",version=\"1\"} "), 0);
    (void)close(fd);
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
    /* an occasional byte must not keep it alive */
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

/* Seven eighths of a MiB are room for 49 connections of 18 KiB. */
static void connection_that_memory_has_no_room_for_is_refused(void)
{
    enum { MANY = 60 };
    struct live live;
    int fd[MANY], refused = 0;
    live_start(&live, (const char *const[]){"--request-memory=1048576", NULL});
    for (int i = 0; i < MANY; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
    }
    /* Accepted clients are served while the others are refused. */
    client_send_text(fd[0], "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_INT(client_read(fd[0]).status, 200);
    for (int i = 49; i < MANY; i++) {
        struct answer answer = client_read(fd[i]);
        EXPECT_HAS(answer.body, "no memory for a connection");
        refused += answer.status == 503;
    }
    EXPECT_INT(refused, MANY - 49);
    EXPECT_INT(live_metric(&live, "\ninferd_http_connections_refused_total{reason=\"memory\"} "),
               refused);
    for (int i = 0; i < MANY; i++) {
        (void)close(fd[i]);
    }
    (void)usleep(300000);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    live_stop(&live);
}

/* Each takes 3/8 MiB, large blocks may take 7/8: nothing is left for the third. */
static void body_that_memory_has_no_room_for_is_refused_before_it_is_read(void)
{
    static const char head[] = "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                               "Content-Length: 393216\r\n\r\n{";
    struct live live;
    live_start(&live, (const char *const[]){"--request-memory=1048576", NULL});
    int fd[3];
    for (int i = 0; i < 2; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
        client_send_text(fd[i], head);
        EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
        (void)usleep(100000);
    }
    fd[2] = client_connect(&live);
    REQUIRE(fd[2] >= 0);
    client_send_text(fd[2], head);
    struct answer answer = client_read(fd[2]);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.head, "Retry-After: 1\r\n");
    EXPECT_HAS(answer.body, "no memory for a body of 393216 bytes");
    EXPECT(live_metric(&live, "\ninferd_limit_hits_total{limit=\"request-memory\"} ") >= 1);
    EXPECT(client_is_closed(fd[2]));
    (void)close(fd[2]);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);

    (void)close(fd[0]); /* its memory is free within a second */
    (void)usleep(1000000);
    fd[0] = client_connect(&live);
    REQUIRE(fd[0] >= 0);
    client_send_text(fd[0], head);
    (void)usleep(200000);
    char byte = 0;
    EXPECT(recv(fd[0], &byte, 1, MSG_DONTWAIT) < 0);
    (void)close(fd[0]);
    (void)close(fd[1]);
    live_stop(&live);
}

static void request_without_a_timeout_gets_the_default_one(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--default-timeout-ms=100", NULL});
    one_of_two_expires(&live, "narrow", 50000);
    live_stop(&live);
}

/* The whole header, in bytes. */
static int ask_with_header(const struct live *live, size_t bytes)
{
    static char text[1 << 17];
    int used = snprintf(text, sizeof(text), "GET /v2/health/live HTTP/1.1\r\nHost: a\r\nX: ");
    memset(text + used, 'x', bytes - (size_t)used - 4);
    memcpy(text + bytes - 4, "\r\n\r\n", 4);
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    client_send(fd, text, bytes);
    int status = client_read(fd).status;
    (void)close(fd);
    return status;
}

static void header_may_be_as_large_as_it_says_and_no_larger(void)
{
    struct live live;
    for (int i = 0; i < 2; i++) {
        size_t limit = i == 0 ? 8192 : 20000;
        live_start(&live,
                   i == 0 ? NULL : (const char *const[]){"--http-max-header-size=20000", NULL});
        EXPECT_INT(ask_with_header(&live, limit - 1), 200);
        EXPECT_INT(ask_with_header(&live, limit), 200);
        EXPECT_INT(ask_with_header(&live, limit + 1), 431);
        static const char hits[] = "\ninferd_limit_hits_total{limit=\"http-max-header-size\"} ";
        EXPECT_INT(live_metric(&live, hits), 1);
        /* also if the library has no room left and the client is still sending */
        for (size_t bytes = limit + 1000; bytes < 100000; bytes += 1999) {
            EXPECT_INT(ask_with_header(&live, bytes), 431);
        }
        EXPECT_INT(live_metric(&live, hits), 1 + (99999 - (long long)limit - 1000) / 1999 + 1);
        live_stop(&live);
    }
}

static void fields_may_be_as_many_as_they_may_and_no_more(void)
{
    struct live live;
    live_start(&live, NULL);
    for (int count = 63; count <= 65; count++) {
        char text[1024] = "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n";
        size_t used = strlen(text);
        for (int i = 1; i < count; i++) {
            used += (size_t)snprintf(text + used, sizeof(text) - used, "X: y\r\n");
        }
        (void)snprintf(text + used, sizeof(text) - used, "\r\n");
        int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        client_send_text(fd, text);
        EXPECT_INT(client_read(fd).status, count <= 64 ? 200 : 431);
        (void)close(fd);
    }
    live_stop(&live);
}

static void body_may_be_as_large_as_it_says_and_no_larger(void)
{
    static char text[6000];
    struct live live;
    live_start(&live, (const char *const[]){"--http-max-input-size=4096", NULL});
    for (int bytes = 4095; bytes <= 4097; bytes++) {
        int used = snprintf(text, sizeof(text),
                            "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"
                            "Content-Length: %d\r\n\r\n%s",
                            bytes,
                            "{\"inputs\":[{\"name\":\"IN\",\"shape\":[1],\"datatype\":\"FP32\","
                            "\"data\":[7]}]}");
        char *body = strstr(text, "\r\n\r\n") + 4;
        memset(text + used, ' ', (size_t)(body + bytes - (text + used)));
        int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        client_send(fd, text, (size_t)(body + bytes - text));
        EXPECT_INT(client_read(fd).status, bytes <= 4096 ? 200 : 413);
        (void)close(fd);
    }
    live_stop(&live);
}

static void full_server_still_says_that_it_lives(void)
{
    struct live live;
    int fd[12];
    live_start(&live, (const char *const[]){"--http-max-connections=2", NULL});
    /* Two are allowed and eight may only ask for health; the others are refused unread. */
    for (int i = 0; i < 12; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
    }
    for (int i = 10; i < 12; i++) {
        EXPECT_INT(client_read(fd[i]).status, 503);
    }
    for (int i = 0; i < 10; i++) {
        client_send_text(fd[i], client_infer_text("echo", i));
        EXPECT_INT(client_read(fd[i]).status, i < 2 ? 200 : 503);
        EXPECT(i < 2 || client_is_closed(fd[i]));
    }
    live_wait_for_metric(&live, "\ninferd_http_connections_open ", 2);
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    EXPECT_INT(client_get(&live, "/v2/models/echo/ready").status, 503);
    for (int i = 0; i < 12; i++) {
        (void)close(fd[i]);
    }
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
        T(connection_that_memory_has_no_room_for_is_refused),
        T(body_that_memory_has_no_room_for_is_refused_before_it_is_read),
        T(request_whose_body_took_its_time_to_read_is_not_run),
        T(request_without_a_timeout_gets_the_default_one),
        T(header_may_be_as_large_as_it_says_and_no_larger),
        T(fields_may_be_as_many_as_they_may_and_no_more),
        T(body_may_be_as_large_as_it_says_and_no_larger),
        T(full_server_still_says_that_it_lives),
        T(a_thousand_idle_connections_leave_room),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

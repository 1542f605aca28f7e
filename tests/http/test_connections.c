/* Connections: no descriptors, floods of nonsense, clients that leave at any moment. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/http/live.h"
#include "tests/support/test.h"

#define SECOND_NS UINT64_C(1000000000)

static uint64_t cpu_ns(void)
{
    struct timespec at = {0};
    REQUIRE(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at) == 0);
    return (uint64_t)at.tv_sec * SECOND_NS + (uint64_t)at.tv_nsec;
}

/* ---- descriptors ---- */

/* Client and server share this process's descriptors. Takes all that a low limit leaves. */
struct shortage {
    struct rlimit before;
    int hog[256], count;
};

static void take_all(struct shortage *s)
{
    REQUIRE(getrlimit(RLIMIT_NOFILE, &s->before) == 0);
    const struct rlimit tight = {.rlim_cur = 256, .rlim_max = s->before.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NOFILE, &tight) == 0);
    s->count = 0;
    while ((s->hog[s->count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        s->count++;
        REQUIRE(s->count < 256);
    }
    REQUIRE(s->count > 0);
}

static void give_all(struct shortage *s)
{
    while (s->count > 0) {
        (void)close(s->hog[--s->count]);
    }
    REQUIRE(setrlimit(RLIMIT_NOFILE, &s->before) == 0);
}

static void running_out_of_descriptors_is_survived(void)
{
    struct live live;
    struct shortage shortage;
    live_start(&live, NULL);
    int kept = client_connect(&live);
    REQUIRE(kept >= 0);
    client_send_text(kept, client_infer_text("echo", 1));
    EXPECT_INT(client_read(kept).status, 200);
    int late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    take_all(&shortage);

    /* A new client is refused at once, old ones are served. */
    client_connect_with(&live, late);
    EXPECT_INT(client_read(late).status, 503);
    client_send_text(kept, client_infer_text("echo", 2));
    EXPECT_INT(client_read(kept).status, 200);

    /* This client takes the descriptor that the last one released, perhaps the reserve: it waits
     * while the loop sleeps. */
    (void)close(late);
    late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(late >= 0);
    client_connect_with(&live, late);
    uint64_t before_ns = cpu_ns();
    (void)usleep(1000000);
    EXPECT(cpu_ns() - before_ns < SECOND_NS / 20);
    client_send_text(kept, client_infer_text("echo", 3));
    EXPECT_INT(client_read(kept).status, 200);

    give_all(&shortage);
    (void)close(late);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    EXPECT(live_metric(&live, "\ninferd_http_connections_refused_total{reason=\"descriptors\"} ") >=
           1);
    (void)close(kept);
    live_stop(&live);
}

static void load_without_descriptors_says_so_and_works_again_later(void)
{
    static const char load[] = "POST /v2/repository/models/echo/load HTTP/1.1\r\nHost: a\r\n"
                               "Content-Length: 0\r\n\r\n";
    struct live live;
    struct shortage shortage;
    live_start(&live, (const char *const[]){"--model-control-mode=explicit", "--load-model=*",
                                            "--admin-on-http", NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text("echo", 1));
    EXPECT_INT(client_read(fd).status, 200);
    take_all(&shortage);
    client_send_text(fd, load);
    struct answer answer = client_read(fd);
    EXPECT(answer.status >= 400);
    EXPECT_HAS(answer.body, "Too many open files");
    client_send_text(fd, client_infer_text("echo", 2));
    EXPECT_INT(client_read(fd).status, 200);
    give_all(&shortage);
    client_send_text(fd, load);
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    live_stop(&live);
}

/* ---- clients that leave ---- */

#define HEAD "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\n"

static void reset_and_close(int fd)
{
    const struct linger reset = {.l_onoff = 1};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    (void)close(fd);
}

/* Sends text and leaves, with an end or a reset: one more request is counted as aborted, and its
 * memory is free. */
static void leave_after(const struct live *live, const char *text, bool with_reset)
{
    static const char aborted[] = "\ninferd_http_requests_total{outcome=\"aborted\"} ";
    long long before = live_metric(live, aborted);
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    client_send_text(fd, text);
    live_wait_for_metric(live, "\ninferd_http_requests_inflight ", 1);
    if (with_reset) {
        reset_and_close(fd);
    } else {
        (void)close(fd);
    }
    live_wait_for_metric(live, aborted, before + 1);
    live_wait_for_metric(live, "\ninferd_http_connections_open ", 0);
    EXPECT_INT(live_metric(live, "\ninferd_http_requests_inflight "), 0);
}

static void client_that_leaves_is_counted_once_as_aborted_whenever_it_leaves(void)
{
    struct live live;
    live_start(&live, NULL);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    live_wait_for_metric(&live, "\ninferd_http_connections_open ", 0);
    for (int with_reset = 0; with_reset < 2; with_reset++) {
        leave_after(&live, HEAD "Content-Le", with_reset);
        leave_after(&live, HEAD "Content-Length: 500000\r\n\r\n{\"inputs\":", with_reset);
        leave_after(&live, HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"inp", with_reset);
        leave_after(&live, client_infer_text("narrow", 1), with_reset);
    }
    EXPECT_INT(live_metric(&live, "\ninferd_http_requests_total{outcome=\"aborted\"} "), 8);
    EXPECT_INT(live_metric(&live, "\ninferd_http_requests_accepted_total "), 9);
    live_stop(&live);
}

static void client_that_leaves_during_its_answer_frees_it(void)
{
    static char zeros[1 << 20];
    char head[400], json[200];
    struct live live;
    const int bytes = 16 << 20;
    live_start(&live, NULL);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    long long idle = live_metric(&live, "\ninferd_request_memory_held_bytes ");
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    int json_size = snprintf(json, sizeof(json),
                             "{\"inputs\":[{\"name\":\"IN\",\"shape\":[%d],\"datatype\":\"FP32\","
                             "\"parameters\":{\"binary_data_size\":%d}}],"
                             "\"parameters\":{\"binary_data_output\":true}}",
                             bytes / 4, bytes);
    int size = snprintf(head, sizeof(head),
                        HEAD "Content-Length: %d\r\nInference-Header-Content-Length: %d\r\n\r\n%s",
                        json_size + bytes, json_size, json);
    client_send(fd, head, (size_t)size);
    for (int i = 0; i < 16; i++) {
        client_send(fd, zeros, sizeof(zeros));
    }
    REQUIRE(recv(fd, zeros, 1000, MSG_WAITALL) == 1000);
    EXPECT(live_metric(&live, "\ninferd_request_memory_held_bytes ") > idle + bytes);
    reset_and_close(fd);
    live_wait_for_metric(&live, "\ninferd_http_requests_total{outcome=\"aborted\"} ", 1);
    EXPECT(live_metric(&live, "\ninferd_request_memory_held_bytes ") < idle + (1 << 20));
    live_stop(&live);
}

/* ---- nonsense ---- */

static void flood(const struct live *live, struct test_random *random, int rounds)
{
    static const char *const scraps[] = {"GET ",
                                         "POST ",
                                         "/v2/models/echo/infer",
                                         "/v2/health/live",
                                         " HTTP/1.1\r\n",
                                         "Host: ",
                                         "a\r\n",
                                         "Content-Length: ",
                                         "\r\n\r\n",
                                         "Transfer-Encoding: chunked",
                                         "\n",
                                         "\r",
                                         "0\r\n",
                                         "{\"inputs\":[",
                                         "100-continue"};
    for (int round = 0; round < rounds; round++) {
        char text[4096];
        size_t used = 0;
        long long pieces = test_random_int(random, 1, 60);
        for (long long i = 0; i < pieces && used + 64 < sizeof(text); i++) {
            if (test_random_int(random, 0, 3) > 0) {
                size_t at = (size_t)test_random_int(random, 0, 14);
                used += (size_t)snprintf(text + used, 64, "%s", scraps[at]);
            } else {
                text[used++] = (char)test_random_int(random, 0, 255);
            }
        }
        int fd = client_connect(live);
        REQUIRE(fd >= 0);
        (void)send(fd, text, used, MSG_NOSIGNAL);
        if (round % 2 == 0) {
            (void)shutdown(fd, SHUT_WR);
            (void)recv(fd, text, sizeof(text), MSG_DONTWAIT);
        }
        (void)close(fd);
    }
}

/* One segment has the request and the client's end; the library notices only the request. A second
 * would be too long for a client that waits for the server's end, as printf … | nc -N does. */
static void end_that_comes_with_a_request_ends_the_connection(void)
{
    struct live live;
    char text[4096];
    live_start(&live, (const char *const[]){"--http-idle-timeout-secs=1", NULL});
    for (int i = 0; i < 5; i++) {
        int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        const char *request = client_infer_text("echo", i);
        (void)send(fd, request, strlen(request), MSG_MORE);
        (void)shutdown(fd, SHUT_WR);
        EXPECT_INT(client_read(fd).status, 200);
        EXPECT_INT(recv(fd, text, sizeof(text), 0), 0);
        (void)close(fd);
    }
    EXPECT_INT(live_metric(&live, "\ninferd_limit_hits_total{limit=\"http-idle-timeout-secs\"} "),
               0);
    live_stop(&live);
}

static void floods_of_random_bytes_leave_nothing_behind(void)
{
    struct live live;
    struct test_random random = {.state = 20250417};
    live_start(&live, NULL);
    flood(&live, &random, 3000);
    live_wait_for_metric(&live, "\ninferd_http_connections_open ", 0);
    EXPECT_INT(live_metric(&live, "\ninferd_http_requests_inflight "), 0);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text("echo", 5));
    EXPECT_HAS(client_read(fd).body, "\"data\":[5");
    (void)close(fd);
    live_stop(&live);
}

/* Resident bytes of the process. */
static long long resident_bytes(void)
{
    long long pages = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    REQUIRE(in != NULL);
    REQUIRE(fscanf(in, "%*d %lld", &pages) == 1);
    (void)fclose(in);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Many clients ask at the same time: each gets its own answer, and those that left get none. */
static void clients_of_a_crowd_get_their_own_answers(void)
{
    enum { CLIENTS = 48, ROUNDS = 50 };
    struct live live;
    int fd[CLIENTS];
    char want[16];
    live_start(&live, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            client_send_text(fd[i], client_infer_text("echo", round * CLIENTS + i));
        }
        for (int i = 0; i < CLIENTS; i++) {
            const struct answer answer = client_read(fd[i]);
            (void)snprintf(want, sizeof(want), "[%d.0]", round * CLIENTS + i);
            EXPECT_INT(answer.status, 200);
            EXPECT(strstr(answer.body, want));
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        client_send_text(fd[i], client_infer_text("echo", i));
        (void)close(fd[i]);
    }
    live_wait_for_metric(&live, "\ninferd_http_connections_open ", 0);
    live_wait_for_metric(&live, "\ninferd_http_requests_inflight ", 0);
    EXPECT_INT(live_metric(&live, "\ninferd_http_requests_accepted_total "),
               live_metric(&live, "\ninferd_http_requests_total{outcome=\"ok\"} ") +
                   live_metric(&live, "\ninferd_http_requests_total{outcome=\"aborted\"} "));
    live_stop(&live);
}

/* A body of a million chunks of one byte: blanks, which JSON ignores. */
static void million_chunks_of_one_byte_cost_what_a_megabyte_costs(void)
{
    static char block[6 * 1000];
    struct live live;
    live_start(&live, NULL);
    EXPECT_INT(client_get(&live, "/v2/health/live").status, 200);
    for (size_t i = 0; i < sizeof(block); i += 6) {
        memcpy(block + i, "1\r\n \r\n", 6);
    }
    long long before = resident_bytes();
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, HEAD "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 1000; i++) {
        client_send(fd, block, sizeof(block));
    }
    EXPECT(resident_bytes() - before < 8 << 20);
    client_send_text(fd, "43\r\n{\"inputs\":[{\"name\":\"IN\",\"shape\":[1],\"datatype\":\"FP32\","
                         "\"data\":[7]}]}\r\n0\r\n\r\n");
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    live_stop(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(running_out_of_descriptors_is_survived),
        T(load_without_descriptors_says_so_and_works_again_later),
        T(client_that_leaves_is_counted_once_as_aborted_whenever_it_leaves),
        T(client_that_leaves_during_its_answer_frees_it),
        T(end_that_comes_with_a_request_ends_the_connection),
        T(floods_of_random_bytes_leave_nothing_behind),
        T(clients_of_a_crowd_get_their_own_answers),
        T(million_chunks_of_one_byte_cost_what_a_megabyte_costs),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

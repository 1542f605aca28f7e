/* Slow clients: an occasional byte does not extend a deadline, and no client delays others. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "tests/http/live.h"
#include "tests/support/test.h"

#define HEADER  "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n"
#define BODY    "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{"
#define TICK_MS 100
/* Far beyond every deadline here; reaching it is a failure, not a result. */
#define GIVE_UP_MS 60000

static long long limit_hits(const struct live *live, const char *setting)
{
    char series[128];
    (void)snprintf(series, sizeof(series), "\ninferd_limit_hits_total{limit=\"%s\"} ", setting);
    return live_metric(live, series);
}

/* Sends a byte per tick until the server closes. Returns the answer's status; 0: none. */
static int drip(int fd, char byte)
{
    for (int waited_ms = 0; waited_ms < GIVE_UP_MS; waited_ms += TICK_MS) {
        struct pollfd at = {.fd = fd, .events = POLLIN};
        if (poll(&at, 1, TICK_MS) > 0) {
            return client_read(fd).status;
        }
        (void)send(fd, &byte, 1, MSG_NOSIGNAL);
    }
    return -1;
}

static void dripping_header_is_answered_408(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--http-header-timeout-secs=1", NULL});
    const char *const starts[] = {"G", HEADER, HEADER "X:", "\r\n"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        client_send_text(fd, starts[i]);
        EXPECT_INT(drip(fd, starts[i][0] == '\r' ? '\n' : 'x'), 408);
        EXPECT(client_is_closed(fd));
        (void)close(fd);
    }
    EXPECT_INT(limit_hits(&live, "http-header-timeout-secs"), 4);
    live_stop(&live);
}

static void silent_connection_is_closed_without_a_word(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--http-header-timeout-secs=1", NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    EXPECT(client_is_closed(fd));
    (void)close(fd);
    EXPECT_INT(limit_hits(&live, "http-header-timeout-secs"), 1);
    live_stop(&live);
}

static void used_connection_has_a_deadline_for_the_next_header_too(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--http-header-timeout-secs=3",
                                            "--http-idle-timeout-secs=3600", NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, HEADER "\r\n");
    EXPECT_INT(client_read(fd).status, 200);
    EXPECT_INT(drip(fd, 'G'), 408);
    EXPECT(client_is_closed(fd));
    (void)close(fd);
    EXPECT_INT(limit_hits(&live, "http-header-timeout-secs"), 1);
    live_stop(&live);
}

static void idle_connection_is_closed(void)
{
    struct live live;
    live_start(&live, (const char *const[]){"--http-idle-timeout-secs=1", NULL});
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, HEADER "\r\n");
    EXPECT_INT(client_read(fd).status, 200);
    EXPECT(client_is_closed(fd));
    (void)close(fd);
    EXPECT_INT(limit_hits(&live, "http-idle-timeout-secs"), 1);
    live_stop(&live);
}

static void body_below_the_least_rate_is_answered_408(void)
{
    struct live live;
    live_start(&live, NULL);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, BODY);
    EXPECT_INT(drip(fd, ' '), 408);
    (void)close(fd);
    EXPECT_INT(limit_hits(&live, "http-min-receive-rate"), 1);
    live_stop(&live);
}

/* An answer many times larger than the system's buffers, to a client that reads nothing. */
static int ask_for_much(const struct live *live, int floats, int buffer_bytes)
{
    char head[400], json[200];
    static char zeros[1 << 16];
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
    int json_size = snprintf(json, sizeof(json),
                             "{\"inputs\":[{\"name\":\"IN\",\"shape\":[%d],\"datatype\":\"FP32\","
                             "\"parameters\":{\"binary_data_size\":%d}}],"
                             "\"parameters\":{\"binary_data_output\":true}}",
                             floats, floats * 4);
    int size = snprintf(head, sizeof(head),
                        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n"
                        "Inference-Header-Content-Length: %d\r\n\r\n%s",
                        json_size + floats * 4, json_size, json);
    client_send(fd, head, (size_t)size);
    for (int left = floats * 4; left > 0; left -= (int)sizeof(zeros)) {
        client_send(fd, zeros, left < (int)sizeof(zeros) ? (size_t)left : sizeof(zeros));
    }
    return fd;
}

static void reader_below_the_least_rate_is_cut_off(void)
{
    struct live live;
    live_start(&live, NULL);
    int fd = ask_for_much(&live, 8 << 20, 2048);
    live_wait_for_metric(&live, "\ninferd_limit_hits_total{limit=\"http-min-send-rate\"} ", 1);
    live_wait_for_metric(&live, "\ninferd_http_requests_total{outcome=\"timeout\"} ", 1);
    (void)close(fd);
    live_stop(&live);
}

static void answer_that_is_not_taken_in_time_is_cut_off(void)
{
    struct live live;
    live_start(&live,
               (const char *const[]){"--http-send-timeout-secs=1", "--http-min-send-rate=0", NULL});
    int fd = ask_for_much(&live, 8 << 20, 2048);
    live_wait_for_metric(&live, "\ninferd_limit_hits_total{limit=\"http-send-timeout-secs\"} ", 1);
    (void)close(fd);
    live_stop(&live);
}

#define SLOW_NAP_US       20000
#define SLOW_BYTES_PER_MS 3000
#define SLOW_LEAST_RATE   "250000"

/* For longer than the server's window, by the clock: late wake-ups are made up for, since others
 * may use the CPU. */
static void steady_slow_reader_gets_all_of_it(void)
{
    static char piece[1 << 16];
    const size_t all = (size_t)24 << 20;
    struct live live;
    size_t total = 0;
    live_start(&live, (const char *const[]){"--http-min-send-rate=" SLOW_LEAST_RATE, NULL});
    int fd = ask_for_much(&live, 6 << 20, 1 << 18);
    const uint64_t start_ns = ifd_monotonic_ns();
    for (ssize_t got = 1; got > 0 && total < all;) {
        (void)usleep(SLOW_NAP_US);
        const size_t due = (ifd_monotonic_ns() - start_ns) / 1000000 * SLOW_BYTES_PER_MS;
        while (got > 0 && total < due && total < all) {
            got = recv(fd, piece, sizeof(piece), 0);
            REQUIRE(got >= 0);
            total += (size_t)got;
        }
    }
    EXPECT(total >= all);
    (void)close(fd);
    live_stop(&live);
}

/* ---- a thousand of them ---- */

#define SLOW 1000
enum kind { SILENT, HEADER_DRIP, BODY_DRIP, READ_DRIP, KINDS };

struct good_client {
    const struct live *live;
    atomic_bool is_over;
    atomic_llong asked, wrong;
};

static void ask_well(void *arg)
{
    struct good_client *good = arg;
    int number = 0;
    int fd = client_connect(good->live);
    REQUIRE(fd >= 0);
    while (!atomic_load(&good->is_over)) {
        char want[32];
        number++;
        client_send_text(fd, client_infer_text("echo", number));
        struct answer answer = client_read(fd);
        (void)snprintf(want, sizeof(want), "\"data\":[%d", number);
        atomic_fetch_add(&good->asked, 1);
        atomic_fetch_add(&good->wrong, answer.status != 200 || !strstr(answer.body, want));
        (void)usleep(2000);
    }
    (void)close(fd);
}

static int attack(const struct live *live, enum kind kind)
{
    if (kind == READ_DRIP) {
        return ask_for_much(live, 1 << 18, 2048);
    }
    int fd = client_connect(live);
    REQUIRE(fd >= 0);
    if (kind != SILENT) {
        client_send_text(fd, kind == HEADER_DRIP ? HEADER : BODY);
    }
    return fd;
}

/* One step of a slow client; false: the server has closed it. */
static bool step(int fd, enum kind kind)
{
    char byte = 'x';
    struct pollfd at = {.fd = fd, .events = POLLRDHUP};
    if (poll(&at, 1, 0) > 0 && (at.revents & (POLLERR | POLLHUP | POLLRDHUP))) {
        return false;
    }
    if (kind == READ_DRIP) {
        (void)recv(fd, &byte, 1, MSG_DONTWAIT);
    } else if (kind != SILENT) {
        (void)send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    return true;
}

static void a_thousand_slow_clients_are_ended_and_hurt_nobody(void)
{
    static int fd[SLOW];
    struct live live;
    struct ifd_err err = {0};
    struct ifd_thread thread;
    live_start(&live, (const char *const[]){"--http-header-timeout-secs=4", NULL});
    struct good_client good = {.live = &live};
    REQUIRE_OK(ifd_thread_start(&thread, "good", ask_well, &good, ifd_alloc_system(), &err), &err);
    for (int i = 0; i < SLOW; i++) {
        fd[i] = attack(&live, (enum kind)(i % KINDS));
    }
    int open = SLOW;
    for (int waited_ms = 0; open > 0 && waited_ms < GIVE_UP_MS; waited_ms += TICK_MS) {
        for (int i = 0; i < SLOW; i++) {
            if (fd[i] >= 0 && !step(fd[i], (enum kind)(i % KINDS))) {
                (void)close(fd[i]);
                fd[i] = -1;
                open--;
            }
        }
        (void)usleep(TICK_MS * 1000);
    }
    EXPECT_INT(open, 0);
    atomic_store(&good.is_over, true);
    ifd_thread_join(&thread);
    EXPECT(atomic_load(&good.asked) > 0);
    EXPECT_INT(atomic_load(&good.wrong), 0);
    live_wait_for_metric(&live, "\ninferd_http_connections_open ", 0);
    EXPECT_INT(limit_hits(&live, "http-header-timeout-secs"), SLOW / 2);
    EXPECT_INT(limit_hits(&live, "http-min-receive-rate"), SLOW / 4);
    EXPECT_INT(limit_hits(&live, "http-min-send-rate"), SLOW / 4);
    live_stop(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(dripping_header_is_answered_408),
        T(silent_connection_is_closed_without_a_word),
        T(used_connection_has_a_deadline_for_the_next_header_too),
        T(idle_connection_is_closed),
        T(body_below_the_least_rate_is_answered_408),
        T(reader_below_the_least_rate_is_cut_off),
        T(answer_that_is_not_taken_in_time_is_cut_off),
        T(steady_slow_reader_gets_all_of_it),
        T(a_thousand_slow_clients_are_ended_and_hurt_nobody),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Stopping: every accepted request is answered. */
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

static void idle_server_stops_at_once(void)
{
    struct live live;
    live_start(&live, NULL);
    live_stop(&live);
}

static void accepted_requests_are_answered_before_the_end(void)
{
    struct live live;
    int fd[3];
    live_start(&live, NULL);
    for (int i = 0; i < 3; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
        client_send_text(fd[i], client_infer_text("slow", i));
    }
    (void)usleep(100000);
    ifd_server_stop(live.server);
    for (int i = 0; i < 3; i++) {
        struct answer answer = client_read(fd[i]);
        EXPECT_INT(answer.status, 200);
        EXPECT_HAS(answer.head, "Connection: close");
        EXPECT(client_is_closed(fd[i]));
        (void)close(fd[i]);
    }
    live_join(&live);
}

static void request_that_arrives_slowly_is_still_answered(void)
{
    struct live live;
    live_start(&live, NULL);
    const char *text = client_infer_text("echo", 4);
    size_t half = strlen(text) - 20;
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send(fd, text, half);
    (void)usleep(100000);
    ifd_server_stop(live.server);
    (void)usleep(50000);
    client_send_text(fd, text + half);
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    live_join(&live);
}

static void new_connections_are_refused_while_stopping(void)
{
    struct live live;
    live_start(&live, NULL);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text("narrow", 1)); /* takes 800 ms */
    live_wait_for_metric(&live, "\ninferd_requests_inflight{model=\"narrow\",version=\"1\"} ", 1);
    ifd_server_stop(live.server);
    for (int other = client_connect(&live); other >= 0; other = client_connect(&live)) {
        (void)close(other); /* the stop is on its way */
        (void)usleep(1000);
    }
    char byte = 0;
    EXPECT_INT(recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT), -1); /* it still runs */
    EXPECT_INT(client_read(fd).status, 200);
    (void)close(fd);
    live_join(&live);
}

static void waiting_requests_are_refused_when_time_is_up(void)
{
    struct live live;
    int fd[4], served = 0, refused = 0;
    live_start(&live, (const char *const[]){"--exit-timeout-secs=0", NULL});
    for (int i = 0; i < 4; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
        client_send_text(fd[i], client_infer_text("slow", i));
    }
    (void)usleep(100000);
    ifd_server_stop(live.server);
    for (int i = 0; i < 4; i++) {
        int status = client_read(fd[i]).status;
        served += status == 200;
        refused += status == 503;
        (void)close(fd[i]);
    }
    EXPECT_INT(served, 1); /* the one that ran */
    EXPECT_INT(refused, 3);
    live_join(&live);
}

static void client_that_left_does_not_hold_up_the_end(void)
{
    struct live live;
    live_start(&live, NULL);
    for (int i = 0; i < 3; i++) {
        int fd = client_connect(&live);
        REQUIRE(fd >= 0);
        client_send_text(fd, client_infer_text("slow", i));
        (void)usleep(20000);
        (void)close(fd);
    }
    live_stop(&live);
}

/* More than one turn of the loop accepts, and fewer than the system lets wait. */
#define CROWD 200

static atomic_bool stop_is_reached, stop_may_go_on;

/* Holds the server where it says that it stops. */
static void hold_stop(void *context, enum ifd_log_level level, const char *sentence,
                      const char *fields)
{
    (void)context;
    (void)level;
    (void)fields;
    if (strcmp(sentence, "server is stopping") == 0) {
        atomic_store(&stop_is_reached, true);
        while (!atomic_load(&stop_may_go_on)) {
            (void)usleep(1000);
        }
    }
}

static void connections_that_wait_to_be_accepted_are_served(void)
{
    struct live live;
    int fd[CROWD];
    const struct timeval give_up = {.tv_sec = 20}; /* who is not let in would wait for ever */
    live_start_as(&live, NULL, &(struct live_options){.log = hold_stop});
    ifd_server_stop(live.server);
    while (!atomic_load(&stop_is_reached)) {
        (void)usleep(1000);
    }
    for (int i = 0; i < CROWD; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
        (void)setsockopt(fd[i], SOL_SOCKET, SO_RCVTIMEO, &give_up, sizeof(give_up));
        client_send_text(fd[i], client_infer_text("echo", i));
    }
    atomic_store(&stop_may_go_on, true);
    for (int i = 0; i < CROWD; i++) {
        EXPECT_INT(client_read(fd[i]).status, 200);
        (void)close(fd[i]);
    }
    live_join(&live);
}

static void stop_soon(void *arg)
{
    (void)usleep(50000);
    ifd_server_stop(((struct live *)arg)->server);
}

static void client_that_asks_again_and_again_hears_of_the_end(void)
{
    struct live live;
    struct ifd_thread thread;
    struct ifd_err err = {0};
    struct answer answer = {0};
    live_start(&live, NULL);
    int fd = client_connect(&live);
    REQUIRE(fd >= 0);
    REQUIRE_OK(ifd_thread_start(&thread, "stop", stop_soon, &live, ifd_alloc_system(), &err), &err);
    do {
        client_send_text(fd, client_infer_text("echo", 1));
        answer = client_read(fd);
        EXPECT_INT(answer.status, 200);
    } while (answer.status == 200 && !strstr(answer.head, "Connection: close"));
    (void)close(fd);
    ifd_thread_join(&thread);
    live_join(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(idle_server_stops_at_once),
        T(accepted_requests_are_answered_before_the_end),
        T(request_that_arrives_slowly_is_still_answered),
        T(new_connections_are_refused_while_stopping),
        T(waiting_requests_are_refused_when_time_is_up),
        T(client_that_left_does_not_hold_up_the_end),
        T(connections_that_wait_to_be_accepted_are_served),
        T(client_that_asks_again_and_again_hears_of_the_end),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

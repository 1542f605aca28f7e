/* Large JSON bodies of many clients, read and written beside the loop: every answer is its own
 * client's, whoever leaves, and nobody waits for a thread behind his deadline. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/http/hold.h"
#include "tests/http/live.h"
#include "tests/support/test.h"

#define CLIENTS  4
#define ROUNDS   12
#define COUNT    40000
#define DATA_MAX (COUNT * 16)

struct client {
    const struct live *live;
    struct ifd_thread thread;
    int number, right, left;
    char data[DATA_MAX]; /* the numbers as they are sent, and have to come back */
    char request[DATA_MAX + 1024];
};

static size_t make_request(struct client *c, int round)
{
    size_t size = 0;
    for (int i = 0; i < COUNT; i++) {
        size += (size_t)snprintf(c->data + size, DATA_MAX - size, "%s%d.%d25", i > 0 ? "," : "",
                                 (i * 31 + round) % 10000, c->number);
    }
    static const char head[] = "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[";
    int length = snprintf(NULL, 0, "%s%d],\"data\":[%s]}]}", head, COUNT, c->data);
    return (size_t)snprintf(
        c->request, sizeof(c->request),
        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
        "%s%d],\"data\":[%s]}]}",
        length, head, COUNT, c->data);
}

/* The answer's data is what was sent: its length, and its text as far as the test keeps it. */
static bool is_own(const struct client *c, const struct answer *answer)
{
    const char *length = strstr(answer->head, "ontent-Length: ");
    const char *data = strstr(answer->body, "\"data\":[");
    if (answer->status != 200 || !length || !data) {
        return false;
    }
    data += strlen("\"data\":[");
    const size_t in_front = (size_t)(data - answer->body), kept = strlen(data);
    const size_t want = in_front + strlen(c->data) + strlen("]}]}");
    return strtoul(length + strlen("ontent-Length: "), NULL, 10) == want && kept > 1000 &&
           strncmp(data, c->data, kept) == 0;
}

static void ask(void *arg)
{
    struct client *c = arg;
    for (int round = 0; round < ROUNDS; round++) {
        const size_t size = make_request(c, round);
        const int fd = client_connect(c->live);
        REQUIRE(fd >= 0);
        if (round % 3 < 2) {
            client_send(fd, c->request, size);
        }
        if (round % 3 == 0) {
            const struct answer answer = client_read(fd);
            c->right += is_own(c, &answer);
        } else { /* leaves while it is read, run or written, or before it is complete */
            if (round % 3 == 2) {
                client_send(fd, c->request, size / 2);
            }
            (void)usleep((useconds_t)(round * 300));
            c->left++;
        }
        (void)close(fd);
    }
}

static void every_client_gets_its_own(void)
{
    static struct client client[CLIENTS];
    struct live live;
    struct ifd_err err = {0};
    int right = 0, left = 0;
    live_start(&live, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        client[i] = (struct client){.live = &live, .number = i + 1};
        REQUIRE_OK(ifd_thread_start(&client[i].thread, "client", ask, &client[i],
                                    ifd_alloc_system(), &err),
                   &err);
    }
    for (int i = 0; i < CLIENTS; i++) {
        ifd_thread_join(&client[i].thread);
        right += client[i].right;
        left += client[i].left;
    }
    EXPECT_INT(right, CLIENTS * ROUNDS / 3);
    EXPECT_INT(left, CLIENTS * ROUNDS / 3 * 2);
    live_wait_for_metric(&live, "\ninferd_http_requests_inflight ", 0);
    const long long ok = live_metric(&live, "\ninferd_http_requests_total{outcome=\"ok\"} ");
    const long long aborted =
        live_metric(&live, "\ninferd_http_requests_total{outcome=\"aborted\"} ");
    EXPECT(ok >= right);
    EXPECT_INT(ok + aborted, live_metric(&live, "\ninferd_http_requests_accepted_total "));
    live_stop(&live);
}

/* A drain answers what was begun. */
static void a_server_that_stops_answers_first(void)
{
    static struct client client;
    struct live live;
    live_start(&live, NULL);
    client = (struct client){.live = &live, .number = 7};
    const size_t size = make_request(&client, 0);
    int fd[3];
    for (int i = 0; i < 3; i++) {
        fd[i] = client_connect(&live);
        REQUIRE(fd[i] >= 0);
        client_send(fd[i], client.request, size - 1);
    }
    live_wait_for_metric(&live, "\ninferd_http_requests_inflight ", 3);
    for (int i = 0; i < 3; i++) {
        client_send(fd[i], client.request + size - 1, 1);
    }
    ifd_server_stop(live.server);
    for (int i = 0; i < 3; i++) {
        const struct answer answer = client_read(fd[i]);
        EXPECT(is_own(&client, &answer));
        (void)close(fd[i]);
    }
    live_join(&live);
}

/* ---- deadlines ---- */

#define HELD_COUNT 1100000 /* so large that a client that is alone leaves the loop, too */

struct held_world {
    struct live live;
    struct ifd_alloc alloc;
    struct hold hold;
};

/* Holds the thread that makes room for the tensor of HELD_COUNT numbers. */
static void *acquire(void *context, size_t size, size_t align)
{
    struct held_world *world = context;
    const struct ifd_alloc *system = ifd_alloc_system();
    if (size >= (size_t)HELD_COUNT * sizeof(float)) {
        hold_here(&world->hold);
    }
    return system->acquire(system->context, size, align);
}

static void release(void *context, void *ptr, size_t size)
{
    const struct ifd_alloc *system = ifd_alloc_system();
    (void)context;
    system->release(system->context, ptr, size);
}

/* Sends count zeros, each behind blanks, and then tail. */
static int send_zeros(const struct live *live, int count, int blanks, const char *tail)
{
    static char body[HELD_COUNT * 2 + 1000], head[200];
    int size = snprintf(body, sizeof(body),
                        "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[%d],"
                        "\"data\":[0",
                        count);
    for (int i = 1; i < count; i++) {
        size += snprintf(body + size, sizeof(body) - (size_t)size, ",%*d", blanks, 0);
    }
    size += snprintf(body + size, sizeof(body) - (size_t)size, "]}]%s}", tail);
    (void)snprintf(head, sizeof(head),
                   "POST /v2/models/echo/infer HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
                   size);
    const int fd = client_connect(live);
    REQUIRE(fd >= 0);
    client_send_text(fd, head);
    client_send(fd, body, (size_t)size);
    return fd;
}

static void nobody_waits_for_a_thread_behind_his_deadline(void)
{
    static struct held_world world;
    static const char *const options[] = {"--image-threads=1", "--default-timeout-ms=1000", NULL};
    static const char late[] = "\ninferd_limit_hits_total{limit=\"default-timeout-ms\"} ";
    memset(&world, 0, sizeof(world));
    world.alloc = (struct ifd_alloc){.context = &world, .acquire = acquire, .release = release};
    hold_init(&world.hold);
    live_start_in(&world.live, options, &world.alloc);
    const int held =
        send_zeros(&world.live, HELD_COUNT, 1, ",\"parameters\":{\"timeout\":600000000}");
    hold_wait(&world.hold);
    static const char *const short_time[] = {"", ",\"parameters\":{\"timeout\":200000}"};
    for (int i = 0; i < 2; i++) {
        const int fd = send_zeros(&world.live, 1000, 300, short_time[i]);
        const struct answer answer = client_read(fd);
        EXPECT_INT(answer.status, 503);
        EXPECT_HAS(answer.body, "Request timeout expired");
        EXPECT_INT(live_metric(&world.live, late), i + 1);
        (void)close(fd);
    }
    /* 10 minutes; none that is known before it is read */
    static const char *const long_time[] = {",\"parameters\":{\"timeout\":600000000}",
                                            ",\"parameters\":{\"timeou\\u0074\":600000000}"};
    int fd[2];
    for (int i = 0; i < 2; i++) {
        fd[i] = send_zeros(&world.live, 1000, 300, long_time[i]);
    }
    live_wait_for_metric(&world.live, "\ninferd_http_requests_inflight ", 3);
    (void)usleep(1300000); /* the server's own timeout, and the beat of the timer */
    hold_let_go(&world.hold);
    EXPECT_INT(client_read(held).status, 200);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(client_read(fd[i]).status, 200);
        (void)close(fd[i]);
    }
    EXPECT_INT(live_metric(&world.live, late), 2);
    (void)close(held);
    live_stop(&world.live);
    hold_finish(&world.hold);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_client_gets_its_own),
        T(a_server_that_stops_answers_first),
        T(nobody_waits_for_a_thread_behind_his_deadline),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Large JSON bodies of many clients, read and written beside the loop: every answer is its own
 * client's, whoever leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_client_gets_its_own),
        T(a_server_that_stops_answers_first),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

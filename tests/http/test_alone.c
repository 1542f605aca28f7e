/* A client that is alone is answered without a worker: then no request waits in a queue, as
 * statistics show. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/http/sum_world.h"
#include "tests/support/test.h"

/* A worker that has just run is not asleep yet and runs the next request, too. */
#define TRIES 2000

static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    REQUIRE(at != NULL);
    return strtoull(at + strlen(key), NULL, 10);
}

/* Time that requests of "sum" have waited so far. */
static uint64_t queued_ns(int fd)
{
    client_send_text(fd, "GET /v2/models/sum/stats HTTP/1.1\r\nHost: a\r\n\r\n");
    struct answer stats = client_read(fd);
    const char *queue = strstr(stats.body, "\"queue\":");
    REQUIRE(queue != NULL);
    return number_after(queue, "\"ns\":");
}

/* Sends count requests and counts those that did not wait for a worker; stops at the first if
 * only_one. */
static int count_unqueued(int fd, int count, bool only_one)
{
    int unqueued = 0;
    uint64_t before_ns = queued_ns(fd);
    for (int i = 0; i < count && !(only_one && unqueued > 0); i++) {
        EXPECT_INT(world_ask(fd, 100000 + i, 7), 0);
        uint64_t after_ns = queued_ns(fd);
        unqueued += after_ns == before_ns;
        before_ns = after_ns;
    }
    return unqueued;
}

static void only_client_needs_no_worker(void)
{
    struct world world;
    world_begin(&world, (const char *const[]){"--inline-run-us=100000", NULL});
    int fd = client_connect(&world.live);
    REQUIRE(fd >= 0);
    EXPECT_INT(world_ask(fd, 100000, 7), 0); /* the first one tells how long it takes */
    EXPECT_INT(count_unqueued(fd, TRIES, true), 1);
    (void)close(fd);
    EXPECT_INT(live_metric(&world.live, "\ninferd_requests_inflight{model=\"sum\",version=\"1\"} "),
               0);
    world_end(&world);
}

static void longer_runs_are_the_workers(void)
{
    struct world world;
    world_begin(&world, (const char *const[]){"--inline-run-us=0", NULL});
    int fd = client_connect(&world.live);
    REQUIRE(fd >= 0);
    EXPECT_INT(count_unqueued(fd, 20, false), 0);
    (void)close(fd);
    world_end(&world);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(only_client_needs_no_worker),
        T(longer_runs_are_the_workers),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

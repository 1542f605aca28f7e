/* Reloads in which memory fails, or the process is killed, at each step: one whole content serves
 * before and after. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/http/sum_world.h"
#include "tests/support/test.h"

/* Sends a request that may get no answer: without memory its connection is closed. 0: none. */
static int try_post(const struct world *world, const char *path)
{
    char text[200];
    int fd = client_connect(&world->live);
    REQUIRE(fd >= 0);
    (void)snprintf(text, sizeof(text),
                   "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                   path);
    client_send_text(fd, text);
    int status = client_read(fd).status;
    (void)close(fd);
    return status;
}

/* Loads and an unload while the k-th allocation fails, for every k until a round needs fewer.
 * Whatever the answers, the server then serves one whole content, and the next load without
 * failures succeeds. */
static void fail_every_allocation(bool goes_on, bool has_sums)
{
    static struct world world;
    long k = 1, refused = 0;
    bool did_fail = true;
    world.has_sums = has_sums;
    world_begin(&world, (const char *const[]){EXPLICIT, NULL});
    EXPECT_INT(world_load(&world).status, 200);
    struct fail_alloc *alloc = &world.alloc;
    for (; did_fail; k++) {
        int before = world_content(&world);
        REQUIRE(before >= 0);
        world_replace(&world, &world.content[1 - before]);
        atomic_store(&alloc->failed, false);
        atomic_store(&alloc->goes_on, goes_on);
        atomic_store(&alloc->fail_at, atomic_load(&alloc->requests) + k);
        int status = try_post(&world, "/v2/repository/models/sum/load");
        did_fail = atomic_load(&alloc->failed);
        atomic_store(&alloc->fail_at, 0);
        refused += status != 200;
        EXPECT(status == 200 || status == 503 || (status == 0 && did_fail));
        int now = world_content(&world);
        EXPECT(now == before || now == 1 - before);
        EXPECT(status != 200 || now == 1 - before);
        EXPECT_INT(world_load(&world).status, 200);
        EXPECT_INT(world_content(&world), 1 - before);
    }
    (void)printf("%ld allocations failed in turn, %ld loads were refused\n", k, refused);
    EXPECT(refused > 20);
    for (k = 1, did_fail = true; did_fail; k++) {
        atomic_store(&alloc->failed, false);
        atomic_store(&alloc->fail_at, atomic_load(&alloc->requests) + k);
        int status = try_post(&world, "/v2/repository/models/sum/unload");
        did_fail = atomic_load(&alloc->failed);
        atomic_store(&alloc->fail_at, 0);
        EXPECT(status == 200 || status == 503 || (status == 0 && did_fail));
        EXPECT_INT(world_load(&world).status, 200);
        EXPECT(world_content(&world) >= 0);
    }
    world_end(&world);
}

static void load_and_unload_survive_the_failure_of_each_allocation(void)
{
    fail_every_allocation(false, false);
}

static void load_and_unload_survive_the_failure_of_all_allocations_from_each_on(void)
{
    fail_every_allocation(true, false);
}

static void loads_of_versions_with_sums_survive_the_failure_of_each_allocation(void)
{
    fail_every_allocation(false, true);
}

static void kill_self(void)
{
    (void)raise(SIGKILL);
}

/* Message of a server process before its first load. */
struct told {
    char dir[64]; /* of live_start: the process is killed and cannot remove it */
    int content;
};

/* Serves world's repository and loads its other content; kills itself at allocation kill_at of that
 * load. If it survives, it reports the number of allocations. */
static void serve_until_killed(struct world *world, long kill_at, int tell)
{
    struct fail_alloc *alloc = &world->alloc;
    struct told told = {0};
    const char *all[] = {world->option, EXPLICIT, NULL};
    fail_alloc_init(alloc, 0);
    alloc->instead = kill_self;
    live_start_in(&world->live, all, &alloc->alloc);
    told.content = world_content(world);
    memcpy(told.dir, world->live.dir, sizeof(told.dir));
    REQUIRE(write(tell, &told, sizeof(told)) == sizeof(told));
    REQUIRE(told.content >= 0);
    world_replace(world, &world->content[1 - told.content]);
    long before = atomic_load(&alloc->requests);
    atomic_store(&alloc->fail_at, before + kill_at);
    (void)world_load(world);
    atomic_store(&alloc->fail_at, 0);
    long requests = atomic_load(&alloc->requests) - before;
    REQUIRE(write(tell, &requests, sizeof(requests)) == sizeof(requests));
    kill_self();
}

/* Content that served at the start of the process; *ret_requests 0: it was killed during its
 * load. */
static int run_until_killed(struct world *world, long kill_at, long *ret_requests)
{
    struct told told = {0};
    int tell[2], status = 0;
    *ret_requests = 0;
    REQUIRE(pipe(tell) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        (void)close(tell[0]);
        serve_until_killed(world, kill_at, tell[1]);
    }
    (void)close(tell[1]);
    REQUIRE(read(tell[0], &told, sizeof(told)) == sizeof(told));
    (void)!read(tell[0], ret_requests, sizeof(*ret_requests));
    (void)close(tell[0]);
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    live_remove_models(told.dir);
    return told.content;
}

/* Steps of a reload, distinguished by their allocations. */
static void killed_at_any_step_of_a_reload_the_next_server_converges(void)
{
    static struct world world;
    long requests = 0, step = 1, kills = 0;
    world_make(&world);
    int expected = 0;
    int files = world_entries(world_path(&world, "sum/1"));
    while (requests == 0) {
        EXPECT_INT(run_until_killed(&world, step, &requests), expected);
        expected = 1 - expected; /* it had been replaced before the load */
        kills += requests == 0;
        step++;
    }
    (void)printf("killed at %ld of %ld steps\n", kills, requests);
    EXPECT(kills > 40);
    EXPECT_INT(world_entries(world_path(&world, "sum/1")), files); /* no litter */
    world_remove(&world);
}

/* A reload needs room for the old and the new content at once. */

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(load_and_unload_survive_the_failure_of_each_allocation),
        T(load_and_unload_survive_the_failure_of_all_allocations_from_each_on),
        T(loads_of_versions_with_sums_survive_the_failure_of_each_allocation),
        T(killed_at_any_step_of_a_reload_the_next_server_converges),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

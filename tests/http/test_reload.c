/* Reloads under load: no answer is lost or wrong, nothing leaks.
 *
 *  By hand, 10000 reloads (ctest does 200):
 *
 *      test_http_reload reloads_under_load_lose_nothing 10000 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/http/sum_world.h"
#include "tests/support/test.h"

#define WARM_UP 20
/* Growth of libraries, once: independent of the number of reloads. */
#define HEAP_SLACK 1024

/* A sanitizer maps memory itself. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWNS_MAPS false
#elif defined(__has_feature)
#define OWNS_MAPS                                                                                  \
    (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) &&                      \
     !__has_feature(memory_sanitizer))
#else
#define OWNS_MAPS true
#endif

static void reload_often(struct world *world, long reloads)
{
    struct ledger *ledger = calloc(CLIENTS, sizeof(*ledger));
    REQUIRE(ledger != NULL);
    ledger_start(world, ledger);
    for (long i = 1; i <= reloads; i++) {
        world_replace(world, &world->content[i % 2]);
        struct answer answer = world_load(world);
        EXPECT_INT(answer.status, 200);
        EXPECT_INT(world_content(world), i % 2); /* after the answer, no request gets the old one */
    }
    long sent = ledger_stop(ledger);
    (void)printf("%ld reloads, %ld requests\n", reloads, sent);
    EXPECT(sent > 0);
    free(ledger);
}

static void print_footprint(const char *when, const struct footprint *f)
{
    (void)printf("%s: %ld allocations, %ld bytes, heap %zu, %d descriptors, %d threads, %d maps\n",
                 when, f->allocations, f->bytes, f->heap, f->descriptors, f->threads, f->maps);
}

/* The server keeps the memory of as many requests as were ever there at once. A round in which one
 * more of them meets the others is repeated; a leak grows in every round. */
static void reloads_under_load_lose_nothing(void)
{
    static struct world world;
    const char *number = test_arg(0);
    long reloads = number ? strtol(number, NULL, 10) : 200;
    world_begin(&world, (const char *const[]){EXPLICIT, NULL});
    reload_often(&world, WARM_UP);
    struct footprint before, after = world_settle(&world);
    int rounds = 0;
    do {
        before = after;
        reload_often(&world, reloads);
        after = world_settle(&world);
        print_footprint("before", &before);
        print_footprint("after", &after);
    } while (after.bytes > before.bytes && ++rounds <= CLIENTS);
    EXPECT_INT(after.allocations, before.allocations);
    EXPECT_INT(after.bytes, before.bytes);
    EXPECT_INT(after.descriptors, before.descriptors);
    EXPECT_INT(after.threads, before.threads);
    EXPECT_INT(after.maps, OWNS_MAPS ? before.maps : after.maps);
    EXPECT(after.heap <= before.heap + HEAP_SLACK);
    world_end(&world);
}

static void same_content_is_not_loaded_again(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){EXPLICIT, NULL});
    EXPECT_INT(world_load(&world).status, 200);
    const struct footprint before = world_settle(&world);
    struct answer stats = client_get(&world.live, "/v2/models/sum/stats");
    EXPECT_HAS(stats.body, "\"inference_count\":0");
    EXPECT_INT(world_content(&world), 0);
    for (int i = 0; i < 5; i++) {
        world_replace(&world, &world.content[0]); /* another file, other times, the same bytes */
        EXPECT_INT(world_load(&world).status, 200);
    }
    stats = client_get(&world.live, "/v2/models/sum/stats");
    EXPECT_HAS(stats.body, "\"inference_count\":1"); /* it is still the version that counted */
    EXPECT_INT(world_settle(&world).threads, before.threads);
    stats = client_get(&world.live, "/v2/models/sum/versions/9/stats");
    EXPECT_INT(stats.status, 400);
    EXPECT_HAS(stats.body, "requested version 9 of model 'sum' is not available");
    world_end(&world);
}

static void truncated_model_is_never_served(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){EXPLICIT, NULL});
    const struct content *whole = &world.content[1];
    for (size_t size = 0; size < whole->size; size += 4) {
        world_put(world_path(&world, "sum/1/model.tflite"), whole->data, size); /* in place */
        struct answer answer = world_load(&world);
        if (answer.status == 200) { /* only padding was cut off: the file is complete */
            EXPECT_INT(world_content(&world), 1);
            world_replace(&world, &world.content[0]);
            EXPECT_INT(world_load(&world).status, 200);
            continue;
        }
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(answer.body, "failed to load 'sum', ");
        EXPECT_INT(world_content(&world), 0);
    }
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    struct answer index = world_post(&world, "/v2/repository/index", "");
    EXPECT_HAS(index.body, "\"version\":\"1\",\"state\":\"READY\",\"reason\":\"");
    world_put(world_path(&world, "sum/1/model.tflite"), whole->data, whole->size);
    EXPECT_INT(world_load(&world).status, 200);
    EXPECT_INT(world_content(&world), 1);
    world_end(&world);
}

static void truncated_new_version_leaves_the_old_one_alone(void)
{
    static struct world world;
    static struct content digits;
    FILE *in = fopen(test_source("models/digits/1/model.tflite"), "rb");
    REQUIRE(in != NULL);
    digits.size = fread(digits.data, 1, sizeof(digits.data), in);
    (void)fclose(in);
    REQUIRE(digits.size > 30 * 1024 && digits.size < sizeof(digits.data));
    world_begin(&world, (const char *const[]){EXPLICIT, NULL});
    REQUIRE(mkdir(world_path(&world, "sum/2"), 0700) == 0);
    for (size_t size = 0; size < digits.size; size += 1024) {
        world_put(world_path(&world, "sum/2/model.tflite"), digits.data, size);
        struct answer answer = world_load(&world);
        EXPECT_INT(answer.status, 400);
        EXPECT_HAS(answer.body, "failed to load 'sum', ");
        EXPECT_INT(world_content(&world), 0);
    }
    struct answer index = world_post(&world, "/v2/repository/index", "");
    EXPECT_HAS(index.body, "{\"name\":\"sum\",\"version\":\"1\",\"state\":\"READY\"}");
    EXPECT_HAS(index.body, "{\"name\":\"sum\",\"version\":\"2\",\"state\":\"UNAVAILABLE\",");
    world_put(world_path(&world, "sum/2/model.tflite"), digits.data, digits.size);
    EXPECT_INT(world_load(&world).status, 200);
    EXPECT_HAS(client_get(&world.live, "/v2/models/sum").body, "\"versions\":[\"2\"]");
    REQUIRE(unlink(world_path(&world, "sum/2/model.tflite")) == 0);
    REQUIRE(rmdir(world_path(&world, "sum/2")) == 0);
    world_end(&world);
}

static void model_beyond_the_memory_budget_is_refused_and_the_old_one_stays(void)
{
    static struct world world;
    char budget[60];
    world_begin(&world, (const char *const[]){EXPLICIT, NULL});
    long long held = live_metric(&world.live, "\ninferd_memory_held_bytes ");
    EXPECT(held > (long long)world.content[0].size);
    EXPECT(live_metric(&world.live, "\ninferd_memory_budget_bytes ") > held);
    world_end(&world);
    (void)snprintf(budget, sizeof(budget), "--memory-budget=%lld", held);
    world_begin(&world, (const char *const[]){EXPLICIT, budget, NULL}); /* room for one instance */
    held = live_metric(&world.live, "\ninferd_memory_held_bytes ");
    world_end(&world);
    (void)snprintf(budget, sizeof(budget), "--memory-budget=%lld", held * 3 / 2);
    world_begin(&world, (const char *const[]){EXPLICIT, budget, NULL});
    EXPECT_INT(world_content(&world), 0);
    world_replace(&world, &world.content[1]);
    struct answer answer = world_load(&world);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body, "failed to load 'sum', file of ");
    EXPECT_HAS(answer.body, " are left (--memory-budget)");
    EXPECT_INT(world_content(&world), 0);
    EXPECT_INT(live_metric(&world.live, "\ninferd_memory_held_bytes "), held);
    EXPECT_INT(live_metric(&world.live, "\ninferd_limit_hits_total{limit=\"memory-budget\"} "), 1);
    EXPECT_INT(world_post(&world, "/v2/repository/models/sum/unload", "").status, 200);
    (void)world_settle(&world);
    EXPECT_INT(live_metric(&world.live, "\ninferd_memory_held_bytes "), 0);
    EXPECT_INT(world_load(&world).status, 200);
    EXPECT_INT(world_content(&world), 1);
    world_end(&world);
}

static void concurrent_loads_and_unloads_of_one_model_take_turns(void)
{
    static struct world world;
    int fd[12], served = 0;
    world_begin(&world, (const char *const[]){EXPLICIT, NULL});
    for (int round = 0; round < 10; round++) {
        world_replace(&world, &world.content[round % 2]);
        for (int i = 0; i < 12; i++) {
            char text[200];
            fd[i] = client_connect(&world.live);
            REQUIRE(fd[i] >= 0);
            (void)snprintf(text, sizeof(text),
                           "POST /v2/repository/models/sum/%s HTTP/1.1\r\nHost: a\r\n"
                           "Content-Length: 0\r\n\r\n",
                           i % 3 == 1 ? "unload" : "load");
            client_send_text(fd[i], text);
        }
        for (int i = 0; i < 12; i++) {
            served += client_read(fd[i]).status == 200;
            (void)close(fd[i]);
        }
        EXPECT_INT(world_load(&world).status, 200);
        EXPECT_INT(world_content(&world), round % 2);
    }
    EXPECT_INT(served, 120);
    world_end(&world);
}

static void unloaded_model_answers_what_it_accepted(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){"--model-control-mode=explicit", "--load-model=slow",
                                              "--admin-on-http", NULL});
    int fd = client_connect(&world.live);
    REQUIRE(fd >= 0);
    client_send_text(fd, client_infer_text("slow", 5));
    world_pause_ms(100);
    EXPECT_INT(world_post(&world, "/v2/repository/models/slow/unload", "").status, 200);
    struct answer index = world_post(&world, "/v2/repository/index", "");
    EXPECT_HAS(index.body, "{\"name\":\"slow\",\"version\":\"1\",\"state\":\"UNLOADING\"");
    EXPECT_INT(client_get(&world.live, "/v2/models/slow").status, 404);
    struct answer answer = client_read(fd);
    EXPECT_INT(answer.status, 200);
    EXPECT_HAS(answer.body, "[5");
    (void)close(fd);
    (void)world_settle(&world);
    index = world_post(&world, "/v2/repository/index", "");
    EXPECT_HAS(
        index.body,
        "{\"name\":\"slow\",\"version\":\"1\",\"state\":\"UNAVAILABLE\",\"reason\":\"unloaded\"");
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    EXPECT_INT(world_post(&world, "/v2/repository/models/slow/load", "").status, 200);
    EXPECT_INT(client_get(&world.live, "/v2/models/slow/ready").status, 200);
    world_end(&world);
}

static void control_is_closed_in_other_modes_and_without_leave(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){"--admin-on-http", NULL});
    struct answer answer = world_load(&world);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(answer.body, "--model-control-mode=none, it takes --model-control-mode=explicit");
    world_end(&world);
    world_begin(&world, (const char *const[]){"--model-control-mode=explicit", NULL});
    EXPECT_INT(world_load(&world).status, 403);
    world_end(&world);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(reloads_under_load_lose_nothing),
        T(same_content_is_not_loaded_again),
        T(truncated_model_is_never_served),
        T(truncated_new_version_leaves_the_old_one_alone),
        T(model_beyond_the_memory_budget_is_refused_and_the_old_one_stays),
        T(concurrent_loads_and_unloads_of_one_model_take_turns),
        T(unloaded_model_answers_what_it_accepted),
        T(control_is_closed_in_other_modes_and_without_leave),
    };
    /* Without thread caches, which count as in use, and with one heap, memory is comparable. */
    if (!getenv("GLIBC_TUNABLES")) {
        (void)setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1", 1);
        (void)execv("/proc/self/exe", argv);
    }
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Changes of the folders under --model-control-mode=poll. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/http/sum_world.h"
#include "tests/support/test.h"

#define FAST_POLL                                                                                  \
    "--model-control-mode=poll", "--repository-poll-secs=1", "--repository-settle-ms=50",          \
        "--repository-dwell-secs=0"

static bool becomes(const struct world *world, int content)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += 20) {
        if (world_content(world) == content) {
            return true;
        }
        world_pause_ms(20);
    }
    return false;
}

static void poll_takes_new_content_and_loses_nothing(void)
{
    static struct world world;
    struct ledger *ledger = calloc(CLIENTS, sizeof(*ledger));
    REQUIRE(ledger != NULL);
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    ledger_start(&world, ledger);
    world_replace(&world, &world.content[1]);
    EXPECT(becomes(&world, 1));
    world_put(world_path(&world, "sum/1/model.tflite"), world.content[0].data,
              world.content[0].size);
    EXPECT(becomes(&world, 0));
    EXPECT(ledger_stop(ledger) > 0);
    free(ledger);
    world_end(&world);
}

static void poll_never_serves_a_file_that_is_being_written(void)
{
    static struct world world;
    struct ledger *ledger = calloc(CLIENTS, sizeof(*ledger));
    REQUIRE(ledger != NULL);
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    ledger_start(&world, ledger);
    const struct content *next = &world.content[1];
    int fd = open(world_path(&world, "sum/1/model.tflite"), O_WRONLY | O_TRUNC);
    REQUIRE(fd >= 0);
    for (size_t at = 0; at < next->size; at += 64) {
        size_t size = next->size - at < 64 ? next->size - at : 64;
        REQUIRE(write(fd, next->data + at, size) == (ssize_t)size);
        world_pause_ms(200); /* slower than the settle time: loads are tried, and fail */
        EXPECT(at + size == next->size || world_content(&world) == 0);
    }
    (void)close(fd);
    EXPECT(becomes(&world, 1));
    EXPECT(ledger_stop(ledger) > 0);
    free(ledger);
    world_end(&world);
}

static void poll_keeps_models_whose_repository_went_away(void)
{
    static struct world world;
    char away[80];
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    (void)snprintf(away, sizeof(away), "%s.away", world.dir);
    REQUIRE(rename(world.dir, away) == 0);
    world_pause_ms(3500); /* three polls */
    EXPECT_INT(world_content(&world), 0);
    REQUIRE(rename(away, world.dir) == 0);
    world_replace(&world, &world.content[1]);
    EXPECT(becomes(&world, 1));
    world_end(&world);
}

/* The other repository, that of live_start, does not change. */
static void poll_keeps_models_whose_repository_is_empty_all_at_once(void)
{
    static struct world world;
    static const char empty[] = "inferd_repository_polls_total{result=\"not found\"}";
    char away[80];
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    EXPECT_INT(live_metric(&world.live, empty), 0);
    (void)snprintf(away, sizeof(away), "%s.away", world.dir);
    REQUIRE(rename(world_path(&world, "sum"), away) == 0);
    live_wait_for_count(&world.live, empty, 3);
    EXPECT_INT(world_content(&world), 0);
    REQUIRE(rename(away, world_path(&world, "sum")) == 0);
    world_replace(&world, &world.content[1]);
    EXPECT(becomes(&world, 1));
    world_end(&world);
}

/* The other repository has a model of the same name. */
static void poll_takes_no_model_of_another_repository_when_one_is_empty_all_at_once(void)
{
    static struct world world;
    char away[80], other[80], option[100], path[100];
    world_make(&world);
    (void)snprintf(away, sizeof(away), "%s.away", world.dir);
    (void)snprintf(other, sizeof(other), "%s.other", world.dir);
    (void)snprintf(option, sizeof(option), "--model-repository=%s", other);
    REQUIRE(mkdir(other, 0700) == 0);
    world_serve(&world, (const char *const[]){FAST_POLL, option, NULL});
    (void)snprintf(path, sizeof(path), "%s/sum", other);
    REQUIRE(mkdir(path, 0700) == 0);
    (void)snprintf(path, sizeof(path), "%s/sum/1", other);
    REQUIRE(mkdir(path, 0700) == 0);
    (void)snprintf(path, sizeof(path), "%s/sum/1/model.tflite", other);
    world_put(path, world.content[1].data, world.content[1].size);
    live_wait_for_count(&world.live, "\ninferd_repository_polls_total{result=\"ok\"} ", 3);
    EXPECT_INT(world_content(&world), 0); /* it is in two */
    REQUIRE(rename(world_path(&world, "sum"), away) == 0);
    live_wait_for_count(&world.live, "\ninferd_repository_polls_total{result=\"not found\"} ", 3);
    EXPECT_INT(world_content(&world), 0);
    REQUIRE(rename(away, world_path(&world, "sum")) == 0);
    REQUIRE(unlink(path) == 0);
    (void)snprintf(path, sizeof(path), "%s/sum/1", other);
    REQUIRE(rmdir(path) == 0);
    (void)snprintf(path, sizeof(path), "%s/sum", other);
    REQUIRE(rmdir(path) == 0);
    world_end(&world);
    REQUIRE(rmdir(other) == 0);
}

static void poll_unloads_a_model_that_was_removed_and_loads_it_when_it_is_back(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    REQUIRE(mkdir(world_path(&world, "other"), 0700) == 0); /* sum is not the last one */
    REQUIRE(mkdir(world_path(&world, "other/1"), 0700) == 0);
    REQUIRE(rename(world_path(&world, "sum"), world_path(&world, ".sum")) == 0);
    EXPECT(becomes(&world, -1));
    EXPECT_INT(client_get(&world.live, "/v2/models/sum").status, 404);
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    REQUIRE(rename(world_path(&world, ".sum"), world_path(&world, "sum")) == 0);
    REQUIRE(rmdir(world_path(&world, "other/1")) == 0);
    REQUIRE(rmdir(world_path(&world, "other")) == 0);
    EXPECT(becomes(&world, 0));
    world_end(&world);
}

static void poll_adds_and_removes_versions(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    static const char config[] = "version_policy { latest { num_versions: 2 } }";
    world_put(world_path(&world, "sum/config.pbtxt"), config, sizeof(config) - 1);
    REQUIRE(mkdir(world_path(&world, "sum/.2"), 0700) == 0);
    world_put(world_path(&world, "sum/.2/model.tflite"), world.content[1].data,
              world.content[1].size);
    REQUIRE(rename(world_path(&world, "sum/.2"), world_path(&world, "sum/2")) == 0);
    EXPECT(becomes(&world, 1)); /* the newest answers */
    struct answer answer = client_get(&world.live, "/v2/models/sum");
    EXPECT_HAS(answer.body, "\"versions\":[\"1\",\"2\"]");
    REQUIRE(unlink(world_path(&world, "sum/2/model.tflite")) == 0);
    REQUIRE(rmdir(world_path(&world, "sum/2")) == 0);
    EXPECT(becomes(&world, 0));
    EXPECT_INT(client_get(&world.live, "/v2/models/sum/versions/2").status, 404);
    world_end(&world);
}

/* Waits until the index has this text. */
static struct answer index_with(const struct world *world, const char *text)
{
    struct answer answer = {0};
    for (int waited = 0; waited < PATIENCE_MS && !strstr(answer.body, text); waited += 20) {
        world_pause_ms(20);
        answer = client_post(&world->live, "/v2/repository/index");
    }
    EXPECT_HAS(answer.body, text);
    return answer;
}

/* Permanent failures: a link out of the repository, an invalid name. Each scan finds them, but they
 * are retried as other failures. */
static void folders_that_cannot_be_models_are_not_tried_at_each_look(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    REQUIRE(symlink("/etc", world_path(&world, "outside")) == 0);
    REQUIRE(mkdir(world_path(&world, "odd name"), 0700) == 0);
    REQUIRE(mkdir(world_path(&world, "odd name/1"), 0700) == 0);
    EXPECT_HAS(index_with(&world, "\"next_retry\":\"4\"").body, "leads out of");
    REQUIRE(unlink(world_path(&world, "outside")) == 0);
    REQUIRE(rmdir(world_path(&world, "odd name/1")) == 0);
    REQUIRE(rmdir(world_path(&world, "odd name")) == 0);
    world_end(&world);
}

/* An abandoned upload holds newer content back without end; the index says why. */
static void file_that_an_upload_left_is_named_while_newer_content_waits_for_it(void)
{
    static struct world world;
    static const char awaiting[] = "\ninferd_models_awaiting_upload ";
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    world_put(world_path(&world, "sum/1/model.tflite.part"), "half", 4);
    world_replace(&world, &world.content[1]);
    struct answer answer = index_with(&world, "sum/1/model.tflite.part");
    EXPECT_HAS(answer.body, "{\"name\":\"sum\",\"version\":\"1\",\"state\":\"READY\",\"reason\":"
                            "\"new content is not loaded while \\\"sum/1/model.tflite.part\\\" is "
                            "there, for ");
    EXPECT_INT(live_metric(&world.live, awaiting), 1);
    EXPECT_INT(world_content(&world), 0);
    REQUIRE(unlink(world_path(&world, "sum/1/model.tflite.part")) == 0);
    EXPECT(becomes(&world, 1));
    live_wait_for_metric(&world.live, awaiting, 0);
    EXPECT(!strstr(client_post(&world.live, "/v2/repository/index").body, "not loaded while"));
    world_end(&world);
}

/* A new model is in the index while it waits, not longer. */
static void new_model_whose_upload_is_under_way_is_in_the_index(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){FAST_POLL, NULL});
    REQUIRE(mkdir(world_path(&world, "fresh"), 0700) == 0);
    REQUIRE(mkdir(world_path(&world, "fresh/3"), 0700) == 0);
    world_put(world_path(&world, "fresh/3/model.tflite.part"), "half", 4);
    struct answer answer = index_with(&world, "fresh/3/model.tflite.part");
    EXPECT_HAS(answer.body,
               "{\"name\":\"fresh\",\"version\":\"3\",\"state\":\"UNAVAILABLE\",\"reason\":");
    EXPECT_INT(client_get(&world.live, "/v2/models/fresh").status, 404);
    EXPECT_INT(client_get(&world.live, "/v2/health/ready").status, 200);
    REQUIRE(unlink(world_path(&world, "fresh/3/model.tflite.part")) == 0);
    REQUIRE(rmdir(world_path(&world, "fresh/3")) == 0);
    REQUIRE(rmdir(world_path(&world, "fresh")) == 0);
    for (int waited = 0; waited < PATIENCE_MS && strstr(answer.body, "fresh"); waited += 20) {
        world_pause_ms(20);
        answer = client_post(&world.live, "/v2/repository/index");
    }
    EXPECT(!strstr(answer.body, "fresh"));
    world_end(&world);
}

static void model_that_changes_too_often_is_held_and_counted(void)
{
    static struct world world;
    static const char held[] = "inferd_limit_hits_total{limit=\"repository-swaps-per-hour\"}";
    /* the load at the start is one of the two */
    world_begin(&world, (const char *const[]){FAST_POLL, "--repository-swaps-per-hour=2", NULL});
    EXPECT_INT(live_metric(&world.live, held), 0);
    world_replace(&world, &world.content[1]);
    EXPECT(becomes(&world, 1));
    EXPECT_INT(live_metric(&world.live, held), 1);
    world_replace(&world, &world.content[0]);
    world_pause_ms(2500); /* two polls */
    EXPECT_INT(world_content(&world), 1);
    world_end(&world);
}

#define RARE_POLL                                                                                  \
    "--model-control-mode=poll", "--repository-poll-secs=3600", "--repository-settle-ms=50"

/* A retry does not wait for the next poll. Lack of memory is not the model's fault. */
static void index_says_how_often_a_load_failed_and_when_it_is_tried_again(void)
{
    static struct world world;
    world_begin(&world, (const char *const[]){RARE_POLL, "--memory-budget=1024", NULL});
    struct answer answer = index_with(&world, "\"attempts\":\"2\",\"next_retry\":\"");
    EXPECT(strstr(answer.body, "never") == NULL);
    world_end(&world);
}

static void content_that_was_read_badly_is_read_again(void)
{
    static struct world world;
    world_make(&world);
    const struct content *whole = &world.content[0];
    world_put(world_path(&world, "sum/1/model.tflite"), whole->data, whole->size / 2);
    world_serve(&world, (const char *const[]){RARE_POLL, NULL});
    (void)index_with(&world, "\"attempts\":\"2\",\"next_retry\":\"");
    world_end(&world);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(poll_takes_new_content_and_loses_nothing),
        T(poll_never_serves_a_file_that_is_being_written),
        T(poll_keeps_models_whose_repository_went_away),
        T(poll_keeps_models_whose_repository_is_empty_all_at_once),
        T(poll_takes_no_model_of_another_repository_when_one_is_empty_all_at_once),
        T(poll_unloads_a_model_that_was_removed_and_loads_it_when_it_is_back),
        T(poll_adds_and_removes_versions),
        T(folders_that_cannot_be_models_are_not_tried_at_each_look),
        T(file_that_an_upload_left_is_named_while_newer_content_waits_for_it),
        T(new_model_whose_upload_is_under_way_is_in_the_index),
        T(model_that_changes_too_often_is_held_and_counted),
        T(index_says_how_often_a_load_failed_and_when_it_is_tried_again),
        T(content_that_was_read_badly_is_read_again),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Versions with a SHA256SUMS, in a server that would wait an hour for files to settle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/http/live.h"
#include "tests/support/test.h"

#define MODEL_BYTES 65536
#define PATIENCE_MS 60000
#define EXPLICIT    "--model-control-mode=explicit", "--load-model=m", "--admin-on-http"
#define POLL                                                                                       \
    "--model-control-mode=poll", "--repository-poll-secs=1", "--repository-settle-ms=3600000",     \
        "--repository-dwell-secs=0"

static char dir[64];
static uint8_t model[MODEL_BYTES];
static size_t model_size;

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    (void)nanosleep(&time, NULL);
}

static const char *at(const char *name)
{
    static char path[4][200];
    static unsigned turn;
    char *text = path[turn++ % 4];
    (void)snprintf(text, sizeof(path[0]), "%s/m/%s", dir, name);
    return text;
}

static void put(const char *name, const void *data, size_t size)
{
    FILE *out = fopen(at(name), "wb");
    REQUIRE(out != NULL);
    REQUIRE(fwrite(data, 1, size, out) == size);
    REQUIRE(fclose(out) == 0);
}

/* As an operator does it. */
static void shell(const char *command)
{
    char text[300];
    (void)snprintf(text, sizeof(text), "cd %s/m && %s", dir, command);
    REQUIRE(system(text) == 0);
}

static void put_version(const char *number)
{
    char name[100];
    REQUIRE(mkdir(at(number), 0700) == 0);
    (void)snprintf(name, sizeof(name), "%s/model.tflite", number);
    put(name, model, model_size);
}

/* A repository with version 1 of model m, which has no sums. */
static void make_repository(void)
{
    FILE *in = fopen(test_source("tests/data/repository/simple/1/model.tflite"), "rb");
    REQUIRE(in != NULL);
    model_size = fread(model, 1, sizeof(model), in);
    (void)fclose(in);
    REQUIRE(model_size > 0 && model_size < sizeof(model));
    (void)snprintf(dir, sizeof(dir), "/tmp/ifd_sums_XXXXXX");
    REQUIRE(mkdtemp(dir) != NULL);
    REQUIRE(mkdir(at(""), 0700) == 0);
    put_version("1");
}

static void start(struct live *live, const char *const *options)
{
    const char *all[12];
    char repository[100];
    size_t count = 0;
    (void)snprintf(repository, sizeof(repository), "--model-repository=%s", dir);
    all[count++] = repository;
    while (*options) {
        all[count++] = *options++;
    }
    all[count] = NULL;
    live_start(live, all);
}

static void end(struct live *live)
{
    char command[100];
    live_stop(live);
    (void)snprintf(command, sizeof(command), "rm -r %s", dir);
    REQUIRE(system(command) == 0);
}

static bool serves(const struct live *live, const char *versions)
{
    return strstr(client_get(live, "/v2/models/m").body, versions) != NULL;
}

static bool becomes(const struct live *live, const char *versions)
{
    for (int waited = 0; waited < PATIENCE_MS; waited += 50) {
        if (serves(live, versions)) {
            return true;
        }
        pause_ms(50);
    }
    return false;
}

static void version_that_matches_is_taken_without_settling(void)
{
    struct live live;
    make_repository();
    start(&live, (const char *const[]){POLL, NULL});
    EXPECT(serves(&live, "\"versions\":[\"1\"]"));
    pause_ms(1500); /* a scan has seen the folder: from now on changes have to settle */
    put_version("2");
    shell("cd 2 && (stat -c '# size %s %n' *; sha256sum *) > SHA256SUMS");
    EXPECT(becomes(&live, "\"versions\":[\"2\"]"));
    end(&live);
}

static void version_that_does_not_match_is_passed_over_and_named(void)
{
    struct live live;
    make_repository();
    put_version("2");
    shell("cd 2 && echo cut | sha256sum | sed 's/-/model.tflite/' > SHA256SUMS");
    start(&live, (const char *const[]){POLL, NULL});
    EXPECT(serves(&live, "\"versions\":[\"1\"]")); /* the newest that matches */
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    struct answer index = client_post(&live, "/v2/repository/index");
    EXPECT_HAS(index.body, "{\"name\":\"m\",\"version\":\"1\",\"state\":\"READY\"}");
    EXPECT_HAS(index.body, "{\"name\":\"m\",\"version\":\"2\",\"state\":\"UNAVAILABLE\",\"reason\":"
                           "\"\\\"m/2/model.tflite\\\" has SHA-256 ");
    EXPECT_HAS(index.body, ", SHA256SUMS wants 717061f0708e0380");
    shell("cd 2 && sha256sum model.tflite > SHA256SUMS");
    EXPECT(becomes(&live, "\"versions\":[\"2\"]"));
    index = client_post(&live, "/v2/repository/index");
    EXPECT(strstr(index.body, "UNAVAILABLE") == NULL);
    end(&live);
}

static void version_that_serves_is_neither_replaced_by_what_does_not_match_nor_by_an_older_one(void)
{
    struct live live;
    make_repository();
    put_version("2");
    shell("cd 2 && sha256sum model.tflite > SHA256SUMS");
    start(&live, (const char *const[]){EXPLICIT, NULL});
    EXPECT(serves(&live, "\"versions\":[\"2\"]"));
    shell("printf x >> 2/model.tflite");
    struct answer answer = client_post(&live, "/v2/repository/models/m/load");
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(answer.body, "failed to load 'm', \\\"m/2/model.tflite\\\" has SHA-256 ");
    EXPECT(serves(&live, "\"versions\":[\"2\"]"));
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    answer = client_post(&live, "/v2/repository/index");
    EXPECT_HAS(answer.body, "\"version\":\"2\",\"state\":\"READY\",\"reason\":\"\\\"m/2/model");
    shell("cd 2 && truncate -s -1 model.tflite");
    EXPECT_INT(client_post(&live, "/v2/repository/models/m/load").status, 200);
    answer = client_post(&live, "/v2/repository/index");
    EXPECT_HAS(answer.body, "\"version\":\"2\",\"state\":\"READY\"}");
    end(&live);
}

/* "all" takes the versions that match; a version that arrives later neither delays nor ends the
 * others. */
static void versions_that_match_are_taken_beside_one_that_does_not(void)
{
    static const char config[] = "version_policy { all { } }";
    struct live live;
    make_repository();
    put("config.pbtxt", config, sizeof(config) - 1);
    start(&live, (const char *const[]){EXPLICIT, NULL});
    put_version("2");
    put_version("3");
    shell("cd 2 && sha256sum model.tflite > SHA256SUMS");
    shell("cd 3 && touch SHA256SUMS");
    struct answer answer = client_post(&live, "/v2/repository/models/m/load");
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(answer.body, "\\\"m/3/model.tflite\\\" is not listed in SHA256SUMS");
    EXPECT(serves(&live, "\"versions\":[\"1\",\"2\"]"));
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    shell("cd 3 && sha256sum model.tflite > SHA256SUMS");
    EXPECT_INT(client_post(&live, "/v2/repository/models/m/load").status, 200);
    EXPECT(serves(&live, "\"versions\":[\"1\",\"2\",\"3\"]"));
    end(&live);
}

static void model_without_a_version_that_matches_is_unavailable_with_the_reason(void)
{
    struct live live;
    make_repository();
    shell("cd 1 && echo nonsense > SHA256SUMS");
    start(&live, (const char *const[]){EXPLICIT, NULL});
    EXPECT_INT(client_get(&live, "/v2/models/m").status, 404);
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 503);
    struct answer index = client_post(&live, "/v2/repository/index");
    EXPECT_HAS(index.body, "UNAVAILABLE");
    EXPECT_HAS(index.body, "m/1/SHA256SUMS:1: not a line of sha256sum");
    shell("cd 1 && sha256sum model.tflite > SHA256SUMS");
    EXPECT_INT(client_post(&live, "/v2/repository/models/m/load").status, 200);
    EXPECT_INT(client_get(&live, "/v2/health/ready").status, 200);
    end(&live);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(version_that_matches_is_taken_without_settling),
        T(version_that_does_not_match_is_passed_over_and_named),
        T(version_that_serves_is_neither_replaced_by_what_does_not_match_nor_by_an_older_one),
        T(versions_that_match_are_taken_beside_one_that_does_not),
        T(model_without_a_version_that_matches_is_unavailable_with_the_reason),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Warm-up: before a version serves, it answers finite numbers, in time. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/http/sum_world.h"
#include "tests/support/test.h"

#define INDEX         "/v2/repository/index"
#define EXPLICIT_NONE "--model-control-mode=explicit", "--admin-on-http"

static const char sample_of_file[] =
    "max_batch_size: 8 model_warmup { name: \"s\" inputs { key: \"DATA\" value { "
    "data_type: TYPE_FP32 dims: 10 input_data_file: \"ten\" } } }";

static atomic_uint odd_outputs;

static void count_odd(void *context, enum ifd_log_level level, const char *sentence,
                      const char *fields)
{
    (void)context;
    if (level == IFD_LOG_WARN && strstr(sentence, "infinite or NaN")) {
        EXPECT_HAS(fields, "model=prob version=1 output=PROB element=0");
        odd_outputs++;
    }
}

/* A server of model "prob", PROB = DATA * factor, which is not loaded yet. */
static void begin(struct world *world, const char *more)
{
    world_make(world);
    REQUIRE(mkdir(world_path(world, "prob"), 0700) == 0);
    REQUIRE(mkdir(world_path(world, "prob/1"), 0700) == 0);
    REQUIRE(mkdir(world_path(world, "prob/warmup"), 0700) == 0);
    odd_outputs = 0;
    live_start_as(&world->live, (const char *const[]){world->option, EXPLICIT_NONE, more, NULL},
                  &(struct live_options){.log = count_odd});
}

static void end(struct world *world)
{
    live_stop(&world->live);
    (void)unlink(world_path(world, "prob/1/model.tflite"));
    (void)unlink(world_path(world, "prob/warmup/ten"));
    (void)unlink(world_path(world, "prob/config.pbtxt"));
    EXPECT(rmdir(world_path(world, "prob/warmup")) == 0);
    EXPECT(rmdir(world_path(world, "prob/1")) == 0);
    EXPECT(rmdir(world_path(world, "prob")) == 0);
    world_remove(world);
}

/* The model's file with another factor than 1. */
static void put_factor(const struct world *world, uint32_t factor_bits)
{
    static const float one = 1.0f;
    static struct content content;
    unsigned found = 0;
    FILE *in = fopen(test_source("tests/data/repository/classify/1/model.tflite"), "rb");
    REQUIRE(in != NULL);
    content.size = fread(content.data, 1, sizeof(content.data), in);
    (void)fclose(in);
    for (size_t i = 0; i + sizeof(one) <= content.size; i++) {
        if (memcmp(content.data + i, &one, sizeof(one)) == 0) {
            memcpy(content.data + i, &factor_bits, sizeof(factor_bits));
            found++;
        }
    }
    REQUIRE(found == 1);
    world_put(world_path(world, "prob/1/model.tflite"), content.data, content.size);
}

static void put_text(const struct world *world, const char *path, const char *text)
{
    world_put(world_path(world, path), text, strlen(text));
}

static void put_ten(const struct world *world, float value)
{
    float ten[10];
    for (int i = 0; i < 10; i++) {
        ten[i] = value;
    }
    world_put(world_path(world, "prob/warmup/ten"), ten, sizeof(ten));
}

static struct answer load(const struct world *world)
{
    return world_post(world, "/v2/repository/models/prob/load", "");
}

enum { ONE = 0x3f800000, TWO = 0x40000000, INF = 0x7f800000, QUIET_NAN = 0x7fc00000 };

static void version_that_answers_zeros_with_nan_replaces_none_that_does_not(void)
{
    static struct world world;
    begin(&world, NULL);
    put_factor(&world, ONE);
    EXPECT_INT(load(&world).status, 200);
    EXPECT(strstr(world_post(&world, INDEX, "").body, "attempts") == NULL);
    put_factor(&world, INF);
    struct answer answer = load(&world);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(answer.body,
               "warm-up with zeros: output \\\"PROB\\\": element 0 is infinite or NaN, "
               "the version that serves");
    EXPECT_INT(client_get(&world.live, "/v2/models/prob/ready").status, 200);
    answer = world_post(&world, INDEX, "");
    EXPECT_HAS(answer.body,
               "{\"name\":\"prob\",\"version\":\"1\",\"state\":\"READY\",\"reason\":\"warm-up");
    EXPECT_HAS(answer.body, "\"attempts\":\"1\",\"next_retry\":\"never\"}");
    EXPECT_INT(load(&world).status, 400);
    EXPECT_HAS(world_post(&world, INDEX, "").body, "\"attempts\":\"2\"");
    put_text(&world, "prob/config.pbtxt", "max_batch_size: 8");
    EXPECT_INT(load(&world).status, 400); /* of another content */
    EXPECT_HAS(world_post(&world, INDEX, "").body, "\"attempts\":\"1\"");
    EXPECT_INT(live_metric(&world.live, "\ninferd_models_outdated "), 1);
    put_factor(&world, TWO);
    EXPECT_INT(load(&world).status, 200);
    EXPECT(strstr(world_post(&world, INDEX, "").body, "attempts") == NULL);
    EXPECT_INT(odd_outputs, 0);
    end(&world);
}

/* It may be sound: the model never served. */
static void model_that_answers_zeros_with_nan_is_served_with_a_warning(void)
{
    static struct world world;
    begin(&world, NULL);
    put_factor(&world, INF);
    EXPECT_INT(load(&world).status, 200);
    EXPECT_INT(odd_outputs, 1);
    put_factor(&world, QUIET_NAN);
    EXPECT_INT(load(&world).status, 200); /* nor did the one before */
    EXPECT_INT(odd_outputs, 2);
    EXPECT_INT(client_get(&world.live, "/v2/models/prob/ready").status, 200);
    end(&world);
}

static void answers_to_samples_of_files_have_to_be_finite(void)
{
    static struct world world;
    begin(&world, NULL);
    put_factor(&world, INF);
    put_text(&world, "prob/config.pbtxt", sample_of_file);
    put_ten(&world, 1.0f);
    struct answer answer = load(&world);
    EXPECT_INT(answer.status, 400);
    EXPECT_HAS(answer.body,
               "model_warmup \\\"s\\\": output \\\"PROB\\\": element 0 is infinite or NaN");
    put_factor(&world, ONE);
    EXPECT_INT(load(&world).status, 200);
    EXPECT_INT(odd_outputs, 0);
    end(&world);
}

/* Its samples replace zeros: 0 * infinity is not computed. */
static void zeros_are_not_run_where_the_config_has_samples(void)
{
    static struct world world;
    begin(&world, NULL);
    put_factor(&world, ONE);
    EXPECT_INT(load(&world).status, 200);
    put_factor(&world, TWO);
    put_text(&world, "prob/config.pbtxt", sample_of_file);
    put_ten(&world, 0.5f);
    EXPECT_INT(load(&world).status, 200);
    put_factor(&world, INF);
    put_text(&world, "prob/config.pbtxt", "max_batch_size: 8");
    EXPECT_INT(load(&world).status, 200); /* what serves was never run on zeros */
    EXPECT_INT(odd_outputs, 1);
    end(&world);
}

static void version_that_takes_too_long_is_not_served(void)
{
    static struct world world;
    static const char slow[] =
        "backend: \"identity\" input { name: \"IN\" data_type: TYPE_FP32 dims: 1 } "
        "output { name: \"OUT\" data_type: TYPE_FP32 dims: 1 } "
        "parameters { key: \"execute_delay_ms\" value { string_value: \"30\" } } ";
    char text[600];
    begin(&world, "--warm-up-timeout-ms=20");
    put_text(&world, "prob/config.pbtxt", slow);
    EXPECT_INT(load(&world).status, 200); /* no sample, no run */
    (void)snprintf(text, sizeof(text),
                   "%s model_warmup { name: \"s\" count: 3 inputs { key: \"IN\" value { "
                   "data_type: TYPE_FP32 dims: 1 zero_data: true } } }",
                   slow);
    put_text(&world, "prob/config.pbtxt", text);
    struct answer answer = load(&world);
    EXPECT_INT(answer.status, 503);
    EXPECT_HAS(answer.body,
               "model_warmup \\\"s\\\": 1 runs took "); /* the other two did not begin */
    EXPECT_HAS(answer.body, " ms, --warm-up-timeout-ms allows 20");
    EXPECT_INT(client_get(&world.live, "/v2/models/prob/ready").status, 200);
    EXPECT_HAS(world_post(&world, INDEX, "").body, "\"attempts\":\"1\",\"next_retry\":\"never\"");
    end(&world);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(version_that_answers_zeros_with_nan_replaces_none_that_does_not),
        T(model_that_answers_zeros_with_nan_is_served_with_a_warning),
        T(answers_to_samples_of_files_have_to_be_finite),
        T(zeros_are_not_run_where_the_config_has_samples),
        T(version_that_takes_too_long_is_not_served),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Metadata, readiness and configuration of a model. */
#include "tests/support/loopback.h"
#include "tests/support/test.h"

static struct loopback loop;
static struct loopback_answer answer;

static void begin(const char *path)
{
    loopback_init(&loop, ifd_alloc_system());
    loopback_get(&loop, path, &answer);
}

static void end(void)
{
    loopback_release(&answer);
    loopback_finish(&loop);
}

static void config_has_the_members_of_triton(void)
{
    begin("/v2/models/classify/config");
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(
        loopback_text(&answer),
        "{\"name\":\"classify\",\"platform\":\"\",\"backend\":\"fake\",\"runtime\":\"\","
        "\"version_policy\":{\"latest\":{\"num_versions\":1}},\"max_batch_size\":8,"
        "\"input\":[{\"name\":\"DATA\",\"data_type\":\"TYPE_FP32\",\"format\":\"FORMAT_NONE\","
        "\"dims\":[10],\"is_shape_tensor\":false,\"allow_ragged_batch\":false,\"optional\":false,"
        "\"is_non_linear_format_io\":false}],"
        "\"output\":[{\"name\":\"PROB\",\"data_type\":\"TYPE_FP32\",\"dims\":[10],"
        "\"label_filename\":\"labels.txt\",\"is_shape_tensor\":false,"
        "\"is_non_linear_format_io\":false}],\"batch_input\":[],\"batch_output\":[],"
        "\"optimization\":{\"priority\":\"PRIORITY_DEFAULT\",\"input_pinned_memory\":{"
        "\"enable\":false},\"output_pinned_memory\":{\"enable\":false},"
        "\"gather_kernel_buffer_threshold\":0,\"eager_batching\":false},"
        "\"dynamic_batching\":{\"preferred_batch_size\":[4],\"max_queue_delay_microseconds\":1000,"
        "\"preserve_ordering\":false,\"priority_levels\":0,\"default_priority_level\":0,"
        "\"default_queue_policy\":{\"timeout_action\":\"REJECT\",\"default_timeout_microseconds\":"
        "200000,\"allow_timeout_override\":false,\"max_queue_size\":2},"
        "\"priority_queue_policy\":{}},"
        "\"instance_group\":[{\"name\":\"group_0\",\"kind\":\"KIND_CPU\",\"count\":1,\"gpus\":[],"
        "\"secondary_devices\":[],\"profile\":[],\"passive\":false,\"host_policy\":\"\"}],"
        "\"default_model_filename\":\"model.fake\",\"cc_model_filenames\":{},\"metric_tags\":{},"
        "\"parameters\":{\"threads\":{\"string_value\":\"2\"}},\"model_warmup\":[]}");
    end();
}

static void config_says_formats_strings_and_policies(void)
{
    begin("/v2/models/picture/config");
    EXPECT_HAS(loopback_text(&answer), "\"data_type\":\"TYPE_UINT8\",\"format\":\"FORMAT_NHWC\"");
    EXPECT_HAS(loopback_text(&answer), "\"rate_limiter\":{\"resources\":[],\"priority\":3}}]");
    end();
    begin("/v2/models/strings/config");
    EXPECT_HAS(loopback_text(&answer), "\"data_type\":\"TYPE_STRING\"");
    EXPECT_HAS(loopback_text(&answer), "\"optional\":true");
    end();
    begin("/v2/models/simple/versions/1/config");
    EXPECT_HAS(loopback_text(&answer), "\"version_policy\":{\"all\":{}}");
    end();
}

static void metadata_of_one_version_names_that_version(void)
{
    begin("/v2/models/simple/versions/1");
    EXPECT_HAS(loopback_text(&answer), "\"versions\":[\"1\"]");
    end();
    begin("/v2/models/simple");
    EXPECT_HAS(loopback_text(&answer), "\"versions\":[\"1\",\"3\"]");
    EXPECT_HAS(loopback_text(&answer), "\"shape\":[-1,16]");
    end();
}

static void readiness_has_a_body_with_the_reason(void)
{
    begin("/v2/models/simple/ready");
    EXPECT_INT(answer.status, 200);
    EXPECT_TEXT(loopback_text(&answer), "{\"name\":\"simple\",\"ready\":true}");
    end();
    begin("/v2/models/nope/ready");
    EXPECT_INT(answer.status, 400);
    EXPECT_TEXT(loopback_text(&answer),
                "{\"name\":\"nope\",\"ready\":false,\"error\":\"Request for "
                "unknown model: 'nope' is not found\"}");
    end();
}

static void unknown_models_are_not_found(void)
{
    static const char *const paths[] = {"/v2/models/nope", "/v2/models/nope/config",
                                        "/v2/models/simple/versions/2",
                                        "/v2/models/simple/versions/2/config"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        begin(paths[i]);
        EXPECT_INT(answer.status, 404);
        EXPECT_HAS(loopback_text(&answer), "{\"error\":\"Request for unknown model: ");
        end();
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(config_has_the_members_of_triton),
        T(config_says_formats_strings_and_policies),
        T(metadata_of_one_version_names_that_version),
        T(readiness_has_a_body_with_the_reason),
        T(unknown_models_are_not_found),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "server/repo/manifest.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/str.h"
#include "server/model/parameters.h"
#include "server/repo/complete.h"
#include "server/repo/text.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

static struct ifd_arena arena;
static char heard[2000];

static void hear(void *context, const char *text)
{
    (void)context;
    size_t used = strlen(heard);
    (void)snprintf(heard + used, sizeof(heard) - used, "%s\n", text);
}

static enum ifd_code read_text(const char *text, struct ifd_model_desc *ret, struct ifd_err *err)
{
    static const struct ifd_manifest_warnings warnings = {.warn = hear};
    ifd_arena_finish(&arena);
    ifd_arena_init(&arena, ifd_alloc_system(), (size_t)16 << 20);
    heard[0] = '\0';
    return ifd_manifest_read(ifd_str(text), "config.pbtxt", &arena, &warnings, ret, err);
}

static void usual_config_is_read(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(
        read_text("# a comment\n"
                  "name: \"densenet\"\n"
                  "platform: 'tflite' max_batch_size: 8;\n"
                  "input [\n"
                  "  { name: \"data_0\" data_type: TYPE_FP32 format: FORMAT_NCHW\n"
                  "    dims: [ 3, 224, -1 ] },\n"
                  "  { name: \"b\", data_type: TYPE_STRING, dims: 1, dims: 2, optional: true }\n"
                  "]\n"
                  "output { name: \"fc\\x36_1\" data_type: TYPE_INT8 dims: [ 1000 ]\n"
                  "  label_filename: \"labels\\56txt\" }\n"
                  "instance_group [ { count: 2 kind: KIND_CPU } ]\n"
                  "version_policy: { specific { versions: [ 1, 3 ] } }\n"
                  "dynamic_batching { preferred_batch_size: [ 8, 4 ]\n"
                  "  max_queue_delay_microseconds: 100\n"
                  "  default_queue_policy { timeout_action: DELAY max_queue_size: 5 } }\n"
                  "parameters { key: \"threads\" value { string_value: \"3\" } }\n",
                  &m, &err),
        &err);
    EXPECT_TEXT(m.name, "densenet");
    EXPECT_INT(m.max_batch_size, 8);
    EXPECT_INT(m.input_count, 2);
    EXPECT_INT(m.input[0].dtype, IFD_F32);
    EXPECT_INT(m.input[0].format, IFD_FORMAT_NCHW);
    EXPECT_INT(m.input[0].shape.rank, 3);
    EXPECT_INT(m.input[0].shape.dim[2], IFD_DIM_ANY);
    EXPECT_INT(m.input[1].dtype, IFD_STR);
    EXPECT_INT(m.input[1].shape.dim[1], 2);
    EXPECT(m.input[1].optional);
    EXPECT_TEXT(m.output[0].name, "fc6_1");
    EXPECT_TEXT(m.output[0].label_filename, "labels.txt");
    EXPECT_INT(m.instance_group[0].count, 2);
    EXPECT_INT(m.version_policy, IFD_POLICY_SPECIFIC);
    EXPECT_INT(m.policy_version_count, 2);
    EXPECT_INT(m.policy_versions[1], 3);
    EXPECT(m.dynamic_batching && !m.queue_policy.reject);
    EXPECT_INT(m.preferred_batch_size[0], 4);
    EXPECT_INT(m.queue_policy.max_queue_size, 5);
    EXPECT_TEXT(ifd_desc_parameter(&m, "threads"), "3");
    EXPECT_TEXT(heard, "");
}

static void json_means_the_same(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("{ \"name\": \"m\", \"max_batch_size\": \"16\",\n"
                         "  \"input\": [{\"name\": \"x\", \"data_type\": \"TYPE_UINT8\","
                         " \"dims\": [\"3\", 4]}],\n"
                         "  \"version_policy\": {\"all\": {}},\n"
                         "  \"parameters\": {\"threads\": {\"string_value\": \"2\"}, \"k\": "
                         "{\"string_value\": \"caf\\u00e9\"}} }",
                         &m, &err),
               &err);
    EXPECT_INT(m.max_batch_size, 16);
    EXPECT_INT(m.input[0].shape.dim[0], 3);
    EXPECT_INT(m.version_policy, IFD_POLICY_ALL);
    EXPECT_TEXT(ifd_desc_parameter(&m, "threads"), "2");
    EXPECT_TEXT(ifd_desc_parameter(&m, "k"), "caf\xc3\xa9");
    EXPECT(ifd_desc_parameter(&m, "none") == NULL);
}

/* json_format.MessageToJson of protocol buffers spells names so, and its readers take both. */
static void json_may_spell_names_in_camel_case(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("{ \"name\": \"m\", \"maxBatchSize\": 16,\n"
                         "  \"input\": [{\"name\": \"x\", \"dataType\": \"TYPE_UINT8\","
                         " \"dims\": [\"3\"]}],\n"
                         "  \"versionPolicy\": {\"latest\": {\"numVersions\": 2}},\n"
                         "  \"dynamicBatching\": {\"maxQueueDelayMicroseconds\": \"70\"},\n"
                         "  \"parameters\": {\"a_b\": {\"stringValue\": \"2\"}} }",
                         &m, &err),
               &err);
    EXPECT_TEXT(heard, "");
    EXPECT_INT(m.max_batch_size, 16);
    EXPECT_INT(m.input[0].dtype, IFD_U8);
    EXPECT_INT(m.version_policy, IFD_POLICY_LATEST);
    EXPECT_INT(m.policy_latest_count, 2);
    EXPECT_INT(m.max_queue_delay_us, 70);
    EXPECT_TEXT(ifd_desc_parameter(&m, "a_b"), "2");
    EXPECT_INT(read_text("{ \"maxBatchSize\": 1, \"max_batch_size\": 1 }", &m, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "max_batch_size comes twice");
    REQUIRE_OK(
        read_text(
            "{ \"maxBatchSizes\": 1, \"maxBatch\": 2, \"MaxBatchSize\": 3, \"max-batch-size\": 4,"
            " \"max_BatchSize\": 5, \"maxbatchsize\": 6, \"max\": 7 }",
            &m, &err),
        &err);
    EXPECT_INT(m.max_batch_size, 0);
}

static void null_in_json_means_absent(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("{ \"name\": null, \"max_batch_size\": null, \"dynamic_batching\": null,"
                         " \"input\": null, \"parameters\": null }",
                         &m, &err),
               &err);
    EXPECT_TEXT(m.name, "");
    EXPECT(!m.dynamic_batching);
    EXPECT_TEXT(heard, "");
}

static void strings_are_read_as_protocol_buffers_have_them(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("name: \"one \" 'and' # more\n  \" two\"\n"
                         "backend: \"\\ud83d\\ude00 \\U0001F600 \\xf0\\x9f\\x98\\x80\"",
                         &m, &err),
               &err);
    EXPECT_TEXT(m.name, "one and two");
    EXPECT_TEXT(m.backend, "\xf0\x9f\x98\x80 \xf0\x9f\x98\x80 \xf0\x9f\x98\x80");
    REQUIRE_OK(read_text("dynamic_batching { preserve_ordering: True }", &m, &err), &err);
    EXPECT(m.preserve_ordering);
}

static void unknown_and_idle_fields_are_named(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("max_batch_sise: 3\noptimization { graph { level: 1 } }\n"
                         "input { name: \"x\" colour: \"red\" }\n",
                         &m, &err),
               &err);
    EXPECT_HAS(heard, "config.pbtxt:1: field \"max_batch_sise\" is unknown");
    EXPECT_HAS(heard, "config.pbtxt:2: field \"optimization\" has no effect here");
    EXPECT_HAS(heard, "config.pbtxt:3: field \"colour\" is unknown");
}

static void a_gpu_is_asked_of_a_backend(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("instance_group [ { count: 1 }, {\n kind: KIND_GPU } ]\n", &m, &err),
               &err);
    EXPECT_HAS(heard, "config.pbtxt:2: field \"kind\" is KIND_GPU, which has no effect here");
    EXPECT_HAS(heard, "\"GpuAcc,CpuAcc,CpuRef\"");
    REQUIRE_OK(read_text("instance_group { kind: KIND_GPU }\n"
                         "parameters { key: \"backends\" value { string_value: \"GpuAcc\" } }\n",
                         &m, &err),
               &err);
    EXPECT_TEXT(heard, "");
}

static void idle_fields_without_a_value_are_not(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("{\"runtime\": \"\", \"cc_model_filenames\": {}, \"batch_input\": [],"
                         " \"optimization\": {\"priority\": \"PRIORITY_DEFAULT\","
                         " \"input_pinned_memory\": {\"enable\": false},"
                         " \"gather_kernel_buffer_threshold\": 0},"
                         " \"input\": [{\"name\": \"x\", \"allow_ragged_batch\": false}],"
                         " \"instance_group\": [{\"passive\": false, \"host_policy\": \"\"}]}",
                         &m, &err),
               &err);
    EXPECT_TEXT(heard, "");
    REQUIRE_OK(
        read_text("optimization { cuda { graphs: false busy_wait_events: true } }", &m, &err),
        &err);
    EXPECT_HAS(heard, "field \"optimization\" has no effect here");
}

static void groups_have_a_priority(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("instance_group [ { count: 2 },"
                         " { rate_limiter { priority: 1000 resources { name: \"R\" count: 4 } } },"
                         " { rate_limiter { priority: 0 } } ]",
                         &m, &err),
               &err);
    REQUIRE(m.instance_group_count == 3);
    EXPECT_INT(m.instance_group[0].priority, 0); /* not said */
    EXPECT_INT(m.instance_group[1].priority, 1000);
    EXPECT_INT(m.instance_group[2].priority, 1);
    EXPECT_HAS(heard, "config.pbtxt:1: field \"resources\" has no effect here");
    REQUIRE_OK(read_text("{\"instanceGroup\": [{\"rateLimiter\": {\"priority\": 7}}]}", &m, &err),
               &err);
    EXPECT_INT(m.instance_group[0].priority, 7);
}

static void expect_refused(const char *text, enum ifd_code want, const char *part)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    EXPECT_CODE(read_text(text, &m, &err), want, &err);
    EXPECT_HAS(err.text, part);
}

/* What lies behind it in memory is not read. */
static void text_ends_with_its_size(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("", &m, &err), &err);
    const struct ifd_str text = {.data = "max_batch_size: 8 }", .size = 17};
    REQUIRE_OK(ifd_manifest_read(text, "config.pbtxt", &arena, NULL, &m, &err), &err);
    EXPECT_INT(m.max_batch_size, 8);
}

/* The text ends where an unreadable page begins: one byte too many ends the test. */
static void broken_text_is_not_read_beyond_its_end(void)
{
    static const char *const texts[] = {
        "a: \"\\1", "a: \"\\x1", "a: \"\\u00", "a: \"\\ud83d\\", "a: \"\\", "a: \"b", "a: 1 # b",
        "a: 1",     "a",         "a:",         "a { ",           "{ \"a\"",
    };
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *end = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(end != MAP_FAILED);
    end += page;
    REQUIRE(mprotect(end, page, PROT_NONE) == 0);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct ifd_text_field *first = NULL;
        struct ifd_err err = {0};
        const size_t size = strlen(texts[i]);
        ifd_arena_finish(&arena);
        ifd_arena_init(&arena, ifd_alloc_system(), (size_t)16 << 20);
        memcpy(end - size, texts[i], size);
        const enum ifd_code code =
            ifd_text_parse((struct ifd_str){.data = end - size, .size = size}, "config.pbtxt",
                           &arena, &first, &err);
        const bool is_whole = strncmp(texts[i], "a: 1", 4) == 0;
        EXPECT_CODE(code, is_whole ? IFD_OK : IFD_CORRUPT, &err);
    }
    EXPECT(munmap(end - page, 2 * page) == 0);
}

static void priority_levels_have_policies_of_their_own(void)
{
    static const char *const texts[] = {
        "dynamic_batching { priority_levels: 3 default_queue_policy { max_queue_size: 9 }\n"
        "  priority_queue_policy { key: 2 value { timeout_action: DELAY max_queue_size: 4 } }\n"
        "  priority_queue_policy { key: 3 value { default_timeout_microseconds: 70 } } }",
        "{\"dynamic_batching\": {\"priority_levels\": 3, \"default_queue_policy\": "
        "{\"max_queue_size\": 9}, \"priority_queue_policy\": {\"2\": {\"timeout_action\": "
        "\"DELAY\", \"max_queue_size\": 4}, \"3\": {\"default_timeout_microseconds\": 70}}}}"};
    for (size_t i = 0; i < 2; i++) {
        struct ifd_model_desc m;
        struct ifd_err err = {0};
        REQUIRE_OK(read_text(texts[i], &m, &err), &err);
        EXPECT_INT(m.queue_policy.max_queue_size, 9);
        REQUIRE(m.level_policy_count == 2);
        EXPECT_INT(m.level_policy[0].priority, 2);
        EXPECT(!m.level_policy[0].policy.reject);
        EXPECT_INT(m.level_policy[0].policy.max_queue_size, 4);
        EXPECT_INT(m.level_policy[1].priority, 3);
        EXPECT(m.level_policy[1].policy.reject);
        EXPECT_INT(m.level_policy[1].policy.default_timeout_us, 70);
    }
    expect_refused(
        "dynamic_batching { priority_levels: 1 priority_queue_policy { key: 2 value {} } }",
        IFD_INVALID, "level 2: priority_levels is 1");
    expect_refused("dynamic_batching { priority_queue_policy { key: 0 value {} } }", IFD_INVALID,
                   "\"0\" is not a priority level");
    expect_refused(
        "dynamic_batching { priority_levels: 1 priority_queue_policy { key: 1 value {} }\n"
        "priority_queue_policy { key: 1 value {} } }",
        IFD_INVALID, "config.pbtxt:2: priority level 1 has two policies");
}

static void warm_up_samples_are_read(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("model_warmup [ { name: \"a\" batch_size: 4 count: 3 inputs { key: \"x\"\n"
                         "value { data_type: TYPE_UINT8 dims: [ 2, 3 ] zero_data: true } }\n"
                         "inputs { key: \"y\" value { data_type: TYPE_FP32 dims: 5 random_data: "
                         "true } } }, { inputs { key: \"x\" value { data_type: TYPE_STRING dims: 1 "
                         "input_data_file: \"text\" } } } ]",
                         &m, &err),
               &err);
    REQUIRE(m.warm_up_count == 2 && m.warm_up[0].input_count == 2 && m.warm_up[1].input_count == 1);
    EXPECT_TEXT(m.warm_up[0].name, "a");
    EXPECT_INT(m.warm_up[0].batch_size, 4);
    EXPECT_INT(m.warm_up[0].count, 3);
    EXPECT_TEXT(m.warm_up[0].input[0].tensor.name, "x");
    EXPECT_INT(m.warm_up[0].input[0].tensor.shape.rank, 2);
    EXPECT_INT(m.warm_up[0].input[0].fill, IFD_WARM_ZEROS);
    EXPECT_INT(m.warm_up[0].input[1].fill, IFD_WARM_RANDOM);
    EXPECT_INT(m.warm_up[1].batch_size, 1);
    EXPECT_INT(m.warm_up[1].count, 1);
    EXPECT_INT(m.warm_up[1].input[0].fill, IFD_WARM_FILE);
    EXPECT_TEXT(m.warm_up[1].input[0].file, "text");
    expect_refused("model_warmup { inputs { key: \"x\" value { dims: 2 } } }", IFD_INVALID,
                   "no data_type");
    expect_refused(
        "model_warmup {\ninputs { key: \"x\" value { data_type: TYPE_FP32 dims: -1 } } }",
        IFD_INVALID, "config.pbtxt:2: value: \"{…}\" is not a sample: its dims must be 1");
    expect_refused("model_warmup { batch_size: 0 }", IFD_INVALID, "batch_size is 1 or more");
    expect_refused("model_warmup { count: 100001 }", IFD_INVALID, "count at most 100000");
    expect_refused("model_warmup: 3", IFD_INVALID, "is not a message");
}

static void broken_text_is_refused_with_the_line(void)
{
    expect_refused("name: \"x\"\nmax_batch_size: many [\n", IFD_CORRUPT, "config.pbtxt:");
    expect_refused("name: \"x\n\"", IFD_CORRUPT, "config.pbtxt:1: ");
    expect_refused("name \"x\"", IFD_CORRUPT, "expected \":\"");
    expect_refused("input {\n name: \"x\"\n", IFD_CORRUPT, "config.pbtxt:3: text ends");
    expect_refused("a: 1 }", IFD_CORRUPT, "found \"}\"");
    expect_refused("{ \"a\": 1 ", IFD_CORRUPT, "text ends");
    expect_refused("a: [1, 2", IFD_CORRUPT, "text ends");
    expect_refused("a: \"\\q\"", IFD_CORRUPT, "an escape");
    expect_refused("a: \"\\000\"", IFD_CORRUPT, "an escape");
    expect_refused("a: \"\\u0000\"", IFD_CORRUPT, "other than NUL");
    expect_refused("{ a: 1 }\nb: 2", IFD_CORRUPT, "config.pbtxt:2: found \"b:\", expected the end");
    expect_refused("a: @", IFD_CORRUPT, "a value");
    expect_refused("a: \"\\ud83d\"", IFD_CORRUPT, "an escape");
    expect_refused("a: \"\\ud83d\\u0041\"", IFD_CORRUPT, "an escape");
    expect_refused("a: \"\\ude00\"", IFD_CORRUPT, "an escape");
    expect_refused("a: \"\\U00110000\"", IFD_CORRUPT, "an escape");
    expect_refused("a: \"\\Uffffffff\"", IFD_CORRUPT, "an escape");
    expect_refused("\na: \"caf\\351\"", IFD_CORRUPT, "config.pbtxt:2: ");
    expect_refused("a: \"caf\xe9\"", IFD_CORRUPT, "UTF-8");
}

static void wrong_values_are_refused_with_the_line(void)
{
    expect_refused("\nmax_batch_size: many", IFD_INVALID, "config.pbtxt:2: max_batch_size");
    expect_refused("max_batch_size: -1", IFD_INVALID, "\"-1\"");
    expect_refused("input { name: \"x\" data_type: TYPE_FLOAT }", IFD_INVALID, "TYPE_FLOAT");
    expect_refused("input { name: \"x\" dims: 0 }", IFD_INVALID, "a dimension");
    expect_refused("input { dims: 1 }", IFD_INVALID, "has no name");
    expect_refused("input { name: \"x\" dims: [1,1,1,1,1,1,1,1,1] }", IFD_TOO_LARGE, "dimensions");
    expect_refused("instance_group { count: 0 }", IFD_INVALID, "1 to 64 are possible");
    expect_refused("instance_group { count: 64 }\ninstance_group { count: 1 }", IFD_INVALID,
                   "config.pbtxt:2: count 1 makes 65 instances");
    expect_refused("instance_group { kind: KIND_NPU }", IFD_INVALID, "KIND_CPU");
    expect_refused("instance_group { rate_limiter { priority: 1001 } }", IFD_INVALID,
                   "config.pbtxt:1: priority 1001 is more than 1000");
    expect_refused("instance_group { rate_limiter { priority: -1 } }", IFD_INVALID, "\"-1\"");
    expect_refused("instance_group { rate_limiter: 3 }", IFD_INVALID, "\"3\" is not a message");
    expect_refused("dynamic_batching { preferred_batch_size: [4, 16] } max_batch_size: 8",
                   IFD_INVALID, "preferred_batch_size 16 is not between 1 and max_batch_size, 8");
    expect_refused("dynamic_batching { preferred_batch_size: 0 } max_batch_size: 8", IFD_INVALID,
                   "preferred_batch_size 0");
    expect_refused("dynamic_batching { priority_levels: 3 default_priority_level: 4 }", IFD_INVALID,
                   "default_priority_level 4: priority_levels is 3");
    expect_refused("version_policy { latest { num_versions: 0 } }", IFD_INVALID, "1 version");
    /* Eight in text protobuf, ten to a human being. */
    expect_refused("max_batch_size: 010", IFD_INVALID, "\"010\"");
    expect_refused("version_policy { specific { versions: -01 } }", IFD_INVALID, "\"-01\"");
}

static void two_values_where_one_belongs_are_refused(void)
{
    expect_refused("max_batch_size: 4\nmax_batch_size: 8", IFD_INVALID,
                   "config.pbtxt:2: max_batch_size");
    expect_refused("max_batch_size: [4, 8]", IFD_INVALID, "twice");
    expect_refused("dynamic_batching {}\ndynamic_batching {}", IFD_INVALID, "twice");
    expect_refused("input { name: \"x\" name: \"y\" }", IFD_INVALID, "twice");
    expect_refused("version_policy { all {} latest { num_versions: 2 } }", IFD_INVALID,
                   "one of latest, all and specific");
    expect_refused("parameters { key: \"threads\" value { string_value: \"1\" } }\n"
                   "parameters { key: \"threads\" value { string_value: \"2\" } }",
                   IFD_INVALID, "config.pbtxt:2: parameter \"threads\" twice");
}

static void values_where_messages_belong_are_refused(void)
{
    expect_refused("dynamic_batching: false", IFD_INVALID, "\"false\" is not a message");
    expect_refused("version_policy: \"all\"", IFD_INVALID, "\"all\" is not a message");
    expect_refused("version_policy { all: false }", IFD_INVALID, "is not a message");
    expect_refused("instance_group: 2", IFD_INVALID, "\"2\" is not a message");
    expect_refused("dynamic_batching { default_queue_policy: 1 }", IFD_INVALID, "is not a message");
    expect_refused("name { }", IFD_INVALID, "is not a string");
}

static void what_would_change_meaning_is_refused(void)
{
    expect_refused("ensemble_scheduling { }", IFD_UNSUPPORTED, "ensemble_scheduling");
    expect_refused("model_repository_agents { agents { name: \"checksum\" } }", IFD_UNSUPPORTED,
                   "model_repository_agents");
    expect_refused("model_transaction_policy { decoupled: true }", IFD_UNSUPPORTED, "decoupled");
}

static void a_reshape_has_the_elements_of_its_dims(void)
{
    expect_refused("input { name: \"x\" dims: [3, 4] reshape { shape: [1, 3, 5] } }", IFD_INVALID,
                   "reshape of \"x\"");
    expect_refused("input { name: \"x\" dims: [2] reshape { shape: [] } }", IFD_INVALID, "reshape");
    expect_refused("output { name: \"y\" dims: [-1, 4] reshape { shape: [4] } }", IFD_INVALID,
                   "open dimensions");
    expect_refused("input { name: \"x\" dims: [1] reshape { shape: [0] } }", IFD_INVALID,
                   "a dimension");
    expect_refused("input { name: \"x\" dims: [1] reshape: true }", IFD_INVALID, "a message");
    expect_refused("output { name: \"y\" reshape { shape: [1] } }", IFD_INVALID, "needs dims");
    expect_refused("input { name: \"x\" reshape { shape: [] } }", IFD_INVALID, "needs dims");
}

static void nesting_and_fields_are_bounded(void)
{
    static char text[300000];
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    memset(text, '\0', sizeof(text));
    for (int i = 0; i < 100; i++) {
        (void)strncat(text, "a{", sizeof(text) - strlen(text) - 1);
    }
    EXPECT_INT(read_text(text, &m, &err), IFD_TOO_LARGE);
    EXPECT_HAS(err.text, "nested deeper");
    for (size_t i = 0; i + 5 < sizeof(text); i += 4) {
        memcpy(text + i, "a:1 ", 4);
    }
    EXPECT_INT(read_text(text, &m, &err), IFD_TOO_LARGE);
    EXPECT_HAS(err.text, "fields");
}

static void missing_memory_is_an_error_at_every_step(void)
{
    static const char text[] = "name: \"m\" input { name: \"x\" dims: [1,2] } "
                               "parameters { key: \"a\" value { string_value: \"b\" } }";
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_arena torture;
        struct ifd_model_desc m;
        fail_alloc_init(&fail, k);
        ifd_arena_init(&torture, &fail.alloc, (size_t)1 << 20);
        enum ifd_code code = ifd_manifest_read(ifd_str(text), "c", &torture, NULL, &m, NULL);
        ifd_arena_finish(&torture);
        bool was_failed = fail.failed;
        fail_alloc_finish(&fail);
        EXPECT_INT(code, was_failed ? IFD_NOMEM : IFD_OK);
        if (!was_failed) {
            break;
        }
    }
}

/* ---- against a model ---- */

static const struct ifd_port image_port = {
    .name = "image",
    .desc = {.dtype = IFD_U8, .shape = {.rank = 4, .dim = {1, 32, 32, 3}}},
    .batched = true};
static const struct ifd_port score_port = {
    .name = "score",
    .desc = {.dtype = IFD_F32, .shape = {.rank = 2, .dim = {1, 10}}},
    .batched = true};
static const struct ifd_model_info model_info = {
    .input = &image_port, .input_count = 1, .output = &score_port, .output_count = 1};

static enum ifd_code complete(const char *text, struct ifd_model_desc *m, struct ifd_err *err)
{
    REQUIRE_OK(read_text(text, m, err), err);
    return ifd_manifest_complete(m, &model_info, &arena, err);
}

static void empty_config_takes_everything_from_the_file(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(complete("", &m, &err), &err);
    EXPECT_INT(m.max_batch_size, 0);
    EXPECT_INT(m.input_count, 1);
    EXPECT_TEXT(m.input[0].name, "image");
    EXPECT_INT(m.input[0].shape.rank, 4);
    EXPECT_INT(m.input[0].shape.dim[0], 1);
    EXPECT_INT(m.output[0].dtype, IFD_F32);
}

static void batch_dimension_is_taken_off_when_there_is_a_max_batch_size(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(
        complete("max_batch_size: 4 output { name: \"score\" label_filename: \"l\" }", &m, &err),
        &err);
    EXPECT_INT(m.input[0].shape.rank, 3);
    EXPECT_INT(m.input[0].shape.dim[0], 32);
    EXPECT_INT(m.output[0].shape.rank, 1);
    EXPECT_TEXT(m.output[0].label_filename, "l");
}

static void first_dimension_may_be_left_open(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(complete("input { name: \"image\" dims: [-1,32,32,3] }", &m, &err), &err);
    EXPECT_INT(m.input[0].shape.dim[0], IFD_DIM_ANY);
}

/* A file may say less of its outputs than what is known when it is read. */
static void dimensions_of_an_output_may_be_left_open(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(complete("max_batch_size: 4 output { name: \"score\" dims: -1 }", &m, &err), &err);
    EXPECT_INT(m.output[0].shape.rank, 1);
    EXPECT_INT(m.output[0].shape.dim[0], IFD_DIM_ANY);
    EXPECT_INT(complete("output { name: \"score\" dims: [-1, 11] }", &m, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "output \"score\" has dims [-1,11], the file says [1,10]");
    EXPECT_INT(complete("output { name: \"score\" dims: [-1, -1, -1] }", &m, &err), IFD_INVALID);
    EXPECT_INT(complete("input { name: \"image\" dims: [1,-1,32,3] }", &m, &err), IFD_INVALID);
}

static void contradictions_are_refused_with_both_sides(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    EXPECT_INT(complete("input { name: \"picture\" }", &m, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "no input \"picture\"");
    EXPECT_HAS(err.text, "\"image\"");
    EXPECT_INT(complete("input { name: \"image\" data_type: TYPE_FP32 }", &m, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "FP32");
    EXPECT_HAS(err.text, "UINT8");
    EXPECT_INT(complete("input { name: \"image\" dims: [1,33,32,3] }", &m, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "[1,33,32,3]");
    EXPECT_HAS(err.text, "[1,32,32,3]");
    EXPECT_INT(complete("input { name: \"image\" optional: true }", &m, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "input \"image\" is optional, the file needs it");
    EXPECT_INT(complete("output { name: \"score\" } output { name: \"score\" }", &m, &err),
               IFD_INVALID);
    EXPECT_HAS(err.text, "twice");
}

static void max_batch_size_needs_a_batch_dimension(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    struct ifd_port fixed = image_port;
    fixed.batched = false;
    struct ifd_model_info info = model_info;
    info.input = &fixed;
    REQUIRE_OK(read_text("max_batch_size: 2", &m, &err), &err);
    EXPECT_INT(ifd_manifest_complete(&m, &info, &arena, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "\"image\"");
}

static void identity_needs_like_inputs_and_outputs(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("input { name: \"a\" data_type: TYPE_FP32 dims: 3 }"
                         "output { name: \"b\" data_type: TYPE_FP32 dims: 3 }",
                         &m, &err),
               &err);
    REQUIRE_OK(ifd_manifest_complete_identity(&m, &err), &err);
    REQUIRE_OK(read_text("input { name: \"a\" data_type: TYPE_FP32 dims: 3 }"
                         "output { name: \"b\" data_type: TYPE_FP32 dims: 4 }",
                         &m, &err),
               &err);
    EXPECT_INT(ifd_manifest_complete_identity(&m, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "[4]");
    REQUIRE_OK(read_text("input { name: \"a\" data_type: TYPE_FP32 dims: 3 }\n"
                         "input { name: \"a\" data_type: TYPE_FP32 dims: 3 }\n"
                         "output { name: \"b\" data_type: TYPE_FP32 dims: 3 }",
                         &m, &err),
               &err);
    EXPECT_INT(ifd_manifest_complete_identity(&m, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "config line 2: input \"a\" is listed twice");
    REQUIRE_OK(read_text("", &m, &err), &err);
    EXPECT_INT(ifd_manifest_complete_identity(&m, &err), IFD_INVALID);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(usual_config_is_read),
        T(json_means_the_same),
        T(json_may_spell_names_in_camel_case),
        T(null_in_json_means_absent),
        T(strings_are_read_as_protocol_buffers_have_them),
        T(unknown_and_idle_fields_are_named),
        T(a_gpu_is_asked_of_a_backend),
        T(groups_have_a_priority),
        T(idle_fields_without_a_value_are_not),
        T(text_ends_with_its_size),
        T(broken_text_is_not_read_beyond_its_end),
        T(priority_levels_have_policies_of_their_own),
        T(warm_up_samples_are_read),
        T(broken_text_is_refused_with_the_line),
        T(wrong_values_are_refused_with_the_line),
        T(two_values_where_one_belongs_are_refused),
        T(values_where_messages_belong_are_refused),
        T(what_would_change_meaning_is_refused),
        T(a_reshape_has_the_elements_of_its_dims),
        T(nesting_and_fields_are_bounded),
        T(missing_memory_is_an_error_at_every_step),
        T(empty_config_takes_everything_from_the_file),
        T(batch_dimension_is_taken_off_when_there_is_a_max_batch_size),
        T(first_dimension_may_be_left_open),
        T(dimensions_of_an_output_may_be_left_open),
        T(contradictions_are_refused_with_both_sides),
        T(max_batch_size_needs_a_batch_dimension),
        T(identity_needs_like_inputs_and_outputs),
    };
    int result = test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
    ifd_arena_finish(&arena);
    return result;
}

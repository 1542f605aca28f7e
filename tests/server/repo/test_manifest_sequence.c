/* sequence_batching of a model config. */
#include "server/repo/manifest.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "tests/support/test.h"

static struct ifd_arena arena;

static enum ifd_code read_text(const char *text, struct ifd_model_desc *ret, struct ifd_err *err)
{
    ifd_arena_finish(&arena);
    ifd_arena_init(&arena, ifd_alloc_system(), (size_t)16 << 20);
    return ifd_manifest_read(ifd_str(text), "config.pbtxt", &arena, NULL, ret, err);
}

static void expect_refused(const char *text, enum ifd_code want, const char *part)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    EXPECT_CODE(read_text(text, &m, &err), want, &err);
    EXPECT_HAS(err.text, part);
}

static void states_are_read(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(read_text("sequence_batching { max_sequence_idle_microseconds: 70\n"
                         "oldest { max_candidate_sequences: 9 }\n"
                         "state [ { input_name: \"in\" output_name: \"out\" data_type: TYPE_INT16\n"
                         "dims: [ -1, 3 ] initial_state { name: \"z\" data_type: TYPE_INT16\n"
                         "dims: 3 zero_data: true } }, { input_name: \"h\" } ] }",
                         &m, &err),
               &err);
    EXPECT(m.has_sequences);
    EXPECT_INT(m.max_sequence_idle_us, 70);
    EXPECT_INT(m.max_sequences, 9);
    REQUIRE(m.state_count == 2);
    EXPECT_TEXT(m.state[0].tensor.name, "in");
    EXPECT_TEXT(m.state[0].output_name, "out");
    EXPECT(m.state[0].tensor.has_dtype);
    EXPECT_INT(m.state[0].tensor.dtype, IFD_S16);
    EXPECT_INT(m.state[0].tensor.line, 3);
    REQUIRE(m.state[0].tensor.shape.rank == 2);
    EXPECT_INT(m.state[0].tensor.shape.dim[0], -1);
    EXPECT_INT(m.state[0].tensor.shape.dim[1], 3);
    EXPECT_TEXT(m.state[1].tensor.name, "h");
    EXPECT_TEXT(m.state[1].output_name, "");
    EXPECT(!m.state[1].tensor.has_dtype && !m.state[1].tensor.has_shape);
    EXPECT_INT(m.control_count, 0);
}

static void controls_are_read(void)
{
    struct ifd_model_desc m;
    struct ifd_err err = {0};
    REQUIRE_OK(
        read_text("sequence_batching { control_input [\n"
                  "{ name: \"s\" control [ { kind: CONTROL_SEQUENCE_START\n"
                  "  int32_false_true: [ -2147483648, 2147483647 ] } ] },\n"
                  "{ name: \"e\" control { kind: CONTROL_SEQUENCE_END fp32_false_true: 0.5\n"
                  "  fp32_false_true: 1 } },\n"
                  "{ name: \"r\" control { kind: CONTROL_SEQUENCE_READY\n"
                  "  bool_false_true: [ false, true ] } },\n"
                  "{ name: \"i\" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }\n"
                  "} ] }",
                  &m, &err),
        &err);
    static const struct {
        const char *name;
        enum ifd_control_kind kind;
        enum ifd_dtype dtype;
        uint32_t values;
        double value[2];
    } want[] = {
        {"s", IFD_CONTROL_START, IFD_S32, 2, {INT32_MIN, INT32_MAX}},
        {"e", IFD_CONTROL_END, IFD_F32, 2, {0.5, 1}},
        {"r", IFD_CONTROL_READY, IFD_BOOL, 2, {0, 1}},
        {"i", IFD_CONTROL_ID, IFD_U64, 0, {0, 0}},
    };
    REQUIRE(m.control_count == sizeof(want) / sizeof(want[0]));
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        const struct ifd_control_info *got = &m.control[i];
        EXPECT_TEXT(got->tensor.name, want[i].name);
        EXPECT_INT(got->kind, want[i].kind);
        EXPECT_INT(got->tensor.dtype, want[i].dtype);
        EXPECT_INT(got->value_count, want[i].values);
        EXPECT_CLOSE(got->value[0], want[i].value[0], 0);
        EXPECT_CLOSE(got->value[1], want[i].value[1], 0);
    }
}

#define CONTROL(text)                                                                              \
    "sequence_batching {\ncontrol_input { name: \"s\" control { kind: CONTROL_SEQUENCE_" text      \
    " } } }"

static void wrong_controls_are_refused_with_the_line(void)
{
    expect_refused(CONTROL("STAR"), IFD_INVALID, "config.pbtxt:2: kind: ");
    expect_refused(CONTROL("STAR"), IFD_INVALID, "CONTROL_SEQUENCE_START, _END");
    expect_refused(CONTROL("START int32_false_true: 1"), IFD_INVALID, "config.pbtxt:2: ");
    expect_refused(CONTROL("START int32_false_true: [ 0, 1, 2 ]"), IFD_INVALID,
                   "two numbers of one type");
    expect_refused(CONTROL("START int32_false_true: 0 fp32_false_true: 1"), IFD_INVALID,
                   "two numbers of one type");
    expect_refused(CONTROL("START int32_false_true: [ 0, 2147483648 ]"), IFD_INVALID,
                   "a number of its type");
    expect_refused(CONTROL("START int32_false_true: [ -2147483649, 0 ]"), IFD_INVALID,
                   "a number of its type");
    expect_refused(CONTROL("START int32_false_true: [ 0, 0.5 ]"), IFD_INVALID,
                   "a number of its type");
    expect_refused(CONTROL("START fp32_false_true: [ 0, true ]"), IFD_INVALID,
                   "a number of its type");
    expect_refused(CONTROL("CORRID"), IFD_INVALID, "a control of a kind with data_type");
    expect_refused(CONTROL("CORRID data_type: TYPE_FP32"), IFD_UNSUPPORTED, "of type FP32");
    expect_refused(CONTROL("CORRID data_type: TYPE_INT16"), IFD_UNSUPPORTED, "of type INT16");
    expect_refused(CONTROL("CORRID data_type: TYPE_STRING"), IFD_UNSUPPORTED, "of type BYTES");
    expect_refused("sequence_batching { control_input { control { kind: CONTROL_SEQUENCE_CORRID\n"
                   "data_type: TYPE_INT32 } } }",
                   IFD_INVALID, "needs a name");
    expect_refused("sequence_batching { control_input { name: \"s\" } }", IFD_INVALID,
                   "a kind with two values");
    expect_refused("sequence_batching { control_input { name: \"s\"\n"
                   "control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }\n"
                   "control { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } } }",
                   IFD_UNSUPPORTED, "config.pbtxt:3: two controls");
}

static void what_would_change_results_is_refused(void)
{
    expect_refused("sequence_batching { state { initial_state { data_file: \"x\" } } }",
                   IFD_UNSUPPORTED, "data_file");
    expect_refused("sequence_batching { generative_sequence: true }", IFD_UNSUPPORTED,
                   "generative_sequence");
    expect_refused("sequence_batching { iterative_sequence: true }", IFD_UNSUPPORTED,
                   "iterative_sequence");
}

/* 1024 of a kind are read, one more is not. */
static void too_many_states_or_controls_are_refused(void)
{
    static const struct {
        const char *entry, *limit;
    } kinds[] = {
        {"state {}", "more than 1024 states"},
        {"control_input { name: \"i\" control { kind: CONTROL_SEQUENCE_CORRID data_type: "
         "TYPE_INT32 } }",
         "more than 1024 control inputs"},
    };
    static char text[1025 * 128];
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct ifd_model_desc m;
        struct ifd_err err = {0};
        for (int count = 1024; count <= 1025; count++) {
            size_t used = (size_t)snprintf(text, sizeof(text), "sequence_batching {");
            for (int i = 0; i < count; i++) {
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", kinds[k].entry);
            }
            REQUIRE(used < sizeof(text) - 2);
            (void)snprintf(text + used, sizeof(text) - used, "}");
            EXPECT_CODE(read_text(text, &m, &err), count > 1024 ? IFD_TOO_LARGE : IFD_OK, &err);
        }
        EXPECT_HAS(err.text, kinds[k].limit);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(states_are_read),
        T(controls_are_read),
        T(wrong_controls_are_refused_with_the_line),
        T(what_would_change_results_is_refused),
        T(too_many_states_or_controls_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

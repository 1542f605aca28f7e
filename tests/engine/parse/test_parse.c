/* Recognition of formats by content, and limits of all formats. */
#include "engine/parse/parse.h"

#include <string.h>

#include "engine/parse/cut.h"
#include "tests/support/parse_file.h"
#include "tests/support/test.h"

static void expect(const char *bytes, size_t size, enum ifd_code code, const char *part)
{
    struct ifd_err err = {0};
    EXPECT_CODE(parse_bytes((struct ifd_bytes){(const uint8_t *)bytes, size}, &err), code, &err);
    EXPECT_HAS(err.text, part);
    EXPECT_INT(err.code, code);
}

static void unknown_content_is_described(void)
{
    expect("", 0, IFD_CORRUPT, "the file is empty");
    expect("PK\x03\x04", 4, IFD_CORRUPT, "4 bytes that begin with 50 4b 03 04");
    expect("<html><body>", 12, IFD_CORRUPT, "12 bytes that begin with 3c 68 74 6d 6c 3e 3c 62");
}

static void an_onnx_beginning_alone_is_no_model(void)
{
    /* ir_version 8, producer_name "pytorch" */
    expect("\x08\x08\x12\x07pytorch", 11, IFD_CORRUPT, "the model has no graph");
    expect("\x08\x08\x12\x07pyt", 7, IFD_CORRUPT, "a protobuf field is cut off");
}

static void a_tflite_identifier_alone_is_no_model(void)
{
    expect("\x1c\0\0\0TFL3", 8, IFD_CORRUPT, "damaged or cut off");
    expect("\xff\xff\xff\xffTFL3\0\0\0\0\0\0\0\0", 16, IFD_CORRUPT, "damaged or cut off");
}

static void a_file_beyond_the_limit_is_refused(void)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_parsed parsed;
    struct ifd_err err = {0};
    struct ifd_limits limits = parse_limits;
    limits.file_bytes = 15;
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    const struct ifd_bytes file = {.data = (const uint8_t *)"\x1c\0\0\0TFL3\0\0\0\0\0\0\0\0",
                                   .size = 16};
    const struct ifd_parse_options options = {.limits = &limits};
    EXPECT_CODE(ifd_parse(file, &options, &graph, &parsed, &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "16 bytes, limit 15");
    ifd_arena_finish(&arena);
}

/* Shapes of a request may be forgotten while those behind its cut are kept. */
static void texts_outlive_the_graph_in_front_of_a_cut(void)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_err err = {0};
    char word[] = "word";
    struct ifd_str text[2] = {{.data = word, .size = 4}, {.data = NULL, .size = 0}};
    const struct ifd_resume_value from = {
        .desc = {.dtype = IFD_STR, .shape = {.rank = 1, .dim = {2}}},
        .data = {.data = (const uint8_t *)text, .size = sizeof(text)},
        .is_constant = true};
    uint32_t value = 0;
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    REQUIRE_OK(ifd_resume_take(&graph, (struct ifd_bytes){0}, NULL, "t", &from, &value, &err),
               &err);
    memset(word, 'x', sizeof(word));
    memset(text, 0, sizeof(text));
    const struct ifd_str *kept = (const struct ifd_str *)(const void *)graph.value[value].data.data;
    REQUIRE(graph.value[value].is_constant && graph.value[value].data.size == sizeof(text));
    EXPECT_INT(kept[0].size, 4);
    EXPECT_BYTES(kept[0].data, "word", 4);
    EXPECT_INT(kept[1].size, 0);
    ifd_arena_finish(&arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(unknown_content_is_described),
        T(an_onnx_beginning_alone_is_no_model),
        T(a_tflite_identifier_alone_is_no_model),
        T(a_file_beyond_the_limit_is_refused),
        T(texts_outlive_the_graph_in_front_of_a_cut),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

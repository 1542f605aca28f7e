/* The text forms, letter by letter: bug reports and golden tests depend on them. */
#include "engine/ir/dump.h"

#include <string.h>

#include "tests/support/fake_ops.h"
#include "tests/support/test.h"

static char text[4096];

static void collect(void *context, const char *chunk, size_t size)
{
    (void)context;
    size_t used = strlen(text);
    REQUIRE(used + size < sizeof(text));
    memcpy(text + used, chunk, size);
    text[used + size] = '\0';
}

static const char *dump(enum ifd_dump_format format)
{
    static const float scale = 0.5f;
    static const int32_t zero_point = 3;
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    struct ifd_desc desc[] = {fake_f32(2, 1, 2), fake_f32(2, 1, 1), fake_f32(2, 1, 3)};
    desc[2].quant = (struct ifd_quant){.scale = &scale, .zero_point = &zero_point, .count = 1};
    uint32_t v[3];
    const char *name[] = {"in\n\"x\"", "w", "out"};
    for (int i = 0; i < 3; i++) {
        REQUIRE_OK(ifd_graph_add_value(&graph, name[i], &desc[i], &v[i], &err), &err);
    }
    /* FNV-1a of four zero bytes is 4b95f515 (computed apart from this code) */
    const uint8_t zero[4] = {0};
    REQUIRE_OK(ifd_graph_set_constant(&graph, v[1], (struct ifd_bytes){zero, 4}, 0, &err), &err);
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(&graph, IFD_OP_CONCAT, (uint32_t[]){v[0], v[1], IFD_NONE}, 3,
                                  &v[2], 1, &node, &err),
               &err);
    REQUIRE_OK(ifd_graph_set_io(&graph, &v[0], 1, &v[2], 1, &err), &err);
    text[0] = '\0';
    ifd_graph_dump(&graph, format, collect, NULL);
    ifd_arena_finish(&arena);
    return text;
}

static void text_has_one_line_per_thing_and_escapes_names(void)
{
    EXPECT_TEXT(dump(IFD_DUMP_TEXT),
                "input %0 \"in\\u000a\\\"x\\\"\" f32[1,2]\n"
                "const %1 \"w\" f32[1,1] hash 4b95f515\n"
                "node 0 concat(axis=1) %0 %1 - => %2 \"out\" f32[1,3] scale 0.5 zero 3\n"
                "output %2\n");
}

static void json_lists_values_and_nodes(void)
{
    EXPECT_TEXT(
        dump(IFD_DUMP_JSON),
        "{\"values\":[\n"
        "{\"name\":\"in\\u000a\\\"x\\\"\",\"type\":\"f32\",\"shape\":[1,2]},\n"
        "{\"name\":\"w\",\"type\":\"f32\",\"shape\":[1,1],\"bytes\":4,\"hash\":\"4b95f515\"},\n"
        "{\"name\":\"out\",\"type\":\"f32\",\"shape\":[1,3],\"axis\":0,\"scale\":[0.5],\"zero_"
        "point\":[3]}],\n"
        "\"nodes\":[\n"
        "{\"op\":\"concat\",\"attrs\":\"axis=1\",\"inputs\":[0,1,null],\"outputs\":[2]}],\n"
        "\"inputs\":[0],\n"
        "\"outputs\":[2]}\n");
}

static void dot_draws_nodes_and_leaves_constants_out(void)
{
    EXPECT_TEXT(dump(IFD_DUMP_DOT), "digraph model {\n"
                                    "node [shape=box]\n"
                                    "i0 [shape=ellipse,label=\"in\\u000a\\\"x\\\"\"]\n"
                                    "n0 [label=\"concat\"]\n"
                                    "i0 -> n0 [label=\"f32 [1,2]\"]\n"
                                    "o0 [shape=ellipse,label=\"out\"]\n"
                                    "n0 -> o0 [label=\"f32 [1,3]\"]\n"
                                    "}\n");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(text_has_one_line_per_thing_and_escapes_names),
        T(json_lists_values_and_nodes),
        T(dot_draws_nodes_and_leaves_constants_out),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

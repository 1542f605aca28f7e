/* The builder: what it computes at once, and what it makes only once. */
#include "engine/build/builder.h"

#include "tests/support/test.h"

#define ROWS    24
#define COLUMNS 16

static float weights[ROWS * COLUMNS + 64 / sizeof(float)]; /* and padding */

static uint32_t constant(struct ifd_builder *b, int64_t rows, int64_t columns)
{
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = {.rank = 2, .dim = {rows, columns}}};
    return ifd_build_constant(
        b, &desc,
        (struct ifd_bytes){(const uint8_t *)weights, (size_t)(rows * columns) * sizeof(float)},
        sizeof(weights) - (size_t)(rows * columns) * sizeof(float));
}

static void expect_turned(const struct ifd_builder *b, uint32_t value, int64_t rows,
                          int64_t columns)
{
    const struct ifd_desc *desc = ifd_build_desc(b, value);
    const float *got = (const float *)(const void *)ifd_build_content(b, value).data;
    REQUIRE(got != NULL);
    EXPECT_INT(desc->shape.dim[0], columns);
    EXPECT_INT(desc->shape.dim[1], rows);
    for (int64_t i = 0; i < rows * columns; i++) {
        EXPECT(got[i % columns * rows + i / columns] == weights[i]);
    }
}

/* As each turn of a loop that is built in place does with the weights of its body. */
static void a_large_constant_is_transposed_once(void)
{
    static const uint32_t swap[2] = {1, 0};
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_builder b;
    struct ifd_err err = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        weights[i] = (float)i;
    }
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    ifd_builder_init(&b, &graph, 1 << 20, &err);
    const uint32_t first = ifd_build_transpose(&b, constant(&b, ROWS, COLUMNS), swap);
    const uint32_t again = ifd_build_transpose(&b, constant(&b, ROWS, COLUMNS), swap);
    /* the same bytes in another shape */
    const uint32_t other = ifd_build_transpose(&b, constant(&b, COLUMNS, ROWS), swap);
    REQUIRE_OK(b.code, &err);
    expect_turned(&b, first, ROWS, COLUMNS);
    expect_turned(&b, again, ROWS, COLUMNS);
    expect_turned(&b, other, COLUMNS, ROWS);
    EXPECT(ifd_build_content(&b, first).data == ifd_build_content(&b, again).data);
    EXPECT(ifd_build_content(&b, first).data != ifd_build_content(&b, other).data);
    EXPECT_INT(graph.node_count, 0);
    ifd_arena_finish(&arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_large_constant_is_transposed_once),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* The builder: what it keeps, what it refuses, and that a clone stands alone. */
#include "engine/ir/graph.h"

#include <string.h>

#include "engine/ir/verify.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/fake_ops.h"
#include "tests/support/test.h"

static uint32_t value(struct ifd_graph *graph, const char *name, struct ifd_desc desc)
{
    uint32_t index = IFD_NONE;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_value(graph, name, &desc, &index, &err), &err);
    return index;
}

static void values_and_nodes_keep_their_order_when_arrays_grow(void)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    uint32_t first = value(&graph, "x", fake_f32(1, 4, 0));
    uint32_t last = first;
    for (int i = 0; i < 100; i++) {
        uint32_t next = value(&graph, "y", fake_f32(1, 4, 0));
        struct ifd_node *node = NULL;
        REQUIRE_OK(ifd_graph_add_node(&graph, IFD_OP_ADD, (uint32_t[]){last, first}, 2, &next, 1,
                                      &node, &err),
                   &err);
        last = next;
    }
    EXPECT_INT(graph.value_count, 101);
    EXPECT_INT(graph.node_count, 100);
    EXPECT_TEXT(graph.value[0].name, "x");
    EXPECT_INT(graph.value[100].producer, 99);
    EXPECT_INT(graph.node[50].input[0], 50);
    ifd_arena_finish(&arena);
}

static void add_node_refuses_an_output_that_has_a_producer_and_leaves_no_trace(void)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    uint32_t x = value(&graph, "x", fake_f32(1, 4, 0));
    uint32_t y = value(&graph, "y", fake_f32(1, 4, 0));
    uint32_t z = value(&graph, "z", fake_f32(1, 2, 0));
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(&graph, IFD_OP_ADD, (uint32_t[]){x, x}, 2, &y, 1, &node, &err),
               &err);
    EXPECT_CODE(ifd_graph_add_node(&graph, IFD_OP_SPLIT, &x, 1, (uint32_t[]){z, y}, 2, &node, &err),
                IFD_INVALID, &err);
    EXPECT_HAS(err.text, "\"y\"");
    EXPECT_INT(graph.value[z].producer, IFD_NONE);
    EXPECT_INT(graph.node_count, 1);
    /* the same value twice in one node is refused as well */
    EXPECT_CODE(ifd_graph_add_node(&graph, IFD_OP_SPLIT, &x, 1, (uint32_t[]){z, z}, 2, &node, &err),
                IFD_INVALID, &err);
    EXPECT_INT(graph.value[z].producer, IFD_NONE);
    ifd_arena_finish(&arena);
}

static void indexes_out_of_range_are_refused(void)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    uint32_t x = value(&graph, "x", fake_f32(1, 4, 0));
    uint32_t y = value(&graph, "y", fake_f32(1, 4, 0));
    struct ifd_node *node = NULL;
    EXPECT_CODE(ifd_graph_add_node(&graph, IFD_OP_ADD, (uint32_t[]){x, 2}, 2, &y, 1, &node, &err),
                IFD_INVALID, &err);
    EXPECT_CODE(ifd_graph_add_node(&graph, IFD_OP_ADD, (uint32_t[]){x, x}, 2,
                                   (uint32_t[]){IFD_NONE}, 1, &node, &err),
                IFD_INVALID, &err);
    EXPECT_CODE(ifd_graph_set_io(&graph, (uint32_t[]){7}, 1, &y, 1, &err), IFD_INVALID, &err);
    EXPECT_CODE(ifd_graph_set_constant(&graph, 9, (struct ifd_bytes){0}, 0, &err), IFD_INVALID,
                &err);
    EXPECT_CODE(ifd_graph_add_node(&graph, IFD_OP_COUNT, &x, 1, &y, 1, &node, &err), IFD_INVALID,
                &err);
    ifd_arena_finish(&arena);
}

static void constants_are_copied_unless_aligned_and_followed_by_a_pad(void)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    _Alignas(IFD_TENSOR_ALIGN) uint8_t memory[256] = {1, 2, 3};
    uint32_t a = value(&graph, "a", fake_s32(2));
    uint32_t b = value(&graph, "b", fake_s32(2));
    uint32_t c = value(&graph, "c", fake_s32(2));
    uint32_t d = value(&graph, "d", fake_s32(0));
    REQUIRE_OK(
        ifd_graph_set_constant(&graph, a, (struct ifd_bytes){memory, 8}, sizeof(memory) - 8, &err),
        &err);
    REQUIRE_OK(ifd_graph_set_constant(&graph, b, (struct ifd_bytes){memory, 8}, 63, &err), &err);
    REQUIRE_OK(ifd_graph_set_constant(&graph, c, (struct ifd_bytes){memory + 1, 8}, 200, &err),
               &err);
    REQUIRE_OK(ifd_graph_set_constant(&graph, d, (struct ifd_bytes){NULL, 0}, 0, &err), &err);
    EXPECT(graph.value[a].data.data == memory);
    EXPECT(graph.value[b].data.data != memory);
    EXPECT_BYTES(graph.value[b].data.data, memory, 8);
    EXPECT_BYTES(graph.value[c].data.data, memory + 1, 8);
    EXPECT_INT((uintptr_t)graph.value[c].data.data % IFD_TENSOR_ALIGN, 0);
    EXPECT(graph.value[d].is_constant && graph.value[d].data.size == 0);
    EXPECT_CODE(ifd_graph_set_constant(&graph, a, (struct ifd_bytes){memory, 12}, 200, &err),
                IFD_INVALID, &err);
    EXPECT_HAS(err.text, "12 bytes do not fit s32 [2]");
    ifd_arena_finish(&arena);
}

static void any_byte_but_0_of_a_constant_flag_is_true(void)
{
    static const _Alignas(IFD_TENSOR_ALIGN) uint8_t memory[4 + IFD_TENSOR_PAD] = {0, 7, 1, 128};
    struct ifd_err err = {0};
    struct ifd_arena arena;
    struct ifd_graph graph;
    uint32_t flags = 0;
    const struct ifd_desc desc = {.dtype = IFD_BOOL, .shape = {.rank = 1, .dim = {4}}};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    REQUIRE_OK(ifd_graph_add_value(&graph, "flags", &desc, &flags, &err), &err);
    REQUIRE_OK(
        ifd_graph_set_constant(&graph, flags, (struct ifd_bytes){memory, 4}, sizeof(memory), &err),
        &err);
    EXPECT(memcmp(graph.value[flags].data.data, (const uint8_t[]){0, 1, 1, 1}, 4) == 0);
    ifd_arena_finish(&arena);
}

static void infer_node_writes_shapes_and_names_the_node_on_error(void)
{
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    uint32_t part[20];
    for (uint32_t i = 0; i < 20; i++) {
        part[i] = value(&graph, "part", fake_f32(2, 3, i + 1));
    }
    uint32_t joined = value(&graph, "joined", fake_f32(0, 0, 0));
    uint32_t piece[30];
    for (uint32_t i = 0; i < 30; i++) {
        piece[i] = value(&graph, "piece", fake_f32(0, 0, 0));
    }
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(&graph, IFD_OP_CONCAT, part, 20, &joined, 1, &node, &err), &err);
    REQUIRE_OK(ifd_graph_infer_node(&graph, 0, &err), &err);
    EXPECT_INT(graph.value[joined].desc.shape.dim[1], 20 * 21 / 2);
    REQUIRE_OK(ifd_graph_add_node(&graph, IFD_OP_SPLIT, &joined, 1, piece, 3, &node, &err), &err);
    REQUIRE_OK(ifd_graph_infer_node(&graph, 1, &err), &err);
    EXPECT_INT(graph.value[piece[2]].desc.shape.dim[0], 1);
    REQUIRE_OK(ifd_graph_add_node(&graph, IFD_OP_SPLIT, &joined, 1, piece + 3, 27, &node, &err),
               &err);
    EXPECT_CODE(ifd_graph_infer_node(&graph, 2, &err), IFD_INVALID, &err);
    EXPECT_HAS(err.text, "split (node 2, output \"piece\"): 27 parts");
    ifd_arena_finish(&arena);
}

static void clone_can_change_without_touching_the_original(void)
{
    struct ifd_arena arena;
    struct ifd_arena other;
    struct ifd_graph graph;
    struct ifd_graph clone;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_arena_init(&other, ifd_alloc_system(), 0);
    ifd_graph_init(&graph, &arena);
    uint32_t x = value(&graph, "x", fake_f32(1, 4, 0));
    uint32_t y = value(&graph, "y", fake_f32(1, 4, 0));
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(&graph, IFD_OP_ADD, (uint32_t[]){x, x}, 2, &y, 1, &node, &err),
               &err);
    REQUIRE_OK(ifd_graph_set_io(&graph, &x, 1, &y, 1, &err), &err);
    REQUIRE_OK(ifd_graph_clone(&graph, &other, &clone, &err), &err);

    clone.value[x].desc.shape.dim[0] = 9;
    clone.node[0].input[1] = y;
    uint32_t z = value(&clone, "z", fake_f32(1, 1, 0));
    EXPECT_INT(z, 2);
    EXPECT_INT(graph.value_count, 2);
    EXPECT_INT(graph.value[x].desc.shape.dim[0], 4);
    EXPECT_INT(graph.node[0].input[1], x);
    REQUIRE_OK(ifd_graph_verify(&graph, IFD_INTERNAL, &err), &err);
    ifd_arena_finish(&other);
    REQUIRE_OK(ifd_graph_verify(&graph, IFD_INTERNAL, &err), &err);
    ifd_arena_finish(&arena);
}

static enum ifd_code build_small_graph(struct ifd_arena *arena, struct ifd_err *err)
{
    struct ifd_graph graph;
    ifd_graph_init(&graph, arena);
    uint32_t v[22];
    const struct ifd_desc desc = fake_f32(2, 2, 2);
    for (int i = 0; i < 22; i++) {
        enum ifd_code code = ifd_graph_add_value(&graph, "value", &desc, &v[i], err);
        if (code != IFD_OK) {
            return code;
        }
    }
    struct ifd_node *node = NULL;
    enum ifd_code code = ifd_graph_add_node(&graph, IFD_OP_CONCAT, v, 20, &v[20], 1, &node, err);
    if (code == IFD_OK) {
        code = ifd_graph_infer_node(&graph, 0, err);
    }
    const float content[4] = {1, 2, 3, 4};
    if (code == IFD_OK) {
        code = ifd_graph_set_constant(&graph, v[0],
                                      (struct ifd_bytes){(const uint8_t *)content, 16}, 0, err);
    }
    if (code == IFD_OK) {
        code = ifd_graph_set_io(&graph, v + 1, 19, &v[20], 1, err);
    }
    if (code == IFD_OK) {
        code = ifd_graph_verify(&graph, IFD_INVALID, err);
    }
    struct ifd_graph clone;
    return code == IFD_OK ? ifd_graph_clone(&graph, arena, &clone, err) : code;
}

static void every_failed_allocation_is_reported(void)
{
    for (long k = 1;; k++) {
        struct fail_alloc fail;
        struct ifd_arena arena;
        struct ifd_err err = {0};
        fail_alloc_init(&fail, k);
        ifd_arena_init(&arena, &fail.alloc, 0);
        enum ifd_code code = build_small_graph(&arena, &err);
        bool failed = fail.failed;
        EXPECT_CODE(code, failed ? IFD_NOMEM : IFD_OK, &err);
        ifd_arena_finish(&arena);
        fail_alloc_finish(&fail);
        if (!failed) {
            EXPECT(k > 2);
            break;
        }
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(values_and_nodes_keep_their_order_when_arrays_grow),
        T(add_node_refuses_an_output_that_has_a_producer_and_leaves_no_trace),
        T(indexes_out_of_range_are_refused),
        T(constants_are_copied_unless_aligned_and_followed_by_a_pad),
        T(any_byte_but_0_of_a_constant_flag_is_true),
        T(infer_node_writes_shapes_and_names_the_node_on_error),
        T(clone_can_change_without_touching_the_original),
        T(every_failed_allocation_is_reported),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

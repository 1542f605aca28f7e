/* Values share memory where they may, and never where both are needed. */
#include "backends/lowering/values.h"
#include "tests/support/test.h"

enum { VALUES = 5, NODES = 4, BYTES = 64 };

/* in → a → b → c → out, four nodes in a row; node 3 may read a as well. */
struct chain {
    struct ifd_partition_value value[VALUES];
    struct ifd_partition_node node[NODES];
    uint32_t input[NODES][2], output[NODES];
    struct ifd_partition_view view;
    struct ifd_arena arena;
    struct ifd_lowering lowering;
};

enum { IN, A, B, C, OUT };

static void open_chain(struct chain *chain, bool reads_a_again)
{
    static const enum ifd_value_role role[] = {IFD_VALUE_INPUT, IFD_VALUE_INTERNAL,
                                               IFD_VALUE_INTERNAL, IFD_VALUE_INTERNAL,
                                               IFD_VALUE_OUTPUT};
    *chain = (struct chain){.view = {.node_count = NODES, .value_count = VALUES}};
    for (uint32_t i = 0; i < VALUES; i++) {
        chain->value[i].role = role[i];
        chain->value[i].desc = (struct ifd_desc){.dtype = IFD_U8, .shape = {1, {BYTES}}};
    }
    for (uint32_t n = 0; n < NODES; n++) {
        chain->input[n][0] = n;
        chain->input[n][1] = A;
        chain->output[n] = n + 1;
        chain->node[n].view.input_count = n == 3 && reads_a_again ? 2 : 1;
        chain->node[n].view.output_count = 1;
        chain->node[n].input_value = chain->input[n];
        chain->node[n].output_value = &chain->output[n];
    }
    chain->view.value = chain->value;
    chain->view.node = chain->node;
    ifd_arena_init(&chain->arena, ifd_alloc_system(), (size_t)1 << 20);
    chain->lowering.view = &chain->view;
    chain->lowering.arena = &chain->arena;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_low_make_values(&chain->lowering, &err), &err);
    ifd_low_count_readers(&chain->lowering);
}

static void joined_values_live_in_the_root(void)
{
    struct chain chain;
    open_chain(&chain, false);
    struct ifd_low_storage *storage = chain.lowering.storage;
    storage[C].joined = B;
    storage[C].at = 8;
    storage[B].joined = A;
    storage[B].at = 16;
    EXPECT_INT(ifd_low_storage_of(&chain.lowering, C), A);
    EXPECT_INT((int64_t)chain.lowering.value[C].offset, 24);
    EXPECT_INT(storage[C].joined, A); /* the path is shorter now */
    EXPECT_INT((int64_t)storage[C].at, 24);
    EXPECT(!ifd_low_is_whole(&chain.lowering, C) && ifd_low_is_whole(&chain.lowering, A));
    EXPECT(!ifd_low_same_place(&chain.lowering, A, C));
    ifd_arena_finish(&chain.arena);
}

static void a_result_overwrites_what_nobody_reads_again(void)
{
    struct chain chain;
    open_chain(&chain, false);
    EXPECT(!ifd_low_in_place(&chain.lowering, IN, A)); /* bound outside */
    EXPECT(ifd_low_in_place(&chain.lowering, A, B));
    EXPECT(ifd_low_same_place(&chain.lowering, A, B));
    EXPECT(!ifd_low_in_place(&chain.lowering, C, OUT));
    ifd_arena_finish(&chain.arena);
    open_chain(&chain, true);
    EXPECT(!ifd_low_in_place(&chain.lowering, A, B)); /* node 3 reads it, too */
    ifd_low_end_node(&chain.lowering, 3);
    EXPECT(ifd_low_in_place(&chain.lowering, A, B));
    ifd_arena_finish(&chain.arena);
}

static void only_a_sole_reader_of_an_internal_value_can_be_fused(void)
{
    struct chain chain;
    uint32_t node = 0;
    open_chain(&chain, true);
    EXPECT(ifd_low_sole_reader(&chain.lowering, B, &node) == &chain.node[2]);
    EXPECT_INT(node, 2);
    EXPECT(!ifd_low_sole_reader(&chain.lowering, A, &node)); /* two readers */
    EXPECT(!ifd_low_sole_reader(&chain.lowering, IN, &node));
    EXPECT(!ifd_low_sole_reader(&chain.lowering, OUT, &node));
    ifd_low_fuse_node(&chain.lowering, 2);
    EXPECT(!ifd_low_sole_reader(&chain.lowering, B, &node)); /* done */
    ifd_arena_finish(&chain.arena);
}

static void storages_that_live_at_once_lie_apart(void)
{
    struct chain chain;
    struct ifd_err err = {0};
    size_t bytes = 0;
    open_chain(&chain, false);
    struct ifd_low_storage *storage = chain.lowering.storage;
    for (uint32_t value = A; value <= C; value++) { /* made by one step, read by the next */
        ifd_low_touch(&chain.lowering, value, value);
        ifd_low_touch(&chain.lowering, value, value + 1);
    }
    REQUIRE_OK(ifd_low_lay_out(&chain.lowering, ifd_alloc_system(), &bytes, &err), &err);
    EXPECT(storage[A].place.offset != storage[B].place.offset);
    EXPECT(storage[B].place.offset != storage[C].place.offset);
    EXPECT_INT((int64_t)ifd_low_place_of(&chain.lowering, A).offset,
               (int64_t)storage[C].place.offset); /* A is gone when C is made */
    const size_t two = bytes;
    ifd_low_stretch(&chain.lowering, A, 0, 4);
    REQUIRE_OK(ifd_low_lay_out(&chain.lowering, ifd_alloc_system(), &bytes, &err), &err);
    EXPECT(bytes >= two + BYTES);
    EXPECT(storage[A].place.offset != storage[C].place.offset);
    ifd_arena_finish(&chain.arena);
}

static void a_value_moved_inside_leaves_its_slot(void)
{
    struct chain chain;
    struct ifd_err err = {0};
    struct ifd_low_place outside = {.where = IFD_LOW_ABSENT};
    open_chain(&chain, false);
    REQUIRE_OK(ifd_low_move_inside(&chain.lowering, IN, &outside, &err), &err);
    EXPECT(outside.where == IFD_LOW_INPUT);
    EXPECT(ifd_low_place_of(&chain.lowering, IN).where == IFD_LOW_SCRATCH);
    EXPECT(ifd_low_in_place(&chain.lowering, IN, A)); /* it may be overwritten now */
    ifd_arena_finish(&chain.arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(joined_values_live_in_the_root),
        T(a_result_overwrites_what_nobody_reads_again),
        T(only_a_sole_reader_of_an_internal_value_can_be_fused),
        T(storages_that_live_at_once_lie_apart),
        T(a_value_moved_inside_leaves_its_slot),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

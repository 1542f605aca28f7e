#include "engine/cache/weights.h"
#include "tests/support/graph.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES  ((size_t)256 * 1024)
#define PIECE_FLOATS (PIECE_BYTES / sizeof(float))

/* Eight blocks of separate memory, all bytes 1, and a graph with an input. */
struct fixture {
    struct ifd_arena arena;
    struct ifd_graph graph;
    struct ifd_weights_scope scope;
    uint8_t *memory;
};

static void set_up(struct fixture *f)
{
    f->scope = (struct ifd_weights_scope){0};
    ifd_arena_init(&f->arena, ifd_alloc_system(), 0);
    ifd_graph_init(&f->graph, &f->arena);
    f->memory = ifd_acquire_tensor(ifd_alloc_system(), 8 * PIECE_BYTES);
    REQUIRE(f->memory != NULL);
    memset(f->memory, 1, 8 * PIECE_BYTES);
}

static void tear_down(struct fixture *f)
{
    ifd_release_tensor(ifd_alloc_system(), f->memory, 8 * PIECE_BYTES);
    ifd_arena_finish(&f->arena);
}

/* A constant of one block that begins at block number at; halves are allowed. */
static uint32_t constant(struct fixture *f, double at)
{
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = SHAPE(PIECE_FLOATS)};
    const struct ifd_bytes data = {f->memory + (size_t)(at * (double)PIECE_BYTES), PIECE_BYTES};
    struct ifd_err err = {0};
    uint32_t value = 0;
    REQUIRE_OK(ifd_graph_add_value(&f->graph, "c", &desc, &value, &err), &err);
    REQUIRE_OK(ifd_graph_set_constant(&f->graph, value, data, 64, &err), &err);
    REQUIRE(f->graph.value[value].data.data == data.data);
    return value;
}

static void init(struct fixture *f, struct ifd_weights *weights)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_weights_init(weights, &f->graph, &f->scope, &f->arena, &err), &err);
}

static bool is_there(const struct fixture *f, uint32_t value)
{
    const uint8_t *data = f->graph.value[value].data.data;
    return data[PIECE_BYTES / 2] == 1;
}

static void packed_weights_of_one_reader_are_released(void)
{
    struct fixture f;
    struct ifd_weights weights;
    set_up(&f);
    const uint32_t a = constant(&f, 0), b = constant(&f, 1);
    test_graph_op1(&f.graph, IFD_OP_NEG, a, "y");
    test_graph_op1(&f.graph, IFD_OP_NEG, b, "z");
    init(&f, &weights);
    EXPECT(is_there(&f, a) && is_there(&f, b));
    ifd_weights_release(&weights, f.graph.value[a].data.data);
    EXPECT(!is_there(&f, a) && is_there(&f, b));
    EXPECT(f.graph.value[a].is_released && !f.graph.value[b].is_released);
    EXPECT(weights.released_bytes > PIECE_BYTES / 2 && weights.released_bytes <= PIECE_BYTES);
    const size_t before = weights.released_bytes;
    ifd_weights_release(&weights, f.graph.value[a].data.data);
    EXPECT_INT(weights.released_bytes, before);
    tear_down(&f);
}

static void weights_that_others_read_stay(void)
{
    struct fixture f;
    struct ifd_weights weights;
    set_up(&f);
    const uint32_t twice = constant(&f, 0), output = constant(&f, 1), input = constant(&f, 2);
    const uint32_t y = test_graph_op2(&f.graph, IFD_OP_ADD, twice, twice, "y");
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_set_io(&f.graph, &input, 0, (const uint32_t[]){y, output}, 2, &err), &err);
    test_graph_op1(&f.graph, IFD_OP_NEG, output, "z");
    init(&f, &weights);
    ifd_weights_release(&weights, f.graph.value[twice].data.data);
    ifd_weights_release(&weights, f.graph.value[output].data.data);
    ifd_weights_release(&weights, f.memory + 17);
    EXPECT(is_there(&f, twice) && is_there(&f, output));
    tear_down(&f);
}

/* Files may store one buffer for two tensors, or claim that buffers overlap. */
static void weights_that_overlap_stay(void)
{
    struct fixture f;
    struct ifd_weights weights;
    set_up(&f);
    const uint32_t a = constant(&f, 0), again = constant(&f, 0), b = constant(&f, 2),
                   half = constant(&f, 2.5), alone = constant(&f, 4);
    const uint32_t all[] = {a, again, b, half, alone};
    for (size_t i = 0; i < 5; i++) {
        test_graph_op1(&f.graph, IFD_OP_NEG, all[i], "y");
    }
    init(&f, &weights);
    for (size_t i = 0; i < 5; i++) {
        ifd_weights_release(&weights, f.graph.value[all[i]].data.data);
        EXPECT_INT(is_there(&f, all[i]), all[i] != alone);
    }
    tear_down(&f);
}

static void weights_without_readers_go_at_once(void)
{
    struct fixture f;
    struct ifd_weights weights;
    set_up(&f);
    const uint32_t used = constant(&f, 0), unused = constant(&f, 1);
    test_graph_op1(&f.graph, IFD_OP_NEG, used, "y");
    init(&f, &weights);
    EXPECT(is_there(&f, used) && !is_there(&f, unused));
    tear_down(&f);
}

static void weights_of_others_stay(void)
{
    struct fixture f;
    struct ifd_weights weights;
    struct ifd_err err = {0};
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = SHAPE(PIECE_FLOATS)};
    set_up(&f);
    uint8_t *own = ifd_arena_take_tensor(&f.arena, PIECE_BYTES);
    uint8_t *handed_on = ifd_arena_take_tensor(&f.arena, PIECE_BYTES);
    REQUIRE(own != NULL && handed_on != NULL);
    uint8_t *const content[] = {own, handed_on, f.memory};
    uint32_t value[3] = {0};
    for (size_t i = 0; i < 3; i++) {
        memset(content[i], 1, PIECE_BYTES);
        REQUIRE_OK(ifd_graph_add_value(&f.graph, "c", &desc, &value[i], &err), &err);
        REQUIRE_OK(ifd_graph_set_constant(&f.graph, value[i],
                                          (struct ifd_bytes){content[i], PIECE_BYTES}, 64, &err),
                   &err);
        test_graph_op1(&f.graph, IFD_OP_NEG, value[i], "y");
    }
    const struct ifd_bytes other = {handed_on, PIECE_BYTES};
    f.scope = (struct ifd_weights_scope){.only_in_arena = true, .others = &other, .other_count = 1};
    init(&f, &weights);
    for (size_t i = 0; i < 3; i++) {
        ifd_weights_release(&weights, f.graph.value[value[i]].data.data);
        EXPECT_INT(is_there(&f, value[i]), i > 0);
    }
    tear_down(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(packed_weights_of_one_reader_are_released),
        T(weights_that_others_read_stay),
        T(weights_that_overlap_stay),
        T(weights_without_readers_go_at_once),
        T(weights_of_others_stay),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Operators that only move elements, as copies that are carried out one element after the other. */
#include "backends/lowering/moves.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

#include <string.h>

enum { ELEMENTS = 64 };

static void copy_element(const struct ifd_low_copy *copy, uint32_t d, const uint8_t *in,
                         uint8_t *out)
{
    if (d == copy->rank) {
        memcpy(out, in, copy->element);
        return;
    }
    for (int64_t i = 0; i < copy->dim[d]; i++) {
        copy_element(copy, d + 1, in + i * copy->in_stride[d], out + i * copy->out_stride[d]);
    }
}

static void carry_out(const struct ifd_low_copy *copy, const void *in, void *out)
{
    copy_element(copy, 0, (const uint8_t *)in + copy->in_offset, (uint8_t *)out + copy->out_offset);
}

/* The same with its dimensions merged. */
static void carry_out_merged(const struct ifd_low_copy *copy, uint32_t rank, const void *in,
                             void *out)
{
    struct ifd_low_copy merged = *copy;
    ifd_low_merge(&merged);
    EXPECT_INT(merged.rank, rank);
    carry_out(&merged, in, out);
}

struct node {
    struct ifd_desc in[2], out[2];
    struct ifd_operand operand[2];
    struct ifd_node_view view;
};

static struct ifd_node_view *make_node(struct node *node, enum ifd_op op, const void *attrs,
                                       uint32_t inputs, uint32_t outputs)
{
    for (uint32_t i = 0; i < 2; i++) {
        node->operand[i] = (struct ifd_operand){.desc = &node->in[i]};
        node->in[i].dtype = node->out[i].dtype = IFD_S32;
    }
    node->view = (struct ifd_node_view){.op = op,
                                        .attrs = attrs,
                                        .input = node->operand,
                                        .input_count = inputs,
                                        .output = node->out,
                                        .output_count = outputs};
    return &node->view;
}

static void count_up(int32_t *x)
{
    for (int32_t i = 0; i < ELEMENTS; i++) {
        x[i] = i;
    }
}

static void concatenated_rows_lie_beside_each_other(void)
{
    const struct ifd_axis_attrs attrs = {.axis = -1};
    struct node node = {.in = {{.shape = {2, {2, 3}}}, {.shape = {2, {2, 2}}}},
                        .out = {{.shape = {2, {2, 5}}}}};
    const struct ifd_node_view *view = make_node(&node, IFD_OP_CONCAT, &attrs, 2, 1);
    static const int32_t want[] = {0, 1, 2, 0, 1, 3, 4, 5, 2, 3};
    int32_t x[ELEMENTS], y[10] = {0};
    struct ifd_low_move move = {.converts = false};
    count_up(x);
    EXPECT(ifd_low_moves(view, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT(ifd_low_move(view, i, &move));
        EXPECT(move.in == i && move.out == 0 && !move.converts);
        carry_out_merged(&move.copy, 2, x, y);
    }
    EXPECT(!ifd_low_move(view, 2, &move));
    EXPECT_BYTES(y, want, sizeof(want));
    EXPECT(ifd_low_moves_rows(view, 0));
}

static void splits_take_columns(void)
{
    const struct ifd_split_attrs attrs = {.axis = 1};
    struct node node = {.in = {{.shape = {2, {2, 4}}}},
                        .out = {{.shape = {2, {2, 1}}}, {.shape = {2, {2, 3}}}}};
    const struct ifd_node_view *view = make_node(&node, IFD_OP_SPLIT, &attrs, 1, 2);
    static const int32_t want[] = {1, 2, 3, 5, 6, 7};
    int32_t x[ELEMENTS], y[6] = {0};
    struct ifd_low_move move = {.converts = false};
    count_up(x);
    EXPECT(ifd_low_move(view, 0, &move) && ifd_low_move(view, 1, &move));
    EXPECT_INT(move.out, 1);
    carry_out(&move.copy, x, y);
    EXPECT_BYTES(y, want, sizeof(want));
    EXPECT(!ifd_low_move(view, 2, &move));
}

static void transpositions_merge_what_stays_together(void)
{
    const struct ifd_transpose_attrs attrs = {.perm = {4, {0, 3, 1, 2}}};
    struct node node = {.in = {{.shape = {4, {1, 2, 3, 4}}}},
                        .out = {{.shape = {4, {1, 4, 2, 3}}}}};
    const struct ifd_node_view *view = make_node(&node, IFD_OP_TRANSPOSE, &attrs, 1, 1);
    int32_t x[ELEMENTS], y[24] = {0};
    struct ifd_low_move move = {.converts = false};
    count_up(x);
    EXPECT(ifd_low_move(view, 0, &move));
    carry_out_merged(&move.copy, 2, x, y); /* channels × pixels */
    for (int32_t c = 0; c < 4; c++) {
        for (int32_t pixel = 0; pixel < 6; pixel++) {
            EXPECT_INT(y[c * 6 + pixel], pixel * 4 + c);
        }
    }
    EXPECT(!ifd_low_moves_rows(view, 0));
}

static void space_and_batch_change_places_and_back(void)
{
    const struct ifd_space_batch_attrs attrs = {
        .block = {2, {2, 2}}, .before = {2, {0, 1}}, .after = {2, {1, 0}}};
    struct node to = {.in = {{.shape = {4, {1, 3, 3, 1}}}}, .out = {{.shape = {4, {4, 2, 2, 1}}}}};
    struct node from = {.in = {{.shape = {4, {4, 2, 2, 1}}}},
                        .out = {{.shape = {4, {1, 3, 3, 1}}}}};
    static const int32_t deep[] = {0, 1, 0, 7, 0, 2, 6, 8, 0, 4, 0, 0, 3, 5, 0, 0};
    int32_t x[ELEMENTS], between[ELEMENTS] = {0}, y[16] = {0}, back[9] = {0};
    struct ifd_low_copy copy[2];
    size_t bytes = 0;
    count_up(x);
    EXPECT_INT(
        ifd_low_space_copies(make_node(&to, IFD_OP_SPACE_TO_BATCH, &attrs, 1, 1), copy, &bytes), 2);
    EXPECT_INT((int64_t)bytes, 16 * 4);
    EXPECT(copy[0].fills && copy[0].out_bytes == bytes && !copy[1].fills);
    carry_out(&copy[0], x, between);
    carry_out(&copy[1], between, y);
    EXPECT_BYTES(y, deep, sizeof(deep));
    EXPECT_INT(
        ifd_low_space_copies(make_node(&from, IFD_OP_BATCH_TO_SPACE, &attrs, 1, 1), copy, &bytes),
        2);
    EXPECT(!copy[0].fills && !copy[1].fills);
    carry_out(&copy[0], y, between);
    carry_out(&copy[1], between, back);
    EXPECT_BYTES(back, x, sizeof(back));
}

static void tiles_repeat_inside_and_outside(void)
{
    struct node node = {.in = {{.shape = {2, {2, 3}}}}, .out = {{.shape = {2, {4, 6}}}}};
    const struct ifd_node_view *view = make_node(&node, IFD_OP_TILE, NULL, 1, 1);
    int32_t x[ELEMENTS], y[24] = {0};
    struct ifd_low_move move;
    count_up(x);
    EXPECT(ifd_low_tiles(view, NULL));
    EXPECT(!ifd_low_moves(view, NULL) && !ifd_low_move(view, 0, &move)); /* it repeats elements */
    const struct ifd_low_copy copy = ifd_low_tile_copy(view);
    carry_out(&copy, x, y);
    for (int32_t i = 0; i < 24; i++) {
        EXPECT_INT(y[i], i / 6 % 2 * 3 + i % 3);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(concatenated_rows_lie_beside_each_other),  T(splits_take_columns),
        T(transpositions_merge_what_stays_together), T(space_and_batch_change_places_and_back),
        T(tiles_repeat_inside_and_outside),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

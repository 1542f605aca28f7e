/* Every element of a broadcast result finds its two operands, however many dimensions were
 * merged. */
#include "backends/lowering/broadcast.h"
#include "tests/support/test.h"

static size_t index_in(const struct ifd_shape *shape, const int64_t *at, uint32_t rank)
{
    size_t index = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const int64_t dim = shape->dim[d], i = at[rank - shape->rank + d];
        index = index * (size_t)dim + (size_t)(dim == 1 ? 0 : i);
    }
    return index;
}

/* Compares each element's operands with those that the shapes themselves say. */
static void expect_operands(const struct ifd_shape *a, const struct ifd_shape *b,
                            const struct ifd_shape *y, uint32_t rank)
{
    struct ifd_low_broadcast broadcast;
    ifd_low_broadcast_init(a, b, y, &broadcast);
    EXPECT_INT(broadcast.rank, rank);
    const uint32_t row = broadcast.rank - 2, column = broadcast.rank - 1;
    int64_t at[IFD_MAX_RANK] = {0};
    size_t wrong = 0, next = 0;
    for (size_t block = 0; block < ifd_low_broadcast_blocks(&broadcast); block++) {
        size_t offset[IFD_LOW_OPERANDS];
        ifd_low_broadcast_block(&broadcast, block, offset);
        for (size_t i = 0; i < broadcast.dim[row] * broadcast.dim[column]; i++, next++) {
            size_t index[IFD_LOW_OPERANDS];
            for (int k = 0; k < IFD_LOW_OPERANDS; k++) {
                index[k] = offset[k] + i / broadcast.dim[column] * broadcast.stride[k][row] +
                           i % broadcast.dim[column] * broadcast.stride[k][column];
            }
            wrong += index[IFD_LOW_A] != index_in(a, at, y->rank);
            wrong += index[IFD_LOW_B] != index_in(b, at, y->rank);
            wrong += index[IFD_LOW_Y] != next;
            for (uint32_t d = y->rank; d-- > 0 && ++at[d] == y->dim[d];) {
                at[d] = 0;
            }
        }
    }
    EXPECT_INT((int64_t)wrong, 0);
    size_t elements = 1;
    for (uint32_t d = 0; d < y->rank; d++) {
        elements *= (size_t)y->dim[d];
    }
    EXPECT_INT((int64_t)next, (int64_t)elements);
}

#define SHAPE(n, ...)                                                                              \
    &(struct ifd_shape)                                                                            \
    {                                                                                              \
        n,                                                                                         \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static void equal_shapes_are_one_row(void)
{
    expect_operands(SHAPE(3, 2, 3, 4), SHAPE(3, 2, 3, 4), SHAPE(3, 2, 3, 4), 2);
}

static void a_row_repeats_behind_all_other_dimensions(void)
{
    expect_operands(SHAPE(4, 2, 3, 4, 5), SHAPE(1, 5), SHAPE(4, 2, 3, 4, 5), 2);
    expect_operands(SHAPE(2, 1, 5), SHAPE(4, 2, 3, 4, 5), SHAPE(4, 2, 3, 4, 5), 2);
}

static void both_operands_may_repeat(void)
{
    expect_operands(SHAPE(3, 2, 1, 5), SHAPE(3, 1, 4, 1), SHAPE(3, 2, 4, 5), 3);
    expect_operands(SHAPE(4, 2, 1, 3, 1), SHAPE(4, 1, 4, 1, 5), SHAPE(4, 2, 4, 3, 5), 4);
}

static void scalars_have_two_dimensions(void)
{
    expect_operands(&(struct ifd_shape){.rank = 0}, SHAPE(1, 1), SHAPE(1, 1), 2);
    expect_operands(SHAPE(1, 1), SHAPE(2, 3, 4), SHAPE(2, 3, 4), 2);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(equal_shapes_are_one_row),
        T(a_row_repeats_behind_all_other_dimensions),
        T(both_operands_may_repeat),
        T(scalars_have_two_dimensions),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Operators of other formats as several of ours. */
#include "engine/build/builder.h"

uint32_t ifd_build_standardize(struct ifd_builder *b, uint32_t x, const struct ifd_ints *axes,
                               double epsilon, uint32_t *ret_moments)
{
    const uint32_t mean = ifd_build_reduce(b, IFD_OP_REDUCE_MEAN, x, axes, true);
    const uint32_t centred = ifd_build_binary(b, IFD_OP_SUB, x, mean);
    const uint32_t square = ifd_build_binary(b, IFD_OP_MUL, centred, centred);
    const uint32_t variance = ifd_build_reduce(b, IFD_OP_REDUCE_MEAN, square, axes, true);
    const uint32_t factor =
        ifd_build_unary(b, IFD_OP_RSQRT, ifd_build_with(b, IFD_OP_ADD, variance, epsilon));
    if (ret_moments) {
        ret_moments[0] = mean;
        ret_moments[1] = factor;
    }
    return ifd_build_binary(b, IFD_OP_MUL, centred, factor);
}

uint32_t ifd_build_rms(struct ifd_builder *b, uint32_t x, const struct ifd_ints *axes,
                       double epsilon)
{
    const uint32_t square = ifd_build_binary(b, IFD_OP_MUL, x, x);
    const uint32_t mean = ifd_build_reduce(b, IFD_OP_REDUCE_MEAN, square, axes, true);
    const uint32_t factor =
        ifd_build_unary(b, IFD_OP_RSQRT, ifd_build_with(b, IFD_OP_ADD, mean, epsilon));
    return ifd_build_binary(b, IFD_OP_MUL, x, factor);
}

/* max(x, 0) + log(1 + exp(-|x|)), which never overflows. */
uint32_t ifd_build_softplus(struct ifd_builder *b, uint32_t x)
{
    const uint32_t magnitude = ifd_build_unary(b, IFD_OP_ABS, x);
    const uint32_t small =
        ifd_build_unary(b, IFD_OP_EXP, ifd_build_unary(b, IFD_OP_NEG, magnitude));
    const uint32_t rest = ifd_build_unary(b, IFD_OP_LOG, ifd_build_with(b, IFD_OP_ADD, small, 1));
    return ifd_build_binary(b, IFD_OP_ADD, ifd_build_unary(b, IFD_OP_RELU, x), rest);
}

uint32_t ifd_build_softmax(struct ifd_builder *b, enum ifd_op op, uint32_t x, uint32_t axis)
{
    const uint32_t rank = ifd_build_desc(b, x)->shape.rank;
    const uint32_t last = rank > 0 ? rank - 1 : 0;
    const struct ifd_softmax_attrs attrs = {.beta = 1};
    const uint32_t swapped = ifd_build_swap(b, x, axis, last);
    const uint32_t y = ifd_build_node(b, op, &swapped, 1, NULL,
                                      op == IFD_OP_SOFTMAX ? (const void *)&attrs : NULL);
    return ifd_build_swap(b, y, axis, last);
}

uint32_t ifd_build_first(struct ifd_builder *b, uint32_t flags, uint32_t values, uint32_t otherwise)
{
    const struct ifd_desc index = {.dtype = IFD_S64}, flag = {.dtype = IFD_BOOL};
    const struct ifd_axis_attrs join = {.axis = 0};
    const uint32_t marks = ifd_build_cast(b, flags, IFD_F32);
    const struct ifd_shape shape = ifd_build_desc(b, marks)->shape;
    if (b->code != IFD_OK || shape.rank == 0) {
        return ifd_build_fail(b, IFD_CORRUPT, "no flags");
    }
    const struct ifd_arg_attrs last = {.axis = (int32_t)shape.rank - 1};
    const struct ifd_ints axes = {.count = 1, .value = {last.axis}};
    const uint32_t first = ifd_build_node(b, IFD_OP_ARG_MAX, &marks, 1, &index, &last);
    const uint32_t most = ifd_build_reduce(b, IFD_OP_REDUCE_MAX, marks, &axes, false);
    const uint32_t has[2] = {most, ifd_build_number(b, IFD_F32, 0)};
    const uint32_t choice[3] = {ifd_build_node(b, IFD_OP_GREATER, has, 2, &flag, NULL), first,
                                ifd_build_number(b, IFD_S64, (double)shape.dim[last.axis])};
    const uint32_t all[2] = {values, otherwise};
    const uint32_t from[2] = {ifd_build_node(b, IFD_OP_CONCAT, all, 2, NULL, &join),
                              ifd_build_node(b, IFD_OP_SELECT, choice, 3, &index, NULL)};
    return ifd_build_node(b, IFD_OP_GATHER, from, 2, NULL, NULL);
}

/* x with a dimension of 1 put in front, or behind. */
static uint32_t widen(struct ifd_builder *b, uint32_t x, bool in_front)
{
    const int64_t size = ifd_build_desc(b, x)->shape.dim[0];
    const int64_t dim[2] = {in_front ? 1 : size, in_front ? size : 1};
    return ifd_build_reshape(b, x, dim, 2);
}

static uint32_t narrow(struct ifd_builder *b, uint32_t x, bool drops_row, bool drops_column)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    int64_t dim[IFD_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t d = 0; d < shape.rank; d++) {
        const bool drops =
            (drops_row && d + 2 == shape.rank) || (drops_column && d + 1 == shape.rank);
        if (!drops) {
            dim[rank++] = shape.dim[d];
        }
    }
    return drops_row || drops_column ? ifd_build_reshape(b, x, dim, rank) : x;
}

uint32_t ifd_build_layer(struct ifd_builder *b, uint32_t x, uint32_t weights, uint32_t bias)
{
    const struct ifd_fully_connected_attrs attrs = {.keep_dims = true};
    const uint32_t input[3] = {x, weights, bias};
    return ifd_build_node(b, IFD_OP_FULLY_CONNECTED, input, bias == IFD_NONE ? 2 : 3, NULL, &attrs);
}

/* A matrix with one more dimension of 1. */
static uint32_t spread(struct ifd_builder *b, uint32_t x, uint32_t place)
{
    const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
    int64_t dim[IFD_MAX_RANK + 1] = {0};
    for (uint32_t d = 0; d <= shape.rank; d++) {
        dim[d] = d == place ? 1 : shape.dim[d < place ? d : d - 1];
    }
    return ifd_build_reshape(b, x, dim, shape.rank + 1);
}

/* The product of matrices of numbers for which there is no such operator, as products and sums. */
static uint32_t wide_product(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    const enum ifd_dtype dtype = ifd_build_desc(b, x)->dtype;
    const uint32_t rank_x = ifd_build_desc(b, x)->shape.rank;
    const uint32_t rank_y = ifd_build_desc(b, y)->shape.rank;
    const struct ifd_ints axis = {.count = 1, .value = {-2}};
    const uint32_t left = spread(b, ifd_build_cast(b, x, IFD_S64), rank_x);
    const uint32_t right = spread(b, ifd_build_cast(b, y, IFD_S64), rank_y - 2);
    const uint32_t products = ifd_build_binary(b, IFD_OP_MUL, left, right);
    return ifd_build_cast(b, ifd_build_reduce(b, IFD_OP_REDUCE_SUM, products, &axis, false), dtype);
}

static bool is_wide(enum ifd_dtype dtype)
{
    return dtype == IFD_S64 || dtype == IFD_U32 || dtype == IFD_U64;
}

uint32_t ifd_build_matmul(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    const uint32_t rank_x = ifd_build_desc(b, x)->shape.rank;
    const uint32_t rank_y = ifd_build_desc(b, y)->shape.rank;
    const bool is_layer = rank_x >= 2 && rank_y == 2 && ifd_build_content(b, y).size > 0 &&
                          ifd_build_desc(b, x)->dtype == IFD_F32;
    if (is_layer) {
        return ifd_build_layer(b, x, ifd_build_swap(b, y, 0, 1), IFD_NONE);
    }
    if (rank_x == 0 || rank_y == 0) {
        return ifd_build_fail(b, IFD_INVALID, "a scalar is no matrix");
    }
    const uint32_t left = rank_x == 1 ? widen(b, x, true) : x;
    const uint32_t right = rank_y == 1 ? widen(b, y, false) : y;
    const uint32_t product = is_wide(ifd_build_desc(b, x)->dtype)
                                 ? wide_product(b, left, right)
                                 : ifd_build_binary(b, IFD_OP_BATCH_MATMUL, left, right);
    return narrow(b, product, rank_x == 1, rank_y == 1);
}

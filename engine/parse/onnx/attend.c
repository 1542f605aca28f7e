/* Attention of ai.onnx (opset 23 on): queries and keys of several heads, what each query may see,
 * softmax(scale * q k' + bias) v. */
#include <float.h>
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, LENGTHS };
enum { RESULT, PRESENT_KEY, PRESENT_VALUE, PRODUCTS };

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t number(struct ifd_builder *b, double x)
{
    return ifd_build_number(b, IFD_F32, x);
}

/* [n, t, heads * size] as [n, heads, t, size]; what has heads stays. */
static uint32_t split_heads(struct ifd_onnx_call *call, uint32_t i, const char *attribute)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(b, call->input[i]);
    const int64_t heads = ifd_onnx_int(call, attribute, 0);
    if (shape.rank == 4) {
        return call->input[i];
    }
    if (shape.rank != 3 || heads < 1 || shape.dim[2] % heads != 0) {
        return ifd_build_fail(b, IFD_INVALID, "%lld heads of shape %s", (long long)heads,
                              ifd_shape_text(&shape).s);
    }
    const int64_t dim[4] = {shape.dim[0], shape.dim[1], heads, shape.dim[2] / heads};
    return ifd_build_swap(b, ifd_build_reshape(b, call->input[i], dim, 4), 1, 2);
}

static uint32_t appended(struct ifd_builder *b, uint32_t past, uint32_t now)
{
    const struct ifd_axis_attrs attrs = {.axis = 2};
    return past == IFD_NONE
               ? now
               : ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){past, now}, 2, NULL, &attrs);
}

uint32_t ifd_onnx_repeated_heads(struct ifd_builder *b, uint32_t x, int64_t heads)
{
    const struct ifd_shape s = shape_of(b, x);
    if (b->code != IFD_OK || s.dim[1] == heads) {
        return x;
    }
    if (s.dim[1] < 1 || heads % s.dim[1] != 0) {
        return ifd_build_fail(b, IFD_INVALID, "%lld heads of queries for %lld of keys",
                              (long long)heads, (long long)s.dim[1]);
    }
    const int64_t apart[5] = {s.dim[0], s.dim[1], 1, s.dim[2], s.dim[3]};
    const int64_t together[4] = {s.dim[0], heads, s.dim[2], s.dim[3]};
    const struct ifd_broadcast_to_attrs attrs = {
        .shape = {.count = 5, .value = {s.dim[0], s.dim[1], heads / s.dim[1], s.dim[2], s.dim[3]}}};
    const uint32_t row = ifd_build_reshape(b, x, apart, 5);
    return ifd_build_reshape(b, ifd_build_node(b, IFD_OP_BROADCAST_TO, &row, 1, NULL, &attrs),
                             together, 4);
}

/* ---- what a query sees ---- */

/* 0, 1, 2 … along a dimension of two. */
static uint32_t ramp(struct ifd_builder *b, int64_t count, bool is_column)
{
    const uint32_t bounds[3] = {ifd_build_number(b, IFD_S64, 0),
                                ifd_build_number(b, IFD_S64, (double)count),
                                ifd_build_number(b, IFD_S64, 1)};
    const int64_t dim[2] = {is_column ? count : 1, is_column ? 1 : count};
    return ifd_build_reshape(b, ifd_build_node(b, IFD_OP_RANGE, bounds, 3, NULL, NULL), dim, 2);
}

static uint32_t both(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    const struct ifd_desc flag = {.dtype = IFD_BOOL};
    return x == IFD_NONE
               ? y
               : ifd_build_node(b, IFD_OP_LOGICAL_AND, (const uint32_t[]){x, y}, 2, &flag, NULL);
}

/* A mask that ends before the keys do: what is behind is not seen. */
static uint32_t padded(struct ifd_builder *b, uint32_t mask, int64_t length)
{
    const struct ifd_desc desc = *ifd_build_desc(b, mask);
    const uint32_t last = desc.shape.rank > 0 ? desc.shape.rank - 1 : 0;
    if (desc.shape.rank == 0 || desc.shape.dim[last] >= length) {
        return mask;
    }
    struct ifd_ints dims = {.count = desc.shape.rank};
    for (uint32_t d = 0; d < dims.count; d++) {
        dims.value[d] = d == last ? length - desc.shape.dim[d] : desc.shape.dim[d];
    }
    const struct ifd_broadcast_to_attrs attrs = {.shape = dims};
    const struct ifd_axis_attrs along = {.axis = (int32_t)last};
    const uint32_t none = ifd_build_number(b, desc.dtype, desc.dtype == IFD_BOOL ? 0 : -HUGE_VAL);
    const uint32_t rest = ifd_build_node(b, IFD_OP_BROADCAST_TO, &none, 1, NULL, &attrs);
    return ifd_build_node(b, IFD_OP_CONCAT, (const uint32_t[]){mask, rest}, 2, NULL, &along);
}

/* The place of query 0 among the keys: a number, or one for each sample. */
static uint32_t offset_of(struct ifd_onnx_call *call, int64_t queries)
{
    struct ifd_builder *b = call->b;
    const uint32_t past = ifd_onnx_input(call, PAST_KEY), lengths = ifd_onnx_input(call, LENGTHS);
    if (past != IFD_NONE || lengths == IFD_NONE) {
        const int64_t before = past != IFD_NONE ? shape_of(b, past).dim[2] : 0;
        return ifd_build_number(b, IFD_S64, (double)before);
    }
    const int64_t dim[4] = {-1, 1, 1, 1};
    const uint32_t ends = ifd_build_reshape(b, ifd_build_cast(b, lengths, IFD_S64), dim, 4);
    return ifd_build_with(b, IFD_OP_SUB, ends, (double)queries);
}

/* Which of the keys queries may see, as flags that broadcast to [n, heads, t, s]; IFD_NONE: all. */
static uint32_t seen(struct ifd_onnx_call *call, int64_t queries, int64_t keys)
{
    struct ifd_builder *b = call->b;
    const uint32_t mask = ifd_onnx_input(call, MASK), lengths = ifd_onnx_input(call, LENGTHS);
    const bool is_causal = ifd_onnx_int(call, "is_causal", 0) != 0;
    const int64_t left = ifd_onnx_int(call, "left_window_size", -1);
    const int64_t right = ifd_onnx_int(call, "right_window_size", -1);
    const uint32_t key = ramp(b, keys, false);
    const uint32_t place =
        ifd_build_binary(b, IFD_OP_ADD, ramp(b, queries, true), offset_of(call, queries));
    uint32_t all = IFD_NONE;
    if (mask != IFD_NONE && ifd_build_desc(b, mask)->dtype == IFD_BOOL) {
        all = padded(b, mask, keys);
    }
    if (is_causal || right >= 0) {
        const uint32_t end =
            is_causal ? place : ifd_build_with(b, IFD_OP_ADD, place, (double)right);
        all = both(b, all, ifd_onnx_compared(b, IFD_OP_LESS_EQUAL, key, end));
    }
    if (left >= 0) {
        const uint32_t begin = ifd_build_with(b, IFD_OP_SUB, place, (double)left);
        all = both(b, all, ifd_onnx_compared(b, IFD_OP_GREATER_EQUAL, key, begin));
    }
    if (lengths != IFD_NONE) {
        const int64_t dim[4] = {-1, 1, 1, 1};
        const uint32_t ends = ifd_build_reshape(b, ifd_build_cast(b, lengths, IFD_S64), dim, 4);
        all = both(b, all, ifd_onnx_compared(b, IFD_OP_LESS, key, ends));
    }
    return all;
}

/* What is added to the products; IFD_NONE: nothing. */
static uint32_t bias_of(struct ifd_onnx_call *call, int64_t queries, int64_t keys)
{
    struct ifd_builder *b = call->b;
    const uint32_t mask = ifd_onnx_input(call, MASK);
    const uint32_t flags = seen(call, queries, keys);
    uint32_t bias = IFD_NONE;
    if (mask != IFD_NONE && ifd_build_desc(b, mask)->dtype != IFD_BOOL) {
        bias = padded(b, ifd_build_cast(b, mask, IFD_F32), keys);
    }
    if (flags == IFD_NONE) {
        return bias;
    }
    const uint32_t hidden = ifd_onnx_selected(b, flags, number(b, 0), number(b, -HUGE_VAL));
    return bias == IFD_NONE ? hidden : ifd_build_binary(b, IFD_OP_ADD, bias, hidden);
}

/* A query that sees nothing gets nothing. */
static uint32_t without_blind(struct ifd_builder *b, uint32_t shares, uint32_t bias)
{
    const struct ifd_ints last = {.count = 1, .value = {-1}};
    const uint32_t most = ifd_build_reduce(b, IFD_OP_REDUCE_MAX, bias, &last, true);
    const uint32_t is_blind =
        ifd_onnx_compared(b, IFD_OP_LESS_EQUAL, most, number(b, (double)-FLT_MAX));
    return ifd_onnx_selected(b, is_blind, number(b, 0), shares);
}

/* ---- the operator ---- */

static void keep(struct ifd_onnx_call *call, uint32_t i, uint32_t value)
{
    if (i < call->output_count) {
        call->output[i] = value;
    }
}

/* Output PRODUCTS shows them at this point. */
static void show(struct ifd_onnx_call *call, int64_t point, uint32_t value)
{
    if (ifd_onnx_int(call, "qk_matmul_output_mode", 0) == point) {
        keep(call, PRODUCTS, value);
    }
}

static uint32_t products(struct ifd_onnx_call *call, uint32_t q, uint32_t k)
{
    struct ifd_builder *b = call->b;
    const struct ifd_batch_matmul_attrs turned = {.adj_y = true};
    const double cap = ifd_onnx_f32(call, "softcap", 0);
    const double given = ifd_onnx_f32(call, "scale", 0);
    const double scale =
        ifd_onnx_attr(call, "scale") ? given : 1 / sqrt((double)shape_of(b, q).dim[3]);
    uint32_t x = ifd_build_node(b, IFD_OP_BATCH_MATMUL, (const uint32_t[]){q, k}, 2, NULL, &turned);
    x = ifd_build_with(b, IFD_OP_MUL, x, scale);
    if (cap > 0) {
        x = ifd_build_unary(b, IFD_OP_TANH, ifd_build_with(b, IFD_OP_MUL, x, 1 / cap));
        x = ifd_build_with(b, IFD_OP_MUL, x, cap);
    }
    return x;
}

void ifd_onnx_attend(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const bool has_heads = shape_of(b, call->input[QUERY]).rank == 4;
    const uint32_t q = split_heads(call, QUERY, "q_num_heads");
    const uint32_t key =
        appended(b, ifd_onnx_input(call, PAST_KEY), split_heads(call, KEY, "kv_num_heads"));
    const uint32_t value =
        appended(b, ifd_onnx_input(call, PAST_VALUE), split_heads(call, VALUE, "kv_num_heads"));
    const struct ifd_shape shape = shape_of(b, q);
    keep(call, PRESENT_KEY, key);
    keep(call, PRESENT_VALUE, value);
    const uint32_t k = ifd_onnx_repeated_heads(b, key, shape.dim[1]);
    const uint32_t v = ifd_onnx_repeated_heads(b, value, shape.dim[1]);
    uint32_t x = products(call, q, k);
    show(call, 0, x);
    show(call, 1, x);
    const uint32_t bias = bias_of(call, shape.dim[2], shape_of(b, k).dim[2]);
    x = bias == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_ADD, x, bias);
    show(call, 2, x);
    x = ifd_build_softmax(b, IFD_OP_SOFTMAX, x, 3);
    x = bias == IFD_NONE ? x : without_blind(b, x, bias);
    show(call, 3, x);
    x = ifd_build_binary(b, IFD_OP_BATCH_MATMUL, x, v);
    if (!has_heads) {
        const struct ifd_shape y = shape_of(b, x);
        const int64_t dim[3] = {y.dim[0], y.dim[2], y.dim[1] * y.dim[3]};
        x = ifd_build_reshape(b, ifd_build_swap(b, x, 1, 2), dim, 3);
    }
    call->output[RESULT] = x;
}

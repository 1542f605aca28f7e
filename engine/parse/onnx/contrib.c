/* Operators of com.microsoft that ONNX Runtime's optimizers write for diffusion models, T5, WavLM
 * and quantized embeddings: several operators in one. */
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

static uint32_t add(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return y == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_ADD, x, y);
}

static uint32_t times(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

static uint32_t gelu(struct ifd_builder *b, uint32_t x, bool approximate)
{
    const struct ifd_gelu_attrs attrs = {.approximate = approximate};
    return ifd_build_node(b, IFD_OP_GELU, &x, 1, NULL, &attrs);
}

/* ---- sums and activations ---- */

static uint32_t bias_add(struct ifd_onnx_call *call)
{
    return add(call->b, add(call->b, call->input[0], call->input[1]), call->input[2]);
}

static uint32_t bias_softmax(struct ifd_onnx_call *call)
{
    const uint32_t x = add(call->b, call->input[0], call->input[1]);
    return ifd_onnx_softmax(call, IFD_OP_SOFTMAX, x, 1); /* all dimensions from the axis on */
}

/* The first half of each row by gelu of the second. */
static uint32_t bias_split_gelu(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = add(b, call->input[0], call->input[1]);
    const struct ifd_shape shape = shape_of(b, x);
    const uint32_t last = shape.rank - 1;
    if (shape.rank < 1 || shape.dim[last] % 2 != 0) {
        return ifd_build_fail(b, IFD_INVALID, "halves of the rows of %s", ifd_shape_text(&shape).s);
    }
    const int64_t half = shape.dim[last] / 2;
    return times(b, ifd_build_cut(b, x, last, 0, half),
                 gelu(b, ifd_build_cut(b, x, last, half, half), false));
}

static uint32_t gemm_fast_gelu(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const uint32_t y = ifd_build_matmul(b, call->input[0], call->input[1]);
    return gelu(b, add(b, y, ifd_onnx_input(call, 2)), true);
}

/* ---- channels last ---- */

/* Weights lie as [m, h, w, c], as ONNX Runtime's converter of Conv writes them. */
static uint32_t nhwc_conv(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[0]), w = shape_of(b, call->input[1]);
    if (x.rank != 4 || w.rank != 4) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "data of %s by weights of %s",
                              ifd_shape_text(&x).s, ifd_shape_text(&w).s);
    }
    const uint32_t y =
        ifd_onnx_convolve(call, ifd_build_to_nchw(b, call->input[0]),
                          ifd_build_to_nchw(b, call->input[1]), ifd_onnx_input(call, 2), NULL);
    return ifd_build_to_nhwc(b, y);
}

/* x [n, …, c] (or [n, c, …]): each group of channels standardized over all its elements. */
static uint32_t group_normalized(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(b, x);
    const bool is_last = ifd_onnx_int(call, "channels_last", 1) != 0;
    const int64_t groups = ifd_onnx_int(call, "groups", 0);
    const uint32_t at = is_last ? shape.rank - 1 : 1;
    if (shape.rank < 3 || groups < 1 || shape.dim[at] % groups != 0) {
        return ifd_build_fail(b, IFD_INVALID, "%lld groups of the channels of %s",
                              (long long)groups, ifd_shape_text(&shape).s);
    }
    const int64_t channels = shape.dim[at], size = channels / groups;
    const int64_t inner[4] = {shape.dim[0], -1, groups, size};
    const int64_t outer[4] = {shape.dim[0], groups, size, -1};
    const struct ifd_ints axes = {.count = 2, .value = {is_last ? 1 : 2, 3}};
    uint32_t y = ifd_build_reshape(b, x, is_last ? inner : outer, 4);
    y = ifd_build_standardize(b, y, &axes, ifd_onnx_f32(call, "epsilon", 1e-5), NULL);
    y = ifd_build_reshape(b, y, shape.dim, shape.rank);
    uint32_t factor[2];
    for (uint32_t i = 0; i < 2; i++) {
        int64_t dim[IFD_MAX_RANK] = {channels};
        for (uint32_t d = 1; d < shape.rank; d++) {
            dim[d] = 1;
        }
        factor[i] = is_last ? call->input[1 + i]
                            : ifd_build_reshape(b, call->input[1 + i], dim, shape.rank - 1);
    }
    y = add(b, times(b, y, factor[0]), factor[1]);
    return ifd_onnx_int(call, "activation", 0) == 0
               ? y
               : times(b, y, ifd_build_unary(b, IFD_OP_LOGISTIC, y)); /* SiLU */
}

static uint32_t group_norm(struct ifd_onnx_call *call)
{
    return group_normalized(call, call->input[0]);
}

/* x, gamma, beta, skip (of the shape of x, or a number a channel of each sample), bias; outputs:
 * result, sum. Channels last. */
static uint32_t skip_group_norm(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape skip = shape_of(b, call->input[3]);
    const int64_t row[4] = {skip.dim[0], 1, 1, skip.dim[1]};
    const uint32_t skipped =
        skip.rank == 2 ? ifd_build_reshape(b, call->input[3], row, 4) : call->input[3];
    if (ifd_onnx_int(call, "channels_last", 1) == 0) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "channels that are not last");
    }
    const uint32_t sum = add(b, add(b, call->input[0], skipped), ifd_onnx_input(call, 4));
    if (call->output_count > 1) {
        call->output[1] = sum;
    }
    return group_normalized(call, sum);
}

/* ---- places relative to each other ---- */

#define PLACES_MAX ((int64_t)1 << 24)

/* Where T5 looks up how far apart query and key are: exact distances, then such whose logarithms
 * are. */
static int64_t bucket_of(int64_t distance, int64_t buckets, double most, bool is_both_ways)
{
    int64_t first = 0;
    if (is_both_ways) {
        buckets /= 2;
        first = distance > 0 ? buckets : 0;
        distance = distance < 0 ? -distance : distance;
    } else {
        distance = distance < 0 ? -distance : 0;
    }
    const int64_t exact = buckets / 2;
    if (distance < exact) {
        return first + distance;
    }
    const float share = logf((float)distance / (float)exact) / logf((float)most / (float)exact);
    const float far = share * (float)(buckets - exact);
    const int64_t last = buckets - exact - 1;
    return first + exact + (far < (float)last ? (int64_t)far : last);
}

/* table [buckets, heads], numbers of queries and keys → [1, heads, queries, keys]. */
static uint32_t relative_position_bias(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape table = shape_of(b, call->input[0]);
    const int64_t queries = ifd_build_int_of(b, call->input[1], "the number of queries");
    const int64_t keys = ifd_build_int_of(b, call->input[2], "the number of keys");
    const int64_t most = ifd_onnx_int(call, "max_distance", 0);
    const bool is_both_ways = ifd_onnx_int(call, "is_bidirectional", 0) != 0;
    const int64_t least = is_both_ways ? 4 : 2; /* buckets */
    if (b->code != IFD_OK || table.rank != 2 || table.dim[0] < least || most <= table.dim[0] / 2 ||
        most > INT32_MAX || queries < 1 || keys < 1 || queries > PLACES_MAX / keys) {
        return ifd_build_fail(
            b, IFD_UNSUPPORTED, "a table %s for %lld queries and %lld keys at most %lld apart",
            ifd_shape_text(&table).s, (long long)queries, (long long)keys, (long long)most);
    }
    const size_t count = (size_t)(queries * keys);
    int64_t *bucket = ifd_arena_take_array(b->graph->arena, count, sizeof(*bucket));
    if (!bucket) {
        b->code = ifd_arena_fail(b->graph->arena, count * sizeof(*bucket), b->err);
        return IFD_NONE;
    }
    for (int64_t q = 0; q < queries; q++) {
        for (int64_t k = 0; k < keys; k++) {
            bucket[q * keys + k] = bucket_of(k - q, table.dim[0], (double)most, is_both_ways);
        }
    }
    const uint32_t turned = ifd_build_swap(b, call->input[0], 0, 1);
    const struct ifd_gather_attrs attrs = {.axis = 1};
    const uint32_t found = ifd_build_node(
        b, IFD_OP_GATHER, (const uint32_t[]){turned, ifd_build_list(b, bucket, (uint32_t)count)}, 2,
        NULL, &attrs);
    return ifd_build_reshape(b, found, (const int64_t[]){1, table.dim[1], queries, keys}, 4);
}

/* Sums of both halves of each row, between 0 and 1: [n, heads, t, 2]. */
static uint32_t gates(struct ifd_onnx_call *call, int64_t heads)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = add(b, call->input[0], call->input[1]);
    const struct ifd_shape shape = shape_of(b, x);
    const int64_t apart[4] = {shape.dim[0], shape.dim[1], heads, shape.dim[2] / heads};
    const uint32_t q =
        ifd_build_transpose(b, ifd_build_reshape(b, x, apart, 4), (const uint32_t[]){0, 2, 1, 3});
    const uint32_t y = add(b, ifd_build_matmul(b, q, call->input[3]), call->input[4]);
    const int64_t halves[5] = {shape.dim[0], heads, shape.dim[1], 2, -1};
    const struct ifd_ints last = {.count = 1, .value = {4}};
    const uint32_t sum =
        ifd_build_reduce(b, IFD_OP_REDUCE_SUM, ifd_build_reshape(b, y, halves, 5), &last, false);
    return ifd_build_unary(b, IFD_OP_LOGISTIC, sum);
}

/* query [n, t, hidden] and its bias, relative positions [1, heads, t, t], weights and bias of the
 * gates, a factor [1, heads, 1, 1]. */
static uint32_t gated_position_bias(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape query = shape_of(b, call->input[0]), w = shape_of(b, call->input[3]);
    const int64_t heads = ifd_onnx_int(call, "num_heads", 0);
    if (query.rank != 3 || heads < 1 || query.dim[2] % heads != 0 || w.rank != 2 ||
        w.dim[1] % 2 != 0 || ifd_onnx_input(call, 6) != IFD_NONE) {
        return ifd_build_fail(b, IFD_UNSUPPORTED,
                              "%lld heads of queries %s, gates %s, or packed tokens",
                              (long long)heads, ifd_shape_text(&query).s, ifd_shape_text(&w).s);
    }
    const uint32_t both = gates(call, heads);
    const uint32_t one = ifd_build_number(b, IFD_F32, 1), two = ifd_build_number(b, IFD_F32, 2);
    const uint32_t inner = ifd_build_binary(
        b, IFD_OP_SUB, times(b, ifd_build_cut(b, both, 3, 1, 1), call->input[5]), one);
    const uint32_t gate = add(b, times(b, ifd_build_cut(b, both, 3, 0, 1), inner), two);
    return times(b, gate, call->input[2]);
}

/* ---- quantized embeddings ---- */

enum { IDS, SEGMENTS, WORD, POSITION, SEGMENT, GAMMA, BETA, MASK, SCALES };

/* Rows of stored table i (all: indices IFD_NONE) as numbers. */
static uint32_t numbers_of(struct ifd_onnx_call *call, uint32_t i, uint32_t indices)
{
    struct ifd_builder *b = call->b;
    const struct ifd_gather_attrs rows = {.axis = 0};
    const uint32_t scale = ifd_onnx_input(call, SCALES + i - WORD);
    const uint32_t zero = ifd_onnx_input(call, SCALES + 5 + i - WORD);
    uint32_t x = call->input[i];
    if (scale == IFD_NONE) {
        return ifd_build_fail(b, IFD_INVALID, "table %u has no scale", i);
    }
    x = indices == IFD_NONE
            ? x
            : ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){x, indices}, 2, NULL, &rows);
    x = ifd_build_cast(b, x, IFD_F32);
    x = zero == IFD_NONE ? x : ifd_build_binary(b, IFD_OP_SUB, x, ifd_build_cast(b, zero, IFD_F32));
    return times(b, x, scale);
}

/* As EmbedLayerNormalization, with tables, gamma and beta as whole numbers. */
static uint32_t q_embed_layer_normalization(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape ids = shape_of(b, call->input[IDS]);
    const uint32_t segments = ifd_onnx_input(call, SEGMENTS), mask = ifd_onnx_input(call, MASK);
    for (uint32_t i = 0; i < MASK; i++) {
        if (ifd_onnx_input(call, i) == IFD_NONE && i != SEGMENTS && i != SEGMENT) {
            return ifd_build_fail(b, IFD_INVALID, "input %u is missing", i);
        }
    }
    if (ids.rank != 2 || shape_of(b, call->input[POSITION]).rank != 2) {
        return ifd_build_fail(b, IFD_INVALID, "ids of shape %s", ifd_shape_text(&ids).s);
    }
    uint32_t x = numbers_of(call, WORD, call->input[IDS]);
    x = add(b, x, ifd_build_cut(b, numbers_of(call, POSITION, IFD_NONE), 0, 0, ids.dim[1]));
    if (segments != IFD_NONE && ifd_onnx_input(call, SEGMENT) != IFD_NONE) {
        x = add(b, x, numbers_of(call, SEGMENT, segments));
    }
    if (call->output_count > 1) {
        call->output[1] = ifd_onnx_kept(call, mask, ids.dim[0]);
    }
    const struct ifd_ints last = {.count = 1, .value = {2}};
    const uint32_t y =
        ifd_build_standardize(b, x, &last, ifd_onnx_f32(call, "epsilon", 1e-12), NULL);
    return add(b, times(b, y, numbers_of(call, GAMMA, IFD_NONE)), numbers_of(call, BETA, IFD_NONE));
}

void ifd_onnx_contrib(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *) = {
        [IFD_ONNX_BIAS_ADD] = bias_add,
        [IFD_ONNX_BIAS_SOFTMAX] = bias_softmax,
        [IFD_ONNX_BIAS_SPLIT_GELU] = bias_split_gelu,
        [IFD_ONNX_GATED_POSITION_BIAS] = gated_position_bias,
        [IFD_ONNX_GEMM_FAST_GELU] = gemm_fast_gelu,
        [IFD_ONNX_GROUP_NORM] = group_norm,
        [IFD_ONNX_NHWC_CONV] = nhwc_conv,
        [IFD_ONNX_Q_EMBED_LAYER_NORMALIZATION] = q_embed_layer_normalization,
        [IFD_ONNX_RELATIVE_POSITION_BIAS] = relative_position_bias,
        [IFD_ONNX_SKIP_GROUP_NORM] = skip_group_norm,
    };
    call->output[0] = functions[which](call);
}

/* A property of all passes: optimized random graphs compute the same with no more nodes. Quantized
 * numbers are equal bit for bit; floats, too, unless a pass of level FUSE ran. The graphs are made
 * of what passes look for, and each pass must have found something to do. */
#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "engine/ir/verify.h"
#include "engine/opt/opt.h"
#include "tests/support/graph.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define POOL     64
#define ELEMENTS 4096
#define PASSES   64

static const float scale_a[] = {0.05f}, scale_b[] = {0.1f}, scale_w[] = {0.02f},
                   scale_bias[] = {0.05f * 0.02f};
static const int32_t zero_a[] = {-128}, zero_b[] = {7}, zero_0[] = {0};
static const struct ifd_quant quant_a = {scale_a, zero_a, 1, 0};
static const struct ifd_quant quant_b = {scale_b, zero_b, 1, 0};
static const struct ifd_quant quant_w = {scale_w, zero_0, 1, 0};
static const struct ifd_quant quant_bias = {scale_bias, zero_0, 1, 0};

struct generator {
    struct ifd_graph *graph;
    struct test_random *random;
    bool is_float;
    uint32_t pool[POOL]; /* images [1,h,w,c] with quant_a */
    uint32_t count;
};

/* ---- nodes ---- */

static int64_t pick(struct generator *g, int64_t low, int64_t high)
{
    return test_random_int(g->random, low, high);
}

static struct ifd_desc image_desc(const struct generator *g)
{
    return (struct ifd_desc){.dtype = g->is_float ? IFD_F32 : IFD_S8,
                             .quant = g->is_float ? (struct ifd_quant){0} : quant_a};
}

static const struct ifd_shape *shape_of(const struct generator *g, uint32_t v)
{
    return &g->graph->value[v].desc.shape;
}

static uint32_t add_value(struct generator *g, const struct ifd_desc *desc)
{
    uint32_t value = 0;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_value(g->graph, "v", desc, &value, &err), &err);
    return value;
}

/* A node whose shape is to be inferred once its attributes are set. */
static uint32_t begin(struct generator *g, enum ifd_op op, const uint32_t *input, uint32_t count,
                      struct ifd_desc desc, struct ifd_node **ret_node)
{
    const uint32_t out = add_value(g, &desc);
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_node(g->graph, op, input, count, &out, 1, ret_node, &err), &err);
    return out;
}

static uint32_t finish(struct generator *g, uint32_t out)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(g->graph, g->graph->node_count - 1, &err), &err);
    return out;
}

static uint32_t op1(struct generator *g, enum ifd_op op, uint32_t v)
{
    struct ifd_node *node = NULL;
    return finish(g, begin(g, op, &v, 1, image_desc(g), &node));
}

static uint32_t op2(struct generator *g, enum ifd_op op, uint32_t a, uint32_t b)
{
    struct ifd_node *node = NULL;
    return finish(g, begin(g, op, (const uint32_t[]){a, b}, 2, image_desc(g), &node));
}

static void set_ints(struct ifd_node *node, const char *name, const int64_t *value, size_t count)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(node->op), (void *)(uintptr_t)node->attrs, name, value,
                                  count, &err),
               &err);
}

static void *attrs_of(const struct ifd_node *node)
{
    return (void *)(uintptr_t)node->attrs;
}

static uint32_t convert(struct generator *g, enum ifd_op op, uint32_t v, enum ifd_dtype dtype,
                        struct ifd_quant quant)
{
    struct ifd_node *node = NULL;
    return finish(g, begin(g, op, &v, 1, (struct ifd_desc){.dtype = dtype, .quant = quant}, &node));
}

static uint32_t transpose(struct generator *g, uint32_t v, const int64_t perm[4])
{
    struct ifd_node *node = NULL;
    const uint32_t out = begin(g, IFD_OP_TRANSPOSE, &v, 1, image_desc(g), &node);
    set_ints(node, "perm", perm, 4);
    return finish(g, out);
}

static uint32_t reshape(struct generator *g, uint32_t v, const struct ifd_shape *shape)
{
    struct ifd_node *node = NULL;
    const uint32_t out = begin(g, IFD_OP_RESHAPE, &v, 1, image_desc(g), &node);
    set_ints(node, "shape", shape->dim, shape->rank);
    return finish(g, out);
}

enum filling { ZERO, LEAST, SOMETHING };

static uint32_t pad(struct generator *g, uint32_t v, const int64_t before[4],
                    const int64_t after[4], enum filling filling)
{
    struct ifd_node *node = NULL;
    const uint32_t out = begin(g, IFD_OP_PAD, &v, 1, image_desc(g), &node);
    set_ints(node, "before", before, 4);
    set_ints(node, "after", after, 4);
    struct ifd_pad_attrs *attrs = attrs_of(node);
    attrs->has_value = filling != ZERO;
    attrs->value = filling == SOMETHING ? 3 : g->is_float ? -FLT_MAX : -128;
    return finish(g, out);
}

/* Floats low … high, or stored numbers. */
static uint32_t constant(struct generator *g, struct ifd_shape shape, struct ifd_quant quant,
                         float low, float high)
{
    union {
        float f32[ELEMENTS];
        int8_t s8[ELEMENTS];
    } data;
    size_t count = 0, bytes = 0;
    struct ifd_err err = {0};
    struct ifd_desc desc = image_desc(g);
    desc.shape = shape;
    desc.quant = g->is_float ? desc.quant : quant;
    REQUIRE(ifd_shape_elements(&shape, &count) && count <= ELEMENTS &&
            ifd_desc_bytes(&desc, &bytes));
    for (size_t i = 0; i < count; i++) {
        if (g->is_float) {
            data.f32[i] = test_random_f32(g->random, low, high);
        } else {
            data.s8[i] = (int8_t)pick(g, -128, 127);
        }
    }
    const uint32_t v = add_value(g, &desc);
    REQUIRE_OK(ifd_graph_set_constant(g->graph, v,
                                      (struct ifd_bytes){(const uint8_t *)&data, bytes}, 0, &err),
               &err);
    return v;
}

static uint32_t bias(struct generator *g, int64_t channels)
{
    if (g->is_float) {
        return constant(g, SHAPE(channels), quant_a, -1, 1);
    }
    int32_t data[64];
    struct ifd_err err = {0};
    REQUIRE(channels <= 64);
    for (int64_t c = 0; c < channels; c++) {
        data[c] = (int32_t)pick(g, -2000, 2000);
    }
    const struct ifd_desc desc = {.dtype = IFD_S32, .shape = SHAPE(channels), .quant = quant_bias};
    const uint32_t v = add_value(g, &desc);
    REQUIRE_OK(ifd_graph_set_constant(
                   g->graph, v,
                   (struct ifd_bytes){(const uint8_t *)data, (size_t)channels * sizeof(data[0])}, 0,
                   &err),
               &err);
    return v;
}

/* conv2d or depthwise_conv2d; where all places have a result, often as wide as the image. The
 * weights of a channel add up to at most 1, so that numbers stay small. */
static uint32_t convolve(struct generator *g, enum ifd_op op, uint32_t v, int64_t filter_h,
                         int64_t filter_w, int32_t padding)
{
    const int64_t channels = shape_of(g, v)->dim[3];
    const bool deep = op == IFD_OP_DEPTHWISE_CONV2D;
    const int64_t outputs = deep ? channels : pick(g, 1, 6);
    const float most = 1.0f / (float)(filter_h * filter_w * (deep ? 1 : channels));
    const struct ifd_shape shape = deep ? SHAPE(1, filter_h, filter_w, channels)
                                        : SHAPE(outputs, filter_h, filter_w, channels);
    uint32_t input[3] = {v, constant(g, shape, quant_w, -most, most), IFD_NONE};
    const uint32_t count = pick(g, 0, 1) == 0 ? 2 : 3;
    if (count == 3) {
        input[2] = bias(g, outputs);
    }
    struct ifd_node *node = NULL;
    const uint32_t out = begin(g, op, input, count, image_desc(g), &node);
    struct ifd_conv2d_attrs *attrs = attrs_of(node);
    attrs->window.padding = padding;
    if (padding == IFD_PAD_SAME) {
        attrs->window.dilation_h = (int32_t)pick(g, 1, shape_of(g, v)->dim[1]);
        attrs->window.dilation_w = (int32_t)pick(g, 1, shape_of(g, v)->dim[2]);
    }
    return finish(g, out);
}

static uint32_t fully_connected(struct generator *g, uint32_t v)
{
    const int64_t channels = shape_of(g, v)->dim[3], outputs = pick(g, 1, 5);
    const float most = 1.0f / (float)channels;
    struct ifd_node *node = NULL;
    const uint32_t input[] = {v, constant(g, SHAPE(outputs, channels), quant_w, -most, most)};
    const uint32_t out = begin(g, IFD_OP_FULLY_CONNECTED, input, 2, image_desc(g), &node);
    struct ifd_fully_connected_attrs *attrs = attrs_of(node);
    attrs->keep_dims = true;
    return finish(g, out);
}

static uint32_t max_pool(struct generator *g, uint32_t v)
{
    struct ifd_node *node = NULL;
    const uint32_t out = begin(g, IFD_OP_MAX_POOL2D, &v, 1, image_desc(g), &node);
    struct ifd_pool2d_attrs *attrs = attrs_of(node);
    attrs->filter_h = attrs->filter_w = 2;
    attrs->window.padding = IFD_PAD_VALID;
    return finish(g, out);
}

/* ---- what the passes look for ---- */

static uint32_t scaled(struct generator *g, uint32_t v)
{
    static const enum ifd_op ops[] = {IFD_OP_ADD, IFD_OP_SUB, IFD_OP_MUL, IFD_OP_DIV};
    const enum ifd_op op = ops[pick(g, 0, g->is_float ? 3 : 1)];
    const int64_t channels = shape_of(g, v)->dim[3];
    const uint32_t c =
        constant(g, pick(g, 0, 1) == 0 ? SHAPE(1) : SHAPE(channels), quant_a, 0.5f, 1.5f);
    return pick(g, 0, 2) == 0 && op != IFD_OP_DIV ? op2(g, op, c, v) : op2(g, op, v, c);
}

/* A constant of one float. */
static uint32_t number(struct generator *g, float x)
{
    return constant(g, SHAPE(1), quant_a, x, x);
}

static uint32_t gelu(struct generator *g, uint32_t v)
{
    if (!g->is_float) {
        return IFD_NONE;
    }
    const uint32_t scaled = op2(g, IFD_OP_DIV, v, number(g, 1.41421356f));
    const uint32_t share = op2(g, IFD_OP_ADD, op1(g, IFD_OP_ERF, scaled), number(g, 1));
    return op2(g, IFD_OP_MUL, op2(g, IFD_OP_MUL, v, share), number(g, 0.5f));
}

static uint32_t mean(struct generator *g, uint32_t v)
{
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    const uint32_t out = begin(g, IFD_OP_REDUCE_MEAN, &v, 1, image_desc(g), &node);
    struct ifd_reduce_attrs *attrs = attrs_of(node);
    attrs->keep_dims = true;
    REQUIRE_OK(
        ifd_attrs_set_ints(ifd_op_def(node->op), attrs, "axes", (const int64_t[]){-1}, 1, &err),
        &err);
    return finish(g, out);
}

/* Layer normalization as TensorFlow's converter writes it, with and without scale and shift. */
static uint32_t normalized(struct generator *g, uint32_t v)
{
    if (!g->is_float || shape_of(g, v)->rank != 4) {
        return IFD_NONE;
    }
    const int64_t channels = shape_of(g, v)->dim[3];
    const bool has_shift = pick(g, 0, 1) != 0;
    const uint32_t middle = mean(g, v);
    const uint32_t minus = has_shift ? middle : op1(g, IFD_OP_NEG, middle);
    const uint32_t variance = mean(g, op2(g, IFD_OP_SQUARED_DIFFERENCE, v, middle));
    uint32_t gain = op1(g, IFD_OP_RSQRT, op2(g, IFD_OP_ADD, variance, number(g, 0.1f)));
    if (pick(g, 0, 1) != 0) {
        gain = op2(g, IFD_OP_MUL, gain, constant(g, SHAPE(channels), quant_a, 0.5f, 1.5f));
    }
    uint32_t rest = op2(g, IFD_OP_MUL, minus, gain);
    if (has_shift) {
        rest = op2(g, IFD_OP_SUB, constant(g, SHAPE(channels), quant_a, -1, 1), rest);
    }
    return op2(g, IFD_OP_ADD, op2(g, IFD_OP_MUL, v, gain), rest);
}

static uint32_t bounded(struct generator *g, uint32_t v)
{
    static const enum ifd_op ops[] = {IFD_OP_RELU, IFD_OP_RELU6, IFD_OP_RELU_N1_TO_1};
    switch (pick(g, 0, 4)) {
    case 4: /* with another scale */
        if (!g->is_float) {
            return convert(g, IFD_OP_QUANTIZE, convert(g, IFD_OP_RELU, v, IFD_S8, quant_b), IFD_S8,
                           quant_a);
        }
        return op1(g, IFD_OP_RELU, v);
    case 0:
        return op2(g, IFD_OP_MAXIMUM, v, constant(g, SHAPE(1), quant_a, -2, 0));
    case 1:
        return op2(g, IFD_OP_MINIMUM, constant(g, SHAPE(1), quant_a, 0.5f, 4), v);
    default:
        return op1(g, ops[pick(g, 0, 2)], v);
    }
}

static uint32_t there_and_back(struct generator *g, uint32_t v)
{
    static const int64_t to_nchw[4] = {0, 3, 1, 2}, to_nhwc[4] = {0, 2, 3, 1};
    uint32_t w = 0;
    switch (pick(g, 0, 3)) {
    case 0:
        w = bounded(g, transpose(g, v, to_nchw));
        return transpose(g, op2(g, IFD_OP_ADD, w, w), to_nhwc);
    case 1: {
        const struct ifd_shape shape = *shape_of(g, v);
        w = reshape(g, v, &SHAPE(1, 1, shape.dim[1] * shape.dim[2], shape.dim[3]));
        w = transpose(g, w, (const int64_t[]){0, 2, 1, 3});
        return reshape(g, w, &shape);
    }
    case 2: {
        const struct ifd_shape shape = *shape_of(g, v);
        return reshape(g, v, &shape);
    }
    default:
        if (g->is_float) {
            w = convert(g, IFD_OP_CAST, v, IFD_F64, (struct ifd_quant){0});
            return convert(g, IFD_OP_CAST, w, IFD_F32, (struct ifd_quant){0});
        }
        w = convert(g, IFD_OP_DEQUANTIZE, v, IFD_F32, (struct ifd_quant){0});
        if (pick(g, 0, 1) == 0) {
            w = convert(g, IFD_OP_QUANTIZE, w, IFD_S8, quant_b);
        }
        return convert(g, IFD_OP_QUANTIZE, w, IFD_S8, quant_a);
    }
}

/* Numbers that floats move or choose among; as stored ones at the ends. */
static uint32_t moved(struct generator *g, uint32_t v)
{
    struct generator floats = *g;
    const struct ifd_shape shape = *shape_of(g, v);
    if (!g->is_float) {
        v = convert(g, IFD_OP_DEQUANTIZE, v, IFD_F32, (struct ifd_quant){0});
    }
    floats.is_float = true;
    v = pick(g, 0, 1) == 0 && shape.dim[1] > 1 && shape.dim[2] > 1
            ? max_pool(&floats, v)
            : reshape(&floats, v, &SHAPE(1, shape.dim[2], shape.dim[1], shape.dim[3]));
    if (!g->is_float) {
        v = convert(g, IFD_OP_QUANTIZE, v, IFD_S8, pick(g, 0, 1) == 0 ? quant_b : quant_a);
        v = convert(g, IFD_OP_QUANTIZE, v, IFD_S8, quant_a);
    }
    return v;
}

static uint32_t padded(struct generator *g, uint32_t v)
{
    const int64_t before[4] = {0, pick(g, 0, 1), 1, 0}, after[4] = {0, 1, pick(g, 0, 1), 0};
    switch (pick(g, 0, 2)) {
    case 0:
        return convolve(g, IFD_OP_CONV2D, pad(g, v, before, after, ZERO), 2, 2, IFD_PAD_VALID);
    case 1:
        return max_pool(g, pad(g, v, before, after, pick(g, 0, 1) == 0 ? LEAST : SOMETHING));
    default:
        return max_pool(g, pad(g, op1(g, IFD_OP_RELU, v), before, after, ZERO));
    }
}

/* The rows' means, repeated, added. */
static uint32_t tiled(struct generator *g, uint32_t v)
{
    struct ifd_node *node = NULL;
    uint32_t w = begin(g, IFD_OP_REDUCE_MEAN, &v, 1, image_desc(g), &node);
    struct ifd_reduce_attrs *attrs = attrs_of(node);
    set_ints(node, "axes", (const int64_t[]){2}, 1);
    attrs->keep_dims = true;
    w = finish(g, w);
    const uint32_t tile = begin(g, IFD_OP_TILE, &w, 1, image_desc(g), &node);
    set_ints(node, "repeats", (const int64_t[]){1, 1, shape_of(g, v)->dim[2], 1}, 4);
    return op2(g, IFD_OP_ADD, v, finish(g, tile));
}

static uint32_t blocks(struct generator *g, enum ifd_op op, uint32_t v, const int64_t *block,
                       const int64_t *after, size_t count)
{
    static const int64_t none[2] = {0, 0};
    struct ifd_node *node = NULL;
    const uint32_t out = begin(g, op, &v, 1, image_desc(g), &node);
    set_ints(node, "block", block, count);
    set_ints(node, "before", none, count);
    set_ints(node, "after", after, count);
    return finish(g, out);
}

/* Along the lines of an image, or over both dimensions. */
static uint32_t dilated(struct generator *g, uint32_t v)
{
    const int64_t block[2] = {2, 2};
    const struct ifd_shape shape = *shape_of(g, v);
    if (pick(g, 0, 1) == 0) {
        const int64_t fill[2] = {2 + shape.dim[1] % 2, 2 + shape.dim[2] % 2};
        const int64_t crop[2] = {shape.dim[1] % 2, shape.dim[2] % 2};
        uint32_t w = blocks(g, IFD_OP_SPACE_TO_BATCH, v, block, fill, 2);
        w = convolve(g, IFD_OP_DEPTHWISE_CONV2D, w, 2, 2, IFD_PAD_VALID);
        return blocks(g, IFD_OP_BATCH_TO_SPACE, w, block, crop, 2);
    }
    const int64_t length = shape.dim[1] * shape.dim[2];
    const int64_t fill = 2 + length % 2, crop = length % 2;
    uint32_t w = reshape(g, v, &SHAPE(1, length, shape.dim[3]));
    w = blocks(g, IFD_OP_SPACE_TO_BATCH, w, block, &fill, 1);
    w = reshape(g, w, &SHAPE(2, 1, shape_of(g, w)->dim[1], shape.dim[3]));
    w = convolve(g, IFD_OP_CONV2D, w, 1, 2, IFD_PAD_VALID);
    w = reshape(g, w, &SHAPE(2, shape_of(g, w)->dim[2], shape_of(g, w)->dim[3]));
    w = blocks(g, IFD_OP_BATCH_TO_SPACE, w, block, &crop, 1);
    return reshape(g, w, &SHAPE(1, shape.dim[1], shape.dim[2], shape_of(g, w)->dim[2]));
}

/* A copy of an existing node. Pads are not copied: their numbers would not fit a sum. */
static uint32_t repeated(struct generator *g)
{
    const uint32_t n = (uint32_t)pick(g, 0, g->graph->node_count - 1);
    const struct ifd_node source = g->graph->node[n];
    const uint32_t old = source.output[0];
    const struct ifd_desc desc = image_desc(g);
    if (source.op == IFD_OP_PAD || shape_of(g, old)->rank != 4 ||
        g->graph->value[old].desc.dtype != desc.dtype ||
        !ifd_quant_same(&g->graph->value[old].desc.quant, &desc.quant) ||
        shape_of(g, old)->dim[0] != 1) {
        return IFD_NONE;
    }
    struct ifd_node *node = NULL;
    const uint32_t out =
        begin(g, source.op, source.input, source.input_count, image_desc(g), &node);
    const size_t bytes = ifd_op_def(source.op)->attrs_bytes;
    if (bytes > 0) {
        memcpy(attrs_of(node), source.attrs, bytes);
    }
    finish(g, out);
    return op2(g, IFD_OP_ADD, out, old);
}

static uint32_t step(struct generator *g)
{
    const uint32_t v = g->pool[pick(g, 0, g->count - 1)];
    const uint32_t other = g->pool[pick(g, 0, g->count - 1)];
    switch (pick(g, 0, 15)) {
    case 14:
        return normalized(g, v);
    case 0:
        return convolve(g, IFD_OP_CONV2D, v, 1, 1, IFD_PAD_VALID);
    case 1:
        return convolve(g, IFD_OP_DEPTHWISE_CONV2D, v, 3, 3, IFD_PAD_SAME);
    case 2:
        return fully_connected(g, v);
    case 3:
    case 4:
        return scaled(g, v);
    case 5:
    case 6:
        return bounded(g, v);
    case 7:
        return there_and_back(g, v);
    case 8:
        return padded(g, v);
    case 9:
        return tiled(g, v);
    case 10:
        return dilated(g, v);
    case 11:
        return g->graph->node_count > 0 ? repeated(g) : IFD_NONE;
    case 12:
        return gelu(g, v);
    case 13:
        return moved(g, v);
    default: {
        const uint32_t c = constant(g, SHAPE(1), quant_a, 0, 1);
        const uint32_t computed = op2(g, IFD_OP_ADD, c, c); /* depends on no input */
        return ifd_shape_equal(shape_of(g, v), shape_of(g, other))
                   ? op2(g, IFD_OP_ADD, v, other)
                   : op2(g, IFD_OP_SUB, v, computed);
    }
    }
}

/* Outputs are the last values made; what they do not need is dead. */
static void generate(struct generator *g, int64_t steps)
{
    struct ifd_desc desc = image_desc(g);
    struct ifd_err err = {0};
    desc.shape = SHAPE(1, pick(g, 3, 6), pick(g, 3, 6), pick(g, 1, 4));
    g->pool[g->count++] = add_value(g, &desc);
    for (int64_t i = 0; i < steps; i++) {
        const uint32_t v = step(g);
        if (v != IFD_NONE) {
            g->pool[g->count++] = v;
        }
    }
    uint32_t output[2] = {0};
    uint32_t outputs = 0;
    for (uint32_t i = g->count; i-- > 1 && outputs < 2;) {
        output[outputs++] = g->pool[i];
    }
    REQUIRE_OK(ifd_graph_set_io(g->graph, &g->pool[0], 1, output, outputs, &err), &err);
    REQUIRE_OK(ifd_graph_verify(g->graph, IFD_INVALID, &err), &err);
}

/* ---- the property ---- */

union numbers {
    float f32[ELEMENTS];
    int8_t s8[ELEMENTS];
};

static void expect_close(const float *got, const float *want, size_t count)
{
    float most = 1;
    for (size_t i = 0; i < count; i++) {
        most = fmaxf(most, fabsf(want[i]));
    }
    for (size_t i = 0; i < count; i++) {
        EXPECT_CLOSE(got[i], want[i], 2e-5 * (double)most);
    }
}

static void check(const struct generator *g, enum ifd_pass_level level, uint32_t *fired)
{
    struct ifd_pass_report report[PASSES];
    static union numbers input, before[2], after[2];
    struct ifd_graph graph;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_clone(g->graph, g->graph->arena, &graph, &err), &err);
    REQUIRE_OK(ifd_optimize(&graph, level, ifd_alloc_system(), report, &err), &err);
    REQUIRE_OK(ifd_graph_verify(&graph, IFD_INTERNAL, &err), &err);
    EXPECT(graph.node_count <= g->graph->node_count);
    REQUIRE(graph.output_count == g->graph->output_count && graph.input_count == 1);
    for (uint32_t i = 0; i < ifd_pass_count(); i++) {
        fired[i] += report[i].changes;
    }
    for (size_t i = 0; i < ELEMENTS; i++) {
        if (g->is_float) {
            input.f32[i] = test_random_f32(g->random, -3, 8);
        } else {
            input.s8[i] = (int8_t)pick((struct generator *)(uintptr_t)g, -128, 127);
        }
    }
    test_graph_interpret(g->graph, (const void *const[]){&input},
                         (void *const[]){&before[0], &before[1]});
    test_graph_interpret(&graph, (const void *const[]){&input},
                         (void *const[]){&after[0], &after[1]});
    for (uint32_t i = 0; i < graph.output_count; i++) {
        size_t bytes = 0;
        REQUIRE(ifd_desc_bytes(&graph.value[graph.output[i]].desc, &bytes));
        REQUIRE(bytes <= sizeof(after[i]));
        if (g->is_float && level == IFD_PASS_FUSE) {
            expect_close(after[i].f32, before[i].f32, bytes / sizeof(float));
        } else {
            EXPECT_BYTES(&after[i], &before[i], bytes);
        }
    }
}

static void check_many(bool is_float, enum ifd_pass_level level, uint64_t seed, uint32_t *fired)
{
    struct test_random random = {.state = seed};
    for (int round = 0; round < 1000; round++) {
        struct ifd_arena arena;
        struct ifd_graph graph;
        ifd_arena_init(&arena, ifd_alloc_system(), 0);
        ifd_graph_init(&graph, &arena);
        struct generator g = {.graph = &graph, .random = &random, .is_float = is_float};
        generate(&g, test_random_int(&random, 1, 12));
        if (graph.output_count > 0) {
            check(&g, level, fired);
        }
        ifd_arena_finish(&arena);
    }
}

static void floats_stay_the_same_where_nothing_may_round_differently(void)
{
    uint32_t fired[PASSES] = {0};
    check_many(true, IFD_PASS_EXACT, 21, fired);
}

static void floats_stay_close_and_stored_numbers_the_same_and_every_pass_fires(void)
{
    uint32_t fired[PASSES] = {0};
    struct ifd_pass_report names[PASSES];
    struct ifd_arena arena;
    struct ifd_graph empty;
    REQUIRE(ifd_pass_count() <= PASSES);
    check_many(true, IFD_PASS_FUSE, 22, fired);
    check_many(false, IFD_PASS_FUSE, 23, fired);
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_graph_init(&empty, &arena);
    REQUIRE_OK(ifd_optimize(&empty, IFD_PASS_REQUIRED, ifd_alloc_system(), names, NULL), NULL);
    for (uint32_t i = 0; i < ifd_pass_count(); i++) {
        if (fired[i] == 0) {
            EXPECT_TEXT("", names[i].name); /* never had anything to do */
        }
    }
    ifd_arena_finish(&arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(floats_stay_the_same_where_nothing_may_round_differently),
        T(floats_stay_close_and_stored_numbers_the_same_and_every_pass_fires),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

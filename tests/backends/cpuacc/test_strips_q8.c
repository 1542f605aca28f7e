/* 8-bit blocks that several threads run strip by strip give the same results as one thread step by
 * step, bit for bit. */
#include "backends/cpuacc/cpuacc.h"
#include "engine/ir/attrs.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <string.h>

enum { SIDE = 28, CHANNELS = 24, WIDE = 128, THREADS_MAX = 4 };

/* How a graph's tensors are quantized. */
struct kind {
    enum ifd_dtype dtype;
    struct ifd_quant values, weights;
    bool exact;
};

static const float scale[] = {0.05f}, scale_w[] = {0.004f};
static const int32_t zero[] = {-3}, zero_w[] = {0}, zero_u8[] = {125}, zero_w_u8[] = {131};
static const struct kind s8 = {IFD_S8, {scale, zero, 1, 0}, {scale_w, zero_w, 1, 0}, false};
static const struct kind u8 = {IFD_U8, {scale, zero_u8, 1, 0}, {scale_w, zero_w_u8, 1, 0}, false};
static const struct kind exact = {IFD_S8, {scale, zero, 1, 0}, {scale_w, zero_w, 1, 0}, true};

struct builder {
    struct ifd_graph *graph;
    const struct kind *kind;
};

static uint32_t value(const struct builder *b, struct ifd_shape shape, const struct ifd_quant *how)
{
    struct ifd_err err = {0};
    uint32_t made = 0;
    const struct ifd_desc desc = {.dtype = b->kind->dtype, .shape = shape, .quant = *how};
    REQUIRE_OK(ifd_graph_add_value(b->graph, "v", &desc, &made, &err), &err);
    return made;
}

static uint32_t weights(const struct builder *b, struct ifd_shape shape)
{
    static uint8_t data[WIDE * WIDE];
    struct test_random random = {.state = b->graph->node_count + 1};
    struct ifd_err err = {0};
    const uint32_t made = value(b, shape, &b->kind->weights);
    size_t bytes = 1;
    for (uint32_t d = 0; d < shape.rank; d++) {
        bytes *= (size_t)shape.dim[d];
    }
    REQUIRE(bytes <= sizeof(data));
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)test_random_int(&random, 1, 255); /* -128 is no weight of signed ones */
        data[i] ^= b->kind->dtype == IFD_S8 ? 0x80 : 0;
    }
    REQUIRE_OK(ifd_graph_set_constant(b->graph, made, (struct ifd_bytes){data, bytes}, 0, &err),
               &err);
    return made;
}

static uint32_t node(const struct builder *b, enum ifd_op op, const uint32_t *in, uint32_t count,
                     struct ifd_node **ret_node)
{
    struct ifd_err err = {0};
    const uint32_t out = value(b, (struct ifd_shape){0}, &b->kind->values);
    REQUIRE_OK(ifd_graph_add_node(b->graph, op, in, count, &out, 1, ret_node, &err), &err);
    return out;
}

static void infer(const struct builder *b)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(b->graph, b->graph->node_count - 1, &err), &err);
}

static uint32_t window(const struct builder *b, enum ifd_op op, uint32_t in, struct ifd_shape shape,
                       int32_t stride)
{
    struct ifd_node *made = NULL;
    const uint32_t out = node(b, op, (const uint32_t[]){in, weights(b, shape)}, 2, &made);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)made->attrs;
    attrs->window.padding = IFD_PAD_SAME;
    attrs->window.stride_h = attrs->window.stride_w = stride;
    attrs->activation = op == IFD_OP_CONV2D && shape.dim[1] == 1 ? IFD_ACT_NONE : IFD_ACT_RELU6;
    infer(b);
    return out;
}

static uint32_t add(const struct builder *b, uint32_t x, uint32_t y)
{
    struct ifd_node *made = NULL;
    const uint32_t out = node(b, IFD_OP_ADD, (const uint32_t[]){x, y}, 2, &made);
    infer(b);
    return out;
}

static uint32_t conv(const struct builder *b, uint32_t in, int64_t from, int64_t to)
{
    return window(b, IFD_OP_CONV2D, in, SHAPE(to, 1, 1, from), 1);
}

static uint32_t depthwise(const struct builder *b, uint32_t in, int64_t channels, int64_t side,
                          int32_t stride)
{
    return window(b, IFD_OP_DEPTHWISE_CONV2D, in, SHAPE(1, side, side, channels), stride);
}

/* ---- graphs ---- */

typedef uint32_t (*build_fn)(const struct builder *b, uint32_t in);

/* A block of MobileNetV2; the sum may take the memory of the block's input. */
static uint32_t inverted(const struct builder *b, uint32_t in)
{
    const uint32_t begin = conv(b, in, CHANNELS, CHANNELS);
    uint32_t x = conv(b, begin, CHANNELS, WIDE);
    x = depthwise(b, x, WIDE, 3, 1);
    return add(b, conv(b, x, WIDE, CHANNELS), begin);
}

static uint32_t halved(const struct builder *b, uint32_t in)
{
    uint32_t x = conv(b, in, CHANNELS, WIDE);
    x = depthwise(b, x, WIDE, 5, 2);
    return conv(b, x, WIDE, CHANNELS);
}

/* MobileNetV1: a first layer, then windows that begin a block each. */
static uint32_t separable(const struct builder *b, uint32_t in)
{
    uint32_t x = window(b, IFD_OP_CONV2D, in, SHAPE(CHANNELS, 3, 3, CHANNELS), 1);
    x = depthwise(b, x, CHANNELS, 3, 1);
    x = conv(b, x, CHANNELS, WIDE);
    x = depthwise(b, x, WIDE, 3, 1);
    return conv(b, x, WIDE, CHANNELS);
}

/* Pixels below each other, which a fully connected layer makes as lines of one pixel. */
static uint32_t connected(const struct builder *b, uint32_t in)
{
    struct ifd_node *made = NULL;
    const int64_t shape[] = {b->graph->value[in].desc.shape.dim[0], SIDE * SIDE, 1, CHANNELS};
    struct ifd_err err = {0};
    const uint32_t column = node(b, IFD_OP_RESHAPE, &in, 1, &made);
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(IFD_OP_RESHAPE), (void *)(uintptr_t)made->attrs,
                                  "shape", shape, 4, &err),
               &err);
    infer(b);
    const uint32_t x =
        node(b, IFD_OP_FULLY_CONNECTED,
             (const uint32_t[]){column, weights(b, SHAPE(WIDE, CHANNELS))}, 2, &made);
    ((struct ifd_fully_connected_attrs *)(uintptr_t)made->attrs)->keep_dims = true;
    infer(b);
    return conv(b, depthwise(b, x, WIDE, 3, 1), WIDE, CHANNELS);
}

/* ---- running ---- */

struct result {
    uint8_t *data;
    size_t bytes;
    uint32_t chained; /* steps of a chain after the first */
};

static struct result run(build_fn build, const struct kind *kind, uint32_t threads, int64_t batch,
                         bool deserted)
{
    struct ifd_err err = {0};
    struct test_run run =
        test_run_open(&(struct test_run_options){.backend = &ifd_backend_cpuacc,
                                                 .engine = {.exact = kind->exact},
                                                 .model = {.max_threads = threads},
                                                 .l2_bytes = (size_t)1 << 20});
    const struct builder b = {&run.model->graph, kind};
    const uint32_t in = value(&b, SHAPE(batch, SIDE, SIDE, CHANNELS), &kind->values);
    const uint32_t out = build(&b, in);
    REQUIRE_OK(ifd_graph_set_io(b.graph, &in, 1, &out, 1, &err), &err);
    test_run_plan(&run, 0);
    struct test_random random = {.state = 3};
    for (size_t i = 0; i < run.in.bytes; i++) {
        ((uint8_t *)run.in.data)[i] = (uint8_t)test_random_int(&random, 0, 255);
    }
    if (deserted) {
        test_run_alone(&run);
    }
    for (int again = 0; again < 2; again++) {
        test_run_once(&run);
    }
    struct result result = {.bytes = run.out[0].bytes, .chained = test_run_count(&run, "strips")};
    result.data = ifd_acquire(ifd_alloc_system(), result.bytes);
    REQUIRE(result.data);
    memcpy(result.data, run.out[0].data, result.bytes);
    test_run_close(&run);
    return result;
}

static void compare(build_fn build, const struct kind *kind, uint32_t chained)
{
    for (int64_t batch = 1; batch <= 2; batch++) {
        const struct result alone = run(build, kind, 1, batch, false);
        EXPECT_INT(alone.chained, 0);
        for (uint32_t i = 0; i < 2 * (THREADS_MAX - 1); i++) {
            const struct result strips = run(build, kind, 2 + i / 2, batch, i % 2 == 1);
            EXPECT_INT(strips.chained, chained);
            REQUIRE(strips.bytes == alone.bytes);
            EXPECT(memcmp(strips.data, alone.data, alone.bytes) == 0);
            ifd_release(ifd_alloc_system(), strips.data, strips.bytes);
        }
        ifd_release(ifd_alloc_system(), alone.data, alone.bytes);
    }
}

static void inverted_blocks_are_equal(void)
{
    compare(inverted, &s8, 2);
    compare(inverted, &u8, 2);
}

static void separable_blocks_are_equal(void)
{
    compare(separable, &s8, 3);
    compare(separable, &u8, 3);
}

static void connected_blocks_are_equal(void)
{
    compare(connected, &s8, 2);
    compare(connected, &exact, 2);
}

/* 14 lines are enough for two threads. */
static void few_lines_are_not_made_twice(void)
{
    const struct result alone = run(halved, &s8, 1, 1, false);
    for (uint32_t threads = 2; threads <= THREADS_MAX; threads++) {
        const struct result strips = run(halved, &s8, threads, 1, false);
        EXPECT_INT(strips.chained, threads == 2 ? 2 : 0);
        EXPECT(memcmp(strips.data, alone.data, alone.bytes) == 0);
        ifd_release(ifd_alloc_system(), strips.data, strips.bytes);
    }
    ifd_release(ifd_alloc_system(), alone.data, alone.bytes);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(inverted_blocks_are_equal),
        T(separable_blocks_are_equal),
        T(connected_blocks_are_equal),
        T(few_lines_are_not_made_twice),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

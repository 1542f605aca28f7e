/* Chains that run strip by strip give the same results as their steps one by one, bit for bit. */
#include "backends/cpuacc/cpuacc.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <string.h>

enum { SIDE = 65, CHANNELS = 20, WIDE = 40, BATCH_MAX = 2 };

/* A second-level cache that everything fits into. */
#define LARGE_CACHE ((size_t)1 << 30)

struct window {
    int32_t side, stride, dilation;
};

static uint32_t constant(struct ifd_graph *g, struct ifd_shape shape)
{
    static float data[WIDE * WIDE * 9];
    struct test_random random = {.state = g->node_count + 1};
    size_t count = 1;
    for (uint32_t i = 0; i < shape.rank; i++) {
        count *= (size_t)shape.dim[i];
    }
    REQUIRE(count <= sizeof(data) / sizeof(data[0]));
    for (size_t i = 0; i < count; i++) {
        data[i] = test_random_f32(&random, -1, 1);
    }
    return test_graph_constant(g, "c", shape, data);
}

/* A convolution or a depthwise one, clamped so that numbers stay small. */
static uint32_t window(struct ifd_graph *g, enum ifd_op op, uint32_t in, struct ifd_shape weights,
                       struct window size)
{
    struct ifd_err err = {0};
    const uint32_t filter = constant(g, weights);
    const uint32_t output = g->value_count;
    struct ifd_node *node = NULL;
    uint32_t out = 0;
    REQUIRE_OK(ifd_graph_add_value(g, "window", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err),
               &err);
    EXPECT_INT(out, output);
    REQUIRE_OK(ifd_graph_add_node(g, op, (const uint32_t[]){in, filter}, 2, &out, 1, &node, &err),
               &err);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)node->attrs;
    attrs->window.padding = IFD_PAD_SAME;
    attrs->window.stride_h = attrs->window.stride_w = size.stride;
    attrs->window.dilation_h = attrs->window.dilation_w = size.dilation;
    attrs->activation = IFD_ACT_RELU6;
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return out;
}

static uint32_t conv(struct ifd_graph *g, uint32_t in, int64_t from, int64_t to, struct window size)
{
    return window(g, IFD_OP_CONV2D, in, SHAPE(to, size.side, size.side, from), size);
}

static uint32_t depthwise(struct ifd_graph *g, uint32_t in, int64_t channels, struct window size)
{
    return window(g, IFD_OP_DEPTHWISE_CONV2D, in, SHAPE(1, size.side, size.side, channels), size);
}

/* ---- graphs ---- */

typedef uint32_t (*build_fn)(struct ifd_graph *g, uint32_t in);

/* A first layer, then blocks of MobileNets. */
static uint32_t blocks(struct ifd_graph *g, uint32_t in)
{
    uint32_t x = conv(g, in, CHANNELS, CHANNELS, (struct window){3, 2, 1});
    x = depthwise(g, x, CHANNELS, (struct window){3, 1, 1});
    x = conv(g, x, CHANNELS, WIDE, (struct window){1, 1, 1});
    x = depthwise(g, x, WIDE, (struct window){3, 2, 1});
    return conv(g, x, WIDE, CHANNELS, (struct window){1, 1, 1});
}

/* The sum takes the memory of the block's input, if nobody else needs it. */
static uint32_t residual(struct ifd_graph *g, uint32_t in)
{
    const uint32_t begin = conv(g, in, CHANNELS, CHANNELS, (struct window){1, 1, 1});
    uint32_t x = conv(g, begin, CHANNELS, WIDE, (struct window){1, 1, 1});
    x = depthwise(g, x, WIDE, (struct window){5, 1, 1});
    x = conv(g, x, WIDE, CHANNELS, (struct window){1, 1, 1});
    /* without an activation it is the convolution that adds */
    ((struct ifd_conv2d_attrs *)(uintptr_t)g->node[g->node_count - 1].attrs)->activation =
        IFD_ACT_NONE;
    const uint32_t sum = test_graph_op2(g, IFD_OP_ADD, x, begin, "sum");
    const uint32_t again = depthwise(g, sum, CHANNELS, (struct window){3, 1, 1});
    return test_graph_op2(g, IFD_OP_ADD, again, sum, "second_sum");
}

/* The shortcut of a stride comes between the block's layers and is added at its end. */
static uint32_t shortcut(struct ifd_graph *g, uint32_t in)
{
    const uint32_t begin = conv(g, in, CHANNELS, CHANNELS, (struct window){1, 1, 1});
    uint32_t x = conv(g, begin, CHANNELS, WIDE, (struct window){1, 1, 1});
    const uint32_t beside = depthwise(g, begin, CHANNELS, (struct window){3, 2, 1});
    x = depthwise(g, x, WIDE, (struct window){3, 2, 1});
    x = conv(g, x, WIDE, CHANNELS, (struct window){1, 1, 1});
    ((struct ifd_conv2d_attrs *)(uintptr_t)g->node[g->node_count - 1].attrs)->activation =
        IFD_ACT_NONE;
    return test_graph_op2(g, IFD_OP_ADD, x, beside, "sum");
}

/* Windows taller than a strip, and holes in them. */
static uint32_t dilated(struct ifd_graph *g, uint32_t in)
{
    uint32_t x = conv(g, in, CHANNELS, WIDE, (struct window){1, 1, 1});
    x = depthwise(g, x, WIDE, (struct window){3, 1, 4});
    x = depthwise(g, x, WIDE, (struct window){7, 1, 1});
    return conv(g, x, WIDE, CHANNELS, (struct window){3, 2, 1});
}

/* Pixels of an even number of cache lines have gaps between them beside a depthwise convolution;
 * tails honour the gaps. */
static uint32_t even(struct ifd_graph *g, uint32_t in)
{
    uint32_t x = conv(g, in, CHANNELS, 64, (struct window){3, 2, 1});
    x = test_graph_op2(g, IFD_OP_MUL, x, constant(g, SHAPE(64)), "scaled");
    x = depthwise(g, x, 64, (struct window){3, 1, 1});
    x = test_graph_op2(g, IFD_OP_MUL, x, constant(g, SHAPE(64)), "scaled");
    x = conv(g, x, 64, 32, (struct window){1, 1, 1});
    x = depthwise(g, x, 32, (struct window){3, 2, 1});
    return conv(g, x, 32, CHANNELS, (struct window){3, 1, 1});
}

/* A window that advances by two lines for each line of the strip. */
static uint32_t halved(struct ifd_graph *g, uint32_t in)
{
    const uint32_t x = conv(g, in, CHANNELS, WIDE, (struct window){1, 1, 1});
    return depthwise(g, x, WIDE, (struct window){3, 2, 1});
}

static uint32_t not_halved(struct ifd_graph *g, uint32_t in)
{
    const uint32_t x = conv(g, in, CHANNELS, WIDE, (struct window){1, 1, 1});
    return depthwise(g, x, WIDE, (struct window){3, 1, 1});
}

/* A step that adds what it reads needs all of it: no strips. */
static uint32_t twice(struct ifd_graph *g, uint32_t in)
{
    const uint32_t once = conv(g, in, CHANNELS, CHANNELS, (struct window){1, 1, 1});
    const uint32_t x = depthwise(g, once, CHANNELS, (struct window){3, 1, 1});
    const uint32_t sum = test_graph_op2(g, IFD_OP_ADD, x, once, "sum");
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t out = 0;
    const uint32_t filter = constant(g, SHAPE(CHANNELS, 1, 1, CHANNELS));
    REQUIRE_OK(ifd_graph_add_value(g, "x", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err), &err);
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_CONV2D, (const uint32_t[]){sum, filter}, 2, &out, 1,
                                  &node, &err),
               &err);
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return test_graph_op2(g, IFD_OP_ADD, out, sum, "second_sum");
}

/* Padding wider than the window, from a folded pad: lines of padding only. */
static uint32_t far_apart(struct ifd_graph *g, uint32_t in)
{
    const uint32_t x = conv(g, in, CHANNELS, WIDE, (struct window){1, 1, 1});
    const uint32_t y = depthwise(g, x, WIDE, (struct window){3, 1, 1});
    struct ifd_err err = {0};
    struct ifd_conv2d_attrs *attrs =
        (struct ifd_conv2d_attrs *)(uintptr_t)g->node[g->node_count - 1].attrs;
    attrs->window = (struct ifd_window){.padding = IFD_PAD_EXPLICIT,
                                        .stride_h = 1,
                                        .stride_w = 1,
                                        .dilation_h = 1,
                                        .dilation_w = 1,
                                        .pad_top = 9,
                                        .pad_bottom = 9,
                                        .pad_left = 1,
                                        .pad_right = 1};
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return conv(g, y, WIDE, CHANNELS, (struct window){1, 1, 1});
}

/* ---- running ---- */

struct result {
    struct ifd_tensor out;
    uint32_t chained; /* steps of a chain after the first */
};

static struct result run(build_fn build, size_t cache, uint32_t threads, int64_t batch,
                         bool deserted)
{
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc, .model = {.max_threads = threads}, .l2_bytes = cache});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(batch, SIDE, SIDE, CHANNELS));
    test_graph_io(g, in, build(g, in));
    test_run_plan(&run, 0);
    struct result result = {.chained = test_run_count(&run, "strips")};
    struct test_random random = {.state = 3};
    for (size_t i = 0; i < run.in.bytes / sizeof(float); i++) {
        ((float *)run.in.data)[i] = test_random_f32(&random, -2, 2);
    }
    if (deserted) {
        test_run_alone(&run);
    }
    for (int again = 0; again < 2; again++) {
        test_run_once(&run);
    }
    result.out = test_tensor_f32(run.out[0].shape);
    memcpy(result.out.data, run.out[0].data, run.out[0].bytes);
    test_run_close(&run);
    return result;
}

/* cache: holds some strips, but none of the tensors between chained steps. */
static void compare_batch(build_fn build, size_t cache, uint32_t chained, int64_t batch)
{
    const struct result plain = run(build, LARGE_CACHE, 1, batch, false);
    EXPECT_INT(plain.chained, 0);
    for (uint32_t i = 0; i < 6; i++) {
        const struct result strips = run(build, cache, 1 + i / 2, batch, i % 2 == 1);
        EXPECT_INT(strips.chained, chained);
        REQUIRE(strips.out.bytes == plain.out.bytes);
        EXPECT(memcmp(strips.out.data, plain.out.data, plain.out.bytes) == 0);
        ifd_release_tensor(ifd_alloc_system(), strips.out.data, strips.out.bytes);
    }
    ifd_release_tensor(ifd_alloc_system(), plain.out.data, plain.out.bytes);
}

/* One image that threads share, and one image for each thread. */
static void compare(build_fn build, size_t cache, uint32_t chained)
{
    for (int64_t batch = 1; batch <= BATCH_MAX; batch++) {
        compare_batch(build, cache, chained, batch);
    }
}

static void blocks_of_several_strides_are_equal(void)
{
    compare(blocks, (size_t)256 << 10, 4);
}

static void sums_in_the_memory_of_their_operand_are_equal(void)
{
    compare(residual, (size_t)256 << 10, 2);
}

static void what_stands_between_layers_goes_before_them(void)
{
    compare(shortcut, (size_t)256 << 10, 2);
}

static void dilated_and_tall_windows_are_equal(void)
{
    compare(dilated, (size_t)1 << 20, 3);
}

static void what_is_added_where_it_is_read_is_whole(void)
{
    compare(twice, 64 * 1024, 0);
}

static void lines_of_padding_alone_are_equal(void)
{
    compare(far_apart, (size_t)256 << 10, 0);
}

/* Five eighths of the caches hold five and four lines of 65 pixels of 40 channels. A window that
 * advances by one line needs six lines for the lowest strip; with a stride it needs five. */
static void strips_behind_a_stride_may_be_two_lines(void)
{
    compare(halved, (size_t)90 << 10, 1);
    compare(not_halved, (size_t)90 << 10, 0);
    compare(halved, (size_t)80 << 10, 0);
}

static void pixels_that_lie_apart_are_equal(void)
{
    compare(even, (size_t)512 << 10, 3);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(blocks_of_several_strides_are_equal), T(sums_in_the_memory_of_their_operand_are_equal),
        T(dilated_and_tall_windows_are_equal),  T(what_is_added_where_it_is_read_is_whole),
        T(lines_of_padding_alone_are_equal),    T(strips_behind_a_stride_may_be_two_lines),
        T(pixels_that_lie_apart_are_equal),     T(what_stands_between_layers_goes_before_them),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

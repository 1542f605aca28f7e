/* Tensors between steps in half precision, beside the interpreter, which has f32 only: one network
 * with every kind of kernel that loads or stores them. */
#include "backends/gpuacc/gpuacc.h"
#include "engine/engine.h"
#include "tests/backends/gpuacc/build.h"
#include "tests/backends/gpuacc/programs.h"
#include "tests/support/model.h"

#include <math.h>

#define STEPS     16 /* more than follow each other on any way through the network */
#define HALF_STEP 0x1p-11
#define OUTPUTS   6

static struct test_run begin(enum ifd_precision precision)
{
    const struct test_run_options options = {
        .backend = &ifd_backend_gpuacc, .model = {.no_optimize = true, .precision = precision}};
    return test_run_open_device(&options);
}

/* ---- the network ---- */

static void set_ints(const struct ifd_node *node, const char *name, const int64_t *value,
                     uint32_t count)
{
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(node->op), attrs_of(node), name, value, count, NULL),
               NULL);
}

static uint32_t resize(struct ifd_graph *g, enum ifd_op op, uint32_t x, int32_t size)
{
    struct ifd_node *node = add(g, op, &x, 1);
    *(struct ifd_resize_attrs *)attrs_of(node) =
        (struct ifd_resize_attrs){.height = size, .width = size};
    return finish(g, node);
}

static uint32_t pad(struct ifd_graph *g, uint32_t x)
{
    const int64_t before[] = {0, 1, 0, 0}, after[] = {0, 0, 2, 0};
    struct ifd_node *node = add(g, IFD_OP_PAD, &x, 1);
    set_ints(node, "before", before, 4);
    set_ints(node, "after", after, 4);
    ((struct ifd_pad_attrs *)attrs_of(node))->has_value = true;
    ((struct ifd_pad_attrs *)attrs_of(node))->value = 0.75f;
    return finish(g, node);
}

static uint32_t mean(struct ifd_graph *g, uint32_t x)
{
    const int64_t axes[] = {1, 2};
    struct ifd_node *node = add(g, IFD_OP_REDUCE_MEAN, &x, 1);
    set_ints(node, "axes", axes, 2);
    ((struct ifd_reduce_attrs *)attrs_of(node))->keep_dims = true;
    return finish(g, node);
}

static uint32_t concat(struct ifd_graph *g, uint32_t a, uint32_t b)
{
    const uint32_t in[] = {a, b};
    struct ifd_node *node = add(g, IFD_OP_CONCAT, in, 2);
    ((struct ifd_axis_attrs *)attrs_of(node))->axis = 3;
    return finish(g, node);
}

/* Images of c channels, more than first layers keep in f32. */
static uint32_t build(struct ifd_graph *g, int64_t c, uint32_t ret[OUTPUTS])
{
    const uint32_t x = test_graph_f32(g, "x", SHAPE(2, 5, 5, c));
    const uint32_t first = pool(g, IFD_OP_MAX_POOL2D, x);
    const uint32_t conv = layer(g, IFD_OP_CONV2D, first, SHAPE(c, 3, 3, c));
    const uint32_t deep = layer(g, IFD_OP_DEPTHWISE_CONV2D, conv, SHAPE(1, 3, 3, c));
    const uint32_t sum = test_graph_op2(g, IFD_OP_ADD, deep, conv, "sum");
    const uint32_t both = concat(g, sum, first);
    const uint32_t narrow = layer(g, IFD_OP_CONV2D, both, SHAPE(c, 1, 1, 2 * c));
    const uint32_t gate = mean(g, narrow);
    const uint32_t gated = test_graph_op2(g, IFD_OP_MUL, narrow, gate, "gated");
    const uint32_t large = resize(g, IFD_OP_RESIZE_BILINEAR, gated, 7);
    const uint32_t larger = resize(g, IFD_OP_RESIZE_NEAREST, large, 9);
    const uint32_t rows = test_graph_reshape(g, gated, SHAPE(2, 25, c), "rows");
    const uint32_t columns = test_graph_reshape(g, narrow, SHAPE(2, c, 25), "columns");
    const uint32_t product = test_graph_op2(g, IFD_OP_BATCH_MATMUL, rows, columns, "product");
    const uint32_t flat = test_graph_reshape(g, gate, SHAPE(2, c), "flat");
    const uint32_t dense =
        test_graph_op2(g, IFD_OP_FULLY_CONNECTED, flat, weights(g, SHAPE(5, c)), "dense");
    ret[0] = pool(g, IFD_OP_AVERAGE_POOL2D, pad(g, larger));
    ret[1] = test_graph_op1(g, IFD_OP_SOFTMAX, dense, "softmax");
    ret[2] = test_graph_op1(g, IFD_OP_LOG_SOFTMAX, product, "log_softmax");
    ret[3] = test_graph_op1(g, IFD_OP_L2_NORMALIZATION, sum, "of what has no halves");
    ret[4] = test_graph_op1(g, IFD_OP_LOGISTIC, product, "logistic");
    ret[5] = concat(g, deep, narrow);
    return x;
}

/* ---- a network that moves elements ---- */

static uint32_t space(struct ifd_graph *g, enum ifd_op op, uint32_t x)
{
    const int64_t block[] = {2, 2}, before[] = {0, 1}, after[] = {0, 0};
    struct ifd_node *node = add(g, op, &x, 1);
    set_ints(node, "block", block, 2);
    set_ints(node, "before", before, 2);
    set_ints(node, "after", after, 2);
    return finish(g, node);
}

static uint32_t transpose(struct ifd_graph *g, uint32_t x)
{
    const int64_t perm[] = {0, 2, 1, 3};
    struct ifd_node *node = add(g, IFD_OP_TRANSPOSE, &x, 1);
    set_ints(node, "perm", perm, 4);
    return finish(g, node);
}

static uint32_t blocks(struct ifd_graph *g, enum ifd_op op, uint32_t x)
{
    struct ifd_node *node = add(g, op, &x, 1);
    ((struct ifd_space_depth_attrs *)attrs_of(node))->block = 2;
    return finish(g, node);
}

static uint32_t gather(struct ifd_graph *g, uint32_t x)
{
    static const int32_t index[] = {3, 0, 2, 2};
    const struct ifd_desc desc = {.dtype = IFD_S32, .shape = SHAPE(4)};
    const struct ifd_bytes content = {.data = (const uint8_t *)index, .size = sizeof(index)};
    uint32_t in[] = {x, 0};
    REQUIRE_OK(ifd_graph_add_value(g, "index", &desc, &in[1], NULL), NULL);
    REQUIRE_OK(ifd_graph_set_constant(g, in[1], content, 0, NULL), NULL);
    struct ifd_node *node = add(g, IFD_OP_GATHER, in, 2);
    ((struct ifd_gather_attrs *)attrs_of(node))->axis = 1;
    return finish(g, node);
}

static uint32_t mirror(struct ifd_graph *g, uint32_t x)
{
    const int64_t before[] = {0, 1, 0, 0}, after[] = {0, 0, 1, 0};
    struct ifd_node *node = add(g, IFD_OP_MIRROR_PAD, &x, 1);
    set_ints(node, "before", before, 4);
    set_ints(node, "after", after, 4);
    return finish(g, node);
}

static uint32_t with_axes(struct ifd_graph *g, enum ifd_op op, uint32_t x, const char *name,
                          const int64_t *value, uint32_t count)
{
    struct ifd_node *node = add(g, op, &x, 1);
    set_ints(node, name, value, count);
    return finish(g, node);
}

static uint32_t slice(struct ifd_graph *g, uint32_t x, int64_t size, int64_t c)
{
    const int64_t begin[] = {0, 1, 0, 0}, sizes[] = {2, size, size, c};
    struct ifd_node *node = add(g, IFD_OP_SLICE, &x, 1);
    set_ints(node, "begin", begin, 4);
    set_ints(node, "size", sizes, 4);
    return finish(g, node);
}

/* Every mover between layers: what it reads and what it makes are halves. */
static uint32_t build_moves(struct ifd_graph *g, int64_t c, uint32_t ret[OUTPUTS])
{
    static const int64_t times[] = {1, 2, 1, 1}, axis[] = {1};
    const struct ifd_shape pointwise = SHAPE(c, 1, 1, c), deep = SHAPE(1, 3, 3, c);
    const uint32_t x = test_graph_f32(g, "x", SHAPE(2, 6, 7, c));
    const uint32_t stem = layer(g, IFD_OP_CONV2D, x, SHAPE(c, 1, 1, c));
    const uint32_t apart = space(g, IFD_OP_SPACE_TO_BATCH, stem); /* 8, 3, 4 */
    const uint32_t dilated = layer(g, IFD_OP_DEPTHWISE_CONV2D, apart, deep);
    const uint32_t together = space(g, IFD_OP_BATCH_TO_SPACE, dilated);           /* 2, 6, 7 */
    const uint32_t padded = layer(g, IFD_OP_CONV2D, pad(g, together), pointwise); /* 7, 9 */
    const uint32_t turned = layer(g, IFD_OP_CONV2D, transpose(g, padded), pointwise);
    const uint32_t mirrored = layer(g, IFD_OP_CONV2D, mirror(g, turned), pointwise); /* 10, 8 */
    const uint32_t narrow = blocks(g, IFD_OP_SPACE_TO_DEPTH, mirrored);              /* 5, 4 */
    const uint32_t mixed = test_graph_op1(g, IFD_OP_HARD_SWISH, narrow, "mixed");
    const uint32_t wide = blocks(g, IFD_OP_DEPTH_TO_SPACE, mixed);                 /* 10, 8 */
    const uint32_t picked = layer(g, IFD_OP_CONV2D, gather(g, wide), pointwise);   /* 4, 8 */
    const uint32_t tiled = with_axes(g, IFD_OP_TILE, picked, "repeats", times, 4); /* 8, 8 */
    const uint32_t again = layer(g, IFD_OP_CONV2D, tiled, pointwise);
    const uint32_t back = with_axes(g, IFD_OP_REVERSE, again, "axes", axis, 1);
    const uint32_t sum = test_graph_op2(g, IFD_OP_ADD, back, again, "sum");
    const uint32_t large = resize(g, IFD_OP_RESIZE_NEAREST, sum, 11);
    const uint32_t both = concat(g, large, resize(g, IFD_OP_RESIZE_BILINEAR, again, 11));
    const uint32_t part = slice(g, layer(g, IFD_OP_CONV2D, both, SHAPE(c, 1, 1, 2 * c)), 9, c);
    ret[0] = layer(g, IFD_OP_CONV2D, part, pointwise);
    ret[1] = test_graph_op1(g, IFD_OP_SOFTMAX, mean(g, part), "softmax");
    ret[2] = together;
    ret[3] = test_graph_op1(g, IFD_OP_ABS, wide, "of moved halves");
    ret[4] = pool(g, IFD_OP_MAX_POOL2D, back);
    ret[5] = test_graph_op1(g, IFD_OP_LOGISTIC, large, "logistic");
    return x;
}

/* ---- runs ---- */

typedef uint32_t build_fn(struct ifd_graph *g, int64_t c, uint32_t ret[OUTPUTS]);

static struct test_run run(build_fn *make, enum ifd_precision precision, int64_t channels)
{
    struct test_run t = begin(precision);
    struct ifd_graph *g = &t.model->graph;
    uint32_t output[OUTPUTS];
    const uint32_t x = make(g, channels, output);
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, output, OUTPUTS, NULL), NULL);
    build_input(&t);
    return t;
}

static void expect_close(build_fn *make, enum ifd_precision precision, int64_t channels,
                         double limit)
{
    struct test_run t = run(make, precision, channels);
    build_expect_close(&t, limit);
    print_programs(t.engine->registry.slot[0].device);
    test_run_close(&t);
}

static void every_kernel_widens_what_it_loads(void)
{
    expect_close(build, IFD_PRECISION_FP16, 20, STEPS * HALF_STEP);
    expect_close(build, IFD_PRECISION_FP16, 19, STEPS * HALF_STEP); /* rows that are no vectors */
}

static void f32_is_not_rounded(void)
{
    expect_close(build, IFD_PRECISION_F32, 20, 1e-5);
    expect_close(build, IFD_PRECISION_F32, 19, 1e-5);
}

static size_t device_bytes(build_fn *make, enum ifd_precision precision)
{
    struct test_run t = run(make, precision, 20);
    test_run_plan(&t, 0);
    const size_t bytes = ifd_instance_device_bytes(t.instance);
    test_run_close(&t);
    return bytes;
}

static void every_mover_moves_halves(void)
{
    expect_close(build_moves, IFD_PRECISION_FP16, 20, STEPS * HALF_STEP);
    expect_close(build_moves, IFD_PRECISION_FP16, 19, STEPS * HALF_STEP);
    expect_close(build_moves, IFD_PRECISION_F32, 20, 1e-5);
}

static void tensors_need_less_memory(void)
{
    build_fn *const makes[] = {build, build_moves};
    for (size_t i = 0; i < 2; i++) {
        const size_t wide = device_bytes(makes[i], IFD_PRECISION_F32);
        const size_t half = device_bytes(makes[i], IFD_PRECISION_FP16);
        EXPECT(half > 0 && half < wide);
    }
}

/* Two layers behind a picture of 3 channels; then one more reads it. */
static float narrow_layers(enum ifd_precision precision, int64_t channels)
{
    struct test_run t = begin(precision);
    struct ifd_graph *g = &t.model->graph;
    const uint32_t x = test_graph_f32(g, "x", SHAPE(1, 5, 5, 3));
    const uint32_t stem = layer(g, IFD_OP_CONV2D, x, SHAPE(channels, 3, 3, 3));
    const uint32_t deep = layer(g, IFD_OP_DEPTHWISE_CONV2D, stem, SHAPE(1, 3, 3, channels));
    const uint32_t out = layer(g, IFD_OP_CONV2D, deep, SHAPE(4, 1, 1, channels));
    const uint32_t outputs[] = {out};
    REQUIRE_OK(ifd_graph_set_io(g, &x, 1, outputs, 1, NULL), NULL);
    test_run_input(&t, 0);
    for (size_t i = 0; i < t.in.bytes / sizeof(float); i++) {
        ((float *)t.in.data)[i] = 100 / (float)(i + 3);
    }
    struct ifd_tensor want = test_tensor_f32(g->value[out].desc.shape);
    const void *in = t.in.data;
    void *content = want.data;
    float worst = 0;
    test_graph_interpret(g, &in, &content);
    test_run_plan(&t, 0);
    test_run_once(&t);
    for (size_t i = 0; i < want.bytes / sizeof(float); i++) {
        const float got = ((const float *)t.out[0].data)[i];
        worst = fmaxf(worst, fabsf(got - ((const float *)want.data)[i]));
    }
    ifd_release_tensor(ifd_alloc_system(), want.data, want.bytes);
    test_run_close(&t);
    return worst;
}

static void first_layers_of_few_channels_are_not_rounded(void)
{
    EXPECT(narrow_layers(IFD_PRECISION_FP16, 16) <= 1e-5f);
    EXPECT(narrow_layers(IFD_PRECISION_FP16, 20) > 1e-4f);
    EXPECT(narrow_layers(IFD_PRECISION_F32, 20) <= 1e-5f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_kernel_widens_what_it_loads),
        T(f32_is_not_rounded),
        T(every_mover_moves_halves),
        T(tensors_need_less_memory),
        T(first_layers_of_few_channels_are_not_rounded),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

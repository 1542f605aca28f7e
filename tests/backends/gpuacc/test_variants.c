/* Every set of definitions that GpuAcc builds kernels of floats with, on tensors of a few pixels,
 * beside the interpreter: layers with each blocking, form of their window, of rows, weights and
 * tensors; and what else loads and stores reals. Small enough for Oclgrind, where check_memory.py
 * holds what ran to its table (variants.py). Larger layers, and how exact f32 is, are
 * test_blocking.c's. */
#include "backends/gpuacc/gpuacc.h"
#include "backends/gpuacc/ops/blocking.h"
#include "engine/engine.h"
#include "tests/backends/gpuacc/build.h"
#include "tests/backends/gpuacc/programs.h"

#include <string.h>

#define LIMIT (8 * 0x1p-11) /* steps in half precision; of the range */

static struct ifd_device *device_of(const struct test_run *t)
{
    return t->engine->registry.slot[0].device;
}

/* ---- networks ---- */

/* With half precision. */
struct net {
    struct test_run run;
    struct ifd_graph *graph;
    uint32_t in;         /* the network's */
    uint32_t wide, half; /* tensors that are stored in f32 and, if a layer reads it, in f16 */
    uint32_t output[TEST_RUN_OUTPUTS], count;
};

/* So many layers stand before the others that these may make halves (halves.c), and a step that
 * makes none. */
static void begin(struct net *n, int64_t lines, int64_t channels)
{
    const struct test_run_options options = {
        .backend = &ifd_backend_gpuacc,
        .model = {.no_optimize = true, .precision = IFD_PRECISION_FP16, .max_threads = 1}};
    *n = (struct net){.run = test_run_open_device(&options)};
    n->graph = &n->run.model->graph;
    n->in = test_graph_f32(n->graph, "x", SHAPE(1, lines, 4, channels));
    uint32_t x = n->in;
    for (int i = 0; i < 4; i++) {
        x = layer(n->graph, IFD_OP_DEPTHWISE_CONV2D, x, SHAPE(1, 1, 1, channels));
    }
    n->wide = test_graph_op1(n->graph, IFD_OP_L2_NORMALIZATION, x, "wide");
    n->half = test_graph_op2(n->graph, IFD_OP_ADD, n->wide, n->wide, "half");
}

static void end(struct net *n)
{
    REQUIRE_OK(ifd_graph_set_io(n->graph, &n->in, 1, n->output, n->count, NULL), NULL);
    build_input(&n->run);
    build_expect_close(&n->run, LIMIT);
    print_programs(device_of(&n->run));
    test_run_close(&n->run);
}

/* A step's operand and result are stored in one of 4 ways. */
enum { PLACES = 4 };

static uint32_t input_of(const struct net *n, int place)
{
    return place % 2 == 0 ? n->wide : n->half;
}

static void add_output(struct net *n, uint32_t y, int place)
{
    REQUIRE(n->count < TEST_RUN_OUTPUTS);
    n->output[n->count++] = place >= 2 ? pool(n->graph, IFD_OP_MAX_POOL2D, y) : y;
}

/* ---- convolutions ---- */

static uint32_t transposed(struct ifd_graph *g, uint32_t x, int64_t in, int64_t out)
{
    const int32_t size[4] = {1, 4, 8, (int32_t)out};
    const struct ifd_bytes content = {(const uint8_t *)size, sizeof(size)};
    const uint32_t shape = test_graph_f32(g, "size", SHAPE(4));
    g->value[shape].desc.dtype = IFD_S32;
    REQUIRE_OK(ifd_graph_set_constant(g, shape, content, 0, NULL), NULL);
    const uint32_t operand[] = {shape, weights(g, SHAPE(out, 2, 2, in)), x};
    struct ifd_node *node = add(g, IFD_OP_TRANSPOSE_CONV2D, operand, 3);
    *(struct ifd_transpose_conv2d_attrs *)attrs_of(node) =
        (struct ifd_transpose_conv2d_attrs){.window = {.padding = IFD_PAD_SAME,
                                                       .stride_h = 2,
                                                       .stride_w = 2,
                                                       .dilation_h = 1,
                                                       .dilation_w = 1}};
    return finish(g, node);
}

enum kind { POINTWISE, WINDOW, TRANSPOSED, KINDS };

/* Channels of layers: rows of both operands that are vectors, none, one of them. So many results
 * that the weights stay f32, or become f16, of windows and of single pixels (0: that is no other
 * form). */
struct row {
    int64_t in, few, many, many_points;
};
static const struct row rows[] = {{8, 8, 20, 68}, {9, 9, 17, 57}, {8, 9, 17, 65}, {3, 8, 44, 0}};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Some end with an operator. */
static void add_layer(struct net *n, enum kind kind, int place, int64_t in, int64_t out,
                      int64_t size)
{
    struct ifd_graph *g = n->graph;
    const uint32_t x = input_of(n, place);
    uint32_t y = kind == TRANSPOSED ? transposed(g, x, in, out)
                                    : layer(g, IFD_OP_CONV2D, x, SHAPE(out, size, size, in));
    if (place % 3 == 0) {
        y = test_graph_op2(g, IFD_OP_ADD, y, weights(g, SHAPE(out)), "tail");
    }
    add_output(n, y, place);
}

static void add_layers(struct net *n, enum kind kind, const struct row *row, int64_t size)
{
    const int64_t many = kind == POINTWISE ? row->many_points : row->many;
    for (int place = 0; place < PLACES; place++) {
        add_layer(n, kind, place, row->in, row->few, size);
        add_layer(n, kind, place, row->in, many, size);
    }
}

/* Begins a network whose layers are computed by this blocking. Of a small tile there are two, of
 * which one is full. way: stays until its end. */
static void begin_by(const struct ifd_gpu_blocking *blocking, char way[IFD_GPU_BLOCKING_TEXT],
                     const struct row *row, struct net *n)
{
    const bool is_small = blocking->kernel == IFD_GPU_conv2d_tile && blocking->patch == 0 &&
                          blocking->rows * blocking->pixels <= 32;
    begin(n, is_small ? 9 : 2, row->in);
    ifd_gpu_blocking_text(blocking, way);
    device_of(&n->run)->tuner.only = way;
}

/* All forms of one row. */
static void run_row(const struct ifd_gpu_blocking *blocking, const struct row *row)
{
    struct net n;
    char way[IFD_GPU_BLOCKING_TEXT];
    begin_by(blocking, way, row, &n);
    add_layers(&n, WINDOW, row, 2);
    if (row->many_points > 0) {
        add_layers(&n, POINTWISE, row, 1);
    }
    if (blocking->kernel != IFD_GPU_conv2d_tile) {
        add_layers(&n, TRANSPOSED, row, 2);
    }
    end(&n);
}

/* By Winograd's algorithm: first places of windows of 3x3, whose weights stay f32. */
static void run_winograd(const struct ifd_gpu_blocking *blocking, const struct row *row, int places)
{
    struct net n;
    char way[IFD_GPU_BLOCKING_TEXT];
    begin_by(blocking, way, row, &n);
    for (int place = 0; place < places; place++) {
        add_layer(&n, WINDOW, place, row->in, row->few, 3);
    }
    end(&n);
}

static void print_blocking(const struct ifd_gpu_blocking *blocking)
{
    struct ifd_gpu_call call;
    ifd_gpu_blocking_begin(blocking, &call);
    print_definitions("blocking", ifd_gpu_kernel_file(blocking->kernel), call.defines);
}

/* Those of a kernel. Slim ones share whole vectors of factors. */
static void run_blockings(enum ifd_gpu_kernel kernel)
{
    uint32_t count = 0;
    const struct ifd_gpu_blocking *blocking = ifd_gpu_blockings(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (blocking[i].kernel != kernel || blocking[i].patch > 0) {
            continue;
        }
        print_blocking(&blocking[i]);
        for (int k = 0; k < ROWS; k++) {
            if (kernel != IFD_GPU_conv2d_slim || rows[k].in == 8) {
                run_row(&blocking[i], &rows[k]);
            }
        }
    }
}

static void direct_blockings(void)
{
    run_blockings(IFD_GPU_conv2d);
}

static void slim_blockings(void)
{
    run_blockings(IFD_GPU_conv2d_slim);
}

static void tiles(void)
{
    run_blockings(IFD_GPU_conv2d_tile);
}

/* Transforms have forms, and are the same programs for all blockings of a size of patches; products
 * have one, for both sizes: of the smaller all blockings run, of the larger one. */
static void winograd(void)
{
    uint32_t count = 0, seen = 0;
    const struct ifd_gpu_blocking *blocking = ifd_gpu_blockings(&count);
    for (uint32_t i = 0; i < count; i++) {
        const bool is_first = (seen & blocking[i].patch) == 0;
        if (blocking[i].patch == 0) {
            continue;
        }
        print_blocking(&blocking[i]);
        seen |= blocking[i].patch;
        for (int k = 0; is_first && k < ROWS; k++) {
            if (rows[k].in >= 8) {
                run_winograd(&blocking[i], &rows[k], PLACES);
            }
        }
        if (!is_first && blocking[i].patch == 2) {
            run_winograd(&blocking[i], &rows[0], 1);
        }
    }
}

/* ---- depthwise layers ---- */

/* Lines of an image of 4 columns on which an item of a GPU computes that many pixels: it is to have
 * 512 items (ops/depthwise.c). */
static int64_t lines_for(int64_t pixels, int64_t channels_out)
{
    const int64_t groups = (channels_out + 3) / 4;
    return pixels == 2 ? (512 + 2 * groups - 1) / (2 * groups) : 2;
}

/* 12 lines of a window are more than an item keeps in registers. */
static void run_depthwise(int64_t in, int64_t out, int64_t pixels)
{
    struct net n;
    begin(&n, lines_for(pixels, out), in);
    device_of(&n.run)->info.is_gpu = pixels != 4;
    device_of(&n.run)->info.compute_units = 1;
    for (int place = 0; place < PLACES; place++) {
        const uint32_t x = input_of(&n, place);
        const uint32_t y = layer(n.graph, IFD_OP_DEPTHWISE_CONV2D, x, SHAPE(1, 2, 2, out));
        const uint32_t z = layer(n.graph, IFD_OP_DEPTHWISE_CONV2D, x, SHAPE(1, 12, 1, out));
        add_output(&n, y, place);
        add_output(&n, test_graph_op1(n.graph, IFD_OP_ABS, z, "tail"), place);
    }
    end(&n);
}

static void depthwise_layers(void)
{
    for (int64_t pixels = 1; pixels <= 4; pixels *= 2) {
        run_depthwise(8, 8, pixels);
        run_depthwise(9, 9, pixels);
        run_depthwise(3, 6, pixels);
    }
}

/* ---- other operators of reals ---- */

static uint32_t mean(struct ifd_graph *g, uint32_t x, int64_t axis)
{
    struct ifd_node *node = add(g, IFD_OP_REDUCE_MEAN, &x, 1);
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(node->op), attrs_of(node), "axes", &axis, 1, NULL),
               NULL);
    ((struct ifd_reduce_attrs *)attrs_of(node))->keep_dims = true;
    return finish(g, node);
}

static uint32_t resize(struct ifd_graph *g, uint32_t x)
{
    struct ifd_node *node = add(g, IFD_OP_RESIZE_BILINEAR, &x, 1);
    *(struct ifd_resize_attrs *)attrs_of(node) = (struct ifd_resize_attrs){.height = 3, .width = 5};
    return finish(g, node);
}

/* One operand. */
static uint32_t step(struct ifd_graph *g, int which, uint32_t x, int64_t c)
{
    switch (which) {
    case 0:
        return pool(g, IFD_OP_MAX_POOL2D, x);
    case 1:
        return test_graph_op1(g, IFD_OP_ABS, pool(g, IFD_OP_AVERAGE_POOL2D, x), "tail");
    case 2:
        return mean(g, x, 1);
    case 3:
        return resize(g, x);
    case 4:
        return test_graph_op1(g, IFD_OP_SOFTMAX, x, "softmax");
    case 5:
        return test_graph_op1(g, IFD_OP_LOG_SOFTMAX, x, "log_softmax");
    case 6:
        return test_graph_op2(g, IFD_OP_ADD, x, weights(g, SHAPE(c)), "of rows");
    default:
        return test_graph_op2(g, IFD_OP_MUL, x, x, "square");
    }
}
enum { STEPS = 8 };

/* Two: the second repeats along the columns, or is a matrix. */
static void add_pair(struct net *n, int a_place, bool is_half, int place, bool is_matmul, int64_t c)
{
    struct ifd_graph *g = n->graph;
    const uint32_t a = input_of(n, a_place);
    uint32_t b = 0;
    if (is_matmul) {
        b = is_half ? test_graph_reshape(g, n->half, SHAPE(1, 2, c, 4), "turned")
                    : weights(g, SHAPE(1, 2, c, 4));
    } else {
        b = is_half ? mean(g, n->half, 2) : weights(g, SHAPE(1, 2, 1, c));
    }
    add_output(n, test_graph_op2(g, is_matmul ? IFD_OP_BATCH_MATMUL : IFD_OP_MUL, a, b, "both"),
               place);
}

static void run_pairs(int64_t c)
{
    struct net n;
    begin(&n, 2, c);
    for (int i = 0; i < 16; i++) {
        add_pair(&n, i & 1, i & 2, i & 4 ? 2 : 0, i & 8, c);
    }
    end(&n);
}

static void run_steps(int first, int last, int64_t c)
{
    struct net n;
    begin(&n, 2, c);
    for (int i = first * PLACES; i < last * PLACES; i++) {
        add_output(&n, step(n.graph, i / PLACES, input_of(&n, i % PLACES), c), i % PLACES);
    }
    end(&n);
}

static void operators_of_reals(void)
{
    for (int64_t c = 7; c <= 8; c++) {
        run_steps(0, STEPS / 2, c);
        run_steps(STEPS / 2, STEPS, c);
        run_pairs(c);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(direct_blockings), T(slim_blockings),   T(tiles),
        T(winograd),         T(depthwise_layers), T(operators_of_reals),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

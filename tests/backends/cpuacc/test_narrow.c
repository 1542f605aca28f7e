/* Values that are stored as bf16 between steps. Networks of small whole numbers, which bf16 and
 * sums of f32 hold exactly: whatever is stored how, results equal those of the interpreter, but for
 * what Winograd's algorithm rounds. */
#include "backends/cpuacc/cpuacc.h"
#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, SEEDS = 120, STEPS = 7 };

struct builder {
    struct ifd_graph *graph;
    struct test_random random;
};

static int64_t pick(struct builder *b, int64_t from, int64_t to)
{
    return test_random_int(&b->random, from, to);
}

static const struct ifd_shape *shape_of(const struct builder *b, uint32_t value)
{
    return &b->graph->value[value].desc.shape;
}

static uint32_t add_node(struct builder *b, enum ifd_op op, const uint32_t *in, uint32_t count,
                         void **ret_attrs)
{
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t out = 0;
    REQUIRE_OK(ifd_graph_add_value(b->graph, "v", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err),
               &err);
    REQUIRE_OK(ifd_graph_add_node(b->graph, op, in, count, &out, 1, &node, &err), &err);
    *ret_attrs = (void *)(uintptr_t)node->attrs;
    return out;
}

static void infer(struct builder *b)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(b->graph, b->graph->node_count - 1, &err), &err);
}

/* Each filter has two weights that are not 0, so that sums stay small. */
static uint32_t add_filter(struct builder *b, int64_t n, int64_t size, int64_t c)
{
    const int64_t inputs = size * size * c;
    float *w = calloc((size_t)(n * inputs), sizeof(*w));
    REQUIRE(w != NULL);
    for (int64_t i = 0; i < 2 * n; i++) {
        w[i / 2 * inputs + pick(b, 0, inputs - 1)] = pick(b, 0, 3) ? 1.0f : -1.0f;
    }
    const uint32_t filter = test_graph_constant(b->graph, "w", SHAPE(n, size, size, c), w);
    free(w);
    return filter;
}

static uint32_t add_bias(struct builder *b, int64_t n)
{
    float bias[128];
    for (int64_t i = 0; i < n; i++) {
        bias[i] = (float)pick(b, -2, 2);
    }
    return test_graph_constant(b->graph, "bias", SHAPE(n), bias);
}

static uint32_t add_conv(struct builder *b, uint32_t in, int64_t n, int32_t stride, bool is_valid,
                         enum ifd_activation activation)
{
    void *node_attrs = NULL;
    const int64_t size = pick(b, 0, 1) ? 3 : 1;
    const uint32_t inputs[] = {in, add_filter(b, n, size, shape_of(b, in)->dim[3]), add_bias(b, n)};
    const uint32_t out = add_node(b, IFD_OP_CONV2D, inputs, 3, &node_attrs);
    struct ifd_conv2d_attrs *attrs = node_attrs;
    attrs->window.padding = is_valid ? IFD_PAD_VALID : IFD_PAD_SAME;
    attrs->window.stride_h = attrs->window.stride_w = stride;
    attrs->activation = (int32_t)activation;
    infer(b);
    return out;
}

static uint32_t add_pool(struct builder *b, uint32_t in)
{
    void *node_attrs = NULL;
    const uint32_t out = add_node(b, IFD_OP_MAX_POOL2D, &in, 1, &node_attrs);
    struct ifd_pool2d_attrs *attrs = node_attrs;
    const bool is_small = shape_of(b, in)->dim[1] < 3 || shape_of(b, in)->dim[2] < 3;
    attrs->window.padding = !is_small && pick(b, 0, 1) ? IFD_PAD_VALID : IFD_PAD_SAME;
    attrs->window.stride_h = attrs->window.stride_w = (int32_t)pick(b, 1, 2);
    attrs->filter_h = attrs->filter_w = (int32_t)pick(b, 2, 3);
    infer(b);
    return out;
}

static uint32_t add_resize(struct builder *b, uint32_t in)
{
    void *node_attrs = NULL;
    const uint32_t out = add_node(b, IFD_OP_RESIZE_NEAREST, &in, 1, &node_attrs);
    struct ifd_resize_attrs *attrs = node_attrs;
    attrs->height = (int32_t)shape_of(b, in)->dim[1] + (int32_t)pick(b, 0, 5);
    attrs->width = (int32_t)shape_of(b, in)->dim[2] * 2;
    infer(b);
    return out;
}

static uint32_t add_concat(struct builder *b, uint32_t x, uint32_t y)
{
    void *node_attrs = NULL;
    const uint32_t in[] = {x, y};
    const uint32_t out = add_node(b, IFD_OP_CONCAT, in, 2, &node_attrs);
    ((struct ifd_axis_attrs *)node_attrs)->axis = 3;
    infer(b);
    return out;
}

static uint32_t add_pad(struct builder *b, uint32_t in)
{
    void *attrs = NULL;
    const uint32_t out = add_node(b, IFD_OP_PAD, &in, 1, &attrs);
    const int64_t before[] = {0, pick(b, 0, 2), 1, 0}, after[] = {0, 1, pick(b, 0, 2), 0};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(IFD_OP_PAD), attrs, "before", before, 4, &err), &err);
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(IFD_OP_PAD), attrs, "after", after, 4, &err), &err);
    infer(b);
    return out;
}

static uint32_t add_transpose(struct builder *b, uint32_t in, const int64_t perm[4])
{
    void *attrs = NULL;
    struct ifd_err err = {0};
    const uint32_t out = add_node(b, IFD_OP_TRANSPOSE, &in, 1, &attrs);
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(IFD_OP_TRANSPOSE), attrs, "perm", perm, 4, &err),
               &err);
    infer(b);
    return out;
}

/* Whole numbers stay whole. */
static uint32_t add_leaky(struct builder *b, uint32_t in)
{
    void *attrs = NULL;
    const uint32_t out = add_node(b, IFD_OP_LEAKY_RELU, &in, 1, &attrs);
    ((struct ifd_leaky_relu_attrs *)attrs)->alpha = pick(b, 0, 1) ? -1.0f : 2.0f;
    infer(b);
    return out;
}

static uint32_t clamp(struct builder *b, uint32_t in)
{
    return test_graph_op1(b->graph, IFD_OP_RELU6, in, "clamp");
}

static int64_t pick_channels(struct builder *b)
{
    static const int64_t channels[] = {16, 24, 32, 40, 64, 96};
    return channels[pick(b, 0, 5)];
}

/* A value of whole numbers from 0 to 6 that follows one. */
static uint32_t add_step(struct builder *b, uint32_t in)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    const int64_t n = pick_channels(b), c = shape_of(b, in)->dim[3];
    uint32_t out = 0;
    switch (pick(b, 0, 12)) {
    case 0:
        out = add_conv(b, in, c, 1, false, IFD_ACT_NONE);
        return clamp(b, test_graph_op2(b->graph, IFD_OP_ADD, out, in, "sum"));
    case 1:
        out = clamp(b, test_graph_op1(b->graph, IFD_OP_ABS,
                                      add_conv(b, in, c, 1, false, IFD_ACT_NONE), "abs"));
        return clamp(b, test_graph_op2(b->graph, IFD_OP_ADD, in, out, "sum"));
    case 2:
        return add_pool(b, add_conv(b, in, n, 1, false, IFD_ACT_RELU6));
    case 3:
        out = add_conv(b, in, n, 1, false, IFD_ACT_RELU6);
        return add_concat(b, out, add_conv(b, in, 32, 1, false, IFD_ACT_RELU6));
    case 4:
        return add_conv(b, add_resize(b, in), n, 2, false, IFD_ACT_RELU6);
    case 5: /* nobody multiplies between them */
        out = test_graph_op2(b->graph, IFD_OP_MAXIMUM, in, clamp(b, in), "most");
        return clamp(b, test_graph_op2(b->graph, IFD_OP_ADD, out, in, "sum"));
    case 6: /* of three channels: a layer of f32 */
        out = add_conv(b, in, 3, 1, false, IFD_ACT_RELU6);
        return add_conv(b, out, n, 1, false, IFD_ACT_RELU6);
    case 7: /* beside others a reader that wants f32 */
        out = add_conv(b, in, n, 1, false, IFD_ACT_RELU6);
        return clamp(b, test_graph_op2(b->graph, IFD_OP_ADD,
                                       add_conv(b, out, n, 1, false, IFD_ACT_NONE),
                                       add_transpose(b, add_transpose(b, out, perm), perm), "sum"));
    case 8:
        return add_conv(b, add_pad(b, add_conv(b, in, n, 1, false, IFD_ACT_RELU6)), n, 2, true,
                        IFD_ACT_RELU6);
    case 9:
    case 10: /* a function, perhaps a sum behind it, before what is stored */
        out = add_leaky(b, add_conv(b, in, c, 1, false, IFD_ACT_NONE));
        out = pick(b, 0, 1) ? test_graph_op2(b->graph, IFD_OP_ADD, out, in, "sum") : out;
        return add_conv(b, out, n, 1, false, IFD_ACT_RELU6);
    default:
        return add_conv(b, in, n, (int32_t)pick(b, 1, 2), false, IFD_ACT_RELU6);
    }
}

static void fill(struct builder *b, float *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        data[i] = (float)pick(b, 0, 6);
    }
}

static void run_seed(uint64_t seed)
{
    struct builder b = {.random = {.state = seed * 7919 + 1}};
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc,
        .engine.cpu_mask = pick(&b, 0, 3) ? 0 : ~(uint32_t)IFD_CPU_AMX_BF16,
        .model = {.max_threads = (uint32_t)pick(&b, 1, 3), .precision = IFD_PRECISION_BF16},
        .l2_bytes = (size_t)1 << pick(&b, 15, 21)});
    b.graph = &run.model->graph;
    const uint32_t in = test_graph_f32(
        b.graph, "in",
        SHAPE(BATCH, pick(&b, 6, 30), pick(&b, 6, 30), pick(&b, 0, 1) ? 3 : pick_channels(&b)));
    uint32_t value = in;
    for (int64_t i = pick(&b, 2, STEPS); i > 0; i--) {
        value = add_step(&b, value);
    }
    test_graph_io(b.graph, in, value);
    test_run_input(&run, 0);
    fill(&b, run.in.data, run.in.bytes / sizeof(float));
    size_t bytes = 0;
    REQUIRE(ifd_desc_bytes(&b.graph->value[value].desc, &bytes));
    float *want = malloc(bytes);
    REQUIRE(want != NULL);
    test_graph_interpret(b.graph, (const void *const[]){run.in.data}, (void *const[]){want});
    test_run_plan(&run, 0);
    test_run_once(&run);
    const float *got = run.out[0].data;
    size_t wrong = 0;
    EXPECT_INT((int64_t)run.out[0].bytes, (int64_t)bytes);
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        wrong += fabsf(got[i] - want[i]) < 0x1p-8f ? 0 : 1;
    }
    if (wrong > 0) {
        char text[96];
        (void)snprintf(text, sizeof(text), "seed %llu: %zu of %zu results differ",
                       (unsigned long long)seed, wrong, bytes / sizeof(float));
        EXPECT_TEXT(text, "");
    }
    free(want);
    test_run_close(&run);
}

static void whole_numbers_stay_exact(void)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        run_seed(seed);
    }
}

/* Numbers of more digits than bf16 has, behind the last layer, are those of the interpreter. */
static void what_leads_to_no_layer_keeps_its_digits(void)
{
    struct builder b = {.random = {.state = 1}};
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc, .model = {.precision = IFD_PRECISION_BF16}});
    b.graph = &run.model->graph;
    const uint32_t in = test_graph_f32(b.graph, "in", SHAPE(1, 8, 8, 32));
    const float grid = 300.3f;
    const uint32_t add = test_graph_constant(b.graph, "grid", SHAPE(1), &grid);
    uint32_t value =
        add_conv(&b, add_conv(&b, in, 32, 1, false, IFD_ACT_RELU6), 32, 1, false, IFD_ACT_RELU6);
    value = test_graph_op2(b.graph, IFD_OP_ADD, value, add, "add");
    value = test_graph_op2(b.graph, IFD_OP_MAXIMUM, value,
                           test_graph_op1(b.graph, IFD_OP_SQRT, value, "root"), "most");
    test_graph_io(b.graph, in, value);
    test_run_input(&run, 0);
    fill(&b, run.in.data, run.in.bytes / sizeof(float));
    float want[8 * 8 * 32];
    test_graph_interpret(b.graph, (const void *const[]){run.in.data}, (void *const[]){want});
    test_run_plan(&run, 0);
    test_run_once(&run);
    const float *got = run.out[0].data;
    size_t wrong = 0;
    REQUIRE(run.out[0].bytes == sizeof(want));
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        wrong += fabsf(got[i] - want[i]) <= 0x1p-20f * want[i] ? 0 : 1;
    }
    EXPECT_INT((int64_t)wrong, 0);
    test_run_close(&run);
}

static uint32_t add_fully_connected(struct builder *b, uint32_t in, int64_t n)
{
    void *attrs = NULL;
    const int64_t c = shape_of(b, in)->dim[3];
    const uint32_t filter = add_filter(b, n, 1, c);
    b->graph->value[filter].desc.shape = SHAPE(n, c);
    const uint32_t out = add_node(b, IFD_OP_FULLY_CONNECTED,
                                  (const uint32_t[]){in, filter, add_bias(b, n)}, 3, &attrs);
    ((struct ifd_fully_connected_attrs *)attrs)->keep_dims = true;
    infer(b);
    return out;
}

/* The mean of each row, which stays a dimension of 1. */
static uint32_t add_mean(struct builder *b, uint32_t in)
{
    void *node_attrs = NULL;
    const uint32_t out = add_node(b, IFD_OP_REDUCE_MEAN, &in, 1, &node_attrs);
    struct ifd_reduce_attrs *attrs = node_attrs;
    attrs->axes = (struct ifd_ints){.count = 1, .value = {3}};
    attrs->keep_dims = true;
    infer(b);
    return out;
}

/* One step of CpuAcc. has_mean: the rows are centred. */
static uint32_t add_normalization(struct builder *b, uint32_t in, bool has_mean)
{
    const float epsilon = 0.5f;
    const uint32_t centred =
        has_mean ? test_graph_op2(b->graph, IFD_OP_SUB, in, add_mean(b, in), "centred") : in;
    const uint32_t square = test_graph_op1(b->graph, IFD_OP_SQUARE, centred, "square");
    const uint32_t sum =
        test_graph_op2(b->graph, IFD_OP_ADD, add_mean(b, square),
                       test_graph_constant(b->graph, "epsilon", SHAPE(1), &epsilon), "sum");
    return test_graph_op2(b->graph, IFD_OP_MUL, centred,
                          test_graph_op1(b->graph, IFD_OP_RSQRT, sum, "root"), "normalized");
}

/* Between two layers rows are read and written as they are stored: the results are as near to those
 * of the interpreter as bf16 is. */
static void rows_are_normalized_between_layers(void)
{
    for (int64_t i = 0; i < 16; i++) {
        struct builder b = {.random = {.state = (uint64_t)i + 1}};
        struct test_run run = test_run_open(&(struct test_run_options){
            .backend = &ifd_backend_cpuacc,
            .model = {.max_threads = 1 + (uint32_t)(i & 1), .precision = IFD_PRECISION_BF16}});
        b.graph = &run.model->graph;
        const int64_t c = pick_channels(&b);
        const uint32_t in = test_graph_f32(b.graph, "in", SHAPE(1, 9, 9, 32));
        uint32_t value = add_conv(&b, in, c, 1, false, IFD_ACT_RELU6);
        value = add_normalization(&b, value, (i & 2) != 0);
        if (i & 4) {
            value = test_graph_op2(b.graph, IFD_OP_MUL, value, add_bias(&b, c), "scaled");
        }
        value = i & 8 ? add_fully_connected(&b, value, 32)
                      : add_conv(&b, value, 32, 1, false, IFD_ACT_NONE);
        test_graph_io(b.graph, in, value);
        test_run_input(&run, 0);
        fill(&b, run.in.data, run.in.bytes / sizeof(float));
        float want[9 * 9 * 32];
        test_graph_interpret(b.graph, (const void *const[]){run.in.data}, (void *const[]){want});
        test_run_plan(&run, 0);
        test_run_once(&run);
        const float *got = run.out[0].data;
        size_t wrong = 0;
        REQUIRE(run.out[0].bytes == sizeof(want));
        for (size_t k = 0; k < sizeof(want) / sizeof(want[0]); k++) { /* sums of two below 20 */
            wrong += fabsf(got[k] - want[k]) <= 40 * 0x1p-8f ? 0 : 1;
        }
        EXPECT_INT((int64_t)wrong, 0);
        test_run_close(&run);
    }
}

static uint32_t add_product(struct builder *b, uint32_t x, uint32_t y)
{
    void *attrs = NULL;
    const uint32_t in[] = {x, y};
    const uint32_t out = add_node(b, IFD_OP_BATCH_MATMUL, in, 2, &attrs);
    infer(b);
    return out;
}

/* Attention reads a mask that a layer has made as it is stored. */
static void a_mask_is_read_as_it_is_stored(void)
{
    struct builder b = {.random = {.state = 1}};
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc, .model = {.precision = IFD_PRECISION_BF16}});
    b.graph = &run.model->graph;
    void *attrs = NULL;
    const float factor = 0x1p-7f;
    static const int64_t perm[] = {0, 1, 3, 2};
    const uint32_t in = test_graph_f32(b.graph, "in", SHAPE(1, 16, 16, 32));
    const uint32_t mask = add_conv(&b, in, 16, 1, false, IFD_ACT_RELU6);
    const uint32_t product = add_product(&b, in, add_transpose(&b, in, perm));
    uint32_t value =
        test_graph_op2(b.graph, IFD_OP_MUL, product,
                       test_graph_constant(b.graph, "factor", SHAPE(1), &factor), "scaled");
    value = test_graph_op2(b.graph, IFD_OP_ADD, value, mask, "masked");
    value = add_node(&b, IFD_OP_SOFTMAX, &value, 1, &attrs);
    ((struct ifd_softmax_attrs *)attrs)->beta = 1;
    infer(&b);
    value = add_conv(&b, add_product(&b, value, in), 32, 1, false, IFD_ACT_NONE);
    test_graph_io(b.graph, in, value);
    test_run_input(&run, 0);
    fill(&b, run.in.data, run.in.bytes / sizeof(float));
    float want[16 * 16 * 32];
    test_graph_interpret(b.graph, (const void *const[]){run.in.data}, (void *const[]){want});
    test_run_plan(&run, 0);
    test_run_once(&run);
    const float *got = run.out[0].data;
    size_t wrong = 0;
    REQUIRE(run.out[0].bytes == sizeof(want));
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) { /* sums of two up to 6 */
        wrong += fabsf(got[i] - want[i]) <= 12 * 0x1p-8f ? 0 : 1;
    }
    EXPECT_INT((int64_t)wrong, 0);
    test_run_close(&run);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(whole_numbers_stay_exact),
        T(what_leads_to_no_layer_keeps_its_digits),
        T(rows_are_normalized_between_layers),
        T(a_mask_is_read_as_it_is_stored),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* f32 layers of 3x3 windows that run by Winograd's algorithm are close to the reference kernels:
 * for images of any size, calls of whole lines and of parts of one, every number of threads and
 * samples, and with tails. */
#include "backends/cpuacc/cpuacc.h"
#include "backends/cpuref/cpuref.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <math.h>
#include <string.h>

enum {
    SMALL = 64,
    LARGE = 8192,
    CHANNELS = 32,
    COLUMNS = 80,
    THREADS_MAX = 4,
    L2_SMALL = 64 << 10,
    L2_LARGE = 4 << 20
};

/* A layer: its image, padding, and what follows. */
struct layer {
    int64_t h, w;
    int32_t padding, activation;
    int32_t stride; /* 0: 1 */
    bool adds;      /* another layer of the same kind with a tail */
    bool joins;     /* is a part of a concatenation */
};

static void fill(float *data, size_t count, uint64_t seed)
{
    struct test_random random = {.state = seed};
    for (size_t i = 0; i < count; i++) {
        data[i] = test_random_f32(&random, -1, 1);
    }
}

static uint32_t add_node(struct ifd_graph *g, enum ifd_op op, const uint32_t *in, uint32_t count,
                         void **ret_attrs)
{
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t out = 0;
    REQUIRE_OK(ifd_graph_add_value(g, "v", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err), &err);
    REQUIRE_OK(ifd_graph_add_node(g, op, in, count, &out, 1, &node, &err), &err);
    *ret_attrs = (void *)(uintptr_t)node->attrs;
    return out;
}

static uint32_t infer(struct ifd_graph *g, uint32_t out)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return out;
}

static uint32_t conv(struct ifd_graph *g, uint32_t in, const struct layer *layer)
{
    static float weights[COLUMNS * 9 * CHANNELS], bias[COLUMNS];
    fill(weights, COLUMNS * 9 * CHANNELS, g->node_count + 1);
    fill(bias, COLUMNS, g->node_count + 2);
    const uint32_t operand[] = {
        in, test_graph_constant(g, "w", SHAPE(COLUMNS, 3, 3, CHANNELS), weights),
        test_graph_constant(g, "b", SHAPE(COLUMNS), bias)};
    void *attrs = NULL;
    const uint32_t out = add_node(g, IFD_OP_CONV2D, operand, 3, &attrs);
    struct ifd_conv2d_attrs *a = attrs;
    a->window.padding = layer->padding;
    a->window.stride_h = a->window.stride_w = layer->stride ? layer->stride : 1;
    a->activation = layer->activation;
    return infer(g, out);
}

static uint32_t build(struct ifd_graph *g, uint32_t in, const struct layer *layer)
{
    void *attrs = NULL;
    uint32_t out = conv(g, in, layer);
    if (layer->adds) {
        const uint32_t again = conv(g, in, layer);
        const uint32_t tail = add_node(g, IFD_OP_LEAKY_RELU, &again, 1, &attrs);
        ((struct ifd_leaky_relu_attrs *)attrs)->alpha = 0.1f;
        out = test_graph_op2(g, IFD_OP_ADD, infer(g, tail), out, "sum");
    }
    if (layer->joins) {
        const uint32_t part[] = {conv(g, in, layer), out};
        out = add_node(g, IFD_OP_CONCAT, part, 2, &attrs);
        ((struct ifd_axis_attrs *)attrs)->axis = 3;
        return infer(g, out);
    }
    return out;
}

static struct test_run run(const struct ifd_backend *backend, const struct layer *layer,
                           int64_t batch, uint32_t threads, size_t l2_bytes)
{
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = backend, .model = {.max_threads = threads}, .l2_bytes = l2_bytes});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(batch, layer->h, layer->w, CHANNELS));
    test_graph_io(g, in, build(g, in, layer));
    test_run_plan(&run, 0);
    fill(run.in.data, run.in.bytes / sizeof(float), 3);
    for (int again = 0; again < 2; again++) {
        test_run_once(&run);
    }
    return run;
}

/* 80 times the rounding error of sums of values up to 1, as kernels.h states; an addition has two
 * sums. */
static void expect_close(const struct test_run *got, const struct test_run *want)
{
    const double bound = 2 * 80.0 * (9 * CHANNELS + 4) * 0x1p-24;
    const float *is = got->out[0].data, *should = want->out[0].data;
    size_t wrong = 0;
    REQUIRE(got->out[0].bytes == want->out[0].bytes);
    for (size_t i = 0; i < want->out[0].bytes / sizeof(float); i++) {
        wrong += fabs((double)is[i] - (double)should[i]) <= bound ? 0 : 1;
    }
    EXPECT_INT((int64_t)wrong, 0);
}

static void compare(const struct layer *layer, uint32_t layers)
{
    static const size_t cache[] = {L2_SMALL, L2_LARGE};
    for (int64_t batch = 1; batch <= 2; batch++) {
        struct test_run want = run(&ifd_backend_cpuref, layer, batch, 1, 0);
        for (uint32_t i = 0; i < 2 * THREADS_MAX; i++) {
            struct test_run got = run(&ifd_backend_cpuacc, layer, batch, 1 + i / 2, cache[i % 2]);
            EXPECT_INT(test_run_count(&got, "wino"), layers);
            expect_close(&got, &want);
            test_run_close(&got);
        }
        test_run_close(&want);
    }
}

static void images_of_any_size_are_close(void)
{
    compare(&(struct layer){.h = 15, .w = 30, .padding = IFD_PAD_SAME}, 1);
    compare(&(struct layer){.h = 31, .w = 17, .padding = IFD_PAD_VALID}, 1);
    compare(&(struct layer){.h = 12, .w = 11, .padding = IFD_PAD_SAME}, 1); /* tiles of 3 */
}

static void parts_of_lines_are_close(void)
{
    compare(&(struct layer){.h = 10, .w = 99, .padding = IFD_PAD_SAME, .activation = IFD_ACT_RELU6},
            1);
    compare(&(struct layer){.h = 9, .w = 102, .padding = IFD_PAD_VALID}, 1);
}

static void tails_are_close(void)
{
    compare(&(struct layer){.h = 15, .w = 26, .padding = IFD_PAD_SAME, .adds = true}, 2);
    compare(&(struct layer){.h = 7, .w = 93, .padding = IFD_PAD_SAME, .adds = true}, 2);
}

static void parts_of_a_concatenation_are_close(void)
{
    compare(&(struct layer){.h = 12, .w = 27, .padding = IFD_PAD_SAME, .joins = true}, 2);
    compare(&(struct layer){.h = 8, .w = 90, .padding = IFD_PAD_SAME, .joins = true}, 2);
}

static void strides_of_two_are_close(void)
{
    compare(&(struct layer){.h = 30, .w = 61, .padding = IFD_PAD_SAME, .stride = 2}, 1);
    compare(&(struct layer){.h = 63, .w = 34, .padding = IFD_PAD_VALID, .stride = 2}, 1);
    compare(&(struct layer){.h = 47, .w = 66, .padding = IFD_PAD_SAME, .stride = 2, .adds = true},
            2);
    compare(&(struct layer){.h = 17, .w = 199, .padding = IFD_PAD_SAME, .stride = 2, .joins = true},
            2);
}

/* Bytes of packed weights: of a layer of 12 x 12 pixels, and of a following 1x1 layer of `columns`
 * columns. */
static size_t packed_bytes(int64_t columns, bool exact)
{
    static float weights[LARGE * COLUMNS];
    fill(weights, LARGE * COLUMNS, 4);
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc, .engine = {.exact = exact}, .l2_bytes = L2_SMALL});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(1, 12, 12, CHANNELS));
    const uint32_t operand[] = {
        conv(g, in, &(struct layer){.padding = IFD_PAD_SAME}),
        test_graph_constant(g, "w", SHAPE(columns, 1, 1, COLUMNS), weights)};
    void *attrs = NULL;
    const uint32_t out = add_node(g, IFD_OP_CONV2D, operand, 2, &attrs);
    struct ifd_conv2d_attrs *a = attrs;
    a->window.stride_h = a->window.stride_w = 1;
    test_graph_io(g, in, infer(g, out));
    test_run_plan(&run, 0);
    EXPECT_INT(test_run_count(&run, "wino"), exact ? 0 : 1);
    const size_t bytes = ifd_model_info(run.model)->packed_bytes;
    test_run_close(&run);
    return bytes;
}

/* Patches of 3 x 3 in place of 2 x 2 take nine more matrices, which exceed a sixteenth of a small
 * model. */
static void large_models_may_have_larger_patches(void)
{
    const size_t more = packed_bytes(LARGE, false) - packed_bytes(SMALL, false);
    const size_t others = packed_bytes(LARGE, true) - packed_bytes(SMALL, true);
    const size_t matrices = 9 * CHANNELS * COLUMNS * sizeof(float);
    EXPECT(more - others >= matrices && more - others < 2 * matrices);
}

/* Text of `inspect`: the chosen algorithm first, with the cost of each; none if only one fits. */
static void steps_say_why_they_were_chosen(void)
{
    const struct layer layer = {.h = 31, .w = 17, .padding = IFD_PAD_SAME};
    struct test_run is = run(&ifd_backend_cpuacc, &layer, 1, 1, L2_LARGE);
    struct ifd_plan_step step;
    ifd_model_step(is.model, 0, &step);
    REQUIRE(step.step.why);
    EXPECT(strncmp(step.step.why, "winograd 0.", 11) == 0); /* of the direct way's cost */
    EXPECT_HAS(step.step.why, ", lines 1.00");
    test_run_close(&is);
    const struct layer small = {.h = 3, .w = 3, .padding = IFD_PAD_SAME}; /* too few patches */
    is = run(&ifd_backend_cpuacc, &small, 1, 1, L2_LARGE);
    ifd_model_step(is.model, 0, &step);
    EXPECT(strcmp(step.step.kernel, "gemm_f32") == 0);
    EXPECT(step.step.why == NULL);
    test_run_close(&is);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(images_of_any_size_are_close),
        T(parts_of_lines_are_close),
        T(tails_are_close),
        T(parts_of_a_concatenation_are_close),
        T(strides_of_two_are_close),
        T(large_models_may_have_larger_patches),
        T(steps_say_why_they_were_chosen),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Promises of convolutions beyond what golden values show. */
#include "backends/cpuacc/cpuacc.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <math.h>
#include <string.h>

enum { SIDE = 16, CHANNELS = 6, DEEP = 32, WEIGHTS_MAX = 3 * 3 * DEEP * DEEP };

/* A convolution of side x side windows to `channels` channels; adds: its input is added. */
static uint32_t conv(struct ifd_graph *g, uint32_t in, int64_t side, int64_t channels, bool adds)
{
    struct ifd_err err = {0};
    static float data[WEIGHTS_MAX];
    struct test_random random = {.state = 5};
    for (size_t i = 0; i < WEIGHTS_MAX; i++) {
        data[i] = test_random_f32(&random, 0.5f, 1);
    }
    const int64_t depth = g->value[in].desc.shape.dim[3];
    const uint32_t weights = test_graph_constant(g, "w", SHAPE(channels, side, side, depth), data);
    struct ifd_node *node = NULL;
    uint32_t out = 0;
    REQUIRE_OK(ifd_graph_add_value(g, "conv", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err),
               &err);
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_CONV2D, (const uint32_t[]){in, weights}, 2, &out, 1,
                                  &node, &err),
               &err);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)node->attrs;
    attrs->window.padding = IFD_PAD_SAME;
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return adds ? test_graph_op2(g, IFD_OP_ADD, out, in, "sum") : out;
}

/* Is every output that sees pixel (y, x) non-finite, and no other? */
static void expect_spot(const float *out, int64_t channels, int64_t side, int64_t y, int64_t x)
{
    for (int64_t i = 0; i < (int64_t)SIDE * SIDE * channels; i++) {
        const int64_t dy = i / channels / SIDE - y, dx = i / channels % SIDE - x;
        const bool sees =
            dy >= -(side / 2) && dy <= side / 2 && dx >= -(side / 2) && dx <= side / 2;
        EXPECT(isfinite(out[i]) == !sees);
    }
}

static void run(int64_t side, int64_t channels, bool adds, uint32_t threads, float spot)
{
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc, .model = {.max_threads = threads}});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(1, SIDE, SIDE, CHANNELS));
    test_graph_io(g, in, conv(g, in, side, channels, adds));
    test_run_plan(&run, 0);
    float *x = run.in.data;
    for (size_t i = 0; i < run.in.bytes / sizeof(*x); i++) {
        x[i] = 1;
    }
    x[(7 * SIDE + 9) * CHANNELS + 2] = spot;
    test_run_once(&run);
    expect_spot(run.out[0].data, channels, side, 7, 9);
    test_run_close(&run);
}

static void what_is_not_finite_reaches_only_the_windows_that_see_it(void)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        for (int64_t side = 1; side <= 3; side += 2) {
            run(side, 1, false, threads, NAN);
            run(side, 3, false, threads, INFINITY);
            run(side, 12, false, threads, NAN);
            run(side, CHANNELS, true, threads, -INFINITY);
        }
    }
}

/* A sum that is written into a concatenation; the residual lies elsewhere. */
static void run_beside(uint32_t threads, bool is_beside, struct test_run *ret_run)
{
    *ret_run = test_run_open(&(struct test_run_options){.backend = &ifd_backend_cpuacc,
                                                        .model = {.max_threads = threads}});
    struct ifd_graph *g = &ret_run->model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(2, SIDE, SIDE, DEEP));
    uint32_t out = conv(g, in, 3, DEEP, true);
    if (is_beside) {
        struct ifd_err err = {0};
        struct ifd_node *node = NULL;
        const uint32_t parts[] = {in, out};
        REQUIRE_OK(
            ifd_graph_add_value(g, "beside", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err),
            &err);
        REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_CONCAT, parts, 2, &out, 1, &node, &err), &err);
        ((struct ifd_axis_attrs *)(uintptr_t)node->attrs)->axis = 3;
        REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    }
    test_graph_io(g, in, out);
    test_run_plan(ret_run, 0);
    struct test_random random = {.state = 9};
    for (size_t i = 0; i < ret_run->in.bytes / sizeof(float); i++) {
        ((float *)ret_run->in.data)[i] = test_random_f32(&random, -1, 1);
    }
    test_run_once(ret_run);
}

static void a_sum_beside_another_tensor_is_the_same_sum(void)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        struct test_run alone, beside;
        run_beside(threads, false, &alone);
        run_beside(threads, true, &beside);
        const float *want = alone.out[0].data, *got = beside.out[0].data, *in = beside.in.data;
        REQUIRE(beside.out[0].bytes == 2 * alone.out[0].bytes);
        for (size_t i = 0; i < (size_t)2 * SIDE * SIDE; i++) {
            EXPECT(memcmp(got + 2 * i * DEEP, in + i * DEEP, DEEP * sizeof(*in)) == 0);
            for (size_t c = 0; c < DEEP; c++) {
                /* the rounding error of sums of 288 products of numbers up to 1 */
                EXPECT_CLOSE(got[(2 * i + 1) * DEEP + c], want[i * DEEP + c], 1e-3);
            }
        }
        test_run_close(&alone);
        test_run_close(&beside);
    }
}

/* A pad and a stride: the only output pixel sees nothing but padding, two pixels to the left of the
 * image. */
static void a_window_may_see_nothing_but_padding(void)
{
    static const float ones[DEEP * DEEP] = {1};
    for (int precision = IFD_PRECISION_F32; precision <= IFD_PRECISION_FP16; precision++) {
        struct test_run run = test_run_open(&(struct test_run_options){
            .backend = &ifd_backend_cpuacc, .model = {.precision = (enum ifd_precision)precision}});
        struct ifd_graph *g = &run.model->graph;
        const uint32_t in = test_graph_f32(g, "in", SHAPE(1, 1, 1, DEEP));
        const uint32_t weights = test_graph_constant(g, "w", SHAPE(DEEP, 1, 1, DEEP), ones);
        const uint32_t out = test_graph_op2(g, IFD_OP_CONV2D, in, weights, "conv");
        struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)g->node[0].attrs;
        attrs->window.padding = IFD_PAD_EXPLICIT;
        attrs->window.pad_left = 2;
        attrs->window.stride_w = 3;
        test_graph_io(g, in, out);
        test_run_plan(&run, 0);
        for (size_t i = 0; i < DEEP; i++) {
            ((float *)run.in.data)[i] = 1;
        }
        test_run_once(&run);
        EXPECT_INT(run.out[0].bytes, DEEP * sizeof(float));
        for (size_t i = 0; i < DEEP; i++) {
            EXPECT(((const float *)run.out[0].data)[i] == 0.0f);
        }
        test_run_close(&run);
    }
}

/* Groups of `depth` channels, of which a vector may hold several; one input of the second is
 * spot. */
static void run_groups(uint32_t threads, int64_t groups, int64_t depth, float spot,
                       struct test_run *ret_run)
{
    *ret_run = test_run_open(&(struct test_run_options){.backend = &ifd_backend_cpuacc,
                                                        .model = {.max_threads = threads}});
    struct ifd_graph *g = &ret_run->model->graph;
    const int64_t channels = groups * depth;
    static float data[WEIGHTS_MAX];
    struct test_random random = {.state = 7};
    for (size_t i = 0; i < WEIGHTS_MAX; i++) {
        data[i] = test_random_f32(&random, -1, 1);
    }
    const uint32_t in = test_graph_f32(g, "in", SHAPE(1, SIDE, SIDE, channels));
    const uint32_t weights = test_graph_constant(g, "w", SHAPE(channels, 3, 3, depth), data);
    test_graph_io(g, in, test_graph_op2(g, IFD_OP_CONV2D, in, weights, "conv"));
    test_run_plan(ret_run, 0);
    for (size_t i = 0; i < ret_run->in.bytes / sizeof(float); i++) {
        ((float *)ret_run->in.data)[i] = test_random_f32(&random, -1, 1);
    }
    ((float *)ret_run->in.data)[(7 * SIDE + 9) * channels + depth + 2] = spot;
    test_run_once(ret_run);
}

static void what_is_not_finite_reaches_no_other_group_of_channels(void)
{
    static const float spots[] = {NAN, INFINITY, -INFINITY};
    for (int64_t i = 0; i < 8; i++) {
        const int64_t groups = 2 + i / 2, depth = i % 2 ? 4 : 8;
        struct test_run calm, run;
        run_groups(1, groups, depth, 1, &calm);
        run_groups(2, groups, depth, spots[groups % 3], &run);
        const float *want = calm.out[0].data, *got = run.out[0].data;
        size_t hit = 0, moved = 0;
        for (size_t k = 0; k < run.out[0].bytes / sizeof(float); k++) {
            const bool is_second = k / (size_t)depth % (size_t)groups == 1;
            moved += !is_second && got[k] != want[k] ? 1 : 0;
            hit += !isfinite(got[k]) ? 1 : 0;
        }
        EXPECT_INT(moved, 0);
        EXPECT_INT(hit, 9 * depth);
        test_run_close(&calm);
        test_run_close(&run);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_is_not_finite_reaches_only_the_windows_that_see_it),
        T(a_sum_beside_another_tensor_is_the_same_sum),
        T(a_window_may_see_nothing_but_padding),
        T(what_is_not_finite_reaches_no_other_group_of_channels),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

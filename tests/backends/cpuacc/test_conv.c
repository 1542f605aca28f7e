/* What the drivers of convolutions owe their callers beyond what golden values show. */
#include "backends/cpuacc/cpuacc.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <math.h>

enum { SIDE = 16, CHANNELS = 6, WEIGHTS_MAX = 3 * 3 * CHANNELS * 12 };

/* A convolution of side x side windows to so many channels, to which its input is added if adds. */
static uint32_t conv(struct ifd_graph *g, uint32_t in, int64_t side, int64_t channels, bool adds)
{
    struct ifd_err err = {0};
    float data[WEIGHTS_MAX];
    struct test_random random = {.state = 5};
    for (size_t i = 0; i < WEIGHTS_MAX; i++) {
        data[i] = test_random_f32(&random, 0.5f, 1);
    }
    const uint32_t weights =
        test_graph_constant(g, "w", SHAPE(channels, side, side, CHANNELS), data);
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

/* Is every output not finite that sees pixel (y, x), and no other? */
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

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_is_not_finite_reaches_only_the_windows_that_see_it),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

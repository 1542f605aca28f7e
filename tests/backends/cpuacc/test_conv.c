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
    static const struct ifd_backend *const backends[] = {&ifd_backend_cpuacc};
    struct ifd_err err = {0};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    struct ifd_instance *instance = NULL;
    const struct ifd_engine_options options = {
        .alloc = ifd_alloc_system(), .backends = backends, .backend_count = 1};
    REQUIRE_OK(ifd_engine_create(&options, &engine, &err), &err);
    REQUIRE_OK(
        ifd_model_create(engine, &(struct ifd_model_options){.max_threads = threads}, &model, &err),
        &err);
    const struct ifd_shape shape = SHAPE(1, SIDE, SIDE, CHANNELS);
    const uint32_t in = test_graph_f32(&model->graph, "in", shape);
    test_graph_io(&model->graph, in, conv(&model->graph, in, side, channels, adds));
    REQUIRE_OK(test_model_build(model, &err), &err);
    REQUIRE_OK(ifd_instance_create(model, &(struct ifd_instance_options){.threads = threads},
                                   &instance, &err),
               &err);
    struct ifd_tensor x = test_tensor_f32(shape), out = {0};
    for (size_t i = 0; i < x.bytes / sizeof(float); i++) {
        ((float *)x.data)[i] = 1;
    }
    ((float *)x.data)[(7 * SIDE + 9) * CHANNELS + 2] = spot;
    const struct ifd_io io = {.input = &x, .output = &out, .batch = 1};
    REQUIRE_OK(ifd_instance_run(instance, &io, 1, &err), &err);
    expect_spot(out.data, channels, side, 7, 9);
    ifd_release_tensor(ifd_alloc_system(), x.data, x.bytes);
    ifd_instance_destroy(instance);
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
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

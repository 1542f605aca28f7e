/* Models with long sums have exact 8-bit results without being asked, others do not; both can be
 * overridden. */
#include "backends/cpuacc/cpuacc.h"
#include "engine/base/cpu.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <string.h>

enum { SIDE = 6, CHANNELS = 256, SUMMED = 9 * CHANNELS };

static const float scale[] = {0.05f}, scale_w[] = {0.002f};
static const int32_t zero[] = {-3}, zero_w[] = {0};
static const struct ifd_quant quant = {scale, zero, 1, 0}, quant_w = {scale_w, zero_w, 1, 0};

static uint32_t add_value(struct ifd_graph *g, struct ifd_shape shape, const struct ifd_quant *how)
{
    struct ifd_err err = {0};
    uint32_t value = 0;
    const struct ifd_desc desc = {.dtype = IFD_S8, .shape = shape, .quant = *how};
    REQUIRE_OK(ifd_graph_add_value(g, "v", &desc, &value, &err), &err);
    return value;
}

/* A convolution of side x side pixels; adds: its input is added. */
static void build(struct ifd_graph *g, int64_t side, int64_t channels, bool adds)
{
    static int8_t data[CHANNELS * SUMMED];
    struct test_random random = {.state = 7};
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    const size_t bytes = (size_t)(channels * side * side * channels);
    REQUIRE(bytes <= sizeof(data));
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (int8_t)test_random_int(&random, -127, 127);
    }
    const uint32_t in = add_value(g, SHAPE(1, SIDE, SIDE, channels), &quant);
    const uint32_t weights = add_value(g, SHAPE(channels, side, side, channels), &quant_w);
    uint32_t out = add_value(g, (struct ifd_shape){0}, &quant);
    REQUIRE_OK(
        ifd_graph_set_constant(g, weights, (struct ifd_bytes){(uint8_t *)data, bytes}, 0, &err),
        &err);
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_CONV2D, (const uint32_t[]){in, weights}, 2, &out, 1,
                                  &node, &err),
               &err);
    ((struct ifd_conv2d_attrs *)(uintptr_t)node->attrs)->window.padding = IFD_PAD_SAME;
    REQUIRE_OK(ifd_graph_infer_node(g, 0, &err), &err);
    if (adds) {
        const uint32_t sum = add_value(g, (struct ifd_shape){0}, &quant);
        REQUIRE_OK(
            ifd_graph_add_node(g, IFD_OP_ADD, (const uint32_t[]){out, in}, 2, &sum, 1, &node, &err),
            &err);
        REQUIRE_OK(ifd_graph_infer_node(g, 1, &err), &err);
        out = sum;
    }
    REQUIRE_OK(ifd_graph_set_io(g, &in, 1, &out, 1, &err), &err);
}

struct ask {
    bool exact, fast;
};

/* Runs a model on AVX2; returns whether it is exact, and compares with the reference kernels if it
 * is. */
static bool is_exact(int64_t side, int64_t channels, bool adds, struct ask ask)
{
    static int8_t want[SIDE * SIDE * CHANNELS];
    struct ifd_cpu cpu;
    ifd_cpu_detect(&cpu);
    if ((cpu.flags & IFD_CPU_AVX2) == 0) {
        test_does_not_apply("no AVX2: what rounding costs there is what the rule knows here");
    }
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc,
        .engine = {.cpu_mask = IFD_CPU_AVX2, .exact = ask.exact, .fast = ask.fast},
        .model = {.max_threads = 1}});
    build(&run.model->graph, side, channels, adds);
    test_run_input(&run, 0);
    struct test_random random = {.state = 5};
    for (size_t i = 0; i < run.in.bytes; i++) {
        ((int8_t *)run.in.data)[i] = (int8_t)test_random_int(&random, -128, 127);
    }
    test_graph_interpret(&run.model->graph, (const void *[]){run.in.data}, (void *[]){want});
    test_run_plan(&run, 0);
    test_run_once(&run);
    const bool exact = ifd_model_info(run.model)->exact;
    REQUIRE(run.out[0].bytes == run.in.bytes && run.in.bytes <= sizeof(want));
    if (exact) {
        EXPECT(memcmp(run.out[0].data, want, run.in.bytes) == 0);
    }
    test_run_close(&run);
    return exact;
}

static void long_sums_are_exact_unasked(void)
{
    EXPECT(is_exact(3, CHANNELS, false, (struct ask){0}));
    EXPECT(is_exact(3, CHANNELS, true, (struct ask){0}));
}

static void short_sums_are_fast_unasked(void)
{
    EXPECT(!is_exact(1, 16, false, (struct ask){0}));
    EXPECT(!is_exact(1, CHANNELS / 2, true, (struct ask){0}));
}

static void who_asks_gets_what_was_asked_for(void)
{
    EXPECT(!is_exact(3, CHANNELS, false, (struct ask){.fast = true}));
    EXPECT(is_exact(1, 16, true, (struct ask){.exact = true}));
}

static void both_at_once_are_refused(void)
{
    static const struct ifd_backend *const backends[] = {&ifd_backend_cpuacc};
    struct ifd_err err = {0};
    struct ifd_engine *engine = NULL;
    const struct ifd_engine_options options = {
        .backends = backends, .backend_count = 1, .exact = true, .fast = true};
    EXPECT_CODE(ifd_engine_create(&options, &engine, &err), IFD_INVALID, &err);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(long_sums_are_exact_unasked),
        T(short_sums_are_fast_unasked),
        T(who_asks_gets_what_was_asked_for),
        T(both_at_once_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

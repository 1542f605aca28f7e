/* conv3d of random shapes equals its reference kernel: on several threads and for several samples,
 * with caches that hold all lines of a call, one, or a part of one. */
#include "tests/backends/cpuacc/trial.h"

enum { SAMPLES = 3 };

/* Fits a window into a direction of the input. */
static int32_t pick_dilation(struct trial *t, int64_t in, int64_t window)
{
    const int64_t most = window > 1 ? (in - 1) / (window - 1) : 3;
    return (int32_t)pick(t, 1, most < 3 ? most : 3);
}

static void build(struct trial *t)
{
    const bool is_point = pick(t, 0, 4) == 0; /* windows of one pixel, one beside the other */
    const int64_t in[] = {pick(t, 1, 5), pick(t, 1, 6), pick(t, 1, 40)};
    const int64_t in_c = pick(t, 1, 9), out_c = pick(t, 1, 40);
    int64_t window[3], stride[3];
    int32_t dilation[3];
    for (int i = 0; i < 3; i++) {
        window[i] = is_point ? 1 : pick(t, 1, in[i] < 4 ? in[i] : 4);
        stride[i] = is_point ? 1 : pick(t, 1, 3);
        dilation[i] = pick_dilation(t, in[i], window[i]);
    }
    t->input = add_value(t, IFD_F32, SHAPE(1, in[0], in[1], in[2], in_c), none);
    const struct ifd_shape filter = SHAPE(window[0], window[1], window[2], in_c, out_c);
    const uint32_t input[] = {t->input, constant(t, add_value(t, IFD_F32, filter, none), NULL),
                              constant(t, add_value(t, IFD_F32, SHAPE(out_c), none), NULL)};
    uint32_t out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
    struct ifd_node *node = add_node(t, IFD_OP_CONV3D, input, (uint32_t)pick(t, 2, 3), out);
    struct ifd_conv3d_attrs *attrs = attrs_of(node);
    *attrs = (struct ifd_conv3d_attrs){
        .window = {.padding = pick(t, 0, 1) ? IFD_PAD_SAME : IFD_PAD_VALID,
                   .stride_h = (int32_t)stride[1],
                   .stride_w = (int32_t)stride[2],
                   .dilation_h = dilation[1],
                   .dilation_w = dilation[2]},
        .stride_d = (int32_t)stride[0],
        .dilation_d = dilation[0],
        .activation = pick(t, 0, 1) ? IFD_ACT_RELU6 : IFD_ACT_NONE,
    };
    if (pick(t, 0, 1)) { /* a tail with an operand for each channel */
        const uint32_t both[] = {out, constant(t, add_value(t, IFD_F32, SHAPE(out_c), none), NULL)};
        out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
        (void)add_node(t, IFD_OP_MUL, both, 2, out);
        const uint32_t product = out;
        out = add_value(t, IFD_F32, (struct ifd_shape){0}, none);
        (void)add_node(t, IFD_OP_HARD_SWISH, &product, 1, out);
    }
}

/* A number in no sample but the first must change nothing of the others. */
static void run_samples(uint64_t seed, size_t l2_bytes, uint32_t threads)
{
    static float want[SAMPLES * ELEMENTS];
    struct ifd_err err = {0};
    struct test_run run = test_run_open(
        &(struct test_run_options){.backend = &ifd_backend_cpuacc,
                                   .model = {.max_threads = threads, .no_optimize = true},
                                   .l2_bytes = l2_bytes});
    struct trial t = {.graph = &run.model->graph, .random = {.state = seed}};
    build(&t);
    for (uint32_t i = 0; i < t.graph->node_count; i++) {
        REQUIRE_OK(ifd_graph_infer_node(t.graph, i, &err), &err);
    }
    test_run_input(&run, SAMPLES);
    fill(&t, IFD_F32, run.in.data, run.in.bytes / sizeof(float));
    *(float *)run.in.data = seed % 4 == 0 ? NAN : 1;
    size_t count = 0;
    REQUIRE(ifd_shape_elements(&t.graph->value[t.graph->output[0]].desc.shape, &count) &&
            count <= ELEMENTS);
    for (size_t i = 0; i < SAMPLES; i++) {
        const uint8_t *sample = (const uint8_t *)run.in.data + i * (run.in.bytes / SAMPLES);
        test_graph_interpret(t.graph, (const void *[]){sample}, (void *[]){want + i * count});
    }
    test_run_plan(&run, SAMPLES);
    EXPECT_INT(test_run_count(&run, "reference"), 0);
    EXPECT_INT(test_run_count(&run, "gemm_f32"), 1);
    if (seed % 2 == 0) {
        test_run_alone(&run);
    }
    for (uint32_t batch = SAMPLES; batch > 0; batch--) {
        EXPECT_CODE(test_run_try(&run, batch, &err), IFD_OK, &err);
        REQUIRE(run.out[0].bytes == batch * count * sizeof(float));
        for (size_t i = 0; i < batch * count; i++) {
            const float x = ((const float *)run.out[0].data)[i], y = want[i];
            const bool same = isnan(y) ? isnan(x) : fabsf(x - y) <= 1e-4f * (1 + fabsf(y));
            if (!same) {
                (void)fprintf(stderr, "seed %llu, batch %u, element %zu: %g, expected %g\n",
                              (unsigned long long)seed, batch, i, (double)x, (double)y);
            }
            EXPECT(same);
        }
    }
    test_run_close(&run);
}

static void volumes_of_all_shapes_equal_their_reference(void)
{
    static const size_t caches[] = {0, 512, 4096, 32768}; /* 0: this machine's */
    for (uint64_t seed = 1; seed <= 200; seed++) {
        run_samples(seed, caches[seed / 3 % 4], (uint32_t)(seed % 3) + 1);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(volumes_of_all_shapes_equal_their_reference),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* 8-bit layers of 3x3 windows that run by Winograd's algorithm equal the reference kernels, bit for
 * bit: for every number of threads and samples, with tails, wherever the results lie. */
#include "backends/cpuacc/cpuacc.h"
#include "backends/cpuref/cpuref.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <string.h>

enum { CHANNELS = 64, COLUMNS = 96, THREADS_MAX = 4 };

static const float scale[] = {0.05f}, scale_w[] = {0.002f};
static const int32_t zero[] = {-3}, zero_w[] = {0};
static const struct ifd_quant values = {scale, zero, 1, 0}, filters = {scale_w, zero_w, 1, 0};

/* A layer: its image, padding, and what follows. */
struct layer {
    int64_t h, w;
    int32_t padding;
    bool adds;  /* LEAKY_RELU, and the sum with another layer of the same kind */
    bool joins; /* is a part of a concatenation */
};

static uint32_t value(struct ifd_graph *g, struct ifd_shape shape, const struct ifd_quant *how)
{
    struct ifd_err err = {0};
    uint32_t made = 0;
    const struct ifd_desc desc = {.dtype = IFD_S8, .shape = shape, .quant = *how};
    REQUIRE_OK(ifd_graph_add_value(g, "v", &desc, &made, &err), &err);
    return made;
}

static void *node(struct ifd_graph *g, enum ifd_op op, const uint32_t *in, uint32_t count,
                  uint32_t *ret_out)
{
    struct ifd_err err = {0};
    struct ifd_node *made = NULL;
    *ret_out = value(g, (struct ifd_shape){0}, &values);
    REQUIRE_OK(ifd_graph_add_node(g, op, in, count, ret_out, 1, &made, &err), &err);
    return (void *)(uintptr_t)made->attrs;
}

static void infer(struct ifd_graph *g)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
}

static uint32_t conv(struct ifd_graph *g, uint32_t in, int32_t padding)
{
    static uint8_t data[COLUMNS * 9 * CHANNELS];
    struct test_random random = {.state = g->node_count + 1};
    struct ifd_err err = {0};
    const uint32_t weights = value(g, SHAPE(COLUMNS, 3, 3, CHANNELS), &filters);
    uint32_t out = 0;
    for (size_t i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)test_random_int(&random, -127, 127);
    }
    REQUIRE_OK(ifd_graph_set_constant(g, weights, (struct ifd_bytes){data, sizeof(data)}, 0, &err),
               &err);
    struct ifd_conv2d_attrs *attrs =
        node(g, IFD_OP_CONV2D, (const uint32_t[]){in, weights}, 2, &out);
    attrs->window.padding = padding;
    infer(g);
    return out;
}

static uint32_t build(struct ifd_graph *g, uint32_t in, const struct layer *layer)
{
    uint32_t out = conv(g, in, layer->padding), other = 0;
    if (layer->adds) {
        const uint32_t again = conv(g, in, layer->padding);
        struct ifd_leaky_relu_attrs *leaky =
            node(g, IFD_OP_LEAKY_RELU, (const uint32_t[]){again}, 1, &other);
        leaky->alpha = 0.1f;
        infer(g);
        (void)node(g, IFD_OP_ADD, (const uint32_t[]){other, out}, 2, &out);
        infer(g);
    }
    if (layer->joins) {
        const uint32_t part = conv(g, in, layer->padding);
        struct ifd_axis_attrs *concat =
            node(g, IFD_OP_CONCAT, (const uint32_t[]){part, out}, 2, &out);
        concat->axis = 3;
        infer(g);
    }
    return out;
}

static struct test_run run(const struct ifd_backend *backend, const struct layer *layer,
                           int64_t batch, uint32_t threads)
{
    struct ifd_err err = {0};
    struct test_run run =
        test_run_open(&(struct test_run_options){.backend = backend,
                                                 .engine = {.exact = true},
                                                 .model = {.max_threads = threads},
                                                 .l2_bytes = (size_t)1 << 20});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = value(g, SHAPE(batch, layer->h, layer->w, CHANNELS), &values);
    const uint32_t out = build(g, in, layer);
    REQUIRE_OK(ifd_graph_set_io(g, &in, 1, &out, 1, &err), &err);
    test_run_plan(&run, 0);
    struct test_random random = {.state = 3};
    for (size_t i = 0; i < run.in.bytes; i++) {
        ((uint8_t *)run.in.data)[i] = (uint8_t)test_random_int(&random, 0, 255);
    }
    for (int again = 0; again < 2; again++) {
        test_run_once(&run);
    }
    return run;
}

static void compare(const struct layer *layer, uint32_t layers)
{
    for (int64_t batch = 1; batch <= 2; batch++) {
        struct test_run want = run(&ifd_backend_cpuref, layer, batch, 1);
        for (uint32_t threads = 1; threads <= THREADS_MAX; threads++) {
            struct test_run got = run(&ifd_backend_cpuacc, layer, batch, threads);
            const uint32_t flags = got.engine->registry.host.cpu.flags;
            const bool has_it = (flags & IFD_CPU_AVX512) && (flags & IFD_CPU_AVX512_VNNI) &&
                                !(flags & IFD_CPU_AMX_INT8);
            EXPECT_INT(test_run_count(&got, "wino_q8"), has_it ? layers : 0);
            REQUIRE(got.out[0].bytes == want.out[0].bytes);
            EXPECT(memcmp(got.out[0].data, want.out[0].data, want.out[0].bytes) == 0);
            test_run_close(&got);
        }
        test_run_close(&want);
    }
}

static void images_of_any_size_are_equal(void)
{
    compare(&(struct layer){.h = 15, .w = 30, .padding = IFD_PAD_SAME}, 1);
    compare(&(struct layer){.h = 31, .w = 17, .padding = IFD_PAD_VALID}, 1);
}

static void tails_are_equal(void)
{
    compare(&(struct layer){.h = 15, .w = 26, .padding = IFD_PAD_SAME, .adds = true}, 2);
}

static void parts_of_a_concatenation_are_equal(void)
{
    compare(&(struct layer){.h = 12, .w = 27, .padding = IFD_PAD_SAME, .joins = true}, 2);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(images_of_any_size_are_equal),
        T(tails_are_equal),
        T(parts_of_a_concatenation_are_equal),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

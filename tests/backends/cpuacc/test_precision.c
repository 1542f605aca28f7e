/* f32 layers whose operands may have 16 bits, with all that this CPU has for them and with less. */
#include "backends/cpuacc/cpuacc.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, VALUES_MAX = 60 * 64 * 9 };

struct layer {
    int64_t h, w, c, n, kh, kw;
    int32_t stride, dilation;
    bool adds;
};

static const struct layer layers[] = {
    {7, 7, 64, 48, 1, 1, 1, 1, false},   {9, 5, 44, 60, 1, 1, 1, 1, true},
    {8, 8, 32, 32, 3, 3, 1, 1, false},   {9, 11, 44, 20, 3, 3, 1, 1, true},
    {10, 9, 17, 33, 3, 3, 2, 1, false},  {11, 6, 24, 16, 5, 2, 2, 1, false},
    {9, 9, 60, 24, 1, 1, 2, 1, false},   {8, 8, 20, 18, 3, 3, 1, 2, false},
    {12, 12, 3, 16, 3, 3, 2, 1, false},  {1, 1, 64, 60, 1, 1, 1, 1, false},
    {16, 16, 48, 64, 3, 3, 1, 1, false}, {3, 40, 18, 5, 1, 3, 1, 1, false},
};

#define LAYERS (sizeof(layers) / sizeof(layers[0]))

struct setup {
    enum ifd_precision precision;
    uint32_t cpu_mask; /* 0: all */
    bool no_cpu_features, exact;
    uint32_t threads;
};

/* Numbers of many sizes. */
static void fill(float *data, size_t count, uint64_t seed)
{
    struct test_random random = {.state = seed};
    for (size_t i = 0; i < count; i++) {
        data[i] = test_random_f32(&random, -1, 1);
        data[i] *= data[i] * data[i];
    }
}

static uint32_t add_layer(struct ifd_graph *g, uint32_t in, const struct layer *layer,
                          const float *weights)
{
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t out = 0;
    const uint32_t filter =
        test_graph_constant(g, "w", SHAPE(layer->n, layer->kh, layer->kw, layer->c), weights);
    REQUIRE_OK(ifd_graph_add_value(g, "conv", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err),
               &err);
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_CONV2D, (const uint32_t[]){in, filter}, 2, &out, 1,
                                  &node, &err),
               &err);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)node->attrs;
    attrs->window.padding = IFD_PAD_SAME;
    attrs->window.stride_h = attrs->window.stride_w = layer->stride;
    attrs->window.dilation_h = attrs->window.dilation_w = layer->dilation;
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return out;
}

static struct test_run open_run(const struct layer *layer, const struct setup *setup)
{
    static float weights[VALUES_MAX];
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc,
        .engine = {.cpu_mask = setup->cpu_mask,
                   .no_cpu_features = setup->no_cpu_features,
                   .exact = setup->exact},
        .model = {.max_threads = setup->threads, .precision = setup->precision}});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(BATCH, layer->h, layer->w, layer->c));
    fill(weights, VALUES_MAX, 11);
    uint32_t out = add_layer(g, in, layer, weights);
    if (layer->adds) {
        const uint32_t other = add_layer(
            g, in, &(struct layer){layer->h, layer->w, layer->c, layer->n, 1, 1, 1, 1, false},
            weights);
        out = test_graph_op2(g, IFD_OP_ADD, out, other, "sum");
    }
    test_graph_io(g, in, out);
    test_run_plan(&run, 0);
    fill(run.in.data, run.in.bytes / sizeof(float), 7);
    return run;
}

/* ---- what must come out ---- */

struct sum {
    double value, magnitude;
};

static void add_window(const struct layer *layer, const float *image, const float *weights,
                       int64_t y, int64_t x, int64_t n, struct sum *sum)
{
    const int64_t reach_y = (layer->kh - 1) * layer->dilation + 1;
    const int64_t reach_x = (layer->kw - 1) * layer->dilation + 1;
    const int64_t out_h = (layer->h + layer->stride - 1) / layer->stride;
    const int64_t out_w = (layer->w + layer->stride - 1) / layer->stride;
    const int64_t over_y = (out_h - 1) * layer->stride + reach_y - layer->h;
    const int64_t over_x = (out_w - 1) * layer->stride + reach_x - layer->w;
    for (int64_t ky = 0; ky < layer->kh; ky++) {
        for (int64_t kx = 0; kx < layer->kw; kx++) {
            const int64_t iy =
                y * layer->stride + ky * layer->dilation - (over_y > 0 ? over_y : 0) / 2;
            const int64_t ix =
                x * layer->stride + kx * layer->dilation - (over_x > 0 ? over_x : 0) / 2;
            for (int64_t c = 0;
                 iy >= 0 && iy < layer->h && ix >= 0 && ix < layer->w && c < layer->c; c++) {
                const double product =
                    (double)image[(iy * layer->w + ix) * layer->c + c] *
                    (double)weights[((n * layer->kh + ky) * layer->kw + kx) * layer->c + c];
                sum->value += product;
                sum->magnitude += fabs(product);
            }
        }
    }
}

/* Both operands of a product may be off by a step, and so may each sum of f32. Half-precision
 * numbers are no finer than 2^-24, and Arm adds up to 64 products in half precision. */
static void expect_close(const struct layer *layer, const struct test_run *run, double step)
{
    const bool is_half = run->model->info.precision == IFD_PRECISION_FP16;
    const bool sums_halves = is_half && (ifd_engine_cpu(run->engine)->flags & IFD_CPU_FP16);
    const double products =
        (double)(layer->kh * layer->kw * layer->c + (layer->adds ? layer->c : 0));
    const double sums = sums_halves ? 64.0 * step : 0.0, least = is_half ? products * 0x1p-24 : 0.0;
    static float weights[VALUES_MAX];
    fill(weights, VALUES_MAX, 11);
    const int64_t out_h = (layer->h + layer->stride - 1) / layer->stride;
    const int64_t out_w = (layer->w + layer->stride - 1) / layer->stride;
    const float *got = run->out[0].data;
    size_t wrong = 0;
    EXPECT_INT((int64_t)run->out[0].bytes, BATCH * out_h * out_w * layer->n * 4);
    for (int64_t i = 0; i < BATCH * out_h * out_w * layer->n; i++) {
        const int64_t n = i % layer->n, x = i / layer->n % out_w, y = i / layer->n / out_w % out_h;
        const float *image = (const float *)run->in.data +
                             i / layer->n / out_w / out_h * layer->h * layer->w * layer->c;
        struct sum sum = {0};
        add_window(layer, image, weights, y, x, n, &sum);
        if (layer->adds) {
            add_window(&(struct layer){layer->h, layer->w, layer->c, layer->n, 1, 1, 1, 1, false},
                       image, weights, y, x, n, &sum);
        }
        const double bound =
            sum.magnitude * (2.0 * step + step * step + sums + 0x1p-14) + least + 1e-30;
        wrong += fabs((double)got[i] - sum.value) <= bound ? 0 : 1;
    }
    EXPECT_INT((int64_t)wrong, 0);
}

static double step_of(enum ifd_precision precision)
{
    return precision == IFD_PRECISION_BF16 ? 0x1p-8 : precision == IFD_PRECISION_FP16 ? 0x1p-11 : 0;
}

static void expect_layers_close(const struct setup *setup)
{
    for (size_t i = 0; i < LAYERS; i++) {
        struct test_run run = open_run(&layers[i], setup);
        test_run_once(&run);
        expect_close(&layers[i], &run, step_of(run.model->info.precision));
        test_run_close(&run);
    }
}

/* ---- cases ---- */

static void results_are_as_close_as_the_precision_says(void)
{
    for (int precision = IFD_PRECISION_F32; precision <= IFD_PRECISION_FP16; precision++) {
        struct setup setup = {.precision = (enum ifd_precision)precision, .threads = 1};
        expect_layers_close(&setup);
        setup.threads = 2;
        expect_layers_close(&setup);
        setup.threads = 1;
        setup.cpu_mask = ~(uint32_t)IFD_CPU_AMX_BF16;
        expect_layers_close(&setup);
        setup.cpu_mask = ~(uint32_t)(IFD_CPU_AVX512 | IFD_CPU_BF16);
        expect_layers_close(&setup);
        setup.cpu_mask = 0;
        setup.no_cpu_features = true;
        expect_layers_close(&setup);
    }
}

static void results_do_not_depend_on_threads(void)
{
    for (size_t i = 0; i < LAYERS; i++) {
        struct test_run one =
            open_run(&layers[i], &(struct setup){IFD_PRECISION_BF16, .threads = 1});
        struct test_run two =
            open_run(&layers[i], &(struct setup){IFD_PRECISION_BF16, .threads = 2});
        test_run_once(&one);
        test_run_once(&two);
        EXPECT(memcmp(one.out[0].data, two.out[0].data, one.out[0].bytes) == 0);
        test_run_close(&one);
        test_run_close(&two);
    }
}

static void what_is_not_finite_reaches_only_the_windows_that_see_it(void)
{
    static const float spots[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < 3 * LAYERS; i++) {
        const struct layer *layer = &layers[i / 3];
        struct setup setup = {IFD_PRECISION_BF16, .threads = 1};
        struct test_run run = open_run(layer, &setup);
        const int64_t y = layer->h / 2, x = layer->w / 2;
        float *in = run.in.data;
        in[(y * layer->w + x) * layer->c + layer->c / 2] = 0;
        test_run_once(&run);
        const size_t count = run.out[0].bytes / sizeof(float);
        float *before = malloc(run.out[0].bytes);
        REQUIRE(before != NULL);
        memcpy(before, run.out[0].data, run.out[0].bytes);
        in[(y * layer->w + x) * layer->c + layer->c / 2] = spots[i % 3];
        test_run_once(&run);
        size_t reached = 0, changed = 0;
        for (size_t k = 0; k < count; k++) {
            const float now = ((const float *)run.out[0].data)[k];
            reached += isfinite(now) ? 0 : 1;
            changed += isfinite(now) && now != before[k];
        }
        EXPECT(reached > 0);
        EXPECT_INT((int64_t)changed, 0);
        if (run.model->info.precision == IFD_PRECISION_BF16) { /* f32 may take Winograd's tiles */
            EXPECT((int64_t)reached <= layer->n * (layer->kh * layer->kw + (layer->adds ? 1 : 0)));
        }
        free(before);
        test_run_close(&run);
    }
}

static void layers_take_what_the_cpu_has(void)
{
    static const uint32_t needs[] = {[IFD_PRECISION_BF16] = IFD_CPU_AVX512_BF16 | IFD_CPU_BF16,
                                     [IFD_PRECISION_FP16] = IFD_CPU_AVX2 | IFD_CPU_FP16};
    for (int precision = IFD_PRECISION_BF16; precision <= IFD_PRECISION_FP16; precision++) {
        const struct setup setup = {.precision = (enum ifd_precision)precision, .threads = 1};
        struct test_run run = open_run(&layers[0], &setup);
        if (ifd_engine_cpu(run.engine)->flags & needs[precision]) {
            EXPECT_INT(run.model->info.precision, precision);
            EXPECT_TEXT(run.model->info.precision_why_not, "");
        }
        test_run_close(&run);
    }
}

static void f32_is_computed_where_the_cpu_has_nothing_else(void)
{
    struct test_run run = open_run(
        &layers[0], &(struct setup){IFD_PRECISION_BF16, .no_cpu_features = true, .threads = 1});
    EXPECT_INT(run.model->info.precision, IFD_PRECISION_F32);
    EXPECT_TEXT(run.model->info.precision_why_not, "the CPU has no instructions for it");
    test_run_close(&run);
}

static void a_model_without_products_says_that_it_gains_nothing(void)
{
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc, .model = {.precision = IFD_PRECISION_BF16}});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(1, 8));
    test_graph_io(g, in, test_graph_op2(g, IFD_OP_ADD, in, in, "sum"));
    test_run_plan(&run, 0);
    EXPECT_INT(run.model->info.precision, IFD_PRECISION_F32);
    EXPECT_TEXT(run.model->info.precision_why_not, "no gemm of f32 is faster with it");
    test_run_close(&run);
}

static void exact_results_and_a_lower_precision_exclude_each_other(void)
{
    struct test_run run = test_run_open(
        &(struct test_run_options){.backend = &ifd_backend_cpuacc, .engine = {.exact = true}});
    struct ifd_err err = {0};
    struct ifd_model *model = NULL;
    EXPECT_INT(ifd_model_create(run.engine,
                                &(struct ifd_model_options){.precision = IFD_PRECISION_BF16},
                                &model, &err),
               IFD_INVALID);
    EXPECT_TEXT(err.text, "exact results and precision bf16 exclude each other");
    test_run_close(&run);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(results_are_as_close_as_the_precision_says),
        T(results_do_not_depend_on_threads),
        T(what_is_not_finite_reaches_only_the_windows_that_see_it),
        T(layers_take_what_the_cpu_has),
        T(f32_is_computed_where_the_cpu_has_nothing_else),
        T(a_model_without_products_says_that_it_gains_nothing),
        T(exact_results_and_a_lower_precision_exclude_each_other),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Large plain gemms run as seven products of quarters: close to the definition for every number of
 * rows, wherever the results lie. */
#include "backends/cpuacc/cpuacc.h"
#include "inferd/op_attrs.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/model.h"

#include <math.h>
#include <string.h>

enum {
    WEIGHTS_MAX = 512 * 512,
    SUMS_MAX = 1 << 18,
    L2_LARGE = 8 << 20,
    L2_MIDDLE = 2 << 20,
    L2_SMALL = 1 << 20
};

/* The residual: none, the input, or a value that nobody else reads, so that the sum takes its
 * memory. */
enum residual { NONE, INPUT, OWN };

struct layer {
    int64_t batch, h, w, k, n;
    int32_t activation;
    enum residual residual;
    bool is_sliced;   /* is one part of a concatenation */
    bool is_filtered; /* a depthwise convolution follows */
    size_t l2_bytes;
    uint32_t threads;
    uint32_t cpu_flags; /* beside the machine's */
    bool no_cpu_features, exact;
};

struct run {
    struct fail_alloc fail;
    struct ifd_engine *engine;
    struct ifd_model *model;
    struct ifd_instance *instance;
    struct ifd_tensor in, out;
    uint32_t strassen, strips; /* steps that say so */
};

static void fill(float *data, size_t count, uint64_t seed)
{
    struct test_random random = {.state = seed};
    for (size_t i = 0; i < count; i++) {
        data[i] = test_random_f32(&random, -1, 1);
    }
}

/* Weights and bias of every layer. */
static const float *weights_of(const struct layer *layer)
{
    static float weights[WEIGHTS_MAX];
    REQUIRE(layer->n * layer->k <= WEIGHTS_MAX);
    fill(weights, (size_t)(layer->n * layer->k), 11);
    return weights;
}

static const float *bias_of(const struct layer *layer)
{
    static float bias[1024];
    fill(bias, (size_t)layer->n, 12);
    return bias;
}

/* ---- graphs ---- */

static struct ifd_node *add_node(struct ifd_graph *g, enum ifd_op op, const uint32_t *in,
                                 uint32_t count, uint32_t *ret_out)
{
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_value(g, "made", &(struct ifd_desc){.dtype = IFD_F32}, ret_out, &err),
               &err);
    REQUIRE_OK(ifd_graph_add_node(g, op, in, count, ret_out, 1, &node, &err), &err);
    return node;
}

static void infer(struct ifd_graph *g)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
}

static uint32_t conv(struct ifd_graph *g, uint32_t in, const struct layer *layer,
                     int32_t activation)
{
    const uint32_t operand[] = {
        in, test_graph_constant(g, "w", SHAPE(layer->n, 1, 1, layer->k), weights_of(layer)),
        test_graph_constant(g, "b", SHAPE(layer->n), bias_of(layer))};
    uint32_t out = 0;
    struct ifd_node *node = add_node(g, IFD_OP_CONV2D, operand, 3, &out);
    ((struct ifd_conv2d_attrs *)(uintptr_t)node->attrs)->activation = activation;
    infer(g);
    return out;
}

static uint32_t add_layer(struct ifd_graph *g, uint32_t in, const struct layer *layer)
{
    if (layer->residual == OWN) {
        const uint32_t twice = test_graph_op2(g, IFD_OP_ADD, in, in, "twice");
        return test_graph_op2(g, IFD_OP_ADD, conv(g, in, layer, IFD_ACT_NONE), twice, "sum");
    }
    const uint32_t made = conv(g, in, layer, layer->activation);
    if (layer->is_sliced) {
        const uint32_t half = test_graph_op1(g, IFD_OP_TANH, in, "other");
        uint32_t out = 0;
        struct ifd_node *node = add_node(g, IFD_OP_CONCAT, (const uint32_t[]){half, made}, 2, &out);
        ((struct ifd_axis_attrs *)(uintptr_t)node->attrs)->axis = 3;
        infer(g);
        return out;
    }
    if (layer->is_filtered) {
        static float filter[9 * 256];
        fill(filter, 9 * 256, 13);
        const uint32_t operand[] = {made, test_graph_constant(g, "f", SHAPE(1, 3, 3, 256), filter)};
        uint32_t out = 0;
        struct ifd_node *node = add_node(g, IFD_OP_DEPTHWISE_CONV2D, operand, 2, &out);
        ((struct ifd_conv2d_attrs *)(uintptr_t)node->attrs)->window.padding = IFD_PAD_SAME;
        infer(g);
        return out;
    }
    return layer->residual == INPUT ? test_graph_op2(g, IFD_OP_ADD, made, in, "sum") : made;
}

/* ---- running ---- */

static void open_run(const struct layer *layer, struct run *run)
{
    static const struct ifd_backend *const backends[] = {&ifd_backend_cpuacc};
    struct ifd_err err = {0};
    memset(run, 0, sizeof(*run));
    fail_alloc_init(&run->fail, 0);
    const struct ifd_engine_options options = {.alloc = &run->fail.alloc,
                                               .backends = backends,
                                               .backend_count = 1,
                                               .exact = layer->exact,
                                               .no_cpu_features = layer->no_cpu_features};
    REQUIRE_OK(ifd_engine_create(&options, &run->engine, &err), &err);
    struct ifd_cpu cpu = run->engine->registry.host.cpu;
    cpu.l2_bytes = layer->l2_bytes;
    cpu.flags = (cpu.flags & ~(uint32_t)IFD_CPU_AVX512_HALVES) | layer->cpu_flags;
    test_engine_set_cpu(run->engine, &cpu);
    REQUIRE_OK(ifd_model_create(run->engine,
                                &(struct ifd_model_options){.max_threads = layer->threads},
                                &run->model, &err),
               &err);
    const struct ifd_shape shape = SHAPE(layer->batch, layer->h, layer->w, layer->k);
    const uint32_t in = test_graph_f32(&run->model->graph, "in", shape);
    test_graph_io(&run->model->graph, in, add_layer(&run->model->graph, in, layer));
    REQUIRE_OK(test_model_build(run->model, &err), &err);
    for (uint32_t i = 0; i < ifd_model_step_count(run->model); i++) {
        struct ifd_plan_step step;
        ifd_model_step(run->model, i, &step);
        run->strassen += strstr(step.step.name, "strassen") != NULL;
        run->strips += strcmp(step.step.kernel, "strips") == 0;
    }
    REQUIRE_OK(
        ifd_instance_create(run->model,
                            &(struct ifd_instance_options){.max_batch = (uint32_t)layer->batch,
                                                           .threads = layer->threads},
                            &run->instance, &err),
        &err);
    run->in = test_tensor_f32(shape);
    fill(run->in.data, run->in.bytes / sizeof(float), 7);
}

static void run_once(const struct layer *layer, struct run *run)
{
    struct ifd_err err = {0};
    const struct ifd_io io = {.input = &run->in, .output = &run->out, .batch = layer->batch};
    REQUIRE_OK(ifd_instance_run(run->instance, &io, 1, &err), &err);
}

static void close_run(struct run *run)
{
    ifd_release_tensor(ifd_alloc_system(), run->in.data, run->in.bytes);
    ifd_instance_destroy(run->instance);
    ifd_model_destroy(run->model);
    ifd_engine_destroy(run->engine);
    fail_alloc_finish(&run->fail);
}

/* ---- what must come out ---- */

/* The plain gemm of all rows. Inputs and weights are the same for every layer of a shape, so the
 * last result is kept: threads, residuals and activations do not change it. */
static const double *products_of(const struct layer *layer, const float *in)
{
    static double sums[SUMS_MAX];
    static int64_t rows, k, n;
    const int64_t rows_wanted = layer->batch * layer->h * layer->w;
    if (rows == rows_wanted && k == layer->k && n == layer->n) {
        return sums;
    }
    rows = rows_wanted, k = layer->k, n = layer->n;
    REQUIRE(rows * n <= SUMS_MAX);
    const float *weights = weights_of(layer);
    for (int64_t i = 0; i < rows * n; i++) {
        sums[i] = 0;
        for (int64_t j = 0; j < k; j++) {
            sums[i] += (double)in[i / n * k + j] * (double)weights[i % n * k + j];
        }
    }
    return sums;
}

static double result(const struct layer *layer, const float *row, int64_t n, double product,
                     const float *bias)
{
    const double sum = product + (double)bias[n];
    const double x = (double)row[n < layer->k ? n : 0];
    if (layer->residual != NONE) {
        return sum + (layer->residual == OWN ? 2 * x : x);
    }
    return layer->activation == IFD_ACT_RELU6 ? fmin(fmax(sum, 0), 6) : sum;
}

/* The bound of strassen.c for inputs and weights of at most 1, and for rounding the bias and a
 * residual. */
static double product_bound(const struct layer *layer)
{
    const double k = (double)layer->k;
    return (4.5 * k * k + 48 * k + 4 * k) * 0x1p-24;
}

static void expect_close(const struct layer *layer, const struct run *run)
{
    const float *bias = bias_of(layer);
    const double bound = product_bound(layer);
    const int64_t pixel = layer->is_sliced ? layer->k + layer->n : layer->n;
    const float *in = run->in.data;
    const double *products = products_of(layer, in);
    const float *out = (const float *)run->out.data + pixel - layer->n;
    const int64_t rows = layer->batch * layer->h * layer->w;
    size_t wrong = 0;
    EXPECT_INT((int64_t)run->out.bytes, rows * pixel * 4);
    for (int64_t row = 0; row < rows; row++, in += layer->k, out += pixel) {
        for (int64_t n = 0; n < layer->n; n++) {
            const double want = result(layer, in, n, products[row * layer->n + n], bias);
            wrong += fabs((double)out[n] - want) <= bound ? 0 : 1;
        }
    }
    EXPECT_INT((int64_t)wrong, 0);
}

static void check(const struct layer *layer, uint32_t strassen)
{
    struct run run;
    open_run(layer, &run);
    EXPECT_INT(run.strassen, strassen);
    run.fail.fail_at = -1; /* a run allocates nothing */
    run_once(layer, &run);
    run_once(layer, &run);
    EXPECT(!run.fail.failed);
    run.fail.fail_at = 0;
    expect_close(layer, &run);
    close_run(&run);
}

/* ---- cases ---- */

static void odd_and_even_blocks_are_close(void)
{
    static const int64_t side[][2] = {{16, 12}, {14, 14}, {13, 15}, {17, 17}, {1, 193}};
    for (size_t i = 0; i < sizeof(side) / sizeof(side[0]); i++) {
        check(&(struct layer){.batch = 1,
                              .h = side[i][0],
                              .w = side[i][1],
                              .k = 240,
                              .n = 256,
                              .activation = IFD_ACT_RELU6,
                              .l2_bytes = L2_LARGE,
                              .threads = 1},
              1);
    }
}

static void weights_beyond_the_cache_are_close(void)
{
    check(
        &(struct layer){
            .batch = 1, .h = 19, .w = 19, .k = 512, .n = 512, .l2_bytes = L2_SMALL, .threads = 1},
        1);
}

/* 14 x 14 pixels do not make up for reading 1.8 MB more than once, unless products are slow
 * compared to memory. */
static void slow_products_let_fewer_rows_pay_for_weights(void)
{
    struct layer layer = {
        .batch = 1, .h = 14, .w = 14, .k = 512, .n = 512, .l2_bytes = L2_SMALL, .threads = 1};
    check(&layer, 0);
    layer.cpu_flags = IFD_CPU_AVX512_HALVES;
    for (layer.threads = 1; layer.threads <= 2; layer.threads++) {
        check(&layer, 1);
    }
}

/* Sums take the same time whatever a core multiplies in it: where products are slower, narrower
 * layers pay, if one thread has the memory for itself. */
static void slow_products_let_fewer_columns_pay_for_sums(void)
{
    struct layer layer = {
        .batch = 1, .h = 28, .w = 28, .k = 512, .n = 128, .l2_bytes = L2_SMALL, .threads = 1};
    check(&layer, 0);
    layer.cpu_flags = IFD_CPU_AVX512_HALVES;
    check(&layer, 1);
    layer.threads = 2;
    check(&layer, 0);
}

static void threads_and_batches_are_close(void)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        check(&(struct layer){.batch = 3,
                              .h = 17,
                              .w = 19,
                              .k = 240,
                              .n = 256,
                              .activation = IFD_ACT_RELU6,
                              .l2_bytes = L2_LARGE,
                              .threads = threads},
              1);
    }
}

static void residuals_are_close_in_their_own_memory_and_in_that_of_the_sum(void)
{
    for (enum residual residual = INPUT; residual <= OWN; residual++) {
        for (uint32_t threads = 1; threads <= 2; threads++) {
            check(&(struct layer){.batch = 2,
                                  .h = 17,
                                  .w = 13,
                                  .k = 352,
                                  .n = 352,
                                  .residual = residual,
                                  .l2_bytes = L2_LARGE,
                                  .threads = threads},
                  1);
        }
    }
}

static void slices_of_a_concatenation_are_close(void)
{
    check(&(struct layer){.batch = 2,
                          .h = 15,
                          .w = 13,
                          .k = 240,
                          .n = 256,
                          .is_sliced = true,
                          .l2_bytes = L2_LARGE,
                          .threads = 1},
          1);
}

static void scalar_kernels_are_close(void)
{
    check(&(struct layer){.batch = 1,
                          .h = 13,
                          .w = 15,
                          .k = 240,
                          .n = 256,
                          .l2_bytes = L2_LARGE,
                          .threads = 1,
                          .no_cpu_features = true},
          1);
}

static void few_rows_small_products_and_exact_results_are_made_plainly(void)
{
    struct layer layer = {
        .batch = 4, .h = 13, .w = 14, .k = 240, .n = 256, .l2_bytes = L2_LARGE, .threads = 1};
    check(&layer, 0);
    layer.h = layer.w = 14;
    layer.threads = 4;
    check(&layer, 0);
    layer.threads = 1;
    layer.exact = true;
    check(&layer, 0);
    layer.exact = false;
    layer.n = 96;
    check(&layer, 0);
}

/* The inputs of the depthwise convolution are off by at most the bound; it adds nine. */
static void strips_are_close_to_the_plain_product(void)
{
    struct layer layer = {.batch = 2,
                          .h = 29,
                          .w = 27,
                          .k = 256,
                          .n = 256,
                          .activation = IFD_ACT_RELU6,
                          .is_filtered = true,
                          .l2_bytes = L2_MIDDLE,
                          .exact = true,
                          .threads = 1};
    struct run plain;
    open_run(&layer, &plain);
    EXPECT_INT(plain.strassen, 0);
    run_once(&layer, &plain);
    layer.exact = false;
    for (layer.threads = 1; layer.threads <= 3; layer.threads++) {
        struct run run;
        open_run(&layer, &run);
        EXPECT_INT(run.strassen, 1);
        EXPECT_INT(run.strips, 1);
        run_once(&layer, &run);
        const double bound = 9 * product_bound(&layer);
        const float *got = run.out.data, *want = plain.out.data;
        size_t wrong = 0;
        REQUIRE(run.out.bytes == plain.out.bytes);
        for (size_t i = 0; i < run.out.bytes / sizeof(float); i++) {
            wrong += fabs((double)got[i] - (double)want[i]) <= bound ? 0 : 1;
        }
        EXPECT_INT((int64_t)wrong, 0);
        close_run(&run);
    }
    close_run(&plain);
}

/* Images are strangers to each other. */
static void what_is_not_finite_stays_in_its_image(void)
{
    const struct layer layer = {
        .batch = 3, .h = 13, .w = 15, .k = 240, .n = 256, .l2_bytes = L2_LARGE, .threads = 1};
    struct run run;
    open_run(&layer, &run);
    EXPECT_INT(run.strassen, 1);
    const size_t image = (size_t)(layer.h * layer.w * layer.k);
    ((float *)run.in.data)[image + 5] = INFINITY;
    run_once(&layer, &run);
    const float *out = run.out.data;
    const size_t results = (size_t)(layer.h * layer.w * layer.n);
    size_t inside = 0, outside = 0;
    for (size_t i = 0; i < 3 * results; i++) {
        *(i / results == 1 ? &inside : &outside) += isfinite(out[i]) ? 0 : 1;
    }
    EXPECT(inside > 0);
    EXPECT_INT((int64_t)outside, 0);
    close_run(&run);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(odd_and_even_blocks_are_close),
        T(weights_beyond_the_cache_are_close),
        T(slow_products_let_fewer_rows_pay_for_weights),
        T(slow_products_let_fewer_columns_pay_for_sums),
        T(threads_and_batches_are_close),
        T(residuals_are_close_in_their_own_memory_and_in_that_of_the_sum),
        T(slices_of_a_concatenation_are_close),
        T(strips_are_close_to_the_plain_product),
        T(scalar_kernels_are_close),
        T(few_rows_small_products_and_exact_results_are_made_plainly),
        T(what_is_not_finite_stays_in_its_image),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Element-wise operators that run in one step, alone or behind a convolution, give the same results
 * as separate steps, bit for bit. Each graph is built twice: once with all values in between as
 * outputs, so that nothing can be fused. */
#include "backends/cpuacc/cpuacc.h"
#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <stdio.h>
#include <string.h>

enum { HEIGHT = 19, WIDTH = 7, VALUES = 24, GRAPHS = 120 };

struct generator {
    struct ifd_graph *graph;
    struct test_random random;
    bool is_float;
    uint32_t value[VALUES]; /* the run, from what it begins with on */
    uint32_t count;
};

static const float scale[] = {0.05f}, scale_w[] = {0.01f};
static const int32_t zero[] = {-12}, zero_w[] = {0};

static struct ifd_desc desc_of(const struct generator *g, struct ifd_shape shape)
{
    const struct ifd_quant quant = {scale, zero, 1, 0};
    return (struct ifd_desc){.dtype = g->is_float ? IFD_F32 : IFD_S8,
                             .shape = shape,
                             .quant = g->is_float ? (struct ifd_quant){0} : quant};
}

static uint32_t add_value(struct generator *g, const struct ifd_desc *desc)
{
    struct ifd_err err = {0};
    uint32_t value = 0;
    REQUIRE_OK(ifd_graph_add_value(g->graph, "v", desc, &value, &err), &err);
    return value;
}

static uint32_t node(struct generator *g, enum ifd_op op, const uint32_t *input, uint32_t count,
                     struct ifd_node **ret_node)
{
    struct ifd_err err = {0};
    const struct ifd_desc desc = desc_of(g, (struct ifd_shape){0});
    const uint32_t out = add_value(g, &desc);
    REQUIRE_OK(ifd_graph_add_node(g->graph, op, input, count, &out, 1, ret_node, &err), &err);
    return out;
}

static uint32_t infer(struct generator *g, uint32_t out)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(g->graph, g->graph->node_count - 1, &err), &err);
    return out;
}

static uint32_t constant(struct generator *g, struct ifd_shape shape, bool is_weight)
{
    union {
        float f32[12288];
        int8_t s8[12288];
    } data;
    struct ifd_err err = {0};
    struct ifd_desc desc = desc_of(g, shape);
    if (is_weight && !g->is_float) {
        desc.quant = (struct ifd_quant){scale_w, zero_w, 1, 0};
    }
    size_t count = 1;
    for (uint32_t d = 0; d < shape.rank; d++) {
        count *= (size_t)shape.dim[d];
    }
    REQUIRE(count <= 12288);
    for (size_t i = 0; i < count; i++) {
        if (g->is_float) {
            data.f32[i] = test_random_f32(&g->random, -1, 1);
        } else {
            data.s8[i] = (int8_t)test_random_int(&g->random, -127, 127);
        }
    }
    const uint32_t value = add_value(g, &desc);
    const size_t bytes = count * ifd_dtype_bytes(desc.dtype);
    REQUIRE_OK(ifd_graph_set_constant(g->graph, value,
                                      (struct ifd_bytes){(const uint8_t *)&data, bytes}, 0, &err),
               &err);
    return value;
}

/* ---- parts of a run ---- */

static uint32_t last(const struct generator *g)
{
    return g->value[g->count - 1];
}

static void push(struct generator *g, uint32_t value)
{
    REQUIRE(g->count < VALUES);
    g->value[g->count++] = value;
}

static const struct ifd_shape *shape_of(const struct generator *g, uint32_t value)
{
    return &g->graph->value[value].desc.shape;
}

static void add_product(struct generator *g, enum ifd_op op, int64_t side, int64_t channels)
{
    struct ifd_node *made = NULL;
    const int64_t from = shape_of(g, last(g))->dim[3];
    const struct ifd_shape weights =
        op == IFD_OP_CONV2D ? SHAPE(channels, side, side, from) : SHAPE(1, side, side, from);
    const uint32_t input[] = {last(g), constant(g, weights, true)};
    const uint32_t out = node(g, op, input, 2, &made);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)made->attrs;
    attrs->window.padding = IFD_PAD_SAME;
    attrs->activation = test_random_int(&g->random, 0, 1) ? IFD_ACT_RELU6 : IFD_ACT_NONE;
    push(g, infer(g, out));
}

static void add_unary(struct generator *g)
{
    static const enum ifd_op ops[] = {IFD_OP_RELU,       IFD_OP_LEAKY_RELU, IFD_OP_TANH,
                                      IFD_OP_HARD_SWISH, IFD_OP_LOGISTIC,   IFD_OP_RELU6};
    struct ifd_node *made = NULL;
    enum ifd_op op = ops[test_random_int(&g->random, 0, 5)];
    if (!g->is_float && (op == IFD_OP_TANH || op == IFD_OP_LOGISTIC)) {
        op = IFD_OP_RELU; /* those fix the output's quantization */
    }
    const uint32_t input = last(g);
    push(g, infer(g, node(g, op, &input, 1, &made)));
}

static void add_binary(struct generator *g, uint32_t other, bool swap)
{
    static const enum ifd_op ops[] = {IFD_OP_ADD, IFD_OP_MUL, IFD_OP_SUB, IFD_OP_MAXIMUM};
    struct ifd_node *made = NULL;
    const enum ifd_op op = ops[test_random_int(&g->random, 0, g->is_float ? 3 : 2)];
    const uint32_t input[] = {swap ? other : last(g), swap ? last(g) : other};
    const uint32_t out = node(g, op, input, 2, &made);
    struct ifd_binary_attrs *attrs = (struct ifd_binary_attrs *)(uintptr_t)made->attrs;
    if (op != IFD_OP_MAXIMUM && test_random_int(&g->random, 0, 3) == 0) {
        attrs->activation = IFD_ACT_RELU;
    }
    push(g, infer(g, out));
}

static void add_silu(struct generator *g)
{
    struct ifd_node *made = NULL;
    const uint32_t x = last(g);
    const uint32_t logistic = infer(g, node(g, IFD_OP_LOGISTIC, &x, 1, &made));
    const uint32_t input[] = {logistic, x};
    push(g, infer(g, node(g, IFD_OP_MUL, input, 2, &made)));
}

/* [1,h,w,c] <-> [1,h*w,c] */
static void add_view(struct generator *g)
{
    struct ifd_node *made = NULL;
    const struct ifd_shape shape = *shape_of(g, last(g));
    const struct ifd_shape flat = shape.rank == 4 ? SHAPE(1, HEIGHT * WIDTH, shape.dim[3])
                                                  : SHAPE(1, HEIGHT, WIDTH, shape.dim[2]);
    const uint32_t input = last(g);
    const uint32_t out = node(g, IFD_OP_RESHAPE, &input, 1, &made);
    struct ifd_reshape_attrs *attrs = (struct ifd_reshape_attrs *)(uintptr_t)made->attrs;
    attrs->shape.count = flat.rank;
    memcpy(attrs->shape.value, flat.dim, sizeof(attrs->shape.value));
    push(g, infer(g, out));
}

/* A value or the input that has the newest one's shape; the newest one itself if there is none. */
static uint32_t earlier(struct generator *g, uint32_t input)
{
    const uint32_t from = (uint32_t)test_random_int(&g->random, 0, (int64_t)g->count - 1);
    for (uint32_t i = from; i < g->count; i++) {
        if (ifd_shape_equal(shape_of(g, g->value[i]), shape_of(g, last(g)))) {
            return g->value[i];
        }
    }
    return input;
}

static void build(struct generator *g, uint32_t input)
{
    push(g, input);
    const int64_t channels = shape_of(g, input)->dim[3];
    const int64_t begin = test_random_int(&g->random, 0, 3);
    if (begin < 2) {
        add_product(g, IFD_OP_CONV2D, begin ? 3 : 1, test_random_int(&g->random, 1, 40));
    } else if (begin == 2) {
        add_product(g, IFD_OP_DEPTHWISE_CONV2D, 3, channels);
    }
    const int64_t length = test_random_int(&g->random, 2, 8);
    for (int64_t i = 0; i < length; i++) {
        const struct ifd_shape *shape = shape_of(g, last(g));
        const int64_t row = shape->dim[shape->rank - 1];
        const bool swap = test_random_int(&g->random, 0, 1) != 0;
        switch (test_random_int(&g->random, 0, 6)) {
        case 0:
            add_view(g);
            break;
        case 1:
            add_binary(g, constant(g, SHAPE(1), false), swap);
            break;
        case 2:
            add_binary(g, constant(g, SHAPE(1, 1, row), false), swap);
            break;
        case 3:
            add_binary(g, earlier(g, last(g)), swap);
            break;
        case 4:
            if (g->is_float) {
                add_silu(g);
                break;
            }
            add_unary(g);
            break;
        default:
            add_unary(g);
            break;
        }
    }
}

/* ---- running ---- */

struct result {
    uint8_t *data; /* of the run's last value */
    size_t bytes;
    uint32_t steps;
    bool has_elements; /* a step of several operators */
};

static struct result run(uint64_t seed, bool is_float, bool exact, bool opens, uint32_t threads)
{
    struct ifd_err err = {0};
    struct test_run run = test_run_open(&(struct test_run_options){
        .backend = &ifd_backend_cpuacc,
        .engine = {.exact = exact},
        .model = {.max_threads = threads, .no_optimize = true},
        .l2_bytes = 64 << 10}); /* several calls a product, some chains */
    struct generator g = {
        .graph = &run.model->graph, .random = {.state = seed}, .is_float = is_float};
    const struct ifd_desc desc =
        desc_of(&g, SHAPE(1, HEIGHT, WIDTH, test_random_int(&g.random, 1, 33)));
    const uint32_t in = add_value(&g, &desc);
    build(&g, in);
    uint32_t output[VALUES] = {last(&g)}, outputs = 1;
    for (uint32_t i = 1; opens && i + 1 < g.count; i++) {
        output[outputs++] = g.value[i];
    }
    REQUIRE_OK(ifd_graph_set_io(g.graph, &in, 1, output, outputs, &err), &err);
    test_run_plan(&run, 0);
    const size_t elements = run.in.bytes / ifd_dtype_bytes(desc.dtype);
    for (size_t i = 0; i < elements; i++) {
        if (is_float) {
            ((float *)run.in.data)[i] = test_random_f32(&g.random, -3, 3);
        } else {
            ((int8_t *)run.in.data)[i] = (int8_t)test_random_int(&g.random, -128, 127);
        }
    }
    test_run_once(&run);
    struct result result = {.data = ifd_acquire_tensor(ifd_alloc_system(), run.out[0].bytes),
                            .bytes = run.out[0].bytes,
                            .steps = ifd_model_step_count(run.model),
                            .has_elements = test_run_count(&run, "elements") > 0};
    REQUIRE(result.data != NULL);
    memcpy(result.data, run.out[0].data, result.bytes);
    test_run_close(&run);
    return result;
}

static void compare(bool is_float, bool exact)
{
    uint32_t shorter = 0, elements = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        const uint32_t threads = (uint32_t)(seed % 3) + 1;
        const struct result open = run(seed, is_float, exact, true, 1);
        const struct result joined = run(seed, is_float, exact, false, threads);
        shorter += joined.steps < open.steps;
        elements += joined.has_elements;
        EXPECT(joined.steps <= open.steps);
        REQUIRE(joined.bytes == open.bytes);
        if (memcmp(joined.data, open.data, open.bytes) != 0) {
            (void)fprintf(stderr, "graph %llu\n", (unsigned long long)seed);
        }
        EXPECT(memcmp(joined.data, open.data, open.bytes) == 0);
        ifd_release_tensor(ifd_alloc_system(), open.data, open.bytes);
        ifd_release_tensor(ifd_alloc_system(), joined.data, joined.bytes);
    }
    EXPECT(shorter > GRAPHS / 2);
    EXPECT(elements > GRAPHS / 10);
}

static void runs_of_floats_are_equal(void)
{
    compare(true, false);
}

static void runs_of_eight_bits_are_equal(void)
{
    compare(false, false);
}

static void exact_runs_of_eight_bits_are_equal(void)
{
    compare(false, true);
}

/* Separately: convolution, tanh, product with a number per channel, sum, silu. Fused: one step. */
static void what_follows_a_convolution_is_one_step(void)
{
    static const struct ifd_backend *const backends[] = {&ifd_backend_cpuacc};
    struct ifd_err err = {0};
    struct ifd_engine *engine = NULL;
    struct ifd_model *model = NULL;
    const struct ifd_engine_options options = {
        .alloc = ifd_alloc_system(), .backends = backends, .backend_count = 1};
    REQUIRE_OK(ifd_engine_create(&options, &engine, &err), &err);
    REQUIRE_OK(
        ifd_model_create(engine, &(struct ifd_model_options){.no_optimize = true}, &model, &err),
        &err);
    struct generator g = {.graph = &model->graph, .random = {.state = 1}, .is_float = true};
    struct ifd_node *made = NULL;
    const uint32_t in = test_graph_f32(g.graph, "in", SHAPE(1, HEIGHT, WIDTH, 8));
    const uint32_t conv_in[] = {in, constant(&g, SHAPE(8, 1, 1, 8), true)};
    const uint32_t conv = infer(&g, node(&g, IFD_OP_CONV2D, conv_in, 2, &made));
    const uint32_t tanh = test_graph_op1(g.graph, IFD_OP_TANH, conv, "tanh");
    const uint32_t mul =
        test_graph_op2(g.graph, IFD_OP_MUL, constant(&g, SHAPE(8), false), tanh, "mul");
    const uint32_t add = test_graph_op2(g.graph, IFD_OP_ADD, mul, in, "add");
    push(&g, add);
    add_silu(&g);
    test_graph_io(g.graph, in, last(&g));
    REQUIRE_OK(test_model_build(model, &err), &err);
    EXPECT_INT(ifd_model_step_count(model), 1);
    struct ifd_plan_step step;
    ifd_model_step(model, 0, &step);
    EXPECT_TEXT(step.step.name, "conv2d 1x1/1+tanh+mul+add+silu");
    ifd_model_destroy(model);
    ifd_engine_destroy(engine);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(runs_of_floats_are_equal),
        T(runs_of_eight_bits_are_equal),
        T(exact_runs_of_eight_bits_are_equal),
        T(what_follows_a_convolution_is_one_step),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Large fully connected layers whose weights stay in the file give the same results as with packed
 * weights, bit for bit, at every batch size. */
#include "backends/cpuacc/cpuacc.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <string.h>

enum { INPUTS = 300, OUTPUTS = 264, BATCH = 16 };

/* Second-level caches that are too small for the weights, and large enough. */
#define SMALL_CACHE ((size_t)32 << 10)
#define LARGE_CACHE ((size_t)1 << 30)

static void fill(float *data, size_t count, uint64_t seed)
{
    struct test_random random = {.state = seed};
    for (size_t i = 0; i < count; i++) {
        data[i] = test_random_f32(&random, -1, 1);
    }
}

static uint32_t dense(struct ifd_graph *g, uint32_t in, int64_t from, int32_t activation)
{
    static float data[OUTPUTS * INPUTS];
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    uint32_t out = 0;
    fill(data, OUTPUTS * INPUTS, (uint64_t)from);
    const uint32_t input[] = {in, test_graph_constant(g, "w", SHAPE(OUTPUTS, from), data),
                              test_graph_constant(g, "bias", SHAPE(OUTPUTS), data)};
    REQUIRE_OK(ifd_graph_add_value(g, "dense", &(struct ifd_desc){.dtype = IFD_F32}, &out, &err),
               &err);
    REQUIRE_OK(ifd_graph_add_node(g, IFD_OP_FULLY_CONNECTED, input, 3, &out, 1, &node, &err), &err);
    struct ifd_fully_connected_attrs *attrs =
        (struct ifd_fully_connected_attrs *)(uintptr_t)node->attrs;
    attrs->activation = activation;
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return out;
}

/* Two layers: one with an activation, one with a sum and a function behind it. */
static struct test_run open_run(size_t l2, size_t l3, uint32_t threads)
{
    struct test_run run =
        test_run_open(&(struct test_run_options){.backend = &ifd_backend_cpuacc,
                                                 .model = {.max_threads = threads},
                                                 .l2_bytes = l2,
                                                 .l3_bytes = l3});
    struct ifd_graph *g = &run.model->graph;
    const uint32_t in = test_graph_f32(g, "in", SHAPE(1, INPUTS));
    const uint32_t hidden = dense(g, in, INPUTS, IFD_ACT_RELU6);
    const uint32_t other = dense(g, hidden, OUTPUTS, IFD_ACT_NONE);
    const uint32_t sum = test_graph_op2(g, IFD_OP_ADD, other, hidden, "sum");
    test_graph_io(g, in, test_graph_op1(g, IFD_OP_TANH, sum, "out"));
    test_run_plan(&run, BATCH);
    fill(run.in.data, BATCH * INPUTS, 7);
    return run;
}

static void weights_in_place_give_the_same_bits_as_packed_ones(void)
{
    struct ifd_err err = {0};
    struct test_run packed = open_run(LARGE_CACHE, 0, 1);
    EXPECT_INT(test_run_count(&packed, "dense"), 0);
    EXPECT(ifd_model_info(packed.model)->packed_bytes > 0);
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct test_run run = open_run(SMALL_CACHE, 0, threads);
        EXPECT_INT(test_run_count(&run, "dense"), 2);
        EXPECT_INT(ifd_model_info(run.model)->packed_bytes, 0);
        for (uint32_t batch = 1; batch <= BATCH; batch++) {
            REQUIRE_OK(test_run_try(&packed, batch, &err), &err);
            REQUIRE_OK(test_run_try(&run, batch, &err), &err);
            EXPECT_INT(run.out[0].bytes, batch * OUTPUTS * sizeof(float));
            REQUIRE(run.out[0].bytes == packed.out[0].bytes);
            EXPECT(memcmp(run.out[0].data, packed.out[0].data, run.out[0].bytes) == 0);
        }
        test_run_close(&run);
    }
    test_run_close(&packed);
}

/* Weights that fit into a quarter of the third-level cache stay there: packed
 * ones are read faster. */
static void what_the_shared_cache_keeps_is_packed(void)
{
    const size_t bytes = (size_t)INPUTS * OUTPUTS * sizeof(float);
    struct test_run kept = open_run(SMALL_CACHE, 4 * bytes, 1);
    EXPECT_INT(test_run_count(&kept, "dense"), 0);
    test_run_close(&kept);
    struct test_run lost = open_run(SMALL_CACHE, 4 * (bytes - sizeof(float)), 1);
    EXPECT_INT(test_run_count(&lost, "dense"), 1);
    test_run_close(&lost);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(weights_in_place_give_the_same_bits_as_packed_ones),
        T(what_the_shared_cache_keeps_is_packed),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

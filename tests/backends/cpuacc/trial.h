/* A graph of few nodes, made of random numbers, on CpuAcc and beside the reference kernels. */
#ifndef INFERD_TESTS_BACKENDS_CPUACC_TRIAL_H
#define INFERD_TESTS_BACKENDS_CPUACC_TRIAL_H

#include "backends/cpuacc/cpuacc.h"
#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 60, ELEMENTS = 1 << 15 };

static const float scale[] = {0.05f}, scale_w[] = {0.01f, 0.02f, 0.005f, 0.03f, 0.01f, 0.02f};
static const int32_t zero[] = {-12}, zero_w[] = {0, 0, 0, 0, 0, 0};
static const struct ifd_quant none = {0}, quant = {scale, zero, 1, 0};

struct trial {
    struct ifd_graph *graph;
    struct test_random random;
    uint32_t input; /* of the graph */
};

typedef void (*build_fn)(struct trial *t); /* input, constants and nodes */

static inline int64_t pick(struct trial *t, int64_t low, int64_t high)
{
    return test_random_int(&t->random, low, high);
}

static inline uint32_t add_value(struct trial *t, enum ifd_dtype dtype, struct ifd_shape shape,
                                 struct ifd_quant how)
{
    struct ifd_err err = {0};
    uint32_t value = 0;
    const struct ifd_desc desc = {.dtype = dtype, .shape = shape, .quant = how};
    REQUIRE_OK(ifd_graph_add_value(t->graph, "v", &desc, &value, &err), &err);
    return value;
}

static inline void fill(struct trial *t, enum ifd_dtype dtype, void *data, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (dtype == IFD_F32) {
            ((float *)data)[i] = test_random_f32(&t->random, -3, 3);
        } else if (dtype == IFD_S32) {
            ((int32_t *)data)[i] = (int32_t)pick(t, -2000, 2000);
        } else if (dtype == IFD_S16) {
            ((int16_t *)data)[i] = (int16_t)pick(t, INT16_MIN, INT16_MAX);
        } else {
            ((int8_t *)data)[i] = (int8_t)pick(t, -127, 127);
        }
    }
}

static inline uint32_t constant(struct trial *t, uint32_t value, const void *data)
{
    struct ifd_err err = {0};
    static int32_t made[ELEMENTS];
    const struct ifd_desc *desc = &t->graph->value[value].desc;
    size_t count = 0;
    REQUIRE(ifd_shape_elements(&desc->shape, &count) && count <= ELEMENTS);
    if (!data) {
        fill(t, desc->dtype, made, count);
        data = made;
    }
    const size_t bytes = count * ifd_dtype_bytes(desc->dtype);
    REQUIRE_OK(ifd_graph_set_constant(t->graph, value, (struct ifd_bytes){data, bytes}, 0, &err),
               &err);
    return value;
}

/* Adds the node; its attributes are to be set before it is inferred. */
static inline struct ifd_node *add_node(struct trial *t, enum ifd_op op, const uint32_t *input,
                                        uint32_t count, uint32_t out)
{
    struct ifd_err err = {0};
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(t->graph, op, input, count, &out, 1, &node, &err), &err);
    REQUIRE_OK(ifd_graph_set_io(t->graph, &t->input, 1, &out, 1, &err), &err);
    return node;
}

static inline void *attrs_of(const struct ifd_node *node)
{
    return (void *)(uintptr_t)node->attrs;
}

static inline enum ifd_dtype float_or_s8(struct trial *t, struct ifd_quant *ret)
{
    const bool is_float = pick(t, 0, 1) != 0;
    *ret = is_float ? none : quant;
    return is_float ? IFD_F32 : IFD_S8;
}

/* ---- comparing ---- */

static inline void expect_near(uint64_t seed, const struct ifd_tensor *got, const uint8_t *want)
{
    if (got->dtype != IFD_F32) {
        if (memcmp(got->data, want, got->bytes) != 0) {
            (void)fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        }
        EXPECT(memcmp(got->data, want, got->bytes) == 0);
        return;
    }
    for (size_t i = 0; i < got->bytes / sizeof(float); i++) {
        const float x = ((const float *)got->data)[i], y = ((const float *)(const void *)want)[i];
        const bool same = isnan(y) ? isnan(x) : isinf(y) ? x == y : fabsf(x - y) <= 1e-4f;
        if (!same) {
            (void)fprintf(stderr, "seed %llu, element %zu: %g, expected %g\n",
                          (unsigned long long)seed, i, (double)x, (double)y);
        }
        EXPECT(same);
    }
}

/* Expects the reference's results, or the code and the reason of a run that fails. */
static inline void run_one(build_fn build, uint64_t seed, uint32_t threads, enum ifd_code want_code,
                           const char *want_reason)
{
    static uint64_t want[ELEMENTS]; /* aligned */
    struct ifd_err err = {0};
    struct test_run run = test_run_open(
        &(struct test_run_options){.backend = &ifd_backend_cpuacc,
                                   .engine = {.exact = true},
                                   .model = {.max_threads = threads, .no_optimize = true}});
    struct trial t = {.graph = &run.model->graph, .random = {.state = seed}};
    build(&t);
    for (uint32_t i = 0; i < t.graph->node_count; i++) {
        REQUIRE_OK(ifd_graph_infer_node(t.graph, i, &err), &err);
    }
    test_run_input(&run, 0);
    fill(&t, run.in.dtype, run.in.data, run.in.bytes / ifd_dtype_bytes(run.in.dtype));
    if (want_code == IFD_OK) {
        test_graph_interpret(t.graph, (const void *[]){run.in.data}, (void *[]){want});
    }
    test_run_plan(&run, 0);
    if (seed % 2 == 0) {
        test_run_alone(&run);
    }
    EXPECT_CODE(test_run_try(&run, run.batch, &err), want_code, &err);
    if (want_code == IFD_OK) {
        REQUIRE(run.out[0].bytes <= sizeof(want));
        expect_near(seed, &run.out[0], (const uint8_t *)want);
    } else {
        EXPECT(strstr(err.text, want_reason) != NULL);
    }
    test_run_close(&run);
}

static inline void run_all(build_fn build)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        run_one(build, seed, (uint32_t)(seed % 3) + 1, IFD_OK, NULL);
    }
}

#define NODE(name, build)                                                                          \
    static void name##_equals_its_reference(void)                                                  \
    {                                                                                              \
        run_all(build);                                                                            \
    }

#endif

/** Graphs before and after the passes: short builders, and a comparison of what both compute. */
#ifndef INFERD_TESTS_ENGINE_OPT_FIXTURE_H
#define INFERD_TESTS_ENGINE_OPT_FIXTURE_H

#include "engine/ir/attrs.h"
#include "engine/ir/verify.h"
#include "engine/opt/opt.h"
#include "tests/support/graph.h"

#include <string.h>

struct fixture {
    struct ifd_arena arena;
    struct ifd_graph graph, optimized;
};

static inline void setup(struct fixture *f)
{
    ifd_arena_init(&f->arena, ifd_alloc_system(), 0);
    ifd_graph_init(&f->graph, &f->arena);
}

/* A node with an output as described; attributes are to be set before it is inferred. */
static inline uint32_t add_as(struct fixture *f, enum ifd_op op, const uint32_t *input,
                              uint32_t count, const struct ifd_desc *desc,
                              struct ifd_node **ret_node)
{
    struct ifd_err err = {0};
    uint32_t out = 0;
    REQUIRE_OK(ifd_graph_add_value(&f->graph, "v", desc, &out, &err), &err);
    REQUIRE_OK(ifd_graph_add_node(&f->graph, op, input, count, &out, 1, ret_node, &err), &err);
    return out;
}

static inline uint32_t add(struct fixture *f, enum ifd_op op, const uint32_t *input, uint32_t count,
                           struct ifd_node **ret_node)
{
    return add_as(f, op, input, count, &(struct ifd_desc){.dtype = IFD_F32}, ret_node);
}

static inline void infer(struct fixture *f)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(&f->graph, f->graph.node_count - 1, &err), &err);
}

static inline void set_ints(struct ifd_node *node, const char *name, const int64_t *value,
                            size_t count)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(node->op), (void *)(uintptr_t)node->attrs, name, value,
                                  count, &err),
               &err);
}

static inline uint32_t transpose(struct fixture *f, uint32_t in, const int64_t perm[4])
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, IFD_OP_TRANSPOSE, &in, 1, &node);
    set_ints(node, "perm", perm, 4);
    infer(f);
    return out;
}

static inline uint32_t op1(struct fixture *f, enum ifd_op op, uint32_t in)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, &in, 1, &node);
    infer(f);
    return out;
}

static inline uint32_t op2(struct fixture *f, enum ifd_op op, uint32_t a, uint32_t b)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, op, (const uint32_t[]){a, b}, 2, &node);
    infer(f);
    return out;
}

static inline uint32_t pad(struct fixture *f, uint32_t in, const int64_t before[4],
                           const int64_t after[4])
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, IFD_OP_PAD, &in, 1, &node);
    set_ints(node, "before", before, 4);
    set_ints(node, "after", after, 4);
    infer(f);
    return out;
}

static inline uint32_t random_constant(struct fixture *f, struct ifd_shape shape,
                                       struct test_random *random)
{
    float data[512];
    size_t count = 1;
    for (uint32_t d = 0; d < shape.rank; d++) {
        count *= (size_t)shape.dim[d];
    }
    REQUIRE(count <= 512);
    for (size_t i = 0; i < count; i++) {
        data[i] = test_random_f32(random, -1, 1);
    }
    return test_graph_constant(&f->graph, "c", shape, data);
}

static inline uint32_t conv(struct fixture *f, uint32_t in, struct ifd_shape filter,
                            struct test_random *random)
{
    struct ifd_node *node = NULL;
    const uint32_t weights = random_constant(f, filter, random);
    const uint32_t out = add(f, IFD_OP_CONV2D, (const uint32_t[]){in, weights}, 2, &node);
    struct ifd_conv2d_attrs *attrs = (struct ifd_conv2d_attrs *)(uintptr_t)node->attrs;
    attrs->window.padding = IFD_PAD_VALID;
    infer(f);
    return out;
}

/* In the optimized graph. */
static inline uint32_t count_ops(const struct fixture *f, enum ifd_op op)
{
    const struct ifd_graph *graph = &f->optimized;
    uint32_t count = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        count += graph->node[n].op == op;
    }
    return count;
}

/* Optimizes a copy and compares the results of both on random input. Only at level FUSE may numbers
 * differ by rounding. */
static inline void optimize_at(struct fixture *f, uint32_t output, enum ifd_pass_level level)
{
    struct ifd_graph *copy = &f->optimized;
    struct ifd_err err = {0};
    float input[4096], before[4096] = {0}, after[4096] = {0};
    struct test_random random = {.state = 7};
    const uint32_t x = 0;
    REQUIRE_OK(ifd_graph_set_io(&f->graph, &x, 1, &output, 1, &err), &err);
    REQUIRE_OK(ifd_graph_verify(&f->graph, IFD_INVALID, &err), &err);
    REQUIRE_OK(ifd_graph_clone(&f->graph, &f->arena, copy, &err), &err);
    REQUIRE_OK(ifd_optimize(copy, level, ifd_alloc_system(), NULL, &err), &err);
    REQUIRE_OK(ifd_graph_verify(copy, IFD_INTERNAL, &err), &err);
    EXPECT(copy->node_count <= f->graph.node_count);
    for (size_t i = 0; i < 4096; i++) {
        input[i] = test_random_f32(&random, -3, 9);
    }
    test_graph_interpret(&f->graph, (const void *const[]){input}, (void *const[]){before});
    test_graph_interpret(copy, (const void *const[]){input}, (void *const[]){after});
    if (level < IFD_PASS_FUSE) {
        EXPECT_BYTES(after, before, sizeof(before));
    }
    for (size_t i = 0; i < 4096; i++) {
        EXPECT_CLOSE(after[i], before[i], 1e-4);
    }
}

static inline void optimize(struct fixture *f, uint32_t output)
{
    optimize_at(f, output, IFD_PASS_EXACT);
}

static inline uint32_t number(struct fixture *f, float value)
{
    return test_graph_constant(&f->graph, "number", SHAPE(1), &value);
}

static inline uint32_t max_pool(struct fixture *f, uint32_t in)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add(f, IFD_OP_MAX_POOL2D, &in, 1, &node);
    struct ifd_pool2d_attrs *attrs = (struct ifd_pool2d_attrs *)(uintptr_t)node->attrs;
    attrs->filter_h = attrs->filter_w = 3;
    attrs->window.padding = IFD_PAD_VALID;
    infer(f);
    return out;
}

static inline uint32_t convert(struct fixture *f, enum ifd_op op, uint32_t in,
                               const struct ifd_desc *desc)
{
    struct ifd_node *node = NULL;
    const uint32_t out = add_as(f, op, &in, 1, desc, &node);
    infer(f);
    return out;
}

#endif

/** Networks that GpuAcc's tests build by hand, beside the interpreter. */
#ifndef INFERD_TESTS_BACKENDS_GPUACC_BUILD_H
#define INFERD_TESTS_BACKENDS_GPUACC_BUILD_H

#include "engine/exec/device.h"
#include "engine/exec/instance.h"
#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "inferd/op_attrs.h"
#include "tests/support/model.h"

#include <math.h>
#include <string.h>

#define BUILD_WEIGHTS 4096

static inline uint32_t weights(struct ifd_graph *g, struct ifd_shape shape)
{
    static float content[BUILD_WEIGHTS];
    for (size_t i = 0; i < BUILD_WEIGHTS; i++) {
        content[i] = (float)(i * 2654435761u % 257) / 512 - 0.25f;
    }
    return test_graph_constant(g, "weights", shape, content);
}

/* A node whose attributes the caller sets before finish(). */
static inline struct ifd_node *add(struct ifd_graph *g, enum ifd_op op, const uint32_t *in,
                                   uint32_t count)
{
    const uint32_t out = test_graph_f32(g, "made", SHAPE(0));
    struct ifd_node *node = NULL;
    REQUIRE_OK(ifd_graph_add_node(g, op, in, count, &out, 1, &node, NULL), NULL);
    return node;
}

static inline uint32_t finish(struct ifd_graph *g, const struct ifd_node *node)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(g, g->node_count - 1, &err), &err);
    return node->output[0];
}

static inline void *attrs_of(const struct ifd_node *node)
{
    return (void *)(uintptr_t)node->attrs;
}

static const struct ifd_window same = {
    .padding = IFD_PAD_SAME, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1};

static inline uint32_t pool(struct ifd_graph *g, enum ifd_op op, uint32_t x)
{
    struct ifd_node *node = add(g, op, &x, 1);
    *(struct ifd_pool2d_attrs *)attrs_of(node) =
        (struct ifd_pool2d_attrs){.window = same, .filter_h = 2, .filter_w = 2};
    return finish(g, node);
}

static inline uint32_t layer(struct ifd_graph *g, enum ifd_op op, uint32_t x,
                             struct ifd_shape shape)
{
    const uint32_t in[] = {x, weights(g, shape)};
    struct ifd_node *node = add(g, op, in, 2);
    *(struct ifd_conv2d_attrs *)attrs_of(node) = (struct ifd_conv2d_attrs){.window = same};
    return finish(g, node);
}

/* ---- beside the interpreter ---- */

static inline void build_input(struct test_run *t)
{
    test_run_input(t, 0);
    for (size_t i = 0; i < t->in.bytes / sizeof(float); i++) {
        ((float *)t->in.data)[i] = (float)((i + 1) * 2654435761u % 1021) / 512 - 1;
    }
}

static inline void compare(const float *got, const float *want, size_t count, double limit)
{
    double range = 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        range = fmax(range, fabs((double)want[i]));
        worst = fmax(worst, isnan(got[i]) ? INFINITY : fabs((double)got[i] - (double)want[i]));
    }
    EXPECT(worst <= limit * range);
}

/* The bytes that tensors lie in, and the one device they lie on. */
static inline struct ifd_instance_device *build_memory(const struct test_run *t, uint8_t **ret)
{
    REQUIRE(t->instance->device_count == 1);
    struct ifd_instance_device *device = &t->instance->device[0];
    *ret = ifd_acquire(ifd_alloc_system(), device->bytes);
    REQUIRE(*ret);
    return device;
}

/* Fills them with what is no number: who reads beside a tensor, or what nobody wrote, shows it. */
static inline void build_poison(const struct test_run *t)
{
    uint8_t *image = NULL;
    struct ifd_instance_device *device = build_memory(t, &image);
    struct ifd_err err = {0};
    memset(image, 0xff, device->bytes);
    REQUIRE_OK(device->ops->write(device->context, 0, image, device->bytes, &err), &err);
    ifd_release(ifd_alloc_system(), image, device->bytes);
}

/* After a run: nobody wrote behind an input or a result of the partition. */
static inline void build_expect_guards(const struct test_run *t)
{
    const struct ifd_plan *plan = &t->instance->table[0].executable->plan;
    uint8_t *image = NULL;
    struct ifd_instance_device *device = build_memory(t, &image);
    struct ifd_err err = {0};
    uint64_t fence = 0;
    uint32_t guards = 0;
    REQUIRE_OK(device->ops->read(device->context, 0, image, device->bytes, &fence, &err), &err);
    REQUIRE_OK(device->ops->wait(device->context, fence, &err), &err);
    for (uint32_t i = 0; i < plan->value_count; i++) {
        const size_t end = plan->value[i].offset + plan->value[i].bytes;
        for (size_t k = 0; plan->value[i].memory > 0 && k < IFD_TENSOR_PAD; k++) {
            EXPECT_INT(image[end + k], 0xff);
            guards++;
        }
    }
    EXPECT(guards > 0);
    ifd_release(ifd_alloc_system(), image, device->bytes);
}

/* Plans and runs a network with its input; results may be off by limit, as a share of the range. */
static inline void build_expect_close(struct test_run *t, double limit)
{
    const struct ifd_graph *g = &t->model->graph;
    struct ifd_tensor want[TEST_RUN_OUTPUTS];
    void *content[TEST_RUN_OUTPUTS];
    const void *in = t->in.data;
    const uint32_t count = g->output_count;
    REQUIRE(count <= TEST_RUN_OUTPUTS);
    for (uint32_t i = 0; i < count; i++) {
        want[i] = test_tensor_f32(g->value[g->output[i]].desc.shape);
        content[i] = want[i].data;
    }
    test_graph_interpret(g, &in, content);
    test_run_plan(t, 0);
    build_poison(t);
    test_run_once(t);
    build_expect_guards(t);
    for (uint32_t i = 0; i < count; i++) {
        REQUIRE(t->out[i].bytes == want[i].bytes);
        compare(t->out[i].data, want[i].data, want[i].bytes / sizeof(float), limit);
        ifd_release_tensor(ifd_alloc_system(), want[i].data, want[i].bytes);
    }
}

#endif

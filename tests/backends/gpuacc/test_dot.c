/* Layers of 8 bits by dot products, beside the reference kernel: by the device's, and by plain
 * arithmetic where it has none, as on PoCL. */
#include "backends/cpuref/cpuref.h"
#include "backends/gpuacc/device.h"
#include "backends/gpuacc/gpuacc.h"
#include "engine/base/team.h"
#include "inferd/op_attrs.h"
#include "tests/backends/gpuacc/programs.h"
#include "tests/conformance/one_node.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define TENSOR 8192

struct shape {
    int batch, h, w, in_c, out_c, k, groups;
    enum ifd_dtype dtype;
    int x_zero, w_zero;
    enum kind { CONV, DENSE, DEPTHWISE, TRANSPOSED } kind;
};

/* Rows that are full and that are not, edges where the zero point is seen, groups. */
static const struct shape shapes[] = {
    {1, 5, 6, 8, 12, 3, 1, IFD_S8, 0, 0, CONV},    {2, 5, 5, 4, 7, 3, 1, IFD_S8, -128, 0, CONV},
    {1, 6, 7, 12, 5, 1, 1, IFD_S8, 5, 0, CONV},    {1, 4, 4, 8, 6, 3, 1, IFD_U8, 128, 131, CONV},
    {1, 3, 5, 16, 9, 1, 1, IFD_U8, 255, 0, CONV},  {1, 6, 5, 16, 8, 3, 2, IFD_S8, -3, 0, CONV},
    {3, 1, 1, 20, 10, 1, 1, IFD_S8, -7, 0, DENSE}, {2, 1, 1, 36, 3, 1, 1, IFD_U8, 3, 120, DENSE},
    {1, 5, 5, 6, 8, 3, 1, IFD_S8, 9, 0, CONV}, /* no multiple of 4: without dot products */
};

struct layer {
    struct ifd_conv2d_attrs conv;
    struct ifd_fully_connected_attrs dense;
    struct ifd_transpose_conv2d_attrs transposed;
    struct ifd_desc size; /* of a transposed convolution's result */
    int32_t sizes[4];
    struct ifd_desc in, weights, bias, out;
    float scale[3];
    int32_t zero[3];
    uint8_t x[TENSOR], w[TENSOR];
    int32_t b[TENSOR];
};

static struct ifd_desc desc(struct layer *l, int which, enum ifd_dtype dtype,
                            struct ifd_shape shape)
{
    return (struct ifd_desc){
        .dtype = dtype,
        .shape = shape,
        .quant = {.count = 1, .scale = &l->scale[which], .zero_point = &l->zero[which]}};
}

static void make_layer(const struct shape *s, struct layer *l)
{
    const struct ifd_window same = {
        .padding = IFD_PAD_SAME, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1};
    const int in_c = s->in_c / s->groups;
    *l = (struct layer){.conv = {.window = same},
                        .scale = {0.5f, 0.25f, 0.125f * 37},
                        .zero = {s->x_zero, s->w_zero, s->x_zero}};
    l->in = desc(l, 0, s->dtype, (struct ifd_shape){4, {s->batch, s->h, s->w, s->in_c}});
    l->weights = desc(l, 1, s->dtype, (struct ifd_shape){4, {s->out_c, s->k, s->k, in_c}});
    l->out = desc(l, 2, s->dtype, (struct ifd_shape){4, {s->batch, s->h, s->w, s->out_c}});
    if (s->kind == DEPTHWISE) {
        l->weights.shape = (struct ifd_shape){4, {1, s->k, s->k, s->out_c}};
    }
    if (s->kind == DENSE) {
        l->in.shape = (struct ifd_shape){2, {s->batch, s->in_c}};
        l->weights.shape = (struct ifd_shape){2, {s->out_c, s->in_c}};
        l->out.shape = (struct ifd_shape){2, {s->batch, s->out_c}};
    }
    if (s->kind == TRANSPOSED) {
        l->transposed.window = same;
        l->transposed.window.stride_h = l->transposed.window.stride_w = 2;
        l->out.shape = (struct ifd_shape){4, {s->batch, 2 * s->h, 2 * s->w, s->out_c}};
        l->size = (struct ifd_desc){.dtype = IFD_S32, .shape = {1, {4}}};
        for (int i = 0; i < 4; i++) {
            l->sizes[i] = (int32_t)l->out.shape.dim[i];
        }
    }
    l->bias = (struct ifd_desc){.dtype = IFD_S32, .shape = {1, {s->out_c}}};
    for (uint32_t i = 0; i < TENSOR; i++) {
        l->x[i] = (uint8_t)(i * 2654435761u >> 13);
        l->w[i] = (uint8_t)((i + 7) * 2246822519u >> 11);
        l->b[i] = (int32_t)(i * 977 % 2001) - 1000;
    }
}

/* Into ret_out; returns how many bytes there are. */
static size_t compute(const struct ifd_backend *backend, struct ifd_device *device,
                      const struct shape *s, const struct layer *l, uint8_t *ret_out)
{
    static struct one_node node; /* large */
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(1, ifd_alloc_system(), &team, &err), &err);
    static const enum ifd_op ops[] = {[CONV] = IFD_OP_CONV2D,
                                      [DENSE] = IFD_OP_FULLY_CONNECTED,
                                      [DEPTHWISE] = IFD_OP_DEPTHWISE_CONV2D,
                                      [TRANSPOSED] = IFD_OP_TRANSPOSE_CONV2D};
    const void *attrs[] = {[CONV] = &l->conv,
                           [DENSE] = &l->dense,
                           [DEPTHWISE] = &l->conv,
                           [TRANSPOSED] = &l->transposed};
    one_node_init(&node, "layer", ops[s->kind], attrs[s->kind]);
    if (s->kind == TRANSPOSED) {
        one_node_add_input(&node, &l->size, l->sizes, true);
        one_node_add_input(&node, &l->weights, l->w, true);
        one_node_add_input(&node, &l->in, l->x, false);
    } else {
        one_node_add_input(&node, &l->in, l->x, false);
        one_node_add_input(&node, &l->weights, l->w, true);
        one_node_add_input(&node, &l->bias, l->b, true);
    }
    one_node_add_output(&node, &l->out);
    REQUIRE_OK(one_node_run(&node, backend, device, team, true, &err), &err);
    const size_t bytes = node.output_bytes[0];
    REQUIRE(bytes <= TENSOR);
    memcpy(ret_out, node.output[0], bytes);
    one_node_finish(&node);
    ifd_team_destroy(team);
    return bytes;
}

struct comparison {
    struct ifd_device *device, *reference;
};

static struct comparison open_both(bool by_dot)
{
    const struct comparison c = {.reference = one_node_open(&ifd_backend_cpuref),
                                 .device = one_node_open(&ifd_backend_gpuacc)};
    const char *wanted = getenv("INFERD_TEST_DOT"); /* by whoever chose the device */
    EXPECT(!wanted || (strcmp(wanted, "khr") == 0 && c.device->info.dot == IFD_GPU_DOT_KHR));
    if (!by_dot) {
        c.device->info.dot = IFD_GPU_DOT_NONE;
    } else if (!c.device->info.dot) {
        c.device->info.dot = IFD_GPU_DOT_PLAIN;
    }
    return c;
}

static void close_both(const struct comparison *c)
{
    print_programs(c->device);
    ifd_backend_gpuacc.close(c->device);
    ifd_backend_cpuref.close(c->reference);
}

static void expect_same(const struct comparison *c, const struct shape *s)
{
    static struct layer layer; /* large */
    static uint8_t want[TENSOR], got[TENSOR];
    make_layer(s, &layer);
    const size_t bytes = compute(&ifd_backend_cpuref, c->reference, s, &layer, want);
    EXPECT_INT(compute(&ifd_backend_gpuacc, c->device, s, &layer, got), bytes);
    EXPECT(memcmp(got, want, bytes) == 0);
}

static void compare(bool by_dot)
{
    const struct comparison c = open_both(by_dot);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        expect_same(&c, &shapes[i]);
    }
    close_both(&c);
}

static void dot_products_give_the_bits_of_the_reference(void)
{
    compare(true);
}

static void products_one_by_one_give_the_bits_of_the_reference(void)
{
    compare(false);
}

/* ---- every set of definitions (variants.py) ---- */

/* Layers of 8 pixels and 2 vectors of results; the units of a device decide on the pixels of an
 * item. */
static void expect_same_layers(const struct comparison *c, enum ifd_dtype dtype, int w_zero)
{
    const struct shape layers[] = {
        {1, 2, 4, 4, 5, 3, 1, dtype, 9, w_zero, CONV},
        {1, 2, 4, 4, 5, 1, 1, dtype, 9, w_zero, CONV},
        {8, 1, 1, 4, 5, 1, 1, dtype, 9, w_zero, DENSE},
        {1, 2, 4, 4, 5, 3, 1, dtype, 9, w_zero, TRANSPOSED},
    };
    c->device->info.is_gpu = false;
    for (uint32_t pixels = 1; pixels <= 8; pixels *= 2) {
        c->device->info.compute_units = 8 / pixels * 2;
        for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
            expect_same(c, &layers[i]);
        }
    }
}

/* An item of a GPU computes 2 pixels in an image that gives it 512 items. */
static void expect_same_depthwise(const struct comparison *c, enum ifd_dtype dtype)
{
    static const int channels[][2] = {{8, 8}, {9, 9}, {3, 6}};
    c->device->info.compute_units = 1;
    for (size_t i = 0; i < sizeof(channels) / sizeof(channels[0]); i++) {
        const int in = channels[i][0], out = channels[i][1], lines = 256 / ((out + 3) / 4) + 1;
        const struct shape small = {1, 2, 4, in, out, 2, 1, dtype, 9, 0, DEPTHWISE};
        const struct shape large = {1, lines, 4, in, out, 2, 1, dtype, 9, 0, DEPTHWISE};
        c->device->info.is_gpu = false;
        expect_same(c, &small);
        c->device->info.is_gpu = true;
        expect_same(c, &small);
        expect_same(c, &large);
    }
}

static void every_form_gives_the_bits_of_the_reference(void)
{
    for (int by_dot = 0; by_dot < 2; by_dot++) {
        const struct comparison c = open_both(by_dot);
        for (enum ifd_dtype dtype = IFD_S8; dtype <= IFD_U8; dtype++) {
            expect_same_layers(&c, dtype, 0);
            expect_same_layers(&c, dtype, 3);
            expect_same_depthwise(&c, dtype);
        }
        close_both(&c);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(dot_products_give_the_bits_of_the_reference),
        T(products_one_by_one_give_the_bits_of_the_reference),
        T(every_form_gives_the_bits_of_the_reference),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

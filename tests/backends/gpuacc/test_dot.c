/* Layers of 8 bits by dot products, beside the reference kernel: by the device's, and by plain
 * arithmetic where it has none, as on PoCL. */
#include "backends/cpuref/cpuref.h"
#include "backends/gpuacc/device.h"
#include "backends/gpuacc/gpuacc.h"
#include "engine/base/team.h"
#include "inferd/op_attrs.h"
#include "tests/conformance/one_node.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#define TENSOR 8192

struct shape {
    int batch, h, w, in_c, out_c, k, groups;
    enum ifd_dtype dtype;
    int x_zero, w_zero;
    bool is_dense;
};

/* Rows that are full and that are not, edges where the zero point is seen, groups. */
static const struct shape shapes[] = {
    {1, 5, 6, 8, 12, 3, 1, IFD_S8, 0, 0, false},   {2, 5, 5, 4, 7, 3, 1, IFD_S8, -128, 0, false},
    {1, 6, 7, 12, 5, 1, 1, IFD_S8, 5, 0, false},   {1, 4, 4, 8, 6, 3, 1, IFD_U8, 128, 131, false},
    {1, 3, 5, 16, 9, 1, 1, IFD_U8, 255, 0, false}, {1, 6, 5, 16, 8, 3, 2, IFD_S8, -3, 0, false},
    {3, 1, 1, 20, 10, 1, 1, IFD_S8, -7, 0, true},  {2, 1, 1, 36, 3, 1, 1, IFD_U8, 3, 120, true},
    {1, 5, 5, 6, 8, 3, 1, IFD_S8, 9, 0, false}, /* no multiple of 4: without dot products */
};

struct layer {
    struct ifd_conv2d_attrs conv;
    struct ifd_fully_connected_attrs dense;
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
    if (s->is_dense) {
        l->in.shape = (struct ifd_shape){2, {s->batch, s->in_c}};
        l->weights.shape = (struct ifd_shape){2, {s->out_c, s->in_c}};
        l->out.shape = (struct ifd_shape){2, {s->batch, s->out_c}};
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
    one_node_init(&node, "layer", s->is_dense ? IFD_OP_FULLY_CONNECTED : IFD_OP_CONV2D,
                  s->is_dense ? (const void *)&l->dense : (const void *)&l->conv);
    one_node_add_input(&node, &l->in, l->x, false);
    one_node_add_input(&node, &l->weights, l->w, true);
    one_node_add_input(&node, &l->bias, l->b, true);
    one_node_add_output(&node, &l->out);
    REQUIRE_OK(one_node_run(&node, backend, device, team, true, &err), &err);
    const size_t bytes = node.output_bytes[0];
    REQUIRE(bytes <= TENSOR);
    memcpy(ret_out, node.output[0], bytes);
    one_node_finish(&node);
    ifd_team_destroy(team);
    return bytes;
}

static void compare(bool by_dot)
{
    static struct layer layer; /* large */
    static uint8_t want[TENSOR], got[TENSOR];
    struct ifd_device *reference = one_node_open(&ifd_backend_cpuref);
    struct ifd_device *device = one_node_open(&ifd_backend_gpuacc);
    const char *wanted = getenv("INFERD_TEST_DOT"); /* by whoever chose the device */
    EXPECT(!wanted || (strcmp(wanted, "khr") == 0 && device->info.dot == IFD_GPU_DOT_KHR));
    if (!by_dot) {
        device->info.dot = IFD_GPU_DOT_NONE;
    } else if (!device->info.dot) {
        device->info.dot = IFD_GPU_DOT_PLAIN;
    }
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        make_layer(&shapes[i], &layer);
        const size_t bytes = compute(&ifd_backend_cpuref, reference, &shapes[i], &layer, want);
        EXPECT_INT(compute(&ifd_backend_gpuacc, device, &shapes[i], &layer, got), bytes);
        EXPECT(memcmp(got, want, bytes) == 0);
    }
    ifd_backend_gpuacc.close(device);
    ifd_backend_cpuref.close(reference);
}

static void dot_products_give_the_bits_of_the_reference(void)
{
    compare(true);
}

static void products_one_by_one_give_the_bits_of_the_reference(void)
{
    compare(false);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(dot_products_give_the_bits_of_the_reference),
        T(products_one_by_one_give_the_bits_of_the_reference),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

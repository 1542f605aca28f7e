/* Convolutions with every division of their work, beside the reference kernel. */
#include "backends/cpuref/cpuref.h"
#include "backends/gpuacc/gpuacc.h"
#include "backends/gpuacc/ops/blocking.h"
#include "backends/gpuacc/ops/layer.h"
#include "backends/gpuacc/partition.h"
#include "inferd/op_attrs.h"
#include "engine/base/team.h"
#include "tests/conformance/one_node.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OF_RANGE 1e-5 /* sums in another order */
#define TENSOR   20000

struct shape {
    int batch, h, w, in_c, out_c, kh, kw, stride, dilation, groups;
    int valid;      /* 1: the window stays inside of the image */
    int transposed; /* from a result of this size to its image */
};

/* Tiles that are full and that are not, rows that are vectors and that are not, edges, groups, more
 * slices than factors, patches that reach over the image. All with weights that fp16 rounds. */
static const struct shape shapes[] = {
    {1, 7, 7, 16, 36, 1, 1, 1, 1, 1, 0, 0},  {2, 9, 8, 32, 136, 1, 1, 1, 1, 1, 0, 0},
    {1, 12, 12, 6, 89, 1, 1, 1, 1, 1, 0, 0}, {1, 9, 10, 3, 20, 3, 3, 2, 1, 1, 0, 0},
    {3, 5, 6, 8, 12, 3, 3, 1, 1, 1, 0, 0},   {1, 11, 9, 8, 33, 3, 5, 2, 2, 1, 0, 0},
    {1, 6, 6, 16, 8, 3, 3, 1, 1, 2, 0, 0},   {1, 1, 1, 512, 12, 1, 1, 1, 1, 1, 0, 0},
    {1, 13, 17, 4, 36, 2, 2, 1, 1, 1, 0, 0}, {2, 7, 9, 10, 33, 3, 3, 1, 1, 1, 0, 0},
    {1, 8, 11, 8, 9, 3, 3, 1, 1, 1, 1, 0},   {3, 5, 3, 2, 260, 1, 1, 1, 1, 1, 0, 0},
    {2, 3, 5, 8, 22, 4, 4, 2, 1, 1, 0, 1},   {1, 5, 3, 16, 12, 3, 2, 3, 1, 1, 1, 1},
};

struct layer {
    struct ifd_conv2d_attrs attrs;
    struct ifd_transpose_conv2d_attrs transpose_attrs;
    int32_t size[4]; /* of a transposed convolution's result */
    struct ifd_desc in, weights, bias, out;
    const float *x, *w, *b;
    bool is_transposed;
};

/* Numbers between -1 and 1, which half precision holds. */
static const float *numbers(uint32_t seed)
{
    static _Alignas(64) float content[3][2 * TENSOR];
    for (size_t i = 0; i < sizeof(content[0]) / sizeof(float); i++) {
        content[seed][i] = (float)((i + seed) * 2654435761u % 257) / 128 - 1;
    }
    return content[seed];
}

static int out_size(const struct shape *s, int in, int window)
{
    if (s->transposed) {
        return in * s->stride + (s->valid && window > s->stride ? window - s->stride : 0);
    }
    const int seen = s->valid ? in - (window - 1) * s->dilation : in;
    return (seen + s->stride - 1) / s->stride;
}

static int64_t out_h(const struct shape *s)
{
    return out_size(s, s->h, s->kh);
}

static int64_t out_w(const struct shape *s)
{
    return out_size(s, s->w, s->kw);
}

static void make_layer(const struct shape *s, struct layer *ret)
{
    *ret = (struct layer){.attrs = {.window = {.padding = s->valid ? IFD_PAD_VALID : IFD_PAD_SAME,
                                               .stride_h = s->stride,
                                               .stride_w = s->stride,
                                               .dilation_h = s->dilation,
                                               .dilation_w = s->dilation},
                                    .activation = IFD_ACT_RELU6}};
    ret->transpose_attrs = (struct ifd_transpose_conv2d_attrs){.window = ret->attrs.window,
                                                               .activation = ret->attrs.activation};
    ret->is_transposed = s->transposed;
    ret->in = (struct ifd_desc){.dtype = IFD_F32, .shape = {4, {s->batch, s->h, s->w, s->in_c}}};
    ret->weights = (struct ifd_desc){.dtype = IFD_F32,
                                     .shape = {4, {s->out_c, s->kh, s->kw, s->in_c / s->groups}}};
    ret->bias = (struct ifd_desc){.dtype = IFD_F32, .shape = {1, {s->out_c}}};
    ret->out =
        (struct ifd_desc){.dtype = IFD_F32, .shape = {4, {s->batch, out_h(s), out_w(s), s->out_c}}};
    for (uint32_t d = 0; d < 4; d++) {
        ret->size[d] = (int32_t)ret->out.shape.dim[d];
    }
    ret->x = numbers(0);
    ret->w = numbers(1);
    ret->b = numbers(2);
}

static void make_node(const struct layer *layer, struct one_node *ret)
{
    static const struct ifd_desc sizes = {.dtype = IFD_S32, .shape = {1, {4}}};
    if (layer->is_transposed) {
        one_node_init(ret, "layer", IFD_OP_TRANSPOSE_CONV2D, &layer->transpose_attrs);
        one_node_add_input(ret, &sizes, layer->size, true);
        one_node_add_input(ret, &layer->weights, layer->w, true);
        one_node_add_input(ret, &layer->in, layer->x, false);
    } else {
        one_node_init(ret, "layer", IFD_OP_CONV2D, &layer->attrs);
        one_node_add_input(ret, &layer->in, layer->x, false);
        one_node_add_input(ret, &layer->weights, layer->w, true);
    }
    one_node_add_input(ret, &layer->bias, layer->b, true);
    one_node_add_output(ret, &layer->out);
}

/* Into ret_out, which has room for TENSOR numbers; returns how many there are. */
static size_t compute(const struct ifd_backend *backend, struct ifd_device *device,
                      const struct layer *layer, enum ifd_precision precision, float *ret_out)
{
    static struct one_node node; /* large */
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(1, ifd_alloc_system(), &team, &err), &err);
    make_node(layer, &node);
    node.view.precision = precision;
    REQUIRE_OK(one_node_run(&node, backend, device, team, false, &err), &err);
    const size_t count = node.output_bytes[0] / sizeof(float);
    REQUIRE(count <= TENSOR);
    memcpy(ret_out, node.output[0], node.output_bytes[0]);
    one_node_finish(&node);
    ifd_team_destroy(team);
    return count;
}

/* How weights are stored and sums are made. */
enum mode { F32, F16_WEIGHTS, F16_SUMS, MODES };

/* By Winograd's algorithm: 80 times the rounding error of sums of numbers up to 1, as CpuAcc may
 * differ (tests/backends/cpuacc/test_winograd.c). In half precision: the errors of as many sums as
 * large as results are. */
static double limit_of(const struct ifd_gpu_blocking *blocking, const struct shape *s,
                       enum mode mode)
{
    return blocking->patch > 0 ? 80.0 * (9 * s->in_c + 4) * 0x1p-24
           : mode == F16_SUMS  ? 6.0 * s->kh * s->kw * s->in_c / s->groups * 0x1p-11
                               : 0;
}

/* Returns whether they differ by more than rounding to f32. */
static bool expect_same(const float *got, const float *want, size_t count, const char *way,
                        double limit)
{
    double range = 1, worst = 0;
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)got[i] - (double)want[i]);
        worst = off > worst || isnan(off) ? off : worst;
        range = fmax(range, fabs((double)want[i]));
    }
    limit = fmax(limit, OF_RANGE * range);
    if (!(worst <= limit)) {
        (void)fprintf(stderr, "%s: differs by %g of %g\n", way, worst, range);
    }
    EXPECT(worst <= limit);
    return worst > OF_RANGE * range;
}

static struct ifd_gpu_conv_size size_of(const struct shape *s)
{
    return (struct ifd_gpu_conv_size){.pixels = (size_t)(s->batch * out_h(s) * out_w(s)),
                                      .out_c = (size_t)s->out_c,
                                      .groups = (size_t)s->groups,
                                      .group_in = (size_t)(s->in_c / s->groups),
                                      .taps = (size_t)(s->kh * s->kw),
                                      .takes_winograd = s->kh == 3 && s->kw == 3 &&
                                                        s->stride == 1 && s->dilation == 1 &&
                                                        s->groups == 1,
                                      .phases = s->transposed ? (size_t)(s->stride * s->stride) : 0,
                                      .images = (size_t)s->batch,
                                      .out_h = (size_t)out_h(s),
                                      .out_w = (size_t)out_w(s)};
}

struct comparison {
    struct ifd_device *device, *reference;
    uint32_t ran, rough; /* ways; those whose results show sums in half precision */
};

static void compare_way(struct comparison *c, const struct shape *shape,
                        const struct ifd_gpu_blocking *blocking, const struct layer *layer,
                        const float *want)
{
    static float got[TENSOR];
    struct ifd_gpu_conv_size size = size_of(shape);
    char way[IFD_GPU_BLOCKING_TEXT];
    ifd_gpu_blocking_text(blocking, way);
    EXPECT(ifd_gpu_blocking_named(way) == blocking);
    c->device->tuner.only = way;
    for (enum mode mode = F32; mode < (c->device->info.has_fp16 ? MODES : F16_SUMS); mode++) {
        size.has_f16_weights = mode != F32;
        c->device->sums_fp16 = mode == F16_SUMS;
        if (ifd_gpu_blocking_fits(blocking, &size, &c->device->info)) {
            const size_t count = compute(&ifd_backend_gpuacc, c->device, layer,
                                         mode == F32 ? IFD_PRECISION_F32 : IFD_PRECISION_FP16, got);
            const bool is_rough =
                expect_same(got, want, count, way, limit_of(blocking, shape, mode));
            c->rough += is_rough && mode == F16_SUMS ? 1 : 0;
            c->ran++;
        }
    }
}

/* Every step-th blocking. */
static void compare_blockings(uint32_t step)
{
    static float want[TENSOR];
    struct comparison c = {.device = one_node_open(&ifd_backend_gpuacc),
                           .reference = one_node_open(&ifd_backend_cpuref)};
    uint32_t count = 0;
    const struct ifd_gpu_blocking *blocking = ifd_gpu_blockings(&count);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct layer layer;
        make_layer(&shapes[i], &layer);
        REQUIRE(ifd_gpu_elements(&layer.weights.shape) > IFD_GPU_F32_WEIGHTS);
        (void)compute(&ifd_backend_cpuref, c.reference, &layer, IFD_PRECISION_F32, want);
        for (uint32_t k = 0; k < count; k += step) {
            compare_way(&c, &shapes[i], &blocking[k], &layer, want);
        }
    }
    EXPECT(c.ran > 10 * count / step);
    EXPECT((c.rough > count / step) == c.device->info.has_fp16);
    ifd_backend_gpuacc.close(c.device);
    ifd_backend_cpuref.close(c.reference);
}

static void every_blocking_computes_what_the_reference_does(void)
{
    compare_blockings(1);
}

/* For an interpreter that checks their memory (check_memory.py): some of each kernel. */
static void some_blockings_compute_what_the_reference_does(void)
{
    compare_blockings(9);
}

/* Ranks are in order of cost, all of those that fit are there, and a shorter list is its
 * beginning. */
static void the_best_rank_first(void)
{
    struct ifd_gpu_info info = {.is_gpu = true,
                                .compute_units = 132,
                                .clock_mhz = 1980,
                                .max_group = 1024,
                                .local_bytes = 48 << 10};
    const struct ifd_gpu_conv_size size = {
        .pixels = 49, .out_c = 320, .groups = 1, .group_in = 960, .taps = 1};
    const struct ifd_gpu_blocking *all[96], *some[3];
    uint32_t count = 0, fits = 0;
    const struct ifd_gpu_blocking *blocking = ifd_gpu_blockings(&count);
    for (uint32_t i = 0; i < count; i++) {
        fits += ifd_gpu_blocking_fits(&blocking[i], &size, &info) ? 1 : 0;
    }
    REQUIRE(count <= 96);
    EXPECT_INT(ifd_gpu_rank_blockings(&size, &info, 96, all), fits);
    for (uint32_t i = 1; i < fits; i++) {
        EXPECT(ifd_gpu_blocking_cost(all[i - 1], &size, &info) <=
               ifd_gpu_blocking_cost(all[i], &size, &info));
    }
    EXPECT_INT(ifd_gpu_rank_blockings(&size, &info, 3, some), 3);
    EXPECT(memcmp(some, all, sizeof(some)) == 0);
    info.local_bytes = 0;
    info.max_group = 1;
    EXPECT_INT(ifd_gpu_rank_blockings(&size, &info, 96, all), 4); /* those without groups */
}

/* Steps of a layer, if it may be computed that way; the kernel of the first one. */
static uint32_t steps_by(const char *way, bool exact, enum ifd_gpu_kernel *ret_kernel)
{
    static const struct shape shape = {1, 9, 10, 16, 8, 3, 3, 1, 1, 1, 0, 0};
    static struct one_node node; /* large */
    struct ifd_device *device = one_node_open(&ifd_backend_gpuacc);
    struct ifd_partition *partition = NULL;
    struct ifd_partition_info info = {0};
    struct ifd_err err = {0};
    struct layer layer;
    make_layer(&shape, &layer);
    make_node(&layer, &node);
    node.view.exact = exact;
    device->tuner.only = way;
    REQUIRE_OK(ifd_backend_gpuacc.compile(device, &node.view, NULL, &partition, &info, &err), &err);
    *ret_kernel = partition->step[0].kernel;
    ifd_backend_gpuacc.release(partition);
    ifd_backend_gpuacc.close(device);
    one_node_finish(&node);
    return info.step_count;
}

static void winograd_is_for_those_who_accept_its_roundings(void)
{
    enum ifd_gpu_kernel kernel = IFD_GPU_KERNEL_COUNT;
    EXPECT_INT(steps_by("winograd4 conv2d 8x4 0x0x0 0", false, &kernel), 3);
    EXPECT_INT(kernel, IFD_GPU_winograd_in);
    EXPECT_INT(steps_by("winograd4 conv2d 8x4 0x0x0 0", true, &kernel), 1);
    EXPECT(kernel != IFD_GPU_winograd_in);
}

/* Of 256 channels, so that rows have the pitch that devices want. The buffer of the same constant
 * is there; where the device cannot, the image is all. */
static void an_image_of_weights_is_a_view_of_their_buffer(void)
{
    static const struct shape shape = {1, 5, 6, 16, 256, 3, 1, 1, 1, 1, 0, 0};
    static struct one_node node; /* large */
    static float got[TENSOR], want[TENSOR];
    struct ifd_device *device = one_node_open(&ifd_backend_gpuacc);
    struct ifd_device *reference = one_node_open(&ifd_backend_cpuref);
    struct ifd_partition *partition = NULL;
    struct ifd_partition_info info = {0};
    struct ifd_err err = {0};
    struct layer layer;
    uint32_t images = 0, views = 0;
    make_layer(&shape, &layer);
    make_node(&layer, &node);
    device->tuner.only = "conv2d 8x4 0x0x0 0 image";
    REQUIRE_OK(ifd_backend_gpuacc.compile(device, &node.view, NULL, &partition, &info, &err), &err);
    for (uint32_t i = 0; i < partition->resident_count; i++) {
        const struct ifd_gpu_constant *image = &partition->resident[i].constant;
        images += image->image.width > 0;
        for (uint32_t k = 0; image->image.width > 0 && k < partition->resident_count; k++) {
            const struct ifd_gpu_constant *other = &partition->resident[k].constant;
            views += other->source == image->source && other->image.width == 0;
        }
    }
    const size_t pitch = device->info.image_pitch, width = 256 / 4;
    EXPECT_INT(images, device->info.image_width > 0);
    EXPECT_INT(views, images == 1 && pitch > 0 && width % pitch == 0);
    ifd_backend_gpuacc.release(partition);
    one_node_finish(&node);
    const size_t count = compute(&ifd_backend_gpuacc, device, &layer, IFD_PRECISION_F32, got);
    (void)compute(&ifd_backend_cpuref, reference, &layer, IFD_PRECISION_F32, want);
    (void)expect_same(got, want, count, device->tuner.only, 0);
    ifd_backend_gpuacc.close(device);
    ifd_backend_cpuref.close(reference);
}

/* The estimate knows where fewer products pay: with many channels and patches. */
static void winograd_ranks_first_where_it_pays(void)
{
    const struct ifd_gpu_info info = {.is_gpu = true,
                                      .compute_units = 132,
                                      .clock_mhz = 1980,
                                      .max_group = 1024,
                                      .local_bytes = 48 << 10,
                                      .max_buffer = SIZE_MAX,
                                      .memory_bytes = (uint64_t)80 << 30};
    struct ifd_gpu_conv_size size = {.pixels = 32 * 28 * 28,
                                     .out_c = 256,
                                     .groups = 1,
                                     .group_in = 256,
                                     .taps = 9,
                                     .takes_winograd = true,
                                     .images = 32,
                                     .out_h = 28,
                                     .out_w = 28};
    const struct ifd_gpu_blocking *best = NULL;
    EXPECT_INT(ifd_gpu_rank_blockings(&size, &info, 1, &best), 1);
    EXPECT_INT(best->patch, 4);
    size.takes_winograd = false;
    EXPECT_INT(ifd_gpu_rank_blockings(&size, &info, 1, &best), 1);
    EXPECT_INT(best->patch, 0);
    size.takes_winograd = true; /* one small image: launches cost more */
    size.images = 1;
    size.out_h = size.out_w = 4;
    size.pixels = 16;
    EXPECT_INT(ifd_gpu_rank_blockings(&size, &info, 1, &best), 1);
    EXPECT_INT(best->patch, 0);
}

/* Values between the calls are small here, filters take 36 x 2048 x 2048 floats. */
static void winograd_leaves_filters_that_do_not_fit(void)
{
    struct ifd_gpu_info info = {.max_group = 1024,
                                .local_bytes = 48 << 10,
                                .max_buffer = (size_t)4 << 30,
                                .memory_bytes = (uint64_t)16 << 30};
    const struct ifd_gpu_conv_size size = {.pixels = 64,
                                           .out_c = 2048,
                                           .groups = 1,
                                           .group_in = 2048,
                                           .taps = 9,
                                           .takes_winograd = true,
                                           .images = 1,
                                           .out_h = 8,
                                           .out_w = 8};
    const struct ifd_gpu_blocking *four = ifd_gpu_blocking_named("winograd4 conv2d 8x4 0x0x0 0");
    REQUIRE(four != NULL);
    EXPECT(ifd_gpu_blocking_fits(four, &size, &info));
    info.max_buffer = (size_t)1 << 30;
    EXPECT(!ifd_gpu_blocking_fits(four, &size, &info));
}

/* Of an image of one pixel. All pixels of the result are phases of their own; a stride has more. */
static void phases_without_pixels_have_no_work(void)
{
    static const int32_t size[4] = {1, 2, 3, 1};
    static const float x[1] = {2}, w[6] = {1, 2, 3, 4, 5, 6};
    static struct one_node node; /* large */
    const struct ifd_transpose_conv2d_attrs attrs = {.window = {.padding = IFD_PAD_VALID,
                                                                .stride_h = INT32_MAX,
                                                                .stride_w = INT32_MAX,
                                                                .dilation_h = 1,
                                                                .dilation_w = 1}};
    const struct ifd_desc sizes = {.dtype = IFD_S32, .shape = {1, {4}}};
    const struct ifd_desc image = {.dtype = IFD_F32, .shape = {4, {1, 1, 1, 1}}};
    const struct ifd_desc result = {.dtype = IFD_F32, .shape = {4, {1, 2, 3, 1}}};
    struct ifd_device *device = one_node_open(&ifd_backend_gpuacc);
    struct ifd_partition *partition = NULL;
    struct ifd_partition_info info = {0};
    struct ifd_team *team = NULL;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_team_create(1, ifd_alloc_system(), &team, &err), &err);
    one_node_init(&node, "layer", IFD_OP_TRANSPOSE_CONV2D, &attrs);
    one_node_add_input(&node, &sizes, size, true);
    one_node_add_input(&node, &result, w, true);
    one_node_add_input(&node, &image, x, false);
    one_node_add_output(&node, &result);
    REQUIRE_OK(ifd_backend_gpuacc.compile(device, &node.view, NULL, &partition, &info, &err), &err);
    EXPECT_INT(partition->step[0].items[2], 6);
    ifd_backend_gpuacc.release(partition);
    REQUIRE_OK(one_node_run(&node, &ifd_backend_gpuacc, device, team, false, &err), &err);
    for (size_t i = 0; i < 6; i++) {
        EXPECT_CLOSE(((const float *)node.output[0])[i], 2 * w[i], 0);
    }
    one_node_finish(&node);
    ifd_team_destroy(team);
    ifd_backend_gpuacc.close(device);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_blocking_computes_what_the_reference_does),
        T(some_blockings_compute_what_the_reference_does),
        T(the_best_rank_first),
        T(winograd_is_for_those_who_accept_its_roundings),
        T(an_image_of_weights_is_a_view_of_their_buffer),
        T(winograd_ranks_first_where_it_pays),
        T(winograd_leaves_filters_that_do_not_fit),
        T(phases_without_pixels_have_no_work),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Random networks. Floats keep their size from layer to layer, so that errors do not grow beside
 * them; stored numbers use most of their range. */
#include "tests/support/network.h"

#include "inferd/op_attrs.h"
#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"
#include "engine/ir/verify.h"

#include <math.h>
#include <string.h>

enum { N, H, W, C };
enum { POOL = 48, OUTPUTS_MAX = 4, ELEMENTS_MAX = 300000 };

struct builder {
    struct ifd_graph *graph;
    struct test_random random;
    enum ifd_dtype dtype;
    double macs_left;
    uint32_t pool[POOL]; /* images [n,h,w,c] */
    uint32_t count;
};

/* ---- choices ---- */

static int64_t pick(struct builder *b, int64_t low, int64_t high)
{
    return test_random_int(&b->random, low, high);
}

static bool one_in(struct builder *b, int64_t times)
{
    return pick(b, 1, times) == 1;
}

static int64_t pick_channels(struct builder *b)
{
    switch (pick(b, 0, 4)) {
    case 0:
        return pick(b, 1, 4);
    case 1:
        return pick(b, 1, 40);
    case 2:
        return 8 * pick(b, 1, 12);
    case 3:
        return 32 * pick(b, 1, 4);
    default:
        return pick(b, 1, 300);
    }
}

static int64_t pick_side(struct builder *b)
{
    return one_in(b, 12) ? 1 : one_in(b, 3) ? pick(b, 1, 70) : pick(b, 2, 30);
}

static bool is_float(const struct builder *b)
{
    return b->dtype == IFD_F32;
}

static const struct ifd_desc *desc_of(const struct builder *b, uint32_t v)
{
    return &b->graph->value[v].desc;
}

static int64_t dim(const struct builder *b, uint32_t v, uint32_t d)
{
    return desc_of(b, v)->shape.dim[d];
}

/* ---- quantization ---- */

static struct ifd_quant make_quant(struct builder *b, float scale, int32_t zero)
{
    float *scales = ifd_arena_take_array(b->graph->arena, 1, sizeof(*scales));
    int32_t *zeros = ifd_arena_take_array(b->graph->arena, 1, sizeof(*zeros));
    REQUIRE(scales && zeros);
    *scales = scale;
    *zeros = zero;
    return (struct ifd_quant){scales, zeros, 1, 0};
}

/* A zero point: that of the type's middle, an end of its range, or any. */
static int32_t pick_zero(struct builder *b)
{
    const int32_t least = b->dtype == IFD_U8 ? 0 : -128;
    return least + (int32_t)(one_in(b, 3)   ? 0
                             : one_in(b, 3) ? 128
                             : one_in(b, 6) ? 255
                                            : pick(b, 0, 255));
}

/* Of a result that would have this scale; sometimes far from it. */
static struct ifd_desc pick_result(struct builder *b, double scale)
{
    struct ifd_desc desc = {.dtype = b->dtype};
    if (!is_float(b)) {
        const float most = one_in(b, 12) ? 5.0f : 0.7f;
        const float factor = expf(test_random_f32(&b->random, -most, most));
        desc.quant = make_quant(b, (float)scale * factor, pick_zero(b));
    }
    return desc;
}

static double scale_of(const struct builder *b, uint32_t v)
{
    return is_float(b) ? 1.0 : (double)desc_of(b, v)->quant.scale[0];
}

static struct ifd_desc like(const struct builder *b, uint32_t v)
{
    return (struct ifd_desc){.dtype = b->dtype, .quant = desc_of(b, v)->quant};
}

/* ---- constants ---- */

static void fill_bytes(struct test_random *random, uint8_t *data, size_t count)
{
    const int kind = (int)test_random_int(random, 0, 5);
    const uint8_t same = (uint8_t)test_random_int(random, 0, 255);
    for (size_t i = 0; i < count; i++) {
        const uint8_t any = (uint8_t)test_random_int(random, 0, 255);
        data[i] = kind == 0 ? (any & 1 ? 0x80 : 0x7f) : kind == 1 && any & 3 ? same : any;
    }
}

static uint32_t add_value(struct builder *b, const struct ifd_desc *desc)
{
    uint32_t value = 0;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_value(b->graph, "v", desc, &value, &err), &err);
    return value;
}

static uint32_t add_constant(struct builder *b, const struct ifd_desc *desc, const void *data)
{
    size_t bytes = 0;
    struct ifd_err err = {0};
    const uint32_t value = add_value(b, desc);
    REQUIRE(ifd_desc_bytes(desc, &bytes));
    REQUIRE_OK(ifd_graph_set_constant(b->graph, value, (struct ifd_bytes){data, bytes}, 0, &err),
               &err);
    return value;
}

static void *take(struct builder *b, size_t count, size_t size)
{
    void *memory = ifd_arena_take_array(b->graph->arena, count, size);
    REQUIRE(memory);
    return memory;
}

/* Filters whose sums are of k products each; signed ones may have a scale per channel. */
static uint32_t add_filter(struct builder *b, struct ifd_shape shape, uint32_t axis, int64_t k)
{
    struct ifd_desc desc = {.dtype = b->dtype, .shape = shape};
    size_t count = 0;
    REQUIRE(ifd_shape_elements(&shape, &count));
    if (is_float(b)) {
        const float most = sqrtf(3.0f / (float)k);
        float *data = take(b, count, sizeof(*data));
        for (size_t i = 0; i < count; i++) {
            data[i] = test_random_f32(&b->random, -most, most);
        }
        return add_constant(b, &desc, data);
    }
    uint8_t *data = take(b, count, 1);
    fill_bytes(&b->random, data, count);
    desc.quant = make_quant(b, expf(test_random_f32(&b->random, -1, 1)) / (80.0f * sqrtf((float)k)),
                            b->dtype == IFD_S8 ? 0 : pick_zero(b));
    if (b->dtype == IFD_S8 && one_in(b, 2)) {
        const size_t channels = (size_t)shape.dim[axis];
        float *scales = take(b, channels, sizeof(*scales));
        for (size_t c = 0; c < channels; c++) {
            scales[c] = desc.quant.scale[0] * expf(test_random_f32(&b->random, -1, 1));
        }
        desc.quant = (struct ifd_quant){scales, take(b, channels, sizeof(int32_t)),
                                        (uint32_t)channels, axis};
    }
    return add_constant(b, &desc, data);
}

static uint32_t add_bias(struct builder *b, int64_t channels, int64_t k)
{
    const struct ifd_desc desc = {.dtype = is_float(b) ? IFD_F32 : IFD_S32,
                                  .shape = SHAPE(channels)};
    const int64_t most = one_in(b, 10) ? 1 << 30 : 4000 * k;
    union {
        float f32;
        int32_t s32;
    } *data = take(b, (size_t)channels, sizeof(*data));
    for (int64_t c = 0; c < channels; c++) {
        if (is_float(b)) {
            data[c].f32 = test_random_f32(&b->random, -1, 1);
        } else {
            data[c].s32 = (int32_t)pick(b, -most, most);
        }
    }
    return add_constant(b, &desc, data);
}

/* ---- nodes ---- */

static void *begin(struct builder *b, enum ifd_op op, const uint32_t *input, uint32_t count,
                   struct ifd_desc desc, uint32_t *ret_out)
{
    struct ifd_node *node = NULL;
    struct ifd_err err = {0};
    *ret_out = add_value(b, &desc);
    REQUIRE_OK(ifd_graph_add_node(b->graph, op, input, count, ret_out, 1, &node, &err), &err);
    return (void *)(uintptr_t)node->attrs;
}

static uint32_t finish(struct builder *b, uint32_t out)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(b->graph, b->graph->node_count - 1, &err), &err);
    return out;
}

static void set_ints(struct builder *b, const char *name, const int64_t *value, size_t count)
{
    const struct ifd_node *node = &b->graph->node[b->graph->node_count - 1];
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(node->op), (void *)(uintptr_t)node->attrs, name, value,
                                  count, &err),
               &err);
}

static uint32_t op1(struct builder *b, enum ifd_op op, uint32_t v, struct ifd_desc desc)
{
    uint32_t out = 0;
    (void)begin(b, op, &v, 1, desc, &out);
    return finish(b, out);
}

static uint32_t op2(struct builder *b, enum ifd_op op, uint32_t v, uint32_t w, struct ifd_desc desc)
{
    uint32_t out = 0;
    struct ifd_binary_attrs *attrs = begin(b, op, (const uint32_t[]){v, w}, 2, desc, &out);
    attrs->activation = one_in(b, 3) ? IFD_ACT_RELU : IFD_ACT_NONE;
    return finish(b, out);
}

/* ---- windows ---- */

static struct ifd_window pick_window(struct builder *b, int64_t most_dilation)
{
    struct ifd_window window = {.padding = (int32_t)(one_in(b, 6)   ? IFD_PAD_EXPLICIT
                                                     : one_in(b, 3) ? IFD_PAD_VALID
                                                                    : IFD_PAD_SAME),
                                .stride_h = (int32_t)(one_in(b, 4) ? pick(b, 2, 3) : 1),
                                .dilation_h =
                                    (int32_t)(one_in(b, 8) ? pick(b, 1, most_dilation) : 1)};
    window.stride_w = one_in(b, 12) ? (int32_t)pick(b, 1, 3) : window.stride_h;
    window.dilation_w = one_in(b, 8) ? (int32_t)pick(b, 1, most_dilation) : window.dilation_h;
    if (window.padding == IFD_PAD_EXPLICIT) {
        window.pad_top = (int32_t)pick(b, 0, 2);
        window.pad_bottom = (int32_t)pick(b, 0, 2);
        window.pad_left = (int32_t)pick(b, 0, 2);
        window.pad_right = (int32_t)pick(b, 0, 2);
    }
    return window;
}

static void pick_filter(struct builder *b, int64_t *ret_h, int64_t *ret_w)
{
    static const int64_t sizes[] = {1, 1, 3, 3, 3, 3, 2, 5, 7};
    *ret_h = *ret_w = sizes[pick(b, 0, 8)];
    if (one_in(b, 8)) {
        *ret_w = sizes[pick(b, 0, 8)];
    }
}

static bool fits(const struct builder *b, uint32_t v, const struct ifd_window *window, int64_t h,
                 int64_t w, int64_t channels, struct ifd_window_size *ret)
{
    return ifd_window_resolve(window, h, w, dim(b, v, H), dim(b, v, W), ret) &&
           dim(b, v, N) * ret->out_h * ret->out_w * channels <= ELEMENTS_MAX;
}

static bool spend(struct builder *b, double macs)
{
    const bool can = macs <= b->macs_left;
    b->macs_left -= can ? macs : 0;
    return can;
}

static int32_t pick_activation(struct builder *b)
{
    return one_in(b, 2) ? IFD_ACT_NONE : (int32_t)pick(b, IFD_ACT_RELU, IFD_ACT_RELU6);
}

/* The scale that sums of k products would have. */
static double sum_scale(const struct builder *b, uint32_t v, uint32_t filter, int64_t k)
{
    return scale_of(b, v) * scale_of(b, filter) * 80.0 * sqrt((double)k);
}

struct conv {
    enum ifd_op op;
    struct ifd_window window;
    int64_t h, w, channels;
    const struct ifd_desc *result; /* NULL: any */
};

static uint32_t add_conv(struct builder *b, uint32_t v, const struct conv *conv)
{
    const int64_t in_c = dim(b, v, C);
    const bool is_deep = conv->op == IFD_OP_DEPTHWISE_CONV2D;
    const int64_t groups =
        !is_deep && in_c % 2 == 0 && conv->channels % 2 == 0 && one_in(b, 20) ? 2 : 1;
    const int64_t k = conv->h * conv->w * (is_deep ? 1 : in_c / groups);
    struct ifd_window_size size;
    if (!fits(b, v, &conv->window, conv->h, conv->w, conv->channels, &size) ||
        !spend(b, (double)(dim(b, v, N) * size.out_h * size.out_w * conv->channels * k))) {
        return v;
    }
    const uint32_t filter =
        add_filter(b,
                   is_deep ? SHAPE(1, conv->h, conv->w, conv->channels)
                           : SHAPE(conv->channels, conv->h, conv->w, in_c / groups),
                   is_deep ? 3 : 0, k);
    const bool has_bias = !one_in(b, 3);
    const uint32_t input[] = {v, filter, has_bias ? add_bias(b, conv->channels, k) : 0};
    uint32_t out = 0;
    struct ifd_conv2d_attrs *attrs =
        begin(b, conv->op, input, has_bias ? 3 : 2,
              conv->result ? *conv->result : pick_result(b, sum_scale(b, v, filter, k)), &out);
    attrs->window = conv->window;
    attrs->activation = pick_activation(b);
    return finish(b, out);
}

static uint32_t convolve(struct builder *b, uint32_t v)
{
    struct conv conv = {
        .op = IFD_OP_CONV2D, .window = pick_window(b, 3), .channels = pick_channels(b)};
    pick_filter(b, &conv.h, &conv.w);
    return add_conv(b, v, &conv);
}

static int64_t pick_many_channels(struct builder *b)
{
    return one_in(b, 4)   ? 32 * pick(b, 8, 10)
           : one_in(b, 2) ? 32 * pick(b, 1, 5)
                          : pick(b, 33, 150);
}

static const struct ifd_window plain = {
    .padding = IFD_PAD_SAME, .stride_h = 1, .stride_w = 1, .dilation_h = 1, .dilation_w = 1};

/* What Winograd's and Strassen's algorithms are for. */
static uint32_t convolve_widely(struct builder *b, uint32_t v)
{
    const int64_t side = one_in(b, 2) ? 1 : 3;
    const bool is_wide = dim(b, v, C) >= 32;
    return add_conv(b, v,
                    &(struct conv){.op = IFD_OP_CONV2D,
                                   .window = plain,
                                   .h = is_wide ? side : 1,
                                   .w = is_wide ? side : 1,
                                   .channels = pick_many_channels(b)});
}

static uint32_t filter_channels(struct builder *b, uint32_t v)
{
    struct conv conv = {.op = IFD_OP_DEPTHWISE_CONV2D,
                        .window = pick_window(b, 3),
                        .channels = dim(b, v, C) * (one_in(b, 8) ? pick(b, 2, 3) : 1)};
    pick_filter(b, &conv.h, &conv.w);
    return add_conv(b, v, &conv);
}

/* A 1x1 convolution to that number of channels, in the caller's quantization. */
static uint32_t project(struct builder *b, uint32_t v, int64_t channels,
                        const struct ifd_desc *result)
{
    return add_conv(b, v,
                    &(struct conv){.op = IFD_OP_CONV2D,
                                   .window = plain,
                                   .h = 1,
                                   .w = 1,
                                   .channels = channels,
                                   .result = result});
}

/* As MobileNets have it. */
static uint32_t invert(struct builder *b, uint32_t v)
{
    uint32_t x = project(b, v, pick_channels(b), NULL);
    x = filter_channels(b, x);
    x = project(b, x, dim(b, v, C), NULL);
    return ifd_shape_equal(&desc_of(b, x)->shape, &desc_of(b, v)->shape)
               ? op2(b, IFD_OP_ADD, one_in(b, 2) ? x : v, one_in(b, 2) ? v : x,
                     pick_result(b, fmax(scale_of(b, x), scale_of(b, v))))
               : x;
}

static uint32_t pool(struct builder *b, uint32_t v)
{
    struct ifd_window window = pick_window(b, 1);
    int64_t h = 0, w = 0;
    struct ifd_window_size size;
    uint32_t out = 0;
    pick_filter(b, &h, &w);
    if (window.padding == IFD_PAD_EXPLICIT) {
        window.padding = IFD_PAD_SAME; /* a window may lie in padding alone otherwise */
    }
    if (!fits(b, v, &window, h, w, dim(b, v, C), &size)) {
        return v;
    }
    struct ifd_pool2d_attrs *attrs =
        begin(b, one_in(b, 2) ? IFD_OP_AVERAGE_POOL2D : IFD_OP_MAX_POOL2D, &v, 1, like(b, v), &out);
    attrs->window = window;
    attrs->filter_h = (int32_t)h;
    attrs->filter_w = (int32_t)w;
    attrs->activation = pick_activation(b);
    return finish(b, out);
}

/* ---- other operators ---- */

static uint32_t mean(struct builder *b, uint32_t v)
{
    uint32_t out = 0;
    struct ifd_reduce_attrs *attrs =
        begin(b, IFD_OP_REDUCE_MEAN, &v, 1, pick_result(b, scale_of(b, v)), &out);
    set_ints(b, "axes", (const int64_t[]){1, 2}, 2);
    attrs->keep_dims = true;
    return finish(b, out);
}

static uint32_t unary(struct builder *b, uint32_t v)
{
    static const enum ifd_op ops[] = {IFD_OP_RELU, IFD_OP_RELU6, IFD_OP_HARD_SWISH,
                                      IFD_OP_LEAKY_RELU, IFD_OP_LOGISTIC};
    const enum ifd_op op = ops[pick(b, 0, 4)];
    /* hard swish takes no scales that are far apart */
    struct ifd_desc desc = op == IFD_OP_HARD_SWISH ? like(b, v) : pick_result(b, scale_of(b, v));
    if (op == IFD_OP_LOGISTIC && !is_float(b)) {
        desc.quant = make_quant(b, 1.0f / 256, b->dtype == IFD_S8 ? -128 : 0);
    }
    return op1(b, op, v, desc);
}

/* Squeeze and excite. */
static uint32_t excite(struct builder *b, uint32_t v)
{
    const struct ifd_desc any = {.dtype = b->dtype};
    struct ifd_desc factors = any;
    if (!is_float(b)) {
        factors.quant = make_quant(b, 1.0f / 256, b->dtype == IFD_S8 ? -128 : 0);
    }
    uint32_t x = project(b, mean(b, v), pick(b, 1, 40), NULL);
    x = op1(b, IFD_OP_LOGISTIC, project(b, x, dim(b, v, C), NULL), factors);
    return dim(b, x, C) == dim(b, v, C) ? op2(b, IFD_OP_MUL, one_in(b, 2) ? x : v,
                                              one_in(b, 2) ? v : x, pick_result(b, scale_of(b, v)))
                                        : x;
}

static uint32_t join(struct builder *b, uint32_t v)
{
    const struct ifd_desc desc = pick_result(b, scale_of(b, v));
    const uint32_t part[] = {project(b, v, pick_channels(b), &desc),
                             project(b, v, pick_channels(b), &desc),
                             project(b, v, pick(b, 1, 8), &desc)};
    uint32_t out = 0;
    if (part[0] == v || part[1] == v || part[2] == v) {
        return v; /* too large */
    }
    struct ifd_axis_attrs *attrs =
        begin(b, IFD_OP_CONCAT, part, (uint32_t)pick(b, 2, 3), desc, &out);
    attrs->axis = 3;
    return finish(b, out);
}

/* One of the things that happen to a part; its quantization stays. */
static uint32_t work_on(struct builder *b, uint32_t v)
{
    const struct ifd_desc desc = like(b, v);
    switch (pick(b, 0, 4)) {
    case 0:
        return project(b, v, dim(b, v, C), &desc);
    case 1:
        return add_conv(b, v,
                        &(struct conv){.op = IFD_OP_DEPTHWISE_CONV2D,
                                       .window = plain,
                                       .h = 3,
                                       .w = 3,
                                       .channels = dim(b, v, C),
                                       .result = &desc});
    case 2:
        return op1(b, IFD_OP_RELU, v, desc);
    case 3:
        return op2(b, IFD_OP_ADD, v, project(b, v, dim(b, v, C), &desc), desc);
    default:
        return v;
    }
}

/* Parts along a dimension, worked on one by one, then joined in any order; others may read them,
 * too. */
static uint32_t divide(struct builder *b, uint32_t v)
{
    const uint32_t axis = one_in(b, 2) ? C : (uint32_t)pick(b, H, W);
    const int64_t all = dim(b, v, axis);
    const struct ifd_desc desc = like(b, v);
    struct ifd_node *node = NULL;
    struct ifd_err err = {0};
    if (all < 3) {
        return v;
    }
    const int64_t first = pick(b, 1, all - 2), second = pick(b, 1, all - first - 1);
    uint32_t part[3], out = 0;
    for (uint32_t i = 0; i < 3; i++) {
        part[i] = add_value(b, &desc);
    }
    REQUIRE_OK(ifd_graph_add_node(b->graph, IFD_OP_SPLIT, &v, 1, part, 3, &node, &err), &err);
    ((struct ifd_split_attrs *)(uintptr_t)node->attrs)->axis = (int32_t)axis;
    set_ints(b, "sizes", (const int64_t[]){first, second, all - first - second}, 3);
    (void)finish(b, part[2]);
    for (uint32_t i = 0; i < 3; i++) {
        if (one_in(b, 4) && b->count < POOL) {
            b->pool[b->count++] = part[i];
        }
        part[i] = work_on(b, part[i]);
    }
    const uint32_t from = (uint32_t)pick(b, 0, 2), other = part[from];
    part[from] = part[0];
    part[0] = other;
    ((struct ifd_axis_attrs *)begin(b, IFD_OP_CONCAT, part, 3, desc, &out))->axis = (int32_t)axis;
    return finish(b, out);
}

static uint32_t pad(struct builder *b, uint32_t v)
{
    const int64_t before[] = {0, pick(b, 0, 2), pick(b, 0, 2), 0};
    const int64_t after[] = {0, pick(b, 0, 2), pick(b, 0, 2), one_in(b, 8) ? 3 : 0};
    uint32_t out = 0;
    (void)begin(b, IFD_OP_PAD, &v, 1, like(b, v), &out);
    set_ints(b, "before", before, 4);
    set_ints(b, "after", after, 4);
    return finish(b, out);
}

static uint32_t resize(struct builder *b, uint32_t v)
{
    const int64_t h = pick(b, 1, 20), w = pick(b, 1, 20);
    uint32_t out = 0;
    if (dim(b, v, N) * h * w * dim(b, v, C) > ELEMENTS_MAX) {
        return v;
    }
    struct ifd_resize_attrs *attrs = begin(
        b, one_in(b, 2) ? IFD_OP_RESIZE_BILINEAR : IFD_OP_RESIZE_NEAREST, &v, 1, like(b, v), &out);
    attrs->height = (int32_t)h;
    attrs->width = (int32_t)w;
    attrs->half_pixel_centers = one_in(b, 2);
    attrs->align_corners = !attrs->half_pixel_centers && one_in(b, 2);
    return finish(b, out);
}

/* Fully connected, of one pixel or of all of them. */
static uint32_t connect(struct builder *b, uint32_t v)
{
    const int64_t k = dim(b, v, C), n = pick_channels(b),
                  rows = dim(b, v, N) * dim(b, v, H) * dim(b, v, W);
    if (rows * n > ELEMENTS_MAX || !spend(b, (double)(rows * n * k))) {
        return v;
    }
    const uint32_t filter = add_filter(b, SHAPE(n, k), 0, k);
    const uint32_t input[] = {v, filter, add_bias(b, n, k)};
    uint32_t out = 0;
    struct ifd_fully_connected_attrs *attrs =
        begin(b, IFD_OP_FULLY_CONNECTED, input, one_in(b, 2) ? 2 : 3,
              pick_result(b, sum_scale(b, v, filter, k)), &out);
    attrs->keep_dims = true;
    attrs->activation = pick_activation(b);
    return finish(b, out);
}

/* Two of the same shape: what there is, or made for it. */
static uint32_t combine(struct builder *b, uint32_t v)
{
    static const enum ifd_op ops[] = {IFD_OP_ADD, IFD_OP_ADD, IFD_OP_SUB};
    uint32_t w = b->pool[pick(b, 0, b->count - 1)];
    if (!ifd_shape_equal(&desc_of(b, v)->shape, &desc_of(b, w)->shape)) {
        w = project(b, v, dim(b, v, C), NULL);
    }
    return op2(b, ops[pick(b, 0, 2)], v, w,
               pick_result(b, 1.4 * fmax(scale_of(b, v), scale_of(b, w))));
}

static uint32_t rescale(struct builder *b, uint32_t v)
{
    return is_float(b) ? op1(b, IFD_OP_LEAKY_RELU, v, like(b, v))
                       : op1(b, IFD_OP_QUANTIZE, v, pick_result(b, scale_of(b, v)));
}

typedef uint32_t (*step_fn)(struct builder *b, uint32_t v);

static const step_fn any_step[] = {convolve,
                                   convolve,
                                   convolve,
                                   convolve_widely,
                                   convolve_widely,
                                   filter_channels,
                                   filter_channels,
                                   filter_channels,
                                   invert,
                                   invert,
                                   pool,
                                   pool,
                                   mean,
                                   unary,
                                   unary,
                                   excite,
                                   join,
                                   divide,
                                   divide,
                                   pad,
                                   resize,
                                   connect,
                                   combine,
                                   combine,
                                   rescale};
static const step_fn wide_step[] = {
    convolve_widely, convolve_widely, convolve_widely, convolve_widely, invert, invert,
    combine,         combine,         filter_channels, unary,           join,   divide,
    excite};

/* Mostly of what was made last, unless it is a pixel. */
static uint32_t step(struct builder *b, bool is_wide)
{
    const size_t count =
        is_wide ? sizeof(wide_step) / sizeof(wide_step[0]) : sizeof(any_step) / sizeof(any_step[0]);
    const uint32_t last = b->pool[b->count - 1];
    const bool goes_on = !one_in(b, dim(b, last, H) * dim(b, last, W) == 1 ? 2 : 6);
    const uint32_t v = goes_on ? last : b->pool[pick(b, 0, b->count - 1)];
    const int64_t at = pick(b, 0, (int64_t)count - 1);
    return (is_wide ? wide_step : any_step)[at](b, v);
}

/* What nobody reads comes out, as far as there is room, and sometimes what somebody reads. */
static void choose_outputs(struct builder *b)
{
    uint32_t output[OUTPUTS_MAX];
    uint32_t count = 0;
    struct ifd_err err = {0};
    for (uint32_t i = b->count; i-- > 1 && count < OUTPUTS_MAX;) {
        bool is_read = false;
        for (uint32_t n = 0; n < b->graph->node_count; n++) {
            const struct ifd_node *node = &b->graph->node[n];
            for (uint32_t k = 0; k < node->input_count; k++) {
                is_read = is_read || node->input[k] == b->pool[i];
            }
        }
        if (!is_read || one_in(b, 8) || (i == 1 && count == 0)) { /* a reader may be dead */
            output[count++] = b->pool[i];
        }
    }
    REQUIRE_OK(ifd_graph_set_io(b->graph, &b->pool[0], 1, output, count, &err), &err);
    REQUIRE_OK(ifd_graph_verify(b->graph, IFD_INVALID, &err), &err);
}

void test_network_build(const struct test_network *network, struct ifd_graph *graph)
{
    struct builder b = {.graph = graph,
                        .random = {.state = network->seed * 2654435761u + 1},
                        .dtype = network->dtype,
                        .macs_left = network->macs_most};
    struct ifd_desc desc = pick_result(&b, 0.03);
    do {
        const int64_t batch = one_in(&b, 2) ? 1 : pick(&b, 2, 5);
        desc.shape =
            network->is_wide
                ? SHAPE(batch, pick(&b, 8, 26), pick(&b, 8, 26), pick_many_channels(&b))
                : SHAPE(batch, pick_side(&b), pick_side(&b), one_in(&b, 2) ? 3 : pick_channels(&b));
    } while (desc.shape.dim[N] * desc.shape.dim[H] * desc.shape.dim[W] * desc.shape.dim[C] >
             ELEMENTS_MAX);
    b.pool[b.count++] = add_value(&b, &desc);
    for (uint32_t i = 0; i < 4 * network->nodes && graph->node_count < network->nodes; i++) {
        const uint32_t v = step(&b, network->is_wide);
        if (v > b.pool[b.count - 1] && b.count < POOL) { /* else there was no room for it */
            b.pool[b.count++] = v;
        }
    }
    if (b.count == 1) {
        b.pool[b.count++] = rescale(&b, b.pool[0]);
    }
    choose_outputs(&b);
}

void test_network_fill(const struct test_network *network, void *data, size_t bytes)
{
    struct test_random random = {.state = network->seed + 77};
    if (network->dtype != IFD_F32) {
        fill_bytes(&random, data, bytes);
        return;
    }
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        ((float *)data)[i] = test_random_f32(&random, -2, 2);
    }
}

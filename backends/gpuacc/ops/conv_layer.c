/* A layer in f32 or 8 bits as steps: the ways to compute it, and the one that is taken. */
#include "backends/gpuacc/ops/conv_layer.h"

#include "backends/gpuacc/halves.h"
#include "backends/gpuacc/ops/winograd.h"
#include "backends/gpuacc/tail.h"
#include "backends/gpuacc/tuner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_pointwise(const struct ifd_gpu_conv_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    return ifd_gpu_conv_taps(layer) == 1 && !layer->is_transposed && w->stride_y == 1 &&
           w->stride_x == 1 && !w->is_padded && w->in_h == w->out_h && w->in_w == w->out_w;
}

/* ---- the step ---- */

static void add_numbers(const struct ifd_gpu_conv_layer *layer, struct ifd_gpu_call *call)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t numbers[] = {layer->pixels,
                              w->in_h,
                              w->in_w,
                              w->in_c,
                              w->out_h,
                              w->out_w,
                              layer->out_c,
                              ifd_gpu_conv_weights_row(layer),
                              ifd_gpu_conv_group_in(layer),
                              layer->out_c / layer->groups,
                              w->kh,
                              w->kw,
                              w->stride_y,
                              w->stride_x,
                              w->dilation_y,
                              w->dilation_x,
                              w->pad_top,
                              w->pad_left};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(call, (int64_t)numbers[i]);
    }
}

static void define_window(const struct ifd_gpu_conv_layer *layer, struct ifd_gpu_call *call)
{
    ifd_gpu_define(call, "%s",
                   is_pointwise(layer)    ? "#define POINTWISE\n"
                   : layer->is_transposed ? "#define TRANSPOSED\n"
                                          : "");
}

/* A layer whose step is described. node: input 0, weights 1, bias 2. */
struct plan {
    struct ifd_gpu_lowering *lowering;
    const struct ifd_gpu_conv_layer *layer;
    const struct ifd_node_view *node;
    uint32_t in, out; /* values */
    struct ifd_gpu_tail tail;
};

static enum ifd_code add_args(const struct plan *plan, enum ifd_gpu_weights weights,
                              struct ifd_gpu_call *call, struct ifd_err *err)
{
    ifd_gpu_in(call, plan->in);
    const enum ifd_code code =
        ifd_gpu_conv_constants(plan->lowering, plan->layer, plan->node, weights, call, err);
    ifd_gpu_out(call, plan->out);
    add_numbers(plan->layer, call);
    ifd_gpu_layer_bounds(plan->node, plan->layer->activation, call);
    ifd_gpu_tail_finish(&plan->tail, call);
    return code;
}

/* Of a transposed convolution each pixel of the input meets all taps. */
static uint64_t macs(const struct ifd_gpu_conv_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    const uint64_t pixels =
        layer->is_transposed ? (uint64_t)w->batch * w->in_h * w->in_w : layer->pixels;
    return pixels * layer->out_c * ifd_gpu_conv_taps(layer) * ifd_gpu_conv_group_in(layer);
}

/* Those that have pixels. 0: it is no transposed convolution. */
static size_t phases(const struct ifd_gpu_conv_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    return layer->is_transposed ? (w->stride_y < w->out_h ? w->stride_y : w->out_h) *
                                      (w->stride_x < w->out_w ? w->stride_x : w->out_w)
                                : 0;
}

/* Pixels that are computed alike: all, or those of the largest phase. */
static size_t pixels_of(const struct ifd_gpu_conv_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    return layer->is_transposed ? w->batch * ((w->out_h + w->stride_y - 1) / w->stride_y) *
                                      ((w->out_w + w->stride_x - 1) / w->stride_x)
                                : layer->pixels;
}

/* The step that makes the layer's result, and does that many products for it. */
static enum ifd_code add_step(const struct plan *plan, const struct ifd_gpu_call *call,
                              uint64_t products, struct ifd_err *err)
{
    char name[128];
    (void)snprintf(name, sizeof(name), "%s%s", plan->layer->name, plan->tail.name);
    return ifd_gpu_add_step(plan->lowering, call, name, products, err);
}

/* ---- 8 bits ---- */

/* Larger blocks read less; smaller ones make enough work items to fill the device. */
static size_t choose_pixels(const struct ifd_gpu_info *info, const struct ifd_gpu_conv_layer *layer)
{
    const size_t wanted = info->compute_units * (info->is_gpu ? 512 : 1);
    const size_t all = pixels_of(layer), groups = ifd_gpu_conv_weights_row(layer) / 4;
    size_t pixels = 8;
    while (pixels > 1 && (pixels > all || all / pixels * groups < wanted)) {
        pixels /= 2;
    }
    return pixels;
}

static enum ifd_code lower_q8(const struct plan *plan, struct ifd_err *err)
{
    const struct ifd_gpu_conv_layer *layer = plan->layer;
    const size_t pixels = choose_pixels(&plan->lowering->device->info, layer);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_conv2d_q8);
    ifd_gpu_define(&call, "#define PIXELS %zu\n#define SLICES 1\n#define Q %s\n", pixels,
                   ifd_gpu_q8_type(plan->node->output[0].dtype));
    define_window(layer, &call);
    const enum ifd_code code = add_args(plan, IFD_GPU_GLOBAL, &call, err);
    ifd_gpu_items(&call, ifd_gpu_conv_weights_row(layer) / 4,
                  (pixels_of(layer) + pixels - 1) / pixels,
                  layer->is_transposed ? phases(layer) : 1);
    return code == IFD_OK ? add_step(plan, &call, macs(layer), err) : code;
}

/* ---- f32 ---- */

#define WAYS 96 /* at least as many as there are blockings */

struct ways {
    const struct plan *plan;
    struct ifd_gpu_conv_size size;
    const struct ifd_gpu_blocking *blocking[WAYS];
    uint32_t inputs, sums; /* values of Winograd's algorithm */
};

static enum ifd_code describe_layer(const struct ways *ways,
                                    const struct ifd_gpu_blocking *blocking,
                                    struct ifd_gpu_call *ret_call, struct ifd_err *err)
{
    const struct ifd_gpu_conv_layer *layer = ways->plan->layer;
    const bool is_odd = layer->window.in_c % 4 != 0;
    ifd_gpu_blocking_begin(blocking, ret_call);
    define_window(layer, ret_call);
    ifd_gpu_define(ret_call, "%s", is_odd ? "#define ODD\n" : "");
    if (ifd_gpu_has_f16_weights(ways->plan->lowering, ways->plan->node)) {
        ifd_gpu_define(ret_call, "#define W16\n");
    }
    ifd_gpu_define_sums(ways->plan->lowering, ways->plan->node, ret_call);
    const enum ifd_code code = add_args(ways->plan, blocking->weights, ret_call, err);
    /* fewer than 4 channels are never loaded as vectors, but where a window is one pixel */
    if (layer->out_c % 4 == 0 && (ifd_gpu_conv_group_in(layer) % 4 == 0 ||
                                  (ifd_gpu_conv_group_in(layer) < 4 && !is_pointwise(layer)))) {
        ifd_gpu_define_aligned(ways->plan->lowering, ret_call);
    }
    ifd_gpu_blocking_items(blocking, &ways->size, ret_call);
    return code;
}

/* ---- by Winograd's algorithm ---- */

static struct ifd_gpu_winograd winograd_of(const struct ways *ways, uint32_t patch)
{
    const struct ifd_gpu_conv_layer *layer = ways->plan->layer;
    return (struct ifd_gpu_winograd){.window = layer->window,
                                     .out_c = layer->out_c,
                                     .patch = patch,
                                     .inputs = ways->inputs,
                                     .sums = ways->sums};
}

static void describe_inputs(const struct ways *ways, uint32_t patch, struct ifd_gpu_call *ret_call)
{
    const struct ifd_gpu_winograd winograd = winograd_of(ways, patch);
    ifd_gpu_winograd_in(&winograd, ways->plan->in, ret_call);
    if (winograd.window.in_c % 4 == 0) {
        ifd_gpu_define_aligned(ways->plan->lowering, ret_call);
    }
}

static enum ifd_code describe_products(const struct ways *ways,
                                       const struct ifd_gpu_blocking *blocking,
                                       struct ifd_gpu_call *ret_call, struct ifd_err *err)
{
    const struct plan *plan = ways->plan;
    const struct ifd_gpu_conv_size size = ifd_gpu_blocking_product(blocking, &ways->size);
    const struct ifd_gpu_conv_layer product = {.pixels = size.pixels,
                                               .out_c = size.out_c,
                                               .groups = 1,
                                               .window = {.in_c = size.group_in, .kh = 1, .kw = 1}};
    struct ifd_gpu_winograd_filters *filters =
        ifd_low_params(&plan->lowering->base, 1, sizeof(*filters));
    if (!filters) {
        return ifd_arena_fail(plan->lowering->base.arena, sizeof(*filters), err);
    }
    *filters = (struct ifd_gpu_winograd_filters){.out_c = plan->layer->out_c,
                                                 .in_c = ifd_gpu_conv_group_in(plan->layer),
                                                 .patch = blocking->patch};
    ifd_gpu_blocking_begin(blocking, ret_call);
    ifd_gpu_define(ret_call, "#define POINTWISE\n#define ALIGNED\n");
    ifd_gpu_in(ret_call, ways->inputs);
    ifd_gpu_constant(ret_call, ifd_gpu_winograd_pack, filters, plan->node->input[1].data.data,
                     ifd_gpu_winograd_points(blocking->patch) * size.group_in * size.out_c *
                         sizeof(float));
    ifd_gpu_in_rows(ret_call, size.out_c);
    const enum ifd_code code = ifd_gpu_layer_constants(
        plan->lowering, plan->node, plan->layer->out_c, size.out_c, ret_call, err);
    ifd_gpu_out(ret_call, ways->sums);
    add_numbers(&product, ret_call);
    ifd_gpu_float(ret_call, -INFINITY);
    ifd_gpu_float(ret_call, INFINITY);
    ifd_gpu_blocking_items(blocking, &ways->size, ret_call);
    return code;
}

static enum ifd_code describe_sums(const struct ways *ways, uint32_t patch,
                                   struct ifd_gpu_call *ret_call, struct ifd_err *err)
{
    const struct plan *plan = ways->plan;
    const struct ifd_gpu_conv_layer *layer = plan->layer;
    const struct ifd_gpu_winograd winograd = winograd_of(ways, patch);
    ifd_gpu_winograd_begin_out(&winograd, ret_call);
    const enum ifd_code code = ifd_gpu_layer_constants(
        plan->lowering, plan->node, layer->out_c, ifd_gpu_conv_weights_row(layer), ret_call, err);
    ifd_gpu_winograd_end_out(&winograd, plan->out, ret_call);
    ifd_gpu_layer_bounds(plan->node, layer->activation, ret_call);
    ifd_gpu_tail_finish(&plan->tail, ret_call);
    if (layer->out_c % 4 == 0) {
        ifd_gpu_define_aligned(plan->lowering, ret_call);
    }
    return code;
}

/* Values that are large enough for every way. */
static enum ifd_code add_values(struct ways *ways, uint32_t count, struct ifd_err *err)
{
    struct ifd_lowering *base = &ways->plan->lowering->base;
    size_t inputs = 0, sums = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ways->blocking[i]->patch > 0) {
            const struct ifd_gpu_winograd winograd = winograd_of(ways, ways->blocking[i]->patch);
            const size_t in = ifd_gpu_winograd_numbers(&winograd, winograd.window.in_c);
            const size_t out = ifd_gpu_winograd_numbers(&winograd, winograd.out_c);
            inputs = in > inputs ? in : inputs;
            sums = out > sums ? out : sums;
        }
    }
    if (inputs == 0) {
        return IFD_OK;
    }
    const enum ifd_code code = ifd_low_add_value(base, inputs * sizeof(float), &ways->inputs, err);
    return code == IFD_OK ? ifd_low_add_value(base, sums * sizeof(float), &ways->sums, err) : code;
}

/* ---- choosing ---- */

static uint32_t calls_of(const void *context, uint32_t way)
{
    const struct ways *ways = context;
    return ways->blocking[way]->patch > 0 ? 3 : 1;
}

static enum ifd_code describe(const void *context, uint32_t way, uint32_t index,
                              struct ifd_gpu_call *ret_call, struct ifd_err *err)
{
    const struct ways *ways = context;
    const struct ifd_gpu_blocking *blocking = ways->blocking[way];
    if (blocking->patch == 0) {
        return describe_layer(ways, blocking, ret_call, err);
    }
    if (index == 1) {
        return describe_products(ways, blocking, ret_call, err);
    }
    if (index == 2) {
        return describe_sums(ways, blocking->patch, ret_call, err);
    }
    describe_inputs(ways, blocking->patch, ret_call);
    return IFD_OK;
}

static enum ifd_code build(const struct ways *ways, uint32_t way, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < calls_of(ways, way); i++) {
        struct ifd_gpu_call call;
        struct ifd_gpu_program *program = NULL;
        code = describe(ways, way, i, &call, err);
        if (code == IFD_OK) {
            code = ifd_gpu_program_of(ways->plan->lowering, &call, &program, err);
        }
    }
    return code;
}

/* The best of those that every layer and every device has. */
static uint32_t find_plain(const struct ways *ways, uint32_t count)
{
    uint32_t way = 0;
    while (way + 1 < count &&
           (ways->blocking[way]->kernel != IFD_GPU_conv2d || ways->blocking[way]->patch > 0 ||
            ways->blocking[way]->weights != IFD_GPU_GLOBAL)) {
        way++;
    }
    return way;
}

static void name_way(const void *context, uint32_t way, char ret[IFD_GPU_WAY_TEXT])
{
    const struct ways *ways = context;
    ifd_gpu_blocking_text(ways->blocking[way], ret);
}

static bool has_winograd_window(const struct ifd_gpu_conv_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    return !layer->is_transposed && layer->groups == 1 && w->kh == 3 && w->kw == 3 &&
           w->stride_y == 1 && w->stride_x == 1 && w->dilation_y == 1 && w->dilation_x == 1;
}

static bool is_exact(const struct plan *plan)
{
    return plan->lowering->base.view->exact;
}

/* All that makes a difference to speed. */
static void key_of(const struct plan *plan, char *ret, size_t size)
{
    const struct ifd_gpu_conv_layer *layer = plan->layer;
    const struct ifd_low_window *w = &layer->window;
    (void)snprintf(ret, size,
                   "%s %zux%zux%zux%zu to %zux%zux%zu %zux%zu stride %zux%zu by %zux%zu groups "
                   "%zu%s%s%s%s%s%s",
                   layer->name, w->batch, w->in_h, w->in_w, w->in_c, w->out_h, w->out_w,
                   layer->out_c, w->kh, w->kw, w->stride_y, w->stride_x, w->dilation_y,
                   w->dilation_x, layer->groups,
                   has_winograd_window(layer) && is_exact(plan) ? " exact" : "",
                   ifd_gpu_has_f16_weights(plan->lowering, plan->node) ? " f16" : "",
                   plan->lowering->device->sums_fp16 ? " sums" : "",
                   ifd_gpu_is_half(plan->lowering, plan->in) ? " from f16" : "",
                   ifd_gpu_is_half(plan->lowering, plan->out) ? " to f16" : "", plan->tail.name);
}

/* Describes a way's calls once more, and keeps them as steps. The products count as those of the
 * plain way. */
static enum ifd_code add_steps(const struct ways *ways, uint32_t way, struct ifd_err *err)
{
    static const char *const before[] = {"winograd inputs", "winograd products"};
    const struct plan *plan = ways->plan;
    const bool is_winograd = ways->blocking[way]->patch > 0;
    const uint64_t all = macs(plan->layer);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; code == IFD_OK && i < calls_of(ways, way); i++) {
        struct ifd_gpu_call call;
        code = describe(ways, way, i, &call, err);
        if (code == IFD_OK) {
            code = is_winograd && i < 2
                       ? ifd_gpu_add_step(plan->lowering, &call, before[i], i * all, err)
                       : add_step(plan, &call, is_winograd ? 0 : all, err);
        }
    }
    if (!is_winograd && ifd_gpu_has_f16_weights(plan->lowering, plan->node)) {
        plan->lowering->precision = IFD_PRECISION_FP16;
    }
    return code;
}

static enum ifd_code lower_f32(const struct plan *plan, struct ifd_err *err)
{
    const struct ifd_gpu_conv_layer *layer = plan->layer;
    struct ways ways = {
        .plan = plan,
        .size = {.pixels = pixels_of(layer),
                 .out_c = layer->out_c,
                 .groups = layer->groups,
                 .group_in = ifd_gpu_conv_group_in(layer),
                 .taps = ifd_gpu_conv_taps(layer),
                 .phases = phases(layer),
                 .has_f16_weights = ifd_gpu_has_f16_weights(plan->lowering, plan->node),
                 .takes_winograd = has_winograd_window(layer) && !is_exact(plan),
                 .images = layer->window.batch,
                 .out_h = layer->window.out_h,
                 .out_w = layer->window.out_w}};
    const struct ifd_gpu_ways choice = {
        .count =
            ifd_gpu_rank_blockings(&ways.size, &plan->lowering->device->info, WAYS, ways.blocking),
        .calls = calls_of,
        .describe = describe,
        .name = name_way,
        .context = &ways};
    enum ifd_code code = add_values(&ways, choice.count, err);
    if (code != IFD_OK) {
        return code;
    }
    char key[256];
    key_of(plan, key, sizeof(key));
    const uint32_t way = ifd_gpu_tune(plan->lowering, key, &choice);
    const uint32_t plain = find_plain(&ways, choice.count);
    code = build(&ways, way, err);
    /* a group may need more registers than there are */
    const bool fell_back = code == IFD_UNSUPPORTED && way != plain;
    if (fell_back) {
        code = build(&ways, plain, err);
    }
    return code == IFD_OK ? add_steps(&ways, fell_back ? plain : way, err) : code;
}

enum ifd_code ifd_gpu_lower_conv_layer(struct ifd_gpu_lowering *lowering,
                                       const struct ifd_gpu_conv_layer *layer,
                                       const struct ifd_node_view *node, uint32_t in,
                                       uint32_t result, struct ifd_err *err)
{
    struct plan plan = {.lowering = lowering, .layer = layer, .node = node, .in = in};
    plan.out = ifd_gpu_take_tail(lowering, result, &plan.tail);
    return ifd_gpu_is_q8(node->output[0].dtype) ? lower_q8(&plan, err) : lower_f32(&plan, err);
}

/* conv2d; transpose_conv2d, whose operands are put in the order of conv2d; fully_connected as a
 * convolution of one pixel. */
#include "backends/gpuacc/halves.h"
#include "backends/gpuacc/ops/blocking.h"
#include "backends/gpuacc/ops/dot.h"
#include "backends/gpuacc/ops/dynamic.h"
#include "backends/gpuacc/ops/layer.h"
#include "backends/gpuacc/ops/winograd.h"
#include "backends/gpuacc/tail.h"
#include "backends/gpuacc/tuner.h"
#include "engine/tensor/half.h"
#include "inferd/op_attrs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A layer, and how its work is divided. */
struct layer {
    const char *name;
    struct ifd_low_window window;
    size_t pixels, out_c, groups;
    int32_t activation;
    bool is_transposed;
};

static size_t group_in(const struct layer *layer)
{
    return layer->window.in_c / layer->groups;
}

static size_t weights_row(const struct layer *layer)
{
    return (layer->out_c + 3) / 4 * 4;
}

static size_t taps(const struct layer *layer)
{
    return layer->window.kh * layer->window.kw;
}

static bool is_pointwise(const struct layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    return taps(layer) == 1 && !layer->is_transposed && w->stride_y == 1 && w->stride_x == 1 &&
           !w->is_padded && w->in_h == w->out_h && w->in_w == w->out_w;
}

/* ---- weights ---- */

struct pack {
    size_t out_c, row, inner; /* inner: taps × input channels of a group */
};

/* [oc][tap][ic] becomes [tap][ic][oc]. */
static void pack_f32(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const float *in = source;
    float *out = packed;
    memset(out, 0, p->inner * p->row * sizeof(*out));
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = in[c * p->inner + i];
        }
    }
}

static void pack_f16(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const float *in = source;
    uint16_t *out = packed;
    memset(out, 0, p->inner * p->row * sizeof(*out));
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = ifd_f16_from_f32(in[c * p->inner + i]);
        }
    }
}

static void pack_q8(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const uint8_t *in = source;
    uint8_t *out = packed;
    memset(out, 0, p->inner * p->row);
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = in[c * p->inner + i];
        }
    }
}

static enum ifd_code add_constants(struct ifd_gpu_lowering *lowering, const struct layer *layer,
                                   const struct ifd_node_view *node, enum ifd_gpu_weights weights,
                                   struct ifd_gpu_call *call, struct ifd_err *err)
{
    const bool is_q8 = ifd_gpu_is_q8(node->output[0].dtype);
    const bool is_f16 = ifd_gpu_has_f16_weights(lowering, node);
    if (is_q8 && lowering->device->info.dot && group_in(layer) % 4 == 0) {
        const struct ifd_gpu_dot_size size = {layer->out_c, weights_row(layer),
                                              taps(layer) * group_in(layer)};
        return ifd_gpu_dot_constants(lowering, node, &size, call, err);
    }
    struct pack *pack = ifd_low_params(&lowering->base, 1, sizeof(*pack));
    if (!pack) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*pack), err);
    }
    *pack = (struct pack){
        .out_c = layer->out_c, .row = weights_row(layer), .inner = taps(layer) * group_in(layer)};
    const ifd_gpu_pack_fn fn = is_q8 ? pack_q8 : is_f16 ? pack_f16 : pack_f32;
    const size_t bytes = is_q8 ? 1 : is_f16 ? sizeof(uint16_t) : sizeof(float); /* of a weight */
    ifd_gpu_constant(call, fn, pack, node->input[1].data.data, pack->inner * pack->row * bytes);
    if (weights == IFD_GPU_IMAGE) {
        ifd_gpu_as_image(call, &(struct ifd_gpu_image){.width = pack->row / 4,
                                                       .height = pack->inner,
                                                       .is_half = is_f16});
    }
    return ifd_gpu_layer_constants(lowering, node, layer->out_c, weights_row(layer), call, err);
}

/* ---- the step ---- */

static void add_numbers(const struct layer *layer, struct ifd_gpu_call *call)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t numbers[] = {layer->pixels,   w->in_h,
                              w->in_w,         w->in_c,
                              w->out_h,        w->out_w,
                              layer->out_c,    weights_row(layer),
                              group_in(layer), layer->out_c / layer->groups,
                              w->kh,           w->kw,
                              w->stride_y,     w->stride_x,
                              w->dilation_y,   w->dilation_x,
                              w->pad_top,      w->pad_left};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(call, (int64_t)numbers[i]);
    }
}

static void define_window(const struct layer *layer, struct ifd_gpu_call *call)
{
    ifd_gpu_define(call, "%s",
                   is_pointwise(layer)    ? "#define POINTWISE\n"
                   : layer->is_transposed ? "#define TRANSPOSED\n"
                                          : "");
}

/* A layer whose step is described. node: input 0, weights 1, bias 2. */
struct plan {
    struct ifd_gpu_lowering *lowering;
    const struct layer *layer;
    const struct ifd_node_view *node;
    uint32_t in, out; /* values */
    struct ifd_gpu_tail tail;
};

static enum ifd_code add_args(const struct plan *plan, enum ifd_gpu_weights weights,
                              struct ifd_gpu_call *call, struct ifd_err *err)
{
    ifd_gpu_in(call, plan->in);
    const enum ifd_code code =
        add_constants(plan->lowering, plan->layer, plan->node, weights, call, err);
    ifd_gpu_out(call, plan->out);
    add_numbers(plan->layer, call);
    ifd_gpu_layer_bounds(plan->node, plan->layer->activation, call);
    ifd_gpu_tail_finish(&plan->tail, call);
    return code;
}

static uint64_t macs(const struct layer *layer)
{
    return (uint64_t)layer->pixels * layer->out_c * taps(layer) * group_in(layer);
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
static size_t choose_pixels(const struct ifd_gpu_info *info, const struct layer *layer)
{
    const size_t wanted = info->compute_units * (info->is_gpu ? 512 : 1);
    size_t pixels = 8;
    while (pixels > 1 &&
           (pixels > layer->pixels || layer->pixels / pixels * (weights_row(layer) / 4) < wanted)) {
        pixels /= 2;
    }
    return pixels;
}

static enum ifd_code lower_q8(const struct plan *plan, struct ifd_err *err)
{
    const struct layer *layer = plan->layer;
    const size_t pixels = choose_pixels(&plan->lowering->device->info, layer);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_conv2d_q8);
    ifd_gpu_define(&call, "#define PIXELS %zu\n#define SLICES 1\n#define Q %s\n", pixels,
                   ifd_gpu_q8_type(plan->node->output[0].dtype));
    define_window(layer, &call);
    const enum ifd_code code = add_args(plan, IFD_GPU_GLOBAL, &call, err);
    ifd_gpu_items(&call, weights_row(layer) / 4, (layer->pixels + pixels - 1) / pixels, 1);
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
    const struct layer *layer = ways->plan->layer;
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
    if (layer->out_c % 4 == 0 &&
        (group_in(layer) % 4 == 0 || (group_in(layer) < 4 && !is_pointwise(layer)))) {
        ifd_gpu_define_aligned(ways->plan->lowering, ret_call);
    }
    ifd_gpu_blocking_items(blocking, &ways->size, ret_call);
    return code;
}

/* ---- by Winograd's algorithm ---- */

static struct ifd_gpu_winograd winograd_of(const struct ways *ways, uint32_t patch)
{
    const struct layer *layer = ways->plan->layer;
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
    const struct layer product = {.pixels = size.pixels,
                                  .out_c = size.out_c,
                                  .groups = 1,
                                  .window = {.in_c = size.group_in, .kh = 1, .kw = 1}};
    struct ifd_gpu_winograd_filters *filters =
        ifd_low_params(&plan->lowering->base, 1, sizeof(*filters));
    if (!filters) {
        return ifd_arena_fail(plan->lowering->base.arena, sizeof(*filters), err);
    }
    *filters = (struct ifd_gpu_winograd_filters){
        .out_c = plan->layer->out_c, .in_c = group_in(plan->layer), .patch = blocking->patch};
    ifd_gpu_blocking_begin(blocking, ret_call);
    ifd_gpu_define(ret_call, "#define POINTWISE\n#define ALIGNED\n");
    ifd_gpu_in(ret_call, ways->inputs);
    ifd_gpu_constant(ret_call, ifd_gpu_winograd_pack, filters, plan->node->input[1].data.data,
                     ifd_gpu_winograd_points(blocking->patch) * size.group_in * size.out_c *
                         sizeof(float));
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
    const struct layer *layer = plan->layer;
    const struct ifd_gpu_winograd winograd = winograd_of(ways, patch);
    ifd_gpu_winograd_begin_out(&winograd, ret_call);
    const enum ifd_code code = ifd_gpu_layer_constants(plan->lowering, plan->node, layer->out_c,
                                                       weights_row(layer), ret_call, err);
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

static bool has_winograd_window(const struct layer *layer)
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
    const struct layer *layer = plan->layer;
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
    const struct layer *layer = plan->layer;
    struct ways ways = {
        .plan = plan,
        .size = {.pixels = layer->pixels,
                 .out_c = layer->out_c,
                 .groups = layer->groups,
                 .group_in = group_in(layer),
                 .taps = taps(layer),
                 .is_transposed = layer->is_transposed,
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

/* node: input 0, weights 1, bias 2. in, result: values. */
static enum ifd_code lower_layer(struct ifd_gpu_lowering *lowering, const struct layer *layer,
                                 const struct ifd_node_view *node, uint32_t in, uint32_t result,
                                 struct ifd_err *err)
{
    struct plan plan = {.lowering = lowering, .layer = layer, .node = node, .in = in};
    plan.out = ifd_gpu_take_tail(lowering, result, &plan.tail);
    return ifd_gpu_is_q8(node->output[0].dtype) ? lower_q8(&plan, err) : lower_f32(&plan, err);
}

/* ---- conv2d ---- */

static bool conv2d_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_conv2d_attrs *attrs = node->attrs;
    if (!ifd_gpu_layer_takes(node, attrs->activation, reason)) {
        return false;
    }
    const int64_t in_c = node->input[0].desc->shape.dim[3];
    const int64_t group_c = node->input[1].desc->shape.dim[3];
    const int64_t groups = in_c / group_c;
    if (groups > 1 && node->output[0].shape.dim[3] / groups % 4 != 0) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "groups of %lld output channels, expected a multiple of 4",
                 (long long)(node->output[0].shape.dim[3] / groups));
        return false;
    }
    return true;
}

static enum ifd_code conv2d_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_conv2d_attrs *attrs = node->view.attrs;
    struct layer layer = {.name = "conv2d", .activation = attrs->activation};
    const enum ifd_code code = ifd_low_window_init(&node->view, &attrs->window, &layer.window, err);
    if (code != IFD_OK) {
        return code;
    }
    layer.out_c = (size_t)node->view.output[0].shape.dim[3];
    layer.pixels = layer.window.batch * layer.window.out_h * layer.window.out_w;
    layer.groups = layer.window.in_c / (size_t)node->view.input[1].desc->shape.dim[3];
    return lower_layer(lowering, &layer, &node->view, node->input_value[0], node->output_value[0],
                       err);
}

const struct ifd_gpu_driver ifd_gpu_driver_conv2d = {conv2d_takes, conv2d_lower};

/* ---- transpose_conv2d ---- */

/* The node with its operands in the order of conv2d. operand: memory for them. */
static struct ifd_node_view as_conv2d(const struct ifd_node_view *node,
                                      struct ifd_operand operand[3])
{
    struct ifd_node_view view = *node;
    operand[0] = node->input[2];
    operand[1] = node->input[1];
    operand[2] = node->input_count > 3 ? node->input[3] : (struct ifd_operand){NULL, {NULL, 0}};
    view.input = operand;
    view.input_count = 3;
    return view;
}

/* The window lies over the output. */
static bool transposed_window(const struct ifd_node_view *node, struct ifd_window_size *ret)
{
    const struct ifd_transpose_conv2d_attrs *attrs = node->attrs;
    const int64_t *filter = node->input[1].desc->shape.dim, *out = node->output[0].shape.dim;
    return ifd_window_resolve(&attrs->window, filter[1], filter[2], out[1], out[2], ret);
}

static bool transpose_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_transpose_conv2d_attrs *attrs = node->attrs;
    struct ifd_operand operand[3];
    struct ifd_window_size size;
    const struct ifd_node_view view = as_conv2d(node, operand);
    if (!node->input[0].data.data || attrs->window.dilation_h != 1 ||
        attrs->window.dilation_w != 1 || !transposed_window(node, &size)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "an output shape that is computed, or a dilation");
        return false;
    }
    return ifd_gpu_layer_takes(&view, attrs->activation, reason);
}

static enum ifd_code transpose_lower(struct ifd_gpu_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_transpose_conv2d_attrs *attrs = node->view.attrs;
    struct ifd_operand operand[3];
    struct ifd_window_size size;
    const struct ifd_node_view view = as_conv2d(&node->view, operand);
    const int64_t *in = view.input[0].desc->shape.dim, *out = view.output[0].shape.dim;
    const int64_t *filter = view.input[1].desc->shape.dim;
    if (!transposed_window(&node->view, &size)) {
        return ifd_fail(err, IFD_INTERNAL, "shape inference did not accept the window");
    }
    struct layer layer = {.name = "transpose_conv2d",
                          .activation = attrs->activation,
                          .is_transposed = true,
                          .out_c = (size_t)out[3],
                          .pixels = (size_t)(out[0] * out[1] * out[2]),
                          .groups = 1,
                          .window = {.batch = (size_t)in[0],
                                     .in_h = (size_t)in[1],
                                     .in_w = (size_t)in[2],
                                     .in_c = (size_t)in[3],
                                     .out_h = (size_t)out[1],
                                     .out_w = (size_t)out[2],
                                     .kh = (size_t)filter[1],
                                     .kw = (size_t)filter[2],
                                     .stride_y = (size_t)attrs->window.stride_h,
                                     .stride_x = (size_t)attrs->window.stride_w,
                                     .dilation_y = 1,
                                     .dilation_x = 1,
                                     .pad_top = (size_t)size.pad_top,
                                     .pad_left = (size_t)size.pad_left}};
    return lower_layer(lowering, &layer, &view, node->input_value[2], node->output_value[0], err);
}

const struct ifd_gpu_driver ifd_gpu_driver_transpose_conv2d = {transpose_takes, transpose_lower};

/* ---- fully_connected ---- */

static bool fully_connected_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_fully_connected_attrs *attrs = node->attrs;
    return ifd_gpu_dynamic_takes(node) || ifd_gpu_layer_takes(node, attrs->activation, reason);
}

static enum ifd_code fully_connected_lower(struct ifd_gpu_lowering *lowering,
                                           const struct ifd_partition_node *node,
                                           struct ifd_err *err)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    const struct ifd_shape *weights = &node->view.input[1].desc->shape;
    const size_t rows =
        ifd_gpu_elements(&node->view.input[0].desc->shape) / (size_t)weights->dim[1];
    if (ifd_gpu_dynamic_takes(&node->view)) {
        return ifd_gpu_dynamic_lower(lowering, node, err);
    }
    struct layer layer = {.name = "fully_connected",
                          .activation = attrs->activation,
                          .out_c = (size_t)weights->dim[0],
                          .pixels = rows,
                          .groups = 1,
                          .window = {.batch = rows,
                                     .in_h = 1,
                                     .in_w = 1,
                                     .in_c = (size_t)weights->dim[1],
                                     .out_h = 1,
                                     .out_w = 1,
                                     .kh = 1,
                                     .kw = 1,
                                     .stride_y = 1,
                                     .stride_x = 1,
                                     .dilation_y = 1,
                                     .dilation_x = 1}};
    return lower_layer(lowering, &layer, &node->view, node->input_value[0], node->output_value[0],
                       err);
}

const struct ifd_gpu_driver ifd_gpu_driver_fully_connected = {fully_connected_takes,
                                                              fully_connected_lower};

/* Winograd's algorithm for f32 3×3 windows of stride 1 or 2: cost, weights, run. The transforms are
 * kernels. */
#include "backends/cpuacc/conv/direct.h"
#include "backends/cpuacc/conv/patches.h"

#include <math.h>

/* Matrices of weights. */
static size_t matrices(size_t size)
{
    return (size + 2) * (size + 2);
}

/* Values along one side of a patch, and of all of it: as many matrices of inputs, and of sums. */
static size_t patch_edge(const struct ifd_acc_conv *conv)
{
    return IFD_WINO_EDGE(conv->plan.patches.size, conv->layer.window.stride_x);
}

static size_t patch_values(const struct ifd_acc_conv *conv)
{
    return patch_edge(conv) * patch_edge(conv);
}

/* Values along one side, from i on, that meet the same weights. With stride 2 the values for the
 * filter's middle come last. */
static size_t values_of(const struct ifd_acc_conv *conv, size_t i)
{
    return i <= conv->plan.patches.size ? 1 : patch_edge(conv) - i;
}

/* ---- weights ---- */

/* Filters that are transformed at a time: their matrices stay in the second-level cache until they
 * are packed. */
enum { PART_COLUMNS = 16, PART_INPUTS = 32 };

static void pack_filters(const struct ifd_kernels *kernels, const struct ifd_acc_conv *conv,
                         size_t n0, size_t k0, float *matrix, uint8_t *packed)
{
    const size_t out_c = conv->layer.out_c, in_c = conv->layer.window.in_c;
    const size_t n = out_c - n0 < PART_COLUMNS ? out_c - n0 : PART_COLUMNS;
    const size_t k = in_c - k0 < PART_INPUTS ? in_c - k0 : PART_INPUTS;
    const size_t bytes = kernels->gemm_f32.packed_bytes(out_c, in_c, 1);
    const uint32_t size = conv->plan.patches.size;
    const float *filters = conv->layer.product.weights;
    kernels->wino.weights(size, (uint32_t)conv->layer.window.stride_x,
                          &(struct ifd_gemm_weights){.w = filters + n0 * 9 * in_c + k0,
                                                     .n = n,
                                                     .k = k,
                                                     .taps = 9,
                                                     .stride_n = 9 * in_c,
                                                     .stride_t = in_c,
                                                     .stride_k = 1},
                          matrix);
    for (size_t t = 0; t < matrices(size); t++, matrix += n * k, packed += bytes) {
        const struct ifd_gemm_weights part = {
            .w = matrix, .n = n, .k = k, .taps = 1, .stride_n = k, .stride_t = k, .stride_k = 1};
        kernels->gemm_f32.pack_part(&part, n0, k0, packed);
    }
}

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    const struct ifd_kernels *kernels = context;
    const struct ifd_acc_conv *conv = params;
    const size_t out_c = conv->layer.out_c, in_c = conv->layer.window.in_c;
    const size_t bytes = kernels->gemm_f32.packed_bytes(out_c, in_c, 1);
    for (size_t t = 0; t < matrices(conv->plan.patches.size); t++) {
        const struct ifd_gemm_weights matrix = {.n = out_c, .k = in_c, .taps = 1};
        kernels->gemm_f32.pack(&matrix, NULL, packed + t * bytes);
    }
    for (size_t n0 = 0; n0 < out_c; n0 += PART_COLUMNS) {
        for (size_t k0 = 0; k0 < in_c; k0 += PART_INPUTS) {
            pack_filters(kernels, conv, n0, k0, (float *)(void *)workspace, packed);
        }
    }
}

static size_t packed_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    return matrices(conv->plan.patches.size) *
           kernels->gemm_f32.packed_bytes(conv->layer.out_c, conv->layer.window.in_c, 1);
}

static size_t workspace_bytes(const struct ifd_acc_conv *conv)
{
    return matrices(conv->plan.patches.size) * PART_COLUMNS * PART_INPUTS * sizeof(float);
}

/* ---- running ---- */

/* Columns of a pass: their sums are transformed back while they are still in the second-level
 * cache. No block of the kernels is wider. */
enum { COLUMNS_MAX = 64 };

/* Elements from matrix to matrix: an odd number of cache lines. Otherwise the values of a patch
 * would share a few sets of the first-level cache. */
static size_t matrix_stride(size_t elements)
{
    const size_t line = 64 / sizeof(float);
    return ((elements + line - 1) / line | 1) * line;
}

static size_t input_elements(const struct ifd_acc_conv *conv, size_t count)
{
    return patch_values(conv) * matrix_stride(count * conv->layer.window.in_c);
}

static size_t work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    (void)kernels;
    const size_t at_once = conv->plan.patches.at_once, out_c = conv->layer.out_c;
    const size_t columns = out_c < COLUMNS_MAX ? out_c : COLUMNS_MAX;
    const size_t sums = patch_values(conv) * matrix_stride(at_once * columns);
    return (input_elements(conv, at_once) + sums) * sizeof(float) + IFD_TENSOR_PAD;
}

/* Patches of one call: whole lines of an image, or a part of one. */
struct patches {
    size_t image, first, count;
    size_t per_line;
};

static void transform_inputs(const struct ifd_acc_conv_run *run, const struct patches *patches)
{
    const struct ifd_low_window *w = &run->conv->layer.window;
    const size_t line = w->in_w * w->in_c;
    const uint8_t *image = run->in + patches->image * w->in_h * line * sizeof(float);
    run->step->kernels->wino.input(
        &(struct ifd_wino_args){.size = run->conv->plan.patches.size,
                                .stride = (uint32_t)w->stride_x,
                                .channels = w->in_c,
                                .patches_x = patches->per_line,
                                .patch_begin = patches->first,
                                .patch_count = patches->count,
                                .image = (float *)(uintptr_t)image,
                                .height = w->in_h,
                                .width = w->in_w,
                                .pixel_stride = w->in_c,
                                .line_stride = line,
                                .pad_top = (uint32_t)w->pad_top,
                                .pad_left = (uint32_t)w->pad_left,
                                .matrices = (float *)(void *)run->work,
                                .matrix_stride = matrix_stride(patches->count * w->in_c),
                                .row_stride = w->in_c});
}

/* The products of value v of all patches with columns begin .. end-1; the sums lie behind the
 * inputs. */
static void multiply_value(const struct ifd_acc_conv_run *run, size_t patches, size_t v,
                           struct ifd_gemm_args *args)
{
    const struct ifd_acc_conv *conv = run->conv;
    float *work = (float *)(void *)run->work;
    args->a = work + v * matrix_stride(patches * conv->layer.window.in_c);
    args->out = work + (input_elements(conv, patches) +
                        v * matrix_stride(patches * args->out_stride) - args->n_begin);
    run->step->kernels->gemm_f32.run(args);
}

static void multiply(const struct ifd_acc_conv_run *run, size_t patches, size_t begin, size_t end)
{
    const struct ifd_acc_conv *conv = run->conv;
    const struct ifd_packed *packed = run->args.packed;
    const size_t points = conv->plan.patches.size + 2, edge = patch_edge(conv),
                 columns = end - begin;
    const size_t before = begin / packed->nr * packed->unit_bytes;
    const size_t bytes = (columns + packed->nr - 1) / packed->nr * packed->unit_bytes;
    const uint8_t *following = (const uint8_t *)packed + before + bytes;
    struct ifd_gemm_args args = {.m = patches,
                                 .n_begin = begin,
                                 .n_end = end,
                                 .a_stride = conv->layer.window.in_c,
                                 .out_stride = columns,
                                 .min = -INFINITY,
                                 .max = INFINITY,
                                 .next_bytes = bytes};
    for (size_t t = 0; t < points * points; t++) {
        const uint8_t *next = (const uint8_t *)packed + packed->bytes;
        const size_t y = t / points, x = t % points;
        args.packed = packed;
        args.next = t + 1 < points * points ? next + before
                    : end < run->args.n_end ? following
                                            : NULL;
        for (size_t v = y; v < y + values_of(conv, y); v++) {
            for (size_t u = x; u < x + values_of(conv, x); u++) {
                multiply_value(run, patches, v * edge + u, &args);
            }
        }
        packed = (const struct ifd_packed *)(const void *)next;
    }
}

static void transform_sums(const struct ifd_acc_conv_run *run, const struct patches *patches,
                           size_t begin, size_t end)
{
    const struct ifd_acc_conv *conv = run->conv;
    const size_t row = patches->image * conv->layer.window.out_h * conv->layer.window.out_w;
    const float *add = (const float *)(const void *)run->add;
    run->step->kernels->wino.output(&(struct ifd_wino_args){
        .size = conv->plan.patches.size,
        .stride = (uint32_t)conv->layer.window.stride_x,
        .channels = end - begin,
        .patches_x = patches->per_line,
        .patch_begin = patches->first,
        .patch_count = patches->count,
        .image = (float *)(void *)run->out + row * conv->layer.out_stride + begin,
        .height = conv->layer.window.out_h,
        .width = conv->layer.window.out_w,
        .pixel_stride = conv->layer.out_stride,
        .line_stride = conv->layer.window.out_w * conv->layer.out_stride,
        .matrices = (float *)(void *)run->work + input_elements(conv, patches->count),
        .matrix_stride = matrix_stride(patches->count * (end - begin)),
        .row_stride = end - begin,
        .bias = conv->layer.product.bias_f32 ? conv->layer.product.bias_f32 + begin : NULL,
        .add = add ? add + row * conv->layer.out_c + begin : NULL,
        .min = conv->layer.product.min,
        .max = conv->layer.product.max});
}

/* End of the columns that one pass makes from begin on: whole blocks. */
static size_t columns_end(const struct ifd_gemm_args *args, size_t begin)
{
    const struct ifd_packed *packed = args->packed;
    size_t end = begin;
    for (size_t b = 1; b <= packed->blocks; b++) {
        const size_t column = ifd_packed_column(packed, b);
        end = column <= args->n_end && column <= begin + COLUMNS_MAX && column > end ? column : end;
    }
    return end;
}

static void call_patches(const struct ifd_acc_conv_run *run, const struct patches *patches)
{
    transform_inputs(run, patches);
    size_t end = 0;
    for (size_t n = run->args.n_begin; n < run->args.n_end; n = end) {
        end = columns_end(&run->args, n);
        multiply(run, patches->count, n, end);
        transform_sums(run, patches, n, end);
    }
    ifd_acc_patches_tail(run, patches->image, patches->first, patches->count);
}

static void run_winograd(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *conv = run.conv;
    const size_t lines = ifd_acc_patches_of(conv->layer.window.out_h, conv->plan.patches.size);
    const size_t line = ifd_acc_patches_of(conv->layer.window.out_w, conv->plan.patches.size);
    const struct ifd_acc_range range =
        ifd_acc_conv_share(&run, frame, conv->layer.window.batch * lines, 1);
    struct patches patches = {.per_line = line};
    for (size_t at = range.begin * line; at < range.end * line; at += patches.count) {
        patches.image = at / (line * lines);
        patches.first = at % (line * lines);
        const size_t most =
            conv->plan.patches.at_once < line ? line - at % line : line * lines - patches.first;
        patches.count = range.end * line - at < most ? range.end * line - at : most;
        patches.count =
            patches.count < conv->plan.patches.at_once ? patches.count : conv->plan.patches.at_once;
        call_patches(&run, &patches);
    }
}

/* ---- choosing ---- */

/* Patches of a call. Transformed inputs should stay in half of the cache, beside the sums of a
 * pass; but weights are read once a call, which should not take longer than the gemms. */
static size_t choose_at_once(const struct ifd_acc_layer *layer, size_t size, size_t cache)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t in_c = w->in_c, out_c = layer->out_c;
    const size_t line = ifd_acc_patches_of(w->out_w, size);
    const size_t lines = ifd_acc_patches_of(w->out_h, size);
    const size_t edge = IFD_WINO_EDGE(size, w->stride_x), values = edge * edge;
    const size_t by_cache = cache / 2 / (values * (in_c + COLUMNS_MAX) * sizeof(float));
    const size_t by_weights = in_c * out_c / (in_c + out_c) / 2 * matrices(size) / values;
    const size_t most = by_cache > by_weights ? by_cache : by_weights;
    if (most < line) {
        const size_t parts = (line + most - 1) / most;
        return (line + parts - 1) / parts;
    }
    const size_t calls = (line * lines + most - 1) / most;
    return (lines + calls - 1) / calls * line;
}

/* Fewer patches are too few rows for the gemm. */
#define PATCHES_MIN 12

/* The size that costs least; 0 for none. */
static uint32_t cheapest_size(const struct ifd_acc_lowering *lowering,
                              const struct ifd_acc_layer *layer, int far, double *ret_cost)
{
    const struct ifd_low_window *w = &layer->window;
    uint32_t best = 0;
    for (uint32_t size = 2; size <= 4; size++) {
        const size_t patches =
            ifd_acc_patches_of(w->out_h, size) * ifd_acc_patches_of(w->out_w, size);
        const size_t edge = IFD_WINO_EDGE(size, w->stride_x);
        const double cost = ifd_acc_direct_cost_of(lowering, layer, matrices(size),
                                                   (double)(edge * edge * patches), 8, far);
        if (patches >= PATCHES_MIN && (best == 0 || cost < *ret_cost)) {
            *ret_cost = cost;
            best = size;
        }
    }
    return best;
}

static bool fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    double unused = 0;
    return !layer->product.is_q8 && !lowering->base.view->exact && !layer->narrow_in &&
           !layer->narrow_out && !layer->narrow_add && !(layer->adds && layer->is_slice) &&
           !layer->is_dilated && w->kh == 3 && w->kw == 3 && w->stride_x <= 2 &&
           w->stride_x == w->stride_y && w->in_c >= 32 && layer->out_c >= 32 &&
           cheapest_size(lowering, layer, IFD_ACC_KEEP_FAR, &unused) > 0;
}

static double cost(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    double cost = 0;
    (void)cheapest_size(lowering, layer, IFD_ACC_KEEP_FAR, &cost);
    return cost;
}

/* Spends spare bytes on larger patches than the cost of memory would allow. */
static uint32_t choose_size(const struct ifd_acc_lowering *lowering,
                            const struct ifd_acc_layer *layer, size_t *ret_spare_bytes)
{
    double unused = 0;
    const uint32_t size = cheapest_size(lowering, layer, IFD_ACC_KEEP_FAR, &unused);
    const uint32_t fastest = cheapest_size(lowering, layer, IFD_ACC_READ_FAR, &unused);
    *ret_spare_bytes = 0;
    if (fastest <= size) {
        return size;
    }
    const size_t bytes =
        (matrices(fastest) - matrices(size)) * layer->window.in_c * layer->out_c * layer->element;
    if (bytes > lowering->spare_bytes) {
        return size;
    }
    *ret_spare_bytes = bytes;
    return fastest;
}

static void plan(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                 struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    size_t spare_bytes = 0;
    const uint32_t size = choose_size(lowering, layer, &spare_bytes);
    const size_t cache = ifd_acc_cache_bytes(lowering->host);
    const size_t at_once = choose_at_once(layer, size, cache),
                 pixels = w->batch * w->out_h * w->out_w;
    const size_t weights = w->kw * w->in_c * layer->out_c; /* of a line of the window */
    *ret = (struct ifd_acc_conv_plan){
        .kernel = "wino",
        .gemm = &lowering->kernels->gemm_f32,
        .group = 1,
        .n = layer->out_c,
        .out_stride = layer->out_stride,
        .spare_bytes = spare_bytes,
        .load = {.is_heavy = ifd_acc_conv_is_heavy(
                     layer, matrices(size) * weights,
                     w->batch * (w->in_h * w->in_w * w->in_c + w->out_h * w->out_w * layer->out_c)),
                 .is_far = w->kh * weights * layer->element > cache / 2,
                 .prepares = true,
                 .units = w->batch * (w->out_h / size),
                 .rows = pixels,
                 .least = at_once * size * size,
                 .has_columns = true},
        .patches = {.size = size, .at_once = at_once}};
}

const struct ifd_acc_algorithm ifd_acc_conv_winograd = {
    .name = "winograd",
    .label = "",
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .pack = pack,
    .packed_bytes = packed_bytes,
    .workspace_bytes = workspace_bytes,
    .work_bytes = work_bytes,
    .run = run_winograd,
};

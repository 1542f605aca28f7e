/* Winograd's algorithm for 8-bit 3×3 windows: cost, weights, run. The kernel does all arithmetic,
 * and it is exact. */
#include "backends/cpuacc/conv/direct.h"
#include "backends/cpuacc/conv/patches.h"

enum { SIDE = 4 }; /* outputs of a patch along one side */

/* Weights take eight times the memory of the direct way. More than five second-level caches of them
 * delay the first answer. Weights that exceed one cache need many patches. */
#define WEIGHTS_CACHES  5
#define PATCHES_FAR_MIN 40

/* Fewer patches per thread do not fill a tile of the kernel. */
#define PATCHES_THREAD_MIN 4

/* The least gain that is worth the memory. */
#define GAIN 1.1

/* Cycles, measured on a core that does one vpdpbusd (64 products) a cycle: transforms of a patch
 * for 32 inputs and for 16 outputs of 128 channels, and one of its 36 matrices for 16 outputs. The
 * direct way misses the peak by 5 %. */
#define INPUT_CYCLES  220.0
#define OUTPUT_CYCLES 200.0
#define MATRIX_CYCLES 8.0
#define DIRECT_CYCLES 1.05

static size_t patches_of(const struct ifd_low_window *w)
{
    return ifd_acc_patches_of(w->out_h, SIDE) * ifd_acc_patches_of(w->out_w, SIDE);
}

static bool fits(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    const struct ifd_kern_wino_q8 *wino = &lowering->kernels->wino_q8;
    if (!wino->run || (lowering->host->cpu.flags & IFD_CPU_AMX_INT8) || !layer->product.is_q8 ||
        layer->product.is_dynamic || layer->has_row_add || layer->is_dilated || w->kh != 3 ||
        w->kw != 3 || w->stride_x * w->stride_y != 1 || w->in_c < 16 || layer->out_c < 16) {
        return false;
    }
    const size_t patches = patches_of(w), bytes = wino->packed_bytes(layer->out_c, w->in_c);
    const size_t cache = ifd_acc_cache_bytes(lowering->host);
    return patches >= (size_t)PATCHES_THREAD_MIN * lowering->base.view->max_threads &&
           bytes <= (patches < PATCHES_FAR_MIN ? cache / 2 : WEIGHTS_CACHES * cache);
}

/* In cycles of both algorithms: a multiply-accumulate of 8 bits is not what takes their time. */
static double cost(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    const double in = (double)((w->in_c + 31) / 32), out = (double)((layer->out_c + 15) / 16);
    const double k = (double)w->in_c, pixels = (double)(w->out_h * w->out_w);
    const double cycles = in * INPUT_CYCLES + 36 * out * (k / 2 + MATRIX_CYCLES) +
                          out * OUTPUT_CYCLES * (double)(1 + w->in_c / 227);
    const double direct = pixels * 9 * k * out / 4 * DIRECT_CYCLES;
    return (double)patches_of(w) * cycles * GAIN / direct *
           ifd_acc_direct_cost(lowering, layer, 1.0);
}

/* Patches of a call; fewer where the work memory of more would fill most of the cache. Both are
 * multiples of what the kernel multiplies at once: 6, or 12 for blocks of 64 or 32 columns. */
#define PATCHES_MAX 36
#define PATCHES_MIN 24

static void plan(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                 struct ifd_acc_conv_plan *ret)
{
    const struct ifd_low_window *w = &layer->window;
    const size_t cache = ifd_acc_cache_bytes(lowering->host), rows = w->batch * w->out_h * w->out_w;
    const size_t bytes =
        lowering->kernels->wino_q8.scratch_bytes(layer->out_c, w->in_c, PATCHES_MAX);
    const size_t at_once = bytes <= cache / 4 * 3 ? PATCHES_MAX : PATCHES_MIN;
    *ret = (struct ifd_acc_conv_plan){.kernel = "wino_q8",
                                      .gemm = &lowering->kernels->gemm_f32,
                                      .group = 1,
                                      .n = layer->out_c,
                                      .out_stride = layer->out_stride,
                                      .load = {.is_far = 9 * w->in_c * layer->out_c > cache / 2,
                                               .prepares = true,
                                               .units = rows / IFD_ACC_UNIT_ROWS,
                                               .rows = rows,
                                               .least = at_once * SIDE * SIDE},
                                      .patches = {.size = SIDE, .at_once = at_once}};
}

static size_t packed_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    return kernels->wino_q8.packed_bytes(conv->layer.out_c, conv->layer.window.in_c);
}

static size_t workspace_bytes(const struct ifd_acc_conv *conv)
{
    return ifd_acc_product_workspace(&conv->layer.product);
}

static size_t work_bytes(const struct ifd_acc_conv *conv, const struct ifd_kernels *kernels)
{
    return kernels->wino_q8.scratch_bytes(conv->layer.out_c, conv->layer.window.in_c,
                                          conv->plan.patches.at_once);
}

static void pack(const void *context, const void *params, uint8_t *workspace, uint8_t *packed)
{
    const struct ifd_kernels *kernels = context;
    const struct ifd_acc_layer *layer = &((const struct ifd_acc_conv *)params)->layer;
    const size_t k = layer->window.in_c;
    const struct ifd_gemm_weights weights = {
        .w = ifd_acc_product_weights(&layer->product, workspace),
        .n = layer->out_c,
        .k = k,
        .taps = 9,
        .stride_n = 9 * k,
        .stride_t = k,
        .stride_k = 1};
    const struct ifd_requant requant = ifd_acc_product_requant(&layer->product, workspace);
    kernels->wino_q8.pack(&weights, &requant, packed);
}

/* Patches begin … begin+count-1 of an image, and their tail. */
static void call_patches(const struct ifd_acc_conv_run *run, size_t image, size_t begin,
                         size_t count)
{
    const struct ifd_acc_layer *layer = &run->conv->layer;
    const struct ifd_low_window *w = &layer->window;
    const size_t first_row = image * w->out_h * w->out_w;
    run->step->kernels->wino_q8.run(&(struct ifd_wino_q8_args){
        .packed = run->args.packed,
        .in = (const ifd_q8 *)run->in + image * w->in_h * w->in_w * w->in_c,
        .out = (ifd_q8 *)run->out + first_row * layer->out_stride,
        .in_h = w->in_h,
        .in_w = w->in_w,
        .in_pixel_stride = w->in_c,
        .in_line_stride = w->in_w * w->in_c,
        .out_h = w->out_h,
        .out_w = w->out_w,
        .out_pixel_stride = layer->out_stride,
        .out_line_stride = w->out_w * layer->out_stride,
        .pad_top = (uint32_t)w->pad_top,
        .pad_left = (uint32_t)w->pad_left,
        .patch_begin = begin,
        .patch_count = count,
        .n_end = layer->out_c,
        .scratch = run->work});
    ifd_acc_patches_tail(run, image, begin, count);
}

static void run_winograd_q8(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_low_window *w = &run.conv->layer.window;
    const struct ifd_packed *packed = run.args.packed;
    const size_t patches = patches_of(w), all = w->batch * patches;
    const size_t at_once = run.conv->plan.patches.at_once;
    const struct ifd_acc_range range =
        ifd_acc_share(frame, all, all < frame->threads * packed->mr ? 2 : packed->mr);
    size_t count = 0;
    for (size_t i = range.begin; i < range.end; i += count) {
        const size_t left = patches - i % patches;
        count = range.end - i < at_once ? range.end - i : at_once;
        count = left < count ? left : count;
        call_patches(&run, i / patches, i % patches, count);
    }
}

const struct ifd_acc_algorithm ifd_acc_conv_winograd_q8 = {
    .name = "winograd_q8",
    .label = "",
    .fits = fits,
    .cost = cost,
    .plan = plan,
    .pack = pack,
    .packed_bytes = packed_bytes,
    .workspace_bytes = workspace_bytes,
    .work_bytes = work_bytes,
    .run = run_winograd_q8,
};

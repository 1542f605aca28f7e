/* Winograd's algorithm for 8-bit 3×3 windows: when it pays, its weights, its run. All arithmetic is the kernel's, and exact. */
#include "backends/cpuacc/conv/layer.h"

enum { SIDE = 4 }; /* of a tile */

/* Weights take eight times the memory of the direct way: more than so many second-level caches come too late for the first
 * answer. Those that such a cache does not keep want enough tiles to be read for. */
#define WEIGHTS_CACHES 5
#define TILES_FAR_MIN  40

/* Fewer tiles a thread would be fewer than are multiplied at once. */
#define TILES_THREAD_MIN 4

/* What it should gain at least, for the memory. */
#define GAIN 1.1

/* Cycles of a core that does one vpdpbusd of 64 products each, measured: a tile's transforms for 32 inputs and for 16 outputs of
 * 128 channels, and one of its 36 matrices for 16 outputs. The direct way misses the peak by a twentieth. */
#define INPUT_CYCLES  220.0
#define OUTPUT_CYCLES 200.0
#define MATRIX_CYCLES 8.0
#define DIRECT_CYCLES 1.05

bool ifd_acc_winograd_q8_pays(const struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p)
{
    const struct ifd_low_window *w = &p->window;
    const uint32_t flags = lowering->host->cpu.flags;
    if (!lowering->kernels->wino_q8.run || (flags & IFD_CPU_AMX_INT8) || !p->product.is_q8 ||
        p->product.is_dynamic || p->has_row_add || p->mode != IFD_ACC_CONV_LINES || w->kh != 3 ||
        w->kw != 3 || w->stride_x * w->stride_y != 1 || w->in_c < 16 || p->out_c < 16) {
        return false;
    }
    const size_t tiles =
        ifd_acc_winograd_tiles(w->out_h, SIDE) * ifd_acc_winograd_tiles(w->out_w, SIDE);
    const double in = (double)((w->in_c + 31) / 32), out = (double)((p->out_c + 15) / 16);
    const double k = (double)w->in_c, pixels = (double)(w->out_h * w->out_w);
    const double cycles = in * INPUT_CYCLES + 36 * out * (k / 2 + MATRIX_CYCLES) +
                          out * OUTPUT_CYCLES * (double)(1 + w->in_c / 227);
    const size_t bytes = lowering->kernels->wino_q8.packed_bytes(p->out_c, w->in_c);
    const size_t cache = ifd_acc_cache_bytes(lowering->host);
    return tiles >= (size_t)TILES_THREAD_MIN * lowering->view->max_threads &&
           (double)tiles * cycles * GAIN < pixels * 9 * k * out / 4 * DIRECT_CYCLES &&
           bytes <= (tiles < TILES_FAR_MIN ? cache / 2 : WEIGHTS_CACHES * cache);
}

/* Tiles of a call, the fewer where the work memory of more would fill most of the cache. What the kernel multiplies at once,
 * 6 or 12 for blocks of 64 or 32 columns, divides both. */
#define TILES_MAX 36
#define TILES_MIN 24

void ifd_acc_winograd_q8_choose_tiles(const struct ifd_kernels *kernels,
                                      const struct ifd_host *host, struct ifd_acc_conv *p)
{
    const size_t cache = ifd_acc_cache_bytes(host);
    const size_t bytes = kernels->wino_q8.scratch_bytes(p->out_c, p->window.in_c, TILES_MAX);
    p->tile_rows = bytes <= cache / 4 * 3 ? TILES_MAX : TILES_MIN;
}

void ifd_acc_winograd_q8_pack(const struct ifd_kernels *kernels, const void *context,
                              uint8_t *workspace, uint8_t *packed)
{
    const struct ifd_acc_conv *p = context;
    const size_t k = p->window.in_c;
    const struct ifd_gemm_weights weights = {.w = ifd_acc_product_weights(&p->product, workspace),
                                             .n = p->out_c,
                                             .k = k,
                                             .taps = 9,
                                             .stride_n = 9 * k,
                                             .stride_t = k,
                                             .stride_k = 1};
    const struct ifd_requant requant = ifd_acc_product_requant(&p->product, workspace);
    kernels->wino_q8.pack(&weights, &requant, packed);
}

/* Tiles begin … begin+count-1 of an image, and their tail. */
static void call_tiles(const struct ifd_acc_conv_run *run, size_t image, size_t begin, size_t count)
{
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_low_window *w = &p->window;
    const size_t first_row = image * w->out_h * w->out_w;
    run->step->kernels->wino_q8.run(&(struct ifd_wino_q8_args){
        .packed = run->args.packed,
        .in = (const ifd_q8 *)run->in + image * w->in_h * w->in_w * w->in_c,
        .out = (ifd_q8 *)run->out + first_row * p->out_stride,
        .in_h = w->in_h,
        .in_w = w->in_w,
        .in_pixel_stride = w->in_c,
        .in_line_stride = w->in_w * w->in_c,
        .out_h = w->out_h,
        .out_w = w->out_w,
        .out_pixel_stride = p->out_stride,
        .out_line_stride = w->out_w * p->out_stride,
        .pad_top = (uint32_t)w->pad_top,
        .pad_left = (uint32_t)w->pad_left,
        .tile_begin = begin,
        .tile_count = count,
        .n_end = p->out_c,
        .scratch = run->rest});
    ifd_acc_winograd_tail(run, image, begin, count);
}

void ifd_acc_winograd_q8_run(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *p = run.p;
    const struct ifd_packed *packed = run.args.packed;
    const size_t tiles = ifd_acc_winograd_tiles(p->window.out_h, SIDE) *
                         ifd_acc_winograd_tiles(p->window.out_w, SIDE);
    const size_t all = p->window.batch * tiles;
    const struct ifd_acc_range range =
        ifd_acc_share(frame, all, all < frame->threads * packed->mr ? 2 : packed->mr);
    size_t count = 0;
    for (size_t i = range.begin; i < range.end; i += count) {
        const size_t left = tiles - i % tiles;
        count = range.end - i < p->tile_rows ? range.end - i : p->tile_rows;
        count = left < count ? left : count;
        call_tiles(&run, i / tiles, i % tiles, count);
    }
}

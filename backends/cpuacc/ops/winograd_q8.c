/* Winograd's algorithm for 8-bit 3×3 windows: when it pays, its weights, its run. All arithmetic is the kernel's, and exact. */
#include "backends/cpuacc/ops/conv.h"

enum { SIDE = 4 }; /* of a tile */

static size_t tiles_of(size_t pixels)
{
    return (pixels + SIDE - 1) / SIDE;
}

/* Weights take eight times the memory of the direct way: more than so many second-level caches come too slowly, and too
 * late for the first answer. */
#define WEIGHTS_CACHES 5

/* What it should gain: it was measured less often. */
#define GAIN 1.1

/* Cycles of a core that does one vpdpbusd of 64 products each, measured: a tile's transforms for 32 inputs and for 16 outputs of
 * 128 channels, and one of its 36 matrices for 16 outputs. The direct way misses the peak by a twentieth. */
#define INPUT_CYCLES  220.0
#define OUTPUT_CYCLES 200.0
#define MATRIX_CYCLES 8.0
#define DIRECT_CYCLES 1.05

bool ifd_acc_winograd_q8_pays(const struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p)
{
    const struct ifd_acc_window *w = &p->window;
    const uint32_t flags = lowering->host->cpu.flags;
    if (!lowering->kernels->wino_q8.run || (flags & IFD_CPU_AMX_INT8) || !p->product.is_q8 ||
        p->product.is_dynamic || p->has_row_add || p->mode != IFD_ACC_CONV_LINES || w->kh != 3 ||
        w->kw != 3 || w->stride_x * w->stride_y != 1 || w->in_c < 16 || p->out_c < 16) {
        return false;
    }
    const double tiles = (double)(tiles_of(w->out_h) * tiles_of(w->out_w));
    const double in = (double)((w->in_c + 31) / 32), out = (double)((p->out_c + 15) / 16);
    const double k = (double)w->in_c, pixels = (double)(w->out_h * w->out_w);
    const double cycles = in * INPUT_CYCLES + 36 * out * (k / 2 + MATRIX_CYCLES) +
                          out * OUTPUT_CYCLES * (double)(1 + w->in_c / 227);
    const size_t bytes = lowering->kernels->wino_q8.packed_bytes(p->out_c, w->in_c);
    return tiles * cycles * GAIN < pixels * 9 * k * out / 4 * DIRECT_CYCLES &&
           bytes <= WEIGHTS_CACHES * ifd_acc_cache_bytes(lowering->host);
}

void ifd_acc_winograd_q8_choose_tiles(const struct ifd_kernels *kernels,
                                      const struct ifd_host *host, struct ifd_acc_conv *p)
{
    const size_t line = tiles_of(p->window.out_w), lines = tiles_of(p->window.out_h);
    const size_t cache = ifd_acc_cache_bytes(host) / 2;
    size_t most = 6;
    while (most < 48 &&
           kernels->wino_q8.scratch_bytes(p->out_c, p->window.in_c, most + 6) <= cache) {
        most += 6;
    }
    p->tile_rows = most < line * lines ? most : line * lines;
    p->tile_lines = p->tile_rows > line ? p->tile_rows / line : 1;
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

/* Lines of tiles y … y+count-1 of an image, in calls of about as many tiles each. */
static void call_lines(const struct ifd_acc_conv_run *run, size_t image, size_t y, size_t count)
{
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_acc_window *w = &p->window;
    const size_t line = tiles_of(w->out_w), end = (y + count) * line;
    const size_t calls = (count * line + p->tile_rows - 1) / p->tile_rows;
    const size_t first_row = image * w->out_h * w->out_w, top = y * SIDE;
    const size_t bottom = top + count * SIDE < w->out_h ? top + count * SIDE : w->out_h;
    struct ifd_wino_q8_args args = {
        .packed = run->args.packed,
        .in = (const ifd_q8 *)run->in + image * w->in_h * w->in_w * w->in_c,
        .out = (ifd_q8 *)run->out + p->out_offset + first_row * p->out_stride,
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
        .tile_begin = y * line,
        .n_begin = run->args.n_begin,
        .n_end = run->args.n_end,
        .scratch = run->rest};
    for (size_t i = calls; i > 0; i--, args.tile_begin += args.tile_count) {
        args.tile_count = (end - args.tile_begin + i - 1) / i;
        run->step->kernels->wino_q8.run(&args);
    }
    ifd_acc_conv_tail(run, first_row + top * w->out_w, (bottom - top) * w->out_w);
}

/* This thread's lines of tiles; or, where these are few and do not fall into equal parts, its columns of all lines. */
static struct ifd_acc_range share(struct ifd_acc_conv_run *run, size_t lines)
{
    const struct ifd_acc_frame *frame = run->frame;
    const struct ifd_packed *packed = run->args.packed;
    const size_t threads = frame->threads;
    if (lines >= 8 * threads || lines % threads == 0 || packed->blocks < threads) {
        return ifd_acc_share(frame, lines, 1);
    }
    const struct ifd_acc_range blocks = ifd_acc_share(frame, packed->blocks, 1);
    run->args.n_begin = ifd_packed_column(packed, blocks.begin);
    run->args.n_end = ifd_packed_column(packed, blocks.end);
    return (struct ifd_acc_range){0, blocks.begin < blocks.end ? lines : 0};
}

void ifd_acc_winograd_q8_run(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *p = run.p;
    const size_t lines = tiles_of(p->window.out_h);
    const struct ifd_acc_range range = share(&run, p->window.batch * lines);
    size_t count = 0;
    for (size_t line = range.begin; line < range.end; line += count) {
        const size_t y = line % lines;
        count = range.end - line < p->tile_lines ? range.end - line : p->tile_lines;
        count = lines - y < count ? lines - y : count;
        call_lines(&run, line / lines, y, count);
    }
}

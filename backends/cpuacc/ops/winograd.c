/* Winograd's algorithm for f32 3×3 windows: when it pays, its weights, its run. The transforms are kernels. */
#include "backends/cpuacc/ops/conv.h"

#include <math.h>

size_t ifd_acc_winograd_matrices(const struct ifd_acc_conv *p)
{
    return (p->tile_size + 2) * (p->tile_size + 2);
}

/* Filters that are transformed at once: their matrices stay in the second-level cache until they are packed. */
enum { PART_COLUMNS = 16, PART_INPUTS = 32 };

static void pack_filters(const struct ifd_kernels *kernels, const struct ifd_acc_conv *p, size_t n0,
                         size_t k0, float *matrix, uint8_t *packed)
{
    const size_t n = p->out_c - n0 < PART_COLUMNS ? p->out_c - n0 : PART_COLUMNS;
    const size_t in_c = p->window.in_c, k = in_c - k0 < PART_INPUTS ? in_c - k0 : PART_INPUTS;
    const size_t bytes = kernels->gemm_f32.packed_bytes(p->out_c, in_c, 1);
    const float *filters = p->product.weights;
    kernels->wino.weights(p->tile_size,
                          &(struct ifd_gemm_weights){.w = filters + n0 * 9 * in_c + k0,
                                                     .n = n,
                                                     .k = k,
                                                     .taps = 9,
                                                     .stride_n = 9 * in_c,
                                                     .stride_t = in_c,
                                                     .stride_k = 1},
                          matrix);
    for (size_t t = 0; t < ifd_acc_winograd_matrices(p); t++, matrix += n * k, packed += bytes) {
        const struct ifd_gemm_weights part = {
            .w = matrix, .n = n, .k = k, .taps = 1, .stride_n = k, .stride_t = k, .stride_k = 1};
        kernels->gemm_f32.pack_part(&part, n0, k0, packed);
    }
}

void ifd_acc_winograd_pack(const struct ifd_kernels *kernels, const void *context,
                           uint8_t *workspace, uint8_t *packed)
{
    const struct ifd_acc_conv *p = context;
    const size_t in_c = p->window.in_c;
    const size_t bytes = kernels->gemm_f32.packed_bytes(p->out_c, in_c, 1);
    for (size_t t = 0; t < ifd_acc_winograd_matrices(p); t++) {
        const struct ifd_gemm_weights matrix = {.n = p->out_c, .k = in_c, .taps = 1};
        kernels->gemm_f32.pack(&matrix, NULL, packed + t * bytes);
    }
    for (size_t n0 = 0; n0 < p->out_c; n0 += PART_COLUMNS) {
        for (size_t k0 = 0; k0 < in_c; k0 += PART_INPUTS) {
            pack_filters(kernels, p, n0, k0, (float *)(void *)workspace, packed);
        }
    }
}

/* One call of the transforms: lines of tiles from the first tile line y of an image on. */
static void call_tiles(struct ifd_acc_conv_run *run, const uint8_t *image, size_t y, size_t count,
                       size_t first_row)
{
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_kernels *kernels = run->step->kernels;
    const size_t tiles_x = (p->window.out_w + p->tile_size - 1) / p->tile_size,
                 tiles = count * tiles_x;
    float *inputs = (float *)(void *)run->rest,
          *sums = inputs + ifd_acc_winograd_matrices(p) * tiles * p->window.in_c;
    const struct ifd_packed *packed = run->args.packed;
    struct ifd_wino_args args = {.size = p->tile_size,
                                 .channels = p->window.in_c,
                                 .tiles_x = tiles_x,
                                 .tile_begin = y * tiles_x,
                                 .tile_count = tiles,
                                 .image = (float *)(uintptr_t)image,
                                 .height = p->window.in_h,
                                 .width = p->window.in_w,
                                 .pixel_stride = p->window.in_c,
                                 .line_stride = p->window.in_w * p->window.in_c,
                                 .pad_top = (uint32_t)p->window.pad_top,
                                 .pad_left = (uint32_t)p->window.pad_left,
                                 .matrices = inputs,
                                 .matrix_stride = tiles * p->window.in_c,
                                 .row_stride = p->window.in_c};
    kernels->wino.input(&args);
    const size_t n = run->args.n_begin, columns = run->args.n_end - n;
    const size_t before = n / packed->nr * packed->unit_bytes;
    const size_t block_bytes = ifd_packed_column(packed, 1) / packed->nr * packed->unit_bytes;
    for (size_t t = 0; t < ifd_acc_winograd_matrices(p); t++) {
        const uint8_t *next = (const uint8_t *)packed + packed->bytes;
        kernels->gemm_f32.run(&(struct ifd_gemm_args){
            .packed = packed,
            .a = inputs + t * args.matrix_stride,
            .out = sums + t * tiles * p->out_c,
            .m = tiles,
            .n_begin = n,
            .n_end = run->args.n_end,
            .a_stride = p->window.in_c,
            .out_stride = p->out_c,
            .min = -INFINITY,
            .max = INFINITY,
            .next = t + 1 < ifd_acc_winograd_matrices(p) ? next + before : NULL,
            .next_bytes = block_bytes,
        });
        packed = (const struct ifd_packed *)(const void *)next;
    }
    float *out = (float *)(void *)run->out + p->out_offset + first_row * p->out_stride;
    args.channels = columns;
    args.image = out + n;
    args.height = p->window.out_h;
    args.width = p->window.out_w;
    args.pixel_stride = p->out_stride;
    args.line_stride = p->window.out_w * p->out_stride;
    args.matrices = sums + n;
    args.matrix_stride = tiles * p->out_c;
    args.row_stride = p->out_c;
    args.bias = p->product.bias_f32 ? p->product.bias_f32 + n : NULL;
    args.add = run->add ? (const float *)(const void *)run->add + first_row * p->out_c + n : NULL;
    args.min = p->product.min;
    args.max = p->product.max;
    kernels->wino.output(&args);
    const size_t lines = p->window.out_h - y * p->tile_size;
    ifd_acc_conv_tail(run, first_row + y * p->tile_size * p->window.out_w,
                      (count * p->tile_size < lines ? count * p->tile_size : lines) *
                          p->window.out_w);
}

void ifd_acc_winograd_run(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *p = run.p;
    const size_t tiles_y = (p->window.out_h + p->tile_size - 1) / p->tile_size;
    const struct ifd_acc_range range =
        ifd_acc_conv_share(&run, frame, p->window.batch * tiles_y, 1);
    size_t count = 0;
    for (size_t line = range.begin; line < range.end; line += count) {
        const size_t y = line % tiles_y, b = line / tiles_y;
        count = range.end - line < p->tile_lines ? range.end - line : p->tile_lines;
        count = tiles_y - y < count ? tiles_y - y : count;
        call_tiles(&run, run.in + b * p->window.in_h * p->window.in_w * p->window.in_c * p->element,
                   y, count, b * p->window.out_h * p->window.out_w);
    }
}

/* What a convolution costs, in multiply-accumulates by weight: `products` matrices that meet `rows` rows each, every value
 * in and out of which takes `transform` operations; reading a weight costs as much as some products, more if it comes
 * from beyond the cache. */
static double product_cost(const struct ifd_acc_conv *p, size_t products, size_t rows,
                           double transform, size_t cache)
{
    const bool is_near = products * p->window.in_c * p->out_c * p->element <= cache / 4;
    const double values = 1.0 / (double)p->window.in_c + 1.0 / (double)p->out_c;
    return (double)products * ((double)rows * (1 + transform * values) + (is_near ? 8 : 32));
}

/* Tiles of 4×4 keep four times the weights, tiles of 2×2 less than twice: for them, and the time to pack them, the larger
 * ones should gain this much. */
#define LARGE_TILES_GAIN 1.15

uint32_t ifd_acc_winograd_size(const struct ifd_acc_conv *p, const struct ifd_host *host)
{
    if (p->mode != IFD_ACC_CONV_LINES || p->window.kh * p->window.kw != 9 || p->window.kh != 3 ||
        p->window.stride_x * p->window.stride_y != 1 || p->window.in_c < 32 || p->out_c < 32) {
        return 0;
    }
    const size_t cache = ifd_acc_cache_bytes(host);
    /* only the direct way gains by 16-bit operands */
    const double speed = p->gemm->speed ? (double)p->gemm->speed() : 1.0;
    const double rows = (double)(p->window.out_h * p->window.out_w) / speed;
    double best = product_cost(p, 9, (size_t)rows, 0, cache);
    uint32_t best_size = 0;
    for (uint32_t size = 2; size <= 4; size += 2) {
        const size_t tiles =
            ((p->window.out_h + size - 1) / size) * ((p->window.out_w + size - 1) / size);
        const double cost = product_cost(p, (size + 2) * (size + 2), tiles, 8, cache) *
                            (size == 4 ? LARGE_TILES_GAIN : 1);
        if (tiles >= 12 && cost < best) {
            best = cost;
            best_size = size;
        }
    }
    return best_size;
}

size_t ifd_acc_winograd_pack_bytes(const struct ifd_acc_conv *p, const struct ifd_kernels *kernels)
{
    return ifd_acc_winograd_matrices(p) *
           kernels->gemm_f32.packed_bytes(p->out_c, p->window.in_c, 1);
}

size_t ifd_acc_winograd_pack_workspace(const struct ifd_acc_conv *p)
{
    return ifd_acc_winograd_matrices(p) * PART_COLUMNS * PART_INPUTS * sizeof(float);
}

/* Winograd's algorithm for f32 3×3 windows of stride 1 or 2: when it pays, its weights, its run. The transforms are kernels. */
#include "backends/cpuacc/conv/layer.h"

#include <math.h>

size_t ifd_acc_winograd_matrices(const struct ifd_acc_conv *p)
{
    return (p->tile_size + 2) * (p->tile_size + 2);
}

/* Values along one side of a tile, and of all of it: as many matrices of inputs, and of sums. */
static size_t tile_edge(const struct ifd_acc_conv *p)
{
    return IFD_WINO_EDGE(p->tile_size, p->window.stride_x);
}

static size_t tile_values(const struct ifd_acc_conv *p)
{
    return tile_edge(p) * tile_edge(p);
}

/* Values along one side from i on that meet the same weights: with stride 2 those of the filter's middle come last. */
static size_t values_of(const struct ifd_acc_conv *p, size_t i)
{
    return i <= p->tile_size ? 1 : tile_edge(p) - i;
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
    kernels->wino.weights(p->tile_size, (uint32_t)p->window.stride_x,
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

/* Columns whose sums are transformed back before the next ones are made: then the sums are still in the second-level
 * cache. No block of the kernels is wider. */
enum { COLUMNS_MAX = 64 };

/* Elements of a matrix, up to where the next one begins: an odd number of cache lines, or what belongs to a tile would share
 * a few sets of the first-level cache. */
static size_t matrix_stride(size_t elements)
{
    const size_t line = 64 / sizeof(float);
    return ((elements + line - 1) / line | 1) * line;
}

static size_t input_elements(const struct ifd_acc_conv *p, size_t tiles)
{
    return tile_values(p) * matrix_stride(tiles * p->window.in_c);
}

size_t ifd_acc_winograd_work_bytes(const struct ifd_acc_conv *p)
{
    const size_t columns = p->out_c < COLUMNS_MAX ? p->out_c : COLUMNS_MAX;
    const size_t sums = tile_values(p) * matrix_stride(p->tile_rows * columns);
    return (input_elements(p, p->tile_rows) + sums) * sizeof(float) + IFD_TENSOR_PAD;
}

/* Transformed inputs of a call stay in half of the cache, beside the sums of some columns; but weights are read once a call, and
 * should not take more time than its products. */
size_t ifd_acc_winograd_choose_tiles(const struct ifd_acc_conv *p, const struct ifd_host *host)
{
    const size_t size = p->tile_size, in_c = p->window.in_c, out_c = p->out_c;
    const size_t tiles_x = ifd_acc_winograd_tiles(p->window.out_w, size);
    const size_t tiles_y = ifd_acc_winograd_tiles(p->window.out_h, size);
    const size_t row = tile_values(p) * (in_c + COLUMNS_MAX) * sizeof(float);
    const size_t by_cache = ifd_acc_cache_bytes(host) / 2 / row;
    const size_t by_weights =
        in_c * out_c / (in_c + out_c) / 2 * ifd_acc_winograd_matrices(p) / tile_values(p);
    const size_t most = by_cache > by_weights ? by_cache : by_weights;
    if (most < tiles_x) {
        const size_t parts = (tiles_x + most - 1) / most;
        return (tiles_x + parts - 1) / parts;
    }
    const size_t calls = (tiles_x * tiles_y + most - 1) / most;
    return (tiles_y + calls - 1) / calls * tiles_x;
}

/* Tiles of one call: whole lines of an image, or a part of one. */
struct tiles {
    size_t image, first, count;
    size_t per_line;
};

static void transform_inputs(const struct ifd_acc_conv_run *run, const struct tiles *tiles)
{
    const struct ifd_low_window *w = &run->p->window;
    const size_t line = w->in_w * w->in_c;
    const uint8_t *image = run->in + tiles->image * w->in_h * line * sizeof(float);
    run->step->kernels->wino.input(
        &(struct ifd_wino_args){.size = run->p->tile_size,
                                .stride = (uint32_t)w->stride_x,
                                .channels = w->in_c,
                                .tiles_x = tiles->per_line,
                                .tile_begin = tiles->first,
                                .tile_count = tiles->count,
                                .image = (float *)(uintptr_t)image,
                                .height = w->in_h,
                                .width = w->in_w,
                                .pixel_stride = w->in_c,
                                .line_stride = line,
                                .pad_top = (uint32_t)w->pad_top,
                                .pad_left = (uint32_t)w->pad_left,
                                .matrices = (float *)(void *)run->rest,
                                .matrix_stride = matrix_stride(tiles->count * w->in_c),
                                .row_stride = w->in_c});
}

/* The products of value v of all tiles with columns begin .. end-1; the sums lie behind the inputs. */
static void multiply_value(const struct ifd_acc_conv_run *run, size_t tiles, size_t v,
                           struct ifd_gemm_args *args)
{
    const struct ifd_acc_conv *p = run->p;
    float *work = (float *)(void *)run->rest;
    args->a = work + v * matrix_stride(tiles * p->window.in_c);
    args->out = work + (input_elements(p, tiles) + v * matrix_stride(tiles * args->out_stride) -
                        args->n_begin);
    run->step->kernels->gemm_f32.run(args);
}

static void multiply(const struct ifd_acc_conv_run *run, size_t tiles, size_t begin, size_t end)
{
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_packed *packed = run->args.packed;
    const size_t points = p->tile_size + 2, edge = tile_edge(p), columns = end - begin;
    const size_t before = begin / packed->nr * packed->unit_bytes;
    const size_t bytes = (columns + packed->nr - 1) / packed->nr * packed->unit_bytes;
    const uint8_t *following = (const uint8_t *)packed + before + bytes;
    struct ifd_gemm_args args = {.m = tiles,
                                 .n_begin = begin,
                                 .n_end = end,
                                 .a_stride = p->window.in_c,
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
        for (size_t v = y; v < y + values_of(p, y); v++) {
            for (size_t u = x; u < x + values_of(p, x); u++) {
                multiply_value(run, tiles, v * edge + u, &args);
            }
        }
        packed = (const struct ifd_packed *)(const void *)next;
    }
}

static void transform_sums(const struct ifd_acc_conv_run *run, const struct tiles *tiles,
                           size_t begin, size_t end)
{
    const struct ifd_acc_conv *p = run->p;
    const size_t row = tiles->image * p->window.out_h * p->window.out_w;
    const float *add = (const float *)(const void *)run->add;
    run->step->kernels->wino.output(&(struct ifd_wino_args){
        .size = p->tile_size,
        .stride = (uint32_t)p->window.stride_x,
        .channels = end - begin,
        .tiles_x = tiles->per_line,
        .tile_begin = tiles->first,
        .tile_count = tiles->count,
        .image = (float *)(void *)run->out + row * p->out_stride + begin,
        .height = p->window.out_h,
        .width = p->window.out_w,
        .pixel_stride = p->out_stride,
        .line_stride = p->window.out_w * p->out_stride,
        .matrices = (float *)(void *)run->rest + input_elements(p, tiles->count),
        .matrix_stride = matrix_stride(tiles->count * (end - begin)),
        .row_stride = end - begin,
        .bias = p->product.bias_f32 ? p->product.bias_f32 + begin : NULL,
        .add = add ? add + row * p->out_c + begin : NULL,
        .min = p->product.min,
        .max = p->product.max});
}

void ifd_acc_winograd_tail(const struct ifd_acc_conv_run *run, size_t image, size_t begin,
                           size_t count)
{
    const struct ifd_low_window *w = &run->p->window;
    const size_t size = run->p->tile_size, line = ifd_acc_winograd_tiles(w->out_w, size);
    for (size_t end = begin + count, next = 0; run->p->tail.count && begin < end; begin = next) {
        const size_t y = begin / line * size, x = begin % line * size;
        next = begin - begin % line + line < end ? begin - begin % line + line : end;
        const size_t lines = w->out_h - y < size ? w->out_h - y : size;
        const size_t all = (next - begin) * size, pixels = w->out_w - x < all ? w->out_w - x : all;
        for (size_t i = 0; i < lines; i++) {
            ifd_acc_conv_tail(run, (image * w->out_h + y + i) * w->out_w + x, pixels);
        }
    }
}

/* Columns from begin to before this one, whole blocks, are made at once. */
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

static void call_tiles(const struct ifd_acc_conv_run *run, const struct tiles *tiles)
{
    transform_inputs(run, tiles);
    size_t end = 0;
    for (size_t n = run->args.n_begin; n < run->args.n_end; n = end) {
        end = columns_end(&run->args, n);
        multiply(run, tiles->count, n, end);
        transform_sums(run, tiles, n, end);
    }
    ifd_acc_winograd_tail(run, tiles->image, tiles->first, tiles->count);
}

void ifd_acc_winograd_run(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    struct ifd_acc_conv_run run;
    ifd_acc_conv_begin(&run, step, frame);
    const struct ifd_acc_conv *p = run.p;
    const size_t tiles_y = ifd_acc_winograd_tiles(p->window.out_h, p->tile_size);
    const size_t tiles_x = ifd_acc_winograd_tiles(p->window.out_w, p->tile_size);
    const struct ifd_acc_range range =
        ifd_acc_conv_share(&run, frame, p->window.batch * tiles_y, 1);
    struct tiles tiles = {.per_line = tiles_x};
    for (size_t at = range.begin * tiles_x; at < range.end * tiles_x; at += tiles.count) {
        tiles.image = at / (tiles_x * tiles_y);
        tiles.first = at % (tiles_x * tiles_y);
        const size_t most =
            p->tile_rows < tiles_x ? tiles_x - at % tiles_x : tiles_x * tiles_y - tiles.first;
        tiles.count = range.end * tiles_x - at < most ? range.end * tiles_x - at : most;
        tiles.count = tiles.count < p->tile_rows ? tiles.count : p->tile_rows;
        call_tiles(&run, &tiles);
    }
}

/* What a weight costs, in multiply-accumulates: what reading it takes, from the cache or from beyond, and, with that, the memory
 * and the time before the first answer that packing it takes. */
enum { READ_NEAR = 8, READ_FAR = 9, KEEP_FAR = 32 };

/* What a convolution costs, in multiply-accumulates by weight: `products` rows meet a weight each, every value in and out of
 * which takes `transform` operations; one of `matrices` weights costs far where it comes from beyond the cache. */
static double product_cost(const struct ifd_acc_conv *p, size_t matrices, double products,
                           double transform, size_t cache, int far)
{
    const bool is_near = matrices * p->window.in_c * p->out_c * p->element <= cache / 4;
    const double values = 1.0 / (double)p->window.in_c + 1.0 / (double)p->out_c;
    return products * (1 + transform * values) + (double)matrices * (is_near ? READ_NEAR : far);
}

/* The size that costs least; 0 for none. */
static uint32_t cheapest_size(const struct ifd_acc_conv *p, size_t cache, int far)
{
    const struct ifd_low_window *w = &p->window;
    /* only the direct way gains by 16-bit operands */
    const double speed = p->gemm->speed ? (double)p->gemm->speed() : 1.0;
    const double rows = floor((double)(w->out_h * w->out_w) / speed);
    double best = product_cost(p, 9, 9 * rows, 0, cache, far);
    uint32_t best_size = 0;
    for (uint32_t size = 2; size <= 4; size++) {
        const size_t tiles =
            ifd_acc_winograd_tiles(w->out_h, size) * ifd_acc_winograd_tiles(w->out_w, size);
        const size_t edge = IFD_WINO_EDGE(size, w->stride_x);
        const double products = (double)(edge * edge * tiles);
        const double cost = product_cost(p, (size + 2) * (size + 2), products, 8, cache, far);
        if (tiles >= 12 && cost < best) {
            best = cost;
            best_size = size;
        }
    }
    return best_size;
}

uint32_t ifd_acc_winograd_size(struct ifd_acc_lowering *lowering, const struct ifd_acc_conv *p)
{
    const struct ifd_low_window *w = &p->window;
    if (p->mode != IFD_ACC_CONV_LINES || w->kh != 3 || w->kw != 3 || w->stride_x > 2 ||
        w->stride_x != w->stride_y || w->in_c < 32 || p->out_c < 32) {
        return 0;
    }
    const size_t cache = ifd_acc_cache_bytes(lowering->host);
    const uint32_t size = cheapest_size(p, cache, KEEP_FAR);
    const uint32_t fastest = cheapest_size(p, cache, READ_FAR);
    if (size == 0 || fastest <= size) {
        return size;
    }
    const size_t more = (fastest + 2) * (fastest + 2) - (size + 2) * (size + 2);
    const size_t bytes = more * w->in_c * p->out_c * p->element;
    if (bytes > lowering->spare_bytes) {
        return size;
    }
    lowering->spare_bytes -= bytes;
    return fastest;
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

/* Winograd transforms F(4x4, 3x3) and F(2x2, 3x3) over the vector vocabulary: a vector of channels at
 * a time, first along the lines of a tile, then along its columns. Interpolation points 0, 1, -1, 2,
 * -2 and infinity; 0, 1, -1 and infinity for the smaller. */
#include "backends/cpuacc/kernels.h"
#include "backends/cpuacc/kernels/simd.h"

enum { EDGE_MAX = 6 };

/* Filter transform, in double: it runs once, at load time. */
static const double filter_4[6][3] = {{1.0 / 4, 0, 0},
                                      {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                      {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                      {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                      {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                      {0, 0, 1}};
static const double filter_2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

enum { FILTERS = 16 }; /* transformed at once: neighbours in k */

INLINE void combine(const double g[3], const double *a, const double *b, const double *c,
                    double *out)
{
    for (size_t i = 0; i < FILTERS; i++) {
        out[i] = g[0] * a[i] + g[1] * b[i] + g[2] * c[i];
    }
}

/* count filters from k on, of one output channel; matrices are stride apart. */
static void transform_filters(uint32_t size, const struct ifd_gemm_weights *w, const float *from,
                              size_t count, float *dst, size_t stride)
{
    const size_t edge = size + 2;
    const double(*g)[3] = size == 4 ? filter_4 : filter_2;
    double tap[9][FILTERS] = {{0}}, lines[EDGE_MAX][3][FILTERS], v[FILTERS];
    for (size_t t = 0; t < 9; t++) {
        for (size_t i = 0; i < count; i++) {
            tap[t][i] = from[t * w->stride_t + i * w->stride_k];
        }
    }
    for (size_t y = 0; y < edge; y++) {
        for (size_t x = 0; x < 3; x++) {
            combine(g[y], tap[x], tap[3 + x], tap[6 + x], lines[y][x]);
        }
        for (size_t x = 0; x < edge; x++) {
            combine(g[x], lines[y][0], lines[y][1], lines[y][2], v);
            for (size_t i = 0; i < count; i++) {
                dst[(y * edge + x) * stride + i] = (float)v[i];
            }
        }
    }
}

static void weights(uint32_t size, const struct ifd_gemm_weights *w, float *dst)
{
    for (size_t n = 0; n < w->n; n++) {
        const float *from = (const float *)w->w + n * w->stride_n;
        for (size_t k = 0; k < w->k; k += FILTERS, from += FILTERS * w->stride_k) {
            const size_t count = w->k - k < FILTERS ? w->k - k : FILTERS;
            transform_filters(size, w, from, count, dst + n * w->k + k, w->n * w->k);
        }
    }
}

/* One line of the input transform: in and out are step apart. */
INLINE void input_line(const size_t size, const vf *in, vf *out, const size_t step)
{
    if (size == 2) {
        const vf a = in[0], b = in[step], c = in[2 * step], d = in[3 * step];
        out[0] = vf_sub(a, c);
        out[step] = vf_add(b, c);
        out[2 * step] = vf_sub(c, b);
        out[3 * step] = vf_sub(b, d);
        return;
    }
    const vf a = in[0], b = in[step], c = in[2 * step], d = in[3 * step], e = in[4 * step];
    const vf f = in[5 * step];
    const vf four = vf_set1(4.0f), two = vf_set1(2.0f), less_five = vf_set1(-5.0f);
    const vf less_four = vf_set1(-4.0f);
    const vf even = vf_fma(less_four, c, e), odd = vf_fma(less_four, b, d);
    const vf near = vf_sub(e, c), far = vf_mul(two, vf_sub(d, b));
    out[0] = vf_fma(four, a, vf_fma(less_five, c, e));
    out[step] = vf_add(even, odd);
    out[2 * step] = vf_sub(even, odd);
    out[3 * step] = vf_add(near, far);
    out[4 * step] = vf_sub(near, far);
    out[5 * step] = vf_fma(four, b, vf_fma(less_five, d, f));
}

/* One line of the output transform: in is in_step apart, out out_step. */
INLINE void output_line(const size_t size, const vf *in, const size_t in_step, vf *out,
                        const size_t out_step)
{
    if (size == 2) {
        const vf a = in[0], b = in[in_step], c = in[2 * in_step], d = in[3 * in_step];
        out[0] = vf_add(vf_add(a, b), c);
        out[out_step] = vf_sub(vf_sub(b, c), d);
        return;
    }
    const vf a = in[0], b = in[in_step], c = in[2 * in_step], d = in[3 * in_step],
             e = in[4 * in_step];
    const vf f = in[5 * in_step];
    const vf near_sum = vf_add(b, c), near_gap = vf_sub(b, c);
    const vf far_sum = vf_add(d, e), far_gap = vf_sub(d, e);
    out[0] = vf_add(vf_add(a, near_sum), far_sum);
    out[out_step] = vf_fma(vf_set1(2.0f), far_gap, near_gap);
    out[2 * out_step] = vf_fma(vf_set1(4.0f), far_sum, near_sum);
    out[3 * out_step] = vf_add(vf_fma(vf_set1(8.0f), far_gap, near_gap), f);
}

INLINE vf load_some(const float *p, size_t count)
{
    return count >= VF_LANES ? vf_load(p) : vf_load_n(p, count);
}

INLINE void store_some(float *p, vf v, size_t count)
{
    if (count >= VF_LANES) {
        vf_store(p, v);
    } else {
        vf_store_n(p, v, count);
    }
}

/* The tile whose first pixel is (y0, x0), all channels, into row `row` of the matrices. */
INLINE void input_tile(const struct ifd_wino_args *args, const size_t size, int64_t y0, int64_t x0,
                       float *row)
{
    const size_t edge = size + 2;
    const int64_t height = (int64_t)args->height, width = (int64_t)args->width;
    const int inside =
        y0 >= 0 && x0 >= 0 && y0 + (int64_t)edge <= height && x0 + (int64_t)edge <= width;
    for (size_t c = 0; c < args->channels; c += VF_LANES) {
        const size_t left = args->channels - c;
        vf tile[EDGE_MAX * EDGE_MAX], lines[EDGE_MAX * EDGE_MAX];
        UNROLL for (size_t y = 0; y < edge; y++)
        {
            UNROLL for (size_t x = 0; x < edge; x++)
            {
                const int64_t iy = y0 + (int64_t)y, ix = x0 + (int64_t)x;
                vf v = vf_set1(0.0f);
                if (inside || (iy >= 0 && iy < height && ix >= 0 && ix < width)) {
                    v = load_some(args->image + iy * (int64_t)args->line_stride +
                                      ix * (int64_t)args->pixel_stride + (int64_t)c,
                                  left);
                }
                tile[y * edge + x] = v;
            }
            input_line(size, tile + y * edge, lines + y * edge, 1);
        }
        UNROLL for (size_t x = 0; x < edge; x++)
        {
            input_line(size, lines + x, tile + x, edge);
            UNROLL for (size_t y = 0; y < edge; y++)
            {
                store_some(row + (y * edge + x) * args->matrix_stride + c, tile[y * edge + x],
                           left);
            }
        }
    }
}

INLINE void input_tiles(const struct ifd_wino_args *args, const size_t size)
{
    size_t ty = args->tile_begin / args->tiles_x, tx = args->tile_begin % args->tiles_x;
    for (size_t i = 0; i < args->tile_count; i++) {
        int64_t y0 = (int64_t)(ty * size) - (int64_t)args->pad_top;
        int64_t x0 = (int64_t)(tx * size) - (int64_t)args->pad_left;
        input_tile(args, size, y0, x0, args->matrices + i * args->row_stride);
        if (++tx == args->tiles_x) {
            tx = 0;
            ty++;
        }
    }
}

static void input_2(const struct ifd_wino_args *args)
{
    input_tiles(args, 2);
}

static void input_4(const struct ifd_wino_args *args)
{
    input_tiles(args, 4);
}

static void input(const struct ifd_wino_args *args)
{
    (args->size == 4 ? input_4 : input_2)(args);
}

/* The pixels from (y0, x0) on, as far as they lie in the image. */
INLINE void output_tile(const struct ifd_wino_args *args, const size_t size, size_t y0, size_t x0,
                        const float *row)
{
    const size_t edge = size + 2;
    const size_t rows = args->height - y0 < size ? args->height - y0 : size;
    const size_t columns = args->width - x0 < size ? args->width - x0 : size;
    const vf lo = vf_set1(args->min), hi = vf_set1(args->max);
    for (size_t c = 0; c < args->channels; c += VF_LANES) {
        const size_t left = args->channels - c;
        const vf bias = args->bias ? load_some(args->bias + c, left) : vf_set1(0.0f);
        vf column[EDGE_MAX], lines[4 * EDGE_MAX], pixels[4];
        UNROLL for (size_t x = 0; x < edge; x++)
        {
            UNROLL for (size_t y = 0; y < edge; y++)
            {
                column[y] = load_some(row + (y * edge + x) * args->matrix_stride + c, left);
            }
            output_line(size, column, 1, lines + x, edge);
        }
        UNROLL for (size_t y = 0; y < size; y++)
        {
            output_line(size, lines + y * edge, 1, pixels, 1);
            if (y < rows) {
                const size_t at = (y0 + y) * args->line_stride + x0 * args->pixel_stride + c;
                UNROLL for (size_t x = 0; x < size; x++)
                {
                    if (x < columns) {
                        vf v = vf_add(pixels[x], bias);
                        const size_t pixel = at + x * args->pixel_stride;
                        v = args->add ? vf_add(v, load_some(args->add + pixel, left)) : v;
                        store_some(args->image + pixel, vf_min(hi, vf_max(lo, v)), left);
                    }
                }
            }
        }
    }
}

INLINE void output_tiles(const struct ifd_wino_args *args, const size_t size)
{
    size_t ty = args->tile_begin / args->tiles_x, tx = args->tile_begin % args->tiles_x;
    for (size_t i = 0; i < args->tile_count; i++) {
        output_tile(args, size, ty * size, tx * size, args->matrices + i * args->row_stride);
        if (++tx == args->tiles_x) {
            tx = 0;
            ty++;
        }
    }
}

static void output_2(const struct ifd_wino_args *args)
{
    output_tiles(args, 2);
}

static void output_4(const struct ifd_wino_args *args)
{
    output_tiles(args, 4);
}

static void output(const struct ifd_wino_args *args)
{
    (args->size == 4 ? output_4 : output_2)(args);
}

const struct ifd_kern_wino IFD_TABLE = {weights, input, output};

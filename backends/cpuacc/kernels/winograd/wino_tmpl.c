/* Winograd transforms F(m x m, 3x3), m = 2, 3 and 4, over the vector vocabulary: a vector of
 * channels at a time, first along the lines of a patch, then along its columns. Interpolation
 * points are 0, 1, -1 and infinity, 2 from m = 3 on, and -2 for m = 4; the matrices follow from
 * them as in Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), appendix.
 * With stride 2 the first and third tap meet even inputs, which are F(m, 2): points 0, 1 and
 * infinity, -1 from m = 3 on, and 2 for m = 4. The second meets odd ones, m products. */
#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/simd.h"

enum { PATCH_MAX = 4, POINTS_MAX = PATCH_MAX + 2, EDGE_MAX = 2 * PATCH_MAX + 1 };

/* Filter transforms, in double: they run once, at load time. */
static const double filter_2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
static const double filter_3[5][3] = {{1.0 / 2, 0, 0},
                                      {-1.0 / 2, -1.0 / 2, -1.0 / 2},
                                      {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                      {1.0 / 6, 1.0 / 3, 2.0 / 3},
                                      {0, 0, 1}};
static const double filter_4[6][3] = {{1.0 / 4, 0, 0},
                                      {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                      {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                      {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                      {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                      {0, 0, 1}};
static const double strided_2[4][3] = {{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}};
static const double strided_3[5][3] = {
    {1, 0, 0}, {0.5, 0, 0.5}, {0.5, 0, -0.5}, {0, 0, 1}, {0, 1, 0}};
static const double strided_4[6][3] = {{1.0 / 2, 0, 0},
                                       {-1.0 / 2, 0, -1.0 / 2},
                                       {-1.0 / 6, 0, 1.0 / 6},
                                       {1.0 / 6, 0, 1.0 / 3},
                                       {0, 0, 1},
                                       {0, 1, 0}};
/* By stride and size. */
static const double (*const filters[2][PATCH_MAX + 1])[3] = {
    {[2] = filter_2, [3] = filter_3, [4] = filter_4},
    {[2] = strided_2, [3] = strided_3, [4] = strided_4}};

enum { FILTERS = 16 }; /* transformed at once: neighbours in k */

INLINE void combine(const double g[3], const double *a, const double *b, const double *c,
                    double *out)
{
    for (size_t i = 0; i < FILTERS; i++) {
        out[i] = g[0] * a[i] + g[1] * b[i] + g[2] * c[i];
    }
}

/* count filters from k on, of one output channel; matrices are stride apart. */
static void transform_filters(const double (*g)[3], const size_t edge,
                              const struct ifd_gemm_weights *w, const float *from, size_t count,
                              float *dst, size_t stride)
{
    double tap[9][FILTERS] = {{0}}, lines[POINTS_MAX][3][FILTERS], v[FILTERS];
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

static void weights(uint32_t size, uint32_t stride, const struct ifd_gemm_weights *w, float *dst)
{
    const double(*g)[3] = filters[stride - 1][size];
    for (size_t n = 0; n < w->n; n++) {
        const float *from = (const float *)w->w + n * w->stride_n;
        for (size_t k = 0; k < w->k; k += FILTERS, from += FILTERS * w->stride_k) {
            const size_t count = w->k - k < FILTERS ? w->k - k : FILTERS;
            transform_filters(g, size + 2, w, from, count, dst + n * w->k + k, w->n * w->k);
        }
    }
}

/* ---- lines of the input transform ---- */

INLINE void input_line_2(const vf *in, vf *out)
{
    const vf a = in[0], b = in[1], c = in[2], d = in[3];
    out[0] = vf_sub(a, c);
    out[1] = vf_add(b, c);
    out[2] = vf_sub(c, b);
    out[3] = vf_sub(b, d);
}

INLINE void input_line_3(const vf *in, vf *out)
{
    const vf a = in[0], b = in[1], c = in[2], d = in[3], e = in[4];
    const vf two = vf_set1(2.0f), less_two = vf_set1(-2.0f), gap = vf_sub(d, b);
    out[0] = vf_fma(two, vf_sub(a, c), gap);
    out[1] = vf_fma(less_two, b, vf_sub(d, c));
    out[2] = vf_fma(two, b, vf_fma(vf_set1(-3.0f), c, d));
    out[3] = gap;
    out[4] = vf_fma(less_two, gap, vf_sub(e, c));
}

INLINE void input_line_4(const vf *in, vf *out)
{
    const vf a = in[0], b = in[1], c = in[2], d = in[3], e = in[4];
    const vf f = in[5];
    const vf four = vf_set1(4.0f), two = vf_set1(2.0f), less_five = vf_set1(-5.0f);
    const vf less_four = vf_set1(-4.0f);
    const vf even = vf_fma(less_four, c, e), odd = vf_fma(less_four, b, d);
    const vf near = vf_sub(e, c), far = vf_mul(two, vf_sub(d, b));
    out[0] = vf_fma(four, a, vf_fma(less_five, c, e));
    out[1] = vf_add(even, odd);
    out[2] = vf_sub(even, odd);
    out[3] = vf_add(near, far);
    out[4] = vf_sub(near, far);
    out[5] = vf_fma(four, b, vf_fma(less_five, d, f));
}

/* F(size, 2) of even inputs, then the odd ones: in and out are close together. */
INLINE void strided_input_line(const size_t size, const vf *in, vf *out)
{
    vf even[PATCH_MAX + 1];
    UNROLL for (size_t i = 0; i <= size; i++)
    {
        even[i] = in[2 * i];
    }
    if (size == 2) {
        out[0] = vf_sub(even[0], even[1]);
        out[1] = even[1];
        out[2] = vf_sub(even[2], even[1]);
    } else if (size == 3) {
        input_line_2(even, out);
    } else {
        input_line_3(even, out);
    }
    UNROLL for (size_t i = 0; i < size; i++)
    {
        out[size + 1 + i] = in[2 * i + 1];
    }
}

INLINE void input_line(const size_t size, const size_t stride, const vf *in, vf *out)
{
    if (stride == 2) {
        strided_input_line(size, in, out);
    } else if (size == 2) {
        input_line_2(in, out);
    } else if (size == 3) {
        input_line_3(in, out);
    } else {
        input_line_4(in, out);
    }
}

/* ---- lines of the output transform ---- */

INLINE void output_line_2(const vf *in, vf *out)
{
    out[0] = vf_add(vf_add(in[0], in[1]), in[2]);
    out[1] = vf_sub(vf_sub(in[1], in[2]), in[3]);
}

INLINE void output_line_3(const vf *in, vf *out)
{
    const vf sum = vf_add(in[1], in[2]), far = in[3];
    out[0] = vf_add(vf_add(in[0], sum), far);
    out[1] = vf_fma(vf_set1(2.0f), far, vf_sub(in[1], in[2]));
    out[2] = vf_add(vf_fma(vf_set1(4.0f), far, sum), in[4]);
}

INLINE void output_line_4(const vf *in, vf *out)
{
    const vf near_sum = vf_add(in[1], in[2]), near_gap = vf_sub(in[1], in[2]);
    const vf far_sum = vf_add(in[3], in[4]), far_gap = vf_sub(in[3], in[4]);
    out[0] = vf_add(vf_add(in[0], near_sum), far_sum);
    out[1] = vf_fma(vf_set1(2.0f), far_gap, near_gap);
    out[2] = vf_fma(vf_set1(4.0f), far_sum, near_sum);
    out[3] = vf_add(vf_fma(vf_set1(8.0f), far_gap, near_gap), in[5]);
}

INLINE void strided_output_line(const size_t size, const vf *in, vf *out)
{
    const vf *odd = in + size + 1;
    if (size == 2) {
        out[0] = vf_add(vf_add(in[0], in[1]), odd[0]);
        out[1] = vf_add(vf_add(in[1], in[2]), odd[1]);
        return;
    }
    const vf sum = vf_add(in[1], in[2]), gap = vf_sub(in[1], in[2]);
    if (size == 3) {
        out[0] = vf_add(vf_add(in[0], sum), odd[0]);
        out[1] = vf_add(gap, odd[1]);
        out[2] = vf_add(vf_sub(sum, in[3]), odd[2]);
        return;
    }
    const vf far = in[3];
    out[0] = vf_add(vf_add(in[0], sum), vf_add(far, odd[0]));
    out[1] = vf_fma(vf_set1(2.0f), far, vf_add(gap, odd[1]));
    out[2] = vf_fma(vf_set1(4.0f), far, vf_add(sum, odd[2]));
    out[3] = vf_add(vf_fma(vf_set1(8.0f), far, gap), vf_add(in[4], odd[3]));
}

INLINE void output_line(const size_t size, const size_t stride, const vf *in, vf *out)
{
    if (stride == 2) {
        strided_output_line(size, in, out);
    } else if (size == 2) {
        output_line_2(in, out);
    } else if (size == 3) {
        output_line_3(in, out);
    } else {
        output_line_4(in, out);
    }
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

/* Up to `left` channels from c on of the patch whose first pixel is (y0, x0), into row `row` of the
 * matrices. */
INLINE void input_vector(const struct ifd_wino_args *args, const size_t size, const size_t stride,
                         int64_t y0, int64_t x0, size_t c, size_t left, const int inside,
                         float *row)
{
    const size_t edge = IFD_WINO_EDGE(size, stride);
    const int64_t height = (int64_t)args->height, width = (int64_t)args->width;
    vf in[EDGE_MAX], out[EDGE_MAX], lines[EDGE_MAX * EDGE_MAX];
    UNROLL for (size_t y = 0; y < edge; y++)
    {
        UNROLL for (size_t x = 0; x < edge; x++)
        {
            const int64_t iy = y0 + (int64_t)y, ix = x0 + (int64_t)x;
            in[x] = vf_set1(0.0f);
            if (inside || (iy >= 0 && iy < height && ix >= 0 && ix < width)) {
                in[x] = load_some(args->image + iy * (int64_t)args->line_stride +
                                      ix * (int64_t)args->pixel_stride + (int64_t)c,
                                  left);
            }
        }
        input_line(size, stride, in, lines + y * edge);
    }
    UNROLL for (size_t x = 0; x < edge; x++)
    {
        UNROLL for (size_t y = 0; y < edge; y++)
        {
            in[y] = lines[y * edge + x];
        }
        input_line(size, stride, in, out);
        UNROLL for (size_t y = 0; y < edge; y++)
        {
            store_some(row + (y * edge + x) * args->matrix_stride + c, out[y], left);
        }
    }
}

/* All channels of a patch. */
INLINE void input_patch(const struct ifd_wino_args *args, const size_t size, const size_t stride,
                        int64_t y0, int64_t x0, float *row)
{
    const int64_t edge = (int64_t)IFD_WINO_EDGE(size, stride);
    const int inside = y0 >= 0 && x0 >= 0 && y0 + edge <= (int64_t)args->height &&
                       x0 + edge <= (int64_t)args->width;
    size_t c = 0;
    for (; inside && c + VF_LANES <= args->channels; c += VF_LANES) {
        input_vector(args, size, stride, y0, x0, c, VF_LANES, 1, row);
    }
    for (; c < args->channels; c += VF_LANES) {
        input_vector(args, size, stride, y0, x0, c, args->channels - c, 0, row);
    }
}

INLINE void input_patches(const struct ifd_wino_args *args, const size_t size, const size_t stride)
{
    size_t ty = args->patch_begin / args->patches_x, tx = args->patch_begin % args->patches_x;
    for (size_t i = 0; i < args->patch_count; i++) {
        int64_t y0 = (int64_t)(ty * size * stride) - (int64_t)args->pad_top;
        int64_t x0 = (int64_t)(tx * size * stride) - (int64_t)args->pad_left;
        input_patch(args, size, stride, y0, x0, args->matrices + i * args->row_stride);
        if (++tx == args->patches_x) {
            tx = 0;
            ty++;
        }
    }
}

/* Up to `left` channels of rows x columns pixels, which begin at pixel `at` of the image. */
INLINE void output_vector(const struct ifd_wino_args *args, const size_t size, const size_t stride,
                          size_t at, size_t c, size_t left, size_t rows, size_t columns,
                          const float *row)
{
    const size_t edge = IFD_WINO_EDGE(size, stride);
    const vf lo = vf_set1(args->min), hi = vf_set1(args->max);
    const vf bias = args->bias ? load_some(args->bias + c, left) : vf_set1(0.0f);
    vf column[EDGE_MAX], lines[PATCH_MAX * EDGE_MAX], pixels[PATCH_MAX];
    UNROLL for (size_t x = 0; x < edge; x++)
    {
        UNROLL for (size_t y = 0; y < edge; y++)
        {
            column[y] = load_some(row + (y * edge + x) * args->matrix_stride + c, left);
        }
        output_line(size, stride, column, pixels);
        UNROLL for (size_t y = 0; y < size; y++)
        {
            lines[y * edge + x] = pixels[y];
        }
    }
    UNROLL for (size_t y = 0; y < size; y++)
    {
        output_line(size, stride, lines + y * edge, pixels);
        UNROLL for (size_t x = 0; x < size; x++)
        {
            if (y < rows && x < columns) {
                const size_t pixel = at + y * args->line_stride + x * args->pixel_stride + c;
                vf v = vf_add(pixels[x], bias);
                v = args->add ? vf_add(v, load_some(args->add + pixel, left)) : v;
                store_some(args->image + pixel, vf_min(hi, vf_max(lo, v)), left);
            }
        }
    }
}

/* The pixels from (y0, x0) on, as far as they lie in the image. */
INLINE void output_patch(const struct ifd_wino_args *args, const size_t size, const size_t stride,
                         size_t y0, size_t x0, const float *row)
{
    const size_t rows = args->height - y0 < size ? args->height - y0 : size;
    const size_t columns = args->width - x0 < size ? args->width - x0 : size;
    const size_t at = y0 * args->line_stride + x0 * args->pixel_stride;
    const int is_whole = rows == size && columns == size;
    size_t c = 0;
    for (; is_whole && c + VF_LANES <= args->channels; c += VF_LANES) {
        output_vector(args, size, stride, at, c, VF_LANES, size, size, row);
    }
    for (; c < args->channels; c += VF_LANES) {
        output_vector(args, size, stride, at, c, args->channels - c, rows, columns, row);
    }
}

INLINE void output_patches(const struct ifd_wino_args *args, const size_t size, const size_t stride)
{
    size_t ty = args->patch_begin / args->patches_x, tx = args->patch_begin % args->patches_x;
    for (size_t i = 0; i < args->patch_count; i++) {
        const float *row = args->matrices + i * args->row_stride;
        output_patch(args, size, stride, ty * size, tx * size, row);
        if (++tx == args->patches_x) {
            tx = 0;
            ty++;
        }
    }
}

/* The transforms for patches of one size. */
#define TRANSFORMS(size, stride)                                                                   \
    static void input_##size##_##stride(const struct ifd_wino_args *args)                          \
    {                                                                                              \
        input_patches(args, size, stride);                                                         \
    }                                                                                              \
    static void output_##size##_##stride(const struct ifd_wino_args *args)                         \
    {                                                                                              \
        output_patches(args, size, stride);                                                        \
    }
TRANSFORMS(2, 1)
TRANSFORMS(3, 1)
TRANSFORMS(4, 1)
TRANSFORMS(2, 2)
TRANSFORMS(3, 2)
TRANSFORMS(4, 2)

typedef void (*transform_fn)(const struct ifd_wino_args *);

static void input(const struct ifd_wino_args *args)
{
    static const transform_fn by_size[2][PATCH_MAX + 1] = {
        {[2] = input_2_1, [3] = input_3_1, [4] = input_4_1},
        {[2] = input_2_2, [3] = input_3_2, [4] = input_4_2}};
    by_size[args->stride - 1][args->size](args);
}

static void output(const struct ifd_wino_args *args)
{
    static const transform_fn by_size[2][PATCH_MAX + 1] = {
        {[2] = output_2_1, [3] = output_3_1, [4] = output_4_1},
        {[2] = output_2_2, [3] = output_3_2, [4] = output_4_2}};
    by_size[args->stride - 1][args->size](args);
}

const struct ifd_kern_wino IFD_TABLE = {weights, input, output};

/* Softmax and sums over the vector vocabulary. Sums of floats run in several lanes. */
#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/math_simd.h"

static float max_f32(size_t n, const float *in)
{
    float most = in[0];
    size_t i = 0;
    if (n >= VF_LANES) {
        vf v = vf_load(in);
        for (i = VF_LANES; i + VF_LANES <= n; i += VF_LANES) {
            v = vf_max(v, vf_load(in + i));
        }
        most = vf_reduce_max(v);
    }
    for (; i < n; i++) {
        most = in[i] > most ? in[i] : most;
    }
    return most;
}

static float sum_f32(size_t n, const float *in)
{
    vf a = vf_set1(0.0f), b = a;
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        a = vf_add(a, vf_load(in + i));
        b = vf_add(b, vf_load(in + i + VF_LANES));
    }
    float sum = vf_reduce_add(vf_add(a, b));
    for (; i < n; i++) {
        sum += in[i];
    }
    return sum;
}

/* Sum of (in - mean)^2, in the order of sum_f32(). No product is fused with a sum: the numbers are
 * those of the operators one by one. */
static float square_sum(size_t n, const float *in, float mean)
{
    const vf m = vf_set1(mean);
    vf a = vf_set1(0.0f), b = a;
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        const vf d = vf_sub(vf_load(in + i), m), e = vf_sub(vf_load(in + i + VF_LANES), m);
        a = vf_add(a, vf_mul(d, d));
        b = vf_add(b, vf_mul(e, e));
    }
    float sum = vf_reduce_add(vf_add(a, b));
    for (; i < n; i++) {
        const float d = in[i] - mean, square = d * d;
        sum += square;
    }
    return sum;
}

/* The lanes of a row that begin at i. */
INLINE vf normalized(const struct ifd_normalize_args *args, vf x, size_t i, size_t n, vf mean,
                     vf factor)
{
    x = vf_sub(x, mean);
    x = args->form & IFD_NORMALIZE_DIVIDES ? vf_div(x, factor) : vf_mul(x, factor);
    if (args->scale) {
        x = vf_mul(x, n < VF_LANES ? vf_load_n(args->scale + i, n) : vf_load(args->scale + i));
    }
    if (args->shift) {
        x = vf_add(x, n < VF_LANES ? vf_load_n(args->shift + i, n) : vf_load(args->shift + i));
    }
    return x;
}

static void normalize_row(const struct ifd_normalize_args *args, const float *in, float *out)
{
    const size_t n = args->n;
    const float share = 1.0f / (float)n;
    const float mean = args->form & IFD_NORMALIZE_SQUARES ? 0.0f : sum_f32(n, in) * share;
    const float variance = square_sum(n, in, mean) * share;
    const vf root = vf_sqrt(vf_set1(variance + args->epsilon)), m = vf_set1(mean);
    const vf factor = args->form & IFD_NORMALIZE_DIVIDES ? root : vf_div(vf_set1(1.0f), root);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf_store(out + i, normalized(args, vf_load(in + i), i, VF_LANES, m, factor));
    }
    if (i < n) {
        vf_store_n(out + i, normalized(args, vf_load_n(in + i, n - i), i, n - i, m, factor), n - i);
    }
}

static void normalize_f32(const struct ifd_normalize_args *args)
{
    for (size_t r = 0; r < args->rows; r++) {
        normalize_row(args, args->in + r * args->n, args->out + r * args->n);
    }
}

/* Three passes for every length: the extra read for the maximum hides behind the exponentials.
 * With an online maximum, rows of 16 thousand to 4 million took 1.0 to 1.03 times as long where
 * blocks are scaled at the end, and 1.3 to 1.7 times where exponentials are computed twice (Zen
 * 4, AVX-512 and AVX2). */
static void softmax_row(size_t n, const float *in, float beta, float *out)
{
    const vf most = vf_set1(max_f32(n, in)), factor = vf_set1(beta);
    vf total = vf_set1(0.0f);
    float rest = 0.0f;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf e = math_exp_clamped(vf_mul(factor, vf_sub(vf_load(in + i), most)));
        total = vf_add(total, e);
        vf_store(out + i, e);
    }
    if (i < n) {
        vf e = math_exp_clamped(vf_mul(factor, vf_sub(vf_load_n(in + i, n - i), most)));
        vf_store_n(out + i, e, n - i);
        for (size_t j = i; j < n; j++) {
            rest += out[j];
        }
    }
    const vf share = vf_set1(1.0f / (vf_reduce_add(total) + rest));
    for (i = 0; i + VF_LANES <= n; i += VF_LANES) {
        vf_store(out + i, vf_mul(vf_load(out + i), share));
    }
    if (i < n) {
        vf_store_n(out + i, vf_mul(vf_load_n(out + i, n - i), share), n - i);
    }
}

static void softmax_f32(size_t rows, size_t n, const float *in, size_t in_row, float beta,
                        float *out, size_t out_row)
{
    for (size_t r = 0; r < rows; r++) {
        softmax_row(n, in + r * in_row, beta, out + r * out_row);
    }
}

static void column_sum_f32(size_t rows, size_t n, const float *in, size_t in_row, float factor,
                           float *out)
{
    const vf f = vf_set1(factor);
    for (size_t c = 0; c < n; c += VF_LANES) {
        const size_t left = n - c;
        vf a = vf_set1(0.0f), b = a;
        size_t r = 0;
        if (left >= VF_LANES) {
            for (; r + 2 <= rows; r += 2) {
                a = vf_add(a, vf_load(in + r * in_row + c));
                b = vf_add(b, vf_load(in + (r + 1) * in_row + c));
            }
        }
        for (; r < rows; r++) {
            const float *at = in + r * in_row + c;
            a = vf_add(a, left >= VF_LANES ? vf_load(at) : vf_load_n(at, left));
        }
        a = vf_mul(f, vf_add(a, b));
        if (left >= VF_LANES) {
            vf_store(out + c, a);
        } else {
            vf_store_n(out + c, a, left);
        }
    }
}

enum { SUM_COLUMNS = 64, SUM_COLUMNS_FEW = 16, SUM_ROWS = 8 };

/* A few rows, whose sums fit 16 bits. Plain loops, which the compiler vectorizes; it keeps the
 * sums in memory, so they should be read rarely. */
INLINE void add_rows(const ifd_q8 *in, size_t in_row, const size_t rows, const size_t columns,
                     int16_t *sum)
{
    for (size_t i = 0; i < columns; i++) {
        int16_t x = in[i];
        UNROLL for (size_t r = 1; r < rows; r++)
        {
            x = (int16_t)(x + in[r * in_row + i]);
        }
        sum[i] = (int16_t)(sum[i] + x);
    }
}

INLINE void sum_columns(size_t rows, const size_t columns, const ifd_q8 *in, size_t in_row,
                        int32_t *out)
{
    enum { ROWS_16 = 128 }; /* as many as 16 bits hold */
    int32_t sum[SUM_COLUMNS] = {0};
    while (rows > 0) {
        const size_t count = rows < ROWS_16 ? rows : ROWS_16;
        int16_t part[SUM_COLUMNS] = {0};
        size_t r = 0;
        for (; r + SUM_ROWS <= count; r += SUM_ROWS, in += SUM_ROWS * in_row) {
            add_rows(in, in_row, SUM_ROWS, columns, part);
        }
        for (; r < count; r++, in += in_row) {
            add_rows(in, in_row, 1, columns, part);
        }
        for (size_t i = 0; i < columns; i++) {
            sum[i] += part[i];
        }
        rows -= count;
    }
    __builtin_memcpy(out, sum, columns * sizeof(*sum));
}

static void column_sum_q8(size_t rows, size_t n, const ifd_q8 *in, size_t in_row, int32_t *out)
{
    size_t c = 0;
    for (; c + SUM_COLUMNS <= n; c += SUM_COLUMNS) {
        sum_columns(rows, SUM_COLUMNS, in + c, in_row, out + c);
    }
    for (; c + SUM_COLUMNS_FEW <= n; c += SUM_COLUMNS_FEW) {
        sum_columns(rows, SUM_COLUMNS_FEW, in + c, in_row, out + c);
    }
    for (; c < n; c++) {
        int32_t sum = 0;
        for (size_t r = 0; r < rows; r++) {
            sum += in[r * in_row + c];
        }
        out[c] = sum;
    }
}

const struct ifd_kern_reduce IFD_TABLE = {.softmax_f32 = softmax_f32,
                                          .column_sum_f32 = column_sum_f32,
                                          .column_sum_q8 = column_sum_q8,
                                          .sum_f32 = sum_f32,
                                          .normalize_f32 = normalize_f32};

/* Elementwise q8: LiteRT's fixed-point ADD, SUB and MUL, tables of 256 entries, and conversion
 * from and to f32. */
#include <math.h>
#include <string.h>

#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/simd.h"
#include "engine/tensor/fixed16.h"

/* One double-rounded factor, ready for the formula of pack.c:
 * (floor(x * multiplier / 2^30) + half +- away) >> right. */
struct factor {
    vi multiplier;
    int left, right;
    vi half, away;
};

INLINE struct factor make_factor(int32_t multiplier, int32_t shift)
{
    int exponent = shift < 0 ? -shift : 0;
    /* The formula shifts x by two bits more than the definition. A product has 16 bits, so there
     * is room up to a shift of 13. From 14 on every product but 0 is beyond the clamp, and stays
     * so when the definition's shift wraps: without the two bits it is a quarter, with the right
     * sign. */
    const int spare = shift > 13 ? 0 : 2;
    if (exponent > 29) {
        /* |x| < 2^29, so everything rounds to zero */
        exponent = 1;
        multiplier = 0;
    }
    return (struct factor){.multiplier = vi_set1(multiplier),
                           .left = spare + (shift > 0 ? shift : 0),
                           .right = exponent + 1,
                           .half = vi_set1((int32_t)1 << exponent),
                           .away = vi_set1(exponent > 0 ? -1 : 0)};
}

INLINE vi rescale(vi x, const struct factor *factor)
{
    vi y = vi_mul_high(vi_shl(x, factor->left), factor->multiplier);
    vi away = vi_and(vi_or(vi_sra(y, 31), vi_set1(1)), factor->away);
    return vi_sra(vi_add(vi_add(y, factor->half), away), factor->right);
}

enum kind { ADD, SUB, MUL, BLEND, SCALE, EVEN_ADD, EVEN_MUL };

struct constants {
    struct factor a, b, out;
    vi a_zero, b_zero, out_zero, min, max;
    vi a_factor, b_factor, bias;
    vf scale, a_scale, b_scale, offset;
    int shift;
};

/* a*b + c, rounded once, whatever the instruction set has. */
INLINE vf fused(vf a, vf b, vf c)
{
#if defined(IFD_SIMD_scalar)
    return fmaf(a, b, c);
#elif defined(__arm__)
    const vf y = {fmaf(a[0], b[0], c[0]), fmaf(a[1], b[1], c[1]), fmaf(a[2], b[2], c[2]),
                  fmaf(a[3], b[3], c[3])};
    return y;
#else
    return vf_fma(a, b, c);
#endif
}

/* Conversion wants numbers below 2^22. */
INLINE vi even(const struct constants *k, vf x)
{
    const vf near = vf_min(vf_set1(0x1p21f), vf_max(vf_set1(-0x1p21f), x));
    const vi y = vi_add(vf_to_vi(near), k->out_zero);
    return vi_min(k->max, vi_max(k->min, y));
}

INLINE vi even_add(const struct constants *k, vi a, vi b)
{
    const vf right = fused(vi_to_vf(vi_sub(b, k->b_zero)), k->b_scale, k->offset);
    return even(k, fused(vi_to_vf(vi_sub(a, k->a_zero)), k->a_scale, right));
}

INLINE vi even_mul(const struct constants *k, vi a, vi b)
{
    const vf product = vi_to_vf(vi_mul(vi_sub(a, k->a_zero), vi_sub(b, k->b_zero)));
    return even(k, vf_add(vf_mul(product, k->scale), k->offset));
}

INLINE vi blend(const struct constants *k, vi a, vi b)
{
    vi x = vi_add(vi_mul(a, k->a_factor), vi_mul(b, k->b_factor));
    return vi_min(k->max, vi_max(k->min, vi_sra(vi_add(x, k->bias), k->shift)));
}

INLINE vi scale(const struct constants *k, vi a, vi b)
{
    vi x = vi_mul(vi_sub(a, k->a_zero), vi_sub(b, k->b_zero));
    x = vi_add(vf_to_vi(vf_mul(vi_to_vf(x), k->scale)), k->out_zero);
    return vi_min(k->max, vi_max(k->min, x));
}

INLINE vi compute(enum kind kind, const struct constants *k, vi a, vi b)
{
    if (kind == BLEND) {
        return blend(k, a, b);
    }
    if (kind == SCALE) {
        return scale(k, a, b);
    }
    if (kind == EVEN_ADD) {
        return even_add(k, a, b);
    }
    if (kind == EVEN_MUL) {
        return even_mul(k, a, b);
    }
    a = vi_sub(a, k->a_zero);
    b = vi_sub(b, k->b_zero);
    vi x;
    if (kind == MUL) {
        x = vi_mul(a, b);
    } else {
        a = rescale(vi_shl(a, 20), &k->a);
        b = rescale(vi_shl(b, 20), &k->b);
        x = kind == ADD ? vi_add(a, b) : vi_sub(a, b);
    }
    x = vi_add(rescale(x, &k->out), k->out_zero);
    return vi_min(k->max, vi_max(k->min, x));
}

INLINE void row(enum kind kind, const struct constants *k, size_t n, const ifd_q8 *a,
                const ifd_q8 *b, ifd_q8 *out, const int a_steps, const int b_steps)
{
    const vi a1 = vi_set1(*a), b1 = vi_set1(*b);
    size_t i = 0;
    for (; i + 4 * VF_LANES <= n; i += 4 * VF_LANES) {
        vi x[4] = {a1, a1, a1, a1}, y[4] = {b1, b1, b1, b1};
        if (a_steps) {
            vi_load_q8_4(a + i, x);
        }
        if (b_steps) {
            vi_load_q8_4(b + i, y);
        }
        UNROLL for (size_t j = 0; j < 4; j++)
        {
            x[j] = compute(kind, k, x[j], y[j]);
        }
        vi_store_q8_4(out + i, x);
    }
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vi v = compute(kind, k, a_steps ? vi_load_q8(a + i) : a1, b_steps ? vi_load_q8(b + i) : b1);
        vi_store_q8(out + i, v);
    }
    if (i < n) {
        vi v = compute(kind, k, a_steps ? vi_load_q8(a + i) : a1, b_steps ? vi_load_q8(b + i) : b1);
        vi_store_q8_n(out + i, v, n - i);
    }
}

INLINE void binary(enum kind kind, const struct ifd_q8_binary_args *args)
{
    const struct constants k = {
        .a = make_factor(args->a_multiplier, args->a_shift),
        .b = make_factor(args->b_multiplier, args->b_shift),
        .out = make_factor(args->out_multiplier, args->out_shift),
        .a_zero = vi_set1(args->a_zero),
        .b_zero = vi_set1(args->b_zero),
        .out_zero = vi_set1(args->out_zero),
        .min = vi_set1(args->out_min),
        .max = vi_set1(args->out_max),
        .a_factor = vi_set1(args->a_factor),
        .b_factor = vi_set1(args->b_factor),
        .bias = vi_set1(args->bias),
        .scale = vf_set1(args->scale),
        .a_scale = vf_set1(args->a_scale),
        .b_scale = vf_set1(args->b_scale),
        .offset = vf_set1(args->offset),
        .shift = args->fast_shift,
    };
    const ifd_q8 *a = args->a, *b = args->b;
    ifd_q8 *out = args->out;
    for (size_t r = 0; r < args->rows; r++) {
        if (args->a_step && args->b_step) {
            row(kind, &k, args->n, a, b, out, 1, 1);
        } else if (args->a_step) {
            row(kind, &k, args->n, a, b, out, 1, 0);
        } else {
            row(kind, &k, args->n, a, b, out, 0, args->b_step != 0);
        }
        a += args->a_row;
        b += args->b_row;
        out += args->out_row;
    }
}

static void add_q8(const struct ifd_q8_binary_args *args)
{
    binary(ADD, args);
}

static void sub_q8(const struct ifd_q8_binary_args *args)
{
    binary(SUB, args);
}

static void mul_q8(const struct ifd_q8_binary_args *args)
{
    binary(MUL, args);
}

static void blend_q8(const struct ifd_q8_binary_args *args)
{
    binary(BLEND, args);
}

static void scale_q8(const struct ifd_q8_binary_args *args)
{
    binary(SCALE, args);
}

static void even_add_q8(const struct ifd_q8_binary_args *args)
{
    binary(EVEN_ADD, args);
}

static void even_mul_q8(const struct ifd_q8_binary_args *args)
{
    binary(EVEN_MUL, args);
}

static void lut_8(size_t n, const uint8_t *in, const uint8_t *table, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = table[in[i]];
    }
}

/* Adding the number just below a half and truncating rounds halves away from zero, and rounds
 * nothing else up. Beyond the clamp the exact value does not matter. saturates: without beyond. */
INLINE vi quantize_vector(vf v, struct ifd_q8_beyond beyond, vi zero, const int saturates,
                          const int is_even)
{
    const vf size = vf_from_bits(vi_and(vf_bits(v), vi_set1(INT32_MAX)));
    v = saturates ? v : vf_select(vf_lt(size, vf_set1(beyond.limit)), v, vf_set1(beyond.steps));
    const vf least = vf_set1(-1e6f); /* NaN, too */
    v = vf_min(vf_set1(1e6f), is_even ? vf_select(vf_lt(least, v), v, least) : vf_max(least, v));
    vi sign = vi_and(vf_bits(v), vi_set1(INT32_MIN));
    vf half = vf_from_bits(vi_or(vf_bits(vf_set1(0x1.fffffep-2f)), sign));
    vi q = vi_add(is_even ? vf_to_vi(v) : vf_trunc(vf_add(v, half)), zero);
    return vi_min(vi_set1(IFD_Q8_MAX), vi_max(vi_set1(IFD_Q8_MIN), q));
}

enum { QUANTIZED = 8 * VF_LANES };

/* A block of in / scale, by a factor, which takes less time. Between the bounds of the results,
 * which are below 2^8, that is less than 2^-14 off the quotient: false if one of them is as near to
 * a half, where rounding could tell. */
INLINE int quantize_block(const float *in, vf factor, vi zero, vf min, vf max, ifd_q8 *out)
{
    vf most = vf_set1(0.0f);
    UNROLL for (size_t i = 0; i < QUANTIZED; i += 4 * VF_LANES)
    {
        vi q[4];
        UNROLL for (size_t j = 0; j < 4; j++)
        {
            const vf y = vf_mul(vf_load(in + i + j * VF_LANES), factor);
            const vf x = vf_min(vf_max(y, min), max);
            q[j] = vf_to_vi(x);
            const vf off = vf_sub(x, vi_to_vf(q[j]));
            most = vf_max(most, vf_from_bits(vi_and(vf_bits(off), vi_set1(INT32_MAX))));
            q[j] = vi_add(q[j], zero);
        }
        vi_store_q8_4(out + i, q);
    }
    return vf_reduce_max(most) < 0.5f - 0x1p-14f;
}

/* Numbers are divided, or multiplied by a factor. Pictures whose pixels all become halves are
 * usual: after two blocks of such, the rest is not tried. Halves that go away from zero belong to
 * models whose quotients may be beyond 32 bits: these are all divided. */
INLINE void quantize_all(size_t n, const float *in, float by, int32_t zero,
                         struct ifd_q8_beyond beyond, ifd_q8 *out, const int is_factor,
                         const int is_even)
{
    const vf s = vf_set1(by), factor = vf_set1(1 / by);
    const vf min = vf_set1((float)(IFD_Q8_MIN - zero)), max = vf_set1((float)(IFD_Q8_MAX - zero));
    const vi z = vi_set1(zero);
    int tries = is_even && by > 0x1p-100f && by < 0x1p100f ? 2 : 0;
    for (size_t i = 0; i < n;) {
        if (tries > 0 && n - i >= QUANTIZED) {
            if (quantize_block(in + i, factor, z, min, max, out + i)) {
                i += QUANTIZED;
                tries = 2;
                continue;
            }
            tries--;
        }
        const size_t end = n - i < QUANTIZED ? n : i + QUANTIZED;
        for (; i < end; i += VF_LANES) {
            const vf x = end - i < VF_LANES ? vf_load_n(in + i, end - i) : vf_load(in + i);
            const vi q = quantize_vector(is_factor ? vf_mul(x, s) : vf_div(x, s), beyond, z,
                                         is_factor || is_even, is_even);
            if (end - i < VF_LANES) {
                vi_store_q8_n(out + i, q, end - i);
            } else {
                vi_store_q8(out + i, q);
            }
        }
    }
}

static void quantize(size_t n, const float *in, float scale, int32_t zero,
                     struct ifd_q8_beyond beyond, ifd_q8 *out)
{
    quantize_all(n, in, scale, zero, beyond, out, 0, 0);
}

static void quantize_even(size_t n, const float *in, float scale, int32_t zero,
                          struct ifd_q8_beyond beyond, ifd_q8 *out)
{
    quantize_all(n, in, scale, zero, beyond, out, 0, 1);
}

static void quantize_by(size_t n, const float *in, float factor, int32_t zero, ifd_q8 *out)
{
    quantize_all(n, in, factor, zero, (struct ifd_q8_beyond){0}, out, 1, 0);
}

static void dequantize(size_t n, const ifd_q8 *in, float scale, int32_t zero, float *out)
{
    const vf s = vf_set1(scale);
    const vi z = vi_set1(zero);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf_store(out + i, vf_mul(vi_to_vf(vi_sub(vi_load_q8(in + i), z)), s));
    }
    if (i < n) {
        vf_store_n(out + i, vf_mul(vi_to_vf(vi_sub(vi_load_q8(in + i), z)), s), n - i);
    }
}

static void range(size_t n, const float *in, float *ret_min, float *ret_max)
{
    vf least = vf_set1(0.0f), most = vf_set1(0.0f);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        const vf x = vf_load(in + i);
        least = vf_min(x, least);
        most = vf_max(x, most);
    }
    *ret_min = -vf_reduce_max(vf_sub(vf_set1(0.0f), least));
    *ret_max = vf_reduce_max(most);
    for (; i < n; i++) {
        *ret_min = in[i] < *ret_min ? in[i] : *ret_min;
        *ret_max = in[i] > *ret_max ? in[i] : *ret_max;
    }
}

INLINE vf rescale_vector(const struct ifd_rescale_args *args, vf sums, size_t c)
{
    const vi offset = vf_bits(vf_load((const float *)(const void *)(args->offset + c)));
    vf x = vf_mul(vi_to_vf(vi_sub(vf_bits(sums), offset)), vf_load(args->scale + c));
    x = vf_add(x, vf_load(args->bias + c));
    return vf_min(vf_max(x, vf_set1(args->min)), vf_set1(args->max));
}

static void rescale_sums(const struct ifd_rescale_args *args)
{
    for (size_t r = 0; r < args->rows; r++) {
        const float *in = (const float *)(const void *)args->sums + r * args->row;
        float *out = args->out + r * args->row;
        size_t c = 0;
        for (; c + VF_LANES <= args->n; c += VF_LANES) {
            vf_store(out + c, rescale_vector(args, vf_load(in + c), c));
        }
        if (c < args->n) {
            const vf x = rescale_vector(args, vf_load_n(in + c, args->n - c), c);
            vf_store_n(out + c, x, args->n - c);
        }
    }
}

/* Vectors without the instructions for them would be the largest function of the table. */
#if defined(IFD_SIMD_scalar)
__attribute__((noinline)) static int16_t one_16(int16_t x, int bits, int is_tanh)
#else
INLINE int16_t one_16(int16_t x, int bits, int is_tanh)
#endif
{
    return ifd_fixed16_function(x, bits, -is_tanh);
}

/* A block at a time: the compiler makes vectors of its loop, and nothing for what would be left
 * over. */
static void function_16(size_t n, const int16_t *in, int bits, int is_tanh, int16_t *out)
{
    enum { BLOCK = 32 };
    int16_t block[BLOCK] = {0};
    for (size_t i = 0; i < n; i += BLOCK) {
        const size_t count = n - i < BLOCK ? n - i : BLOCK;
        memcpy(block, in + i, count * sizeof(*in));
        for (size_t k = 0; k < BLOCK; k++) {
            block[k] = one_16(block[k], bits, is_tanh);
        }
        memcpy(out + i, block, count * sizeof(*out));
    }
}

const struct ifd_kern_quant IFD_TABLE = {
    add_q8,   sub_q8,        mul_q8,     blend_q8,    scale_q8, even_add_q8,  even_mul_q8, lut_8,
    quantize, quantize_even, dequantize, quantize_by, range,    rescale_sums, function_16};

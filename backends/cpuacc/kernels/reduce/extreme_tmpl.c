/* Largest and smallest values of rows and columns, and where they are. */
#include <string.h>

#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/simd.h"

/* ---- f32: the smallest is the largest with the other sign ---- */

INLINE vf larger(const float *in, vf sign, vf held)
{
    const vf x = vf_mul(vf_load(in), sign);
    return vf_select(vf_lt(held, x), x, held);
}

/* NaN is left out. */
static float extreme_of_row(size_t n, const float *in, float sign)
{
    float lane[VF_LANES], most = -__builtin_inff();
    const vf s = vf_set1(sign);
    vf a = vf_set1(most), b = a;
    size_t i = 0;
    for (; i + 2 * VF_LANES <= n; i += 2 * VF_LANES) {
        a = larger(in + i, s, a);
        b = larger(in + i + VF_LANES, s, b);
    }
    vf_store(lane, vf_select(vf_lt(a, b), b, a));
    for (size_t k = 0; k < VF_LANES; k++) {
        most = lane[k] > most ? lane[k] : most;
    }
    for (; i < n; i++) {
        most = in[i] * sign > most ? in[i] * sign : most;
    }
    return most * sign;
}

/* A NaN in front stays. */
static int32_t arg_of_row(size_t n, const float *in, float sign)
{
    const float most = extreme_of_row(n, in, sign);
    size_t i = 0, best = 0;
    while (i < n && in[0] == in[0] && in[i] != most) {
        i++;
    }
    if (i < n) {
        return (int32_t)i;
    }
    for (i = 1; i < n; i++) { /* vectors of 32-bit Arm make zeros of what is below normal numbers */
        best = in[i] * sign > in[best] * sign ? i : best;
    }
    return (int32_t)best;
}

/* The first n lanes. */
INLINE void store(float *out, vf x, size_t n)
{
    if (n < VF_LANES) {
        vf_store_n(out, x, n);
    } else {
        vf_store(out, x);
    }
}

/* The columns that begin at in, of which n are left. */
static void extreme_of_columns(const struct ifd_extreme_args *args, const float *in, float sign,
                               size_t n, float *out)
{
    const vf s = vf_set1(sign);
    vf most = vf_set1(-__builtin_inff());
    for (size_t k = 0; k < args->count; k++, in += args->row) {
        most = larger(in, s, most);
    }
    store(out, vf_mul(most, s), n);
}

static void arg_of_columns(const struct ifd_extreme_args *args, const float *in, float sign,
                           size_t n, int32_t *out)
{
    const vf s = vf_set1(sign);
    vf most = vf_mul(vf_load(in), s), at = vf_from_bits(vi_set1(0));
    for (size_t k = 1; k < args->count; k++) {
        in += args->row;
        const vf x = vf_mul(vf_load(in), s);
        const vm takes = vf_lt(most, x);
        most = vf_select(takes, x, most);
        at = vf_select(takes, vf_from_bits(vi_set1((int32_t)k)), at);
    }
    store((float *)(void *)out, at, n);
}

static void f32(const struct ifd_extreme_args *args)
{
    const float *in = args->in, sign = args->is_min ? -1.0f : 1.0f;
    float *out = args->out;
    if (args->row == 1) {
        out[0] = extreme_of_row(args->count, in, sign);
        return;
    }
    for (size_t c = 0; c < args->n; c += VF_LANES) {
        const size_t left = args->n - c;
        extreme_of_columns(args, in + c, sign, left, out + c);
    }
}

static void arg_f32(const struct ifd_extreme_args *args)
{
    const float *in = args->in, sign = args->is_min ? -1.0f : 1.0f;
    int32_t *out = args->out;
    if (args->row == 1) {
        out[0] = arg_of_row(args->count, in, sign);
        return;
    }
    for (size_t c = 0; c < args->n; c += VF_LANES) {
        const size_t left = args->n - c;
        arg_of_columns(args, in + c, sign, left, out + c);
    }
}

/* ---- 8 bits: the smallest is the largest of complements ---- */

static ifd_q8 extreme_of_row_q8(size_t n, const ifd_q8 *in, const ifd_q8 flip)
{
    ifd_q8 most = IFD_Q8_MIN;
    for (size_t i = 0; i < n; i++) {
        const ifd_q8 x = in[i] ^ flip;
        most = x > most ? x : most;
    }
    return most ^ flip;
}

static void q8(const struct ifd_extreme_args *args)
{
    const ifd_q8 flip = args->is_min ? (ifd_q8)~0 : 0;
    const ifd_q8 *in = args->in;
    ifd_q8 *out = args->out;
    if (args->row == 1) {
        out[0] = extreme_of_row_q8(args->count, in, flip);
        return;
    }
    for (size_t c = 0; c < args->n; c += VF_LANES) {
        const size_t left = args->n - c;
        vi most = vi_load_q8(in + c);
        for (size_t k = 1; k < args->count; k++) {
            const vi x = vi_load_q8(in + k * args->row + c);
            most = args->is_min ? vi_min(x, most) : vi_max(x, most);
        }
        vi_store_q8_n(out + c, most, left < VF_LANES ? left : VF_LANES);
    }
}

static void arg_q8(const struct ifd_extreme_args *args)
{
    const ifd_q8 flip = args->is_min ? (ifd_q8)~0 : 0;
    const ifd_q8 *in = args->in;
    int32_t *out = args->out;
    if (args->row == 1) {
        const ifd_q8 most = extreme_of_row_q8(args->count, in, flip);
        out[0] = (int32_t)((const ifd_q8 *)memchr(in, (uint8_t)most, args->count) - in);
        return;
    }
    for (size_t c = 0; c < args->n; c++) {
        int32_t at = 0;
        for (size_t k = 1; k < args->count; k++) {
            const ifd_q8 x = in[k * args->row + c] ^ flip;
            at = x > (ifd_q8)(in[(size_t)at * args->row + c] ^ flip) ? (int32_t)k : at;
        }
        out[c] = at;
    }
}

const struct ifd_kern_extreme IFD_TABLE = {
    .f32 = f32, .q8 = q8, .arg_f32 = arg_f32, .arg_q8 = arg_q8};

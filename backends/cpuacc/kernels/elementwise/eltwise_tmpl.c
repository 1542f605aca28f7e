/* Elementwise f32 over the vector vocabulary. */
#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/math_simd.h"

INLINE vf apply_binary(enum ifd_binary op, vf a, vf b)
{
    switch (op) {
    case IFD_BINARY_ADD:
        return vf_add(a, b);
    case IFD_BINARY_SUB:
        return vf_sub(a, b);
    case IFD_BINARY_MUL:
        return vf_mul(a, b);
    case IFD_BINARY_DIV:
        return vf_div(a, b);
    case IFD_BINARY_MIN:
        return vf_min(a, b);
    case IFD_BINARY_MAX:
        return vf_max(a, b);
    case IFD_BINARY_SQUARED_DIFFERENCE:
        return vf_mul(vf_sub(a, b), vf_sub(a, b));
    case IFD_BINARY_COUNT:
        break;
    }
    return a;
}

/* One row; operands with step 0 are already in every lane of a1 or b1. */
INLINE void binary_row(enum ifd_binary op, const struct ifd_binary_args *args, const float *a,
                       const float *b, float *out, const int a_steps, const int b_steps)
{
    const size_t n = args->n;
    const vf lo = vf_set1(args->min), hi = vf_set1(args->max);
    const vf a1 = vf_broadcast(a), b1 = vf_broadcast(b);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf v = apply_binary(op, a_steps ? vf_load(a + i) : a1, b_steps ? vf_load(b + i) : b1);
        vf_store(out + i, vf_min(hi, vf_max(lo, v)));
    }
    if (i < n) {
        vf v = apply_binary(op, a_steps ? vf_load_n(a + i, n - i) : a1,
                            b_steps ? vf_load_n(b + i, n - i) : b1);
        vf_store_n(out + i, vf_min(hi, vf_max(lo, v)), n - i);
    }
}

INLINE void binary(enum ifd_binary op, const struct ifd_binary_args *args)
{
    const float *a = args->a, *b = args->b;
    float *out = args->out;
    for (size_t r = 0; r < args->rows; r++) {
        if (args->a_step && args->b_step) {
            binary_row(op, args, a, b, out, 1, 1);
        } else if (args->a_step) {
            binary_row(op, args, a, b, out, 1, 0);
        } else {
            binary_row(op, args, a, b, out, 0, args->b_step != 0);
        }
        a += args->a_row;
        b += args->b_row;
        out += args->out_row;
    }
}

#define BINARY(name, op)                                                                           \
    static void binary_##name(const struct ifd_binary_args *args)                                  \
    {                                                                                              \
        binary(op, args);                                                                          \
    }
BINARY(add, IFD_BINARY_ADD)
BINARY(sub, IFD_BINARY_SUB)
BINARY(mul, IFD_BINARY_MUL)
BINARY(div, IFD_BINARY_DIV)
BINARY(min, IFD_BINARY_MIN)
BINARY(max, IFD_BINARY_MAX)
BINARY(squared_difference, IFD_BINARY_SQUARED_DIFFERENCE)
#undef BINARY

/* y where x has digits behind the point, else x, which may be no number. */
INLINE vf whole(vf x, vf y)
{
    return vf_select(vf_lt(math_abs(x), vf_set1(0x1p23f)), y, x);
}

INLINE vf apply_unary(enum ifd_unary op, vf x, vf p0, vf p1)
{
    const vf zero = vf_set1(0.0f), one = vf_set1(1.0f);
    switch (op) {
    case IFD_UNARY_CLAMP:
        return vf_min(p1, vf_max(p0, x));
    case IFD_UNARY_ABS:
        return math_abs(x);
    case IFD_UNARY_NEG:
        return vf_mul(x, vf_set1(-1.0f));
    case IFD_UNARY_SQUARE:
        return vf_mul(x, x);
    case IFD_UNARY_SQRT:
        return vf_sqrt(x);
    case IFD_UNARY_RSQRT:
        return vf_div(one, vf_sqrt(x));
    case IFD_UNARY_EXP:
        return math_exp(x);
    case IFD_UNARY_LOGISTIC:
        return math_logistic(x);
    case IFD_UNARY_TANH:
        return math_tanh(x);
    case IFD_UNARY_HARDSWISH: {
        vf gate = vf_min(vf_set1(6.0f), vf_max(zero, vf_add(x, vf_set1(3.0f))));
        return vf_mul(vf_mul(x, gate), vf_set1(1.0f / 6.0f));
    }
    case IFD_UNARY_HARDSIGMOID:
        return vf_min(one, vf_max(zero, vf_fma(p0, x, p1)));
    case IFD_UNARY_LEAKY_RELU:
        return vf_select(vf_lt(x, zero), vf_mul(p0, x), x);
    case IFD_UNARY_ELU:
        return vf_select(vf_lt(x, zero), vf_mul(p0, vf_sub(math_exp_clamped(x), one)), x);
    case IFD_UNARY_SILU:
        return vf_mul(x, math_logistic(x));
    case IFD_UNARY_GELU_TANH: {
        vf cube = vf_mul(vf_mul(x, x), vf_mul(x, vf_set1(0.044715f)));
        vf t = math_tanh(vf_mul(vf_set1(0.797884561f), vf_add(x, cube)));
        return vf_mul(vf_mul(vf_set1(0.5f), x), vf_add(one, t));
    }
    case IFD_UNARY_LOG:
        return math_log(x);
    case IFD_UNARY_ROUND:
        return whole(x, vi_to_vf(vf_to_vi(x)));
    case IFD_UNARY_FLOOR: {
        const vf near = vi_to_vf(vf_to_vi(x));
        return whole(x, vf_sub(near, vf_select(vf_lt(x, near), one, zero)));
    }
    case IFD_UNARY_CEIL: {
        const vf near = vi_to_vf(vf_to_vi(x));
        return whole(x, vf_add(near, vf_select(vf_lt(near, x), one, zero)));
    }
    case IFD_UNARY_TRUNC: {
        const vf y = whole(x, vi_to_vf(vf_trunc(x)));
        return vf_select(vf_lt(x, zero), y, vf_select(vf_lt(zero, x), y, zero));
    }
    case IFD_UNARY_ERF:
        return math_erf(x);
    case IFD_UNARY_GELU:
        return vf_mul(x, math_normal(x));
    case IFD_UNARY_AFFINE:
        return vf_fma(p0, x, p1);
    case IFD_UNARY_COUNT:
        break;
    }
    return x;
}

INLINE void unary(enum ifd_unary op, size_t n, const float *in, float *out, float p0, float p1)
{
    const vf v0 = vf_set1(p0), v1 = vf_set1(p1);
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES) {
        vf_store(out + i, apply_unary(op, vf_load(in + i), v0, v1));
    }
    if (i < n) {
        vf_store_n(out + i, apply_unary(op, vf_load_n(in + i, n - i), v0, v1), n - i);
    }
}

#define UNARY(name, op)                                                                            \
    static void unary_##name(size_t n, const float *in, float *out, float p0, float p1)            \
    {                                                                                              \
        unary(op, n, in, out, p0, p1);                                                             \
    }
UNARY(clamp, IFD_UNARY_CLAMP)
UNARY(abs, IFD_UNARY_ABS)
UNARY(neg, IFD_UNARY_NEG)
UNARY(square, IFD_UNARY_SQUARE)
UNARY(sqrt, IFD_UNARY_SQRT)
UNARY(rsqrt, IFD_UNARY_RSQRT)
UNARY(exp, IFD_UNARY_EXP)
UNARY(logistic, IFD_UNARY_LOGISTIC)
UNARY(tanh, IFD_UNARY_TANH)
UNARY(hardswish, IFD_UNARY_HARDSWISH)
UNARY(hardsigmoid, IFD_UNARY_HARDSIGMOID)
UNARY(leaky_relu, IFD_UNARY_LEAKY_RELU)
UNARY(elu, IFD_UNARY_ELU)
UNARY(silu, IFD_UNARY_SILU)
UNARY(gelu_tanh, IFD_UNARY_GELU_TANH)
UNARY(affine, IFD_UNARY_AFFINE)
UNARY(log, IFD_UNARY_LOG)
UNARY(round, IFD_UNARY_ROUND)
UNARY(floor, IFD_UNARY_FLOOR)
UNARY(ceil, IFD_UNARY_CEIL)
UNARY(trunc, IFD_UNARY_TRUNC)
UNARY(erf, IFD_UNARY_ERF)
UNARY(gelu, IFD_UNARY_GELU)
#undef UNARY

static void prelu(size_t rows, size_t n, const float *in, size_t in_row, const float *slope,
                  float *out, size_t out_row)
{
    const vf zero = vf_set1(0.0f);
    for (size_t r = 0; r < rows; r++, in += in_row, out += out_row) {
        size_t i = 0;
        for (; i + VF_LANES <= n; i += VF_LANES) {
            vf x = vf_load(in + i);
            vf_store(out + i, vf_select(vf_lt(x, zero), vf_mul(x, vf_load(slope + i)), x));
        }
        if (i < n) {
            vf x = vf_load_n(in + i, n - i);
            x = vf_select(vf_lt(x, zero), vf_mul(x, vf_load_n(slope + i, n - i)), x);
            vf_store_n(out + i, x, n - i);
        }
    }
}

/* As many rows as there are registers for their sums, two vectors each. */
#define MATMUL_ROWS (VF_REGISTERS >= 32 ? 8 : 4)

/* Columns from c on, vecs vectors of them, of rows <= tall rows; of the last vector only `last`
 * columns if that is not 0. Rows beyond the last repeat it. */
INLINE void matmul_block(const struct ifd_matmul_args *p, size_t i, size_t rows, size_t c,
                         const size_t tall, const size_t vecs, size_t last)
{
    vf sum[8][2];
    const float *a[8];
    UNROLL for (size_t r = 0; r < tall; r++)
    {
        a[r] = p->a + (i + (r < rows ? r : rows - 1)) * p->a_row;
        UNROLL for (size_t v = 0; v < vecs; v++)
        {
            sum[r][v] = vf_set1(0.0f);
        }
    }
    const float *b = p->b + c;
    for (size_t l = 0; l < p->k; l++, b += p->b_row) {
        vf column[2];
        UNROLL for (size_t v = 0; v < vecs; v++)
        {
            column[v] = last > 0 && v + 1 == vecs ? vf_load_n(b + v * VF_LANES, last)
                                                  : vf_load(b + v * VF_LANES);
        }
        UNROLL for (size_t r = 0; r < tall; r++)
        {
            const vf x = vf_set1(a[r][l * p->a_step]);
            UNROLL for (size_t v = 0; v < vecs; v++)
            {
                sum[r][v] = vf_fma(x, column[v], sum[r][v]);
            }
        }
    }
    UNROLL for (size_t r = 0; r < tall; r++)
    {
        if (r < rows) {
            float *out = p->out + (i + r) * p->n + c;
            if (vecs == 2) {
                vf_store(out, sum[r][0]);
            }
            if (last > 0) {
                vf_store_n(out + (vecs - 1) * VF_LANES, sum[r][vecs - 1], last);
            } else {
                vf_store(out + (vecs - 1) * VF_LANES, sum[r][vecs - 1]);
            }
        }
    }
}

INLINE void matmul_rows(const struct ifd_matmul_args *p, size_t i, size_t rows, const size_t tall)
{
    size_t c = 0;
    for (; c + 2 * VF_LANES <= p->n; c += 2 * VF_LANES) {
        matmul_block(p, i, rows, c, tall, 2, 0);
    }
    if (c + VF_LANES < p->n) {
        matmul_block(p, i, rows, c, tall, 2, p->n - c - VF_LANES);
    } else if (c < p->n) {
        matmul_block(p, i, rows, c, tall, 1, (p->n - c) % VF_LANES);
    }
}

static void matmul(const struct ifd_matmul_args *p)
{
    size_t i = 0;
    for (; i + 4 < p->m; i += MATMUL_ROWS) {
        const size_t left = p->m - i;
        matmul_rows(p, i, left < MATMUL_ROWS ? left : MATMUL_ROWS, MATMUL_ROWS);
    }
    if (i < p->m) {
        matmul_rows(p, i, p->m - i, 4);
    }
}

const struct ifd_kern_eltwise IFD_TABLE = {
    .binary = {[IFD_BINARY_ADD] = binary_add,
               [IFD_BINARY_SUB] = binary_sub,
               [IFD_BINARY_MUL] = binary_mul,
               [IFD_BINARY_DIV] = binary_div,
               [IFD_BINARY_MIN] = binary_min,
               [IFD_BINARY_MAX] = binary_max,
               [IFD_BINARY_SQUARED_DIFFERENCE] = binary_squared_difference},
    .unary = {[IFD_UNARY_CLAMP] = unary_clamp,
              [IFD_UNARY_ABS] = unary_abs,
              [IFD_UNARY_NEG] = unary_neg,
              [IFD_UNARY_SQUARE] = unary_square,
              [IFD_UNARY_SQRT] = unary_sqrt,
              [IFD_UNARY_RSQRT] = unary_rsqrt,
              [IFD_UNARY_EXP] = unary_exp,
              [IFD_UNARY_LOGISTIC] = unary_logistic,
              [IFD_UNARY_TANH] = unary_tanh,
              [IFD_UNARY_HARDSWISH] = unary_hardswish,
              [IFD_UNARY_HARDSIGMOID] = unary_hardsigmoid,
              [IFD_UNARY_LEAKY_RELU] = unary_leaky_relu,
              [IFD_UNARY_ELU] = unary_elu,
              [IFD_UNARY_SILU] = unary_silu,
              [IFD_UNARY_GELU_TANH] = unary_gelu_tanh,
              [IFD_UNARY_AFFINE] = unary_affine,
              [IFD_UNARY_LOG] = unary_log,
              [IFD_UNARY_ROUND] = unary_round,
              [IFD_UNARY_FLOOR] = unary_floor,
              [IFD_UNARY_CEIL] = unary_ceil,
              [IFD_UNARY_TRUNC] = unary_trunc,
              [IFD_UNARY_ERF] = unary_erf,
              [IFD_UNARY_GELU] = unary_gelu},
    .prelu = prelu,
    .matmul = matmul};

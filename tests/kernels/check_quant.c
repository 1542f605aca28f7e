/* Element-wise q8: every table against the fixed-point definitions of engine/tensor/fixed.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "engine/tensor/fixed.h"
#include "engine/tensor/fixed16.h"
#include "tests/kernels/check.h"

enum kind { ADD, SUB, MUL, BLEND, SCALE, EVEN_ADD, EVEN_MUL };

static ifd_q8 naive(enum kind kind, const struct ifd_q8_binary_args *p, int a, int b)
{
    int32_t x;
    if (kind == BLEND) {
        const int64_t sum = (int64_t)a * p->a_factor + (int64_t)b * p->b_factor + p->bias;
        const int64_t y = (int64_t)floor(ldexp((double)sum, -p->fast_shift));
        return (ifd_q8)(y < p->out_min ? p->out_min : y > p->out_max ? p->out_max : y);
    }
    if (kind == SCALE) {
        const float product = (float)((a - p->a_zero) * (b - p->b_zero)) * p->scale;
        const double y = nearbyint((double)product) + p->out_zero;
        return (ifd_q8)(y < p->out_min ? p->out_min : y > p->out_max ? p->out_max : y);
    }
    a -= p->a_zero;
    b -= p->b_zero;
    if (kind == EVEN_ADD || kind == EVEN_MUL) {
        const float product = (float)(a * b) * p->scale;
        const float sum = fmaf((float)a, p->a_scale, fmaf((float)b, p->b_scale, p->offset));
        const double y =
            nearbyint((double)(kind == EVEN_ADD ? sum : product + p->offset)) + p->out_zero;
        return (ifd_q8)(y < p->out_min ? p->out_min : y > p->out_max ? p->out_max : y);
    }
    if (kind == MUL) {
        x = a * b;
    } else {
        int32_t sa = ifd_fixed_scale_double(a * (1 << 20), p->a_multiplier, p->a_shift);
        int32_t sb = ifd_fixed_scale_double(b * (1 << 20), p->b_multiplier, p->b_shift);
        x = kind == ADD ? sa + sb : sa - sb;
    }
    int64_t v = ifd_fixed_scale_double(x, p->out_multiplier, p->out_shift);
    v += p->out_zero;
    v = v < p->out_min ? p->out_min : v;
    return (ifd_q8)(v > p->out_max ? p->out_max : v);
}

static struct check_buffer random_q8(size_t count)
{
    struct check_buffer buffer = check_input(count);
    for (size_t i = 0; i < count; i++) {
        ((ifd_q8 *)buffer.data)[i] = (ifd_q8)check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    }
    return buffer;
}

/* Factors as LiteRT derives them from the scales of both inputs and the output. */
static void set_factors(enum kind kind, struct ifd_q8_binary_args *args)
{
    double sa = (double)check_float(0.001f, 0.2f), sb = (double)check_float(0.001f, 0.2f);
    double so = (double)check_float(0.002f, 0.3f), most = 2.0 * fmax(sa, sb);
    if (kind == MUL &&
        check_int(0, 2) == 0) { /* factors above 1, up to where the definition wraps */
        so = ldexp(so, -check_int(8, 34));
    }
    int a_shift, b_shift, out_shift;
    ifd_fixed_from_real(sa / most, &args->a_multiplier, &a_shift);
    ifd_fixed_from_real(sb / most, &args->b_multiplier, &b_shift);
    double out = kind == MUL ? sa * sb / so : most / ((1 << 20) * so);
    args->fast_shift = check_int(16, 20);
    if (fmax(sa, sb) / so >= ldexp(1.0, 21 - args->fast_shift)) {
        args->fast_shift = 0; /* not in 21 bits */
    }
    args->a_factor = (int32_t)lround(ldexp(sa / so, args->fast_shift));
    args->b_factor = (int32_t)lround(ldexp(sb / so, args->fast_shift)) * (kind == SUB ? -1 : 1);
    ifd_fixed_from_real(out, &args->out_multiplier, &out_shift);
    args->a_shift = a_shift;
    args->b_shift = b_shift;
    args->out_shift = out_shift;
}

static void check_binary(const char *isa, const struct ifd_kern_quant *kern, enum kind kind)
{
    struct ifd_q8_binary_args args = {.rows = (size_t)check_int(1, 4),
                                      .n = (size_t)check_int(1, 150)};
    set_factors(kind, &args);
    args.scale = check_float(0.0f, check_int(0, 3) ? 0.1f : 64.0f);
    args.a_scale = check_int(0, 3) ? check_float(0.0f, 3.0f) : 0.5f; /* halves */
    args.b_scale = check_int(0, 3) ? check_float(0.0f, 3.0f) : 0.5f;
    args.offset = check_int(0, 1) ? (float)check_int(-300, 300) : check_float(-300.0f, 300.0f);
    args.a_zero = check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    args.b_zero = check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    args.out_zero = check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    args.out_min = check_int(0, 1) ? IFD_Q8_MIN : args.out_zero;
    args.out_max = check_int(0, 1) ? IFD_Q8_MAX : check_int(args.out_min, IFD_Q8_MAX);
    if (kind == BLEND) {
        args.a_factor = check_int(-(1 << 21), 1 << 21);
        args.b_factor = check_int(-(1 << 21), 1 << 21);
        args.fast_shift = check_int(13, 20);
        args.bias = check_int(-(1 << 29), 1 << 29);
    } else if (args.fast_shift > 0) {
        const int shift = args.fast_shift;
        args.bias = args.out_zero * (1 << shift) + (1 << (shift - 1)) -
                    args.a_zero * args.a_factor - args.b_zero * args.b_factor;
    }
    args.a_step = (size_t)check_int(0, 3) != 0;
    args.b_step = (size_t)check_int(0, 3) != 0;
    args.a_row = check_int(0, 2) ? (args.a_step ? args.n + 1 : 1) : 0;
    args.b_row = check_int(0, 2) ? (args.b_step ? args.n : 1) : 0;
    args.out_row = args.n + (size_t)check_int(0, 3);
    struct check_buffer a = random_q8((args.rows - 1) * args.a_row + (args.a_step ? args.n : 1));
    struct check_buffer b = random_q8((args.rows - 1) * args.b_row + (args.b_step ? args.n : 1));
    size_t count = (args.rows - 1) * args.out_row + args.n;
    struct check_buffer out = check_output(count);
    args.a = a.data;
    args.b = b.data;
    args.out = out.data;
    (kind == ADD        ? kern->add_q8
     : kind == SUB      ? kern->sub_q8
     : kind == MUL      ? kern->mul_q8
     : kind == BLEND    ? kern->blend_q8
     : kind == SCALE    ? kern->scale_q8
     : kind == EVEN_ADD ? kern->even_add_q8
                        : kern->even_mul_q8)(&args);
    for (size_t r = 0; r < args.rows; r++) {
        for (size_t i = 0; i < args.out_row && r * args.out_row + i < count; i++) {
            ifd_q8 got = args.out[r * args.out_row + i];
            ifd_q8 want = (ifd_q8)0xa5;
            if (i < args.n) {
                want = naive(kind, &args, args.a[r * args.a_row + i * args.a_step],
                             args.b[r * args.b_row + i * args.b_step]);
            }
            if (got != want) {
                check_fail("%s: kind %d n %zu at %zu is %d, expected %d", isa, (int)kind, args.n, i,
                           got, want);
            }
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: kind %d wrote outside its output", isa, (int)kind);
    }
    check_free(&a);
    check_free(&b);
    check_free(&out);
}

static void check_lut(const char *isa, const struct ifd_kern_quant *kern)
{
    size_t n = (size_t)check_int(1, 400);
    struct check_buffer in = random_q8(n), table = random_q8(256), out = check_output(n);
    kern->lut_8(n, in.data, table.data, out.data);
    for (size_t i = 0; i < n; i++) {
        uint8_t want = ((const uint8_t *)table.data)[((const uint8_t *)in.data)[i]];
        if (((const uint8_t *)out.data)[i] != want) {
            check_fail("%s: table look-up differs at %zu of %zu", isa, i, n);
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: table look-up wrote outside its output", isa);
    }
    check_free(&in);
    check_free(&table);
    check_free(&out);
}

static void check_quantize(const char *isa, const struct ifd_kern_quant *kern)
{
    size_t n = (size_t)check_int(1, 600);
    float scale = check_int(0, 1) ? 0.5f : check_float(0.01f, 0.2f);
    const int ties = check_int(0, 2); /* of ten: none, many, nearly all */
    int zero = check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    struct check_buffer in = check_input(n * sizeof(float)), out = check_output(n);
    struct check_buffer back = check_output(n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        const float step = (float)check_int(-600, 600) * 0.5f * scale; /* every other: a tie */
        const float near = check_int(0, 1) ? nextafterf(step, 0.0f) : nextafterf(step, 1e3f);
        const int rare = check_int(0, 60);
        const float any = rare > 2   ? check_float(-300.0f, 300.0f) * scale
                          : rare > 1 ? check_float(-1e9f, 1e9f)
                          : rare > 0 ? (check_int(0, 1) ? 1 : -1) * (0x1p31f - 128) * scale
                                     : NAN;
        ((float *)in.data)[i] = check_int(0, 9) >= ties * 5 ? any : check_int(0, 1) ? step : near;
    }
    const int is_even = check_int(0, 1);
    const struct ifd_q8_beyond beyond = {check_int(0, 1) ? 0x1p31f : 0x1p31f - 128,
                                         check_int(0, 1) ? 1e6f : -1e6f};
    (is_even ? kern->quantize_even : kern->quantize)(n, in.data, scale, zero, beyond, out.data);
    kern->dequantize(n, out.data, scale, zero, back.data);
    for (size_t i = 0; i < n; i++) {
        const float real = ((const float *)in.data)[i] / scale;
        float steps = is_even                      ? isnan(real) ? -1e6f : rintf(real)
                                           : fabsf(real) < beyond.limit ? roundf(real)
                                                   : beyond.steps;
        float v = steps + (float)zero;
        int want = v < IFD_Q8_MIN ? IFD_Q8_MIN : v > IFD_Q8_MAX ? IFD_Q8_MAX : (int)v;
        int got = ((const ifd_q8 *)out.data)[i];
        if (got != want) {
            check_fail("%s: quantizing %g by %g is %d, expected %d", isa,
                       (double)((const float *)in.data)[i], (double)scale, got, want);
        }
        if (((const float *)back.data)[i] != (float)(got - zero) * scale) {
            check_fail("%s: dequantizing %d differs", isa, got);
        }
    }
    if (!check_guards(&out) || !check_guards(&back)) {
        check_fail("%s: quantize or dequantize wrote outside its output", isa);
    }
    check_free(&in);
    check_free(&out);
    check_free(&back);
}

/* What layers with quantized weights do with floats: range, quantization by a factor, sums to
 * floats. */
static void check_dynamic(const char *isa, const struct ifd_kern_quant *kern)
{
    const size_t rows = (size_t)check_int(1, 4), n = (size_t)check_int(1, 70),
                 row = n + (size_t)check_int(0, 3), count = (rows - 1) * row + n;
    struct check_buffer in = check_input(count * 4), q = check_output(count);
    struct check_buffer sums = check_output(count * 4), offset = check_input(n * 4);
    struct check_buffer scale = check_input(n * 4), bias = check_input(n * 4);
    const float lo = check_float(-2.0f, 1.0f), factor = check_float(1.0f, 120.0f);
    float least = 0, most = 0, got_least = 0, got_most = 0;
    for (size_t i = 0; i < count; i++) {
        const float x = check_float(lo, lo + 2.0f);
        ((float *)in.data)[i] = x;
        least = x < least ? x : least;
        most = x > most ? x : most;
        ((int32_t *)sums.data)[i] = check_int(-5000000, 5000000);
    }
    for (size_t c = 0; c < n; c++) {
        ((int32_t *)offset.data)[c] = check_int(-100000, 100000);
        ((float *)scale.data)[c] = check_float(1e-6f, 1e-3f);
        ((float *)bias.data)[c] = check_float(-3.0f, 3.0f);
    }
    kern->range(count, in.data, &got_least, &got_most);
    if (got_least != least || got_most != most) {
        check_fail("%s: range of %zu is %g %g, expected %g %g", isa, count, (double)got_least,
                   (double)got_most, (double)least, (double)most);
    }
    const int zero = check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    kern->quantize_by(count, in.data, factor, zero, q.data);
    float *want = malloc(count * sizeof(*want));
    for (size_t i = 0; i < count; i++) {
        const float v = roundf(((const float *)in.data)[i] * factor) + (float)zero;
        const int value = v < IFD_Q8_MIN ? IFD_Q8_MIN : v > IFD_Q8_MAX ? IFD_Q8_MAX : (int)v;
        if (((const ifd_q8 *)q.data)[i] != value) {
            check_fail("%s: quantizing by %g differs at %zu", isa, (double)factor, i);
        }
        const size_t c = i % row;
        memcpy(&want[i], (const float *)sums.data + i, sizeof(*want));
        if (c < n) {
            const int32_t sum = ((const int32_t *)sums.data)[i] - ((const int32_t *)offset.data)[c];
            const float x =
                (float)sum * ((const float *)scale.data)[c] + ((const float *)bias.data)[c];
            want[i] = fminf(fmaxf(x, -100.0f), 200.0f);
        }
    }
    kern->rescale(&(struct ifd_rescale_args){.rows = rows,
                                             .n = n,
                                             .row = row,
                                             .sums = sums.data,
                                             .out = sums.data,
                                             .offset = offset.data,
                                             .scale = scale.data,
                                             .bias = bias.data,
                                             .min = -100.0f,
                                             .max = 200.0f});
    if (memcmp(want, sums.data, count * sizeof(*want)) != 0) {
        check_fail("%s: rescaling %zu x %zu differs", isa, rows, n);
    }
    if (!check_guards(&q) || !check_guards(&sums)) {
        check_fail("%s: quantizing or rescaling wrote outside its output", isa);
    }
    free(want);
    check_free(&in);
    check_free(&q);
    check_free(&sums);
    check_free(&offset);
    check_free(&scale);
    check_free(&bias);
}

/* The functions themselves are tested beside LiteRT (tests/golden). */
static void check_functions_of_16_bits(const char *isa, const struct ifd_kern_quant *kern)
{
    const size_t n = (size_t)check_int(1, 150);
    const int bits = check_int(0, 6);
    struct check_buffer in = check_input(n * sizeof(int16_t));
    for (size_t i = 0; i < n; i++) {
        ((int16_t *)in.data)[i] = (int16_t)check_int(INT16_MIN, INT16_MAX);
    }
    for (int is_tanh = 0; is_tanh < 2; is_tanh++) {
        struct check_buffer out = check_output(n * sizeof(int16_t));
        kern->function_16(n, in.data, bits, is_tanh, out.data);
        for (size_t i = 0; i < n; i++) {
            const int16_t x = ((const int16_t *)in.data)[i], got = ((const int16_t *)out.data)[i];
            const double real = ldexp(x, bits - 15);
            const double want = is_tanh ? tanh(real) : 1.0 / (1.0 + exp(-real));
            const int16_t exact =
                is_tanh ? ifd_fixed16_tanh(x, bits) : ifd_fixed16_logistic(x, bits);
            if (got != exact || !(fabs(ldexp(got, -15) - want) <= 0x1p-8)) {
                check_fail("%s: function %d of %d with %d digits is %d, expected %d (%g)", isa,
                           is_tanh, x, bits, got, exact, want);
            }
        }
        if (!check_guards(&out)) {
            check_fail("%s: functions of %zu numbers of 16 bits wrote outside their output", isa,
                       n);
        }
        check_free(&out);
    }
    check_free(&in);
}

/* A table may have only some of the functions. */
static void check_table(const char *isa, const struct ifd_kern_quant *kern)
{
    if (kern->add_q8) {
        check_binary(isa, kern, ADD);
        check_binary(isa, kern, SUB);
    }
    if (kern->mul_q8) {
        check_binary(isa, kern, MUL);
        check_binary(isa, kern, SCALE);
        check_binary(isa, kern, EVEN_ADD);
        check_binary(isa, kern, EVEN_MUL);
        check_quantize(isa, kern);
        check_dynamic(isa, kern);
    }
    if (kern->blend_q8) {
        check_binary(isa, kern, BLEND);
    }
    if (kern->function_16) {
        check_functions_of_16_bits(isa, kern);
    }
    if (kern->lut_8) {
        check_lut(isa, kern);
    }
}

int main(void)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("quant", &at, &isa);) {
        for (int round = 0; round < 200; round++) {
            check_table(isa.name, &isa.kernels.quant);
        }
    }
    return check_end("quant");
}

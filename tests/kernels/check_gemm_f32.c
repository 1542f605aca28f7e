/* f32 gemms and convolutions, also those of 16-bit operands: every table against a naive
 * loop in double over operands that are rounded here. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "engine/tensor/half.h"
#include "tests/kernels/check.h"

/* A family of tables.
 *   digits   binary digits of an operand
 *   lowest   exponent of the smallest normal number: below it digits are lost, or the whole
 *            number
 *   highest  largest number that pack() makes of a finite one */
struct family {
    const char *name;
    size_t offset;
    int digits, lowest;
    double highest;
};
static const struct family families[] = {
    {"gemm_f32", offsetof(struct ifd_kernels, gemm_f32), 24, -126, FLT_MAX},
    {"gemm_bf16", offsetof(struct ifd_kernels, gemm_bf16), 8, -126, INFINITY},
    {"gemm_f16", offsetof(struct ifd_kernels, gemm_f16), 11, -14, 65504.0},
};
#define FAMILIES (sizeof(families) / sizeof(families[0]))

static const struct ifd_kern_gemm_f32 *table_of(const struct family *family,
                                                const struct ifd_kernels *kernels)
{
    return (const void *)((const char *)kernels + family->offset);
}

/* To the nearest number with `digits` binary digits, halves to even. */
static double rounded(const struct family *family, double x)
{
    int exponent = 0;
    (void)frexp(x, &exponent);
    const int last =
        (exponent - 1 < family->lowest ? family->lowest : exponent - 1) - (family->digits - 1);
    const double y = ldexp(rint(ldexp(x, -last)), last);
    return fabs(y) > family->highest ? copysign(family->highest, y) : y;
}

struct problem {
    size_t m, n, k, taps;
    size_t row_len, row_stride, a_stride, tap_stride, out_stride, a_count;
    bool table, add, adds_in_place;
    float min, max;
    struct check_buffer a, w, bias, residual;
    size_t *row; /* table: where in a each of them begins */
};

static size_t input_row(const struct problem *p, size_t i, size_t t)
{
    if (p->table) {
        return p->row[t * p->m + i];
    }
    return i / p->row_len * p->row_stride + i % p->row_len * p->a_stride + t * p->tap_stride;
}

static struct check_buffer random_floats(size_t count)
{
    struct check_buffer buffer = check_input(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        ((float *)buffer.data)[i] = check_float(-1.0f, 1.0f);
    }
    return buffer;
}

static struct problem make_problem(size_t m, size_t n, size_t k, size_t taps, int style)
{
    struct problem p = {.m = m, .n = n, .k = k, .taps = taps, .row_len = m};
    p.out_stride = n + (size_t)check_int(0, 1) * 5;
    p.a_stride = k + (size_t)check_int(0, 3);
    p.tap_stride = p.a_stride * 2 + 1;
    if (style == 1) {
        p.row_len = (size_t)check_int(1, (int)m);
        p.row_stride = p.row_len * p.a_stride * 2 + 3;
    }
    size_t last = (m - 1) / p.row_len * p.row_stride + (p.row_len - 1) * p.a_stride;
    p.a_count = last + (taps - 1) * p.tap_stride + k;
    p.a = random_floats(p.a_count);
    p.w = random_floats(n * taps * k);
    p.bias = random_floats(n);
    if (style == 2) {
        p.row = malloc(m * taps * sizeof(*p.row));
        for (size_t i = 0; i < m * taps; i++) {
            p.row[i] = (size_t)check_int(0, (int)(p.a_count - k));
        }
        p.table = true;
    }
    p.add = check_int(0, 2) == 0;
    p.adds_in_place = check_int(0, 1);
    p.residual = random_floats((m - 1) * p.out_stride + n);
    p.min = check_int(0, 1) ? -INFINITY : 0.0f;
    p.max = check_int(0, 1) ? INFINITY : 0.75f;
    return p;
}

static void free_problem(struct problem *p)
{
    check_free(&p->a);
    check_free(&p->w);
    check_free(&p->bias);
    check_free(&p->residual);
    free(p->row);
}

static struct check_buffer pack_problem(const struct problem *p,
                                        const struct ifd_kern_gemm_f32 *kern)
{
    struct ifd_gemm_weights weights = {p->w.data, p->n, p->k, p->taps, p->taps * p->k, p->k, 1};
    size_t bytes = kern->packed_bytes(p->n, p->k, p->taps);
    struct check_buffer packed = check_input((bytes + 63) / 64 * 64);
    memset(packed.data, 0xa5, packed.bytes); /* packing leaves nothing out */
    kern->pack(&weights, p->bias.data, packed.data);
    return packed;
}

/* The same content, packed in parts. */
static void check_parts(const struct problem *p, const char *isa,
                        const struct ifd_kern_gemm_f32 *kern, const struct check_buffer *packed)
{
    struct check_buffer parts = check_input(packed->bytes);
    const struct ifd_gemm_weights none = {.n = p->n, .k = p->k, .taps = 1};
    kern->pack(&none, p->bias.data, parts.data);
    const size_t columns = (size_t)check_int(1, (int)p->n);
    const size_t inputs = (size_t)check_int(1, (int)p->k + 1) / 2 * 2 + 2;
    for (size_t n0 = 0; n0 < p->n; n0 += columns) {
        for (size_t k0 = 0; k0 < p->k; k0 += inputs) {
            const struct ifd_gemm_weights part = {.w = (float *)p->w.data + n0 * p->k + k0,
                                                  .n = p->n - n0 < columns ? p->n - n0 : columns,
                                                  .k = p->k - k0 < inputs ? p->k - k0 : inputs,
                                                  .taps = 1,
                                                  .stride_n = p->k,
                                                  .stride_k = 1};
            kern->pack_part(&part, n0, k0, parts.data);
        }
    }
    if (memcmp(parts.data, packed->data, kern->packed_bytes(p->n, p->k, 1)) != 0) {
        check_fail("%s: n %zu k %zu: parts of %zu x %zu differ", isa, p->n, p->k, columns, inputs);
    }
    check_free(&parts);
}

/* The inputs in a table's form, and the table of rows if there is one. */
struct inputs {
    struct check_buffer a, rows;
    size_t element;
};

static struct inputs make_inputs(const struct problem *p, const struct ifd_kern_gemm_f32 *kern)
{
    struct inputs in = {.element = kern->narrow ? sizeof(uint16_t) : sizeof(float)};
    if (kern->narrow) {
        const size_t past = kern->depth(p->k) - p->k;
        in.a = check_input((p->a_count + past) * in.element);
        uint16_t *a = in.a.data;
        kern->narrow(p->a_count, p->a.data, a);
        for (size_t i = 0; i < past; i++) {
            a[p->a_count + i] = (uint16_t)check_int(0, 0x3fff); /* anything finite */
        }
    } else {
        in.a = check_input(p->a_count * in.element);
        memcpy(in.a.data, p->a.data, in.a.bytes);
    }
    if (p->table) {
        in.rows = check_input(p->m * p->taps * sizeof(void *));
        for (size_t i = 0; i < p->m * p->taps; i++) {
            ((const void **)in.rows.data)[i] = (const char *)in.a.data + p->row[i] * in.element;
        }
    }
    return in;
}

static void free_inputs(struct inputs *in)
{
    if (in->rows.data) {
        check_free(&in->rows);
    }
    check_free(&in->a);
}

static struct ifd_gemm_args make_args(const struct problem *p, const void *packed,
                                      const struct inputs *in, void *out)
{
    return (struct ifd_gemm_args){.packed = packed,
                                  .a = in->a.data,
                                  .rows = p->table ? in->rows.data : NULL,
                                  .out = out,
                                  .m = p->m,
                                  .n_end = p->n,
                                  .row_len = p->row_len == p->m ? 0 : p->row_len,
                                  .row_stride = p->row_stride,
                                  .a_stride = p->a_stride,
                                  .tap_stride = p->tap_stride,
                                  .out_stride = p->out_stride,
                                  .add = p->add ? p->residual.data : NULL,
                                  .add_stride = p->out_stride,
                                  .min = p->min,
                                  .max = p->max};
}

/* Expected result of a problem: element (i, j) is at i * n + j, and may be off by `error`. */
struct wanted {
    double *value, *error;
};

static double *rounded_all(const struct family *family, const float *x, size_t count)
{
    double *result = malloc(count * sizeof(*result));
    for (size_t i = 0; i < count; i++) {
        result[i] = family ? rounded(family, (double)x[i]) : (double)x[i];
    }
    return result;
}

/* narrow: inputs are rounded, too. */
static struct wanted make_wanted(const struct problem *p, const struct family *family, bool narrow)
{
    struct wanted wanted = {malloc(p->m * p->n * sizeof(double)),
                            malloc(p->m * p->n * sizeof(double))};
    double *a = rounded_all(narrow ? family : NULL, p->a.data, p->a_count);
    double *w = rounded_all(family, p->w.data, p->n * p->taps * p->k);
    for (size_t i = 0; i < p->m; i++) {
        for (size_t j = 0; j < p->n; j++) {
            double sum = ((const float *)p->bias.data)[j], magnitude = fabs(sum);
            for (size_t t = 0; t < p->taps; t++) {
                for (size_t k = 0; k < p->k; k++) {
                    const double product =
                        a[input_row(p, i, t) + k] * w[(j * p->taps + t) * p->k + k];
                    sum += product;
                    magnitude += fabs(product);
                }
            }
            if (p->add) {
                sum += ((const float *)p->residual.data)[i * p->out_stride + j];
                magnitude += 1.0;
            }
            double error = magnitude * (double)(p->taps * p->k + 3) * 0x1p-24;
            if (narrow && family->digits == 11) { /* sums, too, of 64 inputs at most */
                error += (magnitude * 0x1p-11 + 0x1p-24) * (double)(p->k < 64 ? p->k : 64);
            }
            wanted.value[i * p->n + j] = fmin(p->max, fmax(p->min, sum));
            wanted.error[i * p->n + j] = error;
        }
    }
    free(a);
    free(w);
    return wanted;
}

static void free_wanted(struct wanted *wanted)
{
    free(wanted->value);
    free(wanted->error);
    *wanted = (struct wanted){0};
}

static void check_table(const struct problem *p, const char *isa, const struct family *family,
                        const struct ifd_kern_gemm_f32 *kern, const struct wanted *wanted)
{
    struct check_buffer packed = pack_problem(p, kern);
    if (kern->pack_part && p->taps == 1) {
        check_parts(p, isa, kern, &packed);
    }
    struct check_buffer out = check_output(((p->m - 1) * p->out_stride + p->n) * sizeof(float));
    struct inputs in = make_inputs(p, kern);
    const struct ifd_packed *header = packed.data;
    struct ifd_gemm_args args = make_args(p, packed.data, &in, out.data);
    size_t split = ifd_packed_column(header, (header->blocks + 1) / 2);
    if (p->add && p->adds_in_place) {
        for (size_t i = 0; i < p->m; i++) {
            memcpy((float *)out.data + i * p->out_stride,
                   (const float *)p->residual.data + i * p->out_stride, p->n * sizeof(float));
        }
        args.add = out.data;
    }
    args.n_end = split;
    kern->run(&args);
    args.n_begin = split;
    args.n_end = p->n;
    if (split < p->n) {
        kern->run(&args);
    }
    const float *got = out.data;
    for (size_t i = 0; i < p->m; i++) {
        for (size_t j = 0; j < p->n; j++) {
            const double x = (double)got[i * p->out_stride + j];
            if (!(fabs(x - wanted->value[i * p->n + j]) <= wanted->error[i * p->n + j])) {
                check_fail("%s %s: m %zu n %zu k %zu taps %zu: (%zu, %zu) is %g", family->name, isa,
                           p->m, p->n, p->k, p->taps, i, j, x);
            }
        }
        for (size_t j = p->n; j < p->out_stride && i + 1 < p->m; j++) {
            if (((const uint32_t *)out.data)[i * p->out_stride + j] != 0xa5a5a5a5u) {
                check_fail("%s %s: m %zu n %zu k %zu wrote between rows", family->name, isa, p->m,
                           p->n, p->k);
            }
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s %s: m %zu n %zu k %zu wrote outside its output", family->name, isa, p->m,
                   p->n, p->k);
    }
    check_free(&packed);
    check_free(&out);
    free_inputs(&in);
}

/* Results, residual or both of 16 bits: off by their rounding, too. */
static void check_stores(const struct problem *p, const char *isa, const struct family *family,
                         const struct ifd_kern_gemm_f32 *kern, const struct wanted *wanted)
{
    const size_t count = (p->m - 1) * p->out_stride + p->n;
    const bool narrow_out = check_int(0, 2) > 0, narrow_add = !narrow_out || check_int(0, 1);
    struct check_buffer packed = pack_problem(p, kern), add = check_input(count * sizeof(uint16_t));
    struct check_buffer out = check_output(count * (narrow_out ? sizeof(uint16_t) : sizeof(float)));
    struct check_buffer wide = check_output(count * sizeof(float));
    struct inputs in = make_inputs(p, kern);
    struct ifd_gemm_args args = make_args(p, packed.data, &in, out.data);
    kern->narrow(count, p->residual.data, add.data);
    args.narrow_out = narrow_out;
    args.narrow_add = narrow_add;
    args.add = args.add && narrow_add ? add.data : args.add;
    if (args.add && narrow_add && narrow_out && p->adds_in_place) {
        for (size_t i = 0; i < p->m; i++) {
            memcpy((uint16_t *)out.data + i * p->out_stride,
                   (const uint16_t *)add.data + i * p->out_stride, p->n * sizeof(uint16_t));
        }
        args.add = out.data;
    }
    kern->run(&args);
    if (narrow_out) {
        kern->widen(count, out.data, wide.data);
    } else {
        memcpy(wide.data, out.data, count * sizeof(float));
    }
    for (size_t i = 0; i < p->m * p->n; i++) {
        const double x = (double)((const float *)wide.data)[i / p->n * p->out_stride + i % p->n];
        const double error = wanted->error[i] + (narrow_out ? fabs(x) * 0x1p-8 : 0) +
                             (narrow_add && p->add ? 0x1p-9 : 0);
        if (!(fabs(x - wanted->value[i]) <= error)) {
            check_fail("%s %s: m %zu n %zu k %zu taps %zu, stored: %zu is %g", family->name, isa,
                       p->m, p->n, p->k, p->taps, i, x);
        }
    }
    for (size_t i = 0; i < count; i++) {
        const bool is_gap = i % p->out_stride >= p->n;
        const bool is_kept = narrow_out ? ((const uint16_t *)out.data)[i] == 0xa5a5u
                                        : ((const uint32_t *)out.data)[i] == 0xa5a5a5a5u;
        if (is_gap && !is_kept) {
            check_fail("%s %s: m %zu n %zu k %zu stored between rows", family->name, isa, p->m,
                       p->n, p->k);
        }
    }
    if (!check_guards(&out) || !check_guards(&wide)) {
        check_fail("%s %s: m %zu n %zu k %zu stored or widened outside its output", family->name,
                   isa, p->m, p->n, p->k);
    }
    check_free(&packed);
    check_free(&add);
    check_free(&out);
    check_free(&wide);
    free_inputs(&in);
}

static void check_family(const struct problem *p, const struct family *family)
{
    struct wanted wanted[2] = {{0}}; /* of inputs as they are, and rounded */
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next(family->name, &at, &isa);) {
        const struct ifd_kern_gemm_f32 *kern = table_of(family, &isa.kernels);
        struct wanted *want = &wanted[kern->narrow != NULL];
        if (!want->value) {
            *want = make_wanted(p, family, kern->narrow != NULL);
        }
        check_table(p, isa.name, family, kern, want);
        if (kern->widen && !p->table && p->m % p->row_len == 0) {
            check_stores(p, isa.name, family, kern, want);
        }
    }
    free_wanted(&wanted[0]);
    free_wanted(&wanted[1]);
}

static void check_tables(struct problem p)
{
    for (size_t f = 0; f < FAMILIES; f++) {
        check_family(&p, &families[f]);
    }
    free_problem(&p);
}

/* Narrow numbers, the first `count` of a buffer. */
static void check_widen(const struct family *family, const char *isa,
                        const struct ifd_kern_gemm_f32 *kern, const struct check_buffer *narrow,
                        size_t count)
{
    struct check_buffer out = check_output((count + 1) * sizeof(float));
    const uint16_t *bits = narrow->data;
    kern->widen(count, bits, out.data);
    for (size_t i = 0; i < count; i++) {
        const float got = ((const float *)out.data)[i], want = ifd_f32_from_bf16(bits[i]);
        if (memcmp(&got, &want, sizeof(got)) != 0) {
            check_fail("%s %s: widen: %zu of %zu became %a", family->name, isa, i, count,
                       (double)got);
        }
    }
    if (((const uint32_t *)out.data)[count] != 0xa5a5a5a5u || !check_guards(&out)) {
        check_fail("%s %s: widen wrote outside its output", family->name, isa);
    }
    check_free(&out);
}

/* Rows of n, apart or not. */
static void check_narrow_rows(const char *isa, const struct ifd_kern_gemm_f32 *kern,
                              const float *value, size_t count, size_t n)
{
    const size_t stride = n + (size_t)check_int(0, 3), out_n = n + (size_t)check_int(n == 0, 5);
    const size_t rows = stride == 0 ? 3 : (count - n) / stride % 30;
    struct check_buffer out = check_output((rows * out_n + 1) * sizeof(uint16_t));
    const uint16_t *got = out.data;
    kern->narrow_rows(rows, n, value, stride, out.data, out_n);
    for (size_t i = 0; i < rows * out_n; i++) {
        uint16_t want = 0;
        kern->narrow(i % out_n < n, value + i / out_n * stride + i % out_n, &want);
        if (got[i] != want) {
            check_fail("%s: narrow_rows: %zu of rows of %zu became %x", isa, i, n, got[i]);
        }
    }
    if (got[rows * out_n] != 0xa5a5 || !check_guards(&out)) {
        check_fail("%s: narrow_rows wrote outside its output", isa);
    }
    check_free(&out);
}

/* Any finite numbers, and the special ones; those below the normal numbers may become 0. */
static void check_narrow(const struct family *family, const char *isa,
                         const struct ifd_kern_gemm_f32 *kern)
{
    enum { COUNT = 999 };
    struct check_buffer in = check_input(COUNT * sizeof(float));
    struct check_buffer out = check_output(COUNT * sizeof(uint16_t));
    float *value = in.data;
    for (size_t i = 0; i < COUNT; i++) {
        value[i] = ldexpf(check_float(-2.0f, 2.0f), check_int(-30, 20));
    }
    memcpy(value, (float[]){INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 65504.0f, 65519.0f, 65520.0f},
           8 * sizeof(float));
    for (size_t i = 8; i < 64; i++) { /* halves between two numbers */
        value[i] = 1.0f + (float)(2 * check_int(0, 60) + 1) * ldexpf(1.0f, -family->digits);
    }
    for (size_t count = 0; count <= COUNT; count += count < 70 ? 1 : 929) {
        memset(out.data, 0xa5, out.bytes);
        kern->narrow(count, value, out.data);
        for (size_t i = 0; i < COUNT; i++) {
            const uint16_t bits = ((const uint16_t *)out.data)[i];
            const double got = family->digits == 8 ? (double)ifd_f32_from_bf16(bits)
                                                   : (double)ifd_f32_from_f16(bits);
            const double x = (double)value[i];
            const double want = isfinite(value[i]) ? rounded(family, x) : x;
            const bool is_tiny = fabs(x) < ldexp(1.0, family->lowest) && got == 0.0;
            if (i < count ? got != want && !(isnan(got) && isnan(want)) && !is_tiny
                          : bits != 0xa5a5) {
                check_fail("%s %s: narrow: %zu of %zu: %a became %a", family->name, isa, i, count,
                           x, got);
            }
        }
        if (!check_guards(&out)) {
            check_fail("%s %s: narrow wrote outside its output", family->name, isa);
        }
        if (kern->narrow_rows) {
            check_narrow_rows(isa, kern, value, COUNT, count % 41);
        }
        if (kern->widen) {
            check_widen(family, isa, kern, &out, count);
        }
    }
    check_free(&in);
    check_free(&out);
}

static void check_narrows(void)
{
    struct ifd_kernels_isa isa;
    for (size_t f = 0; f < FAMILIES; f++) {
        for (size_t at = 0; check_next(families[f].name, &at, &isa);) {
            const struct ifd_kern_gemm_f32 *kern = table_of(&families[f], &isa.kernels);
            if (kern->narrow) {
                check_narrow(&families[f], isa.name, kern);
            }
        }
    }
}

/* Sums so long that they are computed in parts, within a tap or tap by tap. */
static void check_long_sums(void)
{
    static const size_t shapes[][2] = {{17001, 1}, {33003, 1}, {3001, 7}, {700, 40}};
    for (size_t i = 0; i < 12; i++) {
        const size_t *shape = shapes[i % 4];
        const size_t m = i % 4 == 3 ? 49 : (size_t)check_int(1, 20);
        check_tables(make_problem(m, (size_t)check_int(1, 70), shape[0], shape[1], (int)(i % 3)));
    }
}

/* A single row by many weights. */
static void check_single_rows(void)
{
    static const size_t ns[] = {129, 208, 255, 400, 1001};
    static const size_t ks[] = {511, 512, 640, 1100, 1283};
    for (size_t i = 0; i < 25; i++) {
        check_tables(make_problem(1, ns[i % 5], ks[i / 5], 1, (int)(i % 3)));
    }
}

static void check_shapes(void)
{
    static const size_t ms[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 25, 49};
    static const size_t ns[] = {1,  3,  4,  8,  15, 16, 17, 24,  32,  33, 40,
                                47, 48, 60, 64, 72, 80, 96, 129, 144, 208};
    static const size_t ks[] = {1, 2, 3, 4, 7, 8, 9, 16, 24, 27, 65, 130};
    for (int round = 0; round < 150; round++) {
        size_t taps = check_int(0, 1) ? 1 : (size_t)check_int(1, 9);
        check_tables(make_problem(ms[check_int(0, 12)], ns[check_int(0, 20)], ks[check_int(0, 11)],
                                  taps, round % 3));
    }
}

struct bench {
    const struct ifd_kern_gemm_f32 *kern;
    struct ifd_gemm_args args;
};

static void bench_call(void *arg)
{
    struct bench *bench = arg;
    bench->kern->run(&bench->args);
}

static void bench_table(const struct problem *p, const char *name, const char *isa,
                        const struct ifd_kern_gemm_f32 *kern)
{
    const double peak = check_peak_f32();
    struct check_buffer packed = pack_problem(p, kern);
    struct check_buffer out = check_output(p->m * p->n * sizeof(float));
    struct inputs in = make_inputs(p, kern);
    struct bench bench = {kern, make_args(p, packed.data, &in, out.data)};
    const double t = check_time(bench_call, &bench);
    const double rate = (double)(p->m * p->n * p->k * p->taps) / t * 1e-9;
    printf("%-9s %-10s m %5zu k %4zu n %4zu taps %zu: %8.1f us %6.1f GMAC/s %3.0f%%\n", name, isa,
           p->m, p->k, p->n, p->taps, t * 1e6, rate, peak > 0 ? rate / peak * 100 : 0.0);
    check_free(&packed);
    check_free(&out);
    free_inputs(&in);
}

static void bench_shape(size_t m, size_t k, size_t n, size_t taps)
{
    struct problem p = {.m = m,
                        .n = n,
                        .k = k,
                        .taps = taps,
                        .row_len = m,
                        .a_stride = k,
                        .tap_stride = k,
                        .out_stride = n,
                        .a_count = (m + taps) * k,
                        .max = INFINITY};
    struct ifd_kernels_isa isa;
    p.a = random_floats(p.a_count);
    p.w = random_floats(n * k * taps);
    p.bias = random_floats(n);
    p.residual = random_floats(1);
    for (size_t f = 0; f < FAMILIES; f++) {
        for (size_t at = 0; check_next(families[f].name, &at, &isa);) {
            bench_table(&p, families[f].name, isa.name, table_of(&families[f], &isa.kernels));
        }
    }
    free_problem(&p);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        static const size_t shapes[][4] = {
            {12544, 32, 16, 1}, {12544, 16, 96, 1}, {3136, 96, 24, 1},  {3136, 24, 144, 1},
            {784, 144, 32, 1},  {784, 32, 192, 1},  {196, 64, 384, 1},  {196, 384, 64, 1},
            {196, 576, 96, 1},  {49, 160, 960, 1},  {49, 960, 160, 1},  {49, 320, 1280, 1},
            {1, 1280, 1001, 1}, {12544, 9, 32, 3},  {784, 128, 128, 9}, {784, 32, 16, 1},
            {784, 9, 16, 3},    {784, 16, 32, 1},   {1089, 160, 960, 1}};
        printf("peak %.0f GMAC/s\n", check_peak_f32());
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            bench_shape(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        }
        return 0;
    }
    check_narrows();
    check_shapes();
    check_long_sums();
    check_single_rows();
    return check_end("gemm_f32 gemm_bf16 gemm_f16");
}

/* Softmax and sums: every table against naive loops in double. */
#include <math.h>
#include <stdlib.h>
#include "tests/kernels/check.h"

static struct check_buffer random_floats(size_t count, float range)
{
    struct check_buffer buffer = check_input(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        ((float *)buffer.data)[i] = check_float(-range, range);
    }
    return buffer;
}

static void check_softmax(const char *isa, const struct ifd_kern_reduce *kern)
{
    size_t rows = (size_t)check_int(1, 3), n = (size_t)check_int(1, 120),
           stride = n + (size_t)check_int(0, 2);
    float beta = check_int(0, 1) ? 1.0f : 0.7f;
    struct check_buffer in = random_floats(rows * stride, check_int(0, 1) ? 5.0f : 60.0f);
    struct check_buffer out = check_output(((rows - 1) * stride + n) * sizeof(float));
    kern->softmax_f32(rows, n, in.data, stride, beta, out.data, stride);
    for (size_t r = 0; r < rows; r++) {
        const float *x = (const float *)in.data + r * stride;
        double most = -INFINITY, total = 0.0;
        for (size_t i = 0; i < n; i++) {
            most = fmax(most, x[i]);
        }
        for (size_t i = 0; i < n; i++) {
            total += exp((double)beta * (x[i] - most));
        }
        for (size_t i = 0; i < n; i++) {
            double want = exp((double)beta * (x[i] - most)) / total;
            double got = ((const float *)out.data)[r * stride + i];
            /* the argument of the exponential is rounded: its error grows with its size */
            double slack =
                (16.0 + 2.0 * fabs((double)beta * (x[i] - most))) * 0x1p-23 * want + 2e-38;
            if (!(fabs(got - want) <= slack)) {
                check_fail("%s: softmax of %zu at %zu is %g, expected %g", isa, n, i, got, want);
            }
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: softmax of %zu wrote outside its output", isa, n);
    }
    check_free(&in);
    check_free(&out);
}

static void check_columns(const char *isa, const struct ifd_kern_reduce *kern)
{
    size_t rows = (size_t)check_int(1, check_int(0, 3) ? 60 : 400), n = (size_t)check_int(1, 150),
           stride = n + (size_t)check_int(0, 3);
    struct check_buffer in = random_floats((rows - 1) * stride + n, 1.0f);
    struct check_buffer in8 = check_input((rows - 1) * stride + n);
    struct check_buffer out = check_output(n * sizeof(float)),
                        out8 = check_output(n * sizeof(int32_t));
    const int end = check_int(0, 1) ? IFD_Q8_MAX : IFD_Q8_MIN, is_extreme = check_int(0, 1);
    for (size_t i = 0; i < in8.bytes; i++) {
        ((ifd_q8 *)in8.data)[i] = (ifd_q8)(is_extreme ? end : check_int(IFD_Q8_MIN, IFD_Q8_MAX));
    }
    kern->column_sum_f32(rows, n, in.data, stride, 0.25f, out.data);
    kern->column_sum_q8(rows, n, in8.data, stride, out8.data);
    for (size_t c = 0; c < n; c++) {
        double want = 0.0;
        int32_t want8 = 0;
        for (size_t r = 0; r < rows; r++) {
            want += 0.25 * ((const float *)in.data)[r * stride + c];
            want8 += ((const ifd_q8 *)in8.data)[r * stride + c];
        }
        if (!(fabs(((const float *)out.data)[c] - want) <= (double)rows * 0.25 * 0x1p-20)) {
            check_fail("%s: column sum %zu of %zux%zu differs", isa, c, rows, n);
        }
        if (((const int32_t *)out8.data)[c] != want8) {
            check_fail("%s: q8 column sum %zu of %zux%zu differs", isa, c, rows, n);
        }
    }
    if (!check_guards(&out) || !check_guards(&out8)) {
        check_fail("%s: column sums of %zux%zu wrote outside their output", isa, rows, n);
    }
    check_free(&in);
    check_free(&in8);
    check_free(&out);
    check_free(&out8);
}

static void check_row(const char *isa, const struct ifd_kern_reduce *kern)
{
    size_t n = (size_t)check_int(1, 300);
    struct check_buffer in = random_floats(n, 1.0f);
    const float *x = in.data;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
    }
    if (!(fabs(kern->sum_f32(n, x) - sum) <= (double)n * 0x1p-21)) {
        check_fail("%s: sum of %zu differs", isa, n);
    }
    check_free(&in);
}

static void check_normalized(const char *isa, const struct ifd_kern_reduce *kern)
{
    const size_t rows = (size_t)check_int(1, 3), n = (size_t)check_int(1, 150);
    const bool has_scale = check_int(0, 1), has_shift = check_int(0, 1);
    struct check_buffer in = random_floats(rows * n, 2.0f), scale = random_floats(n, 2.0f);
    struct check_buffer shift = random_floats(n, 1.0f);
    struct check_buffer out = check_output(rows * n * sizeof(float));
    const struct ifd_normalize_args args = {.rows = rows,
                                            .n = n,
                                            .in = in.data,
                                            .out = out.data,
                                            .form = check_int(0, 3),
                                            .epsilon = 1e-2f,
                                            .scale = has_scale ? scale.data : NULL,
                                            .shift = has_shift ? shift.data : NULL};
    kern->normalize_f32(&args);
    for (size_t r = 0; r < rows; r++) {
        const float *x = (const float *)in.data + r * n;
        double mean = 0.0, variance = 0.0;
        for (size_t i = 0; i < n && !(args.form & IFD_NORMALIZE_SQUARES); i++) {
            mean += x[i] / (double)n;
        }
        for (size_t i = 0; i < n; i++) {
            variance += (x[i] - mean) * (x[i] - mean) / (double)n;
        }
        for (size_t i = 0; i < n; i++) {
            const double factor = has_scale ? ((const float *)scale.data)[i] : 1.0;
            const double sum = has_shift ? ((const float *)shift.data)[i] : 0.0;
            const double want = (x[i] - mean) / sqrt(variance + 1e-2) * factor + sum;
            const double got = ((const float *)out.data)[r * n + i];
            /* x up to 2, in units of a deviation of 0.1 at least */
            if (!(fabs(got - want) <= 2.0 / 0.1 * 2.0 * 0x1p-18)) {
                check_fail("%s: normalized row of %zu at %zu is %g, expected %g", isa, n, i, got,
                           want);
            }
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: a normalized row of %zu wrote outside its output", isa, n);
    }
    check_free(&in);
    check_free(&scale);
    check_free(&shift);
    check_free(&out);
}

int main(void)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("reduce", &at, &isa);) {
        for (int round = 0; round < 200; round++) {
            check_softmax(isa.name, &isa.kernels.reduce);
            check_columns(isa.name, &isa.kernels.reduce);
            check_row(isa.name, &isa.kernels.reduce);
            check_normalized(isa.name, &isa.kernels.reduce);
        }
    }
    return check_end("reduce");
}

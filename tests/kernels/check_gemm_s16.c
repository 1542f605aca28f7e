/* gemm of 16-bit numbers: every table must equal a naive loop in 64 bits. */
#include <stdio.h>
#include <string.h>
#include "tests/kernels/check.h"

/* Ends of the ranges as often as numbers in between: sums of many of them leave 32 bits. */
static int16_t any(int lowest, int highest)
{
    const int kind = check_int(0, 3);
    return (int16_t)(kind == 0 ? lowest : kind == 1 ? highest : check_int(lowest, highest));
}

static struct check_buffer numbers(size_t rows, size_t n, size_t stride, int lowest, int highest,
                                   int always)
{
    struct check_buffer buffer = check_input(((rows - 1) * stride + n) * sizeof(int16_t));
    int16_t *to = buffer.data;
    for (size_t i = 0; i < (rows - 1) * stride + n; i++) {
        to[i] = always ? (int16_t)lowest : any(lowest, highest);
    }
    return buffer;
}

static int64_t naive(const struct ifd_s16_args *args, size_t i, size_t j)
{
    int64_t sum = 0;
    for (size_t k = 0; k < args->k; k++) {
        sum += (int64_t)args->a[i * args->a_stride + k] * args->w[j * args->w_stride + k];
    }
    return sum;
}

static void check_dot(const struct ifd_kernels_isa *isa, struct ifd_s16_args args)
{
    struct check_buffer sum = check_output(args.m * args.n * sizeof(int64_t));
    args.sum = sum.data;
    isa->kernels.gemm_s16.dot(&args);
    for (size_t i = 0; i < args.m * args.n; i++) {
        const int64_t want = naive(&args, i / args.n, i % args.n);
        if (args.sum[i] != want) {
            check_fail("%s: m %zu n %zu k %zu: sum %zu is %lld, not %lld", isa->name, args.m,
                       args.n, args.k, i, (long long)args.sum[i], (long long)want);
        }
    }
    if (!check_guards(&sum)) {
        check_fail("%s: m %zu n %zu k %zu wrote outside its output", isa->name, args.m, args.n,
                   args.k);
    }
    check_free(&sum);
}

static void check_multiply(const struct ifd_kernels_isa *isa, size_t n, size_t taps)
{
    struct check_buffer in = numbers(taps, n, n, INT16_MIN, INT16_MAX, taps == 511);
    struct check_buffer w = numbers(taps, n, n, INT8_MIN, INT8_MAX, taps == 511);
    struct check_buffer sum = check_output(n * sizeof(int32_t));
    int32_t *got = sum.data;
    const int16_t *x = in.data, *y = w.data;
    memset(got, 0, n * sizeof(*got));
    for (size_t t = 0; t < taps; t++) {
        isa->kernels.gemm_s16.multiply(n, x + t * n, y + t * n, got);
    }
    for (size_t c = 0; c < n; c++) {
        int64_t want = 0;
        for (size_t t = 0; t < taps; t++) {
            want += (int64_t)x[t * n + c] * y[t * n + c];
        }
        if (got[c] != want) {
            check_fail("%s: n %zu taps %zu: sum %zu is %d, not %lld", isa->name, n, taps, c, got[c],
                       (long long)want);
        }
    }
    if (!check_guards(&sum)) {
        check_fail("%s: n %zu taps %zu wrote outside its output", isa->name, n, taps);
    }
    check_free(&in);
    check_free(&w);
    check_free(&sum);
}

static void check_tables(size_t m, size_t n, size_t k, int always)
{
    struct ifd_s16_args args = {
        .m = m, .n = n, .k = k, .a_stride = k + (size_t)check_int(0, 1) * 5, .w_stride = k};
    struct check_buffer a = numbers(m, k, args.a_stride, INT16_MIN, INT16_MAX, always);
    struct check_buffer w = numbers(n, k, args.w_stride, INT8_MIN, INT8_MAX, always);
    args.a = a.data;
    args.w = w.data;
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("gemm_s16", &at, &isa);) {
        check_dot(&isa, args);
        check_multiply(&isa, n, (size_t)check_int(0, 9) ? (size_t)check_int(1, 49) : 511);
    }
    check_free(&a);
    check_free(&w);
}

struct bench {
    const struct ifd_kernels *kernels;
    struct ifd_s16_args args;
};

static void bench_call(void *arg)
{
    const struct bench *bench = arg;
    bench->kernels->gemm_s16.dot(&bench->args);
}

static void bench_shape(size_t m, size_t n, size_t k)
{
    struct check_buffer a = numbers(m, k, k, -1000, 1000, 0);
    struct check_buffer w = numbers(n, k, k, INT8_MIN, INT8_MAX, 0);
    struct check_buffer sum = check_output(m * n * sizeof(int64_t));
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("gemm_s16", &at, &isa);) {
        struct bench bench = {&isa.kernels,
                              {.a = a.data,
                               .w = w.data,
                               .sum = sum.data,
                               .m = m,
                               .n = n,
                               .k = k,
                               .a_stride = k,
                               .w_stride = k}};
        printf("gemm_s16 %-8s %zux%zux%zu %6.1f GMAC/s\n", isa.name, m, n, k,
               (double)(m * n * k) * 1e-9 / check_time(bench_call, &bench));
    }
    check_free(&a);
    check_free(&w);
    check_free(&sum);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench_shape(16, 24, 96);
        bench_shape(16, 64, 384);
        bench_shape(16, 128, 1152);
        return 0;
    }
    static const size_t ks[] = {32, 64, 96, 512, 544, 2048, 8160, 8192, 16384};
    for (int round = 0; round < 120; round++) {
        check_tables((size_t)check_int(1, 17), (size_t)check_int(1, 21), ks[check_int(0, 8)],
                     round % 8 == 0);
    }
    return check_end("gemm_s16");
}

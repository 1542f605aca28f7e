/* gemm with weights that are not packed: every table against a naive loop in double, and bit for
 * bit against gemm_f32 of the same instruction set. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/kernels/check.h"

struct problem {
    struct check_buffer w, bias, a, residual;
    struct ifd_dense_args args; /* all but out; add is residual or NULL */
};

static struct check_buffer random_floats(size_t count)
{
    struct check_buffer buffer = check_input(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        ((float *)buffer.data)[i] = check_float(-1.0f, 1.0f);
    }
    return buffer;
}

static struct problem make_problem(size_t m, size_t n, size_t k)
{
    struct problem p = {.args = {.m = m,
                                 .n_end = n,
                                 .k = k,
                                 .w_stride = k + (size_t)check_int(0, 1) * 3,
                                 .a_stride = k + (size_t)check_int(0, 1) * 5,
                                 .out_stride = n + (size_t)check_int(0, 1) * 7,
                                 .min = check_int(0, 1) ? -INFINITY : 0.0f,
                                 .max = check_int(0, 1) ? INFINITY : 0.75f}};
    p.args.add_stride = p.args.out_stride;
    p.w = random_floats((n - 1) * p.args.w_stride + k);
    p.a = random_floats((m - 1) * p.args.a_stride + k);
    p.bias = random_floats(n);
    p.residual = random_floats((m - 1) * p.args.out_stride + n);
    p.args.w = p.w.data;
    p.args.a = p.a.data;
    p.args.bias = check_int(0, 2) ? p.bias.data : NULL;
    p.args.add = check_int(0, 2) ? NULL : p.residual.data;
    return p;
}

static void free_problem(struct problem *p)
{
    check_free(&p->w);
    check_free(&p->bias);
    check_free(&p->a);
    check_free(&p->residual);
}

static bool is_right(const struct ifd_dense_args *args, size_t i, size_t j, float got)
{
    double sum = args->bias ? (double)args->bias[j] : 0.0, magnitude = fabs(sum);
    for (size_t c = 0; c < args->k; c++) {
        const double product =
            (double)args->a[i * args->a_stride + c] * (double)args->w[j * args->w_stride + c];
        sum += product;
        magnitude += fabs(product);
    }
    if (args->add) {
        sum += (double)args->add[i * args->add_stride + j];
        magnitude += 1.0;
    }
    const double want = fmin(args->max, fmax(args->min, sum));
    return fabs(got - want) <= magnitude * (double)(args->k + 3) * 0x1p-24;
}

/* Two calls, split at any column. in_place: the added tensor is the output. */
static void run_split(const struct ifd_kernels *kernels, struct ifd_dense_args args, float *out,
                      bool in_place)
{
    const size_t n = args.n_end;
    args.out = out;
    if (in_place) {
        for (size_t i = 0; i < args.m; i++) {
            memcpy(out + i * args.out_stride, args.add + i * args.add_stride, n * sizeof(float));
        }
        args.add = out;
    }
    args.n_end = (size_t)check_int(0, (int)n);
    kernels->dense.run(&args);
    args.n_begin = args.n_end;
    args.n_end = n;
    kernels->dense.run(&args);
}

/* What gemm_f32 makes of the same. */
static struct check_buffer run_packed(const struct ifd_kernels *kernels,
                                      const struct ifd_dense_args *args)
{
    const struct ifd_gemm_weights weights = {args->w,        args->n_end, args->k, 1,
                                             args->w_stride, 0,           1};
    const size_t bytes = kernels->gemm_f32.packed_bytes(args->n_end, args->k, 1);
    struct check_buffer packed = check_input((bytes + 63) / 64 * 64);
    struct check_buffer out =
        check_output(((args->m - 1) * args->out_stride + args->n_end) * sizeof(float));
    kernels->gemm_f32.pack(&weights, args->bias, packed.data);
    kernels->gemm_f32.run(&(struct ifd_gemm_args){.packed = packed.data,
                                                  .a = args->a,
                                                  .out = out.data,
                                                  .m = args->m,
                                                  .n_end = args->n_end,
                                                  .a_stride = args->a_stride,
                                                  .out_stride = args->out_stride,
                                                  .add = args->add,
                                                  .add_stride = args->add_stride,
                                                  .min = args->min,
                                                  .max = args->max});
    check_free(&packed);
    return out;
}

static void check_table(const struct ifd_kernels_isa *isa, const struct problem *p, bool in_place)
{
    const struct ifd_dense_args *args = &p->args;
    const size_t count = (args->m - 1) * args->out_stride + args->n_end;
    struct check_buffer out = check_output(count * sizeof(float));
    const float *got = out.data;
    run_split(&isa->kernels, *args, out.data, in_place);
    for (size_t at = 0; at < count; at++) {
        const size_t i = at / args->out_stride, j = at % args->out_stride;
        uint32_t bits = 0;
        memcpy(&bits, &got[at], sizeof(bits));
        if (j < args->n_end ? !is_right(args, i, j, got[at]) : bits != 0xa5a5a5a5u) {
            check_fail("%s: m %zu n %zu k %zu: (%zu, %zu) is %g", isa->name, args->m, args->n_end,
                       args->k, i, j, (double)got[at]);
        }
    }
    if (args->n_end >= 256) {
        struct check_buffer packed = run_packed(&isa->kernels, args);
        if (memcmp(packed.data, out.data, out.bytes) != 0) {
            check_fail("%s: m %zu n %zu k %zu: not what gemm_f32 makes", isa->name, args->m,
                       args->n_end, args->k);
        }
        check_free(&packed);
    }
    if (!check_guards(&out)) {
        check_fail("%s: m %zu n %zu k %zu wrote outside its output", isa->name, args->m,
                   args->n_end, args->k);
    }
    check_free(&out);
}

static void check_tables(struct problem p, bool in_place)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("dense", &at, &isa);) {
        check_table(&isa, &p, in_place);
    }
    free_problem(&p);
}

static void check_shapes(void)
{
    static const size_t ms[] = {1, 2, 3, 4, 5, 7, 8, 9, 16};
    static const size_t ns[] = {1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 256, 260, 273, 300};
    static const size_t ks[] = {1, 3, 4, 5, 8, 15, 16, 17, 31, 32, 47, 130, 2047, 2048, 2049, 4500};
    for (int round = 0; round < 150; round++) {
        const struct problem p =
            make_problem(ms[check_int(0, 8)], ns[check_int(0, 15)], ks[check_int(0, 15)]);
        check_tables(p, p.args.add && check_int(0, 1));
    }
}

/* More rows than a tile and columns longer than a part: sums would wait in the output, where the
 * added tensor lies. */
static void check_long_in_place(void)
{
    for (size_t m = 8; m <= 17; m += 3) {
        struct problem p = make_problem(m, 19, 4500);
        p.args.add = p.residual.data;
        check_tables(p, true);
    }
}

struct bench {
    const struct ifd_kernels *kernels;
    struct ifd_dense_args args;
};

static void bench_call(void *arg)
{
    const struct bench *bench = arg;
    bench->kernels->dense.run(&bench->args);
}

/* Weights that no cache holds. */
static void bench_rows(size_t m)
{
    enum { N = 4096, K = 12544 };
    struct check_buffer w = check_input((size_t)N * K * sizeof(float));
    struct check_buffer a = check_input(m * K * sizeof(float));
    struct check_buffer out = check_output(m * N * sizeof(float));
    memset(w.data, 0, w.bytes);
    memset(a.data, 0, a.bytes);
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("dense", &at, &isa);) {
        struct bench bench = {&isa.kernels,
                              {.w = w.data,
                               .a = a.data,
                               .out = out.data,
                               .m = m,
                               .n_end = N,
                               .k = K,
                               .w_stride = K,
                               .a_stride = K,
                               .out_stride = N,
                               .min = -INFINITY,
                               .max = INFINITY}};
        const double t = check_time(bench_call, &bench);
        printf("dense %-10s m %2zu k %d n %d: %8.0f us %6.1f GMAC/s %5.1f GB/s\n", isa.name, m, K,
               N, t * 1e6, (double)m * N * K / t * 1e-9, 4.0 * N * K / t * 1e-9);
    }
    check_free(&w);
    check_free(&a);
    check_free(&out);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        for (size_t m = 1; m <= 16; m *= 2) {
            bench_rows(m);
        }
        return 0;
    }
    check_shapes();
    check_long_in_place();
    return check_end("dense");
}

/* Q8 gemms and convolutions: every table against a naive loop over the definition. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/kernels/check.h"

/* One case: shape, addressing and the numbers. */
struct problem {
    size_t m, n, k, taps;
    size_t row_len, row_stride, a_stride, tap_stride, out_stride, a_count;
    bool table; /* of row pointers */
    int32_t in_zero, weight_zero, out_zero, out_min, out_max;
    enum ifd_round round;
    struct check_buffer a, w, rows;
    int32_t *bias, *multiplier, *shift;
    int64_t *sum; /* the true sums, m x n */
};

static const ifd_q8 *input_row(const struct problem *p, size_t i, size_t t)
{
    if (p->table) {
        return ((const ifd_q8 *const *)p->rows.data)[t * p->m + i];
    }
    return (const ifd_q8 *)p->a.data + i / p->row_len * p->row_stride +
           i % p->row_len * p->a_stride + t * p->tap_stride;
}

/* LiteRT's definitions, in the widest arithmetic at hand. */
static int64_t divide_nearest_away(int64_t x, int64_t by)
{
    return x >= 0 ? (x + by / 2) / by : -((-x + by / 2) / by);
}

static int64_t naive_round(const struct problem *p, int64_t sum, size_t j)
{
    int left = p->shift[j] > 0 ? p->shift[j] : 0, right = p->shift[j] < 0 ? -p->shift[j] : 0;
    int64_t product = sum * ((int64_t)1 << left) * p->multiplier[j];
    if (p->round == IFD_ROUND_EVEN) {
        return (int64_t)rint((double)((float)sum * check_factor(p->multiplier[j], p->shift[j])));
    }
    if (p->round == IFD_ROUND_SINGLE) {
        return (product + ((int64_t)1 << (30 + right))) >> (31 + right);
    }
    /* first rounding: to nearest, halves upwards */
    int64_t high = (product + ((int64_t)1 << 30)) >> 31;
    return divide_nearest_away(high, (int64_t)1 << right);
}

static ifd_q8 naive_finish(const struct problem *p, int64_t sum, size_t j)
{
    int64_t v = naive_round(p, sum, j) + p->out_zero;
    v = v < p->out_min ? p->out_min : v;
    return (ifd_q8)(v > p->out_max ? p->out_max : v);
}

static void set_numbers(struct problem *p, bool extreme)
{
    const bool one_sided = extreme && p->k * p->taps < 4000 && check_int(0, 3) == 0;
    size_t w_count = p->n * p->taps * p->k;
    p->w = check_input(w_count);
    p->bias = malloc(p->n * 4);
    p->multiplier = malloc(p->n * 4);
    p->shift = malloc(p->n * 4);
    ifd_q8 *a = p->a.data;
    for (size_t i = 0; i < p->a_count; i++) {
        a[i] = (ifd_q8)(extreme ? (!one_sided && check_int(0, 1) ? IFD_Q8_MAX : IFD_Q8_MIN)
                                : check_int(IFD_Q8_MIN, IFD_Q8_MAX));
    }
    int8_t *w = p->w.data;
    for (size_t i = 0; i < w_count; i++) {
        w[i] =
            (int8_t)(extreme ? (one_sided || check_int(0, 3) ? -127 : 127) : check_int(-128, 127));
    }
    /* factors that bring typical sums to the output's range, and some that do not */
    int typical = -(int)log2(sqrt((double)(p->k * p->taps)) * 60.0 + 1.0);
    const bool wild = check_int(0, 1);
    for (size_t j = 0; j < p->n; j++) {
        p->bias[j] = check_int(-20000, 20000);
        p->multiplier[j] = check_int(0, 7) ? check_int(1 << 30, INT32_MAX) : 1 << 30;
        p->shift[j] = typical + check_int(-1, 2);
        if (wild && check_int(0, 30) == 0) {
            p->shift[j] = check_int(-31, p->k * p->taps < 100 ? 2 : 0);
        }
    }
}

/* Weights that, a few excepted, have eight bits without their zero point: a kernel may fold it. */
static void narrow_weights(struct problem *p)
{
    int8_t *w = p->w.data;
    const size_t count = p->n * p->taps * p->k;
    for (size_t i = 0; i < count; i++) {
        const int to = w[i] - p->weight_zero;
        w[i] = (int8_t)(to < -128 ? p->weight_zero - 128 : to > 127 ? p->weight_zero + 127 : w[i]);
    }
    for (int few = check_int(0, 3); few > 0; few--) {
        w[check_int(0, (int)count - 1)] = p->weight_zero > 0 ? -128 : 127;
    }
}

static void set_sums(struct problem *p)
{
    p->sum = malloc(p->m * p->n * sizeof(*p->sum));
    const int8_t *w = p->w.data;
    for (size_t i = 0; i < p->m; i++) {
        for (size_t j = 0; j < p->n; j++) {
            int64_t sum = p->bias[j];
            for (size_t t = 0; t < p->taps; t++) {
                const ifd_q8 *a = input_row(p, i, t);
                for (size_t k = 0; k < p->k; k++) {
                    sum += (int64_t)(a[k] - p->in_zero) *
                           (w[(j * p->taps + t) * p->k + k] - p->weight_zero);
                }
            }
            p->sum[i * p->n + j] = sum;
        }
    }
}

static struct problem make_problem(size_t m, size_t n, size_t k, size_t taps, int style,
                                   bool extreme)
{
    struct problem p = {.m = m, .n = n, .k = k, .taps = taps, .row_len = m};
    p.out_stride = n + (size_t)check_int(0, 1) * 5;
    p.a_stride = k + (size_t)check_int(0, 3);
    p.tap_stride = p.a_stride * 2 + 1;
    if (style == 1) { /* several lines, as in a strided convolution */
        p.row_len = (size_t)check_int(1, (int)m);
        p.row_stride = p.row_len * p.a_stride * 2 + 3;
    }
    size_t last = (m - 1) / p.row_len * p.row_stride + (p.row_len - 1) * p.a_stride;
    p.a_count = last + (taps - 1) * p.tap_stride + k;
    p.a = check_input(p.a_count);
    set_numbers(&p, extreme);
    if (style == 2) {
        p.rows = check_input(m * taps * sizeof(void *));
        const void **rows = p.rows.data;
        for (size_t i = 0; i < m * taps; i++) {
            rows[i] = (const ifd_q8 *)p.a.data + check_int(0, (int)(p.a_count - k));
        }
        p.table = true;
    }
    p.in_zero = check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    p.weight_zero = check_int(0, 3) ? 0 : check_int(-128, 127);
    p.out_zero = check_int(0, 1) ? check_int(IFD_Q8_MIN, IFD_Q8_MAX) : IFD_Q8_MIN;
    if (p.weight_zero != 0 && check_int(0, 3)) {
        narrow_weights(&p);
    }
    p.out_min = check_int(0, 2) ? IFD_Q8_MIN : p.out_zero;
    p.out_max = check_int(0, 2) ? IFD_Q8_MAX : check_int(p.out_min, IFD_Q8_MAX);
    set_sums(&p);
    return p;
}

static void free_problem(struct problem *p)
{
    check_free(&p->a);
    check_free(&p->w);
    if (p->table) {
        check_free(&p->rows);
    }
    free(p->bias);
    free(p->multiplier);
    free(p->shift);
    free(p->sum);
}

static struct check_buffer pack_problem(const struct problem *p,
                                        const struct ifd_kern_gemm_q8 *kern)
{
    struct ifd_gemm_weights weights = {p->w.data, p->n, p->k, p->taps, p->taps * p->k, p->k, 1};
    struct ifd_requant requant = {p->bias,    p->multiplier, p->shift,
                                  p->in_zero, p->out_zero,   p->weight_zero,
                                  p->out_min, p->out_max,    p->round};
    size_t bytes = kern->packed_bytes(p->n, p->k, p->taps);
    struct check_buffer packed = check_input((bytes + 63) / 64 * 64);
    kern->pack(&weights, &requant, packed.data);
    return packed;
}

static struct ifd_gemm_args make_args(const struct problem *p, const void *packed, void *out,
                                      const int32_t *row_add)
{
    return (struct ifd_gemm_args){.packed = packed,
                                  .a = p->a.data,
                                  .rows = p->table ? p->rows.data : NULL,
                                  .out = out,
                                  .m = p->m,
                                  .n_end = p->n,
                                  .row_len = p->row_len == p->m ? 0 : p->row_len,
                                  .row_stride = p->row_stride,
                                  .a_stride = p->a_stride,
                                  .tap_stride = p->tap_stride,
                                  .out_stride = p->out_stride,
                                  .row_add = row_add};
}

/* Many rows at a time, against the same one by one. */
static void check_row_sum(const char *isa, const struct ifd_kern_gemm_q8 *kern)
{
    const size_t m = (size_t)check_int(1, 40),
                 k = (size_t)(check_int(0, 1) ? check_int(1, 20) : check_int(1, 200)),
                 stride = k + (size_t)check_int(0, 9);
    const int32_t factor = check_int(-128, 127);
    struct check_buffer a = check_input((m - 1) * stride + k), sum = check_output(m * 4);
    for (size_t i = 0; i < a.bytes; i++) {
        ((ifd_q8 *)a.data)[i] = (ifd_q8)check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    }
    kern->row_sum(a.data, m, k, stride, factor, sum.data);
    for (size_t i = 0; i < m; i++) {
        int32_t want = 0;
        for (size_t j = 0; j < k; j++) {
            want += factor * ((const ifd_q8 *)a.data)[i * stride + j];
        }
        if (((const int32_t *)sum.data)[i] != want) {
            check_fail("%s: sum of row %zu of %zu x %zu differs", isa, i, m, k);
        }
    }
    if (!check_guards(&sum)) {
        check_fail("%s: row sums wrote outside their output", isa);
    }
    check_free(&a);
    check_free(&sum);
}

/* The input sums of each row, by the table's own row_sum (whose result is checked with the
 * rest). */
static int32_t *row_adds(const struct problem *p, const struct ifd_kern_gemm_q8 *kern)
{
    int32_t *add = calloc(p->m, sizeof(*add));
    for (size_t i = 0; i < p->m && p->weight_zero != 0; i++) {
        for (size_t t = 0; t < p->taps; t++) {
            int32_t sum;
            kern->row_sum(input_row(p, i, t), 1, p->k, p->k, -p->weight_zero, &sum);
            add[i] += sum;
        }
    }
    return add;
}

/* Element at of an output: 8 bits, or the sum itself. */
static int element(const struct problem *p, const void *out, size_t at)
{
    return p->round == IFD_ROUND_NONE ? ((const int32_t *)out)[at] : ((const ifd_q8 *)out)[at];
}

static int wanted(const struct problem *p, size_t i, size_t j)
{
    const int64_t sum = p->sum[i * p->n + j];
    return p->round == IFD_ROUND_NONE ? (int)sum : naive_finish(p, sum, j);
}

/* The byte that check_output() fills its memory with. */
static int untouched(const struct problem *p)
{
    return p->round == IFD_ROUND_NONE ? (int)0xa5a5a5a5 : (ifd_q8)0xa5;
}

static bool is_right(const struct problem *p, size_t i, size_t j, int got)
{
    int want = wanted(p, i, j);
    return p->round == IFD_ROUND_FAST ? abs(got - want) <= 1 : got == want;
}

static void check_table(const struct problem *p, const char *isa,
                        const struct ifd_kern_gemm_q8 *kern)
{
    struct check_buffer packed = pack_problem(p, kern);
    const size_t count = (p->m - 1) * p->out_stride + p->n;
    struct check_buffer out = check_output(count * (p->round == IFD_ROUND_NONE ? 4 : 1));
    const struct ifd_packed *header = packed.data;
    int32_t *add = row_adds(p, kern);
    struct ifd_gemm_args args =
        make_args(p, packed.data, out.data, p->weight_zero && !header->folds_zero ? add : NULL);
    /* in two column ranges where there is more than one block */
    size_t split = p->n > header->nr ? header->nr : p->n;
    args.n_end = split;
    kern->run(&args);
    args.n_begin = split;
    args.n_end = p->n;
    if (split < p->n) {
        kern->run(&args);
    }
    for (size_t i = 0; i < p->m; i++) {
        for (size_t j = 0; j < p->out_stride && i * p->out_stride + j < count; j++) {
            const int value = element(p, out.data, i * p->out_stride + j);
            if (j >= p->n ? value != untouched(p) : !is_right(p, i, j, value)) {
                check_fail("%s: m %zu n %zu k %zu taps %zu round %d: (%zu, %zu) is %d, expected %d",
                           isa, p->m, p->n, p->k, p->taps, (int)p->round, i, j, value,
                           j < p->n ? wanted(p, i, j) : untouched(p));
            }
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: m %zu n %zu k %zu wrote outside its output", isa, p->m, p->n, p->k);
    }
    free(add);
    check_free(&packed);
    check_free(&out);
}

static void check_problem(struct problem *p)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("gemm_q8", &at, &isa);) {
        for (int round = IFD_ROUND_FAST; round <= IFD_ROUND_NONE; round++) {
            p->round = (enum ifd_round)round;
            check_table(p, isa.name, &isa.kernels.gemm_q8);
        }
        check_row_sum(isa.name, &isa.kernels.gemm_q8);
    }
    free_problem(p);
}

static void check_shapes(void)
{
    static const size_t ms[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 25, 49};
    static const size_t ns[] = {1,  3,  4,  8,  15, 16, 17,  24,  32, 33,
                                47, 48, 60, 64, 80, 96, 129, 144, 208};
    static const size_t ks[] = {1, 2, 3, 4, 7, 8, 9, 16, 24, 27, 65, 130};
    static const size_t halves[][2] = {{24, 64}, {24, 96}, {40, 72}, {40, 240}, {40, 64}};
    for (int round = 0; round < 150; round++) {
        size_t m = ms[check_int(0, 12)], n = ns[check_int(0, 18)], k = ks[check_int(0, 11)];
        size_t taps = check_int(0, 1) ? 1 : (size_t)check_int(1, 9);
        struct problem p = make_problem(m, n, k, taps, round % 3, round % 5 == 4);
        check_problem(&p);
    }
    for (int round = 0; round < 30; round++) {
        const size_t *shape = halves[round % 5];
        struct problem p =
            make_problem(ms[check_int(0, 12)], shape[0], shape[1],
                         check_int(0, 1) ? 1 : (size_t)check_int(1, 9), round % 3, round % 2);
        check_problem(&p);
    }
    struct problem longest = make_problem(3, 20, 1777, 9, 0, true);
    check_problem(&longest);
}

struct bench {
    const struct ifd_kern_gemm_q8 *kern;
    struct ifd_gemm_args args;
};

static void bench_call(void *arg)
{
    struct bench *bench = arg;
    bench->kern->run(&bench->args);
}

static void bench_shape(size_t m, size_t k, size_t n, size_t taps)
{
    double peak = check_peak_q8();
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("gemm_q8", &at, &isa);) {
        struct problem p = {.m = m,
                            .n = n,
                            .k = k,
                            .taps = taps,
                            .row_len = m,
                            .a_stride = k,
                            .tap_stride = k,
                            .out_stride = n,
                            .a_count = (m + taps - 1) * k,
                            .in_zero = 3,
                            .out_zero = IFD_Q8_MIN + 5,
                            .out_min = IFD_Q8_MIN,
                            .out_max = IFD_Q8_MAX};
        p.a = check_input(p.a_count);
        set_numbers(&p, false);
        printf("%-7s m %5zu k %4zu n %4zu taps %zu:", isa.name, m, k, n, taps);
        for (int round = 0; round < 4; round++) {
            static const enum ifd_round kinds[] = {IFD_ROUND_FAST, IFD_ROUND_SINGLE,
                                                   IFD_ROUND_DOUBLE, IFD_ROUND_EVEN};
            p.round = kinds[round];
            struct check_buffer packed = pack_problem(&p, &isa.kernels.gemm_q8);
            struct check_buffer out = check_output(m * n);
            struct bench bench = {&isa.kernels.gemm_q8, make_args(&p, packed.data, out.data, NULL)};
            double t = check_time(bench_call, &bench);
            double rate = (double)(m * n * k * taps) / t * 1e-9;
            printf("  %7.1f us %6.1f GMAC/s %3.0f%%", t * 1e6, rate,
                   peak > 0 ? rate / peak * 100 : 0.0);
            check_free(&packed);
            check_free(&out);
        }
        printf("\n");
        p.sum = NULL;
        free_problem(&p);
    }
}

static void bench_all(void)
{
    static const size_t shapes[][4] = {
        {12544, 32, 16, 1}, {12544, 16, 96, 1}, {3136, 96, 24, 1},  {3136, 24, 144, 1},
        {3136, 144, 24, 1}, {784, 240, 40, 1},  {784, 144, 32, 1},  {784, 32, 192, 1},
        {196, 64, 384, 1},  {196, 384, 64, 1},  {196, 96, 576, 1},  {196, 576, 96, 1},
        {49, 160, 960, 1},  {49, 960, 160, 1},  {49, 320, 1280, 1}, {1, 1280, 1001, 1},
        {12544, 9, 32, 3},  {784, 128, 128, 9}, {196, 256, 256, 9}};
    printf("peak %.0f GMAC/s; columns: fast, single, double rounding\n", check_peak_q8());
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        bench_shape(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench_all();
        return 0;
    }
    check_shapes();
    return check_end("gemm_q8");
}

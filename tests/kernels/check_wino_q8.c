/* 8-bit Winograd convolutions: bit for bit the result of the scalar table's gemm_q8 for the same
 * layer, which check_gemm_q8 compares with the definition. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/kernels/check.h"

struct problem {
    size_t h, w, k, n, pad, out_h, out_w, pixel, out_pixel; /* strides of pixels */
    struct check_buffer in, weights;
    int32_t *bias, *multiplier, *shift;
    struct ifd_requant requant;
};

static void set_factors(struct problem *p)
{
    const int typical = -(int)log2(sqrt((double)(p->k * 9)) * 60.0 + 1.0);
    p->bias = malloc(p->n * 4);
    p->multiplier = malloc(p->n * 4);
    p->shift = malloc(p->n * 4);
    for (size_t j = 0; j < p->n; j++) {
        p->bias[j] = check_int(-20000, 20000);
        p->multiplier[j] = check_int(1 << 30, INT32_MAX);
        p->shift[j] = typical + check_int(-2, 2);
    }
    const int32_t zero = check_int(0, 1) ? check_int(IFD_Q8_MIN, IFD_Q8_MAX) : IFD_Q8_MIN;
    const int32_t min = check_int(0, 2) ? IFD_Q8_MIN : zero;
    p->requant =
        (struct ifd_requant){.bias = check_int(0, 3) ? p->bias : NULL,
                             .multiplier = p->multiplier,
                             .shift = p->shift,
                             .in_zero = check_int(IFD_Q8_MIN, IFD_Q8_MAX),
                             .out_zero = zero,
                             .out_min = min,
                             .out_max = check_int(0, 2) ? IFD_Q8_MAX : check_int(min, IFD_Q8_MAX)};
}

/* extreme: 1: random numbers at the ends of their ranges; 2: the largest sums; 3: the smallest
 * sums. */
static struct problem make_problem(size_t h, size_t w, size_t k, size_t n, size_t pad, int extreme)
{
    struct problem p = {.h = h, .w = w, .k = k, .n = n, .pad = pad};
    p.out_h = h + 2 * pad - 2;
    p.out_w = w + 2 * pad - 2;
    p.pixel = k + (check_int(0, 1) ? 3 : 0);
    p.out_pixel = n + (check_int(0, 1) ? 5 : 0);
    p.in = check_input(h * w * p.pixel);
    p.weights = check_input(9 * n * k);
    for (size_t i = 0; i < p.in.bytes; i++) {
        const int side = extreme > 1 ? extreme == 2 : check_int(0, 1);
        ((ifd_q8 *)p.in.data)[i] = (ifd_q8)(!extreme ? check_int(IFD_Q8_MIN, IFD_Q8_MAX)
                                            : side   ? IFD_Q8_MAX
                                                     : IFD_Q8_MIN);
    }
    for (size_t i = 0; i < p.weights.bytes; i++) {
        const int side = extreme > 1 ? (i / (9 * k) + (size_t)extreme) % 2 == 0 : check_int(0, 1);
        ((int8_t *)p.weights.data)[i] = (int8_t)(!extreme ? check_int(-128, 127)
                                                 : side   ? 127
                                                          : -128);
    }
    set_factors(&p);
    return p;
}

static void free_problem(struct problem *p)
{
    check_free(&p->in);
    check_free(&p->weights);
    free(p->bias);
    free(p->multiplier);
    free(p->shift);
}

/* The layer by gemm_q8 with its padding materialised: dense, [pixel][n]. */
static struct check_buffer expected(const struct problem *p)
{
    struct ifd_kernels_isa scalar;
    ifd_kernels_isa(0, &scalar);
    const struct ifd_kern_gemm_q8 *kern = &scalar.kernels.gemm_q8;
    const size_t line = (p->w + 2 * p->pad) * p->k;
    struct check_buffer padded = check_input((p->h + 2 * p->pad) * line);
    struct check_buffer packed =
        check_input((kern->packed_bytes(p->n, 3 * p->k, 3) + 63) / 64 * 64);
    struct check_buffer out = check_output(p->out_h * p->out_w * p->n);
    memset(padded.data, p->requant.in_zero, padded.bytes);
    for (size_t i = 0; i < p->h * p->w; i++) {
        memcpy((ifd_q8 *)padded.data + (i / p->w + p->pad) * line + (i % p->w + p->pad) * p->k,
               (const ifd_q8 *)p->in.data + i * p->pixel, p->k);
    }
    const struct ifd_gemm_weights weights = {p->weights.data, p->n,     3 * p->k, 3,
                                             9 * p->k,        3 * p->k, 1};
    kern->pack(&weights, &p->requant, packed.data);
    kern->run(&(struct ifd_gemm_args){.packed = packed.data,
                                      .a = padded.data,
                                      .out = out.data,
                                      .m = p->out_h * p->out_w,
                                      .n_end = p->n,
                                      .row_len = p->out_w,
                                      .row_stride = line,
                                      .a_stride = p->k,
                                      .tap_stride = line,
                                      .out_stride = p->n});
    check_free(&padded);
    check_free(&packed);
    return out;
}

struct plan {
    const struct ifd_kern_wino_q8 *kern;
    struct check_buffer packed, scratch;
    size_t patches, group;
    struct ifd_wino_q8_args args;
};

static struct plan make_plan(const struct ifd_kern_wino_q8 *kern, const struct problem *p,
                             void *out, size_t group)
{
    struct plan plan = {.kern = kern, .group = group};
    const struct ifd_gemm_weights weights = {p->weights.data, p->n, p->k, 9, 9 * p->k, p->k, 1};
    plan.packed = check_input((kern->packed_bytes(p->n, p->k) + 63) / 64 * 64);
    plan.scratch = check_output(kern->scratch_bytes(p->n, p->k, group));
    kern->pack(&weights, &p->requant, plan.packed.data);
    plan.patches = (p->out_h + 3) / 4 * ((p->out_w + 3) / 4);
    plan.args = (struct ifd_wino_q8_args){.packed = plan.packed.data,
                                          .in = p->in.data,
                                          .out = out,
                                          .in_h = p->h,
                                          .in_w = p->w,
                                          .in_pixel_stride = p->pixel,
                                          .in_line_stride = p->w * p->pixel,
                                          .out_h = p->out_h,
                                          .out_w = p->out_w,
                                          .out_pixel_stride = p->out_pixel,
                                          .out_line_stride = p->out_w * p->out_pixel,
                                          .pad_top = (uint32_t)p->pad,
                                          .pad_left = (uint32_t)p->pad,
                                          .n_end = p->n,
                                          .scratch = plan.scratch.data};
    return plan;
}

static void run_plan(void *arg)
{
    struct plan *plan = arg;
    struct ifd_wino_q8_args *args = &plan->args;
    for (args->patch_begin = 0; args->patch_begin < plan->patches;
         args->patch_begin += args->patch_count) {
        const size_t left = plan->patches - args->patch_begin;
        args->patch_count = left < plan->group ? left : plan->group;
        plan->kern->run(args);
    }
}

static void free_plan(struct plan *plan)
{
    check_free(&plan->packed);
    check_free(&plan->scratch);
}

/* All patches, in two ranges of columns where there is more than one block. */
static void check_table(const struct problem *p, const struct ifd_kernels_isa *isa,
                        const ifd_q8 *want)
{
    const size_t pixels = p->out_h * p->out_w;
    struct check_buffer out = check_output((pixels - 1) * p->out_pixel + p->n);
    struct plan plan = make_plan(&isa->kernels.wino_q8, p, out.data, (size_t)check_int(1, 20));
    const struct ifd_packed *header = plan.packed.data;
    plan.args.n_end = p->n > header->nr ? header->nr : p->n;
    run_plan(&plan);
    plan.args.n_begin = plan.args.n_end;
    plan.args.n_end = p->n;
    if (plan.args.n_begin < p->n) {
        run_plan(&plan);
    }
    for (size_t i = 0; i < out.bytes; i++) {
        const size_t pixel = i / p->out_pixel, c = i % p->out_pixel;
        const int value = ((const ifd_q8 *)out.data)[i];
        const int right = c < p->n ? want[pixel * p->n + c] : 0xa5;
        if (value != right) {
            check_fail("%s: %zux%zu k %zu n %zu pad %zu round %d: pixel %zu column %zu is %d, "
                       "expected %d",
                       isa->name, p->h, p->w, p->k, p->n, p->pad, (int)p->requant.round, pixel, c,
                       value, right);
        }
    }
    if (!check_guards(&out) || !check_guards(&plan.scratch)) {
        check_fail("%s: k %zu n %zu wrote outside", isa->name, p->k, p->n);
    }
    free_plan(&plan);
    check_free(&out);
}

static void check_problem(struct problem *p, const struct ifd_kernels_isa *isa)
{
    for (int round = IFD_ROUND_FAST; round <= IFD_ROUND_EVEN; round++) {
        p->requant.round = (enum ifd_round)round;
        struct check_buffer want = expected(p);
        check_table(p, isa, want.data);
        check_free(&want);
    }
    free_problem(p);
}

static void check_shapes(const struct ifd_kernels_isa *isa)
{
    static const size_t ks[] = {1, 2, 3, 8, 15, 31, 32, 33, 64, 65, 100, 226};
    static const size_t ns[] = {1, 4, 15, 16, 17, 32, 40, 48, 64, 65, 80, 96, 130};
    for (int round = 0; round < 80; round++) {
        struct problem p =
            make_problem((size_t)check_int(3, 14), (size_t)check_int(3, 14), ks[check_int(0, 11)],
                         ns[check_int(0, 12)], (size_t)check_int(0, 1), round % 4 == 3);
        check_problem(&p, isa);
    }
    /* sums that use all bits available, in one group of channels and in more */
    static const size_t deep[] = {222, 223, 224, 226, 227, 228, 256, 448, 449, 512, 700};
    for (size_t i = 0; i < 2 * sizeof(deep) / sizeof(deep[0]); i++) {
        struct problem p = make_problem(6, 6, deep[i / 2], 5, 0, 2 + (int)i % 2);
        check_problem(&p, isa);
    }
}

static void bench_one(const struct ifd_kernels_isa *isa, size_t edge, size_t k, size_t n,
                      double peak)
{
    struct problem p = make_problem(edge, edge, k, n, 1, 0);
    struct check_buffer out = check_output(edge * edge * p.out_pixel);
    for (size_t group = 6; group <= 48; group += 6) {
        struct plan plan = make_plan(&isa->kernels.wino_q8, &p, out.data, group);
        const double t = check_time(run_plan, &plan);
        const double rate = 9.0 * (double)(edge * edge * k * n) / t * 1e-9;
        printf("%-7s %3zu^2 %3zu -> %3zu, %2zu patches: %8.1f us, %6.1f GMAC/s of the direct sum, "
               "%3.0f%%\n",
               isa->name, edge, k, n, group, t * 1e6, rate, peak > 0 ? rate / peak * 100 : 0.0);
        free_plan(&plan);
    }
    check_free(&out);
    free_problem(&p);
}

int main(int argc, char **argv)
{
    const bool timing = argc > 1 && strcmp(argv[1], "--bench") == 0;
    const double peak = timing ? check_peak_q8() : 0.0;
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("wino_q8", &at, &isa);) {
        static const size_t shapes[][3] = {{56, 64, 64},   {28, 128, 128}, {52, 128, 256},
                                           {26, 256, 512}, {16, 32, 32},   {8, 64, 64},
                                           {32, 16, 16},   {104, 32, 64}};
        for (size_t s = 0; timing && s < sizeof(shapes) / sizeof(shapes[0]); s++) {
            bench_one(&isa, shapes[s][0], shapes[s][1], shapes[s][2], peak);
        }
        if (!timing) {
            check_shapes(&isa);
        }
    }
    return timing ? 0 : check_end("wino_q8");
}

/* Winograd convolutions of stride 1 and 2, with the gemms of the same table, against a
 * naive 3x3 convolution in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/kernels/check.h"

struct problem {
    size_t h, w, k, n, size, stride, pad;
    struct check_buffer in, weights, bias, out, residual;
    bool add;
    float min;
};

static struct check_buffer random_floats(size_t count)
{
    struct check_buffer buffer = check_input(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        ((float *)buffer.data)[i] = check_float(-1.0f, 1.0f);
    }
    return buffer;
}

static double naive(const struct problem *p, size_t y, size_t x, size_t n)
{
    double sum = ((const float *)p->bias.data)[n];
    for (size_t t = 0; t < 9; t++) {
        int64_t iy = (int64_t)(y * p->stride + t / 3) - (int64_t)p->pad,
                ix = (int64_t)(x * p->stride + t % 3) - (int64_t)p->pad;
        if (iy < 0 || ix < 0 || iy >= (int64_t)p->h || ix >= (int64_t)p->w) {
            continue;
        }
        for (size_t c = 0; c < p->k; c++) {
            sum +=
                (double)((const float *)p->in.data)[((size_t)iy * p->w + (size_t)ix) * p->k + c] *
                ((const float *)p->weights.data)[(n * 9 + t) * p->k + c];
        }
    }
    return sum;
}

/* The packed matrices of a problem and room for the transformed patches. */
struct plan {
    const struct ifd_kernels *kernels;
    const struct problem *p;
    size_t out_h, out_w, patches, group, packed_bytes;
    struct check_buffer packed, v, m;
};

static size_t out_pixels(size_t in, const struct problem *p)
{
    return (in + 2 * p->pad - 3) / p->stride + 1;
}

static struct plan make_plan(const struct ifd_kernels *kernels, const struct problem *p,
                             size_t group)
{
    struct plan plan = {.kernels = kernels, .p = p, .group = group};
    size_t edge = IFD_WINO_EDGE(p->size, p->stride), points = p->size + 2;
    plan.out_h = out_pixels(p->h, p);
    plan.out_w = out_pixels(p->w, p);
    plan.patches = (plan.out_h + p->size - 1) / p->size * ((plan.out_w + p->size - 1) / p->size);
    plan.packed_bytes = (kernels->gemm_f32.packed_bytes(p->n, p->k, 1) + 63) / 64 * 64;
    plan.packed = check_input(points * points * plan.packed_bytes);
    plan.v = check_output(edge * edge * group * p->k * 4 + 64);
    plan.m = check_output(edge * edge * group * p->n * 4 + 64);
    struct check_buffer u = check_output(points * points * p->n * p->k * 4);
    struct ifd_gemm_weights weights = {p->weights.data, p->n, p->k, 9, 9 * p->k, p->k, 1};
    kernels->wino.weights((uint32_t)p->size, (uint32_t)p->stride, &weights, u.data);
    for (size_t t = 0; t < points * points; t++) {
        struct ifd_gemm_weights matrix = {
            (const float *)u.data + t * p->n * p->k, p->n, p->k, 1, p->k, 0, 1};
        kernels->gemm_f32.pack(&matrix, NULL, (char *)plan.packed.data + t * plan.packed_bytes);
    }
    if (!check_guards(&u)) {
        check_fail("weights wrote outside their output");
    }
    check_free(&u);
    return plan;
}

/* Along one side: the index of the weights for a value. */
static size_t matrix_of(const struct problem *p, size_t value)
{
    return value < p->size + 1 ? value : p->size + 1;
}

static void run_plan(void *arg)
{
    struct plan *plan = arg;
    const struct problem *p = plan->p;
    size_t edge = IFD_WINO_EDGE(p->size, p->stride);
    size_t patches_x = (plan->out_w + p->size - 1) / p->size;
    for (size_t first = 0; first < plan->patches; first += plan->group) {
        size_t count = plan->patches - first < plan->group ? plan->patches - first : plan->group;
        struct ifd_wino_args in = {.size = (uint32_t)p->size,
                                   .stride = (uint32_t)p->stride,
                                   .channels = p->k,
                                   .patches_x = patches_x,
                                   .patch_begin = first,
                                   .patch_count = count,
                                   .image = p->in.data,
                                   .height = p->h,
                                   .width = p->w,
                                   .pixel_stride = p->k,
                                   .line_stride = p->w * p->k,
                                   .pad_top = (uint32_t)p->pad,
                                   .pad_left = (uint32_t)p->pad,
                                   .matrices = plan->v.data,
                                   .matrix_stride = plan->group * p->k,
                                   .row_stride = p->k};
        plan->kernels->wino.input(&in);
        for (size_t t = 0; t < edge * edge; t++) {
            size_t matrix = matrix_of(p, t / edge) * (p->size + 2) + matrix_of(p, t % edge);
            struct ifd_gemm_args gemm = {.packed = (char *)plan->packed.data +
                                                   matrix * plan->packed_bytes,
                                         .a = (float *)plan->v.data + t * plan->group * p->k,
                                         .out = (float *)plan->m.data + t * plan->group * p->n,
                                         .m = count,
                                         .n_end = p->n,
                                         .a_stride = p->k,
                                         .out_stride = p->n,
                                         .min = -INFINITY,
                                         .max = INFINITY};
            plan->kernels->gemm_f32.run(&gemm);
        }
        struct ifd_wino_args out = {.size = (uint32_t)p->size,
                                    .stride = (uint32_t)p->stride,
                                    .channels = p->n,
                                    .patches_x = patches_x,
                                    .patch_begin = first,
                                    .patch_count = count,
                                    .image = p->out.data,
                                    .height = plan->out_h,
                                    .width = plan->out_w,
                                    .pixel_stride = p->n,
                                    .line_stride = plan->out_w * p->n,
                                    .matrices = plan->m.data,
                                    .matrix_stride = plan->group * p->n,
                                    .row_stride = p->n,
                                    .bias = p->bias.data,
                                    .add = p->add ? p->residual.data : NULL,
                                    .min = p->min,
                                    .max = INFINITY};
        plan->kernels->wino.output(&out);
    }
}

static void free_plan(struct plan *plan)
{
    check_free(&plan->packed);
    check_free(&plan->v);
    check_free(&plan->m);
}

static struct problem make_problem(size_t h, size_t w, size_t k, size_t n, size_t size,
                                   size_t stride, size_t pad)
{
    struct problem p = {.h = h, .w = w, .k = k, .n = n, .size = size, .stride = stride, .pad = pad};
    size_t count = out_pixels(h, &p) * out_pixels(w, &p) * n;
    p.in = random_floats(h * w * k);
    p.weights = random_floats(9 * n * k);
    p.bias = random_floats(n);
    p.residual = random_floats(count);
    p.out = check_output(count * sizeof(float));
    p.min = -INFINITY;
    return p;
}

static void free_problem(struct problem *p)
{
    check_free(&p->in);
    check_free(&p->weights);
    check_free(&p->bias);
    check_free(&p->residual);
    check_free(&p->out);
}

static void check_one(const struct ifd_kernels_isa *isa)
{
    static const size_t channels[] = {1, 3, 4, 8, 15, 16, 17, 33};
    struct problem p =
        make_problem((size_t)check_int(3, 13), (size_t)check_int(3, 13), channels[check_int(0, 7)],
                     channels[check_int(0, 7)], (size_t)check_int(2, 4), (size_t)check_int(1, 2),
                     (size_t)check_int(0, 1));
    p.add = check_int(0, 1);
    p.min = check_int(0, 1) ? -INFINITY : 0.0f;
    struct plan plan = make_plan(&isa->kernels, &p, (size_t)check_int(1, 9));
    run_plan(&plan);
    static const double worse[] = {[2] = 12.0, [3] = 16.0, [4] = 60.0}; /* than the direct sum */
    double slack = (double)(9 * p.k + 4) * 0x1p-24 * worse[p.size];
    for (size_t i = 0; i < plan.out_h * plan.out_w * p.n; i++) {
        double want = naive(&p, i / p.n / plan.out_w, i / p.n % plan.out_w, i % p.n);
        want += p.add ? ((const float *)p.residual.data)[i] : 0.0;
        want = fmax(p.min, want);
        double got = ((const float *)p.out.data)[i];
        if (!(fabs(got - want) <= slack)) {
            check_fail("%s: %zux%zu/%zu k %zu n %zu size %zu pad %zu: %zu is %g, expected %g",
                       isa->name, p.h, p.w, p.stride, p.k, p.n, p.size, p.pad, i, got, want);
        }
    }
    if (!check_guards(&p.out) || !check_guards(&plan.v) || !check_guards(&plan.m)) {
        check_fail("%s: k %zu n %zu size %zu wrote outside", isa->name, p.k, p.n, p.size);
    }
    free_plan(&plan);
    free_problem(&p);
}

static void bench_one(const struct ifd_kernels_isa *isa, size_t edge, size_t channels,
                      size_t stride, double peak)
{
    for (size_t size = 2; size <= 4; size++) {
        struct problem p = make_problem(edge, edge, channels, channels, size, stride, 1);
        double best = INFINITY;
        size_t best_group = 0;
        for (size_t group = 12; group <= 96; group *= 2) {
            struct plan plan = make_plan(&isa->kernels, &p, group);
            double t = check_time(run_plan, &plan);
            best_group = t < best ? group : best_group;
            best = t < best ? t : best;
            free_plan(&plan);
        }
        size_t out = out_pixels(edge, &p);
        double rate = 9.0 * (double)(out * out * channels * channels) / best * 1e-9;
        printf("%-7s %3zu^2/%zu c %3zu F(%zu): %8.1f us, %6.1f GMAC/s of the direct sum, %3.0f%%, "
               "%zu patches\n",
               isa->name, edge, stride, channels, size, best * 1e6, rate,
               peak > 0 ? rate / peak * 100 : 0.0, best_group);
        free_problem(&p);
    }
}

int main(int argc, char **argv)
{
    const bool timing = argc > 1 && strcmp(argv[1], "--bench") == 0;
    double peak = timing ? check_peak_f32() : 0.0;
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("wino", &at, &isa);) {
        if (timing && at > 1) {
            for (size_t stride = 1; stride <= 2; stride++) {
                bench_one(&isa, 56, 64, stride, peak);
                bench_one(&isa, 28, 128, stride, peak);
                bench_one(&isa, 14, 256, stride, peak);
                bench_one(&isa, 7, 512, stride, peak);
            }
        }
        for (int round = 0; round < 60 && !timing; round++) {
            check_one(&isa);
        }
    }
    return timing ? 0 : check_end("wino");
}

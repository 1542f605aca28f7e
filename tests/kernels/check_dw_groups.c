/* f32 windows over groups of channels: every table against a naive loop in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "tests/kernels/check.h"

struct problem {
    struct ifd_groups_args args; /* pointers filled in per table */
    size_t in_w, in_h;
    struct check_buffer in, w, bias;
};

static struct check_buffer random_floats(size_t count)
{
    struct check_buffer buffer = check_input(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        ((float *)buffer.data)[i] = check_float(-1.0f, 1.0f);
    }
    return buffer;
}

static struct problem make_problem(size_t lanes)
{
    struct problem p = {.args = {.lines = (size_t)check_int(1, 4),
                                 .out_w = (size_t)check_int(1, 40),
                                 .stride_x = (size_t)check_int(1, 2),
                                 .kh = (size_t)check_int(1, 4),
                                 .width = check_int(0, 1) ? 4 : 8,
                                 .min = check_int(0, 1) ? -INFINITY : 0.0f,
                                 .max = check_int(0, 1) ? INFINITY : 0.75f}};
    struct ifd_groups_args *a = &p.args;
    const size_t stride_y = (size_t)check_int(1, 2), groups = lanes / a->width;
    a->channels = (size_t)check_int(1, (int)groups) * a->width;
    p.in_w = (a->out_w - 1) * a->stride_x + IFD_GROUPS_KW;
    p.in_h = (a->lines - 1) * stride_y + a->kh;
    a->in_line = p.in_w * lanes;
    a->in_step = stride_y * a->in_line;
    a->out_pixel = a->channels + (size_t)check_int(0, 1) * 5;
    a->out_line = a->out_w * a->out_pixel + (size_t)check_int(0, 1) * 3;
    p.in = random_floats(p.in_h * a->in_line);
    p.w = random_floats(a->channels * a->kh * IFD_GROUPS_KW * a->width);
    p.bias = random_floats(a->channels);
    if (check_int(0, 3) == 0) { /* in one group: it must not reach the others */
        ((float *)p.in.data)[(size_t)check_int(0, (int)(p.in_h * a->in_line) - 1)] =
            check_int(0, 1) ? NAN : INFINITY;
    }
    return p;
}

static bool is_right(const struct problem *p, size_t lanes, size_t y, size_t x, size_t c, float got)
{
    const struct ifd_groups_args *a = &p->args;
    double sum = ((const float *)p->bias.data)[c], magnitude = fabs(sum);
    for (size_t ky = 0; ky < a->kh; ky++) {
        for (size_t kx = 0; kx < IFD_GROUPS_KW; kx++) {
            for (size_t i = 0; i < a->width; i++) {
                const size_t from = y * a->in_step + ky * a->in_line +
                                    (x * a->stride_x + kx) * lanes + c / a->width * a->width + i;
                const size_t at = ((c * a->kh + ky) * IFD_GROUPS_KW + kx) * a->width + i;
                const double product =
                    (double)((const float *)p->in.data)[from] * ((const float *)p->w.data)[at];
                sum += product;
                magnitude += fabs(product);
            }
        }
    }
    if (!isfinite(sum)) {
        return !isfinite(got) || got == a->min || got == a->max;
    }
    const double want = fmin(a->max, fmax(a->min, sum));
    const double taps = (double)(a->kh * IFD_GROUPS_KW * a->width);
    return fabs(got - want) <= magnitude * (taps + 2) * 0x1p-24;
}

static void check_table(struct problem *p, const char *isa, const struct ifd_kern_dw_groups *kern)
{
    struct ifd_groups_args *a = &p->args;
    const struct ifd_groups_weights weights = {.w = p->w.data,
                                               .bias = p->bias.data,
                                               .channels = a->channels,
                                               .kh = a->kh,
                                               .width = a->width};
    struct check_buffer packed = check_input((kern->packed_bytes(a->kh, a->width) + 63) / 64 * 64);
    const size_t count = (a->lines - 1) * a->out_line + (a->out_w - 1) * a->out_pixel + a->channels;
    struct check_buffer out = check_output(count * sizeof(float));
    kern->pack(&weights, packed.data);
    a->packed = packed.data;
    a->in = p->in.data;
    a->out = out.data;
    kern->run(a);
    for (size_t i = 0; i < count; i++) {
        const size_t y = i / a->out_line, x = i % a->out_line / a->out_pixel;
        const size_t c = i % a->out_line % a->out_pixel;
        const float got = ((const float *)out.data)[i];
        const bool is_result = x < a->out_w && c < a->channels;
        if (is_result ? !is_right(p, kern->lanes(), y, x, c, got)
                      : ((const uint32_t *)out.data)[i] != 0xa5a5a5a5u) {
            check_fail("%s: width %zu channels %zu kh %zu stride %zu, %zu lines of %zu: "
                       "(%zu, %zu, %zu) is %g",
                       isa, a->width, a->channels, a->kh, a->stride_x, a->lines, a->out_w, y, x, c,
                       (double)got);
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: wrote outside its output", isa);
    }
    check_free(&packed);
    check_free(&out);
}

static void call(void *arg)
{
    const struct ifd_kern_dw_groups *const *kern = arg;
    (*kern)->run((const struct ifd_groups_args *)(const void *)(kern + 1));
}

/* Images of 14 x 14, a block at a time. */
static void bench(const char *isa, const struct ifd_kern_dw_groups *kern)
{
    enum { SIDE = 14 };
    const size_t lanes = kern->lanes();
    for (size_t stride = 1; stride <= 2; stride++) {
        const size_t line = ((SIDE - 1) * stride + IFD_GROUPS_KW) * lanes;
        struct check_buffer in = random_floats(line * line / lanes);
        struct check_buffer w = random_floats(lanes * 9 * 8), out = check_output(SIDE * SIDE * 64);
        struct check_buffer packed = check_input(kern->packed_bytes(3, 8));
        const struct ifd_groups_weights weights = {
            .w = w.data, .channels = lanes, .kh = 3, .width = 8};
        struct {
            const struct ifd_kern_dw_groups *kern;
            struct ifd_groups_args args;
        } timed = {kern,
                   {.packed = packed.data,
                    .in = in.data,
                    .out = out.data,
                    .lines = SIDE,
                    .out_w = SIDE,
                    .stride_x = stride,
                    .in_line = line,
                    .in_step = stride * line,
                    .out_pixel = lanes,
                    .out_line = SIDE * lanes,
                    .channels = lanes,
                    .kh = 3,
                    .width = 8,
                    .min = 0,
                    .max = INFINITY}};
        kern->pack(&weights, packed.data);
        const double seconds = check_time(call, &timed);
        const double macs = (double)(SIDE * SIDE * lanes * 9 * 8);
        printf("%-8s groups of 8, stride %zu: %6.1f GMAC/s\n", isa, stride, macs / seconds / 1e9);
        check_free(&in);
        check_free(&w);
        check_free(&out);
        check_free(&packed);
    }
}

int main(int argc, char **argv)
{
    const bool timing = argc > 1 && strcmp(argv[1], "--bench") == 0;
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("dw_groups", &at, &isa);) {
        if (timing) {
            bench(isa.name, &isa.kernels.dw_groups);
        }
        for (int i = 0; !timing && i < 2000; i++) {
            struct problem p = make_problem(isa.kernels.dw_groups.lanes());
            check_table(&p, isa.name, &isa.kernels.dw_groups);
            check_free(&p.in);
            check_free(&p.w);
            check_free(&p.bias);
        }
    }
    return timing ? 0 : check_end("dw_groups");
}

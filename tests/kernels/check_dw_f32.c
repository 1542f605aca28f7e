/* f32 depthwise convolutions: every table against a naive loop in double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/kernels/check.h"

struct problem {
    size_t channels, kh, kw, out_h;
    struct ifd_dw_args args; /* pointers filled in per table */
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

static struct problem make_problem(size_t h, size_t w, size_t channels, size_t kh, size_t kw,
                                   size_t stride, size_t dilation, bool same)
{
    struct problem p = {.channels = channels, .kh = kh, .kw = kw};
    struct ifd_dw_args *a = &p.args;
    a->in_h = h;
    a->in_w = w;
    a->in_pixel_stride = channels + (same ? 0 : (size_t)check_int(0, 1) * 3);
    a->in_line_stride = w * a->in_pixel_stride + (same ? 0 : (size_t)check_int(0, 1) * 7);
    a->stride_x = a->stride_y = (uint32_t)stride;
    a->dilation_x = (uint32_t)dilation;
    a->dilation_y = (uint32_t)(same ? dilation : (size_t)check_int(1, (int)dilation));
    size_t span_y = (kh - 1) * a->dilation_y + 1, span_x = (kw - 1) * dilation + 1;
    a->pad_top = (uint32_t)(same ? span_y / 2 : (size_t)check_int(0, (int)span_y / 2));
    a->pad_left = (uint32_t)(same ? span_x / 2 : (size_t)check_int(0, (int)span_x / 2));
    size_t pad_y = a->pad_top * (size_t)2, pad_x = a->pad_left * (size_t)2;
    p.out_h = h + pad_y >= span_y ? (h + pad_y - span_y) / stride + 1 : 1;
    a->out_w = w + pad_x >= span_x ? (w + pad_x - span_x) / stride + 1 : 1;
    a->out_pixel_stride = channels + (same ? 0 : (size_t)check_int(0, 1) * 5);
    a->out_line_stride = a->out_w * a->out_pixel_stride + (same ? 0 : (size_t)check_int(0, 1) * 9);
    a->min = check_int(0, 1) ? -INFINITY : 0.0f;
    a->max = check_int(0, 1) ? INFINITY : 0.75f;
    a->is_far = check_int(0, 1);
    if (!same && dilation == 1 && check_int(0, 1)) {
        a->in_round = h + (size_t)check_int(0, 2);
        a->in_at = (size_t)check_int(0, (int)a->in_round - 1);
    }
    const size_t lines = a->in_round ? a->in_round : h;
    p.in = random_floats((lines - 1) * a->in_line_stride + (w - 1) * a->in_pixel_stride + channels);
    p.w = random_floats(kh * kw * channels);
    p.bias = random_floats(channels);
    return p;
}

static bool is_right(const struct problem *p, size_t y, size_t x, size_t c, float got)
{
    const struct ifd_dw_args *a = &p->args;
    double sum = ((const float *)p->bias.data)[c], magnitude = fabs(sum);
    for (size_t ky = 0; ky < p->kh; ky++) {
        for (size_t kx = 0; kx < p->kw; kx++) {
            int64_t iy = (int64_t)(y * a->stride_y + ky * a->dilation_y) - a->pad_top;
            int64_t ix = (int64_t)(x * a->stride_x + kx * a->dilation_x) - a->pad_left;
            if (iy < 0 || ix < 0 || iy >= (int64_t)a->in_h || ix >= (int64_t)a->in_w) {
                continue;
            }
            size_t line = a->in_round ? ((size_t)iy + a->in_at) % a->in_round : (size_t)iy;
            size_t at = line * a->in_line_stride + (size_t)ix * a->in_pixel_stride + c;
            double product = (double)((const float *)p->in.data)[at] *
                             ((const float *)p->w.data)[(ky * p->kw + kx) * p->channels + c];
            sum += product;
            magnitude += fabs(product);
        }
    }
    double want = fmin(a->max, fmax(a->min, sum));
    return fabs(got - want) <= magnitude * (double)(p->kh * p->kw + 2) * 0x1p-24;
}

static void check_table(struct problem *p, const char *isa, const struct ifd_kern_dw_f32 *kern)
{
    struct ifd_dw_weights weights = {p->w.data, p->channels, p->kh, p->kw, p->channels};
    size_t bytes = kern->packed_bytes(p->channels, p->kh, p->kw);
    struct check_buffer packed = check_input((bytes + 63) / 64 * 64);
    kern->pack(&weights, p->bias.data, packed.data);
    struct ifd_dw_args *a = &p->args;
    size_t count =
        (p->out_h - 1) * a->out_line_stride + (a->out_w - 1) * a->out_pixel_stride + p->channels;
    struct check_buffer out = check_output(count * sizeof(float));
    a->packed = packed.data;
    a->in = p->in.data;
    a->out = out.data;
    a->c_begin = 0;
    a->c_end = p->channels;
    a->y_begin = 0;
    a->y_end = p->out_h / 2;
    kern->run(a);
    a->y_begin = p->out_h / 2;
    a->y_end = p->out_h;
    kern->run(a);
    for (size_t y = 0; y < p->out_h; y++) {
        for (size_t x = 0; x < a->out_w; x++) {
            for (size_t c = 0; c < a->out_pixel_stride; c++) {
                size_t at = y * a->out_line_stride + x * a->out_pixel_stride + c;
                float got = at < count ? ((const float *)out.data)[at] : 0.0f;
                if (c < p->channels
                        ? !is_right(p, y, x, c, got)
                        : at < count && ((const uint32_t *)out.data)[at] != 0xa5a5a5a5u) {
                    check_fail(
                        "%s: %zux%zu c %zu window %zux%zu stride %u dilation %u %u pad %u %u: "
                        "(%zu, %zu, %zu) is %g",
                        isa, a->in_h, a->in_w, p->channels, p->kh, p->kw, a->stride_x,
                        a->dilation_y, a->dilation_x, a->pad_top, a->pad_left, y, x, c,
                        (double)got);
                }
            }
        }
    }
    if (!check_guards(&out)) {
        check_fail("%s: c %zu wrote outside its output", isa, p->channels);
    }
    check_free(&packed);
    check_free(&out);
}

static void free_problem(struct problem *p)
{
    check_free(&p->in);
    check_free(&p->w);
    check_free(&p->bias);
}

static void check_tables(struct problem p)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("dw_f32", &at, &isa);) {
        check_table(&p, isa.name, &isa.kernels.dw_f32);
    }
    free_problem(&p);
}

/* Half as many channels as a vector has lanes, contiguous pixels. */
static void check_halves(void)
{
    for (size_t channels = 2; channels <= 8; channels *= 2) {
        for (size_t w = 2; w <= 10; w++) {
            for (size_t h = 1; h <= 9; h++) {
                check_tables(make_problem(h, w, channels, 3, 3, 1, 1, true));
            }
        }
    }
}

static void check_shapes(void)
{
    static const size_t channels[] = {1, 3, 4, 5, 8, 15, 16, 17, 24, 31, 32, 40, 64, 65};
    static const size_t windows[][2] = {{3, 3}, {3, 3}, {3, 3}, {5, 5}, {1, 3},
                                        {3, 1}, {7, 7}, {2, 4}, {9, 2}};
    for (int round = 0; round < 300; round++) {
        const size_t *window = windows[check_int(0, 8)];
        const int dilation = check_int(0, 3) ? 1 : check_int(2, 5);
        const size_t stride = (size_t)check_int(1, round % 10 == 0 ? 3 : dilation == 1 ? 2 : 1);
        check_tables(make_problem((size_t)check_int(1, 9 * dilation),
                                  (size_t)check_int(1, 14 * dilation), channels[check_int(0, 13)],
                                  window[0], window[1], stride, (size_t)dilation, false));
    }
}

struct bench {
    const struct ifd_kern_dw_f32 *kern;
    struct ifd_dw_args args;
};

static void bench_call(void *arg)
{
    struct bench *bench = arg;
    bench->kern->run(&bench->args);
}

static void bench_shape(size_t size, size_t channels, size_t window, size_t stride)
{
    double peak = check_peak_f32();
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("dw_f32", &at, &isa);) {
        struct problem p = make_problem(size, size, channels, window, window, stride, 1, true);
        const struct ifd_kern_dw_f32 *kern = &isa.kernels.dw_f32;
        struct ifd_dw_weights weights = {p.w.data, channels, window, window, channels};
        struct check_buffer packed =
            check_input((kern->packed_bytes(channels, window, window) + 63) / 64 * 64);
        kern->pack(&weights, p.bias.data, packed.data);
        size_t count = p.out_h * p.args.out_w * channels;
        struct check_buffer out = check_output(count * sizeof(float));
        p.args.packed = packed.data;
        p.args.in = p.in.data;
        p.args.out = out.data;
        p.args.c_end = channels;
        p.args.y_end = p.out_h;
        struct bench bench = {kern, p.args};
        double t = check_time(bench_call, &bench);
        double rate = (double)(count * window * window) / t * 1e-9;
        printf("%-7s %3zu^2 c %4zu window %zu stride %zu: %8.1f us %6.1f GMAC/s %3.0f%%\n",
               isa.name, size, channels, window, stride, t * 1e6, rate,
               peak > 0 ? rate / peak * 100 : 0.0);
        check_free(&packed);
        check_free(&out);
        free_problem(&p);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        static const size_t shapes[][4] = {
            {112, 32, 3, 1}, {112, 96, 3, 2}, {56, 144, 3, 1}, {56, 144, 3, 2}, {28, 192, 3, 1},
            {14, 384, 3, 1}, {14, 576, 3, 1}, {7, 960, 3, 1},  {28, 240, 5, 1}, {14, 672, 5, 1}};
        printf("peak %.0f GMAC/s\n", check_peak_f32());
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            bench_shape(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        }
        return 0;
    }
    check_halves();
    check_shapes();
    return check_end("dw_f32");
}

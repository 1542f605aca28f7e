/* Q8 depthwise convolutions: every table against a naive loop over the definition. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/kernels/check.h"

struct problem {
    size_t channels, kh, kw;
    struct ifd_dw_args args; /* pointers filled in per table */
    size_t out_h;
    int32_t in_zero, weight_zero, out_zero, out_min, out_max;
    enum ifd_round round;
    struct check_buffer in, w;
    int32_t *bias, *multiplier, *shift;
};

static int64_t divide_nearest_away(int64_t x, int64_t by)
{
    return x >= 0 ? (x + by / 2) / by : -((-x + by / 2) / by);
}

static int naive_finish(const struct problem *p, int64_t sum, size_t c)
{
    int right = -p->shift[c];
    int64_t product = sum * p->multiplier[c];
    int64_t v = (product + ((int64_t)1 << (30 + right))) >> (31 + right);
    if (p->round != IFD_ROUND_SINGLE) {
        v = divide_nearest_away((product + ((int64_t)1 << 30)) >> 31, (int64_t)1 << right);
    }
    if (p->round == IFD_ROUND_EVEN) {
        v = (int64_t)rint((double)((float)sum * check_factor(p->multiplier[c], p->shift[c])));
    }
    v += p->out_zero;
    v = v < p->out_min ? p->out_min : v;
    return (int)(v > p->out_max ? p->out_max : v);
}

static int naive_output(const struct problem *p, size_t y, size_t x, size_t c)
{
    const struct ifd_dw_args *a = &p->args;
    int64_t sum = p->bias[c];
    for (size_t ky = 0; ky < p->kh; ky++) {
        for (size_t kx = 0; kx < p->kw; kx++) {
            int64_t iy = (int64_t)(y * a->stride_y + ky * a->dilation_y) - a->pad_top;
            int64_t ix = (int64_t)(x * a->stride_x + kx * a->dilation_x) - a->pad_left;
            if (iy < 0 || ix < 0 || iy >= (int64_t)a->in_h || ix >= (int64_t)a->in_w) {
                continue;
            }
            int in =
                ((const ifd_q8 *)p->in
                     .data)[(size_t)iy * a->in_line_stride + (size_t)ix * a->in_pixel_stride + c];
            int w = ((const int8_t *)p->w.data)[(ky * p->kw + kx) * p->channels + c];
            sum += (int64_t)(in - p->in_zero) * (w - p->weight_zero);
        }
    }
    return naive_finish(p, sum, c);
}

/* extreme: inputs and weights at the ends of their ranges. */
static struct problem make_problem(size_t h, size_t w, size_t channels, size_t kh, size_t kw,
                                   size_t stride, size_t dilation, bool extreme)
{
    struct problem p = {.channels = channels, .kh = kh, .kw = kw};
    struct ifd_dw_args *a = &p.args;
    a->in_h = h;
    a->in_w = w;
    a->in_pixel_stride = channels + (size_t)check_int(0, 1) * 3;
    a->in_line_stride = w * a->in_pixel_stride + (size_t)check_int(0, 1) * 7;
    a->stride_x = a->stride_y = (uint32_t)stride;
    a->dilation_x = a->dilation_y = (uint32_t)dilation;
    size_t span_y = (kh - 1) * dilation + 1, span_x = (kw - 1) * dilation + 1;
    a->pad_top = (uint32_t)check_int(0, (int)span_y / 2);
    a->pad_left = (uint32_t)check_int(0, (int)span_x / 2);
    size_t pad_y = a->pad_top + (size_t)check_int(0, (int)span_y / 2);
    size_t pad_x = a->pad_left + (size_t)check_int(0, (int)span_x / 2);
    p.out_h = h + pad_y >= span_y ? (h + pad_y - span_y) / stride + 1 : 1;
    a->out_w = w + pad_x >= span_x ? (w + pad_x - span_x) / stride + 1 : 1;
    a->out_pixel_stride = channels + (size_t)check_int(0, 1) * 5;
    a->out_line_stride = a->out_w * a->out_pixel_stride + (size_t)check_int(0, 1) * 9;
    p.in_zero = check_int(IFD_Q8_MIN, IFD_Q8_MAX);
    p.weight_zero = check_int(0, 2) ? 0 : check_int(0, 2) ? check_int(-128, 127) : -128;
    p.out_zero = check_int(0, 1) ? check_int(IFD_Q8_MIN, IFD_Q8_MAX) : IFD_Q8_MIN;
    p.out_min = check_int(0, 2) ? IFD_Q8_MIN : p.out_zero;
    p.out_max = check_int(0, 2) ? IFD_Q8_MAX : check_int(p.out_min, IFD_Q8_MAX);
    p.in = check_input((h - 1) * a->in_line_stride + (w - 1) * a->in_pixel_stride + channels);
    p.w = check_input(kh * kw * channels);
    for (size_t i = 0; i < p.in.bytes; i++) {
        int ends = check_int(0, 1) ? IFD_Q8_MAX : IFD_Q8_MIN;
        ((ifd_q8 *)p.in.data)[i] = (ifd_q8)(extreme ? ends : check_int(IFD_Q8_MIN, IFD_Q8_MAX));
    }
    for (size_t i = 0; i < p.w.bytes; i++) {
        ((int8_t *)p.w.data)[i] =
            (int8_t)(extreme ? check_int(0, 3) ? -127 : 127 : check_int(-128, 127));
    }
    p.bias = malloc(channels * 4);
    p.multiplier = malloc(channels * 4);
    p.shift = malloc(channels * 4);
    int typical = -(int)log2(sqrt((double)(kh * kw)) * 60.0 + 1.0);
    typical += check_int(0, 3) ? 0 : 4; /* results beyond 16 bits */
    for (size_t c = 0; c < channels; c++) {
        p.bias[c] = check_int(-9000, 9000);
        p.multiplier[c] = check_int(0, 7) ? check_int(1 << 30, INT32_MAX) : 1 << 30;
        p.shift[c] = typical + check_int(-1, 2);
        p.shift[c] = p.shift[c] > 0 ? 0 : p.shift[c];
    }
    return p;
}

static void free_problem(struct problem *p)
{
    check_free(&p->in);
    check_free(&p->w);
    free(p->bias);
    free(p->multiplier);
    free(p->shift);
}

static struct check_buffer pack_problem(const struct problem *p, const struct ifd_kern_dw_q8 *kern)
{
    struct ifd_dw_weights weights = {p->w.data, p->channels, p->kh, p->kw, p->channels};
    struct ifd_requant requant = {p->bias,    p->multiplier, p->shift,
                                  p->in_zero, p->out_zero,   p->weight_zero,
                                  p->out_min, p->out_max,    p->round};
    size_t bytes = kern->packed_bytes(p->channels, p->kh, p->kw);
    struct check_buffer packed = check_input((bytes + 63) / 64 * 64);
    kern->pack(&weights, &requant, packed.data);
    return packed;
}

static void check_outputs(const struct problem *p, const char *isa, const struct check_buffer *out)
{
    const struct ifd_dw_args *a = &p->args;
    for (size_t y = 0; y < p->out_h; y++) {
        for (size_t x = 0; x < a->out_w; x++) {
            for (size_t c = 0; c < p->channels; c++) {
                size_t at = y * a->out_line_stride + x * a->out_pixel_stride + c;
                int got = ((const ifd_q8 *)out->data)[at], want = naive_output(p, y, x, c);
                if (p->round == IFD_ROUND_FAST ? abs(got - want) > 1 : got != want) {
                    check_fail(
                        "%s: %zux%zu c %zu window %zux%zu stride %u dilation %u pad %u %u zero %d "
                        "round %d: (%zu, %zu, %zu) is %d, expected %d",
                        isa, a->in_h, a->in_w, p->channels, p->kh, p->kw, a->stride_x,
                        a->dilation_x, a->pad_top, a->pad_left, p->weight_zero, (int)p->round, y, x,
                        c, got, want);
                }
            }
        }
    }
    /* between the pixels nothing may change */
    size_t gap = a->out_pixel_stride - p->channels;
    for (size_t i = 0; i < gap && a->out_w > 1; i++) {
        if (((const uint8_t *)out->data)[p->channels + i] != 0xa5) {
            check_fail("%s: c %zu wrote between pixels", isa, p->channels);
        }
    }
    if (!check_guards(out)) {
        check_fail("%s: c %zu wrote outside its output", isa, p->channels);
    }
}

static void check_table(struct problem *p, const char *isa, const struct ifd_kern_dw_q8 *kern)
{
    struct check_buffer packed = pack_problem(p, kern);
    struct ifd_dw_args *a = &p->args;
    struct check_buffer out = check_output((p->out_h - 1) * a->out_line_stride +
                                           (a->out_w - 1) * a->out_pixel_stride + p->channels);
    const struct ifd_packed *header = packed.data;
    a->packed = packed.data;
    a->in = p->in.data;
    a->out = out.data;
    a->c_begin = 0;
    a->c_end = p->channels;
    struct check_buffer scratch = check_output(kern->scratch_bytes(a, p->kh, p->kw));
    a->scratch = scratch.data;
    /* two ranges of lines, the second in two ranges of channels */
    size_t y_split = p->out_h / 2, c_split = p->channels > header->nr ? header->nr : p->channels;
    a->y_begin = 0;
    a->y_end = y_split;
    kern->run(a);
    a->y_begin = y_split;
    a->y_end = p->out_h;
    a->c_end = c_split;
    kern->run(a);
    a->c_begin = c_split;
    a->c_end = p->channels;
    if (c_split < p->channels) {
        kern->run(a);
    }
    check_outputs(p, isa, &out);
    if (!check_guards(&scratch)) {
        check_fail("%s: wrote outside its scratch", isa);
    }
    check_free(&packed);
    check_free(&out);
    check_free(&scratch);
}

static void check_problem(struct problem p)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("dw_q8", &at, &isa);) {
        for (int round = IFD_ROUND_FAST; round <= IFD_ROUND_EVEN; round++) {
            p.round = (enum ifd_round)round;
            check_table(&p, isa.name, &isa.kernels.dw_q8);
        }
    }
    free_problem(&p);
}

static void check_shapes(void)
{
    static const size_t channels[] = {1,  3,  8,  15, 16, 17,  24,  31, 32,
                                      40, 64, 65, 72, 96, 100, 128, 144};
    static const size_t windows[][2] = {{3, 3}, {3, 3}, {3, 3}, {5, 5}, {5, 5},
                                        {1, 3}, {3, 1}, {7, 7}, {2, 4}, {9, 2}};
    for (int round = 0; round < 300; round++) {
        const size_t *window = windows[check_int(0, 9)];
        size_t stride = (size_t)check_int(1, round % 10 == 0 ? 3 : 2);
        size_t dilation = check_int(0, 5) ? 1 : 2;
        const size_t height = (size_t)check_int(1, check_int(0, 2) ? 9 : 21);
        const size_t width = (size_t)check_int(1, check_int(0, 2) ? 11 : 75);
        check_problem(make_problem(height, width, channels[check_int(0, 16)], window[0], window[1],
                                   stride, dilation, round % 5 == 4));
    }
}

struct bench {
    const struct ifd_kern_dw_q8 *kern;
    struct ifd_dw_args args;
};

static void bench_call(void *arg)
{
    struct bench *bench = arg;
    bench->kern->run(&bench->args);
}

static void bench_shape(size_t size, size_t channels, size_t window, size_t stride)
{
    double peak = check_peak_q8();
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("dw_q8", &at, &isa);) {
        struct problem p = make_problem(size, size, channels, window, window, stride, 1, false);
        size_t out = size / stride;
        p.args.in_pixel_stride = p.args.out_pixel_stride = channels;
        p.args.in_line_stride = size * channels;
        p.args.pad_left = p.args.pad_top = (uint32_t)(window / 2);
        p.args.out_w = p.out_h = p.args.y_end = out;
        p.args.out_line_stride = out * channels;
        p.args.c_end = channels;
        p.weight_zero = 0;
        p.out_min = IFD_Q8_MIN;
        p.args.in = p.in.data;
        printf("%-7s %3zu^2 c %4zu window %zu stride %zu:", isa.name, size, channels, window,
               stride);
        for (int kind = 0; kind < 3; kind++) {
            p.round = kind == 0 ? IFD_ROUND_FAST : IFD_ROUND_DOUBLE;
            p.out_min = kind == 2 ? IFD_Q8_MIN : p.out_zero;
            struct check_buffer packed = pack_problem(&p, &isa.kernels.dw_q8);
            struct check_buffer buffer = check_output(out * out * channels);
            p.args.packed = packed.data;
            p.args.out = buffer.data;
            struct check_buffer scratch =
                check_output(isa.kernels.dw_q8.scratch_bytes(&p.args, p.kh, p.kw));
            p.args.scratch = scratch.data;
            struct bench bench = {&isa.kernels.dw_q8, p.args};
            double t = check_time(bench_call, &bench);
            double rate = (double)(out * out * channels * window * window) / t * 1e-9;
            printf("  %7.1f us %6.1f GMAC/s %3.0f%%", t * 1e6, rate,
                   peak > 0 ? rate / peak * 100 : 0.0);
            check_free(&packed);
            check_free(&buffer);
            check_free(&scratch);
        }
        printf("\n");
        free_problem(&p);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        static const size_t shapes[][4] = {
            {112, 32, 3, 1}, {112, 96, 3, 2}, {56, 144, 3, 1}, {56, 144, 3, 2}, {28, 192, 3, 1},
            {14, 384, 3, 1}, {14, 576, 3, 1}, {7, 960, 3, 1},  {28, 240, 5, 1}, {14, 672, 5, 1}};
        printf("peak %.0f GMAC/s; columns: fast, double rounding with ReLU, without\n",
               check_peak_q8());
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
            bench_shape(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
        }
        return 0;
    }
    check_shapes();
    return check_end("dw_q8");
}

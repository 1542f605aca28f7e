/* Pooling: every table against the definition. */
#include <math.h>
#include <stdlib.h>
#include "tests/kernels/check.h"

static const size_t channel_counts[] = {1, 3, 8, 15, 16, 17, 33, 64, 70, 130};

/* A random shape whose every window touches the image; buffers are made by the caller. */
static struct ifd_pool_args make_args(size_t *ret_out_h)
{
    struct ifd_pool_args a = {.channels = channel_counts[check_int(0, 9)],
                              .in_h = (size_t)check_int(1, 9),
                              .in_w = (size_t)check_int(1, 9),
                              .kh = (uint32_t)check_int(1, 7),
                              .kw = (uint32_t)check_int(1, 7),
                              .stride_y = (uint32_t)check_int(1, 3),
                              .stride_x = (uint32_t)check_int(1, 3)};
    a.pad_top = (uint32_t)check_int(0, (int)a.kh - 1);
    a.pad_left = (uint32_t)check_int(0, (int)a.kw - 1);
    a.in_pixel_stride = a.channels + (size_t)check_int(0, 2);
    a.in_line_stride = a.in_w * a.in_pixel_stride + (size_t)check_int(0, 2);
    a.out_pixel_stride = a.channels + (size_t)check_int(0, 2);
    size_t last_y = a.in_h - 1 + a.pad_top, last_x = a.in_w - 1 + a.pad_left;
    *ret_out_h = last_y / a.stride_y + 1;
    a.out_w = last_x / a.stride_x + 1;
    a.out_line_stride = a.out_w * a.out_pixel_stride + (size_t)check_int(0, 2);
    a.y_end = *ret_out_h;
    return a;
}

struct expected {
    double most, sum;
    int count;
};

static struct expected window(const struct ifd_pool_args *a, size_t y, size_t x, size_t c, bool q8)
{
    struct expected e = {-INFINITY, 0.0, 0};
    for (size_t ky = 0; ky < a->kh; ky++) {
        for (size_t kx = 0; kx < a->kw; kx++) {
            int64_t iy = (int64_t)(y * a->stride_y + ky) - a->pad_top;
            int64_t ix = (int64_t)(x * a->stride_x + kx) - a->pad_left;
            if (iy < 0 || ix < 0 || iy >= (int64_t)a->in_h || ix >= (int64_t)a->in_w) {
                continue;
            }
            size_t at = (size_t)iy * a->in_line_stride + (size_t)ix * a->in_pixel_stride + c;
            double v =
                q8 ? (double)(((const ifd_q8 *)a->in)[at] - a->shift) : ((const float *)a->in)[at];
            e.most = fmax(e.most, v);
            e.sum += v;
            e.count++;
        }
    }
    return e;
}

static void compare(const char *isa, const struct ifd_pool_args *a, size_t out_h, bool average,
                    bool q8)
{
    for (size_t y = 0; y < out_h; y++) {
        for (size_t x = 0; x < a->out_w; x++) {
            for (size_t c = 0; c < a->channels; c++) {
                struct expected e = window(a, y, x, c, q8);
                size_t at = y * a->out_line_stride + x * a->out_pixel_stride + c;
                double want = average ? e.sum / e.count : e.most;
                double got, slack = 0.0;
                if (q8) {
                    want = fmin(a->q_max, fmax(a->q_min, round(want) + a->shift));
                    got = ((const ifd_q8 *)a->out)[at];
                } else {
                    want = fmin(a->max, fmax(a->min, want));
                    got = ((const float *)a->out)[at];
                    slack = average ? 0x1p-21 : 0.0;
                }
                if (!(fabs(got - want) <= slack)) {
                    check_fail("%s: %s %s pool %ux%u: (%zu, %zu, %zu) is %g, expected %g", isa,
                               q8 ? "q8" : "f32", average ? "average" : "max", a->kh, a->kw, y, x,
                               c, got, want);
                }
            }
        }
    }
}

static void check_one(const char *isa, void (*run)(const struct ifd_pool_args *), bool average,
                      bool q8)
{
    size_t out_h, element = q8 ? 1 : sizeof(float);
    struct ifd_pool_args a = make_args(&out_h);
    size_t in_count =
        (a.in_h - 1) * a.in_line_stride + (a.in_w - 1) * a.in_pixel_stride + a.channels;
    size_t out_count =
        (out_h - 1) * a.out_line_stride + (a.out_w - 1) * a.out_pixel_stride + a.channels;
    struct check_buffer in = check_input(in_count * element),
                        out = check_output(out_count * element);
    for (size_t i = 0; i < in_count; i++) {
        if (q8) {
            ((ifd_q8 *)in.data)[i] = (ifd_q8)check_int(IFD_Q8_MIN, IFD_Q8_MAX);
        } else {
            ((float *)in.data)[i] = check_float(-1.0f, 1.0f);
        }
    }
    a.in = in.data;
    a.out = out.data;
    a.min = check_int(0, 1) ? -INFINITY : 0.0f;
    a.max = check_int(0, 1) ? INFINITY : 0.5f;
    a.q_min = check_int(0, 1) ? IFD_Q8_MIN : IFD_Q8_MIN + 100;
    a.q_max = check_int(0, 1) ? IFD_Q8_MAX : IFD_Q8_MAX - 20;
    a.shift = check_int(0, 1) ? IFD_Q8_SHIFT_S8 : IFD_Q8_SHIFT_U8;
    run(&a);
    compare(isa, &a, out_h, average, q8);
    if (!check_guards(&out)) {
        check_fail("%s: a pool of %zu channels wrote outside its output", isa, a.channels);
    }
    check_free(&in);
    check_free(&out);
}

int main(void)
{
    struct ifd_kernels_isa isa;
    for (size_t at = 0; check_next("pool", &at, &isa);) {
        for (int round = 0; round < 60; round++) {
            check_one(isa.name, isa.kernels.pool.max_f32, false, false);
            check_one(isa.name, isa.kernels.pool.average_f32, true, false);
            check_one(isa.name, isa.kernels.pool.max_q8, false, true);
            check_one(isa.name, isa.kernels.pool.average_q8, true, true);
        }
    }
    return check_end("pool");
}

/* Sizes, filters and the first and last call of Winograd's algorithm. */
#include "backends/gpuacc/ops/winograd.h"

#include <string.h>

#define POINTS_MAX 6 /* along a side */

static size_t edge(uint32_t patch)
{
    return patch + 2;
}

size_t ifd_gpu_winograd_points(uint32_t patch)
{
    return edge(patch) * edge(patch);
}

static size_t parts(size_t whole, size_t part)
{
    return (whole + part - 1) / part;
}

size_t ifd_gpu_winograd_patches(uint32_t patch, size_t images, size_t out_h, size_t out_w)
{
    return images * parts(out_h, patch) * parts(out_w, patch);
}

static size_t patches_of(const struct ifd_gpu_winograd *winograd)
{
    const struct ifd_low_window *w = &winograd->window;
    return ifd_gpu_winograd_patches(winograd->patch, w->batch, w->out_h, w->out_w);
}

size_t ifd_gpu_winograd_numbers(const struct ifd_gpu_winograd *winograd, size_t channels)
{
    return ifd_gpu_winograd_points(winograd->patch) * patches_of(winograd) * parts(channels, 4) * 4;
}

/* ---- calls ---- */

static struct ifd_gpu_call begin(const struct ifd_gpu_winograd *winograd,
                                 enum ifd_gpu_kernel kernel, size_t channels)
{
    struct ifd_gpu_call call = ifd_gpu_call(kernel);
    ifd_gpu_define(&call, "#define PATCH %u\n", winograd->patch);
    ifd_gpu_items(&call, parts(channels, 4), patches_of(winograd), 1);
    return call;
}

static void add_patches(const struct ifd_gpu_winograd *winograd, struct ifd_gpu_call *call)
{
    ifd_gpu_int(call, (int64_t)patches_of(winograd));
    ifd_gpu_int(call, (int64_t)parts(winograd->window.out_h, winograd->patch));
    ifd_gpu_int(call, (int64_t)parts(winograd->window.out_w, winograd->patch));
}

void ifd_gpu_winograd_in(const struct ifd_gpu_winograd *winograd, uint32_t in,
                         struct ifd_gpu_call *ret_call)
{
    const struct ifd_low_window *w = &winograd->window;
    const size_t numbers[] = {w->in_h,           w->in_w,    w->in_c,
                              parts(w->in_c, 4), w->pad_top, w->pad_left};
    *ret_call = begin(winograd, IFD_GPU_winograd_in, w->in_c);
    ifd_gpu_in(ret_call, in);
    ifd_gpu_out_elements(ret_call, winograd->inputs, 4 * sizeof(float));
    add_patches(winograd, ret_call);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(ret_call, (int64_t)numbers[i]);
    }
}

void ifd_gpu_winograd_begin_out(const struct ifd_gpu_winograd *winograd,
                                struct ifd_gpu_call *ret_call)
{
    *ret_call = begin(winograd, IFD_GPU_winograd_out, winograd->out_c);
    ifd_gpu_in_elements(ret_call, winograd->sums, 4 * sizeof(float));
}

void ifd_gpu_winograd_end_out(const struct ifd_gpu_winograd *winograd, uint32_t out,
                              struct ifd_gpu_call *call)
{
    ifd_gpu_out(call, out);
    add_patches(winograd, call);
    ifd_gpu_int(call, (int64_t)winograd->window.out_h);
    ifd_gpu_int(call, (int64_t)winograd->window.out_w);
    ifd_gpu_int(call, (int64_t)winograd->out_c);
    ifd_gpu_int(call, (int64_t)parts(winograd->out_c, 4));
}

/* ---- filters ---- */

/* Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015), appendix. */
static const double of_2[][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
static const double of_4[][3] = {{1.0 / 4, 0, 0},
                                 {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                 {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                 {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                 {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                 {0, 0, 1}};

/* One filter, whose taps lie stride apart, in double: it is done once. */
static void transform(const double (*g)[3], size_t points, const float *tap, size_t stride,
                      double ret[POINTS_MAX][POINTS_MAX])
{
    double lines[POINTS_MAX][3];
    for (size_t y = 0; y < points; y++) {
        for (size_t x = 0; x < 3; x++) {
            lines[y][x] = g[y][0] * tap[x * stride] + g[y][1] * tap[(3 + x) * stride] +
                          g[y][2] * tap[(6 + x) * stride];
        }
        for (size_t x = 0; x < points; x++) {
            ret[y][x] = g[x][0] * lines[y][0] + g[x][1] * lines[y][1] + g[x][2] * lines[y][2];
        }
    }
}

void ifd_gpu_winograd_pack(const void *params, const void *source, void *packed)
{
    const struct ifd_gpu_winograd_filters *p = params;
    const float *in = source;
    float *out = packed;
    const double(*g)[3] = p->patch == 2 ? of_2 : of_4;
    const size_t points = edge(p->patch), row = parts(p->out_c, 4) * 4;
    const size_t matrix = parts(p->in_c, 4) * 4 * row;
    memset(out, 0, points * points * matrix * sizeof(*out));
    for (size_t oc = 0; oc < p->out_c; oc++) {
        for (size_t ic = 0; ic < p->in_c; ic++) {
            double v[POINTS_MAX][POINTS_MAX];
            transform(g, points, in + oc * 9 * p->in_c + ic, p->in_c, v);
            for (size_t i = 0; i < points * points; i++) {
                out[i * matrix + ic * row + oc] = (float)v[i / points][i % points];
            }
        }
    }
}

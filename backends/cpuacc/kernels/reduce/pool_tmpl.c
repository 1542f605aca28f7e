/* Pooling: f32 over the vector vocabulary, q8 in plain loops over blocks of channels, which the
 * compiler vectorizes for the instruction set. */
#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/simd.h"

enum {
    BLOCK = 64 /* q8 channels at a time */
};

/* The part of one window that lies inside the image, in input lines and columns. */
struct window {
    size_t y0, y1, x0, x1;
};

static struct window window_at(const struct ifd_pool_args *args, size_t y, size_t x)
{
    int64_t top = (int64_t)(y * args->stride_y) - (int64_t)args->pad_top;
    int64_t left = (int64_t)(x * args->stride_x) - (int64_t)args->pad_left;
    int64_t bottom = top + (int64_t)args->kh, right = left + (int64_t)args->kw;
    struct window window;
    window.y0 = top > 0 ? (size_t)top : 0;
    window.x0 = left > 0 ? (size_t)left : 0;
    window.y1 = bottom < (int64_t)args->in_h ? (size_t)bottom : args->in_h;
    window.x1 = right < (int64_t)args->in_w ? (size_t)right : args->in_w;
    return window;
}

INLINE vf window_f32(const struct ifd_pool_args *args, const struct window *window, size_t c,
                     const int average, const size_t channels)
{
    const float *in = (const float *)args->in + c;
    vf v = average ? vf_set1(0.0f) : vf_set1(-__builtin_inff());
    for (size_t y = window->y0; y < window->y1; y++) {
        const float *at = in + y * args->in_line_stride + window->x0 * args->in_pixel_stride;
        for (size_t x = window->x0; x < window->x1; x++, at += args->in_pixel_stride) {
            vf u = channels >= VF_LANES ? vf_load(at) : vf_load_n(at, channels);
            v = average ? vf_add(v, u) : vf_max(v, u);
        }
    }
    return v;
}

INLINE void pool_f32(const struct ifd_pool_args *args, const int average)
{
    const vf lo = vf_set1(args->min), hi = vf_set1(args->max);
    for (size_t y = args->y_begin; y < args->y_end; y++) {
        for (size_t x = 0; x < args->out_w; x++) {
            const struct window window = window_at(args, y, x);
            const size_t count = (window.y1 - window.y0) * (window.x1 - window.x0);
            const vf share = vf_set1(average ? 1.0f / (float)count : 1.0f);
            float *out =
                (float *)args->out + y * args->out_line_stride + x * args->out_pixel_stride;
            for (size_t c = 0; c < args->channels; c += VF_LANES) {
                const size_t left = args->channels - c;
                vf v = window_f32(args, &window, c, average, left);
                v = average ? vf_mul(v, share) : v;
                v = vf_min(hi, vf_max(lo, v));
                if (left >= VF_LANES) {
                    vf_store(out + c, v);
                } else {
                    vf_store_n(out + c, v, left);
                }
            }
        }
    }
}

static void max_f32(const struct ifd_pool_args *args)
{
    pool_f32(args, 0);
}

static void average_f32(const struct ifd_pool_args *args)
{
    pool_f32(args, 1);
}

INLINE int32_t clamp_q8(const struct ifd_pool_args *args, int32_t v)
{
    v = v < args->q_min ? args->q_min : v;
    return v > args->q_max ? args->q_max : v;
}

INLINE void max_block(const struct ifd_pool_args *args, const struct window *window,
                      const ifd_q8 *in, const size_t channels, ifd_q8 *out)
{
    ifd_q8 most[BLOCK];
    for (size_t c = 0; c < channels; c++) {
        most[c] = IFD_Q8_MIN;
    }
    for (size_t y = window->y0; y < window->y1; y++) {
        for (size_t x = window->x0; x < window->x1; x++) {
            const ifd_q8 *at = in + y * args->in_line_stride + x * args->in_pixel_stride;
            for (size_t c = 0; c < channels; c++) {
                most[c] = at[c] > most[c] ? at[c] : most[c];
            }
        }
    }
    for (size_t c = 0; c < channels; c++) {
        out[c] = (ifd_q8)clamp_q8(args, most[c]);
    }
}

/* Rounds the mean of the model's own values, halves away from zero. A float quotient of integers
 * below 2^23 never rounds up to the next whole number, so truncating it is the integer division. */
INLINE void average_block(const struct ifd_pool_args *args, const struct window *window,
                          const ifd_q8 *in, const size_t channels, ifd_q8 *out)
{
    int32_t sum[BLOCK];
    const int32_t count = (int32_t)((window->y1 - window->y0) * (window->x1 - window->x0));
    for (size_t c = 0; c < channels; c++) {
        sum[c] = -args->shift * count;
    }
    for (size_t y = window->y0; y < window->y1; y++) {
        for (size_t x = window->x0; x < window->x1; x++) {
            const ifd_q8 *at = in + y * args->in_line_stride + x * args->in_pixel_stride;
            for (size_t c = 0; c < channels; c++) {
                sum[c] += at[c];
            }
        }
    }
    for (size_t c = 0; c < channels; c++) {
        int32_t half = sum[c] < 0 ? -(count / 2) : count / 2;
        int32_t mean = (int32_t)((float)(sum[c] + half) / (float)count);
        out[c] = (ifd_q8)clamp_q8(args, mean + args->shift);
    }
}

/* Windows of up to SMALL positions: sums of bytes fit 16 bits, and so does the division, as a
 * multiplication. */
enum { SMALL = 128 };

/* 32 channels for every instruction set. */
typedef uint8_t bytes __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint16_t words __attribute__((vector_size(64)));

/* floor(x / count) is x * multiplier >> 16 >> shift for x < 2^15. */
struct division {
    uint32_t count, multiplier, shift;
};

static struct division division_by(uint32_t count)
{
    struct division d = {.count = count, .shift = 0};
    while ((2u << d.shift) < count) {
        d.shift++;
    }
    d.multiplier = ((65536u << d.shift) + count - 1) / count;
    return d;
}

/* The sum of a window's bytes; Arm's signed ones count from -128. */
INLINE void sum_window(const struct ifd_pool_args *args, const struct window *window,
                       const ifd_q8 *in, uint16_t *ret_sum)
{
    words lo = {0}, hi = {0};
    for (size_t y = window->y0; y < window->y1; y++) {
        const uint8_t *at =
            (const uint8_t *)in + y * args->in_line_stride + window->x0 * args->in_pixel_stride;
        for (size_t x = window->x0; x < window->x1; x++, at += args->in_pixel_stride) {
            const bytes flip = (bytes){0} + (uint8_t)(IFD_Q8_MIN & 0xff);
            lo += __builtin_convertvector(*(const bytes *)at ^ flip, words);
            hi += __builtin_convertvector(*(const bytes *)(at + 32) ^ flip, words);
        }
    }
    __builtin_memcpy(ret_sum, &lo, sizeof(lo));
    __builtin_memcpy(ret_sum + 32, &hi, sizeof(hi));
}

/* As average_block(). Halves of negative means round down; only even counts have halves. */
INLINE void average_small(const struct ifd_pool_args *args, const struct window *window,
                          const struct division *by, const ifd_q8 *in, const size_t channels,
                          ifd_q8 *out)
{
    uint16_t sum[BLOCK];
    sum_window(args, window, in, sum);
    const uint16_t half = (uint16_t)(by->count / 2), even = by->count % 2 == 0;
    const uint16_t zero = (uint16_t)((uint32_t)(args->shift - IFD_Q8_MIN) * by->count);
    const uint16_t multiplier = (uint16_t)by->multiplier;
    const int shift = (int)by->shift;
    const uint8_t lo = (uint8_t)(args->q_min - IFD_Q8_MIN),
                  hi = (uint8_t)(args->q_max - IFD_Q8_MIN);
    for (size_t c = 0; c < channels; c++) {
        const uint16_t x = (uint16_t)(sum[c] + half - (sum[c] < zero ? even : 0));
        const uint8_t mean = (uint8_t)((uint16_t)((uint32_t)x * multiplier >> 16) >> shift);
        out[c] = (ifd_q8)((mean < lo ? lo : mean > hi ? hi : mean) + IFD_Q8_MIN);
    }
}

static void pool_small(const struct ifd_pool_args *args, const struct window *window,
                       const struct division *by, ifd_q8 *out)
{
    for (size_t c = 0; c < args->channels; c += BLOCK) {
        const ifd_q8 *in = (const ifd_q8 *)args->in + c;
        if (args->channels - c >= BLOCK) {
            average_small(args, window, by, in, BLOCK, out + c);
        } else {
            average_small(args, window, by, in, args->channels - c, out + c);
        }
    }
}

INLINE void pool_q8(const struct ifd_pool_args *args, const int average)
{
    struct division by = division_by(2);
    for (size_t y = args->y_begin; y < args->y_end; y++) {
        for (size_t x = 0; x < args->out_w; x++) {
            const struct window window = window_at(args, y, x);
            const size_t count = (window.y1 - window.y0) * (window.x1 - window.x0);
            ifd_q8 *out =
                (ifd_q8 *)args->out + y * args->out_line_stride + x * args->out_pixel_stride;
            if (average && count > 1 && count <= SMALL) {
                by = by.count == count ? by : division_by((uint32_t)count);
                pool_small(args, &window, &by, out);
                continue;
            }
            for (size_t c = 0; c < args->channels; c += BLOCK) {
                const ifd_q8 *in = (const ifd_q8 *)args->in + c;
                const size_t left = args->channels - c;
                if (left >= BLOCK) {
                    (average ? average_block : max_block)(args, &window, in, BLOCK, out + c);
                } else {
                    (average ? average_block : max_block)(args, &window, in, left, out + c);
                }
            }
        }
    }
}

static void max_q8(const struct ifd_pool_args *args)
{
    pool_q8(args, 0);
}

static void average_q8(const struct ifd_pool_args *args)
{
    pool_q8(args, 1);
}

const struct ifd_kern_pool IFD_TABLE = {max_f32, average_f32, max_q8, average_q8};

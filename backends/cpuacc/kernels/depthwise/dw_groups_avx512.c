/* f32 windows over groups of four or eight channels: a vector holds the channels of several groups,
 * and an input reaches the lanes of its own group by a permutation. Sums of neighbouring positions
 * stay in registers while one input of the groups of a line is added; each pixel is permuted once
 * for all positions that see it. */
#include <immintrin.h>
#include <stdint.h>

#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/inline.h"

enum { LANES = 16, KW = IFD_GROUPS_KW, MOST = 14, FEW = 7 };

static size_t lanes(void)
{
    return LANES;
}

static size_t packed_bytes(size_t kh, size_t width)
{
    return (1 + kh * width * KW) * LANES * sizeof(float);
}

/* The biases, then the weights of each line of the window, input of a group, and column. */
static void pack(const struct ifd_groups_weights *weights, void *dst)
{
    const size_t kh = weights->kh, width = weights->width;
    float *at = dst;
    for (size_t l = 0; l < LANES; l++) {
        *at++ = weights->bias && l < weights->channels ? weights->bias[l] : 0.0f;
    }
    for (size_t i = 0; i < kh * width * KW; i++) {
        const size_t ky = i / (width * KW), input = i / KW % width, kx = i % KW;
        for (size_t l = 0; l < LANES; l++) {
            *at++ = l < weights->channels ? weights->w[((l * kh + ky) * KW + kx) * width + input]
                                          : 0.0f;
        }
    }
}

/* `count` neighbouring positions of a line. in: the first pixel that they see. */
INLINE void positions(const struct ifd_groups_args *args, const float *in, float *out,
                      const size_t stride, const size_t count)
{
    const float *w = args->packed;
    const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i first =
        _mm512_and_si512(lane, _mm512_set1_epi32(-(int32_t)(uint32_t)args->width));
    __m512 sum[MOST];
    UNROLL for (size_t p = 0; p < count; p++)
    {
        sum[p] = _mm512_loadu_ps(w);
    }
    w += LANES;
    for (size_t ky = 0; ky < args->kh; ky++, in += args->in_line) {
        __m512i from = first;
        for (size_t i = 0; i < args->width; i++, w += KW * LANES) {
            const __m512 column[KW] = {_mm512_loadu_ps(w), _mm512_loadu_ps(w + LANES),
                                       _mm512_loadu_ps(w + 2 * LANES)};
            UNROLL for (size_t x = 0; x < (count - 1) * stride + KW; x++)
            {
                const __m512 pixel = _mm512_permutexvar_ps(from, _mm512_loadu_ps(in + x * LANES));
                UNROLL for (size_t kx = 0; kx < KW; kx++)
                {
                    if (x >= kx && (x - kx) % stride == 0 && (x - kx) / stride < count) {
                        const size_t p = (x - kx) / stride;
                        sum[p] = _mm512_fmadd_ps(pixel, column[kx], sum[p]);
                    }
                }
            }
            from = _mm512_add_epi32(from, _mm512_set1_epi32(1));
        }
    }
    const __mmask16 mask = (__mmask16)((1u << args->channels) - 1);
    const __m512 min = _mm512_set1_ps(args->min), max = _mm512_set1_ps(args->max);
    UNROLL for (size_t p = 0; p < count; p++)
    {
        const __m512 y = _mm512_min_ps(max, _mm512_max_ps(min, sum[p]));
        _mm512_mask_storeu_ps(out + p * args->out_pixel, mask, y);
    }
}

#define POSITIONS(stride, count)                                                                   \
    static __attribute__((noinline)) void positions_##stride##_##count(                            \
        const struct ifd_groups_args *args, const float *in, float *out)                           \
    {                                                                                              \
        positions(args, in, out, stride, count);                                                   \
    }
POSITIONS(1, 14)
POSITIONS(1, 7)
POSITIONS(1, 1)
POSITIONS(2, 7)
POSITIONS(2, 1)
#undef POSITIONS

/* The last positions overlap those before, or are computed one by one. */
static void line(const struct ifd_groups_args *args, const float *in, float *out)
{
    const int is_plain = args->stride_x == 1;
    for (size_t x = 0, count = 0; x < args->out_w; x += count) {
        const size_t left = args->out_w - x;
        count = is_plain && left >= MOST ? MOST : args->out_w >= FEW ? FEW : 1;
        x = left < count ? args->out_w - count : x;
        const float *from = in + x * args->stride_x * LANES;
        float *to = out + x * args->out_pixel;
        if (count == MOST) {
            positions_1_14(args, from, to);
        } else if (count == FEW) {
            (is_plain ? positions_1_7 : positions_2_7)(args, from, to);
        } else {
            (is_plain ? positions_1_1 : positions_2_1)(args, from, to);
        }
    }
}

static void run(const struct ifd_groups_args *args)
{
    const float *in = args->in;
    float *out = args->out;
    for (size_t y = 0; y < args->lines; y++, in += args->in_step, out += args->out_line) {
        line(args, in, out);
    }
}

const struct ifd_kern_dw_groups ifd_kern_dw_groups_avx512 = {lanes, packed_bytes, pack, run};

/* Transposes by blocks and bilinear resizing. */
#include "backends/cpuacc/kernels.h"
#include "backends/cpuacc/kernels/simd.h"

enum {
    TILE = 16 /* rows and columns moved together: their cache lines stay in L1 */
};

INLINE size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#define TRANSPOSE(bits)                                                                            \
    static void transpose_##bits(size_t rows, size_t n, const uint##bits##_t *in, size_t in_row,   \
                                 uint##bits##_t *out, size_t out_row)                              \
    {                                                                                              \
        for (size_t r0 = 0; r0 < rows; r0 += TILE) {                                               \
            for (size_t c0 = 0; c0 < n; c0 += TILE) {                                              \
                size_t r1 = least(r0 + TILE, rows), c1 = least(c0 + TILE, n);                      \
                for (size_t c = c0; c < c1; c++) {                                                 \
                    for (size_t r = r0; r < r1; r++) {                                             \
                        out[c * out_row + r] = in[r * in_row + c];                                 \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
TRANSPOSE(32)
TRANSPOSE(8)
#undef TRANSPOSE

INLINE vf mix(vf a, vf b, vf t)
{
    return vf_fma(vf_sub(b, a), t, a);
}

static void resize_bilinear_f32(const struct ifd_resize_args *args)
{
    const vf dy = vf_set1(args->dy);
    for (size_t x = 0; x < args->out_w; x++) {
        const float *t0 = args->top + args->x0[x], *t1 = args->top + args->x1[x];
        const float *b0 = args->bottom + args->x0[x], *b1 = args->bottom + args->x1[x];
        const vf dx = vf_set1(args->dx[x]);
        float *out = args->out + x * args->out_pixel_stride;
        size_t c = 0;
        for (; c + VF_LANES <= args->channels; c += VF_LANES) {
            vf top = mix(vf_load(t0 + c), vf_load(t1 + c), dx);
            vf bottom = mix(vf_load(b0 + c), vf_load(b1 + c), dx);
            vf_store(out + c, mix(top, bottom, dy));
        }
        if (c < args->channels) {
            const size_t left = args->channels - c;
            vf top = mix(vf_load_n(t0 + c, left), vf_load_n(t1 + c, left), dx);
            vf bottom = mix(vf_load_n(b0 + c, left), vf_load_n(b1 + c, left), dx);
            vf_store_n(out + c, mix(top, bottom, dy), left);
        }
    }
}

const struct ifd_kern_move IFD_TABLE = {transpose_32, transpose_8, resize_bilinear_f32};

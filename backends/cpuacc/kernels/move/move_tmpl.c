/* Transposes by blocks and bilinear resizing. */
#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/quad.h"
#include "backends/cpuacc/kernels/simd/simd.h"

enum {
    TILE = 16 /* rows and columns moved together: their cache lines stay in L1 */
};

INLINE size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Four rows and columns, or what is left of them. */
INLINE void transpose_block_32(size_t rows, size_t n, const uint32_t *in, size_t in_row,
                               uint32_t *out, size_t out_row)
{
    if (rows >= 4 && n >= 4) {
        transpose_4x4(in, in_row * sizeof(*in), out, out_row * sizeof(*out));
        return;
    }
    for (size_t j = 0; j < least(4, n); j++) {
        for (size_t i = 0; i < least(4, rows); i++) {
            out[j * out_row + i] = in[i * in_row + j];
        }
    }
}

/* A tile of rows x n, both at most TILE. Cache lines on the side of the longer rows are finished
 * four at a time: rows of 4 KiB share one set of the first-level cache. */
INLINE void transpose_tile_32(size_t rows, size_t n, const uint32_t *in, size_t in_row,
                              uint32_t *out, size_t out_row)
{
    if (in_row < out_row) {
        for (size_t c = 0; c < n; c += 4) {
            for (size_t r = 0; r < rows; r += 4) {
                transpose_block_32(rows - r, n - c, in + r * in_row + c, in_row,
                                   out + c * out_row + r, out_row);
            }
        }
        return;
    }
    for (size_t r = 0; r < rows; r += 4) {
        for (size_t c = 0; c < n; c += 4) {
            transpose_block_32(rows - r, n - c, in + r * in_row + c, in_row, out + c * out_row + r,
                               out_row);
        }
    }
}

INLINE void transpose_tile_8(size_t rows, size_t n, const uint8_t *in, size_t in_row, uint8_t *out,
                             size_t out_row)
{
    for (size_t c = 0; c < n; c++) {
        for (size_t r = 0; r < rows; r++) {
            out[c * out_row + r] = in[r * in_row + c];
        }
    }
}

/* Few planes to pixels with a channel per plane, and back: loops that compilers vectorize well. */
#define FEW(bits, few)                                                                             \
    INLINE void interleave_##bits##_##few(size_t n, const uint##bits##_t *restrict in,             \
                                          size_t in_row, uint##bits##_t *restrict out)             \
    {                                                                                              \
        for (size_t c = 0; c < n; c++) {                                                           \
            UNROLL for (size_t r = 0; r < few; r++)                                                \
            {                                                                                      \
                out[c * few + r] = in[r * in_row + c];                                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    INLINE void separate_##bits##_##few(size_t rows, const uint##bits##_t *restrict in,            \
                                        uint##bits##_t *restrict out, size_t out_row)              \
    {                                                                                              \
        for (size_t r = 0; r < rows; r++) {                                                        \
            UNROLL for (size_t c = 0; c < few; c++)                                                \
            {                                                                                      \
                out[c * out_row + r] = in[r * few + c];                                            \
            }                                                                                      \
        }                                                                                          \
    }
FEW(8, 3)
FEW(8, 4)
FEW(32, 3)
FEW(32, 4)
#undef FEW

#define TRANSPOSE(bits)                                                                            \
    static void transpose_##bits(size_t rows, size_t n, const uint##bits##_t *in, size_t in_row,   \
                                 uint##bits##_t *out, size_t out_row)                              \
    {                                                                                              \
        if (rows == 3 && out_row == 3) {                                                           \
            interleave_##bits##_3(n, in, in_row, out);                                             \
            return;                                                                                \
        }                                                                                          \
        if (rows == 4 && out_row == 4) {                                                           \
            interleave_##bits##_4(n, in, in_row, out);                                             \
            return;                                                                                \
        }                                                                                          \
        if (n == 3 && in_row == 3) {                                                               \
            separate_##bits##_3(rows, in, out, out_row);                                           \
            return;                                                                                \
        }                                                                                          \
        if (n == 4 && in_row == 4) {                                                               \
            separate_##bits##_4(rows, in, out, out_row);                                           \
            return;                                                                                \
        }                                                                                          \
        for (size_t r = 0; r < rows; r += TILE) {                                                  \
            for (size_t c = 0; c < n; c += TILE) {                                                 \
                transpose_tile_##bits(least(TILE, rows - r), least(TILE, n - c),                   \
                                      in + r * in_row + c, in_row, out + c * out_row + r,          \
                                      out_row);                                                    \
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

/* Pixels x … end-1, which lie between the same two, in n channels from c on: first the two columns,
 * then what lies in between. */
INLINE void mix_pixels(const struct ifd_resize_args *args, size_t x, size_t end, size_t c,
                       const size_t n)
{
    const size_t at[2] = {args->x0[x] + c, args->x1[x] + c};
    const vf dy = vf_set1(args->dy);
    vf column[2];
    UNROLL for (size_t i = 0; i < 2; i++)
    {
        const float *top = args->top + at[i], *bottom = args->bottom + at[i];
        column[i] = n == VF_LANES ? mix(vf_load(top), vf_load(bottom), dy)
                                  : mix(vf_load_n(top, n), vf_load_n(bottom, n), dy);
    }
    const vf apart = vf_sub(column[1], column[0]);
    for (float *out = args->out + x * args->out_pixel_stride + c; x < end;
         x++, out += args->out_pixel_stride) {
        const vf v = vf_fma(apart, vf_set1(args->dx[x]), column[0]);
        if (n == VF_LANES) {
            vf_store(out, v);
        } else {
            vf_store_n(out, v, n);
        }
    }
}

/* The last whole vector of a pixel overlaps the one before. */
static void resize_bilinear_f32(const struct ifd_resize_args *args)
{
    const size_t channels = args->channels;
    for (size_t x = 0, end = 0; x < args->out_w; x = end) {
        for (end = x + 1;
             end < args->out_w && args->x0[end] == args->x0[x] && args->x1[end] == args->x1[x];) {
            end++;
        }
        if (channels < VF_LANES) {
            mix_pixels(args, x, end, 0, channels);
            continue;
        }
        for (size_t c = 0; c < channels; c += VF_LANES) {
            mix_pixels(args, x, end, least(c, channels - VF_LANES), VF_LANES);
        }
    }
}

const struct ifd_kern_move IFD_TABLE = {transpose_32, transpose_8, resize_bilinear_f32};

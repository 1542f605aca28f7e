/* Shared by all windows of the VNNI depthwise kernels: blocks of channels, columns of
 * interleaved rows, and the end of sums.
 *
 * A column is four rows of 64 bytes interleaved byte by byte, so that one vpdpbusd takes up to
 * four taps of 16 channels. The 64 bytes are 64 channels of a pixel, or, where a block has 32 or
 * 16 channels, two or four pixels. These pixels are half or a quarter of the line apart and
 * start its streams: each stream is the same work, and a step moves all of them by one column. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_DEPTHWISE_DW_Q8_VNNI_LINES_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_DEPTHWISE_DW_Q8_VNNI_LINES_IMPL_H

#include "backends/cpuacc/kernels/simd/finish_avx512.h"

enum { BLOCK = 64, VECTORS = 4 };

/* In a tail, behind its rows. */
enum {
    PARTS = IFD_TAIL_ROWS * BLOCK, /* number of parts of the weights, */
    RESTS,                         /* and for 3x3 windows the bits of more_parts() */
    PARTS_MAX = 3,
    TAIL_BYTES = 4 * PARTS + BLOCK
};

/* How a block's lines are finished. FAST and EXACT are those of enum ifd_finish. PLAIN is FAST
 * where neither zero point nor bounds change anything, as behind most activations. ANY reads the
 * header: for rare cases, weights of several parts among them. */
enum way { WAY_PLAIN, WAY_FAST, WAY_EXACT, WAY_ANY, WAYS };

/* Channels a pixel has in a vector, for a block of `channels` channels: 64, 32 or 16. */
INLINE size_t block_width(size_t channels)
{
    return channels > 32 ? BLOCK : channels > 16 ? BLOCK / 2 : BLOCK / 4;
}

/* One block of one call. */
struct job {
    const struct ifd_dw_args *args;
    const struct ifd_packed *header;
    const int8_t *weights;
    const int32_t *tail;
    size_t c0, channels; /* first of the block, and how many of it */
    size_t pixels;       /* of a vector: 1, 2, 4 */
    size_t count;        /* output pixels of a stream */
    enum way way;
    const uint8_t *zero; /* 64 bytes of zero point */
};

/* A line's parameters, copied to locals because stores through uint8_t may alias everything
 * else. row[] are the four input rows being interleaved, step[] the distance of two pixels,
 * apart[] that of two streams. A row outside the image has 0 for both and stays on the zero
 * point. */
struct line {
    const struct job *job;
    const uint8_t *row[4];
    size_t step[4], apart[4];
    int64_t in_w;
    int64_t inner_w; /* columns below this are inside in every stream */
    int64_t apart_x; /* input columns from one stream to the next */
    size_t pixel;    /* bytes from one to the next */
    const int8_t *weights;
    const int32_t *tail;
    int32_t rests;
    uint8_t *out;
    size_t out_pixel, out_line, out_apart, out_w, count, channels;
    int finish;
    struct bounds bounds;
    const uint8_t *zero;
};

INLINE __m512i dot4(__m512i sum, __m512i a, __m512i w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(w));
    return sum;
}

INLINE struct line start_line(const struct job *job, size_t y, const size_t pixels)
{
    const struct ifd_dw_args *args = job->args;
    const int64_t in_w = (int64_t)args->in_w, apart_x = (int64_t)(job->count * args->stride_x);
    return (struct line){.job = job,
                         .in_w = in_w,
                         .inner_w = in_w - (int64_t)(pixels - 1) * apart_x,
                         .apart_x = apart_x,
                         .pixel = args->in_pixel_stride,
                         .weights = job->weights,
                         .tail = job->tail,
                         .rests = job->tail[RESTS],
                         .out = (uint8_t *)args->out + y * args->out_line_stride + job->c0,
                         .out_pixel = args->out_pixel_stride,
                         .out_line = args->out_line_stride,
                         .out_apart = job->count * args->out_pixel_stride,
                         .out_w = args->out_w,
                         .count = job->count,
                         .channels = job->channels,
                         .finish = job->header->private_[IFD_PACKED_FINISH],
                         .bounds = load_bounds(job->header),
                         .zero = job->zero};
}

/* Points row r at input line iy. */
INLINE void set_row(struct line *line, size_t r, int64_t iy)
{
    const struct ifd_dw_args *args = line->job->args;
    const int inside = iy >= 0 && iy < (int64_t)args->in_h;
    line->step[r] = inside ? line->pixel : 0;
    line->apart[r] = inside ? (size_t)line->apart_x * line->pixel : 0;
    line->row[r] =
        inside ? (const uint8_t *)args->in + (size_t)iy * args->in_line_stride + line->job->c0
               : line->zero;
}

INLINE void set_rows(struct line *line, int64_t iy)
{
    UNROLL for (size_t r = 0; r < 4; r++)
    {
        set_row(line, r, iy + (int64_t)r);
    }
}

/* Advances along the rows: the addresses that a turn of a loop reads follow from those of its
 * first column. */
INLINE void walk(struct line *line, int64_t columns)
{
    UNROLL for (size_t r = 0; r < 4; r++)
    {
        line->row[r] += columns * (int64_t)line->step[r];
        __asm__("" : "+r"(line->row[r]));
    }
}

/* ---- columns ---- */

struct column {
    __m512i v[VECTORS];
};

INLINE struct column interleave(const __m512i *r)
{
    __m512i lo01 = _mm512_unpacklo_epi8(r[0], r[1]), hi01 = _mm512_unpackhi_epi8(r[0], r[1]);
    __m512i lo23 = _mm512_unpacklo_epi8(r[2], r[3]), hi23 = _mm512_unpackhi_epi8(r[2], r[3]);
    return (struct column){{_mm512_unpacklo_epi16(lo01, lo23), _mm512_unpackhi_epi16(lo01, lo23),
                            _mm512_unpacklo_epi16(hi01, hi23), _mm512_unpackhi_epi16(hi01, hi23)}};
}

INLINE __m512i load_16(const uint8_t *from)
{
    return _mm512_zextsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)from));
}

/* The pixels of all streams at one place. */
INLINE __m512i join_pixels(const uint8_t *const *at, const size_t pixels)
{
    if (pixels == 1) {
        return in_register(_mm512_loadu_si512(at[0]));
    }
    if (pixels == 2) {
        __m512i v =
            _mm512_zextsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)at[0]));
        return _mm512_mask_broadcast_i64x4(
            v, 0xf0, _mm256_loadu_si256((const __m256i *)(const void *)at[1]));
    }
    __m512i v = load_16(at[0]);
    UNROLL for (size_t i = 1; i < 4; i++)
    {
        v = _mm512_mask_broadcast_i32x4(v, (__mmask16)(0xfu << 4 * i),
                                        _mm_loadu_si128((const __m128i *)(const void *)at[i]));
    }
    return v;
}

/* The column x after the current one, which is inside. Of three rows with stride 2 no window
 * reads the fourth: its weights are 0, and it is not loaded. */
INLINE struct column inner_column(const struct line *line, int64_t x, const size_t pixels,
                                  const size_t rows)
{
    __m512i r[4];
    UNROLL for (size_t i = 0; i < rows; i++)
    {
        const uint8_t *at[4];
        UNROLL for (size_t p = 0; p < pixels; p++)
        {
            at[p] = line->row[i] + x * (int64_t)line->step[i] + p * line->apart[i];
        }
        r[i] = join_pixels(at, pixels);
    }
    if (rows == 3) {
        r[3] = r[2];
    }
    return interleave(r);
}

/* The same where streams may be outside. */
INLINE struct column outer_column(const struct line *line, int64_t x, const size_t pixels)
{
    __m512i r[4];
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        const uint8_t *at[4];
        UNROLL for (size_t p = 0; p < pixels; p++)
        {
            const int64_t xi = x + (int64_t)p * line->apart_x;
            at[p] = xi >= 0 && xi < line->in_w ? line->row[i] + xi * (int64_t)line->step[i]
                                               : line->zero;
        }
        r[i] = join_pixels(at, pixels);
    }
    return interleave(r);
}

__attribute__((noinline)) static struct column outer_column_2(const struct line *line, int64_t x)
{
    return outer_column(line, x, 2);
}

__attribute__((noinline)) static struct column outer_column_4(const struct line *line, int64_t x)
{
    return outer_column(line, x, 4);
}

/* Column x of every stream. With several pixels a vector it may be outside only at the ends of a
 * line. */
INLINE struct column load_column(const struct line *line, int64_t x, const size_t pixels,
                                 const size_t rows)
{
    if (pixels > 1) {
        return pixels == 2 ? outer_column_2(line, x) : outer_column_4(line, x);
    }
    if (x >= 0 && x < line->in_w) {
        return inner_column(line, x, 1, rows);
    }
    const __m512i zero = _mm512_load_si512(line->zero);
    return (struct column){{zero, zero, zero, zero}};
}

/* ---- sums ---- */

/* The sums of `count` positions begin with the biases. */
INLINE void start_positions(const struct line *line, const size_t count, __m512i *sum)
{
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        const __m512i bias = in_register(_mm512_load_si512(line->tail + 16 * j));
        UNROLL for (size_t p = 0; p < count; p++)
        {
            sum[p * VECTORS + j] = bias;
        }
    }
}

/* Packs and stores the scaled sums of output pixel x of every stream; out is pixel 0 of their
 * line. */
INLINE void store(const struct line *line, const enum way way, const __m512i *sum, uint8_t *out,
                  size_t x, const size_t pixels)
{
    struct bounds bounds = line->bounds;
    bounds.shifts = bounds.clamps = way != WAY_PLAIN;
    const __m512i bytes = pack_bytes(sum[0], sum[1], sum[2], sum[3], &bounds);
    const size_t channels = line->channels;
    out += x * line->out_pixel;
    if (pixels == 1) {
        if (channels == BLOCK) {
            _mm512_storeu_si512(out, bytes);
        } else {
            _mm512_mask_storeu_epi8(out, (1ull << channels) - 1, bytes);
        }
    } else if (pixels == 2) {
        store_32(_mm512_castsi512_si256(bytes), channels, out);
        if (x + line->count < line->out_w) {
            store_32(_mm512_extracti64x4_epi64(bytes, 1), channels, out + line->out_apart);
        }
    } else {
        const size_t apart = line->out_apart;
        store_16(_mm512_castsi512_si128(bytes), channels, out);
        if (x + line->count < line->out_w) {
            store_16(_mm512_extracti32x4_epi32(bytes, 1), channels, out + apart);
        }
        if (x + 2 * line->count < line->out_w) {
            store_16(_mm512_extracti32x4_epi32(bytes, 2), channels, out + 2 * apart);
        }
        if (x + 3 * line->count < line->out_w) {
            store_16(_mm512_extracti32x4_epi32(bytes, 3), channels, out + 3 * apart);
        }
    }
}

/* `count` positions from x on, of the line that begins at out; the first `present` of them are
 * stored. The way is a constant of each loop, so that the constants of the other ways do not
 * drive sums out of the registers. */
INLINE void finish_positions(const struct line *line, const enum way way, __m512i *sum,
                             uint8_t *out, size_t x, const size_t count, size_t present,
                             const size_t pixels)
{
    const int finish = way == WAY_ANY     ? line->finish
                       : way == WAY_EXACT ? IFD_FINISH_EXACT
                                          : IFD_FINISH_FAST;
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        scale_column(finish, line->tail + 16 * j, BLOCK, &sum[j], count, VECTORS);
    }
    UNROLL for (size_t p = 0; p < count; p++)
    {
        if (p >= present) {
            return;
        }
        store(line, way, sum + p * VECTORS, out, x + p, pixels);
    }
}

#endif

/* Q8 depthwise convolution with vpmaddwd: 16 channels at a time, input rows widened to 16 bit and
 * interleaved in pairs, so that one instruction takes two taps of 8 channels. Weights are 16 bit,
 * so those with a zero point fit as they are.
 *
 * 3x3 windows roll: each column of the input is interleaved once and used by three positions, and
 * with stride 1 by two lines (the second line's weights sit one row further down the pairs). Other
 * windows interleave the rows of every tap column anew. Columns and rows outside the image are the
 * zero point, so there is no padding copy and no table of addresses. */
#include "backends/cpuacc/kernels/simd/finish_avx2.h"

enum {
    BLOCK = 16,
    VECTORS = 2,     /* of 8 channels */
    STEP = 2 * BLOCK /* 16-bit weights of one pair of rows of one window column */
};

/* Pairs of rows a window column. 3x3 windows have a second set of weights behind the first. */
static size_t pairs_of(size_t kh)
{
    return (kh + 1) / 2;
}

static size_t weight_count(size_t kh, size_t kw)
{
    return (pairs_of(kh) * kw + (kh == 3 && kw == 3 ? 6 : 0)) * STEP;
}

static size_t block_bytes(size_t kh, size_t kw)
{
    return weight_count(kh, kw) * sizeof(int16_t) + IFD_TAIL_ROWS * 4 * BLOCK;
}

static size_t packed_bytes(size_t channels, size_t kh, size_t kw)
{
    return IFD_PACKED_HEADER + (channels + BLOCK - 1) / BLOCK * block_bytes(kh, kw);
}

/* Weight of channel c at (ky, kx) without its zero point; 0 outside window and channels. */
static int weight_at(const struct ifd_dw_weights *weights, int32_t zero, size_t ky, size_t kx,
                     size_t c)
{
    if (ky >= weights->kh || c >= weights->channels) {
        return 0;
    }
    return ((const int8_t *)weights->w)[(ky * weights->kw + kx) * weights->stride_tap + c] - zero;
}

/* Channel of vector j, lane l of a block: the order that packing turns into the natural one. */
static size_t channel_at(size_t j, size_t l)
{
    return l / 4 * 8 + j * 4 + l % 4;
}

/* Writes all pairs of one window column, rows shifted down by `down`. Returns the end. */
static int16_t *pack_column(const struct ifd_dw_weights *weights, int32_t zero, size_t c0,
                            size_t kx, size_t down, int16_t *dst)
{
    for (size_t ky = 0; ky < weights->kh + down; ky += 2) {
        for (size_t j = 0; j < VECTORS; j++) {
            for (size_t l = 0; l < 8; l++) {
                for (size_t r = 0; r < 2; r++) {
                    int outside = ky + r < down;
                    size_t c = c0 + channel_at(j, l);
                    *dst++ =
                        (int16_t)(outside ? 0 : weight_at(weights, zero, ky + r - down, kx, c));
                }
            }
        }
    }
    return dst;
}

static int32_t folded_bias(const struct ifd_dw_weights *weights, const struct ifd_requant *requant,
                           size_t c)
{
    int64_t sum = 0;
    for (size_t t = 0; t < weights->kh * weights->kw; t++) {
        sum += weight_at(weights, requant->weight_zero, t / weights->kw, t % weights->kw, c);
    }
    int32_t bias = c < weights->channels && requant->bias ? requant->bias[c] : 0;
    return (int32_t)(bias - requant->in_zero * sum);
}

static void pack(const struct ifd_dw_weights *weights, const struct ifd_requant *requant, void *dst)
{
    struct ifd_packed *header = dst;
    *header =
        (struct ifd_packed){.bytes = packed_bytes(weights->channels, weights->kh, weights->kw),
                            .n = (uint32_t)weights->channels,
                            .k = 1,
                            .taps = (uint32_t)(weights->kh * weights->kw),
                            .nr = BLOCK,
                            .mr = 2,
                            .unit_bytes = (uint32_t)block_bytes(weights->kh, weights->kw)};
    ifd_pack_header(requant, header);
    header->private_[IFD_PACKED_KH] = (int32_t)weights->kh;
    header->private_[IFD_PACKED_KW] = (int32_t)weights->kw;
    for (size_t c0 = 0; c0 < weights->channels; c0 += BLOCK) {
        unsigned char *block =
            (unsigned char *)dst + IFD_PACKED_HEADER + c0 / BLOCK * header->unit_bytes;
        int16_t *w = (int16_t *)(void *)block;
        for (size_t kx = 0; kx < weights->kw; kx++) {
            w = pack_column(weights, requant->weight_zero, c0, kx, 0, w);
        }
        for (size_t kx = 0; weights->kh == 3 && weights->kw == 3 && kx < 3; kx++) {
            w = pack_column(weights, requant->weight_zero, c0, kx, 1, w);
        }
        for (size_t slot = 0; slot < BLOCK; slot++) {
            size_t c = c0 + channel_at(slot / 8, slot % 8);
            ifd_pack_tail(requant, c, weights->channels, folded_bias(weights, requant, c), BLOCK,
                          slot, (int32_t *)(void *)w);
        }
    }
}

static size_t scratch_bytes(const struct ifd_dw_args *args, size_t kh, size_t kw)
{
    (void)args;
    (void)kh;
    (void)kw;
    return 0;
}

/* One block of one call. */
struct job {
    const struct ifd_dw_args *args;
    const struct ifd_packed *header;
    const int16_t *weights;
    const int32_t *tail;
    size_t kh, kw;
    size_t c0, channels; /* first of the block, and how many of it */
    const uint8_t *zero; /* 16 bytes of zero point */
};

/* A line's parameters, copied to locals because stores through uint8_t may alias everything
 * else. A row outside the image has step 0 and stays on the zero point. */
struct line {
    const uint8_t *row[4];
    size_t step[4];
    int64_t in_w;
    const int16_t *weights;
    const int32_t *tail;
    uint8_t *out;
    size_t out_pixel, out_line, out_w, channels;
    int finish;
    struct bounds bounds;
    __m256i zero;
};

INLINE struct line start_line(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    return (struct line){.in_w = (int64_t)args->in_w,
                         .weights = job->weights,
                         .tail = job->tail,
                         .out = (uint8_t *)args->out + y * args->out_line_stride + job->c0,
                         .out_pixel = args->out_pixel_stride,
                         .out_line = args->out_line_stride,
                         .out_w = args->out_w,
                         .channels = job->channels,
                         .finish = job->header->private_[IFD_PACKED_FINISH],
                         .bounds = load_bounds(job->header),
                         .zero =
                             _mm256_set1_epi16((short)job->header->private_[IFD_PACKED_IN_ZERO])};
}

/* Points row r at input line iy. */
INLINE void set_row(const struct job *job, struct line *line, size_t r, int64_t iy)
{
    int inside = iy >= 0 && iy < (int64_t)job->args->in_h;
    line->step[r] = inside ? job->args->in_pixel_stride : 0;
    line->row[r] =
        inside ? (const uint8_t *)job->args->in + (size_t)iy * job->args->in_line_stride + job->c0
               : job->zero;
}

/* Two pairs of rows of one column, interleaved: v[2*pair + vector]. */
struct column {
    __m256i v[4];
};

INLINE void interleave(const struct line *line, int64_t x, size_t r, __m256i *ret_v)
{
    __m256i a = line->zero, b = line->zero;
    if (x >= 0 && x < line->in_w) {
        const uint8_t *at = line->row[r] + x * (int64_t)line->step[r];
        const uint8_t *below = line->row[r + 1] + x * (int64_t)line->step[r + 1];
        a = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)at));
        b = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)below));
    }
    ret_v[0] = _mm256_unpacklo_epi16(a, b);
    ret_v[1] = _mm256_unpackhi_epi16(a, b);
}

INLINE struct column load_column(const struct line *line, int64_t x)
{
    struct column column;
    interleave(line, x, 0, column.v);
    interleave(line, x, 2, column.v + 2);
    return column;
}

INLINE __m256i dot2(__m256i sum, __m256i a, const int16_t *w)
{
    return _mm256_add_epi32(
        sum, _mm256_madd_epi16(a, _mm256_load_si256((const __m256i *)(const void *)w)));
}

INLINE void store(const struct line *line, __m256i *sum, uint8_t *out)
{
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        scale_column(line->finish, line->tail + 8 * j, BLOCK, &sum[j], 1, 1);
    }
    __m256i words = pack_16(sum[0], sum[1], &line->bounds);
    __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    bytes = _mm_max_epu8(bytes, _mm256_castsi256_si128(line->bounds.min));
    bytes = _mm_min_epu8(bytes, _mm256_castsi256_si128(line->bounds.max));
    store_16(bytes, line->channels, out);
}

/* One position of `lines` lines from its three columns. */
INLINE void output_3x3(const struct line *line, const struct column *a, const struct column *b,
                       const struct column *c, size_t x, const size_t lines)
{
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        const int16_t *w = line->weights + i * 6 * STEP;
        __m256i sum[VECTORS];
        UNROLL for (size_t j = 0; j < VECTORS; j++)
        {
            sum[j] = load_tail(line->tail + 8 * j);
            UNROLL for (size_t pair = 0; pair < 2; pair++)
            {
                const size_t v = 2 * pair + j;
                sum[j] = dot2(sum[j], a->v[v], w + 16 * v);
                sum[j] = dot2(sum[j], b->v[v], w + 2 * STEP + 16 * v);
                sum[j] = dot2(sum[j], c->v[v], w + 4 * STEP + 16 * v);
            }
        }
        store(line, sum, line->out + i * line->out_line + x * line->out_pixel);
    }
}

/* One or two output lines of a 3x3 window: the columns roll through a, b and c. */
INLINE void line_3x3(const struct job *job, size_t y, const size_t lines, const size_t stride)
{
    struct line line = start_line(job, y);
    UNROLL for (size_t r = 0; r < 4; r++)
    {
        set_row(job, &line, r,
                (int64_t)(y * job->args->stride_y + r) - (int64_t)job->args->pad_top);
    }
    int64_t ix = -(int64_t)job->args->pad_left;
    struct column a = load_column(&line, ix), b = load_column(&line, ix + 1), c;
    for (size_t x = 0; x < line.out_w; x++, ix += (int64_t)stride) {
        if (stride == 2) {
            b = load_column(&line, ix + 1);
        }
        c = load_column(&line, ix + 2);
        output_3x3(&line, &a, &b, &c, x, lines);
        a = stride == 2 ? c : b;
        b = c;
    }
}

static void line_3x3_two(const struct job *job, size_t y)
{
    line_3x3(job, y, 2, 1);
}

static void line_3x3_one(const struct job *job, size_t y)
{
    line_3x3(job, y, 1, 1);
}

static void line_3x3_strided(const struct job *job, size_t y)
{
    line_3x3(job, y, 1, 2);
}

/* Any window: no column is kept. */
static void line_any(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    struct line line = start_line(job, y);
    for (size_t x = 0; x < line.out_w; x++) {
        const int16_t *w = line.weights;
        __m256i sum[VECTORS] = {load_tail(line.tail), load_tail(line.tail + 8)};
        for (size_t kx = 0; kx < job->kw; kx++) {
            int64_t ix =
                (int64_t)(x * args->stride_x + kx * args->dilation_x) - (int64_t)args->pad_left;
            for (size_t ky = 0; ky < job->kh; ky += 2, w += STEP) {
                for (size_t r = 0; r < 2; r++) {
                    int64_t iy = (int64_t)(y * args->stride_y + (ky + r) * args->dilation_y);
                    set_row(job, &line, r, iy - (int64_t)args->pad_top);
                }
                __m256i v[VECTORS];
                interleave(&line, ix, 0, v);
                sum[0] = dot2(sum[0], v[0], w);
                sum[1] = dot2(sum[1], v[1], w + 16);
            }
        }
        store(&line, sum, line.out + x * line.out_pixel);
    }
}

static void run_block(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    int rolls = job->kh == 3 && job->kw == 3 && args->dilation_x == 1 && args->dilation_y == 1;
    for (size_t y = args->y_begin; y < args->y_end;) {
        if (rolls && args->stride_x == 1 && args->stride_y == 1 && y + 1 < args->y_end) {
            line_3x3_two(job, y);
            y += 2;
        } else if (rolls && args->stride_x == 1) {
            line_3x3_one(job, y++);
        } else if (rolls && args->stride_x == 2) {
            line_3x3_strided(job, y++);
        } else {
            line_any(job, y++);
        }
    }
}

static void run(const struct ifd_dw_args *args)
{
    const struct ifd_packed *header = args->packed;
    uint8_t zero[BLOCK];
    const size_t kh = (size_t)header->private_[IFD_PACKED_KH],
                 kw = (size_t)header->private_[IFD_PACKED_KW];
    _mm_storeu_si128((__m128i *)(void *)zero,
                     _mm_set1_epi8((char)header->private_[IFD_PACKED_IN_ZERO]));
    for (size_t c0 = args->c_begin; c0 < args->c_end; c0 += BLOCK) {
        const unsigned char *block = (const unsigned char *)args->packed + IFD_PACKED_HEADER +
                                     c0 / BLOCK * header->unit_bytes;
        const int16_t *w = (const int16_t *)(const void *)block;
        struct job job = {.args = args,
                          .header = header,
                          .weights = w,
                          .tail = (const int32_t *)(const void *)(w + weight_count(kh, kw)),
                          .kh = kh,
                          .kw = kw,
                          .c0 = c0,
                          .channels = args->c_end - c0 < BLOCK ? args->c_end - c0 : BLOCK,
                          .zero = zero};
        run_block(&job);
    }
}

const struct ifd_kern_dw_q8 ifd_kern_dw_q8_avx2 = {packed_bytes, pack, scratch_bytes, run};

/* Q8 depthwise convolution with vpdpbusd: 64 channels at a time, four input rows interleaved byte by
 * byte so that one instruction takes a whole column of up to four taps of 16 channels.
 *
 * 3x3 windows roll: each column of the input is interleaved once and used by three output pixels,
 * and with stride 1 by two output lines (the second line's weights sit one byte further). Other
 * windows interleave the columns of a line into the scratch first, ceil(kh / 4) for each; of 5x5 ones
 * for four output lines, or two of stride 2. Columns and rows outside the image are the zero point, so
 * there is no padding copy and no table of addresses.
 *
 * A block with fewer channels left packs 2 or 4 neighbouring pixels into the 64 lanes instead.
 *
 * Weights that have nine bits without their zero point are the sum of two of eight, 255 of three, in those blocks that have
 * any; 3x3 windows leave out what is 0 of the second and third. */
#include "backends/cpuacc/kernels/finish_avx512.h"

enum { BLOCK = 64, VECTORS = 4 };

/* Interleaved weights of a block, four vectors a window column and group of four rows; of 3x3 and 5x5 windows then once more
 * for the second line (see lines_packed()). A wide block has the further parts of its weights behind all of that. Then the
 * tail, and at its end, in 64 bytes, in how many parts the weights are. */
enum {
    PRIVATE_WEIGHTS = IFD_PACKED_TAIL_OFFSET, /* bytes before a tail */
    PARTS = IFD_TAIL_ROWS * BLOCK,            /* where in a tail, */
    RESTS,                                    /* and of 3x3 windows what more_parts() returns */
    PARTS_MAX = 3,
    TAIL_BYTES = 4 * PARTS + BLOCK
};

static int is_3x3(size_t kh, size_t kw)
{
    return kh == 3 && kw == 3;
}

static int is_5x5(size_t kh, size_t kw)
{
    return kh == 5 && kw == 5;
}

/* How many times the weights are there: shifted down by 0, 1 ... rows, for lines that share the interleaved rows of another.
 * Eight interleaved rows serve four lines of a 5x5 window, or two of stride 2. */
static size_t lines_packed(size_t kh, size_t kw)
{
    return is_3x3(kh, kw) ? 2 : is_5x5(kh, kw) ? 4 : 1;
}

/* Of one part. */
static size_t weight_bytes(size_t kh, size_t kw)
{
    return lines_packed(kh, kw) * kw * ((kh + 3) / 4) * VECTORS * BLOCK;
}

static size_t packed_bytes(size_t channels, size_t kh, size_t kw)
{
    return IFD_PACKED_HEADER +
           (channels + BLOCK - 1) / BLOCK * (PARTS_MAX * weight_bytes(kh, kw) + TAIL_BYTES);
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

/* Of a weight, the part that goes into the first, second or third s8 weight. */
static int part_of(int w, int part)
{
    const int first = w < -127 ? -127 : w > 127 ? 127 : w;
    const int second = w - first > 127 ? 127 : w - first;
    return part == 0 ? first : part == 1 ? second : w - first - second;
}

/* In how many parts the weights of a block of channels are. */
static int count_parts(const struct ifd_dw_weights *weights, int32_t zero, size_t c0)
{
    int parts = 1;
    for (size_t t = 0; zero != 0 && t < weights->kh * weights->kw; t++) {
        for (size_t c = c0; c < c0 + BLOCK; c++) {
            int w = weight_at(weights, zero, t / weights->kw, t % weights->kw, c);
            if (w < -128 || w > 127) {
                parts = part_of(w, 2) ? PARTS_MAX : parts > 2 ? parts : 2;
            }
        }
    }
    return parts;
}

/* Four vectors of one window column: rows ky0 .. ky0+3 shifted down by `down` bytes. */
static void pack_column(const struct ifd_dw_weights *weights, int32_t zero, size_t c0, size_t kx,
                        size_t ky0, size_t down, int part, int8_t *dst)
{
    for (size_t j = 0; j < VECTORS; j++) {
        for (size_t l = 0; l < 16; l++) {
            size_t c = c0 + l / 4 * 16 + j * 4 + l % 4;
            for (size_t r = 0; r < 4; r++) {
                int w = ky0 + r < down ? 0 : weight_at(weights, zero, ky0 + r - down, kx, c);
                dst[j * BLOCK + l * 4 + r] = (int8_t)(part < 0 ? w : part_of(w, part));
            }
        }
    }
}

/* Which vectors of the second and third part of a 3x3 window's weights are not 0: hardly any. Bits by part, column, vector. */
static int32_t more_parts(const int8_t *w, int parts)
{
    int32_t used = 0;
    for (int part = parts - 1; part > 0; part--) {
        for (int v = 3 * VECTORS - 1; v >= 0; v--) {
            const __m512i x = _mm512_loadu_si512(w + (size_t)part * weight_bytes(3, 3) + v * BLOCK);
            used = used << 1 | (_mm512_test_epi8_mask(x, x) != 0);
        }
    }
    return used;
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

/* All window columns of a block, of one part, or (-1) of weights that need no parts. */
static void pack_part(const struct ifd_dw_weights *weights, int32_t zero, size_t c0, int part,
                      int8_t *w)
{
    const size_t lines = lines_packed(weights->kh, weights->kw);
    for (size_t line = 0; line < lines; line++) {
        for (size_t kx = 0; kx < weights->kw; kx++) {
            for (size_t ky = 0; ky < weights->kh; ky += 4, w += VECTORS * BLOCK) {
                pack_column(weights, zero, c0, kx, ky, line, part, w);
            }
        }
    }
}

static void pack(const struct ifd_dw_weights *weights, const struct ifd_requant *requant, void *dst)
{
    struct ifd_packed *header = dst;
    const int32_t zero = requant->weight_zero;
    int most = 1;
    for (size_t c0 = 0; c0 < weights->channels; c0 += BLOCK) {
        const int parts = count_parts(weights, zero, c0);
        most = parts > most ? parts : most;
    }
    const size_t part_bytes = weight_bytes(weights->kh, weights->kw);
    const size_t bytes = (size_t)most * part_bytes;
    *header =
        (struct ifd_packed){.bytes = packed_bytes(weights->channels, weights->kh, weights->kw),
                            .n = (uint32_t)weights->channels,
                            .k = 1,
                            .taps = (uint32_t)(weights->kh * weights->kw),
                            .nr = BLOCK,
                            .mr = 2,
                            .unit_bytes = (uint32_t)(bytes + TAIL_BYTES)};
    ifd_pack_header(requant, header);
    header->private_[PRIVATE_WEIGHTS] = (int32_t)bytes;
    header->private_[IFD_PACKED_KH] = (int32_t)weights->kh;
    header->private_[IFD_PACKED_KW] = (int32_t)weights->kw;
    int8_t *w = (int8_t *)dst + IFD_PACKED_HEADER;
    for (size_t c0 = 0; c0 < weights->channels; c0 += BLOCK, w += header->unit_bytes) {
        int32_t *tail = (int32_t *)(void *)(w + bytes);
        const int parts = count_parts(weights, zero, c0);
        __builtin_memset(w, 0, header->unit_bytes);
        for (int part = 0; part < parts; part++) {
            pack_part(weights, zero, c0, parts == 1 ? -1 : part, w + (size_t)part * part_bytes);
        }
        for (size_t slot = 0; slot < BLOCK; slot++) {
            size_t j = slot / 16, l = slot % 16, c = c0 + l / 4 * 16 + j * 4 + l % 4;
            ifd_pack_tail(requant, c, weights->channels, folded_bias(weights, requant, c), BLOCK,
                          slot, tail);
        }
        tail[PARTS] = parts;
        tail[RESTS] = is_3x3(weights->kh, weights->kw) ? more_parts(w, parts) : 0;
    }
    const size_t used = (size_t)(w - (int8_t *)dst);
    __builtin_memset(w, 0, header->bytes - used);
}

/* One block of one call. */
struct job {
    const struct ifd_dw_args *args;
    const struct ifd_packed *header;
    const int8_t *weights;
    const int32_t *tail;
    size_t c0, channels; /* first of the block, and how many of it */
    const uint8_t *zero; /* 64 bytes of zero point */
};

/* What a line needs, in locals, because stores through uint8_t may alias everything else. row[] and
 * step[] are the four input rows being interleaved: one outside the image has step 0 and stays on
 * the zero point. */
struct line {
    const struct job *job;
    int64_t iy; /* of row 0 */
    const uint8_t *row[4];
    size_t step[4];
    size_t pixel; /* bytes from one to the next */
    int64_t in_w;
    const int8_t *weights;
    const int32_t *tail;
    int32_t rests;
    uint8_t *out;
    size_t out_pixel, out_line, out_w, channels;
    int finish;
    struct bounds bounds;
    const uint8_t *zero;
};

/* How a layer finishes: enum ifd_finish, or FAST where neither zero point nor bounds change anything, as behind most
 * activations. */
enum { FINISH_PLAIN = IFD_FINISH_NONE + 1 };

INLINE int choose_finish(const struct ifd_packed *header)
{
    const struct bounds bounds = load_bounds(header);
    const int finish = header->private_[IFD_PACKED_FINISH];
    return finish == IFD_FINISH_FAST && !bounds.shifts && !bounds.clamps ? FINISH_PLAIN : finish;
}

INLINE __m512i dot4(__m512i sum, __m512i a, __m512i w)
{
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(w));
    return sum;
}

INLINE struct line start_line(const struct job *job, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    return (struct line){.job = job,
                         .pixel = args->in_pixel_stride,
                         .in_w = (int64_t)args->in_w,
                         .weights = job->weights,
                         .tail = job->tail,
                         .rests = job->tail[RESTS],
                         .out = (uint8_t *)args->out + y * args->out_line_stride + job->c0,
                         .out_pixel = args->out_pixel_stride,
                         .out_line = args->out_line_stride,
                         .out_w = args->out_w,
                         .channels = job->channels,
                         .finish = choose_finish(job->header),
                         .bounds = load_bounds(job->header),
                         .zero = job->zero};
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

/* The pixels at columns x, x + spacing ... of row r, which are inside: 1, 2 or 4 of 64, 32 or 16 channels. */
INLINE __m512i load_pixels(const struct line *line, size_t r, int64_t x, const size_t pixels,
                           const size_t spacing)
{
    const uint8_t *at[4];
    UNROLL for (size_t i = 0; i < pixels; i++)
    {
        at[i] = line->row[r] + (x + (int64_t)(i * spacing)) * (int64_t)line->step[r];
    }
    if (pixels == 1 || (spacing == 1 && line->pixel == BLOCK / pixels)) {
        return in_register(_mm512_loadu_si512(at[0]));
    }
    if (pixels == 2) {
        __m512i v =
            _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)at[0]));
        return _mm512_inserti64x4(v, _mm256_loadu_si256((const __m256i *)(const void *)at[1]), 1);
    }
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)at[0]));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at[1]), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at[2]), 2);
    return _mm512_inserti32x4(v, _mm_loadu_si128((const __m128i *)(const void *)at[3]), 3);
}

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

/* The four rows at column x, interleaved; lane order as pack() has it. Where a stride is 2 no window of three rows meets the
 * fourth: its weights are 0, and it need not be read. */
INLINE struct column inner_column(const struct line *line, int64_t x, const size_t pixels,
                                  const size_t spacing)
{
    __m512i r[4];
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        r[i] = i == 3 && spacing == 2 ? r[2] : load_pixels(line, i, x, pixels, spacing);
    }
    return interleave(r);
}

/* The same of several pixels of which some may be outside; the first row is input line iy. */
__attribute__((noinline)) static struct column edge_column(const struct job *job, int64_t iy,
                                                           int64_t x, size_t pixels, size_t spacing)
{
    const struct ifd_dw_args *args = job->args;
    const size_t bytes = BLOCK / pixels;
    __m512i rows[4];
    for (size_t b = 0; b < sizeof(rows); b += 16) {
        const size_t pixel = b % BLOCK / bytes;
        const int64_t y = iy + (int64_t)(b / BLOCK), xi = x + (int64_t)(pixel * spacing);
        const uint8_t *from = job->zero;
        if (y >= 0 && y < (int64_t)args->in_h && xi >= 0 && xi < (int64_t)args->in_w) {
            from = (const uint8_t *)args->in + (size_t)y * args->in_line_stride +
                   (size_t)xi * args->in_pixel_stride + job->c0 + b % bytes;
        }
        _mm_storeu_si128((__m128i *)(void *)((uint8_t *)rows + b),
                         _mm_loadu_si128((const __m128i *)(const void *)from));
    }
    return interleave(rows);
}

/* The column that begins `bytes` of each vector further on than one, with the pixels of the other behind it. */
INLINE struct column between(const struct column *a, const struct column *b, const size_t bytes)
{
    struct column ret;
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        ret.v[j] = bytes == 16 ? _mm512_alignr_epi32(b->v[j], a->v[j], 4)
                               : _mm512_alignr_epi32(b->v[j], a->v[j], 8);
    }
    return ret;
}

INLINE struct column load_column(const struct line *line, int64_t x, const size_t pixels,
                                 const size_t spacing)
{
    int64_t last = x + (int64_t)((pixels - 1) * spacing);
    if (x >= 0 && last < line->in_w) {
        return inner_column(line, x, pixels, spacing);
    }
    const __m512i zero = _mm512_load_si512(line->zero);
    const struct column outside = {{zero, zero, zero, zero}};
    if (pixels == 1 || x >= line->in_w) {
        return outside;
    }
    if (pixels == 2 && spacing == 1 && line->in_w > 1) {
        const struct column inside = inner_column(line, x < 0 ? 0 : x - 1, 2, 1);
        return x < 0 ? between(&outside, &inside, 32) : between(&inside, &outside, 32);
    }
    return edge_column(line->job, line->iy, x, pixels, spacing);
}

/* The sums of `count` positions begin with the biases. With several pixels a vector, each 128 bits hold 16 channels of one
 * pixel: the weights and tails of those channels are the first 128 (or 256) bits of the block's, repeated. */
INLINE void start_positions(const struct line *line, const size_t count, const size_t pixels,
                            __m512i *sum)
{
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        const __m512i bias = in_register(load_repeated(line->tail + 16 * j, pixels));
        UNROLL for (size_t p = 0; p < count; p++)
        {
            sum[p * VECTORS + j] = bias;
        }
    }
}

/* finish is the layer's: known when a loop is compiled, it keeps the constants of the other ways from driving sums out of the
 * registers. */
INLINE void scale(const struct line *line, const int finish, __m512i *sum, const size_t count,
                  const size_t pixels)
{
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        scale_column(finish == FINISH_PLAIN ? IFD_FINISH_FAST : finish, line->tail + 16 * j, BLOCK,
                     pixels, &sum[j], count, VECTORS);
    }
}

/* Packs and stores the scaled sums of output pixels x .. x+pixels-1; out is pixel 0 of their line. */
INLINE void store(const struct line *line, const int finish, __m512i *sum, uint8_t *out, size_t x,
                  const size_t pixels)
{
    struct bounds bounds = line->bounds;
    bounds.shifts = bounds.clamps = finish != FINISH_PLAIN;
    __m512i bytes = pack_bytes(sum[0], sum[1], sum[2], sum[3], &bounds);
    const size_t stride = line->out_pixel, channels = line->channels;
    out += x * stride;
    if (pixels == 1) {
        if (channels == BLOCK) {
            _mm512_storeu_si512(out, bytes);
        } else {
            _mm512_mask_storeu_epi8(out, (1ull << channels) - 1, bytes);
        }
    } else if (pixels == 2) {
        store_32(_mm512_castsi512_si256(bytes), channels, out);
        if (x + 1 < line->out_w) {
            store_32(_mm512_extracti64x4_epi64(bytes, 1), channels, out + stride);
        }
    } else {
        store_16(_mm512_castsi512_si128(bytes), channels, out);
        if (x + 1 < line->out_w) {
            store_16(_mm512_extracti32x4_epi32(bytes, 1), channels, out + stride);
        }
        if (x + 2 < line->out_w) {
            store_16(_mm512_extracti32x4_epi32(bytes, 2), channels, out + 2 * stride);
        }
        if (x + 3 < line->out_w) {
            store_16(_mm512_extracti32x4_epi32(bytes, 3), channels, out + 3 * stride);
        }
    }
}

/* Column kx of the windows of `count` neighbouring output positions, that of position p being column[p * shift]: each vector
 * of weights is loaded once for all. */
INLINE void add_column(const struct line *line, const int8_t *w, const size_t kx,
                       const struct column *column, const size_t count, const size_t shift,
                       const size_t pixels, const size_t parts, __m512i *sum)
{
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        __m512i wv = load_repeated(w + (kx * VECTORS + j) * BLOCK, pixels);
        UNROLL for (size_t p = 0; p < count; p++)
        {
            sum[p * VECTORS + j] = dot4(sum[p * VECTORS + j], column[p * shift].v[j], wv);
        }
        for (size_t part = 1; part < parts; part++) {
            if (!(line->rests >> ((3 * (part - 1) + kx) * VECTORS + j) & 1)) {
                continue;
            }
            wv = load_repeated(w + ((6 * part + kx) * VECTORS + j) * BLOCK, pixels);
            UNROLL for (size_t p = 0; p < count; p++)
            {
                sum[p * VECTORS + j] = dot4(sum[p * VECTORS + j], column[p * shift].v[j], wv);
            }
        }
    }
}

/* `count` positions from x on, of the line that begins at out. */
INLINE void finish_positions(const struct line *line, const int finish, __m512i *sum, uint8_t *out,
                             size_t x, const size_t count, const size_t pixels)
{
    scale(line, finish, sum, count, pixels);
    UNROLL for (size_t p = 0; p < count; p++)
    {
        store(line, finish, sum + p * VECTORS, out, x + p * pixels, pixels);
    }
}

/* `count` neighbouring output positions of `lines` lines; position i has the columns from
 * column[i * shift] on. */
INLINE void output_3x3(const struct line *line, const struct column *column, size_t x,
                       const size_t count, const size_t shift, const size_t lines,
                       const size_t pixels, const size_t parts, const int finish)
{
    UNROLL for (size_t i = 0; i < lines; i++)
    {
        __m512i sum[2 * VECTORS];
        start_positions(line, count, pixels, sum);
        UNROLL for (size_t kx = 0; kx < 3; kx++)
        {
            add_column(line, line->weights + i * 3 * VECTORS * BLOCK, kx, column + kx, count, shift,
                       pixels, parts, sum);
        }
        finish_positions(line, finish, sum, line->out + i * line->out_line, x, count, pixels);
    }
}

/* Moves on along the rows: the addresses of what a turn of a loop reads all follow from those of its first column. */
INLINE void walk(struct line *line, int64_t columns)
{
    UNROLL for (size_t r = 0; r < 4; r++)
    {
        line->row[r] += columns * (int64_t)line->step[r];
        __asm__("" : "+r"(line->row[r]));
    }
}

/* The column of pixels x + ahead ...: at stands at x, and all of the column is inside the image, or it may not be (is_edge). */
INLINE struct column next_column(const struct line *line, const struct line *at, int64_t x,
                                 int64_t ahead, const size_t pixels, const size_t spacing,
                                 const int is_edge)
{
    return is_edge ? load_column(line, x + ahead, pixels, spacing)
                   : inner_column(at, ahead, pixels, spacing);
}

/* Stride 1, two positions at a time: of 64 channels with four columns, of 32 with five, every other one of which is made
 * from those around it. The first, or the first two, of c are there. */
INLINE void output_pair(const struct line *line, const struct line *at, struct column *c, size_t x,
                        int64_t ix, const size_t lines, const size_t pixels, const size_t parts,
                        const int finish, const int is_edge)
{
    if (pixels == 1) {
        c[2] = next_column(line, at, ix + 2, 0, 1, 1, is_edge);
        c[3] = next_column(line, at, ix + 2, 1, 1, 1, is_edge);
        output_3x3(line, c, x, 2, 1, lines, 1, parts, finish);
        c[0] = c[2];
        c[1] = c[3];
    } else {
        c[2] = next_column(line, at, ix + 2, 0, 2, 1, is_edge);
        c[4] = next_column(line, at, ix + 2, 2, 2, 1, is_edge);
        c[1] = between(&c[0], &c[2], 32);
        c[3] = between(&c[2], &c[4], 32);
        output_3x3(line, c, x, 2, 2, lines, 2, parts, finish);
        c[0] = c[4];
    }
}

INLINE void roll_pairs(const struct line *line, int64_t ix, const size_t lines, const size_t pixels,
                       const size_t parts, const int finish)
{
    const int64_t step = 2 * (int64_t)pixels;
    struct line at = *line;
    struct column c[5];
    size_t x = 0;
    walk(&at, ix + 2);
    c[0] = load_column(line, ix, pixels, 1);
    if (pixels == 1) {
        c[1] = load_column(line, ix + 1, 1, 1);
    }
    for (; parts == 1 && x + pixels < line->out_w && ix + 1 + step < line->in_w;
         x += 2 * pixels, ix += step) {
        output_pair(line, &at, c, x, ix, lines, pixels, parts, finish, 0);
        walk(&at, step);
    }
    for (; x + pixels < line->out_w; x += 2 * pixels, ix += step) {
        output_pair(line, &at, c, x, ix, lines, pixels, parts, finish, 1);
    }
    if (x < line->out_w) {
        c[2] = load_column(line, ix + 2, pixels, 1);
        if (pixels == 2) {
            c[1] = between(&c[0], &c[2], 32);
        }
        output_3x3(line, c, x, 1, 1, lines, pixels, parts, finish);
    }
}

/* Stride 1, 16 channels: one position at a time, which makes all columns that lie between its first and the next one's. */
INLINE void roll(struct line line, int64_t ix, const size_t lines, const size_t pixels,
                 const size_t parts, const int finish)
{
    struct column c[4];
    c[0] = load_column(&line, ix, pixels, 1);
    for (size_t x = 0; x < line.out_w; x += pixels) {
        ix += (int64_t)pixels;
        c[3] = load_column(&line, ix, pixels, 1);
        c[1] = between(&c[0], &c[3], 64 / pixels);
        c[2] = between(&c[0], &c[3], 2 * 64 / pixels);
        output_3x3(&line, c, x, 1, 1, lines, pixels, parts, finish);
        c[0] = c[3];
    }
}

/* The columns two further on than those of a, where b are the first after them. */
INLINE struct column two_on(const struct column *a, const struct column *b, const size_t pixels)
{
    return pixels == 1 ? *b : between(a, b, 64 / pixels);
}

/* Stride 2, two positions at a time, column by column: so all of them stay in registers. The first of c is there. */
INLINE void output_strided(const struct line *line, const struct line *at, struct column *c,
                           size_t x, int64_t ix, const size_t pixels, const size_t parts,
                           const int finish, const int is_edge)
{
    const int64_t next = 2 * (int64_t)pixels;
    __m512i sum[2 * VECTORS];
    start_positions(line, 2, pixels, sum);
    c[2] = next_column(line, at, ix + 1, next - 1, pixels, 2, is_edge);
    add_column(line, line->weights, 0, c, 2, 2, pixels, parts, sum);
    c[1] = next_column(line, at, ix + 1, 0, pixels, 2, is_edge);
    c[3] = next_column(line, at, ix + 1, next, pixels, 2, is_edge);
    add_column(line, line->weights, 1, c + 1, 2, 2, pixels, parts, sum);
    c[4] = next_column(line, at, ix + 1, 2 * next - 1, pixels, 2, is_edge);
    c[0] = two_on(&c[0], &c[2], pixels);
    c[2] = two_on(&c[2], &c[4], pixels);
    add_column(line, line->weights, 2, c, 2, 2, pixels, parts, sum);
    finish_positions(line, finish, sum, line->out, x, 2, pixels);
    c[0] = c[4];
}

INLINE void roll_strided(const struct line *line, int64_t ix, const size_t pixels,
                         const size_t parts, const int finish)
{
    const int64_t next = 2 * (int64_t)pixels, last = 3 * next - 2;
    struct line at = *line;
    struct column c[5];
    size_t x = 0;
    walk(&at, ix + 1);
    c[0] = load_column(line, ix, pixels, 2);
    for (; parts == 1 && x + pixels < line->out_w && ix + last < line->in_w;
         x += 2 * pixels, ix += 2 * next) {
        output_strided(line, &at, c, x, ix, pixels, parts, finish, 0);
        walk(&at, 2 * next);
    }
    for (; x + pixels < line->out_w; x += 2 * pixels, ix += 2 * next) {
        output_strided(line, &at, c, x, ix, pixels, parts, finish, 1);
    }
    if (x < line->out_w) {
        c[1] = load_column(line, ix + 1, pixels, 2);
        c[2] = load_column(line, ix + next, pixels, 2);
        c[2] = two_on(&c[0], &c[2], pixels);
        output_3x3(line, c, x, 1, 1, 1, pixels, parts, finish);
    }
}

/* One or two output lines of a 3x3 window: the columns roll. */
INLINE void line_3x3(const struct job *job, size_t y, const size_t lines, const size_t stride,
                     const size_t pixels, const size_t parts, const int finish)
{
    struct line line = start_line(job, y);
    line.iy = (int64_t)(y * job->args->stride_y) - (int64_t)job->args->pad_top;
    UNROLL for (size_t r = 0; r < 4; r++)
    {
        set_row(job, &line, r, line.iy + (int64_t)r);
    }
    const int64_t ix = -(int64_t)job->args->pad_left;
    if (stride == 2) {
        roll_strided(&line, ix, pixels, parts, finish);
    } else if (pixels < 4) {
        roll_pairs(&line, ix, lines, pixels, parts, finish);
    } else {
        roll(line, ix, lines, pixels, parts, finish);
    }
}

/* Input columns that one output line of a block touches. */
static size_t column_count(const struct ifd_dw_args *args, size_t kw)
{
    return (args->out_w - 1) * args->stride_x + (kw - 1) * args->dilation_x + 1;
}

/* Any window: a line's columns are interleaved into the scratch once, then every position takes
 * those it needs. Two positions at a time share the loads of the weights. */
INLINE void positions_any(const struct job *job, const struct line *line, size_t x,
                          const size_t count)
{
    const struct ifd_dw_args *args = job->args;
    const size_t parts = (size_t)job->tail[PARTS];
    const size_t kw = (size_t)job->header->private_[IFD_PACKED_KW];
    const size_t kh = (size_t)job->header->private_[IFD_PACKED_KH], groups = (kh + 3) / 4;
    const size_t part_bytes = weight_bytes(kh, kw);
    const size_t apart = args->stride_x * groups * VECTORS;
    const int8_t *w = line->weights;
    __m512i sum[2 * VECTORS];
    start_positions(line, count, 1, sum);
    for (size_t kx = 0; kx < kw; kx++) {
        const __m512i *v = (const __m512i *)args->scratch +
                           (x * args->stride_x + kx * args->dilation_x) * groups * VECTORS;
        for (size_t g = 0; g < groups; g++, v += VECTORS, w += VECTORS * BLOCK) {
            for (size_t part = 0; part < parts; part++) {
                UNROLL for (size_t j = 0; j < VECTORS; j++)
                {
                    const __m512i wv = _mm512_load_si512(w + part * part_bytes + j * BLOCK);
                    UNROLL for (size_t p = 0; p < count; p++)
                    {
                        sum[p * VECTORS + j] = dot4(sum[p * VECTORS + j], v[p * apart + j], wv);
                    }
                }
            }
        }
    }
    const int finish = line->finish;
    if (finish == FINISH_PLAIN) {
        finish_positions(line, FINISH_PLAIN, sum, line->out, x, count, 1);
    } else if (finish == IFD_FINISH_FAST) {
        finish_positions(line, IFD_FINISH_FAST, sum, line->out, x, count, 1);
    } else if (finish == IFD_FINISH_EXACT) {
        finish_positions(line, IFD_FINISH_EXACT, sum, line->out, x, count, 1);
    } else {
        finish_positions(line, IFD_FINISH_EXACT_SIGN, sum, line->out, x, count, 1);
    }
}

/* `count` positions of a 5x5 window whose weights are of one part, from the same columns. Each vector of a column is loaded
 * once for all windows that have it. */
INLINE void positions_5x5(const struct job *job, const struct line *line, size_t x,
                          const size_t count, const size_t stride, const int finish)
{
    enum { KW = 5, GROUPS = 2, APART = GROUPS * VECTORS };
    const __m512i *v = (const __m512i *)job->args->scratch + x * stride * APART;
    __m512i sum[4 * VECTORS];
    start_positions(line, count, 1, sum);
    UNROLL for (size_t j = 0; j < VECTORS; j++)
    {
        UNROLL for (size_t g = 0; g < GROUPS; g++)
        {
            __m512i column[3 * 2 + KW];
            UNROLL for (size_t i = 0; i < (count - 1) * stride + KW; i++)
            {
                column[i] = v[i * APART + g * VECTORS + j];
            }
            UNROLL for (size_t kx = 0; kx < KW; kx++)
            {
                const __m512i w =
                    _mm512_load_si512(line->weights + ((kx * GROUPS + g) * VECTORS + j) * BLOCK);
                UNROLL for (size_t p = 0; p < count; p++)
                {
                    sum[p * VECTORS + j] = dot4(sum[p * VECTORS + j], column[p * stride + kx], w);
                }
            }
        }
    }
    finish_positions(line, finish, sum, line->out, x, count, 1);
}

INLINE void all_5x5(const struct job *job, const struct line *line, const size_t stride,
                    const int finish)
{
    size_t x = 0;
    for (; x + 4 <= line->out_w; x += 4) {
        positions_5x5(job, line, x, 4, stride, finish);
    }
    if (x + 2 <= line->out_w) {
        positions_5x5(job, line, x, 2, stride, finish);
        x += 2;
    }
    if (x < line->out_w) {
        positions_5x5(job, line, x, 1, stride, finish);
    }
}

INLINE void line_5x5(const struct job *job, const struct line *line, const size_t stride)
{
    if (line->finish == FINISH_PLAIN) {
        all_5x5(job, line, stride, FINISH_PLAIN);
    } else if (line->finish == IFD_FINISH_FAST) {
        all_5x5(job, line, stride, IFD_FINISH_FAST);
    } else if (line->finish == IFD_FINISH_EXACT) {
        all_5x5(job, line, stride, IFD_FINISH_EXACT);
    } else {
        all_5x5(job, line, stride, IFD_FINISH_EXACT_SIGN);
    }
}

/* The columns of the `rows` input lines from output line y's first on, interleaved into the scratch. */
INLINE void interleave_lines(const struct job *job, struct line *line, size_t y, size_t rows)
{
    const struct ifd_dw_args *args = job->args;
    const size_t columns = column_count(args, (size_t)job->header->private_[IFD_PACKED_KW]);
    const size_t groups = (rows + 3) / 4;
    __m512i *scratch = args->scratch;
    for (size_t g = 0; g < groups; g++) {
        UNROLL for (size_t r = 0; r < 4; r++)
        {
            int64_t iy = (int64_t)(y * args->stride_y + (4 * g + r) * args->dilation_y);
            set_row(job, line, r, 4 * g + r < rows ? iy - (int64_t)args->pad_top : -1);
        }
        for (size_t x = 0; x < columns; x++) {
            struct column column = load_column(line, (int64_t)x - (int64_t)args->pad_left, 1, 1);
            UNROLL for (size_t j = 0; j < VECTORS; j++)
            {
                scratch[(x * groups + g) * VECTORS + j] = column.v[j];
            }
        }
    }
}

static void line_any(const struct job *job, size_t y)
{
    struct line line = start_line(job, y);
    interleave_lines(job, &line, y, (size_t)job->header->private_[IFD_PACKED_KH]);
    size_t x = 0;
    for (; x + 2 <= line.out_w; x += 2) {
        positions_any(job, &line, x, 2);
    }
    if (x < line.out_w) {
        positions_any(job, &line, x, 1);
    }
}

/* Up to four output lines of a 5x5 window, whose input lines are no more than eight. */
static void lines_5x5(const struct job *job, size_t y, size_t lines)
{
    const size_t stride_y = job->args->stride_y, stride_x = job->args->stride_x;
    struct line line = start_line(job, y);
    interleave_lines(job, &line, y, 5 + (lines - 1) * stride_y);
    for (size_t i = 0; i < lines; i++) {
        if (stride_x == 1) {
            line_5x5(job, &line, 1);
        } else {
            line_5x5(job, &line, 2);
        }
        line.weights += stride_y * weight_bytes(5, 5) / lines_packed(5, 5);
        line.out += line.out_line;
    }
}

/* Functions of their own: in one for all ways gcc 12 keeps sums on the stack. Few blocks have weights of several parts: they
 * make do with FAST where others have a PLAIN one. */
#define LINE_OF(way, finish, parts, lines, stride, pixels)                                         \
    __attribute__((noinline)) static void way##_##lines##_s##stride##_p##pixels(                   \
        const struct job *job, size_t y)                                                           \
    {                                                                                              \
        line_3x3(job, y, lines, stride, pixels, parts, finish);                                    \
    }
#define LINE(lines, stride, pixels)                                                                \
    LINE_OF(plain, FINISH_PLAIN, 1, lines, stride, pixels)                                         \
    LINE_OF(fast, IFD_FINISH_FAST, 1, lines, stride, pixels)                                       \
    LINE_OF(exact, IFD_FINISH_EXACT, 1, lines, stride, pixels)                                     \
    LINE_OF(sign, IFD_FINISH_EXACT_SIGN, 1, lines, stride, pixels)                                 \
    LINE_OF(fast_parts, IFD_FINISH_FAST, (size_t)job->tail[PARTS], lines, stride, pixels)          \
    LINE_OF(exact_parts, IFD_FINISH_EXACT, (size_t)job->tail[PARTS], lines, stride, pixels)        \
    LINE_OF(sign_parts, IFD_FINISH_EXACT_SIGN, (size_t)job->tail[PARTS], lines, stride, pixels)    \
    static void line_##lines##_s##stride##_p##pixels(const struct job *job, size_t y)              \
    {                                                                                              \
        const int finish = choose_finish(job->header), has_parts = job->tail[PARTS] > 1;           \
        if (finish == IFD_FINISH_EXACT) {                                                          \
            (has_parts ? exact_parts_##lines##_s##stride##_p##pixels                               \
                       : exact_##lines##_s##stride##_p##pixels)(job, y);                           \
        } else if (finish == IFD_FINISH_EXACT_SIGN) {                                              \
            (has_parts ? sign_parts_##lines##_s##stride##_p##pixels                                \
                       : sign_##lines##_s##stride##_p##pixels)(job, y);                            \
        } else if (has_parts) {                                                                    \
            fast_parts_##lines##_s##stride##_p##pixels(job, y);                                    \
        } else {                                                                                   \
            (finish == FINISH_PLAIN ? plain_##lines##_s##stride##_p##pixels                        \
                                    : fast_##lines##_s##stride##_p##pixels)(job, y);               \
        }                                                                                          \
    }
LINE(1, 1, 1)
LINE(2, 1, 1)
LINE(1, 2, 1)
LINE(1, 2, 2)
LINE(1, 2, 4)
LINE(1, 1, 2)
LINE(2, 1, 2)
LINE(1, 1, 4)
LINE(2, 1, 4)
#undef LINE
#undef LINE_OF

static void run_block(const struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    const size_t kh = (size_t)job->header->private_[IFD_PACKED_KH];
    const size_t kw = (size_t)job->header->private_[IFD_PACKED_KW];
    const int is_dense = args->dilation_x == 1 && args->dilation_y == 1 &&
                         (args->stride_x == 1 || args->stride_x == 2);
    const int rolls = is_3x3(kh, kw) && is_dense && args->pad_left <= 1;
    const int shares = is_5x5(kh, kw) && is_dense && args->stride_y <= 2 && job->tail[PARTS] == 1;
    /* by pixels a vector: 1, 2, 4 */
    static void (*const one[3])(const struct job *, size_t) = {line_1_s1_p1, line_1_s1_p2,
                                                               line_1_s1_p4};
    static void (*const two[3])(const struct job *, size_t) = {line_2_s1_p1, line_2_s1_p2,
                                                               line_2_s1_p4};
    static void (*const strided[3])(const struct job *, size_t) = {line_1_s2_p1, line_1_s2_p2,
                                                                   line_1_s2_p4};
    size_t pick = job->channels > 32 ? 0 : job->channels > 16 ? 1 : 2;
    for (size_t y = args->y_begin; y < args->y_end;) {
        if (shares) {
            const size_t most = args->stride_y == 1 ? 4 : 2, left = args->y_end - y;
            const size_t lines = left < most ? left : most;
            lines_5x5(job, y, lines);
            y += lines;
        } else if (!rolls) {
            line_any(job, y++);
        } else if (args->stride_x == 2) {
            strided[pick](job, y++);
        } else if (args->stride_y == 1 && y + 1 < args->y_end) {
            two[pick](job, y);
            y += 2;
        } else {
            one[pick](job, y++);
        }
    }
}

static size_t scratch_bytes(const struct ifd_dw_args *args, size_t kh, size_t kw)
{
    return column_count(args, kw) * ((kh + 3) / 4) * VECTORS * BLOCK;
}

static void run(const struct ifd_dw_args *args)
{
    const struct ifd_packed *header = args->packed;
    __attribute__((aligned(64))) uint8_t zero[BLOCK];
    _mm512_store_si512(zero, _mm512_set1_epi8((char)header->private_[IFD_PACKED_IN_ZERO]));
    for (size_t c0 = args->c_begin; c0 < args->c_end; c0 += BLOCK) {
        const int8_t *w =
            (const int8_t *)args->packed + IFD_PACKED_HEADER + c0 / BLOCK * header->unit_bytes;
        struct job job = {
            .args = args,
            .header = header,
            .weights = w,
            .tail = (const int32_t *)(const void *)(w + header->private_[PRIVATE_WEIGHTS]),
            .c0 = c0,
            .channels = args->c_end - c0 < BLOCK ? args->c_end - c0 : BLOCK,
            .zero = zero};
        run_block(&job);
    }
}

const struct ifd_kern_dw_q8 ifd_kern_dw_q8_vnni = {packed_bytes, pack, scratch_bytes, run};

/* Q8 depthwise convolution with vpdpbusd: 64 channels at a time, four input rows interleaved
 * byte by byte so that one instruction takes a whole column of up to four taps of 16 channels.
 *
 * 3x3 and 5x5 windows are in separate files. Other windows interleave the columns of a line into
 * the scratch first, ceil(kh / 4) for each. Columns and rows outside the image are the zero
 * point.
 *
 * A weight that has nine bits without its zero point is the sum of two s8 weights, 255 the sum
 * of three, in the blocks that have such weights. 3x3 windows skip vectors of the second and
 * third part that are 0. */
#include "backends/cpuacc/kernels/depthwise/dw_q8_vnni_3x3_impl.h"
#include "backends/cpuacc/kernels/depthwise/dw_q8_vnni_5x5_impl.h"

/* Layout of a block: interleaved weights, four vectors a window column and group of four rows;
 * for 3x3 windows once more for the second line. A wide block has the further parts of its
 * weights behind these. Then the tail, whose last 64 bytes hold the number of parts. */
enum {
    PRIVATE_WEIGHTS = IFD_PACKED_TAIL_OFFSET, /* bytes before a tail */
    TAIL_FETCHED = 2 * 4 * BLOCK              /* of a tail: biases and factors */
};

static int is_3x3(size_t kh, size_t kw)
{
    return kh == 3 && kw == 3;
}

static int is_5x5(size_t kh, size_t kw)
{
    return kh == 5 && kw == 5;
}

/* Copies of the weights: one as they are; for 3x3 windows one shifted down by a row, for the
 * line that shares the interleaved rows of another. */
static size_t lines_packed(size_t kh, size_t kw)
{
    return is_3x3(kh, kw) ? 2 : 1;
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

/* Part of a weight that is the first, second or third s8 weight. */
static int part_of(int w, int part)
{
    const int first = w < -127 ? -127 : w > 127 ? 127 : w;
    const int second = w - first > 127 ? 127 : w - first;
    return part == 0 ? first : part == 1 ? second : w - first - second;
}

/* Number of parts of the weights of a block of channels. */
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

/* Channel of a lane of the block's vectors. Narrow blocks repeat once for each pixel of a
 * vector. */
static size_t lane_channel(size_t channels, size_t c0, size_t vector, size_t lane)
{
    return c0 + (lane / 4 * 16 + vector * 4 + lane % 4) % block_width(channels - c0);
}

/* Four vectors of one window column: rows ky0 .. ky0+3 shifted down by `down` bytes. */
static void pack_column(const struct ifd_dw_weights *weights, int32_t zero, size_t c0, size_t kx,
                        size_t ky0, size_t down, int part, int8_t *dst)
{
    for (size_t j = 0; j < VECTORS; j++) {
        for (size_t l = 0; l < 16; l++) {
            const size_t c = lane_channel(weights->channels, c0, j, l);
            for (size_t r = 0; r < 4; r++) {
                int w = ky0 + r < down ? 0 : weight_at(weights, zero, ky0 + r - down, kx, c);
                dst[j * BLOCK + l * 4 + r] = (int8_t)(part < 0 ? w : part_of(w, part));
            }
        }
    }
}

/* Bits by part, column and vector: which vectors of the second and third part of a 3x3 window's
 * weights are not 0. Few are. */
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

/* Packs all window columns of a block, of one part, or (-1) of weights without parts. */
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
            const size_t c = lane_channel(weights->channels, c0, slot / 16, slot % 16);
            ifd_pack_tail(requant, c, weights->channels, folded_bias(weights, requant, c), BLOCK,
                          slot, tail);
        }
        tail[PARTS] = parts;
        tail[RESTS] = is_3x3(weights->kh, weights->kw) ? more_parts(w, parts) : 0;
    }
    const size_t used = (size_t)(w - (int8_t *)dst);
    __builtin_memset(w, 0, header->bytes - used);
}

/* Input columns that one output line of a block touches. */
static size_t column_count(const struct ifd_dw_args *args, size_t kw)
{
    return (args->out_w - 1) * args->stride_x + (kw - 1) * args->dilation_x + 1;
}

/* Any window: a line's columns are interleaved into the scratch once, then every position uses
 * its own. Two positions at a time share the loads of the weights. */
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
    start_positions(line, count, sum);
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
    finish_positions(line, WAY_ANY, sum, line->out, x, count, count, 1);
}

/* The columns of output line y's input, interleaved into the scratch. */
INLINE void interleave_line(const struct job *job, struct line *line, size_t y)
{
    const struct ifd_dw_args *args = job->args;
    const size_t kh = (size_t)job->header->private_[IFD_PACKED_KH], groups = (kh + 3) / 4;
    const size_t columns = column_count(args, (size_t)job->header->private_[IFD_PACKED_KW]);
    __m512i *scratch = args->scratch;
    for (size_t g = 0; g < groups; g++) {
        UNROLL for (size_t r = 0; r < 4; r++)
        {
            int64_t iy = (int64_t)(y * args->stride_y + (4 * g + r) * args->dilation_y);
            set_row(line, r, 4 * g + r < kh ? iy - (int64_t)args->pad_top : -1);
        }
        for (size_t x = 0; x < columns; x++) {
            struct column column = load_column(line, (int64_t)x - (int64_t)args->pad_left, 1, 4);
            UNROLL for (size_t j = 0; j < VECTORS; j++)
            {
                scratch[(x * groups + g) * VECTORS + j] = column.v[j];
            }
        }
    }
}

static void line_any(const struct job *job, size_t y)
{
    struct line line = start_line(job, y, 1);
    interleave_line(job, &line, y);
    size_t x = 0;
    for (; x + 2 <= line.out_w; x += 2) {
        positions_any(job, &line, x, 2);
    }
    if (x < line.out_w) {
        positions_any(job, &line, x, 1);
    }
}

static size_t scratch_bytes(const struct ifd_dw_args *args, size_t kh, size_t kw)
{
    const size_t any = column_count(args, kw) * ((kh + 3) / 4) * VECTORS * BLOCK;
    return is_5x5(kh, kw) && any < sizeof(struct scratch_5x5) ? sizeof(struct scratch_5x5) : any;
}

static enum way choose_way(const struct ifd_packed *header, int32_t parts)
{
    const struct bounds bounds = load_bounds(header);
    const int finish = header->private_[IFD_PACKED_FINISH];
    if (parts > 1 || finish == IFD_FINISH_EXACT_SIGN) {
        return WAY_ANY;
    }
    const int is_plain = !bounds.shifts && !bounds.clamps;
    return finish == IFD_FINISH_EXACT ? WAY_EXACT : is_plain ? WAY_PLAIN : WAY_FAST;
}

/* Pixels of the block's channels a vector: as many as it holds, one for rare windows. */
static void run_block(struct job *job)
{
    const struct ifd_dw_args *args = job->args;
    const size_t kh = (size_t)job->header->private_[IFD_PACKED_KH];
    const size_t kw = (size_t)job->header->private_[IFD_PACKED_KW];
    const int is_dense = args->dilation_x == 1 && args->dilation_y == 1 &&
                         (args->stride_x == 1 || args->stride_x == 2);
    const int rolls = is_3x3(kh, kw) && is_dense && args->pad_left <= 1;
    const int shares = is_5x5(kh, kw) && is_dense && args->stride_y <= 2 && job->tail[PARTS] == 1;
    if (rolls || shares) {
        job->pixels = BLOCK / block_width(job->channels);
        job->count = (args->out_w + job->pixels - 1) / job->pixels;
        (rolls ? run_3x3 : run_5x5)(job);
        return;
    }
    for (size_t y = args->y_begin; y < args->y_end; y++) {
        line_any(job, y);
    }
}

/* Fetches a block's weights before it starts: in large networks they lie beyond the cache. */
static void fetch_block(const struct ifd_packed *header, const int8_t *weights)
{
    const int32_t bytes = header->private_[PRIVATE_WEIGHTS] + TAIL_FETCHED;
    for (int32_t at = 0; at < bytes; at += BLOCK) {
        _mm_prefetch((const char *)weights + at, _MM_HINT_T1);
    }
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
            .pixels = 1,
            .count = args->out_w,
            .zero = zero};
        fetch_block(header, w + header->unit_bytes);
        job.way = choose_way(header, job.tail[PARTS]);
        run_block(&job);
    }
}

const struct ifd_kern_dw_q8 ifd_kern_dw_q8_vnni = {packed_bytes, pack, scratch_bytes, run};

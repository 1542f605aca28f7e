/* Winograd F(4x4, 3x3) of 8-bit convolutions with vpdpwssd: 36 products of 16 bits for 16
 * outputs instead of 144 of 8 bits, at half the rate. Exact: all numbers are whole, and the bits
 * lost beyond 32 are not needed.
 *
 * Inputs are u8 less 128; B'dB is at most 10 * 10 times 128. Weights become (24G)g(24G)' with
 * the last line of 24G halved, which is [6 0 0] [-4 -4 -4] [-4 4 -4] [1 2 4] [1 -2 4] [0 0 12]:
 * at most 12 * 12 times 128. Both fit 16 bits. A' with its last column doubled then gives 576
 * times the sums of products, modulo 2^32. 576 is 9 * 64: multiplying with the inverse of 9
 * leaves 64 times the sums, which are exact in 26 bits, enough for at least 9 * 226 products of
 * 8 bits. More channels are summed in groups. */
#include "backends/cpuacc/kernels/simd/finish_avx512.h"

enum { EDGE = 6, MATRICES = EDGE * EDGE, SIDE = 4, GROUP_MAX = 226, PART = 32 };

/* Inverse of 9 modulo 2^32. */
#define NINTH 954437177

static const struct ifd_pack_layout layout = {
    .lanes = 16, .quad = 4, .kr = 2, .bytes = 2, .max_nv = 4, .mr = {16, 12, 8, 6}};

/* Channels of a group, always even; the last group may have fewer. */
INLINE size_t group_channels(size_t k)
{
    const size_t groups = (k + GROUP_MAX - 1) / GROUP_MAX;
    return ((k + groups - 1) / groups + 1) / 2 * 2;
}

/* Channels that begin at first, rounded up to pairs. */
INLINE size_t group_depth(size_t k, size_t first)
{
    const size_t most = group_channels(k), left = (k - first + 1) / 2 * 2;
    return left < most ? left : most;
}

INLINE size_t weights_bytes(size_t k, size_t nv)
{
    return MATRICES * ((k + 1) / 2) * nv * 64;
}

static size_t packed_bytes(size_t n, size_t k)
{
    const size_t vectors = (n + 15) / 16;
    return IFD_PACKED_HEADER + weights_bytes(k, vectors) + vectors * IFD_TAIL_ROWS * 64;
}

/* A line of 24G. */
INLINE void weights_line(const __m512i *in, const size_t step, __m512i *out, const size_t out_step)
{
    const __m512i a = in[0], b = in[step], c = in[2 * step];
    const __m512i ends = _mm512_slli_epi16(_mm512_add_epi16(a, c), 2);
    const __m512i middle = _mm512_slli_epi16(b, 2), twice = _mm512_slli_epi16(b, 1);
    const __m512i far = _mm512_add_epi16(a, _mm512_slli_epi16(c, 2));
    const __m512i none = _mm512_setzero_si512();
    out[0] = _mm512_mullo_epi16(a, _mm512_set1_epi16(6));
    out[out_step] = _mm512_sub_epi16(none, _mm512_add_epi16(ends, middle));
    out[2 * out_step] = _mm512_sub_epi16(middle, ends);
    out[3 * out_step] = _mm512_add_epi16(far, twice);
    out[4 * out_step] = _mm512_sub_epi16(far, twice);
    out[5 * out_step] = _mm512_mullo_epi16(c, _mm512_set1_epi16(12));
}

/* Filters of one column, `count` channels of them: matrix t at matrices + 16 * t, in pairs. */
static void transform_filters(const int8_t *w, size_t stride_t, size_t count, int32_t *matrices)
{
    const __mmask32 mask = count >= PART ? ~0u : (1u << count) - 1;
    __m512i taps[9], lines[3 * EDGE], all[MATRICES];
    for (size_t t = 0; t < 9; t++) {
        taps[t] = _mm512_cvtepi8_epi16(_mm256_maskz_loadu_epi8(mask, w + t * stride_t));
    }
    for (size_t x = 0; x < 3; x++) {
        weights_line(taps + x, 3, lines + x, 3);
    }
    for (size_t y = 0; y < EDGE; y++) {
        weights_line(lines + 3 * y, 1, all + EDGE * y, 1);
    }
    for (size_t t = 0; t < MATRICES; t++) {
        _mm512_storeu_si512(matrices + 16 * t, all[t]);
    }
}

/* Column c, lane `slot` of a block of nv vectors at dst. */
static void pack_column(const struct ifd_gemm_weights *weights, size_t c, size_t nv, size_t slot,
                        unsigned char *dst)
{
    const int8_t *w = (const int8_t *)weights->w + c * weights->stride_n;
    int32_t matrices[MATRICES * 16];
    for (size_t g = 0; g < weights->k; g += group_channels(weights->k)) {
        const size_t depth = group_depth(weights->k, g);
        for (size_t k = 0; k < depth; k += PART) {
            const size_t left = weights->k - g - k,
                         pairs = (depth - k) / 2 < 16 ? (depth - k) / 2 : 16;
            const size_t here = left < depth - k ? left : depth - k;
            transform_filters(w + g + k, weights->stride_t, here, matrices);
            for (size_t t = 0; t < MATRICES; t++) {
                unsigned char *to = dst + ((t * depth + k) / 2 * nv * 16 + slot) * 4;
                for (size_t i = 0; i < pairs; i++, to += nv * 64) {
                    __builtin_memcpy(to, &matrices[16 * t + i], 4);
                }
            }
        }
        dst += MATRICES * depth / 2 * nv * 64;
    }
}

/* Correction of the sum of products for inputs less 128. */
static int32_t folded_bias(const struct ifd_gemm_weights *weights,
                           const struct ifd_requant *requant, size_t c)
{
    const int8_t *w = (const int8_t *)weights->w + c * weights->stride_n;
    int32_t sum = 0;
    for (size_t t = 0; t < 9; t++) {
        for (size_t k = 0; k < weights->k; k++) {
            sum += w[t * weights->stride_t + k];
        }
    }
    return (128 - requant->in_zero) * sum + (requant->bias ? requant->bias[c] : 0);
}

static void pack(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst)
{
    struct ifd_packed *header = dst;
    unsigned char *block = (unsigned char *)dst + IFD_PACKED_HEADER;
    const size_t n = weights->n, width = ifd_pack_width(&layout, n);
    __builtin_memset(dst, 0, packed_bytes(n, weights->k));
    header->bytes = packed_bytes(n, weights->k);
    header->n = (uint32_t)n;
    header->k = (uint32_t)weights->k;
    header->taps = 9;
    header->nr = (uint16_t)width;
    header->mr = layout.mr[width / 16 - 1];
    header->blocks = (uint32_t)((n + width - 1) / width);
    header->unit_bytes =
        (uint32_t)(weights_bytes(weights->k, width / 16) + IFD_TAIL_ROWS * 4 * width);
    ifd_pack_header(requant, header);
    for (size_t n0 = 0; n0 < n; n0 += width, block += header->unit_bytes) {
        const size_t nv = ((n - n0 < width ? n - n0 : width) + 15) / 16;
        int32_t *tail = (int32_t *)(void *)(block + weights_bytes(weights->k, nv));
        for (size_t j = 0; j < nv; j++) {
            for (size_t l = 0; l < 16; l++) {
                const size_t c = n0 + ifd_pack_column(&layout, nv, j, l), slot = 16 * j + l;
                if (c < n) {
                    pack_column(weights, c, nv, slot, block);
                }
                ifd_pack_tail(requant, c, n, c < n ? folded_bias(weights, requant, c) : 0, 16 * nv,
                              slot, tail);
            }
        }
    }
}

/* Matrices of inputs, [36][patch][channel] of 16 bits, and behind them those of sums,
 * [group][36][patch][column] of 32 bits. They are an odd number of cache lines apart; otherwise
 * all would use the same sets. */
struct scratch {
    size_t patches, row, matrix; /* bytes of an input's row, from matrix to matrix */
    unsigned char *inputs, *sums;
};

INLINE size_t odd_lines(size_t bytes)
{
    return bytes / 64 % 2 ? bytes : bytes + 64;
}

INLINE size_t sums_matrix(size_t patches, size_t nv)
{
    return odd_lines(patches * nv * 64);
}

INLINE struct scratch lay_out(size_t k, size_t patch_count)
{
    struct scratch s = {.patches = (patch_count + 1) / 2 * 2};
    s.row = (k + PART - 1) / PART * PART * 2;
    s.matrix = odd_lines(s.patches * s.row);
    return s;
}

static size_t scratch_bytes(size_t n, size_t k, size_t patch_count)
{
    const struct scratch s = lay_out(k, patch_count);
    const size_t groups = (k + GROUP_MAX - 1) / GROUP_MAX, nv = ifd_pack_width(&layout, n) / 16;
    return MATRICES * (s.matrix + groups * sums_matrix(s.patches, nv));
}

/* ---- inputs ---- */

/* A line of B'. */
INLINE void input_line(const __m512i *in, const size_t step, __m512i *out, const size_t out_step)
{
    const __m512i a = in[0], b = in[step], c = in[2 * step], d = in[3 * step], e = in[4 * step];
    const __m512i f = in[5 * step];
    const __m512i even = _mm512_sub_epi16(e, _mm512_slli_epi16(c, 2));
    const __m512i odd = _mm512_sub_epi16(d, _mm512_slli_epi16(b, 2));
    const __m512i near = _mm512_sub_epi16(e, c);
    const __m512i far = _mm512_slli_epi16(_mm512_sub_epi16(d, b), 1);
    out[0] = _mm512_add_epi16(_mm512_slli_epi16(_mm512_sub_epi16(a, c), 2), near);
    out[out_step] = _mm512_add_epi16(even, odd);
    out[2 * out_step] = _mm512_sub_epi16(even, odd);
    out[3 * out_step] = _mm512_add_epi16(near, far);
    out[4 * out_step] = _mm512_sub_epi16(near, far);
    out[5 * out_step] = _mm512_sub_epi16(_mm512_sub_epi16(f, d), _mm512_slli_epi16(far, 1));
}

/* Transforms the patch whose first pixel is (y0, x0); its channels go to matrices from `to` on.
 * Only the second line of B' adds up to anything but 0, so subtracting 128 from the inputs means
 * subtracting 36 * 128 there. */
INLINE void input_patch(const struct ifd_wino_q8_args *args, const struct scratch *s, int64_t y0,
                        int64_t x0, unsigned char *to)
{
    const struct ifd_packed *header = args->packed;
    const int64_t height = (int64_t)args->in_h, width = (int64_t)args->in_w;
    const int inside = y0 >= 0 && x0 >= 0 && y0 + EDGE <= height && x0 + EDGE <= width;
    const __m512i zero = _mm512_set1_epi16((short)header->private_[IFD_PACKED_IN_ZERO]);
    const __m512i middle = _mm512_set1_epi16(36 * 128);
    for (size_t c = 0; c < header->k; c += PART, to += 2 * PART) {
        __m512i pixels[EDGE], lines[MATRICES], out[EDGE];
        UNROLL for (size_t y = 0; y < EDGE; y++)
        {
            const int64_t iy = y0 + (int64_t)y;
            UNROLL for (size_t x = 0; x < EDGE; x++)
            {
                const int64_t ix = x0 + (int64_t)x;
                pixels[x] = zero;
                if (inside || (iy >= 0 && iy < height && ix >= 0 && ix < width)) {
                    const uint8_t *at = args->in + iy * (int64_t)args->in_line_stride +
                                        ix * (int64_t)args->in_pixel_stride + (int64_t)c;
                    pixels[x] =
                        _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)at));
                }
            }
            input_line(pixels, 1, lines + EDGE * y, 1);
        }
        UNROLL for (size_t x = 0; x < EDGE; x++)
        {
            input_line(lines + x, EDGE, out, 1);
            out[1] = x == 1 ? _mm512_sub_epi16(out[1], middle) : out[1];
            UNROLL for (size_t y = 0; y < EDGE; y++)
            {
                _mm512_storeu_si512(to + (EDGE * y + x) * s->matrix, out[y]);
            }
        }
    }
}

/* ---- products ---- */

/* Assembly: with the intrinsic gcc 12 spills the sums. */
INLINE __m512i dot2(__m512i sum, __m512i a, __m512i w)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(w));
    return sum;
}

INLINE __m512i load_pair(const unsigned char *p)
{
    int32_t x;
    __builtin_memcpy(&x, p, sizeof(x));
    return _mm512_set1_epi32(x);
}

/* mr patches of one matrix; each turn fetches next_step bytes of the next matrix. */
INLINE const char *multiply(const unsigned char *in, size_t row, size_t depth,
                            const unsigned char *w, const char *next, size_t next_step,
                            unsigned char *out, const size_t mr, const size_t nv)
{
    __m512i sum[16][4], column[4];
    const unsigned char *a[4];
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        a[i / 4] = i % 4 ? a[i / 4] : in + i * row;
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[i][j] = _mm512_setzero_si512();
        }
    }
    for (size_t k = 0; k < depth; k += 2, w += 64 * nv, next += next_step) {
        _mm_prefetch(next, _MM_HINT_T1);
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            column[j] = _mm512_load_si512(w + 64 * j);
        }
        UNROLL for (size_t i = 0; i < mr; i++)
        {
            const __m512i x = load_pair(a[i / 4] + i % 4 * row);
            UNROLL for (size_t j = 0; j < nv; j++)
            {
                sum[i][j] = dot2(sum[i][j], x, column[j]);
            }
        }
        UNROLL for (size_t i = 0; i < mr; i += 4)
        {
            a[i / 4] += 4;
        }
    }
    UNROLL for (size_t i = 0; i < mr; i++)
    {
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            _mm512_store_si512(out + (i * nv + j) * 64, sum[i][j]);
        }
    }
    return next;
}

/* One matrix of a group, all patches: the tallest tiles first, then four and two rows at a time. */
INLINE void multiply_matrix(const struct scratch *s, const unsigned char *in, size_t depth,
                            const unsigned char *w, unsigned char *out, const size_t mr,
                            const size_t nv)
{
    const size_t row = s->row, step = 64 * nv / ((s->patches + mr - 1) / mr);
    const char *next = (const char *)w + depth / 2 * nv * 64;
    size_t i = 0;
    for (; i + mr <= s->patches; i += mr) {
        next = multiply(in + i * row, row, depth, w, next, step, out + i * nv * 64, mr, nv);
    }
    for (; i + 4 <= s->patches; i += 4) {
        next = multiply(in + i * row, row, depth, w, next, step, out + i * nv * 64, 4, nv);
    }
    for (; i < s->patches; i += 2) {
        next = multiply(in + i * row, row, depth, w, next, step, out + i * nv * 64, 2, nv);
    }
}

/* ---- sums ---- */

/* A line of A'. */
INLINE void output_line(const __m512i *in, __m512i *out, const size_t out_step)
{
    const __m512i near_sum = _mm512_add_epi32(in[1], in[2]), near = _mm512_sub_epi32(in[1], in[2]);
    const __m512i far_sum = _mm512_add_epi32(in[3], in[4]), far = _mm512_sub_epi32(in[3], in[4]);
    const __m512i last = _mm512_add_epi32(_mm512_slli_epi32(far, 2), in[5]);
    out[0] = _mm512_add_epi32(_mm512_add_epi32(in[0], near_sum), far_sum);
    out[out_step] = _mm512_add_epi32(near, _mm512_slli_epi32(far, 1));
    out[2 * out_step] = _mm512_add_epi32(near_sum, _mm512_slli_epi32(far_sum, 2));
    out[3 * out_step] = _mm512_add_epi32(near, _mm512_slli_epi32(last, 1));
}

/* Adds the sums of products of one group, 16 columns of them, to those of a patch's 16 pixels,
 * which are 4 vectors apart. */
INLINE void add_sums(const unsigned char *from, size_t matrix, __m512i *sum)
{
    const __m512i ninth = _mm512_set1_epi32(NINTH);
    __m512i lines[SIDE * EDGE];
    UNROLL for (size_t y = 0; y < EDGE; y++)
    {
        __m512i in[EDGE];
        UNROLL for (size_t x = 0; x < EDGE; x++)
        {
            in[x] = _mm512_load_si512(from + (EDGE * y + x) * matrix);
        }
        output_line(in, lines + y, EDGE);
    }
    UNROLL for (size_t x = 0; x < SIDE; x++)
    {
        __m512i out[SIDE];
        output_line(lines + EDGE * x, out, 1);
        UNROLL for (size_t y = 0; y < SIDE; y++)
        {
            __m512i *to = &sum[(SIDE * y + x) * 4];
            const __m512i part = _mm512_srai_epi32(_mm512_mullo_epi32(out[y], ninth), 6);
            *to = _mm512_add_epi32(*to, part);
        }
    }
}

/* One line of a patch: `valid` pixels of the sums; those behind them repeat the last one. */
INLINE void store_line(const int way, const int32_t *tail, const struct bounds *bounds,
                       size_t columns, uint8_t *out, size_t pixel_stride, size_t valid,
                       const size_t nv, __m512i sum[][4])
{
    uint8_t *to[SIDE];
    UNROLL for (size_t x = 0; x < SIDE; x++)
    {
        const size_t from = x < valid ? x : valid - 1;
        to[x] = out + from * pixel_stride;
        UNROLL for (size_t j = 0; j < nv; j++)
        {
            sum[x][j] = sum[from][j];
        }
    }
    UNROLL for (size_t j = 0; j < nv; j++)
    {
        scale_column(way, tail + 16 * j, 16 * nv, &sum[0][j], SIDE, 4);
    }
    store_rows(bounds, columns, to, SIDE, nv, sum);
}

/* ---- blocks ---- */

/* One block of columns: its weights, how many columns there are, and patches that begin at (ty,
 * tx). */
struct block {
    const struct ifd_wino_q8_args *args;
    const struct scratch *scratch;
    const unsigned char *weights;
    uint8_t *out;
    size_t columns, patches_x;
};

INLINE void multiply_block(const struct block *block, const size_t mr, const size_t nv)
{
    const struct scratch *s = block->scratch;
    const size_t k = ((const struct ifd_packed *)block->args->packed)->k;
    const unsigned char *w = block->weights;
    unsigned char *sums = s->sums;
    for (size_t g = 0; g < k; g += group_channels(k)) {
        const size_t depth = group_depth(k, g);
        for (size_t t = 0; t < MATRICES; t++) {
            multiply_matrix(s, s->inputs + t * s->matrix + 2 * g, depth, w, sums, mr, nv);
            w += depth / 2 * nv * 64;
            sums += sums_matrix(s->patches, nv);
        }
    }
}

INLINE void store_block(const struct block *block, const int way, const size_t nv)
{
    const struct ifd_wino_q8_args *args = block->args;
    const struct ifd_packed *header = args->packed;
    const struct scratch *s = block->scratch;
    const struct bounds bounds = load_bounds(header);
    const size_t matrix = sums_matrix(s->patches, nv);
    const int32_t *tail =
        (const int32_t *)(const void *)(block->weights + weights_bytes(header->k, nv));
    for (size_t i = 0; i < args->patch_count; i++) {
        const size_t y0 = (args->patch_begin + i) / block->patches_x * SIDE;
        const size_t x0 = (args->patch_begin + i) % block->patches_x * SIDE;
        const size_t lines = args->out_h - y0 < SIDE ? args->out_h - y0 : SIDE;
        const size_t valid = args->out_w - x0 < SIDE ? args->out_w - x0 : SIDE;
        uint8_t *out = block->out + y0 * args->out_line_stride + x0 * args->out_pixel_stride;
        __m512i sum[SIDE * SIDE][4];
        for (size_t j = 0; j < nv; j++) {
            const unsigned char *from = s->sums + (i * nv + j) * 64;
            const __m512i bias = _mm512_load_si512(tail + 16 * j);
            UNROLL for (size_t p = 0; p < SIDE * SIDE; p++)
            {
                sum[p][j] = bias;
            }
            for (size_t g = 0; g < header->k; g += group_channels(header->k)) {
                add_sums(from, matrix, &sum[0][j]);
                from += MATRICES * matrix;
            }
        }
        for (size_t y = 0; y < lines; y++) {
            store_line(way, tail, &bounds, block->columns, out + y * args->out_line_stride,
                       args->out_pixel_stride, valid, nv, &sum[SIDE * y]);
        }
    }
}

INLINE void run_block(const struct block *block, const size_t mr, const size_t nv)
{
    const struct ifd_packed *header = block->args->packed;
    const int way = header->private_[IFD_PACKED_FINISH];
    multiply_block(block, mr, nv);
    if (way == IFD_FINISH_FAST) {
        store_block(block, IFD_FINISH_FAST, nv);
    } else if (way == IFD_FINISH_EXACT) {
        store_block(block, IFD_FINISH_EXACT, nv);
    } else {
        store_block(block, IFD_FINISH_EXACT_SIGN, nv);
    }
}

#define BLOCK(mr, nv)                                                                              \
    static void block_##nv(const struct block *block)                                              \
    {                                                                                              \
        run_block(block, mr, nv);                                                                  \
    }
BLOCK(16, 1)
BLOCK(12, 2)
BLOCK(8, 3)
BLOCK(6, 4)
#undef BLOCK

static void (*const blocks[4])(const struct block *) = {block_1, block_2, block_3, block_4};

static void run(const struct ifd_wino_q8_args *args)
{
    const struct ifd_packed *header = args->packed;
    struct scratch s = lay_out(header->k, args->patch_count);
    struct block block = {
        .args = args, .scratch = &s, .patches_x = (args->out_w + SIDE - 1) / SIDE};
    s.inputs = args->scratch;
    s.sums = s.inputs + MATRICES * s.matrix;
    for (size_t i = 0; i < args->patch_count; i++) {
        const size_t at = args->patch_begin + i;
        input_patch(args, &s, (int64_t)(at / block.patches_x * SIDE) - (int64_t)args->pad_top,
                    (int64_t)(at % block.patches_x * SIDE) - (int64_t)args->pad_left,
                    s.inputs + i * s.row);
    }
    block.weights = (const unsigned char *)args->packed + IFD_PACKED_HEADER +
                    args->n_begin / header->nr * header->unit_bytes;
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += header->nr) {
        const size_t left = header->n - n0;
        block.columns = left < header->nr ? left : header->nr;
        block.out = args->out + n0;
        blocks[(block.columns + 15) / 16 - 1](&block);
        block.weights += header->unit_bytes;
    }
}

const struct ifd_kern_wino_q8 ifd_kern_wino_q8_vnni = {packed_bytes, pack, scratch_bytes, run};

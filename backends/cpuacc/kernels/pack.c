/* Packing of weights and of what follows the sums: see pack.h for the layouts. Runs at load
 * time. */
#include "backends/cpuacc/kernels/pack.h"

#include "backends/cpuacc/kernels/simd/quad.h"
#include "engine/tensor/half.h"

static size_t round_up(size_t x, size_t to)
{
    return (x + to - 1) / to * to;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void zero_bytes(unsigned char *dst, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        dst[i] = 0;
    }
}

/* Full blocks as wide as possible, unless the next narrower width leaves a smaller remainder:
 * one left-over vector is the least efficient tile. */
size_t ifd_pack_width(const struct ifd_pack_layout *layout, size_t n)
{
    size_t vectors = (n + layout->lanes - 1) / layout->lanes;
    size_t wide = layout->max_nv;
    if (vectors <= wide || wide < 3) {
        return min_size(vectors, wide) * layout->lanes;
    }
    size_t narrow = wide - 1;
    int prefer_narrow = vectors % wide != 0 &&
                        (vectors % narrow == 0 || (vectors % wide == 1 && vectors % narrow != 1));
    return (prefer_narrow ? narrow : wide) * layout->lanes;
}

size_t ifd_pack_column(const struct ifd_pack_layout *layout, size_t nv, size_t j, size_t l)
{
    size_t quad = layout->quad;
    if (quad == layout->lanes) {
        return j * quad + l;
    }
    return l / quad * quad * nv + j * quad + l % quad;
}

/* Long sums take full steps: equal ones would pad by more than may be over-read. */
size_t ifd_pack_step(const struct ifd_pack_layout *layout, size_t k)
{
    if (layout->k_tile == 0) {
        return layout->kr;
    }
    size_t steps = (k + layout->k_tile - 1) / layout->k_tile;
    return steps > 15 ? layout->k_tile : round_up((k + steps - 1) / steps, layout->kr);
}

size_t ifd_pack_depth(const struct ifd_pack_layout *layout, size_t k)
{
    return round_up(k, ifd_pack_step(layout, k));
}

static size_t block_bytes(const struct ifd_pack_layout *layout, size_t width, size_t k, size_t taps,
                          size_t tail_rows)
{
    return width * (taps * ifd_pack_depth(layout, k) * layout->bytes + tail_rows * 4);
}

size_t ifd_pack_gemm_bytes(const struct ifd_pack_layout *layout, size_t n, size_t k, size_t taps,
                           size_t tail_rows)
{
    size_t columns = round_up(n, layout->lanes);
    return round_up(IFD_PACKED_HEADER + block_bytes(layout, columns, k, taps, tail_rows),
                    IFD_KERN_ALIGN);
}

/* Numbers below the smallest normal one become 0. */
static double power_of_two(int exponent)
{
    if (exponent < -1022) {
        return 0.0;
    }
    union {
        uint64_t i;
        double f;
    } x = {.i = (uint64_t)(1023 + exponent) << 52};
    return x.f;
}

void ifd_pack_header(const struct ifd_requant *requant, struct ifd_packed *header)
{
    enum ifd_finish finish = IFD_FINISH_FAST;
    if (requant->round == IFD_ROUND_NONE) {
        finish = IFD_FINISH_NONE;
    } else if (requant->round == IFD_ROUND_EVEN) {
        finish = IFD_Q8_EXACT ? IFD_FINISH_EVEN : IFD_FINISH_FAST;
    } else if (requant->round == IFD_ROUND_SINGLE) {
        finish = IFD_FINISH_EXACT;
    } else if (requant->round == IFD_ROUND_DOUBLE) {
        /* below the clamp the two roundings of negative results need not be told apart */
        finish = requant->out_min >= requant->out_zero ? IFD_FINISH_EXACT : IFD_FINISH_EXACT_SIGN;
    }
    header->private_[IFD_PACKED_FINISH] = (int32_t)finish;
    header->private_[IFD_PACKED_OUT_ZERO] = requant->out_zero;
    header->private_[IFD_PACKED_OUT_MIN] = requant->out_min;
    header->private_[IFD_PACKED_OUT_MAX] = requant->out_max;
    header->private_[IFD_PACKED_IN_ZERO] = requant->in_zero;
}

/* With y = floor(sum * multiplier / 2^30), e = -shift and h = 2^e:
 *   single rounding is (y + h) >> (e + 1);
 *   double rounding is (((y + 1) >> 1) + h/2 - (negative ? 1 : 0)) >> e
 *                    = (y + h + (negative ? -1 : 1)) >> (e + 1) for e >= 1, (y + 1) >> 1 for e = 0.
 * For y = -1 both signs give the same. A left shift goes before the multiply, together with the 4
 * that brings y to the product's upper half. */
void ifd_pack_tail(const struct ifd_requant *requant, size_t c, size_t n, int32_t folded_bias,
                   size_t width, size_t slot, int32_t *tail)
{
    tail[IFD_TAIL_BIAS * width + slot] = folded_bias;
    if (requant->round == IFD_ROUND_NONE) {
        return;
    }
    int32_t multiplier = c < n ? requant->multiplier[c] : 0;
    int shift = c < n ? requant->shift[c] : 0;
    union {
        float f;
        int32_t i;
    } scale = {.f = (float)((double)multiplier * power_of_two(shift - 31))};
    int exponent = shift < 0 ? -shift : 0;
    if (exponent > 29) {
        /* |sum| < 2^29, so everything rounds to zero */
        exponent = 1;
        multiplier = 0;
    }
    int32_t half = (int32_t)1 << exponent;
    int32_t away = requant->round == IFD_ROUND_DOUBLE && exponent > 0 ? 1 : 0;
    tail[IFD_TAIL_SCALE * width + slot] = scale.i;
    tail[IFD_TAIL_MULTIPLIER * width + slot] = multiplier;
    tail[IFD_TAIL_LEFT * width + slot] = 2 + (shift > 0 ? shift : 0);
    tail[IFD_TAIL_RIGHT * width + slot] = exponent + 1;
    tail[IFD_TAIL_PLUS * width + slot] = half + away;
    tail[IFD_TAIL_PLUS_NEG * width + slot] = half - away;
}

/* Eight at a time: bytes as unsigned numbers, summed up in four lanes of 16 bits. */
static int64_t sum_bytes(const int8_t *w, size_t count)
{
    const uint64_t low = 0x00ff00ff00ff00ffu, flip = 0x8080808080808080u;
    int64_t sum = 0;
    size_t k = 0;
    while (count - k >= 8) {
        const size_t end = k + min_size((count - k) / 8, 128) * 8;
        uint64_t lanes = 0;
        sum -= 128 * (int64_t)(end - k);
        for (; k < end; k += 8) {
            uint64_t word = 0;
            __builtin_memcpy(&word, w + k, 8);
            word ^= flip;
            lanes += (word & low) + (word >> 8 & low);
        }
        sum += (int64_t)((lanes & 0xffff) + (lanes >> 16 & 0xffff) + (lanes >> 32 & 0xffff) +
                         (lanes >> 48));
    }
    for (; k < count; k++) {
        sum += w[k];
    }
    return sum;
}

/* sum (a - za)(w - zw) = sum a*w - zw * sum a + (count*za*zw - za * sum w); the bracket is
 * folded. */
static int32_t folded_bias(const struct ifd_gemm_weights *weights,
                           const struct ifd_requant *requant, size_t c)
{
    if (c >= weights->n) {
        return 0;
    }
    const int8_t *w = (const int8_t *)weights->w + c * weights->stride_n;
    int64_t sum = 0;
    for (size_t t = 0; t < weights->taps; t++) {
        const int8_t *tap = w + t * weights->stride_t;
        if (weights->stride_k == 1) {
            sum += sum_bytes(tap, weights->k);
            continue;
        }
        for (size_t k = 0; k < weights->k; k++) {
            sum += tap[k * weights->stride_k];
        }
    }
    int64_t count = (int64_t)(weights->taps * weights->k);
    int64_t fold = requant->in_zero * (count * requant->weight_zero - sum);
    return (int32_t)(fold + (requant->bias ? requant->bias[c] : 0));
}

static void start_header(const struct ifd_pack_layout *layout,
                         const struct ifd_gemm_weights *weights, size_t tail_rows,
                         struct ifd_packed *header)
{
    size_t width = ifd_pack_width(layout, weights->n);
    size_t full = block_bytes(layout, width, weights->k, weights->taps, tail_rows);
    header->bytes = ifd_pack_gemm_bytes(layout, weights->n, weights->k, weights->taps, tail_rows);
    header->n = (uint32_t)weights->n;
    header->k = (uint32_t)weights->k;
    header->taps = (uint32_t)weights->taps;
    header->nr = (uint16_t)width;
    header->mr = layout->mr[width / layout->lanes - 1];
    header->blocks = (uint32_t)((weights->n + width - 1) / width);
    header->unit_bytes = (uint32_t)full;
    header->private_[IFD_PACKED_TAIL_OFFSET] = (int32_t)(full - tail_rows * 4 * width);
    header->private_[IFD_PACKED_DEPTH] = (int32_t)ifd_pack_depth(layout, weights->k);
}

/* Finite floats stay finite: those beyond the largest half-precision number become that number. */
static uint16_t to_half(float value)
{
    const uint16_t half = ifd_f16_from_f32(value);
    const int is_too_large = (half & 0x7fff) == 0x7c00 && value - value == 0.0f;
    return (uint16_t)(half - is_too_large);
}

/* Inputs begin … end-1 of one channel of one tap: runs of kr go to dst, then stride bytes on. begin
 * is a multiple of kr. */
static void pack_run(const struct ifd_pack_layout *layout, const struct ifd_gemm_weights *weights,
                     size_t offset, size_t begin, size_t end, unsigned char *dst, size_t stride)
{
    const size_t kr = layout->kr;
    const size_t whole = weights->stride_k == 1 ? end / kr * kr : begin;
    const int8_t *bytes = (const int8_t *)weights->w + offset;
    const float *floats = (const float *)weights->w + offset;
    size_t k = begin;
    if (layout->bytes == 1 && kr == 4) {
        for (; k < whole; k += 4, dst += stride) {
            __builtin_memcpy(dst, bytes + k, 4);
        }
    } else if (layout->bytes == 4 && kr == 1) {
        for (; k < whole; k++, dst += stride) {
            __builtin_memcpy(dst, floats + k, 4);
        }
    }
    for (; k < end; k += kr, dst += stride) {
        const size_t count = min_size(kr, end - k);
        for (size_t i = 0; i < count; i++) {
            const size_t at = (k + i) * weights->stride_k;
            if (layout->format == IFD_PACK_BF16) {
                ((uint16_t *)(void *)dst)[i] = ifd_bf16_from_f32(floats[at]);
            } else if (layout->format == IFD_PACK_F16) {
                ((uint16_t *)(void *)dst)[i] = to_half(floats[at]);
            } else if (layout->bytes == 1) {
                ((int8_t *)dst)[i] = bytes[at];
            } else if (layout->bytes == 2) {
                ((int16_t *)(void *)dst)[i] = bytes[at];
            } else {
                ((float *)(void *)dst)[i] = floats[at];
            }
        }
    }
}

/* Inputs begin … end-1 of four neighbouring channels whose runs are stored as they are, in 32 bits
 * each. */
static void pack_four(const struct ifd_pack_layout *layout, const struct ifd_gemm_weights *weights,
                      size_t offset, size_t begin, size_t end, unsigned char *dst, size_t stride)
{
    const unsigned char *from = (const unsigned char *)weights->w + offset * layout->bytes;
    const size_t four = 4 * (size_t)layout->kr;
    size_t k = begin;
    for (; k + four <= end; k += four, dst += 4 * stride) {
        transpose_4x4(from + k * layout->bytes, weights->stride_n * layout->bytes, dst, stride);
    }
    for (size_t i = 0; k < end && i < 4; i++) {
        pack_run(layout, weights, offset + i * weights->stride_n, k, end, dst + 4 * i, stride);
    }
}

/* The same for channels c … c+count-1, which lie side by side from dst on. */
static void pack_channels(const struct ifd_pack_layout *layout,
                          const struct ifd_gemm_weights *weights, size_t tap, size_t c,
                          size_t count, size_t begin, size_t end, unsigned char *dst, size_t stride)
{
    const size_t step = (size_t)layout->kr * layout->bytes;
    const int is_plain = layout->bytes != 2 && step == 4 && weights->stride_k == 1;
    size_t i = 0;
    for (; is_plain && i + 4 <= count; i += 4) {
        pack_four(layout, weights, (c + i) * weights->stride_n + tap * weights->stride_t, begin,
                  end, dst + i * step, stride);
    }
    for (; i < count; i++) {
        pack_run(layout, weights, (c + i) * weights->stride_n + tap * weights->stride_t, begin, end,
                 dst + i * step, stride);
    }
}

/* Zeros where there are no weights: behind the last column and the last input, and in the tail.
 * Returns the tail. */
static unsigned char *clear_block(const struct ifd_pack_layout *layout,
                                  const struct ifd_gemm_weights *weights, size_t n0, size_t width,
                                  size_t tail_rows, unsigned char *block)
{
    const size_t bytes = block_bytes(layout, width, weights->k, weights->taps, 0);
    const int has_gaps =
        width > weights->n - n0 || ifd_pack_depth(layout, weights->k) != weights->k;
    zero_bytes(has_gaps ? block : block + bytes,
               (has_gaps ? bytes : 0) + width * tail_rows * sizeof(float));
    return block + bytes;
}

/* Bytes written between one channel and the next: they should stay in the first-level cache. */
#define PACK_BYTES ((size_t)16 * 1024)

/* Writes the weights of the block of columns n0 .. n0 + lanes*nv - 1; gaps are zero before. */
static void pack_block(const struct ifd_pack_layout *layout, const struct ifd_gemm_weights *weights,
                       size_t n0, size_t nv, unsigned char *dst)
{
    const size_t step = (size_t)layout->kr * layout->bytes, stride = nv * layout->lanes * step;
    const size_t groups = PACK_BYTES / stride > 0 ? PACK_BYTES / stride : 1;
    for (size_t t = 0; t < weights->taps; t++) {
        for (size_t k = 0, end = 0; k < weights->k; k = end) {
            end = min_size(k + groups * layout->kr, weights->k);
            for (size_t i = 0; i < nv * layout->lanes; i += layout->quad) {
                const size_t c =
                    n0 + ifd_pack_column(layout, nv, i / layout->lanes, i % layout->lanes);
                if (c < weights->n) {
                    pack_channels(layout, weights, t, c, min_size(layout->quad, weights->n - c), k,
                                  end, dst + k / layout->kr * stride + i * step, stride);
                }
            }
        }
        dst += ifd_pack_depth(layout, weights->k) / layout->kr * stride;
    }
}

void ifd_pack_gemm_q8(const struct ifd_pack_layout *layout, const struct ifd_gemm_weights *weights,
                      const struct ifd_requant *requant, void *dst)
{
    struct ifd_packed *header = dst;
    struct ifd_pack_layout natural = *layout;
    if (requant->round == IFD_ROUND_NONE) {
        natural.quad = natural.lanes;
        layout = &natural;
    }
    zero_bytes(dst, IFD_PACKED_HEADER);
    start_header(layout, weights, IFD_TAIL_ROWS, header);
    ifd_pack_header(requant, header);
    unsigned char *block = (unsigned char *)dst + IFD_PACKED_HEADER;
    for (size_t n0 = 0; n0 < weights->n; n0 += header->nr) {
        size_t width = min_size(header->nr, round_up(weights->n - n0, layout->lanes));
        size_t nv = width / layout->lanes;
        unsigned char *tail = clear_block(layout, weights, n0, width, IFD_TAIL_ROWS, block);
        pack_block(layout, weights, n0, nv, block);
        block = tail;
        for (size_t j = 0; j < nv; j++) {
            for (size_t l = 0; l < layout->lanes; l++) {
                size_t c = n0 + ifd_pack_column(layout, nv, j, l);
                ifd_pack_tail(requant, c, weights->n, folded_bias(weights, requant, c), width,
                              j * layout->lanes + l, (int32_t *)(void *)block);
            }
        }
        block += width * IFD_TAIL_ROWS * 4;
    }
    zero_bytes(block, (size_t)header->bytes - (size_t)(block - (unsigned char *)dst));
}

/* A small odd number of blocks gives two threads parts of very different size: one more,
 * narrower block pays there. */
#define EVEN_VECTORS_MIN 10
#define EVEN_BLOCKS_MAX  8

static void even_blocks(const struct ifd_pack_layout *layout, struct ifd_packed *header)
{
    const size_t vectors = (header->n + layout->lanes - 1u) / layout->lanes;
    const size_t blocks = (vectors + layout->max_nv - 1) / layout->max_nv;
    const int evens = vectors >= EVEN_VECTORS_MIN && blocks < EVEN_BLOCKS_MAX;
    header->nr = layout->lanes;
    header->blocks = (uint32_t)(evens ? round_up(blocks, 2) : blocks);
    header->mr = layout->mr[vectors / header->blocks - 1];
    header->unit_bytes = (uint32_t)block_bytes(layout, layout->lanes, header->k, header->taps, 1);
}

/* Writes the header, the bias, and zeros where there are no weights, also behind the last block. */
static void start_gemm_f32(const struct ifd_pack_layout *layout,
                           const struct ifd_gemm_weights *weights, const float *bias,
                           unsigned char *dst)
{
    struct ifd_packed *header = (struct ifd_packed *)(void *)dst;
    zero_bytes(dst, IFD_PACKED_HEADER);
    start_header(layout, weights, 1, header);
    if (layout->even) {
        even_blocks(layout, header);
    }
    unsigned char *block = dst + IFD_PACKED_HEADER;
    for (size_t b = 0; b < header->blocks; b++) {
        const size_t n0 = ifd_packed_column(header, b), n = ifd_packed_column(header, b + 1) - n0;
        const size_t width = round_up(n, layout->lanes);
        block = clear_block(layout, weights, n0, width, 1, block);
        for (size_t c = 0; bias && c < width && n0 + c < weights->n; c++) {
            ((float *)(void *)block)[c] = bias[n0 + c];
        }
        block += width * 4;
    }
    zero_bytes(block, (size_t)header->bytes - (size_t)(block - dst));
}

/* Where a block's weights begin. */
static unsigned char *block_at(const struct ifd_packed *header, size_t n0, unsigned char *dst)
{
    return dst + IFD_PACKED_HEADER + n0 / header->nr * header->unit_bytes;
}

void ifd_pack_gemm_f32(const struct ifd_pack_layout *layout, const struct ifd_gemm_weights *weights,
                       const float *bias, void *dst)
{
    const struct ifd_packed *header = dst;
    start_gemm_f32(layout, weights, bias, dst);
    for (size_t b = 0; weights->w && b < header->blocks; b++) {
        const size_t n0 = ifd_packed_column(header, b);
        const size_t width = round_up(ifd_packed_column(header, b + 1) - n0, layout->lanes);
        pack_block(layout, weights, n0, width / layout->lanes, block_at(header, n0, dst));
    }
}

void ifd_pack_gemm_f32_part(const struct ifd_pack_layout *layout,
                            const struct ifd_gemm_weights *part, size_t n0, size_t k0, void *dst)
{
    const struct ifd_packed *header = dst;
    size_t b = 0, count = 0;
    for (size_t c = 0; c < part->n; c += count) {
        while (ifd_packed_column(header, b + 1) <= n0 + c) {
            b++;
        }
        const size_t first = ifd_packed_column(header, b), next = ifd_packed_column(header, b + 1);
        const size_t step = (size_t)layout->kr * layout->bytes;
        const size_t stride = round_up(next - first, layout->lanes) * step;
        count = min_size(part->n - c, next - n0 - c);
        pack_channels(layout, part, 0, c, count, 0, part->k,
                      block_at(header, first, dst) + k0 / layout->kr * stride +
                          (n0 + c - first) * step,
                      stride);
    }
}

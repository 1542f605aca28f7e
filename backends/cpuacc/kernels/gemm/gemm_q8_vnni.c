/* Q8 gemm for AVX-512 with VNNI. */
#include "backends/cpuacc/kernels/gemm/gemm_q8_vnni_impl.h"

static const struct ifd_pack_layout layout = {
    .lanes = 16, .quad = 4, .kr = 4, .bytes = 1, .max_nv = 4, .mr = {16, 12, 8, 6}};

/* Of all taps. */
enum { HALVES_DEPTH_MIN = 64 };

/* The extra products of each block lie behind the blocks. */
static size_t packed_bytes(size_t n, size_t k, size_t taps)
{
    const size_t width = ifd_pack_width(&layout, n), blocks = (n + width - 1) / width;
    return ifd_pack_gemm_bytes(&layout, n, k, taps, IFD_TAIL_ROWS) + blocks * sizeof(struct extras);
}

/* One vector of packed weights less their zero point, saturated to eight bits. ret_over: those
 * that do not fit. */
INLINE __m512i without_zero(__m512i w, int32_t zero, __mmask64 used, __mmask64 *ret_over)
{
    const __m512i z = _mm512_set1_epi8((char)zero), fits = _mm512_subs_epi8(w, z);
    *ret_over = _mm512_mask_cmpneq_epi8_mask(used, fits, _mm512_sub_epi8(w, z));
    return _mm512_maskz_mov_epi8(used, fits);
}

/* Puts what `fits` leaves of the weights that are over into an extra product. False if a rest
 * needs more than eight bits. */
static int add_rest(__m512i w, __m512i fits, int32_t zero, __mmask64 over, int8_t *extra)
{
    int8_t all[64], part[64];
    _mm512_storeu_si512(all, w);
    _mm512_storeu_si512(part, fits);
    for (size_t i = 0; i < 64; i++) {
        const int rest = over >> i & 1 ? all[i] - zero - part[i] : 0;
        if (rest > INT8_MAX) {
            return 0;
        }
        extra[i] = (int8_t)rest;
    }
    return 1;
}

/* Which bytes of vector j of a group of four inputs are weights, the others being padding. */
static __mmask64 used_bytes(const struct ifd_pack_layout *as,
                            const struct ifd_gemm_weights *weights, size_t n0, size_t nv, size_t j)
{
    __mmask64 used = 0;
    for (size_t l = 0; l < 16; l++) {
        used |= n0 + ifd_pack_column(as, nv, j, l) < weights->n ? (__mmask64)15 << (4 * l) : 0;
    }
    return used;
}

/* Takes the zero point off a block's weights; w_out NULL only counts extra products. False if
 * too many weights have nine bits. */
static int fold_block(const struct ifd_pack_layout *as, const struct ifd_gemm_weights *weights,
                      int32_t zero, size_t n0, const int8_t *w, int8_t *w_out,
                      struct extras *extras)
{
    const size_t left = weights->n - n0, width = ifd_pack_width(as, weights->n);
    const size_t nv = ((left < width ? left : width) + 15) / 16;
    __mmask64 used[4];
    for (size_t j = 0; j < nv; j++) {
        used[j] = used_bytes(as, weights, n0, nv, j);
    }
    *extras = (struct extras){.count = 0};
    for (size_t t = 0; t < weights->taps; t++) {
        for (size_t k = 0; k < weights->k; k += 4) {
            const __mmask64 inputs =
                weights->k - k < 4 ? 0x1111111111111111 * ((1u << (weights->k - k)) - 1) : ~0ull;
            const uint32_t e = extras->count;
            for (size_t j = 0; j < nv; j++, w += 64) {
                __mmask64 over = 0;
                const __m512i all = _mm512_load_si512(w);
                const __m512i fits = without_zero(all, zero, used[j] & inputs, &over);
                if (over && (e == EXTRAS_MAX ||
                             !add_rest(all, fits, zero, over, extras->weights[e] + 64 * j))) {
                    return 0;
                }
                extras->count = over ? e + 1 : extras->count;
                if (w_out) {
                    _mm512_store_si512(w_out, fits);
                    w_out += 64;
                }
            }
            if (e < EXTRAS_MAX) {
                extras->tap[e] = (uint32_t)t;
                extras->k[e] = (uint32_t)k;
            }
        }
    }
    return 1;
}

/* Folds the zero point into the weights if few of them have nine bits then: a tensor quantized
 * to its full range has only its smallest or largest there. */
static void fold_zero(const struct ifd_pack_layout *as, const struct ifd_gemm_weights *weights,
                      int32_t zero, struct ifd_packed *header)
{
    int8_t *w = (int8_t *)header + IFD_PACKED_HEADER;
    struct extras *extras = block_extras(header, 0);
    int fits = 1;
    for (size_t b = 0; b < header->blocks && fits; b++) {
        fits = fold_block(as, weights, zero, b * header->nr, w + b * header->unit_bytes, NULL,
                          &extras[b]);
    }
    for (size_t b = 0; b < header->blocks && fits; b++) {
        int8_t *block = w + b * header->unit_bytes;
        (void)fold_block(as, weights, zero, b * header->nr, block, block, &extras[b]);
    }
    header->folds_zero = (uint8_t)fits;
}

/* Whether half vectors pay. They read eight inputs at a time, have no room for extra products or
 * further tails, and the final additions need long sums. */
static int halves_pay(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant)
{
    return (weights->n == 24 || weights->n == 40) && weights->k % HALVES_INPUTS == 0 &&
           weights->k * weights->taps >= HALVES_DEPTH_MIN && requant->weight_zero == 0 &&
           requant->round != IFD_ROUND_NONE;
}

/* Packs the block of columns from n0 on; tail is indexed by column. Returns the end of the
 * block. */
static int8_t *pack_block_halves(const struct ifd_gemm_weights *weights, size_t n0,
                                 const int32_t (*tail)[64], int8_t *dst)
{
    const size_t halves = block_halves(weights->n, n0);
    for (size_t t = 0; t < weights->taps; t++) {
        for (size_t k = 0; k < weights->k; k += HALVES_INPUTS, dst += 64 * halves) {
            for (size_t i = 0; i < 64 * halves; i++) {
                const size_t n = n0 + half_column(i / 64, i % 64 / HALVES_INPUTS);
                dst[i] =
                    ((const int8_t *)weights->w)[n * weights->stride_n + t * weights->stride_t +
                                                 (k + i % HALVES_INPUTS) * weights->stride_k];
            }
        }
    }
    int32_t *to = (int32_t *)(void *)dst;
    for (size_t i = 0; i < IFD_TAIL_ROWS * HALVES_WIDTH; i++) {
        to[i] = tail[i / HALVES_WIDTH][n0 + half_tail_column(i % HALVES_WIDTH)];
    }
    return dst + HALVES_TAIL_BYTES;
}

/* Packs again, in halves, one block that is packed in whole vectors. */
static void pack_halves(const struct ifd_gemm_weights *weights, struct ifd_packed *header)
{
    int32_t tail[IFD_TAIL_ROWS][64] = {{0}};
    int8_t *dst = (int8_t *)header + IFD_PACKED_HEADER;
    const int32_t *from =
        (const int32_t *)(const void *)(dst + header->private_[IFD_PACKED_TAIL_OFFSET]);
    const size_t width = header->nr;
    for (size_t i = 0; i < IFD_TAIL_ROWS * width; i++) {
        const size_t slot = i % width;
        tail[i / width][ifd_pack_column(&layout, width / 16, slot / 16, slot % 16)] = from[i];
    }
    header->nr = HALVES_COLUMNS;
    header->mr = HALVES_ROWS;
    header->blocks = 0;
    header->unit_bytes =
        (uint32_t)(weights->taps * weights->k * HALVES_COLUMNS + HALVES_TAIL_BYTES);
    for (size_t n0 = 0; n0 < weights->n; n0 += HALVES_COLUMNS) {
        dst = pack_block_halves(weights, n0, (const int32_t(*)[64])tail, dst);
        header->blocks++;
    }
}

static void pack(const struct ifd_gemm_weights *weights, const struct ifd_requant *requant,
                 void *dst)
{
    struct ifd_packed *header = dst;
    struct ifd_pack_layout as = layout;
    as.quad = requant->round == IFD_ROUND_NONE ? as.lanes : as.quad;
    ifd_pack_gemm_q8(&as, weights, requant, dst);
    header->bytes = packed_bytes(weights->n, weights->k, weights->taps);
    __builtin_memset(block_extras(header, 0), 0, header->blocks * sizeof(struct extras));
    if (halves_pay(weights, requant)) {
        pack_halves(weights, header);
    }
    if (requant->weight_zero != 0) {
        fold_zero(&as, weights, requant->weight_zero, header);
    }
}

const struct ifd_kern_gemm_q8 ifd_kern_gemm_q8_vnni = {packed_bytes, pack, run, row_sum};

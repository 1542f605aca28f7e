/* The q8 gemm with vpdpbusd: all of the VNNI table but pack(), and the small calls of the AMX
 * table. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_IMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_Q8_VNNI_IMPL_H

#include "backends/cpuacc/kernels/gemm/gemm_q8_vnni_halves_impl.h"
#include "backends/cpuacc/kernels/gemm/gemm_q8_vnni_tiles_impl.h"

static void run(const struct ifd_gemm_args *args)
{
    const struct ifd_packed *header = args->packed;
    const size_t k_bytes = (size_t)header->taps * (size_t)header->private_[IFD_PACKED_DEPTH];
    const int8_t *weights = (const int8_t *)args->packed + IFD_PACKED_HEADER;
    struct job job;
    job.args = args;
    job.m0 = 0;
    job.valid = 1;
    if (args->n_begin > 0) {
        weights += args->n_begin / header->nr * header->unit_bytes;
    }
    for (size_t n0 = args->n_begin; n0 < args->n_end; n0 += header->nr) {
        const size_t left = header->n - n0;
        const int is_last = left <= header->nr;
        const size_t nv = ((is_last ? left : header->nr) + 15) / 16;
        job.columns = is_last ? left : header->nr;
        job.weights = weights;
        job.out = (uint8_t *)args->out + n0;
        if (header->nr == HALVES_COLUMNS) {
            const size_t halves = block_halves(header->n, n0);
            job.tail = (const int32_t *)(const void *)(weights + k_bytes * halves * 8);
            weights += header->unit_bytes;
            run_halves(&job, halves);
            continue;
        }
        job.tail = (const int32_t *)(const void *)(weights + k_bytes * nv * 16);
        job.extras = header->folds_zero ? block_extras(header, n0 / header->nr) : NULL;
        weights += header->unit_bytes;
        if (args->m == 1) {
            job.next = is_last ? (const char *)header + header->bytes : (const char *)weights;
            job.start[0] = args->a;
            tiles[nv - 1][3].run(&job);
        } else {
            run_block(&job, nv, is_last);
        }
    }
}

/* Sums of four rows of at most 16 inputs each. */
INLINE void row_sum_4(const uint8_t *a, size_t k, size_t a_stride, int32_t factor, int32_t *ret_sum)
{
    const __m128i mask = _mm_movm_epi8((__mmask16)((1u << k) - 1));
    __m128i row[4];
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        row[i] = _mm_loadu_si128((const __m128i *)(const void *)(a + i * a_stride));
    }
    __m256i lo = _mm256_inserti128_si256(_mm256_castsi128_si256(row[0]), row[1], 1);
    __m256i hi = _mm256_inserti128_si256(_mm256_castsi128_si256(row[2]), row[3], 1);
    __m512i x = _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
    x = _mm512_sad_epu8(_mm512_and_si512(x, _mm512_broadcast_i32x4(mask)), _mm512_setzero_si512());
    x = _mm512_add_epi64(x, _mm512_unpackhi_epi64(x, x));
    __m512i sums = _mm512_permutexvar_epi32(
        _mm512_set_epi32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 8, 4, 0), x);
    _mm_storeu_si128((__m128i *)(void *)ret_sum,
                     _mm_mullo_epi32(_mm512_castsi512_si128(sums), _mm_set1_epi32(factor)));
}

/* The sums of two vectors' halves, quarters ...: lanes of a below, those of b above. */
INLINE __m512i add_halves(__m512i a, __m512i b)
{
    return _mm512_add_epi64(_mm512_shuffle_i64x2(a, b, 0x44), _mm512_shuffle_i64x2(a, b, 0xee));
}

INLINE __m512i add_quarters(__m512i a, __m512i b)
{
    return _mm512_add_epi64(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
}

INLINE __m512i add_eighths(__m512i a, __m512i b)
{
    return _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* Sums of eight rows: those of every row in eight lanes, then a tree that adds lanes of all rows at
 * once. */
INLINE void row_sum_8(const uint8_t *a, size_t k, size_t a_stride, int32_t factor, int32_t *ret_sum)
{
    __m512i x[8];
    UNROLL for (size_t i = 0; i < 8; i++)
    {
        x[i] = _mm512_setzero_si512();
    }
    for (size_t j = 0; j < k; j += 64) {
        const __mmask64 mask = k - j >= 64 ? ~0ull : (1ull << (k - j)) - 1;
        UNROLL for (size_t i = 0; i < 8; i++)
        {
            const __m512i v = _mm512_maskz_loadu_epi8(mask, a + i * a_stride + j);
            x[i] = _mm512_add_epi64(x[i], _mm512_sad_epu8(v, _mm512_setzero_si512()));
        }
    }
    /* lanes of the result: rows 0 1, 2 3, 4 5, 6 7 */
    __m512i ab = add_halves(add_eighths(x[0], x[1]), add_eighths(x[2], x[3]));
    __m512i cd = add_halves(add_eighths(x[4], x[5]), add_eighths(x[6], x[7]));
    __m256i sums = _mm512_cvtepi64_epi32(add_quarters(ab, cd));
    _mm256_storeu_si256((__m256i *)(void *)ret_sum,
                        _mm256_mullo_epi32(sums, _mm256_set1_epi32(factor)));
}

static void row_sum(const uint8_t *a, size_t m, size_t k, size_t a_stride, int32_t factor,
                    int32_t *ret_sum)
{
    size_t i = 0;
    for (; k <= 16 && i + 4 <= m; i += 4, a += 4 * a_stride) {
        row_sum_4(a, k, a_stride, factor, ret_sum + i);
    }
    for (; i + 8 <= m; i += 8, a += 8 * a_stride) {
        row_sum_8(a, k, a_stride, factor, ret_sum + i);
    }
    for (; i < m; i++, a += a_stride) {
        __m512i sum = _mm512_setzero_si512();
        for (size_t j = 0; j < k; j += 64) {
            __mmask64 mask = k - j >= 64 ? ~0ull : (1ull << (k - j)) - 1;
            __m512i x = _mm512_maskz_loadu_epi8(mask, a + j);
            sum = _mm512_add_epi64(sum, _mm512_sad_epu8(x, _mm512_setzero_si512()));
        }
        ret_sum[i] = factor * (int32_t)_mm512_reduce_add_epi64(sum);
    }
}

#endif

/* bf16 gemm by AVX512-BF16: the float template, where a lane multiplies two neighbouring inputs
 * with two weights. The includer may define GEMM_K_TILE before, and defines the table. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_BF16_PAIRS_TMPL_H
#define INFERD_BACKENDS_CPUACC_KERNELS_GEMM_GEMM_BF16_PAIRS_TMPL_H

#include "backends/cpuacc/kernels/simd/simd.h"

#define GEMM_INPUT  uint16_t
#define GEMM_PAIR   2
#define GEMM_WEIGHT uint32_t
#define GEMM_FORMAT IFD_PACK_BF16

INLINE vf gemm_weights(const uint32_t *w)
{
    return _mm512_loadu_ps(w);
}
INLINE vf gemm_inputs(const uint16_t *in)
{
    return vf_broadcast((const float *)(const void *)in);
}
/* Into the register of sum, as vf_fma(). */
INLINE vf gemm_add(vf inputs, vf weights, vf sum)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(inputs), "v"(weights));
    return sum;
}

#include "backends/cpuacc/kernels/gemm/gemm_float_tmpl.h"

static size_t depth(size_t k)
{
    return ifd_pack_depth(&layout, k);
}

/* Numbers below the normal ones become 0. */
static void narrow(size_t n, const float *in, uint16_t *out)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m512bh both =
            _mm512_cvtne2ps_pbh(_mm512_loadu_ps(in + i + 16), _mm512_loadu_ps(in + i));
        _mm512_storeu_si512(out + i, (__m512i)both);
    }
    for (; i < n; i += 16) {
        const __mmask16 some = n - i < 16 ? vm_first(n - i) : 0xffff;
        const __m256bh half = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, in + i));
        _mm256_mask_storeu_epi16(out + i, some, (__m256i)half);
    }
}

/* Pixels of three channels become pixels of four, four at a time. Returns how many are left. */
static size_t narrow_threes(size_t rows, const float *in, uint16_t *out)
{
    for (; rows >= 4; rows -= 4, in += 12, out += 16) {
        const __m512 four = _mm512_maskz_expand_ps(0x7777, _mm512_maskz_loadu_ps(0xfff, in));
        _mm256_storeu_si256((__m256i *)(void *)out, (__m256i)_mm512_cvtneps_pbh(four));
    }
    return rows;
}

static void narrow_rows(size_t rows, size_t n, const float *in, size_t in_stride, uint16_t *out,
                        size_t out_n)
{
    if (n == 3 && in_stride == 3 && out_n == 4) {
        const size_t done = rows - narrow_threes(rows, in, out);
        in += 3 * done;
        out += 4 * done;
        rows -= done;
    }
    for (; rows > 0; rows--, in += in_stride, out += out_n) {
        for (size_t c = 0; c < out_n; c += 16) {
            const __mmask16 read = n <= c ? 0 : n - c < 16 ? vm_first(n - c) : 0xffff;
            const __mmask16 written = out_n - c < 16 ? vm_first(out_n - c) : 0xffff;
            const __m256bh some = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(read, in + c));
            _mm256_mask_storeu_epi16(out + c, written, (__m256i)some);
        }
    }
}

INLINE vf widen_16(__m256i bits)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

#endif

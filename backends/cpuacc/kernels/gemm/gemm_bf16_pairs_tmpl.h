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

#endif

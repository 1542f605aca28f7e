/* Tables of 256 bytes, 64 values at a time: two permutes of 128 entries, then a select. */
#include <immintrin.h>
#include "backends/cpuacc/kernels/kernels.h"

static void lut_8(size_t n, const uint8_t *in, const uint8_t *table, uint8_t *out)
{
    const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
    const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
    for (size_t i = 0; i < n; i += 64) {
        const __mmask64 mask = n - i >= 64 ? ~0ull : (1ull << (n - i)) - 1;
        const __m512i x = _mm512_maskz_loadu_epi8(mask, in + i);
        const __m512i low = _mm512_permutex2var_epi8(t0, x, t1);
        const __m512i high = _mm512_permutex2var_epi8(t2, x, t3);
        _mm512_mask_storeu_epi8(out + i, mask,
                                _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
    }
}

const struct ifd_kern_quant ifd_kern_quant_vbmi = {.lut_8 = lut_8};

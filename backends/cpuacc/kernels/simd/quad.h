/* Transposes blocks of 4 x 4 values of 32 bits: two steps of shuffles on any instruction set. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_QUAD_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_QUAD_H

#include <stddef.h>
#include <stdint.h>
#include "backends/cpuacc/kernels/simd/inline.h"

typedef uint32_t quad_u32 __attribute__((vector_size(16), aligned(1), may_alias));

/* Transposes a block. Rows are in_row and out_row bytes apart; nothing need be aligned. */
INLINE void transpose_4x4(const void *in, size_t in_row, void *out, size_t out_row)
{
    const unsigned char *from = in;
    unsigned char *to = out;
    const quad_u32 a = *(const quad_u32 *)from, b = *(const quad_u32 *)(from + in_row);
    const quad_u32 c = *(const quad_u32 *)(from + 2 * in_row),
                   d = *(const quad_u32 *)(from + 3 * in_row);
    const quad_u32 ab_lo = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const quad_u32 ab_hi = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const quad_u32 cd_lo = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const quad_u32 cd_hi = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad_u32 *)to = __builtin_shufflevector(ab_lo, cd_lo, 0, 1, 4, 5);
    *(quad_u32 *)(to + out_row) = __builtin_shufflevector(ab_lo, cd_lo, 2, 3, 6, 7);
    *(quad_u32 *)(to + 2 * out_row) = __builtin_shufflevector(ab_hi, cd_hi, 0, 1, 4, 5);
    *(quad_u32 *)(to + 3 * out_row) = __builtin_shufflevector(ab_hi, cd_hi, 2, 3, 6, 7);
}

#endif

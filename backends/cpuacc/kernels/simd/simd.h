/* The vector vocabulary of the templates: one header per instruction set gives the same names.
 * CMake defines IFD_SIMD_<isa> for the row of isa_list.inc being compiled.
 *
 *   vf, vi      VF_LANES floats, as many 32-bit integers; vm, a mask of as many lanes; there are
 *               VF_REGISTERS registers of them
 *   load_n      the first n < VF_LANES lanes; the others hold anything finite or not
 *   load_step   loads and advances the pointer by step floats
 *   store_n     writes exactly n lanes
 *   load_f16    half-precision numbers, widened (x86)
 *   broadcast   one value from memory into all lanes
 *   pairs       where VF_HAS_PAIRS: broadcast_pair p[0], p[1], p[0] ...; broadcast_even p[0], 0,
 *               p[0] ...; load_even(p, n) p[0], 0, p[1], 0 ... of n <= VF_LANES/2; fold_pairs sums
 *               of neighbours, those of a before those of b
 *   transpose   lane i of vector j becomes lane j of vector i, of VF_LANES vectors
 *   fma(a,b,c)  a*b + c, fused where the instruction set has it
 *   reciprocal  1/a to 1 ulp, for positive a whose reciprocal is a normal number
 *   vf_max(a,b), vf_min(a,b)  b where either is NaN, on x86; NaN on Arm
 *   vf_to_vi    nearest, halves to even
 *   vf_trunc    towards zero
 *   select      lanes of a where the mask is set, else of b
 *   vi_mul_high upper half of the signed 64-bit product
 *   q8          native 8-bit values, widened by loads; stores expect them in range
 *   q8_4        four vectors of them at a time
 */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_SIMD_H

#include <stddef.h>
#include <stdint.h>
#include "backends/cpuacc/kernels/kernels.h"
#include "backends/cpuacc/kernels/simd/inline.h"

#if defined(IFD_SIMD_scalar)
#include "backends/cpuacc/kernels/simd/simd_scalar.h"
#elif defined(IFD_SIMD_avx2)
#include "backends/cpuacc/kernels/simd/simd_avx2.h"
#elif defined(IFD_SIMD_avx512) || defined(IFD_SIMD_vnni) || defined(IFD_SIMD_avx512bf16) ||        \
    defined(IFD_SIMD_amxbf16)
#include "backends/cpuacc/kernels/simd/simd_avx512.h"
#elif defined(IFD_SIMD_neon) || defined(IFD_SIMD_dot) || defined(IFD_SIMD_i8mm)
#include "backends/cpuacc/kernels/simd/simd_neon.h"
#else
#error "no instruction set chosen"
#endif

#if !defined(IFD_SIMD_HAS_Q8_4)
INLINE void vi_load_q8_4(const ifd_q8 *p, vi *ret_v)
{
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        ret_v[i] = vi_load_q8(p + i * VF_LANES);
    }
}
INLINE void vi_store_q8_4(ifd_q8 *p, const vi *v)
{
    UNROLL for (size_t i = 0; i < 4; i++)
    {
        vi_store_q8(p + i * VF_LANES, v[i]);
    }
}
#endif

#endif

/* Inlining and unrolling of kernels: tiles take sizes as arguments that are constants at the
 * call. Sanitizers get the same sources as plain functions and loops, since a check at each
 * access of each unrolled step takes minutes to compile. */
#ifndef INFERD_BACKENDS_CPUACC_KERNELS_SIMD_INLINE_H
#define INFERD_BACKENDS_CPUACC_KERNELS_SIMD_INLINE_H

#if defined(IFD_SANITIZED)
#define INLINE static inline
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif

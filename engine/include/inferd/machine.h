/** The machine: features of the processor, cache sizes, teams of threads. Part of the plugin
 *  ABI. */
#ifndef INFERD_MACHINE_H
#define INFERD_MACHINE_H

#include "inferd/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A team of threads that an instance lends to a run. count includes the caller's thread and is
 *  ≥ 1.
 *
 *  run() calls fn(arg, index, count) for index 0 on the caller's thread, and for each of 1 …
 *  count-1 on a helper's thread, once, or not at all if that thread is late. run() returns when
 *  the call for index 0 and all calls that began by then have returned. So fn takes chunks until
 *  none is left, and the threads that came do all of them. Writes before run() are visible
 *  inside fn; writes inside fn are visible after run(). With count 1 it is a plain call. It
 *  neither allocates nor fails. */
typedef void (*ifd_team_fn)(void *arg, uint32_t index, uint32_t count);

struct ifd_team {
    uint32_t count;
    void (*run)(const struct ifd_team *team, ifd_team_fn fn, void *arg);
    void *context;
};

/** Instruction-set features of the processor, limited by the user's mask. Bits of other
 *  architectures are 0. */
enum ifd_cpu_flag {
    IFD_CPU_AVX2 = 1u << 0,   /* with FMA and F16C: x86-64-v3 */
    IFD_CPU_AVX512 = 1u << 1, /* F BW DQ VL CD: x86-64-v4 */
    IFD_CPU_AVX512_VNNI = 1u << 2,
    IFD_CPU_AVX512_BF16 = 1u << 3,
    IFD_CPU_AVX_VNNI = 1u << 4,
    IFD_CPU_AMX_INT8 = 1u << 5,
    IFD_CPU_AMX_BF16 = 1u << 6,
    IFD_CPU_AVX512_HALVES = 1u << 7, /* computes 512 bits in two halves: AMD before Zen 5 */
    IFD_CPU_AVX512_VBMI = 1u << 8,   /* missing in Intel's first cores with VNNI */
    IFD_CPU_NEON = 1u << 16,
    IFD_CPU_DOTPROD = 1u << 17,
    IFD_CPU_FP16 = 1u << 18,
    IFD_CPU_I8MM = 1u << 19,
    IFD_CPU_BF16 = 1u << 20
};

struct ifd_cpu {
    uint32_t flags;                       /* enum ifd_cpu_flag */
    uint32_t cores;                       /* in this process's affinity set */
    size_t l1d_bytes, l2_bytes, l3_bytes; /* of one core; l3 is shared; 0 if unknown */
};

#ifdef __cplusplus
}
#endif
#endif

/** Peak of one core: multiply-accumulates per nanosecond of instructions that work on registers
 *  alone, measured at the call. A kernel reaches a share of it. Takes some milliseconds. Thread:
 *  any. */
#ifndef INFERD_ENGINE_BASE_PEAK_H
#define INFERD_ENGINE_BASE_PEAK_H

#include <stdint.h>

/** cpu_flags: enum ifd_cpu_flag, as detected; the best instruction among them is taken. 0 if
 *  none is known. */
double ifd_peak_f32(uint32_t cpu_flags);
/** 8-bit products: AMX, VNNI, dot products, or AVX2's vpmaddwd. */
double ifd_peak_q8(uint32_t cpu_flags);

#endif

/** What one core can do at best: multiply-accumulates per nanosecond of instructions that work on registers alone, measured
 *  now. Shares of it are what a kernel reaches. Takes some milliseconds. Thread: any. */
#ifndef INFERD_ENGINE_BASE_PEAK_H
#define INFERD_ENGINE_BASE_PEAK_H

#include <stdint.h>

/** cpu_flags: enum ifd_cpu_flag, as detected; the best instruction among them is taken. 0 if none is known. */
double ifd_peak_f32(uint32_t cpu_flags);
/** 8-bit products: AMX, VNNI, dot products, or what AVX2 has in their place. */
double ifd_peak_q8(uint32_t cpu_flags);

#endif

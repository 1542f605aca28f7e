/** Features of the processor, detected once per engine. Thread: any. */
#ifndef INFERD_ENGINE_BASE_CPU_H
#define INFERD_ENGINE_BASE_CPU_H

#include "inferd/machine.h"

/** Features, cores that this process may run on, cache sizes. Unknown numbers are 0. */
void ifd_cpu_detect(struct ifd_cpu *ret);

/** Size of a core's data cache of this level, from its folder in sysfs
 *  (/sys/devices/system/cpu/cpu0/cache); 0 if unknown. Used where the C library does not know
 *  the sizes, as on Arm. */
size_t ifd_cpu_cache_bytes(const char *folder, unsigned level);

/** "avx2 avx512 avx512_vnni" into text (cut to size); "none". */
void ifd_cpu_text(uint32_t flags, char *text, size_t size);

/** Flag by its name in the text above; 0 if unknown. */
uint32_t ifd_cpu_flag_by_name(const char *name, size_t size);

#endif

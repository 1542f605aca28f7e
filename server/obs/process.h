/** Figures of this process from the kernel. Thread: any. */
#ifndef INFERD_SERVER_OBS_PROCESS_H
#define INFERD_SERVER_OBS_PROCESS_H

#include <stdint.h>

struct ifd_process {
    uint64_t cpu_ns, start_ns; /* of all threads; since 1970 */
    uint64_t open_fds, max_fds, virtual_bytes, resident_bytes, threads;
};

/** Fields that the system does not provide are 0. */
void ifd_process_read(struct ifd_process *ret);

#endif

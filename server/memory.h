/** How much memory this process may use, as the system says, and giving back what it does not. Thread: any. */
#ifndef INFERD_SERVER_MEMORY_H
#define INFERD_SERVER_MEMORY_H

#include "inferd/types.h"

struct ifd_memory {
    uint64_t bytes;
    const char *source; /* "machine", "cgroup v1", "cgroup v2": whose limit it is */
};

/** The least of the machine's memory and the limits of the process's control group and of those around it.
 *  root: "" or a folder that stands for /, for tests. machine_bytes: 0: ask the kernel. */
struct ifd_memory ifd_memory_limit(const char *root, uint64_t machine_bytes);

/** Gives the system what the C library keeps of freed memory. Takes milliseconds if that is much: not on the loop. */
void ifd_memory_trim(void);

#endif

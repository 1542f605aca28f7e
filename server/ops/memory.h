/** Memory limit of this process, and release of memory that it does not use. Thread: any. */
#ifndef INFERD_SERVER_OPS_MEMORY_H
#define INFERD_SERVER_OPS_MEMORY_H

#include "inferd/types.h"

struct ifd_memory {
    uint64_t bytes;
    const char *source; /* "machine", "cgroup v1", "cgroup v2" */
};

/** Returns the lowest of the machine's memory and the limits of the process's control groups. root:
 *  "" or a folder in place of /, for tests. machine_bytes: 0: ask the kernel. */
struct ifd_memory ifd_memory_limit(const char *root, uint64_t machine_bytes);

/** Detects that much less memory is in use than before, for longer than a pause between large
 *  requests. The C library releases only the end of its heap, and after many clients a small chunk
 *  lies there. */
struct ifd_slack {
    size_t peak_bytes; /* most since the last release */
    uint64_t since_ms; /* since when it is slack */
    bool is_slack;
};

/** Shortest time of slack. */
#define IFD_SLACK_MS UINT64_C(2000)

enum ifd_slack_turn { IFD_SLACK_NO, IFD_SLACK_BEGINS, IFD_SLACK_LASTS };

/** used_bytes: now. BEGINS: call again after IFD_SLACK_MS. LASTS, once: call ifd_memory_trim. */
enum ifd_slack_turn ifd_slack_look(struct ifd_slack *slack, size_t used_bytes, uint64_t now_ms);

/** Releases the freed memory that the C library keeps. May take milliseconds: not on the loop. */
void ifd_memory_trim(void);

#endif

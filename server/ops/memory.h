/** How much memory this process may use, as the system says, and giving back what it does not.
 *  Thread: any. */
#ifndef INFERD_SERVER_OPS_MEMORY_H
#define INFERD_SERVER_OPS_MEMORY_H

#include "inferd/types.h"

struct ifd_memory {
    uint64_t bytes;
    const char *source; /* "machine", "cgroup v1", "cgroup v2": whose limit it is */
};

/** The least of the machine's memory and the limits of the process's control group and of those
 *  around it. root: "" or a folder that stands for /, for tests. machine_bytes: 0: ask the
 *  kernel. */
struct ifd_memory ifd_memory_limit(const char *root, uint64_t machine_bytes);

/** Notices that much less is in use than was, and has been for so long that it is no pause between
 *  large requests. The C library gives back only what is at the end of its heap, and after a crowd
 *  of clients some small piece lies there. */
struct ifd_slack {
    size_t peak_bytes; /* most since memory was given back */
    uint64_t since_ms; /* how long it is slack */
    bool is_slack;
};

/** For how long it has to be. */
#define IFD_SLACK_MS UINT64_C(2000)

enum ifd_slack_turn { IFD_SLACK_NO, IFD_SLACK_BEGINS, IFD_SLACK_LASTS };

/** used_bytes: now. BEGINS: look again after IFD_SLACK_MS, whatever else happens. LASTS, once: time
 *  for ifd_memory_trim. */
enum ifd_slack_turn ifd_slack_look(struct ifd_slack *slack, size_t used_bytes, uint64_t now_ms);

/** Gives the system what the C library keeps of freed memory. Takes milliseconds if that is much:
 *  not on the loop. */
void ifd_memory_trim(void);

#endif

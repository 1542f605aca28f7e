/** A line on the terminal that says how far something is, once it takes over two seconds. Standard
 *  error that is no terminal gets nothing. Thread: one. */
#ifndef INFERD_ENGINE_TOOLS_PROGRESS_H
#define INFERD_ENGINE_TOOLS_PROGRESS_H

#include "engine/base/thread.h"

/** Begins zeroed. */
struct ifd_progress {
    uint64_t start_ns, told_ns; /* told_ns 0: nothing was told */
};

/** what: "run". Prints "run 12 of 50" if it is time to. */
void ifd_progress_tell(struct ifd_progress *progress, const char *what, uint32_t done,
                       uint32_t all);
/** Removes the line. */
void ifd_progress_end(struct ifd_progress *progress);

/** The same for one call that takes long, such as loading: a thread prints "loading, 4 s" every
 *  second. Where there is no terminal, or no thread can be had, nothing happens. */
struct ifd_waiting {
    const char *what;
    struct ifd_thread thread;
    struct ifd_mutex lock;
    struct ifd_cond ended;
    bool is_watched, is_over; /* is_over: under the lock */
};
/** what must live until the end; alloc likewise. */
void ifd_waiting_begin(struct ifd_waiting *waiting, const char *what,
                       const struct ifd_alloc *alloc);
/** Removes the line. */
void ifd_waiting_end(struct ifd_waiting *waiting);

#endif

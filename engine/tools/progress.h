/** A line on the terminal that says how far something is, once it takes over two seconds. Standard
 *  error that is no terminal gets nothing. Thread: one. */
#ifndef INFERD_ENGINE_TOOLS_PROGRESS_H
#define INFERD_ENGINE_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/** Begins zeroed. */
struct ifd_progress {
    uint64_t start_ns, told_ns; /* told_ns 0: nothing was told */
};

/** what: "run". Prints "run 12 of 50" if it is time to. */
void ifd_progress_tell(struct ifd_progress *progress, const char *what, uint32_t done,
                       uint32_t all);
/** Removes the line. */
void ifd_progress_end(struct ifd_progress *progress);

#endif

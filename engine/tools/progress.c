/* Progress on a terminal: one line that is written over. */
#include "engine/tools/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/base/clock.h"

#define FIRST_NS UINT64_C(2000000000)
#define AGAIN_NS UINT64_C(500000000)

void ifd_progress_tell(struct ifd_progress *progress, const char *what, uint32_t done, uint32_t all)
{
    const uint64_t now_ns = ifd_monotonic_ns();
    if (progress->start_ns == 0) {
        progress->start_ns = now_ns;
    }
    if (now_ns - progress->start_ns < FIRST_NS || now_ns - progress->told_ns < AGAIN_NS ||
        isatty(STDERR_FILENO) != 1) {
        return;
    }
    (void)fprintf(stderr, "\r%s %u of %u \033[K", what, done, all);
    progress->told_ns = now_ns;
}

void ifd_progress_end(struct ifd_progress *progress)
{
    if (progress->told_ns > 0) {
        (void)fputs("\r\033[K", stderr);
    }
    *progress = (struct ifd_progress){0};
}

/* Progress on a terminal: one line that is written over. */
#include "engine/tools/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/base/clock.h"

#define SECOND_NS UINT64_C(1000000000)
#define FIRST_NS  (2 * SECOND_NS)
#define AGAIN_NS  (SECOND_NS / 2)

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

static void watch(void *arg)
{
    struct ifd_waiting *waiting = arg;
    const uint64_t start_ns = ifd_monotonic_ns();
    uint64_t next_ns = start_ns + FIRST_NS;
    bool is_told = false;
    ifd_mutex_lock(&waiting->lock);
    while (!waiting->is_over) {
        if (!ifd_cond_wait_until(&waiting->ended, &waiting->lock, next_ns) && !waiting->is_over) {
            (void)fprintf(stderr, "\r%s, %u s \033[K", waiting->what,
                          (unsigned)((next_ns - start_ns) / SECOND_NS));
            next_ns += SECOND_NS;
            is_told = true;
        }
    }
    ifd_mutex_unlock(&waiting->lock);
    if (is_told) {
        (void)fputs("\r\033[K", stderr);
    }
}

void ifd_waiting_begin(struct ifd_waiting *waiting, const char *what, const struct ifd_alloc *alloc)
{
    *waiting = (struct ifd_waiting){.what = what};
    if (isatty(STDERR_FILENO) != 1) {
        return;
    }
    ifd_mutex_init(&waiting->lock);
    ifd_cond_init(&waiting->ended);
    waiting->is_watched =
        ifd_thread_start(&waiting->thread, "progress", watch, waiting, alloc, NULL) == IFD_OK;
    if (!waiting->is_watched) {
        ifd_cond_finish(&waiting->ended);
        ifd_mutex_finish(&waiting->lock);
    }
}

void ifd_waiting_end(struct ifd_waiting *waiting)
{
    if (!waiting->is_watched) {
        return;
    }
    ifd_mutex_lock(&waiting->lock);
    waiting->is_over = true;
    ifd_cond_signal(&waiting->ended);
    ifd_mutex_unlock(&waiting->lock);
    ifd_thread_join(&waiting->thread);
    ifd_cond_finish(&waiting->ended);
    ifd_mutex_finish(&waiting->lock);
}

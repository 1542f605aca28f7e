/** Passes results from workers to the loop: a lock-free stack and one wake-up. Workers push. The
 *  first push after a drain wakes the loop. The loop takes all items and calls back in the order of
 *  the pushes. An item is embedded in the object that it completes, so nothing is allocated. */
#ifndef INFERD_SERVER_SCHED_COMPLETION_H
#define INFERD_SERVER_SCHED_COMPLETION_H

#include <stdatomic.h>

#include "inferd/types.h"

struct ifd_completion {
    struct ifd_completion *next;
    void (*fn)(
        /* called on the loop thread; may free the object around self */
        struct ifd_completion *self);
};

struct ifd_completions {
    _Atomic(struct ifd_completion *) head;
    void (*wake)(void *arg); /* callable from any thread */
    void *wake_arg;
};

void ifd_completions_init(struct ifd_completions *queue, void (*wake)(void *arg), void *wake_arg);
/** Thread: any. */
void ifd_completions_push(struct ifd_completions *queue, struct ifd_completion *item);
/** Calls all items that were pushed before. Thread: loop. */
void ifd_completions_drain(struct ifd_completions *queue);

#endif

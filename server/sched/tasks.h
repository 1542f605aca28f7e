/** Thread pool for work that is not inference: loading models, decoding pictures, large JSON. First
 *  come, first served; bounded. */
#ifndef INFERD_SERVER_SCHED_TASKS_H
#define INFERD_SERVER_SCHED_TASKS_H

#include "inferd/alloc.h"
#include "inferd/status.h"
#include "server/sched/completion.h"

struct ifd_tasks;

/** Embedded in the caller's object; the pool has it until done is called. */
struct ifd_task {
    struct ifd_completion completion; /* the pool's */
    struct ifd_task *next;            /* the pool's */
    /** Returns OK while the work is wanted, else the reason. Called before the work and by
     *  ifd_tasks_sweep; must not block. NULL: always wanted. Thread: any. */
    enum ifd_code (*verdict)(const struct ifd_task *self);
    void (*work)(struct ifd_task *self); /* on a thread of the pool, if it is wanted */
    void (*done)(struct ifd_task *self); /* on the loop thread, afterwards */
    enum ifd_code code;                  /* for done: OK if work was called, else the verdict */
};

/** name: shown by ps. Errors: NOMEM, UNAVAILABLE. */
IFD_NODISCARD enum ifd_code ifd_tasks_create(const char *name, uint32_t threads, uint32_t capacity,
                                             struct ifd_completions *completions,
                                             const struct ifd_alloc *alloc,
                                             struct ifd_tasks **ret_tasks, struct ifd_err *err);
/** Finishes submitted tasks (the caller still drains their done calls), then ends the threads. NULL
 *  is fine. */
void ifd_tasks_destroy(struct ifd_tasks *tasks);

/** Completes waiting tasks that are no longer wanted, without their work. Thread: any. */
void ifd_tasks_sweep(struct ifd_tasks *tasks);

/** True if no task waits or runs. Thread: any. */
bool ifd_tasks_are_idle(struct ifd_tasks *tasks);

/** Errors: BUSY (capacity tasks wait already). Thread: any. */
IFD_NODISCARD enum ifd_code ifd_tasks_submit(struct ifd_tasks *tasks, struct ifd_task *task,
                                             struct ifd_err *err);

#endif

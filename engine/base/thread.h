/** Threads, mutexes, condition variables: the only place that knows pthreads.
 *
 *  Condition variables use the monotonic clock. Lock and unlock of the default kind of mutex
 *  fail only by a programming error (assert). */
#ifndef INFERD_ENGINE_BASE_THREAD_H
#define INFERD_ENGINE_BASE_THREAD_H

#include <pthread.h>

#include "inferd/alloc.h"
#include "inferd/status.h"

struct ifd_mutex {
    pthread_mutex_t handle;
};
struct ifd_cond {
    pthread_cond_t handle;
};
struct ifd_thread {
    pthread_t handle;
};

typedef void (*ifd_thread_fn)(void *arg);

/** name: up to 15 characters, shown by ps and debuggers. The thread blocks all signals. alloc
 *  must live until the thread runs. Errors: UNAVAILABLE (a limit of the system), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_thread_start(struct ifd_thread *thread, const char *name,
                                             ifd_thread_fn fn, void *arg,
                                             const struct ifd_alloc *alloc, struct ifd_err *err);
void ifd_thread_join(struct ifd_thread *thread);

/** The core of the calling thread; -1 if unknown. Takes some ns. */
int ifd_thread_core(void);
/** Moves the calling thread to another core of its affinity set, which stays as it was. Does
 *  nothing if there is no other core or the system forbids it. Takes about 10 µs. */
void ifd_thread_change_core(void);

/** Lets other threads that wait for the caller's core run. */
void ifd_thread_yield(void);

/** One round of a loop that waits for another thread without sleeping. */
static inline void ifd_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/** The same with the number of the round (0, 1, …): after about 100 µs it yields, as the other
 *  thread may wait for this core. */
void ifd_relax_more(uint32_t round);

void ifd_mutex_init(struct ifd_mutex *mutex);
void ifd_mutex_finish(struct ifd_mutex *mutex);
void ifd_mutex_lock(struct ifd_mutex *mutex);
void ifd_mutex_unlock(struct ifd_mutex *mutex);

void ifd_cond_init(struct ifd_cond *cond);
void ifd_cond_finish(struct ifd_cond *cond);
void ifd_cond_wait(struct ifd_cond *cond, struct ifd_mutex *mutex);
/** False if until_ns (ifd_monotonic_ns) has passed. */
bool ifd_cond_wait_until(struct ifd_cond *cond, struct ifd_mutex *mutex, uint64_t until_ns);
void ifd_cond_signal(struct ifd_cond *cond);
void ifd_cond_broadcast(struct ifd_cond *cond);

#endif

/** Threads, mutexes, condition variables: the only place that knows pthreads.
 *
 *  A condition variable counts time on the monotonic clock. Lock and unlock cannot fail here: the mutexes are of the
 *  default kind and correctly used, anything else is a programming error (assert). */
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

/** name: up to 15 characters, shown by ps and debuggers. The thread blocks all signals. Errors: UNAVAILABLE (limit of the
 *  system), NOMEM. alloc must live until the thread runs. */
IFD_NODISCARD enum ifd_code ifd_thread_start(struct ifd_thread *thread, const char *name,
                                             ifd_thread_fn fn, void *arg,
                                             const struct ifd_alloc *alloc, struct ifd_err *err);
void ifd_thread_join(struct ifd_thread *thread);

/** The core that the calling thread is on; -1 if that is not known. Takes some ns. */
int ifd_thread_core(void);
/** Moves the calling thread to another one of the cores that it may use; it may use all of them as before. Nothing happens where
 *  there is no other one or the system forbids it. Takes some 10 µs. */
void ifd_thread_change_core(void);

/** Others that wait for the core of the calling thread may have it. */
void ifd_thread_yield(void);

/** Inside a loop that waits for another thread without sleeping. */
static inline void ifd_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/** The same, as often as it takes (round: 0, 1, …): after some 100 µs others may have the core. The thread that is waited for may
 *  be one of them. */
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

/* pthreads behind our names. */
#include "engine/base/thread.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct start {
    const struct ifd_alloc *alloc;
    ifd_thread_fn fn;
    void *arg;
    char name[16];
};

static void *trampoline(void *context)
{
    struct start *start = context;
    struct start copy = *start;
    ifd_release(copy.alloc, start, sizeof(*start));
    (void)pthread_setname_np(pthread_self(), copy.name);
    copy.fn(copy.arg);
    return NULL;
}

enum ifd_code ifd_thread_start(struct ifd_thread *thread, const char *name, ifd_thread_fn fn,
                               void *arg, const struct ifd_alloc *alloc, struct ifd_err *err)
{
    struct start *start = ifd_acquire(alloc, sizeof(*start));
    if (!start) {
        return ifd_fail(err, IFD_NOMEM, "no memory to start thread \"%s\"", name);
    }
    *start = (struct start){.alloc = alloc, .fn = fn, .arg = arg};
    (void)snprintf(start->name, sizeof(start->name), "%s", name);

    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread->handle, NULL, trampoline, start);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        ifd_release(alloc, start, sizeof(*start));
        return ifd_fail(err, IFD_UNAVAILABLE, "cannot start thread \"%s\": %s", name,
                        strerror(failed));
    }
    return IFD_OK;
}

void ifd_thread_join(struct ifd_thread *thread)
{
    int failed = pthread_join(thread->handle, NULL);
    assert(!failed);
    (void)failed;
}

int ifd_thread_core(void)
{
    return sched_getcpu();
}

void ifd_thread_change_core(void)
{
    cpu_set_t allowed, others;
    const int core = ifd_thread_core();
    if (core < 0 || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return;
    }
    others = allowed;
    CPU_CLR((size_t)core, &others);
    /* Linux refuses an empty set. */
    if (sched_setaffinity(0, sizeof(others), &others) == 0) {
        (void)sched_setaffinity(0, sizeof(allowed), &allowed);
    }
}

void ifd_thread_yield(void)
{
    (void)sched_yield();
}

#define SPIN_ROUNDS 4000

void ifd_relax_more(uint32_t round)
{
    if (round < SPIN_ROUNDS) {
        ifd_relax();
    } else {
        ifd_thread_yield();
    }
}

void ifd_mutex_init(struct ifd_mutex *mutex)
{
    (void)pthread_mutex_init(&mutex->handle, NULL);
}

void ifd_mutex_finish(struct ifd_mutex *mutex)
{
    (void)pthread_mutex_destroy(&mutex->handle);
}

void ifd_mutex_lock(struct ifd_mutex *mutex)
{
    int failed = pthread_mutex_lock(&mutex->handle);
    assert(!failed);
    (void)failed;
}

void ifd_mutex_unlock(struct ifd_mutex *mutex)
{
    int failed = pthread_mutex_unlock(&mutex->handle);
    assert(!failed);
    (void)failed;
}

void ifd_cond_init(struct ifd_cond *cond)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&cond->handle, &attr);
    (void)pthread_condattr_destroy(&attr);
}

void ifd_cond_finish(struct ifd_cond *cond)
{
    (void)pthread_cond_destroy(&cond->handle);
}

void ifd_cond_wait(struct ifd_cond *cond, struct ifd_mutex *mutex)
{
    (void)pthread_cond_wait(&cond->handle, &mutex->handle);
}

bool ifd_cond_wait_until(struct ifd_cond *cond, struct ifd_mutex *mutex, uint64_t until_ns)
{
    struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000u),
                             .tv_nsec = (long)(until_ns % 1000000000u)};
    return pthread_cond_timedwait(&cond->handle, &mutex->handle, &until) != ETIMEDOUT;
}

void ifd_cond_signal(struct ifd_cond *cond)
{
    (void)pthread_cond_signal(&cond->handle);
}

void ifd_cond_broadcast(struct ifd_cond *cond)
{
    (void)pthread_cond_broadcast(&cond->handle);
}

/** An allocator for torture: counts, checks sizes on release, and fails the k-th request or all
 *  from it on.
 *
 *      do { fail_alloc_init(&f, ++k); code = case(&f.alloc); … } while (f.failed);
 *
 *  After every round fail_alloc_finish expects that nothing is left. Thread: any. */
#ifndef INFERD_TESTS_SUPPORT_FAIL_ALLOC_H
#define INFERD_TESTS_SUPPORT_FAIL_ALLOC_H

#include <stdatomic.h>

#include "inferd/alloc.h"

struct fail_alloc {
    struct ifd_alloc alloc;
    /* 1 = the first request; 0 = never; negative = every request from now on */
    atomic_long fail_at;
    atomic_bool goes_on; /* and all requests after fail_at */
    /* not NULL: is called at fail_at, which then succeeds */
    void (*instead)(void);
    atomic_long requests, live, live_bytes;
    atomic_bool failed; /* a request was refused */
};

void fail_alloc_init(struct fail_alloc *fail, long fail_at);
/** Counts from the start again, with another request to refuse. Thread: any, while others
 *  allocate. */
void fail_alloc_arm(struct fail_alloc *fail, long fail_at, bool goes_on);
/** Expects no live memory. */
void fail_alloc_finish(struct fail_alloc *fail);

#endif

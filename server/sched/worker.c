/* Worker threads. */
#include "server/sched/worker.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct worker {
    struct ifd_workers *all;
    struct ifd_runner *runner;
    struct ifd_thread thread;
    bool is_started;
};

struct ifd_workers {
    const struct ifd_alloc *alloc;
    struct ifd_queue *queue;
    struct ifd_completions *completions;
    bool in_order;
    struct ifd_mutex order; /* guards done and next_ticket */
    struct ifd_job *done;   /* in_order: wait for an earlier job, ascending by ticket */
    uint64_t next_ticket;
    struct ifd_completion *probe;
    atomic_uint probe_away; /* threads that have not passed it yet */
    atomic_int core;        /* see ifd_workers_core */
    uint32_t count;
    struct worker worker[];
};

static void run_jobs(struct worker *worker, struct ifd_job *const *job, uint32_t count)
{
    const struct ifd_clock *clock = worker->all->queue->clock;
    struct ifd_err err = {0};
    int64_t batch = 0;
    uint64_t started_ns = ifd_now_ns(clock);
    atomic_store_explicit(&worker->all->core, ifd_thread_core(), memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        job[i]->started_ns = started_ns;
        job[i]->computed_ns = 0;
        batch += job[i]->batch;
    }
    enum ifd_code code = worker->runner->run(worker->runner, job, count, &err);
    uint64_t finished_ns = ifd_now_ns(clock);
    for (uint32_t i = 0; i < count; i++) {
        job[i]->code = code;
        job[i]->err = err;
        job[i]->computed_ns = job[0]->computed_ns ? job[0]->computed_ns : finished_ns;
        job[i]->finished_ns = finished_ns;
        job[i]->run_jobs = count;
        job[i]->run_batch = batch;
        job[i]->is_run_leader = i == 0;
    }
}

bool ifd_workers_are_instant(const struct ifd_workers *workers)
{
    return workers->worker[0].runner->is_instant;
}

bool ifd_workers_run_here(struct ifd_workers *workers, struct ifd_job *job)
{
    if (workers->in_order || workers->worker[0].runner->may_prepare ||
        !ifd_queue_is_idle(workers->queue, workers->count)) {
        return false;
    }
    struct worker *worker = &workers->worker[0];
    run_jobs(worker, &job, 1);
    if (worker->runner->rest) {
        worker->runner->rest(worker->runner); /* a client on this machine needs a core now */
    }
    job->queued_ns = job->started_ns;
    return true;
}

/* Only with one instance: with several, waking all of them costs more than it saves. */
void ifd_workers_expect(struct ifd_workers *workers)
{
    struct ifd_runner *runner = workers->worker[0].runner;
    if (workers->count == 1 && runner->expect && ifd_queue_is_idle(workers->queue, 1)) {
        runner->expect(runner);
    }
}

void ifd_workers_stay_awake(struct ifd_workers *workers, uint64_t until_ns)
{
    if (!workers->worker[0].runner->is_instant) {
        ifd_queue_expect(workers->queue, until_ns);
    }
}

uint32_t ifd_workers_threads(const struct ifd_workers *workers)
{
    return workers->worker[0].runner->threads;
}

int ifd_workers_core(const struct ifd_workers *workers)
{
    return atomic_load_explicit(&workers->core, memory_order_relaxed);
}

/* Keeps the jobs, then completes those that wait for no earlier job. Pushes under the lock, so that
 * two workers cannot overtake each other. */
static void complete_in_order(struct ifd_workers *all, struct ifd_job *const *job, uint32_t count)
{
    ifd_mutex_lock(&all->order);
    struct ifd_job **at = &all->done;
    for (uint32_t i = 0; i < count; i++) {
        while (*at && (*at)->ticket < job[i]->ticket) {
            at = &(*at)->next;
        }
        job[i]->next = *at;
        *at = job[i];
    }
    while (all->done && all->done->ticket == all->next_ticket) {
        struct ifd_job *first = all->done;
        all->done = first->next;
        first->next = NULL;
        all->next_ticket++;
        ifd_completions_push(all->completions, &first->completion);
    }
    ifd_mutex_unlock(&all->order);
}

/* If a batch fails, one job may be the cause: runs each job alone. */
static void run_batch(struct worker *worker, struct ifd_job *const *job, uint32_t count)
{
    run_jobs(worker, job, count);
    if (count > 1 && job[0]->code) {
        for (uint32_t i = 0; i < count; i++) {
            run_jobs(worker, &job[i], 1);
        }
    }
    if (worker->all->in_order) {
        complete_in_order(worker->all, job, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        ifd_completions_push(worker->all->completions, &job[i]->completion);
    }
}

static void pass_probe(struct ifd_workers *all)
{
    struct ifd_completion *probe = all->probe;
    if (atomic_fetch_sub(&all->probe_away, 1) == 1) {
        ifd_completions_push(all->completions, probe);
    }
}

static void work(void *arg)
{
    struct worker *worker = arg;
    struct ifd_job *job[IFD_BATCH_ITEMS_MAX];
    uint32_t count = 0;
    uint64_t seen = 0;
    while ((count = ifd_queue_take(worker->all->queue, job, &seen)) > 0) {
        if (count == IFD_QUEUE_PROBE) {
            pass_probe(worker->all);
        } else {
            run_batch(worker, job, count);
        }
    }
}

void ifd_workers_probe(struct ifd_workers *workers, struct ifd_completion *probe)
{
    workers->probe = probe;
    atomic_store(&workers->probe_away, workers->count);
    ifd_queue_probe(workers->queue); /* its lock publishes both */
}

enum ifd_code ifd_workers_create(struct ifd_queue *queue, struct ifd_runner *const *runner,
                                 uint32_t count, bool in_order, struct ifd_completions *completions,
                                 const struct ifd_alloc *alloc, struct ifd_workers **ret_workers,
                                 struct ifd_err *err)
{
    struct ifd_workers *workers =
        ifd_acquire_zeroed(alloc, 1, sizeof(*workers) + count * sizeof(struct worker));
    if (!workers) {
        for (uint32_t i = 0; i < count; i++) {
            runner[i]->destroy(runner[i]);
        }
        return ifd_fail(err, IFD_NOMEM, "no memory for %u workers", count);
    }
    workers->alloc = alloc;
    workers->queue = queue;
    workers->completions = completions;
    workers->count = count;
    workers->in_order = in_order;
    ifd_mutex_init(&workers->order);
    atomic_init(&workers->core, -1);
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < count; i++) {
        char name[24];
        struct worker *worker = &workers->worker[i];
        worker->all = workers;
        worker->runner = runner[i];
        (void)snprintf(name, sizeof(name), "infer-%u", i);
        if (!code) {
            code = ifd_thread_start(&worker->thread, name, work, worker, alloc, err);
            worker->is_started = !code;
        }
    }
    if (code) {
        ifd_queue_close(queue);
        ifd_workers_destroy(workers);
        return code;
    }
    *ret_workers = workers;
    return IFD_OK;
}

void ifd_workers_destroy(struct ifd_workers *workers)
{
    if (!workers) {
        return;
    }
    for (uint32_t i = 0; i < workers->count; i++) {
        struct worker *worker = &workers->worker[i];
        if (worker->is_started) {
            ifd_thread_join(&worker->thread);
        }
        worker->runner->destroy(worker->runner);
    }
    ifd_mutex_finish(&workers->order);
    ifd_release(workers->alloc, workers, sizeof(*workers) + workers->count * sizeof(struct worker));
}

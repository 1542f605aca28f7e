/* The pool's threads: which run is next, and when they sleep. */
#include "server/sched/pool.h"

#include <stdio.h>

#include "server/sched/sched_impl.h"

/* ---- sleeping and waking ---- */

void ifd_pool_tell(struct ifd_pool *pool)
{
    (void)atomic_fetch_add_explicit(&pool->news, 1, memory_order_release);
}

static void wake(struct ifd_pool_worker *worker)
{
    worker->is_woken = true;
    ifd_cond_signal(&worker->wake);
}

void ifd_pool_wake_one(struct ifd_pool *pool)
{
    struct ifd_pool_worker *worker = pool->sleeper;
    if (worker) {
        pool->sleeper = worker->next;
        wake(worker);
    }
}

void ifd_pool_wake_all(struct ifd_pool *pool)
{
    ifd_pool_tell(pool);
    while (pool->sleeper) {
        ifd_pool_wake_one(pool);
    }
}

/* After a wake-up in time that nobody asked for. */
static void leave_sleepers(struct ifd_pool *pool, const struct ifd_pool_worker *worker)
{
    struct ifd_pool_worker **at = &pool->sleeper;
    while (*at != worker) {
        at = &(*at)->next;
    }
    *at = worker->next;
}

/* Sleeps until it is woken or until_ns has come. One thread is enough to wait for a time. */
static void sleep_until(struct ifd_pool_worker *worker, uint64_t until_ns)
{
    struct ifd_pool *pool = worker->pool;
    const bool is_timed = until_ns < pool->timed_until_ns;
    worker->is_woken = false;
    worker->next = pool->sleeper;
    pool->sleeper = worker;
    if (is_timed) {
        pool->timed_until_ns = until_ns;
    }
    while (!worker->is_woken) {
        if (!is_timed) {
            ifd_cond_wait(&worker->wake, &pool->mutex);
        } else if (!ifd_cond_wait_until(&worker->wake, &pool->mutex, until_ns) &&
                   !worker->is_woken) {
            leave_sleepers(pool, worker);
            worker->is_woken = true;
        }
    }
    if (is_timed && pool->timed_until_ns == until_ns) {
        pool->timed_until_ns = UINT64_MAX;
    }
}

/* Spins until there is news. */
static void look_out(struct ifd_pool *pool)
{
    const unsigned seen = atomic_load_explicit(&pool->news, memory_order_relaxed);
    const uint64_t until_ns = pool->awake_until_ns;
    pool->awake_until_ns = 0; /* only one thread spins, once */
    pool->is_watched = true;
    ifd_mutex_unlock(&pool->mutex);
    while (atomic_load_explicit(&pool->news, memory_order_acquire) == seen &&
           ifd_now_ns(pool->options.clock) < until_ns) {
        ifd_relax();
    }
    ifd_mutex_lock(&pool->mutex);
    pool->is_watched = false;
}

/* ---- choosing ---- */

bool ifd_pool_can_run(const struct ifd_pool *pool, const struct ifd_lane *lane)
{
    return lane->is_listed && lane->idle_count > 0 &&
           (lane->runner[0]->waits || pool->computing < pool->options.cores);
}

static bool has_work(const struct ifd_pool *pool)
{
    const struct ifd_lane *lane = pool->first;
    while (lane && !ifd_pool_can_run(pool, lane)) {
        lane = lane->next;
    }
    return lane != NULL;
}

void ifd_pool_wake(struct ifd_pool *pool)
{
    ifd_mutex_lock(&pool->mutex);
    if (!pool->is_watched && has_work(pool)) {
        ifd_pool_wake_one(pool);
    }
    ifd_mutex_unlock(&pool->mutex);
}

/* The lane with the smallest share that has a run now. NULL: there is none until *until_ns. */
static struct ifd_lane *choose(const struct ifd_pool *pool, struct ifd_job **job,
                               uint64_t *until_ns)
{
    struct ifd_lane *best = NULL;
    *until_ns = UINT64_MAX;
    for (struct ifd_lane *lane = pool->first; lane; lane = lane->next) {
        if (!ifd_pool_can_run(pool, lane) || (best && lane->share_ns >= best->share_ns)) {
            continue;
        }
        const struct ifd_batch_choice choice = ifd_queue_choose(&lane->queue, job);
        if (choice.take > 0) {
            best = lane;
        } else if (choice.wait_until_ns < *until_ns) {
            *until_ns = choice.wait_until_ns;
        }
    }
    return best;
}

/* Time goes on between two looks at a lane: the deadline of its jobs may come. */
static struct ifd_lane *choose_jobs(const struct ifd_pool *pool, struct ifd_lane_run *run,
                                    uint64_t *until_ns)
{
    struct ifd_lane *lane = choose(pool, run->job, until_ns);
    run->count = lane ? ifd_queue_choose(&lane->queue, run->job).take : 0;
    while (lane && run->count == 0) {
        lane = choose(pool, run->job, until_ns);
        run->count = lane ? ifd_queue_choose(&lane->queue, run->job).take : 0;
    }
    return lane;
}

static bool take(struct ifd_pool *pool, struct ifd_lane_run *run, uint64_t *until_ns)
{
    struct ifd_lane *lane = choose_jobs(pool, run, until_ns);
    if (!lane) {
        return false;
    }
    ifd_queue_take(&lane->queue, run->job, run->count);
    run->turn = ifd_lane_begin(lane);
    pool->computing += !run->turn.runner->waits;
    ifd_lane_relist(lane);
    return true;
}

/* ---- threads ---- */

static void work(void *arg);

/* The mutex is held. */
static enum ifd_code start_thread(struct ifd_pool *pool, struct ifd_err *err)
{
    char name[24];
    struct ifd_pool_worker *worker = &pool->worker[pool->started];
    (void)snprintf(name, sizeof(name), "infer-%u", pool->started);
    worker->pool = pool;
    worker->seen = pool->probes;
    ifd_cond_init(&worker->wake);
    const enum ifd_code code =
        ifd_thread_start(&worker->thread, name, work, worker, pool->options.alloc, err);
    if (code) {
        ifd_cond_finish(&worker->wake);
    } else {
        pool->started++;
    }
    return code;
}

static void pass_probe(struct ifd_pool_worker *worker)
{
    struct ifd_pool *pool = worker->pool;
    if (worker->seen < pool->probes) {
        worker->seen = pool->probes;
        pool->probe_away--;
        if (pool->probe_away == 0) {
            ifd_completions_push(pool->options.completions, pool->probe);
        }
    }
}

/* Waits for a run. False: the pool ends. */
static bool wait_for_run(struct ifd_pool_worker *worker, struct ifd_lane_run *run)
{
    struct ifd_pool *pool = worker->pool;
    uint64_t until_ns = 0;
    for (;;) {
        pass_probe(worker);
        if (take(pool, run, &until_ns)) {
            return true;
        }
        if (pool->is_stopping) {
            return false;
        }
        if (ifd_now_ns(pool->options.clock) < pool->awake_until_ns) {
            look_out(pool);
        } else {
            sleep_until(worker, until_ns);
        }
    }
}

/* What is left may be a run for another thread; and one that only waits takes no core from it. */
static void call_others(struct ifd_pool *pool, const struct ifd_runner *runner)
{
    if (has_work(pool)) {
        ifd_pool_wake_one(pool);
    }
    if (runner->waits && !pool->sleeper && pool->started < pool->count) {
        (void)start_thread(pool, NULL); /* without it, runs wait for each other */
    }
}

static void work(void *arg)
{
    struct ifd_pool_worker *worker = arg;
    struct ifd_pool *pool = worker->pool;
    struct ifd_lane_run run;
    ifd_mutex_lock(&pool->mutex);
    while (wait_for_run(worker, &run)) {
        call_others(pool, run.turn.runner);
        ifd_mutex_unlock(&pool->mutex);
        const uint64_t took_ns = ifd_lane_run(&run);
        ifd_mutex_lock(&pool->mutex);
        pool->computing -= !run.turn.runner->waits;
        ifd_lane_end(&run.turn, took_ns);
    }
    ifd_mutex_unlock(&pool->mutex);
}

void ifd_pool_probe(struct ifd_pool *pool, struct ifd_completion *probe)
{
    ifd_mutex_lock(&pool->mutex);
    pool->probe = probe;
    pool->probes++;
    pool->probe_away = pool->started;
    ifd_pool_wake_all(pool);
    ifd_mutex_unlock(&pool->mutex);
}

static size_t pool_bytes(uint32_t count)
{
    return sizeof(struct ifd_pool) + count * sizeof(struct ifd_pool_worker);
}

enum ifd_code ifd_pool_create(const struct ifd_pool_options *options, struct ifd_pool **ret_pool,
                              struct ifd_err *err)
{
    const uint32_t count = options->cores + IFD_POOL_WAITERS;
    struct ifd_pool *pool = ifd_acquire_zeroed(options->alloc, 1, pool_bytes(count));
    if (!pool) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %u threads", count);
    }
    pool->options = *options;
    pool->count = count;
    pool->timed_until_ns = UINT64_MAX;
    ifd_mutex_init(&pool->mutex);
    ifd_cond_init(&pool->drained);
    enum ifd_code code = IFD_OK;
    ifd_mutex_lock(&pool->mutex);
    while (!code && pool->started < options->cores) {
        code = start_thread(pool, err);
    }
    ifd_mutex_unlock(&pool->mutex);
    if (code) {
        ifd_pool_destroy(pool);
        return code;
    }
    *ret_pool = pool;
    return IFD_OK;
}

void ifd_pool_destroy(struct ifd_pool *pool)
{
    if (!pool) {
        return;
    }
    ifd_mutex_lock(&pool->mutex);
    pool->is_stopping = true;
    ifd_pool_wake_all(pool);
    ifd_mutex_unlock(&pool->mutex);
    for (uint32_t i = 0; i < pool->started; i++) {
        ifd_thread_join(&pool->worker[i].thread);
        ifd_cond_finish(&pool->worker[i].wake);
    }
    ifd_cond_finish(&pool->drained);
    ifd_mutex_finish(&pool->mutex);
    ifd_release(pool->options.alloc, pool, pool_bytes(pool->count));
}

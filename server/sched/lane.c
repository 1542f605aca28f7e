/* Lanes: what a model brings to the pool, and how its jobs run. */
#include "server/sched/lane.h"

#include "server/sched/sched_impl.h"

/* ---- life ---- */

static size_t lane_bytes(uint32_t count)
{
    return sizeof(struct ifd_lane) + 2 * count * sizeof(struct ifd_runner *);
}

enum ifd_code ifd_lane_create(struct ifd_pool *pool, const struct ifd_lane_options *options,
                              struct ifd_runner *const *runner, uint32_t count,
                              struct ifd_lane **ret_lane, struct ifd_err *err)
{
    struct ifd_lane *lane = ifd_acquire_zeroed(options->alloc, 1, lane_bytes(count));
    if (!lane) {
        for (uint32_t i = 0; i < count; i++) {
            runner[i]->destroy(runner[i]);
        }
        return ifd_fail(err, IFD_NOMEM, "no memory for %u instances", count);
    }
    lane->pool = pool;
    lane->options = *options;
    lane->count = lane->idle_count = count;
    lane->idle = lane->runner + count;
    for (uint32_t i = 0; i < count; i++) {
        lane->runner[i] = runner[i];
        lane->idle[count - 1 - i] = runner[i];
    }
    ifd_queue_init(&lane->queue, &options->rules, options->capacity, pool->options.clock);
    ifd_mutex_init(&lane->order);
    atomic_init(&lane->core, -1);
    *ret_lane = lane;
    return IFD_OK;
}

static bool is_drained(const struct ifd_lane *lane)
{
    return lane->queue.count == 0 && lane->idle_count == lane->count;
}

/* The mutex is held. */
static void tell_drained(struct ifd_lane *lane)
{
    if (lane->queue.is_closed && is_drained(lane)) {
        ifd_cond_broadcast(&lane->pool->drained);
    }
}

void ifd_lane_close(struct ifd_lane *lane)
{
    struct ifd_pool *pool = lane->pool;
    ifd_mutex_lock(&pool->mutex);
    lane->queue.is_closed = true;
    tell_drained(lane);
    ifd_pool_wake_one(pool);
    ifd_mutex_unlock(&pool->mutex);
}

void ifd_lane_destroy(struct ifd_lane *lane)
{
    if (!lane) {
        return;
    }
    struct ifd_pool *pool = lane->pool;
    ifd_lane_close(lane);
    ifd_mutex_lock(&pool->mutex);
    while (!is_drained(lane)) {
        ifd_cond_wait(&pool->drained, &pool->mutex);
    }
    ifd_mutex_unlock(&pool->mutex);
    for (uint32_t i = 0; i < lane->count; i++) {
        lane->runner[i]->destroy(lane->runner[i]);
    }
    ifd_mutex_finish(&lane->order);
    ifd_release(lane->options.alloc, lane, lane_bytes(lane->count));
}

/* ---- the queue ---- */

void ifd_lane_relist(struct ifd_lane *lane)
{
    struct ifd_pool *pool = lane->pool;
    const bool has_jobs = lane->queue.count > 0;
    if (has_jobs == lane->is_listed) {
        return;
    }
    if (has_jobs) {
        lane->previous = pool->last;
        lane->next = NULL;
        *(pool->last ? &pool->last->next : &pool->first) = lane;
        pool->last = lane;
        /* What it did not use while it was idle is lost. */
        lane->share_ns = lane->share_ns > pool->share_ns ? lane->share_ns : pool->share_ns;
    } else {
        *(lane->previous ? &lane->previous->next : &pool->first) = lane->next;
        *(lane->next ? &lane->next->previous : &pool->last) = lane->previous;
    }
    lane->is_listed = has_jobs;
}

enum ifd_code ifd_lane_push(struct ifd_lane *lane, struct ifd_job *job, struct ifd_err *err)
{
    struct ifd_pool *pool = lane->pool;
    ifd_mutex_lock(&pool->mutex);
    const enum ifd_code code = ifd_queue_push(&lane->queue, job, err);
    if (!code) {
        ifd_lane_relist(lane);
        ifd_pool_tell(pool);
    }
    ifd_mutex_unlock(&pool->mutex);
    return code;
}

bool ifd_lane_remove(struct ifd_lane *lane, struct ifd_job *job)
{
    ifd_mutex_lock(&lane->pool->mutex);
    const bool was_queued = ifd_queue_remove(&lane->queue, job);
    ifd_lane_relist(lane);
    tell_drained(lane);
    ifd_mutex_unlock(&lane->pool->mutex);
    return was_queued;
}

static struct ifd_job *remove_jobs(struct ifd_lane *lane,
                                   struct ifd_job *(*from)(struct ifd_queue *queue))
{
    ifd_mutex_lock(&lane->pool->mutex);
    struct ifd_job *list = from(&lane->queue);
    ifd_lane_relist(lane);
    tell_drained(lane);
    ifd_mutex_unlock(&lane->pool->mutex);
    return list;
}

struct ifd_job *ifd_lane_expire(struct ifd_lane *lane)
{
    return remove_jobs(lane, ifd_queue_expire);
}

struct ifd_job *ifd_lane_clear(struct ifd_lane *lane)
{
    return remove_jobs(lane, ifd_queue_clear);
}

uint32_t ifd_lane_count(struct ifd_lane *lane)
{
    ifd_mutex_lock(&lane->pool->mutex);
    const uint32_t count = lane->queue.count;
    ifd_mutex_unlock(&lane->pool->mutex);
    return count;
}

uint32_t ifd_lane_capacity(const struct ifd_lane *lane)
{
    return lane->queue.common.capacity;
}

void ifd_lane_hurry(struct ifd_lane *lane)
{
    ifd_mutex_lock(&lane->pool->mutex);
    if (!lane->queue.is_hurried) {
        lane->queue.is_hurried = true;
        ifd_pool_wake_one(lane->pool);
    }
    ifd_mutex_unlock(&lane->pool->mutex);
}

/* ---- runs ---- */

struct ifd_lane_turn ifd_lane_begin(struct ifd_lane *lane)
{
    struct ifd_pool *pool = lane->pool;
    pool->share_ns = lane->share_ns > pool->share_ns ? lane->share_ns : pool->share_ns;
    lane->share_ns += (double)lane->run_ns * lane->options.priority;
    pool->running++;
    return (struct ifd_lane_turn){
        .lane = lane, .runner = lane->idle[--lane->idle_count], .charged_ns = lane->run_ns};
}

void ifd_lane_end(const struct ifd_lane_turn *turn, uint64_t took_ns)
{
    struct ifd_lane *lane = turn->lane;
    lane->share_ns += ((double)took_ns - (double)turn->charged_ns) * lane->options.priority;
    lane->run_ns = took_ns;
    lane->idle[lane->idle_count++] = turn->runner;
    lane->pool->running--;
    tell_drained(lane);
}

static uint64_t run_jobs(const struct ifd_lane_turn *turn, struct ifd_job *const *job,
                         uint32_t count)
{
    const struct ifd_clock *clock = turn->lane->pool->options.clock;
    struct ifd_err err = {0};
    int64_t batch = 0;
    uint64_t started_ns = ifd_now_ns(clock);
    atomic_store_explicit(&turn->lane->core, ifd_thread_core(), memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        job[i]->started_ns = started_ns;
        job[i]->computed_ns = 0;
        batch += job[i]->batch;
    }
    enum ifd_code code = turn->runner->run(turn->runner, job, count, &err);
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
    return finished_ns - started_ns;
}

/* Keeps the jobs, then completes those that wait for no earlier job. Pushes under the lock, so that
 * two threads cannot overtake each other. */
static void complete_in_order(struct ifd_lane *lane, struct ifd_job *const *job, uint32_t count)
{
    ifd_mutex_lock(&lane->order);
    struct ifd_job **at = &lane->done;
    for (uint32_t i = 0; i < count; i++) {
        while (*at && (*at)->ticket < job[i]->ticket) {
            at = &(*at)->next;
        }
        job[i]->next = *at;
        *at = job[i];
    }
    while (lane->done && lane->done->ticket == lane->next_ticket) {
        struct ifd_job *first = lane->done;
        lane->done = first->next;
        first->next = NULL;
        lane->next_ticket++;
        ifd_completions_push(lane->pool->options.completions, &first->completion);
    }
    ifd_mutex_unlock(&lane->order);
}

/* If a batch fails, one job may be the cause: runs each job alone. */
uint64_t ifd_lane_run(const struct ifd_lane_run *run)
{
    struct ifd_lane *lane = run->turn.lane;
    uint64_t took_ns = run_jobs(&run->turn, run->job, run->count);
    if (run->count > 1 && run->job[0]->code) {
        for (uint32_t i = 0; i < run->count; i++) {
            took_ns += run_jobs(&run->turn, &run->job[i], 1);
        }
    }
    if (lane->options.in_order) {
        complete_in_order(lane, run->job, run->count);
        return took_ns;
    }
    for (uint32_t i = 0; i < run->count; i++) {
        ifd_completions_push(lane->pool->options.completions, &run->job[i]->completion);
    }
    return took_ns;
}

/* ---- the caller's thread ---- */

bool ifd_lane_is_instant(const struct ifd_lane *lane)
{
    return lane->runner[0]->is_instant;
}

uint32_t ifd_lane_threads(const struct ifd_lane *lane)
{
    return lane->runner[0]->threads;
}

int ifd_lane_core(const struct ifd_lane *lane)
{
    return atomic_load_explicit(&lane->core, memory_order_relaxed);
}

static bool may_run_here(const struct ifd_lane *lane)
{
    return lane->queue.count == 0 && lane->idle_count > 0 && !lane->queue.is_closed &&
           !lane->queue.rules.is_dynamic && !lane->options.in_order && !lane->runner[0]->may_linger;
}

bool ifd_lane_run_here(struct ifd_lane *lane, struct ifd_job *job)
{
    struct ifd_pool *pool = lane->pool;
    struct ifd_lane_turn turn = {.lane = NULL};
    ifd_mutex_lock(&pool->mutex);
    if (may_run_here(lane)) {
        turn = ifd_lane_begin(lane);
    }
    ifd_mutex_unlock(&pool->mutex);
    if (!turn.lane) {
        return false;
    }
    const uint64_t took_ns = run_jobs(&turn, &job, 1);
    if (turn.runner->rest) {
        turn.runner->rest(turn.runner); /* a client on this machine needs a core now */
    }
    job->queued_ns = job->started_ns;
    ifd_mutex_lock(&pool->mutex);
    ifd_lane_end(&turn, took_ns);
    ifd_mutex_unlock(&pool->mutex);
    return true;
}

void ifd_lane_expect(struct ifd_lane *lane)
{
    struct ifd_runner *runner = lane->runner[0];
    if (!runner->expect) {
        return;
    }
    ifd_mutex_lock(&lane->pool->mutex);
    const bool is_idle = lane->pool->running == 0 && !lane->pool->first;
    ifd_mutex_unlock(&lane->pool->mutex);
    if (is_idle) {
        runner->expect(runner);
    }
}

void ifd_lane_stay_awake(struct ifd_lane *lane, uint64_t until_ns)
{
    struct ifd_pool *pool = lane->pool;
    if (ifd_lane_is_instant(lane)) {
        return;
    }
    ifd_mutex_lock(&pool->mutex);
    if (!pool->first && pool->sleeper) {
        pool->awake_until_ns = until_ns;
        ifd_pool_wake_one(pool);
    }
    ifd_mutex_unlock(&pool->mutex);
}

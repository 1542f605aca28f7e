/* Bounded queue with priority levels. batch.c decides which jobs leave together. */
#include "server/sched/queue.h"

#include <string.h>

void ifd_queue_init(struct ifd_queue *queue, const struct ifd_batch_rules *rules, uint32_t capacity,
                    const struct ifd_clock *clock)
{
    *queue = (struct ifd_queue){.rules = *rules,
                                .common = {.capacity = capacity},
                                .clock = clock,
                                .earliest_deadline_ns = UINT64_MAX};
    ifd_mutex_init(&queue->mutex);
    ifd_cond_init(&queue->changed);
}

void ifd_queue_finish(struct ifd_queue *queue)
{
    ifd_cond_finish(&queue->changed);
    ifd_mutex_finish(&queue->mutex);
}

static struct ifd_queue_bound *bound_of(struct ifd_queue *queue, const struct ifd_job *job)
{
    return job->bound ? job->bound : &queue->common;
}

/* Inserts behind all jobs of the same or a lower level. The walk passes less urgent jobs: usually
 * none. */
static void insert(struct ifd_queue *queue, struct ifd_job *job)
{
    struct ifd_job *before = queue->last;
    while (before && before->level > job->level) {
        before = before->previous;
    }
    struct ifd_job *after = before ? before->next : queue->first;
    job->previous = before;
    job->next = after;
    *(before ? &before->next : &queue->first) = job;
    *(after ? &after->previous : &queue->last) = job;
    job->is_queued = true;
    queue->count++;
    bound_of(queue, job)->count++;
}

static void unlink_job(struct ifd_queue *queue, struct ifd_job *job)
{
    *(job->previous ? &job->previous->next : &queue->first) = job->next;
    *(job->next ? &job->next->previous : &queue->last) = job->previous;
    job->previous = job->next = NULL;
    job->is_queued = false;
    queue->count--;
    bound_of(queue, job)->count--;
}

/* Tells spinning takers; sleeping ones are woken separately. The lock is held. */
static void tell(struct ifd_queue *queue)
{
    (void)atomic_fetch_add_explicit(&queue->news, 1, memory_order_release);
}

enum ifd_code ifd_queue_push(struct ifd_queue *queue, struct ifd_job *job, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    ifd_mutex_lock(&queue->mutex);
    const struct ifd_queue_bound *bound = bound_of(queue, job);
    if (queue->is_closed) {
        code = ifd_fail(err, IFD_UNAVAILABLE, "the model is being unloaded");
    } else if (bound->count >= bound->capacity) {
        code = ifd_fail(err, IFD_BUSY, "the model's queue is full: %u requests wait, its maximum",
                        bound->count);
    } else {
        job->queued_ns = ifd_now_ns(queue->clock);
        if (job->deadline_ns && job->deadline_ns < queue->earliest_deadline_ns) {
            queue->earliest_deadline_ns = job->deadline_ns;
        }
        insert(queue, job);
        tell(queue);
    }
    ifd_mutex_unlock(&queue->mutex);
    return code;
}

void ifd_queue_wake(struct ifd_queue *queue)
{
    ifd_mutex_lock(&queue->mutex);
    if (queue->sleepers > 0 && queue->count > 0) {
        ifd_cond_signal(&queue->changed); /* take() passes it on if there is work for more */
    }
    ifd_mutex_unlock(&queue->mutex);
}

void ifd_queue_expect(struct ifd_queue *queue, uint64_t until_ns)
{
    ifd_mutex_lock(&queue->mutex);
    if (queue->count == 0 && queue->sleepers > 0) {
        queue->awake_until_ns = until_ns;
        ifd_cond_signal(&queue->changed);
    }
    ifd_mutex_unlock(&queue->mutex);
}

bool ifd_queue_remove(struct ifd_queue *queue, struct ifd_job *job)
{
    ifd_mutex_lock(&queue->mutex);
    bool is_queued = job->is_queued;
    if (is_queued) {
        unlink_job(queue, job);
    }
    ifd_mutex_unlock(&queue->mutex);
    return is_queued;
}

/* Moves late jobs to the end of the queue, or out of it. The lock is held. */
static struct ifd_job *expire(struct ifd_queue *queue, uint64_t now_ns)
{
    struct ifd_job *expired = NULL, **end = &expired;
    if (now_ns < queue->earliest_deadline_ns) {
        return NULL;
    }
    queue->earliest_deadline_ns = UINT64_MAX;
    struct ifd_job *next = NULL;
    for (struct ifd_job *job = queue->first; job && job->level != IFD_QUEUE_LATE; job = next) {
        next = job->next;
        if (job->deadline_ns && now_ns >= job->deadline_ns) {
            unlink_job(queue, job);
            if (job->lower_at_deadline) {
                job->level = IFD_QUEUE_LATE;
                insert(queue, job);
            } else {
                *end = job;
                end = &job->next;
            }
        } else if (job->deadline_ns && job->deadline_ns < queue->earliest_deadline_ns) {
            queue->earliest_deadline_ns = job->deadline_ns;
        }
    }
    return expired;
}

struct ifd_job *ifd_queue_expire(struct ifd_queue *queue)
{
    ifd_mutex_lock(&queue->mutex);
    struct ifd_job *expired = expire(queue, ifd_now_ns(queue->clock));
    if (queue->is_closed) {
        ifd_cond_broadcast(&queue->changed);
    }
    ifd_mutex_unlock(&queue->mutex);
    return expired;
}

void ifd_queue_hurry(struct ifd_queue *queue)
{
    ifd_mutex_lock(&queue->mutex);
    if (!queue->is_hurried) {
        queue->is_hurried = true;
        ifd_cond_broadcast(&queue->changed);
    }
    ifd_mutex_unlock(&queue->mutex);
}

void ifd_queue_close(struct ifd_queue *queue)
{
    ifd_mutex_lock(&queue->mutex);
    queue->is_closed = true;
    tell(queue);
    ifd_cond_broadcast(&queue->changed);
    ifd_mutex_unlock(&queue->mutex);
}

struct ifd_job *ifd_queue_clear(struct ifd_queue *queue)
{
    struct ifd_job *all = NULL, **end = &all;
    ifd_mutex_lock(&queue->mutex);
    while (queue->first) {
        struct ifd_job *job = queue->first;
        unlink_job(queue, job);
        *end = job;
        end = &job->next;
    }
    ifd_cond_broadcast(&queue->changed); /* a worker may wait for the queue to become empty */
    ifd_mutex_unlock(&queue->mutex);
    return all;
}

uint32_t ifd_queue_count(struct ifd_queue *queue)
{
    ifd_mutex_lock(&queue->mutex);
    uint32_t count = queue->count;
    ifd_mutex_unlock(&queue->mutex);
    return count;
}

bool ifd_queue_is_idle(struct ifd_queue *queue, uint32_t takers)
{
    ifd_mutex_lock(&queue->mutex);
    bool is_idle = queue->count == 0 && queue->sleepers == takers && !queue->is_closed;
    ifd_mutex_unlock(&queue->mutex);
    return is_idle && !queue->rules.is_dynamic;
}

/* Lists the front of the queue in the order of running. The lock is held. Skips a job past its
 * deadline that must not run: the loop removes it. */
static uint32_t look(struct ifd_queue *queue, uint64_t now_ns, struct ifd_job **job,
                     struct ifd_batch_item *item)
{
    uint32_t count = 0;
    uint32_t limit = queue->rules.is_dynamic ? IFD_BATCH_ITEMS_MAX : 1;
    for (struct ifd_job *at = queue->first; at && count < limit; at = at->next) {
        bool is_late = at->deadline_ns && now_ns >= at->deadline_ns && !at->lower_at_deadline;
        if (is_late) {
            continue;
        }
        job[count] = at;
        item[count] = (struct ifd_batch_item){
            .batch = at->batch,
            .queued_ns = at->queued_ns,
            .fits_first = count == 0 || ifd_job_fits(job[0], at),
        };
        count++;
    }
    return count;
}

void ifd_queue_probe(struct ifd_queue *queue)
{
    ifd_mutex_lock(&queue->mutex);
    queue->probes++;
    tell(queue);
    ifd_cond_broadcast(&queue->changed);
    ifd_mutex_unlock(&queue->mutex);
}

/* Spins until there is news. The lock is held on entry and exit. */
static void look_out(struct ifd_queue *queue)
{
    const unsigned seen = atomic_load_explicit(&queue->news, memory_order_relaxed);
    const uint64_t until_ns = queue->awake_until_ns;
    queue->awake_until_ns = 0; /* only one taker spins, once */
    ifd_mutex_unlock(&queue->mutex);
    while (atomic_load_explicit(&queue->news, memory_order_acquire) == seen &&
           ifd_now_ns(queue->clock) < until_ns) {
        ifd_relax();
    }
    ifd_mutex_lock(&queue->mutex);
}

uint32_t ifd_queue_take(struct ifd_queue *queue, struct ifd_job **job, uint64_t *seen)
{
    struct ifd_batch_item item[IFD_BATCH_ITEMS_MAX];
    uint32_t take = 0;
    ifd_mutex_lock(&queue->mutex);
    for (;;) {
        if (*seen < queue->probes) {
            (*seen)++;
            ifd_mutex_unlock(&queue->mutex);
            return IFD_QUEUE_PROBE;
        }
        uint64_t now_ns = ifd_now_ns(queue->clock);
        uint32_t count = queue->count > 0 ? look(queue, now_ns, job, item) : 0;
        struct ifd_batch_choice choice = {0};
        if (count > 0) {
            choice = ifd_batch_choose(&queue->rules, item, count, now_ns,
                                      queue->is_closed || queue->is_hurried);
            take = choice.take;
        }
        if (take > 0 || (queue->is_closed && queue->count == 0)) {
            break;
        }
        if (now_ns < queue->awake_until_ns) {
            look_out(queue);
            continue;
        }
        queue->sleepers++;
        if (choice.wait_until_ns > 0 && choice.wait_until_ns < UINT64_MAX) {
            (void)ifd_cond_wait_until(&queue->changed, &queue->mutex, choice.wait_until_ns);
        } else {
            ifd_cond_wait(&queue->changed, &queue->mutex);
        }
        queue->sleepers--;
    }
    for (uint32_t i = 0; i < take; i++) {
        unlink_job(queue, job[i]);
        job[i]->ticket = queue->tickets++;
    }
    if (queue->count > 0 && queue->sleepers > 0) {
        ifd_cond_signal(&queue->changed); /* what is left may be a run for another worker */
    }
    ifd_mutex_unlock(&queue->mutex);
    return take;
}

/* Bounded queue with priority levels. batch.c decides which jobs leave together. */
#include "server/sched/queue.h"

void ifd_queue_init(struct ifd_queue *queue, const struct ifd_batch_rules *rules, uint32_t capacity,
                    const struct ifd_clock *clock)
{
    *queue = (struct ifd_queue){.rules = *rules,
                                .common = {.capacity = capacity},
                                .clock = clock,
                                .earliest_deadline_ns = UINT64_MAX};
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

enum ifd_code ifd_queue_push(struct ifd_queue *queue, struct ifd_job *job, struct ifd_err *err)
{
    const struct ifd_queue_bound *bound = bound_of(queue, job);
    if (queue->is_closed) {
        return ifd_fail(err, IFD_UNAVAILABLE, "the model is being unloaded");
    }
    if (bound->count >= bound->capacity) {
        return ifd_fail(err, IFD_BUSY, "the model's queue is full: %u requests wait, its maximum",
                        bound->count);
    }
    job->queued_ns = ifd_now_ns(queue->clock);
    if (job->deadline_ns && job->deadline_ns < queue->earliest_deadline_ns) {
        queue->earliest_deadline_ns = job->deadline_ns;
    }
    insert(queue, job);
    return IFD_OK;
}

bool ifd_queue_remove(struct ifd_queue *queue, struct ifd_job *job)
{
    const bool is_queued = job->is_queued;
    if (is_queued) {
        unlink_job(queue, job);
    }
    return is_queued;
}

struct ifd_job *ifd_queue_expire(struct ifd_queue *queue)
{
    const uint64_t now_ns = ifd_now_ns(queue->clock);
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

struct ifd_job *ifd_queue_clear(struct ifd_queue *queue)
{
    struct ifd_job *all = NULL, **end = &all;
    while (queue->first) {
        struct ifd_job *job = queue->first;
        unlink_job(queue, job);
        *end = job;
        end = &job->next;
    }
    return all;
}

static bool is_late(const struct ifd_job *job, uint64_t now_ns)
{
    return job->deadline_ns && now_ns >= job->deadline_ns && !job->lower_at_deadline;
}

/* Jobs that one decision looks at, for all shapes together. Where the first finds no end of the
 * queue, the model cannot keep up: those that were found need not wait for others. */
#define LOOK_MAX 2048

/* Lists what may run with lead, in the order of running. Skips jobs past their deadline that must
 * not run: the loop removes them. Jobs that do not fit wait for a run of their own; where none may
 * overtake, the first of them ends the list. *left: of LOOK_MAX. */
static uint32_t look(const struct ifd_queue *queue, struct ifd_job *lead, uint64_t now_ns,
                     struct ifd_job **job, struct ifd_batch_item *item, uint32_t *left)
{
    uint32_t count = 0;
    int64_t total = 0;
    uint32_t limit = queue->rules.is_dynamic ? IFD_BATCH_ITEMS_MAX : 1;
    bool goes_on = true;
    for (struct ifd_job *at = lead; at && goes_on && *left > 0 && count < limit; at = at->next) {
        const bool fits = at == lead || ifd_job_fits(lead, at);
        --*left;
        if (is_late(at, now_ns) || (!fits && !queue->rules.in_order)) {
            continue;
        }
        job[count] = at;
        item[count] = (struct ifd_batch_item){
            .batch = at->batch, .queued_ns = at->queued_ns, .fits_first = fits};
        count++;
        total += at->batch;
        goes_on = fits && total < queue->rules.max_batch;
    }
    return count;
}

/* Shapes whose runs are looked for, those of the most urgent and oldest jobs. */
#define SHAPES_MAX 8

/* Does the job fit one of these? */
static bool fits_any(const struct ifd_job *job, struct ifd_job *const *lead, uint32_t count)
{
    bool fits = false;
    for (uint32_t i = 0; i < count && !fits; i++) {
        fits = ifd_job_fits(lead[i], job);
    }
    return fits;
}

/* The first in the queue leads the next run, unless it waits for others of its shape, and the run
 * of another shape is ready. So no shape starves: its oldest job comes to the front. */
struct ifd_batch_choice ifd_queue_choose(const struct ifd_queue *queue, struct ifd_job **job)
{
    struct ifd_batch_item item[IFD_BATCH_ITEMS_MAX];
    struct ifd_job *lead[SHAPES_MAX];
    const struct ifd_batch_rules *rules = &queue->rules;
    const uint64_t now_ns = ifd_now_ns(queue->clock);
    const bool is_hurried = queue->is_closed || queue->is_hurried;
    const uint32_t most = rules->is_dynamic && !rules->in_order ? SHAPES_MAX : 1;
    struct ifd_batch_choice choice = {.wait_until_ns = UINT64_MAX};
    uint32_t leads = 0, left = LOOK_MAX;
    for (struct ifd_job *at = queue->first; at && leads < most && left > 0 && choice.take == 0;
         at = at->next) {
        if (is_late(at, now_ns) || fits_any(at, lead, leads)) {
            continue;
        }
        lead[leads++] = at;
        const uint32_t count = look(queue, at, now_ns, job, item, &left);
        const bool is_endless = leads == 1 && left == 0;
        const struct ifd_batch_choice own =
            ifd_batch_choose(rules, item, count, now_ns, is_hurried || at->is_alone || is_endless);
        choice.take = own.take;
        if (own.take == 0 && own.wait_until_ns < choice.wait_until_ns) {
            choice.wait_until_ns = own.wait_until_ns;
        }
    }
    return choice;
}

void ifd_queue_take(struct ifd_queue *queue, struct ifd_job *const *job, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        unlink_job(queue, job[i]);
        job[i]->ticket = queue->tickets++;
    }
}

/* Chunks of steps: claimed, run, waited for. */
#include "backends/cpuacc/schedule/team.h"

#include "engine/base/thread.h"

/* Polls this often (some µs) before it takes a part of one chunk from a thread that has not begun:
 * taking it costs the owner a cache line. */
#define PATIENCE 200

/* ---- what is left of a part: the turn it is for, and chunks [front, back) ---- */

struct left {
    uint32_t turn, front, back;
};

static unsigned long long pack(struct left left)
{
    return (unsigned long long)left.turn << 32 | left.front << 16 | left.back;
}

static struct left unpack(unsigned long long word)
{
    return (struct left){(uint32_t)(word >> 32), (uint32_t)(word >> 16) & 0xffff,
                         (uint32_t)word & 0xffff};
}

/* The owner's first call takes all but a few chunks, as fewer calls are cheaper. Other calls take
 * half of what is left. */
static uint32_t choose_count(uint32_t left, uint32_t keep)
{
    return left > keep ? left - keep : (left + 1) / 2;
}

/* A thread that others helped keeps more of its next part for them, up to a half. */
static uint32_t choose_keep(uint32_t keep, uint32_t chunks, uint32_t lost)
{
    if (lost == 0) {
        return keep > 1 ? keep / 2 : 1;
    }
    return lost >= keep && keep < chunks / 2 ? 2 * keep : keep;
}

/* Claims some of the rest of owner's part; false if nothing is left. The first to come in a turn
 * begins the part. Data of chunks is published by team->done. */
static bool claim(const struct ifd_acc_worker *worker, uint32_t chunks, uint32_t owner,
                  struct ifd_acc_range *ret_chunks)
{
    atomic_ullong *word = &worker->team->part[owner].left;
    unsigned long long seen = atomic_load_explicit(word, memory_order_relaxed);
    const bool is_own = owner == worker->thread;
    struct left left, rest;
    do {
        left = unpack(seen);
        if (left.turn > worker->turn) {
            return false; /* this thread is late: others have gone on */
        }
        if (left.turn < worker->turn) {
            left = (struct left){worker->turn, 0, chunks};
        }
        const uint32_t count =
            choose_count(left.back - left.front, is_own ? worker->keep : UINT32_MAX);
        if (count == 0) {
            return false;
        }
        rest = left;
        if (is_own) {
            rest.front += count;
            *ret_chunks = (struct ifd_acc_range){left.front, rest.front};
        } else {
            rest.back -= count;
            *ret_chunks = (struct ifd_acc_range){rest.back, left.back};
        }
    } while (!atomic_compare_exchange_weak_explicit(word, &seen, pack(rest), memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* ---- steps ---- */

static bool is_done(const struct ifd_acc_worker *worker)
{
    return atomic_load_explicit(&worker->team->done, memory_order_acquire) >= worker->due;
}

static void report(const struct ifd_acc_worker *worker, uint64_t chunks)
{
    if (chunks > 0) {
        (void)atomic_fetch_add_explicit(&worker->team->done, chunks, memory_order_acq_rel);
    }
}

/* Runs the chunks that this thread gets of owner's part. */
static void run_part(struct ifd_acc_worker *worker, const struct ifd_acc_step *step,
                     struct ifd_acc_frame *frame, uint32_t owner)
{
    const size_t first = (size_t)owner * step->chunks;
    struct ifd_acc_range range;
    uint32_t count = 0;
    frame->goes_on = false;
    while (count < step->chunks && claim(worker, step->chunks, owner, &range)) {
        frame->chunk = (struct ifd_acc_range){first + range.begin, first + range.end};
        step->run(step, frame);
        frame->goes_on = owner == worker->thread;
        count += (uint32_t)(range.end - range.begin);
    }
    if (owner == worker->thread && step->chunks > 1) {
        worker->keep = choose_keep(worker->keep, step->chunks, step->chunks - count);
    }
    report(worker, count);
}

static void help(struct ifd_acc_worker *worker, const struct ifd_acc_step *step,
                 struct ifd_acc_frame *frame)
{
    for (uint32_t i = 0; i < PATIENCE && step->chunks == 1 && !is_done(worker); i++) {
        ifd_relax_more(i);
    }
    for (uint32_t i = 1; i < frame->threads && !is_done(worker); i++) {
        run_part(worker, step, frame, (worker->thread + i) % frame->threads);
    }
}

struct ifd_acc_worker ifd_acc_worker_init(struct ifd_acc_team *team, uint32_t thread,
                                          uint32_t threads)
{
    __builtin_prefetch(&team->part[thread], 1); /* the first thread has written it */
    return (struct ifd_acc_worker){.team = team, .thread = thread, .threads = threads, .keep = 1};
}

/* A step for the first thread alone; the others wait if threads join behind it. */
static void run_alone(struct ifd_acc_worker *worker, const struct ifd_acc_step *step,
                      struct ifd_acc_frame *frame)
{
    frame->chunks = 1;
    frame->chunk = (struct ifd_acc_range){0, 1};
    frame->goes_on = false;
    if (worker->thread == 0) {
        step->run(step, frame);
    }
    if (worker->threads > 1 && step->joins) {
        worker->due++;
        report(worker, worker->thread == 0);
    }
}

static void run_shared(struct ifd_acc_worker *worker, const struct ifd_acc_step *step,
                       struct ifd_acc_frame *frame)
{
    frame->chunks = (size_t)frame->threads * step->chunks;
    worker->turn++;
    worker->due += frame->chunks;
    if (worker->thread < frame->threads) {
        run_part(worker, step, frame, worker->thread);
        help(worker, step, frame);
    }
}

void ifd_acc_worker_step(struct ifd_acc_worker *worker, const struct ifd_acc_step *step,
                         struct ifd_acc_frame *frame)
{
    frame->thread = worker->thread;
    frame->threads = worker->threads < step->max_threads ? worker->threads : step->max_threads;
    if (frame->threads == 1) {
        run_alone(worker, step, frame);
    } else {
        run_shared(worker, step, frame);
    }
    for (uint32_t i = 0; step->joins && !is_done(worker); i++) {
        ifd_relax_more(i);
    }
}

/* ---- memory ---- */

size_t ifd_acc_team_bytes(uint32_t threads)
{
    return sizeof(struct ifd_acc_team) + threads * sizeof(((struct ifd_acc_team *)NULL)->part[0]);
}

struct ifd_acc_team *ifd_acc_team_init(void *memory, uint32_t threads)
{
    struct ifd_acc_team *team = memory;
    atomic_init(&team->done, 0);
    for (uint32_t i = 0; i < threads; i++) {
        atomic_init(&team->part[i].left, 0);
    }
    return team;
}

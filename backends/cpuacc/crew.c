/* Pieces of steps: claimed, run, waited for. */
#include "backends/cpuacc/crew.h"

#include "engine/base/thread.h"

/* Looks this often before it takes a part that is one piece from a thread that has not begun: some µs. Looking there costs
 * the owner a cache line. */
#define PATIENCE 200

/* ---- what is left of a part: the turn it is for, and pieces [front, back) ---- */

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

/* The owner's first call is for all but a few pieces, as fewer calls are cheaper; other calls are for half of what is left. */
static uint32_t choose_count(uint32_t left, uint32_t keep)
{
    return left > keep ? left - keep : (left + 1) / 2;
}

/* A thread that others had to help keeps more of its next part for them, up to a half. */
static uint32_t choose_keep(uint32_t keep, uint32_t pieces, uint32_t lost)
{
    if (lost == 0) {
        return keep > 1 ? keep / 2 : 1;
    }
    return lost >= keep && keep < pieces / 2 ? 2 * keep : keep;
}

/* Some of what is left of owner's part, or nothing. Whoever comes first in a turn begins it. What the pieces read and write is
 * handed on by crew->done. */
static bool claim(const struct ifd_acc_hand *hand, uint32_t pieces, uint32_t owner,
                  struct ifd_acc_range *ret_pieces)
{
    atomic_ullong *word = &hand->crew->part[owner].left;
    unsigned long long seen = atomic_load_explicit(word, memory_order_relaxed);
    const bool is_own = owner == hand->thread;
    struct left left, rest;
    do {
        left = unpack(seen);
        if (left.turn > hand->turn) {
            return false; /* this thread is late: others have gone on */
        }
        if (left.turn < hand->turn) {
            left = (struct left){hand->turn, 0, pieces};
        }
        const uint32_t count =
            choose_count(left.back - left.front, is_own ? hand->keep : UINT32_MAX);
        if (count == 0) {
            return false;
        }
        rest = left;
        if (is_own) {
            rest.front += count;
            *ret_pieces = (struct ifd_acc_range){left.front, rest.front};
        } else {
            rest.back -= count;
            *ret_pieces = (struct ifd_acc_range){rest.back, left.back};
        }
    } while (!atomic_compare_exchange_weak_explicit(word, &seen, pack(rest), memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* ---- steps ---- */

static bool is_done(const struct ifd_acc_hand *hand)
{
    return atomic_load_explicit(&hand->crew->done, memory_order_acquire) >= hand->due;
}

static void report(const struct ifd_acc_hand *hand, uint64_t pieces)
{
    if (pieces > 0) {
        (void)atomic_fetch_add_explicit(&hand->crew->done, pieces, memory_order_acq_rel);
    }
}

/* Runs what this thread gets of owner's part. */
static void run_part(struct ifd_acc_hand *hand, const struct ifd_acc_step *step,
                     struct ifd_acc_frame *frame, uint32_t owner)
{
    const size_t first = (size_t)owner * step->pieces;
    struct ifd_acc_range range;
    uint32_t count = 0;
    frame->goes_on = false;
    while (count < step->pieces && claim(hand, step->pieces, owner, &range)) {
        frame->piece = (struct ifd_acc_range){first + range.begin, first + range.end};
        step->run(step, frame);
        frame->goes_on = owner == hand->thread;
        count += (uint32_t)(range.end - range.begin);
    }
    if (owner == hand->thread && step->pieces > 1) {
        hand->keep = choose_keep(hand->keep, step->pieces, step->pieces - count);
    }
    report(hand, count);
}

static void help(struct ifd_acc_hand *hand, const struct ifd_acc_step *step,
                 struct ifd_acc_frame *frame)
{
    for (uint32_t i = 0; i < PATIENCE && step->pieces == 1 && !is_done(hand); i++) {
        ifd_relax_more(i);
    }
    for (uint32_t i = 1; i < frame->threads && !is_done(hand); i++) {
        run_part(hand, step, frame, (hand->thread + i) % frame->threads);
    }
}

struct ifd_acc_hand ifd_acc_hand_init(struct ifd_acc_crew *crew, uint32_t thread, uint32_t threads)
{
    __builtin_prefetch(&crew->part[thread], 1); /* the first thread has written it */
    return (struct ifd_acc_hand){.crew = crew, .thread = thread, .threads = threads, .keep = 1};
}

/* A step for the first thread alone; the others wait where they would. */
static void run_alone(struct ifd_acc_hand *hand, const struct ifd_acc_step *step,
                      struct ifd_acc_frame *frame)
{
    frame->pieces = 1;
    frame->piece = (struct ifd_acc_range){0, 1};
    frame->goes_on = false;
    if (hand->thread == 0) {
        step->run(step, frame);
    }
    if (hand->threads > 1 && step->joins) {
        hand->due++;
        report(hand, hand->thread == 0);
    }
}

static void run_shared(struct ifd_acc_hand *hand, const struct ifd_acc_step *step,
                       struct ifd_acc_frame *frame)
{
    frame->pieces = (size_t)frame->threads * step->pieces;
    hand->turn++;
    hand->due += frame->pieces;
    if (hand->thread < frame->threads) {
        run_part(hand, step, frame, hand->thread);
        help(hand, step, frame);
    }
}

void ifd_acc_hand_step(struct ifd_acc_hand *hand, const struct ifd_acc_step *step,
                       struct ifd_acc_frame *frame)
{
    frame->thread = hand->thread;
    frame->threads = hand->threads < step->max_threads ? hand->threads : step->max_threads;
    if (frame->threads == 1) {
        run_alone(hand, step, frame);
    } else {
        run_shared(hand, step, frame);
    }
    for (uint32_t i = 0; step->joins && !is_done(hand); i++) {
        ifd_relax_more(i);
    }
}

/* ---- memory ---- */

size_t ifd_acc_crew_bytes(uint32_t threads)
{
    return sizeof(struct ifd_acc_crew) + threads * sizeof(((struct ifd_acc_crew *)NULL)->part[0]);
}

struct ifd_acc_crew *ifd_acc_crew_init(void *memory, uint32_t threads)
{
    struct ifd_acc_crew *crew = memory;
    atomic_init(&crew->done, 0);
    for (uint32_t i = 0; i < threads; i++) {
        atomic_init(&crew->part[i].left, 0);
    }
    return crew;
}

/* Which steps several threads share, and where they join.
 *
 * Sharing a step costs a barrier, and data that one thread wrote and another reads moves between
 * their caches, which takes longer than computing it where steps are small. So the decision is made
 * for a partition as a whole: dynamic programming over its steps with two states, one thread or
 * all. Times are estimates for this kind of CPU; only their ratios matter much. */
#include "backends/cpuacc/schedule/threads.h"

#define JOIN_NS      400.0  /* a barrier */
#define WAKE_NS      3000.0 /* calling the team, which does not spin any more */
#define SHARE_NS     2000.0 /* one more thread pays from here on */
#define STEP_NS      100.0
#define CHUNK_NS     4000.0 /* of a thread's part, at least */
#define BYTES_PER_NS 16.0   /* read and written by one core */
#define MOVES_PER_NS 6.0    /* from cache to cache */

enum state { ALONE, SHARED, STATES };

/* The cheapest path to the end of a step in a state. */
struct way {
    double ns;
    enum state before; /* of the step before */
};

/* Speed of a core, relative to the one whose rates the steps name. */
static double speed(uint32_t flags)
{
    return flags & IFD_CPU_AVX512_VNNI             ? 1.0
           : flags & IFD_CPU_AVX512                ? 0.7
           : flags & (IFD_CPU_AVX2 | IFD_CPU_I8MM) ? 0.4
           : flags & IFD_CPU_DOTPROD               ? 0.25
           : flags & IFD_CPU_NEON                  ? 0.1
                                                   : 0.05;
}

static double bytes_of(const struct ifd_acc_lowering *lowering, uint32_t value)
{
    return value == IFD_NO_VALUE ? 0.0 : (double)lowering->base.value[value].bytes;
}

static double bytes_read(const struct ifd_acc_lowering *lowering, uint32_t step)
{
    double bytes = 0.0;
    for (uint32_t i = 0; i < IFD_ACC_STEP_INPUTS; i++) {
        bytes += bytes_of(lowering, lowering->draft[step].in[i]);
    }
    return bytes;
}

/* One thread's time for a step. */
static double step_ns(const struct ifd_acc_lowering *lowering, uint32_t i)
{
    const struct ifd_acc_draft *step = &lowering->draft[i];
    const double bytes = bytes_read(lowering, i) + bytes_of(lowering, lowering->draft[i].out);
    const double products = step->rate > 0.0f ? (double)step->info.macs / (double)step->rate : 0.0;
    return STEP_NS + (products + bytes / BYTES_PER_NS) / speed(lowering->host->cpu.flags);
}

/* Extends the paths by a step that takes ns on one thread. moved: bytes of its input that are in
 * another cache if the state changes. */
static void walk(const struct way *from, double ns, bool can_share, double moved, struct way *to)
{
    const double own[STATES] = {[ALONE] = ns, [SHARED] = ns / 2.0 + JOIN_NS};
    const double change = JOIN_NS + moved / 2.0 / MOVES_PER_NS;
    for (enum state s = ALONE; s < STATES; s++) {
        const enum state other = s == ALONE ? SHARED : ALONE;
        const bool stays = from[s].ns <= from[other].ns + change;
        to[s].before = stays ? s : other;
        to[s].ns = own[s] + (stays ? from[s].ns : from[other].ns + change);
    }
    if (!can_share) {
        to[SHARED].ns = 1e30;
    }
}

/* Into how many chunks a thread's part is cut. */
static uint32_t cut(const struct ifd_acc_lowering *lowering, uint32_t i)
{
    const struct ifd_acc_draft *step = &lowering->draft[i];
    const double part_ns = step_ns(lowering, i) / lowering->base.view->max_threads;
    const double chunks = part_ns / CHUNK_NS;
    return chunks < 1.0 ? 1 : chunks < step->chunks ? (uint32_t)chunks : step->chunks;
}

static void choose(struct ifd_acc_lowering *lowering, const struct way *way, bool pays)
{
    const uint32_t count = lowering->draft_count;
    enum state state =
        way[count * STATES + SHARED].ns < way[count * STATES + ALONE].ns ? SHARED : ALONE;
    for (uint32_t i = count; i-- > 0;) {
        struct ifd_acc_draft *step = &lowering->draft[i];
        if (step->is_chained) {
            continue;
        }
        const double most = step_ns(lowering, i) / SHARE_NS + 2.0;
        const uint32_t threads = most < (double)UINT16_MAX ? (uint32_t)most : UINT16_MAX;
        if (!pays || state == ALONE) {
            step->max_threads = 1;
        } else if (step->max_threads > threads) {
            step->max_threads = threads;
        }
        step->chunks = cut(lowering, i);
        state = way[(i + 1) * STATES + state].before;
    }
}

/* Threads join after every step that several of them run, and before the next of that kind; steps
 * that one thread runs in a row need nobody else. At the end the team itself joins. */
static bool place_joins(struct ifd_acc_draft *step, uint32_t count)
{
    struct ifd_acc_draft *last = NULL;
    bool is_parallel = false;
    for (uint32_t i = 0; i < count; i++) {
        if (step[i].is_chained) {
            continue;
        }
        if (last) {
            last->joins = last->max_threads > 1 || step[i].max_threads > 1;
        }
        is_parallel = is_parallel || step[i].max_threads > 1;
        last = &step[i];
    }
    return is_parallel;
}

uint32_t ifd_acc_chunks_of(size_t items, size_t least)
{
    const size_t chunks = items / least;
    return chunks == 0 ? 1 : chunks < IFD_ACC_CHUNKS_MAX ? (uint32_t)chunks : IFD_ACC_CHUNKS_MAX;
}

/* Lines of a chunk, for each line that two windows share; and at least. */
#define CHUNK_LINES     2
#define CHUNK_LINES_MIN 4

uint32_t ifd_acc_chunks_of_lines(const struct ifd_acc_lowering *lowering, size_t lines,
                                 size_t window)
{
    const size_t shared = CHUNK_LINES * (window - 1);
    const size_t least = shared > CHUNK_LINES_MIN ? shared : CHUNK_LINES_MIN;
    return ifd_acc_chunks_of(lines / lowering->base.view->max_threads, least);
}

enum ifd_code ifd_acc_plan_threads(struct ifd_acc_lowering *lowering, bool *ret_is_parallel,
                                   struct ifd_err *err)
{
    const uint32_t count = lowering->draft_count;
    double alone_ns = 0.0;
    struct way *way =
        ifd_arena_take_array(lowering->base.arena, (size_t)count + 1, STATES * sizeof(*way));
    if (!way) {
        return ifd_arena_fail(lowering->base.arena, (size_t)count * STATES * sizeof(*way), err);
    }
    way[SHARED].ns = WAKE_NS;
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_acc_draft *step = &lowering->draft[i];
        struct way *from = &way[i * STATES], *to = from + STATES;
        if (step->is_chained) {
            to[ALONE] = from[ALONE];
            to[SHARED] = from[SHARED];
            continue;
        }
        const double ns = step_ns(lowering, i);
        alone_ns += ns;
        walk(from, ns, step->max_threads > 1 && lowering->base.view->max_threads > 1,
             bytes_read(lowering, i), to);
    }
    const struct way *end = &way[count * STATES];
    const double best = end[SHARED].ns < end[ALONE].ns ? end[SHARED].ns : end[ALONE].ns;
    choose(lowering, way, best + WAKE_NS < alone_ns);
    *ret_is_parallel = place_joins(lowering->draft, count);
    return IFD_OK;
}

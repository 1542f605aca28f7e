/* Fork-join team: a gate with a generation counter that helpers spin on, then sleep on. */
#include "engine/base/team.h"

#include "engine/base/thread.h"

#include <stdatomic.h>

/* How often a helper looks at the generation before it sleeps: about 50 µs, several times a small layer. */
#define SPIN_COUNT 2000

struct crew {
    struct ifd_team team; /* first: the public face */
    const struct ifd_alloc *alloc;
    struct helper *helpers; /* team.count - 1 */
    uint32_t started;
    uint32_t missed; /* runs in a row that some helper has not come to; the caller's */

    /* Written by the caller while nobody is inside; read by helpers that are. */
    ifd_team_fn fn;
    void *arg;
    atomic_int core;    /* where the caller was when the run began */
    atomic_ullong gate; /* see below */
    uint8_t apart[64];  /* another cache line */
    atomic_uint left;   /* helpers that have entered this run and are done */
    atomic_bool stop;

    struct ifd_mutex mutex; /* guards sleeping only */
    struct ifd_cond wake;
    atomic_uint sleepers; /* that nobody has woken yet */
    atomic_uint expected; /* raised by ifd_team_expect */
    atomic_bool resting;  /* helpers do not spin; until a run begins or is expected */
};

struct helper {
    struct crew *crew;
    struct ifd_thread thread;
    uint32_t index;
};

/* ---- the gate: the run's generation, who may enter (helpers of smaller index than count; 0 when it is closed), and how many
 * have ---- */

static unsigned gate_generation(unsigned long long gate)
{
    return (unsigned)(gate >> 32);
}

static unsigned gate_count(unsigned long long gate)
{
    return (unsigned)(gate >> 16) & 0xffff;
}

static unsigned gate_entered(unsigned long long gate)
{
    return (unsigned)gate & 0xffff;
}

static unsigned long long gate_next(unsigned long long gate, unsigned count)
{
    return ((gate >> 32) + 1) << 32 | count << 16;
}

static unsigned long long gate_closed(unsigned long long gate)
{
    return gate & ~(0xffffull << 16);
}

static unsigned generation(struct crew *crew)
{
    return gate_generation(atomic_load(&crew->gate));
}

/* False, and the run goes on without this helper, where it is over or has enough threads. The run that it is about through
 * ret_seen. */
static bool enter(struct crew *crew, uint32_t index, unsigned *ret_seen, unsigned *ret_count)
{
    unsigned long long gate = atomic_load(&crew->gate);
    do {
        *ret_seen = gate_generation(gate);
        *ret_count = gate_count(gate);
        if (index >= *ret_count) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&crew->gate, &gate, gate + 1));
    return true;
}

static void leave(struct crew *crew)
{
    atomic_fetch_add(&crew->left, 1);
}

/* Nobody enters from now on, and those that have are gone. False if some helper has not come. */
static bool close_gate(struct crew *crew)
{
    unsigned long long gate = atomic_load(&crew->gate);
    while (gate_entered(gate) + 1 < gate_count(gate) &&
           !atomic_compare_exchange_weak(&crew->gate, &gate, gate_closed(gate))) {
    }
    for (uint32_t i = 0; atomic_load(&crew->left) != gate_entered(gate); i++) {
        ifd_relax_more(i);
    }
    return gate_entered(gate) + 1 >= gate_count(gate);
}

/* ---- helpers ---- */

static bool has_reason(struct crew *crew, unsigned seen, unsigned expected)
{
    return generation(crew) != seen || atomic_load(&crew->stop) ||
           atomic_load(&crew->expected) != expected;
}

/* Also returns when a run is expected; the number of those is what the caller gives next time. */
static unsigned sleep_until_changed(struct crew *crew, unsigned seen, unsigned expected)
{
    ifd_mutex_lock(&crew->mutex);
    /* then looks once more; who wakes it looks the other way round */
    atomic_fetch_add(&crew->sleepers, 1);
    while (!has_reason(crew, seen, expected)) {
        ifd_cond_wait(&crew->wake, &crew->mutex);
        if (!has_reason(crew, seen, expected)) {
            atomic_fetch_add(&crew->sleepers, 1);
        }
    }
    ifd_mutex_unlock(&crew->mutex);
    return atomic_load(&crew->expected);
}

/* Also returns when there is nothing to spin for. */
static void spin_until_changed(struct crew *crew, unsigned seen)
{
    for (int i = 0; i < SPIN_COUNT && generation(crew) == seen &&
                    !atomic_load_explicit(&crew->resting, memory_order_relaxed);
         i++) {
        ifd_relax();
    }
}

/* Some schedulers wake a helper on the caller's core and leave both there for a tenth of a second, though another core is idle. */
static void leave_core_of_caller(const struct crew *crew)
{
    if (ifd_thread_core() == atomic_load_explicit(&crew->core, memory_order_relaxed)) {
        ifd_thread_change_core();
    }
}

static void helper_main(void *arg)
{
    struct helper *helper = arg;
    struct crew *crew = helper->crew;
    unsigned seen = 0, expected = 0, count = 0;
    for (;;) {
        spin_until_changed(crew, seen);
        if (generation(crew) == seen) {
            expected = sleep_until_changed(crew, seen, expected);
        }
        if (atomic_load(&crew->stop)) {
            return;
        }
        if (generation(crew) == seen) {
            continue; /* a run is expected: spin for it */
        }
        leave_core_of_caller(crew);
        if (enter(crew, helper->index, &seen, &count)) {
            crew->fn(crew->arg, helper->index, count);
            leave(crew);
        }
    }
}

/* ---- the caller ---- */

/* Once: those that are woken may take longer to come than a run. */
static void wake_sleepers(struct crew *crew)
{
    if (atomic_load(&crew->sleepers) != 0) {
        ifd_mutex_lock(&crew->mutex);
        atomic_store(&crew->sleepers, 0);
        ifd_cond_broadcast(&crew->wake);
        ifd_mutex_unlock(&crew->mutex);
    }
}

/* A helper that waits for the caller's own core has it only when the scheduler takes turns: with real-time priority after 100 ms
 * or never. Behind the second such run, the fourth, the eighth: most that are late have cores of their own. */
static void let_helpers_come(struct crew *crew, bool all_came)
{
    crew->missed = all_came ? 0 : crew->missed + 1;
    if (crew->missed > 1 && (crew->missed & (crew->missed - 1)) == 0) {
        ifd_thread_yield();
    }
}

static void crew_run(const struct ifd_team *team, ifd_team_fn fn, void *arg)
{
    struct crew *crew = team->context;
    if (team->count == 1) {
        fn(arg, 0, 1);
        return;
    }
    crew->fn = fn;
    crew->arg = arg;
    atomic_store_explicit(&crew->core, ifd_thread_core(), memory_order_relaxed);
    atomic_store_explicit(&crew->resting, false, memory_order_relaxed);
    atomic_store_explicit(&crew->left, 0, memory_order_relaxed);
    atomic_store(&crew->gate, gate_next(atomic_load(&crew->gate), team->count));
    wake_sleepers(crew);
    fn(arg, 0, team->count);
    let_helpers_come(crew, close_gate(crew));
}

void ifd_team_expect(const struct ifd_team *team)
{
    struct crew *crew = team->context;
    atomic_store_explicit(&crew->resting, false, memory_order_relaxed);
    if (atomic_load(&crew->sleepers) != 0) {
        atomic_fetch_add(&crew->expected, 1);
        wake_sleepers(crew);
    }
}

void ifd_team_rest(const struct ifd_team *team)
{
    struct crew *crew = team->context;
    atomic_store_explicit(&crew->resting, true, memory_order_relaxed);
}

enum ifd_code ifd_team_create(uint32_t count, const struct ifd_alloc *alloc,
                              struct ifd_team **ret_team, struct ifd_err *err)
{
    if (count > IFD_TEAM_MAX) {
        return ifd_fail(err, IFD_UNAVAILABLE, "team of %u threads, at most %u", count,
                        IFD_TEAM_MAX);
    }
    struct crew *crew = ifd_acquire_zeroed(alloc, 1, sizeof(*crew));
    if (!crew) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a team of %u threads", count);
    }
    crew->alloc = alloc;
    crew->team = (struct ifd_team){.count = count, .run = crew_run, .context = crew};
    ifd_mutex_init(&crew->mutex);
    ifd_cond_init(&crew->wake);
    if (count > 1) {
        crew->helpers = ifd_acquire_zeroed(alloc, count - 1, sizeof(*crew->helpers));
        if (!crew->helpers) {
            ifd_team_destroy(&crew->team);
            return ifd_fail(err, IFD_NOMEM, "no memory for a team of %u threads", count);
        }
    }
    for (; crew->started + 1 < count; crew->started++) {
        struct helper *helper = &crew->helpers[crew->started];
        *helper = (struct helper){.crew = crew, .index = crew->started + 1};
        enum ifd_code code =
            ifd_thread_start(&helper->thread, "inferd-team", helper_main, helper, alloc, err);
        if (code != IFD_OK) {
            ifd_team_destroy(&crew->team);
            return code;
        }
    }
    *ret_team = &crew->team;
    return IFD_OK;
}

void ifd_team_destroy(struct ifd_team *team)
{
    if (!team) {
        return;
    }
    struct crew *crew = team->context;
    ifd_mutex_lock(&crew->mutex);
    atomic_store(&crew->stop, true);
    atomic_store(&crew->gate, gate_next(atomic_load(&crew->gate), 0));
    ifd_cond_broadcast(&crew->wake);
    ifd_mutex_unlock(&crew->mutex);
    for (uint32_t i = 0; i < crew->started; i++) {
        ifd_thread_join(&crew->helpers[i].thread);
    }
    if (crew->helpers) {
        ifd_release(crew->alloc, crew->helpers, (team->count - 1) * sizeof(*crew->helpers));
    }
    ifd_cond_finish(&crew->wake);
    ifd_mutex_finish(&crew->mutex);
    ifd_release(crew->alloc, crew, sizeof(*crew));
}

/* ---- cores ---- */

void ifd_cores_init(struct ifd_cores *cores, uint32_t count)
{
    cores->count = count > 0 ? count : 1;
    atomic_init(&cores->busy, 0);
}

uint32_t ifd_cores_take(struct ifd_cores *cores, uint32_t wanted)
{
    unsigned busy = atomic_load_explicit(&cores->busy, memory_order_relaxed);
    uint32_t taken = 1;
    do {
        const uint32_t free = busy < cores->count ? cores->count - busy : 1;
        taken = wanted < free ? wanted : free;
    } while (!atomic_compare_exchange_weak_explicit(&cores->busy, &busy, busy + taken,
                                                    memory_order_relaxed, memory_order_relaxed));
    return taken;
}

void ifd_cores_give(struct ifd_cores *cores, uint32_t taken)
{
    atomic_fetch_sub_explicit(&cores->busy, taken, memory_order_relaxed);
}

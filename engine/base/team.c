/* Fork-join team: a gate with a generation counter that helpers spin on, then sleep on. */
#include "engine/base/team.h"

#include "engine/base/thread.h"

#include <stdatomic.h>

/* Polls of the generation before a helper sleeps: about 50 µs, several small layers. */
#define SPIN_COUNT 2000

struct team_impl {
    struct ifd_team team; /* first: the public face */
    const struct ifd_alloc *alloc;
    struct helper *helpers; /* team.count - 1 */
    uint32_t started;
    uint32_t missed; /* runs in a row that a helper did not enter; caller's thread only */

    /* Written by the caller while no helper is inside; read by helpers inside. */
    ifd_team_fn fn;
    void *arg;
    atomic_int core;    /* the caller's core when the run began */
    atomic_ullong gate; /* see below */
    uint8_t apart[64];  /* keeps left on another cache line */
    atomic_uint left;   /* helpers that entered this run and are done */
    atomic_bool stop;

    struct ifd_mutex mutex; /* guards sleeping only */
    struct ifd_cond wake;
    atomic_uint sleepers; /* helpers that sleep and have not been woken */
    atomic_uint expected; /* incremented by ifd_team_expect */
    atomic_bool resting;  /* helpers do not spin, until a run begins or is expected */
};

struct helper {
    struct team_impl *impl;
    struct ifd_thread thread;
    uint32_t index;
};

/* ---- the gate ----
 *
 * 32 bits: the run's generation. 16 bits: count; helpers of a smaller index may enter, 0 is
 * closed. 16 bits: how many entered. */

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

static unsigned generation(struct team_impl *impl)
{
    return gate_generation(atomic_load(&impl->gate));
}

/* False if the run is over or has enough threads: it goes on without this helper. ret_seen: the
 * generation in question. */
static bool enter(struct team_impl *impl, uint32_t index, unsigned *ret_seen, unsigned *ret_count)
{
    unsigned long long gate = atomic_load(&impl->gate);
    do {
        *ret_seen = gate_generation(gate);
        *ret_count = gate_count(gate);
        if (index >= *ret_count) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&impl->gate, &gate, gate + 1));
    return true;
}

static void leave(struct team_impl *impl)
{
    atomic_fetch_add(&impl->left, 1);
}

/* Closes the gate and waits for the helpers inside. False if a helper did not enter. */
static bool close_gate(struct team_impl *impl)
{
    unsigned long long gate = atomic_load(&impl->gate);
    while (gate_entered(gate) + 1 < gate_count(gate) &&
           !atomic_compare_exchange_weak(&impl->gate, &gate, gate_closed(gate))) {
    }
    for (uint32_t i = 0; atomic_load(&impl->left) != gate_entered(gate); i++) {
        ifd_relax_more(i);
    }
    return gate_entered(gate) + 1 >= gate_count(gate);
}

/* ---- helpers ---- */

static bool has_reason(struct team_impl *impl, unsigned seen, unsigned expected)
{
    return generation(impl) != seen || atomic_load(&impl->stop) ||
           atomic_load(&impl->expected) != expected;
}

/* Also returns when a run is expected: returns the number of expectations, which the caller
 * passes next time. */
static unsigned sleep_until_changed(struct team_impl *impl, unsigned seen, unsigned expected)
{
    ifd_mutex_lock(&impl->mutex);
    /* Counts itself as a sleeper, then looks for a reason; a waker changes the reason, then
     * looks for sleepers. */
    atomic_fetch_add(&impl->sleepers, 1);
    while (!has_reason(impl, seen, expected)) {
        ifd_cond_wait(&impl->wake, &impl->mutex);
        if (!has_reason(impl, seen, expected)) {
            atomic_fetch_add(&impl->sleepers, 1);
        }
    }
    ifd_mutex_unlock(&impl->mutex);
    return atomic_load(&impl->expected);
}

/* Also returns after SPIN_COUNT polls, or when the team rests. */
static void spin_until_changed(struct team_impl *impl, unsigned seen)
{
    for (int i = 0; i < SPIN_COUNT && generation(impl) == seen &&
                    !atomic_load_explicit(&impl->resting, memory_order_relaxed);
         i++) {
        ifd_relax();
    }
}

/* Some schedulers wake a helper on the caller's core and leave both there for 100 ms, although
 * another core is idle. */
static void leave_core_of_caller(const struct team_impl *impl)
{
    if (ifd_thread_core() == atomic_load_explicit(&impl->core, memory_order_relaxed)) {
        ifd_thread_change_core();
    }
}

static void helper_main(void *arg)
{
    struct helper *helper = arg;
    struct team_impl *impl = helper->impl;
    unsigned seen = 0, expected = 0, count = 0;
    for (;;) {
        spin_until_changed(impl, seen);
        if (generation(impl) == seen) {
            expected = sleep_until_changed(impl, seen, expected);
        }
        if (atomic_load(&impl->stop)) {
            return;
        }
        if (generation(impl) == seen) {
            continue; /* a run is expected: spin */
        }
        leave_core_of_caller(impl);
        if (enter(impl, helper->index, &seen, &count)) {
            impl->fn(impl->arg, helper->index, count);
            leave(impl);
        }
    }
}

/* ---- the caller ---- */

/* Wakes each sleeper once: a helper may take longer to wake up than a run takes. */
static void wake_sleepers(struct team_impl *impl)
{
    if (atomic_load(&impl->sleepers) != 0) {
        ifd_mutex_lock(&impl->mutex);
        atomic_store(&impl->sleepers, 0);
        ifd_cond_broadcast(&impl->wake);
        ifd_mutex_unlock(&impl->mutex);
    }
}

/* A helper that waits for the caller's core gets it only when the scheduler switches: with
 * real-time priority after 100 ms or never. The caller yields after the second such run in a
 * row, the fourth, the eighth: most late helpers wait for another core. */
static void let_helpers_come(struct team_impl *impl, bool all_came)
{
    impl->missed = all_came ? 0 : impl->missed + 1;
    if (impl->missed > 1 && (impl->missed & (impl->missed - 1)) == 0) {
        ifd_thread_yield();
    }
}

static void team_run(const struct ifd_team *team, ifd_team_fn fn, void *arg)
{
    struct team_impl *impl = team->context;
    if (team->count == 1) {
        fn(arg, 0, 1);
        return;
    }
    impl->fn = fn;
    impl->arg = arg;
    atomic_store_explicit(&impl->core, ifd_thread_core(), memory_order_relaxed);
    atomic_store_explicit(&impl->resting, false, memory_order_relaxed);
    atomic_store_explicit(&impl->left, 0, memory_order_relaxed);
    atomic_store(&impl->gate, gate_next(atomic_load(&impl->gate), team->count));
    wake_sleepers(impl);
    fn(arg, 0, team->count);
    let_helpers_come(impl, close_gate(impl));
}

void ifd_team_expect(const struct ifd_team *team)
{
    struct team_impl *impl = team->context;
    atomic_store_explicit(&impl->resting, false, memory_order_relaxed);
    if (atomic_load(&impl->sleepers) != 0) {
        atomic_fetch_add(&impl->expected, 1);
        wake_sleepers(impl);
    }
}

void ifd_team_rest(const struct ifd_team *team)
{
    struct team_impl *impl = team->context;
    atomic_store_explicit(&impl->resting, true, memory_order_relaxed);
}

enum ifd_code ifd_team_create(uint32_t count, const struct ifd_alloc *alloc,
                              struct ifd_team **ret_team, struct ifd_err *err)
{
    if (count > IFD_TEAM_MAX) {
        return ifd_fail(err, IFD_UNAVAILABLE, "team of %u threads, limit %u", count, IFD_TEAM_MAX);
    }
    struct team_impl *impl = ifd_acquire_zeroed(alloc, 1, sizeof(*impl));
    if (!impl) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a team of %u threads", count);
    }
    impl->alloc = alloc;
    impl->team = (struct ifd_team){.count = count, .run = team_run, .context = impl};
    ifd_mutex_init(&impl->mutex);
    ifd_cond_init(&impl->wake);
    if (count > 1) {
        impl->helpers = ifd_acquire_zeroed(alloc, count - 1, sizeof(*impl->helpers));
        if (!impl->helpers) {
            ifd_team_destroy(&impl->team);
            return ifd_fail(err, IFD_NOMEM, "no memory for a team of %u threads", count);
        }
    }
    for (; impl->started + 1 < count; impl->started++) {
        struct helper *helper = &impl->helpers[impl->started];
        *helper = (struct helper){.impl = impl, .index = impl->started + 1};
        enum ifd_code code =
            ifd_thread_start(&helper->thread, "inferd-team", helper_main, helper, alloc, err);
        if (code != IFD_OK) {
            ifd_team_destroy(&impl->team);
            return code;
        }
    }
    *ret_team = &impl->team;
    return IFD_OK;
}

void ifd_team_destroy(struct ifd_team *team)
{
    if (!team) {
        return;
    }
    struct team_impl *impl = team->context;
    ifd_mutex_lock(&impl->mutex);
    atomic_store(&impl->stop, true);
    atomic_store(&impl->gate, gate_next(atomic_load(&impl->gate), 0));
    ifd_cond_broadcast(&impl->wake);
    ifd_mutex_unlock(&impl->mutex);
    for (uint32_t i = 0; i < impl->started; i++) {
        ifd_thread_join(&impl->helpers[i].thread);
    }
    if (impl->helpers) {
        ifd_release(impl->alloc, impl->helpers, (team->count - 1) * sizeof(*impl->helpers));
    }
    ifd_cond_finish(&impl->wake);
    ifd_mutex_finish(&impl->mutex);
    ifd_release(impl->alloc, impl, sizeof(*impl));
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

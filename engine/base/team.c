/* Fork-join team: slots with a gate each; helpers spin for news of runs, then sleep. */
#include "engine/base/team.h"

#include "engine/base/thread.h"

#include <stdatomic.h>

/* Polls for news before a helper sleeps: about 50 µs, several small layers. */
#define SPIN_COUNT 2000

/* One run at a time. Written by its caller while no helper is inside; read by helpers inside. */
struct slot {
    ifd_team_fn fn;
    void *arg;
    atomic_bool is_taken; /* by a caller */
    atomic_int core;      /* the caller's core when the run began */
    uint32_t missed;      /* runs in a row that a helper did not enter */
    atomic_uint gate;     /* see below */
    uint8_t apart[64];    /* keeps left on another cache line */
    atomic_uint left;     /* helpers that entered this run and are done */
    uint8_t end[64];
};

struct team_impl {
    struct ifd_team team; /* first: the public face */
    const struct ifd_alloc *alloc;
    struct ifd_thread *helpers; /* team.count - 1 */
    uint32_t started;
    struct slot *slots;
    uint32_t slot_count;

    atomic_uint news; /* runs that had room for helpers */
    atomic_bool stop;
    atomic_bool resting; /* helpers do not spin, until a run begins or is expected */

    struct ifd_mutex mutex; /* guards what follows; sleepers is read without it, too */
    struct ifd_cond wake;
    atomic_uint sleepers; /* helpers that sleep and have not been woken */
    uint32_t woken;       /* helpers that were woken and have not noticed yet */
};

/* ---- the gate ----
 *
 * Upper 16 bits: count, the threads of the run; 0 is closed. Lower 16 bits: how many helpers
 * entered. */

static unsigned gate_count(unsigned gate)
{
    return gate >> 16;
}

static unsigned gate_entered(unsigned gate)
{
    return gate & 0xffff;
}

static bool has_room(unsigned gate)
{
    return gate_entered(gate) + 1 < gate_count(gate);
}

/* False if the run is over or has enough threads: it goes on without this helper. */
static bool enter(struct slot *slot, uint32_t *ret_index, uint32_t *ret_count)
{
    unsigned gate = atomic_load(&slot->gate);
    do {
        if (!has_room(gate)) {
            return false;
        }
        *ret_index = gate_entered(gate) + 1;
        *ret_count = gate_count(gate);
    } while (!atomic_compare_exchange_weak(&slot->gate, &gate, gate + 1));
    return true;
}

/* Closes the gate and waits for the helpers inside. False if a helper did not enter. */
static bool close_gate(struct slot *slot)
{
    unsigned gate = atomic_load(&slot->gate);
    while (has_room(gate) &&
           !atomic_compare_exchange_weak(&slot->gate, &gate, gate_entered(gate))) {
    }
    for (uint32_t i = 0; atomic_load(&slot->left) != gate_entered(gate); i++) {
        ifd_relax_more(i);
    }
    return !has_room(gate);
}

/* ---- helpers ---- */

/* Sleeps until a run begins, one is expected, or the team ends. */
static void sleep_until_woken(struct team_impl *impl, unsigned seen)
{
    ifd_mutex_lock(&impl->mutex);
    /* Counts itself as a sleeper, then looks for news; a waker makes news, then looks for
     * sleepers. */
    atomic_fetch_add(&impl->sleepers, 1);
    while (impl->woken == 0 && atomic_load(&impl->news) == seen) {
        ifd_cond_wait(&impl->wake, &impl->mutex);
    }
    /* Wake-ups have no names: this one may be meant for another, who then leaves by the news. */
    if (impl->woken > 0) {
        impl->woken--;
    } else {
        atomic_fetch_sub(&impl->sleepers, 1);
    }
    ifd_mutex_unlock(&impl->mutex);
}

/* Also returns after SPIN_COUNT polls, or when the team rests. */
static bool spin_until_news(struct team_impl *impl, unsigned seen)
{
    for (int i = 0; i < SPIN_COUNT && atomic_load(&impl->news) == seen &&
                    !atomic_load_explicit(&impl->resting, memory_order_relaxed);
         i++) {
        ifd_relax();
    }
    return atomic_load(&impl->news) != seen;
}

/* Some schedulers wake a helper on the caller's core and leave both there for 100 ms, although
 * another core is idle. */
static void leave_core_of_caller(const struct slot *slot)
{
    if (ifd_thread_core() == atomic_load_explicit(&slot->core, memory_order_relaxed)) {
        ifd_thread_change_core();
    }
}

static void help(struct slot *slot)
{
    uint32_t index = 0, count = 0;
    if (!has_room(atomic_load(&slot->gate))) {
        return;
    }
    leave_core_of_caller(slot);
    if (enter(slot, &index, &count)) {
        slot->fn(slot->arg, index, count);
        atomic_fetch_add(&slot->left, 1);
    }
}

static void helper_main(void *arg)
{
    struct team_impl *impl = arg;
    unsigned seen = 0;
    for (;;) {
        if (!spin_until_news(impl, seen)) {
            sleep_until_woken(impl, seen);
        }
        /* Before stop is looked at: whoever sees the news of the end sees the end, too. */
        const unsigned news = atomic_load(&impl->news);
        if (atomic_load(&impl->stop)) {
            return;
        }
        for (uint32_t i = 0; news != seen && i < impl->slot_count; i++) {
            help(&impl->slots[i]);
        }
        seen = news; /* if it did not change, a run is expected: spin */
    }
}

/* ---- the caller ---- */

/* Wakes up to count sleepers, each once: a helper may take longer to wake up than a run takes. */
static void wake_sleepers(struct team_impl *impl, uint32_t count)
{
    if (atomic_load(&impl->sleepers) == 0) {
        return;
    }
    ifd_mutex_lock(&impl->mutex);
    const uint32_t asleep = atomic_load(&impl->sleepers);
    const uint32_t wakes = count < asleep ? count : asleep;
    atomic_fetch_sub(&impl->sleepers, wakes);
    impl->woken += wakes;
    for (uint32_t i = 0; i < wakes; i++) {
        ifd_cond_signal(&impl->wake);
    }
    ifd_mutex_unlock(&impl->mutex);
}

/* A helper that waits for the caller's core gets it only when the scheduler switches: with
 * real-time priority after 100 ms or never. The caller yields after the second such run in a
 * row, the fourth, the eighth: most late helpers wait for another core. */
static void let_helpers_come(struct slot *slot, bool all_came)
{
    slot->missed = all_came ? 0 : slot->missed + 1;
    if (slot->missed > 1 && (slot->missed & (slot->missed - 1)) == 0) {
        ifd_thread_yield();
    }
}

/* NULL: as many runs have helpers as can have some. */
static struct slot *take_slot(struct team_impl *impl)
{
    for (uint32_t i = 0; i < impl->slot_count; i++) {
        if (!atomic_exchange_explicit(&impl->slots[i].is_taken, true, memory_order_acquire)) {
            return &impl->slots[i];
        }
    }
    return NULL;
}

static void team_run(const struct ifd_team *team, ifd_team_fn fn, void *arg)
{
    struct team_impl *impl = team->context;
    struct slot *slot = team->count > 1 ? take_slot(impl) : NULL;
    if (!slot) {
        fn(arg, 0, team->count);
        return;
    }
    slot->fn = fn;
    slot->arg = arg;
    atomic_store_explicit(&slot->core, ifd_thread_core(), memory_order_relaxed);
    atomic_store_explicit(&impl->resting, false, memory_order_relaxed);
    atomic_store_explicit(&slot->left, 0, memory_order_relaxed);
    atomic_store(&slot->gate, team->count << 16);
    atomic_fetch_add(&impl->news, 1);
    wake_sleepers(impl, team->count - 1);
    fn(arg, 0, team->count);
    let_helpers_come(slot, close_gate(slot));
    atomic_store_explicit(&slot->is_taken, false, memory_order_release);
}

struct ifd_team ifd_team_part(const struct ifd_team *team, uint32_t count)
{
    struct ifd_team part = {.count = 1, .run = team_run};
    if (team) {
        part = *team;
        part.count = count < team->count ? count : team->count;
    }
    return part;
}

void ifd_team_expect(const struct ifd_team *team)
{
    struct team_impl *impl = team->context;
    if (impl) {
        atomic_store_explicit(&impl->resting, false, memory_order_relaxed);
        wake_sleepers(impl, team->count - 1);
    }
}

bool ifd_team_sleeps(const struct ifd_team *team)
{
    const struct team_impl *impl = team->context;
    return impl && atomic_load_explicit(&impl->sleepers, memory_order_relaxed) == impl->started;
}

void ifd_team_rest(const struct ifd_team *team)
{
    struct team_impl *impl = team->context;
    if (impl) {
        atomic_store_explicit(&impl->resting, true, memory_order_relaxed);
    }
}

static enum ifd_code start_helpers(struct team_impl *impl, struct ifd_err *err)
{
    const uint32_t count = impl->team.count;
    impl->slot_count = count / 2; /* a run with helpers has two threads at least */
    impl->slots = ifd_acquire_zeroed(impl->alloc, impl->slot_count, sizeof(*impl->slots));
    impl->helpers = ifd_acquire_zeroed(impl->alloc, count - 1, sizeof(*impl->helpers));
    if (!impl->slots || !impl->helpers) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a team of %u threads", count);
    }
    enum ifd_code code = IFD_OK;
    while (impl->started + 1 < count && code == IFD_OK) {
        code = ifd_thread_start(&impl->helpers[impl->started], "inferd-team", helper_main, impl,
                                impl->alloc, err);
        impl->started += code == IFD_OK;
    }
    return code;
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
    const enum ifd_code code = count > 1 ? start_helpers(impl, err) : IFD_OK;
    if (code != IFD_OK) {
        ifd_team_destroy(&impl->team);
        return code;
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
    atomic_store(&impl->stop, true);
    atomic_fetch_add(&impl->news, 1);
    wake_sleepers(impl, team->count);
    for (uint32_t i = 0; i < impl->started; i++) {
        ifd_thread_join(&impl->helpers[i]);
    }
    ifd_release(impl->alloc, impl->helpers, (team->count - 1) * sizeof(*impl->helpers));
    ifd_release(impl->alloc, impl->slots, impl->slot_count * sizeof(*impl->slots));
    ifd_cond_finish(&impl->wake);
    ifd_mutex_finish(&impl->mutex);
    ifd_release(impl->alloc, impl, sizeof(*impl));
}

/* ---- cores ---- */

void ifd_cores_init(struct ifd_cores *cores, uint32_t count)
{
    cores->count = count > 0 ? count : 1;
    atomic_init(&cores->busy, 0);
    atomic_init(&cores->runs, 0);
    atomic_init(&cores->crowd, 1);
    atomic_init(&cores->crowd_ns, 0);
}

/* Most runs at a time, lately, these included. Threads may overwrite each other's notes: the next
 * run makes them right. */
static uint32_t note_crowd(struct ifd_cores *cores, uint32_t runs, uint64_t now_ns)
{
    const unsigned crowd = atomic_load_explicit(&cores->crowd, memory_order_relaxed);
    const uint64_t since_ns = atomic_load_explicit(&cores->crowd_ns, memory_order_relaxed);
    if (runs < crowd && now_ns <= since_ns + IFD_CROWD_NS) {
        return crowd;
    }
    atomic_store_explicit(&cores->crowd, runs, memory_order_relaxed);
    atomic_store_explicit(&cores->crowd_ns, now_ns, memory_order_relaxed);
    return runs;
}

uint32_t ifd_cores_take(struct ifd_cores *cores, uint32_t wanted, uint64_t now_ns)
{
    const unsigned runs = atomic_fetch_add_explicit(&cores->runs, 1, memory_order_relaxed) + 1;
    const uint32_t part = cores->count / note_crowd(cores, runs, now_ns),
                   share = part > 0 ? part : 1;
    const uint32_t most = wanted < share ? wanted : share;
    unsigned busy = atomic_load_explicit(&cores->busy, memory_order_relaxed);
    uint32_t taken = 1;
    do {
        const uint32_t free = busy < cores->count ? cores->count - busy : 1;
        taken = most < free ? most : free;
    } while (!atomic_compare_exchange_weak_explicit(&cores->busy, &busy, busy + taken,
                                                    memory_order_relaxed, memory_order_relaxed));
    return taken;
}

void ifd_cores_give(struct ifd_cores *cores, uint32_t taken, uint64_t now_ns)
{
    const unsigned runs = atomic_fetch_sub_explicit(&cores->runs, 1, memory_order_relaxed);
    (void)note_crowd(cores, runs, now_ns); /* of long runs, the crowd was there until now */
    atomic_fetch_sub_explicit(&cores->busy, taken, memory_order_relaxed);
}

/* Decides when threads should be awake. */
#include "server/serve/ahead.h"

#include "engine/base/clock.h"
#include "engine/base/thread.h"

/* The loop is woken this long before a result: the time to wake it on a core that was given back,
 * and some of the variation between runs. */
#define LEAD_NS UINT64_C(60000)
/* After loop and worker shared a core, nothing is tried for this long. */
#define CROWDED_NS UINT64_C(100000000)
/* For this long after other threads worked, the loop spins only if no request is open: more such
 * requests are on their way. */
#define CALM_NS UINT64_C(10000000)
/* Handing a run to a worker and back costs this much, and waking helpers for it, too. So shorter
 * ones are done by the loop, in one turn for at most TURN_NS: other connections wait meanwhile. */
#define HAND_OVER_NS UINT64_C(20000)
#define TURN_NS      UINT64_C(1000000)
/* A run shorter than expected weighs a half, a longer one a sixteenth: then about one in six is
 * shorter than expected. */
#define FASTER_SHARE 2
#define SLOWER_SHARE 16

void ifd_pulse_learn(struct ifd_pulse *pulse, int64_t batch, uint64_t took_ns)
{
    if (pulse->run_ns == 0 || pulse->batch != batch) {
        *pulse = (struct ifd_pulse){.run_ns = took_ns, .batch = batch};
    } else if (took_ns < pulse->run_ns) {
        pulse->run_ns -= (pulse->run_ns - took_ns) / FASTER_SHARE;
    } else {
        pulse->run_ns += (took_ns - pulse->run_ns) / SLOWER_SHARE;
    }
}

uint64_t ifd_pulse_due(const struct ifd_pulse *pulse, int64_t batch, uint64_t start_ns)
{
    if (pulse->run_ns == 0 || pulse->batch != batch) {
        return 0;
    }
    return pulse->run_ns > LEAD_NS ? start_ns + pulse->run_ns - LEAD_NS : start_ns;
}

bool ifd_pulse_is_short(const struct ifd_pulse *pulse)
{
    return pulse->run_ns > 0 && pulse->run_ns <= HAND_OVER_NS;
}

static bool may_wait(const struct ifd_ahead *ahead, const struct ifd_lane *lane)
{
    return ahead->spin_ns > 0 && ahead->open == 1 && ifd_lane_threads(lane) < ahead->cores;
}

static void stop(struct ifd_ahead *ahead)
{
    if (ahead->is_waiting) {
        ifd_loop_alarm(ahead->loop, 0, NULL, NULL);
    }
    if (ahead->is_waiting || ahead->is_looking_out) {
        ifd_loop_stay_awake(ahead->loop, 0);
    }
    ahead->is_waiting = ahead->is_looking_out = false;
}

/* No other thread needs the core, now or soon. */
static bool is_calm(const struct ifd_ahead *ahead, uint64_t now_ns)
{
    return ahead->open == 0 || (ahead->away == 0 && now_ns - ahead->away_ns >= CALM_NS);
}

void ifd_ahead_begun(struct ifd_ahead *ahead)
{
    const uint64_t now_ns = ifd_monotonic_ns();
    ahead->is_quick = ahead->ended_ns > 0 && now_ns - ahead->ended_ns <= ahead->spin_ns;
    const bool is_calm_now = is_calm(ahead, now_ns);
    ahead->open++;
    if (ahead->is_waiting || !is_calm_now) {
        stop(ahead);
    } /* a spinning loop stays awake for its body */
}

void ifd_ahead_ended(struct ifd_ahead *ahead, uint64_t now_ns)
{
    ahead->open--;
    ahead->ended_ns = is_calm(ahead, now_ns) && ahead->cores > 1 ? now_ns : 0;
    if (ahead->is_waiting || !ahead->is_quick || ahead->ended_ns == 0) {
        stop(ahead); /* its client may have left */
    } else {
        ahead->is_looking_out = true;
        ifd_loop_stay_awake(ahead->loop, now_ns + ahead->spin_ns);
    }
}

bool ifd_ahead_runs_here(const struct ifd_ahead *ahead, const struct ifd_pulse *pulse)
{
    if (pulse->run_ns == 0 || pulse->run_ns > ahead->here_ns) {
        return false;
    }
    return (ifd_pulse_is_short(pulse) && ahead->turn_ns < TURN_NS) ||
           ahead->connections(ahead->connections_arg) == 1;
}

void ifd_ahead_ran_here(struct ifd_ahead *ahead, uint64_t took_ns)
{
    ahead->turn_ns += took_ns;
}

void ifd_ahead_end_turn(struct ifd_ahead *ahead)
{
    ahead->turn_ns = 0;
}

void ifd_ahead_body(const struct ifd_ahead *ahead, struct ifd_lane *lane,
                    const struct ifd_pulse *pulse)
{
    if (may_wait(ahead, lane) && !ifd_ahead_runs_here(ahead, pulse)) {
        ifd_lane_stay_awake(lane, ifd_monotonic_ns() + ahead->spin_ns);
    }
}

static void result_is_due(void *arg)
{
    struct ifd_ahead *ahead = arg;
    uint64_t now_ns = ifd_monotonic_ns();
    if (ifd_thread_core() == ifd_lane_core(ahead->lane)) {
        /* On the worker's own core a spinning loop would delay the result. The other cores are
         * taken, so even the alarm was of no use. */
        ahead->crowded_until_ns = now_ns + CROWDED_NS;
    } else {
        ifd_loop_stay_awake(ahead->loop, now_ns + LEAD_NS + ahead->spin_ns);
    }
}

void ifd_ahead_run(struct ifd_ahead *ahead, const struct ifd_lane *lane,
                   const struct ifd_pulse *pulse, int64_t batch)
{
    stop(ahead);
    uint64_t now_ns = ifd_monotonic_ns();
    ahead->away++;
    ahead->away_ns = now_ns;
    uint64_t due_ns = ifd_pulse_due(pulse, batch, now_ns);
    if (due_ns == 0 || now_ns < ahead->crowded_until_ns || !may_wait(ahead, lane)) {
        return;
    }
    ahead->is_waiting = true;
    ahead->lane = lane;
    if (due_ns > now_ns) {
        ifd_loop_alarm(ahead->loop, due_ns, result_is_due, ahead);
    } else {
        result_is_due(ahead);
    }
}

void ifd_ahead_task(struct ifd_ahead *ahead)
{
    stop(ahead);
    ahead->away++;
    ahead->away_ns = ifd_monotonic_ns();
}

void ifd_ahead_done(struct ifd_ahead *ahead)
{
    stop(ahead);
    ahead->away--;
    ahead->away_ns = ifd_monotonic_ns();
}

/* Adapts the number of threads by the mean times of windows of runs. */
#include "engine/base/pace.h"

#include <assert.h>

/* The first two windows are one run each, to learn quickly what fewer threads take. Later ones
 * span many scheduler ticks (4 ms and more), so that the number of preemptions in a window
 * varies little. */
#define RUNS_MIN        4
#define WINDOW_FIRST_NS 2000000u
#define WINDOW_LAST_NS  64000000u

#define STAY_MAX 16 /* windows */

/* Slow windows in a row before fewer threads are tried: a single disturbance spoils only one. */
#define SLOW_MIN 2

/* Fewer threads must be faster by 1/GAIN: measurements are noisy, and idle cores help nobody. */
#define GAIN 16

/* The time of fewer threads decays by 1/DECAY per window, so that they are tried again: where
 * all threads are twice as fast, after about 20 s of runs; sooner where they gain less. */
#define DECAY 512

struct ifd_pace ifd_pace_init(uint32_t most)
{
    assert(most >= 1);
    return (struct ifd_pace){.most = most, .threads = most, .stay = 1};
}

uint32_t ifd_pace_choose(const struct ifd_pace *pace)
{
    return pace->trial == IFD_PACE_FEWER  ? pace->threads - 1
           : pace->trial == IFD_PACE_MORE ? pace->threads + 1
                                          : pace->threads;
}

static bool is_slower(uint64_t more_ns, uint64_t fewer_ns)
{
    return more_ns - more_ns / GAIN > fewer_ns;
}

static void end_steady(struct ifd_pace *pace, uint64_t mean_ns)
{
    pace->mean_ns = mean_ns;
    pace->since++;
    pace->fewer_ns -= pace->fewer_ns / DECAY;
    pace->slow = is_slower(mean_ns, pace->fewer_ns) ? pace->slow + 1 : 0;
    if (pace->threads > 1 && (pace->fewer_ns == 0 || pace->slow >= SLOW_MIN)) {
        pace->trial = IFD_PACE_FEWER;
    } else if (pace->threads < pace->most && pace->since >= pace->stay) {
        pace->trial = IFD_PACE_MORE;
    }
}

static void end_fewer(struct ifd_pace *pace, uint64_t mean_ns)
{
    const bool was_known = pace->fewer_ns > 0;
    pace->trial = IFD_PACE_STEADY;
    pace->slow = 0;
    pace->fewer_ns = mean_ns;
    if (was_known && is_slower(pace->mean_ns, mean_ns)) {
        pace->threads--;
        pace->fewer_ns = 0;
        pace->since = 0;
    }
}

static void end_more(struct ifd_pace *pace, uint64_t mean_ns)
{
    pace->trial = IFD_PACE_STEADY;
    pace->since = 0;
    if (!is_slower(mean_ns, pace->mean_ns)) {
        pace->threads++;
        pace->fewer_ns = pace->mean_ns;
        pace->stay = 1;
    } else {
        pace->stay = pace->stay < STAY_MAX ? 2 * pace->stay : STAY_MAX;
    }
}

static void (*const end_window[])(struct ifd_pace *pace, uint64_t mean_ns) = {
    [IFD_PACE_STEADY] = end_steady, [IFD_PACE_FEWER] = end_fewer, [IFD_PACE_MORE] = end_more};

void ifd_pace_note(struct ifd_pace *pace, uint64_t ns)
{
    if (!pace->is_warm) {
        pace->is_warm = true;
        return;
    }
    pace->runs++;
    pace->ns += ns;
    const uint32_t least = pace->window_ns > 0 ? RUNS_MIN : 1;
    if (pace->runs < least || pace->ns < pace->window_ns) {
        return;
    }
    end_window[pace->trial](pace, pace->ns / pace->runs);
    pace->runs = 0;
    pace->ns = 0;
    if (pace->window_ns > 0 || pace->trial == IFD_PACE_STEADY) {
        const uint64_t longer = pace->window_ns > 0 ? 2 * pace->window_ns : WINDOW_FIRST_NS;
        pace->window_ns = longer < WINDOW_LAST_NS ? longer : WINDOW_LAST_NS;
    }
}

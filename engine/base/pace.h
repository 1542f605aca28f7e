/** Chooses how many threads a run gets: all that it may have, or fewer where measurements show
 *  that fewer are faster.
 *
 *  A core may be shared with another process or with the host of a virtual machine. A thread
 *  that is preempted in the middle of its chunk keeps the others waiting for milliseconds: two
 *  threads then take longer than one. Or cores are so far apart that sharing costs more than it
 *  gains. The system does not report either, and both come and go; so mean times of windows of
 *  runs decide. One thread fewer is tried in the third run, to learn its time, and again when
 *  runs become slower than that. If it is faster then, runs get one thread fewer. One thread
 *  more is tried from time to time, ever more rarely while it does not help. Each repeated run
 *  has its own pace.
 *
 *  Pure: times come in through ifd_pace_note. Thread: one at a time per object. */
#ifndef INFERD_ENGINE_BASE_PACE_H
#define INFERD_ENGINE_BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum ifd_pace_trial { IFD_PACE_STEADY, IFD_PACE_FEWER, IFD_PACE_MORE };

struct ifd_pace {
    uint32_t most;    /* threads that a run may have */
    uint32_t threads; /* threads of a run outside of trials */
    enum ifd_pace_trial trial;
    bool is_warm;         /* the first run is not counted */
    uint32_t runs;        /* of this window */
    uint64_t ns;          /* of all its runs */
    uint64_t window_ns;   /* its minimum length */
    uint64_t mean_ns;     /* of a run, in the last window without a trial */
    uint64_t fewer_ns;    /* of a run in the last trial with one thread fewer; 0: not yet tried */
    uint32_t slow;        /* windows in a row that were slower than fewer_ns */
    uint32_t stay, since; /* windows between trials with one thread more; windows since the last */
};

/** most ≥ 1 */
struct ifd_pace ifd_pace_init(uint32_t most);
/** Threads of the next run: 1 … most. */
uint32_t ifd_pace_choose(const struct ifd_pace *pace);
/** Records the time of a run that had the chosen number of threads. Other runs need not be
 *  recorded. */
void ifd_pace_note(struct ifd_pace *pace, uint64_t ns);

#endif

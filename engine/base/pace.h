/** How many threads a run gets: all that it may have, or fewer where these are faster, which running shows.
 *
 *  A core may not be ours alone: another process has it half of the time, or the host of a virtual machine does. Whoever is
 *  stopped in the midst of a piece keeps all others waiting until the scheduler lets him go on, for some milliseconds: two
 *  threads then take longer than one. Or cores may be so far apart that sharing costs more than it gains. Neither can be
 *  asked for, and both come and go, so it is measured: mean times of some runs decide. One thread fewer is tried in the third
 *  run, to learn what it takes, and again when runs have become slower than that; where it is faster then, runs have one fewer,
 *  and one more is tried now and then, ever more rarely while it does not help. One pace for each thing that is run again and
 *  again.
 *
 *  Pure: time comes in by ifd_pace_note. Thread: one at a time per object. */
#ifndef INFERD_ENGINE_BASE_PACE_H
#define INFERD_ENGINE_BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

enum ifd_pace_trial { IFD_PACE_STEADY, IFD_PACE_FEWER, IFD_PACE_MORE };

struct ifd_pace {
    uint32_t most, threads; /* that a run may have; that it has but for a trial */
    enum ifd_pace_trial trial;
    bool is_warm;         /* the first run counts for nothing */
    uint32_t runs;        /* of this window */
    uint64_t ns;          /* all of them together */
    uint64_t window_ns;   /* how long it is at least */
    uint64_t mean_ns;     /* of a run, in the last window without a trial */
    uint64_t fewer_ns;    /* with one thread fewer, when that was tried last; 0: not yet */
    uint32_t slow;        /* windows in a row that were slower than that */
    uint32_t stay, since; /* windows until one more is tried, and windows since then */
};

/** most ≥ 1 */
struct ifd_pace ifd_pace_init(uint32_t most);
/** Threads of the next run: 1 … most. */
uint32_t ifd_pace_choose(const struct ifd_pace *pace);
/** A run with as many threads as were chosen took so long. Others need not be noted. */
void ifd_pace_note(struct ifd_pace *pace, uint64_t ns);

#endif

/** Frames of cameras, for a model version: of each source the newest one waits, and sources take
 *  turns.
 *
 *  A frame that comes while an older one of its source waits takes its place, and the older one is
 *  refused. So a source is served once while all others are served once, however many frames it
 *  sends, and what waits is never old. So many turns are given that runs and the decoding of
 *  pictures go on side by side; a frame that has its turn is not replaced. Thread: loop. */
#ifndef INFERD_SERVER_SERVE_SOURCES_H
#define INFERD_SERVER_SERVE_SOURCES_H

#include "api/core/service.h"

struct ifd_sources {
    struct ifd_infer_request *first, *last; /* that wait, each of another source */
    uint32_t waiting, most_waiting;
    uint32_t turns, most_turns;
    bool is_giving; /* turns */
};

/** deadline_ns: 0: none. done: as that of line_up. */
void ifd_sources_enter(struct ifd_sources *sources, struct ifd_infer_request *request,
                       uint64_t deadline_ns, ifd_control_fn done, void *arg);
/** As leave_line. */
void ifd_sources_leave(struct ifd_sources *sources, struct ifd_infer_request *request);
/** Refuses frames whose deadline has passed with DEADLINE. */
void ifd_sources_expire(struct ifd_sources *sources, uint64_t now_ns);
/** Refuses all frames that wait with UNAVAILABLE. */
void ifd_sources_clear(struct ifd_sources *sources);

#endif

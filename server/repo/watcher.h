/** Decides when to act on changes of a repository, in --model-control-mode=poll: a pure state
 *  machine of scans and time.
 *
 *  A change is taken when the fingerprint of files without SHA256SUMS was the same in two scans at
 *  least settle_ns apart, and no upload is under way; at once, if there is no such file, or they
 *  are as loaded. It is not taken while the model is being loaded, nor within dwell_ns after the
 *  last swap, nor, after swaps_per_hour swaps, within an hour since the first. Failed content is
 *  tried again after 1 s, 2 s, … 60 s: without end if the content is not at fault (I/O, memory),
 *  else five times; changed content is tried at once. A model is unloaded after absent_scans
 *  complete scans without it. A scan that failed, or found a repository empty that had models, says
 *  nothing about absence; models of that repository are not loaded from another one, either.
 *  Contents are compared for difference, never for age: clocks jump. Thread: loop. */
#ifndef INFERD_SERVER_REPO_WATCHER_H
#define INFERD_SERVER_REPO_WATCHER_H

#include "server/repo/scan.h"

struct ifd_watcher;

struct ifd_watcher_options {
    const struct ifd_alloc *alloc;
    uint64_t poll_ns, settle_ns, dwell_ns;
    uint32_t absent_scans, swaps_per_hour; /* swaps_per_hour 0: no bound */
};

enum ifd_watcher_act { IFD_WATCHER_LOAD, IFD_WATCHER_UNLOAD };

struct ifd_watcher_action {
    enum ifd_watcher_act act;
    const char *name; /* until the next call */
};

IFD_NODISCARD enum ifd_code ifd_watcher_create(const struct ifd_watcher_options *options,
                                               struct ifd_watcher **ret_watch, struct ifd_err *err);
void ifd_watcher_destroy(struct ifd_watcher *watch); /* NULL is fine */

/** Takes a scan. Errors: NOMEM (the scan then counts for known models). */
IFD_NODISCARD enum ifd_code ifd_watcher_scanned(struct ifd_watcher *watch,
                                                const struct ifd_scan *scan, uint64_t now_ns,
                                                struct ifd_err *err);
/** Returns the next action, until false. A model to be loaded counts as loading from now on. */
bool ifd_watcher_next(struct ifd_watcher *watch, uint64_t now_ns, struct ifd_watcher_action *ret);
/** A load of the folder as in seen (its name is not read) ended with code; also for loads that this
 *  machine did not start. Without memory the call has no effect: the next scans find the model
 *  again, and loading it again changes nothing. True if the model was swapped too often and stays
 *  as it is. */
bool ifd_watcher_loaded(struct ifd_watcher *watch, const char *name,
                        const struct ifd_scan_model *seen, enum ifd_code code, uint64_t now_ns);
/** Time until failed content is tried again; 0: it is being tried; UINT64_MAX: not before it
 *  changes. */
uint64_t ifd_watcher_retry_ns(const struct ifd_watcher *watch, const char *name, uint64_t now_ns);
/** Temporary file that holds changed content back, and since when; valid until the next call. NULL:
 *  none, or nothing changed. There is no timeout: a stalled upload looks like an abandoned one. */
const char *ifd_watcher_awaits(const struct ifd_watcher *watch, const char *name,
                               uint64_t *ret_since_ns);
/** What changed content of a model waits for. */
enum ifd_watcher_wait {
    IFD_WATCHER_WAITS_NOT,
    IFD_WATCHER_WAITS_UPLOAD, /* for the end of a temporary file */
    IFD_WATCHER_WAITS_SETTLE, /* until its files are unchanged for long enough */
    IFD_WATCHER_WAITS_DWELL,  /* because the model was swapped recently, or too often */
};
struct ifd_watcher_pending {
    enum ifd_watcher_wait kind;
    const char *file;           /* UPLOAD; valid until the next call */
    uint64_t since_ns, left_ns; /* for how long it waits (UPLOAD, SETTLE), will wait (DWELL) */
};
/** Nothing for a model that is being loaded or not known. */
struct ifd_watcher_pending ifd_watcher_pending(const struct ifd_watcher *watch, const char *name,
                                               uint64_t now_ns);
/** Time until the next scan: poll_ns, or less while a change settles. */
uint64_t ifd_watcher_wait_ns(const struct ifd_watcher *watch, uint64_t now_ns);

/** True for failures that are not the content's fault. */
bool ifd_watcher_is_transient(enum ifd_code code);

#endif

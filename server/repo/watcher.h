/** When a repository's changes are acted on, in --model-control-mode=poll: a pure state machine of
 *  scans and time.
 *
 *  A change is taken when the fingerprint of what no SHA256SUMS vouches for was the same in two
 *  scans at least settle_ns apart, and no upload is under way: at once, if there is no such file,
 *  or it is as it was loaded; not while the model is being loaded, nor sooner than dwell_ns after
 *  the last swap; after swaps_per_hour of them not before an hour has passed since the first. A
 *  content that failed is tried again after 1 s, 2 s, … 60 s: without end if it was not the
 *  content's fault (I/O, memory), else five times; another content begins anew, and at once. A
 *  model is unloaded when absent_scans complete listings in a row lack it; a listing that failed,
 *  or that is empty where there were models, says nothing about absence, and nothing about models
 *  that the repository had: what another one has under their names is not loaded either. Contents
 *  are compared for difference, never for age: clocks jump. Thread: loop. */
#ifndef INFERD_SERVER_REPO_WATCHER_H
#define INFERD_SERVER_REPO_WATCHER_H

#include "server/repo/scan.h"

struct ifd_watcher;

struct ifd_watcher_options {
    const struct ifd_alloc *alloc;
    uint64_t poll_ns, settle_ns, dwell_ns;
    uint32_t absent_scans, swaps_per_hour; /* 0 of the latter: no bound */
};

enum ifd_watcher_act { IFD_WATCHER_LOAD, IFD_WATCHER_UNLOAD };

struct ifd_watcher_action {
    enum ifd_watcher_act act;
    const char *name; /* until the next call */
};

IFD_NODISCARD enum ifd_code ifd_watcher_create(const struct ifd_watcher_options *options,
                                               struct ifd_watcher **ret_watch, struct ifd_err *err);
void ifd_watcher_destroy(struct ifd_watcher *watch); /* NULL is fine */

/** A scan ended. Errors: NOMEM (the scan then counts for the models that were known). */
IFD_NODISCARD enum ifd_code ifd_watcher_scanned(struct ifd_watcher *watch,
                                                const struct ifd_scan *scan, uint64_t now_ns,
                                                struct ifd_err *err);
/** The next thing to do, until false. A model that is to be loaded counts as loading from here
 *  on. */
bool ifd_watcher_next(struct ifd_watcher *watch, uint64_t now_ns, struct ifd_watcher_action *ret);
/** A load that began when the folder looked like seen (its name is not read) ended with code. Also
 *  for loads that were not this machine's idea. Without memory it is forgotten: the next scans find
 *  the model once more, and loading it again changes nothing. True if the model was swapped too
 *  often and is held from here on. */
bool ifd_watcher_loaded(struct ifd_watcher *watch, const char *name,
                        const struct ifd_scan_model *seen, enum ifd_code code, uint64_t now_ns);
/** Until a content that failed is tried again: 0 while it is; UINT64_MAX: not before it changes. */
uint64_t ifd_watcher_retry_ns(const struct ifd_watcher *watch, const char *name, uint64_t now_ns);
/** The file whose name says that an upload is under way, if that is why changed content is not
 *  loaded, and since when that is so. NULL: that is not why, or no other content is there. Until
 *  the next call. However long it takes: a stalled upload looks like one that was left. */
const char *ifd_watcher_awaits(const struct ifd_watcher *watch, const char *name,
                               uint64_t *ret_since_ns);
/** Until the next scan: poll_ns, or less while a change waits to settle. */
uint64_t ifd_watcher_wait_ns(const struct ifd_watcher *watch, uint64_t now_ns);

/** Failures that are not the content's fault. */
bool ifd_watcher_is_transient(enum ifd_code code);

#endif

/** The models of one or several repository folders: which exist, which are ready, which version
 *  answers.
 *
 *  Reading and planning happen on other threads; everything declared here is called on the loop
 *  thread. A model that cannot be loaded is listed with the reason and hurts no other. A load
 *  replaces versions only when all that it brings run: until then, and if anything fails, those
 *  that serve go on. Replaced versions drain: they end when the last request that pinned them is
 *  answered. */
#ifndef INFERD_SERVER_REPO_REPO_H
#define INFERD_SERVER_REPO_REPO_H

#include <stdatomic.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "server/obs/metrics.h"
#include "server/repo/budget.h"
#include "server/repo/model.h"
#include "server/repo/quarantine.h"

struct ifd_repo;

/** What the repository needs of the server that holds it. */
struct ifd_repo_host {
    void *context;
    /** Runs work(arg) on another thread, then done(arg) on the loop thread. */
    enum ifd_code (*run_off_loop)(void *context, void (*work)(void *arg), void (*done)(void *arg),
                                  void *arg, struct ifd_err *err);
    /** Makes a loaded version runnable (instances, threads): sets version->served. On the loader's
     *  thread. */
    enum ifd_code (*start)(void *context, struct ifd_version *version, struct ifd_err *err);
    /** Undoes start; nobody holds the version. */
    void (*stop)(void *context, struct ifd_version *version);
    /** Versions came or went, or a load failed. */
    void (*changed)(void *context);
    /** ifd_repo_poll should be called after wait_ms, not when the call before this one said. */
    void (*next_poll)(void *context, uint64_t wait_ms);
};

struct ifd_repo_options {
    const struct ifd_alloc *alloc;
    const struct ifd_log *log;
    struct ifd_engine *engine;
    struct ifd_repo_host host;
    const char *const *dir;
    uint32_t dir_count;
    const char *const *backends; /* preference of models whose config names none; may be NULL */
    uint32_t backend_count;
    enum ifd_precision precision; /* of models whose config names none */
    uint32_t max_threads;         /* of one instance */
    size_t max_model_bytes;
    const struct ifd_clock *clock;
    uint64_t poll_ns, settle_ns, dwell_ns; /* poll_ns 0: changes are not watched; see watcher.h */
    uint32_t swaps_per_hour;               /* of one model; 0: no bound */
    struct ifd_metric_set *metrics;        /* the server's, counts loads; may be NULL */
    struct ifd_budget *budget;             /* of all versions together; NULL: none */
    struct ifd_quarantine *quarantine;     /* NULL: nothing is remembered */
    /** From then on no load and no unload begins: those that wait are answered with UNAVAILABLE,
     *  and those that run end so at their next step. Any thread may read it. */
    const atomic_bool *is_stopping;
};

IFD_NODISCARD enum ifd_code ifd_repo_create(const struct ifd_repo_options *options,
                                            struct ifd_repo **ret_repo, struct ifd_err *err);
/** Nobody holds a version, nothing is being loaded. NULL is fine. */
void ifd_repo_destroy(struct ifd_repo *repo);

/** Lists the folders and begins to load: every model, or those whose names are in only (count > 0;
 *  "*" means all). is_explicit: none but those in only; one that no folder has is in the index, not
 *  ready. Errors: a folder that cannot be read; NOMEM. */
IFD_NODISCARD enum ifd_code ifd_repo_load_all(struct ifd_repo *repo, const char *const *only,
                                              uint32_t only_count, bool is_explicit,
                                              struct ifd_err *err);

/** Models of the start that are still being loaded. */
uint32_t ifd_repo_loading_count(const struct ifd_repo *repo);

typedef void (*ifd_repo_done_fn)(void *arg, enum ifd_code code, const struct ifd_err *err);

/** Loads a model, or loads it anew: versions whose content did not change stay as they are. One at
 *  a time for each model, in the order of the calls. config and files of the request stay the
 *  caller's until done, which is called once, maybe at once. Errors: NOT_FOUND (no such model),
 *  INVALID (config, files, content), NOMEM, IO, UNAVAILABLE (files changed while they were read);
 *  the text begins with "failed to load". */
void ifd_repo_load(struct ifd_repo *repo, struct ifd_str name, const struct ifd_source *request,
                   ifd_repo_done_fn done, void *arg);
/** Takes a model's versions from service; done comes as soon as they answer no new request. Errors:
 *  NOT_FOUND, NOMEM. */
void ifd_repo_unload(struct ifd_repo *repo, struct ifd_str name, ifd_repo_done_fn done, void *arg);

/** Scans the folders off the loop and acts on what changed; host.next_poll follows. poll_ns must
 *  not be 0. */
void ifd_repo_poll(struct ifd_repo *repo);

/** Looks which models the folders have now, off the loop, then calls done: new ones are known from
 *  then on, and those that are gone and not loaded no more. Calls that come while folders are
 *  looked at wait for the next look. While models are being loaded, and when folders cannot be
 *  read, everything stays as it was known. Errors: none but NOMEM. */
void ifd_repo_refresh(struct ifd_repo *repo, ifd_repo_done_fn done, void *arg);

/** Versions that no longer answer new requests but still hold some; linked by next. */
const struct ifd_version *ifd_repo_draining(const struct ifd_repo *repo);

/** A walk over all versions, model by model, then those that drain. A zeroed one has not begun. The
 *  version that it is at may be released before it goes on. */
struct ifd_repo_walk {
    const struct ifd_repo_model *model; /* NULL: the version drains */
    struct ifd_version *version;
    uint32_t model_index, version_index; /* of what comes next */
    struct ifd_version *draining;
    bool is_draining;
};

/** Goes to the next version. False: there is none. */
bool ifd_repo_next(const struct ifd_repo *repo, struct ifd_repo_walk *walk);

/** Sorted by name. */
uint32_t ifd_repo_model_count(const struct ifd_repo *repo);
const struct ifd_repo_model *ifd_repo_model_at(const struct ifd_repo *repo, uint32_t index);
/** NULL if there is none. */
const struct ifd_repo_model *ifd_repo_find(const struct ifd_repo *repo, struct ifd_str name);

/** Pins a version; number 0: the highest that is ready. Errors and texts: see acquire in
 *  api/core/service.h. */
IFD_NODISCARD enum ifd_code ifd_repo_acquire(struct ifd_repo *repo, struct ifd_str name,
                                             int64_t number, struct ifd_version **ret_version,
                                             struct ifd_err *err);
void ifd_repo_release(struct ifd_repo *repo, struct ifd_version *version);

/** Until a model whose last load failed is loaded again by itself, at the next poll from then on;
 *  UINT64_MAX: not before its content changes. */
uint64_t ifd_repo_retry_ns(const struct ifd_repo *repo, const struct ifd_repo_model *model);

/** Newer content is not loaded while this temporary file is in a version's folder; a path below the
 *  repository, until the next call. NULL: there is none. ret_ns: for how long by now. */
const char *ifd_repo_awaits(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                            uint64_t *ret_ns);

/** OK, or UNAVAILABLE naming the first model that should serve and does not. */
IFD_NODISCARD enum ifd_code ifd_repo_check(const struct ifd_repo *repo, struct ifd_err *err);

#endif

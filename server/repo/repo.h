/** The models of one or several repositories: which exist, which are ready, which version serves.
 *
 *  Reading and planning happen on other threads; everything declared here is called on the loop
 *  thread. A model that cannot be loaded is listed with the reason and harms no other. The newest
 *  versions that load serve, as many as the policy wants. A version that serves is replaced only
 *  when its replacement runs. Replaced versions drain: they end when the last request that holds
 *  them is answered. */
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

/** Functions of the server that the repository calls. */
struct ifd_repo_host {
    void *context;
    /** Runs work(arg) on another thread, then done(arg) on the loop thread. */
    enum ifd_code (*run_off_loop)(void *context, void (*work)(void *arg), void (*done)(void *arg),
                                  void *arg, struct ifd_err *err);
    /** Makes instances and threads of a loaded version and sets version->served. Thread: load. */
    enum ifd_code (*start)(void *context, struct ifd_version *version, struct ifd_err *err);
    /** Undoes start; no request holds the version. */
    void (*stop)(void *context, struct ifd_version *version);
    /** Versions came or went, or a load failed. */
    void (*changed)(void *context);
    /** Asks for a call of ifd_repo_poll after wait_ms; replaces the request before. */
    void (*next_poll)(void *context, uint64_t wait_ms);
};

struct ifd_repo_options {
    const struct ifd_alloc *alloc;
    const struct ifd_log *log;
    struct ifd_engine *engine;
    struct ifd_repo_host host;
    const char *const *dir;
    uint32_t dir_count;
    const char *const *backends; /* for models whose config names none; may be NULL */
    uint32_t backend_count;
    enum ifd_precision precision; /* of models whose config names none */
    uint32_t max_threads;         /* of one instance */
    size_t max_model_bytes;
    size_t shape_bytes; /* ifd_model_options.shape_bytes */
    const struct ifd_clock *clock;
    uint64_t poll_ns, settle_ns, dwell_ns; /* poll_ns 0: do not watch for changes; see watcher.h */
    uint32_t swaps_per_hour;               /* of one model; 0: no bound */
    struct ifd_metric_set *metrics;        /* set of the server, counts loads; may be NULL */
    struct ifd_budget *budget;             /* of all versions together; NULL: none */
    struct ifd_quarantine *quarantine;     /* NULL: none */
    /** If true, no load and no unload begins. Waiting ones are answered UNAVAILABLE; running loads
     *  end so at their next step. Read by any thread. */
    const atomic_bool *is_stopping;
};

IFD_NODISCARD enum ifd_code ifd_repo_create(const struct ifd_repo_options *options,
                                            struct ifd_repo **ret_repo, struct ifd_err *err);
/** No request holds a version, nothing is being loaded. NULL is fine. */
void ifd_repo_destroy(struct ifd_repo *repo);

/** Lists the folders and begins to load every model, or those in only (only_count > 0; "*": all).
 *  is_explicit: only those in only; a name without a folder is in the index, not ready. Errors: a
 *  folder that cannot be read; NOMEM. */
IFD_NODISCARD enum ifd_code ifd_repo_load_all(struct ifd_repo *repo, const char *const *only,
                                              uint32_t only_count, bool is_explicit,
                                              struct ifd_err *err);

/** Number of models of the start that are still being loaded. */
uint32_t ifd_repo_loading_count(const struct ifd_repo *repo);

typedef void (*ifd_repo_done_fn)(void *arg, enum ifd_code code, const struct ifd_err *err);

/** Loads or reloads a model; versions with unchanged content stay. One operation at a time per
 *  model, in the order of the calls. config and files of the request must stay until done, which is
 *  called once, maybe at once. Errors: NOT_FOUND (no such model), INVALID (config, files, content),
 *  NOMEM, IO, UNAVAILABLE (files changed while they were read); the text begins with "failed to
 *  load". */
void ifd_repo_load(struct ifd_repo *repo, struct ifd_str name, const struct ifd_source *request,
                   ifd_repo_done_fn done, void *arg);
/** The same for a model of the start: the server is not ready before it is loaded. */
void ifd_repo_load_at_start(struct ifd_repo *repo, struct ifd_str name,
                            const struct ifd_source *request, ifd_repo_done_fn done, void *arg);
/** Unloads a model; done is called when its versions accept no new request. Errors: NOT_FOUND,
 *  NOMEM. */
void ifd_repo_unload(struct ifd_repo *repo, struct ifd_str name, ifd_repo_done_fn done, void *arg);

/** Scans the folders off the loop and acts on changes, then calls host.next_poll. poll_ns must not
 *  be 0. */
void ifd_repo_poll(struct ifd_repo *repo);

/** Descriptor that is readable when something changed in the folders: call ifd_repo_notice then.
 *  -1: there is none. */
int ifd_repo_notice_fd(const struct ifd_repo *repo);
/** Brings the next scan forward if something changed. */
void ifd_repo_notice(struct ifd_repo *repo);

/** Scans the folders off the loop, adds new models to the index, removes models that are gone and
 *  not loaded, then calls done. Calls during a scan wait for the next one. While models are being
 *  loaded, and when folders cannot be read, the index stays. Errors: only NOMEM. */
void ifd_repo_refresh(struct ifd_repo *repo, ifd_repo_done_fn done, void *arg);

/** Versions that accept no new request but still have some; linked by next. */
const struct ifd_version *ifd_repo_draining(const struct ifd_repo *repo);

/** Iterates over all versions, model by model, then over draining ones. Begins zeroed. The current
 *  version may be released before the next step. */
struct ifd_repo_walk {
    const struct ifd_repo_model *model; /* NULL: the version drains */
    struct ifd_version *version;
    uint32_t model_index, version_index; /* of the next one */
    struct ifd_version *draining;
    bool is_draining;
};

/** Advances to the next version. False: there is none. */
bool ifd_repo_next(const struct ifd_repo *repo, struct ifd_repo_walk *walk);

/** Sorted by name. */
uint32_t ifd_repo_model_count(const struct ifd_repo *repo);
const struct ifd_repo_model *ifd_repo_model_at(const struct ifd_repo *repo, uint32_t index);
/** NULL if there is none. */
const struct ifd_repo_model *ifd_repo_find(const struct ifd_repo *repo, struct ifd_str name);

/** Holds a version for a request; number 0: the highest that is ready. Errors and texts: see
 *  acquire in api/core/service.h. */
IFD_NODISCARD enum ifd_code ifd_repo_acquire(struct ifd_repo *repo, struct ifd_str name,
                                             int64_t number, struct ifd_version **ret_version,
                                             struct ifd_err *err);
void ifd_repo_release(struct ifd_repo *repo, struct ifd_version *version);

/** Time until a failed model is loaded again, by the next poll after it; UINT64_MAX: not before its
 *  content changes. */
uint64_t ifd_repo_retry_ns(const struct ifd_repo *repo, const struct ifd_repo_model *model);

/** Temporary file in a version's folder that holds newer content back, as a path below the
 *  repository, valid until the next call; NULL: none. ret_ns: since how long. */
const char *ifd_repo_awaits(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                            uint64_t *ret_ns);

/** Says what the model waits for: a load or unload, or newer content that is not loaded yet. False:
 *  nothing. */
bool ifd_repo_tell_pending(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                           char *text, size_t size);

/** Returns OK, or UNAVAILABLE with the first model that should serve and does not. */
IFD_NODISCARD enum ifd_code ifd_repo_check(const struct ifd_repo *repo, struct ifd_err *err);

#endif

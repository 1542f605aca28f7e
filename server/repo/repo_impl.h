/** Private to the repository: repo.c has the index, operations.c loads and unloads, listing.c lists
 *  the models, polling.c acts on changes. Thread: loop. */
#ifndef INFERD_SERVER_REPO_REPO_IMPL_H
#define INFERD_SERVER_REPO_REPO_IMPL_H

#include <stdatomic.h>

#include "server/repo/load_model.h"
#include "server/repo/watcher.h"

#define IFD_SCAN_ARENA_BYTES ((size_t)64 << 20)

struct ifd_repo {
    struct ifd_repo_options options; /* dir: below */
    const char **dir;                /* repositories, each once */
    uint32_t dir_capacity;
    struct ifd_repo_model **model; /* sorted by name */
    uint32_t model_count, capacity, starting;
    struct ifd_version *draining;
    bool *was_full;             /* per repository: it once had a model */
    struct ifd_watcher *watch;  /* NULL: not in mode poll */
    struct poll *poll;          /* running scan; polling.c */
    int notice_fd;              /* notice.h; -1: none */
    bool is_noticed;            /* something changed since the last scan began */
    atomic_bool is_notice_full; /* the kernel watches no more folders */
    uint64_t next_poll_ns;      /* start of the next scan, if none runs */
    uint64_t *stray; /* digests of the model files in wrong places that were logged, sorted */
    uint32_t stray_count;
    char poll_fault[IFD_ERR_TEXT_BYTES]; /* why the last scan was incomplete; "": it was not */
    struct refresh *refresh; /* running listing, and callers that wait for the next one */
    struct waiter *waiting;  /* both in listing.c */
    uint32_t busy;           /* models with operations */
};

enum ifd_repo_op_kind { IFD_REPO_LOAD, IFD_REPO_UNLOAD, IFD_REPO_REMOVE };

/** A load or unload of one model; the first of its model's list runs. */
struct ifd_repo_op {
    struct ifd_repo_op *next;
    struct ifd_repo *repo;
    struct ifd_repo_model *model;
    struct ifd_model_load load;
    enum ifd_repo_op_kind kind;
    uint64_t since_ns;     /* when it was asked for */
    atomic_bool has_begun; /* a thread loads */
    bool is_start;         /* the server is not ready before it ends */
    ifd_repo_done_fn done; /* may be NULL */
    void *arg;
};

/** As ifd_repo_find, not const. */
struct ifd_repo_model *ifd_repo_known(const struct ifd_repo *repo, struct ifd_str name);
/** NULL without memory. */
struct ifd_repo_model *ifd_repo_find_or_add(struct ifd_repo *repo, struct ifd_str name);
void ifd_repo_remove(struct ifd_repo *repo, struct ifd_repo_model *model);
/** The same if the model is empty: no version, operation, reason, folder at the start, nor content
 *  that waits. */
void ifd_repo_remove_if_empty(struct ifd_repo *repo, struct ifd_repo_model *model);
/** Updates the list of ready versions after a change. */
void ifd_repo_list_ready(struct ifd_repo_model *model);
/** Releases the lists of a model for capacity versions. */
void ifd_repo_free_lists(const struct ifd_alloc *alloc, struct ifd_version **version,
                         const char **ready, uint32_t capacity);

/** Retires a version that is in no list any more: it ends, or drains until no request holds it. */
void ifd_repo_retire(struct ifd_repo *repo, struct ifd_version *version);

/** Plans the next poll when the watcher wants it, not later than planned. */
void ifd_repo_plan_poll(struct ifd_repo *repo);
/** Plans a scan soon after the start, which watches the folders. */
void ifd_repo_plan_first_poll(struct ifd_repo *repo);
/** context: the repository. */
void ifd_repo_warn_of_stray(void *context, const char *path, const char *wanted);

/** Appends a copy of what to its model's list. Errors: NOMEM. */
IFD_NODISCARD enum ifd_code ifd_repo_add_op(struct ifd_repo *repo, struct ifd_repo_model *model,
                                            const struct ifd_repo_op *what, struct ifd_err *err);

#endif

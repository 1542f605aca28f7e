/* Scans repositories and begins the operations that the watcher decides. */
#include "server/repo/repo_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/repo/digest.h"
#include "server/repo/notice.h"

#define SECOND_NS    ((uint64_t)1000000000)
#define LONG_WAIT_NS (60 * SECOND_NS)
#define NOTICE_NS    (SECOND_NS / 5) /* a change is rarely alone: from a notice to its scan */

struct poll {
    struct ifd_repo *repo;
    struct ifd_arena arena;
    struct ifd_scan scan;
};

static void act(struct ifd_repo *repo, const struct ifd_watcher_action *action)
{
    struct ifd_err err = {0};
    bool is_load = action->act == IFD_WATCHER_LOAD;
    const struct ifd_repo_op what = {.kind = is_load ? IFD_REPO_LOAD : IFD_REPO_REMOVE};
    struct ifd_repo_model *model = is_load ? ifd_repo_find_or_add(repo, ifd_str(action->name))
                                           : ifd_repo_known(repo, ifd_str(action->name));
    enum ifd_code code = model     ? ifd_repo_add_op(repo, model, &what, &err)
                         : is_load ? ifd_fail(&err, IFD_NOMEM, "no memory for a model")
                                   : IFD_OK;
    if (code) { /* the watch tries again later */
        ifd_log_error(repo->options.log, "model change failed", "model=%s reason=%s", action->name,
                      err.text);
        (void)ifd_watcher_loaded(repo->watch, action->name, &(struct ifd_scan_model){0}, code,
                                 ifd_now_ns(repo->options.clock));
    }
}

/* Before the folder is read, so that no change is missed. */
static void watch_folder(void *context, int root, const char *path)
{
    struct ifd_repo *repo = context;
    if (repo->notice_fd >= 0 && !ifd_notice_add(repo->notice_fd, root, path) &&
        !atomic_exchange(&repo->is_notice_full, true)) {
        ifd_log_warn(repo->options.log, "changes of some folders are found by polling only",
                     "reason=%s", "fs.inotify.max_user_watches is reached");
    }
}

static void poll_work(void *arg)
{
    struct poll *poll = arg;
    struct ifd_repo *repo = poll->repo;
    const struct ifd_scan_where where = {.dir = repo->options.dir,
                                         .dir_count = repo->options.dir_count,
                                         .entered = watch_folder,
                                         .context = repo};
    ifd_scan_all(&where, &poll->arena, &poll->scan);
}

/* A repository that is suddenly empty may be a lost mount. */
static void check_roots(struct ifd_repo *repo, struct ifd_scan *scan)
{
    for (uint32_t d = 0; d < repo->options.dir_count && scan->in_root; d++) {
        repo->was_full[d] = repo->was_full[d] || scan->in_root[d] > 0;
        if (!repo->was_full[d] || scan->in_root[d] > 0) {
            continue;
        }
        if (scan->is_complete) {
            (void)ifd_fail(&scan->err, IFD_NOT_FOUND, "\"%.200s\" has no model any more",
                           repo->options.dir[d]);
        }
        scan->is_complete = false;
        scan->unlisted |= ifd_scan_root(d);
    }
}

/* Logs what a model's newer content waits for, and warns when that takes long. */
static void tell_wait(struct ifd_repo *repo, const char *name, const char *file, uint64_t since_ns)
{
    struct ifd_repo_model *model = ifd_repo_find_or_add(repo, ifd_str(name));
    const uint64_t waited_ns = ifd_now_ns(repo->options.clock) - since_ns;
    if (!model) {
        return; /* without memory: the next time */
    }
    if (model->awaits_since_ns != since_ns) {
        model->awaits_since_ns = since_ns;
        model->is_wait_long = false;
        ifd_log_info(repo->options.log, "new content waits for an upload", "model=%s file=%s", name,
                     file);
    } else if (!model->is_wait_long && waited_ns >= LONG_WAIT_NS) {
        model->is_wait_long = true;
        ifd_log_warn(repo->options.log, "unfinished upload blocks new content",
                     "model=%s file=%s seconds=%llu", name, file,
                     (unsigned long long)(waited_ns / SECOND_NS));
    }
}

/* A new model is in the index while it waits. */
static void tell_waits(struct ifd_repo *repo, const struct ifd_scan *scan)
{
    uint64_t since_ns = 0;
    const uint64_t now_ns = ifd_now_ns(repo->options.clock);
    for (uint32_t i = 0; i < scan->count; i++) {
        const char *name = scan->model[i].name;
        const bool is_pending = ifd_watcher_pending(repo->watch, name, now_ns).kind;
        struct ifd_repo_model *model =
            is_pending ? ifd_repo_find_or_add(repo, ifd_str(name)) : NULL;
        if (model) {
            model->is_pending = true;
        }
        const char *file = ifd_watcher_awaits(repo->watch, name, &since_ns);
        if (file) {
            tell_wait(repo, name, file, since_ns);
        }
    }
    for (uint32_t i = repo->model_count; i > 0; i--) {
        struct ifd_repo_model *model = repo->model[i - 1];
        if (!ifd_watcher_awaits(repo->watch, model->name, &since_ns)) {
            model->awaits_since_ns = 0;
        }
        if (model->is_pending && !ifd_watcher_pending(repo->watch, model->name, now_ns).kind) {
            model->is_pending = false;
            ifd_repo_remove_if_empty(repo, model);
        }
    }
}

/* Logs when a scan becomes incomplete, when its reason changes, and when it is complete again. */
static void tell_fault(struct ifd_repo *repo, const char *fault)
{
    if (strcmp(repo->poll_fault, fault) == 0) {
        return;
    }
    (void)snprintf(repo->poll_fault, sizeof(repo->poll_fault), "%s", fault);
    if (fault[0]) {
        ifd_log_warn(repo->options.log, "repository scan failed, models stay", "reason=%s", fault);
    } else {
        ifd_log_info(repo->options.log, "repository scan works again", "count=%u",
                     repo->options.dir_count);
    }
}

static int compare_digests(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Logs model files in wrong places, each once while it lies there: somebody waits for it. */
static void tell_strays(struct ifd_repo *repo, const struct ifd_scan_stray *first)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    const uint32_t before = repo->stray_count;
    uint32_t count = 0;
    for (const struct ifd_scan_stray *stray = first; stray; stray = stray->next) {
        count++;
    }
    uint64_t *found = count > 0 ? ifd_acquire_zeroed(alloc, count, sizeof(*found)) : NULL;
    if (count > 0 && !found) {
        return; /* without memory: the next time */
    }
    uint64_t *next = found;
    for (const struct ifd_scan_stray *stray = first; stray; stray = stray->next, next++) {
        *next = ifd_digest_bytes(IFD_DIGEST_START, stray->path, strlen(stray->path));
        if (before == 0 || !bsearch(next, repo->stray, before, sizeof(*next), compare_digests)) {
            ifd_repo_warn_of_stray(repo, stray->path, stray->wanted);
        }
    }
    if (count > 1) {
        qsort(found, count, sizeof(*found), compare_digests);
    }
    ifd_release(alloc, repo->stray, before * sizeof(*repo->stray));
    repo->stray = found;
    repo->stray_count = count;
}

static void poll_done(void *arg)
{
    struct poll *poll = arg;
    struct ifd_repo *repo = poll->repo;
    struct ifd_watcher_action action;
    uint64_t now_ns = ifd_now_ns(repo->options.clock);
    check_roots(repo, &poll->scan);
    struct ifd_err err = poll->scan.err;
    enum ifd_code code = ifd_watcher_scanned(repo->watch, &poll->scan, now_ns, &err);
    ifd_metric_add(repo->options.metrics, IFD_METRIC_POLLS, (uint32_t)err.code, 1);
    tell_fault(repo, code || !poll->scan.is_complete ? err.text : "");
    while (!*repo->options.is_stopping && ifd_watcher_next(repo->watch, now_ns, &action)) {
        act(repo, &action);
    }
    tell_waits(repo, &poll->scan);
    tell_strays(repo, poll->scan.stray);
    ifd_arena_finish(&poll->arena);
    ifd_release(repo->options.alloc, poll, sizeof(*poll));
    repo->poll = NULL;
    repo->next_poll_ns = UINT64_MAX;
    ifd_repo_plan_poll(repo);
}

void ifd_repo_plan_poll(struct ifd_repo *repo)
{
    const struct ifd_repo_host *host = &repo->options.host;
    const uint64_t now_ns = ifd_now_ns(repo->options.clock);
    uint64_t wait_ns = ifd_watcher_wait_ns(repo->watch, now_ns);
    wait_ns = repo->is_noticed && wait_ns > NOTICE_NS ? NOTICE_NS : wait_ns;
    if (!repo->poll && now_ns + wait_ns < repo->next_poll_ns) {
        repo->next_poll_ns = now_ns + wait_ns;
        host->next_poll(host->context, wait_ns / 1000000 + 1);
    }
}

void ifd_repo_plan_first_poll(struct ifd_repo *repo)
{
    if (repo->notice_fd >= 0) {
        repo->is_noticed = true;
        ifd_repo_plan_poll(repo);
    }
}

int ifd_repo_notice_fd(const struct ifd_repo *repo)
{
    return repo->notice_fd;
}

void ifd_repo_notice(struct ifd_repo *repo)
{
    if (ifd_notice_take(repo->notice_fd)) {
        repo->is_noticed = true;
        ifd_repo_plan_poll(repo);
    }
}

void ifd_repo_poll(struct ifd_repo *repo)
{
    const struct ifd_repo_host *host = &repo->options.host;
    if (repo->poll || *repo->options.is_stopping) {
        return;
    }
    struct poll *poll = ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*poll));
    if (poll) {
        poll->repo = repo;
        ifd_arena_init(&poll->arena, repo->options.alloc, IFD_SCAN_ARENA_BYTES);
        if (!host->run_off_loop(host->context, poll_work, poll_done, poll, NULL)) {
            repo->poll = poll;
            repo->is_noticed = false;
            return;
        }
        ifd_release(repo->options.alloc, poll, sizeof(*poll));
    }
    ifd_log_warn(repo->options.log, "repository scan failed", "reason=%s", "no memory");
    host->next_poll(host->context, repo->options.poll_ns / 1000000);
}

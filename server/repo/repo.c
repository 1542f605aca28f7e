/* Index of models: find and add models, acquire and retire versions. */
#include "server/repo/repo_impl.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/str.h"
#include "server/repo/load_version.h"
#include "server/repo/notice.h"

#define ABSENT_SCANS 2

/* ---- life ---- */

/* Keeps each folder once: config file and command line may both name it. */
static uint32_t take_each_once(const char *const *dir, uint32_t count, const char **ret_dir)
{
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < taken && !ifd_folder_is_same(ret_dir[k], dir[i])) {
            k++;
        }
        if (k == taken) {
            ret_dir[taken++] = dir[i];
        }
    }
    return taken;
}

enum ifd_code ifd_repo_create(const struct ifd_repo_options *options, struct ifd_repo **ret_repo,
                              struct ifd_err *err)
{
    struct ifd_repo *repo = ifd_acquire_zeroed(options->alloc, 1, sizeof(*repo));
    if (!repo) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the repository");
    }
    repo->options = *options;
    repo->notice_fd = -1;
    repo->dir_capacity = options->dir_count;
    repo->was_full =
        ifd_acquire_zeroed(options->alloc, options->dir_count, sizeof(*repo->was_full));
    repo->dir = ifd_acquire_zeroed(options->alloc, options->dir_count, sizeof(*repo->dir));
    if ((!repo->was_full || !repo->dir) && options->dir_count > 0) {
        ifd_repo_destroy(repo);
        return ifd_fail(err, IFD_NOMEM, "no memory for the repository");
    }
    repo->options.dir_count = take_each_once(options->dir, options->dir_count, repo->dir);
    repo->options.dir = repo->dir;
    repo->next_poll_ns = UINT64_MAX;
    const struct ifd_watcher_options watch = {.alloc = options->alloc,
                                              .poll_ns = options->poll_ns,
                                              .settle_ns = options->settle_ns,
                                              .dwell_ns = options->dwell_ns,
                                              .absent_scans = ABSENT_SCANS,
                                              .swaps_per_hour = options->swaps_per_hour};
    enum ifd_code code =
        options->poll_ns > 0 ? ifd_watcher_create(&watch, &repo->watch, err) : IFD_OK;
    if (code) {
        ifd_repo_destroy(repo);
        return code;
    }
    struct ifd_err notice = {0};
    if (repo->watch && ifd_notice_open(&repo->notice_fd, &notice)) {
        ifd_log_warn(options->log, "changes are found by polling only", "reason=%s", notice.text);
    }
    *ret_repo = repo;
    return IFD_OK;
}

void ifd_repo_free_lists(const struct ifd_alloc *alloc, struct ifd_version **version,
                         const char **ready, uint32_t capacity)
{
    ifd_release(alloc, version, capacity * sizeof(struct ifd_version *));
    ifd_release(alloc, (void *)(uintptr_t)ready, capacity * sizeof(const char *));
}

static void free_model(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    for (uint32_t i = 0; i < model->version_count; i++) {
        ifd_version_destroy(&repo->options, model->version[i]);
    }
    ifd_repo_free_lists(alloc, model->version, model->ready, model->version_capacity);
    ifd_release(alloc, (void *)(uintptr_t)model->name, strlen(model->name) + 1);
    ifd_release(alloc, model, sizeof(*model));
}

void ifd_repo_destroy(struct ifd_repo *repo)
{
    if (!repo) {
        return;
    }
    const struct ifd_alloc *alloc = repo->options.alloc;
    for (uint32_t i = 0; i < repo->model_count; i++) {
        free_model(repo, repo->model[i]);
    }
    while (repo->draining) {
        struct ifd_version *version = repo->draining;
        repo->draining = version->next;
        ifd_version_destroy(&repo->options, version);
    }
    ifd_watcher_destroy(repo->watch);
    if (repo->notice_fd >= 0) {
        (void)close(repo->notice_fd);
    }
    ifd_release(alloc, repo->was_full, repo->dir_capacity * sizeof(*repo->was_full));
    ifd_release(alloc, (void *)(uintptr_t)repo->dir, repo->dir_capacity * sizeof(*repo->dir));
    ifd_release(alloc, repo->stray, repo->stray_count * sizeof(*repo->stray));
    ifd_release(alloc, repo->model, repo->capacity * sizeof(struct ifd_repo_model *));
    ifd_release(alloc, repo, sizeof(*repo));
}

/* ---- versions that go ---- */

static void destroy_off_loop(void *arg)
{
    struct ifd_version *version = arg;
    const struct ifd_repo *repo = (const struct ifd_repo *)(void *)version->next;
    ifd_version_destroy(&repo->options, version);
}

static void destroyed(void *arg)
{
    (void)arg; /* it is destroyed */
}

/* Destroys a version that is in no list and held by no request, off the loop: joins threads,
 * releases memory. */
static void dispose(struct ifd_repo *repo, struct ifd_version *version)
{
    const struct ifd_repo_host *host = &repo->options.host;
    ifd_log_info(repo->options.log, "version unloaded", "model=%s version=%s", version->name,
                 version->number_text);
    version->next =
        (struct ifd_version *)(void *)repo; /* in no list any more: points to its repository */
    if (host->run_off_loop(host->context, destroy_off_loop, destroyed, version, NULL)) {
        ifd_version_destroy(&repo->options, version);
    }
}

void ifd_repo_retire(struct ifd_repo *repo, struct ifd_version *version)
{
    if (!version->served) {
        ifd_version_destroy(&repo->options, version);
        return;
    }
    version->state = IFD_MODEL_UNLOADING;
    if (version->refs == 0) {
        dispose(repo, version);
        return;
    }
    version->next = repo->draining;
    repo->draining = version;
}

void ifd_repo_release(struct ifd_repo *repo, struct ifd_version *version)
{
    version->refs--;
    if (version->refs > 0 || version->state != IFD_MODEL_UNLOADING) {
        return;
    }
    struct ifd_version **at = &repo->draining;
    while (*at != version) {
        at = &(*at)->next;
    }
    *at = version->next;
    dispose(repo, version);
}

/* ---- models ---- */

/* Index of name, or where it would be inserted. */
static uint32_t place_of(const struct ifd_repo *repo, struct ifd_str name)
{
    uint32_t low = 0, high = repo->model_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *other = repo->model[middle]->name;
        int order = strncmp(name.data, other, name.size);
        if (order > 0) {
            low = middle + 1;
        } else { /* equal so far: other is name, or longer and therefore behind it */
            high = middle;
        }
    }
    return low;
}

struct ifd_repo_model *ifd_repo_known(const struct ifd_repo *repo, struct ifd_str name)
{
    uint32_t at = name.size > 0 ? place_of(repo, name) : repo->model_count;
    return at < repo->model_count && ifd_str_equal(name, repo->model[at]->name) ? repo->model[at]
                                                                                : NULL;
}

static bool grow(struct ifd_repo *repo)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    if (repo->model_count < repo->capacity) {
        return true;
    }
    uint32_t more = repo->capacity > 0 ? repo->capacity * 2 : 16;
    struct ifd_repo_model **grown = ifd_acquire_zeroed(alloc, more, sizeof(*grown));
    if (!grown) {
        return false;
    }
    for (uint32_t i = 0; i < repo->model_count; i++) {
        grown[i] = repo->model[i];
    }
    ifd_release(alloc, repo->model, repo->capacity * sizeof(struct ifd_repo_model *));
    repo->model = grown;
    repo->capacity = more;
    return true;
}

/* NULL without memory. */
struct ifd_repo_model *ifd_repo_find_or_add(struct ifd_repo *repo, struct ifd_str name)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    struct ifd_repo_model *model = ifd_repo_known(repo, name);
    if (model || !grow(repo)) {
        return model;
    }
    model = ifd_acquire_zeroed(alloc, 1, sizeof(*model));
    char *copy = ifd_acquire_zeroed(alloc, name.size + 1, 1);
    if (!model || !copy) {
        ifd_release(alloc, model, sizeof(*model));
        ifd_release(alloc, copy, name.size + 1);
        return NULL;
    }
    memcpy(copy, name.data, name.size);
    model->name = copy;
    uint32_t at = place_of(repo, name);
    for (uint32_t i = repo->model_count; i > at; i--) {
        repo->model[i] = repo->model[i - 1];
    }
    repo->model[at] = model;
    repo->model_count++;
    return model;
}

void ifd_repo_remove(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    uint32_t at = place_of(repo, ifd_str(model->name));
    for (uint32_t i = at; i + 1 < repo->model_count; i++) {
        repo->model[i] = repo->model[i + 1];
    }
    repo->model_count--;
    free_model(repo, model);
}

void ifd_repo_remove_if_empty(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    if (model->version_count == 0 && !model->first_op && model->reason[0] == '\0' &&
        !model->is_listed && !model->is_pending) {
        ifd_repo_remove(repo, model);
    }
}

void ifd_repo_list_ready(struct ifd_repo_model *model)
{
    model->ready_count = 0;
    for (uint32_t i = 0; i < model->version_count; i++) {
        if (model->version[i]->state == IFD_MODEL_READY) {
            model->ready[model->ready_count++] = model->version[i]->number_text;
        }
    }
}

/* ---- asking ---- */

uint32_t ifd_repo_loading_count(const struct ifd_repo *repo)
{
    return repo->starting;
}

uint32_t ifd_repo_model_count(const struct ifd_repo *repo)
{
    return repo->model_count;
}

const struct ifd_repo_model *ifd_repo_model_at(const struct ifd_repo *repo, uint32_t index)
{
    return repo->model[index];
}

const struct ifd_repo_model *ifd_repo_find(const struct ifd_repo *repo, struct ifd_str name)
{
    return ifd_repo_known(repo, name);
}

const struct ifd_version *ifd_repo_draining(const struct ifd_repo *repo)
{
    return repo->draining;
}

bool ifd_repo_next(const struct ifd_repo *repo, struct ifd_repo_walk *walk)
{
    for (; walk->model_index < repo->model_count; walk->model_index++, walk->version_index = 0) {
        walk->model = repo->model[walk->model_index];
        if (walk->version_index < walk->model->version_count) {
            walk->version = walk->model->version[walk->version_index++];
            return true;
        }
    }
    walk->model = NULL;
    walk->version = walk->is_draining ? walk->draining : repo->draining;
    walk->draining = walk->version ? walk->version->next : NULL;
    walk->is_draining = true;
    return walk->version != NULL;
}

static struct ifd_version *find_version(const struct ifd_repo_model *model, int64_t number)
{
    for (uint32_t i = model->version_count; i > 0; i--) {
        struct ifd_version *version = model->version[i - 1];
        if (number == 0 ? version->state == IFD_MODEL_READY : version->number == number) {
            return version;
        }
    }
    return NULL;
}

static enum ifd_code fail_not_ready(const struct ifd_repo_model *model,
                                    const struct ifd_version *version, struct ifd_err *err)
{
    return ifd_fail(err, IFD_UNAVAILABLE,
                    "Request for unknown model: '%s' version %s is not at ready state%s%s",
                    model->name, version->number_text, version->reason[0] ? ": " : "",
                    version->reason);
}

enum ifd_code ifd_repo_acquire(struct ifd_repo *repo, struct ifd_str name, int64_t number,
                               struct ifd_version **ret_version, struct ifd_err *err)
{
    const struct ifd_repo_model *model = ifd_repo_find(repo, name);
    int shown = name.size < 100 ? (int)name.size : 100;
    if (!model) {
        return ifd_fail(err, IFD_NOT_FOUND, "Request for unknown model: '%.*s' is not found", shown,
                        name.data);
    }
    struct ifd_version *version = find_version(model, number);
    if (version && version->state != IFD_MODEL_READY) {
        return fail_not_ready(model, version, err);
    }
    if (!version && model->is_loading) {
        return ifd_fail(err, IFD_UNAVAILABLE, "Request for unknown model: '%s' is being loaded",
                        model->name);
    }
    if (!version && number != 0) {
        return ifd_fail(err, IFD_NOT_FOUND,
                        "Request for unknown model: '%s' version %lld is not found", model->name,
                        (long long)number);
    }
    if (!version) {
        char pending[400] = "";
        const char *reason = model->version_count > 0
                                 ? model->version[model->version_count - 1]->reason
                                 : model->reason;
        if (!reason[0] && ifd_repo_tell_pending(repo, model, pending, sizeof(pending))) {
            reason = pending;
        }
        return ifd_fail(err, IFD_NOT_FOUND,
                        "Request for unknown model: '%s' has no available versions%s%s",
                        model->name, reason[0] ? ": " : "", reason);
    }
    version->refs++;
    *ret_version = version;
    return IFD_OK;
}

uint64_t ifd_repo_retry_ns(const struct ifd_repo *repo, const struct ifd_repo_model *model)
{
    return model->is_loading ? 0
           : repo->watch
               ? ifd_watcher_retry_ns(repo->watch, model->name, ifd_now_ns(repo->options.clock))
               : UINT64_MAX;
}

const char *ifd_repo_awaits(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                            uint64_t *ret_ns)
{
    uint64_t since_ns = 0;
    const char *file = repo->watch ? ifd_watcher_awaits(repo->watch, model->name, &since_ns) : NULL;
    if (file) {
        *ret_ns = ifd_now_ns(repo->options.clock) - since_ns;
    }
    return file;
}

enum ifd_code ifd_repo_check(const struct ifd_repo *repo, struct ifd_err *err)
{
    for (uint32_t i = 0; i < repo->model_count; i++) {
        const struct ifd_repo_model *model = repo->model[i];
        if (!model->is_wanted) {
            continue;
        }
        if (model->version_count == 0) {
            return ifd_fail(err, IFD_UNAVAILABLE, "model \"%s\" is not ready: %s", model->name,
                            model->is_loading ? "being loaded" : model->reason);
        }
        for (uint32_t k = 0; k < model->version_count; k++) {
            if (model->version[k]->state != IFD_MODEL_READY && !model->version[k]->has_stand_in) {
                return ifd_fail(err, IFD_UNAVAILABLE, "model \"%s\" version %s is not ready: %s",
                                model->name, model->version[k]->number_text,
                                model->version[k]->reason);
            }
        }
    }
    return IFD_OK;
}

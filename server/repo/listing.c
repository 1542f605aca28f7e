/* Lists the models of the folders: at the start and on request. */
#include "server/repo/repo_impl.h"

#include <string.h>

#include "engine/base/str.h"
#include "server/repo/layout.h"

struct waiter {
    struct waiter *next;
    ifd_repo_done_fn done;
    void *arg;
};

struct refresh {
    struct ifd_repo *repo;
    struct ifd_arena arena;
    struct ifd_folder_names *names; /* for each repository */
    struct waiter *first;           /* callers of this scan */
    enum ifd_code code;
};

/* ---- the start ---- */

static bool is_wanted(const char *name, const char *const *only, uint32_t only_count)
{
    for (uint32_t i = 0; i < only_count; i++) {
        if (strcmp(only[i], name) == 0 || strcmp(only[i], "*") == 0) {
            return true;
        }
    }
    return false;
}

void ifd_repo_warn_of_stray(void *context, const char *path, const char *wanted)
{
    const struct ifd_repo *repo = context;
    ifd_log_warn(repo->options.log, "model file lies where no model is looked for",
                 "file=%s put_it_into=%s", path, wanted);
}

/* Lists the names in every folder. */
static enum ifd_code list_names(const struct ifd_repo_options *options, struct ifd_arena *arena,
                                struct ifd_folder_names **ret_names, struct ifd_err *err)
{
    struct ifd_folder_names *names =
        ifd_arena_take_array(arena, options->dir_count, sizeof(*names));
    enum ifd_code code =
        names ? IFD_OK : ifd_arena_fail(arena, options->dir_count * sizeof(*names), err);
    for (uint32_t d = 0; d < options->dir_count && !code; d++) {
        int root = -1;
        code = ifd_folder_open(options->dir[d], &root, err);
        if (!code) {
            code = ifd_layout_models(root, arena, &names[d], err);
            ifd_folder_close(root);
        }
    }
    *ret_names = names;
    return code;
}

static enum ifd_code take_names(struct ifd_repo *repo, const struct ifd_folder_names *names,
                                struct ifd_err *err)
{
    for (uint32_t d = 0; d < repo->options.dir_count; d++) {
        for (uint32_t i = 0; i < names[d].count; i++) {
            struct ifd_repo_model *model = ifd_repo_find_or_add(repo, ifd_str(names[d].name[i]));
            if (!model) {
                return ifd_fail(err, IFD_NOMEM, "no memory for the list of models");
            }
            model->is_listed = repo->was_full[d] = true;
        }
    }
    return IFD_OK;
}

static enum ifd_code warn_of_strays(struct ifd_repo *repo, struct ifd_arena *arena,
                                    struct ifd_err *err)
{
    const struct ifd_repo_options *options = &repo->options;
    enum ifd_code code = IFD_OK;
    for (uint32_t d = 0; d < options->dir_count && !code; d++) {
        int root = -1;
        code = ifd_folder_open(options->dir[d], &root, err);
        if (!code) {
            code = ifd_layout_strays(root, arena, ifd_repo_warn_of_stray, repo, err);
            ifd_folder_close(root);
        }
    }
    return code;
}

static enum ifd_code list_all(struct ifd_repo *repo, struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_folder_names *names = NULL;
    ifd_arena_init(&arena, repo->options.alloc, IFD_SCAN_ARENA_BYTES);
    enum ifd_code code = list_names(&repo->options, &arena, &names, err);
    if (!code) {
        code = take_names(repo, names, err);
    }
    if (!code && !repo->watch) { /* else the first scan does */
        code = warn_of_strays(repo, &arena, err);
    }
    ifd_arena_finish(&arena);
    return code;
}

enum ifd_code ifd_repo_load_all(struct ifd_repo *repo, const char *const *only, uint32_t only_count,
                                bool is_explicit, struct ifd_err *err)
{
    const struct ifd_repo_op what = {.kind = IFD_REPO_LOAD, .is_start = true};
    enum ifd_code code = list_all(repo, err);
    for (uint32_t i = 0; i < only_count && !code; i++) {
        if (strcmp(only[i], "*") != 0 && !ifd_repo_find_or_add(repo, ifd_str(only[i]))) {
            code = ifd_fail(err, IFD_NOMEM, "no memory for the list of models");
        }
    }
    for (uint32_t i = 0; i < repo->model_count && !code; i++) {
        struct ifd_repo_model *model = repo->model[i];
        if (!is_explicit || is_wanted(model->name, only, only_count)) {
            code = ifd_repo_add_op(repo, model, &what, err);
        }
    }
    if (!code && repo->watch) {
        ifd_repo_plan_poll(repo);
    }
    if (!code && repo->starting == 0) {
        ifd_repo_plan_first_poll(repo);
    }
    return code;
}

/* ---- looking again ---- */

static void answer_waiters(struct ifd_repo *repo, struct waiter *first, enum ifd_code code,
                           const struct ifd_err *err)
{
    while (first) {
        struct waiter waiter = *first;
        ifd_release(repo->options.alloc, first, sizeof(*first));
        first = waiter.next;
        waiter.done(waiter.arg, code, err);
    }
}

/* Removes models that are in no folder any more and not wanted. */
static enum ifd_code use_names(struct ifd_repo *repo, const struct ifd_folder_names *names,
                               struct ifd_err *err)
{
    for (uint32_t i = 0; i < repo->model_count; i++) {
        repo->model[i]->is_listed = false;
    }
    enum ifd_code code = take_names(repo, names, err);
    for (uint32_t i = repo->model_count; i > 0; i--) {
        struct ifd_repo_model *model = repo->model[i - 1];
        if (!model->is_listed && !model->is_wanted && model->ready_count == 0 && !model->first_op) {
            ifd_repo_remove(repo, model);
        }
    }
    return code;
}

static void refresh_work(void *arg)
{
    struct refresh *refresh = arg;
    refresh->code = list_names(&refresh->repo->options, &refresh->arena, &refresh->names, NULL);
}

static void begin_refresh(struct ifd_repo *repo);

static void refresh_done(void *arg)
{
    struct refresh *refresh = arg;
    struct ifd_repo *repo = refresh->repo;
    struct ifd_err err = {0};
    struct waiter *first = refresh->first;
    enum ifd_code code = refresh->code ? IFD_OK : use_names(repo, refresh->names, &err);
    ifd_arena_finish(&refresh->arena);
    ifd_release(repo->options.alloc, refresh, sizeof(*refresh));
    repo->refresh = NULL;
    answer_waiters(repo, first, code, &err);
    if (repo->waiting && !repo->refresh) {
        begin_refresh(repo);
    }
}

static void begin_refresh(struct ifd_repo *repo)
{
    const struct ifd_repo_host *host = &repo->options.host;
    struct waiter *first = repo->waiting;
    struct refresh *refresh = repo->busy > 0 || *repo->options.is_stopping
                                  ? NULL
                                  : ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*refresh));
    repo->waiting = NULL;
    if (refresh) {
        refresh->repo = repo;
        refresh->first = first;
        ifd_arena_init(&refresh->arena, repo->options.alloc, IFD_SCAN_ARENA_BYTES);
        repo->refresh = refresh;
        if (!host->run_off_loop(host->context, refresh_work, refresh_done, refresh, NULL)) {
            return;
        }
        repo->refresh = NULL;
        ifd_release(repo->options.alloc, refresh, sizeof(*refresh));
    }
    answer_waiters(repo, first, IFD_OK, NULL);
}

void ifd_repo_refresh(struct ifd_repo *repo, ifd_repo_done_fn done, void *arg)
{
    struct ifd_err err = {0};
    struct waiter *waiter = ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*waiter));
    if (!waiter) {
        done(arg, ifd_fail(&err, IFD_NOMEM, "no memory to look at the repositories"), &err);
        return;
    }
    *waiter = (struct waiter){.next = repo->waiting, .done = done, .arg = arg};
    repo->waiting = waiter;
    if (!repo->refresh) {
        begin_refresh(repo);
    }
}

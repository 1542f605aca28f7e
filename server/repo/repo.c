/* The index of models, and what is done to it. */
#include "server/repo/repo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/repo/layout.h"
#include "server/repo/load.h"
#include "server/repo/watcher.h"

#define SCAN_ARENA_BYTES ((size_t)64 << 20)
#define ABSENT_SCANS     2

struct ifd_repo {
    struct ifd_repo_options options;
    struct ifd_repo_model **model; /* sorted by name */
    uint32_t model_count, capacity, starting;
    struct ifd_version *draining;
    struct ifd_watcher *watch; /* NULL: not in mode poll */
    struct poll *poll;         /* the scan that runs */
    struct refresh *refresh;   /* the listing that runs, and those that wait for the next one */
    struct waiter *waiting;
    uint32_t busy; /* models with operations */
    bool is_stopping;
};

enum op_kind { OP_LOAD, OP_UNLOAD, OP_REMOVE };

/* A load or unload of one model; the first of its model's list is the one that runs. */
struct ifd_repo_op {
    struct ifd_repo_op *next;
    struct ifd_repo *repo;
    struct ifd_repo_model *model;
    struct ifd_load load;
    enum op_kind kind;
    bool is_start;         /* the server is not ready before it ends */
    ifd_repo_done_fn done; /* may be NULL */
    void *arg;
};

struct poll {
    struct ifd_repo *repo;
    struct ifd_arena arena;
    struct ifd_scan scan;
};

struct waiter {
    struct waiter *next;
    ifd_repo_done_fn done;
    void *arg;
};

struct refresh {
    struct ifd_repo *repo;
    struct ifd_arena arena;
    struct ifd_folder_names *names; /* for each repository */
    struct waiter *first;           /* those it is for */
    enum ifd_code code;
};

static void begin_op(struct ifd_repo_op *op);

/* ---- life ---- */

enum ifd_code ifd_repo_create(const struct ifd_repo_options *options, struct ifd_repo **ret_repo,
                              struct ifd_err *err)
{
    struct ifd_repo *repo = ifd_acquire_zeroed(options->alloc, 1, sizeof(*repo));
    if (!repo) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the repository");
    }
    repo->options = *options;
    const struct ifd_watcher_options watch = {.alloc = options->alloc,
                                              .poll_ns = options->poll_ns,
                                              .settle_ns = options->settle_ns,
                                              .dwell_ns = options->dwell_ns,
                                              .absent_scans = ABSENT_SCANS};
    enum ifd_code code =
        options->poll_ns > 0 ? ifd_watcher_create(&watch, &repo->watch, err) : IFD_OK;
    if (code) {
        ifd_release(options->alloc, repo, sizeof(*repo));
        return code;
    }
    *ret_repo = repo;
    return IFD_OK;
}

static void free_lists(const struct ifd_alloc *alloc, struct ifd_version **version,
                       const char **ready, uint32_t capacity)
{
    ifd_release(alloc, version, capacity * sizeof(struct ifd_version *));
    ifd_release(alloc, (void *)(uintptr_t)ready, capacity * sizeof(const char *));
}

static void free_model(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    for (uint32_t i = 0; i < model->version_count; i++) {
        ifd_load_destroy_version(&repo->options, model->version[i]);
    }
    free_lists(alloc, model->version, model->ready, model->version_capacity);
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
        ifd_load_destroy_version(&repo->options, version);
    }
    ifd_watcher_destroy(repo->watch);
    ifd_release(alloc, repo->model, repo->capacity * sizeof(struct ifd_repo_model *));
    ifd_release(alloc, repo, sizeof(*repo));
}

/* ---- versions that go ---- */

static void destroy_off_loop(void *arg)
{
    struct ifd_version *version = arg;
    const struct ifd_repo *repo = (const struct ifd_repo *)(void *)version->next;
    ifd_load_destroy_version(&repo->options, version);
}

static void destroyed(void *arg)
{
    (void)arg; /* it is gone */
}

/* Nobody holds the version and nobody finds it any more. Its threads are joined and its memory given back elsewhere. */
static void dispose(struct ifd_repo *repo, struct ifd_version *version)
{
    const struct ifd_repo_host *host = &repo->options.host;
    ifd_log_info(repo->options.log, "version unloaded", "name=%s version=%s", version->name,
                 version->number_text);
    version->next =
        (struct ifd_version *)(void *)repo; /* not in a list any more: remembers whose it was */
    if (host->run_off_loop(host->context, destroy_off_loop, destroyed, version, NULL)) {
        ifd_load_destroy_version(&repo->options, version);
    }
}

static void retire(struct ifd_repo *repo, struct ifd_version *version)
{
    if (!version->served) {
        ifd_load_destroy_version(&repo->options, version);
        return;
    }
    version->state = IFD_VERSION_UNLOADING;
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
    if (version->refs > 0 || version->state != IFD_VERSION_UNLOADING) {
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

/* Where name is, or where it would be. */
static uint32_t place_of(const struct ifd_repo *repo, struct ifd_str name)
{
    uint32_t low = 0, high = repo->model_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const char *other = repo->model[middle]->name;
        int order = strncmp(name.data, other, name.size);
        if (order > 0) {
            low = middle + 1;
        } else { /* equal so far: other is name, or longer and so behind it */
            high = middle;
        }
    }
    return low;
}

static struct ifd_repo_model *find(const struct ifd_repo *repo, struct ifd_str name)
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
static struct ifd_repo_model *find_or_add(struct ifd_repo *repo, struct ifd_str name)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    struct ifd_repo_model *model = find(repo, name);
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

/* A model without versions, operations and reason is nothing. */
static void forget(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    uint32_t at = place_of(repo, ifd_str(model->name));
    for (uint32_t i = at; i + 1 < repo->model_count; i++) {
        repo->model[i] = repo->model[i + 1];
    }
    repo->model_count--;
    free_model(repo, model);
}

static void list_ready(struct ifd_repo_model *model)
{
    model->ready_count = 0;
    for (uint32_t i = 0; i < model->version_count; i++) {
        if (model->version[i]->state == IFD_VERSION_READY) {
            model->ready[model->ready_count++] = model->version[i]->number_text;
        }
    }
}

static void retire_all(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    for (uint32_t i = 0; i < model->version_count; i++) {
        retire(repo, model->version[i]);
    }
    model->version_count = 0;
    list_ready(model);
}

/* ---- operations ---- */

static void answer(const struct ifd_repo_op *op, enum ifd_code code, const char *verb,
                   const struct ifd_err *err)
{
    struct ifd_err told = {0};
    if (!op->done) {
        return;
    }
    if (code) {
        (void)ifd_fail(&told, code, "failed to %s '%s', %s", verb, op->model->name, err->text);
    }
    op->done(op->arg, code, &told);
}

/* A client's mistake is INVALID whatever part of the loader found it. */
static enum ifd_code told_code(enum ifd_code code)
{
    return code == IFD_CORRUPT || code == IFD_UNSUPPORTED || code == IFD_TOO_LARGE ||
                   code == IFD_NOT_FOUND || code == IFD_EXISTS
               ? IFD_INVALID
               : code;
}

/* The running operation is over: the next one's turn. */
static void end_op(struct ifd_repo_op *op)
{
    struct ifd_repo *repo = op->repo;
    struct ifd_repo_model *model = op->model;
    const struct ifd_alloc *alloc = repo->options.alloc;
    model->first_op = op->next;
    model->last_op = op->next ? model->last_op : NULL;
    repo->starting -= op->is_start;
    ifd_release(alloc, op->load.version, op->load.version_capacity * sizeof(*op->load.version));
    ifd_release(alloc, (void *)(uintptr_t)op->load.live,
                op->load.live_count * sizeof(*op->load.live));
    ifd_release(alloc, op, sizeof(*op));
    repo->busy -= !model->first_op;
    if (model->first_op) {
        begin_op(model->first_op);
    } else if (model->version_count == 0 && model->reason[0] == '\0' && !model->is_listed) {
        forget(repo, model);
    }
}

static void drop_loaded(struct ifd_repo *repo, const struct ifd_load *load)
{
    for (uint32_t i = 0; i < load->version_count; i++) {
        if (load->version[i].version) {
            retire(repo, load->version[i].version);
        }
    }
}

static struct ifd_version *live_version(const struct ifd_repo_model *model, int64_t number)
{
    for (uint32_t i = 0; i < model->version_count; i++) {
        if (model->version[i]->number == number) {
            return model->version[i];
        }
    }
    return NULL;
}

/* Takes over what the load made; what it did not keep is retired. False: no memory, nothing changed. */
static bool take_loaded(struct ifd_repo *repo, struct ifd_repo_model *model,
                        const struct ifd_load *load)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    uint32_t count = load->version_count, capacity = count > 0 ? count : 1;
    struct ifd_version **version = ifd_acquire_zeroed(alloc, capacity, sizeof(*version));
    const char **ready = ifd_acquire_zeroed(alloc, capacity, sizeof(*ready));
    if (!version || !ready) {
        free_lists(alloc, version, ready, capacity);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        version[i] = load->version[i].version ? load->version[i].version
                                              : live_version(model, load->version[i].number);
    }
    for (uint32_t i = 0; i < model->version_count; i++) {
        bool stays = false;
        for (uint32_t k = 0; k < count; k++) {
            stays = stays || version[k] == model->version[i];
        }
        if (!stays) {
            retire(repo, model->version[i]);
        }
    }
    free_lists(alloc, model->version, model->ready, model->version_capacity);
    model->version = version;
    model->ready = ready;
    model->version_count = count;
    model->version_capacity = capacity;
    list_ready(model);
    return true;
}

/* Old versions stay: what is wrong with the new content is kept beside them. */
static void keep_serving(struct ifd_repo *repo, struct ifd_repo_model *model,
                         const struct ifd_load *load)
{
    drop_loaded(repo, load);
    model->failed_number = load->failed_number;
    (void)snprintf(model->failed_reason, sizeof(model->failed_reason), "%s", load->err.text);
}

static void load_done(void *arg)
{
    struct ifd_repo_op *op = arg;
    struct ifd_repo *repo = op->repo;
    struct ifd_repo_model *model = op->model;
    struct ifd_load *load = &op->load;
    ifd_metric_add(repo->options.metrics, IFD_METRIC_LOADS, (uint32_t)load->code, 1);
    model->is_loading = false;
    model->failed_reason[0] = '\0';
    model->failed_number = 0;
    if (load->code && model->ready_count > 0) {
        keep_serving(repo, model, load);
    } else if (load->version_count > 0 || model->version_count > 0) {
        if (!take_loaded(repo, model, load)) {
            load->code =
                ifd_fail(&load->err, IFD_NOMEM, "no memory for %u versions", load->version_count);
            keep_serving(repo, model, load);
        }
    }
    if (model->ready_count == 0 && !load->is_unknown) {
        (void)snprintf(model->reason, sizeof(model->reason), "%s", load->err.text);
    } else if (!load->code) {
        model->reason[0] = '\0';
    }
    model->is_wanted = model->is_wanted || op->is_start || !load->code;
    if (repo->watch) {
        ifd_watcher_loaded(repo->watch, model->name, load->fingerprint, load->code,
                           ifd_now_ns(repo->options.clock));
    }
    answer(op, load->is_unknown ? IFD_NOT_FOUND : told_code(load->code), "load", &load->err);
    end_op(op);
    repo->options.host.changed(repo->options.host.context);
}

static void load_work(void *arg)
{
    ifd_load_model(&((struct ifd_repo_op *)arg)->load);
}

static enum ifd_code list_live(struct ifd_repo_op *op, struct ifd_err *err)
{
    const struct ifd_repo_model *model = op->model;
    uint32_t count = model->ready_count;
    struct ifd_load_live *live = ifd_acquire_zeroed(op->repo->options.alloc, count, sizeof(*live));
    if (!live && count > 0) {
        return ifd_fail(err, IFD_NOMEM, "no memory");
    }
    op->load.live = live;
    for (uint32_t i = 0; i < model->version_count; i++) {
        const struct ifd_version *version = model->version[i];
        if (version->state == IFD_VERSION_READY) {
            live[op->load.live_count++] =
                (struct ifd_load_live){.number = version->number, .digest = version->digest};
        }
    }
    return IFD_OK;
}

static void begin_load(struct ifd_repo_op *op)
{
    struct ifd_repo *repo = op->repo;
    const struct ifd_repo_host *host = &repo->options.host;
    op->model->is_loading = true;
    op->load.options = &repo->options;
    op->load.name = op->model->name;
    enum ifd_code code = list_live(op, &op->load.err);
    if (!code) {
        code = host->run_off_loop(host->context, load_work, load_done, op, &op->load.err);
    }
    if (code) {
        op->load.code = code;
        load_done(op);
    }
}

/* What the index shows after an unload: the number, and why there is nothing behind it. */
static struct ifd_version *new_husk(struct ifd_repo *repo, const struct ifd_version *version)
{
    struct ifd_version *husk = ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*husk));
    if (husk) {
        husk->number = version->number;
        memcpy(husk->number_text, version->number_text, sizeof(husk->number_text));
        husk->state = IFD_VERSION_UNAVAILABLE;
        (void)snprintf(husk->reason, sizeof(husk->reason), "unloaded");
    }
    return husk;
}

static void unload(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->version_count; i++) {
        struct ifd_version *husk = new_husk(repo, model->version[i]);
        retire(repo, model->version[i]);
        if (husk) { /* without memory the index has a row less */
            model->version[count++] = husk;
        }
    }
    model->version_count = count;
    list_ready(model);
    model->is_wanted = false;
    model->failed_number = 0;
    model->failed_reason[0] = '\0';
    (void)snprintf(model->reason, sizeof(model->reason), "unloaded");
}

/* The folder is gone: so is the model. */
static void remove_model(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    ifd_log_info(repo->options.log, "model removed from the repository", "name=%s", model->name);
    retire_all(repo, model);
    model->is_wanted = model->is_listed = false;
    model->reason[0] = model->failed_reason[0] = '\0';
}

static void begin_op(struct ifd_repo_op *op)
{
    struct ifd_repo *repo = op->repo;
    struct ifd_err err = {0};
    if (repo->is_stopping) {
        answer(op, ifd_fail(&err, IFD_UNAVAILABLE, "the server is stopping"),
               op->kind == OP_LOAD ? "load" : "unload", &err);
        end_op(op);
        return;
    }
    if (op->kind == OP_LOAD) {
        begin_load(op);
        return;
    }
    if (op->kind == OP_UNLOAD) {
        unload(repo, op->model);
    } else {
        remove_model(repo, op->model);
    }
    answer(op, IFD_OK, "unload", NULL);
    end_op(op);
    repo->options.host.changed(repo->options.host.context);
}

/* Puts an operation at the end of its model's list. Errors: NOMEM. */
static enum ifd_code add_op(struct ifd_repo *repo, struct ifd_repo_model *model,
                            const struct ifd_repo_op *what, struct ifd_err *err)
{
    struct ifd_repo_op *op = ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*op));
    if (!op) {
        return ifd_fail(err, IFD_NOMEM, "no memory to load or unload model \"%s\"", model->name);
    }
    *op = *what;
    op->repo = repo;
    op->model = model;
    repo->starting += op->is_start;
    bool is_first = !model->first_op;
    *(is_first ? &model->first_op : &model->last_op->next) = op;
    model->last_op = op;
    repo->busy += is_first;
    if (is_first) {
        begin_op(op);
    }
    return IFD_OK;
}

void ifd_repo_load(struct ifd_repo *repo, struct ifd_str name, const struct ifd_source *request,
                   ifd_repo_done_fn done, void *arg)
{
    struct ifd_err err = {0};
    const struct ifd_repo_op what = {
        .kind = OP_LOAD, .load.request = *request, .done = done, .arg = arg};
    struct ifd_repo_model *model = find_or_add(repo, name);
    enum ifd_code code = model ? add_op(repo, model, &what, &err)
                               : ifd_fail(&err, IFD_NOMEM, "failed to load '%.*s', no memory",
                                          name.size < 100 ? (int)name.size : 100, name.data);
    if (code) {
        done(arg, code, &err);
    }
}

void ifd_repo_unload(struct ifd_repo *repo, struct ifd_str name, ifd_repo_done_fn done, void *arg)
{
    struct ifd_err err = {0};
    const struct ifd_repo_op what = {.kind = OP_UNLOAD, .done = done, .arg = arg};
    struct ifd_repo_model *model = find(repo, name);
    enum ifd_code code =
        model ? add_op(repo, model, &what, &err)
              : ifd_fail(&err, IFD_NOT_FOUND, "failed to unload '%.*s', there is no such model",
                         name.size < 100 ? (int)name.size : 100, name.data);
    if (code) {
        done(arg, code, &err);
    }
}

void ifd_repo_stop(struct ifd_repo *repo)
{
    repo->is_stopping = true;
}

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

/* The names in every folder. */
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
            struct ifd_repo_model *model = find_or_add(repo, ifd_str(names[d].name[i]));
            if (!model) {
                return ifd_fail(err, IFD_NOMEM, "no memory for the list of models");
            }
            model->is_listed = true;
        }
    }
    return IFD_OK;
}

static enum ifd_code list_all(struct ifd_repo *repo, struct ifd_err *err)
{
    struct ifd_arena arena;
    struct ifd_folder_names *names = NULL;
    ifd_arena_init(&arena, repo->options.alloc, SCAN_ARENA_BYTES);
    enum ifd_code code = list_names(&repo->options, &arena, &names, err);
    if (!code) {
        code = take_names(repo, names, err);
    }
    ifd_arena_finish(&arena);
    return code;
}

enum ifd_code ifd_repo_load_all(struct ifd_repo *repo, const char *const *only, uint32_t only_count,
                                bool is_explicit, struct ifd_err *err)
{
    const struct ifd_repo_op what = {.kind = OP_LOAD, .is_start = true};
    enum ifd_code code = list_all(repo, err);
    for (uint32_t i = 0; i < only_count && !code; i++) {
        if (strcmp(only[i], "*") != 0 && !ifd_repo_find(repo, ifd_str(only[i]))) {
            code = ifd_fail(err, IFD_NOT_FOUND, "no repository has a model \"%s\"", only[i]);
        }
    }
    for (uint32_t i = 0; i < repo->model_count && !code; i++) {
        struct ifd_repo_model *model = repo->model[i];
        if (!is_explicit || is_wanted(model->name, only, only_count)) {
            code = add_op(repo, model, &what, err);
        }
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

/* Models that no folder has any more, and that nobody wants, are forgotten. */
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
            forget(repo, model);
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
    struct refresh *refresh = repo->busy > 0 || repo->is_stopping
                                  ? NULL
                                  : ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*refresh));
    repo->waiting = NULL;
    if (refresh) {
        refresh->repo = repo;
        refresh->first = first;
        ifd_arena_init(&refresh->arena, repo->options.alloc, SCAN_ARENA_BYTES);
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

/* ---- polling ---- */

static void act(struct ifd_repo *repo, const struct ifd_watcher_action *action)
{
    struct ifd_err err = {0};
    bool is_load = action->act == IFD_WATCHER_LOAD;
    const struct ifd_repo_op what = {.kind = is_load ? OP_LOAD : OP_REMOVE};
    struct ifd_repo_model *model =
        is_load ? find_or_add(repo, ifd_str(action->name)) : find(repo, ifd_str(action->name));
    enum ifd_code code = model     ? add_op(repo, model, &what, &err)
                         : is_load ? ifd_fail(&err, IFD_NOMEM, "no memory for a model")
                                   : IFD_OK;
    if (code) { /* the watch tries again later */
        ifd_log_error(repo->options.log, "change not taken", "name=%s reason=%s", action->name,
                      err.text);
        ifd_watcher_loaded(repo->watch, action->name, 0, code, ifd_now_ns(repo->options.clock));
    }
}

static void poll_work(void *arg)
{
    struct poll *poll = arg;
    const struct ifd_repo_options *options = &poll->repo->options;
    ifd_scan_all(options->dir, options->dir_count, &poll->arena, &poll->scan);
}

static void poll_done(void *arg)
{
    struct poll *poll = arg;
    struct ifd_repo *repo = poll->repo;
    struct ifd_err err = poll->scan.err;
    struct ifd_watcher_action action;
    uint64_t now_ns = ifd_now_ns(repo->options.clock);
    char quoted[400];
    enum ifd_code code = ifd_watcher_scanned(repo->watch, &poll->scan, now_ns, &err);
    if (code || !poll->scan.is_complete) {
        ifd_log_warn(repo->options.log, "repository not listed, models stay", "reason=%s",
                     ifd_log_quote(err.text, quoted, sizeof(quoted)));
    }
    ifd_arena_finish(&poll->arena);
    ifd_release(repo->options.alloc, poll, sizeof(*poll));
    repo->poll = NULL;
    while (!repo->is_stopping && ifd_watcher_next(repo->watch, now_ns, &action)) {
        act(repo, &action);
    }
    repo->options.host.polled(repo->options.host.context,
                              ifd_watcher_wait_ns(repo->watch, now_ns) / 1000000 + 1);
}

void ifd_repo_poll(struct ifd_repo *repo)
{
    const struct ifd_repo_host *host = &repo->options.host;
    if (repo->poll || repo->is_stopping) {
        return;
    }
    struct poll *poll = ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*poll));
    if (poll) {
        poll->repo = repo;
        ifd_arena_init(&poll->arena, repo->options.alloc, SCAN_ARENA_BYTES);
        if (!host->run_off_loop(host->context, poll_work, poll_done, poll, NULL)) {
            repo->poll = poll;
            return;
        }
        ifd_release(repo->options.alloc, poll, sizeof(*poll));
    }
    ifd_log_warn(repo->options.log, "repository not polled", "reason=\"no memory\"");
    host->polled(host->context, repo->options.poll_ns / 1000000);
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
    return find(repo, name);
}

const struct ifd_version *ifd_repo_draining(const struct ifd_repo *repo)
{
    return repo->draining;
}

static struct ifd_version *find_version(const struct ifd_repo_model *model, int64_t number)
{
    for (uint32_t i = model->version_count; i > 0; i--) {
        struct ifd_version *version = model->version[i - 1];
        if (number == 0 ? version->state == IFD_VERSION_READY : version->number == number) {
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
    if (version && version->state != IFD_VERSION_READY) {
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
        const char *reason = model->version_count > 0
                                 ? model->version[model->version_count - 1]->reason
                                 : model->reason;
        return ifd_fail(err, IFD_NOT_FOUND,
                        "Request for unknown model: '%s' has no available versions%s%s",
                        model->name, reason[0] ? ": " : "", reason);
    }
    version->refs++;
    *ret_version = version;
    return IFD_OK;
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
            if (model->version[k]->state != IFD_VERSION_READY) {
                return ifd_fail(err, IFD_UNAVAILABLE, "model \"%s\" version %s is not ready: %s",
                                model->name, model->version[k]->number_text,
                                model->version[k]->reason);
            }
        }
    }
    return IFD_OK;
}

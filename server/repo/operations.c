/* Loads and unloads models: one operation at a time per model, in the order of the calls. */
#include "server/repo/repo_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/repo/load_model.h"

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

/* A client's mistake is INVALID, wherever it was found. */
static enum ifd_code told_code(enum ifd_code code)
{
    return code == IFD_CORRUPT || code == IFD_UNSUPPORTED || code == IFD_TOO_LARGE ||
                   code == IFD_NOT_FOUND || code == IFD_EXISTS
               ? IFD_INVALID
               : code;
}

static void drop_loaded(struct ifd_repo *repo, const struct ifd_model_load *load)
{
    for (uint32_t i = 0; i < load->version_count; i++) {
        if (load->version[i].version) {
            ifd_repo_retire(repo, load->version[i].version);
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

/* Takes over the loaded versions and retires those that they replace. False: no memory, nothing
 * changed. */
static bool take_loaded(struct ifd_repo *repo, struct ifd_repo_model *model,
                        const struct ifd_model_load *load)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    uint32_t count = load->version_count, capacity = count > 0 ? count : 1;
    struct ifd_version **version = ifd_acquire_zeroed(alloc, capacity, sizeof(*version));
    const char **ready = ifd_acquire_zeroed(alloc, capacity, sizeof(*ready));
    if (!version || !ready) {
        ifd_repo_free_lists(alloc, version, ready, capacity);
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
            ifd_repo_retire(repo, model->version[i]);
        }
    }
    ifd_repo_free_lists(alloc, model->version, model->ready, model->version_capacity);
    model->version = version;
    model->ready = ready;
    model->version_count = count;
    model->version_capacity = capacity;
    ifd_repo_list_ready(model);
    return true;
}

/* Keeps the failure of newer content beside the versions that serve in its place, and logs it. */
static void tell_failure(const struct ifd_repo *repo, struct ifd_repo_model *model,
                         const struct ifd_model_load *load)
{
    char number[24] = "-";
    model->failed_number = load->failed_number;
    model->failed_code = load->code;
    (void)snprintf(model->failed_reason, sizeof(model->failed_reason), "%s", load->err.text);
    if (load->failed_number > 0) {
        (void)snprintf(number, sizeof(number), "%" PRId64, load->failed_number);
    }
    if (model->ready_count > 0 && !*repo->options.is_stopping) {
        ifd_log_warn(repo->options.log, "older content serves",
                     "model=%s version=%s failed_version=%s reason=%s", model->name,
                     model->ready[model->ready_count - 1], number, load->err.text);
    }
}

/* True if some loaded version can serve and what serves need not stay. */
static bool is_usable(const struct ifd_model_load *load)
{
    bool serves = !load->code;
    for (uint32_t i = 0; i < load->version_count; i++) {
        const struct ifd_version *version = load->version[i].version;
        serves = serves || !version || version->state == IFD_MODEL_READY;
    }
    return serves && !load->keeps_live;
}

/* True if the failed content is newer than all that serves, or has no row in the index. */
static bool is_outdated(const struct ifd_repo_model *model, const struct ifd_model_load *load)
{
    const struct ifd_version *failed = live_version(model, load->failed_number);
    const bool has_row = failed && failed->state == IFD_MODEL_UNAVAILABLE;
    const struct ifd_version *newest = NULL;
    for (uint32_t i = 0; i < model->version_count; i++) {
        newest = model->version[i]->state == IFD_MODEL_READY ? model->version[i] : newest;
    }
    return load->code && newest && (!has_row || load->failed_number > newest->number);
}

static void keep_serving(struct ifd_repo *repo, struct ifd_repo_model *model,
                         const struct ifd_model_load *load)
{
    drop_loaded(repo, load);
    tell_failure(repo, model, load);
}

/* Counts attempts; changed content starts at 1. */
static void count_attempt(struct ifd_repo_model *model, const struct ifd_model_load *load)
{
    const bool is_same = model->failed_fingerprint == load->seen.fingerprint;
    model->failed_attempts = !load->code ? 0 : is_same ? model->failed_attempts + 1 : 1;
    model->failed_fingerprint = load->seen.fingerprint;
}

static void tell_watch(struct ifd_repo *repo, const struct ifd_repo_model *model,
                       const struct ifd_model_load *load)
{
    if (ifd_watcher_loaded(repo->watch, model->name, &load->seen, load->code,
                           ifd_now_ns(repo->options.clock))) {
        ifd_metric_add(repo->options.metrics, IFD_METRIC_LIMIT_HITS, IFD_LIMIT_SWAPS, 1);
        ifd_log_warn(repo->options.log, "model changes too often, reloads are suspended",
                     "model=%s swaps_per_hour=%u", model->name, repo->options.swaps_per_hour);
    }
    ifd_repo_plan_poll(repo); /* failed content is tried again soon */
}

static void finish_load(struct ifd_repo_op *op)
{
    struct ifd_repo *repo = op->repo;
    struct ifd_repo_model *model = op->model;
    struct ifd_model_load *load = &op->load;
    ifd_metric_add(repo->options.metrics, IFD_METRIC_LOADS, (uint32_t)load->code, 1);
    model->is_loading = false;
    model->failed_reason[0] = '\0';
    model->failed_number = 0;
    const bool is_whole = is_usable(load);
    if (!is_whole && model->ready_count > 0) {
        keep_serving(repo, model, load);
    } else if (load->version_count > 0 || model->version_count > 0) {
        if (!take_loaded(repo, model, load)) {
            load->code =
                ifd_fail(&load->err, IFD_NOMEM, "no memory for %u versions", load->version_count);
            keep_serving(repo, model, load);
        } else if (is_outdated(model, load)) {
            tell_failure(repo, model, load);
        }
    }
    if (model->ready_count == 0 && (op->is_start || !load->is_unknown)) {
        (void)snprintf(model->reason, sizeof(model->reason), "%s", load->err.text);
    } else if (is_whole) {
        model->reason[0] = '\0';
    }
    model->is_wanted = model->is_wanted || op->is_start || is_whole;
    count_attempt(model, load);
    if (repo->watch) {
        tell_watch(repo, model, load);
    }
    answer(op, load->is_unknown ? IFD_NOT_FOUND : told_code(load->code), "load", &load->err);
}

static void load_work(void *arg)
{
    struct ifd_repo_op *op = arg;
    atomic_store(&op->has_begun, true);
    ifd_load_model(&op->load);
}

static enum ifd_code list_live(struct ifd_repo_op *op, struct ifd_err *err)
{
    const struct ifd_repo_model *model = op->model;
    uint32_t count = model->ready_count;
    struct ifd_live_version *live =
        ifd_acquire_zeroed(op->repo->options.alloc, count, sizeof(*live));
    if (!live && count > 0) {
        return ifd_fail(err, IFD_NOMEM, "no memory");
    }
    op->load.live = live;
    for (uint32_t i = 0; i < model->version_count; i++) {
        const struct ifd_version *version = model->version[i];
        if (version->state == IFD_MODEL_READY) {
            live[op->load.live_count++] =
                (struct ifd_live_version){.number = version->number,
                                          .digest = version->digest,
                                          .is_finite = version->is_finite};
        }
    }
    return IFD_OK;
}

static void load_done(void *arg);

/* Returns true if the load failed at once. */
static bool begin_load(struct ifd_repo_op *op)
{
    struct ifd_repo *repo = op->repo;
    const struct ifd_repo_host *host = &repo->options.host;
    op->model->is_loading = true;
    op->load.options = &repo->options;
    op->load.name = op->model->name;
    op->load.is_asked = op->done != NULL;
    enum ifd_code code = list_live(op, &op->load.err);
    if (!code) {
        code = host->run_off_loop(host->context, load_work, load_done, op, &op->load.err);
    }
    if (code) {
        op->load.code = code;
        finish_load(op);
    }
    return code != IFD_OK;
}

/* Makes the index row of an unloaded version. */
static struct ifd_version *new_husk(struct ifd_repo *repo, const struct ifd_version *version)
{
    struct ifd_version *husk = ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*husk));
    if (husk) {
        husk->number = version->number;
        memcpy(husk->number_text, version->number_text, sizeof(husk->number_text));
        husk->state = IFD_MODEL_UNAVAILABLE;
        (void)snprintf(husk->reason, sizeof(husk->reason), "unloaded");
    }
    return husk;
}

static void unload(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->version_count; i++) {
        struct ifd_version *husk = new_husk(repo, model->version[i]);
        ifd_repo_retire(repo, model->version[i]);
        if (husk) { /* without memory the row is missing */
            model->version[count++] = husk;
        }
    }
    model->version_count = count;
    ifd_repo_list_ready(model);
    model->is_wanted = false;
    model->failed_number = 0;
    model->failed_attempts = 0;
    model->failed_reason[0] = '\0';
    (void)snprintf(model->reason, sizeof(model->reason), "unloaded");
}

static void retire_all(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    for (uint32_t i = 0; i < model->version_count; i++) {
        ifd_repo_retire(repo, model->version[i]);
    }
    model->version_count = 0;
    ifd_repo_list_ready(model);
}

/* Removes a model whose folder is gone. */
static void remove_model(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    ifd_log_info(repo->options.log, "model removed", "model=%s", model->name);
    retire_all(repo, model);
    model->is_wanted = model->is_listed = false;
    model->reason[0] = model->failed_reason[0] = '\0';
    model->failed_attempts = 0;
}

/* Returns true if the operation is over; else load_done ends it. */
static bool begin_op(struct ifd_repo_op *op)
{
    struct ifd_repo *repo = op->repo;
    struct ifd_err err = {0};
    const enum ifd_code code = ifd_load_check_stop(&repo->options, &err);
    if (!code && op->kind == IFD_REPO_LOAD) {
        return begin_load(op);
    }
    if (!code && op->kind == IFD_REPO_UNLOAD) {
        unload(repo, op->model);
    } else if (!code) {
        remove_model(repo, op->model);
    }
    answer(op, code, op->kind == IFD_REPO_LOAD ? "load" : "unload", &err);
    return true;
}

/* Removes the first operation of a model, which is over. */
static void drop_first(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    const struct ifd_alloc *alloc = repo->options.alloc;
    struct ifd_repo_op *op = model->first_op;
    model->first_op = op->next;
    model->last_op = op->next ? model->last_op : NULL;
    if (op->is_start && --repo->starting == 0) {
        ifd_repo_plan_first_poll(repo);
    }
    ifd_release(alloc, op->load.version, op->load.version_capacity * sizeof(*op->load.version));
    ifd_release(alloc, (void *)(uintptr_t)op->load.live,
                op->load.live_count * sizeof(*op->load.live));
    ifd_release(alloc, op, sizeof(*op));
}

/* Ends the first operation of a model and begins the next ones, until one takes time. A loop, not a
 * recursion, because clients decide how many there are. */
static void end_op(struct ifd_repo *repo, struct ifd_repo_model *model)
{
    do {
        drop_first(repo, model);
    } while (model->first_op && begin_op(model->first_op));
    if (!model->first_op) {
        repo->busy--;
        ifd_repo_remove_if_empty(repo, model);
    }
    repo->options.host.changed(repo->options.host.context);
}

static void load_done(void *arg)
{
    struct ifd_repo_op *op = arg;
    finish_load(op);
    end_op(op->repo, op->model);
}

/* Appends an operation to its model's list. Errors: NOMEM. */
enum ifd_code ifd_repo_add_op(struct ifd_repo *repo, struct ifd_repo_model *model,
                              const struct ifd_repo_op *what, struct ifd_err *err)
{
    struct ifd_repo_op *op = ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*op));
    if (!op) {
        return ifd_fail(err, IFD_NOMEM, "no memory to load or unload model \"%s\"", model->name);
    }
    *op = *what;
    op->repo = repo;
    op->model = model;
    op->since_ns = ifd_now_ns(repo->options.clock);
    repo->starting += op->is_start;
    bool is_first = !model->first_op;
    *(is_first ? &model->first_op : &model->last_op->next) = op;
    model->last_op = op;
    repo->busy += is_first;
    if (is_first && begin_op(op)) {
        end_op(repo, model);
    }
    return IFD_OK;
}

static void add_load(struct ifd_repo *repo, struct ifd_str name, const struct ifd_repo_op *what)
{
    struct ifd_err err = {0};
    struct ifd_repo_model *model = ifd_repo_find_or_add(repo, name);
    enum ifd_code code = model ? ifd_repo_add_op(repo, model, what, &err)
                               : ifd_fail(&err, IFD_NOMEM, "failed to load '%.*s', no memory",
                                          name.size < 100 ? (int)name.size : 100, name.data);
    if (code) {
        what->done(what->arg, code, &err);
    }
}

void ifd_repo_load(struct ifd_repo *repo, struct ifd_str name, const struct ifd_source *request,
                   ifd_repo_done_fn done, void *arg)
{
    const struct ifd_repo_op what = {
        .kind = IFD_REPO_LOAD, .load.request = *request, .done = done, .arg = arg};
    add_load(repo, name, &what);
}

void ifd_repo_load_at_start(struct ifd_repo *repo, struct ifd_str name,
                            const struct ifd_source *request, ifd_repo_done_fn done, void *arg)
{
    const struct ifd_repo_op what = {.kind = IFD_REPO_LOAD,
                                     .is_start = true,
                                     .load.request = *request,
                                     .done = done,
                                     .arg = arg};
    add_load(repo, name, &what);
}

void ifd_repo_unload(struct ifd_repo *repo, struct ifd_str name, ifd_repo_done_fn done, void *arg)
{
    struct ifd_err err = {0};
    const struct ifd_repo_op what = {.kind = IFD_REPO_UNLOAD, .done = done, .arg = arg};
    struct ifd_repo_model *model = ifd_repo_known(repo, name);
    enum ifd_code code =
        model ? ifd_repo_add_op(repo, model, &what, &err)
              : ifd_fail(&err, IFD_NOT_FOUND, "failed to unload '%.*s', there is no such model",
                         name.size < 100 ? (int)name.size : 100, name.data);
    if (code) {
        done(arg, code, &err);
    }
}

/* Models: index, statistics, load and unload. */
#include "server/serve/service_impl.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/serve/served.h"

/* ---- models ---- */

enum ifd_code ifd_service_acquire(struct ifd_service *service, struct ifd_str name, int64_t version,
                                  struct ifd_model_ref **ret_ref, struct ifd_err *err)
{
    struct ifd_version *found = NULL;
    enum ifd_code code = ifd_repo_acquire(service->options.repo, name, version, &found, err);
    if (!code) {
        *ret_ref = (struct ifd_model_ref *)found; /* the API's name for a pinned version */
    }
    return code;
}

void ifd_service_release(struct ifd_service *service, struct ifd_model_ref *ref)
{
    ifd_repo_release(service->options.repo, (struct ifd_version *)ref);
}

const struct ifd_model_desc *ifd_service_describe(const struct ifd_model_ref *ref)
{
    return &((const struct ifd_version *)ref)->desc;
}

/* Adds failed attempts and the next retry to a row about content that could not be loaded. */
static void tell_attempts(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                          struct ifd_index_row *row)
{
    const uint64_t second_ns = 1000000000;
    const uint64_t wait_ns = ifd_repo_retry_ns(repo, model);
    row->attempts = model->failed_attempts;
    row->retry_secs =
        wait_ns == UINT64_MAX ? IFD_RETRY_NEVER : wait_ns / second_ns + (wait_ns % second_ns != 0);
}

/* Why newer content does not serve. */
struct newer {
    int64_t number;     /* 0: no version in particular */
    const char *reason; /* NULL: there is none */
    bool is_failure;    /* a load failed; else newer content waits for one */
    char text[400];
};

/* Number of the version in a path below a repository; 0: none. */
static int64_t version_of(const char *path)
{
    struct ifd_str rest = ifd_str(path), model = ifd_str_part(&rest, '/'),
                   folder = ifd_str_part(&rest, '/');
    int64_t number = 0;
    (void)model;
    return ifd_str_s64(folder, &number) ? number : 0;
}

static void look_for_newer(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                           struct newer *ret)
{
    uint64_t waited_ns = 0;
    const char *file = ifd_repo_awaits(repo, model, &waited_ns);
    *ret = (struct newer){.number = model->failed_number,
                          .reason = model->failed_reason[0] ? model->failed_reason : NULL,
                          .is_failure = true};
    if (file) {
        (void)snprintf(ret->text, sizeof(ret->text),
                       "new content is not loaded while \"%.250s\" is there, for %llu s by now: "
                       "rename or remove it",
                       file, (unsigned long long)(waited_ns / 1000000000));
        ret->number = version_of(file);
        ret->reason = ret->text;
        ret->is_failure = false;
    }
}

/* The last row of a model says what it waits for. */
static void index_version(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                          const struct ifd_version *version, const struct newer *newer,
                          const char *pending, ifd_index_fn fn, void *arg)
{
    struct ifd_index_row row = {.name = model->name,
                                .version = version->number,
                                .state = version->state,
                                .reason = version->reason,
                                .pending = pending};
    const bool is_newer = newer->reason && version->number == newer->number;
    if (is_newer) {
        row.reason = newer->reason; /* of newer content under the same number */
    }
    if (is_newer ? newer->is_failure : version->state == IFD_MODEL_UNAVAILABLE) {
        tell_attempts(repo, model, &row);
    }
    for (const struct ifd_version *v = ifd_repo_draining(repo); v && !version->served;
         v = v->next) {
        if (v->number == version->number && strcmp(v->name, model->name) == 0) {
            row.state = IFD_MODEL_UNLOADING;
        }
    }
    fn(arg, &row);
}

static void index_model(const struct ifd_repo *repo, const struct ifd_repo_model *model,
                        bool only_ready, ifd_index_fn fn, void *arg)
{
    struct newer newer;
    char text[400];
    const char *pending = ifd_repo_tell_pending(repo, model, text, sizeof(text)) ? text : NULL;
    look_for_newer(repo, model, &newer);
    bool is_newer_told = !newer.reason;
    for (uint32_t i = 0; i < model->version_count; i++) {
        is_newer_told = is_newer_told || model->version[i]->number == newer.number;
    }
    if (model->version_count == 0 && !only_ready && (is_newer_told || newer.is_failure)) {
        struct ifd_index_row row = {.name = model->name,
                                    .state = model->is_loading  ? IFD_MODEL_LOADING
                                             : model->reason[0] ? IFD_MODEL_UNAVAILABLE
                                                                : IFD_MODEL_UNKNOWN,
                                    .reason = model->reason,
                                    .pending = pending};
        tell_attempts(repo, model, &row);
        fn(arg, &row);
    }
    for (uint32_t i = 0; i < model->version_count; i++) {
        const struct ifd_version *version = model->version[i];
        const bool is_last = i + 1 == model->version_count;
        if (!only_ready || version->state == IFD_MODEL_READY) {
            index_version(repo, model, version, &newer, is_last && is_newer_told ? pending : NULL,
                          fn, arg);
        }
    }
    if (!is_newer_told && !only_ready) { /* newer content that is not served */
        struct ifd_index_row row = {.name = model->name,
                                    .version = newer.number,
                                    .state = IFD_MODEL_UNAVAILABLE,
                                    .reason = newer.reason,
                                    .pending = pending};
        if (newer.is_failure) {
            tell_attempts(repo, model, &row);
        }
        fn(arg, &row);
    }
}

void ifd_service_index(struct ifd_service *service, bool only_ready, ifd_index_fn fn, void *arg)
{
    const struct ifd_repo *repo = service->options.repo;
    for (uint32_t i = 0; i < ifd_repo_model_count(repo); i++) {
        index_model(repo, ifd_repo_model_at(repo, i), only_ready, fn, arg);
    }
}

static uint32_t model_stats(const struct ifd_repo_model *model, int64_t number, ifd_stats_fn fn,
                            void *arg)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < model->version_count; i++) {
        const struct ifd_version *version = model->version[i];
        const struct ifd_served *served = version->served;
        if (served && (number == 0 || version->number == number)) {
            fn(arg, &served->stats);
            found++;
        }
    }
    return found;
}

enum ifd_code ifd_service_stats(struct ifd_service *service, struct ifd_str name, int64_t version,
                                ifd_stats_fn fn, void *arg, struct ifd_err *err)
{
    const struct ifd_repo *repo = service->options.repo;
    if (!name.data) {
        for (uint32_t i = 0; i < ifd_repo_model_count(repo); i++) {
            (void)model_stats(ifd_repo_model_at(repo, i), 0, fn, arg);
        }
        return IFD_OK;
    }
    const struct ifd_repo_model *model = ifd_repo_find(repo, name);
    if (model && model_stats(model, version, fn, arg) > 0) {
        return IFD_OK;
    }
    int shown = (int)(name.size < 100 ? name.size : 100);
    if (version > 0) {
        return ifd_fail(err, IFD_INVALID, "requested version %lld of model '%.*s' is not available",
                        (long long)version, shown, name.data);
    }
    return ifd_fail(err, IFD_INVALID, "requested model '%.*s' is not available", shown, name.data);
}

/* ---- control ---- */

/* A load request with its files in the repository's form. */
struct load_call {
    struct ifd_service *service;
    struct ifd_source_file *file;
    uint32_t file_count;
    ifd_control_fn done;
    void *arg;
};

static void load_done(void *arg, enum ifd_code code, const struct ifd_err *err)
{
    struct load_call *call = arg;
    const struct ifd_alloc *alloc = call->service->options.alloc;
    ifd_control_fn done = call->done;
    void *done_arg = call->arg;
    ifd_release(alloc, call->file, call->file_count * sizeof(*call->file));
    ifd_release(alloc, call, sizeof(*call));
    done(done_arg, code, err);
}

static enum ifd_code check_files(const struct ifd_load_request *request, struct ifd_err *err)
{
    for (uint32_t i = 0; i < request->file_count; i++) {
        struct ifd_str path = request->file[i].path;
        if (!ifd_path_is_inside(path)) {
            return ifd_fail(err, IFD_INVALID,
                            "failed to load '%.*s', file \"%.*s\" is not a path in its folder",
                            (int)(request->model.size < 100 ? request->model.size : 100),
                            request->model.data, (int)(path.size < 100 ? path.size : 100),
                            path.data);
        }
    }
    return IFD_OK;
}

void ifd_service_load(struct ifd_service *service, const struct ifd_load_request *request,
                      ifd_control_fn done, void *arg)
{
    const struct ifd_alloc *alloc = service->options.alloc;
    struct ifd_err err = {0};
    enum ifd_code code = check_files(request, &err);
    struct load_call *call = code ? NULL : ifd_acquire_zeroed(alloc, 1, sizeof(*call));
    struct ifd_source_file *file =
        code ? NULL : ifd_acquire_zeroed(alloc, request->file_count, sizeof(*file));
    if (!code && (!call || (!file && request->file_count > 0))) {
        code = ifd_fail(&err, IFD_NOMEM, "no memory to load a model");
    }
    if (code) {
        ifd_release(alloc, file, request->file_count * sizeof(*file));
        ifd_release(alloc, call, sizeof(*call));
        done(arg, code, &err);
        return;
    }
    for (uint32_t i = 0; i < request->file_count; i++) {
        file[i] = (struct ifd_source_file){.path = request->file[i].path,
                                           .content = request->file[i].content};
    }
    *call = (struct load_call){.service = service,
                               .file = file,
                               .file_count = request->file_count,
                               .done = done,
                               .arg = arg};
    const struct ifd_source source = {
        .file = file, .file_count = request->file_count, .config = request->config};
    ifd_repo_load(service->options.repo, request->model, &source, load_done, call);
}

/* No model has dependents: there are no ensembles. */
void ifd_service_unload(struct ifd_service *service, struct ifd_str model, bool dependents,
                        ifd_control_fn done, void *arg)
{
    (void)dependents;
    ifd_repo_unload(service->options.repo, model, done, arg);
}

/* With explicit control nothing else scans the folders. */
void ifd_service_refresh(struct ifd_service *service, ifd_control_fn done, void *arg)
{
    ifd_repo_refresh(service->options.repo, done, arg);
}

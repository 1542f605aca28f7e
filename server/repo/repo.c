/* The index of models. */
#include "server/repo/repo.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/str.h"
#include "server/repo/layout.h"
#include "server/repo/loader.h"

#define REPO_ARENA_BYTES    ((size_t)64 << 20)
#define VERSION_ARENA_BYTES ((size_t)128 << 20)

struct ifd_repo {
    struct ifd_repo_options options;
    struct ifd_arena arena; /* names and paths */
    struct ifd_repo_model *model;
    uint32_t model_count, loading;
};

/* One model on its way through the loader's thread. */
struct load {
    struct ifd_repo *repo;
    struct ifd_repo_model *model;
    struct ifd_arena arena; /* manifest of the model, listing */
    struct ifd_version **version;
    uint32_t version_count;
    struct ifd_err err; /* why there is no version at all */
};

enum ifd_code ifd_repo_create(const struct ifd_repo_options *options, struct ifd_repo **ret_repo,
                              struct ifd_err *err)
{
    struct ifd_repo *repo = ifd_acquire_zeroed(options->alloc, 1, sizeof(*repo));
    if (!repo) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the repository");
    }
    repo->options = *options;
    ifd_arena_init(&repo->arena, options->alloc, REPO_ARENA_BYTES);
    *ret_repo = repo;
    return IFD_OK;
}

static void destroy_version(const struct ifd_repo_options *options, struct ifd_version *version)
{
    ifd_unload_version(options, version);
    ifd_arena_finish(&version->arena);
    ifd_release(options->alloc, version, sizeof(*version));
}

static void free_versions(const struct ifd_repo_options *options, struct ifd_version **version,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (version[i]) {
            destroy_version(options, version[i]);
        }
    }
    ifd_release(options->alloc, version, count * sizeof(struct ifd_version *));
}

void ifd_repo_destroy(struct ifd_repo *repo)
{
    if (!repo) {
        return;
    }
    for (uint32_t i = 0; i < repo->model_count; i++) {
        free_versions(&repo->options, repo->model[i].version, repo->model[i].version_count);
    }
    ifd_arena_finish(&repo->arena);
    ifd_release(repo->options.alloc, repo, sizeof(*repo));
}

/* ---- loading one model ---- */

/* Keeps those that the policy wants; all is ascending. */
static uint32_t apply_policy(const struct ifd_manifest *m, int64_t **all, uint32_t count)
{
    uint32_t kept = 0;
    if (m->policy == IFD_MANIFEST_LATEST && count > m->latest_count) {
        *all += count - m->latest_count;
        return m->latest_count;
    }
    if (m->policy != IFD_MANIFEST_SPECIFIC) {
        return count;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < m->version_count; k++) {
            if (m->version[k] == (*all)[i]) {
                (*all)[kept++] = (*all)[i];
                break;
            }
        }
    }
    return kept;
}

static struct ifd_version *new_version(const struct load *load, int64_t number)
{
    const struct ifd_alloc *alloc = load->repo->options.alloc;
    struct ifd_version *version = ifd_acquire_zeroed(alloc, 1, sizeof(*version));
    if (version) {
        version->name = load->model->name;
        version->dir = load->model->dir;
        version->number = number;
        (void)snprintf(version->number_text, sizeof(version->number_text), "%" PRId64, number);
        ifd_arena_init(&version->arena, alloc, VERSION_ARENA_BYTES);
    }
    return version;
}

/* Each version reads the config anew, so that it owns what it points to. */
static void load_one(struct load *load, struct ifd_version *version)
{
    const struct ifd_repo_options *options = &load->repo->options;
    struct ifd_err err = {0};
    uint64_t begun_ns = ifd_monotonic_ns();
    enum ifd_code code = ifd_load_manifest(options, version->dir, version->name, &version->arena,
                                           &version->manifest, &err);
    if (!code) {
        code = ifd_load_version(options, version, &err);
    }
    char quoted[400];
    if (code) {
        ifd_unload_version(options, version);
        (void)snprintf(version->reason, sizeof(version->reason), "%s", err.text);
        version->state = IFD_VERSION_UNAVAILABLE;
        ifd_log_error(options->log, "model not loaded", "name=%s version=%s reason=%s",
                      version->name, version->number_text,
                      ifd_log_quote(err.text, quoted, sizeof(quoted)));
        return;
    }
    version->state = IFD_VERSION_READY;
    ifd_log_info(options->log, "model loaded", "name=%s version=%s backend=%s took_ms=%llu",
                 version->name, version->number_text, version->manifest.backend,
                 (unsigned long long)((ifd_monotonic_ns() - begun_ns) / 1000000));
}

/* The versions to load. A model without a file needs no folder: it is version 1. */
static enum ifd_code choose_versions(struct load *load, int64_t **ret_number, uint32_t *ret_count)
{
    const struct ifd_repo_model *model = load->model;
    struct ifd_manifest manifest;
    enum ifd_code code = ifd_load_manifest(&load->repo->options, model->dir, model->name,
                                           &load->arena, &manifest, &load->err);
    if (!code) {
        code = ifd_layout_versions(model->dir, &load->arena, ret_number, ret_count, &load->err);
    }
    if (code) {
        return code;
    }
    if (*ret_count == 0 && ifd_manifest_is_identity(&manifest)) {
        *ret_number = ifd_arena_take_array(&load->arena, 1, sizeof(int64_t));
        if (!*ret_number) {
            return ifd_arena_fail(&load->arena, sizeof(int64_t), &load->err);
        }
        (*ret_number)[0] = 1;
        *ret_count = 1;
    }
    if (*ret_count == 0) {
        return ifd_fail(&load->err, IFD_NOT_FOUND,
                        "no version: \"%.120s\" has no folder whose name is a number", model->dir);
    }
    *ret_count = apply_policy(&manifest, ret_number, *ret_count);
    if (*ret_count == 0) {
        return ifd_fail(&load->err, IFD_NOT_FOUND,
                        "no version: version_policy names none that is there");
    }
    return IFD_OK;
}

static void load_model(void *arg)
{
    struct load *load = arg;
    const struct ifd_repo_options *options = &load->repo->options;
    int64_t *number = NULL;
    uint32_t count = 0;
    char quoted[400];
    enum ifd_code code = choose_versions(load, &number, &count);
    if (!code) {
        load->version = ifd_acquire_zeroed(options->alloc, count, sizeof(*load->version));
        code = load->version ? IFD_OK
                             : ifd_fail(&load->err, IFD_NOMEM, "no memory for %u versions", count);
    }
    for (uint32_t i = 0; i < count && !code; i++) {
        load->version[i] = new_version(load, number[i]);
        if (!load->version[i]) {
            code = ifd_fail(&load->err, IFD_NOMEM, "no memory for a version");
            free_versions(options, load->version, count);
            load->version = NULL;
            break;
        }
        load_one(load, load->version[i]);
    }
    if (code) {
        ifd_log_error(options->log, "model not loaded", "name=%s reason=%s", load->model->name,
                      ifd_log_quote(load->err.text, quoted, sizeof(quoted)));
        return;
    }
    load->version_count = count;
}

static void finish_load(struct ifd_repo *repo, struct load *load)
{
    struct ifd_repo_model *model = load->model;
    model->version = load->version;
    model->version_count = load->version_count;
    (void)snprintf(model->reason, sizeof(model->reason), "%s", load->err.text);
    model->is_loading = false;
    repo->loading--;
    ifd_arena_finish(&load->arena);
    ifd_release(repo->options.alloc, load, sizeof(*load));
}

static void model_loaded(void *arg)
{
    struct ifd_repo *repo = ((struct load *)arg)->repo;
    finish_load(repo, arg);
    repo->options.host.changed(repo->options.host.context);
}

static enum ifd_code begin_load(struct ifd_repo *repo, struct ifd_repo_model *model,
                                struct ifd_err *err)
{
    struct load *load = ifd_acquire_zeroed(repo->options.alloc, 1, sizeof(*load));
    if (!load) {
        return ifd_fail(err, IFD_NOMEM, "no memory to load model \"%s\"", model->name);
    }
    load->repo = repo;
    load->model = model;
    ifd_arena_init(&load->arena, repo->options.alloc, REPO_ARENA_BYTES);
    model->is_loading = true;
    repo->loading++;
    enum ifd_code code = repo->options.host.run_off_loop(repo->options.host.context, load_model,
                                                         model_loaded, load, err);
    if (code) {
        load->err = *err;
        finish_load(repo, load);
    }
    return code;
}

/* ---- listing ---- */

static bool is_wanted(const char *name, const char *const *only, uint32_t only_count)
{
    for (uint32_t i = 0; i < only_count; i++) {
        if (strcmp(only[i], name) == 0 || strcmp(only[i], "*") == 0) {
            return true;
        }
    }
    return only_count == 0;
}

static enum ifd_code add_model(struct ifd_repo *repo, const char *dir, const char *name,
                               uint32_t capacity, struct ifd_err *err)
{
    struct ifd_repo_model *twin = NULL;
    for (uint32_t i = 0; i < repo->model_count; i++) {
        if (strcmp(repo->model[i].name, name) == 0) {
            twin = &repo->model[i];
        }
    }
    if (twin) {
        (void)ifd_str_format(twin->reason, sizeof(twin->reason),
                             "model is in two repositories: \"%.90s\" and \"%.90s/%.40s\"",
                             twin->dir, dir, name);
        return IFD_OK;
    }
    const char *path = ifd_layout_join(&repo->arena, dir, name);
    if (!path || repo->model_count == capacity) {
        return ifd_arena_fail(&repo->arena, strlen(dir), err);
    }
    repo->model[repo->model_count++] = (struct ifd_repo_model){.name = name, .dir = path};
    return IFD_OK;
}

static int compare_models(const void *a, const void *b)
{
    return strcmp(((const struct ifd_repo_model *)a)->name,
                  ((const struct ifd_repo_model *)b)->name);
}

static enum ifd_code list_models(struct ifd_repo *repo, const char *const *only,
                                 uint32_t only_count, struct ifd_err *err)
{
    uint32_t dirs = repo->options.dir_count, capacity = 0;
    struct ifd_layout_names *names = ifd_arena_take_array(&repo->arena, dirs, sizeof(*names));
    enum ifd_code code = names ? IFD_OK : ifd_arena_fail(&repo->arena, dirs, err);
    for (uint32_t d = 0; d < dirs && !code; d++) {
        code = ifd_layout_models(repo->options.dir[d], &repo->arena, &names[d], err);
        capacity += code ? 0 : names[d].count;
    }
    if (code) {
        return code;
    }
    repo->model = ifd_arena_take_array(&repo->arena, capacity, sizeof(*repo->model));
    if (!repo->model) {
        return ifd_arena_fail(&repo->arena, capacity * sizeof(*repo->model), err);
    }
    for (uint32_t d = 0; d < dirs && !code; d++) {
        for (uint32_t i = 0; i < names[d].count && !code; i++) {
            if (is_wanted(names[d].name[i], only, only_count)) {
                code = add_model(repo, repo->options.dir[d], names[d].name[i], capacity, err);
            }
        }
    }
    if (repo->model_count > 0) {
        qsort(repo->model, repo->model_count, sizeof(*repo->model), compare_models);
    }
    return code;
}

enum ifd_code ifd_repo_load_all(struct ifd_repo *repo, const char *const *only, uint32_t only_count,
                                struct ifd_err *err)
{
    enum ifd_code code = list_models(repo, only, only_count, err);
    for (uint32_t i = 0; i < only_count && !code; i++) {
        if (strcmp(only[i], "*") != 0 && !ifd_repo_find(repo, ifd_str(only[i]))) {
            code = ifd_fail(err, IFD_NOT_FOUND, "no repository has a model \"%s\"", only[i]);
        }
    }
    for (uint32_t i = 0; i < repo->model_count && !code; i++) {
        struct ifd_repo_model *model = &repo->model[i];
        if (model->reason[0] != '\0') {
            char quoted[400];
            ifd_log_error(repo->options.log, "model not loaded", "name=%s reason=%s", model->name,
                          ifd_log_quote(model->reason, quoted, sizeof(quoted)));
            continue;
        }
        code = begin_load(repo, model, err);
    }
    return code;
}

/* ---- asking ---- */

uint32_t ifd_repo_loading_count(const struct ifd_repo *repo)
{
    return repo->loading;
}

uint32_t ifd_repo_model_count(const struct ifd_repo *repo)
{
    return repo->model_count;
}

const struct ifd_repo_model *ifd_repo_model_at(const struct ifd_repo *repo, uint32_t index)
{
    return &repo->model[index];
}

static int compare_name(struct ifd_str a, const char *b)
{
    int order = strncmp(a.data, b, a.size);
    return order != 0 ? order : (b[a.size] == '\0' ? 0 : -1);
}

const struct ifd_repo_model *ifd_repo_find(const struct ifd_repo *repo, struct ifd_str name)
{
    uint32_t low = 0, high = repo->model_count;
    while (low < high && name.size > 0) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_name(name, repo->model[middle].name);
        if (order == 0) {
            return &repo->model[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
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

void ifd_repo_release(struct ifd_repo *repo, struct ifd_version *version)
{
    (void)repo;
    version->refs--;
}

enum ifd_code ifd_repo_check(const struct ifd_repo *repo, struct ifd_err *err)
{
    for (uint32_t i = 0; i < repo->model_count; i++) {
        const struct ifd_repo_model *model = &repo->model[i];
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

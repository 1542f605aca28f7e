/* From a name to versions that run. */
#include "server/repo/load_model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/name.h"
#include "engine/base/str.h"
#include "server/repo/checksums.h"
#include "server/repo/layout.h"
#include "server/repo/load_version.h"
#include "server/repo/scan.h"
#include "server/repo/watcher.h"

#define LOAD_ARENA_BYTES    ((size_t)64 << 20)
#define VERSION_ARENA_BYTES ((size_t)128 << 20)

enum ifd_code ifd_load_check_stop(const struct ifd_repo_options *options, struct ifd_err *err)
{
    return *options->is_stopping ? ifd_fail(err, IFD_UNAVAILABLE, "the server is stopping")
                                 : IFD_OK;
}

/* ---- finding the folder ---- */

/* Opens the one repository that has the model. seen: the sums over all that have it, as ifd_scan_all makes them. */
static enum ifd_code find_folder(const struct ifd_model_load *load, struct ifd_arena *arena,
                                 int *ret_root, struct ifd_scan_model *seen, struct ifd_err *err)
{
    const struct ifd_repo_options *options = load->options;
    int found = -1;
    uint32_t count = 0;
    const char *dir[2] = {"", ""};
    enum ifd_code code = IFD_OK;
    for (uint32_t d = 0; d < options->dir_count && !code; d++) {
        int root = -1;
        struct stat info;
        struct ifd_scan_model model = {0};
        code = ifd_folder_open(options->dir[d], &root, err);
        if (code) {
            break;
        }
        if (!ifd_folder_stat(root, load->name, &info) && errno == ENOENT) {
            ifd_folder_close(root);
            continue;
        }
        code = ifd_scan_one(root, load->name, arena, &model, err);
        seen->fingerprint += model.fingerprint;
        seen->unsummed += model.unsummed;
        seen->roots |= ifd_scan_root(d);
        dir[count < 2 ? count : 1] = options->dir[d];
        count++;
        if (code || found >= 0) {
            ifd_folder_close(root);
        } else {
            found = root;
        }
    }
    if (!code && count == 0) {
        code = ifd_fail(err, IFD_NOT_FOUND, "no repository has a model of this name");
    } else if (!code && count > 1) {
        code = ifd_fail(err, IFD_INVALID, "model is in two repositories: \"%.100s\" and \"%.100s\"",
                        dir[0], dir[1]);
    }
    if (code && found >= 0) {
        ifd_folder_close(found);
    }
    if (!code) {
        *ret_root = found;
    }
    return code;
}

/* What was read is one state of the folder only if nothing changed meanwhile. */
static enum ifd_code check_unchanged(const struct ifd_model_load *load, int root,
                                     struct ifd_arena *arena, struct ifd_err *err)
{
    struct ifd_scan_model now = {0};
    enum ifd_code code = ifd_scan_one(root, load->name, arena, &now, err);
    return code ? code
           : now.fingerprint == load->seen.fingerprint
               ? IFD_OK
               : ifd_fail(err, IFD_UNAVAILABLE, "files changed while they were read");
}

/* ---- which versions ---- */

static bool is_specified(const struct ifd_model_desc *m, int64_t number)
{
    for (uint32_t i = 0; i < m->policy_version_count; i++) {
        if (m->policy_versions[i] == number) {
            return true;
        }
    }
    return false;
}

/* Keeps those that the policy may want, ascending: of "latest", all, as some may have to be passed over. */
static uint32_t apply_policy(const struct ifd_model_desc *m, int64_t *number, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (m->version_policy != IFD_POLICY_SPECIFIC || is_specified(m, number[i])) {
            number[kept++] = number[i];
        }
    }
    return kept;
}

/* The versions to load: of number, ascending, at most *ret_wanted from the end. A model without a file needs no folder: it is
 * version 1. */
static enum ifd_code choose_versions(struct ifd_model_load *load, const struct ifd_source *source,
                                     struct ifd_arena *arena, int64_t **ret_number,
                                     uint32_t *ret_count, uint32_t *ret_wanted)
{
    struct ifd_model_desc manifest;
    enum ifd_code code = ifd_version_read_config(load->options, source, load->name, arena, NULL,
                                                 &manifest, &load->err);
    if (!code) {
        code = ifd_layout_versions(source, arena, ret_number, ret_count, &load->err);
    }
    if (code) {
        return code;
    }
    if (*ret_count == 0 && ifd_manifest_is_identity(&manifest)) {
        *ret_number = ifd_arena_take_array(arena, 1, sizeof(int64_t));
        if (!*ret_number) {
            return ifd_arena_fail(arena, sizeof(int64_t), &load->err);
        }
        (*ret_number)[0] = 1;
        *ret_count = 1;
    }
    if (*ret_count == 0) {
        return ifd_fail(&load->err, IFD_NOT_FOUND,
                        "no version: the model has no folder whose name is a number");
    }
    *ret_count = apply_policy(&manifest, *ret_number, *ret_count);
    if (*ret_count == 0) {
        return ifd_fail(&load->err, IFD_NOT_FOUND,
                        "no version: version_policy names none that is there");
    }
    bool is_latest =
        manifest.version_policy == IFD_POLICY_LATEST && manifest.policy_latest_count < *ret_count;
    *ret_wanted = is_latest ? manifest.policy_latest_count : *ret_count;
    return IFD_OK;
}

/* ---- one version ---- */

static struct ifd_version *new_version(const struct ifd_model_load *load, int64_t number)
{
    const struct ifd_alloc *alloc = load->options->alloc;
    struct ifd_version *version = ifd_acquire_zeroed(alloc, 1, sizeof(*version));
    if (!version) {
        return NULL;
    }
    ifd_arena_init(&version->arena, alloc, VERSION_ARENA_BYTES);
    version->name = ifd_arena_text(&version->arena, load->name, strlen(load->name));
    version->number = number;
    (void)snprintf(version->number_text, sizeof(version->number_text), "%" PRId64, number);
    if (!version->name) {
        ifd_version_destroy(load->options, version);
        return NULL;
    }
    return version;
}

/* The first one is told; that a version was passed over, only if there is nothing worse. */
static void note_failure(struct ifd_model_load *load, int64_t number, enum ifd_code code,
                         const struct ifd_err *err)
{
    if (!load->code || load->is_passed_over) {
        load->code = code;
        load->err = *err;
        load->failed_number = number;
        load->is_passed_over = false;
    }
}

static void note_passed_over(struct ifd_model_load *load, int64_t number, enum ifd_code code,
                             const struct ifd_err *err)
{
    if (!load->code) {
        note_failure(load, number, code, err);
        load->is_passed_over = true;
    }
}

static void log_failure(const struct ifd_model_load *load, const char *number,
                        const struct ifd_err *err)
{
    if (*load->options->is_stopping) {
        ifd_log_info(load->options->log, "load given up", "name=%s version=%s", load->name, number);
        return;
    }
    ifd_log_error(load->options->log, "model not loaded", "name=%s version=%s reason=%s",
                  load->name, number, err->text);
}

/* Reads what the version consists of, and holds it against its SHA256SUMS, if it has one. *ret_is_considered false: it does
 * not match, so that it does not count. Errors: why. */
static enum ifd_code read_version(const struct ifd_model_load *load, struct ifd_version *version,
                                  bool *ret_is_considered, struct ifd_err *err)
{
    struct ifd_checksums sums = {0};
    int root = version->source->root;
    const char *dir = ifd_folder_join(&version->arena, load->name, version->number_text);
    enum ifd_code code = dir ? IFD_OK : ifd_arena_fail(&version->arena, strlen(load->name), err);
    bool has_folder =
        version->source->file_count == 0; /* else the files came whole, in a request */
    if (!code && has_folder) {
        code = ifd_checksums_open(root, dir, &version->arena, &sums, err);
        *ret_is_considered = !code || ifd_watcher_is_transient(code);
    }
    if (!code) {
        code = ifd_version_read(load->options, version, err);
    }
    if (!code && sums.dir) {
        const char *path = version->file.data ? version->desc.default_model_filename : NULL;
        code = ifd_checksums_match(&sums, root, path, version->file, err);
        *ret_is_considered = !code || ifd_watcher_is_transient(code);
    }
    return code;
}

/* Does a version of this number serve? digest: also this content; 0: whatever its content. */
static bool is_live(const struct ifd_model_load *load, int64_t number, uint64_t digest)
{
    for (uint32_t i = 0; i < load->live_count; i++) {
        if (load->live[i].number == number && (digest == 0 || load->live[i].digest == digest)) {
            return true;
        }
    }
    return false;
}

/* Reading: the only look at the folder. False: the version is passed over. */
static bool read_one(struct ifd_model_load *load, const struct ifd_source *source, int64_t number,
                     struct ifd_loaded_version *ret)
{
    struct ifd_err err = {0};
    struct ifd_version *version = new_version(load, number);
    enum ifd_code code = IFD_OK;
    bool is_considered = true;
    *ret = (struct ifd_loaded_version){.number = number};
    if (!version) {
        code = ifd_fail(&err, IFD_NOMEM, "no memory for version %" PRId64, number);
        note_failure(load, number, code, &err);
        return false;
    }
    version->source = source;
    code = ifd_load_check_stop(load->options, &err);
    if (!code) {
        code = read_version(load, version, &is_considered, &err);
    }
    if (code) {
        log_failure(load, version->number_text, &err);
    }
    if (!is_considered || (!code && is_live(load, number, version->digest))) {
        ifd_version_destroy(load->options, version); /* one that serves stays as it is */
    } else {
        ret->version = version;
    }
    if (!is_considered) {
        note_passed_over(load, number, code, &err);
        return is_live(load, number, 0);
    }
    if (code) {
        ifd_version_stop(load->options, version);
        version->state = IFD_MODEL_UNAVAILABLE;
        (void)snprintf(version->reason, sizeof(version->reason), "%s", err.text);
        note_failure(load, number, code, &err);
    }
    return true;
}

/* The newest versions that are considered, at most wanted, ascending. */
static void read_versions(struct ifd_model_load *load, const struct ifd_source *source,
                          const int64_t *number, uint32_t count, uint32_t wanted)
{
    struct ifd_loaded_version *version = load->version;
    uint32_t taken = 0;
    for (uint32_t i = count; i > 0 && taken < wanted; i--) {
        taken += read_one(load, source, number[i - 1], &version[taken]);
    }
    for (uint32_t i = 0; i < taken / 2; i++) {
        const struct ifd_loaded_version other = version[i];
        version[i] = version[taken - 1 - i];
        version[taken - 1 - i] = other;
    }
    load->version_count = taken;
}

/* What became of --cache-dir for this version. */
static void log_cache(const struct ifd_model_load *load, const struct ifd_version *version)
{
    const char *text = version->engine ? ifd_model_info(version->engine)->cache : "";
    if (text[0] != '\0') {
        ifd_log_info(load->options->log, "cache", "name=%s version=%s text=%s", version->name,
                     version->number_text, text);
    }
}

/* Was what this version is going to replace finite? That is the one of its number, else the newest. */
static bool was_finite(const struct ifd_model_load *load, int64_t number)
{
    bool is_finite = false;
    for (uint32_t i = 0; i < load->live_count; i++) { /* ascending */
        is_finite = load->live[i].is_finite;
        if (load->live[i].number == number) {
            break;
        }
    }
    return is_finite;
}

/* With a quarantine, one version at a time. */
static enum ifd_code start_alone(const struct ifd_model_load *load, struct ifd_version *version,
                                 struct ifd_err *err)
{
    struct ifd_quarantine *quarantine = load->options->quarantine;
    enum ifd_code code = ifd_quarantine_enter(quarantine, version->digest, load->is_asked, err);
    if (code) {
        return code;
    }
    code = ifd_load_check_stop(load->options, err);
    if (!code) {
        code = ifd_version_start(load->options, version, err);
    }
    ifd_quarantine_leave(quarantine);
    return code;
}

static void start_one(struct ifd_model_load *load, struct ifd_version *version)
{
    struct ifd_err err = {0};
    uint64_t begun_ns = ifd_monotonic_ns();
    version->has_to_be_finite = was_finite(load, version->number);
    enum ifd_code code = start_alone(load, version, &err);
    if (code) {
        ifd_version_stop(load->options, version);
        version->state = IFD_MODEL_UNAVAILABLE;
        (void)snprintf(version->reason, sizeof(version->reason), "%s", err.text);
        note_failure(load, version->number, code, &err);
        log_failure(load, version->number_text, &err);
        return;
    }
    version->state = IFD_MODEL_READY;
    ifd_log_info(load->options->log, "model loaded", "name=%s version=%s backend=%s took_ms=%llu",
                 version->name, version->number_text, version->desc.backend,
                 (unsigned long long)((ifd_monotonic_ns() - begun_ns) / 1000000));
    log_cache(load, version);
}

static void drop_versions(struct ifd_model_load *load)
{
    for (uint32_t i = 0; i < load->version_count; i++) {
        if (load->version[i].version) {
            ifd_version_destroy(load->options, load->version[i].version);
        }
    }
    load->version_count = 0;
}

static enum ifd_code load_from(struct ifd_model_load *load, const struct ifd_source *source,
                               struct ifd_arena *arena)
{
    int64_t *number = NULL;
    uint32_t count = 0, wanted = 0;
    enum ifd_code code = choose_versions(load, source, arena, &number, &count, &wanted);
    if (code) {
        return code;
    }
    load->version = ifd_acquire_zeroed(load->options->alloc, wanted, sizeof(*load->version));
    if (!load->version) {
        return ifd_fail(&load->err, IFD_NOMEM, "no memory for %u versions", wanted);
    }
    load->version_capacity = wanted;
    read_versions(load, source, number, count, wanted);
    /* One failure beside versions that serve changes nothing: the rest need not be started at all. */
    for (uint32_t i = 0; i < load->version_count; i++) {
        struct ifd_version *version = load->version[i].version;
        if (version && version->state != IFD_MODEL_UNAVAILABLE &&
            (!load->code || load->is_passed_over || load->live_count == 0)) {
            start_one(load, version);
        }
        if (version) {
            version->source = NULL;
        }
    }
    struct ifd_err err = {0};
    code = source->file_count > 0 ? IFD_OK : check_unchanged(load, source->root, arena, &err);
    if (code) {
        drop_versions(load);
        load->err = err;
        load->failed_number = 0;
        load->is_passed_over = false;
        return code;
    }
    return load->code;
}

void ifd_load_model(struct ifd_model_load *load)
{
    struct ifd_arena arena;
    struct ifd_source source = load->request;
    int root = -1;
    ifd_arena_init(&arena, load->options->alloc, LOAD_ARENA_BYTES);
    source.name = load->name;
    enum ifd_code code = ifd_load_check_stop(load->options, &load->err);
    if (!code && source.file_count == 0) {
        code = find_folder(load, &arena, &root, &load->seen, &load->err);
        load->is_unknown = code == IFD_NOT_FOUND;
    }
    if (!code && !ifd_name_is_valid(ifd_str(load->name))) {
        code = ifd_fail(&load->err, IFD_INVALID,
                        "the name of a model has 1 to 128 letters, digits or . _ - +");
    }
    if (!code) {
        source.root = root;
        code = load_from(load, &source, &arena);
    }
    if (code && load->version_count == 0) {
        log_failure(load, "-", &load->err);
    }
    load->code = code;
    if (root >= 0) {
        ifd_folder_close(root);
    }
    ifd_arena_finish(&arena);
}

/* Loads a model: from its name to versions that run. */
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

/* Opens the repository that has the model. seen: sums over all repositories that have it, as in
 * ifd_scan_all. */
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

/* Fails if the folder changed while it was read. */
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

/* Keeps the versions that the policy allows, ascending. "latest" keeps all, because some may
 * fail. */
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

/* Lists candidate versions, ascending; at most *ret_wanted of the newest are to serve. A model
 * without a file needs no folder: it is version 1. */
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

/* Keeps the failure of the newest version; that one was passed over, only if there is nothing
 * worse. */
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
        ifd_log_info(load->options->log, "model load cancelled", "model=%s version=%s", load->name,
                     number);
        return;
    }
    ifd_log_error(load->options->log, "model load failed", "model=%s version=%s reason=%s",
                  load->name, number, err->text);
}

/* Reads a version and compares it with its SHA256SUMS, if it has one. *ret_is_considered false: it
 * does not match and does not count; the error says why. */
static enum ifd_code read_version(const struct ifd_model_load *load, struct ifd_version *version,
                                  bool *ret_is_considered, struct ifd_err *err)
{
    struct ifd_checksums sums = {0};
    int root = version->source->root;
    const char *dir = ifd_folder_join(&version->arena, load->name, version->number_text);
    enum ifd_code code = dir ? IFD_OK : ifd_arena_fail(&version->arena, strlen(load->name), err);
    bool has_folder = version->source->file_count == 0; /* else the request brought all files */
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

/* True if a version of this number serves. digest: with this content; 0: with any. */
static bool is_live(const struct ifd_model_load *load, int64_t number, uint64_t digest)
{
    for (uint32_t i = 0; i < load->live_count; i++) {
        if (load->live[i].number == number && (digest == 0 || load->live[i].digest == digest)) {
            return true;
        }
    }
    return false;
}

/* Logs the result of --cache-dir for this version. */
static void log_cache(const struct ifd_model_load *load, const struct ifd_version *version)
{
    const char *text = version->engine ? ifd_model_info(version->engine)->cache : "";
    if (text[0] != '\0') {
        ifd_log_info(load->options->log, "weight cache checked", "model=%s version=%s result=%s",
                     version->name, version->number_text, text);
    }
}

/* True if the version to be replaced answered with finite numbers: the one of this number, else the
 * newest. */
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

/* Starts a version; with a quarantine, one at a time. */
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

static void log_loaded(const struct ifd_model_load *load, const struct ifd_version *version,
                       uint64_t begun_ns)
{
    ifd_log_info(load->options->log, "model loaded", "model=%s version=%s backend=%s took_ms=%llu",
                 version->name, version->number_text, version->desc.backend,
                 (unsigned long long)((ifd_monotonic_ns() - begun_ns) / 1000000));
    log_cache(load, version);
}

/* Reads a version and starts it. *ret_is_same: this content serves already, nothing is started. */
static enum ifd_code make_version(const struct ifd_model_load *load, struct ifd_version *version,
                                  bool *ret_is_considered, bool *ret_is_same, struct ifd_err *err)
{
    enum ifd_code code = ifd_load_check_stop(load->options, err);
    if (!code) {
        code = read_version(load, version, ret_is_considered, err);
    }
    if (code || is_live(load, version->number, version->digest)) {
        *ret_is_same = !code;
        return code;
    }
    const uint64_t begun_ns = ifd_monotonic_ns();
    version->has_to_be_finite = was_finite(load, version->number);
    code = start_alone(load, version, err);
    if (!code) {
        version->state = IFD_MODEL_READY;
        log_loaded(load, version, begun_ns);
    }
    return code;
}

enum fate { COUNTS, PASSED_OVER, FAILED };

/* Loads a version into the result, unless it is passed over and does not serve. */
static enum fate load_one(struct ifd_model_load *load, const struct ifd_source *source,
                          int64_t number)
{
    struct ifd_err err = {0};
    struct ifd_version *version = new_version(load, number);
    bool is_considered = true, is_same = false;
    if (!version) {
        note_failure(load, number,
                     ifd_fail(&err, IFD_NOMEM, "no memory for version %" PRId64, number), &err);
        return FAILED;
    }
    version->source = source;
    const enum ifd_code code = make_version(load, version, &is_considered, &is_same, &err);
    version->source = NULL;
    if (code) {
        log_failure(load, version->number_text, &err);
    }
    if (is_same || !is_considered) {
        ifd_version_destroy(load->options, version);
        version = NULL; /* one that serves stays as it is */
    }
    if (!is_considered) {
        note_passed_over(load, number, code, &err);
        if (!is_live(load, number, 0)) {
            return PASSED_OVER;
        }
    } else if (code) {
        note_failure(load, number, code, &err);
        ifd_version_stop(load->options, version);
        version->state = IFD_MODEL_UNAVAILABLE;
        (void)snprintf(version->reason, sizeof(version->reason), "%s", err.text);
    }
    load->version[load->version_count++] =
        (struct ifd_loaded_version){.number = number, .version = version};
    return code && is_considered ? FAILED : COUNTS;
}

static bool is_failed(const struct ifd_loaded_version *loaded)
{
    return loaded->version && loaded->version->state == IFD_MODEL_UNAVAILABLE;
}

static void reverse(struct ifd_loaded_version *version, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        const struct ifd_loaded_version other = version[i];
        version[i] = version[count - 1 - i];
        version[count - 1 - i] = other;
    }
}

/* Others stand in for a version that failed if it is newer than all of them, or if there are as
 * many as are wanted. */
static void note_stand_ins(struct ifd_model_load *load, bool is_enough)
{
    bool is_older = false; /* than one that serves */
    bool serves = false;
    for (uint32_t i = 0; i < load->version_count; i++) {
        serves = serves || !is_failed(&load->version[i]);
    }
    for (uint32_t i = load->version_count; i > 0; i--) { /* from the newest on */
        if (is_failed(&load->version[i - 1])) {
            load->version[i - 1].version->has_stand_in = serves && (is_enough || !is_older);
        } else {
            is_older = true;
        }
    }
}

/* Loads the newest versions that can be loaded, at most wanted; the result has the failed ones,
 * too. A failure keeps everything that serves if it concerns a version that serves, if only older
 * versions remain, or if the files came in a request. */
static void load_versions(struct ifd_model_load *load, const struct ifd_source *source,
                          const int64_t *number, uint32_t count, uint32_t wanted)
{
    const bool has_live = load->live_count > 0;
    const int64_t newest_live = has_live ? load->live[load->live_count - 1].number : 0;
    uint32_t taken = 0;
    for (uint32_t i = count; i > 0 && taken < wanted && !load->keeps_live; i--) {
        const int64_t next = number[i - 1];
        const bool is_worse = has_live && load->code && !load->is_passed_over && next < newest_live;
        const enum fate fate = is_worse ? FAILED : load_one(load, source, next);
        taken += fate == COUNTS;
        if (fate == FAILED && *load->options->is_stopping) {
            break;
        }
        load->keeps_live =
            has_live && fate == FAILED && (next <= newest_live || source->file_count > 0);
    }
    reverse(load->version, load->version_count);
    note_stand_ins(load, taken == wanted);
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
    load->version = ifd_acquire_zeroed(load->options->alloc, count, sizeof(*load->version));
    if (!load->version) {
        return ifd_fail(&load->err, IFD_NOMEM, "no memory for %u versions", count);
    }
    load->version_capacity = count;
    load_versions(load, source, number, count, wanted);
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

/* Walks folders. */
#include "server/repo/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/repo/checksums.h"
#include "server/repo/digest.h"
#include "server/repo/layout.h"

#define DEPTH_MAX 8

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

bool ifd_scan_is_temporary(const char *name)
{
    static const char *const ends[] = {"~", ".swp", ".tmp", ".part", ".filepart", ".crdownload"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (ends_with(name, ends[i])) {
            return true;
        }
    }
    return false;
}

static uint64_t time_ns(struct timespec at)
{
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Adds a file, or a name whose stat failed (error), to a fingerprint. */
static uint64_t digest_entry(uint64_t digest, const char *path, const struct stat *info, int error)
{
    digest = ifd_digest_bytes(digest, path, strlen(path));
    if (error) {
        return ifd_digest_u64(digest, (uint64_t)error); /* gone, or a bad link */
    }
    digest = ifd_digest_u64(ifd_digest_u64(digest, info->st_mode & S_IFMT), info->st_dev);
    digest = ifd_digest_u64(digest, info->st_ino);
    if (!S_ISDIR(info->st_mode)) { /* of a folder only its content counts */
        digest = ifd_digest_u64(digest, (uint64_t)info->st_size);
        digest = ifd_digest_u64(digest, time_ns(info->st_mtim));
        digest = ifd_digest_u64(digest, time_ns(info->st_ctim));
    }
    return digest;
}

struct walk {
    const struct ifd_scan_where *where; /* NULL: nobody is told of folders */
    int root;
    struct ifd_arena *arena;
    struct ifd_scan_model *model;
    bool is_summed; /* in the folder of a version that has a SHA256SUMS */
};

static void add_entry(const struct walk *w, const char *path, const struct stat *info, int error)
{
    struct ifd_scan_model *model = w->model;
    model->fingerprint = digest_entry(model->fingerprint, path, info, error);
    if (!w->is_summed) {
        model->unsummed = digest_entry(model->unsummed, path, info, error);
    }
}

static bool has_sums(const struct ifd_folder_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (strcmp(names->name[i], IFD_CHECKSUMS_NAME) == 0) {
            return true;
        }
    }
    return false;
}

static enum ifd_code walk_folder(struct walk w, const char *path, const struct stat *info,
                                 unsigned depth, struct ifd_err *err);

static enum ifd_code walk_entry(const struct walk *w, const char *dir, const char *name,
                                unsigned depth, struct ifd_err *err)
{
    struct stat info = {0};
    const char *path = ifd_folder_join(w->arena, dir, name);
    if (!path) {
        return ifd_arena_fail(w->arena, strlen(dir), err);
    }
    if (ifd_scan_is_temporary(name)) {
        if (depth > 0 && !w->is_summed && !w->model->unfinished) {
            w->model->unfinished = path;
        }
        return IFD_OK;
    }
    int error = ifd_folder_stat(w->root, path, &info) ? 0 : errno;
    if (!error && S_ISDIR(info.st_mode) && depth < DEPTH_MAX) {
        return walk_folder(*w, path, &info, depth + 1, err);
    }
    add_entry(w, path, &info, error);
    return IFD_OK;
}

static void enter(const struct ifd_scan_where *where, int root, const char *path)
{
    if (where && where->entered) {
        where->entered(where->context, root, path);
    }
}

/* depth 0: the model's own folder, 1: that of a version. */
static enum ifd_code walk_folder(struct walk w, const char *path, const struct stat *info,
                                 unsigned depth, struct ifd_err *err)
{
    struct ifd_folder_names names = {0};
    enter(w.where, w.root, path);
    enum ifd_code code = ifd_folder_list(w.root, path, w.arena, &names, err);
    w.is_summed = w.is_summed || (depth == 1 && has_sums(&names));
    if (!code && info) {
        add_entry(&w, path, info, 0);
    }
    for (uint32_t i = 0; i < names.count && !code; i++) {
        code = walk_entry(&w, path, names.name[i], depth, err);
    }
    return code;
}

static enum ifd_code scan_model(const struct ifd_scan_where *where, int root, const char *name,
                                struct ifd_arena *arena, struct ifd_scan_model *ret,
                                struct ifd_err *err)
{
    struct ifd_scan_model model = {.name = name, .fingerprint = IFD_DIGEST_START};
    const struct walk w = {.where = where, .root = root, .arena = arena, .model = &model};
    enum ifd_code code = walk_folder(w, name, NULL, 0, err);
    *ret = code ? (struct ifd_scan_model){.name = name, .fingerprint = 1, .unsummed = 1} : model;
    return code;
}

enum ifd_code ifd_scan_one(int root, const char *name, struct ifd_arena *arena,
                           struct ifd_scan_model *ret, struct ifd_err *err)
{
    return scan_model(NULL, root, name, arena, ret, err);
}

static int compare_models(const void *a, const void *b)
{
    return strcmp(((const struct ifd_scan_model *)a)->name,
                  ((const struct ifd_scan_model *)b)->name);
}

struct strays {
    struct ifd_arena *arena;
    const struct ifd_scan_stray *first;
};

static void add_stray(void *context, const char *path, const char *wanted)
{
    struct strays *strays = context;
    struct ifd_scan_stray *stray = ifd_arena_take(strays->arena, sizeof(*stray));
    if (stray) { /* without memory the next scan tells of it; the paths are the arena's */
        *stray = (struct ifd_scan_stray){.next = strays->first, .path = path, .wanted = wanted};
        strays->first = stray;
    }
}

static enum ifd_code scan_root(const struct ifd_scan_where *where, uint32_t d,
                               struct ifd_arena *arena, struct ifd_scan *scan, uint32_t *ret_count,
                               struct ifd_err *err)
{
    int root = -1;
    struct ifd_folder_names names = {0};
    enum ifd_code code = ifd_folder_open(where->dir[d], &root, err);
    if (code) {
        return code;
    }
    enter(where, root, ".");
    code = ifd_layout_models(root, arena, &names, err);
    struct ifd_scan_model *grown =
        code ? NULL : ifd_arena_take_array(arena, scan->count + names.count, sizeof(*grown));
    if (!code && !grown) {
        code = ifd_arena_fail(arena, names.count * sizeof(*grown), err);
    }
    if (!code && scan->count > 0) {
        memcpy(grown, scan->model, scan->count * sizeof(*grown));
    }
    scan->model = grown ? grown : scan->model;
    for (uint32_t i = 0; i < names.count && !code; i++) {
        /* If it cannot be read, a load says why. */
        (void)scan_model(where, root, names.name[i], arena, &scan->model[scan->count], NULL);
        scan->model[scan->count++].roots = ifd_scan_root(d);
    }
    struct strays strays = {.arena = arena, .first = scan->stray};
    code = code ? code : ifd_layout_strays(root, arena, add_stray, &strays, err);
    scan->stray = strays.first;
    *ret_count = names.count;
    ifd_folder_close(root);
    return code;
}

/* Neighbours of one name become one model. */
static void merge_twins(struct ifd_scan *scan)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < scan->count; i++) {
        struct ifd_scan_model *last = kept > 0 ? &scan->model[kept - 1] : NULL;
        if (last && strcmp(last->name, scan->model[i].name) == 0) {
            last->fingerprint += scan->model[i].fingerprint; /* in any order */
            last->unsummed += scan->model[i].unsummed;
            last->roots |= scan->model[i].roots;
            last->unfinished = last->unfinished ? last->unfinished : scan->model[i].unfinished;
        } else {
            scan->model[kept++] = scan->model[i];
        }
    }
    scan->count = kept;
}

void ifd_scan_all(const struct ifd_scan_where *where, struct ifd_arena *arena, struct ifd_scan *ret)
{
    const uint32_t dir_count = where->dir_count;
    *ret = (struct ifd_scan){.is_complete = true};
    ret->in_root = ifd_arena_take_array(arena, dir_count, sizeof(*ret->in_root));
    for (uint32_t d = 0; d < dir_count; d++) {
        struct ifd_err err = {0};
        const enum ifd_code code =
            ret->in_root ? scan_root(where, d, arena, ret, &ret->in_root[d], &err)
                         : ifd_arena_fail(arena, dir_count * sizeof(*ret->in_root), &err);
        if (code) {
            ret->err = ret->is_complete ? err : ret->err;
            ret->is_complete = false;
            ret->unlisted |= ifd_scan_root(d);
        }
    }
    if (ret->count > 0) {
        qsort(ret->model, ret->count, sizeof(*ret->model), compare_models);
    }
    merge_twins(ret);
}

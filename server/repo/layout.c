/* Listing folders. */
#include "server/repo/layout.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/str.h"

const char *ifd_layout_join(struct ifd_arena *arena, const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = ifd_arena_take(arena, size);
    if (path) {
        (void)snprintf(path, size, "%s/%s", dir, name);
    }
    return path;
}

bool ifd_layout_is_inside(const char *name)
{
    struct ifd_str rest = ifd_str(name);
    if (rest.size == 0 || name[0] == '/') {
        return false;
    }
    while (rest.data) {
        struct ifd_str part = ifd_str_part(&rest, '/');
        if (part.size == 0 || ifd_str_equal(part, "..") || ifd_str_equal(part, ".")) {
            return false;
        }
    }
    return true;
}

static enum ifd_code fail_dir(const char *dir, struct ifd_err *err)
{
    enum ifd_code code = errno == ENOENT || errno == ENOTDIR ? IFD_NOT_FOUND : IFD_IO;
    return ifd_fail(err, code, "cannot read folder \"%s\": %s", dir, strerror(errno));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All names in dir but hidden ones, sorted. */
static enum ifd_code list(const char *dir, struct ifd_arena *arena, struct ifd_layout_names *ret,
                          struct ifd_err *err)
{
    DIR *folder = opendir(dir);
    if (!folder) {
        return fail_dir(dir, err);
    }
    enum ifd_code code = IFD_OK;
    struct ifd_layout_names names = {0};
    uint32_t capacity = 0;
    for (struct dirent *entry = readdir(folder); entry && !code; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (names.count == IFD_LAYOUT_NAMES_MAX) {
            code = ifd_fail(err, IFD_TOO_LARGE, "folder \"%s\" has more than %d entries", dir,
                            IFD_LAYOUT_NAMES_MAX);
            break;
        }
        if (names.count == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 16;
            const char **grown = ifd_arena_take_array(arena, capacity, sizeof(*grown));
            if (grown && names.count > 0) {
                memcpy(grown, names.name, names.count * sizeof(*grown));
            }
            names.name = grown;
        }
        const char *copy = ifd_arena_text(arena, entry->d_name, strlen(entry->d_name));
        if (!names.name || !copy) {
            code = ifd_arena_fail(arena, capacity * sizeof(char *), err);
            break;
        }
        names.name[names.count++] = copy;
    }
    (void)closedir(folder);
    if (!code && names.count > 0) {
        qsort(names.name, names.count, sizeof(*names.name), compare_names);
    }
    if (!code) {
        *ret = names;
    }
    return code;
}

static bool is_folder(const char *dir, const char *name, struct ifd_arena *arena)
{
    struct stat info;
    const char *path = ifd_layout_join(arena, dir, name);
    return path && stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_version(const char *name, int64_t *ret_number)
{
    return name[0] >= '1' && name[0] <= '9' && ifd_str_s64(ifd_str(name), ret_number);
}

/* A config or a version makes a folder a model; scripts and notes may lie beside models. */
static bool is_model(const char *dir, const char *name, struct ifd_arena *arena)
{
    struct ifd_layout_names inside = {0};
    int64_t number = 0;
    const char *path = ifd_layout_join(arena, dir, name);
    if (!path || list(path, arena, &inside, NULL)) {
        return true; /* what is wrong with it is said when it is loaded */
    }
    for (uint32_t i = 0; i < inside.count; i++) {
        if (strcmp(inside.name[i], "config.pbtxt") == 0 ||
            strcmp(inside.name[i], "config.json") == 0 || is_version(inside.name[i], &number)) {
            return true;
        }
    }
    return false;
}

enum ifd_code ifd_layout_models(const char *dir, struct ifd_arena *arena,
                                struct ifd_layout_names *ret, struct ifd_err *err)
{
    struct ifd_layout_names all = {0};
    enum ifd_code code = list(dir, arena, &all, err);
    if (code) {
        return code;
    }
    *ret = (struct ifd_layout_names){.name = all.name};
    for (uint32_t i = 0; i < all.count; i++) {
        if (is_folder(dir, all.name[i], arena) && is_model(dir, all.name[i], arena)) {
            ret->name[ret->count++] = all.name[i];
        }
    }
    return IFD_OK;
}

static int compare_versions(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

enum ifd_code ifd_layout_versions(const char *dir, struct ifd_arena *arena, int64_t **ret_version,
                                  uint32_t *ret_count, struct ifd_err *err)
{
    struct ifd_layout_names all = {0};
    enum ifd_code code = list(dir, arena, &all, err);
    if (code) {
        return code;
    }
    int64_t *version = ifd_arena_take_array(arena, all.count, sizeof(*version));
    if (!version) {
        return ifd_arena_fail(arena, all.count * sizeof(*version), err);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < all.count; i++) {
        int64_t number = 0;
        if (is_version(all.name[i], &number) && is_folder(dir, all.name[i], arena)) {
            version[count++] = number;
        }
    }
    if (count > 0) {
        qsort(version, count, sizeof(*version), compare_versions);
    }
    *ret_version = version;
    *ret_count = count;
    return IFD_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size > tail && strcmp(text + size - tail, end) == 0;
}

static enum ifd_code found(const char *dir, const char *name, struct ifd_arena *arena,
                           const char **ret_path, struct ifd_err *err)
{
    *ret_path = ifd_layout_join(arena, dir, name);
    return *ret_path ? IFD_OK : ifd_arena_fail(arena, strlen(dir), err);
}

enum ifd_code ifd_layout_file(const char *dir, const char *file_name, struct ifd_arena *arena,
                              const char **ret_path, struct ifd_err *err)
{
    struct ifd_layout_names all = {0};
    enum ifd_code code = list(dir, arena, &all, err);
    if (code) {
        return code;
    }
    if (file_name[0] != '\0') {
        return ifd_layout_is_inside(file_name)
                   ? found(dir, file_name, arena, ret_path, err)
                   : ifd_fail(err, IFD_INVALID, "default_model_filename \"%s\" is not a plain name",
                              file_name);
    }
    const char *only = NULL, *other = NULL;
    uint32_t matches = 0;
    for (uint32_t i = 0; i < all.count; i++) {
        if (strcmp(all.name[i], "model.tflite") == 0) {
            return found(dir, all.name[i], arena, ret_path, err);
        }
        if (ends_with(all.name[i], ".tflite")) {
            only = all.name[i];
            matches++;
        } else {
            other = all.name[i];
        }
    }
    if (matches == 1) {
        return found(dir, only, arena, ret_path, err);
    }
    if (matches > 1) {
        return ifd_fail(err, IFD_NOT_FOUND,
                        "\"%s\" has %u .tflite files and none is named model.tflite", dir, matches);
    }
    if (other && strchr(other, '.')) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "\"%s\" has no model.tflite; \"%s\" is not a format that can be read", dir,
                        other);
    }
    return ifd_fail(err, IFD_NOT_FOUND, "\"%s\" has no model.tflite", dir);
}

/* Lists model folders. */
#include "server/repo/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/name.h"
#include "engine/base/str.h"

/* True if name is that of a version's folder. */
static bool is_version(const char *name, int64_t *ret_number)
{
    return name[0] >= '1' && name[0] <= '9' && ifd_str_s64(ifd_str(name), ret_number);
}

/* A folder with a config or a version is a model; other folders may lie beside models. */
static bool is_model(int root, const char *name, struct ifd_arena *arena)
{
    struct ifd_folder_names inside = {0};
    int64_t number = 0;
    if (ifd_folder_list(root, name, arena, &inside, NULL)) {
        return true; /* loading it says what is wrong */
    }
    for (uint32_t i = 0; i < inside.count; i++) {
        if (strcmp(inside.name[i], "config.pbtxt") == 0 ||
            strcmp(inside.name[i], "config.json") == 0 || is_version(inside.name[i], &number)) {
            return true;
        }
    }
    return false;
}

enum ifd_code ifd_layout_models(int root, struct ifd_arena *arena, struct ifd_folder_names *ret,
                                struct ifd_err *err)
{
    struct ifd_folder_names all = {0};
    enum ifd_code code = ifd_folder_list(root, ".", arena, &all, err);
    if (code) {
        return code;
    }
    *ret = (struct ifd_folder_names){.name = all.name};
    for (uint32_t i = 0; i < all.count; i++) {
        struct stat info;
        /* A link that leads out of the repository, or nowhere, is listed too: loading it says what
         * is wrong. */
        bool may_be = ifd_folder_stat(root, all.name[i], &info)
                          ? S_ISDIR(info.st_mode)
                          : ifd_folder_bad_link(errno) != NULL;
        if (may_be && is_model(root, all.name[i], arena)) {
            ret->name[ret->count++] = all.name[i];
        }
    }
    return IFD_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), tail = strlen(end);
    return size > tail && strcmp(text + size - tail, end) == 0;
}

/* ---- files in the wrong place ---- */

/* The extension of a model file; NULL of other files. */
static const char *model_extension(const char *name)
{
    return ends_with(name, ".tflite") ? ".tflite" : ends_with(name, ".onnx") ? ".onnx" : NULL;
}

struct strays {
    void (*fn)(void *context, const char *path, const char *wanted);
    void *context;
    struct ifd_arena *arena;
};

/* A file lies in folder (NULL: the repository itself); model names the folder that it should have,
 * by model_bytes of it. */
static enum ifd_code report(const struct strays *strays, const char *folder, const char *file,
                            const char *model, size_t model_bytes, struct ifd_err *err)
{
    static const char middle[] = "/1/model";
    const char *extension = model_extension(file);
    const size_t bytes = model_bytes + sizeof(middle) + strlen(extension);
    char *wanted = ifd_arena_take(strays->arena, bytes);
    const char *path = folder ? ifd_folder_join(strays->arena, folder, file) : file;
    if (!wanted || !path) {
        return ifd_arena_fail(strays->arena, bytes, err);
    }
    memcpy(wanted, model, model_bytes);
    memcpy(wanted + model_bytes, middle, sizeof(middle) - 1);
    memcpy(wanted + model_bytes + sizeof(middle) - 1, extension, strlen(extension));
    strays->fn(strays->context, path, wanted);
    return IFD_OK;
}

static enum ifd_code report_folder(int root, const char *folder, const struct strays *strays,
                                   struct ifd_err *err)
{
    struct ifd_folder_names inside = {0};
    enum ifd_code code = IFD_OK;
    /* a number is a version: the folder of a model was taken for that of all */
    const char *model = folder[strspn(folder, "0123456789")] == '\0' ? "NAME" : folder;
    if (is_model(root, folder, strays->arena) ||
        ifd_folder_list(root, folder, strays->arena, &inside, NULL)) {
        return IFD_OK;
    }
    for (uint32_t i = 0; i < inside.count && !code; i++) {
        if (model_extension(inside.name[i])) {
            code = report(strays, folder, inside.name[i], model, strlen(model), err);
        }
    }
    return code;
}

enum ifd_code ifd_layout_strays(int root, struct ifd_arena *arena,
                                void (*fn)(void *context, const char *path, const char *wanted),
                                void *context, struct ifd_err *err)
{
    const struct strays strays = {.fn = fn, .context = context, .arena = arena};
    struct ifd_folder_names all = {0};
    enum ifd_code code = ifd_folder_list(root, ".", arena, &all, err);
    for (uint32_t i = 0; i < all.count && !code; i++) {
        const char *name = all.name[i], *extension = model_extension(name);
        struct stat info;
        if (!ifd_folder_stat(root, name, &info)) {
            continue;
        }
        if (S_ISDIR(info.st_mode)) {
            code = report_folder(root, name, &strays, err);
        } else if (extension) {
            code = report(&strays, NULL, name, name, strlen(name) - strlen(extension), err);
        }
    }
    return code;
}

enum ifd_code ifd_layout_name(const char *path, struct ifd_str *ret_name, const char **ret_file,
                              struct ifd_err *err)
{
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    const char *extension = model_extension(base);
    if (!extension) {
        return ifd_fail(err, IFD_INVALID, "%.200s is neither a folder nor a .tflite or .onnx file",
                        path);
    }
    const struct ifd_str name = {base, strlen(base) - strlen(extension)};
    if (!ifd_name_is_valid(name)) {
        return ifd_fail(err, IFD_INVALID,
                        "%.150s: \"%.*s\" can be no model's name, which has letters, digits and "
                        "._+- only",
                        path, name.size < 60 ? (int)name.size : 60, name.data);
    }
    *ret_name = name;
    *ret_file = strcmp(extension, ".onnx") == 0 ? "1/model.onnx" : "1/model.tflite";
    return IFD_OK;
}

static int compare_versions(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

enum ifd_code ifd_layout_versions(const struct ifd_source *source, struct ifd_arena *arena,
                                  int64_t **ret_version, uint32_t *ret_count, struct ifd_err *err)
{
    struct ifd_folder_names all = {0};
    enum ifd_code code = ifd_source_list(source, "", arena, &all, err);
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
        if (is_version(all.name[i], &number) && ifd_source_is_folder(source, all.name[i])) {
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

static enum ifd_code found(const char *dir, const char *name, struct ifd_arena *arena,
                           const char **ret_path, struct ifd_err *err)
{
    *ret_path = ifd_folder_join(arena, dir, name);
    return *ret_path ? IFD_OK : ifd_arena_fail(arena, strlen(dir), err);
}

enum ifd_code ifd_layout_file(const struct ifd_source *source, const char *version,
                              const char *file_name, struct ifd_arena *arena, const char **ret_path,
                              struct ifd_err *err)
{
    struct ifd_folder_names all = {0};
    enum ifd_code code = ifd_source_list(source, version, arena, &all, err);
    if (code) {
        return code;
    }
    if (file_name[0] != '\0') {
        return ifd_path_is_inside(ifd_str(file_name))
                   ? found(version, file_name, arena, ret_path, err)
                   : ifd_fail(err, IFD_INVALID, "default_model_filename \"%s\" is not a plain name",
                              file_name);
    }
    const char *only = NULL, *other = NULL;
    uint32_t matches = 0;
    for (uint32_t i = 0; i < all.count; i++) {
        if (strcmp(all.name[i], "model.tflite") == 0 || strcmp(all.name[i], "model.onnx") == 0) {
            return found(version, all.name[i], arena, ret_path, err);
        }
        if (ends_with(all.name[i], ".tflite") || ends_with(all.name[i], ".onnx")) {
            only = all.name[i];
            matches++;
        } else {
            other = all.name[i];
        }
    }
    if (matches == 1) {
        return found(version, only, arena, ret_path, err);
    }
    if (matches > 1) {
        return ifd_fail(
            err, IFD_NOT_FOUND,
            "folder \"%s\" has %u .tflite and .onnx files, none of them named model.tflite "
            "or model.onnx",
            version, matches);
    }
    if (other && strchr(other, '.')) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "folder \"%s\" has no model.tflite or model.onnx; \"%s\" is not a format "
                        "that can be read",
                        version, other);
    }
    return ifd_fail(err, IFD_NOT_FOUND, "folder \"%s\" has no model.tflite or model.onnx", version);
}

/* Files that hold constants of a model, beside the model's file. */
#include "server/repo/externals.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/repo/digest.h"

struct reading {
    const struct ifd_repo_options *options;
    struct ifd_version *version;
};

/* Path below the model's folder: that of the folder that the model's file lies in, and the name. */
static enum ifd_code path_of(struct ifd_version *version, const char *name, const char **ret,
                             struct ifd_err *err)
{
    struct ifd_arena *arena = &version->arena;
    if (!ifd_path_is_inside(ifd_str(name))) {
        return ifd_fail(err, IFD_INVALID,
                        "constants lie in \"%.100s\": not a path inside the model's folder", name);
    }
    const char *file =
        ifd_folder_join(arena, version->number_text, version->desc.default_model_filename);
    const char *folder =
        file ? ifd_arena_text(arena, file, (size_t)(strrchr(file, '/') - file)) : NULL;
    *ret = folder ? ifd_folder_join(arena, folder, name) : NULL;
    return *ret ? IFD_OK : ifd_arena_fail(arena, strlen(name), err);
}

/* Reserves memory as for the model's file. */
static enum ifd_code hold(const struct reading *r, const char *const *path, uint32_t count,
                          struct ifd_err *err)
{
    uint64_t bytes = r->version->file.size;
    for (uint32_t i = 0; i < count; i++) {
        bytes += ifd_source_size(r->version->source, path[i]);
    }
    const enum ifd_code code =
        ifd_budget_hold(r->options->budget, &r->version->held_bytes, 2 * bytes, err);
    if (code) {
        ifd_err_prefix(err, "files of %llu bytes, and their weights packed",
                       (unsigned long long)bytes);
    }
    return code;
}

static enum ifd_code read_one(const struct reading *r, uint32_t i, const char *path,
                              struct ifd_err *err)
{
    struct ifd_version *version = r->version;
    struct ifd_external_file *file = &version->external[i];
    struct ifd_sealed *sealed = &version->external_sealed[i];
    ifd_sealed_init(sealed, version->name, r->options->alloc, NULL);
    const enum ifd_code code = ifd_source_read(version->source, path, r->options->max_model_bytes,
                                               &sealed->alloc, &file->content, err);
    if (code) {
        ifd_err_prefix(err, "constants lie beside the model's file");
        return code;
    }
    version->external_count = i + 1;
    version->digest = ifd_digest_bytes(version->digest, file->content.data, file->content.size);
    return IFD_OK;
}

static enum ifd_code read_all(void *context, const struct ifd_external_names *names,
                              struct ifd_err *err)
{
    const struct reading *r = context;
    struct ifd_arena *arena = &r->version->arena;
    const char **path = ifd_arena_take_array(arena, names->count, sizeof(*path));
    r->version->external = ifd_arena_take_array(arena, names->count, sizeof(*r->version->external));
    r->version->external_sealed =
        ifd_arena_take_array(arena, names->count, sizeof(*r->version->external_sealed));
    if (!path || !r->version->external || !r->version->external_sealed) {
        return ifd_arena_fail(arena, names->count * sizeof(struct ifd_sealed), err);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < names->count && !code; i++) {
        code = path_of(r->version, names->name[i], &path[i], err);
        if (!code) {
            r->version->external[i].name = path[i] + strlen(path[i]) - strlen(names->name[i]);
        }
    }
    code = code ? code : hold(r, path, names->count, err);
    for (uint32_t i = 0; i < names->count && !code; i++) {
        code = read_one(r, i, path[i], err);
    }
    return code;
}

enum ifd_code ifd_externals_read(const struct ifd_repo_options *options,
                                 struct ifd_version *version, struct ifd_err *err)
{
    struct reading reading = {.options = options, .version = version};
    return ifd_model_externals(version->file, options->alloc, read_all, &reading, err);
}

enum ifd_code ifd_externals_seal(struct ifd_version *version, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    for (uint32_t i = 0; i < version->external_count && !code; i++) {
        code = ifd_sealed_finish(&version->external_sealed[i], err);
    }
    return code;
}

void ifd_externals_release(struct ifd_version *version)
{
    for (uint32_t i = 0; i < version->external_count; i++) {
        const struct ifd_bytes content = version->external[i].content;
        ifd_release_tensor(&version->external_sealed[i].alloc, (void *)(uintptr_t)content.data,
                           content.size);
    }
    version->external_count = 0;
}

uint64_t ifd_externals_bytes(const struct ifd_version *version)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < version->external_count; i++) {
        bytes += version->external[i].content.size;
    }
    return bytes;
}

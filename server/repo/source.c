/* Reads from a folder, or from files in memory. */
#include "server/repo/source.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"

#define PATH_BYTES 1024

static bool below_model(const struct ifd_source *source, const char *path, char *full)
{
    return ifd_str_format(full, PATH_BYTES, path[0] == '\0' ? "%s%s" : "%s/%s", source->name, path);
}

static enum ifd_code read_memory(const struct ifd_source *source, const char *path, size_t limit,
                                 const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                                 struct ifd_err *err)
{
    for (uint32_t i = 0; i < source->file_count; i++) {
        const struct ifd_source_file *file = &source->file[i];
        if (!ifd_str_equal(file->path, path)) {
            continue;
        }
        if (file->content.size > limit) {
            return ifd_fail(err, IFD_TOO_LARGE, "\"%s\" has %zu bytes, more than the limit of %zu",
                            path, file->content.size, limit);
        }
        uint8_t *copy = ifd_acquire_tensor(alloc, file->content.size);
        if (!copy) {
            return ifd_fail(err, IFD_NOMEM, "no memory for the %zu bytes of \"%s\"",
                            file->content.size, path);
        }
        if (file->content.size > 0) {
            memcpy(copy, file->content.data, file->content.size);
        }
        *ret = (struct ifd_bytes){.data = copy, .size = file->content.size};
        return IFD_OK;
    }
    return ifd_fail(err, IFD_NOT_FOUND, "no file \"%s\" was given", path);
}

enum ifd_code ifd_source_read(const struct ifd_source *source, const char *path, size_t limit_bytes,
                              const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                              struct ifd_err *err)
{
    char full[PATH_BYTES];
    if (source->file_count > 0) {
        return read_memory(source, path, limit_bytes, alloc, ret, err);
    }
    return below_model(source, path, full)
               ? ifd_folder_read(source->root, full, limit_bytes, alloc, ret, err)
               : ifd_fail(err, IFD_TOO_LARGE, "path \"%.100s…\" is too long", path);
}

size_t ifd_source_size(const struct ifd_source *source, const char *path)
{
    char full[PATH_BYTES];
    struct stat info;
    for (uint32_t i = 0; i < source->file_count; i++) {
        if (ifd_str_equal(source->file[i].path, path)) {
            return source->file[i].content.size;
        }
    }
    bool is_there = source->file_count == 0 && below_model(source, path, full) &&
                    ifd_folder_stat(source->root, full, &info);
    return is_there && info.st_size > 0 ? (size_t)info.st_size : 0;
}

/* Name of a file's path directly in dir; {NULL,0} if it is elsewhere. */
static struct ifd_str part_in(struct ifd_str path, const char *dir, bool *ret_is_folder)
{
    size_t size = strlen(dir);
    if (size > 0) {
        if (path.size <= size + 1 || !ifd_str_starts(path, dir) || path.data[size] != '/') {
            return (struct ifd_str){0};
        }
        path.data += size + 1;
        path.size -= size + 1;
    }
    struct ifd_str part = ifd_str_part(&path, '/');
    *ret_is_folder = path.data != NULL;
    return part;
}

static enum ifd_code list_memory(const struct ifd_source *source, const char *dir,
                                 struct ifd_arena *arena, struct ifd_folder_names *ret,
                                 struct ifd_err *err)
{
    struct ifd_folder_names names = {
        .name = ifd_arena_take_array(arena, source->file_count, sizeof(*names.name))};
    for (uint32_t i = 0; i < source->file_count && names.name; i++) {
        bool is_folder = false, is_known = false;
        struct ifd_str part = part_in(source->file[i].path, dir, &is_folder);
        for (uint32_t k = 0; k < names.count; k++) {
            is_known = is_known || ifd_str_equal(part, names.name[k]);
        }
        if (part.size == 0 || is_known) {
            continue;
        }
        const char *copy = ifd_arena_text(arena, part.data, part.size);
        if (!copy) {
            return ifd_arena_fail(arena, part.size, err);
        }
        names.name[names.count++] = copy;
    }
    if (!names.name) {
        return ifd_arena_fail(arena, source->file_count * sizeof(*names.name), err);
    }
    *ret = names;
    return IFD_OK;
}

enum ifd_code ifd_source_list(const struct ifd_source *source, const char *dir,
                              struct ifd_arena *arena, struct ifd_folder_names *ret,
                              struct ifd_err *err)
{
    char full[PATH_BYTES];
    if (source->file_count > 0) {
        return list_memory(source, dir, arena, ret, err);
    }
    return below_model(source, dir, full)
               ? ifd_folder_list(source->root, full, arena, ret, err)
               : ifd_fail(err, IFD_TOO_LARGE, "path \"%.100s…\" is too long", dir);
}

bool ifd_source_is_folder(const struct ifd_source *source, const char *path)
{
    char full[PATH_BYTES];
    for (uint32_t i = 0; i < source->file_count; i++) {
        bool is_folder = false;
        if (ifd_str_equal(part_in(source->file[i].path, "", &is_folder), path) && is_folder) {
            return true;
        }
    }
    return source->file_count == 0 && below_model(source, path, full) &&
           ifd_folder_is_folder(source->root, full);
}

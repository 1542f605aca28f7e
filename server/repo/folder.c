/* Opens files beneath a root. */
#include "server/repo/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/beneath.h"
#include "engine/base/file.h"

const char *ifd_folder_join(struct ifd_arena *arena, const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = ifd_arena_take(arena, size);
    if (path) {
        (void)snprintf(path, size, "%s/%s", dir, name);
    }
    return path;
}

/* ---- opening ---- */

const char *ifd_folder_bad_link(int error)
{
    return error == EXDEV   ? "leads out of the repository"
           : error == ELOOP ? "leads through too many links"
                            : NULL;
}

static enum ifd_code fail_open(const char *what, const char *path, struct ifd_err *err)
{
    const char *bad_link = ifd_folder_bad_link(errno);
    if (bad_link) {
        return ifd_fail(err, IFD_INVALID, "%s \"%s\" %s", what, path, bad_link);
    }
    enum ifd_code code = errno == ENOENT || errno == ENOTDIR ? IFD_NOT_FOUND
                         : errno == ENXIO                    ? IFD_INVALID /* a socket */
                                                             : IFD_IO;
    return ifd_fail(err, code, "cannot read %s \"%s\": %s", what, path, strerror(errno));
}

enum ifd_code ifd_folder_open(const char *path, int *ret_root, struct ifd_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return fail_open("folder", path, err);
    }
    *ret_root = fd;
    return IFD_OK;
}

void ifd_folder_close(int root)
{
    (void)close(root);
}

bool ifd_folder_is_same(const char *path, const char *other)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

enum ifd_code ifd_folder_open_file(int root, const char *path, int *ret_fd, struct ifd_err *err)
{
    struct stat info;
    /* O_NONBLOCK: a FIFO must not block the reader. */
    int fd = ifd_open_beneath(root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) {
        return fail_open("file", path, err);
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(fd);
        return ifd_fail(err, IFD_INVALID, "cannot read \"%s\": not a regular file", path);
    }
    *ret_fd = fd;
    return IFD_OK;
}

enum ifd_code ifd_folder_read(int root, const char *path, size_t limit_bytes,
                              const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                              struct ifd_err *err)
{
    int fd = -1;
    enum ifd_code code = ifd_folder_open_file(root, path, &fd, err);
    if (code) {
        return code;
    }
    code = ifd_file_read_fd(fd, path, limit_bytes, alloc, ret, err);
    (void)close(fd);
    return code;
}

bool ifd_folder_stat(int root, const char *path, struct stat *ret)
{
    int fd = ifd_open_beneath(root, path, O_PATH);
    if (fd < 0) {
        return false;
    }
    bool ok = fstat(fd, ret) == 0;
    int saved = errno;
    (void)close(fd);
    errno = saved;
    return ok;
}

bool ifd_folder_is_folder(int root, const char *path)
{
    struct stat info;
    return ifd_folder_stat(root, path, &info) && S_ISDIR(info.st_mode);
}

/* ---- listing ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum ifd_code add_name(struct ifd_folder_names *names, uint32_t *capacity,
                              struct ifd_arena *arena, const char *name, struct ifd_err *err)
{
    if (names->count == *capacity) {
        uint32_t more = *capacity > 0 ? *capacity * 2 : 16;
        const char **grown = ifd_arena_take_array(arena, more, sizeof(*grown));
        if (!grown) {
            return ifd_arena_fail(arena, more * sizeof(*grown), err);
        }
        if (names->count > 0) {
            memcpy(grown, names->name, names->count * sizeof(*grown));
        }
        names->name = grown;
        *capacity = more;
    }
    const char *copy = ifd_arena_text(arena, name, strlen(name));
    if (!copy) {
        return ifd_arena_fail(arena, strlen(name), err);
    }
    names->name[names->count++] = copy;
    return IFD_OK;
}

enum ifd_code ifd_folder_list(int root, const char *path, struct ifd_arena *arena,
                              struct ifd_folder_names *ret, struct ifd_err *err)
{
    int fd = ifd_open_beneath(root, path, O_RDONLY | O_DIRECTORY);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (!folder) {
        enum ifd_code code = fail_open("folder", path, err);
        if (fd >= 0) {
            (void)close(fd);
        }
        return code;
    }
    enum ifd_code code = IFD_OK;
    struct ifd_folder_names names = {0};
    uint32_t capacity = 0;
    errno = 0;
    for (struct dirent *entry = readdir(folder); entry && !code; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        code = names.count == IFD_FOLDER_NAMES_MAX
                   ? ifd_fail(err, IFD_TOO_LARGE, "folder \"%s\" has more than %d entries", path,
                              IFD_FOLDER_NAMES_MAX)
                   : add_name(&names, &capacity, arena, entry->d_name, err);
        errno = 0;
    }
    if (!code && errno != 0) { /* an incomplete list must not look complete */
        code = fail_open("folder", path, err);
    }
    (void)closedir(folder);
    if (code) {
        return code;
    }
    if (names.count > 0) {
        qsort(names.name, names.count, sizeof(*names.name), compare_names);
    }
    *ret = names;
    return IFD_OK;
}

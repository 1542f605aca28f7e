/* Reading and writing whole files. */
#include "engine/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum ifd_code fail_io(const char *verb, const char *path, struct ifd_err *err)
{
    enum ifd_code code = errno == ENOENT || errno == ENOTDIR ? IFD_NOT_FOUND : IFD_IO;
    return ifd_fail(err, code, "cannot %s \"%s\": %s", verb, path, strerror(errno));
}

/* Reads until size bytes or the end; the number read, or -1. */
static ssize_t read_whole(int fd, uint8_t *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, data + done, size - done, (off_t)done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static enum ifd_code check_file(const struct stat *info, const char *name, size_t limit_bytes,
                                struct ifd_err *err)
{
    if (!S_ISREG(info->st_mode)) {
        return ifd_fail(err, IFD_INVALID, "cannot read \"%s\": not a regular file", name);
    }
    if (info->st_size < 0 || (uint64_t)info->st_size > limit_bytes) {
        return ifd_fail(err, IFD_TOO_LARGE, "\"%s\" has %lld bytes, more than the limit of %zu",
                        name, (long long)info->st_size, limit_bytes);
    }
    return IFD_OK;
}

enum ifd_code ifd_file_read_fd(int fd, const char *name, size_t limit_bytes,
                               const struct ifd_alloc *alloc, struct ifd_bytes *ret,
                               struct ifd_err *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) {
        return fail_io("read", name, err);
    }
    const enum ifd_code code = check_file(&info, name, limit_bytes, err);
    if (code != IFD_OK) {
        return code;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = ifd_acquire_tensor(alloc, size);
    if (!data) {
        return ifd_fail(err, IFD_NOMEM, "no memory for the %zu bytes of \"%s\"", size, name);
    }
    ifd_populate_pages(data, size);
    ssize_t got = read_whole(fd, data, size);
    if (got < 0 || (size_t)got != size) {
        int saved = errno;
        ifd_release_tensor(alloc, data, size);
        errno = saved;
        return got < 0 ? fail_io("read", name, err)
                       : ifd_fail(err, IFD_IO, "\"%s\" shrank while it was read: %zd of %zu bytes",
                                  name, got, size);
    }
    *ret = (struct ifd_bytes){.data = data, .size = size};
    return IFD_OK;
}

static enum ifd_code open_for_reading(const char *path, int *ret_fd, struct ifd_err *err)
{
    /* O_NONBLOCK: a FIFO in place of a file must not block the reader. */
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return *ret_fd < 0 ? fail_io("open", path, err) : IFD_OK;
}

enum ifd_code ifd_file_read(const char *path, size_t limit_bytes, const struct ifd_alloc *alloc,
                            struct ifd_bytes *ret, struct ifd_err *err)
{
    int fd = -1;
    enum ifd_code code = open_for_reading(path, &fd, err);
    if (code == IFD_OK) {
        code = ifd_file_read_fd(fd, path, limit_bytes, alloc, ret, err);
        (void)close(fd);
    }
    return code;
}

static bool only_we_write(const struct stat *info)
{
    return (info->st_uid == geteuid() || info->st_uid == 0) &&
           (info->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Maps the file over anonymous memory that is longer: the rest is its padding. False if mapping
 * fails. */
static bool map_file(int fd, size_t size, struct ifd_file *ret)
{
    const size_t mapped = size + IFD_TENSOR_PAD;
    void *map = mmap(NULL, mapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return false;
    }
    if (mmap(map, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        (void)munmap(map, mapped);
        return false;
    }
    *ret = (struct ifd_file){.content = {.data = map, .size = size}, .mapped_bytes = mapped};
    return true;
}

enum ifd_code ifd_file_open_fd(int fd, const char *name, size_t limit_bytes,
                               const struct ifd_alloc *alloc, struct ifd_file *ret,
                               struct ifd_err *err)
{
    struct stat info;
    enum ifd_code code = fstat(fd, &info) == 0 ? check_file(&info, name, limit_bytes, err)
                                               : fail_io("read", name, err);
    const bool may_map = code == IFD_OK && info.st_size > 0 && only_we_write(&info);
    if (code == IFD_OK && !(may_map && map_file(fd, (size_t)info.st_size, ret))) {
        *ret = (struct ifd_file){.alloc = alloc};
        code = ifd_file_read_fd(fd, name, limit_bytes, alloc, &ret->content, err);
    }
    return code;
}

enum ifd_code ifd_file_open(const char *path, size_t limit_bytes, const struct ifd_alloc *alloc,
                            struct ifd_file *ret, struct ifd_err *err)
{
    int fd = -1;
    enum ifd_code code = open_for_reading(path, &fd, err);
    if (code == IFD_OK) {
        code = ifd_file_open_fd(fd, path, limit_bytes, alloc, ret, err);
        (void)close(fd);
    }
    return code;
}

void ifd_file_close(struct ifd_file *file)
{
    if (file->mapped_bytes > 0) {
        (void)munmap((void *)(uintptr_t)file->content.data, file->mapped_bytes);
    } else if (file->content.data) {
        ifd_release_tensor(file->alloc, (void *)(uintptr_t)file->content.data, file->content.size);
    }
    *file = (struct ifd_file){0};
}

bool ifd_file_write_fd(int fd, struct ifd_bytes content)
{
    for (size_t done = 0; done < content.size;) {
        const ssize_t put = write(fd, content.data + done, content.size - done);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        done += (size_t)put;
    }
    return true;
}

enum ifd_code ifd_file_write(const char *path, struct ifd_bytes content, struct ifd_err *err)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof(temporary), "%s.tmp.%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof(temporary)) {
        return ifd_fail(err, IFD_TOO_LARGE, "path is longer than %d bytes: \"%.60s…\"", PATH_MAX,
                        path);
    }
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return fail_io("create", temporary, err);
    }
    bool ok = ifd_file_write_fd(fd, content);
    ok = close(fd) == 0 && ok;
    if (!ok || rename(temporary, path) != 0) {
        enum ifd_code code = fail_io("write", path, err);
        (void)unlink(temporary);
        return code;
    }
    return IFD_OK;
}

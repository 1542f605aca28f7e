/* Files are checked through their descriptors, so that the checked file is the one that is read. */
#include "engine/cache/folder.h"

#include "engine/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define KEY_NAME     "key"
#define NAME_BYTES   32
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

static enum ifd_code refuse(const char *verb, const char *what, struct ifd_err *err)
{
    return ifd_fail(err, IFD_UNAVAILABLE, "cannot %s %s: %s", verb, what, strerror(errno));
}

/* Files that others may have written, or can write, are not used. */
static enum ifd_code check_owner(const struct stat *info, mode_t forbidden, const char *what,
                                 struct ifd_err *err)
{
    if (info->st_uid != geteuid() && info->st_uid != 0) {
        return ifd_fail(err, IFD_UNAVAILABLE, "%s belongs to user %u", what,
                        (unsigned)info->st_uid);
    }
    if (info->st_mode & forbidden) {
        return ifd_fail(err, IFD_UNAVAILABLE, "%s has permissions %03o: others may %s it", what,
                        (unsigned)info->st_mode & 0777,
                        info->st_mode & OTHERS_WRITE ? "write" : "read");
    }
    return IFD_OK;
}

enum ifd_code ifd_cache_folder_open(const char *path, int *ret_folder, struct ifd_err *err)
{
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return refuse("create", path, err);
    }
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return refuse("open", path, err);
    }
    enum ifd_code code = fstat(folder, &info) == 0 ? IFD_OK : refuse("stat", path, err);
    if (code == IFD_OK) {
        code = check_owner(&info, OTHERS_WRITE, path, err);
    }
    if (code != IFD_OK) {
        (void)close(folder);
        return code;
    }
    *ret_folder = folder;
    return IFD_OK;
}

enum ifd_code ifd_cache_folder_file(int folder, const char *name, bool is_secret, int *ret_fd,
                                    struct stat *ret_info, struct ifd_err *err)
{
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return ifd_fail(err, IFD_NOT_FOUND, "%s does not exist", name);
    }
    if (fd < 0) {
        return refuse("open", name, err);
    }
    enum ifd_code code = fstat(fd, ret_info) == 0 ? IFD_OK : refuse("stat", name, err);
    if (code == IFD_OK && !S_ISREG(ret_info->st_mode)) {
        code = ifd_fail(err, IFD_UNAVAILABLE, "%s is not a regular file", name);
    }
    if (code == IFD_OK) {
        code = check_owner(ret_info, is_secret ? 077 : OTHERS_WRITE, name, err);
    }
    if (code != IFD_OK) {
        (void)close(fd);
        return code;
    }
    *ret_fd = fd;
    return IFD_OK;
}

static enum ifd_code read_key(int folder, uint8_t key[IFD_MAC_KEY_BYTES], struct ifd_err *err)
{
    struct stat info;
    int fd = -1;
    enum ifd_code code = ifd_cache_folder_file(folder, KEY_NAME, true, &fd, &info, err);
    if (code != IFD_OK) {
        return code;
    }
    if (read(fd, key, IFD_MAC_KEY_BYTES) != IFD_MAC_KEY_BYTES ||
        info.st_size != IFD_MAC_KEY_BYTES) {
        code = ifd_fail(err, IFD_CORRUPT, "%s has %lld bytes, expected %d", KEY_NAME,
                        (long long)info.st_size, IFD_MAC_KEY_BYTES);
    }
    (void)close(fd);
    return code;
}

/* Of several processes that create a key at once, the first that links it wins; all read that
 * one. */
static enum ifd_code make_key(int folder, struct ifd_err *err)
{
    uint8_t random[IFD_MAC_KEY_BYTES + 8];
    char name[NAME_BYTES];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return refuse("create", "a key", err);
    }
    uint64_t number = 0;
    memcpy(&number, random + IFD_MAC_KEY_BYTES, sizeof(number));
    (void)snprintf(name, sizeof(name), "key.%016" PRIx64, number);
    const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return refuse("create", "a key", err);
    }
    bool ok = ifd_file_write_fd(fd, (struct ifd_bytes){random, IFD_MAC_KEY_BYTES});
    /* Without it, a power failure may leave the name without the content. */
    ok = ok && fsync(fd) == 0;
    ok = close(fd) == 0 && ok;
    ok = ok && (linkat(folder, name, folder, KEY_NAME, 0) == 0 || errno == EEXIST);
    const enum ifd_code code = ok ? IFD_OK : refuse("create", "a key", err);
    (void)unlinkat(folder, name, 0);
    return code;
}

enum ifd_code ifd_cache_folder_key(int folder, uint8_t ret_key[IFD_MAC_KEY_BYTES],
                                   struct ifd_err *err)
{
    enum ifd_code code = read_key(folder, ret_key, err);
    /* Files of the old key are replaced one by one, or go when room is needed. */
    if (code == IFD_CORRUPT && unlinkat(folder, KEY_NAME, 0) == 0) {
        code = IFD_NOT_FOUND;
    }
    if (code == IFD_NOT_FOUND) {
        code = make_key(folder, err);
        if (code == IFD_OK) {
            code = read_key(folder, ret_key, err);
        }
    }
    return code;
}

/* Scans the folder once for each file that it removes: there are few files, and no list has to be
 * kept. */
#include "engine/cache/room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define DIGITS     16
#define NAME_BYTES (DIGITS + sizeof(".new"))
#define STALE_SECS 60

/* A file that may go. */
struct candidate {
    char name[NAME_BYTES]; /* "": none */
    struct timespec used;
};

void ifd_cache_use(int file)
{
    (void)flock(file, LOCK_SH | LOCK_NB);
    (void)futimens(file, NULL);
}

bool ifd_cache_is_stale(const struct stat *info)
{
    const time_t now = time(NULL);
    return info->st_mtime + STALE_SECS < now || info->st_mtime > now + STALE_SECS;
}

static bool is_ours(const char *name)
{
    const size_t digits = strspn(name, "0123456789abcdef");
    return digits == DIGITS && (name[DIGITS] == '\0' || strcmp(name + DIGITS, ".new") == 0);
}

static bool goes_before(const struct candidate *a, const struct candidate *b)
{
    if (a->used.tv_sec != b->used.tv_sec) {
        return a->used.tv_sec < b->used.tv_sec;
    }
    if (a->used.tv_nsec != b->used.tv_nsec) {
        return a->used.tv_nsec < b->used.tv_nsec;
    }
    return strcmp(a->name, b->name) < 0;
}

/* The bytes of all files, and the first to go of those behind *tried. */
static void look_through(DIR *stream, int folder, const char *name, const struct candidate *tried,
                         uint64_t *ret_bytes, struct candidate *ret_next)
{
    uint64_t bytes = 0;
    struct candidate next = {.name = ""};
    rewinddir(stream);
    for (const struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
        struct stat info;
        if (!is_ours(entry->d_name) || (name && strcmp(entry->d_name, name) == 0) ||
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode)) {
            continue;
        }
        bytes += (uint64_t)info.st_size;
        if (entry->d_name[DIGITS] != '\0' && !ifd_cache_is_stale(&info)) {
            continue;
        }
        struct candidate file = {.used = info.st_mtim};
        memcpy(file.name, entry->d_name, strlen(entry->d_name) + 1);
        if ((tried->name[0] == '\0' || goes_before(tried, &file)) &&
            (next.name[0] == '\0' || goes_before(&file, &next))) {
            next = file;
        }
    }
    *ret_bytes = bytes;
    *ret_next = next;
}

static void remove_unused(int folder, const char *name)
{
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0) {
            (void)unlinkat(folder, name, 0);
        }
        (void)close(file);
    }
}

enum ifd_code ifd_cache_make_room(int folder, uint64_t limit_bytes, const char *name,
                                  struct ifd_err *err)
{
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = own >= 0 ? fdopendir(own) : NULL;
    if (!stream) {
        const int saved = errno;
        if (own >= 0) {
            (void)close(own);
        }
        return ifd_fail(err, IFD_UNAVAILABLE, "cannot read the folder: %s", strerror(saved));
    }
    struct candidate next = {.name = ""};
    uint64_t bytes = 0;
    look_through(stream, folder, name, &next, &bytes, &next);
    while (bytes > limit_bytes && next.name[0] != '\0') {
        const struct candidate tried = next;
        remove_unused(folder, tried.name);
        look_through(stream, folder, name, &tried, &bytes, &next);
    }
    (void)closedir(stream);
    return bytes <= limit_bytes
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE,
                          "files in use take %" PRIu64 " bytes, the limit is %" PRIu64, bytes,
                          limit_bytes);
}

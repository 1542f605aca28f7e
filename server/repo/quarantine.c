/* One file per content: the name is its digest, the text counts loads that ended the process. */
#include "server/repo/quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/str.h"
#include "engine/base/thread.h"
#include "server/repo/folder.h"

#define NAME_BYTES 32

struct ifd_quarantine {
    const struct ifd_alloc *alloc;
    const struct ifd_log *log;
    int folder;
    struct ifd_mutex turn;  /* held from enter to leave */
    struct ifd_mutex mutex; /* guards what follows */
    char name[NAME_BYTES];  /* file of the content that is being loaded; "": none */
    uint64_t before;        /* loads of it that ended the process */
    bool is_absolved;
};

enum ifd_code ifd_quarantine_open(const char *dir, const struct ifd_alloc *alloc,
                                  const struct ifd_log *log, struct ifd_quarantine **ret,
                                  struct ifd_err *err)
{
    int folder = -1;
    (void)mkdir(dir, 0700); /* if it is missing then, opening fails */
    const enum ifd_code code = ifd_folder_open(dir, &folder, err);
    if (code) {
        return code;
    }
    struct ifd_quarantine *quarantine = ifd_acquire_zeroed(alloc, 1, sizeof(*quarantine));
    if (!quarantine) {
        ifd_folder_close(folder);
        return ifd_fail(err, IFD_NOMEM, "no memory for the quarantine of models");
    }
    quarantine->alloc = alloc;
    quarantine->log = log;
    quarantine->folder = folder;
    ifd_mutex_init(&quarantine->turn);
    ifd_mutex_init(&quarantine->mutex);
    *ret = quarantine;
    return IFD_OK;
}

void ifd_quarantine_close(struct ifd_quarantine *quarantine)
{
    if (!quarantine) {
        return;
    }
    ifd_mutex_finish(&quarantine->turn);
    ifd_mutex_finish(&quarantine->mutex);
    ifd_folder_close(quarantine->folder);
    ifd_release(quarantine->alloc, quarantine, sizeof(*quarantine));
}

/* A file without a number counts as one load: there was no time, or no space, to write it. */
static uint64_t read_deaths(const struct ifd_quarantine *quarantine, const char *name)
{
    char text[24];
    uint64_t deaths = 0;
    const int fd = openat(quarantine->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const ssize_t size = read(fd, text, sizeof(text));
    (void)close(fd);
    const struct ifd_str number = {.data = text, .size = size > 0 ? (size_t)size : 0};
    return ifd_str_u64(number, &deaths) ? deaths : 1;
}

static void write_deaths(const struct ifd_quarantine *quarantine, const char *name, uint64_t deaths)
{
    char text[24];
    bool is_written = false;
    if (deaths == 0) {
        is_written = unlinkat(quarantine->folder, name, 0) == 0 || errno == ENOENT;
    } else {
        const int size = snprintf(text, sizeof(text), "%" PRIu64, deaths);
        const int fd = openat(quarantine->folder, name,
                              O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        is_written = fd >= 0 && write(fd, text, (size_t)size) == size;
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    if (!is_written) {
        ifd_log_warn(quarantine->log, "state directory cannot be written", "reason=%s",
                     strerror(errno));
    }
}

enum ifd_code ifd_quarantine_enter(struct ifd_quarantine *quarantine, uint64_t digest,
                                   bool is_asked, struct ifd_err *err)
{
    char name[NAME_BYTES];
    if (!quarantine) {
        return IFD_OK;
    }
    (void)snprintf(name, sizeof(name), "load-%016" PRIx64, digest);
    ifd_mutex_lock(&quarantine->turn);
    const uint64_t deaths = read_deaths(quarantine, name);
    if (deaths >= IFD_QUARANTINE_DEATHS && !is_asked) {
        ifd_mutex_unlock(&quarantine->turn);
        return ifd_fail(err, IFD_CORRUPT,
                        "%" PRIu64 " loads of this content ended the process; it is tried again "
                        "when \"%s\" is removed from --state-dir",
                        deaths, name);
    }
    ifd_mutex_lock(&quarantine->mutex);
    if (!quarantine->is_absolved) {
        write_deaths(quarantine, name, deaths + 1);
        memcpy(quarantine->name, name, sizeof(name));
        quarantine->before = deaths;
    }
    ifd_mutex_unlock(&quarantine->mutex);
    return IFD_OK;
}

static void settle(struct ifd_quarantine *quarantine, uint64_t deaths)
{
    if (quarantine->name[0] != '\0') {
        write_deaths(quarantine, quarantine->name, deaths);
        quarantine->name[0] = '\0';
    }
}

void ifd_quarantine_leave(struct ifd_quarantine *quarantine)
{
    if (quarantine) {
        ifd_mutex_lock(&quarantine->mutex);
        settle(quarantine, 0);
        ifd_mutex_unlock(&quarantine->mutex);
        ifd_mutex_unlock(&quarantine->turn);
    }
}

void ifd_quarantine_absolve(struct ifd_quarantine *quarantine)
{
    if (quarantine) {
        ifd_mutex_lock(&quarantine->mutex);
        quarantine->is_absolved = true;
        settle(quarantine, quarantine->before);
        ifd_mutex_unlock(&quarantine->mutex);
    }
}

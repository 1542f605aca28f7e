/* Reads /proc/self. */
#include "server/obs/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Fields of /proc/self/stat, counted from the state behind the name. */
enum {
    STAT_THREADS = 17,
    STAT_START_TICKS = 19,
    STAT_VIRTUAL_BYTES = 20,
    STAT_RESIDENT_PAGES = 21
};

static uint64_t clock_of(clockid_t clock)
{
    struct timespec now = {0};
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static bool read_stat(char *text, size_t size)
{
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static void use_stat(struct ifd_process *ret)
{
    char text[1024];
    /* The name may contain brackets, the rest does not. */
    char *at = read_stat(text, sizeof(text)) ? strrchr(text, ')') : NULL;
    long ticks = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
    if (!at || ticks <= 0 || page <= 0) {
        return;
    }
    at += 3; /* ") S" */
    for (int field = 1; field <= STAT_RESIDENT_PAGES; field++) {
        uint64_t value = strtoull(at, &at, 10);
        if (field == STAT_THREADS) {
            ret->threads = value;
        } else if (field == STAT_START_TICKS) {
            uint64_t after_boot_ns = value * (1000000000u / (uint64_t)ticks);
            ret->start_ns = clock_of(CLOCK_REALTIME) - clock_of(CLOCK_BOOTTIME) + after_boot_ns;
        } else if (field == STAT_VIRTUAL_BYTES) {
            ret->virtual_bytes = value;
        } else if (field == STAT_RESIDENT_PAGES) {
            ret->resident_bytes = value * (uint64_t)page;
        }
    }
}

/* Kernels since 6.2 give the number as the folder's size. */
static uint64_t count_fds(void)
{
    struct stat info = {0};
    uint64_t count = 0;
    if (stat("/proc/self/fd", &info) == 0 && info.st_size > 0) {
        return (uint64_t)info.st_size;
    }
    DIR *dir = opendir("/proc/self/fd");
    if (!dir) {
        return 0;
    }
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(dir);
    return count - 1; /* less the folder's own descriptor */
}

void ifd_process_read(struct ifd_process *ret)
{
    struct rlimit limit = {0};
    *ret =
        (struct ifd_process){.cpu_ns = clock_of(CLOCK_PROCESS_CPUTIME_ID), .open_fds = count_fds()};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        ret->max_fds = limit.rlim_cur;
    }
    use_stat(ret);
}

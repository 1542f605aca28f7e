/* Log lines to a descriptor. */
#include "server/obs/log_stderr.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void write_line(void *context, enum ifd_log_level level, const char *sentence,
                       const char *fields)
{
    char line[1500], stamp[32];
    struct timespec now = {0};
    struct tm utc = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    (void)strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
    int size = snprintf(line, sizeof(line) - 1, "%s.%03ldZ %s %s%s%s", stamp, now.tv_nsec / 1000000,
                        ifd_log_level_name(level), sentence, *fields ? " " : "", fields);
    size_t used = (size_t)size < sizeof(line) - 2 ? (size_t)size : sizeof(line) - 2;
    line[used++] = '\n';
    /* A log that cannot be written must not stop the server: the result is of no use. */
    ssize_t written = write((int)(intptr_t)context, line, used);
    (void)written;
}

struct ifd_log ifd_log_to_fd(int fd, enum ifd_log_level level)
{
    return (struct ifd_log){.level = level, .context = (void *)(intptr_t)fd, .write = write_line};
}

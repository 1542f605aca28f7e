/* Memory limits of machine and control groups; release of free memory. */
#include "server/ops/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "engine/base/str.h"

#define PATH_BYTES 4096

/* Reads the beginning of a file, without the last newline; false if it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    size_t used = got > 0 ? (size_t)got : 0;
    used -= used > 0 && text[used - 1] == '\n';
    text[used] = '\0';
    return got > 0;
}

/* "max" is no limit, nor is the large number of older kernels. */
static void lower(struct ifd_memory *memory, const char *path, const char *source)
{
    char text[64];
    uint64_t bytes = 0;
    if (read_text(path, text, sizeof(text)) && ifd_str_u64(ifd_str(text), &bytes) &&
        bytes < memory->bytes) {
        memory->bytes = bytes;
        memory->source = source;
    }
}

/* Lowers the limit to that of group and all groups around it. */
static void lower_by_group(struct ifd_memory *memory, const char *root, const char *mount,
                           struct ifd_str group, const char *file, const char *source)
{
    char path[PATH_BYTES];
    for (;;) {
        while (group.size > 0 && group.data[group.size - 1] == '/') {
            group.size--;
        }
        if (ifd_str_format(path, sizeof(path), "%s/sys/fs/cgroup%s%.*s/%s", root, mount,
                           (int)group.size, group.data, file)) {
            lower(memory, path, source);
        }
        if (group.size == 0) {
            return;
        }
        while (group.size > 0 && group.data[group.size - 1] != '/') {
            group.size--;
        }
    }
}

/* A line of /proc/self/cgroup: "0::/a/b", or "5:cpu,memory:/a/b" for a version 1 hierarchy. */
static void lower_by_line(struct ifd_memory *memory, const char *root, struct ifd_str line)
{
    struct ifd_str number = ifd_str_part(&line, ':'), controllers = ifd_str_part(&line, ':');
    if (!line.data || (line.size > 0 && line.data[0] != '/')) {
        return;
    }
    if (ifd_str_equal(number, "0") && controllers.size == 0) {
        lower_by_group(memory, root, "", line, "memory.max", "cgroup v2");
    }
    while (controllers.size > 0) {
        if (ifd_str_equal(ifd_str_part(&controllers, ','), "memory")) {
            lower_by_group(memory, root, "/memory", line, "memory.limit_in_bytes", "cgroup v1");
        }
    }
}

static uint64_t machine(void)
{
    struct sysinfo info;
    return sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : UINT64_MAX;
}

struct ifd_memory ifd_memory_limit(const char *root, uint64_t machine_bytes)
{
    struct ifd_memory memory = {.bytes = machine_bytes > 0 ? machine_bytes : machine(),
                                .source = "machine"};
    char path[PATH_BYTES], text[PATH_BYTES];
    if (ifd_str_format(path, sizeof(path), "%s/proc/self/cgroup", root) &&
        read_text(path, text, sizeof(text))) {
        struct ifd_str rest = ifd_str(text);
        while (rest.data) {
            lower_by_line(&memory, root, ifd_str_part(&rest, '\n'));
        }
    }
    return memory;
}

/* Memory that main.c lets the C library keep. */
#define SLACK_BYTES ((size_t)16 << 20)

enum ifd_slack_turn ifd_slack_look(struct ifd_slack *slack, size_t used_bytes, uint64_t now_ms)
{
    if (used_bytes > slack->peak_bytes / 2 || slack->peak_bytes - used_bytes < SLACK_BYTES) {
        slack->peak_bytes = used_bytes > slack->peak_bytes ? used_bytes : slack->peak_bytes;
        slack->is_slack = false;
        return IFD_SLACK_NO;
    }
    if (!slack->is_slack) {
        slack->is_slack = true;
        slack->since_ms = now_ms;
        return IFD_SLACK_BEGINS;
    }
    if (now_ms - slack->since_ms < IFD_SLACK_MS) {
        return IFD_SLACK_NO;
    }
    *slack = (struct ifd_slack){.peak_bytes = used_bytes};
    return IFD_SLACK_LASTS;
}

void ifd_memory_trim(void)
{
    /* With another malloc this would initialize the C library's, unlocked. */
#if defined(__GLIBC__) && !defined(IFD_SANITIZED)
    (void)malloc_trim(0);
#endif
}

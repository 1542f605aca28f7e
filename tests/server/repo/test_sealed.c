/* Memory of a model file: it cannot be changed, pages are released, memfds may be missing. */
#include "server/repo/sealed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/file.h"
#include "engine/base/str.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#define FILE_BYTES (64 * 4096 + 5)

struct world {
    char path[32];
    struct fail_alloc other;
    struct ifd_sealed sealed;
    struct ifd_bytes file;
};

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(1 + i % 251);
}

static void begin(struct world *world, int (*create)(const char *name, unsigned flags))
{
    static uint8_t content[FILE_BYTES];
    struct ifd_err err = {0};
    for (size_t i = 0; i < FILE_BYTES; i++) {
        content[i] = byte_at(i);
    }
    (void)snprintf(world->path, sizeof(world->path), "/tmp/ifd_sealed_XXXXXX");
    int fd = mkstemp(world->path);
    REQUIRE(fd >= 0 && write(fd, content, FILE_BYTES) == FILE_BYTES && close(fd) == 0);
    fail_alloc_init(&world->other, 0);
    ifd_sealed_init(&world->sealed, "a_model", &world->other.alloc, create);
    REQUIRE_OK(ifd_file_read(world->path, FILE_BYTES, &world->sealed.alloc, &world->file, &err),
               &err);
}

static void end(struct world *world)
{
    ifd_release_tensor(&world->sealed.alloc, (void *)(uintptr_t)world->file.data, world->file.size);
    EXPECT(!world->sealed.map && world->sealed.fd == -1);
    fail_alloc_finish(&world->other);
    EXPECT(unlink(world->path) == 0);
}

static size_t count_wrong(const struct world *world, size_t from, size_t to)
{
    size_t wrong = 0;
    for (size_t i = from; i < to; i++) {
        wrong += world->file.data[i] != byte_at(i);
    }
    return wrong;
}

static int count_descriptors(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    REQUIRE(dir != NULL);
    while (readdir(dir)) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

/* The line of /proc/self/maps that begins where the file lies. */
static void read_map(const struct world *world, char *line, int size)
{
    char start[32];
    (void)snprintf(start, sizeof(start), "%" PRIxPTR "-", (uintptr_t)world->file.data);
    FILE *maps = fopen("/proc/self/maps", "r");
    REQUIRE(maps != NULL);
    do {
        REQUIRE(fgets(line, size, maps) != NULL);
    } while (strncmp(line, start, strlen(start)) != 0);
    (void)fclose(maps);
}

static void nobody_writes_once_the_load_is_over(void)
{
    struct world world;
    struct ifd_err err = {0};
    char line[512];
    const int before = count_descriptors();
    begin(&world, NULL);
    EXPECT_INT(world.other.requests, 0);
    EXPECT_INT(fcntl(world.sealed.fd, F_GETFD), FD_CLOEXEC);
    const int fd = dup(world.sealed.fd);
    REQUIRE(fd >= 0);
    EXPECT((fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW)) ==
           (F_SEAL_SHRINK | F_SEAL_GROW));
    EXPECT(ftruncate(fd, 1) == -1 && errno == EPERM);

    REQUIRE_OK(ifd_sealed_finish(&world.sealed, &err), &err);
    const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    EXPECT_INT(fcntl(fd, F_GET_SEALS) & all, all);
    EXPECT(pwrite(fd, "x", 1, 0) == -1 && errno == EPERM);
    EXPECT(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    EXPECT(close(fd) == 0);
    read_map(&world, line, sizeof(line));
    EXPECT_HAS(line, " r--p ");
    EXPECT_HAS(line, "/memfd:a_model");
    EXPECT_INT(count_descriptors(), before);
    EXPECT_INT(count_wrong(&world, 0, FILE_BYTES), 0);
    end(&world);
    EXPECT_INT(count_descriptors(), before);
}

/* Of the mapping with the file, by /proc/self/smaps. */
static size_t resident_bytes(const struct world *world)
{
    char start[32], line[512];
    uint64_t kib = UINT64_MAX;
    bool is_it = false;
    (void)snprintf(start, sizeof(start), "%" PRIxPTR "-", (uintptr_t)world->file.data);
    FILE *maps = fopen("/proc/self/smaps", "r");
    REQUIRE(maps != NULL);
    while (kib == UINT64_MAX && fgets(line, sizeof(line), maps)) {
        is_it = is_it || strncmp(line, start, strlen(start)) == 0;
        if (is_it && strncmp(line, "Rss:", 4) == 0) {
            struct ifd_str rest = ifd_str_trim(ifd_str(line + 4));
            REQUIRE(ifd_str_u64(ifd_str_part(&rest, ' '), &kib));
        }
    }
    (void)fclose(maps);
    REQUIRE(kib != UINT64_MAX);
    return (size_t)kib * 1024;
}

/* No request waits for pages; those that were given back do not come again. */
static void pages_are_mapped_when_the_load_is_over(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), gone = 2 * page;
    struct world world;
    struct ifd_err err = {0};
    begin(&world, NULL);
#ifdef MADV_POPULATE_READ
    const bool can_populate =
        madvise((void *)(uintptr_t)world.file.data, page, MADV_POPULATE_READ) == 0;
#else
    const bool can_populate = false;
#endif
    EXPECT_INT(ifd_discard_pages((void *)(uintptr_t)(world.file.data + page), gone), gone);
    REQUIRE_OK(ifd_sealed_finish(&world.sealed, &err), &err);
    const size_t resident = resident_bytes(&world);
    end(&world);
    if (!can_populate) {
        test_does_not_apply("this kernel maps pages when they are read only");
    }
    EXPECT(resident >= FILE_BYTES - gone && resident < FILE_BYTES);
}

static void what_becomes_of_the_source_changes_nothing(void)
{
    struct world world;
    struct ifd_err err = {0};
    begin(&world, NULL);
    int fd = open(world.path, O_WRONLY);
    REQUIRE(fd >= 0 && pwrite(fd, "other", 5, 0) == 5);
    EXPECT_INT(count_wrong(&world, 0, FILE_BYTES), 0);
    REQUIRE_OK(ifd_sealed_finish(&world.sealed, &err), &err);
    EXPECT(ftruncate(fd, 0) == 0 && close(fd) == 0);
    EXPECT_INT(count_wrong(&world, 0, FILE_BYTES), 0);
    end(&world);
}

static void pages_that_were_given_back_stay_away(void)
{
    struct world world;
    struct ifd_err err = {0};
    struct stat whole, left;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), from = page, size = 2 * page;
    begin(&world, NULL);
    const int fd = dup(world.sealed.fd);
    REQUIRE(fd >= 0 && fstat(fd, &whole) == 0);
    EXPECT_INT(ifd_discard_pages((void *)(uintptr_t)(world.file.data + from), size), size);
    REQUIRE_OK(ifd_sealed_finish(&world.sealed, &err), &err);
    EXPECT_INT(count_wrong(&world, 0, from), 0);
    EXPECT_INT(count_wrong(&world, from + size, FILE_BYTES), 0);
    REQUIRE(fstat(fd, &left) == 0);
    EXPECT_INT((whole.st_blocks - left.st_blocks) * 512, size);
    EXPECT_INT(world.file.data[from], 0);
    EXPECT(close(fd) == 0);
    end(&world);
}

static int refuse(const char *name, unsigned flags)
{
    (void)name;
    (void)flags;
    errno = ENOSYS;
    return -1;
}

static void without_memfds_the_other_allocator_is_asked(void)
{
    struct world world;
    struct ifd_err err = {0};
    begin(&world, refuse);
    EXPECT_INT(world.sealed.refused, ENOSYS);
    EXPECT_INT(world.other.live, 1);
    REQUIRE_OK(ifd_sealed_finish(&world.sealed, &err), &err);
    EXPECT_INT(count_wrong(&world, 0, FILE_BYTES), 0);
    fail_alloc_arm(&world.other, 1, true);
    EXPECT(!ifd_acquire_tensor(&world.sealed.alloc, 1));
    end(&world);
}

/* As Linux before 6.3. */
static int refuse_new_flags(const char *name, unsigned flags)
{
    if ((flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING)) != 0) {
        errno = EINVAL;
        return -1;
    }
    return memfd_create(name, flags);
}

static void kernels_that_do_not_know_the_newest_flag_are_asked_without(void)
{
    struct world world;
    begin(&world, refuse_new_flags);
    EXPECT_INT(world.sealed.refused, 0);
    EXPECT_INT(world.other.requests, 0);
    EXPECT_INT(count_wrong(&world, 0, FILE_BYTES), 0);
    end(&world); /* a load that failed: never finished */
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(nobody_writes_once_the_load_is_over),
        T(pages_are_mapped_when_the_load_is_over),
        T(what_becomes_of_the_source_changes_nothing),
        T(pages_that_were_given_back_stay_away),
        T(without_memfds_the_other_allocator_is_asked),
        T(kernels_that_do_not_know_the_newest_flag_are_asked_without),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

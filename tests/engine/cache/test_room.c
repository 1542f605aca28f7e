/* A folder of packed weights stays within its limit, with any number of writers. */
#include "engine/cache/cache.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PART_BYTES ((size_t)10000)
#define FILE_BYTES ((uint64_t)10240) /* about: with head, table and padding */

static const uint8_t content[PART_BYTES] = {1, 2, 3};

static const char *path_of(uint64_t name)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%016" PRIx64, name);
    return folder_at(text);
}

static struct ifd_cache *open_cache(uint64_t limit_bytes)
{
    struct ifd_err err = {0};
    struct ifd_cache *cache = NULL;
    REQUIRE_OK(ifd_cache_open(folder_path(), limit_bytes, ifd_alloc_system(), &cache, &err), &err);
    return cache;
}

static enum ifd_code put(const struct ifd_cache *cache, uint64_t name, struct ifd_err *err)
{
    const struct ifd_bytes part = {content, PART_BYTES};
    return ifd_cache_write(cache, name, &part, 1, err);
}

static bool is_there(uint64_t name)
{
    return access(path_of(name), F_OK) == 0;
}

/* Seconds before now. */
static void set_age(uint64_t name, time_t age)
{
    const struct timespec at = {.tv_sec = time(NULL) - age};
    REQUIRE(utimensat(AT_FDCWD, path_of(name), (const struct timespec[]){at, at}, 0) == 0);
}

/* Files 1 … count, the oldest first. */
static void put_all(uint64_t count)
{
    struct ifd_err err = {0};
    struct ifd_cache *cache = open_cache(UINT64_MAX);
    for (uint64_t name = 1; name <= count; name++) {
        REQUIRE_OK(put(cache, name, &err), &err);
        set_age(name, (time_t)(1000 - name));
    }
    ifd_cache_close(cache);
}

static uint64_t bytes_there(void)
{
    uint64_t bytes = 0;
    DIR *stream = opendir(folder_path());
    REQUIRE(stream != NULL);
    for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
        struct stat info;
        if (strlen(entry->d_name) >= 16 && stat(folder_at(entry->d_name), &info) == 0) {
            bytes += (uint64_t)info.st_size;
        }
    }
    (void)closedir(stream);
    return bytes;
}

static void clean_up(struct ifd_cache *cache)
{
    ifd_cache_close(cache);
    for (uint64_t name = 1; name <= 9; name++) {
        (void)unlink(path_of(name));
    }
    (void)unlink(folder_at("key"));
    folder_end();
}

static void files_not_used_for_longest_go_first(void)
{
    struct ifd_err err = {0};
    struct ifd_cache_entry entry = {0};
    folder_begin();
    put_all(3);
    struct ifd_cache *cache = open_cache(3 * FILE_BYTES + FILE_BYTES / 2);
    REQUIRE_OK(ifd_cache_find(cache, 1, &entry, &err), &err); /* the oldest is used again */
    ifd_cache_entry_finish(&entry);
    REQUIRE_OK(put(cache, 4, &err), &err);
    EXPECT(is_there(1) && !is_there(2) && is_there(3) && is_there(4));
    REQUIRE_OK(put(cache, 3, &err), &err); /* replaces itself */
    EXPECT(is_there(1) && is_there(3) && is_there(4));
    REQUIRE_OK(put(cache, 5, &err), &err);
    EXPECT(!is_there(1) && is_there(3) && is_there(4) && is_there(5));
    clean_up(cache);
}

static void a_smaller_limit_holds_from_the_next_start_on(void)
{
    folder_begin();
    put_all(4);
    struct ifd_cache *cache = open_cache(2 * FILE_BYTES + FILE_BYTES / 2);
    EXPECT(!is_there(1) && !is_there(2) && is_there(3) && is_there(4));
    clean_up(cache);
}

static void what_is_larger_alone_is_not_written(void)
{
    struct ifd_err err = {0};
    folder_begin();
    put_all(1);
    struct ifd_cache *cache = open_cache(PART_BYTES);
    EXPECT(!is_there(1)); /* too large, too */
    EXPECT_CODE(put(cache, 2, &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "the limit of all files is 10000");
    EXPECT(!is_there(2));
    EXPECT_INT(bytes_there(), 0);
    clean_up(cache);
}

static void what_this_process_has_mapped_stays(void)
{
    struct ifd_err err = {0};
    struct ifd_cache_entry entry = {0};
    folder_begin();
    put_all(1);
    struct ifd_cache *cache = open_cache(FILE_BYTES + FILE_BYTES / 2);
    REQUIRE_OK(ifd_cache_find(cache, 1, &entry, &err), &err);
    EXPECT_CODE(put(cache, 2, &err), IFD_TOO_LARGE, &err);
    EXPECT_HAS(err.text, "files in use");
    EXPECT(is_there(1) && !is_there(2));
    ifd_cache_entry_finish(&entry);
    REQUIRE_OK(put(cache, 2, &err), &err);
    EXPECT(!is_there(1) && is_there(2));
    clean_up(cache);
}

/* The other process reports that it has mapped the file and waits until it may end. */
static void what_another_process_has_mapped_stays(void)
{
    struct ifd_err err = {0};
    int mapped[2], may_go[2];
    char byte = 0;
    folder_begin();
    put_all(1);
    REQUIRE(pipe(mapped) == 0 && pipe(may_go) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        struct ifd_cache_entry entry = {0};
        struct ifd_cache *cache = open_cache(UINT64_MAX);
        bool ok = ifd_cache_find(cache, 1, &entry, NULL) == IFD_OK;
        (void)close(may_go[1]);
        ok = write(mapped[1], &byte, 1) == 1 && ok;
        ok = read(may_go[0], &byte, 1) == 0 && ok;
        ok = ok && memcmp(ifd_cache_part(&entry, 0).data, content, PART_BYTES) == 0;
        _exit(ok ? 0 : 1);
    }
    struct ifd_cache *cache = open_cache(FILE_BYTES + FILE_BYTES / 2);
    EXPECT_INT(read(mapped[0], &byte, 1), 1);
    EXPECT_CODE(put(cache, 2, &err), IFD_TOO_LARGE, &err);
    EXPECT(is_there(1));
    for (int i = 0; i < 2; i++) {
        (void)close(mapped[i]);
        (void)close(may_go[i]);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    EXPECT_INT(status, 0);
    REQUIRE_OK(put(cache, 2, &err), &err);
    EXPECT(!is_there(1) && is_there(2));
    clean_up(cache);
}

/* Broken files and those of dead writers count; files of other names do not and stay. */
static void broken_files_go_like_others(void)
{
    struct ifd_err err = {0};
    folder_begin();
    struct ifd_cache *cache = open_cache(FILE_BYTES + FILE_BYTES / 2);
    folder_put("0000000000000001", "nothing that could be used");
    folder_put("0000000000000002.new", "half a file");
    folder_put("notes.txt", "not ours");
    folder_put("0000000000000001.old", "not ours either");
    REQUIRE(truncate(path_of(1), (off_t)FILE_BYTES) == 0);
    REQUIRE(truncate(folder_at("0000000000000002.new"), (off_t)FILE_BYTES) == 0);
    EXPECT_CODE(put(cache, 3, &err), IFD_TOO_LARGE, &err); /* it may still be written */
    EXPECT(!is_there(1) && !is_there(3));
    const struct timespec old = {.tv_sec = 1000};
    REQUIRE(utimensat(AT_FDCWD, folder_at("0000000000000002.new"),
                      (const struct timespec[]){old, old}, 0) == 0);
    REQUIRE_OK(put(cache, 3, &err), &err);
    EXPECT(is_there(3));
    EXPECT(access(folder_at("0000000000000002.new"), F_OK) != 0);
    EXPECT_INT(unlink(folder_at("notes.txt")), 0);
    EXPECT_INT(unlink(folder_at("0000000000000001.old")), 0);
    clean_up(cache);
}

static void a_full_folder_that_cannot_be_written_is_read(void)
{
    struct ifd_err err = {0};
    struct ifd_cache_entry entry = {0};
    folder_begin();
    put_all(2);
    if (geteuid() == 0) { /* permissions do not stop root */
        REQUIRE(chown(folder_path(), 1, 1) == 0 && chown(folder_at("key"), 1, 1) == 0);
        REQUIRE(chown(path_of(1), 1, 1) == 0 && chown(path_of(2), 1, 1) == 0);
        REQUIRE(setegid(1) == 0 && seteuid(1) == 0);
    }
    REQUIRE(chmod(folder_path(), 0500) == 0);
    struct ifd_cache *cache = open_cache(FILE_BYTES + FILE_BYTES / 2);
    REQUIRE_OK(ifd_cache_find(cache, 1, &entry, &err), &err);
    ifd_cache_entry_finish(&entry);
    EXPECT_CODE(put(cache, 3, &err), IFD_UNAVAILABLE, &err);
    EXPECT(is_there(1) && is_there(2));
    EXPECT_INT(chmod(folder_path(), 0700), 0);
    (void)seteuid(0);
    (void)setegid(0);
    clean_up(cache);
}

/* Writers of more files than there is room for; each reads some. */
static void several_processes_together_keep_the_limit(void)
{
    enum { WRITERS = 4, ROUNDS = 100 };
    const uint64_t limit = 3 * FILE_BYTES + FILE_BYTES / 2;
    pid_t child[WRITERS];
    folder_begin();
    ifd_cache_close(open_cache(limit)); /* the key */
    for (unsigned c = 0; c < WRITERS; c++) {
        child[c] = fork();
        REQUIRE(child[c] >= 0);
        if (child[c] == 0) {
            bool ok = true;
            struct ifd_cache *cache = open_cache(limit);
            for (unsigned i = 0; i < ROUNDS; i++) {
                struct ifd_cache_entry entry = {0};
                const enum ifd_code code = put(cache, 1 + (c + i) % 9, NULL);
                ok = ok && (code == IFD_OK || code == IFD_TOO_LARGE || code == IFD_UNAVAILABLE);
                const enum ifd_code found = ifd_cache_find(cache, 1 + i % 9, &entry, NULL);
                ok = ok && (found == IFD_OK || found == IFD_NOT_FOUND);
                ifd_cache_entry_finish(&entry);
            }
            _exit(ok ? 0 : 1);
        }
    }
    for (unsigned c = 0; c < WRITERS; c++) {
        int status = -1;
        REQUIRE(waitpid(child[c], &status, 0) == child[c]);
        EXPECT_INT(status, 0);
    }
    EXPECT(bytes_there() > 0 && bytes_there() <= limit);
    clean_up(NULL);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(files_not_used_for_longest_go_first),
        T(a_smaller_limit_holds_from_the_next_start_on),
        T(what_is_larger_alone_is_not_written),
        T(what_this_process_has_mapped_stays),
        T(what_another_process_has_mapped_stays),
        T(broken_files_go_like_others),
        T(a_full_folder_that_cannot_be_written_is_read),
        T(several_processes_together_keep_the_limit),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

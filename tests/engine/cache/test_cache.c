#include "engine/base/file.h"
#include "engine/base/mac.h"
#include "engine/cache/cache.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME       ((uint64_t)0x1234)
#define PART_BYTES ((size_t)10000)
#define UNLIMITED  UINT64_MAX
/* Where things are in a file (cache.c). */
#define BUILD_AT 8
#define SIZE_AT  40
#define COUNT_AT 48
#define TABLE_AT 56

/* A temporary folder, with a cache in it that holds one file of three parts; the second is
 * empty. */
struct fixture {
    char folder[64];
    struct ifd_cache *cache;
    uint8_t content[PART_BYTES];
};

static const char *path_of(const struct fixture *f, const char *name)
{
    static char path[4][400];
    static unsigned next;
    char *text = path[next++ % 4];
    (void)snprintf(text, sizeof(path[0]), "%s/%s", f->folder, name);
    return text;
}

static const char *file_path(const struct fixture *f)
{
    return path_of(f, "0000000000001234");
}

static void reopen(struct fixture *f)
{
    struct ifd_err err = {0};
    ifd_cache_close(f->cache);
    f->cache = NULL;
    REQUIRE_OK(ifd_cache_open(f->folder, UNLIMITED, ifd_alloc_system(), &f->cache, &err), &err);
}

static enum ifd_code write_file(struct fixture *f, struct ifd_err *err)
{
    const struct ifd_bytes part[3] = {{f->content, PART_BYTES}, {NULL, 0}, {f->content, 77}};
    return ifd_cache_write(f->cache, NAME, part, 3, err);
}

static void set_up(struct fixture *f)
{
    struct ifd_err err = {0};
    *f = (struct fixture){.folder = "/tmp/ifd_cache_XXXXXX"};
    REQUIRE(mkdtemp(f->folder) != NULL);
    for (size_t i = 0; i < PART_BYTES; i++) {
        f->content[i] = (uint8_t)(i * 7 + i / 256);
    }
    reopen(f);
    REQUIRE_OK(write_file(f, &err), &err);
}

static void tear_down(struct fixture *f)
{
    ifd_cache_close(f->cache);
    (void)chmod(f->folder, 0700);
    DIR *folder = opendir(f->folder);
    REQUIRE(folder != NULL);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        (void)unlink(path_of(f, entry->d_name));
        (void)rmdir(path_of(f, entry->d_name));
    }
    (void)closedir(folder);
    EXPECT_INT(rmdir(f->folder), 0);
}

static void expect_whole(struct fixture *f)
{
    struct ifd_err err = {0};
    struct ifd_cache_entry entry = {0};
    REQUIRE_OK(ifd_cache_find(f->cache, NAME, &entry, &err), &err);
    REQUIRE(entry.part_count == 3);
    const struct ifd_bytes first = ifd_cache_part(&entry, 0), last = ifd_cache_part(&entry, 2);
    EXPECT_INT(first.size, PART_BYTES);
    EXPECT_BYTES(first.data, f->content, PART_BYTES);
    EXPECT_INT((uintptr_t)first.data % 64, 0);
    EXPECT_INT(ifd_cache_part(&entry, 1).size, 0);
    EXPECT_INT(last.size, 77);
    EXPECT_BYTES(last.data, f->content, 77);
    EXPECT_INT((uintptr_t)last.data % 64, 0);
    EXPECT_INT(last.data[77 + 63], 0); /* readable */
    ifd_cache_entry_finish(&entry);
}

static void expect_refused(struct fixture *f, enum ifd_code want, const char *reason)
{
    struct ifd_err err = {0};
    struct ifd_cache_entry entry = {0};
    EXPECT_CODE(ifd_cache_find(f->cache, NAME, &entry, &err), want, &err);
    EXPECT_HAS(err.text, reason);
    EXPECT(entry.map == NULL);
}

static size_t read_bytes(const struct fixture *f, uint8_t *data, size_t size)
{
    FILE *file = fopen(file_path(f), "rb");
    REQUIRE(file != NULL);
    const size_t got = fread(data, 1, size, file);
    (void)fclose(file);
    return got;
}

static void write_bytes(const struct fixture *f, const uint8_t *data, size_t size)
{
    FILE *file = fopen(file_path(f), "wb");
    REQUIRE(file != NULL);
    REQUIRE(fwrite(data, 1, size, file) == size);
    (void)fclose(file);
}

static void what_is_written_is_found_also_by_the_next_start(void)
{
    struct fixture f;
    set_up(&f);
    expect_whole(&f);
    reopen(&f);
    expect_whole(&f);
    struct ifd_cache_entry entry = {0};
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_cache_find(f.cache, NAME + 1, &entry, &err), IFD_NOT_FOUND, &err);
    tear_down(&f);
}

/* Resident memory of a mapping in KiB; -1: unknown. */
static long resident_kib(const void *map)
{
    char start[32], line[300];
    long kib = -1;
    bool is_it = false;
    (void)snprintf(start, sizeof(start), "%" PRIxPTR "-", (uintptr_t)map);
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof(line), file)) {
        is_it = is_it || strncmp(line, start, strlen(start)) == 0;
        if (is_it && strncmp(line, "Rss:", 4) == 0) {
            kib = strtol(line + 4, NULL, 10);
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return kib;
}

/* The check reads all of it, but it takes memory only when it is used. */
static void a_large_file_takes_no_memory_until_it_is_used(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    struct ifd_cache_entry entry = {0};
    const size_t size = (size_t)40 << 20;
    set_up(&f);
    uint8_t *content = malloc(size);
    REQUIRE(content != NULL);
    for (size_t i = 0; i < size; i++) {
        content[i] = (uint8_t)(i * 7 + i / 4096);
    }
    REQUIRE_OK(ifd_cache_write(f.cache, NAME, &(struct ifd_bytes){content, size}, 1, &err), &err);
    REQUIRE_OK(ifd_cache_find(f.cache, NAME, &entry, &err), &err);
    EXPECT(resident_kib(entry.map) < 1024);
    EXPECT_BYTES(ifd_cache_part(&entry, 0).data, content, size);
    const long used = resident_kib(entry.map);
    EXPECT(used == -1 || used > 39 * 1024);
    ifd_cache_entry_finish(&entry);
    /* behind the first chunk */
    const int fd = open(file_path(&f), O_WRONLY);
    REQUIRE(fd >= 0);
    EXPECT_INT(pwrite(fd, "spoilt", 6, 30000000), 6);
    (void)close(fd);
    expect_refused(&f, IFD_CORRUPT, "wrong checksum");
    free(content);
    tear_down(&f);
}

static void names_depend_on_model_setup_and_key(void)
{
    struct fixture f, other;
    set_up(&f);
    set_up(&other);
    const struct ifd_bytes setup = {(const uint8_t *)"avx2", 4}, model = {f.content, 100},
                           longer = {f.content, 101};
    const struct ifd_bytes usual[] = {setup, model}, other_model[] = {setup, longer},
                           other_setup[] = {model, model}, more[] = {setup, model, longer};
    const uint64_t name = ifd_cache_name(f.cache, usual, 2);
    EXPECT(name == ifd_cache_name(f.cache, usual, 2));
    EXPECT(name != ifd_cache_name(f.cache, other_model, 2));
    EXPECT(name != ifd_cache_name(f.cache, other_setup, 2));
    EXPECT(name != ifd_cache_name(f.cache, more, 3));
    EXPECT(name != ifd_cache_name(other.cache, usual, 2));
    tear_down(&f);
    tear_down(&other);
}

static void a_file_of_every_shorter_or_longer_length_is_refused(void)
{
    struct fixture f;
    static uint8_t whole[3 * PART_BYTES];
    set_up(&f);
    const size_t size = read_bytes(&f, whole, sizeof(whole));
    REQUIRE(size > PART_BYTES && size < sizeof(whole));
    for (size_t cut = 0; cut < size; cut += cut < 200 || cut + 300 > size ? 1 : 97) {
        struct ifd_cache_entry entry = {0};
        write_bytes(&f, whole, cut);
        EXPECT_CODE(ifd_cache_find(f.cache, NAME, &entry, NULL), IFD_CORRUPT, NULL);
    }
    write_bytes(&f, whole, size + 1);
    expect_refused(&f, IFD_CORRUPT, "bytes, expected");
    write_bytes(&f, whole, size);
    expect_whole(&f);
    tear_down(&f);
}

/* But for padding, which nobody reads. */
static void every_flipped_bit_is_found(void)
{
    struct fixture f;
    static uint8_t whole[3 * PART_BYTES];
    set_up(&f);
    const size_t size = read_bytes(&f, whole, sizeof(whole));
    size_t accepted = 0;
    for (size_t at = 0; at < size; at += at < 256 || at + 300 > size ? 1 : 131) {
        struct ifd_cache_entry entry = {0};
        whole[at] ^= (uint8_t)(1u << at % 8);
        write_bytes(&f, whole, size);
        if (ifd_cache_find(f.cache, NAME, &entry, NULL) == IFD_OK) {
            accepted++;
            EXPECT_INT(whole[at], 1u << at % 8); /* a zero of the padding */
            EXPECT_BYTES(ifd_cache_part(&entry, 0).data, f.content, PART_BYTES);
            EXPECT_BYTES(ifd_cache_part(&entry, 2).data, f.content, 77);
            ifd_cache_entry_finish(&entry);
        }
        whole[at] ^= (uint8_t)(1u << at % 8);
    }
    EXPECT(accepted < 400);
    tear_down(&f);
}

/* Changes a number and writes a right sum, as an attacker with the key could. */
static void forge(struct fixture *f, size_t at, uint64_t value)
{
    static uint8_t whole[3 * PART_BYTES];
    struct ifd_mac mac;
    uint8_t key[IFD_MAC_KEY_BYTES];
    uint64_t sum = 0;
    struct ifd_err err = {0};
    REQUIRE_OK(write_file(f, &err), &err);
    const size_t size = read_bytes(f, whole, sizeof(whole));
    FILE *file = fopen(path_of(f, "key"), "rb");
    REQUIRE(file != NULL && fread(key, 1, sizeof(key), file) == sizeof(key));
    (void)fclose(file);
    memcpy(whole + at, &value, sizeof(value));
    ifd_mac_start(&mac, key);
    ifd_mac_add(&mac, whole, TABLE_AT + 3 * 16);
    ifd_mac_add(&mac, f->content, PART_BYTES);
    ifd_mac_add(&mac, f->content, 0);
    ifd_mac_add(&mac, f->content, 77);
    sum = ifd_mac_sum(&mac);
    memcpy(whole + size - sizeof(sum), &sum, sizeof(sum));
    write_bytes(f, whole, size);
}

static void tables_that_lie_are_refused_even_with_a_right_sum(void)
{
    struct fixture f;
    set_up(&f);
    forge(&f, TABLE_AT, 192); /* as it was */
    expect_whole(&f);
    const uint64_t lies[] = {
        0, 1, 64, 191, 193, 256, 1u << 20, UINT64_MAX / 2, UINT64_MAX - 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        for (size_t field = 0; field < 6; field++) {
            struct ifd_cache_entry entry = {0};
            if (field == 3 && lies[i] == 0) {
                continue; /* the empty part is empty */
            }
            forge(&f, TABLE_AT + 8 * field, lies[i]);
            EXPECT_CODE(ifd_cache_find(f.cache, NAME, &entry, NULL), IFD_CORRUPT, NULL);
        }
        forge(&f, COUNT_AT, lies[i]);
        expect_refused(&f, IFD_CORRUPT, "");
        forge(&f, SIZE_AT, lies[i]);
        expect_refused(&f, IFD_CORRUPT, "bytes, expected");
    }
    forge(&f, SIZE_AT - 8, NAME + 1);
    expect_refused(&f, IFD_CORRUPT, "written for another model");
    forge(&f, BUILD_AT, 17);
    expect_refused(&f, IFD_UNAVAILABLE, "written by another build");
    tear_down(&f);
}

static void files_that_others_may_change_are_refused(void)
{
    struct fixture f;
    set_up(&f);
    EXPECT_INT(chmod(file_path(&f), 0666), 0);
    expect_refused(&f, IFD_UNAVAILABLE, "others may write it");
    EXPECT_INT(chmod(file_path(&f), 0600), 0);
    EXPECT_INT(rename(file_path(&f), path_of(&f, "elsewhere")), 0);
    EXPECT_INT(symlink("elsewhere", file_path(&f)), 0);
    expect_refused(&f, IFD_UNAVAILABLE, "cannot open");
    EXPECT_INT(unlink(file_path(&f)), 0);
    EXPECT_INT(mkfifo(file_path(&f), 0600), 0);
    expect_refused(&f, IFD_UNAVAILABLE, "is not a regular file");
    EXPECT_INT(unlink(file_path(&f)), 0);
    EXPECT_INT(mkdir(file_path(&f), 0700), 0);
    expect_refused(&f, IFD_UNAVAILABLE, "is not a regular file");
    if (geteuid() == 0) {
        EXPECT_INT(rename(path_of(&f, "elsewhere"), path_of(&f, "0000000000001235")), 0);
        EXPECT_INT(chown(path_of(&f, "0000000000001235"), 4321, 4321), 0);
        struct ifd_cache_entry entry = {0};
        struct ifd_err err = {0};
        EXPECT_CODE(ifd_cache_find(f.cache, NAME + 1, &entry, &err), IFD_UNAVAILABLE, &err);
        EXPECT_HAS(err.text, "belongs to user 4321");
    }
    tear_down(&f);
}

static void expect_closed(const char *folder, const char *reason)
{
    struct ifd_cache *cache = NULL;
    struct ifd_err err = {0};
    EXPECT_CODE(ifd_cache_open(folder, UNLIMITED, ifd_alloc_system(), &cache, &err),
                IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, reason);
    EXPECT(cache == NULL);
}

static void folders_and_keys_that_others_may_change_are_refused(void)
{
    struct fixture f;
    set_up(&f);
    EXPECT_INT(chmod(f.folder, 0777), 0);
    expect_closed(f.folder, "permissions 777: others may write it");
    EXPECT_INT(chmod(f.folder, 0700), 0);
    EXPECT_INT(chmod(path_of(&f, "key"), 0644), 0);
    expect_closed(f.folder, "key has permissions 644: others may read it");
    EXPECT_INT(chmod(path_of(&f, "key"), 0600), 0);
    expect_closed(file_path(&f), "cannot open");
    expect_closed("/tmp/ifd_no_such_folder/below", "cannot create");
    tear_down(&f);
}

/* A power failure may leave one. Nobody would notice: models load without the cache. */
static void a_key_that_was_cut_off_is_made_anew(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    set_up(&f);
    for (off_t bytes = 0; bytes < IFD_MAC_KEY_BYTES; bytes += IFD_MAC_KEY_BYTES - 1) {
        struct ifd_cache_entry entry = {0};
        struct stat info;
        EXPECT_INT(truncate(path_of(&f, "key"), bytes), 0);
        reopen(&f);
        EXPECT(stat(path_of(&f, "key"), &info) == 0 && info.st_size == IFD_MAC_KEY_BYTES);
        EXPECT_CODE(ifd_cache_find(f.cache, NAME, &entry, &err), IFD_CORRUPT,
                    &err); /* of the old key */
        EXPECT_CODE(write_file(&f, &err), IFD_OK, &err);
        expect_whole(&f);
    }
    tear_down(&f);
}

/* Files in a folder that cannot be written are used; without a key there is no cache. */
static void a_folder_that_cannot_be_written_is_read(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    const bool is_root = geteuid() == 0;
    if (is_root && (setegid(4321) != 0 || seteuid(4321) != 0)) {
        test_does_not_apply("root may write everywhere");
    }
    set_up(&f);
    EXPECT_INT(chmod(f.folder, 0500), 0);
    reopen(&f);
    expect_whole(&f);
    EXPECT_CODE(write_file(&f, &err), IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, "Permission denied");
    expect_whole(&f);
    EXPECT_INT(chmod(f.folder, 0700), 0);
    EXPECT_INT(unlink(path_of(&f, "key")), 0);
    EXPECT_INT(chmod(f.folder, 0500), 0);
    expect_closed(f.folder, "cannot create a key");
    tear_down(&f);
    EXPECT(!is_root || (seteuid(0) == 0 && setegid(0) == 0));
}

/* A writer that died leaves a temporary file; for a while it counts as being written. */
static void a_file_that_another_process_writes_is_left_to_it(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    set_up(&f);
    const int fd = open(path_of(&f, "0000000000001234.new"), O_CREAT | O_WRONLY, 0600);
    REQUIRE(fd >= 0);
    EXPECT_CODE(write_file(&f, &err), IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, "another process is writing it");
    EXPECT_INT(futimens(fd, old), 0);
    (void)close(fd);
    EXPECT_CODE(write_file(&f, &err), IFD_OK, &err);
    expect_whole(&f);
    tear_down(&f);
}

/* Whatever has the name of a file is replaced, unless it is a folder; links are not followed. */
static void what_stands_in_the_way_is_replaced_or_named(void)
{
    struct fixture f;
    struct ifd_err err = {0};
    const char *const writing = "0000000000001234.new";
    set_up(&f);
    EXPECT_INT(rename(file_path(&f), path_of(&f, "elsewhere")), 0);
    EXPECT_INT(symlink("elsewhere", file_path(&f)), 0);
    EXPECT_INT(truncate(path_of(&f, "elsewhere"), 5), 0);
    EXPECT_CODE(write_file(&f, &err), IFD_OK, &err);
    expect_whole(&f);
    struct stat info;
    EXPECT(stat(path_of(&f, "elsewhere"), &info) == 0 && info.st_size == 5);
    EXPECT_INT(symlink("elsewhere", path_of(&f, writing)), 0);
    EXPECT_CODE(write_file(&f, &err), IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, "cannot create");
    EXPECT(stat(path_of(&f, "elsewhere"), &info) == 0 && info.st_size == 5);
    EXPECT_INT(unlink(path_of(&f, writing)), 0);
    EXPECT_INT(mkdir(path_of(&f, writing), 0700), 0);
    EXPECT_CODE(write_file(&f, &err), IFD_UNAVAILABLE, &err);
    EXPECT_HAS(err.text, "cannot create");
    EXPECT_INT(rmdir(path_of(&f, writing)), 0);
    expect_whole(&f);
    EXPECT_INT(unlink(file_path(&f)), 0);
    EXPECT_INT(mkdir(file_path(&f), 0700), 0);
    EXPECT_CODE(write_file(&f, &err), IFD_IO, &err);
    EXPECT_HAS(err.text, "Is a directory");
    EXPECT(access(path_of(&f, writing), F_OK) != 0);
    tear_down(&f);
}

/* Runs body in another process, whose limits and mounts it may change. 0: passed, SKIPPED: not
 * possible here. */
#define SKIPPED 77

static int run_apart(int (*body)(struct fixture *f), struct fixture *f)
{
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        _exit(body(f));
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Writing fails with this reason and leaves no file, complete or not. */
static int expect_nothing_kept(struct fixture *f, const char *reason)
{
    struct ifd_err err = {0};
    struct ifd_cache_entry entry = {0};
    const bool is_refused = write_file(f, &err) == IFD_IO && strstr(err.text, reason) != NULL &&
                            access(path_of(f, "0000000000001234.new"), F_OK) != 0 &&
                            ifd_cache_find(f->cache, NAME, &entry, NULL) == IFD_NOT_FOUND;
    return is_refused ? 0 : 1;
}

/* Mounts a file system on the folder, with less room than a file takes. */
static int fill_disk(struct fixture *f)
{
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", f->folder, "tmpfs", 0, "size=8k,mode=700") != 0) {
        return SKIPPED;
    }
    reopen(f);
    return expect_nothing_kept(f, "No space left on device");
}

static void a_full_disk_keeps_no_part_of_a_file(void)
{
    struct fixture f;
    set_up(&f);
    const int result = run_apart(fill_disk, &f);
    tear_down(&f);
    if (result == SKIPPED) {
        test_does_not_apply("file systems cannot be mounted here");
    }
    EXPECT_INT(result, 0);
}

static int limit_files(struct fixture *f)
{
    const struct rlimit limit = {.rlim_cur = PART_BYTES, .rlim_max = PART_BYTES};
    if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &limit) != 0) {
        return SKIPPED;
    }
    return expect_nothing_kept(f, "File too large");
}

static void a_file_that_may_not_grow_is_not_kept(void)
{
    struct fixture f;
    set_up(&f);
    EXPECT_INT(unlink(file_path(&f)), 0);
    EXPECT_INT(run_apart(limit_files, &f), 0);
    tear_down(&f);
}

/* Many, so that writing takes a while. */
#define KILLED_PARTS 400

static enum ifd_code write_long_file(struct fixture *f)
{
    struct ifd_bytes part[KILLED_PARTS];
    for (size_t i = 0; i < KILLED_PARTS; i++) {
        part[i] = (struct ifd_bytes){f->content, PART_BYTES};
    }
    return ifd_cache_write(f->cache, NAME, part, KILLED_PARTS, NULL);
}

/* At any moment, and while it writes at least twenty times. It leaves a whole file, or one that the
 * next writer removes when it is old. */
static void a_writer_that_is_killed_leaves_nothing_that_is_used(void)
{
    struct fixture f;
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    const char *writing = "0000000000001234.new";
    size_t cut = 0;
    set_up(&f);
    for (long round = 0; cut < 20; round++) {
        const pid_t child = fork();
        REQUIRE(child >= 0);
        while (child == 0) {
            (void)write_long_file(&f);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000 + round * 100000}, NULL);
        EXPECT_INT(kill(child, SIGKILL), 0);
        REQUIRE(waitpid(child, NULL, 0) == child);
        struct ifd_cache_entry entry = {0};
        struct ifd_err err = {0};
        REQUIRE_OK(ifd_cache_find(f.cache, NAME, &entry, &err), &err);
        const struct ifd_bytes last = ifd_cache_part(&entry, entry.part_count - 1);
        EXPECT_BYTES(last.data, f.content, last.size);
        ifd_cache_entry_finish(&entry);
        if (utimensat(AT_FDCWD, path_of(&f, writing), old, 0) == 0) {
            cut++;
            EXPECT_CODE(write_long_file(&f), IFD_OK, NULL);
            EXPECT(access(path_of(&f, writing), F_OK) != 0);
        }
    }
    tear_down(&f);
}

/* Processes open, find, map and replace at the same time: each finds a whole file or none. */
static void concurrent_processes_find_whole_files_only(void)
{
    struct fixture f;
    pid_t child[4];
    set_up(&f);
    EXPECT_INT(unlink(file_path(&f)), 0);
    EXPECT_INT(unlink(path_of(&f, "key")), 0);
    for (size_t c = 0; c < 4; c++) {
        child[c] = fork();
        REQUIRE(child[c] >= 0);
        if (child[c] == 0) {
            int status = 0;
            reopen(&f);
            for (int i = 0; i < 300; i++) {
                struct ifd_cache_entry entry = {0};
                const enum ifd_code code = ifd_cache_find(f.cache, NAME, &entry, NULL);
                if (code == IFD_OK) {
                    const struct ifd_bytes part = ifd_cache_part(&entry, 0);
                    status |= memcmp(part.data, f.content, PART_BYTES) != 0;
                } else {
                    status |= code != IFD_NOT_FOUND;
                }
                const enum ifd_code put = write_file(&f, NULL);
                status |= put != IFD_OK && put != IFD_UNAVAILABLE;
                ifd_cache_entry_finish(&entry);
            }
            _exit(status);
        }
    }
    for (size_t c = 0; c < 4; c++) {
        int status = -1;
        REQUIRE(waitpid(child[c], &status, 0) == child[c]);
        EXPECT_INT(status, 0);
    }
    reopen(&f);
    expect_whole(&f);
    tear_down(&f);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_is_written_is_found_also_by_the_next_start),
        T(a_large_file_takes_no_memory_until_it_is_used),
        T(names_depend_on_model_setup_and_key),
        T(a_file_of_every_shorter_or_longer_length_is_refused),
        T(every_flipped_bit_is_found),
        T(tables_that_lie_are_refused_even_with_a_right_sum),
        T(files_that_others_may_change_are_refused),
        T(folders_and_keys_that_others_may_change_are_refused),
        T(a_key_that_was_cut_off_is_made_anew),
        T(a_file_that_another_process_writes_is_left_to_it),
        T(what_stands_in_the_way_is_replaced_or_named),
        T(a_full_disk_keeps_no_part_of_a_file),
        T(a_file_that_may_not_grow_is_not_kept),
        T(a_writer_that_is_killed_leaves_nothing_that_is_used),
        T(concurrent_processes_find_whole_files_only),
        T(a_folder_that_cannot_be_written_is_read),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

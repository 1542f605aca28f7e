/* Changes of a folder that a fingerprint shows. */
#include "server/repo/scan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/folder.h"
#include "tests/support/test.h"

static void begin(void)
{
    folder_begin();
    REQUIRE(mkdir(folder_at("m"), 0700) == 0);
    REQUIRE(mkdir(folder_at("m/1"), 0700) == 0);
    folder_put("m/1/model.tflite", "old");
}

static void end(void)
{
    EXPECT(unlink(folder_at("m/1/model.tflite")) == 0);
    EXPECT(rmdir(folder_at("m/1")) == 0);
    EXPECT(rmdir(folder_at("m")) == 0);
    folder_end();
}

static struct ifd_scan_model look(void)
{
    struct ifd_arena arena;
    struct ifd_scan scan;
    const char *const dirs[] = {folder_path()};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_scan_all(&(struct ifd_scan_where){.dir = dirs, .dir_count = 1}, &arena, &scan);
    REQUIRE(scan.is_complete && scan.count == 1);
    struct ifd_scan_model model = scan.model[0];
    EXPECT_TEXT(model.name, "m");
    model.name = NULL;
    static char unfinished[100];
    if (model.unfinished) {
        (void)snprintf(unfinished, sizeof(unfinished), "%s", model.unfinished);
        model.unfinished = unfinished;
    }
    ifd_arena_finish(&arena);
    return model;
}

/* Later than a tick of the clock that stamps files. */
static void tick(void)
{
    (void)usleep(20000);
}

static void untouched_folder_keeps_its_fingerprint(void)
{
    begin();
    uint64_t first = look().fingerprint;
    char byte = 0;
    int fd = open(folder_at("m/1/model.tflite"), O_RDONLY);
    REQUIRE(fd >= 0);
    EXPECT(read(fd, &byte, 1) == 1);
    (void)close(fd);
    EXPECT(look().fingerprint == first);
    end();
}

static void every_way_to_replace_a_file_is_seen(void)
{
    begin();
    uint64_t last = look().fingerprint, now = 0;
    tick();
    folder_put("m/1/model.tflite", "new"); /* in place, of the same size */
    now = look().fingerprint;
    EXPECT(now != last);
    last = now;
    folder_put("m/1/.new", "new"); /* by renaming */
    EXPECT(look().fingerprint == last);
    REQUIRE(rename(folder_at("m/1/.new"), folder_at("m/1/model.tflite")) == 0);
    now = look().fingerprint;
    EXPECT(now != last);
    last = now;
    tick();
    REQUIRE(truncate(folder_at("m/1/model.tflite"), 1) == 0);
    now = look().fingerprint;
    EXPECT(now != last);
    last = now;
    tick(); /* with its old times put back */
    struct timespec times[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    REQUIRE(utimensat(AT_FDCWD, folder_at("m/1/model.tflite"), times, 0) == 0);
    EXPECT(look().fingerprint != last);
    end();
}

static void new_and_missing_names_are_seen(void)
{
    begin();
    uint64_t first = look().fingerprint;
    folder_put("m/config.pbtxt", "");
    uint64_t second = look().fingerprint;
    EXPECT(second != first);
    REQUIRE(mkdir(folder_at("m/2"), 0700) == 0);
    EXPECT(look().fingerprint != second);
    REQUIRE(rmdir(folder_at("m/2")) == 0);
    EXPECT(look().fingerprint == second);
    REQUIRE(unlink(folder_at("m/config.pbtxt")) == 0);
    EXPECT(look().fingerprint == first);
    end();
}

static void editors_and_uploads_are_no_change(void)
{
    static const char *const names[] = {"m/config.pbtxt~", "m/.config.pbtxt.swp", "m/x.tmp"};
    begin();
    uint64_t first = look().fingerprint;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        folder_put(names[i], "x");
        EXPECT(look().fingerprint == first);
        EXPECT(!look().unfinished);
        REQUIRE(unlink(folder_at(names[i])) == 0);
    }
    folder_put("m/1/model.tflite.part", "x");
    EXPECT(look().fingerprint == first);
    folder_put("m/1/weights.tmp", "x");
    EXPECT_TEXT(look().unfinished, "m/1/model.tflite.part");
    REQUIRE(unlink(folder_at("m/1/model.tflite.part")) == 0);
    EXPECT_TEXT(look().unfinished, "m/1/weights.tmp");
    REQUIRE(unlink(folder_at("m/1/weights.tmp")) == 0);
    EXPECT(!look().unfinished);
    end();
}

static void files_of_a_version_with_sums_need_not_settle(void)
{
    begin();
    folder_put("m/config.pbtxt", "");
    REQUIRE(mkdir(folder_at("m/2"), 0700) == 0);
    folder_put("m/2/model.tflite", "old");
    struct ifd_scan_model bare = look();
    EXPECT(bare.unsummed != 0);
    folder_put("m/2/SHA256SUMS", "");
    struct ifd_scan_model summed = look();
    EXPECT(summed.unsummed != bare.unsummed && summed.fingerprint != bare.fingerprint);
    tick();
    folder_put("m/2/model.tflite", "newer");
    folder_put("m/2/x.part", "x");
    struct ifd_scan_model next = look();
    EXPECT(next.fingerprint != summed.fingerprint);
    EXPECT(next.unsummed == summed.unsummed);
    EXPECT(!next.unfinished);
    folder_put("m/1/model.tflite", "newer");
    EXPECT(look().unsummed != next.unsummed);
    folder_put("m/1/SHA256SUMS", "");
    next = look();
    folder_put("m/config.pbtxt", "#");
    EXPECT(look().unsummed != next.unsummed); /* a config has no sum */
    REQUIRE(unlink(folder_at("m/config.pbtxt")) == 0);
    EXPECT_INT(look().unsummed, 0);
    static const char *const names[] = {"m/2/x.part", "m/2/SHA256SUMS", "m/2/model.tflite", "m/2",
                                        "m/1/SHA256SUMS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        REQUIRE(remove(folder_at(names[i])) == 0);
    }
    end();
}

static void missing_repository_is_told_from_an_empty_one(void)
{
    struct ifd_arena arena;
    struct ifd_scan scan;
    begin();
    const char *const dirs[] = {folder_path(), "/nonexistent"};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    ifd_scan_all(&(struct ifd_scan_where){.dir = dirs, .dir_count = 2}, &arena, &scan);
    EXPECT(!scan.is_complete);
    EXPECT_INT(scan.unlisted, 2);
    EXPECT_INT(scan.count, 1);
    EXPECT_INT(scan.model[0].roots, 1);
    EXPECT_HAS(scan.err.text, "/nonexistent");
    ifd_arena_finish(&arena);
    end();
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(untouched_folder_keeps_its_fingerprint),
        T(every_way_to_replace_a_file_is_seen),
        T(new_and_missing_names_are_seen),
        T(editors_and_uploads_are_no_change),
        T(files_of_a_version_with_sums_need_not_settle),
        T(missing_repository_is_told_from_an_empty_one),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

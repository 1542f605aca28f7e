/* Programs that an earlier start built. */
#include "backends/gpuacc/cache.h"
#include "backends/gpuacc/program.h"
#include "engine/base/file.h"
#include "tests/backends/gpuacc/run_f.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 512

static const struct ifd_gpu_file file = {"small.cl",
                                         "kernel void f(global int *x) { *x = NUMBER; }"};

static const struct ifd_host *host(void)
{
    static struct ifd_host host = {.bytes = sizeof(host)};
    host.alloc = ifd_alloc_system();
    return &host;
}

/* What a start with this cache and these definitions does. */
struct start {
    bool is_cached;
    int32_t number; /* that the kernel writes */
};

static struct start start(const char *folder, const char *defines)
{
    const struct ifd_gpu_options options = {.cache = folder};
    struct ifd_device *device = NULL;
    struct ifd_err err = {0};
    const enum ifd_code code = ifd_gpu_open(host(), &options, &device, &err);
    if (code == IFD_UNAVAILABLE) {
        test_skip(err.text);
    }
    REQUIRE_OK(code, &err);
    struct ifd_gpu_program *program = NULL;
    REQUIRE_OK(ifd_gpu_program(device, &file, defines, &program, &err), &err);
    REQUIRE_OK(ifd_gpu_build_programs(device, &program, 1, false, &err), &err);
    const struct start start = {program->is_cached, run_f(device, program)};
    ifd_gpu_close(device);
    return start;
}

static void expect_start(const char *folder, const char *defines, bool is_cached, int32_t number)
{
    const struct start got = start(folder, defines);
    EXPECT_INT(got.is_cached, is_cached);
    EXPECT_INT(got.number, number);
}

/* Calls fn with the path of each file in the folder. */
static void for_each_file(void (*fn)(const char *path, void *context), void *context)
{
    DIR *folder = opendir(folder_path());
    REQUIRE(folder);
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (entry->d_name[0] != '.') {
            fn(folder_at(entry->d_name), context);
        }
    }
    closedir(folder);
}

static void remove_file(const char *path, void *context)
{
    (void)context;
    REQUIRE(unlink(path) == 0);
}

static void copy_path(const char *path, void *context)
{
    (void)snprintf(context, PATH_BYTES, "%s", path);
}

static void a_second_start_builds_nothing(void)
{
    folder_begin();
    const char *folder = folder_path();
    expect_start(folder, "#define NUMBER 7\n", false, 7);
    expect_start(folder, "#define NUMBER 7\n", true, 7);
    expect_start(folder, "#define NUMBER 8\n", false, 8);
    expect_start(folder, "#define NUMBER 7\n", true, 7);
    for_each_file(remove_file, NULL);
    folder_end();
}

/* Both programs of a start, one of which another partition has built before. */
static struct start start_with_two(const char *folder, bool is_first_there)
{
    const struct ifd_gpu_options options = {.cache = folder};
    struct ifd_device *device = NULL;
    struct ifd_gpu_program *set[2] = {NULL, NULL};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_gpu_open(host(), &options, &device, &err), &err);
    REQUIRE_OK(ifd_gpu_program(device, &file, "#define NUMBER 3\n", &set[0], &err), &err);
    REQUIRE_OK(ifd_gpu_program(device, &file, "#define NUMBER 4\n", &set[1], &err), &err);
    if (is_first_there) {
        REQUIRE_OK(ifd_gpu_build_programs(device, set, 1, false, &err), &err);
    }
    REQUIRE_OK(ifd_gpu_build_programs(device, set, 2, false, &err), &err);
    EXPECT_INT(run_f(device, set[0]), 3);
    const struct start start = {set[1]->is_cached, run_f(device, set[1])};
    ifd_gpu_close(device);
    return start;
}

static void programs_that_were_built_together_are_found_together(void)
{
    folder_begin();
    expect_start(folder_path(), "#define NUMBER 3\n", false, 3);
    EXPECT(!start_with_two(folder_path(), false).is_cached);
    for (int i = 0; i < 2; i++) {
        const struct start again = start_with_two(folder_path(), i == 1);
        EXPECT(again.is_cached);
        EXPECT_INT(again.number, 4);
    }
    for_each_file(remove_file, NULL);
    folder_end();
}

/* Programs 1 and 2 of a partition, 2, 3 and 4 of a part that shares with it. A start that tunes has
 * measured each before it builds them. Returns how many were built from their text. */
static int start_with_parts(bool tunes)
{
    const struct ifd_gpu_options options = {.cache = folder_path(), .tuning_file = "file"};
    struct ifd_device *device = NULL;
    struct ifd_gpu_program *set[4];
    struct ifd_err err = {0};
    int built = 0;
    REQUIRE_OK(ifd_gpu_open(host(), &options, &device, &err), &err);
    for (int i = 0; i < 4; i++) {
        char defines[32];
        (void)snprintf(defines, sizeof(defines), "#define NUMBER %d\n", i + 1);
        REQUIRE_OK(ifd_gpu_program(device, &file, defines, &set[i], &err), &err);
        if (tunes) {
            REQUIRE_OK(ifd_gpu_build_program(device, set[i], &err), &err);
        }
    }
    device->tuner.has_news = tunes;
    REQUIRE_OK(ifd_gpu_build_programs(device, set, 2, false, &err), &err);
    REQUIRE_OK(ifd_gpu_build_programs(device, set + 1, 3, true, &err), &err);
    device->tuner.has_news = false;
    /* partitions have the kernels that the next start has; the first kept those it is bound to */
    EXPECT(set[0]->unit == set[1]->unit && set[2]->unit == set[3]->unit);
    EXPECT(set[1]->unit != set[2]->unit);
    for (int i = 0; i < 4; i++) {
        EXPECT_INT(run_f(device, set[i]), i + 1);
        built += !set[i]->is_cached;
    }
    ifd_gpu_close(device);
    return built;
}

static void what_the_tuner_built_piece_by_piece_is_found_together(void)
{
    folder_begin();
    expect_start(folder_path(), "#define NUMBER 3\n", false, 3); /* or there is no device */
    EXPECT_INT(start_with_parts(true), 4); /* no kernel is that which was measured */
    EXPECT_INT(start_with_parts(false), 0);
    EXPECT_INT(start_with_parts(false), 0);
    for_each_file(remove_file, NULL);
    folder_end();
}

static void without_a_folder_or_with_one_that_is_missing_programs_are_built(void)
{
    expect_start(NULL, "#define NUMBER 7\n", false, 7);
    expect_start("/there/is/none", "#define NUMBER 7\n", false, 7);
}

/* Damages the file at a place; size: of what is left of it. */
static void damage(const char *path, size_t place, size_t cut)
{
    struct ifd_bytes content = {NULL, 0};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_file_read(path, INT32_MAX, ifd_alloc_system(), &content, &err), &err);
    uint8_t *data = (uint8_t *)(uintptr_t)content.data;
    REQUIRE(place < content.size && cut <= content.size);
    data[place] ^= 0x5a;
    REQUIRE_OK(ifd_file_write(path, (struct ifd_bytes){data, content.size - cut}, &err), &err);
    ifd_release_tensor(ifd_alloc_system(), data, content.size);
}

static void a_damaged_file_is_built_again_and_replaced(void)
{
    static const struct {
        size_t place, cut;
    } rows[] = {{0, 0}, {16, 0}, {32, 0}, {40, 0}, {48, 0}, {100, 0}, {100, 1}, {8, 60}};
    folder_begin();
    const char *folder = folder_path();
    char path[PATH_BYTES] = "";
    expect_start(folder, "#define NUMBER 7\n", false, 7);
    for_each_file(copy_path, path);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        damage(path, rows[i].place, rows[i].cut);
        expect_start(folder, "#define NUMBER 7\n", false, 7);
        expect_start(folder, "#define NUMBER 7\n", true, 7);
    }
    for_each_file(remove_file, NULL);
    folder_end();
}

static void another_driver_has_other_programs(void)
{
    const char *const text[] = {"a", "b"}, *const other[] = {"ab", ""};
    struct ifd_device device = {.info = {.name = "x", .driver = "1"}};
    const struct ifd_gpu_key first = ifd_gpu_cache_key(&device, text, 2);
    const struct ifd_gpu_key moved = ifd_gpu_cache_key(&device, other, 2);
    device.info.driver[0] = '2';
    const struct ifd_gpu_key newer = ifd_gpu_cache_key(&device, text, 2);
    EXPECT(memcmp(&first, &moved, sizeof(first)) != 0);
    EXPECT(memcmp(&first, &newer, sizeof(first)) != 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_second_start_builds_nothing),
        T(programs_that_were_built_together_are_found_together),
        T(what_the_tuner_built_piece_by_piece_is_found_together),
        T(without_a_folder_or_with_one_that_is_missing_programs_are_built),
        T(a_damaged_file_is_built_again_and_replaced),
        T(another_driver_has_other_programs),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Files of a load, in a folder and in memory: both ways are asked the same. */
#include "server/repo/source.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/str.h"
#include "tests/support/folder.h"
#include "tests/support/test.h"

static const struct {
    const char *path, *content;
} files[] = {{"config.pbtxt", ""}, {"1/model.tflite", "abc"}, {"1/labels.txt", "x"}, {"2/a", "y"}};

enum { FILES = sizeof(files) / sizeof(files[0]) };

static struct ifd_source_file given[FILES];
static struct ifd_arena arena;

static struct ifd_source in_memory(void)
{
    for (size_t i = 0; i < FILES; i++) {
        given[i] = (struct ifd_source_file){.path = ifd_str(files[i].path),
                                            .content = {.data = (const uint8_t *)files[i].content,
                                                        .size = strlen(files[i].content)}};
    }
    return (struct ifd_source){.root = -1, .name = "m", .file = given, .file_count = FILES};
}

static struct ifd_source in_folder(void)
{
    struct ifd_source source = {.name = "m"};
    struct ifd_err err = {0};
    folder_begin();
    REQUIRE(mkdir(folder_at("m"), 0700) == 0 && mkdir(folder_at("m/1"), 0700) == 0 &&
            mkdir(folder_at("m/2"), 0700) == 0);
    for (size_t i = 0; i < FILES; i++) {
        char path[64];
        REQUIRE(ifd_str_format(path, sizeof(path), "m/%s", files[i].path));
        folder_put(path, files[i].content);
    }
    REQUIRE_OK(ifd_folder_open(folder_path(), &source.root, &err), &err);
    return source;
}

static void remove_folder(const struct ifd_source *source)
{
    static const char *const dirs[] = {"m/1", "m/2", "m"};
    for (size_t i = 0; i < FILES; i++) {
        char path[64];
        REQUIRE(ifd_str_format(path, sizeof(path), "m/%s", files[i].path));
        EXPECT(unlink(folder_at(path)) == 0);
    }
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        EXPECT(rmdir(folder_at(dirs[i])) == 0);
    }
    ifd_folder_close(source->root);
    folder_end();
}

static void expect_list(const struct ifd_source *source, const char *dir, const char *const *want,
                        uint32_t count)
{
    struct ifd_folder_names names = {0};
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_source_list(source, dir, &arena, &names, &err), &err);
    REQUIRE(names.count == count);
    for (uint32_t i = 0; i < count; i++) {
        bool is_there = false;
        for (uint32_t k = 0; k < count; k++) {
            is_there = is_there || strcmp(names.name[k], want[i]) == 0;
        }
        EXPECT(is_there);
    }
}

static void expect_content(const struct ifd_source *source, const char *path, const char *want)
{
    struct ifd_bytes got = {0};
    struct ifd_err err = {0};
    const size_t size = strlen(want);
    EXPECT_INT(ifd_source_size(source, path), size);
    REQUIRE_OK(ifd_source_read(source, path, size, ifd_alloc_system(), &got, &err), &err);
    EXPECT_INT(got.size, size);
    EXPECT_BYTES(got.data, want, size);
    ifd_release_tensor(ifd_alloc_system(), (void *)(uintptr_t)got.data, got.size);
    if (size > 0) {
        EXPECT_CODE(ifd_source_read(source, path, size - 1, ifd_alloc_system(), &got, &err),
                    IFD_TOO_LARGE, &err);
        EXPECT_HAS(err.text, path);
    }
}

static void expect_files(const struct ifd_source *source)
{
    struct ifd_bytes none;
    struct ifd_err err = {0};
    ifd_arena_init(&arena, ifd_alloc_system(), 0);
    for (size_t i = 0; i < FILES; i++) {
        expect_content(source, files[i].path, files[i].content);
    }
    EXPECT_INT(ifd_source_size(source, "1/absent"), 0);
    EXPECT_CODE(ifd_source_read(source, "1/absent", 9, ifd_alloc_system(), &none, &err),
                IFD_NOT_FOUND, &err);
    expect_list(source, "", (const char *const[]){"config.pbtxt", "1", "2"}, 3);
    expect_list(source, "1", (const char *const[]){"model.tflite", "labels.txt"}, 2);
    EXPECT(ifd_source_is_folder(source, "1") && ifd_source_is_folder(source, "2"));
    EXPECT(!ifd_source_is_folder(source, "config.pbtxt") && !ifd_source_is_folder(source, "3"));
    ifd_arena_finish(&arena);
}

static void files_of_a_folder_are_found(void)
{
    const struct ifd_source source = in_folder();
    expect_files(&source);
    remove_folder(&source);
}

static void files_in_memory_are_found(void)
{
    const struct ifd_source source = in_memory();
    expect_files(&source);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(files_of_a_folder_are_found),
        T(files_in_memory_are_found),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "engine/base/file.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void what_is_written_is_read_back(void)
{
    char dir[] = "/tmp/inferd-test-XXXXXX";
    REQUIRE(mkdtemp(dir) != NULL);
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/file", dir);
    struct fail_alloc fail;
    struct ifd_err err = {0};
    struct ifd_bytes got = {0};
    fail_alloc_init(&fail, 0);
    const struct ifd_bytes content = {(const uint8_t *)"hello", 5};
    REQUIRE_OK(ifd_file_write(path, content, &err), &err);
    REQUIRE_OK(ifd_file_write(path, content, &err), &err); /* replaces */
    REQUIRE_OK(ifd_file_read(path, 5, &fail.alloc, &got, &err), &err);
    EXPECT_INT(got.size, 5);
    EXPECT_BYTES(got.data, "hello", 5);
    ifd_release_tensor(&fail.alloc, (void *)got.data, got.size);
    EXPECT_INT(ifd_file_read(path, 4, &fail.alloc, &got, &err), IFD_TOO_LARGE);
    EXPECT_HAS(err.text, "limit of 4");
    fail_alloc_finish(&fail);
    fail_alloc_init(&fail, -1);
    EXPECT_INT(ifd_file_read(path, 5, &fail.alloc, &got, &err), IFD_NOMEM);
    (void)unlink(path);
    (void)rmdir(dir);
}

static void missing_and_irregular_files_are_named(void)
{
    struct ifd_err err = {0};
    struct ifd_bytes got = {0};
    EXPECT_INT(ifd_file_read("/nonexistent/x", 5, ifd_alloc_system(), &got, &err), IFD_NOT_FOUND);
    EXPECT_HAS(err.text, "/nonexistent/x");
    EXPECT_INT(ifd_file_read("/tmp", 5, ifd_alloc_system(), &got, &err), IFD_INVALID);
    EXPECT_INT(ifd_file_write("/nonexistent/x", (struct ifd_bytes){0}, &err), IFD_NOT_FOUND);
}

static void a_fifo_does_not_hang_the_reader(void)
{
    char dir[] = "/tmp/inferd-test-XXXXXX";
    REQUIRE(mkdtemp(dir) != NULL);
    char path[64];
    (void)snprintf(path, sizeof(path), "%s/fifo", dir);
    REQUIRE(mkfifo(path, 0600) == 0);
    struct ifd_err err = {0};
    struct ifd_bytes got = {0};
    EXPECT_INT(ifd_file_read(path, 5, ifd_alloc_system(), &got, &err), IFD_INVALID);
    EXPECT_HAS(err.text, "not a regular file");
    (void)unlink(path);
    (void)rmdir(dir);
}

/* A file that only we may write is mapped, one that others may write is copied; padding follows
 * both. */
static void a_file_is_mapped_only_if_nobody_else_may_write_it(void)
{
    static uint8_t page[4096];
    char dir[] = "/tmp/inferd-test-XXXXXX", path[64];
    REQUIRE(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof(path), "%s/file", dir);
    memset(page, 7, sizeof(page));
    struct fail_alloc fail;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_file_write(path, (struct ifd_bytes){page, sizeof(page)}, &err), &err);
    static const mode_t mode[] = {0600, 0644, 0620, 0602};
    for (size_t i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
        struct ifd_file file = {0};
        REQUIRE(chmod(path, mode[i]) == 0);
        fail_alloc_init(&fail, mode[i] & 022 ? 0 : -1); /* mapping allocates nothing */
        REQUIRE_OK(ifd_file_open(path, sizeof(page), &fail.alloc, &file, &err), &err);
        EXPECT((file.mapped_bytes > 0) == !(mode[i] & 022));
        EXPECT_INT(file.content.size, sizeof(page));
        EXPECT_BYTES(file.content.data, page, sizeof(page));
        volatile uint8_t sum = 0;
        for (size_t at = 0; at < IFD_TENSOR_PAD; at++) {
            sum = (uint8_t)(sum + file.content.data[sizeof(page) + at]);
        }
        ifd_file_close(&file);
        ifd_file_close(&file);
        fail_alloc_finish(&fail);
    }
    struct ifd_file file = {0};
    EXPECT_INT(ifd_file_open(path, 4095, ifd_alloc_system(), &file, &err), IFD_TOO_LARGE);
    EXPECT_INT(ifd_file_open("/tmp", 5, ifd_alloc_system(), &file, &err), IFD_INVALID);
    (void)unlink(path);
    (void)rmdir(dir);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_is_written_is_read_back),
        T(missing_and_irregular_files_are_named),
        T(a_fifo_does_not_hang_the_reader),
        T(a_file_is_mapped_only_if_nobody_else_may_write_it),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "engine/base/file.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
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
    EXPECT_INT(ifd_file_read("/tmp", 5, ifd_alloc_system(), &got, &err), IFD_IO);
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
    EXPECT_INT(ifd_file_read(path, 5, ifd_alloc_system(), &got, &err), IFD_IO);
    EXPECT_HAS(err.text, "not a regular file");
    (void)unlink(path);
    (void)rmdir(dir);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_is_written_is_read_back),
        T(missing_and_irregular_files_are_named),
        T(a_fifo_does_not_hang_the_reader),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "engine/tools/npy.h"
#include "engine/base/file.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void what_is_written_reads_back(void)
{
    char path[] = "/tmp/inferd-test-XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    (void)close(fd);
    float content[6] = {0, 1, 2, 3, 4, 5};
    struct ifd_tensor tensor = {
        .dtype = IFD_F32, .shape = {2, {2, 3}}, .data = content, .bytes = sizeof(content)};
    struct ifd_err err = {0};
    struct ifd_bytes file = {0};
    struct ifd_tensor got = {0};
    REQUIRE_OK(ifd_npy_write(path, &tensor, ifd_alloc_system(), &err), &err);
    REQUIRE_OK(ifd_file_read(path, 4096, ifd_alloc_system(), &file, &err), &err);
    REQUIRE_OK(ifd_npy_parse(file, &got, &err), &err);
    EXPECT_INT(got.dtype, IFD_F32);
    EXPECT_INT(got.shape.rank, 2);
    EXPECT_INT(got.shape.dim[1], 3);
    EXPECT_BYTES(got.data, content, sizeof(content));
    EXPECT_INT(((size_t)((const uint8_t *)got.data - file.data)) % 64, 0);
    ifd_release_tensor(ifd_alloc_system(), (void *)file.data, file.size);
    (void)unlink(path);
}

/* Made by NumPy: numpy.save of numpy.zeros((3,), 'uint8') has this header. */
static void files_of_numpy_are_read(void)
{
    uint8_t file[131] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
    size_t used = 10 + strlen((const char *)file + 10);
    memset(file + used, ' ', 127 - used);
    file[127] = '\n';
    struct ifd_err err = {0};
    struct ifd_tensor got = {0};
    REQUIRE_OK(ifd_npy_parse((struct ifd_bytes){file, sizeof(file)}, &got, &err), &err);
    EXPECT_INT(got.dtype, IFD_U8);
    EXPECT_INT(got.bytes, 3);
    EXPECT_INT(got.shape.dim[0], 3);
}

static void every_cut_is_refused(void)
{
    uint8_t file[131] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }";
    size_t used = 10 + strlen((const char *)file + 10);
    memset(file + used, ' ', 127 - used);
    for (size_t size = 0; size < sizeof(file); size++) {
        struct ifd_tensor got = {0};
        EXPECT(ifd_npy_parse((struct ifd_bytes){file, size}, &got, NULL) != IFD_OK);
    }
}

static void shapes_that_overflow_are_refused(void)
{
    const char *text =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296,4294967296,), }";
    uint8_t file[256] = "\x93NUMPY\x01\x00";
    size_t length = strlen(text);
    file[8] = (uint8_t)length;
    memcpy(file + 10, text, length);
    struct ifd_err err = {0};
    struct ifd_tensor got = {0};
    EXPECT_INT(ifd_npy_parse((struct ifd_bytes){file, 10 + length}, &got, &err), IFD_TOO_LARGE);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(what_is_written_reads_back),
        T(files_of_numpy_are_read),
        T(every_cut_is_refused),
        T(shapes_that_overflow_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

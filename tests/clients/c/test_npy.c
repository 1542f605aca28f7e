/* Reading and writing .npy; the files below are what NumPy itself writes. */
#include "clients/c/npy.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A version 1 file with this dictionary and eight bytes of data. */
static size_t make_file(char *file, const char *dictionary)
{
    size_t length = strlen(dictionary);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (char)length;
    file[9] = (char)(length >> 8);
    memcpy(file + 10, dictionary, length);
    memcpy(file + 10 + length, "\0\1\2\3\4\5\6\7", 8);
    return 10 + length + 8;
}

static void file_of_numpy_is_understood(void)
{
    char file[256];
    size_t size =
        make_file(file, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }        \n");
    struct ifd_client_npy npy;
    struct ifd_client_err err;
    REQUIRE(ifd_client_npy_parse("f", file, size, &npy, &err) == IFD_CLIENT_OK);
    EXPECT_TEXT(npy.tensor.datatype, "FP32");
    REQUIRE(npy.tensor.rank == 2);
    EXPECT_INT(npy.tensor.shape[0], 1);
    EXPECT_INT(npy.tensor.shape[1], 2);
    REQUIRE(npy.tensor.data_bytes == 8);
    EXPECT_BYTES(npy.tensor.data, "\0\1\2\3\4\5\6\7", 8);
}

static void scalar_and_vector_shapes_are_understood(void)
{
    char file[256];
    struct ifd_client_npy npy;
    struct ifd_client_err err;
    size_t size = make_file(file, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n");
    REQUIRE(ifd_client_npy_parse("f", file, size, &npy, &err) == IFD_CLIENT_OK);
    EXPECT_INT(npy.tensor.rank, 0);
    size = make_file(file, "{'descr': '|u1', 'fortran_order': False, 'shape': (8,), }\n");
    REQUIRE(ifd_client_npy_parse("f", file, size, &npy, &err) == IFD_CLIENT_OK);
    REQUIRE(npy.tensor.rank == 1);
    EXPECT_INT(npy.tensor.shape[0], 8);
}

static void files_that_cannot_be_sent_are_refused_by_name(void)
{
    static const char *const dictionaries[] = {
        "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }\n",
        "{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }\n",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 2), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, }\n",
        "{'descr': '<f4', 'fortran_order': False, }\n",
        "{}\n",
        "",
    };
    for (size_t i = 0; i < sizeof(dictionaries) / sizeof(dictionaries[0]); i++) {
        char file[256];
        size_t size = make_file(file, dictionaries[i]);
        struct ifd_client_npy npy;
        struct ifd_client_err err;
        EXPECT_INT(ifd_client_npy_parse("a.npy", file, size, &npy, &err), IFD_CLIENT_INVALID);
        EXPECT_HAS(err.text, "a.npy: ");
    }
}

static void every_cut_inside_the_header_is_refused(void)
{
    static const char dictionary[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }\n";
    char file[256];
    size_t size = make_file(file, dictionary);
    for (size_t cut = 0; cut < size - 8; cut++) {
        char *copy = malloc(cut + 1); /* its own block, so that a read behind the end is seen */
        REQUIRE(copy != NULL);
        memcpy(copy, file, cut);
        struct ifd_client_npy npy;
        struct ifd_client_err err;
        EXPECT_INT(ifd_client_npy_parse("f", copy, cut, &npy, &err), IFD_CLIENT_INVALID);
        free(copy);
    }
}

static void written_file_is_what_numpy_writes(void)
{
    char path[] = "/tmp/inferd_npy_XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0);
    const int64_t shape[] = {2, 3};
    const struct ifd_client_tensor tensor = {"y", "UINT8", shape, 2, "abcdef", 6};
    struct ifd_client_err err;
    EXPECT_INT(ifd_client_npy_write(path, &tensor, &err), IFD_CLIENT_OK);
    char got[256];
    ssize_t size = read(fd, got, sizeof(got));
    close(fd);
    unlink(path);
    /* numpy.save of the same array: header padded with spaces to a multiple of 64 bytes. */
    static const char want[] =
        "\x93NUMPY\1\0\x76\0{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }";
    REQUIRE(size == 128 + 6);
    EXPECT_BYTES(got, want, 10);
    EXPECT_HAS(got + 10, "'descr': '|u1'");
    EXPECT_INT(got[127], '\n');
    EXPECT_BYTES(got + 128, "abcdef", 6);
    struct ifd_client_npy npy;
    REQUIRE(ifd_client_npy_parse("f", got, (size_t)size, &npy, &err) == IFD_CLIENT_OK);
    EXPECT_INT(npy.tensor.rank, 2);
    EXPECT_INT(npy.tensor.shape[1], 3);
}

static void types_without_a_form_in_npy_are_not_written(void)
{
    const int64_t shape[] = {1};
    const struct ifd_client_tensor tensor = {"y", "BYTES", shape, 1, "\0\0\0\0", 4};
    struct ifd_client_err err;
    EXPECT_INT(ifd_client_npy_write("/nonexistent/x.npy", &tensor, &err), IFD_CLIENT_INVALID);
    EXPECT_HAS(err.text, "BYTES");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(file_of_numpy_is_understood),
        T(scalar_and_vector_shapes_are_understood),
        T(files_that_cannot_be_sent_are_refused_by_name),
        T(every_cut_inside_the_header_is_refused),
        T(written_file_is_what_numpy_writes),
        T(types_without_a_form_in_npy_are_not_written),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

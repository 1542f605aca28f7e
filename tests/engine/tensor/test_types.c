#include "inferd/types.h"
#include "tests/support/test.h"

static void every_dtype_has_size_and_names(void)
{
    for (int i = 0; i < IFD_DTYPE_COUNT; i++) {
        EXPECT(ifd_dtype_bytes((enum ifd_dtype)i) > 0);
        EXPECT(ifd_dtype_name((enum ifd_dtype)i)[0] != '?');
        EXPECT(ifd_dtype_wire_name((enum ifd_dtype)i)[0] != '?');
    }
    EXPECT_INT(ifd_dtype_bytes(IFD_C64), 8);
    EXPECT_TEXT(ifd_dtype_wire_name(IFD_STR), "BYTES");
}

static void values_outside_the_enum_are_harmless(void)
{
    EXPECT_INT(ifd_dtype_bytes((enum ifd_dtype)1000), 0);
    EXPECT_TEXT(ifd_dtype_name((enum ifd_dtype)1000), "?");
    EXPECT_TEXT(ifd_dtype_wire_name(IFD_DTYPE_COUNT), "?");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(every_dtype_has_size_and_names),
        T(values_outside_the_enum_are_harmless),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "inferd/status.h"
#include "tests/support/test.h"

#include <string.h>

static void fail_fills_code_and_text(void)
{
    struct ifd_err err = {0};
    EXPECT_INT(ifd_fail(&err, IFD_INVALID, "got %d, expected %d", 3, 4), IFD_INVALID);
    EXPECT_INT(err.code, IFD_INVALID);
    EXPECT_TEXT(err.text, "got 3, expected 4");
}

static void fail_without_err_returns_the_code(void)
{
    EXPECT_INT(ifd_fail(NULL, IFD_NOMEM, "unseen"), IFD_NOMEM);
    ifd_err_prefix(NULL, "unseen");
}

static void prefix_keeps_what_was_said(void)
{
    struct ifd_err err = {0};
    (void)ifd_fail(&err, IFD_CORRUPT, "bad axis");
    ifd_err_prefix(&err, "node %d", 7);
    EXPECT_TEXT(err.text, "node 7: bad axis");
    EXPECT_INT(err.code, IFD_CORRUPT);
}

static void long_text_is_cut_not_overrun(void)
{
    struct ifd_err err = {0};
    char longer[1000];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    (void)ifd_fail(&err, IFD_IO, "%s", longer);
    EXPECT_INT(strlen(err.text), IFD_ERR_TEXT_BYTES - 1);
    ifd_err_prefix(&err, "%s", longer);
    EXPECT_INT(strlen(err.text), IFD_ERR_TEXT_BYTES - 1);
}

static void every_code_has_a_name(void)
{
    for (int i = 0; i < IFD_CODE_COUNT; i++) {
        EXPECT(ifd_code_name((enum ifd_code)i)[0] != '?');
    }
    EXPECT_TEXT(ifd_code_name(IFD_CODE_COUNT), "?");
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(fail_fills_code_and_text),   T(fail_without_err_returns_the_code),
        T(prefix_keeps_what_was_said), T(long_text_is_cut_not_overrun),
        T(every_code_has_a_name),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

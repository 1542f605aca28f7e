#include "engine/base/buf.h"
#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

#include <string.h>

static void text_grows_and_keeps_its_content(void)
{
    struct fail_alloc fail;
    struct ifd_buf buf;
    fail_alloc_init(&fail, 0);
    ifd_buf_init(&buf, &fail.alloc, 100000);
    for (int i = 0; i < 1000; i++) {
        ifd_buf_addf(&buf, "%03d,", i);
    }
    REQUIRE_OK(ifd_buf_check(&buf, NULL), NULL);
    EXPECT_INT(buf.size, 4000);
    EXPECT_BYTES(buf.data + 4 * 567, "567,", 4);
    ifd_buf_finish(&buf);
    fail_alloc_finish(&fail);
}

static void long_formats_fit(void)
{
    struct ifd_buf buf;
    char text[600];
    memset(text, 'y', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    ifd_buf_init(&buf, ifd_alloc_system(), 10000);
    ifd_buf_addf(&buf, "<%s>", text);
    EXPECT_INT(buf.size, 601);
    EXPECT_INT(buf.data[600], '>');
    ifd_buf_finish(&buf);
}

static void cap_stops_and_stays_stopped(void)
{
    struct ifd_buf buf;
    struct ifd_err err = {0};
    ifd_buf_init(&buf, ifd_alloc_system(), 10);
    ifd_buf_add_text(&buf, "0123456789");
    ifd_buf_add_text(&buf, "x");
    ifd_buf_add(&buf, "", 0);
    EXPECT_INT(ifd_buf_check(&buf, &err), IFD_TOO_LARGE);
    EXPECT_HAS(err.text, "10 bytes");
    EXPECT_INT(buf.size, 10);
    ifd_buf_finish(&buf);
}

static void missing_memory_is_reported(void)
{
    struct fail_alloc fail;
    struct ifd_buf buf;
    fail_alloc_init(&fail, -1);
    ifd_buf_init(&buf, &fail.alloc, 10);
    ifd_buf_add_text(&buf, "abc");
    EXPECT_INT(ifd_buf_check(&buf, NULL), IFD_NOMEM);
    ifd_buf_finish(&buf);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(text_grows_and_keeps_its_content),
        T(long_formats_fit),
        T(cap_stops_and_stays_stopped),
        T(missing_memory_is_reported),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

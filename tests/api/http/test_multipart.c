#include "api/http/multipart.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/str.h"
#include "tests/support/test.h"

static const char type[] = "multipart/form-data; charset=\"a;b\"; boundary=\"-x y\"";

static struct ifd_bytes bytes_of(const char *text)
{
    return (struct ifd_bytes){(const uint8_t *)text, strlen(text)};
}

static void expect_refused(const char *header, const char *body, const char *part)
{
    struct ifd_multipart form;
    struct ifd_part ret;
    struct ifd_err err = {0};
    bool is_there = true;
    enum ifd_code code = ifd_multipart_begin(ifd_str(header), bytes_of(body), &form, &err);
    while (!code && is_there) {
        code = ifd_multipart_next(&form, &ret, &is_there, &err);
    }
    EXPECT_CODE(code, IFD_INVALID, &err);
    EXPECT_HAS(err.text, part);
}

static void parts_are_found_in_order(void)
{
    static const char body[] =
        "---x y\r\n"
        "Content-Disposition: form-data; name=\"a\"\r\n\r\n"
        "one\r\n--no boundary\r\r\n\r\n---x y \r\n"
        "X-Other: 1\r\ncontent-disposition:form-data;filename=\"\";name=b\r\n"
        "Content-Type:  image/png \r\n\r\n\r\n---x y--\r\nignored";
    struct ifd_multipart form;
    struct ifd_part part;
    struct ifd_err err = {0};
    bool is_there = false;
    REQUIRE_OK(ifd_multipart_begin(ifd_str(type), bytes_of(body), &form, &err), &err);
    REQUIRE_OK(ifd_multipart_next(&form, &part, &is_there, &err), &err);
    EXPECT(is_there && !part.is_file && !part.type.data);
    EXPECT(ifd_str_equal(part.name, "a"));
    EXPECT_INT(part.content.size, 21);
    EXPECT_BYTES(part.content.data, "one\r\n--no boundary\r\r\n", 21);
    REQUIRE_OK(ifd_multipart_next(&form, &part, &is_there, &err), &err);
    EXPECT(is_there && part.is_file);
    EXPECT(ifd_str_equal(part.name, "b"));
    EXPECT(ifd_str_equal(part.type, "image/png"));
    EXPECT_INT(part.content.size, 0);
    REQUIRE_OK(ifd_multipart_next(&form, &part, &is_there, &err), &err);
    EXPECT(!is_there);
}

static void broken_forms_are_refused(void)
{
    char long_type[200] = "multipart/form-data; boundary=";
    memset(long_type + strlen(long_type), 'x', 71);
    expect_refused("multipart/form-data", "--\r\n", "boundary of 0 characters");
    expect_refused("multipart/form-data; boundary", "--\r\n", "boundary of 0 characters");
    expect_refused("multipart/form-data; boundary=\"\"", "--\r\n", "boundary of 0 characters");
    expect_refused(long_type, "--\r\n", "boundary of 71 characters");
    expect_refused(type, "", "does not begin");
    expect_refused(type, "---x", "does not begin");
    expect_refused(type, "---x y", "not followed by a part");
    expect_refused(type, "---x yz\r\n", "not followed by a part");
    expect_refused(type, "---x y\r\nA: b\r\n", "ends in its headers");
    expect_refused(type, "---x y\r\nA: b\r\n\r\nc\r\n---x y--", "has no name");
    expect_refused(type, "---x y\r\nContent-Disposition: form-data; name=a\r\n\r\nc---x y--",
                   "part \"a\" does not end");
}

/* Cut anywhere, copied to where its end is the end of its memory. */
static void cut_forms_are_refused(void)
{
    static const char body[] =
        "---x y\r\nContent-Disposition: form-data; name=a\r\n\r\nc\r\n---x y--";
    for (size_t size = 1; size + 2 < sizeof(body); size++) {
        char *cut = calloc(size + 1, 1);
        REQUIRE(cut);
        memcpy(cut, body, size);
        expect_refused(type, cut, "multipart form: ");
        free(cut);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(parts_are_found_in_order),
        T(broken_forms_are_refused),
        T(cut_forms_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

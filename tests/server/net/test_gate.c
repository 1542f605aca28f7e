#include "server/net/gate.h"

#include "engine/base/str.h"
#include "tests/support/test.h"

#include <string.h>

/* Status of a request with these fields ("name", "value", …, NULL); 0: it passes. */
static int status_of(const char *const *field)
{
    struct ifd_gate gate = {0};
    int status = 0;
    for (; *field; field += 2) {
        ifd_gate_field(&gate, ifd_str(field[0]), ifd_str(field[1]));
    }
    return ifd_gate_check(&gate, true, &status) ? status : 0;
}

#define STATUS(...) status_of((const char *const[]){__VA_ARGS__, NULL})
#define HOST        "Host", "a"

static void ordinary_requests_pass(void)
{
    EXPECT_INT(STATUS(HOST), 0);
    EXPECT_INT(STATUS(HOST, "content-length", "12", "Expect", "100-Continue"), 0);
    EXPECT_INT(STATUS(HOST, "Transfer-Encoding", "chunked"), 0);
    EXPECT_INT(STATUS(HOST, "Accept", "a/b;q=0.5, */*\twith tab"), 0);
}

static void two_lengths_are_refused(void)
{
    EXPECT_INT(STATUS(HOST, "Content-Length", "3", "content-length", "3"), 400);
    EXPECT_INT(STATUS(HOST, "Content-Length", "3", "Transfer-Encoding", "chunked"), 400);
    EXPECT_INT(STATUS(HOST, "Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked"), 400);
}

static void odd_lengths_are_refused(void)
{
    EXPECT_INT(STATUS(HOST, "Content-Length", "+3"), 400);
    EXPECT_INT(STATUS(HOST, "Content-Length", "3, 3"), 400);
    EXPECT_INT(STATUS(HOST, "Content-Length", ""), 400);
    EXPECT_INT(STATUS(HOST, "Content-Length", "99999999999999999999"), 400);
    EXPECT_INT(STATUS(HOST, "Transfer-Encoding", "gzip, chunked"), 501);
}

static void exactly_one_host_is_needed(void)
{
    struct ifd_gate none = {0};
    int status = 0;
    EXPECT_INT(STATUS("Accept", "x"), 400);
    EXPECT_INT(STATUS(HOST, "HOST", "b"), 400);
    EXPECT_INT(STATUS("Host", "a b"), 400);
    EXPECT_INT(STATUS("Host", "a/b"), 400);
    EXPECT_INT(STATUS("Host", "@a"), 400);
    EXPECT_INT(STATUS("Host", "[::1]:8000"), 0);
    EXPECT_INT(STATUS("Host", "azAZ09"), 0);
    EXPECT(ifd_gate_check(&none, false, &status) == NULL); /* HTTP/1.0 has no Host */
}

static void control_characters_are_refused(void)
{
    struct ifd_gate gate = {0};
    int status = 0;
    EXPECT_INT(STATUS(HOST, "X", "a\rb"), 400);
    EXPECT_INT(STATUS(HOST, "X", "a\x7f"), 400);
    EXPECT_INT(STATUS(HOST, "X Y", "a"), 400);
    EXPECT_INT(STATUS(HOST, "Content-Length ", "3"), 400);
    EXPECT_INT(STATUS(HOST, "", "a"), 400);
    ifd_gate_field(&gate, ifd_str("Host"), (struct ifd_str){.data = "a\0b", .size = 3});
    EXPECT(ifd_gate_check(&gate, true, &status) != NULL);
}

/* At every position: values are checked eight characters at a time. */
static void every_character_of_a_value_is_looked_at(void)
{
    for (int c = 0; c < 256; c++) {
        bool is_control = (c < 0x20 && c != '\t') || c == 0x7f;
        for (size_t size = 1; size < 20; size++) {
            for (size_t at = 0; at < size; at++) {
                char value[20];
                memset(value, at % 2 ? 'v' : '\t', sizeof(value));
                value[at] = (char)c;
                struct ifd_gate gate = {0};
                ifd_gate_field(&gate, ifd_str("X"), (struct ifd_str){.data = value, .size = size});
                EXPECT(gate.is_malformed == is_control);
            }
        }
    }
}

static void fields_that_decide_are_given_once(void)
{
    static const char *const names[] = {"Content-Type", "Content-Encoding",
                                        "Inference-Header-Content-Length", "Authorization"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        EXPECT_INT(STATUS(HOST, names[i], "1"), 0);
        EXPECT_INT(STATUS(HOST, names[i], "1", names[i], "1"), 400);
    }
}

static void only_continue_may_be_expected(void)
{
    EXPECT_INT(STATUS(HOST, "Expect", "a pony"), 417);
    EXPECT_INT(STATUS(HOST, "Expect", "100-continue", "Expect", "100-continue"), 417);
}

static void fields_are_counted(void)
{
    const char *field[2 * (IFD_GATE_FIELDS_MAX + 1) + 1] = {HOST};
    for (int i = 1; i < IFD_GATE_FIELDS_MAX; i++) {
        field[2 * i] = "X";
        field[2 * i + 1] = "y";
    }
    EXPECT_INT(status_of(field), 0);
    field[2 * IFD_GATE_FIELDS_MAX] = "X";
    field[2 * IFD_GATE_FIELDS_MAX + 1] = "y";
    EXPECT_INT(status_of(field), 431);
}

/* Status of a GET whose buffer has these bytes, with NUL for overwritten separators; url_size: of
 * "/x". */
static int status_in_place(const char *bytes, size_t size, size_t url_size)
{
    struct ifd_gate gate = {0};
    int status = 0;
    const char *url = bytes + strlen(bytes) + 1, *version = url + strlen(url) + 1;
    const char *name = version + strlen(version) + 2, *value = name + strlen(name) + 1;
    const struct ifd_str target = {.data = url, .size = url_size};
    const char *why = ifd_gate_request_line(&gate, bytes, target, ifd_str("/x"), version, &status);
    ifd_gate_field(&gate, ifd_str(name), ifd_str(value));
    ifd_gate_end(&gate, bytes + size);
    return why || ifd_gate_check(&gate, true, &status) ? status : 0;
}

#define IN_PLACE(bytes) status_in_place(bytes, sizeof(bytes) - 1, 2)

static void fields_must_lie_one_behind_the_other(void)
{
    EXPECT_INT(IN_PLACE("GET\0/x\0HTTP/1.1\0\0Host\0a\0\0\0\0"), 0);
    EXPECT_INT(IN_PLACE("GET\0/x\0HTTP/1.1\0\0Host\0a\0\0\0"), 400); /* one LF alone */
    EXPECT_INT(IN_PLACE("GET\0/x\0HTTP/1.1\0\0Host\0a\0\0\0\0\0"), 400);
    EXPECT_INT(IN_PLACE("GET\0/x\0HTTP/1.1\0\0Host\0a\0\0X\0\0\0"), 400);
    EXPECT_INT(IN_PLACE("GET\0/x\0HTTP/1.2\0\0Host\0a\0\0\0\0"), 505);
    EXPECT_INT(IN_PLACE("G(T\0/x\0HTTP/1.1\0\0Host\0a\0\0\0\0"), 400);
    EXPECT_INT(status_in_place("GET\0/x\0HTTP/1.1\0\0Host\0a\0\0\0\0", 27, 3), 400);
}

static void absolute_form_loses_its_authority(void)
{
    EXPECT_INT(ifd_str_equal(ifd_gate_origin(ifd_str("http://a:1/x?y")), "/x?y"), 1);
    EXPECT_INT(ifd_str_equal(ifd_gate_origin(ifd_str("/http://a/x")), "/http://a/x"), 1);
    EXPECT_INT(ifd_str_equal(ifd_gate_origin(ifd_str("http:///x")), "http:///x"), 1);
    EXPECT_INT(ifd_str_equal(ifd_gate_origin(ifd_str("http://a b/x")), "http://a b/x"), 1);
    EXPECT_INT(ifd_str_equal(ifd_gate_origin(ifd_str("http://a")), "http://a"), 1);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(ordinary_requests_pass),
        T(two_lengths_are_refused),
        T(odd_lengths_are_refused),
        T(exactly_one_host_is_needed),
        T(fields_that_decide_are_given_once),
        T(control_characters_are_refused),
        T(every_character_of_a_value_is_looked_at),
        T(only_continue_may_be_expected),
        T(fields_are_counted),
        T(fields_must_lie_one_behind_the_other),
        T(absolute_form_loses_its_authority),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

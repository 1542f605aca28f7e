/* RFC 8259 through an inference: every value stands once in a member that is skipped and, if it is
 * a number, once in a tensor. Valid JSON gives 200, invalid JSON 400; no memory is kept. */
#include <stdio.h>
#include <string.h>

#include "tests/support/loopback.h"
#include "tests/support/test.h"

struct text {
    const char *bytes;
    size_t size;
};
#define X(literal)                                                                                 \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

static const struct text good_values[] = {
    /* structure */
    X("[]"),
    X("{}"),
    X("[[]]"),
    X("[[[[[[]]]]]]"),
    X("[{}]"),
    X("{\"a\":{}}"),
    X("[[],[[]],{}]"),
    X("[null, 1, \"1\", {}]"),
    X("[1,null,null,null,2]"),
    X("[ 4]"),
    X("[2] "),
    X(" [1]"),
    X("[1\n]"),
    X("\t[\t1\t,\r\n2\t]\n"),
    X("{\"a\":\"b\",\"c\":\"d\"}"),
    X("{\"\":0}"),
    X("{\"a\\u0000b\":1}"),
    X("{\"min\":-1e+28,\"max\":1.0e+28}"),
    X("{\n\"a\": \"b\"\n}"),
    X("{\"x\":[{\"id\":\"x\"}],\"id\":\"x\"}"),
    /* literals and lone values */
    X("true"),
    X("false"),
    X("null"),
    X("[true,false,null]"),
    X("\"\""),
    X("42"),
    X("-0.1"),
    /* numbers */
    X("[0]"),
    X("[-0]"),
    X("[-1]"),
    X("[0e1]"),
    X("[0e+1]"),
    X("[0E1]"),
    X("[0E+1]"),
    X("[1E22]"),
    X("[1E-2]"),
    X("[1E+2]"),
    X("[123e45]"),
    X("[123.456e78]"),
    X("[1e-2]"),
    X("[1e+2]"),
    X("[123]"),
    X("[123.456789]"),
    X("[-123]"),
    X("[20e1]"),
    X("[1.5e+9999]"),
    X("[100000000000000000000000]"),
    X("[0.000000000000000000000000000000000000000001]"),
    /* strings */
    X("[\"a\"]"),
    X("[\" \"]"),
    X("[\"\\\"\"]"),
    X("[\"\\\\\"]"),
    X("[\"\\/\"]"),
    X("[\"\\b\\f\\n\\r\\t\"]"),
    X("[\"\\\\n\"]"),
    X("[\"a/*b*/c//d\"]"),
    X("[\"\\u0000\"]"),
    X("[\"\\u0012\"]"),
    X("[\"\\u005C\\u0022\"]"),
    X("[\"\\uD834\\uDD1E\"]"),
    X("[\"\\ud83d\\ude39\\ud83d\\udc8d\"]"),
    X("[\"\\uDBFF\\uDFFF\"]"),
    X("[\"\\uFFFE\\uFFFF\"]"),
    X("[\"\\u20AC\"]"),
    X("[\"\\uABCD\\uabcd\"]"),
    X("[\"\x7f\"]"),
    X("[\"\xc2\xa0\"]"),
    X("[\"\xe2\x80\xa8\xe2\x80\xa9\"]"),
    X("[\"\xef\xbf\xbf\"]"),
    X("[\"\xf0\x9b\xbf\xbf\"]"),
    X("[\"\xf4\x8f\xbf\xbf\"]"),
    X("[\"\xef\xbb\xbf\"]"),
};

static const struct text bad_values[] = {
    /* structure */
    X(""),
    X("["),
    X("]"),
    X("[1,]"),
    X("[1,,2]"),
    X("[,1]"),
    X("[,]"),
    X("[1 2]"),
    X("[1 true]"),
    X("[\"a\" \"b\"]"),
    X("[\"a\":1]"),
    X("[1]]"),
    X("[1}"),
    X("{]"),
    X("[[1]"),
    X("[1"),
    X("[\"a\""),
    X("[\"a\","),
    X("[,"),
    X("{"),
    X("{\"a\""),
    X("{\"a\":"),
    X("{\"a\":}"),
    X("{\"a\":1"),
    X("{\"a\":1,}"),
    X("{\"a\":1,,}"),
    X("{\"a\":1,,\"b\":2}"),
    X("{,\"a\":1}"),
    X("{\"a\" 1}"),
    X("{\"a\" \"b\"}"),
    X("{\"a\"::1}"),
    X("{:1}"),
    X("{\"a\",1}"),
    X("{1:1}"),
    X("{a:1}"),
    X("{null:1}"),
    X("{[]:1}"),
    X("{'a':1}"),
    X("{\"a\":1 \"b\":2}"),
    X("{\"a\":\"b\"}}"),
    X("{\"a\":/*c*/1}"),
    X("[1]/**/"),
    X("[1]//x"),
    X("[1]#x"),
    X("[][]"),
    X("1 1"),
    X("*"),
    X("<null>"),
    X("[<a>]"),
    X("{\"a\":1}\"x"),
    X("[\xe2\x81\xa0]"),
    X("[\xc2\xa0]"),
    X("[\f]"),
    X("[\v]"),
    X("[\0]"),
    X("\xef\xbb\xbf{}"),
    X("[\\n]"),
    X("[\\u0020\"a\"]"),
    /* literals */
    X("tru"),
    X("fals"),
    X("nul"),
    X("[truee]"),
    X("[nulll]"),
    X("True"),
    X("TRUE"),
    X("[Null]"),
    X("[undefined]"),
    X("[nan]"),
    X("[inf]"),
    X("[infinity]"),
    X("[NAN]"),
    /* numbers */
    X("[+1]"),
    X("[++1]"),
    X("[--1]"),
    X("[-]"),
    X("[-a]"),
    X("[- 1]"),
    X("[-01]"),
    X("[-012]"),
    X("[-2.]"),
    X("[.1]"),
    X("[.]"),
    X("[-.1]"),
    X("[0.]"),
    X("[0.e1]"),
    X("[0.3e]"),
    X("[0.3e+]"),
    X("[0e]"),
    X("[0e+]"),
    X("[0E+]"),
    X("[1.0e]"),
    X("[1.0e-]"),
    X("[1 000]"),
    X("[1_000]"),
    X("[1eE2]"),
    X("[1e+-2]"),
    X("[2.e3]"),
    X("[9.e+]"),
    X("[012]"),
    X("[00]"),
    X("[1+2]"),
    X("[0x1]"),
    X("[0x]"),
    X("[1ea]"),
    X("[1.8011670033376514H-308]"),
    X("[123\xe5]"),
    X("[\xef\xbc\x91]"),
    X("[1a]"),
    X("[0b1]"),
    X("[1f]"),
    /* strings */
    X("[\"]"),
    X("\""),
    X("'a'"),
    X("[a]"),
    X("[\"\\\"]"),
    X("[\"\\x00\"]"),
    X("[\"\\a\"]"),
    X("[\"\\'\"]"),
    X("[\"\\u\"]"),
    X("[\"\\u00\"]"),
    X("[\"\\u00A\"]"),
    X("[\"\\u00G0\"]"),
    X("[\"\\U0041\"]"),
    X("[\"\\\xe5\"]"),
    X("[\"\\\t\"]"),
    X("[\"\\\\\\\"]"),
    X("[\"\\uD800\"]"),
    X("[\"\\uD800\\\"]"),
    X("[\"\\uD800\\u\"]"),
    X("[\"\\uD800\\u0041\"]"),
    X("[\"\\uD800\\uD800\"]"),
    X("[\"\\uDC00\"]"),
    X("[\"\\uDD1E\\uD834\"]"),
    X("[\"a\0b\"]"),
    X("[\"a\nb\"]"),
    X("[\"a\tb\"]"),
    X("[\"\x1f\"]"),
    X("[\"\xff\"]"),
    X("[\"\x80\"]"),
    X("[\"\xc0\xaf\"]"),
    X("[\"\xe0\x80\xaf\"]"),
    X("[\"\xf0\x80\x80\xaf\"]"),
    X("[\"\xc3\"]"),
    X("[\"\xe2\x82\"]"),
    X("[\"\xed\xa0\x80\"]"),
    X("[\"\xf4\x90\x80\x80\"]"),
    X("[\"\xf8\x88\x80\x80\x80\"]"),
    X("[\"\xc3\x28\"]"),
};

/* One number of an FP32 tensor. Infinities are what Triton's clients write for them. */
static const struct text good_numbers[] = {
    X("0"),        X("-0"),        X("-0.0"),      X("1E22"),   X("1e-40"),
    X("16777217"), X("0.1"),       X("123.456e3"), X("1e-400"), X("3.4028234663852886e38"),
    X("NaN"),      X("-Infinity"),
};
static const struct text bad_numbers[] = {
    X(""),     X("01"),   X("-"),       X("+1"),   X("1."),    X(".5"),    X("1e"),  X("1e+"),
    X("0x10"), X("1,,2"), X("1 2"),     X("null"), X("true"),  X("\"1\""), X("{}"),  X("nan"),
    X("1f"),   X("1_0"),  X("Infinit"), X("--1"),  X("1e1.5"), X("[1"),    X("1]]"),
};

static int status_of(const char *before, struct text value, const char *after)
{
    struct loopback loop;
    struct loopback_answer answer;
    char body[1024];
    size_t used = strlen(before);
    memcpy(body, before, used);
    memcpy(body + used, value.bytes, value.size);
    used += value.size;
    memcpy(body + used, after, strlen(after));
    used += strlen(after);
    loopback_init(&loop, ifd_alloc_system());
    loopback_ask(&loop, "POST", "/v2/models/identity/infer", NULL, body, used, &answer);
    int status = answer.status;
    loopback_release(&answer);
    EXPECT(loop.fake.held_refs == 0 && loop.fake.held_outputs == 0);
    loopback_finish(&loop);
    return status;
}

static void expect_status(const char *before, const struct text *value, size_t count,
                          const char *after, int status)
{
    for (size_t i = 0; i < count; i++) {
        char got[200], want[200];
        int is = status_of(before, value[i], after);
        (void)snprintf(got, sizeof(got), "%s: %d", value[i].bytes, is);
        (void)snprintf(want, sizeof(want), "%s: %d", value[i].bytes, status);
        EXPECT_TEXT(got, want);
    }
}

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define INPUT(data)                                                                                \
    "\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[" data "]}]"
#define AS_VALUE(table, status)                                                                    \
    expect_status("{\"extra\":", table, COUNT(table), "," INPUT("1") "}", status)
#define AS_NUMBER(table, status)                                                                   \
    expect_status(                                                                                 \
        "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1],\"datatype\":\"FP32\",\"data\":[", table, \
        COUNT(table), "]}]}", status)

static void well_formed_values_are_accepted(void)
{
    AS_VALUE(good_values, 200);
}

static void malformed_values_are_refused(void)
{
    AS_VALUE(bad_values, 400);
}

static void numbers_of_a_tensor_are_those_of_json(void)
{
    AS_NUMBER(good_numbers, 200);
    AS_NUMBER(bad_numbers, 400);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(well_formed_values_are_accepted),
        T(malformed_values_are_refused),
        T(numbers_of_a_tensor_are_those_of_json),
    };
    return test_main(argc, argv, cases, COUNT(cases));
}

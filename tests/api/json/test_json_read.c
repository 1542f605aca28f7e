/* The pull reader: what it takes, what it refuses and where. */
#include "api/json/json_read.h"
#include "engine/base/buf.h"
#include "engine/base/str.h"
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

struct reading {
    struct ifd_arena arena;
    struct ifd_err err;
    struct ifd_json_in in;
};

static void start(struct reading *reading, const char *text, size_t size)
{
    *reading = (struct reading){0};
    ifd_arena_init(&reading->arena, ifd_alloc_system(), 1 << 20);
    ifd_json_in_init(&reading->in, (struct ifd_str){.data = text, .size = size}, &reading->arena,
                     &reading->err);
}

/* The message, "" if the text is one well-formed value. Static buffer. */
static const char *fault_sized(const char *text, size_t size)
{
    static char message[IFD_ERR_TEXT_BYTES];
    struct reading reading;
    start(&reading, text, size);
    bool ok = ifd_json_skip(&reading.in) && ifd_json_finish(&reading.in);
    EXPECT(ok == !reading.in.failed);
    memcpy(message, reading.err.text, sizeof(message));
    ifd_arena_finish(&reading.arena);
    return message;
}

static const char *fault(const char *text)
{
    return fault_sized(text, strlen(text));
}

static void well_formed_texts_are_taken(void)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       " [ ] ",
                                       "[[],{}]",
                                       "{\"a\":1}",
                                       "{\"a\":[1,2,{\"b\":null}],\"c\":true}",
                                       "\"x\"",
                                       "true",
                                       "null",
                                       "[-1.5e-3, 0, 10]",
                                       "[\"\\u00e9\\ud83d\\ude00\\n\"]",
                                       "\t\r\n{\"\":\"\"}\n",
                                       "[NaN,Infinity,-Infinity,Inf,-Inf]",
                                       "{\"a\":1,\"a\":2}",
                                       "\xef\xbb\xbf[]",
                                       "[\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"]"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        EXPECT_TEXT(fault(good[i]), "");
    }
}

static void malformed_texts_are_refused_with_their_place(void)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "JSON ends where a value should come, at byte 0"},
        {"{", "at byte 1"},
        {"[1,]", "JSON has ']' where a value should come, at byte 3"},
        {"[,1]", "at byte 1"},
        {"[1 2]", "JSON has '2' where ',' or ']' should come, at byte 3"},
        {"{\"a\" 1}", "where ':' should come, at byte 5"},
        {"{\"a\":1,}", "a member's name in double quotes should come, at byte 7"},
        {"{a:1}", "a member's name in double quotes"},
        {"{'a':1}", "a member's name"},
        {"[1}", "at byte 2"},
        {"[01]", "a number"},
        {"[+1]", "a value"},
        {"[1.]", "a number"},
        {"[.5]", "a value"},
        {"[--1]", "a number"},
        {"[tru]", "true or false"},
        {"[nul]", "a value"},
        {"[nan]", "a value"},
        {"[\"a]", "ends inside a string"},
        {"[\"\\x\"]", "wrong escape"},
        {"[\"\\u12g4\"]", "wrong escape"},
        {"[\"\\ud800\"]", "wrong escape"},
        {"[\"\\ud800\\u0041\"]", "wrong escape"},
        {"[\"\\udc00\"]", "wrong escape"},
        {"[\"a\nb\"]", "control character 0x0a unescaped, at byte 3"},
        {"[\"\xff\"]", "not UTF-8"},
        {"[\"\xc0\xaf\"]", "not UTF-8"},
        {"[\"\xed\xa0\x80\"]", "not UTF-8"},
        {"[\"\xf4\x90\x80\x80\"]", "not UTF-8"},
        {"[] []", "the end should come, at byte 3"},
        {"[1]x", "the end"},
        {"\xef\xbb\xbf", "JSON ends"},
        {"\xef\xbb\xbf\xef\xbb\xbf[]", "JSON has byte 0xef where a value should come, at byte 3"},
        {" \xef\xbb\xbf[]", "JSON has byte 0xef where a value should come, at byte 1"},
        {"[/*c*/1]", "a value"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        EXPECT_HAS(fault(bad[i].text), bad[i].message);
    }
    EXPECT_HAS(fault_sized(NULL, 0), "JSON ends"); /* a request without a body */
    EXPECT_HAS(fault_sized("[\0]", 3), "byte 0x00");
    EXPECT_HAS(fault_sized("[\"a\0\"]", 6), "control character 0x00");
    EXPECT_HAS(fault_sized("[\"\\", 3), "ends inside a string");
}

static void every_cut_of_a_text_is_refused(void)
{
    static const char text[] = "{\"a\":[1.5e3,\"\\u00e9\",true,null,{\"b\":-Infinity}]}";
    for (size_t size = 0; size < sizeof(text) - 1; size++) {
        /* in memory of exactly that size, so that a sanitizer sees a read behind it */
        char *copy = ifd_acquire(ifd_alloc_system(), size + 1);
        REQUIRE(copy != NULL);
        memcpy(copy + 1, text, size);
        EXPECT(fault_sized(copy + 1, size)[0] != '\0');
        ifd_release(ifd_alloc_system(), copy, size + 1);
    }
}

static void nesting_is_bounded(void)
{
    enum { DEEP = 250000 };
    char *text = ifd_acquire(ifd_alloc_system(), DEEP);
    REQUIRE(text != NULL);
    memset(text, '[', DEEP);
    EXPECT_HAS(fault_sized(text, DEEP), "nests deeper than 100 levels, at byte 100");
    for (size_t i = 0; i + 5 <= DEEP; i += 5) {
        memcpy(text + i, "{\"a\":", 5);
    }
    EXPECT_HAS(fault_sized(text, DEEP), "nests deeper than 100 levels");
    memset(text, '[', 100);
    memset(text + 100, ']', 100);
    EXPECT_TEXT(fault_sized(text, 200), "");
    ifd_release(ifd_alloc_system(), text, DEEP);
}

static void strings_are_unescaped(void)
{
    struct reading reading;
    struct ifd_str text = {0};
    static const char escaped[] =
        "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\\u0000z\"";
    static const char want[] = "a\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\0z";
    start(&reading, escaped, sizeof(escaped) - 1);
    EXPECT(ifd_json_text(&reading.in, &text));
    EXPECT_INT(text.size, sizeof(want) - 1);
    EXPECT_BYTES(text.data, want, sizeof(want) - 1);
    ifd_arena_finish(&reading.arena);
}

static void strings_without_escapes_are_not_copied(void)
{
    struct reading reading;
    struct ifd_str text = {0};
    static const char plain[] = "  \"gr\xc3\xbc\xc3\x9f\"";
    start(&reading, plain, sizeof(plain) - 1);
    EXPECT(ifd_json_text(&reading.in, &text));
    EXPECT(text.data == plain + 3);
    EXPECT_INT(reading.arena.used_bytes, 0);
    ifd_arena_finish(&reading.arena);
}

static void a_walk_sees_members_and_items_in_order(void)
{
    static const char text[] = "{\"n\":[18446744073709551615,2],\"skip\":{\"x\":[{}]},\"t\":true}";
    struct reading reading;
    struct ifd_str key;
    uint64_t first = 0, second = 0;
    bool truth = false;
    int members = 0;
    start(&reading, text, sizeof(text) - 1);
    EXPECT(ifd_json_open(&reading.in, '{'));
    while (ifd_json_member(&reading.in, &key)) {
        members++;
        if (ifd_str_equal(key, "n")) {
            EXPECT(ifd_json_open(&reading.in, '['));
            EXPECT(ifd_json_item(&reading.in) && ifd_json_u64(&reading.in, &first));
            EXPECT(ifd_json_item(&reading.in) && ifd_json_u64(&reading.in, &second));
            EXPECT(!ifd_json_item(&reading.in));
        } else if (ifd_str_equal(key, "t")) {
            EXPECT(ifd_json_bool(&reading.in, &truth));
        } else {
            EXPECT(ifd_json_skip(&reading.in));
        }
    }
    EXPECT(ifd_json_finish(&reading.in));
    EXPECT_INT(members, 3);
    EXPECT(first == UINT64_MAX && second == 2 && truth);
    ifd_arena_finish(&reading.arena);
}

static void the_first_fault_stays(void)
{
    struct reading reading;
    struct ifd_str text;
    uint64_t value = 0;
    start(&reading, "-5 \"x\"", 6);
    EXPECT(!ifd_json_u64(&reading.in, &value));
    EXPECT(!ifd_json_text(&reading.in, &text));
    EXPECT(!ifd_json_skip(&reading.in));
    EXPECT_TEXT(reading.err.text, "-5 is not an integer of 0 … 2^64-1, at byte 0");
    EXPECT_INT(reading.in.code, IFD_INVALID);
    ifd_arena_finish(&reading.arena);
}

static void a_failed_copy_of_a_string_is_out_of_memory(void)
{
    struct reading reading;
    struct ifd_str text;
    start(&reading, "\"\\n0123456789\"", 14);
    reading.arena.cap_bytes = 4;
    EXPECT(!ifd_json_text(&reading.in, &text));
    EXPECT_INT(reading.in.code, IFD_TOO_LARGE);
    ifd_arena_finish(&reading.arena);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(well_formed_texts_are_taken),
        T(malformed_texts_are_refused_with_their_place),
        T(every_cut_of_a_text_is_refused),
        T(nesting_is_bounded),
        T(strings_are_unescaped),
        T(strings_without_escapes_are_not_copied),
        T(a_walk_sees_members_and_items_in_order),
        T(the_first_fault_stays),
        T(a_failed_copy_of_a_string_is_out_of_memory),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

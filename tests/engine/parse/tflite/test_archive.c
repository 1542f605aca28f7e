/* Members of a ZIP archive behind other bytes, and damaged archives. The archives here are
 * written by hand; those in tests/fuzz/corpus/tflite by Python. */
#include "engine/parse/tflite/archive.h"

#include <string.h>

#include "tests/support/fail_alloc.h"
#include "tests/support/test.h"

/* "PREFIX", then a.txt, stored: "hello", with the checksum 3610a686 that zlib, Python and unzip
 * compute. Offsets count from the archive's beginning. */
enum {
    PREFIX = 6,
    LOCAL = 30 + 5 + 5,
    ENTRY = 46 + 5,
    END = 22,
    ALL = PREFIX + LOCAL + ENTRY + END
};
static const uint8_t stored[ALL + 1] =
    "PREFIX"
    /* local header */
    "PK\x03\x04\x14\0\0\0\0\0\0\0\0\0"
    "\x86\xa6\x10\x36\x05\0\0\0\x05\0\0\0\x05\0\0\0"
    "a.txthello"
    /* directory */
    "PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0"
    "\x86\xa6\x10\x36\x05\0\0\0\x05\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "a.txt"
    /* end */
    "PK\x05\x06\0\0\0\0\x01\0\x01\0\x33\0\0\0\x28\0\0\0\0\0";

struct attempt {
    struct ifd_arena arena;
    struct ifd_bytes content;
    struct ifd_err err;
    enum ifd_code code;
};

static void attempt(struct attempt *a, const uint8_t *data, size_t size, const char *name,
                    size_t limit)
{
    *a = (struct attempt){0};
    ifd_arena_init(&a->arena, ifd_alloc_system(), 0);
    a->code = ifd_archive_read((struct ifd_bytes){.data = data, .size = size}, name, limit,
                               &a->arena, &a->content, &a->err);
}

static void a_stored_member_is_found_behind_other_bytes(void)
{
    struct attempt a;
    attempt(&a, stored, ALL, "a.txt", 100);
    REQUIRE_OK(a.code, &a.err);
    EXPECT_INT(a.content.size, 5);
    EXPECT_TEXT((const char *)a.content.data, "hello");
    ifd_arena_finish(&a.arena);
}

static void no_archive_and_no_such_member_give_nothing(void)
{
    struct attempt a;
    attempt(&a, stored, ALL, "b.txt", 100);
    REQUIRE_OK(a.code, &a.err);
    EXPECT(a.content.data == NULL && a.content.size == 0);
    ifd_arena_finish(&a.arena);
    attempt(&a, stored, ALL - 1, "a.txt", 100);
    REQUIRE_OK(a.code, &a.err);
    EXPECT(a.content.data == NULL);
    ifd_arena_finish(&a.arena);
    attempt(&a, NULL, 0, "a.txt", 100);
    REQUIRE_OK(a.code, &a.err);
    ifd_arena_finish(&a.arena);
}

static void expect(size_t at, uint8_t value, enum ifd_code code, const char *part)
{
    uint8_t copy[ALL];
    struct attempt a;
    memcpy(copy, stored, ALL);
    copy[at] = value;
    attempt(&a, copy, ALL, "a.txt", 100);
    EXPECT_CODE(a.code, code, &a.err);
    EXPECT_HAS(a.err.text, part);
    ifd_arena_finish(&a.arena);
}

static void damaged_archives_are_refused(void)
{
    const size_t entry = PREFIX + LOCAL;
    const size_t end = entry + ENTRY;
    expect(end + 13, 0xff, IFD_CORRUPT, "directory");                 /* directory size */
    expect(entry + 45, 0xff, IFD_CORRUPT, "lies outside");            /* offset of the member */
    expect(entry + 42, 1, IFD_CORRUPT, "lie outside");                /* not a header there */
    expect(entry + 20, 60, IFD_CORRUPT, "lie outside");               /* packed size */
    expect(entry + 24, 6, IFD_CORRUPT, "5 stored bytes, expected 6"); /* size */
    expect(entry + 16, 0, IFD_CORRUPT, "\"a.txt\": archive: wrong checksum"); /* checksum */
    expect(entry + 10, 8, IFD_CORRUPT, "deflated data are damaged");          /* method */
    expect(entry + 10, 9, IFD_UNSUPPORTED, "method 9");
    expect(entry + 8, 1, IFD_UNSUPPORTED, "flags 1"); /* encrypted */
    expect(PREFIX + LOCAL - 1, 'O', IFD_CORRUPT, "wrong checksum");
}

static void a_member_beyond_the_limit_is_refused(void)
{
    struct attempt a;
    attempt(&a, stored, ALL, "a.txt", 4);
    EXPECT_CODE(a.code, IFD_TOO_LARGE, &a.err);
    EXPECT_HAS(a.err.text, "5 bytes, limit 4");
    ifd_arena_finish(&a.arena);
}

static void any_byte_may_be_anything(void)
{
    uint8_t copy[ALL];
    struct attempt a;
    for (size_t at = 0; at < ALL; at++) {
        for (int value = 0; value < 256; value += 5) {
            memcpy(copy, stored, ALL);
            copy[at] = (uint8_t)value;
            attempt(&a, copy, ALL, "a.txt", 100);
            EXPECT(a.code == IFD_OK || a.code == IFD_CORRUPT || a.code == IFD_UNSUPPORTED ||
                   a.code == IFD_TOO_LARGE);
            ifd_arena_finish(&a.arena);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(a_stored_member_is_found_behind_other_bytes),
        T(no_archive_and_no_such_member_give_nothing),
        T(damaged_archives_are_refused),
        T(a_member_beyond_the_limit_is_refused),
        T(any_byte_may_be_anything),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* FlexBuffer maps: bytes written by FlatBuffers' Python package (25.12), and damaged ones. */
#include "engine/parse/tflite/flexbuffer.h"

#include <string.h>

#include "inferd/alloc.h"

#include "tests/support/test.h"

/* {small: -3, large: -70000, unsigned: 200, half: 0.5, third: 1/3, yes: true, no: false, text:
 * "abc"} */
static const uint8_t mixed[] = {
    0x73, 0x6d, 0x61, 0x6c, 0x6c, 0x00, 0x6c, 0x61, 0x72, 0x67, 0x65, 0x00, 0x75, 0x6e, 0x73,
    0x69, 0x67, 0x6e, 0x65, 0x64, 0x00, 0x68, 0x61, 0x6c, 0x66, 0x00, 0x74, 0x68, 0x69, 0x72,
    0x64, 0x00, 0x79, 0x65, 0x73, 0x00, 0x6e, 0x6f, 0x00, 0x74, 0x65, 0x78, 0x74, 0x00, 0x03,
    0x61, 0x62, 0x63, 0x00, 0x08, 0x1d, 0x2d, 0x10, 0x35, 0x0f, 0x1d, 0x2c, 0x19, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x0e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xe0, 0x3f, 0x90, 0xee, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0x4b, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0xd5,
    0x3f, 0xc8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x0f, 0x07, 0x6b, 0x07, 0x14, 0x0f, 0x07, 0x6b, 0x48, 0x27, 0x01,
};

/* {a: 1, b: -2} */
static const uint8_t narrow[] = {
    0x61, 0x00, 0x62, 0x00, 0x02, 0x05, 0x04, 0x02, 0x01,
    0x02, 0x01, 0xfe, 0x04, 0x04, 0x04, 0x24, 0x01,
};

/* {a: [3, -300, 7], b: [1.5, 2.5], c: 4}: lists of one type */
static const uint8_t lists[] = {
    0x61, 0x00, 0x03, 0x00, 0x03, 0x00, 0xd4, 0xfe, 0x07, 0x00, 0x62, 0x00, 0x02, 0x00,
    0x00, 0x00, 0x00, 0x00, 0xc0, 0x3f, 0x00, 0x00, 0x20, 0x40, 0x63, 0x00, 0x03, 0x1b,
    0x12, 0x05, 0x03, 0x01, 0x03, 0x1d, 0x12, 0x04, 0x2d, 0x36, 0x04, 0x06, 0x24, 0x01,
};

static struct ifd_bytes bytes_of(const uint8_t *data, size_t size)
{
    return (struct ifd_bytes){.data = data, .size = size};
}

static double number(const struct ifd_flex_map *map, const char *key)
{
    double value = -12345;
    EXPECT(ifd_flex_number(map, key, &value));
    return value;
}

static void numbers_of_every_kind_and_width_are_read(void)
{
    struct ifd_flex_map map;
    REQUIRE(ifd_flex_open(bytes_of(mixed, sizeof(mixed)), &map));
    EXPECT_INT(map.count, 8);
    EXPECT_CLOSE(number(&map, "small"), -3, 0);
    EXPECT_CLOSE(number(&map, "large"), -70000, 0);
    EXPECT_CLOSE(number(&map, "unsigned"), 200, 0);
    EXPECT_CLOSE(number(&map, "half"), 0.5, 0);
    EXPECT_CLOSE(number(&map, "third"), 1.0 / 3, 1e-15);
    EXPECT_CLOSE(number(&map, "yes"), 1, 0);
    EXPECT_CLOSE(number(&map, "no"), 0, 0);
    REQUIRE(ifd_flex_open(bytes_of(narrow, sizeof(narrow)), &map));
    EXPECT_CLOSE(number(&map, "a"), 1, 0);
    EXPECT_CLOSE(number(&map, "b"), -2, 0);
}

static void what_is_no_number_or_not_there_is_not_found(void)
{
    struct ifd_flex_map map;
    double value = 0;
    REQUIRE(ifd_flex_open(bytes_of(mixed, sizeof(mixed)), &map));
    EXPECT(!ifd_flex_number(&map, "text", &value));
    EXPECT(!ifd_flex_number(&map, "smal", &value));
    EXPECT(!ifd_flex_number(&map, "smalls", &value));
    EXPECT(!ifd_flex_number(&map, "", &value));
}

static void what_is_no_map_is_refused(void)
{
    struct ifd_flex_map map;
    static const uint8_t lone_number[] = {7, 4, 1};
    static const uint8_t wide_root[] = {0, 9 << 2, 200};
    EXPECT(!ifd_flex_open(bytes_of(NULL, 0), &map));
    EXPECT(!ifd_flex_open(bytes_of(lone_number, 3), &map));
    EXPECT(!ifd_flex_open(bytes_of(wide_root, 3), &map));
}

/* Damage may change a number, but never causes reads outside: AddressSanitizer watches a block
 * of exactly that size. */
static void read_damaged(const uint8_t *data, size_t size)
{
    struct ifd_flex_map map;
    double value = 0;
    int32_t list[3];
    uint32_t count = 0;
    uint8_t *copy = ifd_acquire(ifd_alloc_system(), size);
    REQUIRE(copy != NULL);
    memcpy(copy, data, size);
    if (ifd_flex_open(bytes_of(copy, size), &map)) {
        (void)!ifd_flex_number(&map, "third", &value);
        (void)!ifd_flex_number(&map, "zzz", &value);
        (void)!ifd_flex_ints(&map, "a", list, 3, &count);
    }
    ifd_release(ifd_alloc_system(), copy, size);
}

static void lists_of_integers_are_read(void)
{
    struct ifd_flex_map map;
    int32_t got[3] = {0};
    uint32_t count = 0;
    REQUIRE(ifd_flex_open(bytes_of(lists, sizeof(lists)), &map));
    EXPECT(ifd_flex_ints(&map, "a", got, 3, &count));
    EXPECT_INT(count, 3);
    EXPECT_INT(got[0], 3);
    EXPECT_INT(got[1], -300);
    EXPECT_INT(got[2], 7);
    EXPECT(!ifd_flex_ints(&map, "a", got, 2, &count)); /* too long */
    EXPECT(!ifd_flex_ints(&map, "b", got, 3, &count)); /* no integers */
    EXPECT(!ifd_flex_ints(&map, "c", got, 3, &count)); /* no list */
    EXPECT(!ifd_flex_ints(&map, "d", got, 3, &count)); /* not there */
}

static void damage(const uint8_t *whole, size_t bytes)
{
    uint8_t copy[sizeof(mixed)];
    REQUIRE(bytes <= sizeof(copy));
    for (size_t size = 1; size <= bytes; size++) {
        read_damaged(whole, size);
        read_damaged(whole + bytes - size, size); /* keeps the root without its target */
    }
    for (size_t at = 0; at < bytes; at++) {
        for (int value = 0; value < 256; value++) {
            memcpy(copy, whole, bytes);
            copy[at] = (uint8_t)value;
            read_damaged(copy, bytes);
        }
    }
}

static void damaged_maps_are_read_inside_their_bytes(void)
{
    damage(mixed, sizeof(mixed));
    damage(lists, sizeof(lists));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(numbers_of_every_kind_and_width_are_read),
        T(what_is_no_number_or_not_there_is_not_found),
        T(lists_of_integers_are_read),
        T(what_is_no_map_is_refused),
        T(damaged_maps_are_read_inside_their_bytes),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

#include "engine/base/mac.h"
#include "tests/support/test.h"

#include <string.h>

#define PRIME (((uint64_t)1 << 61) - 1)
#define SIZE  ((size_t)1000)

/* a × b by doubling and adding, bit by bit. */
static uint64_t slow_multiply(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    for (; b > 0; b >>= 1) {
        product = b & 1 ? (product + a) % PRIME : product;
        a = 2 * a % PRIME;
    }
    return product;
}

/* The definition, word by word. */
static uint64_t slow_sum(uint64_t point, uint64_t sum, const uint8_t *data, size_t size)
{
    for (size_t at = 0; at < size; at += 7) {
        uint64_t word = 0;
        for (size_t i = 0; i < 7 && at + i < size; i++) {
            word += (uint64_t)data[at + i] << 8 * i;
        }
        sum = (slow_multiply(sum, point) + word) % PRIME;
    }
    return (slow_multiply(sum, point) + size + 1) % PRIME;
}

static void fill(uint8_t *data, size_t size, struct test_random *random)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t)test_random_u64(random);
    }
}

static uint64_t sum_of(const uint8_t *key, const uint8_t *data, size_t size)
{
    struct ifd_mac mac;
    ifd_mac_start(&mac, key);
    ifd_mac_add(&mac, data, size);
    return ifd_mac_sum(&mac);
}

static void sum_is_the_polynomial_for_every_size_and_key(void)
{
    struct test_random random = {.state = 1};
    static uint8_t data[SIZE];
    for (size_t size = 0; size < SIZE; size += 1 + size / 60) {
        uint8_t key[IFD_MAC_KEY_BYTES];
        struct ifd_mac mac;
        fill(key, sizeof(key), &random);
        fill(data, size, &random);
        memset(data, size % 3 == 0 ? 0xff : data[0], size / 2);
        ifd_mac_start(&mac, key);
        const uint64_t first = slow_sum(mac.point, 0, data, size);
        ifd_mac_add(&mac, data, size);
        EXPECT_INT(ifd_mac_sum(&mac), first);
        ifd_mac_add(&mac, data, size / 2);
        EXPECT_INT(ifd_mac_sum(&mac), slow_sum(mac.point, first, data, size / 2));
    }
}

static void every_changed_bit_and_length_changes_the_sum(void)
{
    struct test_random random = {.state = 2};
    static uint8_t data[SIZE];
    uint8_t key[IFD_MAC_KEY_BYTES];
    fill(key, sizeof(key), &random);
    fill(data, SIZE, &random);
    const uint64_t whole = sum_of(key, data, SIZE);
    for (size_t bit = 0; bit < 8 * SIZE; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        EXPECT(sum_of(key, data, SIZE) != whole);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memset(data, 0, SIZE);
    for (size_t size = 1; size < SIZE; size++) {
        EXPECT(sum_of(key, data, size) != sum_of(key, data, size - 1));
    }
    key[1] ^= 1;
    EXPECT(sum_of(key, data, SIZE) != whole);
}

static void pieces_are_told_apart(void)
{
    struct test_random random = {.state = 3};
    static uint8_t data[SIZE];
    struct ifd_mac mac;
    uint8_t key[IFD_MAC_KEY_BYTES];
    fill(key, sizeof(key), &random);
    fill(data, SIZE, &random);
    const uint64_t whole = sum_of(key, data, SIZE);
    for (size_t cut = 0; cut <= SIZE; cut += 7) {
        ifd_mac_start(&mac, key);
        ifd_mac_add(&mac, data, cut);
        ifd_mac_add(&mac, data + cut, SIZE - cut);
        EXPECT(ifd_mac_sum(&mac) != whole);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(sum_is_the_polynomial_for_every_size_and_key),
        T(every_changed_bit_and_length_changes_the_sum),
        T(pieces_are_told_apart),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

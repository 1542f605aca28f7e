#include "engine/base/mac.h"
#include "tests/support/test.h"

#include <string.h>

#define PRIME (((uint64_t)1 << 61) - 1)
#define SIZE  ((size_t)5000)

/* a × b by doubling and adding. */
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
static uint64_t slow_add(uint64_t sum, uint64_t point, uint64_t number)
{
    sum = (slow_multiply(sum, point) + number % 4294967296u) % PRIME;
    return (slow_multiply(sum, point) + number / 4294967296u) % PRIME;
}

static uint32_t word_at(const uint8_t *data, size_t size, size_t index)
{
    uint32_t word = 0;
    for (size_t i = 0; i < 4; i++) {
        const size_t at = 4 * index + i;
        word |= (uint32_t)(at < size ? data[at] : 0) << 8 * i;
    }
    return word;
}

static uint64_t slow_sum(const struct ifd_mac *mac, uint64_t sum, const uint8_t *data, size_t size)
{
    for (size_t block = 0; block * 256 < (size + 3) / 4; block++) {
        uint64_t products = 0;
        for (size_t i = 0; i < 256; i += 2) {
            const uint32_t a = word_at(data, size, block * 256 + i) + mac->word[i];
            const uint32_t b = word_at(data, size, block * 256 + i + 1) + mac->word[i + 1];
            products += (uint64_t)a * b;
        }
        sum = slow_add(sum, mac->point, products);
    }
    return slow_add(sum, mac->point, size + 1);
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
        const uint64_t first = slow_sum(&mac, 0, data, size);
        ifd_mac_add(&mac, data, size);
        EXPECT_INT(ifd_mac_sum(&mac), first);
        ifd_mac_add(&mac, data, size / 2);
        EXPECT_INT(ifd_mac_sum(&mac), slow_sum(&mac, first, data, size / 2));
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
    for (size_t bit = 0; bit < 8 * SIZE; bit += 7) {
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
    for (size_t cut = 0; cut <= SIZE; cut += 31) {
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

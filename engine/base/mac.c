/* NH over blocks, which compilers vectorize, and Horner's rule over their sums. */
#include "engine/base/mac.h"

#include <string.h>

#define PRIME       (((uint64_t)1 << 61) - 1)
#define BLOCK_BYTES ((size_t)IFD_MAC_BLOCK_WORDS * sizeof(uint32_t))

/* a × b modulo the prime, for a below 2^63. If b is below 2^60, the result is below a / 2 +
 * 2^61: sums of these products and words of 32 bits never reach 2^63 and need no further
 * reduction. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 wide;
    const wide product = (wide)a * b;
    return ((uint64_t)product & PRIME) + (uint64_t)(product >> 61);
#else
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32);
    const uint64_t other = a0 * b1 + (uint32_t)middle;
    const uint64_t high = a1 * b1 + (middle >> 32) + (other >> 32);
    const uint64_t bottom = other << 32 | (uint32_t)low;
    return (bottom & PRIME) + (high << 3 | bottom >> 61);
#endif
}

static void add_word(struct ifd_mac *mac, uint32_t word)
{
    mac->sum = multiply(mac->sum, mac->point) + word;
}

static void add_number(struct ifd_mac *mac, uint64_t number)
{
    add_word(mac, (uint32_t)number);
    add_word(mac, (uint32_t)(number >> 32));
}

/* Words are in this machine's byte order: sums of other machines may differ. */
static void add_block(struct ifd_mac *mac, const uint8_t *block)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < IFD_MAC_BLOCK_WORDS; i += 2) {
        uint32_t a = 0, b = 0;
        memcpy(&a, block + i * sizeof(a), sizeof(a));
        memcpy(&b, block + (i + 1) * sizeof(b), sizeof(b));
        sum += (uint64_t)(a + mac->word[i]) * (b + mac->word[i + 1]);
    }
    add_number(mac, sum);
}

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void ifd_mac_start(struct ifd_mac *mac, const uint8_t key[IFD_MAC_KEY_BYTES])
{
    uint64_t state = 0;
    memcpy(&state, key, sizeof(state));
    mac->point = next(&state) >> 4;
    for (size_t i = 0; i < IFD_MAC_BLOCK_WORDS; i++) {
        mac->word[i] = (uint32_t)next(&state);
    }
    mac->sum = 0;
}

void ifd_mac_add(struct ifd_mac *mac, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    size_t left = size;
    for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES, bytes += BLOCK_BYTES) {
        add_block(mac, bytes);
    }
    if (left > 0) {
        uint8_t block[BLOCK_BYTES] = {0};
        memcpy(block, bytes, left);
        add_block(mac, block);
    }
    add_number(mac, (uint64_t)size + 1); /* an empty chunk counts, too */
}

uint64_t ifd_mac_sum(const struct ifd_mac *mac)
{
    return mac->sum % PRIME;
}

/* Horner's rule, in eight interleaved lanes so that a product need not wait for the one before. */
#include "engine/base/mac.h"

#include <string.h>

#define PRIME (((uint64_t)1 << 61) - 1)
#define LANES 8
#define WORD  7 /* bytes */

#define FACTOR_MAX ((uint64_t)1 << 60)

/* a × b for a below 2^63. Less than a / 2 + 2^61 if b is below 2^60: sums of such products and words need no more
 * reduction, they never reach 2^63. */
static inline uint64_t multiply(uint64_t a, uint64_t b)
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

static inline uint64_t word_at(const uint8_t *data, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) {
        word |= (uint64_t)data[i] << 8 * i;
    }
    return word;
}

/* Reads 8 bytes, of which 7 count. */
static inline uint64_t full_word(const uint8_t *data)
{
    uint64_t word = 0;
    memcpy(&word, data, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word & (((uint64_t)1 << 8 * WORD) - 1);
}

/* Whole groups of LANES words; returns how many bytes they are. One more byte than they have is readable. */
static size_t add_groups(struct ifd_mac *mac, const uint8_t *data, size_t size)
{
    const size_t step = (size_t)LANES * WORD;
    size_t done = 0;
    if (size <= 4 * step) {
        return 0;
    }
    uint64_t lane[LANES] = {0};
    lane[LANES - 1] = mac->sum;
    for (; size - done > step; done += step) {
        for (size_t i = 0; i < LANES; i++) {
            lane[i] = multiply(lane[i], mac->power) + full_word(data + done + i * WORD);
        }
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < LANES; i++) {
        sum = multiply(sum, mac->point) + lane[i];
    }
    mac->sum = sum;
    return done;
}

static void add_word(struct ifd_mac *mac, uint64_t word)
{
    mac->sum = multiply(mac->sum, mac->point) + word;
}

/* Points whose power is no small factor are skipped: every other one. */
void ifd_mac_start(struct ifd_mac *mac, const uint8_t key[IFD_MAC_KEY_BYTES])
{
    uint64_t point = word_at(key, IFD_MAC_KEY_BYTES) % FACTOR_MAX, power = FACTOR_MAX;
    for (; power >= FACTOR_MAX; point = (point + 1) % FACTOR_MAX) {
        power = point;
        for (size_t lanes = 1; lanes < LANES; lanes *= 2) {
            power = multiply(power, power) % PRIME;
        }
        mac->point = point;
    }
    mac->power = power;
    mac->sum = 0;
}

void ifd_mac_add(struct ifd_mac *mac, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t at = add_groups(mac, bytes, size); at < size; at += WORD) {
        add_word(mac, word_at(bytes + at, size - at < WORD ? size - at : WORD));
    }
    add_word(mac, (uint64_t)size + 1); /* an empty piece counts, too */
}

uint64_t ifd_mac_sum(const struct ifd_mac *mac)
{
    return mac->sum % PRIME;
}

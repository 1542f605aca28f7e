/* Multiply and rotate, eight bytes a step. */
#include "server/repo/digest.h"

#include <string.h>

uint64_t ifd_digest_u64(uint64_t digest, uint64_t value)
{
    uint64_t mixed = (digest ^ value) * 0xff51afd7ed558ccdu;
    mixed ^= mixed >> 32;
    return mixed * 0xc4ceb9fe1a85ec53u + 0x9e3779b97f4a7c15u;
}

uint64_t ifd_digest_bytes(uint64_t digest, const void *data, size_t size)
{
    const uint8_t *at = data;
    size_t left = size;
    for (; left >= 8; left -= 8, at += 8) {
        uint64_t word = 0;
        memcpy(&word, at, 8);
        digest = ifd_digest_u64(digest, word);
    }
    uint64_t last = 0;
    if (left > 0) {
        memcpy(&last, at, left);
    }
    return ifd_digest_u64(ifd_digest_u64(digest, last), size);
}

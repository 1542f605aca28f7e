/** A fast keyed checksum of memory.
 *
 *  A block's sum adds products of pairs of 32-bit words, each with a word of the key added (NH
 *  of UMAC). Block sums are the coefficients of a polynomial, taken at a secret point modulo
 *  2^61 - 1. Without the key, finding two contents with equal sums, or changing one unnoticed,
 *  succeeds with a chance of 2^-32 per trial. Contents and sums may be public, the key must not.
 *  Thread: any. */
#ifndef INFERD_ENGINE_BASE_MAC_H
#define INFERD_ENGINE_BASE_MAC_H

#include <stddef.h>
#include <stdint.h>

#define IFD_MAC_KEY_BYTES   8
#define IFD_MAC_BLOCK_WORDS 256 /* of 32 bits */

struct ifd_mac {
    uint32_t word[IFD_MAC_BLOCK_WORDS]; /* derived from the key */
    uint64_t point;                     /* likewise; below 2^60 */
    uint64_t sum;
};

void ifd_mac_start(struct ifd_mac *mac, const uint8_t key[IFD_MAC_KEY_BYTES]);
/** Adds a chunk of the content. The sum depends on where chunks end. */
void ifd_mac_add(struct ifd_mac *mac, const void *data, size_t size);
/** Below 2^61. */
uint64_t ifd_mac_sum(const struct ifd_mac *mac);

#endif

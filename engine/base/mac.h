/** A fast keyed check sum of memory.
 *
 *  Blocks are summed up as products of pairs of 32-bit words, each shifted by a word of the key (NH of UMAC); these sums are
 *  the coefficients of a polynomial at a secret point modulo 2^61 - 1. Who does not know the key finds two contents with one
 *  sum, or changes one unnoticed, with a chance of 2^-32 for each trial. Contents and sums may be public, the key may not.
 *  Thread: any. */
#ifndef INFERD_ENGINE_BASE_MAC_H
#define INFERD_ENGINE_BASE_MAC_H

#include <stddef.h>
#include <stdint.h>

#define IFD_MAC_KEY_BYTES   8
#define IFD_MAC_BLOCK_WORDS 256 /* of 32 bits */

struct ifd_mac {
    uint32_t word[IFD_MAC_BLOCK_WORDS]; /* made of the key */
    uint64_t point;                     /* below 2^60, made of it, too */
    uint64_t sum;
};

void ifd_mac_start(struct ifd_mac *mac, const uint8_t key[IFD_MAC_KEY_BYTES]);
/** Adds a piece of the content. Where pieces end counts. */
void ifd_mac_add(struct ifd_mac *mac, const void *data, size_t size);
/** Below 2^61. */
uint64_t ifd_mac_sum(const struct ifd_mac *mac);

#endif

/** A fast keyed check sum of memory.
 *
 *  The content's 7-byte words are the coefficients of a polynomial, evaluated at a secret point modulo 2^61 - 1: who does
 *  not know the key finds two contents of n words with one sum, or changes one unnoticed, with a chance of n / 2^60 only
 *  (a model of 4 MB: one in 2^40). Contents and sums may be public, the key may not. Thread: any. */
#ifndef INFERD_ENGINE_BASE_MAC_H
#define INFERD_ENGINE_BASE_MAC_H

#include <stddef.h>
#include <stdint.h>

#define IFD_MAC_KEY_BYTES 8

struct ifd_mac {
    uint64_t point, power; /* the key, and its power by the number of lanes */
    uint64_t sum;
};

void ifd_mac_start(struct ifd_mac *mac, const uint8_t key[IFD_MAC_KEY_BYTES]);
/** Adds a piece of the content. Where pieces end counts. */
void ifd_mac_add(struct ifd_mac *mac, const void *data, size_t size);
/** Below 2^61. */
uint64_t ifd_mac_sum(const struct ifd_mac *mac);

#endif

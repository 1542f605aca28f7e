/** SHA-256 and its 64 hexadecimal digits. The only place that uses nettle. Thread: any. */
#ifndef INFERD_SERVER_HASH_SHA256_H
#define INFERD_SERVER_HASH_SHA256_H

#include <nettle/sha2.h>

#include "inferd/types.h"

#define IFD_SHA256_BYTES  32
#define IFD_SHA256_DIGITS (2 * IFD_SHA256_BYTES)

/** A sum in progress. */
struct ifd_sha256 {
    struct sha256_ctx library;
};

void ifd_sha256_begin(struct ifd_sha256 *sum);
void ifd_sha256_add(struct ifd_sha256 *sum, const void *data, size_t size);
void ifd_sha256_end(struct ifd_sha256 *sum, uint8_t ret_sum[IFD_SHA256_BYTES]);

/** Reads the IFD_SHA256_DIGITS digits that text begins with; false: there are fewer, and ret_sum is
 *  undefined. */
IFD_NODISCARD bool ifd_sha256_read(struct ifd_str text, uint8_t ret_sum[IFD_SHA256_BYTES]);

/** Takes the same time wherever a and b differ. The only permitted comparison of secrets
 *  (lint.banned). */
bool ifd_sha256_is_same(const uint8_t a[IFD_SHA256_BYTES], const uint8_t b[IFD_SHA256_BYTES]);

#endif

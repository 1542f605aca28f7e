/** A 64-bit digest that detects changes of content; not safe against an adversary. Thread: any. */
#ifndef INFERD_SERVER_REPO_DIGEST_H
#define INFERD_SERVER_REPO_DIGEST_H

#include "inferd/types.h"

#define IFD_DIGEST_START 0x9e3779b97f4a7c15u

/** Continues digest over these bytes and their number. */
uint64_t ifd_digest_bytes(uint64_t digest, const void *data, size_t size);
uint64_t ifd_digest_u64(uint64_t digest, uint64_t value);

#endif

/** What the fuzz targets of models put into tensors, and how they tell whether two backends answer
 *  the same. Thread: one at a time. */
#ifndef INFERD_TESTS_FUZZ_SAME_H
#define INFERD_TESTS_FUZZ_SAME_H

#include "inferd/types.h"

/** Content of count elements that depends on seed only: zeros, bytes of 1, or numbers that
 *  operators can use. */
void fuzz_fill(struct ifd_tensor *tensor, size_t count, uint32_t seed);

/** Moves every float a little: by 1 / 4096 of it, up or down. False if the tensor has none. */
bool fuzz_move(struct ifd_tensor *tensor, uint32_t seed);

/** Whether content holds a float that is not finite or exceeds 10^6. Masks, which are as far below
 *  0, are not meant. */
bool fuzz_is_wild(enum ifd_dtype dtype, struct ifd_bytes content);

/** How far a is from b, which has the same type and size. Integers, booleans, texts: the largest
 *  difference. Floats: likewise, over the largest number of b. Elements that are not finite in a or
 *  in b do not count if b has such elements; otherwise they are infinitely far. */
double fuzz_distance(const struct ifd_tensor *a, const struct ifd_tensor *b);

/** Distance that two ways of rounding explain: 0 but for floats. */
double fuzz_tolerance(enum ifd_dtype dtype);

#endif

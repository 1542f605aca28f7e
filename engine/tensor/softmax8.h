/** Softmax of 8-bit numbers in the fixed-point arithmetic of LiteRT's reference kernels
 *  (polynomials of gemmlowp's fixed-point library), shared by the reference kernel and the CPU
 *  backend so that both give the same bytes.
 *
 *  An exponential depends only on the distance to the row's maximum, and there are 256
 *  distances. A row is computed in three steps: its maximum, the sum of table.rounded over the
 *  distances, ifd_softmax8_steps() for every distance. Thread: any, on different tables. */
#ifndef INFERD_ENGINE_TENSOR_SOFTMAX8_H
#define INFERD_ENGINE_TENSOR_SOFTMAX8_H

#include <stdint.h>

struct ifd_softmax8 {
    int32_t exponential[256]; /* of -distance * factor, 31 fraction bits */
    int32_t rounded[256];     /* the same with 19 fraction bits, for the sum */
};

/** The exponent has 26 fraction bits: factors must be larger. */
#define IFD_SOFTMAX8_FACTOR_MIN 0x1p-26

/** factor: from a distance of stored numbers to the exponent, beta × the input's scale. */
void ifd_softmax8_init(struct ifd_softmax8 *table, double factor);

/** A row's divisor, prepared from its sum. */
struct ifd_softmax8_row {
    int32_t reciprocal;
    int exponent;
};
struct ifd_softmax8_row ifd_softmax8_divide(int64_t sum);

/** An exponential's share of the row in steps of 1/256: 0 … 255. */
int32_t ifd_softmax8_steps(const struct ifd_softmax8_row *row, int32_t exponential);

#endif

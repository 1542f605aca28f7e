/* Hyperbolic tangent and logistic function of 16-bit fixed-point numbers, as gemmlowp computes
 * them: LiteRT's quantized LSTM is defined by their bits.
 *
 * A number has 15 - bits fraction digits, bits being its integer digits; results have none before
 * the point. Thread: any. */
#ifndef INFERD_ENGINE_TENSOR_FIXED16_H
#define INFERD_ENGINE_TENSOR_FIXED16_H

#include <stdint.h>

/** bits: 0 to 6. */
int16_t ifd_fixed16_tanh(int16_t x, int bits);
int16_t ifd_fixed16_logistic(int16_t x, int bits);

#endif

/** Logarithms of the softmax of 8-bit numbers in integers, shared by the reference kernel and
 *  GpuAcc so that both give the same bytes; LiteRT's are at most one step off.
 *
 *  An exponential depends only on the distance to the row's maximum, and there are 256 distances.
 *  A row: its maximum, the sum of table.exponential over the distances, ifd_log_softmax8_log() of
 *  it, and ifd_log_softmax8_steps() for every distance. Thread: any, on different tables. */
#ifndef INFERD_ENGINE_TENSOR_LOG_SOFTMAX8_H
#define INFERD_ENGINE_TENSOR_LOG_SOFTMAX8_H

#include <stdint.h>

struct ifd_log_softmax8 {
    uint32_t exponential[256]; /* of -distance * scale, 30 fraction bits */
    int32_t steps[256];        /* distances in steps of the result, 16 fraction bits */
    int32_t fraction, shift;   /* of the factor from logarithms of base 2 to such steps */
};

/** scale, step: of the operand and of the result; > 0. */
void ifd_log_softmax8_init(struct ifd_log_softmax8 *table, double scale, double step);

/** The logarithm of a row's sum in steps, 16 fraction bits. */
int32_t ifd_log_softmax8_log(const struct ifd_log_softmax8 *table, uint64_t sum);

/** How far below the zero point a result is stored: 0 … 2048. */
static inline int32_t ifd_log_softmax8_steps(const struct ifd_log_softmax8 *table, int32_t log,
                                             int32_t distance)
{
    return (table->steps[distance] + log + (1 << 15)) >> 16;
}

#endif

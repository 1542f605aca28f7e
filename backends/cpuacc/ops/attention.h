/** Products of matrices that nobody packed, and two of them around a softmax as one step. */
#ifndef INFERD_BACKENDS_CPUACC_OPS_ATTENTION_H
#define INFERD_BACKENDS_CPUACC_OPS_ATTENTION_H

#include "backends/cpuacc/driver.h"

/** batches products [rows, k] x [k, n]. */
struct ifd_acc_matrices {
    size_t rows, n, k, batches;
    size_t a_row, a_step; /* elements of a from row to row, and in a row */
    const size_t *a, *b;  /* per batch: first element of each operand */
};

/** First element of an operand for each matrix of the result out; leading dimensions of 1
 *  repeat. */
void ifd_acc_find_matrices(const struct ifd_shape *out, const struct ifd_shape *operand,
                           size_t batches, size_t *ret);
/** count rows of one product, from a on; out has rows of n. */
void ifd_acc_multiply(const struct ifd_acc_step *step, const struct ifd_acc_matrices *matrices,
                      const float *a, const float *b, size_t count, float *out);

/** Lowers a product together with the softmax and the second product behind it, if they are
 *  there. */
IFD_NODISCARD enum ifd_code ifd_acc_attention(struct ifd_acc_lowering *lowering,
                                              const struct ifd_partition_node *node,
                                              const struct ifd_acc_matrices *product,
                                              bool *ret_done, struct ifd_err *err);

#endif

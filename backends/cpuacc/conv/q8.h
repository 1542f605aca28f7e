/** Sums of 8-bit products, for the direct algorithms. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_Q8_H
#define INFERD_BACKENDS_CPUACC_CONV_Q8_H

#include "backends/cpuacc/conv/layer.h"

/** Sets direct->multiply; limits the rows of a call where 32-bit sums wait in work memory. */
void ifd_acc_q8_choose_multiply(const struct ifd_acc_layer *layer, struct ifd_acc_direct *direct);
/** Work memory for 32-bit sums of an exact fully connected layer. */
size_t ifd_acc_q8_exact_bytes(const struct ifd_acc_layer *layer, size_t rows);
/** Begins an image of a dynamic layer: its offsets and scales go to work memory. */
void ifd_acc_q8_begin_image(struct ifd_acc_conv_run *run, size_t image);
/** The byte that stands for zero in the input; 0 for floats. */
int ifd_acc_q8_zero_byte(const struct ifd_acc_conv_run *run);

#endif

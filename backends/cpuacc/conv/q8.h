/** Sums of 8-bit products, for the direct algorithms. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_Q8_H
#define INFERD_BACKENDS_CPUACC_CONV_Q8_H

#include "backends/cpuacc/conv/layer.h"

/** Sets direct->multiply; fewer rows a call where they wait as 32-bit sums. */
void ifd_acc_q8_choose_multiply(const struct ifd_acc_layer *layer, struct ifd_acc_direct *direct);
/** Work memory for so many rows of 32-bit sums of an exact fully connected layer. */
size_t ifd_acc_q8_exact_bytes(const struct ifd_acc_layer *layer, size_t rows);
/** Turns to another image of a dynamic layer: its offsets and scales go to the work memory. */
void ifd_acc_q8_begin_image(struct ifd_acc_conv_run *run, size_t image);
/** Zero, as the input stores it. Floats are 0 in all bytes. */
int ifd_acc_q8_zero_byte(const struct ifd_acc_conv_run *run);

#endif

/** The rows of a direct algorithm: which pixels are one row, how many rows a call takes. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_SHAPE_H
#define INFERD_BACKENDS_CPUACC_CONV_SHAPE_H

#include "backends/cpuacc/conv/layer.h"

/** Elements of a line as the kernel reads it, with the padding that windows see. pixel: elements of
 *  a pixel. */
size_t ifd_acc_direct_line(const struct ifd_acc_layer *layer, size_t pixel);
/** Elements of padding at the start of a copied line: the whole line if windows see nothing
 *  else. */
size_t ifd_acc_direct_padding(const struct ifd_acc_layer *layer, size_t line, size_t pixel);

/** How many pixels to compute as one row: a power of two that divides `pixels`, those of a line (or
 *  of a sample, where lines do not matter). plan->direct: of single pixels. */
size_t ifd_acc_direct_choose_group(const struct ifd_acc_layer *layer,
                                   const struct ifd_acc_conv_plan *plan, size_t pixels);
/** Turns rows of single pixels into rows of groups. is_plain: lines do not matter. */
void ifd_acc_direct_group(struct ifd_acc_conv_plan *plan, size_t group, bool is_plain);

/** How many rows a call takes: their inputs should stay in the second-level cache while the weights
 *  pass block by block. row_bytes: bytes that a row reads. */
size_t ifd_acc_direct_choose_rows(const struct ifd_acc_layer *layer,
                                  const struct ifd_acc_conv_plan *plan, size_t row_bytes,
                                  const struct ifd_host *host);
/** How many output lines a call takes. element: bytes, as the kernel reads inputs. */
size_t ifd_acc_direct_choose_lines(const struct ifd_acc_layer *layer,
                                   const struct ifd_acc_conv_plan *plan, size_t element,
                                   const struct ifd_host *host);

#endif

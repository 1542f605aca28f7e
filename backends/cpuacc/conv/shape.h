/** The rows of a direct algorithm: which pixels are one row, how many rows a call takes. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_SHAPE_H
#define INFERD_BACKENDS_CPUACC_CONV_SHAPE_H

#include "backends/cpuacc/conv/layer.h"

/** Lines: elements of a line as the kernel reads it, with the padding that its windows see. pixel: elements of a pixel. */
size_t ifd_acc_direct_line(const struct ifd_acc_layer *layer, size_t pixel);
/** Elements of padding that a copied line begins with: all of the line where the windows see nothing else. */
size_t ifd_acc_direct_padding(const struct ifd_acc_layer *layer, size_t line, size_t pixel);

/** The number of pixels to compute as one row: a power of two that divides pixels, the pixels of a line (or, where lines do
 *  not matter, of a sample). plan->direct: of single pixels. */
size_t ifd_acc_direct_choose_group(const struct ifd_acc_layer *layer,
                                   const struct ifd_acc_conv_plan *plan, size_t pixels);
/** Makes rows of single pixels rows of groups. is_plain: lines do not matter. */
void ifd_acc_direct_group(struct ifd_acc_conv_plan *plan, size_t group, bool is_plain);

/** How many rows a call takes: their inputs should stay in the second-level cache while the weights go by block by block.
 *  row_bytes: that a row reads. */
size_t ifd_acc_direct_choose_rows(const struct ifd_acc_layer *layer,
                                  const struct ifd_acc_conv_plan *plan, size_t row_bytes,
                                  const struct ifd_host *host);
/** How many output lines a call takes. element: bytes, as the kernel reads inputs. */
size_t ifd_acc_direct_choose_lines(const struct ifd_acc_layer *layer,
                                   const struct ifd_acc_conv_plan *plan, size_t element,
                                   const struct ifd_host *host);

#endif

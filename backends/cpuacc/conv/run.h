/** What all algorithms share in a run: its state, sharing between threads, the tail. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_RUN_H
#define INFERD_BACKENDS_CPUACC_CONV_RUN_H

#include "backends/cpuacc/conv/layer.h"

void ifd_acc_conv_begin(struct ifd_acc_conv_run *run, const struct ifd_acc_step *step,
                        const struct ifd_acc_frame *frame);

/** Applies the layer's tail to the columns of args in rows that are made. */
void ifd_acc_conv_tail(const struct ifd_acc_conv_run *run, size_t first_row, size_t rows);

/** Far more weights than values of f32? */
bool ifd_acc_conv_is_heavy(const struct ifd_acc_layer *layer, size_t weights, size_t values);

/** Into how many chunks a thread's part may be cut; 1 where each call prepares all rows for a few
 *  columns, or reads weights that fill the cache. */
uint32_t ifd_acc_conv_chunks(const struct ifd_acc_load *load, uint32_t threads);

/** Splits items over the team in multiples of unit. Splits columns instead where there are too few
 *  items for all threads, or far more weights than values: each thread then reads its part of the
 *  weights only, at the price of values that other cores have made. */
struct ifd_acc_range ifd_acc_conv_share(struct ifd_acc_conv_run *run,
                                        const struct ifd_acc_frame *frame, size_t items,
                                        size_t unit);

/** Rows of a chunk at least: each chunk reads the weights. */
size_t ifd_acc_conv_least_rows(const struct ifd_acc_layer *layer);

/** The int32_t sums at the start of work memory. */
static inline int32_t *ifd_acc_conv_sums(const struct ifd_acc_conv_run *run)
{
    return (int32_t *)(void *)run->work;
}

/** Work memory behind the sums. */
static inline uint8_t *ifd_acc_direct_rest(const struct ifd_acc_conv_run *run)
{
    return run->work + run->conv->plan.direct.sums_bytes;
}

#endif

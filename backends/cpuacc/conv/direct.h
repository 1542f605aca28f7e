/** The direct algorithms multiply rows of the input with packed weights. This is what they
 *  share. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_DIRECT_H
#define INFERD_BACKENDS_CPUACC_CONV_DIRECT_H

#include "backends/cpuacc/conv/run.h"

/** Cost of a layer in multiply-accumulates per weight. products: rows that meet a weight.
 *  transform: operations for each value in and out of a product. far: cost of each of `matrices`
 *  weights of a channel that does not fit into the cache. */
double ifd_acc_direct_cost_of(const struct ifd_acc_lowering *lowering,
                              const struct ifd_acc_layer *layer, size_t matrices, double products,
                              double transform, int far);
/** Cost of a weight in multiply-accumulates: to read it from the cache, to read it from beyond, and
 *  to pack it too (memory, and time before the first answer). */
enum { IFD_ACC_READ_NEAR = 8, IFD_ACC_READ_FAR = 9, IFD_ACC_KEEP_FAR = 32 };

/** Cost of the direct way with kernels that are `speed` times as fast as those of f32 or 8 bits. */
double ifd_acc_direct_cost(const struct ifd_acc_lowering *lowering,
                           const struct ifd_acc_layer *layer, double speed);
double ifd_acc_direct_speed(const struct ifd_kern_gemm_f32 *gemm);

/** Begins a plan of single pixels, whose windows have taps of k inputs. */
void ifd_acc_direct_init(const struct ifd_acc_lowering *lowering, const struct ifd_acc_layer *layer,
                         const struct ifd_kern_gemm_f32 *gemm, size_t taps, size_t k,
                         struct ifd_acc_conv_plan *ret);
/** Completes a plan whose rows and calls are chosen: how sums are made, what threads share. units:
 *  of work that a thread can take. */
void ifd_acc_direct_finish(const struct ifd_acc_lowering *lowering,
                           const struct ifd_acc_layer *layer, bool prepares, size_t units,
                           struct ifd_acc_conv_plan *plan);

/** As plan->direct.fetch: rows of a plain layer as they lie. */
void ifd_acc_direct_fetch(struct ifd_acc_conv_run *run, const uint8_t *image, size_t first,
                          size_t count);
/** Rows of one call from row on, before end. */
size_t ifd_acc_direct_rows(struct ifd_acc_conv_run *run, size_t row, size_t end);
/** One call of the kernel, and the tail; args.a or rows, m and strides are set. */
void ifd_acc_direct_call(struct ifd_acc_conv_run *run, size_t first_row);
/** Sums of f32, as plan->direct.multiply. */
void ifd_acc_direct_multiply(struct ifd_acc_conv_run *run, size_t first_row);

/** Bytes of work memory: sums, then rest; or sums, then the 32-bit results of an exact fully
 *  connected layer. */
size_t ifd_acc_direct_work_bytes(const struct ifd_acc_conv *conv, size_t rest);

/** Rows of a gemm's tile, or a few more. */
#define IFD_ACC_UNIT_ROWS 16

void ifd_acc_direct_run_plain(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);
void ifd_acc_direct_run_lines(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame);
/** As an algorithm's strip(). */
bool ifd_acc_direct_strip_plain(const struct ifd_acc_conv *conv, struct ifd_acc_lines *ret);
bool ifd_acc_direct_strip_lines(const struct ifd_acc_conv *conv, struct ifd_acc_lines *ret);

#endif

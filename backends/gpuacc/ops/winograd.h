/** Convolutions of f32 with 3x3 windows of stride 1 by Winograd's algorithm, in patches of 2 x 2 or
 *  4 x 4 output pixels. Three calls: patches of the input are transformed; each of their points is
 *  a product of matrices, patches times channels, with filters that are transformed when the model
 *  is loaded (ops/conv.c); the sums are transformed back. Rounding errors are larger than those of
 *  the plain sum. Thread: any. */
#ifndef INFERD_BACKENDS_GPUACC_OPS_WINOGRAD_H
#define INFERD_BACKENDS_GPUACC_OPS_WINOGRAD_H

#include "backends/gpuacc/call.h"
#include "backends/lowering/window.h"

struct ifd_gpu_winograd {
    struct ifd_low_window window;
    size_t out_c;
    uint32_t patch;        /* 2 or 4: output pixels along a side */
    uint32_t inputs, sums; /* values between the calls, of f32 */
};

/** Matrices: points of a patch. */
size_t ifd_gpu_winograd_points(uint32_t patch);
/** Rows of a matrix: patches of all images. */
size_t ifd_gpu_winograd_patches(uint32_t patch, size_t images, size_t out_h, size_t out_w);

/** Numbers of all matrices of transformed inputs or sums of as many channels. */
size_t ifd_gpu_winograd_numbers(const struct ifd_gpu_winograd *winograd, size_t channels);

/** The first call: from value in to inputs. */
void ifd_gpu_winograd_in(const struct ifd_gpu_winograd *winograd, uint32_t in,
                         struct ifd_gpu_call *ret_call);
/** The last one, without its arguments behind the bounds: from sums, with a bias of out_c numbers
 *  filled up to a multiple of 4, to value out. */
void ifd_gpu_winograd_begin_out(const struct ifd_gpu_winograd *winograd,
                                struct ifd_gpu_call *ret_call);
void ifd_gpu_winograd_end_out(const struct ifd_gpu_winograd *winograd, uint32_t out,
                              struct ifd_gpu_call *call);

/** Filters [oc][tap][ic] become [point][ic][oc]; rows and columns are filled with zeros up to
 *  multiples of 4. */
struct ifd_gpu_winograd_filters {
    size_t out_c, in_c;
    uint32_t patch;
};
void ifd_gpu_winograd_pack(const void *params, const void *source, void *packed);

#endif

/** How the work of a convolution of f32 is divided: which kernel, and how much an item and a group
 *  of items compute. Which division is best depends on the device; the estimates rank them, the
 *  tuner (tuner.h) measures those that rank first. Thread: any. */
#ifndef INFERD_BACKENDS_GPUACC_OPS_BLOCKING_H
#define INFERD_BACKENDS_GPUACC_OPS_BLOCKING_H

#include "backends/gpuacc/call.h"
#include "backends/gpuacc/device.h"

/** What decides. */
struct ifd_gpu_conv_size {
    size_t pixels, out_c; /* of all images, but of one phase; of all groups */
    size_t groups, group_in, taps;
    size_t phases; /* of a transposed convolution, each of which sees its taps; 0: it is none */
    bool has_f16_weights;
    bool takes_winograd; /* 3x3 windows of stride 1, and results may be rounded otherwise */
    size_t images, out_h, out_w;
};

/** Where the kernels read weights (kernels/common.cl). */
enum ifd_gpu_weights { IFD_GPU_GLOBAL, IFD_GPU_CONSTANT, IFD_GPU_IMAGE };

struct ifd_gpu_blocking {
    enum ifd_gpu_kernel kernel; /* conv2d, conv2d_slim, conv2d_tile, conv2d_mma */
    uint32_t pixels, channels;  /* of an item; conv2d_mma: of the items that share them */
    /** Items of a group: along pixels, along channels, and such as share the factors of an element.
     *  conv2d: 0. */
    uint32_t rows, columns, slices;
    uint32_t depth; /* factors at a time */
    /** 0: products of the layer; else those of Winograd's algorithm with patches of this size
     *  (winograd.h). */
    uint32_t patch;
    enum ifd_gpu_weights weights;
};

#define IFD_GPU_BLOCKING_TEXT 64

/** All that there are; count through ret_count. Static. */
const struct ifd_gpu_blocking *ifd_gpu_blockings(uint32_t *ret_count);

bool ifd_gpu_blocking_fits(const struct ifd_gpu_blocking *blocking,
                           const struct ifd_gpu_conv_size *size, const struct ifd_gpu_info *info);

/** Estimated time, to compare. */
double ifd_gpu_blocking_cost(const struct ifd_gpu_blocking *blocking,
                             const struct ifd_gpu_conv_size *size, const struct ifd_gpu_info *info);

/** The count blockings that fit and rank first, best first; returns how many there are. */
uint32_t ifd_gpu_rank_blockings(const struct ifd_gpu_conv_size *size,
                                const struct ifd_gpu_info *info, uint32_t count,
                                const struct ifd_gpu_blocking **ret);

/** The products of Winograd's algorithm, as a layer. */
struct ifd_gpu_conv_size ifd_gpu_blocking_product(const struct ifd_gpu_blocking *blocking,
                                                  const struct ifd_gpu_conv_size *size);

/** "conv2d_tile 8x4 16x16x1 16", "winograd4 conv2d 8x4 0x0x0 0", "conv2d 8x4 0x0x0 0 image": for
 *  the tuner's file. */
void ifd_gpu_blocking_text(const struct ifd_gpu_blocking *blocking,
                           char ret[IFD_GPU_BLOCKING_TEXT]);
/** The blocking with this text; NULL: none. */
const struct ifd_gpu_blocking *ifd_gpu_blocking_named(const char *text);

/** Kernel, definitions and work items of a call; with a patch, that of the products. */
void ifd_gpu_blocking_begin(const struct ifd_gpu_blocking *blocking, struct ifd_gpu_call *call);
void ifd_gpu_blocking_items(const struct ifd_gpu_blocking *blocking,
                            const struct ifd_gpu_conv_size *size, struct ifd_gpu_call *call);

#endif

/** Windows of convolutions and pools over up to three directions. */
#ifndef INFERD_ENGINE_PARSE_ONNX_WINDOW_H
#define INFERD_ENGINE_PARSE_ONNX_WINDOW_H

#include "engine/parse/onnx/onnx_impl.h"

#define IFD_ONNX_DIRECTIONS 3

/** In the format's order: depth, height, width. */
struct ifd_onnx_window {
    uint32_t dims;
    int64_t kernel[IFD_ONNX_DIRECTIONS], stride[IFD_ONNX_DIRECTIONS], dilation[IFD_ONNX_DIRECTIONS];
    int64_t before[IFD_ONNX_DIRECTIONS], after[IFD_ONNX_DIRECTIONS];
};

/** Attribute name: count numbers from 0 to INT32_MAX. Fails if they are others. */
void ifd_onnx_numbers(struct ifd_onnx_call *call, const char *name, int64_t *to, uint32_t count,
                      int64_t otherwise);
/** Attributes of a window of this kernel over input, the extent of each direction. */
struct ifd_onnx_window ifd_onnx_window(struct ifd_onnx_call *call, uint32_t dims,
                                       const int64_t *input, const int64_t *kernel);
/** The last two directions; a window over one direction lies along the width. */
struct ifd_window ifd_onnx_plane(const struct ifd_onnx_window *w);

/** [n,c,l] as [n,c,1,l], and back. */
uint32_t ifd_onnx_with_height(struct ifd_builder *b, uint32_t x);
uint32_t ifd_onnx_without_height(struct ifd_builder *b, uint32_t x);
/** Attribute "kernel_shape"; false if it is absent, or the builder has failed. */
bool ifd_onnx_kernel(struct ifd_onnx_call *call, struct ifd_ints *ret);

#endif

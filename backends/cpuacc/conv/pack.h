/** Packed weights of the direct algorithms. */
#ifndef INFERD_BACKENDS_CPUACC_CONV_PACK_H
#define INFERD_BACKENDS_CPUACC_CONV_PACK_H

#include "backends/cpuacc/conv/layer.h"

/** Turns sums of a dynamic layer into floats; lies behind its weights. Per channel: the scale, the
 *  sum of the weights, the bias. */
struct ifd_acc_conv_channels {
    float *scale;
    int32_t *sum;
    float *bias;
};

/** n values, up to where the next array of them may begin. */
static inline size_t ifd_acc_conv_padded(size_t n)
{
    return (n + 15) / 16 * 16;
}

/** Do two steps of ifd_acc_direct_pack with the same weights pack the same bytes? */
bool ifd_acc_direct_same(const void *params, const void *other);
/** pack(), packed_bytes() and workspace_bytes() of an algorithm. */
void ifd_acc_direct_pack(const void *context, const void *params, uint8_t *workspace,
                         uint8_t *packed);
size_t ifd_acc_direct_packed_bytes(const struct ifd_acc_conv *conv,
                                   const struct ifd_kernels *kernels);
size_t ifd_acc_direct_workspace_bytes(const struct ifd_acc_conv *conv);

/** Offset of the weights of single pixels, which lie behind those of groups. */
size_t ifd_acc_direct_grouped_bytes(const struct ifd_acc_conv *conv);
struct ifd_acc_conv_channels ifd_acc_direct_channels(const struct ifd_acc_conv *conv,
                                                     uint8_t *packed);

#endif

/* The weights of a product of rows, packed: as they are, for groups of pixels, or with what makes floats of their sums. */
#include "backends/cpuacc/conv/layer.h"

#include <string.h>

/* Weights and bias of a group: those of one pixel, repeated and shifted; returns the bias, or NULL for none. */
static const float *group_weights(const struct ifd_acc_conv *p, float *to)
{
    const float *from = p->product.weights, *bias = p->product.bias_f32;
    memset(to, 0, p->out_c * p->taps * p->k * sizeof(*to));
    for (size_t n = 0; n < p->out_c; n++) {
        const float *w = from + n % p->pixel_n * p->taps * p->pixel_k;
        for (size_t t = 0; t < p->taps; t++, to += p->k, w += p->pixel_k) {
            memcpy(to + n / p->pixel_n * p->pixel_step, w, p->pixel_k * sizeof(*to));
        }
    }
    for (size_t n = 0; bias && n < p->out_c; n++) {
        to[n] = bias[n % p->pixel_n];
    }
    return bias ? to : NULL;
}

size_t ifd_acc_conv_grouped_bytes(const struct ifd_acc_conv *p)
{
    const size_t bytes = p->gemm->packed_bytes(p->out_c, p->k, p->taps);
    return (bytes + IFD_KERN_ALIGN - 1) / IFD_KERN_ALIGN * IFD_KERN_ALIGN;
}

static void pack_pixel(const struct ifd_acc_conv *p, uint8_t *to)
{
    const struct ifd_gemm_weights gemm = {.w = p->product.weights,
                                          .n = p->pixel_n,
                                          .k = p->pixel_k,
                                          .taps = p->taps,
                                          .stride_n = p->taps * p->pixel_k,
                                          .stride_t = p->pixel_k,
                                          .stride_k = 1};
    p->gemm->pack(&gemm, p->product.bias_f32, to);
}

struct ifd_acc_conv_channels ifd_acc_conv_channels(const struct ifd_acc_conv *p, uint8_t *packed)
{
    const struct ifd_packed *header = (const struct ifd_packed *)(const void *)packed;
    float *scale = (float *)(void *)(packed + header->bytes);
    const size_t n = ifd_acc_conv_padded(p->out_c);
    return (struct ifd_acc_conv_channels){
        .scale = scale, .sum = (int32_t *)(void *)(scale + n), .bias = scale + 2 * n};
}

static void pack_channels(const struct ifd_acc_conv *p, uint8_t *packed)
{
    const struct ifd_acc_conv_channels to = ifd_acc_conv_channels(p, packed);
    const size_t length = p->taps * p->k;
    const int8_t *w = p->product.weights;
    for (size_t c = 0; c < p->out_c; c++, w += length) {
        to.scale[c] = ifd_acc_product_scale(&p->product, c);
        to.bias[c] = p->product.bias_f32 ? p->product.bias_f32[c] : 0;
        to.sum[c] = 0;
        for (size_t i = 0; i < length; i++) {
            to.sum[c] += w[i];
        }
    }
}

void ifd_acc_conv_pack(const struct ifd_kernels *kernels, const void *context, uint8_t *workspace,
                       uint8_t *packed)
{
    const struct ifd_acc_conv *p = context;
    const float *bias = p->product.bias_f32;
    if (p->group > 1) {
        bias = group_weights(p, (float *)(void *)workspace);
    }
    const void *weights = p->group > 1  ? workspace
                          : p->narrow_c ? (const void *)ifd_acc_conv_narrow_weights(p, workspace)
                                        : ifd_acc_product_weights(&p->product, workspace);
    const struct ifd_gemm_weights gemm = {.w = weights,
                                          .n = p->out_c,
                                          .k = p->k,
                                          .taps = p->taps,
                                          .stride_n = p->taps * p->k,
                                          .stride_t = p->k,
                                          .stride_k = 1};
    if (p->product.is_q8) {
        const struct ifd_requant requant = ifd_acc_product_requant(&p->product, workspace);
        kernels->gemm_q8.pack(&gemm, &requant, packed);
        if (p->product.is_dynamic) {
            pack_channels(p, packed);
        }
    } else {
        p->gemm->pack(&gemm, bias, packed);
    }
    if (p->group > 1) {
        pack_pixel(p, packed + ifd_acc_conv_grouped_bytes(p));
    }
}

size_t ifd_acc_conv_pack_workspace(const struct ifd_acc_conv *p)
{
    return p->group > 1  ? (p->out_c * p->taps * p->k + p->out_c) * sizeof(float)
           : p->narrow_c ? ifd_acc_conv_narrow_workspace(p)
                         : ifd_acc_product_workspace(&p->product);
}

size_t ifd_acc_conv_pack_bytes(const struct ifd_acc_conv *p, const struct ifd_kernels *kernels)
{
    if (p->group > 1) {
        return ifd_acc_conv_grouped_bytes(p) +
               p->gemm->packed_bytes(p->pixel_n, p->pixel_k, p->taps);
    }
    const size_t sums =
        p->product.is_dynamic ? 3 * ifd_acc_conv_padded(p->out_c) * sizeof(float) : 0;
    return sums + (p->product.is_q8 ? kernels->gemm_q8.packed_bytes(p->out_c, p->k, p->taps)
                                    : p->gemm->packed_bytes(p->out_c, p->k, p->taps));
}

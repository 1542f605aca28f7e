/* Packed weights of the direct algorithms: plain, of groups of pixels, or with the scales that turn
 * sums into floats. */
#include "backends/cpuacc/conv/pack.h"

#include <string.h>

/* Weights and bias of a group: those of one pixel, repeated and shifted; returns the bias, or NULL
 * for none. */
static const float *group_weights(const struct ifd_acc_conv *conv, float *to)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const size_t n = conv->plan.n, pixel_n = conv->layer.out_c;
    const float *from = conv->layer.product.weights, *bias = conv->layer.product.bias_f32;
    memset(to, 0, n * direct->taps * direct->k * sizeof(*to));
    for (size_t c = 0; c < n; c++) {
        const float *w = from + c % pixel_n * direct->taps * direct->pixel_k;
        for (size_t t = 0; t < direct->taps; t++, to += direct->k, w += direct->pixel_k) {
            memcpy(to + c / pixel_n * direct->pixel_step, w, direct->pixel_k * sizeof(*to));
        }
    }
    for (size_t c = 0; bias && c < n; c++) {
        to[c] = bias[c % pixel_n];
    }
    return bias ? to : NULL;
}

size_t ifd_acc_direct_grouped_bytes(const struct ifd_acc_conv *conv)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const size_t bytes = conv->plan.gemm->packed_bytes(conv->plan.n, direct->k, direct->taps);
    return (bytes + IFD_KERN_ALIGN - 1) / IFD_KERN_ALIGN * IFD_KERN_ALIGN;
}

static void pack_pixel(const struct ifd_acc_conv *conv, uint8_t *to)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_gemm_weights gemm = {.w = conv->layer.product.weights,
                                          .n = conv->layer.out_c,
                                          .k = direct->pixel_k,
                                          .taps = direct->taps,
                                          .stride_n = direct->taps * direct->pixel_k,
                                          .stride_t = direct->pixel_k,
                                          .stride_k = 1};
    conv->plan.gemm->pack(&gemm, conv->layer.product.bias_f32, to);
}

struct ifd_acc_conv_channels ifd_acc_direct_channels(const struct ifd_acc_conv *conv,
                                                     uint8_t *packed)
{
    const struct ifd_packed *header = (const struct ifd_packed *)(const void *)packed;
    float *scale = (float *)(void *)(packed + header->bytes);
    const size_t n = ifd_acc_conv_padded(conv->layer.out_c);
    return (struct ifd_acc_conv_channels){
        .scale = scale, .sum = (int32_t *)(void *)(scale + n), .bias = scale + 2 * n};
}

static void pack_channels(const struct ifd_acc_conv *conv, uint8_t *packed)
{
    const struct ifd_acc_product *product = &conv->layer.product;
    const struct ifd_acc_conv_channels to = ifd_acc_direct_channels(conv, packed);
    const size_t length = conv->plan.direct.taps * conv->plan.direct.k;
    for (size_t c = 0; c < conv->layer.out_c; c++) {
        to.scale[c] = ifd_acc_product_scale(product, c);
        to.bias[c] = product->bias_f32 ? product->bias_f32[c] : 0;
        to.sum[c] = 0;
        for (size_t i = 0; i < length; i++) {
            to.sum[c] += ifd_acc_product_weight(product, c * length + i);
        }
    }
}

static struct ifd_gemm_weights gemm_weights(const struct ifd_acc_conv *conv, const void *weights)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    return (struct ifd_gemm_weights){.w = weights,
                                     .n = conv->plan.n,
                                     .k = direct->k,
                                     .taps = direct->taps,
                                     .stride_n = direct->taps * direct->k,
                                     .stride_t = direct->k,
                                     .stride_k = 1};
}

static void pack_q8(const struct ifd_kernels *kernels, const struct ifd_acc_conv *conv,
                    uint8_t *workspace, uint8_t *packed)
{
    const struct ifd_acc_product *product = &conv->layer.product;
    const struct ifd_gemm_weights gemm =
        gemm_weights(conv, ifd_acc_product_weights(product, workspace));
    const struct ifd_requant requant = ifd_acc_product_requant(product, workspace);
    kernels->gemm_q8.pack(&gemm, &requant, packed);
    if (product->is_dynamic) {
        pack_channels(conv, packed);
    }
}

static void pack_groups(const struct ifd_acc_conv *conv, uint8_t *workspace, uint8_t *packed)
{
    const float *bias = group_weights(conv, (float *)(void *)workspace);
    const struct ifd_gemm_weights gemm = gemm_weights(conv, workspace);
    conv->plan.gemm->pack(&gemm, bias, packed);
    pack_pixel(conv, packed + ifd_acc_direct_grouped_bytes(conv));
}

/* Of f32: what else decides the content of 8 bits is more than it is worth to compare. */
bool ifd_acc_direct_same(const void *params, const void *other)
{
    const struct ifd_acc_conv *a = params, *b = other;
    const struct ifd_acc_direct *x = &a->plan.direct, *y = &b->plan.direct;
    return !a->layer.product.is_q8 && !b->layer.product.is_q8 &&
           a->layer.product.bias_f32 == b->layer.product.bias_f32 &&
           a->layer.out_c == b->layer.out_c && a->plan.gemm == b->plan.gemm &&
           a->plan.group == b->plan.group && a->plan.n == b->plan.n && x->taps == y->taps &&
           x->k == y->k && x->pixel_k == y->pixel_k && x->pixel_step == y->pixel_step;
}

void ifd_acc_direct_pack(const void *context, const void *params, uint8_t *workspace,
                         uint8_t *packed)
{
    const struct ifd_kernels *kernels = context;
    const struct ifd_acc_conv *conv = params;
    if (conv->layer.product.is_q8) {
        pack_q8(kernels, conv, workspace, packed);
    } else if (conv->plan.group > 1) {
        pack_groups(conv, workspace, packed);
    } else {
        const struct ifd_gemm_weights gemm = gemm_weights(conv, conv->layer.product.weights);
        conv->plan.gemm->pack(&gemm, conv->layer.product.bias_f32, packed);
    }
}

size_t ifd_acc_direct_workspace_bytes(const struct ifd_acc_conv *conv)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    return conv->plan.group > 1
               ? (conv->plan.n * direct->taps * direct->k + conv->plan.n) * sizeof(float)
               : ifd_acc_product_workspace(&conv->layer.product);
}

size_t ifd_acc_direct_packed_bytes(const struct ifd_acc_conv *conv,
                                   const struct ifd_kernels *kernels)
{
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_acc_product *product = &conv->layer.product;
    const size_t n = conv->plan.n;
    if (conv->plan.group > 1) {
        return ifd_acc_direct_grouped_bytes(conv) +
               conv->plan.gemm->packed_bytes(conv->layer.out_c, direct->pixel_k, direct->taps);
    }
    const size_t sums = product->is_dynamic ? 3 * ifd_acc_conv_padded(n) * sizeof(float) : 0;
    return sums + (product->is_q8 ? kernels->gemm_q8.packed_bytes(n, direct->k, direct->taps)
                                  : conv->plan.gemm->packed_bytes(n, direct->k, direct->taps));
}

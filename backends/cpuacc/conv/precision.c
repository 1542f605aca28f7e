/* Kernels of f32, bf16 and fp16 for a layer. */
#include "backends/cpuacc/conv/precision.h"

const struct ifd_kern_gemm_f32 *ifd_acc_narrow_gemm(const struct ifd_acc_lowering *lowering)
{
    const struct ifd_kernels *kernels = lowering->kernels;
    return lowering->base.view->precision == IFD_PRECISION_BF16   ? &kernels->gemm_bf16
           : lowering->base.view->precision == IFD_PRECISION_FP16 ? &kernels->gemm_f16
                                                                  : &kernels->gemm_f32;
}

/* Thinner pixels are not worth a call each. */
#define CHANNELS_MIN 16

bool ifd_acc_narrow_suits(const struct ifd_acc_lowering *lowering,
                          const struct ifd_acc_layer *layer)
{
    const struct ifd_kern_gemm_f32 *gemm = ifd_acc_narrow_gemm(lowering);
    return !layer->product.is_q8 && gemm->run && gemm->narrow && !layer->is_dilated &&
           layer->window.in_c >= CHANNELS_MIN && layer->out_c >= gemm->lanes();
}

const struct ifd_kern_gemm_f32 *ifd_acc_direct_gemm(const struct ifd_acc_lowering *lowering)
{
    const struct ifd_kern_gemm_f32 *gemm = ifd_acc_narrow_gemm(lowering);
    return gemm->run && !gemm->narrow ? gemm : &lowering->kernels->gemm_f32;
}

bool ifd_acc_direct_is_f32(const struct ifd_acc_lowering *lowering,
                           const struct ifd_acc_layer *layer)
{
    return !layer->product.is_q8 && !ifd_acc_narrow_suits(lowering, layer) &&
           ifd_acc_direct_gemm(lowering) == &lowering->kernels->gemm_f32;
}

/* Kernels of f32, bf16 and fp16 for a layer. */
#include "backends/cpuacc/conv/precision.h"

const struct ifd_kern_gemm_f32 *ifd_acc_narrow_gemm(const struct ifd_acc_lowering *lowering)
{
    const struct ifd_kernels *kernels = lowering->kernels;
    return lowering->base.view->precision == IFD_PRECISION_BF16   ? &kernels->gemm_bf16
           : lowering->base.view->precision == IFD_PRECISION_FP16 ? &kernels->gemm_f16
                                                                  : &kernels->gemm_f32;
}

/* Thinner pixels are not worth a call each, */
#define CHANNELS_MIN 16
/* but windows of so many are where one call narrows all. */
#define THIN_WINDOW_MIN 9

static bool has_enough(const struct ifd_kern_gemm_f32 *gemm, const struct ifd_acc_layer *layer)
{
    const struct ifd_low_window *w = &layer->window;
    return w->in_c >= CHANNELS_MIN ||
           (gemm->narrow_rows && layer->groups == 1 && w->kh * w->kw >= THIN_WINDOW_MIN);
}

bool ifd_acc_narrow_suits(const struct ifd_acc_lowering *lowering,
                          const struct ifd_acc_layer *layer)
{
    const struct ifd_kern_gemm_f32 *gemm = ifd_acc_narrow_gemm(lowering);
    return !layer->product.is_q8 && gemm->run && gemm->narrow && !layer->is_dilated &&
           has_enough(gemm, layer) && layer->out_c >= gemm->lanes();
}

bool ifd_acc_narrow_stores(const struct ifd_acc_lowering *lowering,
                           const struct ifd_acc_layer *layer)
{
    return ifd_acc_narrow_gemm(lowering)->widen && ifd_acc_narrow_suits(lowering, layer);
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

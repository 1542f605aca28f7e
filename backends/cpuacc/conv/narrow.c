/* Layers of f32 whose operands become 16 bits: which they are, and their inputs and weights in that form. */
#include "backends/cpuacc/conv/layer.h"

#include <string.h>

/* Thinner pixels are not worth a call each. */
#define CHANNELS_MIN 16

/* Elements from pixel to pixel with which what a row reads ends where the window does: then padding is all that zeros
 * meet, and nothing that is not finite. */
static size_t pixel_stride(const struct ifd_acc_conv *p, const struct ifd_kern_gemm_f32 *gemm)
{
    size_t c = p->window.in_c;
    const size_t pixels = p->mode == IFD_ACC_CONV_LINES ? p->window.kw : 1;
    while (gemm->depth(pixels * c) != pixels * c) {
        c++;
    }
    return c;
}

void ifd_acc_conv_choose_precision(const struct ifd_acc_lowering *lowering, struct ifd_acc_conv *p)
{
    const struct ifd_kernels *kernels = lowering->kernels;
    p->gemm = &kernels->gemm_f32;
    if (p->product.is_q8) {
        return;
    }
    const struct ifd_kern_gemm_f32 *gemm =
        lowering->view->precision == IFD_PRECISION_BF16   ? &kernels->gemm_bf16
        : lowering->view->precision == IFD_PRECISION_FP16 ? &kernels->gemm_f16
                                                          : p->gemm;
    if (!gemm->run) {
        return;
    }
    if (!gemm->narrow) {
        p->gemm = gemm;
    } else if (p->mode < IFD_ACC_CONV_ROWS && p->window.in_c >= CHANNELS_MIN &&
               p->out_c >= gemm->lanes()) {
        p->gemm = gemm;
        p->narrow_c = pixel_stride(p, gemm);
    }
}

void ifd_acc_conv_settle_precision(struct ifd_acc_lowering *lowering, struct ifd_acc_conv *p)
{
    const enum ifd_precision asked = lowering->view->precision;
    const struct ifd_kernels *kernels = lowering->kernels;
    if (p->product.is_q8 || asked == IFD_PRECISION_F32) {
        return;
    }
    if (p->mode == IFD_ACC_CONV_TILES) {
        p->gemm = &kernels->gemm_f32;
        p->narrow_c = 0;
    }
    if (p->gemm != &kernels->gemm_f32) {
        lowering->precision = asked;
    } else if (!(asked == IFD_PRECISION_BF16 ? kernels->gemm_bf16 : kernels->gemm_f16).run) {
        lowering->precision_why_not = "the CPU has no instructions for it";
    }
    if (p->narrow_c && p->mode == IFD_ACC_CONV_LINES) {
        const struct ifd_low_window *w = &p->window;
        p->k = w->kw * p->narrow_c;
        p->line = (w->is_padded ? (w->out_w - 1) * w->stride_x + w->kw : w->in_w) * p->narrow_c;
    }
}

/* ---- weights ---- */

size_t ifd_acc_conv_narrow_workspace(const struct ifd_acc_conv *p)
{
    const bool is_wider = p->mode == IFD_ACC_CONV_LINES && p->narrow_c != p->window.in_c;
    return is_wider ? p->out_c * p->taps * p->k * sizeof(float) : 0;
}

const float *ifd_acc_conv_narrow_weights(const struct ifd_acc_conv *p, uint8_t *workspace)
{
    const size_t bytes = ifd_acc_conv_narrow_workspace(p), c = p->window.in_c;
    const float *from = p->product.weights;
    float *to = (float *)(void *)workspace;
    if (bytes == 0) {
        return from;
    }
    memset(to, 0, bytes);
    for (; (uint8_t *)to < workspace + bytes; from += c, to += p->narrow_c) {
        memcpy(to, from, c * sizeof(*to));
    }
    return (const float *)(const void *)workspace;
}

/* ---- inputs ---- */

/* Pixels of c floats each, `stride` apart in the input, p->narrow_c in the output. */
static void narrow_pixels(const struct ifd_acc_conv *p, size_t pixels, size_t c, size_t stride,
                          const float *in, uint16_t *out)
{
    if (c == p->narrow_c && c == stride) {
        p->gemm->narrow(pixels * c, in, out);
        return;
    }
    for (size_t i = 0; i < pixels; i++, in += stride, out += p->narrow_c) {
        p->gemm->narrow(c, in, out);
        memset(out + c, 0, (p->narrow_c - c) * sizeof(*out));
    }
}

void ifd_acc_conv_narrow_rows(const struct ifd_acc_conv_run *run, size_t row, size_t count)
{
    const struct ifd_acc_conv *p = run->p;
    narrow_pixels(p, count, p->k, p->in_stride,
                  (const float *)(const void *)run->in + row * p->in_stride,
                  (uint16_t *)(void *)run->rest);
}

void ifd_acc_conv_narrow_lines(const struct ifd_acc_conv_run *run, const uint8_t *image, size_t y,
                               size_t count)
{
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_low_window *w = &p->window;
    const size_t pixels = p->line / p->narrow_c;
    const size_t left = ifd_acc_conv_padding(p, p->narrow_c) / p->narrow_c;
    const size_t copied = w->in_w < pixels - left ? w->in_w : pixels - left;
    uint16_t *to = (uint16_t *)(void *)run->rest;
    for (size_t i = 0; i < (count - 1) * w->stride_y + w->kh; i++, to += p->line) {
        const size_t in_y = y * w->stride_y + i; /* counted from the padding's edge */
        if (i % w->stride_y >= w->kh) {
            continue; /* between the windows */
        }
        if (in_y < w->pad_top || in_y - w->pad_top >= w->in_h) {
            memset(to, 0, p->line * sizeof(*to));
            continue;
        }
        const float *from = (const float *)(const void *)image +
                            (in_y - w->pad_top - run->in_first) * w->in_w * w->in_c;
        memset(to, 0, left * p->narrow_c * sizeof(*to));
        narrow_pixels(p, copied, w->in_c, w->in_c, from, to + left * p->narrow_c);
        memset(to + (left + copied) * p->narrow_c, 0,
               (pixels - left - copied) * p->narrow_c * sizeof(*to));
    }
}

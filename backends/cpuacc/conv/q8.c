/* What only sums of 8-bit products need: weights with a zero point, exact fully connected layers, dynamic layers. */
#include "backends/cpuacc/conv/layer.h"

#include <math.h>

void ifd_acc_conv_begin_image(struct ifd_acc_conv_run *run, size_t image)
{
    const struct ifd_acc_conv *p = run->p;
    if (!p->product.is_dynamic || run->image == image + 1) {
        return;
    }
    run->image = image + 1;
    const struct ifd_acc_conv_channels from =
        ifd_acc_conv_channels(p, (uint8_t *)(uintptr_t)run->args.packed);
    const struct ifd_acc_image *at = &run->images[image];
    int32_t *offset = run->sums;
    float *scale = (float *)(void *)(run->sums + ifd_acc_conv_padded(p->out_c));
    for (size_t c = run->args.n_begin; c < run->args.n_end; c++) {
        offset[c] = at->zero * from.sum[c];
        scale[c] = at->scale * from.scale[c];
    }
}

size_t ifd_acc_conv_begin_rows(struct ifd_acc_conv_run *run, size_t row, size_t end)
{
    const struct ifd_acc_conv *p = run->p;
    const size_t count = end - row < p->tile_rows ? end - row : p->tile_rows;
    if (!p->product.is_dynamic && !p->is_strassen) {
        return count;
    }
    const size_t pixels = p->window.out_h * p->window.out_w, left = pixels - row % pixels;
    ifd_acc_conv_begin_image(run, row / pixels);
    return left < count ? left : count;
}

int ifd_acc_conv_zero_byte(const struct ifd_acc_conv_run *run)
{
    const struct ifd_acc_product *product = &run->p->product;
    return product->is_dynamic ? (uint8_t)run->images[run->image - 1].zero
           : product->is_q8    ? (uint8_t)product->requant.in_zero
                               : 0;
}

/* -weight_zero × the sum of every row's inputs, over all taps. */
static const int32_t *row_sums(const struct ifd_acc_conv_run *run)
{
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_gemm_args *args = &run->args;
    const struct ifd_kern_gemm_q8 *gemm = &run->step->kernels->gemm_q8;
    const int32_t factor = -p->product.requant.weight_zero;
    int32_t *total = run->sums, *part = run->sums + p->tile_rows;
    const size_t row_len = args->row_len ? args->row_len : args->m;
    for (size_t t = 0; t < p->taps; t++) {
        int32_t *to = t == 0 ? total : part;
        if (args->rows) {
            for (size_t i = 0; i < args->m; i++) {
                gemm->row_sum(args->rows[t * args->m + i], 1, p->k, p->k, factor, &to[i]);
            }
        } else {
            for (size_t i = 0; i < args->m; i += row_len) {
                const size_t count = args->m - i < row_len ? args->m - i : row_len;
                gemm->row_sum((const ifd_q8 *)args->a + i / row_len * args->row_stride +
                                  t * args->tap_stride,
                              count, p->k, args->a_stride, factor, &to[i]);
            }
        }
        for (size_t i = 0; t > 0 && i < args->m; i++) {
            total[i] += part[i];
        }
    }
    return total;
}

/* LiteRT's reference kernel rounds the product with a real number: halves away from zero. */
static void call_exact(struct ifd_acc_conv_run *run, size_t first_row)
{
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_requant *to = &p->product.requant;
    const size_t stride = ifd_acc_conv_padded(p->out_c);
    const int32_t *sums = (const int32_t *)(const void *)run->rest;
    run->args.out = run->rest;
    run->args.out_stride = stride;
    run->step->kernels->gemm_q8.run(&run->args);
    for (size_t i = 0; i < run->args.m; i++) {
        ifd_q8 *out = (ifd_q8 *)run->out + (first_row + i) * run->out_stride;
        for (size_t c = run->args.n_begin; c < run->args.n_end; c++) {
            const double y = round(sums[i * stride + c] * p->product.real[c]) + to->out_zero;
            out[c] = (ifd_q8)(y < to->out_min ? to->out_min : y > to->out_max ? to->out_max : y);
        }
    }
}

/* Makes the sums of a dynamic layer floats, in their place. */
static void rescale(const struct ifd_acc_conv_run *run)
{
    const struct ifd_acc_conv *p = run->p;
    const struct ifd_gemm_args *args = &run->args;
    const size_t first = args->n_begin;
    const struct ifd_acc_conv_channels from =
        ifd_acc_conv_channels(p, (uint8_t *)(uintptr_t)args->packed);
    const float *scale = (const float *)(const void *)(run->sums + ifd_acc_conv_padded(p->out_c));
    float *out = (float *)args->out + first;
    run->step->kernels->quant.rescale(
        &(struct ifd_rescale_args){.rows = args->m,
                                   .n = args->n_end - first,
                                   .row = p->out_stride,
                                   .sums = (const int32_t *)(const void *)out,
                                   .out = out,
                                   .offset = run->sums + first,
                                   .scale = scale + first,
                                   .bias = from.bias + first,
                                   .min = p->product.min,
                                   .max = p->product.max});
}

void ifd_acc_conv_call_q8(struct ifd_acc_conv_run *run, size_t first_row)
{
    const struct ifd_acc_conv *p = run->p;
    if (p->product.is_dynamic) {
        run->step->kernels->gemm_q8.run(&run->args);
        rescale(run);
        return;
    }
    const struct ifd_packed *packed = run->args.packed;
    run->args.row_add = p->has_row_add && !packed->folds_zero ? row_sums(run) : NULL;
    if (p->product.real) {
        call_exact(run, first_row);
    } else {
        run->step->kernels->gemm_q8.run(&run->args);
    }
}

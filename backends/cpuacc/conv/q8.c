/* What only sums of 8-bit products need: weights with a zero point, exact fully connected layers,
 * dynamic layers. */
#include "backends/cpuacc/conv/q8.h"

#include "backends/cpuacc/conv/pack.h"
#include "backends/cpuacc/conv/run.h"

#include <math.h>

void ifd_acc_q8_begin_image(struct ifd_acc_conv_run *run, size_t image)
{
    const struct ifd_acc_conv *conv = run->conv;
    if (!conv->layer.product.is_dynamic || run->image == image + 1) {
        return;
    }
    run->image = image + 1;
    const struct ifd_acc_conv_channels from =
        ifd_acc_direct_channels(conv, (uint8_t *)(uintptr_t)run->args.packed);
    const struct ifd_acc_quantized *at = &run->quantized[image];
    int32_t *offset = ifd_acc_conv_sums(run);
    float *scale = (float *)(void *)(offset + ifd_acc_conv_padded(conv->layer.out_c));
    for (size_t c = run->args.n_begin; c < run->args.n_end; c++) {
        offset[c] = at->zero * from.sum[c];
        scale[c] = at->scale * from.scale[c];
    }
}

int ifd_acc_q8_zero_byte(const struct ifd_acc_conv_run *run)
{
    const struct ifd_acc_product *product = &run->conv->layer.product;
    return product->is_dynamic ? (uint8_t)run->quantized[run->image - 1].zero
           : product->is_q8    ? (uint8_t)product->requant.in_zero
                               : 0;
}

/* -weight_zero × the sum of every row's inputs, over all taps. */
static const int32_t *row_sums(const struct ifd_acc_conv_run *run)
{
    const struct ifd_acc_conv *conv = run->conv;
    const struct ifd_acc_direct *direct = &conv->plan.direct;
    const struct ifd_gemm_args *args = &run->args;
    const struct ifd_kern_gemm_q8 *gemm = &run->step->kernels->gemm_q8;
    const int32_t factor = -conv->layer.product.requant.weight_zero;
    const size_t first = /* behind the offsets and scales of a dynamic layer */
        conv->layer.product.is_dynamic ? 2 * ifd_acc_conv_padded(conv->layer.out_c) : 0;
    int32_t *total = ifd_acc_conv_sums(run) + first, *part = total + direct->call_rows;
    const size_t row_len = args->row_len ? args->row_len : args->m;
    for (size_t t = 0; t < direct->taps; t++) {
        int32_t *to = t == 0 ? total : part;
        if (args->rows) {
            for (size_t i = 0; i < args->m; i++) {
                gemm->row_sum(args->rows[t * args->m + i], 1, direct->k, direct->k, factor, &to[i]);
            }
        } else {
            for (size_t i = 0; i < args->m; i += row_len) {
                const size_t count = args->m - i < row_len ? args->m - i : row_len;
                gemm->row_sum((const ifd_q8 *)args->a + i / row_len * args->row_stride +
                                  t * args->tap_stride,
                              count, direct->k, args->a_stride, factor, &to[i]);
            }
        }
        for (size_t i = 0; t > 0 && i < args->m; i++) {
            total[i] += part[i];
        }
    }
    return total;
}

static void multiply(struct ifd_acc_conv_run *run, size_t first_row)
{
    (void)first_row;
    const struct ifd_packed *packed = run->args.packed;
    run->args.row_add = run->conv->layer.has_row_add && !packed->folds_zero ? row_sums(run) : NULL;
    run->step->kernels->gemm_q8.run(&run->args);
}

/* LiteRT's reference kernel scales by a real number and rounds halves away from zero. */
static void multiply_exact(struct ifd_acc_conv_run *run, size_t first_row)
{
    const struct ifd_acc_layer *layer = &run->conv->layer;
    const struct ifd_requant *to = &layer->product.requant;
    const size_t stride = ifd_acc_conv_padded(layer->out_c);
    const int32_t *sums = (const int32_t *)(const void *)ifd_acc_direct_rest(run);
    run->args.out = ifd_acc_direct_rest(run);
    run->args.out_stride = stride;
    multiply(run, first_row);
    for (size_t i = 0; i < run->args.m; i++) {
        ifd_q8 *out = (ifd_q8 *)run->out + (first_row + i) * run->out_stride;
        for (size_t c = run->args.n_begin; c < run->args.n_end; c++) {
            const double y = round(sums[i * stride + c] * layer->product.real[c]) + to->out_zero;
            out[c] = (ifd_q8)(y < to->out_min ? to->out_min : y > to->out_max ? to->out_max : y);
        }
    }
}

/* Turns the sums of a dynamic layer into floats, in place. */
static void rescale(const struct ifd_acc_conv_run *run)
{
    const struct ifd_acc_conv *conv = run->conv;
    const struct ifd_gemm_args *args = &run->args;
    const size_t first = args->n_begin;
    const struct ifd_acc_conv_channels from =
        ifd_acc_direct_channels(conv, (uint8_t *)(uintptr_t)args->packed);
    const int32_t *offset = ifd_acc_conv_sums(run);
    const float *scale =
        (const float *)(const void *)(offset + ifd_acc_conv_padded(conv->layer.out_c));
    float *out = (float *)args->out + first;
    run->step->kernels->quant.rescale(
        &(struct ifd_rescale_args){.rows = args->m,
                                   .n = args->n_end - first,
                                   .row = conv->plan.out_stride,
                                   .sums = (const int32_t *)(const void *)out,
                                   .out = out,
                                   .offset = offset + first,
                                   .scale = scale + first,
                                   .bias = from.bias + first,
                                   .min = conv->layer.product.min,
                                   .max = conv->layer.product.max});
}

static void multiply_dynamic(struct ifd_acc_conv_run *run, size_t first_row)
{
    multiply(run, first_row);
    rescale(run);
}

/* 32-bit sums wait in work memory for at most this many rows. */
#define EXACT_ROWS_MAX 48

void ifd_acc_q8_choose_multiply(const struct ifd_acc_layer *layer, struct ifd_acc_direct *direct)
{
    direct->multiply = layer->product.is_dynamic ? multiply_dynamic
                       : layer->product.real     ? multiply_exact
                                                 : multiply;
    if (layer->product.real && direct->call_rows > EXACT_ROWS_MAX) {
        direct->call_rows = EXACT_ROWS_MAX;
    }
}

size_t ifd_acc_q8_exact_bytes(const struct ifd_acc_layer *layer, size_t rows)
{
    return rows * ifd_acc_conv_padded(layer->out_c) * sizeof(int32_t);
}

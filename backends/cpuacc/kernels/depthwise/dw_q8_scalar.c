/* Q8 depthwise convolution in plain C: complete, and the reference for the other tables. */
#include "backends/cpuacc/kernels/simd/finish_scalar.h"

enum { BLOCK = 8 };

static size_t weight_bytes(size_t taps)
{
    return taps * BLOCK * sizeof(int16_t);
}

static size_t packed_bytes(size_t channels, size_t kh, size_t kw)
{
    size_t block = weight_bytes(kh * kw) + IFD_TAIL_ROWS * 4 * BLOCK;
    return IFD_PACKED_HEADER + (channels + BLOCK - 1) / BLOCK * block;
}

static void pack(const struct ifd_dw_weights *weights, const struct ifd_requant *requant, void *dst)
{
    size_t taps = weights->kh * weights->kw;
    struct ifd_packed *header = dst;
    *header = (struct ifd_packed){
        .bytes = packed_bytes(weights->channels, weights->kh, weights->kw),
        .n = (uint32_t)weights->channels,
        .k = 1,
        .taps = (uint32_t)taps,
        .nr = BLOCK,
        .mr = 1,
        .unit_bytes = (uint32_t)(weight_bytes(taps) + IFD_TAIL_ROWS * 4 * BLOCK)};
    ifd_pack_header(requant, header);
    header->private_[IFD_PACKED_TAIL_OFFSET] = (int32_t)weight_bytes(taps);
    header->private_[IFD_PACKED_KH] = (int32_t)weights->kh;
    header->private_[IFD_PACKED_KW] = (int32_t)weights->kw;
    for (size_t c = 0; c < (weights->channels + BLOCK - 1) / BLOCK * BLOCK; c++) {
        unsigned char *block =
            (unsigned char *)dst + IFD_PACKED_HEADER + c / BLOCK * header->unit_bytes;
        int16_t *w = (int16_t *)(void *)block;
        int64_t sum = 0;
        for (size_t t = 0; t < taps; t++) {
            int value = 0;
            if (c < weights->channels) {
                value = ((const int8_t *)weights->w)[t * weights->stride_tap + c] -
                        requant->weight_zero;
            }
            w[t * BLOCK + c % BLOCK] = (int16_t)value;
            sum += value;
        }
        int32_t bias = c < weights->channels && requant->bias ? requant->bias[c] : 0;
        ifd_pack_tail(requant, c, weights->channels, (int32_t)(bias - requant->in_zero * sum),
                      BLOCK, c % BLOCK, (int32_t *)(void *)(block + weight_bytes(taps)));
    }
}

static size_t scratch_bytes(const struct ifd_dw_args *args, size_t kh, size_t kw)
{
    (void)args;
    (void)kh;
    (void)kw;
    return 0;
}

/* The sum of one channel c of output pixel (y, x), without the bias. */
static int32_t window_sum(const struct ifd_dw_args *args, const int16_t *w, size_t y, size_t x,
                          size_t c)
{
    const int32_t *private_ = ((const struct ifd_packed *)args->packed)->private_;
    int32_t sum = 0;
    for (int ky = 0; ky < private_[IFD_PACKED_KH]; ky++) {
        int64_t iy = (int64_t)(y * args->stride_y) + ky * (int64_t)args->dilation_y - args->pad_top;
        for (int kx = 0; kx < private_[IFD_PACKED_KW]; kx++, w += BLOCK) {
            int64_t ix =
                (int64_t)(x * args->stride_x) + kx * (int64_t)args->dilation_x - args->pad_left;
            int32_t a = private_[IFD_PACKED_IN_ZERO];
            if (iy >= 0 && iy < (int64_t)args->in_h && ix >= 0 && ix < (int64_t)args->in_w) {
                a = ((const ifd_q8 *)args->in)[(size_t)iy * args->in_line_stride +
                                               (size_t)ix * args->in_pixel_stride + c];
            }
            sum += a * *w;
        }
    }
    return sum;
}

static void run(const struct ifd_dw_args *args)
{
    const struct ifd_packed *header = args->packed;
    for (size_t y = args->y_begin; y < args->y_end; y++) {
        for (size_t x = 0; x < args->out_w; x++) {
            ifd_q8 *out =
                (ifd_q8 *)args->out + y * args->out_line_stride + x * args->out_pixel_stride;
            for (size_t c = args->c_begin; c < args->c_end; c++) {
                const unsigned char *block = (const unsigned char *)args->packed +
                                             IFD_PACKED_HEADER + c / BLOCK * header->unit_bytes;
                const int32_t *tail =
                    (const int32_t *)(const void *)(block +
                                                    header->private_[IFD_PACKED_TAIL_OFFSET]);
                const int16_t *w = (const int16_t *)(const void *)block + c % BLOCK;
                int32_t sum =
                    tail[IFD_TAIL_BIAS * BLOCK + c % BLOCK] + window_sum(args, w, y, x, c);
                out[c] = finish_scalar(header, tail, BLOCK, c % BLOCK, sum);
            }
        }
    }
}

const struct ifd_kern_dw_q8 ifd_kern_dw_q8_scalar = {packed_bytes, pack, scratch_bytes, run};

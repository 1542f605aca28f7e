#include "backends/cpuacc/ops/sums.h"

#include <stdlib.h>
#include <string.h>

#define SUM_MAX ((int64_t)1 << 29) /* kernels.h */

bool ifd_acc_sums_fit(const struct ifd_acc_sums *sums)
{
    bool fit = true;
    for (uint32_t i = 0; i < sums->parts; i++) {
        const int8_t *w = sums->weights[i];
        for (size_t r = 0; r < sums->rows; r++) {
            int64_t most = sums->bias[i] ? llabs((int64_t)sums->bias[i][r]) : 0;
            for (size_t c = 0; c < sums->k; c++, w++) {
                most += 255 * abs(*w);
            }
            fit = fit && most < SUM_MAX;
        }
    }
    return fit;
}

size_t ifd_acc_sums_bytes(const struct ifd_acc_sums *sums, const struct ifd_kernels *kernels)
{
    const size_t bytes = kernels->gemm_q8.packed_bytes(sums->parts * sums->rows, sums->k, 1);
    return (bytes + IFD_KERN_ALIGN - 1) / IFD_KERN_ALIGN * IFD_KERN_ALIGN;
}

/* The biases, then the weights. */
size_t ifd_acc_sums_workspace(const struct ifd_acc_sums *sums)
{
    return sums->parts * sums->rows * (sizeof(int32_t) + sums->k);
}

void ifd_acc_sums_pack(const struct ifd_acc_sums *sums, const struct ifd_kernels *kernels,
                       uint8_t *workspace, uint8_t *packed)
{
    const size_t n = sums->parts * sums->rows;
    int32_t *bias = (int32_t *)(void *)workspace;
    uint8_t *weights = workspace + n * sizeof(*bias);
    memset(bias, 0, n * sizeof(*bias));
    for (uint32_t i = 0; i < sums->parts; i++) {
        memcpy(weights + i * sums->rows * sums->k, sums->weights[i], sums->rows * sums->k);
        if (sums->bias[i]) {
            memcpy(bias + i * sums->rows, sums->bias[i], sums->rows * sizeof(*bias));
        }
    }
    const struct ifd_gemm_weights gemm = {
        .w = weights, .n = n, .k = sums->k, .taps = 1, .stride_n = sums->k, .stride_k = 1};
    const struct ifd_requant requant = {
        .bias = bias, .in_zero = sums->zero, .round = IFD_ROUND_NONE};
    kernels->gemm_q8.pack(&gemm, &requant, packed + sums->packed);
}

void ifd_acc_sums_run(const struct ifd_acc_sums *sums, const struct ifd_acc_step *step,
                      const struct ifd_acc_frame *frame, const ifd_q8 *data, size_t count,
                      size_t stride, int32_t *ret)
{
    const size_t n = sums->parts * sums->rows;
    const struct ifd_gemm_args args = {.packed = frame->packed + step->packed + sums->packed,
                                       .a = data,
                                       .out = ret,
                                       .m = count,
                                       .n_end = n,
                                       .a_stride = stride,
                                       .out_stride = n};
    step->kernels->gemm_q8.run(&args);
}

/* (x - x_zero) * (w - w_zero), summed up, is the sum of x * w, less w_zero times that of x, less
 * x_zero times that of w - w_zero. The last is known now, and becomes part of the bias. */
#include "backends/gpuacc/ops/dot.h"

#include "backends/gpuacc/ops/layer.h"

#include <string.h>

/* Of the bias; stays as long as the partition. */
struct sums {
    struct ifd_gpu_dot_size size;
    const uint8_t *weights;
    const int32_t *bias; /* may be NULL */
    bool is_signed;      /* weights */
    int32_t x_zero, w_zero;
};

/* [oc][tap][ic] becomes [tap][ic / 4][oc][ic % 4]. */
static void pack_weights(const void *params, const void *source, void *packed)
{
    const struct ifd_gpu_dot_size *p = params;
    const uint8_t *in = source;
    uint8_t *out = packed;
    memset(out, 0, p->inner * p->row);
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[(i / 4 * p->row + c) * 4 + i % 4] = in[c * p->inner + i];
        }
    }
}

/* Modulo 2^32, as the kernel's sums are: the whole fits. */
static void pack_bias(const void *params, const void *source, void *packed)
{
    const struct sums *p = params;
    uint32_t *out = packed;
    (void)source;
    memset(out, 0, p->size.row * sizeof(*out));
    for (size_t c = 0; c < p->size.out_c; c++) {
        const uint8_t *row = p->weights + c * p->size.inner;
        uint32_t sum = 0;
        for (size_t i = 0; i < p->size.inner; i++) {
            const int32_t weight = p->is_signed ? (int8_t)row[i] : row[i];
            sum += (uint32_t)(weight - p->w_zero);
        }
        out[c] = (p->bias ? (uint32_t)p->bias[c] : 0) - (uint32_t)p->x_zero * sum;
    }
}

enum ifd_code ifd_gpu_dot_constants(struct ifd_gpu_lowering *lowering,
                                    const struct ifd_node_view *node,
                                    const struct ifd_gpu_dot_size *size, struct ifd_gpu_call *call,
                                    struct ifd_err *err)
{
    static const char *const means[] = {[IFD_GPU_DOT_PLAIN] = "DOT_PLAIN",
                                        [IFD_GPU_DOT_ARM] = "DOT_ARM",
                                        [IFD_GPU_DOT_KHR] = "DOT_KHR"};
    const struct ifd_desc *weights = node->input[1].desc;
    struct sums *sums = ifd_low_params(&lowering->base, 1, sizeof(*sums));
    if (!sums) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*sums), err);
    }
    *sums = (struct sums){.size = *size,
                          .weights = node->input[1].data.data,
                          .bias = node->input_count > 2
                                      ? (const int32_t *)(const void *)node->input[2].data.data
                                      : NULL,
                          .is_signed = weights->dtype == IFD_S8,
                          .x_zero = node->input[0].desc->quant.zero_point[0],
                          .w_zero = weights->quant.count > 1 ? 0 : weights->quant.zero_point[0]};
    ifd_gpu_define(call, "#define DOT\n#define %s\n%s", means[lowering->device->info.dot],
                   sums->w_zero ? "#define HAS_W_ZERO\n" : "");
    ifd_gpu_constant(call, pack_weights, &sums->size, sums->weights, size->inner * size->row);
    ifd_gpu_in_rows(call, size->row);
    ifd_gpu_constant(call, pack_bias, sums, NULL, size->row * sizeof(int32_t));
    return ifd_gpu_layer_factors(lowering, node, size->out_c, size->row, call, err);
}

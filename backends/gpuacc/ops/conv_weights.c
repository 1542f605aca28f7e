/* Weights of convolutions as their kernels read them. */
#include "backends/gpuacc/ops/conv_layer.h"
#include "backends/gpuacc/ops/dot.h"
#include "engine/tensor/half.h"

#include <string.h>

struct pack {
    size_t out_c, row, inner; /* inner: taps × input channels of a group */
};

/* [oc][tap][ic] becomes [tap][ic][oc]. */
static void pack_f32(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const float *in = source;
    float *out = packed;
    memset(out, 0, p->inner * p->row * sizeof(*out));
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = in[c * p->inner + i];
        }
    }
}

static void pack_f16(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const float *in = source;
    uint16_t *out = packed;
    memset(out, 0, p->inner * p->row * sizeof(*out));
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = ifd_f16_from_f32(in[c * p->inner + i]);
        }
    }
}

static void pack_q8(const void *params, const void *source, void *packed)
{
    const struct pack *p = params;
    const uint8_t *in = source;
    uint8_t *out = packed;
    memset(out, 0, p->inner * p->row);
    for (size_t c = 0; c < p->out_c; c++) {
        for (size_t i = 0; i < p->inner; i++) {
            out[i * p->row + c] = in[c * p->inner + i];
        }
    }
}

enum ifd_code ifd_gpu_conv_constants(struct ifd_gpu_lowering *lowering,
                                     const struct ifd_gpu_conv_layer *layer,
                                     const struct ifd_node_view *node, enum ifd_gpu_weights weights,
                                     struct ifd_gpu_call *call, struct ifd_err *err)
{
    const bool is_q8 = ifd_gpu_is_q8(node->output[0].dtype);
    const bool is_f16 = ifd_gpu_has_f16_weights(lowering, node);
    /* of a transposed one no pixel sees all taps, which the bias of dot products counts on */
    if (is_q8 && lowering->device->info.dot && !layer->is_transposed &&
        ifd_gpu_conv_group_in(layer) % 4 == 0) {
        const struct ifd_gpu_dot_size size = {layer->out_c, ifd_gpu_conv_weights_row(layer),
                                              ifd_gpu_conv_taps(layer) *
                                                  ifd_gpu_conv_group_in(layer)};
        return ifd_gpu_dot_constants(lowering, node, &size, call, err);
    }
    struct pack *pack = ifd_low_params(&lowering->base, 1, sizeof(*pack));
    if (!pack) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*pack), err);
    }
    *pack = (struct pack){.out_c = layer->out_c,
                          .row = ifd_gpu_conv_weights_row(layer),
                          .inner = ifd_gpu_conv_taps(layer) * ifd_gpu_conv_group_in(layer)};
    const ifd_gpu_pack_fn fn = is_q8 ? pack_q8 : is_f16 ? pack_f16 : pack_f32;
    const size_t bytes = is_q8 ? 1 : is_f16 ? sizeof(uint16_t) : sizeof(float); /* of a weight */
    ifd_gpu_constant(call, fn, pack, node->input[1].data.data, pack->inner * pack->row * bytes);
    ifd_gpu_in_rows(call, pack->row);
    if (weights == IFD_GPU_IMAGE) {
        ifd_gpu_as_image(call, &(struct ifd_gpu_image){.width = pack->row / 4,
                                                       .height = pack->inner,
                                                       .is_half = is_f16});
    }
    return ifd_gpu_layer_constants(lowering, node, layer->out_c, ifd_gpu_conv_weights_row(layer),
                                   call, err);
}

/* Rows are quantized in a step of their own. */
#include "backends/gpuacc/ops/dynamic.h"

#include "backends/gpuacc/ops/rows.h"
#include "backends/lowering/requantize.h"
#include "inferd/op_attrs.h"

#include <string.h>

#define DEPTH_MAX 65536 /* 255 * 127 times it fits 31 bits */

static bool has_constant(const struct ifd_node_view *node, uint32_t input, enum ifd_dtype dtype)
{
    return node->input[input].desc->dtype == dtype && node->input[input].data.data != NULL;
}

bool ifd_gpu_dynamic_takes(const struct ifd_node_view *node)
{
    const struct ifd_fully_connected_attrs *attrs = node->attrs;
    const struct ifd_desc *weights = node->input[1].desc;
    const bool has_bias = node->input_count > 2 && node->input[2].desc;
    float min = 0, max = 0;
    bool is_symmetric = true;
    for (uint32_t i = 0; i < weights->quant.count; i++) {
        is_symmetric &= weights->quant.zero_point[i] == 0;
    }
    return node->input[0].desc->dtype == IFD_F32 && has_constant(node, 1, IFD_S8) &&
           !attrs->rounds_even && (!has_bias || has_constant(node, 2, IFD_F32)) &&
           weights->quant.count > 0 && is_symmetric && weights->shape.dim[1] <= DEPTH_MAX &&
           ifd_low_clamp_f32(attrs->activation, &min, &max);
}

struct layer {
    size_t out_c, padded, depth;
    const struct ifd_quant *quant; /* of the weights */
    const float *bias;
};

static void pack_weights(const void *params, const void *source, void *packed)
{
    const struct layer *layer = params;
    const int8_t *from = source;
    int8_t *to = packed;
    memset(to, 0, layer->depth * layer->padded);
    for (size_t c = 0; c < layer->out_c; c++) {
        for (size_t i = 0; i < layer->depth; i++) {
            to[i * layer->padded + c] = from[c * layer->depth + i];
        }
    }
}

static void pack_scales(const void *params, const void *source, void *packed)
{
    const struct layer *layer = params;
    float *to = packed;
    (void)source;
    memset(to, 0, layer->padded * sizeof(*to));
    for (size_t c = 0; c < layer->out_c; c++) {
        to[c] = layer->quant->scale[layer->quant->count > 1 ? c : 0];
    }
}

static void pack_bias(const void *params, const void *source, void *packed)
{
    const struct layer *layer = params;
    (void)source;
    memset(packed, 0, layer->padded * sizeof(float));
    if (layer->bias) {
        memcpy(packed, layer->bias, layer->out_c * sizeof(float));
    }
}

static enum ifd_code quantize(struct ifd_gpu_lowering *lowering,
                              const struct ifd_partition_node *node, size_t rows, size_t depth,
                              uint32_t numbers, uint32_t ranges, struct ifd_err *err)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    const size_t items = ifd_gpu_group_items(lowering->device, depth);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_quantize_rows);
    ifd_gpu_define(&call, "#define ITEMS %zu\n", items);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out_elements(&call, numbers, 1);
    ifd_gpu_out_elements(&call, ranges, sizeof(float));
    ifd_gpu_int(&call, (int64_t)depth);
    ifd_gpu_int(&call, attrs->asymmetric_inputs);
    ifd_gpu_items(&call, rows * items, 1, 1);
    ifd_gpu_group(&call, items, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "quantize", 0, err);
}

static enum ifd_code multiply(struct ifd_gpu_lowering *lowering,
                              const struct ifd_partition_node *node, const struct layer *layer,
                              size_t rows, uint32_t numbers, uint32_t ranges, struct ifd_err *err)
{
    const struct ifd_fully_connected_attrs *attrs = node->view.attrs;
    float min = 0, max = 0;
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_dense_dynamic);
    ifd_gpu_define(&call, "#define ITEMS 1\n");
    ifd_gpu_in_elements(&call, numbers, 1);
    ifd_gpu_in_elements(&call, ranges, sizeof(float));
    ifd_gpu_constant(&call, pack_weights, layer, node->view.input[1].data.data,
                     layer->depth * layer->padded);
    ifd_gpu_in_rows(&call, layer->padded);
    ifd_gpu_constant(&call, pack_scales, layer, NULL, layer->padded * sizeof(float));
    ifd_gpu_constant(&call, pack_bias, layer, NULL, layer->padded * sizeof(float));
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)rows);
    ifd_gpu_int(&call, (int64_t)layer->depth);
    ifd_gpu_int(&call, (int64_t)layer->out_c);
    ifd_gpu_int(&call, (int64_t)layer->padded);
    (void)ifd_low_clamp_f32(attrs->activation, &min, &max);
    ifd_gpu_float(&call, min);
    ifd_gpu_float(&call, max);
    ifd_gpu_items(&call, layer->padded / 4, rows, 1);
    return ifd_gpu_add_step(lowering, &call, "fully_connected",
                            (uint64_t)rows * layer->depth * layer->out_c, err);
}

enum ifd_code ifd_gpu_dynamic_lower(struct ifd_gpu_lowering *lowering,
                                    const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *weights = node->view.input[1].desc;
    const size_t out_c = (size_t)weights->shape.dim[0], depth = (size_t)weights->shape.dim[1];
    const size_t rows = ifd_gpu_elements(&node->view.input[0].desc->shape) / depth;
    struct layer *layer = ifd_low_params(&lowering->base, 1, sizeof(*layer));
    uint32_t numbers = 0, ranges = 0;
    if (!layer) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*layer), err);
    }
    *layer = (struct layer){
        .out_c = out_c,
        .padded = (out_c + 3) / 4 * 4,
        .depth = depth,
        .quant = &weights->quant,
        .bias = node->view.input_count > 2 ? (const void *)node->view.input[2].data.data : NULL};
    enum ifd_code code = ifd_low_add_value(&lowering->base, rows * depth, &numbers, err);
    if (code == IFD_OK) {
        code = ifd_low_add_value(&lowering->base, rows * 2 * sizeof(float), &ranges, err);
    }
    if (code == IFD_OK) {
        code = quantize(lowering, node, rows, depth, numbers, ranges, err);
    }
    return code == IFD_OK ? multiply(lowering, node, layer, rows, numbers, ranges, err) : code;
}

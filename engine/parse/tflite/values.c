/* Tensors of a TFLite model become values when an operator needs them. */
#include "engine/ir/shape.h"
#include "engine/parse/tflite/tflite_build.h"

static enum ifd_code check_usable(const struct ifd_tflite_build *b,
                                  const struct ifd_tflite_tensor *t, struct ifd_desc *ret)
{
    const char *why = NULL;
    struct ifd_bytes content = {0};
    const bool is_packed = ifd_tflite_narrow_bits(t->type) > 0 || t->has_blocks;
    if (t->custom_quantization) {
        why = "has a custom quantization";
    } else if (is_packed && (t->buffer >= b->model->buffer_count ||
                             !ifd_tflite_content(&b->model->buffer[t->buffer], b->file, &content) ||
                             content.size == 0)) {
        why = t->has_blocks ? "has a quantization of blocks and is not constant"
                            : "has numbers of less than 8 bits that are not constant";
    } else if (!ifd_tflite_shape(&t->shape, &ret->shape)) {
        why = "has more than 8 dimensions";
    } else if (!ifd_tflite_dtype(t->type, &ret->dtype)) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "tensor " NAME_FORMAT " has type %d, which is not supported", t->name,
                        t->type);
    }
    if (t->has_blocks) {
        ret->dtype = IFD_F32; /* constants.c applies the scales */
    }
    if (why) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "tensor " NAME_FORMAT " %s, which is not supported", t->name, why);
    }
    return IFD_OK;
}

/* Zero points as 32-bit numbers. Those of weights are mostly all 0: these are shared. */
static enum ifd_code read_zero_points(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                      const int32_t **ret)
{
    struct ifd_arena *arena = b->graph->arena;
    bool is_zero = true;
    for (uint32_t i = 0; i < t->scale_count && is_zero; i++) {
        is_zero = ifd_tflite_zero_point(t, i) == 0;
    }
    if (is_zero && t->scale_count <= b->zero_count) {
        *ret = b->zeros;
        return IFD_OK;
    }
    int32_t *zero_point = ifd_arena_take_array(arena, t->scale_count, sizeof(*zero_point));
    if (!zero_point) {
        return ifd_arena_fail(arena, t->scale_count * sizeof(*zero_point), b->err);
    }
    if (is_zero) {
        b->zeros = zero_point;
        b->zero_count = t->scale_count;
    }
    for (uint32_t i = 0; i < t->scale_count && !is_zero; i++) {
        zero_point[i] = (int32_t)ifd_tflite_zero_point(t, i);
    }
    *ret = zero_point;
    return IFD_OK;
}

/* Scales stay in the file. Quantization of float tensors is ignored. */
enum ifd_code ifd_tflite_read_quantization(struct ifd_tflite_build *b,
                                           const struct ifd_tflite_tensor *t, struct ifd_desc *desc)
{
    const int32_t *zero_point = NULL;
    if (t->scale_count == 0 || !(IFD_TFLITE_QUANTIZED & IFD_BIT(desc->dtype))) {
        return IFD_OK;
    }
    const enum ifd_code code = read_zero_points(b, t, &zero_point);
    if (code != IFD_OK) {
        return code;
    }
    desc->quant =
        (struct ifd_quant){.scale = t->scale, .zero_point = zero_point, .count = t->scale_count};
    if (t->scale_count > 1) {
        desc->quant.axis = (uint32_t)t->quantized_dimension;
    }
    return IFD_OK;
}

enum ifd_code ifd_tflite_describe(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                  struct ifd_desc *ret)
{
    const enum ifd_code code = check_usable(b, t, ret);
    return code == IFD_OK ? ifd_tflite_read_quantization(b, t, ret) : code;
}

enum ifd_code ifd_tflite_add_value(struct ifd_tflite_build *b, uint32_t tensor, uint32_t *ret)
{
    const struct ifd_tflite_tensor *t = &b->g->tensor[tensor];
    struct ifd_desc desc = {0};
    enum ifd_code code = ifd_tflite_describe(b, t, &desc);
    if (code == IFD_OK) {
        code = ifd_graph_add_value(b->graph, t->name, &desc, ret, b->err);
    }
    if (code == IFD_OK) {
        b->value_of[tensor] = *ret;
    }
    return code;
}

enum ifd_code ifd_tflite_value_of(struct ifd_tflite_build *b, int32_t tensor, uint32_t *ret)
{
    if (tensor < 0) {
        *ret = IFD_NONE;
        return IFD_OK;
    }
    *ret = b->value_of[tensor];
    return *ret == IFD_NONE ? ifd_tflite_add_constant(b, (uint32_t)tensor, ret) : IFD_OK;
}

enum ifd_code ifd_tflite_check_bytes(const struct ifd_tflite_build *b, uint32_t value)
{
    const struct ifd_value *v = &b->graph->value[value];
    if (!ifd_desc_fits(&v->desc, b->options->limits->tensor_bytes)) {
        return ifd_fail(b->err, IFD_TOO_LARGE,
                        "tensor " NAME_FORMAT " of %s %s has more than %zu bytes", v->name,
                        ifd_dtype_name(v->desc.dtype), ifd_shape_text(&v->desc.shape).s,
                        b->options->limits->tensor_bytes);
    }
    return IFD_OK;
}

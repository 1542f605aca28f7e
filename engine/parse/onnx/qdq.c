/* What exporters write in place of an operator's quantized form: DequantizeLinear, the operator,
 * QuantizeLinear; and DynamicQuantizeLinear, sums of whole numbers, and their product with both
 * scales. Found when the last node is translated; what the others have made is read by nobody then,
 * and goes. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"
#include "engine/parse/onnx/quantized.h"

#define INPUTS_MAX 9

/* The quantized form of an operator, while it is made. */
struct form {
    struct ifd_onnx_call call;
    uint32_t input[INPUTS_MAX];
    int32_t activation;
};

static const struct ifd_onnx_node *made_by(const struct ifd_onnx_call *call, struct ifd_str name,
                                           const char *op)
{
    const struct ifd_onnx_node *node = ifd_onnx_maker(call->build, name);
    const bool is_main = node && (node->domain.size == 0 || ifd_str_is(node->domain, "ai.onnx"));
    return is_main && ifd_str_is(node->op, op) ? node : NULL;
}

static uint32_t value_of(const struct ifd_onnx_call *call, const struct ifd_onnx_node *node,
                         uint32_t i)
{
    return i < node->input_count && node->input[i].size > 0
               ? ifd_onnx_lookup(call->build, node->input[i])
               : IFD_NONE;
}

static bool has_blocks(const struct ifd_onnx_call *call, const struct ifd_onnx_node *node)
{
    struct ifd_onnx_call of = *call;
    of.node = node;
    return ifd_onnx_int(&of, "block_size", 0) != 0;
}

/* Input i of the operator as numbers, scale and zero point, from input to of the form on. */
static bool take_operand(struct form *form, const struct ifd_onnx_node *node, uint32_t i,
                         uint32_t to)
{
    const struct ifd_onnx_node *real =
        i < node->input_count ? made_by(&form->call, node->input[i], "DequantizeLinear") : NULL;
    for (uint32_t k = 0; real && k < 3; k++) {
        form->input[to + k] = value_of(&form->call, real, k);
    }
    return real && form->input[to] != IFD_NONE && form->input[to + 1] != IFD_NONE &&
           !has_blocks(&form->call, real);
}

/* Channels of weights that are dequantized along another axis have scales of another meaning. */
static bool has_axis(const struct form *form, const struct ifd_onnx_node *node, uint32_t i,
                     int64_t channels)
{
    struct ifd_onnx_call real = form->call;
    real.node = made_by(&form->call, node->input[i], "DequantizeLinear");
    const int64_t axis = ifd_onnx_int(&real, "axis", 1);
    const uint32_t rank = ifd_build_desc(real.b, form->input[3])->shape.rank;
    const struct ifd_shape scales = ifd_build_desc(real.b, form->input[4])->shape;
    return scales.rank == 0 || (scales.rank == 1 && scales.dim[0] == 1) ||
           (axis < 0 ? axis + (int64_t)rank : axis) == channels;
}

static float float_at(struct ifd_bytes floats, size_t i)
{
    float x = 0;
    memcpy(&x, floats.data + (floats.size > sizeof(x) ? i * sizeof(x) : 0), sizeof(x));
    return x;
}

/* A bias counts in the product of both scales. */
static bool take_bias(struct form *form, const struct ifd_onnx_node *node, uint32_t to)
{
    if (node->input_count < 3 || node->input[2].size == 0) {
        return true;
    }
    struct ifd_builder *b = form->call.b;
    const struct ifd_onnx_node *real = made_by(&form->call, node->input[2], "DequantizeLinear");
    const uint32_t bias = real ? value_of(&form->call, real, 0) : IFD_NONE;
    const uint32_t scale = real ? value_of(&form->call, real, 1) : IFD_NONE;
    const struct ifd_bytes steps = ifd_build_content(b, scale),
                           x = ifd_build_content(b, form->input[1]),
                           w = ifd_build_content(b, form->input[4]);
    const size_t count = steps.size / sizeof(float), most = w.size / sizeof(float);
    if (bias == IFD_NONE || count == 0 || most == 0 || x.size != sizeof(float) ||
        ifd_build_desc(b, bias)->dtype != IFD_S32 || ifd_build_desc(b, scale)->dtype != IFD_F32 ||
        ifd_build_desc(b, form->input[1])->dtype != IFD_F32 ||
        ifd_build_desc(b, form->input[4])->dtype != IFD_F32 || (count != 1 && count != most)) {
        return false;
    }
    for (size_t i = 0; i < most; i++) {
        const float product = float_at(x, 0) * float_at(w, i);
        if (!(fabsf(float_at(steps, i) - product) <= 1e-5f * product)) {
            return false;
        }
    }
    form->input[to] = bias;
    return true;
}

/* The operator in front of the quantization, and the clamp between them. */
static const struct ifd_onnx_node *find_operator(const struct ifd_onnx_call *call,
                                                 int32_t *ret_activation)
{
    const struct ifd_onnx_node *relu = made_by(call, call->node->input[0], "Relu");
    *ret_activation = relu ? IFD_ACT_RELU : IFD_ACT_NONE;
    return ifd_onnx_maker(call->build, relu ? relu->input[0] : call->node->input[0]);
}

static uint32_t fused_conv(struct form *form, const struct ifd_onnx_node *node)
{
    form->call.input_count = 9;
    return take_operand(form, node, 0, 0) && take_operand(form, node, 1, 3) &&
                   has_axis(form, node, 1, 0) && take_bias(form, node, 8)
               ? ifd_onnx_stored_conv(&form->call, form->activation)
               : IFD_NONE;
}

static uint32_t fused_matmul(struct form *form, const struct ifd_onnx_node *node)
{
    form->call.input_count = 8;
    return take_operand(form, node, 0, 0) && take_operand(form, node, 1, 3) &&
                   has_axis(form, node, 1, 1)
               ? ifd_onnx_stored_matmul(&form->call, form->activation)
               : IFD_NONE;
}

static uint32_t fused_gemm(struct form *form, const struct ifd_onnx_node *node)
{
    const int64_t channels = ifd_onnx_int(&form->call, "transB", 0) != 0 ? 0 : 1;
    form->input[8] = form->input[7];
    form->input[7] = form->input[6];
    form->input[6] = IFD_NONE;
    form->call.input_count = 9;
    return take_operand(form, node, 0, 0) && take_operand(form, node, 1, 3) &&
                   has_axis(form, node, 1, channels) && take_bias(form, node, 6)
               ? ifd_onnx_stored_gemm(&form->call, form->activation)
               : IFD_NONE;
}

static uint32_t fused_binary(struct form *form, const struct ifd_onnx_node *node, enum ifd_op op)
{
    form->call.input_count = 8;
    return take_operand(form, node, 0, 0) && take_operand(form, node, 1, 3)
               ? ifd_onnx_stored_binary(&form->call, op, form->activation)
               : IFD_NONE;
}

uint32_t ifd_onnx_fused_qdq(struct ifd_onnx_call *call)
{
    struct form form = {.call = *call};
    const struct ifd_onnx_node *node = find_operator(call, &form.activation);
    const bool is_main = node && (node->domain.size == 0 || ifd_str_is(node->domain, "ai.onnx"));
    const bool has_plain_zero =
        ifd_onnx_input(call, 2) != IFD_NONE || ifd_onnx_int(call, "output_dtype", 0) == 0;
    if (!is_main || node->input_count < 2 || !has_plain_zero || has_blocks(call, call->node)) {
        return IFD_NONE;
    }
    for (uint32_t i = 0; i < INPUTS_MAX; i++) {
        form.input[i] = IFD_NONE;
    }
    form.input[6] = ifd_onnx_input(call, 1);
    form.input[7] = ifd_onnx_input(call, 2);
    form.call.node = node;
    form.call.input = form.input;
    return ifd_str_is(node->op, "Conv")     ? fused_conv(&form, node)
           : ifd_str_is(node->op, "MatMul") ? fused_matmul(&form, node)
           : ifd_str_is(node->op, "Gemm")   ? fused_gemm(&form, node)
           : ifd_str_is(node->op, "Add")    ? fused_binary(&form, node, IFD_OP_ADD)
           : ifd_str_is(node->op, "Mul")    ? fused_binary(&form, node, IFD_OP_MUL)
                                            : IFD_NONE;
}

/* ---- sums of numbers that are quantized at run time ---- */

/* Sums of products with numbers of DynamicQuantizeLinear, turned into floats. Returns the latter,
 * whose zero point they use, too. */
static const struct ifd_onnx_node *find_sums(const struct ifd_onnx_call *call, struct ifd_str name,
                                             const struct ifd_onnx_node **ret_sums)
{
    struct ifd_onnx_call cast = *call;
    cast.node = made_by(call, name, "Cast");
    if (!cast.node || ifd_onnx_int(&cast, "to", 0) != IFD_ONNX_FLOAT) {
        return NULL;
    }
    const struct ifd_onnx_node *conv = made_by(call, cast.node->input[0], "ConvInteger");
    const struct ifd_onnx_node *sums =
        conv ? conv : made_by(call, cast.node->input[0], "MatMulInteger");
    const struct ifd_onnx_node *quantize =
        sums && sums->input_count > 2 ? made_by(call, sums->input[0], "DynamicQuantizeLinear")
                                      : NULL;
    const bool is_whole = quantize && quantize->output_count == 3 && quantize->input_count == 1 &&
                          ifd_onnx_is_same(quantize->output[0], sums->input[0]) &&
                          ifd_onnx_is_same(quantize->output[2], sums->input[2]);
    *ret_sums = sums;
    return is_whole ? quantize : NULL;
}

/* The other factor of a product of two. */
static struct ifd_str other_factor(const struct ifd_onnx_node *product, struct ifd_str factor)
{
    return ifd_onnx_is_same(product->input[0], factor)   ? product->input[1]
           : ifd_onnx_is_same(product->input[1], factor) ? product->input[0]
                                                         : (struct ifd_str){0};
}

/* One scale, or one for each channel, which lie so many dimensions before the end; no dimensions
 * but those of the sums. */
static bool lie_along(const struct ifd_shape *scales, uint32_t before_end, uint32_t rank)
{
    bool ok = scales->rank <= rank;
    for (uint32_t d = 0; d < scales->rank; d++) {
        ok = ok && (scales->dim[d] == 1 || scales->rank - d == before_end);
    }
    return ok;
}

uint32_t ifd_onnx_dynamic_product(struct ifd_onnx_call *call)
{
    struct form form = {.call = *call};
    for (uint32_t i = 0; i < 2; i++) {
        const struct ifd_onnx_node *sums = NULL;
        const struct ifd_onnx_node *quantize = find_sums(call, call->node->input[i], &sums);
        const struct ifd_onnx_node *scales =
            quantize ? made_by(call, call->node->input[1 - i], "Mul") : NULL;
        const struct ifd_str name =
            scales ? other_factor(scales, quantize->output[1]) : (struct ifd_str){0};
        if (name.size == 0) {
            continue;
        }
        for (uint32_t k = 0; k < INPUTS_MAX; k++) {
            form.input[k] = IFD_NONE;
        }
        form.input[0] = value_of(call, quantize, 0);
        form.input[3] = value_of(call, sums, 1);
        form.input[4] = ifd_onnx_lookup(call->build, name);
        form.input[5] = value_of(call, sums, 3);
        form.call.node = sums;
        form.call.input = form.input;
        form.call.input_count = 6;
        if (form.input[0] == IFD_NONE || form.input[3] == IFD_NONE || form.input[4] == IFD_NONE) {
            return IFD_NONE;
        }
        const bool is_conv = ifd_str_is(sums->op, "ConvInteger");
        const uint32_t rank = ifd_build_desc(call->b, form.input[0])->shape.rank;
        const struct ifd_shape shape = ifd_build_desc(call->b, form.input[4])->shape;
        return !lie_along(&shape, is_conv ? rank - 1 : 1, rank) ? IFD_NONE
               : is_conv                                        ? ifd_onnx_dynamic_conv(&form.call)
                         : ifd_onnx_dynamic_matmul(&form.call);
    }
    return IFD_NONE;
}

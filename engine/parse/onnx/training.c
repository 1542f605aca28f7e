/* Steps of training (ai.onnx.preview.training): each updates any number of tensors. */
#include "engine/parse/onnx/onnx_impl.h"

/* One tensor of a step: x and its gradient, and what the step remembers of it. */
struct step {
    struct ifd_onnx_call *call;
    struct ifd_builder *b;
    uint32_t rate;  /* f32 */
    uint32_t count; /* f32: steps before this one */
    uint32_t tensors;
};

static uint32_t times(const struct step *s, uint32_t x, double factor)
{
    return ifd_build_with(s->b, IFD_OP_MUL, x, factor);
}

static uint32_t combine(const struct step *s, enum ifd_op op, uint32_t x, uint32_t y)
{
    return ifd_build_binary(s->b, op, x, y);
}

/* Tensor i of a group: x 0, gradients 1, then what is remembered. */
static uint32_t operand(const struct step *s, uint32_t group, uint32_t i)
{
    return s->call->input[2 + group * s->tensors + i];
}

static void result(const struct step *s, uint32_t group, uint32_t i, uint32_t value)
{
    s->call->output[group * s->tensors + i] = value;
}

/* The gradient with the one of a penalty on large numbers. */
static uint32_t gradient(const struct step *s, uint32_t i)
{
    const double norm = ifd_onnx_f32(s->call, "norm_coefficient", 0);
    const uint32_t g = operand(s, 1, i);
    return norm == 0 ? g : combine(s, IFD_OP_ADD, times(s, operand(s, 0, i), norm), g);
}

/* value where steps went before, otherwise at the first one. */
static uint32_t later(const struct step *s, uint32_t value, uint32_t otherwise)
{
    const uint32_t is_later =
        ifd_onnx_compared(s->b, IFD_OP_GREATER, s->count, ifd_build_number(s->b, IFD_F32, 0));
    return ifd_onnx_selected(s->b, is_later, value, otherwise);
}

static void adagrad(const struct step *s, uint32_t i)
{
    const double decay = ifd_onnx_f32(s->call, "decay_factor", 0);
    const double epsilon = ifd_onnx_f32(s->call, "epsilon", 1e-6);
    const uint32_t g = gradient(s, i);
    const uint32_t rate = combine(s, IFD_OP_DIV, s->rate,
                                  ifd_build_with(s->b, IFD_OP_ADD, times(s, s->count, decay), 1));
    const uint32_t h = combine(s, IFD_OP_ADD, operand(s, 2, i), combine(s, IFD_OP_MUL, g, g));
    const uint32_t root =
        ifd_build_with(s->b, IFD_OP_ADD, ifd_build_unary(s->b, IFD_OP_SQRT, h), epsilon);
    const uint32_t move = combine(s, IFD_OP_DIV, combine(s, IFD_OP_MUL, rate, g), root);
    result(s, 0, i, combine(s, IFD_OP_SUB, operand(s, 0, i), move));
    result(s, 1, i, h);
}

static uint32_t blend(const struct step *s, uint32_t old, uint32_t new, double share)
{
    return combine(s, IFD_OP_ADD, times(s, old, share), times(s, new, 1 - share));
}

/* 1 - base ^ count */
static uint32_t remaining(const struct step *s, double base)
{
    const uint32_t power = combine(s, IFD_OP_POW, ifd_build_number(s->b, IFD_F32, base), s->count);
    return combine(s, IFD_OP_SUB, ifd_build_number(s->b, IFD_F32, 1), power);
}

static void adam(const struct step *s, uint32_t i)
{
    const double alpha = ifd_onnx_f32(s->call, "alpha", 0.9);
    const double beta = ifd_onnx_f32(s->call, "beta", 0.999);
    const double epsilon = ifd_onnx_f32(s->call, "epsilon", 1e-6);
    const double post = ifd_onnx_f32(s->call, "norm_coefficient_post", 0);
    const uint32_t g = gradient(s, i);
    const uint32_t v = blend(s, operand(s, 2, i), g, alpha);
    const uint32_t h = blend(s, operand(s, 3, i), combine(s, IFD_OP_MUL, g, g), beta);
    const uint32_t root =
        ifd_build_with(s->b, IFD_OP_ADD, ifd_build_unary(s->b, IFD_OP_SQRT, h), epsilon);
    const uint32_t scale = combine(
        s, IFD_OP_DIV, ifd_build_unary(s->b, IFD_OP_SQRT, remaining(s, beta)), remaining(s, alpha));
    const uint32_t rate = later(s, combine(s, IFD_OP_MUL, s->rate, scale), s->rate);
    const uint32_t move = combine(s, IFD_OP_DIV, combine(s, IFD_OP_MUL, rate, v), root);
    result(s, 0, i, times(s, combine(s, IFD_OP_SUB, operand(s, 0, i), move), 1 - post));
    result(s, 1, i, v);
    result(s, 2, i, h);
}

static void momentum(const struct step *s, uint32_t i)
{
    const double alpha = ifd_onnx_f32(s->call, "alpha", 0);
    const double beta = ifd_onnx_f32(s->call, "beta", 0);
    const uint32_t g = gradient(s, i);
    const uint32_t v =
        combine(s, IFD_OP_ADD, times(s, operand(s, 2, i), alpha), later(s, times(s, g, beta), g));
    const uint32_t along = ifd_onnx_text_is(s->call, "mode", "nesterov", false)
                               ? combine(s, IFD_OP_ADD, g, times(s, v, alpha))
                               : v;
    const uint32_t move = combine(s, IFD_OP_MUL, s->rate, along);
    result(s, 0, i, combine(s, IFD_OP_SUB, operand(s, 0, i), move));
    result(s, 1, i, v);
}

void ifd_onnx_train(struct ifd_onnx_call *call, int which)
{
    static const struct {
        void (*step)(const struct step *s, uint32_t i);
        uint32_t groups; /* of inputs; as many but one of outputs */
    } kinds[] = {[IFD_ONNX_ADAGRAD] = {adagrad, 3},
                 [IFD_ONNX_ADAM] = {adam, 4},
                 [IFD_ONNX_MOMENTUM] = {momentum, 3}};
    const uint32_t groups = kinds[which].groups, inputs = call->input_count - 2;
    const uint32_t tensors = inputs / groups;
    if (inputs % groups != 0 || call->output_count != tensors * (groups - 1)) {
        ifd_build_fail(call->b, IFD_CORRUPT, "%u inputs and %u outputs, expected %u and %u each",
                       call->input_count, call->output_count, groups, groups - 1);
        return;
    }
    const struct step step = {.call = call,
                              .b = call->b,
                              .rate = call->input[0],
                              .count = ifd_build_cast(call->b, call->input[1], IFD_F32),
                              .tensors = tensors};
    for (uint32_t i = 0; i < tensors; i++) {
        kinds[which].step(&step, i);
    }
}

/* Functions of floats. */

#include "engine/parse/onnx/onnx_impl.h"

/* gamma * (max(x, 0) + alpha * (exp(min(x, 0) / divisor) - 1)) */
static uint32_t exponential_below(struct ifd_builder *b, uint32_t x, double alpha, double gamma,
                                  double divisor)
{
    if (alpha == 1 && gamma == 1 && divisor == 1) {
        return ifd_build_unary(b, IFD_OP_ELU, x);
    }
    uint32_t below = ifd_build_with(b, IFD_OP_MINIMUM, x, 0);
    below = divisor == 1 ? below : ifd_build_with(b, IFD_OP_MUL, below, 1 / divisor);
    below = ifd_build_with(b, IFD_OP_SUB, ifd_build_unary(b, IFD_OP_EXP, below), 1);
    below = ifd_build_with(b, IFD_OP_MUL, below, alpha);
    const uint32_t sum = ifd_build_binary(b, IFD_OP_ADD, ifd_build_unary(b, IFD_OP_RELU, x), below);
    return gamma == 1 ? sum : ifd_build_with(b, IFD_OP_MUL, sum, gamma);
}

/* ---- activations ---- */

static uint32_t affine(struct ifd_builder *b, uint32_t x, double alpha, double beta)
{
    return ifd_build_with(b, IFD_OP_ADD, ifd_build_with(b, IFD_OP_MUL, x, alpha), beta);
}

static uint32_t elu(struct ifd_builder *b, uint32_t x, double alpha, double unused)
{
    (void)unused;
    return exponential_below(b, x, alpha, 1, 1);
}

static uint32_t hard_sigmoid(struct ifd_builder *b, uint32_t x, double alpha, double beta)
{
    return ifd_build_clamp(b, affine(b, x, alpha, beta), 0, 1);
}

static uint32_t leaky_relu(struct ifd_builder *b, uint32_t x, double alpha, double unused)
{
    const struct ifd_leaky_relu_attrs attrs = {.alpha = (float)alpha};
    (void)unused;
    return ifd_build_node(b, IFD_OP_LEAKY_RELU, &x, 1, NULL, &attrs);
}

static uint32_t relu(struct ifd_builder *b, uint32_t x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return ifd_build_unary(b, IFD_OP_RELU, x);
}

static uint32_t hyperbolic_tangent(struct ifd_builder *b, uint32_t x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return ifd_build_unary(b, IFD_OP_TANH, x);
}

static uint32_t scaled_tanh(struct ifd_builder *b, uint32_t x, double alpha, double beta)
{
    const uint32_t scaled = ifd_build_with(b, IFD_OP_MUL, x, beta);
    return ifd_build_with(b, IFD_OP_MUL, ifd_build_unary(b, IFD_OP_TANH, scaled), alpha);
}

static uint32_t sigmoid(struct ifd_builder *b, uint32_t x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return ifd_build_unary(b, IFD_OP_LOGISTIC, x);
}

static uint32_t softplus(struct ifd_builder *b, uint32_t x, double alpha, double beta)
{
    (void)alpha, (void)beta;
    return ifd_build_softplus(b, x);
}

static uint32_t softsign(struct ifd_builder *b, uint32_t x, double alpha, double beta)
{
    const uint32_t magnitude = ifd_build_unary(b, IFD_OP_ABS, x);
    (void)alpha, (void)beta;
    return ifd_build_binary(b, IFD_OP_DIV, x, ifd_build_with(b, IFD_OP_ADD, magnitude, 1));
}

static uint32_t thresholded(struct ifd_builder *b, uint32_t x, double alpha, double unused)
{
    const uint32_t limit = ifd_build_number(b, IFD_F32, alpha);
    (void)unused;
    return ifd_onnx_selected(b, ifd_onnx_compared(b, IFD_OP_GREATER, x, limit), x,
                             ifd_build_number(b, IFD_F32, 0));
}

const struct ifd_onnx_activation *ifd_onnx_activation(struct ifd_str name)
{
    static const struct ifd_onnx_activation known[] = {
        {"Affine", 2, false, {1, 0}, affine},
        {"Elu", 1, true, {1}, elu},
        {"HardSigmoid", 2, true, {0.2, 0.5}, hard_sigmoid},
        {"LeakyRelu", 1, true, {0.01}, leaky_relu},
        {"Relu", 0, true, {0}, relu},
        {"ScaledTanh", 2, false, {1, 1}, scaled_tanh},
        {"Sigmoid", 0, true, {0}, sigmoid},
        {"Softplus", 0, true, {0}, softplus},
        {"Softsign", 0, true, {0}, softsign},
        {"Tanh", 0, true, {0}, hyperbolic_tangent},
        {"ThresholdedRelu", 1, true, {1}, thresholded},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (ifd_str_is(name, known[i].name)) {
            return &known[i];
        }
    }
    return NULL;
}

/* An operator that is one of them. */
static uint32_t activation(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_onnx_activation *known = ifd_onnx_activation(call->node->op);
    return known->apply(call->b, x, ifd_onnx_f32(call, "alpha", known->usual[0]),
                        ifd_onnx_f32(call, "beta", known->usual[1]));
}

/* ---- operators ---- */

static uint32_t gelu(struct ifd_builder *b, uint32_t x, bool approximate)
{
    const struct ifd_gelu_attrs attrs = {.approximate = approximate};
    return ifd_build_node(b, IFD_OP_GELU, &x, 1, NULL, &attrs);
}

static uint32_t times(struct ifd_builder *b, uint32_t x, uint32_t y)
{
    return ifd_build_binary(b, IFD_OP_MUL, x, y);
}

static uint32_t selu(struct ifd_onnx_call *call, uint32_t x)
{
    return exponential_below(call->b, x, ifd_onnx_f32(call, "alpha", 1.67326319217681884765625),
                             ifd_onnx_f32(call, "gamma", 1.05070102214813232421875), 1);
}

static uint32_t celu(struct ifd_onnx_call *call, uint32_t x)
{
    const double alpha = ifd_onnx_f32(call, "alpha", 1);
    return exponential_below(call->b, x, alpha, 1, alpha);
}

static uint32_t mish(struct ifd_onnx_call *call, uint32_t x)
{
    return times(call->b, x, ifd_build_unary(call->b, IFD_OP_TANH, ifd_build_softplus(call->b, x)));
}

static uint32_t exact_or_tanh_gelu(struct ifd_onnx_call *call, uint32_t x)
{
    return gelu(call->b, x, ifd_onnx_text_is(call, "approximate", "tanh", false));
}

/* With an optional bias. */
static uint32_t fast_gelu(struct ifd_onnx_call *call, uint32_t x)
{
    const uint32_t bias = ifd_onnx_input(call, 1);
    return gelu(call->b, bias == IFD_NONE ? x : ifd_build_binary(call->b, IFD_OP_ADD, x, bias),
                true);
}

static uint32_t quick_gelu(struct ifd_onnx_call *call, uint32_t x)
{
    const double alpha = ifd_onnx_f32(call, "alpha", 1.702);
    const uint32_t scaled = ifd_build_with(call->b, IFD_OP_MUL, x, alpha);
    return times(call->b, x, ifd_build_unary(call->b, IFD_OP_LOGISTIC, scaled));
}

static uint32_t reciprocal(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_build_binary(call->b, IFD_OP_DIV, ifd_build_number(call->b, IFD_F32, 1), x);
}

static uint32_t tangent(struct ifd_onnx_call *call, uint32_t x)
{
    return ifd_build_binary(call->b, IFD_OP_DIV, ifd_build_unary(call->b, IFD_OP_SIN, x),
                            ifd_build_unary(call->b, IFD_OP_COS, x));
}

static uint32_t arc_tangent_of(struct ifd_builder *b, uint32_t y, uint32_t x)
{
    return ifd_build_binary(b, IFD_OP_ATAN2, y, x);
}

static uint32_t arc_tangent(struct ifd_onnx_call *call, uint32_t x)
{
    return arc_tangent_of(call->b, x, ifd_build_number(call->b, IFD_F32, 1));
}

/* sqrt(1 - x²), near 1 too */
static uint32_t other_leg(struct ifd_builder *b, uint32_t x)
{
    const uint32_t above = ifd_build_with(b, IFD_OP_ADD, x, 1);
    const uint32_t below = ifd_build_with(b, IFD_OP_ADD, ifd_build_unary(b, IFD_OP_NEG, x), 1);
    return ifd_build_unary(b, IFD_OP_SQRT, times(b, above, below));
}

static uint32_t arc_sine(struct ifd_onnx_call *call, uint32_t x)
{
    return arc_tangent_of(call->b, x, other_leg(call->b, x));
}

static uint32_t arc_cosine(struct ifd_onnx_call *call, uint32_t x)
{
    return arc_tangent_of(call->b, other_leg(call->b, x), x);
}

/* (exp(x) ± exp(-x)) / 2; for the sine through its own hyperbolic tangent, which is exact near 0:
 * sinh(x) = tanh(x) cosh(x). */
static uint32_t hyperbolic_cosine(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t up = ifd_build_unary(b, IFD_OP_EXP, x);
    const uint32_t down = ifd_build_unary(b, IFD_OP_EXP, ifd_build_unary(b, IFD_OP_NEG, x));
    return ifd_build_with(b, IFD_OP_MUL, ifd_build_binary(b, IFD_OP_ADD, up, down), 0.5);
}

static uint32_t hyperbolic_sine(struct ifd_onnx_call *call, uint32_t x)
{
    return times(call->b, ifd_build_unary(call->b, IFD_OP_TANH, x), hyperbolic_cosine(call, x));
}

/* sign(x) log(|x| + sqrt(x² + 1)) */
static uint32_t area_sine(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t root =
        ifd_build_unary(b, IFD_OP_SQRT, ifd_build_with(b, IFD_OP_ADD, times(b, x, x), 1));
    const uint32_t sum = ifd_build_binary(b, IFD_OP_ADD, ifd_build_unary(b, IFD_OP_ABS, x), root);
    return times(b, ifd_build_unary(b, IFD_OP_SIGN, x), ifd_build_unary(b, IFD_OP_LOG, sum));
}

/* log(x + sqrt(x² - 1)) */
static uint32_t area_cosine(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t root =
        ifd_build_unary(b, IFD_OP_SQRT, ifd_build_with(b, IFD_OP_SUB, times(b, x, x), 1));
    return ifd_build_unary(b, IFD_OP_LOG, ifd_build_binary(b, IFD_OP_ADD, x, root));
}

/* log((1 + x) / (1 - x)) / 2 */
static uint32_t area_tangent(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const uint32_t above = ifd_build_with(b, IFD_OP_ADD, x, 1);
    const uint32_t below = ifd_build_with(b, IFD_OP_ADD, ifd_build_unary(b, IFD_OP_NEG, x), 1);
    const uint32_t ratio = ifd_build_binary(b, IFD_OP_DIV, above, below);
    return ifd_build_with(b, IFD_OP_MUL, ifd_build_unary(b, IFD_OP_LOG, ratio), 0.5);
}

/* Nearer to 0 by a bias, and 0 around it. */
static uint32_t shrink(struct ifd_onnx_call *call, uint32_t whole)
{
    struct ifd_builder *b = call->b;
    const uint32_t x = ifd_build_cast(b, whole, IFD_F32);
    const double bias = ifd_onnx_f32(call, "bias", 0);
    const double limit = ifd_onnx_f32(call, "lambd", 0.5);
    const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
    const uint32_t is_above =
        ifd_onnx_compared(b, IFD_OP_GREATER, x, ifd_build_number(b, IFD_F32, limit));
    const uint32_t is_below =
        ifd_onnx_compared(b, IFD_OP_LESS, x, ifd_build_number(b, IFD_F32, -limit));
    const uint32_t low =
        ifd_onnx_selected(b, is_below, ifd_build_with(b, IFD_OP_ADD, x, bias), zero);
    const uint32_t y = ifd_onnx_selected(b, is_above, ifd_build_with(b, IFD_OP_SUB, x, bias), low);
    return ifd_build_cast(b, y, ifd_build_desc(b, whole)->dtype);
}

/* x sigmoid(alpha x) */
static uint32_t swish(struct ifd_onnx_call *call, uint32_t x)
{
    const double alpha = ifd_onnx_f32(call, "alpha", 1);
    const uint32_t scaled = alpha == 1 ? x : ifd_build_with(call->b, IFD_OP_MUL, x, alpha);
    return times(call->b, x, ifd_build_unary(call->b, IFD_OP_LOGISTIC, scaled));
}

void ifd_onnx_function(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *, uint32_t) = {
        [IFD_ONNX_ACTIVATION] = activation,
        [IFD_ONNX_SELU] = selu,
        [IFD_ONNX_CELU] = celu,
        [IFD_ONNX_MISH] = mish,
        [IFD_ONNX_GELU] = exact_or_tanh_gelu,
        [IFD_ONNX_FAST_GELU] = fast_gelu,
        [IFD_ONNX_QUICK_GELU] = quick_gelu,
        [IFD_ONNX_RECIPROCAL] = reciprocal,
        [IFD_ONNX_TAN] = tangent,
        [IFD_ONNX_ACOS] = arc_cosine,
        [IFD_ONNX_ACOSH] = area_cosine,
        [IFD_ONNX_ASIN] = arc_sine,
        [IFD_ONNX_ASINH] = area_sine,
        [IFD_ONNX_ATAN] = arc_tangent,
        [IFD_ONNX_ATANH] = area_tangent,
        [IFD_ONNX_COSH] = hyperbolic_cosine,
        [IFD_ONNX_SINH] = hyperbolic_sine,
        [IFD_ONNX_SHRINK] = shrink,
        [IFD_ONNX_SWISH] = swish,
    };
    call->output[0] = functions[which](call, call->input[0]);
}

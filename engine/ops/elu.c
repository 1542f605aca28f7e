/* Activations beyond the clamps: elu, gelu, prelu. 8-bit elu and gelu go through floats, as
 * LiteRT's tables do; quantized prelu is requantized with double rounding. */
#include "engine/ops/unary.h"

#include <math.h>

/* ---- elu, gelu ---- */

static float elu_f32(float x)
{
    return x < 0 ? expm1f(x) : x;
}

static float gelu_exact_f32(float x)
{
    const double inverse_root_of_2 = 0.70710678118654752440;
    return 0.5f * x * erfcf(x * (float)-inverse_root_of_2);
}

static float gelu_tanh_f32(float x)
{
    const double root_of_2_by_pi = 0.79788456080286535588;
    return 0.5f * x * (1.0f + tanhf((float)root_of_2_by_pi * (x + 0.044715f * x * x * x)));
}

static enum ifd_code elu_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, elu_f32);
    return IFD_OK;
}

static enum ifd_code gelu_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_gelu_attrs *attrs = call->attrs;
    ifd_unary_map(call, attrs->approximate ? gelu_tanh_f32 : gelu_exact_f32);
    return IFD_OK;
}

static const struct ifd_attr_def gelu_attrs[] = {
    {"approximate", IFD_ATTR_BOOL, offsetof(struct ifd_gelu_attrs, approximate), 0, 0, 1},
};

DEFINE_UNARY(elu, ifd_unary_infer, TYPES_F32 | IFD_BIT(IFD_S8))
DEFINE_UNARY_WITH_ATTRS(gelu, ifd_unary_infer, TYPES_F32 | TYPES_QUANT, NULL)

/* ---- prelu ---- */

extern const struct ifd_op_def ifd_op_prelu;

/* Ratios are floats, as in LiteRT. */
static double prelu_positive(const struct ifd_desc *input, const struct ifd_desc *output)
{
    return (double)(ifd_ref_scale(input) / ifd_ref_scale(output));
}

static double prelu_negative(const struct ifd_desc *input, const struct ifd_desc *alpha,
                             const struct ifd_desc *output)
{
    return (double)(ifd_ref_scale(input) * ifd_ref_scale(alpha) / ifd_ref_scale(output));
}

static enum ifd_code check_prelu_scales(const struct ifd_infer *in, const struct ifd_desc *output,
                                        struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_prelu;
    const struct ifd_desc *input = in->input[0].desc;
    const struct ifd_desc *alpha = in->input[1].desc;
    enum ifd_code code = ifd_infer_any_scale(def, "input 0", input, err);
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "input 1", alpha, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "output 0", &output[0], err);
    }
    return code;
}

static enum ifd_code prelu_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_prelu;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    /* LiteRT takes s8 for s16, and reads what is s16 as if it were s8 */
    const uint32_t narrow = input->dtype == IFD_S16 ? IFD_BIT(IFD_S8) : 0;
    code = ifd_infer_dtype(def, in, 1, IFD_BIT(input->dtype) | narrow, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    }
    if (code == IFD_OK && ifd_dtype_is_quantized(input->dtype)) {
        code = check_prelu_scales(in, output, err);
    }
    return code == IFD_OK ? ifd_infer_broadcast(def, in, output, err) : code;
}

static void prelu_quant(const struct ifd_ref_call *call, struct ifd_walk *walk)
{
    const struct ifd_desc *input = call->in[0];
    const struct ifd_desc *alpha = call->in[1];
    const struct ifd_desc *out = call->out[0];
    const struct ifd_multiplier up = ifd_multiplier(prelu_positive(input, out));
    const struct ifd_multiplier down = ifd_multiplier(prelu_negative(input, alpha, out));
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    for (; walk->left > 0; ifd_walk_next(walk)) {
        const int32_t x = ifd_ref_load(input->dtype, call->input[0], (size_t)walk->offset[0]) -
                          ifd_ref_zero_point(input);
        const int32_t a = ifd_ref_load(alpha->dtype, call->input[1], (size_t)walk->offset[1]) -
                          ifd_ref_zero_point(alpha);
        const int64_t y =
            x >= 0 ? ifd_requantize_double(x, up) : ifd_requantize_double(x * a, down);
        ifd_ref_store(out->dtype, call->output[0], walk->done,
                      ifd_ref_clamp(y + ifd_ref_zero_point(out), min, max));
    }
}

static enum ifd_code prelu_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    struct ifd_walk walk;
    ifd_walk_init(&walk, &call->out[0]->shape);
    ifd_walk_broadcast(&walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(&walk, 1, &call->in[1]->shape);
    if (call->in[0]->dtype != IFD_F32) {
        prelu_quant(call, &walk);
        return IFD_OK;
    }
    const float *x = call->input[0];
    const float *alpha = call->input[1];
    float *y = call->output[0];
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        const float value = x[walk.offset[0]];
        y[walk.done] = value >= 0 ? value : value * alpha[walk.offset[1]];
    }
    return IFD_OK;
}

const struct ifd_op_def ifd_op_prelu = {
    .name = "prelu",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .dtypes = TYPES_F32 | TYPES_QUANT,
    .batch = IFD_BATCH_ELEMENTWISE,
    .can_alias = true,
    .is_elementwise = true,
    .infer = prelu_infer,
    .ref = prelu_ref,
};

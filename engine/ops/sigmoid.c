/* logistic and tanh. 8-bit numbers go through floats, as LiteRT's reference kernels' table of
 * 256 entries does; s16 interpolates a table of the sigmoid. */
#include "engine/ops/unary.h"

#include <math.h>

static float logistic_f32(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* ---- logistic and tanh of s16 ---- */

/** Maps s16 input to an index of the sigmoid's table: (x * factor + half) >> shift is 3/4 of the
 *  real input in Q12. */
struct sigmoid_scale {
    int64_t factor;
    int32_t shift;
};

static struct sigmoid_scale sigmoid_scale(const struct ifd_desc *input)
{
    const double scale = (double)ifd_ref_scale(input);
    if (scale == ldexp(1.0, -12) || scale == ldexp(1.0, -11)) {
        return (struct sigmoid_scale){scale == ldexp(1.0, -11) ? 6 : 3, 0};
    }
    double factor = scale * 4096.0 * 3.0;
    int32_t shift = 0;
    while (factor <= 32767.0 / 2.0 && shift <= 30) {
        shift++;
        factor *= 2.0;
    }
    /* 0 means a power of two to LiteRT: 3 << 31, wrapped; what 32 bits do not hold is the lowest */
    const int64_t whole = factor < 0x1p31 ? (int64_t)factor : INT32_MIN;
    return whole == 0 ? (struct sigmoid_scale){INT32_MIN, 0} : (struct sigmoid_scale){whole, shift};
}

/** Entry i of the table: sigmoid(i / 24) in Q16, raised by half of the interpolation error
 *  between entries, so that errors are balanced. The last entry is the value at infinity. */
static int64_t sigmoid_entry(int64_t i)
{
    const double step = 1.0 / 24.0;
    const double s = 1.0 / (1.0 + exp((double)-i * step));
    const double curvature = s * (1.0 - s) * (2.0 * s - 1.0);
    return i >= 255 ? 65535 : lround(65536.0 * (s + step * step / 16.0 * curvature));
}

/** sigmoid(|x|) in Q(16 + fraction_bits), x in 1/24 with fraction_bits; saturates beyond the
 *  table. */
static int64_t sigmoid_interpolated(int64_t x, int32_t fraction_bits, int64_t saturated)
{
    const int64_t magnitude = x < 0 ? -x : x;
    const int64_t i = magnitude >> fraction_bits;
    if (i >= 255) {
        return saturated;
    }
    const int64_t left = sigmoid_entry(i);
    const int64_t fraction = magnitude & ((1 << fraction_bits) - 1);
    return (left << fraction_bits) + fraction * (sigmoid_entry(i + 1) - left);
}

static int64_t sigmoid_input(int16_t x, struct sigmoid_scale scale)
{
    const int64_t half = scale.shift > 0 ? (int64_t)1 << (scale.shift - 1) : 0;
    const uint64_t wide = (uint64_t)(x * scale.factor + half); /* its low 32 bits, as in LiteRT */
    return (int32_t)(uint32_t)wide >> scale.shift;
}

static int16_t logistic_s16(int16_t x, struct sigmoid_scale scale)
{
    const int64_t input = sigmoid_input(x, scale);
    int64_t result = sigmoid_interpolated(input, 9, (int64_t)0x7FFF << 10);
    result = input >= 0 ? result + (1 << 9) : (1 << 25) - result + (1 << 9) - 1;
    return (int16_t)(result >> 10);
}

static int16_t tanh_s16(int16_t x, struct sigmoid_scale scale)
{
    const int64_t input = sigmoid_input(x, scale); /* tanh(x) = 2 sigmoid(2x) - 1 */
    int64_t result = sigmoid_interpolated(input, 8, (int64_t)0xFFFF << 8);
    result = input >= 0 ? result - (1 << 23) + (1 << 7) : -result + (1 << 23) + (1 << 7) - 1;
    return (int16_t)(result >> 8);
}

static void map_s16(const struct ifd_ref_call *call, int16_t (*fn)(int16_t, struct sigmoid_scale))
{
    const struct sigmoid_scale scale = sigmoid_scale(call->in[0]);
    const int16_t *x = call->input[0];
    int16_t *y = call->output[0];
    const size_t count = ifd_ref_elements(call->out[0]);
    for (size_t i = 0; i < count; i++) {
        y[i] = fn(x[i], scale);
    }
}

static enum ifd_code sigmoid_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const enum ifd_code code = ifd_unary_infer(in, output, err);
    if (code != IFD_OK || output[0].dtype != IFD_S16) {
        return code;
    }
    if (output[0].quant.scale[0] != ldexpf(1.0f, -15)) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: output 0 (s16) has scale %g, expected 1/32768",
                        def->name, (double)output[0].quant.scale[0]);
    }
    return IFD_OK;
}

static enum ifd_code map(const struct ifd_ref_call *call,
                         int16_t (*s16)(int16_t, struct sigmoid_scale), float (*other)(float))
{
    if (call->in[0]->dtype == IFD_S16) {
        map_s16(call, s16);
    } else {
        ifd_unary_map(call, other);
    }
    return IFD_OK;
}

static enum ifd_code logistic_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    return map(call, logistic_s16, logistic_f32);
}

static enum ifd_code tanh_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    return map(call, tanh_s16, tanhf);
}

DEFINE_UNARY(logistic, sigmoid_infer, TYPES_F32 | TYPES_QUANT)
DEFINE_UNARY(tanh, sigmoid_infer, TYPES_F32 | TYPES_QUANT)

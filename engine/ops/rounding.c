/* Elementary functions of one tensor without quantized forms: rounding, sign, square, sine, cosine,
 * error function, logical not. */
#include "engine/ops/unary.h"

#include <math.h>

/* Halves go to the even neighbour, whatever the rounding mode. */
static float round_f32(float x)
{
    const float below = floorf(x);
    const float rest = x - below;
    return rest < 0.5f || (rest == 0.5f && fmodf(below, 2) == 0) ? below : below + 1;
}

static float square_f32(float x)
{
    return x * x;
}

static float sign_f32(float x)
{
    return x < 0 ? -1.0f : x > 0 ? 1.0f : x;
}

static enum ifd_code floor_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, floorf);
    return IFD_OK;
}

static enum ifd_code ceil_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, ceilf);
    return IFD_OK;
}

static enum ifd_code round_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, round_f32);
    return IFD_OK;
}

static enum ifd_code sin_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, sinf);
    return IFD_OK;
}

static enum ifd_code cos_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, cosf);
    return IFD_OK;
}

static enum ifd_code erf_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, erff);
    return IFD_OK;
}

static enum ifd_code square_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    ifd_unary_map(call, square_f32);
    return IFD_OK;
}

static enum ifd_code sign_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->in[0]->dtype == IFD_F32) {
        ifd_unary_map(call, sign_f32);
        return IFD_OK;
    }
    const int32_t *x = call->input[0];
    int32_t *y = call->output[0];
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        y[i] = x[i] < 0 ? -1 : x[i] > 0;
    }
    return IFD_OK;
}

static enum ifd_code logical_not_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const uint8_t *x = call->input[0];
    uint8_t *y = call->output[0];
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        y[i] = x[i] == 0;
    }
    return IFD_OK;
}

DEFINE_UNARY(floor, ifd_unary_infer, TYPES_F32)
DEFINE_UNARY(ceil, ifd_unary_infer, TYPES_F32)
DEFINE_UNARY(round, ifd_unary_infer, TYPES_F32)
DEFINE_UNARY(sin, ifd_unary_infer, TYPES_F32)
DEFINE_UNARY(cos, ifd_unary_infer, TYPES_F32)
DEFINE_UNARY(erf, ifd_unary_infer, TYPES_F32)
DEFINE_UNARY(square, ifd_unary_infer, TYPES_F32)
DEFINE_UNARY(sign, ifd_unary_infer, TYPES_F32 | IFD_BIT(IFD_S32))
DEFINE_UNARY(logical_not, ifd_unary_infer, IFD_BIT(IFD_BOOL))

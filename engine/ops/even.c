/* With stored numbers a and b, scales s and zero points z, as MLAS has it:
 *
 *   sum      round(a * (sa / sy) + (b * (sb / sy) + offset)), each product added without rounding;
 *            offset = zy - ((sa / sy) * za + (sb / sy) * zb), the first product in full
 *   product  round((a - za) * (b - zb) * (sa * sb / sy) + zy)
 *
 * The zero point is part of what is rounded: where it is odd, halves go the other way. */
#include "engine/ops/even.h"

#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>

enum ifd_code ifd_even_infer(const struct ifd_infer *in, const struct ifd_desc *output,
                             struct ifd_err *err)
{
    if (output[0].dtype != IFD_S8 && output[0].dtype != IFD_U8) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: rounds_even with type %s", in->def->name,
                        ifd_dtype_name(output[0].dtype));
    }
    const float a = ifd_ref_scale(in->input[0].desc);
    const float b = ifd_ref_scale(in->input[1].desc);
    const float y = ifd_ref_scale(&output[0]);
    if (!isfinite(a / y * 65536) || !isfinite(b / y * 65536) || !isfinite(a * b / y * 65536)) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "%s: scales %g and %g of the inputs and %g of the output are too far apart",
                        in->def->name, (double)a, (double)b, (double)y);
    }
    return IFD_OK;
}

/* Stores a result that has its zero point already. */
static void store(const struct ifd_ref_call *call, size_t i, float steps)
{
    const struct ifd_binary_attrs *attrs = call->attrs;
    int32_t min = 0;
    int32_t max = 0;
    ifd_ref_act_range_quant(attrs->activation, call->out[0], &min, &max);
    const float clamped = ifd_ref_clamp_f32(rintf(steps), (float)min, (float)max);
    ifd_ref_store(call->out[0]->dtype, call->output[0], i, (int32_t)clamped);
}

static void begin(struct ifd_walk *walk, const struct ifd_ref_call *call)
{
    ifd_walk_init(walk, &call->out[0]->shape);
    ifd_walk_broadcast(walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(walk, 1, &call->in[1]->shape);
}

static int32_t load(const struct ifd_ref_call *call, uint32_t i, const struct ifd_walk *walk)
{
    return ifd_ref_load(call->in[i]->dtype, call->input[i], (size_t)walk->offset[i]);
}

void ifd_even_add(const struct ifd_ref_call *call)
{
    const float a = ifd_ref_scale(call->in[0]) / ifd_ref_scale(call->out[0]);
    const float b = ifd_ref_scale(call->in[1]) / ifd_ref_scale(call->out[0]);
    const float zero = b * (float)ifd_ref_zero_point(call->in[1]);
    const float offset = (float)ifd_ref_zero_point(call->out[0]) -
                         fmaf(a, (float)ifd_ref_zero_point(call->in[0]), zero);
    struct ifd_walk walk;
    for (begin(&walk, call); walk.left > 0; ifd_walk_next(&walk)) {
        const float right = fmaf((float)load(call, 1, &walk), b, offset);
        store(call, (size_t)walk.done, fmaf((float)load(call, 0, &walk), a, right));
    }
}

void ifd_even_mul(const struct ifd_ref_call *call)
{
    const float factor =
        ifd_ref_scale(call->in[0]) * ifd_ref_scale(call->in[1]) / ifd_ref_scale(call->out[0]);
    const int32_t zero_a = ifd_ref_zero_point(call->in[0]);
    const int32_t zero_b = ifd_ref_zero_point(call->in[1]);
    const float zero = (float)ifd_ref_zero_point(call->out[0]);
    struct ifd_walk walk;
    for (begin(&walk, call); walk.left > 0; ifd_walk_next(&walk)) {
        const int32_t product = (load(call, 0, &walk) - zero_a) * (load(call, 1, &walk) - zero_b);
        const float scaled = (float)product * factor;
        store(call, (size_t)walk.done, scaled + zero);
    }
}

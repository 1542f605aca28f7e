/* Changes of the element's type: cast (stored numbers), quantize and dequantize (real numbers).
 *
 * Rounding of quantize is half away from zero, or to even (ONNX); from one quantized type to
 * another it rounds twice, as LiteRT's reference kernels do. A cast from a float truncates,
 * saturates, and makes 0 of NaN. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/tensor/half.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_cast, ifd_op_quantize, ifd_op_dequantize;

#define TYPES_REAL (IFD_BIT(IFD_F32) | IFD_BIT(IFD_F16) | IFD_BIT(IFD_BF16) | IFD_BIT(IFD_F64))
#define TYPES_INT                                                                                  \
    (IFD_BIT(IFD_S8) | IFD_BIT(IFD_U8) | IFD_BIT(IFD_S16) | IFD_BIT(IFD_U16) | IFD_BIT(IFD_S32) |  \
     IFD_BIT(IFD_U32) | IFD_BIT(IFD_S64) | IFD_BIT(IFD_U64) | IFD_BIT(IFD_BOOL))
#define TYPES_STORED (IFD_DTYPES_QUANT | IFD_BIT(IFD_S32))

static enum ifd_code check_output(const struct ifd_op_def *def, const struct ifd_desc *output,
                                  uint32_t dtypes, struct ifd_err *err)
{
    if ((unsigned)output[0].dtype >= IFD_DTYPE_COUNT || (dtypes & IFD_BIT(output[0].dtype)) == 0) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: output 0 of type %s is not supported here",
                        def->name, ifd_dtype_name(output[0].dtype));
    }
    return IFD_OK;
}

/* ---- cast ---- */

static enum ifd_code cast_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(&ifd_op_cast, in, err);
    if (code == IFD_OK) {
        code = check_output(&ifd_op_cast, output, TYPES_REAL | TYPES_INT, err);
    }
    return code == IFD_OK
               ? ifd_infer_output(&ifd_op_cast, output, 0, &in->input[0].desc->shape, err)
               : code;
}

static bool is_real(enum ifd_dtype dtype)
{
    return (TYPES_REAL & IFD_BIT(dtype)) != 0;
}

static double load_real(enum ifd_dtype dtype, const void *data, size_t i)
{
    switch ((unsigned)dtype) {
    case IFD_F16:
        return (double)ifd_f32_from_f16(((const uint16_t *)data)[i]);
    case IFD_BF16:
        return (double)ifd_f32_from_bf16(((const uint16_t *)data)[i]);
    case IFD_F64:
        return ((const double *)data)[i];
    default:
        return (double)((const float *)data)[i];
    }
}

static int64_t load_integer(enum ifd_dtype dtype, const void *data, size_t i)
{
    switch ((unsigned)dtype) {
    case IFD_BOOL:
        return ((const uint8_t *)data)[i] != 0;
    case IFD_U16:
        return ((const uint16_t *)data)[i];
    case IFD_U32:
        return ((const uint32_t *)data)[i];
    case IFD_S64:
    case IFD_U64: /* modulo 2^64 */
        return ((const int64_t *)data)[i];
    default:
        return ifd_ref_load(dtype, data, i);
    }
}

static void store_real(enum ifd_dtype dtype, void *data, size_t i, double value)
{
    switch ((unsigned)dtype) {
    case IFD_F16:
        ((uint16_t *)data)[i] = ifd_f16_from_f32((float)value);
        break;
    case IFD_BF16:
        ((uint16_t *)data)[i] = ifd_bf16_from_f32((float)value);
        break;
    case IFD_F64:
        ((double *)data)[i] = value;
        break;
    default:
        ((float *)data)[i] = (float)value;
        break;
    }
}

/** Keeps the low bits of value. */
static void store_integer(enum ifd_dtype dtype, void *data, size_t i, int64_t value)
{
    const uint64_t bits = (uint64_t)value;
    switch ((unsigned)dtype) {
    case IFD_BOOL:
        ((uint8_t *)data)[i] = value != 0;
        break;
    case IFD_U16:
        ((uint16_t *)data)[i] = (uint16_t)bits;
        break;
    case IFD_U32:
        ((uint32_t *)data)[i] = (uint32_t)bits;
        break;
    case IFD_S64:
    case IFD_U64:
        ((int64_t *)data)[i] = value;
        break;
    default:
        ifd_ref_store(dtype, data, i, (int32_t)(uint32_t)bits);
        break;
    }
}

static int64_t truncate_saturating(double value, enum ifd_dtype dtype)
{
    if (dtype == IFD_BOOL) {
        return value != 0;
    }
    if (isnan(value)) {
        return 0;
    }
    if (dtype == IFD_S64) {
        return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
    }
    if (dtype == IFD_U64) {
        return value >= 0x1p64 ? -1 : value <= 0 ? 0 : (int64_t)(uint64_t)value;
    }
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(dtype, &min, &max);
    const double greatest = dtype == IFD_U32 ? (double)UINT32_MAX : (double)max;
    return value >= greatest ? (int64_t)greatest : value <= (double)min ? min : (int64_t)value;
}

static enum ifd_code cast_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const enum ifd_dtype from = call->in[0]->dtype;
    const enum ifd_dtype to = call->out[0]->dtype;
    const void *x = call->input[0];
    void *y = call->output[0];
    const size_t count = ifd_ref_elements(call->out[0]);
    for (size_t i = 0; i < count; i++) {
        if (is_real(from) && is_real(to)) {
            store_real(to, y, i, load_real(from, x, i));
        } else if (is_real(from)) {
            store_integer(to, y, i, truncate_saturating(load_real(from, x, i), to));
        } else if (from == IFD_U64 && is_real(to)) {
            store_real(to, y, i, (double)((const uint64_t *)x)[i]);
        } else if (to == IFD_F32) {
            ((float *)y)[i] =
                (float)load_integer(from, x, i); /* not through double: that rounds s64 twice */
        } else if (is_real(to)) {
            store_real(to, y, i, (double)load_integer(from, x, i));
        } else {
            store_integer(to, y, i, load_integer(from, x, i));
        }
    }
    return IFD_OK;
}

/* ---- scales per channel ---- */

/* Where an element's scale and zero point are. */
struct channels {
    size_t count;
    size_t inner; /* elements in a row that share them */
};

static struct channels channels_of(const struct ifd_desc *desc)
{
    if (desc->quant.count <= 1) {
        return (struct channels){1, 1};
    }
    const uint32_t axis = desc->quant.axis;
    return (struct channels){desc->quant.count,
                             (size_t)ifd_ref_product(&desc->shape, axis + 1, desc->shape.rank)};
}

static size_t channel_at(const struct channels *channels, size_t i)
{
    return channels->count > 1 ? i / channels->inner % channels->count : 0;
}

/* ---- quantize ---- */

static double requantize_factor(const struct ifd_desc *input, const struct ifd_desc *output)
{
    return (double)ifd_ref_scale(input) / (double)ifd_ref_scale(output);
}

static enum ifd_code quantize_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                    struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_quantize;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    const bool is_f32 = input->dtype == IFD_F32;
    code = check_output(def, output, is_f32 ? IFD_DTYPES_QUANT : TYPES_STORED, err);
    if (code == IFD_OK) { /* scales lie along the axis of a shape, which the output may lack */
        struct ifd_desc stored = output[0];
        stored.shape = input->shape;
        code = is_f32 ? ifd_infer_each_channel(def, "output 0", &stored, err)
                      : ifd_infer_any_scale(def, "output 0", &stored, err);
    }
    if (code == IFD_OK && !is_f32) {
        code = ifd_infer_any_scale(def, "input 0", input, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &input->shape, err) : code;
}

/* ONNX Runtime: beyond every type it saturates; NaN is the lowest number. */
static int32_t even_steps(float real)
{
    return isnan(real) ? -1000000 : (int32_t)ifd_ref_clamp_f32(rintf(real), -1e6f, 1e6f);
}

static void quantize_f32(const struct ifd_ref_call *call)
{
    const struct ifd_quantize_attrs *attrs = call->attrs;
    const struct ifd_desc *out = call->out[0];
    const float *x = call->input[0];
    const struct channels channels = channels_of(out);
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    const size_t count = ifd_ref_elements(out);
    for (size_t i = 0; i < count; i++) {
        const size_t c = channel_at(&channels, i);
        const float real = x[i] / out->quant.scale[c];
        const int32_t stored = ifd_fixed_add(
            attrs->rounds_even ? even_steps(real) : ifd_fixed_from_float(roundf(real)),
            out->quant.zero_point[c]);
        ifd_ref_store(out->dtype, call->output[0], i, ifd_ref_clamp(stored, min, max));
    }
}

static void requantize(const struct ifd_ref_call *call)
{
    const struct ifd_desc *in = call->in[0];
    const struct ifd_desc *out = call->out[0];
    const struct ifd_multiplier factor = ifd_multiplier(requantize_factor(in, out));
    const int32_t zero_in = ifd_ref_zero_point(in);
    const int64_t zero_out = ifd_ref_zero_point(out);
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    const size_t count = ifd_ref_elements(out);
    for (size_t i = 0; i < count; i++) {
        const int32_t x = ifd_ref_load(in->dtype, call->input[0], i) - zero_in;
        ifd_ref_store(out->dtype, call->output[0], i,
                      ifd_ref_clamp(ifd_requantize_double(x, factor) + zero_out, min, max));
    }
}

static enum ifd_code quantize_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (call->in[0]->dtype == IFD_F32) {
        quantize_f32(call);
    } else {
        requantize(call);
    }
    return IFD_OK;
}

/* ---- dequantize ---- */

static enum ifd_code dequantize_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_dequantize;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    code = ifd_infer_output_dtype(def, output, 0, IFD_F32, err);
    if (code == IFD_OK && !is_real(input->dtype)) {
        code = ifd_infer_each_channel(def, "input 0", input, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &input->shape, err) : code;
}

/* For weights of whole models during a load: loops without branches, which compilers vectorize. */
#define HALF_COUNT ((size_t)16)

static void widen_halves(const uint16_t *restrict x, float *restrict y, size_t count)
{
    for (; count >= HALF_COUNT; count -= HALF_COUNT, x += HALF_COUNT, y += HALF_COUNT) {
        for (size_t i = 0; i < HALF_COUNT; i++) {
            y[i] = ifd_f32_from_f16(x[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        y[i] = ifd_f32_from_f16(x[i]);
    }
}

static enum ifd_code dequantize_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_desc *in = call->in[0];
    float *y = call->output[0];
    const size_t count = ifd_ref_elements(in);
    if (in->dtype == IFD_F16) {
        widen_halves(call->input[0], y, count);
        return IFD_OK;
    }
    if (is_real(in->dtype)) {
        for (size_t i = 0; i < count; i++) {
            y[i] = (float)load_real(in->dtype, call->input[0], i);
        }
        return IFD_OK;
    }
    const struct channels channels = channels_of(in);
    for (size_t i = 0; i < count; i++) {
        const size_t c = channel_at(&channels, i);
        const int64_t steps =
            (int64_t)ifd_ref_load(in->dtype, call->input[0], i) - in->quant.zero_point[c];
        y[i] = (float)((double)in->quant.scale[c] * (double)steps);
    }
    return IFD_OK;
}

/* ---- definitions ---- */

#define COMMON(op)                                                                                 \
    .name = #op, .min_inputs = 1, .max_inputs = 1, .outputs = 1, .batch = IFD_BATCH_SAMPLE,        \
    .is_elementwise = true, .infer = op##_infer, .ref = op##_ref

static const struct ifd_attr_def quantize_attrs[] = {
    {"rounds_even", IFD_ATTR_BOOL, offsetof(struct ifd_quantize_attrs, rounds_even), 0, 0, 1},
};

/* Element-wise, but the element's size may change: no aliasing. */
const struct ifd_op_def ifd_op_cast = {COMMON(cast), .dtypes = TYPES_REAL | TYPES_INT,
                                       .is_identity = true};
const struct ifd_op_def ifd_op_quantize = {COMMON(quantize),
                                           .attrs = quantize_attrs,
                                           .attr_count = 1,
                                           .attrs_bytes = sizeof(struct ifd_quantize_attrs),
                                           .dtypes = IFD_BIT(IFD_F32) | TYPES_STORED,
                                           .is_identity = true};
const struct ifd_op_def ifd_op_dequantize = {
    COMMON(dequantize), .dtypes = IFD_BIT(IFD_F16) | IFD_BIT(IFD_BF16) | TYPES_STORED};

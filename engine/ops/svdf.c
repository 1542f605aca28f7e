/* svdf: a layer of which each filter looks at the latest features that it has found, in 8-bit
 * numbers with a 16-bit state, as LiteRT's integer kernel computes it. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_svdf;

/* Inputs: x [n,i], weights of features [f,i], of time [f,m], bias [f/rank] (may be absent), state
 * [n,f*m], the latest features last. Outputs: [n,f/rank], the state behind x. */
enum { X, FEATURE, TIME, BIAS, STATE, INPUTS };

struct sizes {
    int64_t batch, input, filters, memory, units;
};

static struct sizes sizes_of(const struct ifd_svdf_attrs *attrs, const struct ifd_shape *x,
                             const struct ifd_shape *time)
{
    return (struct sizes){x->dim[0], x->dim[1], time->dim[0], time->dim[1],
                          time->dim[0] / attrs->rank};
}

/* ---- shape rule ---- */

static enum ifd_code check_operand(const struct ifd_infer *in, uint32_t i, enum ifd_dtype dtype,
                                   const struct ifd_shape *shape, struct ifd_err *err)
{
    const struct ifd_desc *desc = ifd_infer_input(in, i);
    if (!desc || desc->dtype != dtype || !ifd_shape_equal(&desc->shape, shape)) {
        return ifd_fail(err, IFD_INVALID, "svdf: input %u is %s %s, expected %s %s", i,
                        desc ? ifd_dtype_name(desc->dtype) : "absent",
                        desc ? ifd_shape_text(&desc->shape).s : "", ifd_dtype_name(dtype),
                        ifd_shape_text(shape).s);
    }
    return i == BIAS ? IFD_OK : ifd_infer_any_scale(in->def, "an input", desc, err);
}

static enum ifd_code check_operands(const struct ifd_infer *in, const struct sizes *s,
                                    struct ifd_err *err)
{
    const struct ifd_shape feature = {.rank = 2, .dim = {s->filters, s->input}};
    const struct ifd_shape time = {.rank = 2, .dim = {s->filters, s->memory}};
    const struct ifd_shape bias = {.rank = 1, .dim = {s->units}};
    const struct ifd_shape state = {.rank = 2, .dim = {s->batch, s->filters * s->memory}};
    enum ifd_code code = check_operand(in, FEATURE, IFD_S8, &feature, err);
    if (code == IFD_OK) {
        code = check_operand(in, TIME, IFD_S16, &time, err);
    }
    if (code == IFD_OK && ifd_infer_input(in, BIAS)) {
        code = check_operand(in, BIAS, IFD_S32, &bias, err);
    }
    return code == IFD_OK ? check_operand(in, STATE, IFD_S16, &state, err) : code;
}

static enum ifd_code svdf_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_svdf;
    const struct ifd_svdf_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    for (uint32_t i = X; code == IFD_OK && i <= TIME; i++) {
        code = ifd_infer_rank(def, in, i, 2, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "input 0", in->input[X].desc, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_S8, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 1, IFD_S16, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "output 0", &output[0], err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *time = &in->input[TIME].desc->shape;
    if (time->dim[0] % attrs->rank != 0 || time->dim[1] < 1) {
        return ifd_fail(err, IFD_INVALID, "svdf: weights of time %s, rank %d",
                        ifd_shape_text(time).s, attrs->rank);
    }
    const struct sizes s = sizes_of(attrs, &in->input[X].desc->shape, time);
    code = check_operands(in, &s, err);
    const struct ifd_shape shape = {.rank = 2, .dim = {s.batch, s.units}};
    if (code == IFD_OK) {
        code = ifd_infer_output(def, output, 0, &shape, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 1, &in->input[STATE].desc->shape, err)
                          : code;
}

/* ---- reference ---- */

/* Features of a sample become the latest of each filter. Sums wrap around. */
static void remember(const struct ifd_ref_call *call, const struct sizes *s, int64_t n)
{
    const float scale = ifd_ref_scale(call->in[X]) * ifd_ref_scale(call->in[FEATURE]);
    const struct ifd_multiplier factor =
        ifd_multiplier((double)(scale / ifd_ref_scale(call->in[STATE])));
    const int32_t zero = ifd_ref_zero_point(call->in[X]);
    const int8_t *x = (const int8_t *)call->input[X] + n * s->input;
    const int16_t *before = (const int16_t *)call->input[STATE] + n * s->filters * s->memory;
    int16_t *state = (int16_t *)call->output[1] + n * s->filters * s->memory;
    for (int64_t f = 0; f < s->filters; f++) {
        const int8_t *weights = (const int8_t *)call->input[FEATURE] + f * s->input;
        uint32_t sum = 0;
        for (int64_t i = 0; i < s->input; i++) {
            sum += (uint32_t)(weights[i] * (x[i] - zero));
        }
        memcpy(state + f * s->memory, before + f * s->memory + 1,
               (size_t)(s->memory - 1) * sizeof(*state));
        state[(f + 1) * s->memory - 1] = (int16_t)ifd_ref_clamp(
            ifd_requantize_double((int32_t)sum, factor), INT16_MIN, INT16_MAX);
    }
}

/* The results of a sample: sums over the filters of a unit and their memory. */
static void look_back(const struct ifd_ref_call *call, const struct sizes *s, int64_t n)
{
    const float scale = ifd_ref_scale(call->in[STATE]) * ifd_ref_scale(call->in[TIME]);
    const struct ifd_multiplier factor =
        ifd_multiplier((double)(scale / ifd_ref_scale(call->out[0])));
    const int32_t zero = ifd_ref_zero_point(call->out[0]);
    const int64_t each = s->filters / s->units * s->memory;
    const int32_t *bias = call->in[BIAS] ? call->input[BIAS] : NULL;
    const int16_t *state = (const int16_t *)call->output[1] + n * s->filters * s->memory;
    for (int64_t u = 0; u < s->units; u++) {
        const int16_t *weights = (const int16_t *)call->input[TIME] + u * each;
        uint32_t sum = bias ? (uint32_t)bias[u] : 0;
        for (int64_t i = 0; i < each; i++) {
            sum += (uint32_t)(weights[i] * state[u * each + i]);
        }
        ((int8_t *)call->output[0])[n * s->units + u] = (int8_t)ifd_ref_clamp(
            (int64_t)ifd_requantize_double((int32_t)sum, factor) + zero, INT8_MIN, INT8_MAX);
    }
}

static enum ifd_code svdf_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct sizes s = sizes_of(call->attrs, &call->in[X]->shape, &call->in[TIME]->shape);
    for (int64_t n = 0; s.units > 0 && n < s.batch; n++) {
        remember(call, &s, n);
        look_back(call, &s, n);
    }
    return IFD_OK;
}

static const struct ifd_attr_def svdf_attrs[] = {
    {"rank", IFD_ATTR_INT, offsetof(struct ifd_svdf_attrs, rank), 1, 1, INT32_MAX},
};

const struct ifd_op_def ifd_op_svdf = {
    .name = "svdf",
    .min_inputs = 3,
    .max_inputs = INPUTS,
    .outputs = 2,
    .attrs = svdf_attrs,
    .attr_count = sizeof(svdf_attrs) / sizeof(svdf_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_svdf_attrs),
    .dtypes = IFD_BIT(IFD_S8),
    .infer = svdf_infer,
    .ref = svdf_ref,
    .multiplies = true,
};

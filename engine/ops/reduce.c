/* Reductions over any set of axes: mean, sum, product, largest, smallest, any, all.
 *
 * Quantized results have the bits of LiteRT's reference kernels, but for sums of s8 and s16:
 * LiteRT 2.3 reads their bytes as u8. Here they get the arithmetic that LiteRT has for u8. */
#include "engine/ir/shape.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/permute.h"
#include "engine/ops/ref_util.h"
#include "engine/tensor/fixed.h"

#include <math.h>
#include <stddef.h>

extern const struct ifd_op_def ifd_op_reduce_mean;
extern const struct ifd_op_def ifd_op_reduce_max;
extern const struct ifd_op_def ifd_op_reduce_min;

/* The reduced dimensions of shape, as a set of bits; empty for a scalar. */
static enum ifd_code axes_of(const struct ifd_op_def *def, const struct ifd_reduce_attrs *attrs,
                             const struct ifd_shape *shape, uint32_t *ret_axes, struct ifd_err *err)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; shape->rank > 0 && i < attrs->axes.count; i++) {
        uint32_t axis = 0;
        const enum ifd_code code = ifd_infer_axis(def, shape, attrs->axes.value[i], &axis, err);
        if (code != IFD_OK) {
            return code;
        }
        axes |= IFD_BIT(axis);
    }
    *ret_axes = axes;
    return IFD_OK;
}

static double scale_ratio(const struct ifd_desc *input, const struct ifd_desc *output)
{
    return (double)input->quant.scale[0] / (double)output->quant.scale[0];
}

static enum ifd_code check_types(const struct ifd_op_def *def, const struct ifd_infer *in,
                                 const struct ifd_desc *output, struct ifd_err *err)
{
    const struct ifd_desc *input = in->input[0].desc;
    enum ifd_code code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    if (code != IFD_OK || !ifd_dtype_is_quantized(input->dtype)) {
        return code;
    }
    code = ifd_infer_any_scale(def, "the input", input, err);
    if (code == IFD_OK) {
        code = ifd_infer_any_scale(def, "the output", &output[0], err);
    }
    if (code != IFD_OK) {
        return code;
    }
    if ((def == &ifd_op_reduce_max || def == &ifd_op_reduce_min) &&
        !ifd_quant_equal(input, &output[0])) {
        return ifd_fail(err, IFD_INVALID, "%s: input scale %g does not fit output scale %g",
                        def->name, (double)input->quant.scale[0], (double)output[0].quant.scale[0]);
    }
    return IFD_OK;
}

static enum ifd_code reduce_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const struct ifd_reduce_attrs *attrs = in->attrs;
    uint32_t axes = 0;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = axes_of(def, attrs, &in->input[0].desc->shape, &axes, err);
    }
    if (code == IFD_OK) {
        code = check_types(def, in, output, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    struct ifd_shape shape = {.rank = 0};
    for (uint32_t d = 0; d < input->rank; d++) {
        if ((axes & IFD_BIT(d)) == 0) {
            shape.dim[shape.rank++] = input->dim[d];
        } else if (attrs->keep_dims) {
            shape.dim[shape.rank++] = 1;
        }
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* A 64-bit number per output element, where f32 uses the output itself. */
static enum ifd_code reduce_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                    size_t *ret_bytes, struct ifd_err *err)
{
    const size_t count = in->input[0].desc->dtype == IFD_F32 ? 0 : ifd_ref_elements(&output[0]);
    if (!ifd_size_mul(count, sizeof(int64_t), ret_bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "reduction to %zu elements needs too much memory",
                        count);
    }
    return IFD_OK;
}

/* A walk over the input that gives the output element of every input element. */
static enum ifd_code begin_walk(const struct ifd_ref_call *call, struct ifd_walk *walk,
                                int64_t *ret_count, struct ifd_err *err)
{
    const struct ifd_reduce_attrs *attrs = call->attrs;
    const struct ifd_shape *input = &call->in[0]->shape;
    uint32_t axes = 0;
    const enum ifd_code code = axes_of(&ifd_op_reduce_mean, attrs, input, &axes, err);
    if (code != IFD_OK) {
        return code;
    }
    int64_t stride[IFD_MAX_RANK] = {0};
    int64_t step = 1;
    int64_t count = 1;
    for (uint32_t d = input->rank; d-- > 0;) {
        if ((axes & IFD_BIT(d)) == 0) {
            stride[d] = step;
            step *= input->dim[d];
        } else {
            count *= input->dim[d];
        }
    }
    ifd_walk_init(walk, input);
    ifd_walk_strided(walk, 0, 0, stride);
    *ret_count = count;
    return IFD_OK;
}

static int64_t load(enum ifd_dtype dtype, const void *data, size_t i)
{
    return dtype == IFD_S64 ? ((const int64_t *)data)[i] : ifd_ref_load(dtype, data, i);
}

static void store(enum ifd_dtype dtype, void *data, size_t i, int64_t value)
{
    if (dtype == IFD_S64) {
        ((int64_t *)data)[i] = value;
    } else {
        ifd_ref_store(dtype, data, i, (int32_t)value);
    }
}

static void sum_f32(const struct ifd_ref_call *call, struct ifd_walk *walk)
{
    const float *in = call->input[0];
    float *out = call->output[0];
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        out[i] = 0;
    }
    for (; walk->left > 0; ifd_walk_next(walk)) {
        out[walk->offset[0]] += in[walk->done];
    }
}

/* Sums in scratch, modulo 2^64. */
static void sum_int(const struct ifd_ref_call *call, struct ifd_walk *walk)
{
    uint64_t *sum = call->scratch;
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        sum[i] = 0;
    }
    for (; walk->left > 0; ifd_walk_next(walk)) {
        sum[walk->offset[0]] += (uint64_t)load(call->in[0]->dtype, call->input[0], walk->done);
    }
}

/* Scales sums of count stored numbers to the output. The multiplier includes a mean's division
 * by count, with up to 31 bits. Sums are taken modulo 2^32, as LiteRT's int32 sums are. */
static void store_quantized(const struct ifd_ref_call *call, int64_t count, bool is_mean)
{
    const struct ifd_desc *input = call->in[0];
    const struct ifd_desc *output = call->out[0];
    int32_t multiplier = 0;
    int shift = 0;
    ifd_fixed_from_any(scale_ratio(input, output), &multiplier, &shift);
    if (is_mean) {
        int bits = 0; /* of count, rounded down: count >> bits is 1 */
        while (bits < 32 && count >> (bits + 1) != 0) {
            bits++;
        }
        bits = bits < 31 + shift ? bits : 31 + shift;
        multiplier = (int32_t)(((int64_t)multiplier << bits) / count);
        shift -= bits;
    }
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(output->dtype, &min, &max);
    const uint64_t *sum = call->scratch;
    const uint64_t zero_sum = (uint64_t)(ifd_ref_zero_point(input) * count);
    for (size_t i = 0; i < ifd_ref_elements(output); i++) {
        const int32_t centred = (int32_t)(uint32_t)(sum[i] - zero_sum);
        const int32_t value = ifd_fixed_add(ifd_fixed_scale_double(centred, multiplier, shift),
                                            ifd_ref_zero_point(output));
        ifd_ref_store(output->dtype, call->output[0], i, ifd_ref_clamp(value, min, max));
    }
}

/* Mean or sum of an empty tensor, as in LiteRT: stored zeros; NaN for a mean of floats. */
static void store_empty(const struct ifd_ref_call *call, bool is_mean)
{
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        if (call->out[0]->dtype == IFD_F32) {
            ((float *)call->output[0])[i] = is_mean ? NAN : 0;
        } else {
            store(call->out[0]->dtype, call->output[0], i, 0);
        }
    }
}

static enum ifd_code sum_ref(const struct ifd_ref_call *call, bool is_mean, struct ifd_err *err)
{
    struct ifd_walk walk;
    int64_t count = 0;
    const enum ifd_code code = begin_walk(call, &walk, &count, err);
    if (code != IFD_OK) {
        return code;
    }
    const enum ifd_dtype dtype = call->out[0]->dtype;
    const size_t outputs = ifd_ref_elements(call->out[0]);
    if (walk.left == 0) {
        store_empty(call, is_mean);
    } else if (dtype == IFD_F32) {
        sum_f32(call, &walk);
        for (size_t i = 0; is_mean && i < outputs; i++) {
            ((float *)call->output[0])[i] /= (float)count;
        }
    } else {
        sum_int(call, &walk);
        if (ifd_dtype_is_quantized(dtype)) {
            store_quantized(call, count, is_mean);
            return IFD_OK;
        }
        const int64_t *sum = call->scratch;
        for (size_t i = 0; i < outputs; i++) {
            store(dtype, call->output[0], i, is_mean ? sum[i] / count : sum[i]);
        }
    }
    return IFD_OK;
}

static enum ifd_code reduce_mean_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return sum_ref(call, true, err);
}

static enum ifd_code reduce_sum_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return sum_ref(call, false, err);
}

/* The start value of a maximum or minimum. */
static int64_t end_of_range(enum ifd_dtype dtype, bool is_min)
{
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(dtype, &min, &max);
    return dtype == IFD_S64 ? (is_min ? INT64_MAX : INT64_MIN) : is_min ? max : min;
}

static void extremum_f32(const struct ifd_ref_call *call, struct ifd_walk *walk, bool is_min)
{
    const float *in = call->input[0];
    float *out = call->output[0];
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        out[i] = is_min ? INFINITY : -INFINITY;
    }
    for (; walk->left > 0; ifd_walk_next(walk)) {
        float *to = &out[walk->offset[0]];
        const float value = in[walk->done];
        *to = (is_min ? value < *to : value > *to) ? value : *to;
    }
}

static enum ifd_code extremum_ref(const struct ifd_ref_call *call, bool is_min, struct ifd_err *err)
{
    struct ifd_walk walk;
    int64_t count = 0;
    const enum ifd_code code = begin_walk(call, &walk, &count, err);
    if (code != IFD_OK) {
        return code;
    }
    const enum ifd_dtype dtype = call->out[0]->dtype;
    if (dtype == IFD_F32) {
        extremum_f32(call, &walk, is_min);
        return IFD_OK;
    }
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        store(dtype, call->output[0], i, end_of_range(dtype, is_min));
    }
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        const size_t to = (size_t)walk.offset[0];
        const int64_t value = load(dtype, call->input[0], walk.done);
        const int64_t held = load(dtype, call->output[0], to);
        if (is_min ? value < held : value > held) {
            store(dtype, call->output[0], to, value);
        }
    }
    return IFD_OK;
}

static enum ifd_code reduce_max_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return extremum_ref(call, false, err);
}

static enum ifd_code reduce_min_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return extremum_ref(call, true, err);
}

/* Each product is scaled by the scale of the input and the count-th root of that of the output. */
static void prod_quantized(const struct ifd_ref_call *call, struct ifd_walk *walk, int64_t count)
{
    const struct ifd_desc *in = call->in[0], *out = call->out[0];
    const size_t outputs = ifd_ref_elements(out);
    const double root = pow((double)ifd_ref_scale(out), 1.0 / (double)count);
    const struct ifd_multiplier factor = ifd_multiplier((double)ifd_ref_scale(in) / root);
    int64_t *product = call->scratch;
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(out->dtype, &min, &max);
    for (size_t i = 0; i < outputs; i++) {
        product[i] = INT64_MIN; /* none yet */
    }
    for (; walk->left > 0; ifd_walk_next(walk)) {
        int64_t *to = &product[walk->offset[0]];
        const int64_t x = load(in->dtype, call->input[0], walk->done) - ifd_ref_zero_point(in);
        *to = *to == INT64_MIN ? x : ifd_fixed_scale_wide(*to * x, factor.fraction, factor.shift);
    }
    for (size_t i = 0; i < outputs; i++) {
        const int32_t y =
            ifd_fixed_add(ifd_fixed_scale_wide(product[i], factor.fraction, factor.shift),
                          ifd_ref_zero_point(out));
        ifd_ref_store(out->dtype, call->output[0], i, ifd_ref_clamp(y, min, max));
    }
}

static enum ifd_code reduce_prod_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    struct ifd_walk walk;
    int64_t count = 0;
    const enum ifd_code code = begin_walk(call, &walk, &count, err);
    if (code != IFD_OK) {
        return code;
    }
    const enum ifd_dtype dtype = call->out[0]->dtype;
    if (ifd_dtype_is_quantized(dtype) && walk.left > 0) {
        prod_quantized(call, &walk, count);
        return IFD_OK;
    }
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        if (dtype == IFD_F32) {
            ((float *)call->output[0])[i] = 1;
        } else {
            store(dtype, call->output[0], i, 1);
        }
    }
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        const size_t to = (size_t)walk.offset[0];
        if (dtype == IFD_F32) {
            ((float *)call->output[0])[to] *= ((const float *)call->input[0])[walk.done];
        } else { /* modulo 2^32 or 2^64 */
            const uint64_t product = (uint64_t)load(dtype, call->output[0], to) *
                                     (uint64_t)load(dtype, call->input[0], walk.done);
            store(dtype, call->output[0], to,
                  dtype == IFD_S64 ? (int64_t)product : (int32_t)(uint32_t)product);
        }
    }
    return IFD_OK;
}

static enum ifd_code logic_ref(const struct ifd_ref_call *call, bool is_any, struct ifd_err *err)
{
    struct ifd_walk walk;
    int64_t count = 0;
    const enum ifd_code code = begin_walk(call, &walk, &count, err);
    if (code != IFD_OK) {
        return code;
    }
    const uint8_t *in = call->input[0];
    uint8_t *out = call->output[0];
    for (size_t i = 0; i < ifd_ref_elements(call->out[0]); i++) {
        out[i] = !is_any;
    }
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        if ((in[walk.done] != 0) == is_any) {
            out[walk.offset[0]] = is_any;
        }
    }
    return IFD_OK;
}

static enum ifd_code reduce_any_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return logic_ref(call, true, err);
}

static enum ifd_code reduce_all_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    return logic_ref(call, false, err);
}

static const struct ifd_attr_def reduce_attrs[] = {
    {"axes", IFD_ATTR_INTS, offsetof(struct ifd_reduce_attrs, axes), 0, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
    {"keep_dims", IFD_ATTR_BOOL, offsetof(struct ifd_reduce_attrs, keep_dims), 0, 0, 1},
};

static bool reduce_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_reduce_attrs *reduce = attrs;
    for (uint32_t i = 0; i < reduce->axes.count; i++) {
        reduce->axes.value[i] = ifd_permute_axis((int32_t)reduce->axes.value[i], perm);
    }
    return reduce->keep_dims || reduce->axes.count == perm->rank;
}

#define TYPES_NUMBER (IFD_BIT(IFD_F32) | IFD_DTYPES_INDEX)

#define DEFINE(op, types, scratch_fn, chooses)                                                     \
    const struct ifd_op_def ifd_op_##op = {                                                        \
        .name = #op,                                                                               \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .outputs = 1,                                                                              \
        .attrs = reduce_attrs,                                                                     \
        .attr_count = sizeof(reduce_attrs) / sizeof(reduce_attrs[0]),                              \
        .attrs_bytes = sizeof(struct ifd_reduce_attrs),                                            \
        .dtypes = (types),                                                                         \
        .batch = IFD_BATCH_AXIS,                                                                   \
        .infer = reduce_infer,                                                                     \
        .scratch = (scratch_fn),                                                                   \
        .ref = op##_ref,                                                                           \
        .permute = reduce_permute,                                                                 \
        .moves = (chooses),                                                                        \
    }

DEFINE(reduce_mean, TYPES_NUMBER | IFD_DTYPES_QUANT, reduce_scratch, false);
DEFINE(reduce_sum, TYPES_NUMBER | IFD_DTYPES_QUANT, reduce_scratch, false);
DEFINE(reduce_max, TYPES_NUMBER | IFD_DTYPES_QUANT, NULL, true);
DEFINE(reduce_min, TYPES_NUMBER | IFD_DTYPES_QUANT, NULL, true);
DEFINE(reduce_prod, TYPES_NUMBER | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16), reduce_scratch, false);
DEFINE(reduce_any, IFD_BIT(IFD_BOOL), NULL, false);
DEFINE(reduce_all, IFD_BIT(IFD_BOOL), NULL, false);

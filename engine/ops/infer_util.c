/* Helpers of shape rules. */
#include "engine/ops/infer_util.h"

#include "engine/ir/attrs.h"
#include "engine/ops/ref_util.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static enum ifd_code check_counts(const struct ifd_op_def *def, const struct ifd_infer *in,
                                  struct ifd_err *err)
{
    if (in->input_count < def->min_inputs ||
        (def->max_inputs != IFD_OP_VARIADIC && in->input_count > def->max_inputs)) {
        return ifd_fail(err, IFD_INVALID, "%s: %u inputs, expected %s", def->name, in->input_count,
                        ifd_count_text(def->min_inputs, def->max_inputs).s);
    }
    if (def->outputs != IFD_OP_VARIADIC && in->output_count != def->outputs) {
        return ifd_fail(err, IFD_INVALID, "%s: %u outputs, expected %u", def->name,
                        in->output_count, def->outputs);
    }
    if (in->output_count == 0) {
        return ifd_fail(err, IFD_INVALID, "%s: no outputs", def->name);
    }
    return IFD_OK;
}

static enum ifd_code check_input(const struct ifd_op_def *def, const struct ifd_operand *operand,
                                 uint32_t i, struct ifd_err *err)
{
    const struct ifd_desc *desc = operand->desc;
    if (!desc) {
        if (i < def->min_inputs || def->max_inputs == IFD_OP_VARIADIC) {
            return ifd_fail(err, IFD_INVALID, "%s: input %u is missing", def->name, i);
        }
        return IFD_OK;
    }
    if (desc->shape.rank > IFD_MAX_RANK) {
        return ifd_fail(err, IFD_TOO_LARGE, "%s: input %u has rank %u, expected at most %d",
                        def->name, i, desc->shape.rank, IFD_MAX_RANK);
    }
    size_t bytes = 0;
    if (!ifd_desc_bytes(desc, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "%s: input %u has shape %s of %s, whose size is unknown or too large",
                        def->name, i, ifd_shape_text(&desc->shape).s, ifd_dtype_name(desc->dtype));
    }
    if (operand->data.data && operand->data.size != bytes) {
        return ifd_fail(err, IFD_INVALID, "%s: input %u has %zu bytes of content, expected %zu",
                        def->name, i, operand->data.size, bytes);
    }
    const bool is_constant = operand->data.data || bytes == 0;
    if (i < 32 && (def->shape_inputs & IFD_BIT(i)) != 0 && !is_constant) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "%s: input %u decides the output's shape and must be constant", def->name,
                        i);
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_begin(const struct ifd_op_def *def, const struct ifd_infer *in,
                              struct ifd_err *err)
{
    enum ifd_code code = ifd_attrs_check(def, in->attrs, err);
    if (code == IFD_OK) {
        code = check_counts(def, in, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < in->input_count; i++) {
        code = check_input(def, &in->input[i], i, err);
    }
    if (code == IFD_OK && in->input_count > 0) {
        code = ifd_infer_dtype(def, in, 0, def->dtypes, err);
    }
    return code;
}

const struct ifd_desc *ifd_infer_input(const struct ifd_infer *in, uint32_t i)
{
    return i < in->input_count ? in->input[i].desc : NULL;
}

enum ifd_code ifd_infer_dtype(const struct ifd_op_def *def, const struct ifd_infer *in, uint32_t i,
                              uint32_t dtypes, struct ifd_err *err)
{
    const struct ifd_desc *desc = ifd_infer_input(in, i);
    if (!desc) {
        return ifd_fail(err, IFD_INVALID, "%s: input %u is missing", def->name, i);
    }
    if ((unsigned)desc->dtype >= IFD_DTYPE_COUNT || (dtypes & IFD_BIT(desc->dtype)) == 0) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: input %u of type %s is not supported here",
                        def->name, i, ifd_dtype_name(desc->dtype));
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_rank(const struct ifd_op_def *def, const struct ifd_infer *in, uint32_t i,
                             uint32_t rank, struct ifd_err *err)
{
    const struct ifd_desc *desc = ifd_infer_input(in, i);
    if (!desc || desc->shape.rank != rank) {
        return ifd_fail(err, IFD_INVALID, "%s: input %u has shape %s, expected rank %u", def->name,
                        i, desc ? ifd_shape_text(&desc->shape).s : "(missing)", rank);
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_output_dtype(const struct ifd_op_def *def, const struct ifd_desc *output,
                                     uint32_t i, enum ifd_dtype dtype, struct ifd_err *err)
{
    if (output[i].dtype != dtype) {
        return ifd_fail(err, IFD_INVALID, "%s: output %u has type %s, expected %s", def->name, i,
                        ifd_dtype_name(output[i].dtype), ifd_dtype_name(dtype));
    }
    return IFD_OK;
}

enum zero_points {
    ONLY_ZERO,
    OF_BYTES, /* those of a type of 8 bits, 0 of others */
    OF_TYPE
};

static enum ifd_code check_quant(const struct ifd_op_def *def, const char *what,
                                 const struct ifd_desc *desc, uint32_t c, float least,
                                 enum zero_points zero_points, struct ifd_err *err)
{
    const float scale = desc->quant.scale[c];
    const int32_t zero_point = desc->quant.zero_point[c];
    if (!(scale >= least) || !isfinite(scale)) {
        return ifd_fail(err, IFD_INVALID, "%s: %s has scale %g, expected a finite one from %g on",
                        def->name, what, (double)scale, (double)least);
    }
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(desc->dtype, &min, &max);
    const bool is_wide = desc->dtype == IFD_S16 || desc->dtype == IFD_S32;
    if (zero_points == ONLY_ZERO || (zero_points == OF_BYTES && is_wide)) {
        min = max = 0;
    }
    if (zero_point < min || zero_point > max) {
        return ifd_fail(err, IFD_INVALID, "%s: %s (%s) has zero point %d, expected %d to %d",
                        def->name, what, ifd_dtype_name(desc->dtype), zero_point, min, max);
    }
    return IFD_OK;
}

static enum ifd_code check_one_scale(const struct ifd_op_def *def, const char *what,
                                     const struct ifd_desc *desc, float least, struct ifd_err *err)
{
    if (desc->quant.count != 1) {
        return ifd_fail(err, IFD_INVALID, "%s: %s (%s) has %u scales, expected 1", def->name, what,
                        ifd_dtype_name(desc->dtype), desc->quant.count);
    }
    return check_quant(def, what, desc, 0, least, OF_BYTES, err);
}

enum ifd_code ifd_infer_per_tensor(const struct ifd_op_def *def, const char *what,
                                   const struct ifd_desc *desc, struct ifd_err *err)
{
    return check_one_scale(def, what, desc, FLT_MIN, err);
}

enum ifd_code ifd_infer_any_scale(const struct ifd_op_def *def, const char *what,
                                  const struct ifd_desc *desc, struct ifd_err *err)
{
    return check_one_scale(def, what, desc, 0, err);
}

enum ifd_code ifd_infer_act_bounds(const struct ifd_op_def *def, int32_t activation,
                                   const struct ifd_desc *output, struct ifd_err *err)
{
    const float scale = output->quant.scale[0];
    float min = 0;
    float max = 0;
    if (isnormal(scale) || activation == IFD_ACT_NONE) {
        return IFD_OK;
    }
    ifd_ref_act_range_f32(activation, &min, &max);
    const float steps = (isinf(max) ? min : max) / scale;
    if (!(fabsf(steps) < 0x1p31f)) {
        return ifd_fail(err, IFD_INVALID,
                        "%s: the output has scale %g, and its activation the bound %g, which is %g "
                        "steps, expected a number of 32 bits",
                        def->name, (double)scale, (double)(isinf(max) ? min : max), (double)steps);
    }
    return IFD_OK;
}

static enum ifd_code check_channels(const struct ifd_op_def *def, const char *what,
                                    const struct ifd_desc *desc, uint32_t axis,
                                    enum zero_points zero_points, struct ifd_err *err)
{
    const uint32_t count = desc->quant.count;
    const int64_t channels = axis < desc->shape.rank ? desc->shape.dim[axis] : 1;
    if (count != 1 && (count != channels || desc->quant.axis != axis)) {
        return ifd_fail(err, IFD_INVALID,
                        "%s: %s has %u scales along axis %u, expected %lld along axis %u",
                        def->name, what, count, desc->quant.axis, (long long)channels, axis);
    }
    enum ifd_code code = IFD_OK;
    for (uint32_t c = 0; code == IFD_OK && c < count; c++) {
        code = check_quant(def, what, desc, c, 0, zero_points, err);
    }
    return code;
}

enum ifd_code ifd_infer_per_channel(const struct ifd_op_def *def, const char *what,
                                    const struct ifd_desc *desc, uint32_t axis, struct ifd_err *err)
{
    return check_channels(def, what, desc, axis, desc->quant.count == 1 ? OF_BYTES : ONLY_ZERO,
                          err);
}

enum ifd_code ifd_infer_each_channel(const struct ifd_op_def *def, const char *what,
                                     const struct ifd_desc *desc, struct ifd_err *err)
{
    return check_channels(def, what, desc, desc->quant.axis, OF_TYPE, err);
}

bool ifd_quant_equal(const struct ifd_desc *a, const struct ifd_desc *b)
{
    if (a->quant.count == 0 && b->quant.count == 0) {
        return true;
    }
    return a->quant.count == 1 && b->quant.count == 1 && a->quant.scale[0] == b->quant.scale[0] &&
           a->quant.zero_point[0] == b->quant.zero_point[0];
}

bool ifd_dtype_is_quantized(enum ifd_dtype dtype)
{
    return dtype == IFD_U8 || dtype == IFD_S8 || dtype == IFD_S16;
}

void ifd_dtype_range(enum ifd_dtype dtype, int32_t *ret_min, int32_t *ret_max)
{
    static const struct {
        int32_t min, max;
    } range[IFD_DTYPE_COUNT] = {
        [IFD_S8] = {INT8_MIN, INT8_MAX},    [IFD_U8] = {0, UINT8_MAX},
        [IFD_S16] = {INT16_MIN, INT16_MAX}, [IFD_U16] = {0, UINT16_MAX},
        [IFD_S32] = {INT32_MIN, INT32_MAX},
    };
    const unsigned i = (unsigned)dtype < IFD_DTYPE_COUNT ? (unsigned)dtype : IFD_F32;
    *ret_min = range[i].min;
    *ret_max = range[i].max;
}

enum ifd_code ifd_infer_axis(const struct ifd_op_def *def, const struct ifd_shape *shape,
                             int64_t axis, uint32_t *ret_axis, struct ifd_err *err)
{
    if (!ifd_shape_axis(shape, axis, ret_axis)) {
        return ifd_fail(err, IFD_INVALID, "%s: axis %lld does not exist in shape %s", def->name,
                        (long long)axis, ifd_shape_text(shape).s);
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_broadcast(const struct ifd_op_def *def, const struct ifd_infer *in,
                                  struct ifd_desc *output, struct ifd_err *err)
{
    struct ifd_shape shape = in->input[0].desc->shape;
    for (uint32_t i = 1; i < in->input_count; i++) {
        const struct ifd_shape *other = &in->input[i].desc->shape;
        struct ifd_shape both;
        if (!ifd_shape_broadcast(&shape, other, &both)) {
            return ifd_fail(err, IFD_INVALID, "%s: shapes %s and %s do not broadcast", def->name,
                            ifd_shape_text(&shape).s, ifd_shape_text(other).s);
        }
        shape = both;
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

enum ifd_code ifd_infer_output(const struct ifd_op_def *def, struct ifd_desc *output, uint32_t i,
                               const struct ifd_shape *shape, struct ifd_err *err)
{
    const struct ifd_desc desc = {.dtype = output[i].dtype, .shape = *shape};
    size_t bytes = 0;
    if (!ifd_desc_bytes(&desc, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "%s: output %u would have shape %s of %s", def->name, i,
                        ifd_shape_text(shape).s, ifd_dtype_name(desc.dtype));
    }
    output[i].shape = *shape;
    return IFD_OK;
}

static int64_t load_index(const struct ifd_desc *desc, const void *data, size_t i)
{
    return desc->dtype == IFD_S32 ? ((const int32_t *)data)[i] : ((const int64_t *)data)[i];
}

static enum ifd_code check_index_list(const struct ifd_op_def *def, const char *what,
                                      const struct ifd_desc *desc, size_t max_count,
                                      size_t *ret_count, struct ifd_err *err)
{
    if (!ifd_shape_elements(&desc->shape, ret_count) || *ret_count > max_count) {
        return ifd_fail(err, IFD_INVALID, "%s: %s has shape %s, expected at most %zu numbers",
                        def->name, what, ifd_shape_text(&desc->shape).s, max_count);
    }
    if (desc->dtype != IFD_S32 && desc->dtype != IFD_S64) {
        return ifd_fail(err, IFD_INVALID, "%s: %s has type %s, expected s32 or s64", def->name,
                        what, ifd_dtype_name(desc->dtype));
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_ints(const struct ifd_op_def *def, const char *what,
                             const struct ifd_desc *desc, const void *data,
                             struct ifd_ints *ret_ints, struct ifd_err *err)
{
    size_t count = 0;
    const enum ifd_code code = check_index_list(def, what, desc, IFD_MAX_RANK, &count, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_ints ints = {.count = (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        ints.value[i] = load_index(desc, data, i);
    }
    *ret_ints = ints;
    return IFD_OK;
}

enum ifd_code ifd_infer_pairs(const struct ifd_op_def *def, const char *what,
                              const struct ifd_desc *desc, const void *data,
                              struct ifd_ints *ret_before, struct ifd_ints *ret_after,
                              struct ifd_err *err)
{
    size_t count = 0;
    const enum ifd_code code =
        check_index_list(def, what, desc, (size_t)2 * IFD_MAX_RANK, &count, err);
    if (code != IFD_OK) {
        return code;
    }
    if (count % 2 != 0) {
        return ifd_fail(err, IFD_INVALID, "%s: %s has shape %s, expected [n,2]", def->name, what,
                        ifd_shape_text(&desc->shape).s);
    }
    struct ifd_ints before = {.count = (uint32_t)(count / 2)};
    struct ifd_ints after = {.count = (uint32_t)(count / 2)};
    for (size_t i = 0; i < count / 2; i++) {
        before.value[i] = load_index(desc, data, 2 * i);
        after.value[i] = load_index(desc, data, 2 * i + 1);
    }
    *ret_before = before;
    *ret_after = after;
    return IFD_OK;
}

bool ifd_dim_mul(int64_t a, int64_t b, int64_t *ret)
{
    if (a < 0 || b < 0 || (b > 0 && a > INT64_MAX / b)) {
        return false;
    }
    *ret = a * b;
    return true;
}

bool ifd_dim_add(int64_t a, int64_t b, int64_t *ret)
{
    if (a < 0 || b < 0 || a > INT64_MAX - b) {
        return false;
    }
    *ret = a + b;
    return true;
}

/* Tensors joined or taken apart along one axis: concat and split along an existing one, pack and
 * unpack along one that they add or remove. */
#include "engine/ops/infer_util.h"
#include "engine/ops/permute.h"
#include "engine/ops/ref_util.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_concat, ifd_op_pack, ifd_op_split, ifd_op_unpack;

/* ---- copying ---- */

/** Elements of one run along axis and everything after it. */
static size_t run_of(const struct ifd_shape *shape, uint32_t axis)
{
    return (size_t)ifd_ref_product(shape, axis, shape->rank);
}

/** Runs before the axis. None if the tensor is empty: its other dimensions may be huge. */
static size_t outer_of(const struct ifd_desc *desc, uint32_t axis)
{
    return ifd_ref_elements(desc) > 0 ? (size_t)ifd_ref_product(&desc->shape, 0, axis) : 0;
}

/** Axis of the attributes, from the start; rank dimensions. */
static uint32_t axis_of(int32_t axis, uint32_t rank)
{
    return (uint32_t)(axis < 0 ? axis + (int32_t)rank : axis);
}

/* ---- concat ---- */

/** Inputs of u8 that are quantized differently from the output are requantized, those of s8 are
 *  refused, and the numbers of s16 are taken as they are: so does LiteRT. */
static enum ifd_code check_concat_quant(const struct ifd_desc *input, const struct ifd_desc *output,
                                        uint32_t i, struct ifd_err *err)
{
    if ((input->dtype != IFD_U8 && input->dtype != IFD_S8) || ifd_quant_equal(input, output)) {
        return IFD_OK;
    }
    if (input->dtype == IFD_S8) {
        return ifd_fail(err, IFD_UNSUPPORTED,
                        "concat: input %u (%s) is quantized differently from the output", i,
                        ifd_dtype_name(input->dtype));
    }
    const enum ifd_code code = ifd_infer_any_scale(&ifd_op_concat, "input", input, err);
    return code == IFD_OK ? ifd_infer_any_scale(&ifd_op_concat, "output 0", output, err) : code;
}

static enum ifd_code concat_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_concat;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *first = in->input[0].desc;
    struct ifd_shape shape = first->shape;
    uint32_t axis = 0;
    code =
        ifd_infer_axis(def, &shape, ((const struct ifd_axis_attrs *)in->attrs)->axis, &axis, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, first->dtype, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < in->input_count; i++) {
        const struct ifd_desc *input = in->input[i].desc;
        code = ifd_infer_dtype(def, in, i, IFD_BIT(first->dtype), err);
        if (code == IFD_OK && !ifd_shape_equal_except(&shape, &input->shape, axis)) {
            code = ifd_fail(err, IFD_INVALID,
                            "concat: input %u has shape %s, expected %s except axis %u", i,
                            ifd_shape_text(&input->shape).s, ifd_shape_text(&shape).s, axis);
        }
        if (code == IFD_OK && i > 0 &&
            !ifd_dim_add(shape.dim[axis], input->shape.dim[axis], &shape.dim[axis])) {
            code = ifd_fail(err, IFD_TOO_LARGE, "concat: axis %u overflows", axis);
        }
        if (code == IFD_OK) {
            code = check_concat_quant(input, &output[0], i, err);
        }
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

/** Requantizes a run of u8 numbers in floats, as LiteRT does. */
static void requantize_run(const struct ifd_desc *input, const struct ifd_desc *output,
                           uint8_t *target, const uint8_t *source, size_t count)
{
    const float scale = ifd_ref_scale(input) * (1.0f / ifd_ref_scale(output));
    const float bias = (float)-ifd_ref_zero_point(input) * scale;
    for (size_t i = 0; i < count; i++) {
        const float steps = roundf((float)source[i] * scale + bias);
        const int32_t stored =
            ifd_fixed_add(ifd_fixed_from_float(steps), ifd_ref_zero_point(output));
        target[i] = (uint8_t)ifd_ref_clamp(stored, 0, 255);
    }
}

/** Writes the inputs' runs one after the other: of concat, and of pack, whose inputs lack the
 *  axis. */
static enum ifd_code put_together(const struct ifd_ref_call *call, bool requantizes)
{
    const struct ifd_desc *out = call->out[0];
    const struct ifd_axis_attrs *attrs = call->attrs;
    const uint32_t axis = axis_of(attrs->axis, out->shape.rank);
    const size_t outer = outer_of(out, axis);
    const size_t bytes = ifd_dtype_bytes(out->dtype);
    size_t at = 0;
    for (size_t o = 0; o < outer; o++) {
        for (uint32_t i = 0; i < call->input_count; i++) {
            const struct ifd_desc *in = call->in[i];
            const size_t run = run_of(&in->shape, axis);
            if (requantizes && in->dtype == IFD_U8 && !ifd_quant_equal(in, out)) {
                requantize_run(in, out, (uint8_t *)call->output[0] + at,
                               (const uint8_t *)call->input[i] + o * run, run);
            } else {
                ifd_ref_copy_run(bytes, call->output[0], at, call->input[i], o * run, run);
            }
            at += run;
        }
    }
    return IFD_OK;
}

static enum ifd_code concat_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    return put_together(call, true);
}

/* ---- pack ---- */

static enum ifd_code pack_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_pack;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *first = in->input[0].desc;
    if (first->shape.rank == IFD_MAX_RANK) {
        return ifd_fail(err, IFD_TOO_LARGE, "pack: inputs have rank %d already", IFD_MAX_RANK);
    }
    struct ifd_shape shape = {.rank = first->shape.rank + 1};
    uint32_t axis = 0;
    code =
        ifd_infer_axis(def, &shape, ((const struct ifd_axis_attrs *)in->attrs)->axis, &axis, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, first->dtype, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < in->input_count; i++) {
        const struct ifd_desc *input = in->input[i].desc;
        code = ifd_infer_dtype(def, in, i, IFD_BIT(first->dtype), err);
        if (code == IFD_OK && !ifd_shape_equal(&first->shape, &input->shape)) {
            code = ifd_fail(err, IFD_INVALID, "pack: input %u has shape %s, expected %s", i,
                            ifd_shape_text(&input->shape).s, ifd_shape_text(&first->shape).s);
        }
        if (code == IFD_OK && ifd_dtype_is_quantized(first->dtype) &&
            !ifd_quant_equal(first, input)) {
            code = ifd_fail(err, IFD_UNSUPPORTED, "pack: inputs 0 and %u are quantized differently",
                            i);
        }
    }
    for (uint32_t d = 0; code == IFD_OK && d < shape.rank; d++) {
        shape.dim[d] =
            d == axis ? (int64_t)in->input_count : first->shape.dim[d < axis ? d : d - 1];
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

static enum ifd_code pack_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    return put_together(call, false);
}

/* ---- split ---- */

/** Size of every output along the axis of dim elements: equal, or sizes with one -1 for the
 *  rest. */
static enum ifd_code split_sizes(const struct ifd_ints *sizes, int64_t dim, uint32_t output_count,
                                 struct ifd_desc *output, uint32_t axis, struct ifd_err *err)
{
    if (sizes->count != 0 && sizes->count != output_count) {
        return ifd_fail(err, IFD_INVALID, "split: %u sizes for %u outputs", sizes->count,
                        output_count);
    }
    int64_t left = dim;
    uint32_t open = output_count;
    for (uint32_t i = 0; i < output_count; i++) {
        const int64_t size = sizes->count == 0 ? dim / output_count : sizes->value[i];
        if (size > left || size < -1 || (size == -1 && open != output_count)) {
            return ifd_fail(err, IFD_INVALID,
                            "split: size %lld of output %u, %lld elements are left",
                            (long long)size, i, (long long)left);
        }
        open = size == -1 ? i : open;
        left -= size == -1 ? 0 : size;
        output[i].shape.dim[axis] = size;
    }
    if (open != output_count) {
        output[open].shape.dim[axis] = left;
        left = 0;
    }
    if (left != 0) {
        return ifd_fail(err, IFD_INVALID,
                        "split: sizes do not divide %lld elements among %u outputs", (long long)dim,
                        output_count);
    }
    return IFD_OK;
}

static enum ifd_code split_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_split;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_split_attrs *attrs = in->attrs;
    const struct ifd_desc *input = in->input[0].desc;
    uint32_t axis = 0;
    code = ifd_infer_axis(def, &input->shape, attrs->axis, &axis, err);
    for (uint32_t i = 0; code == IFD_OK && i < in->output_count; i++) {
        code = ifd_infer_output_dtype(def, output, i, input->dtype, err);
        output[i].shape = input->shape;
    }
    return code == IFD_OK ? split_sizes(&attrs->sizes, input->shape.dim[axis], in->output_count,
                                        output, axis, err)
                          : code;
}

/** Copies the input's runs to the outputs in turn: of split, and of unpack, whose outputs lack
 *  the axis. */
static enum ifd_code take_apart(const struct ifd_ref_call *call, int32_t attr_axis)
{
    const uint32_t axis = axis_of(attr_axis, call->in[0]->shape.rank);
    const size_t outer = outer_of(call->in[0], axis);
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    size_t at = 0;
    for (size_t o = 0; o < outer; o++) {
        for (uint32_t i = 0; i < call->output_count; i++) {
            const size_t run = run_of(&call->out[i]->shape, axis);
            ifd_ref_copy_run(bytes, call->output[i], o * run, call->input[0], at, run);
            at += run;
        }
    }
    return IFD_OK;
}

static enum ifd_code split_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    return take_apart(call, ((const struct ifd_split_attrs *)call->attrs)->axis);
}

/* ---- unpack ---- */

static enum ifd_code unpack_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_unpack;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    uint32_t axis = 0;
    code = ifd_infer_axis(def, &input->shape, ((const struct ifd_axis_attrs *)in->attrs)->axis,
                          &axis, err);
    if (code != IFD_OK) {
        return code;
    }
    if (input->shape.dim[axis] != in->output_count) {
        return ifd_fail(err, IFD_INVALID, "unpack: axis %u of shape %s into %u outputs", axis,
                        ifd_shape_text(&input->shape).s, in->output_count);
    }
    struct ifd_shape shape = {.rank = input->shape.rank - 1};
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.dim[d] = input->shape.dim[d < axis ? d : d + 1];
    }
    for (uint32_t i = 0; code == IFD_OK && i < in->output_count; i++) {
        code = ifd_infer_output_dtype(def, output, i, input->dtype, err);
        if (code == IFD_OK) {
            code = ifd_infer_output(def, output, i, &shape, err);
        }
    }
    return code;
}

static enum ifd_code unpack_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    return take_apart(call, ((const struct ifd_axis_attrs *)call->attrs)->axis);
}

/* ---- definitions ---- */

#define AXIS(type)                                                                                 \
    {                                                                                              \
        "axis", IFD_ATTR_INT, offsetof(struct type, axis), 0, -IFD_MAX_RANK, IFD_MAX_RANK - 1      \
    }

static const struct ifd_attr_def axis_attrs[] = {
    AXIS(ifd_axis_attrs),
    /* a field of files; none but NONE is supported */
    {"activation", IFD_ATTR_ENUM, offsetof(struct ifd_axis_attrs, activation), IFD_ACT_NONE,
     IFD_ACT_NONE, IFD_ACT_NONE},
};

static const struct ifd_attr_def split_attrs[] = {
    AXIS(ifd_split_attrs),
    {"sizes", IFD_ATTR_INTS, offsetof(struct ifd_split_attrs, sizes), 0, -1, (double)INT32_MAX},
};

static bool concat_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_axis_attrs *concat = attrs;
    concat->axis = ifd_permute_axis(concat->axis, perm);
    return true;
}

static bool split_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_split_attrs *split = attrs;
    split->axis = ifd_permute_axis(split->axis, perm);
    return true;
}

#define DEFINE(op, most_inputs, output_count, struct_name, table, copies, permute_fn)              \
    const struct ifd_op_def ifd_op_##op = {.name = #op,                                            \
                                           .min_inputs = 1,                                        \
                                           .max_inputs = (most_inputs),                            \
                                           .outputs = (output_count),                              \
                                           .attrs = (table),                                       \
                                           .attr_count = sizeof(table) / sizeof((table)[0]),       \
                                           .attrs_bytes = sizeof(struct struct_name),              \
                                           .dtypes = IFD_DTYPES_PASS,                              \
                                           .batch = IFD_BATCH_AXIS,                                \
                                           .infer = op##_infer,                                    \
                                           .ref = op##_ref,                                        \
                                           .is_identity = (copies),                                \
                                           .moves = true,                                          \
                                           .permute = (permute_fn)}

DEFINE(concat, IFD_OP_VARIADIC, 1, ifd_axis_attrs, axis_attrs, true, concat_permute);
DEFINE(pack, IFD_OP_VARIADIC, 1, ifd_axis_attrs, axis_attrs, false, NULL);
DEFINE(split, 1, IFD_OP_VARIADIC, ifd_split_attrs, split_attrs, true, split_permute);
DEFINE(unpack, 1, IFD_OP_VARIADIC, ifd_axis_attrs, axis_attrs, false, NULL);

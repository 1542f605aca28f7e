/* A tensor with a border of one value; a tensor repeated. */
#include "engine/ops/infer_util.h"
#include "engine/ops/permute.h"
#include "engine/ops/ref_util.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_pad, ifd_op_tile;

/* ---- pad ---- */

/** Elements before and after each dimension: from input 1 if it is there, else from the
 *  attributes. */
static enum ifd_code pad_amounts(const struct ifd_pad_attrs *attrs, const struct ifd_desc *desc,
                                 const void *data, struct ifd_ints *ret_before,
                                 struct ifd_ints *ret_after, struct ifd_err *err)
{
    *ret_before = attrs->before;
    *ret_after = attrs->after;
    return desc ? ifd_infer_pairs(&ifd_op_pad, "input 1", desc, data, ret_before, ret_after, err)
                : IFD_OK;
}

/** Checks that the type can store the value. */
static enum ifd_code check_value(const struct ifd_desc *input, float value, struct ifd_err *err)
{
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(input->dtype, &min, &max);
    const bool is_integer = min != max;
    if (is_integer && !(value >= (float)min && value <= (float)max && value == roundf(value))) {
        return ifd_fail(err, IFD_INVALID, "pad: value %g in a tensor of type %s", (double)value,
                        ifd_dtype_name(input->dtype));
    }
    if (!is_integer && input->dtype != IFD_F32 && value != 0) {
        return ifd_fail(err, IFD_UNSUPPORTED, "pad: value %g in a tensor of type %s", (double)value,
                        ifd_dtype_name(input->dtype));
    }
    return IFD_OK;
}

static enum ifd_code pad_infer(const struct ifd_infer *in, struct ifd_desc *output,
                               struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_pad;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    const struct ifd_pad_attrs *attrs = in->attrs;
    struct ifd_ints before;
    struct ifd_ints after;
    const void *data = in->input_count > 1 ? in->input[1].data.data : NULL;
    code = pad_amounts(attrs, ifd_infer_input(in, 1), data, &before, &after, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    }
    if (code == IFD_OK && attrs->has_value) {
        code = check_value(input, attrs->value, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = input->shape;
    if (before.count != shape.rank || after.count != shape.rank) {
        return ifd_fail(err, IFD_INVALID, "pad: %u and %u amounts for shape %s", before.count,
                        after.count, ifd_shape_text(&shape).s);
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        if (!ifd_dim_add(shape.dim[d], before.value[d], &shape.dim[d]) ||
            !ifd_dim_add(shape.dim[d], after.value[d], &shape.dim[d])) {
            return ifd_fail(
                err, IFD_INVALID,
                "pad: %lld before and %lld after dimension %u are negative or too large",
                (long long)before.value[d], (long long)after.value[d], d);
        }
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

/** The element that fills the border. */
static void pad_element(const struct ifd_ref_call *call, uint8_t ret_element[16])
{
    const struct ifd_pad_attrs *attrs = call->attrs;
    const struct ifd_desc *out = call->out[0];
    ifd_ref_pad_element(out, ret_element);
    if (!attrs->has_value) {
        return;
    }
    if (out->dtype == IFD_F32) {
        ifd_ref_copy(sizeof(float), ret_element, 0, &attrs->value, 0);
    } else if (attrs->value != 0 || ifd_dtype_is_quantized(out->dtype)) {
        const double limit = 2147483647.0; /* of types that check_value accepts */
        const double value = (double)attrs->value < limit ? (double)attrs->value : limit;
        ifd_ref_store(out->dtype, ret_element, 0, (int32_t)value);
    }
}

static enum ifd_code pad_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    struct ifd_ints before;
    struct ifd_ints after;
    const bool has_input = call->input_count > 1;
    const enum ifd_code code = pad_amounts(call->attrs, has_input ? call->in[1] : NULL,
                                           has_input ? call->input[1] : NULL, &before, &after, err);
    if (code != IFD_OK) {
        return code;
    }
    uint8_t element[16];
    pad_element(call, element);
    const size_t bytes = ifd_dtype_bytes(call->out[0]->dtype);
    const size_t out_count = ifd_ref_elements(call->out[0]);
    for (size_t i = 0; i < out_count; i++) {
        ifd_ref_copy(bytes, call->output[0], i, element, 0);
    }
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(&call->out[0]->shape, stride);
    int64_t start = 0;
    for (uint32_t d = 0; d < before.count; d++) {
        start += before.value[d] * stride[d];
    }
    struct ifd_walk walk;
    ifd_walk_init(&walk, &call->in[0]->shape);
    for (ifd_walk_strided(&walk, 0, start, stride); walk.left > 0; ifd_walk_next(&walk)) {
        ifd_ref_copy(bytes, call->output[0], (size_t)walk.offset[0], call->input[0], walk.done);
    }
    return IFD_OK;
}

/* ---- tile ---- */

static enum ifd_code tile_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_tile;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_ints repeats = ((const struct ifd_tile_attrs *)in->attrs)->repeats;
    if (ifd_infer_input(in, 1)) {
        code = ifd_infer_ints(def, "input 1", in->input[1].desc, in->input[1].data.data, &repeats,
                              err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    if (repeats.count != shape.rank) {
        return ifd_fail(err, IFD_INVALID, "tile: %u repeats for shape %s", repeats.count,
                        ifd_shape_text(&shape).s);
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        if (!ifd_dim_mul(shape.dim[d], repeats.value[d], &shape.dim[d])) {
            return ifd_fail(err, IFD_INVALID,
                            "tile: %lld repeats of dimension %u are negative or too many",
                            (long long)repeats.value[d], d);
        }
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* The last dimensions that are not repeated are one block with the next one, which is. */
static enum ifd_code tile_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *from = &call->in[0]->shape;
    struct ifd_shape outer = call->out[0]->shape;
    int64_t stride[IFD_MAX_RANK];
    size_t block = ifd_dtype_bytes(call->in[0]->dtype), times = 1;
    if (ifd_ref_elements(call->out[0]) == 0) {
        return IFD_OK;
    }
    while (outer.rank > 0 && times == 1) {
        const uint32_t d = --outer.rank;
        block *= (size_t)from->dim[d];
        times = (size_t)(outer.dim[d] / from->dim[d]);
    }
    struct ifd_shape blocks = *from;
    blocks.rank = outer.rank;
    ifd_shape_strides(&blocks, stride);
    const uint8_t *x = call->input[0];
    uint8_t *y = call->output[0];
    struct ifd_walk walk;
    for (ifd_walk_init(&walk, &outer); walk.left > 0; ifd_walk_next(&walk)) {
        size_t source = 0;
        for (uint32_t d = 0; d < outer.rank; d++) {
            source += (size_t)(walk.index[d] % from->dim[d] * stride[d]);
        }
        ifd_ref_repeat(y + walk.done * block * times, x + source * block, block, times);
    }
    return IFD_OK;
}

/* ---- definitions ---- */

static const struct ifd_attr_def pad_attrs[] = {
    {"before", IFD_ATTR_INTS, offsetof(struct ifd_pad_attrs, before), 0, 0, (double)INT32_MAX},
    {"after", IFD_ATTR_INTS, offsetof(struct ifd_pad_attrs, after), 0, 0, (double)INT32_MAX},
    {"has_value", IFD_ATTR_BOOL, offsetof(struct ifd_pad_attrs, has_value), 0, 0, 1},
    {"value", IFD_ATTR_F32, offsetof(struct ifd_pad_attrs, value), 0, -HUGE_VAL, HUGE_VAL},
};

static const struct ifd_attr_def tile_attrs[] = {
    {"repeats", IFD_ATTR_INTS, offsetof(struct ifd_tile_attrs, repeats), 0, 0, (double)INT32_MAX},
};

static bool pad_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_pad_attrs *pad = attrs;
    return ifd_permute_ints(&pad->before, perm) && ifd_permute_ints(&pad->after, perm);
}

const struct ifd_op_def ifd_op_pad = {
    .name = "pad",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = pad_attrs,
    .attr_count = sizeof(pad_attrs) / sizeof(pad_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_pad_attrs),
    .dtypes = IFD_DTYPES_MOVE,
    .batch = IFD_BATCH_SLICE,
    .shape_inputs = 1u << 1,
    .infer = pad_infer,
    .ref = pad_ref,
    .moves = true,
    .is_identity = true,
    .permute = pad_permute,
};

const struct ifd_op_def ifd_op_tile = {
    .name = "tile",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = tile_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_tile_attrs),
    .dtypes = IFD_DTYPES_PASS,
    .batch = IFD_BATCH_NEVER,
    .shape_inputs = 1u << 1,
    .infer = tile_infer,
    .ref = tile_ref,
    .moves = true,
    .is_identity = true,
};

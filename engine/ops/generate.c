/* Tensors whose content follows from a shape or a few numbers: broadcast_to, range, rank,
 * zeros_like. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>
#include <string.h>

extern const struct ifd_op_def ifd_op_broadcast_to, ifd_op_range, ifd_op_rank, ifd_op_zeros_like;

/* ---- broadcast_to ---- */

static enum ifd_code broadcast_to_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                        struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_broadcast_to;
    struct ifd_ints target = ((const struct ifd_broadcast_to_attrs *)in->attrs)->shape;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK && ifd_infer_input(in, 1)) {
        code =
            ifd_infer_ints(def, "input 1", in->input[1].desc, in->input[1].data.data, &target, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    struct ifd_shape shape = {.rank = target.count};
    struct ifd_shape both;
    for (uint32_t d = 0; d < target.count; d++) {
        if (target.value[d] < 0) {
            return ifd_fail(err, IFD_INVALID, "broadcast_to: dimension %u is %lld", d,
                            (long long)target.value[d]);
        }
        shape.dim[d] = target.value[d];
    }
    if (!ifd_shape_broadcast(input, &shape, &both) || !ifd_shape_equal(&both, &shape)) {
        return ifd_fail(err, IFD_INVALID, "broadcast_to: shape %s does not broadcast to %s",
                        ifd_shape_text(input).s, ifd_shape_text(&shape).s);
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* With dimensions of 1 in front. */
static struct ifd_shape of_rank(const struct ifd_shape *shape, uint32_t rank)
{
    struct ifd_shape all = {.rank = rank};
    for (uint32_t d = 0; d < rank; d++) {
        all.dim[d] = d + shape->rank < rank ? 1 : shape->dim[d + shape->rank - rank];
    }
    return all;
}

/* The last dimensions that are equal are one block; those before it that are 1 repeat it. */
static enum ifd_code broadcast_to_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    struct ifd_shape outer = call->out[0]->shape, from = of_rank(&call->in[0]->shape, outer.rank);
    size_t block = ifd_dtype_bytes(call->in[0]->dtype), times = 1;
    if (ifd_ref_elements(call->out[0]) == 0) {
        return IFD_OK;
    }
    for (; outer.rank > 0 && from.dim[outer.rank - 1] == outer.dim[outer.rank - 1]; outer.rank--) {
        block *= (size_t)outer.dim[outer.rank - 1];
    }
    for (; outer.rank > 0 && from.dim[outer.rank - 1] == 1; outer.rank--) {
        times *= (size_t)outer.dim[outer.rank - 1];
    }
    from.rank = outer.rank;
    const uint8_t *x = call->input[0];
    uint8_t *y = call->output[0];
    struct ifd_walk walk;
    ifd_walk_init(&walk, &outer);
    ifd_walk_broadcast(&walk, 0, &from);
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        ifd_ref_repeat(y + walk.done * block * times, x + (size_t)walk.offset[0] * block, block,
                       times);
    }
    return IFD_OK;
}

/* ---- range ---- */

/* Elements from start on in steps of delta, before limit. False if delta has the wrong sign, is
 * 0 or not a number. */
static bool range_count(const struct ifd_desc *desc, const void *const data[3], int64_t *ret)
{
    double count = 0;
    if (desc->dtype == IFD_F32) {
        float v[3];
        for (int i = 0; i < 3; i++) {
            memcpy(&v[i], data[i], sizeof(float));
        }
        const double span = (double)v[1] - (double)v[0];
        if (!(v[2] > 0 || v[2] < 0) || !(span == 0 || (span > 0) == (v[2] > 0))) {
            return false;
        }
        count = ceil(fabs(((double)v[1] - (double)v[0]) / (double)v[2]));
    } else {
        int64_t v[3];
        for (int i = 0; i < 3; i++) {
            int32_t narrow = 0;
            memcpy(desc->dtype == IFD_S64 ? (void *)&v[i] : (void *)&narrow, data[i],
                   ifd_dtype_bytes(desc->dtype));
            v[i] = desc->dtype == IFD_S64 ? v[i] : narrow;
        }
        if (v[2] == 0 || (v[0] != v[1] && (v[1] > v[0]) != (v[2] > 0))) {
            return false;
        }
        const uint64_t span =
            v[1] > v[0] ? (uint64_t)v[1] - (uint64_t)v[0] : (uint64_t)v[0] - (uint64_t)v[1];
        const uint64_t step = v[2] > 0 ? (uint64_t)v[2] : 0u - (uint64_t)v[2];
        const uint64_t steps = span / step + (span % step != 0 ? 1 : 0);
        *ret = steps > INT32_MAX ? -1 : (int64_t)steps;
        return *ret >= 0;
    }
    *ret = count <= (double)INT32_MAX ? (int64_t)count : -1;
    return *ret >= 0;
}

static enum ifd_code range_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_range;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    const void *data[3];
    for (uint32_t i = 0; code == IFD_OK && i < 3; i++) {
        code = ifd_infer_dtype(def, in, i, IFD_BIT(in->input[0].desc->dtype), err);
        if (code == IFD_OK && ifd_ref_elements(in->input[i].desc) != 1) {
            code = ifd_fail(err, IFD_INVALID, "range: input %u has shape %s, expected one number",
                            i, ifd_shape_text(&in->input[i].desc->shape).s);
        }
        data[i] = in->input[i].data.data;
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    struct ifd_shape shape = {.rank = 1};
    if (code == IFD_OK && !range_count(in->input[0].desc, data, &shape.dim[0])) {
        code = ifd_fail(err, IFD_INVALID,
                        "range: the steps do not lead to the limit, or are more "
                        "than 2147483647");
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

static enum ifd_code range_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const size_t count = ifd_ref_elements(call->out[0]);
    const enum ifd_dtype dtype = call->out[0]->dtype;
    if (dtype == IFD_F32) {
        float value = *(const float *)call->input[0];
        for (size_t i = 0; i < count; i++) { /* summed up, as LiteRT does */
            ((float *)call->output[0])[i] = value;
            value += *(const float *)call->input[2];
        }
    } else if (dtype == IFD_S32) {
        uint32_t value = *(const uint32_t *)call->input[0];
        for (size_t i = 0; i < count; i++, value += *(const uint32_t *)call->input[2]) {
            ((uint32_t *)call->output[0])[i] = value;
        }
    } else {
        uint64_t value = *(const uint64_t *)call->input[0];
        for (size_t i = 0; i < count; i++, value += *(const uint64_t *)call->input[2]) {
            ((uint64_t *)call->output[0])[i] = value;
        }
    }
    return IFD_OK;
}

/* ---- rank, zeros_like ---- */

static enum ifd_code rank_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_rank;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_S32, err);
    }
    const struct ifd_shape scalar = {.rank = 0};
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &scalar, err) : code;
}

static enum ifd_code rank_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    *(int32_t *)call->output[0] = (int32_t)call->in[0]->shape.rank;
    return IFD_OK;
}

static enum ifd_code zeros_like_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_zeros_like;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err) : code;
}

static enum ifd_code zeros_like_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const size_t count = ifd_ref_elements(call->out[0]);
    if (count > 0) {
        memset(call->output[0], 0, count * ifd_dtype_bytes(call->out[0]->dtype));
    }
    return IFD_OK;
}

/* ---- definitions ---- */

static const struct ifd_attr_def broadcast_to_attrs[] = {
    {"shape", IFD_ATTR_INTS, offsetof(struct ifd_broadcast_to_attrs, shape), 0, 0,
     (double)INT32_MAX},
};

const struct ifd_op_def ifd_op_broadcast_to = {
    .name = "broadcast_to",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = broadcast_to_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_broadcast_to_attrs),
    .dtypes = IFD_DTYPES_PASS,
    .shape_inputs = 1u << 1,
    .infer = broadcast_to_infer,
    .ref = broadcast_to_ref,
    .moves = true,
    .is_identity = true,
};

const struct ifd_op_def ifd_op_range = {
    .name = "range",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_INDEX,
    .shape_inputs = 7,
    .infer = range_infer,
    .ref = range_ref,
};

const struct ifd_op_def ifd_op_rank = {
    .name = "rank",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_DTYPES_PASS,
    .infer = rank_infer,
    .ref = rank_ref,
    .reads_shape_only = true,
};

const struct ifd_op_def ifd_op_zeros_like = {
    .name = "zeros_like",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_INDEX,
    .batch = IFD_BATCH_SAMPLE,
    .is_elementwise = true,
    .infer = zeros_like_infer,
    .ref = zeros_like_ref,
};

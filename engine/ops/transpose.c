/* Dimensions in another order. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_transpose;

static enum ifd_code transpose_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_transpose;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *shape = &in->input[0].desc->shape;
    const struct ifd_ints *perm = &((const struct ifd_transpose_attrs *)in->attrs)->perm;
    if (perm->count != shape->rank) {
        return ifd_fail(err, IFD_INVALID, "transpose: %u axes for shape %s", perm->count,
                        ifd_shape_text(shape).s);
    }
    struct ifd_shape transposed = {.rank = shape->rank};
    uint32_t seen = 0;
    for (uint32_t d = 0; code == IFD_OK && d < shape->rank; d++) {
        uint32_t axis = 0;
        code = ifd_infer_axis(def, shape, perm->value[d], &axis, err);
        if (code == IFD_OK && (seen & 1u << axis) != 0) {
            code = ifd_fail(err, IFD_INVALID, "transpose: axis %u appears twice", axis);
        }
        seen |= 1u << axis;
        transposed.dim[d] = shape->dim[axis];
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &transposed, err) : code;
}

#define TILE 16

/* bytes: of an element, known to the compiler. */
static inline void copy_row(size_t bytes, uint8_t *to, const uint8_t *from, int64_t from_step,
                            int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + (size_t)i * bytes, from + i * from_step, bytes);
    }
}

static void copy_elements(size_t bytes, uint8_t *to, const uint8_t *from, int64_t from_step,
                          int64_t count)
{
    switch (bytes) {
    case 1:
        copy_row(1, to, from, from_step, count);
        break;
    case 2:
        copy_row(2, to, from, from_step, count);
        break;
    case 4:
        copy_row(4, to, from, from_step, count);
        break;
    default:
        copy_row(bytes, to, from, from_step, count);
        break;
    }
}

/* Dimension rows of the result, and its last one, from these elements on. Their tiles share lines
 * of the cache. */
static void copy_plane(const struct ifd_ref_call *call, uint32_t rows, const int64_t *to_stride,
                       const int64_t *from_stride, const int64_t at[2])
{
    const struct ifd_shape *shape = &call->out[0]->shape;
    const uint32_t last = shape->rank - 1;
    const int64_t bytes = (int64_t)ifd_dtype_bytes(call->in[0]->dtype);
    uint8_t *out = call->output[0];
    const uint8_t *in = call->input[0];
    const int64_t row_count = rows == last ? 1 : shape->dim[rows], count = shape->dim[last];
    for (int64_t tile = 0; tile < count; tile += TILE) {
        const int64_t end = tile + TILE < count ? tile + TILE : count;
        for (int64_t r = 0; r < row_count; r++) {
            const int64_t to = at[1] + r * to_stride[rows], from = at[0] + r * from_stride[rows];
            copy_elements((size_t)bytes, out + (to + tile) * bytes,
                          in + (from + tile * from_stride[last]) * bytes, from_stride[last] * bytes,
                          end - tile);
        }
    }
}

static enum ifd_code transpose_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const struct ifd_ints *perm = &((const struct ifd_transpose_attrs *)call->attrs)->perm;
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(shape, stride);
    int64_t permuted[IFD_MAX_RANK] = {0}, to_stride[IFD_MAX_RANK];
    uint32_t rows = 0; /* along which the input is dense */
    for (uint32_t d = 0; d < shape->rank; d++) {
        const int64_t axis = perm->value[d];
        permuted[d] = stride[axis < 0 ? axis + shape->rank : axis];
        rows = permuted[d] < permuted[rows] ? d : rows;
    }
    struct ifd_shape planes = call->out[0]->shape;
    ifd_shape_strides(&planes, to_stride);
    if (planes.rank == 0) {
        ifd_ref_copy(ifd_dtype_bytes(call->in[0]->dtype), call->output[0], 0, call->input[0], 0);
        return IFD_OK;
    }
    struct ifd_walk walk;
    if (ifd_ref_elements(call->out[0]) > 0) {
        planes.dim[rows] = planes.dim[planes.rank - 1] = 1;
    }
    ifd_walk_init(&walk, &planes);
    ifd_walk_strided(&walk, 0, 0, permuted);
    for (ifd_walk_strided(&walk, 1, 0, to_stride); walk.left > 0; ifd_walk_next(&walk)) {
        copy_plane(call, rows, to_stride, permuted, walk.offset);
    }
    return IFD_OK;
}

static const struct ifd_attr_def transpose_attrs[] = {
    {"perm", IFD_ATTR_INTS, offsetof(struct ifd_transpose_attrs, perm), 0, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
};

const struct ifd_op_def ifd_op_transpose = {
    .name = "transpose",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = transpose_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_transpose_attrs),
    .dtypes = IFD_DTYPES_PASS,
    .batch = IFD_BATCH_TRANSPOSE,
    .infer = transpose_infer,
    .ref = transpose_ref,
    .moves = true,
};

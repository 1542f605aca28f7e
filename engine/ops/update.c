/* Tensors with a sub-tensor replaced: dynamic_update_slice, matrix_set_diag; and the diagonal as
 * a matrix, matrix_diag. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_dynamic_update_slice, ifd_op_matrix_diag,
    ifd_op_matrix_set_diag;

/* ---- dynamic_update_slice ---- */

static enum ifd_code dynamic_update_slice_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                                struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_dynamic_update_slice;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_BIT(in->input[0].desc->dtype), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 2, IFD_DTYPES_INDEX, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *shape = &in->input[0].desc->shape;
    const struct ifd_shape *update = &in->input[1].desc->shape;
    const struct ifd_shape *starts = &in->input[2].desc->shape;
    bool fits = update->rank == shape->rank && starts->rank == 1 && starts->dim[0] == shape->rank;
    for (uint32_t d = 0; fits && d < shape->rank; d++) {
        fits = update->dim[d] <= shape->dim[d];
    }
    if (!fits) {
        return ifd_fail(
            err, IFD_INVALID, "dynamic_update_slice: update %s at starts %s does not fit into %s",
            ifd_shape_text(update).s, ifd_shape_text(starts).s, ifd_shape_text(shape).s);
    }
    return ifd_infer_output(def, output, 0, shape, err);
}

static enum ifd_code dynamic_update_slice_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const struct ifd_shape *update = &call->in[1]->shape;
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    int64_t stride[IFD_MAX_RANK];
    ifd_shape_strides(shape, stride);
    int64_t start = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const int64_t given = call->in[2]->dtype == IFD_S32 ? ((const int32_t *)call->input[2])[d]
                                                            : ((const int64_t *)call->input[2])[d];
        const int64_t limit = shape->dim[d] - update->dim[d];
        start += (given < 0 ? 0 : given > limit ? limit : given) * stride[d];
    }
    ifd_ref_copy_run(bytes, call->output[0], 0, call->input[0], 0, ifd_ref_elements(call->out[0]));
    struct ifd_walk walk;
    ifd_walk_init(&walk, update);
    for (ifd_walk_strided(&walk, 0, start, stride); walk.left > 0; ifd_walk_next(&walk)) {
        ifd_ref_copy(bytes, call->output[0], (size_t)walk.offset[0], call->input[1], walk.done);
    }
    return IFD_OK;
}

/* ---- matrix_diag, matrix_set_diag ---- */

/* The output holds one matrix per row of diagonals. Elements off the diagonal come from matrix,
 * or are 0. */
static void set_diagonals(const struct ifd_ref_call *call, const void *matrix, const void *diagonal)
{
    const struct ifd_desc *out = call->out[0];
    const struct ifd_shape *shape = &out->shape;
    const size_t bytes = ifd_dtype_bytes(out->dtype);
    const size_t elements = ifd_ref_elements(out);
    if (elements == 0) {
        return;
    }
    const size_t rows = (size_t)shape->dim[shape->rank - 2];
    const size_t columns = (size_t)shape->dim[shape->rank - 1];
    const size_t least = rows < columns ? rows : columns;
    if (matrix) {
        ifd_ref_copy_run(bytes, call->output[0], 0, matrix, 0, elements);
    } else {
        memset(call->output[0], 0, elements * bytes);
    }
    for (size_t m = 0; m < elements / (rows * columns); m++) {
        for (size_t i = 0; i < least; i++) {
            ifd_ref_copy(bytes, call->output[0], (m * rows + i) * columns + i, diagonal,
                         m * least + i);
        }
    }
}

static enum ifd_code matrix_diag_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                       struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_matrix_diag;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    if (shape.rank == 0 || shape.rank == IFD_MAX_RANK) {
        return ifd_fail(err, IFD_INVALID, "matrix_diag: input 0 has rank %u, expected 1 to %d",
                        shape.rank, IFD_MAX_RANK - 1);
    }
    shape.dim[shape.rank] = shape.dim[shape.rank - 1];
    shape.rank++;
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code matrix_diag_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    set_diagonals(call, NULL, call->input[0]);
    return IFD_OK;
}

static enum ifd_code matrix_set_diag_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                           struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_matrix_set_diag;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_BIT(in->input[0].desc->dtype), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *shape = &in->input[0].desc->shape;
    const struct ifd_shape *diagonal = &in->input[1].desc->shape;
    bool fits = shape->rank >= 2 && diagonal->rank + 1 == shape->rank;
    for (uint32_t d = 0; fits && d + 2 < shape->rank; d++) {
        fits = diagonal->dim[d] == shape->dim[d];
    }
    if (fits) {
        const int64_t rows = shape->dim[shape->rank - 2];
        const int64_t columns = shape->dim[shape->rank - 1];
        fits = diagonal->dim[diagonal->rank - 1] == (rows < columns ? rows : columns);
    }
    if (!fits) {
        return ifd_fail(err, IFD_INVALID, "matrix_set_diag: diagonals %s in matrices %s",
                        ifd_shape_text(diagonal).s, ifd_shape_text(shape).s);
    }
    return ifd_infer_output(def, output, 0, shape, err);
}

static enum ifd_code matrix_set_diag_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    set_diagonals(call, call->input[0], call->input[1]);
    return IFD_OK;
}

/* ---- definitions ---- */

const struct ifd_op_def ifd_op_dynamic_update_slice = {
    .name = "dynamic_update_slice",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .dtypes = IFD_DTYPES_MOVE,
    .infer = dynamic_update_slice_infer,
    .ref = dynamic_update_slice_ref,
};

const struct ifd_op_def ifd_op_matrix_diag = {
    .name = "matrix_diag",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_DTYPES_MOVE,
    .infer = matrix_diag_infer,
    .ref = matrix_diag_ref,
};

const struct ifd_op_def ifd_op_matrix_set_diag = {
    .name = "matrix_set_diag",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .dtypes = IFD_DTYPES_MOVE,
    .infer = matrix_set_diag_infer,
    .ref = matrix_set_diag_ref,
};

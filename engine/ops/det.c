/* det: determinants of square matrices, by elimination with the largest pivot. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_det;

static enum ifd_code det_infer(const struct ifd_infer *in, struct ifd_desc *output,
                               struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_det;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_F32, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    if (shape.rank < 2 || shape.dim[shape.rank - 1] != shape.dim[shape.rank - 2]) {
        return ifd_fail(err, IFD_INVALID, "det: shape %s, expected square matrices",
                        ifd_shape_text(&shape).s);
    }
    shape.rank -= 2;
    shape.dim[shape.rank] = shape.dim[shape.rank + 1] = 0;
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* One matrix as doubles. */
static enum ifd_code det_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                 size_t *ret_bytes, struct ifd_err *err)
{
    (void)output;
    const struct ifd_shape *shape = &in->input[0].desc->shape;
    const size_t n = (size_t)shape->dim[shape->rank - 1];
    return ifd_size_mul(n, n * sizeof(double), ret_bytes)
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE, "det: a matrix of %zu rows is too large", n);
}

static double *largest_row(double *a, size_t n, size_t column)
{
    size_t best = column;
    for (size_t r = column + 1; r < n; r++) {
        best = fabs(a[r * n + column]) > fabs(a[best * n + column]) ? r : best;
    }
    return a + best * n;
}

static double eliminate(double *a, size_t n)
{
    double det = 1;
    for (size_t k = 0; k < n; k++) {
        double *pivot = a + k * n, *best = largest_row(a, n, k);
        for (size_t c = k; c < n && best != pivot; c++) {
            const double moved = pivot[c];
            pivot[c] = best[c];
            best[c] = moved;
        }
        det *= best != pivot ? -pivot[k] : pivot[k];
        for (size_t r = k + 1; r < n && pivot[k] != 0; r++) {
            const double factor = a[r * n + k] / pivot[k];
            for (size_t c = k; c < n; c++) {
                a[r * n + c] -= factor * pivot[c];
            }
        }
    }
    return det;
}

static enum ifd_code det_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const size_t n = (size_t)shape->dim[shape->rank - 1];
    const size_t count = ifd_ref_elements(call->out[0]);
    double *a = call->scratch;
    for (size_t i = 0; i < count; i++) {
        for (size_t e = 0; e < n * n; e++) {
            a[e] = (double)((const float *)call->input[0])[i * n * n + e];
        }
        ((float *)call->output[0])[i] = (float)eliminate(a, n);
    }
    return IFD_OK;
}

const struct ifd_op_def ifd_op_det = {
    .name = "det",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_F32),
    .infer = det_infer,
    .scratch = det_scratch,
    .ref = det_ref,
    .multiplies = true,
};

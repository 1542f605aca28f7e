/* det, inverse: of square matrices, by elimination with the largest pivot. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>

extern const struct ifd_op_def ifd_op_det, ifd_op_inverse;

static enum ifd_code check_square(const struct ifd_op_def *def, const struct ifd_infer *in,
                                  struct ifd_desc *output, struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_F32, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *shape = &in->input[0].desc->shape;
    if (shape->rank < 2 || shape->dim[shape->rank - 1] != shape->dim[shape->rank - 2]) {
        return ifd_fail(err, IFD_INVALID, "%s: shape %s, expected square matrices", def->name,
                        ifd_shape_text(shape).s);
    }
    return IFD_OK;
}

/* Room for so many matrices beside each other, as doubles. */
static enum ifd_code room_for(const struct ifd_infer *in, size_t matrices, size_t *ret_bytes,
                              struct ifd_err *err)
{
    const struct ifd_shape *shape = &in->input[0].desc->shape;
    const size_t n = (size_t)shape->dim[shape->rank - 1];
    size_t row = 0;
    return ifd_size_mul(n, matrices * sizeof(double), &row) && ifd_size_mul(n, row, ret_bytes)
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE, "%s: a matrix of %zu rows is too large",
                          in->def->name, n);
}

/* ---- det ---- */

static enum ifd_code det_infer(const struct ifd_infer *in, struct ifd_desc *output,
                               struct ifd_err *err)
{
    const enum ifd_code code = check_square(&ifd_op_det, in, output, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    shape.rank -= 2;
    shape.dim[shape.rank] = shape.dim[shape.rank + 1] = 0;
    return ifd_infer_output(&ifd_op_det, output, 0, &shape, err);
}

static enum ifd_code det_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                 size_t *ret_bytes, struct ifd_err *err)
{
    (void)output;
    return room_for(in, 1, ret_bytes, err);
}

/* Rows of a matrix have width numbers. */
static double *largest_row(double *a, size_t n, size_t width, size_t column)
{
    size_t best = column;
    for (size_t r = column + 1; r < n; r++) {
        best = fabs(a[r * width + column]) > fabs(a[best * width + column]) ? r : best;
    }
    return a + best * width;
}

/* Exchanges row k, from column k on, for the best one behind it. Returns whether it was another. */
static bool take_pivot(double *a, size_t n, size_t width, size_t k)
{
    double *pivot = a + k * width, *best = largest_row(a, n, width, k);
    for (size_t c = k; c < width && best != pivot; c++) {
        const double moved = pivot[c];
        pivot[c] = best[c];
        best[c] = moved;
    }
    return best != pivot;
}

static void subtract(double *row, const double *pivot, size_t k, size_t width)
{
    const double factor = row[k] / pivot[k];
    for (size_t c = k; c < width; c++) {
        row[c] -= factor * pivot[c];
    }
}

static double eliminate(double *a, size_t n)
{
    double det = 1;
    for (size_t k = 0; k < n; k++) {
        const bool is_moved = take_pivot(a, n, n, k);
        const double *pivot = a + k * n;
        det *= is_moved ? -pivot[k] : pivot[k];
        for (size_t r = k + 1; r < n && pivot[k] != 0; r++) {
            subtract(a + r * n, pivot, k, n);
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

/* ---- inverse ---- */

static enum ifd_code inverse_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const enum ifd_code code = check_square(&ifd_op_inverse, in, output, err);
    return code == IFD_OK
               ? ifd_infer_output(&ifd_op_inverse, output, 0, &in->input[0].desc->shape, err)
               : code;
}

static enum ifd_code inverse_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                     size_t *ret_bytes, struct ifd_err *err)
{
    (void)output;
    return room_for(in, 2, ret_bytes, err);
}

/* a: a matrix and the identity beside it, [n, 2n]. What does to the one what makes it the identity
 * makes the other the inverse. */
static void invert(double *a, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        (void)take_pivot(a, n, 2 * n, k);
        for (size_t r = 0; r < n; r++) {
            if (r != k) {
                subtract(a + r * 2 * n, a + k * 2 * n, k, 2 * n);
            }
        }
    }
}

static enum ifd_code inverse_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const size_t n = (size_t)shape->dim[shape->rank - 1];
    const size_t count = n > 0 ? ifd_ref_elements(call->in[0]) / (n * n) : 0;
    double *a = call->scratch;
    for (size_t i = 0; i < count; i++) {
        const float *x = (const float *)call->input[0] + i * n * n;
        float *y = (float *)call->output[0] + i * n * n;
        for (size_t e = 0; e < n * n; e++) {
            a[e / n * 2 * n + e % n] = (double)x[e];
            a[e / n * 2 * n + n + e % n] = e / n == e % n;
        }
        invert(a, n);
        for (size_t e = 0; e < n * n; e++) {
            y[e] = (float)(a[e / n * 2 * n + n + e % n] / a[e / n * 2 * n + e / n]);
        }
    }
    return IFD_OK;
}

const struct ifd_op_def ifd_op_inverse = {
    .name = "inverse",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_F32),
    .infer = inverse_infer,
    .scratch = inverse_scratch,
    .ref = inverse_ref,
    .multiplies = true,
};

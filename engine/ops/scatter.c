/* scatter_rows: a tensor, of which some rows (slices along dimension 0) are replaced by others or
 * combined with them, in the order of the indices. A negative index counts from the end. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/tensor/half.h"

extern const struct ifd_op_def ifd_op_scatter_rows;

#define TYPES_NUMBER                                                                               \
    (IFD_DTYPES_MOVE & ~(IFD_BIT(IFD_BF16) | IFD_BIT(IFD_C64))) /* what can be combined */

static enum ifd_code scatter_rows_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                        struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_scatter_rows;
    const struct ifd_scatter_rows_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK && attrs->mode != IFD_SCATTER_REPLACE) {
        code = ifd_infer_dtype(def, in, 0, TYPES_NUMBER, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_DTYPES_INDEX, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 2, IFD_BIT(in->input[0].desc->dtype), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *data = &in->input[0].desc->shape;
    const struct ifd_shape *rows = &in->input[1].desc->shape;
    struct ifd_shape updates = *data;
    updates.dim[0] = rows->dim[0];
    if (data->rank == 0 || rows->rank != 1 ||
        !ifd_shape_equal(&updates, &in->input[2].desc->shape)) {
        return ifd_fail(err, IFD_INVALID, "scatter_rows: rows %s at %s into %s",
                        ifd_shape_text(&in->input[2].desc->shape).s, ifd_shape_text(rows).s,
                        ifd_shape_text(data).s);
    }
    return ifd_infer_output(def, output, 0, data, err);
}

/* Integers wrap around; unsigned ones do so by definition. Types of up to 16 bits are multiplied in
 * 32: as int the product of two may overflow. */
#define COMBINE(type, unsigned_type)                                                               \
    do {                                                                                           \
        type *y = (type *)target + to;                                                             \
        const type *x = (const type *)source + from;                                               \
        for (size_t i = 0; i < count; i++) {                                                       \
            y[i] = mode == IFD_SCATTER_ADD   ? (type)((unsigned_type)y[i] + (unsigned_type)x[i])   \
                   : mode == IFD_SCATTER_MUL ? (type)((unsigned_type)y[i] * (unsigned_type)x[i])   \
                   : mode == IFD_SCATTER_MIN ? (x[i] < y[i] ? x[i] : y[i])                         \
                                             : (x[i] > y[i] ? x[i] : y[i]);                        \
        }                                                                                          \
    } while (0)

/* Rounded after each step. */
static void combine_halves(int32_t mode, uint16_t *target, const uint16_t *source, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const float y = ifd_f32_from_f16(target[i]), x = ifd_f32_from_f16(source[i]);
        target[i] = mode == IFD_SCATTER_ADD   ? ifd_f16_from_f32(y + x)
                    : mode == IFD_SCATTER_MUL ? ifd_f16_from_f32(y * x)
                    : mode == IFD_SCATTER_MIN ? (x < y ? source[i] : target[i])
                                              : (x > y ? source[i] : target[i]);
    }
}

/* The sum of flags is any of them, the product all of them. */
static void combine_flags(int32_t mode, uint8_t *target, const uint8_t *source, size_t count)
{
    const bool is_any = mode == IFD_SCATTER_ADD || mode == IFD_SCATTER_MAX;
    for (size_t i = 0; i < count; i++) {
        target[i] = is_any ? target[i] | source[i] : target[i] & source[i];
    }
}

static void combine(enum ifd_dtype dtype, int32_t mode, void *target, size_t to, const void *source,
                    size_t from, size_t count)
{
    if (mode == IFD_SCATTER_REPLACE) {
        ifd_ref_copy_run(ifd_dtype_bytes(dtype), target, to, source, from, count);
        return;
    }
    switch ((unsigned)dtype) {
    case IFD_F32:
        COMBINE(float, float);
        break;
    case IFD_F64:
        COMBINE(double, double);
        break;
    case IFD_F16:
        combine_halves(mode, (uint16_t *)target + to, (const uint16_t *)source + from, count);
        break;
    case IFD_BOOL:
        combine_flags(mode, (uint8_t *)target + to, (const uint8_t *)source + from, count);
        break;
    case IFD_S8:
        COMBINE(int8_t, uint32_t);
        break;
    case IFD_U8:
        COMBINE(uint8_t, uint32_t);
        break;
    case IFD_S16:
        COMBINE(int16_t, uint32_t);
        break;
    case IFD_U16:
        COMBINE(uint16_t, uint32_t);
        break;
    case IFD_S32:
        COMBINE(int32_t, uint32_t);
        break;
    case IFD_U32:
        COMBINE(uint32_t, uint32_t);
        break;
    case IFD_U64:
        COMBINE(uint64_t, uint64_t);
        break;
    default:
        COMBINE(int64_t, uint64_t);
        break;
    }
}

static enum ifd_code scatter_rows_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_scatter_rows_attrs *attrs = call->attrs;
    const struct ifd_desc *out = call->out[0];
    const size_t elements = ifd_ref_elements(out);
    const size_t size = (size_t)ifd_ref_product(&out->shape, 1, out->shape.rank);
    const int64_t rows = out->shape.dim[0];
    const int64_t count = elements > 0 ? call->in[1]->shape.dim[0] : 0;
    ifd_ref_copy_run(ifd_dtype_bytes(out->dtype), call->output[0], 0, call->input[0], 0, elements);
    for (int64_t i = 0; i < count; i++) {
        const int64_t given = call->in[1]->dtype == IFD_S32 ? ((const int32_t *)call->input[1])[i]
                                                            : ((const int64_t *)call->input[1])[i];
        if (given < -rows || given >= rows) {
            return ifd_fail(err, IFD_INVALID,
                            "scatter_rows: index %lld at %lld, expected %lld to %lld",
                            (long long)given, (long long)i, (long long)-rows, (long long)rows - 1);
        }
        const int64_t row = given < 0 ? given + rows : given;
        combine(out->dtype, attrs->mode, call->output[0], (size_t)row * size, call->input[2],
                (size_t)i * size, size);
    }
    return IFD_OK;
}

static const struct ifd_attr_def scatter_rows_attrs[] = {
    {"mode", IFD_ATTR_ENUM, offsetof(struct ifd_scatter_rows_attrs, mode), IFD_SCATTER_REPLACE,
     IFD_SCATTER_REPLACE, IFD_SCATTER_MAX},
};

const struct ifd_op_def ifd_op_scatter_rows = {
    .name = "scatter_rows",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = scatter_rows_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_scatter_rows_attrs),
    .dtypes = IFD_DTYPES_MOVE,
    .infer = scatter_rows_infer,
    .ref = scatter_rows_ref,
};

/* Elements and slices by tensors of indices: gather_nd, scatter_nd, one_hot, embedding_lookup,
 * segment_sum. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_gather_nd, ifd_op_scatter_nd, ifd_op_one_hot,
    ifd_op_embedding_lookup, ifd_op_segment_sum;

static int64_t load_index(const struct ifd_desc *desc, const void *data, int64_t i)
{
    return desc->dtype == IFD_S64   ? ((const int64_t *)data)[i]
           : desc->dtype == IFD_S16 ? ((const int16_t *)data)[i]
                                    : ((const int32_t *)data)[i];
}

/* ---- gather_nd, scatter_nd ---- */

/* Slices of a tensor, named by the last dimension of indices. */
struct slices {
    uint32_t depth; /* dimensions that an index names */
    int64_t count;  /* of indices */
    size_t size;    /* elements of a slice */
};

static struct slices slices_of(const struct ifd_shape *shape, const struct ifd_shape *indices)
{
    const uint32_t last = indices->rank - 1;
    const uint32_t depth = (uint32_t)indices->dim[last];
    return (struct slices){depth, ifd_ref_product(indices, 0, last),
                           (size_t)ifd_ref_product(shape, depth, shape->rank)};
}

static enum ifd_code check_depth(const struct ifd_op_def *def, const struct ifd_shape *shape,
                                 const struct ifd_shape *indices, struct ifd_err *err)
{
    if (indices->rank == 0 || indices->dim[indices->rank - 1] > (int64_t)shape->rank) {
        return ifd_fail(err, IFD_INVALID, "%s: indices of shape %s into shape %s", def->name,
                        ifd_shape_text(indices).s, ifd_shape_text(shape).s);
    }
    return IFD_OK;
}

/* Element at which the slice of index i begins. */
static enum ifd_code find_slice(const struct ifd_op_def *def, const struct ifd_shape *shape,
                                const struct ifd_desc *indices, const void *data,
                                const struct slices *s, int64_t i, size_t *ret_at,
                                struct ifd_err *err)
{
    int64_t at = 0;
    for (uint32_t d = 0; d < s->depth; d++) {
        const int64_t index = load_index(indices, data, i * s->depth + d);
        if (index < 0 || index >= shape->dim[d]) {
            return ifd_fail(err, IFD_INVALID, "%s: index %lld for dimension %u of %s", def->name,
                            (long long)index, d, ifd_shape_text(shape).s);
        }
        at = at * shape->dim[d] + index;
    }
    *ret_at = (size_t)at * s->size;
    return IFD_OK;
}

static enum ifd_code gather_nd_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_gather_nd;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_DTYPES_INDEX | IFD_BIT(IFD_S16), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *data = &in->input[0].desc->shape;
    const struct ifd_shape *indices = &in->input[1].desc->shape;
    code = check_depth(def, data, indices, err);
    if (code != IFD_OK) {
        return code;
    }
    const uint32_t depth = (uint32_t)indices->dim[indices->rank - 1];
    struct ifd_shape shape = {.rank = indices->rank - 1 + data->rank - depth};
    if (shape.rank > IFD_MAX_RANK) {
        return ifd_fail(err, IFD_TOO_LARGE, "gather_nd: the output has rank %u, limit %d",
                        shape.rank, IFD_MAX_RANK);
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.dim[d] =
            d < indices->rank - 1 ? indices->dim[d] : data->dim[depth + d - (indices->rank - 1)];
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code gather_nd_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_shape *data = &call->in[0]->shape;
    const struct slices s = slices_of(data, &call->in[1]->shape);
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    const int64_t count = ifd_ref_elements(call->out[0]) > 0 ? s.count : 0;
    for (int64_t i = 0; i < count; i++) {
        size_t at = 0;
        const enum ifd_code code =
            find_slice(&ifd_op_gather_nd, data, call->in[1], call->input[1], &s, i, &at, err);
        if (code != IFD_OK) {
            return code;
        }
        ifd_ref_copy_run(bytes, call->output[0], (size_t)i * s.size, call->input[0], at, s.size);
    }
    return IFD_OK;
}

/* Updates have the shape of the indices without the last dimension, followed by a slice's shape. */
static bool updates_fit(const struct ifd_shape *shape, const struct ifd_shape *indices,
                        const struct ifd_shape *updates)
{
    const uint32_t outer = indices->rank - 1;
    const uint32_t depth = (uint32_t)indices->dim[outer];
    if (updates->rank != outer + shape->rank - depth) {
        return false;
    }
    for (uint32_t d = 0; d < updates->rank; d++) {
        if (updates->dim[d] != (d < outer ? indices->dim[d] : shape->dim[depth + d - outer])) {
            return false;
        }
    }
    return true;
}

static enum ifd_code scatter_nd_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                      struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_scatter_nd;
    struct ifd_ints target = ((const struct ifd_scatter_nd_attrs *)in->attrs)->shape;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1,
                               IFD_BIT(IFD_F32) | IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8) |
                                   IFD_DTYPES_INDEX | IFD_BIT(IFD_BOOL),
                               err);
    }
    if (code == IFD_OK && ifd_infer_input(in, 2)) {
        code =
            ifd_infer_ints(def, "input 2", in->input[2].desc, in->input[2].data.data, &target, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[1].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = {.rank = target.count};
    for (uint32_t d = 0; d < target.count; d++) {
        if (target.value[d] < 0) {
            return ifd_fail(err, IFD_INVALID, "scatter_nd: dimension %u is %lld", d,
                            (long long)target.value[d]);
        }
        shape.dim[d] = target.value[d];
    }
    const struct ifd_shape *indices = &in->input[0].desc->shape;
    const struct ifd_shape *updates = &in->input[1].desc->shape;
    code = check_depth(def, &shape, indices, err);
    if (code == IFD_OK && !updates_fit(&shape, indices, updates)) {
        code = ifd_fail(err, IFD_INVALID, "scatter_nd: updates of shape %s, indices %s into %s",
                        ifd_shape_text(updates).s, ifd_shape_text(indices).s,
                        ifd_shape_text(&shape).s);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

/* Sums wrap around. */
static void add_run(enum ifd_dtype dtype, void *target, size_t to, const void *source, size_t from,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        switch ((int)dtype) {
        case IFD_F32:
            ((float *)target)[to + i] += ((const float *)source)[from + i];
            break;
        case IFD_S64:
            ((uint64_t *)target)[to + i] += ((const uint64_t *)source)[from + i];
            break;
        case IFD_S32:
            ((uint32_t *)target)[to + i] += ((const uint32_t *)source)[from + i];
            break;
        case IFD_BOOL:
            ((uint8_t *)target)[to + i] |= ((const uint8_t *)source)[from + i];
            break;
        default:
            ((uint8_t *)target)[to + i] =
                (uint8_t)(((uint8_t *)target)[to + i] + ((const uint8_t *)source)[from + i]);
            break;
        }
    }
}

static enum ifd_code scatter_nd_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_desc *out = call->out[0];
    const struct slices s = slices_of(&out->shape, &call->in[0]->shape);
    const size_t elements = ifd_ref_elements(out);
    const int64_t count = elements > 0 ? s.count : 0;
    if (elements > 0) {
        memset(call->output[0], 0, elements * ifd_dtype_bytes(out->dtype));
    }
    for (int64_t i = 0; i < count; i++) {
        size_t at = 0;
        const enum ifd_code code = find_slice(&ifd_op_scatter_nd, &out->shape, call->in[0],
                                              call->input[0], &s, i, &at, err);
        if (code != IFD_OK) {
            return code;
        }
        add_run(out->dtype, call->output[0], at, call->input[1], (size_t)i * s.size, s.size);
    }
    return IFD_OK;
}

/* ---- one_hot ---- */

/* The new dimension of an output of this rank. */
static bool one_hot_axis(const struct ifd_one_hot_attrs *attrs, uint32_t rank, uint32_t *ret)
{
    const int64_t axis = attrs->axis < 0 ? attrs->axis + (int64_t)rank : attrs->axis;
    *ret = (uint32_t)axis;
    return axis >= 0 && axis < (int64_t)rank;
}

static enum ifd_code one_hot_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_one_hot;
    const struct ifd_one_hot_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    for (uint32_t i = 1; code == IFD_OK && i < 3; i++) {
        code = ifd_infer_dtype(def, in, i, IFD_DTYPES_MOVE, err);
        if (code == IFD_OK &&
            (in->input[i].desc->dtype != in->input[1].desc->dtype ||
             in->input[i].desc->shape.rank > 1 || ifd_ref_elements(in->input[i].desc) != 1)) {
            code =
                ifd_fail(err, IFD_INVALID, "one_hot: input %u is %s of shape %s, expected one %s",
                         i, ifd_dtype_name(in->input[i].desc->dtype),
                         ifd_shape_text(&in->input[i].desc->shape).s,
                         ifd_dtype_name(in->input[1].desc->dtype));
        }
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[1].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *indices = &in->input[0].desc->shape;
    struct ifd_shape shape = {.rank = indices->rank + 1};
    uint32_t axis = 0;
    if (shape.rank > IFD_MAX_RANK || !one_hot_axis(attrs, shape.rank, &axis)) {
        return ifd_fail(err, IFD_INVALID, "one_hot: axis %d for indices of shape %s", attrs->axis,
                        ifd_shape_text(indices).s);
    }
    for (uint32_t d = 0; d < shape.rank; d++) {
        shape.dim[d] = d == axis ? attrs->depth : indices->dim[d < axis ? d : d - 1];
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code one_hot_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_one_hot_attrs *attrs = call->attrs;
    const struct ifd_shape *indices = &call->in[0]->shape;
    const size_t bytes = ifd_dtype_bytes(call->out[0]->dtype);
    uint32_t axis = 0;
    if (ifd_ref_elements(call->out[0]) == 0 ||
        !one_hot_axis(attrs, call->out[0]->shape.rank, &axis)) {
        return IFD_OK;
    }
    const int64_t outer = ifd_ref_product(indices, 0, axis);
    const int64_t inner = ifd_ref_product(indices, axis, indices->rank);
    size_t done = 0;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t k = 0; k < attrs->depth; k++) {
            for (int64_t i = 0; i < inner; i++) {
                const int64_t index = load_index(call->in[0], call->input[0], o * inner + i);
                ifd_ref_copy(bytes, call->output[0], done++, call->input[index == k ? 1 : 2], 0);
            }
        }
    }
    return IFD_OK;
}

/* ---- embedding_lookup ---- */

static enum ifd_code embedding_lookup_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                            struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_embedding_lookup;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 0, 1, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT, err);
    }
    const bool is_stored = code == IFD_OK && output[0].dtype == in->input[1].desc->dtype;
    if (code == IFD_OK && (!is_stored || output[0].dtype == IFD_S16)) {
        const enum ifd_dtype dtype = in->input[1].desc->dtype;
        code = ifd_infer_output_dtype(def, output, 0, dtype == IFD_S16 ? dtype : IFD_F32, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *table = in->input[1].desc;
    struct ifd_shape shape = table->shape;
    if (shape.rank < 2) {
        return ifd_fail(err, IFD_INVALID, "embedding_lookup: a table of shape %s, expected rows",
                        ifd_shape_text(&shape).s);
    }
    if (!is_stored) {
        code = ifd_infer_per_channel(def, "input 1", table, 0, err);
    }
    shape.dim[0] = in->input[0].desc->shape.dim[0];
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

/** Row of a table as it is stored, or its real numbers. */
static void look_up(const struct ifd_ref_call *call, size_t row, size_t size, size_t to)
{
    const struct ifd_desc *table = call->in[1];
    const enum ifd_dtype dtype = table->dtype;
    if (call->out[0]->dtype == dtype) {
        ifd_ref_copy(size * ifd_dtype_bytes(dtype), call->output[0], to, call->input[1], row);
        return;
    }
    float *y = (float *)call->output[0] + to * size;
    const float scale = table->quant.count > 1 ? table->quant.scale[row] : ifd_ref_scale(table);
    for (size_t k = 0; k < size; k++) {
        y[k] = (float)ifd_ref_load(dtype, call->input[1], row * size + k) * scale;
    }
}

static enum ifd_code embedding_lookup_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_desc *table = call->in[1];
    const int64_t rows = table->shape.dim[0];
    const size_t count = ifd_ref_elements(call->out[0]) > 0 ? ifd_ref_elements(call->in[0]) : 0;
    const size_t size = (size_t)ifd_ref_product(&table->shape, 1, table->shape.rank);
    for (size_t i = 0; i < count; i++) {
        const int32_t row = ((const int32_t *)call->input[0])[i];
        if (row < 0 || row >= rows) {
            return ifd_fail(err, IFD_INVALID, "embedding_lookup: index %d, expected 0 to %lld", row,
                            (long long)rows - 1);
        }
        look_up(call, (size_t)row, size, i);
    }
    return IFD_OK;
}

/* ---- segment_sum ---- */

static enum ifd_code segment_sum_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                       struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_segment_sum;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, IFD_BIT(IFD_S32), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 1, 1, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    const int64_t count = in->input[1].desc->shape.dim[0];
    if (shape.rank == 0 || shape.dim[0] != count) {
        return ifd_fail(err, IFD_INVALID, "segment_sum: %lld segments for shape %s",
                        (long long)count, ifd_shape_text(&shape).s);
    }
    const int32_t *segment = (const void *)in->input[1].data.data;
    for (int64_t i = 0; i < count; i++) {
        if (segment[i] < (i == 0 ? 0 : segment[i - 1])) {
            return ifd_fail(err, IFD_INVALID, "segment_sum: segment %d at %lld is out of order",
                            segment[i], (long long)i);
        }
    }
    shape.dim[0] = count > 0 ? (int64_t)segment[count - 1] + 1 : 0;
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code segment_sum_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_desc *out = call->out[0];
    const size_t elements = ifd_ref_elements(out);
    if (elements == 0) {
        return IFD_OK;
    }
    memset(call->output[0], 0, elements * ifd_dtype_bytes(out->dtype));
    const size_t size = (size_t)ifd_ref_product(&out->shape, 1, out->shape.rank);
    const int32_t *segment = call->input[1];
    for (size_t i = 0; i < (size_t)call->in[0]->shape.dim[0]; i++) {
        add_run(out->dtype, call->output[0], (size_t)segment[i] * size, call->input[0], i * size,
                size);
    }
    return IFD_OK;
}

/* ---- definitions ---- */

const struct ifd_op_def ifd_op_gather_nd = {
    .name = "gather_nd",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .dtypes = IFD_DTYPES_PASS,
    .infer = gather_nd_infer,
    .ref = gather_nd_ref,
    .moves = true,
};

static const struct ifd_attr_def scatter_nd_attrs[] = {
    {"shape", IFD_ATTR_INTS, offsetof(struct ifd_scatter_nd_attrs, shape), 0, 0, (double)INT32_MAX},
};

const struct ifd_op_def ifd_op_scatter_nd = {
    .name = "scatter_nd",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = scatter_nd_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_scatter_nd_attrs),
    .dtypes = IFD_DTYPES_INDEX,
    .shape_inputs = 1u << 2,
    .infer = scatter_nd_infer,
    .ref = scatter_nd_ref,
};

static const struct ifd_attr_def one_hot_attrs[] = {
    {"axis", IFD_ATTR_INT, offsetof(struct ifd_one_hot_attrs, axis), -1, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
    {"depth", IFD_ATTR_INT, offsetof(struct ifd_one_hot_attrs, depth), 0, 0, (double)INT32_MAX},
};

const struct ifd_op_def ifd_op_one_hot = {
    .name = "one_hot",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = one_hot_attrs,
    .attr_count = sizeof(one_hot_attrs) / sizeof(one_hot_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_one_hot_attrs),
    .dtypes = IFD_DTYPES_INDEX,
    .infer = one_hot_infer,
    .ref = one_hot_ref,
};

const struct ifd_op_def ifd_op_embedding_lookup = {
    .name = "embedding_lookup",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_S32),
    .batch = IFD_BATCH_SAMPLE,
    .infer = embedding_lookup_infer,
    .ref = embedding_lookup_ref,
};

const struct ifd_op_def ifd_op_segment_sum = {
    .name = "segment_sum",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .dtypes = IFD_BIT(IFD_F32) | IFD_BIT(IFD_S32),
    .shape_inputs = 1u << 1,
    .infer = segment_sum_infer,
    .ref = segment_sum_ref,
};

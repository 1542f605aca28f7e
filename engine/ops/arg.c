/* Positions of the largest or smallest elements along a dimension. Of equal elements the first
 * counts. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>

#define TYPES_ORDERED (IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT | IFD_DTYPES_INDEX | IFD_BIT(IFD_BOOL))

/* Element i as a number with the same order. The lowest bits of s64 are kept separately. */
static int64_t load_int(enum ifd_dtype dtype, const void *data, int64_t i)
{
    return dtype == IFD_S64    ? ((const int64_t *)data)[i]
           : dtype == IFD_BOOL ? ((const uint8_t *)data)[i] != 0
                               : ifd_ref_load(dtype, data, (size_t)i);
}

static bool greater(enum ifd_dtype dtype, const void *data, int64_t i, int64_t k)
{
    if (dtype == IFD_F32) {
        return ((const float *)data)[i] > ((const float *)data)[k];
    }
    return load_int(dtype, data, i) > load_int(dtype, data, k);
}

static void store_index(const struct ifd_desc *desc, void *data, size_t i, int64_t value)
{
    if (desc->dtype == IFD_S64) {
        ((int64_t *)data)[i] = value;
    } else {
        ((int32_t *)data)[i] = (int32_t)value;
    }
}

static enum ifd_code check_index(const struct ifd_op_def *def, const struct ifd_desc *output,
                                 uint32_t i, struct ifd_err *err)
{
    if (output[i].dtype != IFD_S32 && output[i].dtype != IFD_S64) {
        return ifd_fail(err, IFD_INVALID, "%s: output %u has type %s, expected s32 or s64",
                        def->name, i, ifd_dtype_name(output[i].dtype));
    }
    return IFD_OK;
}

/* ---- arg_max, arg_min ---- */

static enum ifd_code arg_infer(const struct ifd_infer *in, struct ifd_desc *output,
                               struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const struct ifd_arg_attrs *attrs = in->attrs;
    uint32_t axis = 0;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_axis(def, &in->input[0].desc->shape, attrs->axis, &axis, err);
    }
    if (code == IFD_OK) {
        code = check_index(def, output, 0, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    if (input->dim[axis] == 0) {
        return ifd_fail(err, IFD_INVALID, "%s: dimension %u of %s is empty", def->name, axis,
                        ifd_shape_text(input).s);
    }
    struct ifd_shape shape = {.rank = 0};
    for (uint32_t d = 0; d < input->rank; d++) {
        if (d != axis) {
            shape.dim[shape.rank++] = input->dim[d];
        } else if (attrs->keep_dims) {
            shape.dim[shape.rank++] = 1;
        }
    }
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* Where an axis splits a shape: outer blocks of count rows of inner elements. */
struct split {
    int64_t outer, count, inner;
};

static struct split split_at(const struct ifd_shape *shape, int32_t given)
{
    const uint32_t axis = (uint32_t)(given < 0 ? given + (int32_t)shape->rank : given);
    return (struct split){ifd_ref_product(shape, 0, axis), shape->dim[axis],
                          ifd_ref_product(shape, axis + 1, shape->rank)};
}

static void arg_all(const struct ifd_ref_call *call, bool is_max)
{
    const struct ifd_arg_attrs *attrs = call->attrs;
    const enum ifd_dtype dtype = call->in[0]->dtype;
    const struct split s = split_at(&call->in[0]->shape, attrs->axis);
    if (ifd_ref_elements(call->out[0]) == 0) {
        return; /* other dimensions may be huge */
    }
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t i = 0; i < s.inner; i++) {
            const int64_t first = o * s.count * s.inner + i;
            int64_t best = 0;
            for (int64_t k = 1; k < s.count; k++) {
                const int64_t at = first + k * s.inner;
                const int64_t held = first + best * s.inner;
                if (is_max ? greater(dtype, call->input[0], at, held)
                           : greater(dtype, call->input[0], held, at)) {
                    best = k;
                }
            }
            store_index(call->out[0], call->output[0], (size_t)(o * s.inner + i), best);
        }
    }
}

static const struct ifd_attr_def arg_attrs[] = {
    {"axis", IFD_ATTR_INT, offsetof(struct ifd_arg_attrs, axis), 0, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
    {"keep_dims", IFD_ATTR_BOOL, offsetof(struct ifd_arg_attrs, keep_dims), 0, 0, 1},
};

#define DEFINE_ARG(op, is_max)                                                                     \
    static enum ifd_code op##_ref(const struct ifd_ref_call *call, struct ifd_err *err)            \
    {                                                                                              \
        (void)err;                                                                                 \
        arg_all(call, is_max);                                                                     \
        return IFD_OK;                                                                             \
    }                                                                                              \
    const struct ifd_op_def ifd_op_##op = {                                                        \
        .name = #op,                                                                               \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .outputs = 1,                                                                              \
        .attrs = arg_attrs,                                                                        \
        .attr_count = sizeof(arg_attrs) / sizeof(arg_attrs[0]),                                    \
        .attrs_bytes = sizeof(struct ifd_arg_attrs),                                               \
        .dtypes = TYPES_ORDERED,                                                                   \
        .batch = IFD_BATCH_AXIS,                                                                   \
        .infer = arg_infer,                                                                        \
        .ref = op##_ref,                                                                           \
    };

DEFINE_ARG(arg_max, true)
DEFINE_ARG(arg_min, false)

/* ---- top_k ---- */

extern const struct ifd_op_def ifd_op_top_k;

static enum ifd_code top_k_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_top_k;
    struct ifd_ints k = {.count = 1, .value = {((const struct ifd_top_k_attrs *)in->attrs)->k}};
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK && ifd_infer_input(in, 1)) {
        code = ifd_infer_ints(def, "input 1", in->input[1].desc, in->input[1].data.data, &k, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code == IFD_OK) {
        code = check_index(def, output, 1, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    if (shape.rank == 0 || k.count != 1 || k.value[0] < 0 ||
        k.value[0] > shape.dim[shape.rank - 1]) {
        return ifd_fail(err, IFD_INVALID, "top_k: %lld elements of the last dimension of %s",
                        k.count == 1 ? (long long)k.value[0] : -1LL, ifd_shape_text(&shape).s);
    }
    shape.dim[shape.rank - 1] = k.value[0];
    code = ifd_infer_output(def, output, 0, &shape, err);
    return code == IFD_OK ? ifd_infer_output(def, output, 1, &shape, err) : code;
}

/* Does element i of a row come before element k? Larger first, then the lower index. */
static bool precedes(enum ifd_dtype dtype, const void *data, int64_t row, int64_t i, int64_t k)
{
    return greater(dtype, data, row + i, row + k) ||
           (i < k && !greater(dtype, data, row + k, row + i));
}

/* Sinks the element at position to its place in a heap whose root comes last of all. */
static void sink(enum ifd_dtype dtype, const void *data, int64_t row, int64_t *heap, int64_t count,
                 int64_t position)
{
    for (;;) {
        int64_t last = position;
        for (int64_t child = 2 * position + 1; child <= 2 * position + 2; child++) {
            if (child < count && precedes(dtype, data, row, heap[last], heap[child])) {
                last = child;
            }
        }
        if (last == position) {
            return;
        }
        const int64_t moved = heap[position];
        heap[position] = heap[last];
        heap[last] = moved;
        position = last;
    }
}

static enum ifd_code top_k_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                   size_t *ret_bytes, struct ifd_err *err)
{
    (void)in;
    const struct ifd_shape *shape = &output[0].shape;
    const size_t count = (size_t)shape->dim[shape->rank - 1];
    return ifd_size_mul(count, sizeof(int64_t), ret_bytes)
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE, "top_k: %zu elements need too much memory", count);
}

static enum ifd_code top_k_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const enum ifd_dtype dtype = call->in[0]->dtype;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const int64_t count = shape->dim[shape->rank - 1];
    const int64_t k = call->out[0]->shape.dim[shape->rank - 1];
    const int64_t rows = k > 0 ? ifd_ref_product(shape, 0, shape->rank - 1) : 0;
    const size_t bytes = ifd_dtype_bytes(dtype);
    int64_t *heap = call->scratch;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = r * count;
        for (int64_t i = 0; i < k; i++) {
            heap[i] = i;
        }
        for (int64_t i = k / 2; i-- > 0;) {
            sink(dtype, call->input[0], row, heap, k, i);
        }
        for (int64_t i = k; i < count; i++) {
            if (precedes(dtype, call->input[0], row, i, heap[0])) {
                heap[0] = i;
                sink(dtype, call->input[0], row, heap, k, 0);
            }
        }
        for (int64_t left = k; left-- > 0;) { /* the root is the last of those that are left */
            const size_t to = (size_t)(r * k + left);
            ifd_ref_copy(bytes, call->output[0], to, call->input[0], (size_t)(row + heap[0]));
            store_index(call->out[1], call->output[1], to, heap[0]);
            heap[0] = heap[left];
            sink(dtype, call->input[0], row, heap, left, 0);
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def top_k_attrs[] = {
    {"k", IFD_ATTR_INT, offsetof(struct ifd_top_k_attrs, k), 0, 0, (double)INT32_MAX},
};

const struct ifd_op_def ifd_op_top_k = {
    .name = "top_k",
    .min_inputs = 1,
    .max_inputs = 2,
    .outputs = 2,
    .attrs = top_k_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_top_k_attrs),
    .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT | IFD_DTYPES_INDEX,
    .batch = IFD_BATCH_AXIS,
    .shape_inputs = 1u << 1,
    .infer = top_k_infer,
    .scratch = top_k_scratch,
    .ref = top_k_ref,
    .multiplies = true,
};

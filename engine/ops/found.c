/* Elements that the data finds: non_zero, unique. There is room for all of them. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_non_zero, ifd_op_unique;

static enum ifd_code finish_s64(const struct ifd_op_def *def, struct ifd_desc *output, uint32_t i,
                                const struct ifd_shape *shape, struct ifd_err *err)
{
    const enum ifd_code code = ifd_infer_output_dtype(def, output, i, IFD_S64, err);
    return code == IFD_OK ? ifd_infer_output(def, output, i, shape, err) : code;
}

/* ---- non_zero ---- */

static enum ifd_code non_zero_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                    struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_non_zero;
    const struct ifd_non_zero_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *x = in->input[0].desc;
    const int64_t count = (int64_t)ifd_ref_elements(x);
    const int64_t rank = x->shape.rank > 0 ? x->shape.rank : 1;
    const struct ifd_shape one = {.rank = 1, .dim = {1}};
    const struct ifd_shape shape = {
        .rank = 2, .dim = {attrs->by_element ? count : rank, attrs->by_element ? rank : count}};
    code = finish_s64(def, output, 0, &shape, err);
    return code == IFD_OK ? finish_s64(def, output, 1, &one, err) : code;
}

/* Is any bit set, but for the sign of a float's 0? */
static bool is_set(enum ifd_dtype dtype, const uint8_t *element)
{
    const size_t bytes = ifd_dtype_bytes(dtype);
    const bool is_signed =
        dtype == IFD_F32 || dtype == IFD_F16 || dtype == IFD_BF16 || dtype == IFD_F64;
    for (size_t k = 0; k < bytes; k++) {
        if ((element[k] & (is_signed && k + 1 == bytes ? 0x7f : 0xff)) != 0) {
            return true;
        }
    }
    return false;
}

static void put_coordinates(const struct ifd_shape *shape, int64_t element, int64_t *to,
                            int64_t stride)
{
    for (uint32_t d = shape->rank; d-- > 0;) {
        to[d * stride] = element % shape->dim[d];
        element /= shape->dim[d];
    }
    if (shape->rank == 0) {
        *to = 0;
    }
}

static enum ifd_code non_zero_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_non_zero_attrs *attrs = call->attrs;
    const struct ifd_desc *x = call->in[0];
    const uint8_t *data = call->input[0];
    const size_t elements = ifd_ref_elements(x), bytes = ifd_dtype_bytes(x->dtype);
    const int64_t rank = x->shape.rank > 0 ? x->shape.rank : 1;
    int64_t *to = call->output[0];
    int64_t count = 0, found = 0;
    for (size_t i = 0; i < elements; i++) {
        count += is_set(x->dtype, data + i * bytes);
    }
    for (size_t i = 0; i < elements; i++) {
        if (is_set(x->dtype, data + i * bytes)) {
            put_coordinates(&x->shape, (int64_t)i, to + (attrs->by_element ? found * rank : found),
                            attrs->by_element ? 1 : count);
            found++;
        }
    }
    if (elements > (size_t)count) {
        memset(to + rank * count, 0, (elements - (size_t)count) * (size_t)rank * sizeof(*to));
    }
    *(int64_t *)call->output[1] = count;
    return IFD_OK;
}

static const struct ifd_attr_def non_zero_attrs[] = {
    {"by_element", IFD_ATTR_BOOL, offsetof(struct ifd_non_zero_attrs, by_element), 0, 0, 1},
};

const struct ifd_op_def ifd_op_non_zero = {
    .name = "non_zero",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 2,
    .attrs = non_zero_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_non_zero_attrs),
    .dtypes = IFD_DTYPES_MOVE & ~IFD_BIT(IFD_C64),
    .infer = non_zero_infer,
    .ref = non_zero_ref,
};

/* ---- unique ---- */

enum { VALUES, FIRST, INVERSE, COUNTS, COUNT };

static enum ifd_code unique_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_unique;
    const struct ifd_unique_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    uint32_t axis = 0;
    if (code == IFD_OK && attrs->has_axis) {
        code = ifd_infer_axis(def, &in->input[0].desc->shape, attrs->axis, &axis, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, VALUES, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *x = in->input[0].desc;
    const struct ifd_shape flat = {.rank = 1, .dim = {(int64_t)ifd_ref_elements(x)}};
    const struct ifd_shape slices = {.rank = 1,
                                     .dim = {attrs->has_axis ? x->shape.dim[axis] : flat.dim[0]}};
    const struct ifd_shape one = {.rank = 1, .dim = {1}};
    code = ifd_infer_output(def, output, VALUES, attrs->has_axis ? &x->shape : &flat, err);
    for (uint32_t i = FIRST; code == IFD_OK && i <= COUNTS; i++) {
        code = finish_s64(def, output, i, &slices, err);
    }
    return code == IFD_OK ? finish_s64(def, output, COUNT, &one, err) : code;
}

/* x as [outer, count, inner]: slice i is all elements with i in the middle. */
struct slices {
    enum ifd_dtype dtype;
    const void *data;
    int64_t outer, count, inner;
};

static struct slices slices_of(const struct ifd_unique_attrs *attrs, const struct ifd_desc *x,
                               const void *data)
{
    struct slices s = {.dtype = x->dtype,
                       .data = data,
                       .outer = 1,
                       .count = (int64_t)ifd_ref_elements(x),
                       .inner = 1};
    uint32_t axis = 0;
    if (attrs->has_axis && ifd_shape_axis(&x->shape, attrs->axis, &axis)) {
        s.outer = ifd_ref_product(&x->shape, 0, axis);
        s.count = x->shape.dim[axis];
        s.inner = ifd_ref_product(&x->shape, axis + 1, x->shape.rank);
    }
    return s;
}

static int order_f32(float a, float b)
{
    return a < b ? -1 : a > b ? 1 : (a != a) - (b != b);
}

static int order_elements(enum ifd_dtype dtype, const void *data, size_t i, size_t k)
{
    if (dtype == IFD_F32) {
        return order_f32(((const float *)data)[i], ((const float *)data)[k]);
    }
    if (dtype == IFD_S64) {
        const int64_t a = ((const int64_t *)data)[i], b = ((const int64_t *)data)[k];
        return (a > b) - (a < b);
    }
    const enum ifd_dtype as = dtype == IFD_BOOL ? IFD_U8 : dtype;
    const int32_t a = ifd_ref_load(as, data, i), b = ifd_ref_load(as, data, k);
    return (a > b) - (a < b);
}

static int order_slices(const struct slices *s, int64_t i, int64_t k)
{
    int order = 0;
    for (int64_t o = 0; order == 0 && o < s->outer; o++) {
        for (int64_t e = 0; order == 0 && e < s->inner; e++) {
            order = order_elements(s->dtype, s->data, (size_t)((o * s->count + i) * s->inner + e),
                                   (size_t)((o * s->count + k) * s->inner + e));
        }
    }
    return order;
}

/* Merges sorted runs of width into those of twice the width. */
static void merge_runs(const struct slices *s, int64_t width, const int64_t *from, int64_t *to)
{
    for (int64_t begin = 0; begin < s->count; begin += 2 * width) {
        const int64_t middle = begin + width < s->count ? begin + width : s->count;
        const int64_t end = begin + 2 * width < s->count ? begin + 2 * width : s->count;
        int64_t i = begin, k = middle;
        for (int64_t at = begin; at < end; at++) {
            const bool takes_left =
                i < middle && (k == end || order_slices(s, from[i], from[k]) <= 0);
            to[at] = takes_left ? from[i++] : from[k++];
        }
    }
}

/* Indices of slices in ascending order, equal ones in that of the tensor. Returns one of both. */
static int64_t *sort_slices(const struct slices *s, int64_t *list, int64_t *other)
{
    for (int64_t i = 0; i < s->count; i++) {
        list[i] = i;
    }
    for (int64_t width = 1; width < s->count; width *= 2) {
        merge_runs(s, width, list, other);
        int64_t *sorted = other;
        other = list;
        list = sorted;
    }
    return list;
}

static enum ifd_code unique_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                    size_t *ret_bytes, struct ifd_err *err)
{
    (void)in;
    const size_t count = (size_t)output[FIRST].shape.dim[0];
    return ifd_size_mul(count, 3 * sizeof(int64_t), ret_bytes)
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE, "unique: %zu slices need too much memory", count);
}

/* Numbers the slices: inverse[i] becomes the number of slice i, first[] and counts[] describe each.
 * leader: room for count. Returns how many there are. */
static int64_t number_slices(const struct slices *s, const int64_t *sorted, bool is_sorted,
                             int64_t *leader, const struct ifd_ref_call *call)
{
    int64_t *first = call->output[FIRST], *inverse = call->output[INVERSE];
    int64_t *counts = call->output[COUNTS];
    int64_t found = 0;
    for (int64_t at = 0; at < s->count; at++) { /* the first of equal ones leads */
        const bool is_new = at == 0 || order_slices(s, sorted[at - 1], sorted[at]) != 0;
        leader[sorted[at]] = is_new ? sorted[at] : leader[sorted[at - 1]];
    }
    for (int64_t at = 0; at < s->count; at++) {
        const int64_t i = is_sorted ? sorted[at] : at;
        if (leader[i] == i) {
            first[found] = i;
            counts[found] = 0;
            inverse[i] = found++;
        }
    }
    for (int64_t i = 0; i < s->count; i++) {
        inverse[i] = inverse[leader[i]];
        counts[inverse[i]]++;
    }
    return found;
}

static enum ifd_code unique_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_unique_attrs *attrs = call->attrs;
    const struct slices s = slices_of(attrs, call->in[0], call->input[0]);
    const size_t bytes = ifd_dtype_bytes(s.dtype);
    int64_t *list = call->scratch;
    int64_t found = 0;
    if (s.count > 0) {
        const int64_t *sorted = sort_slices(&s, list, list + s.count);
        found = number_slices(&s, sorted, attrs->is_sorted, list + 2 * s.count, call);
    }
    const int64_t *first = call->output[FIRST];
    for (int64_t o = 0; o < s.outer; o++) {
        for (int64_t i = 0; i < found; i++) {
            ifd_ref_copy_run(bytes, call->output[VALUES], (size_t)((o * found + i) * s.inner),
                             s.data, (size_t)((o * s.count + first[i]) * s.inner), (size_t)s.inner);
        }
    }
    const size_t used = (size_t)(s.outer * found * s.inner), rest = (size_t)(s.count - found);
    if (ifd_ref_elements(call->out[VALUES]) > used) {
        memset((uint8_t *)call->output[VALUES] + used * bytes, 0,
               (ifd_ref_elements(call->out[VALUES]) - used) * bytes);
    }
    if (rest > 0) {
        memset((int64_t *)call->output[FIRST] + found, 0, rest * sizeof(int64_t));
        memset((int64_t *)call->output[COUNTS] + found, 0, rest * sizeof(int64_t));
    }
    *(int64_t *)call->output[COUNT] = found;
    return IFD_OK;
}

static const struct ifd_attr_def unique_attrs[] = {
    {"axis", IFD_ATTR_INT, offsetof(struct ifd_unique_attrs, axis), 0, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
    {"has_axis", IFD_ATTR_BOOL, offsetof(struct ifd_unique_attrs, has_axis), 0, 0, 1},
    {"is_sorted", IFD_ATTR_BOOL, offsetof(struct ifd_unique_attrs, is_sorted), 0, 0, 1},
};

const struct ifd_op_def ifd_op_unique = {
    .name = "unique",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 5,
    .attrs = unique_attrs,
    .attr_count = 3,
    .attrs_bytes = sizeof(struct ifd_unique_attrs),
    .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT | IFD_DTYPES_INDEX | IFD_BIT(IFD_BOOL),
    .infer = unique_infer,
    .scratch = unique_scratch,
    .ref = unique_ref,
    .multiplies = true,
};

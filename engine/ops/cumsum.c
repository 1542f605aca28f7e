/* Running sums along a dimension. */
#include "engine/ops/infer_util.h"
#include "engine/ops/permute.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_cumsum;

static enum ifd_code cumsum_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_cumsum;
    const struct ifd_cumsum_attrs *attrs = in->attrs;
    uint32_t axis = 0;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_axis(def, &in->input[0].desc->shape, attrs->axis, &axis, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err) : code;
}

/* One element along the axis: out[at] = in[at] + the sum so far, or that sum alone. Integers
 * wrap around. */
#define ADD_UP(type)                                                                               \
    do {                                                                                           \
        const type value = ((const type *)call->input[0])[at];                                     \
        const type before = k > 0 ? ((const type *)call->output[0])[last] : 0;                     \
        const type skipped = k > 0 ? ((const type *)call->input[0])[last] : 0;                     \
        ((type *)call->output[0])[at] = before + (attrs->exclusive ? skipped : value);             \
    } while (0)

static enum ifd_code cumsum_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_cumsum_attrs *attrs = call->attrs;
    const struct ifd_shape *shape = &call->in[0]->shape;
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)shape->rank : attrs->axis);
    const int64_t outer = ifd_ref_elements(call->out[0]) > 0 ? ifd_ref_product(shape, 0, axis) : 0;
    const int64_t count = shape->dim[axis];
    const int64_t inner = ifd_ref_product(shape, axis + 1, shape->rank);
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t k = 0; k < count; k++) {
            for (int64_t i = 0; i < inner; i++) {
                const int64_t step = attrs->reverse ? -1 : 1;
                const int64_t row = attrs->reverse ? count - 1 - k : k;
                const int64_t at = (o * count + row) * inner + i;
                const int64_t last = at - step * inner;
                if (call->in[0]->dtype == IFD_F32) {
                    ADD_UP(float);
                } else if (call->in[0]->dtype == IFD_S32) {
                    ADD_UP(uint32_t);
                } else {
                    ADD_UP(uint64_t);
                }
            }
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def cumsum_attrs[] = {
    {"axis", IFD_ATTR_INT, offsetof(struct ifd_cumsum_attrs, axis), 0, -IFD_MAX_RANK,
     IFD_MAX_RANK - 1},
    {"exclusive", IFD_ATTR_BOOL, offsetof(struct ifd_cumsum_attrs, exclusive), 0, 0, 1},
    {"reverse", IFD_ATTR_BOOL, offsetof(struct ifd_cumsum_attrs, reverse), 0, 0, 1},
};

static bool cumsum_permute(void *attrs, const struct ifd_perm *perm)
{
    struct ifd_cumsum_attrs *cumsum = attrs;
    cumsum->axis = ifd_permute_axis(cumsum->axis, perm);
    return true;
}

const struct ifd_op_def ifd_op_cumsum = {
    .name = "cumsum",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = cumsum_attrs,
    .attr_count = sizeof(cumsum_attrs) / sizeof(cumsum_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_cumsum_attrs),
    .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_INDEX,
    .batch = IFD_BATCH_AXIS,
    .infer = cumsum_infer,
    .ref = cumsum_ref,
    .permute = cumsum_permute,
};

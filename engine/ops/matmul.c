/* fully_connected: every row of the input times a matrix of weights. */
#include "engine/ir/shape.h"
#include "engine/ops/contract.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"
#include "engine/ops/window_attrs.h"

extern const struct ifd_op_def ifd_op_fully_connected;

static const struct ifd_contract_roles roles = {.input = 0,
                                                .weights = {.input = 1, .bias = 2, .axis = 0},
                                                .rounding = IFD_CONTRACT_REAL,
                                                .may_be_dynamic = true};

static struct ifd_contract_roles roles_of(const struct ifd_fully_connected_attrs *attrs)
{
    struct ifd_contract_roles own = roles;
    own.rounding = attrs->rounds_even ? IFD_CONTRACT_EVEN : roles.rounding;
    return own;
}

static enum ifd_code fully_connected_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                           struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_fully_connected;
    const struct ifd_fully_connected_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 1, 2, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *input = &in->input[0].desc->shape;
    const struct ifd_shape *weights = &in->input[1].desc->shape;
    const int64_t units = weights->dim[0];
    const int64_t depth = weights->dim[1];
    const int64_t elements = ifd_ref_product(input, 0, input->rank);
    if (units == 0 || depth == 0 || elements % depth != 0) {
        return ifd_fail(err, IFD_INVALID,
                        "fully_connected: weights %s do not divide input %s into rows",
                        ifd_shape_text(weights).s, ifd_shape_text(input).s);
    }
    struct ifd_shape shape = {.rank = 2, .dim = {elements / depth, units}};
    if (attrs->keep_dims) {
        if (input->rank == 0 || input->dim[input->rank - 1] != depth) {
            return ifd_fail(err, IFD_INVALID,
                            "fully_connected: the last dimension of input %s is not %lld",
                            ifd_shape_text(input).s, (long long)depth);
        }
        shape = *input;
        shape.dim[shape.rank - 1] = units;
    }
    const struct ifd_contract_roles own = roles_of(attrs);
    code = ifd_contract_infer(def, in, &own, attrs->activation, &output[0], err);
    return code == IFD_OK ? ifd_infer_output(def, output, 0, &shape, err) : code;
}

static enum ifd_code fully_connected_scratch(const struct ifd_infer *in,
                                             const struct ifd_desc *output, size_t *ret_bytes,
                                             struct ifd_err *err)
{
    (void)output;
    const struct ifd_shape *weights = &in->input[1].desc->shape;
    const struct ifd_contract_sizes sizes = {
        .channels = weights->dim[0], .window = weights->dim[1], .sample = weights->dim[1]};
    const struct ifd_contract_roles own = roles_of(in->attrs);
    return ifd_contract_scratch(&ifd_op_fully_connected, in, &own, &sizes, ret_bytes, err);
}

static enum ifd_code fully_connected_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_fully_connected_attrs *attrs = call->attrs;
    const int64_t units = call->in[1]->shape.dim[0];
    const int64_t depth = call->in[1]->shape.dim[1];
    const int64_t rows = (int64_t)ifd_ref_elements(call->in[0]) / depth;
    struct ifd_contraction row;
    const struct ifd_contract_sizes sizes = {.channels = units, .window = depth, .sample = depth};
    const struct ifd_contract_roles own = roles_of(attrs);
    ifd_contract_begin(&row, call, &own, &sizes, attrs->activation);
    row.scales_first = true;
    for (int64_t r = 0; r < rows; r++) {
        ifd_contract_sample(&row, r * depth, depth, attrs->asymmetric_inputs);
        ifd_contract_load(&row, 0, r * depth, depth);
        ifd_contract_clear(&row);
        ifd_contract_dot(&row, 0, units, depth, 0, depth);
        ifd_contract_store(&row, r * units);
    }
    return IFD_OK;
}

static const struct ifd_attr_def fully_connected_attrs[] = {
    IFD_ACTIVATION_ATTR(struct ifd_fully_connected_attrs),
    {"keep_dims", IFD_ATTR_BOOL, offsetof(struct ifd_fully_connected_attrs, keep_dims), 0, 0, 1},
    {"asymmetric_inputs", IFD_ATTR_BOOL,
     offsetof(struct ifd_fully_connected_attrs, asymmetric_inputs), 0, 0, 1},
    IFD_ROUNDS_EVEN_ATTR(struct ifd_fully_connected_attrs),
};

const struct ifd_op_def ifd_op_fully_connected = {
    .name = "fully_connected",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = fully_connected_attrs,
    .attr_count = sizeof(fully_connected_attrs) / sizeof(fully_connected_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_fully_connected_attrs),
    .dtypes = IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT,
    .batch = IFD_BATCH_SAMPLE,
    .infer = fully_connected_infer,
    .scratch = fully_connected_scratch,
    .ref = fully_connected_ref,
    .applies_activation = true,
    .weights = &roles.weights,
};

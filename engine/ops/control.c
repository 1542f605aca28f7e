/* Control flow: operators whose attributes are graphs. They have no reference kernel: the executor
 * runs the graphs (engine/exec/control.c). */
#include "engine/ir/graph.h"
#include "engine/ops/infer_util.h"

/* A graph's inputs are the node's inputs from first on. */
static enum ifd_code check_inputs(const struct ifd_op_def *def, const struct ifd_infer *in,
                                  uint32_t first, const struct ifd_graph *graph,
                                  struct ifd_err *err)
{
    if (!graph || graph->input_count != in->input_count - first) {
        return ifd_fail(err, IFD_INVALID, "%s: a graph of %u inputs for %u", def->name,
                        graph ? graph->input_count : 0, in->input_count - first);
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct ifd_desc *got = ifd_infer_input(in, first + i);
        const struct ifd_desc *wanted = &graph->value[graph->input[i]].desc;
        if (!got || got->dtype != wanted->dtype || !ifd_shape_equal(&got->shape, &wanted->shape)) {
            return ifd_fail(err, IFD_INVALID, "%s: input %u is %s %s, its graph has %s %s",
                            def->name, first + i, got ? ifd_dtype_name(got->dtype) : "absent",
                            got ? ifd_shape_text(&got->shape).s : "", ifd_dtype_name(wanted->dtype),
                            ifd_shape_text(&wanted->shape).s);
        }
    }
    return IFD_OK;
}

/* Output i of a graph is what is wanted. */
static enum ifd_code check_output(const struct ifd_op_def *def, const struct ifd_graph *graph,
                                  uint32_t i, const struct ifd_desc *wanted, struct ifd_err *err)
{
    const struct ifd_desc *got = &graph->value[graph->output[i]].desc;
    if (got->dtype != wanted->dtype || !ifd_shape_equal(&got->shape, &wanted->shape)) {
        return ifd_fail(err, IFD_UNSUPPORTED, "%s: output %u of a graph is %s %s, expected %s %s",
                        def->name, i, ifd_dtype_name(got->dtype), ifd_shape_text(&got->shape).s,
                        ifd_dtype_name(wanted->dtype), ifd_shape_text(&wanted->shape).s);
    }
    return IFD_OK;
}

static enum ifd_code check_flag(const struct ifd_op_def *def, const struct ifd_desc *desc,
                                struct ifd_err *err)
{
    size_t count = 0;
    if (desc->dtype != IFD_BOOL || !ifd_shape_elements(&desc->shape, &count) || count != 1) {
        return ifd_fail(err, IFD_INVALID, "%s: a condition of %s %s, expected one bool", def->name,
                        ifd_dtype_name(desc->dtype), ifd_shape_text(&desc->shape).s);
    }
    return IFD_OK;
}

/* ---- cond ---- */

static enum ifd_code cond_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const struct ifd_cond_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = check_flag(def, in->input[0].desc, err);
    }
    for (int k = 0; code == IFD_OK && k < 2; k++) {
        code = check_inputs(def, in, 1, attrs->branch[k], err);
        if (code == IFD_OK && attrs->branch[k]->output_count != in->output_count) {
            code = ifd_fail(err, IFD_INVALID, "%s: a graph of %u outputs for %u", def->name,
                            attrs->branch[k]->output_count, in->output_count);
        }
    }
    for (uint32_t i = 0; code == IFD_OK && i < in->output_count; i++) {
        const struct ifd_graph *first = attrs->branch[0];
        const struct ifd_desc *desc = &first->value[first->output[i]].desc;
        code = check_output(def, attrs->branch[1], i, desc, err);
        if (code == IFD_OK) {
            code = ifd_infer_output_dtype(def, output, i, desc->dtype, err);
        }
        if (code == IFD_OK) {
            code = ifd_infer_output(def, output, i, &desc->shape, err);
        }
    }
    return code;
}

const struct ifd_op_def ifd_op_cond = {
    .name = "cond",
    .min_inputs = 1,
    .max_inputs = IFD_OP_VARIADIC,
    .outputs = IFD_OP_VARIADIC,
    .attrs_bytes = sizeof(struct ifd_cond_attrs),
    .dtypes = IFD_BIT(IFD_BOOL),
    .infer = cond_infer,
};

/* ---- loop ---- */

static enum ifd_code loop_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const struct ifd_loop_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = check_inputs(def, in, 0, attrs->condition, err);
    }
    if (code == IFD_OK) {
        code = check_inputs(def, in, 0, attrs->body, err);
    }
    if (code == IFD_OK &&
        (attrs->condition->output_count != 1 || attrs->body->output_count != in->output_count ||
         in->output_count > in->input_count)) {
        code =
            ifd_fail(err, IFD_INVALID, "%s: graphs of %u and %u outputs for %u", def->name,
                     attrs->condition->output_count, attrs->body->output_count, in->output_count);
    }
    if (code == IFD_OK) {
        code = check_flag(def, &attrs->condition->value[attrs->condition->output[0]].desc, err);
    }
    for (uint32_t i = 0; code == IFD_OK && i < in->output_count; i++) {
        const struct ifd_desc *desc = in->input[i].desc;
        code = check_output(def, attrs->body, i, desc, err);
        if (code == IFD_OK) {
            code = ifd_infer_output_dtype(def, output, i, desc->dtype, err);
        }
        if (code == IFD_OK) {
            code = ifd_infer_output(def, output, i, &desc->shape, err);
        }
    }
    return code;
}

const struct ifd_op_def ifd_op_loop = {
    .name = "loop",
    .min_inputs = 1,
    .max_inputs = IFD_OP_VARIADIC,
    .outputs = IFD_OP_VARIADIC,
    .attrs_bytes = sizeof(struct ifd_loop_attrs),
    .dtypes = IFD_DTYPES_PASS,
    .infer = loop_infer,
};

/* Nodes that are not worth a kernel (integers of shapes and indices, rare types) run as the
 * operator's reference kernel, in a step on one thread, so that they do not split a partition. */
#include "backends/cpuacc/driver.h"

struct reference_params {
    const struct ifd_op_def *def;
    const void *attrs;
    uint32_t input_count;
    const struct ifd_desc *in[IFD_ACC_STEP_INPUTS];
    struct ifd_desc desc[IFD_ACC_STEP_INPUTS], out; /* what in points to; the output's */
};

static void run_reference(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct reference_params *p = step->params;
    const void *input[IFD_ACC_STEP_INPUTS] = {NULL};
    for (uint32_t i = 0; i < p->input_count; i++) {
        input[i] = ifd_acc_in(step, frame, i);
    }
    const struct ifd_desc *const out = &p->out;
    void *const output = ifd_acc_out(step, frame);
    const struct ifd_ref_call call = {.attrs = p->attrs,
                                      .in = p->in,
                                      .input = input,
                                      .input_count = p->input_count,
                                      .out = &out,
                                      .output = &output,
                                      .output_count = 1};
    struct ifd_acc_outcome *outcome = frame->outcome;
    if (outcome->code == IFD_OK) {
        outcome->code = p->def->ref(&call, outcome->err);
        if (outcome->code != IFD_OK) {
            ifd_err_prefix(outcome->err, "%s \"%s\"", p->def->name, step->info.output);
        }
    }
}

/* Elements that are only moved, or not read, may be in native form. */
static bool reads_numbers(enum ifd_op op)
{
    return op != IFD_OP_GATHER && op != IFD_OP_SHAPE;
}

static bool fits(const struct ifd_node_view *node, const struct ifd_desc *desc)
{
    return ifd_acc_flip(desc->dtype) == 0 || !reads_numbers(node->op);
}

static bool reference_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    bool takes = def && !def->scratch && node->output_count == 1 &&
                 node->input_count <= IFD_ACC_STEP_INPUTS && fits(node, &node->output[0]);
    for (uint32_t i = 0; takes && i < node->input_count; i++) {
        takes = !node->input[i].desc || fits(node, node->input[i].desc);
    }
    if (!takes) {
        ifd_fail(reason, IFD_UNSUPPORTED, "no kernel");
    }
    return takes;
}

static enum ifd_code reference_lower(struct ifd_acc_lowering *lowering,
                                     const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_node_view *view = &node->view;
    struct reference_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code =
        ifd_acc_add_step(lowering, run_reference, p, node->input_value, view->input_count,
                         node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    p->def = ifd_op_def(view->op);
    p->attrs = view->attrs;
    p->input_count = view->input_count;
    p->out = view->output[0];
    for (uint32_t i = 0; i < view->input_count; i++) {
        if (view->input[i].desc) {
            p->desc[i] = *view->input[i].desc;
            p->in[i] = &p->desc[i];
        }
    }
    step->max_threads = 1;
    ifd_acc_name_step(lowering, "reference", 0, "%s", p->def->name);
    return IFD_OK;
}

const struct ifd_acc_driver ifd_acc_reference = {.takes = reference_takes,
                                                 .lower = reference_lower};

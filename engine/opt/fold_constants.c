/* Computes what does not depend on any input, once, with the reference kernels. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

/* A result larger than this is left to run time, so that a small file cannot grow without bound while it is loaded.
 * Float weights that a file stores in 16 or 8 bits stay below. */
#define FOLD_LIMIT_BYTES ((size_t)256 << 20)

static bool has_constant_inputs(const struct ifd_graph *graph, const struct ifd_node *node)
{
    bool any = false;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] != IFD_NONE && !graph->value[node->input[i]].is_constant) {
            return false;
        }
        any |= node->input[i] != IFD_NONE;
    }
    return any;
}

/* The shape of a value is known without its content. */
static bool is_foldable(const struct ifd_graph *graph, const struct ifd_node *node)
{
    if (node->op != IFD_OP_SHAPE && !has_constant_inputs(graph, node)) {
        return false;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct ifd_desc *desc = &graph->value[node->output[i]].desc;
        size_t bytes = 0;
        if (desc->dtype == IFD_STR || !ifd_desc_bytes(desc, &bytes) || bytes > FOLD_LIMIT_BYTES) {
            return false;
        }
    }
    return true;
}

struct call {
    struct ifd_ref_call ref;
    const struct ifd_desc **in, **out;
    const void **input;
    void **output;
    struct ifd_operand *operand;
    struct ifd_desc *desc;
};

static bool take_call(struct ifd_arena *scratch, const struct ifd_node *node, struct call *call)
{
    *call = (struct call){
        .in = ifd_arena_take_array(scratch, node->input_count, sizeof(*call->in)),
        .out = ifd_arena_take_array(scratch, node->output_count, sizeof(*call->out)),
        .input = ifd_arena_take_array(scratch, node->input_count, sizeof(*call->input)),
        .output = ifd_arena_take_array(scratch, node->output_count, sizeof(*call->output)),
        .operand = ifd_arena_take_array(scratch, node->input_count, sizeof(*call->operand)),
        .desc = ifd_arena_take_array(scratch, node->output_count, sizeof(*call->desc)),
    };
    return call->in && call->out && call->input && call->output && call->operand && call->desc;
}

/* Results go to the model's arena. */
static enum ifd_code fill_call(struct ifd_graph *graph, const struct ifd_node *node,
                               struct call *call, struct ifd_err *err)
{
    ifd_graph_operands(graph, node, call->operand);
    for (uint32_t i = 0; i < node->input_count; i++) {
        call->in[i] = call->operand[i].desc;
        call->input[i] = call->operand[i].data.data;
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        size_t bytes = 0;
        call->desc[i] = graph->value[node->output[i]].desc;
        call->out[i] = &call->desc[i];
        call->output[i] = ifd_desc_bytes(&call->desc[i], &bytes)
                              ? ifd_arena_take_tensor(graph->arena, bytes)
                              : NULL;
        if (!call->output[i]) {
            return ifd_arena_fail(graph->arena, bytes, err);
        }
    }
    call->ref = (struct ifd_ref_call){.attrs = node->attrs,
                                      .in = call->in,
                                      .input = call->input,
                                      .input_count = node->input_count,
                                      .out = call->out,
                                      .output = call->output,
                                      .output_count = node->output_count};
    return IFD_OK;
}

static enum ifd_code take_kernel_scratch(const struct ifd_op_def *def, struct call *call,
                                         struct ifd_arena *scratch, struct ifd_err *err)
{
    if (!def->scratch) {
        return IFD_OK;
    }
    const struct ifd_infer question = {.attrs = call->ref.attrs,
                                       .input = call->operand,
                                       .input_count = call->ref.input_count,
                                       .output_count = call->ref.output_count};
    size_t bytes = 0;
    const enum ifd_code code = def->scratch(&question, call->desc, &bytes, err);
    if (code != IFD_OK) {
        return code;
    }
    call->ref.scratch = ifd_arena_take_tensor(scratch, bytes);
    return call->ref.scratch ? IFD_OK : ifd_arena_fail(scratch, bytes, err);
}

/* A kernel that refuses its data (an index out of range) leaves its node as it is: the run says so, as it would have
 * without this pass. */
static enum ifd_code fold(struct ifd_graph *graph, const struct ifd_node *node,
                          struct ifd_arena *scratch, bool *ret_folded, struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    struct call call;
    if (!take_call(scratch, node, &call)) {
        return ifd_arena_fail(scratch, node->input_count * sizeof(*call.operand), err);
    }
    enum ifd_code code = fill_call(graph, node, &call, err);
    if (code == IFD_OK) {
        code = take_kernel_scratch(def, &call, scratch, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    *ret_folded = def->ref(&call.ref, NULL) == IFD_OK;
    for (uint32_t i = 0; *ret_folded && i < node->output_count; i++) {
        struct ifd_value *value = &graph->value[node->output[i]];
        size_t bytes = 0;
        if (ifd_desc_bytes(&value->desc, &bytes)) {
            value->data = (struct ifd_bytes){.data = call.output[i], .size = bytes};
            value->is_constant = true;
        }
    }
    return IFD_OK;
}

enum ifd_code ifd_pass_fold_constants(struct ifd_graph *graph, struct ifd_arena *scratch,
                                      uint32_t *ret_changes, struct ifd_err *err)
{
    bool *drop = ifd_arena_take_array(scratch, graph->node_count, sizeof(*drop));
    if (!drop) {
        return ifd_arena_fail(scratch, graph->node_count * sizeof(*drop), err);
    }
    uint32_t changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct ifd_node *node = &graph->node[n];
        if (!is_foldable(graph, node)) {
            continue;
        }
        const enum ifd_code code = fold(graph, node, scratch, &drop[n], err);
        if (code != IFD_OK) {
            return code;
        }
        changes += drop[n] ? 1 : 0;
    }
    ifd_rewrite_drop_nodes(graph, drop);
    *ret_changes = changes;
    return IFD_OK;
}

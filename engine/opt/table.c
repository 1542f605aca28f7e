/* Calls reference kernels with all 256 numbers. Tensors keep their rank: they are 256 long and one
 * wide. */
#include "engine/opt/table.h"

#include "engine/ir/shape.h"

#define NUMBERS    256
#define INPUTS_MAX 3

bool ifd_table_is_stored(const struct ifd_desc *desc)
{
    return (desc->dtype == IFD_S8 || desc->dtype == IFD_U8) && desc->quant.count <= 1;
}

static struct ifd_desc lengthened(const struct ifd_desc *desc)
{
    struct ifd_desc ret = *desc;
    for (uint32_t d = 0; d < ret.shape.rank; d++) {
        ret.shape.dim[d] = d == 0 ? NUMBERS : 1;
    }
    return ret;
}

/* What the chain has computed so far. */
struct numbers {
    const struct ifd_table_chain *chain;
    uint8_t source[NUMBERS];
    void *of_node[IFD_TABLE_NODES];
};

static const void *find(const struct numbers *numbers, uint32_t value)
{
    for (uint32_t i = 0; i < numbers->chain->count; i++) {
        if (numbers->chain->node[i].output[0] == value) {
            return numbers->of_node[i];
        }
    }
    return value == numbers->chain->source ? numbers->source : NULL;
}

static bool compute(const struct ifd_graph *graph, const struct ifd_node *node,
                    const struct numbers *numbers, void *result)
{
    struct ifd_desc in[INPUTS_MAX];
    const struct ifd_desc out = lengthened(&graph->value[node->output[0]].desc);
    const struct ifd_desc *ins[INPUTS_MAX], *const outs[] = {&out};
    const void *input[INPUTS_MAX];
    void *const output[] = {result};
    if (node->input_count > INPUTS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct ifd_value *value = &graph->value[node->input[i]];
        in[i] = value->is_constant ? value->desc : lengthened(&value->desc);
        ins[i] = &in[i];
        input[i] = value->is_constant ? value->data.data : find(numbers, node->input[i]);
    }
    const struct ifd_ref_call call = {.attrs = node->attrs,
                                      .in = ins,
                                      .input = input,
                                      .input_count = node->input_count,
                                      .out = outs,
                                      .output = output,
                                      .output_count = 1};
    return ifd_op_def(node->op)->ref(&call, NULL) == IFD_OK;
}

static enum ifd_code compute_all(const struct ifd_graph *graph, const struct ifd_table_chain *chain,
                                 struct ifd_arena *scratch, const uint8_t **ret,
                                 struct ifd_err *err)
{
    struct numbers numbers = {.chain = chain};
    for (uint32_t i = 0; i < NUMBERS; i++) {
        numbers.source[i] = (uint8_t)i;
    }
    *ret = NULL;
    for (uint32_t i = 0; i < chain->count; i++) {
        const struct ifd_node *node = &chain->node[i];
        const size_t bytes = NUMBERS * ifd_dtype_bytes(graph->value[node->output[0]].desc.dtype);
        numbers.of_node[i] = ifd_arena_take_tensor(scratch, bytes);
        if (!numbers.of_node[i]) {
            return ifd_arena_fail(scratch, bytes, err);
        }
        if (!compute(graph, node, &numbers, numbers.of_node[i])) {
            return IFD_OK;
        }
        *ret = i + 1 == chain->count ? numbers.of_node[i] : NULL;
    }
    return IFD_OK;
}

enum ifd_code ifd_table_replace(struct ifd_graph *graph, const struct ifd_table_chain *chain,
                                struct ifd_node *node, struct ifd_arena *scratch, bool *ret_done,
                                struct ifd_err *err)
{
    const uint32_t out = chain->node[chain->count - 1].output[0];
    const struct ifd_desc list = {.dtype = graph->value[out].desc.dtype,
                                  .shape = {.rank = 1, .dim = {NUMBERS}}};
    const uint8_t *numbers = NULL;
    uint32_t table = IFD_NONE;
    enum ifd_code code = compute_all(graph, chain, scratch, &numbers, err);
    *ret_done = false;
    if (code != IFD_OK || !numbers) {
        return code;
    }
    uint32_t *input = ifd_arena_take_array(graph->arena, 2, sizeof(*input));
    if (!input) {
        return ifd_arena_fail(graph->arena, 2 * sizeof(*input), err);
    }
    code = ifd_graph_add_value(graph, graph->value[out].name, &list, &table, err);
    if (code == IFD_OK) {
        const struct ifd_bytes content = {numbers, NUMBERS};
        code = ifd_graph_set_constant(graph, table, content, 0, err); /* copies */
    }
    input[0] = chain->source;
    input[1] = table;
    node->op = IFD_OP_TABLE;
    node->attrs = NULL;
    node->input = input;
    node->input_count = 2;
    *ret_done = code == IFD_OK;
    return code;
}

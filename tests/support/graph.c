/* Graphs for tests. */
#include "tests/support/graph.h"

#include <stdlib.h>
#include <string.h>

#include "engine/ir/attrs.h"
#include "engine/ir/shape.h"

uint32_t test_graph_f32(struct ifd_graph *graph, const char *name, struct ifd_shape shape)
{
    const struct ifd_desc desc = {.dtype = IFD_F32, .shape = shape};
    uint32_t value = 0;
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_value(graph, name, &desc, &value, &err), &err);
    return value;
}

uint32_t test_graph_constant(struct ifd_graph *graph, const char *name, struct ifd_shape shape,
                             const float *data)
{
    const uint32_t value = test_graph_f32(graph, name, shape);
    size_t bytes = 0;
    struct ifd_err err = {0};
    REQUIRE(ifd_desc_bytes(&graph->value[value].desc, &bytes));
    const struct ifd_bytes content = {.data = (const uint8_t *)data, .size = bytes};
    REQUIRE_OK(ifd_graph_set_constant(graph, value, content, 0, &err), &err);
    return value;
}

static uint32_t add_node(struct ifd_graph *graph, enum ifd_op op, const uint32_t *input,
                         uint32_t count, const char *name, struct ifd_node **ret_node)
{
    const uint32_t output = test_graph_f32(graph, name, SHAPE(0));
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_add_node(graph, op, input, count, &output, 1, ret_node, &err), &err);
    return output;
}

static void infer_last(struct ifd_graph *graph)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_infer_node(graph, graph->node_count - 1, &err), &err);
}

uint32_t test_graph_op1(struct ifd_graph *graph, enum ifd_op op, uint32_t input, const char *name)
{
    struct ifd_node *node = NULL;
    const uint32_t output = add_node(graph, op, &input, 1, name, &node);
    infer_last(graph);
    return output;
}

uint32_t test_graph_op2(struct ifd_graph *graph, enum ifd_op op, uint32_t a, uint32_t b,
                        const char *name)
{
    struct ifd_node *node = NULL;
    const uint32_t output = add_node(graph, op, (const uint32_t[]){a, b}, 2, name, &node);
    infer_last(graph);
    return output;
}

uint32_t test_graph_reshape(struct ifd_graph *graph, uint32_t input, struct ifd_shape shape,
                            const char *name)
{
    struct ifd_node *node = NULL;
    struct ifd_err err = {0};
    const uint32_t output = add_node(graph, IFD_OP_RESHAPE, &input, 1, name, &node);
    REQUIRE_OK(ifd_attrs_set_ints(ifd_op_def(IFD_OP_RESHAPE), (void *)node->attrs, "shape",
                                  shape.dim, shape.rank, &err),
               &err);
    infer_last(graph);
    return output;
}

void test_graph_io(struct ifd_graph *graph, uint32_t input, uint32_t output)
{
    struct ifd_err err = {0};
    REQUIRE_OK(ifd_graph_set_io(graph, &input, 1, &output, 1, &err), &err);
}

/* ---- random graphs ---- */

static uint32_t random_constant(struct ifd_graph *graph, struct test_random *random,
                                int64_t channels)
{
    float data[64];
    REQUIRE(channels <= 64);
    for (int64_t i = 0; i < channels; i++) {
        data[i] = test_random_f32(random, -1, 1);
    }
    return test_graph_constant(graph, "constant", SHAPE(1, channels), data);
}

/* Operands are drawn from what there is already; results in the range of the inputs stay finite. */
static uint32_t random_node(struct ifd_graph *graph, struct test_random *random, int64_t channels)
{
    static const enum ifd_op unary[] = {IFD_OP_ABS, IFD_OP_NEG, IFD_OP_RELU, IFD_OP_RELU6,
                                        IFD_OP_TANH};
    static const enum ifd_op binary[] = {IFD_OP_ADD, IFD_OP_SUB, IFD_OP_MAXIMUM, IFD_OP_MINIMUM};
    const uint32_t a = (uint32_t)test_random_int(random, 0, graph->value_count - 1);
    const uint32_t b = (uint32_t)test_random_int(random, 0, graph->value_count - 1);
    switch (test_random_int(random, 0, 3)) {
    case 0:
        return test_graph_op1(graph, unary[test_random_int(random, 0, 4)], a, "unary");
    case 1:
        return test_graph_reshape(graph, a, graph->value[a].desc.shape, "same");
    case 2:
        return test_graph_op2(graph, binary[test_random_int(random, 0, 3)], a,
                              random_constant(graph, random, channels), "shifted");
    default:
        return test_graph_op2(graph, binary[test_random_int(random, 0, 3)], a, b, "binary");
    }
}

void test_graph_random(struct ifd_graph *graph, struct test_random *random, int64_t batch,
                       int64_t channels, uint32_t node_count)
{
    uint32_t input[2], output[3];
    struct ifd_err err = {0};
    input[0] = test_graph_f32(graph, "first", SHAPE(batch, channels));
    input[1] = test_graph_f32(graph, "second", SHAPE(batch, channels));
    random_constant(graph, random, channels);
    for (uint32_t n = 0; n < node_count; n++) {
        random_node(graph, random, channels);
    }
    const uint32_t outputs = (uint32_t)test_random_int(random, 1, 3);
    for (uint32_t i = 0; i < outputs; i++) {
        /* Made from an input, so that every output has the full batch. */
        output[i] =
            test_graph_op2(graph, IFD_OP_ADD, input[0],
                           (uint32_t)test_random_int(random, 0, graph->value_count - 1), "result");
    }
    REQUIRE_OK(ifd_graph_set_io(graph, input, 2, output, outputs, &err), &err);
}

/* ---- the interpreter ---- */

struct memory {
    void **value; /* per value of the graph */
    bool *owned;
};

static void *take(size_t size)
{
    void *memory = ifd_acquire_tensor(ifd_alloc_system(), size);
    REQUIRE(memory != NULL);
    return memory;
}

static size_t bytes_of(const struct ifd_graph *graph, uint32_t value)
{
    size_t bytes = 0;
    REQUIRE(ifd_desc_bytes(&graph->value[value].desc, &bytes));
    return bytes;
}

#define OPERANDS 32

static void interpret_node(const struct ifd_graph *graph, const struct ifd_node *node,
                           struct memory *memory)
{
    const struct ifd_desc *in[OPERANDS] = {0};
    const struct ifd_desc *out[OPERANDS] = {0};
    const void *input[OPERANDS] = {0};
    void *output[OPERANDS] = {0};
    struct ifd_operand operand[OPERANDS] = {0};
    struct ifd_desc desc[OPERANDS] = {0};
    REQUIRE(node->input_count <= OPERANDS && node->output_count <= OPERANDS);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->input[i] != IFD_NONE) {
            in[i] = &graph->value[node->input[i]].desc;
            input[i] = memory->value[node->input[i]];
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        out[i] = &graph->value[node->output[i]].desc;
        desc[i] = *out[i];
        output[i] = memory->value[node->output[i]] = take(bytes_of(graph, node->output[i]));
        memory->owned[node->output[i]] = true;
    }
    const struct ifd_op_def *def = ifd_op_def(node->op);
    size_t scratch_bytes = 0;
    struct ifd_err err = {0};
    ifd_graph_operands(graph, node, operand);
    if (def->scratch) {
        const struct ifd_infer question = {.def = def,
                                           .attrs = node->attrs,
                                           .input = operand,
                                           .input_count = node->input_count,
                                           .output_count = node->output_count};
        REQUIRE_OK(def->scratch(&question, desc, &scratch_bytes, &err), &err);
    }
    void *scratch = take(scratch_bytes);
    const struct ifd_ref_call call = {.attrs = node->attrs,
                                      .in = in,
                                      .input = input,
                                      .input_count = node->input_count,
                                      .out = out,
                                      .output = output,
                                      .output_count = node->output_count,
                                      .scratch = scratch};
    REQUIRE_OK(def->ref(&call, &err), &err);
    ifd_release_tensor(ifd_alloc_system(), scratch, scratch_bytes);
}

void test_graph_interpret(const struct ifd_graph *graph, const void *const *input,
                          void *const *output)
{
    const struct ifd_alloc *alloc = ifd_alloc_system();
    struct memory memory = {.value = ifd_acquire_zeroed(alloc, graph->value_count, sizeof(void *)),
                            .owned = ifd_acquire_zeroed(alloc, graph->value_count, sizeof(bool))};
    REQUIRE(memory.value && memory.owned);
    for (uint32_t v = 0; v < graph->value_count; v++) {
        memory.value[v] = (void *)graph->value[v].data.data;
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        memory.value[graph->input[i]] = (void *)input[i];
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        interpret_node(graph, &graph->node[n], &memory);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        memcpy(output[i], memory.value[graph->output[i]], bytes_of(graph, graph->output[i]));
    }
    for (uint32_t v = 0; v < graph->value_count; v++) {
        if (memory.owned[v]) {
            ifd_release_tensor(alloc, memory.value[v], bytes_of(graph, v));
        }
    }
    ifd_release(alloc, memory.value, graph->value_count * sizeof(void *));
    ifd_release(alloc, memory.owned, graph->value_count * sizeof(bool));
}

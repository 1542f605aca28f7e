/* Compares two readings of one file. */
#include "engine/model/readings.h"

#include "engine/ir/count.h"
#include "engine/ir/shape.h"

#include <string.h>

static bool quants_differ(const struct ifd_quant *a, const struct ifd_quant *b)
{
    const size_t bytes = a->count * sizeof(*a->scale);
    return a->count != b->count ||
           (a->count > 0 && (a->axis != b->axis || memcmp(a->scale, b->scale, bytes) != 0 ||
                             memcmp(a->zero_point, b->zero_point, bytes) != 0));
}

/* rank: of the result, where an operator works element by element; else 0. There the batch rules
 * tell whether dimension 0 of a constant of this rank is the batch. */
static bool constants_differ(const struct ifd_value *a, const struct ifd_value *b, size_t skipped,
                             uint32_t rank)
{
    if (!ifd_shape_equal(&a->desc.shape, &b->desc.shape)) {
        return a->desc.shape.rank != rank || a->desc.dtype != b->desc.dtype ||
               !ifd_shape_equal_except(&a->desc.shape, &b->desc.shape, 0);
    }
    return a->desc.dtype != b->desc.dtype || quants_differ(&a->desc.quant, &b->desc.quant) ||
           a->data.size != b->data.size ||
           (a->desc.dtype != IFD_STR && a->data.size > skipped && a->data.data != b->data.data &&
            memcmp(a->data.data + skipped, b->data.data + skipped, a->data.size - skipped) != 0);
}

/* The first number of a shape may be the batch, such as that of a transposed convolution's result.
 */
static size_t bytes_of_batch(const struct ifd_graph *graph, const struct ifd_node *node, uint32_t i)
{
    const struct ifd_op_def *def = ifd_op_def(node->op);
    const bool is_shape = (i == 0 && def->batch == IFD_BATCH_SIZED) ||
                          (i < 32 && (def->shape_inputs & IFD_BIT(i)) != 0);
    return is_shape ? ifd_dtype_bytes(graph->value[node->input[i]].desc.dtype) : 0;
}

/* Lists whose first number may be the batch; those of axes, widths and steps have none. */
static bool may_begin_with_batch(const char *name)
{
    return strcmp(name, "shape") == 0 || strcmp(name, "size") == 0 || strcmp(name, "end") == 0;
}

static bool lists_differ(const struct ifd_ints *a, const struct ifd_ints *b, const char *name)
{
    for (uint32_t i = may_begin_with_batch(name) ? 1 : 0; a->count == b->count && i < a->count;
         i++) {
        if (a->value[i] != b->value[i]) {
            return true;
        }
    }
    return a->count != b->count;
}

/* Of two nodes of one operator. */
static bool attributes_differ(const struct ifd_node *a, const struct ifd_node *b)
{
    const struct ifd_op_def *def = ifd_op_def(a->op);
    bool differ = false;
    for (uint32_t i = 0; i < def->attr_count && !differ; i++) {
        const uint8_t *of_a = (const uint8_t *)a->attrs + def->attrs[i].offset;
        const uint8_t *of_b = (const uint8_t *)b->attrs + def->attrs[i].offset;
        const size_t bytes = def->attrs[i].kind == IFD_ATTR_BOOL ? sizeof(bool) : sizeof(int32_t);
        differ = def->attrs[i].kind == IFD_ATTR_INTS
                     ? lists_differ((const void *)of_a, (const void *)of_b, def->attrs[i].name)
                     : memcmp(of_a, of_b, bytes) != 0;
    }
    return differ;
}

/* Of values that are not constant. */
static bool sources_differ(const struct ifd_value *a, const struct ifd_value *b)
{
    return a->producer != b->producer || strcmp(a->name, b->name) != 0 ||
           quants_differ(&a->desc.quant, &b->desc.quant);
}

static bool inputs_differ(const struct ifd_graph *a, const struct ifd_node *of_a,
                          const struct ifd_graph *b, const struct ifd_node *of_b, uint32_t i)
{
    const uint32_t in_a = of_a->input[i], in_b = of_b->input[i];
    if (in_a == IFD_NONE || in_b == IFD_NONE) {
        return in_a != in_b;
    }
    const struct ifd_value *va = &a->value[in_a], *vb = &b->value[in_b];
    const bool by_element = ifd_op_def(of_a->op)->batch == IFD_BATCH_ELEMENTWISE;
    const uint32_t rank = by_element ? a->value[of_a->output[0]].desc.shape.rank : 0;
    return va->is_constant && vb->is_constant
               ? constants_differ(va, vb, bytes_of_batch(a, of_a, i), rank)
               : sources_differ(va, vb);
}

static bool nodes_differ(const struct ifd_graph *a, const struct ifd_graph *b, uint32_t n)
{
    const struct ifd_node *of_a = &a->node[n], *of_b = &b->node[n];
    bool differ = of_a->op != of_b->op || of_a->input_count != of_b->input_count ||
                  attributes_differ(of_a, of_b);
    for (uint32_t i = 0; !differ && i < of_a->input_count; i++) {
        differ = inputs_differ(a, of_a, b, of_b, i);
    }
    return differ;
}

static bool agree(const struct ifd_graph *a, const struct ifd_graph *b)
{
    bool differ = a->node_count != b->node_count || a->output_count != b->output_count;
    for (uint32_t n = 0; !differ && n < a->node_count; n++) {
        differ = nodes_differ(a, b, n);
    }
    for (uint32_t i = 0; !differ && i < a->output_count; i++) {
        differ = sources_differ(&a->value[a->output[i]], &b->value[b->output[i]]);
    }
    return !differ;
}

enum ifd_code ifd_readings_compare(const struct ifd_graph *a, const struct ifd_graph *b, bool *ret,
                                   struct ifd_err *err)
{
    bool counts = true;
    const enum ifd_code code = agree(a, b) ? ifd_graph_counts_samples(a, b, &counts, err) : IFD_OK;
    *ret = !counts;
    return code;
}

/* The shape of an input of which the file does not even say how many dimensions it has. */
#include <string.h>

#include "engine/parse/onnx/onnx_build.h"

#define RANKS_MAX 256 /* each is a walk over all nodes */

/* The size of dimension d of input i, where that is a constant; else IFD_DIM_ANY. */
static int64_t size_of(struct ifd_onnx_build *build, const struct ifd_onnx_node *node, uint32_t i,
                       uint32_t d)
{
    const uint32_t value =
        i < node->input_count ? ifd_onnx_lookup(build, node->input[i]) : IFD_NONE;
    const struct ifd_value *known = value == IFD_NONE ? NULL : &build->b.graph->value[value];
    return known && known->is_constant && d < known->desc.shape.rank ? known->desc.shape.dim[d]
                                                                     : IFD_DIM_ANY;
}

static struct ifd_shape open_shape(uint32_t rank)
{
    struct ifd_shape shape = {.rank = rank};
    for (uint32_t d = 0; d < rank && d < IFD_MAX_RANK; d++) {
        shape.dim[d] = IFD_DIM_ANY;
    }
    return shape;
}

/* The shape that a node wants of its first input; false: it takes any number of dimensions. */
static bool wants(struct ifd_onnx_build *build, const struct ifd_onnx_node *node,
                  struct ifd_shape *ret)
{
    const struct ifd_onnx_attr *kernel =
        ifd_onnx_attr_of(node, "kernel_shape"); /* convolutions and pools */
    const struct ifd_onnx_attr *perm = ifd_onnx_attr_of(node, "perm");
    const struct ifd_onnx_attr *group = ifd_onnx_attr_of(node, "group"),
                               *turned = ifd_onnx_attr_of(node, "transB");
    const bool is_gemm = ifd_str_is(node->op, "Gemm");
    const bool is_recurrent =
        ifd_str_is(node->op, "LSTM") || ifd_str_is(node->op, "GRU") || ifd_str_is(node->op, "RNN");
    *ret = open_shape(is_gemm        ? 2
                      : is_recurrent ? 3
                      : kernel       ? kernel->int_count + 2
                      : perm         ? perm->int_count
                                     : 0);
    if (ifd_str_is(node->op, "Conv") && (!group || group->i == 1)) {
        ret->dim[1] = size_of(build, node, 1, 1);
    } else if (is_gemm && !ifd_onnx_attr_of(node, "transA")) {
        ret->dim[1] = size_of(build, node, 1, turned && turned->i != 0 ? 1 : 0);
    }
    return ret->rank > 0;
}

/* Does the result of a node have the shape of its first input? Constants that are added may have
 * more dimensions; files do not have those in front of what wants a number. */
static bool keeps_shape(const struct ifd_onnx_node *node)
{
    static const char *const ops[] = {"Add",  "BatchNormalization", "Cast",     "Clip",
                                      "Div",  "DequantizeLinear",   "Identity", "Mul",
                                      "Relu", "QuantizeLinear",     "Sub"};
    bool keeps = false;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        keeps = keeps || ifd_str_is(node->op, ops[i]);
    }
    return keeps && node->output_count > 0;
}

bool ifd_onnx_find_shape(struct ifd_onnx_build *build, struct ifd_str text, const char *name,
                         struct ifd_shape *ret)
{
    const struct ifd_onnx_graph *g = build->scope->g;
    const struct ifd_parse_options *options = build->options;
    for (uint32_t i = 0; i < options->shape_count; i++) {
        if (strcmp(options->shape[i].name, name) == 0) {
            *ret = open_shape(options->shape[i].shape.rank);
            return true;
        }
    }
    const bool may_look = build->rank_count++ < RANKS_MAX;
    for (uint32_t i = 0; may_look && i < g->node_count; i++) {
        const struct ifd_onnx_node *node = &g->node[i];
        if (node->input_count > 0 && ifd_onnx_is_same(node->input[0], text)) {
            if (wants(build, node, ret)) {
                return true;
            }
            text = keeps_shape(node) ? node->output[0] : text;
        }
    }
    return false;
}

/* A conversion to another type and back that loses nothing: dequantize → quantize with the same
 * scale and zero point, cast to a wider type → cast back. The second node reads the first one's
 * input then, and drop_identity removes it. */
#include "engine/opt/pass_impl.h"

#include "engine/ir/shape.h"

#define TYPES_8BIT  (IFD_BIT(IFD_S8) | IFD_BIT(IFD_U8))
#define TYPES_16BIT (TYPES_8BIT | IFD_BIT(IFD_S16) | IFD_BIT(IFD_U16))
#define TYPES_32BIT (TYPES_16BIT | IFD_BIT(IFD_S32) | IFD_BIT(IFD_U32))
#define TYPES_HALF  (IFD_BIT(IFD_F16) | IFD_BIT(IFD_BF16))

/* Types whose every number is a number of via, too. */
static uint32_t types_within(enum ifd_dtype via)
{
    switch ((unsigned)via) {
    case IFD_F32:
        return TYPES_16BIT | TYPES_HALF;
    case IFD_F64:
        return TYPES_32BIT | TYPES_HALF | IFD_BIT(IFD_F32);
    case IFD_S16:
        return TYPES_8BIT;
    case IFD_S32:
        return TYPES_16BIT;
    case IFD_S64:
        return TYPES_32BIT;
    default:
        return 0;
    }
}

/* A number of up to 16 bits times the scale, divided by the scale, is off by far less than half a
 * step, unless the product leaves the range of normal floats. */
static bool survives(const struct ifd_desc *stored)
{
    const uint32_t types = TYPES_8BIT | IFD_BIT(IFD_S16);
    return (types & IFD_BIT(stored->dtype)) != 0 && stored->quant.count == 1 &&
           stored->quant.scale[0] > 1e-30f && stored->quant.scale[0] < 1e30f;
}

static bool is_round_trip(const struct ifd_graph *graph, const struct ifd_node *there,
                          const struct ifd_node *back)
{
    const struct ifd_desc *from = &graph->value[there->input[0]].desc;
    const struct ifd_desc *via = &graph->value[there->output[0]].desc;
    const struct ifd_desc *to = &graph->value[back->output[0]].desc;
    if (!ifd_desc_equal(from, to)) {
        return false;
    }
    if (there->op == IFD_OP_DEQUANTIZE && back->op == IFD_OP_QUANTIZE) {
        return via->dtype == IFD_F32 && survives(from);
    }
    return there->op == IFD_OP_CAST && back->op == IFD_OP_CAST &&
           (types_within(via->dtype) & IFD_BIT(from->dtype)) != 0;
}

enum ifd_code ifd_pass_drop_round_trip(struct ifd_graph *graph, struct ifd_arena *scratch,
                                       uint32_t *ret_changes, struct ifd_err *err)
{
    (void)scratch;
    (void)err;
    *ret_changes = 0;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        struct ifd_node *back = &graph->node[n];
        if (back->op != IFD_OP_QUANTIZE && back->op != IFD_OP_CAST) {
            continue;
        }
        const struct ifd_node *there = ifd_rewrite_producer(graph, back->input[0]);
        if (there && is_round_trip(graph, there, back)) {
            back->input[0] = there->input[0];
            (*ret_changes)++;
        }
    }
    return IFD_OK;
}

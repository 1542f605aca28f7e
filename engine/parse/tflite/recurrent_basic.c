/* The basic kernel of LSTM: inputs x, h, weights of both in one matrix, biases, cell; outputs h,
 * cell and two that only hold what it computes with. */
#include <string.h>

#include "engine/parse/tflite/composite.h"

enum { X, H, WEIGHTS, BIAS, CELL, INPUTS };
enum { NEW_H, NEW_CELL, BOTH, SUMS, OUTPUTS };
enum { INPUT_GATE, CELL_GATE, FORGET_GATE, OUTPUT_GATE, GATES };

static uint32_t layer(struct ifd_builder *b, uint32_t x, uint32_t weights, uint32_t bias)
{
    const struct ifd_fully_connected_attrs attrs = {.keep_dims = true};
    const uint32_t input[3] = {x, weights, bias};
    return ifd_build_node(b, IFD_OP_FULLY_CONNECTED, input, 3, NULL, &attrs);
}

static void build_floats(const struct ifd_composite *c, uint32_t *ret)
{
    struct ifd_builder *b = c->b;
    const struct ifd_axis_attrs columns = {.axis = 1};
    const int64_t width = ifd_build_desc(b, c->input[CELL])->shape.dim[1];
    const uint32_t both = ifd_build_node(b, IFD_OP_CONCAT, c->input, 2, NULL, &columns);
    const uint32_t sums = layer(b, both, c->input[WEIGHTS], c->input[BIAS]);
    uint32_t part[GATES];
    for (uint32_t g = 0; g < GATES; g++) {
        part[g] = ifd_build_unary(b, g == CELL_GATE ? IFD_OP_TANH : IFD_OP_LOGISTIC,
                                  ifd_build_cut(b, sums, 1, g * width, width));
    }
    const uint32_t cell = ifd_build_binary(
        b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_MUL, part[INPUT_GATE], part[CELL_GATE]),
        ifd_build_binary(b, IFD_OP_MUL, part[FORGET_GATE], c->input[CELL]));
    ret[NEW_H] =
        ifd_build_binary(b, IFD_OP_MUL, part[OUTPUT_GATE], ifd_build_unary(b, IFD_OP_TANH, cell));
    ret[NEW_CELL] = cell;
    ret[BOTH] = both;
    ret[SUMS] = sums;
}

/* Of 8-bit numbers: an operator of ours, which has all four outputs. */
static void build_integer(const struct ifd_composite *c, uint32_t *ret)
{
    static const float sums_scale[] = {0x1p-12f};
    static const int32_t zero[] = {0};
    const struct ifd_quant sums = {.scale = sums_scale, .zero_point = zero, .count = 1};
    struct ifd_desc output[OUTPUTS] = {*ifd_build_desc(c->b, c->input[H]),
                                       *ifd_build_desc(c->b, c->input[CELL]),
                                       *ifd_build_desc(c->b, c->input[X]),
                                       {.dtype = IFD_S16, .quant = sums}};
    for (uint32_t i = 0; i < c->output_count; i++) {
        output[i] = ifd_composite_output(c, i);
    }
    ifd_build_nodes(c->b, IFD_OP_BASIC_LSTM, c->input, INPUTS, output, OUTPUTS, NULL, ret);
}

void ifd_composite_basic_lstm(struct ifd_composite *c)
{
    struct ifd_builder *b = c->b;
    uint32_t y[OUTPUTS] = {IFD_NONE, IFD_NONE, IFD_NONE, IFD_NONE};
    if (!ifd_composite_has_inputs(c, INPUTS)) {
        return;
    }
    const struct ifd_desc *x = ifd_build_desc(b, c->input[X]);
    if (x->shape.rank != 2 || (x->dtype != IFD_F32 && x->dtype != IFD_U8)) {
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "a basic kernel of %s with %u dimensions, expected f32 or u8, 2",
                       ifd_dtype_name(x->dtype), x->shape.rank);
    } else if (x->dtype == IFD_U8) {
        build_integer(c, y);
    } else {
        build_floats(c, y);
    }
    ifd_composite_keep_state(c, H, y[NEW_H]);
    ifd_composite_keep_state(c, CELL, y[NEW_CELL]);
    memcpy(c->output, y, c->output_count * sizeof(*y));
}

/* Operators that only move elements (backends/lowering/moves.h): a copy unless the elements are in
 * place already. The native form does not matter, except for what a pad fills in. */
#include "backends/cpuacc/ops/copy.h"
#include "backends/cpuacc/ops/unary.h"

#include "engine/tensor/half.h"

#include <string.h>

/* Brings an input of a concatenation to the output's quantization, by a table. */
static enum ifd_code requantize(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, uint32_t i, uint32_t *value,
                                struct ifd_err *err)
{
    const uint32_t from = *value;
    struct ifd_axis_attrs attrs = *(const struct ifd_axis_attrs *)node->view.attrs;
    attrs.axis = 0; /* along which fill_table() puts its elements */
    struct ifd_node_view one = node->view;
    one.attrs = &attrs;
    one.input = &node->view.input[i];
    one.input_count = 1;
    const enum ifd_code code =
        ifd_low_add_value(&lowering->base, lowering->base.value[from].bytes, value, err);
    return code == IFD_OK ? ifd_acc_add_table(lowering, &one, from, *value, err) : code;
}

static enum ifd_code moves_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    struct ifd_low_move move = {.converts = false};
    for (uint32_t i = 0; code == IFD_OK && ifd_low_move(&node->view, i, &move); i++) {
        uint32_t from = node->input_value[move.in];
        const uint32_t to = node->output_value[move.out];
        if (ifd_low_is_there(&lowering->base, &move.copy, from, to)) {
            continue;
        }
        if (move.converts) {
            code = requantize(lowering, node, move.in, &from, err);
        }
        if (code == IFD_OK) {
            code = ifd_acc_add_copy(lowering, &move.copy, from, to, ifd_op_def(node->view.op)->name,
                                    err);
        }
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_moves = {
    .takes = ifd_low_moves, .lower = moves_lower, .reads_apart = ifd_low_moves_rows};

/* ---- tile ---- */

static enum ifd_code tile_lower(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_low_copy copy = ifd_low_tile_copy(&node->view);
    return ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "tile",
                            err);
}

const struct ifd_acc_driver ifd_acc_tile = {.takes = ifd_low_tiles, .lower = tile_lower};

/* ---- pad ---- */

static bool pad_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if (dtype != IFD_F32 && !ifd_acc_is_q8(dtype)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(dtype));
        return false;
    }
    return ifd_low_has_one_input(node, reason) &&
           ifd_low_same_quant(node->input[0].desc, &node->output[0]);
}

static bool pad_reads_apart(const struct ifd_node_view *node, uint32_t i)
{
    return ifd_low_same_quant(node->input[i].desc, &node->output[0]);
}

static enum ifd_code pad_lower(struct ifd_acc_lowering *lowering,
                               const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_pad_attrs *attrs = node->view.attrs;
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    struct ifd_low_copy copy = ifd_low_pad_copy(&node->view);
    const float value = attrs->has_value ? attrs->value : 0.0f;
    if (in->dtype == IFD_F32) {
        memcpy(copy.fill, &value, sizeof(value));
    } else if (in->dtype == IFD_BF16) {
        const uint16_t bits = ifd_bf16_from_f32(value);
        memcpy(copy.fill, &bits, sizeof(bits));
    } else if (attrs->has_value) {
        copy.fill[0] = (uint8_t)((uint8_t)(int32_t)value ^ ifd_acc_flip(in->dtype));
    } else {
        copy.fill[0] = (uint8_t)ifd_acc_zero(out);
    }
    return ifd_acc_add_copy(lowering, &copy, node->input_value[0], node->output_value[0], "pad",
                            err);
}

const struct ifd_acc_driver ifd_acc_pad = {
    .takes = pad_takes, .lower = pad_lower, .reads_apart = pad_reads_apart};

/* ---- space_to_batch, batch_to_space ---- */

static bool space_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_space_batch_attrs *attrs = node->attrs;
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    if ((dtype != IFD_F32 && !ifd_acc_is_q8(dtype)) ||
        node->input[0].desc->shape.rank + attrs->block.count > IFD_MAX_RANK) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or too many dimensions", ifd_dtype_name(dtype));
        return false;
    }
    return ifd_low_has_one_input(node, reason);
}

static enum ifd_code space_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *out = &node->view.output[0];
    const char *name = ifd_op_def(node->view.op)->name;
    const uint32_t first = node->input_value[0], last = node->output_value[0];
    struct ifd_low_copy copy[2];
    size_t between_bytes = 0;
    const uint32_t count = ifd_low_space_copies(&node->view, copy, &between_bytes);
    copy[0].fill[0] = ifd_acc_is_q8(out->dtype) ? (uint8_t)ifd_acc_zero(out) : 0;
    if (count == 1) {
        return ifd_acc_add_copy(lowering, &copy[0], first, last, name, err);
    }
    uint32_t between = 0;
    enum ifd_code code = ifd_low_add_value(&lowering->base, between_bytes, &between, err);
    if (code == IFD_OK) {
        code = ifd_acc_add_copy(lowering, &copy[0], first, between, name, err);
    }
    return code == IFD_OK ? ifd_acc_add_copy(lowering, &copy[1], between, last, name, err) : code;
}

const struct ifd_acc_driver ifd_acc_space_batch = {.takes = space_takes, .lower = space_lower};

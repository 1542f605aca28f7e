/* Fills tables with reference kernels and looks results up. */
#include "backends/gpuacc/ops/table.h"

#include "backends/gpuacc/constants.h"
#include "backends/gpuacc/ops/layer.h"
#include "backends/lowering/broadcast.h"

#define BYTES    256
#define OPERANDS 2
#define RANK     6 /* of kernels/table.cl */

static struct ifd_low_broadcast broadcast_of(const struct ifd_node_view *node)
{
    struct ifd_low_broadcast broadcast;
    ifd_low_broadcast_init(&node->input[0].desc->shape, &node->input[1].desc->shape,
                           &node->output[0].shape, &broadcast);
    return broadcast;
}

/* The operands; the list of a table is none. */
static uint32_t operands_of(const struct ifd_node_view *node)
{
    return node->op == IFD_OP_TABLE ? 1 : node->input_count;
}

bool ifd_gpu_table_takes(const struct ifd_node_view *node)
{
    const uint32_t operands = operands_of(node);
    const enum ifd_dtype out = node->output[0].dtype;
    const bool is_byte = ifd_gpu_is_q8(out) || out == IFD_BOOL;
    /* a table has every divisor, also 0, which these refuse */
    const bool divides = node->op == IFD_OP_FLOOR_DIV || node->op == IFD_OP_FLOOR_MOD;
    bool takes = operands >= 1 && operands <= OPERANDS && !divides &&
                 (is_byte || (out == IFD_F32 && operands == 1)) &&
                 (operands == node->input_count || node->input[1].data.data);
    for (uint32_t i = 0; takes && i < operands; i++) {
        const struct ifd_desc *in = node->input[i].desc;
        takes = in && (ifd_gpu_is_q8(in->dtype) || in->dtype == IFD_BOOL) && in->quant.count <= 1;
    }
    return takes && (operands == 1 || broadcast_of(node).rank <= RANK);
}

/* ---- tables ---- */

static size_t table_bytes(const struct ifd_node_view *node)
{
    return (operands_of(node) == 1 ? BYTES : BYTES * BYTES) *
           ifd_dtype_bytes(node->output[0].dtype);
}

/* Every pair of operands: the second one changes fastest. */
static void fill_operands(uint8_t *first, uint8_t *second, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        first[i] = (uint8_t)(count == BYTES ? i : i / BYTES);
        second[i] = (uint8_t)i;
    }
}

/* The operator on all operands, as tensors of one dimension. */
static enum ifd_code call_reference(const struct ifd_gpu_lowering *lowering,
                                    const struct ifd_node_view *node, const uint8_t *first,
                                    const uint8_t *second, void *table, struct ifd_err *err)
{
    const int64_t count = operands_of(node) == 1 ? BYTES : BYTES * BYTES;
    struct ifd_desc in[OPERANDS], out = node->output[0];
    const struct ifd_desc *ins[OPERANDS], *outs[] = {&out};
    const void *inputs[] = {first, operands_of(node) < node->input_count ? node->input[1].data.data
                                                                         : second};
    void *outputs[] = {table};
    out.shape = (struct ifd_shape){.rank = 1, .dim = {count}};
    for (uint32_t i = 0; i < node->input_count; i++) {
        in[i] = *node->input[i].desc;
        in[i].shape = i < operands_of(node) ? out.shape : in[i].shape;
        ins[i] = &in[i];
    }
    const struct ifd_ref_call call = {.attrs = node->attrs,
                                      .in = ins,
                                      .input = inputs,
                                      .input_count = node->input_count,
                                      .out = outs,
                                      .output = outputs,
                                      .output_count = 1};
    return lowering->device->host->op_def(node->op)->ref(&call, err);
}

static enum ifd_code make_table(struct ifd_gpu_lowering *lowering, const struct ifd_node_view *node,
                                void **ret, struct ifd_err *err)
{
    const struct ifd_alloc *alloc = lowering->device->host->alloc;
    const size_t count = operands_of(node) == 1 ? BYTES : BYTES * BYTES;
    uint8_t *operands = ifd_acquire(alloc, 2 * count);
    *ret = ifd_low_params(&lowering->base, 1, table_bytes(node));
    enum ifd_code code = IFD_OK;
    if (!operands || !*ret) {
        code = ifd_fail(err, IFD_NOMEM, "no memory for a table");
    } else {
        fill_operands(operands, operands + count, count);
        code = call_reference(lowering, node, operands, operands + count, *ret, err);
    }
    ifd_release(alloc, operands, 2 * count);
    return code;
}

/* ---- steps ---- */

enum ifd_code ifd_gpu_table_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_node_view *view = &node->view;
    const bool is_binary = operands_of(view) == OPERANDS;
    const size_t count = ifd_gpu_elements(&view->output[0].shape);
    size_t *bytes = ifd_low_params(&lowering->base, 1, sizeof(*bytes));
    void *table = NULL;
    if (!bytes) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*bytes), err);
    }
    *bytes = table_bytes(view);
    const enum ifd_code code = make_table(lowering, view, &table, err);
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_gpu_call call = ifd_gpu_call(is_binary ? IFD_GPU_table2 : IFD_GPU_table1);
    ifd_gpu_define(&call, "#define RESULT %s\n",
                   view->output[0].dtype == IFD_F32 ? "float" : "uchar");
    for (uint32_t i = 0; i < operands_of(view); i++) {
        ifd_gpu_in(&call, node->input_value[i]);
    }
    ifd_gpu_constant(&call, ifd_gpu_pack_copy, bytes, table, *bytes);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    if (is_binary) {
        const struct ifd_low_broadcast broadcast = broadcast_of(view);
        ifd_gpu_broadcast(&call, &broadcast, RANK);
    }
    ifd_gpu_items(&call, is_binary ? count : (count + 3) / 4, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(view->op), 0, err);
}

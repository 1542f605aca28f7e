/* Fills tables with reference kernels and looks results up. */
#include "backends/gpuacc/ops/table.h"

#include "backends/gpuacc/constants.h"
#include "backends/gpuacc/ops/layer.h"
#include "backends/lowering/broadcast.h"

#include <string.h>

#define BYTES    256
#define WORDS    65536
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

static bool has_bytes(const struct ifd_desc *desc)
{
    return ifd_gpu_is_q8(desc->dtype) || desc->dtype == IFD_BOOL;
}

/* Of 16 bits: the only operand. */
static bool has_words(const struct ifd_desc *desc)
{
    return desc->dtype == IFD_S16 || desc->dtype == IFD_F16 || desc->dtype == IFD_BF16;
}

/* The types of results that kernels/table.cl stores. */
static bool has_result(const struct ifd_desc *out, uint32_t operands)
{
    return has_bytes(out) || (operands == 1 && (out->dtype == IFD_F32 || out->dtype == IFD_S16));
}

/* A table has every operand, also those that the operator refuses: divisors that are 0, and numbers
 * below the zero point, which have no root (the inverse root of 16 bits has a result). */
static bool refuses_some(const struct ifd_node_view *node)
{
    const struct ifd_desc *in = node->input[0].desc;
    const bool refuses =
        node->op == IFD_OP_FLOOR_DIV || node->op == IFD_OP_FLOOR_MOD || node->op == IFD_OP_SQRT;
    return refuses || (node->op == IFD_OP_RSQRT && in->dtype == IFD_S8 && in->quant.count > 0 &&
                       in->quant.zero_point[0] > INT8_MIN);
}

bool ifd_gpu_table_takes(const struct ifd_node_view *node)
{
    const uint32_t operands = operands_of(node);
    bool takes = operands >= 1 && operands <= OPERANDS && !refuses_some(node) &&
                 has_result(&node->output[0], operands) &&
                 (operands == node->input_count || node->input[1].data.data);
    for (uint32_t i = 0; takes && i < operands; i++) {
        const struct ifd_desc *in = node->input[i].desc;
        takes = in && (has_bytes(in) || (operands == 1 && has_words(in))) && in->quant.count <= 1;
    }
    return takes && (operands == 1 || broadcast_of(node).rank <= RANK);
}

/* ---- tables ---- */

static size_t results_of(const struct ifd_node_view *node)
{
    return operands_of(node) == 1 && has_bytes(node->input[0].desc) ? BYTES : WORDS;
}

static size_t table_bytes(const struct ifd_node_view *node)
{
    return results_of(node) * ifd_dtype_bytes(node->output[0].dtype);
}

/* Every operand, or pair of operands: the second one changes fastest. */
static void fill_operands(const struct ifd_node_view *node, uint8_t *first, uint8_t *second)
{
    const size_t count = results_of(node);
    for (size_t i = 0; i < count; i++) {
        const uint16_t word = (uint16_t)i;
        if (has_words(node->input[0].desc)) {
            memcpy(first + i * sizeof(word), &word, sizeof(word));
        } else {
            first[i] = (uint8_t)(count == BYTES ? i : i / BYTES);
            second[i] = (uint8_t)i;
        }
    }
}

/* The operator on all operands, as tensors of one dimension. */
static enum ifd_code call_reference(const struct ifd_gpu_lowering *lowering,
                                    const struct ifd_node_view *node, const uint8_t *first,
                                    const uint8_t *second, void *table, struct ifd_err *err)
{
    const int64_t count = (int64_t)results_of(node);
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
    const size_t count = results_of(node);
    uint8_t *operands = ifd_acquire_tensor(alloc, 2 * count); /* bytes of both, or words of one */
    *ret = ifd_low_params(&lowering->base, 1, table_bytes(node));
    enum ifd_code code = IFD_OK;
    if (!operands || !*ret) {
        code = ifd_fail(err, IFD_NOMEM, "no memory for a table");
    } else {
        fill_operands(node, operands, operands + count);
        code = call_reference(lowering, node, operands, operands + count, *ret, err);
    }
    ifd_release_tensor(alloc, operands, 2 * count);
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
    const enum ifd_dtype out = view->output[0].dtype;
    ifd_gpu_define(&call, "#define OPERAND %s\n#define RESULT %s\n",
                   has_words(view->input[0].desc) ? "ushort" : "uchar",
                   out == IFD_F32 ? "float" : ifd_gpu_element_type(ifd_dtype_bytes(out)));
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

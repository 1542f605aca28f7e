/* Functions of one element. On 8 bits each of them, requantization included, is a table of 256
 * results that the operator's reference kernel fills at compile time. */
#include "backends/cpuacc/ops/unary.h"

#include <math.h>
#include <string.h>

struct table_params {
    size_t count;
    uint8_t table[256];
};

static void run_table(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct table_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->count, 64);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    step->kernels->quant.lut_8(range.end - range.begin, in + range.begin, p->table,
                               out + range.begin);
}

/* ---- f32 ---- */

struct f32_row {
    bool exists;
    enum ifd_unary kernel;
    float p0, p1;
};

static struct f32_row f32_row(const struct ifd_node_view *node)
{
    const struct ifd_clamp_attrs *clamp = node->attrs;
    const struct ifd_leaky_relu_attrs *leaky = node->attrs;
    const struct ifd_gelu_attrs *gelu = node->attrs;
    switch (node->op) {
    case IFD_OP_RELU:
        return (struct f32_row){true, IFD_UNARY_CLAMP, 0, INFINITY};
    case IFD_OP_RELU6:
        return (struct f32_row){true, IFD_UNARY_CLAMP, 0, 6};
    case IFD_OP_RELU_N1_TO_1:
        return (struct f32_row){true, IFD_UNARY_CLAMP, -1, 1};
    case IFD_OP_CLAMP:
        return (struct f32_row){true, IFD_UNARY_CLAMP, clamp->min, clamp->max};
    case IFD_OP_LEAKY_RELU:
        return (struct f32_row){true, IFD_UNARY_LEAKY_RELU, leaky->alpha, 0};
    case IFD_OP_ABS:
        return (struct f32_row){true, IFD_UNARY_ABS, 0, 0};
    case IFD_OP_NEG:
        return (struct f32_row){true, IFD_UNARY_NEG, 0, 0};
    case IFD_OP_SQRT:
        return (struct f32_row){true, IFD_UNARY_SQRT, 0, 0};
    case IFD_OP_RSQRT:
        return (struct f32_row){true, IFD_UNARY_RSQRT, 0, 0};
    case IFD_OP_EXP:
        return (struct f32_row){true, IFD_UNARY_EXP, 0, 0};
    case IFD_OP_LOG:
        return (struct f32_row){true, IFD_UNARY_LOG, 0, 0};
    case IFD_OP_LOGISTIC:
        return (struct f32_row){true, IFD_UNARY_LOGISTIC, 0, 0};
    case IFD_OP_TANH:
        return (struct f32_row){true, IFD_UNARY_TANH, 0, 0};
    case IFD_OP_HARD_SWISH:
        return (struct f32_row){true, IFD_UNARY_HARDSWISH, 0, 0};
    case IFD_OP_ELU:
        return (struct f32_row){true, IFD_UNARY_ELU, 1, 0};
    case IFD_OP_ROUND:
        return (struct f32_row){true, IFD_UNARY_ROUND, 0, 0};
    case IFD_OP_FLOOR:
        return (struct f32_row){true, IFD_UNARY_FLOOR, 0, 0};
    case IFD_OP_CEIL:
        return (struct f32_row){true, IFD_UNARY_CEIL, 0, 0};
    case IFD_OP_ERF:
        return (struct f32_row){true, IFD_UNARY_ERF, 0, 0};
    case IFD_OP_GELU:
        return (struct f32_row){true, gelu->approximate ? IFD_UNARY_GELU_TANH : IFD_UNARY_GELU, 0,
                                0};
    case IFD_OP_SQUARE:
        return (struct f32_row){true, IFD_UNARY_SQUARE, 0, 0};
    default:
        return (struct f32_row){false, IFD_UNARY_COUNT, 0, 0};
    }
}

/* ---- 8 bits ---- */

/* table[native input] = native output, by the reference kernel for the node's rank. */
static enum ifd_code fill_table(const struct ifd_node_view *node, uint8_t *table,
                                struct ifd_err *err)
{
    struct ifd_desc in = *node->input[0].desc, out = node->output[0];
    in.shape.rank = in.shape.rank ? in.shape.rank : 1;
    for (uint32_t d = 0; d < in.shape.rank; d++) {
        in.shape.dim[d] = d == 0 ? 256 : 1;
    }
    out.shape = in.shape;
    const uint8_t in_flip = ifd_acc_flip(in.dtype), out_flip = ifd_acc_flip(out.dtype);
    uint8_t input[256], output[256];
    for (unsigned i = 0; i < 256; i++) {
        input[i] = (uint8_t)(i ^ in_flip);
    }
    const bool has_list = node->input_count > 1;
    const struct ifd_desc *const ins[] = {&in, has_list ? node->input[1].desc : NULL};
    const struct ifd_desc *const outs[] = {&out};
    const void *const inputs[] = {input, has_list ? node->input[1].data.data : NULL};
    void *const outputs[] = {output};
    const struct ifd_ref_call call = {.attrs = node->attrs,
                                      .in = ins,
                                      .input = inputs,
                                      .input_count = node->input_count,
                                      .out = outs,
                                      .output = outputs,
                                      .output_count = 1};
    const enum ifd_code code = ifd_op_def(node->op)->ref(&call, err);
    for (unsigned i = 0; i < 256; i++) {
        table[i] = output[i] ^ out_flip;
    }
    return code;
}

/* ---- both ---- */

bool ifd_acc_unary_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype in = node->input[0].desc->dtype, out = node->output[0].dtype;
    const bool is_table = ifd_acc_is_q8(in) && ifd_acc_is_q8(out) && !ifd_op_def(node->op)->scratch;
    if (node->op == IFD_OP_TABLE && !node->input[1].data.data) {
        ifd_fail(reason, IFD_UNSUPPORTED, "a table that is not constant");
        return false;
    }
    if (!is_table && !(in == IFD_F32 && out == IFD_F32 && f32_row(node).exists)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "types %s to %s", ifd_dtype_name(in),
                 ifd_dtype_name(out));
        return false;
    }
    uint8_t table[256]; /* there is none where some numbers are refused */
    return !is_table || fill_table(node, table, reason) == IFD_OK;
}

enum ifd_code ifd_acc_add_table(struct ifd_acc_lowering *lowering, const struct ifd_node_view *node,
                                uint32_t from, uint32_t to, struct ifd_err *err)
{
    struct table_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code =
        p ? fill_table(node, p->table, err) : ifd_fail(err, IFD_NOMEM, "no memory for a step");
    if (code == IFD_OK) {
        p->count = lowering->base.value[from].bytes;
        code = ifd_acc_add_step(lowering, run_table, p, &from, 1, to, &step, err);
    }
    if (code == IFD_OK) {
        step->max_threads = (uint32_t)(p->count / 2048) + 1;
        ifd_acc_name_step(lowering, "lut_8", 0, "%s", ifd_op_def(node->op)->name);
    }
    return code;
}

/* ---- as parts of tails ---- */

static bool has_table(const struct ifd_acc_driver *driver, const struct ifd_node_view *node)
{
    return (driver == &ifd_acc_unary || driver == &ifd_acc_quantize) &&
           ifd_acc_is_q8(node->input[0].desc->dtype) && ifd_acc_is_q8(node->output[0].dtype);
}

bool ifd_acc_unary_op(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                      struct ifd_acc_tail_op *ret)
{
    const struct f32_row row = f32_row(&node->view);
    *ret = (struct ifd_acc_tail_op){.name = ifd_op_def(node->view.op)->name};
    if (has_table(ifd_acc_driver_of(lowering, node), &node->view)) {
        uint8_t *table = ifd_low_params(&lowering->base, 256, 1);
        struct ifd_err unused;
        ret->table = table;
        return table && fill_table(&node->view, table, &unused) == IFD_OK;
    }
    if (!row.exists || node->view.output[0].dtype != IFD_F32) {
        return false;
    }
    ret->unary = lowering->kernels->eltwise.unary[row.kernel];
    ret->p0 = row.p0;
    ret->p1 = row.p1;
    return true;
}

struct ifd_acc_tail_op ifd_acc_silu_op(const struct ifd_acc_lowering *lowering)
{
    return (struct ifd_acc_tail_op){.name = "silu",
                                    .unary = lowering->kernels->eltwise.unary[IFD_UNARY_SILU]};
}

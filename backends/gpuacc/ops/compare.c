/* cast, and comparisons of numbers that are no 8-bit numbers. */
#include "backends/gpuacc/ops/pairs.h"
#include "backends/gpuacc/ops/table.h"
#include "engine/tensor/fixed.h"

#include <stdio.h>

/* ---- cast ---- */

static bool has_numbers(const struct ifd_node_view *node)
{
    return ifd_gpu_number_type(node->input[0].desc->dtype) &&
           ifd_gpu_number_type(node->output[0].dtype);
}

static bool cast_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const enum ifd_dtype in = node->input[0].desc->dtype, out = node->output[0].dtype;
    if (!has_numbers(node) && !ifd_gpu_table_takes(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "types %s to %s", ifd_dtype_name(in),
                 ifd_dtype_name(out));
        return false;
    }
    return true;
}

/* Integers keep their low bits; floats are cut off and saturate. */
static void define_conversion(struct ifd_gpu_call *call, enum ifd_dtype in, enum ifd_dtype out)
{
    ifd_gpu_define(call, "#define IN %s\n#define OUT %s\n", ifd_gpu_number_type(in),
                   ifd_gpu_number_type(out));
    if (in == IFD_BOOL || out == IFD_BOOL) {
        ifd_gpu_define(call, "#define CONVERT(v) ((v) != 0 ? (OUT)1 : (OUT)0)\n");
    } else {
        ifd_gpu_define(call, "#define CONVERT(v) convert_%s%s(v)\n", ifd_gpu_number_type(out),
                       in == IFD_F32 && out != IFD_F32 ? "_sat_rtz" : "");
    }
}

static enum ifd_code cast_lower(struct ifd_gpu_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const size_t count = ifd_gpu_elements(&node->view.output[0].shape);
    if (!has_numbers(&node->view)) { /* floats of 16 bits */
        return ifd_gpu_table_lower(lowering, node, err);
    }
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_cast);
    define_conversion(&call, node->view.input[0].desc->dtype, node->view.output[0].dtype);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)count);
    ifd_gpu_items(&call, count, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "cast", 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_cast = {cast_takes, cast_lower};

/* ---- comparisons ---- */

/* Which of two is greater, LiteRT asks of s16 as they are stored. */
static bool is_order(enum ifd_op op)
{
    return op != IFD_OP_EQUAL && op != IFD_OP_NOT_EQUAL;
}

/* Others it compares as doubles. */
static bool has_small_scales(const struct ifd_node_view *node)
{
    const struct ifd_quant *a = &node->input[0].desc->quant, *b = &node->input[1].desc->quant;
    return a->count == 1 && b->count == 1 && a->scale[0] < 1 && b->scale[0] < 1;
}

static bool compares_numbers(const struct ifd_node_view *node)
{
    const enum ifd_dtype in = node->input[0].desc->dtype;
    return (in == IFD_F32 || in == IFD_S32 || in == IFD_S64 ||
            (in == IFD_S16 && (is_order(node->op) || has_small_scales(node)))) &&
           ifd_gpu_pairs_fit(node);
}

static bool compare_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (!compares_numbers(node) && !ifd_gpu_table_takes(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(node->input[0].desc->dtype));
        return false;
    }
    return true;
}

static const char *comparison(enum ifd_op op)
{
    return op == IFD_OP_EQUAL        ? "(a) == (b) ? 1 : 0"
           : op == IFD_OP_NOT_EQUAL  ? "(a) != (b) ? 1 : 0"
           : op == IFD_OP_LESS       ? "(a) < (b) ? 1 : 0"
           : op == IFD_OP_LESS_EQUAL ? "(a) <= (b) ? 1 : 0"
           : op == IFD_OP_GREATER    ? "(a) > (b) ? 1 : 0"
                                     : "(a) >= (b) ? 1 : 0";
}

/* Numbers of s16, with 8 more bits and scaled. */
static enum ifd_code lower_equal_words(struct ifd_gpu_lowering *lowering,
                                       const struct ifd_partition_node *node, struct ifd_err *err)
{
    char combine[160];
    int32_t multiplier[2] = {0, 0};
    int shift[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        ifd_fixed_from_any((double)node->view.input[i].desc->quant.scale[0], &multiplier[i],
                           &shift[i]);
    }
    (void)snprintf(combine, sizeof(combine),
                   "scale_double((a) * 256, %d, %d) %s scale_double((b) * 256, %d, %d) ? 1 : 0",
                   (int)multiplier[0], shift[0],
                   node->view.op == IFD_OP_EQUAL ? "==" : "!=", (int)multiplier[1], shift[1]);
    return ifd_gpu_pairs_lower(lowering, node, "short", "uchar", combine, err);
}

static enum ifd_code compare_lower(struct ifd_gpu_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const enum ifd_dtype in = node->view.input[0].desc->dtype;
    if (!compares_numbers(&node->view)) {
        return ifd_gpu_table_lower(lowering, node, err);
    }
    return in == IFD_S16 && !is_order(node->view.op)
               ? lower_equal_words(lowering, node, err)
               : ifd_gpu_pairs_lower(lowering, node, ifd_gpu_number_type(in), "uchar",
                                     comparison(node->view.op), err);
}

const struct ifd_gpu_driver ifd_gpu_driver_compare = {compare_takes, compare_lower};

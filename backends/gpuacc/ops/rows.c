/* softmax, log_softmax and reductions: of f32 a work group shares what is reduced. What other
 * operators along a dimension share with them. */
#include "backends/gpuacc/constants.h"
#include "backends/gpuacc/ops/layer.h"
#include "backends/gpuacc/ops/rows.h"
#include "backends/lowering/moves.h"
#include "engine/tensor/fixed.h"
#include "engine/tensor/log_softmax8.h"
#include "engine/tensor/softmax8.h"
#include "inferd/op_attrs.h"

size_t ifd_gpu_group_items(const struct ifd_device *device, size_t count)
{
    size_t items = 1;
    while (items < 64 && 2 * items <= device->info.max_group && items < count) {
        items *= 2;
    }
    return items;
}

bool ifd_gpu_is_f32(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (node->input[0].desc->dtype != IFD_F32) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(node->input[0].desc->dtype));
        return false;
    }
    return true;
}

/* ---- softmax ---- */

static bool softmax_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return ifd_gpu_is_q8(node->input[0].desc->dtype) || ifd_gpu_is_f32(node, reason);
}

/* The tables stay in the arena; equal layers do not share them. */
static enum ifd_code add_exponentials(struct ifd_gpu_lowering *lowering,
                                      const struct ifd_node_view *node, struct ifd_gpu_call *call,
                                      struct ifd_err *err)
{
    const struct ifd_softmax_attrs *attrs = node->attrs;
    struct ifd_softmax8 *table = ifd_low_params(&lowering->base, 1, sizeof(*table));
    size_t *bytes = ifd_low_params(&lowering->base, 1, sizeof(*bytes));
    if (!table || !bytes) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*table), err);
    }
    ifd_softmax8_init(table, (double)attrs->beta * (double)node->input[0].desc->quant.scale[0]);
    *bytes = sizeof(table->exponential);
    ifd_gpu_constant(call, ifd_gpu_pack_copy, bytes, table->exponential, *bytes);
    ifd_gpu_constant(call, ifd_gpu_pack_copy, bytes, table->rounded, *bytes);
    return IFD_OK;
}

static enum ifd_code lower_softmax_q8(struct ifd_gpu_lowering *lowering,
                                      const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *out = &node->view.output[0];
    const size_t row = (size_t)out->shape.dim[out->shape.rank - 1];
    const size_t rows = ifd_gpu_elements(&out->shape) / row;
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_softmax_q8);
    ifd_gpu_define(&call, "#define Q %s\n", ifd_gpu_q8_type(out->dtype));
    ifd_gpu_in(&call, node->input_value[0]);
    const enum ifd_code code = add_exponentials(lowering, &node->view, &call, err);
    if (code != IFD_OK) {
        return code;
    }
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)row);
    ifd_gpu_int(&call, (int64_t)rows);
    ifd_gpu_int(&call, out->dtype == IFD_S8 ? INT8_MIN : 0);
    ifd_gpu_items(&call, rows, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "softmax", 0, err);
}

static enum ifd_code lower_log_softmax_q8(struct ifd_gpu_lowering *lowering,
                                          const struct ifd_partition_node *node,
                                          struct ifd_err *err)
{
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const size_t row = (size_t)out->shape.dim[out->shape.rank - 1];
    const size_t rows = ifd_gpu_elements(&out->shape) / row;
    struct ifd_log_softmax8 *table = ifd_low_params(&lowering->base, 1, sizeof(*table));
    size_t *bytes = ifd_low_params(&lowering->base, 1, sizeof(*bytes));
    int32_t lowest = 0, highest = 0;
    if (!table || !bytes) {
        return ifd_arena_fail(lowering->base.arena, sizeof(*table), err);
    }
    ifd_log_softmax8_init(table, (double)in->quant.scale[0], (double)out->quant.scale[0]);
    *bytes = sizeof(table->exponential);
    ifd_gpu_stored_range(out->dtype, &lowest, &highest);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_log_softmax_q8);
    ifd_gpu_define(&call, "#define Q %s\n", ifd_gpu_q8_type(out->dtype));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_constant(&call, ifd_gpu_pack_copy, bytes, table->exponential, *bytes);
    ifd_gpu_constant(&call, ifd_gpu_pack_copy, bytes, table->steps, *bytes);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)row);
    ifd_gpu_int(&call, (int64_t)rows);
    ifd_gpu_int(&call, out->quant.zero_point[0]);
    ifd_gpu_int(&call, lowest);
    ifd_gpu_int(&call, highest);
    ifd_gpu_int(&call, table->fraction);
    ifd_gpu_int(&call, table->shift);
    ifd_gpu_items(&call, rows, 1, 1);
    return ifd_gpu_add_step(lowering, &call, "log_softmax", 0, err);
}

static enum ifd_code softmax_lower(struct ifd_gpu_lowering *lowering,
                                   const struct ifd_partition_node *node, struct ifd_err *err)
{
    const bool is_log = node->view.op == IFD_OP_LOG_SOFTMAX;
    const struct ifd_softmax_attrs *attrs = node->view.attrs;
    const struct ifd_shape *shape = &node->view.output[0].shape;
    const size_t row = shape->rank ? (size_t)shape->dim[shape->rank - 1] : 1;
    const size_t rows = ifd_gpu_elements(shape) / row;
    if (ifd_gpu_is_q8(node->view.output[0].dtype)) {
        return (is_log ? lower_log_softmax_q8 : lower_softmax_q8)(lowering, node, err);
    }
    const size_t items = ifd_gpu_group_items(lowering->device, row);
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_softmax);
    ifd_gpu_define(&call, "#define ITEMS %zu\n#define LOG %d\n", items, is_log);
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)row);
    ifd_gpu_float(&call, is_log ? 1.0f : attrs->beta);
    ifd_gpu_items(&call, rows * items, 1, 1);
    ifd_gpu_group(&call, items, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_softmax = {softmax_takes, softmax_lower};

/* ---- reductions ---- */

/* [outer][row][inner] → [outer][inner]. False if the dimensions that are reduced are not
 * neighbours. */
struct reduction {
    size_t outer, row, inner;
};

static bool find_reduction(const struct ifd_node_view *node, struct reduction *ret)
{
    const struct ifd_reduce_attrs *attrs = node->attrs;
    const struct ifd_shape *in = &node->input[0].desc->shape;
    bool is_reduced[IFD_MAX_RANK] = {false};
    for (uint32_t i = 0; i < attrs->axes.count; i++) {
        const int64_t axis = attrs->axes.value[i];
        is_reduced[axis < 0 ? axis + (int64_t)in->rank : axis] = true;
    }
    *ret = (struct reduction){1, 1, 1};
    for (uint32_t d = 0; d < in->rank; d++) {
        const size_t dim = (size_t)in->dim[d];
        if (dim == 1) {
            continue;
        }
        if (is_reduced[d] && ret->inner > 1) {
            return false;
        }
        if (is_reduced[d]) {
            ret->row *= dim;
        } else if (ret->row > 1) {
            ret->inner *= dim;
        } else {
            ret->outer *= dim;
        }
    }
    return ret->row > 0;
}

static bool is_sum_q8(const struct ifd_node_view *node)
{
    return ifd_gpu_is_q8(node->input[0].desc->dtype) &&
           (node->op == IFD_OP_REDUCE_MEAN || node->op == IFD_OP_REDUCE_SUM);
}

/* What a reduction of numbers that are no floats does with two of them, as unsigned numbers where
 * sums and products wrap around; NULL: it is not here. */
static const char *combination(enum ifd_op op, enum ifd_dtype dtype)
{
    const bool is_integer = dtype == IFD_S32 || dtype == IFD_S64;
    switch ((unsigned)op) {
    case IFD_OP_REDUCE_ANY:
        return "(a) | (b)";
    case IFD_OP_REDUCE_ALL:
        return "(a) & (b)";
    case IFD_OP_REDUCE_MAX:
        return "(a) > (b) ? (a) : (b)";
    case IFD_OP_REDUCE_MIN:
        return "(a) < (b) ? (a) : (b)";
    case IFD_OP_REDUCE_SUM:
        return is_integer ? "(a) + (b)" : NULL;
    case IFD_OP_REDUCE_PROD:
        return is_integer ? "(a) * (b)" : NULL;
    default:
        return NULL;
    }
}

static bool reduces_numbers(const struct ifd_node_view *node)
{
    const struct ifd_desc *in = node->input[0].desc;
    return in->dtype != IFD_F32 && ifd_gpu_number_type(in->dtype) &&
           combination(node->op, in->dtype) && ifd_low_same_quant(in, &node->output[0]);
}

static bool reduce_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    struct reduction reduction;
    if (!is_sum_q8(node) && !reduces_numbers(node) && !ifd_gpu_is_f32(node, reason)) {
        return false;
    }
    if (node->input_count > 1 || !find_reduction(node, &reduction)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "axes that are an input, or that are not neighbours");
        return false;
    }
    return true;
}

/* Definitions of a reduction. */
static const char *reduction_text(enum ifd_op op)
{
    switch ((unsigned)op) {
    case IFD_OP_REDUCE_MAX:
        return "#define REDUCE(a, b) (b > a ? b : a)\n#define START -INFINITY\n"
               "#define FINISH(v) v\n";
    case IFD_OP_REDUCE_MIN:
        return "#define REDUCE(a, b) (b < a ? b : a)\n#define START INFINITY\n"
               "#define FINISH(v) v\n";
    case IFD_OP_REDUCE_PROD:
        return "#define REDUCE(a, b) (a * b)\n#define START 1.0f\n#define FINISH(v) v\n";
    default:
        return "#define REDUCE(a, b) (a + b)\n#define START 0.0f\n"
               "#define FINISH(v) ((v) / divisor)\n";
    }
}

/* The factor from a sum to the output. A mean's division by count is in the multiplier, with as
 * many bits as fit, as the reference has it. */
static void sum_factor(const struct ifd_node_view *node, int64_t count, int32_t *ret_multiplier,
                       int *ret_shift)
{
    const double ratio =
        (double)node->input[0].desc->quant.scale[0] / (double)node->output[0].quant.scale[0];
    ifd_fixed_from_real(ratio, ret_multiplier, ret_shift);
    if (node->op == IFD_OP_REDUCE_MEAN) {
        int bits = 0; /* of count, rounded down */
        while (bits < 32 && count >> (bits + 1) != 0) {
            bits++;
        }
        bits = bits < 31 + *ret_shift ? bits : 31 + *ret_shift;
        *ret_multiplier = (int32_t)(((int64_t)*ret_multiplier << bits) / count);
        *ret_shift -= bits;
    }
}

static enum ifd_code lower_sum_q8(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, const struct reduction *r,
                                  struct ifd_err *err)
{
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_reduce_q8);
    int32_t multiplier = 0, lowest = 0, highest = 0;
    int shift = 0;
    sum_factor(&node->view, (int64_t)r->row, &multiplier, &shift);
    ifd_gpu_stored_bounds(IFD_ACT_NONE, out, &lowest, &highest);
    ifd_gpu_define(&call, "#define Q %s\n", ifd_gpu_q8_type(out->dtype));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    const int64_t numbers[] = {(int64_t)r->outer,        (int64_t)r->row, (int64_t)r->inner,
                               in->quant.zero_point[0],  multiplier,      shift,
                               out->quant.zero_point[0], lowest,          highest};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ifd_gpu_int(&call, numbers[i]);
    }
    ifd_gpu_items(&call, (r->inner + 3) / 4, r->outer, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

static enum ifd_code lower_numbers(struct ifd_gpu_lowering *lowering,
                                   const struct ifd_partition_node *node, const struct reduction *r,
                                   struct ifd_err *err)
{
    const enum ifd_op op = node->view.op;
    const enum ifd_dtype dtype = node->view.output[0].dtype;
    const bool wraps = op == IFD_OP_REDUCE_SUM || op == IFD_OP_REDUCE_PROD;
    const size_t results = r->outer * r->inner;
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_reduce_numbers);
    ifd_gpu_define(&call, "#define T %s\n#define REDUCE(a, b) (%s)\n",
                   wraps ? ifd_gpu_element_type(ifd_dtype_bytes(dtype))
                         : ifd_gpu_number_type(dtype),
                   combination(op, dtype));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)results);
    ifd_gpu_int(&call, (int64_t)r->row);
    ifd_gpu_int(&call, (int64_t)r->inner);
    ifd_gpu_items(&call, results, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(op), 0, err);
}

static enum ifd_code reduce_lower(struct ifd_gpu_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    struct reduction r;
    struct ifd_gpu_call call = ifd_gpu_call(IFD_GPU_reduce);
    if (!find_reduction(&node->view, &r)) {
        return ifd_fail(err, IFD_INTERNAL, "a reduction that was not taken");
    }
    if (is_sum_q8(&node->view)) {
        return lower_sum_q8(lowering, node, &r, err);
    }
    if (reduces_numbers(&node->view)) {
        return lower_numbers(lowering, node, &r, err);
    }
    const size_t items = ifd_gpu_group_items(lowering->device, r.row);
    ifd_gpu_define(&call, "#define ITEMS %zu\n%s", items, reduction_text(node->view.op));
    ifd_gpu_in(&call, node->input_value[0]);
    ifd_gpu_out(&call, node->output_value[0]);
    ifd_gpu_int(&call, (int64_t)r.row);
    ifd_gpu_int(&call, (int64_t)r.inner);
    ifd_gpu_float(&call, node->view.op == IFD_OP_REDUCE_MEAN ? (float)r.row : 1.0f);
    ifd_gpu_items(&call, items, (r.inner + 3) / 4, r.outer);
    ifd_gpu_group(&call, items, 1, 1);
    return ifd_gpu_add_step(lowering, &call, ifd_gpu_op_name(node->view.op), 0, err);
}

const struct ifd_gpu_driver ifd_gpu_driver_reduce = {reduce_takes, reduce_lower};

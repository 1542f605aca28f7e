/* add, sub, mul, div, minimum, maximum, squared_difference: f32, and add, sub, mul on 8 bits. Broadcasting is brought to
 * blocks of rows × n, in which each operand repeats a row, a value per row, or neither; further dimensions are counted
 * outside. */
#include "backends/cpuacc/ops/tail.h"

#include "engine/tensor/fixed.h"

#include <math.h>
#include <string.h>

/* Operands: two inputs and the output. */
enum { A, B, Y, OPERANDS };

/* Merged dimensions, the innermost last; strides in elements, 0 where an operand repeats. */
struct blocks {
    uint32_t rank; /* ≥ 2 */
    size_t dim[IFD_MAX_RANK];
    size_t stride[OPERANDS][IFD_MAX_RANK];
};

struct binary_params {
    struct blocks blocks;
    enum ifd_op op;
    float min, max;
    struct ifd_q8_binary_args q8; /* what does not change from block to block */
    bool is_q8, is_fast;
};

/* ---- dimensions ---- */

/* Strides of an operand over the output's dimensions. */
static void strides_over(const struct ifd_shape *shape, const struct ifd_shape *out,
                         size_t ret[IFD_MAX_RANK])
{
    const uint32_t skip = out->rank - shape->rank;
    size_t stride = 1;
    for (uint32_t d = out->rank; d-- > 0;) {
        const int64_t dim = d >= skip ? shape->dim[d - skip] : 1;
        ret[d] = dim == 1 ? 0 : stride;
        stride *= (size_t)dim;
    }
}

static bool joins(const struct blocks *b, uint32_t outer, const size_t inner[OPERANDS],
                  size_t inner_dim)
{
    for (int i = 0; i < OPERANDS; i++) {
        if (b->stride[i][outer] != inner[i] * inner_dim) {
            return false;
        }
    }
    return true;
}

static void make_blocks(const struct ifd_shape *a, const struct ifd_shape *b,
                        const struct ifd_shape *y, struct blocks *ret)
{
    size_t stride[OPERANDS][IFD_MAX_RANK] = {{0}};
    strides_over(a, y, stride[A]);
    strides_over(b, y, stride[B]);
    strides_over(y, y, stride[Y]);
    *ret = (struct blocks){.rank = 0};
    for (uint32_t d = 0; d < y->rank; d++) {
        const size_t dim = (size_t)y->dim[d];
        const size_t inner[OPERANDS] = {stride[A][d], stride[B][d], stride[Y][d]};
        if (dim == 1) {
            continue;
        }
        uint32_t to = ret->rank;
        if (to > 0 && joins(ret, to - 1, inner, dim)) {
            to--;
            ret->dim[to] *= dim;
        } else {
            ret->dim[to] = dim;
            ret->rank++;
        }
        for (int i = 0; i < OPERANDS; i++) {
            ret->stride[i][to] = inner[i];
        }
    }
    while (ret->rank < 2) { /* a block has two dimensions; the new one is outside */
        memmove(&ret->dim[1], &ret->dim[0], ret->rank * sizeof(ret->dim[0]));
        for (int i = 0; i < OPERANDS; i++) {
            memmove(&ret->stride[i][1], &ret->stride[i][0], ret->rank * sizeof(ret->stride[i][0]));
            ret->stride[i][0] = 0;
        }
        ret->dim[0] = 1;
        ret->rank++;
    }
}

/* ---- running ---- */

typedef void (*q8_kernel)(const struct ifd_q8_binary_args *args);
typedef void (*f32_kernel)(const struct ifd_binary_args *args);

static q8_kernel choose_q8(const struct ifd_kern_quant *quant, enum ifd_op op, bool is_fast)
{
    return is_fast            ? op == IFD_OP_MUL ? quant->scale_q8 : quant->blend_q8
           : op == IFD_OP_ADD ? quant->add_q8
           : op == IFD_OP_SUB ? quant->sub_q8
                              : quant->mul_q8;
}

static f32_kernel choose_f32(const struct ifd_kern_eltwise *eltwise, enum ifd_op op)
{
    static const enum ifd_binary kernel[IFD_OP_COUNT] = {
        [IFD_OP_ADD] = IFD_BINARY_ADD,
        [IFD_OP_SUB] = IFD_BINARY_SUB,
        [IFD_OP_MUL] = IFD_BINARY_MUL,
        [IFD_OP_DIV] = IFD_BINARY_DIV,
        [IFD_OP_MINIMUM] = IFD_BINARY_MIN,
        [IFD_OP_MAXIMUM] = IFD_BINARY_MAX,
        [IFD_OP_SQUARED_DIFFERENCE] = IFD_BINARY_SQUARED_DIFFERENCE,
    };
    return eltwise->binary[kernel[op]];
}

static void call(const struct ifd_acc_step *step, const struct binary_params *p,
                 const uint8_t *base[OPERANDS], const size_t offset[OPERANDS], size_t rows,
                 size_t first, size_t n)
{
    const struct blocks *b = &p->blocks;
    const uint32_t row = b->rank - 2, column = b->rank - 1;
    if (p->is_q8) {
        struct ifd_q8_binary_args args = p->q8;
        args.rows = rows;
        args.n = n;
        args.a = (const ifd_q8 *)base[A] + offset[A] + first * b->stride[A][column];
        args.b = (const ifd_q8 *)base[B] + offset[B] + first * b->stride[B][column];
        args.out = (ifd_q8 *)(uintptr_t)base[Y] + offset[Y] + first;
        args.a_row = b->stride[A][row];
        args.b_row = b->stride[B][row];
        args.out_row = b->stride[Y][row];
        args.a_step = b->stride[A][column];
        args.b_step = b->stride[B][column];
        choose_q8(&step->kernels->quant, p->op, p->is_fast)(&args);
        return;
    }
    const struct ifd_binary_args args = {
        .rows = rows,
        .n = n,
        .a = (const float *)(const void *)base[A] + offset[A] + first * b->stride[A][column],
        .b = (const float *)(const void *)base[B] + offset[B] + first * b->stride[B][column],
        .out = (float *)(uintptr_t)base[Y] + offset[Y] + first,
        .a_row = b->stride[A][row],
        .b_row = b->stride[B][row],
        .out_row = b->stride[Y][row],
        .a_step = b->stride[A][column],
        .b_step = b->stride[B][column],
        .min = p->min,
        .max = p->max,
    };
    choose_f32(&step->kernels->eltwise, p->op)(&args);
}

/* All outer positions; the rows (or, where there is but one, the columns) of each block are shared by the team. */
static void run_binary(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct binary_params *p = step->params;
    const struct blocks *b = &p->blocks;
    const uint32_t outer = b->rank - 2;
    const uint8_t *base[OPERANDS] = {ifd_acc_in(step, frame, 0), ifd_acc_in(step, frame, 1),
                                     ifd_acc_out(step, frame)};
    const size_t rows = b->dim[outer], n = b->dim[outer + 1];
    const struct ifd_acc_range r =
        rows == 1 ? (struct ifd_acc_range){0, 1} : ifd_acc_share(frame, rows, 1);
    const struct ifd_acc_range c =
        rows == 1 ? ifd_acc_share(frame, n, 64) : (struct ifd_acc_range){0, n};
    size_t parts = 1;
    for (uint32_t d = 0; d < outer; d++) {
        parts *= b->dim[d];
    }
    for (size_t part = 0; part < parts && r.begin < r.end && c.begin < c.end; part++) {
        size_t rest = part, offset[OPERANDS] = {0};
        for (uint32_t d = outer; d-- > 0;) {
            for (int i = 0; i < OPERANDS; i++) {
                offset[i] += rest % b->dim[d] * b->stride[i][d];
            }
            rest /= b->dim[d];
        }
        for (int i = 0; i < OPERANDS; i++) {
            offset[i] += r.begin * b->stride[i][outer];
        }
        call(step, p, base, offset, r.end - r.begin, c.begin, c.end - c.begin);
    }
}

/* ---- compiling ---- */

static bool binary_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_binary_attrs *attrs = node->attrs;
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    const bool has_q8 = node->op == IFD_OP_ADD || node->op == IFD_OP_SUB || node->op == IFD_OP_MUL;
    float min = 0, max = 0;
    if ((dtype != IFD_F32 && !(has_q8 && ifd_acc_is_q8(dtype))) || node->output[0].dtype != dtype ||
        !ifd_acc_clamp_f32(attrs->activation, &min, &max)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or an activation that is no clamp",
                 ifd_dtype_name(dtype));
        return false;
    }
    return true;
}

static void set_factor(double real, int32_t *ret_multiplier, int32_t *ret_shift)
{
    int shift = 0;
    ifd_fixed_from_real(real, ret_multiplier, &shift);
    *ret_shift = shift;
}

/* Factors as LiteRT's reference kernels have them: sums with 20 more bits in twice the larger scale, products in single
 * precision. */
static void init_q8(const struct ifd_node_view *node, struct ifd_q8_binary_args *q8)
{
    const struct ifd_binary_attrs *attrs = node->attrs;
    const struct ifd_desc *a = node->input[0].desc, *b = node->input[1].desc, *y = &node->output[0];
    const float a_scale = a->quant.scale[0], b_scale = b->quant.scale[0],
                y_scale = y->quant.scale[0];
    q8->a_zero = ifd_acc_zero(a);
    q8->b_zero = ifd_acc_zero(b);
    q8->out_zero = ifd_acc_zero(y);
    (void)ifd_acc_clamp_q8(attrs->activation, y, &q8->out_min, &q8->out_max);
    if (node->op == IFD_OP_MUL) {
        set_factor((double)(a_scale * b_scale / y_scale), &q8->out_multiplier, &q8->out_shift);
        return;
    }
    const double common = 2.0 * (double)(a_scale > b_scale ? a_scale : b_scale);
    set_factor((double)a_scale / common, &q8->a_multiplier, &q8->a_shift);
    set_factor((double)b_scale / common, &q8->b_multiplier, &q8->b_shift);
    set_factor(common / ((double)y_scale * 1048576.0), &q8->out_multiplier, &q8->out_shift);
}

/* Factors of sums: at most FACTOR_BITS, with so many of them behind the point that what they lack is hardly ever seen. */
#define FACTOR_BITS 21
#define SHIFT_MIN   16
#define SHIFT_MAX   20
#define SCALE_MAX   64

/* Factors of the fast forms. False where they would not be precise enough. */
static bool init_fast(const struct ifd_node_view *node, struct ifd_q8_binary_args *q8)
{
    const double a = (double)node->input[0].desc->quant.scale[0],
                 b = (double)node->input[1].desc->quant.scale[0],
                 y = (double)node->output[0].quant.scale[0];
    if (node->op == IFD_OP_MUL) {
        q8->scale = (float)(a * b / y);
        return q8->scale < SCALE_MAX;
    }
    int exponent = 0;
    (void)frexp(fmax(a, b) / y, &exponent);
    const int shift = FACTOR_BITS - exponent < SHIFT_MAX ? FACTOR_BITS - exponent : SHIFT_MAX;
    if (shift < SHIFT_MIN) {
        return false;
    }
    const int32_t b_factor = (int32_t)lround(ldexp(b / y, shift));
    q8->fast_shift = shift;
    q8->a_factor = (int32_t)lround(ldexp(a / y, shift));
    q8->b_factor = node->op == IFD_OP_SUB ? -b_factor : b_factor;
    q8->bias = q8->out_zero * ((int32_t)1 << shift) + ((int32_t)1 << (shift - 1)) -
               q8->a_zero * q8->a_factor - q8->b_zero * q8->b_factor;
    return true;
}

static enum ifd_code binary_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    if (ifd_acc_lower_tail(lowering, node, &code, err)) {
        return code;
    }
    const struct ifd_binary_attrs *attrs = node->view.attrs;
    const struct ifd_shape *y = &node->view.output[0].shape;
    const uint32_t out = node->output_value[0];
    struct binary_params *p = ifd_acc_params(lowering, 1, sizeof(*p));
    if (!p) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    p->op = node->view.op;
    p->is_q8 = ifd_acc_is_q8(node->view.output[0].dtype);
    (void)ifd_acc_clamp_f32(attrs->activation, &p->min, &p->max);
    make_blocks(&node->view.input[0].desc->shape, &node->view.input[1].desc->shape, y, &p->blocks);
    if (p->is_q8) {
        init_q8(&node->view, &p->q8);
        p->is_fast = init_fast(&node->view, &p->q8) && !lowering->exact;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct ifd_shape *shape = &node->view.input[i].desc->shape;
        if (ifd_shape_equal(shape, y) && ifd_acc_in_place(lowering, node->input_value[i], out)) {
            break;
        }
    }
    struct ifd_acc_step *step = NULL;
    code = ifd_acc_add_step(lowering, run_binary, p, node->input_value, 2, out, &step, err);
    if (code == IFD_OK) {
        step->max_threads = (uint32_t)(lowering->value[out].bytes / 4096) + 1;
        ifd_acc_name_step(lowering, p->is_q8 ? "binary_q8" : "binary_f32", 0, "%s",
                          ifd_op_def(p->op)->name);
    }
    return code;
}

/* ---- as parts of tails ---- */

static enum ifd_acc_operand operand_kind(const struct ifd_shape *other, const struct ifd_shape *y)
{
    size_t count = 1;
    for (uint32_t d = 0; d < other->rank; d++) {
        count *= (size_t)other->dim[d];
    }
    const int64_t row = y->rank ? y->dim[y->rank - 1] : 1;
    if (ifd_shape_equal(other, y)) {
        return IFD_ACC_OPERAND_SAME;
    }
    return count == 1                                                   ? IFD_ACC_OPERAND_NUMBER
           : count == (size_t)row && other->dim[other->rank - 1] == row ? IFD_ACC_OPERAND_ROW
                                                                        : IFD_ACC_OPERAND_NONE;
}

static bool set_q8(struct ifd_acc_lowering *lowering, const struct ifd_node_view *node,
                   struct ifd_acc_tail_op *op)
{
    struct ifd_q8_binary_args *q8 = ifd_acc_params(lowering, 1, sizeof(*q8));
    if (!q8) {
        return false;
    }
    init_q8(node, q8);
    const bool is_fast = init_fast(node, q8) && !lowering->exact;
    op->q8 = q8;
    op->binary_q8 = choose_q8(&lowering->kernels->quant, node->op, is_fast);
    return true;
}

bool ifd_acc_binary_op(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                       uint32_t value, struct ifd_acc_tail_op *ret, uint32_t *ret_other)
{
    if (ifd_acc_driver_of(lowering, node)->lower != binary_lower) {
        return false;
    }
    const struct ifd_binary_attrs *attrs = node->view.attrs;
    const struct ifd_shape *y = &node->view.output[0].shape;
    const uint32_t other = node->input_value[0] == value ? 1 : 0;
    *ret = (struct ifd_acc_tail_op){
        .name = ifd_op_def(node->view.op)->name,
        .kind = operand_kind(&node->view.input[other].desc->shape, y),
        .comes_first = other == 0,
    };
    *ret_other = node->input_value[other];
    if (ret->kind == IFD_ACC_OPERAND_NONE ||
        !ifd_shape_equal(&node->view.input[1 - other].desc->shape, y)) {
        return false;
    }
    if (ifd_acc_is_q8(node->view.output[0].dtype)) {
        return set_q8(lowering, &node->view, ret);
    }
    ret->binary = choose_f32(&lowering->kernels->eltwise, node->view.op);
    return ifd_acc_clamp_f32(attrs->activation, &ret->min, &ret->max);
}

#define BINARY(symbol)                                                                             \
    const struct ifd_acc_driver ifd_acc_##symbol = {.takes = binary_takes, .lower = binary_lower}

BINARY(add);
BINARY(sub);
BINARY(mul);
BINARY(div);
BINARY(minimum);
BINARY(maximum);
BINARY(squared_difference);

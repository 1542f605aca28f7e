/* add, sub, mul, div, minimum, maximum, squared_difference: f32, and add, sub, mul on 8 bits.
 * Operands are broadcast in blocks of rows × n (backends/lowering/broadcast.h). */
#include "backends/cpuacc/ops/binary.h"

#include "backends/lowering/broadcast.h"
#include "backends/lowering/requantize.h"

#include "engine/tensor/fixed.h"

#include <math.h>
#include <string.h>

/* How results of 8 bits are rounded. */
enum form { EXACT, FAST, EVEN };

struct binary_params {
    struct ifd_low_broadcast blocks;
    enum ifd_op op;
    float min, max;
    struct ifd_q8_binary_args q8; /* what does not change from block to block */
    bool is_q8;
    enum form form;
};

/* ---- running ---- */

typedef void (*q8_kernel)(const struct ifd_q8_binary_args *args);
typedef void (*f32_kernel)(const struct ifd_binary_args *args);

static q8_kernel choose_q8(const struct ifd_kern_quant *quant, enum ifd_op op, enum form form)
{
    return form == EVEN       ? op == IFD_OP_MUL ? quant->even_mul_q8 : quant->even_add_q8
           : form == FAST     ? op == IFD_OP_MUL ? quant->scale_q8 : quant->blend_q8
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
                 const uint8_t *base[IFD_LOW_OPERANDS], const size_t offset[IFD_LOW_OPERANDS],
                 size_t rows, size_t first, size_t n)
{
    const struct ifd_low_broadcast *b = &p->blocks;
    const uint32_t row = b->rank - 2, column = b->rank - 1;
    if (p->is_q8) {
        struct ifd_q8_binary_args args = p->q8;
        args.rows = rows;
        args.n = n;
        args.a = (const ifd_q8 *)base[IFD_LOW_A] + offset[IFD_LOW_A] +
                 first * b->stride[IFD_LOW_A][column];
        args.b = (const ifd_q8 *)base[IFD_LOW_B] + offset[IFD_LOW_B] +
                 first * b->stride[IFD_LOW_B][column];
        args.out = (ifd_q8 *)(uintptr_t)base[IFD_LOW_Y] + offset[IFD_LOW_Y] + first;
        args.a_row = b->stride[IFD_LOW_A][row];
        args.b_row = b->stride[IFD_LOW_B][row];
        args.out_row = b->stride[IFD_LOW_Y][row];
        args.a_step = b->stride[IFD_LOW_A][column];
        args.b_step = b->stride[IFD_LOW_B][column];
        choose_q8(&step->kernels->quant, p->op, p->form)(&args);
        return;
    }
    const struct ifd_binary_args args = {
        .rows = rows,
        .n = n,
        .a = (const float *)(const void *)base[IFD_LOW_A] + offset[IFD_LOW_A] +
             first * b->stride[IFD_LOW_A][column],
        .b = (const float *)(const void *)base[IFD_LOW_B] + offset[IFD_LOW_B] +
             first * b->stride[IFD_LOW_B][column],
        .out = (float *)(uintptr_t)base[IFD_LOW_Y] + offset[IFD_LOW_Y] + first,
        .a_row = b->stride[IFD_LOW_A][row],
        .b_row = b->stride[IFD_LOW_B][row],
        .out_row = b->stride[IFD_LOW_Y][row],
        .a_step = b->stride[IFD_LOW_A][column],
        .b_step = b->stride[IFD_LOW_B][column],
        .min = p->min,
        .max = p->max,
    };
    choose_f32(&step->kernels->eltwise, p->op)(&args);
}

/* Walks all blocks; the team shares the rows (or the columns of a single row) of each. */
static void run_binary(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct binary_params *p = step->params;
    const struct ifd_low_broadcast *b = &p->blocks;
    const uint32_t outer = b->rank - 2;
    const uint8_t *base[IFD_LOW_OPERANDS] = {ifd_acc_in(step, frame, 0), ifd_acc_in(step, frame, 1),
                                             ifd_acc_out(step, frame)};
    const size_t rows = b->dim[outer], n = b->dim[outer + 1];
    const struct ifd_acc_range r =
        rows == 1 ? (struct ifd_acc_range){0, 1} : ifd_acc_share(frame, rows, 1);
    const struct ifd_acc_range c =
        rows == 1 ? ifd_acc_share(frame, n, 64) : (struct ifd_acc_range){0, n};
    const size_t blocks = ifd_low_broadcast_blocks(b);
    for (size_t block = 0; block < blocks && r.begin < r.end && c.begin < c.end; block++) {
        size_t offset[IFD_LOW_OPERANDS];
        ifd_low_broadcast_block(b, block, offset);
        for (int i = 0; i < IFD_LOW_OPERANDS; i++) {
            offset[i] += r.begin * b->stride[i][outer];
        }
        call(step, p, base, offset, r.end - r.begin, c.begin, c.end - c.begin);
    }
}

/* ---- compiling ---- */

bool ifd_acc_binary_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_binary_attrs *attrs = node->attrs;
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    const bool has_q8 = node->op == IFD_OP_ADD || node->op == IFD_OP_SUB || node->op == IFD_OP_MUL;
    float min = 0, max = 0;
    if ((dtype != IFD_F32 && !(has_q8 && ifd_acc_is_q8(dtype))) || node->output[0].dtype != dtype ||
        !ifd_low_clamp_f32(attrs->activation, &min, &max)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or an activation that is not a clamp",
                 ifd_dtype_name(dtype));
        return false;
    }
    if (dtype != IFD_F32 && ifd_low_wraps(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "scales that are too far apart");
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

/* Factors of LiteRT's reference kernels: sums with 20 more bits in twice the larger scale, products
 * in single precision. */
static void init_exact(const struct ifd_node_view *node, struct ifd_q8_binary_args *q8)
{
    const float a_scale = node->input[0].desc->quant.scale[0],
                b_scale = node->input[1].desc->quant.scale[0],
                y_scale = node->output[0].quant.scale[0];
    if (node->op == IFD_OP_MUL) {
        set_factor((double)(a_scale * b_scale / y_scale), &q8->out_multiplier, &q8->out_shift);
        return;
    }
    const double common = 2.0 * (double)(a_scale > b_scale ? a_scale : b_scale);
    set_factor((double)a_scale / common, &q8->a_multiplier, &q8->a_shift);
    set_factor((double)b_scale / common, &q8->b_multiplier, &q8->b_shift);
    set_factor(common / ((double)y_scale * 1048576.0), &q8->out_multiplier, &q8->out_shift);
}

/* Factors of sums have at most FACTOR_BITS, most of them behind the point: the rest is hardly ever
 * seen. */
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

static float ratio(const struct ifd_desc *x, const struct ifd_desc *y)
{
    return x->quant.scale[0] / y->quant.scale[0];
}

/* As the reference kernels of engine/ops/even.c have it: zero points of sums are part of the
 * offset. */
static void init_even(const struct ifd_node_view *node, struct ifd_q8_binary_args *q8)
{
    const struct ifd_desc *a = node->input[0].desc, *b = node->input[1].desc, *y = &node->output[0];
    const float y_zero = (float)y->quant.zero_point[0];
    const int32_t shift = ifd_acc_zero(y) - y->quant.zero_point[0];
    q8->out_zero = shift;
    if (node->op == IFD_OP_MUL) {
        q8->scale = a->quant.scale[0] * b->quant.scale[0] / y->quant.scale[0];
        q8->offset = y_zero;
        return;
    }
    q8->a_zero = shift;
    q8->b_zero = shift;
    q8->a_scale = ratio(a, y);
    q8->b_scale = ratio(b, y);
    const float zero = q8->b_scale * (float)b->quant.zero_point[0];
    q8->offset = y_zero - fmaf(q8->a_scale, (float)a->quant.zero_point[0], zero);
}

static enum form init_q8(const struct ifd_acc_lowering *lowering, const struct ifd_node_view *node,
                         struct ifd_q8_binary_args *q8)
{
    const struct ifd_binary_attrs *attrs = node->attrs;
    q8->a_zero = ifd_acc_zero(node->input[0].desc);
    q8->b_zero = ifd_acc_zero(node->input[1].desc);
    q8->out_zero = ifd_acc_zero(&node->output[0]);
    (void)ifd_acc_clamp_q8(attrs->activation, &node->output[0], &q8->out_min, &q8->out_max);
    if (ifd_low_rounds_even(node)) { /* with scales that have no fixed-point factor, too */
        init_even(node, q8);
        return EVEN;
    }
    init_exact(node, q8);
    return init_fast(node, q8) && !lowering->exact ? FAST : EXACT;
}

enum ifd_code ifd_acc_add_binary(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_binary_attrs *attrs = node->view.attrs;
    const struct ifd_shape *y = &node->view.output[0].shape;
    const uint32_t out = node->output_value[0];
    struct binary_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    if (!p) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    p->op = node->view.op;
    p->is_q8 = ifd_acc_is_q8(node->view.output[0].dtype);
    (void)ifd_low_clamp_f32(attrs->activation, &p->min, &p->max);
    ifd_low_broadcast_init(&node->view.input[0].desc->shape, &node->view.input[1].desc->shape, y,
                           &p->blocks);
    if (p->is_q8) {
        p->form = init_q8(lowering, &node->view, &p->q8);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct ifd_shape *shape = &node->view.input[i].desc->shape;
        if (ifd_shape_equal(shape, y) &&
            ifd_low_in_place(&lowering->base, node->input_value[i], out)) {
            break;
        }
    }
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code =
        ifd_acc_add_step(lowering, run_binary, p, node->input_value, 2, out, &step, err);
    if (code == IFD_OK) {
        step->max_threads = (uint32_t)(lowering->base.value[out].bytes / 4096) + 1;
        ifd_acc_name_step(lowering, p->is_q8 ? "binary_q8" : "binary_f32", 0, "%s",
                          ifd_op_def(p->op)->name);
    }
    return code;
}

/* ---- as parts of tails ---- */

static bool set_q8(struct ifd_acc_lowering *lowering, const struct ifd_node_view *node,
                   struct ifd_acc_tail_op *op)
{
    struct ifd_q8_binary_args *q8 = ifd_low_params(&lowering->base, 1, sizeof(*q8));
    if (!q8) {
        return false;
    }
    const enum form form = init_q8(lowering, node, q8);
    op->q8 = q8;
    op->binary_q8 = choose_q8(&lowering->kernels->quant, node->op, form);
    return true;
}

bool ifd_acc_binary_op(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                       struct ifd_acc_tail_op *ret)
{
    if (ifd_acc_driver_of(lowering, node) != &ifd_acc_binary) {
        return false;
    }
    const struct ifd_binary_attrs *attrs = node->view.attrs;
    *ret = (struct ifd_acc_tail_op){.name = ifd_op_def(node->view.op)->name};
    if (ifd_acc_is_q8(node->view.output[0].dtype)) {
        return set_q8(lowering, &node->view, ret);
    }
    ret->binary = choose_f32(&lowering->kernels->eltwise, node->view.op);
    return ifd_low_clamp_f32(attrs->activation, &ret->min, &ret->max);
}

/* Finds runs of element-wise operators and runs them chunk by chunk. */
#include "backends/cpuacc/ops/tail.h"

#include "backends/cpuacc/ops/binary.h"
#include "backends/cpuacc/ops/unary.h"

#include "backends/cpuacc/narrow.h"
#include "backends/lowering/moves.h"

#include <stdio.h>
#include <string.h>

/* ---- running ---- */

/* Where an operand begins for a chunk, in elements, and its steps to the next row and element. */
struct side {
    size_t offset, row, step;
};

static struct side other_side(const struct ifd_acc_tail_op *op, const struct ifd_acc_chunk *chunk)
{
    if (op->kind == IFD_LOW_OPERAND_NUMBER) {
        return (struct side){0, 0, 0};
    }
    if (op->kind == IFD_LOW_OPERAND_ROW) {
        return (struct side){chunk->column, 0, 1};
    }
    return (struct side){chunk->row * chunk->width + chunk->column, chunk->width, 1};
}

/* Rows without gaps are treated as one. */
static bool is_dense(const struct ifd_acc_tail_op *op, const struct ifd_acc_chunk *chunk)
{
    return op->kind != IFD_LOW_OPERAND_ROW && chunk->n == chunk->stride &&
           (op->kind != IFD_LOW_OPERAND_SAME || chunk->n == chunk->width);
}

static void run_f32(const struct ifd_acc_tail_op *op, const struct ifd_acc_chunk *chunk,
                    const float *x, const float *other, size_t rows, size_t n)
{
    const struct side to = other_side(op, chunk);
    const bool swap = op->comes_first;
    other += to.offset;
    op->binary(&(struct ifd_binary_args){.rows = rows,
                                         .n = n,
                                         .a = swap ? other : x,
                                         .b = swap ? x : other,
                                         .out = chunk->out,
                                         .a_row = swap ? to.row : chunk->stride,
                                         .b_row = swap ? chunk->stride : to.row,
                                         .out_row = chunk->stride,
                                         .a_step = swap ? to.step : 1,
                                         .b_step = swap ? 1 : to.step,
                                         .min = op->min,
                                         .max = op->max});
}

/* Floats of a narrow operand at a time. */
#define NARROW_PART 512

/* The same with an operand that is widened, some of a row at a time. */
static void run_narrow(const struct ifd_acc_tail_op *op, const struct ifd_acc_step *step,
                       const struct ifd_acc_chunk *chunk, const float *x, const uint16_t *other,
                       size_t rows, size_t n)
{
    float wide[NARROW_PART];
    const struct side to = other_side(op, chunk);
    const bool swap = op->comes_first;
    for (size_t i = 0; i < rows; i++) {
        for (size_t c = 0; c < n; c += NARROW_PART) {
            const size_t at = i * chunk->stride + c, left = n - c;
            const size_t count = left < NARROW_PART ? left : NARROW_PART;
            step->kernels->gemm_bf16.widen(count, other + to.offset + i * to.row + c, wide);
            op->binary(&(struct ifd_binary_args){.rows = 1,
                                                 .n = count,
                                                 .a = swap ? wide : x + at,
                                                 .b = swap ? x + at : wide,
                                                 .out = (float *)chunk->out + at,
                                                 .a_step = 1,
                                                 .b_step = 1,
                                                 .min = op->min,
                                                 .max = op->max});
        }
    }
}

static void run_q8(const struct ifd_acc_tail_op *op, const struct ifd_acc_chunk *chunk,
                   const ifd_q8 *x, const ifd_q8 *other, size_t rows, size_t n)
{
    const struct side to = other_side(op, chunk);
    const bool swap = op->comes_first;
    struct ifd_q8_binary_args args = *op->q8;
    other += to.offset;
    args.rows = rows;
    args.n = n;
    args.a = swap ? other : x;
    args.b = swap ? x : other;
    args.out = chunk->out;
    args.a_row = swap ? to.row : chunk->stride;
    args.b_row = swap ? chunk->stride : to.row;
    args.out_row = chunk->stride;
    args.a_step = swap ? to.step : 1;
    args.b_step = swap ? 1 : to.step;
    op->binary_q8(&args);
}

static void run_unary(const struct ifd_acc_tail_op *op, const struct ifd_acc_step *step,
                      const struct ifd_acc_chunk *chunk, const void *in, size_t rows, size_t n)
{
    for (size_t i = 0; i < rows; i++) {
        const size_t at = i * chunk->stride;
        if (op->table) {
            step->kernels->quant.lut_8(n, (const uint8_t *)in + at, op->table,
                                       (uint8_t *)chunk->out + at);
        } else {
            op->unary(n, (const float *)in + at, (float *)chunk->out + at, op->p0, op->p1);
        }
    }
}

void ifd_acc_run_tail(const struct ifd_acc_tail *tail, const struct ifd_acc_step *step,
                      const struct ifd_acc_frame *frame, const struct ifd_acc_chunk *chunk)
{
    const void *in = chunk->in;
    for (uint32_t i = 0; i < tail->count; i++, in = chunk->out) {
        const struct ifd_acc_tail_op *op = &tail->op[i];
        const bool dense = is_dense(op, chunk);
        const size_t rows = dense ? 1 : chunk->rows, n = dense ? chunk->rows * chunk->n : chunk->n;
        if (op->is_narrow) {
            run_narrow(op, step, chunk, in, ifd_acc_in(step, frame, op->input), rows, n);
        } else if (op->binary) {
            run_f32(op, chunk, in, ifd_acc_in(step, frame, op->input), rows, n);
        } else if (op->binary_q8) {
            run_q8(op, chunk, in, ifd_acc_in(step, frame, op->input), rows, n);
        } else {
            run_unary(op, step, chunk, in, rows, n);
        }
    }
}

/* ---- finding ---- */

/* An operator and what its nodes are. */
struct follower {
    struct ifd_low_follower found;
    struct ifd_acc_tail_op op;
};

/* Kernels for what was found. False where there are none. */
static bool make_op(struct ifd_acc_lowering *lowering, struct follower *ret)
{
    const struct ifd_low_follower *found = &ret->found;
    if (!found->node) {
        ret->op = ifd_acc_silu_op(lowering);
        return true;
    }
    if (found->kind == IFD_LOW_OPERAND_NONE) {
        return ifd_acc_unary_op(lowering, found->node, &ret->op);
    }
    if (!ifd_acc_binary_op(lowering, found->node, &ret->op)) {
        return false;
    }
    ret->op.kind = found->kind;
    ret->op.comes_first = found->comes_first;
    ret->op.is_narrow = ifd_acc_is_narrow(lowering, found->other);
    return true;
}

/* Finds a place for the operator's operand among those of the step. */
static bool place(uint32_t other, uint32_t first, uint32_t operands[IFD_ACC_STEP_INPUTS],
                  struct ifd_acc_tail_op *op)
{
    for (uint32_t i = first; other != IFD_NO_VALUE && i < IFD_ACC_STEP_INPUTS; i++) {
        if (operands[i] == IFD_NO_VALUE || operands[i] == other) {
            operands[i] = other;
            op->input = i;
            return true;
        }
    }
    return other == IFD_NO_VALUE;
}

static void append(struct ifd_acc_tail *tail, const struct ifd_acc_tail_op *op)
{
    const size_t used = strlen(tail->name);
    (void)snprintf(tail->name + used, sizeof(tail->name) - used, "+%s", op->name);
    tail->op[tail->count++] = *op;
}

/* A step that cannot write it leaves a narrow value to another step. */
static bool writes(const struct ifd_acc_lowering *lowering, uint32_t value, bool narrows)
{
    return narrows || !ifd_acc_is_narrow(lowering, value);
}

static uint32_t extend(struct ifd_acc_lowering *lowering, uint32_t value, size_t row,
                       uint32_t first, uint32_t operands[IFD_ACC_STEP_INPUTS], bool narrows,
                       struct ifd_acc_tail *tail)
{
    struct follower next = {.op = {.name = NULL}};
    while (tail->count < IFD_ACC_TAIL_MAX &&
           ifd_low_find_follower(&lowering->base, value, row, &next.found) &&
           writes(lowering, next.found.out, narrows) && make_op(lowering, &next) &&
           place(next.found.other, first, operands, &next.op)) {
        for (uint32_t i = 0; i < next.found.fused_count; i++) {
            ifd_low_fuse_node(&lowering->base, next.found.fused[i]);
        }
        append(tail, &next.op);
        value = next.found.out;
    }
    return value;
}

uint32_t ifd_acc_take_tail(struct ifd_acc_lowering *lowering, uint32_t value, uint32_t first,
                           uint32_t operands[IFD_ACC_STEP_INPUTS], bool narrows,
                           struct ifd_acc_tail *ret_tail)
{
    *ret_tail = (struct ifd_acc_tail){.count = 0};
    const size_t row = ifd_low_row_of(&lowering->base.value[value].view->desc.shape);
    return extend(lowering, value, row, first, operands, narrows, ret_tail);
}

/* ---- as a step ---- */

struct tail_params {
    struct ifd_acc_tail tail;
    size_t rows, width, element;
    bool narrow_in, narrow_out;
};

/* Bytes of each operand of a chunk: together they stay in L1. */
#define CHUNK_BYTES 8192

static size_t chunk_rows(size_t row_bytes)
{
    return row_bytes < CHUNK_BYTES ? CHUNK_BYTES / row_bytes : 1;
}

static void run_alone(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct tail_params *p = step->params;
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    const size_t row_bytes = p->width * p->element, most = chunk_rows(row_bytes);
    const struct ifd_acc_range range = ifd_acc_share(frame, p->rows, row_bytes < 64 ? 64 : 1);
    struct ifd_acc_chunk chunk = {.n = p->width, .stride = p->width, .width = p->width};
    for (chunk.row = range.begin; chunk.row < range.end; chunk.row += chunk.rows) {
        chunk.rows = range.end - chunk.row < most ? range.end - chunk.row : most;
        chunk.in = in + chunk.row * row_bytes;
        chunk.out = out + chunk.row * row_bytes;
        ifd_acc_run_tail(&p->tail, step, frame, &chunk);
    }
}

/* The same where the first operand or the result is narrow: floats between are in work memory. */
static void run_alone_narrow(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct tail_params *p = step->params;
    const struct ifd_kern_gemm_f32 *kernels = &step->kernels->gemm_bf16;
    const uint16_t *in = ifd_acc_in(step, frame, 0);
    uint16_t *out = ifd_acc_out(step, frame);
    float *wide = ifd_acc_work(step, frame);
    const size_t row_bytes = p->width * p->element, most = chunk_rows(row_bytes);
    const struct ifd_acc_range range = ifd_acc_share(frame, p->rows, row_bytes < 64 ? 64 : 1);
    struct ifd_acc_chunk chunk = {.n = p->width, .stride = p->width, .width = p->width};
    for (chunk.row = range.begin; chunk.row < range.end; chunk.row += chunk.rows) {
        chunk.rows = range.end - chunk.row < most ? range.end - chunk.row : most;
        const size_t at = chunk.row * p->width, count = chunk.rows * p->width;
        if (p->narrow_in) {
            kernels->widen(count, in + at, wide);
        }
        chunk.in = p->narrow_in ? wide : (const float *)(const void *)in + at;
        chunk.out = p->narrow_out ? wide : (float *)(void *)out + at;
        ifd_acc_run_tail(&p->tail, step, frame, &chunk);
        if (p->narrow_out) {
            kernels->narrow(count, wide, out + at);
        }
    }
}

/* Rows matter only to operands that repeat with each row; otherwise every element is a row. */
static void choose_rows(struct tail_params *p, size_t bytes, size_t row)
{
    p->width = 1;
    for (uint32_t i = 0; i < p->tail.count && bytes > 0; i++) {
        p->width = p->tail.op[i].kind == IFD_LOW_OPERAND_ROW ? row : p->width;
    }
    p->rows = bytes / (p->width * p->element);
}

static const char *kernel_name(const struct ifd_acc_tail *tail)
{
    const struct ifd_acc_tail_op *op = &tail->op[0];
    return tail->count > 1 ? "elements"
           : op->binary    ? "binary_f32"
           : op->binary_q8 ? "binary_q8"
           : op->table     ? "lut_8"
                           : "unary_f32";
}

/* The first operator: the node, or the silu that it begins. in: the value that it follows. */
static bool find_first(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                       uint32_t *ret_in, struct follower *ret)
{
    const size_t row = ifd_low_row_of(&node->view.output[0].shape);
    for (uint32_t i = 0; i < node->view.input_count && i < 2; i++) {
        const uint32_t in = node->input_value[i];
        if (in == IFD_NO_VALUE || !ifd_low_follow(&lowering->base, node, in, row, &ret->found) ||
            !make_op(lowering, ret)) {
            continue;
        }
        *ret_in = in;
        uint32_t second = 0;
        const struct ifd_partition_node *mul =
            node->view.op == IFD_OP_LOGISTIC
                ? ifd_low_silu(&lowering->base, in, ret->found.out, &second)
                : NULL;
        if (mul) {
            ifd_low_fuse_node(&lowering->base, second);
            ret->op = ifd_acc_silu_op(lowering);
            ret->found.out = mul->output_value[0];
        }
        return true;
    }
    return false;
}

static enum ifd_code add_alone(struct ifd_acc_lowering *lowering, const struct tail_params *p,
                               const uint32_t operands[IFD_ACC_STEP_INPUTS], uint32_t out,
                               size_t bytes, struct ifd_err *err)
{
    const bool is_narrow = p->narrow_in || p->narrow_out;
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code = ifd_acc_add_step(lowering, is_narrow ? run_alone_narrow : run_alone, p,
                                          operands, IFD_ACC_STEP_INPUTS, out, &step, err);
    if (code == IFD_OK && is_narrow) {
        const size_t row_bytes = p->width * p->element;
        code = ifd_acc_add_work(lowering, chunk_rows(row_bytes) * row_bytes, err);
    }
    if (code == IFD_OK) {
        step->max_threads = (uint32_t)(bytes / 4096) + 1;
        ifd_acc_name_step(lowering, kernel_name(&p->tail), 0, "%s", p->tail.name + 1);
    }
    return code;
}

bool ifd_acc_lower_tail(struct ifd_acc_lowering *lowering, const struct ifd_partition_node *node,
                        enum ifd_code *ret_code, struct ifd_err *err)
{
    struct follower first = {.op = {.name = NULL}};
    uint32_t operands[IFD_ACC_STEP_INPUTS] = {IFD_NO_VALUE, IFD_NO_VALUE, IFD_NO_VALUE,
                                              IFD_NO_VALUE};
    if (!find_first(lowering, node, &operands[0], &first)) {
        return false;
    }
    struct tail_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    if (!p) {
        *ret_code = ifd_fail(err, IFD_NOMEM, "no memory for a step");
        return true;
    }
    const size_t row = ifd_low_row_of(&node->view.output[0].shape);
    (void)place(first.found.other, 1, operands, &first.op);
    append(&p->tail, &first.op);
    const uint32_t out = extend(lowering, first.found.out, row, 1, operands, true, &p->tail);
    if (!ifd_low_in_place(&lowering->base, operands[0], out) &&
        first.op.kind == IFD_LOW_OPERAND_SAME) {
        (void)ifd_low_in_place(&lowering->base, first.found.other, out);
    }
    const size_t bytes = ifd_low_desc_bytes(&node->view.output[0]);
    p->element = ifd_dtype_bytes(node->view.output[0].dtype);
    p->narrow_in = ifd_acc_is_narrow(lowering, operands[0]);
    p->narrow_out = ifd_acc_is_narrow(lowering, out);
    choose_rows(p, bytes, row);
    *ret_code = add_alone(lowering, p, operands, out, bytes, err);
    return true;
}

enum ifd_code ifd_acc_lower_unary(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    enum ifd_code code = IFD_OK;
    return ifd_acc_lower_tail(lowering, node, &code, err)
               ? code
               : ifd_fail(err, IFD_NOMEM, "no memory for a table");
}

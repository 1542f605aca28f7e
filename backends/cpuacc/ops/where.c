/* select, comparisons and logic of two tensors: element by element, with broadcasting. */
#include "backends/cpuacc/driver.h"

#include "inferd/op_attrs.h"

#define OPERANDS 3

/* n elements; step: 0 where one operand's element serves all. */
typedef void (*row_fn)(size_t n, const void *const in[OPERANDS], const size_t step[OPERANDS],
                       void *out);

struct where_params {
    uint32_t operands, rank;                                  /* rank: ≥ 1 */
    size_t dim[IFD_MAX_RANK], stride[OPERANDS][IFD_MAX_RANK]; /* in elements */
    size_t bytes[OPERANDS], out_bytes;                        /* of an element */
    row_fn row;
};

/* ---- rows ---- */

#define SELECT(name, type)                                                                         \
    static void name(size_t n, const void *const in[OPERANDS], const size_t step[OPERANDS],        \
                     void *out)                                                                    \
    {                                                                                              \
        const uint8_t *condition = in[0];                                                          \
        const type *a = in[1], *b = in[2];                                                         \
        type *y = out;                                                                             \
        for (size_t i = 0; i < n; i++) {                                                           \
            y[i] = condition[i * step[0]] != 0 ? a[i * step[1]] : b[i * step[2]];                  \
        }                                                                                          \
    }
SELECT(select_8, uint8_t)
SELECT(select_16, uint16_t)
SELECT(select_32, uint32_t)
SELECT(select_64, uint64_t)
#undef SELECT

#define COMPARE(name, type, result)                                                                \
    static void name(size_t n, const void *const in[OPERANDS], const size_t step[OPERANDS],        \
                     void *out)                                                                    \
    {                                                                                              \
        const type *a = in[0], *b = in[1];                                                         \
        uint8_t *y = out;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            const type p = a[i * step[0]], q = b[i * step[1]];                                     \
            y[i] = (result);                                                                       \
        }                                                                                          \
    }
#define COMPARISONS(suffix, type)                                                                  \
    COMPARE(equal_##suffix, type, p == q)                                                          \
    COMPARE(not_equal_##suffix, type, p != q)                                                      \
    COMPARE(less_##suffix, type, p < q)                                                            \
    COMPARE(less_equal_##suffix, type, p <= q)
COMPARISONS(f32, float)
COMPARISONS(s32, int32_t)
COMPARISONS(s64, int64_t)
COMPARE(equal_bool, uint8_t, (p != 0) == (q != 0))
COMPARE(not_equal_bool, uint8_t, (p != 0) != (q != 0))
COMPARE(both, uint8_t, p != 0 && q != 0)
COMPARE(either, uint8_t, p != 0 || q != 0)
#undef COMPARISONS
#undef COMPARE

static row_fn select_of(enum ifd_dtype dtype)
{
    static const row_fn by_bytes[] = {
        [1] = select_8, [2] = select_16, [4] = select_32, [8] = select_64};
    const size_t bytes = dtype == IFD_STR ? 0 : ifd_dtype_bytes(dtype);
    return bytes < sizeof(by_bytes) / sizeof(by_bytes[0]) ? by_bytes[bytes] : NULL;
}

/* The greater is the less with operands that change places. */
static row_fn comparison_of(enum ifd_op op, enum ifd_dtype dtype)
{
    static const struct {
        enum ifd_op op;
        row_fn f32, s32, s64, boolean;
    } rows[] = {
        {IFD_OP_EQUAL, equal_f32, equal_s32, equal_s64, equal_bool},
        {IFD_OP_NOT_EQUAL, not_equal_f32, not_equal_s32, not_equal_s64, not_equal_bool},
        {IFD_OP_LESS, less_f32, less_s32, less_s64, NULL},
        {IFD_OP_LESS_EQUAL, less_equal_f32, less_equal_s32, less_equal_s64, NULL},
        {IFD_OP_GREATER, less_f32, less_s32, less_s64, NULL},
        {IFD_OP_GREATER_EQUAL, less_equal_f32, less_equal_s32, less_equal_s64, NULL},
        {IFD_OP_LOGICAL_AND, NULL, NULL, NULL, both},
        {IFD_OP_LOGICAL_OR, NULL, NULL, NULL, either},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].op == op) {
            return dtype == IFD_F32    ? rows[i].f32
                   : dtype == IFD_S32  ? rows[i].s32
                   : dtype == IFD_S64  ? rows[i].s64
                   : dtype == IFD_BOOL ? rows[i].boolean
                                       : NULL;
        }
    }
    return NULL;
}

static row_fn row_of(const struct ifd_node_view *node)
{
    return node->op == IFD_OP_SELECT ? select_of(node->output[0].dtype)
                                     : comparison_of(node->op, node->input[0].desc->dtype);
}

/* ---- running ---- */

static void run_where(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct where_params *p = step->params;
    const uint32_t last = p->rank - 1;
    size_t rows = 1, inner[OPERANDS] = {0}, at[IFD_MAX_RANK] = {0};
    const void *in[OPERANDS] = {NULL};
    const uint8_t *from[OPERANDS] = {NULL};
    for (uint32_t d = 0; d < last; d++) {
        rows *= p->dim[d];
    }
    const struct ifd_acc_range all = {0, p->dim[last]}, one = {0, 1};
    const struct ifd_acc_range columns = rows == 1 ? ifd_acc_share(frame, p->dim[last], 64) : all;
    const struct ifd_acc_range range = rows == 1 ? one : ifd_acc_share(frame, rows, 1);
    for (uint32_t i = 0; i < p->operands; i++) {
        inner[i] = p->stride[i][last];
        from[i] =
            (const uint8_t *)ifd_acc_in(step, frame, i) + columns.begin * inner[i] * p->bytes[i];
    }
    size_t rest = range.begin;
    for (uint32_t d = last; range.begin < range.end && d-- > 0; rest /= p->dim[d]) {
        at[d] = rest % p->dim[d];
    }
    uint8_t *out = (uint8_t *)ifd_acc_out(step, frame) +
                   (range.begin * p->dim[last] + columns.begin) * p->out_bytes;
    for (size_t r = range.begin; r < range.end; r++, out += p->dim[last] * p->out_bytes) {
        for (uint32_t i = 0; i < p->operands; i++) {
            size_t offset = 0;
            for (uint32_t d = 0; d < last; d++) {
                offset += at[d] * p->stride[i][d];
            }
            in[i] = from[i] + offset * p->bytes[i];
        }
        p->row(columns.end - columns.begin, in, inner, out);
        for (uint32_t d = last; d-- > 0 && ++at[d] == p->dim[d];) {
            at[d] = 0;
        }
    }
}

/* ---- compiling ---- */

/* Strides of an operand in the output's dimensions. rank: its own, or more: dimensions of 1 follow
 * then. */
static void set_strides(const struct ifd_shape *shape, uint32_t rank, const struct ifd_shape *out,
                        size_t *stride)
{
    const uint32_t skipped = out->rank - rank;
    size_t step = 1;
    for (uint32_t d = out->rank; d-- > 0;) {
        const bool has = d >= skipped && d - skipped < shape->rank;
        const size_t dim = has ? (size_t)shape->dim[d - skipped] : 1;
        stride[d] = dim > 1 ? step : 0;
        step *= dim;
    }
}

/* Drops dimensions of 1 and joins those that every operand passes in one go. */
static void merge(struct where_params *p)
{
    uint32_t rank = 0;
    for (uint32_t d = 0; d < p->rank; d++) {
        if (p->dim[d] == 1) {
            continue;
        }
        bool joins = rank > 0;
        for (uint32_t i = 0; joins && i < p->operands; i++) {
            joins = p->stride[i][rank - 1] == p->stride[i][d] * p->dim[d];
        }
        rank += joins ? 0 : 1;
        p->dim[rank - 1] = joins ? p->dim[rank - 1] * p->dim[d] : p->dim[d];
        for (uint32_t i = 0; i < p->operands; i++) {
            p->stride[i][rank - 1] = p->stride[i][d];
        }
    }
    p->dim[0] = rank == 0 ? 1 : p->dim[0];
    p->rank = rank == 0 ? 1 : rank;
}

static bool where_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (!row_of(node)) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(node->input[0].desc->dtype));
        return false;
    }
    return true;
}

static bool is_greater(enum ifd_op op)
{
    return op == IFD_OP_GREATER || op == IFD_OP_GREATER_EQUAL;
}

static enum ifd_code where_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_node_view *view = &node->view;
    const struct ifd_select_attrs *attrs = view->attrs;
    const struct ifd_shape *out = &view->output[0].shape;
    const uint32_t operands = view->op == IFD_OP_SELECT ? 3 : 2;
    uint32_t value[OPERANDS] = {IFD_NO_VALUE, IFD_NO_VALUE, IFD_NO_VALUE};
    uint32_t order[OPERANDS] = {0, 1, 2};
    if (is_greater(view->op)) {
        order[0] = 1;
        order[1] = 0;
    }
    for (uint32_t i = 0; i < operands; i++) {
        value[i] = node->input_value[order[i]];
    }
    struct where_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, run_where, p, value, operands,
                                                node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    p->operands = operands;
    p->rank = out->rank;
    p->row = row_of(view);
    p->out_bytes = ifd_dtype_bytes(view->output[0].dtype);
    for (uint32_t d = 0; d < out->rank; d++) {
        p->dim[d] = (size_t)out->dim[d];
    }
    for (uint32_t i = 0; i < operands; i++) {
        const struct ifd_desc *desc = view->input[order[i]].desc;
        const uint32_t rank = view->input[1].desc->shape.rank;
        const bool leading = view->op == IFD_OP_SELECT && i == 0 && attrs->leading &&
                             desc->shape.rank == 1 && rank > 1;
        p->bytes[i] = ifd_dtype_bytes(desc->dtype);
        set_strides(&desc->shape, leading ? rank : desc->shape.rank, out, p->stride[i]);
    }
    merge(p);
    step->max_threads = (uint32_t)(ifd_low_desc_bytes(&view->output[0]) / 4096) + 1;
    ifd_acc_name_step(lowering, "", 0, "%s", ifd_op_def(view->op)->name);
    return IFD_OK;
}

const struct ifd_acc_driver ifd_acc_where = {.takes = where_takes, .lower = where_lower};

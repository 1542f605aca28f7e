/* arg_max and arg_min; reductions that are folds of one operation: maximum, minimum, product, any,
 * all, sums of whole numbers. */
#include "backends/cpuacc/ops/reduce.h"

#include "inferd/op_attrs.h"

/* Columns of n elements, row apart. */
typedef void (*fold_fn)(const struct ifd_acc_step *step, const struct ifd_extreme_args *args);

struct fold_params {
    struct ifd_acc_split split;
    size_t in_bytes, out_bytes; /* of an element */
    bool is_min;
    fold_fn fold;
};

/* ---- folds ---- */

static void extreme_f32(const struct ifd_acc_step *step, const struct ifd_extreme_args *args)
{
    step->kernels->extreme.f32(args);
}

static void extreme_q8(const struct ifd_acc_step *step, const struct ifd_extreme_args *args)
{
    step->kernels->extreme.q8(args);
}

static void arg_f32(const struct ifd_acc_step *step, const struct ifd_extreme_args *args)
{
    step->kernels->extreme.arg_f32(args);
}

static void arg_q8(const struct ifd_acc_step *step, const struct ifd_extreme_args *args)
{
    step->kernels->extreme.arg_q8(args);
}

/* x: the next element, y: the result so far. Whole numbers wrap around. */
#define FOLD(name, type, start, result)                                                            \
    static void name(const struct ifd_acc_step *step, const struct ifd_extreme_args *args)         \
    {                                                                                              \
        const type *in = args->in;                                                                 \
        type *out = args->out;                                                                     \
        (void)step;                                                                                \
        for (size_t c = 0; c < args->n; c++) {                                                     \
            type y = (start);                                                                      \
            for (size_t k = 0; k < args->count; k++) {                                             \
                const type x = in[k * args->row + c];                                              \
                y = (result);                                                                      \
            }                                                                                      \
            out[c] = y;                                                                            \
        }                                                                                          \
    }
FOLD(max_s32, int32_t, INT32_MIN, x > y ? x : y)
FOLD(min_s32, int32_t, INT32_MAX, x < y ? x : y)
FOLD(max_s64, int64_t, INT64_MIN, x > y ? x : y)
FOLD(min_s64, int64_t, INT64_MAX, x < y ? x : y)
FOLD(product_f32, float, 1, y *x)
FOLD(product_32, uint32_t, 1, y *x)
FOLD(product_64, uint64_t, 1, y *x)
FOLD(sum_32, uint32_t, 0, y + x)
FOLD(sum_64, uint64_t, 0, y + x)
FOLD(any, uint8_t, 0, y | (x != 0))
FOLD(all, uint8_t, 1, y &(x != 0))
#undef FOLD

static fold_fn of_type(enum ifd_dtype dtype, fold_fn f32, fold_fn q8, fold_fn s32, fold_fn s64)
{
    return dtype == IFD_F32       ? f32
           : ifd_acc_is_q8(dtype) ? q8
           : dtype == IFD_S32     ? s32
           : dtype == IFD_S64     ? s64
                                  : NULL;
}

/* NULL if there is none. */
static fold_fn fold_of(const struct ifd_node_view *node)
{
    const enum ifd_dtype dtype = node->input[0].desc->dtype;
    switch ((int)node->op) {
    case IFD_OP_ARG_MAX:
    case IFD_OP_ARG_MIN:
        return of_type(dtype, arg_f32, arg_q8, NULL, NULL);
    case IFD_OP_REDUCE_MAX:
        return of_type(dtype, extreme_f32, extreme_q8, max_s32, max_s64);
    case IFD_OP_REDUCE_MIN:
        return of_type(dtype, extreme_f32, extreme_q8, min_s32, min_s64);
    case IFD_OP_REDUCE_PROD:
        return of_type(dtype, product_f32, NULL, product_32, product_64);
    case IFD_OP_REDUCE_SUM:
        return of_type(dtype, NULL, NULL, sum_32, sum_64);
    case IFD_OP_REDUCE_ANY:
        return dtype == IFD_BOOL ? any : NULL;
    case IFD_OP_REDUCE_ALL:
        return dtype == IFD_BOOL ? all : NULL;
    default:
        return NULL;
    }
}

/* ---- running ---- */

/* Indices that go through the stack before they become 64 bits. */
#define INDICES 64

static void run_indices_64(const struct ifd_acc_step *step, struct ifd_extreme_args args)
{
    const struct fold_params *p = step->params;
    const uint8_t *in = args.in;
    int64_t *out = args.out;
    int32_t at[INDICES];
    const size_t n = args.n;
    for (size_t c = 0; c < n; c += INDICES) {
        args.n = n - c < INDICES ? n - c : INDICES;
        args.in = in + c * p->in_bytes;
        args.out = at;
        p->fold(step, &args);
        for (size_t i = 0; i < args.n; i++) {
            out[c + i] = at[i];
        }
    }
}

static void run_fold(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct fold_params *p = step->params;
    const struct ifd_acc_split *s = &p->split;
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    const bool by_columns = s->outer == 1 && s->inner > 1;
    const struct ifd_acc_range range =
        by_columns ? ifd_acc_share(frame, s->inner, 16) : ifd_acc_share(frame, s->outer, 1);
    const struct ifd_acc_range all = {0, s->inner}, one = {0, 1};
    const struct ifd_acc_range columns = by_columns ? range : all,
                               blocks = by_columns ? one : range;
    struct ifd_extreme_args args = {.count = s->reduced,
                                    .n = columns.end - columns.begin,
                                    .row = s->inner,
                                    .is_min = p->is_min};
    const bool is_wide = p->out_bytes == sizeof(int64_t) && p->in_bytes < sizeof(int64_t);
    for (size_t o = blocks.begin; o < blocks.end; o++) {
        args.in = in + (o * s->reduced * s->inner + columns.begin) * p->in_bytes;
        args.out = out + (o * s->inner + columns.begin) * p->out_bytes;
        if (is_wide) {
            run_indices_64(step, args);
        } else {
            p->fold(step, &args);
        }
    }
}

/* ---- compiling ---- */

static bool is_arg(const struct ifd_node_view *node)
{
    return node->op == IFD_OP_ARG_MAX || node->op == IFD_OP_ARG_MIN;
}

static bool split_at_axis(const struct ifd_node_view *node, struct ifd_acc_split *ret)
{
    const struct ifd_arg_attrs *attrs = node->attrs;
    const struct ifd_shape *shape = &node->input[0].desc->shape;
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)shape->rank : attrs->axis);
    *ret = (struct ifd_acc_split){.outer = 1, .reduced = (size_t)shape->dim[axis], .inner = 1};
    for (uint32_t d = 0; d < shape->rank; d++) {
        *(d < axis ? &ret->outer : &ret->inner) *= d == axis ? 1 : (size_t)shape->dim[d];
    }
    return ret->outer * ret->reduced * ret->inner > 0 && ret->reduced <= INT32_MAX;
}

static bool fold_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    struct ifd_acc_split split;
    const bool takes = fold_of(node) && (is_arg(node) ? split_at_axis(node, &split)
                                                      : ifd_acc_split_reduced(node, &split));
    if (!takes) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s, or axes that are not adjacent",
                 ifd_dtype_name(node->input[0].desc->dtype));
    }
    return takes;
}

static enum ifd_code fold_lower(struct ifd_acc_lowering *lowering,
                                const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_node_view *view = &node->view;
    struct fold_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, run_fold, p, node->input_value, 1,
                                                node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct fold_params){.in_bytes = ifd_dtype_bytes(view->input[0].desc->dtype),
                              .out_bytes = ifd_dtype_bytes(view->output[0].dtype),
                              .is_min = view->op == IFD_OP_ARG_MIN || view->op == IFD_OP_REDUCE_MIN,
                              .fold = fold_of(view)};
    (void)(is_arg(view) ? split_at_axis(view, &p->split) : ifd_acc_split_reduced(view, &p->split));
    step->max_threads =
        (uint32_t)(p->split.outer * p->split.reduced * p->split.inner / IFD_ACC_REDUCE_VALUES) + 1;
    ifd_acc_name_step(lowering, "", 0, "%s", ifd_op_def(view->op)->name);
    return IFD_OK;
}

const struct ifd_acc_driver ifd_acc_fold = {.takes = fold_takes, .lower = fold_lower};

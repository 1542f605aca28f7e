/* cumsum and top_k along a dimension. */
#include "backends/cpuacc/driver.h"

#include "inferd/op_attrs.h"

#include <string.h>

/* ---- cumsum: rows of inner elements, each the one before and its own ---- */

struct cumsum_params {
    size_t outer, count, inner;
    bool exclusive, reverse;
    void (*run)(const struct cumsum_params *p, const void *in, void *out, size_t block);
};

/* Whole numbers wrap around. */
#define CUMSUM(name, type)                                                                         \
    static void name(const struct cumsum_params *p, const void *in, void *out, size_t block)       \
    {                                                                                              \
        const size_t n = p->inner, first = block * p->count * n;                                   \
        const type *x = (const type *)in + first;                                                  \
        type *y = (type *)out + first;                                                             \
        for (size_t k = 0, last = 0; k < p->count; k++) {                                          \
            const size_t row = (p->reverse ? p->count - 1 - k : k) * n;                            \
            for (size_t i = 0; i < n; i++) {                                                       \
                const type sum = k > 0 ? y[last + i] : 0, skipped = k > 0 ? x[last + i] : 0;       \
                y[row + i] = sum + (p->exclusive ? skipped : x[row + i]);                          \
            }                                                                                      \
            last = row;                                                                            \
        }                                                                                          \
    }
CUMSUM(cumsum_f32, float)
CUMSUM(cumsum_32, uint32_t)
CUMSUM(cumsum_64, uint64_t)
#undef CUMSUM

static void run_cumsum(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct cumsum_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->outer, 1);
    for (size_t o = range.begin; o < range.end; o++) {
        p->run(p, ifd_acc_in(step, frame, 0), ifd_acc_out(step, frame), o);
    }
}

static bool cumsum_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    return ifd_low_has_one_input(node, reason);
}

static enum ifd_code cumsum_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_cumsum_attrs *attrs = node->view.attrs;
    const struct ifd_desc *desc = node->view.input[0].desc;
    const struct ifd_shape *shape = &desc->shape;
    const uint32_t axis =
        (uint32_t)(attrs->axis < 0 ? attrs->axis + (int32_t)shape->rank : attrs->axis);
    struct cumsum_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code = ifd_acc_add_step(lowering, run_cumsum, p, node->input_value, 1,
                                                node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct cumsum_params){.outer = 1,
                                .count = (size_t)shape->dim[axis],
                                .inner = 1,
                                .exclusive = attrs->exclusive,
                                .reverse = attrs->reverse,
                                .run = desc->dtype == IFD_F32   ? cumsum_f32
                                       : desc->dtype == IFD_S32 ? cumsum_32
                                                                : cumsum_64};
    for (uint32_t d = 0; d < shape->rank; d++) {
        *(d < axis ? &p->outer : &p->inner) *= d == axis ? 1 : (size_t)shape->dim[d];
    }
    step->max_threads = (uint32_t)(ifd_low_desc_bytes(desc) / 8192) + 1;
    ifd_acc_name_step(lowering, "", 0, "cumsum");
    return IFD_OK;
}

const struct ifd_acc_driver ifd_acc_cumsum = {.takes = cumsum_takes, .lower = cumsum_lower};

/* ---- top_k: a heap of the best so far, whose root is the last of them ---- */

struct top_k_params {
    size_t rows, count, k;
    size_t bytes; /* of an element */
    bool is_wide; /* indices of 64 bits */
    void (*choose)(const void *row, size_t count, size_t k, int32_t *heap);
};

/* Writes the indices of the k best of a row, the best one first; of equal ones the lower index. */
#define TOP_K(suffix, type)                                                                        \
    static bool precedes_##suffix(const type *row, int32_t i, int32_t k)                           \
    {                                                                                              \
        return row[i] > row[k] || (i < k && !(row[k] > row[i]));                                   \
    }                                                                                              \
    static void sink_##suffix(const type *row, int32_t *heap, size_t count, size_t at)             \
    {                                                                                              \
        for (;;) {                                                                                 \
            size_t last = at;                                                                      \
            for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {       \
                last = precedes_##suffix(row, heap[last], heap[child]) ? child : last;             \
            }                                                                                      \
            if (last == at) {                                                                      \
                return;                                                                            \
            }                                                                                      \
            const int32_t moved = heap[at];                                                        \
            heap[at] = heap[last];                                                                 \
            heap[last] = moved;                                                                    \
            at = last;                                                                             \
        }                                                                                          \
    }                                                                                              \
    static void choose_##suffix(const void *data, size_t count, size_t k, int32_t *heap)           \
    {                                                                                              \
        const type *row = data;                                                                    \
        for (size_t i = 0; i < k; i++) {                                                           \
            heap[i] = (int32_t)i;                                                                  \
        }                                                                                          \
        for (size_t i = k / 2; i-- > 0;) {                                                         \
            sink_##suffix(row, heap, k, i);                                                        \
        }                                                                                          \
        for (size_t i = k; i < count; i++) { /* behind all of the heap: equal ones stay out */     \
            if (row[i] > row[heap[0]]) {                                                           \
                heap[0] = (int32_t)i;                                                              \
                sink_##suffix(row, heap, k, 0);                                                    \
            }                                                                                      \
        }                                                                                          \
        for (size_t left = k; left-- > 1;) {                                                       \
            const int32_t root = heap[0];                                                          \
            heap[0] = heap[left];                                                                  \
            heap[left] = root;                                                                     \
            sink_##suffix(row, heap, left, 0);                                                     \
        }                                                                                          \
    }
TOP_K(f32, float)
TOP_K(q8, ifd_q8)
TOP_K(s32, int32_t)
#undef TOP_K

static void run_top_k(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct top_k_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->k > 0 ? p->rows : 0, 1);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    uint8_t *out = ifd_acc_out(step, frame);
    void *indices = ifd_acc_more_out(step, frame, 0);
    int32_t *heap = ifd_acc_work(step, frame);
    for (size_t r = range.begin; r < range.end; r++) {
        const uint8_t *row = in + r * p->count * p->bytes;
        p->choose(row, p->count, p->k, heap);
        for (size_t i = 0; i < p->k; i++) {
            const size_t to = r * p->k + i;
            memcpy(out + to * p->bytes, row + (size_t)heap[i] * p->bytes, p->bytes);
            if (p->is_wide) {
                ((int64_t *)indices)[to] = heap[i];
            } else {
                ((int32_t *)indices)[to] = heap[i];
            }
        }
    }
}

static bool top_k_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_desc *in = node->input[0].desc;
    if ((in->dtype != IFD_F32 && in->dtype != IFD_S32 && !ifd_acc_is_q8(in->dtype)) ||
        in->shape.dim[in->shape.rank - 1] > INT32_MAX) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(in->dtype));
        return false;
    }
    return true;
}

static enum ifd_code top_k_lower(struct ifd_acc_lowering *lowering,
                                 const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *in = node->view.input[0].desc, *out = &node->view.output[0];
    const uint32_t last = in->shape.rank - 1;
    struct top_k_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code = ifd_acc_add_step(lowering, run_top_k, p, node->input_value, 1,
                                          node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct top_k_params){.rows = 1,
                               .count = (size_t)in->shape.dim[last],
                               .k = (size_t)out->shape.dim[last],
                               .bytes = ifd_dtype_bytes(in->dtype),
                               .is_wide = node->view.output[1].dtype == IFD_S64,
                               .choose = in->dtype == IFD_F32   ? choose_f32
                                         : in->dtype == IFD_S32 ? choose_s32
                                                                : choose_q8};
    for (uint32_t d = 0; d < last; d++) {
        p->rows *= (size_t)in->shape.dim[d];
    }
    ifd_acc_add_output(lowering, 0, node->output_value[1]);
    step->max_threads = (uint32_t)(p->rows * p->count / 8192) + 1;
    ifd_acc_name_step(lowering, "", 0, "top_k");
    return ifd_acc_add_work(lowering, p->k * sizeof(int32_t), err);
}

const struct ifd_acc_driver ifd_acc_top_k = {.takes = top_k_takes, .lower = top_k_lower};

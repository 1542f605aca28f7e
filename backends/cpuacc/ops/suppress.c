/* non_max_suppression, with the numbers of the reference kernel: corners and areas are found once,
 * a box is compared with sixteen kept ones at a time, and only as many are sorted as are needed. */
#include "backends/cpuacc/driver.h"

#include "inferd/op_attrs.h"

#include <math.h>
#include <string.h>

#define BLOCK 16

/* Corners and areas, n of each. */
struct boxes {
    float *y0, *x0, *y1, *x1, *area;
};

struct suppress_params {
    size_t batches, classes, boxes, most, room;
    const struct ifd_non_max_suppression_attrs *attrs;
};

static struct boxes boxes_at(float *memory, size_t n)
{
    return (struct boxes){memory, memory + n, memory + 2 * n, memory + 3 * n, memory + 4 * n};
}

static void read_boxes(const struct suppress_params *p, const float *at, struct boxes *ret)
{
    for (size_t i = 0; i < p->boxes; i++, at += 4) {
        if (p->attrs->is_centered) {
            const float w = at[2] / 2, h = at[3] / 2;
            ret->y0[i] = at[1] - h;
            ret->x0[i] = at[0] - w;
            ret->y1[i] = at[1] + h;
            ret->x1[i] = at[0] + w;
        } else {
            ret->y0[i] = fminf(at[0], at[2]);
            ret->x0[i] = fminf(at[1], at[3]);
            ret->y1[i] = fmaxf(at[0], at[2]);
            ret->x1[i] = fmaxf(at[1], at[3]);
        }
        ret->area[i] = (ret->y1[i] - ret->y0[i]) * (ret->x1[i] - ret->x0[i]);
    }
}

/* fmaxf and fminf without calls. */
static inline float larger(float a, float b)
{
    return a >= b || b != b ? a : b;
}

static inline float smaller(float a, float b)
{
    return a <= b || b != b ? a : b;
}

/* Does box i hide behind one of the kept ones? Boxes without area overlap nothing. */
static bool is_hidden(const struct boxes *all, size_t i, const struct boxes *kept, size_t count,
                      float threshold)
{
    const float y0 = all->y0[i], x0 = all->x0[i], y1 = all->y1[i], x1 = all->x1[i];
    const float area = all->area[i];
    for (size_t k = 0; k < count; k += BLOCK) {
        int hides = 0;
        for (size_t j = k; j < k + BLOCK; j++) { /* those behind count have no area */
            const float top = larger(y0, kept->y0[j]), left = larger(x0, kept->x0[j]);
            const float bottom = smaller(y1, kept->y1[j]), right = smaller(x1, kept->x1[j]);
            const float shared = (bottom - top) * (right - left), other = kept->area[j];
            const int meets = (bottom > top) & (right > left) & (area > 0) & (other > 0);
            hides |= meets & (shared / (area + other - shared) > threshold);
        }
        if (hides) {
            return true;
        }
    }
    return false;
}

/* ---- the best first: a heap ---- */

static bool precedes(const float *score, int32_t i, int32_t k)
{
    return score[i] > score[k] || (score[i] == score[k] && i < k);
}

static void sink(const float *score, int32_t *heap, size_t count, size_t at)
{
    for (;;) {
        size_t best = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            best = precedes(score, heap[child], heap[best]) ? child : best;
        }
        if (best == at) {
            return;
        }
        const int32_t moved = heap[at];
        heap[at] = heap[best];
        heap[best] = moved;
        at = best;
    }
}

static size_t gather(const struct suppress_params *p, const float *score, int32_t *heap)
{
    size_t count = 0;
    for (size_t i = 0; i < p->boxes; i++) {
        heap[count] = (int32_t)i;
        count += p->attrs->has_score ? score[i] > p->attrs->score_threshold : score[i] == score[i];
    }
    for (size_t i = count / 2; i-- > 0;) {
        sink(score, heap, count, i);
    }
    return count;
}

/* ---- running ---- */

static void keep(const struct boxes *all, size_t i, const struct boxes *kept, size_t at)
{
    kept->y0[at] = all->y0[i];
    kept->x0[at] = all->x0[i];
    kept->y1[at] = all->y1[i];
    kept->x1[at] = all->x1[i];
    kept->area[at] = all->area[i];
}

/* Numbers of boxes that may be kept, in whole blocks. */
static size_t kept_room(const struct suppress_params *p)
{
    return (p->most + BLOCK - 1) / BLOCK * BLOCK;
}

/* One class; returns how many rows of (batch, class, box) it wrote. */
static size_t run_class(const struct suppress_params *p, const struct boxes *all,
                        const struct boxes *kept, int32_t *heap, const float *score, size_t row,
                        int64_t *to)
{
    size_t left = gather(p, score, heap), count = 0;
    memset(kept->area, 0, kept_room(p) * sizeof(*kept->area));
    while (left > 0 && count < p->most) {
        const size_t i = (size_t)heap[0];
        heap[0] = heap[--left];
        sink(score, heap, left, 0);
        if (!is_hidden(all, i, kept, count, p->attrs->iou_threshold)) {
            keep(all, i, kept, count);
            to[3 * count] = (int64_t)(row / p->classes);
            to[3 * count + 1] = (int64_t)(row % p->classes);
            to[3 * count++ + 2] = (int64_t)i;
        }
    }
    return count;
}

static void run_suppress(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct suppress_params *p = step->params;
    const float *at = ifd_acc_in(step, frame, 0), *score = ifd_acc_in(step, frame, 1);
    int64_t *to = ifd_acc_out(step, frame), *found = ifd_acc_more_out(step, frame, 0);
    float *work = ifd_acc_work(step, frame);
    const size_t room = kept_room(p);
    struct boxes all = boxes_at(work, p->boxes);
    const struct boxes kept = boxes_at(work + 5 * p->boxes, room);
    int32_t *heap = (int32_t *)(void *)(work + 5 * (p->boxes + room));
    size_t count = 0;
    memset(kept.y0, 0, 5 * room * sizeof(float));
    for (size_t row = 0; row < p->batches * p->classes; row++) {
        if (row % p->classes == 0) {
            read_boxes(p, at + row / p->classes * p->boxes * 4, &all);
        }
        count += run_class(p, &all, &kept, heap, score + row * p->boxes, row, to + 3 * count);
    }
    memset(to + 3 * count, 0, (p->room - count) * 3 * sizeof(*to));
    *found = (int64_t)count;
}

/* ---- compiling ---- */

static bool suppress_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    if (node->input[1].desc->shape.dim[2] > INT32_MAX / 64) {
        ifd_fail(reason, IFD_UNSUPPORTED, "too many boxes");
        return false;
    }
    return true;
}

static enum ifd_code suppress_lower(struct ifd_acc_lowering *lowering,
                                    const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_non_max_suppression_attrs *attrs = node->view.attrs;
    const int64_t *dim = node->view.input[1].desc->shape.dim;
    struct suppress_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    struct ifd_acc_draft *step = NULL;
    enum ifd_code code = ifd_acc_add_step(lowering, run_suppress, p, node->input_value, 2,
                                          node->output_value[0], &step, err);
    if (code != IFD_OK) {
        return code;
    }
    *p = (struct suppress_params){
        .batches = (size_t)dim[0],
        .classes = (size_t)dim[1],
        .boxes = (size_t)dim[2],
        .most = (size_t)(attrs->max_boxes < dim[2] ? attrs->max_boxes : dim[2]),
        .room = (size_t)node->view.output[0].shape.dim[0],
        .attrs = attrs};
    ifd_acc_add_output(lowering, 0, node->output_value[1]);
    ifd_acc_name_step(lowering, "", 0, "non_max_suppression");
    return ifd_acc_add_work_of_one(lowering,
                                   (5 * (p->boxes + kept_room(p)) + p->boxes) * sizeof(float), err);
}

const struct ifd_acc_driver ifd_acc_suppress = {.takes = suppress_takes, .lower = suppress_lower};

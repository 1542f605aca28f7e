/* non_max_suppression: the best boxes of each class, without those that overlap a better one. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>
#include <string.h>

extern const struct ifd_op_def ifd_op_non_max_suppression;

enum { BOXES, SCORES };

static int64_t kept_most(const struct ifd_non_max_suppression_attrs *attrs, int64_t boxes)
{
    return attrs->max_boxes < boxes ? attrs->max_boxes : boxes;
}

static enum ifd_code suppress_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                    struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_non_max_suppression;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    for (uint32_t i = 0; code == IFD_OK && i < 2; i++) {
        code = ifd_infer_rank(def, in, i, 3, err);
        if (code == IFD_OK) {
            code = ifd_infer_dtype(def, in, i, IFD_BIT(IFD_F32), err);
        }
        if (code == IFD_OK) {
            code = ifd_infer_output_dtype(def, output, i, IFD_S64, err);
        }
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *boxes = &in->input[BOXES].desc->shape;
    const struct ifd_shape *scores = &in->input[SCORES].desc->shape;
    const struct ifd_shape one = {.rank = 1, .dim = {1}};
    struct ifd_shape room = {.rank = 2, .dim = {0, 3}};
    if (boxes->dim[2] != 4 || scores->dim[0] != boxes->dim[0] || scores->dim[2] != boxes->dim[1]) {
        return ifd_fail(err, IFD_INVALID,
                        "non_max_suppression: boxes %s and scores %s, expected [b,n,4] and [b,c,n]",
                        ifd_shape_text(boxes).s, ifd_shape_text(scores).s);
    }
    if (!ifd_dim_mul(scores->dim[0], scores->dim[1], &room.dim[0]) ||
        !ifd_dim_mul(room.dim[0], kept_most(in->attrs, boxes->dim[1]), &room.dim[0])) {
        return ifd_fail(err, IFD_TOO_LARGE, "non_max_suppression: %s are too many scores",
                        ifd_shape_text(scores).s);
    }
    code = ifd_infer_output(def, output, 0, &room, err);
    return code == IFD_OK ? ifd_infer_output(def, output, 1, &one, err) : code;
}

/* Two lists of boxes for sorting. */
static enum ifd_code suppress_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                      size_t *ret_bytes, struct ifd_err *err)
{
    (void)output;
    const size_t boxes = (size_t)in->input[BOXES].desc->shape.dim[1];
    return ifd_size_mul(boxes, 2 * sizeof(int64_t), ret_bytes)
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE, "non_max_suppression: %zu boxes are too many", boxes);
}

struct box {
    float y0, x0, y1, x1;
};

static struct box box_at(const struct ifd_non_max_suppression_attrs *attrs, const float *at)
{
    if (attrs->is_centered) {
        const float w = at[2] / 2, h = at[3] / 2;
        return (struct box){.y0 = at[1] - h, .x0 = at[0] - w, .y1 = at[1] + h, .x1 = at[0] + w};
    }
    return (struct box){.y0 = fminf(at[0], at[2]),
                        .x0 = fminf(at[1], at[3]),
                        .y1 = fmaxf(at[0], at[2]),
                        .x1 = fmaxf(at[1], at[3])};
}

static float area_of(const struct box *box)
{
    return (box->y1 - box->y0) * (box->x1 - box->x0);
}

/* Boxes without area overlap nothing. */
static bool overlap(const struct ifd_non_max_suppression_attrs *attrs, const float *a,
                    const float *b)
{
    const struct box x = box_at(attrs, a), y = box_at(attrs, b);
    const struct box both = {.y0 = fmaxf(x.y0, y.y0),
                             .x0 = fmaxf(x.x0, y.x0),
                             .y1 = fminf(x.y1, y.y1),
                             .x1 = fminf(x.x1, y.x1)};
    const float area_x = area_of(&x), area_y = area_of(&y);
    if (!(both.y1 > both.y0 && both.x1 > both.x0 && area_x > 0 && area_y > 0)) {
        return false;
    }
    const float shared = area_of(&both);
    return shared / (area_x + area_y - shared) > attrs->iou_threshold;
}

static void merge_runs(const float *score, int64_t count, int64_t width, const int64_t *from,
                       int64_t *to)
{
    for (int64_t begin = 0; begin < count; begin += 2 * width) {
        const int64_t middle = begin + width < count ? begin + width : count;
        const int64_t end = begin + 2 * width < count ? begin + 2 * width : count;
        int64_t i = begin, k = middle;
        for (int64_t at = begin; at < end; at++) {
            const bool takes_left = i < middle && (k == end || score[from[i]] >= score[from[k]]);
            to[at] = takes_left ? from[i++] : from[k++];
        }
    }
}

/* Boxes whose score counts, best first, of equal ones the first. list: two lists. */
static int64_t *sort_boxes(const struct ifd_non_max_suppression_attrs *attrs, const float *score,
                           int64_t boxes, int64_t *list, int64_t *ret_count)
{
    int64_t *other = list + boxes;
    int64_t count = 0;
    for (int64_t i = 0; i < boxes; i++) {
        const bool counts = attrs->has_score
                                ? score[i] > attrs->score_threshold
                                : score[i] == score[i]; /* not NaN, which has no order */
        list[count] = i;
        count += counts;
    }
    for (int64_t width = 1; width < count; width *= 2) {
        merge_runs(score, count, width, list, other);
        int64_t *sorted = other;
        other = list;
        list = sorted;
    }
    *ret_count = count;
    return list;
}

/* Moves the boxes that stay to the front of the list. */
static int64_t suppress(const struct ifd_non_max_suppression_attrs *attrs, const float *boxes,
                        int64_t *list, int64_t count, int64_t most)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count && kept < most; i++) {
        bool stays = true;
        for (int64_t k = 0; stays && k < kept; k++) {
            stays = !overlap(attrs, boxes + 4 * list[i], boxes + 4 * list[k]);
        }
        list[kept] = list[i];
        kept += stays;
    }
    return kept;
}

static enum ifd_code suppress_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_non_max_suppression_attrs *attrs = call->attrs;
    const int64_t *dim = call->in[SCORES]->shape.dim;
    const int64_t batches = dim[0], classes = dim[1], boxes = dim[2];
    const int64_t room = call->out[0]->shape.dim[0];
    int64_t *to = call->output[0];
    int64_t found = 0;
    for (int64_t row = 0; room > 0 && row < batches * classes; row++) {
        const float *box = (const float *)call->input[BOXES] + row / classes * boxes * 4;
        const float *score = (const float *)call->input[SCORES] + row * boxes;
        int64_t count = 0;
        int64_t *list = sort_boxes(attrs, score, boxes, call->scratch, &count);
        const int64_t kept = suppress(attrs, box, list, count, kept_most(attrs, boxes));
        for (int64_t i = 0; i < kept; i++, found++) {
            to[3 * found] = row / classes;
            to[3 * found + 1] = row % classes;
            to[3 * found + 2] = list[i];
        }
    }
    if (room > found) {
        memset(to + 3 * found, 0, (size_t)(room - found) * 3 * sizeof(*to));
    }
    *(int64_t *)call->output[1] = found;
    return IFD_OK;
}

static const struct ifd_attr_def suppress_attrs[] = {
    {"max_boxes", IFD_ATTR_INT, offsetof(struct ifd_non_max_suppression_attrs, max_boxes), 0, 0,
     (double)INT32_MAX},
    {"iou_threshold", IFD_ATTR_F32, offsetof(struct ifd_non_max_suppression_attrs, iou_threshold),
     0, -HUGE_VAL, HUGE_VAL},
    {"score_threshold", IFD_ATTR_F32,
     offsetof(struct ifd_non_max_suppression_attrs, score_threshold), 0, -HUGE_VAL, HUGE_VAL},
    {"has_score", IFD_ATTR_BOOL, offsetof(struct ifd_non_max_suppression_attrs, has_score), 0, 0,
     1},
    {"is_centered", IFD_ATTR_BOOL, offsetof(struct ifd_non_max_suppression_attrs, is_centered), 0,
     0, 1},
};

const struct ifd_op_def ifd_op_non_max_suppression = {
    .name = "non_max_suppression",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 2,
    .attrs = suppress_attrs,
    .attr_count = 5,
    .attrs_bytes = sizeof(struct ifd_non_max_suppression_attrs),
    .dtypes = IFD_BIT(IFD_F32),
    .infer = suppress_infer,
    .scratch = suppress_scratch,
    .ref = suppress_ref,
    .multiplies = true,
    .decides = true,
};

/* detection_postprocess: TFLite_Detection_PostProcess. Keeps the best boxes that do not overlap,
 * either per class (regular) or by each box's best class (fast). detect_box.c decodes them. */
#include "engine/ir/shape.h"
#include "engine/ops/detect_box.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <float.h>
#include <stddef.h>
#include <string.h>

extern const struct ifd_op_def ifd_op_detection_postprocess;

/** Maximum number of scores: their indexes fit 31 bits. */
#define MAX_COUNT (1 << 24)

enum { OUT_BOXES, OUT_CLASSES, OUT_SCORES, OUT_COUNT };

static enum ifd_code check_input(const struct ifd_infer *in, uint32_t i, const char *what,
                                 uint32_t rank, uint32_t dtypes, struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_detection_postprocess;
    enum ifd_code code = ifd_infer_rank(def, in, i, rank, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, i, dtypes, err);
    }
    if (code == IFD_OK && in->input[i].desc->dtype == IFD_U8) {
        code = ifd_infer_any_scale(def, what, in->input[i].desc, err);
    }
    return code;
}

static enum ifd_code check_shapes(const struct ifd_infer *in, struct ifd_err *err)
{
    const struct ifd_detection_attrs *attrs = in->attrs;
    const struct ifd_shape *boxes = &in->input[IFD_DETECT_BOXES].desc->shape;
    const struct ifd_shape *scores = &in->input[IFD_DETECT_SCORES].desc->shape;
    const struct ifd_shape *anchors = &in->input[IFD_DETECT_ANCHORS].desc->shape;
    const int64_t count = boxes->dim[1];
    if (boxes->dim[0] != 1 || boxes->dim[2] < 4 || scores->dim[0] != 1 || scores->dim[1] != count ||
        anchors->dim[0] != count || anchors->dim[1] != 4) {
        return ifd_fail(err, IFD_INVALID,
                        "detection_postprocess: boxes %s, scores %s and anchors %s, expected "
                        "[1,n,4], [1,n,classes] and [n,4]",
                        ifd_shape_text(boxes).s, ifd_shape_text(scores).s,
                        ifd_shape_text(anchors).s);
    }
    const int64_t classes = scores->dim[2];
    if (classes != attrs->num_classes && classes != (int64_t)attrs->num_classes + 1) {
        return ifd_fail(err, IFD_INVALID,
                        "detection_postprocess: scores of %lld classes, expected %d or one more",
                        (long long)classes, attrs->num_classes);
    }
    if (count > MAX_COUNT || (int64_t)count * classes > INT32_MAX) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "detection_postprocess: %lld boxes of %lld classes are too many",
                        (long long)count, (long long)classes);
    }
    return IFD_OK;
}

static enum ifd_code detection_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_detection_postprocess;
    const struct ifd_detection_attrs *attrs = in->attrs;
    const uint32_t dtypes = IFD_BIT(IFD_F32) | IFD_BIT(IFD_U8);
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = check_input(in, IFD_DETECT_BOXES, "the boxes", 3, dtypes, err);
    }
    if (code == IFD_OK) {
        code = check_input(in, IFD_DETECT_SCORES, "the scores", 3, dtypes, err);
    }
    if (code == IFD_OK) {
        code = check_input(in, IFD_DETECT_ANCHORS, "the anchors", 2,
                           IFD_BIT(in->input[IFD_DETECT_BOXES].desc->dtype), err);
    }
    if (code == IFD_OK) {
        code = check_shapes(in, err);
    }
    const int64_t slots = (int64_t)attrs->max_detections * attrs->max_classes_per_detection;
    const struct ifd_shape shape[] = {
        [OUT_BOXES] = {.rank = 3, .dim = {1, slots, 4}},
        [OUT_CLASSES] = {.rank = 2, .dim = {1, slots}},
        [OUT_SCORES] = {.rank = 2, .dim = {1, slots}},
        [OUT_COUNT] = {.rank = 1, .dim = {1}},
    };
    for (uint32_t i = 0; code == IFD_OK && i < 4; i++) {
        code = ifd_infer_output_dtype(def, output, i, IFD_F32, err);
        if (code == IFD_OK) {
            code = ifd_infer_output(def, output, i, &shape[i], err);
        }
    }
    return code;
}

/* A selected box with its class; index = box * classes + class. */
struct hit {
    float score;
    int32_t index;
};

/* Scratch memory. */
struct work {
    struct ifd_box *box; /* count: decoded on demand */
    float *score;        /* count × classes */
    float *best;         /* count: the scores that suppression uses */
    int32_t *order;      /* count: a heap of boxes */
    int32_t *selected;   /* count */
    struct hit *hits;    /* max_detections + per_class, regular suppression only */
    struct hit *merged;  /* same size */
    bool *is_decoded;    /* count */
};

static size_t hits_max(const struct ifd_detection_attrs *attrs)
{
    const int32_t per_class = attrs->detections_per_class < attrs->max_detections
                                  ? attrs->detections_per_class
                                  : attrs->max_detections;
    return attrs->use_regular_nms ? (size_t)attrs->max_detections + (size_t)per_class : 0;
}

/* Bytes of one box, of one score, and of one hit in both lists. */
#define BOX_BYTES (sizeof(struct ifd_box) + sizeof(float) + 2 * sizeof(int32_t) + sizeof(bool))
#define HIT_BYTES (2 * sizeof(struct hit))

static enum ifd_code detection_scratch(const struct ifd_infer *in, const struct ifd_desc *output,
                                       size_t *ret_bytes, struct ifd_err *err)
{
    (void)output;
    const int64_t *scores = in->input[IFD_DETECT_SCORES].desc->shape.dim;
    size_t boxes = 0;
    size_t all_scores = 0;
    size_t hits = 0;
    size_t total = 0;
    if (!ifd_size_mul((size_t)scores[1], BOX_BYTES, &boxes) ||
        !ifd_size_mul((size_t)(scores[1] * scores[2]), sizeof(float), &all_scores) ||
        !ifd_size_mul(hits_max(in->attrs), HIT_BYTES, &hits) ||
        !ifd_size_add(boxes, all_scores, &total) || !ifd_size_add(total, hits, &total)) {
        return ifd_fail(err, IFD_TOO_LARGE,
                        "detection_postprocess: %lld boxes of %lld classes need too much memory",
                        (long long)scores[1], (long long)scores[2]);
    }
    *ret_bytes = total;
    return IFD_OK;
}

static struct work carve(void *scratch, int64_t count, int64_t classes, size_t hits)
{
    struct work work = {.box = scratch};
    work.score = (float *)(work.box + count);
    work.best = work.score + count * classes;
    work.order = (int32_t *)(work.best + count);
    work.selected = work.order + count;
    work.hits = (struct hit *)(work.selected + count);
    work.merged = work.hits + hits;
    work.is_decoded = (bool *)(work.merged + hits);
    memset(work.is_decoded, 0, (size_t)count * sizeof(bool));
    return work;
}

/* Keeps the larger byte of each of 16 pairs. */
static void keep_larger(uint8_t *restrict most, const uint8_t *restrict x)
{
    for (int k = 0; k < 16; k++) {
        most[k] = x[k] > most[k] ? x[k] : most[k];
    }
}

/* The largest of count bytes. */
static uint8_t largest_byte(const uint8_t *x, int64_t count)
{
    uint8_t most[16] = {0};
    for (int64_t i = 0; i + 16 <= count; i += 16) {
        keep_larger(most, x + i);
    }
    if (count < 16) {
        memcpy(most, x, (size_t)count);
    } else {
        keep_larger(most, x + count - 16); /* the last 16, some for the second time */
    }
    for (int k = 1; k < 16; k++) {
        most[0] = most[k] > most[0] ? most[k] : most[0];
    }
    return most[0];
}

static const struct ifd_box *box_of(const struct ifd_ref_call *call, struct work *work, int64_t i)
{
    if (!work->is_decoded[i]) {
        work->box[i] = ifd_box_decode(call, i);
        work->is_decoded[i] = true;
    }
    return &work->box[i];
}

/* Is box a before box b? Equal scores go by index. */
static bool is_before(const float *score, int32_t a, int32_t b)
{
    return score[a] > score[b] || (score[a] == score[b] && a < b);
}

/* Restores the heap order[0 … count - 1], in which the best lies at 0, below position at. */
static void sink(const float *score, int32_t *order, int64_t count, int64_t at)
{
    const int32_t box = order[at];
    for (int64_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_before(score, order[child + 1], order[child])) {
            child++;
        }
        if (!is_before(score, order[child], box)) {
            break;
        }
        order[at] = order[child];
        at = child;
    }
    order[at] = box;
}

static bool overlaps_any(const struct ifd_detection_attrs *attrs, const struct work *work,
                         int64_t selected, const struct ifd_box *box)
{
    for (int64_t i = 0; i < selected; i++) {
        if (ifd_box_overlap(&work->box[work->selected[i]], box) > attrs->nms_iou_threshold) {
            return true;
        }
    }
    return false;
}

/* Selects up to limit boxes by work->best, best first, without those that overlap a better one.
 * A heap, because only a few of many boxes are ever examined. */
static int64_t suppress(const struct ifd_ref_call *call, struct work *work, int64_t count,
                        int64_t limit)
{
    const struct ifd_detection_attrs *attrs = call->attrs;
    int64_t left = 0;
    for (int64_t i = 0; i < count; i++) {
        if (work->best[i] >= attrs->nms_score_threshold) {
            work->order[left++] = (int32_t)i;
        }
    }
    for (int64_t at = left / 2; at-- > 0;) {
        sink(work->best, work->order, left, at);
    }
    int64_t selected = 0;
    while (left > 0 && selected < limit) {
        const int32_t box = work->order[0];
        if (!overlaps_any(attrs, work, selected, box_of(call, work, box))) {
            work->selected[selected++] = box;
        }
        work->order[0] = work->order[--left];
        sink(work->best, work->order, left, 0);
    }
    return selected;
}

/* Destinations of the results. */
struct results {
    struct ifd_box *box;
    float *class_index, *score;
};

/* Sizes of the problem; label_offset is 1 if class 0 is the background. */
struct sizes {
    int64_t count, classes, label_offset;
};

/* The class that follows previous in the order of descending score, equal scores by index; the
 * first if previous is negative; -1 if none follows. */
static int64_t next_class(const float *score, int64_t classes, int64_t previous)
{
    int64_t best = -1;
    for (int64_t c = 0; c < classes; c++) {
        const bool is_after = previous < 0 || score[c] < score[previous] ||
                              (score[c] == score[previous] && c > previous);
        if (is_after && (best < 0 || score[c] > score[best])) {
            best = c;
        }
    }
    return best;
}

/* The best score of each box; bytes are compared directly, because scales are positive. */
static void find_best(const struct ifd_ref_call *call, const struct sizes *sizes, struct work *work)
{
    const struct ifd_desc *desc = call->in[IFD_DETECT_SCORES];
    const int64_t stride = sizes->classes + sizes->label_offset;
    const bool is_float = desc->dtype == IFD_F32;
    const float zero = is_float ? 0 : (float)ifd_ref_zero_point(desc);
    const float scale = is_float ? 1 : ifd_ref_scale(desc);
    for (int64_t i = 0; i < sizes->count; i++) {
        const int64_t first = i * stride + sizes->label_offset;
        if (is_float) {
            const float *score = (const float *)call->input[IFD_DETECT_SCORES] + first;
            work->best[i] = score[next_class(score, sizes->classes, -1)];
        } else {
            const uint8_t most = largest_byte(
                (const uint8_t *)call->input[IFD_DETECT_SCORES] + first, sizes->classes);
            work->best[i] = ifd_detect_real_value(most, zero, scale);
        }
    }
}

static int64_t detect_fast(const struct ifd_ref_call *call, const struct sizes *sizes,
                           struct work *work, const struct results *results)
{
    const struct ifd_detection_attrs *attrs = call->attrs;
    const int64_t stride = sizes->classes + sizes->label_offset;
    const int64_t per_box = attrs->max_classes_per_detection;
    find_best(call, sizes, work);
    const int64_t selected = suppress(call, work, sizes->count, attrs->max_detections);
    for (int64_t i = 0; i < selected; i++) {
        const int32_t box = work->selected[i];
        const float *score = work->score;
        ifd_detect_real_values(call->in[IFD_DETECT_SCORES], call->input[IFD_DETECT_SCORES],
                               box * stride + sizes->label_offset, sizes->classes, work->score);
        int64_t best = -1;
        for (int64_t k = 0; k < per_box && k < sizes->classes; k++) {
            best = next_class(score, sizes->classes, best);
            if (best < 0) {
                break; /* the remaining scores are NaN */
            }
            results->box[i * per_box + k] = work->box[box];
            results->class_index[i * per_box + k] = (float)best;
            results->score[i * per_box + k] = score[best];
        }
    }
    return selected;
}

/* Merges two runs of hits, both best first, into one of at most limit; on a tie the first run's
 * goes first. */
static int64_t merge_hits(const struct hit *a, int64_t a_count, const struct hit *b,
                          int64_t b_count, struct hit *to, int64_t limit)
{
    int64_t i = 0;
    int64_t k = 0;
    int64_t count = 0;
    while (count < limit && (i < a_count || k < b_count)) {
        const bool take_b = i == a_count || (k < b_count && b[k].score > a[i].score);
        to[count++] = take_b ? b[k++] : a[i++];
    }
    return count;
}

static int64_t detect_regular(const struct ifd_ref_call *call, const struct sizes *sizes,
                              struct work *work, const struct results *results)
{
    const struct ifd_detection_attrs *attrs = call->attrs;
    const int64_t stride = sizes->classes + sizes->label_offset;
    const int64_t limit = attrs->max_detections;
    const int64_t per_class = (int64_t)hits_max(attrs) - limit;
    struct hit *hits = work->hits;
    struct hit *merged = work->merged;
    int64_t count = 0;
    ifd_detect_real_values(call->in[IFD_DETECT_SCORES], call->input[IFD_DETECT_SCORES], 0,
                           sizes->count * stride, work->score);
    for (int64_t c = 0; c < sizes->classes; c++) {
        for (int64_t i = 0; i < sizes->count; i++) {
            work->best[i] = work->score[i * stride + sizes->label_offset + c];
        }
        const int64_t selected = suppress(call, work, sizes->count, per_class);
        for (int64_t i = 0; i < selected; i++) {
            const int64_t box = work->selected[i];
            hits[count + i] = (struct hit){work->best[box], (int32_t)(box * sizes->classes + c)};
        }
        count = merge_hits(hits, count, hits + count, selected, merged, limit);
        struct hit *swap = hits;
        hits = merged;
        merged = swap;
    }
    for (int64_t i = 0; i < count; i++) {
        results->box[i] = work->box[hits[i].index / sizes->classes];
        results->class_index[i] = (float)(hits[i].index % sizes->classes);
        results->score[i] = hits[i].score;
    }
    return count;
}

static enum ifd_code detection_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_detection_attrs *attrs = call->attrs;
    const struct ifd_desc *scores = call->in[IFD_DETECT_SCORES];
    const struct sizes sizes = {.count = scores->shape.dim[1],
                                .classes = attrs->num_classes,
                                .label_offset = scores->shape.dim[2] - attrs->num_classes};
    struct work work = carve(call->scratch, sizes.count, scores->shape.dim[2], hits_max(attrs));
    const enum ifd_code code = ifd_box_check(call, err);
    if (code != IFD_OK) {
        return code;
    }
    for (uint32_t i = 0; i < 3; i++) {
        memset(call->output[i], 0, ifd_ref_elements(call->out[i]) * sizeof(float));
    }
    const struct results results = {.box = call->output[OUT_BOXES],
                                    .class_index = call->output[OUT_CLASSES],
                                    .score = call->output[OUT_SCORES]};
    const int64_t count = attrs->use_regular_nms ? detect_regular(call, &sizes, &work, &results)
                                                 : detect_fast(call, &sizes, &work, &results);
    *(float *)call->output[OUT_COUNT] = (float)count;
    return IFD_OK;
}

#define ATTR(kind, field, default_value, min, max)                                                 \
    {                                                                                              \
#field, IFD_ATTR_##kind, offsetof(struct ifd_detection_attrs, field), default_value, min,  \
            max                                                                                    \
    }

static const struct ifd_attr_def detection_attrs[] = {
    ATTR(INT, max_detections, 10, 1, MAX_COUNT),
    ATTR(INT, max_classes_per_detection, 1, 1, MAX_COUNT),
    ATTR(INT, detections_per_class, 100, 1, INT32_MAX),
    ATTR(INT, num_classes, 1, 1, MAX_COUNT),
    ATTR(BOOL, use_regular_nms, 0, 0, 1),
    ATTR(F32, nms_score_threshold, 0, -FLT_MAX, FLT_MAX),
    ATTR(F32, nms_iou_threshold, 0.5, FLT_MIN, 1),
    ATTR(F32, y_scale, 10, FLT_MIN, FLT_MAX),
    ATTR(F32, x_scale, 10, FLT_MIN, FLT_MAX),
    ATTR(F32, h_scale, 5, FLT_MIN, FLT_MAX),
    ATTR(F32, w_scale, 5, FLT_MIN, FLT_MAX),
};
#undef ATTR

const struct ifd_op_def ifd_op_detection_postprocess = {
    .name = "detection_postprocess",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 4,
    .attrs = detection_attrs,
    .attr_count = sizeof(detection_attrs) / sizeof(detection_attrs[0]),
    .attrs_bytes = sizeof(struct ifd_detection_attrs),
    .dtypes = IFD_BIT(IFD_F32) | IFD_BIT(IFD_U8),
    .batch = IFD_BATCH_NEVER,
    .infer = detection_infer,
    .scratch = detection_scratch,
    .ref = detection_ref,
    .multiplies = true,
    .decides = true,
};

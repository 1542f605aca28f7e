/* soft_suppress: TFLite's NON_MAX_SUPPRESSION_V4 and V5. The best boxes; those that overlap a
 * better one are left out, or count less. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>
#include <string.h>

extern const struct ifd_op_def ifd_op_soft_suppress;

enum { BOXES, SCORES, MOST, IOU, THRESHOLD, SIGMA };

static bool is_number(const struct ifd_infer *in, uint32_t i)
{
    const struct ifd_desc *desc = ifd_infer_input(in, i);
    return !desc || ifd_ref_elements(desc) == 1;
}

static enum ifd_code check_inputs(const struct ifd_infer *in, struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_soft_suppress;
    static const struct {
        uint32_t rank;
        enum ifd_dtype dtype;
    } wanted[] = {[BOXES] = {2, IFD_F32}, [SCORES] = {1, IFD_F32},    [MOST] = {0, IFD_S32},
                  [IOU] = {0, IFD_F32},   [THRESHOLD] = {0, IFD_F32}, [SIGMA] = {0, IFD_F32}};
    enum ifd_code code = ifd_infer_begin(def, in, err);
    for (uint32_t i = 0; code == IFD_OK && i < in->input_count; i++) {
        code = ifd_infer_dtype(def, in, i, IFD_BIT(wanted[i].dtype), err);
        if (code == IFD_OK && wanted[i].rank > 0) {
            code = ifd_infer_rank(def, in, i, wanted[i].rank, err);
        } else if (code == IFD_OK && !is_number(in, i)) {
            code = ifd_fail(err, IFD_INVALID, "soft_suppress: input %u is no number", i);
        }
    }
    return code;
}

static enum ifd_code soft_suppress_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                         struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_soft_suppress;
    const bool has_scores = in->output_count == 3;
    struct ifd_ints most = {0};
    enum ifd_code code = check_inputs(in, err);
    if (code == IFD_OK) {
        code = ifd_infer_ints(def, "input 2", in->input[MOST].desc, in->input[MOST].data.data,
                              &most, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *boxes = &in->input[BOXES].desc->shape;
    if (boxes->dim[1] != 4 || boxes->dim[0] != in->input[SCORES].desc->shape.dim[0] ||
        most.value[0] < 0 || in->output_count < 2 || in->output_count > 3) {
        return ifd_fail(err, IFD_INVALID,
                        "soft_suppress: boxes %s and scores %s, at most %lld of them, %u outputs",
                        ifd_shape_text(boxes).s, ifd_shape_text(&in->input[SCORES].desc->shape).s,
                        (long long)most.value[0], in->output_count);
    }
    const struct ifd_shape list = {.rank = 1, .dim = {most.value[0]}}, one = {0};
    for (uint32_t i = 0; code == IFD_OK && i < in->output_count; i++) {
        const bool is_scores = has_scores && i == 1;
        code = ifd_infer_output_dtype(def, output, i, is_scores ? IFD_F32 : IFD_S32, err);
        if (code == IFD_OK) {
            code = ifd_infer_output(def, output, i, i + 1 == in->output_count ? &one : &list, err);
        }
    }
    return code;
}

/* A box that may be chosen: those in front of begin have lowered its score already. */
struct candidate {
    int32_t box, begin;
    float score;
};

static enum ifd_code soft_suppress_scratch(const struct ifd_infer *in,
                                           const struct ifd_desc *output, size_t *ret_bytes,
                                           struct ifd_err *err)
{
    (void)output;
    const int64_t boxes = in->input[BOXES].desc->shape.dim[0];
    return boxes <= INT32_MAX && ifd_size_mul((size_t)boxes, sizeof(struct candidate), ret_bytes)
               ? IFD_OK
               : ifd_fail(err, IFD_TOO_LARGE, "soft_suppress: %lld boxes are too many",
                          (long long)boxes);
}

/* Intersection over union; corners in any order. Boxes without area overlap nothing. */
static float overlap(const float *a, const float *b)
{
    const float ay0 = fminf(a[0], a[2]), ax0 = fminf(a[1], a[3]);
    const float ay1 = fmaxf(a[0], a[2]), ax1 = fmaxf(a[1], a[3]);
    const float by0 = fminf(b[0], b[2]), bx0 = fminf(b[1], b[3]);
    const float by1 = fmaxf(b[0], b[2]), bx1 = fmaxf(b[1], b[3]);
    const float area_a = (ay1 - ay0) * (ax1 - ax0), area_b = (by1 - by0) * (bx1 - bx0);
    if (!(area_a > 0 && area_b > 0)) {
        return 0;
    }
    const float height = fmaxf(fminf(ay1, by1) - fmaxf(ay0, by0), 0);
    const float width = fmaxf(fminf(ax1, bx1) - fmaxf(ax0, bx0), 0);
    const float shared = height * width;
    return shared / (area_a + area_b - shared);
}

/* Of equal scores the first box comes first. */
static bool precedes(const struct candidate *a, const struct candidate *b)
{
    return a->score > b->score || (a->score == b->score && a->box < b->box);
}

static void sink(struct candidate *heap, int64_t count, int64_t at)
{
    for (;;) {
        int64_t best = at;
        for (int64_t child = 2 * at + 1; child <= 2 * at + 2; child++) {
            best = child < count && precedes(&heap[child], &heap[best]) ? child : best;
        }
        if (best == at) {
            return;
        }
        const struct candidate moved = heap[at];
        heap[at] = heap[best];
        heap[best] = moved;
        at = best;
    }
}

struct limits {
    float iou, threshold, sigma;
};

/* Lowers the score of a candidate by the boxes chosen since it was last looked at. False: one of
 * them hides it. */
static bool lower(struct candidate *c, const struct limits *limits, const float *boxes,
                  const int32_t *chosen, int64_t count)
{
    for (int64_t k = count; k-- > c->begin;) {
        const float iou = overlap(boxes + 4 * (int64_t)c->box, boxes + 4 * (int64_t)chosen[k]);
        if (iou >= limits->iou) {
            return false;
        }
        if (limits->sigma > 0) {
            c->score *= expf(-0.5f / limits->sigma * iou * iou);
        }
        if (c->score <= limits->threshold) {
            break;
        }
    }
    c->begin = (int32_t)count;
    return true;
}

static int64_t gather(const float *score, int64_t boxes, float threshold, struct candidate *heap)
{
    int64_t count = 0;
    for (int64_t i = 0; i < boxes; i++) {
        if (score[i] > threshold) {
            heap[count++] = (struct candidate){.box = (int32_t)i, .score = score[i]};
        }
    }
    for (int64_t i = count / 2; i-- > 0;) {
        sink(heap, count, i);
    }
    return count;
}

static float number_of(const struct ifd_ref_call *call, uint32_t i)
{
    return i < call->input_count && call->input[i] ? *(const float *)call->input[i] : 0;
}

static enum ifd_code soft_suppress_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const float *boxes = call->input[BOXES];
    const struct limits limits = {.iou = number_of(call, IOU),
                                  .threshold = number_of(call, THRESHOLD),
                                  .sigma = number_of(call, SIGMA)};
    struct candidate *heap = call->scratch;
    int64_t left =
        gather(call->input[SCORES], call->in[BOXES]->shape.dim[0], limits.threshold, heap);
    const int64_t room = call->out[0]->shape.dim[0];
    int32_t *chosen = call->output[0];
    float *scores = call->output_count == 3 ? call->output[1] : NULL;
    int64_t count = 0;
    for (int64_t i = 0; i < room; i++) {
        chosen[i] = 0;
        if (scores) {
            scores[i] = 0;
        }
    }
    while (left > 0 && count < room) {
        const float before = heap[0].score;
        const bool stays = lower(&heap[0], &limits, boxes, chosen, count);
        const bool is_chosen = stays && heap[0].score == before;
        if (is_chosen) {
            chosen[count] = heap[0].box;
            if (scores) {
                scores[count] = heap[0].score;
            }
            count++;
        }
        if (is_chosen || !stays || !(heap[0].score > limits.threshold)) {
            heap[0] = heap[--left];
        }
        sink(heap, left, 0);
    }
    *(int32_t *)call->output[call->output_count - 1] = (int32_t)count;
    return IFD_OK;
}

const struct ifd_op_def ifd_op_soft_suppress = {
    .name = "soft_suppress",
    .min_inputs = 5,
    .max_inputs = 6,
    .outputs = IFD_OP_VARIADIC,
    .dtypes = IFD_BIT(IFD_F32),
    .shape_inputs = 1u << MOST,
    .infer = soft_suppress_infer,
    .scratch = soft_suppress_scratch,
    .ref = soft_suppress_ref,
    .multiplies = true,
    .decides = true,
};

/* Detection by rows without objectness (YOLO v8, NanoDet). YOLO v8's are a centre, a size and a
 * score for each class, then keypoints. NanoDet's are the scores, then for each side of the box a
 * distribution over distances from the cell's anchor point. */
#include "engine/base/str.h"
#include "server/objects/anchors_impl.h"
#include "server/objects/candidates_impl.h"

#define RANGE_MAX 64

struct plan {
    struct ifd_plan common; /* first */
    struct ifd_levels levels;
    uint32_t range;     /* largest distance in cells; 0: boxes are decoded */
    float offset;       /* of the anchor point in its cell */
    bool numbers_first; /* [numbers, N], else [N, numbers] */
    size_t numbers;     /* of a row */
    uint32_t class_count;
    uint32_t keypoint_count; /* x, y, score */
    float unit_x, unit_y;
};

/* ---- at load ---- */

static enum ifd_code read_plan(struct ifd_setup *setup, struct plan *plan, struct ifd_err *err)
{
    plan->offset = 0;
    enum ifd_code code = ifd_strides_read(setup, "8,16,32", &plan->levels, err);
    code = code ? code
                : ifd_parameter_count(setup->desc, "regression_range", 0, RANGE_MAX, &plan->range,
                                      err);
    code = code ? code : ifd_parameter_number(setup->desc, "cell_offset", 0, 1, &plan->offset, err);
    code = code
               ? code
               : ifd_parameter_count(setup->desc, "keypoints", 0, 1000, &plan->keypoint_count, err);
    if (!code && plan->range > 0 && plan->keypoint_count > 0) {
        code = ifd_fail(err, IFD_INVALID,
                        "\"keypoints\" are of decoded boxes (\"regression_range\" 0)");
    }
    return code ? code : ifd_setup_unit(setup, &plan->unit_x, &plan->unit_y, err);
}

/* Which dimension counts the cells, and how many classes a row has. */
static enum ifd_code read_form(struct ifd_setup *setup, struct plan *plan, struct ifd_err *err)
{
    const struct ifd_shape shape = ifd_setup_shape(setup, setup->role[0]);
    const int64_t cells = (int64_t)plan->levels.anchor_count;
    const long long others = plan->range > 0 ? 4 * ((long long)plan->range + 1)
                                             : 4 + 3 * (long long)plan->keypoint_count;
    if (shape.rank != 2 || (shape.dim[0] != cells && shape.dim[1] != cells)) {
        return ifd_fail(err, IFD_INVALID, "%lld cells by \"strides\", output '%s' is [%lld,%lld]",
                        (long long)cells, ifd_setup_name(setup, 0), (long long)shape.dim[0],
                        (long long)(shape.rank > 1 ? shape.dim[1] : 0));
    }
    plan->numbers_first = shape.dim[0] != cells;
    const long long numbers = shape.dim[plan->numbers_first ? 0 : 1];
    if (numbers <= others || numbers > 100000) {
        return ifd_fail(err, IFD_INVALID,
                        "box and keypoints are %lld numbers, and no class is left of the %lld of "
                        "output '%s'",
                        others, numbers, ifd_setup_name(setup, 0));
    }
    plan->numbers = (size_t)numbers;
    plan->class_count = (uint32_t)(numbers - others);
    return IFD_OK;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    ifd_setup_one_role(setup);
    enum ifd_code code = read_plan(setup, &made, err);
    if (!code) {
        code = read_form(setup, &made, err);
    }
    if (!code) {
        code = ifd_setup_plan(setup, &made, sizeof(made), ret, err);
    }
    code = code ? code : ifd_setup_classes(setup, made.class_count, err);
    return code ? code : ifd_setup_keypoints(setup, made.keypoint_count, err);
}

/* ---- decoding ---- */

static float number_of(const struct ifd_decoding *decoding, size_t row, size_t i)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_values *values = &decoding->value[0];
    return ifd_value(values, plan->numbers_first ? i * plan->levels.anchor_count + row
                                                 : row * plan->numbers + i);
}

static float best_score(const struct ifd_decoding *decoding, size_t row, uint32_t *ret_class)
{
    const struct plan *plan = decoding->plan;
    const size_t first = plan->range > 0 ? 0 : 4;
    float most = number_of(decoding, row, first);
    uint32_t best = 0;
    for (uint32_t c = 1; c < plan->class_count; c++) {
        const float value = number_of(decoding, row, first + c);
        best = value > most ? c : best;
        most = value > most ? value : most;
    }
    *ret_class = best;
    return most;
}

/* Mean of a distribution over 0 … range, given as logits. */
static float distance(const struct ifd_decoding *decoding, size_t row, size_t first)
{
    const struct plan *plan = decoding->plan;
    float peak = -INFINITY, sum = 0, mean = 0;
    for (uint32_t i = 0; i <= plan->range; i++) {
        peak = fmaxf(peak, number_of(decoding, row, first + i));
    }
    for (uint32_t i = 0; i <= plan->range; i++) {
        const float weight = expf(number_of(decoding, row, first + i) - peak);
        sum += weight;
        mean += weight * (float)i;
    }
    return mean / sum;
}

static void read_box(const struct ifd_decoding *decoding, size_t row, const struct ifd_anchor *at,
                     float *ret)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_level *level = &plan->levels.level[at->level];
    float side[4];
    for (size_t i = 0; i < 4; i++) {
        side[i] = plan->range > 0
                      ? distance(decoding, row, plan->class_count + i * (plan->range + 1))
                      : number_of(decoding, row, i);
    }
    if (plan->range > 0) { /* left, top, right, bottom of the anchor point */
        const float x = (float)at->column + plan->offset, y = (float)at->row + plan->offset;
        ret[0] = (x - side[0]) * level->step_x;
        ret[1] = (y - side[1]) * level->step_y;
        ret[2] = (x + side[2]) * level->step_x;
        ret[3] = (y + side[3]) * level->step_y;
        return;
    }
    ret[0] = (side[0] - side[2] / 2) * plan->unit_x;
    ret[1] = (side[1] - side[3] / 2) * plan->unit_y;
    ret[2] = (side[0] + side[2] / 2) * plan->unit_x;
    ret[3] = (side[1] + side[3] / 2) * plan->unit_y;
}

static void read_keypoints(const struct ifd_decoding *decoding,
                           const struct ifd_candidate *candidate, struct ifd_keypoint *ret)
{
    const struct plan *plan = decoding->plan;
    for (size_t i = 0; i < plan->keypoint_count; i++) {
        const size_t first = 4 + plan->class_count + 3 * i;
        ret[i] = (struct ifd_keypoint){
            .x = number_of(decoding, candidate->place, first) * plan->unit_x,
            .y = number_of(decoding, candidate->place, first + 1) * plan->unit_y,
            .score = number_of(decoding, candidate->place, first + 2)};
    }
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    const size_t rows = plan->levels.anchor_count;
    struct ifd_candidates candidates;
    struct ifd_anchor at = {0};
    if (decoding->value[0].count != rows * plan->numbers) {
        return ifd_fail(err, IFD_INVALID, "%zu numbers for %zu cells of %zu",
                        decoding->value[0].count, rows, plan->numbers);
    }
    enum ifd_code code = ifd_candidates_init(&candidates, decoding->arena, err);
    for (size_t row = 0; row < rows && !code; row++) {
        struct ifd_candidate candidate = {.place = (uint32_t)row};
        candidate.score = best_score(decoding, row, &candidate.index);
        if (candidate.score >= decoding->options->threshold) {
            read_box(decoding, row, &at, candidate.box);
            ifd_candidates_add(&candidates, decoding->options, &candidate);
        }
        ifd_anchor_next(&plan->levels, &at);
    }
    return code ? code
                : ifd_candidates_finish(&candidates, decoding, false,
                                        plan->keypoint_count > 0 ? read_keypoints : NULL,
                                        plan->keypoint_count, err);
}

const struct ifd_decoder ifd_decoder_yolo_dfl = {
    .name = "yolo_dfl", .task = IFD_TASK_DETECTION, .prepare = prepare, .decode = decode};

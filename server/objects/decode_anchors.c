/* Detection by boxes relative to anchors, or by boxes that need none: SSD, BlazeFace, UltraFace.
 * One output has the boxes and their keypoints, another one the scores. */
#include "engine/base/str.h"
#include "server/objects/anchors_impl.h"
#include "server/objects/candidates_impl.h"

enum role { BOXES, SCORES, ROLES };

/* Order of a box's numbers: centre and size, or two corners. */
static const char *const orders[] = {"yxhw", "xywh", "xyxy", "yxyx"};
enum order { YXHW, XYWH, XYXY, YXYX, ORDERS };

#define NO_CLASS UINT32_MAX

struct plan {
    struct ifd_plan common; /* first */
    struct ifd_levels levels;
    uint32_t order, activation;
    bool is_linear; /* sizes are multiples of the anchor's; else their logarithms are stored */
    float scale[4]; /* divides a box's numbers */
    float unit_x, unit_y; /* pixels for one of a corner's numbers */
    uint32_t background;  /* class that is none; NO_CLASS: all are some */
    uint32_t keypoint_count;
};

/* ---- at load ---- */

/* The boxes' numbers are as many as the parameters say; the other output has the scores. */
static enum ifd_code find_roles(struct ifd_setup *setup, uint32_t numbers, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = setup->desc;
    uint32_t boxes = desc->output_count;
    for (uint32_t i = 0; i < desc->output_count; i++) {
        const struct ifd_shape shape = ifd_setup_shape(setup, i);
        const bool fits = shape.rank == 2 && shape.dim[1] == numbers;
        boxes = fits && boxes == desc->output_count ? i : boxes;
    }
    if (boxes == desc->output_count || desc->output_count != ROLES) {
        return ifd_fail(err, IFD_INVALID,
                        "expected two outputs, boxes [N,%u] and scores, the model has %u outputs; "
                        "\"outputs_used\" names boxes and scores",
                        numbers, desc->output_count);
    }
    setup->role[BOXES] = boxes;
    setup->role[SCORES] = 1 - boxes;
    setup->role_count = ROLES;
    return IFD_OK;
}

/* Of the outputs' lengths, those that are known agree with each other and with the anchors. */
static enum ifd_code check_forms(const struct ifd_setup *setup, const struct plan *plan,
                                 struct ifd_err *err)
{
    const struct ifd_shape boxes = ifd_setup_shape(setup, setup->role[BOXES]);
    const struct ifd_shape scores = ifd_setup_shape(setup, setup->role[SCORES]);
    const long long anchors = (long long)plan->levels.anchor_count;
    if (boxes.rank != 2 || scores.rank < 1) {
        return ifd_fail(err, IFD_INVALID, "outputs of rank %u and %u, expected [N,…] and [N,…]",
                        boxes.rank, scores.rank);
    }
    const long long numbers = boxes.dim[1], wanted = 4 + 2 * (long long)plan->keypoint_count;
    if (numbers >= 0 && numbers != wanted) {
        return ifd_fail(err, IFD_INVALID,
                        "a box and %u keypoints are %lld numbers, output '%s' has %lld",
                        plan->keypoint_count, wanted, ifd_setup_name(setup, BOXES), numbers);
    }
    if (boxes.dim[0] >= 0 && scores.dim[0] >= 0 && boxes.dim[0] != scores.dim[0]) {
        return ifd_fail(err, IFD_INVALID, "%lld boxes for %lld scores", (long long)boxes.dim[0],
                        (long long)scores.dim[0]);
    }
    if (anchors > 0 && boxes.dim[0] >= 0 && boxes.dim[0] != anchors) {
        return ifd_fail(err, IFD_INVALID, "%lld anchors for the %lld boxes of output '%s'", anchors,
                        (long long)boxes.dim[0], ifd_setup_name(setup, BOXES));
    }
    return IFD_OK;
}

static enum ifd_code read_scale(const struct ifd_setup *setup, struct plan *plan,
                                struct ifd_err *err)
{
    uint32_t count = 1;
    plan->scale[0] = 1;
    enum ifd_code code =
        ifd_parameter_numbers(setup->desc, "box_scale", 4, plan->scale, &count, err);
    for (uint32_t i = count; i < 4 && count == 1; i++) {
        plan->scale[i] = plan->scale[0];
    }
    const bool is_wrong = (count != 1 && count != 4) || plan->scale[0] == 0 ||
                          plan->scale[1] == 0 || plan->scale[2] == 0 || plan->scale[3] == 0;
    return !code && is_wrong
               ? ifd_fail(err, IFD_INVALID, "parameter \"box_scale\": not 1 or 4 numbers but 0")
               : code;
}

static enum ifd_code read_plan(struct ifd_setup *setup, struct plan *plan, struct ifd_err *err)
{
    static const char *const sizes[] = {"log", "linear"}, *const units[] = {"input", "pixels"};
    const struct ifd_model_desc *desc = setup->desc;
    uint32_t size = 0, unit = 0;
    plan->background = NO_CLASS;
    enum ifd_code code = ifd_parameter_word(desc, "box_order", orders, ORDERS, &plan->order, err);
    code = code ? code : ifd_parameter_word(desc, "box_size", sizes, 2, &size, err);
    code = code ? code : ifd_parameter_word(desc, "box_unit", units, 2, &unit, err);
    code = code ? code : ifd_setup_activation(setup, "activation", true, &plan->activation, err);
    code = code ? code : ifd_parameter_count(desc, "background", 0, 100000, &plan->background, err);
    code = code ? code : ifd_parameter_count(desc, "keypoints", 0, 100, &plan->keypoint_count, err);
    code = code ? code : read_scale(setup, plan, err);
    plan->is_linear = size == 1;
    plan->unit_x = unit == 0 ? setup->meaning->input_width : 1;
    plan->unit_y = unit == 0 ? setup->meaning->input_height : 1;
    const bool needs_anchors = plan->order == YXHW || plan->order == XYWH;
    if (!code && needs_anchors != (plan->levels.count > 0)) {
        code = ifd_fail(err, IFD_INVALID, "boxes in the order %s need %s", orders[plan->order],
                        needs_anchors ? "\"anchors\"" : "no \"anchors\"");
    }
    return code;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    enum ifd_code code = ifd_levels_read(setup, &made.levels, err);
    if (!code) {
        code = read_plan(setup, &made, err);
    }
    if (!code && !setup->are_roles_named) {
        code = find_roles(setup, 4 + 2 * made.keypoint_count, err);
    }
    if (!code && setup->role_count != ROLES) {
        code = ifd_fail(err, IFD_INVALID, "\"outputs_used\" names %u outputs, expected 2",
                        setup->role_count);
    }
    if (!code) {
        code = check_forms(setup, &made, err);
    }
    if (!code) {
        code = ifd_setup_plan(setup, &made, sizeof(made), ret, err);
    }
    return code ? code : ifd_setup_keypoints(setup, made.keypoint_count, err);
}

/* ---- decoding ---- */

/* The best class of a row, without the background; its score. */
static float best_score(const struct plan *plan, const struct ifd_values *scores, size_t row,
                        size_t classes, uint32_t *ret_class)
{
    const size_t first = row * classes;
    float most = -INFINITY, sum = 0, peak = -INFINITY;
    uint32_t best = 0;
    for (size_t c = 0; c < classes; c++) {
        const float value = ifd_value(scores, first + c);
        peak = value > peak ? value : peak;
        if (c != plan->background && value > most) {
            most = value;
            best = (uint32_t)c;
        }
    }
    *ret_class = best > plan->background ? best - 1 : best;
    if (plan->activation != IFD_ACTIVATION_SOFTMAX) {
        return ifd_score((enum ifd_activation)plan->activation, most);
    }
    for (size_t c = 0; c < classes; c++) {
        sum += expf(ifd_value(scores, first + c) - peak);
    }
    return expf(most - peak) / sum;
}

/* Centre of an anchor's cell and the anchor's size. */
static void place_anchor(const struct plan *plan, struct ifd_anchor at, float *ret_x, float *ret_y,
                         float *ret_width, float *ret_height)
{
    const struct ifd_level *level = &plan->levels.level[at.level];
    *ret_x = ((float)at.column + 0.5f) * level->step_x;
    *ret_y = ((float)at.row + 0.5f) * level->step_y;
    *ret_width = level->width[at.number];
    *ret_height = level->height[at.number];
}

static void read_corners(const struct plan *plan, const float *number, float *ret)
{
    const int swap = plan->order == YXYX;
    for (int side = 0; side < 4; side++) {
        ret[side] = number[side ^ swap] * (side % 2 == 0 ? plan->unit_x : plan->unit_y);
    }
}

static void read_box(const struct plan *plan, const struct ifd_values *boxes, size_t row,
                     struct ifd_anchor at, float *ret)
{
    const size_t first = row * (4 + 2 * (size_t)plan->keypoint_count);
    float number[4], x = 0, y = 0, width = 0, height = 0;
    for (size_t i = 0; i < 4; i++) {
        number[i] = ifd_value(boxes, first + i) / plan->scale[i];
    }
    if (plan->levels.count == 0) {
        read_corners(plan, number, ret);
        return;
    }
    const int swap = plan->order == YXHW;
    place_anchor(plan, at, &x, &y, &width, &height);
    const float w = number[2 + swap], h = number[3 - swap];
    x += number[swap] * width;
    y += number[1 - swap] * height;
    width *= plan->is_linear ? w : expf(w);
    height *= plan->is_linear ? h : expf(h);
    ret[0] = x - width / 2;
    ret[1] = y - height / 2;
    ret[2] = x + width / 2;
    ret[3] = y + height / 2;
}

static struct ifd_anchor find_anchor(const struct ifd_levels *levels, size_t place)
{
    struct ifd_anchor at = {0};
    for (const struct ifd_level *level = levels->level; at.level < levels->count; level++) {
        const size_t count = (size_t)level->rows * level->columns * level->count;
        if (place < count) {
            at.number = (uint32_t)(place % level->count);
            at.column = (uint32_t)(place / level->count % level->columns);
            at.row = (uint32_t)(place / level->count / level->columns);
            return at;
        }
        place -= count;
        at.level++;
    }
    return (struct ifd_anchor){0};
}

static void read_keypoints(const struct ifd_decoding *decoding,
                           const struct ifd_candidate *candidate, struct ifd_keypoint *ret)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_values *boxes = &decoding->value[BOXES];
    const size_t first = candidate->place * (4 + 2 * (size_t)plan->keypoint_count) + 4;
    const int swap = plan->order == YXHW || plan->order == YXYX;
    float x = 0, y = 0, width = plan->unit_x, height = plan->unit_y;
    if (plan->levels.count > 0) {
        place_anchor(plan, find_anchor(&plan->levels, candidate->place), &x, &y, &width, &height);
    }
    for (size_t i = 0; i < plan->keypoint_count; i++) {
        const float a = ifd_value(boxes, first + 2 * i) / plan->scale[0];
        const float b = ifd_value(boxes, first + 2 * i + 1) / plan->scale[1];
        ret[i] = (struct ifd_keypoint){.x = x + (swap ? b : a) * width,
                                       .y = y + (swap ? a : b) * height,
                                       .score = candidate->score};
    }
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_values *boxes = &decoding->value[BOXES], *scores = &decoding->value[SCORES];
    const size_t numbers = 4 + 2 * (size_t)plan->keypoint_count, rows = boxes->count / numbers;
    const size_t classes = rows > 0 ? scores->count / rows : 0;
    const size_t anchors = plan->levels.anchor_count;
    struct ifd_candidates candidates;
    struct ifd_anchor at = {0};
    if (boxes->count % numbers != 0 || rows * classes != scores->count ||
        (plan->levels.count > 0 && rows != anchors)) {
        return ifd_fail(err, IFD_INVALID,
                        "outputs have %zu box numbers and %zu scores for %zu anchors", boxes->count,
                        scores->count, anchors);
    }
    enum ifd_code code = ifd_candidates_init(&candidates, decoding->arena, err);
    for (size_t row = 0; row < rows && !code; row++) {
        struct ifd_candidate candidate = {.place = (uint32_t)row};
        candidate.score = best_score(plan, scores, row, classes, &candidate.index);
        if (candidate.score >= decoding->options->threshold) {
            read_box(plan, boxes, row, at, candidate.box);
            ifd_candidates_add(&candidates, decoding->options, &candidate);
        }
        if (plan->levels.count > 0) {
            ifd_anchor_next(&plan->levels, &at);
        }
    }
    return code ? code
                : ifd_candidates_finish(&candidates, decoding, false,
                                        plan->keypoint_count > 0 ? read_keypoints : NULL,
                                        plan->keypoint_count, err);
}

const struct ifd_decoder ifd_decoder_ssd_anchors = {
    .name = "ssd_anchors", .task = IFD_TASK_DETECTION, .prepare = prepare, .decode = decode};

/* Keypoints as numbers, mostly of one subject: MediaPipe's hand and pose, MoveNet. One output has
 * the points; another one may have the score of the subject. */
#include "engine/base/str.h"
#include "server/objects/candidates_impl.h"

#define POINTS_MAX 1000
#define ORDER_MAX  8

enum role { POINTS, SCORE, ROLES };

struct plan {
    struct ifd_plan common; /* first */
    uint32_t keypoint_count;
    uint32_t step;                 /* numbers of a point */
    uint32_t at_x, at_y, at_score; /* in them; at_score == step: none */
    uint32_t activation, point_activation;
    float unit_x, unit_y;
};

/* ---- at load ---- */

/* The parameter `keypoint_order`: a letter for each number of a point; x, y, s(core), others are
 * skipped. */
static enum ifd_code read_order(const struct ifd_setup *setup, struct plan *plan,
                                struct ifd_err *err)
{
    const struct ifd_str given = ifd_parameter(setup->desc, "keypoint_order");
    const struct ifd_str text = given.data ? given : ifd_str("xys");
    const uint32_t none = (uint32_t)text.size;
    plan->step = plan->at_x = plan->at_y = plan->at_score = none;
    for (uint32_t i = 0; i < none; i++) {
        plan->at_x = text.data[i] == 'x' ? i : plan->at_x;
        plan->at_y = text.data[i] == 'y' ? i : plan->at_y;
        plan->at_score = text.data[i] == 's' ? i : plan->at_score;
    }
    if (none > ORDER_MAX || plan->at_x == none || plan->at_y == none) {
        return ifd_fail(err, IFD_INVALID,
                        "parameter \"keypoint_order\": \"%.*s\" has no x or no y, or more than 8 "
                        "letters",
                        text.size < 20 ? (int)text.size : 20, text.data);
    }
    return IFD_OK;
}

static enum ifd_code read_plan(struct ifd_setup *setup, struct plan *plan, struct ifd_err *err)
{
    static const char *const units[] = {"pixels", "input"};
    uint32_t unit = 0;
    enum ifd_code code = read_order(setup, plan, err);
    code = code ? code : ifd_parameter_word(setup->desc, "keypoint_unit", units, 2, &unit, err);
    code = code ? code : ifd_setup_activation(setup, "activation", false, &plan->activation, err);
    code = code ? code
                : ifd_setup_activation(setup, "keypoint_activation", false, &plan->point_activation,
                                       err);
    code = code ? code
                : ifd_parameter_count(setup->desc, "keypoints", 1, POINTS_MAX,
                                      &plan->keypoint_count, err);
    plan->unit_x = unit == 1 ? setup->meaning->input_width : 1;
    plan->unit_y = unit == 1 ? setup->meaning->input_height : 1;
    if (!code && (plan->keypoint_count == 0 || setup->meaning->input_width == 0)) {
        code = ifd_fail(err, IFD_INVALID,
                        plan->keypoint_count == 0 ? "parameter \"keypoints\" is missing"
                                                  : "the model takes no picture");
    }
    return code;
}

/* The first output with enough numbers for whole points has the points; the first one with a single
 * number, if there is one, the score. */
static enum ifd_code find_roles(struct ifd_setup *setup, const struct plan *plan,
                                struct ifd_err *err)
{
    const uint32_t count = setup->desc->output_count;
    const int64_t least = (int64_t)plan->keypoint_count * plan->step;
    uint32_t points = count, score = count;
    for (uint32_t i = 0; i < count; i++) {
        const int64_t numbers = ifd_setup_count(setup, i);
        const bool fits = numbers >= least && numbers % plan->step == 0;
        points = fits && points == count ? i : points;
        score = numbers == 1 && score == count ? i : score;
    }
    if (points == count) {
        return ifd_fail(err, IFD_INVALID,
                        "%u keypoints of %u numbers are %lld, output '%s' has %lld",
                        plan->keypoint_count, plan->step, (long long)least,
                        setup->desc->output[0].name, (long long)ifd_setup_count(setup, 0));
    }
    setup->role[POINTS] = points;
    setup->role[SCORE] = score;
    setup->role_count = score < count ? ROLES : 1;
    return IFD_OK;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    enum ifd_code code = read_plan(setup, &made, err);
    if (!code && !setup->are_roles_named) {
        code = find_roles(setup, &made, err);
    }
    const int64_t numbers = code ? 0 : ifd_setup_count(setup, setup->role[POINTS]);
    const int64_t least = (int64_t)made.keypoint_count * made.step;
    if (!code && numbers >= 0 && numbers < least) {
        code =
            ifd_fail(err, IFD_INVALID, "%u keypoints of %u numbers are %lld, output '%s' has %lld",
                     made.keypoint_count, made.step, (long long)least,
                     ifd_setup_name(setup, POINTS), (long long)numbers);
    }
    if (!code) {
        code = ifd_setup_plan(setup, &made, sizeof(made), ret, err);
    }
    return code ? code : ifd_setup_keypoints(setup, made.keypoint_count, err);
}

/* ---- decoding ---- */

static struct ifd_keypoint read_point(const struct plan *plan, const struct ifd_values *values,
                                      size_t i)
{
    const size_t first = i * plan->step;
    struct ifd_keypoint point = {.x = ifd_value(values, first + plan->at_x) * plan->unit_x,
                                 .y = ifd_value(values, first + plan->at_y) * plan->unit_y};
    if (plan->at_score < plan->step) {
        point.score = ifd_score((enum ifd_activation)plan->point_activation,
                                ifd_value(values, first + plan->at_score));
    }
    return point;
}

/* Score of the subject: its output, else the mean of its points. Points without scores get it. */
static float score_of(const struct ifd_decoding *decoding, struct ifd_keypoint *point)
{
    const struct plan *plan = decoding->plan;
    const bool have_scores = plan->at_score < plan->step;
    float score = 0;
    for (uint32_t i = 0; i < plan->keypoint_count; i++) {
        score += point[i].score / (float)plan->keypoint_count;
    }
    if (plan->common.role_count > SCORE) {
        score =
            ifd_score((enum ifd_activation)plan->activation, ifd_value(&decoding->value[SCORE], 0));
    }
    for (uint32_t i = 0; i < plan->keypoint_count && !have_scores; i++) {
        point[i].score = score;
    }
    return score;
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_values *values = &decoding->value[POINTS];
    struct ifd_objects *ret = decoding->ret;
    const uint32_t count = plan->keypoint_count;
    const bool has_score = plan->common.role_count == 1 || decoding->value[SCORE].count == 1;
    if (values->count < (size_t)count * plan->step || !has_score) {
        return ifd_fail(err, IFD_INVALID, "%zu numbers for %u keypoints of %u, or no single score",
                        values->count, count, plan->step);
    }
    struct ifd_keypoint *point = ifd_arena_take_array(decoding->arena, count, sizeof(*point));
    ret->object = ifd_arena_take(decoding->arena, sizeof(*ret->object));
    if (!point || !ret->object) {
        return ifd_arena_fail(decoding->arena, count * sizeof(*point), err);
    }
    for (uint32_t i = 0; i < count; i++) {
        point[i] = read_point(plan, values, i);
    }
    const float score = score_of(decoding, point);
    if (score >= decoding->options->threshold && isfinite(score) &&
        ifd_options_want(decoding->options, 0)) {
        ifd_keypoints_map(decoding->view, point, count);
        ret->object[0] =
            (struct ifd_object){.score = score, .keypoint = point, .keypoint_count = count};
        ret->object_count = 1;
    }
    return IFD_OK;
}

const struct ifd_decoder ifd_decoder_landmarks = {
    .name = "landmarks", .task = IFD_TASK_KEYPOINTS, .prepare = prepare, .decode = decode};

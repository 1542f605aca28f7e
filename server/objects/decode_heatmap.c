/* Keypoints of one subject by heatmaps: a channel for each point, whose highest cell is its place.
 * PoseNet adds a map of offsets in pixels: those along y of all points, then those along x; its
 * cells are points of a grid from the first to the last pixel. */
#include "server/objects/candidates_impl.h"
#include "server/objects/map_impl.h"

enum role { HEAT, OFFSETS, ROLES };

struct plan {
    struct ifd_plan common; /* first */
    bool channels_first;
    uint32_t activation;
    uint32_t keypoint_count;
};

/* The first map has the heat; one with twice its channels the offsets. */
static enum ifd_code find_roles(struct ifd_setup *setup, struct plan *plan, struct ifd_err *err)
{
    const uint32_t count = setup->desc->output_count;
    uint32_t heat = count, offsets = count;
    int64_t points = plan->keypoint_count > 0 ? (int64_t)plan->keypoint_count : IFD_DIM_ANY;
    for (uint32_t i = 0; i < count; i++) {
        const struct ifd_shape shape = ifd_setup_shape(setup, i);
        const int64_t channels = ifd_map_channels(&shape, plan->channels_first);
        if (heat == count && channels > 0 && (points < 0 || channels == points)) {
            heat = i;
            points = channels;
        } else if (channels > 0 && channels == 2 * points && offsets == count) {
            offsets = i;
        }
    }
    if (heat == count) {
        return ifd_fail(err, IFD_INVALID, "no output is a map of %lld channels", (long long)points);
    }
    setup->role[HEAT] = heat;
    setup->role[OFFSETS] = offsets;
    setup->role_count = offsets < count ? ROLES : 1;
    return IFD_OK;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    enum ifd_code code = ifd_setup_layout(setup, &made.channels_first, err);
    code = code ? code : ifd_setup_activation(setup, "activation", false, &made.activation, err);
    code = code ? code
                : ifd_parameter_count(setup->desc, "keypoints", 1, 1000, &made.keypoint_count, err);
    if (!code && setup->meaning->input_width == 0) {
        code = ifd_fail(err, IFD_INVALID, "the model takes no picture");
    }
    if (!code && !setup->are_roles_named) {
        code = find_roles(setup, &made, err);
    }
    if (code) {
        return code;
    }
    const struct ifd_shape shape = ifd_setup_shape(setup, setup->role[HEAT]);
    const int64_t channels = ifd_map_channels(&shape, made.channels_first);
    if (channels < 1 || (made.keypoint_count > 0 && channels != made.keypoint_count)) {
        return ifd_fail(err, IFD_INVALID, "%u keypoints for the %lld channels of output '%s'",
                        made.keypoint_count, (long long)channels, ifd_setup_name(setup, HEAT));
    }
    made.keypoint_count = (uint32_t)channels;
    code = ifd_setup_plan(setup, &made, sizeof(made), ret, err);
    return code ? code : ifd_setup_keypoints(setup, made.keypoint_count, err);
}

/* The highest cell of a channel, in pixels of the input. offsets may be NULL. */
static struct ifd_keypoint find_point(const struct ifd_decoding *decoding,
                                      const struct ifd_map *heat, const struct ifd_map *offsets,
                                      size_t channel)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_meaning *meaning = decoding->meaning;
    size_t row = 0, column = 0;
    float most = -INFINITY;
    for (size_t r = 0; r < heat->rows; r++) {
        for (size_t c = 0; c < heat->columns; c++) {
            const float value = ifd_map_at(heat, r, c, channel);
            if (value > most) {
                most = value;
                row = r;
                column = c;
            }
        }
    }
    struct ifd_keypoint point = {.score = ifd_score((enum ifd_activation)plan->activation, most)};
    if (!offsets) {
        point.x = ((float)column + 0.5f) * meaning->input_width / (float)heat->columns;
        point.y = ((float)row + 0.5f) * meaning->input_height / (float)heat->rows;
        return point;
    }
    const float columns = heat->columns > 1 ? (float)(heat->columns - 1) : 1;
    const float rows = heat->rows > 1 ? (float)(heat->rows - 1) : 1;
    point.x = (float)column * (meaning->input_width - 1) / columns +
              ifd_map_at(offsets, row, column, heat->channels + channel);
    point.y =
        (float)row * (meaning->input_height - 1) / rows + ifd_map_at(offsets, row, column, channel);
    return point;
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    struct ifd_objects *ret = decoding->ret;
    const size_t count = plan->keypoint_count;
    const bool has_offsets = plan->common.role_count == ROLES;
    struct ifd_map heat, offsets;
    if (!ifd_map_init(&heat, &decoding->value[HEAT], plan->channels_first, count, NULL) ||
        heat.rows * heat.columns == 0 ||
        (has_offsets && !ifd_map_init(&offsets, &decoding->value[OFFSETS], plan->channels_first,
                                      2 * count, &heat))) {
        return ifd_fail(err, IFD_INVALID, "heatmaps and offsets do not fit together");
    }
    struct ifd_keypoint *point = ifd_arena_take_array(decoding->arena, count, sizeof(*point));
    ret->object = ifd_arena_take(decoding->arena, sizeof(*ret->object));
    if (!point || !ret->object) {
        return ifd_arena_fail(decoding->arena, count * sizeof(*point), err);
    }
    float score = 0;
    for (size_t i = 0; i < count; i++) {
        point[i] = find_point(decoding, &heat, has_offsets ? &offsets : NULL, i);
        score += point[i].score / (float)count;
    }
    if (score >= decoding->options->threshold && isfinite(score) &&
        ifd_options_want(decoding->options, 0)) {
        ifd_keypoints_map(decoding->view, point, (uint32_t)count);
        ret->object[0] = (struct ifd_object){
            .score = score, .keypoint = point, .keypoint_count = (uint32_t)count};
        ret->object_count = 1;
    }
    return IFD_OK;
}

const struct ifd_decoder ifd_decoder_heatmap = {
    .name = "heatmap", .task = IFD_TASK_KEYPOINTS, .prepare = prepare, .decode = decode};

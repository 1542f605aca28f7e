/* Detection by centres: a map of scores with a channel for each class, whose peaks are objects; a
 * map of their widths and heights, and one of the centres' places in their cells, both in cells. */
#include "server/objects/candidates_impl.h"
#include "server/objects/map_impl.h"

enum role { SCORES, SIZES, OFFSETS, ROLES };

struct plan {
    struct ifd_plan common; /* first */
    bool channels_first;
    uint32_t activation;
};

/* Sizes and offsets have two channels and come in this order; the scores are the other map. */
static enum ifd_code find_roles(struct ifd_setup *setup, bool channels_first, struct ifd_err *err)
{
    uint32_t pairs = 0, scores = setup->desc->output_count;
    for (uint32_t i = 0; i < setup->desc->output_count; i++) {
        const struct ifd_shape shape = ifd_setup_shape(setup, i);
        const int64_t channels = ifd_map_channels(&shape, channels_first);
        if (channels == 2 && pairs < 2) {
            setup->role[SIZES + pairs++] = i;
        } else if (channels > 0) {
            scores = i;
        }
    }
    if (pairs != 2 || scores == setup->desc->output_count) {
        return ifd_fail(err, IFD_INVALID,
                        "expected maps of scores, of sizes and of offsets with two channels, got "
                        "%u with two; \"outputs_used\" names scores, sizes, offsets",
                        pairs);
    }
    setup->role[SCORES] = scores;
    setup->role_count = ROLES;
    return IFD_OK;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    struct plan made = {0};
    enum ifd_code code = ifd_setup_layout(setup, &made.channels_first, err);
    code = code ? code : ifd_setup_activation(setup, "activation", false, &made.activation, err);
    if (!code && setup->meaning->input_width == 0) {
        code = ifd_fail(err, IFD_INVALID, "the model takes no picture");
    }
    if (!code && !setup->are_roles_named) {
        code = find_roles(setup, made.channels_first, err);
    }
    if (!code && setup->role_count != ROLES) {
        code = ifd_fail(err, IFD_INVALID, "\"outputs_used\" names %u outputs, expected 3",
                        setup->role_count);
    }
    if (!code) {
        code = ifd_setup_plan(setup, &made, sizeof(made), ret, err);
    }
    if (code) {
        return code;
    }
    const struct ifd_shape shape = ifd_setup_shape(setup, setup->role[SCORES]);
    return ifd_setup_classes(setup, ifd_map_channels(&shape, made.channels_first), err);
}

/* No neighbour is higher; of equal ones the first is the peak. */
static bool is_peak(const struct ifd_map *map, size_t row, size_t column, size_t channel)
{
    const float value = ifd_map_at(map, row, column, channel);
    for (size_t r = row > 0 ? row - 1 : 0; r <= row + 1 && r < map->rows; r++) {
        for (size_t c = column > 0 ? column - 1 : 0; c <= column + 1 && c < map->columns; c++) {
            const float other = ifd_map_at(map, r, c, channel);
            const bool is_before = r < row || (r == row && c < column);
            if (other > value || (is_before && other == value)) {
                return false;
            }
        }
    }
    return true;
}

static void add(const struct ifd_decoding *decoding, const struct ifd_map *map, size_t row,
                size_t column, struct ifd_candidate *candidate, struct ifd_candidates *candidates)
{
    const struct ifd_meaning *meaning = decoding->meaning;
    const float step_x = meaning->input_width / (float)map[SCORES].columns;
    const float step_y = meaning->input_height / (float)map[SCORES].rows;
    const float x = (float)column + ifd_map_at(&map[OFFSETS], row, column, 0);
    const float y = (float)row + ifd_map_at(&map[OFFSETS], row, column, 1);
    const float w = ifd_map_at(&map[SIZES], row, column, 0);
    const float h = ifd_map_at(&map[SIZES], row, column, 1);
    candidate->place = (uint32_t)(row * map[SCORES].columns + column);
    candidate->box[0] = (x - w / 2) * step_x;
    candidate->box[1] = (y - h / 2) * step_y;
    candidate->box[2] = (x + w / 2) * step_x;
    candidate->box[3] = (y + h / 2) * step_y;
    ifd_candidates_add(candidates, decoding->options, candidate);
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct plan *plan = decoding->plan;
    const struct ifd_values *values = decoding->value;
    const int64_t channels = ifd_map_channels(&values[SCORES].shape, plan->channels_first);
    struct ifd_map map[ROLES];
    struct ifd_candidates candidates;
    if (channels < 1 ||
        !ifd_map_init(&map[SCORES], &values[SCORES], plan->channels_first, (size_t)channels,
                      NULL) ||
        !ifd_map_init(&map[SIZES], &values[SIZES], plan->channels_first, 2, map) ||
        !ifd_map_init(&map[OFFSETS], &values[OFFSETS], plan->channels_first, 2, map)) {
        return ifd_fail(err, IFD_INVALID, "maps of scores, sizes and offsets do not fit together");
    }
    enum ifd_code code = ifd_candidates_init(&candidates, decoding->arena, err);
    for (size_t row = 0; row < map->rows && !code; row++) {
        for (size_t column = 0; column < map->columns; column++) {
            for (size_t c = 0; c < map->channels; c++) {
                struct ifd_candidate candidate = {.index = (uint32_t)c};
                candidate.score = ifd_score((enum ifd_activation)plan->activation,
                                            ifd_map_at(map, row, column, c));
                if (candidate.score >= decoding->options->threshold &&
                    is_peak(map, row, column, c)) {
                    add(decoding, map, row, column, &candidate, &candidates);
                }
            }
        }
    }
    return code ? code : ifd_candidates_finish(&candidates, decoding, true, NULL, 0, err);
}

const struct ifd_decoder ifd_decoder_centernet = {
    .name = "centernet", .task = IFD_TASK_DETECTION, .prepare = prepare, .decode = decode};

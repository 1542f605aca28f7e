/* Detection by SSD with its post-processing operator: boxes, classes, scores and their count are
 * outputs. Suppression is done. */
#include "engine/base/str.h"
#include "server/objects/candidates_impl.h"

enum role { BOXES, CLASSES, SCORES, COUNT, ROLES };

static bool is_list(const struct ifd_setup *setup, uint32_t output)
{
    const struct ifd_shape shape = ifd_setup_shape(setup, output);
    return shape.rank == 1 && shape.dim[0] != 1;
}

/* Boxes have two dimensions, the count is one number. Of the two lists, the classes come first
 * behind the boxes, as the operator has them, and second in front of them, as TensorFlow 2 sorts
 * its outputs. A name with "score" in it decides, too. */
static enum ifd_code find_roles(struct ifd_setup *setup, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = setup->desc;
    uint32_t list[2] = {0}, lists = 0, boxes = desc->output_count, count = desc->output_count;
    for (uint32_t i = 0; i < desc->output_count && desc->output_count == ROLES; i++) {
        const struct ifd_shape shape = ifd_setup_shape(setup, i);
        if (shape.rank == 2 && shape.dim[1] == 4) {
            boxes = i;
        } else if (ifd_setup_count(setup, i) == 1) {
            count = i;
        } else if (is_list(setup, i) && lists < 2) {
            list[lists++] = i;
        }
    }
    if (boxes == desc->output_count || count == desc->output_count || lists != 2) {
        return ifd_fail(err, IFD_INVALID,
                        "expected outputs [N,4], [N], [N] and [1], the model has %u outputs of "
                        "other forms; \"outputs_used\" names boxes, classes, scores, count",
                        desc->output_count);
    }
    const bool says_score = strstr(desc->output[list[0]].name, "score");
    const bool are_scores_first = says_score || list[0] < boxes;
    setup->role[BOXES] = boxes;
    setup->role[CLASSES] = list[are_scores_first ? 1 : 0];
    setup->role[SCORES] = list[are_scores_first ? 0 : 1];
    setup->role[COUNT] = count;
    setup->role_count = ROLES;
    return IFD_OK;
}

static enum ifd_code prepare(struct ifd_setup *setup, struct ifd_plan **ret, struct ifd_err *err)
{
    enum ifd_code code = setup->are_roles_named ? IFD_OK : find_roles(setup, err);
    if (!code && setup->role_count != ROLES) {
        code = ifd_fail(err, IFD_INVALID, "\"outputs_used\" names %u outputs, expected 4",
                        setup->role_count);
    }
    if (!code && setup->meaning->input_width == 0) {
        code = ifd_fail(err, IFD_INVALID, "the model takes no picture");
    }
    const struct ifd_plan made = {0};
    return code ? code : ifd_setup_plan(setup, &made, sizeof(made), ret, err);
}

static enum ifd_code decode(const struct ifd_decoding *decoding, struct ifd_err *err)
{
    const struct ifd_values *value = decoding->value;
    const size_t most = value[SCORES].count;
    struct ifd_candidates candidates;
    if (value[BOXES].count != 4 * most || value[CLASSES].count != most || value[COUNT].count < 1) {
        return ifd_fail(err, IFD_INVALID,
                        "outputs hold %zu box numbers, %zu classes and %zu scores",
                        value[BOXES].count, value[CLASSES].count, most);
    }
    const float said = ifd_value(&value[COUNT], 0);
    const size_t count = said >= 0 && said < (float)most ? (size_t)said : most;
    enum ifd_code code = ifd_candidates_init(&candidates, decoding->arena, err);
    for (size_t i = 0; i < count && !code; i++) {
        const float index = ifd_value(&value[CLASSES], i);
        struct ifd_candidate candidate = {.score = ifd_value(&value[SCORES], i),
                                          .place = (uint32_t)i};
        for (size_t side = 0; side < 4; side++) { /* y_min, x_min, y_max, x_max: 0 … 1 */
            candidate.box[side ^ 1] =
                ifd_value(&value[BOXES], 4 * i + side) *
                (side % 2 == 0 ? decoding->meaning->input_height : decoding->meaning->input_width);
        }
        if (index >= 0 && index < (float)INT32_MAX) {
            candidate.index = (uint32_t)(index + 0.5f);
            ifd_candidates_add(&candidates, decoding->options, &candidate);
        }
    }
    return code ? code : ifd_candidates_finish(&candidates, decoding, true, NULL, 0, err);
}

const struct ifd_decoder ifd_decoder_ssd_postprocessed = {
    .name = "ssd_postprocessed", .task = IFD_TASK_DETECTION, .prepare = prepare, .decode = decode};

/* Peaks of maps, and text. */
#include <math.h>

#include "engine/base/str.h"
#include "tests/server/objects/handmade.h"
#include "tests/support/test.h"

static void peaks_are_centres(void)
{
    static const int64_t scores_form[] = {3, 3, 2, 0}, pair_form[] = {3, 3, 2, 0};
    float scores[18] = {0}, sizes[18] = {0}, offsets[18] = {0};
    struct handmade model;
    scores[2 * 4] = 0.9f;      /* the cell in the middle, class 0 */
    scores[2 * 5] = 0.8f;      /* beside it: no peak */
    scores[2 * 0 + 1] = 0.75f; /* class 1 */
    scores[2 * 1 + 1] = 0.75f; /* as high as the one before */
    sizes[2 * 4] = 1, sizes[2 * 4 + 1] = 2;
    offsets[2 * 4] = 0.5f, offsets[2 * 4 + 1] = 0.25f;
    sizes[0] = sizes[1] = 1;
    handmade_init(&model, 12, 24);
    handmade_output(&model, "scores", scores_form, scores);
    handmade_output(&model, "sizes", pair_form, sizes);
    handmade_output(&model, "offsets", pair_form, offsets);
    handmade_set(&model, "decoder", "centernet");
    handmade_set(&model, "outputs_used", "scores, sizes, offsets");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 2);
    const struct ifd_object *object = model.found.object;
    EXPECT_INT(object[0].index, 0);
    EXPECT_CLOSE(object[0].box[0], (1.5 - 0.5) * 4, 1e-4);
    EXPECT_CLOSE(object[0].box[1], (1.25 - 1) * 8, 1e-4);
    EXPECT_CLOSE(object[0].box[2], (1.5 + 0.5) * 4, 1e-4);
    EXPECT_CLOSE(object[0].box[3], (1.25 + 1) * 8, 1e-4);
    EXPECT_INT(object[1].index, 1);
    EXPECT_CLOSE(object[1].box[2], 0.5 * 4, 1e-4); /* around the corner (0, 0) */
    handmade_finish(&model);
}

static void maps_of_other_forms_are_refused(void)
{
    static const int64_t scores_form[] = {3, 3, 5, 0}, pair_form[] = {3, 3, 2, 0};
    struct handmade model;
    handmade_init(&model, 12, 12);
    handmade_output(&model, "scores", scores_form, NULL);
    handmade_output(&model, "sizes", pair_form, NULL);
    handmade_set(&model, "decoder", "centernet");
    EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
    EXPECT_HAS(model.err.text, "got 1 with two");
    handmade_finish(&model);
    handmade_init(&model, 12, 12);
    handmade_output(&model, "heat", scores_form, NULL);
    handmade_set(&model, "decoder", "heatmap");
    handmade_set(&model, "keypoints", "17");
    EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
    EXPECT_HAS(model.err.text, "no output is a map of 17 channels");
    handmade_finish(&model);
}

static void the_highest_cell_is_the_point(void)
{
    static const int64_t form[] = {2, 2, 3, 0};
    const float heat[] = {-9, -9, -9, -9, -9, 0, logf(3), -9, -9, -9, -9, -9};
    struct handmade model;
    handmade_init(&model, 30, 20);
    handmade_output(&model, "heat", form, heat);
    handmade_set(&model, "decoder", "heatmap");
    handmade_set(&model, "output_layout", "chw");
    handmade_set(&model, "activation", "sigmoid");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 1 && model.found.object->keypoint_count == 2);
    const struct ifd_keypoint *point = model.found.object->keypoint;
    EXPECT_CLOSE(point[0].x, 25, 1e-4); /* row 1, column 2 of 3×2 cells of 10 pixels */
    EXPECT_CLOSE(point[0].y, 15, 1e-4);
    EXPECT_CLOSE(point[0].score, 0.5, 1e-6);
    EXPECT_CLOSE(point[1].x, 5, 1e-4);
    EXPECT_CLOSE(point[1].score, 0.75, 1e-6);
    EXPECT_CLOSE(model.found.object->score, 0.625, 1e-6);
    handmade_finish(&model);
}

static void offsets_refine_the_point(void)
{
    static const int64_t heat_form[] = {2, 3, 1, 0}, offsets_form[] = {2, 3, 2, 0};
    static const float heat[] = {0, 0, 0, 0, 0.75f, 0};
    static const float offsets[] = {0, 0, 0, 0, 0, 0, 0, 0, -2, 3, 0, 0};
    struct handmade model;
    handmade_init(&model, 33, 17);
    handmade_output(&model, "offsets", offsets_form, offsets);
    handmade_output(&model, "heat", heat_form, heat);
    handmade_set(&model, "decoder", "heatmap");
    handmade_set(&model, "keypoints", "1");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 1);
    EXPECT_CLOSE(model.found.object->keypoint->x, 16 + 3, 1e-4); /* column 1 of 0, 16, 32 */
    EXPECT_CLOSE(model.found.object->keypoint->y, 16 - 2, 1e-4); /* row 1 of 0, 16 */
    handmade_finish(&model);
}

/* Steps: a a blank a b b; probabilities 0.5 but for the last b's. */
static void letters_that_repeat_count_once(void)
{
    static const int64_t form[] = {6, 4, 0};
    static const float steps[] = {0, 0.5f, 0, 0, 0, 0.9f, 0, 0, 0.5f, 0, 0,     0,
                                  0, 0.5f, 0, 0, 0, 0,    1, 0, 0,    0, 0.75f, 0};
    static const char *const dictionary[] = {"a", "\xc3\x9f"};
    struct handmade model;
    handmade_init(&model, 8, 8);
    handmade_output(&model, "steps", form, steps);
    model.output[0].labels = dictionary;
    model.output[0].label_count = 2;
    handmade_set(&model, "preset", "ctc");
    REQUIRE_OK(handmade_read(&model), &model.err);
    EXPECT_INT(model.desc.meaning->task, IFD_TASK_TEXT);
    handmade_find(&model, NULL);
    EXPECT_INT(model.found.text.size, 4);
    EXPECT(ifd_str_equal(model.found.text, "aa\xc3\x9f"));
    EXPECT_CLOSE(model.found.text_score, (0.5 + 0.5 + 1) / 3, 1e-6);
    handmade_find(&model, "threshold=0.7");
    EXPECT_INT(model.found.text.size, 0);
    handmade_finish(&model);
}

static void the_blank_may_be_the_last_class(void)
{
    static const int64_t form[] = {3, 3, 0};
    const float steps[] = {logf(2), 0, 0, 0, 0, 5, 0, logf(2), 0};
    static const char *const dictionary[] = {"x", "y"};
    struct handmade model;
    handmade_init(&model, 8, 8);
    handmade_output(&model, "steps", form, steps);
    model.output[0].labels = dictionary;
    model.output[0].label_count = 2;
    handmade_set(&model, "task", "text");
    handmade_set(&model, "blank", "2");
    handmade_set(&model, "activation", "softmax");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    EXPECT(ifd_str_equal(model.found.text, "xy"));
    EXPECT_CLOSE(model.found.text_score, 0.5, 1e-6);
    handmade_finish(&model);
}

static void dictionaries_that_do_not_fit_are_refused(void)
{
    static const int64_t form[] = {3, 6, 0};
    struct handmade model;
    handmade_init(&model, 8, 8);
    handmade_output(&model, "steps", form, NULL);
    handmade_set(&model, "task", "text");
    handmade_set(&model, "labels", "a,b,c");
    EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
    EXPECT_HAS(model.err.text, "a dictionary of 3 labels, and a blank, for 6 classes");
    handmade_finish(&model);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(peaks_are_centres),
        T(maps_of_other_forms_are_refused),
        T(the_highest_cell_is_the_point),
        T(offsets_refine_the_point),
        T(letters_that_repeat_count_once),
        T(the_blank_may_be_the_last_class),
        T(dictionaries_that_do_not_fit_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

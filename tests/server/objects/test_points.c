/* Keypoints. */
#include "tests/server/objects/handmade.h"
#include "tests/support/test.h"

static void points_of_one_subject_have_its_score(void)
{
    static const int64_t form[] = {6, 0}, one[] = {1, 0};
    static const float points[] = {1, 2, 99, 3, 4, 99}, score[] = {0.75f};
    struct handmade model;
    handmade_init(&model, 8, 8);
    model.view = (struct ifd_picture_view){
        .width = 32, .height = 16, .offset_x = 1, .scale_x = 4, .scale_y = 2};
    handmade_output(&model, "handedness", one, score);
    handmade_output(&model, "points", form, points);
    handmade_set(&model, "task", "keypoints");
    handmade_set(&model, "keypoints", "2");
    handmade_set(&model, "keypoint_order", "xy-");
    handmade_set(&model, "keypoint_names", "wrist, tip");
    REQUIRE_OK(handmade_read(&model), &model.err);
    EXPECT_INT(model.desc.meaning->keypoint_name_count, 2);
    EXPECT_TEXT(model.desc.meaning->keypoint_name[1], "tip");
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 1 && model.found.object->keypoint_count == 2);
    const struct ifd_keypoint *point = model.found.object->keypoint;
    EXPECT(!model.found.object->has_box);
    EXPECT_CLOSE(model.found.object->score, 0.75, 0);
    EXPECT_CLOSE(point[0].x, 1 + 4 * 1, 0);
    EXPECT_CLOSE(point[0].y, 2 * 2, 0);
    EXPECT_CLOSE(point[1].x, 1 + 4 * 3, 0);
    EXPECT_CLOSE(point[1].score, 0.75, 0);
    handmade_find(&model, "threshold=0.8");
    EXPECT_INT(model.found.object_count, 0);
    handmade_finish(&model);
}

static void points_may_have_scores_of_their_own(void)
{
    static const int64_t form[] = {1, 2, 3, 0};
    static const float points[] = {0.5f, 0.25f, 0, 1, 0.5f, 9};
    struct handmade model;
    handmade_init(&model, 16, 8);
    handmade_output(&model, "points", form, points);
    handmade_set(&model, "decoder", "landmarks");
    handmade_set(&model, "keypoints", "2");
    handmade_set(&model, "keypoint_order", "yxs");
    handmade_set(&model, "keypoint_unit", "input");
    handmade_set(&model, "keypoint_activation", "sigmoid");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 1);
    const struct ifd_keypoint *point = model.found.object->keypoint;
    EXPECT_CLOSE(point[0].x, 4, 1e-5);
    EXPECT_CLOSE(point[0].y, 4, 1e-5);
    EXPECT_CLOSE(point[0].score, 0.5, 1e-6);
    EXPECT_CLOSE(point[1].score, 0.99987661, 1e-6);            /* σ(9) */
    EXPECT_CLOSE(model.found.object->score, 0.74993830, 1e-6); /* their mean */
    handmade_finish(&model);
}

static void contradictions_are_refused_with_both_numbers(void)
{
    static const int64_t form[] = {63, 0};
    static const char *const wrong[][3] = {
        {"keypoints", "33", "33 keypoints of 3 numbers are 99, output 'points' has 63"},
        {"keypoints", "0", "\"0\" is not a count 1 … 1000"},
        {"threshold", "0.1", "parameter \"keypoints\" is missing"},
        {"keypoint_order", "y-s", "\"y-s\" has no x or no y"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct handmade model;
        handmade_init(&model, 8, 8);
        handmade_output(&model, "points", form, NULL);
        handmade_set(&model, "decoder", "landmarks");
        handmade_set(&model, wrong[i][0], wrong[i][1]);
        EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
        EXPECT_HAS(model.err.text, wrong[i][2]);
        handmade_finish(&model);
    }
}

static void presets_name_points_and_bones(void)
{
    static const int64_t points[] = {195, 0}, one[] = {1, 0}, others[] = {117, 0};
    struct handmade model;
    handmade_init(&model, 256, 256);
    handmade_output(&model, "Identity", points, NULL);
    handmade_output(&model, "Identity_1", one, NULL);
    handmade_output(&model, "Identity_4", others, NULL);
    handmade_set(&model, "preset", "mediapipe_pose");
    REQUIRE_OK(handmade_read(&model), &model.err);
    EXPECT_INT(model.desc.meaning->keypoint_name_count, 33);
    EXPECT_TEXT(model.desc.meaning->keypoint_name[32], "right_foot_index");
    REQUIRE(model.desc.meaning->bone_count > 0);
    for (uint32_t i = 0; i < model.desc.meaning->bone_count; i++) {
        EXPECT(model.desc.meaning->bone[i].from < 33 && model.desc.meaning->bone[i].to < 33);
    }
    handmade_finish(&model);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(points_of_one_subject_have_its_score),
        T(points_may_have_scores_of_their_own),
        T(contradictions_are_refused_with_both_numbers),
        T(presets_name_points_and_bones),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

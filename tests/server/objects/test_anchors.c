/* Boxes relative to anchors, suppression, keypoints. */
#include "tests/server/objects/handmade.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>

static void expect_box(const struct ifd_object *object, double x0, double y0, double x1, double y1)
{
    EXPECT(object->has_box);
    EXPECT_CLOSE(object->box[0], x0, 1e-3);
    EXPECT_CLOSE(object->box[1], y0, 1e-3);
    EXPECT_CLOSE(object->box[2], x1, 1e-3);
    EXPECT_CLOSE(object->box[3], y1, 1e-3);
}

/* Two cells of 8 pixels with two anchors each; a box of four numbers and a keypoint. */
static void make_faces(struct handmade *model)
{
    static const int64_t boxes_form[] = {4, 6, 0}, scores_form[] = {4, 1, 0};
    static const float boxes[] = {0, 0,  4, 4, 0, 0, 0.5f, 0, 4, 4, 1, 2,
                                  1, -1, 4, 2, 2, 3, 0,    0, 2, 2, 0, 0};
    static const float scores[] = {1, 2, 3, -9};
    handmade_init(model, 16, 8);
    handmade_output(model, "boxes", boxes_form, boxes);
    handmade_output(model, "scores", scores_form, scores);
    handmade_set(model, "decoder", "ssd_anchors");
    handmade_set(model, "box_order", "xywh");
    handmade_set(model, "box_size", "linear");
    handmade_set(model, "activation", "sigmoid");
    handmade_set(model, "keypoints", "1");
    handmade_set(model, "labels", "face");
}

static void faces_are_offsets_from_cells(void)
{
    struct handmade model;
    make_faces(&model);
    handmade_set(&model, "anchors", "8*2");
    REQUIRE_OK(handmade_read(&model), &model.err);
    EXPECT_INT(model.desc.meaning->label_count, 1);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 2); /* rows 0 and 1 overlap by 7/9 */
    const struct ifd_object *object = model.found.object;
    EXPECT_CLOSE(object[0].score, 0.95257413, 1e-6);      /* σ(3) */
    expect_box(&object[0], 12 + 1 - 2, 4 - 1 - 1, 15, 4); /* around (12, 4) */
    REQUIRE(object[0].keypoint_count == 1);
    EXPECT_CLOSE(object[0].keypoint[0].x, 14, 1e-4);
    EXPECT_CLOSE(object[0].keypoint[0].y, 7, 1e-4);
    EXPECT_CLOSE(object[1].score, 0.88079708, 1e-6); /* σ(2) */
    expect_box(&object[1], 2.5, 2, 6.5, 6);
    EXPECT_CLOSE(object[1].keypoint[0].x, 5, 1e-4);
    handmade_find(&model, "iou=0.8");
    EXPECT_INT(model.found.object_count, 3);
    handmade_find(&model, "top_k=1");
    EXPECT_INT(model.found.object_count, 1);
    handmade_finish(&model);
}

static void places_are_mapped_to_the_picture(void)
{
    struct handmade model;
    make_faces(&model);
    handmade_set(&model, "anchors", "8*2");
    /* A letterbox: 32×8 pixels of the picture are the input's middle half of rows. */
    model.view = (struct ifd_picture_view){
        .width = 32, .height = 8, .offset_y = -4, .scale_x = 2, .scale_y = 2};
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 2);
    expect_box(&model.found.object[0], 22, 0, 30, 4);
    EXPECT_CLOSE(model.found.object[0].keypoint[0].y, 10, 1e-4); /* points are not clipped */
    handmade_finish(&model);
}

static void sizes_may_be_logarithms(void)
{
    static const int64_t boxes_form[] = {1, 4, 0}, scores_form[] = {1, 3, 0};
    const float boxes[] = {5, -10, 5 * logf(2), 0}; /* y, x, h, w */
    const float scores[] = {0, logf(3), logf(4)};   /* the first is the background */
    struct handmade model;
    handmade_init(&model, 8, 8);
    handmade_output(&model, "scores", scores_form, scores);
    handmade_output(&model, "boxes", boxes_form, boxes);
    handmade_set(&model, "decoder", "ssd_anchors");
    handmade_set(&model, "anchors", "1x1: 6x4");
    handmade_set(&model, "box_scale", "10,10,5,5");
    handmade_set(&model, "activation", "softmax");
    handmade_set(&model, "background", "0");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 1);
    EXPECT_INT(model.found.object[0].index, 1);
    EXPECT_CLOSE(model.found.object[0].score, 0.5, 1e-6);
    expect_box(&model.found.object[0], 0, 2, 1, 8); /* -5, 2, 1, 10 */
    handmade_finish(&model);
}

static void boxes_may_be_corners(void)
{
    static const int64_t boxes_form[] = {2, 4, 0}, scores_form[] = {2, 2, 0};
    static const float boxes[] = {0.25f, 0.5f, 0.5f, 1, NAN, 0, 1, 1},
                       scores[] = {0.1f, 0.9f, 0, 1};
    struct handmade model;
    handmade_init(&model, 16, 8);
    handmade_output(&model, "boxes", boxes_form, boxes);
    handmade_output(&model, "scores", scores_form, scores);
    handmade_set(&model, "preset", "ultraface");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 1); /* a box that is no number is none */
    EXPECT_INT(model.found.object[0].index, 0);
    expect_box(&model.found.object[0], 4, 4, 8, 8);
    handmade_finish(&model);
}

static void too_many_candidates_leave_the_best(void)
{
    static float boxes[6000 * 4], scores[6000];
    static const int64_t boxes_form[] = {6000, 4, 0}, scores_form[] = {6000, 1, 0};
    struct handmade model;
    for (int i = 0; i < 6000; i++) {
        const float x = (float)(i % 100) / 100, y = (float)(i / 100) / 60;
        const float box[] = {x, y, x + 0.005f, y + 0.005f};
        for (int side = 0; side < 4; side++) {
            boxes[4 * i + side] = box[side];
        }
        scores[i] = 0.5f + (float)(i * 7 % 6000) / 20000;
    }
    handmade_init(&model, 1000, 600);
    handmade_output(&model, "boxes", boxes_form, boxes);
    handmade_output(&model, "scores", scores_form, scores);
    handmade_set(&model, "decoder", "ssd_anchors");
    handmade_set(&model, "box_order", "xyxy");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, "top_k=1000");
    REQUIRE(model.found.object_count == 1000);
    for (int i = 0; i < 1000; i++) {
        EXPECT_CLOSE(model.found.object[i].score, 0.5 + (5999.0 - i) / 20000, 1e-6);
    }
    handmade_finish(&model);
}

static void contradictions_are_refused_with_both_numbers(void)
{
    static const char *const wrong[][3] = {
        {"anchors", "8*3", "6 anchors for the 4 boxes of output 'boxes'"},
        {"anchors", "8: 10x10; 16: 2x", "not WIDTHxHEIGHT"},
        {"anchors", "0*2", "\"0*2\": not STRIDE"},
        {"anchors", "8*17", "not 1 to 16 anchors"},
        {"anchors", "8*2;", "\"\": not STRIDE"},
        {"anchors", "1*1;1*1;1*1;1*1;1*1;1*1;1*1;1*1;1*1", "more than 8 levels"},
        {"anchors", "8:1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1,1x1",
         "more than 16 anchors"},
        {"box_scale", "1,2", "not 1 or 4 numbers"},
        {"box_scale", "0", "not 1 or 4 numbers"},
        {"keypoint_names", "a,b", "2 names for 1 keypoints"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct handmade model;
        make_faces(&model);
        handmade_set(&model, wrong[i][0], wrong[i][1]);
        handmade_set(&model, "anchors", "8*2"); /* the first one counts */
        EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
        EXPECT_HAS(model.err.text, wrong[i][2]);
        handmade_finish(&model);
    }
    struct handmade model;
    make_faces(&model);
    EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
    EXPECT_HAS(model.err.text, "boxes in the order xywh need \"anchors\"");
    handmade_finish(&model);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(faces_are_offsets_from_cells),
        T(places_are_mapped_to_the_picture),
        T(sizes_may_be_logarithms),
        T(boxes_may_be_corners),
        T(too_many_candidates_leave_the_best),
        T(contradictions_are_refused_with_both_numbers),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

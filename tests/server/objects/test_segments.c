/* Segmentation: classes of cells, their share of the picture, the mask. */
#include "tests/server/objects/handmade.h"
#include "tests/support/test.h"

static const int64_t form[] = {2, 2, 3, 0}, first_form[] = {3, 2, 2, 0};
/* Cells: 0 2 / 2 1 */
static const float last[] = {5, 1, 0, 0, 1, 2, 0, 0, 1, 0, 3, 1};
static const float first[] = {5, 0, 0, 0, 1, 1, 0, 3, 0, 2, 1, 1};

static void check_cells(struct handmade *model)
{
    /* The model's 4×4 input shows the picture's columns 2 … 5 of 6; a cell is 2 pixels wide. */
    model->view = (struct ifd_picture_view){
        .width = 6, .height = 4, .offset_x = 2, .scale_x = 1, .scale_y = 1};
    handmade_set(model, "decoder", "argmax");
    REQUIRE_OK(handmade_read(model), &model->err);
    handmade_find(model, "mask=png");
    static const uint8_t want[] = {255, 255, 0, 0, 2, 2, 255, 255, 0, 0, 2, 2,
                                   255, 255, 2, 2, 1, 1, 255, 255, 2, 2, 1, 1};
    REQUIRE(model->found.mask);
    EXPECT_INT(model->found.mask_width, 6);
    EXPECT_INT(model->found.mask_height, 4);
    EXPECT_BYTES(model->found.mask, want, sizeof(want));
    REQUIRE(model->found.segment_count == 3);
    EXPECT_INT(model->found.segment[0].index, 2);
    EXPECT_CLOSE(model->found.segment[0].area, 8.0 / 24, 1e-6);
    EXPECT_INT(model->found.segment[1].index, 0);
    EXPECT_INT(model->found.segment[2].index, 1);
    EXPECT_CLOSE(model->found.segment[2].area, 4.0 / 24, 1e-6);
}

static void cells_have_their_best_class(void)
{
    struct handmade model;
    handmade_init(&model, 4, 4);
    handmade_output(&model, "map", form, last);
    check_cells(&model);
    handmade_find(&model, "classes=1");
    REQUIRE(model.found.segment_count == 1);
    EXPECT(!model.found.mask);
    handmade_finish(&model);
}

static void classes_may_come_first(void)
{
    struct handmade model;
    handmade_init(&model, 4, 4);
    handmade_set(&model, "output_layout", "chw");
    handmade_output(&model, "map", first_form, first);
    check_cells(&model);
    handmade_finish(&model);
}

static void one_score_is_compared_with_the_threshold(void)
{
    static const int64_t one[] = {2, 2, 1, 0};
    static const float logits[] = {-1, 1, 3, -3};
    struct handmade model;
    handmade_init(&model, 4, 4);
    handmade_set(&model, "task", "segmentation");
    handmade_set(&model, "activation", "sigmoid");
    handmade_output(&model, "map", one, logits);
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, "threshold=0.8"); /* σ(1) = 0.73 */
    REQUIRE(model.found.segment_count == 2);
    EXPECT_INT(model.found.segment[1].index, 1);
    EXPECT_CLOSE(model.found.segment[1].area, 0.25, 1e-6);
    handmade_finish(&model);
}

static void too_many_classes_are_refused(void)
{
    static const int64_t many[] = {2, 2, 256, 0};
    struct handmade model;
    handmade_init(&model, 4, 4);
    handmade_set(&model, "decoder", "argmax");
    handmade_output(&model, "map", many, NULL);
    EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
    EXPECT_HAS(model.err.text, "256 classes, the most are 255");
    handmade_finish(&model);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(cells_have_their_best_class),
        T(classes_may_come_first),
        T(one_score_is_compared_with_the_threshold),
        T(too_many_classes_are_refused),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

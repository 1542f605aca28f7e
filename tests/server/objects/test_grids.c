/* Boxes of grids: YOLO's codings, distributions over distances. */
#include "tests/server/objects/handmade.h"
#include "tests/support/test.h"

#include <math.h>

static void expect_one(struct handmade *model, uint32_t index, double score, double x0, double y0,
                       double x1, double y1)
{
    REQUIRE_OK(handmade_read(model), &model->err);
    handmade_find(model, "threshold=0.3");
    REQUIRE(model->found.object_count == 1);
    const struct ifd_object *object = model->found.object;
    EXPECT_INT(object->index, index);
    EXPECT_CLOSE(object->score, score, 1e-5);
    EXPECT_CLOSE(object->box[0], x0, 1e-3);
    EXPECT_CLOSE(object->box[1], y0, 1e-3);
    EXPECT_CLOSE(object->box[2], x1, 1e-3);
    EXPECT_CLOSE(object->box[3], y1, 1e-3);
    handmade_finish(model);
}

static void make(struct handmade *model, const char *decoder, const char *coding)
{
    handmade_init(model, 8, 8);
    model->desc.backend = "onnx";
    handmade_set(model, "decoder", decoder);
    if (coding) {
        handmade_set(model, "grid_coding", coding);
    }
}

static void v3_takes_sigmoids_and_anchors(void)
{
    static const int64_t form[] = {1, 7, 0};
    const float row[] = {0, 0, 0, logf(1.5f), logf(3), 0, logf(9)};
    struct handmade model;
    make(&model, "yolo_grid", "v3");
    handmade_set(&model, "anchors", "8: 4x2");
    handmade_output(&model, "rows", form, row);
    expect_one(&model, 1, 0.75 * 0.9, 2, 2.5, 6, 5.5); /* 4×3 around (4, 4) */
}

/* Two levels, each with a map; the found row is that of the cell in row 1, column 0, anchor 1. */
static void check_maps(const int64_t *fine, size_t first, size_t step, const int64_t *coarse)
{
    static float numbers[2 * 2 * 3 * 7], none[7];
    const float row[] = {0, 0, logf(2), 0, 9, 9, -9};
    struct handmade model;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        numbers[i] = -20;
    }
    for (size_t i = 0; i < 7; i++) {
        numbers[first + i * step] = row[i];
        none[i] = -20;
    }
    make(&model, "yolo_grid", "v3");
    handmade_set(&model, "anchors", "8: 1x1; 4: 1x1, 2x3, 1x1");
    handmade_output(&model, "fine", fine, numbers);
    handmade_output(&model, "coarse", coarse, none);
    expect_one(&model, 0, 0.99975, 0, 4.5, 4, 7.5); /* 4×3 around (2, 6) */
}

static void maps_come_in_four_orders(void)
{
    static const int64_t hwc[] = {2, 2, 21, 0}, chw[] = {21, 2, 2, 0}, hwan[] = {2, 2, 3, 7, 0},
                         ahwn[] = {3, 2, 2, 7, 0}, coarse[] = {1, 1, 7, 0};
    check_maps(hwc, 2 * 21 + 7, 1, coarse);
    check_maps(chw, 7 * 4 + 2, 4, coarse);
    check_maps(hwan, 2 * 21 + 7, 1, coarse);
    check_maps(ahwn, 4 * 7 + 2 * 7, 1, coarse);
}

static void v5_takes_wider_sigmoids(void)
{
    static const int64_t form[] = {4, 6, 0};
    static float rows[4 * 6];
    const float row[] = {0, logf(3), 0, logf(3), 9, 9};
    struct handmade model;
    for (size_t i = 0; i < 24; i++) {
        rows[i] = i / 6 == 2 ? row[i % 6] : -20; /* row 1, column 0 */
    }
    make(&model, "yolo_grid", "v5");
    handmade_set(&model, "anchors", "4: 2x4");
    handmade_output(&model, "rows", form, rows);
    /* centre (0.5, 1 + 1) cells; size 2×1, 4×2.25 */
    expect_one(&model, 0, 0.99975, 1, 3.5, 3, 8);
}

static void x_counts_in_cells(void)
{
    static const int64_t form[] = {4, 7, 0};
    const float rows[] = {[21] = 0.5f, 0.25f, 0, logf(2), 0.9f, 0.1f, 0.8f};
    float all[28] = {0};
    struct handmade model;
    for (size_t i = 21; i < 28; i++) {
        all[i] = rows[i];
    }
    make(&model, "yolo_grid", "x");
    handmade_set(&model, "strides", "4");
    handmade_output(&model, "rows", form, all);
    expect_one(&model, 1, 0.72, 4, 1, 8, 8); /* 4×8 around (6, 5) */
}

static void decoded_rows_have_a_unit(void)
{
    static const int64_t form[] = {1, 6, 0};
    static const float row[] = {0.5f, 0.25f, 0.5f, 0.25f, 1, 0.5f},
                       pixels[] = {4, 2, 4, 2, 1, 0.5f};
    struct handmade model;
    make(&model, "yolo_grid", NULL);
    handmade_output(&model, "rows", form, pixels);
    expect_one(&model, 0, 0.5, 2, 1, 6, 3);
    make(&model, "yolo_grid", NULL);
    model.desc.backend = "tflite"; /* whose exporters divide by the input's size */
    handmade_output(&model, "rows", form, row);
    expect_one(&model, 0, 0.5, 2, 1, 6, 3);
    make(&model, "yolo_grid", NULL);
    handmade_set(&model, "box_unit", "input");
    handmade_output(&model, "rows", form, row);
    expect_one(&model, 0, 0.5, 2, 1, 6, 3);
}

static void v8_has_numbers_or_cells_first(void)
{
    static const int64_t numbers_first[] = {9, 4, 0}, cells_first[] = {4, 9, 0};
    static const float row[] = {4, 3, 6, 2, 0.25f, 0.75f, 5, 6, 0.5f};
    float across[36] = {0}, along[36] = {0};
    struct handmade model;
    for (size_t i = 0; i < 9; i++) {
        across[4 * i + 2] = along[9 * 2 + i] = row[i];
    }
    for (int is_along = 0; is_along < 2; is_along++) {
        make(&model, "yolo_dfl", NULL);
        handmade_set(&model, "strides", "4");
        handmade_set(&model, "keypoints", "1");
        handmade_output(&model, "rows", is_along ? cells_first : numbers_first,
                        is_along ? along : across);
        REQUIRE_OK(handmade_read(&model), &model.err);
        handmade_find(&model, NULL);
        REQUIRE(model.found.object_count == 1 && model.found.object->keypoint_count == 1);
        EXPECT_CLOSE(model.found.object->keypoint->y, 6, 1e-5);
        EXPECT_CLOSE(model.found.object->keypoint->score, 0.5, 1e-5);
        expect_one(&model, 1, 0.75, 1, 2, 7, 4);
    }
}

static void distances_are_means_of_distributions(void)
{
    static const int64_t form[] = {1, 10, 0};
    /* two classes; left, top, right, bottom: logits of distances 0 and 1 */
    const float row[] = {0.1f, 0.6f, 0, 0, -200, 0, 0, logf(3), 0, -200};
    struct handmade model;
    make(&model, "yolo_dfl", NULL);
    handmade_set(&model, "strides", "8");
    handmade_set(&model, "regression_range", "1");
    handmade_set(&model, "cell_offset", "0.5");
    handmade_output(&model, "rows", form, row);
    /* ½ left, 1 up, ¾ right, 0 down of (½, ½), in cells of 8 */
    expect_one(&model, 1, 0.6, 0, 0, 8, 4);
}

static void contradictions_are_refused_with_both_numbers(void)
{
    static const struct {
        const char *decoder, *key, *value, *why;
        int64_t form[3];
    } wrong[] = {
        {"yolo_grid", "grid_coding", "x", "40 anchors for the 80 rows of output 'rows'", {80, 85}},
        {"yolo_grid", "anchors", "8*1", "\"grid_coding\" none needs no \"anchors\"", {80, 85}},
        {"yolo_grid", "grid_coding", "v3", "\"grid_coding\" v3 needs \"anchors\"", {80, 85}},
        {"yolo_grid", "box_unit", "pixels", "rows of 5 numbers, expected more than 5", {80, 5}},
        {"yolo_dfl",
         "box_unit",
         "pixels",
         "40 cells by \"strides\", output 'rows' is [84,80]",
         {84, 80}},
        {"yolo_dfl",
         "regression_range",
         "7",
         "32 numbers, and no class is left of the 32 of output 'rows'",
         {40, 32}},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct handmade model;
        handmade_init(&model, 64, 40); /* 8×5 cells of 8 pixels */
        model.desc.backend = "onnx";
        handmade_set(&model, "decoder", wrong[i].decoder);
        handmade_set(&model, wrong[i].key, wrong[i].value);
        handmade_set(&model, "strides", "8");
        handmade_output(&model, "rows", wrong[i].form, NULL);
        EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
        EXPECT_HAS(model.err.text, wrong[i].why);
        handmade_finish(&model);
    }
}

static void our_labels_are_dropped_where_they_do_not_fit(void)
{
    static const int64_t coco[] = {1, 85, 0}, other[] = {1, 8, 0};
    struct handmade model;
    make(&model, "yolo_grid", NULL);
    handmade_set(&model, "labels", "coco");
    handmade_output(&model, "rows", coco, NULL);
    REQUIRE_OK(handmade_read(&model), &model.err);
    REQUIRE(model.desc.meaning->label_count == 80);
    EXPECT_TEXT(model.desc.meaning->label[15], "cat");
    EXPECT_TEXT(model.desc.meaning->label[79], "toothbrush");
    handmade_finish(&model);
    make(&model, "yolo_grid", NULL);
    handmade_set(&model, "labels", "coco");
    handmade_output(&model, "rows", other, NULL);
    REQUIRE_OK(handmade_read(&model), &model.err);
    EXPECT_INT(model.desc.meaning->label_count, 0);
    handmade_finish(&model);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(v3_takes_sigmoids_and_anchors),
        T(maps_come_in_four_orders),
        T(v5_takes_wider_sigmoids),
        T(x_counts_in_cells),
        T(decoded_rows_have_a_unit),
        T(v8_has_numbers_or_cells_first),
        T(distances_are_means_of_distributions),
        T(contradictions_are_refused_with_both_numbers),
        T(our_labels_are_dropped_where_they_do_not_fit),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* What models mean, and what clients may choose. */
#include <math.h>

#include "engine/base/str.h"
#include "tests/server/objects/handmade.h"
#include "tests/support/test.h"

static const int64_t four[] = {4, 0};
static const char *const labels[] = {"ant", "bee", "Cat"};

static void make_scores(struct handmade *model, const float *scores)
{
    handmade_init(model, 8, 8);
    handmade_output(model, "scores", four, scores);
    model->output[0].labels = labels;
    model->output[0].label_count = 3;
}

static void labels_make_scores_a_classification(void)
{
    static const float scores[] = {0.125f, 0.5f, 0.25f, 0.5f};
    struct handmade model;
    make_scores(&model, scores);
    REQUIRE_OK(handmade_read(&model), &model.err);
    REQUIRE(model.desc.meaning);
    EXPECT_INT(model.desc.meaning->task, IFD_TASK_CLASSIFICATION);
    handmade_find(&model, "top_k=3");
    REQUIRE(model.found.object_count == 3);
    EXPECT_INT(model.found.object[0].index, 1); /* of equal scores the first */
    EXPECT_INT(model.found.object[1].index, 3);
    EXPECT_INT(model.found.object[2].index, 2);
    EXPECT_CLOSE(model.found.object[2].score, 0.25, 0);
    EXPECT(!model.found.object[0].has_box);
    handmade_find(&model, "threshold=0.2");
    EXPECT_INT(model.found.object_count, 3);
    handmade_find(&model, "classes=cat,0");
    REQUIRE(model.found.object_count == 2);
    EXPECT_INT(model.found.object[0].index, 2);
    EXPECT_INT(model.found.object[1].index, 0);
    handmade_finish(&model);
}

static void nothing_is_meant_where_nobody_says_it(void)
{
    struct handmade model;
    handmade_init(&model, 8, 8);
    handmade_output(&model, "x", four, NULL);
    REQUIRE_OK(handmade_read(&model), &model.err);
    EXPECT(!model.desc.meaning);
    handmade_finish(&model);
}

static void listed_labels_are_as_many_as_classes(void)
{
    static const struct {
        const char *decoder;
        int64_t form[4];
    } models[] = {{"classes", {4}}, {"argmax", {2, 2, 4}}, {"yolo_grid", {3, 9}}};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        for (int is_wrong = 0; is_wrong < 2; is_wrong++) {
            struct handmade model;
            handmade_init(&model, 8, 8);
            model.desc.backend = "onnx";
            handmade_output(&model, "x", models[i].form, NULL);
            handmade_set(&model, "decoder", models[i].decoder);
            handmade_set(&model, "labels", is_wrong ? "ant, bee, cat" : "ant, bee, cat, dog");
            EXPECT_CODE(handmade_read(&model), is_wrong ? IFD_INVALID : IFD_OK, &model.err);
            if (is_wrong) {
                EXPECT_HAS(model.err.text, "parameter \"labels\": 3 names for 4 classes");
            }
            handmade_finish(&model);
        }
    }
}

static void a_config_says_what_is_answered(void)
{
    static const struct {
        const char *value, *why;
        enum ifd_answer_kind kind;
    } cases[] = {{"objects", NULL, IFD_ANSWER_OBJECTS},
                 {"tensors", NULL, IFD_ANSWER_TENSORS},
                 {"boxes", "\"boxes\" is none of objects, tensors", IFD_ANSWER_OPEN}};
    struct handmade model;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        make_scores(&model, NULL);
        handmade_set(&model, "outputs", cases[i].value);
        EXPECT_CODE(handmade_read(&model), cases[i].why ? IFD_INVALID : IFD_OK, &model.err);
        if (cases[i].why) {
            EXPECT_HAS(model.err.text, cases[i].why);
        } else {
            EXPECT_INT(model.desc.meaning->usual_answer, cases[i].kind);
        }
        handmade_finish(&model);
    }
    handmade_init(&model, 8, 8);
    handmade_output(&model, "x", four, NULL);
    handmade_set(&model, "outputs", "objects");
    EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
    EXPECT_HAS(model.err.text, "nobody says what the outputs mean");
    handmade_finish(&model);
}

static void quantized_scores_are_real_numbers(void)
{
    struct handmade model;
    make_scores(&model, NULL);
    static int8_t stored[] = {-128, 127, 72, -28};
    model.output[0].scale = 1.0f / 256;
    model.output[0].zero_point = -128;
    model.tensor[0].dtype = IFD_S8;
    model.tensor[0].data = stored;
    model.tensor[0].bytes = sizeof(stored);
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 4);
    EXPECT_CLOSE(model.found.object[0].score, 255.0 / 256, 1e-6);
    EXPECT_CLOSE(model.found.object[1].score, 200.0 / 256, 1e-6);
    EXPECT_INT(model.found.object[1].index, 2);
    EXPECT_CLOSE(model.found.object[3].score, 0, 0);
    handmade_finish(&model);
}

static void logits_become_probabilities(void)
{
    static const float logits[] = {1, 2, 3, -INFINITY};
    struct handmade model;
    make_scores(&model, logits);
    handmade_set(&model, "preset", "imagenet_torch");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 4);
    EXPECT_INT(model.found.object[0].index, 2);
    EXPECT_CLOSE(model.found.object[0].score, 0.66524096, 1e-6); /* e^3 / (e + e^2 + e^3) */
    EXPECT_CLOSE(model.found.object[2].score, 0.09003057, 1e-6);
    handmade_finish(&model);
}

/* What an output of 8 bits may store tells that it has logits; the config wins. */
static void quantized_logits_are_known_by_their_range(void)
{
    static const int8_t logits[] = {-128, 10, 127, 0};
    static const struct {
        float scale;
        int32_t zero_point;
        const char *activation; /* NULL: nobody says it */
        float best;
    } cases[] = {{1.0f / 256, -128, NULL, 255.0f / 256}, /* 0 … 1 */
                 {0.125f, 3, NULL, 0.9999994f},          /* -16 … 15: softmax */
                 {0.125f, 3, "none", 15.5f},
                 {0.125f, 3, "sigmoid", 0.9999998f}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct handmade model;
        handmade_init(&model, 8, 8);
        handmade_output(&model, "x", four, NULL);
        model.output[0].dtype = model.tensor[0].dtype = IFD_S8;
        model.output[0].scale = cases[i].scale;
        model.output[0].zero_point = cases[i].zero_point;
        model.tensor[0].data = (void *)(uintptr_t)logits;
        model.tensor[0].bytes = sizeof(logits);
        handmade_set(&model, "task", "classification");
        if (cases[i].activation) {
            handmade_set(&model, "activation", cases[i].activation);
        }
        REQUIRE_OK(handmade_read(&model), &model.err);
        handmade_find(&model, NULL);
        REQUIRE(model.found.object_count > 0);
        EXPECT_INT(model.found.object[0].index, 2);
        EXPECT_CLOSE(model.found.object[0].score, cases[i].best, 1e-6);
        handmade_finish(&model);
    }
}

static void configs_set_what_clients_leave_open(void)
{
    static const float scores[] = {0.125f, 0.5f, 0.25f, 0.5f};
    struct handmade model;
    make_scores(&model, scores);
    handmade_set(&model, "top_k", "1");
    handmade_set(&model, "classes", "ant");
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    REQUIRE(model.found.object_count == 1);
    EXPECT_INT(model.found.object[0].index, 0);
    handmade_find(&model, "classes=bee"); /* the request wins */
    REQUIRE(model.found.object_count == 1);
    EXPECT_INT(model.found.object[0].index, 1);
    handmade_finish(&model);
}

static void wrong_configs_are_refused(void)
{
    static const char *const wrong[][3] = {
        {"task", "guessing", "\"guessing\" is none of classification, detection"},
        {"decoder", "magic", "\"magic\" is none of"},
        {"threshold", "1.5", "threshold: \"1.5\" is not a number 0 … 1"},
        {"top_k", "0", "top_k: \"0\" is not a count from 1"},
        {"iou", "half", "iou: \"half\" is not a number 0 … 1"},
        {"mask", "svg", "mask: \"svg\" is none of none, png, rle"},
        {"classes", "ant,dragon", "\"dragon\" is neither a label of the model nor an index"},
        {"activation", "relu", "\"relu\" is none of none, sigmoid, softmax"},
        {"outputs_used", "scores,more", "the model has no output \"more\""},
        {"decoder", "ssd_postprocessed", "expected outputs [N,4], [N], [N] and [1]"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct handmade model;
        make_scores(&model, NULL);
        handmade_set(&model, wrong[i][0], wrong[i][1]);
        EXPECT_CODE(handmade_read(&model), IFD_INVALID, &model.err);
        EXPECT_HAS(model.err.text, wrong[i][2]);
        EXPECT(!model.desc.meaning);
        handmade_finish(&model);
    }
}

static void options_of_others_are_told_apart(void)
{
    struct handmade model;
    struct ifd_object_options options = {.top_k = 7};
    make_scores(&model, NULL);
    REQUIRE_OK(handmade_read(&model), &model.err);
    EXPECT_INT(ifd_object_option(model.desc.meaning, ifd_str("resize"), ifd_str("crop"),
                                 &model.arena, &options, &model.err),
               IFD_NOT_FOUND);
    EXPECT_INT(options.top_k, 7);
    handmade_finish(&model);
}

/* ---- SSD with its post-processing operator ---- */

static const int64_t boxes_form[] = {3, 4, 0}, list_form[] = {3, 0}, count_form[] = {0};
static const float boxes[] = {0.1f, 0.2f, 0.5f, 0.6f, -0.5f, 0.5f, 2, 1, 0, 0, 1, 1};
static const float classes[] = {16, 0, 3}, scores[] = {0.75f, 0.5f, 0.875f}, count[] = {2};

static void check_two_objects(struct handmade *model)
{
    REQUIRE_OK(handmade_read(model), &model->err);
    EXPECT_INT(model->desc.meaning->task, IFD_TASK_DETECTION);
    handmade_find(model, NULL);
    REQUIRE(model->found.object_count == 2);
    const struct ifd_object *object = model->found.object;
    EXPECT_INT(object[0].index, 16);
    EXPECT_CLOSE(object[0].score, 0.75, 0);
    EXPECT_CLOSE(object[0].box[0], 100 + 0.2 * 200, 1e-4); /* x = 100 + x' × 100 × 2 */
    EXPECT_CLOSE(object[0].box[1], 0.1 * 50 * 4, 1e-4);
    EXPECT_CLOSE(object[0].box[2], 100 + 0.6 * 200, 1e-4);
    EXPECT_CLOSE(object[0].box[3], 0.5 * 50 * 4, 1e-4);
    EXPECT_INT(object[1].index, 0);
    EXPECT_CLOSE(object[1].box[1], 0, 0); /* clipped to the picture */
    EXPECT_CLOSE(object[1].box[2], 300, 0);
    EXPECT_CLOSE(object[1].box[3], 180, 0);
}

static void ssd_boxes_are_mapped_and_clipped(void)
{
    struct handmade model;
    handmade_init(&model, 100, 50);
    model.view = (struct ifd_picture_view){
        .width = 320, .height = 180, .offset_x = 100, .scale_x = 2, .scale_y = 4};
    handmade_output(&model, "TFLite_Detection_PostProcess", boxes_form, boxes);
    handmade_output(&model, "TFLite_Detection_PostProcess:1", list_form, classes);
    handmade_output(&model, "TFLite_Detection_PostProcess:2", list_form, scores);
    handmade_output(&model, "TFLite_Detection_PostProcess:3", count_form, count);
    check_two_objects(&model);
    handmade_find(&model, "threshold=0.6");
    EXPECT_INT(model.found.object_count, 1);
    handmade_find(&model, "classes=0");
    REQUIRE(model.found.object_count == 1);
    EXPECT_INT(model.found.object[0].index, 0);
    handmade_finish(&model);
}

static void ssd_outputs_are_found_in_any_order(void)
{
    struct handmade model;
    handmade_init(&model, 100, 50);
    model.view = (struct ifd_picture_view){
        .width = 320, .height = 180, .offset_x = 100, .scale_x = 2, .scale_y = 4};
    handmade_set(&model, "preset", "ssd");
    handmade_output(&model, "StatefulPartitionedCall:1", list_form, scores);
    handmade_output(&model, "StatefulPartitionedCall:3", boxes_form, boxes);
    handmade_output(&model, "StatefulPartitionedCall:0", count_form, count);
    handmade_output(&model, "StatefulPartitionedCall:2", list_form, classes);
    check_two_objects(&model);
    handmade_finish(&model);
}

static void odd_numbers_of_ssd_are_no_objects(void)
{
    static const float odd_boxes[] = {0, 0, NAN, 1, 0.5f, 0.5f, 0.5f, 0.5f, 2, 2, 3, 3};
    static const float odd_classes[] = {1, 1, 1}, huge[] = {1e30f};
    struct handmade model;
    handmade_init(&model, 100, 50);
    handmade_output(&model, "TFLite_Detection_PostProcess", boxes_form, odd_boxes);
    handmade_output(&model, "TFLite_Detection_PostProcess:1", list_form, odd_classes);
    handmade_output(&model, "TFLite_Detection_PostProcess:2", list_form, scores);
    handmade_output(&model, "TFLite_Detection_PostProcess:3", count_form, huge);
    REQUIRE_OK(handmade_read(&model), &model.err);
    handmade_find(&model, NULL);
    EXPECT_INT(model.found.object_count, 0);
    handmade_finish(&model);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(labels_make_scores_a_classification),
        T(nothing_is_meant_where_nobody_says_it),
        T(listed_labels_are_as_many_as_classes),
        T(a_config_says_what_is_answered),
        T(quantized_scores_are_real_numbers),
        T(logits_become_probabilities),
        T(quantized_logits_are_known_by_their_range),
        T(configs_set_what_clients_leave_open),
        T(wrong_configs_are_refused),
        T(options_of_others_are_told_apart),
        T(ssd_boxes_are_mapped_and_clipped),
        T(ssd_outputs_are_found_in_any_order),
        T(odd_numbers_of_ssd_are_no_objects),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

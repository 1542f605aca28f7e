/* detection_postprocess with many classes: best box and class; anchors that are refused. */
#include "inferd/op.h"
#include "inferd/op_attrs.h"
#include "tests/support/test.h"

#include <string.h>

enum { BOXES = 40, CLASSES_MAX = 100, BACKGROUND = 1 };

struct call {
    uint8_t code[BOXES][4], anchor[BOXES][4], score[BOXES][BACKGROUND + CLASSES_MAX];
    float box[4], class_index, best, count;
};

static const float scale[] = {0.5f};
static const int32_t zero[] = {10};

static struct ifd_desc desc_of(enum ifd_dtype dtype, struct ifd_shape shape)
{
    const struct ifd_quant quant = {scale, zero, 1, 0};
    return (struct ifd_desc){
        .dtype = dtype, .shape = shape, .quant = dtype == IFD_U8 ? quant : (struct ifd_quant){0}};
}

/* score: [BOXES][1 + classes]. */
static enum ifd_code detect(struct call *call, int32_t classes, struct ifd_err *err)
{
    const struct ifd_op_def *def = ifd_op_def(IFD_OP_DETECTION_POSTPROCESS);
    const struct ifd_detection_attrs attrs = {.max_detections = 1,
                                              .max_classes_per_detection = 1,
                                              .detections_per_class = 1,
                                              .num_classes = classes,
                                              .nms_score_threshold = 0,
                                              .nms_iou_threshold = 0.5f,
                                              .y_scale = 1,
                                              .x_scale = 1,
                                              .h_scale = 1,
                                              .w_scale = 1};
    const struct ifd_desc in[] = {
        desc_of(IFD_U8, (struct ifd_shape){3, {1, BOXES, 4}}),
        desc_of(IFD_U8, (struct ifd_shape){3, {1, BOXES, BACKGROUND + classes}}),
        desc_of(IFD_U8, (struct ifd_shape){2, {BOXES, 4}})};
    const struct ifd_desc out[] = {desc_of(IFD_F32, (struct ifd_shape){3, {1, 1, 4}}),
                                   desc_of(IFD_F32, (struct ifd_shape){2, {1, 1}}),
                                   desc_of(IFD_F32, (struct ifd_shape){2, {1, 1}}),
                                   desc_of(IFD_F32, (struct ifd_shape){1, {1}})};
    const struct ifd_operand operand[] = {{.desc = &in[0]}, {.desc = &in[1]}, {.desc = &in[2]}};
    const struct ifd_infer infer = {
        .def = def, .attrs = &attrs, .input = operand, .input_count = 3, .output_count = 4};
    size_t bytes = 0;
    REQUIRE_OK(def->scratch(&infer, out, &bytes, err), err);
    void *scratch = ifd_acquire(ifd_alloc_system(), bytes); /* not a byte more */
    REQUIRE(scratch != NULL);
    const struct ifd_ref_call ref = {
        .attrs = &attrs,
        .in = (const struct ifd_desc *const[]){&in[0], &in[1], &in[2]},
        .input = (const void *const[]){call->code, call->score, call->anchor},
        .input_count = 3,
        .out = (const struct ifd_desc *const[]){&out[0], &out[1], &out[2], &out[3]},
        .output = (void *const[]){call->box, &call->class_index, &call->best, &call->count},
        .output_count = 4,
        .scratch = scratch};
    const enum ifd_code code = def->ref(&ref, err);
    ifd_release(ifd_alloc_system(), scratch, bytes);
    return code;
}

/* All boxes equal their anchors: centre 3, 3; height and width are the box's index. */
static struct call begin(void)
{
    struct call call;
    memset(&call, 0, sizeof(call));
    for (int i = 0; i < BOXES; i++) {
        memset(call.code[i], 10, 4);
        memset(call.anchor[i], 16, 2);
        memset(call.anchor[i] + 2, 10 + 2 * i, 2);
    }
    return call;
}

static void the_best_box_and_its_best_class_are_found_among_any_number(void)
{
    struct test_random random = {.state = 5};
    for (int32_t classes = 1; classes <= CLASSES_MAX; classes++) {
        struct call call = begin();
        struct ifd_err err = {0};
        uint8_t *score = &call.score[0][0];
        int best = -1, best_box = 0, best_class = 0;
        for (int box = 0; box < BOXES; box++) {
            *score++ = 255; /* the background does not count */
            for (int32_t c = 0; c < classes; c++, score++) {
                *score = (uint8_t)test_random_int(&random, 10, 40);
                if (*score > best) {
                    best = *score;
                    best_box = box;
                    best_class = c;
                }
            }
        }
        REQUIRE_OK(detect(&call, classes, &err), &err);
        EXPECT(call.count == 1);
        EXPECT(call.best == (float)(best - 10) * 0.5f);
        EXPECT(call.class_index == (float)best_class);
        for (int side = 0; side < 4; side++) {
            const float half = (float)best_box / 2;
            EXPECT(call.box[side] == (side < 2 ? 3 - half : 3 + half));
        }
    }
}

static void a_box_of_negative_size_is_refused_though_nobody_wants_it(void)
{
    for (int side = 2; side < 4; side++) {
        struct call call = begin();
        struct ifd_err err = {0};
        call.score[0][1] = 200;
        call.anchor[27][side] = 8;
        EXPECT_CODE(detect(&call, CLASSES_MAX, &err), IFD_INVALID, &err);
        EXPECT_HAS(err.text, "box 27 has negative size");
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(the_best_box_and_its_best_class_are_found_among_any_number),
        T(a_box_of_negative_size_is_refused_though_nobody_wants_it),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

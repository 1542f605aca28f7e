/* Every decoder with too little memory, at every place: an error, and never half a result. */
#include "engine/base/str.h"
#include "tests/server/objects/handmade.h"
#include "tests/support/test.h"

#define STEP_BYTES 16

static const struct {
    const char *parameter[8]; /* key, value, … */
    int64_t output[3][4];
} models[] = {
    {{"task", "classification", "labels", "a,b", "classes", "a,1"}, {{2}}},
    {{"decoder", "ssd_anchors", "anchors", "8*2", "keypoints", "1", "box_order", "xywh"},
     {{4, 6}, {4, 1}}},
    {{"decoder", "yolo_grid", "grid_coding", "x", "strides", "8"}, {{2, 7}}},
    {{"decoder", "yolo_dfl", "strides", "8", "regression_range", "1"}, {{2, 9}}},
    {{"decoder", "centernet", "outputs_used", "o0,o1,o2"}, {{2, 2, 2}, {2, 2, 2}, {2, 2, 2}}},
    {{"decoder", "landmarks", "keypoints", "2", "keypoint_names", "c,d"}, {{6}}},
    {{"decoder", "heatmap"}, {{2, 2, 3}}},
    {{"decoder", "argmax"}, {{2, 2, 3}}},
    {{"decoder", "ctc", "labels", "x,y"}, {{4, 3}}},
};

static void make(struct handmade *model, size_t which)
{
    static const char *const names[] = {"o0", "o1", "o2"};
    static float ones[64];
    for (size_t i = 0; i < 64; i++) {
        ones[i] = (float)(i % 3) / 2 + 0.25f;
    }
    handmade_init(model, 16, 8);
    for (size_t i = 0; i < 8 && models[which].parameter[i]; i += 2) {
        handmade_set(model, models[which].parameter[i], models[which].parameter[i + 1]);
    }
    for (size_t i = 0; i < 3 && models[which].output[i][0] > 0; i++) {
        handmade_output(model, names[i], models[which].output[i], ones);
    }
}

static void meanings_need_memory(void)
{
    for (size_t which = 0; which < sizeof(models) / sizeof(models[0]); which++) {
        enum ifd_code code = IFD_NOMEM;
        struct handmade model;
        make(&model, which);
        for (size_t cap = STEP_BYTES; code != IFD_OK; cap += STEP_BYTES) {
            struct ifd_arena arena;
            const struct ifd_meaning *meaning = NULL;
            struct ifd_err err = {0};
            ifd_arena_init(&arena, ifd_alloc_system(), cap);
            code = ifd_meaning_read(&model.desc, &arena, &meaning, &err);
            EXPECT((code == IFD_OK) == (meaning != NULL));
            EXPECT(code == IFD_OK || code == IFD_TOO_LARGE || code == IFD_NOMEM);
            ifd_arena_finish(&arena);
            REQUIRE(cap < 1 << 16);
        }
        handmade_finish(&model);
    }
}

static void decoders_need_memory(void)
{
    for (size_t which = 0; which < sizeof(models) / sizeof(models[0]); which++) {
        enum ifd_code code = IFD_NOMEM;
        struct handmade model;
        make(&model, which);
        REQUIRE_OK(handmade_read(&model), &model.err);
        const struct ifd_sample sample = {.output = model.tensor, .count = 1, .view = &model.view};
        struct ifd_object_options options = model.desc.meaning->options;
        options.threshold = 0;
        options.mask = IFD_MASK_PNG;
        for (size_t cap = STEP_BYTES; code != IFD_OK; cap += cap < 8192 ? STEP_BYTES : cap / 64) {
            struct ifd_arena arena;
            struct ifd_objects found;
            struct ifd_err err = {0};
            ifd_arena_init(&arena, ifd_alloc_system(), cap);
            code = ifd_objects_find(&model.desc, &sample, &options, &arena, &found, &err);
            EXPECT(code == IFD_OK || code == IFD_TOO_LARGE || code == IFD_NOMEM);
            EXPECT(code != IFD_OK ||
                   found.object_count + found.segment_count + found.text.size > 0);
            ifd_arena_finish(&arena);
            REQUIRE(cap < 1 << 24);
        }
        handmade_finish(&model);
    }
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(meanings_need_memory),
        T(decoders_need_memory),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

/* Drawings: where they have color, and that they stay inside. */
#include <string.h>

#include "server/objects/draw.h"
#include "server/objects/font.h"
#include "tests/support/test.h"

#define WIDTH  120
#define HEIGHT 80
#define GUARD  64

static uint8_t memory[GUARD + WIDTH * HEIGHT * 3 + GUARD];
static const struct ifd_canvas canvas = {.data = memory + GUARD, .width = WIDTH, .height = HEIGHT};
static const char *const labels[] = {"background", "cat"};
static const struct ifd_bone bones[] = {{0, 1}, {0, 9}};
static const struct ifd_meaning meaning = {
    .label = labels, .label_count = 2, .bone = bones, .bone_count = 2};

static void draw(const struct ifd_objects *found)
{
    memset(memory, 17, sizeof(memory));
    ifd_objects_draw(&canvas, &meaning, found);
    for (size_t i = 0; i < GUARD; i++) {
        EXPECT_INT(memory[i], 17);
        EXPECT_INT(memory[sizeof(memory) - 1 - i], 17);
    }
}

static bool has_color(int x, int y, uint32_t index)
{
    uint8_t rgb[3];
    ifd_class_color(index, rgb);
    return memcmp(canvas.data + (y * WIDTH + x) * 3, rgb, 3) == 0;
}

static bool is_untouched(int x, int y)
{
    const uint8_t *pixel = canvas.data + (y * WIDTH + x) * 3;
    return pixel[0] == 17 && pixel[1] == 17 && pixel[2] == 17;
}

static void boxes_have_frames_and_names(void)
{
    struct ifd_object object = {
        .index = 1, .score = 0.5f, .has_box = true, .box = {10, 30, 100, 70}};
    draw(&(struct ifd_objects){.object = &object, .object_count = 1});
    EXPECT(has_color(10, 50, 1) && has_color(99, 50, 1) && has_color(50, 30, 1) &&
           has_color(50, 69, 1));
    EXPECT(is_untouched(50, 50) && is_untouched(9, 50) && is_untouched(100, 50));
    EXPECT(has_color(10, 29, 1)); /* the bar of "cat 0.50" above the box: 11 high, 50 wide */
    EXPECT(has_color(10, 19, 1) && is_untouched(10, 18) && is_untouched(61, 25));
    size_t ink = 0;
    for (int x = 10; x < 60; x++) {
        ink += !has_color(x, 25, 1);
    }
    EXPECT(ink >= 8); /* letters */
}

static void what_lies_outside_is_clipped(void)
{
    static const struct ifd_keypoint points[] = {{.x = -1e30f, .y = 5, .score = 1},
                                                 {.x = 1e30f, .y = -1e30f, .score = 1}};
    struct ifd_object object = {.index = 7,
                                .score = 0.5f,
                                .has_box = true,
                                .box = {-500, -500, 5000, 5000},
                                .keypoint = points,
                                .keypoint_count = 2};
    draw(&(struct ifd_objects){.object = &object, .object_count = 1});
    EXPECT(is_untouched(60, 40));
}

static void bones_connect_points(void)
{
    static const struct ifd_keypoint points[] = {{.x = 20.5f, .y = 40.5f, .score = 1},
                                                 {.x = 80.5f, .y = 40.5f, .score = 1},
                                                 {.x = 50.5f, .y = 70.5f, .score = 0.1f}};
    struct ifd_object object = {.index = 1, .keypoint = points, .keypoint_count = 3};
    draw(&(struct ifd_objects){.object = &object, .object_count = 1});
    EXPECT(has_color(50, 40, 1));
    EXPECT(!is_untouched(20, 40) && !has_color(20, 40, 1)); /* a point has another color */
    EXPECT(has_color(18, 42, 1));                           /* and a border of the object's */
    EXPECT(is_untouched(50, 70));                           /* a guess is not drawn */
    EXPECT(has_color(0, 0, 1));                             /* name and score in the corner */
}

static int ink_of(char character)
{
    int rows = 0;
    for (int y = 0; y < IFD_FONT_HEIGHT; y++) {
        bool has_ink = false;
        for (int x = 0; x < IFD_FONT_WIDTH; x++) {
            has_ink = has_ink || ifd_font_has_ink(character, x, y);
        }
        rows |= has_ink << y;
    }
    return rows;
}

static void small_letters_have_tails(void)
{
    EXPECT_INT(ink_of('P'), 0x07f);
    EXPECT_INT(ink_of('o'), 0x07c);
    EXPECT_INT(ink_of('\x7f'), 0x07f); /* the frame of what the font lacks */
    for (const char *at = "gpqy"; *at != '\0'; at++) {
        EXPECT_INT(ink_of(*at), 0x1fc);
    }
}

/* The best class is named in any case. */
static void what_has_no_score_is_not_named(void)
{
    struct ifd_object object[] = {{.index = 1, .score = 0.999f}, {.index = 0, .score = 0.0049f}};
    draw(&(struct ifd_objects){.object = object, .object_count = 2});
    EXPECT(has_color(0, 10, 1) && is_untouched(0, 11));
    object[1].score = 0.0051f;
    draw(&(struct ifd_objects){.object = object, .object_count = 2});
    EXPECT(has_color(0, 11, 0));
    object[0].score = 0;
    draw(&(struct ifd_objects){.object = object, .object_count = 1});
    EXPECT(has_color(0, 10, 1)); /* the best one is */
}

static void masks_are_half_their_color(void)
{
    static uint8_t mask[WIDTH * HEIGHT];
    uint8_t rgb[3];
    struct ifd_segment segment[] = {{.index = 0, .area = 0.75f}, {.index = 1, .area = 0.25f}};
    memset(mask, 255, sizeof(mask));
    mask[60 * WIDTH + 50] = 1;
    mask[60 * WIDTH + 51] = 0;
    draw(&(struct ifd_objects){.segment = segment,
                               .segment_count = 2,
                               .mask = mask,
                               .mask_width = WIDTH,
                               .mask_height = HEIGHT});
    ifd_class_color(1, rgb);
    for (int c = 0; c < 3; c++) {
        EXPECT_INT(canvas.data[(60 * WIDTH + 50) * 3 + c], (17 + rgb[c]) / 2);
    }
    EXPECT(is_untouched(51, 60)); /* the background */
    EXPECT(is_untouched(52, 60)); /* no class */
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        T(boxes_have_frames_and_names),    T(what_lies_outside_is_clipped),
        T(bones_connect_points),           T(small_letters_have_tails),
        T(what_has_no_score_is_not_named), T(masks_are_half_their_color),
    };
    return test_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}

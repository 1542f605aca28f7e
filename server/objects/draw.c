/* Draws boxes, names, skeletons and masks. Everything is clipped to the canvas. */
#include "server/objects/draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/str.h"
#include "server/objects/font.h"

#define TEXT_BYTES      80
#define POINT_SCORE_MIN 0.2f   /* points below are guesses */
#define LINE_SCORE_MIN  0.005f /* classes below would be called "0.00" */
#define FRAME           2      /* pixels around a text, of the font's size */

/* A color, and how thick lines and how large letters are. */
struct pen {
    const struct ifd_canvas *canvas;
    uint8_t rgb[3];
    int size;
};

/* ---- shapes ---- */

static int limit(double x, uint32_t size)
{
    return !(x > 0) ? 0 : x < size ? (int)x : (int)size;
}

/* Fills the pixels from (x0, y0) to before (x1, y1). */
static void fill(const struct pen *pen, double x0, double y0, double x1, double y1)
{
    const struct ifd_canvas *canvas = pen->canvas;
    const int left = limit(x0, canvas->width), right = limit(x1, canvas->width);
    const int bottom = limit(y1, canvas->height);
    for (int y = limit(y0, canvas->height); y < bottom; y++) {
        uint8_t *pixel = canvas->data + ((size_t)y * canvas->width + (size_t)left) * 3;
        for (int x = left; x < right; x++, pixel += 3) {
            memcpy(pixel, pen->rgb, 3);
        }
    }
}

static void draw_frame(const struct pen *pen, const float *box)
{
    const double x0 = (double)box[0], y0 = (double)box[1], x1 = (double)box[2], y1 = (double)box[3],
                 size = pen->size;
    fill(pen, x0, y0, x1, y0 + size);
    fill(pen, x0, y1 - size, x1, y1);
    fill(pen, x0, y0, x0 + size, y1);
    fill(pen, x1 - size, y0, x1, y1);
}

static void draw_square(const struct pen *pen, const struct ifd_keypoint *at, double radius)
{
    fill(pen, (double)at->x - radius, (double)at->y - radius, (double)at->x + radius,
         (double)at->y + radius);
}

/* Points far outside of the picture are not reached: their line would have no end. */
static bool is_near(const struct ifd_canvas *canvas, const struct ifd_keypoint *point)
{
    const float width = (float)canvas->width, height = (float)canvas->height;
    return point->score >= POINT_SCORE_MIN && point->x >= -width && point->x <= 2 * width &&
           point->y >= -height && point->y <= 2 * height;
}

static void draw_line(const struct pen *pen, const struct ifd_keypoint *from,
                      const struct ifd_keypoint *to)
{
    const double dx = (double)(to->x - from->x), dy = (double)(to->y - from->y);
    const double half = pen->size / 2.0;
    const int steps = (int)fmax(fabs(dx), fabs(dy)) + 1;
    for (int i = 0; i <= steps; i++) {
        const double x = (double)from->x + dx * i / steps, y = (double)from->y + dy * i / steps;
        fill(pen, x - half, y - half, x + half, y + half);
    }
}

/* ---- text ---- */

/* Black or white, whichever is read better on a color. */
static struct pen ink_on(const struct pen *pen)
{
    struct pen ink = {.canvas = pen->canvas, .size = pen->size};
    const int brightness = 299 * pen->rgb[0] + 587 * pen->rgb[1] + 114 * pen->rgb[2];
    memset(ink.rgb, brightness > 128000 ? 0 : 255, 3);
    return ink;
}

static int text_height(const struct pen *pen)
{
    return (IFD_FONT_HEIGHT + FRAME) * pen->size;
}

/* Draws text on a bar of the pen's color whose upper left corner is (x, y). */
static void draw_text(const struct pen *pen, double x, double y, const char *text)
{
    const struct pen ink = ink_on(pen);
    const int size = pen->size, step = (IFD_FONT_WIDTH + 1) * size;
    fill(pen, x, y, x + (double)strlen(text) * step + FRAME * size, y + text_height(pen));
    for (size_t i = 0; text[i] != '\0'; i++) {
        const double left = x + (double)i * step + size, top = y + size;
        for (int at = 0; at < IFD_FONT_WIDTH * IFD_FONT_HEIGHT; at++) {
            const int column = at % IFD_FONT_WIDTH, row = at / IFD_FONT_WIDTH;
            if (ifd_font_has_ink(text[i], column, row)) {
                fill(&ink, left + column * size, top + row * size, left + (column + 1) * size,
                     top + (row + 1) * size);
            }
        }
    }
}

/* "cat 0.72"; a long name is cut. */
static void name_text(const struct ifd_meaning *meaning, uint32_t index, float number, char *text)
{
    if (index < meaning->label_count) {
        (void)snprintf(text, TEXT_BYTES, "%.60s %.2f", meaning->label[index], (double)number);
    } else {
        (void)snprintf(text, TEXT_BYTES, "%u %.2f", index, (double)number);
    }
}

/* ---- what was found ---- */

void ifd_class_color(uint32_t index, uint8_t *ret_rgb)
{
    const double turn = 0.12 + index * 0.6180339887498949; /* the golden section */
    for (int c = 0; c < 3; c++) {
        const double wave = cos(2 * 3.141592653589793 * (turn - c / 3.0));
        ret_rgb[c] = (uint8_t)(128 + 110 * wave);
    }
}

static struct pen pen_of(const struct ifd_canvas *canvas, uint32_t index)
{
    const uint32_t side = canvas->width < canvas->height ? canvas->width : canvas->height;
    struct pen pen = {.canvas = canvas, .size = (int)(side / 300) + 1};
    ifd_class_color(index, pen.rgb);
    return pen;
}

static void draw_object(const struct ifd_canvas *canvas, const struct ifd_meaning *meaning,
                        const struct ifd_object *object)
{
    const struct pen pen = pen_of(canvas, object->index);
    const struct ifd_keypoint *point = object->keypoint;
    char text[TEXT_BYTES];
    if (object->has_box) {
        draw_frame(&pen, object->box);
        name_text(meaning, object->index, object->score, text);
        const double above = (double)object->box[1] - text_height(&pen);
        draw_text(&pen, (double)object->box[0], above < 0 ? (double)object->box[1] : above, text);
    }
    for (uint32_t i = 0; i < meaning->bone_count; i++) {
        const struct ifd_bone bone = meaning->bone[i];
        if (bone.from < object->keypoint_count && bone.to < object->keypoint_count &&
            is_near(canvas, &point[bone.from]) && is_near(canvas, &point[bone.to])) {
            draw_line(&pen, &point[bone.from], &point[bone.to]);
        }
    }
    const struct pen ink = ink_on(&pen);
    for (uint32_t i = 0; i < object->keypoint_count; i++) {
        if (point[i].score >= POINT_SCORE_MIN) { /* two colors: one is seen on any ground */
            draw_square(&pen, &point[i], 2.5 * pen.size);
            draw_square(&ink, &point[i], 1.5 * pen.size);
        }
    }
}

static bool is_background(const struct ifd_meaning *meaning, uint32_t index)
{
    return index < meaning->label_count &&
           ifd_str_equal_nocase(ifd_str(meaning->label[index]), "background");
}

/* Pixels of a class are half its color. */
static void draw_mask(const struct ifd_canvas *canvas, const struct ifd_meaning *meaning,
                      const struct ifd_objects *found)
{
    uint8_t color[256][3];
    bool is_drawn[256] = {0};
    for (uint32_t i = 0; i < found->segment_count; i++) {
        const uint32_t index = found->segment[i].index;
        ifd_class_color(index, color[index & 255]);
        is_drawn[index & 255] = !is_background(meaning, index);
    }
    const size_t pixels = (size_t)canvas->width * canvas->height;
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t index = found->mask[i];
        for (size_t c = 0; c < 3 && is_drawn[index]; c++) {
            uint8_t *value = &canvas->data[3 * i + c];
            *value = (uint8_t)((*value + color[index][c]) / 2);
        }
    }
}

/* Lines of text in the upper left corner. */
static void draw_lines(const struct ifd_canvas *canvas, const struct ifd_meaning *meaning,
                       const struct ifd_objects *found)
{
    char text[TEXT_BYTES];
    double y = 0;
    for (uint32_t i = 0; i < found->segment_count; i++) {
        const struct pen pen = pen_of(canvas, found->segment[i].index);
        name_text(meaning, found->segment[i].index, found->segment[i].area, text);
        draw_text(&pen, 0, y, text);
        y += text_height(&pen);
    }
    for (uint32_t i = 0; i < found->object_count; i++) {
        const struct ifd_object *object = &found->object[i];
        const struct pen pen = pen_of(canvas, object->index);
        if (!object->has_box && (i == 0 || object->score >= LINE_SCORE_MIN)) {
            name_text(meaning, object->index, object->score, text);
            draw_text(&pen, 0, y, text);
            y += text_height(&pen);
        }
    }
    if (found->text.size > 0) {
        const struct pen pen = pen_of(canvas, 0);
        (void)snprintf(text, sizeof(text), "%.*s",
                       (int)(found->text.size < 60 ? found->text.size : 60), found->text.data);
        draw_text(&pen, 0, y, text);
    }
}

void ifd_objects_draw(const struct ifd_canvas *canvas, const struct ifd_meaning *meaning,
                      const struct ifd_objects *found)
{
    if (found->mask && found->mask_width == canvas->width && found->mask_height == canvas->height) {
        draw_mask(canvas, meaning, found);
    }
    for (uint32_t i = found->object_count; i-- > 0;) { /* the best one last, on top */
        draw_object(canvas, meaning, &found->object[i]);
    }
    draw_lines(canvas, meaning, found);
}

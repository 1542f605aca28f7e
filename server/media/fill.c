/* Resizes, normalises and stores. For each target row the source rows of a plane are mixed into
 * one, then the pixels of that row. Planes of YUV are resized before they become colours: that is
 * the same, and less work. */
#include <math.h>
#include <string.h>

#include "server/media/codecs_impl.h"
#include "server/media/taps.h"

/* A plane on its way into one target row. */
struct track {
    const struct ifd_plane *plane;
    struct ifd_taps x, y;
    uint32_t low, high; /* source columns that count */
    float *mixed;       /* a row of them */
    uint16_t *sum;      /* the same in units of 1 / 256 */
    float *line;        /* a row of target pixels */
};

struct filler {
    const struct ifd_decoded *decoded;
    const struct ifd_picture_region *to;
    const struct ifd_image_target *target;
    const struct ifd_tensor *tensor;
    struct track track[IFD_PLANES_MAX];
    float factor[3], addend[3]; /* stored = rounded(pixel * factor + addend) + zero point */
    float *line;                /* one target row, normalised */
};

/* ---- rows ---- */

/* Exact, for floats, and for a row alone. */
static void mix_rows(const uint8_t *row, size_t stride, const struct ifd_tap *tap, size_t count,
                     float *restrict ret)
{
    for (size_t i = 0; i < count; i++) {
        ret[i] = tap->weight[0] * (float)row[i];
    }
    for (uint32_t k = 1; k < tap->count; k++) {
        const uint8_t *next = row + k * stride;
        const float weight = tap->weight[k];
        for (size_t i = 0; i < count; i++) {
            ret[i] += weight * (float)next[i];
        }
    }
}

/* In units of 1 / 256, for targets of 8 bits. Each product is cut by half a unit in the mean. */
static void mix_rows_fixed(const uint8_t *row, size_t stride, const struct ifd_tap *tap,
                           size_t count, uint16_t *restrict sum, float *restrict ret)
{
    const uint16_t half = (uint16_t)(tap->count < 510 ? tap->count / 2 : 255);
    for (size_t i = 0; i < count; i++) {
        sum[i] = half;
    }
    for (uint32_t k = 0; k < tap->count; k++) {
        const uint8_t *next = row + k * stride;
        const uint16_t weight = tap->fixed[k];
        for (size_t i = 0; i < count; i++) {
            sum[i] = (uint16_t)(sum[i] + ((uint32_t)(next[i] << 8) * weight >> 16));
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret[i] = (float)sum[i] * (1.0f / 256);
    }
}

static void mix_source_rows(const struct filler *f, const struct track *t, uint32_t y)
{
    const struct ifd_plane *p = t->plane;
    const struct ifd_tap *tap = &t->y.tap[y];
    const size_t skipped = (size_t)t->low * p->channels;
    /* Of a channel that is not its pixel's first, the last pixel has no bytes behind it. */
    const size_t count = (size_t)(t->high - t->low - 1) * p->channels + p->used;
    const uint8_t *row = p->data + tap->first * p->stride + skipped;
    if (f->tensor->dtype == IFD_F32 || tap->count == 1) {
        mix_rows(row, p->stride, tap, count, t->mixed);
    } else {
        mix_rows_fixed(row, p->stride, tap, count, t->sum, t->mixed);
    }
}

/* ---- pixels of a row ---- */

static inline void mix_pixels(const struct track *t, uint32_t channels, uint32_t used)
{
    float *to = t->line;
    for (uint32_t x = 0; x < t->x.count; x++, to += used) {
        const struct ifd_tap *tap = &t->x.tap[x];
        const float *pixel = t->mixed + (size_t)(tap->first - t->low) * channels;
        float value[4] = {0};
        for (uint32_t k = 0; k < tap->count; k++, pixel += channels) {
            for (uint32_t c = 0; c < used; c++) {
                value[c] += tap->weight[k] * pixel[c];
            }
        }
        for (uint32_t c = 0; c < used; c++) {
            to[c] = value[c];
        }
    }
}

/* Constants make each of these a loop of its own. */
static void mix_line(const struct track *t)
{
    const uint32_t channels = t->plane->channels, used = t->plane->used;
    if (channels == 4 && used == 4) {
        mix_pixels(t, 4, 4);
    } else if (channels == 3) {
        mix_pixels(t, 3, 3);
    } else if (channels == 2 && used == 2) {
        mix_pixels(t, 2, 2);
    } else if (channels == 1) {
        mix_pixels(t, 1, 1);
    } else {
        mix_pixels(t, channels, used);
    }
}

/* ---- colours ---- */

/* BT.601 with 16 … 235. */
static void yuv_to_rgb(float y, float u, float v, float *ret)
{
    const float light = 1.164383f * (y - 16), blue = u - 128, red = v - 128;
    const float rgb[3] = {light + 1.596027f * red, light - 0.391762f * blue - 0.812968f * red,
                          light + 2.017232f * blue};
    for (int c = 0; c < 3; c++) {
        ret[c] = rgb[c] < 0 ? 0 : rgb[c] > 255 ? 255 : rgb[c];
    }
}

/* Pixel x of the tracks' lines as red, green, blue. */
static void read_pixel(const struct filler *f, uint32_t x, float *ret)
{
    const struct track *t = f->track;
    const float *first = t[0].line + (size_t)x * t[0].plane->used;
    switch (f->decoded->kind) {
    case IFD_DECODED_GREY:
        ret[0] = ret[1] = ret[2] = first[0];
        break;
    case IFD_DECODED_RGB:
        memcpy(ret, first, 3 * sizeof(*ret));
        break;
    case IFD_DECODED_BGR:
        ret[0] = first[2];
        ret[1] = first[1];
        ret[2] = first[0];
        break;
    case IFD_DECODED_YUV:
        if (f->decoded->plane_count == 2) {
            yuv_to_rgb(first[0], t[1].line[(size_t)2 * x], t[1].line[(size_t)2 * x + 1], ret);
        } else {
            yuv_to_rgb(first[0], t[1].line[x], t[2].line[x], ret);
        }
        break;
    }
}

/* Fills line with normalised pixels in the target's order of channels. */
static void make_line(const struct filler *f)
{
    const uint32_t channels = f->target->channels;
    const bool is_grey = f->decoded->kind == IFD_DECODED_GREY;
    const int first = f->target->is_bgr ? 2 : 0;
    float *to = f->line;
    for (uint32_t x = 0; x < f->to->width; x++, to += channels) {
        float value[3];
        read_pixel(f, x, value);
        if (channels == 1) {
            const float grey =
                is_grey ? value[0] : 0.299f * value[0] + 0.587f * value[1] + 0.114f * value[2];
            to[0] = grey * f->factor[0] + f->addend[0];
        } else {
            to[0] = value[first] * f->factor[0] + f->addend[0];
            to[1] = value[1] * f->factor[1] + f->addend[1];
            to[2] = value[2 - first] * f->factor[2] + f->addend[2];
        }
    }
}

/* ---- storing ---- */

static float stored(const struct filler *f, float value)
{
    const float low = f->tensor->dtype == IFD_S8 ? -128 : 0;
    const float rounded = nearbyintf(value) + (float)f->target->zero_point;
    return rounded < low ? low : rounded > low + 255 ? low + 255 : rounded;
}

static void store(const struct filler *f, size_t at, float value)
{
    if (f->tensor->dtype == IFD_F32) {
        ((float *)f->tensor->data)[at] = value;
    } else if (f->tensor->dtype == IFD_U8) {
        ((uint8_t *)f->tensor->data)[at] = (uint8_t)stored(f, value);
    } else {
        ((int8_t *)f->tensor->data)[at] = (int8_t)stored(f, value);
    }
}

static void store_line(const struct filler *f, uint32_t y)
{
    const struct ifd_image_target *t = f->target;
    const size_t plane = (size_t)t->height * t->width;
    const size_t first = (size_t)(f->to->y + y) * t->width + f->to->x;
    const size_t step = t->channels_first ? 1 : t->channels;
    for (uint32_t c = 0; c < t->channels; c++) {
        const size_t at = t->channels_first ? c * plane + first : first * t->channels + c;
        for (uint32_t x = 0; x < f->to->width; x++) {
            store(f, at + x * step, f->line[x * t->channels + c]);
        }
    }
}

static void fill_bars(const struct filler *f)
{
    const struct ifd_image_target *t = f->target;
    const size_t pixels = (size_t)t->height * t->width;
    for (uint32_t c = 0; c < t->channels; c++) {
        const float value = t->fill[c] * f->factor[c] + f->addend[c];
        for (size_t i = 0; i < pixels; i++) {
            store(f, t->channels_first ? c * pixels + i : i * t->channels + c, value);
        }
    }
}

/* ---- a picture ---- */

/* Taps of one axis: of size decoded pixels, those that show the part from begin to begin + length,
 * which become to target pixels. */
static enum ifd_code make_taps(double begin, double length, uint32_t size, uint32_t to,
                               const struct ifd_alloc *alloc, struct ifd_taps *ret,
                               struct ifd_err *err)
{
    const double low = floor(begin), high = ceil(begin + length);
    const uint32_t last = high >= size ? size : high < 1 ? 1 : (uint32_t)high;
    const uint32_t first = low <= 0 ? 0 : low >= last ? last - 1 : (uint32_t)low;
    return ifd_taps_make(begin, length, first, last, to, alloc, ret, err);
}

static enum ifd_code make_track(const struct ifd_plane *p, const struct ifd_geometry *g,
                                const struct ifd_alloc *alloc, struct track *ret,
                                struct ifd_err *err)
{
    const struct ifd_picture_region *from = &g->from;
    ret->plane = p;
    enum ifd_code code = make_taps(from->x * p->scale_x - p->left, from->width * p->scale_x,
                                   p->width, g->to.width, alloc, &ret->x, err);
    if (code) {
        return code;
    }
    const struct ifd_tap *last = &ret->x.tap[ret->x.count - 1];
    ret->low = ret->x.tap[0].first;
    ret->high = last->first + last->count;
    return make_taps(from->y * p->scale_y - p->top, from->height * p->scale_y, p->height,
                     g->to.height, alloc, &ret->y, err);
}

static void fill(const struct filler *f)
{
    if (f->to->width != f->target->width || f->to->height != f->target->height) {
        fill_bars(f);
    }
    for (uint32_t y = 0; y < f->to->height; y++) {
        for (uint32_t i = 0; i < f->decoded->plane_count; i++) {
            mix_source_rows(f, &f->track[i], y);
            mix_line(&f->track[i]);
        }
        make_line(f);
        store_line(f, y);
    }
}

/* Source rows of a track in floats. */
static size_t mixed_count(const struct track *t)
{
    return (size_t)(t->high - t->low) * t->plane->channels;
}

/* One block holds the rows of all tracks. */
static enum ifd_code fill_with_rows(struct filler *f, const struct ifd_alloc *alloc,
                                    struct ifd_err *err)
{
    const size_t width = f->to->width, unit = sizeof(float) + sizeof(uint16_t);
    size_t bytes = width * f->target->channels * sizeof(float);
    for (uint32_t i = 0; i < f->decoded->plane_count; i++) {
        const struct track *t = &f->track[i];
        bytes += mixed_count(t) * unit + width * t->plane->used * sizeof(float);
    }
    float *rows = ifd_acquire(alloc, bytes);
    if (!rows) {
        return ifd_fail(err, IFD_NOMEM, "no memory to resize a picture");
    }
    float *at = rows + width * f->target->channels;
    f->line = rows;
    for (uint32_t i = 0; i < f->decoded->plane_count; i++) {
        struct track *t = &f->track[i];
        t->mixed = at;
        t->line = at + mixed_count(t);
        at = t->line + width * t->plane->used;
    }
    uint16_t *sum = (uint16_t *)(void *)at;
    for (uint32_t i = 0; i < f->decoded->plane_count; i++) {
        f->track[i].sum = sum;
        sum += mixed_count(&f->track[i]);
    }
    fill(f);
    ifd_release(alloc, rows, bytes);
    return IFD_OK;
}

enum ifd_code ifd_decoded_fill(const struct ifd_decoded *decoded,
                               const struct ifd_geometry *geometry,
                               const struct ifd_image_target *target,
                               const struct ifd_tensor *tensor, const struct ifd_alloc *alloc,
                               struct ifd_err *err)
{
    struct filler f = {.decoded = decoded, .to = &geometry->to, .target = target, .tensor = tensor};
    const float scale = tensor->dtype != IFD_F32 && target->scale != 0 ? target->scale : 1;
    enum ifd_code code = IFD_OK;
    for (uint32_t c = 0; c < target->channels; c++) {
        f.factor[c] = 1 / (target->std[c] * scale);
        f.addend[c] = -target->mean[c] * f.factor[c];
    }
    for (uint32_t i = 0; i < decoded->plane_count && !code; i++) {
        code = make_track(&decoded->plane[i], geometry, alloc, &f.track[i], err);
    }
    if (!code) {
        code = fill_with_rows(&f, alloc, err);
    }
    for (uint32_t i = 0; i < decoded->plane_count; i++) {
        ifd_taps_free(&f.track[i].x, alloc);
        ifd_taps_free(&f.track[i].y, alloc);
    }
    return code;
}

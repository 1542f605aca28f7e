/* Resizes, normalises and stores. For each target row the source rows of a plane are mixed into
 * one, then the pixels of that row, into a row for each channel. Planes of YUV are resized before
 * they become colours: that is the same, and less work. */
#include <math.h>
#include <string.h>

#include "server/media/codecs_impl.h"
#include "server/media/rows.h"

/* A plane on its way into one target row. */
struct track {
    const struct ifd_plane *plane;
    uint32_t channels; /* of a mixed row: 1, 2 or 4 */
    struct ifd_taps x, y;
    uint32_t low, high; /* source columns that count */
    float *mixed;       /* a row of them */
    uint16_t *sum;      /* for mix_fixed */
    float *line[3];     /* rows of target pixels */
};

struct filler {
    const struct ifd_rows *rows;
    const struct ifd_decoded *decoded;
    const struct ifd_picture_region *to;
    const struct ifd_image_target *target;
    const struct ifd_tensor *tensor;
    struct track track[IFD_PLANES_MAX];
    float factor[3], addend[3]; /* of the target's channels, to what is stored */
    float *line[3];             /* one target row: grey, or red, green, blue */
    uint8_t *byte[3];           /* the same as it is stored */
    float *unused;              /* for channels that do not count */
};

/* ---- one row ---- */

/* Pixels of three bytes get a fourth channel, because four are read at once. */
static void widen(float *mixed, size_t pixels)
{
    for (size_t i = pixels; i-- > 0;) {
        mixed[4 * i + 3] = 0;
        mixed[4 * i + 2] = mixed[3 * i + 2];
        mixed[4 * i + 1] = mixed[3 * i + 1];
        mixed[4 * i] = mixed[3 * i];
    }
}

static void mix_source_rows(const struct filler *f, const struct track *t, uint32_t y)
{
    const struct ifd_plane *p = t->plane;
    const struct ifd_tap *tap = &t->y.tap[y];
    /* Of a channel that is not its pixel's first, the last pixel has no bytes behind it. */
    const size_t pixels = t->high - t->low, count = (pixels - 1) * p->channels + p->used;
    const uint8_t *row = p->data + tap->first * p->stride + (size_t)t->low * p->channels;
    if (f->tensor->dtype == IFD_F32 || tap->count == 1) {
        f->rows->mix(row, p->stride, tap, count, t->mixed);
    } else {
        f->rows->mix_fixed(row, p->stride, tap, count, t->sum, t->mixed);
    }
    if (p->channels == 3) {
        widen(t->mixed, pixels);
    }
}

/* Makes the rows of one, or of three channels. */
static void make_lines(const struct filler *f, uint32_t y)
{
    const size_t width = f->to->width;
    for (uint32_t i = 0; i < f->decoded->plane_count; i++) {
        const struct track *t = &f->track[i];
        mix_source_rows(f, t, y);
        f->rows->dot(t->mixed, t->low, t->x.tap, width, t->channels, t->line);
    }
    if (f->decoded->kind == IFD_DECODED_YUV) {
        f->rows->yuv(f->line, width);
    }
    if (f->decoded->kind != IFD_DECODED_GREY && f->target->channels == 1) {
        f->rows->grey(f->line, width);
    }
}

/* ---- storing ---- */

static bool is_float(const struct filler *f)
{
    return f->tensor->dtype == IFD_F32;
}

static bool is_whole(const struct filler *f)
{
    return f->tensor->dtype == IFD_S32;
}

/* The highest bit makes signed numbers of what is 128 too large. */
static uint8_t flip(const struct filler *f)
{
    return f->tensor->dtype == IFD_S8 ? 0x80 : 0;
}

/* The row that becomes channel c. */
static uint32_t line_of(const struct filler *f, uint32_t c)
{
    return f->decoded->kind == IFD_DECODED_GREY ? 0 : f->target->is_bgr ? 2 - c : c;
}

/* Writes units of three rows in turn. */
static void weave(const struct filler *f, const uint8_t *const *row, uint8_t *ret)
{
    const size_t width = f->to->width;
    if (is_float(f) || is_whole(f)) {
        for (size_t c = 0; c < 3; c++) {
            for (size_t x = 0; x < width; x++) {
                memcpy(ret + (3 * x + c) * 4, row[c] + x * 4, 4);
            }
        }
        return;
    }
    f->rows->weave(row, width, ret);
}

/* Rounds as 8-bit numbers are rounded, to what 32 bits hold. */
static int32_t whole_of(float value)
{
    const double low = value > (float)INT32_MIN ? (double)value + 0.5 : INT32_MIN;
    return low < INT32_MAX ? (int32_t)floor(low) : INT32_MAX;
}

static void store_row(const struct filler *f, uint32_t y)
{
    const struct ifd_image_target *t = f->target;
    const size_t unit = ifd_dtype_bytes(f->tensor->dtype), width = f->to->width;
    const size_t plane = (size_t)t->height * t->width;
    const size_t first = (size_t)(f->to->y + y) * t->width + f->to->x;
    uint8_t *data = f->tensor->data;
    const uint8_t *row[3] = {NULL};
    for (uint32_t c = 0; c < t->channels; c++) {
        const float *line = f->line[line_of(f, c)];
        if (is_float(f)) {
            float *scaled = (float *)(void *)f->byte[c];
            memcpy(scaled, line, width * sizeof(*scaled));
            f->rows->scale(scaled, width, f->factor[c], f->addend[c]);
        } else if (is_whole(f)) {
            for (size_t x = 0; x < width; x++) {
                const int32_t whole = whole_of(line[x] * f->factor[c] + f->addend[c]);
                memcpy(f->byte[c] + x * 4, &whole, 4);
            }
        } else {
            f->rows->quantise(line, width, f->factor[c], f->addend[c], flip(f), f->unused,
                              f->byte[c]);
        }
        row[c] = f->byte[c];
        if (t->channels_first || t->channels == 1) {
            memcpy(data + (c * plane + first) * unit, row[c], width * unit);
        }
    }
    if (t->channels == 3 && !t->channels_first) {
        weave(f, row, data + first * 3 * unit);
    }
}

/* Fills everything with the colour of the bars. */
static void fill_bars(const struct filler *f)
{
    const struct ifd_image_target *t = f->target;
    const size_t pixels = (size_t)t->height * t->width;
    for (uint32_t c = 0; c < t->channels; c++) {
        const size_t step = t->channels_first ? 1 : t->channels;
        const size_t first = t->channels_first ? c * pixels : c;
        const float real = t->fill[c] * f->factor[c] + f->addend[c];
        uint8_t byte = 0;
        f->rows->quantise(&t->fill[c], 1, f->factor[c], f->addend[c], flip(f), f->unused, &byte);
        for (size_t i = 0; i < pixels; i++) {
            if (is_float(f)) {
                ((float *)f->tensor->data)[first + i * step] = real;
            } else if (is_whole(f)) {
                ((int32_t *)f->tensor->data)[first + i * step] = whole_of(real);
            } else {
                ((uint8_t *)f->tensor->data)[first + i * step] = byte;
            }
        }
    }
}

/* ---- a picture ---- */

/* Taps of one axis: of size decoded pixels, those that show the part from begin to begin + length,
 * which become to target pixels. */
static enum ifd_code make_taps(double begin, double length, uint32_t size, uint32_t to,
                               uint32_t channels, const struct ifd_alloc *alloc,
                               struct ifd_taps *ret, struct ifd_err *err)
{
    const double low = floor(begin), high = ceil(begin + length);
    const uint32_t last = high >= size ? size : high < 1 ? 1 : (uint32_t)high;
    const uint32_t first = low <= 0 ? 0 : low >= last ? last - 1 : (uint32_t)low;
    return ifd_taps_make(begin, length, first, last, to, channels, alloc, ret, err);
}

static enum ifd_code make_track(const struct ifd_plane *p, const struct ifd_geometry *g,
                                const struct ifd_alloc *alloc, struct track *ret,
                                struct ifd_err *err)
{
    const struct ifd_picture_region *from = &g->from;
    ret->plane = p;
    ret->channels = p->channels == 3 ? 4 : p->channels;
    enum ifd_code code = make_taps(from->x * p->scale_x - p->left, from->width * p->scale_x,
                                   p->width, g->to.width, ret->channels, alloc, &ret->x, err);
    if (code) {
        return code;
    }
    const struct ifd_tap *last = &ret->x.tap[ret->x.count - 1];
    ret->low = ret->x.tap[0].first;
    ret->high = last->first + last->count;
    return make_taps(from->y * p->scale_y - p->top, from->height * p->scale_y, p->height,
                     g->to.height, 0, alloc, &ret->y, err);
}

/* Floats of a mixed row with what is read behind it. */
static size_t mixed_count(const struct track *t)
{
    return (size_t)(t->high - t->low) * t->channels + IFD_ROW_PAD;
}

/* One block holds all rows: a line for each channel and one for channels that do not count, the
 * same as stored, and those of each plane. */
static size_t rows_bytes(const struct filler *f)
{
    size_t floats = (size_t)f->to->width * (4 + 3), sums = 0;
    for (uint32_t i = 0; i < f->decoded->plane_count; i++) {
        floats += mixed_count(&f->track[i]);
        sums += mixed_count(&f->track[i]);
    }
    return floats * sizeof(float) + sums * sizeof(uint16_t);
}

static void lay_rows(struct filler *f, float *block)
{
    const size_t width = f->to->width;
    float *at = block + 7 * width;
    uint32_t line = 0;
    f->unused = block;
    for (size_t c = 0; c < 3; c++) {
        f->line[c] = block + (1 + c) * width;
        f->byte[c] = (uint8_t *)(void *)(block + (4 + c) * width);
    }
    for (uint32_t i = 0; i < f->decoded->plane_count; i++) {
        struct track *t = &f->track[i];
        for (uint32_t c = 0; c < 3; c++) {
            t->line[c] = c < t->plane->used ? f->line[line++] : f->unused;
        }
        t->mixed = at;
        at += mixed_count(t);
    }
    uint16_t *sum = (uint16_t *)(void *)at;
    for (uint32_t i = 0; i < f->decoded->plane_count; i++) {
        f->track[i].sum = sum;
        sum += mixed_count(&f->track[i]);
    }
    if (f->decoded->kind == IFD_DECODED_BGR) {
        f->track[0].line[0] = f->line[2];
        f->track[0].line[2] = f->line[0];
    }
}

static enum ifd_code fill(struct filler *f, const struct ifd_alloc *alloc, struct ifd_err *err)
{
    const size_t bytes = rows_bytes(f);
    float *block = ifd_acquire_zeroed(alloc, bytes, 1);
    if (!block) {
        return ifd_fail(err, IFD_NOMEM, "no memory to resize a picture");
    }
    lay_rows(f, block);
    if (f->to->width != f->target->width || f->to->height != f->target->height) {
        fill_bars(f);
    }
    for (uint32_t y = 0; y < f->to->height; y++) {
        make_lines(f, y);
        store_row(f, y);
    }
    ifd_release(alloc, block, bytes);
    return IFD_OK;
}

/* stored = pixel * factor + addend; 8-bit numbers are made 128 larger while they are signed. */
static void set_affine(struct filler *f)
{
    const struct ifd_image_target *t = f->target;
    const float scale = !is_float(f) && t->scale != 0 ? t->scale : 1;
    const float zero = is_float(f) ? 0 : (float)t->zero_point + (float)flip(f);
    for (uint32_t c = 0; c < t->channels; c++) {
        f->factor[c] = 1 / (t->std[c] * scale);
        f->addend[c] = zero - t->mean[c] * f->factor[c];
    }
}

enum ifd_code ifd_decoded_fill(const struct ifd_decoded *decoded,
                               const struct ifd_geometry *geometry,
                               const struct ifd_image_target *target,
                               const struct ifd_tensor *tensor, const struct ifd_alloc *alloc,
                               struct ifd_err *err)
{
    struct filler f = {.decoded = decoded, .to = &geometry->to, .target = target, .tensor = tensor};
    const struct ifd_rows *tables[IFD_ROWS_TABLES];
    enum ifd_code code = IFD_OK;
    f.rows = tables[ifd_rows_tables(tables) - 1];
    set_affine(&f);
    for (uint32_t i = 0; i < decoded->plane_count && !code; i++) {
        code = make_track(&decoded->plane[i], geometry, alloc, &f.track[i], err);
    }
    if (!code) {
        code = fill(&f, alloc, err);
    }
    for (uint32_t i = 0; i < decoded->plane_count; i++) {
        ifd_taps_free(&f.track[i].x, alloc);
        ifd_taps_free(&f.track[i].y, alloc);
    }
    return code;
}

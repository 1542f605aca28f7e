/* Images read at places between their pixels: grid_sample, roi_align. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <float.h>
#include <math.h>

extern const struct ifd_op_def ifd_op_grid_sample, ifd_op_roi_align;

static enum ifd_code check_operand(const struct ifd_op_def *def, const struct ifd_infer *in,
                                   uint32_t i, uint32_t rank, enum ifd_dtype dtype,
                                   struct ifd_err *err)
{
    const enum ifd_code code = ifd_infer_rank(def, in, i, rank, err);
    return code == IFD_OK ? ifd_infer_dtype(def, in, i, IFD_BIT(dtype), err) : code;
}

/* One image of [n,h,w,c]. */
struct image {
    const float *pixel;
    int64_t h, w, c;
};

static struct image image_at(const struct ifd_desc *desc, const void *data, int64_t n)
{
    const int64_t *dim = desc->shape.dim;
    return (struct image){.pixel = (const float *)data + n * dim[1] * dim[2] * dim[3],
                          .h = dim[1],
                          .w = dim[2],
                          .c = dim[3]};
}

/* ---- grid_sample ---- */

static enum ifd_code grid_sample_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                       struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_grid_sample;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    for (uint32_t i = 0; code == IFD_OK && i < 2; i++) {
        code = check_operand(def, in, i, 4, IFD_F32, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_F32, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *x = &in->input[0].desc->shape, *grid = &in->input[1].desc->shape;
    if (x->dim[0] != grid->dim[0] || grid->dim[3] != 2 || x->dim[1] < 1 || x->dim[2] < 1) {
        return ifd_fail(err, IFD_INVALID,
                        "grid_sample: images %s and a grid %s, expected [n,h,w,c] "
                        "and [n,oh,ow,2]",
                        ifd_shape_text(x).s, ifd_shape_text(grid).s);
    }
    const struct ifd_shape shape = {.rank = 4,
                                    .dim = {x->dim[0], grid->dim[1], grid->dim[2], x->dim[3]}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* Mirrors at low and high until it lies between them. */
static float reflect(float at, float low, float high)
{
    const float span = high - low;
    if (!(span > 0)) {
        return low;
    }
    const float away = fabsf(at - low);
    const float times = floorf(away / span);
    const float rest = away - times * span;
    return fmodf(times, 2) == 0 ? low + rest : high - rest;
}

#define FAR 8e6f /* in pixels; exact as a float */

/* A place in pixels; no number is far outside. */
static float place_of(const struct ifd_grid_sample_attrs *attrs, float at, int64_t size)
{
    const float place =
        attrs->align_corners ? (at + 1) / 2 * (float)(size - 1) : ((at + 1) * (float)size - 1) / 2;
    return place > -FAR ? place < FAR ? place : FAR : -FAR;
}

/* An index inside, or -1 where nothing is. */
static int64_t pixel_of(const struct ifd_grid_sample_attrs *attrs, int64_t at, int64_t size)
{
    if (at >= 0 && at < size) {
        return at;
    }
    if (attrs->padding == IFD_SAMPLE_ZEROS) {
        return -1;
    }
    if (attrs->padding == IFD_SAMPLE_REFLECTION) {
        const float last = (float)(size - 1);
        at = (int64_t)(attrs->align_corners ? reflect((float)at, 0, last)
                                            : reflect((float)at, -0.5f, last + 0.5f));
    }
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

/* Taps of one dimension: the first pixel, and the weight of each. */
struct taps {
    int64_t first;
    int count;
    float weight[4];
};

/* Keys' cubic with a = -0.75: weights of the pixels -1 … 2 from the place t between 0 and 1. */
static void cubic_weights(float t, float weight[4])
{
    const float a = -0.75f;
    const float x[4] = {t + 1, t, 1 - t, 2 - t};
    for (int i = 0; i < 4; i++) {
        weight[i] = i == 1 || i == 2 ? ((a + 2) * x[i] - (a + 3)) * x[i] * x[i] + 1
                                     : ((a * x[i] - 5 * a) * x[i] + 8 * a) * x[i] - 4 * a;
    }
}

static struct taps taps_of(const struct ifd_grid_sample_attrs *attrs, float place)
{
    const float low = floorf(place), t = place - low;
    struct taps taps = {.first = (int64_t)low, .count = 2, .weight = {1 - t, t}};
    if (attrs->mode == IFD_SAMPLE_NEAREST) {
        taps = (struct taps){.first = (int64_t)rintf(place), .count = 1, .weight = {1}};
    } else if (attrs->mode == IFD_SAMPLE_CUBIC) {
        taps.first -= 1;
        taps.count = 4;
        cubic_weights(t, taps.weight);
    }
    return taps;
}

static void sample(const struct ifd_grid_sample_attrs *attrs, const struct image *image,
                   const float place[2], float *to)
{
    const struct taps x = taps_of(attrs, place_of(attrs, place[0], image->w));
    const struct taps y = taps_of(attrs, place_of(attrs, place[1], image->h));
    for (int64_t c = 0; c < image->c; c++) {
        to[c] = 0;
    }
    for (int i = 0; i < y.count; i++) {
        const int64_t row = pixel_of(attrs, y.first + i, image->h);
        for (int k = 0; k < x.count; k++) {
            const int64_t column = pixel_of(attrs, x.first + k, image->w);
            for (int64_t c = 0; row >= 0 && column >= 0 && c < image->c; c++) {
                to[c] += y.weight[i] * x.weight[k] *
                         image->pixel[(row * image->w + column) * image->c + c];
            }
        }
    }
}

static enum ifd_code grid_sample_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const int64_t *dim = call->out[0]->shape.dim;
    const int64_t places = dim[1] * dim[2];
    for (int64_t n = 0; dim[3] > 0 && n < dim[0]; n++) {
        const struct image image = image_at(call->in[0], call->input[0], n);
        for (int64_t i = 0; i < places; i++) {
            sample(call->attrs, &image, (const float *)call->input[1] + (n * places + i) * 2,
                   (float *)call->output[0] + (n * places + i) * dim[3]);
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def grid_sample_attrs[] = {
    {"mode", IFD_ATTR_ENUM, offsetof(struct ifd_grid_sample_attrs, mode), IFD_SAMPLE_LINEAR,
     IFD_SAMPLE_LINEAR, IFD_SAMPLE_CUBIC},
    {"padding", IFD_ATTR_ENUM, offsetof(struct ifd_grid_sample_attrs, padding), IFD_SAMPLE_ZEROS,
     IFD_SAMPLE_ZEROS, IFD_SAMPLE_REFLECTION},
    {"align_corners", IFD_ATTR_BOOL, offsetof(struct ifd_grid_sample_attrs, align_corners), 0, 0,
     1},
};

const struct ifd_op_def ifd_op_grid_sample = {
    .name = "grid_sample",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = grid_sample_attrs,
    .attr_count = 3,
    .attrs_bytes = sizeof(struct ifd_grid_sample_attrs),
    .dtypes = IFD_BIT(IFD_F32),
    .infer = grid_sample_infer,
    .ref = grid_sample_ref,
};

/* ---- roi_align ---- */

#define SAMPLES_MAX 64 /* of one bin, in one dimension */

static enum ifd_code roi_align_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                     struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_roi_align;
    const struct ifd_roi_align_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = check_operand(def, in, 0, 4, IFD_F32, err);
    }
    if (code == IFD_OK) {
        code = check_operand(def, in, 1, 2, IFD_F32, err);
    }
    if (code == IFD_OK) {
        code = check_operand(def, in, 2, 1, IFD_S64, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, IFD_F32, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *x = &in->input[0].desc->shape, *regions = &in->input[1].desc->shape;
    const struct ifd_shape *images = &in->input[2].desc->shape;
    if (regions->dim[1] != 4 || images->dim[0] != regions->dim[0] || x->dim[1] < 1 ||
        x->dim[2] < 1) {
        return ifd_fail(err, IFD_INVALID,
                        "roi_align: images %s, regions %s of images %s, expected [n,h,w,c], [r,4] "
                        "and [r]",
                        ifd_shape_text(x).s, ifd_shape_text(regions).s, ifd_shape_text(images).s);
    }
    const struct ifd_shape shape = {
        .rank = 4, .dim = {regions->dim[0], attrs->height, attrs->width, x->dim[3]}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

/* The bins of a region along one dimension. */
struct bins {
    float first, step; /* the begin of bin 0, and its size */
    int samples;
};

static struct bins bins_of(const struct ifd_roi_align_attrs *attrs, float low, float high,
                           int32_t count, int64_t size)
{
    const float offset = attrs->half_pixel ? 0.5f : 0.0f;
    const float first = low * attrs->spatial_scale - offset;
    float span = high * attrs->spatial_scale - offset - first;
    if (!attrs->half_pixel && !(span >= 1)) {
        span = 1; /* regions have at least one pixel */
    }
    const float step = span / (float)count;
    const float pixels = ceilf(step), most = (float)size + 2;
    const int own = pixels > 0 ? (int)(pixels < most ? pixels : most) : 0;
    return (struct bins){
        .first = first, .step = step, .samples = attrs->sampling > 0 ? attrs->sampling : own};
}

/* Two pixels and their weights; false outside of the image. */
static bool neighbours(float at, int64_t size, int64_t pixel[2], float weight[2])
{
    if (!(at >= -1 && at <= (float)size)) {
        return false;
    }
    at = at > 0 ? at : 0;
    pixel[0] = (int64_t)at;
    if (pixel[0] >= size - 1) {
        pixel[0] = size - 1;
        at = (float)pixel[0];
    }
    pixel[1] = pixel[0] + 1 < size ? pixel[0] + 1 : pixel[0];
    weight[1] = at - (float)pixel[0];
    weight[0] = 1 - weight[1];
    return true;
}

static void add_mean(const float *const pixel[4], const float weight[4], int64_t channels,
                     float *restrict to)
{
    const float *a = pixel[0], *b = pixel[1], *c = pixel[2], *d = pixel[3];
    for (int64_t i = 0; i < channels; i++) {
        to[i] += weight[0] * a[i] + weight[1] * b[i] + weight[2] * c[i] + weight[3] * d[i];
    }
}

/* Adds one sample to a bin: the sum, or of the maximum of the four weighted pixels. */
static void add_sample(const struct ifd_roi_align_attrs *attrs, const struct image *image, float y,
                       float x, bool is_first, float *to)
{
    int64_t row[2] = {0, 0}, column[2] = {0, 0};
    float wy[2] = {0, 0}, wx[2] = {0, 0}, weight[4];
    const float *pixel[4];
    if (!neighbours(y, image->h, row, wy) || !neighbours(x, image->w, column, wx)) {
        for (int64_t c = 0; attrs->is_max && c < image->c; c++) {
            to[c] = is_first || to[c] < 0 ? 0 : to[c];
        }
        return;
    }
    for (int i = 0; i < 4; i++) {
        pixel[i] = image->pixel + (row[i / 2] * image->w + column[i % 2]) * image->c;
        weight[i] = wy[i / 2] * wx[i % 2];
    }
    if (!attrs->is_max) {
        add_mean(pixel, weight, image->c, to);
        return;
    }
    for (int64_t c = 0; c < image->c; c++) {
        float most = weight[0] * pixel[0][c];
        for (int i = 1; i < 4; i++) {
            const float part = weight[i] * pixel[i][c];
            most = part > most ? part : most;
        }
        to[c] = is_first || most > to[c] ? most : to[c];
    }
}

static void align_bin(const struct ifd_roi_align_attrs *attrs, const struct image *image,
                      const struct bins *y, const struct bins *x, const int bin[2], float *to)
{
    const int count = y->samples * x->samples;
    for (int64_t c = 0; c < image->c; c++) {
        to[c] = 0;
    }
    for (int i = 0; i < y->samples; i++) {
        for (int k = 0; k < x->samples; k++) {
            const float at_y =
                y->first + ((float)bin[0] + ((float)i + 0.5f) / (float)y->samples) * y->step;
            const float at_x =
                x->first + ((float)bin[1] + ((float)k + 0.5f) / (float)x->samples) * x->step;
            add_sample(attrs, image, at_y, at_x, i == 0 && k == 0, to);
        }
    }
    for (int64_t c = 0; !attrs->is_max && count > 0 && c < image->c; c++) {
        to[c] /= (float)count;
    }
}

/* Pixels of a bin along one dimension: begin … end - 1. */
static void whole_bin(const struct ifd_roi_align_attrs *attrs, float low, float high, int32_t bin,
                      int32_t count, int64_t size, int64_t ret[2])
{
    const float most = 1 << 24;
    const float first = fmaxf(fminf(roundf(low * attrs->spatial_scale), most), -most);
    const float last = fmaxf(fminf(roundf(high * attrs->spatial_scale), most), -most);
    const float step = fmaxf(last - first + 1, 1) / (float)count;
    const int64_t begin = (int64_t)(floorf((float)bin * step) + first);
    const int64_t end = (int64_t)(ceilf((float)(bin + 1) * step) + first);
    ret[0] = begin < 0 ? 0 : begin;
    ret[1] = end > size ? size : end;
}

static void pool_bin(const struct ifd_roi_align_attrs *attrs, const struct image *image,
                     const float region[4], const int bin[2], float *to)
{
    int64_t y[2], x[2];
    whole_bin(attrs, region[1], region[3], bin[0], attrs->height, image->h, y);
    whole_bin(attrs, region[0], region[2], bin[1], attrs->width, image->w, x);
    for (int64_t c = 0; c < image->c; c++) {
        to[c] = y[0] < y[1] && x[0] < x[1] ? -FLT_MAX : 0;
    }
    for (int64_t i = y[0]; i < y[1]; i++) {
        for (int64_t k = x[0]; k < x[1]; k++) {
            const float *pixel = image->pixel + (i * image->w + k) * image->c;
            for (int64_t c = 0; c < image->c; c++) {
                to[c] = pixel[c] > to[c] ? pixel[c] : to[c];
            }
        }
    }
}

static enum ifd_code roi_align_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const struct ifd_roi_align_attrs *attrs = call->attrs;
    const int64_t *dim = call->out[0]->shape.dim;
    const int64_t images = call->in[0]->shape.dim[0];
    for (int64_t r = 0; dim[3] > 0 && r < dim[0]; r++) {
        const float *region = (const float *)call->input[1] + 4 * r;
        const int64_t n = ((const int64_t *)call->input[2])[r];
        if (n < 0 || n >= images) {
            return ifd_fail(err, IFD_INVALID, "roi_align: region %lld is of image %lld of %lld",
                            (long long)r, (long long)n, (long long)images);
        }
        const struct image image = image_at(call->in[0], call->input[0], n);
        const struct bins x = bins_of(attrs, region[0], region[2], attrs->width, image.w);
        const struct bins y = bins_of(attrs, region[1], region[3], attrs->height, image.h);
        for (int i = 0; i < attrs->height; i++) {
            for (int k = 0; k < attrs->width; k++) {
                const int bin[2] = {i, k};
                float *to = (float *)call->output[0] + ((r * dim[1] + i) * dim[2] + k) * dim[3];
                if (attrs->is_whole) {
                    pool_bin(attrs, &image, region, bin, to);
                } else {
                    align_bin(attrs, &image, &y, &x, bin, to);
                }
            }
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def roi_align_attrs[] = {
    {"height", IFD_ATTR_INT, offsetof(struct ifd_roi_align_attrs, height), 1, 1, 1 << 16},
    {"width", IFD_ATTR_INT, offsetof(struct ifd_roi_align_attrs, width), 1, 1, 1 << 16},
    {"sampling", IFD_ATTR_INT, offsetof(struct ifd_roi_align_attrs, sampling), 0, 0, SAMPLES_MAX},
    {"spatial_scale", IFD_ATTR_F32, offsetof(struct ifd_roi_align_attrs, spatial_scale), 1,
     -HUGE_VAL, HUGE_VAL},
    {"is_max", IFD_ATTR_BOOL, offsetof(struct ifd_roi_align_attrs, is_max), 0, 0, 1},
    {"half_pixel", IFD_ATTR_BOOL, offsetof(struct ifd_roi_align_attrs, half_pixel), 0, 0, 1},
    {"is_whole", IFD_ATTR_BOOL, offsetof(struct ifd_roi_align_attrs, is_whole), 0, 0, 1},
};

const struct ifd_op_def ifd_op_roi_align = {
    .name = "roi_align",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = roi_align_attrs,
    .attr_count = 7,
    .attrs_bytes = sizeof(struct ifd_roi_align_attrs),
    .dtypes = IFD_BIT(IFD_F32),
    .infer = roi_align_infer,
    .ref = roi_align_ref,
    .multiplies = true,
};

/* resize_bilinear, resize_nearest: images resized to another height and width. */
#include "engine/ir/shape.h"
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Dimensions of input and output. */
enum { N, H, W, C };

static enum ifd_code resize_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                  struct ifd_err *err)
{
    const struct ifd_op_def *def = in->def;
    const struct ifd_resize_attrs *attrs = in->attrs;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 0, 4, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_desc *input = in->input[0].desc;
    const int64_t *dim = input->shape.dim;
    if (dim[H] < 1 || dim[H] > INT32_MAX || dim[W] < 1 || dim[W] > INT32_MAX) {
        return ifd_fail(err, IFD_INVALID, "%s: no image to resize in input %s", def->name,
                        ifd_shape_text(&input->shape).s);
    }
    code = ifd_infer_output_dtype(def, output, 0, input->dtype, err);
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape shape = {.rank = 4,
                                    .dim = {dim[N], attrs->height, attrs->width, dim[C]}};
    return ifd_infer_output(def, output, 0, &shape, err);
}

static enum ifd_code resize_bilinear_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                           struct ifd_err *err)
{
    const struct ifd_resize_attrs *attrs = in->attrs;
    const enum ifd_code code = resize_infer(in, output, err);
    if (code == IFD_OK && attrs->align_corners && attrs->half_pixel_centers) {
        return ifd_fail(err, IFD_INVALID,
                        "resize_bilinear: align_corners and half_pixel_centers exclude each other");
    }
    return code;
}

/* The source of an output row (or column): two input rows and the distance from the first. The
 * distance is real for f32 and u8; s8 and s16 count in steps of 1/1024, as LiteRT does. */
struct tap {
    int64_t low, high;
    float distance;
    int64_t steps;
};

#define STEPS 1024

static int64_t limit(int64_t x, int64_t last)
{
    return x < 0 ? 0 : x > last ? last : x;
}

static struct tap real_tap(const struct ifd_resize_attrs *attrs, int64_t i, int64_t in, int64_t out)
{
    const float scale = attrs->align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1)
                                                        : (float)in / (float)out;
    const float at =
        attrs->half_pixel_centers ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
    const int64_t low = limit((int64_t)floorf(at), in - 1);
    return (struct tap){
        .low = low, .high = limit((int64_t)ceilf(at), in - 1), .distance = at - (float)low};
}

static struct tap step_tap(const struct ifd_resize_attrs *attrs, int64_t i, int64_t in, int64_t out)
{
    const int64_t scale = attrs->align_corners && out > 1
                              ? (STEPS * (in - 1) + (out - 1) / 2) / (out - 1)
                              : (STEPS * in + out / 2) / out;
    const int64_t wish = attrs->half_pixel_centers ? i * scale + scale / 2 - STEPS / 2 : i * scale;
    /* a scale that was rounded up may lead beyond the image: the last pixel is repeated there */
    const int64_t at = wish < STEPS * in ? wish : STEPS * in;
    const int64_t low = limit(at / STEPS, in - 1);
    return (struct tap){
        .low = low, .high = limit((at + STEPS - 1) / STEPS, in - 1), .steps = at - STEPS * low};
}

/* The four input elements (of channel 0) around an output pixel, and its position between them. */
struct corners {
    int64_t low_low, high_low, low_high, high_high; /* row, column */
    struct tap y, x;
};

/* Order of operations as in LiteRT's reference kernel: floats are equal bit for bit. */
static float blend_real(const struct corners *at, float low_low, float high_low, float low_high,
                        float high_high)
{
    const float y = at->y.distance;
    const float x = at->x.distance;
    return low_low * (1 - y) * (1 - x) + high_low * y * (1 - x) + low_high * (1 - y) * x +
           high_high * y * x;
}

static void bilinear_f32(const struct corners *at, const float *in, float *out, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        out[c] = blend_real(at, in[at->low_low + c], in[at->high_low + c], in[at->low_high + c],
                            in[at->high_high + c]);
    }
}

static void bilinear_u8(const struct corners *at, const uint8_t *in, uint8_t *out, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++) {
        const float value = blend_real(at, in[at->low_low + c], in[at->high_low + c],
                                       in[at->low_high + c], in[at->high_high + c]) +
                            0.5f;
        out[c] = (uint8_t)ifd_ref_clamp_f32(value, 0, 255);
    }
}

static void bilinear_steps(const struct corners *at, enum ifd_dtype dtype, const void *in,
                           void *out, int64_t first, int64_t channels)
{
    const int64_t y = at->y.steps;
    const int64_t x = at->x.steps;
    int32_t min = 0;
    int32_t max = 0;
    ifd_dtype_range(dtype, &min, &max);
    for (int64_t c = 0; c < channels; c++) {
        const int64_t sum =
            ifd_ref_load(dtype, in, (size_t)(at->low_low + c)) * (STEPS - y) * (STEPS - x) +
            ifd_ref_load(dtype, in, (size_t)(at->high_low + c)) * y * (STEPS - x) +
            ifd_ref_load(dtype, in, (size_t)(at->low_high + c)) * (STEPS - y) * x +
            ifd_ref_load(dtype, in, (size_t)(at->high_high + c)) * y * x;
        const int64_t half = STEPS * STEPS / 2;
        const int64_t value = (sum + (sum > 0 ? half : -half)) / (STEPS * STEPS);
        ifd_ref_store(dtype, out, (size_t)(first + c),
                      (int32_t)(value < min   ? min
                                : value > max ? max
                                              : value));
    }
}

static enum ifd_code resize_bilinear_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (ifd_ref_elements(call->out[0]) == 0) {
        return IFD_OK; /* without channels, height and width may be huge */
    }
    const struct ifd_resize_attrs *attrs = call->attrs;
    const enum ifd_dtype dtype = call->in[0]->dtype;
    const int64_t *in = call->in[0]->shape.dim;
    const int64_t *out = call->out[0]->shape.dim;
    const bool is_real = dtype == IFD_F32 || dtype == IFD_U8;
    int64_t first = 0;
    for (int64_t n = 0; n < out[N]; n++) {
        for (int64_t y = 0; y < out[H]; y++) {
            const struct tap ty =
                is_real ? real_tap(attrs, y, in[H], out[H]) : step_tap(attrs, y, in[H], out[H]);
            const int64_t low_row = (n * in[H] + ty.low) * in[W];
            const int64_t high_row = (n * in[H] + ty.high) * in[W];
            for (int64_t x = 0; x < out[W]; x++, first += out[C]) {
                const struct tap tx =
                    is_real ? real_tap(attrs, x, in[W], out[W]) : step_tap(attrs, x, in[W], out[W]);
                const struct corners at = {.low_low = (low_row + tx.low) * in[C],
                                           .high_low = (high_row + tx.low) * in[C],
                                           .low_high = (low_row + tx.high) * in[C],
                                           .high_high = (high_row + tx.high) * in[C],
                                           .y = ty,
                                           .x = tx};
                if (dtype == IFD_F32) {
                    bilinear_f32(&at, call->input[0], (float *)call->output[0] + first, out[C]);
                } else if (dtype == IFD_U8) {
                    bilinear_u8(&at, call->input[0], (uint8_t *)call->output[0] + first, out[C]);
                } else {
                    bilinear_steps(&at, dtype, call->input[0], call->output[0], first, out[C]);
                }
            }
        }
    }
    return IFD_OK;
}

static int64_t nearest(const struct ifd_resize_attrs *attrs, int64_t i, int64_t in, int64_t out)
{
    const float scale = attrs->align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1)
                                                        : (float)in / (float)out;
    const float at = ((float)i + (attrs->half_pixel_centers ? 0.5f : 0.0f)) * scale;
    return limit((int64_t)(attrs->align_corners ? roundf(at) : floorf(at)), in - 1);
}

static enum ifd_code resize_nearest_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    if (ifd_ref_elements(call->out[0]) == 0) {
        return IFD_OK; /* without channels, height and width may be huge */
    }
    const struct ifd_resize_attrs *attrs = call->attrs;
    const int64_t *in = call->in[0]->shape.dim;
    const int64_t *out = call->out[0]->shape.dim;
    const size_t pixel_bytes = (size_t)in[C] * ifd_dtype_bytes(call->in[0]->dtype);
    const char *from = call->input[0];
    char *to = call->output[0];
    for (int64_t n = 0; n < out[N]; n++) {
        for (int64_t y = 0; y < out[H]; y++) {
            const int64_t row = (n * in[H] + nearest(attrs, y, in[H], out[H])) * in[W];
            for (int64_t x = 0; x < out[W]; x++, to += pixel_bytes) {
                const int64_t pixel = row + nearest(attrs, x, in[W], out[W]);
                memcpy(to, from + (size_t)pixel * pixel_bytes, pixel_bytes);
            }
        }
    }
    return IFD_OK;
}

static const struct ifd_attr_def resize_attrs[] = {
    {"height", IFD_ATTR_INT, offsetof(struct ifd_resize_attrs, height), 1, 1, INT32_MAX},
    {"width", IFD_ATTR_INT, offsetof(struct ifd_resize_attrs, width), 1, 1, INT32_MAX},
    {"align_corners", IFD_ATTR_BOOL, offsetof(struct ifd_resize_attrs, align_corners), 0, 0, 1},
    {"half_pixel_centers", IFD_ATTR_BOOL, offsetof(struct ifd_resize_attrs, half_pixel_centers), 0,
     0, 1},
};

#define DEFINE(op, types, rule, chooses)                                                           \
    const struct ifd_op_def ifd_op_##op = {                                                        \
        .name = #op,                                                                               \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .outputs = 1,                                                                              \
        .attrs = resize_attrs,                                                                     \
        .attr_count = sizeof(resize_attrs) / sizeof(resize_attrs[0]),                              \
        .attrs_bytes = sizeof(struct ifd_resize_attrs),                                            \
        .dtypes = (types),                                                                         \
        .batch = IFD_BATCH_SAMPLE,                                                                 \
        .infer = (rule),                                                                           \
        .ref = op##_ref,                                                                           \
        .is_identity = true,                                                                       \
        .moves = (chooses),                                                                        \
    }

DEFINE(resize_bilinear, IFD_BIT(IFD_F32) | IFD_DTYPES_QUANT, resize_bilinear_infer, false);
DEFINE(resize_nearest, IFD_DTYPES_MOVE, resize_infer, true);

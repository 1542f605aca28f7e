/* resize_bilinear (f32) and resize_nearest (any type). The input positions of each output line and
 * column are computed at compile time; the team shares lines. */
#include "backends/cpuacc/driver.h"

#include <math.h>
#include <string.h>

/* Between two input positions, at a distance from the first. */
struct tap {
    uint32_t low, high;
    float distance;
};

struct resize_params {
    size_t batch, in_h, in_w, out_h, out_w, channels, element;
    size_t out_pixel;  /* elements: more than channels apart inside of a concatenation */
    struct tap *y;     /* out_h */
    uint32_t *x0, *x1; /* out_w: offsets of pixels, in elements */
    float *dx;
};

/* ---- positions: TensorFlow's three conventions ---- */

static float position(const struct ifd_resize_attrs *attrs, bool bilinear, int64_t i, int64_t in,
                      int64_t out)
{
    const float scale = attrs->align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1)
                                                        : (float)in / (float)out;
    if (!attrs->half_pixel_centers) {
        return (float)i * scale;
    }
    return ((float)i + 0.5f) * scale - (bilinear ? 0.5f : 0.0f);
}

static uint32_t limit(float at, int64_t last)
{
    return at < 0 ? 0 : at > (float)last ? (uint32_t)last : (uint32_t)at;
}

static struct tap tap_of(const struct ifd_resize_attrs *attrs, bool bilinear, int64_t i, int64_t in,
                         int64_t out)
{
    const float at = position(attrs, bilinear, i, in, out);
    if (!bilinear) {
        const uint32_t nearest = limit(attrs->align_corners ? roundf(at) : floorf(at), in - 1);
        return (struct tap){.low = nearest, .high = nearest};
    }
    const uint32_t low = limit(floorf(at), in - 1);
    return (struct tap){.low = low, .high = limit(ceilf(at), in - 1), .distance = at - (float)low};
}

static bool make_taps(struct ifd_acc_lowering *lowering, const struct ifd_resize_attrs *attrs,
                      bool bilinear, struct resize_params *p)
{
    p->y = ifd_low_params(&lowering->base, p->out_h, sizeof(*p->y));
    p->x0 = ifd_low_params(&lowering->base, p->out_w, sizeof(*p->x0));
    p->x1 = ifd_low_params(&lowering->base, p->out_w, sizeof(*p->x1));
    p->dx = ifd_low_params(&lowering->base, p->out_w, sizeof(*p->dx));
    if (!p->y || !p->x0 || !p->x1 || !p->dx) {
        return false;
    }
    for (size_t y = 0; y < p->out_h; y++) {
        p->y[y] = tap_of(attrs, bilinear, (int64_t)y, (int64_t)p->in_h, (int64_t)p->out_h);
    }
    for (size_t x = 0; x < p->out_w; x++) {
        const struct tap tap =
            tap_of(attrs, bilinear, (int64_t)x, (int64_t)p->in_w, (int64_t)p->out_w);
        p->x0[x] = (uint32_t)(tap.low * p->channels);
        p->x1[x] = (uint32_t)(tap.high * p->channels);
        p->dx[x] = tap.distance;
    }
    return true;
}

/* ---- running ---- */

static void run_bilinear(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct resize_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->batch * p->out_h, 1);
    const float *in = ifd_acc_in(step, frame, 0);
    float *out = (float *)ifd_acc_out(step, frame);
    const size_t in_line = p->in_w * p->channels;
    for (size_t line = range.begin; line < range.end; line++) {
        const struct tap *tap = &p->y[line % p->out_h];
        const float *image = in + line / p->out_h * p->in_h * in_line;
        const struct ifd_resize_args args = {
            .top = image + tap->low * in_line,
            .bottom = image + tap->high * in_line,
            .out = out + line * p->out_w * p->out_pixel,
            .x0 = p->x0,
            .x1 = p->x1,
            .dx = p->dx,
            .dy = tap->distance,
            .out_w = p->out_w,
            .channels = p->channels,
            .out_pixel_stride = p->out_pixel,
        };
        step->kernels->move.resize_bilinear_f32(&args);
    }
}

static void run_nearest(const struct ifd_acc_step *step, const struct ifd_acc_frame *frame)
{
    const struct resize_params *p = step->params;
    const struct ifd_acc_range range = ifd_acc_share(frame, p->batch * p->out_h, 1);
    const uint8_t *in = ifd_acc_in(step, frame, 0);
    const size_t pixel = p->channels * p->element, in_line = p->in_w * pixel;
    const size_t out_pixel = p->out_pixel * p->element;
    uint8_t *out = (uint8_t *)ifd_acc_out(step, frame) + range.begin * p->out_w * out_pixel;
    for (size_t line = range.begin; line < range.end; line++) {
        const uint8_t *from =
            in + (line / p->out_h * p->in_h + p->y[line % p->out_h].low) * in_line;
        for (size_t x = 0; x < p->out_w; x++, out += out_pixel) {
            memcpy(out, from + p->x0[x] * p->element, pixel);
        }
    }
}

/* ---- compiling ---- */

/* Offsets within a line have 32 bits. */
static bool nearest_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_shape *in = &node->input[0].desc->shape;
    const bool fits = in->dim[3] <= UINT32_MAX && in->dim[2] <= UINT32_MAX / (in->dim[3] + 1);
    if (!fits) {
        ifd_fail(reason, IFD_UNSUPPORTED,
                 "lines of %lld pixels of %lld channels, expected at most 2^32 elements",
                 (long long)in->dim[2], (long long)in->dim[3]);
    }
    return fits;
}

static bool bilinear_takes(const struct ifd_node_view *node, struct ifd_err *reason)
{
    const struct ifd_desc *in = node->input[0].desc;
    if (in->dtype != IFD_F32) {
        ifd_fail(reason, IFD_UNSUPPORTED, "type %s", ifd_dtype_name(in->dtype));
        return false;
    }
    return nearest_takes(node, reason);
}

static enum ifd_code resize_lower(struct ifd_acc_lowering *lowering,
                                  const struct ifd_partition_node *node, struct ifd_err *err)
{
    const struct ifd_desc *in = node->view.input[0].desc;
    const int64_t *out = node->view.output[0].shape.dim;
    const bool bilinear = node->view.op == IFD_OP_RESIZE_BILINEAR;
    struct resize_params *p = ifd_low_params(&lowering->base, 1, sizeof(*p));
    if (!p) {
        return ifd_fail(err, IFD_NOMEM, "no memory for a step");
    }
    *p = (struct resize_params){
        .batch = (size_t)out[0],
        .in_h = (size_t)in->shape.dim[1],
        .in_w = (size_t)in->shape.dim[2],
        .out_h = (size_t)out[1],
        .out_w = (size_t)out[2],
        .channels = (size_t)out[3],
        .element = ifd_dtype_bytes(in->dtype),
    };
    p->out_pixel = p->channels;
    const struct ifd_low_accepts accepts = ifd_acc_accepts(lowering);
    (void)ifd_low_take_slice(&lowering->base, node->output_value[0], &accepts, &p->out_pixel);
    if (!make_taps(lowering, node->view.attrs, bilinear, p)) {
        return ifd_fail(err, IFD_NOMEM, "no memory for %zu columns", p->out_w);
    }
    struct ifd_acc_draft *step = NULL;
    const enum ifd_code code =
        ifd_acc_add_step(lowering, bilinear ? run_bilinear : run_nearest, p, node->input_value, 1,
                         node->output_value[0], &step, err);
    if (code == IFD_OK) {
        step->max_threads = (uint32_t)(p->batch * p->out_h * p->out_w * p->channels / 4096) + 1;
        ifd_acc_name_step(lowering, bilinear ? "resize_f32" : "memcpy", 0, "%s",
                          ifd_op_def(node->view.op)->name);
    }
    return code;
}

const struct ifd_acc_driver ifd_acc_resize_bilinear = {.takes = bilinear_takes,
                                                       .lower = resize_lower};
const struct ifd_acc_driver ifd_acc_resize_nearest = {.takes = nearest_takes,
                                                      .lower = resize_lower};

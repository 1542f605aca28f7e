/* Boxes of detection_postprocess: numbers of their tensors, corners, overlap. */
#include "engine/ops/detect_box.h"

#include "engine/ops/ref_util.h"

#include <math.h>
#include <string.h>

float ifd_detect_real_value(uint8_t stored, float zero, float scale)
{
    return ((float)stored - zero) * scale;
}

void ifd_detect_real_values(const struct ifd_desc *desc, const void *data, int64_t first,
                            int64_t count, float *ret)
{
    if (desc->dtype == IFD_F32) {
        memcpy(ret, (const float *)data + first, (size_t)count * sizeof(*ret));
        return;
    }
    const uint8_t *stored = (const uint8_t *)data + first;
    const float zero = (float)ifd_ref_zero_point(desc), scale = ifd_ref_scale(desc);
    for (int64_t i = 0; i < count; i++) {
        ret[i] = ifd_detect_real_value(stored[i], zero, scale);
    }
}

/* From centre and size, relative to the anchor's, to corners. */
static struct ifd_box decode(const struct ifd_detection_attrs *attrs, const float code[4],
                             const float anchor[4])
{
    const float y =
        (float)((double)code[0] / (double)attrs->y_scale * (double)anchor[2] + (double)anchor[0]);
    const float x =
        (float)((double)code[1] / (double)attrs->x_scale * (double)anchor[3] + (double)anchor[1]);
    const float half_h =
        (float)(0.5 * exp((double)code[2] / (double)attrs->h_scale) * (double)anchor[2]);
    const float half_w =
        (float)(0.5 * exp((double)code[3] / (double)attrs->w_scale) * (double)anchor[3]);
    return (struct ifd_box){y - half_h, x - half_w, y + half_h, x + half_w};
}

struct ifd_box ifd_box_decode(const struct ifd_ref_call *call, int64_t i)
{
    const struct ifd_desc *boxes = call->in[IFD_DETECT_BOXES];
    float code[4];
    float anchor[4];
    ifd_detect_real_values(boxes, call->input[IFD_DETECT_BOXES], i * boxes->shape.dim[2], 4, code);
    ifd_detect_real_values(call->in[IFD_DETECT_ANCHORS], call->input[IFD_DETECT_ANCHORS], i * 4, 4,
                           anchor);
    return decode(call->attrs, code, anchor);
}

/* Does an anchor have a negative height or width? If none has, no box has: exp() multiplies them
 * by positive factors. */
static bool is_negative(const struct ifd_desc *anchors, const void *data, int64_t i)
{
    if (anchors->dtype == IFD_F32) {
        const float *anchor = (const float *)data + i * 4;
        return anchor[2] < 0 || anchor[3] < 0;
    }
    const uint8_t *anchor = (const uint8_t *)data + i * 4;
    const int32_t zero = ifd_ref_zero_point(anchors);
    return anchor[2] < zero || anchor[3] < zero;
}

enum ifd_code ifd_box_check(const struct ifd_ref_call *call, struct ifd_err *err)
{
    const int64_t count = call->in[IFD_DETECT_BOXES]->shape.dim[1];
    for (int64_t i = 0; i < count; i++) {
        if (!is_negative(call->in[IFD_DETECT_ANCHORS], call->input[IFD_DETECT_ANCHORS], i)) {
            continue;
        }
        const struct ifd_box box = ifd_box_decode(call, i);
        if (box.ymin > box.ymax || box.xmin > box.xmax) {
            return ifd_fail(
                err, IFD_INVALID, "detection_postprocess: box %lld has negative size %g x %g",
                (long long)i, (double)(box.ymax - box.ymin), (double)(box.xmax - box.xmin));
        }
    }
    return IFD_OK;
}

static float area(const struct ifd_box *box)
{
    return (box->ymax - box->ymin) * (box->xmax - box->xmin);
}

static float larger(float a, float b)
{
    return a < b ? b : a;
}

static float smaller(float a, float b)
{
    return b < a ? b : a;
}

float ifd_box_overlap(const struct ifd_box *a, const struct ifd_box *b)
{
    const float area_a = area(a);
    const float area_b = area(b);
    if (area_a <= 0 || area_b <= 0) {
        return 0;
    }
    const float height = larger(smaller(a->ymax, b->ymax) - larger(a->ymin, b->ymin), 0);
    const float width = larger(smaller(a->xmax, b->xmax) - larger(a->xmin, b->xmin), 0);
    const float common = height * width;
    return common / (area_a + area_b - common);
}

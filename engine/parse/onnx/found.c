/* Elements that the data finds. Where the data is not constant, a run finds how many there are
 * before reading goes on (cut.c). */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static const struct ifd_desc s64 = {.dtype = IFD_S64};

uint32_t ifd_onnx_found_elements(struct ifd_onnx_call *call, uint32_t x)
{
    const struct ifd_desc output[2] = {s64, s64};
    uint32_t found[2];
    if (!ifd_onnx_is_found(call, found, 1)) {
        ifd_build_nodes(call->b, IFD_OP_NON_ZERO, &x, 1, output, 2, NULL, found);
        ifd_onnx_cut(call, found[1], found, (const uint32_t[]){1}, 1);
    }
    return found[0];
}

void ifd_onnx_non_zero(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = ifd_onnx_found_elements(call, call->input[0]);
}

/* The slices along an axis where the condition holds; of all elements without one. */
void ifd_onnx_compress(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = ifd_build_desc(b, call->input[0])->shape;
    const bool has_axis = ifd_onnx_attr(call, "axis") != NULL;
    const int64_t all[1] = {-1};
    struct ifd_gather_attrs attrs = {.axis = 0};
    if (has_axis) {
        attrs.axis = (int32_t)ifd_build_axis(b, ifd_onnx_int(call, "axis", 0), shape.rank);
    }
    const uint32_t found =
        ifd_onnx_found_elements(call, ifd_build_reshape(b, call->input[1], all, 1));
    const uint32_t input[2] = {
        has_axis ? call->input[0] : ifd_build_reshape(b, call->input[0], all, 1),
        ifd_build_reshape(b, found, &ifd_build_desc(b, found)->shape.dim[1], 1)};
    call->output[0] = ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, &attrs);
}

/* ---- unique ---- */

void ifd_onnx_unique(struct ifd_onnx_call *call, int is_microsoft)
{
    struct ifd_builder *b = call->b;
    const struct ifd_desc desc = *ifd_build_desc(b, call->input[0]);
    const bool has_axis = ifd_onnx_attr(call, "axis") != NULL;
    const uint32_t axis =
        has_axis ? ifd_build_axis(b, ifd_onnx_int(call, "axis", 0), desc.shape.rank) : 0;
    const struct ifd_unique_attrs attrs = {.axis = (int32_t)axis,
                                           .has_axis = has_axis,
                                           .is_sorted =
                                               ifd_onnx_int(call, "sorted", !is_microsoft) != 0};
    const struct ifd_desc output[5] = {{.dtype = desc.dtype}, s64, s64, s64, s64};
    uint32_t found[5];
    if (!ifd_onnx_is_found(call, found, 4)) {
        ifd_build_nodes(b, IFD_OP_UNIQUE, call->input, 1, output, 5, &attrs, found);
        ifd_onnx_cut(call, found[4], found, (const uint32_t[]){axis, 0, IFD_NONE, 0}, 4);
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        call->output[i] = found[is_microsoft && i > 0 ? i + 1 : i]; /* not where the first one is */
    }
}

/* ---- non-maximum suppression ---- */

/* The number of input i, clamped; otherwise if it is absent. */
static double number_of(struct ifd_onnx_call *call, uint32_t i, const char *what, double otherwise)
{
    const uint32_t value = ifd_onnx_input(call, i);
    return value != IFD_NONE ? ifd_build_number_of(call->b, value, what) : otherwise;
}

void ifd_onnx_non_max_suppression(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const double most = number_of(call, 2, "the number of boxes", 0);
    const struct ifd_non_max_suppression_attrs attrs = {
        .max_boxes = most > 0 ? most < INT32_MAX ? (int32_t)most : INT32_MAX : 0,
        .iou_threshold = (float)number_of(call, 3, "the threshold of overlaps", 0),
        .score_threshold = (float)number_of(call, 4, "the threshold of scores", 0),
        .has_score = ifd_onnx_input(call, 4) != IFD_NONE,
        .is_centered = ifd_onnx_int(call, "center_point_box", 0) != 0};
    const struct ifd_desc output[2] = {s64, s64};
    uint32_t found[2];
    if (!ifd_onnx_is_found(call, found, 1)) {
        ifd_build_nodes(b, IFD_OP_NON_MAX_SUPPRESSION, call->input, 2, output, 2, &attrs, found);
        ifd_onnx_cut(call, found[1], found, (const uint32_t[]){0}, 1);
    }
    call->output[0] = found[0];
}

/* Resizing: along each dimension every new element is a sum of old ones by weights that are known
 * here. Pictures in the usual modes are left to our own operators; nearest elements are gathered;
 * everything else is a product with the matrix of the weights. */
#include <math.h>
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

enum mode { NEAREST, LINEAR, CUBIC };
enum coordinates {
    HALF_PIXEL,
    HALF_PIXEL_SYMMETRIC,
    PYTORCH,
    ALIGN_CORNERS,
    ASYMMETRIC,
    TF_HALF,
    CROP
};
enum nearest { ROUND_FLOOR, ROUND_CEIL, FLOOR, CEIL };

/* Sizes and scales of all dimensions, and what the attributes say. */
struct resize {
    enum mode mode;
    enum coordinates coordinates;
    enum nearest nearest;
    bool antialias, excludes_outside;
    double cubic, outside; /* coefficient; value outside of a crop */
    uint32_t rank;
    int64_t in[IFD_MAX_RANK], out[IFD_MAX_RANK];
    double scale[IFD_MAX_RANK], start[IFD_MAX_RANK], end[IFD_MAX_RANK];
};

/* ---- what the node says ---- */

static int named(const struct ifd_onnx_call *call, const char *attr, const char *const *names,
                 int count, int otherwise)
{
    for (int i = 0; i < count; i++) {
        if (ifd_onnx_text_is(call, attr, names[i], i == otherwise)) {
            return i;
        }
    }
    return -1;
}

static bool take_modes(struct ifd_onnx_call *call, bool is_old, struct resize *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", "bilinear"};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil"};
    const int mode = named(call, "mode", modes, 4, NEAREST);
    const int how = is_old
                        ? ASYMMETRIC
                        : named(call, "coordinate_transformation_mode", coordinates, 7, HALF_PIXEL);
    const int near = is_old ? FLOOR : named(call, "nearest_mode", nearest, 4, ROUND_FLOOR);
    r->mode = mode == 3 ? LINEAR : (enum mode)mode;
    r->coordinates = (enum coordinates)how;
    r->nearest = (enum nearest)near;
    r->antialias = ifd_onnx_int(call, "antialias", 0) != 0;
    r->excludes_outside = ifd_onnx_int(call, "exclude_outside", 0) != 0;
    r->cubic = ifd_onnx_f32(call, "cubic_coeff_a", -0.75);
    r->outside = ifd_onnx_f32(call, "extrapolation_value", 0);
    return mode >= 0 && how >= 0 && near >= 0;
}

/* Numbers of a constant list of f32, or of attribute "scales"; 0 if there are none. */
static uint32_t take_floats(struct ifd_onnx_call *call, uint32_t i, const char *name, float *ret)
{
    const struct ifd_onnx_attr *attr = name ? ifd_onnx_attr(call, name) : NULL;
    const uint32_t input = ifd_build_known(call->b, ifd_onnx_input(call, i));
    const struct ifd_bytes content = ifd_build_content(call->b, input);
    const size_t count = content.size / sizeof(float);
    if (input != IFD_NONE && count > 0 && count <= 2 * IFD_MAX_RANK &&
        ifd_build_desc(call->b, input)->dtype == IFD_F32) {
        memcpy(ret, content.data, content.size);
        return (uint32_t)count;
    }
    if (attr && attr->float_count > 0 && attr->float_count <= IFD_MAX_RANK) {
        memcpy(ret, attr->floats, attr->float_count * sizeof(float));
        return attr->float_count;
    }
    return 0;
}

/* One scale for all axes: the smallest or largest, so that the aspect stays. */
static void keep_aspect(struct ifd_onnx_call *call, struct resize *r, const struct ifd_ints *axes)
{
    const bool is_smaller = ifd_onnx_text_is(call, "keep_aspect_ratio_policy", "not_larger", false);
    if (!is_smaller && !ifd_onnx_text_is(call, "keep_aspect_ratio_policy", "not_smaller", false)) {
        return;
    }
    double scale = is_smaller ? HUGE_VAL : 0;
    for (uint32_t i = 0; i < axes->count; i++) {
        const double own = r->scale[axes->value[i]];
        scale = is_smaller ? fmin(scale, own) : fmax(scale, own);
    }
    for (uint32_t i = 0; i < axes->count; i++) {
        const size_t d = (size_t)axes->value[i];
        r->scale[d] = scale;
        const double size = floor(scale * (double)r->in[d] + 0.5);
        r->out[d] = size >= 0 && size < INT32_MAX ? (int64_t)size : 0;
    }
}

/* What sizes, scales and the crop are about: attribute "axes", else all. */
static struct ifd_ints axes_of(struct ifd_onnx_call *call, const struct resize *r)
{
    struct ifd_ints axes;
    if (!ifd_onnx_axes(call, UINT32_MAX, r->rank, &axes)) {
        axes.count = r->rank;
        for (uint32_t d = 0; d < r->rank; d++) {
            axes.value[d] = d;
        }
    }
    return axes;
}

static bool take_sizes(struct ifd_onnx_call *call, bool is_old, struct resize *r)
{
    struct ifd_builder *b = call->b;
    const struct ifd_ints axes = axes_of(call, r);
    float number[2 * IFD_MAX_RANK];
    const uint32_t sizes = is_old ? IFD_NONE : ifd_onnx_input(call, 3);
    if (sizes != IFD_NONE) {
        const struct ifd_ints ints = ifd_build_ints_of(b, sizes, "the list of sizes");
        for (uint32_t i = 0; ints.count == axes.count && i < axes.count; i++) {
            const size_t d = (size_t)axes.value[i];
            r->out[d] = ints.value[i];
            r->scale[d] = (double)r->out[d] / (double)r->in[d];
        }
        keep_aspect(call, r, &axes);
        return ints.count == axes.count;
    }
    const uint32_t count = take_floats(call, is_old ? 1 : 2, "scales", number);
    for (uint32_t i = 0; count == axes.count && i < count; i++) {
        const size_t d = (size_t)axes.value[i];
        const double exact = (double)((float)r->in[d] * number[i]); /* ONNX: a product of f32 */
        r->scale[d] = (double)number[i];
        r->out[d] = exact >= 0 && exact < INT32_MAX ? (int64_t)floor(exact) : 0;
    }
    return count == axes.count;
}

/* Where the crop begins and ends, as shares of the whole. */
static bool take_crop(struct ifd_onnx_call *call, struct resize *r)
{
    const struct ifd_ints axes = axes_of(call, r);
    float roi[2 * IFD_MAX_RANK];
    const bool is_whole = take_floats(call, 1, NULL, roi) == 2 * axes.count;
    for (uint32_t i = 0; is_whole && i < axes.count; i++) {
        r->start[axes.value[i]] = (double)roi[i];
        r->end[axes.value[i]] = (double)roi[axes.count + i];
    }
    return is_whole;
}

/* ---- one dimension ---- */

/* In single precision: where a place falls on a whole number decides which element is nearest, and
 * other runtimes decide it so. */
static double over(double x, double scale)
{
    return (double)((float)x / (float)scale);
}

/* Of a crop, likewise. */
static double in_region(const struct resize *r, uint32_t d, int64_t i)
{
    const float start = (float)r->start[d], end = (float)r->end[d];
    const float last = (float)(r->in[d] - 1), steps = (float)(r->out[d] - 1);
    const float way = (float)i * (end - start) * last;
    return (double)(r->out[d] > 1 ? start * last + way / steps : 0.5F * (start + end) * last);
}

/* Place among the old elements of the new element i. */
static double place_of(const struct resize *r, uint32_t d, int64_t i)
{
    const double in = (double)r->in[d], out = (double)r->out[d], scale = r->scale[d];
    const double x = (double)i;
    switch (r->coordinates) {
    case HALF_PIXEL:
        break;
    case HALF_PIXEL_SYMMETRIC: {
        const double adjusted = out / (scale * in);
        return in / 2 * (1 - adjusted) + over(x + 0.5, scale) - 0.5;
    }
    case PYTORCH:
        return out > 1 ? over(x + 0.5, scale) - 0.5 : 0;
    case ALIGN_CORNERS:
        return out > 1 ? x * (in - 1) / (out - 1) : 0;
    case ASYMMETRIC:
        return over(x, scale);
    case TF_HALF:
        return over(x + 0.5, scale);
    case CROP:
        return in_region(r, d, i);
    }
    return over(x + 0.5, scale) - 0.5;
}

static int64_t nearest_of(const struct resize *r, uint32_t d, int64_t i)
{
    const double x = place_of(r, d, i);
    const double at = r->nearest == FLOOR         ? floor(x)
                      : r->nearest == CEIL        ? ceil(x)
                      : r->nearest == ROUND_FLOOR ? ceil(x - 0.5)
                                                  : floor(x + 0.5);
    const double last = (double)(r->in[d] - 1);
    return (int64_t)(at > 0 ? fmin(at, last) : 0); /* 0 of NaN: a crop has any ends */
}

/* Share of an old element that lies this far away. */
static double share(const struct resize *r, double distance)
{
    const double x = fabs(distance), a = r->cubic;
    if (r->mode == LINEAR) {
        return x < 1 ? 1 - x : 0;
    }
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* The weights of the new element i: a row. What lies outside is the element at the edge, or
 * nothing. */
static void weigh(const struct resize *r, uint32_t d, int64_t i, float *row)
{
    const double x = place_of(r, d, i);
    const int64_t last = r->in[d] - 1;
    const double stretch = r->antialias && r->scale[d] < 1 ? r->scale[d] : 1;
    const double reach = (r->mode == LINEAR ? 1 : 2) / stretch;
    double sum = 0;
    for (int64_t k = 0; k <= last; k++) {
        row[k] = 0;
    }
    if (r->coordinates == CROP && !(x >= 0 && x <= (double)last)) { /* NaN, too */
        return;
    }
    for (int64_t k = (int64_t)floor(x - reach); k <= (int64_t)ceil(x + reach); k++) {
        const bool is_inside = k >= 0 && k <= last;
        sum += is_inside || !(r->excludes_outside || r->antialias)
                   ? share(r, ((double)k - x) * stretch)
                   : 0;
    }
    for (int64_t k = (int64_t)floor(x - reach); sum != 0 && k <= (int64_t)ceil(x + reach); k++) {
        const bool is_inside = k >= 0 && k <= last;
        const int64_t at = k < 0 ? 0 : k > last ? last : k;
        if (is_inside || !(r->excludes_outside || r->antialias)) {
            row[at] += (float)(share(r, ((double)k - x) * stretch) / sum);
        }
    }
}

/* ---- nodes ---- */

#define WEIGHTS_MAX ((size_t)64 << 20) /* bytes of one matrix */

static uint32_t by_matrix(struct ifd_builder *b, const struct resize *r, uint32_t d, uint32_t x)
{
    const size_t rows = (size_t)r->out[d], columns = (size_t)r->in[d];
    size_t bytes = 0;
    if (!ifd_size_mul(rows, columns, &bytes) || !ifd_size_mul(bytes, sizeof(float), &bytes) ||
        bytes > WEIGHTS_MAX) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "a resize from %zu to %zu elements by weights",
                              columns, rows);
    }
    float *weights = ifd_arena_take_tensor(b->graph->arena, bytes);
    if (!weights) {
        b->code = ifd_arena_fail(b->graph->arena, bytes, b->err);
        return IFD_NONE;
    }
    for (int64_t i = 0; i < r->out[d]; i++) {
        weigh(r, d, i, weights + (size_t)i * columns);
    }
    const struct ifd_desc desc = {.dtype = IFD_F32,
                                  .shape = {.rank = 2, .dim = {r->out[d], r->in[d]}}};
    const uint32_t matrix = ifd_build_constant(
        b, &desc, (struct ifd_bytes){.data = (const uint8_t *)weights, .size = bytes},
        IFD_TENSOR_PAD);
    const uint32_t last = r->rank - 1;
    return ifd_build_swap(b, ifd_build_layer(b, ifd_build_swap(b, x, d, last), matrix, IFD_NONE), d,
                          last);
}

static uint32_t by_gather(struct ifd_builder *b, const struct resize *r, uint32_t d, uint32_t x)
{
    int64_t *from = ifd_arena_take_array(b->graph->arena, (size_t)r->out[d], sizeof(*from));
    if (!from) {
        b->code = ifd_arena_fail(b->graph->arena, (size_t)r->out[d] * sizeof(*from), b->err);
        return IFD_NONE;
    }
    for (int64_t i = 0; i < r->out[d]; i++) {
        from[i] = nearest_of(r, d, i);
    }
    const struct ifd_gather_attrs attrs = {.axis = (int32_t)d};
    const uint32_t input[2] = {x, ifd_build_list(b, from, (uint32_t)r->out[d])};
    return ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, &attrs);
}

/* A crop may reach outside, where every element is one value. */
static uint32_t fill_outside(struct ifd_builder *b, const struct resize *r, uint32_t x)
{
    uint32_t inside = ifd_build_number(b, IFD_F32, 1);
    for (uint32_t d = 0; d < r->rank; d++) {
        float *mask = ifd_arena_take_array(b->graph->arena, (size_t)r->out[d], sizeof(*mask));
        struct ifd_desc desc = {.dtype = IFD_F32, .shape = {.rank = r->rank - d}};
        for (uint32_t k = 0; k < desc.shape.rank; k++) {
            desc.shape.dim[k] = k == 0 ? r->out[d] : 1;
        }
        if (!mask) {
            b->code = ifd_arena_fail(b->graph->arena, (size_t)r->out[d], b->err);
            return IFD_NONE;
        }
        for (int64_t i = 0; i < r->out[d]; i++) {
            const double at = place_of(r, d, i);
            mask[i] = at >= 0 && at <= (double)(r->in[d] - 1) ? 1 : 0;
        }
        const struct ifd_bytes content = {(const uint8_t *)mask, (size_t)r->out[d] * sizeof(*mask)};
        inside = ifd_build_binary(b, IFD_OP_MUL, inside, ifd_build_constant(b, &desc, content, 0));
    }
    const uint32_t is_inside =
        ifd_onnx_compared(b, IFD_OP_GREATER, inside, ifd_build_number(b, IFD_F32, 0));
    return ifd_onnx_selected(b, is_inside, x, ifd_build_number(b, IFD_F32, r->outside));
}

/* Does the list of nearest elements repeat each one equally often? */
static bool is_repetition(const struct resize *r, uint32_t d)
{
    if (r->in[d] == 0 || r->out[d] % r->in[d] != 0) {
        return false;
    }
    for (int64_t i = 0; i < r->out[d]; i++) {
        if (nearest_of(r, d, i) != i / (r->out[d] / r->in[d])) {
            return false;
        }
    }
    return true;
}

/* Height and width of a picture, in a mode that our own operators have. They round whole numbers;
 * ONNX cuts off what is behind the point. */
static bool is_usual(const struct resize *r, bool is_real)
{
    bool usual = r->rank == 4 && (is_real || r->mode == NEAREST) && r->in[0] == r->out[0] &&
                 r->in[1] == r->out[1] && !r->antialias && !r->excludes_outside && r->mode != CUBIC;
    for (uint32_t d = 2; usual && d < 4; d++) {
        /* our operators know sizes only: the scale must be their ratio */
        const bool is_ratio =
            fabs(r->scale[d] * (double)r->in[d] - (double)r->out[d]) < 1e-3 && r->out[d] > 0;
        usual = r->mode == NEAREST
                    ? is_repetition(r, d)
                    : is_ratio && (r->coordinates == HALF_PIXEL ||
                                   (r->coordinates == PYTORCH && r->out[d] > 1) ||
                                   r->coordinates == ALIGN_CORNERS || r->coordinates == ASYMMETRIC);
    }
    return usual;
}

static uint32_t usual_resize(struct ifd_builder *b, const struct resize *r, uint32_t x)
{
    const bool is_linear = r->mode == LINEAR;
    const struct ifd_resize_attrs attrs = {
        .height = (int32_t)r->out[2],
        .width = (int32_t)r->out[3],
        .align_corners = is_linear && r->coordinates == ALIGN_CORNERS,
        .half_pixel_centers =
            is_linear && (r->coordinates == HALF_PIXEL || r->coordinates == PYTORCH)};
    const uint32_t nhwc = ifd_build_to_nhwc(b, x);
    return ifd_build_to_nchw(
        b, ifd_build_node(b, is_linear ? IFD_OP_RESIZE_BILINEAR : IFD_OP_RESIZE_NEAREST, &nhwc, 1,
                          NULL, &attrs));
}

static bool take_resize(struct ifd_onnx_call *call, bool is_old, struct resize *r)
{
    const struct ifd_shape shape = ifd_build_desc(call->b, call->input[0])->shape;
    *r = (struct resize){.rank = shape.rank};
    for (uint32_t d = 0; d < shape.rank; d++) {
        r->in[d] = r->out[d] = shape.dim[d];
        r->scale[d] = 1;
        r->end[d] = 1;
    }
    bool is_known = call->b->code == IFD_OK && take_modes(call, is_old, r) &&
                    take_sizes(call, is_old, r) && (r->coordinates != CROP || take_crop(call, r));
    for (uint32_t d = 0; is_known && d < r->rank; d++) {
        is_known = r->out[d] > 0 && r->out[d] < INT32_MAX && r->in[d] > 0;
    }
    return is_known;
}

void ifd_onnx_resize(struct ifd_onnx_call *call, int is_upsample)
{
    struct ifd_builder *b = call->b;
    struct resize r;
    uint32_t x = call->input[0];
    if (!take_resize(call, is_upsample != 0 || call->opset < 11, &r)) {
        const struct ifd_shape shape = ifd_build_desc(b, x)->shape;
        ifd_build_fail(b, IFD_UNSUPPORTED,
                       "a resize of %s to a size that is not constant, or in an unknown mode",
                       ifd_shape_text(&shape).s);
        return;
    }
    struct ifd_desc result = {.dtype = ifd_build_desc(b, x)->dtype, .shape = {.rank = r.rank}};
    memcpy(result.shape.dim, r.out, r.rank * sizeof(r.out[0]));
    if (!ifd_desc_fits(&result, b->tensor_bytes)) { /* before weights are computed */
        ifd_build_fail(b, IFD_TOO_LARGE, "a resize to %s", ifd_shape_text(&result.shape).s);
        return;
    }
    if (is_usual(&r, result.dtype == IFD_F32)) {
        call->output[0] = usual_resize(b, &r, x);
        return;
    }
    x = r.mode == NEAREST ? x : ifd_build_cast(b, x, IFD_F32);
    for (uint32_t d = 0; b->code == IFD_OK && d < r.rank; d++) {
        const bool is_same = r.in[d] == r.out[d] && r.scale[d] == 1 && r.coordinates != CROP;
        if (!is_same) {
            x = r.mode == NEAREST ? by_gather(b, &r, d, x) : by_matrix(b, &r, d, x);
        }
    }
    x = r.coordinates == CROP ? fill_outside(b, &r, x) : x;
    call->output[0] = ifd_build_cast(b, x, result.dtype);
}

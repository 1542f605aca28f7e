/* Images read at places between their pixels. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

/* Images [n,c,h,w]; after a failure there are none. */
static uint32_t images(struct ifd_onnx_call *call)
{
    const struct ifd_shape shape = ifd_build_desc(call->b, call->input[0])->shape;
    if (shape.rank != 4) {
        return ifd_build_fail(call->b, IFD_UNSUPPORTED, "images of shape %s, expected [n,c,h,w]",
                              ifd_shape_text(&shape).s);
    }
    return ifd_build_to_nhwc(call->b, call->input[0]);
}

/* Place i of n between -1 and 1: of corners, or of centres. */
static float place(int64_t i, int64_t n, bool of_corners)
{
    const double steps = of_corners ? (double)(n - 1) : (double)n;
    const double at = of_corners ? (double)(2 * i) : (double)(2 * i + 1);
    return steps > 0 ? (float)(at / steps - 1) : -1;
}

/* The places of all pixels, last dimension first, and a 1: [pixels, dims + 1]. */
static uint32_t pixels(struct ifd_onnx_call *call, const struct ifd_shape *size)
{
    struct ifd_builder *b = call->b;
    const bool of_corners = ifd_onnx_int(call, "align_corners", 0) != 0;
    struct ifd_desc desc = {.dtype = IFD_F32, .shape = {.rank = 2, .dim = {1, size->rank + 1}}};
    size_t count = 0, bytes = 0;
    if (ifd_shape_elements(size, &count)) {
        desc.shape.dim[0] = (int64_t)count;
    }
    if (!ifd_desc_fits(&desc, b->tensor_bytes) || !ifd_desc_bytes(&desc, &bytes)) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "a grid of %s", ifd_shape_text(size).s);
    }
    float *to = ifd_arena_take_tensor(b->graph->arena, bytes);
    if (!to) {
        b->code = ifd_arena_fail(b->graph->arena, bytes, b->err);
        return IFD_NONE;
    }
    for (size_t i = 0; i < count; i++, to += size->rank + 1) {
        int64_t left = (int64_t)i;
        for (uint32_t k = 0; k < size->rank; k++) {
            const int64_t n = size->dim[size->rank - 1 - k];
            to[k] = place(left % n, n, of_corners);
            left /= n;
        }
        to[size->rank] = 1;
    }
    return ifd_build_constant(
        b, &desc,
        (struct ifd_bytes){.data = (const uint8_t *)(to - count * (size->rank + 1)), .size = bytes},
        IFD_TENSOR_PAD);
}

/* grid = places of the pixels × theta^T: theta [n, dims, dims + 1], size [n, c, pixels …]. */
void ifd_onnx_affine_grid(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_ints of = ifd_build_ints_of(b, call->input[1], "the size");
    const struct ifd_shape theta = ifd_build_desc(b, call->input[0])->shape;
    struct ifd_shape size = {.rank = of.count > 2 ? of.count - 2 : 0}, grid = {.rank = of.count};
    bool fits = (of.count == 4 || of.count == 5) && theta.rank == 3 &&
                theta.dim[0] == of.value[0] && theta.dim[1] == (int64_t)size.rank &&
                theta.dim[2] == (int64_t)size.rank + 1;
    for (uint32_t d = 0; fits && d < size.rank; d++) {
        size.dim[d] = grid.dim[d + 1] = of.value[d + 2];
        fits = size.dim[d] > 0;
    }
    if (!fits) {
        ifd_build_fail(b, IFD_CORRUPT, "theta of shape %s for a size of %u numbers",
                       ifd_shape_text(&theta).s, of.count);
        return;
    }
    grid.dim[0] = theta.dim[0];
    grid.dim[of.count - 1] = theta.dim[1];
    const uint32_t places = pixels(call, &size);
    const uint32_t y = ifd_build_matmul(b, places, ifd_build_swap(b, call->input[0], 1, 2));
    call->output[0] = ifd_build_reshape(b, y, grid.dim, grid.rank);
}

/* ---- volumes: each place is the sum of what its neighbours have, 2 along each direction ---- */

struct volume {
    struct ifd_builder *b;
    bool is_nearest, is_border, is_mirror, of_corners;
    int64_t n, places;
};

/* Neighbours along one direction: their places, and what they weigh; both [n, places]. */
struct neighbours {
    uint32_t at[2], weight[2];
    uint32_t count;
};

/* x mirrored at both ends until it lies between them. */
static uint32_t mirrored(const struct volume *v, uint32_t x, int64_t size)
{
    struct ifd_builder *b = v->b;
    const double low = v->of_corners ? 0 : -0.5, range = (double)size - (v->of_corners ? 1 : 0);
    if (range <= 0) {
        return ifd_build_with(b, IFD_OP_MUL, x, 0);
    }
    x = ifd_build_unary(b, IFD_OP_ABS, ifd_build_with(b, IFD_OP_SUB, x, low));
    const uint32_t turns =
        ifd_build_unary(b, IFD_OP_FLOOR, ifd_build_with(b, IFD_OP_MUL, x, 0.5 / range));
    x = ifd_build_binary(b, IFD_OP_SUB, x, ifd_build_with(b, IFD_OP_MUL, turns, 2 * range));
    const uint32_t back =
        ifd_build_binary(b, IFD_OP_SUB, ifd_build_number(b, IFD_F32, 2 * range), x);
    return ifd_build_with(b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_MINIMUM, x, back), low);
}

#define FAR 8e6 /* in voxels, from the volume's end */

/* What is no number, or far outside, is as far as it may be: 0 times its share is 0. */
static uint32_t within_reach(struct ifd_builder *b, uint32_t x, int64_t size)
{
    const uint32_t is_number = ifd_onnx_compared(b, IFD_OP_EQUAL, x, x);
    x = ifd_onnx_selected(b, is_number, x, ifd_build_number(b, IFD_F32, -FAR));
    return ifd_build_clamp(b, x, -FAR, (double)size + FAR);
}

/* grid [n, places, 3]; k: which of the 3. */
static struct neighbours neighbours_of(const struct volume *v, uint32_t grid, int64_t k,
                                       int64_t size)
{
    struct ifd_builder *b = v->b;
    const int64_t flat[2] = {v->n, v->places};
    const double factor = (double)(v->of_corners ? size - 1 : size) / 2;
    const double last = (double)(size - 1);
    uint32_t x = ifd_build_reshape(b, ifd_build_cut(b, grid, 2, k, 1), flat, 2);
    x = ifd_build_with(b, IFD_OP_MUL, ifd_build_with(b, IFD_OP_ADD, x, 1), factor);
    x = v->of_corners ? x : ifd_build_with(b, IFD_OP_SUB, x, 0.5);
    x = within_reach(b, x, size);
    x = v->is_mirror ? mirrored(v, x, size) : x;
    x = v->is_mirror || v->is_border ? ifd_build_clamp(b, x, 0, last) : x;
    struct neighbours r = {.count = v->is_nearest ? 1 : 2};
    const uint32_t first = ifd_build_unary(b, v->is_nearest ? IFD_OP_ROUND : IFD_OP_FLOOR, x);
    const uint32_t rest = ifd_build_binary(b, IFD_OP_SUB, x, first);
    for (uint32_t i = 0; i < r.count; i++) {
        const uint32_t at = ifd_build_with(b, IFD_OP_ADD, first, i);
        const uint32_t inside = ifd_build_clamp(b, at, 0, last);
        const uint32_t is_there =
            ifd_build_cast(b, ifd_onnx_compared(b, IFD_OP_EQUAL, at, inside), IFD_F32);
        const uint32_t share =
            i == 1 ? rest : ifd_build_binary(b, IFD_OP_SUB, ifd_build_number(b, IFD_F32, 1), rest);
        r.at[i] = ifd_build_cast(b, inside, IFD_S64);
        r.weight[i] = v->is_nearest ? is_there : ifd_build_binary(b, IFD_OP_MUL, share, is_there);
    }
    return r;
}

/* Volumes [n,c,d,h,w], a grid [n,od,oh,ow,3] of places (x, y, z). */
static uint32_t sampled_volumes(struct ifd_onnx_call *call, const struct ifd_grid_sample_attrs *a)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = ifd_build_desc(b, call->input[0])->shape,
                           g = ifd_build_desc(b, call->input[1])->shape;
    struct volume v = {.b = b,
                       .is_nearest = a->mode == IFD_SAMPLE_NEAREST,
                       .is_border = a->padding == IFD_SAMPLE_BORDER,
                       .is_mirror = a->padding == IFD_SAMPLE_REFLECTION,
                       .of_corners = a->align_corners,
                       .n = x.dim[0]};
    bool fits = g.rank == 5 && g.dim[0] == x.dim[0] && g.dim[4] == 3;
    for (uint32_t d = 0; fits && d < 5; d++) {
        fits = x.dim[d] > 0 && g.dim[d] > 0;
    }
    if (!fits || a->mode == IFD_SAMPLE_CUBIC) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "volumes %s, a grid %s, or a cubic mode",
                              ifd_shape_text(&x).s, ifd_shape_text(&g).s);
    }
    v.places = g.dim[1] * g.dim[2] * g.dim[3];
    const int64_t points[3] = {v.n, v.places, 3}, rows[3] = {v.n, x.dim[1], -1};
    const uint32_t grid = ifd_build_reshape(b, call->input[1], points, 3);
    const uint32_t voxels = ifd_build_swap(b, ifd_build_reshape(b, call->input[0], rows, 3), 1, 2);
    struct neighbours d[3];
    for (uint32_t i = 0; i < 3; i++) {
        d[i] = neighbours_of(&v, grid, 2 - i, x.dim[2 + i]);
    }
    const struct ifd_gather_attrs own = {.axis = 1, .batch_dims = 1};
    const int64_t column[3] = {v.n, v.places, 1};
    const uint32_t taps = d[0].count * d[1].count * d[2].count;
    uint32_t sum = IFD_NONE;
    for (uint32_t t = 0; b->code == IFD_OK && t < taps; t++) {
        uint32_t at = IFD_NONE, weight = IFD_NONE;
        for (uint32_t i = 0, left = t; i < 3; left /= d[i].count, i++) {
            const uint32_t k = left % d[i].count;
            at = i == 0 ? d[i].at[k]
                        : ifd_build_binary(b, IFD_OP_ADD, d[i].at[k],
                                           ifd_build_with(b, IFD_OP_MUL, at, (double)x.dim[2 + i]));
            weight =
                i == 0 ? d[i].weight[k] : ifd_build_binary(b, IFD_OP_MUL, weight, d[i].weight[k]);
        }
        uint32_t y =
            ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){voxels, at}, 2, NULL, &own);
        y = ifd_build_binary(b, IFD_OP_MUL, y, ifd_build_reshape(b, weight, column, 3));
        sum = t == 0 ? y : ifd_build_binary(b, IFD_OP_ADD, sum, y);
    }
    const int64_t whole[5] = {v.n, x.dim[1], g.dim[1], g.dim[2], g.dim[3]};
    return ifd_build_reshape(b, ifd_build_swap(b, sum, 1, 2), whole, 5);
}

void ifd_onnx_grid_sample(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const bool is_nearest = ifd_onnx_text_is(call, "mode", "nearest", false);
    const bool is_cubic = ifd_onnx_text_is(call, "mode", "bicubic", false) ||
                          ifd_onnx_text_is(call, "mode", "cubic", false);
    const bool is_border = ifd_onnx_text_is(call, "padding_mode", "border", false);
    const bool is_mirror = ifd_onnx_text_is(call, "padding_mode", "reflection", false);
    const struct ifd_grid_sample_attrs attrs = {.mode = is_nearest ? IFD_SAMPLE_NEAREST
                                                        : is_cubic ? IFD_SAMPLE_CUBIC
                                                                   : IFD_SAMPLE_LINEAR,
                                                .padding = is_border   ? IFD_SAMPLE_BORDER
                                                           : is_mirror ? IFD_SAMPLE_REFLECTION
                                                                       : IFD_SAMPLE_ZEROS,
                                                .align_corners =
                                                    ifd_onnx_int(call, "align_corners", 0) != 0};
    if (ifd_build_desc(b, call->input[0])->shape.rank == 5) {
        call->output[0] = sampled_volumes(call, &attrs);
        return;
    }
    const uint32_t input[2] = {images(call), call->input[1]};
    const uint32_t y = ifd_build_node(b, IFD_OP_GRID_SAMPLE, input, 2, NULL, &attrs);
    call->output[0] = ifd_build_to_nchw(b, y);
}

/* Before opset 16 pixels were not centered at 0.5. */
void ifd_onnx_roi_align(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_roi_align_attrs attrs = {
        .height = ifd_onnx_int32(call, "output_height", 1),
        .width = ifd_onnx_int32(call, "output_width", 1),
        .sampling = ifd_onnx_int32(call, "sampling_ratio", 0),
        .spatial_scale = (float)ifd_onnx_f32(call, "spatial_scale", 1),
        .is_max = ifd_onnx_text_is(call, "mode", "max", false),
        .half_pixel = ifd_onnx_text_is(call, "coordinate_transformation_mode", "half_pixel",
                                       call->opset >= 16)};
    const uint32_t input[3] = {images(call), call->input[1],
                               ifd_build_cast(b, call->input[2], IFD_S64)};
    const uint32_t y = ifd_build_node(b, IFD_OP_ROI_ALIGN, input, 3, NULL, &attrs);
    call->output[0] = ifd_build_to_nchw(b, y);
}

/* Regions come as [r,5], the number of their image in front. */
void ifd_onnx_max_roi_pool(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    struct ifd_ints size = {0};
    const int64_t flat[1] = {-1};
    (void)ifd_onnx_ints(call, "pooled_shape", &size);
    const struct ifd_shape shape = ifd_build_desc(b, call->input[1])->shape;
    if (size.count != 2 || size.value[0] < 1 || size.value[0] > INT32_MAX || size.value[1] < 1 ||
        size.value[1] > INT32_MAX || shape.rank != 2 || shape.dim[1] != 5) {
        ifd_build_fail(b, IFD_INVALID, "regions %s pooled to %u sizes, expected [r,5] and 2",
                       ifd_shape_text(&shape).s, size.count);
        return;
    }
    const struct ifd_roi_align_attrs attrs = {.height = (int32_t)size.value[0],
                                              .width = (int32_t)size.value[1],
                                              .spatial_scale =
                                                  (float)ifd_onnx_f32(call, "spatial_scale", 1),
                                              .is_whole = true};
    const uint32_t number =
        ifd_build_reshape(b, ifd_build_cut(b, call->input[1], 1, 0, 1), flat, 1);
    const uint32_t input[3] = {images(call), ifd_build_cut(b, call->input[1], 1, 1, 4),
                               ifd_build_cast(b, number, IFD_S64)};
    const uint32_t y = ifd_build_node(b, IFD_OP_ROI_ALIGN, input, 3, NULL, &attrs);
    call->output[0] = ifd_build_to_nchw(b, y);
}

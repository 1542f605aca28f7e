/* Operators of com.microsoft that converters write where ai.onnx has none: tf2onnx, PyTorch's with
 * ONNX Runtime's extensions, scikit-learn's. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

/* ---- regions of images, resized ---- */

/* Places along one direction of the images; all [regions, places]. */
struct places {
    uint32_t low, high; /* the pixels at both sides, s64 */
    uint32_t share;     /* of the higher one, f32 */
    uint32_t is_inside;
};

/* The first at is where the region begins, the last where it ends; a single one is the middle. */
static uint32_t spread(struct ifd_builder *b, uint32_t begin, uint32_t end, int64_t last,
                       int64_t count)
{
    if (count == 1) {
        const uint32_t sum = ifd_build_binary(b, IFD_OP_ADD, begin, end);
        return ifd_build_with(b, IFD_OP_MUL, ifd_build_with(b, IFD_OP_MUL, sum, 0.5), (double)last);
    }
    const uint32_t step[3] = {ifd_build_number(b, IFD_S32, 0),
                              ifd_build_number(b, IFD_S32, (double)(count - 1)),
                              ifd_build_number(b, IFD_S32, 1)};
    const uint32_t number =
        ifd_build_cast(b, ifd_build_node(b, IFD_OP_RANGE, step, 3, NULL, NULL), IFD_F32);
    uint32_t apart = ifd_build_binary(b, IFD_OP_SUB, end, begin);
    apart = ifd_build_with(b, IFD_OP_MUL, apart, (double)last);
    apart = ifd_build_with(b, IFD_OP_DIV, apart, (double)(count - 1));
    const uint32_t first = ifd_build_with(b, IFD_OP_MUL, begin, (double)last);
    const struct ifd_axis_attrs columns = {.axis = 1};
    const uint32_t part[2] = {
        ifd_build_binary(b, IFD_OP_ADD, first, ifd_build_binary(b, IFD_OP_MUL, apart, number)),
        ifd_build_with(b, IFD_OP_MUL, end, (double)last)};
    return ifd_build_node(b, IFD_OP_CONCAT, part, 2, NULL, &columns);
}

/* regions [r,4]: column is where they begin, column + 2 where they end. */
static struct places places_of(struct ifd_onnx_call *call, uint32_t column, int64_t pixels,
                               int64_t count)
{
    struct ifd_builder *b = call->b;
    const uint32_t regions = call->input[1];
    const double last = (double)(pixels - 1);
    const uint32_t at = spread(b, ifd_build_cut(b, regions, 1, column, 1),
                               ifd_build_cut(b, regions, 1, column + 2, 1), pixels - 1, count);
    const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
    const uint32_t end = ifd_build_number(b, IFD_F32, last);
    struct places p = {.is_inside =
                           ifd_build_binary(b, IFD_OP_LOGICAL_AND,
                                            ifd_onnx_compared(b, IFD_OP_GREATER_EQUAL, at, zero),
                                            ifd_onnx_compared(b, IFD_OP_LESS_EQUAL, at, end))};
    const uint32_t inside = ifd_onnx_selected(b, p.is_inside, at, zero);
    uint32_t low = ifd_build_unary(b, IFD_OP_FLOOR, inside);
    p.share = ifd_build_binary(b, IFD_OP_SUB, inside, low);
    if (ifd_onnx_text_is(call, "mode", "nearest", false)) { /* halves go up */
        const uint32_t is_behind =
            ifd_onnx_compared(b, IFD_OP_GREATER_EQUAL, p.share, ifd_build_number(b, IFD_F32, 0.5));
        low = ifd_build_binary(b, IFD_OP_ADD, low, ifd_build_cast(b, is_behind, IFD_F32));
    }
    p.low = ifd_build_cast(b, low, IFD_S64);
    p.high = ifd_build_cast(b, ifd_build_unary(b, IFD_OP_CEIL, inside), IFD_S64);
    return p;
}

/* x [r, k] along axis 1 or 2 of [r, rows, columns] or [r, rows, columns, 1]. */
static uint32_t along(struct ifd_builder *b, uint32_t x, uint32_t axis, uint32_t rank)
{
    const struct ifd_shape shape = shape_of(b, x);
    int64_t dim[4] = {shape.dim[0], 1, 1, 1};
    dim[axis] = shape.dim[1];
    return ifd_build_reshape(b, x, dim, rank);
}

struct crops {
    uint32_t pixels; /* [all, channels] */
    uint32_t image;  /* where the image of each region begins, [r, 1, 1] */
    int64_t width;
};

static uint32_t pixels_at(struct ifd_builder *b, const struct crops *c, uint32_t row,
                          uint32_t column)
{
    const struct ifd_gather_attrs attrs = {.axis = 0};
    uint32_t at = ifd_build_with(b, IFD_OP_MUL, along(b, row, 1, 3), (double)c->width);
    at = ifd_build_binary(b, IFD_OP_ADD, ifd_build_binary(b, IFD_OP_ADD, at, c->image),
                          along(b, column, 2, 3));
    return ifd_build_node(b, IFD_OP_GATHER, (const uint32_t[]){c->pixels, at}, 2, NULL, &attrs);
}

/* x + (y - x) * share */
static uint32_t between(struct ifd_builder *b, uint32_t x, uint32_t y, uint32_t share)
{
    const uint32_t more =
        ifd_build_binary(b, IFD_OP_MUL, ifd_build_binary(b, IFD_OP_SUB, y, x), share);
    return ifd_build_binary(b, IFD_OP_ADD, x, more);
}

/* Images [n,c,h,w], regions [r,4] (y, x, y, x between 0 and 1), the image of each [r], a size. */
static uint32_t crop_and_resize(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_ints size = ifd_build_ints_of(b, call->input[3], "the size of the crops");
    const struct ifd_shape x = shape_of(b, call->input[0]), r = shape_of(b, call->input[1]),
                           i = shape_of(b, call->input[2]);
    bool fits = x.rank == 4 && r.rank == 2 && r.dim[1] == 4 && i.rank == 1 &&
                i.dim[0] == r.dim[0] && size.count == 2;
    for (uint32_t d = 0; fits && d < 2; d++) {
        fits = size.value[d] > 0 && size.value[d] <= INT32_MAX && x.dim[2 + d] > 0;
    }
    if (b->code != IFD_OK || !fits) {
        return ifd_build_fail(b, IFD_INVALID, "regions %s, %s of images %s, %u sizes",
                              ifd_shape_text(&r).s, ifd_shape_text(&i).s, ifd_shape_text(&x).s,
                              size.count);
    }
    const struct places rows = places_of(call, 0, x.dim[2], size.value[0]);
    const struct places columns = places_of(call, 1, x.dim[3], size.value[1]);
    const int64_t flat[2] = {-1, x.dim[1]}, first[3] = {r.dim[0], 1, 1};
    const uint32_t image =
        ifd_build_reshape(b, ifd_build_cast(b, call->input[2], IFD_S64), first, 3);
    const struct crops c = {
        .pixels = ifd_build_reshape(b, ifd_build_to_nhwc(b, call->input[0]), flat, 2),
        .image = ifd_build_with(b, IFD_OP_MUL, image, (double)x.dim[2] * (double)x.dim[3]),
        .width = x.dim[3]};
    uint32_t y = pixels_at(b, &c, rows.low, columns.low);
    if (!ifd_onnx_text_is(call, "mode", "nearest", false)) {
        const uint32_t share = along(b, columns.share, 2, 4);
        const uint32_t bottom = between(b, pixels_at(b, &c, rows.high, columns.low),
                                        pixels_at(b, &c, rows.high, columns.high), share);
        y = between(b, between(b, y, pixels_at(b, &c, rows.low, columns.high), share), bottom,
                    along(b, rows.share, 1, 4));
    }
    const uint32_t is_inside = ifd_build_binary(
        b, IFD_OP_LOGICAL_AND, along(b, rows.is_inside, 1, 4), along(b, columns.is_inside, 2, 4));
    const uint32_t outside =
        ifd_build_number(b, IFD_F32, ifd_onnx_f32(call, "extrapolation_value", 0));
    return ifd_build_to_nchw(b, ifd_onnx_selected(b, is_inside, y, outside));
}

/* ---- others ---- */

static uint32_t inverse(struct ifd_onnx_call *call)
{
    return ifd_build_unary(call->b, IFD_OP_INVERSE, call->input[0]);
}

static uint32_t matmul_16(struct ifd_onnx_call *call)
{
    return ifd_build_matmul(call->b, ifd_build_cast(call->b, call->input[0], IFD_S32),
                            ifd_build_cast(call->b, call->input[1], IFD_S32));
}

static uint32_t murmur_hash(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_hash_attrs attrs = {.seed = ifd_onnx_int32(call, "seed", 0)};
    const bool is_positive = ifd_onnx_int(call, "positive", 1) != 0;
    const struct ifd_desc output = {.dtype = is_positive ? IFD_U32 : IFD_S32};
    return ifd_build_node(b, IFD_OP_HASH, call->input, 1, &output, &attrs);
}

/* Windows along a dimension; what lies in one becomes the last dimension. */
static uint32_t unfold(struct ifd_onnx_call *call)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[0]);
    const uint32_t axis = ifd_build_axis(b, ifd_onnx_int(call, "dim", -1), x.rank);
    const int64_t size = ifd_onnx_int(call, "size", 0), step = ifd_onnx_int(call, "step", 1);
    if (b->code != IFD_OK || x.rank == IFD_MAX_RANK || size < 1 || step < 1 || size > x.dim[axis]) {
        return ifd_build_fail(b, IFD_INVALID, "windows of %lld in steps of %lld of %s",
                              (long long)size, (long long)step, ifd_shape_text(&x).s);
    }
    const uint32_t y = ifd_onnx_windows(b, call->input[0], axis, size, step);
    uint32_t order[IFD_MAX_RANK] = {0};
    for (uint32_t d = 0; d < x.rank; d++) {
        order[d] = d <= axis ? d : d + 1;
    }
    order[x.rank] = axis + 1;
    return ifd_build_transpose(b, y, order);
}

void ifd_onnx_converted(struct ifd_onnx_call *call, int which)
{
    static uint32_t (*const functions[])(struct ifd_onnx_call *) = {
        [IFD_ONNX_CROP_AND_RESIZE] = crop_and_resize,
        [IFD_ONNX_INVERSE] = inverse,
        [IFD_ONNX_MATMUL_16] = matmul_16,
        [IFD_ONNX_MURMUR_HASH] = murmur_hash,
        [IFD_ONNX_UNFOLD] = unfold,
    };
    call->output[0] = functions[which](call);
}

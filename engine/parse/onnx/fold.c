/* Back to a picture: Col2Im, which is Fold in PyTorch, adds up blocks that overlap; MaxUnpool puts
 * maxima where they came from. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/window.h"

#define INDICES_MAX (1 << 24) /* which are made when the file is read */

struct fold {
    struct ifd_onnx_window w; /* of a block */
    int64_t size[IFD_ONNX_DIRECTIONS];
    int64_t count[IFD_ONNX_DIRECTIONS]; /* blocks */
    int64_t pixels, taps, blocks;
};

static bool are_sizes(const struct ifd_ints *sizes)
{
    bool are = sizes->count > 0 && sizes->count <= IFD_ONNX_DIRECTIONS;
    for (uint32_t d = 0; d < sizes->count; d++) {
        are = are && sizes->value[d] > 0 && sizes->value[d] <= INT32_MAX;
    }
    return are;
}

static bool describe(struct ifd_onnx_call *call, struct fold *ret)
{
    struct ifd_builder *b = call->b;
    const struct ifd_ints size = ifd_build_ints_of(b, call->input[1], "the picture's size");
    const struct ifd_ints tap = ifd_build_ints_of(b, call->input[2], "the blocks' size");
    if (b->code != IFD_OK || size.count != tap.count || !are_sizes(&size) || !are_sizes(&tap)) {
        return false;
    }
    *ret = (struct fold){.w = ifd_onnx_window(call, size.count, size.value, tap.value),
                         .pixels = 1,
                         .taps = 1,
                         .blocks = 1};
    memcpy(ret->size, size.value, sizeof(ret->size));
    for (uint32_t d = 0; b->code == IFD_OK && d < size.count; d++) {
        const struct ifd_onnx_window *w = &ret->w;
        const int64_t reach = w->dilation[d] * (w->kernel[d] - 1) + 1;
        const int64_t room = ret->size[d] + w->before[d] + w->after[d] - reach;
        if (room < 0 || w->stride[d] < 1 || w->dilation[d] < 1) {
            return false;
        }
        ret->count[d] = room / w->stride[d] + 1;
        if (__builtin_mul_overflow(ret->pixels, ret->size[d], &ret->pixels) ||
            __builtin_mul_overflow(ret->taps, w->kernel[d], &ret->taps) ||
            __builtin_mul_overflow(ret->blocks, ret->count[d], &ret->blocks)) {
            return false;
        }
    }
    return b->code == IFD_OK;
}

/* Which column has what a tap puts into a pixel; taps * blocks: none. */
static int64_t column_of(const struct fold *fold, int64_t pixel, int64_t tap)
{
    const struct ifd_onnx_window *w = &fold->w;
    int64_t block = 0, scale = 1;
    const int64_t whole_tap = tap;
    for (uint32_t d = w->dims; d-- > 0;) {
        const int64_t at =
            pixel % fold->size[d] + w->before[d] - tap % w->kernel[d] * w->dilation[d];
        if (at < 0 || at % w->stride[d] != 0 || at / w->stride[d] >= fold->count[d]) {
            return fold->taps * fold->blocks;
        }
        block += at / w->stride[d] * scale;
        scale *= fold->count[d];
        pixel /= fold->size[d];
        tap /= w->kernel[d];
    }
    return whole_tap * fold->blocks + block;
}

/* For each pixel the columns of all taps. */
static uint32_t columns(struct ifd_builder *b, const struct fold *fold)
{
    struct ifd_desc desc = {.dtype = IFD_S32, .shape = {.rank = 1}};
    int64_t count = 0, last = 0;
    if (__builtin_mul_overflow(fold->pixels, fold->taps, &count) || count > INDICES_MAX ||
        __builtin_mul_overflow(fold->taps, fold->blocks, &last) || last > INT32_MAX) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "%lld pixels of %lld taps, limit %d",
                              (long long)fold->pixels, (long long)fold->taps, INDICES_MAX);
    }
    desc.shape.dim[0] = count;
    const size_t bytes = (size_t)count * sizeof(int32_t);
    int32_t *column = ifd_arena_take_tensor(b->graph->arena, bytes);
    if (!column) {
        b->code = ifd_arena_fail(b->graph->arena, bytes, b->err);
        return IFD_NONE;
    }
    for (int64_t i = 0; i < count; i++) {
        column[i] = (int32_t)column_of(fold, i / fold->taps, i % fold->taps);
    }
    return ifd_build_constant(b, &desc, (struct ifd_bytes){(const uint8_t *)column, bytes},
                              IFD_TENSOR_PAD);
}

void ifd_onnx_col2im(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape in = ifd_build_desc(b, call->input[0])->shape;
    struct fold fold;
    if (!describe(call, &fold) || in.rank != 3 || in.dim[1] % fold.taps != 0 ||
        in.dim[2] != fold.blocks) {
        (void)ifd_build_fail(b, IFD_INVALID, "columns of shape %s do not make this picture",
                             ifd_shape_text(&in).s);
        return;
    }
    const int64_t channels = in.dim[1] / fold.taps, all = fold.taps * fold.blocks;
    const struct ifd_pad_attrs one_zero = {.before = {.count = 3},
                                           .after = {.count = 3, .value = {0, 0, 1}}};
    const struct ifd_gather_attrs along = {.axis = 2};
    const struct ifd_ints taps = {.count = 1, .value = {3}};
    const uint32_t rows =
        ifd_build_reshape(b, call->input[0], (const int64_t[]){in.dim[0], channels, all}, 3);
    const uint32_t pick[2] = {ifd_build_node(b, IFD_OP_PAD, &rows, 1, NULL, &one_zero),
                              columns(b, &fold)};
    const uint32_t picked = ifd_build_node(b, IFD_OP_GATHER, pick, 2, NULL, &along);
    const uint32_t apart = ifd_build_reshape(
        b, picked, (const int64_t[]){in.dim[0], channels, fold.pixels, fold.taps}, 4);
    const uint32_t sums = ifd_build_reduce(b, IFD_OP_REDUCE_SUM, apart, &taps, false);
    int64_t dim[IFD_MAX_RANK] = {in.dim[0], channels};
    memcpy(dim + 2, fold.size, fold.w.dims * sizeof(dim[0]));
    call->output[0] = ifd_build_reshape(b, sums, dim, fold.w.dims + 2);
}

/* ---- maxima ---- */

/* Maxima go back to the places that they came from; elsewhere are zeros. */
static uint32_t unpooled(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape in = ifd_build_desc(b, x)->shape;
    const uint32_t given = ifd_onnx_input(call, 2);
    struct ifd_ints kernel;
    if (in.rank < 3 || !ifd_onnx_kernel(call, &kernel) || kernel.count != in.rank - 2 ||
        kernel.count > IFD_ONNX_DIRECTIONS) {
        return ifd_build_fail(b, IFD_INVALID, "an input of %u dimensions", in.rank);
    }
    const struct ifd_onnx_window w = ifd_onnx_window(call, kernel.count, in.dim + 2, kernel.value);
    struct ifd_shape inner = in;
    int64_t count = in.dim[0] * in.dim[1];
    for (uint32_t i = 0; i < kernel.count; i++) {
        inner.dim[2 + i] =
            (in.dim[2 + i] - 1) * w.stride[i] - w.before[i] - w.after[i] + kernel.value[i];
        const int64_t size = inner.dim[2 + i] > 0 ? inner.dim[2 + i] : 0;
        if (__builtin_mul_overflow(count, size, &count)) {
            return ifd_build_fail(b, IFD_TOO_LARGE, "a result of shape %s",
                                  ifd_shape_text(&inner).s);
        }
    }
    const struct ifd_broadcast_to_attrs zeros = {.shape = {.count = 1, .value = {count}}};
    const uint32_t zero = ifd_build_number(b, IFD_F32, 0);
    const uint32_t operands[3] = {ifd_build_node(b, IFD_OP_BROADCAST_TO, &zero, 1, NULL, &zeros),
                                  ifd_build_reshape(b, call->input[1], (const int64_t[]){-1}, 1),
                                  ifd_build_reshape(b, x, (const int64_t[]){-1}, 1)};
    uint32_t y = ifd_build_node(b, IFD_OP_SCATTER_ROWS, operands, 3, NULL, NULL);
    if (given == IFD_NONE) {
        return ifd_build_reshape(b, y, inner.dim, inner.rank);
    }
    /* the numbers are those of the inner shape; the rest of a larger one stays 0 */
    const struct ifd_ints wanted = ifd_build_ints_of(b, given, "the shape");
    struct ifd_pad_attrs pad = {.before = {.count = in.rank}, .after = {.count = in.rank}};
    for (uint32_t d = 0; d < in.rank && wanted.count == in.rank; d++) {
        pad.after.value[d] = wanted.value[d] - inner.dim[d];
    }
    y = ifd_build_reshape(b, y, inner.dim, inner.rank);
    return ifd_build_node(b, IFD_OP_PAD, &y, 1, NULL, &pad);
}

void ifd_onnx_max_unpool(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = unpooled(call, call->input[0]);
}

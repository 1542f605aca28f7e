/* Col2Im, which is Fold in PyTorch: blocks that overlap are added up to a picture. */
#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_impl.h"

#include <string.h>

/* Of the picture's dimensions. */
struct fold {
    uint32_t dims;
    int64_t size[IFD_MAX_RANK], tap[IFD_MAX_RANK], stride[IFD_MAX_RANK], dilation[IFD_MAX_RANK];
    int64_t before[IFD_MAX_RANK];
    int64_t count[IFD_MAX_RANK]; /* blocks */
    int64_t pixels, taps, blocks;
};

static int64_t item(const struct ifd_ints *list, uint32_t i, int64_t otherwise)
{
    return i < list->count ? list->value[i] : otherwise;
}

static bool describe(struct ifd_onnx_call *call, struct fold *ret)
{
    struct ifd_builder *b = call->b;
    const struct ifd_ints size = ifd_build_ints_of(b, call->input[1], "the picture's size");
    const struct ifd_ints tap = ifd_build_ints_of(b, call->input[2], "the blocks' size");
    struct ifd_ints stride = {0}, dilation = {0}, pads = {0};
    (void)ifd_onnx_ints(call, "strides", &stride);
    (void)ifd_onnx_ints(call, "dilations", &dilation);
    (void)ifd_onnx_ints(call, "pads", &pads);
    *ret = (struct fold){.dims = size.count, .pixels = 1, .taps = 1, .blocks = 1};
    bool fits = b->code == IFD_OK && size.count > 0 && size.count == tap.count;
    for (uint32_t d = 0; fits && d < size.count; d++) {
        ret->size[d] = size.value[d];
        ret->tap[d] = tap.value[d];
        ret->stride[d] = item(&stride, d, 1);
        ret->dilation[d] = item(&dilation, d, 1);
        ret->before[d] = item(&pads, d, 0);
        const int64_t after = item(&pads, size.count + d, 0), limit = INT32_MAX;
        fits = ret->size[d] > 0 && ret->tap[d] > 0 && ret->stride[d] > 0 && ret->dilation[d] > 0 &&
               ret->before[d] >= 0 && after >= 0 && ret->size[d] < limit && ret->tap[d] < limit &&
               ret->dilation[d] < limit && ret->before[d] < limit && after < limit;
        const int64_t room =
            fits ? ret->size[d] + ret->before[d] + after - ret->dilation[d] * (ret->tap[d] - 1) - 1
                 : -1;
        fits = room >= 0;
        ret->count[d] = fits ? room / ret->stride[d] + 1 : 0;
        fits = fits && !__builtin_mul_overflow(ret->pixels, ret->size[d], &ret->pixels) &&
               !__builtin_mul_overflow(ret->taps, ret->tap[d], &ret->taps) &&
               !__builtin_mul_overflow(ret->blocks, ret->count[d], &ret->blocks);
    }
    return fits;
}

/* Which column has what a tap puts into a pixel; taps * blocks: none. */
static int64_t column_of(const struct fold *fold, int64_t pixel, int64_t tap)
{
    int64_t block = 0, scale = 1;
    const int64_t whole_tap = tap;
    for (uint32_t d = fold->dims; d-- > 0;) {
        const int64_t at =
            pixel % fold->size[d] + fold->before[d] - tap % fold->tap[d] * fold->dilation[d];
        if (at < 0 || at % fold->stride[d] != 0 || at / fold->stride[d] >= fold->count[d]) {
            return fold->taps * fold->blocks;
        }
        block += at / fold->stride[d] * scale;
        scale *= fold->count[d];
        pixel /= fold->size[d];
        tap /= fold->tap[d];
    }
    return whole_tap * fold->blocks + block;
}

/* For each pixel the columns of all taps. */
static uint32_t columns(struct ifd_builder *b, const struct fold *fold)
{
    int64_t count = 0;
    struct ifd_desc desc = {.dtype = IFD_S64, .shape = {.rank = 1}};
    if (__builtin_mul_overflow(fold->pixels, fold->taps, &count) ||
        count > (int64_t)(b->tensor_bytes / sizeof(int64_t))) {
        return ifd_build_fail(b, IFD_TOO_LARGE,
                              "%lld pixels of %lld taps exceed the limit of %zu "
                              "bytes",
                              (long long)fold->pixels, (long long)fold->taps, b->tensor_bytes);
    }
    desc.shape.dim[0] = count;
    int64_t *column = ifd_arena_take_array(b->graph->arena, (size_t)count, sizeof(*column));
    if (!column) {
        b->code = ifd_arena_fail(b->graph->arena, (size_t)count * sizeof(*column), b->err);
        return IFD_NONE;
    }
    for (int64_t i = 0; i < count; i++) {
        column[i] = column_of(fold, i / fold->taps, i % fold->taps);
    }
    const struct ifd_bytes content = {(const uint8_t *)column, (size_t)count * sizeof(*column)};
    return ifd_build_constant(b, &desc, content, 0);
}

void ifd_onnx_col2im(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    const struct ifd_shape in = ifd_build_desc(b, call->input[0])->shape;
    struct fold fold;
    if (!describe(call, &fold) || in.rank != 3 || fold.dims + 2 > IFD_MAX_RANK ||
        in.dim[1] % fold.taps != 0 || in.dim[2] != fold.blocks) {
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
    memcpy(dim + 2, fold.size, fold.dims * sizeof(dim[0]));
    call->output[0] = ifd_build_reshape(b, sums, dim, fold.dims + 2);
}

/* Padding of every kind. */
#include <string.h>

#include "engine/parse/onnx/onnx_impl.h"

#define PADDING_MAX (1 << 24) /* elements that are not of one value, at one end of a dimension */

static struct ifd_shape shape_of(const struct ifd_onnx_call *call, uint32_t i)
{
    return ifd_build_desc(call->b, call->input[i])->shape;
}

/* Amounts before and after every dimension; negative ones cut the tensor, here. */
static uint32_t pad_amounts(struct ifd_onnx_call *call, uint32_t x, struct ifd_ints *before,
                            struct ifd_ints *after)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape shape = shape_of(call, 0);
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, "pads");
    const struct ifd_bytes content = call->input_count > 1
                                         ? ifd_build_content(b, ifd_build_known(b, call->input[1]))
                                         : (struct ifd_bytes){0};
    struct ifd_ints axes = {.count = shape.rank};
    for (uint32_t d = 0; d < shape.rank; d++) {
        axes.value[d] = d;
    }
    if (ifd_onnx_input(call, 3) != IFD_NONE) {
        ifd_onnx_axes(call, 3, shape.rank, &axes);
    }
    const size_t count = attr ? attr->int_count : content.size / sizeof(int64_t);
    if (count != 2 * (size_t)axes.count) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "%zu constant amounts of padding for %u axes",
                              count, axes.count);
    }
    *before = *after = (struct ifd_ints){.count = shape.rank};
    for (uint32_t i = 0; i < 2 * axes.count; i++) {
        int64_t amount = 0;
        if (attr) {
            amount = attr->ints[i];
        } else {
            memcpy(&amount, content.data + i * sizeof(amount), sizeof(amount));
        }
        const uint32_t d = (uint32_t)axes.value[i % axes.count];
        const int64_t size = ifd_build_desc(b, x)->shape.dim[d];
        if (amount < 0 && amount + size >= 0) {
            x = ifd_build_cut(b, x, d, i < axes.count ? -amount : 0, size + amount);
            amount = 0;
        }
        (i < axes.count ? before : after)->value[d] = amount;
    }
    return x;
}

/* Padding that repeats the elements at the edge, or begins again at the other end. */
static uint32_t pad_from_inside(struct ifd_builder *b, uint32_t x, const struct ifd_pad_attrs *pads,
                                bool wraps)
{
    for (uint32_t d = 0; b->code == IFD_OK && d < pads->before.count; d++) {
        const int64_t size = ifd_build_desc(b, x)->shape.dim[d];
        const int64_t before = pads->before.value[d], after = pads->after.value[d];
        if (before == 0 && after == 0) {
            continue;
        }
        if (size == 0 || before < 0 || after < 0 || before > PADDING_MAX || after > PADDING_MAX) {
            return ifd_build_fail(b, IFD_UNSUPPORTED, "padding of %lld by %lld and %lld elements",
                                  (long long)size, (long long)before, (long long)after);
        }
        const size_t count = (size_t)(before + size + after);
        int64_t *from = ifd_arena_take_array(b->graph->arena, count, sizeof(*from));
        if (!from) {
            b->code = ifd_arena_fail(b->graph->arena, count * sizeof(*from), b->err);
            return IFD_NONE;
        }
        for (size_t i = 0; i < count; i++) {
            const int64_t at = (int64_t)i - before;
            from[i] = wraps ? (at % size + size) % size : at < 0 ? 0 : at < size ? at : size - 1;
        }
        const struct ifd_gather_attrs attrs = {.axis = (int32_t)d};
        const uint32_t input[2] = {x, ifd_build_list(b, from, (uint32_t)count)};
        x = ifd_build_node(b, IFD_OP_GATHER, input, 2, NULL, &attrs);
    }
    return x;
}

static uint32_t pad(struct ifd_onnx_call *call, uint32_t x)
{
    struct ifd_builder *b = call->b;
    struct ifd_pad_attrs attrs = {.value = 0};
    const uint32_t cropped = pad_amounts(call, x, &attrs.before, &attrs.after);
    if (ifd_onnx_text_is(call, "mode", "reflect", false)) {
        const struct ifd_mirror_pad_attrs mirror = {.before = attrs.before, .after = attrs.after};
        return ifd_build_node(b, IFD_OP_MIRROR_PAD, &cropped, 1, NULL, &mirror);
    }
    const bool wraps = ifd_onnx_text_is(call, "mode", "wrap", false);
    if (wraps || ifd_onnx_text_is(call, "mode", "edge", false)) {
        return pad_from_inside(b, cropped, &attrs, wraps);
    }
    if (!ifd_onnx_text_is(call, "mode", "constant", true)) {
        return ifd_build_fail(b, IFD_UNSUPPORTED, "padding by mode \"%s\"",
                              ifd_onnx_text(ifd_onnx_attr(call, "mode")->s).s);
    }
    const uint32_t value = ifd_onnx_input(call, 2);
    attrs.value = (float)(value == IFD_NONE ? ifd_onnx_f32(call, "value", 0)
                                            : ifd_build_number_of(b, value, "the padding"));
    attrs.has_value = attrs.value != 0;
    /* types that padding knows with 0 only */
    const enum ifd_dtype dtype = ifd_build_desc(b, cropped)->dtype;
    const bool is_rare =
        dtype == IFD_U16 || dtype == IFD_S16 || dtype == IFD_U32 || dtype == IFD_U64;
    uint32_t data = is_rare && attrs.has_value ? ifd_onnx_widened(b, cropped) : cropped;
    if (attrs.has_value && ifd_build_desc(b, data)->dtype == IFD_S64) { /* zeros of x - value */
        const double amount = (double)attrs.value;
        attrs.value = 0;
        attrs.has_value = false;
        data = ifd_build_with(b, IFD_OP_SUB, data, amount);
        data = ifd_build_node(b, IFD_OP_PAD, &data, 1, NULL, &attrs);
        return ifd_build_cast(b, ifd_build_with(b, IFD_OP_ADD, data, amount), dtype);
    }
    return ifd_build_cast(b, ifd_build_node(b, IFD_OP_PAD, &data, 1, NULL, &attrs), dtype);
}

void ifd_onnx_pad(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    call->output[0] = pad(call, call->input[0]);
}

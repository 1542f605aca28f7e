/* Rows and columns of a filter that lie over padding at every place add nothing: a filter of
 * dilation 24 on an image of 17 x 17 is its middle alone, and so is one of 3 x 3 on one pixel. The
 * convolution gets a copy of its filter without them. */
#include "engine/opt/pass_impl.h"

#include <string.h>

#include "engine/ir/shape.h"

/* One direction of a convolution. */
struct span {
    int64_t first, count; /* of the filter, what is kept */
    int64_t pad_first, pad_last;
};

/* Which of the filter's rows are ever over the image. False: all are, none is, or the rest would
 * begin inside the image, which no padding says. */
static bool crop(int64_t in, int64_t out, int64_t filter, int64_t stride, int64_t dilation,
                 int64_t pad_first, struct span *ret)
{
    int64_t first = 0, last = filter - 1;
    while (first <= last && first * dilation - pad_first + (out - 1) * stride < 0) {
        first++;
    }
    while (last >= first && last * dilation - pad_first >= in) {
        last--;
    }
    const int64_t count = last - first + 1, pad = pad_first - first * dilation;
    const int64_t behind = (out - 1) * stride + (count - 1) * dilation + 1 - in - pad;
    *ret = (struct span){
        .first = first, .count = count, .pad_first = pad, .pad_last = behind > 0 ? behind : 0};
    return count >= 1 && pad >= 0 && behind > -stride;
}

static bool crop_window(const struct ifd_shape *in, const struct ifd_shape *filter,
                        const struct ifd_window *old, struct ifd_window *ret, struct span *ret_h,
                        struct span *ret_w)
{
    struct ifd_window_size size;
    if (!ifd_window_resolve(old, filter->dim[1], filter->dim[2], in->dim[1], in->dim[2], &size) ||
        !crop(in->dim[1], size.out_h, filter->dim[1], old->stride_h, old->dilation_h, size.pad_top,
              ret_h) ||
        !crop(in->dim[2], size.out_w, filter->dim[2], old->stride_w, old->dilation_w, size.pad_left,
              ret_w) ||
        (ret_h->count == filter->dim[1] && ret_w->count == filter->dim[2])) {
        return false;
    }
    *ret = (struct ifd_window){.padding = IFD_PAD_EXPLICIT,
                               .stride_h = old->stride_h,
                               .stride_w = old->stride_w,
                               .dilation_h = ret_h->count == 1 ? 1 : old->dilation_h,
                               .dilation_w = ret_w->count == 1 ? 1 : old->dilation_w,
                               .pad_top = (int32_t)ret_h->pad_first,
                               .pad_bottom = (int32_t)ret_h->pad_last,
                               .pad_left = (int32_t)ret_w->pad_first,
                               .pad_right = (int32_t)ret_w->pad_last};
    return true;
}

/* Copies [n,h,w,c] without the rows and columns that go. */
static void copy_filter(uint8_t *to, const uint8_t *from, const struct ifd_shape *shape,
                        size_t element, const struct span *h, const struct span *w)
{
    const size_t column = (size_t)shape->dim[3] * element, row = (size_t)shape->dim[2] * column;
    const size_t kept = (size_t)w->count * column;
    for (int64_t n = 0; n < shape->dim[0]; n++) {
        for (int64_t y = h->first; y < h->first + h->count; y++) {
            const size_t at = (size_t)(n * shape->dim[1] + y) * row;
            memcpy(to, from + at + (size_t)w->first * column, kept);
            to += kept;
        }
    }
}

static enum ifd_code crop_conv(struct ifd_graph *graph, struct ifd_node *conv,
                               uint32_t *ret_changes, struct ifd_err *err)
{
    const struct ifd_value *filter = &graph->value[conv->input[1]];
    const struct ifd_shape *in = &graph->value[conv->input[0]].desc.shape;
    struct ifd_desc desc = filter->desc;
    struct ifd_window window;
    struct span h, w;
    size_t elements = 0, bytes = 0;
    if (!filter->is_constant || !ifd_shape_elements(&desc.shape, &elements) ||
        filter->data.size != elements * ifd_dtype_bytes(desc.dtype) ||
        !crop_window(in, &desc.shape, &((const struct ifd_conv2d_attrs *)conv->attrs)->window,
                     &window, &h, &w)) {
        return IFD_OK;
    }
    desc.shape.dim[1] = h.count;
    desc.shape.dim[2] = w.count;
    if (!ifd_desc_bytes(&desc, &bytes) || !ifd_rewrite_has_room(graph, bytes)) {
        return IFD_OK;
    }
    struct ifd_conv2d_attrs *attrs = ifd_rewrite_own_attrs(graph, conv);
    if (!attrs) {
        return ifd_arena_fail(graph->arena, sizeof(*attrs), err);
    }
    const struct ifd_shape whole = filter->desc.shape;
    const uint8_t *from = filter->data.data;
    void *data = NULL;
    const enum ifd_code code =
        ifd_rewrite_add_constant(graph, conv->input[1], &desc, &data, &conv->input[1], err);
    if (code == IFD_OK) {
        copy_filter(data, from, &whole, ifd_dtype_bytes(desc.dtype), &h, &w);
        attrs->window = window;
        (*ret_changes)++;
    }
    return code;
}

enum ifd_code ifd_pass_crop_filter(struct ifd_graph *graph, struct ifd_arena *scratch,
                                   uint32_t *ret_changes, struct ifd_err *err)
{
    (void)scratch;
    *ret_changes = 0;
    enum ifd_code code = IFD_OK;
    for (uint32_t n = 0; code == IFD_OK && n < graph->node_count; n++) {
        struct ifd_node *node = &graph->node[n];
        if (node->op == IFD_OP_CONV2D || node->op == IFD_OP_DEPTHWISE_CONV2D) {
            code = crop_conv(graph, node, ret_changes, err);
        }
    }
    return code;
}

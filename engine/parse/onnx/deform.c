/* DeformConv: each tap of the filter reads the image at a place of its own. All taps of a group of
 * offsets are read at once, then weighed as a fully connected layer. */
#include <math.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/window.h"

#define GROUPS_MAX 256

static struct ifd_shape shape_of(const struct ifd_builder *b, uint32_t value)
{
    return ifd_build_desc(b, value)->shape;
}

struct deform {
    struct ifd_onnx_call *call;
    struct ifd_builder *b;
    struct ifd_onnx_window w;
    int64_t n, c, ih, iw, oh, ow, taps, filters, groups, offset_groups;
};

static uint32_t joined(struct ifd_builder *b, const uint32_t *x, int64_t count, uint32_t axis)
{
    const struct ifd_axis_attrs attrs = {.axis = (int32_t)axis};
    return count == 1 ? x[0] : ifd_build_node(b, IFD_OP_CONCAT, x, (uint32_t)count, NULL, &attrs);
}

static bool describe(struct ifd_onnx_call *call, struct deform *d)
{
    struct ifd_builder *b = call->b;
    const struct ifd_shape x = shape_of(b, call->input[0]), f = shape_of(b, call->input[1]),
                           o = shape_of(b, call->input[2]);
    const uint32_t mask = ifd_onnx_input(call, 4);
    *d = (struct deform){.call = call,
                         .b = b,
                         .groups = ifd_onnx_int(call, "group", 1),
                         .offset_groups = ifd_onnx_int(call, "offset_group", 1)};
    bool fits = x.rank == 4 && f.rank == 4 && o.rank == 4 && d->groups > 0 &&
                d->groups <= GROUPS_MAX && d->offset_groups > 0 && d->offset_groups <= GROUPS_MAX &&
                x.dim[1] == f.dim[1] * d->groups && f.dim[0] % d->groups == 0 &&
                x.dim[1] % d->offset_groups == 0 && x.dim[0] == o.dim[0] && x.dim[2] > 0 &&
                x.dim[3] > 0;
    if (fits) {
        d->w = ifd_onnx_window(call, 2, x.dim + 2, f.dim + 2);
        d->n = x.dim[0];
        d->c = x.dim[1];
        d->ih = x.dim[2];
        d->iw = x.dim[3];
        d->oh = o.dim[2];
        d->ow = o.dim[3];
        d->filters = f.dim[0];
        fits = !__builtin_mul_overflow(f.dim[2], f.dim[3], &d->taps) && d->taps > 0 && d->n > 0 &&
               d->oh > 0 && d->ow > 0 && d->taps <= INT32_MAX / 2 / GROUPS_MAX &&
               o.dim[1] == 2 * d->taps * d->offset_groups && d->w.kernel[0] == f.dim[2] &&
               d->w.kernel[1] == f.dim[3];
    }
    if (fits && mask != IFD_NONE) {
        const struct ifd_shape m = shape_of(b, mask);
        fits = m.rank == 4 && m.dim[0] == d->n && m.dim[1] == d->taps * d->offset_groups &&
               m.dim[2] == d->oh && m.dim[3] == d->ow;
    }
    if (!fits || b->code != IFD_OK) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "input %s, filter %s, offsets %s", ifd_shape_text(&x).s,
                       ifd_shape_text(&f).s, ifd_shape_text(&o).s);
        return false;
    }
    return true;
}

/* Where the taps lie without offsets, along direction i: [taps, oh, 1] or [taps, 1, ow]. */
static uint32_t places(const struct deform *d, uint32_t i)
{
    const int64_t count = i == 0 ? d->oh : d->ow;
    const int64_t dim[3] = {d->taps, i == 0 ? count : 1, i == 0 ? 1 : count};
    float *at = ifd_arena_take_array(d->b->graph->arena, (size_t)(d->taps * count), sizeof(*at));
    if (!at) {
        d->b->code =
            ifd_arena_fail(d->b->graph->arena, (size_t)(d->taps * count) * sizeof(*at), d->b->err);
        return IFD_NONE;
    }
    for (int64_t k = 0; k < d->taps; k++) {
        const int64_t tap = i == 0 ? k / d->w.kernel[1] : k % d->w.kernel[1];
        for (int64_t o = 0; o < count; o++) {
            at[k * count + o] =
                (float)(o * d->w.stride[i] + tap * d->w.dilation[i] - d->w.before[i]);
        }
    }
    return ifd_onnx_floats(d->b, at, dim, 3);
}

/* Offsets of a group along direction i, as grid_sample counts: -1 and 1 are the image's ends. */
static uint32_t coordinates(const struct deform *d, uint32_t offsets, uint32_t i)
{
    struct ifd_builder *b = d->b;
    const int64_t size = i == 0 ? d->ih : d->iw;
    const int64_t flat[4] = {d->n, d->taps, d->oh, d->ow};
    const int64_t grid[4] = {d->n, d->taps * d->oh, d->ow, 1};
    const uint32_t own = ifd_build_reshape(b, ifd_build_cut(b, offsets, 2, i, 1), flat, 4);
    const uint32_t pixel = ifd_build_binary(b, IFD_OP_ADD, own, places(d, i));
    const uint32_t scaled = ifd_build_with(b, IFD_OP_MUL, pixel, 2.0 / (double)size);
    return ifd_build_reshape(b, ifd_build_with(b, IFD_OP_ADD, scaled, 1.0 / (double)size - 1), grid,
                             4);
}

/* What the taps of offset group g read, [n, taps * oh, ow, channels of the group]. */
static uint32_t samples(const struct deform *d, uint32_t pixels, int64_t g)
{
    struct ifd_builder *b = d->b;
    const struct ifd_grid_sample_attrs attrs = {.mode = IFD_SAMPLE_LINEAR,
                                                .padding = IFD_SAMPLE_ZEROS};
    const int64_t channels = d->c / d->offset_groups;
    const int64_t apart[5] = {d->n, d->taps, 2, d->oh, d->ow};
    const uint32_t offsets = ifd_build_reshape(
        b, ifd_build_cut(b, d->call->input[2], 1, g * 2 * d->taps, 2 * d->taps), apart, 5);
    const uint32_t xy[2] = {coordinates(d, offsets, 1), coordinates(d, offsets, 0)};
    const uint32_t input[2] = {ifd_build_cut(b, pixels, 3, g * channels, channels),
                               joined(b, xy, 2, 3)};
    const uint32_t y = ifd_build_node(b, IFD_OP_GRID_SAMPLE, input, 2, NULL, &attrs);
    const uint32_t mask = ifd_onnx_input(d->call, 4);
    if (mask == IFD_NONE) {
        return y;
    }
    const int64_t grid[4] = {d->n, d->taps * d->oh, d->ow, 1};
    const uint32_t own = ifd_build_cut(b, mask, 1, g * d->taps, d->taps);
    return ifd_build_binary(b, IFD_OP_MUL, y, ifd_build_reshape(b, own, grid, 4));
}

/* Filters of group g on [n, oh, ow, taps, channels]. */
static uint32_t weighed(const struct deform *d, uint32_t read, int64_t g)
{
    struct ifd_builder *b = d->b;
    const int64_t channels = d->c / d->groups, filters = d->filters / d->groups;
    const int64_t rows[4] = {d->n, d->oh, d->ow, d->taps * channels};
    const int64_t apart[3] = {filters, channels, d->taps}, flat[2] = {filters, d->taps * channels};
    const uint32_t x =
        ifd_build_reshape(b, ifd_build_cut(b, read, 4, g * channels, channels), rows, 4);
    const uint32_t own = ifd_build_cut(b, d->call->input[1], 0, g * filters, filters);
    const uint32_t w = ifd_build_swap(b, ifd_build_reshape(b, own, apart, 3), 1, 2);
    return ifd_build_layer(b, x, ifd_build_reshape(b, w, flat, 2), IFD_NONE);
}

void ifd_onnx_deform_conv(struct ifd_onnx_call *call, int unused)
{
    (void)unused;
    struct ifd_builder *b = call->b;
    struct deform d;
    uint32_t part[GROUPS_MAX];
    if (!describe(call, &d)) {
        return;
    }
    const uint32_t pixels = ifd_build_to_nhwc(b, call->input[0]);
    for (int64_t g = 0; g < d.offset_groups; g++) {
        part[g] = samples(&d, pixels, g);
    }
    const int64_t apart[5] = {d.n, d.taps, d.oh, d.ow, d.c};
    const uint32_t order[5] = {0, 2, 3, 1, 4};
    const uint32_t read = ifd_build_transpose(
        b, ifd_build_reshape(b, joined(b, part, d.offset_groups, 3), apart, 5), order);
    for (int64_t g = 0; g < d.groups; g++) {
        part[g] = weighed(&d, read, g);
    }
    uint32_t y = joined(b, part, d.groups, 3);
    if (ifd_onnx_input(call, 3) != IFD_NONE) {
        y = ifd_build_binary(b, IFD_OP_ADD, y, call->input[3]);
    }
    call->output[0] = ifd_build_to_nchw(b, y);
}

/* Transposes of a graph under construction: constants are transposed once, and there and back is no
 * node. */
#include "engine/build/builder.h"
#include "engine/ir/shape.h"

/* Smaller ones are not worth the search. */
#define TURNED_BYTES_MIN 1024

/* The same elements in the same order: one content may have several types and shapes. */
static bool is_turned(const struct ifd_turned *t, const struct ifd_value *x,
                      const struct ifd_transpose_attrs *attrs)
{
    bool is_same = t->source == x->data.data && t->content.size == x->data.size &&
                   t->desc.dtype == x->desc.dtype && t->desc.shape.rank == x->desc.shape.rank;
    for (uint32_t i = 0; is_same && i < attrs->perm.count; i++) {
        is_same = t->attrs.perm.value[i] == attrs->perm.value[i] &&
                  t->desc.shape.dim[i] == x->desc.shape.dim[attrs->perm.value[i]];
    }
    return is_same;
}

static uint32_t transpose_once(struct ifd_builder *b, uint32_t x,
                               const struct ifd_transpose_attrs *attrs)
{
    const struct ifd_value before = b->graph->value[x];
    for (uint32_t i = 0; i < IFD_BUILDER_TURNED; i++) {
        if (is_turned(&b->turned[i], &before, attrs)) {
            return ifd_build_constant(b, &b->turned[i].desc, b->turned[i].content, IFD_TENSOR_PAD);
        }
    }
    const uint32_t y = ifd_build_node(b, IFD_OP_TRANSPOSE, &x, 1, NULL, attrs);
    const struct ifd_bytes content = ifd_build_content(b, y);
    if (content.size > 0) {
        b->turned[b->turned_next++ % IFD_BUILDER_TURNED] =
            (struct ifd_turned){.source = before.data.data,
                                .attrs = *attrs,
                                .desc = *ifd_build_desc(b, y),
                                .content = content};
    }
    return y;
}

uint32_t ifd_build_transpose(struct ifd_builder *b, uint32_t x, const uint32_t *perm)
{
    struct ifd_transpose_attrs attrs = {.perm = {.count = ifd_build_desc(b, x)->shape.rank}};
    bool moves = false;
    for (uint32_t i = 0; i < attrs.perm.count; i++) {
        attrs.perm.value[i] = perm[i];
        moves = moves || perm[i] != i;
    }
    if (moves && ifd_build_content(b, x).size >= TURNED_BYTES_MIN &&
        ifd_build_desc(b, x)->quant.count == 0) {
        return transpose_once(b, x, &attrs);
    }
    return moves ? ifd_build_node(b, IFD_OP_TRANSPOSE, &x, 1, NULL, &attrs) : x;
}

uint32_t ifd_build_swap(struct ifd_builder *b, uint32_t x, uint32_t i, uint32_t k)
{
    uint32_t perm[IFD_MAX_RANK];
    for (uint32_t d = 0; d < IFD_MAX_RANK; d++) {
        perm[d] = d == i ? k : d == k ? i : d;
    }
    return ifd_build_transpose(b, x, perm);
}

static uint32_t turn_pictures(struct ifd_builder *b, uint32_t x, const uint32_t perm[4])
{
    const struct ifd_shape *shape = &ifd_build_desc(b, x)->shape;
    if (b->code == IFD_OK && shape->rank != 4) {
        return ifd_build_fail(b, IFD_INVALID, "a tensor of shape %s, expected 4 dimensions",
                              ifd_shape_text(shape).s);
    }
    return ifd_build_transpose(b, x, perm);
}

uint32_t ifd_build_to_nhwc(struct ifd_builder *b, uint32_t x)
{
    if (x < b->nhwc_count && b->nhwc[x] != IFD_NONE) {
        return b->nhwc[x];
    }
    return turn_pictures(b, x, (const uint32_t[]){0, 2, 3, 1});
}

static void remember(struct ifd_builder *b, uint32_t nchw, uint32_t nhwc)
{
    if (nchw >= b->nhwc_count) {
        const uint32_t count = nchw + nchw / 2 + 16;
        uint32_t *grown = ifd_arena_take_array(b->graph->arena, count, sizeof(*grown));
        if (!grown) {
            b->code = ifd_arena_fail(b->graph->arena, count * sizeof(*grown), b->err);
            return;
        }
        for (uint32_t i = 0; i < count; i++) {
            grown[i] = i < b->nhwc_count ? b->nhwc[i] : IFD_NONE;
        }
        b->nhwc = grown;
        b->nhwc_count = count;
    }
    b->nhwc[nchw] = nhwc;
}

uint32_t ifd_build_to_nchw(struct ifd_builder *b, uint32_t x)
{
    const uint32_t nchw = turn_pictures(b, x, (const uint32_t[]){0, 3, 1, 2});
    if (nchw != IFD_NONE && nchw != x) {
        remember(b, nchw, x);
    }
    return nchw;
}

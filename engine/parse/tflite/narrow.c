/* Constants of 2 or 4 bits become bytes; where blocks of them have a scale each, floats. */
#include "engine/ir/shape.h"
#include "engine/parse/tflite/tflite_build.h"
#include "engine/tensor/half.h"

/* A constant that is unpacked. check.c checked the size of its content. */
struct narrow {
    const uint8_t *packed;
    uint32_t bits;
    bool is_signed;
    size_t count;
    const uint16_t *scale; /* of each block, f16; NULL: no blocks */
    size_t block;
};

static int32_t number_at(const struct narrow *n, size_t i)
{
    const uint32_t shift = n->bits == 2 ? 2 : 1; /* four in a byte, or two */
    const uint32_t mask = (1U << n->bits) - 1, place = (uint32_t)i & ((1U << shift) - 1);
    const int32_t sign = n->is_signed ? 1 << (n->bits - 1) : 0;
    const int32_t number = (int32_t)(n->packed[i >> shift] >> (place * n->bits) & mask);
    return (number ^ sign) - sign;
}

static void to_bytes(const struct narrow *n, uint8_t *ret)
{
    for (size_t i = 0; i < n->count; i++) {
        ret[i] = (uint8_t)number_at(n, i);
    }
}

static void to_floats(const struct narrow *n, float *ret)
{
    for (size_t first = 0, block = 0; first < n->count; first += n->block, block++) {
        const float scale = ifd_f32_from_f16(n->scale[block]);
        for (size_t i = first; i < first + n->block; i++) {
            ret[i] = (float)number_at(n, i) * scale;
        }
    }
}

/* As LiteRT has them: signed, blocks along the last dimension, scales of f16 without zero points
 * (a list of these in the file is not read). */
static enum ifd_code find_scales(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                                 const struct ifd_shape *shape, struct narrow *n)
{
    struct ifd_bytes content = {0};
    enum ifd_dtype dtype = IFD_DTYPE_COUNT;
    const bool is_listed = t->block_scales >= 0 && (uint32_t)t->block_scales < b->g->tensor_count;
    const int64_t last = shape->rank > 0 ? shape->dim[shape->rank - 1] : 0;
    if (!n->is_signed || n->bits == 0) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "tensor " NAME_FORMAT " of type %d has a quantization of blocks, which is "
                        "supported of signed numbers of 2 and 4 bits",
                        t->name, t->type);
    }
    if (t->block_size < 1 || last % t->block_size != 0) {
        return ifd_fail(b->err, IFD_CORRUPT, "tensor " NAME_FORMAT " of %s has blocks of %d",
                        t->name, ifd_shape_text(shape).s, t->block_size);
    }
    n->block = (size_t)t->block_size;
    if (!is_listed || !ifd_tflite_has_content(b, (uint32_t)t->block_scales, &content) ||
        !ifd_tflite_dtype(b->g->tensor[t->block_scales].type, &dtype) || dtype != IFD_F16 ||
        content.size != n->count / n->block * sizeof(*n->scale)) {
        return ifd_fail(b->err, IFD_UNSUPPORTED,
                        "the scales of tensor " NAME_FORMAT " are not %zu constant numbers of f16",
                        t->name, n->count / n->block);
    }
    const enum ifd_code code = ifd_tflite_align_content(b, b->g->tensor[t->block_scales].buffer,
                                                        sizeof(*n->scale), content, &content);
    n->scale = (const void *)content.data;
    return code;
}

enum ifd_code ifd_tflite_widen(struct ifd_tflite_build *b, const struct ifd_tflite_tensor *t,
                               const struct ifd_desc *desc, struct ifd_bytes *content)
{
    enum ifd_dtype dtype = desc->dtype;
    struct ifd_tflite_wide *wide = &b->wide[t->buffer];
    struct narrow n = {.packed = content->data, .bits = ifd_tflite_narrow_bits(t->type)};
    size_t bytes = 0;
    if (!ifd_desc_bytes(desc, &bytes) || !ifd_desc_fits(desc, b->options->limits->tensor_bytes)) {
        return ifd_fail(b->err, IFD_TOO_LARGE, "tensor " NAME_FORMAT " of %s %s", t->name,
                        ifd_dtype_name(desc->dtype), ifd_shape_text(&desc->shape).s);
    }
    n.count = bytes / ifd_dtype_bytes(desc->dtype);
    n.is_signed = ifd_tflite_dtype(t->type, &dtype) && dtype == IFD_S8;
    enum ifd_code code = t->has_blocks ? find_scales(b, t, &desc->shape, &n) : IFD_OK;
    if (code != IFD_OK) {
        return code;
    }
    if (wide->content.size == bytes && wide->type == t->type && wide->scale == n.scale &&
        wide->block == n.block) {
        *content = wide->content;
        return IFD_OK;
    }
    if (content->size > b->copy_bytes_left) {
        return ifd_tflite_fail_overlap(b);
    }
    b->copy_bytes_left -= content->size;
    void *room = ifd_arena_take_tensor(b->graph->arena, bytes);
    if (!room) {
        return ifd_arena_fail(b->graph->arena, bytes, b->err);
    }
    if (n.scale) {
        to_floats(&n, room);
    } else {
        to_bytes(&n, room);
    }
    *content = (struct ifd_bytes){.data = room, .size = bytes};
    *wide = (struct ifd_tflite_wide){
        .content = *content, .type = t->type, .scale = n.scale, .block = n.block};
    return IFD_OK;
}

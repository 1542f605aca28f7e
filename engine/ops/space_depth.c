/* Blocks of pixels as channels, and back. Channels of a block lie row by row: [n,h,w,c]. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

static enum ifd_code block_infer(const struct ifd_op_def *def, bool to_depth,
                                 const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const int64_t block = ((const struct ifd_space_depth_attrs *)in->attrs)->block;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_rank(def, in, 0, 4, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[0].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    struct ifd_shape shape = in->input[0].desc->shape;
    const bool divides = to_depth ? shape.dim[1] % block == 0 && shape.dim[2] % block == 0
                                  : shape.dim[3] % block == 0 && shape.dim[3] / block % block == 0;
    if (!divides) {
        return ifd_fail(err, IFD_INVALID, "%s: shape %s does not split into blocks of %lld",
                        def->name, ifd_shape_text(&shape).s, (long long)block);
    }
    bool fits = true;
    if (to_depth) {
        shape.dim[1] /= block;
        shape.dim[2] /= block;
        fits = ifd_dim_mul(shape.dim[3], block, &shape.dim[3]) &&
               ifd_dim_mul(shape.dim[3], block, &shape.dim[3]);
    } else {
        shape.dim[3] /= block * block;
        fits = ifd_dim_mul(shape.dim[1], block, &shape.dim[1]) &&
               ifd_dim_mul(shape.dim[2], block, &shape.dim[2]);
    }
    return fits ? ifd_infer_output(def, output, 0, &shape, err)
                : ifd_fail(err, IFD_TOO_LARGE, "%s: blocks of %lld are too large", def->name,
                           (long long)block);
}

/* Copies every pixel of the tensor with more pixels from or to its block. */
static void copy_blocks(const struct ifd_ref_call *call, const struct ifd_shape *fine,
                        const struct ifd_shape *coarse, bool to_depth)
{
    const int64_t block = ((const struct ifd_space_depth_attrs *)call->attrs)->block;
    const size_t bytes = ifd_dtype_bytes(call->in[0]->dtype);
    const int64_t depth = fine->dim[3];
    const int64_t pixels = ifd_ref_elements(call->out[0]) > 0 ? ifd_ref_product(fine, 0, 3) : 0;
    for (int64_t i = 0; i < pixels; i++) {
        const int64_t x = i % fine->dim[2];
        const int64_t y = i / fine->dim[2] % fine->dim[1];
        const int64_t n = i / fine->dim[2] / fine->dim[1];
        const int64_t pixel = (n * coarse->dim[1] + y / block) * coarse->dim[2] + x / block;
        const int64_t at = pixel * coarse->dim[3] + (y % block * block + x % block) * depth;
        ifd_ref_copy_run(bytes, call->output[0], (size_t)(to_depth ? at : i * depth),
                         call->input[0], (size_t)(to_depth ? i * depth : at), (size_t)depth);
    }
}

static const struct ifd_attr_def space_depth_attrs[] = {
    {"block", IFD_ATTR_INT, offsetof(struct ifd_space_depth_attrs, block), 1, 1, 46340},
};

#define DEFINE(op, to_depth, fine, coarse)                                                         \
    extern const struct ifd_op_def ifd_op_##op;                                                    \
    static enum ifd_code op##_infer(const struct ifd_infer *in, struct ifd_desc *output,           \
                                    struct ifd_err *err)                                           \
    {                                                                                              \
        return block_infer(&ifd_op_##op, to_depth, in, output, err);                               \
    }                                                                                              \
    static enum ifd_code op##_ref(const struct ifd_ref_call *call, struct ifd_err *err)            \
    {                                                                                              \
        (void)err;                                                                                 \
        copy_blocks(call, &call->fine[0]->shape, &call->coarse[0]->shape, to_depth);               \
        return IFD_OK;                                                                             \
    }                                                                                              \
    const struct ifd_op_def ifd_op_##op = {                                                        \
        .name = #op,                                                                               \
        .min_inputs = 1,                                                                           \
        .max_inputs = 1,                                                                           \
        .outputs = 1,                                                                              \
        .attrs = space_depth_attrs,                                                                \
        .attr_count = 1,                                                                           \
        .attrs_bytes = sizeof(struct ifd_space_depth_attrs),                                       \
        .dtypes = IFD_DTYPES_MOVE,                                                                 \
        .batch = IFD_BATCH_SAMPLE,                                                                 \
        .infer = op##_infer,                                                                       \
        .ref = op##_ref,                                                                           \
        .moves = true,                                                                             \
    };

DEFINE(space_to_depth, true, in, out)
DEFINE(depth_to_space, false, out, in)

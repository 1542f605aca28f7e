/* And, or, exclusive or of the bits of two tensors, and their shift to the right, element by
 * element with broadcasting. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_bitwise_and, ifd_op_bitwise_or, ifd_op_bitwise_xor,
    ifd_op_right_shift;

#define TYPES_BITS                                                                                 \
    (IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_U16) | IFD_BIT(IFD_S16) | IFD_BIT(IFD_U32) |  \
     IFD_BIT(IFD_S32) | IFD_BIT(IFD_U64) | IFD_BIT(IFD_S64))

static enum ifd_code bitwise_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                   struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(in->def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(in->def, in, 1, IFD_BIT(in->input[0].desc->dtype), err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(in->def, output, 0, in->input[0].desc->dtype, err);
    }
    return code == IFD_OK ? ifd_infer_broadcast(in->def, in, output, err) : code;
}

static uint8_t combined(enum ifd_op op, uint8_t a, uint8_t b)
{
    return (uint8_t)(op == IFD_OP_BITWISE_AND ? a & b : op == IFD_OP_BITWISE_OR ? a | b : a ^ b);
}

static void combine(const struct ifd_ref_call *call, enum ifd_op op)
{
    const size_t bytes = ifd_dtype_bytes(call->out[0]->dtype);
    const uint8_t *a = call->input[0], *b = call->input[1];
    uint8_t *y = call->output[0];
    struct ifd_walk walk;
    ifd_walk_init(&walk, &call->out[0]->shape);
    ifd_walk_broadcast(&walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(&walk, 1, &call->in[1]->shape);
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        for (size_t k = 0; k < bytes; k++) {
            y[walk.done * bytes + k] = combined(op, a[(size_t)walk.offset[0] * bytes + k],
                                                b[(size_t)walk.offset[1] * bytes + k]);
        }
    }
}

/* By at least 0 and at most all bits but one; negative numbers keep their sign. */
#define SHIFT(type)                                                                                \
    do {                                                                                           \
        const type x = ((const type *)call->input[0])[walk.offset[0]];                             \
        const type given = ((const type *)call->input[1])[walk.offset[1]];                         \
        const type most = (type)(8 * sizeof(type) - 1);                                            \
        const type count = given > most ? most : given;                                            \
        ((type *)call->output[0])[walk.done] = (type)(x >> (count > 0 ? count : 0));               \
    } while (0)

static enum ifd_code right_shift_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    struct ifd_walk walk;
    ifd_walk_init(&walk, &call->out[0]->shape);
    ifd_walk_broadcast(&walk, 0, &call->in[0]->shape);
    ifd_walk_broadcast(&walk, 1, &call->in[1]->shape);
    for (; walk.left > 0; ifd_walk_next(&walk)) {
        switch ((int)call->out[0]->dtype) {
        case IFD_U8:
            SHIFT(uint8_t);
            break;
        case IFD_S8:
            SHIFT(int8_t);
            break;
        case IFD_U16:
            SHIFT(uint16_t);
            break;
        case IFD_S16:
            SHIFT(int16_t);
            break;
        case IFD_U32:
            SHIFT(uint32_t);
            break;
        case IFD_S32:
            SHIFT(int32_t);
            break;
        case IFD_U64:
            SHIFT(uint64_t);
            break;
        default:
            SHIFT(int64_t);
            break;
        }
    }
    return IFD_OK;
}

#define DEFINITION(op)                                                                             \
    const struct ifd_op_def ifd_op_##op = {.name = #op,                                            \
                                           .min_inputs = 2,                                        \
                                           .max_inputs = 2,                                        \
                                           .outputs = 1,                                           \
                                           .dtypes = TYPES_BITS,                                   \
                                           .batch = IFD_BATCH_ELEMENTWISE,                         \
                                           .is_elementwise = true,                                 \
                                           .infer = bitwise_infer,                                 \
                                           .ref = op##_ref};

#define DEFINE(op, id)                                                                             \
    static enum ifd_code op##_ref(const struct ifd_ref_call *call, struct ifd_err *err)            \
    {                                                                                              \
        (void)err;                                                                                 \
        combine(call, id);                                                                         \
        return IFD_OK;                                                                             \
    }                                                                                              \
    DEFINITION(op)

DEFINE(bitwise_and, IFD_OP_BITWISE_AND)
DEFINE(bitwise_or, IFD_OP_BITWISE_OR)
DEFINE(bitwise_xor, IFD_OP_BITWISE_XOR)
DEFINITION(right_shift)

/* hash: MurmurHash3 (Appleby) of 32 bits, of texts and of numbers. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

#include <string.h>

extern const struct ifd_op_def ifd_op_hash;

static enum ifd_code hash_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                struct ifd_err *err)
{
    enum ifd_code code = ifd_infer_begin(&ifd_op_hash, in, err);
    if (code == IFD_OK && output->dtype != IFD_S32 && output->dtype != IFD_U32) {
        return ifd_fail(err, IFD_INVALID, "hash: output 0 has type %s, expected s32 or u32",
                        ifd_dtype_name(output->dtype));
    }
    return code == IFD_OK
               ? ifd_infer_output(&ifd_op_hash, output, 0, &in->input[0].desc->shape, err)
               : code;
}

static uint32_t turned(uint32_t x, uint32_t bits)
{
    return x << bits | x >> (32 - bits);
}

static uint32_t mixed(uint32_t block)
{
    return turned(block * 0xcc9e2d51u, 15) * 0x1b873593u;
}

/* The first byte of a block has its lowest bits. */
static uint32_t hash_of(const uint8_t *data, size_t size, uint32_t seed)
{
    uint32_t hash = seed, rest = 0;
    const size_t whole = size / 4 * 4;
    for (size_t i = 0; i < whole; i += 4) {
        const uint32_t block = (uint32_t)data[i] | (uint32_t)data[i + 1] << 8 |
                               (uint32_t)data[i + 2] << 16 | (uint32_t)data[i + 3] << 24;
        hash = turned(hash ^ mixed(block), 13) * 5 + 0xe6546b64u;
    }
    for (size_t i = whole; i < size; i++) {
        rest |= (uint32_t)data[i] << (i - whole) * 8;
    }
    hash ^= mixed(rest);
    hash ^= (uint32_t)size;
    hash = (hash ^ hash >> 16) * 0x85ebca6bu;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
    return hash ^ hash >> 16;
}

static enum ifd_code hash_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const struct ifd_hash_attrs *attrs = call->attrs;
    const bool are_texts = call->in[0]->dtype == IFD_STR;
    const size_t count = ifd_ref_elements(call->in[0]);
    for (size_t i = 0; i < count; i++) {
        const struct ifd_str *text = are_texts ? (const struct ifd_str *)call->input[0] + i : NULL;
        const uint8_t *number = (const uint8_t *)call->input[0] + i * sizeof(uint32_t);
        const uint32_t hash =
            text ? hash_of((const uint8_t *)text->data, text->size, (uint32_t)attrs->seed)
                 : hash_of(number, sizeof(uint32_t), (uint32_t)attrs->seed);
        memcpy((uint8_t *)call->output[0] + i * sizeof(hash), &hash, sizeof(hash));
    }
    return IFD_OK;
}

static const struct ifd_attr_def hash_attrs[] = {
    {"seed", IFD_ATTR_INT, offsetof(struct ifd_hash_attrs, seed), 0, INT32_MIN, INT32_MAX},
};

const struct ifd_op_def ifd_op_hash = {
    .name = "hash",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = hash_attrs,
    .attr_count = 1,
    .attrs_bytes = sizeof(struct ifd_hash_attrs),
    .dtypes = IFD_BIT(IFD_STR) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_U32),
    .infer = hash_infer,
    .ref = hash_ref,
};

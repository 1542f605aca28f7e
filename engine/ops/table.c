/* table: the element of a list that each number of 8 bits chooses. */
#include "engine/ops/infer_util.h"
#include "engine/ops/ref_util.h"

extern const struct ifd_op_def ifd_op_table;

#define TYPES (IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8))
#define BYTES 256

static enum ifd_code table_infer(const struct ifd_infer *in, struct ifd_desc *output,
                                 struct ifd_err *err)
{
    const struct ifd_op_def *def = &ifd_op_table;
    enum ifd_code code = ifd_infer_begin(def, in, err);
    if (code == IFD_OK) {
        code = ifd_infer_dtype(def, in, 1, TYPES, err);
    }
    if (code == IFD_OK) {
        code = ifd_infer_output_dtype(def, output, 0, in->input[1].desc->dtype, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    const struct ifd_shape *list = &in->input[1].desc->shape;
    if (list->rank != 1 || list->dim[0] != BYTES) {
        return ifd_fail(err, IFD_INVALID, "table: input 1 has shape %s, expected [%d]",
                        ifd_shape_text(list).s, BYTES);
    }
    return ifd_infer_output(def, output, 0, &in->input[0].desc->shape, err);
}

static enum ifd_code table_ref(const struct ifd_ref_call *call, struct ifd_err *err)
{
    (void)err;
    const uint8_t *x = call->input[0], *list = call->input[1];
    uint8_t *y = call->output[0];
    const size_t count = ifd_ref_elements(call->out[0]);
    for (size_t i = 0; i < count; i++) {
        y[i] = list[x[i]];
    }
    return IFD_OK;
}

static bool table_permute(void *attrs, const struct ifd_perm *perm)
{
    (void)attrs;
    (void)perm;
    return true;
}

const struct ifd_op_def ifd_op_table = {
    .name = "table",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .dtypes = TYPES,
    .batch = IFD_BATCH_SAMPLE,
    .can_alias = true,
    .infer = table_infer,
    .ref = table_ref,
    .permute = table_permute,
};

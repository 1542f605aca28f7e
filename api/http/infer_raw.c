/* A body that is one tensor. */
#include "api/http/infer.h"

#include "api/core/shape.h"
#include "api/http/tensor_binary.h"

/* The shape of a raw body: batch 1, at most one variable dimension, which the size determines. */
static enum ifd_code raw_shape(const struct ifd_model_desc *desc,
                               const struct ifd_tensor_info *input, size_t bytes,
                               struct ifd_shape *ret, struct ifd_err *err)
{
    struct ifd_shape shape = {0};
    size_t known = ifd_dtype_bytes(input->dtype);
    int64_t *unknown = NULL;
    if (desc->max_batch_size > 0) {
        shape.dim[shape.rank++] = 1;
    }
    for (uint32_t i = 0; i < input->shape.rank; i++) {
        int64_t dim = input->shape.dim[i];
        int64_t *at = &shape.dim[shape.rank++];
        *at = dim;
        if (dim == IFD_DIM_ANY && unknown) {
            return ifd_fail(err, IFD_INVALID,
                            "raw body: shape of input '%s' cannot be deduced, it has several "
                            "variable dimensions",
                            input->name);
        }
        if (dim == IFD_DIM_ANY) {
            unknown = at;
        } else if (!ifd_size_mul(known, (size_t)dim, &known)) {
            return ifd_fail(err, IFD_TOO_LARGE, "raw body: input '%s' has too many elements",
                            input->name);
        }
    }
    if (unknown && input->dtype == IFD_STR) {
        *unknown = 1;
    } else if (unknown) {
        if (known == 0 || bytes % known != 0) {
            return ifd_fail(err, IFD_INVALID,
                            "input byte size mismatch for input '%s' for model '%s'. Expected a "
                            "multiple of %zu, got %zu",
                            input->name, desc->name, known, bytes);
        }
        *unknown = (int64_t)(bytes / known);
    }
    *ret = shape;
    return IFD_OK;
}

enum ifd_code ifd_infer_parse_raw(struct ifd_http_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->core.desc;
    struct ifd_bytes body = infer->http->body;
    struct ifd_arena *arena = infer->core.call->arena;
    if (desc->input_count != 1) {
        return ifd_fail(err, IFD_INVALID,
                        "raw body: model '%s' has %u inputs, a raw body is for one input",
                        desc->name, desc->input_count);
    }
    const struct ifd_tensor_info *input = &desc->input[0];
    struct ifd_tensor *tensor = &infer->core.request.input[0];
    tensor->dtype = input->dtype;
    enum ifd_code code = raw_shape(desc, input, body.size, &tensor->shape, err);
    size_t count = 0;
    if (code != IFD_OK) {
        return code;
    }
    if (!ifd_shape_count(&tensor->shape, &count)) {
        return ifd_fail(err, IFD_TOO_LARGE, "raw body: input '%s' has too many elements",
                        input->name);
    }
    infer->binary_default = true;
    infer->core.has_input[0] = true;
    if (input->dtype != IFD_STR) {
        code = ifd_tensor_binary_read(body, IFD_TENSOR_PAD, input->name, desc->name, count, arena,
                                      tensor, err);
        return code == IFD_OK ? ifd_infer_check_inputs(&infer->core, err) : code;
    }
    struct ifd_str *text = ifd_arena_take(arena, sizeof(*text));
    if (count != 1 || !text) {
        return count != 1 ? ifd_fail(err, IFD_INVALID,
                                     "raw body: BYTES input '%s' must have one element, it has %zu",
                                     input->name, count)
                          : ifd_arena_fail(arena, sizeof(*text), err);
    }
    *text = (struct ifd_str){.data = (const char *)body.data, .size = body.size};
    tensor->data = text;
    tensor->bytes = tensor->capacity = sizeof(*text);
    return ifd_infer_check_inputs(&infer->core, err);
}

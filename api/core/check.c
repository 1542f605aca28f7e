/* Whether a decoded request can run: its inputs together, its outputs one by one. */
#include "api/core/infer.h"

#include <stdio.h>

/* The server has those that are hidden. */
static bool is_optional(const struct ifd_tensor_info *input)
{
    return input->optional || input->is_hidden;
}

void ifd_infer_list_names(const struct ifd_tensor_info *tensor, uint32_t count, char *text,
                          size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && at < size; i++) {
        if (!tensor[i].is_hidden) {
            at +=
                (size_t)snprintf(text + at, size - at, "%s'%s'", at > 0 ? "," : "", tensor[i].name);
        }
    }
}

/* Writes "'A','B'": the names of the inputs that are given, or of those that are required and
 * missing. */
static void list_inputs(const struct ifd_infer *infer, bool given, char *text, size_t size)
{
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < infer->desc->input_count && at < size; i++) {
        const struct ifd_tensor_info *input = &infer->desc->input[i];
        if (given ? infer->has_input[i] : !infer->has_input[i] && !is_optional(input)) {
            at += (size_t)snprintf(text + at, size - at, "%s'%s'", at > 0 ? "," : "", input->name);
        }
    }
}

static enum ifd_code check_required(const struct ifd_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->desc;
    uint32_t given = 0, missing = 0;
    for (uint32_t i = 0; i < desc->input_count; i++) {
        given += infer->has_input[i];
        missing += !infer->has_input[i] && !is_optional(&desc->input[i]);
    }
    if (missing > 0) {
        char got[64], wanted[64];
        list_inputs(infer, true, got, sizeof(got));
        list_inputs(infer, false, wanted, sizeof(wanted));
        return ifd_fail(err, IFD_INVALID,
                        "expected %u inputs but got %u inputs for model '%s'. Got input(s) [%s], "
                        "but missing required input(s) [%s]",
                        given + missing, given, desc->name, got, wanted);
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_check_inputs(struct ifd_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->desc;
    enum ifd_code code = check_required(infer, err);
    if (code != IFD_OK || desc->max_batch_size == 0) {
        return code;
    }
    int64_t batch = -1;
    for (uint32_t i = 0; i < desc->input_count; i++) {
        int64_t own = infer->request.input[i].shape.dim[0];
        if (!infer->has_input[i]) {
            continue;
        }
        if (batch >= 0 && own != batch) {
            return ifd_fail(err, IFD_INVALID,
                            "input '%s' batch size does not match other inputs for '%s': %lld "
                            "and %lld",
                            desc->input[i].name, desc->name, (long long)own, (long long)batch);
        }
        batch = own;
    }
    if (batch > desc->max_batch_size) {
        return ifd_fail(err, IFD_INVALID,
                        "inference request batch-size must be <= %d for '%s', got %lld",
                        desc->max_batch_size, desc->name, (long long)batch);
    }
    if (batch == 0) {
        return ifd_fail(err, IFD_INVALID, "inference request batch-size must be >= 1 for '%s'",
                        desc->name);
    }
    infer->request.batch = batch < 0 ? 1 : batch;
    return IFD_OK;
}

enum ifd_code ifd_infer_check_outputs(struct ifd_infer *infer, struct ifd_err *err)
{
    const struct ifd_model_desc *desc = infer->desc;
    bool any = false;
    for (uint32_t i = 0; i < desc->output_count; i++) {
        any |= infer->wanted[i];
    }
    for (uint32_t i = 0; i < desc->output_count; i++) {
        infer->wanted[i] |= !any && !desc->output[i].is_hidden;
        if (infer->wanted[i] && infer->top[i] > 0 && desc->output[i].dtype == IFD_STR) {
            return ifd_fail(err, IFD_INVALID, "output '%s' of %s cannot be classified",
                            desc->output[i].name, ifd_dtype_wire_name(desc->output[i].dtype));
        }
    }
    return IFD_OK;
}

/* Pictures as inputs: shapes, memory and the list of pictures to decode. */
#include "api/core/infer.h"

#include "api/core/shape.h"

bool ifd_input_takes_pictures(const struct ifd_tensor_info *input)
{
    return input->image.has_image && input->dtype != IFD_STR;
}

/* The shape of one picture in the input's layout. */
static struct ifd_shape picture_shape(const struct ifd_image_rule *rule)
{
    struct ifd_shape shape = {.rank = 3};
    shape.dim[0] = rule->channels_first ? rule->channels : rule->height;
    shape.dim[1] = rule->channels_first ? rule->height : rule->width;
    shape.dim[2] = rule->channels_first ? rule->width : rule->channels;
    return shape;
}

static bool same_shape(const struct ifd_shape *want, uint32_t skip, const struct ifd_shape *got)
{
    if (want->rank != got->rank + skip) {
        return false;
    }
    for (uint32_t i = 0; i < got->rank; i++) {
        int64_t dim = want->dim[i + skip];
        if (dim != IFD_DIM_ANY && dim != got->dim[i]) {
            return false;
        }
    }
    return true;
}

/* The whole shape for count pictures: [count, …] if the model or the server has a batch
 * dimension. */
static enum ifd_code input_shape(const struct ifd_infer *infer, const struct ifd_tensor_info *input,
                                 size_t count, const struct ifd_shape *picture,
                                 struct ifd_shape *ret, struct ifd_err *err)
{
    const struct ifd_shape *want = &input->shape;
    const bool batched = infer->desc->max_batch_size > 0;
    struct ifd_shape shape = {0};
    const bool has_lead = !batched && same_shape(want, 1, picture);
    if (!has_lead && !same_shape(want, 0, picture)) {
        return ifd_fail(err, IFD_INVALID, "input '%s' of model '%s' is not a picture of %u×%u×%u",
                        input->name, infer->desc->name, input->image.height, input->image.width,
                        input->image.channels);
    }
    const bool can_follow = has_lead && want->dim[0] == 1 && count <= infer->desc->picture_batch;
    if (has_lead && want->dim[0] != IFD_DIM_ANY && want->dim[0] != (int64_t)count && !can_follow) {
        const int64_t most = infer->desc->picture_batch;
        return ifd_fail(err, IFD_INVALID, "input '%s' takes %lld pictures, got %zu", input->name,
                        (long long)(most > 0 && want->dim[0] == 1 ? most : want->dim[0]), count);
    }
    if (!has_lead && !batched && count != 1) {
        return ifd_fail(err, IFD_INVALID, "input '%s' takes 1 picture, got %zu", input->name,
                        count);
    }
    if (has_lead || batched) {
        shape.dim[shape.rank++] = (int64_t)count;
    }
    for (uint32_t i = 0; i < picture->rank; i++) {
        shape.dim[shape.rank++] = picture->dim[i];
    }
    *ret = shape;
    return IFD_OK;
}

/* Checks the batch before memory is taken for it. */
static enum ifd_code check_count(const struct ifd_infer *infer, size_t count, struct ifd_err *err)
{
    const int32_t most = infer->desc->max_batch_size;
    if (count == 0) {
        return ifd_fail(err, IFD_INVALID, "no picture for model '%s'", infer->desc->name);
    }
    if (most > 0 && count > (size_t)most) {
        return ifd_fail(err, IFD_INVALID,
                        "inference request batch-size must be <= %d for '%s', got %zu", most,
                        infer->desc->name, count);
    }
    return IFD_OK;
}

enum ifd_code ifd_infer_add_pictures(struct ifd_infer *infer, int index,
                                     const struct ifd_picture_source *source, size_t count,
                                     struct ifd_err *err)
{
    struct ifd_arena *arena = infer->call->arena;
    const struct ifd_tensor_info *input = &infer->desc->input[index];
    struct ifd_tensor *tensor = &infer->request.input[index];
    const struct ifd_shape picture = picture_shape(&input->image);
    size_t sample_bytes = 0, bytes = 0, elements = 0;
    enum ifd_code code = check_count(infer, count, err);
    if (code == IFD_OK) {
        code = input_shape(infer, input, count, &picture, &tensor->shape, err);
    }
    if (code != IFD_OK) {
        return code;
    }
    if (!ifd_shape_count(&picture, &elements) ||
        !ifd_size_mul(elements, ifd_dtype_bytes(input->dtype), &sample_bytes) ||
        !ifd_size_mul(sample_bytes, count, &bytes)) {
        return ifd_fail(err, IFD_TOO_LARGE, "input '%s': pictures too large", input->name);
    }
    uint8_t *data = ifd_arena_take_tensor(arena, bytes);
    size_t total = infer->picture_count + count;
    struct ifd_picture *list = ifd_arena_take_array(arena, total, sizeof(*list));
    if (!data || !list) {
        return ifd_arena_fail(arena, bytes, err);
    }
    for (size_t i = 0; i < infer->picture_count; i++) {
        list[i] = infer->picture[i];
    }
    for (size_t i = 0; i < count; i++) {
        list[infer->picture_count + i] =
            (struct ifd_picture){.source = source[i],
                                 .input = input,
                                 .sample = {.dtype = input->dtype,
                                            .shape = picture,
                                            .data = data + i * sample_bytes,
                                            .bytes = sample_bytes,
                                            .capacity = sample_bytes}};
    }
    infer->picture = list;
    infer->picture_count = total;
    tensor->dtype = input->dtype;
    tensor->data = data;
    tensor->bytes = bytes;
    tensor->capacity = bytes + IFD_TENSOR_PAD;
    return IFD_OK;
}

int ifd_infer_picture_input(const struct ifd_infer *infer)
{
    const struct ifd_model_desc *desc = infer->desc;
    int index = -1;
    for (uint32_t i = 0; i < desc->input_count; i++) {
        if (ifd_input_takes_pictures(&desc->input[i]) && index < 0) {
            index = (int)i;
        } else if (!desc->input[i].optional && !desc->input[i].is_hidden) {
            return -1;
        }
    }
    return index;
}

/* Shapes of tensors that a config shows in another shape than the file's. */
#include "server/model/reshape.h"

#include "inferd/alloc.h"

/* Elements of a shape without its open dimensions; false if they cannot be counted. */
static bool count(const struct ifd_shape *shape, size_t *ret_elements, uint32_t *ret_open)
{
    size_t elements = 1;
    *ret_open = 0;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const bool is_open = shape->dim[d] == IFD_DIM_ANY;
        *ret_open += is_open;
        if (!is_open && !ifd_size_mul(elements, (size_t)shape->dim[d], &elements)) {
            return false;
        }
    }
    *ret_elements = elements;
    return true;
}

bool ifd_reshape_is_possible(const struct ifd_tensor_info *tensor)
{
    size_t outside = 0, inside = 0;
    uint32_t open_outside = 0, open_inside = 0;
    return count(&tensor->shape, &outside, &open_outside) &&
           count(&tensor->reshape, &inside, &open_inside) && outside == inside &&
           open_outside == open_inside;
}

/* Of the form from to the form to, if it is of the form from. */
static void turn(const struct ifd_shape *from, const struct ifd_shape *to, bool has_batch,
                 struct ifd_shape *shape)
{
    const uint32_t lead = has_batch ? 1 : 0;
    struct ifd_shape turned = {.rank = to->rank + lead, .dim = {shape->dim[0]}};
    uint32_t next = 0; /* of from */
    if (shape->rank != from->rank + lead || turned.rank > IFD_MAX_RANK) {
        return;
    }
    for (uint32_t d = 0; d < from->rank; d++) {
        if (from->dim[d] != IFD_DIM_ANY && from->dim[d] != shape->dim[d + lead]) {
            return;
        }
    }
    for (uint32_t d = 0; d < to->rank; d++) {
        turned.dim[d + lead] = to->dim[d];
        if (to->dim[d] == IFD_DIM_ANY) {
            while (from->dim[next] != IFD_DIM_ANY) {
                next++;
            }
            turned.dim[d + lead] = shape->dim[lead + next++];
        }
    }
    *shape = turned;
}

void ifd_reshape_to_file(const struct ifd_tensor_info *tensor, bool has_batch,
                         struct ifd_shape *shape)
{
    if (tensor->has_reshape) {
        turn(&tensor->shape, &tensor->reshape, has_batch, shape);
    }
}

struct ifd_tensor *ifd_reshape_inputs(const struct ifd_model_desc *desc,
                                      const struct ifd_tensor *input, struct ifd_arena *arena)
{
    struct ifd_tensor *turned = ifd_arena_take_array(arena, desc->input_count, sizeof(*turned));
    for (uint32_t i = 0; turned && i < desc->input_count; i++) {
        turned[i] = input[i];
        ifd_reshape_to_file(&desc->input[i], desc->max_batch_size > 0, &turned[i].shape);
    }
    return turned;
}

void ifd_reshape_outputs(const struct ifd_model_desc *desc, struct ifd_tensor *output)
{
    for (uint32_t i = 0; i < desc->output_count; i++) {
        const struct ifd_tensor_info *info = &desc->output[i];
        if (info->has_reshape) {
            turn(&info->reshape, &info->shape, desc->max_batch_size > 0, &output[i].shape);
        }
    }
}

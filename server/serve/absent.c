/* Values of the file in place of inputs that a request leaves out. */
#include "server/serve/absent.h"

#include <string.h>

/* A tensor that is there has data, or a dimension of 0. */
static bool is_absent(const struct ifd_tensor *input)
{
    return !input->data && input->shape.rank == 0;
}

const struct ifd_tensor *ifd_fill_absent(const struct ifd_model_info *info,
                                         const struct ifd_tensor *input, struct ifd_arena *arena)
{
    struct ifd_tensor *filled = NULL;
    for (uint32_t i = 0; i < info->input_count; i++) {
        const struct ifd_port *port = &info->input[i];
        if (!port->value.data || !is_absent(&input[i])) {
            continue;
        }
        if (!filled) {
            filled = ifd_arena_take_array(arena, info->input_count, sizeof(*filled));
            if (!filled) {
                return NULL;
            }
            memcpy(filled, input, info->input_count * sizeof(*filled));
        }
        filled[i] = (struct ifd_tensor){.dtype = port->desc.dtype,
                                        .shape = port->example,
                                        .data = (void *)(uintptr_t)port->value.data,
                                        .bytes = port->value.size,
                                        .capacity = port->value.size};
    }
    return filled ? filled : input;
}

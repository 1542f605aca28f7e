/** Tensors that a config shows to clients in another shape than the file's (`reshape`): the same
 *  elements in the same order. Thread: any. */
#ifndef INFERD_SERVER_MODEL_RESHAPE_H
#define INFERD_SERVER_MODEL_RESHAPE_H

#include "engine/base/arena.h"
#include "server/model/desc.h"

/** The shape of the file, of one sample like tensor->shape. */
static inline const struct ifd_shape *ifd_file_shape(const struct ifd_tensor_info *tensor)
{
    return tensor->has_reshape ? &tensor->reshape : &tensor->shape;
}

/** Whether both shapes of a reshape have as many elements, and as many open dimensions: the first
 *  of one is the first of the other, and so on. */
bool ifd_reshape_is_possible(const struct ifd_tensor_info *tensor);

/** Turns the shape of an input, as a client gives it, to the file's. The batch, if there is one,
 *  stays in front. A shape that the config does not describe stays. */
void ifd_reshape_to_file(const struct ifd_tensor_info *tensor, bool has_batch,
                         struct ifd_shape *shape);

/** The inputs of a request with the shapes of the file; their data is shared. NULL: no memory. */
struct ifd_tensor *ifd_reshape_inputs(const struct ifd_model_desc *desc,
                                      const struct ifd_tensor *input, struct ifd_arena *arena);

/** Turns the shapes of outputs from the file's to those of clients. */
void ifd_reshape_outputs(const struct ifd_model_desc *desc, struct ifd_tensor *output);

#endif

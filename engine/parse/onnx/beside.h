/** Constants that lie in files beside the model's. Thread: one at a time per object. */
#ifndef INFERD_ENGINE_PARSE_ONNX_BESIDE_H
#define INFERD_ENGINE_PARSE_ONNX_BESIDE_H

#include "engine/base/arena.h"
#include "engine/parse/onnx/onnx_reader.h"

/** The files that a model names so far. */
struct ifd_onnx_places {
    const struct ifd_onnx_beside *beside; /* NULL: none is given */
    struct ifd_onnx_place *place;         /* sorted by name */
    uint32_t count, capacity;
};

/** Sets the content of a tensor whose message (TensorProto) says that it lies outside; its location
 *  where the file is not given.
 *
 *  Memory: from arena. Errors: CORRUPT, TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_onnx_find_beside(struct ifd_onnx_places *places,
                                                 struct ifd_arena *arena, struct ifd_bytes message,
                                                 struct ifd_onnx_tensor *tensor,
                                                 struct ifd_err *err);

#endif

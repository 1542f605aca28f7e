/** An output of one sample, read as real numbers. Thread: any. */
#ifndef INFERD_SERVER_OBJECTS_VALUES_IMPL_H
#define INFERD_SERVER_OBJECTS_VALUES_IMPL_H

#include <math.h>

#include "engine/tensor/half.h"
#include "inferd/types.h"

struct ifd_values {
    const void *data;
    enum ifd_dtype dtype;
    float scale; /* of quantized types; 0: none */
    int32_t zero_point;
    struct ifd_shape shape; /* without the batch dimension */
    size_t count;
};

/* Stored integers up to 2^24 are exact. */
static inline float ifd_value_stored(const struct ifd_values *values, size_t i)
{
    switch (values->dtype) {
    case IFD_F32:
        return ((const float *)values->data)[i];
    case IFD_F64:
        return (float)((const double *)values->data)[i];
    case IFD_F16:
        return ifd_f32_from_f16(((const uint16_t *)values->data)[i]);
    case IFD_BF16:
        return ifd_f32_from_bits((uint32_t)((const uint16_t *)values->data)[i] << 16);
    case IFD_U8:
    case IFD_BOOL:
        return ((const uint8_t *)values->data)[i];
    case IFD_S8:
        return ((const int8_t *)values->data)[i];
    case IFD_S16:
        return ((const int16_t *)values->data)[i];
    case IFD_U16:
        return ((const uint16_t *)values->data)[i];
    case IFD_S32:
        return (float)((const int32_t *)values->data)[i];
    case IFD_U32:
        return (float)((const uint32_t *)values->data)[i];
    case IFD_S64:
        return (float)((const int64_t *)values->data)[i];
    case IFD_U64:
        return (float)((const uint64_t *)values->data)[i];
    case IFD_C64:
    case IFD_STR:
    case IFD_DTYPE_COUNT:
        break;
    }
    return 0;
}

static inline float ifd_value(const struct ifd_values *values, size_t i)
{
    const float stored = ifd_value_stored(values, i);
    return values->scale > 0 ? values->scale * (stored - (float)values->zero_point) : stored;
}

/** How stored scores become 0 … 1: X(id, name in a config). */
#define IFD_ACTIVATIONS(X)                                                                         \
    X(NONE, "none")                                                                                \
    X(SIGMOID, "sigmoid")                                                                          \
    X(SOFTMAX, "softmax")

#define X(id, name) IFD_ACTIVATION_##id,
enum ifd_activation { IFD_ACTIVATIONS(X) IFD_ACTIVATION_COUNT };
#undef X

static inline float ifd_sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/** A stored score of an output without softmax. */
static inline float ifd_score(enum ifd_activation activation, float x)
{
    return activation == IFD_ACTIVATION_SIGMOID ? ifd_sigmoid(x) : x;
}

#endif

/** Attribute rows of a window, for the definitions of convolutions and pools. */
#ifndef INFERD_ENGINE_OPS_WINDOW_ATTRS_H
#define INFERD_ENGINE_OPS_WINDOW_ATTRS_H

#include "inferd/op_attrs.h"

#include <stddef.h>

/** Rows of struct ifd_attr_def for the fields of type's member window; dilation_max: 1 for
 *  operators without dilation. */
#define IFD_WINDOW_ATTRS(type, dilation_max)                                                       \
    {"padding",     IFD_ATTR_ENUM, offsetof(type, window.padding),                                 \
     IFD_PAD_VALID, IFD_PAD_SAME,  IFD_PAD_EXPLICIT},                                              \
        {"stride_h", IFD_ATTR_INT, offsetof(type, window.stride_h), 1, 1, INT32_MAX},              \
        {"stride_w", IFD_ATTR_INT, offsetof(type, window.stride_w), 1, 1, INT32_MAX},              \
        {"dilation_h", IFD_ATTR_INT, offsetof(type, window.dilation_h), 1, 1, dilation_max},       \
        {"dilation_w", IFD_ATTR_INT, offsetof(type, window.dilation_w), 1, 1, dilation_max},       \
        {"pad_top", IFD_ATTR_INT, offsetof(type, window.pad_top), 0, 0, INT32_MAX},                \
        {"pad_bottom", IFD_ATTR_INT, offsetof(type, window.pad_bottom), 0, 0, INT32_MAX},          \
        {"pad_left", IFD_ATTR_INT, offsetof(type, window.pad_left), 0, 0, INT32_MAX},              \
    {                                                                                              \
        "pad_right", IFD_ATTR_INT, offsetof(type, window.pad_right), 0, 0, INT32_MAX               \
    }

/** Row for the rounding of 8-bit results. */
#define IFD_ROUNDS_EVEN_ATTR(type)                                                                 \
    {                                                                                              \
        "rounds_even", IFD_ATTR_BOOL, offsetof(type, rounds_even), 0, 0, 1                         \
    }

/** Row for the fused activation; shape rules refuse those beyond RELU6. */
#define IFD_ACTIVATION_ATTR(type)                                                                  \
    {                                                                                              \
        "activation", IFD_ATTR_ENUM, offsetof(type, activation), IFD_ACT_NONE, IFD_ACT_NONE,       \
            IFD_ACT_SIGN_BIT                                                                       \
    }

#endif

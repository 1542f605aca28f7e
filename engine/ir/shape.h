/** Rules of shapes: counts, strides, broadcasting, text. Thread: any. */
#ifndef INFERD_ENGINE_IR_SHAPE_H
#define INFERD_ENGINE_IR_SHAPE_H

#include "inferd/status.h"

/** Number of elements; false if a dimension is IFD_DIM_ANY or the product does not fit ptrdiff_t.
 *  Rank 0 gives 1. For that product, dimensions of 0 count as 1, so that strides do not overflow
 *  either. */
bool ifd_shape_elements(const struct ifd_shape *shape, size_t *ret_count) IFD_NODISCARD;

/** Bytes of a tensor; false as above. */
bool ifd_desc_bytes(const struct ifd_desc *desc, size_t *ret_bytes) IFD_NODISCARD;

/** Has the tensor at most limit_bytes, dimensions of 0 counted as 1? Loops over an empty tensor
 *  take time, too. */
bool ifd_desc_fits(const struct ifd_desc *desc, size_t limit_bytes) IFD_NODISCARD;

/** Same number of scales with the same values along the same axis, or none at all. */
bool ifd_quant_same(const struct ifd_quant *a, const struct ifd_quant *b);
/** Same type, shape and quantization. */
bool ifd_desc_equal(const struct ifd_desc *a, const struct ifd_desc *b);

bool ifd_shape_equal_except(const struct ifd_shape *a, const struct ifd_shape *b, uint32_t axis);

/** Row-major strides in elements; dimensions of 1 have one like any other. */
void ifd_shape_strides(const struct ifd_shape *shape, int64_t ret_strides[IFD_MAX_RANK]);

/** NumPy broadcasting of two shapes, aligned at the last dimension; false if they do not fit. */
bool ifd_shape_broadcast(const struct ifd_shape *a, const struct ifd_shape *b,
                         struct ifd_shape *ret) IFD_NODISCARD;

/** Axis in -rank … rank-1 to 0 … rank-1; false outside. */
bool ifd_shape_axis(const struct ifd_shape *shape, int64_t axis, uint32_t *ret_axis) IFD_NODISCARD;

/** "[1,224,224,3]" by value, for messages: ifd_shape_text(&s).s */
struct ifd_shape_text {
    char s[IFD_MAX_RANK * 21 + 3];
};
struct ifd_shape_text ifd_shape_text(const struct ifd_shape *shape);

/** How many there may be: "2", "2 or 3", "1 to 5"; "1 or more" if max is UINT32_MAX. */
struct ifd_count_text {
    char s[32];
};
struct ifd_count_text ifd_count_text(uint32_t min, uint32_t max);

#endif

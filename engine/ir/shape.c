/* Rules of shapes: counts, strides, broadcasting, text. */
#include "engine/ir/shape.h"

#include "inferd/alloc.h"

#include <stdio.h>

bool ifd_shape_elements(const struct ifd_shape *shape, size_t *ret_count)
{
    if (shape->rank > IFD_MAX_RANK) {
        return false;
    }
    size_t product = 1; /* of the dimensions that are not 0 */
    bool is_empty = false;
    for (uint32_t d = 0; d < shape->rank; d++) {
        const int64_t dim = shape->dim[d];
        if (dim < 0 || (uint64_t)dim > SIZE_MAX) {
            return false;
        }
        if (dim == 0) {
            is_empty = true;
        } else if (!ifd_size_mul(product, (size_t)dim, &product)) {
            return false;
        }
    }
    if (product > PTRDIFF_MAX) {
        return false;
    }
    *ret_count = is_empty ? 0 : product;
    return true;
}

bool ifd_desc_bytes(const struct ifd_desc *desc, size_t *ret_bytes)
{
    const size_t element_bytes = ifd_dtype_bytes(desc->dtype);
    size_t count = 0;
    size_t bytes = 0;
    if (element_bytes == 0 || !ifd_shape_elements(&desc->shape, &count) ||
        !ifd_size_mul(count, element_bytes, &bytes) || bytes > PTRDIFF_MAX) {
        return false;
    }
    *ret_bytes = bytes;
    return true;
}

bool ifd_desc_fits(const struct ifd_desc *desc, size_t limit_bytes)
{
    struct ifd_desc full = *desc;
    size_t bytes = 0;
    for (uint32_t d = 0; d < desc->shape.rank && d < IFD_MAX_RANK; d++) {
        full.shape.dim[d] += full.shape.dim[d] == 0;
    }
    return ifd_desc_bytes(&full, &bytes) && bytes <= limit_bytes;
}

bool ifd_quant_same(const struct ifd_quant *a, const struct ifd_quant *b)
{
    if (a->count != b->count || (a->count > 1 && a->axis != b->axis)) {
        return false;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->scale[i] != b->scale[i] || a->zero_point[i] != b->zero_point[i]) {
            return false;
        }
    }
    return true;
}

bool ifd_desc_equal(const struct ifd_desc *a, const struct ifd_desc *b)
{
    return a->dtype == b->dtype && ifd_shape_equal(&a->shape, &b->shape) &&
           ifd_quant_same(&a->quant, &b->quant);
}

bool ifd_shape_equal_except(const struct ifd_shape *a, const struct ifd_shape *b, uint32_t axis)
{
    if (a->rank != b->rank) {
        return false;
    }
    for (uint32_t d = 0; d < a->rank; d++) {
        if (d != axis && a->dim[d] != b->dim[d]) {
            return false;
        }
    }
    return true;
}

void ifd_shape_strides(const struct ifd_shape *shape, int64_t ret_strides[IFD_MAX_RANK])
{
    int64_t stride = 1;
    for (uint32_t d = shape->rank; d-- > 0;) {
        ret_strides[d] = stride;
        stride *= shape->dim[d] > 1 ? shape->dim[d] : 1;
    }
    for (uint32_t d = shape->rank; d < IFD_MAX_RANK; d++) {
        ret_strides[d] = 0;
    }
}

/* Dimension d of a shape that is right-aligned in a larger rank; 1 where it has none. */
static int64_t aligned_dim(const struct ifd_shape *shape, uint32_t rank, uint32_t d)
{
    const uint32_t missing = rank - shape->rank;
    return d < missing ? 1 : shape->dim[d - missing];
}

bool ifd_shape_broadcast(const struct ifd_shape *a, const struct ifd_shape *b,
                         struct ifd_shape *ret)
{
    struct ifd_shape shape = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (uint32_t d = 0; d < shape.rank; d++) {
        const int64_t left = aligned_dim(a, shape.rank, d);
        const int64_t right = aligned_dim(b, shape.rank, d);
        if (left != right && left != 1 && right != 1) {
            return false;
        }
        shape.dim[d] = left == 1 ? right : left;
    }
    *ret = shape;
    return true;
}

bool ifd_shape_axis(const struct ifd_shape *shape, int64_t axis, uint32_t *ret_axis)
{
    const int64_t rank = shape->rank;
    if (axis < -rank || axis >= rank) {
        return false;
    }
    *ret_axis = (uint32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

struct ifd_shape_text ifd_shape_text(const struct ifd_shape *shape)
{
    struct ifd_shape_text text = {"["};
    size_t used = 1;
    const uint32_t rank = shape->rank < IFD_MAX_RANK ? shape->rank : IFD_MAX_RANK;
    for (uint32_t d = 0; d < rank; d++) {
        used += (size_t)snprintf(text.s + used, sizeof(text.s) - used, "%s%lld", d > 0 ? "," : "",
                                 (long long)shape->dim[d]);
    }
    text.s[used] = ']';
    return text;
}

struct ifd_count_text ifd_count_text(uint32_t min, uint32_t max)
{
    struct ifd_count_text text;
    if (max == UINT32_MAX) {
        (void)snprintf(text.s, sizeof(text.s), "%u or more", min);
    } else if (min == max) {
        (void)snprintf(text.s, sizeof(text.s), "%u", min);
    } else {
        (void)snprintf(text.s, sizeof(text.s), "%u %s %u", min, max == min + 1 ? "or" : "to", max);
    }
    return text;
}

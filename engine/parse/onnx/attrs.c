/* Attributes, absent inputs and constants of the file. */
#include <string.h>

#include "engine/ir/shape.h"
#include "engine/parse/onnx/onnx_build.h"
#include "engine/tensor/half.h"

bool ifd_str_is(struct ifd_str text, const char *other)
{
    if (text.size == 0 || text.data[0] != other[0]) { /* most differ in their first letter */
        return text.size == 0 && other[0] == '\0';
    }
    return text.size == strlen(other) && memcmp(text.data, other, text.size) == 0;
}

struct ifd_onnx_text ifd_onnx_text(struct ifd_str text)
{
    struct ifd_onnx_text result = {""};
    const size_t size = text.size < IFD_ONNX_TEXT_MAX ? text.size : IFD_ONNX_TEXT_MAX;
    for (size_t i = 0; i < size; i++) {
        const char c = text.data[i];
        result.s[i] = c >= ' ' && c < 0x7f ? c : '?';
    }
    return result;
}

const struct ifd_onnx_attr *ifd_onnx_attr_of(const struct ifd_onnx_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->attr_count; i++) {
        if (ifd_str_is(node->attr[i].name, name)) {
            return &node->attr[i];
        }
    }
    return NULL;
}

const struct ifd_onnx_attr *ifd_onnx_attr(const struct ifd_onnx_call *call, const char *name)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr_of(call->node, name);
    return attr ? ifd_onnx_referred(call->build, attr) : NULL;
}

int64_t ifd_onnx_int(const struct ifd_onnx_call *call, const char *name, int64_t otherwise)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    return attr ? attr->i : otherwise;
}

int32_t ifd_onnx_int32(const struct ifd_onnx_call *call, const char *name, int32_t otherwise)
{
    const int64_t number = ifd_onnx_int(call, name, otherwise);
    if (number < INT32_MIN || number > INT32_MAX) {
        ifd_build_fail(call->b, IFD_INVALID, "attribute \"%s\" is %lld, expected %d to %d", name,
                       (long long)number, INT32_MIN, INT32_MAX);
        return 0;
    }
    return (int32_t)number;
}

double ifd_onnx_f32(const struct ifd_onnx_call *call, const char *name, double otherwise)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    return attr ? (double)attr->f : otherwise;
}

bool ifd_onnx_ints(const struct ifd_onnx_call *call, const char *name, struct ifd_ints *ret)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    *ret = (struct ifd_ints){.count = 0};
    if (!attr) {
        return false;
    }
    if (attr->int_count > IFD_MAX_RANK) {
        ifd_build_fail(call->b, IFD_UNSUPPORTED, "attribute \"%s\" has %u numbers, limit %d", name,
                       attr->int_count, IFD_MAX_RANK);
        return false;
    }
    for (uint32_t i = 0; i < attr->int_count; i++) {
        ret->value[i] = attr->ints[i];
    }
    ret->count = attr->int_count;
    return true;
}

bool ifd_onnx_text_is(const struct ifd_onnx_call *call, const char *name, const char *text,
                      bool absent)
{
    const struct ifd_onnx_attr *attr = ifd_onnx_attr(call, name);
    return attr ? ifd_str_is(attr->s, text) : absent;
}

uint32_t ifd_onnx_input(const struct ifd_onnx_call *call, uint32_t i)
{
    return i < call->input_count ? call->input[i] : IFD_NONE;
}

bool ifd_onnx_axes(struct ifd_onnx_call *call, uint32_t i, uint32_t rank, struct ifd_ints *ret)
{
    const uint32_t input = ifd_onnx_input(call, i);
    if (!ifd_onnx_ints(call, "axes", ret) && input != IFD_NONE) {
        *ret = ifd_build_ints_of(call->b, input, "the list of axes");
    }
    for (uint32_t k = 0; k < ret->count; k++) {
        ret->value[k] = ifd_build_axis(call->b, ret->value[k], rank);
    }
    return ret->count > 0;
}

/* ---- constants ---- */

bool ifd_onnx_port_dtype(int64_t type, enum ifd_dtype *ret)
{
    static const struct {
        int64_t type;
        enum ifd_dtype dtype;
    } rows[] = {
        {IFD_ONNX_FLOAT, IFD_F32},     {IFD_ONNX_UINT8, IFD_U8},   {IFD_ONNX_INT8, IFD_S8},
        {IFD_ONNX_UINT16, IFD_U16},    {IFD_ONNX_INT16, IFD_S16},  {IFD_ONNX_INT32, IFD_S32},
        {IFD_ONNX_INT64, IFD_S64},     {IFD_ONNX_BOOL, IFD_BOOL},  {IFD_ONNX_FLOAT16, IFD_F16},
        {IFD_ONNX_DOUBLE, IFD_F64},    {IFD_ONNX_UINT32, IFD_U32}, {IFD_ONNX_UINT64, IFD_U64},
        {IFD_ONNX_BFLOAT16, IFD_BF16}, {IFD_ONNX_STRING, IFD_STR},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].type == type) {
            *ret = rows[i].dtype;
            return true;
        }
    }
    return false;
}

bool ifd_onnx_is_real(enum ifd_dtype dtype)
{
    return dtype == IFD_F32 || dtype == IFD_F16 || dtype == IFD_BF16 || dtype == IFD_F64;
}

bool ifd_onnx_dtype(int64_t type, enum ifd_dtype *ret)
{
    if (!ifd_onnx_port_dtype(type, ret)) {
        return false;
    }
    *ret = ifd_onnx_is_real(*ret) ? IFD_F32 : *ret;
    return true;
}

/* One element of a type that is kept as f32. */
static float widen(const uint8_t *data, int32_t type, size_t i)
{
    uint16_t half = 0;
    double wide = 0;
    if (type == IFD_ONNX_DOUBLE) {
        memcpy(&wide, data + i * sizeof(wide), sizeof(wide));
        return (float)wide;
    }
    memcpy(&half, data + i * sizeof(half), sizeof(half));
    return type == IFD_ONNX_FLOAT16 ? ifd_f32_from_f16(half) : ifd_f32_from_bf16(half);
}

static size_t stored_bytes(int32_t type, enum ifd_dtype dtype)
{
    return type == IFD_ONNX_DOUBLE                                 ? sizeof(double)
           : type == IFD_ONNX_FLOAT16 || type == IFD_ONNX_BFLOAT16 ? sizeof(uint16_t)
                                                                   : ifd_dtype_bytes(dtype);
}

/* Number i of the typed fields as an element at to. */
static void store_typed(const struct ifd_onnx_tensor *tensor, enum ifd_dtype dtype, size_t i,
                        uint8_t *to)
{
    if (dtype == IFD_F32) {
        float value = 0;
        if (tensor->type == IFD_ONNX_FLOAT) {
            value = tensor->f32[i];
        } else if (tensor->type == IFD_ONNX_DOUBLE) {
            value = (float)tensor->f64[i];
        } else { /* the bits of a 16-bit float */
            const uint16_t half = (uint16_t)tensor->integer[i];
            value = widen((const uint8_t *)&half, tensor->type, 0);
        }
        memcpy(to, &value, sizeof(value));
        return;
    }
    memcpy(to, &tensor->integer[i], ifd_dtype_bytes(dtype)); /* the low bytes */
}

static uint32_t typed_count(const struct ifd_onnx_tensor *tensor)
{
    return tensor->type == IFD_ONNX_FLOAT    ? tensor->f32_count
           : tensor->type == IFD_ONNX_DOUBLE ? tensor->f64_count
           : tensor->type == IFD_ONNX_STRING ? tensor->text_count
                                             : tensor->integer_count;
}

uint32_t ifd_onnx_texts(struct ifd_builder *b, const struct ifd_str *text,
                        const struct ifd_shape *shape)
{
    const struct ifd_desc desc = {.dtype = IFD_STR, .shape = *shape};
    size_t count = 0, bytes = 0;
    if (!ifd_desc_fits(&desc, b->tensor_bytes) || !ifd_desc_bytes(&desc, &bytes) ||
        !ifd_shape_elements(shape, &count)) {
        return ifd_build_fail(b, IFD_TOO_LARGE, "texts of shape %s", ifd_shape_text(shape).s);
    }
    struct ifd_str *to = ifd_arena_take_tensor(b->graph->arena, bytes);
    for (size_t i = 0; to && i < count; i++) { /* the file may be gone when a model runs */
        to[i].data = ifd_arena_text(b->graph->arena, text[i].data, text[i].size);
        to[i].size = text[i].size;
        to = to[i].data ? to : NULL;
    }
    if (!to) {
        b->code = ifd_arena_fail(b->graph->arena, bytes, b->err);
        return IFD_NONE;
    }
    const struct ifd_bytes content = {.data = (const uint8_t *)to, .size = bytes};
    return ifd_build_constant(b, &desc, content, IFD_TENSOR_PAD);
}

/* The content converted into the arena. */
static uint32_t converted(struct ifd_builder *b, const struct ifd_onnx_tensor *tensor,
                          const struct ifd_desc *desc, size_t count)
{
    const size_t element = ifd_dtype_bytes(desc->dtype);
    uint8_t *data = ifd_arena_take_tensor(b->graph->arena, count * element);
    if (!data) {
        b->code = ifd_arena_fail(b->graph->arena, count * element, b->err);
        return IFD_NONE;
    }
    for (size_t i = 0; i < count; i++) {
        if (tensor->has_raw) {
            const float value = widen(tensor->raw.data, tensor->type, i);
            memcpy(data + i * element, &value, element);
        } else {
            store_typed(tensor, desc->dtype, i, data + i * element);
        }
    }
    return ifd_build_constant(b, desc, (struct ifd_bytes){.data = data, .size = count * element},
                              IFD_TENSOR_PAD);
}

static bool describe(struct ifd_builder *b, const struct ifd_onnx_tensor *tensor,
                     struct ifd_desc *ret, size_t *ret_count)
{
    const struct ifd_onnx_text name = ifd_onnx_text(tensor->name);
    *ret = (struct ifd_desc){.shape = {.rank = tensor->dim_count}};
    if (tensor->location.size > 0) {
        ifd_build_fail(b, IFD_NOT_FOUND,
                       "constant \"%s\" lies in \"%s\", which is not beside the model's file",
                       name.s, ifd_onnx_text(tensor->location).s);
    } else if (!ifd_onnx_dtype(tensor->type, &ret->dtype)) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "constant \"%s\" has element type %d", name.s,
                       tensor->type);
    } else if (tensor->dim_count > IFD_MAX_RANK) {
        ifd_build_fail(b, IFD_UNSUPPORTED, "constant \"%s\" has %u dimensions, limit %d", name.s,
                       tensor->dim_count, IFD_MAX_RANK);
    } else {
        for (uint32_t d = 0; d < tensor->dim_count; d++) {
            ret->shape.dim[d] = tensor->dim[d] < 0 ? IFD_DIM_ANY : tensor->dim[d];
        }
        size_t count = 0;
        const bool has_size = ifd_shape_elements(&ret->shape, &count);
        const size_t held = tensor->has_raw
                                ? tensor->raw.size / stored_bytes(tensor->type, ret->dtype)
                                : typed_count(tensor);
        if (!has_size || held != count ||
            (tensor->has_raw && tensor->raw.size % stored_bytes(tensor->type, ret->dtype) != 0)) {
            ifd_build_fail(b, IFD_CORRUPT, "constant \"%s\" of shape %s has %zu elements", name.s,
                           ifd_shape_text(&ret->shape).s, held);
        } else if (count == 0 && !ifd_desc_fits(ret, b->tensor_bytes)) {
            ifd_build_fail(b, IFD_TOO_LARGE, "constant \"%s\" is empty, of shape %s", name.s,
                           ifd_shape_text(&ret->shape).s);
        }
        *ret_count = count;
    }
    return b->code == IFD_OK;
}

uint32_t ifd_onnx_constant(struct ifd_builder *b, const struct ifd_onnx_tensor *tensor)
{
    struct ifd_desc desc;
    size_t count = 0;
    if (b->code == IFD_OK && tensor->location.size == 0 && ifd_onnx_is_narrow(tensor->type)) {
        return ifd_onnx_narrow_constant(b, tensor);
    }
    if (b->code != IFD_OK || !describe(b, tensor, &desc, &count)) {
        return IFD_NONE;
    }
    if (desc.dtype == IFD_STR) {
        return tensor->has_raw
                   ? ifd_build_fail(b, IFD_CORRUPT, "a constant of text has raw content")
                   : ifd_onnx_texts(b, tensor->text, &desc.shape);
    }
    if (!tensor->has_raw || stored_bytes(tensor->type, desc.dtype) != ifd_dtype_bytes(desc.dtype)) {
        return converted(b, tensor, &desc, count);
    }
    return ifd_build_constant(b, &desc, tensor->raw, tensor->room);
}

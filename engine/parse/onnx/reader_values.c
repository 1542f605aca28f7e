/* Lists of numbers and texts, tensors, and types of inputs and outputs. Lists are counted first,
 * then filled. */
#include <string.h>

#include "engine/parse/onnx/reader_impl.h"

enum ifd_code ifd_onnx_damaged(struct ifd_onnx_reader *r, const char *what)
{
    return ifd_fail(r->err, IFD_CORRUPT, "%s: a protobuf field is cut off or of no known type",
                    what);
}

void *ifd_onnx_reader_take(struct ifd_onnx_reader *r, size_t count, size_t size,
                           enum ifd_code *code)
{
    void *items = ifd_arena_take_array(r->arena, count, size);
    if (!items) {
        *code = ifd_arena_fail(r->arena, count * size, r->err);
    }
    return items;
}

bool ifd_onnx_count_fields(struct ifd_bytes message, uint32_t number, enum ifd_wire_type type,
                           uint32_t *ret)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    uint32_t count = 0;
    while (ifd_wire_next(&wire, &field)) {
        count += field.number == number && field.type == type;
    }
    *ret = count;
    return !wire.is_damaged;
}

/* ---- numbers, packed or one by one ---- */

static size_t kind_bytes(enum ifd_onnx_numbers kind)
{
    return kind == IFD_ONNX_AS_F32 ? sizeof(float) : sizeof(int64_t);
}

/* Appends one packed field; with to NULL it only counts. False if it is damaged. */
static bool unpack(struct ifd_bytes packed, enum ifd_onnx_numbers kind, void *to, uint64_t *count)
{
    if (kind != IFD_ONNX_AS_INT) {
        const size_t size = kind_bytes(kind);
        if (to && packed.size > 0) {
            memcpy((uint8_t *)to + *count * size, packed.data, packed.size);
        }
        *count += packed.size / size;
        return packed.size % size == 0;
    }
    const uint8_t *at = packed.data;
    const uint8_t *end = at + packed.size;
    while (packed.size > 0 && at < end) {
        uint64_t value = 0;
        if (!ifd_wire_varint(&at, end, &value)) {
            return false;
        }
        if (to) {
            ((int64_t *)to)[*count] = (int64_t)value;
        }
        ++*count;
    }
    return true;
}

static bool collect(struct ifd_bytes message, uint32_t number, enum ifd_onnx_numbers kind, void *to,
                    uint64_t *ret_count)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    uint64_t count = 0;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number != number) {
            continue;
        }
        if (field.type == IFD_WIRE_BYTES) {
            if (!unpack(field.bytes, kind, to, &count)) {
                return false;
            }
        } else if (to) {
            memcpy((uint8_t *)to + count++ * kind_bytes(kind), &field.value, kind_bytes(kind));
        } else {
            count++;
        }
    }
    *ret_count = count;
    return !wire.is_damaged;
}

const void *ifd_onnx_read_numbers(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                  uint32_t number, enum ifd_onnx_numbers kind, uint32_t *ret_count,
                                  enum ifd_code *code)
{
    uint64_t count = 0;
    if (*code != IFD_OK) {
        return NULL;
    }
    if (!collect(message, number, kind, NULL, &count)) {
        *code = ifd_onnx_damaged(r, "list of numbers");
        return NULL;
    }
    if (count > UINT32_MAX) {
        *code = ifd_fail(r->err, IFD_TOO_LARGE, "a list of %llu numbers, limit %u",
                         (unsigned long long)count, UINT32_MAX);
        return NULL;
    }
    void *items = count > 0 ? ifd_onnx_reader_take(r, (size_t)count, kind_bytes(kind), code) : NULL;
    if (items && collect(message, number, kind, items, &count)) {
        *ret_count = (uint32_t)count;
    }
    return items;
}

const struct ifd_str *ifd_onnx_read_strings(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                            uint32_t number, uint32_t *ret_count,
                                            enum ifd_code *code)
{
    uint32_t count = 0;
    if (*code != IFD_OK || !ifd_onnx_count_fields(message, number, IFD_WIRE_BYTES, &count) ||
        count == 0) {
        return NULL;
    }
    struct ifd_str *text = ifd_onnx_reader_take(r, count, sizeof(*text), code);
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (text && ifd_wire_next(&wire, &field)) {
        if (field.number == number && field.type == IFD_WIRE_BYTES) {
            text[(*ret_count)++] = ifd_onnx_field_text(&field);
        }
    }
    return text;
}

/* ---- tensors ---- */

/* TensorProto */
enum {
    T_DIMS = 1,
    T_TYPE = 2,
    T_FLOATS = 4,
    T_INT32S = 5,
    T_STRINGS = 6,
    T_INT64S = 7,
    T_NAME = 8,
    T_RAW = 9,
    T_DOUBLES = 10,
    T_UINT64S = 11,
    T_LOCATION = 14
};

enum ifd_code ifd_onnx_read_tensor(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                   struct ifd_onnx_tensor *ret)
{
    struct ifd_onnx_tensor tensor = {0};
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    uint32_t integers = T_INT32S;
    bool is_outside = false;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == T_TYPE && field.type == IFD_WIRE_VARINT) {
            tensor.type = (int32_t)field.value;
        } else if (field.number == T_NAME && field.type == IFD_WIRE_BYTES) {
            tensor.name = ifd_onnx_field_text(&field);
        } else if (field.number == T_RAW && field.type == IFD_WIRE_BYTES) {
            tensor.raw = field.bytes;
            tensor.room =
                (size_t)(r->file.data + r->file.size - (field.bytes.data + field.bytes.size));
            tensor.has_raw = true;
        } else if (field.number == T_LOCATION && field.type == IFD_WIRE_VARINT) {
            is_outside = field.value == 1;
        } else if (field.number == T_INT64S || field.number == T_UINT64S) {
            integers = field.number;
        }
    }
    if (wire.is_damaged) {
        return ifd_onnx_damaged(r, "tensor");
    }
    enum ifd_code code =
        is_outside ? ifd_onnx_find_beside(&r->places, r->arena, message, &tensor, r->err) : IFD_OK;
    tensor.dim =
        ifd_onnx_read_numbers(r, message, T_DIMS, IFD_ONNX_AS_INT, &tensor.dim_count, &code);
    tensor.f32 =
        ifd_onnx_read_numbers(r, message, T_FLOATS, IFD_ONNX_AS_F32, &tensor.f32_count, &code);
    tensor.f64 =
        ifd_onnx_read_numbers(r, message, T_DOUBLES, IFD_ONNX_AS_F64, &tensor.f64_count, &code);
    tensor.integer =
        ifd_onnx_read_numbers(r, message, integers, IFD_ONNX_AS_INT, &tensor.integer_count, &code);
    tensor.text = ifd_onnx_read_strings(r, message, T_STRINGS, &tensor.text_count, &code);
    *ret = tensor;
    return code;
}

/* ---- inputs and outputs ---- */

/* The first field of a number within a message; empty if there is none. */
static struct ifd_bytes field_of(struct ifd_bytes message, uint32_t number, bool *ret_has)
{
    struct ifd_wire wire = ifd_wire_open(message);
    struct ifd_wire_field field;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == number && field.type == IFD_WIRE_BYTES) {
            *ret_has = true;
            return field.bytes;
        }
    }
    *ret_has = false;
    return (struct ifd_bytes){0};
}

/* TensorShapeProto: dim (1); TensorShapeProto.Dimension: dim_value (1), dim_param (2) */
static enum ifd_code read_dims(struct ifd_onnx_reader *r, struct ifd_bytes shape,
                               struct ifd_onnx_port *port)
{
    enum ifd_code code = IFD_OK;
    if (!ifd_onnx_count_fields(shape, 1, IFD_WIRE_BYTES, &port->dim_count)) {
        return ifd_onnx_damaged(r, "shape");
    }
    int64_t *dim = ifd_onnx_reader_take(r, port->dim_count, sizeof(*dim), &code);
    struct ifd_str *symbol = ifd_onnx_reader_take(r, port->dim_count, sizeof(*symbol), &code);
    port->dim = dim;
    port->symbol = symbol;
    struct ifd_wire wire = ifd_wire_open(shape);
    struct ifd_wire_field field;
    while (code == IFD_OK && ifd_wire_next(&wire, &field)) {
        if (field.number != 1 || field.type != IFD_WIRE_BYTES) {
            continue;
        }
        struct ifd_wire inner = ifd_wire_open(field.bytes);
        struct ifd_wire_field size;
        *dim = IFD_DIM_ANY;
        while (ifd_wire_next(&inner, &size)) {
            if (size.number == 1 && size.type == IFD_WIRE_VARINT) {
                *dim = (int64_t)size.value;
            } else if (size.number == 2 && size.type == IFD_WIRE_BYTES) {
                *symbol = ifd_onnx_field_text(&size);
            }
        }
        dim++;
        symbol++;
    }
    return code;
}

/* ValueInfoProto: name (1), type (2); TypeProto: tensor_type (1), sequence_type (4), optional_type
 * (9), the last two with the TypeProto of what they hold (1); TypeProto.Tensor: elem_type (1),
 * shape (2) */
enum ifd_code ifd_onnx_read_port(struct ifd_onnx_reader *r, struct ifd_bytes message,
                                 struct ifd_onnx_port *ret)
{
    struct ifd_onnx_port port = {0};
    bool has = false;
    const struct ifd_bytes name = field_of(message, 1, &has);
    port.name = (struct ifd_str){.data = (const char *)name.data, .size = name.size};
    struct ifd_bytes type = field_of(message, 2, &has);
    const struct ifd_bytes optional = field_of(type, 9, &has);
    if (has) { /* an optional tensor is one: callers bring all inputs */
        type = field_of(optional, 1, &has);
    }
    const struct ifd_bytes sequence = field_of(type, 4, &port.is_sequence);
    if (port.is_sequence) {
        type = field_of(sequence, 1, &has);
    }
    const struct ifd_bytes tensor = field_of(type, 1, &port.is_tensor);
    struct ifd_wire wire = ifd_wire_open(tensor);
    struct ifd_wire_field field;
    while (ifd_wire_next(&wire, &field)) {
        if (field.number == 1 && field.type == IFD_WIRE_VARINT) {
            port.type = (int32_t)field.value;
        }
    }
    enum ifd_code code = wire.is_damaged ? ifd_onnx_damaged(r, "type of a value") : IFD_OK;
    const struct ifd_bytes shape = field_of(tensor, 2, &port.has_shape);
    if (code == IFD_OK) {
        code = read_dims(r, shape, &port);
    }
    *ret = port;
    return code;
}

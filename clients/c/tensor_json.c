/* Tensor data as JSON arrays, in both directions; every number is checked against its datatype. */
#include "client_impl.h"

#include <math.h>
#include <string.h>

enum kind { KIND_BOOL, KIND_INT, KIND_UINT, KIND_FLOAT, KIND_BYTES, KIND_HALF };

static const struct datatype {
    const char *name;
    size_t bytes;
    enum kind kind;
} datatypes[] = {
    {"BOOL", 1, KIND_BOOL},   {"INT8", 1, KIND_INT},    {"INT16", 2, KIND_INT},
    {"INT32", 4, KIND_INT},   {"INT64", 8, KIND_INT},   {"UINT8", 1, KIND_UINT},
    {"UINT16", 2, KIND_UINT}, {"UINT32", 4, KIND_UINT}, {"UINT64", 8, KIND_UINT},
    {"FP32", 4, KIND_FLOAT},  {"FP64", 8, KIND_FLOAT},  {"FP16", 2, KIND_HALF},
    {"BF16", 2, KIND_HALF},   {"BYTES", 0, KIND_BYTES},
};

static const struct datatype *find_datatype(const char *name)
{
    for (size_t i = 0; i < sizeof(datatypes) / sizeof(datatypes[0]); i++) {
        if (strcmp(datatypes[i].name, name) == 0) {
            return &datatypes[i];
        }
    }
    return NULL;
}

size_t ifd_client_datatype_bytes(const char *datatype)
{
    const struct datatype *type = find_datatype(datatype);
    return type ? type->bytes : 0;
}

bool ifd_client_bytes_next(const struct ifd_client_tensor *tensor, size_t *offset,
                           const char **ret_text, size_t *ret_text_bytes)
{
    const char *data = tensor->data;
    uint32_t length = 0;
    size_t left = *offset <= tensor->data_bytes ? tensor->data_bytes - *offset : 0;
    if (left < sizeof(length)) {
        return false;
    }
    const unsigned char *p = (const unsigned char *)data + *offset;
    length = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    if (length > left - sizeof(length)) {
        return false;
    }
    *ret_text = data + *offset + sizeof(length);
    *ret_text_bytes = length;
    *offset += sizeof(length) + length;
    return true;
}

/* The bits of an n-byte little-endian number. */
static uint64_t load(const unsigned char *p, size_t n)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++) {
        bits |= (uint64_t)p[i] << (8 * i);
    }
    return bits;
}

static bool store(struct ifd_client_buf *buf, uint64_t bits, size_t n)
{
    unsigned char p[8];
    for (size_t i = 0; i < n; i++) {
        p[i] = (unsigned char)(bits >> (8 * i));
    }
    return ifd_client_buf_add(buf, p, n);
}

static double float_of_bits(uint64_t bits, size_t bytes)
{
    if (bytes == sizeof(float)) {
        uint32_t narrow = (uint32_t)bits;
        float value = 0;
        memcpy(&value, &narrow, sizeof(value));
        return (double)value;
    }
    double value = 0;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* NULL if JSON has no such number. */
static json_t *number_to_json(uint64_t bits, const struct datatype *type)
{
    unsigned unused_bits = (unsigned)(64 - 8 * type->bytes);
    switch (type->kind) {
    case KIND_BOOL:
        return json_boolean(bits != 0);
    case KIND_INT:
        return json_integer((int64_t)(bits << unused_bits) >> unused_bits);
    case KIND_UINT:
        return bits <= INT64_MAX ? json_integer((json_int_t)bits) : NULL;
    case KIND_FLOAT:
        return json_real(float_of_bits(bits, type->bytes)); /* NULL for NaN and infinity */
    case KIND_HALF:
    case KIND_BYTES:
        break;
    }
    return NULL;
}

static json_t *numbers_to_json(const struct ifd_client_tensor *tensor, const struct datatype *type)
{
    const unsigned char *p = tensor->data;
    json_t *array = json_array();
    for (size_t at = 0; at + type->bytes <= tensor->data_bytes; at += type->bytes) {
        if (json_array_append_new(array, number_to_json(load(p + at, type->bytes), type)) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *strings_to_json(const struct ifd_client_tensor *tensor)
{
    json_t *array = json_array();
    size_t offset = 0, text_bytes = 0;
    const char *text = NULL;
    while (ifd_client_bytes_next(tensor, &offset, &text, &text_bytes)) {
        if (json_array_append_new(array, json_stringn(text, text_bytes)) != 0) {
            break;
        }
    }
    if (offset != tensor->data_bytes) {
        json_decref(array);
        return NULL;
    }
    return array;
}

enum ifd_client_code ifd_client_data_to_json(const struct ifd_client_tensor *tensor,
                                             json_t **ret_array, struct ifd_client_err *err)
{
    const struct datatype *type = find_datatype(tensor->datatype);
    if (!type || type->kind == KIND_HALF) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID,
                               "input \"%s\": %s cannot be sent as JSON; use the binary encoding",
                               tensor->name, tensor->datatype);
    }
    json_t *array =
        type->kind == KIND_BYTES ? strings_to_json(tensor) : numbers_to_json(tensor, type);
    if (!array) {
        return ifd_client_fail(err, IFD_CLIENT_INVALID,
                               "input \"%s\": holds a value that JSON cannot carry (NaN, infinity, "
                               "above 2^63, not UTF-8); use the binary encoding",
                               tensor->name);
    }
    *ret_array = array;
    return IFD_CLIENT_OK;
}

/* The bits of a JSON number as type; false if it does not fit. */
static bool number_from_json(const json_t *value, const struct datatype *type, uint64_t *ret_bits)
{
    unsigned unused_bits = (unsigned)(64 - 8 * type->bytes);
    json_int_t whole = json_integer_value(value);
    switch (type->kind) {
    case KIND_BOOL:
        *ret_bits = json_is_true(value) ? 1 : 0;
        return json_is_boolean(value);
    case KIND_INT:
        *ret_bits = (uint64_t)whole;
        return json_is_integer(value) && whole <= (INT64_MAX >> unused_bits) &&
               whole >= (INT64_MIN >> unused_bits);
    case KIND_UINT:
        *ret_bits = (uint64_t)whole;
        return json_is_integer(value) && whole >= 0 &&
               (uint64_t)whole <= (UINT64_MAX >> unused_bits);
    case KIND_FLOAT: {
        double wide = json_number_value(value);
        float narrow = (float)wide;
        uint32_t narrow_bits = 0;
        memcpy(&narrow_bits, &narrow, sizeof(narrow_bits));
        memcpy(ret_bits, &wide, sizeof(*ret_bits));
        if (type->bytes == sizeof(narrow)) {
            *ret_bits = narrow_bits;
        }
        return json_is_number(value);
    }
    case KIND_HALF:
    case KIND_BYTES:
        break;
    }
    return false;
}

static bool string_from_json(const json_t *value, struct ifd_client_buf *buf)
{
    size_t bytes = json_string_length(value);
    return json_is_string(value) && bytes <= UINT32_MAX && store(buf, bytes, sizeof(uint32_t)) &&
           ifd_client_buf_add(buf, json_string_value(value), bytes);
}

enum ifd_client_code ifd_client_data_from_json(const char *name, const char *datatype,
                                               json_t *array, struct ifd_client_buf *buf,
                                               struct ifd_client_err *err)
{
    const struct datatype *type = find_datatype(datatype);
    if (!type || !json_is_array(array)) {
        return ifd_client_fail(err, IFD_CLIENT_PROTOCOL,
                               "output \"%s\" of type %s has no readable data", name, datatype);
    }
    size_t index = 0;
    json_t *value = NULL;
    json_array_foreach(array, index, value)
    {
        uint64_t bits = 0;
        bool ok = type->kind == KIND_BYTES
                      ? string_from_json(value, buf)
                      : number_from_json(value, type, &bits) && store(buf, bits, type->bytes);
        if (!ok) {
            return ifd_client_fail(err, IFD_CLIENT_PROTOCOL,
                                   "output \"%s\": element %zu does not fit %s", name, index,
                                   datatype);
        }
    }
    return IFD_CLIENT_OK;
}

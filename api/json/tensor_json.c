/* JSON arrays into tensors and back, without a tree in between. */
#include "api/json/tensor_json.h"

#include "engine/base/str.h"

#include <math.h>
#include <string.h>

bool ifd_tensor_json_can(enum ifd_dtype dtype)
{
    return dtype != IFD_F16 && dtype != IFD_BF16 && dtype != IFD_C64;
}

size_t ifd_tensor_json_least(size_t count)
{
    /* "[0,1]": a character and a comma each */
    return count < SIZE_MAX / 2 ? count * 2 : SIZE_MAX;
}

struct range {
    int64_t low, high;
};

/* Range of an integer type that fits int64. */
static struct range range_of(enum ifd_dtype dtype)
{
    switch (dtype) {
    case IFD_S8:
        return (struct range){INT8_MIN, INT8_MAX};
    case IFD_U8:
        return (struct range){0, UINT8_MAX};
    case IFD_S16:
        return (struct range){INT16_MIN, INT16_MAX};
    case IFD_U16:
        return (struct range){0, UINT16_MAX};
    case IFD_S32:
        return (struct range){INT32_MIN, INT32_MAX};
    case IFD_U32:
        return (struct range){0, UINT32_MAX};
    default:
        return (struct range){INT64_MIN, INT64_MAX};
    }
}

static void store_integer(enum ifd_dtype dtype, void *data, size_t index, uint64_t value)
{
    switch (ifd_dtype_bytes(dtype)) {
    case 1:
        ((uint8_t *)data)[index] = (uint8_t)value;
        break;
    case 2:
        ((uint16_t *)data)[index] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)data)[index] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)data)[index] = value;
        break;
    }
}

static bool is_integer_type(enum ifd_dtype dtype)
{
    const uint32_t set = IFD_BIT(IFD_S8) | IFD_BIT(IFD_U8) | IFD_BIT(IFD_S16) | IFD_BIT(IFD_U16) |
                         IFD_BIT(IFD_S32) | IFD_BIT(IFD_U32) | IFD_BIT(IFD_S64) | IFD_BIT(IFD_U64);
    return (set & IFD_BIT(dtype)) != 0;
}

static bool is_signed_type(enum ifd_dtype dtype)
{
    const uint32_t set = IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64);
    return (set & IFD_BIT(dtype)) != 0;
}

/* Bytes of a number that a message quotes. */
static int quoted(const struct ifd_number *number)
{
    return number->size > 40 ? 40 : (int)number->size;
}

static bool read_integer(struct ifd_json_in *in, const char *name, enum ifd_dtype dtype, void *data,
                         size_t index)
{
    struct ifd_number number;
    const char *type = ifd_dtype_wire_name(dtype);
    if (ifd_json_peek(in) != IFD_JSON_NUMBER) {
        return ifd_json_fail(in, IFD_INVALID,
                             "input '%s': element %zu is not a number, expected %s", name, index,
                             type);
    }
    if (!ifd_json_number(in, &number)) {
        return false;
    }
    if (!number.is_integer) {
        return ifd_json_fail(in, IFD_INVALID, "input '%s': element %zu is %.*s, expected %s", name,
                             index, quoted(&number), number.text, type);
    }
    int64_t value = 0;
    uint64_t bits = 0;
    const struct range range = range_of(dtype);
    bool fits = false;
    if (dtype == IFD_U64) {
        fits = ifd_number_u64(&number, &bits);
    } else {
        fits = ifd_number_s64(&number, &value) && value >= range.low && value <= range.high;
        bits = (uint64_t)value;
    }
    if (!fits && dtype == IFD_U64) {
        return ifd_json_fail(in, IFD_INVALID,
                             "input '%s': element %zu is %.*s, outside UINT64's range 0 … "
                             "18446744073709551615",
                             name, index, quoted(&number), number.text);
    }
    if (!fits) {
        return ifd_json_fail(in, IFD_INVALID,
                             "input '%s': element %zu is %.*s, outside %s's range %lld … %lld",
                             name, index, quoted(&number), number.text, type, (long long)range.low,
                             (long long)range.high);
    }
    store_integer(dtype, data, index, bits);
    return true;
}

static void store_float(enum ifd_dtype dtype, void *data, size_t index, double value)
{
    if (dtype == IFD_F32) {
        ((float *)data)[index] = (float)value;
    } else {
        ((double *)data)[index] = value;
    }
}

/* Strings that stand for values which JSON numbers lack. */
static bool read_quoted_special(struct ifd_json_in *in, double *ret)
{
    struct ifd_str text;
    if (!ifd_json_text(in, &text)) {
        return false;
    }
    bool is_nan = ifd_str_equal(text, "NaN");
    bool is_high = ifd_str_equal(text, "Infinity"), is_low = ifd_str_equal(text, "-Infinity");
    *ret = is_nan ? (double)NAN : is_low ? -HUGE_VAL : HUGE_VAL;
    return is_nan || is_high || is_low;
}

static bool read_float(struct ifd_json_in *in, const char *name, enum ifd_dtype dtype, void *data,
                       size_t index)
{
    struct ifd_number number;
    double special = 0;
    enum ifd_json_kind kind = ifd_json_peek(in);
    bool is_special = kind == IFD_JSON_TEXT     ? read_quoted_special(in, &special)
                      : kind == IFD_JSON_NUMBER ? ifd_json_special(in, &special)
                                                : false;
    if (is_special) {
        store_float(dtype, data, index, special);
        return true;
    }
    if (kind != IFD_JSON_NUMBER) {
        return ifd_json_fail(in, IFD_INVALID,
                             "input '%s': element %zu is not a number, expected %s", name, index,
                             ifd_dtype_wire_name(dtype));
    }
    if (!ifd_json_number(in, &number)) {
        return false;
    }
    double value = dtype == IFD_F32 ? (double)ifd_number_f32(&number) : ifd_number_f64(&number);
    if (isinf(value)) {
        return ifd_json_fail(in, IFD_INVALID, "input '%s': element %zu is %.*s, outside %s's range",
                             name, index, quoted(&number), number.text, ifd_dtype_wire_name(dtype));
    }
    store_float(dtype, data, index, value);
    return true;
}

static bool read_element(struct ifd_json_in *in, const char *name, enum ifd_dtype dtype, void *data,
                         size_t index)
{
    enum ifd_json_kind kind = ifd_json_peek(in);
    if (dtype == IFD_BOOL) {
        if (kind != IFD_JSON_TRUE && kind != IFD_JSON_FALSE) {
            return ifd_json_fail(in, IFD_INVALID,
                                 "input '%s': element %zu is neither true nor false", name, index);
        }
        return ifd_json_bool(in, (bool *)data + index);
    }
    if (dtype == IFD_STR) {
        if (kind != IFD_JSON_TEXT) {
            return ifd_json_fail(in, IFD_INVALID,
                                 "input '%s': element %zu is not a string, expected BYTES", name,
                                 index);
        }
        return ifd_json_text(in, (struct ifd_str *)data + index);
    }
    return is_integer_type(dtype) ? read_integer(in, name, dtype, data, index)
                                  : read_float(in, name, dtype, data, index);
}

/* Fast path: reads plain numbers with their commas, also of inner arrays, up to count elements in
 * all; stops in front of any other value. Returns the number of elements read so far. outside:
 * depth around the tensor. */
static size_t read_run(struct ifd_json_in *in, uint32_t outside, enum ifd_dtype dtype, void *data,
                       size_t index, size_t count)
{
    struct ifd_number_row row = {.at = in->at,
                                 .end = in->end,
                                 .depth = in->depth,
                                 .depth_min = outside + 1,
                                 .depth_max = IFD_JSON_DEPTH_MAX};
    const size_t bytes = ifd_dtype_bytes(dtype);
    if (dtype == IFD_F32) {
        index += ifd_number_run_f32(&row, (float *)data + index, count - index);
    } else if (is_integer_type(dtype)) {
        index += ifd_number_run_integers(&row, is_signed_type(dtype), bytes,
                                         (uint8_t *)data + index * bytes, count - index);
    }
    ifd_json_resume(in, row.at, row.depth);
    return index;
}

bool ifd_tensor_json_read(struct ifd_json_in *in, const char *name, enum ifd_dtype dtype,
                          size_t count, void *data)
{
    const uint32_t outside = in->depth;
    size_t index = 0;
    if (!ifd_json_open(in, '[')) {
        return false;
    }
    while (in->depth > outside) {
        if (!ifd_json_item(in)) {
            if (in->failed) {
                return false;
            }
            continue;
        }
        index = read_run(in, outside, dtype, data, index, count);
        if (ifd_json_peek(in) == IFD_JSON_ARRAY) {
            if (!ifd_json_open(in, '[')) {
                return false;
            }
            continue;
        }
        if (index == count) {
            return ifd_json_fail(in, IFD_INVALID,
                                 "input '%s': 'data' has more than the %zu elements of its shape",
                                 name, count);
        }
        if (!read_element(in, name, dtype, data, index)) {
            return false;
        }
        index++;
    }
    if (index != count) {
        return ifd_json_fail(in, IFD_INVALID,
                             "input '%s': 'data' has %zu elements, its shape has %zu", name, index,
                             count);
    }
    return true;
}

/* ---- writing ---- */

/* Elements that are printed between two checks of the room. */
#define BLOCK_ELEMENTS ((size_t)256)

/* Bytes of a block's text with the comma in front. */
static size_t block_room(size_t count)
{
    return count * (IFD_NUMBER_TEXT_BYTES + 1) + 1;
}

size_t ifd_tensor_json_usual(enum ifd_dtype dtype, size_t count)
{
    /* with sign and comma; shortest floats have up to 9 and 17 digits */
    static const uint8_t bytes[IFD_DTYPE_COUNT] = {
        [IFD_BOOL] = 6, [IFD_U8] = 4,   [IFD_S8] = 5,   [IFD_U16] = 6,
        [IFD_S16] = 7,  [IFD_U32] = 11, [IFD_S32] = 12, [IFD_U64] = 21,
        [IFD_S64] = 21, [IFD_F32] = 13, [IFD_F64] = 21};
    const size_t room = block_room(count < BLOCK_ELEMENTS ? count : BLOCK_ELEMENTS);
    size_t total = 0;
    return ifd_size_mul(count, bytes[dtype], &total) && ifd_size_add(total, room, &total) ? total
                                                                                          : 0;
}

static size_t print_element(char *text, enum ifd_dtype dtype, const void *data, size_t i)
{
    switch (dtype) {
    case IFD_F32:
        return ifd_print_f32(text, ((const float *)data)[i]);
    case IFD_F64:
        return ifd_print_f64(text, ((const double *)data)[i]);
    case IFD_S8:
        return ifd_print_s64(text, ((const int8_t *)data)[i]);
    case IFD_U8:
        return ifd_print_u64(text, ((const uint8_t *)data)[i]);
    case IFD_S16:
        return ifd_print_s64(text, ((const int16_t *)data)[i]);
    case IFD_U16:
        return ifd_print_u64(text, ((const uint16_t *)data)[i]);
    case IFD_S32:
        return ifd_print_s64(text, ((const int32_t *)data)[i]);
    case IFD_U32:
        return ifd_print_u64(text, ((const uint32_t *)data)[i]);
    case IFD_S64:
        return ifd_print_s64(text, ((const int64_t *)data)[i]);
    case IFD_U64:
        return ifd_print_u64(text, ((const uint64_t *)data)[i]);
    case IFD_BOOL: {
        bool truth = ((const uint8_t *)data)[i] != 0;
        memcpy(text, truth ? "true" : "false", truth ? 4 : 5);
        return truth ? 4 : 5;
    }
    case IFD_F16:
    case IFD_BF16:
    case IFD_C64:
    case IFD_STR:
    case IFD_DTYPE_COUNT:
        break;
    }
    return 0; /* never reached: ifd_tensor_json_can() refuses them */
}

/* Writes elements i … stop-1. */
static size_t print_block(char *text, enum ifd_dtype dtype, const void *data, size_t i, size_t stop)
{
    char *at = text;
    if (dtype == IFD_U8 || dtype == IFD_S8) {
        return ifd_print_run_8(text, (const uint8_t *)data + i, dtype == IFD_S8, stop - i);
    }
    if (dtype == IFD_F32) {
        return ifd_print_run_f32(text, (const float *)data + i, stop - i);
    }
    for (; i < stop; i++) {
        at += print_element(at, dtype, data, i);
        *at++ = ',';
    }
    return (size_t)(at - text) - 1;
}

static void write_scalars(struct ifd_json_out *out, enum ifd_dtype dtype, const void *data,
                          size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t stop = count - i < BLOCK_ELEMENTS ? count : i + BLOCK_ELEMENTS;
        char *first = ifd_json_room(out, block_room(stop - i));
        if (!first) {
            return;
        }
        char *at = first;
        if (i > 0) {
            *at++ = ',';
        }
        at += print_block(at, dtype, data, i, stop);
        i = stop;
        ifd_json_wrote(out, (size_t)(at - first));
    }
}

void ifd_tensor_json_write(struct ifd_json_out *out, enum ifd_dtype dtype, const void *data,
                           size_t count)
{
    ifd_json_begin(out, '[');
    if (dtype == IFD_STR) {
        const struct ifd_str *text = data;
        for (size_t i = 0; i < count && !out->failed; i++) {
            ifd_json_put_str(out, text[i]);
        }
    } else {
        write_scalars(out, dtype, data, count);
    }
    ifd_json_end(out, ']');
}

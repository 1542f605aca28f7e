/* A FlexBuffer ends with the root value, its type byte and its width byte. A map is a vector of
 * values: its size stands before it, one type byte per value behind it; before the size stand
 * offset and width of the vector of keys. Offsets count backwards from their own position. */
#include "engine/parse/tflite/flexbuffer.h"

#include <string.h>

#include "inferd/alloc.h"

enum flex_type {
    FLEX_INT = 1,
    FLEX_UINT = 2,
    FLEX_FLOAT = 3,
    FLEX_MAP = 9,
    FLEX_INTS = 11,
    FLEX_BOOL = 26
};

static bool read_uint(struct ifd_bytes bytes, size_t at, uint8_t width, uint64_t *ret)
{
    if (width > bytes.size || at > bytes.size - width) {
        return false;
    }
    uint64_t value = 0;
    for (uint8_t i = 0; i < width; i++) {
        value |= (uint64_t)bytes.data[at + i] << (8 * i);
    }
    *ret = value;
    return true;
}

static bool read_int(struct ifd_bytes bytes, size_t at, uint8_t width, double *ret)
{
    uint64_t value = 0;
    if (!read_uint(bytes, at, width, &value)) {
        return false;
    }
    uint64_t sign = (uint64_t)1 << (8 * width - 1);
    *ret = (value & sign) ? -(double)(sign - (value & (sign - 1))) : (double)value;
    return true;
}

static bool read_float(struct ifd_bytes bytes, size_t at, uint8_t width, double *ret)
{
    uint64_t bits = 0;
    if ((width != 4 && width != 8) || !read_uint(bytes, at, width, &bits)) {
        return false;
    }
    if (width == 8) {
        memcpy(ret, &bits, sizeof(*ret));
    } else {
        uint32_t low = (uint32_t)bits;
        float value = 0;
        memcpy(&value, &low, sizeof(value));
        *ret = (double)value;
    }
    return true;
}

/* Follows the offset at position at. */
static bool follow(struct ifd_bytes bytes, size_t at, uint8_t width, size_t *ret)
{
    uint64_t offset = 0;
    if (!read_uint(bytes, at, width, &offset) || offset > at) {
        return false;
    }
    *ret = at - (size_t)offset;
    return true;
}

/* True if count elements of width and more bytes behind them lie inside. */
static bool holds(struct ifd_bytes bytes, size_t at, size_t count, uint8_t width, size_t more)
{
    size_t size = 0;
    return ifd_size_mul(count, width, &size) && ifd_size_add(size, more, &size) &&
           ifd_size_add(size, at, &size) && size <= bytes.size;
}

bool ifd_flex_open(struct ifd_bytes bytes, struct ifd_flex_map *ret)
{
    if (bytes.size < 3) {
        return false;
    }
    uint8_t root_width = bytes.data[bytes.size - 1];
    uint8_t packed = bytes.data[bytes.size - 2];
    if (root_width == 0 || root_width > 8 || bytes.size - 2 < root_width ||
        packed >> 2 != FLEX_MAP) {
        return false;
    }
    struct ifd_flex_map map = {.bytes = bytes, .value_width = (uint8_t)(1u << (packed & 3))};
    size_t prefix = 3 * (size_t)map.value_width; /* offset of keys, width of keys, size */
    uint64_t key_width = 0;
    uint64_t count = 0;
    uint64_t key_count = 0;
    if (!follow(bytes, bytes.size - 2 - root_width, root_width, &map.values) ||
        map.values < prefix || !follow(bytes, map.values - prefix, map.value_width, &map.keys) ||
        !read_uint(bytes, map.values - 2 * (size_t)map.value_width, map.value_width, &key_width) ||
        !read_uint(bytes, map.values - map.value_width, map.value_width, &count)) {
        return false;
    }
    if ((key_width != 1 && key_width != 2 && key_width != 4 && key_width != 8) ||
        count > UINT32_MAX) {
        return false;
    }
    map.key_width = (uint8_t)key_width;
    map.count = (uint32_t)count;
    if (map.keys < key_width ||
        !read_uint(bytes, map.keys - (size_t)key_width, map.key_width, &key_count) ||
        key_count != count || !holds(bytes, map.keys, map.count, map.key_width, 0) ||
        !holds(bytes, map.values, map.count, map.value_width, map.count)) {
        return false;
    }
    *ret = map;
    return true;
}

/* Compares with a key in the file, which may lack its end. */
static bool key_is(const struct ifd_flex_map *map, uint32_t index, const char *key)
{
    size_t at = 0;
    size_t size = strlen(key) + 1;
    return follow(map->bytes, map->keys + (size_t)index * map->key_width, map->key_width, &at) &&
           holds(map->bytes, at, size, 1, 0) && memcmp(map->bytes.data + at, key, size) == 0;
}

static bool read_value(const struct ifd_flex_map *map, uint32_t index, double *ret)
{
    size_t at = map->values + (size_t)index * map->value_width;
    uint8_t packed = map->bytes.data[map->values + (size_t)map->count * map->value_width + index];
    uint64_t value = 0;
    switch (packed >> 2) {
    case FLEX_INT:
        return read_int(map->bytes, at, map->value_width, ret);
    case FLEX_FLOAT:
        return read_float(map->bytes, at, map->value_width, ret);
    case FLEX_UINT:
    case FLEX_BOOL:
        if (!read_uint(map->bytes, at, map->value_width, &value)) {
            return false;
        }
        *ret = (double)value;
        return true;
    default: /* strings, vectors, types of later versions, wrong numbers */
        return false;
    }
}

/* Index of a key; count if there is none. */
static uint32_t find(const struct ifd_flex_map *map, const char *key)
{
    uint32_t i = 0;
    while (i < map->count && !key_is(map, i, key)) {
        i++;
    }
    return i;
}

bool ifd_flex_number(const struct ifd_flex_map *map, const char *key, double *ret)
{
    const uint32_t i = find(map, key);
    return i < map->count && read_value(map, i, ret);
}

bool ifd_flex_ints(const struct ifd_flex_map *map, const char *key, int32_t *ret, uint32_t max,
                   uint32_t *ret_count)
{
    const uint32_t index = find(map, key);
    if (index == map->count) {
        return false;
    }
    const uint8_t packed =
        map->bytes.data[map->values + (size_t)map->count * map->value_width + index];
    const uint8_t width = (uint8_t)(1u << (packed & 3));
    size_t at = 0;
    uint64_t count = 0;
    if (packed >> 2 != FLEX_INTS ||
        !follow(map->bytes, map->values + (size_t)index * map->value_width, map->value_width,
                &at) ||
        at < width || !read_uint(map->bytes, at - width, width, &count) || count > max ||
        !holds(map->bytes, at, (size_t)count, width, 0)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        double number = 0;
        if (!read_int(map->bytes, at + (size_t)i * width, width, &number) || number < INT32_MIN ||
            number > INT32_MAX) {
            return false;
        }
        ret[i] = (int32_t)number;
    }
    *ret_count = (uint32_t)count;
    return true;
}

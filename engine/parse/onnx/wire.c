/* Fields of protobuf messages. */
#include "engine/parse/onnx/wire.h"

#include <string.h>

struct ifd_wire ifd_wire_open(struct ifd_bytes message)
{
    static const uint8_t nothing;
    const uint8_t *data = message.data ? message.data : &nothing;
    return (struct ifd_wire){.at = data, .end = data + message.size};
}

bool ifd_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64 && *at < end; shift += 7) {
        const uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = value;
            return shift < 63 || byte <= 1;
        }
    }
    return false;
}

/* Numbers are little-endian, as every machine is that inferd supports. */
static bool read_fixed(struct ifd_wire *wire, size_t size, uint64_t *ret)
{
    uint64_t value = 0;
    if ((size_t)(wire->end - wire->at) < size) {
        return false;
    }
    memcpy(&value, wire->at, size);
    wire->at += size;
    *ret = value;
    return true;
}

static bool read_bytes(struct ifd_wire *wire, struct ifd_bytes *ret)
{
    uint64_t size = 0;
    if (!ifd_wire_varint(&wire->at, wire->end, &size) || size > (uint64_t)(wire->end - wire->at)) {
        return false;
    }
    *ret = (struct ifd_bytes){.data = wire->at, .size = (size_t)size};
    wire->at += size;
    return true;
}

static bool read_field(struct ifd_wire *wire, struct ifd_wire_field *ret)
{
    uint64_t key = 0;
    if (!ifd_wire_varint(&wire->at, wire->end, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) {
        return false;
    }
    *ret = (struct ifd_wire_field){.number = (uint32_t)(key >> 3)};
    switch (key & 7) {
    case IFD_WIRE_VARINT:
        ret->type = IFD_WIRE_VARINT;
        return ifd_wire_varint(&wire->at, wire->end, &ret->value);
    case IFD_WIRE_FIXED64:
        ret->type = IFD_WIRE_FIXED64;
        return read_fixed(wire, sizeof(uint64_t), &ret->value);
    case IFD_WIRE_FIXED32:
        ret->type = IFD_WIRE_FIXED32;
        return read_fixed(wire, sizeof(uint32_t), &ret->value);
    case IFD_WIRE_BYTES:
        ret->type = IFD_WIRE_BYTES;
        return read_bytes(wire, &ret->bytes);
    default: /* groups, which proto3 does not have */
        return false;
    }
}

bool ifd_wire_next(struct ifd_wire *wire, struct ifd_wire_field *ret)
{
    if (wire->at == wire->end || wire->is_damaged) {
        return false;
    }
    wire->is_damaged = !read_field(wire, ret);
    return !wire->is_damaged;
}

/** Protobuf's wire format: walks over the fields of one message in place. Nothing is copied or
 *  allocated, so a small file cannot ask for much memory here. Thread: any, on different objects.
 */
#ifndef INFERD_ENGINE_PARSE_ONNX_WIRE_H
#define INFERD_ENGINE_PARSE_ONNX_WIRE_H

#include "inferd/types.h"

enum ifd_wire_type {
    IFD_WIRE_VARINT = 0,
    IFD_WIRE_FIXED64 = 1,
    IFD_WIRE_BYTES = 2,
    IFD_WIRE_FIXED32 = 5
};

struct ifd_wire {
    const uint8_t *at, *end;
    bool is_damaged; /* a field is cut off, or has a type that does not exist */
};

struct ifd_wire_field {
    uint32_t number;
    enum ifd_wire_type type;
    uint64_t value;         /* VARINT, FIXED32, FIXED64 */
    struct ifd_bytes bytes; /* BYTES */
};

struct ifd_wire ifd_wire_open(struct ifd_bytes message);

/** The next field; false at the end and where the message is damaged. */
bool ifd_wire_next(struct ifd_wire *wire, struct ifd_wire_field *ret);

/** A varint at *at, which moves behind it; false if it is cut off or longer than 64 bits. For
 *  packed numbers. */
bool ifd_wire_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret);

#endif

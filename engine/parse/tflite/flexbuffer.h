/** A bounds-checked reader of FlexBuffer maps, which hold the options of custom operators. Reads
 *  numbers, booleans and lists of integers of the root map by key. Copies, allocates and trusts
 *  nothing. Thread: any. */
#ifndef INFERD_ENGINE_PARSE_TFLITE_FLEXBUFFER_H
#define INFERD_ENGINE_PARSE_TFLITE_FLEXBUFFER_H

#include "inferd/types.h"

struct ifd_flex_map {
    struct ifd_bytes bytes;
    size_t values;       /* offset of the first value */
    size_t keys;         /* offset of the first key */
    uint32_t count;      /* of both */
    uint8_t value_width; /* 1, 2, 4 or 8 */
    uint8_t key_width;
};

/** False if the bytes do not end in a map that lies inside them. The map reads from bytes. */
bool ifd_flex_open(struct ifd_bytes bytes, struct ifd_flex_map *ret) IFD_NODISCARD;

/** Reads the number (or boolean, as 0 or 1) of a key; false if the key is absent or has another
 *  type. */
bool ifd_flex_number(const struct ifd_flex_map *map, const char *key, double *ret) IFD_NODISCARD;

/** Reads a list of integers of one width; false if the key is absent, has another type, or there
 *  are more than max or numbers beyond 32 bits. */
bool ifd_flex_ints(const struct ifd_flex_map *map, const char *key, int32_t *ret, uint32_t max,
                   uint32_t *ret_count) IFD_NODISCARD;

#endif

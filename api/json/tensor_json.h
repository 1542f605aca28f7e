/** Tensors as JSON numbers, truth values and strings, without a tree in between. Thread: any. */
#ifndef INFERD_API_JSON_TENSOR_JSON_H
#define INFERD_API_JSON_TENSOR_JSON_H

#include "api/json/json_read.h"
#include "api/json/json_write.h"

/** Whether dtype can be JSON. FP16, BF16 and complex numbers cannot. */
bool ifd_tensor_json_can(enum ifd_dtype dtype);

/** Minimum bytes of JSON for count elements: a shorter text cannot hold them, so nothing is
 *  allocated for it. */
size_t ifd_tensor_json_least(size_t count);

/** Reads "data" into data: arrays in any nesting, row-major, exactly count elements of dtype.
 *  Integers must fit their type. A float is NaN or infinite only if the text says so ("NaN", with
 *  or without quotes). Strings (struct ifd_str) are views of the input or lie in the reader's
 *  arena. name: for messages. False: the reader failed. */
bool ifd_tensor_json_read(struct ifd_json_in *in, const char *name, enum ifd_dtype dtype,
                          size_t count, void *data);

/** Bytes that are nearly always enough to write count elements; a guess of almost nothing for
 *  strings. */
size_t ifd_tensor_json_usual(enum ifd_dtype dtype, size_t count);

/** Writes count elements as one flat array. */
void ifd_tensor_json_write(struct ifd_json_out *out, enum ifd_dtype dtype, const void *data,
                           size_t count);

#endif

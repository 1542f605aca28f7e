/** Tensors as JSON numbers, truth values and strings, without a tree in between. Thread: any. */
#ifndef INFERD_API_JSON_TENSOR_JSON_H
#define INFERD_API_JSON_TENSOR_JSON_H

#include "api/json/json_read.h"
#include "api/json/json_write.h"

/** FP16, BF16 and complex numbers travel only in binary. */
bool ifd_tensor_json_can(enum ifd_dtype dtype);

/** Fewest bytes of JSON that count elements take: a request whose text is shorter cannot hold them, so nothing is
 *  allocated for it. */
size_t ifd_tensor_json_least(size_t count);

/** Reads "data": arrays in any nesting, row-major, exactly count elements of dtype into data. Integers must fit their type,
 *  floats may be NaN or infinite only when written so ("NaN" in quotes too); strings (struct ifd_str) are views of the input
 *  or lie in the reader's arena. name: for messages. False: the reader failed. */
bool ifd_tensor_json_read(struct ifd_json_in *in, const char *name, enum ifd_dtype dtype,
                          size_t count, void *data);

/** Bytes in which count elements are written nearly always; of strings, whose length nobody knows, next to nothing. */
size_t ifd_tensor_json_usual(enum ifd_dtype dtype, size_t count);

/** Writes count elements as one flat array. */
void ifd_tensor_json_write(struct ifd_json_out *out, enum ifd_dtype dtype, const void *data,
                           size_t count);

#endif

/** Cases of the ONNX project whose inputs or outputs are sequences or optional values, as cases of
 *  tensors: a model takes and gives tensors only. A sequence comes in as its elements, which a node
 *  SequenceConstruct joins; one that goes out is taken apart by nodes SequenceAt, beside its
 *  length. */
#ifndef INFERD_TESTS_CONFORMANCE_ONNX_LISTS_H
#define INFERD_TESTS_CONFORMANCE_ONNX_LISTS_H

#include "engine/base/buf.h"

#define ONNX_LISTS_MAX  32 /* tensors on either side of a case */
#define ONNX_LISTS_NAME 96

/** A tensor of a case: its message, of onnx.proto's TensorProto. */
struct onnx_lists_tensor {
    char name[ONNX_LISTS_NAME];
    struct ifd_buf message;
};

struct onnx_lists_side {
    struct onnx_lists_tensor tensor[ONNX_LISTS_MAX];
    uint32_t count;
};

/** model: the file of a case. input, output: its files of values, in the order of the graph. ret:
 *  the model over tensors, and these. The program ends with an error if a file is damaged. */
void onnx_lists_rewrite(struct ifd_bytes model, const struct ifd_bytes *input, uint32_t input_count,
                        const struct ifd_bytes *output, uint32_t output_count,
                        struct ifd_buf *ret_model, struct onnx_lists_side *ret_inputs,
                        struct onnx_lists_side *ret_outputs);
void onnx_lists_finish(struct onnx_lists_side *side);

/** A number and a message or text as protobuf has them. */
void onnx_put_number(struct ifd_buf *buf, uint32_t number, uint64_t value);
void onnx_put_field(struct ifd_buf *buf, uint32_t number, const void *data, size_t size);

#endif

/** The TFLite FlatBuffer as plain C: tflite_reader.cc runs the FlatBuffers verifier and copies
 *  the tables to these structs. Only that file sees FlatBuffers.
 *
 *  The verifier guarantees that every pointer and count here stays inside the file and every
 *  text ends with NUL. It does not check meaning: any index, size, type or option may be any
 *  number. check.c checks these.
 *
 *  Pointers go into the file or the arena. Thread: any. */
#ifndef INFERD_ENGINE_PARSE_TFLITE_TFLITE_READER_H
#define INFERD_ENGINE_PARSE_TFLITE_TFLITE_READER_H

#include "engine/base/arena.h"
#include "inferd/engine.h"
#include "inferd/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A vector of 32-bit numbers in the file; {NULL, 0} if the file has none. */
struct ifd_tflite_ints {
    const int32_t *value;
    uint32_t count;
};

/** Numbers of a dimension of a sparse tensor, bytes[0] … , each of width bytes. */
struct ifd_tflite_indexes {
    const uint8_t *data;
    uint32_t count, width; /* width: 1, 2 or 4; signed if 4 */
};

/** One dimension, of the tensor's or of its blocks. */
struct ifd_tflite_dimension {
    bool is_sparse;
    int32_t dense_size;                          /* of a dense one */
    struct ifd_tflite_indexes segments, indices; /* of a sparse one */
};

/** How the content of a sparse tensor is stored: dimensions in traversal order, block dimensions
 *  behind those of the tensor. block_map: which of the tensor's each block dimension divides. */
struct ifd_tflite_sparsity {
    struct ifd_tflite_ints traversal_order, block_map;
    const struct ifd_tflite_dimension *dimension;
    uint32_t dimension_count;
};

struct ifd_tflite_tensor {
    const char *name; /* "" if it has none */
    int32_t type;     /* TensorType of the format */
    uint32_t buffer;
    struct ifd_tflite_ints shape;
    struct ifd_tflite_ints signature; /* shape with -1 for free dimensions; often absent */
    const float *scale;
    uint32_t scale_count;
    /** int64_t each, in the file, aligned to 4 bytes only: read with ifd_tflite_zero_point. */
    const uint8_t *zero_point;
    uint32_t zero_point_count;
    int32_t quantized_dimension;
    bool custom_quantization, is_variable;
    bool has_blocks;                  /* of a size along the last dimension, with a scale each */
    int32_t block_size, block_scales; /* of those: the scales are a tensor */
    const struct ifd_tflite_sparsity *sparsity; /* NULL: dense */
};

/** Of STABLEHLO_PAD and STABLEHLO_REDUCE_WINDOW; numbers for each dimension. between: of the former
 *  elements between others, of the latter the distance of elements. Of STABLEHLO_GATHER and
 *  STABLEHLO_SCATTER: low, dimensions of the result (of the updates) that are those of windows;
 *  high, dimensions that windows lack; between, which dimensions the indices place. */
struct ifd_tflite_windows {
    struct ifd_ints low, high, between, size, stride, dilation;
};

/** Options of a builtin operator; fields that its table does not have are 0. */
struct ifd_tflite_options {
    int32_t padding, activation;
    int32_t stride_h, stride_w, dilation_h, dilation_w, filter_h, filter_w;
    int32_t weights_format;
    int32_t axis, batch_dims;
    int32_t count; /* outputs of split and unpack, inputs of pack */
    int32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
    bool offset, keep_dims, align_corners, half_pixel_centers, pot_scale_int16,
        asymmetric_quantize_inputs;
    bool is_basic, is_diagonal, merge_outputs, narrow_range; /* of recurrent layers; FAKE_QUANT */
    bool adj_x, adj_y, exclusive, reverse, approximate;
    int32_t mode, block, radius, seq_dim, batch_dim, stride_d, dilation_d, rank, num_bits, combiner;
    float alpha, beta, bias, cell_clip, proj_clip, min, max;
    bool time_major;
    struct ifd_tflite_ints ints; /* new shape, squeezed dimensions, subgraphs of a case */
    /** Of IF: then, else; of WHILE: condition, body; of CALL, CALL_ONCE, STABLEHLO_COMPOSITE. */
    uint32_t subgraph[2];
    const char *container, *shared_name; /* of VAR_HANDLE; NULL: none */
    const float *boundaries;             /* of BUCKETIZE */
    uint32_t boundary_count;
    const struct ifd_tflite_windows *windows; /* NULL: none */
};

struct ifd_tflite_operator {
    uint32_t opcode_index;
    struct ifd_tflite_ints input, output;
    struct ifd_tflite_ints intermediate;      /* tensors that say how it quantizes inside */
    int32_t options_type;                     /* Options of the format, 0 if there are none */
    const struct ifd_tflite_options *options; /* never NULL */
    struct ifd_bytes custom_options;
    int32_t custom_options_format;
    bool large_custom_options;
};

struct ifd_tflite_opcode {
    int32_t builtin;
    const char *builtin_name; /* "CONV_2D"; "" for an unknown number */
    const char *custom;       /* "" unless builtin is CUSTOM */
    int32_t version;
};

struct ifd_tflite_buffer {
    struct ifd_bytes data;
    uint64_t offset, size; /* if offset > 1: content behind the FlatBuffer, not checked */
};

struct ifd_tflite_metadata_entry {
    const char *name;
    uint32_t buffer;
};

struct ifd_tflite_map {
    const char *name;
    uint32_t tensor;
};

struct ifd_tflite_signature {
    const char *key;
    uint32_t subgraph;
    const struct ifd_tflite_map *input, *output;
    uint32_t input_count, output_count;
};

struct ifd_tflite_subgraph {
    const struct ifd_tflite_tensor *tensor;
    uint32_t tensor_count;
    const struct ifd_tflite_operator *op;
    uint32_t op_count;
    struct ifd_tflite_ints input, output;
};

struct ifd_tflite_model {
    uint32_t version;
    const char *description;
    const struct ifd_tflite_opcode *opcode;
    uint32_t opcode_count;
    const struct ifd_tflite_buffer *buffer;
    uint32_t buffer_count;
    const struct ifd_tflite_metadata_entry *metadata;
    uint32_t metadata_count;
    const struct ifd_tflite_signature *signature;
    uint32_t signature_count;
    const struct ifd_tflite_subgraph *subgraph; /* the first is the model */
    uint32_t subgraph_count;
};

/** Verifies a file and reads its tables.
 *
 *  file:    aligned to 8 bytes.
 *  limits:  nodes, values and node_inputs are enforced here.
 *  Memory:  from arena. A crafted file may list a table many times: each time counts, and all
 *  that is read is limited to IFD_TFLITE_REUSE times the file, so that a small file cannot take
 *  much memory.
 *  Errors:  CORRUPT, TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_tflite_read(struct ifd_bytes file, const struct ifd_limits *limits,
                                            struct ifd_arena *arena, struct ifd_tflite_model *ret,
                                            struct ifd_err *err);

#define IFD_TFLITE_REUSE 4

/* ---- metadata (the buffer named TFLITE_METADATA) ---- */

struct ifd_tflite_port_info {
    const char *name;        /* "" */
    const char *description; /* "" */
    const float *mean, *std;
    uint32_t mean_count, std_count; /* 0: no normalization */
    const char *label_file;         /* name inside the archive behind the model; "" */
};

struct ifd_tflite_info {
    const char *description; /* "" */
    const struct ifd_tflite_port_info *input, *output;
    uint32_t input_count, output_count; /* of the metadata; the graph's may differ */
};

/** The same for metadata. buffer: any alignment; it is copied. */
IFD_NODISCARD enum ifd_code ifd_tflite_read_info(struct ifd_bytes buffer, struct ifd_arena *arena,
                                                 struct ifd_tflite_info *ret, struct ifd_err *err);

#ifdef __cplusplus
}
#endif
#endif

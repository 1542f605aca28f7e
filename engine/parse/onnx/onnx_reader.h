/** The ONNX messages as plain structs: the tables of one graph laid out in an arena, texts and
 *  contents left in the file.
 *
 *  The reader promises that every pointer and count stays inside the file. It promises nothing
 *  about meaning: names may be missing, twice or of no value, types and sizes any number. Thread:
 *  any. */
#ifndef INFERD_ENGINE_PARSE_ONNX_ONNX_READER_H
#define INFERD_ENGINE_PARSE_ONNX_ONNX_READER_H

#include "engine/base/arena.h"
#include "inferd/engine.h"

/** Element types of the format (TensorProto.DataType). */
enum ifd_onnx_type {
    IFD_ONNX_FLOAT = 1,
    IFD_ONNX_UINT8 = 2,
    IFD_ONNX_INT8 = 3,
    IFD_ONNX_UINT16 = 4,
    IFD_ONNX_INT16 = 5,
    IFD_ONNX_INT32 = 6,
    IFD_ONNX_INT64 = 7,
    IFD_ONNX_STRING = 8,
    IFD_ONNX_BOOL = 9,
    IFD_ONNX_FLOAT16 = 10,
    IFD_ONNX_DOUBLE = 11,
    IFD_ONNX_UINT32 = 12,
    IFD_ONNX_UINT64 = 13,
    IFD_ONNX_BFLOAT16 = 16,
    IFD_ONNX_FLOAT8E4M3FN = 17,
    IFD_ONNX_FLOAT8E4M3FNUZ = 18,
    IFD_ONNX_FLOAT8E5M2 = 19,
    IFD_ONNX_FLOAT8E5M2FNUZ = 20,
    IFD_ONNX_UINT4 = 21, /* several in a byte, the first in the lowest bits */
    IFD_ONNX_INT4 = 22,
    IFD_ONNX_FLOAT4E2M1 = 23,
    IFD_ONNX_FLOAT8E8M0 = 24,
    IFD_ONNX_UINT2 = 25,
    IFD_ONNX_INT2 = 26
};

struct ifd_onnx_tensor {
    struct ifd_str name;
    int32_t type;
    const int64_t *dim;
    uint32_t dim_count;
    struct ifd_bytes raw;
    size_t room; /* readable bytes behind raw */
    bool has_raw;
    /* Typed fields, where there is no raw content: numbers widened by the reader. */
    const float *f32;
    const double *f64;
    const int64_t *integer; /* int32_data, int64_data, uint64_data */
    const struct ifd_str *text;
    uint32_t f32_count, f64_count, integer_count, text_count;
    struct ifd_str
        location; /* of the file with its content, where that was not given; else empty */
};

struct ifd_onnx_graph;

struct ifd_onnx_attr {
    struct ifd_str name;
    struct ifd_str refers_to; /* in a function: the caller's attribute that it is; else empty */
    float f;
    int64_t i;
    struct ifd_str s;
    const struct ifd_onnx_tensor *tensor; /* NULL if there is none */
    const struct ifd_onnx_graph *graph;   /* NULL if there is none */
    const float *floats;
    const int64_t *ints;
    const struct ifd_str *strings;
    uint32_t float_count, int_count, string_count;
};

struct ifd_onnx_node {
    struct ifd_str name, op, domain, overload;
    const struct ifd_str *input, *output; /* empty texts: absent */
    uint32_t input_count, output_count;
    const struct ifd_onnx_attr *attr;
    uint32_t attr_count;
};

/** An input or output of the graph. dim: -1 where it is a symbol or unknown. */
struct ifd_onnx_port {
    struct ifd_str name;
    bool is_tensor, is_sequence; /* both: a sequence of tensors of this type */
    int32_t type;
    bool has_shape;
    const int64_t *dim;
    const struct ifd_str *symbol; /* per dimension: its name, empty if it has none */
    uint32_t dim_count;
};

/** A name that is an initializer, an input or a node's output. */
struct ifd_onnx_named {
    struct ifd_str text;
    const struct ifd_onnx_node *maker; /* NULL: no node */
};

struct ifd_onnx_graph {
    const struct ifd_onnx_named *name; /* sorted */
    size_t name_count;
    const struct ifd_onnx_node *node;
    const struct ifd_onnx_tensor *initializer;
    const struct ifd_onnx_port *input, *output;
    uint32_t node_count, initializer_count, input_count, output_count;
};

struct ifd_onnx_opset {
    struct ifd_str domain;
    int64_t version;
};

/** An operator that the model defines (a model-local function). Inputs and outputs of the graph
 *  have names only. */
struct ifd_onnx_local {
    struct ifd_str op, domain, overload;
    const struct ifd_onnx_opset *opset;
    const struct ifd_onnx_attr *attr; /* where a caller leaves them out */
    uint32_t opset_count, attr_count;
    struct ifd_onnx_graph graph;
};

/** A file beside the model's that constants lie in. */
struct ifd_onnx_place {
    struct ifd_str name;
    const struct ifd_external_file *file; /* NULL: it was not given */
};

struct ifd_onnx_model {
    int64_t ir_version;
    struct ifd_str producer, description;
    const struct ifd_onnx_opset *opset;
    const struct ifd_onnx_local *function;
    uint32_t opset_count, function_count;
    struct ifd_onnx_graph graph;
    /** Files that constants lie in, each once. */
    const struct ifd_onnx_place *place;
    uint32_t place_count;
};

/** Files beside the model's, for constants in them. */
struct ifd_onnx_beside {
    const struct ifd_external_file *file;
    uint32_t count;
};

/** Lays a file out. limits: nodes, values and node_inputs are enforced here. beside: NULL for none;
 *  constants in other files have a location and no content.
 *  Memory: from arena, at most in proportion to the file. Errors: CORRUPT, TOO_LARGE, NOMEM. */
IFD_NODISCARD enum ifd_code ifd_onnx_read(struct ifd_bytes file,
                                          const struct ifd_onnx_beside *beside,
                                          const struct ifd_limits *limits, struct ifd_arena *arena,
                                          struct ifd_onnx_model *ret, struct ifd_err *err);

#endif

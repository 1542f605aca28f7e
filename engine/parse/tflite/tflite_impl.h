/** Internal interfaces of the TFLite parser. */
#ifndef INFERD_ENGINE_PARSE_TFLITE_TFLITE_IMPL_H
#define INFERD_ENGINE_PARSE_TFLITE_TFLITE_IMPL_H

#include "engine/parse/parse.h"
#include "engine/parse/tflite/tflite_reader.h"

/** Names and lists in messages: the end of a long name is cut. */
#define NAME_FORMAT "\"%.60s\""

/* ---- check.c: checks beyond the FlatBuffers verifier's ---- */

/** Checks indexes, buffer ranges, shapes and sizes, quantization vectors, producers, order,
 *  signatures. After OK, tflite.c may follow any index. Well-formed content that is not
 *  supported passes; it is refused where it is used. scratch: for temporary data. Errors:
 *  CORRUPT, UNSUPPORTED (format version), TOO_LARGE (one tensor), NOMEM. */
IFD_NODISCARD enum ifd_code ifd_tflite_check(const struct ifd_tflite_model *model,
                                             struct ifd_bytes file, const struct ifd_limits *limits,
                                             struct ifd_arena *scratch, struct ifd_err *err);

/** True if the name is one line of UTF-8. Names appear in messages, logs and dumps. */
bool ifd_tflite_is_plain(const char *name);

/** Zero point number index, which the tensor must have. */
int64_t ifd_tflite_zero_point(const struct ifd_tflite_tensor *tensor, uint32_t index);

/** Content of a buffer, inside or behind the FlatBuffer; {NULL, 0} if empty. False if it lies
 *  outside the file. */
bool ifd_tflite_content(const struct ifd_tflite_buffer *buffer, struct ifd_bytes file,
                        struct ifd_bytes *ret);

/** Bits of a number of a type that packs several in a byte, the first lowest; 0 for others. They
 *  become s8 or u8. Only constants have such types. */
uint32_t ifd_tflite_narrow_bits(int32_t type);

/** Element type for the format's number; false if inferd does not have it. */
bool ifd_tflite_dtype(int32_t type, enum ifd_dtype *ret);

/** Types with quantization; that of other types is ignored, as in LiteRT. */
#define IFD_TFLITE_QUANTIZED                                                                       \
    (IFD_BIT(IFD_U8) | IFD_BIT(IFD_S8) | IFD_BIT(IFD_S16) | IFD_BIT(IFD_S32) | IFD_BIT(IFD_S64))

/** The file's shape as ours: false if its rank is above IFD_MAX_RANK. Dimensions of -1 become
 *  IFD_DIM_ANY. */
bool ifd_tflite_shape(const struct ifd_tflite_ints *ints, struct ifd_shape *ret);

/** A tensor's shape with IFD_DIM_ANY where its signature has -1. shape: the tensor's, of known
 *  rank. */
struct ifd_shape ifd_tflite_declared(const struct ifd_tflite_tensor *tensor,
                                     const struct ifd_shape *shape);

/* ---- ops.c: the format's operators and ours ---- */

/** An operator of the file whose node is being built. */
struct ifd_tflite_call {
    const struct ifd_graph *graph;
    const struct ifd_op_def *def;
    void *attrs; /* defaults; written by the rule */
    const struct ifd_tflite_operator *op;
    const uint32_t *input; /* values of all inputs in the file; IFD_NONE if absent */
    uint32_t input_count, output_count;
    /** Written by the rule: a value whose content it needs, which is not constant. */
    uint32_t *wanted;
};

/** A row: an operator of the format. */
struct ifd_tflite_rule {
    int32_t builtin;
    const char *custom; /* NULL for a builtin */
    enum ifd_op op;
    int32_t max_version;
    int32_t options; /* type of its options; 0 if none are read */
    uint32_t min_inputs, max_inputs;
    uint32_t operands; /* bit i: input i is an input of our operator, else it is an attribute */
    /** NULL: no attributes. */
    enum ifd_code (*read)(const struct ifd_tflite_call *call, struct ifd_err *err);
};

/** The row of an operator code, NULL if there is none. Static. */
const struct ifd_tflite_rule *ifd_tflite_rule(const struct ifd_tflite_opcode *opcode);

#endif
